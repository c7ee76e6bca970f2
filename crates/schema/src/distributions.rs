//! Random sizes, times and numbers in a file: a plain quantity, or a table that names a distribution.

use crate::component::{InvalidSettings, SettingsReader};
use crate::settings::SettingValue;
use crate::{Diagnostics, Field, FieldKind, Table, Tree, Value, ValueData, Variant, Variants};
use fullpipe_units::{Distribution, Duration, math};

/// A shape parameter.
const SHAPE: FieldKind = FieldKind::number(0.01, 1000.0);
/// The standard deviation of a logarithm.
const SIGMA: FieldKind = FieldKind::number(0.0, 20.0);
/// A size drawn from a distribution: up to 2^50 bytes.
const BYTES: FieldKind = FieldKind::size(0, 1 << 50);
/// A number drawn from a distribution.
const NUMBER: FieldKind = FieldKind::number(0.0, 1e6);
/// A time drawn from a distribution.
const TIME: FieldKind = FieldKind::duration(Duration::ZERO, Duration::from_secs(10_000_000));

/// A size: a constant, or a distribution from which sizes are drawn.
pub const SIZE_OR_RANDOM: FieldKind = FieldKind::Either(&FieldKind::size(1, 1 << 50), &FieldKind::Table(&SIZES));
/// A time: a constant, or a distribution from which times are drawn.
pub const TIME_OR_RANDOM: FieldKind = FieldKind::Either(&TIME, &FieldKind::Table(&TIMES));
/// A number: a constant, or a distribution from which numbers are drawn.
pub const COUNT_OR_RANDOM: FieldKind = FieldKind::Either(&NUMBER, &FieldKind::Table(&COUNTS));

macro_rules! distributions {
    ($name:ident, $kind:expr, $title:literal, $text:literal) => {
        static $name: Table = Table {
            name: $title,
            text: $text,
            variants: Some(&Variants {
                key: "kind",
                default: None,
                text: "It selects the distribution.",
                list: &[
                    Variant::new("constant", "a constant.", &[&[Field::required("value", $kind, "The value.")]]),
                    Variant::new(
                        "uniform",
                        "uniform between two values.",
                        &[&[
                            Field::required("low", $kind, "Smallest value."),
                            Field::required("high", $kind, "Largest value."),
                        ]],
                    ),
                    Variant::new(
                        "exponential",
                        "P(X > x) = exp(-x / mean).",
                        &[&[Field::required("mean", $kind, "The mean.")]],
                    ),
                    Variant::new(
                        "pareto",
                        "P(X > x) = (scale / x)^shape; the mean is scale * shape / (shape - 1), infinite for a \
                               shape of 1 or less.",
                        &[&[
                            Field::required("shape", SHAPE, "Tail index."),
                            Field::required("scale", $kind, "Smallest value."),
                        ]],
                    ),
                    Variant::new(
                        "bounded-pareto",
                        "a Pareto distribution that is truncated at a largest value.",
                        &[&[
                            Field::required("shape", SHAPE, "Tail index."),
                            Field::required("low", $kind, "Smallest value."),
                            Field::required("high", $kind, "Largest value."),
                        ]],
                    ),
                    Variant::new(
                        "log-normal",
                        "the logarithm is normal; the mean is median * exp(sigma^2 / 2).",
                        &[&[
                            Field::required("median", $kind, "The median."),
                            Field::required("sigma", SIGMA, "Standard deviation of the natural logarithm."),
                        ]],
                    ),
                    Variant::new(
                        "weibull",
                        "P(X > x) = exp(-(x / scale)^shape).",
                        &[&[
                            Field::required("shape", SHAPE, "Shape; 1 is the exponential distribution."),
                            Field::required("scale", $kind, "Scale."),
                        ]],
                    ),
                    Variant::new(
                        "extreme-value",
                        "largest extreme value (Gumbel), P(X <= x) = exp(-exp(-(x - location) / scale)).",
                        &[&[
                            Field::required("location", $kind, "The mode."),
                            Field::required("scale", $kind, "Scale."),
                        ]],
                    ),
                    Variant::new(
                        "empirical",
                        "a table of the cumulative distribution, with straight lines between its points.",
                        &[&[
                            Field::required("values", FieldKind::List(&$kind), "Values, ascending."),
                            Field::required(
                                "probabilities",
                                FieldKind::List(&FieldKind::PROBABILITY),
                                "Probability of not exceeding each value, ascending; the last is 1.",
                            ),
                        ]],
                    ),
                ],
                later: &[],
            }),
            ..Table::EMPTY
        };
    };
}

distributions!(SIZES, BYTES, "random size", "A random size, drawn for each use.");
distributions!(COUNTS, NUMBER, "random number", "A random number, drawn for each use.");
distributions!(TIMES, TIME, "random time", "A random time, drawn for each use.");

/// Returns a plain value in bytes or seconds, or as a number.
fn plain(value: &Value) -> f64 {
    match &value.data {
        ValueData::Size(bytes) => *bytes as f64,
        ValueData::Duration(time) => time.as_secs_f64(),
        ValueData::Number(number) => *number,
        other => unreachable!("the schema allows sizes, durations and numbers, not {other:?}"),
    }
}

fn drawn(tree: &Tree) -> Distribution {
    let of = |key: &str| tree.get(key).map_or(0.0, plain);
    let number = |key: &str| tree.number(key);
    match tree.choice("kind") {
        "uniform" => Distribution::Uniform { low: of("low"), high: of("high") },
        "exponential" => Distribution::Exponential { mean: of("mean") },
        "pareto" => Distribution::Pareto { shape: number("shape"), scale: of("scale") },
        "bounded-pareto" => Distribution::BoundedPareto { shape: number("shape"), low: of("low"), high: of("high") },
        "log-normal" => Distribution::LogNormal { mu: math::ln(of("median")), sigma: number("sigma") },
        "weibull" => Distribution::Weibull { shape: number("shape"), scale: of("scale") },
        "extreme-value" => Distribution::ExtremeValue { location: of("location"), scale: of("scale") },
        "empirical" => Distribution::Empirical {
            points: tree
                .list("values")
                .iter()
                .map(plain)
                .zip(tree.list("probabilities").iter().map(Value::number))
                .collect(),
        },
        "constant" => Distribution::Constant { value: of("value") },
        other => unreachable!("the schema does not have the distribution {other}"),
    }
}

/// A time in seconds. Only a constant can be written.
impl SettingValue for Distribution {
    fn from_value(value: &Value) -> Self {
        match &value.data {
            ValueData::Table(table) => drawn(table),
            _ => Distribution::Constant { value: plain(value) },
        }
    }

    fn to_data(&self, _: &FieldKind) -> Option<ValueData> {
        match self {
            Distribution::Constant { value } => Some(ValueData::Duration(Duration::from_secs_f64(*value))),
            _ => None,
        }
    }
}

/// Returns the distribution of a key. Its unit is bytes for sizes and seconds for times. [`check_distribution`] must
/// have accepted the key.
pub fn read_distribution(tree: &Tree, key: &str) -> Distribution {
    match tree.get(key) {
        Some(value) => Distribution::from_value(value),
        None => Distribution::Constant { value: 0.0 },
    }
}

/// Returns the distribution that a key describes. Its unit is bytes for sizes and seconds for times. `None` if the key
/// is absent, or if the distribution is invalid; an invalid distribution adds an error to `check`.
pub fn check_distribution(tree: &Tree, key: &str, path: &str, check: &mut Diagnostics) -> Option<Distribution> {
    let value = tree.get(key)?;
    let ValueData::Table(table) = &value.data else { return Some(read_distribution(tree, key)) };
    let path = format!("{path}.{key}");
    if table.choice("kind") == "empirical" && table.list("values").len() != table.list("probabilities").len() {
        let (values, probabilities) = (table.list("values").len(), table.list("probabilities").len());
        let plural = if probabilities == 1 { "probability" } else { "probabilities" };
        let message = format!("{path} has {values} values, but {probabilities} {plural}");
        check.add_error(
            table.location_of("probabilities"),
            &path,
            message,
            vec!["one probability for each value".into()],
        );
        return None;
    }
    let distribution = drawn(table);
    match distribution.check() {
        Ok(()) => Some(distribution),
        Err(rule) => {
            let found: Vec<String> = table
                .iter()
                .filter(|(key, value)| *key != "kind" && value.given)
                .map(|(key, value)| format!("{key} = {}", check.sources.excerpt(value.place)))
                .collect();
            check.add_error(value.place, &path, format!("{path} has {}, but {rule}", found.join(" and ")), Vec::new());
            None
        }
    }
}

impl SettingsReader<'_, '_> {
    /// Reads a size, time or number that can be random.
    ///
    /// # Errors
    /// [`InvalidSettings`] if the key is absent or its value is not a valid distribution.
    pub fn distribution(&mut self, key: &str) -> Result<Distribution, InvalidSettings> {
        check_distribution(self.tree, key, self.path, self.check).ok_or(InvalidSettings)
    }
}
