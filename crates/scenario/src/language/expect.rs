//! The keys of `[[expect]]`: bounds on metrics of flows, which `fullpipe run` compares with the measured values. This
//! module checks the flows. `study/src/expect.rs` checks the names of metrics and the units of bounds, because it has
//! the list of metrics.

use super::Diagnostics;
use crate::description::Flow;
use crate::schema::{FieldKind, Table, Tree, Value, keys, matches};

pub(super) static EXPECT: Table = Table {
    name: "expectation",
    text: "A bound on a metric of flows. Each selected flow must have a value within the bounds. `fullpipe run` checks it; a study \
           that uses the scenario has expectations of its own.",
    fields: &[keys! {
        /// A column of numbers of [`flows.csv`](records.md#flowscsv), an [application
        /// metric](records.md#metrics-of-figurescsv), or `throughput_bps`, `mean_delay_s`, `mean_jitter_s` or `loss_ratio`
        /// (of the measured interval).
        "metric": FieldKind::Name, required;
        /// Flows, by name or pattern: `download`, `web*`. The metric is of their main directions; `NAME.reverse` selects the
        /// direction from acceptor to initiator. Of a flow with several connections each must be within the bounds.
        "flow": FieldKind::Text, default "*";
        /// Smallest accepted value: a number in the metric's unit, or a quantity such as `"20Mbit/s"`, `"50ms"`, `"1MB"` or
        /// `"2%"`. A flow without a value is not within the bounds.
        "min": FieldKind::NUMBER_OR_QUANTITY, optional "no minimum";
        /// Largest accepted value, as `min`.
        "max": FieldKind::NUMBER_OR_QUANTITY, optional "no maximum";
    }],
    ..Table::EMPTY
};

/// Checks that each expectation selects flows and states a bound.
pub(super) fn check(root: &Tree, flows: &[Flow], check: &mut Diagnostics) {
    for (index, tree) in root.get("expect").map(Value::tables).unwrap_or_default().iter().enumerate() {
        let path = format!("expect.{index}");
        let wanted = tree.text("flow");
        let pattern = wanted.strip_suffix(".reverse").unwrap_or(wanted);
        if !flows.iter().any(|flow| matches(pattern, &flow.name)) {
            let names = flows.iter().map(|flow| flow.name.as_str());
            let message = format!("unknown flow \"{wanted}\"");
            check.add_unknown_name(tree.location_of("flow"), &format!("{path}.flow"), message, pattern, names);
        }
        if !["min", "max"].into_iter().any(|key| tree.is_given(key)) {
            let expected = vec!["min".to_owned(), "max".to_owned()];
            check.add_missing(tree.place, &path, format!("{path} has neither min nor max"), expected);
        }
    }
}
