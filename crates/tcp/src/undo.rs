//! Reductions that were for nothing: finding them and taking them back.
//!
//! **Model.** A reduction that losses called for opens an episode. It closes with the next one. Within it three signs
//! tell that nothing was lost, only late, each with a setting of its own:
//!
//! * *timestamps* (Eifel, RFC 3522): the acknowledgement of what was sent again echoes a timestamp older than the first
//!   retransmission, so the original had arrived;
//! * *duplicate reports* (RFC 2883; as Linux): every retransmission of the episode has been reported as a duplicate.
//!   This may come after the recovery is over;
//! * *F-RTO* (RFC 5682, with SACK): after a time-out only the first segment is sent again; once its acknowledgement
//!   moves on, new data are sent instead of what counts as lost. If then, or already with that acknowledgement,
//!   something is reported as arrived that was never sent again, the path had not lost it. If the report is of the new
//!   data alone, or of a duplicate acknowledgement, the losses were real.
//!
//! Then what is marked lost is in flight again, and the congestion control restores what it had
//! ([`fullpipe_congestion::RecoveryExit::undone`]): threshold and window as before the reduction (as Linux; RFC 4015
//! would restore the threshold and begin with what is in flight plus an initial window at most).

use crate::Config;
use crate::acknowledge::{Arrival, Batch, Reports, timestamp};
use crate::recovery::Phase;
use crate::sender::Sender;
use crate::sequence::timestamp_before;
use fullpipe_units::Instant;

/// Where F-RTO stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frto {
    /// Not in use, or decided.
    Off,
    /// The first segment was sent again (RFC 5682 step 1).
    Begun,
    /// New data instead of retransmissions (step 2b).
    NewData,
}

/// A reduction that may prove to have been for nothing.
#[derive(Debug)]
pub(crate) struct Episode {
    /// First outstanding when it began.
    begin: u64,
    /// First retransmission: its timestamp and first offset.
    first: Option<(u32, u64)>,
    /// Retransmissions not reported as duplicates yet.
    unreported: u64,
    frto: Frto,
    by_timestamps: bool,
    by_reports: bool,
}

impl Sender {
    /// The last reduction that losses called for, while it may prove to have been for nothing.
    #[inline]
    pub(crate) fn episode(&mut self) -> Option<&mut Episode> {
        self.board.loss.as_mut()?.episode.as_mut()
    }

    /// The last reduction stands.
    pub(crate) fn end_episode(&mut self) {
        if let Some(loss) = &mut self.board.loss {
            loss.episode = None;
        }
    }

    /// Fast recovery begins.
    pub(crate) fn begin_episode(&mut self, config: &Config) {
        self.end_episode();
        let by_timestamps = config.eifel;
        let by_reports = config.dsack_undo && self.sack;
        if by_timestamps || by_reports || config.frto {
            // A tail loss probe that sent something again is one of its retransmissions.
            let probed = self.tail_probe_end != 0 && self.tail_probe_was_retransmission;
            self.board.loss_mut().episode = Some(Episode {
                begin: self.una,
                first: None,
                unreported: u64::from(probed),
                frto: Frto::Off,
                by_timestamps,
                by_reports,
            });
        }
    }

    /// The timer expired: an episode begins, or that of the recovery which the time-out ends goes on.
    pub(crate) fn begin_episode_of_timeout(&mut self, config: &Config) {
        if self.phase.is_calm() {
            self.begin_episode(config);
        }
        let fit = config.frto && self.sack && self.phase != Phase::FastRecovery;
        if let Some(episode) = self.episode() {
            episode.frto = if fit { Frto::Begun } else { Frto::Off };
        }
    }

    /// A segment that begins at `start` is sent again.
    pub(crate) fn note_retransmission(&mut self, config: &Config, now: Instant, start: u64) {
        if self.phase.is_calm() {
            return;
        }
        if let Some(episode) = self.episode() {
            episode.unreported += 1;
            episode.first.get_or_insert((timestamp(config, now), start));
        }
    }

    /// Whether F-RTO wants new data to leave before what counts as lost.
    #[cold]
    pub(crate) fn waits_for_new_data(&self) -> bool {
        self.board
            .loss
            .as_ref()
            .and_then(|loss| loss.episode.as_ref())
            .is_some_and(|episode| episode.frto == Frto::NewData)
    }

    /// Was the reduction needed?
    #[cold]
    pub(crate) fn judge_episode(&mut self, now: Instant, arrival: &Arrival<'_>, batch: &Batch, reports: &Reports) {
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
        needless |= self.phase == Phase::Loss && episode.frto != Frto::Off && reports.original;
        if needless {
            return self.undo(now, reports.widened);
        }
        if self.phase == Phase::Loss {
            self.go_on_with_frto(batch, reports.advanced);
        }
    }

    /// RFC 5682 section 3.1, steps 2 and 3, where the time-out is not known to be spurious.
    fn go_on_with_frto(&mut self, batch: &Batch, advanced: bool) {
        // A whole segment, which Nagle's rule does not hold back.
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

    /// Takes the reduction back.
    fn undo(&mut self, now: Instant, widened: bool) {
        self.end_episode();
        self.repair_mut().counts.undone += 1;
        self.settle_presumed();
        if !self.phase.is_calm() {
            self.board.unmark_lost();
            self.phase = Phase::Open;
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
