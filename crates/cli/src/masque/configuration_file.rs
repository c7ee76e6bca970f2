//! The configuration file of `masque proxy`: a TOML file whose keys are the options of the command.
//!
//! The file is converted to options, so that each option is declared once: `max_requests = 100` becomes
//! `--max-requests 100`, `allow = ["192.0.2.0/24", "example.org:443"]` two options `--allow`, and `verbose = true` the option
//! `--verbose`. An option of the command line replaces the key. Options that may be repeated are added to those of the file.
//! Relative paths are relative to the folder of the file.

use super::arguments::MasqueArguments;
use crate::exit::Failure;
use clap::{Arg, ArgAction, Args, Command};
use fullpipe::scenario::schema::{self, Error, Errors, Node, NodeContent, Sources, nearest_name};
use std::any::TypeId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The option that names the file.
const OPTION: &str = "--config";

/// An option of a file.
#[derive(Debug)]
struct Entry {
    /// The option, such as `--max-requests`.
    option: String,
    values: Vec<String>,
    kind: Kind,
}

/// What values an option has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// None: it is present or not.
    Flag,
    /// One.
    Single,
    /// One for each occurrence of the option.
    Repeated,
    /// Any number after one occurrence.
    List,
}

impl Kind {
    fn of(option: &Arg) -> Kind {
        match option.get_action() {
            ArgAction::SetTrue => Kind::Flag,
            _ if option.get_num_args().is_some_and(|range| range.max_values() > 1) => Kind::List,
            ArgAction::Append => Kind::Repeated,
            _ => Kind::Single,
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Kind::Flag => "true or false",
            Kind::Single => "a string or an integer",
            Kind::Repeated | Kind::List => "an array of strings",
        }
    }
}

/// Returns the command `masque proxy` without required options, which may be on the command line or in the file.
fn command() -> Command {
    let masque = MasqueArguments::augment_args(Command::new("masque"));
    let proxy = masque.find_subcommand("proxy").expect("it is declared").clone();
    proxy.mut_args(|option| option.required(false))
}

/// Returns the options that a file may contain, with their keys.
fn options(command: &Command) -> Vec<(String, &Arg)> {
    let options = command.get_arguments().filter_map(|option| Some((option.get_long()?, option)));
    let own = options.filter(|(long, _)| !["help", &OPTION[2..]].contains(long));
    own.map(|(long, option)| (long.replace('-', "_"), option)).collect()
}

/// Returns the entries of a table.
fn entries(root: &Node) -> &[schema::Entry] {
    match &root.content {
        NodeContent::Table(entries) => entries,
        _ => &[],
    }
}

/// Returns whether a text is the configuration of a proxy: at least half of its keys are options.
pub(crate) fn is_configuration(text: &str) -> bool {
    let Ok((root, _)) = schema::parse(text, "") else { return false };
    let command = command();
    let options = options(&command);
    let is_option = |entry: &&schema::Entry| options.iter().any(|(option, _)| *option == entry.key);
    let (all, known) = (entries(&root).len(), entries(&root).iter().filter(is_option).count());
    known > 0 && 2 * known >= all
}

/// Returns arguments in which the options of the file precede those of the command line. Other commands are returned
/// unchanged.
///
/// # Errors
/// If the file cannot be read, or contains an unknown key or an invalid value.
pub(crate) fn expand(arguments: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let texts: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let ["masque", "proxy"] = [1, 2].map(|place| texts.get(place).map_or("", String::as_str)) else {
        return Ok(arguments);
    };
    let given = |option: &str| {
        let is_option =
            |text: &String| text == option || text.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
        texts.iter().position(is_option)
    };
    let Some(place) = given(OPTION) else { return Ok(arguments) };
    // Without a value, the command reports what is missing.
    let file = match texts[place].split_once('=') {
        Some((_, file)) => PathBuf::from(file),
        None => match arguments.get(place + 1) {
            Some(file) => PathBuf::from(file),
            None => return Ok(arguments),
        },
    };
    let mut expanded = arguments[..3].to_vec();
    for entry in read(&file)? {
        if entry.kind != Kind::Repeated && given(&entry.option).is_some() {
            continue;
        }
        match entry.kind {
            Kind::Flag => expanded.push(entry.option.into()),
            Kind::Single | Kind::Repeated => {
                expanded.extend(entry.values.iter().map(|value| format!("{}={value}", entry.option).into()));
            }
            Kind::List => {
                expanded.push(entry.option.into());
                expanded.extend(entry.values.into_iter().map(OsString::from));
            }
        }
    }
    expanded.extend_from_slice(&arguments[3..]);
    Ok(expanded)
}

/// Returns the arguments of a proxy whose options are all in a file.
pub(super) fn arguments(file: &Path) -> Vec<OsString> {
    ["fullpipe".into(), "masque".into(), "proxy".into(), OPTION.into(), file.into()].into()
}

fn read(file: &Path) -> Result<Vec<Entry>, Failure> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    let (root, sources) = schema::parse(&text, &name).map_err(Failure::usage)?;
    let command = command();
    let reader = Reader { options: options(&command), command: &command, sources: &sources, folder: file.parent() };
    let mut found = Vec::new();
    let mut errors = Vec::new();
    for entry in entries(&root) {
        match reader.read(entry) {
            Ok(entry) => found.extend(entry),
            Err(error) => errors.push(*error),
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(Failure::usage(Errors(errors))) }
}

/// Converts the keys of a file.
struct Reader<'a> {
    command: &'a Command,
    options: Vec<(String, &'a Arg)>,
    sources: &'a Sources,
    /// The folder of the file.
    folder: Option<&'a Path>,
}

impl Reader<'_> {
    /// Converts a key and its value. A flag that is false has no entry.
    fn read(&self, entry: &schema::Entry) -> Result<Option<Entry>, Box<Error>> {
        let (key, node) = (&entry.key, &entry.node);
        let Some((_, option)) = self.options.iter().find(|(known, _)| known == key) else {
            let keys: Vec<String> = self.options.iter().map(|(key, _)| key.clone()).collect();
            let suggestion = nearest_name(key, keys.iter().map(String::as_str)).map(String::from);
            let error = self.sources.error(entry.key_place, key, format!("unknown key {key}"), keys);
            return Err(Box::new(Error { suggestion, ..error }));
        };
        let kind = Kind::of(option);
        let wrong = |node: &Node| {
            let expected = vec![kind.expected().to_owned()];
            Box::new(self.sources.error(node.place, key, format!("{key} is {}", node.to_toml()), expected))
        };
        let text = |node: &Node| match &node.content {
            NodeContent::Text(text) => Ok(text.clone()),
            NodeContent::Integer(number) => Ok(number.to_string()),
            _ => Err(wrong(node)),
        };
        let values = match (kind, &node.content) {
            (Kind::Flag, NodeContent::Boolean(true)) => Vec::new(),
            (Kind::Flag, NodeContent::Boolean(false)) => return Ok(None),
            (Kind::Single, _) => vec![(text(node)?, node)],
            (Kind::Repeated | Kind::List, NodeContent::Array(nodes)) => {
                nodes.iter().map(|node| text(node).map(|value| (value, node))).collect::<Result<_, _>>()?
            }
            _ => return Err(wrong(node)),
        };
        let name = format!("--{}", key.replace('_', "-"));
        for (value, node) in &values {
            let argument = format!("{name}={value}");
            if let Err(error) = self.command.clone().try_get_matches_from([self.command.get_name(), &argument]) {
                let message = format!("{key} is {}: {}", node.to_toml(), reason(&error));
                return Err(Box::new(self.sources.error(node.place, key, message, Vec::new())));
            }
        }
        let is_path = option.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        let absolute = |(value, _)| match self.folder {
            Some(folder) if is_path => folder.join(value).to_string_lossy().into_owned(),
            _ => value,
        };
        Ok(Some(Entry { option: name, values: values.into_iter().map(absolute).collect(), kind }))
    }
}

/// Returns why a value is invalid.
fn reason(error: &clap::Error) -> String {
    match std::error::Error::source(error) {
        Some(reason) => reason.to_string(),
        None => error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    }
}
