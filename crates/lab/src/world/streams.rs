//! The stream numbers that applications use.
//!
//! A stream number consists of the kind of the endpoint and an index. Endpoints of TCP and of the QUIC stack carry one
//! stream, which has the endpoint's index. Streams of the QUIC model have separate indices.

use fullpipe_transport::endpoint::{EndpointId, EndpointKind};
use fullpipe_workload::StreamId;

/// The stream number that denotes a stream that could not be opened.
pub(super) const NO_STREAM: StreamId = StreamId(u32::MAX);

/// A stream by the kind of its endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamKey {
    /// The stream of the TCP endpoint with this index.
    Tcp(u32),
    /// The stream of the QUIC model with this index.
    QuicModel(u32),
    /// The stream of the QUIC stack's endpoint with this index.
    QuicStack(u32),
}

impl StreamKey {
    /// Returns the stream number that applications use.
    #[inline(always)]
    pub(super) fn id(self) -> StreamId {
        let packed = match self {
            StreamKey::Tcp(index) => EndpointId::new(EndpointKind::Tcp, index),
            StreamKey::QuicModel(index) => EndpointId::new(EndpointKind::QuicModel, index),
            StreamKey::QuicStack(index) => EndpointId::new(EndpointKind::QuicStack, index),
        };
        StreamId(packed.to_bits())
    }

    /// Returns the stream with this number; `None` if no kind of endpoint has this number.
    #[inline(always)]
    pub(super) fn of(id: StreamId) -> Option<StreamKey> {
        let packed = EndpointId::from_bits(id.0)?;
        match packed.kind() {
            EndpointKind::Tcp => Some(StreamKey::Tcp(packed.index())),
            EndpointKind::QuicModel => Some(StreamKey::QuicModel(packed.index())),
            EndpointKind::QuicStack => Some(StreamKey::QuicStack(packed.index())),
            EndpointKind::Kernel | EndpointKind::Tunnel => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_different_endpoints_have_different_numbers() {
        let keys = [StreamKey::Tcp(3), StreamKey::QuicModel(3), StreamKey::QuicStack(3), StreamKey::Tcp(4)];
        for (number, key) in keys.into_iter().enumerate() {
            assert_eq!(StreamKey::of(key.id()), Some(key));
            assert!(keys[..number].iter().all(|other| other.id() != key.id()), "{key:?}");
        }
        assert_eq!(StreamKey::of(NO_STREAM), None);
        // Workloads use the numbers of TCP streams as indices of tables.
        assert_eq!(StreamKey::Tcp(3).id(), StreamId(3));
    }
}
