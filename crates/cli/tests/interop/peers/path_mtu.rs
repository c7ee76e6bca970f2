//! The kernel of a target learns the size that fits a tunnel from the proxy's ICMP message.

use crate::Ended;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Two network namespaces with a link, deleted at the end.
struct Namespaces;

const NEAR: &str = "fullpipe-mtu-near";
const FAR: &str = "fullpipe-mtu-far";

fn ip(arguments: &str) -> bool {
    Command::new("ip").args(arguments.split(' ')).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

impl Namespaces {
    fn new() -> Namespaces {
        let namespaces = Namespaces;
        // Those of a test that was killed.
        namespaces.delete();
        for arguments in [
            format!("netns add {NEAR}"),
            format!("netns add {FAR}"),
            format!("link add near netns {NEAR} type veth peer name far netns {FAR}"),
            format!("-n {NEAR} address add 10.77.0.1/24 dev near"),
            format!("-n {FAR} address add 10.77.0.2/24 dev far"),
            format!("-n {NEAR} link set lo up"),
            // The proxy must not take the target's address for one of its own host.
            format!("netns exec {NEAR} sysctl -qw net.ipv4.ip_nonlocal_bind=1"),
            format!("-n {NEAR} link set near up"),
            format!("-n {FAR} link set far up"),
        ] {
            assert!(ip(&arguments), "ip {arguments}");
        }
        namespaces
    }
}

impl Namespaces {
    fn delete(&self) {
        for name in [NEAR, FAR] {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        self.delete();
    }
}

fn start(namespace: &str, program: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, program]).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Waits for a line that begins with `start` and returns the rest.
fn line(lines: impl BufRead, start: &str) -> String {
    let found = lines.lines().map_while(Result::ok).find_map(|line| line.strip_prefix(start).map(String::from));
    found.unwrap_or_else(|| panic!("no line begins with {start:?}"))
}

/// RFC 9298 section 6.1 and RFC 1191: packets of 1243 bytes carry payloads of 1203 bytes (40 bytes of overhead), and IPv4
/// and UDP headers have 28 bytes.
#[test]
fn target_learns_the_size_that_fits_the_tunnel() {
    let _namespaces = Namespaces::new();
    let fullpipe = env!("CARGO_BIN_EXE_fullpipe");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peers/too_large_target.py");
    let mut target = Ended(start(FAR, "python3", &[script.to_str().expect("text"), "10.77.0.2", "5000"]));
    let mut said = BufReader::new(target.0.stdout.take().expect("it is piped"));
    line(&mut said, "ready");
    let here = ["masque", "proxy", "--listen", "127.0.0.1:0", "--self-signed", "--allow-private"];
    let mut proxy = Ended(start(NEAR, fullpipe, &[&here[..], &["--tunnel-mtu", "1243"]].concat()));
    // A command ends when nothing reads its standard error, so the readers stay until the end.
    let mut of_proxy = BufReader::new(proxy.0.stderr.take().expect("it is piped"));
    let address = line(&mut of_proxy, "listening on ");
    let via = format!("https://{address}/.well-known/masque/udp/{{target_host}}/{{target_port}}/");
    let connect = ["masque", "connect", "--target", "10.77.0.2:5000", "--listen", "127.0.0.1:0", "--insecure"];
    let more = ["--tunnel-mtu", "1243", "--template", &via];
    let mut client = Ended(start(NEAR, fullpipe, &[&connect[..], &more].concat()));
    let mut of_client = BufReader::new(client.0.stderr.take().expect("it is piped"));
    let port = line(&mut of_client, "listening on ");
    let send = "import socket, sys; host, port = sys.argv[1].split(':'); \
                socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', (host, int(port)))";
    let sent = start(NEAR, "python3", &["-c", send, &port]).wait().expect("it ends");
    assert!(sent.success());
    assert_eq!(line(&mut said, ""), (1203 + 28).to_string());
}
