//! Durations, rates, sizes and queue limits as text: a decimal number and a unit, "12.5us". The arithmetic is exact: a
//! text that is not a whole number of nanoseconds, bits per second or bytes is rejected, not rounded.

use crate::error::nearest_name;
use fullpipe_units::{BdpMultiple, Duration, LinkQueueLimit, QueueLimit, Rate};

/// The reason why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError {
    /// The reason, such as "it has no unit". `None` if the text is not a number with a unit, or if the unit has more
    /// than 20 bytes.
    pub reason: Option<String>,
    /// A valid text that was probably intended; `None` if there is none.
    pub suggestion: Option<String>,
}

impl QuantityError {
    fn because(reason: impl Into<String>) -> Self {
        QuantityError { reason: Some(reason.into()), suggestion: None }
    }
}

type Units = &'static [(&'static str, u64)];

/// Units of duration, in nanoseconds.
const DURATIONS: Units = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("µs", 1_000),
    ("μs", 1_000),
];

/// Units of rate, in bits per second.
const RATES: Units = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
    ("bps", 1),
    ("kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("Tbps", 1_000_000_000_000),
];

/// Units of size, in bytes: decimal prefixes, then binary ones.
const SIZES: Units = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

const PACKETS: Units = &[("packets", 1), ("packet", 1)];

/// Units of multiples of a bandwidth-delay product, in millionths.
const BDP: Units = &[("BDP", 1_000_000)];

/// Splits a text into its number and its unit: "-1.5 ms" gives ("-1.5", "ms").
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-' || c == '+')).unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// The reason for a number with too many decimals. [`parse`] adds the unit.
const NOT_WHOLE: &str = "it is not a multiple of the smallest unit";

/// Returns the exact product of `number` and `scale`.
fn scaled(number: &str, scale: u64) -> Result<u64, QuantityError> {
    if number.starts_with('-') {
        return Err(QuantityError::because("it is negative"));
    }
    let number = number.strip_prefix('+').unwrap_or(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits_only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits_only(whole) || !digits_only(fraction) {
        return Err(QuantityError { reason: None, suggestion: None });
    }
    let whole = whole.trim_start_matches('0');
    if whole.len() > 20 {
        return Err(QuantityError::because("it is too large"));
    }
    if fraction.len() > 15 {
        return Err(QuantityError::because("it has more than 15 decimal places"));
    }
    let mut value: u128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        value = value * 10 + u128::from(digit - b'0');
    }
    // At most 35 digits fit into 128 bits. Their product with the scale may not, so it is checked.
    let product = value.checked_mul(u128::from(scale)).ok_or_else(|| QuantityError::because("it is too large"))?;
    let divisor = 10u128.pow(fraction.len() as u32);
    if product % divisor != 0 {
        return Err(QuantityError::because(NOT_WHOLE));
    }
    u64::try_from(product / divisor).map_err(|_| QuantityError::because("it is too large"))
}

fn parse(text: &str, units: &[Units]) -> Result<(u64, usize), QuantityError> {
    let (number, unit) = split(text);
    for (family, list) in units.iter().enumerate() {
        if let Some((_, scale)) = list.iter().find(|(name, _)| *name == unit) {
            let smallest = match list[0].0 {
                "packets" => "1packet".to_string(),
                "BDP" => "0.000001BDP".to_string(),
                unit => format!("1{unit}"),
            };
            return match scaled(number, *scale) {
                Err(error) if error.reason.as_deref() == Some(NOT_WHOLE) => {
                    Err(QuantityError::because(format!("it is not a multiple of {smallest}")))
                }
                scaled => scaled.map(|value| (value, family)),
            };
        }
    }
    // The unit is wrong. If the number is valid, suggest it with the nearest unit.
    if scaled(number, 1_000_000_000).is_err() {
        return Err(QuantityError { reason: None, suggestion: None });
    }
    if unit.is_empty() {
        return Err(QuantityError::because("it has no unit"));
    }
    let reason = (unit.len() <= 20).then(|| format!("it has the unknown unit {unit}"));
    let suggestion = nearest_unit(number, unit, units).map(|unit| format!("\"{number}{unit}\""));
    Err(QuantityError { reason, suggestion })
}

/// Returns the unit that was probably intended, of those with which the number is valid: the same unit in another
/// letter case, otherwise a unit that begins with the text ("10M" is "10MB"), otherwise the nearest by spelling.
fn nearest_unit(number: &str, unit: &str, units: &[Units]) -> Option<&'static str> {
    let fitting = || units.iter().flat_map(|list| list.iter()).filter(|(_, scale)| scaled(number, *scale).is_ok());
    let names = || fitting().map(|(name, _)| *name);
    let lower = unit.to_lowercase();
    names()
        .find(|name| name.to_lowercase() == lower)
        .or_else(|| names().find(|name| name.starts_with(unit)))
        .or_else(|| names().find(|name| name.to_lowercase().starts_with(&lower)))
        // Any unit of one letter is a distance of one from any other letter.
        .or_else(|| if unit.chars().count() > 1 { nearest_name(unit, names()) } else { None })
}

/// Parses a duration such as "10ms".
///
/// # Errors
/// If the text is not a duration, or not a whole number of nanoseconds below 2^64.
pub fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    parse(text, &[DURATIONS]).map(|(nanoseconds, _)| Duration::from_nanos(nanoseconds))
}

/// Parses a rate such as "100Mbit/s".
///
/// # Errors
/// If the text is not a rate, or not a whole number of bits per second below 2^64.
pub fn parse_rate(text: &str) -> Result<Rate, QuantityError> {
    let (number, unit) = split(text);
    // The nearest unit to "MB/s" would be "Mb/s", an eighth of the intended rate, so there is no suggestion.
    if scaled(number, 1_000_000_000).is_ok()
        && ["B/s", "Bps", "byte/s", "bytes/s"].iter().any(|end| unit.ends_with(end))
    {
        return Err(QuantityError::because("it counts bytes per second instead of bits per second"));
    }
    parse(text, &[RATES]).map(|(bits, _)| Rate::from_bits_per_second(bits))
}

/// Parses a size such as "250kB" into bytes.
///
/// # Errors
/// If the text is not a size, or not a whole number of bytes below 2^64.
pub fn parse_size(text: &str) -> Result<u64, QuantityError> {
    parse(text, &[SIZES]).map(|(bytes, _)| bytes)
}

/// Parses a queue limit: "100packets", "250kB", "100ms" or "unlimited".
///
/// # Errors
/// If the text is not a queue limit.
pub fn parse_queue_limit(text: &str) -> Result<QueueLimit, QuantityError> {
    if text.trim() == "unlimited" {
        return Ok(QueueLimit::Unlimited);
    }
    let (value, family) = parse(text, &[PACKETS, SIZES, DURATIONS])?;
    fixed(value, family)
}

/// Returns a queue limit from its value and the index of its unit family: packets, sizes or durations.
fn fixed(value: u64, family: usize) -> Result<QueueLimit, QuantityError> {
    match family {
        0 => match u32::try_from(value) {
            Ok(packets) => Ok(QueueLimit::Packets(packets)),
            Err(_) => Err(QuantityError::because("it is too large")),
        },
        1 => Ok(QueueLimit::Bytes(value)),
        _ => Ok(QueueLimit::Time(Duration::from_nanos(value))),
    }
}

/// Parses the queue limit of a link: a queue limit, or a multiple of the bandwidth-delay product such as "2BDP".
///
/// # Errors
/// If the text is neither a queue limit nor such a multiple.
pub fn parse_link_queue_limit(text: &str) -> Result<LinkQueueLimit, QuantityError> {
    if text.trim() == "unlimited" {
        return Ok(LinkQueueLimit::Fixed(QueueLimit::Unlimited));
    }
    match parse(text, &[PACKETS, SIZES, DURATIONS, BDP])? {
        (millionths, 3) => Ok(LinkQueueLimit::Bdp(BdpMultiple::from_millionths(millionths))),
        (value, family) => fixed(value, family).map(LinkQueueLimit::Fixed),
    }
}

/// Returns the regular expression of a number with one of these units, or of one of these words, for JSON Schema.
fn pattern(units: &[Units], words: &[&str]) -> String {
    let units: Vec<&str> = units.iter().flat_map(|list| list.iter()).map(|(name, _)| *name).collect();
    let words: String = words.iter().map(|word| format!("|{word}")).collect();
    format!(r"^\s*(\+?[0-9]+(\.[0-9]*)?\s*({}){words})\s*$", units.join("|"))
}

/// Returns the pattern of texts that [`parse_duration`] accepts, without its bounds.
pub(crate) fn duration_pattern() -> String {
    pattern(&[DURATIONS], &[])
}

/// Returns the pattern of texts that [`parse_rate`] accepts, without its bounds.
pub(crate) fn rate_pattern() -> String {
    pattern(&[RATES], &[])
}

/// Returns the pattern of texts that [`parse_size`] accepts, without its bounds.
pub(crate) fn size_pattern() -> String {
    pattern(&[SIZES], &[])
}

/// Returns the pattern of texts that [`parse_queue_limit`] accepts, without its bounds.
pub(crate) fn queue_limit_pattern() -> String {
    pattern(&[PACKETS, SIZES, DURATIONS], &["unlimited"])
}

/// Returns the pattern of texts that [`parse_link_queue_limit`] accepts, without its bounds.
pub(crate) fn link_queue_limit_pattern() -> String {
    pattern(&[PACKETS, SIZES, DURATIONS, BDP], &["unlimited"])
}

/// Formats a size in the largest unit in which it is a whole number, decimal units first: "250kB", "64KiB", "1448B".
pub fn format_size(bytes: u64) -> String {
    if bytes > 0 {
        for (name, scale) in [&SIZES[1..5], &SIZES[5..]].iter().flat_map(|part| part.iter().rev()) {
            if bytes.is_multiple_of(*scale) {
                return format!("{}{name}", bytes / scale);
            }
        }
    }
    format!("{bytes}B")
}

/// Formats a size for a message without rounding: below 100 kB in bytes, otherwise in the largest decimal unit that the
/// size reaches. Examples: "65537B", "1.234567MB".
pub fn format_readable_size(bytes: u64) -> String {
    if bytes < 100_000 {
        return format!("{bytes}B");
    }
    let (name, scale) = SIZES[1..5].iter().rev().find(|(_, scale)| bytes >= *scale).unwrap_or(&SIZES[0]);
    let fraction = format!(".{:0width$}", bytes % scale, width = scale.ilog10() as usize);
    format!("{}{}{name}", bytes / scale, fraction.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a queue limit in the syntax of [`parse_queue_limit`].
pub fn format_queue_limit(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(packets) => format!("{packets}packets"),
        QueueLimit::Bytes(bytes) => format_size(bytes),
        QueueLimit::Time(duration) => duration.to_string(),
        QueueLimit::Unlimited => "unlimited".to_string(),
    }
}

/// Formats the queue limit of a link in the syntax of [`parse_link_queue_limit`].
pub fn format_link_queue_limit(limit: LinkQueueLimit) -> String {
    match limit {
        LinkQueueLimit::Fixed(limit) => format_queue_limit(limit),
        LinkQueueLimit::Bdp(multiple) => {
            let (whole, fraction) = (multiple.millionths() / 1_000_000, multiple.millionths() % 1_000_000);
            let digits = format!(".{fraction:06}");
            format!("{whole}{}BDP", digits.trim_end_matches('0').trim_end_matches('.'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reason(error: QuantityError) -> String {
        error.reason.unwrap_or_default()
    }

    #[test]
    fn durations_parse_exactly_or_are_rejected_with_a_reason() {
        for (text, nanoseconds) in [
            ("10ms", 10_000_000),
            ("2us", 2_000),
            ("2µs", 2_000),
            ("1.5s", 1_500_000_000),
            ("12.5us", 12_500),
            ("0.5us", 500),
            ("7ns", 7),
            ("0s", 0),
            ("+1 s", 1_000_000_000),
            ("1.50ms", 1_500_000),
            ("2min", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("18446744073709551615ns", u64::MAX),
            ("00000000000000000000000000000001ns", 1),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
        assert_eq!(reason(parse_duration("-5ms").unwrap_err()), "it is negative");
        assert_eq!(reason(parse_duration("5").unwrap_err()), "it has no unit");
        assert_eq!(reason(parse_duration("0.5ns").unwrap_err()), "it is not a multiple of 1ns");
        assert_eq!(reason(parse_duration("18446744073709551616ns").unwrap_err()), "it is too large");
        assert_eq!(reason(parse_duration("99999999999999999999h").unwrap_err()), "it is too large");
        assert_eq!(reason(parse_duration("999999999999999999999h").unwrap_err()), "it is too large");
        assert_eq!(parse_duration("5sec").unwrap_err().suggestion, None);
        assert_eq!(parse_duration("5mss").unwrap_err().suggestion, Some("\"5ms\"".into()));
        assert_eq!(parse_duration("5MS").unwrap_err().suggestion, Some("\"5ms\"".into()));
        for text in ["", "s", "ms10", "1..5s", ".s", "1.2.3s", "1e3s", "--5s", "infs", "nans", "٣s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_parse_in_bits_per_second_only() {
        for (text, bits) in [
            ("100Mbit/s", 100_000_000),
            ("100Mbps", 100_000_000),
            ("10kbit/s", 10_000),
            ("1Gbit/s", 1_000_000_000),
            ("1.544Mbit/s", 1_544_000),
            ("64 kbps", 64_000),
            ("9600bit/s", 9_600),
            ("2Tbit/s", 2_000_000_000_000),
        ] {
            assert_eq!(parse_rate(text), Ok(Rate::from_bits_per_second(bits)), "{text}");
        }
        assert_eq!(parse_rate("10 Mbps/s").unwrap_err().suggestion, Some("\"10Mbit/s\"".into()));
        assert_eq!(parse_rate("10mbit/s").unwrap_err().suggestion, Some("\"10Mbit/s\"".into()));
        assert_eq!(reason(parse_rate("0.5bit/s").unwrap_err()), "it is not a multiple of 1bit/s");
        // Bytes per second have no suggestion, because all units of rate count bits.
        for text in ["10MB/s", "10MBps", "1B/s"] {
            assert_eq!(
                parse_rate(text),
                Err(QuantityError::because("it counts bytes per second instead of bits per second")),
                "{text}"
            );
        }
    }

    #[test]
    fn sizes_parse_and_format_in_decimal_and_binary_units() {
        for (text, bytes) in [("250kB", 250_000), ("1500B", 1500), ("64KiB", 65_536), ("5MB", 5_000_000)] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
            assert_eq!(format_size(bytes), text);
        }
        assert_eq!(parse_size("1.5kB"), Ok(1500));
        assert_eq!(parse_size("32MiB"), Ok(33_554_432));
        assert_eq!(format_size(0), "0B");
        for (bytes, text) in [(65_537, "65537B"), (250_000, "250kB"), (1_234_567, "1.234567MB"), (5_000_000, "5MB")] {
            assert_eq!(format_readable_size(bytes), text);
            assert_eq!(parse_size(text), Ok(bytes));
        }
        assert_eq!(parse_size("64KB").unwrap_err().suggestion, Some("\"64kB\"".into()));
        assert!(parse_size("10kbit").is_err());
    }

    #[test]
    fn queue_limits_parse_in_packets_sizes_and_durations() {
        for (text, limit) in [
            ("100packets", QueueLimit::Packets(100)),
            ("250kB", QueueLimit::Bytes(250_000)),
            ("100ms", QueueLimit::Time(Duration::from_millis(100))),
            ("unlimited", QueueLimit::Unlimited),
        ] {
            assert_eq!(parse_queue_limit(text), Ok(limit), "{text}");
            assert_eq!(format_queue_limit(limit), text);
        }
        assert_eq!(parse_queue_limit("1packet"), Ok(QueueLimit::Packets(1)));
        assert_eq!(parse_queue_limit("100 pakets").unwrap_err().suggestion, Some("\"100packets\"".into()));
        assert_eq!(reason(parse_queue_limit("4294967296packets").unwrap_err()), "it is too large");
    }

    #[test]
    fn bandwidth_delay_products_are_limits_of_links_only() {
        for (text, millionths) in
            [("2BDP", 2_000_000), ("0.25 BDP", 250_000), ("64BDP", 64_000_000), ("0.000001BDP", 1)]
        {
            let limit = LinkQueueLimit::Bdp(BdpMultiple::from_millionths(millionths));
            assert_eq!(parse_link_queue_limit(text), Ok(limit), "{text}");
            assert_eq!(format_link_queue_limit(limit), text.replace(' ', ""));
            assert!(parse_queue_limit(text).is_err(), "{text}");
        }
        assert_eq!(reason(parse_link_queue_limit("0.0000001BDP").unwrap_err()), "it is not a multiple of 0.000001BDP");
        assert_eq!(parse_link_queue_limit("2bdp").unwrap_err().suggestion, Some("\"2BDP\"".into()));
        assert_eq!(parse_link_queue_limit("50kB"), Ok(LinkQueueLimit::Fixed(QueueLimit::Bytes(50_000))));
    }

    proptest! {
        #[test]
        fn formatted_quantities_parse_to_the_same_value(value in any::<u64>(), shift in 0u32..64) {
            let value = value >> shift;
            prop_assert_eq!(parse_size(&format_size(value)), Ok(value));
            prop_assert_eq!(parse_duration(&Duration::from_nanos(value).to_string()), Ok(Duration::from_nanos(value)));
            let rate = Rate::from_bits_per_second(value);
            prop_assert_eq!(parse_rate(&rate.to_string()), Ok(rate));
        }

        /// Compares with integer arithmetic: a fraction over a power of ten, times the unit.
        #[test]
        fn a_fraction_is_exact_or_rejected(
            whole in 0..1_000_000_u64,
            fraction in "[0-9]{0,12}",
            unit in prop::sample::select(vec![("ns", 1_u128), ("us", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)]),
        ) {
            let (name, scale) = unit;
            let point = if fraction.is_empty() { "" } else { "." };
            let text = format!("{whole}{point}{fraction}{name}");
            let tens = 10_u128.pow(fraction.len() as u32);
            let numerator = (u128::from(whole) * tens + fraction.parse::<u128>().unwrap_or(0)) * scale;
            let expected = numerator.is_multiple_of(tens).then(|| Duration::from_nanos((numerator / tens) as u64));
            prop_assert_eq!(parse_duration(&text).ok(), expected, "{}", text);
        }

        /// Formats every text that parses, and parses the result again.
        #[test]
        fn parsed_quantities_round_trip(
            text in "\\PC*",
            number in "[-+]?[0-9]{0,22}([.][0-9]{0,4})?",
            unit in "(n|u|m|k|M|G|Ki)?(s|B|bit/s|bps|packets|h|BDP)?|unlimited",
        ) {
            for text in [text, number + &unit] {
                if let Ok(duration) = parse_duration(&text) {
                    prop_assert_eq!(parse_duration(&duration.to_string()), Ok(duration));
                }
                if let Ok(rate) = parse_rate(&text) {
                    prop_assert_eq!(parse_rate(&rate.to_string()), Ok(rate));
                }
                if let Ok(size) = parse_size(&text) {
                    prop_assert_eq!(parse_size(&format_size(size)), Ok(size));
                }
                if let Ok(limit) = parse_link_queue_limit(&text) {
                    prop_assert_eq!(parse_link_queue_limit(&format_link_queue_limit(limit)), Ok(limit));
                }
                if let Ok(limit) = parse_queue_limit(&text) {
                    prop_assert_eq!(parse_queue_limit(&format_queue_limit(limit)), Ok(limit));
                }
            }
        }
    }
}
