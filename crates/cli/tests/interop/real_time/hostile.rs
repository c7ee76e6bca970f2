//! Tests a program that sends arbitrary packets by raw sockets: the emulator continues, counts the rejected packets,
//! and forwards the packets of other hosts.

use crate::bench::{Bench, Called, Namespaces, User};
use crate::world::World;
use std::fs;

/// A download between two hosts, and a third host at the server's router.
fn scenario() -> World {
    World::new("60s")
        .hosts(&["client", "server", "villain"])
        .routers(&["router"])
        .link("client", "router", "rate = '50Mbit/s', delay = '2ms', queue = '200packets'")
        .link("server", "router", "rate = '50Mbit/s', delay = '2ms', queue = '200packets'")
        .link("villain", "router", "rate = '10Mbit/s', delay = '2ms', queue = '100packets'")
        .web_server()
        .program(
            "villain",
            &["python3", "villain.py"],
            ", after = ['server'], ready = { kind = 'output', text = 'warming up' }",
        )
        .download("client", "villain", &["--limit-rate", "500k"])
}

/// Prints the number of packets that it has sent of each kind. Addresses: client 10.0.0.1, server 10.0.0.2, villain
/// 10.0.0.3, router 10.0.0.4.
const VILLAIN: &str = r#"
import json, random, socket, struct, time

random.seed(4)
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("eth0", 0))
mac = out.getsockname()[4]
gateway = bytes([2, 0]) + mac[2:]
sent = {}

def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff

def ipv4(payload, to="10.0.0.2", frm="10.0.0.3", protocol=17, fragment=0, ttl=64, length=None, ihl=5, off=0):
    length = 20 + len(payload) if length is None else length
    head = struct.pack("!BBHHHBBH4s4s", 0x40 | ihl, 0, length, 1, fragment, ttl, protocol, 0,
                       socket.inet_aton(frm), socket.inet_aton(to))
    return head[:10] + struct.pack("!H", (checksum(head) + off) & 0xffff) + head[12:] + payload

def udp(source=1, destination=9, data=b"x" * 8, length=None):
    return struct.pack("!HHHH", source, destination, 8 + len(data) if length is None else length, 0) + data

def send(kind, packet, ethertype=0x0800, to=None):
    try:
        out.send((to or gateway) + mac + struct.pack("!H", ethertype) + packet)
        sent[kind] = sent.get(kind, 0) + 1
    except OSError:
        # Its own queue is full.
        sent["not sent"] = sent.get("not sent", 0) + 1

def pause(number):
    # Whoever shares two cores with the emulator would otherwise only see it drop what it cannot read.
    if number % 32 == 0:
        time.sleep(0.002)

print("warming up", flush=True)
for number in range(200):
    pause(number * 22)
    whole = ipv4(udp())
    send("truncated", whole[:random.randrange(1, len(whole))])
    send("length", ipv4(udp(), length=random.choice([0, 19, 2000, 65535])))
    send("header length", ipv4(udp(), ihl=random.choice([0, 4, 15])))
    send("header checksum", ipv4(udp(), off=random.randrange(1, 65535)))
    send("udp length", ipv4(udp(length=random.choice([0, 7, 60000]))))
    send("udp checksum", ipv4(struct.pack("!HHHH", 1, 9, 16, random.randrange(1, 65536)) + b"y" * 8))
    send("tcp", ipv4(random.randbytes(random.randrange(0, 60)), protocol=6))
    send("fragment", ipv4(random.randbytes(64), fragment=random.randrange(65536)))
    send("tiny fragment", ipv4(b"\0" * 8, protocol=6, fragment=0x2000))
    send("unknown protocol", ipv4(random.randbytes(20), protocol=random.choice([2, 41, 47, 50, 89, 132, 253, 255])))
    send("icmp", ipv4(random.randbytes(random.randrange(0, 64)), protocol=1))
    send("multicast", ipv4(udp(), to="224.0.0.%d" % random.randrange(256)), to=bytes.fromhex("01005e000001"))
    send("broadcast", ipv4(udp(), to="255.255.255.255"), to=b"\xff" * 6)
    send("nowhere", ipv4(udp(), to="192.0.2.7"))
    send("to itself", ipv4(udp(), to="10.0.0.3"))
    send("to the router", ipv4(udp(), to="10.0.0.4"))
    send("spoofed", ipv4(udp(), frm=random.choice(["10.0.0.1", "10.0.0.2", "192.0.2.1", "0.0.0.0", "255.255.255.255"])))
    send("expiring", ipv4(udp(), ttl=random.randrange(0, 2)))
    send("noise", random.randbytes(random.randrange(0, 1400)), ethertype=random.randrange(65536))
    send("ipv6 noise", b"\x60" + random.randbytes(random.randrange(0, 1400)), ethertype=0x86dd)
    send("arp", random.randbytes(28), ethertype=0x0806)
    send("large", ipv4(udp(data=b"z" * random.randrange(1400, 1460))))
number = 0
for source in (1, 2):
    for destination in range(1, 50001):
        number += 1
        pause(number)
        send("five-tuples", ipv4(udp(source, destination)))
print(json.dumps(sent))
"#;

/// Peak memory of a process, in kilobytes.
fn peak_kilobytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse().ok()
}

#[test]
fn hostile_packets_are_counted_without_effect_on_other_hosts() {
    let bench = Bench::new("hostile", User::Nobody);
    let file: Vec<u8> = (0..1_500_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::create_dir_all(bench.path("served")).expect("a folder");
    bench.write("served/file", &file);
    bench.write("villain.py", VILLAIN);
    bench.write_scenario(&scenario());
    let mut run = bench.start(&["run", "scenario.toml", "--real-time", "--out", "out"]);
    let mut peak = 0;
    while run.try_wait().expect("the process has a state").is_none() {
        peak = peak_kilobytes(run.id()).unwrap_or(peak);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Called::new(&bench, run.wait_with_output().expect("the output is readable")).ended_with(0);
    bench.assert_nothing_left(&Namespaces::default());
    assert_eq!(fs::read(bench.path("fetched")).expect("the file"), file);

    let record = bench.run_json();
    let said = bench.said("villain");
    let sent: serde_json::Value = serde_json::from_str(said.lines().last().expect("a line")).expect("JSON");
    let refused = &record["refused_frames"];
    let drops = record["lateness"]["own_drops"].as_u64().expect("own drops");
    eprintln!("peak {peak} kB; sent {sent}; refused {refused}; own drops {drops}");
    let count = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    // Packets that the kernel drops before the emulator are counted there.
    for (reason, kinds) in [
        ("malformed", &["length", "header length", "header checksum", "udp length", "tiny fragment"][..]),
        ("not_ip", &["arp"]),
        ("unroutable", &["multicast", "broadcast", "nowhere", "to itself"]),
        ("spoofed", &["spoofed"]),
    ] {
        let expected: u64 = kinds.iter().map(|kind| count(&sent[*kind])).sum();
        let found = count(&refused[reason]);
        assert!(expected > 0 && found + drops >= expected, "{reason}: {kinds:?} are {expected}, not {found}");
    }
    // Of 100 000 conversations 65 536 are permitted, including a few earlier ones.
    let beyond = count(&refused["too_many_conversations"]);
    let five_tuples = count(&sent["five-tuples"]);
    assert!(beyond + drops >= five_tuples.saturating_sub(65_536), "{beyond} of {five_tuples}");
    assert!(beyond <= five_tuples - 65_536 + 2000, "{beyond} of {five_tuples}");
    assert!(peak > 0 && peak < 500_000, "{peak} kB");
}
