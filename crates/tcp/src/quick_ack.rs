//! When a receiver acknowledges each segment by itself: Linux's quick acknowledgements (`net/ipv4/tcp_input.c`, 6.18:
//! `tcp_incr_quickack`, `tcp_enter_quickack_mode`, `tcp_grow_window`).
//!
//! **Model.** A sender that begins, begins again, or has a small window lives on acknowledgements: delaying every second
//! one slows it and blurs what it measures (HyStart takes acknowledgements at most 2 ms apart for one train). So the first
//! sixteen acknowledgements of a connection are for one segment each (fewer where the window holds fewer than 32
//! segments), and as many after a silence longer than the retransmission time-out and after data that had come before;
//! two where a mark begins to be echoed; and one for each segment that lets a growing window grow. While the two sides
//! converse, that is from data sent within 40 ms of data received until an acknowledgement has had to leave alone, those
//! sixteen wait.

use crate::Config;
use fullpipe_units::Duration;

/// Most acknowledgements of one segment each (Linux `TCP_MAX_QUICKACKS`).
const MOST: u8 = 16;
/// An answer that leaves within this time of the question makes a conversation (Linux `TCP_ATO_MIN`).
const CONVERSATION: Duration = Duration::from_millis(40);

/// Three bytes: connections are many. When data came last is the receiver's to know.
#[derive(Debug)]
pub(crate) struct QuickAck {
    /// Acknowledgements left that are for one segment each.
    left: u8,
    /// As many as there are after a silence; none where there are no quick acknowledgements at all.
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

    /// Whether the next segment in order is acknowledged by itself.
    pub(crate) fn is_active(&self) -> bool {
        self.left > 0 && !self.conversing
    }

    /// Whether data that leave so long after others came begin a conversation.
    #[inline(always)]
    pub(crate) fn is_answer(&self, since_data: Duration) -> bool {
        since_data < CONVERSATION && !self.conversing && self.most > 0
    }

    pub(crate) fn converse(&mut self) {
        self.conversing = true;
    }

    /// A delayed acknowledgement had to leave by itself.
    pub(crate) fn on_delay_over(&mut self) {
        self.conversing = false;
    }

    pub(crate) fn on_acknowledged(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// The sender may have begun again.
    pub(crate) fn begin_again(&mut self) {
        self.left = self.left.max(self.most);
    }

    /// The sender's window may be small, conversation or not: at least `count` acknowledgements.
    pub(crate) fn enter(&mut self, count: u8) {
        self.left = self.left.max(count.min(self.most));
        self.conversing = false;
    }
}
