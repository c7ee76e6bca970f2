//! Certificates: PEM files of servers, and whom clients trust.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// HTTP/3's protocol name (RFC 9114 section 3.1).
const PROTOCOL: &[u8] = b"h3";

/// Where systems keep the certificates they trust.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What is wrong with a certificate, a key, or a file of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

fn wrong(path: &Path, error: impl fmt::Display) -> Error {
    Error(format!("{}: {error}", path.display()))
}

/// Whom a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Whom the system trusts.
    System,
    /// The authorities, or the very certificates, of a PEM file.
    Authorities(PathBuf),
    /// Everybody: for laboratories.
    Anybody,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, error))?;
    let certificates = read.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(path, error))?;
    if certificates.is_empty() { Err(wrong(path, "no certificate in it")) } else { Ok(certificates) }
}

/// A server's cryptography, with the certificate chain and the key of these PEM files.
///
/// # Errors
/// If they cannot be read or do not belong together.
pub fn server(chain: &Path, key: &Path) -> Result<noq::ServerConfig, Error> {
    let certificates = certificates(chain)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error))?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(certificates, private)
        .map_err(|error| wrong(key, error))?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let tls = noq::crypto::rustls::QuicServerConfig::try_from(tls).map_err(|error| Error(error.to_string()))?;
    Ok(noq::ServerConfig::with_crypto(Arc::new(tls)))
}

/// A client's cryptography.
///
/// # Errors
/// If the authorities cannot be read.
pub fn client(trust: &Trust) -> Result<noq::ClientConfig, Error> {
    let builder = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error(error.to_string()))?;
    let mut tls = match trust {
        Trust::Anybody => {
            let verifier = Arc::new(AcceptAnybody(provider()));
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
        Trust::Authorities(path) => builder.with_root_certificates(roots(path)?).with_no_client_auth(),
        Trust::System => builder.with_root_certificates(system_roots()?).with_no_client_auth(),
    };
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let tls = noq::crypto::rustls::QuicClientConfig::try_from(tls).map_err(|error| Error(error.to_string()))?;
    Ok(noq::ClientConfig::new(Arc::new(tls)))
}

fn roots(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| wrong(path, error))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, Error> {
    let path = SYSTEM_ROOTS.iter().map(Path::new).find(|path| path.exists());
    let path = path.ok_or_else(|| Error("this system's trusted certificates were not found; name a file".into()))?;
    let mut roots = RootCertStore::empty();
    // Systems carry certificates that a strict reader does not take.
    roots.add_parsable_certificates(certificates(path)?);
    Ok(roots)
}

/// Any certificate will do; that the server has its key is still checked.
#[derive(Debug)]
struct AcceptAnybody(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
