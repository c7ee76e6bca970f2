//! Formats quantities for people: few digits, and a unit with a suitable prefix. Records contain exact values in their
//! columns.

/// Formats a value in its unit with four significant digits. The units `bit/s`, `s` and `bytes` get the prefix that suits
/// the value.
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
}
