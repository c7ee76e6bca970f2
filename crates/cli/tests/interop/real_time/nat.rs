//! Tests real programs on both sides of a NAT. Outside hosts see its address, inside hosts receive the responses, and
//! unsolicited packets are dropped. The NAT translates IPv4.

use crate::bench::{Bench, User};
use crate::world::World;

/// The inside host is 10.0.0.1, the router 10.0.0.3, and the server 10.0.0.2 (default addresses). Linux does not assign
/// the ports of the pool.
fn scenario() -> World {
    World::new("20s")
        .hosts(&["client", "server"])
        .routers(&["home"])
        .link("client", "home", "rate = '20Mbit/s', delay = '5ms'")
        .link("home", "server", "rate = '20Mbit/s', delay = '5ms'")
        .nat("home", &["client"])
        .server("server.py")
        .program("client", &["python3", "client.py"], ", after = ['server']")
}

/// Reports the peer's address over UDP and TCP. Then sends to a port of the NAT that has no mapping.
const SERVER: &str = r#"
import socket, threading
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("10.0.0.2", 9000))
t = socket.create_server(("10.0.0.2", 9000))
def datagrams():
    while True:
        data, who = u.recvfrom(2000)
        u.sendto(f"{who[0]} {who[1]}".encode(), who)
        u.sendto(b"unasked", (who[0], 20009))
threading.Thread(target=datagrams, daemon=True).start()
print("ready", flush=True)
while True:
    c, who = t.accept()
    body = b"".join(iter(lambda: c.recv(65536), b""))
    c.sendall(f"{who[0]} {who[1]} {len(body)}".encode())
    c.close()
"#;

/// Sends requests by UDP, with and without a checksum (option 11 of Linux's sockets), by TCP, and to a closed port.
const CLIENT: &str = r#"
import socket
def ask(checksum):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, 11, 0 if checksum else 1)
    s.settimeout(5)
    s.connect(("10.0.0.2", 9000))
    s.send(b"who am I?")
    print("udp", s.recv(2000).decode(), flush=True)
ask(True)
ask(False)
c = socket.create_connection(("10.0.0.2", 9000), 5)
c.sendall(b"x" * 300000)
c.shutdown(socket.SHUT_WR)
print("tcp", c.recv(2000).decode(), flush=True)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect(("10.0.0.2", 9001))
s.send(b"anybody?")
try:
    s.recv(10)
except ConnectionRefusedError:
    print("refused", flush=True)
"#;

#[test]
fn programs_communicate_through_a_nat() {
    let bench = Bench::new("nat", User::Caller);
    bench.write("server.py", SERVER);
    bench.write("client.py", CLIENT);
    bench.run(&scenario()).ended_with(0);
    let said = bench.said("client");
    // Ports are from the start of the pool, separately for UDP and TCP, and 300 000 bytes arrived. The server's kernel
    // sent an ICMP port unreachable message, and the quoted packet was translated back for the socket that had sent it.
    assert_eq!(said, "udp 10.0.0.3 20000\nudp 10.0.0.3 20001\ntcp 10.0.0.3 20000 300000\nrefused\n");
    // Three UDP mappings and one TCP mapping. Each of the two datagrams with a response was followed by an unsolicited one.
    let record = bench.run_json();
    assert_eq!(record["nat"][0]["mappings"], 4, "{}", record["nat"]);
    assert_eq!(record["nat"][0]["unsolicited"], 2, "{}", record["nat"]);
}

/// a and b are inside, 10.0.0.1 and 10.0.0.2; the server is 10.0.0.3 and the NAT 10.0.0.4.
fn street() -> World {
    ["a", "b", "server"]
        .iter()
        .fold(World::new("20s"), |world, host| world.link(host, "home", "rate = '20Mbit/s', delay = '2ms'"))
        .hosts(&["a", "b", "server"])
        .routers(&["home"])
        .nat("home", &["a", "b"])
        .server("rendezvous.py")
        .program("a", &["python3", "peer.py", "a"], ", after = ['server']")
        .program("b", &["python3", "peer.py", "b"], ", after = ['server']")
}

/// Sends each peer the outside address of the other.
const RENDEZVOUS: &str = r#"
import socket
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("10.0.0.3", 9000))
print("ready", flush=True)
_, one = u.recvfrom(100)
_, other = u.recvfrom(100)
u.sendto(f"{other[0]} {other[1]}".encode(), one)
u.sendto(f"{one[0]} {one[1]}".encode(), other)
"#;

/// Sends to the other peer's outside address until both have received the other's greeting (RFC 5128 section 3.3).
const PEER: &str = r#"
import socket, sys
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.settimeout(5)
u.sendto(b"here", ("10.0.0.3", 9000))
address, port = u.recv(100).decode().split()
peer = (address, int(port))
u.settimeout(0.1)
heard = False
for _ in range(50):
    u.sendto(sys.argv[1].encode() + (b"!" if heard else b"?"), peer)
    try:
        data, who = u.recvfrom(100)
    except TimeoutError:
        continue
    if not heard:
        print(data[:1].decode(), who == peer, who[0], flush=True)
    heard = True
    if data.endswith(b"!"):
        u.sendto(sys.argv[1].encode() + b"!", peer)
        break
"#;

#[test]
fn inside_programs_communicate_by_their_outside_addresses() {
    let bench = Bench::new("street", User::Caller);
    bench.write("rendezvous.py", RENDEZVOUS);
    bench.write("peer.py", PEER);
    bench.run(&street()).ended_with(0);
    assert_eq!((bench.said("a").as_str(), bench.said("b").as_str()), ("b True 10.0.0.4\n", "a True 10.0.0.4\n"));
    assert_eq!(bench.run_json()["nat"][0]["mappings"], 2);
}
