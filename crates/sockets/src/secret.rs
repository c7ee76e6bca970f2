//! Keys of a QUIC server that survive its restart, derived from a secret file.
//!
//! With the same keys, a restarted server recognizes the connection IDs of its predecessor and resets those connections
//! (RFC 9000 section 10.3), so that clients reconnect at once. It also accepts the Retry tokens of its predecessor (section
//! 8.1.2).

use noq::crypto::{CryptoError, HandshakeTokenKey, HmacKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{aead, hkdf, hmac};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

/// Size of a new secret, and the least size of an existing one, in bytes.
const SECRET_BYTES: usize = 32;

/// Maximum size of a secret file in bytes.
const MAX_BYTES: u64 = 4096;

/// A secret from which the keys of a server are derived.
#[derive(Clone)]
pub struct ServerSecret(hkdf::Prk);

impl std::fmt::Debug for ServerSecret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ServerSecret")
    }
}

impl ServerSecret {
    /// Reads the secret in a file. If the file does not exist, creates it with a random secret, readable by its owner only.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or created, or has fewer than 32 or more than 4096 bytes.
    pub fn from_file(path: &Path) -> io::Result<ServerSecret> {
        let mut secret = Vec::new();
        match std::fs::File::open(path) {
            Ok(file) => {
                file.take(MAX_BYTES + 1).read_to_end(&mut secret)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                secret.resize(SECRET_BYTES, 0);
                let random = SystemRandom::new().fill(&mut secret);
                random.map_err(|_| io::Error::other("the operating system has no random numbers"))?;
                let mut options = OpenOptions::new();
                options.write(true).create_new(true);
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                options.open(path)?.write_all(&secret)?;
            }
            Err(error) => return Err(error),
        }
        let length = secret.len();
        if length < SECRET_BYTES || length as u64 > MAX_BYTES {
            let text = format!("the secret has {length} bytes; expected {SECRET_BYTES} to {MAX_BYTES} random bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(ServerSecret::new(&secret))
    }

    fn new(secret: &[u8]) -> ServerSecret {
        ServerSecret(hkdf::Salt::new(hkdf::HKDF_SHA256, b"fullpipe server secret").extract(secret))
    }

    /// Derives a key for this purpose.
    fn derive(&self, purpose: &[u8]) -> [u8; 32] {
        let mut key = [0; 32];
        let info = [purpose];
        // Both fail only for lengths beyond 255 blocks.
        let expanded = self.0.expand(&info, hkdf::HKDF_SHA256).and_then(|material| material.fill(&mut key));
        assert!(expanded.is_ok(), "the key is one block");
        key
    }

    /// Returns the configuration of an endpoint that recognizes connections by this secret.
    #[must_use]
    pub fn endpoint_config(&self) -> noq::EndpointConfig {
        let reset: Arc<dyn HmacKey> = Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &self.derive(b"stateless reset")));
        let mut configuration = noq::EndpointConfig::new(reset);
        let [a, b, c, d, e, f, g, h, ..] = self.derive(b"connection id");
        let key = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        configuration
            .cid_generator(Arc::new(move || Box::new(noq_proto::HashedConnectionIdGenerator::from_key(key)) as Box<_>));
        configuration
    }

    /// Returns the key of address validation tokens.
    #[must_use]
    pub fn token_key(&self) -> Arc<dyn HandshakeTokenKey> {
        Arc::new(TokenKey(ServerSecret::new(&self.derive(b"address validation token"))))
    }
}

/// Encrypts tokens with a key for each nonce.
struct TokenKey(ServerSecret);

impl TokenKey {
    fn of(&self, nonce: u128) -> Result<aead::LessSafeKey, CryptoError> {
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, &self.0.derive(&nonce.to_be_bytes()));
        key.map(aead::LessSafeKey::new).map_err(|_| CryptoError)
    }
}

/// The nonce of a key that is used once.
fn only_nonce() -> aead::Nonce {
    aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN])
}

impl HandshakeTokenKey for TokenKey {
    fn seal(&self, token_nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        let sealed = self.of(token_nonce)?.seal_in_place_append_tag(only_nonce(), aead::Aad::empty(), data);
        sealed.map_err(|_| CryptoError)
    }

    fn open<'a>(&self, token_nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let opened = self.of(token_nonce)?.open_in_place(only_nonce(), aead::Aad::empty(), data);
        opened.map(|opened| &*opened).map_err(|_| CryptoError)
    }
}
