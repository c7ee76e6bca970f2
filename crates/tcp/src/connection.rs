//! A connection: the state machine of RFC 9293 section 3.10.

use crate::Config;
use bytes::Bytes;
use fullpipe_congestion::{Control, Controller};
use fullpipe_network::packet::{MAX_SACK_BLOCKS, SackBlock, TcpHeader};
use fullpipe_transport::{Event, Payload, Stream};
use fullpipe_units::{Duration, Instant};
use std::sync::Arc;

/// States of RFC 9293 section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has received a SYN and sent its own.
    SynReceived,
    /// Open both ways.
    Established,
    /// Has sent a FIN.
    FinWait1,
    /// The peer acknowledged the FIN.
    FinWait2,
    /// The peer has sent a FIN.
    CloseWait,
    /// Both have sent a FIN, ours is not acknowledged.
    Closing,
    /// Has sent a FIN after the peer's.
    LastAck,
    /// Waits for old segments to leave the network.
    TimeWait,
    /// Over.
    Closed,
}

/// A segment to send. Make one and hand it to every [`Connection::poll_transmit`].
#[derive(Clone, Debug, Default)]
pub struct Transmit {
    /// The header; `sack_count` says how many of `sacks` hold.
    pub header: TcpHeader,
    /// SACK blocks.
    pub sacks: [SackBlock; MAX_SACK_BLOCKS],
    /// The payload where it consists of bytes; `None` for a mere length (`header.payload_bytes`).
    pub payload: Option<Bytes>,
}

/// Counts since the start of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Data segments sent, retransmissions included.
    pub data_segments_sent: u64,
    /// Segments sent again, for whatever reason.
    pub retransmitted_segments: u64,
    /// Retransmission time-outs of data.
    pub timeouts: u64,
    /// Tail loss probes sent.
    pub tail_loss_probes: u64,
    /// Window probes sent.
    pub window_probes: u64,
    /// Fast recoveries begun.
    pub recoveries: u64,
    /// Payload bytes of the stream that arrived in order.
    pub received_bytes: u64,
    /// Payload bytes handed to the reader.
    pub read_bytes: u64,
    /// Payload bytes that the peer acknowledged in order.
    pub acknowledged_bytes: u64,
    /// Segments whose payload had all arrived before.
    pub duplicate_segments_received: u64,
}

/// What a probe of a flow can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inspect {
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes; `u64::MAX` before the first reduction.
    pub ssthresh_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub smoothed_rtt: Duration,
    /// Smallest round-trip time; zero before the first sample.
    pub min_rtt: Duration,
    /// Newest round-trip sample; zero before the first.
    pub latest_rtt: Duration,
    /// Retransmission time-out, back-off not included.
    pub rto: Duration,
    /// Pacing rate in bits per second; 0 if not paced.
    pub pacing_bps: u64,
    /// Newest delivery-rate sample in bits per second; 0 before the first.
    pub delivery_rate_bps: u64,
    /// The peer's window in bytes.
    pub peer_window_bytes: u64,
    /// Bytes written and not yet acknowledged.
    pub send_buffer_bytes: u64,
    /// Whether fast recovery is going on.
    pub in_recovery: bool,
}

/// One end of a connection.
///
/// After every call that hands something in, the host calls [`Connection::poll_event`] until it says `None` and
/// [`Connection::poll_transmit`] until it says `false`, then looks at the two deadlines.
#[derive(Debug)]
pub struct Connection {
    config: Arc<Config>,
    controller: Box<dyn Controller>,
    control: Control,
    state: State,
    far: Instant,
    near: Instant,
}

impl Connection {
    /// The active side: its first [`Connection::poll_transmit`] yields a SYN.
    pub fn client(
        config: Arc<Config>,
        controller: Box<dyn Controller>,
        initial_sequence: u32,
        now: Instant,
    ) -> Connection {
        let _ = (initial_sequence, now);
        Connection::new(config, controller, State::SynSent)
    }

    /// The passive side, in LISTEN: the first segment it is handed should be the SYN.
    pub fn server(
        config: Arc<Config>,
        controller: Box<dyn Controller>,
        initial_sequence: u32,
        now: Instant,
    ) -> Connection {
        let _ = (initial_sequence, now);
        Connection::new(config, controller, State::Listen)
    }

    fn new(config: Arc<Config>, controller: Box<dyn Controller>, state: State) -> Connection {
        let control = Control {
            cwnd_bytes: 0,
            ssthresh_bytes: u64::MAX,
            pacing_bps: 0,
            send_quantum_bytes: 0,
            mss_bytes: u64::from(config.mss_bytes),
            codepoint: Default::default(),
        };
        Connection { config, controller, control, state, far: Instant::NEVER, near: Instant::NEVER }
    }

    /// A segment has arrived. `payload` is `None` where the payload is a mere length (`header.payload_bytes`); `ce`
    /// says whether the IP header was marked "congestion experienced".
    pub fn handle_segment(
        &mut self,
        now: Instant,
        header: &TcpHeader,
        sacks: &[SackBlock],
        payload: Option<&Bytes>,
        ce: bool,
    ) {
        let _ = (now, header, sacks, payload, ce);
    }

    /// Does what is due; harmless if nothing is.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// When [`Connection::handle_timeout`] is wanted for retransmission, probe or TIME-WAIT; [`Instant::NEVER`] if not.
    #[inline]
    pub fn far_deadline(&self) -> Instant {
        self.far
    }

    /// When [`Connection::handle_timeout`] is wanted for a delayed acknowledgement, pacing or reordering;
    /// [`Instant::NEVER`] if not.
    #[inline]
    pub fn near_deadline(&self) -> Instant {
        self.near
    }

    /// Fills in the next segment to send now, or says that there is none. To be called until it does.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Transmit) -> bool {
        let _ = (now, out);
        false
    }

    /// The next thing the application ought to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the connection is over, TIME-WAIT included, so that it can be dropped.
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Counts since the start.
    pub fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    /// A snapshot of the sender.
    pub fn inspect(&self) -> Inspect {
        Inspect { cwnd_bytes: self.control.cwnd_bytes, ..Inspect::default() }
    }

    /// The congestion control, for its named internal values.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

impl Stream for Connection {
    fn writable_bytes(&self) -> u64 {
        0
    }

    fn write(&mut self, payload: Payload) -> u64 {
        let _ = payload;
        0
    }

    fn readable_bytes(&self) -> u64 {
        0
    }

    fn read(&mut self, max_bytes: u64) -> Option<Payload> {
        let _ = max_bytes;
        None
    }

    fn finish(&mut self) {}

    fn abort(&mut self) {}
}
