//! The TCP reset with which a host replies to a segment without a connection (RFC 9293 section 3.10.7.1, state CLOSED).
//!
//! The reset has the type of service of the segment, but is not ECN-capable. No reset is sent for a segment with RST or
//! a wrong checksum, for a fragment, or for a segment whose source is not a single host.

use crate::icmp::{answerable_source, ip_header};
use crate::ip::IpVersion;
use crate::layout::{Layout, UpperProtocol, word};
use crate::read::sum;
use crate::tcp::{TCP_HEADER_BYTES, flags};
use crate::{ReplyError, protocol};

/// Data Offset field of a header without options: five words.
const DATA_OFFSET: u16 = 5 << 12;

/// Appends to `out` the reset with which the destination of a segment replies. `identification` is used only for IPv4.
///
/// # Errors
/// Returns [`ReplyError`] if no reset may be sent. In this case, nothing is appended.
pub fn write_reset(packet: &[u8], identification: u16, out: &mut Vec<u8>) -> Result<(), ReplyError> {
    let layout = Layout::whole(packet).map_err(ReplyError::Malformed)?;
    let to = answerable_source(&layout, packet)?;
    if layout.piece.is_some() {
        return Err(ReplyError::NonInitialFragment);
    }
    let segment = &packet[layout.transport..layout.total];
    if layout.upper != UpperProtocol::Tcp || has(segment, flags::RST) {
        return Err(ReplyError::NotTcpSegment);
    }
    let (_, from) = layout.addresses(packet);
    if sum((from, to), protocol::TCP, segment).finish() != 0 {
        return Err(ReplyError::BadChecksum);
    }
    let (sequence, acknowledgement, kind) = if has(segment, flags::ACK) {
        (number(segment, 8), 0, flags::RST)
    } else {
        (0, number(segment, 4).wrapping_add(length(segment)), flags::RST | flags::ACK)
    };
    let (source, destination) = layout.ports(packet);
    let mut header = [0; TCP_HEADER_BYTES as usize];
    header[..2].copy_from_slice(&destination.to_be_bytes());
    header[2..4].copy_from_slice(&source.to_be_bytes());
    header[4..8].copy_from_slice(&sequence.to_be_bytes());
    header[8..12].copy_from_slice(&acknowledgement.to_be_bytes());
    header[12..14].copy_from_slice(&(DATA_OFFSET | kind).to_be_bytes());
    let checksum = sum((from, to), protocol::TCP, &header).finish();
    header[16..18].copy_from_slice(&checksum.to_be_bytes());
    let class = match layout.version {
        IpVersion::V4 => packet[1],
        IpVersion::V6 => (word(packet, 0) >> 4) as u8,
    };
    ip_header((from, to), protocol::TCP, class & !0b11, identification, header.len(), out)?;
    out.extend(header);
    Ok(())
}

fn has(segment: &[u8], flag: u16) -> bool {
    word(segment, 12) & flag != 0
}

/// Reads a 32-bit number of a TCP header.
fn number(segment: &[u8], at: usize) -> u32 {
    u32::from(word(segment, at)) << 16 | u32::from(word(segment, at + 2))
}

/// Number of sequence numbers that a segment occupies (SEG.LEN): payload, SYN and FIN.
fn length(segment: &[u8]) -> u32 {
    let header_bytes = usize::from(segment[12] >> 4) * 4;
    let marks = [flags::SYN, flags::FIN].into_iter().filter(|mark| has(segment, *mark)).count();
    (segment.len() - header_bytes + marks) as u32
}
