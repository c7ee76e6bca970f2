//! Parses times, rates and counts in the syntax of the simulator's options.

/// Units of time, in nanoseconds.
const TIMES: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    // The default unit is the second.
    ("", 1_000_000_000),
];

/// Units of rates, in bits per second. A capital B means bytes.
const RATES: [(&str, u64); 20] = [
    ("", 1),
    ("bps", 1),
    ("b/s", 1),
    ("kbps", 1_000),
    ("Kbps", 1_000),
    ("kb/s", 1_000),
    ("Kb/s", 1_000),
    ("Mbps", 1_000_000),
    ("Mb/s", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("Gb/s", 1_000_000_000),
    ("Bps", 8),
    ("B/s", 8),
    ("kBps", 8_000),
    ("KBps", 8_000),
    ("kB/s", 8_000),
    ("MBps", 8_000_000),
    ("MB/s", 8_000_000),
    ("GBps", 8_000_000_000),
    ("GB/s", 8_000_000_000),
];

/// Returns a decimal number with a unit, as an integer multiple of the smallest unit.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && decimals.is_empty() || decimals.len() > 18 || decimals.contains('.') {
        return None;
    }
    let digits = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<u128>().ok() };
    let parts = 10_u128.pow(decimals.len() as u32);
    let all = digits(whole)?.checked_mul(parts)?.checked_add(digits(decimals)?)?.checked_mul(u128::from(*scale))?;
    u64::try_from(all / parts).ok().filter(|_| all.is_multiple_of(parts))
}

/// The longest time: the maximum delay in the scenario language.
const LONGEST: u64 = 3_600_000_000_000;

pub(super) fn nanoseconds(text: &str) -> Result<u64, String> {
    let time = scaled(text, &TIMES).filter(|time| *time <= LONGEST);
    time.ok_or_else(|| "a time of at most an hour in ns, us, ms, s, min or h, such as 15ms".into())
}

/// Returns a time that is greater than zero.
pub(super) fn some_time(text: &str) -> Result<u64, String> {
    match nanoseconds(text)? {
        0 => Err("a time above zero".into()),
        time => Ok(time),
    }
}

pub(super) fn bits_per_second(text: &str) -> Result<u64, String> {
    let rate = scaled(text, &RATES).filter(|rate| *rate <= 1_000_000_000_000);
    rate.ok_or_else(|| "a rate of at most 1000Gbps in bps, kbps, Mbps or Gbps, such as 10Mbps".into())
}

/// The maximum number of packets. The limit of the scenario language is slightly higher.
const MOST: u64 = 4_000_000_000;

pub(super) fn count(text: &str) -> Result<u64, String> {
    let number = Some(text).filter(|text| text.bytes().all(|digit| digit.is_ascii_digit()));
    let number = number.and_then(|text| text.parse().ok()).filter(|number| *number <= MOST);
    number.ok_or_else(|| format!("a whole number from 0 to {MOST}"))
}

pub(super) fn positive(text: &str) -> Result<u64, String> {
    match count(text) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("a whole number from 1 to {MOST}")),
    }
}

pub(super) fn per_cent(text: &str) -> Result<u64, String> {
    count(text).ok().filter(|share| *share <= 100).ok_or_else(|| "a whole number from 0 to 100, in per cent".into())
}

/// Numbers of packets from 1, separated by commas.
pub(super) fn counts(text: &str) -> Result<Vec<u64>, String> {
    let numbers = text.split(',').map(str::trim).filter(|number| !number.is_empty());
    numbers.map(|number| positive(number).map_err(|_| "numbers of packets from 1, such as 1,3,4".into())).collect()
}

fn text(value: u64, units: &[(&str, u64)]) -> String {
    let unit = units.iter().find(|(_, scale)| value.is_multiple_of(*scale));
    let (unit, scale) = unit.copied().unwrap_or(("", 1));
    format!("{}{unit}", value / scale)
}

/// Formats a time in the syntax of the scenario language.
pub(super) fn time_text(nanoseconds: u64) -> String {
    text(nanoseconds, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
}

/// Formats a rate in the syntax of the scenario language.
pub(super) fn rate_text(bits_per_second: u64) -> String {
    let units = [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)];
    text(bits_per_second, &units)
}
