//! Tunnels over a path that drops large packets.

use crate::processes::*;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A relay between one client and a proxy that drops datagrams above a size in both directions.
struct NarrowPath {
    address: SocketAddr,
    /// Sizes of the client's datagrams that begin with an Initial packet, relayed or not.
    initials: Arc<Mutex<Vec<usize>>>,
}

impl NarrowPath {
    fn start(proxy: &str, most: usize) -> NarrowPath {
        let near = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        let far = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a socket"));
        far.connect(proxy).expect("a local address");
        let address = near.local_addr().expect("it is bound");
        let (initials, client) = (Arc::<Mutex<Vec<usize>>>::default(), Arc::<Mutex<Option<SocketAddr>>>::default());
        let (up, from, seen) = ((Arc::clone(&near), Arc::clone(&far)), Arc::clone(&client), Arc::clone(&initials));
        // The threads end with the process.
        std::thread::spawn(move || {
            let mut room = [0; 2000];
            while let Ok((length, address)) = up.0.recv_from(&mut room) {
                *from.lock().expect("no panic") = Some(address);
                // RFC 9000 section 17.2.2: a long header of type 0.
                if room[0] & 0xf0 == 0xc0 {
                    seen.lock().expect("no panic").push(length);
                }
                if length <= most {
                    let _ = up.1.send(&room[..length]);
                }
            }
        });
        std::thread::spawn(move || {
            let mut room = [0; 2000];
            loop {
                // An error is that of an earlier datagram.
                let Ok(length) = far.recv(&mut room) else { continue };
                let client = *client.lock().expect("no panic");
                if let Some(client) = client.filter(|_| length <= most) {
                    let _ = near.send_to(&room[..length], client);
                }
            }
        });
        NarrowPath { address, initials }
    }

    fn initials(&self) -> Vec<usize> {
        self.initials.lock().expect("no panic").clone()
    }
}

struct Servers {
    server: Server,
    proxy: Server,
}

fn servers() -> Servers {
    let here = ["--listen", "127.0.0.1:0", "--self-signed"];
    Servers {
        server: Server::start(&[&["http3", "serve"], &here[..], &["--generate"]].concat()),
        proxy: Server::start(&[&["masque", "proxy"], &here[..], &["--allow-private"]].concat()),
    }
}

fn get(servers: &Servers, path: &NarrowPath, more: &[&str]) -> std::process::Output {
    let url = format!("https://{}/bytes/100000", servers.server.address);
    let via = template(&path.address.to_string());
    let arguments = ["http3", "get", &url, "--insecure", "--check", "--json", "--via", &via];
    command(&[&arguments, more].concat()).output().expect("it starts")
}

/// RFC 9298 section 6.1 and RFC 9000 section 14.1: the Initial packets of the tunnel show that the path carries packets
/// with inner payloads of 1200 bytes. A datagram adds 13 bytes of short header, 16 of authentication tag, 9 of frame
/// type and length, 1 of context ID and up to 4 of quarter stream ID: 1243 bytes.
#[test]
fn initial_packets_of_the_tunnel_have_the_size_that_inner_ones_need() {
    let servers = servers();
    for (more, size) in [(&[][..], 1243), (&["--tunnel-mtu", "1300"], 1300)] {
        // The path carries no larger packets.
        let path = NarrowPath::start(&servers.proxy.address, size);
        let output = get(&servers, &path, more);
        assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
        let initials = path.initials();
        assert!(!initials.is_empty() && initials.iter().all(|length| *length == size), "{initials:?}");
        assert!(errors(&output).is_empty(), "{}", errors(&output));
    }
}

/// The client sends larger Initial packets first, and packets of 1200 bytes if they are lost. The tunnel then carries
/// payloads of 1160 bytes: 1200 without the overhead of 40 bytes.
#[test]
fn path_that_cannot_carry_quic_in_datagrams_is_named_and_auto_uses_the_stream() {
    const REASON: &str = "the path to the proxy cannot carry QUIC in datagrams: the largest UDP payload has 1160 bytes, \
                          and QUIC connections start with packets of 1200 bytes";
    let servers = servers();
    let path = NarrowPath::start(&servers.proxy.address, 1242);
    let output = get(&servers, &path, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains(&format!("{REASON}; use --mode auto or --mode stream")), "{}", errors(&output));
    let initials = path.initials();
    // The end of the first attempt may follow the start of the second.
    assert!(initials[0] == 1243 && initials.contains(&1200), "{initials:?}");
    assert!(initials.iter().all(|length| [1200, 1243].contains(length)), "{initials:?}");
    let output = get(&servers, &path, &["--mode", "auto"]);
    assert_eq!(output.status.code(), Some(0), "{}", errors(&output));
    let line = format!("event=mode-selected mode=stream reason=\"{REASON}\"");
    assert_eq!(errors(&output).trim(), line);
    let got: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(got["tunnel"]["mode"], "stream");
    // On a path that carries them, datagrams are used.
    let path = NarrowPath::start(&servers.proxy.address, 1243);
    let output = get(&servers, &path, &["--mode", "auto"]);
    assert_eq!((output.status.code(), errors(&output)), (Some(0), String::new()));
    let got: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an object");
    assert_eq!(got["tunnel"]["mode"], "datagram");
    servers.server.stop();
    servers.proxy.stop();
}

/// `masque connect` also carries other protocols, so it continues on such a path, and counts what does not fit.
#[test]
fn connect_names_the_path_and_counts_payloads_that_do_not_fit() {
    let servers = servers();
    let path = NarrowPath::start(&servers.proxy.address, 1242);
    let target = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    target.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let (via, at) = (template(&path.address.to_string()), target.local_addr().expect("it is bound").to_string());
    let connect = ["masque", "connect", "--template", &via, "--target", &at, "--listen", "127.0.0.1:0", "--insecure"];
    for (mode, largest) in [("datagram", 1160), ("auto", 65_527)] {
        let mut port = Server::start(&[&connect[..], &["--mode", mode]].concat());
        assert_eq!(port.line(), format!("the largest UDP payload of the tunnel is {largest} bytes"));
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(&port.address).expect("a local address");
        let mut room = [0; 2000];
        // The second payload shows that the first was dropped.
        for size in [1161, 1160] {
            socket.send(&vec![7; size]).expect("it is sent");
            if mode == "auto" || size == 1160 {
                let (length, _) = target.recv_from(&mut room).expect("it arrives");
                assert_eq!(length, size, "{mode}");
            }
        }
        let log = port.stop();
        assert_eq!(log.contains("event=dropped reason=too-large payloads=1"), mode == "datagram", "{log}");
    }
}
