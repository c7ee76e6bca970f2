//! What a proxy tells about its work, line by line. Where the lines go is the caller's business.

use std::fmt;
use std::net::SocketAddr;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A connection was established.
    ConnectionOpened {
        /// Who.
        client: SocketAddr,
    },
    /// A connection ended.
    ConnectionClosed {
        /// Who.
        client: SocketAddr,
        /// Why.
        reason: &'a str,
    },
    /// A request was refused.
    Refused {
        /// Who.
        client: SocketAddr,
        /// The status code of the answer; 0 where the stream was reset instead.
        status: u16,
        /// What was asked for, as far as it could be read.
        target: &'a str,
        /// Why not.
        reason: &'a str,
    },
    /// A tunnel was opened.
    TunnelOpened {
        /// Who.
        client: SocketAddr,
        /// To whom.
        target: &'a str,
    },
    /// A tunnel ended.
    TunnelClosed {
        /// Who.
        client: SocketAddr,
        /// To whom.
        target: &'a str,
        /// Why.
        reason: &'a str,
    },
}

impl fmt::Display for Event<'_> {
    /// `event=NAME key=value ...`: what a peer chose stands in quotes, escaped.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::ConnectionOpened { client } => write!(formatter, "event=connection-opened client={client}"),
            Event::ConnectionClosed { client, reason } => {
                write!(formatter, "event=connection-closed client={client} reason={reason:?}")
            }
            Event::Refused { client, status, target, reason } => {
                write!(formatter, "event=refused client={client} status={status} target={target:?} reason={reason:?}")
            }
            Event::TunnelOpened { client, target } => {
                write!(formatter, "event=tunnel-opened client={client} target={target:?}")
            }
            Event::TunnelClosed { client, target, reason } => {
                write!(formatter, "event=tunnel-closed client={client} target={target:?} reason={reason:?}")
            }
        }
    }
}

/// Takes the lines.
pub trait Log: Send + Sync + 'static {
    /// One thing happened.
    fn event(&self, event: &Event<'_>);
}

/// Nobody listens.
impl Log for () {
    fn event(&self, _: &Event<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_cannot_write_lines_of_its_own() {
        let client = "192.0.2.1:5".parse().unwrap();
        let event = Event::Refused { client, status: 400, target: "a\nevent=x \"", reason: "r" };
        assert_eq!(
            event.to_string(),
            r#"event=refused client=192.0.2.1:5 status=400 target="a\nevent=x \"" reason="r""#
        );
    }
}
