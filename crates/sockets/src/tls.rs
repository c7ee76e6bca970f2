//! TLS configuration: certificates of servers, from PEM files or generated, and the certificates that clients trust.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// ALPN protocol of HTTP/3 (RFC 9114 section 3.1).
const PROTOCOL: &[u8] = b"h3";

/// ALPN protocol of HTTP/2 (RFC 9113 section 3.2).
const HTTP2: &[u8] = b"h2";

/// Paths at which systems keep their trusted certificates.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// An invalid certificate, key or PEM file.
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

/// Certificate and private key of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerCredentials {
    /// The certificate chain and the private key in these PEM files.
    Files {
        /// Certificate chain.
        chain: PathBuf,
        /// Private key.
        key: PathBuf,
    },
    /// A self-signed certificate for these names and addresses. It is generated with its key and kept in memory only.
    SelfSigned(Vec<String>),
}

impl ServerCredentials {
    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
        match self {
            ServerCredentials::Files { chain, key } => {
                let certificates = certificates(chain)?;
                let read = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
                    rustls::pki_types::pem::Error::NoItemsFound => {
                        wrong(key, "the file contains no private key; expected PEM with a section PRIVATE KEY")
                    }
                    error => wrong(key, error),
                });
                Ok((certificates, read?))
            }
            ServerCredentials::SelfSigned(names) => {
                let made = rcgen::generate_simple_self_signed(names.as_slice())
                    .map_err(|error| Error(format!("cannot create a certificate for {}: {error}", names.join(", "))))?;
                let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
                Ok((vec![made.cert.der().clone()], key.into()))
            }
        }
    }

    /// Error of its key file, with the description `error`.
    fn wrong(&self, error: impl fmt::Display) -> Error {
        match self {
            ServerCredentials::Files { key, .. } => wrong(key, error),
            ServerCredentials::SelfSigned(_) => Error(error.to_string()),
        }
    }
}

/// Certificates that a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerVerification {
    /// The certificates that the system trusts.
    SystemRoots,
    /// The certificate authorities, or the server certificates themselves, in this PEM file.
    CaFile(PathBuf),
    /// All certificates, without verification. For laboratory use only.
    Disabled,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, error))?;
    let certificates = read.collect::<Result<Vec<_>, _>>().map_err(|error| wrong(path, error))?;
    if certificates.is_empty() {
        Err(wrong(path, "the file contains no certificate; expected PEM"))
    } else {
        Ok(certificates)
    }
}

/// Creates the TLS configuration of an HTTP/3 server.
///
/// # Errors
/// Returns an error if the files cannot be read, if the key and the certificate do not match, or if a certificate
/// cannot contain the names.
pub fn server_config(identity: &ServerCredentials) -> Result<noq::ServerConfig, Error> {
    server_configs(identity, None).map(|(quic, _)| quic)
}

/// Creates the TLS configurations of an HTTP/3 and of an HTTP/2 server with the same certificate. With `client_ca`, clients
/// must present a certificate that an authority in this PEM file has signed.
///
/// # Errors
/// As for [`server_config`], or if the file with the authorities is invalid.
pub fn server_configs(
    identity: &ServerCredentials,
    client_ca: Option<&Path>,
) -> Result<(noq::ServerConfig, Arc<rustls::ServerConfig>), Error> {
    let (certificates, private) = identity.read()?;
    let builder = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error(error.to_string()))?;
    let builder = match client_ca {
        Some(path) => builder.with_client_cert_verifier(client_verifier(path)?),
        None => builder.with_no_client_auth(),
    };
    let mut tls = builder.with_single_cert(certificates, private).map_err(|error| identity.wrong(error))?;
    tls.alpn_protocols = vec![HTTP2.to_vec()];
    let http2 = Arc::new(tls.clone());
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let tls = noq::crypto::rustls::QuicServerConfig::try_from(tls).map_err(|error| Error(error.to_string()))?;
    let mut server = noq::ServerConfig::with_crypto(Arc::new(tls));
    // No NEW_TOKEN frames (RFC 9000 section 8.1.3), regardless of the features of the stack in this build: our clients
    // store no tokens, and the key of a token would be lost with the process.
    server.validation_token.sent(0);
    Ok((server, http2))
}

/// Verifies the certificates of clients with the authorities in a PEM file.
fn client_verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| wrong(path, error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().map_err(|error| wrong(path, error))
}

/// Creates the TLS configuration of an HTTP/3 client.
///
/// # Errors
/// Returns an error if the trusted certificates cannot be read.
pub fn client_config(trust: &ServerVerification) -> Result<noq::ClientConfig, Error> {
    let tls = client_tls(trust, None, PROTOCOL)?;
    let tls = noq::crypto::rustls::QuicClientConfig::try_from(tls).map_err(|error| Error(error.to_string()))?;
    Ok(noq::ClientConfig::new(Arc::new(tls)))
}

/// Creates the TLS configuration of an HTTP/2 client.
///
/// # Errors
/// Returns an error if the trusted certificates cannot be read.
pub fn tcp_client_config(trust: &ServerVerification) -> Result<Arc<rustls::ClientConfig>, Error> {
    client_tls(trust, None, HTTP2).map(Arc::new)
}

/// Creates the TLS configuration of an HTTP/3 client that presents a certificate if the server requests one.
///
/// # Errors
/// Returns an error if the trusted certificates, or the client's certificate or key, cannot be read.
pub fn client_config_with_certificate(
    trust: &ServerVerification,
    identity: Option<&ServerCredentials>,
) -> Result<noq::ClientConfig, Error> {
    let tls = client_tls(trust, identity, PROTOCOL)?;
    let tls = noq::crypto::rustls::QuicClientConfig::try_from(tls).map_err(|error| Error(error.to_string()))?;
    Ok(noq::ClientConfig::new(Arc::new(tls)))
}

fn client_tls(
    trust: &ServerVerification,
    identity: Option<&ServerCredentials>,
    protocol: &[u8],
) -> Result<rustls::ClientConfig, Error> {
    let builder = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| Error(error.to_string()))?;
    let builder = match trust {
        ServerVerification::Disabled => {
            let verifier = Arc::new(AcceptAnybody(provider()));
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
        ServerVerification::CaFile(path) => {
            let verifier = Arc::new(AcceptKnown::new(certificates(path)?, path)?);
            builder.dangerous().with_custom_certificate_verifier(verifier)
        }
        ServerVerification::SystemRoots => builder.with_root_certificates(system_roots()?),
    };
    let mut tls = match identity {
        Some(identity) => {
            let (chain, key) = identity.read()?;
            builder.with_client_auth_cert(chain, key).map_err(|error| identity.wrong(error))?
        }
        None => builder.with_no_client_auth(),
    };
    tls.alpn_protocols = vec![protocol.to_vec()];
    Ok(tls)
}

fn system_roots() -> Result<RootCertStore, Error> {
    let path = SYSTEM_ROOTS.iter().map(Path::new).find(|path| path.exists());
    let path = path.ok_or_else(|| {
        let paths = SYSTEM_ROOTS.join(", ");
        Error(format!("found no trusted certificates at {paths}; name a PEM file with --ca"))
    })?;
    let mut roots = RootCertStore::empty();
    // Systems contain certificates that a strict parser rejects.
    roots.add_parsable_certificates(certificates(path)?);
    Ok(roots)
}

/// Accepts certificates signed by these authorities, and these certificates themselves. A self-signed certificate is
/// often marked as a CA certificate, and the usual rules then forbid its use by a server.
#[derive(Debug)]
struct AcceptKnown {
    known: Vec<CertificateDer<'static>>,
    authorities: Arc<WebPkiServerVerifier>,
}

impl AcceptKnown {
    fn new(known: Vec<CertificateDer<'static>>, path: &Path) -> Result<AcceptKnown, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in &known {
            roots.add(certificate.clone()).map_err(|error| wrong(path, error))?;
        }
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
        Ok(AcceptKnown { known, authorities: builder.build().map_err(|error| wrong(path, error))? })
    }
}

impl ServerCertVerifier for AcceptKnown {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.authorities.verify_server_cert(certificate, intermediates, name, stapled, now) {
            // The verifier rejects a CA certificate after it has checked the validity period and before it checks the
            // name.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))) if self.known.contains(certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Accepts any certificate, but checks that the server has its key.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use std::time::Duration;

    const YEAR: Duration = Duration::from_secs(365 * 86_400);

    fn parameters(is_ca: IsCa) -> CertificateParams {
        let mut parameters = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        parameters.is_ca = is_ca;
        parameters.not_before = rcgen::date_time_ymd(2026, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(2026, 12, 31);
        parameters
    }

    fn verdict(
        trusted: &CertificateDer<'static>,
        given: &CertificateDer<'_>,
        name: &str,
        time: Duration,
    ) -> Result<(), rustls::Error> {
        let verifier = AcceptKnown::new(vec![trusted.clone()], Path::new("trusted.pem")).unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        verifier.verify_server_cert(given, &[], &name, &[], UnixTime::since_unix_epoch(time)).map(drop)
    }

    #[test]
    fn generated_certificate_has_the_requested_names() {
        let identity = ServerCredentials::SelfSigned(["a.example", "192.0.2.1", "::1"].map(String::from).to_vec());
        let (certificates, _) = identity.read().unwrap();
        let certificate = ParsedCertificate::try_from(&certificates[0]).unwrap();
        let is_for =
            |name: &'static str| verify_server_name(&certificate, &ServerName::try_from(name).unwrap()).is_ok();
        assert!(is_for("a.example") && is_for("192.0.2.1") && is_for("::1"));
        assert!(!is_for("b.example") && !is_for("192.0.2.2"));
        assert!(server_config(&identity).is_ok());
        let refused = server_config(&ServerCredentials::SelfSigned(vec!["\u{e4}.example".into()])).err().unwrap();
        assert!(refused.to_string().starts_with("cannot create a certificate for \u{e4}.example: "), "{refused}");
    }

    /// As created by `openssl req -x509`: marked as a CA certificate, but used by a server.
    #[test]
    fn self_signed_certificate_is_trusted_if_listed() {
        // 1 July 2026: 56 years and 181 days after 1970, with 14 leap days.
        let time = Duration::from_secs((56 * 365 + 14 + 181) * 86_400);
        for is_ca in [IsCa::NoCa, IsCa::ExplicitNoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
            let sign = || parameters(is_ca).self_signed(&KeyPair::generate().unwrap()).unwrap();
            let (known, other) = (sign(), sign());
            assert_eq!(verdict(known.der(), known.der(), "a.example", time), Ok(()));
            assert!(verdict(known.der(), known.der(), "b.example", time).is_err());
            assert!(verdict(known.der(), other.der(), "a.example", time).is_err());
            assert!(verdict(known.der(), known.der(), "a.example", time + YEAR).is_err());
            assert!(verdict(known.der(), known.der(), "a.example", time - YEAR).is_err());
        }
    }

    #[test]
    fn certificate_of_a_listed_authority_is_trusted() {
        let time = Duration::from_secs((56 * 365 + 14 + 181) * 86_400);
        let key = KeyPair::generate().unwrap();
        let authority = parameters(IsCa::Ca(BasicConstraints::Unconstrained));
        let root = authority.self_signed(&key).unwrap();
        let server = KeyPair::generate().unwrap();
        let signed = parameters(IsCa::NoCa).signed_by(&server, &Issuer::new(authority, key)).unwrap();
        assert_eq!(verdict(root.der(), signed.der(), "a.example", time), Ok(()));
        assert!(verdict(root.der(), signed.der(), "b.example", time).is_err());
    }
}
