//! `fullpipe masque` and `fullpipe http3` as scripts see them: real processes on loopback.

mod processes;

use processes::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

#[test]
fn ten_megabytes_through_the_proxy_in_both_modes() {
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
    let via = format!("https://{}/.well-known/masque/udp/{{target_host}}/{{target_port}}/", proxy.address);
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
        assert!(std::fs::read(&out).expect("it is there") == body);
        assert!(got["completion_ms"].as_f64() > got["handshake_ms"].as_f64());
    }
    let missing = format!("https://{}/nothing", server.address);
    let output = command(&["http3", "get", &missing, "--ca", text(&cert)]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("answered 404"), "{}", errors(&output));
    assert_eq!(proxy.stop(), "");
    assert!(server.stop().contains("event=refused"));
}

#[test]
fn private_targets_are_refused_unless_allowed() {
    let folder = folder("refused");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    let proxy = Server::start(&[&["masque", "proxy"], &identity[..]].concat());
    let via = format!("https://{}/.well-known/masque/udp/{{target_host}}/{{target_port}}/", proxy.address);
    let output = command(&["http3", "get", "https://127.0.0.1:9/", "--ca", text(&cert), "--via", &via])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let said = errors(&output);
    assert!(said.contains("403") && said.contains("error=destination_ip_prohibited"), "{said}");
    // Somebody else's certificate is nobody's.
    let output = command(&["http3", "get", "https://127.0.0.1:9/", "--via", &via]).output().expect("it starts");
    assert_ne!(output.status.code(), Some(0));
    let log = proxy.stop();
    assert!(log.contains("event=refused") && log.contains("status=403"), "{log}");
}

#[test]
fn a_local_port_leads_to_the_target() {
    let folder = folder("connect");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    let proxy = Server::start(&[&["masque", "proxy"], &identity[..], &["--allow", "127.0.0.1"]].concat());
    let via = format!("https://{}/.well-known/masque/udp/{{target_host}}/{{target_port}}/", proxy.address);
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
        // Each local sender has a tunnel, and so a port at the proxy, of its own.
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
