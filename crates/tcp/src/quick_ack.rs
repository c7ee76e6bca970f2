//! Quick acknowledgments of a receiver, one per segment (Linux 6.18, `net/ipv4/tcp_input.c`: `tcp_incr_quickack`,
//! `tcp_enter_quickack_mode`, `tcp_grow_window`).
//!
//! **Model.** A sender that starts, restarts or has a small window depends on acknowledgments. A delayed acknowledgment
//! slows the sender and distorts its measurements (HyStart treats acknowledgments at most 2 ms apart as one train). The
//! receiver therefore sends these acknowledgments for one segment each:
//!
//! * the first sixteen of a connection, or fewer if the window holds fewer than 32 segments;
//! * as many after an idle time longer than the retransmission timeout, and after duplicate data;
//! * two when the echo of a mark begins;
//! * one for each segment that enlarges a growing window.
//!
//! Interactive mode suspends those at the start and after an idle time. This mode begins when the endpoint sends data
//! within 40 ms of received data. It ends when a delayed acknowledgment is sent without data.

use crate::Config;
use fullpipe_units::Duration;

/// Maximum number of quick acknowledgments (Linux `TCP_MAX_QUICKACKS`).
const MOST: u8 = 16;
/// A response sent within this time of received data starts interactive mode (Linux `TCP_ATO_MIN`).
const CONVERSATION: Duration = Duration::from_millis(40);

/// State of quick acknowledgments. It has three bytes because a run can have many connections; the receiver stores the
/// time of the last data.
#[derive(Debug)]
pub(crate) struct QuickAck {
    /// Quick acknowledgments left.
    left: u8,
    /// Quick acknowledgments after an idle time; zero if they are disabled.
    most: u8,
    conversing: bool,
}

impl QuickAck {
    pub(crate) fn new(config: &Config) -> QuickAck {
        let segments = config.first_receive_buffer_bytes() / (2 * u64::from(config.mss_bytes.max(1)));
        let most = match segments {
            _ if !config.quick_ack => 0,
            0 => 2,
            _ => segments.min(u64::from(MOST)) as u8,
        };
        QuickAck { left: most, most, conversing: false }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.most > 0
    }

    /// Whether the next segment in order is acknowledged immediately.
    pub(crate) fn is_active(&self) -> bool {
        self.left > 0 && !self.conversing
    }

    /// Whether data sent this long after received data starts interactive mode.
    #[inline(always)]
    pub(crate) fn is_answer(&self, since_data: Duration) -> bool {
        since_data < CONVERSATION && !self.conversing && self.most > 0
    }

    pub(crate) fn converse(&mut self) {
        self.conversing = true;
    }

    /// Ends interactive mode after a delayed acknowledgment was sent without data.
    pub(crate) fn on_delay_over(&mut self) {
        self.conversing = false;
    }

    pub(crate) fn on_acknowledged(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Starts quick acknowledgments because the sender may have restarted.
    pub(crate) fn begin_again(&mut self) {
        self.left = self.left.max(self.most);
    }

    /// Ensures at least `count` quick acknowledgments, even in interactive mode, because the sender's window may be
    /// small.
    pub(crate) fn enter(&mut self, count: u8) {
        self.left = self.left.max(count.min(self.most));
        self.conversing = false;
    }
}
