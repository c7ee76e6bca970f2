//! The Proxy-Status field (RFC 9209): the machine-readable reason why a proxy rejected a request.

use crate::policy::PolicyRejection;
use std::fmt;
use std::io;
use std::net::IpAddr;

/// Name of the field.
pub const FIELD_NAME: &str = "proxy-status";

/// An error type of RFC 9209 section 2.3 with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyError {
    /// The name could not be resolved.
    Dns {
        /// Response code of the resolver, such as `NXDOMAIN`; `None` if it is not available.
        rcode: Option<&'static str>,
    },
    /// The resolver did not respond in time.
    DnsTimeout,
    /// The policy denies the target's address.
    DestinationIpProhibited,
    /// The policy denies the request for this target.
    RequestDenied,
    /// The proxy does not support the request.
    RequestError,
    /// The host reports that the target is unreachable.
    DestinationIpUnroutable,
    /// The target's host reports that no process listens on the port.
    ConnectionRefused,
    /// The target did not accept a connection in time.
    ConnectionTimeout,
    /// The proxy has reached a limit.
    ConnectionLimitReached,
    /// An internal error occurred in the proxy.
    Internal,
}

impl ProxyError {
    /// Returns the registered name of the error type.
    #[must_use]
    pub fn token(&self) -> &'static str {
        match self {
            ProxyError::Dns { .. } => "dns_error",
            ProxyError::DnsTimeout => "dns_timeout",
            ProxyError::DestinationIpProhibited => "destination_ip_prohibited",
            ProxyError::RequestDenied => "http_request_denied",
            ProxyError::RequestError => "http_request_error",
            ProxyError::DestinationIpUnroutable => "destination_ip_unroutable",
            ProxyError::ConnectionRefused => "connection_refused",
            ProxyError::ConnectionTimeout => "connection_timeout",
            ProxyError::ConnectionLimitReached => "connection_limit_reached",
            ProxyError::Internal => "proxy_internal_error",
        }
    }

    /// Returns the status code that RFC 9209 recommends for this error. It is 403 if the policy denies the target.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            ProxyError::RequestDenied | ProxyError::DestinationIpProhibited => 403,
            ProxyError::RequestError => 400,
            ProxyError::Dns { .. } | ProxyError::DestinationIpUnroutable | ProxyError::ConnectionRefused => 502,
            ProxyError::DnsTimeout | ProxyError::ConnectionTimeout => 504,
            ProxyError::ConnectionLimitReached => 503,
            ProxyError::Internal => 500,
        }
    }

    /// Returns the error for a name that could not be resolved.
    #[must_use]
    pub fn from_resolver(error: &io::Error) -> ProxyError {
        match error.kind() {
            io::ErrorKind::NotFound => ProxyError::Dns { rcode: Some("NXDOMAIN") },
            io::ErrorKind::TimedOut => ProxyError::DnsTimeout,
            _ => ProxyError::Dns { rcode: None },
        }
    }

    /// Returns the error for a socket to `peer` that could not be created.
    #[must_use]
    pub fn from_socket(error: &io::Error, peer: IpAddr) -> ProxyError {
        /// Linux, macOS and BSD: no file descriptors are left in the system, or in the process.
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        match error.kind() {
            _ if cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE)) => {
                ProxyError::ConnectionLimitReached
            }
            // No local port is left: bind, and connect of UDP and of TCP report it differently.
            io::ErrorKind::AddrInUse | io::ErrorKind::WouldBlock => ProxyError::ConnectionLimitReached,
            io::ErrorKind::AddrNotAvailable if peer.is_ipv4() => ProxyError::ConnectionLimitReached,
            // For IPv6, the host may as well have no address of this family.
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable | io::ErrorKind::AddrNotAvailable => {
                ProxyError::DestinationIpUnroutable
            }
            io::ErrorKind::ConnectionRefused => ProxyError::ConnectionRefused,
            io::ErrorKind::TimedOut => ProxyError::ConnectionTimeout,
            _ => ProxyError::Internal,
        }
    }
}

impl From<PolicyRejection> for ProxyError {
    fn from(refusal: PolicyRejection) -> Self {
        match refusal {
            PolicyRejection::NonPublicAddress(_) | PolicyRejection::OwnListener | PolicyRejection::OwnAddress => {
                ProxyError::DestinationIpProhibited
            }
            PolicyRejection::DeniedByRule | PolicyRejection::MailPort => ProxyError::RequestDenied,
        }
    }
}

/// A field value: name of the proxy, error and description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyStatus<'a> {
    /// Name of this proxy.
    pub proxy: &'a str,
    /// The error.
    pub error: &'a ProxyError,
    /// Description for human readers; may be empty.
    pub details: &'a str,
}

impl fmt::Display for ProxyStatus<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_string(formatter, self.proxy)?;
        write!(formatter, "; error={}", self.error.token())?;
        if let ProxyError::Dns { rcode: Some(rcode) } = self.error {
            formatter.write_str("; rcode=")?;
            write_string(formatter, rcode)?;
        }
        if !self.details.is_empty() {
            formatter.write_str("; details=")?;
            write_string(formatter, self.details)?;
        }
        Ok(())
    }
}

/// Writes a string of structured fields (RFC 8941 section 3.3.3): printable ASCII, with quotes and backslashes escaped.
/// Question marks replace all other characters.
fn write_string(formatter: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    formatter.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' | '\\' => write!(formatter, "\\{character}")?,
            ' '..='~' => write!(formatter, "{character}")?,
            _ => formatter.write_str("?")?,
        }
    }
    formatter.write_str("\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_structured_fields() {
        let error = ProxyError::Dns { rcode: Some("NXDOMAIN") };
        let status = ProxyStatus { proxy: "proxy.example", error: &error, details: "no \"x\" \\ é" };
        assert_eq!(
            status.to_string(),
            r#""proxy.example"; error=dns_error; rcode="NXDOMAIN"; details="no \"x\" \\ ?""#
        );
        let status = ProxyStatus { proxy: "p", error: &ProxyError::DestinationIpProhibited, details: "" };
        assert_eq!(status.to_string(), r#""p"; error=destination_ip_prohibited"#);
    }

    /// RFC 9209 section 2.3.12.
    #[test]
    fn exhausted_ports_and_file_descriptors_are_a_limit_of_the_proxy() {
        let peer = IpAddr::from([192, 0, 2, 1]);
        for kind in [io::ErrorKind::AddrInUse, io::ErrorKind::AddrNotAvailable, io::ErrorKind::WouldBlock] {
            assert_eq!(ProxyError::from_socket(&kind.into(), peer), ProxyError::ConnectionLimitReached, "{kind}");
        }
        for number in [23, 24].into_iter().filter(|_| cfg!(unix)) {
            let error = ProxyError::from_socket(&io::Error::from_raw_os_error(number), peer);
            assert_eq!((error.token(), error.status()), ("connection_limit_reached", 503), "{number}");
        }
        let v6 = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
        for (kind, peer) in [(io::ErrorKind::NetworkUnreachable, peer), (io::ErrorKind::AddrNotAvailable, v6)] {
            assert_eq!(ProxyError::from_socket(&kind.into(), peer), ProxyError::DestinationIpUnroutable, "{kind}");
        }
    }

    proptest! {
        #[test]
        fn every_value_is_a_header_value(proxy in any::<String>(), details in any::<String>()) {
            let status = ProxyStatus { proxy: &proxy, error: &ProxyError::Internal, details: &details };
            prop_assert!(http::HeaderValue::from_str(&status.to_string()).is_ok());
        }
    }
}
