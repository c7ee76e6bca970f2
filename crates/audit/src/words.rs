//! Exact quantities for messages, with a unit that suits the value. Failures often concern one nanosecond or one byte, so no digit is
//! rounded.

/// Formats a time in nanoseconds: `219.797607 ms`.
pub(crate) fn time(nanoseconds: u64) -> String {
    exact(u128::from(nanoseconds), &[("s", 9), ("ms", 6), ("us", 3), ("ns", 0)])
}

/// Formats a rate in bits per second: `100 Mbit/s`.
pub(crate) fn rate(bits_per_second: u64) -> String {
    exact(u128::from(bits_per_second), &[("Gbit/s", 9), ("Mbit/s", 6), ("kbit/s", 3), ("bit/s", 0)])
}

/// Formats a number of bytes: `1502 bytes`, and from 100 kB on `1.448 MB`.
pub(crate) fn bytes(number: impl Into<i128>) -> String {
    let number = number.into();
    let sign = if number < 0 { "-" } else { "" };
    match number.unsigned_abs() {
        1 => format!("{sign}1 byte"),
        small if small < 100_000 => format!("{sign}{small} bytes"),
        large => sign.to_owned() + &exact(large, &[("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)]),
    }
}

/// Formats a number of things with the singular `noun`: `1 frame`, `2 frames`.
pub(crate) fn count(number: impl Into<i128>, noun: &str) -> String {
    let number = number.into();
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Formats a value with the first unit that is not larger, or else the last. The units have powers of ten, in descending order.
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
    fn quantities_keep_every_digit() {
        let times = [0, 9, 120_169, 219_797_607, 60_000_000_000, 1_000_000_001].map(time);
        assert_eq!(times, ["0 ns", "9 ns", "120.169 us", "219.797607 ms", "60 s", "1.000000001 s"]);
        assert_eq!([64_000, 100_000_000, 1_000_000_001].map(rate), ["64 kbit/s", "100 Mbit/s", "1.000000001 Gbit/s"]);
        let sizes = [0_i64, 1, -1, 99_999, 100_000, -1_448_001].map(bytes);
        assert_eq!(sizes, ["0 bytes", "1 byte", "-1 byte", "99999 bytes", "100 kB", "-1.448001 MB"]);
        assert_eq!([0_i64, 1, 2].map(|number| count(number, "frame")), ["0 frames", "1 frame", "2 frames"]);
    }
}
