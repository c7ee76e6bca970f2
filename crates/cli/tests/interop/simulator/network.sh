#!/bin/sh
# The network of quic-network-simulator without containers: namespaces for client and server, each connected to this one, in which
# the simulator runs. It must run in its own network, mount and process namespaces, which remove everything when they end.
#   network.sh ENTRY ENDPOINT ROLE     with FULLPIPE, SCENARIO and LOGS in the environment
# ENDPOINT is the test program, which runs the client in the given ROLE and the echo server.
set -e
entry=$1
endpoint=$2
role=$3
mount -t tmpfs none /run
mkdir -p /run/netns
mount -t proc none /proc
ip link set lo up

# host, interface here, number of its networks
add() {
    ip netns add "$1"
    ip link add "$2" type veth peer name eth0 netns "$1"
    ip addr add "193.167.$3.2/24" dev "$2"
    ip addr add "fd00:cafe:cafe:$3::2/64" dev "$2" nodad
    ip link set "$2" up
    in="ip -n $1"
    $in link set lo up
    $in addr add "193.167.$3.100/24" dev eth0
    $in addr add "fd00:cafe:cafe:$3::100/64" dev eth0 nodad
    $in link set eth0 up
    # As the endpoints of quic-network-simulator do it.
    ip netns exec "$1" ethtool -K eth0 tx off >/dev/null
    $in route add 193.167.0.0/16 via "193.167.$3.2"
    $in route del "193.167.$3.0/24" dev eth0 2>/dev/null && $in route add "193.167.$3.2/32" dev eth0
    $in route replace 193.167.0.0/16 via "193.167.$3.2" onlink dev eth0
    $in route add fd00:cafe:cafe::/48 via "fd00:cafe:cafe:$3::2"
}
add client eth0 0
add server eth1 100

# The kernel would forward past the simulator unless the simulator prevents it.
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 1 >/proc/sys/net/ipv6/conf/all/forwarding

"$entry" &
simulator=$!
ROLE=echo ip netns exec server "$endpoint" --exact an_endpoint --nocapture &
ROLE=$role ip netns exec client "$endpoint" --exact an_endpoint --nocapture
kill -TERM $simulator
status=0
wait $simulator || status=$?
echo "simulator ended with $status, forwarding $(cat /proc/sys/net/ipv4/conf/eth0/forwarding)"
