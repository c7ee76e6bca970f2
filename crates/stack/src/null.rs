//! Handshake and packet format without cryptography, with the sizes of TLS 1.3 and AES-128-GCM.
//!
//! Packets carry a tag of 16 bytes and are long enough for a header-protection sample of 16 bytes. The handshake
//! messages have the lengths of TLS, so packets have realistic sizes. There is no secrecy and no authentication.
//! Therefore nothing of this module is exported from the crate: it is used only by endpoints whose packets go to the
//! simulated network.
//!
//! **Handshake** (RFC 9001 section 4, RFC 8446 section 2): The ClientHello carries the client's transport parameters.
//! After the ServerHello, the handshake keys are available. The server's flight extends from EncryptedExtensions (with
//! its transport parameters) to Finished, after which the 1-RTT keys are available. The client sends Finished. Each
//! message is in CRYPTO frames, with the four bytes of type and length of TLS.
//!
//! **Lengths** (RFC 8446 section 4, without the 4-byte message header). ClientHello: version 2, random 32, empty
//! session ID 1, one cipher suite 4, compression 2, length of extensions 2; extensions server_name 9 and the name,
//! supported_groups 8, signature_algorithms 22 (eight), supported_versions 7, key_share 42, psk_key_exchange_modes 6,
//! transport parameters 4 and their content. ServerHello: 2 + 32 + 1 + 2 + 1 + 2, supported_versions 6, key_share 40.
//! Server's flight: EncryptedExtensions 2, server_name 4 (RFC 6066 section 3), transport parameters 4 and their
//! content; Certificate 1 + 3, and 3 + 2 for the single certificate; CertificateVerify 2 + 2 + 64 (Ed25519); Finished
//! 32 (SHA-256). The headers of the three later messages are included.

use bytes::BytesMut;
use noq_proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
    Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError, TransportErrorCode};
use std::any::Any;

/// Tag of a protected packet, in bytes.
const TAG_BYTES: usize = 16;
/// Type and length of a message, in bytes.
const MESSAGE_HEADER_BYTES: usize = 4;

/// Message types (RFC 8446 section 4).
mod message {
    pub(super) const CLIENT_HELLO: u8 = 1;
    pub(super) const SERVER_HELLO: u8 = 2;
    pub(super) const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub(super) const FINISHED: u8 = 20;
}

const CLIENT_HELLO_BYTES: usize = 2 + 32 + 1 + 4 + 2 + 2 + 9 + 8 + 22 + 7 + 42 + 6 + 4;
const SERVER_HELLO_BYTES: usize = 2 + 32 + 1 + 2 + 1 + 2 + 6 + 40;
const SERVER_FLIGHT_BYTES: usize =
    2 + 4 + 4 + MESSAGE_HEADER_BYTES + 1 + 3 + 3 + 2 + MESSAGE_HEADER_BYTES + 2 + 2 + 64 + MESSAGE_HEADER_BYTES + 32;
const FINISHED_BYTES: usize = 32;

/// Configuration of both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NullConfig {
    /// Size of the server's certificate in bytes.
    pub(crate) certificate_bytes: usize,
}

impl crypto::ClientConfig for NullConfig {
    fn start_session(
        &self,
        _version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(NullSession::new(State::Start, params, CLIENT_HELLO_BYTES + server_name.len())))
    }
}

impl crypto::ServerConfig for NullConfig {
    fn initial_keys(&self, _version: u32, _dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(NullSession::new(State::AwaitsClientHello, params, SERVER_FLIGHT_BYTES + self.certificate_bytes))
    }
}

/// State of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The client has sent nothing yet.
    Start,
    AwaitsServerHello,
    ServerHelloCame,
    AwaitsServerFlight,
    ServerFlightCame,
    /// The server has received nothing yet.
    AwaitsClientHello,
    ClientHelloCame,
    ServerHelloSent,
    AwaitsFinished,
    Done,
}

struct NullSession {
    state: State,
    /// Our transport parameters.
    parameters: Vec<u8>,
    /// Length of the message that contains them, without them.
    message_bytes: usize,
    peer: Option<TransportParameters>,
    /// Bytes of incomplete messages.
    received: Vec<u8>,
}

impl NullSession {
    fn new(state: State, params: &TransportParameters, message_bytes: usize) -> NullSession {
        let mut parameters = Vec::new();
        params.write(&mut parameters);
        NullSession { state, parameters, message_bytes, peer: None, received: Vec::new() }
    }

    /// Returns the next complete message: type and body.
    fn next_message(&mut self) -> Option<(u8, Vec<u8>)> {
        let &[kind, high, middle, low, ..] = &self.received[..] else { return None };
        let end = MESSAGE_HEADER_BYTES + usize::from(high) * 65_536 + usize::from(middle) * 256 + usize::from(low);
        let body = self.received.get(MESSAGE_HEADER_BYTES..end)?.to_vec();
        self.received.drain(..end);
        Some((kind, body))
    }

    /// Reads the peer's transport parameters from a message: their length in two bytes, then their content.
    fn take_parameters(&mut self, side: Side, body: &[u8]) -> Result<(), TransportError> {
        let malformed = || {
            TransportError::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, "missing transport parameters".into())
        };
        let (length, rest) = body.split_first_chunk::<2>().ok_or_else(malformed)?;
        let mut parameters = rest.get(..usize::from(u16::from_be_bytes(*length))).ok_or_else(malformed)?;
        self.peer = Some(TransportParameters::read(side, &mut parameters)?);
        Ok(())
    }

    /// Writes a message with our transport parameters, filled with zeros.
    fn message_with_parameters(&self, kind: u8, buf: &mut Vec<u8>) {
        let mut body = Vec::with_capacity(self.message_bytes + self.parameters.len());
        body.extend_from_slice(&u16::try_from(self.parameters.len()).unwrap_or(u16::MAX).to_be_bytes());
        body.extend_from_slice(&self.parameters);
        body.resize(self.message_bytes + self.parameters.len(), 0);
        message(kind, &body, buf);
    }
}

/// Writes a message.
fn message(kind: u8, body: &[u8], buf: &mut Vec<u8>) {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    buf.extend_from_slice(&[kind, length[1], length[2], length[3]]);
    buf.extend_from_slice(body);
}

impl Session for NullSession {
    fn initial_keys(&self, _dst_cid: ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.peer.is_some().then(|| Box::new(()) as Box<dyn Any>)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.state != State::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend_from_slice(buf);
        let knew = self.peer.is_some();
        while let Some((kind, body)) = self.next_message() {
            self.state = match (self.state, kind) {
                (State::AwaitsClientHello, message::CLIENT_HELLO) => {
                    self.take_parameters(Side::Server, &body)?;
                    State::ClientHelloCame
                }
                (State::AwaitsServerHello, message::SERVER_HELLO) => State::ServerHelloCame,
                (State::AwaitsServerFlight, message::ENCRYPTED_EXTENSIONS) => {
                    self.take_parameters(Side::Client, &body)?;
                    State::ServerFlightCame
                }
                (State::AwaitsFinished, message::FINISHED) => State::Done,
                // unexpected_message (RFC 8446 section 6.2).
                _ => return Err(TransportError::new(TransportErrorCode::crypto(10), "unexpected message".into())),
            };
        }
        Ok(!knew && self.peer.is_some())
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let (next, keys_follow) = match self.state {
            State::Start => {
                self.message_with_parameters(message::CLIENT_HELLO, buf);
                (State::AwaitsServerHello, false)
            }
            State::ServerHelloCame => (State::AwaitsServerFlight, true),
            State::ServerFlightCame => {
                message(message::FINISHED, &[0; FINISHED_BYTES], buf);
                (State::Done, true)
            }
            State::ClientHelloCame => {
                message(message::SERVER_HELLO, &[0; SERVER_HELLO_BYTES], buf);
                (State::ServerHelloSent, true)
            }
            State::ServerHelloSent => {
                self.message_with_parameters(message::ENCRYPTED_EXTENSIONS, buf);
                (State::AwaitsFinished, true)
            }
            waiting => (waiting, false),
        };
        self.state = next;
        keys_follow.then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(KeyPair { local: Box::new(NullKey), remote: Box::new(NullKey) })
    }

    fn is_valid_retry(&self, _orig_dst_cid: ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        output.fill(0);
        Ok(())
    }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(NullKey), remote: Box::new(NullKey) },
        packet: KeyPair { local: Box::new(NullKey), remote: Box::new(NullKey) },
    }
}

/// A key that protects nothing.
struct NullKey;

impl PacketKey for NullKey {
    fn encrypt(&self, _path_id: PathId, _packet: u64, buf: &mut [u8], _header_len: usize) {
        let tag = buf.len().saturating_sub(TAG_BYTES);
        buf[tag..].fill(0);
    }

    fn decrypt(
        &self,
        _path_id: PathId,
        _packet: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        // An unprotected packet, such as a stateless reset, does not end with a tag.
        let length = payload.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        if payload[length..] != [0; TAG_BYTES] {
            return Err(CryptoError);
        }
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for NullKey {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        16
    }
}

/// Key for stateless-reset tokens and address tokens, with the sizes of SHA-256 and AES-GCM. It is a number of the
/// simulation, not a secret.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenKey(pub(crate) u64);

impl HmacKey for TokenKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        // Weyl steps through the finalizer of SplitMix64, keyed by the FNV-1a hash of the data.
        let hash = data.iter().fold(self.0 ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        for (place, out) in signature_out.chunks_mut(8).enumerate() {
            let mut mixed = hash.wrapping_add((place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            out.copy_from_slice(&(mixed ^ (mixed >> 31)).to_be_bytes()[..out.len()]);
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut right = [0; 32];
        self.sign(data, &mut right);
        if signature == right { Ok(()) } else { Err(CryptoError) }
    }
}

impl HandshakeTokenKey for TokenKey {
    fn seal(&self, _token_nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.extend_from_slice(&[0; TAG_BYTES]);
        Ok(())
    }

    fn open<'a>(&self, _token_nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let length = data.len().checked_sub(TAG_BYTES).ok_or(CryptoError)?;
        if data[length..] != [0; TAG_BYTES] {
            return Err(CryptoError);
        }
        Ok(&data[..length])
    }
}
