//! Serialization of a captured packet, for capture files and for real programs.
//!
//! The payload of a packet of the QUIC model is written as zeros. "Don't fragment" is set on TCP segments, packets of
//! the QUIC model and datagrams of a real stack. It is not set on other UDP datagrams, because routers of the model may
//! fragment them. A packet of a real program is written with its own bytes and the changes made on its path.

use crate::network::HOP_LIMIT;
use crate::packet::PacketContent;
use crate::tap::{CapturedPacket, HeaderFields};
use fullpipe_wire::rewrite::{AddressTranslation, corrupt, decrement_hop_limit, set_ecn};
use fullpipe_wire::{FragmentRange, IpPacket, TransportHeader, WriteError};
use std::net::SocketAddr;

impl CapturedPacket<'_> {
    /// Appends the first `snap_bytes` bytes of the packet to `out`; returns the length of the whole packet in bytes.
    ///
    /// # Errors
    /// See [`WriteError`]; the appended bytes are then incomplete.
    pub fn write(&self, snap_bytes: usize, out: &mut Vec<u8>) -> Result<u32, WriteError> {
        let (transport, dont_fragment) = match &self.whole.content {
            PacketContent::RawIp { .. } => return self.write_rewritten(snap_bytes, out),
            PacketContent::Tcp(header) => {
                let options = self.options.copied().unwrap_or_default();
                (TransportHeader::Tcp { header: *header, options }, true)
            }
            // Datagrams of a real stack have their payload bytes.
            PacketContent::Udp { payload_bytes } => {
                (TransportHeader::Udp { payload_bytes: *payload_bytes }, !self.whole.payload.is_none())
            }
            PacketContent::Quic(_) => (TransportHeader::Udp { payload_bytes: self.whole.udp_payload_bytes() }, true),
            PacketContent::Fragment { .. } | PacketContent::Arp { .. } => return Err(WriteError::NotIp),
        };
        let fragment = match self.packet.content {
            PacketContent::Fragment { offset_bytes, last, .. } => {
                Some(FragmentRange { offset_bytes, length_bytes: self.packet.fragment_bytes(), last })
            }
            _ => None,
        };
        let HeaderFields { ends, source, destination, hop_limit, identification, .. } = self.envelope;
        let packet = IpPacket {
            source: SocketAddr::new(source, ends.source.port),
            destination: SocketAddr::new(destination, ends.destination.port),
            codepoint: self.packet.codepoint,
            hop_limit,
            identification,
            dont_fragment,
            transport,
            payload: self.payload.map(|payload| &payload[..]),
            fragment,
            corrupted: self.packet.corrupted,
        };
        packet.write(snap_bytes, out)
    }

    /// Writes a packet of a real program: its bytes with the changes made on its path.
    fn write_rewritten(&self, snap_bytes: usize, out: &mut Vec<u8>) -> Result<u32, WriteError> {
        let bytes = self.payload.ok_or(WriteError::NotIp)?;
        let begin = out.len();
        out.extend_from_slice(bytes);
        let packet = &mut out[begin..];
        let HeaderFields { hop_limit, translated, ends, source, destination, .. } = self.envelope;
        let refused = |_| WriteError::NotIp;
        set_ecn(packet, self.packet.codepoint).map_err(refused)?;
        // The packet entered with a sufficient hop limit.
        decrement_hop_limit(packet, HOP_LIMIT.saturating_sub(hop_limit)).map_err(refused)?;
        if translated {
            let translation = AddressTranslation {
                source: Some(SocketAddr::new(source, ends.source.port)),
                destination: Some(SocketAddr::new(destination, ends.destination.port)),
            };
            translation.apply(packet).map_err(|_| WriteError::NotIp)?;
        }
        if self.packet.corrupted {
            corrupt(packet).map_err(refused)?;
        }
        out.truncate(begin.saturating_add(bytes.len().min(snap_bytes)));
        Ok(bytes.len() as u32)
    }
}
