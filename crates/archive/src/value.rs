//! The values of table cells, and their form in files. Counts are integers, times are exact decimal seconds, and other
//! numbers have the shortest form that parses to the same number. A cell without a value is empty. The format is
//! deterministic: equal rows result in equal bytes.

use fullpipe_units::{Duration, Instant};
use std::borrow::Cow;
use std::fmt::Write;

/// The largest absolute value of a number that is accepted. Larger numbers are not measurements, and differences of
/// numbers near `f64::MAX` would overflow.
pub(crate) const LARGEST: f64 = 1e200;
const NANOSECONDS: u64 = 1_000_000_000;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// Any text.
    Text,
    /// A non-negative integer.
    Count,
    /// A non-negative time in seconds, with at most nine decimals.
    Seconds,
    /// A finite number.
    Number,
}

impl CellKind {
    /// Returns the name of the type.
    pub fn name(self) -> &'static str {
        match self {
            CellKind::Text => "text",
            CellKind::Count => "count",
            CellKind::Seconds => "seconds",
            CellKind::Number => "number",
        }
    }
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Empty,
    /// A text.
    Text(Cow<'a, str>),
    /// A count.
    Count(u64),
    /// A time in nanoseconds.
    Nanoseconds(u64),
    /// A number.
    Number(f64),
}

impl Cell<'_> {
    /// Appends the text of the cell as it is in the file.
    pub fn write_to(&self, out: &mut String) {
        match self {
            Cell::Text(text) => out.push_str(text),
            Cell::Count(count) => print_count(*count, out),
            Cell::Nanoseconds(nanoseconds) => {
                print_count(nanoseconds / NANOSECONDS, out);
                print_fraction(nanoseconds % NANOSECONDS, out);
            }
            Cell::Number(number) => print_number(*number, out),
            Cell::Empty => {}
        }
    }

    /// Returns the cell as a number; NaN for texts and empty cells.
    pub fn number(&self) -> f64 {
        match self {
            Cell::Empty | Cell::Text(_) => f64::NAN,
            Cell::Count(count) => *count as f64,
            // A single division is correctly rounded, so the result equals the number that is parsed from the printed
            // seconds.
            Cell::Nanoseconds(nanoseconds) => *nanoseconds as f64 / NANOSECONDS as f64,
            Cell::Number(number) => *number,
        }
    }
}

/// Appends the decimal digits of a count. A run with probes prints tens of thousands of counts, and `write!` needs five
/// times as many instructions.
fn print_count(mut count: u64, out: &mut String) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (count % 10) as u8;
        count /= 10;
        if count == 0 {
            break;
        }
    }
    out.extend(digits[first..].iter().map(|digit| char::from(*digit)));
}

/// Appends a decimal point and the decimals of `nanoseconds` below one second, without trailing zeros. Appends nothing
/// for zero.
fn print_fraction(mut nanoseconds: u64, out: &mut String) {
    if nanoseconds == 0 {
        return;
    }
    let mut text = *b".000000000";
    for digit in text[1..].iter_mut().rev() {
        *digit = b'0' + (nanoseconds % 10) as u8;
        nanoseconds /= 10;
    }
    let length = text.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    out.extend(text[..length].iter().map(|digit| char::from(*digit)));
}

/// Appends the shortest form that parses to the same number. Appends nothing if the number is not finite.
fn print_number(number: f64, out: &mut String) {
    // Every integer up to 2^53 is an exact f64, and its shortest form has all its digits. -0 is excluded because of its
    // sign.
    if number.fract() == 0.0 && number.is_sign_positive() && number <= 9_007_199_254_740_992.0 {
        print_count(number as u64, out);
    } else if number.is_finite() {
        // Writing to a string cannot fail.
        let _ = write!(out, "{number}");
    }
}

/// Texts become strings; empty cells become null.
impl From<Cell<'_>> for serde_json::Value {
    fn from(cell: Cell<'_>) -> Self {
        match cell {
            Cell::Empty => serde_json::Value::Null,
            Cell::Text(text) => text.into_owned().into(),
            Cell::Count(count) => count.into(),
            Cell::Nanoseconds(_) | Cell::Number(_) => cell.number().into(),
        }
    }
}

/// A type whose values are cells of a column.
pub trait CellValue: Sized {
    /// The column's type.
    const KIND: CellKind;
    /// Whether a cell may be empty because there is no value. The column may be missing in files of earlier versions.
    const IS_OPTIONAL: bool = false;
    /// The accepted values, for messages: "a count".
    const EXPECTED: &'static str;

    /// Converts the value to a cell.
    fn to_cell(&self) -> Cell<'_>;

    /// Parses the text of a cell; `None` if it does not match [`CellValue::EXPECTED`].
    fn parse(text: &str) -> Option<Self>;

    /// Sets the value from the text of a cell. Returns false if the text is not valid.
    fn set_from_text(&mut self, text: &str) -> bool {
        Self::parse(text).map(|value| *self = value).is_some()
    }
}

impl CellValue for String {
    const KIND: CellKind = CellKind::Text;
    const EXPECTED: &'static str = "a text";

    fn to_cell(&self) -> Cell<'_> {
        Cell::Text(Cow::Borrowed(self))
    }

    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn set_from_text(&mut self, text: &str) -> bool {
        // Readers reuse a row, and this reuses its allocation.
        self.clear();
        self.push_str(text);
        true
    }
}

/// Implements [`CellValue`] for number types.
macro_rules! numbers {
    ($($Type:ty, $kind:expr, $expected:literal, $cell:expr, $parse:expr;)+) => {$(
        impl CellValue for $Type {
            const KIND: CellKind = $kind;
            const EXPECTED: &'static str = $expected;

            fn to_cell(&self) -> Cell<'_> {
                let cell: fn($Type) -> Cell<'static> = $cell;
                cell(*self)
            }

            fn parse(text: &str) -> Option<Self> {
                let parse: fn(&str) -> Option<$Type> = $parse;
                parse(text)
            }
        }
    )+};
}

numbers! {
    u64, CellKind::Count, "a count", Cell::Count, |text| text.trim().parse().ok();
    f64, CellKind::Number, "a number", Cell::Number, parse_number;
    Instant, CellKind::Seconds, "a number of seconds", |at| Cell::Nanoseconds(at.as_nanos()),
        |text| nanoseconds(text).map(Instant::from_nanos);
    Duration, CellKind::Seconds, "a number of seconds", |time| Cell::Nanoseconds(time.as_nanos()),
        |text| nanoseconds(text).map(Duration::from_nanos);
}

/// Counts by index, separated by semicolons: `0;3;12`.
impl CellValue for Vec<u64> {
    const KIND: CellKind = CellKind::Text;
    const EXPECTED: &'static str = "counts joined with semicolons";

    fn to_cell(&self) -> Cell<'_> {
        Cell::Text(self.iter().map(u64::to_string).collect::<Vec<_>>().join(";").into())
    }

    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() { Some(Vec::new()) } else { text.split(';').map(|count| count.parse().ok()).collect() }
    }
}

impl<T: CellValue> CellValue for Option<T> {
    const KIND: CellKind = T::KIND;
    const IS_OPTIONAL: bool = true;
    const EXPECTED: &'static str = T::EXPECTED;

    fn to_cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Empty, T::to_cell)
    }

    fn parse(text: &str) -> Option<Self> {
        if text.trim().is_empty() { Some(None) } else { T::parse(text).map(Some) }
    }
}

/// Parses a number; `None` if it is not finite or its absolute value is above 10^200.
pub fn parse_number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.abs() <= LARGEST)
}

/// Parses seconds into nanoseconds. Numbers with more than nine decimals or with an exponent are rounded.
fn nanoseconds(text: &str) -> Option<u64> {
    let text = text.trim();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let has_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if has_digits(whole) && has_digits(decimals) && decimals.len() <= 9 {
        let fraction = decimals.parse::<u64>().ok()? * 10_u64.pow(9 - decimals.len() as u32);
        return whole.parse::<u64>().ok()?.checked_mul(NANOSECONDS)?.checked_add(fraction);
    }
    let nanoseconds = (parse_number(text)? * NANOSECONDS as f64).round();
    // Up to 2^53, an f64 represents every integer exactly.
    (0.0..=9_007_199_254_740_992.0).contains(&nanoseconds).then_some(nanoseconds as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(cell: &Cell<'_>) -> String {
        let mut text = String::new();
        cell.write_to(&mut text);
        text
    }

    #[test]
    fn times_print_exactly() {
        for (nanoseconds, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (7_009_616, "0.007009616"),
            (2_000_000_000, "2"),
            (10_500_000_000, "10.5"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            assert_eq!(printed(&Cell::Nanoseconds(nanoseconds)), text);
            assert_eq!(super::nanoseconds(text), Some(nanoseconds), "{text}");
        }
    }

    #[test]
    fn cells_print_as_the_standard_library_prints_their_values() {
        let mut stream = fullpipe_units::RandomStream::new(25, "test", "cells");
        for _ in 0..20_000 {
            // Cover all magnitudes, not only large ones.
            let count = stream.next_u64() >> stream.uniform_below(64);
            assert_eq!(printed(&Cell::Count(count)), count.to_string());
            let seconds = format!("{}.{:09}", count / NANOSECONDS, count % NANOSECONDS);
            assert_eq!(printed(&Cell::Nanoseconds(count)), seconds.trim_end_matches('0').trim_end_matches('.'));
            let bits = f64::from_bits(stream.next_u64());
            let scaled = count as f64 / f64::from(1_u32 << stream.uniform_below(20));
            for number in [bits, scaled, -scaled, count as f64, -(count as f64)].into_iter().filter(|n| n.is_finite()) {
                assert_eq!(printed(&Cell::Number(number)), number.to_string());
            }
        }
        for number in [0.0, -0.0, 1.0, 9_007_199_254_740_992.0, 9_007_199_254_740_994.0, 1e22, f64::MAX] {
            assert_eq!(printed(&Cell::Number(number)), number.to_string());
        }
        assert_eq!(printed(&Cell::Count(u64::MAX)), u64::MAX.to_string());
    }

    #[test]
    fn times_are_read_in_any_decimal_form() {
        for (text, expected) in [
            ("1.500", Some(1_500_000_000)),
            (" 3 ", Some(3_000_000_000)),
            ("1e-3", Some(1_000_000)),
            // The decimals after the ninth are less than half a nanosecond.
            ("0.000000001499", Some(1)),
            ("0.33399999999999996", Some(334_000_000)),
            ("-1", None),
            ("-0.5", None),
            ("", None),
            (".", None),
            ("1.5x", None),
            ("inf", None),
            // One second more than 2^64 ns.
            ("18446744074", None),
            ("1e30", None),
        ] {
            assert_eq!(nanoseconds(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_time_as_a_number_equals_its_printed_text() {
        for nanoseconds in [1, 7, 29, 300_000_000, 7_009_616, 59_999_999_999, 123_456_789_012_345] {
            let cell = Cell::Nanoseconds(nanoseconds);
            assert_eq!(Ok(cell.number()), printed(&cell).parse());
        }
    }

    #[test]
    fn numbers_print_in_the_shortest_form_and_only_if_finite() {
        for (number, text) in [(0.1, "0.1"), (5.0, "5"), (1.0 / 3.0, "0.3333333333333333"), (f64::NAN, "")] {
            assert_eq!(printed(&Cell::Number(number)), text);
        }
        assert_eq!(printed(&Cell::Number(f64::INFINITY)), "");
    }

    #[test]
    fn parse_number_rejects_infinite_and_very_large_numbers() {
        assert_eq!(parse_number("1e3"), Some(1000.0));
        assert_eq!(parse_number("-0.5"), Some(-0.5));
        for bad in ["inf", "NaN", "-inf", "1e201", "12x", ""] {
            assert_eq!(parse_number(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_empty_cell_clears_an_optional_value() {
        let mut value = Some(3_u64);
        assert!(value.set_from_text(""));
        assert_eq!(value, None);
        assert!(!value.set_from_text("-1"));
    }
}
