//! Tests Fullpipe's proxy with masque-go's client, and Fullpipe's client with masque-go's proxy, in datagram mode
//! (masque-go does not support capsules).

use crate::Ended;
use crate::processes::*;
use std::path::Path;
use std::process::{Command, Stdio};

/// Builds masque-go's two commands, `client` and `proxy`, into a folder.
fn build(folder: &Path) {
    let output = Command::new("go")
        .args(["build", "-p", "2", "-o"])
        .arg(folder)
        .arg("tool")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("masque-go"))
        .output()
        .expect("the Go toolchain, 1.25 or later, is needed");
    assert!(output.status.success(), "{}", errors(&output));
}

#[test]
fn masque_go_and_fullpipe_interoperate_in_datagram_mode() {
    let folder = folder("interop");
    build(&folder);
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let root = folder.join("root");
    std::fs::create_dir(&root).expect("a folder");
    let body: String = (0..1_000_000).map(|number| format!("{number:09}\n")).collect();
    std::fs::write(root.join("body"), &body).expect("a file");
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    // masque-go's proxy stops serving a tunnel when a payload from the target does not fit, so the server tries no
    // larger payloads.
    let server =
        Server::start(&[&["http3", "serve"], &identity[..], &["--root", text(&root), "--mtu", "1200"]].concat());
    let url = format!("https://{}/body", server.address);

    let ours = Server::start(&[&["masque", "proxy"], &identity[..], &["--allow-private"]].concat());
    let output = Command::new(folder.join("client"))
        .args(["-t", &template(&ours.address), &url])
        .env("SSL_CERT_FILE", &cert)
        .output()
        .expect("it was built");
    assert!(output.status.success(), "{}", errors(&output).chars().take(2000).collect::<String>());
    assert!(errors(&output).contains(&body), "the body is incomplete");
    assert_eq!(ours.stop(), "");

    // It reports neither its port nor when it is ready.
    let address = {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("the socket binds");
        socket.local_addr().expect("the socket is bound").to_string()
    };
    let via = template(&address);
    let theirs = Command::new(folder.join("proxy"))
        .args(["-t", &via, "-b", &address, "-c", text(&cert), "-k", text(&key)])
        .stderr(Stdio::null())
        .spawn()
        .expect("it was built");
    let _theirs = Ended(theirs);
    let out = folder.join("out");
    let arguments = ["http3", "get", &url, "--ca", text(&cert), "--via", &via, "--out", text(&out), "--mtu", "1200"];
    let output = (0..20)
        .map(|_| command(&arguments).output().expect("the client starts"))
        .find(|output| output.status.success() || !errors(output).contains("the proxy at"))
        .expect("masque-go's proxy becomes ready");
    assert!(output.status.success(), "{}", errors(&output));
    assert!(std::fs::read_to_string(&out).expect("the file exists") == body);
    server.stop();
}
