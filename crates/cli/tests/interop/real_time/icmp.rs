//! Tests that Linux processes the ICMP messages of modeled routers: path MTU discovery works, routers respond to
//! traceroute and ping, and fragmented packets arrive.

use crate::bench::{Bench, User};
use crate::world::World;

/// client 10.0.0.1, server 10.0.0.2, and routers 10.0.0.3 and 10.0.0.4 with an MTU of 1300 bytes between them.
fn scenario() -> World {
    World::new("30s")
        .hosts(&["client", "server"])
        .routers(&["near", "far"])
        .link("client", "near", "rate = '50Mbit/s', delay = '1ms'")
        .link("near", "far", "rate = '50Mbit/s', delay = '1ms', mtu = '1300B'")
        .link("far", "server", "rate = '50Mbit/s', delay = '1ms'")
        .server("server.py")
        .program("client", &["python3", "client.py"], ", after = ['server']")
}

/// Prints the length of a datagram, then sends 300 000 bytes to a client that has sent as many.
const SERVER: &str = r#"
import socket, threading
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("10.0.0.2", 9000))
def datagrams():
    while True:
        data, who = u.recvfrom(9000)
        u.sendto(str(len(data)).encode(), who)
threading.Thread(target=datagrams, daemon=True).start()
t = socket.create_server(("::", 9000), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
while True:
    c, who = t.accept()
    body = b"".join(iter(lambda: c.recv(65536), b""))
    c.sendall(b"y" * len(body))
    c.close()
"#;

/// A datagram that routers may fragment, a traceroute with the error queue (option 11 enables it), pings, TCP over both
/// IP versions with the resulting path MTU of the socket (options 14 and 24), and an unused address.
const CLIENT: &str = r#"
import errno, os, socket, struct, time
def say(*words):
    print(*words, flush=True)
def heard(s):
    for _ in range(200):
        try:
            _, ancillary, _, _ = s.recvmsg(2000, 512, socket.MSG_ERRQUEUE)
        except BlockingIOError:
            time.sleep(0.01)
            continue
        data = ancillary[0][2]
        code, origin, kind, sub = struct.unpack("IBBB", data[:7])
        return socket.inet_ntoa(data[20:24]), kind, sub, errno.errorcode[code]
    return "nothing"
def probe(address, port, hops):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_IP, 11, 1)
    s.setsockopt(socket.SOL_IP, socket.IP_TTL, hops)
    s.setblocking(False)
    s.sendto(b"probe", (address, port))
    return heard(s)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_IP, 10, 0)
s.settimeout(5)
s.sendto(b"x" * 3000, ("10.0.0.2", 9000))
say("datagram", s.recv(100).decode())
for hops in (1, 2, 3):
    say("hop", *probe("10.0.0.2", 33434, hops))
say("nowhere", *probe("10.9.9.9", 33434, 64))
def ping(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    s.settimeout(5)
    body = struct.pack("!BBHHH", 8, 0, 0, 77, 1) + b"ping"
    total = sum(struct.unpack("!6H", body))
    total = (total >> 16) + (total & 0xffff)
    body = body[:2] + struct.pack("!H", 0xffff - total) + body[4:]
    s.sendto(body, (address, 0))
    while True:
        data, who = s.recvfrom(2000)
        if data[20] == 0:
            return who[0], data[24:]
for address in ("10.0.0.3", "10.0.0.4"):
    who, said = ping(address)
    say("ping", who, said == struct.pack("!HH", 77, 1) + b"ping")
for address, level, option in (("10.0.0.2", socket.SOL_IP, 14), ("fd66:756c:6c70::2", socket.IPPROTO_IPV6, 24)):
    c = socket.create_connection((address, 9000), 5)
    c.sendall(b"x" * 300000)
    c.shutdown(socket.SHUT_WR)
    count = sum(map(len, iter(lambda: c.recv(65536), b"")))
    say("tcp", count, c.getsockopt(level, option))
"#;

#[test]
fn linux_processes_icmp_messages_of_modeled_routers() {
    let bench = Bench::new("icmp", User::Caller);
    bench.write("server.py", SERVER);
    bench.write("client.py", CLIENT);
    bench.run(&scenario()).ended_with(0);
    let said = bench.said("client");
    let expected = [
        "datagram 3000",
        // Type 11 code 0: time to live exceeded. Type 3 code 3: port unreachable, from the server's own kernel.
        "hop 10.0.0.3 11 0 EHOSTUNREACH",
        "hop 10.0.0.4 11 0 EHOSTUNREACH",
        "hop 10.0.0.2 3 3 ECONNREFUSED",
        "nowhere 10.0.0.3 3 0 ENETUNREACH",
        "ping 10.0.0.3 True",
        "ping 10.0.0.4 True",
        "tcp 300000 1300",
        "tcp 300000 1300",
    ];
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let record = bench.run_json();
    assert_eq!(record["icmp"]["echo_replies"], 2, "{}", record["icmp"]);
}
