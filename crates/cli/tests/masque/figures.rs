//! Tests servers without files, bodies that are checked, and the metrics that programs report.

use crate::processes::*;
use serde_json::Value;

/// SHA-256 of the first million bytes of SplitMix64 with the seed 0, computed with Python's `hashlib`.
const MILLION: &str = "b3d0a1f7938cd4d8413a4dcffd4313e2e8ac0cb61cb1090eb140ea8e9154befb";

fn object(line: &str) -> Value {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    assert!(value.is_object(), "{line}");
    value
}

fn names(figures: &Value) -> Vec<&str> {
    figures.as_object().expect("an object").keys().map(String::as_str).collect()
}

const CONNECTION: [&str; 3] = ["quic_packets_sent", "quic_packets_lost", "quic_mean_rtt_s"];
const TUNNEL: [&str; 4] =
    ["tunnel_mean_rtt_s", "tunnel_dropped_too_large", "tunnel_dropped_queue", "tunnel_peak_queue_bytes"];

#[test]
fn generated_body_is_served_through_a_tunnel_checked_and_counted() {
    let here = ["--listen", "127.0.0.1:0", "--self-signed", "--figures"];
    let mut server = Server::start(&[&["http3", "serve"], &here[..], &["--generate"]].concat());
    let mut proxy = Server::start(&[&["masque", "proxy"], &here[..], &["--allow-private"]].concat());
    let (url, via) = (format!("https://{}/bytes/1000000", server.address), template(&proxy.address));
    let get = ["http3", "get", &url, "--insecure", "--check", "--json", "--figures"];
    let output = command(&[&get[..], &["--via", &via]].concat()).output().expect("the client starts");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let printed = String::from_utf8(output.stdout).expect("text");
    let [got, figures] = printed.lines().collect::<Vec<_>>()[..] else { panic!("two lines: {printed}") };
    let (got, figures) = (object(got), object(figures));
    assert_eq!((&got["bytes"], &got["sha256"]), (&1_000_000.into(), &MILLION.into()));
    assert_eq!(names(&figures), [&["exchange_max_s"], &CONNECTION[..], &TUNNEL].concat());
    // The exchange consists of the tunnel's set-up and the transfer.
    let milliseconds = |value: &Value| value.as_f64().expect("a number");
    let parts = milliseconds(&got["tunnel"]["set_up_ms"]) + milliseconds(&got["completion_ms"]);
    assert!(milliseconds(&figures["exchange_max_s"]) * 1e3 >= parts, "{figures} {got}");
    assert!(milliseconds(&figures["quic_mean_rtt_s"]) > 0.0 && milliseconds(&figures["tunnel_mean_rtt_s"]) > 0.0);

    // Each program prints a line at the end of the connection without a request.
    let (of_server, of_proxy) = (object(&server.printed()), object(&proxy.printed()));
    let proxy_names = [&TUNNEL[..], &["program_processor_s"]].concat();
    assert_eq!((names(&of_server), names(&of_proxy)), (CONNECTION.to_vec(), proxy_names.clone()));
    // The process did some work, in less time than the test may take.
    let processor = of_proxy["program_processor_s"].as_f64().expect("a number");
    assert!((1e-4..60.0).contains(&processor), "{of_proxy}");
    // The largest packet that is probed has 1452 bytes.
    let sent = |figures: &Value| figures["quic_packets_sent"].as_u64().expect("a count");
    assert!(sent(&of_server) > 1_000_000 / 1452, "{of_server}");

    // A second connection is added to the first. The last line, at the end, contains both.
    let output = command(&get).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let printed = String::from_utf8(output.stdout).expect("text");
    assert_eq!(
        names(&object(printed.lines().last().expect("figures"))),
        [&["exchange_max_s"], &CONNECTION[..]].concat()
    );
    let (_, printed) = server.end();
    let last = object(printed.lines().last().expect("the figures at the end"));
    assert!(sent(&last) - sent(&of_server) > 1_000_000 / 1452, "{last} {of_server}");
    let (_, printed) = proxy.end();
    assert_eq!(names(&object(printed.lines().last().expect("the figures at the end"))), proxy_names);
}

/// Metrics are printed only on request. Without a connection there are counts but no round-trip time.
#[test]
fn figures_are_printed_only_on_request_and_if_known() {
    let here = ["--listen", "127.0.0.1:0", "--self-signed"];
    let quiet = Server::start(&[&["http3", "serve"], &here[..], &["--generate"]].concat());
    let url = format!("https://{}/bytes/10", quiet.address);
    let output = command(&["http3", "get", &url, "--insecure"]).output().expect("the client starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    assert_eq!(quiet.end().1, "");
    let idle = Server::start(&[&["http3", "serve"], &here[..], &["--generate", "--figures"]].concat());
    assert_eq!(idle.end().1, "{\"quic_packets_sent\":0,\"quic_packets_lost\":0}\n");
}

#[test]
fn body_that_fails_the_check_is_rejected_and_not_stored() {
    let folder = folder("another");
    let bytes = folder.join("bytes");
    std::fs::create_dir(&bytes).expect("a folder");
    std::fs::write(bytes.join("4"), [0xaf, 0xcd, 0x1d, 0x7c]).expect("a file");
    std::fs::write(bytes.join("9"), [0xaf, 0xcd, 0x1d, 0x7b]).expect("a file");
    let here = ["--listen", "127.0.0.1:0", "--self-signed", "127.0.0.1", "--root", text(&folder)];
    let server = Server::start(&[&["http3", "serve"], &here[..]].concat());
    // The first word is e220a8397b1dcdaf, lowest byte first. The fourth byte of one file differs, and the other file
    // ends early.
    let out = folder.join("out");
    for (name, said) in [("4", "the first wrong byte is at offset 3"), ("9", "the body has 4 bytes; expected 9 bytes")]
    {
        let url = format!("https://{}/bytes/{name}", server.address);
        let output =
            command(&["http3", "get", &url, "--insecure", "--check", "--out", text(&out)]).output().expect("it starts");
        assert_eq!(output.status.code(), Some(1));
        assert!(errors(&output).contains(said), "{}", errors(&output));
        assert!(!out.exists());
    }
    // A server that generates bodies serves files for all other paths.
    let both = Server::start(&[&["http3", "serve"], &here[..], &["--generate"]].concat());
    for (path, check, status) in [("bytes/4", true, 0), ("cert.pem", false, 0), ("bytes/10000000001", false, 1)] {
        let url = format!("https://{}/{path}", both.address);
        let get = ["http3", "get", &url, "--insecure", "--check"];
        let output = command(&get[..if check { 5 } else { 4 }]).output().expect("it starts");
        assert_eq!(output.status.code(), Some(status), "{path}: {}", errors(&output));
    }
    server.stop();
    assert!(both.stop().contains("status=404"));
}

/// The connections report their congestion control.
#[test]
fn connections_use_the_selected_congestion_controls() {
    let here = ["--listen", "127.0.0.1:0", "--self-signed"];
    let serve = ["--generate", "--congestion", "bbr1", "--initial-window", "4", "--send-buffer", "400kB"];
    let server = Server::start(&[&["http3", "serve"], &here[..], &serve].concat());
    let open = ["--allow-private", "--congestion", "none", "--queue-limit", "none", "--scheduler", "fifo"];
    let proxy = Server::start(&[&["masque", "proxy"], &here[..], &open].concat());
    let (url, via) = (format!("https://{}/bytes/1000000", server.address), template(&proxy.address));
    for (options, controls) in [
        (&["--congestion", "vegas"][..], ["vegas", "vegas"]),
        (&["--tunnel-congestion", "newreno", "--no-hystart"], ["cubic", "newreno"]),
        (&["--congestion", "bbr3", "--tunnel-congestion", "none"], ["bbr3", "none"]),
    ] {
        let get = ["http3", "get", &url, "--insecure", "--check", "--json", "--figures", "--via", &via];
        let output = command(&[&get[..], options].concat()).output().expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        let printed = String::from_utf8(output.stdout).expect("text");
        let mut lines = printed.lines().map(object);
        let (got, figures) = (lines.next().expect("what came"), lines.next().expect("the figures"));
        assert_eq!([&got["congestion"], &got["tunnel"]["congestion"]], controls);
        // The congestion control measures round-trip times; without one there are none.
        assert_eq!(names(&figures).contains(&"tunnel_mean_rtt_s"), controls[1] != "none");
    }
    proxy.stop();
    server.stop();
}
