//! Minstrel-HT: rate control of Linux for 802.11n and ac, from the outcomes of transmissions alone.
//!
//! **Statistics.** For each rate, attempts and successes of MPDUs are counted. Every 50 ms their ratio passes a second-order
//! low-pass filter ([`filter`]); rates without attempts keep their value. Rates are ordered by an estimate of the
//! throughput ([`throughput`]), from the probability of success and the time for a packet of 1200 bytes in an aggregate of 16.
//!
//! **Retry chain.** A frame is sent at the rate with the highest throughput, then at the second, then at the rate with the
//! highest probability. Each entry has a number of attempts that fits into 6 ms ([`attempts`]). Entries after the first use
//! RTS. If the best rate has more than 30 attempts in an interval and less than 20 % successes, a group with as many or fewer
//! streams replaces it at once.
//!
//! **Sampling.** Every 20 ms at most one MPDU, alone in its PPDU, is sent at another rate: the next faster one of a group
//! (increment), a random faster one (jump), or one between the slowest and the fastest in use (slow). The sequence is
//! increment, jump, increment, jump, increment, slow. Each interval has up to 5 candidates of each kind.
//!
//! The model follows mac80211 since Linux 5.12. A group has the rates of one number of streams, width and guard interval. It
//! has no groups of legacy rates. All fractions are in units of 1/4096.

use super::{Capabilities, RateDecision};
use crate::phy::{ChannelWidth, GuardInterval, MultiStreamRate, PhyRate, Standard};
use fullpipe_units::{Duration, Instant, RandomStream};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The value of a probability of 1.
pub const ONE: u32 = 4096;

const UPDATE_INTERVAL: Duration = Duration::from_millis(50);
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

/// Time in µs for everything but the data of a PPDU, without and with RTS and CTS (mac80211 in 5 GHz).
const OVERHEAD_US: [u64; 2] = [108, 228];

/// The aggregate for which packet times are computed: packets, and bytes of each.
const AGGREGATE: (u64, u64) = (16, 1200);

/// The time in µs into which the attempts of an entry of the retry chain fit, and their largest number.
const SEGMENT_US: u64 = 6000;
const MAX_ATTEMPTS: u32 = 7;

/// Candidates of each kind per interval.
const CANDIDATES: usize = 5;

/// Returns the next output of the low-pass filter for a sample from 0 to [`ONE`]; `previous` has the last two outputs. A sample
/// of 0 counts as 1.
///
/// ```
/// use fullpipe_wifi::rate_control::minstrel::filter;
/// // 1173 * 1 + 5273 * 4096 - 2350 * 4096 = 11 973 781, divided by 4096.
/// assert_eq!(filter(0, [4096, 4096]), 2923);
/// ```
pub fn filter(sample: u32, [last, before]: [u32; 2]) -> u32 {
    let sum = 1173 * i64::from(sample.max(1)) + 5273 * i64::from(last) - 2350 * i64::from(before);
    (sum >> 12).clamp(1, i64::from(ONE)) as u32
}

/// Returns the moving average of the number of MPDUs per aggregate, in units of 1/4096, with three quarters of the old value.
pub fn average_length(old: u32, new: u32) -> u32 {
    (i64::from(old) + (i64::from(new) - i64::from(old)) * 32 / 128) as u32
}

/// Returns the time of a packet of 1200 bytes in an aggregate of 16, in ns.
pub fn packet_time_ns(rate: PhyRate) -> u64 {
    let (packets, bytes) = AGGREGATE;
    let symbols = (8 * packets * bytes).div_ceil(rate.data_bits_per_symbol().max(1).into());
    let guard = match rate {
        PhyRate::Ht(rate) | PhyRate::Vht(rate) => rate.guard,
        _ => GuardInterval::Long,
    };
    let nanoseconds = match guard {
        GuardInterval::Long => 4000 * symbols,
        // Linux adds 0.8 µs for the padding to whole symbols.
        GuardInterval::Short => 3600 * symbols + 800,
    };
    nanoseconds / packets
}

/// Returns the estimated throughput in packets of 1200 bytes per 100 ms: 0 below a
/// probability of 10 %; probabilities above 90 % count as 90 %. `length` is the mean number of MPDUs per aggregate in units of
/// 1/4096.
pub fn throughput(probability: u32, packet_time_ns: u64, length: u32) -> u64 {
    if probability < ONE / 10 {
        return 0;
    }
    let packets = u64::from(length / ONE).max(1);
    let nanoseconds = 1000 * OVERHEAD_US[0] / packets + packet_time_ns;
    let probability = u64::from(probability.min(ONE * 9 / 10));
    (100 * (probability * 1_000_000 / nanoseconds)) >> 12
}

/// Returns the number of attempts of an entry of the retry chain, with or without RTS. Two attempts are always permitted, one
/// below a probability of 10 %, and more while data, overhead and mean backoff fit into 6 ms. A rate below 20 % has two.
pub fn attempts(probability: u32, packet_time_ns: u64, length: u32, rts: bool) -> u32 {
    if probability < ONE / 10 {
        return 1;
    }
    if probability < ONE / 5 {
        return 2;
    }
    let packets = u64::from(length / ONE).max(1);
    let attempt = OVERHEAD_US[usize::from(rts)] + packet_time_ns * packets / 1000;
    // Mean backoff in slots of 9 µs, from contention windows of 15, 31, 63 ...
    let backoff = |number: u32| 9 * ((16u64 << number).min(1024) - 1) / 2;
    let mut time = backoff(0) + backoff(1) + 2 * attempt;
    let mut count = 2;
    while count < MAX_ATTEMPTS {
        time += backoff(count) + attempt;
        if time >= SEGMENT_US {
            break;
        }
        count += 1;
    }
    count
}

/// Statistics of a rate.
#[derive(Clone, Debug)]
struct RateStatistics {
    rate: PhyRate,
    group: usize,
    packet_time_ns: u64,
    /// MPDUs in this interval.
    attempts: u32,
    successes: u32,
    /// The last two outputs of the filter; 0 without a sample.
    filtered: [u32; 2],
    throughput: u64,
}

impl RateStatistics {
    fn probability(&self) -> u32 {
        self.filtered[0]
    }

    fn streams(&self) -> u8 {
        self.rate.streams()
    }
}

/// The kind of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SampleKind {
    Increment,
    Jump,
    Slow,
}

/// The order of samples.
const SEQUENCE: [SampleKind; 6] = [
    SampleKind::Increment,
    SampleKind::Jump,
    SampleKind::Increment,
    SampleKind::Jump,
    SampleKind::Increment,
    SampleKind::Slow,
];

/// Minstrel-HT for frames from one node to another.
#[derive(Debug)]
pub struct MinstrelHt {
    rates: Vec<RateStatistics>,
    groups: usize,
    numbers: BTreeMap<PhyRate, usize>,
    /// The rates with the highest throughput, and the one with the highest probability.
    best: [usize; 4],
    most_probable: usize,
    /// Mean number of MPDUs per aggregate.
    length: u32,
    /// MPDUs and PPDUs in this interval.
    sent: (u32, u32),
    update_at: Instant,
    sample_at: Instant,
    sequence: usize,
    /// By kind.
    candidates: [Vec<usize>; 3],
    random: RandomStream,
}

impl MinstrelHt {
    /// Returns rate control without statistics, which begins at the most robust rate. Rates are those of all widths up to that of
    /// the capabilities. `random` selects jumps.
    pub fn new(capabilities: &Capabilities, standard: Standard, random: RandomStream) -> Self {
        let mut rates = Vec::new();
        let mut groups = 0;
        let widths =
            ChannelWidth::ALL.into_iter().filter(|width| *width <= capabilities.width.min(standard.widest_channel()));
        for width in widths {
            for guard in [GuardInterval::Long, GuardInterval::Short] {
                if guard == GuardInterval::Short && !capabilities.short_guard {
                    continue;
                }
                for streams in 1..=capabilities.streams {
                    let all = (0..10).map(|mcs| MultiStreamRate { mcs, streams, width, guard });
                    let all =
                        all.map(|rate| if standard == Standard::Ac { PhyRate::Vht(rate) } else { PhyRate::Ht(rate) });
                    rates.extend(all.filter(|rate| rate.is_valid()).map(|rate| RateStatistics {
                        rate,
                        group: groups,
                        packet_time_ns: packet_time_ns(rate),
                        attempts: 0,
                        successes: 0,
                        filtered: [0; 2],
                        throughput: 0,
                    }));
                    groups += 1;
                }
            }
        }
        let numbers = rates.iter().zip(0..).map(|(entry, number)| (entry.rate, number)).collect();
        let mut control = MinstrelHt {
            rates,
            groups,
            numbers,
            best: [0; 4],
            most_probable: 0,
            length: ONE,
            sent: (0, 0),
            update_at: Instant::ZERO,
            sample_at: Instant::ZERO,
            sequence: 0,
            candidates: Default::default(),
            random,
        };
        control.select_candidates();
        control
    }

    /// Returns the rate with the highest estimated throughput.
    pub fn best_rate(&self) -> PhyRate {
        self.rates[self.best[0]].rate
    }

    /// Returns the rate of the next PPDU, for a frame that was sent `failures` times in succession.
    pub fn select(&mut self, now: Instant, failures: u32) -> RateDecision {
        if now >= self.update_at {
            self.update();
            self.update_at = now + UPDATE_INTERVAL;
        }
        if failures == 0 && now >= self.sample_at {
            self.sample_at = now + SAMPLE_INTERVAL;
            let kind = SEQUENCE[self.sequence];
            self.sequence = (self.sequence + 1) % SEQUENCE.len();
            if let Some(number) = self.candidates[kind as usize].pop() {
                return RateDecision { rate: self.rates[number].rate, rts: false, sample: true };
            }
        }
        let mut left = failures;
        for (place, number) in [self.best[0], self.best[1]].into_iter().enumerate() {
            let RateStatistics { rate, packet_time_ns, .. } = self.rates[number];
            let rts = place > 0;
            let count = attempts(self.rates[number].probability(), packet_time_ns, self.length, rts);
            if left < count {
                return RateDecision { rate, rts, sample: false };
            }
            left -= count;
        }
        RateDecision { rate: self.rates[self.most_probable].rate, rts: true, sample: false }
    }

    /// Reports the outcome of a PPDU.
    pub fn report(&mut self, rate: PhyRate, mpdus: u32, acknowledged: u32) {
        let Some(&number) = self.numbers.get(&rate) else { return };
        let entry = &mut self.rates[number];
        entry.attempts += mpdus;
        entry.successes += acknowledged;
        self.sent.0 += mpdus;
        self.sent.1 += 1;
        if number == self.best[0] && entry.attempts > 30 && 5 * entry.successes < entry.attempts {
            self.downgrade();
        }
    }

    /// Replaces the best rate by that of the nearest group before it with as many or fewer streams.
    fn downgrade(&mut self) {
        let RateStatistics { group, .. } = self.rates[self.best[0]];
        let streams = self.rates[self.best[0]].streams();
        for group in (0..group).rev() {
            let members = (0..self.rates.len()).filter(|number| self.rates[*number].group == group);
            let best = members.max_by_key(|number| (self.rates[*number].throughput, Reverse(*number)));
            if let Some(best) = best.filter(|number| self.rates[*number].streams() <= streams) {
                self.best[0] = best;
                return;
            }
        }
    }

    /// Ends an interval of statistics.
    fn update(&mut self) {
        if self.sent.1 > 0 {
            let mean = u64::from(self.sent.0) * u64::from(ONE) / u64::from(self.sent.1);
            self.length = average_length(self.length, mean as u32);
            self.sent = (0, 0);
        }
        let length = self.length;
        for entry in &mut self.rates {
            if entry.attempts > 0 {
                let sample = (u64::from(entry.successes) * u64::from(ONE) / u64::from(entry.attempts)) as u32;
                entry.filtered = match entry.filtered {
                    [0, _] => [sample.max(1); 2],
                    filtered => [filter(sample, filtered), filtered[0]],
                };
                (entry.attempts, entry.successes) = (0, 0);
            }
            entry.throughput = throughput(entry.probability(), entry.packet_time_ns, length);
        }
        let by_throughput = |number: &usize| {
            (Reverse(self.rates[*number].throughput), Reverse(self.rates[*number].probability()), *number)
        };
        let mut order: Vec<usize> = (0..self.rates.len()).collect();
        order.sort_unstable_by_key(by_throughput);
        for (best, number) in self.best.iter_mut().zip(order) {
            *best = number;
        }
        self.most_probable = self.find_most_probable();
        self.select_candidates();
    }

    /// Returns the more reliable of two rates: above 75 % the one with more throughput, otherwise the more probable one.
    fn more_probable(&self, a: usize, b: usize) -> usize {
        let sure = 3 * ONE / 4;
        let (x, y) = (&self.rates[a], &self.rates[b]);
        let second = match (x.probability() > sure, y.probability() > sure) {
            (true, true) => y.throughput > x.throughput,
            _ => y.probability() > x.probability(),
        };
        if second { b } else { a }
    }

    fn find_most_probable(&self) -> usize {
        let of = |members: &mut dyn Iterator<Item = usize>| members.reduce(|a, b| self.more_probable(a, b));
        let streams = self.rates[self.best[0]].streams();
        let groups = (0..self.groups).filter_map(|group| {
            let mut members = (0..self.rates.len())
                .filter(|number| self.rates[*number].group == group && self.rates[*number].streams() < streams);
            of(&mut members)
        });
        let fewer = groups.max_by_key(|number| (self.rates[*number].throughput, Reverse(*number)));
        let fewer = fewer.filter(|number| self.rates[*number].throughput > 0);
        fewer.or_else(|| of(&mut (0..self.rates.len()))).unwrap_or(0)
    }

    /// Selects the candidates for samples in the next interval.
    fn select_candidates(&mut self) {
        // The rates of the retry chain are in use.
        let in_use = [self.best[0], self.best[1], self.most_probable];
        let times = in_use.map(|number| self.rates[number].packet_time_ns);
        let [fastest, slowest] = [times.iter().min(), times.iter().max()].map(|time| time.copied().unwrap_or(0));
        let [mut increments, mut jumps, mut slow] = std::mem::take(&mut self.candidates);
        [&mut increments, &mut jumps, &mut slow].into_iter().for_each(Vec::clear);
        // Each interval begins with another group, so that all have their turn.
        let first = self.random.uniform_below(self.groups as u64) as usize;
        for group in (0..self.groups).map(|group| (first + group) % self.groups) {
            let members = || (0..self.rates.len()).filter(|number| self.rates[*number].group == group);
            let faster = || members().filter(|number| self.rates[*number].packet_time_ns < fastest);
            if increments.len() < CANDIDATES {
                increments.extend(faster().max_by_key(|number| self.rates[*number].packet_time_ns));
            }
            let count = faster().count() as u64;
            if count > 0 && jumps.len() < CANDIDATES {
                jumps.extend(faster().nth(self.random.uniform_below(count) as usize));
            }
            let between = |entry: &RateStatistics| {
                (fastest..=slowest).contains(&entry.packet_time_ns) && entry.probability() < ONE * 95 / 100
            };
            let next = members().find(|number| between(&self.rates[*number]) && !in_use.contains(number));
            if slow.len() < CANDIDATES {
                slow.extend(next);
            }
        }
        self.candidates = [increments, jumps, slow];
    }
}
