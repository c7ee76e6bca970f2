//! The schedule of a trace: it splits the trace into bins, shuffles the bins, scales time, and prefills the network.
//!
//! * The trace is split into bins of `bin / scale` of trace time. A Fisher-Yates shuffle with a random stream of (seed,
//!   trace name) orders them, and the run uses the first bins of that order. Connections keep their positions within a
//!   bin, and their bodies do not change. The shuffle removes the trend over the hour and keeps the local structure.
//! * Run time is `scale` times trace time.
//! * During the prefill only long-lived connections are kept, which a network in equilibrium would contain. Their
//!   starts are compressed into the last `interval` of the prefill, so that they fill it at the requested load.
//!
//! Source: draft-irtf-iccrg-tcpeval-01, sections 2.3 and 3.

use crate::error::Error;
use crate::load::{self, Overhead};
use crate::trace::Trace;
use crate::vector::ConnectionVector;
use fullpipe_units::{Duration, RandomStream};

/// Largest number of bins of a trace.
const MOST_BINS: u64 = 10_000_000;

/// The order of the bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinOrder {
    /// A random permutation.
    Shuffled,
    /// The order of the trace.
    Original,
}

/// The prefill with long-lived connections (draft, section 3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prefill {
    /// End of the prefill. Of the connections that start earlier, only long-lived ones are kept (`prefill_t`).
    pub time: Duration,
    /// Length of the interval, at the end of the prefill, into which the starts of the kept connections are compressed
    /// (`prefill_si`).
    pub interval: Duration,
    /// Lifetime above which a connection is long-lived (`long_flow_bias`).
    pub lifetime: Duration,
    /// A connection's share of the link in bit/s, from which lifetimes are estimated.
    pub share_bps: f64,
}

impl Prefill {
    /// No prefill: every connection is kept at its start.
    pub const NONE: Prefill =
        Prefill { time: Duration::ZERO, interval: Duration::ZERO, lifetime: Duration::ZERO, share_bps: 1.0 };

    /// Whether a connection that starts during the prefill is kept.
    pub fn keeps(&self, connection: &ConnectionVector) -> bool {
        load::estimate(connection, &Overhead::default(), self.share_bps).lifetime > self.lifetime
    }

    /// Returns the compressed start of a connection in the prefill.
    fn compressed(&self, start: Duration) -> Duration {
        let ratio = self.interval.as_secs_f64() / self.time.as_secs_f64();
        let offset = Duration::from_secs_f64(start.as_secs_f64() * ratio).min(self.interval);
        self.time.saturating_sub(self.interval).saturating_add(offset)
    }
}

/// The parameters by which the connections of a run are derived from a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Run time divided by trace time.
    pub scale: f64,
    /// Length of a bin in run time.
    pub bin: Duration,
    /// Order of the bins.
    pub order: BinOrder,
    /// Seed of the shuffle.
    pub seed: u64,
    /// Length of the part of a trace that is used. A shorter trace is used in full.
    pub trace_length: Duration,
    /// Length of the run, including the prefill.
    pub duration: Duration,
    /// The prefill.
    pub prefill: Prefill,
}

impl Schedule {
    /// Returns the connections of a trace in order of their start in the run, generated on demand.
    ///
    /// # Errors
    /// If `scale` or `bin` is not positive, or the trace would have more than ten million bins.
    pub fn schedule_trace<T: Trace>(&self, trace: T) -> Result<ScheduledConnections<T>, Error> {
        let length = self.trace_length.min(trace.length());
        let width = self.source_width()?;
        let total = length.as_nanos().div_ceil(width.as_nanos());
        if total > MOST_BINS {
            return Err(Error::Unsatisfiable(format!(
                "a scale of {} and bins of {} split the trace {} into {total} bins; the maximum is {MOST_BINS}",
                self.scale,
                self.bin,
                trace.name()
            )));
        }
        let played = self.duration.as_nanos().div_ceil(self.bin.as_nanos()).min(total);
        // There are at most ten million bins.
        let mut order: Vec<u32> = (0..total as u32).collect();
        if self.order == BinOrder::Shuffled {
            let mut random = RandomStream::new(self.seed, trace.name(), "tmix shuffle");
            for place in 0..played {
                let other = place + random.uniform_below(total - place);
                order.swap(place as usize, other as usize);
            }
        }
        order.truncate(played as usize);
        Ok(ScheduledConnections {
            schedule: *self,
            trace,
            length,
            width,
            order,
            next: 0,
            ready: Vec::new().into_iter(),
        })
    }

    /// The length of a bin in trace time.
    fn source_width(&self) -> Result<Duration, Error> {
        if !(self.scale.is_finite() && self.scale > 0.0) || self.bin.is_zero() {
            return Err(Error::Unsatisfiable(format!(
                "a scale of {} and bins of {}: both must be above 0",
                self.scale, self.bin
            )));
        }
        Ok(Duration::from_secs_f64(self.bin.as_secs_f64() / self.scale).max(Duration::from_nanos(1)))
    }

    /// Converts trace time to run time.
    fn run_time(&self, trace_time: Duration) -> Duration {
        Duration::from_secs_f64(trace_time.as_secs_f64() * self.scale)
    }
}

/// Iterator over the scheduled connections of one trace; see [`Schedule::schedule_trace`]. It ends after an error.
#[derive(Debug)]
pub struct ScheduledConnections<T> {
    schedule: Schedule,
    trace: T,
    length: Duration,
    /// Length of a bin in trace time.
    width: Duration,
    order: Vec<u32>,
    next: usize,
    ready: std::vec::IntoIter<ConnectionVector>,
}

impl<T: Trace> ScheduledConnections<T> {
    /// The indices of the trace's bins, in the order in which the run uses them.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Returns the connections of the next bin, without those that the prefill omits, in order of start. `None` after
    /// the last bin.
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
            // The trace returns starts in order, from the bin's first instant to before its end.
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

impl<T: Trace> Iterator for ScheduledConnections<T> {
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
