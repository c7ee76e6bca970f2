//! `fullpipe init`: writes a commented scenario or study file as a starting point.

use crate::exit::Failure;
use fullpipe::scenario::schema::nearest_name;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A template of a scenario or study file.
pub(crate) struct Template {
    pub(crate) name: &'static str,
    /// Its subject, for `fullpipe list templates`.
    pub(crate) summary: &'static str,
    text: &'static str,
    /// The command that runs the file.
    command: &'static str,
    /// Additional options that the command needs.
    options: &'static str,
    /// Whether this build can run it.
    is_supported: bool,
}

pub(crate) const TEMPLATES: [Template; 6] = [
    Template {
        name: "dumbbell",
        summary: "two congestion controls share a bottleneck",
        text: include_str!("../templates/dumbbell.toml"),
        command: "run",
        options: "",
        is_supported: true,
    },
    Template {
        name: "home-link",
        summary: "a call, web pages and an upload on a home access link",
        text: include_str!("../templates/home-link.toml"),
        command: "run",
        options: "",
        is_supported: true,
    },
    Template {
        name: "lte",
        summary: "downloads to four UEs of an LTE cell",
        text: include_str!("../templates/lte.toml"),
        command: "run",
        options: "",
        is_supported: true,
    },
    Template {
        name: "masque",
        summary: "two QUIC uploads, one of them through a CONNECT-UDP proxy",
        text: include_str!("../templates/masque.toml"),
        command: "run",
        options: "",
        is_supported: cfg!(feature = "stack"),
    },
    Template {
        name: "sweep",
        summary: "a study: three congestion controls with four sizes of the queue",
        text: include_str!("../templates/sweep.toml"),
        command: "study run",
        options: " --quick",
        is_supported: true,
    },
    Template {
        name: "real-programs",
        summary: "curl and a web server over a lossy link, in real time",
        text: include_str!("../templates/real-programs.toml"),
        command: "run",
        options: " --real-time",
        is_supported: cfg!(all(feature = "real-time", target_os = "linux")),
    },
];

/// Returns the names of the templates, for messages.
pub(crate) fn names() -> String {
    TEMPLATES.each_ref().map(|template| template.name).join(", ")
}

/// Writes a template into a new file.
pub(crate) fn init(name: Option<&str>, file: Option<&Path>) -> Result<(), Failure> {
    let Some(name) = name else {
        let list: Vec<String> =
            TEMPLATES.iter().map(|template| format!("\n  {:14} {}", template.name, template.summary)).collect();
        return Err(Failure::usage(format!("name a template, such as `fullpipe init dumbbell`:{}", list.concat())));
    };
    let known = TEMPLATES.iter().map(|template| template.name);
    let Some(template) = TEMPLATES.iter().find(|template| template.name == name) else {
        let hint = match name.strip_suffix(".toml") {
            Some(stem) => {
                let template = nearest_name(stem, known).unwrap_or("dumbbell");
                format!("; the template precedes the file: `fullpipe init {template} {name}`")
            }
            None => nearest_name(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?")),
        };
        return Err(Failure::usage(format!("unknown template `{name}`{hint} (one of: {})", names())));
    };
    let file = file.map_or_else(|| PathBuf::from(format!("{name}.toml")), Path::to_owned);
    let shown = file.display();
    let created = OpenOptions::new().write(true).create_new(true).open(&file);
    let mut created = created.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::usage(format!(
            "{shown} already exists and is not overwritten; name another file: `fullpipe init {name} FILE`"
        )),
        _ => Failure::machine(format!("{shown}: {error}")),
    })?;
    // The comments contain the name of the file.
    let text = template.text.replace(&format!("{name}.toml"), &shown.to_string());
    created.write_all(text.as_bytes()).map_err(|error| Failure::machine(format!("{shown}: {error}")))?;
    // The cargo alias of the repository that builds all features.
    let program = if template.is_supported { "fullpipe" } else { "cargo fullpipe-all" };
    eprintln!("wrote {shown}; run it by `{program} {} {shown}{} --open`", template.command, template.options);
    Ok(())
}
