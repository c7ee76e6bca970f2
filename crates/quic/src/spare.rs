//! A pool of empty vectors for packets that need more than a header.

use crate::space::FrameRecord;
use fullpipe_wire::quic::AckRange;
use fullpipe_wire::{QuicDatagram, QuicFrame, QuicPacket};

/// The number of vectors of each kind in the pool.
const SPARES: usize = 8;

/// A pool of empty vectors. With many losses, most acknowledgments and retransmissions have a [`QuicDatagram`]. Without
/// the pool, allocations were a sixth of all instructions.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferPool {
    pub(crate) packets: Vec<Vec<QuicPacket>>,
    pub(crate) frames: Vec<Vec<QuicFrame>>,
    pub(crate) ranges: Vec<Vec<AckRange>>,
    pub(crate) notes: Vec<FrameRecord>,
}

impl BufferPool {
    /// Returns a vector with one packet.
    pub(crate) fn one_packet(&mut self, packet: QuicPacket) -> Vec<QuicPacket> {
        let mut packets = self.packets.pop().unwrap_or_else(|| Vec::with_capacity(1));
        packets.push(packet);
        packets
    }

    /// Returns the vectors of an unused datagram to the pool.
    pub(crate) fn recycle(&mut self, datagram: QuicDatagram) {
        let mut packets = datagram.packets;
        for mut packet in packets.drain(..) {
            for frame in packet.frames.drain(..) {
                if let QuicFrame::Ack { mut ranges, .. } = frame
                    && self.ranges.len() < SPARES
                {
                    ranges.clear();
                    self.ranges.push(ranges);
                }
            }
            if self.frames.len() < SPARES {
                self.frames.push(packet.frames);
            }
        }
        if self.packets.len() < SPARES {
            self.packets.push(packets);
        }
    }
}
