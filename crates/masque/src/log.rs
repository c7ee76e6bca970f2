//! Log events of a proxy, one per line. The caller determines where the lines are written.

use std::fmt;
use std::net::SocketAddr;

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

impl fmt::Display for Event<'_> {
    /// Formats the event as `event=NAME key=value ...`. Text that a peer chose is quoted and escaped.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::ConnectionOpened { client } => write!(formatter, "event=connection-opened client={client}"),
            Event::ConnectionClosed { client, reason } => {
                write!(formatter, "event=connection-closed client={client} reason={reason:?}")
            }
            Event::RequestRejected { client, status, target, reason } => {
                write!(formatter, "event=refused client={client} status={status} target={target:?} reason={reason:?}")
            }
            Event::TunnelOpened { client, target } => {
                write!(formatter, "event=tunnel-opened client={client} target={target:?}")
            }
            Event::TunnelClosure { client, target, reason } => {
                write!(formatter, "event=tunnel-closed client={client} target={target:?} reason={reason:?}")
            }
        }
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
}
