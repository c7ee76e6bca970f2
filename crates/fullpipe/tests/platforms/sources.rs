//! The rules for sources.

use crate::manifests::{Manifest, Systems};
use crate::predicate::{Gate, has_effect_outside_linux, split};
use crate::source::{Files, Module, Token, group_end, import, item_end, tokens};
use std::path::{Path, PathBuf};

/// Parts of the standard library and of portable crates that some systems lack. The first entry that is a prefix of a
/// path applies.
const PARTS: &[(&str, Systems)] = &[
    ("std::os::fd", Systems::Unix),
    ("std::os::unix", Systems::Unix),
    // All other parts, and the folder itself, from which another path could begin.
    ("std::os", Systems::Linux),
    ("signal_hook::consts::SIGPIPE", Systems::Unix),
    ("signal_hook::iterator", Systems::Unix),
    ("tokio::net::unix", Systems::Unix),
    ("tokio::net::UnixDatagram", Systems::Unix),
    ("tokio::net::UnixListener", Systems::Unix),
    ("tokio::net::UnixStream", Systems::Unix),
    ("tokio::signal::unix", Systems::Unix),
];

/// The parts of a crate for `cfg(unix)` that all Unix systems have.
const UNIX_PARTS: &[&str] = &["rustix::param", "rustix::time"];

/// The sources below a root file.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) files: usize,
    /// Paths: the file, the path and the builds that contain it.
    paths: Vec<(PathBuf, Vec<String>, Gate)>,
    /// Predicates with which the feature `real-time` has an effect outside Linux.
    effects: Vec<PathBuf>,
}

/// Reads the sources below a root file.
pub(crate) fn read(root: &Path, files: Files<'_>) -> Found {
    let mut found = Found::default();
    let folder = root.parent().expect("a file is in a folder");
    let text = files(root).unwrap_or_else(|| panic!("{} cannot be read", root.display()));
    Reader { file: root, folder, files, found: &mut found }.file(&text, Gate::default());
    found
}

struct Reader<'a> {
    file: &'a Path,
    /// The folder of the module's children.
    folder: &'a Path,
    files: Files<'a>,
    found: &'a mut Found,
}

impl Reader<'_> {
    fn file(&mut self, text: &str, gate: Gate) {
        self.found.files += 1;
        self.read(&tokens(text), gate);
    }

    /// Reads the tokens that the builds of `gate` contain.
    fn read(&mut self, tokens: &[Token], mut gate: Gate) {
        let mut at = 0;
        while at < tokens.len() {
            let is_inner = tokens.get(at + 1).is_some_and(|token| token.is('!'));
            let bracket = at + 1 + usize::from(is_inner);
            let next = tokens.get(at + 1);
            match (&tokens[at], tokens[at].word()) {
                (sign, _) if sign.is('#') && tokens.get(bracket).is_some_and(|token| token.is('[')) => {
                    let end = group_end(tokens, bracket);
                    let attribute = self.attribute(&tokens[bracket + 1..end - 1], gate);
                    if is_inner {
                        gate = gate.and(attribute);
                        at = end;
                    } else if attribute == Gate::default() {
                        at = end;
                    } else {
                        let item = item_end(tokens, end);
                        self.read(&tokens[end..item], gate.and(attribute));
                        at = item;
                    }
                }
                (_, Some("cfg")) if is_inner && tokens.get(at + 2).is_some_and(|token| token.is('(')) => {
                    let end = group_end(tokens, at + 2);
                    self.predicate(&tokens[at + 3..end - 1]);
                    at = end;
                }
                (_, Some("mod")) if tokens.get(at + 2).is_some_and(|token| token.is(';') || token.is('{')) => {
                    let name = next.and_then(Token::word).expect("a module has a name");
                    at = self.module(name, tokens, at + 2, gate);
                }
                (_, Some("use")) if !next.is_some_and(|next| next.is('<')) => {
                    let end = at + tokens[at..].iter().position(|token| token.is(';')).expect("an import ends");
                    let mut module = Module::default();
                    import(&mut tokens[at + 1..end].iter().peekable(), &[], &mut module);
                    let paths = module.imports.into_values().flatten().chain(module.unnamed).chain(module.globs);
                    paths.for_each(|path| self.path(path, gate));
                    at = end + 1;
                }
                (_, Some(first)) => {
                    let mut path = vec![first.to_owned()];
                    at += 1;
                    while let (Some(Token::Colons), Some(Token::Word(next))) = (tokens.get(at), tokens.get(at + 1)) {
                        path.push(next.clone());
                        at += 2;
                    }
                    // A single name is a variable, a field or an item of the module.
                    if path.len() > 1 {
                        self.path(path, gate);
                    }
                }
                _ => at += 1,
            }
        }
    }

    /// Reads a module, and returns the index after it.
    fn module(&mut self, name: &str, tokens: &[Token], at: usize, gate: Gate) -> usize {
        let folder = self.folder.join(name);
        if tokens[at].is('{') {
            let end = group_end(tokens, at);
            let mut reader = Reader { file: self.file, folder: &folder, files: self.files, found: self.found };
            reader.read(&tokens[at + 1..end - 1], gate);
            return end;
        }
        let places = [self.folder.join(format!("{name}.rs")), folder.join("mod.rs")];
        let found = places.iter().find_map(|place| Some((place, (self.files)(place)?)));
        let (file, text) = found.unwrap_or_else(|| panic!("{}: no file for `mod {name}`", self.file.display()));
        Reader { file, folder: &folder, files: self.files, found: self.found }.file(&text, gate);
        at + 1
    }

    /// Reads the content of an attribute. Returns the builds that contain the item with the attribute.
    fn attribute(&mut self, content: &[Token], gate: Gate) -> Gate {
        match content {
            [first, open, predicate @ .., _] if first.word() == Some("cfg") && open.is('(') => {
                self.predicate(predicate);
                Gate::of(predicate)
            }
            [first, open, inner @ .., _] if first.word() == Some("cfg_attr") && open.is('(') => {
                split(inner).first().into_iter().for_each(|predicate| self.predicate(predicate));
                Gate::default()
            }
            // Other attributes can contain paths, such as functions that parse arguments.
            _ => {
                self.read(content, gate);
                Gate::default()
            }
        }
    }

    fn predicate(&mut self, predicate: &[Token]) {
        if has_effect_outside_linux(predicate) {
            self.found.effects.push(self.file.to_owned());
        }
    }

    fn path(&mut self, path: Vec<String>, gate: Gate) {
        self.found.paths.push((self.file.to_owned(), path, gate));
    }
}

/// Returns the number of paths that some systems lack, and the paths that are used without the required `cfg`.
pub(crate) fn check(found: &Found, manifest: &Manifest) -> (usize, Vec<String>) {
    let mut wrong: Vec<String> = Vec::new();
    for file in &found.effects {
        wrong.push(format!(
            "{}: the feature `real-time` has an effect outside Linux: write `all(feature = \"real-time\", target_os = \"linux\")`",
            file.display()
        ));
    }
    let mut restricted = 0;
    for (file, path, gate) in found.paths.iter().filter(|(_, _, gate)| !gate.test) {
        let Some(systems) = systems(path, manifest) else { continue };
        restricted += 1;
        let (is_allowed, needed) = match systems {
            Systems::All => (true, ""),
            Systems::Unix => (gate.unix || gate.linux, "#[cfg(unix)]"),
            Systems::Linux => {
                (gate.real_time && gate.linux, "#[cfg(all(feature = \"real-time\", target_os = \"linux\"))]")
            }
        };
        if !is_allowed {
            wrong.push(format!("{}: `{}` needs {needed}", file.display(), path.join("::")));
        }
    }
    (restricted, wrong)
}

/// The systems that have the item of a path; `None`: all systems.
fn systems(path: &[String], manifest: &Manifest) -> Option<Systems> {
    let begins_with = |part: &str| {
        let names: Vec<&str> = part.split("::").collect();
        path.len() >= names.len() && names.iter().zip(path).all(|(name, found)| name == found)
    };
    if let Some((_, systems)) = PARTS.iter().find(|(part, _)| begins_with(part)) {
        return Some(*systems);
    }
    let of_crate = manifest.dependencies.iter().filter(|(name, ..)| name.replace('-', "_") == path[0]);
    // A crate can be a dependency for several systems.
    let systems = of_crate.map(|(_, systems, _)| *systems).min()?;
    match systems {
        Systems::All => None,
        Systems::Unix if UNIX_PARTS.iter().any(|part| begins_with(part)) => Some(Systems::Unix),
        Systems::Unix | Systems::Linux => Some(Systems::Linux),
    }
}
