//! Keys of a QUIC server that survive its restart, derived from a secret file.
//!
//! With the same keys, a restarted server recognizes the connection IDs from before the restart and resets those connections
//! (RFC 9000 section 10.3), so that clients reconnect immediately. It also accepts Retry tokens from before the restart (section
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
                create(path, &secret)?;
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

/// Creates a file with the secret, readable by its owner only. The file appears with its whole content, also if the process is
/// killed or the disk is full.
fn create(path: &Path, secret: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let unfinished = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&unfinished).and_then(|mut file| {
        file.write_all(secret)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, path)
    });
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_file_is_created_once_and_whole_and_short_ones_are_rejected() {
        let folder = std::env::temp_dir().join(format!("fullpipe-secret-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("secret");
        let first = ServerSecret::from_file(&path).unwrap().derive(b"a purpose");
        let content = std::fs::read(&path).unwrap();
        assert_eq!(content.len(), SECRET_BYTES);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no unfinished file is left");
        // A restart reads the same secret.
        assert_eq!(ServerSecret::from_file(&path).unwrap().derive(b"a purpose"), first);
        assert_ne!(ServerSecret::from_file(&path).unwrap().derive(b"another"), first);
        std::fs::write(&path, [0; SECRET_BYTES - 1]).unwrap();
        let error = ServerSecret::from_file(&path).unwrap_err().to_string();
        assert!(error.contains("31 bytes") && error.contains("32"), "{error}");
        // Nothing is created in a folder that does not exist.
        assert!(ServerSecret::from_file(&folder.join("missing/secret")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
