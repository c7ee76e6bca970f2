//! Real TLS 1.3 (rustls) whose only source of randomness is the seed of the run.
//!
//! Handshake, keys and packet protection are those of a program on real sockets: X25519, AES-128-GCM with SHA-256, an
//! Ed25519 certificate. Three values come from the run: the hello randoms and the order of the client's extensions (the
//! provider's [`SecureRandom`]), the private keys of the key exchange (its only group), and the certificate's key.
//! Ed25519 signatures need no random numbers. So the same seed gives the same bytes in every process.
//!
//! **Random streams.** The library needs a source of randomness with a static lifetime, but our streams belong to
//! sessions. The source therefore reads from the stream in a thread-local variable ([`DRAWING`]). A session sets this
//! variable for the duration of a call into the library; otherwise it is empty. Any use of this provider outside a
//! session returns an error. Each session of an endpoint has its own stream.
//!
//! **Certificate.** All servers of a run have the same key, derived from the seed alone. Each client checks the
//! certificate and that the server has its key, so ends of different runs cannot connect. The certificate is
//! self-signed and valid from 2025 to 2034 (this is not checked: the date is always the same). An unused extension
//! fills it up to the requested size.
//!
//! **No resumption**: servers issue no session tickets, so every handshake is a full one, as without cryptography.
//!
//! Keys that follow from a published seed protect nothing. Therefore nothing of this module is exported from the crate:
//! it is used only by endpoints whose packets go to the simulated network.

use crate::entropy::{FixedDate, RandomStreams, fill};
use fullpipe_units::RandomStream;
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, Side, TimeSource, TransportError};
use rcgen::{CertificateParams, CustomExtension, SerialNumber};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
    verify_tls13_signature,
};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::ParsedCertificate;
use rustls::time_provider::TimeProvider;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, NamedGroup, PeerMisbehaved, SignatureScheme, version::TLS13,
};
use std::any::Any;
use std::cell::RefCell;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Possible sizes of a certificate, in bytes. The mandatory content is 273 bytes. At 337 bytes, the signed part grows
/// from 255 to 256 bytes and its length needs another byte, so no certificate has that size. The upper limit is the
/// library's maximum message of 64 KiB.
pub(crate) const CERTIFICATE_BYTES: RangeInclusive<u64> = 400..=60_000;

thread_local! {
    /// Random stream of the session that is active in this thread.
    static DRAWING: RefCell<Option<RandomStream>> = const { RefCell::new(None) };
}

/// Runs a call into the library that draws from this stream.
fn drawing<R>(stream: &mut RandomStream, call: impl FnOnce() -> R) -> R {
    DRAWING.set(Some(stream.clone()));
    let result = call();
    if let Some(drawn) = DRAWING.take() {
        *stream = drawn;
    }
    result
}

/// Random bytes of the active session.
#[derive(Debug)]
struct Drawn;

impl SecureRandom for Drawn {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        DRAWING.with_borrow_mut(|stream| stream.as_mut().map(|stream| fill(stream, buffer)).ok_or(GetRandomFailed))
    }
}

/// X25519 (RFC 7748) with private keys of the active session.
#[derive(Debug)]
struct X25519;

impl SupportedKxGroup for X25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut private = [0; 32];
        Drawn.fill(&mut private)?;
        Ok(Box::new(Exchange::new(private)))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Exchange {
    private: [u8; 32],
    public: [u8; 32],
}

impl Exchange {
    fn new(private: [u8; 32]) -> Exchange {
        Exchange { private, public: x25519_dalek::x25519(private, x25519_dalek::X25519_BASEPOINT_BYTES) }
    }
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer = peer.try_into().map_err(|_| Error::from(PeerMisbehaved::InvalidKeyShare))?;
        let shared = x25519_dalek::x25519(self.private, peer);
        // RFC 8446 section 7.4.2: a point of small order gives zero.
        if shared == [0; 32] {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        Ok(SharedSecret::from(&shared[..]))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![&X25519],
        secure_random: &Drawn,
        ..default_provider()
    })
}

impl TimeProvider for FixedDate {
    fn current_time(&self) -> Option<UnixTime> {
        let since = TimeSource::now(self).duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(UnixTime::since_unix_epoch(since))
    }
}

/// The private key of all servers of a run: an Ed25519 seed in PKCS #8 (RFC 8410 section 7).
fn private_key(entropy: &RandomStreams) -> PrivatePkcs8KeyDer<'static> {
    let mut der = vec![0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    let mut seed = [0; 32];
    fill(&mut entropy.of_the_run("certificate"), &mut seed);
    der.extend_from_slice(&seed);
    der.into()
}

/// Creates a certificate of this size, or the nearest possible one. One more byte of filling can add several bytes,
/// because a length field grows, too. The serial number (up to 20 bytes, RFC 5280 section 4.1.2.2) then closes the gap.
fn certificate(key: &rcgen::KeyPair, bytes: u64) -> CertificateDer<'static> {
    let bytes = bytes.clamp(*CERTIFICATE_BYTES.start(), *CERTIFICATE_BYTES.end()) as usize;
    (1..=20)
        .find_map(|serial_bytes| exact_certificate(key, serial_bytes, bytes))
        .expect("a serial number gives every size in the range")
}

fn exact_certificate(key: &rcgen::KeyPair, serial_bytes: usize, bytes: usize) -> Option<CertificateDer<'static>> {
    let mut filling = bytes;
    let mut made = filled_certificate(key, serial_bytes, filling);
    // Less filling may also shorten length fields; the result can then be a few bytes below the size.
    while made.len() > bytes && filling > 0 {
        filling = filling.saturating_sub(made.len() - bytes);
        made = filled_certificate(key, serial_bytes, filling);
    }
    while made.len() < bytes {
        filling += 1;
        made = filled_certificate(key, serial_bytes, filling);
    }
    (made.len() == bytes).then_some(made)
}

fn filled_certificate(key: &rcgen::KeyPair, serial_bytes: usize, filling: usize) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(vec!["server".to_owned()]).expect("the name is ASCII");
    params.not_before = rcgen::date_time_ymd(2025, 1, 1);
    params.not_after = rcgen::date_time_ymd(2034, 1, 1);
    params.serial_number = Some(SerialNumber::from(vec![1; serial_bytes]));
    // An object identifier reserved for examples (ITU-T X.660).
    params.custom_extensions = vec![CustomExtension::from_oid_content(&[2, 999], vec![0; filling])];
    params.self_signed(key).expect("an Ed25519 key can sign").der().clone()
}

/// The streams of an endpoint's sessions, in the order in which the sessions begin.
struct Sessions {
    entropy: RandomStreams,
    side: &'static str,
    begun: AtomicU64,
}

impl Sessions {
    fn new(entropy: &RandomStreams, side: &'static str) -> Sessions {
        Sessions { entropy: entropy.clone(), side, begun: AtomicU64::new(0) }
    }

    fn next(&self) -> RandomStream {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.entropy.stream(&format!("{} session {number}", self.side))
    }
}

/// Configuration of a client.
pub(crate) struct Client {
    config: QuicClientConfig,
    sessions: Sessions,
}

impl Client {
    pub(crate) fn new(entropy: &RandomStreams) -> Client {
        let provider = provider();
        let key = provider
            .key_provider
            .load_private_key(private_key(entropy).into())
            .expect("the key is a valid Ed25519 key");
        let expected = key.public_key().expect("the key has a public key").as_ref().to_vec().into();
        let verifier = Arc::new(OfThisRun { expected, provider: Arc::clone(&provider) });
        let config = rustls::ClientConfig::builder_with_details(provider, Arc::new(FixedDate))
            .with_protocol_versions(&[&TLS13])
            .expect("the suite belongs to TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let config = QuicClientConfig::try_from(config).expect("the configuration has the suite of Initial packets");
        Client { config, sessions: Sessions::new(entropy, "client") }
    }
}

impl crypto::ClientConfig for Client {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let mut stream = self.sessions.next();
        let inner = drawing(&mut stream, || self.config.start_session(version, server_name, params))?;
        Ok(Box::new(Seeded { inner, stream }))
    }
}

/// Configuration of a server.
pub(crate) struct Server {
    config: QuicServerConfig,
    sessions: Sessions,
}

impl Server {
    /// Creates the configuration with a certificate of this size, or the nearest possible one.
    pub(crate) fn new(entropy: &RandomStreams, certificate_bytes: u64) -> Server {
        let private = private_key(entropy);
        let key = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&private, &rcgen::PKCS_ED25519)
            .expect("the key is a valid Ed25519 key");
        let chain = vec![certificate(&key, certificate_bytes)];
        let mut config = rustls::ServerConfig::builder_with_details(provider(), Arc::new(FixedDate))
            .with_protocol_versions(&[&TLS13])
            .expect("the suite belongs to TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from(private))
            .expect("certificate and key match");
        config.send_tls13_tickets = 0;
        let config = QuicServerConfig::try_from(config).expect("the configuration has the suite of Initial packets");
        Server { config, sessions: Sessions::new(entropy, "server") }
    }
}

impl crypto::ServerConfig for Server {
    fn initial_keys(&self, version: u32, dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.config.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.config.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        let mut stream = self.sessions.next();
        let inner = drawing(&mut stream, || self.config.start_session(version, params));
        Box::new(Seeded { inner, stream })
    }
}

/// Accepts only the certificate of this run's servers, under any name.
#[derive(Debug)]
struct OfThisRun {
    expected: SubjectPublicKeyInfoDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for OfThisRun {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        if parsed.subject_public_key_info() == self.expected {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::UnknownIssuer.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A session with its random stream.
struct Seeded {
    inner: Box<dyn Session>,
    stream: RandomStream,
}

impl Session for Seeded {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let Seeded { inner, stream } = self;
        drawing(stream, || inner.read_handshake(buf))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let Seeded { inner, stream } = self;
        drawing(stream, || inner.write_handshake(buf))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.inner.next_1rtt_keys()
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u64) -> rcgen::KeyPair {
        let private = private_key(&RandomStreams::new(seed, "any"));
        rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&private, &rcgen::PKCS_ED25519)
            .expect("the key is a valid Ed25519 key")
    }

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        std::array::from_fn(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).expect("the text is hexadecimal"))
    }

    #[test]
    fn certificate_has_the_requested_size() {
        let key = key(1);
        let [least, most] = [*CERTIFICATE_BYTES.start(), *CERTIFICATE_BYTES.end()];
        // Lengths of 128, 256 and more bytes need one more byte each.
        for bytes in (least..=least + 400).chain([3_000, most - 1, most]) {
            assert_eq!(certificate(&key, bytes).len() as u64, bytes);
        }
        assert_eq!([0, u64::MAX].map(|bytes| certificate(&key, bytes).len() as u64), [least, most]);
    }

    #[test]
    fn certificate_is_determined_by_the_seed() {
        assert_eq!(certificate(&key(1), 900), certificate(&key(1), 900));
        let parsed = |seed| {
            let made = certificate(&key(seed), 900);
            ParsedCertificate::try_from(&made).expect("the certificate can be parsed").subject_public_key_info()
        };
        assert_ne!(parsed(1), parsed(2));
    }

    /// The vectors of RFC 7748 section 6.1.
    #[test]
    fn key_exchange_matches_the_rfc_vectors_and_rejects_bad_shares() {
        let private = hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let public: [u8; 32] = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        let peer: [u8; 32] = hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
        let shared: [u8; 32] = hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
        let exchange = || Box::new(Exchange::new(private));
        assert_eq!(exchange().pub_key(), public);
        assert_eq!(exchange().complete(&peer).expect("the share is valid").secret_bytes(), shared);
        // Points of small order (zero and one) and shares of another length are rejected.
        let one: [u8; 32] = hex("0100000000000000000000000000000000000000000000000000000000000000");
        assert!(exchange().complete(&[0; 32]).is_err() && exchange().complete(&one).is_err());
        assert!(exchange().complete(&peer[1..]).is_err());
    }

    #[test]
    fn sessions_of_an_endpoint_draw_from_different_streams() {
        let [client, server] = ["client", "server"].map(|side| Sessions::new(&RandomStreams::new(1, "end"), side));
        let drawn = [client.next().next_u64(), client.next().next_u64(), server.next().next_u64()];
        assert!(drawn[0] != drawn[1] && drawn[0] != drawn[2], "{drawn:?}");
    }

    #[test]
    fn drawing_outside_a_session_fails() {
        let mut buffer = [0; 8];
        assert!(Drawn.fill(&mut buffer).is_err() && X25519.start().is_err());
        let mut stream = RandomStream::new(1, "a", "b");
        let mut same = stream.clone();
        drawing(&mut stream, || Drawn.fill(&mut buffer)).expect("a session is active");
        assert_eq!(u64::from_le_bytes(buffer), same.next_u64());
        drawing(&mut stream, || Drawn.fill(&mut buffer)).expect("a session is active");
        assert_eq!(u64::from_le_bytes(buffer), same.next_u64(), "the stream continues");
        assert!(Drawn.fill(&mut buffer).is_err());
    }
}
