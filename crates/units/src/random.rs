//! Named random streams. A stream depends only on the seed, the name of the entity and the purpose, so an additional
//! host or another order of creation changes no other stream.
//!
//! The key is SHA-256 of the three fields with their lengths, so that ("ab", "c") and ("a", "bc") differ. The generator
//! is xoshiro256++ (Blackman and Vigna 2019).
//!
//! [`count_draws`] counts the numbers drawn from each stream, which shows whether a run is deterministic.

use crate::{Duration, math};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// The counters of the streams that this thread creates, by name, while [`count_draws`] is active.
    static COUNTERS: RefCell<Option<BTreeMap<String, Arc<AtomicU64>>>> = const { RefCell::new(None) };
}

/// Calls `run` and returns its result with the number of draws from each stream that `run` created on this thread. The
/// name of a stream is "ENTITY: PURPOSE" with `#` in place of each number, and streams with equal names are counted
/// together. Streams without draws are omitted.
///
/// ```
/// use fullpipe_units::{RandomStream, random::count_draws};
/// let (_, draws) = count_draws(|| RandomStream::new(7, "client 12", "back-off").uniform());
/// assert_eq!(draws.into_iter().collect::<Vec<_>>(), [("client #: back-off".to_owned(), 1)]);
/// ```
pub fn count_draws<T>(run: impl FnOnce() -> T) -> (T, BTreeMap<String, u64>) {
    let outer = COUNTERS.replace(Some(BTreeMap::new()));
    let result = run();
    let counters = COUNTERS.replace(outer).unwrap_or_default();
    let draws = counters.into_iter().map(|(name, counter)| (name, counter.load(Ordering::Relaxed)));
    (result, draws.filter(|(_, draws)| *draws > 0).collect())
}

/// The counter of a stream; `None` if draws are not counted.
fn counter(entity: &str, purpose: &str) -> Option<Arc<AtomicU64>> {
    COUNTERS.with_borrow_mut(|counters| {
        let counters = counters.as_mut()?;
        let mut name = String::with_capacity(entity.len() + purpose.len() + 2);
        for character in entity.chars().chain(": ".chars()).chain(purpose.chars()) {
            if !character.is_ascii_digit() {
                name.push(character);
            } else if !name.ends_with('#') {
                name.push('#');
            }
        }
        Some(counters.entry(name).or_default().clone())
    })
}

/// A named stream of random numbers.
///
/// ```
/// use fullpipe_units::RandomStream;
/// let mut backoff = RandomStream::new(7, "client", "back-off");
/// let again = RandomStream::new(7, "client", "back-off").uniform();
/// assert_eq!(backoff.uniform(), again);
/// assert_ne!(again, RandomStream::new(7, "server", "back-off").uniform());
/// ```
#[derive(Clone, Debug)]
pub struct RandomStream {
    generator: Xoshiro256PlusPlus,
    /// The number of draws, if they are counted. Only one thread at a time draws from a stream.
    draws: Option<Arc<AtomicU64>>,
}

fn key(seed: u64, parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

/// Returns the seed of replication `run` of a study. The seed is the same at all points of a sweep, so that points are
/// compared with common random numbers.
pub fn derive_run_seed(study_seed: u64, run: u64) -> u64 {
    let bytes = key(study_seed, &["run", &run.to_string()]);
    let mut low = [0; 8];
    low.copy_from_slice(&bytes[..8]);
    // Keeps 53 bits: TOML, JSON and spreadsheets represent these integers exactly.
    u64::from_le_bytes(low) >> 11
}

/// Returns a number for `entity` in the run with `seed`, such as an initial sequence number or the seed of another
/// stream. The number is the first 64 bits of the stream of `entity` for `purpose`. It is not counted as a draw,
/// because it does not affect the timing of the run.
pub fn derive_number(seed: u64, entity: &str, purpose: &str) -> u64 {
    Xoshiro256PlusPlus::from_seed(key(seed, &[entity, purpose])).next_u64()
}

impl RandomStream {
    /// Returns the stream of `entity` for `purpose` in the run with `seed`.
    pub fn new(seed: u64, entity: &str, purpose: &str) -> Self {
        let generator = Xoshiro256PlusPlus::from_seed(key(seed, &[entity, purpose]));
        RandomStream { generator, draws: counter(entity, purpose) }
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        if let Some(draws) = &self.draws {
            // A load and a store replace an atomic addition, which costs more: only one thread draws from the stream.
            draws.store(draws.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
        self.generator.next_u64()
    }

    /// Returns a uniformly distributed number in [0, 1), which is a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a uniformly distributed number in [low, high).
    #[inline]
    pub fn uniform_between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Returns a uniformly distributed integer from 0 to `bound` - 1; 0 if `bound` is 0. The bias of the multiplication
    /// (Lemire 2019, without rejection) is below `bound` / 2^64.
    #[inline]
    pub fn uniform_below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns true with this probability.
    #[inline]
    pub fn bernoulli(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Returns an exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * math::ln(1.0 - self.uniform())
    }

    /// Returns a uniformly distributed duration in [0, limit); zero if `limit` is zero.
    pub fn uniform_duration(&mut self, limit: Duration) -> Duration {
        Duration::from_nanos(self.uniform_below(limit.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_counted_by_name_and_only_within_the_call() {
        let mut outside = RandomStream::new(1, "link 1", "loss");
        let (drawn, draws) = count_draws(|| {
            let mut streams = [RandomStream::new(1, "link 1", "loss"), RandomStream::new(1, "link 22", "loss")];
            let _unused = RandomStream::new(1, "host", "processing");
            let first = streams[0].next_u64();
            streams[1].uniform();
            outside.next_u64();
            assert_eq!(derive_number(1, "link 1", "loss"), first);
            first
        });
        assert_eq!(draws, BTreeMap::from([("link #: loss".to_owned(), 2)]));
        // The counter does not change the numbers.
        assert_eq!(RandomStream::new(1, "link 1", "loss").next_u64(), drawn);
    }

    #[test]
    fn streams_differ_if_entity_and_purpose_join_to_the_same_text() {
        assert_ne!(RandomStream::new(1, "ab", "c").next_u64(), RandomStream::new(1, "a", "bc").next_u64());
    }

    #[test]
    fn seeds_of_replications_differ_and_are_exact_as_floats() {
        let seeds: Vec<u64> = (0..100).map(|run| derive_run_seed(5, run)).collect();
        for (i, seed) in seeds.iter().enumerate() {
            assert!(*seed < 1 << 53);
            assert!(!seeds[..i].contains(seed));
        }
    }

    #[test]
    fn uniform_and_exponential_numbers_have_their_mean_and_variance() {
        // Uniform: mean 1/2, variance 1/12; exponential: mean m, variance m^2. Bounds are four standard errors of
        // n = 100 000: 4 * sqrt(1/12/n) = 0.0037 and 4 * 3 / sqrt(n) = 0.038.
        let mut stream = RandomStream::new(3, "x", "y");
        let n = 100_000;
        let mean = (0..n).map(|_| stream.uniform()).sum::<f64>() / n as f64;
        assert!((mean - 0.5).abs() < 0.0037, "{mean}");
        let mean = (0..n).map(|_| stream.exponential(3.0)).sum::<f64>() / n as f64;
        assert!((mean - 3.0).abs() < 0.038, "{mean}");
    }

    #[test]
    fn bounded_numbers_reach_each_value_and_no_other() {
        let mut stream = RandomStream::new(3, "x", "z");
        let mut seen = [0u32; 5];
        for _ in 0..5000 {
            seen[stream.uniform_below(5) as usize] += 1;
        }
        // Binomial(5000, 1/5): mean 1000, standard deviation 28. The bounds are five standard deviations on either
        // side.
        assert!(seen.iter().all(|n| (860..1140).contains(n)), "{seen:?}");
        assert_eq!(stream.uniform_below(0), 0);
    }
}
