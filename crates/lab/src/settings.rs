//! From the scenario's words to the models' settings.

use fullpipe_network::LossModel;
use fullpipe_network::impairment::Impairments;
use fullpipe_scenario::description;
use fullpipe_units::Stream;

/// A loss model with the random stream of its link.
pub(crate) fn loss(loss: description::Loss, seed: u64, link: &str) -> LossModel {
    match loss {
        description::Loss::Bernoulli { probability } => {
            LossModel::Bernoulli { probability, stream: Stream::new(seed, link, "loss") }
        }
        description::Loss::Periodic { every, offset } => {
            LossModel::Periodic { every: every.max(1), next: offset.max(1) }
        }
    }
}

/// What happens to a link's frames, with the seed and the name that its random streams are made from.
pub(crate) fn impairments(described: &Impairments, seed: u64, link: &str) -> Option<Box<Impairments>> {
    let nothing = Impairments::default();
    (*described != nothing).then(|| Box::new(Impairments { seed, link: link.to_string(), ..described.clone() }))
}
