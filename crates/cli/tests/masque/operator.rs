//! What an operator of a proxy needs: its end, new certificates, metrics, and messages about wrong options.

use crate::processes::*;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

/// A target that echoes every datagram. Its thread ends with the process.
fn echo() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        let mut room = [0; 2000];
        while let Ok((length, from)) = socket.recv_from(&mut room) {
            let _ = socket.send_to(&room[..length], from);
        }
    });
    address
}

/// A local program whose datagrams a `masque connect` forwards.
struct Sender(UdpSocket);

impl Sender {
    fn new(port: &Server) -> Sender {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(&port.address).expect("a local address");
        // A test must fail and not wait if nothing arrives.
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        Sender(socket)
    }

    fn exchange(&self, payload: &[u8]) {
        self.0.send(payload).expect("it is sent");
        let mut room = [0; 2000];
        let length = self.0.recv(&mut room).expect("an echo arrives");
        assert_eq!(&room[..length], payload);
    }
}

fn connect(proxy: &str, target: &str, trust: &[&str]) -> Server {
    let via = template(proxy);
    let arguments = ["masque", "connect", "--template", &via, "--target", target, "--listen", "127.0.0.1:0"];
    Server::start(&[&arguments, trust].concat())
}

/// Tries to reach a proxy for a target that it denies: the status shows that it serves new connections.
fn refusal(proxy: &str, trust: &[&str]) -> String {
    let via = template(proxy);
    let get = ["http3", "get", "https://192.0.2.1/", "--via", &via];
    errors(&command(&[&get, trust].concat()).output().expect("it starts"))
}

/// Waits until the proxy rejects new connections, in some of 100 attempts of at least a few milliseconds.
fn wait_until_rejected(proxy: &str) {
    assert!((0..100).any(|_| !refusal(proxy, &["--insecure"]).contains("403")), "the proxy accepts connections");
}

#[test]
fn sigterm_rejects_new_connections_and_waits_for_open_tunnels() {
    let (here, target) = (["masque", "proxy", "--listen", "127.0.0.1:0", "--self-signed"], echo());
    // The limit is longer than the test.
    let proxy = Server::start(&[&here[..], &["--allow", "127.0.0.1", "--drain", "10min"]].concat());
    let port = connect(&proxy.address, &target, &["--insecure"]);
    let sender = Sender::new(&port);
    sender.exchange(b"before");
    assert!(refusal(&proxy.address, &["--insecure"]).contains("403"));
    proxy.signal(Signal::TERM);
    wait_until_rejected(&proxy.address);
    sender.exchange(b"after");
    port.stop();
    // The last tunnel has ended.
    proxy.ended();
    // Without a limit, the tunnel ends at once.
    let proxy = Server::start(&[&here[..], &["--allow", "127.0.0.1", "--drain", "0s"]].concat());
    let port = connect(&proxy.address, &target, &["--insecure"]);
    Sender::new(&port).exchange(b"before");
    proxy.stop();
}

#[test]
fn second_signal_ends_the_proxy_despite_open_tunnels() {
    let target = echo();
    let here = ["masque", "proxy", "--listen", "127.0.0.1:0", "--self-signed", "--allow-private", "--drain", "10min"];
    let proxy = Server::start(&here);
    let port = connect(&proxy.address, &target, &["--insecure"]);
    Sender::new(&port).exchange(b"before");
    proxy.signal(Signal::TERM);
    wait_until_rejected(&proxy.address);
    proxy.stop();
}

#[test]
fn sighup_replaces_the_certificate_and_keeps_tunnels() {
    let (old, new, target) = (folder("old-certificate"), folder("new-certificate"), echo());
    let used = folder("used-certificate");
    let replace = |from: &Path| {
        for file in ["cert.pem", "key.pem"] {
            std::fs::copy(from.join(file), used.join(file)).expect("a file");
        }
    };
    replace(&old);
    let (cert, key) = (used.join("cert.pem"), used.join("key.pem"));
    let identity = ["--listen", "127.0.0.1:0", "--cert", text(&cert), "--key", text(&key)];
    let mut proxy =
        Server::start(&[&["masque", "proxy"], &identity[..], &["--allow", "127.0.0.1", "--drain", "0s"]].concat());
    let (old, new) = (old.join("cert.pem"), new.join("cert.pem"));
    let port = connect(&proxy.address, &target, &["--ca", text(&old)]);
    let sender = Sender::new(&port);
    sender.exchange(b"before");
    replace(new.parent().expect("a folder"));
    proxy.signal(Signal::HUP);
    assert_eq!(proxy.line(), "event=reloaded");
    assert!(!refusal(&proxy.address, &["--ca", text(&old)]).contains("403"));
    assert!(refusal(&proxy.address, &["--ca", text(&new)]).contains("403"));
    sender.exchange(b"after");
    assert!(proxy.line().contains("event=refused"));
    // Wrong files change nothing.
    std::fs::copy(&cert, &key).expect("a file");
    proxy.signal(Signal::HUP);
    let line = proxy.line();
    let expected = "key.pem: the file contains no private key; expected PEM with a section PRIVATE KEY";
    assert!(line.starts_with("event=reload-failed") && line.contains(expected), "{line}");
    assert!(refusal(&proxy.address, &["--ca", text(&new)]).contains("403"));
    sender.exchange(b"at last");
    port.stop();
    proxy.stop();
}

/// Sends SIGHUP. Returns the line with the result.
fn reload(proxy: &mut Server) -> String {
    proxy.signal(Signal::HUP);
    loop {
        let line = proxy.line();
        assert!(!line.is_empty(), "the proxy has ended");
        if line.starts_with("event=reload") {
            return line;
        }
    }
}

#[test]
fn sighup_replaces_rules_and_token_and_keeps_tunnels() {
    let (folder, target) = (folder("reloaded-rules"), echo());
    let file = folder.join("proxy.toml");
    let write = |content: &str| std::fs::write(&file, content).expect("a file");
    write("listen = '127.0.0.1:0'\nself_signed = []\ntoken = 'old'\nallow = ['127.0.0.1']\n");
    // The option of the command line is added to the rules of the file, at the start and after SIGHUP.
    let mut proxy =
        Server::start(&["masque", "proxy", "--config", text(&file), "--deny", "127.0.0.3", "--drain", "0s"]);
    let via = template(&proxy.address);
    // No program listens on port 9, so a permitted tunnel ends with another error than 403 or 401.
    let status = |token: &str, host: &str| {
        let url = format!("https://{host}:9/");
        let get = ["http3", "get", &url, "--via", &via, "--insecure", "--token", token, "--idle-timeout", "3s"];
        let said = errors(&command(&get).output().expect("it starts"));
        [403, 401].into_iter().find(|status| said.contains(&format!("status {status} "))).unwrap_or_default()
    };
    let statuses = |token: &str| ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|host| status(token, host));
    let port = connect(&proxy.address, &target, &["--insecure", "--token", "old"]);
    let sender = Sender::new(&port);
    sender.exchange(b"before");
    assert_eq!(statuses("old"), [0, 403, 403]);
    assert_eq!(statuses("new"), [401; 3]);
    // The address to listen on cannot change.
    write("listen = '127.0.0.1:1'\nself_signed = []\ntoken = 'new'\nallow_private = true\ndeny = ['127.0.0.1']\n");
    assert_eq!(reload(&mut proxy), "event=reloaded");
    assert_eq!(statuses("old"), [401; 3]);
    assert_eq!(statuses("new"), [403, 0, 403]);
    sender.exchange(b"after");
    // An invalid file changes nothing, and its errors take one line.
    write("listen = '127.0.0.1:0'\nself_signed = []\ntoken = 'newest'\nalow = []\ndeny = ['127.0.0.2/33']\n");
    let line = reload(&mut proxy);
    assert!(line.starts_with("event=reload-failed reason="), "{line}");
    for expected in ["proxy.toml:4:1: unknown key alow; did you mean allow?", "; ", "proxy.toml:5:"] {
        assert!(line.contains(expected), "{line}");
    }
    // So do a missing option and an invalid certificate, although the keys are valid.
    for (content, expected) in [
        ("self_signed = []\ntoken = 'newest'\n", "proxy.toml: the key `listen` is missing"),
        ("listen = '127.0.0.1:0'\ncert = 'absent.pem'\nkey = 'key.pem'\ntoken = 'newest'\n", "absent.pem: "),
    ] {
        write(content);
        let line = reload(&mut proxy);
        assert!(line.starts_with("event=reload-failed") && line.contains(expected), "{line}");
    }
    std::fs::remove_file(&file).expect("a file");
    assert!(reload(&mut proxy).contains("cannot read "));
    assert_eq!(status("newest", "127.0.0.2"), 401);
    assert_eq!(statuses("new"), [403, 0, 403]);
    sender.exchange(b"at last");
    port.stop();
    proxy.stop();
}

#[test]
fn tokens_come_from_the_command_line_a_file_and_the_environment() {
    let folder = folder("tokens");
    let (file, configuration) = (folder.join("tokens.toml"), folder.join("proxy.toml"));
    let write = |content: &str| std::fs::write(&file, content).expect("a file");
    write("[alice]\nsecret = 's3cret-a'\ntunnels = 1\n[bob]\nsecret = 's3cret-b'\n");
    // The path is relative to the folder of the file.
    let keys = "listen = '127.0.0.1:0'\nself_signed = []\ntoken_file = 'tokens.toml'\ntoken_env = ['CAROL']\n";
    std::fs::write(&configuration, keys).expect("a file");
    let arguments = ["masque", "proxy", "--config", text(&configuration), "--token", "s3cret-t", "--verbose"];
    let mut proxy = Server::start_in(command(&arguments).env("CAROL", "s3cret-c"));
    let status = |proxy: &str, token: &str| {
        let said = refusal(proxy, &["--insecure", "--token", token]);
        [403, 401, 429].into_iter().find(|status| said.contains(&format!("status {status} "))).unwrap_or_default()
    };
    let statuses =
        |proxy: &str| ["s3cret-a", "s3cret-b", "s3cret-c", "s3cret-t", "alice"].map(|token| status(proxy, token));
    assert_eq!(statuses(&proxy.address), [403, 403, 403, 403, 401]);
    write("[alice]\nsecret = 's3cret-d'\n");
    assert_eq!(reload(&mut proxy), "event=reloaded");
    assert_eq!(statuses(&proxy.address), [401, 401, 403, 403, 401]);
    // An invalid file changes nothing, and the message has no secret.
    write("[alice]\nsecret = 's3cret a'\n");
    let line = reload(&mut proxy);
    assert!(line.contains("tokens.toml:2:10: alice.secret is invalid"), "{line}");
    assert_eq!(status(&proxy.address, "s3cret-d"), 403);
    let said = proxy.stop();
    assert!(!said.contains("s3cret") && !line.contains("s3cret"), "{line}{said}");
    write("[alice]\nsecret = 's3cret-t'\n");
    let listen = ["masque", "proxy", "--listen", "127.0.0.1:0", "--self-signed"];
    for (more, expected) in [
        (&["--token", "s3cret-t", "--token-file", text(&file)][..], "the tokens token and alice have the same secret"),
        (&["--token-env", "DAVE"], "the environment variable DAVE has no token: it is not set"),
        (&["--token-env", "EVE"], "the environment variable EVE has no token: it is empty; expected a secret"),
        (&["--token-file", "absent.toml"], "cannot read absent.toml: No such file"),
        (&["--client-rate", "1MB/s"], "expected a rate such as 10Mbit/s"),
        (&["--client-tunnels", "0"], "expected a number from 1"),
        (&["--client-bytes", "x"], "expected bytes such as 10GB"),
        (&["--deny", "*example"], "expected CIDR, HOST, *.DOMAIN or *"),
    ] {
        let output = command(&[&listen[..], more].concat()).env("EVE", "").output().expect("it starts");
        let said = errors(&output);
        assert!(output.status.code() == Some(2) && said.contains(expected), "{more:?}: {said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[test]
fn log_has_no_record_with_client_and_target_unless_selected() {
    for (access, client, target) in
        [(None, true, false), (Some("none"), false, false), (Some("target"), false, true), (Some("both"), true, true)]
    {
        let here = ["masque", "proxy", "--listen", "127.0.0.1:0", "--self-signed", "--verbose", "--log-format", "json"];
        let more = access.map_or(vec![], |access| vec!["--access-log", access]);
        let proxy = Server::start(&[&here[..], &more].concat());
        assert!(refusal(&proxy.address, &["--insecure"]).contains("403"));
        let said = proxy.stop();
        let records: Vec<serde_json::Value> =
            said.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
        let refused = records.iter().find(|record| record["event"] == "refused").expect("a record");
        assert_eq!(
            refused.get("client").is_some_and(|network| network == "127.0.0.0/24"),
            client,
            "{access:?} {refused}"
        );
        assert_eq!(refused.get("target").is_some(), target, "{access:?} {refused}");
        assert_eq!(said.contains("192.0.2.1"), target, "{access:?} {said}");
        assert!(!said.contains("127.0.0.1"), "{access:?} {said}");
        assert!(refused["reason"].as_str().is_some_and(|reason| reason.contains("documentation")), "{refused}");
        assert!(refused["time_s"].as_f64().is_some_and(|time| time > 1.7e9), "{refused}");
    }
}

/// RFC 9000 section 10.3: without the same keys, the client would wait for the idle timeout of 150 s.
#[test]
fn restarted_proxy_with_the_same_secret_resets_connections_of_its_predecessor() {
    let (folder, target) = (folder("secret"), echo());
    let secret = folder.join("secret");
    let here =
        ["masque", "proxy", "--self-signed", "--allow-private", "--threads", "1", "--secret-file", text(&secret)];
    let proxy = Server::start(&[&here[..], &["--listen", "127.0.0.1:0"]].concat());
    assert_eq!(std::fs::metadata(&secret).expect("it is created").len(), 32);
    let address = proxy.address.clone();
    let mut port = connect(&address, &target, &["--insecure"]);
    let sender = Sender::new(&port);
    sender.exchange(b"before");
    // Killed, so that it does not close its connections.
    drop(proxy);
    let proxy = Server::start(&[&here[..], &["--listen", &address]].concat());
    sender.0.send(b"after").expect("it is sent");
    loop {
        let line = port.line();
        assert!(!line.is_empty(), "the client ends with a reason");
        if line.contains("reset") {
            break;
        }
    }
    proxy.stop();
    std::fs::write(&secret, "short").expect("a file");
    let output = command(&[&here[..], &["--listen", "127.0.0.1:0"]].concat()).output().expect("it starts");
    let expected = "secret: the secret has 5 bytes; expected 32 to 4096 random bytes";
    assert!(output.status.code() == Some(2) && errors(&output).contains(expected), "{}", errors(&output));
}

#[test]
fn http_versions_select_the_sockets_of_the_proxy() {
    for (versions, tcp, udp) in [("3", false, true), ("2", true, false), ("3,2", true, true)] {
        let here = ["masque", "proxy", "--listen", "127.0.0.1:0", "--self-signed", "--http", versions];
        let proxy = Server::start(&here);
        // The ports have the same number.
        let stream = TcpStream::connect(&proxy.address);
        assert_eq!(stream.is_ok(), tcp, "{versions}");
        if let Ok(mut stream) = stream {
            // This is not TLS.
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it listens");
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
            let _ = stream.read_to_end(&mut Vec::new());
        }
        assert_eq!(UdpSocket::bind(&proxy.address).is_err(), udp, "{versions}");
        if udp {
            assert!(refusal(&proxy.address, &["--insecure"]).contains("403"), "{versions}");
        }
        proxy.stop();
    }
    let output = command(&["masque", "proxy", "--listen", "127.0.0.1:0", "--self-signed", "--http", "1"]).output();
    assert!(errors(&output.expect("it starts")).contains("expected 3, 2 or 3,2"));
}

#[test]
fn proxy_with_client_ca_accepts_only_clients_with_a_certificate() {
    let (folder, target) = (folder("client-ca"), echo());
    let other = self::folder("other-client-ca");
    for folder in [&folder, &other] {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut authority = rcgen::CertificateParams::new(Vec::<String>::new()).expect("no names");
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = authority.self_signed(&key).expect("a certificate");
        std::fs::write(folder.join("ca.pem"), certificate.pem()).expect("a file");
        let client = rcgen::KeyPair::generate().expect("a key");
        let parameters = rcgen::CertificateParams::new(vec!["client.example".into()]).expect("a name");
        let signed = parameters.signed_by(&client, &rcgen::Issuer::new(authority, key)).expect("a certificate");
        std::fs::write(folder.join("client.pem"), signed.pem()).expect("a file");
        std::fs::write(folder.join("client-key.pem"), client.serialize_pem()).expect("a file");
    }
    let ca = folder.join("ca.pem");
    let here = ["masque", "proxy", "--listen", "127.0.0.1:0", "--self-signed", "--allow-private", "--client-ca"];
    let proxy = Server::start(&[&here[..], &[text(&ca)]].concat());
    let via = template(&proxy.address);
    let attempt = |folder: Option<&Path>| {
        let files = folder.map(|folder| [folder.join("client.pem"), folder.join("client-key.pem")]);
        let mut arguments =
            vec!["masque", "connect", "--template", &via, "--target", &target, "--listen", "127.0.0.1:0", "--insecure"];
        if let Some([certificate, key]) = &files {
            arguments.extend(["--client-cert", text(certificate), "--client-key", text(key)]);
        }
        arguments.into_iter().map(String::from).collect::<Vec<_>>()
    };
    for wrong in [None, Some(&*other)] {
        let arguments = attempt(wrong);
        let output = command(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    }
    let arguments = attempt(Some(&folder));
    let port = Server::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    Sender::new(&port).exchange(b"payload");
    port.stop();
    proxy.stop();
    let key = folder.join("client-key.pem");
    let output = command(&[&here[..], &[text(&key)]].concat()).output().expect("it starts");
    let said = errors(&output);
    assert!(
        output.status.code() == Some(2) && said.contains("client-key.pem: the file contains no certificate"),
        "{said}"
    );
}

/// RFC 9298 section 3.1 and RFC 9209: a request that the proxy rejects has a status and Proxy-Status. An open tunnel ends
/// with H3_CONNECT_ERROR (RFC 9114 section 4.4) without them, so the client describes the code.
#[test]
fn client_prints_why_the_proxy_rejects_a_request_or_ends_a_tunnel() {
    let (folder, target) = (folder("reasons"), echo());
    let file = folder.join("proxy.toml");
    let write = |rules: &str| {
        std::fs::write(&file, format!("listen = '127.0.0.1:0'\nself_signed = []\n{rules}")).expect("a file");
    };
    write("allow = ['127.0.0.1']\n");
    let mut proxy = Server::start(&["masque", "proxy", "--config", text(&file), "--drain", "0s"]);
    let via = template(&proxy.address);
    let rejected = |error: &str| {
        format!(
            "the proxy rejected the request with status 403 and Proxy-Status: \"fullpipe\"; error={error}; details=\""
        )
    };
    let connect_to = |target: &str| {
        let arguments = ["masque", "connect", "--template", &via, "--target", target, "--listen", "127.0.0.1:0"];
        command(&[&arguments[..], &["--insecure"]].concat()).output().expect("it starts")
    };
    for output in [
        connect_to("192.0.2.1:9"),
        command(&["http3", "get", "https://192.0.2.1:9/", "--insecure", "--via", &via]).output().expect("it starts"),
    ] {
        let said = errors(&output);
        assert!(output.status.code() == Some(1) && said.contains(&rejected("destination_ip_prohibited")), "{said}");
        assert!(!said.contains("H3_"), "{said}");
    }
    // No program listens on port 9: the kernel answers with ICMP port unreachable.
    let get = ["http3", "get", "https://127.0.0.1:9/", "--insecure", "--via", &via];
    let said = errors(&command(&get).output().expect("it starts"));
    let expected = "the tunnel ended: the proxy cannot reach the target: its socket reported an error";
    assert!(said.contains(expected), "{said}");
    // A tunnel that the new rules deny is rejected after the program has started.
    let mut port = connect(&proxy.address, &target, &["--insecure"]);
    assert!(port.line().starts_with("the largest UDP payload"));
    write("deny = ['127.0.0.1']\n");
    assert_eq!(reload(&mut proxy), "event=reloaded");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.send_to(b"payload", &port.address).expect("it is sent");
    let line = port.line().replace("\\\"", "\"");
    assert!(line.starts_with("event=tunnel-failed") && line.contains(&rejected("http_request_denied")), "{line}");
    port.stop();
    proxy.stop();
}

/// Status line and headers of the response, and its body.
fn request(address: &str, head: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    // A service of one connection at a time would need longer for the silent ones: 5 s each.
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    stream.write_all(format!("{head}\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an empty line");
    (head.into(), body.into())
}

#[test]
fn metrics_service_answers_by_path_and_method_despite_silent_connections() {
    let here = ["masque", "proxy", "--listen", "127.0.0.1:0", "--self-signed", "--metrics", "127.0.0.1:0"];
    let mut proxy = Server::start(&here);
    let address = proxy.line().strip_prefix("metrics on ").expect("their address").to_owned();
    let mut silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&address).expect("it listens")).collect();
    for stream in &mut silent[..20] {
        stream.write_all(b"GET /met").expect("it listens");
    }
    // RFC 9110 sections 9.3.2, 15.5.5 and 15.5.6.
    for (head, status, body) in [
        ("GET /metrics HTTP/1.1", "200 OK", "# HELP fullpipe_masque_connections_open"),
        ("GET /metrics?x=y HTTP/1.1", "200 OK", "# HELP fullpipe_masque_connections_open"),
        ("HEAD /metrics HTTP/1.1", "200 OK", ""),
        ("GET /healthz HTTP/1.1", "200 OK", "ok\n"),
        ("GET / HTTP/1.1", "404 Not Found", "not found"),
        ("GET /metrics/ HTTP/1.1", "404 Not Found", "not found"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 0", "405 Method Not Allowed", "method not allowed"),
        ("DELETE /healthz HTTP/1.1", "405 Method Not Allowed", "method not allowed"),
    ] {
        let (given, content) = request(&address, head);
        assert!(given.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{head}: {given}");
        assert!(content.starts_with(body) && content.is_empty() == body.is_empty(), "{head}: {content}");
        assert_eq!(given.to_lowercase().contains("allow: get, head"), status.starts_with("405"), "{head}: {given}");
    }
    // The service closes them.
    for stream in &mut silent {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    proxy.stop();
}

#[test]
fn wrong_options_and_files_are_named() {
    let folder = folder("wrong-options");
    let cert = folder.join("cert.pem");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let busy = socket.local_addr().expect("it is bound").to_string();
    let listen = ["masque", "proxy", "--listen", "127.0.0.1:0"];
    for (more, status, words) in [
        (&["--self-signed", "--token", ""][..], 2, "--token"),
        (&["--self-signed", "--token", "a b"], 2, "expected ASCII characters without spaces"),
        (&["--self-signed", "--max-requests", "0"], 2, "--max-requests"),
        (&["--self-signed", "--max-connections", "0"], 2, "--max-connections"),
        (&["--cert", text(&cert), "--key", text(&cert)], 2, "the file contains no private key"),
    ] {
        let output = command(&[&listen[..], more].concat()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(status), "{more:?}: {}", errors(&output));
        assert!(errors(&output).contains(words), "{more:?}: {}", errors(&output));
    }
    let output = command(&["masque", "proxy", "--listen", &busy, "--self-signed"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains(&format!("cannot listen on {busy}: ")), "{}", errors(&output));
}
