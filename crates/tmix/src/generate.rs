//! Synthetic traces that replace the suite's nine traces, which may not be redistributed.
//!
//! **Per connection** they follow the statistics of a published excerpt of a campus trace (1018 connections of 2005).
//! These are sizes of units, exchanges, waits, round-trip times, and shares of concurrent and of acceptor-first
//! connections. Each quantity has the excerpt's percentiles and is independent of the others. One connection in ten has
//! segments of 496 bytes (packets of 536), the others 1460 (draft-irtf-iccrg-tcpeval-01, section 2.3). Connections are
//! sorted into the nine traces by round-trip time: the first trace has the shortest ninth, and so on.
//!
//! **In total** the nine traces offer about 320 Mbit/s from acceptors to initiators and 35 Mbit/s in the opposite
//! direction, including acknowledgments. The draft's load tables imply these numbers. They determine the values that
//! the excerpt does not state: the rate of connections, and the distribution of sizes beyond the 99th percentile.
//!
//! **Steady load.** With a heavy tail, a few transfers would determine the load of a run. Two measures avoid this.
//! First, tails are bounded Pareto. The acceptor's tail ends at the excerpt's largest unit, 8.83 MB. The initiator's
//! tail ends at 500 kB, because initiators send a tenth of the bytes. Second, each second of a trace is stratified: it
//! has as many connections as the rate requires. Their exchanges and sizes are drawn from equal strata of the
//! distributions (Latin hypercube sampling). So each second has its share of large units. Each single value keeps its
//! distribution, and starts within a second are as irregular as those of a Poisson process.
//!
//! The content of a second depends only on the seed, the trace and the number of the second.

use crate::error::Error;
use crate::quantile::{ParetoTail, QuantileDistribution, strata, strata_by_rank};
use crate::trace::Trace;
use crate::vector::{Adu, ConnectionKind, ConnectionVector, PerSide, Side};
use fullpipe_units::{Duration, RandomStream};

/// The suite's traces, from the shortest round-trip time to the longest. The number after `r` is the acceptor's node;
/// the number after `s` is the initiator's node.
pub const TRACE_NAMES: [&str; 9] = ["r4s1", "r4s2", "r4s3", "r5s1", "r5s2", "r5s3", "r6s1", "r6s2", "r6s3"];

/// Default length of a synthetic trace: 52 minutes, that of the shortest original trace.
pub const DEFAULT_LENGTH: Duration = Duration::from_secs(3120);

/// Connections per second of each of the nine traces, which offer 320 Mbit/s at the mean size of the distributions
/// below.
const CONNECTIONS_PER_SECOND: f64 = 115.5;
/// Microseconds per second.
const SECOND_US: u64 = 1_000_000;

/// Bytes of the initiator's units.
const INITIATOR_BYTES: QuantileDistribution = QuantileDistribution {
    points: &[(0.0, 30.0), (0.5, 268.0), (0.9, 598.0), (0.99, 4_235.0)],
    tail: Some(ParetoTail { index: 0.25, most: 500_000.0 }),
};
/// Bytes of the acceptor's units.
const ACCEPTOR_BYTES: QuantileDistribution = QuantileDistribution {
    points: &[(0.0, 20.0), (0.5, 511.0), (0.9, 12_137.0), (0.99, 185_344.0)],
    tail: Some(ParetoTail { index: 1.43, most: 8_830_000.0 }),
};
/// Exchanges of a connection, rounded down. The mean is 3.1.
const EPOCHS: QuantileDistribution = QuantileDistribution {
    points: &[(0.0, 1.0), (0.42, 2.0), (0.72, 3.0), (0.89, 6.0), (0.97, 10.0), (0.99, 27.5)],
    tail: Some(ParetoTail { index: 1.6, most: 163.9 }),
};
/// Seconds from the arrival of a unit to the peer's response.
const RECEIVE_WAIT: QuantileDistribution = QuantileDistribution {
    points: &[(0.0, 0.000_5), (0.5, 0.024), (0.9, 0.373), (0.99, 20.542), (1.0, 60.0)],
    tail: None,
};
/// Seconds from a unit to the next unit of the same side, or to its close.
const SEND_WAIT: QuantileDistribution =
    QuantileDistribution { points: &[(0.0, 0.05), (0.5, 3.9), (0.9, 24.0), (0.99, 81.0), (1.0, 120.0)], tail: None };
/// Round-trip times in seconds.
const ROUND_TRIP: QuantileDistribution = QuantileDistribution {
    points: &[(0.0, 0.002), (0.1, 0.014), (0.5, 0.057), (0.9, 0.329), (0.99, 2.36), (1.0, 5.0)],
    tail: None,
};

/// Share of concurrent connections: 11 of 1018.
const CONCURRENT: f64 = 11.0 / 1018.0;
/// Share of connections in which the acceptor sends first: 88 of 1018.
const ACCEPTOR_FIRST: f64 = 88.0 / 1018.0;
/// Share of connections with packet loss: 112 of 1018. The loss is at most one half.
const LOSSY: f64 = 112.0 / 1018.0;
const MOST_LOSS: f64 = 0.5;
/// Share of connections with packets of 536 bytes.
const SMALL_PACKETS: f64 = 0.1;
/// Share of exchanges in which only one side sends. This value is an assumption: the excerpt has waits between units of
/// one side, but its percentiles do not determine the share.
const ONE_SIDED: f64 = 0.08;
/// Weight of the connection in the rank of a unit's size; the rest is specific to the unit. Units of one connection
/// have similar sizes, as the excerpt's bytes per connection show.
const LIKENESS: f64 = 0.9;
/// Weight of the number of exchanges in the connection's part of the rank.
const BUSY: f64 = 0.1;
/// Cumulative shares of the largest receive windows, in bytes: default buffers of hosts in 2005.
const WINDOWS: [(f64, u64); 5] = [(0.5, 65_535), (0.7, 64_240), (0.85, 17_520), (0.95, 32_768), (1.0, 8_760)];

/// A synthetic trace that is generated second by second on request.
#[derive(Clone, Debug)]
pub struct SyntheticTrace {
    seed: u64,
    name: String,
    /// Index of the trace's ninth of the round-trip times, from the shortest.
    rank: usize,
    length: Duration,
}

/// Mean activity of the connections of a synthetic trace within an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrafficEstimate {
    /// Number of connections that start.
    pub connections: f64,
    /// Bytes of the connections' units, by sender.
    pub bytes: PerSide<f64>,
    /// Number of segments that carry these bytes.
    pub segments: PerSide<f64>,
    /// Number of waits that expire.
    pub timers: f64,
    /// Sum of the times for which the connections are open, in seconds.
    pub open_s: f64,
}

/// Mean cumulative activity of a connection by its age in seconds, in a network without delay: bytes of initiator and
/// acceptor, segments of initiator and acceptor, expired waits, seconds open. A test compares the table with generated
/// connections.
const COURSE: [(f64, [f64; 6]); 14] = [
    (0.0, [885.0, 790.0, 1.44, 0.68, 0.00, 0.00]),
    (0.05, [1090.0, 7784.0, 1.79, 7.00, 0.87, 0.05]),
    (0.1, [1195.0, 9940.0, 1.94, 8.87, 1.18, 0.10]),
    (0.2, [1413.0, 13356.0, 2.24, 11.60, 1.60, 0.20]),
    (0.5, [1782.0, 17719.0, 2.79, 15.74, 2.31, 0.46]),
    (1.0, [1946.0, 19865.0, 3.06, 17.80, 2.70, 0.87]),
    (2.0, [2112.0, 21571.0, 3.29, 19.48, 3.02, 1.61]),
    (5.0, [2304.0, 24025.0, 3.55, 21.79, 3.49, 3.50]),
    (10.0, [2509.0, 26435.0, 3.81, 23.96, 3.93, 5.94]),
    (20.0, [2734.0, 29379.0, 4.12, 26.67, 4.54, 9.19]),
    (40.0, [2929.0, 32393.0, 4.41, 29.53, 5.06, 12.47]),
    (80.0, [3111.0, 34747.0, 4.69, 31.59, 5.51, 15.10]),
    (160.0, [3209.0, 35449.0, 4.85, 32.37, 5.77, 16.01]),
    (400.0, [3224.0, 35815.0, 4.90, 32.72, 5.86, 16.21]),
];

/// The structure of a connection before its sizes are drawn.
struct Plan {
    concurrent: bool,
    epochs: u64,
    /// Quantile of the number of exchanges.
    rank: f64,
    /// The sender of each unit.
    sides: Vec<Side>,
}

impl SyntheticTrace {
    /// Returns the trace with this name, which is one of [`TRACE_NAMES`].
    ///
    /// # Errors
    /// If no trace has this name.
    pub fn new(seed: u64, name: &str, length: Duration) -> Result<Self, Error> {
        let rank = TRACE_NAMES.iter().position(|trace| *trace == name).ok_or_else(|| {
            Error::Unsatisfiable(format!("unknown synthetic trace {name:?} (one of: {})", TRACE_NAMES.join(", ")))
        })?;
        Ok(SyntheticTrace { seed, name: name.to_string(), rank, length })
    }

    /// Returns all nine traces, each of this length.
    pub fn suite(seed: u64, length: Duration) -> Vec<Self> {
        TRACE_NAMES
            .iter()
            .enumerate()
            .map(|(rank, name)| SyntheticTrace { seed, name: name.to_string(), rank, length })
            .collect()
    }

    /// Estimates the mean activity of the connections of any one of the traces in the first `time_s` seconds of a run.
    /// Starts are `scale` times as far apart as in the trace. The estimate is computed in closed form, without the
    /// generation of connections.
    pub fn estimate_traffic(time_s: f64, scale: f64) -> TrafficEstimate {
        let connections = CONNECTIONS_PER_SECOND * time_s / scale;
        // Starts are uniform over the run, so the expected activity of a connection is the mean over all ages.
        let mean = |value: usize| mean_over_ages(time_s, value) * connections;
        TrafficEstimate {
            connections,
            bytes: PerSide { initiator: mean(0), acceptor: mean(1) },
            segments: PerSide { initiator: mean(2), acceptor: mean(3) },
            timers: mean(4),
            open_s: mean(5),
        }
    }

    /// Returns the connections that start in one second, in order of start.
    pub fn connections_in_second(&self, second: u64) -> Vec<ConnectionVector> {
        self.part_of_second(second, Duration::ZERO, Duration::MAX)
    }

    /// Returns the connections of the second that start in [`from`, `to`). A bin of a shuffle can begin and end within
    /// a second, and another bin contains the rest. For connections outside the interval, random numbers are drawn but
    /// no values are computed.
    fn part_of_second(&self, second: u64, from: Duration, to: Duration) -> Vec<ConnectionVector> {
        let mut random = RandomStream::new(self.seed, &self.name, &format!("tmix second {second}"));
        // Each trace has a different phase, so that their extra connections do not all start in the same second.
        let until =
            |second: u64| (CONNECTIONS_PER_SECOND * second as f64 + self.rank as f64 / TRACE_NAMES.len() as f64) as u64;
        let (first, count) = (until(second), (until(second + 1) - until(second)) as usize);
        let mut starts: Vec<u64> = (0..count).map(|_| second * SECOND_US + random.uniform_below(SECOND_US)).collect();
        starts.sort_unstable();
        let epochs = strata(&mut random, count);
        let plans: Vec<Plan> = epochs.iter().map(|probability| plan(&mut random, *probability)).collect();
        let mut sizes = Sizes::deal(&mut random, &plans);
        let mut connections = Vec::with_capacity(count);
        for (number, (start, plan)) in starts.iter().zip(plans).enumerate() {
            let ids = [self.rank as u64 + 1, first + number as u64];
            sizes.wanted = (from..to).contains(&Duration::from_micros(*start));
            let connection = self.connection(&mut random, *start, ids, &plan, &mut sizes);
            if sizes.wanted {
                connections.push(connection);
            }
        }
        connections
    }

    fn connection(
        &self,
        random: &mut RandomStream,
        start_us: u64,
        ids: [u64; 2],
        plan: &Plan,
        sizes: &mut Sizes,
    ) -> ConnectionVector {
        let count = |side| plan.sides.iter().filter(|sender| **sender == side).count() as u64;
        let kind = if plan.concurrent {
            ConnectionKind::Concurrent {
                adus: PerSide { initiator: count(Side::Initiator), acceptor: count(Side::Acceptor) },
            }
        } else {
            ConnectionKind::Sequential { epochs: plan.epochs }
        };
        let mss = if random.bernoulli(SMALL_PACKETS) { 496 } else { 1460 };
        let window = PerSide { initiator: window(random), acceptor: window(random) };
        let rank = (self.rank as f64 + random.uniform()) / TRACE_NAMES.len() as f64;
        let loss = if random.bernoulli(LOSSY) {
            PerSide { initiator: fraction(random), acceptor: fraction(random) }
        } else {
            PerSide::default()
        };
        ConnectionVector {
            start: Duration::from_micros(start_us),
            kind,
            ids,
            mss_bytes: Some(PerSide { initiator: mss, acceptor: mss }),
            window_bytes: Some(window),
            rtt: Some(sizes.time(&ROUND_TRIP, rank)),
            loss: Some(loss),
            body: if plan.concurrent { apart(random, &plan.sides, sizes) } else { in_turn(random, &plan.sides, sizes) },
        }
    }
}

impl Trace for SyntheticTrace {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> Duration {
        self.length
    }

    fn connections(&mut self, from: Duration, to: Duration) -> Result<Vec<ConnectionVector>, Error> {
        let to = to.min(self.length);
        let second = SECOND_US * 1000;
        let mut found = Vec::new();
        for index in from.as_nanos() / second..to.as_nanos().div_ceil(second) {
            found.extend(self.part_of_second(index, from, to));
        }
        Ok(found)
    }
}

/// The mean of a value of [`COURSE`] over all ages up to `time_s`.
fn mean_over_ages(time_s: f64, value: usize) -> f64 {
    let mut sum = 0.0;
    for pair in COURSE.windows(2) {
        let [(from, begin), (to, end)] = [pair[0], pair[1]];
        if time_s <= from {
            break;
        }
        let until = time_s.min(to);
        let at_until = begin[value] + (end[value] - begin[value]) * (until - from) / (to - from);
        sum += (until - from) * (begin[value] + at_until) / 2.0;
    }
    let (last, end) = COURSE[COURSE.len() - 1];
    sum += (time_s - last).max(0.0) * end[value];
    if time_s > 0.0 { sum / time_s } else { 0.0 }
}

/// Draws the structure of a connection: its exchanges and the sender of each unit.
fn plan(random: &mut RandomStream, rank: f64) -> Plan {
    let exchanges = EPOCHS.at(rank) as u64;
    let concurrent = random.bernoulli(CONCURRENT);
    let acceptor_first = random.bernoulli(ACCEPTOR_FIRST);
    let mut sides = Vec::with_capacity(2 * exchanges as usize);
    for exchange in 0..exchanges {
        let only = if exchange == 0 && acceptor_first {
            Some(Side::Acceptor)
        } else if !concurrent && exchange > 0 && random.bernoulli(ONE_SIDED) {
            Some(if random.bernoulli(0.5) { Side::Initiator } else { Side::Acceptor })
        } else {
            None
        };
        match only {
            Some(side) => sides.push(side),
            None => sides.extend([Side::Initiator, Side::Acceptor]),
        }
    }
    let bodies = sides.iter().map(|side| Adu {
        side: *side,
        send_wait: Duration::ZERO,
        receive_wait: Duration::ZERO,
        size_bytes: 1,
    });
    let bodies: Vec<Adu> = bodies.collect();
    Plan { concurrent, epochs: ConnectionVector::count_epochs(&bodies), rank, sides }
}

/// Sizes of all units of a second, as probabilities drawn from strata.
struct Sizes {
    left: PerSide<std::vec::IntoIter<f64>>,
    /// Whether the values of the current connection are used. If not, they are zero.
    wanted: bool,
}

impl Sizes {
    fn deal(random: &mut RandomStream, plans: &[Plan]) -> Self {
        let mut deal = |side| {
            let mut keys = Vec::new();
            for plan in plans {
                let own = (1.0 - BUSY) * random.uniform() + BUSY * plan.rank;
                let units = plan.sides.iter().filter(|sender| **sender == side);
                keys.extend(units.map(|_| LIKENESS * own + (1.0 - LIKENESS) * random.uniform()));
            }
            strata_by_rank(random, &keys).into_iter()
        };
        Sizes { left: PerSide { initiator: deal(Side::Initiator), acceptor: deal(Side::Acceptor) }, wanted: true }
    }

    /// Returns the time at a probability, or 0 if the connection is not used.
    fn time(&self, quantiles: &QuantileDistribution, probability: f64) -> Duration {
        if self.wanted { whole_micros(quantiles.at(probability)) } else { Duration::ZERO }
    }

    fn send_wait(&self, random: &mut RandomStream) -> Duration {
        self.time(&SEND_WAIT, random.uniform())
    }

    fn next(&mut self, side: Side) -> u64 {
        let quantiles = if side == Side::Initiator { &INITIATOR_BYTES } else { &ACCEPTOR_BYTES };
        let probability = self.left.get_mut(side).next().expect("one size was drawn for each unit");
        if self.wanted { quantiles.at(probability).round() as u64 } else { 0 }
    }
}

/// Builds a body in which the sides take turns and the last sender closes.
fn in_turn(random: &mut RandomStream, sides: &[Side], sizes: &mut Sizes) -> Box<[Adu]> {
    let mut body: Vec<Adu> = Vec::with_capacity(sides.len() + 1);
    for side in sides {
        let (send_wait, receive_wait) = match body.last() {
            None => (Duration::ZERO, Duration::ZERO),
            Some(before) if before.side == *side => (sizes.send_wait(random), Duration::ZERO),
            Some(_) => (Duration::ZERO, sizes.time(&RECEIVE_WAIT, random.uniform())),
        };
        body.push(Adu { side: *side, send_wait, receive_wait, size_bytes: sizes.next(*side) });
    }
    if let Some(last) = body.last() {
        body.push(close(random, last.side, sizes));
    }
    body.into()
}

/// Builds a body in which each side sends independently and both close.
fn apart(random: &mut RandomStream, sides: &[Side], sizes: &mut Sizes) -> Box<[Adu]> {
    let mut begun = PerSide::<bool>::default();
    let mut body = Vec::with_capacity(sides.len() + 2);
    for side in sides {
        let first = !std::mem::replace(begun.get_mut(*side), true);
        let send_wait = if first { Duration::ZERO } else { sizes.send_wait(random) };
        body.push(Adu { side: *side, send_wait, receive_wait: Duration::ZERO, size_bytes: sizes.next(*side) });
    }
    body.extend([close(random, Side::Initiator, sizes), close(random, Side::Acceptor, sizes)]);
    body.into()
}

fn close(random: &mut RandomStream, side: Side, sizes: &Sizes) -> Adu {
    Adu { side, send_wait: sizes.send_wait(random), receive_wait: Duration::ZERO, size_bytes: 0 }
}

fn window(random: &mut RandomStream) -> u64 {
    let probability = random.uniform();
    WINDOWS.iter().find(|(until, _)| probability < *until).map_or(65_535, |(_, window)| *window)
}

/// Draws a loss fraction with few digits, usually a small one.
fn fraction(random: &mut RandomStream) -> f64 {
    let uniform = random.uniform();
    (MOST_LOSS * uniform * uniform * uniform * 1e4).round() / 1e4
}

/// Rounds to whole microseconds, the resolution of a trace file, and to at least one.
fn whole_micros(seconds: f64) -> Duration {
    Duration::from_micros(((seconds * 1e6).round() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean activity of connections after `age_s` seconds: see [`COURSE`].
    fn course(connections: &[ConnectionVector], age_s: f64) -> [f64; 6] {
        let mut sums = [0.0; 6];
        for connection in connections {
            let mss = connection.mss_bytes.expect("generated connections have an MSS").initiator;
            let mut finished = [0.0; 2];
            let mut closed: f64 = 0.0;
            for adu in &connection.body {
                let (own, peer) = if adu.side == Side::Initiator { (0, 1) } else { (1, 0) };
                let after_peer = !adu.receive_wait.is_zero();
                let wait = if after_peer { adu.receive_wait } else { adu.send_wait }.as_secs_f64();
                finished[own] = wait + if after_peer { finished[peer] } else { finished[own] };
                closed = closed.max(finished[own]);
                if finished[own] <= age_s {
                    sums[own] += adu.size_bytes as f64;
                    sums[2 + own] += adu.size_bytes.div_ceil(u64::from(mss)) as f64;
                    sums[4] += f64::from(u8::from(wait > 0.0));
                }
            }
            sums[5] += closed.min(age_s);
        }
        sums.map(|sum| sum / connections.len() as f64)
    }

    #[test]
    fn course_of_a_mean_connection_matches_the_generator() {
        let traces = SyntheticTrace::suite(1, DEFAULT_LENGTH);
        let connections: Vec<ConnectionVector> = traces
            .iter()
            .flat_map(|trace| (0..12).flat_map(|second| trace.connections_in_second(250 * second)))
            .collect();
        for (age_s, declared) in COURSE {
            let made = course(&connections, age_s);
            for (declared, made) in declared.into_iter().zip(made) {
                assert!((declared - made).abs() <= 0.15 * made + 1e-9, "at {age_s} s: {declared} for {made}");
            }
        }
    }
}
