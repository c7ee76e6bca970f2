//! What a flow sends within a time, estimated from its settings alone: for the estimated cost of a scenario.
//!
//! Random sizes and times count with their means. Where a mean says little about a run, such as with few periods of an on-off
//! source, the figures are those of the most that the flow can send, and [`Demand::bound`] says why.

use fullpipe_units::Distribution;

/// What the two ends of a flow send.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Demand {
    /// Payload bytes that initiator and acceptor send; infinite: as much as the transport takes.
    pub bytes: [f64; 2],
    /// Datagrams or writes of initiator and acceptor, each of them at least a packet.
    pub messages: [f64; 2],
    /// Connections that are opened.
    pub connections: f64,
    /// How long a connection is open besides the time that its data take; `None`: to the end of the run.
    pub lifetime_s: Option<f64>,
    /// Timers of applications that expire.
    pub timers: f64,
    /// Exchanges one after another: then all numbers above are those of one exchange.
    pub exchanges: Option<Exchanges>,
    /// Why the numbers are upper bounds, if they are.
    pub bound: Option<&'static str>,
}

/// Exchanges one after another. How many there are depends on the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchanges {
    /// How many at most; infinite: without end.
    pub most: f64,
    /// Round trips of an exchange.
    pub round_trips: f64,
    /// Mean time of an exchange during which nothing is sent.
    pub pause_s: f64,
}

/// From so many independent samples on, their sum is close to its mean.
const MANY: f64 = 20.0;

impl Demand {
    /// A connection without data.
    pub const SILENT: Demand = Demand {
        bytes: [0.0; 2],
        messages: [0.0; 2],
        connections: 1.0,
        lifetime_s: None,
        timers: 0.0,
        exchanges: None,
        bound: None,
    };

    /// So many bytes from the initiator.
    pub fn of_initiator(bytes: f64) -> Demand {
        Demand { bytes: [bytes, 0.0], ..Demand::SILENT }
    }

    /// Messages of one size from the initiator, each sent when a timer expires.
    pub fn timed(messages: f64, bytes_each: f64) -> Demand {
        Demand { bytes: [messages * bytes_each, 0.0], messages: [messages, 0.0], timers: messages, ..Demand::SILENT }
    }

    /// As much as the transport takes from each end that sends.
    pub fn unlimited(senders: [bool; 2]) -> Demand {
        Demand { bytes: senders.map(|sends| if sends { f64::INFINITY } else { 0.0 }), ..Demand::SILENT }
    }

    /// The same as an upper bound, for this reason.
    pub fn at_most(self, reason: &'static str) -> Demand {
        Demand { bound: Some(reason), ..self }
    }

    /// That of so many exchanges. They share their connections if these stay open.
    pub fn times(self, exchanges: f64) -> Demand {
        Demand {
            bytes: self.bytes.map(|bytes| bytes * exchanges),
            messages: self.messages.map(|messages| messages * exchanges),
            connections: if self.lifetime_s.is_some() { self.connections * exchanges } else { self.connections },
            timers: self.timers * exchanges,
            exchanges: None,
            ..self
        }
    }

    /// The same from the other end.
    pub fn swapped(self) -> Demand {
        let swap = |[a, b]: [f64; 2]| [b, a];
        Demand { bytes: swap(self.bytes), messages: swap(self.messages), ..self }
    }
}

/// Whether a sum of so many samples is likely to be close to its mean: a distribution without a variance is not.
pub(crate) fn is_steady(distribution: &Distribution, samples: f64) -> bool {
    match distribution {
        Distribution::Constant { .. } => true,
        Distribution::Pareto { shape, .. } => *shape > 2.0 && samples >= MANY,
        Distribution::BoundedPareto { shape, .. } => samples >= if *shape > 2.0 { MANY } else { 50.0 * MANY },
        _ => samples >= MANY,
    }
}

/// How many periods of a length begin within a time, at most `most`.
pub(crate) fn count(time_s: f64, interval_s: f64, most: Option<u64>) -> f64 {
    let most = most.map_or(f64::INFINITY, |most| most as f64);
    (time_s / interval_s.max(1e-9)).min(most).max(0.0)
}
