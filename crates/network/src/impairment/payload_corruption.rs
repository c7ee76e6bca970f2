//! Corruption of one byte of the payload of selected UDP datagrams.

use super::settings::{
    ErrorDetection, FrameInfo, FrameModel, FrameOutcome, ImpairmentComponent, ImpairmentContext, ImpairmentModel,
    ImpairmentSettings, ImpairmentStage,
};
use crate::selection::{FrameFilter, FrameSelection, FrameSelector, LARGEST_BURST};
use fullpipe_schema::{Field, FieldKind, Table, keys};
use fullpipe_units::RandomStream;
use std::sync::Arc;

pub(super) static PAYLOAD_CORRUPTION: ImpairmentComponent = ImpairmentComponent {
    field: Field::optional(
        "payload_corruption",
        FieldKind::Table(&TABLE),
        "none",
        "Corruption of the payload of UDP datagrams that no checksum detects.",
    ),
    fill: |_| (),
    read: |_, value| {
        let tree = value.table();
        Ok(vec![Arc::new(PayloadCorruption {
            selection: FrameSelection::read(tree, FrameFilter::Udp),
            window_bytes: tree.size("window") as u32,
            spare_version_negotiation: tree.boolean("spare_version_negotiation"),
            delivered: tree.boolean("delivered"),
        })])
    },
};

static TABLE: Table = Table {
    name: "payload corruption",
    text: "Corruption of one payload byte of randomly selected UDP datagrams, with a corrected checksum, so that only the \
           protection of the content (QUIC, DTLS) can detect it. In real time, bytes of real datagrams change. A datagram of \
           the model has no bytes; its receiver rejects it.",
    fields: &[keys! {
        /// Probability that a datagram is corrupted.
        "probability": FieldKind::PROBABILITY, required;
        LARGEST_BURST;
        /// Number of bytes from the start of the payload among which the corrupted byte is selected uniformly.
        "window": FieldKind::Size { min: 1, max: 65_535 }, default "65535B";
        /// Whether QUIC Version Negotiation packets (version 0, RFC 8999), which are not protected, are exempt.
        "spare_version_negotiation": FieldKind::Boolean, default "false";
        /// Whether the corrupted datagram is forwarded to its destination; otherwise the far end of the link drops it.
        "delivered": FieldKind::Boolean, default "true";
    }],
    ..Table::EMPTY
};

/// Corruption of one byte of a UDP datagram's payload without a checksum error. The checksum is updated, so the
/// receiver accepts the datagram. Only the protection of the content (such as QUIC packet protection) can detect the
/// change.
///
/// In a datagram of a real program, one byte among the first `window_bytes` of the payload is replaced by another
/// value. Its position and its new value are uniformly random. Datagrams of the model have no payload bytes. These
/// datagrams and all fragments arrive as if bits were flipped, and the receiver drops them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PayloadCorruption {
    /// Which datagrams are selected. Only UDP datagrams are selected; [`FrameSelection::frames`] is ignored.
    pub selection: FrameSelection,
    /// Number of bytes from the start of the payload among which the corrupted byte is selected.
    pub window_bytes: u32,
    /// Whether QUIC Version Negotiation packets (RFC 8999 section 6) are never selected. If so, such a packet ends a
    /// burst of selected datagrams.
    pub spare_version_negotiation: bool,
    /// Whether the corrupted datagram is forwarded; otherwise the far end of the link drops it.
    pub delivered: bool,
}

impl ImpairmentSettings for PayloadCorruption {
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel {
        let streams = ["payload corruption", "corrupted bytes"].map(|purpose| context.random_stream(purpose));
        ImpairmentModel::Frames(ImpairmentStage::Transmission, Box::new(PayloadCorruptor::new(*self, streams)))
    }
}

#[derive(Debug)]
struct PayloadCorruptor {
    corruption: PayloadCorruption,
    selector: FrameSelector,
    bytes: RandomStream,
}

impl PayloadCorruptor {
    fn new(corruption: PayloadCorruption, [choice, bytes]: [RandomStream; 2]) -> Self {
        let selection = FrameSelection { frames: FrameFilter::Udp, ..corruption.selection };
        PayloadCorruptor { corruption, selector: FrameSelector::new(selection, choice), bytes }
    }

    fn chooses(&mut self, frame: &FrameInfo) -> bool {
        self.selector.chooses(frame, self.corruption.spare_version_negotiation && frame.is_version_negotiation)
    }
}

impl FrameModel for PayloadCorruptor {
    fn process(&mut self, frame: &FrameInfo, outcome: &mut FrameOutcome) {
        if self.chooses(frame) {
            outcome.damaged = Some(ErrorDetection::delivered(self.corruption.delivered));
        }
    }

    /// Returns a random position in the window and a nonzero addend.
    fn corrupt_payload(&mut self, payload_bytes: usize) -> Option<(usize, u8)> {
        let window = payload_bytes.min(self.corruption.window_bytes as usize);
        if window == 0 {
            return None;
        }
        Some((self.bytes.uniform_below(window as u64) as usize, 1 + self.bytes.uniform_below(255) as u8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: FrameInfo =
        FrameInfo { wire_bytes: 100, has_payload: true, is_udp: true, is_version_negotiation: false };

    #[test]
    fn damage_reaches_every_position_of_the_window_and_always_changes_the_byte() {
        let corruption = PayloadCorruption {
            selection: FrameSelection { probability: 1.0, largest_burst: None, frames: FrameFilter::All },
            window_bytes: 51,
            spare_version_negotiation: true,
            delivered: true,
        };
        let stream = |purpose| RandomStream::new(1, "link", purpose);
        let mut corruptor = PayloadCorruptor::new(corruption, [stream("a"), stream("b")]);
        let mut places = [0u32; 51];
        let mut changes = [0u32; 256];
        for _ in 0..51_000 {
            let (place, change) = corruptor.corrupt_payload(1200).unwrap();
            places[place] += 1;
            changes[usize::from(change)] += 1;
        }
        // Binomial: mean 1000, standard deviation 31.3; of the changes, mean 200, standard deviation 14.1. The bounds
        // are six of them.
        assert!(places.iter().all(|count| (812..1188).contains(count)), "{places:?}");
        assert_eq!(changes[0], 0);
        assert!(changes[1..].iter().all(|count| (115..285).contains(count)), "{changes:?}");
        // The position is within a payload that is shorter than the window.
        assert!((0..1000).all(|_| corruptor.corrupt_payload(3).unwrap().0 < 3));
        assert_eq!(corruptor.corrupt_payload(0), None);
        // A selection of all frames still selects datagrams only.
        assert!(!corruptor.chooses(&FrameInfo { is_udp: false, ..UDP }));
        assert!(corruptor.chooses(&UDP));
        assert!(!corruptor.chooses(&FrameInfo { is_version_negotiation: true, ..UDP }));
    }
}
