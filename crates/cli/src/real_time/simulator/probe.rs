//! Waits for a QUIC server. A packet with a version that no server supports elicits a Version Negotiation packet (RFC
//! 9000 section 6, RFC 8999).

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Size of the probe in bytes. Servers do not respond to packets below 1200 bytes.
const PROBE_BYTES: usize = 1207;
const EVERY: Duration = Duration::from_millis(500);
/// The number of probes, which take 10 s.
const PROBES: u32 = 20;

/// Returns a packet with a long header, a version reserved for this purpose (RFC 9000 section 15: 0x?a?a?a?a) and two
/// connection IDs of eight bytes.
fn probe() -> [u8; PROBE_BYTES] {
    let mut bytes = [0; PROBE_BYTES];
    let head = [&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8][..], b"fullpipe", &[8], b"simulate"].concat();
    bytes[..head.len()].copy_from_slice(&head);
    bytes
}

/// Returns whether the packet has a long header with version 0.
fn is_version_negotiation(bytes: &[u8]) -> bool {
    bytes.len() > 5 && bytes[0] & 0x80 != 0 && bytes[1..5] == [0; 4]
}

/// Waits until the server responds.
pub(super) fn wait(server: &str, stop: &AtomicBool) -> Result<(), String> {
    // The name may not be resolvable until the server is running.
    for _ in 0..PROBES {
        if stop.load(Ordering::Relaxed) {
            return Err("interrupted".into());
        }
        let address = server.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        let Some(address) = address else {
            std::thread::sleep(EVERY);
            continue;
        };
        if answers(address).map_err(|error| format!("{server}: {error}"))? {
            return Ok(());
        }
    }
    Err(format!("{server} did not respond within {} s", PROBES / 2))
}

/// Sends one probe and waits for its response.
fn answers(server: SocketAddr) -> io::Result<bool> {
    let own = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(own)?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(EVERY))?;
    let mut answer = [0; 2048];
    // The server may not be running yet, or there may be no route yet.
    if socket.send(&probe()).is_err() {
        std::thread::sleep(EVERY);
        return Ok(false);
    }
    match socket.recv(&mut answer) {
        Ok(length) => Ok(is_version_negotiation(&answer[..length])),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(false),
        Err(_) => {
            std::thread::sleep(EVERY);
            Ok(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_accepts_version_negotiation_for_a_probe_with_a_reserved_version() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("the socket binds");
        let address = server.local_addr().expect("the socket is bound");
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 2048];
            let (length, from) = server.recv_from(&mut bytes).expect("the probe arrives");
            server.send_to(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], from).expect("the response is sent");
            bytes[..length].to_vec()
        });
        assert_eq!(wait(&address.to_string(), &AtomicBool::new(false)), Ok(()));
        let probe = thread.join().expect("the thread does not panic");
        assert_eq!(probe.len(), 1207);
        assert_eq!(probe[0] & 0xc0, 0xc0);
        assert!(probe[1..5].iter().all(|byte| byte & 0x0f == 0x0a), "version {:x?}", &probe[1..5]);
    }

    #[test]
    fn interrupt_ends_the_wait() {
        assert_eq!(wait("127.0.0.1:1", &AtomicBool::new(true)), Err("interrupted".into()));
    }
}
