//! Checks of a request that depend only on its headers: the target, the form and the authorization.

use crate::access::{ClientLimits, Token};
use crate::configuration;
use crate::proxy::accounts::ClientId;
use crate::proxy_status::ProxyError;
use crate::target::{Target, TargetError};
use crate::template::PathError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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

/// The text of a request's target, as far as it can be logged without parsing.
pub(crate) fn target_of(request: &Request<()>) -> &str {
    match request.uri().path_and_query() {
        Some(path) => path.path(),
        None => request.uri().authority().map_or("", |authority| authority.as_str()),
    }
}

/// Parses a request. `protocol` is the value of `:protocol`, if there is one.
///
/// # Errors
/// If it is neither a CONNECT-UDP request for this proxy's template (RFC 9298 section 3.4) nor a CONNECT request, or the
/// client is not authorized.
pub(crate) fn read(
    request: &Request<()>,
    protocol: Option<&str>,
    settings: &configuration::Proxy,
) -> Result<TunnelRequest, RequestRejection> {
    let protocol = check_method(request, protocol)?;
    if protocol == TunnelProtocol::Udp {
        check_scheme(request)?;
    }
    let token = authenticate(request, &settings.tokens, protocol)?;
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

fn check_method(request: &Request<()>, protocol: Option<&str>) -> Result<TunnelProtocol, RequestRejection> {
    if request.method() != Method::CONNECT {
        return Err(RequestRejection::request(
            StatusCode::METHOD_NOT_ALLOWED,
            "the method is not supported; expected CONNECT",
        ));
    }
    match protocol {
        Some("connect-udp") => Ok(TunnelProtocol::Udp),
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

/// Returns the token of a request, or `None` if the proxy requires none. A templated request is for a resource of the proxy
/// itself, so its credentials are in Authorization (RFC 9110 section 11.6). Proxy-Authorization is accepted as well, because
/// clients differ. In a CONNECT request, Authorization would be for the target, so only Proxy-Authorization is read (section
/// 11.7).
fn authenticate<'a>(
    request: &Request<()>,
    tokens: &'a [Token],
    protocol: TunnelProtocol,
) -> Result<Option<&'a Token>, RequestRejection> {
    if tokens.is_empty() {
        return Ok(None);
    }
    let (fields, status) = match protocol {
        TunnelProtocol::Udp => (&[header::AUTHORIZATION, header::PROXY_AUTHORIZATION][..], StatusCode::UNAUTHORIZED),
        TunnelProtocol::Tcp => (&[header::PROXY_AUTHORIZATION][..], StatusCode::PROXY_AUTHENTICATION_REQUIRED),
    };
    let mut values = fields.iter().flat_map(|field| request.headers().get_all(field));
    match values.find_map(|value| holder(value.as_bytes(), tokens)) {
        Some(token) => Ok(Some(token)),
        None => Err(RequestRejection::new(
            status,
            ProxyError::RequestDenied,
            "the request has no valid credentials; expected Bearer with a token, or Basic with its name and the token",
        )),
    }
}

/// Returns the token in credentials: `Bearer SECRET` (RFC 6750), or `Basic` with name and secret (RFC 7617).
fn holder<'a>(credentials: &[u8], tokens: &'a [Token]) -> Option<&'a Token> {
    let space = credentials.iter().position(|byte| *byte == b' ')?;
    let (scheme, value) = (&credentials[..space], credentials[space..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Token::find(tokens, value);
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let pair = STANDARD.decode(value).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Token::find(tokens, &pair[colon + 1..]).filter(|token| token.name.as_bytes() == &pair[..colon])
}

/// The schemes that the proxy accepts: the value of WWW-Authenticate and Proxy-Authenticate.
pub(crate) const CHALLENGE: &str = "Bearer realm=\"fullpipe\", Basic realm=\"fullpipe\", charset=\"UTF-8\"";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;
    use h3::ext::Protocol;

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

    /// Parses a request of HTTP/3.
    fn read(request: &Request<()>, settings: &configuration::Proxy) -> Result<TunnelRequest, RequestRejection> {
        let protocol = request.extensions().get::<Protocol>().map(Protocol::as_str);
        super::read(request, protocol, settings)
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

    /// Basic credentials of this name and secret.
    fn basic(pair: &str) -> String {
        format!("Basic {}", STANDARD.encode(pair))
    }

    #[test]
    fn request_without_valid_credentials_is_rejected() {
        let settings = settings(&["other", "s3cret"]);
        let with = |field: &str, value: &str| status(&request(GOOD, &[(field, value)]), &settings);
        let valid = basic("holder of s3cret:s3cret");
        for field in ["authorization", "proxy-authorization"] {
            for good in ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret", &*valid] {
                assert_eq!(with(field, good), 200, "{field}: {good}");
            }
            let pairs = ["s3cret", "other:s3cret", "holder of s3cret:other", "holder of s3cret:", ":s3cret"].map(basic);
            let wrong =
                ["Bearer s3cre", "Bearer s3crets", "Bearer ", "Bearer", "Basic s3cret", "Basic =", "s3cret", ""];
            for wrong in wrong.into_iter().chain(pairs.iter().map(String::as_str)) {
                assert_eq!(with(field, wrong), 401, "{field}: {wrong}");
            }
        }
        assert_eq!(status(&request(GOOD, &[]), &settings), 401);
        // One of several fields suffices.
        let both = [("authorization", "Bearer wrong"), ("proxy-authorization", "Bearer s3cret")];
        assert_eq!(status(&request(GOOD, &both), &settings), 200);
        // In a CONNECT request, Authorization is for the target.
        let connect = |field: &str| Request::connect("a.example:443").header(field, "Bearer s3cret").body(()).unwrap();
        assert_eq!(status(&connect("proxy-authorization"), &settings), 200);
        assert_eq!(status(&connect("authorization"), &settings), 407);
        // The client has the name and the limits of its token, and the proxy's limits where the token has none.
        let read = read(&request(GOOD, &[("authorization", "Bearer other")]), &settings).unwrap();
        assert_eq!(read.client, Some(ClientId::Token("holder of other".into())));
        assert_eq!(read.limits, ClientLimits { tunnels: Some(1), rate: Some(6), bytes: None });
    }
}
