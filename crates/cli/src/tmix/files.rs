//! Files and folders of traces, and progress when they are read and written.

use super::arguments::TraceArguments;
use super::failure;
use crate::exit::Failure;
use crate::new_file::NewFile;
use fullpipe::tmix::{ConnectionVector, Error, IndexedTrace, Trace, TraceFormat, write_connection};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, IsTerminal};
use std::path::{Path, PathBuf};

/// The extensions of trace files in a folder.
const ENDINGS: [&str; 4] = ["org", "orig", "alt", "cvec"];

/// A file that is open for reading.
pub(super) struct InputFile {
    pub(super) reader: BufReader<File>,
    /// Its length in bytes, if the system reports it.
    pub(super) length: u64,
}

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> Result<InputFile, Failure> {
    let name = path.display();
    let file = File::open(path).map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    let about = file.metadata().map_err(|error| Failure::machine(format!("{name}: {error}")))?;
    if about.is_dir() {
        return Err(Failure::usage(format!("{name} is a folder; expected a trace file")));
    }
    Ok(InputFile { reader: BufReader::with_capacity(1 << 16, file), length: about.len() })
}

/// Returns whether two paths refer to the same file.
pub(super) fn same(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

/// Opens and indexes the traces in files and folders. Their names must be distinct, because random streams are named
/// after them.
pub(super) fn open_traces(paths: &[PathBuf], reading: &TraceArguments) -> Result<Vec<IndexedTrace>, Failure> {
    let mut traces = Vec::new();
    let mut names = BTreeSet::new();
    for path in trace_files(paths)? {
        if !reading.quiet {
            eprintln!("reading {}", path.display());
        }
        open(&path)?;
        let trace = IndexedTrace::open(&path, reading.skip_bad).map_err(failure)?;
        tell_skipped(&path.display().to_string(), trace.skipped(), trace.first_skipped());
        if !names.insert(trace.name().to_string()) {
            return Err(Failure::usage(format!("duplicate trace name {}", trace.name())));
        }
        traces.push(trace);
    }
    Ok(traces)
}

fn trace_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let refused = |error| Failure::machine(format!("{}: {error}", path.display()));
        let entries = fs::read_dir(path).map_err(refused)?.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let mut found: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).filter(|path| is_trace(path)).collect();
        if found.is_empty() {
            let endings = ENDINGS.join(", .");
            return Err(Failure::usage(format!("{} has no traces (.{endings})", path.display())));
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

fn is_trace(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

/// Creates a folder for files with these names. A folder with other files is rejected.
pub(super) fn folder_for(folder: &Path, names: &[String]) -> Result<(), Failure> {
    let name = folder.display();
    if let Ok(entries) = fs::read_dir(folder) {
        for entry in entries.flatten() {
            if !names.iter().any(|known| entry.file_name() == known.as_str()) {
                return Err(Failure::usage(format!(
                    "{name} contains {:?}; expected an empty or new folder",
                    entry.file_name()
                )));
            }
        }
    }
    fs::create_dir_all(folder).map_err(|error| Failure::machine(format!("cannot create {name}: {error}")))
}

/// Prints the number of malformed connections that were skipped, and the error of the first one.
pub(super) fn tell_skipped(name: &str, skipped: u64, first: Option<&Error>) {
    if let Some(first) = first {
        eprintln!("{name}: {skipped} malformed connections left out, the first: {first}");
    }
}

/// A file that gets its final name when it is complete.
pub(super) struct OutputFile {
    name: String,
    file: NewFile,
}

impl OutputFile {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let file = NewFile::create(path, ".partial").map_err(|error| refused(&name, error))?;
        Ok(OutputFile { name, file })
    }

    pub(super) fn write(&mut self, connection: &ConnectionVector, format: TraceFormat) -> Result<(), Failure> {
        write_connection(&mut self.file.writer, connection, format, &self.name).map_err(failure)
    }

    pub(super) fn finish(self) -> Result<(), Failure> {
        self.file.finish().map_err(|error| refused(&self.name, error))
    }
}

fn refused(name: &str, error: io::Error) -> Failure {
    Failure::machine(format!("cannot write {name}: {error}"))
}

/// The progress of reading or writing a file.
pub(super) struct ProgressCounter {
    quiet: bool,
    bar: Option<ProgressBar>,
    calls: u32,
}

impl ProgressCounter {
    /// Creates the progress of an operation that ends at `total`.
    pub(super) fn new(quiet: bool, what: &str, total: u64) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(total);
            // The template is constant. If it were invalid, the bar would have the default style.
            if let Ok(style) = ProgressStyle::with_template("{bar:40} {percent:>3} %, {eta} left  {msg}") {
                bar.set_style(style);
            }
            bar.set_message(what.to_string());
            bar
        });
        ProgressCounter { quiet, bar, calls: 0 }
    }

    /// Sets the current position.
    pub(super) fn at(&mut self, position: u64) {
        self.calls = self.calls.wrapping_add(1);
        // Drawing takes longer than the counted work.
        if let Some(bar) = self.bar.as_ref().filter(|_| self.calls % 256 == 1) {
            bar.set_position(position);
        }
    }

    /// Ends the progress with this line.
    pub(super) fn done(&self, line: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if !self.quiet {
            eprintln!("{line}");
        }
    }
}
