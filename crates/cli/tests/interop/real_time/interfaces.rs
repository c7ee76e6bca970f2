//! Tests a host that is connected to an interface of the machine, and a host with a program. A peer beyond the
//! interface communicates through the scenario, and the machine's network is unchanged.

use crate::bench::{Bench, User};
use crate::world::World;
use std::process::Command;

/// `outside`, 192.0.2.1, is beyond an interface of this machine; the server is 10.0.0.2.
fn scenario(interface: &str) -> World {
    World::new("60s")
        .entry("host", format!("name = 'outside', ipv4 = '192.0.2.1', interface = '{interface}'"))
        .hosts(&["server"])
        .entry("router", "name = 'router', ipv4 = '192.0.2.254'")
        .link("outside", "router", "rate = '50Mbit/s', delay = '10ms'")
        .link("router", "server", "rate = '50Mbit/s', delay = '10ms'")
        .program("server", &["python3", "server.py"], "")
}

/// Responds to datagrams until it is told to end. The run must last until that response has arrived.
const SERVER: &str = r#"
import socket, time
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("10.0.0.2", 9000))
while True:
    data, who = u.recvfrom(2000)
    u.sendto(data + b" from " + who[0].encode(), who)
    if data == b"end":
        time.sleep(1)
        break
"#;

/// Sends requests until the server responds, then sends each word. Prints the response and the nanoseconds of each
/// round trip.
const CLIENT: &str = r#"
import socket, sys, time
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.connect(("10.0.0.2", 9000))
u.settimeout(0.5)
def ask(word):
    begin = time.monotonic_ns()
    try:
        u.send(word)
        return u.recv(2000).decode(), time.monotonic_ns() - begin
    except OSError:
        time.sleep(0.1)
for _ in range(300):
    if ask(b"begin"):
        break
u.settimeout(5)
for word in sys.argv[1:]:
    print(*ask(word.encode()), flush=True)
"#;

/// A machine with an interface, `wire`, to another machine. It forwards packets, which would bypass the emulator.
const MACHINE: &str = r#"
set -e
mount -t tmpfs none /run
mkdir -p /run/netns
mount -t proc none /proc
ip link set lo up
ip netns add out
ip link add wire type veth peer name eth0 netns out
ip link set wire up
ip -n out link set lo up
ip -n out addr add 192.0.2.1/24 dev eth0
ip -n out link set eth0 up
ip netns exec out ethtool -K eth0 tx off >/dev/null
ip -n out route add default via 192.0.2.254
echo 1 >/proc/sys/net/ipv4/ip_forward
ip -o link | cut -d: -f2 | cut -d@ -f1 >before
./fullpipe run scenario.toml --real-time --quiet --out out >summary &
run=$!
ip netns exec out python3 client.py one two three four
during=$(cat /proc/sys/net/ipv4/conf/wire/forwarding)
ip netns exec out python3 client.py end
status=0
wait $run || status=$?
ip -o link | cut -d: -f2 | cut -d@ -f1 | cmp before -
echo "ended with $status, forwarding $during, then $(cat /proc/sys/net/ipv4/conf/wire/forwarding)"
"#;

#[test]
fn peer_beyond_an_interface_communicates_with_a_program() {
    let bench = Bench::new("interfaces", User::Caller);
    bench.write_scenario(&scenario("wire"));
    for (name, text) in [("server.py", SERVER), ("client.py", CLIENT), ("machine.sh", MACHINE)] {
        bench.write(name, text);
    }
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "machine.sh"])
        .current_dir(bench.path(""))
        .output()
        .expect("unshare starts");
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{errors}");
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split(' ').collect()).collect();
    let words: Vec<&str> = lines[..5].iter().map(|line| line[0]).collect();
    assert_eq!(words, ["one", "two", "three", "four", "end"], "{out}\n{errors}");
    for line in &lines[..5] {
        assert_eq!(line[1..3], ["from", "192.0.2.1"], "{line:?}");
        // Two links of 10 ms, in both directions.
        assert!(line[3].parse::<u64>().expect("nanoseconds") >= 40_000_000, "{line:?}");
    }
    assert_eq!(out.lines().nth(5), Some("ended with 0, forwarding 0, then 1"), "{errors}");
}

#[test]
fn ordinary_user_gets_an_error_with_the_reason() {
    let bench = Bench::new("interfaces", User::Nobody);
    bench.write("server.py", SERVER);
    bench.run(&scenario("lo")).ended_with(1).said("host outside: cannot open the interface lo of this machine");
}

#[test]
fn missing_interface_is_named() {
    let bench = Bench::new("interfaces-missing", User::Caller);
    bench.write("server.py", SERVER);
    let called = bench.run(&scenario("no-such-wire")).ended_with(1).said("host outside: ");
    // A user without privileges is rejected before the interface is looked up.
    assert!(called.errors.contains("interface no-such-wire"), "{}", called.errors);
}
