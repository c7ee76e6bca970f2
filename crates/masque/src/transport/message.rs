//! Checks whether a message is malformed (RFC 9114 sections 4.1.2, 4.2, 4.3, 4.4 and 4.5), on the field lines in their
//! order.
//!
//! h3 accepts repeated, misplaced and foreign pseudo-header fields, and connection-specific fields. It also accepts
//! CONNECT requests with a scheme and a path. Here, such a message is a stream error H3_MESSAGE_ERROR.

use super::field_section::{DecodingError, FieldLine, Lines};
use super::one_way_guard::PeerRole;
use http::uri::Authority;

/// Reason why a message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

/// Result of the check of a field section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionError {
    /// The section cannot be decoded.
    Decoding,
    /// The message is malformed.
    Malformed(Malformed),
}

impl From<DecodingError> for SectionError {
    fn from(_: DecodingError) -> Self {
        SectionError::Decoding
    }
}

impl From<Malformed> for SectionError {
    fn from(reason: Malformed) -> Self {
        SectionError::Malformed(reason)
    }
}

/// Validator of the message from the peer on one request stream.
#[derive(Clone, Debug)]
pub(super) struct MessageValidator {
    peer: PeerRole,
    stage: Stage,
    /// Announced length of a request's content that has not arrived yet.
    content_left: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the header section, or after interim responses.
    Header,
    /// After the header section.
    Content,
    /// After a CONNECT request: no further field section is permitted (RFC 9114 section 4.4). h3 and the tunnel report
    /// it.
    Tunnel,
}

/// Pseudo-header fields: the name, and whether requests, not responses, have it (RFC 9114 section 4.3, RFC 9220).
const PSEUDO_FIELDS: [(&[u8], PeerRole); 6] = [
    (b":method", PeerRole::Client),
    (b":scheme", PeerRole::Client),
    (b":authority", PeerRole::Client),
    (b":path", PeerRole::Client),
    (b":protocol", PeerRole::Client),
    (b":status", PeerRole::Server),
];

/// Connection-specific fields (RFC 9114 section 4.2, RFC 9110 section 7.6.1). TE has its own rule.
const CONNECTION_FIELDS: [&[u8]; 5] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"];

/// Fields that a message of the capsule protocol cannot have (RFC 9297 section 3.4).
const CONTENT_FIELDS: [&[u8]; 2] = [b"content-length", b"content-type"];

/// What a field section contains, as far as the rules require.
#[derive(Debug, Default)]
struct Section {
    /// Values in the order of [`PSEUDO_FIELDS`].
    pseudo: [Option<Vec<u8>>; PSEUDO_FIELDS.len()],
    host: Option<Vec<u8>>,
    content_length: Option<u64>,
    has_content_field: bool,
    uses_capsules: bool,
    /// Whether a regular field has been read.
    has_regular: bool,
}

impl MessageValidator {
    pub(super) fn new(peer: PeerRole) -> MessageValidator {
        MessageValidator { peer, stage: Stage::Header, content_left: None }
    }

    /// Checks a field section: the header section of the message, that of an interim response, or the trailers.
    pub(super) fn check_section(&mut self, bytes: &[u8]) -> Result<(), SectionError> {
        let mut lines = Lines::new(bytes)?;
        if self.stage == Stage::Tunnel {
            return Ok(());
        }
        // A section that cannot be decoded is reported as such, even if it is malformed as well.
        let (mut section, mut malformed) = (Section::default(), Ok(()));
        while let Some(line) = lines.next()? {
            malformed = malformed.and_then(|()| section.add(self.peer, self.stage, &line));
        }
        malformed?;
        match (self.stage, self.peer) {
            (Stage::Header, PeerRole::Client) => {
                section.check_request()?;
                let is_connect = section.value(b":method") == Some(b"CONNECT");
                self.stage = if is_connect { Stage::Tunnel } else { Stage::Content };
                self.content_left = section.content_length.filter(|_| !is_connect);
            }
            (Stage::Header, PeerRole::Server) => {
                if !section.check_response()? {
                    self.stage = Stage::Content;
                }
            }
            (Stage::Content | Stage::Tunnel, _) => {}
        }
        Ok(())
    }

    /// Checks a DATA frame of this length against the content length (RFC 9114 section 4.1.2).
    pub(super) fn check_data(&mut self, length: u64) -> Result<(), Malformed> {
        if let Some(left) = &mut self.content_left {
            *left = left.checked_sub(length).ok_or(Malformed("the content is longer than its content-length"))?;
        }
        Ok(())
    }

    /// Checks that the content is complete.
    pub(super) fn check_end(&self) -> Result<(), Malformed> {
        match self.content_left {
            None | Some(0) => Ok(()),
            Some(_) => Err(Malformed("the content is shorter than its content-length")),
        }
    }
}

impl Section {
    fn value(&self, name: &[u8]) -> Option<&[u8]> {
        let index = PSEUDO_FIELDS.iter().position(|(pseudo, _)| *pseudo == name)?;
        self.pseudo[index].as_deref()
    }

    fn add(&mut self, peer: PeerRole, stage: Stage, line: &FieldLine<'_>) -> Result<(), Malformed> {
        let (name, value) = (&*line.name, &*line.value);
        if !value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..)) {
            return Err(Malformed("a field value contains a control character"));
        }
        if name.first() == Some(&b':') {
            return self.add_pseudo(peer, stage, name, value);
        }
        self.has_regular = true;
        if !is_token(name) || name.iter().any(u8::is_ascii_uppercase) {
            return Err(Malformed("a field name is empty or contains an uppercase letter or an invalid character"));
        }
        if CONNECTION_FIELDS.contains(&name) {
            return Err(Malformed("the message has a connection-specific field"));
        }
        self.has_content_field |= CONTENT_FIELDS.contains(&name);
        match name {
            // TE is connection-specific, except in the header section of a request.
            b"te" if peer == PeerRole::Server || stage != Stage::Header => {
                return Err(Malformed("te is permitted only in the header section of a request"));
            }
            b"te" if !value.eq_ignore_ascii_case(b"trailers") => {
                return Err(Malformed("te has a value other than trailers"));
            }
            b"host" if self.host.is_some() => return Err(Malformed("host occurs twice")),
            b"host" => self.host = Some(value.to_vec()),
            b"capsule-protocol" => self.uses_capsules |= value == b"?1",
            b"content-length" if stage == Stage::Header => {
                let length = content_length(value)?;
                if self.content_length.replace(length).is_some_and(|earlier| earlier != length) {
                    return Err(Malformed("content-length occurs twice with different values"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_pseudo(&mut self, peer: PeerRole, stage: Stage, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
        if stage != Stage::Header {
            return Err(Malformed("the trailers contain a pseudo-header field"));
        }
        if self.has_regular {
            return Err(Malformed("a pseudo-header field follows a regular field"));
        }
        let index = PSEUDO_FIELDS
            .iter()
            .position(|pseudo| *pseudo == (name, peer))
            .ok_or(Malformed("a pseudo-header field is not defined for this message"))?;
        if self.pseudo[index].replace(value.to_vec()).is_some() {
            return Err(Malformed("a pseudo-header field occurs twice"));
        }
        Ok(())
    }

    /// Checks the header section of a request (RFC 9114 sections 4.3.1 and 4.4, RFC 8441 section 4, RFC 9297 section
    /// 3.4).
    fn check_request(&self) -> Result<(), Malformed> {
        let method = self.value(b":method").ok_or(Malformed("the request has no :method"))?;
        if !is_token(method) {
            return Err(Malformed(":method is not a token"));
        }
        let authority = self.check_authority()?;
        let (scheme, path) = (self.value(b":scheme"), self.value(b":path"));
        match self.value(b":protocol") {
            Some(protocol) => {
                if method != b"CONNECT" {
                    return Err(Malformed(":protocol requires the method CONNECT"));
                }
                if !is_token(protocol) {
                    return Err(Malformed(":protocol is not a token"));
                }
                if self.value(b":authority").is_none() {
                    return Err(Malformed("an extended CONNECT request requires :authority"));
                }
                // CONNECT-UDP always uses the capsule protocol (RFC 9298 section 3).
                if self.has_content_field && (self.uses_capsules || protocol == b"connect-udp") {
                    return Err(Malformed("a request of the capsule protocol has content-length or content-type"));
                }
            }
            None if method == b"CONNECT" => {
                if scheme.is_some() || path.is_some() {
                    return Err(Malformed("a CONNECT request without :protocol has :scheme or :path"));
                }
                return match authority.map(|authority| authority.port_u16()) {
                    Some(Some(1..)) => Ok(()),
                    _ => Err(Malformed("the :authority of a CONNECT request requires a host and a port")),
                };
            }
            None => {}
        }
        let scheme = scheme.ok_or(Malformed("the request has no :scheme"))?;
        if !is_scheme(scheme) {
            return Err(Malformed(":scheme is not a URI scheme"));
        }
        let path = path.ok_or(Malformed("the request has no :path"))?;
        let is_web = scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https");
        if is_web && authority.is_none() {
            return Err(Malformed("the request has neither :authority nor host"));
        }
        if is_web && !(path.starts_with(b"/") || (path == b"*" && method == b"OPTIONS")) {
            return Err(Malformed(":path does not begin with a slash"));
        }
        // The fragment of a URI is not part of a request (RFC 9110 section 7.1).
        if !path.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'#') {
            return Err(Malformed(":path contains an invalid character"));
        }
        Ok(())
    }

    /// Checks :authority and host: neither empty nor with user information, and equal if both are present.
    fn check_authority(&self) -> Result<Option<Authority>, Malformed> {
        let (authority, host) = (self.value(b":authority"), self.host.as_deref());
        if authority.zip(host).is_some_and(|(authority, host)| authority != host) {
            return Err(Malformed(":authority and host differ"));
        }
        let Some(text) = authority.or(host) else { return Ok(None) };
        if text.contains(&b'@') {
            return Err(Malformed(":authority or host contains user information"));
        }
        Authority::try_from(text).map(Some).map_err(|_| Malformed(":authority or host is empty or invalid"))
    }

    /// Checks the header section of a response (RFC 9114 sections 4.3.2 and 4.5). Returns whether it is interim.
    fn check_response(&self) -> Result<bool, Malformed> {
        match self.value(b":status").ok_or(Malformed("the response has no :status"))? {
            b"101" => Err(Malformed("HTTP/3 has no status 101")),
            [first @ b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] => Ok(*first == b'1'),
            _ => Err(Malformed(":status is not an integer of three digits")),
        }
    }
}

/// Whether these bytes are a token (RFC 9110 section 5.6.2).
fn is_token(bytes: &[u8]) -> bool {
    let is_tchar = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(is_tchar)
}

/// Whether these bytes are a scheme (RFC 3986 section 3.1).
fn is_scheme(bytes: &[u8]) -> bool {
    let is_valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    bytes.first().is_some_and(u8::is_ascii_alphabetic) && bytes.iter().all(is_valid)
}

/// Parses a content length (RFC 9110 section 8.6).
fn content_length(value: &[u8]) -> Result<u64, Malformed> {
    let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).ok_or(Malformed("content-length is not a decimal number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes fields as literal lines (RFC 9204 section 4.5.6); names and values are shorter than 127 bytes.
    fn section(fields: &[(&str, &str)]) -> Vec<u8> {
        let mut section = vec![0, 0];
        for (name, value) in fields {
            match name.len() {
                length @ 0..7 => section.push(0x20 | length as u8),
                length => section.extend([0x27, length as u8 - 7]),
            }
            section.extend_from_slice(name.as_bytes());
            section.push(value.len() as u8);
            section.extend_from_slice(value.as_bytes());
        }
        section
    }

    fn check(peer: PeerRole, sections: &[&[(&str, &str)]]) -> Result<(), SectionError> {
        let mut validator = MessageValidator::new(peer);
        sections.iter().try_for_each(|fields| validator.check_section(&section(fields)))
    }

    fn is_malformed(peer: PeerRole, sections: &[&[(&str, &str)]]) -> bool {
        matches!(check(peer, sections), Err(SectionError::Malformed(_)))
    }

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/x?y")];

    fn changed(name: &str, value: &'static str) -> Vec<(&'static str, &'static str)> {
        GET.iter().map(|field| if field.0 == name { (field.0, value) } else { *field }).collect()
    }

    #[test]
    fn well_formed_requests_are_accepted() {
        let get = |more: &[(&'static str, &'static str)]| [&GET[..], more].concat();
        let host = [(":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "a.example")];
        let other = [(":path", "x"), (":method", "GET"), (":scheme", "urn")];
        let options = [(":method", "OPTIONS"), (":scheme", "http"), (":path", "*"), (":authority", "[::1]:80")];
        for fields in [
            get(&[]),
            get(&[("te", "trailers"), ("host", "a.example"), ("x", "\t é\u{80}")]),
            get(&[("content-length", "2"), ("content-length", "2"), ("content-type", "a/b")]),
            host.to_vec(),
            other.to_vec(),
            options.to_vec(),
            // RFC 9114 section 4.4.
            vec![(":method", "CONNECT"), (":authority", "a.example:443")],
            vec![(":method", "CONNECT"), (":authority", "[2001:db8::1]:1"), ("host", "[2001:db8::1]:1")],
        ] {
            assert_eq!(check(PeerRole::Client, &[&fields]), Ok(()), "{fields:?}");
        }
        assert_eq!(check(PeerRole::Client, &[&GET, &[("x", "trailer")]]), Ok(()));
    }

    #[test]
    fn malformed_requests_are_rejected() {
        let scheme_of_connect = [(":method", "CONNECT"), (":scheme", "https"), (":authority", "a:1")];
        for fields in [
            changed(":authority", "user@a.example"),
            changed(":authority", "a b"),
            changed(":scheme", ""),
            changed(":scheme", "1s"),
            changed(":path", "*"),
            changed(":path", "/a#b"),
            changed(":path", "/a b"),
            changed(":path", "/é"),
            changed(":method", ""),
            changed(":method", "CONNECT"),
            scheme_of_connect.to_vec(),
            vec![(":method", "CONNECT")],
            vec![(":method", "CONNECT"), (":authority", "a.example")],
            vec![(":method", "CONNECT"), (":authority", "a.example:0")],
            vec![(":method", "CONNECT"), (":authority", "a.example:65536")],
            [&GET[..], &[(":protocol", "connect-udp")]].concat(),
            [&GET[..], &[("content-length", "1"), ("content-length", "2")]].concat(),
            [&GET[..], &[("content-length", "+1")]].concat(),
            [&GET[..], &[("host", "a.example"), ("host", "a.example")]].concat(),
            [&GET[..], &[("x", "\u{7f}")]].concat(),
        ] {
            assert!(is_malformed(PeerRole::Client, &[&fields]), "{fields:?}");
        }
        for trailer in [(":path", "/"), ("te", "trailers"), ("connection", "close"), ("X", "y")] {
            assert!(is_malformed(PeerRole::Client, &[&GET, &[trailer]]), "{trailer:?}");
        }
    }

    #[test]
    fn responses_are_checked_up_to_the_trailers() {
        let ok = [(":status", "200"), ("content-length", "5")];
        for sections in [
            &[&ok[..]][..],
            &[&[(":status", "103")], &[(":status", "100")], &[(":status", "299")], &[("x", "y")]],
            &[&[(":status", "599"), ("x", "y")]],
        ] {
            assert_eq!(check(PeerRole::Server, sections), Ok(()), "{sections:?}");
        }
        for sections in [
            &[&[][..]][..],
            &[&[("x", "y")]],
            &[&[("x", "y"), (":status", "200")]],
            &[&[(":status", "200"), (":status", "200")]],
            &[&[(":status", "200"), (":path", "/")]],
            &[&[(":status", "101")]],
            &[&[(":status", "20")]],
            &[&[(":status", "2000")]],
            &[&[(":status", "0200")]],
            &[&[(":status", "099")]],
            &[&[(":status", "+20")]],
            &[&[(":status", "200"), ("te", "trailers")]],
            &[&[(":status", "200"), ("content-length", "x")]],
            // An interim response is followed by a response, and a final one by trailers.
            &[&[(":status", "103")], &[("x", "y")]],
            &[&[(":status", "200")], &[(":status", "200")]],
        ] {
            assert!(is_malformed(PeerRole::Server, sections), "{sections:?}");
        }
    }

    #[test]
    fn content_must_have_the_announced_length() {
        let post = [(":method", "POST"), GET[1], GET[2], GET[3], ("content-length", "5")];
        let mut validator = MessageValidator::new(PeerRole::Client);
        assert_eq!(validator.check_section(&section(&post)), Ok(()));
        assert_eq!(validator.check_data(3), Ok(()));
        assert!(validator.check_end().is_err());
        assert_eq!(validator.clone().check_data(2), Ok(()));
        assert!(validator.check_data(3).is_err());
    }
}
