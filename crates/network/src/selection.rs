//! Frames chosen at random, with a limit to how many in succession, and only those of one protocol; and damage to one byte
//! of a chosen UDP datagram's payload.
//!
//! The selection is that of quic-network-simulator's `drop-rate` and `corrupt-rate` (its README, and the behaviour of its
//! models): if as many frames in succession as the limit were chosen, the next is not; otherwise it is with the
//! probability. A frame that is not chosen ends the succession. Frames of other protocols are not looked at and end none.

use fullpipe_units::Stream;

/// Which frames a model looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// All.
    #[default]
    All,
    /// UDP datagrams, and the fragments of them.
    Udp,
}

/// How frames are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// Probability per frame.
    pub probability: f64,
    /// Most frames in succession; `None`: no limit.
    pub largest_burst: Option<u64>,
    /// The others are never chosen.
    pub frames: Frames,
}

/// Damage to one byte of a UDP datagram's payload, behind the checksum's back: the checksum is made right again, so that
/// the receiver gets the datagram and only what protects its content (QUIC's packet protection) can tell.
///
/// A real program's datagram gets one byte at a uniformly chosen place among the first `window_bytes` of its payload
/// replaced by a uniformly chosen other value. Payload of the model has no bytes: such a datagram, and a fragment, arrives
/// as one in which bits were flipped, and its receiver refuses it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PayloadCorruption {
    /// Which datagrams; whatever its `frames`, only UDP.
    pub selection: Selection,
    /// How far into the payload the byte may lie.
    pub window_bytes: u32,
    /// Whether QUIC's version negotiation packets (RFC 8999 section 6) are never chosen, and end a succession.
    pub spare_version_negotiation: bool,
    /// Whether the damaged datagram travels on; otherwise the far end of the link drops it.
    pub delivered: bool,
}

/// What a model may know of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) wire_bytes: u32,
    pub(crate) has_payload: bool,
    pub(crate) is_udp: bool,
    /// A QUIC version negotiation packet, as far as its bytes are there to tell.
    pub(crate) is_version_negotiation: bool,
}

impl Frames {
    pub(crate) fn include(self, frame: &Frame) -> bool {
        match self {
            Frames::All => true,
            Frames::Udp => frame.is_udp,
        }
    }
}

/// A selection at work.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    selection: Selection,
    stream: Stream,
    in_succession: u64,
}

impl Selector {
    pub(crate) fn new(selection: Selection, stream: Stream) -> Self {
        Selector { selection, stream, in_succession: 0 }
    }

    /// Whether the next frame is chosen. `spared`: it must not be.
    pub(crate) fn chooses(&mut self, frame: &Frame, spared: bool) -> bool {
        if !self.selection.frames.include(frame) {
            return false;
        }
        let may = !spared && self.selection.largest_burst.is_none_or(|most| self.in_succession < most);
        let chosen = may && self.stream.chance(self.selection.probability);
        self.in_succession = if chosen { self.in_succession + 1 } else { 0 };
        chosen
    }
}

/// A payload corruption at work.
#[derive(Clone, Debug)]
pub(crate) struct PayloadCorruptor {
    pub(crate) corruption: PayloadCorruption,
    selector: Selector,
    bytes: Stream,
}

impl PayloadCorruptor {
    pub(crate) fn new(corruption: PayloadCorruption, choice: Stream, bytes: Stream) -> Self {
        let selection = Selection { frames: Frames::Udp, ..corruption.selection };
        PayloadCorruptor { corruption, selector: Selector::new(selection, choice), bytes }
    }

    pub(crate) fn chooses(&mut self, frame: &Frame) -> bool {
        self.selector.chooses(frame, self.corruption.spare_version_negotiation && frame.is_version_negotiation)
    }

    /// A place in a payload of this length, and what is added there to the byte modulo 256: never nothing. `None` if there
    /// is no byte.
    pub(crate) fn damage(&mut self, payload_bytes: usize) -> Option<(usize, u8)> {
        let window = payload_bytes.min(self.corruption.window_bytes as usize);
        if window == 0 {
            return None;
        }
        Some((self.bytes.below(window as u64) as usize, 1 + self.bytes.below(255) as u8))
    }
}

/// Whether a UDP payload is a version negotiation packet of QUIC as the simulator tells it: more than five bytes, of which
/// the second to the fifth, the version's, are zero.
pub(crate) fn is_version_negotiation(payload: &[u8]) -> bool {
    payload.len() > 5 && payload[1..5] == [0; 4]
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: Frame = Frame { wire_bytes: 100, has_payload: true, is_udp: true, is_version_negotiation: false };

    fn selector(probability: f64, largest_burst: Option<u64>) -> Selector {
        Selector::new(Selection { probability, largest_burst, frames: Frames::Udp }, Stream::new(1, "link", "loss"))
    }

    #[test]
    fn certain_loss_lets_one_through_after_each_burst() {
        let chosen = |largest: Option<u64>| {
            let mut selector = selector(1.0, largest);
            (0..9).map(|_| selector.chooses(&UDP, false)).collect::<Vec<_>>()
        };
        let (x, o) = (true, false);
        assert_eq!(chosen(Some(2)), [x, x, o, x, x, o, x, x, o]);
        assert_eq!(chosen(Some(0)), [o; 9]);
        assert_eq!(chosen(None), [x; 9]);
    }

    #[test]
    fn other_protocols_are_not_looked_at_and_spared_ones_end_a_burst() {
        let tcp = Frame { is_udp: false, ..UDP };
        let mut selector = selector(1.0, Some(2));
        assert!(!selector.chooses(&tcp, false));
        assert!(selector.chooses(&UDP, false));
        assert!(!selector.chooses(&tcp, false));
        assert!(selector.chooses(&UDP, false));
        assert!(!selector.chooses(&UDP, false), "the segment between them has not ended the burst of two");
        assert!(selector.chooses(&UDP, false));
        assert!(!selector.chooses(&UDP, true));
        let next: Vec<bool> = (0..3).map(|_| selector.chooses(&UDP, false)).collect();
        assert_eq!(next, [true, true, false]);
    }

    /// With p and at most b in a row, a cycle is k chosen ones and one that is not, k geometric up to b: of mean
    /// p + ... + p^b. For p = 1/2, b = 2: 3/4 chosen of 7/4, that is 3/7 = 0.42857. Per cycle the variance of k is
    /// 1/4 + 4/4 - 9/16 = 11/16; that of the share, by the delta method, Var(k - 3/7 (k + 1)) / (n / (7/4) x (7/4)^2) =
    /// (16/49 x 11/16) / (7/4 n) = 0.1283 / n: five deviations of 100 000 are 0.0057.
    #[test]
    fn a_largest_burst_lowers_the_share_as_the_chain_says() {
        let mut selector = selector(0.5, Some(2));
        let mut longest = 0;
        let mut run = 0;
        let chosen = (0..100_000)
            .filter(|_| {
                let chosen = selector.chooses(&UDP, false);
                run = if chosen { run + 1 } else { 0 };
                longest = longest.max(run);
                chosen
            })
            .count();
        let share = chosen as f64 / 1e5;
        assert!((share - 3.0 / 7.0).abs() < 0.0057, "{share}");
        assert_eq!(longest, 2);
    }

    #[test]
    fn damage_reaches_every_place_of_the_window_and_always_changes_the_byte() {
        let corruption = PayloadCorruption {
            selection: Selection { probability: 1.0, largest_burst: None, frames: Frames::All },
            window_bytes: 51,
            spare_version_negotiation: true,
            delivered: true,
        };
        let stream = |purpose| Stream::new(1, "link", purpose);
        let mut corruptor = PayloadCorruptor::new(corruption, stream("a"), stream("b"));
        let mut places = [0u32; 51];
        let mut changes = [0u32; 256];
        for _ in 0..51_000 {
            let (place, change) = corruptor.damage(1200).unwrap();
            places[place] += 1;
            changes[usize::from(change)] += 1;
        }
        // Binomial: mean 1000, deviation 31.3; of the changes mean 200, deviation 14.1. Six of them.
        assert!(places.iter().all(|count| (812..1188).contains(count)), "{places:?}");
        assert_eq!(changes[0], 0);
        assert!(changes[1..].iter().all(|count| (115..285).contains(count)), "{changes:?}");
        // A short payload is never left.
        assert!((0..1000).all(|_| corruptor.damage(3).unwrap().0 < 3));
        assert_eq!(corruptor.damage(0), None);
        // Whoever asks for all frames gets datagrams all the same.
        assert!(!corruptor.chooses(&Frame { is_udp: false, ..UDP }));
        assert!(corruptor.chooses(&UDP));
        assert!(!corruptor.chooses(&Frame { is_version_negotiation: true, ..UDP }));
    }

    #[test]
    fn version_negotiation_is_told_by_its_version() {
        assert!(is_version_negotiation(&[0x80, 0, 0, 0, 0, 8]));
        assert!(!is_version_negotiation(&[0x80, 0, 0, 0, 0]), "five bytes");
        assert!(!is_version_negotiation(&[0xc0, 0, 0, 0, 1, 8]), "version 1");
    }
}
