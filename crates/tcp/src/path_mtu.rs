//! Path MTU of a connection: ICMP "packet too big" reports, black hole detection, and the search for larger sizes.
//!
//! **Model.** A "packet too big" report (RFC 1191, RFC 8201) is accepted if the sequence number that it quotes is
//! outstanding (RFC 5927 section 4). An attacker would have to guess such a number. The segment size decreases
//! immediately; larger outstanding segments are split and retransmitted. This is not a sign of congestion, so the
//! window does not change (Linux `tcp_simple_retransmit`).
//!
//! A path that drops large packets silently is a black hole and causes repeated timeouts. After a configured number of
//! timeouts of the same segment, the segment size is halved, if this makes the segment smaller. The new size is between
//! 512 and 1024 bytes, and every further timeout halves it again (RFC 4821 section 7.7; Linux `tcp_mtu_probing`, with
//! the bound 48). A search for larger sizes follows (RFC 4821 section 7). While nothing is lost, new data is sent in a
//! probe segment, midway between the largest size that passed and the smallest that did not. If the probe arrives, its
//! size becomes the segment size. If the probe is lost, it was too large, and the congestion control's reduction is
//! undone. The search ends when the two sizes differ by less than 8 bytes.

use crate::Config;
use crate::recovery::RecoveryPhase;
use crate::scoreboard::{Scoreboard, flag};
use crate::sender::{OutgoingSegment, Sender};
use fullpipe_units::Instant;

/// Initial size in a black hole (Linux `tcp_base_mss`), and the minimum.
const BASE_BYTES: u64 = 1024;
const SMALLEST_BYTES: u64 = 512;
/// Difference in bytes at which the search ends (Linux `tcp_probe_threshold`).
const CLOSE_ENOUGH_BYTES: u64 = 8;
/// Segments of window and of unsent data that a probe requires, so that its loss is detected soon (Linux
/// `tcp_mtu_probe`).
const WINDOW_SEGMENTS: u64 = 11;
const WAITING_SEGMENTS: u64 = 4;

/// The search for the largest segment size that passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathMtuDiscovery {
    /// Upper bound of the size that passes.
    high_bytes: u64,
    /// The outstanding probe.
    probe: Option<Probe>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    start: u64,
    end: u64,
    /// Window and threshold when the probe was sent.
    cwnd_bytes: u64,
    ssthresh_bytes: u64,
}

/// Splits segments marked lost into segments of at most this size.
fn cut_lost(board: &mut Scoreboard, mss_bytes: u64) {
    let whole = std::mem::take(&mut board.segments);
    let samples = board.samples.as_mut().map(std::mem::take);
    for (index, segment) in whole.into_iter().enumerate() {
        let mut push = |piece| {
            board.segments.push_back(piece);
            if let (Some(samples), Some(whole)) = (&mut board.samples, &samples) {
                samples.push_back(whole[index]);
            }
        };
        if !segment.has(flag::LOST) || segment.payload_bytes() <= mss_bytes {
            push(segment);
            continue;
        }
        let end = segment.end();
        let data_end = segment.start + segment.payload_bytes();
        let mut start = segment.start;
        while start < end {
            // The last part includes the FIN.
            let piece_end = if data_end - start <= mss_bytes { end } else { start + mss_bytes };
            let fin = if piece_end == end { flag::FIN } else { 0 };
            let flags = segment.flags & (!flag::FIN | fin);
            let mut piece = segment;
            (piece.start, piece.length, piece.flags) = (start, (piece_end - start) as u16, flags);
            push(piece);
            start = piece_end;
        }
    }
    board.queue_lost_in_order();
}

impl Sender {
    /// Processes a report that a router could not forward a packet because of its size. `payload_bytes` is the largest
    /// payload that passes.
    pub(crate) fn on_too_big(&mut self, config: &Config, now: Instant, payload_bytes: u64) {
        let payload_bytes = payload_bytes.max(1);
        if let Some(search) = self.repair.as_mut().and_then(|repair| repair.search.as_mut()) {
            search.high_bytes = search.high_bytes.min(payload_bytes);
        }
        if payload_bytes >= self.driver.control.mss_bytes {
            return;
        }
        self.settle_presumed();
        for index in 0..self.board.segments.len() {
            let segment = self.board.segments[index];
            if segment.in_flight() && segment.payload_bytes() > payload_bytes {
                self.board.mark_lost(index);
            }
        }
        self.repair_without_reduction();
        self.set_segment_size(config, now, payload_bytes);
    }

    /// Retransmits lost segments without a congestion response.
    fn repair_without_reduction(&mut self) {
        if self.board.lost_bytes() > 0 && self.phase.is_calm() {
            self.phase = RecoveryPhase::Loss;
            self.repair_mut().recovery_end = self.next;
            self.duplicates = 0;
            self.tail_probe_end = 0;
            self.probe_at = Instant::NEVER;
            self.reorder_at = Instant::NEVER;
        }
    }

    /// Sets the segment size, and splits larger segments that are to be retransmitted.
    fn set_segment_size(&mut self, config: &Config, now: Instant, payload_bytes: u64) {
        self.board.set_mss(payload_bytes);
        if self.board.lost_bytes() > 0 {
            cut_lost(&mut self.board, payload_bytes);
        }
        self.driver.set_mss(now, payload_bytes);
        self.update_pacing(config);
    }

    /// Decides after a timeout whether the path is a black hole for segments of this size.
    pub(crate) fn suspect_black_hole(&mut self, config: &Config, now: Instant) {
        let Some(most) = config.black_hole_timeouts else { return };
        let mss_bytes = self.driver.control.mss_bytes;
        let head_bytes = self.board.segments.front().map_or(0, |head| head.payload_bytes());
        if self.timeouts_in_row < most {
            return;
        }
        if head_bytes > mss_bytes {
            // The segment was sent before the size decreased, or as a probe of the search, and has not been marked lost
            // until now.
            return self.set_segment_size(config, now, mss_bytes);
        }
        // The segment that does not pass may be smaller than a full segment.
        let smaller = (mss_bytes.min(head_bytes) / 2).clamp(SMALLEST_BYTES, BASE_BYTES);
        if head_bytes <= smaller || smaller >= mss_bytes {
            return;
        }
        let high_bytes = self.repair().search.as_ref().map_or(mss_bytes, |search| search.high_bytes);
        self.repair_mut().search = Some(Box::new(PathMtuDiscovery { high_bytes, probe: None }));
        self.set_segment_size(config, now, smaller);
        if !self.driver.has_own_recovery() {
            self.driver.control.cwnd_bytes = smaller;
        }
        self.seek_path_probe();
    }

    /// Executes the next step of the search: evaluates the outstanding probe, or sends the next one.
    pub(crate) fn poll_search(&mut self, config: &Config, now: Instant) -> Option<OutgoingSegment> {
        let search = **self.repair().search.as_ref()?;
        let outgoing = match search.probe {
            Some(probe) => {
                self.judge_path_probe(config, now, &probe);
                None
            }
            None => self.send_path_probe(now, search.high_bytes),
        };
        if self.repair().search.is_some() {
            self.seek_path_probe();
        }
        outgoing
    }

    fn judge_path_probe(&mut self, config: &Config, now: Instant, probe: &Probe) {
        let Some(search) = self.repair.as_mut().and_then(|repair| repair.search.as_mut()) else { return };
        let size_bytes = probe.end - probe.start;
        if self.una >= probe.end {
            search.probe = None;
            self.set_segment_size(config, now, size_bytes);
            return;
        }
        let lost = self.board.segments.get(self.board.position(probe.start)).is_some_and(|segment| {
            segment.start == probe.start && segment.end() == probe.end && segment.has(flag::LOST)
        });
        if !lost {
            return;
        }
        search.probe = None;
        search.high_bytes = search.high_bytes.min(size_bytes - 1);
        if self.phase == RecoveryPhase::FastRecovery && self.board.lost_bytes() == size_bytes {
            // Only the probe is missing.
            self.phase = RecoveryPhase::Open;
            self.repair_without_reduction();
            self.driver.control.cwnd_bytes = probe.cwnd_bytes;
            self.driver.control.ssthresh_bytes = probe.ssthresh_bytes;
            self.tell_recovery_exit(now, true);
        }
        cut_lost(&mut self.board, self.driver.control.mss_bytes);
    }

    /// Sends a probe, a segment larger than usual, if its conditions are met.
    fn send_path_probe(&mut self, now: Instant, high_bytes: u64) -> Option<OutgoingSegment> {
        let mss_bytes = self.driver.control.mss_bytes;
        if high_bytes < mss_bytes + CLOSE_ENOUGH_BYTES {
            self.repair_mut().search = None;
            return None;
        }
        let size_bytes = (mss_bytes + high_bytes).div_ceil(2);
        let waiting_bytes = self.written.saturating_sub(self.next);
        let calm = self.phase == RecoveryPhase::Open && !self.board.is_troubled() && self.duplicates == 0;
        let room = self.driver.control.cwnd_bytes >= WINDOW_SEGMENTS * mss_bytes
            && self.board.in_flight_bytes + size_bytes <= self.driver.control.cwnd_bytes
            && self.next + size_bytes + WAITING_SEGMENTS * mss_bytes <= self.window_end
            && waiting_bytes >= size_bytes + WAITING_SEGMENTS * mss_bytes;
        if !calm || !room {
            return None;
        }
        let probe = Probe {
            start: self.next,
            end: self.next + size_bytes,
            cwnd_bytes: self.driver.control.cwnd_bytes,
            ssthresh_bytes: self.driver.control.ssthresh_bytes,
        };
        self.repair_mut().search = Some(Box::new(PathMtuDiscovery { high_bytes, probe: Some(probe) }));
        Some(self.send_new(now, size_bytes, false))
    }
}
