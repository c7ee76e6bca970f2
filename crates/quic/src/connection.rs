//! A connection: its handshake, the application's access to its streams, its timers and its termination (RFC 9000
//! sections 5, 7 and 10).
//!
//! **Model.** A host passes datagrams and the time to the connection, and polls datagrams, events and two deadlines. A
//! fast path processes 1-RTT packets with one STREAM or one ACK frame. The general path processes all other packets,
//! and can also process those of the fast path.

use crate::congestion::Path;
use crate::migration::Migration;
use crate::mtu::PathMtuDiscovery;
use crate::opening::{EncryptionLevel, HandshakeState};
use crate::received::AckPolicy;
use crate::scheduler::Scheduler;
use crate::space::{FrameRecord, SentPacket, SpaceId};
use crate::status::{LostPacket, SenderSnapshot, State, Statistics};
use crate::stream::{ControlFrameState, is_unidirectional};
use crate::streams::{FlowControlWindows, Streams};
use crate::{AckFrequency, Config};
use fullpipe_congestion::Controller;
use fullpipe_transport::{CloseReason, Payload, Priority, Stream, TransportEvent};
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::quic::{MAX_VARINT, TransportParameters, varint_bytes};
use std::sync::Arc;

/// Reasons to send packets other than data and acknowledgments of it, as bits of [`Connection::unusual`].
pub(crate) mod unusual {
    /// The handshake is not confirmed.
    pub(crate) const OPENING: u16 = 1;
    /// The connection closes: only CONNECTION_CLOSE may be sent, if anything.
    pub(crate) const CLOSING: u16 = 2;
    /// Control frames are queued.
    pub(crate) const CONTROL: u16 = 4;
    /// Probes are due in the application data space.
    pub(crate) const PROBE: u16 = 8;
    /// Probes of the path's MTU may be due.
    pub(crate) const MTU: u16 = 16;
    /// A path is being validated, or a challenge requires a response.
    pub(crate) const PATH: u16 = 32;
    /// DATAGRAM frames are queued.
    pub(crate) const DATAGRAM: u16 = 64;
    /// The last stream was removed, after which the connection is to close.
    pub(crate) const FINISHED: u16 = 128;
}

/// Transport error codes (RFC 9000 section 20.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum TransportError {
    FlowControl = 0x3,
    StreamLimit = 0x4,
    StreamState = 0x5,
    FinalSize = 0x6,
    FrameEncoding = 0x7,
    TransportParameter = 0x8,
    ConnectionIdLimit = 0x9,
    Protocol = 0xa,
    InvalidToken = 0xb,
    CryptoBufferExceeded = 0xd,
}

/// The state of a close by this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CloseState {
    pub(crate) application: bool,
    pub(crate) error: u64,
    /// Whether CONNECTION_CLOSE is to be sent.
    pub(crate) due: bool,
    /// The earliest time of another CONNECTION_CLOSE in response to received packets.
    pub(crate) again_from: Instant,
}

/// State that is needed rarely, or by few connections.
#[derive(Debug)]
pub(crate) struct ColdState {
    pub(crate) close: Option<CloseState>,
    pub(crate) migration: Migration,
    /// Queued control frames that belong to no stream.
    pub(crate) notes_due: Vec<FrameRecord>,
    /// Lengths of the DATAGRAM frames to send.
    pub(crate) datagrams: std::collections::VecDeque<u64>,
    /// Lengths of the received DATAGRAM frames that the application has not fetched.
    pub(crate) datagrams_received: std::collections::VecDeque<u64>,
    /// The sequence number of the ACK_FREQUENCY frame that is in effect.
    pub(crate) ack_frequency_sequence: Option<u64>,
    /// Since when a probe of the path's MTU has waited for space in the window.
    pub(crate) probe_waits_since: Instant,
    /// When the search for the path's MTU restarts.
    pub(crate) search_at: Instant,
    /// Packets declared lost since they were last fetched; `None` if they are not recorded.
    pub(crate) losses_noted: Option<Vec<LostPacket>>,
    pub(crate) peer: PeerParameters,
}

/// The peer's transport parameters. Those of most peers equal the local ones, which the settings determine.
#[derive(Clone, Debug)]
pub(crate) enum PeerParameters {
    Unknown,
    Ours,
    Other(Box<TransportParameters>),
}

/// The state that a client stores about a server for 0-RTT (RFC 9000 section 7.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroRttEntry {
    /// The server's transport parameters.
    pub parameters: TransportParameters,
}

impl ZeroRttEntry {
    /// Returns the state that a client stores about a server with these settings.
    pub fn from_server_config(config: &Config) -> ZeroRttEntry {
        ZeroRttEntry { parameters: config.parameters() }
    }
}

/// One endpoint of a connection.
///
/// After every call that passes input, the host calls [`Connection::poll_event`] until it returns `None` and
/// [`Connection::poll_transmit`] until it returns `false`. Then it reads [`Connection::slow_timer_deadline`] and
/// [`Connection::fast_timer_deadline`].
#[derive(Debug)]
pub struct Connection {
    pub(crate) config: Arc<Config>,
    pub(crate) server: bool,
    pub(crate) state: State,
    /// See [`unusual`].
    pub(crate) unusual: u16,
    pub(crate) path: Path,
    pub(crate) data: EncryptionLevel,
    pub(crate) streams: Streams,
    pub(crate) mtu: PathMtuDiscovery,
    /// When acknowledgments in the application data space are sent.
    pub(crate) policy: AckPolicy,
    pub(crate) packet_threshold: u64,
    pub(crate) peer_max_ack_delay: Duration,
    pub(crate) peer_ack_delay_exponent: u8,
    /// The sequence number of the peer's connection ID in use.
    pub(crate) peer_connection_id: u64,
    /// The path number of the peer's current address and the local address.
    pub(crate) peer_path: u8,
    pub(crate) pto_count: u32,
    pub(crate) pto_at: Instant,
    pub(crate) idle_at: Instant,
    pub(crate) idle_timeout: Duration,
    /// Whether an ack-eliciting packet was sent since the last packet was received.
    pub(crate) sent_since_heard: bool,
    /// Whether the connection closes when all its streams have ended.
    pub(crate) closes_when_done: bool,
    /// Whether one of the deadlines in [`ColdState`] was ever set.
    pub(crate) has_rare_deadline: bool,
    /// When the closing or draining period ends.
    pub(crate) over_at: Instant,
    /// The stream to which the [`Stream`] methods apply, and the time of the call.
    selected: u32,
    now: Instant,
    pub(crate) opening: Option<Box<HandshakeState>>,
    pub(crate) rare: Box<ColdState>,
    pub(crate) statistics: Statistics,
}

impl Connection {
    /// Creates a client. The first [`Connection::poll_transmit`] returns its first flight. `known` is the stored state
    /// about the server for 0-RTT, or `None`. It has no effect unless [`Config::zero_rtt`] is set.
    pub fn client(
        config: Arc<Config>,
        controller: Box<dyn Controller>,
        now: Instant,
        known: Option<ZeroRttEntry>,
    ) -> Connection {
        let mut connection = Connection::new(config, controller, false, now);
        let client_hello_bytes = connection.config.handshake.client_hello_bytes;
        if let Some(opening) = connection.opening.as_deref_mut() {
            if let Some(initial) = &mut opening.initial {
                initial.write(client_hello_bytes);
            }
            if connection.config.zero_rtt
                && let Some(known) = known
            {
                opening.zero_rtt = true;
                connection.take_limits(&known.parameters);
                connection.streams.announce();
            }
        }
        connection
    }

    /// Creates a server for a client from which no packet has arrived yet.
    pub fn server(config: Arc<Config>, controller: Box<dyn Controller>, now: Instant) -> Connection {
        Connection::new(config, controller, true, now)
    }

    /// Replaces the stream scheduler that the settings select. Call it before any data is written.
    pub fn set_scheduler(&mut self, scheduler: Box<dyn Scheduler>) {
        self.streams.set_scheduler(scheduler);
    }

    fn new(config: Arc<Config>, controller: Box<dyn Controller>, server: bool, now: Instant) -> Connection {
        let windows = FlowControlWindows::of(&config);
        let idle_timeout = config.idle_timeout;
        let mut path = Path::new(&config, controller);
        path.update_pacing(&config);
        Connection {
            server,
            state: State::Opening,
            unusual: unusual::OPENING,
            path,
            data: EncryptionLevel::new(),
            streams: Streams::new(
                server,
                config.scheduler.create(),
                config.retransmission,
                &windows,
                config.max_streams,
                config.send_buffer_bytes,
            ),
            mtu: PathMtuDiscovery::new(config.initial_mtu_bytes, config.largest_mtu_bytes),
            policy: AckPolicy {
                every: config.ack_every_packets.max(1),
                max_delay: config.max_ack_delay,
                reordering: 1,
            },
            packet_threshold: config.packet_threshold.max(1),
            peer_max_ack_delay: Duration::from_millis(25),
            peer_ack_delay_exponent: 3,
            peer_connection_id: 0,
            peer_path: 0,
            pto_count: 0,
            pto_at: Instant::NEVER,
            idle_at: if idle_timeout.is_zero() { Instant::NEVER } else { now.saturating_add(idle_timeout) },
            idle_timeout,
            sent_since_heard: false,
            closes_when_done: false,
            has_rare_deadline: false,
            over_at: Instant::NEVER,
            selected: u32::MAX,
            now,
            opening: Some(Box::new(HandshakeState::new())),
            rare: Box::new(ColdState {
                close: None,
                migration: Migration::new(config.seed),
                notes_due: Vec::new(),
                datagrams: Default::default(),
                datagrams_received: Default::default(),
                ack_frequency_sequence: None,
                probe_waits_since: Instant::NEVER,
                search_at: Instant::NEVER,
                losses_noted: None,
                peer: PeerParameters::Unknown,
            }),
            statistics: Statistics::default(),
            config,
        }
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the connection has ended and neither sends nor processes packets.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Whether the handshake is confirmed (RFC 9001 section 4.1.2).
    pub fn is_confirmed(&self) -> bool {
        self.opening.is_none()
    }

    /// Returns the number of open streams.
    pub fn active_streams(&self) -> usize {
        self.streams.live()
    }

    /// Returns the state that a client may store for 0-RTT; `None` before the handshake is complete.
    pub fn zero_rtt_entry(&self) -> Option<ZeroRttEntry> {
        self.peer().map(|parameters| ZeroRttEntry { parameters })
    }

    /// The peer's transport parameters, once they are known.
    pub(crate) fn peer(&self) -> Option<TransportParameters> {
        match &self.rare.peer {
            PeerParameters::Unknown => None,
            PeerParameters::Ours => Some(self.config.parameters()),
            PeerParameters::Other(parameters) => Some(**parameters),
        }
    }

    /// Whether the peer's transport parameters are known.
    pub(crate) fn knows_peer(&self) -> bool {
        !matches!(self.rare.peer, PeerParameters::Unknown)
    }

    /// Opens a stream and returns its index, which is valid until the close of the stream is reported. Returns `None`
    /// if the peer currently permits no further stream of this type, or if the connection is closing or closed.
    pub fn open_stream(&mut self, now: Instant, bidirectional: bool) -> Option<u32> {
        if matches!(self.state, State::Closing | State::Draining | State::Closed) {
            return None;
        }
        // Before the peer's limits are known, this end may open as many streams as it permits the peer. Their data
        // waits.
        let is_unknown = !self.knows_peer() && self.streams.send_limit == 0;
        let opened =
            self.streams.open(bidirectional, is_unknown.then_some(self.config.max_streams), &self.windows(), now);
        if opened.is_none() {
            self.unusual |= unusual::CONTROL;
        }
        opened
    }

    /// Returns the ID of a stream (RFC 9000 section 2.1); `None` if the stream was removed.
    pub fn stream_id(&self, index: u32) -> Option<u64> {
        self.streams.get(index).map(|stream| stream.id)
    }

    /// Returns a stream for calls of the application at time `now`; `None` if the stream was removed.
    pub fn stream(&mut self, now: Instant, index: u32) -> Option<&mut dyn Stream> {
        self.streams.get(index)?;
        self.selected = index;
        self.now = now;
        Some(self)
    }

    /// Sets the priority of a stream. Has no effect if the stream was removed.
    pub fn set_priority(&mut self, index: u32, priority: Priority) {
        if let Some(stream) = self.streams.get_mut(index) {
            stream.priority = priority;
        }
    }

    /// Queues a DATAGRAM frame with this number of bytes (RFC 9221). Returns `false` if the frame exceeds the peer's
    /// limit or the current datagram size, or if the connection is not open.
    pub fn send_datagram(&mut self, bytes: u64) -> bool {
        let header = 1 + u64::from(self.config.connection_id_bytes) + 4 + 16;
        // The limit includes type, length and data of the frame.
        let frame = bytes.saturating_add(1 + u64::from(varint_bytes(bytes)));
        let fits = frame.saturating_add(header) <= u64::from(self.mtu.current());
        let taken = self.peer().is_some_and(|peer| frame <= peer.max_datagram_frame_size);
        if !fits || !taken || self.state != State::Open {
            return false;
        }
        self.rare.datagrams.push_back(bytes);
        self.unusual |= unusual::DATAGRAM;
        true
    }

    /// Removes the next received DATAGRAM frame and returns the length of its data in bytes; `None` if there is none.
    pub fn receive_datagram(&mut self) -> Option<u64> {
        self.rare.datagrams_received.pop_front()
    }

    /// Closes the connection when all streams have ended and all written data was acknowledged, or immediately if there
    /// are no streams.
    pub fn close_when_done(&mut self, now: Instant) {
        self.closes_when_done = true;
        self.close_if_done(now);
    }

    /// Closes the connection immediately with an application error code (0: no error).
    pub fn close(&mut self, now: Instant, error: u64) {
        self.close_with(now, true, error, if error == 0 { CloseReason::Finished } else { CloseReason::Aborted });
    }

    pub(crate) fn close_if_done(&mut self, now: Instant) {
        if self.closes_when_done && self.state == State::Open && self.streams.live() == 0 {
            self.close(now, 0);
        }
    }

    /// Closes the connection because the peer violated the protocol.
    #[cold]
    pub(crate) fn fail(&mut self, now: Instant, violation: TransportError) {
        self.close_with(now, false, violation as u64, CloseReason::Aborted);
    }

    #[cold]
    fn close_with(&mut self, now: Instant, application: bool, error: u64, reason: CloseReason) {
        if matches!(self.state, State::Closing | State::Draining | State::Closed) {
            return;
        }
        self.rare.close = Some(CloseState { application, error, due: true, again_from: Instant::ZERO });
        self.begin_end(now, State::Closing, reason);
    }

    /// Ends the connection. It then waits until none of its packets can be in the network (RFC 9000 section 10.2).
    pub(crate) fn begin_end(&mut self, now: Instant, state: State, reason: CloseReason) {
        self.state = state;
        self.unusual |= unusual::CLOSING;
        self.streams.close_all(reason);
        let pto = self.path.rtt.pto().saturating_add(self.peer_max_ack_delay);
        self.over_at = now.saturating_add(pto.saturating_mul(3));
        self.pto_at = Instant::NEVER;
        self.idle_at = Instant::NEVER;
        self.path.pace_at = Instant::NEVER;
        self.data.space.loss_at = Instant::NEVER;
        self.data.received.ack_at = Instant::NEVER;
        self.rare.migration.end();
        self.rare.search_at = Instant::NEVER;
        if let Some(opening) = &mut self.opening {
            for layer in [&mut opening.initial, &mut opening.handshake].into_iter().flatten() {
                layer.space.loss_at = Instant::NEVER;
            }
        }
        if state == State::Closed {
            self.over_at = Instant::NEVER;
        }
    }

    /// Applies the peer's transport parameters: limits and delays.
    pub(crate) fn take_parameters(
        &mut self,
        now: Instant,
        parameters: &TransportParameters,
    ) -> Result<(), TransportError> {
        // RFC 9000 section 18.2.
        if parameters.max_udp_payload_size < 1200
            || parameters.ack_delay_exponent > 20
            || parameters.max_ack_delay_ms >= 1 << 14
            || parameters.active_connection_id_limit < 2
            || parameters.initial_max_streams_bidi.max(parameters.initial_max_streams_uni) > 1 << 60
            || parameters.initial_max_data.max(parameters.initial_max_stream_data) > MAX_VARINT
        {
            return Err(TransportError::TransportParameter);
        }
        self.rare.peer = match *parameters == self.config.parameters() {
            true => PeerParameters::Ours,
            false => PeerParameters::Other(Box::new(*parameters)),
        };
        let refused = self.opening.as_ref().is_some_and(|opening| opening.zero_rtt && !parameters.early_data);
        if !self.server && refused {
            self.send_early_data_again();
            let bytes = self.streams.begin_anew();
            self.statistics.stream_bytes_sent -= bytes;
            self.statistics.stream_bytes_resent += bytes;
            if let Some(opening) = &mut self.opening {
                opening.zero_rtt = false;
            }
        }
        self.take_limits(parameters);
        self.peer_max_ack_delay = Duration::from_millis(parameters.max_ack_delay_ms);
        self.peer_ack_delay_exponent = parameters.ack_delay_exponent;
        self.mtu.bound(parameters.max_udp_payload_size);
        // RFC 9000 section 10.1: the smaller non-zero value applies.
        let theirs = Duration::from_millis(parameters.max_idle_timeout_ms);
        self.idle_timeout = match (self.config.idle_timeout, theirs) {
            (ours, theirs) if ours.is_zero() => theirs,
            (ours, theirs) if theirs.is_zero() => ours,
            (ours, theirs) => ours.min(theirs),
        };
        if !self.idle_timeout.is_zero() {
            self.idle_at = now.saturating_add(self.idle_timeout);
        }
        if let (Some(AckFrequency { .. }), Some(_)) = (self.config.ack_frequency, parameters.min_ack_delay_us) {
            self.note_due(FrameRecord::AckFrequency);
        }
        Ok(())
    }

    fn take_limits(&mut self, parameters: &TransportParameters) {
        self.streams.set_peer_limits(
            parameters.initial_max_data,
            parameters.initial_max_stream_data,
            parameters.initial_max_streams_bidi,
            parameters.initial_max_streams_uni,
        );
    }

    /// Schedules all 0-RTT data for retransmission, because the server rejected it or sent a Retry packet. Neither
    /// indicates congestion.
    pub(crate) fn send_early_data_again(&mut self) {
        let sent: Vec<SentPacket> = self.data.space.on_their_way().copied().collect();
        for sent in sent {
            self.notes_again(SpaceId::Data, sent.number);
        }
        let lost = self.data.space.discard();
        self.path.on_discarded(lost);
    }

    /// Queues a control frame.
    pub(crate) fn note_due(&mut self, note: FrameRecord) {
        if !self.rare.notes_due.contains(&note) {
            self.rare.notes_due.push(note);
        }
        self.unusual |= unusual::CONTROL;
    }

    /// Disables delivery-rate samples, unless the controller uses them. While they are disabled,
    /// [`SenderSnapshot::delivery_rate_bps`] is 0. Call it before the first packet is sent.
    pub fn disable_rate_samples(&mut self) {
        self.path.driver.disable_rate_samples();
    }

    /// Removes the next event, and returns it with the index of its stream; `None` if there is no event. After the
    /// close of a stream is reported, its index may be reused.
    pub fn poll_event(&mut self) -> Option<(u32, TransportEvent)> {
        let event = self.streams.poll_event();
        if let Some((_, TransportEvent::Closed(_))) = event {
            self.after_stream();
        }
        event
    }

    /// Handles the removal of a stream: limits may have changed, or it was the last stream.
    #[cold]
    fn after_stream(&mut self) {
        if self.streams.limit_due || self.streams.remote.iter().any(|kind| kind.due) {
            self.unusual |= unusual::CONTROL;
        }
        if self.closes_when_done && self.streams.live() == 0 {
            self.unusual |= unusual::FINISHED;
        }
    }

    /// Returns the path number of the peer's address, as in [`QuicHeader::path`] of datagrams from that address.
    ///
    /// [`QuicHeader::path`]: fullpipe_wire::QuicHeader
    pub fn peer_path(&self) -> u8 {
        self.peer_path
    }

    /// Whether [`Connection::poll_event`] has an event to return.
    #[inline(always)]
    pub fn has_events(&self) -> bool {
        self.streams.has_events()
    }

    /// Returns the deadline of [`Connection::handle_timeout`] for rare events: probe timeout, idle timeout, end of the
    /// connection.
    #[inline]
    pub fn slow_timer_deadline(&self) -> Instant {
        let far = self.pto_at.min(self.idle_at).min(self.over_at);
        if self.has_rare_deadline { far.min(self.rare_deadline()) } else { far }
    }

    #[cold]
    fn rare_deadline(&self) -> Instant {
        self.rare.migration.deadline().min(self.rare.search_at)
    }

    /// Returns the deadline of [`Connection::handle_timeout`] for frequent events: an acknowledgment, the pacer, a loss
    /// by the time threshold.
    #[inline]
    pub fn fast_timer_deadline(&self) -> Instant {
        let soon = self.data.received.ack_at.min(self.path.pace_at).min(self.data.space.loss_at);
        if self.opening.is_some() { self.near_deadline_of_opening(soon) } else { soon }
    }

    /// The fast deadline during the handshake. A server without credit to send can only wait for the client.
    #[cold]
    fn near_deadline_of_opening(&self, soon: Instant) -> Instant {
        let blocked =
            self.opening.as_ref().is_some_and(|opening| self.server && !opening.validated && opening.credit == 0);
        if blocked { self.data.space.loss_at.min(self.loss_of_opening()) } else { soon.min(self.loss_of_opening()) }
    }

    fn loss_of_opening(&self) -> Instant {
        let Some(opening) = &self.opening else { return Instant::NEVER };
        let of = |layer: &Option<EncryptionLevel>| layer.as_ref().map_or(Instant::NEVER, |layer| layer.space.loss_at);
        of(&opening.initial).min(of(&opening.handshake))
    }

    /// Handles all timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.over_at <= now {
            self.over_at = Instant::NEVER;
            self.state = State::Closed;
            return;
        }
        if self.path.pace_at <= now {
            self.path.pace_at = Instant::NEVER;
        }
        if self.idle_at <= now {
            // RFC 9000 section 10.1: closes silently.
            self.begin_end(now, State::Closed, CloseReason::TimedOut);
            return;
        }
        if self.data.space.loss_at <= now || self.loss_of_opening() <= now {
            self.on_loss_timer(now);
        }
        if self.pto_at <= now {
            self.on_probe_timer(now);
        }
        if self.rare.migration.deadline() <= now {
            self.on_validation_timer(now);
        }
        if self.rare.search_at <= now {
            self.rare.search_at = Instant::NEVER;
            self.unusual |= unusual::MTU;
        }
    }

    /// Restarts the idle timer. It restarts when a packet is received, and when the first ack-eliciting packet since
    /// then is sent (RFC 9000 section 10.1).
    #[inline]
    pub(crate) fn restart_idle(&mut self, now: Instant) {
        if !self.idle_timeout.is_zero() && !self.idle_at.is_never() {
            let least = self.path.rtt.pto().saturating_add(self.peer_max_ack_delay).saturating_mul(3);
            self.idle_at = now.saturating_add(self.idle_timeout.max(least));
        }
    }

    pub(crate) fn windows(&self) -> FlowControlWindows {
        FlowControlWindows::of(&self.config)
    }

    /// The level of a packet number space, if it exists: a handshake level has keys only for a time.
    pub(crate) fn layer(&mut self, id: SpaceId) -> Option<&mut EncryptionLevel> {
        match id {
            SpaceId::Data => Some(&mut self.data),
            SpaceId::Initial => self.opening.as_mut()?.initial.as_mut(),
            SpaceId::Handshake => self.opening.as_mut()?.handshake.as_mut(),
        }
    }

    /// Returns the counters since the start of the connection.
    pub fn statistics(&self) -> Statistics {
        Statistics {
            recoveries: self.path.recoveries,
            persistent_congestions: self.path.persistent,
            undone_recoveries: self.path.undone,
            mtu_bytes: u64::from(self.mtu.current()),
            ..self.statistics
        }
    }

    /// Returns a snapshot of the sender's state.
    pub fn inspect(&self) -> SenderSnapshot {
        let rtt = &self.path.rtt;
        SenderSnapshot {
            cwnd_bytes: self.path.driver.control.cwnd_bytes,
            ssthresh_bytes: self.path.driver.control.ssthresh_bytes,
            in_flight_bytes: self.path.in_flight_bytes,
            smoothed_rtt: if rtt.has_sample() { rtt.smoothed() } else { Duration::ZERO },
            min_rtt: rtt.min(),
            latest_rtt: rtt.latest(),
            pto: rtt.pto(),
            pto_count: self.pto_count,
            pacing_bps: self.path.pacing_bps(),
            delivery_rate_bps: self.path.driver.delivery_rate_bps(),
            in_recovery: self.path.in_recovery(),
            mtu_bytes: u64::from(self.mtu.current()),
            delivered_bytes: self.path.driver.delivered_bytes(),
            lost_bytes: self.path.driver.lost_bytes(),
        }
    }

    /// Records losses from now on for [`Connection::take_losses`], for example for an observer.
    pub fn record_losses(&mut self) {
        self.rare.losses_noted.get_or_insert_default();
    }

    /// Removes and returns the packets declared lost since the last call, in the order of detection. Empty unless
    /// [`Connection::record_losses`] was called.
    pub fn take_losses(&mut self) -> Vec<LostPacket> {
        self.rare.losses_noted.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Applies a parameter that the program has changed in the congestion controller. The host must then poll the
    /// connection for datagrams.
    pub fn apply_external_change(&mut self, now: Instant) {
        self.path.apply_external_change(&self.config, now);
    }

    /// Appends the named internal values of the congestion controller to `out`.
    pub fn inspect_control(&self, out: &mut Vec<(&'static str, f64)>) {
        self.path.driver.controller().inspect(out);
    }

    /// Returns the bytes in flight according to the packet records. Tests compare the result with the counter.
    pub fn count_in_flight_bytes(&self) -> u64 {
        let of = |layer: &EncryptionLevel| layer.space.on_their_way().map(|sent| u64::from(sent.bytes)).sum::<u64>();
        let opening = self.opening.iter().flat_map(|opening| [&opening.initial, &opening.handshake]);
        of(&self.data) + opening.flatten().map(of).sum::<u64>()
    }
}

impl Stream for Connection {
    fn writable_bytes(&self) -> u64 {
        let buffer = self.config.send_buffer_bytes;
        let Some(stream) = self.streams.get(self.selected) else { return 0 };
        let sending = &stream.sending;
        if sending.finished || sending.reset != ControlFrameState::NotRequested || stream.closed {
            return 0;
        }
        buffer.saturating_sub(sending.held_bytes())
    }

    fn unsent_bytes(&self) -> Option<u64> {
        self.streams.get(self.selected).map(|stream| stream.sending.written - stream.sending.sent)
    }

    fn write(&mut self, payload: Payload) -> u64 {
        let room = self.writable_bytes();
        let (now, selected) = (self.now, self.selected);
        let length = payload.len().min(room);
        if length == 0 {
            return 0;
        }
        let taken = match payload {
            Payload::Length(_) => Payload::Length(length),
            Payload::Bytes(bytes) => Payload::Bytes(bytes.slice(..length as usize)),
        };
        self.streams.write(selected, taken, now);
        length
    }

    fn write_lengths(&mut self, write_bytes: u64, most_bytes: u64) -> u64 {
        // Several writes that fit are equivalent to one write of their sum.
        let room = self.writable_bytes();
        let written = if room >= most_bytes { most_bytes } else { room - room % write_bytes.max(1) };
        self.write(Payload::Length(written))
    }

    fn set_writable_threshold(&mut self, bytes: u64) {
        let selected = self.selected;
        if let Some(stream) = self.streams.get_mut(selected) {
            stream.sending.writable_threshold = bytes;
        }
    }

    fn readable_bytes(&self) -> u64 {
        self.streams.get(self.selected).map_or(0, |stream| {
            if stream.receiving.reset || stream.receiving.stop != ControlFrameState::NotRequested {
                0
            } else {
                stream.receiving.readable_bytes()
            }
        })
    }

    fn read(&mut self, max_bytes: u64) -> Option<Payload> {
        let (selected, now) = (self.selected, self.now);
        let stream = self.streams.get_mut(selected)?;
        if stream.receiving.reset || stream.receiving.stop != ControlFrameState::NotRequested {
            return None;
        }
        let payload = stream.receiving.take(max_bytes)?;
        self.statistics.stream_bytes_read += payload.len();
        let rtt = if self.path.rtt.has_sample() { self.path.rtt.smoothed() } else { Duration::ZERO };
        self.streams.on_read(selected, payload.len(), now, rtt, &self.config);
        if self.streams.limit_due || !self.streams.control_due.is_empty() {
            self.unusual |= unusual::CONTROL;
        }
        Some(payload)
    }

    fn finish(&mut self) {
        let selected = self.selected;
        if let Some(stream) = self.streams.get_mut(selected)
            && stream.sending.reset == ControlFrameState::NotRequested
        {
            stream.sending.finished = true;
        }
        self.streams.requeue(selected);
        self.streams.settle(selected);
    }

    /// Aborts both directions: RESET_STREAM and STOP_SENDING.
    fn abort(&mut self) {
        let selected = self.selected;
        let local = self.streams.get(selected).is_some_and(|stream| self.streams.is_local(stream.id));
        let Some(stream) = self.streams.get_mut(selected) else { return };
        let one_way = is_unidirectional(stream.id);
        let (has_out, has_in) = (!one_way || local, !one_way || !local);
        if has_out && stream.sending.reset == ControlFrameState::NotRequested && !stream.sending.is_over() {
            stream.sending.reset = ControlFrameState::Due;
        }
        if has_in && stream.receiving.stop == ControlFrameState::NotRequested && !stream.receiving.is_complete() {
            stream.receiving.stop = ControlFrameState::Due;
        }
        self.streams.requeue(selected);
        self.streams.control(selected);
        self.streams.settle(selected);
        self.unusual |= unusual::CONTROL;
    }
}
