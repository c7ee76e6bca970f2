//! Tests of the configuration file of `masque proxy`.

use super::processes::*;
use std::path::PathBuf;

fn write(folder: &std::path::Path, name: &str, content: &str) -> PathBuf {
    let file = folder.join(name);
    std::fs::write(&file, content).expect("a file");
    file
}

fn check(file: &std::path::Path) -> (Option<i32>, String) {
    let output = command(&["check", text(file)]).output().expect("it starts");
    (output.status.code(), errors(&output))
}

#[test]
fn proxy_starts_with_a_file_whose_paths_are_relative_to_it() {
    let folder = folder("configuration");
    let file = write(
        &folder,
        "proxy.toml",
        "listen = '127.0.0.1:0'\ncert = 'cert.pem'\nkey = 'key.pem'\nmax_requests = 0x10\nidle_timeout = '90s'\nverbose = true\n\
         allow = ['127.0.0.0/8']\n",
    );
    assert_eq!(check(&file), (Some(0), format!("{}: OK\n", file.display())));
    let proxy = Server::start(&["masque", "proxy", "--config", text(&file)]);
    let server = Server::start(&["http3", "serve", "--listen", "127.0.0.1:0", "--self-signed", "--generate"]);
    let (url, via) = (format!("https://{}/bytes/1000", server.address), template(&proxy.address));
    let output = command(&["http3", "get", &url, "--insecure", "--check", "--via", &via]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    // `verbose` logs the tunnel.
    assert!(proxy.stop().contains("event="));
}

#[test]
fn options_of_the_command_line_replace_keys_of_the_file() {
    let folder = folder("configuration-replaced");
    // The address belongs to no host (RFC 5737), so the proxy cannot listen on it.
    let file = write(&folder, "proxy.toml", "listen = '192.0.2.1:1'\nself_signed = []\n");
    let proxy = Server::start(&["masque", "proxy", "--listen=127.0.0.1:0", "--config", text(&file)]);
    assert!(proxy.address.starts_with("127.0.0.1:"));
    assert_eq!(proxy.stop(), "");
}

#[test]
fn repeatable_options_are_added_to_those_of_the_file() {
    let folder = folder("configuration-added");
    let file = write(&folder, "proxy.toml", "listen = '127.0.0.1:0'\nself_signed = []\nallow = ['127.0.0.1']\n");
    let arguments = ["masque", "proxy", "--config", text(&file), "--deny", "127.0.0.1:9"];
    let proxy = Server::start(&arguments);
    let server = Server::start(&["http3", "serve", "--listen", "127.0.0.1:0", "--self-signed", "--generate"]);
    let via = template(&proxy.address);
    let get = |url: &str| command(&["http3", "get", url, "--insecure", "--via", &via]).output().expect("it starts");
    assert_eq!(get(&format!("https://{}/bytes/10", server.address)).status.code(), Some(0));
    assert!(errors(&get("https://127.0.0.1:9/")).contains("403"));
}

#[test]
fn every_error_of_a_file_has_its_line_and_what_is_accepted() {
    let folder = folder("configuration-errors");
    let file = write(
        &folder,
        "proxy.toml",
        "listen = '127.0.0.1'\nmax_reqests = 5\nallow = '10.0.0.0/8'\nverbose = 1\nidle_timeout = 90\ncert = 5.5\nconfig = 'x'\n",
    );
    let (status, found) = check(&file);
    assert_eq!(status, Some(2));
    let lines: Vec<&str> = found.trim_start_matches("fullpipe: ").lines().collect();
    let expected = [
        "1:10: listen is \"127.0.0.1\": invalid socket address syntax",
        "2:1: unknown key max_reqests; did you mean max_requests? (expected one of listen, ",
        "3:9: allow is \"10.0.0.0/8\"; expected an array of strings",
        "4:11: verbose is 1; expected true or false",
        "5:16: idle_timeout is 90: expected a time such as 120s",
        "6:8: cert is 5.5; expected a string or an integer",
        "7:1: unknown key config; expected one of listen, ",
    ];
    assert_eq!(lines.len(), expected.len(), "{found}");
    for (line, expected) in lines.iter().zip(expected) {
        let begin = format!("{}:{expected}", file.display());
        assert!(line.starts_with(&begin), "{line}\nexpected: {begin}");
    }
    // The command reports the same.
    let output = command(&["masque", "proxy", "--config", text(&file)]).output().expect("it starts");
    assert_eq!((output.status.code(), errors(&output)), (Some(2), found));
}

#[test]
fn check_reports_what_prevents_the_start_of_a_proxy() {
    let folder = folder("configuration-check");
    for (content, expected) in [
        ("self_signed = []\n", "the key `listen` is missing (or --listen <IP:PORT> on the command line)"),
        ("listen = '127.0.0.1:0'\n", "a server requires a certificate"),
        ("listen = '127.0.0.1:0'\ncert = 'absent.pem'\nkey = 'key.pem'\n", "absent.pem: "),
        ("listen = '127.0.0.1:0'\nself_signed = []\ncongestion = 'cubik'\n", "cubik"),
        ("listen = '127.0.0.1:0'\nself_signed = [\n", ":2:1: invalid TOML: unclosed array"),
    ] {
        let file = write(&folder, "proxy.toml", content);
        let (status, found) = check(&file);
        assert!(status == Some(2) && found.contains(expected), "{content}{found}");
        assert!(found.starts_with(&format!("fullpipe: {}", file.display())), "{found}");
    }
    let output = command(&["masque", "proxy", "--config", "/absent.toml"]).output().expect("it starts");
    assert!(errors(&output).contains("cannot read /absent.toml: No such file"), "{}", errors(&output));
}
