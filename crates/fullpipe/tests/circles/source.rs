//! Reads the modules of a crate from its source files: the items that each module defines and the paths that it uses.
//! Unit tests are excluded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A token of Rust source. Only distinctions that this test needs are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// `::`
    Colons,
    Sign(char),
    /// A string, without its quotation marks.
    Text(String),
    /// A character, a number or a lifetime.
    Literal,
}

impl Token {
    pub(crate) fn is(&self, sign: char) -> bool {
        *self == Token::Sign(sign)
    }

    pub(crate) fn word(&self) -> Option<&str> {
        match self {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// A module.
#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) children: BTreeSet<String>,
    /// Names of the items that the module defines.
    pub(crate) items: BTreeSet<String>,
    /// The paths of each imported name.
    pub(crate) imports: BTreeMap<String, Vec<Vec<String>>>,
    /// Imports without a name (`use a::B as _`).
    pub(crate) unnamed: Vec<Vec<String>>,
    /// Modules and enumerations of glob imports.
    pub(crate) globs: Vec<Vec<String>>,
    /// Paths outside of imports.
    pub(crate) paths: BTreeSet<Vec<String>>,
}

/// The modules of a crate by their paths; the path of the root is empty.
pub(crate) type Modules = BTreeMap<Vec<String>, Module>;

/// Returns the text of a file of the crate by its path.
pub(crate) type Files<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// All modules below a crate's root file.
pub(crate) fn modules(root: &Path, files: Files<'_>) -> Modules {
    let mut modules = Modules::new();
    let text = files(root).unwrap_or_else(|| panic!("{} cannot be read", root.display()));
    let folder = root.parent().expect("a file is in a folder");
    read(Vec::new(), tokens(&text), folder, files, &mut modules);
    modules
}

/// Reads a module and its children. The files of the children are in `folder`.
fn read(path: Vec<String>, tokens: Vec<Token>, folder: &Path, files: Files<'_>, modules: &mut Modules) {
    let mut module = Module::default();
    let tokens = without_tests(&tokens);
    let mut rest = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match (tokens[at].word(), tokens.get(at + 1).and_then(Token::word), tokens.get(at + 2)) {
            (Some("mod"), Some(name), Some(next)) if next.is(';') || next.is('{') => {
                let child = [&path[..], &[name.to_owned()]].concat();
                let inside = folder.join(name);
                module.children.insert(name.to_owned());
                if next.is(';') {
                    let places: [PathBuf; 2] = [folder.join(format!("{name}.rs")), inside.join("mod.rs")];
                    let text = places.iter().find_map(|place| files(place));
                    let text = text.unwrap_or_else(|| panic!("no file for the module {}", child.join("::")));
                    read(child, self::tokens(&text), &inside, files, modules);
                    at += 3;
                } else {
                    let end = group_end(&tokens, at + 2);
                    read(child, tokens[at + 3..end - 1].to_vec(), &inside, files, modules);
                    at = end;
                }
            }
            // `use<'a>` is a bound, not an import.
            (Some("use"), _, _) if !tokens.get(at + 1).is_some_and(|next| next.is('<')) => {
                let end = at + tokens[at..].iter().position(|token| token.is(';')).expect("an import ends");
                import(&mut tokens[at + 1..end].iter().peekable(), &[], &mut module);
                at = end + 1;
            }
            (Some("struct" | "enum" | "fn" | "trait" | "type" | "const" | "static" | "union"), Some(name), _) => {
                module.items.insert(name.to_owned());
                rest.push(tokens[at].clone());
                at += 1;
            }
            _ => {
                rest.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    module.paths = paths(&rest);
    modules.insert(path, module);
}

/// Reads one tree of an import.
pub(crate) fn import(
    tokens: &mut std::iter::Peekable<std::slice::Iter<'_, Token>>,
    before: &[String],
    module: &mut Module,
) {
    let mut path = before.to_vec();
    let mut alias = None;
    while let Some(token) = tokens.next_if(|token| !token.is(',') && !token.is('}')) {
        match token {
            Token::Word(word) if word == "as" => alias = tokens.next().and_then(Token::word).map(str::to_owned),
            Token::Word(word) => path.push(word.clone()),
            Token::Sign('*') => return module.globs.push(path),
            Token::Sign('{') => {
                while tokens.peek().is_some_and(|token| !token.is('}')) {
                    import(tokens, &path, module);
                    tokens.next_if(|token| token.is(','));
                }
                tokens.next();
                return;
            }
            _ => {}
        }
    }
    // `a::{self, B}` imports `a`.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    match alias.as_deref().or(path.last().map(String::as_str)) {
        Some("_") => module.unnamed.push(path),
        Some(name) => module.imports.entry(name.to_owned()).or_default().push(path),
        None => {}
    }
}

/// All paths of one or more names, except fields, methods, and names that follow a generic argument.
fn paths(tokens: &[Token]) -> BTreeSet<Vec<String>> {
    let mut paths = BTreeSet::new();
    let mut at = 0;
    while at < tokens.len() {
        let continues = at > 0 && (tokens[at - 1] == Token::Colons || tokens[at - 1].is('.'));
        let Some(first) = tokens[at].word() else {
            at += 1;
            continue;
        };
        let mut path = vec![first.to_owned()];
        at += 1;
        while let (Some(Token::Colons), Some(Token::Word(next))) = (tokens.get(at), tokens.get(at + 1)) {
            path.push(next.clone());
            at += 2;
        }
        if !continues {
            paths.insert(path);
        }
    }
    paths
}

/// Removes the items with `#[cfg(test)]`. The content of other attributes is kept, because it can contain paths
/// (`value_parser = words::size`).
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let bracket = at + 1 + usize::from(tokens.get(at + 1).is_some_and(|token| token.is('!')));
        if tokens[at].is('#') && tokens.get(bracket).is_some_and(|token| token.is('[')) {
            let end = group_end(tokens, bracket);
            let words: Vec<&str> = tokens[bracket..end].iter().filter_map(Token::word).collect();
            if matches!(words[..], ["cfg", "test" | "doctest"] | ["cfg", "all", "test", ..]) {
                at = item_end(tokens, end);
            } else {
                kept.extend_from_slice(&tokens[bracket + 1..end - 1]);
                at = end;
            }
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The index after the item, field or statement that begins at `begin`.
pub(crate) fn item_end(tokens: &[Token], begin: usize) -> usize {
    let mut words = tokens[begin..].iter().filter_map(Token::word);
    let is_import = words.find(|word| !matches!(*word, "pub" | "crate" | "super" | "in")) == Some("use");
    let mut at = begin;
    let mut is_item = false;
    while at < tokens.len() {
        match &tokens[at] {
            Token::Word(word) => {
                is_item |= matches!(
                    word.as_str(),
                    "mod" | "fn" | "struct" | "enum" | "trait" | "impl" | "const" | "static" | "type" | "use" | "let"
                );
                at += 1;
            }
            Token::Sign('#') if tokens.get(at + 1).is_some_and(|token| token.is('[')) => at = group_end(tokens, at + 1),
            Token::Sign('(' | '[') => at = group_end(tokens, at),
            Token::Sign('{') => {
                at = group_end(tokens, at);
                if !is_import {
                    return at;
                }
            }
            Token::Sign(';') => return at + 1,
            Token::Sign(',') if !is_item => return at + 1,
            Token::Sign('}' | ')' | ']') => return at,
            _ => at += 1,
        }
    }
    at
}

/// The index after the closing bracket of the group that begins at `begin`.
pub(crate) fn group_end(tokens: &[Token], begin: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    panic!("a bracket is not closed")
}

/// The tokens of a source, without comments.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let text: Vec<char> = text.chars().collect();
    let peek = |at: usize| text.get(at).copied().unwrap_or('\0');
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (this, next) = (text[at], peek(at + 1));
        if this == '/' && next == '/' {
            while at < text.len() && text[at] != '\n' {
                at += 1;
            }
        } else if this == '/' && next == '*' {
            let mut depth = 0;
            loop {
                match (peek(at), peek(at + 1)) {
                    ('/', '*') => (depth, at) = (depth + 1, at + 2),
                    ('*', '/') => (depth, at) = (depth - 1, at + 2),
                    _ => at += 1,
                }
                if depth == 0 || at >= text.len() {
                    break;
                }
            }
        } else if let Some(end) = raw_string_end(&text, at).or_else(|| string_end(&text, at)) {
            let literal: String = text[at..end].iter().collect();
            tokens.push(Token::Text(literal.trim_matches('"').to_owned()));
            at = end;
        } else if this == '\'' {
            // In a character literal there is an escape, or the closing quotation mark is two characters later.
            // Otherwise it is a lifetime.
            if next == '\\' {
                at += 3;
                while peek(at) != '\'' {
                    at += 1;
                }
                at += 1;
            } else if peek(at + 2) == '\'' {
                at += 3;
            } else {
                at += 1;
                while peek(at).is_alphanumeric() || peek(at) == '_' {
                    at += 1;
                }
            }
            tokens.push(Token::Literal);
        } else if this.is_alphanumeric() || this == '_' {
            let begin = at;
            while peek(at).is_alphanumeric() || peek(at) == '_' {
                at += 1;
            }
            let word: String = text[begin..at].iter().collect();
            if word == "r" && peek(at) == '#' {
                // A raw identifier, `r#type`: the name follows.
                at += 1;
            } else if this.is_numeric() {
                tokens.push(Token::Literal);
            } else {
                tokens.push(Token::Word(word));
            }
        } else if this == ':' && next == ':' {
            tokens.push(Token::Colons);
            at += 2;
        } else {
            if !this.is_whitespace() {
                tokens.push(Token::Sign(this));
            }
            at += 1;
        }
    }
    tokens
}

/// The index after the string that begins at `begin`: `"…"`, `b"…"` or `c"…"`.
fn string_end(text: &[char], begin: usize) -> Option<usize> {
    let quote = begin + usize::from(matches!(text[begin], 'b' | 'c'));
    if text.get(quote) != Some(&'"') {
        // Not a string; `b'x'` is read as the word `b` and a character.
        return None;
    }
    let mut at = quote + 1;
    while *text.get(at)? != '"' {
        at += 1 + usize::from(text[at] == '\\');
    }
    Some(at + 1)
}

/// The index after the raw string that begins at `begin`: `r"…"`, `r#"…"#`, `br#"…"#`.
fn raw_string_end(text: &[char], begin: usize) -> Option<usize> {
    let mut at = begin + usize::from(matches!(text[begin], 'b' | 'c'));
    if text.get(at) != Some(&'r') {
        return None;
    }
    at += 1;
    let hashes = text[at..].iter().take_while(|character| **character == '#').count();
    at += hashes;
    if text.get(at) != Some(&'"') {
        return None;
    }
    loop {
        at += 1;
        if *text.get(at)? == '"' && text[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
            return Some(at + 1 + hashes);
        }
    }
}
