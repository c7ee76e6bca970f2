//! Values that the real programs read as words.

use crate::exit::Failure;
use fullpipe::scenario::description;
use fullpipe::scenario::schema::quantity;
use fullpipe_masque::configuration::{MIN_MTU, MTU_FOR_INITIALS, Mode, Mtu, Tunnel};
use fullpipe_masque::policy::Rule;
use fullpipe_masque::queue::QueueLimit;
use fullpipe_sockets::programs;
use std::time::Duration;

/// `250kB`, `100ms` or `none`.
pub(super) fn queue_limit(text: &str) -> Result<QueueLimit, String> {
    if text == "none" {
        return Ok(QueueLimit::None);
    }
    let bytes = text.parse().map(description::QueueLimit::Bytes).ok();
    match bytes.map_or_else(|| quantity::parse_queue_limit(text), Ok) {
        Ok(description::QueueLimit::Bytes(bytes)) => Ok(QueueLimit::Bytes(bytes)),
        Ok(description::QueueLimit::Time(time)) => Ok(QueueLimit::Time(Duration::from_nanos(time.as_nanos()))),
        Ok(description::QueueLimit::Unlimited) => Ok(QueueLimit::None),
        _ => Err("expected bytes such as 250kB, a time such as 100ms, or none".into()),
    }
}

/// `120s`, `2min`.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    match quantity::parse_duration(text) {
        Ok(time) if time.as_nanos() > 0 => Ok(Duration::from_nanos(time.as_nanos())),
        _ => Err("expected a time such as 120s".into()),
    }
}

/// A rule of the target policy.
pub(super) fn rule(text: &str) -> Result<Rule, String> {
    text.parse().map_err(|error: fullpipe_masque::policy::BadRule| error.to_string())
}

/// `datagram` or `stream`.
pub(super) fn mode(text: &str) -> Result<Mode, String> {
    match text {
        "datagram" => Ok(Mode::Datagram),
        "stream" => Ok(Mode::Stream),
        _ => Err("expected datagram or stream".into()),
    }
}

/// Bytes of a UDP payload that QUIC works with.
pub(super) fn mtu(text: &str) -> Result<u16, String> {
    let expected = || format!("expected {MIN_MTU} to 65527");
    text.parse().ok().filter(|mtu| (MIN_MTU..=65_527).contains(mtu)).ok_or_else(expected)
}

/// The settings of a connection with what the user chose.
pub(super) fn tunnel(mtu: Option<u16>, congestion: Option<&str>, defaults: Tunnel) -> Result<Tunnel, Failure> {
    let congestion = congestion.map(programs::congestion).transpose().map_err(super::failure)?;
    Ok(Tunnel { mtu: mtu.map_or(defaults.mtu, Mtu::Fixed), congestion, ..defaults })
}

/// How long a connection between ends may be silent.
const SILENCE: Duration = Duration::from_secs(30);

/// The settings of a connection between ends. It begins with packets that every path carries, be it a tunnel (RFC 9000
/// section 14.1).
pub(super) fn end_to_end(mtu: Option<u16>, congestion: Option<&str>) -> Result<Tunnel, Failure> {
    tunnel(mtu, congestion, Tunnel { mtu: Mtu::Discover(MIN_MTU), connection_idle: SILENCE, ..Tunnel::default() })
}

/// Says what a small tunnel means.
pub(super) fn warn_of_mtu(mtu: Mtu) {
    if mtu.initial() < MTU_FOR_INITIALS {
        eprintln!(
            "note: a tunnel MTU of {} does not carry the 1200-byte packets with which QUIC connections begin; that \
             needs {MTU_FOR_INITIALS}",
            mtu.initial()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_limits_are_bytes_a_time_or_none() {
        assert_eq!(queue_limit("none"), Ok(QueueLimit::None));
        assert_eq!(queue_limit("250000"), Ok(QueueLimit::Bytes(250_000)));
        assert_eq!(queue_limit("250kB"), Ok(QueueLimit::Bytes(250_000)));
        assert_eq!(queue_limit("100ms"), Ok(QueueLimit::Time(Duration::from_millis(100))));
        for bad in ["", "much", "100packets", "-1"] {
            assert!(queue_limit(bad).is_err(), "{bad}");
        }
        assert_eq!(time("2min"), Ok(Duration::from_secs(120)));
        assert!(time("0s").is_err());
        assert_eq!((mtu("1200"), mtu("1199").is_err(), mtu("65528").is_err()), (Ok(1200), true, true));
    }
}
