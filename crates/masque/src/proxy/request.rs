//! Checks of a request that depend only on its headers: the target, the form and the authorization.

use crate::access::{ClientLimits, Token};
use crate::configuration;
use crate::proxy::accounts::ClientId;
use crate::proxy_status::ProxyError;
use crate::target::{Target, TargetError};
use crate::template::PathError;
use h3::ext::Protocol;
use http::{Method, Request, StatusCode, header};

/// Rejection of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestRejection {
    /// Status code of the response.
    pub(crate) status: StatusCode,
    /// Error in Proxy-Status.
    pub(crate) error: ProxyError,
    /// Description for human readers.
    pub(crate) details: String,
}

impl RequestRejection {
    pub(crate) fn new(status: StatusCode, error: ProxyError, details: impl Into<String>) -> RequestRejection {
        RequestRejection { status, error, details: details.into() }
    }

    /// Creates a rejection with the status of this error.
    pub(crate) fn by(error: ProxyError, details: impl Into<String>) -> RequestRejection {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        RequestRejection::new(status, error, details)
    }

    fn request(status: StatusCode, details: impl Into<String>) -> RequestRejection {
        RequestRejection::new(status, ProxyError::RequestError, details)
    }
}

/// What a tunnel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelProtocol {
    /// UDP payloads (RFC 9298).
    Udp,
    /// The bytes of a TCP connection (RFC 9114 section 4.4).
    Tcp,
}

/// A well-formed request of an authorized client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TunnelRequest {
    pub(crate) protocol: TunnelProtocol,
    pub(crate) target: Target,
    /// The client, if it is known by a token.
    pub(crate) client: Option<ClientId>,
    pub(crate) limits: ClientLimits,
}

/// Parses a request.
///
/// # Errors
/// If it is neither a CONNECT-UDP request for this proxy's template (RFC 9298 section 3.4) nor a CONNECT request, or the
/// client is not authorized.
pub(crate) fn read(request: &Request<()>, settings: &configuration::Proxy) -> Result<TunnelRequest, RequestRejection> {
    let protocol = check_method(request)?;
    if protocol == TunnelProtocol::Udp {
        check_scheme(request)?;
    }
    let token = check_token(request, &settings.tokens)?;
    let invalid = |reason: TargetError| RequestRejection::request(StatusCode::BAD_REQUEST, reason.to_string());
    let target = match protocol {
        TunnelProtocol::Udp => {
            let path = request.uri().path_and_query().map_or("", |path| path.as_str());
            settings.template.parse_path(path).map_err(|error| match error {
                PathError::TemplateMismatch => {
                    let details = "the path does not match the URI template of this proxy";
                    RequestRejection::request(StatusCode::NOT_FOUND, details)
                }
                PathError::InvalidTarget(reason) => invalid(reason),
            })?
        }
        TunnelProtocol::Tcp if settings.tcp => {
            let authority = request.uri().authority().map_or("", |authority| authority.as_str());
            Target::parse(authority).map_err(invalid)?
        }
        TunnelProtocol::Tcp => {
            let details = "TCP tunnels are disabled; expected connect-udp";
            return Err(RequestRejection::request(StatusCode::NOT_IMPLEMENTED, details));
        }
    };
    let limits = token.map_or(settings.client_limits, |token| token.limits.or(settings.client_limits));
    Ok(TunnelRequest { protocol, target, client: token.map(|token| ClientId::Token(token.name.clone())), limits })
}

fn check_method(request: &Request<()>) -> Result<TunnelProtocol, RequestRejection> {
    if request.method() != Method::CONNECT {
        return Err(RequestRejection::request(
            StatusCode::METHOD_NOT_ALLOWED,
            "the method is not supported; expected CONNECT",
        ));
    }
    match request.extensions().get::<Protocol>() {
        Some(&Protocol::CONNECT_UDP) => Ok(TunnelProtocol::Udp),
        None => Ok(TunnelProtocol::Tcp),
        Some(_) => Err(RequestRejection::request(
            StatusCode::NOT_IMPLEMENTED,
            "the protocol is not supported; expected connect-udp",
        )),
    }
}

/// Checks the scheme. The transport has checked that the request is well-formed.
fn check_scheme(request: &Request<()>) -> Result<(), RequestRejection> {
    if request.uri().scheme_str() == Some("https") {
        return Ok(());
    }
    Err(RequestRejection::request(StatusCode::BAD_REQUEST, "the scheme is not https"))
}

/// Returns the token of a request, or `None` if the proxy requires none.
fn check_token<'a>(request: &Request<()>, tokens: &'a [Token]) -> Result<Option<&'a Token>, RequestRejection> {
    if tokens.is_empty() {
        return Ok(None);
    }
    let given = request.headers().get(header::PROXY_AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let given = given.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case(b"bearer ")).map(|_| &given[7..]);
    match given.and_then(|given| Token::find(tokens, given)) {
        Some(token) => Ok(Some(token)),
        None => Err(RequestRejection::new(
            StatusCode::PROXY_AUTHENTICATION_REQUIRED,
            ProxyError::RequestDenied,
            "the request has no valid bearer token",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;

    fn settings(secrets: &[&str]) -> configuration::Proxy {
        let template = Template::well_known("proxy.example").unwrap();
        let limits = ClientLimits { tunnels: Some(1), ..ClientLimits::default() };
        let token = |secret: &&str| Token { name: format!("holder of {secret}"), secret: (*secret).into(), limits };
        let client_limits = ClientLimits { tunnels: Some(5), rate: Some(6), bytes: None };
        let tokens = secrets.iter().map(token).collect();
        configuration::Proxy { tokens, client_limits, ..configuration::Proxy::new(template) }
    }

    fn request(path: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut builder = Request::connect(format!("https://proxy.example{path}")).extension(Protocol::CONNECT_UDP);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap()
    }

    const GOOD: &str = "/.well-known/masque/udp/192.0.2.1/443/";

    fn status(request: &Request<()>, settings: &configuration::Proxy) -> u16 {
        read(request, settings).map_or_else(|refused| refused.status.as_u16(), |_| 200)
    }

    #[test]
    fn request_headers_determine_the_status() {
        let settings = settings(&[]);
        let read = read(&request(GOOD, &[]), &settings).unwrap();
        assert_eq!(
            (read.target.to_string(), read.client, read.limits.tunnels),
            ("192.0.2.1:443".into(), None, Some(5))
        );
        assert_eq!(status(&request(GOOD, &[("capsule-protocol", "?1"), ("te", "trailers")]), &settings), 200);
        for (path, expected) in [
            ("/", 404),
            ("/.well-known/masque/udp/192.0.2.1/443", 404),
            ("/.well-known/masque/udp/192.0.2.1/0/", 400),
            ("/.well-known/masque/udp/192.0.2.1/+53/", 400),
            ("/.well-known/masque/udp/192.0.2.1/99999/", 400),
            ("/.well-known/masque/udp/fe80%3A%3A1%25eth0/443/", 400),
            ("/.well-known/masque/udp//443/", 400),
        ] {
            assert_eq!(status(&request(path, &[]), &settings), expected, "{path}");
        }
        let mut other = request(GOOD, &[]);
        *other.method_mut() = Method::GET;
        assert_eq!(status(&other, &settings), 405);
        let mut other = request(GOOD, &[]);
        other.extensions_mut().insert(Protocol::WEB_TRANSPORT);
        assert_eq!(status(&other, &settings), 501);
        let mut other = request(GOOD, &[]);
        *other.uri_mut() = format!("http://proxy.example{GOOD}").parse().unwrap();
        assert_eq!(status(&other, &settings), 400);
    }

    #[test]
    fn connect_request_has_its_target_in_the_authority() {
        let settings = settings(&[]);
        let connect = |authority: &str| Request::connect(authority).body(()).unwrap();
        for target in ["a.example:443", "192.0.2.1:80", "[2001:db8::1]:443"] {
            let read = read(&connect(target), &settings).unwrap();
            assert_eq!((read.target.to_string(), read.protocol), (target.into(), TunnelProtocol::Tcp));
        }
        for bad in ["127.1:443", "a..example:443", "[fe80::1]:0443"] {
            assert_eq!(status(&connect(bad), &settings), 400, "{bad}");
        }
        let udp_only = configuration::Proxy { tcp: false, ..settings };
        assert_eq!(status(&connect("a.example:443"), &udp_only), 501);
    }

    #[test]
    fn request_without_the_token_is_rejected() {
        let settings = settings(&["other", "s3cret"]);
        let with = |value: &str| status(&request(GOOD, &[("proxy-authorization", value)]), &settings);
        assert_eq!(with("Bearer s3cret"), 200);
        assert_eq!(with("bearer s3cret"), 200);
        for wrong in ["Bearer s3cre", "Bearer s3crets", "Bearer ", "Bearer", "Basic s3cret", ""] {
            assert_eq!(with(wrong), 407, "{wrong}");
        }
        assert_eq!(status(&request(GOOD, &[]), &settings), 407);
        // The client has the name and the limits of its token, and the proxy's limits where the token has none.
        let read = read(&request(GOOD, &[("proxy-authorization", "Bearer other")]), &settings).unwrap();
        assert_eq!(read.client, Some(ClientId::Token("holder of other".into())));
        assert_eq!(read.limits, ClientLimits { tunnels: Some(1), rate: Some(6), bytes: None });
    }
}
