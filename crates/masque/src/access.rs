//! The clients of a proxy: the tokens by which it recognizes them, and the limits of each.

use std::fmt;
use subtle::ConstantTimeEq;

/// Limits of one client: of the holder of a token, or of an address if the proxy requires no token. `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Number of concurrent tunnels.
    pub tunnels: Option<u64>,
    /// Payload bytes per second, both directions together.
    pub rate: Option<u64>,
    /// Payload bytes since the start of the proxy, both directions together.
    pub bytes: Option<u64>,
}

impl ClientLimits {
    /// Returns these limits, and those of `defaults` where these have none.
    #[must_use]
    pub fn or(self, defaults: ClientLimits) -> ClientLimits {
        ClientLimits {
            tunnels: self.tunnels.or(defaults.tunnels),
            rate: self.rate.or(defaults.rate),
            bytes: self.bytes.or(defaults.bytes),
        }
    }
}

/// A token: a client that sends its secret has its name and its limits.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// Name of the client, for logs.
    pub name: String,
    /// The secret.
    pub secret: String,
    /// Limits of the client. The proxy's limits apply where it has none.
    pub limits: ClientLimits,
}

impl fmt::Debug for Token {
    /// Omits the secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Token").field("name", &self.name).field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Token {
    /// Returns the token with this secret. It is compared with all tokens in constant time, so that the duration reveals
    /// neither the position of the first difference nor the token. It can reveal the length of a secret.
    #[must_use]
    pub fn find<'a>(tokens: &'a [Token], secret: &[u8]) -> Option<&'a Token> {
        let mut found = None;
        for token in tokens {
            if bool::from(token.secret.as_bytes().ct_eq(secret)) {
                found = Some(token);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str, secret: &str) -> Token {
        Token { name: name.into(), secret: secret.into(), limits: ClientLimits::default() }
    }

    #[test]
    fn token_is_found_by_its_whole_secret() {
        let tokens = [token("a", "one"), token("b", "two")];
        let name = |secret: &str| Token::find(&tokens, secret.as_bytes()).map(|token| &*token.name);
        assert_eq!((name("one"), name("two")), (Some("a"), Some("b")));
        for wrong in ["", "on", "onee", "oNe", "a", "onetwo"] {
            assert_eq!(name(wrong), None, "{wrong}");
        }
        assert_eq!(Token::find(&[], b""), None);
    }

    #[test]
    fn debug_output_of_a_token_has_no_secret() {
        let text = format!("{:?}", token("alice", "s3cret"));
        assert!(text.contains("alice") && !text.contains("s3cret"), "{text}");
    }

    #[test]
    fn limits_of_a_token_precede_those_of_the_proxy() {
        let own = ClientLimits { tunnels: Some(1), rate: None, bytes: Some(3) };
        let defaults = ClientLimits { tunnels: Some(7), rate: Some(8), bytes: None };
        assert_eq!(own.or(defaults), ClientLimits { tunnels: Some(1), rate: Some(8), bytes: Some(3) });
    }
}
