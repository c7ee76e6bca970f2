//! The state machine of a connection (RFC 9293 section 3.10), with timestamps and window scaling (RFC 7323) and the
//! acceptance rules of RFC 5961.
//!
//! **Model.** This file opens and closes the connection. The sender ([`crate::sender`]) and the receiver
//! ([`crate::receiver`]) process the data of an open connection. The host passes received segments and the time, and
//! polls for segments, events and two deadlines. Segments of an open connection that contain only an acknowledgment or
//! the next data in order take a fast path through the checks. The general path has the same effect for any segment.

mod fast_open;
mod handshake;
mod life;
mod output;

use self::fast_open::FastOpenState;
pub use self::fast_open::{Cookie, FastOpenEntry};
use self::handshake::HandshakeState;
use self::life::ConnectionTimers;
pub use self::output::{Burst, SegmentContents, Transmit};
use crate::Config;
use crate::acknowledge::{ReceivedAck, timestamp};
use crate::ecn::{AckRequest, option_of};
use crate::receiver::{AckTiming, Receiver};
use crate::sender::Sender;
use crate::sequence::{SequenceSpace, timestamp_before};
use crate::status::{LostSegment, SenderSnapshot, State, Statistics};
use bytes::Bytes;
use fullpipe_congestion::Controller;
use fullpipe_transport::buffers::ByteStore;
use fullpipe_transport::{CloseReason, Payload, Stream, TransportEvent};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wire::tcp::{MAX_SACK_BLOCKS, flags, options};
use fullpipe_wire::{SackBlock, SegmentOptions, TcpHeader};
use std::sync::Arc;

/// A received segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The header.
    pub header: &'a TcpHeader,
    /// Options outside of the header, such as SACK blocks; `None` if the header indicates none.
    pub options: Option<&'a SegmentOptions>,
    /// The payload if it consists of bytes; `None` if only its length is modeled (`header.payload_bytes`).
    pub payload: Option<&'a Bytes>,
    /// ECN field of the packet that contained the segment.
    pub codepoint: EcnCodepoint,
}

impl<'a> Segment<'a> {
    /// Creates a segment without options outside of the header and without payload bytes, in a packet marked Not-ECT.
    pub fn from_header(header: &'a TcpHeader) -> Segment<'a> {
        Segment { header, options: None, payload: None, codepoint: EcnCodepoint::NotEct }
    }

    /// The SACK blocks of the segment.
    #[inline(always)]
    fn sacks(&self) -> &'a [SackBlock] {
        match self.options {
            None => &[],
            Some(options) => &options.sacks[..MAX_SACK_BLOCKS.min(usize::from(self.header.sack_count))],
        }
    }
}

/// Minimum time between challenge ACKs (RFC 5961 section 7; Linux `tcp_invalid_ratelimit`). Without this limit, two
/// endpoints with inconsistent states would answer each other indefinitely.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);
/// Age at which a peer's timestamp becomes invalid (RFC 7323 section 5.5: 24 days).
const TIMESTAMP_LIFETIME: Duration = Duration::from_secs(24 * 86_400);
/// What is to be sent in addition to data; bits of [`Connection::pending`].
mod pending {
    /// A SYN, with an ACK in SYN-RECEIVED.
    pub(super) const SYN: u8 = 1;
    /// An acknowledgment, with or without data.
    pub(super) const ACK: u8 = 2;
    /// A pure acknowledgment, before data.
    pub(super) const ACK_FIRST: u8 = 4;
    /// A second acknowledgment after the next one.
    pub(super) const ACK_TWICE: u8 = 8;
    /// The reset in `reply`.
    pub(super) const RESET: u8 = 16;
    /// A keep-alive probe.
    pub(super) const KEEP_ALIVE: u8 = 32;
    /// All bits that require more than a check of data and acknowledgment.
    pub(super) const UNUSUAL: u8 = SYN | ACK_FIRST | ACK_TWICE | RESET | KEEP_ALIVE;
}

/// Events not yet returned, as bits of [`Connection::events`]; the lowest bit is returned first.
mod event {
    pub(super) const CONNECTED: u8 = 1;
    pub(super) const READABLE: u8 = 2;
    pub(super) const WRITABLE: u8 = 4;
    pub(super) const PEER_FINISHED: u8 = 8;
    pub(super) const CLOSED: u8 = 16;
}

/// One end of a connection.
///
/// After every call that passes input, the host calls [`Connection::poll_event`] until it returns `None` and
/// [`Connection::poll_transmit`] until it returns `false`. It then reads the deadlines
/// ([`Connection::slow_timer_deadline`] and [`Connection::fast_timer_deadline`]).
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    state: State,
    pending: u8,
    events: u8,
    /// Options that every segment carries: timestamps or none.
    options: u8,
    /// Options of segments that take the fast path. With ECN no segment has this value.
    plain_options: u8,
    /// Window scale of our windows and of the peer's.
    window_shift: u8,
    peer_window_shift: u8,
    reason: CloseReason,
    /// Whether the handshake is complete and data can be sent in at least one direction.
    open: bool,
    numbering: SequenceSpace,
    peer_numbering: SequenceSpace,
    /// The peer's timestamp to echo, and the time at which it arrived.
    recent_timestamp: u32,
    recent_timestamp_at: Instant,
    /// Our current timestamp, and the time until which it is valid.
    clock: u32,
    clock_until: Instant,
    /// Offset of the segment that last updated the window.
    window_updated_by: u64,
    /// Largest window that the peer announced.
    largest_window: u64,
    pub(crate) sender: Sender,
    receiver: Receiver,
    /// Time at which the last segment of the connection arrived.
    last_heard_at: Instant,
    /// Deadline of the first timer in `life`.
    life_at: Instant,
    /// Free space of the send buffer below which the application is not notified.
    writable_threshold: u32,
    rare: Option<Box<Rare>>,
    opening: Option<Box<HandshakeState>>,
}

/// State that few connections need, or that is used rarely.
#[derive(Debug, Default)]
struct Rare {
    life: ConnectionTimers,
    fast_open: FastOpenState,
    /// A reset to send.
    reply: TcpHeader,
    /// Time from which a challenge ACK may be sent again.
    challenge_from: Instant,
}

impl Connection {
    /// Creates the active end. Its first [`Connection::poll_transmit`] returns a SYN.
    pub fn client(
        config: Arc<Config>,
        controller: Box<dyn Controller>,
        initial_sequence: u32,
        now: Instant,
    ) -> Connection {
        let mut connection = Connection::new(config, controller, initial_sequence, State::SynSent);
        connection.send_syn(now);
        connection
    }

    /// Creates the passive end, in state LISTEN. The first segment passed to [`Connection::handle_segment`] should be
    /// the SYN.
    pub fn server(
        config: Arc<Config>,
        controller: Box<dyn Controller>,
        initial_sequence: u32,
        now: Instant,
    ) -> Connection {
        let mut connection = Connection::new(config, controller, initial_sequence, State::Listen);
        let opening = connection.opening();
        opening.syn_sent_at = now;
        opening.passive = true;
        connection
    }

    fn new(config: Arc<Config>, controller: Box<dyn Controller>, initial_sequence: u32, state: State) -> Connection {
        Connection {
            state,
            pending: 0,
            events: 0,
            options: 0,
            plain_options: 0,
            window_shift: 0,
            peer_window_shift: 0,
            reason: CloseReason::Finished,
            open: false,
            numbering: SequenceSpace::from_syn(initial_sequence),
            peer_numbering: SequenceSpace::default(),
            recent_timestamp: 0,
            recent_timestamp_at: Instant::ZERO,
            clock: 0,
            clock_until: Instant::ZERO,
            window_updated_by: 0,
            largest_window: 0,
            sender: Sender::new(&config, controller),
            receiver: Receiver::new(&config),
            last_heard_at: Instant::ZERO,
            life_at: Instant::NEVER,
            writable_threshold: 0,
            rare: None,
            opening: Some(Box::default()),
            config,
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Processes a received segment.
    #[inline]
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment<'_>) {
        let plain = segment.header.flags & (flags::SYN | flags::FIN | flags::RST | flags::ACK) == flags::ACK;
        if !(self.open && plain && segment.header.options == self.plain_options && self.handle_plain(now, segment)) {
            self.handle_other_segment(now, segment);
        }
    }

    /// Whether a segment is the common case at an endpoint that only receives. The segment has in-order data and no new
    /// acknowledgment. No event, timer or option has to be processed. [`Connection::receive_fast_path`] then has the
    /// effect of [`Connection::handle_segment`], followed by [`Connection::poll_event`] and reading all data. The
    /// segment must have no options outside of its header and no payload bytes.
    #[inline(always)]
    pub fn is_fast_path_data(&self, now: Instant, header: &TcpHeader) -> bool {
        let receiver = &self.receiver;
        header.flags & (flags::SYN | flags::FIN | flags::RST | flags::ACK) == flags::ACK
            && self.open
            && self.state == State::Established
            && self.events == 0
            && header.payload_bytes > 0
            && header.options == self.plain_options
            && header.sequence == self.peer_numbering.to_wire(receiver.next)
            && header.acknowledgement == self.numbering.to_wire(self.sender.una)
            && (self.options == 0 || !timestamp_before(header.timestamp, self.recent_timestamp))
            && receiver.expects(now, u64::from(header.payload_bytes), self.config.min_rto)
            && receiver.next >= self.window_updated_by
            && self.sender.ecn.is_none()
    }

    /// Processes a segment that [`Connection::is_fast_path_data`] accepts, and reads all data. Returns the number of
    /// bytes read.
    #[inline(always)]
    pub fn receive_fast_path(&mut self, now: Instant, header: &TcpHeader) -> u64 {
        let start = self.receiver.next;
        self.last_heard_at = now;
        if start <= self.receiver.acknowledged && self.options != 0 {
            self.recent_timestamp = header.timestamp;
            self.recent_timestamp_at = now;
        }
        let window = u64::from(header.window) << self.peer_window_shift;
        self.window_updated_by = start;
        self.largest_window = self.largest_window.max(window);
        self.sender.on_window(Some(self.sender.una.saturating_add(window)));
        if now >= self.receiver.tune_at {
            self.tune_receiver(now, header);
        }
        let (is_due, read) = self.receiver.take_expected(&self.config, now, u64::from(header.payload_bytes));
        if is_due {
            self.pending |= pending::ACK;
        }
        read
    }

    /// Whether a segment is the common case at an endpoint that only sends. The segment acknowledges new data, and
    /// there are no losses, marks or selective acknowledgments to process. [`Connection::process_fast_path_ack`] then
    /// has the effect of [`Connection::handle_segment`]. The segment must have no options outside of its header.
    #[inline(always)]
    pub fn is_fast_path_ack(&self, header: &TcpHeader) -> bool {
        let sender = &self.sender;
        let acknowledged = header.acknowledgement.wrapping_sub(self.numbering.to_wire(sender.una));
        // This test is first because it distinguishes data from acknowledgments.
        header.payload_bytes == 0
            && header.flags & (flags::SYN | flags::FIN | flags::RST | flags::ACK) == flags::ACK
            && self.open
            && self.state == State::Established
            && header.sack_count == 0
            && header.options == self.plain_options
            && header.sequence == self.peer_numbering.to_wire(self.receiver.next)
            && acknowledged != 0
            && u64::from(acknowledged) <= sender.next - sender.una
            && (self.options == 0 || !timestamp_before(header.timestamp, self.recent_timestamp))
            && self.receiver.next >= self.window_updated_by
            // Not the acknowledgment of a FIN.
            && sender.una + u64::from(acknowledged) <= sender.written
            && sender.takes_acknowledgements()
    }

    /// Processes a segment that [`Connection::is_fast_path_ack`] accepts.
    #[inline(always)]
    pub fn process_fast_path_ack(&mut self, now: Instant, header: &TcpHeader) {
        let start = self.receiver.next;
        self.last_heard_at = now;
        if start <= self.receiver.acknowledged && self.options != 0 {
            self.recent_timestamp = header.timestamp;
            self.recent_timestamp_at = now;
        }
        let acknowledged = header.acknowledgement.wrapping_sub(self.numbering.to_wire(self.sender.una));
        let acknowledged = self.sender.una + u64::from(acknowledged);
        let window = u64::from(header.window) << self.peer_window_shift;
        self.window_updated_by = start;
        self.largest_window = self.largest_window.max(window);
        self.sender.on_window(Some(acknowledged.saturating_add(window)));
        let echoes = self.options != 0 && header.timestamp_echo != 0;
        let echo = echoes.then(|| (header.timestamp_echo, self.echo_age(now, header)));
        self.sender.take_acknowledgement(&self.config, now, acknowledged, echo);
        if !self.sender.finished && self.writable_bytes() >= u64::from(self.writable_threshold) {
            self.events |= event::WRITABLE;
        }
    }

    /// Processes segments that do not take the fast path. With ECN, no segment takes it.
    #[inline(never)]
    fn handle_other_segment(&mut self, now: Instant, segment: &Segment<'_>) {
        let header = segment.header;
        let plain = header.flags & (flags::SYN | flags::FIN | flags::RST | flags::ACK) == flags::ACK;
        let with_ecn = self.sender.ecn.is_some() && header.options & !options::ACCURATE_ECN == self.options;
        if !(self.open && plain && with_ecn && self.handle_plain_with_ecn(now, segment)) {
            self.handle_any_segment(now, segment);
        }
    }

    #[inline(never)]
    fn handle_plain_with_ecn(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        let start = self.peer_numbering.to_offset(segment.header.sequence, self.receiver.next);
        let fits = start.wrapping_add(i64::from(segment.header.payload_bytes)) <= self.receiver.limit() as i64;
        let fresh = self.options == 0 || !timestamp_before(segment.header.timestamp, self.recent_timestamp);
        if start == self.receiver.next as i64 && fits && fresh {
            self.note_ecn(segment);
        }
        self.handle_plain(now, segment)
    }

    /// The fast path for a segment with the expected numbers. Returns whether the segment had them.
    #[inline(always)]
    fn handle_plain(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        let Segment { header, payload, .. } = *segment;
        let sacks = segment.sacks();
        let start = self.peer_numbering.to_offset(header.sequence, self.receiver.next);
        let in_order = start == self.receiver.next as i64;
        let fits = start.wrapping_add(i64::from(header.payload_bytes)) <= self.receiver.limit() as i64;
        let fresh = self.options == 0 || !timestamp_before(header.timestamp, self.recent_timestamp);
        if in_order && fits && fresh {
            self.last_heard_at = now;
            if start <= self.receiver.acknowledged as i64 {
                self.note_timestamp(now, header);
            }
            if self.acknowledge(now, header, start, sacks) {
                self.receive(now, header, start, payload);
            }
            return true;
        }
        false
    }

    /// Records the ECN field of an acceptable segment, and its ECN feedback.
    #[inline(never)]
    fn note_ecn(&mut self, segment: &Segment<'_>) {
        let Some(ecn) = &mut self.sender.ecn else { return };
        ecn.sender.note(segment.header, option_of(segment.header, segment.options));
        let delayed = (!self.receiver.ack_at.is_never()).then_some(self.receiver.next);
        match ecn.receiver.on_segment(segment.header, segment.codepoint, delayed) {
            AckRequest::None => {}
            AckRequest::AckFirst => self.pending |= pending::ACK | pending::ACK_FIRST,
            AckRequest::QuickAcks => self.receiver.enter_quick(2),
            // The sender's window may hold only this segment, and a delayed acknowledgment would wait for a second.
            AckRequest::Ack if self.receiver.quick_ack.is_on() => self.pending |= pending::ACK,
            AckRequest::Ack => {}
        }
    }

    /// The checks of RFC 9293 section 3.10.7 for segments outside of the fast path.
    #[cold]
    fn handle_any_segment(&mut self, now: Instant, segment: &Segment<'_>) {
        let Segment { header, payload, .. } = *segment;
        let sacks = segment.sacks();
        match self.state {
            State::Closed => return self.answer_with_reset(header),
            State::Listen => return self.arrive_listening(now, segment),
            State::SynSent => return self.arrive_syn_sent(now, segment),
            _ => {}
        }
        let start = self.peer_numbering.to_offset(header.sequence, self.receiver.next);
        let length = i64::from(header.payload_bytes);
        let end = start.saturating_add(length).saturating_add(i64::from(header.has_flag(flags::FIN)));
        let next = self.receiver.next as i64;
        let limit = self.receiver.limit().min(i64::MAX as u64) as i64;

        // First, the sequence number, with RFC 7323's check against old segments (PAWS).
        let with_timestamp = header.options & options::TIMESTAMPS != 0;
        if self.options != 0 && !header.has_flag(flags::RST) {
            if !with_timestamp {
                return;
            }
            let old = timestamp_before(header.timestamp, self.recent_timestamp);
            if old && now.saturating_since(self.recent_timestamp_at) < TIMESTAMP_LIFETIME {
                if !header.has_flag(flags::SYN) {
                    self.receiver.note_old_segment(&self.config, start, end);
                }
                return self.object(now, length > 0);
            }
        }
        if self.state == State::SynReceived && header.has_flag(flags::SYN) && start == -1 {
            return self.arrive_second_syn(now, segment);
        }
        if start > limit || end < self.receiver.acknowledged as i64 {
            if header.has_flag(flags::RST) {
                return;
            }
            let plain_data = length > 0 && !header.has_flag(flags::SYN);
            if plain_data && header.has_flag(flags::ACK) && self.open && start <= limit {
                // The segment is a complete duplicate. The acknowledgment reports it to the sender.
                return self.receive(now, header, start, payload);
            }
            if start == -1 && header.has_flag(flags::SYN) && header.has_flag(flags::ACK) {
                self.note_repeated_answer(segment);
            }
            // The sequence number of a keep-alive probe is one too low; the probe is always answered.
            let probe = length == 0 && !header.has_flag(flags::SYN) && start == next - 1;
            return self.object(now, plain_data || probe);
        }

        // Second, RST: only the exact sequence number resets (RFC 5961 section 3.2).
        if header.has_flag(flags::RST) {
            if start == next {
                self.arrive_reset();
            } else if start > next && start <= limit {
                self.object(now, false);
            }
            return;
        }

        // Fourth, SYN: never acceptable in an open connection (RFC 5961 section 4.2); before, only the answer to our
        // SYN.
        if header.has_flag(flags::SYN) {
            return self.object(now, false);
        }

        // Fifth, ACK.
        if !header.has_flag(flags::ACK) {
            return;
        }
        self.last_heard_at = now;
        if with_timestamp && start <= self.receiver.acknowledged as i64 {
            self.note_timestamp(now, header);
        }
        if self.state == State::SynReceived && !self.complete_open(now, segment) {
            return;
        }
        if self.sender.ecn.is_some() {
            self.note_ecn(segment);
        }
        if self.acknowledge(now, header, start, sacks) {
            // Seventh and eighth, data and FIN.
            self.receive(now, header, start, payload);
        }
    }

    /// Records the peer's timestamp for the echo, unless it is older than the previous one (RFC 7323 section 4.3).
    #[inline(always)]
    fn note_timestamp(&mut self, now: Instant, header: &TcpHeader) {
        if self.options != 0 && !timestamp_before(header.timestamp, self.recent_timestamp) {
            self.recent_timestamp = header.timestamp;
            self.recent_timestamp_at = now;
        }
    }

    /// Processes the acknowledgment of a segment. Returns whether the rest of the segment is to be processed too.
    #[inline]
    fn acknowledge(&mut self, now: Instant, header: &TcpHeader, start: i64, sacks: &[SackBlock]) -> bool {
        let acknowledged = self.numbering.to_offset(header.acknowledgement, self.sender.una);
        if acknowledged > self.sender.next as i64 {
            self.object(now, false);
            return false;
        }
        if acknowledged < self.sender.una as i64 {
            // An old acknowledgment. If it is so old that it must be an attack, a challenge ACK is sent (RFC 5961
            // section 5.2).
            if acknowledged < (self.sender.una as i64).saturating_sub(self.largest_window as i64) {
                self.object(now, false);
                return false;
            }
            return true;
        }
        if self.state == State::TimeWait {
            return true;
        }
        let acknowledged = acknowledged as u64;
        let window = u64::from(header.window) << self.peer_window_shift;
        let window_end = if start >= self.window_updated_by as i64 {
            self.window_updated_by = start as u64;
            self.largest_window = self.largest_window.max(window);
            Some(acknowledged.saturating_add(window))
        } else {
            None
        };
        let data = header.payload_bytes > 0;
        if data && acknowledged == self.sender.una && sacks.is_empty() {
            // Data from a peer that has nothing new to acknowledge.
            self.sender.on_window(window_end);
            return true;
        }
        let echo = if self.options != 0 && header.timestamp_echo != 0 {
            Some((header.timestamp_echo, self.echo_age(now, header)))
        } else {
            None
        };
        let arrival = ReceivedAck {
            now,
            acknowledged,
            window_end,
            sacks: if self.sender.sack { sacks } else { &[] },
            numbering: self.numbering,
            echo,
            bare: !data && !header.has_flag(flags::FIN),
        };
        if self.sender.on_ack(&self.config, &arrival) {
            if !self.sender.finished {
                if self.writable_bytes() >= u64::from(self.writable_threshold) {
                    self.events |= event::WRITABLE;
                }
            } else if self.sender.fin_acknowledged() {
                self.fin_acknowledged(now);
            }
        }
        true
    }

    /// Processes the acknowledgment of our FIN.
    #[cold]
    fn fin_acknowledged(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.limit_half_close(now);
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.close(CloseReason::Finished),
            _ => {}
        }
    }

    /// Processes the payload and the FIN of a segment.
    #[inline]
    fn receive(&mut self, now: Instant, header: &TcpHeader, start: i64, payload: Option<&Bytes>) {
        let length = u64::from(header.payload_bytes);
        let fin = header.has_flag(flags::FIN);
        if length == 0 && !fin {
            return;
        }
        if now >= self.receiver.tune_at {
            self.tune_receiver(now, header);
        }
        let silence = self.receiver.silence(now);
        if silence >= self.config.min_rto {
            self.hear_again(silence);
        }
        if self.receiver.is_finished() {
            return self.receive_after_fin(now, fin);
        }
        let before = self.receiver.in_order_bytes();
        let twice = fin && length > 0 && self.receiver.next_is_acknowledged();
        let payload = payload.filter(|bytes| bytes.len() as u64 == length);
        match self.receiver.on_data(&self.config, now, start, length, fin, payload) {
            AckTiming::Delayed => {}
            AckTiming::Immediate => self.pending |= pending::ACK,
            AckTiming::BeforeData => self.pending |= pending::ACK | pending::ACK_FIRST,
        }
        if self.receiver.in_order_bytes() > before {
            self.events |= event::READABLE;
        }
        if self.receiver.is_finished() {
            self.peer_finished(now, twice);
        }
    }

    /// Processes data after an idle time. If this time was longer than the retransmission timeout, quick
    /// acknowledgments begin again, because the sender restarts.
    #[cold]
    fn hear_again(&mut self, silence: Duration) {
        if silence > self.sender.rtt.rto() && self.receiver.quick_ack.is_on() {
            self.receiver.begin_again();
        }
    }

    /// Lets the receive buffer grow after each round trip.
    #[inline(never)]
    fn tune_receiver(&mut self, now: Instant, header: &TcpHeader) {
        let rtt = (self.options != 0 && header.timestamp_echo != 0).then(|| self.echo_age(now, header));
        self.receiver.tune(&self.config, now, rtt);
    }

    /// Time since we sent the timestamp that this segment echoes. An age below one tick counts as one tick, because a
    /// round-trip time is positive.
    #[inline(always)]
    fn echo_age(&mut self, now: Instant, header: &TcpHeader) -> Duration {
        let ticks = u64::from(self.clock(now).wrapping_sub(header.timestamp_echo) & 0x7fff_ffff);
        self.config.timestamp_tick.saturating_mul(ticks.max(1))
    }

    /// Processes the peer's FIN once all data before it has arrived.
    #[cold]
    fn peer_finished(&mut self, now: Instant, twice: bool) {
        self.pending |= pending::ACK;
        if twice && self.config.fin_with_data_acknowledged_twice {
            self.pending |= pending::ACK_TWICE;
        }
        self.events |= event::PEER_FINISHED;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    /// Processes a segment that the peer retransmits, or sends after its FIN.
    #[cold]
    fn receive_after_fin(&mut self, now: Instant, fin: bool) {
        self.pending |= pending::ACK | pending::ACK_FIRST;
        if fin && self.state == State::TimeWait {
            self.sender.rto_at = now.saturating_add(self.config.time_wait);
        }
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.end_life();
        self.sender.rest();
        self.sender.rto_at = now.saturating_add(self.config.time_wait);
        self.sender.probe_at = Instant::NEVER;
        self.sender.reorder_at = Instant::NEVER;
        self.reason = CloseReason::Finished;
        self.events |= event::CLOSED;
    }

    fn close(&mut self, reason: CloseReason) {
        if self.events & event::CLOSED == 0 && self.state != State::TimeWait {
            self.reason = reason;
            self.events |= event::CLOSED;
        }
        self.state = State::Closed;
        self.open = false;
        self.pending &= pending::RESET;
        // In LAST-ACK the acknowledgment of the peer's FIN has been sent.
        self.opening = None;
        self.end_life();
        self.sender.close();
        self.receiver.close();
    }

    /// Sends a challenge ACK with our current numbers, at a limited rate unless `always`.
    #[cold]
    fn object(&mut self, now: Instant, always: bool) {
        if always || now >= self.rare().challenge_from {
            if !always {
                self.rare().challenge_from = now.saturating_add(CHALLENGE_INTERVAL);
            }
            self.pending |= pending::ACK | pending::ACK_FIRST;
        }
    }

    /// Processes a reset with the exact sequence number.
    fn arrive_reset(&mut self) {
        if self.state == State::SynReceived && self.opening().passive && !self.is_early() {
            // The peer aborted its attempt; wait for the next SYN.
            self.state = State::Listen;
            self.pending = 0;
            self.sender.rto_at = Instant::NEVER;
            self.options = 0;
            self.sender.ecn = None;
            return;
        }
        let refused = self.state == State::SynReceived && !self.is_early();
        let reason = if refused { CloseReason::Refused } else { CloseReason::Reset };
        let orderly = matches!(self.state, State::Closing | State::LastAck | State::TimeWait);
        self.close(if orderly { CloseReason::Finished } else { reason });
    }

    /// Answers a segment that no connection expects (RFC 9293 section 3.10.7.1) with a reset that the peer accepts.
    fn answer_with_reset(&mut self, header: &TcpHeader) {
        if header.has_flag(flags::RST) {
            return;
        }
        let mut reply = TcpHeader { flags: flags::RST, ..TcpHeader::default() };
        if header.has_flag(flags::ACK) {
            reply.sequence = header.acknowledgement;
        } else {
            reply.flags |= flags::ACK;
            reply.acknowledgement = header.sequence_end();
        }
        self.rare().reply = reply;
        self.pending |= pending::RESET;
    }

    /// Our timestamp. It is cached because many segments are sent within one tick, and the division is slow.
    #[inline(always)]
    fn clock(&mut self, now: Instant) -> u32 {
        if now >= self.clock_until {
            self.set_clock(now);
        }
        self.clock
    }

    #[inline(never)]
    fn set_clock(&mut self, now: Instant) {
        let tick = self.config.timestamp_tick.as_nanos().max(1);
        self.clock = timestamp(&self.config, now);
        let begun = Instant::from_nanos(now.as_nanos() / tick * tick);
        self.clock_until = begun.saturating_add(Duration::from_nanos(tick));
    }

    /// Processes an ICMP error for a packet that exceeded the MTU of a link (RFC 1191, RFC 8201). `segment_bytes` is
    /// the reported MTU minus the IP header, and `sequence` is the sequence number of the quoted segment. The error is
    /// ignored unless this sequence number is outstanding (RFC 5927 section 4.1).
    pub fn on_packet_too_big(&mut self, now: Instant, segment_bytes: u32, sequence: u32) {
        let offset = self.numbering.to_offset(sequence, self.sender.una);
        let outstanding = self.sender.una as i64..self.sender.next as i64;
        if !self.open || !outstanding.contains(&offset) {
            return;
        }
        let header = TcpHeader { options: self.options, ..TcpHeader::default() };
        let payload_bytes = u64::from(segment_bytes).saturating_sub(u64::from(header.header_bytes()));
        self.sender.on_too_big(&self.config, now, payload_bytes.max(handshake::SMALLEST_MSS));
    }

    /// Handles expired timers. Has no effect if none has expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.receiver.ack_at <= now {
            self.receiver.on_delay_over();
            self.pending |= pending::ACK;
        }
        if self.sender.pace_at <= now {
            self.sender.pace_at = Instant::NEVER;
        }
        if self.sender.reorder_at <= now {
            self.sender.on_reorder_timer(&self.config, now);
        }
        if self.life_at <= now {
            self.on_life_timer(now);
        }
        if self.sender.deadline() > now {
            return;
        }
        match self.state {
            State::Closed | State::Listen => self.sender.rto_at = Instant::NEVER,
            State::TimeWait => self.close(CloseReason::Finished),
            State::SynSent | State::SynReceived => {
                let begun_at = self.opening().begun_at;
                let too_long = self.config.user_timeout.is_some_and(|most| now.saturating_since(begun_at) >= most);
                if too_long || self.sender.repair().counts.lost_syns >= self.config.max_syn_retransmissions {
                    return self.close(CloseReason::TimedOut);
                }
                self.sender.repair_mut().counts.lost_syns += 1;
                self.sender.rtt.on_timeout(&self.config.rtt());
                self.send_syn(now);
            }
            _ => {
                if self.sender.on_far_timer(&self.config, now) {
                    self.close(CloseReason::TimedOut);
                }
            }
        }
    }

    /// Deadline of [`Connection::handle_timeout`] for timers that rarely expire, such as retransmission, probes,
    /// keep-alive and TIME-WAIT. [`Instant::NEVER`] if there is none.
    #[inline(always)]
    pub fn slow_timer_deadline(&self) -> Instant {
        self.sender.deadline().min(self.life_at)
    }

    /// Deadline of [`Connection::handle_timeout`] for a delayed acknowledgment, pacing or reordering;
    /// [`Instant::NEVER`] if there is none.
    #[inline(always)]
    pub fn fast_timer_deadline(&self) -> Instant {
        self.receiver.ack_at.min(self.sender.pace_at).min(self.sender.reorder_at)
    }

    /// Whether [`Connection::poll_event`] would return an event.
    #[inline(always)]
    pub fn has_event(&self) -> bool {
        self.events != 0
    }

    /// Returns the next event for the application; `None` if there is none.
    #[inline]
    pub fn poll_event(&mut self) -> Option<TransportEvent> {
        if self.events == 0 {
            return None;
        }
        let lowest = self.events & self.events.wrapping_neg();
        self.events &= !lowest;
        Some(match lowest {
            event::CONNECTED => TransportEvent::Connected,
            event::READABLE => TransportEvent::Readable,
            event::WRITABLE => TransportEvent::Writable,
            event::PEER_FINISHED => TransportEvent::PeerFinished,
            _ => TransportEvent::Closed(self.reason),
        })
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the connection is closed and has nothing left to send, so that it can be dropped.
    #[inline(always)]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed && self.pending == 0
    }

    /// Whether a SYN with this header may begin a new connection in place of this one, which is in TIME-WAIT. The
    /// timestamp or the sequence number of the SYN must be later than that of the old connection (RFC 6191 section 2).
    /// The host then creates a new server and passes the SYN to it.
    pub fn permits_time_wait_reuse(&self, syn: &TcpHeader) -> bool {
        let opens = syn.flags & (flags::SYN | flags::ACK | flags::RST) == flags::SYN;
        if self.state != State::TimeWait || !opens {
            return false;
        }
        let later_number = self.peer_numbering.to_offset(syn.sequence, self.receiver.next) >= self.receiver.next as i64;
        if self.options == 0 || syn.options & options::TIMESTAMPS == 0 {
            return later_number;
        }
        timestamp_before(self.recent_timestamp, syn.timestamp) || self.recent_timestamp == syn.timestamp && later_number
    }

    /// Counts since the start of the connection.
    pub fn statistics(&self) -> Statistics {
        let counts = self.sender.repair().counts;
        Statistics {
            data_segments_sent: self.sender.data_segments,
            retransmitted_segments: u64::from(counts.retransmissions),
            timeouts: u64::from(counts.timeouts),
            tail_loss_probes: u64::from(counts.tail_loss_probes),
            window_probes: u64::from(counts.window_probes),
            recoveries: u64::from(counts.recoveries),
            undone_reductions: u64::from(counts.undone),
            syn_retransmissions: u64::from(counts.lost_syns),
            received_bytes: self.receiver.in_order_bytes(),
            read_bytes: self.receiver.read,
            acknowledged_bytes: self.sender.una.min(self.sender.written),
            duplicate_segments_received: u64::from(self.receiver.duplicates),
            syn_payload_bytes: self.rare.as_ref().map_or(0, |rare| rare.fast_open.accepted_bytes),
        }
    }

    /// A snapshot of the sender.
    pub fn inspect(&self) -> SenderSnapshot {
        SenderSnapshot::of(&self.sender)
    }

    /// Disables delivery-rate samples. Has no effect if the control requires them. Without samples,
    /// [`SenderSnapshot::delivery_rate_bps`] is 0. Must be called before the first segment is sent.
    pub fn disable_rate_samples(&mut self) {
        self.sender.disable_rate_samples();
    }

    /// Records losses from now on, for [`Connection::take_losses`].
    pub fn record_losses(&mut self) {
        self.sender.board.loss_mut().noted.get_or_insert_default();
    }

    /// Returns the segments marked lost since the last call, in the order of detection. Empty without
    /// [`Connection::record_losses`].
    pub fn take_losses(&mut self) -> Vec<LostSegment> {
        let noted = self.sender.board.loss.as_mut().and_then(|loss| loss.noted.as_mut());
        let noted = noted.map(std::mem::take).unwrap_or_default().into_iter();
        noted.map(|(offset, length)| LostSegment { sequence: self.numbering.to_wire(offset), offset, length }).collect()
    }

    /// Applies a parameter that the program has changed in the congestion control. The host must then poll the connection
    /// for segments. Before the connection is established, this function has no effect.
    pub fn apply_external_change(&mut self, now: Instant) {
        if self.open {
            self.sender.apply_external_change(&self.config, now);
        }
    }

    /// The congestion control, for access to its named internal values.
    pub fn controller(&self) -> &dyn Controller {
        self.sender.driver.controller()
    }

    /// The settings of the connection.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

impl Stream for Connection {
    #[inline]
    fn writable_bytes(&self) -> u64 {
        if self.sender.finished || self.state == State::Closed {
            return 0;
        }
        self.config.send_buffer_bytes.saturating_sub(self.sender.buffered_bytes())
    }

    fn unsent_bytes(&self) -> Option<u64> {
        Some(self.sender.written.saturating_sub(self.sender.next))
    }

    #[inline]
    fn write(&mut self, payload: Payload) -> u64 {
        let taken = payload.len().min(self.writable_bytes());
        if let Payload::Bytes(bytes) = payload
            && taken > 0
        {
            let store = self.sender.bytes.get_or_insert_with(|| Box::new(ByteStore::default()));
            store.push(self.sender.written, bytes.slice(..taken as usize));
        }
        self.sender.written += taken;
        taken
    }

    fn write_lengths(&mut self, write_bytes: u64, most_bytes: u64) -> u64 {
        // All writes that fit count as one write of their sum.
        let room = self.writable_bytes();
        let written = if room >= most_bytes { most_bytes } else { room - room % write_bytes.max(1) };
        self.write(Payload::Length(written))
    }

    fn set_writable_threshold(&mut self, bytes: u64) {
        self.writable_threshold = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    #[inline]
    fn readable_bytes(&self) -> u64 {
        self.receiver.readable_bytes()
    }

    #[inline]
    fn read(&mut self, max_bytes: u64) -> Option<Payload> {
        let payload = self.receiver.read(max_bytes)?;
        if self.open && !self.receiver.is_finished() && self.receiver.wants_window_update() {
            self.pending |= pending::ACK;
        }
        Some(payload)
    }

    fn finish(&mut self) {
        match self.state {
            State::Listen => self.close(CloseReason::Aborted),
            State::Closed => {}
            _ => self.sender.finished = true,
        }
    }

    fn abort(&mut self) {
        let synchronized = !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::TimeWait);
        if synchronized {
            self.rare().reply = TcpHeader {
                sequence: self.numbering.to_wire(self.sender.next),
                acknowledgement: self.peer_numbering.to_wire(self.receiver.next),
                flags: flags::RST | flags::ACK,
                ..TcpHeader::default()
            };
            self.pending |= pending::RESET;
        }
        if self.state != State::Closed {
            self.close(CloseReason::Aborted);
        }
    }
}
