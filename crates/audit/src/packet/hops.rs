//! The audit of the path of a flow, hop by hop. A packet that is offered to the first link must have been sent at that
//! time. A packet that is offered to another link must have arrived over the previous link at that time. A packet that
//! is delivered must have arrived over the last link.
//!
//! The size of a packet follows from that of its frame, except where short frames are padded. A packet that exceeds a
//! link's MTU is forwarded in fragments, each with its own headers (RFC 791: 20 bytes; RFC 8200: 40 and 8 bytes, and
//! only at the source). On an Ethernet (a shared medium, or a link with a minimum frame size) a packet can be offered
//! later than it arrived, because the next hop must be resolved.

use crate::declared::{DeclaredFlow, DeclaredLink, MediumAccess};
use fullpipe_record::Transmission;
use fullpipe_units::LinkId;
use std::collections::VecDeque;

/// Maximum number of packets stored per hop. Dropped packets stay stored until a later packet is forwarded. Beyond this
/// number, the hop is no longer checked.
const MAX_REMEMBERED: usize = 1 << 20;

/// Header sizes in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Headers {
    whole_bytes: u32,
    piece_bytes: u32,
}

const IPV4: Headers = Headers { whole_bytes: 20, piece_bytes: 20 };
const IPV6: Headers = Headers { whole_bytes: 40, piece_bytes: 48 };

/// A packet that has arrived at a node on the path of the flow.
#[derive(Clone, Copy, Debug)]
struct Came {
    at: u64,
    size: Size,
    /// Payload bytes that have not been forwarded in fragments yet.
    left_bytes: u32,
}

/// Size at the IP layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    bytes: u32,
    /// Whether the packet can be smaller, because its frame was padded.
    padded: bool,
}

impl Size {
    pub(crate) fn exactly(bytes: u32) -> Self {
        Size { bytes, padded: false }
    }

    fn of(frame: &Transmission, link: &DeclaredLink) -> Self {
        let bytes = frame.wire_bytes.saturating_sub(link.framing_bytes);
        Size { bytes, padded: link.min_frame_bytes > 0 && frame.wire_bytes <= link.min_frame_bytes }
    }

    fn agrees(self, other: Size) -> bool {
        match (self.padded, other.padded) {
            (false, false) => self.bytes == other.bytes,
            (true, false) => other.bytes <= self.bytes,
            (false, true) => self.bytes <= other.bytes,
            (true, true) => true,
        }
    }
}

/// One node of the path, with the packets that arrived there and have not been forwarded.
#[derive(Clone, Debug, Default)]
struct Place {
    came: VecDeque<Came>,
    given_up: bool,
}

/// Checks the path of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct HopChecker {
    path: Vec<LinkId>,
    /// The source of the flow, followed by the far end of each link.
    places: Vec<Place>,
    ipv6: bool,
    pub(crate) checks: u64,
}

/// The reason why a frame or a packet has no origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownOrigin {
    /// The link is not on the path of the flow.
    LinkNotOnPath,
    /// No such packet arrived at that time at the node where the link starts, or at the destination.
    NoMatchingArrival,
}

impl HopChecker {
    pub(crate) fn new(declared: &DeclaredFlow) -> Self {
        let DeclaredFlow { path, ipv6 } = declared;
        // An empty path means that the path is unknown.
        let places = if path.is_empty() { 0 } else { path.len() + 1 };
        HopChecker { path: path.clone(), places: vec![Place::default(); places], ipv6: *ipv6, checks: 0 }
    }

    fn headers(&self) -> Headers {
        if self.ipv6 { IPV6 } else { IPV4 }
    }

    pub(crate) fn sent(&mut self, at: u64, ip_bytes: u32) {
        let headers = self.headers();
        if let Some(source) = self.places.first_mut() {
            source.comes(at, Size::exactly(ip_bytes), headers);
        }
    }

    pub(crate) fn transmitted(
        &mut self,
        frame: &Transmission,
        link: &DeclaredLink,
        in_order: bool,
    ) -> Result<(), UnknownOrigin> {
        if self.path.is_empty() {
            return Ok(());
        }
        self.checks += 1;
        let hop = self.path.iter().position(|id| *id == frame.link).ok_or(UnknownOrigin::LinkNotOnPath)?;
        let size = Size::of(frame, link);
        let headers = self.headers();
        self.places[hop + 1].comes(frame.arrival.as_nanos(), size, headers);
        let cuts = (hop == 0 || !self.ipv6).then_some(headers);
        let known = self.places[hop].goes_on(frame.offered.as_nanos(), size, link, in_order, cuts);
        if known { Ok(()) } else { Err(UnknownOrigin::NoMatchingArrival) }
    }

    /// Adds a copy that a link made and that arrives at its far end at `at`.
    pub(crate) fn duplicated(&mut self, at: u64, ip_bytes: u32, link: LinkId) {
        let headers = self.headers();
        if let Some(hop) = self.path.iter().position(|id| *id == link) {
            self.places[hop + 1].comes(at, Size::exactly(ip_bytes), headers);
        }
    }

    pub(crate) fn delivered(&mut self, at: u64, ip_bytes: u32) -> Result<(), UnknownOrigin> {
        let Some(destination) = self.places.last_mut() else { return Ok(()) };
        self.checks += 1;
        // The arrival of the last fragment delivers the packet.
        if destination.ends(at, ip_bytes) { Ok(()) } else { Err(UnknownOrigin::NoMatchingArrival) }
    }
}

impl Place {
    fn comes(&mut self, at: u64, size: Size, headers: Headers) {
        if self.came.len() == MAX_REMEMBERED {
            self.given_up = true;
            self.came = VecDeque::new();
        }
        if !self.given_up {
            let left_bytes = size.bytes.saturating_sub(headers.whole_bytes);
            // If frames overtake each other, a frame that is reported later can arrive earlier.
            let place = self.came.partition_point(|came| came.at <= at);
            self.came.insert(place, Came { at, size, left_bytes });
        }
    }

    /// Removes a packet that is forwarded over `link`, or a fragment of a packet. Returns false if no such packet
    /// arrived.
    fn goes_on(
        &mut self,
        offered: u64,
        size: Size,
        link: &DeclaredLink,
        in_order: bool,
        cuts: Option<Headers>,
    ) -> bool {
        if self.given_up {
            return true;
        }
        let waits = link.medium == MediumAccess::HalfDuplex || link.min_frame_bytes > 0;
        if !waits && in_order {
            // Packets that arrived earlier and have not been forwarded were dropped.
            while self.came.front().is_some_and(|came| came.at < offered) {
                self.came.pop_front();
            }
        }
        let piece_bytes = size.bytes.saturating_sub(cuts.unwrap_or_default().piece_bytes);
        let fits = |came: &Came| {
            if came.size.bytes <= link.mtu_bytes {
                return size.agrees(came.size);
            }
            cuts.is_some() && size.bytes <= link.mtu_bytes && (piece_bytes <= came.left_bytes || size.padded)
        };
        let first = self.came.partition_point(|came| came.at < offered);
        let mut found =
            self.came.range(first..).take_while(|came| came.at == offered).position(fits).map(|at| first + at);
        if waits && found.is_none() {
            found = self.came.range(..first).position(fits);
        }
        let Some(position) = found else { return false };
        let came = &mut self.came[position];
        if came.size.bytes > link.mtu_bytes && piece_bytes < came.left_bytes {
            came.left_bytes -= piece_bytes;
        } else {
            self.came.remove(position);
        }
        true
    }

    /// Removes a packet that is delivered. Returns false if no packet or last fragment arrived that could complete it.
    fn ends(&mut self, now: u64, ip_bytes: u32) -> bool {
        if self.given_up {
            return true;
        }
        while self.came.front().is_some_and(|came| came.at < now) {
            self.came.pop_front();
        }
        let ends = |came: &Came| came.size.agrees(Size::exactly(ip_bytes));
        let last_piece = |came: &Came| came.size.bytes < ip_bytes;
        let same_time = || self.came.iter().take_while(|came| came.at == now);
        let found = same_time().position(ends).or_else(|| same_time().position(last_piece));
        found.is_some_and(|position| self.came.remove(position).is_some())
    }
}
