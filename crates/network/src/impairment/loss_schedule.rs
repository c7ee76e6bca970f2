//! A loss schedule: independent loss whose probability changes at given times.
//!
//! It is a Bernoulli model (`crate::loss`) in addition to the link's other models. Each frame is lost with the
//! probability of the last step before or at the end of its transmission. Before the first step, the probability is 0.
//! A schedule can repeat; the last probability of one period then applies until the first step of the next period.
//! While the probability is 0, no random number is drawn.

use super::settings::{ImpairmentComponent, ImpairmentContext, ImpairmentModel, ImpairmentSettings, ImpairmentStage};
use fullpipe_schema::{Field, FieldKind, Table, Value, keys};
use fullpipe_units::{Duration, Instant};
use std::sync::Arc;

/// The key of a direction of a link with the period of its loss schedule.
pub const REPEAT_KEY: &str = "loss_schedule_repeat";

pub(super) static LOSS_SCHEDULE: ImpairmentComponent = ImpairmentComponent {
    field: Field::optional(
        "loss_schedule",
        FieldKind::Tables(&STEP),
        "none",
        "Changes of an additional random loss at given times, for example `[{ at = \"5s\", probability = 0.02 }]`. Times must increase.",
    ),
    fill: |_| (),
    read: |reader, value| {
        let step = |tree: &fullpipe_schema::Tree| LossStep {
            at: tree.duration("at"),
            probability: tree.number("probability"),
        };
        let steps: Vec<LossStep> = value.tables().iter().map(step).collect();
        if let Some(index) = steps.windows(2).position(|pair| pair[1].at <= pair[0].at) {
            let path = reader.path_of(&format!("loss_schedule.{}", index + 1));
            let (tree, earlier) = (&value.tables()[index + 1], steps[index].at);
            let message = format!("{path}.at = {} is not later than the previous step", steps[index + 1].at);
            reader.check.add_error_at(tree, &path, "at", message, &format!("a time after {earlier}"));
        }
        let repeat = reader.tree.get(REPEAT_KEY).map(Value::duration);
        if let Some((period, last)) = repeat.zip(steps.last()).filter(|(period, last)| *period <= last.at) {
            let message = format!("{} = {period} is not later than the last step", reader.path_of(REPEAT_KEY));
            reader.add_error(REPEAT_KEY, message, &format!("a time after {}", last.at));
        }
        Ok(vec![Arc::new(LossSchedule { steps, repeat })])
    },
};

static STEP: Table = Table {
    name: "loss step",
    text: "A probability of loss, from a time on.",
    fields: &[keys! {
        /// Time from the start of the run or of the repetition. It applies to frames whose transmission ends then or later.
        "at": FieldKind::DURATION, required;
        /// Probability with which each frame is lost, independently of the others and of `loss`.
        "probability": FieldKind::PROBABILITY, required;
    }],
    ..Table::EMPTY
};

/// A probability of loss that applies from a given time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossStep {
    /// Time since the start of the run, or since the start of the period if the schedule repeats.
    pub at: Duration,
    /// Probability of loss of each frame whose transmission ends at this time or later, until the next step.
    pub probability: f64,
}

/// Independent loss whose probability changes at given times.
///
/// ```
/// use fullpipe_network::impairment::{LossSchedule, LossStep};
/// use fullpipe_units::Duration;
/// let at = |seconds, probability| LossStep { at: Duration::from_secs(seconds), probability };
/// let mut schedule = LossSchedule { steps: vec![at(1, 0.1), at(5, 0.0)], repeat: None };
/// schedule.insert(at(3, 0.5));
/// assert_eq!(schedule.steps, [at(1, 0.1), at(3, 0.5), at(5, 0.0)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossSchedule {
    /// The steps, in order of time.
    pub steps: Vec<LossStep>,
    /// The period, after the last step; `None` if the schedule does not repeat.
    pub repeat: Option<Duration>,
}

impl LossSchedule {
    /// Inserts a step in order of time. The step replaces any existing step at the same time.
    pub fn insert(&mut self, step: LossStep) {
        let place = self.steps.partition_point(|other| other.at < step.at);
        match self.steps.get_mut(place).filter(|other| other.at == step.at) {
            Some(other) => *other = step,
            None => self.steps.insert(place, step),
        }
    }

    /// Returns the schedule of a run that starts at `offset` within this schedule, modulo its period. A schedule that
    /// does not repeat is returned unchanged.
    #[must_use]
    pub fn starting_at(&self, offset: Duration) -> LossSchedule {
        let Some(period) = self.repeat.filter(|period| !period.is_zero()) else { return self.clone() };
        let offset = Duration::from_nanos(offset.as_nanos() % period.as_nanos());
        let (before, after) = self.steps.split_at(self.steps.partition_point(|step| step.at <= offset));
        let first = before.last().map(|step| LossStep { at: Duration::ZERO, ..*step });
        // A list that is not in order is rejected after it is read.
        let later = after.iter().map(|step| LossStep { at: step.at.saturating_sub(offset), ..*step });
        let earlier = before.iter().filter(|step| step.at < offset);
        let earlier = earlier.map(|step| LossStep { at: period - (offset - step.at), ..*step });
        LossSchedule { steps: first.into_iter().chain(later).chain(earlier).collect(), repeat: self.repeat }
    }
}

impl ImpairmentSettings for LossSchedule {
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel {
        let (steps, mut next, mut probability) = (self.steps.clone(), 0, 0.0);
        let period = self.repeat.filter(|period| !period.is_zero());
        let mut round = Instant::ZERO;
        let mut stream = context.random_stream("loss schedule");
        ImpairmentModel::new(ImpairmentStage::Transmission, move |_, outcome| {
            if let Some(period) = period {
                let rounds = outcome.finish.saturating_since(round).as_nanos() / period.as_nanos();
                if rounds > 0 {
                    round = round.saturating_add(period.saturating_mul(rounds));
                    (next, probability) = (0, steps.last().map_or(0.0, |step| step.probability));
                }
            }
            while let Some(step) = steps.get(next).filter(|step| round.saturating_add(step.at) <= outcome.finish) {
                (probability, next) = (step.probability, next + 1);
            }
            outcome.lost |= probability > 0.0 && stream.bernoulli(probability);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::{FrameInfo, FrameOutcome};
    use super::*;

    /// Returns the numbers of the frames that are lost, of one frame per millisecond. The first ends at 0.
    fn lost(steps: &[(u64, f64)], frames: u64) -> Vec<u64> {
        lost_by(&schedule(steps, None), frames)
    }

    fn schedule(steps: &[(u64, f64)], repeat_ms: Option<u64>) -> LossSchedule {
        let steps = steps.iter().map(|&(ms, probability)| LossStep { at: Duration::from_millis(ms), probability });
        LossSchedule { steps: steps.collect(), repeat: repeat_ms.map(Duration::from_millis) }
    }

    fn lost_by(settings: &LossSchedule, frames: u64) -> Vec<u64> {
        let ImpairmentModel::Frames(_, mut model) = settings.build(&ImpairmentContext { seed: 1, link: "link" }) else {
            panic!("a model of frames");
        };
        let is_lost = |ms: &u64| {
            let finish = Instant::ZERO.saturating_add(Duration::from_millis(*ms));
            let mut outcome = FrameOutcome::new(finish, finish);
            model.process(&FrameInfo::default(), &mut outcome);
            outcome.lost
        };
        (0..frames).filter(is_lost).collect()
    }

    #[test]
    fn certain_loss_begins_and_ends_at_the_steps() {
        assert_eq!(lost(&[(3, 1.0), (6, 0.0)], 10), [3, 4, 5]);
        assert!(lost(&[], 10).is_empty());
        assert_eq!(lost(&[(0, 1.0)], 3), [0, 1, 2]);
    }

    #[test]
    fn loss_is_binomial_between_the_steps() {
        // 10 000 frames at 5 %: mean 500, standard deviation sqrt(475) = 21.8; the bounds are four standard deviations.
        let lost = lost(&[(1000, 0.05), (11_000, 0.0)], 20_000);
        assert!(lost.iter().all(|ms| (1000..11_000).contains(ms)));
        assert!((413..=587).contains(&lost.len()), "{}", lost.len());
    }

    #[test]
    fn a_step_without_loss_does_not_change_the_losses_after_it() {
        // No number is drawn while the probability is 0.
        assert_eq!(lost(&[(10, 0.5)], 200), lost(&[(2, 0.0), (10, 0.5)], 200));
    }

    #[test]
    fn a_period_begins_with_the_last_probability_of_the_previous_one() {
        // Certain loss from 3 to 5 ms and from 8 ms to the first step of the next period, which begins at 10 ms.
        let repeated = schedule(&[(3, 1.0), (5, 0.0), (8, 1.0), (9, 0.0)], Some(10));
        assert_eq!(lost_by(&repeated, 25), [3, 4, 8, 13, 14, 18, 23, 24]);
        assert_eq!(lost_by(&schedule(&[(3, 0.0), (8, 1.0)], Some(10)), 15), [8, 9, 10, 11, 12]);
    }

    #[test]
    fn a_run_that_starts_within_a_schedule_has_its_later_losses() {
        let repeated = schedule(&[(2, 1.0), (4, 0.0), (7, 1.0)], Some(9));
        for offset in 0..20 {
            let rotated = repeated.starting_at(Duration::from_millis(offset));
            let start = offset % 9;
            let later = lost_by(&repeated, 40).into_iter().filter_map(|at| at.checked_sub(start));
            assert_eq!(lost_by(&rotated, 40 - start), later.collect::<Vec<_>>(), "offset {offset}");
        }
        let once = schedule(&[(2, 1.0)], None);
        assert_eq!(once.starting_at(Duration::from_millis(1)), once);
    }

    #[test]
    fn a_step_replaces_another_at_the_same_time() {
        let at = |ms, probability| LossStep { at: Duration::from_millis(ms), probability };
        let mut schedule = LossSchedule { steps: vec![at(5, 0.1)], repeat: None };
        schedule.insert(at(5, 0.2));
        assert_eq!(schedule.steps, [at(5, 0.2)]);
    }
}
