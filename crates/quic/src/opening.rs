//! The handshake (RFC 9000 section 7, RFC 9001 section 4): flights of the correct length in CRYPTO frames, the
//! availability of keys, and address validation.
//!
//! **Model.** The Initial flight of the client is its ClientHello. When the ClientHello has arrived completely, the
//! server has the keys of its own flights. It sends ServerHello in Initial packets and the rest in Handshake packets,
//! and may send 1-RTT data. When both flights have arrived, the client sends its Finished and 1-RTT data. The handshake
//! of the server is complete when Finished arrives. The server then sends HANDSHAKE_DONE and reads 1-RTT packets.
//! Initial keys are discarded with the first Handshake packet sent (client) or received (server), Handshake keys when
//! the handshake is confirmed. With 0-RTT the client sends data with its ClientHello, within the stored limits of the
//! server.
//!
//! Until the client's address is validated, a server sends at most three times the bytes received (section 8.1). A
//! Handshake packet or a token from Retry validates the address.

use crate::received::{AckPolicy, ReceiveSpace};
use crate::space::SendSpace;
use crate::stream::{ReceiveHalf, SendHalf};
use fullpipe_transport::Payload;
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::QuicPacketType;

/// The limit of buffered CRYPTO bytes of a level (RFC 9000 section 7.5: at least 4096).
const CRYPTO_BYTES: u64 = 1 << 20;

/// The acknowledgment policy of the handshake: immediate (RFC 9000 section 13.2.1).
pub(crate) const AT_ONCE: AckPolicy = AckPolicy { every: 1, max_delay: Duration::ZERO, reordering: 1 };

/// A CRYPTO stream.
#[derive(Debug)]
pub(crate) struct CryptoStream {
    pub(crate) out: SendHalf,
    pub(crate) incoming: ReceiveHalf,
}

/// An encryption level with its packets and its CRYPTO stream.
#[derive(Debug)]
pub(crate) struct EncryptionLevel {
    pub(crate) space: SendSpace,
    pub(crate) received: ReceiveSpace,
    /// The CRYPTO stream, allocated when it is first used. The application data level never uses it.
    crypto: Option<Box<CryptoStream>>,
    /// The number of packets to send independently of the window.
    pub(crate) probes: u8,
}

impl EncryptionLevel {
    pub(crate) fn new() -> EncryptionLevel {
        EncryptionLevel { space: SendSpace::new(), received: ReceiveSpace::new(), crypto: None, probes: 0 }
    }

    /// The CRYPTO stream.
    pub(crate) fn crypto(&mut self) -> &mut CryptoStream {
        self.crypto.get_or_insert_with(|| {
            let incoming = ReceiveHalf::new(CRYPTO_BYTES, Instant::ZERO);
            Box::new(CryptoStream { out: SendHalf::new(u64::MAX), incoming })
        })
    }

    /// Whether the CRYPTO stream has data to send.
    pub(crate) fn has_crypto(&self) -> bool {
        self.crypto.as_ref().is_some_and(|crypto| crypto.out.has_any())
    }

    /// Writes this number of bytes: all messages that this end sends at this level.
    pub(crate) fn write(&mut self, bytes: u64) {
        let out = &mut self.crypto().out;
        out.write(Payload::Length(bytes), None);
        out.finished = true;
    }
}

/// State that is discarded when the handshake is confirmed.
#[derive(Debug)]
pub(crate) struct HandshakeState {
    pub(crate) initial: Option<EncryptionLevel>,
    pub(crate) handshake: Option<EncryptionLevel>,
    /// Server: bytes that may still be sent before the address is validated.
    pub(crate) credit: u64,
    /// Server: whether the client's address is validated. Client: whether the server is known to have validated it (RFC
    /// 9002 section 6.2.2.1).
    pub(crate) validated: bool,
    /// Whether 1-RTT packets may be sent.
    pub(crate) may_send_data: bool,
    /// Whether 1-RTT packets can be read.
    pub(crate) may_read_data: bool,
    /// Whether 0-RTT packets may be sent or are read.
    pub(crate) zero_rtt: bool,
    /// Server: whether the ClientHello has arrived completely, so that it was or will be answered.
    pub(crate) begun: bool,
    /// The token of a Retry packet.
    pub(crate) token: Option<u64>,
    /// Server: whether a Retry packet is to be sent.
    pub(crate) retry_due: bool,
}

impl HandshakeState {
    pub(crate) fn new() -> HandshakeState {
        HandshakeState {
            initial: Some(EncryptionLevel::new()),
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

    /// The packet type in which data may be sent now, if any.
    pub(crate) fn sends_data(&self) -> Option<QuicPacketType> {
        match (self.may_send_data, self.zero_rtt) {
            (true, _) => Some(QuicPacketType::OneRtt),
            (false, true) => Some(QuicPacketType::ZeroRtt),
            _ => None,
        }
    }
}
