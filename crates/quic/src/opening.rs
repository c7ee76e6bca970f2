//! The handshake (RFC 9000 section 7, RFC 9001 section 4): flights of the right length in CRYPTO frames, keys that come
//! with them, addresses that are believed once they are proven.
//!
//! **Model.** The client's ClientHello is its Initial flight. With all of it the server has the keys of its own flights:
//! ServerHello as Initial, the rest as Handshake, and may send 1-RTT data. With all of both the client is complete, answers
//! with its Finished, and sends 1-RTT data; the server is complete with that, confirms with HANDSHAKE_DONE, and reads 1-RTT
//! packets from then on. Initial keys go with the first Handshake packet sent (client) or received (server), Handshake keys with the
//! confirmation. With 0-RTT the client sends data beside its ClientHello, under the limits that it remembers.
//!
//! A server sends three times what it has received until the client's address is proven (section 8.1): by a Handshake packet, or
//! a token from Retry.

use crate::received::{Policy, Received};
use crate::space::Space;
use crate::stream::{Receiving, Sending};
use fullpipe_transport::Payload;
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::QuicPacketType;

/// CRYPTO bytes of a level that an end keeps (RFC 9000 section 7.5: at least 4096).
const CRYPTO_BYTES: u64 = 1 << 20;

/// When acknowledgements of the handshake are sent: at once (RFC 9000 section 13.2.1).
pub(crate) const AT_ONCE: Policy = Policy { every: 1, max_delay: Duration::ZERO, reordering: 1 };

/// A CRYPTO stream.
#[derive(Debug)]
pub(crate) struct Crypto {
    pub(crate) out: Sending,
    pub(crate) incoming: Receiving,
}

/// An encryption level: its packets, and its CRYPTO stream.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) space: Space,
    pub(crate) received: Received,
    /// The CRYPTO stream once it is used; that of data never is.
    crypto: Option<Box<Crypto>>,
    /// Packets to send whatever the window.
    pub(crate) probes: u8,
}

impl Layer {
    pub(crate) fn new() -> Layer {
        Layer { space: Space::new(), received: Received::new(), crypto: None, probes: 0 }
    }

    /// The CRYPTO stream.
    pub(crate) fn crypto(&mut self) -> &mut Crypto {
        self.crypto.get_or_insert_with(|| {
            let incoming = Receiving::new(CRYPTO_BYTES, Instant::ZERO);
            Box::new(Crypto { out: Sending::new(u64::MAX), incoming })
        })
    }

    /// Whether there is anything of the CRYPTO stream to send.
    pub(crate) fn has_crypto(&self) -> bool {
        self.crypto.as_ref().is_some_and(|crypto| crypto.out.has_any())
    }

    /// Messages of this length are to be sent, which are all of this level.
    pub(crate) fn write(&mut self, bytes: u64) {
        let out = &mut self.crypto().out;
        out.write(Payload::Length(bytes), None);
        out.finished = true;
    }
}

/// What ends with the handshake's confirmation.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) initial: Option<Layer>,
    pub(crate) handshake: Option<Layer>,
    /// Server: bytes that it may still send.
    pub(crate) credit: u64,
    /// Server: the client's address is proven. Client: the server is known to know (RFC 9002 section 6.2.2.1).
    pub(crate) validated: bool,
    /// 1-RTT packets may be sent.
    pub(crate) may_send_data: bool,
    /// 1-RTT packets can be read.
    pub(crate) may_read_data: bool,
    /// 0-RTT packets may be sent, or are read.
    pub(crate) zero_rtt: bool,
    /// Server: the first Initial was answered, or is to be.
    pub(crate) begun: bool,
    /// Token from a Retry packet.
    pub(crate) token: Option<u64>,
    /// Server: Retry is to be sent.
    pub(crate) retry_due: bool,
}

impl Opening {
    pub(crate) fn new() -> Opening {
        Opening {
            initial: Some(Layer::new()),
            handshake: None,
            credit: 0,
            validated: false,
            may_send_data: false,
            may_read_data: false,
            zero_rtt: false,
            begun: false,
            token: None,
            retry_due: false,
        }
    }

    /// As what kind of packets data may be sent now, if at all.
    pub(crate) fn sends_data(&self) -> Option<QuicPacketType> {
        match (self.may_send_data, self.zero_rtt) {
            (true, _) => Some(QuicPacketType::OneRtt),
            (false, true) => Some(QuicPacketType::ZeroRtt),
            _ => None,
        }
    }
}
