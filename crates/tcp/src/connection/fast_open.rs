//! TCP Fast Open (RFC 7413): data on the SYN of a client that has a cookie from an earlier connection.
//!
//! **Model.** A client without a cookie requests one with an empty option on its SYN, and the SYN-ACK carries it. A
//! client with a cookie sends it with its SYN, together with as much data as the segment holds. A server that accepts
//! the cookie delivers the data to its application immediately, and may send the response before the handshake
//! completes. Otherwise it acknowledges only the SYN and issues a cookie, and the data follows after the handshake. An
//! unanswered SYN is retransmitted without cookie and data (section 4.1.3), because a middlebox may drop them.
//!
//! Neither end stores state across connections. The host passes the client's cached entry for the server, and reads the
//! new one. The host also passes the valid cookie of this client to the server: a function of the client's address and
//! the server's secret (section 4.1.2).

use super::{Connection, Segment, SegmentContents, event};
use crate::sender::OutgoingSegment;
use crate::status::State;
use fullpipe_units::Instant;
use fullpipe_wire::TcpHeader;
use fullpipe_wire::tcp::{flags, options};

/// Maximum payload of a SYN to a server with unknown MSS (RFC 7413 section 4.2.1).
const DEFAULT_MSS: u16 = 536;

/// A Fast Open cookie: an even number of bytes from 4 to 16 (RFC 7413 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    bytes: [u8; 16],
    length: u8,
}

impl Cookie {
    /// Creates a cookie from these bytes; `None` if the length is invalid.
    pub fn new(bytes: &[u8]) -> Option<Cookie> {
        let allowed = (4..=16).contains(&bytes.len()) && bytes.len().is_multiple_of(2);
        allowed.then(|| {
            let mut cookie = Cookie { bytes: [0; 16], length: bytes.len() as u8 };
            cookie.bytes[..bytes.len()].copy_from_slice(bytes);
            cookie
        })
    }

    /// The bytes of the cookie.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A client's cached state for a server (RFC 7413 section 4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenEntry {
    /// The cookie.
    pub cookie: Cookie,
    /// The MSS that the server announced, in bytes; `None` if the server announced none.
    pub mss_bytes: Option<u16>,
}

/// State that only Fast Open needs.
#[derive(Debug, Default)]
pub(super) struct FastOpenState {
    /// At a client, the cached entry. At a server, the valid cookie.
    entry: Option<FastOpenEntry>,
    /// Whether the server's SYN-ACK carries the cookie.
    grants: bool,
    /// Whether a server exchanges data before its handshake completes.
    early: bool,
    /// The cookie that the server issued, with its MSS.
    granted: Option<FastOpenEntry>,
    /// Payload bytes sent with our SYN.
    pub(super) syn_bytes: u64,
    /// Payload bytes of a SYN that its receiver accepted, at either end.
    pub(super) accepted_bytes: u64,
}

/// The Fast Open option of a segment. The outer `None`: no option, or a cookie of invalid length (RFC 7413 section
/// 2.2). The inner `None`: a cookie request.
fn option_of(segment: &Segment<'_>) -> Option<Option<Cookie>> {
    let options = segment.options.filter(|_| segment.header.options & options::FAST_OPEN != 0)?;
    match options.fast_open_cookie.get(..usize::from(options.fast_open_bytes))? {
        [] => Some(None),
        bytes => Cookie::new(bytes).map(Some),
    }
}

impl Connection {
    /// Sets the client's cached entry for the server, before the SYN is sent. Without an entry, a client with
    /// [`crate::Config::fast_open`] requests a cookie.
    pub fn set_fast_open_entry(&mut self, entry: FastOpenEntry) {
        self.rare().fast_open.entry = Some(entry);
    }

    /// Sets the cookie that the server accepts from this client, before the SYN arrives.
    pub fn set_fast_open_cookie(&mut self, cookie: Cookie) {
        self.rare().fast_open.entry = Some(FastOpenEntry { cookie, mss_bytes: None });
    }

    /// The entry for the client's cache, with the cookie that the server issued in this handshake. `None` if the server
    /// issued none.
    pub fn fast_open_entry(&self) -> Option<FastOpenEntry> {
        self.rare.as_ref()?.fast_open.granted
    }

    /// Whether data is exchanged before the handshake completes.
    pub(super) fn is_early(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.fast_open.early)
    }

    pub(super) fn syn_bytes(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.fast_open.syn_bytes)
    }

    /// Adds the option to a client's first SYN, and data if the client has a cookie.
    pub(super) fn add_fast_open(&mut self, header: &mut TcpHeader, out: &mut SegmentContents) {
        let entry = self.rare().fast_open.entry;
        put_option(entry.map(|entry| entry.cookie), header, out);
        let Some(entry) = entry else { return };
        // The payload of a segment without options, at both ends; the options of a SYN reduce it.
        let ours = if header.mss > 0 { header.mss } else { self.config.mss_bytes.min(65_535) as u16 };
        let most = ours.min(entry.mss_bytes.unwrap_or(DEFAULT_MSS));
        let room = u32::from(most).saturating_sub(header.header_bytes() - fullpipe_wire::tcp::TCP_HEADER_BYTES);
        let length = self.sender.written.min(u64::from(room));
        header.payload_bytes = length as u16;
        if self.sender.bytes.is_some() && length > 0 {
            self.fill_bytes(
                &OutgoingSegment { start: 0, payload_bytes: length, marks: OutgoingSegment::marks(false) },
                out,
            );
        }
        self.rare().fast_open.syn_bytes = length;
    }

    /// Adds the cookie to the SYN-ACK after a cookie request or an invalid cookie.
    pub(super) fn grant_fast_open(&self, header: &mut TcpHeader, out: &mut SegmentContents) {
        if let Some(rare) = self.rare.as_ref().filter(|rare| rare.fast_open.grants) {
            put_option(rare.fast_open.entry.map(|entry| entry.cookie), header, out);
        }
    }

    /// Processes the option of a SYN in LISTEN (RFC 7413 section 4.2.2). Returns whether its cookie is valid.
    pub(super) fn judge_cookie(&mut self, segment: &Segment<'_>) -> bool {
        let Some(found) = option_of(segment).filter(|_| self.config.fast_open) else { return false };
        let fast_open = &mut self.rare().fast_open;
        let right = fast_open.entry.map(|entry| entry.cookie);
        let recognised = found.is_some() && found == right;
        fast_open.grants = right.is_some() && !recognised;
        fast_open.early = recognised;
        recognised
    }

    /// Accepts the data of a SYN with a valid cookie. The application may respond.
    pub(super) fn open_early(&mut self, now: Instant, segment: &Segment<'_>) {
        let length = u64::from(segment.header.payload_bytes);
        let mss = self.agreed_mss();
        self.sender.establish(&self.config, now, mss, None, self.sender.sack, 0);
        self.sender.tail_loss_probe = false;
        self.events |= event::CONNECTED;
        if length > 0 {
            let payload = segment.payload.filter(|bytes| bytes.len() as u64 == length);
            // The SYN-ACK acknowledges the data.
            let _ = self.receiver.on_data(&self.config, now, 0, length, false, payload);
            self.receiver.on_ack_sent();
            self.events |= event::READABLE;
        }
        self.rare().fast_open.accepted_bytes = self.receiver.in_order_bytes();
    }

    /// Sends data before the handshake completes. A FIN is delayed until then.
    #[cold]
    pub(super) fn poll_early(&mut self, now: Instant, header: &mut TcpHeader, out: &mut SegmentContents) -> bool {
        if self.state != State::SynReceived || !self.is_early() {
            return false;
        }
        let finished = std::mem::take(&mut self.sender.finished);
        let outgoing = self.sender.poll(&self.config, now);
        self.sender.finished = finished;
        match outgoing {
            Some(outgoing) => self.fill_data(now, &outgoing, header, out),
            None => return false,
        }
        true
    }

    /// Completes the handshake of a server that exchanged data during it.
    pub(super) fn end_early(&mut self) {
        self.rare().fast_open.early = false;
    }

    /// Records how much data of the client's SYN was accepted, and whether the SYN-ACK carries a cookie.
    pub(super) fn note_fast_open_answer(&mut self, segment: &Segment<'_>, taken_bytes: u64) {
        if !self.config.fast_open || !segment.header.has_flag(flags::SYN) {
            return;
        }
        let mss_bytes = mss_of(segment.header);
        let fast_open = &mut self.rare().fast_open;
        fast_open.accepted_bytes = taken_bytes;
        if let Some(Some(cookie)) = option_of(segment) {
            fast_open.granted = Some(FastOpenEntry { cookie, mss_bytes });
        }
    }
}

fn mss_of(header: &TcpHeader) -> Option<u16> {
    (header.options & options::MSS != 0).then_some(header.mss)
}

fn put_option(cookie: Option<Cookie>, header: &mut TcpHeader, out: &mut SegmentContents) {
    let bytes = cookie.as_ref().map_or(&[][..], Cookie::as_slice);
    header.options |= options::FAST_OPEN;
    header.other_option_bytes += 2 + bytes.len() as u8;
    out.options.fast_open_bytes = bytes.len() as u8;
    out.options.fast_open_cookie[..bytes.len()].copy_from_slice(bytes);
}
