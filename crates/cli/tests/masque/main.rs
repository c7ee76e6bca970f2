//! Tests the interface of `fullpipe masque` and `fullpipe http3` for scripts, with real processes on loopback.

mod configuration;
mod figures;
mod narrow;
mod operator;
mod processes;

use processes::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};

#[test]
fn get_transfers_ten_megabytes_through_the_proxy_in_both_modes() {
    let folder = folder("transfer");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let root = folder.join("root");
    std::fs::create_dir(&root).expect("a folder");
    // A body without a short period.
    let body: Vec<u8> = (0..10_000_000u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    std::fs::write(root.join("ten megabytes"), &body).expect("a file");
    let digest: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    let server = Server::start(&[&["http3", "serve"], &identity[..], &["--root", text(&root)]].concat());
    let proxy = Server::start(&[&["masque", "proxy"], &identity[..], &["--allow-private"]].concat());
    let via = template(&proxy.address);
    let url = format!("https://{}/ten%20megabytes", server.address);
    for mode in [None, Some("datagram"), Some("stream")] {
        let out = folder.join("out");
        let mut arguments = vec!["http3", "get", &url, "--ca", text(&cert), "--json", "--out", text(&out)];
        if let Some(mode) = mode {
            arguments.extend(["--via", &via, "--mode", mode]);
        }
        let output = command(&arguments).output().expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{mode:?}: {}", errors(&output));
        let got: Value = serde_json::from_slice(&output.stdout).expect("an object and nothing else");
        assert_eq!((&got["status"], &got["bytes"]), (&200.into(), &10_000_000.into()));
        assert_eq!(got["sha256"], digest);
        assert_eq!(got["tunnel"]["mode"].as_str(), mode);
        assert!(std::fs::read(&out).expect("the file exists") == body);
        assert!(got["completion_ms"].as_f64() > got["handshake_ms"].as_f64());
    }
    let missing = format!("https://{}/nothing", server.address);
    let (out, part) = (folder.join("none"), folder.join("none.part"));
    let output =
        command(&["http3", "get", &missing, "--ca", text(&cert), "--out", text(&out)]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("answered 404"), "{}", errors(&output));
    assert!(!out.exists() && !part.exists());
    assert_eq!(proxy.stop(), "");
    assert!(server.stop().contains("event=refused"));
}

#[test]
fn private_targets_are_rejected_unless_allowed() {
    let folder = folder("refused");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    let proxy = Server::start(&[&["masque", "proxy"], &identity[..]].concat());
    let via = template(&proxy.address);
    let output = command(&["http3", "get", "https://127.0.0.1:9/", "--ca", text(&cert), "--via", &via])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let said = errors(&output);
    assert!(said.contains("403") && said.contains("error=destination_ip_prohibited"), "{said}");
    // A certificate of an unknown authority is not trusted.
    let output = command(&["http3", "get", "https://127.0.0.1:9/", "--via", &via]).output().expect("it starts");
    assert_ne!(output.status.code(), Some(0));
    let log = proxy.stop();
    assert!(log.contains("event=refused") && log.contains("status=403"), "{log}");
}

/// One body is written while it arrives, and the other one is buffered until the end.
#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_reported() {
    let folder = folder("full");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    let server = Server::start(&[&["http3", "serve"], &identity[..], &["--root", text(&folder)]].concat());
    for (name, bytes) in [("large", 1_000_000), ("small", 10)] {
        std::fs::write(folder.join(name), vec![1; bytes]).expect("a file");
        let url = format!("https://{}/{name}", server.address);
        let output =
            command(&["http3", "get", &url, "--ca", text(&cert), "--out", "/dev/full"]).output().expect("it starts");
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert!(errors(&output).contains("/dev/full: No space left on device"), "{name}: {}", errors(&output));
        assert!(output.stdout.is_empty(), "{name}");
    }
    assert!(!std::path::Path::new("/dev/full.part").exists());
    server.stop();
}

/// The proxy ends during a body that would take hours. The partial body replaces no file.
#[test]
fn ended_tunnel_is_reported() {
    let folder = folder("ended");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::File::create(folder.join("body")).and_then(|file| file.set_len(1 << 40)).expect("a file with a hole");
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    let server = Server::start(&[&["http3", "serve"], &identity[..], &["--root", text(&folder)]].concat());
    let narrow = ["--allow-private", "--metrics", "127.0.0.1:0", "--drain", "0s"];
    let mut proxy = Server::start(&[&["masque", "proxy"], &identity[..], &narrow].concat());
    let metrics = proxy.line().strip_prefix("metrics on ").expect("their address").to_owned();
    let (url, via) = (format!("https://{}/body", server.address), template(&proxy.address));
    let (out, part) = (folder.join("out"), folder.join("out.part"));
    std::fs::write(&out, "older").expect("a file");
    let client = command(&["http3", "get", &url, "--ca", text(&cert), "--via", &via, "--out", text(&out)])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    while metric(&metrics, "bytes_from_target_total") < 1_000_000 {}
    while part.metadata().map_or(0, |part| part.len()) < 500_000 {}
    proxy.stop();
    let output = client.wait_with_output().expect("the client ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("the tunnel ended: "), "{}", errors(&output));
    assert_eq!(std::fs::read(&out).expect("the file exists"), b"older");
    assert!(!part.exists());
    server.stop();
}

/// The proxy and the server are killed during a body that would take hours. The inner connection receives as little as
/// the tunnel, but the error names the proxy.
#[test]
fn killed_proxy_or_server_is_named() {
    let here = ["--listen", "127.0.0.1:0", "--self-signed"];
    let told = ["--allow-private", "--metrics", "127.0.0.1:0"];
    let folder = folder("killed");
    std::fs::File::create(folder.join("body")).and_then(|file| file.set_len(1 << 40)).expect("a file with a hole");
    let server = Server::start(&[&["http3", "serve"], &here[..], &["--root", text(&folder)]].concat());
    let mut proxy = Server::start(&[&["masque", "proxy"], &here[..], &told].concat());
    let metrics = proxy.line().strip_prefix("metrics on ").expect("their address").to_owned();
    let (url, via) = (format!("https://{}/body", server.address), template(&proxy.address));
    let part = folder.join("out.part");
    let get = ["http3", "get", &url, "--insecure", "--idle-timeout", "6s"];
    let start = |more: &[&str]| {
        command(&[&get, more].concat()).stderr(std::process::Stdio::piped()).spawn().expect("it starts")
    };
    let through = start(&["--via", &via]);
    while metric(&metrics, "bytes_from_target_total") < 1_000_000 {}
    drop(proxy);
    let output = through.wait_with_output().expect("the client ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("the tunnel ended: no packet arrived from the proxy within the idle timeout"),
        "{}",
        errors(&output)
    );
    let out = folder.join("out");
    let direct = start(&["--out", text(&out)]);
    while part.metadata().map_or(0, |part| part.len()) < 500_000 {}
    drop(server);
    let output = direct.wait_with_output().expect("the client ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("no packet arrived from the server within the idle timeout"),
        "{}",
        errors(&output)
    );
}

#[test]
fn server_that_does_not_respond_is_named() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = silent.local_addr().expect("it is bound").to_string();
    let output = command(&["http3", "get", &format!("https://{address}/"), "--insecure"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains(&format!("the server at {address} did not complete the QUIC handshake")),
        "{}",
        errors(&output)
    );
}

/// The proxy denies its own socket even if the policy permits loopback addresses.
#[test]
fn own_listening_socket_is_no_target() {
    let proxy = Server::start(&["masque", "proxy", "--listen", "127.0.0.1:0", "--self-signed", "--allow-private"]);
    let url = format!("https://{}/", proxy.address);
    let via = template(&proxy.address);
    let output = command(&["http3", "get", &url, "--insecure", "--via", &via]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let said = errors(&output);
    assert!(said.contains("403") && said.contains("error=destination_ip_prohibited"), "{said}");
    assert!(proxy.stop().contains("reason=\"the target is the proxy itself\""));
}

#[test]
fn connect_forwards_a_local_port_to_the_target() {
    let folder = folder("connect");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    let proxy = Server::start(&[&["masque", "proxy"], &identity[..], &["--allow", "127.0.0.1"]].concat());
    let via = template(&proxy.address);
    let target = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = target.local_addr().expect("it is bound").to_string();
    for mode in ["datagram", "stream"] {
        let port = Server::start(&[
            "masque",
            "connect",
            "--template",
            &via,
            "--target",
            &address,
            "--listen",
            "127.0.0.1:0",
            "--mode",
            mode,
            "--ca",
            text(&cert),
        ]);
        let mut room = [0; 2000];
        let mut seen = Vec::new();
        // Each local sender has its own tunnel, and therefore its own port at the proxy.
        for word in [&b"one"[..], b"two"] {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
            socket.connect(&port.address).expect("a local address");
            socket.send(word).expect("it leaves");
            let (length, from) = target.recv_from(&mut room).expect("it arrives");
            assert_eq!(&room[..length], word);
            seen.push(from);
            target.send_to(b"answer", from).expect("it leaves");
            let length = socket.recv(&mut room).expect("it comes back");
            assert_eq!(&room[..length], b"answer");
        }
        assert_ne!(seen[0], seen[1]);
        port.stop();
    }
    proxy.stop();
}

/// The value of a counter in the metrics of a proxy.
fn metric(address: &str, name: &str) -> u64 {
    let mut stream = std::net::TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let line = answer.lines().find_map(|line| line.strip_prefix(&format!("fullpipe_masque_{name} ")));
    line.expect("the counter is there").parse().expect("a number")
}

/// Server and client probe for larger packets, like other QUIC stacks. The tunnel's packets of 1280 bytes carry
/// payloads of 1240 bytes. The binary search from 1200 to 1452 bytes, with a resolution of 20 bytes, fails at 1326,
/// 1263 and 1247 bytes, with three probes each.
#[test]
fn probes_too_large_for_the_tunnel_are_dropped_and_counted() {
    const PROBES: std::ops::RangeInclusive<u64> = 1..=9;
    let folder = folder("probes");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let body = vec![7; 10_000_000];
    std::fs::write(folder.join("body"), &body).expect("a file");
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    let server = Server::start(&[&["http3", "serve"], &identity[..], &["--root", text(&folder)]].concat());
    let narrow = ["--allow-private", "--tunnel-mtu", "1280", "--metrics", "127.0.0.1:0"];
    let mut proxy = Server::start(&[&["masque", "proxy"], &identity[..], &narrow].concat());
    let metrics = proxy.line().strip_prefix("metrics on ").expect("their address").to_owned();
    let (url, via) = (format!("https://{}/body", server.address), template(&proxy.address));
    let arguments = ["http3", "get", &url, "--ca", text(&cert), "--via", &via, "--tunnel-mtu", "1280", "--json"];
    let output = command(&arguments).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let got: Value = serde_json::from_slice(&output.stdout).expect("an object and nothing else");
    let digest: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((&got["bytes"], &got["sha256"]), (&10_000_000.into(), &digest.into()));
    assert_eq!(got["tunnel"]["max_payload_bytes"], 1240);
    let (client, server_side) = (&got["tunnel"]["dropped_too_large"], metric(&metrics, "dropped_too_large_total"));
    assert!(client.as_u64().is_some_and(|probes| PROBES.contains(&probes)), "{client}");
    assert!(PROBES.contains(&server_side), "{server_side}");
    proxy.stop();
    server.stop();
}
