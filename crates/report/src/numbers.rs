//! Formats numbers as in a paper: only significant digits, thousands in groups, and a minus sign (U+2212). A mean is
//! rounded according to its interval, to two significant digits of the half width.

/// The separator of groups of thousands: a narrow no-break space (SI brochure, section 5.4.4).
const GROUP: char = '\u{202f}';
/// A space as wide as a digit in fonts with tabular figures.
const FIGURE_SPACE: char = '\u{2007}';
/// A space as wide as a full stop.
const PUNCTUATION_SPACE: char = '\u{2008}';
/// The maximum number of digits of a value, even if its interval is narrower.
const MOST_DIGITS: i32 = 5;

/// Returns `10^exponent`, correctly rounded, which the result of repeated multiplication is not.
pub(crate) fn power_of_ten(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().unwrap_or(f64::NAN)
}

/// Returns the exponent of the first digit of `value` after rounding to `digits` significant digits. The exponent of
/// 0.0996 is −2 with three digits, and −1 with two digits (0.10). The exponent of zero is 0.
fn exponent_after_rounding(value: f64, digits: usize) -> i32 {
    let text = format!("{:.*e}", digits.saturating_sub(1), value);
    text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

/// Formats a number with a fixed number of decimals and with thousands in groups.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let plain = format!("{value:.decimals$}");
    let (negative, digits) = match plain.strip_prefix('-') {
        // Avoids "−0.00".
        Some(rest) => (rest.bytes().any(|b| b.is_ascii_digit() && b != b'0'), rest),
        None => (false, plain.as_str()),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut out = String::new();
    if negative {
        out.push('\u{2212}');
    }
    for (i, c) in whole.chars().enumerate() {
        // Numbers with four digits are not grouped: 1448, but 14 480.
        if i > 0 && whole.len() > 4 && (whole.len() - i) % 3 == 0 {
            out.push(GROUP);
        }
        out.push(c);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Formats a number with this many significant digits. The integer part is never rounded.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return "–".to_owned();
    }
    let exponent = exponent_after_rounding(value, digits);
    if !(-4..15).contains(&exponent) {
        return scientific(value, digits);
    }
    let last = i32::try_from(digits).unwrap_or(MOST_DIGITS) - 1;
    fixed(value, usize::try_from(last - exponent).unwrap_or(0))
}

/// Formats a measured value without an interval: integers exactly, other numbers with this many significant digits.
pub(crate) fn exact(value: f64, digits: usize) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { fixed(value, 0) } else { significant(value, digits) }
}

/// Formats a number like [`significant`], without trailing zeros. It is for exact values, such as a rate of 1000
/// Mbit/s.
pub(crate) fn trimmed(value: f64, digits: usize) -> String {
    let text = significant(value, digits);
    if !text.contains('.') || text.contains('×') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{:.*e}", digits.saturating_sub(1), value);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{} × 10{}", mantissa.replace('-', "\u{2212}"), superscript(exponent.parse().unwrap_or(0)))
}

/// Formats an exponent in superscript characters.
pub(crate) fn superscript(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raise = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    exponent.to_string().chars().map(raise).collect()
}

/// Formats the mean and the half width with the same number of decimals: two significant digits of the half width, but
/// at most five digits of the mean. Without an interval, the mean has five digits.
pub(crate) fn mean_and_interval(mean: f64, half_width: Option<f64>) -> (String, Option<String>) {
    match half_width {
        Some(half) if half > 0.0 && half.is_finite() && mean.is_finite() => {
            let wanted = 1 - exponent_after_rounding(half, 2);
            let most = MOST_DIGITS - 1 - exponent_after_rounding(mean, 2);
            if mean != 0.0 && !(-9..=12).contains(&wanted.min(most)) {
                return (scientific(mean, 4), Some(scientific(half, 2)));
            }
            let decimals = usize::try_from(if mean == 0.0 { wanted } else { wanted.min(most) }).unwrap_or(0);
            let interval = fixed(half, decimals);
            // An interval that is much smaller than the last digit is not shown as zero.
            let shown = if interval.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
                interval
            } else {
                format!("< {}", fixed(power_of_ten(-i32::try_from(decimals).unwrap_or(0)), decimals))
            };
            (fixed(mean, decimals), Some(shown))
        }
        Some(_) => (exact(mean, 5), Some("0".to_owned())),
        None => (exact(mean, 5), None),
    }
}

/// Formats a ratio in percent with its sign, to 0.01 % below ten percent: "+0.12 %".
pub(crate) fn signed_percent(share: f64) -> String {
    if !share.is_finite() {
        return "–".to_owned();
    }
    let percent = share * 100.0;
    if percent == 0.0 {
        return "0 %".to_owned();
    }
    // "+0.00 %" would contradict its own sign.
    if percent.abs() < 0.005 {
        return "≈ 0 %".to_owned();
    }
    let decimals = match percent.abs() {
        p if p < 9.995 => 2,
        p if p < 99.95 => 1,
        _ => 0,
    };
    let sign = if percent > 0.0 { '+' } else { '\u{2212}' };
    format!("{sign}{} %", fixed(percent.abs(), decimals))
}

/// Pads numbers on the right so that decimal points align in a right-aligned column with tabular figures. Other texts
/// are unchanged.
pub(crate) fn align(column: &mut [String]) {
    let is_number = |text: &str| {
        let mut chars = text.chars();
        chars.next().is_some_and(|c| c.is_ascii_digit() || c == '\u{2212}' || c == '+')
            && chars.all(|c| c.is_ascii_digit() || c == '.' || c == GROUP)
    };
    let fraction = |text: &str| text.split_once('.').map_or(0, |(_, f)| f.chars().count());
    let widest = column.iter().filter(|t| is_number(t)).map(|t| fraction(t)).max().unwrap_or(0);
    for text in column.iter_mut().filter(|t| is_number(t)) {
        let missing = widest - fraction(text);
        if missing > 0 {
            if !text.contains('.') {
                text.push(PUNCTUATION_SPACE);
            }
            text.extend(std::iter::repeat_n(FIGURE_SPACE, missing));
        }
    }
}

/// Formats a number with its noun: "1 run", "2 runs".
pub(crate) fn count(n: usize, what: &str) -> String {
    let number = fixed(n as f64, 0);
    if n == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_requested_significant_digits() {
        assert_eq!(significant(776.5314, 4), "776.5");
        assert_eq!(significant(0.041_373_7, 4), "0.04137");
        assert_eq!(significant(14_720_000.0, 3), "14\u{202f}720\u{202f}000");
        assert_eq!(significant(1448.0, 4), "1448");
        assert_eq!(significant(-3.0, 2), "−3.0");
        assert_eq!(significant(0.0, 4), "0");
        // 9.996 with three digits is 10.0, not 10.00.
        assert_eq!(significant(9.996, 3), "10.0");
        assert_eq!(significant(1.5e-7, 3), "1.50 × 10⁻⁷");
        assert_eq!(significant(-2.0e20, 2), "−2.0 × 10²⁰");
        assert_eq!(significant(f64::NAN, 3), "–");
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(trimmed(1000.0, 6), "1000");
        assert_eq!(trimmed(0.5, 6), "0.5");
        assert_eq!(trimmed(2e-9, 3), "2.00 × 10⁻⁹");
    }

    #[test]
    fn mean_has_the_digits_of_its_interval() {
        let shown = |mean, half| {
            let (mean, half) = mean_and_interval(mean, half);
            format!("{mean} ± {}", half.unwrap_or_else(|| "?".to_owned()))
        };
        assert_eq!(shown(776.5314, Some(0.2345)), "776.53 ± 0.23");
        assert_eq!(shown(776.5314, Some(23.45)), "777 ± 23");
        assert_eq!(shown(123_456.0, Some(2345.0)), "123\u{202f}456 ± 2345");
        // The two significant digits of 0.0996 are 0.10.
        assert_eq!(shown(5.0, Some(0.0996)), "5.00 ± 0.10");
        assert_eq!(shown(5.0, Some(0.0)), "5 ± 0");
        assert_eq!(shown(5.25, None), "5.2500 ± ?");
        assert_eq!(shown(6499.0, None), "6499 ± ?");
        // The mean has at most five digits; the interval is then smaller than the last digit.
        assert_eq!(shown(1.0, Some(1e-9)), "1.0000 ± < 0.0001");
        assert_eq!(shown(0.0, Some(0.012)), "0.000 ± 0.012");
        assert_eq!(shown(1e-20, Some(1e-22)), "1.000 × 10⁻²⁰ ± 1.0 × 10⁻²²");
    }

    #[test]
    fn signed_percent_has_sign_and_fixed_precision() {
        assert_eq!(signed_percent(0.001_23), "+0.12 %");
        assert_eq!(signed_percent(-0.5), "−50.0 %");
        assert_eq!(signed_percent(0.0), "0 %");
        assert_eq!(signed_percent(-1e-9), "≈ 0 %");
        assert_eq!(signed_percent(0.0999), "+9.99 %");
        assert_eq!(signed_percent(12.0), "+1200 %");
        assert_eq!(signed_percent(f64::INFINITY), "–");
    }

    #[test]
    fn align_pads_numbers_to_the_decimal_point() {
        let mut column = vec!["776.5".to_owned(), "41.3737".to_owned(), "12".to_owned(), "–".to_owned()];
        align(&mut column);
        assert_eq!(column[0], "776.5\u{2007}\u{2007}\u{2007}");
        assert_eq!(column[1], "41.3737");
        assert_eq!(column[2], "12\u{2008}\u{2007}\u{2007}\u{2007}\u{2007}");
        assert_eq!(column[3], "–");
    }
}
