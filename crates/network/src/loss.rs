//! Models of the loss of frames after transmission.

use fullpipe_units::RandomStream;

/// A loss model with its state.
#[derive(Clone, Debug)]
pub enum LossModel {
    /// Each frame is lost independently with this probability.
    Bernoulli {
        /// Probability of loss.
        probability: f64,
        /// The random stream, which must be the link's own.
        stream: RandomStream,
    },
    /// Frames with transport payload are counted. Frame number `next` is lost, and then every `every`-th frame after
    /// it.
    Periodic {
        /// Number of frames from one loss to the next.
        every: u64,
        /// Number of frames until the next loss, including the lost one.
        next: u64,
    },
}

impl LossModel {
    /// Returns whether the next frame is lost. Must be called once per frame, in order.
    pub fn loses(&mut self, has_payload: bool) -> bool {
        match self {
            LossModel::Bernoulli { probability, stream } => stream.bernoulli(*probability),
            LossModel::Periodic { .. } if !has_payload => false,
            LossModel::Periodic { every, next } => {
                *next -= 1;
                if *next == 0 {
                    *next = *every;
                    true
                } else {
                    false
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periodic_loss_counts_frames_with_payload_only() {
        let mut loss = LossModel::Periodic { every: 3, next: 2 };
        let lost: Vec<usize> = (1..=12).filter(|n| loss.loses(n % 2 == 0)).collect();
        // Frames with payload are 2, 4, 6, 8, 10, 12; the second of them is lost, and then the fifth.
        assert_eq!(lost, [4, 10]);
    }

    #[test]
    fn bernoulli_loss_is_binomial() {
        let mut loss = LossModel::Bernoulli { probability: 0.01, stream: RandomStream::new(1, "link", "loss") };
        let lost = (0..100_000).filter(|_| loss.loses(true)).count();
        // Mean 1000, standard deviation sqrt(990) = 31.5; the bounds are four standard deviations.
        assert!((874..=1126).contains(&lost), "{lost}");
    }
}
