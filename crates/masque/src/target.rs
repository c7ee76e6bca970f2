//! The target of a CONNECT-UDP request (RFC 9298 section 2): a host (address or name) and a port, both parsed strictly.
//! An IPv6 address has no brackets and no zone. A name is a DNS name. Numeric forms that some resolvers accept as
//! addresses (`127.1`, `0x7f000001`, `2130706433`) are rejected.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Destination of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Address or name.
    pub host: Host,
    /// Port, which is not 0.
    pub port: u16,
}

/// Host of a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// An IP address, as written.
    Address(IpAddr),
    /// A name in lower case, without the trailing dot.
    Name(String),
}

/// Reason why a target is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// The host is empty.
    EmptyHost,
    /// The host is neither an address nor a name.
    InvalidHost,
    /// The host is an IPv6 address with a zone, which is valid on one machine only.
    ZoneId,
    /// The port is not a decimal number from 1 to 65535.
    InvalidPort,
}

impl fmt::Display for TargetError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            TargetError::EmptyHost => "the target has no host",
            TargetError::InvalidHost => "the target's host is neither an IP address nor a DNS name",
            TargetError::ZoneId => "the target's host has a zone identifier, which is valid on one machine only",
            TargetError::InvalidPort => "the target's port is invalid; expected an integer from 1 to 65535",
        })
    }
}

impl std::error::Error for TargetError {}

impl Target {
    /// Parses a host and a port that are already percent-decoded.
    ///
    /// # Errors
    /// If the host or the port is malformed.
    pub fn new(host: &str, port: &str) -> Result<Target, TargetError> {
        Ok(Target { host: Host::new(host)?, port: parse_port(port)? })
    }

    /// Parses `HOST:PORT` as a user writes it, with IPv6 addresses in brackets.
    ///
    /// # Errors
    /// If the host or the port is missing or malformed.
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let (host, port) = text.rsplit_once(':').ok_or(TargetError::InvalidPort)?;
        match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inner) => {
                let host = Host::new(inner)?;
                if !matches!(host, Host::Address(IpAddr::V6(_))) {
                    return Err(TargetError::InvalidHost);
                }
                Ok(Target { host, port: parse_port(port)? })
            }
            None if host.contains(':') => Err(TargetError::InvalidHost),
            None => Target::new(host, port),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]:{}", self.port),
            host => write!(formatter, "{host}:{}", self.port),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Address(address) => address.fmt(formatter),
            Host::Name(name) => name.fmt(formatter),
        }
    }
}

impl Host {
    /// Parses an address or a name.
    ///
    /// # Errors
    /// If the text is neither.
    pub fn new(text: &str) -> Result<Host, TargetError> {
        if text.is_empty() {
            return Err(TargetError::EmptyHost);
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Host::Address(address.into()));
        }
        if text.contains(':') {
            let zone = if text.contains('%') { TargetError::ZoneId } else { TargetError::InvalidHost };
            return text.parse::<Ipv6Addr>().map(|address| Host::Address(address.into())).map_err(|_| zone);
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_name = name.len() <= 253 && name.split('.').all(is_label) && !is_numeric(last);
        if is_name { Ok(Host::Name(name.to_ascii_lowercase())) } else { Err(TargetError::InvalidHost) }
    }
}

/// Whether this is a label of a host name: letters, digits and hyphens (RFC 1123 section 2.1). Underscores are also
/// accepted, because they are common.
fn is_label(label: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=63).contains(&label.len()) && label.bytes().all(good) && !label.starts_with('-') && !label.ends_with('-')
}

/// Whether some resolvers would parse a name with this last label as an address.
fn is_numeric(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    label.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Parses decimal digits without leading zeros, from 1 to 65535.
fn parse_port(text: &str) -> Result<u16, TargetError> {
    if text.is_empty() || text.len() > 5 || text.starts_with('0') || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(TargetError::InvalidPort);
    }
    text.parse().map_err(|_| TargetError::InvalidPort)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn port_other_than_a_plain_number_is_rejected() {
        for (text, port) in [("1", 1), ("443", 443), ("65535", 65535)] {
            assert_eq!(Target::new("a", text).unwrap().port, port);
        }
        for bad in ["", "0", "00", "+53", "-1", "99999", "65536", "0443", "4 43", "0x35", "53 ", "５３", "1e2"] {
            assert_eq!(Target::new("a", bad), Err(TargetError::InvalidPort), "{bad}");
        }
    }

    #[test]
    fn host_is_parsed_as_address_or_name_or_rejected() {
        assert_eq!(Host::new("192.0.2.1"), Ok(Host::Address(Ipv4Addr::new(192, 0, 2, 1).into())));
        assert_eq!(Host::new("2001:DB8::42"), Ok(Host::Address("2001:db8::42".parse().unwrap())));
        assert_eq!(Host::new("Example.COM."), Ok(Host::Name("example.com".into())));
        assert_eq!(Host::new("_dns.x-1.example"), Ok(Host::Name("_dns.x-1.example".into())));
        assert_eq!(Host::new("fe80::1%eth0"), Err(TargetError::ZoneId));
        assert_eq!(Host::new("fe80::1%25"), Err(TargetError::ZoneId));
        let long = "a".repeat(64);
        for bad in [
            "[2001:db8::42]",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.0.0.0x1",
            "1.2.3.4.5",
            "a..b",
            ".",
            "..",
            "-a",
            "a-",
            "a b",
            "a/b",
            "ü",
            "a\0",
            "a%2e",
            "1.2.3.256",
            ":",
            "1:2",
            long.as_str(),
        ] {
            assert_eq!(Host::new(bad), Err(TargetError::InvalidHost), "{bad}");
        }
        assert_eq!(Host::new(""), Err(TargetError::EmptyHost));
        let longest = [&long[..63], &long[..63], &long[..63], &long[..61]].join(".");
        assert!(Host::new(&longest).is_ok());
        assert_eq!(Host::new(&format!("{longest}a")), Err(TargetError::InvalidHost));
    }

    #[test]
    fn ipv6_address_with_port_needs_brackets() {
        for text in ["example.com:443", "192.0.2.1:53", "[2001:db8::1]:443"] {
            assert_eq!(Target::parse(text).unwrap().to_string(), text);
        }
        for bad in ["example.com", "2001:db8::1:443", "[192.0.2.1]:1", "[a]:1", "[::1]", ":1", "a:", "[fe80::1%1]:1"] {
            assert!(Target::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed_or_rejected(host in any::<String>(), port in any::<String>()) {
            let _ = Target::new(&host, &port);
            let _ = Target::parse(&host);
        }

        #[test]
        fn parsed_target_is_formatted_unchanged(text in "[a-z0-9.:\\[\\]%-]{0,20}:[0-9]{1,5}") {
            if let Ok(target) = Target::parse(&text) {
                prop_assert_eq!(Target::parse(&target.to_string()), Ok(target));
            }
        }
    }
}
