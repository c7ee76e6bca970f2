//! The verdict of the auditor: how often each rule was checked, and the first failure of each rule and subject, with
//! the expected and the found value.

use fullpipe_units::{FlowId, Instant, LinkId, words};
use std::collections::BTreeMap;
use std::fmt;

/// A rule that the auditor checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Every event has a declared link and a declared flow.
    Declaration,
    /// The transmission of a frame starts no earlier than the frame arrives at the queue, and ends no earlier than it
    /// starts.
    FrameOrder,
    /// The transmission of a frame does not start before the previous frame has departed (on a shared medium: has
    /// arrived).
    Overlap,
    /// No link exceeds its rate.
    LinkRate,
    /// No frame arrives before its propagation delay has elapsed. If the delay is constant, no frame arrives later.
    Propagation,
    /// Frames and bytes offered to a link = transmitted + dropped + still queued.
    LinkConservation,
    /// No packet arrives earlier than the minimum delay of its path permits.
    PathTime,
    /// Packets and bytes sent = delivered + dropped + in flight.
    FlowConservation,
    /// No sequence number is delivered that was not sent.
    Sequence,
    /// Nothing is acknowledged that was not sent and delivered.
    Acknowledgement,
    /// The published counters equal those computed from the events.
    Counters,
    /// With [`PacketAuditor`](crate::PacketAuditor): no frame exceeds the link's MTU plus framing.
    FrameSize,
    /// With [`PacketAuditor`](crate::PacketAuditor): frames depart from a queue in order of arrival.
    QueueOrder,
    /// With [`PacketAuditor`](crate::PacketAuditor): the queued packets and bytes do not exceed the limit of the queue.
    QueueLimit,
    /// With [`PacketAuditor`](crate::PacketAuditor): each delivered or dropped packet was sent with the same fields.
    /// Each delivered packet was sent at the reported time.
    Origin,
    /// With [`PacketAuditor`](crate::PacketAuditor): each packet that is offered to a link was sent at that time, or
    /// arrived over the previous link at that time.
    Hops,
    /// With [`PacketAuditor`](crate::PacketAuditor): no byte is acknowledged before all bytes below it were delivered.
    AcknowledgedHole,
}

impl Rule {
    /// Returns the name of the rule in `run.json` and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Declaration => "declared",
            Rule::FrameSize => "frame-size",
            Rule::FrameOrder => "frame-order",
            Rule::Overlap => "overlap",
            Rule::LinkRate => "link-rate",
            Rule::Propagation => "propagation",
            Rule::LinkConservation => "link-conservation",
            Rule::PathTime => "path-time",
            Rule::FlowConservation => "flow-conservation",
            Rule::Sequence => "sequence",
            Rule::Acknowledgement => "acknowledgement",
            Rule::Counters => "counters",
            Rule::QueueOrder => "queue-order",
            Rule::QueueLimit => "queue-limit",
            Rule::Origin => "origin",
            Rule::Hops => "hops",
            Rule::AcknowledgedHole => "acknowledged-hole",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A link or a flow that violated a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A link or a shared medium.
    Link(LinkId),
    /// One direction of a conversation.
    Flow(FlowId),
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Link(link) => write!(formatter, "link {link}"),
            Subject::Flow(flow) => write!(formatter, "flow {flow}"),
        }
    }
}

/// The first violation of a rule by a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The rule that was violated.
    pub rule: Rule,
    /// The link or flow that violated the rule.
    pub subject: Subject,
    /// The name of the subject; empty if there is none.
    pub name: String,
    /// The time of the first violation; [`Instant::NEVER`] if it was found after the run.
    pub at: Instant,
    /// One sentence that states what was expected and what was found.
    pub message: String,
    /// Number of violations of this rule by this subject, including the first one.
    pub count: u64,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.rule, self.subject)?;
        if !self.name.is_empty() {
            write!(formatter, " ({})", self.name)?;
        }
        if self.at.is_never() {
            write!(formatter, " at the end: {}", self.message)?;
        } else {
            write!(formatter, " at {}: {}", words::format_exact_time(self.at.as_nanos()), self.message)?;
        }
        if self.count > 1 {
            write!(formatter, " ({} times)", self.count)?;
        }
        Ok(())
    }
}

/// The result of the audit of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditReport {
    /// How often each rule was checked, in the order of [`Rule`]; rules without any check are absent.
    pub checks: Vec<(Rule, u64)>,
    /// The first failure of each rule and subject, in the order of [`Rule`], then of the subject.
    pub failures: Vec<Failure>,
    /// Number of violations by pairs of rule and subject beyond [`MAX_FAILURES_KEPT`]. The auditor only counts these
    /// violations.
    pub failures_not_kept: u64,
}

/// Maximum number of pairs of rule and subject whose first failure is kept with its message.
pub const MAX_FAILURES_KEPT: usize = 100;

impl AuditReport {
    /// Returns whether no rule was violated.
    pub fn passed(&self) -> bool {
        self.failures.is_empty() && self.failures_not_kept == 0
    }

    /// Returns the number of checks of all rules.
    pub fn checks_performed(&self) -> u64 {
        self.checks.iter().map(|(_, count)| count).sum()
    }

    /// Returns the number of violations of all rules.
    pub fn failures_found(&self) -> u64 {
        self.failures.iter().map(|failure| failure.count).fold(self.failures_not_kept, u64::saturating_add)
    }

    /// Combines this verdict with that of another auditor of the same run.
    pub fn merge(mut self, other: AuditReport) -> AuditReport {
        let mut checks: BTreeMap<Rule, u64> = self.checks.into_iter().collect();
        for (rule, count) in other.checks {
            *checks.entry(rule).or_default() += count;
        }
        self.checks = checks.into_iter().collect();
        self.failures.extend(other.failures);
        self.failures.sort_by_key(|failure| (failure.rule, failure.subject));
        self.failures_not_kept += other.failures_not_kept;
        self
    }
}

impl fmt::Display for AuditReport {
    /// Writes one line if the audit passed, otherwise a line per kept failure.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.checks_performed();
        if self.passed() {
            return write!(formatter, "audit passed: {checks} checks of {} rules", self.checks.len());
        }
        let failures = i128::from(self.failures_found());
        write!(formatter, "audit failed: {} in {checks} checks", words::format_count(failures, "failure"))?;
        for failure in &self.failures {
            write!(formatter, "\n  {failure}")?;
        }
        if self.failures_not_kept > 0 {
            write!(formatter, "\n  and {} more", self.failures_not_kept)?;
        }
        Ok(())
    }
}

/// Collects failures: the first failure of each rule and subject with a message, the others as a count.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailureLog {
    kept: BTreeMap<(Rule, Subject), Failure>,
    not_kept: u64,
}

impl FailureLog {
    /// Adds a failure; `message` is called only for the first failure of the rule and subject.
    pub(crate) fn note(&mut self, rule: Rule, subject: Subject, at: Instant, message: impl FnOnce() -> String) {
        if let Some(failure) = self.kept.get_mut(&(rule, subject)) {
            failure.count = failure.count.saturating_add(1);
        } else if self.kept.len() < MAX_FAILURES_KEPT {
            let failure = Failure { rule, subject, name: String::new(), at, message: message(), count: 1 };
            self.kept.insert((rule, subject), failure);
        } else {
            self.not_kept = self.not_kept.saturating_add(1);
        }
    }

    /// Returns the verdict, with names from `name`, and empties the log.
    pub(crate) fn verdict(
        &mut self,
        checks: impl IntoIterator<Item = (Rule, u64)>,
        name: impl Fn(Subject) -> String,
    ) -> AuditReport {
        let mut failures: Vec<Failure> = std::mem::take(&mut self.kept).into_values().collect();
        for failure in &mut failures {
            failure.name = name(failure.subject);
        }
        let mut counts: BTreeMap<Rule, u64> = BTreeMap::new();
        for (rule, count) in checks.into_iter().filter(|(_, count)| *count > 0) {
            *counts.entry(rule).or_default() += count;
        }
        AuditReport {
            checks: counts.into_iter().collect(),
            failures,
            failures_not_kept: std::mem::take(&mut self.not_kept),
        }
    }
}
