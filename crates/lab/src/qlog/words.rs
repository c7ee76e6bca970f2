//! Values of qlog fields that several kinds of events share.

use fullpipe_units::EcnCodepoint;

/// The endpoint of a connection to which an event refers, relative to the endpoint that logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransportSide {
    Local,
    Remote,
}

impl TransportSide {
    pub(super) fn word(self) -> &'static str {
        match self {
            TransportSide::Local => "local",
            TransportSide::Remote => "remote",
        }
    }

    pub(super) fn event(self) -> &'static str {
        match self {
            TransportSide::Local => "quic:packet_sent",
            TransportSide::Remote => "quic:packet_received",
        }
    }
}

/// Returns the name of an ECN codepoint in qlog.
pub(super) fn word_of(codepoint: EcnCodepoint) -> &'static str {
    match codepoint {
        EcnCodepoint::NotEct => "Not-ECT",
        EcnCodepoint::Ect1 => "ECT(1)",
        EcnCodepoint::Ect0 => "ECT(0)",
        EcnCodepoint::Ce => "CE",
    }
}
