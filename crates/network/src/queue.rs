//! Queue limits, the drop-tail queue, and the combination of a queue discipline and a device queue with backpressure.
//!
//! An [`InterfaceQueue`] precedes a transmitter. It consists of an optional queue discipline and the device queue.
//! Without a discipline, the device queue drops packets that exceed its limit. With a discipline, the device queue
//! accepts only packets for which it has room. The others wait in the discipline, which selects the packets to drop (as
//! in the traffic control layer of ns-3, and in Linux qdiscs above a driver ring).

use crate::packet::{Packet, PacketContent, PacketHandle};
use fullpipe_record::{DropReason, Protocol};
use fullpipe_units::{Duration, EcnCodepoint, Instant, QueueLimit, Rate};
use std::collections::VecDeque;
use std::fmt;

/// The limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A number of packets.
    Packets(u64),
    /// A number of bytes on the wire.
    Bytes(u64),
    /// No limit.
    Unlimited,
}

impl Limit {
    /// Returns a limit of the bytes that a link of this rate transmits in `time`.
    pub fn from_duration(time: Duration, rate: Rate) -> Limit {
        Limit::Bytes(rate.bytes_in(time))
    }

    /// Converts a configured limit for a link of this rate.
    pub fn from_queue_limit(limit: QueueLimit, rate: Rate) -> Limit {
        match limit {
            QueueLimit::Packets(packets) => Limit::Packets(u64::from(packets)),
            QueueLimit::Bytes(bytes) => Limit::Bytes(bytes),
            QueueLimit::Time(time) => Limit::from_duration(time, rate),
            QueueLimit::Unlimited => Limit::Unlimited,
        }
    }

    /// Returns whether a packet of `wire_bytes` fits in a queue that contains this number of packets and bytes.
    #[inline(always)]
    pub fn admits(self, packets: u64, bytes: u64, wire_bytes: u32) -> bool {
        match self {
            Limit::Packets(limit) => packets < limit,
            Limit::Bytes(limit) => bytes + u64::from(wire_bytes) <= limit,
            Limit::Unlimited => true,
        }
    }
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueuedPacket {
    /// The packet.
    pub handle: PacketHandle,
    /// Size on the wire in bytes.
    pub wire_bytes: u32,
    /// Size at the IP layer in bytes.
    pub ip_bytes: u32,
    /// The key of the flow: equal for packets that a fair queue treats as one flow.
    pub key: u64,
    /// When the packet arrived.
    pub since: Instant,
    /// ECN codepoint. A discipline marks the packet with [`QueuedPacket::mark`].
    pub codepoint: EcnCodepoint,
    /// Whether the discipline has marked the packet.
    pub marked: bool,
    /// Whether the discipline dropped the packet although there was room.
    pub early: bool,
    /// Transport protocol; fragments count as UDP.
    pub protocol: Protocol,
}

impl QueuedPacket {
    /// Returns a packet that arrives at `since`.
    ///
    /// Its key is the flow, which is determined by addresses, protocol and ports. Fragments after the first have no
    /// ports, so all such fragments to one destination have the same key.
    #[doc(hidden)]
    #[inline]
    pub fn new(handle: PacketHandle, packet: &Packet, wire_bytes: u32, since: Instant) -> Self {
        let key = match packet.content {
            PacketContent::Fragment { offset_bytes: 1.., .. } => 1 << 32 | u64::from(packet.destination.0),
            _ => u64::from(packet.flow.0),
        };
        let protocol = if let PacketContent::Tcp(_) = packet.content { Protocol::Tcp } else { Protocol::Udp };
        QueuedPacket {
            handle,
            wire_bytes,
            ip_bytes: packet.ip_bytes,
            key,
            since,
            codepoint: packet.codepoint,
            marked: false,
            early: false,
            protocol,
        }
    }

    /// Sets CE ("congestion experienced") if the packet is ECN-capable. Returns whether the packet is ECN-capable. A
    /// packet that already has CE counts as marked again.
    #[inline]
    pub fn mark(&mut self) -> bool {
        let capable = self.codepoint.is_ecn_capable();
        if capable {
            self.codepoint = EcnCodepoint::Ce;
            self.marked = true;
        }
        capable
    }

    /// Returns the packet with [`QueuedPacket::early`] set.
    #[inline]
    pub(crate) fn dropped_early(self) -> Self {
        QueuedPacket { early: true, ..self }
    }

    /// Returns the reason why the packet was dropped at a queue.
    pub(crate) fn drop_reason(&self) -> DropReason {
        if self.early { DropReason::QueueDiscipline } else { DropReason::QueueFull }
    }
}

/// A queue discipline. It can reject an arriving packet if there is no room. It appends all other packets that it
/// drops, at an arrival or a departure, to `dropped`. In dropped packets for which there was room, it sets
/// [`QueuedPacket::early`].
pub trait QueueDiscipline: fmt::Debug + Send {
    /// Returns the name with which scenarios select the discipline.
    fn name(&self) -> &'static str;

    /// Adds a packet to the queue, or returns it as an error if there is no room.
    fn enqueue(
        &mut self,
        now: Instant,
        packet: QueuedPacket,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket>;

    /// Removes and returns the next packet to transmit; `None` if there is none.
    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket>;

    /// Returns the number of packets in all queues of the discipline.
    fn packets(&self) -> u64;

    /// Returns the number of bytes in all queues of the discipline.
    fn bytes(&self) -> u64;
}

/// A first-in, first-out queue that rejects packets that exceed its limit.
#[derive(Debug)]
pub struct Fifo {
    limit: Limit,
    bytes: u64,
    queue: VecDeque<QueuedPacket>,
}

impl Fifo {
    /// Returns an empty queue.
    pub fn new(limit: Limit) -> Self {
        Fifo { limit, bytes: 0, queue: VecDeque::new() }
    }

    /// Returns whether a packet of this size would be accepted.
    pub fn admits(&self, wire_bytes: u32) -> bool {
        self.limit.admits(self.queue.len() as u64, self.bytes, wire_bytes)
    }
}

impl QueueDiscipline for Fifo {
    fn name(&self) -> &'static str {
        "fifo"
    }

    fn enqueue(
        &mut self,
        _now: Instant,
        packet: QueuedPacket,
        _dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        if !self.admits(packet.wire_bytes) {
            return Err(packet);
        }
        self.bytes += u64::from(packet.wire_bytes);
        self.queue.push_back(packet);
        Ok(())
    }

    fn dequeue(&mut self, _now: Instant, _dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        let packet = self.queue.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    fn packets(&self) -> u64 {
        self.queue.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The queue discipline, if there is one, and the device queue of one transmitter.
#[derive(Debug)]
pub struct InterfaceQueue {
    discipline: Option<Box<dyn QueueDiscipline>>,
    device: Fifo,
    largest_bytes: u32,
}

impl InterfaceQueue {
    /// Returns an empty interface queue. The device queue takes a packet from the discipline when it has room for
    /// `largest_bytes`.
    pub fn new(discipline: Option<Box<dyn QueueDiscipline>>, device_limit: Limit, largest_bytes: u32) -> Self {
        InterfaceQueue { discipline, device: Fifo::new(device_limit), largest_bytes }
    }

    /// Adds a packet to the queue, or returns it as an error if there is no room.
    pub fn enqueue(
        &mut self,
        now: Instant,
        packet: QueuedPacket,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        match &mut self.discipline {
            None => self.device.enqueue(now, packet, dropped),
            Some(discipline) => {
                discipline.enqueue(now, packet, dropped)?;
                self.refill(now, dropped);
                Ok(())
            }
        }
    }

    /// Removes and returns the next packet to transmit; `None` if there is none.
    pub fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        let next = self.device.dequeue(now, dropped);
        self.refill(now, dropped);
        // If the device queue is too small for one packet, packets pass directly from the discipline to the
        // transmitter.
        next.or_else(|| self.discipline.as_mut()?.dequeue(now, dropped))
    }

    fn refill(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) {
        let Some(discipline) = &mut self.discipline else { return };
        while self.device.admits(self.largest_bytes) {
            let Some(packet) = discipline.dequeue(now, dropped) else { return };
            if let Err(too_large) = self.device.enqueue(now, packet, dropped) {
                dropped.push(too_large);
            }
        }
    }

    /// Returns the number of packets that wait in the discipline and in the device queue.
    pub fn packets(&self) -> u64 {
        self.device.packets() + self.discipline.as_ref().map_or(0, |d| d.packets())
    }

    /// Returns the number of bytes that wait in the discipline and in the device queue.
    pub fn bytes(&self) -> u64 {
        self.device.bytes() + self.discipline.as_ref().map_or(0, |d| d.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u32) -> QueuedPacket {
        QueuedPacket {
            handle: PacketHandle(number),
            wire_bytes: 100,
            ip_bytes: 82,
            key: 0,
            since: Instant::ZERO,
            codepoint: EcnCodepoint::NotEct,
            marked: false,
            early: false,
            protocol: Protocol::Udp,
        }
    }

    #[test]
    fn limits_admit_packets_up_to_their_value() {
        assert!(Limit::Packets(2).admits(1, 1 << 40, 9000));
        assert!(!Limit::Packets(2).admits(2, 0, 1));
        assert!(Limit::Bytes(250).admits(9, 150, 100));
        assert!(!Limit::Bytes(250).admits(0, 151, 100));
        // 100 ms at 100 Mbit/s: 10 Mbit = 1 250 000 bytes.
        assert_eq!(
            Limit::from_duration(Duration::from_millis(100), Rate::from_megabits_per_second(100)),
            Limit::Bytes(1_250_000)
        );
    }

    #[test]
    fn a_discipline_queues_packets_that_the_device_cannot_accept() {
        // A device queue of 2 under a discipline of 3 packets: five of seven arrivals fit while the transmitter is
        // busy.
        let mut interface = InterfaceQueue::new(Some(Box::new(Fifo::new(Limit::Packets(3)))), Limit::Packets(2), 100);
        let mut dropped = Vec::new();
        let refused: Vec<u32> = (0..7)
            .filter_map(|n| interface.enqueue(Instant::ZERO, packet(n), &mut dropped).err().map(|p| p.handle.0))
            .collect();
        assert_eq!(refused, [5, 6]);
        assert_eq!((interface.packets(), interface.bytes()), (5, 500));
        let order: Vec<u32> =
            std::iter::from_fn(|| interface.dequeue(Instant::ZERO, &mut dropped).map(|p| p.handle.0)).collect();
        assert_eq!(order, [0, 1, 2, 3, 4]);
    }
}
