//! `fullpipe simulator` by its entry script, between two hosts that are network namespaces: as an ordinary user may have them,
//! so the test needs no rights.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "real programs read the clock")]

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const ECHO_PORT: u16 = 4433;
const SINK_PORT: u16 = 4434;
const SERVERS: [(&str, &str); 2] = [("v4", "193.167.100.100"), ("v6", "fd00:cafe:cafe:100::100")];

fn server(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().expect("an address"), port)
}

/// Not a test of its own: what the test's program does when it runs at a host.
#[test]
fn an_endpoint() {
    match std::env::var("ROLE").as_deref() {
        Ok("echo") => echo(),
        Ok("ask") => ask(10, Duration::from_millis(20)),
        Ok("ask slowly") => ask(6, Duration::from_millis(400)),
        Ok("flood") => flood(),
        _ => {}
    }
}

/// Answers every datagram with where it came from; datagrams to the other port are counted, and whoever asks there with one
/// byte gets the account: bytes after the first, and the time since it.
fn echo() {
    let sink = UdpSocket::bind("[::]:4434").expect("a socket");
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        let (mut count, mut first, mut last) = (0, None, Instant::now());
        loop {
            let (length, from) = sink.recv_from(&mut bytes).expect("a datagram");
            if length == 1 {
                let elapsed = first.map_or(0, |first| last.duration_since(first).as_nanos());
                sink.send_to(format!("{count} {elapsed}").as_bytes(), from).expect("an answer");
                continue;
            }
            last = Instant::now();
            match first {
                None => first = Some(last),
                Some(_) => count += length,
            }
        }
    });
    let socket = UdpSocket::bind(("::", ECHO_PORT)).expect("a socket");
    let mut bytes = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut bytes).expect("a datagram");
        let seen =
            format!("{} {} {}", String::from_utf8_lossy(&bytes[..length]), from.ip().to_canonical(), from.port());
        socket.send_to(seen.as_bytes(), from).expect("an answer");
    }
}

/// Waits until the simulator says that it forwards.
fn wait_for_simulator() {
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect_timeout(&server("193.167.0.2", 57_832), Duration::from_secs(1)).is_err() {
        assert!(Instant::now() < until, "the simulator never opened its port");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Asks the server `count` times over each version of IP, and prints what came of it.
fn ask(count: u32, pause: Duration) {
    wait_for_simulator();
    for (version, address) in SERVERS {
        let socket = UdpSocket::bind(if version == "v4" { "0.0.0.0:5000" } else { "[::]:5001" }).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a time");
        let mut bytes = [0; 2048];
        for number in 1..=count {
            let sent = Instant::now();
            socket.send_to(number.to_string().as_bytes(), server(address, ECHO_PORT)).expect("it is sent");
            match socket.recv_from(&mut bytes) {
                Ok((length, _)) => println!(
                    "answer {version} {} {}",
                    sent.elapsed().as_nanos(),
                    String::from_utf8_lossy(&bytes[..length])
                ),
                Err(_) => println!("none {version} {number}"),
            }
            std::thread::sleep(pause);
        }
    }
}

/// Sends 1200 bytes every 0.6 ms, 16 Mbit/s, for 3 s, over each version; prints what has come.
fn flood() {
    wait_for_simulator();
    for (version, address) in SERVERS {
        let socket = UdpSocket::bind("[::]:0").or_else(|_| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
        let to = match server(address, SINK_PORT) {
            SocketAddr::V4(to) => SocketAddr::new(to.ip().to_ipv6_mapped().into(), to.port()),
            to => to,
        };
        let begin = Instant::now();
        for number in 0..5000u32 {
            let due = Duration::from_micros(600) * number;
            std::thread::sleep(due.saturating_sub(begin.elapsed()));
            socket.send_to(&[7; 1200], to).expect("it is sent");
        }
        std::thread::sleep(Duration::from_millis(200));
        socket.send_to(&[0], to).expect("it is sent");
        let mut bytes = [0; 100];
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time");
        let (length, _) = socket.recv_from(&mut bytes).expect("the account");
        println!("account {version} {}", String::from_utf8_lossy(&bytes[..length]));
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Plays a scenario with a client of that role; gives the lines that the client printed, and the logs' folder.
fn play(name: &str, scenario: &str, role: &str) -> (Vec<Vec<String>>, PathBuf) {
    let logs = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&logs);
    let own = std::env::current_exe().expect("this program");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh"])
        .arg(root().join("crates/cli/tests/simulator/network.sh"))
        .arg(root().join("simulator/run.sh"))
        .arg(own)
        .arg(role)
        .env("FULLPIPE", env!("CARGO_BIN_EXE_fullpipe"))
        .env("SCENARIO", scenario)
        .env("LOGS", &logs)
        .output()
        .expect("unshare starts");
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{errors}");
    // The simulator ends well when asked to, and leaves the machine as it was.
    assert!(out.contains("simulator ended with 0, forwarding 1"), "{out}\n{errors}");
    let lines = out.lines().map(|line| line.split_whitespace().map(str::to_string).collect()).collect();
    (lines, logs)
}

const PATH: &str = "--delay=15ms --bandwidth=10Mbps --queue=25";

/// The answers over a version of IP: round trip, number, and where the server saw it come from.
fn answers(lines: &[Vec<String>], version: &str) -> Vec<(u64, u32, String, u16)> {
    let mine = lines.iter().filter(|line| line.len() == 6 && line[0] == "answer" && line[1] == version);
    mine.map(|line| {
        let (rtt, number) = (line[2].parse().expect("a time"), line[3].parse().expect("a number"));
        (rtt, number, line[4].clone(), line[5].parse().expect("a port"))
    })
    .collect()
}

#[test]
fn a_round_trip_takes_twice_the_delay_over_both_versions_of_ip() {
    let (lines, logs) = play("simulator-p2p", &format!("simple-p2p {PATH}"), "ask");
    for (version, own) in [("v4", "193.167.0.100"), ("v6", "fd00:cafe:cafe::100")] {
        let answers = answers(&lines, version);
        assert_eq!(answers.len(), 10, "{lines:?}");
        // 15 ms each way; what passed the simulator by would be faster.
        assert!(answers.iter().all(|(rtt, ..)| *rtt >= 30_000_000), "{answers:?}");
        assert!(answers.iter().all(|(_, _, address, _)| address == own), "{answers:?}");
        println!("{version}: {:?}", answers.iter().map(|answer| answer.0 / 1000).collect::<Vec<_>>());
    }
    for side in ["left", "right"] {
        let capture = std::fs::read(logs.join(format!("trace_node_{side}.pcap"))).expect("a capture");
        // A section header of pcapng, and at least 40 datagrams of 14 + 20 + 8 bytes.
        assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
        assert!(capture.len() > 40 * 42, "{}", capture.len());
    }
}

#[test]
fn the_link_keeps_its_rate() {
    let (lines, _) = play("simulator-flood", &format!("simple-p2p {PATH}"), "flood");
    let account = |version: &str| -> (f64, f64) {
        let line = lines.iter().find(|line| line.len() == 4 && line[0] == "account" && line[1] == version);
        let line = line.unwrap_or_else(|| panic!("{lines:?}"));
        (line[2].parse().expect("bytes"), line[3].parse().expect("a time"))
    };
    let (bytes, nanoseconds) = account("v4");
    // 1200 bytes are 1230 on the link: 10 Mbit/s carry 9.756 Mbit/s of payload, whoever sends 16.
    let rate = bytes * 8e9 / nanoseconds;
    println!("payload at {:.4} Mbit/s; {:.4} Mbit/s on the link", rate / 1e6, rate * 1230.0 / 1200.0 / 1e6);
    assert!((9.0e6..9.8e6).contains(&rate), "{rate}");
    // Over IPv6 there are 20 bytes more: 9.6 Mbit/s. In all 3 s of each: the pause between is in the time, not in the bytes.
    let (all, _) = account("v6");
    let second = all - bytes;
    assert!((0.9..1.02).contains(&(second / 3.0 * 8.0 / 9.6e6)), "{second}");
}

#[test]
fn listed_datagrams_are_dropped_per_direction() {
    let scenario = format!("droplist {PATH} --drops_to_server=2,13 --drops_to_client=4");
    let (lines, _) = play("simulator-droplist", &scenario, "ask");
    // Datagrams to the server are counted over both versions: the second over IPv4, and 13 is the third over IPv6. Of the
    // nine that came through the fourth answer is lost: to the fifth question.
    let came = |version| answers(&lines, version).iter().map(|answer| answer.1).collect::<Vec<_>>();
    assert_eq!(came("v4"), [1, 3, 4, 6, 7, 8, 9, 10], "{lines:?}");
    assert_eq!(came("v6"), [1, 2, 4, 5, 6, 7, 8, 9, 10], "{lines:?}");
}

#[test]
fn a_rebinding_is_seen_by_the_server_and_not_by_the_client() {
    let scenario = format!("rebind {PATH} --first-rebind=1500ms --rebind-freq=1500ms --rebind-addr=true");
    let (lines, _) = play("simulator-rebind", &scenario, "ask slowly");
    for (version, prefix, own) in
        [("v4", "193.167.0.", "193.167.0.100"), ("v6", "fd00:cafe:cafe::", "fd00:cafe:cafe::100")]
    {
        let answers = answers(&lines, version);
        // At most one answer meets a rebinding on its way, of those of 2.6 s.
        assert!(answers.len() >= 4, "{lines:?}");
        assert!(answers.iter().all(|(_, _, address, _)| address.starts_with(prefix)), "{answers:?}");
        let moved = answers.iter().filter(|(_, _, address, _)| address != own).count();
        assert!(moved >= 1, "{answers:?}");
    }
}
