//! Tests with aioquic's HTTP/3 client and server at either end of Fullpipe's tunnel, in both modes.

use crate::processes::*;
use crate::{Ended, installed};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The tested version.
const VERSION: &str = "1.7.2";

/// A command for a script of this folder, with aioquic.
fn script(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peers").join(name))
        .args(arguments)
        .env("PYTHONPATH", installed("aioquic", VERSION))
        .stdin(Stdio::null());
    command
}

struct House {
    folder: PathBuf,
    digest: String,
    proxy: Server,
}

impl House {
    fn new(name: &str) -> House {
        let folder = folder(name);
        let root = folder.join("root");
        std::fs::create_dir(&root).expect("a folder");
        let body: Vec<u8> = (0..3_000_000u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        std::fs::write(root.join("body"), &body).expect("a file");
        let digest = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
        let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        let listen = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
        let proxy = Server::start(&[&["masque", "proxy"], &listen[..], &["--allow-private"]].concat());
        House { folder, digest, proxy }
    }

    fn file(&self, name: &str) -> String {
        text(&self.folder.join(name)).into()
    }

    /// Starts aioquic's server of the body. Returns it with its address.
    fn their_server(&self) -> (Ended, String) {
        let arguments = [self.file("cert.pem"), self.file("key.pem"), self.file("root/body")];
        let mut child = script("http3_server.py", &arguments.each_ref().map(String::as_str))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let said = child.stdout.take().expect("the output is piped");
        let ended = Ended(child);
        let line = BufReader::new(said).lines().next().expect("it says where it listens").expect("text");
        (ended, line.strip_prefix("listening on ").expect("an address").into())
    }

    /// aioquic's client gets the body from `server` through Fullpipe's tunnel.
    fn their_client(&self, server: &str, mode: &str) {
        let (via, cert) = (template(&self.proxy.address), self.file("cert.pem"));
        let arguments = ["--template", &via, "--target", server, "--listen", "127.0.0.1:0", "--ca", &cert];
        let port = Server::start(&[&["masque", "connect"], &arguments[..], &["--mode", mode]].concat());
        let output = script("http3_client.py", &[&port.address, &cert, "/body"]).output().expect("the client starts");
        assert!(output.status.success(), "{mode}: {}", errors(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("200 3000000 {}\n", self.digest), "{mode}");
        port.stop();
    }
}

const MODES: [&str; 2] = ["datagram", "stream"];

#[test]
fn aioquic_client_gets_the_body_from_our_server_through_our_tunnel() {
    let house = House::new("aioquic-client");
    let (cert, key, root) = (house.file("cert.pem"), house.file("key.pem"), house.file("root"));
    let arguments = ["http3", "serve", "--listen", "127.0.0.1:0", "--cert", &cert, "--key", &key, "--root", &root];
    let server = Server::start(&arguments);
    MODES.iter().for_each(|mode| house.their_client(&server.address, mode));
    assert_eq!(server.stop(), "");
    assert_eq!(house.proxy.stop(), "");
}

#[test]
fn our_client_gets_the_body_from_aioquic_server_through_our_tunnel() {
    let house = House::new("aioquic-server");
    let (_server, address) = house.their_server();
    let (via, cert, url) = (template(&house.proxy.address), house.file("cert.pem"), format!("https://{address}/body"));
    for mode in MODES {
        let arguments = ["http3", "get", &url, "--ca", &cert, "--via", &via, "--mode", mode, "--json"];
        let output = command(&arguments).output().expect("the client starts");
        assert!(output.status.success(), "{mode}: {}", errors(&output));
        let got: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object and nothing else");
        assert_eq!((&got["status"], &got["bytes"]), (&200.into(), &3_000_000.into()), "{mode}");
        assert_eq!(got["sha256"], house.digest, "{mode}");
    }
    assert_eq!(house.proxy.stop(), "");
}

#[test]
fn aioquic_client_gets_the_body_from_aioquic_server_through_our_tunnel() {
    let house = House::new("aioquic-both");
    let (_server, address) = house.their_server();
    MODES.iter().for_each(|mode| house.their_client(&address, mode));
    assert_eq!(house.proxy.stop(), "");
}
