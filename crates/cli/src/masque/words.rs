//! Parses the values of options of the MASQUE and HTTP/3 programs.

use super::log::LogFormat;
use fullpipe::scenario::description;
use fullpipe::scenario::schema::{Choice, quantity};
use fullpipe_masque::configuration::{MIN_MTU, Mode, Scheduler};
use fullpipe_masque::log::AccessLog;
use fullpipe_masque::policy::Rule;
use fullpipe_masque::queue::{DropPolicy, QueueLimit};
use fullpipe_masque::settings::{DROP_POLICIES, MODES, SCHEDULERS};
use fullpipe_sockets::programs::{HttpVersions, ModeChoice};
use std::time::Duration;

/// Parses a queue limit: `250kB`, `100ms` or `none`.
pub(super) fn queue_limit(text: &str) -> Result<QueueLimit, String> {
    if text == "none" {
        return Ok(QueueLimit::Unlimited);
    }
    let bytes = text.parse().map(description::QueueLimit::Bytes).ok();
    match bytes.map_or_else(|| quantity::parse_queue_limit(text), Ok) {
        Ok(description::QueueLimit::Bytes(bytes)) => Ok(QueueLimit::Bytes(bytes)),
        Ok(description::QueueLimit::Time(time)) => Ok(QueueLimit::Time(Duration::from_nanos(time.as_nanos()))),
        Ok(description::QueueLimit::Unlimited) => Ok(QueueLimit::Unlimited),
        _ => Err("expected bytes such as 250kB, a time such as 100ms, or none".into()),
    }
}

/// Parses a time: `120s`, `2min`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    match quantity::parse_duration(text) {
        Ok(time) if time.as_nanos() > 0 => Ok(Duration::from_nanos(time.as_nanos())),
        _ => Err("expected a time such as 120s".into()),
    }
}

/// Like [`time`], but also zero.
pub(super) fn time_or_zero(text: &str) -> Result<Duration, String> {
    let time = quantity::parse_duration(text).map(|time| Duration::from_nanos(time.as_nanos()));
    time.map_err(|_| "expected a time such as 10s, or 0s".into())
}

/// Parses a bearer token: it is not empty and can be sent in a field value.
pub(super) fn secret(text: &str) -> Result<String, String> {
    match text {
        "" => Err("it is empty; expected a secret".into()),
        _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err("expected ASCII characters without spaces".into())
        }
        _ => Ok(text.to_owned()),
    }
}

/// Parses a number from 1.
pub(super) fn count(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "expected a number from 1".into())
}

/// Parses a rate: `10Mbit/s`. Returns bytes per second.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    let bytes = quantity::parse_rate(text).ok().map(|rate| rate.bits_per_second() / 8);
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "expected a rate such as 10Mbit/s, from 8bit/s".into())
}

/// Parses a number of bytes: `10GB` or `65536`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let bytes = text.parse().map_or_else(|_| quantity::parse_size(text), Ok);
    bytes.ok().filter(|bytes| *bytes > 0).ok_or_else(|| "expected bytes such as 10GB, from 1".into())
}

/// Parses a size: `4MiB`, `400kB` or `65536`. It is at least the size of a packet.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let bytes = text.parse().map_or_else(|_| quantity::parse_size(text), Ok);
    let size = bytes.ok().filter(|bytes| (u64::from(MIN_MTU)..=1 << 30).contains(bytes));
    size.ok_or_else(|| format!("expected bytes such as 400kB, from {MIN_MTU} to 1GiB"))
}

/// Like [`size`], for a flow control window.
pub(super) fn window(text: &str) -> Result<u32, String> {
    size(text).and_then(|bytes| u32::try_from(bytes).map_err(|error| error.to_string()))
}

/// Parses one of several names, with the spelling of scenarios.
fn chosen<T: Copy>(text: &str, choices: &[(Choice, T)]) -> Result<T, String> {
    let names: Vec<&str> = choices.iter().map(|(choice, _)| choice.name).collect();
    let found = choices.iter().find(|(choice, _)| choice.name == text);
    found.map(|(_, value)| *value).ok_or_else(|| format!("expected {}", names.join(" or ")))
}

/// Parses `newest` or `oldest`.
pub(super) fn drop_policy(text: &str) -> Result<DropPolicy, String> {
    chosen(text, &DROP_POLICIES)
}

/// Parses `round-robin`, `fifo` or `request-order`.
pub(super) fn scheduler(text: &str) -> Result<Scheduler, String> {
    chosen(text, &SCHEDULERS)
}

/// Parses a rule of the target policy.
pub(super) fn rule(text: &str) -> Result<Rule, String> {
    text.parse().map_err(|error: fullpipe_masque::policy::RuleError| error.to_string())
}

/// Parses `none`, `client`, `target` or `both`.
pub(super) fn access_log(text: &str) -> Result<AccessLog, String> {
    match text {
        "none" => Ok(AccessLog::None),
        "client" => Ok(AccessLog::Client),
        "target" => Ok(AccessLog::Target),
        "both" => Ok(AccessLog::Both),
        _ => Err("expected none, client, target or both".into()),
    }
}

/// Parses `text` or `json`.
pub(super) fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("expected text or json".into()),
    }
}

/// Parses `3`, `2` or both.
pub(super) fn http_versions(text: &str) -> Result<HttpVersions, String> {
    match text {
        "3" => Ok(HttpVersions { http2: false, http3: true }),
        "2" => Ok(HttpVersions { http2: true, http3: false }),
        "3,2" | "2,3" => Ok(HttpVersions { http2: true, http3: true }),
        _ => Err("expected 3, 2 or 3,2".into()),
    }
}

/// Parses `datagram`, `stream` or `auto`.
pub(super) fn mode(text: &str) -> Result<ModeChoice, String> {
    if text == "auto" {
        return Ok(ModeChoice::Auto);
    }
    chosen(text, &MODES).map(ModeChoice::Fixed).map_err(|expected| format!("{expected} or auto"))
}

/// The name of a mode in scenarios.
pub(super) fn mode_name(mode: Mode) -> &'static str {
    MODES.iter().find(|(_, other)| *other == mode).map_or("", |(choice, _)| choice.name)
}

/// Parses the size in bytes of a UDP payload that QUIC supports.
pub(super) fn mtu(text: &str) -> Result<u16, String> {
    let expected = || format!("expected {MIN_MTU} to 65527");
    text.parse().ok().filter(|mtu| (MIN_MTU..=65_527).contains(mtu)).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_limit_is_bytes_a_time_or_none() {
        assert_eq!(queue_limit("none"), Ok(QueueLimit::Unlimited));
        assert_eq!(queue_limit("250000"), Ok(QueueLimit::Bytes(250_000)));
        assert_eq!(queue_limit("250kB"), Ok(QueueLimit::Bytes(250_000)));
        assert_eq!(queue_limit("100ms"), Ok(QueueLimit::Time(Duration::from_millis(100))));
        for bad in ["", "much", "100packets", "-1"] {
            assert!(queue_limit(bad).is_err(), "{bad}");
        }
        assert_eq!(time("2min"), Ok(Duration::from_secs(120)));
        assert!(time("0s").is_err());
        assert_eq!((size("400kB"), size("65536"), window("2MiB")), (Ok(400_000), Ok(65_536), Ok(2 << 20)));
        assert!(size("1199").is_err() && size("2GiB").is_err() && window("much").is_err());
        assert_eq!((count("1"), rate("8Mbit/s"), bytes("10kB"), bytes("7")), (Ok(1), Ok(1_000_000), Ok(10_000), Ok(7)));
        for bad in ["", "0", "-1", "x"] {
            assert!(count(bad).is_err() && rate(bad).is_err() && bytes(bad).is_err(), "{bad}");
        }
        assert!(rate("7bit/s").is_err() && rate("1MB/s").is_err());
        assert_eq!((mtu("1200"), mtu("1199").is_err(), mtu("65528").is_err()), (Ok(1200), true, true));
    }
}
