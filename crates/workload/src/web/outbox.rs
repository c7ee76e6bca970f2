//! A queue of data that do not yet fit into a stream's send buffer.

use bytes::Bytes;
use fullpipe_transport::{Payload, Stream};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct SendBuffer {
    pieces: VecDeque<Payload>,
}

impl SendBuffer {
    pub(super) fn push_bytes(&mut self, bytes: Bytes) {
        self.push(Payload::Bytes(bytes));
    }

    pub(super) fn push_length(&mut self, length: u64) {
        self.push(Payload::Length(length));
    }

    fn push(&mut self, piece: Payload) {
        if !piece.is_empty() {
            self.pieces.push_back(piece);
        }
    }

    /// Writes as much as the stream accepts and returns whether the queue is empty.
    pub(super) fn flush(&mut self, stream: &mut dyn Stream) -> bool {
        while let Some(piece) = self.pieces.front_mut() {
            let written = stream.write(piece.clone());
            match piece {
                Payload::Length(length) => *length -= written.min(*length),
                Payload::Bytes(bytes) => {
                    let taken = usize::try_from(written).map_or(bytes.len(), |written| written.min(bytes.len()));
                    drop(bytes.split_to(taken));
                }
            }
            if !piece.is_empty() {
                return false;
            }
            self.pieces.pop_front();
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}
