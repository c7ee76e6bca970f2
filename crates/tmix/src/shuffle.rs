//! Schedules a trace: cuts it into bins, puts the bins in random order, stretches time, fills the network beforehand.
//!
//! * The trace's time is cut into bins of `bin / scale`. Fisher and Yates's shuffle orders them by a random stream of
//!   (seed, trace's name); the first bins of that order are played. Within a bin connections keep their distances;
//!   bodies are not touched. So the trend of the hour is broken up, the local structure stays.
//! * Run time is `scale` times trace time.
//! * Until the end of the prefill only connections that will live long are kept (those that a network in equilibrium
//!   would have inherited), and their starts are compressed into the prefill's last `interval`, so that they fill it at
//!   the load that is asked for.
//!
//! Source: draft-irtf-iccrg-tcpeval-01, sections 2.3 and 3.

use crate::error::Error;
use crate::load::{self, Overhead};
use crate::trace::Trace;
use crate::vector::ConnectionVector;
use fullpipe_units::{Duration, Stream};

/// The most bins that a trace is cut into.
const MOST_BINS: u64 = 10_000_000;

/// The order of bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A random permutation.
    Shuffled,
    /// As the trace has them.
    Recorded,
}

/// Long connections first: `draft`, section 3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prefill {
    /// Connections that start before are kept only if they will live long (`prefill_t`).
    pub time: Duration,
    /// They start within this time before its end (`prefill_si`).
    pub interval: Duration,
    /// To live longer than this is to live long (`long_flow_bias`).
    pub lifetime: Duration,
    /// A connection's share of the link, by which lives are estimated.
    pub share_bps: f64,
}

impl Prefill {
    /// None: every connection is kept where it is.
    pub const NONE: Prefill =
        Prefill { time: Duration::ZERO, interval: Duration::ZERO, lifetime: Duration::ZERO, share_bps: 1.0 };

    /// Whether a connection that starts in the prefill is one of those that are kept.
    pub fn keeps(&self, connection: &ConnectionVector) -> bool {
        load::estimate(connection, &Overhead::default(), self.share_bps).lifetime > self.lifetime
    }

    /// Where a start in the prefill goes.
    fn compressed(&self, start: Duration) -> Duration {
        let ratio = self.interval.as_secs_f64() / self.time.as_secs_f64();
        let offset = Duration::from_secs_f64(start.as_secs_f64() * ratio).min(self.interval);
        self.time.saturating_sub(self.interval).saturating_add(offset)
    }
}

/// What makes a trace's connections those of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Run time over trace time.
    pub scale: f64,
    /// Length of a bin in run time.
    pub bin: Duration,
    /// Shuffled or not.
    pub order: Order,
    /// Seed of the shuffle.
    pub seed: u64,
    /// How much of a trace is used; of a shorter one all.
    pub trace_length: Duration,
    /// Length of the run, from the beginning of the prefill.
    pub duration: Duration,
    /// Long connections first.
    pub prefill: Prefill,
}

impl Schedule {
    /// The connections of a trace in order of their start in the run, made as they are asked for.
    pub fn stream<T: Trace>(&self, trace: T) -> Result<Scheduled<T>, Error> {
        let length = self.trace_length.min(trace.length());
        let width = self.source_width()?;
        let total = length.as_nanos().div_ceil(width.as_nanos());
        if total > MOST_BINS {
            return Err(Error::Unreachable(format!(
                "a scale of {} and bins of {} cut the trace {} into {total} bins; more than {MOST_BINS} make no sense",
                self.scale,
                self.bin,
                trace.name()
            )));
        }
        let played = self.duration.as_nanos().div_ceil(self.bin.as_nanos()).min(total);
        // At most ten million.
        let mut order: Vec<u32> = (0..total as u32).collect();
        if self.order == Order::Shuffled {
            let mut random = Stream::new(self.seed, trace.name(), "tmix shuffle");
            for place in 0..played {
                let other = place + random.below(total - place);
                order.swap(place as usize, other as usize);
            }
        }
        order.truncate(played as usize);
        Ok(Scheduled { schedule: *self, trace, length, width, order, next: 0, ready: Vec::new().into_iter() })
    }

    /// Length of a bin in trace time.
    fn source_width(&self) -> Result<Duration, Error> {
        if !(self.scale.is_finite() && self.scale > 0.0) || self.bin.is_zero() {
            return Err(Error::Unreachable(format!(
                "a scale of {} and bins of {}: both must be above 0",
                self.scale, self.bin
            )));
        }
        Ok(Duration::from_secs_f64(self.bin.as_secs_f64() / self.scale).max(Duration::from_nanos(1)))
    }

    /// Run time of a trace time.
    fn run_time(&self, trace_time: Duration) -> Duration {
        Duration::from_secs_f64(trace_time.as_secs_f64() * self.scale)
    }
}

/// The connections of one trace, scheduled; see [`Schedule::stream`]. After an error it ends.
#[derive(Debug)]
pub struct Scheduled<T> {
    schedule: Schedule,
    trace: T,
    length: Duration,
    /// Of a bin, in trace time.
    width: Duration,
    order: Vec<u32>,
    next: usize,
    ready: std::vec::IntoIter<ConnectionVector>,
}

impl<T: Trace> Scheduled<T> {
    /// Which bin of the trace is played when.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The connections of the next bin, in order of start; `None` after the last. Only those that the prefill keeps.
    pub fn next_bin(&mut self) -> Option<Result<Vec<ConnectionVector>, Error>> {
        let source = u64::from(*self.order.get(self.next)?);
        let place = self.next as u64;
        self.next += 1;
        let from = self.width * source;
        let to = from.saturating_add(self.width).min(self.length);
        let mut connections = match self.trace.connections(from, to) {
            Ok(connections) => connections,
            Err(error) => {
                self.next = self.order.len();
                return Some(Err(error));
            }
        };
        for connection in &mut connections {
            // The trace says starts in order, from its first to before its last instant of the bin.
            let shifted = self.width * place + connection.start.saturating_sub(from);
            connection.start = self.schedule.run_time(shifted);
        }
        let prefill = &self.schedule.prefill;
        connections.retain_mut(|connection| {
            if connection.start >= self.schedule.duration {
                return false;
            }
            if connection.start >= prefill.time {
                return true;
            }
            let kept = prefill.keeps(connection);
            connection.start = prefill.compressed(connection.start);
            kept
        });
        Some(Ok(connections))
    }
}

impl<T: Trace> Iterator for Scheduled<T> {
    type Item = Result<ConnectionVector, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(connection) = self.ready.next() {
                return Some(Ok(connection));
            }
            match self.next_bin()? {
                Ok(connections) => self.ready = connections.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
