//! Log events of a proxy. Each event is a record of fields with names. The caller determines the form of the records and
//! where they are written.
//!
//! A record with the addresses of a client and of its target shows which client uses which target. [`AccessLog`] selects which
//! of the two addresses records contain.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A log event of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A connection was established.
    ConnectionOpened {
        /// Address of the client.
        client: SocketAddr,
    },
    /// A connection ended.
    ConnectionClosed {
        /// Address of the client.
        client: SocketAddr,
        /// The reason.
        reason: &'a str,
    },
    /// A request was rejected.
    RequestRejected {
        /// Address of the client.
        client: SocketAddr,
        /// Status code of the response; 0 if the stream was reset instead.
        status: u16,
        /// The requested target, as far as it could be parsed.
        target: &'a str,
        /// The reason.
        reason: &'a str,
    },
    /// A tunnel was opened.
    TunnelOpened {
        /// Address of the client.
        client: SocketAddr,
        /// The target.
        target: &'a str,
    },
    /// A tunnel ended.
    TunnelClosure {
        /// Address of the client.
        client: SocketAddr,
        /// The target.
        target: &'a str,
        /// The reason.
        reason: &'a str,
    },
}

/// Which addresses the records of a log contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// Neither client nor target.
    None,
    /// The client: its IPv4 network of 24 bits or IPv6 network of 56 bits.
    #[default]
    Client,
    /// The target.
    Target,
    /// The client's network and the target.
    Both,
}

/// Value of a field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// A number.
    Number(u64),
    /// A text without spaces and quotes.
    Word(String),
    /// A text that a peer may have chosen.
    Text(&'a str),
}

impl<'a> Event<'a> {
    /// Returns name and value of the fields that a log of this kind contains.
    #[must_use]
    pub fn fields(&self, access: AccessLog) -> Vec<(&'static str, FieldValue<'a>)> {
        let shows_client = matches!(access, AccessLog::Client | AccessLog::Both);
        let shows_target = matches!(access, AccessLog::Target | AccessLog::Both);
        self.all_fields(shows_client.then_some(network), shows_target)
    }

    fn all_fields(
        &self,
        client_text: Option<fn(SocketAddr) -> String>,
        shows_target: bool,
    ) -> Vec<(&'static str, FieldValue<'a>)> {
        let (name, client, status, target, reason) = match *self {
            Event::ConnectionOpened { client } => ("connection-opened", client, None, None, None),
            Event::ConnectionClosed { client, reason } => ("connection-closed", client, None, None, Some(reason)),
            Event::RequestRejected { client, status, target, reason } => {
                ("refused", client, Some(status), Some(target), Some(reason))
            }
            Event::TunnelOpened { client, target } => ("tunnel-opened", client, None, Some(target), None),
            Event::TunnelClosure { client, target, reason } => {
                ("tunnel-closed", client, None, Some(target), Some(reason))
            }
        };
        let mut fields = vec![("event", FieldValue::Word(name.into()))];
        fields.extend(client_text.map(|text| ("client", FieldValue::Word(text(client)))));
        fields.extend(status.map(|status| ("status", FieldValue::Number(status.into()))));
        fields.extend(target.filter(|_| shows_target).map(|target| ("target", FieldValue::Text(target))));
        fields.extend(reason.map(|reason| ("reason", FieldValue::Text(reason))));
        fields
    }
}

/// Returns the network of an address: 24 bits of IPv4, 56 bits of IPv6.
fn network(address: SocketAddr) -> String {
    match address.ip().to_canonical() {
        IpAddr::V4(address) => format!("{}/24", Ipv4Addr::from_bits(address.to_bits() & !0xff)),
        IpAddr::V6(address) => format!("{}/56", Ipv6Addr::from_bits(address.to_bits() >> 72 << 72)),
    }
}

/// Formats fields as `name=value ...`. Text that a peer may have chosen is quoted and escaped.
#[must_use]
pub fn format_fields(fields: &[(&'static str, FieldValue<'_>)]) -> String {
    let field = |(name, value): &(&str, FieldValue<'_>)| match value {
        FieldValue::Number(number) => format!("{name}={number}"),
        FieldValue::Word(word) => format!("{name}={word}"),
        FieldValue::Text(text) => format!("{name}={text:?}"),
    };
    fields.iter().map(field).collect::<Vec<_>>().join(" ")
}

impl fmt::Display for Event<'_> {
    /// Formats the event with all fields, and with the whole address of the client.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: fn(SocketAddr) -> String = |client| client.to_string();
        formatter.write_str(&format_fields(&self.all_fields(Some(text), true)))
    }
}

/// A receiver of log events.
pub trait EventLogger: Send + Sync + 'static {
    /// Handles one event.
    fn log_event(&self, event: &Event<'_>);
}

/// Discards all events.
impl EventLogger for () {
    fn log_event(&self, _: &Event<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_from_a_peer_are_escaped() {
        let client = "192.0.2.1:5".parse().unwrap();
        let event = Event::RequestRejected { client, status: 400, target: "a\nevent=x \"", reason: "r" };
        assert_eq!(
            event.to_string(),
            r#"event=refused client=192.0.2.1:5 status=400 target="a\nevent=x \"" reason="r""#
        );
    }

    #[test]
    fn records_contain_the_selected_addresses_and_only_the_network_of_the_client() {
        let target = "www.example.org:443";
        for (client, network) in
            [("192.0.2.77:5000", "192.0.2.0/24"), ("[2001:db8:1:2fff::1]:5000", "2001:db8:1:2f00::/56")]
        {
            let client: SocketAddr = client.parse().unwrap();
            let reason = "r";
            for event in [
                Event::ConnectionOpened { client },
                Event::ConnectionClosed { client, reason },
                Event::RequestRejected { client, status: 403, target, reason },
                Event::TunnelOpened { client, target },
                Event::TunnelClosure { client, target, reason },
            ] {
                let has_target = !matches!(event, Event::ConnectionOpened { .. } | Event::ConnectionClosed { .. });
                for (access, shows_client, shows_target) in [
                    (AccessLog::None, false, false),
                    (AccessLog::Client, true, false),
                    (AccessLog::Target, false, true),
                    (AccessLog::Both, true, true),
                ] {
                    let text = format_fields(&event.fields(access));
                    assert_eq!(text.contains(&format!("client={network}")), shows_client, "{text}");
                    assert_eq!(text.contains(target), shows_target && has_target, "{text}");
                    assert!(!text.contains(&client.ip().to_string()) && !text.contains("5000"), "{text}");
                }
            }
        }
    }
}
