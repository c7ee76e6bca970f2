//! Spurious reductions: detection and undo.
//!
//! **Model.** A reduction because of losses begins an *episode*, which the next reduction ends. Within an episode,
//! four kinds of evidence show that segments were only delayed, not lost:
//!
//! * *timestamps* (Eifel, RFC 3522): the acknowledgment of a retransmitted segment echoes a timestamp older than the
//!   first retransmission, so the original arrived;
//! * *no retransmission* (with the setting for timestamps, as in Linux since 6.12): the cumulative acknowledgment
//!   advances in fast recovery over a segment that is marked lost, before any segment has been retransmitted;
//! * *duplicate reports* (RFC 2883, as in Linux): every retransmission of the episode was reported as a duplicate. This
//!   may happen after the end of the recovery;
//! * *F-RTO* (RFC 5682, with SACK): after a timeout, only the first segment is retransmitted. Once its acknowledgment
//!   advances, new data is sent instead of segments marked lost. If this acknowledgment or the next one reports that
//!   data arrived that was never retransmitted, the path had not lost this data. If the report covers only the new
//!   data, or is a duplicate acknowledgment, the losses were real.
//!
//! Segments marked lost are then in flight again, and the congestion control restores its state
//! ([`fullpipe_congestion::RecoveryExit::undone`]). Threshold and window return to their values before the reduction
//! (as in Linux). RFC 4015 would restore the threshold, and limit the window to the data in flight plus an initial
//! window.

use crate::Config;
use crate::acknowledge::{AckResult, ReceivedAck, RecoveryEvidence, timestamp};
use crate::recovery::RecoveryPhase;
use crate::sender::Sender;
use crate::sequence::timestamp_before;
use fullpipe_units::Instant;

/// State of F-RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frto {
    /// Not in use, or already decided.
    Off,
    /// The first segment was retransmitted (RFC 5682 step 1).
    Begun,
    /// New data is sent instead of retransmissions (step 2b).
    NewData,
}

/// A reduction that may prove spurious.
#[derive(Debug)]
pub(crate) struct UndoCandidate {
    /// First outstanding offset at the start of the episode.
    begin: u64,
    /// Timestamp and first offset of the first retransmission.
    first: Option<(u32, u64)>,
    /// Retransmissions not yet reported as duplicates.
    unreported: u64,
    frto: Frto,
    by_timestamps: bool,
    by_reports: bool,
}

impl Sender {
    /// The last reduction after a loss, while it may still be undone.
    #[inline]
    pub(crate) fn episode(&mut self) -> Option<&mut UndoCandidate> {
        self.board.loss.as_mut()?.episode.as_mut()
    }

    /// Ends the episode: the last reduction can no longer be undone.
    pub(crate) fn end_episode(&mut self) {
        if let Some(loss) = &mut self.board.loss {
            loss.episode = None;
        }
    }

    /// Begins an episode at the start of fast recovery.
    pub(crate) fn begin_episode(&mut self, config: &Config) {
        self.end_episode();
        let by_timestamps = config.eifel;
        let by_reports = config.dsack_undo && self.sack;
        if by_timestamps || by_reports || config.frto {
            // A tail loss probe that retransmitted a segment is one of the episode's retransmissions.
            let probed = self.tail_probe_end != 0 && self.tail_probe_was_retransmission;
            self.board.loss_mut().episode = Some(UndoCandidate {
                begin: self.una,
                first: None,
                unreported: u64::from(probed),
                frto: Frto::Off,
                by_timestamps,
                by_reports,
            });
        }
    }

    /// Begins an episode after a timeout, or continues the episode of the recovery that the timeout ends.
    pub(crate) fn begin_episode_of_timeout(&mut self, config: &Config) {
        if self.phase.is_calm() {
            self.begin_episode(config);
        }
        let fit = config.frto && self.sack && self.phase != RecoveryPhase::FastRecovery;
        if let Some(episode) = self.episode() {
            episode.frto = if fit { Frto::Begun } else { Frto::Off };
        }
    }

    /// Records the retransmission of a segment that begins at `start`.
    pub(crate) fn note_retransmission(&mut self, config: &Config, now: Instant, start: u64) {
        if self.phase.is_calm() {
            return;
        }
        if let Some(episode) = self.episode() {
            episode.unreported += 1;
            episode.first.get_or_insert((timestamp(config, now), start));
        }
    }

    /// Whether F-RTO requires that new data is sent before segments marked lost.
    #[cold]
    pub(crate) fn waits_for_new_data(&self) -> bool {
        self.board
            .loss
            .as_ref()
            .and_then(|loss| loss.episode.as_ref())
            .is_some_and(|episode| episode.frto == Frto::NewData)
    }

    /// Determines whether the reduction was spurious.
    #[cold]
    pub(crate) fn judge_episode(
        &mut self,
        now: Instant,
        arrival: &ReceivedAck<'_>,
        batch: &AckResult,
        reports: &RecoveryEvidence,
    ) {
        let Some(episode) = self.board.loss.as_mut().and_then(|loss| loss.episode.as_mut()) else { return };
        let recovering = !self.phase.is_calm();
        let mss_bytes = self.driver.control.mss_bytes.max(1);
        let mut needless = false;
        if let Some((start, end)) = reports.duplicate
            && end > episode.begin
            && episode.by_reports
            && episode.unreported > 0
        {
            episode.unreported = episode.unreported.saturating_sub((end - start).div_ceil(mss_bytes));
            needless = episode.unreported == 0 && episode.first.is_some();
        }
        if let (Some((sent, start)), Some((echoed, _))) = (episode.first, arrival.echo) {
            let late = reports.advanced && arrival.acknowledged > start && timestamp_before(echoed, sent);
            needless |= late && recovering && episode.by_timestamps;
        }
        let has_retransmitted = episode.first.is_some() || episode.unreported > 0;
        needless |= self.phase == RecoveryPhase::FastRecovery
            && !has_retransmitted
            && episode.by_timestamps
            && reports.advanced
            && reports.late
            && self.sack;
        needless |= self.phase == RecoveryPhase::Loss && episode.frto != Frto::Off && reports.original;
        if needless {
            return self.undo(now, reports.widened);
        }
        if self.phase == RecoveryPhase::Loss {
            self.go_on_with_frto(batch, reports.advanced);
        }
    }

    /// Continues F-RTO (RFC 5682 section 3.1, steps 2 and 3) while the timeout is not known to be spurious.
    fn go_on_with_frto(&mut self, batch: &AckResult, advanced: bool) {
        // A whole segment, which Nagle's algorithm does not delay.
        let end = self.next.saturating_add(self.driver.control.mss_bytes);
        let unsent = end <= self.written && end <= self.window_end;
        let recovered = self.una >= self.repair().recovery_end;
        let Some(episode) = self.board.loss.as_mut().and_then(|loss| loss.episode.as_mut()) else { return };
        episode.frto = match episode.frto {
            Frto::Begun if advanced && !recovered && unsent => Frto::NewData,
            Frto::Begun if !advanced && batch.delivered.bytes == 0 => Frto::Begun,
            _ => Frto::Off,
        };
    }

    /// Undoes the reduction.
    fn undo(&mut self, now: Instant, widened: bool) {
        self.end_episode();
        self.repair_mut().counts.undone += 1;
        self.settle_presumed();
        if !self.phase.is_calm() {
            self.board.unmark_lost();
            self.phase = RecoveryPhase::Open;
            if !widened {
                self.rack.on_recovery_end();
            }
        }
        self.duplicates = 0;
        self.rtt.reset_backoff();
        if let Some(ecn) = &mut self.ecn {
            ecn.sender.withdraw();
        }
        self.tell_recovery_exit(now, true);
    }
}
