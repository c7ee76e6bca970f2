//! Warnings: conditions that make the results of a run or a study suspicious although nothing failed. Each warning has
//! a name, a place and a text. `fullpipe check` prints the warnings that are detectable before a run; `run.json`, the
//! terminal and the report contain all warnings of a run.

use crate::json::record;
use std::fmt;

/// The kinds of warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WarningKind {
    /// A queue cannot hold a single packet.
    SmallQueue,
    /// The device queue below a discipline holds packets that the discipline should manage.
    QueueBelowDiscipline,
    /// A flow starts after the end of the run.
    FlowNeverStarts,
    /// No packet of a flow was received.
    FlowDeliversNothing,
    /// An incomplete transfer received nothing for more than half of its time.
    FlowStalls,
    /// A UE has no bearers before the end of the run.
    UeNeverAttaches,
    /// A UE with packets to receive or send is never scheduled.
    UeNotScheduled,
    /// A UE fails to decode too many control regions.
    ControlErrors,
    /// No application received anything.
    NothingDelivered,
    /// Replications that drew random numbers have equal records.
    EqualRecords,
}

impl WarningKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::SmallQueue,
        Self::QueueBelowDiscipline,
        Self::FlowNeverStarts,
        Self::FlowDeliversNothing,
        Self::FlowStalls,
        Self::UeNeverAttaches,
        Self::UeNotScheduled,
        Self::ControlErrors,
        Self::NothingDelivered,
        Self::EqualRecords,
    ];

    /// Returns the name of the warning in `run.json`.
    pub fn name(self) -> &'static str {
        match self {
            WarningKind::SmallQueue => "small-queue",
            WarningKind::QueueBelowDiscipline => "queue-below-discipline",
            WarningKind::FlowNeverStarts => "flow-never-starts",
            WarningKind::FlowDeliversNothing => "flow-delivers-nothing",
            WarningKind::FlowStalls => "flow-stalls",
            WarningKind::UeNeverAttaches => "ue-never-attaches",
            WarningKind::UeNotScheduled => "ue-not-scheduled",
            WarningKind::ControlErrors => "control-errors",
            WarningKind::NothingDelivered => "nothing-delivered",
            WarningKind::EqualRecords => "equal-records",
        }
    }

    /// Returns the condition for the warning, for documentation.
    pub fn description(self) -> &'static str {
        match self {
            WarningKind::SmallQueue => {
                "The queue of a link that flows use has room for less than one packet of the size that the link carries. Known \
                 before the run."
            }
            WarningKind::QueueBelowDiscipline => {
                "The key `queue` of a link gives its device more than 10 packets of room below a queue discipline. Packets wait in the \
                 device, where the discipline neither drops nor marks them. Known before the run."
            }
            WarningKind::FlowNeverStarts => "A flow starts at the end of the run or later. Known before the run.",
            WarningKind::FlowDeliversNothing => "A flow sent packets, and no packet of either direction was received.",
            WarningKind::FlowStalls => {
                "A bulk transfer was incomplete at the end of the run and had received nothing for more than half of the time since \
                 its start. If it has a size, its goodput covers only the time until the last packet was received."
            }
            WarningKind::UeNeverAttaches => "A UE has no bearers before the end of the run. Known before the run.",
            WarningKind::UeNotScheduled => {
                "Three or more packets arrived for a UE's bearers in one direction, but no transport block was sent. Either the \
                 scheduler chose other UEs each time, or the UE's signal is too weak."
            }
            WarningKind::ControlErrors => {
                "A UE was scheduled in at least 100 subframes and could not decode the control region (PCFICH and PDCCH) in more \
                 than 10 % of them."
            }
            WarningKind::NothingDelivered => {
                "No application received any payload. If this holds for all runs of a command, its exit status is 3."
            }
            WarningKind::EqualRecords => {
                "Runs of a point drew random numbers, but their records are equal. Given by `study run`, not in `run.json`."
            }
        }
    }
}

record! {
    /// A warning.
    pub struct Warning;
    name: String, "", "Name of the kind of warning, see below.";
    place: String, "", "The flow, link, UE or point to which the warning applies; empty if it applies to the whole run.";
    text: String, "", "The condition that was found, and its consequence.";
}

impl Warning {
    /// Creates a warning of a kind.
    pub fn new(kind: WarningKind, place: impl Into<String>, text: impl Into<String>) -> Self {
        Warning { name: kind.name().to_owned(), place: place.into(), text: text.into() }
    }

    /// Returns whether the warning is of this kind.
    pub fn has_kind(&self, kind: WarningKind) -> bool {
        self.name == kind.name()
    }
}

/// `PLACE: TEXT (NAME)`.
impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.place.is_empty() { "" } else { ": " };
        write!(formatter, "{}{colon}{} ({})", self.place, self.text, self.name)
    }
}
