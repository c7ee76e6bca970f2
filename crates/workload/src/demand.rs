//! The demand of a flow: an estimate, from its settings only, of what the flow sends within a given time. The cost
//! estimate of a scenario uses the demand.
//!
//! Random sizes and times count with their means. A mean can be a poor estimate for a run, for example with few periods
//! of an on-off source. The numbers are then the most that the flow can send, and [`Demand::bound`] states the reason.

use fullpipe_units::Distribution;

/// An estimate of what the two ends of a flow send.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Demand {
    /// Payload bytes that initiator and acceptor send; infinite if only the transport limits them.
    pub bytes: [f64; 2],
    /// Number of datagrams or writes of initiator and acceptor. Each takes at least one packet.
    pub messages: [f64; 2],
    /// Number of connections that are opened.
    pub connections: f64,
    /// Time in seconds for which a connection stays open in addition to the time of its data. `None` if it stays open
    /// until the end of the run.
    pub lifetime_s: Option<f64>,
    /// Number of application timers that expire.
    pub timers: f64,
    /// Consecutive exchanges; `None` if the flow has none. If set, all other numbers apply to one exchange.
    pub exchanges: Option<Exchanges>,
    /// Why the numbers are upper bounds; `None` if they are estimates of the mean.
    pub bound: Option<&'static str>,
}

/// Consecutive exchanges. Their number depends on the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchanges {
    /// Maximum number of exchanges; infinite if it is unlimited.
    pub most: f64,
    /// Round trips per exchange.
    pub round_trips: f64,
    /// Mean time per exchange in which nothing is sent, in seconds.
    pub pause_s: f64,
}

/// Number of independent samples from which their sum is close to its mean.
const MANY: f64 = 20.0;

impl Demand {
    /// The demand of a connection without data.
    pub const NO_DATA: Demand = Demand {
        bytes: [0.0; 2],
        messages: [0.0; 2],
        connections: 1.0,
        lifetime_s: None,
        timers: 0.0,
        exchanges: None,
        bound: None,
    };

    /// The demand of a connection on which the initiator sends `bytes` bytes.
    pub fn from_initiator(bytes: f64) -> Demand {
        Demand { bytes: [bytes, 0.0], ..Demand::NO_DATA }
    }

    /// The demand of `messages` messages of `bytes_each` bytes from the initiator, each sent when a timer expires.
    pub fn timer_driven(messages: f64, bytes_each: f64) -> Demand {
        Demand { bytes: [messages * bytes_each, 0.0], messages: [messages, 0.0], timers: messages, ..Demand::NO_DATA }
    }

    /// The demand of a connection on which each sender in `senders` sends as much as the transport accepts.
    pub fn unlimited(senders: [bool; 2]) -> Demand {
        Demand { bytes: senders.map(|sends| if sends { f64::INFINITY } else { 0.0 }), ..Demand::NO_DATA }
    }

    /// Marks the demand as an upper bound, for this reason.
    pub fn as_upper_bound(self, reason: &'static str) -> Demand {
        Demand { bound: Some(reason), ..self }
    }

    /// The demand of this number of exchanges. The exchanges share a connection if `lifetime_s` is `None`; otherwise
    /// each has its own.
    pub fn repeat(self, exchanges: f64) -> Demand {
        Demand {
            bytes: self.bytes.map(|bytes| bytes * exchanges),
            messages: self.messages.map(|messages| messages * exchanges),
            connections: if self.lifetime_s.is_some() { self.connections * exchanges } else { self.connections },
            timers: self.timers * exchanges,
            exchanges: None,
            ..self
        }
    }

    /// The same demand with initiator and acceptor swapped.
    pub fn reversed(self) -> Demand {
        let swap = |[a, b]: [f64; 2]| [b, a];
        Demand { bytes: swap(self.bytes), messages: swap(self.messages), ..self }
    }
}

/// Whether the sum of this number of samples is likely to be close to its mean. For a distribution without a variance it is not.
pub(crate) fn is_steady(distribution: &Distribution, samples: f64) -> bool {
    match distribution {
        Distribution::Constant { .. } => true,
        Distribution::Pareto { shape, .. } => *shape > 2.0 && samples >= MANY,
        Distribution::BoundedPareto { shape, .. } => samples >= if *shape > 2.0 { MANY } else { 50.0 * MANY },
        _ => samples >= MANY,
    }
}

/// The number of periods of length `interval_s` that begin within `time_s`, at most `most`.
pub(crate) fn count(time_s: f64, interval_s: f64, most: Option<u64>) -> f64 {
    let most = most.map_or(f64::INFINITY, |most| most as f64);
    (time_s / interval_s.max(1e-9)).min(most).max(0.0)
}
