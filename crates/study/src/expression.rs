//! The language of metrics and claims: arithmetic over the records of a run, or over the points of a study.
//!
//! ```text
//! rx_bytes["data"] * 8 / (last_rx_s["data"] - first_rx_s["data"])          a metric
//! metric("udp", "throughput_mbps", count = 100000) > 2 * metric("tcp", "throughput_mbps", size = 15000000)    a claim
//! ```
//!
//! * Values are lists of numbers or of truth values. A single value is a list of one element, and can be combined with
//!   a list of any length. `COLUMN["FLOW"]` lists a column of `flows.csv` for the flows that match; `*` matches any
//!   text and `?` one character. Reverse directions match only if the pattern ends with `.reverse`. `FLOW.main` selects
//!   main directions, forward or reverse, and `FLOW.opposite` the others. `link_COLUMN["LINK"]` does the same with
//!   `links.csv`, for the links that the scenario measures. `figure_NAME["FLOW"]` does the same with `figures.csv`, for
//!   the application metrics that both ends of the flows report under this name.
//! * `event("EVENT", "NAME")` is a time or a recorded metric of an event of the scenario, as in `events.csv`: `met_s`,
//!   `at_s` or the name of a metric. The value is missing if the event did not happen.
//! * `completion("FLOW", N, "COLUMN")` is a column of `completions.csv` (`started_s`, `completed_s` or `bytes`) for
//!   exchange or transfer N of a flow. The value is missing if it was not completed.
//! * `lateness("NAME")` is a value of the lateness record of a real-time run, such as `events.p90_s`. It is missing in
//!   virtual time.
//! * A missing value is an empty cell, a flow that does not exist, or a point that was not run. All results that are
//!   computed from a missing value are missing. A division by zero and any result that is not a finite number are also
//!   missing. `and` and `or` do not need a missing operand if the other operand decides (Kleene's logic).
//! * Operators from the lowest precedence to the highest: `or`, `and`, `not`, comparisons (which chain: `1 < x <= 2`),
//!   `+` and `-`, `*` and `/`, unary `-`, `^` (right-associative).
//! * A bare name is the value of an axis or a parameter.
//! * A claim is judged by bootstrap resamples of the replications (crate `verdict`). It therefore compares means, medians
//!   and deviations over runs. Ends of intervals and extremes over runs are rejected.
//!
//! Every evaluation ends without a panic: there are no loops and no definitions, and the depth is limited. Errors state
//! the column, in characters from 1. `expression/parser.rs` parses expressions, and `evaluate.rs` evaluates them.

mod parser;

use fullpipe_archive::LINKS;
use fullpipe_lab::metric_names;
use std::collections::BTreeSet;
use std::fmt;

pub use parser::parse;

/// Returns the column of `links.csv` for a name in an expression: `link_throughput_bps` is the column `throughput_bps`.
/// `None` for other names.
pub fn link_column(name: &str) -> Option<&'static str> {
    LINKS.numeric_column(name.strip_prefix("link_")?).map(|column| column.name)
}

/// Returns the application metric in `figures.csv` for a name in an expression: `figure_rebuffer_s` is `rebuffer_s`.
/// `None` for unknown names. The name of a metric that a real program defines begins with `program_`.
pub fn figure_name(name: &str) -> Option<&str> {
    name.strip_prefix("figure_")
        .filter(|figure| metric_names().any(|name| name == *figure) || figure.starts_with("program_"))
}

/// The statistics that the function `metric` accepts: statistics over runs, and the published value. Ends of intervals
/// and extremes over runs are excluded, because bootstrap resamples cannot test claims about them.
pub const STATISTICS: [&str; 4] = ["mean", "median", "deviation", "published"];

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Column in characters, from 1.
    pub column: usize,
    /// The message, with what was found and what is accepted.
    pub message: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "column {}: {}", self.column, self.message)
    }
}

impl ExpressionError {
    pub(crate) fn new(column: usize, message: impl Into<String>) -> Self {
        ExpressionError { column, message: message.into() }
    }
}

/// The purpose of an expression, which determines the data to which it may refer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpressionPurpose {
    /// A metric: one number of one run.
    Metric,
    /// A claim: a condition over the points of a study.
    Claim,
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A number.
    Number,
    /// A truth value.
    Boolean,
}

/// An expression that has been parsed and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub(crate) root: ExpressionNode,
}

impl Expression {
    /// Returns the lookups in the expression, which are its references to metrics at points.
    pub fn lookups(&self) -> Vec<&Lookup> {
        let mut found = Vec::new();
        self.root.visit(&mut |node| {
            if let Operation::Lookup(lookup) = &node.operation {
                found.push(lookup);
            }
        });
        found
    }

    /// Returns the columns of the lookups that are the argument of `present`.
    pub(crate) fn lookups_of_present_values(&self) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        self.root.visit(&mut |node| {
            if let Operation::Call(Function::Present, arguments) = &node.operation
                && let [ExpressionNode { operation: Operation::Lookup(lookup), .. }] = arguments.as_slice()
            {
                found.insert(lookup.column);
            }
        });
        found
    }

    /// Returns the lookups below the node at a column.
    pub(crate) fn lookups_below(&self, column: usize) -> Vec<&Lookup> {
        let mut found = Vec::new();
        self.root.visit(&mut |node| {
            if node.column == column && matches!(node.operation, Operation::Comparison(..)) {
                node.visit(&mut |inner| {
                    if let Operation::Lookup(lookup) = &inner.operation {
                        found.push(lookup);
                    }
                });
            }
        });
        found
    }

    /// Returns the subject and the metric of each series in `series.csv` that the expression reads.
    pub fn series(&self) -> Vec<(&str, &str)> {
        let mut found = Vec::new();
        self.root.visit(&mut |node| {
            if let Operation::Series { subject, metric, .. } | Operation::Measured { subject, metric } = &node.operation
            {
                found.push((subject.as_str(), metric.as_str()));
            }
        });
        found
    }

    /// Returns the flow and the number of each exchange or transfer in `completions.csv` that the expression reads.
    pub fn completions(&self) -> Vec<(&str, u64)> {
        let mut found = Vec::new();
        self.root.visit(&mut |node| {
            if let Operation::Completion { flow, number, .. } = &node.operation {
                found.push((flow.as_str(), *number));
            }
        });
        found
    }

    /// Returns whether the expression reads events of the scenario.
    pub fn reads_events(&self) -> bool {
        let mut found = false;
        self.root.visit(&mut |node| found |= matches!(node.operation, Operation::Event { .. }));
        found
    }

    /// Returns the columns of flows and links that the expression reads; `None` if the expression also reads other data
    /// of a run.
    pub fn columns(&self) -> Option<Vec<&str>> {
        let (mut found, mut only) = (Vec::new(), true);
        self.root.visit(&mut |node| match &node.operation {
            Operation::Column { column, .. } => found.push(column.as_str()),
            Operation::Series { .. }
            | Operation::Measured { .. }
            | Operation::Event { .. }
            | Operation::Completion { .. }
            | Operation::Lateness(_) => only = false,
            _ => {}
        });
        only.then_some(found)
    }

    /// Returns whether the expression computes a median or a percentile, or reads a column with such a statistic in its
    /// name (`..._median_...`, `p99_...`).
    pub fn uses_quantiles(&self) -> bool {
        let is_percentile = |word: &str| word.strip_prefix('p').is_some_and(|rank| rank.parse::<u32>().is_ok());
        let says_so = |name: &str| name.split('_').any(|word| word == "median" || is_percentile(word));
        let mut found = false;
        self.root.visit(&mut |node| {
            found |= match &node.operation {
                Operation::Call(Function::Median | Function::Quantile, _) => true,
                Operation::Column { column: name, .. } | Operation::Lateness(name) => says_so(&name.replace('.', "_")),
                _ => false,
            }
        });
        found
    }

    /// Returns the names of axes and parameters in the expression, with their positions (column in characters, from 1).
    pub fn variables(&self) -> Vec<(&str, usize)> {
        let mut found = Vec::new();
        self.root.visit(&mut |node| {
            if let Operation::Name(name) = &node.operation {
                found.push((name.as_str(), node.column));
            }
        });
        found
    }
}

/// A part of an expression with its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExpressionNode {
    pub(crate) column: usize,
    pub(crate) kind: ValueKind,
    pub(crate) operation: Operation,
}

impl ExpressionNode {
    fn visit<'a>(&'a self, visitor: &mut impl FnMut(&'a ExpressionNode)) {
        visitor(self);
        match &self.operation {
            Operation::Negate(inner) | Operation::Not(inner) => inner.visit(visitor),
            Operation::Arithmetic(_, left, right) | Operation::Logic(_, left, right) => {
                left.visit(visitor);
                right.visit(visitor);
            }
            Operation::Comparison(first, rest) => {
                first.visit(visitor);
                rest.iter().for_each(|(_, node)| node.visit(visitor));
            }
            Operation::Call(_, arguments) => arguments.iter().for_each(|node| node.visit(visitor)),
            Operation::Number(_)
            | Operation::Boolean(_)
            | Operation::Name(_)
            | Operation::Column { .. }
            | Operation::Series { .. }
            | Operation::Measured { .. }
            | Operation::Event { .. }
            | Operation::Completion { .. }
            | Operation::Lateness(_)
            | Operation::Lookup(_) => {}
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operation {
    Number(f64),
    Boolean(bool),
    Name(String),
    Column { column: String, pattern: String },
    Series { subject: String, metric: String, from_s: f64, to_s: f64 },
    Measured { subject: String, metric: String },
    Event { event: String, value: String },
    Completion { flow: String, number: u64, column: &'static str },
    Lateness(String),
    Lookup(Lookup),
    Negate(Box<ExpressionNode>),
    Not(Box<ExpressionNode>),
    Arithmetic(Arithmetic, Box<ExpressionNode>, Box<ExpressionNode>),
    Logic(Logic, Box<ExpressionNode>, Box<ExpressionNode>),
    Comparison(Box<ExpressionNode>, Vec<(Comparison, ExpressionNode)>),
    Call(Function, Vec<ExpressionNode>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==` (and `=` in a filter)
    Equal,
    /// `!=`
    NotEqual,
}

/// The comparison operators by their symbols.
pub(crate) const COMPARISONS: [(&str, Comparison); 6] = [
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
];

/// A lookup: a metric at the points of an experiment that pass the filters, in the order of the sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The position of the lookup in the expression: column in characters, from 1.
    pub column: usize,
    /// The name of the experiment.
    pub experiment: String,
    /// The name of the metric.
    pub metric: String,
    /// The statistic over the runs, one of [`STATISTICS`]; `None` for the value of every run, in the order of runs.
    pub statistic: Option<String>,
    /// The conditions on axes. The lookup selects the points that satisfy all of them.
    pub filters: Vec<Filter>,
}

/// A condition on an axis in a lookup.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// The position of the condition in the expression: column in characters, from 1.
    pub column: usize,
    /// The name of the axis.
    pub axis: String,
    /// The comparison operator.
    pub comparison: Comparison,
    /// The value with which the axis is compared.
    pub literal: Literal,
}

/// A value in a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A number.
    Number(f64),
    /// A text. `true` and `false` are also texts.
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Sqrt,
    Log10,
    Ln,
    Exp,
    Sum,
    Mean,
    Min,
    Max,
    Median,
    Quantile,
    Count,
    Present,
    All,
    Any,
    Jain,
    Deviation,
    Differences,
    Part,
    Holds,
}

/// The maximum in [`FUNCTIONS`] that denotes any number of arguments.
const MANY: usize = usize::MAX;

/// Functions by name: the kind of the arguments and of the result (`holds`: a number), and the minimum and maximum
/// number of arguments.
pub(crate) const FUNCTIONS: [(&str, Function, ValueKind, usize, usize); 20] = [
    ("abs", Function::Abs, ValueKind::Number, 1, 1),
    ("sqrt", Function::Sqrt, ValueKind::Number, 1, 1),
    ("log10", Function::Log10, ValueKind::Number, 1, 1),
    ("ln", Function::Ln, ValueKind::Number, 1, 1),
    ("exp", Function::Exp, ValueKind::Number, 1, 1),
    ("sum", Function::Sum, ValueKind::Number, 1, MANY),
    ("mean", Function::Mean, ValueKind::Number, 1, MANY),
    ("min", Function::Min, ValueKind::Number, 1, MANY),
    ("max", Function::Max, ValueKind::Number, 1, MANY),
    ("median", Function::Median, ValueKind::Number, 1, MANY),
    ("quantile", Function::Quantile, ValueKind::Number, 2, 2),
    ("count", Function::Count, ValueKind::Number, 1, 1),
    ("present", Function::Present, ValueKind::Number, 1, 1),
    ("all", Function::All, ValueKind::Boolean, 1, MANY),
    ("any", Function::Any, ValueKind::Boolean, 1, MANY),
    ("jain", Function::Jain, ValueKind::Number, 1, 1),
    ("deviation", Function::Deviation, ValueKind::Number, 1, 1),
    ("differences", Function::Differences, ValueKind::Number, 1, 1),
    ("part", Function::Part, ValueKind::Number, 3, 3),
    ("holds", Function::Holds, ValueKind::Boolean, 1, 1),
];
