//! Loss in bursts, modeled as a Markov chain of two states (Gilbert 1960, Elliott 1963).

use super::super::settings::{ImpairmentContext, ImpairmentModel, ImpairmentSettings, ImpairmentStage};
use super::LossComponent;
use fullpipe_schema::component::choice_component;
use fullpipe_schema::{Field, FieldKind};
use std::sync::Arc;

pub(super) static GILBERT_ELLIOTT: LossComponent = choice_component(
    "gilbert-elliott",
    "a Markov chain with two states; each frame is lost with the probability of the current state, then the state may \
     change (Gilbert 1960, Elliott 1963).",
    &[&[
        Field::required(
            "good_to_bad",
            FieldKind::PROBABILITY,
            "Probability per frame of a transition to the bad state.",
        ),
        Field::required(
            "bad_to_good",
            FieldKind::PROBABILITY,
            "Probability per frame of a transition to the good state.",
        ),
        Field::default("loss_good", FieldKind::PROBABILITY, "0.0", "Probability of loss in the good state."),
        Field::default("loss_bad", FieldKind::PROBABILITY, "1.0", "Probability of loss in the bad state."),
    ]],
    |reader, _| {
        let number = |key| reader.tree.number(key);
        Ok(Some(Arc::new(GilbertElliott {
            good_to_bad: number("good_to_bad"),
            bad_to_good: number("bad_to_good"),
            loss_good: number("loss_good"),
            loss_bad: number("loss_bad"),
        })))
    },
);

/// Loss by a Markov chain of two states (Gilbert 1960, Elliott 1963). Each frame is lost with the loss probability of
/// the current state; then the state can change. The initial state is drawn from the stationary distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability, per frame, of a transition from the good state to the bad state.
    pub good_to_bad: f64,
    /// Probability, per frame, of a transition from the bad state to the good state.
    pub bad_to_good: f64,
    /// Probability of loss in the good state.
    pub loss_good: f64,
    /// Probability of loss in the bad state.
    pub loss_bad: f64,
}

impl GilbertElliott {
    /// Returns the mean fraction of frames in the bad state: p / (p + r), where p is `good_to_bad` and r is
    /// `bad_to_good`; 0 if both are 0.
    pub fn bad_share(&self) -> f64 {
        let sum = self.good_to_bad + self.bad_to_good;
        if sum > 0.0 { self.good_to_bad / sum } else { 0.0 }
    }

    /// Returns the mean fraction of lost frames: the mean of the two loss probabilities, weighted by the fraction of
    /// frames in each state.
    pub fn mean_loss(&self) -> f64 {
        let bad = self.bad_share();
        (1.0 - bad) * self.loss_good + bad * self.loss_bad
    }

    /// Returns the mean number of consecutively lost frames: 0 if no frame is ever lost, infinite if all frames are
    /// lost.
    ///
    /// Each burst has one first frame, so the mean is P(lost) / P(lost and the previous frame not lost). If no frame is
    /// lost in the good state and all frames are lost in the bad state, the mean is 1 / `bad_to_good`.
    pub fn mean_burst(&self) -> f64 {
        let loss = self.mean_loss();
        if loss <= 0.0 {
            return 0.0;
        }
        let bad = self.bad_share();
        let after_good = (1.0 - self.good_to_bad) * self.loss_good + self.good_to_bad * self.loss_bad;
        let after_bad = (1.0 - self.bad_to_good) * self.loss_bad + self.bad_to_good * self.loss_good;
        let first = (1.0 - bad) * (1.0 - self.loss_good) * after_good + bad * (1.0 - self.loss_bad) * after_bad;
        loss / first
    }
}

impl ImpairmentSettings for GilbertElliott {
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel {
        let (chain, mut stream) = (*self, context.random_stream("burst loss"));
        let mut is_bad = stream.bernoulli(chain.bad_share());
        ImpairmentModel::new(ImpairmentStage::Transmission, move |_, outcome| {
            let (loss, change) =
                if is_bad { (chain.loss_bad, chain.bad_to_good) } else { (chain.loss_good, chain.good_to_bad) };
            outcome.lost |= stream.bernoulli(loss);
            is_bad ^= stream.bernoulli(change);
        })
    }
}
