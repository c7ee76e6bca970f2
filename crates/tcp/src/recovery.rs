//! Loss detection and recovery: RACK (RFC 8985), RFC 6675, proportional rate reduction (RFC 9937).

use crate::scoreboard::{RateSampleState, Scoreboard, SegmentRecord, flag};
use fullpipe_units::{Duration, Instant};

/// Number of duplicate acknowledgments, or of selectively acknowledged segments above a segment, after which it is
/// marked lost (RFC 5681, 6675).
pub(crate) const DUPLICATE_THRESHOLD: u32 = 3;

/// State of loss recovery. Each condition is one bit, because it is tested for each segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecoveryPhase {
    /// No recovery.
    Open = 0,
    /// No loss, but a mark required a smaller window, which decreases gradually (Linux's state CWR).
    Cwr = RecoveryPhase::REDUCES,
    /// After a retransmission timeout.
    Loss = RecoveryPhase::REPAIRS,
    /// Fast recovery.
    FastRecovery = RecoveryPhase::REPAIRS | RecoveryPhase::REDUCES,
}

impl RecoveryPhase {
    const REDUCES: u8 = 1;
    const REPAIRS: u8 = 2;

    /// Whether no loss is being repaired.
    #[inline(always)]
    pub(crate) fn is_calm(self) -> bool {
        self as u8 & RecoveryPhase::REPAIRS == 0
    }

    /// Whether proportional rate reduction sets the window.
    #[inline(always)]
    pub(crate) fn reduces(self) -> bool {
        self as u8 & RecoveryPhase::REDUCES != 0
    }
}

/// Proportional rate reduction (RFC 9937 section 6): in fast recovery, the window decreases to the threshold gradually
/// with deliveries, not at once. Only whole segments are sent, so a fraction of one counts as one, as in the RFC's
/// examples and in Linux, which count segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// Bytes delivered during this recovery.
    delivered_bytes: u64,
    /// Bytes sent during this recovery.
    sent_bytes: u64,
    /// Bytes outstanding at the start of this recovery, without those selectively acknowledged before.
    flight_bytes: u64,
}

impl Prr {
    pub(crate) fn begin(flight_bytes: u64) -> Prr {
        Prr { delivered_bytes: 0, sent_bytes: 0, flight_bytes: flight_bytes.max(1) }
    }

    #[inline(always)]
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// Returns how many bytes may be sent after a delivery of `delivered_bytes`. `safe` states that the cumulative
    /// acknowledgment advanced and no further loss was found. In this case, one more segment is permitted (slow-start
    /// reduction bound).
    pub(crate) fn on_ack(
        &mut self,
        delivered_bytes: u64,
        in_flight_bytes: u64,
        ssthresh_bytes: u64,
        mss_bytes: u64,
        safe: bool,
    ) -> u64 {
        self.delivered_bytes += delivered_bytes;
        let allowed = if in_flight_bytes > ssthresh_bytes {
            let target = u128::from(self.delivered_bytes) * u128::from(ssthresh_bytes);
            let target = u64::try_from(target.div_ceil(u128::from(self.flight_bytes))).unwrap_or(u64::MAX / 2);
            target.min(u64::MAX / 2).next_multiple_of(mss_bytes.max(1)).saturating_sub(self.sent_bytes)
        } else {
            let mut allowed = self.delivered_bytes.saturating_sub(self.sent_bytes).max(delivered_bytes);
            if safe {
                allowed += mss_bytes;
            }
            allowed.min(ssthresh_bytes - in_flight_bytes)
        };
        // The first retransmission is always permitted.
        if self.sent_bytes == 0 { allowed.max(mss_bytes) } else { allowed }
    }
}

/// RACK's state (RFC 8985 section 5.2): the newest transmission known to have arrived, and the observed reordering.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rack {
    /// Send time of the most recently sent segment that has arrived.
    sent_at: Instant,
    /// End of that segment.
    end: u64,
    /// Round-trip time of that segment.
    rtt: Duration,
    /// Highest end of all segments that arrived.
    highest_end: u64,
    /// After a reported duplicate, further reports are ignored until this offset is acknowledged; 0 if there is none.
    duplicate_round_end: u64,
    reordering_seen: bool,
    /// Quarters of the minimum round-trip time in the reordering window, in addition to the first.
    extra_quarters: u8,
    /// Number of recoveries after which `extra_quarters` returns to zero.
    persist: u8,
}

impl Rack {
    /// Sets the handshake's round-trip time, which is used until a segment has arrived.
    pub(crate) fn set_first_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// Whether all arrived data is below `una`. Segments after it then show no reordering.
    #[inline(always)]
    pub(crate) fn is_below(&self, una: u64) -> bool {
        self.highest_end <= una
    }

    /// Processes a newly acknowledged segment (steps 2 and 3).
    #[inline(always)]
    pub(crate) fn on_delivered(&mut self, now: Instant, segment: &SegmentRecord) {
        let end = segment.end();
        if end > self.highest_end {
            self.highest_end = end;
        } else if end < self.highest_end && !segment.has(flag::RETRANSMITTED) {
            self.reordering_seen = true;
        }
        if segment.sent_at > self.sent_at || (segment.sent_at == self.sent_at && end > self.end) {
            self.sent_at = segment.sent_at;
            self.end = end;
            self.rtt = now.saturating_since(segment.sent_at);
        }
    }

    /// Processes newly acknowledged original transmissions, in order, if [`Rack::is_below`] is true. The arguments are
    /// those of the last one.
    #[inline(always)]
    pub(crate) fn on_originals_delivered(&mut self, now: Instant, end: u64, sent_at: Instant) {
        self.highest_end = end;
        if sent_at > self.sent_at || (sent_at == self.sent_at && end > self.end) {
            self.sent_at = sent_at;
            self.end = end;
            self.rtt = now.saturating_since(sent_at);
        }
    }

    /// Whether the newest arrived segment was sent after this segment.
    #[inline(always)]
    fn sent_after(&self, segment: &SegmentRecord) -> bool {
        self.sent_at > segment.sent_at || (self.sent_at == segment.sent_at && self.end > segment.end())
    }

    /// Time at which a segment sent at `sent_at` counts as lost.
    #[inline(always)]
    fn overdue_at(&self, sent_at: Instant, window: Duration) -> Instant {
        sent_at.saturating_add(self.rtt).saturating_add(window)
    }

    /// Returns the reordering window (step 4).
    pub(crate) fn reordering_window(&self, impatient: bool, min_rtt: Duration, smoothed_rtt: Duration) -> Duration {
        if !self.reordering_seen && impatient {
            return Duration::ZERO;
        }
        (min_rtt / 4).saturating_mul(1 + u64::from(self.extra_quarters)).min(smoothed_rtt)
    }

    /// Processes a reported duplicate, which shows that a retransmission was unnecessary: widens the reordering window,
    /// once per round trip (step 4). Returns whether it did.
    pub(crate) fn on_duplicate(&mut self, next: u64) -> bool {
        let first = self.duplicate_round_end == 0;
        if first {
            self.duplicate_round_end = next;
            self.extra_quarters = self.extra_quarters.saturating_add(1);
            self.persist = 16;
        }
        first
    }

    #[inline(always)]
    pub(crate) fn on_acknowledged(&mut self, acknowledged: u64) {
        if self.duplicate_round_end != 0 && acknowledged >= self.duplicate_round_end {
            self.duplicate_round_end = 0;
        }
    }

    pub(crate) fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.extra_quarters = 0;
        }
    }

    /// Marks overdue segments (step 5) and returns the time of the next check; [`Instant::NEVER`] if no segment waits.
    ///
    /// The pointer `examined` passes over originals in order of time. The queue of retransmissions is examined from its
    /// front. The returned time is that of the latest waiting original, as in the RFC. For waiting retransmissions it
    /// is that of the newest arrival, which is at most one transmission later.
    pub(crate) fn detect(
        &self,
        board: &mut Scoreboard,
        now: Instant,
        window: Duration,
        mut lost: impl FnMut((SegmentRecord, RateSampleState)),
    ) -> Instant {
        let mut again = Instant::NEVER;
        let mut index = board.position(board.loss.as_ref().map_or(0, |loss| loss.examined));
        while let Some(segment) = board.segments.get(index) {
            if segment.in_flight() && !segment.has(flag::RETRANSMITTED) {
                if !self.sent_after(segment) {
                    break;
                }
                if self.overdue_at(segment.sent_at, window) > now {
                    again = self.overdue_at(self.last_waiting(board, index), window);
                    break;
                }
                lost(board.mark_lost(index));
            }
            index += 1;
        }
        let examined = match board.segments.get(index) {
            Some(segment) => segment.start,
            None => board.segments.back().map_or(0, SegmentRecord::end),
        };
        board.loss_mut().examined = examined;
        while let Some(index) = board.oldest_retransmission() {
            let segment = &board.segments[index];
            if !self.sent_after(segment) {
                break;
            }
            if self.overdue_at(segment.sent_at, window) > now {
                let latest = self.overdue_at(self.sent_at, window);
                again = if again.is_never() { latest } else { again.max(latest) };
                break;
            }
            lost(board.mark_lost(index));
        }
        again
    }

    /// Send time of the last waiting original that was sent before the newest arrival. `first` is the index of one that
    /// waits.
    fn last_waiting(&self, board: &Scoreboard, first: usize) -> Instant {
        let mut index = board.position(self.end);
        while index > first {
            index -= 1;
            let segment = &board.segments[index];
            if segment.has(flag::SACKED) {
                // Continue at the gap below this range of arrivals.
                let run = board.loss.as_ref().and_then(|loss| loss.sacked.find(segment.start));
                index = run.map_or(index, |run| board.position(run.0));
            } else if segment.in_flight() && !segment.has(flag::RETRANSMITTED) && self.sent_after(segment) {
                return segment.sent_at;
            }
        }
        board.segments[first].sent_at
    }

    /// Whether a segment counts as lost when the retransmission timer expires (RFC 8985 section 6.3).
    pub(crate) fn lost_on_timeout(&self, segment: &SegmentRecord, now: Instant, window: Duration) -> bool {
        self.overdue_at(segment.sent_at, window) <= now
    }
}

/// The offset below which all data not selectively acknowledged is lost (RFC 6675 section 4, IsLost); 0 if there is
/// none. At least three separate ranges, or more bytes than two full segments, have arrived above this offset.
pub(crate) fn lost_below(board: &Scoreboard, mss_bytes: u64) -> u64 {
    let Some(loss) = &board.loss else { return 0 };
    let mut bytes = 0;
    for (count, range) in (1..).zip(loss.sacked.as_slice().iter().rev()) {
        bytes += range.1 - range.0;
        if count >= DUPLICATE_THRESHOLD || bytes > u64::from(DUPLICATE_THRESHOLD - 1) * mss_bytes {
            return range.0;
        }
    }
    0
}

/// Marks the originals below `edge` that are in flight as lost. Retransmissions are not evaluated again.
pub(crate) fn mark_lost_below(
    board: &mut Scoreboard,
    edge: u64,
    mut lost: impl FnMut((SegmentRecord, RateSampleState)),
) {
    let examined = board.loss.as_ref().map_or(0, |loss| loss.examined);
    if edge <= examined {
        return;
    }
    let mut index = board.position(examined);
    while let Some(segment) = board.segments.get(index)
        && segment.start < edge
    {
        if segment.in_flight() && !segment.has(flag::RETRANSMITTED) {
            lost(board.mark_lost(index));
        }
        index += 1;
    }
    board.loss_mut().examined = edge;
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn duplicate_widens_the_window_for_sixteen_recoveries() {
        // RFC 8985 section 6.2 step 4: RACK.reo_wnd_persist.
        let mut rack = Rack { reordering_seen: true, ..Rack::default() };
        rack.on_duplicate(1000);
        for _ in 0..15 {
            rack.on_recovery_end();
            assert_eq!(rack.reordering_window(true, RTT, RTT), RTT / 2);
        }
        rack.on_recovery_end();
        assert_eq!(rack.reordering_window(true, RTT, RTT), RTT / 4);
    }

    #[test]
    fn reordering_window_is_at_most_a_smoothed_round_trip() {
        let mut rack = Rack { reordering_seen: true, ..Rack::default() };
        for round in 1..10 {
            rack.on_duplicate(round);
            rack.on_acknowledged(round);
        }
        // Ten quarters.
        assert_eq!(rack.reordering_window(true, RTT, RTT * 3), RTT * 10 / 4);
        assert_eq!(rack.reordering_window(true, RTT, RTT * 2), RTT * 2);
    }

    #[test]
    fn rate_reduction_with_extreme_numbers_does_not_panic() {
        let mut prr = Prr::begin(0);
        prr.on_ack(u64::MAX / 4, 2, 1, 1000, true);
        assert_eq!(prr.on_ack(1, u64::MAX, u64::MAX - 1, 0, false), u64::MAX / 2);
    }
}
