//! The log's state of one endpoint of a connection, and the events to write when that state changes.

use super::datagram::{self, DatagramView, LargestPacketNumbers};
use super::frames::PacketEffects;
use super::metrics::{Metrics, congestion_state};
use super::words::{TransportSide, word_of};
use crate::stack::journal::PacketLogEntry;
use fullpipe_record::qlog::QlogWriter;
use fullpipe_transport::endpoint::EndpointReport;
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wire::QuicPacketType;
use std::collections::VecDeque;

/// The log's state of one endpoint of a conversation.
#[derive(Debug, Default)]
pub(super) struct ConnectionLog {
    pub(super) group: String,
    pub(super) control: String,
    pub(super) tcp: bool,
    /// Whether the endpoint's settings have been written.
    pub(super) configured: bool,
    pub(super) state: Option<&'static str>,
    pub(super) congestion: Option<&'static str>,
    pub(super) metrics: Metrics,
    /// Values that the endpoint's congestion controller reports.
    pub(super) control_values: Vec<(&'static str, f64)>,
    /// Packets (TCP) or datagrams (QUIC) sent and received.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// TCP: number of retransmission timeouts so far.
    pub(super) timeouts: u64,
    /// QUIC model: largest packet numbers sent and received, and the `ack_delay_exponent` of this endpoint and of its
    /// peer.
    pub(super) numbers: [LargestPacketNumbers; 2],
    pub(super) exponents: [Option<u8>; 2],
    /// Whether a Handshake packet was sent or received.
    pub(super) handshake: bool,
    pub(super) confirmed: bool,
    /// The side that sent the first CONNECTION_CLOSE frame.
    pub(super) closed_by: Option<TransportSide>,
    /// QUIC stack: long-header packets sent, with number, size and type, and the number of the newest path MTU probe.
    pub(super) opening: Vec<(u64, usize, QuicPacketType)>,
    pub(super) probe: Option<u64>,
    pub(super) lost_probes: u64,
    pub(super) over: bool,
}

impl ConnectionLog {
    /// Writes state and metrics that have changed. `report` is `None` if the connection has ended.
    pub(super) fn update(
        &mut self,
        writer: &mut QlogWriter,
        at: Instant,
        state: &'static str,
        report: Option<&EndpointReport>,
    ) {
        let prefix = if self.tcp { "tcp" } else { "quic" };
        if self.state != Some(state) {
            let before = self.state.replace(state);
            writer.write_event(at, &self.group, &format!("{prefix}:connection_state_updated"), |data| {
                before.iter().for_each(|before| data.text("old", before));
                data.text("new", state);
            });
            let over = matches!(state, "closing" | "draining" | "closed") && (!self.tcp || state == "closed");
            if over && !std::mem::replace(&mut self.over, true) {
                writer.write_event(at, &self.group, &format!("{prefix}:connection_closed"), |data| {
                    self.closed_by.iter().for_each(|side| data.text("initiator", side.word()));
                    if !self.tcp && self.closed_by.is_none() && state == "closed" {
                        data.text("trigger", "idle_timeout");
                    }
                });
            }
        }
        let Some((report, metrics)) = report.and_then(|report| Some((report, Metrics::of(report)?))) else { return };
        let congestion = congestion_state(report, &self.control);
        if self.congestion != Some(congestion) {
            let before = self.congestion.replace(congestion);
            writer.write_event(at, &self.group, &format!("{prefix}:congestion_state_updated"), |data| {
                before.iter().for_each(|before| data.text("old", before));
                data.text("new", congestion);
            });
        }
        let values = report.control_values.iter();
        let changed: Vec<_> = values.filter(|value| !self.control_values.contains(value)).collect();
        if metrics != self.metrics || !changed.is_empty() {
            let before = std::mem::replace(&mut self.metrics, metrics);
            writer.write_event(at, &self.group, &format!("{prefix}:recovery_metrics_updated"), |data| {
                metrics.write_changes(&before, data);
                if !changed.is_empty() {
                    data.object("control", |control| {
                        changed.iter().for_each(|(name, value)| control.number(name, *value));
                    });
                }
            });
            self.control_values.clone_from(&report.control_values);
        }
    }

    /// Returns the qlog state of a QUIC connection that is not closing.
    pub(super) fn opening_state(&self) -> &'static str {
        if self.confirmed {
            "handshake_confirmed"
        } else if self.handshake {
            "handshake_started"
        } else {
            "attempted"
        }
    }

    /// Counts a packet or datagram, and returns its number.
    pub(super) fn count(&mut self, side: TransportSide) -> u64 {
        let count = if side == TransportSide::Local { &mut self.sent } else { &mut self.received };
        *count += 1;
        *count - 1
    }

    pub(super) fn lost(
        &self,
        writer: &mut QlogWriter,
        at: Instant,
        packet_type: QuicPacketType,
        number: u64,
        mtu_probe: bool,
        trigger: Option<&str>,
    ) {
        writer.write_event(at, &self.group, "quic:packet_lost", |data| {
            data.object("header", |header| {
                header.text("packet_type", datagram::type_word(packet_type));
                header.unsigned("packet_number", number);
            });
            if mtu_probe {
                data.boolean("is_mtu_probe_packet", true);
            }
            trigger.iter().for_each(|trigger| data.text("trigger", trigger));
        });
    }

    /// Writes `recovery_parameters_set`; `initial_packets` is `None` without congestion control.
    pub(super) fn recovery_parameters(
        &self,
        writer: &mut QlogWriter,
        at: Instant,
        mtu_bytes: u64,
        initial_packets: Option<u64>,
    ) {
        writer.write_event(at, &self.group, "quic:recovery_parameters_set", |data| {
            data.unsigned("max_datagram_size", mtu_bytes);
            if let Some(packets) = initial_packets {
                data.unsigned("initial_congestion_window", mtu_bytes.saturating_mul(packets));
            }
            data.text("congestion_control", &self.control);
        });
    }

    /// Writes `parameters_set` for the QUIC stack, based on the stack's settings, because the stack does not report the
    /// parameters that it sends. `windows` are the receive windows of the connection and of a stream in bytes.
    pub(super) fn stack_parameters(&self, writer: &mut QlogWriter, at: Instant, idle: Duration, windows: [u64; 2]) {
        writer.write_event(at, &self.group, "quic:parameters_set", |data| {
            data.text("initiator", TransportSide::Local.word());
            data.unsigned("max_idle_timeout", idle.as_nanos() / 1_000_000);
            data.unsigned("initial_max_data", windows[0]);
            for kind in ["bidi_local", "bidi_remote", "uni"] {
                data.unsigned(&format!("initial_max_stream_data_{kind}"), windows[1]);
            }
            data.array("unknown_parameters", |_| {});
        });
    }

    /// Records the effects of a packet on the state of the connection.
    fn note(&mut self, side: TransportSide, packet_type: QuicPacketType, meaning: PacketEffects) {
        self.handshake |= packet_type == QuicPacketType::Handshake;
        self.confirmed |= meaning.confirms;
        if meaning.closes {
            self.closed_by.get_or_insert(side);
        }
    }

    /// Writes the entries of the QUIC stack's packet log in order.
    pub(super) fn write_journal(&mut self, writer: &mut QlogWriter, at: Instant, journal: Vec<PacketLogEntry>) {
        let mut made = Vec::new();
        let mut unread: VecDeque<UnreadDatagram> = VecDeque::new();
        for entry in journal {
            match entry {
                PacketLogEntry::DatagramReceived { bytes, codepoint } => {
                    let id = self.count(TransportSide::Remote);
                    unread.push_back(UnreadDatagram { id, bytes, unread_bytes: bytes, codepoint });
                }
                PacketLogEntry::PacketReceived(packet) => {
                    // The stack reads datagrams in order, so those before the packet's datagram are complete.
                    while unread.front().is_some_and(|front| !front.may_hold(&packet)) {
                        self.write_unread(writer, at, unread.pop_front());
                    }
                    let front = unread.front_mut().map(|front| {
                        front.unread_bytes -= packet.bytes;
                        *front
                    });
                    let UnreadDatagram { id, bytes, codepoint, .. } = front.unwrap_or_default();
                    let (side, bytes) = (TransportSide::Remote, bytes as u64);
                    let carried = DatagramView { at, group: &self.group, side, id, codepoint, bytes };
                    let meaning = datagram::of_stack(writer, &carried, &packet);
                    self.note(side, datagram::type_of(&packet.header), meaning);
                }
                PacketLogEntry::PacketSent(packet) => made.push(packet),
                PacketLogEntry::DatagramSent { bytes, codepoint } => {
                    let id = self.count(TransportSide::Local);
                    for packet in made.drain(..) {
                        let side = TransportSide::Local;
                        let carried = DatagramView { at, group: &self.group, side, id, codepoint, bytes: bytes as u64 };
                        let meaning = datagram::of_stack(writer, &carried, &packet);
                        let packet_type = datagram::type_of(&packet.header);
                        self.note(side, packet_type, meaning);
                        if packet_type != QuicPacketType::OneRtt {
                            self.opening.push((packet.number, packet.bytes, packet_type));
                        } else if meaning.probes {
                            self.probe = Some(packet.number);
                        }
                    }
                }
                PacketLogEntry::PacketLost { number, bytes } => {
                    let of_opening =
                        |sent: &&(u64, usize, QuicPacketType)| sent.0 == number && sent.1 == usize::from(bytes);
                    let packet_type =
                        self.opening.iter().find(of_opening).map_or(QuicPacketType::OneRtt, |sent| sent.2);
                    self.lost(writer, at, packet_type, number, false, None);
                }
            }
        }
        for datagram in unread {
            self.write_unread(writer, at, Some(datagram));
        }
    }

    /// Writes `packet_dropped` for a complete datagram in which the stack could read no packet.
    fn write_unread(&self, writer: &mut QlogWriter, at: Instant, datagram: Option<UnreadDatagram>) {
        let Some(UnreadDatagram { id, bytes, codepoint, .. }) =
            datagram.filter(|datagram| datagram.unread_bytes == datagram.bytes)
        else {
            return;
        };
        writer.write_event(at, &self.group, "quic:packet_dropped", |data| {
            data.object("raw", |raw| raw.unsigned("length", bytes as u64));
            data.unsigned("datagram_id", id & u64::from(u32::MAX));
            data.text("ecn", word_of(codepoint));
        });
    }
}

/// A received datagram that the QUIC stack has not completely read.
#[derive(Clone, Copy, Debug, Default)]
struct UnreadDatagram {
    id: u64,
    bytes: usize,
    unread_bytes: usize,
    codepoint: EcnCodepoint,
}

impl UnreadDatagram {
    /// Returns whether a packet can be the next of this datagram. The stack can receive several datagrams before it
    /// reads the first. A packet with a short header distinguishes them, because it is the last packet of its datagram
    /// (RFC 9000 section 12.2).
    fn may_hold(&self, packet: &crate::stack::journal::PlaintextPacket) -> bool {
        let ends = datagram::type_of(&packet.header) == QuicPacketType::OneRtt;
        packet.bytes == self.unread_bytes || packet.bytes < self.unread_bytes && !ends
    }
}
