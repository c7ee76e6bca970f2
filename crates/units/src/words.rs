//! Formats quantities for people: few digits, and a unit with a suitable prefix. Records contain exact values in their
//! columns.

/// Formats a value in its unit with four significant digits. The units `bit/s`, `s` and `bytes` get the prefix that
/// suits the value.
pub fn format_quantity(value: f64, unit: &str) -> String {
    format_with_digits(value, unit, 4)
}

/// Formats a value in its unit with this number of significant digits, with a prefix as in [`format_quantity`].
pub fn format_with_digits(value: f64, unit: &str, digits: i32) -> String {
    let prefixes: &[(&str, f64)] = match unit {
        "bit/s" => &[("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)],
        "s" => &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)],
        "bytes" => &[("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1.0)],
        _ => &[],
    };
    let fits = |prefix: &&(&str, f64)| value.abs() >= prefix.1;
    let base = prefixes.iter().find(|(name, _)| *name == unit);
    let (unit, factor) = match value == 0.0 {
        true => (unit, 1.0),
        false => prefixes.iter().find(fits).or(base).copied().unwrap_or((unit, 1.0)),
    };
    let scaled = value / factor;
    let magnitude = if scaled == 0.0 { 0 } else { crate::math::log10(scaled.abs()).floor() as i32 };
    let decimals = (digits - 1 - magnitude).clamp(0, 17) as usize;
    let mut text = format!("{scaled:.decimals$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    match unit {
        "" => text,
        "bytes" if text == "1" => "1 byte".to_owned(),
        "%" => text + " %",
        unit => format!("{text} {unit}"),
    }
}

/// Formats a time in nanoseconds with every digit: `219.797607 ms`. This is for error messages in which a single
/// nanosecond matters.
pub fn format_exact_time(nanoseconds: u64) -> String {
    exact(u128::from(nanoseconds), &[("s", 9), ("ms", 6), ("us", 3), ("ns", 0)])
}

/// Formats a rate in bits per second with every digit: `100 Mbit/s`.
pub fn format_exact_rate(bits_per_second: u64) -> String {
    exact(u128::from(bits_per_second), &[("Gbit/s", 9), ("Mbit/s", 6), ("kbit/s", 3), ("bit/s", 0)])
}

/// Formats a number of bytes with every digit: `1502 bytes`, and with a prefix from 100 kB on: `1.448001 MB`.
pub fn format_exact_bytes(number: impl Into<i128>) -> String {
    let number = number.into();
    let sign = if number < 0 { "-" } else { "" };
    match number.unsigned_abs() {
        1 => format!("{sign}1 byte"),
        small if small < 100_000 => format!("{sign}{small} bytes"),
        large => sign.to_owned() + &exact(large, &[("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)]),
    }
}

/// Formats a count with its unit. `noun` is the singular; the plural ends in `s`: `1 frame`, `2 frames`.
pub fn format_count(number: impl Into<i128>, noun: &str) -> String {
    let number = number.into();
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Formats a value with the first unit that is not larger than it, or else the last unit. Each unit has an exponent of
/// ten; the exponents descend.
fn exact(value: u128, units: &[(&str, u32)]) -> String {
    let suits = |(_, exponent): &&(&str, u32)| value >= 10_u128.pow(*exponent);
    let Some(&(unit, exponent)) = units.iter().find(suits).or(units.last()) else { return value.to_string() };
    let factor = 10_u128.pow(exponent);
    let digits = exponent as usize;
    let text = format!("{}.{:0digits$}", value / factor, value % factor);
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_words_have_a_suitable_prefix() {
        let cases = [
            (9_412_345.0, "bit/s", "9.412 Mbit/s"),
            (20e6, "bit/s", "20 Mbit/s"),
            (0.0471, "s", "47.1 ms"),
            (0.0, "s", "0 s"),
            (12.5, "ms", "12.5 ms"),
            (0.012_345_6, "", "0.01235"),
            (1780.0, "packets", "1780 packets"),
            (123_456.0, "packets", "123456 packets"),
        ];
        for (value, unit, expected) in cases {
            assert_eq!(format_quantity(value, unit), expected);
        }
    }

    #[test]
    fn a_count_of_bytes_has_its_unit_as_a_word_or_with_a_prefix() {
        for (value, expected) in
            [(0.0, "0 bytes"), (1.0, "1 byte"), (999.0, "999 bytes"), (65_536.0, "65.54 kB"), (2e13, "20 TB")]
        {
            assert_eq!(format_quantity(value, "bytes"), expected);
        }
    }

    #[test]
    fn exact_quantities_keep_every_digit() {
        let times = [0, 9, 120_169, 219_797_607, 60_000_000_000, 1_000_000_001].map(format_exact_time);
        assert_eq!(times, ["0 ns", "9 ns", "120.169 us", "219.797607 ms", "60 s", "1.000000001 s"]);
        let rates = [64_000, 100_000_000, 1_000_000_001].map(format_exact_rate);
        assert_eq!(rates, ["64 kbit/s", "100 Mbit/s", "1.000000001 Gbit/s"]);
        let sizes = [0_i64, 1, -1, 99_999, 100_000, -1_448_001].map(format_exact_bytes);
        assert_eq!(sizes, ["0 bytes", "1 byte", "-1 byte", "99999 bytes", "100 kB", "-1.448001 MB"]);
        let counts = [0_i64, 1, 2].map(|number| format_count(number, "frame"));
        assert_eq!(counts, ["0 frames", "1 frame", "2 frames"]);
    }
}
