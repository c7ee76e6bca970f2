//! Why a run could not be made.

use std::fmt;

/// Why a run could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The congestion control is unknown, or cannot be driven by the transport; or a tunnel finds no port.
    Control {
        /// The flow.
        flow: String,
        /// What is wrong, as a sentence.
        reason: String,
    },
    /// A stream scheduler is meant for a flow that has none.
    Scheduler {
        /// The flow.
        flow: String,
        /// What is wrong, as a sentence.
        reason: String,
    },
    /// A flow's workload makes no sense.
    Workload {
        /// The flow.
        flow: String,
        /// The rule that is broken.
        reason: String,
    },
    /// An access network cannot be built.
    AccessNetwork {
        /// The network.
        network: String,
        /// What is wrong, as a sentence.
        reason: String,
    },
    /// Packets between two hosts that an address translator parts would not pass it.
    BypassedNat {
        /// The translating router.
        router: String,
        /// One host.
        from: String,
        /// The other host.
        to: String,
    },
    /// A plug-in is meant for something that the scenario does not have.
    Unknown {
        /// What it should be: "flow" or "link".
        what: &'static str,
        /// What was asked for: a name or a pattern.
        found: String,
        /// The name that resembles it most, if one does.
        nearest: Option<String>,
    },
    /// The machine refused what real time takes.
    Machine(String),
    /// A recording of arrivals cannot be replayed.
    Recording(String),
    /// More entities than the engine can number.
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        limit: u64,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::AccessNetwork { network, reason } => write!(formatter, "access network {network}: {reason}"),
            RunError::Control { flow, reason }
            | RunError::Scheduler { flow, reason }
            | RunError::Workload { flow, reason } => {
                write!(formatter, "flow {flow:?}: {reason}")
            }
            RunError::BypassedNat { router, from, to } => {
                write!(formatter, "{router} translates addresses, but the route from {from} to {to} bypasses this NAT")
            }
            RunError::Unknown { what, found, nearest } => {
                write!(formatter, "unknown {what} {found:?}")?;
                nearest.iter().try_for_each(|name| write!(formatter, "; did you mean {name:?}?"))
            }
            RunError::Machine(reason) => formatter.write_str(reason),
            RunError::Recording(reason) => write!(formatter, "cannot replay the recording: {reason}"),
            RunError::TooLarge { what, limit } => {
                write!(formatter, "too many {what}: at most {limit} are supported")
            }
        }
    }
}

impl std::error::Error for RunError {}
