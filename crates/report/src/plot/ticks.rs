//! Positions and labels of ticks. Linear axes have steps of 1, 2 or 5 times a power of ten; logarithmic axes have ticks
//! at decades. An axis begins and ends at a step, so that its ends are labeled. An axis with few values has its ticks
//! at these values.

use crate::numbers::{fixed, power_of_ten, superscript, trimmed};
use fullpipe_units::math::{log10, pow};

/// A tick.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Position in axis units.
    pub(crate) value: f64,
    /// Label; empty for a minor tick.
    pub(crate) label: String,
}

/// The range of an axis with its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticks {
    /// Left or lower end.
    pub(crate) low: f64,
    /// Right or upper end.
    pub(crate) high: f64,
    /// Ticks in ascending order, all within the range.
    pub(crate) ticks: Vec<Tick>,
}

/// Whether the ends of a linear axis are extended to the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeEnds {
    /// Extended to the next step.
    OnStep,
    /// Exactly at the ends of the data, for example for a time axis that ends with the run.
    Exact,
}

/// Returns the ticks of a linear axis over `low..=high` with about `wanted` steps. A range of zero length is extended
/// around its value. If the ends are in the wrong order, they are exchanged.
pub(crate) fn linear(low: f64, high: f64, wanted: u32, ends: RangeEnds) -> Ticks {
    let (mut low, mut high) = if low <= high { (low, high) } else { (high, low) };
    let size = low.abs().max(high.abs());
    if high - low <= size * 1e-9 {
        // The value 5 is extended to the range from 0 to 10. If the ends agree in nine digits, the range is extended by
        // the value's own size.
        (low, high) = match () {
            () if size == 0.0 => (0.0, 1.0),
            () if low >= 0.0 => (0.0, 2.0 * high),
            () if high <= 0.0 => (2.0 * low, 0.0),
            () => (low - size, high + size),
        };
    }
    let (mut mantissa, mut exponent) = step((high - low) / f64::from(wanted.max(1)));
    // Data from -1 to 45 with two steps of 50 would fill less than half of an axis from -50 to 50. The steps are then
    // finer.
    for more in 1..=wanted {
        let width =
            f64::from(mantissa) * if exponent >= 0 { power_of_ten(exponent) } else { 1.0 / power_of_ten(-exponent) };
        let extended = ((high / width - 1e-6).ceil() - (low / width + 1e-6).floor()) * width;
        if ends == RangeEnds::Exact || high - low >= LEAST_FILLED * extended {
            break;
        }
        (mantissa, exponent) = step((high - low) / f64::from(wanted.max(1) + more));
    }
    // A tick is (n x mantissa) x 10^exponent with a single rounding, because 3 x 0.1 would be printed as
    // 0.30000000000000004.
    let at = |n: i64| {
        let whole = (n * i64::from(mantissa)) as f64;
        if exponent >= 0 { whole * power_of_ten(exponent) } else { whole / power_of_ten(-exponent) }
    };
    let width = at(1);
    // The tolerance prevents an additional step for an end that differs from a step only by rounding. For example, the
    // axis of a run of 60 s ends at 60 s although its last sample is at 59.99 s.
    if ends == RangeEnds::Exact {
        let next = at((high / width).ceil() as i64);
        high = if next - high < 0.02 * width { next } else { high };
    }
    let (first, last) = match ends {
        RangeEnds::OnStep => ((low / width + 1e-6).floor() as i64, (high / width - 1e-6).ceil() as i64),
        RangeEnds::Exact => ((low / width - 1e-6).ceil() as i64, (high / width + 1e-6).floor() as i64),
    };
    if ends == RangeEnds::OnStep {
        (low, high) = (at(first), at(last));
    }
    let decimals = usize::try_from(-exponent).unwrap_or(0);
    let ticks = (first..=last.min(first.saturating_add(1000)))
        .map(|n| Tick { value: at(n), label: label(at(n), decimals) })
        .collect();
    Ticks { low, high, ticks }
}

/// The minimum part of an axis that its data must fill, if finer steps can achieve it.
const LEAST_FILLED: f64 = 0.55;

/// Returns the smallest number of 1, 2, 5 or 10 times a power of ten that is at least `raw`.
fn step(raw: f64) -> (u8, i32) {
    let mut exponent = log10(raw).floor() as i32;
    // At a power of ten, log10 can be wrong by one unit in the last place.
    if power_of_ten(exponent + 1) <= raw {
        exponent += 1;
    }
    for mantissa in [1, 2, 5] {
        if f64::from(mantissa) * power_of_ten(exponent) >= raw * (1.0 - 1e-9) {
            return (mantissa, exponent);
        }
    }
    (1, exponent + 1)
}

fn label(value: f64, decimals: usize) -> String {
    if decimals <= 12 && value.abs() < 1e15 { fixed(value, decimals) } else { crate::numbers::trimmed(value, 10) }
}

/// Returns the ticks of a logarithmic axis over `low..=high`, which are both above zero. The ends are extended to 1, 2
/// or 5 times a power of ten. Decades are labeled, and the steps 2 to 9 are minor ticks. On an axis of at most two and
/// a half decades, 2 and 5 are labeled too. With many decades, only every second, third or later decade is labeled.
pub(crate) fn logarithmic(low: f64, high: f64) -> Ticks {
    let (mut low, mut high) = if low <= high { (low, high) } else { (high, low) };
    low = low.max(1e-290);
    high = high.max(low);
    if high / low < 1.0 + 1e-9 {
        // A single value is at the center of about one decade.
        low /= 3.0;
        high *= 3.0;
    }
    low = down(low);
    high = up(high);
    let decades = log10(high / low);
    let first = log10(low).floor() as i32 - 1;
    let last = log10(high).ceil() as i32 + 1;
    let every = ((decades / 8.0).ceil() as i32).max(1);
    let powers = first + 1 < -3 || last - 1 > 6;
    let mut ticks = Vec::new();
    for exponent in first..=last {
        for mantissa in 1..=9_u8 {
            let value = f64::from(mantissa) * power_of_ten(exponent);
            if value < low * (1.0 - 1e-9) || value > high * (1.0 + 1e-9) {
                continue;
            }
            let labelled = match mantissa {
                1 => exponent % every == 0,
                2 | 5 => decades <= 2.5,
                _ => false,
            };
            if mantissa > 1 && decades > 8.0 {
                continue;
            }
            let label = match (labelled, powers, mantissa) {
                (false, ..) => String::new(),
                (true, true, 1) => format!("10{}", superscript(exponent)),
                (true, true, m) => format!("{m}·10{}", superscript(exponent)),
                (true, false, _) => fixed(value, usize::try_from(-exponent).unwrap_or(0)),
            };
            ticks.push(Tick { value, label });
        }
    }
    Ticks { low, high, ticks }
}

/// The maximum number of values that each have a tick. An axis with more values has the ticks of its scale.
const MOST_VALUES: usize = 9;
/// The minimum distance between neighboring values, as a fraction of the axis, so that their labels do not overlap.
const LEAST_DISTANCE: f64 = 0.065;
/// The margin outside the first and the last value, as a fraction of the distance between them.
const MARGIN: f64 = 0.04;

/// Returns the best scale for an axis with a tick at each value. It is logarithmic (`true`) if the study requests it,
/// or if all values are powers of two and the study requests no scale (`None`). Returns `None` if there are too many
/// values or if they are too close.
pub(crate) fn scale_of_values(rising: &[f64], asked_log: Option<bool>) -> Option<bool> {
    let (first, last) = (*rising.first()?, *rising.last()?);
    if rising.len() < 2 || rising.len() > MOST_VALUES {
        return None;
    }
    let doubling = rising.len() >= 4 && rising.iter().all(|value| is_power_of_two(*value));
    let log = asked_log.unwrap_or(doubling);
    if log && first <= 0.0 {
        return None;
    }
    let distance = |a: f64, b: f64| if log { log10(b / a) } else { b - a };
    let least = rising.windows(2).map(|pair| distance(pair[0], pair[1])).fold(f64::MAX, f64::min);
    (least >= LEAST_DISTANCE * distance(first, last)).then_some(log)
}

/// Returns whether a value is a power of two, for example 1/4.
fn is_power_of_two(value: f64) -> bool {
    // The fraction bits of a normal number are zero.
    value.is_normal() && value > 0.0 && value.to_bits().trailing_zeros() >= 52
}

/// Returns the ticks at ascending values, with a margin around `low..=high`, which contains them. An axis that starts
/// at zero has no margin there.
pub(crate) fn at_values(values: &[f64], low: f64, high: f64, log: bool) -> Ticks {
    let ticks = values.iter().map(|value| Tick { value: *value, label: trimmed(*value, 6) }).collect();
    if log && low > 0.0 {
        let margin = pow(high / low, MARGIN);
        return Ticks { low: low / margin, high: high * margin, ticks };
    }
    let margin = MARGIN * (high - low);
    Ticks { low: if low == 0.0 { 0.0 } else { low - margin }, high: high + margin, ticks }
}

/// Returns 1, 2 and 5 times powers of ten around `value`, in ascending order.
fn around(value: f64) -> [f64; 6] {
    let exponent = log10(value).floor() as i32;
    let steps = [(5, exponent - 1), (1, exponent), (2, exponent), (5, exponent), (1, exponent + 1), (2, exponent + 1)];
    steps.map(|(mantissa, exponent)| f64::from(mantissa) * power_of_ten(exponent))
}

/// Returns the largest of 1, 2 or 5 times a power of ten that is at most `value`.
fn down(value: f64) -> f64 {
    around(value).into_iter().rev().find(|step| *step <= value * (1.0 + 1e-9)).unwrap_or(value)
}

/// Returns the smallest of 1, 2 or 5 times a power of ten that is at least `value`.
fn up(value: f64) -> f64 {
    around(value).into_iter().find(|step| *step >= value * (1.0 - 1e-9)).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_is_not_much_longer_than_its_data() {
        // Two steps of at least 23 are steps of 50, from -50 to 50. Three steps of at least 15.3 are steps of 20.
        let ticks = linear(-1.0, 45.0, 2, RangeEnds::OnStep);
        assert_eq!((ticks.low, ticks.high, ticks.ticks.len()), (-20.0, 60.0, 5));
    }
    use proptest::prelude::*;

    fn labels(ticks: &Ticks) -> Vec<&str> {
        ticks.ticks.iter().map(|t| t.label.as_str()).filter(|l| !l.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_have_round_steps_and_labels() {
        // 776.5 / 5 = 155.3 gives a step of 200; the end is extended to 800.
        let ticks = linear(0.0, 776.5, 5, RangeEnds::OnStep);
        assert_eq!(labels(&ticks), ["0", "200", "400", "600", "800"]);
        assert_eq!((ticks.low, ticks.high), (0.0, 800.0));
        // 0.7 / 6 = 0.117 gives a step of 0.2; 0.6 is 0.6, not 0.6000000000000001.
        let ticks = linear(0.1, 0.8, 6, RangeEnds::OnStep);
        assert_eq!(labels(&ticks), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(ticks.ticks[3].value, 0.6);
        // 10 / 5 = 2 gives a step of 2, and 10 is already an end.
        assert_eq!(labels(&linear(0.0, 10.0, 5, RangeEnds::OnStep)), ["0", "2", "4", "6", "8", "10"]);
        // Below zero: 15 / 5 = 3 gives a step of 5.
        assert_eq!(labels(&linear(-7.0, 8.0, 5, RangeEnds::OnStep)), ["−10", "−5", "0", "5", "10"]);
        // A time axis ends with the run: 60 / 6 = 10; 61 is not a step.
        let ticks = linear(0.0, 61.0, 6, RangeEnds::Exact);
        assert_eq!((ticks.low, ticks.high), (0.0, 61.0));
        assert_eq!(labels(&ticks), ["0", "20", "40", "60"]);
        assert_eq!(linear(0.0, 59.99, 6, RangeEnds::Exact).high, 60.0);
        assert_eq!(labels(&linear(0.0, 100_000.0, 5, RangeEnds::OnStep))[1], "20\u{202f}000");
    }

    #[test]
    fn axis_of_few_values_has_a_tick_at_each() {
        // 1, 2, 4, ... 64 BDP: a factor of two between neighbors, so distances are equal on a logarithmic scale.
        let doubling = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        assert_eq!(scale_of_values(&doubling, None), Some(true));
        // On a linear scale 1 and 2 are 1/63 of the axis apart, which is too close.
        assert_eq!(scale_of_values(&doubling, Some(false)), None);
        assert_eq!(scale_of_values(&[0.25, 0.5, 1.0, 2.0], None), Some(true));
        // 3 is not a power of two; three powers of two may be a coincidence; ten values are too many.
        assert_eq!(scale_of_values(&[1.0, 2.0, 3.0, 4.0], None), Some(false));
        assert_eq!(scale_of_values(&[1.0, 2.0, 4.0], None), Some(false));
        assert_eq!(scale_of_values(&[1.0, 10.0, 100.0], Some(true)), Some(true));
        assert_eq!(scale_of_values(&[0.0, 10.0, 20.0], Some(true)), None);
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        assert_eq!(
            (scale_of_values(&ten, None), scale_of_values(&[5.0], None), scale_of_values(&[], None)),
            (None, None, None)
        );
        let ticks = at_values(&[10.0, 30.0, 60.0], 10.0, 60.0, false);
        assert_eq!(labels(&ticks), ["10", "30", "60"]);
        // 4 % of 50 on both sides.
        assert_eq!((ticks.low, ticks.high), (8.0, 62.0));
        assert_eq!(at_values(&[10.0, 20.0], 0.0, 20.0, false).low, 0.0);
        let ticks = at_values(&doubling, 1.0, 64.0, true);
        // 64^0.04 = 2^0.24 = 1.181.
        assert!((ticks.low * 1.181 - 1.0).abs() < 1e-3 && (ticks.high / 64.0 - 1.181).abs() < 1e-3, "{ticks:?}");
    }

    #[test]
    fn is_power_of_two_accepts_powers_of_two_only() {
        for value in [1.0, 2.0, 1024.0, 0.5, 0.0625] {
            assert!(is_power_of_two(value), "{value}");
        }
        for value in [0.0, -2.0, 3.0, 0.1, f64::NAN, f64::INFINITY] {
            assert!(!is_power_of_two(value), "{value}");
        }
    }

    #[test]
    fn a_range_without_extent_is_opened() {
        let range = |v| {
            let ticks = linear(v, v, 5, RangeEnds::OnStep);
            (ticks.low, ticks.high)
        };
        assert_eq!(range(5.0), (0.0, 10.0));
        assert_eq!(range(-5.0), (-10.0, 0.0));
        assert_eq!(range(0.0), (0.0, 1.0));
    }

    #[test]
    fn log_ticks_have_decades_and_minor_ticks() {
        // Four decades, with both ends at a decade.
        let ticks = logarithmic(10.0, 100_000.0);
        assert_eq!(labels(&ticks), ["10", "100", "1000", "10\u{202f}000", "100\u{202f}000"]);
        // Eight minor ticks in each of four decades, five decades.
        assert_eq!(ticks.ticks.len(), 4 * 8 + 5);
        // Within two and a half decades, 2 and 5 are labeled. 0.3 is extended to 0.2, and 7 to 10.
        let ticks = logarithmic(0.3, 7.0);
        assert_eq!((ticks.low, ticks.high), (0.2, 10.0));
        assert_eq!(labels(&ticks), ["0.2", "0.5", "1", "2", "5", "10"]);
        // A wide range has powers of ten as labels.
        let ticks = logarithmic(1e-6, 1.0);
        assert_eq!(labels(&ticks), ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]);
        // A very wide range has labels at every third decade and no minor ticks: 20 decades / 8 = 2.5.
        let ticks = logarithmic(1.0, 1e20);
        assert_eq!(labels(&ticks), ["10⁰", "10³", "10⁶", "10⁹", "10¹²", "10¹⁵", "10¹⁸"]);
        assert_eq!(ticks.ticks.len(), 21);
        // A single value: 4/3 is extended to 1, and 12 to 20.
        let ticks = logarithmic(4.0, 4.0);
        assert_eq!((ticks.low, ticks.high), (1.0, 20.0));
    }

    proptest! {
        #[test]
        fn linear_range_contains_the_data(a in -1e12..1e12_f64, extent in 0.0..1e12_f64, shrink in 0..12_i32) {
            let (low, high) = (a, a + extent * power_of_ten(-shrink));
            let ticks = linear(low, high, 5, RangeEnds::OnStep);
            let slack = (ticks.high - ticks.low) * 1e-5;
            prop_assert!(ticks.low <= low + slack && ticks.high >= high - slack, "{ticks:?}");
            prop_assert!((2..=9).contains(&ticks.ticks.len()), "{ticks:?}");
            prop_assert!(ticks.ticks.windows(2).all(|w| w[0].value < w[1].value && w[0].label != w[1].label), "{ticks:?}");
        }

        #[test]
        fn log_range_contains_the_data(exponent in -280..280_i32, mantissa in 1.0..10.0_f64, decades in 0.0..15.0_f64) {
            let low = mantissa * power_of_ten(exponent);
            let high = low * fullpipe_units::math::pow(10.0, decades);
            let ticks = logarithmic(low, high);
            prop_assert!(ticks.low <= low * 1.000_001 && ticks.high >= high * 0.999_999, "{ticks:?}");
            prop_assert!(ticks.low > low / 10.0 && ticks.high < high * 10.0, "{ticks:?}");
            prop_assert!(labels(&ticks).len() >= 2, "{ticks:?}");
        }
    }
}
