//! Queues in front of the transmitters: drop-tail, and FQ-CoDel as in Linux.
//!
//! A queue contains the packets of one station in one access category that have no sequence number yet. FQ-CoDel is the
//! discipline of `fullpipe_network`; this module adds the settings of Linux (mac80211).

use crate::block_ack::Mpdu;
use fullpipe_network::packet::PacketHandle;
use fullpipe_network::{CoDelSpecification, FqCoDel, FqCoDelSpecification, Limit, QueueDiscipline, QueuedPacket};
use fullpipe_record::Protocol;
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use std::collections::VecDeque;

/// The queues of the access point for packets to stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApQueue {
    /// One FIFO per access category in front of the driver, as with the discipline `pfifo_fast`. The driver has a queue per
    /// station, which the FIFO fills up to a number of packets over all stations.
    Fifo {
        /// Limit of the FIFO in packets (Linux: 1000).
        packets: u32,
        /// Packets in the driver (ath9k: 123).
        driver_packets: u32,
    },
    /// A drop-tail queue for each station and access category.
    PerStation {
        /// Limit of each queue in packets.
        packets: u32,
    },
    /// FQ-CoDel for each station and access category (Linux since 4.11). The limits apply to all queues together; on
    /// overflow the longest flow loses packets.
    FqCoDel(ApFqCoDel),
}

impl Default for ApQueue {
    fn default() -> Self {
        ApQueue::FqCoDel(ApFqCoDel::default())
    }
}

/// Settings of FQ-CoDel at the access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApFqCoDel {
    /// Limit in packets.
    pub packets: u32,
    /// Limit in bytes at the IP layer.
    pub bytes: u64,
    /// Credit of a flow per round, in bytes.
    pub quantum_bytes: u32,
    /// The control law.
    pub codel: CoDelSpecification,
}

impl Default for ApFqCoDel {
    /// The values of mac80211: 8192 packets, 16 MiB, 300 bytes, 20 ms, 100 ms, with ECN. CoDel keeps at least the last
    /// packet of a flow.
    fn default() -> Self {
        ApFqCoDel {
            packets: 8192,
            bytes: 16 << 20,
            quantum_bytes: 300,
            codel: CoDelSpecification {
                target: Duration::from_millis(20),
                interval: Duration::from_millis(100),
                mtu_bytes: 0,
                ecn: true,
                ce_threshold: None,
            },
        }
    }
}

/// A packet that a queue has dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DroppedPacket {
    pub(crate) token: u64,
    pub(crate) ip_bytes: u32,
    /// Whether CoDel dropped it although there was room.
    pub(crate) early: bool,
}

/// The packets of a station in an access category.
#[derive(Debug)]
pub(crate) enum PacketQueue {
    DropTail { queue: VecDeque<Mpdu>, limit: u32 },
    FqCoDel(Box<FqCoDelQueue>),
}

impl PacketQueue {
    pub(crate) fn drop_tail(limit: u32) -> Self {
        PacketQueue::DropTail { queue: VecDeque::new(), limit }
    }

    pub(crate) fn fq_codel(settings: &ApFqCoDel) -> Self {
        let specification = FqCoDelSpecification {
            limit: Limit::Unlimited,
            limit_bytes: None,
            quantum_bytes: settings.quantum_bytes,
            codel: settings.codel,
        };
        PacketQueue::FqCoDel(Box::new(FqCoDelQueue {
            discipline: FqCoDel::new(specification),
            packets: Vec::new(),
            free: Vec::new(),
            dropped: Vec::new(),
        }))
    }

    /// Adds a packet. Returns false if there is no room.
    pub(crate) fn push(&mut self, now: Instant, packet: Mpdu, flow: u64, codepoint: EcnCodepoint) -> bool {
        match self {
            PacketQueue::DropTail { queue, limit } => {
                let room = queue.len() < *limit as usize;
                if room {
                    queue.push_back(packet);
                }
                room
            }
            PacketQueue::FqCoDel(queue) => queue.push(now, packet, flow, codepoint),
        }
    }

    /// Removes the next packet to transmit. Appends the packets that were dropped before it.
    #[inline]
    pub(crate) fn pop(&mut self, now: Instant, dropped: &mut Vec<DroppedPacket>) -> Option<Mpdu> {
        match self {
            PacketQueue::DropTail { queue, .. } => queue.pop_front(),
            PacketQueue::FqCoDel(queue) => queue.pop(now, dropped),
        }
    }

    pub(crate) fn packets(&self) -> u64 {
        match self {
            PacketQueue::DropTail { queue, .. } => queue.len() as u64,
            PacketQueue::FqCoDel(queue) => queue.discipline.packets(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets() == 0
    }

    /// Returns the bytes of the longest flow; 0 for a queue that is not FQ-CoDel.
    pub(crate) fn longest_flow_bytes(&self) -> u64 {
        match self {
            PacketQueue::DropTail { .. } => 0,
            PacketQueue::FqCoDel(queue) => queue.discipline.longest_flow_bytes(),
        }
    }

    /// Drops packets of the longest flow.
    pub(crate) fn relieve(&mut self, dropped: &mut Vec<DroppedPacket>) {
        if let PacketQueue::FqCoDel(queue) = self {
            queue.discipline.relieve(&mut queue.dropped);
            queue.report_dropped(dropped);
        }
    }
}

/// FQ-CoDel, and the packets to which its handles refer.
#[derive(Debug)]
pub(crate) struct FqCoDelQueue {
    discipline: FqCoDel,
    packets: Vec<Mpdu>,
    free: Vec<u32>,
    dropped: Vec<QueuedPacket>,
}

impl FqCoDelQueue {
    fn push(&mut self, now: Instant, packet: Mpdu, flow: u64, codepoint: EcnCodepoint) -> bool {
        let number = self.free.pop().unwrap_or_else(|| {
            self.packets.push(packet);
            self.packets.len() as u32 - 1
        });
        self.packets[number as usize] = packet;
        let queued = QueuedPacket {
            handle: PacketHandle::from_number(number),
            wire_bytes: packet.ip_bytes,
            ip_bytes: packet.ip_bytes,
            key: flow,
            since: now,
            codepoint,
            marked: false,
            early: false,
            protocol: Protocol::Udp,
        };
        // Without a limit of its own, the discipline neither rejects nor drops packets here.
        let accepted = self.discipline.enqueue(now, queued, &mut self.dropped).is_ok();
        if !accepted {
            self.free.push(number);
        }
        accepted
    }

    fn pop(&mut self, now: Instant, dropped: &mut Vec<DroppedPacket>) -> Option<Mpdu> {
        let next = self.discipline.dequeue(now, &mut self.dropped);
        self.report_dropped(dropped);
        let queued = next?;
        let number = queued.handle.number();
        self.free.push(number);
        Some(self.packets[number as usize].with_mark(queued.marked))
    }

    fn report_dropped(&mut self, dropped: &mut Vec<DroppedPacket>) {
        for queued in self.dropped.drain(..) {
            let number = queued.handle.number();
            self.free.push(number);
            let Mpdu { token, ip_bytes, .. } = self.packets[number as usize];
            dropped.push(DroppedPacket { token, ip_bytes, early: queued.early });
        }
    }
}
