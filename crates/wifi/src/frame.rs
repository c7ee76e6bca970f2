//! Sizes of frames: MPDUs, control frames, A-MSDUs and A-MPDUs (IEEE 802.11-2020 clauses 9.2, 9.3 and 9.7).
//!
//! Frames are not encrypted. All sizes are in bytes.

use crate::phy::{PhyKind, PhyRate};
use fullpipe_units::Duration;

/// Size of an ACK and of a CTS (clauses 9.3.1.3 and 9.3.1.4).
pub const ACK_BYTES: u32 = 14;
/// Size of a CTS.
pub const CTS_BYTES: u32 = 14;
/// Size of an RTS (clause 9.3.1.2).
pub const RTS_BYTES: u32 = 20;
/// Size of a BlockAckReq (clause 9.3.1.7).
pub const BLOCK_ACK_REQUEST_BYTES: u32 = 24;
/// Size of a compressed BlockAck with a bitmap for 64 MPDUs (clause 9.3.1.8.2).
pub const BLOCK_ACK_BYTES: u32 = 32;

/// MAC header of a data frame, and the QoS Control field.
const HEADER_BYTES: u32 = 24;
const QOS_BYTES: u32 = 2;
/// LLC and SNAP headers in front of an IP packet.
const LLC_BYTES: u32 = 8;
const FCS_BYTES: u32 = 4;

/// Header of an A-MSDU subframe.
const MSDU_HEADER_BYTES: u32 = 14;
/// Delimiter in front of an MPDU of an A-MPDU.
const DELIMITER_BYTES: u32 = 4;

/// Returns the size of the MPDU with one IP packet. A QoS frame has 2 more header bytes.
///
/// ```
/// // 1472 bytes of UDP payload: 28 bytes of IP and UDP headers, 8 LLC and SNAP, 24 MAC header, 4 FCS.
/// assert_eq!(fullpipe_wifi::frame::mpdu_bytes(1500, false), 1536);
/// ```
pub const fn mpdu_bytes(ip_bytes: u32, qos: bool) -> u32 {
    HEADER_BYTES + if qos { QOS_BYTES } else { 0 } + LLC_BYTES + ip_bytes + FCS_BYTES
}

/// Returns the size of an A-MSDU that contains MSDUs of these sizes, each an LLC and SNAP header with its packet. Each
/// subframe except the last is padded to a multiple of 4 bytes (clause 9.3.2.2.2).
pub fn amsdu_bytes(msdus: impl IntoIterator<Item = u32>) -> u32 {
    msdus.into_iter().fold(0u32, |sum, msdu| sum.next_multiple_of(4) + MSDU_HEADER_BYTES + msdu)
}

/// The size of an A-MPDU while MPDUs are added. Each subframe except the last is padded to a multiple of 4 bytes
/// (clause 9.7.1).
///
/// ```
/// let mut size = fullpipe_wifi::frame::AmpduSize::default();
/// size.add(1538, 0);
/// size.add(1538, 0);
/// // Two delimiters, and two bytes of padding after the first MPDU.
/// assert_eq!(size.bytes(), 4 + 1538 + 2 + 4 + 1538);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmpduSize {
    bytes: u64,
    mpdus: u32,
    /// The offset at which the last subframe begins.
    last: u64,
}

impl AmpduSize {
    /// Returns the size in bytes, of the PSDU.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of MPDUs.
    pub fn mpdus(&self) -> u32 {
        self.mpdus
    }

    /// Returns the size after one more MPDU whose beginning follows that of the last MPDU by at least `spacing_bytes`
    /// (see [`spacing_bytes`]).
    pub fn with(&self, mpdu_bytes: u32, spacing_bytes: u64) -> Self {
        let begin = match self.mpdus {
            0 => 0,
            _ => self.bytes.next_multiple_of(4).max(self.last + spacing_bytes.next_multiple_of(4)),
        };
        AmpduSize { bytes: begin + u64::from(DELIMITER_BYTES + mpdu_bytes), mpdus: self.mpdus + 1, last: begin }
    }

    /// Adds an MPDU.
    pub fn add(&mut self, mpdu_bytes: u32, spacing_bytes: u64) {
        *self = self.with(mpdu_bytes, spacing_bytes);
    }
}

/// Returns the minimum distance in bytes between the beginnings of two MPDUs of an A-MPDU, for a receiver that requires
/// this minimum spacing (clause 10.12.3).
pub fn spacing_bytes(spacing: Duration, rate: PhyRate) -> u64 {
    // A whole number of 4-byte delimiters fills the gap, so only the rounding to bytes matters here.
    (spacing.as_nanos() as f64 * rate.mbps() / 8e3 - 1e-6).ceil().max(0.0) as u64
}

/// Returns the size of the PSDU that carries a single MPDU. A VHT PPDU always carries an A-MPDU (clause 10.12.7).
pub fn single_mpdu_psdu_bytes(mpdu_bytes: u32, kind: PhyKind) -> u64 {
    match kind {
        PhyKind::Vht => AmpduSize::default().with(mpdu_bytes, 0).bytes(),
        _ => u64::from(mpdu_bytes),
    }
}
