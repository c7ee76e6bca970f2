//! The reasons why a scenario cannot be run.

use std::fmt;

/// The reason why a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The congestion control is unknown or incompatible with the transport, or a tunnel has no free port.
    CongestionControl {
        /// Name of the flow.
        flow: String,
        /// What is wrong, as a sentence.
        reason: String,
    },
    /// A plugged-in stream scheduler selects a flow that has no streams.
    Scheduler {
        /// Name of the flow.
        flow: String,
        /// What is wrong, as a sentence.
        reason: String,
    },
    /// A flow's workload is invalid.
    Workload {
        /// Name of the flow.
        flow: String,
        /// The violated rule.
        reason: String,
    },
    /// An access network cannot be built.
    AccessNetwork {
        /// Name of the network.
        network: String,
        /// What is wrong, as a sentence.
        reason: String,
    },
    /// Packets between two hosts on different sides of a NAT would bypass it.
    BypassedNat {
        /// Name of the router with the NAT.
        router: String,
        /// Name of one host.
        from: String,
        /// Name of the other host.
        to: String,
    },
    /// A plug-in selects a flow or link that is not in the scenario.
    UnknownPluginTarget {
        /// The expected kind: "flow" or "link".
        what: &'static str,
        /// The given name or pattern.
        found: String,
        /// The most similar name; `None` if no name is similar enough.
        nearest: Option<String>,
    },
    /// The scenario has events, which require virtual time.
    EventsInRealTime,
    /// The scenario has events with changes, and the run has plug-ins. Such events require a repetition of the run,
    /// which plug-ins do not support.
    PluginsWithEvents,
    /// The rate of a link cannot be adjusted, because the link has a schedule or a trace.
    AdjustableLink {
        /// Name of the link.
        link: String,
    },
    /// The scenario has events with changes, which repeat the run. A run in steps cannot be repeated.
    StepsWithEvents,
    /// The machine does not provide a resource that a real-time run requires.
    System(String),
    /// A recording of arrivals cannot be replayed.
    Recording(String),
    /// The number of entities of one kind exceeds the maximum.
    TooLarge {
        /// The kind of entity.
        what: &'static str,
        /// The maximum number.
        limit: u64,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::AccessNetwork { network, reason } => write!(formatter, "access network {network}: {reason}"),
            RunError::CongestionControl { flow, reason }
            | RunError::Scheduler { flow, reason }
            | RunError::Workload { flow, reason } => {
                write!(formatter, "flow {flow:?}: {reason}")
            }
            RunError::BypassedNat { router, from, to } => {
                write!(formatter, "{router} translates addresses, but the route from {from} to {to} bypasses this NAT")
            }
            RunError::UnknownPluginTarget { what, found, nearest } => {
                write!(formatter, "unknown {what} {found:?}")?;
                nearest.iter().try_for_each(|name| write!(formatter, "; did you mean {name:?}?"))
            }
            RunError::EventsInRealTime => {
                formatter.write_str("[[event]] requires virtual time; real time supports `schedule` and `limits`")
            }
            RunError::PluginsWithEvents => formatter.write_str(
                "an [[event]] with `set` repeats the run, which plug-ins do not support; use `schedule` and `limits` with times",
            ),
            RunError::AdjustableLink { link } => {
                write!(formatter, "link {link:?} cannot be adjusted during the run: it has a schedule or a trace")
            }
            RunError::StepsWithEvents => formatter.write_str(
                "an [[event]] with `set` repeats the run, which a run in steps does not support; use `schedule` and `limits` with times, or change the link between two steps",
            ),
            RunError::System(reason) => formatter.write_str(reason),
            RunError::Recording(reason) => write!(formatter, "cannot replay the recording: {reason}"),
            RunError::TooLarge { what, limit } => {
                write!(formatter, "too many {what}: at most {limit} are supported")
            }
        }
    }
}

impl std::error::Error for RunError {}
