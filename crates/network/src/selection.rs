//! Random selection of frames, with a maximum burst length, optionally of one protocol only.
//!
//! The selection is that of quic-network-simulator's `drop-rate` and `corrupt-rate` (its README, and the behavior of
//! its models). Each frame is selected with the given probability, unless the preceding burst of selected frames has
//! the maximum length. A frame that is not selected ends the burst. Frames of other protocols are ignored and do not
//! end the burst.

use fullpipe_schema::component::choices;
use fullpipe_schema::{Choice, Field, FieldKind, Tree, Value};
use fullpipe_units::RandomStream;

pub(crate) const LARGEST_BURST: Field = Field::optional(
    "largest_burst",
    FieldKind::Integer { min: 0, max: 1_000_000_000_000_000 },
    "no limit",
    "Maximum number of consecutive frames that are selected; the next frame is not.",
)
.with_unit("frames");

const PROTOCOLS: [(Choice, FrameFilter); 2] = [
    (Choice::new("any", "all frames."), FrameFilter::All),
    (Choice::new("udp", "UDP datagrams and their fragments."), FrameFilter::Udp),
];

pub(crate) const PROTOCOL: Field = Field::default(
    "protocol",
    FieldKind::Choice(&choices(&PROTOCOLS)),
    "any",
    "Which frames are counted and can be lost.",
);

/// Which frames a model considers for selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameFilter {
    /// All frames.
    #[default]
    All,
    /// UDP datagrams and their fragments.
    Udp,
}

/// The parameters of a random selection of frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameSelection {
    /// Probability that a frame is selected.
    pub probability: f64,
    /// Maximum number of successive selected frames; `None` means no limit.
    pub largest_burst: Option<u64>,
    /// Which frames are considered; others are never selected.
    pub frames: FrameFilter,
}

/// The properties of a frame that a model can use.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameInfo {
    /// Size on the wire in bytes.
    pub wire_bytes: u32,
    /// Whether the frame carries transport payload.
    pub has_payload: bool,
    /// Whether the frame is a UDP datagram or a fragment of one.
    pub is_udp: bool,
    /// Whether the frame is known to be a QUIC Version Negotiation packet; false if its bytes are not available.
    pub is_version_negotiation: bool,
}

impl FrameSelection {
    /// Reads the keys `probability` and [`LARGEST_BURST`].
    pub(crate) fn read(tree: &Tree, frames: FrameFilter) -> Self {
        let largest_burst = tree.get("largest_burst").map(|most: &Value| most.integer() as u64);
        FrameSelection { probability: tree.number("probability"), largest_burst, frames }
    }
}

impl FrameFilter {
    /// Reads the key [`PROTOCOL`].
    pub(crate) fn read(tree: &Tree) -> Self {
        tree.choice_value("protocol", &PROTOCOLS)
    }

    pub(crate) fn include(self, frame: &FrameInfo) -> bool {
        match self {
            FrameFilter::All => true,
            FrameFilter::Udp => frame.is_udp,
        }
    }
}

/// A selection with its state.
#[derive(Clone, Debug)]
pub(crate) struct FrameSelector {
    selection: FrameSelection,
    stream: RandomStream,
    in_succession: u64,
}

impl FrameSelector {
    pub(crate) fn new(selection: FrameSelection, stream: RandomStream) -> Self {
        FrameSelector { selection, stream, in_succession: 0 }
    }

    /// Returns whether the next frame is selected. A frame with `spared` is never selected.
    pub(crate) fn chooses(&mut self, frame: &FrameInfo, spared: bool) -> bool {
        if !self.selection.frames.include(frame) {
            return false;
        }
        let may = !spared && self.selection.largest_burst.is_none_or(|most| self.in_succession < most);
        let chosen = may && self.stream.bernoulli(self.selection.probability);
        self.in_succession = if chosen { self.in_succession + 1 } else { 0 };
        chosen
    }
}

/// Returns whether a UDP payload is a QUIC Version Negotiation packet by the rule of quic-network-simulator: it has
/// more than five bytes, and the version (the second to the fifth byte) is zero.
pub(crate) fn is_version_negotiation(payload: &[u8]) -> bool {
    payload.len() > 5 && payload[1..5] == [0; 4]
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: FrameInfo =
        FrameInfo { wire_bytes: 100, has_payload: true, is_udp: true, is_version_negotiation: false };

    fn selector(probability: f64, largest_burst: Option<u64>) -> FrameSelector {
        FrameSelector::new(
            FrameSelection { probability, largest_burst, frames: FrameFilter::Udp },
            RandomStream::new(1, "link", "loss"),
        )
    }

    #[test]
    fn certain_loss_passes_one_frame_after_each_burst() {
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
    fn other_protocols_are_ignored_and_spared_frames_end_a_burst() {
        let tcp = FrameInfo { is_udp: false, ..UDP };
        let mut selector = selector(1.0, Some(2));
        assert!(!selector.chooses(&tcp, false));
        assert!(selector.chooses(&UDP, false));
        assert!(!selector.chooses(&tcp, false));
        assert!(selector.chooses(&UDP, false));
        assert!(!selector.chooses(&UDP, false), "the TCP segment between them does not end the burst of two");
        assert!(selector.chooses(&UDP, false));
        assert!(!selector.chooses(&UDP, true));
        let next: Vec<bool> = (0..3).map(|_| selector.chooses(&UDP, false)).collect();
        assert_eq!(next, [true, true, false]);
    }

    /// With p and at most b in succession, a cycle has k selected frames and one that is not, where k is geometric up
    /// to b with mean p + ... + p^b. For p = 1/2, b = 2: 3/4 of 7/4 are selected, that is 3/7 = 0.42857. Per cycle the
    /// variance of k is 1/4 + 4/4 - 9/16 = 11/16. That of the fraction, by the delta method, is Var(k - 3/7 (k + 1)) /
    /// (n / (7/4) x (7/4)^2) = (16/49 x 11/16) / (7/4 n) = 0.1283 / n: five standard deviations of 100 000 frames are
    /// 0.0057.
    #[test]
    fn a_maximum_burst_lowers_the_fraction_as_computed() {
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
    fn version_negotiation_is_detected_by_its_version() {
        assert!(is_version_negotiation(&[0x80, 0, 0, 0, 0, 8]));
        assert!(!is_version_negotiation(&[0x80, 0, 0, 0, 0]), "five bytes are too short");
        assert!(!is_version_negotiation(&[0xc0, 0, 0, 0, 1, 8]), "version 1 is not version negotiation");
    }
}
