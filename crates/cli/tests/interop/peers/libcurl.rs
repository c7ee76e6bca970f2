//! Tests with libcurl 8 as a client of the proxy over HTTP/2. The package pycurl contains libcurl.

use crate::installed;
use crate::processes::*;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// The tested version, which contains libcurl 8.23.0.
const VERSION: &str = "7.49.0";

/// Starts an HTTP/1.1 server that sends this body. Its thread ends with the process.
fn web_server(body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let head =
                BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).count();
            assert!(head > 0, "a request");
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            // A client that ends early is part of another test.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    address
}

#[test]
fn libcurl_connects_through_the_proxy_over_http2() {
    let folder = folder("libcurl");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    // Only HTTP/2, so that no other version can be in use.
    let rules = ["--allow-private", "--http", "2", "--token", "s3cret", "--verbose"];
    let proxy = Server::start(&[&["masque", "proxy"], &identity[..], &rules].concat());
    let body: Vec<u8> = (0..3_000_000u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let digest: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    let target = web_server(body);
    let get = |target: &str, credentials: &str| -> Value {
        let output = Command::new("python3")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peers/curl_client.py"))
            .args([&format!("https://{}", proxy.address), text(&cert), &format!("http://{target}/"), credentials])
            .env("PYTHONPATH", installed("pycurl", VERSION))
            .stdin(Stdio::null())
            .output()
            .expect("Python 3 is needed");
        assert!(output.status.success(), "{}", errors(&output));
        serde_json::from_slice(&output.stdout).expect("an object")
    };
    let got = get(&target, "token:s3cret");
    assert_eq!((&got["status"], &got["sha256"]), (&200.into(), &digest.into()), "{got}");
    assert!(got["version"].as_str().is_some_and(|version| version.contains("libcurl/8.")), "{got}");
    // Over HTTP/2, libcurl does not report the status of the response to CONNECT.
    for (target, credentials) in [(&*target, "token:wrong"), ("127.0.0.1:25", "token:s3cret")] {
        let got = get(target, credentials);
        assert!(got["status"] == 0 && got["error"].is_string(), "{got}");
    }
    let said = proxy.stop();
    for expected in ["event=tunnel-opened", "status=407", "status=403"] {
        assert!(said.contains(expected), "{said}");
    }
}
