//! The tokens of `masque proxy`: one of the command line, those of a TOML file, and those of environment variables.
//!
//! A file has one table for each client. Its name is that of the client:
//!
//! ```toml
//! [alice]
//! secret = "..."
//! tunnels = 10
//! rate = "10Mbit/s"
//! bytes = "10GB"
//! ```

use super::arguments::ProxyArguments;
use super::words;
use crate::exit::Failure;
use fullpipe::scenario::schema::{self, Error, Errors, Node, NodeContent, SourceLocation, Sources, nearest_name};
use fullpipe_masque::access::{ClientLimits, Token};
use std::path::Path;

/// Name of the client with the token of the command line.
const COMMAND_LINE: &str = "token";

/// The keys of a client.
const KEYS: [&str; 4] = ["secret", "tunnels", "rate", "bytes"];

/// Returns all tokens of a proxy.
///
/// # Errors
/// If a file or a variable cannot be read or is invalid, or if two clients have the same name or the same secret.
pub(super) fn all(arguments: &ProxyArguments) -> Result<Vec<Token>, Failure> {
    let token = |name: &str, secret: String| Token { name: name.into(), secret, limits: ClientLimits::default() };
    let mut tokens = Vec::new();
    tokens.extend(arguments.token.clone().map(|secret| token(COMMAND_LINE, secret)));
    for variable in &arguments.token_env {
        tokens.push(token(variable, from_environment(variable)?));
    }
    if let Some(file) = &arguments.token_file {
        tokens.extend(read(file)?);
    }
    for (index, token) in tokens.iter().enumerate() {
        for earlier in &tokens[..index] {
            // The message must not contain a secret.
            let what = match (earlier.name == token.name, earlier.secret == token.secret) {
                (true, _) => "the same name",
                (_, true) => "the same secret",
                _ => continue,
            };
            return Err(Failure::usage(format!("the tokens {} and {} have {what}", earlier.name, token.name)));
        }
    }
    Ok(tokens)
}

/// Returns the secret in an environment variable.
fn from_environment(variable: &str) -> Result<String, Failure> {
    let reason = match std::env::var(variable) {
        Ok(secret) => match words::secret(&secret) {
            Ok(secret) => return Ok(secret),
            Err(reason) => reason,
        },
        Err(std::env::VarError::NotPresent) => "it is not set".into(),
        Err(std::env::VarError::NotUnicode(_)) => "expected ASCII characters without spaces".into(),
    };
    Err(Failure::usage(format!("the environment variable {variable} has no token: {reason}")))
}

fn read(file: &Path) -> Result<Vec<Token>, Failure> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    parse(&text, &name).map_err(Failure::usage)
}

fn parse(text: &str, name: &str) -> Result<Vec<Token>, Errors> {
    let (root, sources) = schema::parse(text, name)?;
    let NodeContent::Table(clients) = &root.content else { return Ok(Vec::new()) };
    let mut errors = Vec::new();
    let mut tokens = Vec::new();
    for client in clients {
        let reader = Reader { sources: &sources, client: &client.key };
        match reader.read(client.key_place, &client.node) {
            Ok(token) => tokens.push(token),
            Err(found) => errors.extend(found),
        }
    }
    if tokens.is_empty() && errors.is_empty() {
        let expected = vec!["a table with the name of a client, such as [alice]".to_owned()];
        errors.push(sources.error(root.place, "", "the file has no token", expected));
    }
    if errors.is_empty() { Ok(tokens) } else { Err(Errors(errors)) }
}

/// Reads the table of one client.
struct Reader<'a> {
    sources: &'a Sources,
    client: &'a str,
}

impl Reader<'_> {
    fn error(&self, place: SourceLocation, key: &str, message: String, expected: &str) -> Error {
        let path = if key.is_empty() { self.client.to_owned() } else { format!("{}.{key}", self.client) };
        self.sources.error(place, &path, message, vec![expected.to_owned()])
    }

    fn read(&self, place: SourceLocation, node: &Node) -> Result<Token, Vec<Error>> {
        let client = self.client;
        if client.is_empty() || !client.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') {
            let expected = "ASCII characters without spaces and colons";
            return Err(vec![self.error(place, "", format!("the name of a client is {client:?}"), expected)]);
        }
        let NodeContent::Table(entries) = &node.content else {
            // The value may be a secret, so the message omits it.
            let message = format!("{client} is not a table");
            return Err(vec![self.error(node.place, "", message, "a table with the key secret")]);
        };
        let mut token = Token { name: client.into(), secret: String::new(), limits: ClientLimits::default() };
        let mut errors = Vec::new();
        for entry in entries {
            if let Err(error) = self.set(&mut token, entry) {
                errors.push(*error);
            }
        }
        if errors.is_empty() && token.secret.is_empty() {
            errors.push(self.error(place, "secret", format!("{client} has no secret"), "the key secret"));
        }
        if errors.is_empty() { Ok(token) } else { Err(errors) }
    }

    fn set(&self, token: &mut Token, entry: &schema::Entry) -> Result<(), Box<Error>> {
        let (key, node) = (&*entry.key, &entry.node);
        let text = match &node.content {
            NodeContent::Text(text) => Some(text.clone()),
            NodeContent::Integer(number) => Some(number.to_string()),
            _ => None,
        };
        let parse = |parser: fn(&str) -> Result<u64, String>| {
            let text = text.as_deref().ok_or_else(|| "expected a string or an integer".to_owned());
            text.and_then(parser).map(Some).map_err(|expected| {
                let message = format!("{}.{key} is {}: {expected}", self.client, node.to_toml());
                Box::new(self.sources.error(node.place, &format!("{}.{key}", self.client), message, Vec::new()))
            })
        };
        match key {
            // The message must not contain the secret.
            "secret" => match (&node.content, text.as_deref().map(words::secret)) {
                (NodeContent::Text(_), Some(Ok(secret))) => token.secret = secret,
                _ => {
                    let message = format!("{}.secret is invalid", self.client);
                    let expected = "a string of ASCII characters without spaces";
                    return Err(Box::new(self.error(node.place, key, message, expected)));
                }
            },
            "tunnels" => token.limits.tunnels = parse(words::count)?,
            "rate" => token.limits.rate = parse(words::rate)?,
            "bytes" => token.limits.bytes = parse(words::bytes)?,
            _ => {
                let suggestion = nearest_name(key, KEYS).map(String::from);
                let keys = KEYS.map(String::from).to_vec();
                let path = format!("{}.{key}", self.client);
                let error = self.sources.error(entry.key_place, &path, format!("unknown key {path}"), keys);
                return Err(Box::new(Error { suggestion, ..error }));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_has_a_table_with_secret_and_limits_for_each_client() {
        let tokens = parse(
            "[alice]\nsecret = 'one'\ntunnels = 10\nrate = '8Mbit/s'\nbytes = '10GB'\n[\"bob@example.org\"]\nsecret = 'two'\n",
            "tokens.toml",
        )
        .unwrap();
        let limits = ClientLimits { tunnels: Some(10), rate: Some(1_000_000), bytes: Some(10_000_000_000) };
        assert_eq!(tokens[0], Token { name: "alice".into(), secret: "one".into(), limits });
        assert_eq!((&*tokens[1].name, tokens[1].limits), ("bob@example.org", ClientLimits::default()));
    }

    #[test]
    fn errors_of_a_file_have_the_line_and_no_secret() {
        for (text, expected) in [
            ("", "the file has no token"),
            ("alice = 's3cret'\n", "tokens.toml:1:9: alice is not a table"),
            ("[alice]\nsecret = 's3 cret'\n", "tokens.toml:2:10: alice.secret is invalid; expected a string of ASCII"),
            ("[alice]\nsecret = 53\n", "tokens.toml:2:10: alice.secret is invalid"),
            ("[alice]\ntunnels = 1\n", "alice has no secret"),
            (
                "[alice]\nsecret = 's3cret'\nrate = '1MB/s'\n",
                "tokens.toml:3:8: alice.rate is \"1MB/s\": expected a rate",
            ),
            ("[alice]\nsecret = 's3cret'\ntunnels = 0\n", "alice.tunnels is 0: expected a number from 1"),
            ("[alice]\nsecret = 's3cret'\nbytes = true\n", "alice.bytes is true: expected a string or an integer"),
            ("[alice]\nsecert = 's3cret'\n", "tokens.toml:2:1: unknown key alice.secert; did you mean secret?"),
            ("['a b']\nsecret = 's3cret'\n", "the name of a client is \"a b\""),
        ] {
            let found = parse(text, "tokens.toml").unwrap_err().to_string();
            assert!(found.contains(expected), "{text}\n{found}\n{expected}");
            assert!(!found.contains("s3cret") && !found.contains("s3 cret"), "{found}");
        }
    }
}
