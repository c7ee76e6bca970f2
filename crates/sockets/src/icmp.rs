//! ICMP messages to a target whose payload does not fit a tunnel: Fragmentation Needed (RFC 792, RFC 1191 section 4) and
//! Packet Too Big (RFC 4443 section 3.2).
//!
//! They need a raw socket, and therefore the capability CAP_NET_RAW. Without it nothing is sent.

use noq::Runtime;
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Smallest interval between two messages of a socket (RFC 4443 section 2.4 requires a rate limit).
const INTERVAL: Duration = Duration::from_millis(100);

/// Smallest link MTU of IPv6. Hosts ignore a smaller MTU in a message (RFC 8201 section 4).
const SMALLEST_IPV6_MTU: usize = 1280;

/// Sizes of headers in bytes.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;

/// Protocol number of UDP.
const UDP: u8 = 17;

/// The messages of one socket.
#[derive(Debug, Default)]
pub(crate) struct TooLargeReports {
    last: Mutex<Option<Instant>>,
}

impl TooLargeReports {
    /// Reports to `peer` that a payload to `local` was dropped and that payloads of `limit` bytes fit.
    pub(crate) fn report(&self, peer: SocketAddr, local: SocketAddr, payload: &[u8], limit: usize) {
        // A message to this machine would reduce the path MTU of its loopback interface for all programs.
        if peer.ip().is_loopback() || peer.ip() == local.ip() {
            return;
        }
        let Some(message) = too_large(peer, local, payload, limit) else { return };
        let now = noq::TokioRuntime.now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| now.saturating_duration_since(last) < INTERVAL) {
            return;
        }
        *last = Some(now);
        send(peer.ip(), &message);
    }
}

/// Sends a message through a raw socket, if this process may create one. The message is advice, so errors are ignored.
fn send(peer: IpAddr, message: &[u8]) {
    let (domain, protocol) = match peer {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    if let Ok(socket) = Socket::new(domain, Type::RAW, Some(protocol))
        && socket.set_nonblocking(true).is_ok()
    {
        let _ = socket.send_to(message, &SocketAddr::new(peer, 0).into());
    }
}

/// Builds a message about the packet that carried `payload` from `peer` to `local`. `None` if the peer would ignore it.
fn too_large(peer: SocketAddr, local: SocketAddr, payload: &[u8], limit: usize) -> Option<Vec<u8>> {
    let length = u16::try_from(payload.len() + UDP_HEADER).ok()?;
    let mut udp = Vec::with_capacity(UDP_HEADER);
    for field in [peer.port(), local.port(), length, 0] {
        udp.extend_from_slice(&field.to_be_bytes());
    }
    match (peer.ip(), local.ip()) {
        (IpAddr::V4(peer), IpAddr::V4(local)) => {
            let mtu = u16::try_from(limit + IPV4_HEADER + UDP_HEADER).ok()?;
            let total = u16::try_from(payload.len() + UDP_HEADER + IPV4_HEADER).ok()?;
            // Version 4 with five words; no fragments; a time to live of 64.
            let mut header = vec![0x45, 0];
            header.extend_from_slice(&total.to_be_bytes());
            header.extend_from_slice(&[0, 0, 0x40, 0, 64, UDP, 0, 0]);
            header.extend_from_slice(&peer.octets());
            header.extend_from_slice(&local.octets());
            let sum = checksum(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            // Type 3 (destination unreachable), code 4 (fragmentation needed).
            let mut message = vec![3, 4, 0, 0, 0, 0];
            message.extend_from_slice(&mtu.to_be_bytes());
            message.extend_from_slice(&header);
            message.extend_from_slice(&udp);
            let sum = checksum(&message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
            Some(message)
        }
        (IpAddr::V6(peer), IpAddr::V6(local)) => {
            let mtu = limit + IPV6_HEADER + UDP_HEADER;
            if mtu < SMALLEST_IPV6_MTU {
                return None;
            }
            // Type 2, code 0. The host computes the checksum (RFC 3542 section 3.1).
            let mut message = vec![2, 0, 0, 0];
            message.extend_from_slice(&u32::try_from(mtu).ok()?.to_be_bytes());
            message.extend_from_slice(&[0x60, 0, 0, 0]);
            message.extend_from_slice(&length.to_be_bytes());
            message.extend_from_slice(&[UDP, 64]);
            message.extend_from_slice(&peer.octets());
            message.extend_from_slice(&local.octets());
            message.extend_from_slice(&udp);
            Some(message)
        }
        _ => None,
    }
}

/// The Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A payload of 1300 bytes from 192.0.2.1:443 to 198.51.100.2:5000 that should have at most 1200 bytes. The fields
    /// are those of RFC 791, RFC 768 and RFC 1191; a correct checksum makes the sum of all words 0xffff (RFC 1071).
    #[test]
    fn fragmentation_needed_quotes_the_dropped_packet() {
        let (peer, local) = ("192.0.2.1:443".parse().unwrap(), "198.51.100.2:5000".parse().unwrap());
        let message = too_large(peer, local, &[0; 1300], 1200).unwrap();
        assert_eq!(message[..2], [3, 4]);
        // MTU 1228, total length 1328, UDP length 1308.
        assert_eq!(message[4..8], [0, 0, 0x04, 0xcc]);
        assert_eq!(message[8..18], [0x45, 0, 0x05, 0x30, 0, 0, 0x40, 0, 64, 17]);
        assert_eq!(message[20..28], [192, 0, 2, 1, 198, 51, 100, 2]);
        assert_eq!(message[28..], [0x01, 0xbb, 0x13, 0x88, 0x05, 0x1c, 0, 0]);
        assert_eq!((checksum(&message), checksum(&message[8..28])), (0, 0));
    }

    #[test]
    fn packet_too_big_is_sent_only_with_an_mtu_that_hosts_accept() {
        let (peer, local) = ("[2001:db8::1]:443".parse().unwrap(), "[2001:db8::2]:5000".parse().unwrap());
        // RFC 4443 section 3.2, RFC 8200 section 3: MTU 1280 = 1232 + 48.
        let message = too_large(peer, local, &[0; 1300], 1232).unwrap();
        assert_eq!(message[..16], [2, 0, 0, 0, 0, 0, 0x05, 0, 0x60, 0, 0, 0, 0x05, 0x1c, 17, 64]);
        assert_eq!(message.len(), 8 + 40 + 8);
        assert_eq!(too_large(peer, local, &[0; 1300], 1231), None);
    }
}
