//! TCP Fast Open (RFC 7413): data with the SYN of a client that has called before.
//!
//! **Model.** A client without a cookie asks for one with an empty option on its SYN; the server's answer grants it. A
//! client with one sends it, and as much data as a segment holds, with its SYN. A server that recognises the cookie
//! hands the data to its application at once and may send the answer before the handshake is over; else it acknowledges
//! the SYN alone, grants a cookie, and the data come after the handshake as ever. A SYN that got no answer is sent again
//! without cookie and data (section 4.1.3): something on the path may not like them.
//!
//! Neither side keeps anything beyond a connection: what a client remembers of a server is handed in and out as a value,
//! and so is the cookie that a server holds to be right for this client (a function of its address and the server's
//! secret, section 4.1.2), which its host knows.

use super::{Beside, Connection, Segment, event};
use crate::sender::Outgoing;
use crate::status::State;
use fullpipe_units::Instant;
use fullpipe_wire::TcpHeader;
use fullpipe_wire::tcp::{flags, options};

/// Payload of a SYN to a server whose MSS is not known (RFC 7413 section 4.2.1).
const DEFAULT_MSS: u16 = 536;

/// A Fast Open cookie: an even number of bytes from 4 to 16 (RFC 7413 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    bytes: [u8; 16],
    length: u8,
}

impl Cookie {
    /// A cookie of these bytes; `None` if their number is not allowed.
    pub fn new(bytes: &[u8]) -> Option<Cookie> {
        let allowed = (4..=16).contains(&bytes.len()) && bytes.len().is_multiple_of(2);
        allowed.then(|| {
            let mut cookie = Cookie { bytes: [0; 16], length: bytes.len() as u8 };
            cookie.bytes[..bytes.len()].copy_from_slice(bytes);
            cookie
        })
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// What a client remembers of a server (RFC 7413 section 4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenEntry {
    /// The cookie.
    pub cookie: Cookie,
    /// The MSS that the server announced, if it did.
    pub mss_bytes: Option<u16>,
}

/// What only Fast Open needs.
#[derive(Debug, Default)]
pub(super) struct FastOpen {
    /// A client's: what it remembers. A server's: the cookie that is right.
    entry: Option<FastOpenEntry>,
    /// The server's answer carries the cookie.
    grants: bool,
    /// A server's handshake is not over, and data flow.
    early: bool,
    /// What the server granted.
    granted: Option<FastOpenEntry>,
    /// Payload bytes that went with our SYN.
    pub(super) syn_bytes: u64,
    /// Payload bytes of a SYN that were taken, at either end.
    pub(super) accepted_bytes: u64,
}

/// The option of a segment: `None` without one or with a cookie of a length that is not allowed (RFC 7413 section 2.2),
/// an inner `None` where it asks for a cookie.
fn option_of(segment: &Segment<'_>) -> Option<Option<Cookie>> {
    let options = segment.options.filter(|_| segment.header.options & options::FAST_OPEN != 0)?;
    match options.fast_open_cookie.get(..usize::from(options.fast_open_bytes))? {
        [] => Some(None),
        bytes => Cookie::new(bytes).map(Some),
    }
}

impl Connection {
    /// Gives a client what it remembers of the server, before its SYN leaves. Without it a client with
    /// [`crate::Config::fast_open`] asks for a cookie.
    pub fn set_fast_open_entry(&mut self, entry: FastOpenEntry) {
        self.rare().fast_open.entry = Some(entry);
    }

    /// Gives a server the cookie that is right for this client, before the SYN arrives.
    pub fn set_fast_open_cookie(&mut self, cookie: Cookie) {
        self.rare().fast_open.entry = Some(FastOpenEntry { cookie, mss_bytes: None });
    }

    /// What the server granted in this handshake, for a client to remember.
    pub fn fast_open_entry(&self) -> Option<FastOpenEntry> {
        self.rare.as_ref()?.fast_open.granted
    }

    /// Whether data flow though the handshake is not over.
    pub(super) fn is_early(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.fast_open.early)
    }

    pub(super) fn syn_bytes(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.fast_open.syn_bytes)
    }

    /// A client's SYN leaves for the first time, with the option, and with data if it has a cookie.
    pub(super) fn add_fast_open(&mut self, header: &mut TcpHeader, out: &mut Beside) {
        let entry = self.rare().fast_open.entry;
        put_option(entry.map(|entry| entry.cookie), header, out);
        let Some(entry) = entry else { return };
        // A segment without options holds so much, here and there; the options of a SYN take their share of it.
        let ours = if header.mss > 0 { header.mss } else { self.config.mss_bytes.min(65_535) as u16 };
        let most = ours.min(entry.mss_bytes.unwrap_or(DEFAULT_MSS));
        let room = u32::from(most).saturating_sub(header.header_bytes() - fullpipe_wire::tcp::TCP_HEADER_BYTES);
        let length = self.sender.written.min(u64::from(room));
        header.payload_bytes = length as u16;
        if self.sender.bytes.is_some() && length > 0 {
            self.fill_bytes(&Outgoing { start: 0, payload_bytes: length, marks: Outgoing::marks(false) }, out);
        }
        self.rare().fast_open.syn_bytes = length;
    }

    /// A server's answer leaves, with the cookie if one was asked for or a wrong one came.
    pub(super) fn grant_fast_open(&self, header: &mut TcpHeader, out: &mut Beside) {
        if let Some(rare) = self.rare.as_ref().filter(|rare| rare.fast_open.grants) {
            put_option(rare.fast_open.entry.map(|entry| entry.cookie), header, out);
        }
    }

    /// A SYN has reached LISTEN (RFC 7413 section 4.2.2). Returns whether its cookie is right.
    pub(super) fn judge_cookie(&mut self, segment: &Segment<'_>) -> bool {
        let Some(found) = option_of(segment).filter(|_| self.config.fast_open) else { return false };
        let fast_open = &mut self.rare().fast_open;
        let right = fast_open.entry.map(|entry| entry.cookie);
        let recognised = found.is_some() && found == right;
        fast_open.grants = right.is_some() && !recognised;
        fast_open.early = recognised;
        recognised
    }

    /// The SYN's cookie is right: its data count, and the application may answer.
    pub(super) fn open_early(&mut self, now: Instant, segment: &Segment<'_>) {
        let length = u64::from(segment.header.payload_bytes);
        let mss = self.agreed_mss();
        self.sender.establish(&self.config, now, mss, None, self.sender.sack, 0);
        self.sender.tail_loss_probe = false;
        self.events |= event::CONNECTED;
        if length > 0 {
            let payload = segment.payload.filter(|bytes| bytes.len() as u64 == length);
            // The answer to the SYN acknowledges it.
            let _ = self.receiver.on_data(&self.config, now, 0, length, false, payload);
            self.receiver.on_ack_sent();
            self.events |= event::READABLE;
        }
        self.rare().fast_open.accepted_bytes = self.receiver.in_order_bytes();
    }

    /// Data before the handshake is over. A FIN waits for it.
    #[cold]
    pub(super) fn poll_early(&mut self, now: Instant, header: &mut TcpHeader, out: &mut Beside) -> bool {
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

    /// The handshake of a server that let data flow before is over.
    pub(super) fn end_early(&mut self) {
        self.rare().fast_open.early = false;
    }

    /// A client's SYN was answered: what of its data was taken, and whether a cookie was granted.
    pub(super) fn note_fast_open_answer(&mut self, segment: &Segment<'_>, taken_bytes: u64) {
        if !self.config.fast_open || !segment.header.has(flags::SYN) {
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

fn put_option(cookie: Option<Cookie>, header: &mut TcpHeader, out: &mut Beside) {
    let bytes = cookie.as_ref().map_or(&[][..], Cookie::as_slice);
    header.options |= options::FAST_OPEN;
    header.other_option_bytes += 2 + bytes.len() as u8;
    out.options.fast_open_bytes = bytes.len() as u8;
    out.options.fast_open_cookie[..bytes.len()].copy_from_slice(bytes);
}
