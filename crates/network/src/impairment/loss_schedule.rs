//! A loss schedule: independent loss whose probability changes at given times.
//!
//! It is a Bernoulli model (`crate::loss`) in addition to the link's other models. Each frame is lost with the
//! probability of the last step before or at the end of its transmission. Before the first step, the probability is 0.
//! While the probability is 0, no random number is drawn.

use super::settings::{ImpairmentComponent, ImpairmentContext, ImpairmentModel, ImpairmentSettings, ImpairmentStage};
use fullpipe_schema::{Field, FieldKind, Table, keys};
use fullpipe_units::{Duration, Instant};
use std::sync::Arc;

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
        Ok(vec![Arc::new(LossSchedule { steps })])
    },
};

static STEP: Table = Table {
    name: "loss step",
    text: "A probability of loss, from a time on.",
    fields: &[keys! {
        /// Time from the start of the run. It applies to frames whose transmission ends then or later.
        "at": FieldKind::DURATION, required;
        /// Probability with which each frame is lost, independently of the others and of `loss`.
        "probability": FieldKind::PROBABILITY, required;
    }],
    ..Table::EMPTY
};

/// A probability of loss that applies from a given time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossStep {
    /// Time since the start of the run.
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
/// let mut schedule = LossSchedule { steps: vec![at(1, 0.1), at(5, 0.0)] };
/// schedule.insert(at(3, 0.5));
/// assert_eq!(schedule.steps, [at(1, 0.1), at(3, 0.5), at(5, 0.0)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossSchedule {
    /// The steps, in order of time.
    pub steps: Vec<LossStep>,
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
}

impl ImpairmentSettings for LossSchedule {
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel {
        let (steps, mut next, mut probability) = (self.steps.clone(), 0, 0.0);
        let mut stream = context.random_stream("loss schedule");
        ImpairmentModel::new(ImpairmentStage::Transmission, move |_, outcome| {
            while let Some(step) =
                steps.get(next).filter(|step| Instant::ZERO.saturating_add(step.at) <= outcome.finish)
            {
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
        let steps = steps.iter().map(|&(ms, probability)| LossStep { at: Duration::from_millis(ms), probability });
        let settings = LossSchedule { steps: steps.collect() };
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
    fn a_step_replaces_another_at_the_same_time() {
        let at = |ms, probability| LossStep { at: Duration::from_millis(ms), probability };
        let mut schedule = LossSchedule { steps: vec![at(5, 0.1)] };
        schedule.insert(at(5, 0.2));
        assert_eq!(schedule.steps, [at(5, 0.2)]);
    }
}
