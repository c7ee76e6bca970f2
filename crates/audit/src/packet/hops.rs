//! A flow's way, hop by hop: what is offered to its first link was sent then, what is offered to another link arrived
//! over the one before then, and what is delivered arrived over the last.
//!
//! A frame says how large its packet is, save where short frames are padded. A packet that is larger than a link's MTU
//! goes on in pieces, each with headers of its own (RFC 791: 20 bytes; RFC 8200: 40 and 8, and only at the source). On an
//! Ethernet (a shared medium, or a link with a
//! smallest frame) a packet may be offered later than it came, because its next hop's address is being resolved.

use crate::declared::{DeclaredFlow, DeclaredLink, Medium};
use fullpipe_record::Transmission;
use fullpipe_units::LinkId;
use std::collections::VecDeque;

/// So many packets are remembered per hop (those that were dropped are, until a later one passes); beyond that the hop
/// is no longer checked.
const MAX_REMEMBERED: usize = 1 << 20;

/// Bytes of headers.
#[derive(Clone, Copy, Debug, Default)]
struct Headers {
    whole_bytes: u32,
    piece_bytes: u32,
}

const IPV4: Headers = Headers { whole_bytes: 20, piece_bytes: 20 };
const IPV6: Headers = Headers { whole_bytes: 40, piece_bytes: 48 };

/// A packet that has come to a node on the flow's way.
#[derive(Clone, Copy, Debug)]
struct Came {
    at: u64,
    size: Size,
    /// Payload of which no piece has gone on yet.
    left_bytes: u32,
}

/// Size at the IP layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    bytes: u32,
    /// The packet may be smaller: its frame was padded.
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

/// One node of the way: packets that came and have not gone on.
#[derive(Clone, Debug, Default)]
struct Place {
    came: VecDeque<Came>,
    given_up: bool,
}

/// One flow's way.
#[derive(Clone, Debug, Default)]
pub(crate) struct HopWatch {
    path: Vec<LinkId>,
    /// The source, then the far end of each link.
    places: Vec<Place>,
    ipv6: bool,
    pub(crate) checks: u64,
}

/// Where a frame or a packet should have come from and did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FromNowhere {
    /// The flow's way does not lead over this link.
    NotOnTheWay,
    /// Nothing like it came to the node before the link, at that time.
    NothingCame,
}

impl HopWatch {
    pub(crate) fn new(declared: &DeclaredFlow) -> Self {
        let DeclaredFlow { path, ipv6 } = declared;
        // A way of no links is not known.
        let places = if path.is_empty() { 0 } else { path.len() + 1 };
        HopWatch { path: path.clone(), places: vec![Place::default(); places], ipv6: *ipv6, checks: 0 }
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
    ) -> Result<(), FromNowhere> {
        if self.path.is_empty() {
            return Ok(());
        }
        self.checks += 1;
        let hop = self.path.iter().position(|id| *id == frame.link).ok_or(FromNowhere::NotOnTheWay)?;
        let size = Size::of(frame, link);
        let headers = self.headers();
        self.places[hop + 1].comes(frame.arrival.as_nanos(), size, headers);
        let cuts = (hop == 0 || !self.ipv6).then_some(headers);
        let known = self.places[hop].goes_on(frame.offered.as_nanos(), size, link, in_order, cuts);
        if known { Ok(()) } else { Err(FromNowhere::NothingCame) }
    }

    /// A link has made a copy, which comes to its end at `at`.
    pub(crate) fn duplicated(&mut self, at: u64, ip_bytes: u32, link: LinkId) {
        let headers = self.headers();
        if let Some(hop) = self.path.iter().position(|id| *id == link) {
            self.places[hop + 1].comes(at, Size::exactly(ip_bytes), headers);
        }
    }

    pub(crate) fn delivered(&mut self, at: u64, ip_bytes: u32) -> Result<(), FromNowhere> {
        let Some(destination) = self.places.last_mut() else { return Ok(()) };
        self.checks += 1;
        // With fragments it is the last one whose arrival delivers the packet.
        if destination.ends(at, ip_bytes) { Ok(()) } else { Err(FromNowhere::NothingCame) }
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
            // Where frames overtake, one told later may come earlier.
            let place = self.came.partition_point(|came| came.at <= at);
            self.came.insert(place, Came { at, size, left_bytes });
        }
    }

    /// A packet goes on over `link`, or a piece of one where packets are cut; false if nothing like it came.
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
        let waits = link.medium == Medium::HalfDuplex || link.min_frame_bytes > 0;
        if !waits && in_order {
            // What came before and did not go on was dropped.
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

    /// A packet is delivered; false if nothing arrived that could be its end.
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
