//! Bounds of expectations: a number or a quantity, converted to the unit of its metric.

use fullpipe_archive::Bound;
use fullpipe_scenario::schema::quantity;

/// Returns the dimension of a unit, and the size of the unit in the smallest unit of the dimension (bit/s, ns, bytes,
/// %).
fn base_of(unit: &str) -> Option<(Dimension, f64)> {
    let base = match unit {
        "bit/s" => (Dimension::Rate, 1.0),
        "kbit/s" => (Dimension::Rate, 1e3),
        "Mbit/s" => (Dimension::Rate, 1e6),
        "Gbit/s" => (Dimension::Rate, 1e9),
        "s" => (Dimension::Time, 1e9),
        "ms" => (Dimension::Time, 1e6),
        "us" | "µs" => (Dimension::Time, 1e3),
        "bytes" | "B" => (Dimension::Size, 1.0),
        "kB" => (Dimension::Size, 1e3),
        "MB" => (Dimension::Size, 1e6),
        "KiB" => (Dimension::Size, 1024.0),
        "MiB" => (Dimension::Size, 1_048_576.0),
        "%" => (Dimension::Share, 1.0),
        "" => (Dimension::Share, 100.0),
        _ => return None,
    };
    Some(base)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    Rate,
    Time,
    Size,
    Share,
}

/// The largest absolute value of a bound in any unit. It is above the values of all metrics, and tables can represent
/// it.
const LARGEST: f64 = 1e18;

/// Converts the bound to a number in this unit, or returns the reason why it is invalid.
pub(crate) fn in_unit(bound: &Bound, unit: &str) -> Result<f64, String> {
    let number = match bound {
        Bound::Number(number) => *number,
        Bound::Quantity(text) => quantity_in_unit(text, unit)?,
    };
    if number.abs() <= LARGEST { Ok(number) } else { Err(": its absolute value is above 1e18".to_owned()) }
}

fn quantity_in_unit(text: &str, unit: &str) -> Result<f64, String> {
    let Some((dimension, one)) = base_of(unit) else {
        return Err(format!(": the unit of the metric is {unit}"));
    };
    let because = |malformed: quantity::QuantityError| {
        let reason = malformed.reason.map_or_else(String::new, |reason| format!(": {reason}"));
        let near = malformed.suggestion.map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
        reason.to_string() + &near
    };
    let base = match dimension {
        Dimension::Rate => quantity::parse_rate(text).map(|rate| rate.bits_per_second() as f64).map_err(because)?,
        Dimension::Time => quantity::parse_duration(text).map(|time| time.as_nanos() as f64).map_err(because)?,
        Dimension::Size => quantity::parse_size(text).map(|bytes| bytes as f64).map_err(because)?,
        Dimension::Share => {
            let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
            percent.filter(|percent| percent.is_finite()).ok_or_else(String::new)?
        }
    };
    Ok(base / one)
}

/// Describes the valid bounds of a metric in this unit, for errors.
pub(crate) fn expected_of(unit: &str) -> String {
    let example = match base_of(unit).map(|(dimension, _)| dimension) {
        Some(Dimension::Rate) => "a rate such as \"20Mbit/s\"",
        Some(Dimension::Time) => "a duration such as \"50ms\"",
        Some(Dimension::Size) => "a size such as \"1MB\"",
        Some(Dimension::Share) => "a percentage such as \"2%\"",
        None => return format!("a number of {unit}"),
    };
    if unit.is_empty() { format!("a number, or {example}") } else { format!("{example}, or a number of {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_with_a_unit_is_converted_into_the_unit_of_the_metric() {
        let cases = [
            ("20Mbit/s", "bit/s", 20e6),
            ("20Mbit/s", "Mbit/s", 20.0),
            ("50ms", "s", 0.05),
            ("50ms", "ms", 50.0),
            ("90ms", "s", 0.09),
            ("1MB", "bytes", 1e6),
            ("2%", "", 0.02),
            ("2%", "%", 2.0),
        ];
        for (text, unit, expected) in cases {
            let value = in_unit(&Bound::Quantity(text.to_owned()), unit).expect(text);
            assert!(value == expected, "{text} in {unit}: {value}");
        }
        assert_eq!(in_unit(&Bound::Number(3.0), "packets"), Ok(3.0));
        for (text, unit) in
            [("20Mbit/s", "s"), ("50ms", "bit/s"), ("5", ""), ("5packets", "packets"), ("1BDP", "bytes")]
        {
            assert!(in_unit(&Bound::Quantity(text.to_owned()), unit).is_err(), "{text} in {unit}");
        }
        for number in [1e19, -1e300, f64::INFINITY, f64::NAN] {
            assert!(in_unit(&Bound::Number(number), "packets").is_err(), "{number}");
        }
    }
}
