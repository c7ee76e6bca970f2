//! Formats quantities for people, with few digits and a unit. Records contain the exact values in their columns.

use fullpipe_units::words::format_quantity;
use fullpipe_units::{Duration, Instant};

/// Formats a number of bytes: "1500 bytes", "1.448 MB".
pub(crate) fn bytes(count: u64) -> String {
    if count < 10_000 {
        return if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") };
    }
    format_quantity(count as f64, "bytes")
}

/// Formats an instant in seconds, to the millisecond: "0.512 s", "60 s".
pub(crate) fn instant(at: Instant) -> String {
    let seconds = format!("{:.3}", at.as_nanos() as f64 / 1e9);
    format!("{} s", seconds.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a duration as in scenario files, rounded if the exact value has many digits: "120s", "1.235 s".
pub(crate) fn duration(duration: Duration) -> String {
    let exact = duration.to_string();
    if exact.len() <= 7 {
        return exact;
    }
    format_quantity(duration.as_nanos() as f64 / 1e9, "s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_few_digits_and_a_unit() {
        for (count, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (9_999, "9999 bytes"),
            (10_000, "10 kB"),
            (65_536, "65.54 kB"),
            (1_448_000, "1.448 MB"),
            (u64::MAX, "18446744 TB"),
        ] {
            assert_eq!(bytes(count), text);
        }
        for (nanoseconds, text) in [
            (0, "0s"),
            (7, "7ns"),
            (219_797_607, "219.8 ms"),
            (12_345_678, "12.35 ms"),
            (120_000_000_000, "120s"),
            (1_234_567_891, "1.235 s"),
        ] {
            assert_eq!(duration(Duration::from_nanos(nanoseconds)), text);
        }
        for (nanoseconds, text) in [(0, "0 s"), (512_345_678, "0.512 s"), (60_000_000_000, "60 s")] {
            assert_eq!(instant(Instant::ZERO.saturating_add(Duration::from_nanos(nanoseconds))), text);
        }
    }
}
