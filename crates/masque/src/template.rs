//! URI templates (RFC 6570) as restricted by RFC 9298 section 2. A template is absolute and of level 3 or lower.
//! Variables are permitted only in path and query, with simple expansion or one of the two query forms. A client
//! expands the template with its target. A proxy parses the target from a request's path with the same template.

use crate::percent;
use crate::target::{Target, TargetError};
use std::fmt;

/// Variables that a template must contain.
const HOST: &str = "target_host";
const PORT: &str = "target_port";

/// A valid template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    authority: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Expression { form: Form, variables: Vec<String> },
}

/// The form of an expression (RFC 6570 sections 3.2.2, 3.2.8 and 3.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Simple,
    Query,
    Continuation,
}

/// Error: the text is not a valid template for CONNECT-UDP, or a proxy cannot parse requests with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError(String);

impl fmt::Display for TemplateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "invalid URI template: {}", self.0)
    }
}

impl std::error::Error for TemplateError {}

/// Reason why no target can be parsed from a request's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The path does not match the template; the response has status 404.
    TemplateMismatch,
    /// The path matches the template, but its variables are invalid; the response has status 400.
    InvalidTarget(TargetError),
}

fn bad<T>(reason: impl Into<String>) -> Result<T, TemplateError> {
    Err(TemplateError(reason.into()))
}

impl Template {
    /// Parses and validates a template.
    ///
    /// # Errors
    /// If RFC 9298 section 2 does not permit it.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        if !text.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
            return bad("it contains a space, a control character or a character outside ASCII");
        }
        let Some(rest) = text.strip_prefix("https://") else { return bad("it does not start with https://") };
        let Some(slash) = rest.find('/') else { return bad("it has no path") };
        let (authority, path) = rest.split_at(slash);
        if authority.is_empty() || authority.contains(['{', '}', '?', '#', '@']) {
            return bad("the authority is empty or contains one of { } ? # @");
        }
        let parts = parse_parts(path)?;
        for variable in [HOST, PORT] {
            let count = |part: &Part| match part {
                Part::Literal(_) => 0,
                Part::Expression { variables, .. } => variables.iter().filter(|name| *name == variable).count(),
            };
            if parts.iter().map(count).sum::<usize>() != 1 {
                return bad(format!("expected the variable {{{variable}}} exactly once"));
            }
        }
        Ok(Template { authority: authority.into(), parts })
    }

    /// Returns the default template of a proxy at `authority` (RFC 9298 section 3).
    ///
    /// # Errors
    /// If `authority` is not a valid authority.
    pub fn well_known(authority: &str) -> Result<Template, TemplateError> {
        Template::parse(&format!("https://{authority}/.well-known/masque/udp/{{{HOST}}}/{{{PORT}}}/"))
    }

    /// Returns the proxy's host and port. The default port is 443.
    ///
    /// # Errors
    /// If the authority is not a host and a port.
    pub fn proxy_target(&self) -> Result<Target, TemplateError> {
        let has_port = self.authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let whole = if has_port { self.authority.clone() } else { format!("{}:443", self.authority) };
        Target::parse(&whole)
            .map_err(|_| TemplateError(format!("invalid authority \"{}\"; expected HOST or HOST:PORT", self.authority)))
    }

    /// Returns the authority as written, which requests contain as `:authority`.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the path and query of a request for `target`. All variables except host and port are undefined.
    #[must_use]
    pub fn expand(&self, target: &Target) -> String {
        let value = |name: &str| match name {
            HOST => Some(target.host.to_string()),
            PORT => Some(target.port.to_string()),
            _ => None,
        };
        let mut path = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(text) => path.push_str(text),
                Part::Expression { form, variables } => expand(*form, variables, value, &mut path),
            }
        }
        path
    }

    /// Checks whether a proxy can parse requests with this template. A character that cannot be part of a value must
    /// follow every variable of a simple expression. Otherwise the end of the value is ambiguous.
    ///
    /// # Errors
    /// If such a character is missing. The error contains the expression.
    pub fn check_readable(&self) -> Result<(), TemplateError> {
        for (index, part) in self.parts.iter().enumerate() {
            if !matches!(part, Part::Expression { .. }) {
                continue;
            }
            let follower = self.parts.get(index + 1);
            let ends = match follower {
                None | Some(Part::Expression { form: Form::Query | Form::Continuation, .. }) => true,
                Some(Part::Literal(text)) => text.starts_with(ends_value),
                Some(Part::Expression { form: Form::Simple, .. }) => false,
            };
            if !ends {
                return bad(
                    "the end of a variable's value is ambiguous; expected a character such as / after the variable",
                );
            }
        }
        Ok(())
    }

    /// Parses the target from the path and query of a request.
    ///
    /// # Errors
    /// If the path does not match this template, or host or port is malformed.
    pub fn parse_path(&self, path: &str) -> Result<Target, PathError> {
        let mut rest = path;
        let mut host = None;
        let mut port = None;
        for part in &self.parts {
            match part {
                Part::Literal(text) => rest = rest.strip_prefix(text.as_str()).ok_or(PathError::TemplateMismatch)?,
                Part::Expression { form, variables } => {
                    rest = read_expression(*form, variables, rest, |name, value| match name {
                        HOST => host = Some(value),
                        PORT => port = Some(value),
                        _ => {}
                    })
                    .ok_or(PathError::TemplateMismatch)?;
                }
            }
        }
        if !rest.is_empty() {
            return Err(PathError::TemplateMismatch);
        }
        let decode = |text: Option<&str>| percent::decode(text.unwrap_or_default());
        let host = decode(host).ok_or(PathError::InvalidTarget(TargetError::InvalidHost))?;
        let port = decode(port).ok_or(PathError::InvalidTarget(TargetError::InvalidPort))?;
        Target::new(&host, &port).map_err(PathError::InvalidTarget)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "https://{}", self.authority)?;
        for part in &self.parts {
            match part {
                Part::Literal(text) => formatter.write_str(text)?,
                Part::Expression { form, variables } => {
                    let operator = match form {
                        Form::Simple => "",
                        Form::Query => "?",
                        Form::Continuation => "&",
                    };
                    write!(formatter, "{{{operator}{}}}", variables.join(","))?;
                }
            }
        }
        Ok(())
    }
}

fn parse_parts(mut text: &str) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let (literal, rest) = text.split_at(text.find('{').unwrap_or(text.len()));
        if !literal.is_empty() {
            parts.push(Part::Literal(check_literal(literal)?.into()));
        }
        let Some(expression) = rest.strip_prefix('{') else { break };
        let Some((inside, rest)) = expression.split_once('}') else { return bad("a { has no matching }") };
        parts.push(parse_expression(inside)?);
        text = rest;
    }
    Ok(parts)
}

/// Checks a literal (RFC 6570 section 2.1). Characters that need percent-encoding are rejected, and so are fragments,
/// because requests have none.
fn check_literal(text: &str) -> Result<&str, TemplateError> {
    match text.find(['}', '#', '"', '\'', '<', '>', '\\', '^', '`', '|']) {
        Some(at) => bad(format!("the character {} is not permitted outside of an expression", &text[at..=at])),
        None if percent::decode(text).is_none() => bad("a % is not followed by two hexadecimal digits"),
        None => Ok(text),
    }
}

fn parse_expression(text: &str) -> Result<Part, TemplateError> {
    let (form, names) = match text.as_bytes().first() {
        Some(b'?') => (Form::Query, &text[1..]),
        Some(b'&') => (Form::Continuation, &text[1..]),
        Some(b'+' | b'#' | b'.' | b'/' | b';' | b'=' | b',' | b'!' | b'@' | b'|') => {
            return bad(format!("the operator of {{{text}}} is not permitted; expected ?, & or none"));
        }
        _ => (Form::Simple, text),
    };
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && !name.ends_with('.')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
    };
    let variables: Vec<String> = names.split(',').map(String::from).collect();
    if !variables.iter().all(|name| is_name(name)) {
        return bad(format!("{{{text}}} is not an expression of level 3 or lower (RFC 6570)"));
    }
    Ok(Part::Expression { form, variables })
}

fn expand(form: Form, variables: &[String], value: impl Fn(&str) -> Option<String>, path: &mut String) {
    let mut first = true;
    for name in variables {
        let Some(value) = value(name) else { continue };
        match (form, first) {
            (Form::Simple, true) => {}
            (Form::Simple, false) => path.push(','),
            (Form::Query, true) => path.push('?'),
            (Form::Query, false) | (Form::Continuation, _) => path.push('&'),
        }
        if form != Form::Simple {
            path.push_str(name);
            path.push('=');
        }
        percent::encode(&value, path);
        first = false;
    }
}

/// Whether this character separates a value from the next value or from the rest of the path. An expanded value
/// contains no reserved character at all. A value with other reserved characters is parsed and then rejected.
fn ends_value(character: char) -> bool {
    matches!(character, '/' | '?' | '#' | '&' | ',' | '=')
}

/// Parses the expansion of an expression from the start of `text` and returns the rest. Variables other than host and
/// port may be missing, as undefined variables are.
fn read_expression<'text>(
    form: Form,
    variables: &[String],
    mut text: &'text str,
    mut found: impl FnMut(&str, &'text str),
) -> Option<&'text str> {
    let mut first = true;
    for name in variables {
        let required = name == HOST || name == PORT;
        let prefix = match (form, first) {
            (Form::Simple, true) => String::new(),
            (Form::Simple, false) => ",".into(),
            (Form::Query, true) => format!("?{name}="),
            (Form::Query, false) | (Form::Continuation, _) => format!("&{name}="),
        };
        match text.strip_prefix(prefix.as_str()) {
            Some(rest) => {
                let (value, rest) = rest.split_at(rest.find(ends_value).unwrap_or(rest.len()));
                found(name, value);
                text = rest;
                first = false;
            }
            None if required => return None,
            None => {}
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(text: &str) -> Target {
        Target::parse(text).unwrap()
    }

    /// The examples of RFC 9298 section 2, with their expansions by RFC 6570.
    #[test]
    fn templates_of_the_rfc_are_expanded_and_parsed() {
        let cases = [
            (
                "https://example.org/.well-known/masque/udp/{target_host}/{target_port}/",
                "/.well-known/masque/udp/192.0.2.6/443/",
                "/.well-known/masque/udp/2001%3Adb8%3A%3A42/443/",
            ),
            (
                "https://proxy.example.org:4443/masque?h={target_host}&p={target_port}",
                "/masque?h=192.0.2.6&p=443",
                "/masque?h=2001%3Adb8%3A%3A42&p=443",
            ),
            (
                "https://proxy.example.org:4443/masque{?target_host,target_port}",
                "/masque?target_host=192.0.2.6&target_port=443",
                "/masque?target_host=2001%3Adb8%3A%3A42&target_port=443",
            ),
            (
                "https://[2001:db8::1]/m?x=1{&target_port,other,target_host}",
                "/m?x=1&target_port=443&target_host=192.0.2.6",
                "/m?x=1&target_port=443&target_host=2001%3Adb8%3A%3A42",
            ),
        ];
        for (text, four, six) in cases {
            let template = Template::parse(text).unwrap();
            assert_eq!(template.to_string(), text);
            assert_eq!(template.check_readable(), Ok(()));
            for (written, path) in [("192.0.2.6:443", four), ("[2001:db8::42]:443", six)] {
                assert_eq!(template.expand(&target(written)), path);
                assert_eq!(template.parse_path(path), Ok(target(written)));
            }
        }
    }

    #[test]
    fn templates_that_the_rfc_forbids_are_rejected() {
        for text in [
            "",
            "/{target_host}/{target_port}/",
            "http://a/{target_host}/{target_port}",
            "https:///{target_host}/{target_port}",
            "https://a",
            "https://a?{target_host}{target_port}",
            "https://{target_host}/{target_port}",
            "https://a/{target_host}",
            "https://a/{target_port}",
            "https://a/{target_host}/{target_port}/{target_port}",
            "https://a/{+target_host}/{target_port}",
            "https://a/{#target_host}/{target_port}",
            "https://a/{.target_host}/{target_port}",
            "https://a{/target_host,target_port}",
            "https://a/x{/target_host,target_port}",
            "https://a/x{;target_host,target_port}",
            "https://a/{target_host*}/{target_port}",
            "https://a/{target_host:3}/{target_port}",
            "https://a/{target_host}/{target_port",
            "https://a/{target_host}/{target_port}}",
            "https://a/{target_host}/{target_port}/{}",
            "https://a/{target_host}/{target_port}/ü",
            "https://a/{target_host}/{target_port}/ x",
            "https://a/{target_host}/{target_port}/%4",
            "https://a/{target_host}/{target_port}#x",
        ] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn template_with_ambiguous_end_of_value_is_unreadable() {
        for text in ["https://a/{target_host}{target_port}", "https://a/{target_host}-{target_port}"] {
            assert!(Template::parse(text).unwrap().check_readable().is_err(), "{text}");
        }
        let template = Template::parse("https://a/{target_host,target_port}").unwrap();
        assert_eq!(template.check_readable(), Ok(()));
        assert_eq!(template.parse_path("/a.example,53"), Ok(target("a.example:53")));
    }

    #[test]
    fn paths_without_a_valid_target_are_rejected() {
        let template = Template::well_known("proxy.example").unwrap();
        let at = |rest: &str| template.parse_path(&format!("/.well-known/masque/udp/{rest}"));
        assert_eq!(template.parse_path("/"), Err(PathError::TemplateMismatch));
        for other in ["a/1", "a/1/x", "a", "", "a/1/?x", "a/b/1/", "a/1,2/"] {
            assert_eq!(at(other), Err(PathError::TemplateMismatch), "{other}");
        }
        for (text, reason) in [
            ("a/0/", TargetError::InvalidPort),
            ("a//", TargetError::InvalidPort),
            ("a/%2B53/", TargetError::InvalidPort),
            ("a/+53/", TargetError::InvalidPort),
            ("a:b/1/", TargetError::InvalidHost),
            ("[::1]/1/", TargetError::InvalidHost),
            ("a/99999/", TargetError::InvalidPort),
            ("a/5%/", TargetError::InvalidPort),
            ("/1/", TargetError::EmptyHost),
            ("%/1/", TargetError::InvalidHost),
            ("fe80%3A%3A1%25eth0/1/", TargetError::ZoneId),
            ("a%2Fb/1/", TargetError::InvalidHost),
            ("%00/1/", TargetError::InvalidHost),
        ] {
            assert_eq!(at(text), Err(PathError::InvalidTarget(reason)), "{text}");
        }
    }

    #[test]
    fn authority_determines_the_proxy_address() {
        for (authority, proxy) in [
            ("a.example", "a.example:443"),
            ("a.example:1", "a.example:1"),
            ("[2001:db8::1]", "[2001:db8::1]:443"),
            ("[2001:db8::1]:5", "[2001:db8::1]:5"),
        ] {
            assert_eq!(Template::well_known(authority).unwrap().proxy_target(), Ok(target(proxy)));
        }
        assert!(Template::well_known("a.example:x").unwrap().proxy_target().is_err());
    }

    proptest! {
        #[test]
        fn expanded_target_is_parsed_unchanged(address in any::<std::net::Ipv6Addr>(), name in "[a-z][a-z0-9-]{0,8}[a-z]", port in 1u16..) {
            for text in ["https://p/{target_host}/{target_port}/", "https://p/m{?target_port,target_host}"] {
                let template = Template::parse(text).unwrap();
                for host in [crate::target::Host::Address(address.into()), crate::target::Host::Name(name.clone())] {
                    let target = Target { host, port };
                    prop_assert_eq!(template.parse_path(&template.expand(&target)), Ok(target));
                }
            }
        }

        #[test]
        fn arbitrary_text_is_parsed_or_rejected(text in any::<String>(), tail in "[a-z{}?&,+:*/%0-9_]{0,30}", path in any::<String>()) {
            let _ = Template::parse(&text);
            if let Ok(template) = Template::parse(&format!("https://a/{{target_host}}/{{target_port}}{tail}")) {
                let _ = template.check_readable();
                let _ = template.parse_path(&path);
                let _ = template.parse_path(&format!("/a/1{tail}"));
            }
        }
    }
}
