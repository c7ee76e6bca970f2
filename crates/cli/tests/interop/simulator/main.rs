//! Tests `fullpipe simulator` with its entry script, between two hosts that are network namespaces. Ordinary users can
//! create them, so the test needs no privileges.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "real programs read the clock")]

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const ECHO_PORT: u16 = 4433;
const SINK_PORT: u16 = 4434;
/// The number of consecutive datagrams for which the sink measures the time. It is smaller than the queue of 25
/// packets, so that the link is busy meanwhile.
const STRETCH: usize = 20;
const SERVERS: [(&str, &str); 2] = [("v4", "193.167.100.100"), ("v6", "fd00:cafe:cafe:100::100")];

fn server(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().expect("an address"), port)
}

/// Not a test: the code of the test program when it runs on a host.
#[test]
fn an_endpoint() {
    match std::env::var("ROLE").as_deref() {
        Ok("echo") => echo(),
        Ok("ask") => ask(10, Duration::from_millis(20)),
        Ok("ask slowly") => ask(6, Duration::from_millis(400)),
        Ok("ask often") => ask(20, Duration::from_millis(20)),
        Ok("flood") => flood(),
        Ok("damage") => damage(),
        Ok("stream") => stream(Duration::from_secs(5)),
        _ => {}
    }
}

/// The wall clock of the machine, which all hosts share.
fn clock_nanos() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("it is later").as_nanos()
}

/// Responds to every datagram with its source address and the time. Datagrams to the other port are counted. A datagram
/// of one byte to that port requests the counts since the last request: bytes after the first datagram, the time since
/// it, and the median time of [`STRETCH`] consecutive datagrams.
fn echo() {
    let sink = UdpSocket::bind("[::]:4434").expect("a socket");
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        let mut arrivals: Vec<(Instant, usize)> = Vec::new();
        loop {
            let (length, from) = sink.recv_from(&mut bytes).expect("a datagram");
            if length > 1 {
                arrivals.push((Instant::now(), length));
                continue;
            }
            let count: usize = arrivals.iter().skip(1).map(|(_, length)| length).sum();
            let elapsed = arrivals.last().map_or(0, |last| (last.0 - arrivals[0].0).as_nanos());
            let mut stretches: Vec<u128> =
                arrivals.windows(STRETCH + 1).map(|w| (w[STRETCH].0 - w[0].0).as_nanos()).collect();
            stretches.sort_unstable();
            let median = stretches.get(stretches.len() / 2).copied().unwrap_or(0);
            sink.send_to(format!("{count} {elapsed} {median}").as_bytes(), from).expect("an answer");
            arrivals.clear();
        }
    });
    let socket = UdpSocket::bind(("::", ECHO_PORT)).expect("a socket");
    let mut bytes = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut bytes).expect("a datagram");
        let seen = format!(" {} {} {}", from.ip().to_canonical(), from.port(), clock_nanos());
        socket.send_to(&[&bytes[..length], seen.as_bytes()].concat(), from).expect("an answer");
    }
}

/// Waits until the simulator reports that it forwards packets.
fn wait_for_simulator() {
    let until = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect_timeout(&server("193.167.0.2", 57_832), Duration::from_secs(1)).is_err() {
        assert!(Instant::now() < until, "the simulator never opened its port");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Sends `count` requests to the server over each version of IP, and prints the results.
fn ask(count: u32, pause: Duration) {
    wait_for_simulator();
    for (version, address) in SERVERS {
        let socket = UdpSocket::bind(if version == "v4" { "0.0.0.0:5000" } else { "[::]:5001" }).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a time");
        let mut bytes = [0; 2048];
        for number in 1..=count {
            let sent = clock_nanos();
            socket.send_to(number.to_string().as_bytes(), server(address, ECHO_PORT)).expect("it is sent");
            match socket.recv_from(&mut bytes) {
                Ok((length, _)) => println!(
                    "answer {version} {} {sent} {}",
                    clock_nanos() - sent,
                    String::from_utf8_lossy(&bytes[..length])
                ),
                Err(_) => println!("none {version} {number}"),
            }
            std::thread::sleep(pause);
        }
    }
}

/// Sends 1200 bytes every 0.6 ms, 16 Mbit/s, for 3 s over each version of IP. Prints the received counts.
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

/// A payload with this number. The sixth one resembles a QUIC Version Negotiation packet.
fn payload(number: u8) -> [u8; 60] {
    let mut payload = [0x40 + number; 60];
    if number == 6 {
        payload[..5].copy_from_slice(&[0xc0, 0, 0, 0, 0]);
    }
    payload
}

/// Sends ten payloads over each version of IP. For each payload that arrived at the server, prints the positions of
/// changed bytes.
fn damage() {
    wait_for_simulator();
    for (version, address) in SERVERS {
        let socket = UdpSocket::bind(if version == "v4" { "0.0.0.0:0" } else { "[::]:0" }).expect("a socket");
        for number in 1..=10 {
            socket.send_to(&payload(number), server(address, ECHO_PORT)).expect("it is sent");
        }
        socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a time");
        let mut bytes = [0; 2048];
        while let Ok((length, _)) = socket.recv_from(&mut bytes) {
            // The last byte is never changed; it identifies the payload.
            let sent = payload(bytes[59] - 0x40);
            assert!(length > sent.len(), "{length}");
            let places = (0..sent.len()).filter(|place| sent[*place] != bytes[*place]);
            let places: Vec<String> = places.map(|place| place.to_string()).collect();
            println!("damage {version} {} {}", bytes[59] - 0x40, places.join(","));
        }
    }
}

/// Sends a number every 10 ms, alternating between both versions of IP. For each number, prints the earliest and latest
/// time of sending, and whether a response arrived.
fn stream(time: Duration) {
    wait_for_simulator();
    let sockets = ["0.0.0.0:0", "[::]:0"].map(|from| UdpSocket::bind(from).expect("a socket"));
    let come: Vec<_> = (sockets.iter())
        .map(|socket| {
            let socket = socket.try_clone().expect("a socket");
            socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a time");
            std::thread::spawn(move || {
                let mut bytes = [0; 2048];
                let mut come = Vec::new();
                while let Ok((length, _)) = socket.recv_from(&mut bytes) {
                    let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                    come.extend(text.split(' ').next().map(str::to_string));
                }
                come
            })
        })
        .collect();
    let begin = Instant::now();
    let mut sent = Vec::new();
    while begin.elapsed() < time {
        let number = sent.len();
        std::thread::sleep((Duration::from_millis(10) * number as u32).saturating_sub(begin.elapsed()));
        let before = begin.elapsed();
        let (_, address) = SERVERS[number % 2];
        sockets[number % 2].send_to(number.to_string().as_bytes(), server(address, ECHO_PORT)).expect("it is sent");
        sent.push((before, begin.elapsed()));
    }
    let come: Vec<String> = come.into_iter().flat_map(|thread| thread.join().expect("answers")).collect();
    for (number, (before, after)) in sent.into_iter().enumerate() {
        let came = come.contains(&number.to_string());
        println!("stream {number} {} {} {came}", before.as_nanos(), after.as_nanos());
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The results of a scenario.
struct Played {
    /// The words of the lines that the client printed.
    lines: Vec<Vec<String>>,
    /// The output of the simulator.
    told: String,
    /// The folder of the logs.
    logs: PathBuf,
}

/// Runs a scenario with a client in this role.
fn play(name: &str, scenario: &str, role: &str) -> Played {
    let logs = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&logs);
    let own = std::env::current_exe().expect("this program");
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh"])
        .arg(root().join("crates/cli/tests/interop/simulator/network.sh"))
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
    // The simulator ends successfully on request, and leaves the machine unchanged.
    assert!(out.contains("simulator ended with 0, forwarding 1"), "{out}\n{errors}");
    let lines = out.lines().map(|line| line.split_whitespace().map(str::to_string).collect()).collect();
    Played { lines, told: errors.into_owned(), logs }
}

const PATH: &str = "--delay=15ms --bandwidth=10Mbps --queue=25";

/// A response: its number, the source of the request as seen by the server, and times in nanoseconds.
#[derive(Debug)]
struct Answer {
    number: u32,
    address: String,
    port: u16,
    round_trip: u64,
    /// Time from the server to the client.
    back: u64,
}

/// The responses over a version of IP.
fn answers(lines: &[Vec<String>], version: &str) -> Vec<Answer> {
    let time = |text: &String| text.parse::<u64>().expect("a time");
    let mine = lines.iter().filter(|line| line.len() == 8 && line[0] == "answer" && line[1] == version);
    mine.map(|line| {
        let (round_trip, there) = (time(&line[2]), time(&line[7]) - time(&line[3]));
        Answer {
            number: line[4].parse().expect("a number"),
            address: line[5].clone(),
            port: line[6].parse().expect("a port"),
            round_trip,
            back: round_trip.saturating_sub(there),
        }
    })
    .collect()
}

#[test]
fn round_trip_takes_twice_the_delay_over_both_versions_of_ip() {
    let Played { lines, logs, .. } = play("simulator-p2p", &format!("simple-p2p {PATH}"), "ask");
    for (version, own) in [("v4", "193.167.0.100"), ("v6", "fd00:cafe:cafe::100")] {
        let answers = answers(&lines, version);
        assert_eq!(answers.len(), 10, "{lines:?}");
        // 15 ms in each direction; packets that bypass the simulator would be faster.
        assert!(answers.iter().all(|answer| answer.round_trip >= 30_000_000), "{answers:?}");
        assert!(answers.iter().all(|answer| answer.address == own), "{answers:?}");
        println!("{version}: {:?}", answers.iter().map(|answer| answer.round_trip / 1000).collect::<Vec<_>>());
    }
    for side in ["left", "right"] {
        let capture = std::fs::read(logs.join(format!("trace_node_{side}.pcap"))).expect("a capture");
        // A pcapng section header, and at least 40 datagrams of 14 + 20 + 8 bytes.
        assert_eq!(capture[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
        assert!(capture.len() > 40 * 42, "{}", capture.len());
    }
}

#[test]
fn link_does_not_exceed_its_rate() {
    // A link as slow as this is rarely delayed by other load on the machine: 25 datagrams take a quarter of a second.
    let path = PATH.replace("10Mbps", "1Mbps");
    let Played { lines, .. } = play("simulator-flood", &format!("simple-p2p {path}"), "flood");
    for (version, on_link) in [("v4", 1230.0), ("v6", 1250.0)] {
        let line = lines.iter().find(|line| line.len() == 5 && line[0] == "account" && line[1] == version);
        let line = line.unwrap_or_else(|| panic!("{lines:?}"));
        let number = |at: usize| -> f64 { line[at].parse().expect("a number") };
        let (bytes, elapsed_s, stretch_s) = (number(2), number(3) * 1e-9, number(4) * 1e-9);
        // 1200 bytes of payload are 1230 bytes on the link over IPv4, and 20 more over IPv6. At 1 Mbit/s one takes 9.84
        // or 10 ms, independently of the 16 Mbit/s of the sender. If the machine delays its programs, sequences that
        // end then take longer and sequences that begin then take less time, but fewer than half of them by much.
        let expected_s = STRETCH as f64 * on_link * 8.0 / 1e6;
        println!("{version}: {:.2} ms of {:.2}", stretch_s * 1e3, expected_s * 1e3);
        assert!((0.98..1.02).contains(&(stretch_s / expected_s)), "{version}: {stretch_s} s of {expected_s}");
        // In total never more than the link carries, plus the content of its queue when the first of them arrived.
        let most = 1e6 / 8.0 * elapsed_s * 1200.0 / on_link + 26.0 * 1200.0;
        assert!(bytes > 0.0 && bytes <= most, "{version}: {bytes} of {most}");
    }
}

#[test]
fn droplist_drops_datagrams_per_direction() {
    let scenario = format!("droplist {PATH} --drops_to_server=2,13 --drops_to_client=4");
    let Played { lines, .. } = play("simulator-droplist", &scenario, "ask");
    // Datagrams to the server are counted over both versions: the second over IPv4; 13 is the third over IPv6. Of the
    // nine responses the fourth is lost, which is the response to the fifth request.
    let came = |version| answers(&lines, version).iter().map(|answer| answer.number).collect::<Vec<_>>();
    assert_eq!(came("v4"), [1, 3, 4, 6, 7, 8, 9, 10], "{lines:?}");
    assert_eq!(came("v6"), [1, 2, 4, 5, 6, 7, 8, 9, 10], "{lines:?}");
}

#[test]
fn corrupt_rate_changes_one_byte_and_corrects_the_checksum() {
    // All are selected, with at most three in a row. The sixth resembles version negotiation, so it is not changed and
    // the sequence begins again.
    let scenario = format!("corrupt-rate {PATH} --rate_to_client=0 --rate_to_server=100 --burst_to_server=3");
    let Played { lines, .. } = play("simulator-corrupt", &scenario, "damage");
    for version in ["v4", "v6"] {
        let damage = damage_of(&lines, version);
        // All arrived, because the server's kernel accepts no datagram with a wrong checksum. One byte or none differs.
        let numbers = |changed: bool| {
            damage.iter().filter(move |(_, places)| places.is_empty() != changed).map(|(number, _)| *number)
        };
        assert_eq!(numbers(true).collect::<Vec<_>>(), [1, 2, 3, 5, 7, 8, 9], "{damage:?}");
        assert_eq!(numbers(false).collect::<Vec<_>>(), [4, 6, 10], "{damage:?}");
        let mut places: Vec<u32> = damage.iter().flat_map(|(_, places)| places.clone()).collect();
        assert!(places.len() == 7 && places.iter().all(|place| *place <= 50), "{damage:?}");
        // The positions are random.
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 1, "{damage:?}");
    }
}

/// The numbers of the datagrams that arrived at the server, and the positions of changed bytes in each.
fn damage_of(lines: &[Vec<String>], version: &str) -> Vec<(u32, Vec<u32>)> {
    let number = |text: &str| text.parse().expect("a number");
    let mine = lines.iter().filter(|line| line.len() >= 3 && line[0] == "damage" && line[1] == version);
    mine.map(|line| {
        (number(&line[2]), line.get(3).map_or(Vec::new(), |places| places.split(',').map(number).collect()))
    })
    .collect()
}

#[test]
fn drop_rate_drops_bursts_of_the_given_length() {
    let scenario = format!("drop-rate {PATH} --rate_to_client=0 --rate_to_server=100 --burst_to_server=3");
    let Played { lines, .. } = play("simulator-drop", &scenario, "damage");
    // Every fourth passes, counted over both versions; version negotiation is not exempt.
    let came = |version| damage_of(&lines, version).iter().map(|(number, _)| *number).collect::<Vec<_>>();
    assert_eq!((came("v4"), came("v6")), (vec![4, 8], vec![2, 6, 10]), "{lines:?}");
}

#[test]
fn corrupted_datagrams_can_be_dropped_as_in_the_original() {
    let scenario =
        format!("corrupt-rate {PATH} --rate_to_client=0 --rate_to_server=100 --burst_to_server=3 --discard_corrupted");
    let Played { lines, .. } = play("simulator-discard", &scenario, "damage");
    for version in ["v4", "v6"] {
        let damage = damage_of(&lines, version);
        assert_eq!(damage, [4, 6, 10].map(|number| (number, Vec::new())), "{lines:?}");
    }
}

#[test]
fn blackhole_drops_for_its_time_and_repeats() {
    let scenario = format!("blackhole {PATH} --on=1500ms --off=500ms --repeat=2 --direction=toserver");
    let Played { lines, .. } = play("simulator-blackhole", &scenario, "stream");
    let number = |text: &String| text.parse::<u64>().expect("a time");
    let sent: Vec<(u64, u64, bool)> = (lines.iter())
        .filter(|line| line.len() == 5 && line[0] == "stream")
        .map(|line| (number(&line[2]), number(&line[3]), line[4] == "true"))
        .collect();
    // For each outage, the first datagram that is lost and the first that arrives again.
    let edge = |from: bool, to: bool| {
        (1..sent.len()).filter(|n| (sent[n - 1].2, sent[*n].2) == (from, to)).collect::<Vec<_>>()
    };
    let (lost, back) = (edge(true, false), edge(false, true));
    assert_eq!((lost.len(), back.len()), (2, 2), "{lost:?} {back:?}");
    assert!(sent[0].2 && sent[sent.len() - 1].2);
    let off = 500_000_000;
    for (lost, back) in lost.iter().zip(&back) {
        // Independently of delays of the sender: the last datagram before the outage arrived before it began, the first
        // after it arrived after its end, and those that were lost were within it.
        let outer = sent[*back].1 - sent[lost - 1].0;
        assert!(outer >= off, "{outer}");
        let inner = sent[back - 1].0.saturating_sub(sent[*lost].1);
        assert!(inner <= off, "{inner}");
    }
    // Consecutive outages are 1500 + 500 ms apart.
    let period = 2_000_000_000;
    assert!(sent[lost[1]].1 - sent[lost[0] - 1].0 >= period);
    assert!(sent[lost[1] - 1].0 - sent[lost[0]].1 <= period);
}

/// The simulator's report of cross traffic: packets sent, received, lost, and kbit/s of payload.
fn cross_traffic(told: &str) -> [u64; 4] {
    let line = told.lines().find_map(|line| line.strip_prefix("fullpipe: cross traffic: "));
    let line = line.unwrap_or_else(|| panic!("{told}"));
    let numbers = line.split(|letter: char| !letter.is_ascii_digit()).filter(|word| !word.is_empty());
    let numbers: Vec<u64> = numbers.map(|word| word.parse().expect("a number")).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn tcp_cross_traffic_fills_the_link_and_its_queue() {
    let Played { lines, told, .. } = play("simulator-tcp-cross", &format!("tcp-cross-traffic {PATH}"), "ask often");
    let [sent, received, lost, payload] = cross_traffic(&told);
    println!("{sent} sent, {received} received, {lost} lost, {payload} kbit/s");
    assert!(received + lost <= sent);
    // 1448 bytes are 1502 on the link: at most 9.64 Mbit/s. At worst, the first of the two seconds is slow start.
    assert!((4_000..=9_641).contains(&payload), "{payload}");
    for version in ["v4", "v6"] {
        let answers = answers(&lines, version);
        assert!(answers.iter().all(|answer| answer.round_trip >= 30_000_000), "{answers:?}");
        // Its queue delays the responses: ten of its packets take 12 ms.
        assert!(answers.iter().any(|answer| answer.back >= 27_000_000), "{answers:?}");
    }
}

#[test]
fn udp_cross_traffic_has_a_constant_rate() {
    let scenario = format!("udp-cross-traffic {PATH} --crossdatarate=4Mbps --start=200ms");
    let Played { lines, told, .. } = play("simulator-udp-cross", &scenario, "ask");
    let [sent, received, lost, payload] = cross_traffic(&told);
    println!("{sent} sent, {received} received, {lost} lost, {payload} kbit/s");
    // 512 bytes every 1.024 ms. A request takes 30 ms, and the next one follows 20 ms later: twenty of them take a second.
    assert!(sent >= 780, "{sent}");
    // Packets in transit are those of the last 15 ms and of 0.43 ms of transmission; one or two real packets may
    // precede them.
    assert!(lost == 0 && (14..=18).contains(&(sent - received)), "{sent} {received}");
    assert!((3_850..=4_000).contains(&payload), "{payload}");
    assert!(["v4", "v6"].iter().all(|version| answers(&lines, version).len() == 10), "{lines:?}");
}

#[test]
fn single_rebinding_changes_the_port_of_existing_conversations() {
    let scenario = format!("rebind {PATH} --first-rebind=1500ms --rebind-freq=0s");
    let Played { lines, .. } = play("simulator-rebind-once", &scenario, "ask slowly");
    let ports = |version| answers(&lines, version).iter().map(|answer| answer.port).collect::<Vec<_>>();
    // The response to one request is lost, because it arrives at a port that no longer exists.
    let mut first = ports("v4");
    assert!(first.len() >= 5, "{lines:?}");
    assert_eq!(first[0], 5000);
    first.dedup();
    assert_eq!(first.len(), 2, "{lines:?}");
    // A later conversation is new, and its port does not change.
    assert!(ports("v6").len() == 6 && ports("v6").iter().all(|port| *port == 5001), "{lines:?}");
    let own = ["193.167.0.100", "fd00:cafe:cafe::100"];
    assert!(
        ["v4", "v6"].iter().flat_map(|v| answers(&lines, v)).all(|answer| own.contains(&&*answer.address)),
        "{lines:?}"
    );
}

#[test]
fn rebinding_is_visible_to_the_server_and_not_to_the_client() {
    let scenario = format!("rebind {PATH} --first-rebind=1500ms --rebind-freq=1500ms --rebind-addr=true");
    let Played { lines, .. } = play("simulator-rebind", &scenario, "ask slowly");
    for (version, prefix, own) in
        [("v4", "193.167.0.", "193.167.0.100"), ("v6", "fd00:cafe:cafe::", "fd00:cafe:cafe::100")]
    {
        let answers = answers(&lines, version);
        // In 2.6 s at most one response is in transit during a rebinding.
        assert!(answers.len() >= 4, "{lines:?}");
        assert!(answers.iter().all(|answer| answer.address.starts_with(prefix)), "{answers:?}");
        let moved = answers.iter().filter(|answer| answer.address != own).count();
        assert!(moved >= 1, "{answers:?}");
        // Another address has another port, and the same address has the same port.
        for pair in answers.windows(2) {
            assert_eq!(pair[0].address == pair[1].address, pair[0].port == pair[1].port, "{answers:?}");
        }
    }
}
