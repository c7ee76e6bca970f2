//! The values of the lateness record in `run.json` that metrics can read: `lateness("events.p90_s")`.
//!
//! A name is either that of a number in the record, or that of a distribution followed by one of its statistics. Truth
//! values are 1 and 0. Quantiles of an empty distribution are missing. Without a record, as in virtual time, all values
//! are missing.

use fullpipe_archive::json::JsonValue;
use fullpipe_archive::{LatenessRecord, LatenessSpread};
use serde_json::Value;

/// The numbers and truth values of the record that metrics can read. The record also contains limits, and numbers that
/// repeat those of its distributions.
pub(crate) const FIGURES: [&str; 7] =
    ["on_time", "own_drops", "stall_count", "longest_stall_s", "ran_s", "worked_s", "processor_s"];

/// Returns the names of the distributions in the record.
pub(crate) fn spreads() -> Vec<String> {
    let spreads = LatenessRecord::keys().into_iter().filter(|key| key.kind == LatenessSpread::TYPE);
    spreads.map(|key| key.path).collect()
}

/// Returns the names of the statistics of each distribution.
pub(crate) fn figures_of_spreads() -> Vec<String> {
    LatenessSpread::keys().into_iter().map(|key| key.path).collect()
}

/// Returns the names of all values that metrics can read.
pub(crate) fn names() -> impl Iterator<Item = String> {
    let of_spread = |spread: String| figures_of_spreads().into_iter().map(move |figure| format!("{spread}.{figure}"));
    FIGURES.iter().map(|name| (*name).to_owned()).chain(spreads().into_iter().flat_map(of_spread))
}

/// Returns the value with this name in a lateness record.
pub(crate) fn figure(account: &Value, name: &str) -> Option<f64> {
    let number = |value: &Value| value.as_f64().or_else(|| value.as_bool().map(|truth| f64::from(u8::from(truth))));
    let Some((spread, told)) = name.split_once('.') else { return account.get(name).and_then(number) };
    let spread = account.get(spread)?;
    let counts = matches!(told, "count" | "late");
    let empty = spread.get("count").and_then(Value::as_u64) == Some(0);
    spread.get(told).filter(|_| counts || !empty).and_then(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_of_an_account() {
        let account = json!({
            "on_time": false,
            "reasons": ["late"],
            "own_drops": 3,
            "events": { "count": 8, "late": 2, "p90_s": 0.25 },
            "subframes": { "count": 0, "late": 0, "p90_s": 0.0 },
        });
        for (name, expected) in [
            ("on_time", Some(0.0)),
            ("own_drops", Some(3.0)),
            ("events.late", Some(2.0)),
            ("events.p90_s", Some(0.25)),
            ("subframes.count", Some(0.0)),
            ("subframes.p90_s", None),
            ("packets.p90_s", None),
            ("reasons", None),
        ] {
            assert_eq!(figure(&account, name), expected, "{name}");
            assert_eq!(figure(&Value::Null, name), None, "{name}");
        }
        assert_eq!(figure(&json!({ "on_time": true }), "on_time"), Some(1.0));
    }
}
