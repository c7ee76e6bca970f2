//! Strict priority: a number of bands, each with a discipline of its own; a band is served only while all before it have
//! nothing to send.

use fullpipe_units::FlowId;
use std::collections::BTreeMap;

/// How packets are told to bands. Band 0 goes first; a number beyond the last band means the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Classifier {
    /// By transport protocol.
    Protocol {
        /// Band of TCP segments.
        tcp: usize,
        /// Band of UDP datagrams, and of all fragments.
        udp: usize,
    },
    /// By ECN bits.
    Codepoint {
        /// Band of packets that are not ECN-capable.
        not_ect: usize,
        /// Band of ECT(0).
        ect0: usize,
        /// Band of ECT(1).
        ect1: usize,
        /// Band of packets that carry "congestion experienced".
        ce: usize,
    },
    /// By size at the IP layer.
    Size {
        /// Largest size of the band, for each band but the last, rising.
        largest_bytes: Vec<u32>,
    },
    /// By flow; each direction of a conversation is a flow of its own.
    Flow {
        /// Bands of the flows named.
        bands: BTreeMap<FlowId, usize>,
        /// Band of all others, and of fragments after the first, which carry no ports.
        others: usize,
    },
}
