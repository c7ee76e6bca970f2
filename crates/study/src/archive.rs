//! The folder of records. A run is either stored completely under its key or not at all. The remains of an interruption
//! are removed, and a folder with other content is rejected.
//!
//! ```text
//! DIR/study.toml  results.csv  summary.csv  runs/KEY/{run.json, flows.csv, series.csv, ...}
//! ```
//!
//! A folder belongs to a study if its `study.toml` begins with Fullpipe's first line and has the study's name. For the
//! run of a single scenario, the title must also be equal, because different scenarios often have the same name.
//! Finished runs with matching keys are then reused, regardless of other changes, and the tables are written again. If
//! the study's text or the build changed, the old tables and the report are removed first. The folder thus never
//! contains tables of another study.

use crate::error::StudyError;
use crate::files::{FileOperationError, FileSystem, UNFINISHED};
use crate::port::{RunFileSink, RunOptions, RunRecords};
use crate::tables::{MetricTables, TABLES, WantedRows};
use fullpipe_archive::{
    COMPLETIONS, CPU, CpuRow, EXPECTATIONS, FINDINGS, FLOW_SUMMARY, FLOWS, MATRIX, PacketCapture, ROBUSTNESS, Results,
    RunOptionsRecord, RunRecord, SERIES, SUMMARY, StudyRecord,
};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The file that names the shard of a folder.
pub(crate) const SHARD_FILE: &str = "shard.json";

/// The verdicts of a study that was repeated under several study seeds, as a Markdown table.
pub(crate) const ROBUSTNESS_PAGE: &str = "robustness.md";

/// The location of the files that a run writes during its execution.
pub(crate) struct UnfinishedRun {
    pub(crate) attach: RunFileSink,
    /// Set when the first data is written.
    begun: Arc<OnceLock<()>>,
}

/// An open folder of records.
pub(crate) struct Archive {
    folder: PathBuf,
    files: FileSystem,
    /// CPU time of runs in seconds, by key, from an existing `cpu.csv`. The file is read on demand, because it has a
    /// row for each run of the folder and only earlier runs need it.
    cpu_before: OnceLock<BTreeMap<String, f64>>,
    /// CPU time in seconds of runs that were made after the folder was opened, by key.
    cpu: Mutex<BTreeMap<String, f64>>,
    /// The lock of the folder, held for the lifetime of this value if the system supports it.
    _lock: Option<File>,
}

/// A finished run.
#[derive(Debug)]
pub(crate) struct StoredRun {
    /// The contents of the tables that metrics use, by file name, without samples.
    pub(crate) tables: BTreeMap<&'static str, Vec<u8>>,
    pub(crate) run: RunRecord,
}

impl StoredRun {
    /// Returns whether the run fell behind real time: it has a lateness record that does not state that the run was on
    /// time.
    pub(crate) fn is_late(&self) -> bool {
        self.run.lateness.as_ref().is_some_and(|lateness| !lateness.on_time)
    }
}

impl Archive {
    /// Opens or creates a folder for a study whose resolved text is `study_text`.
    pub(crate) fn open(folder: &Path, study_text: &str, files: FileSystem) -> Result<Self, StudyError> {
        let study_file = folder.join(StudyRecord::FILE);
        match std::fs::metadata(folder) {
            Ok(metadata) if !metadata.is_dir() => {
                return Err(StudyError::Folder(format!("{} is not a folder", folder.display())));
            }
            Ok(_) => {
                let before = files.read(&study_file)?;
                refuse_foreign(folder, study_text, before.as_deref(), &files)?;
            }
            Err(_) => files.create_folder(folder)?,
        }
        let lock = lock(folder)?;
        let runs = folder.join("runs");
        files.clean(folder)?;
        if files.read(&study_file)?.as_deref() != Some(study_text.as_bytes()) {
            for stale in [
                SUMMARY.file,
                FLOW_SUMMARY.file,
                EXPECTATIONS.file,
                MATRIX.file,
                FINDINGS.file,
                Results::FILE,
                ROBUSTNESS.file,
                ROBUSTNESS_PAGE,
                SHARD_FILE,
                "report.html",
                "plots",
            ] {
                files.remove(&folder.join(stale))?;
            }
            files.replace(folder, &[(StudyRecord::FILE, study_text.as_bytes())])?;
        }
        files.create_folder(&runs)?;
        let (cpu_before, cpu) = (OnceLock::new(), Mutex::default());
        Ok(Archive { folder: folder.to_owned(), files, cpu_before, cpu, _lock: lock })
    }

    /// Returns an existing folder of records to read from. Nothing is changed or locked: a run is either complete under
    /// its key or not there.
    pub(crate) fn to_read(folder: &Path, files: FileSystem) -> Self {
        let (cpu_before, cpu) = (OnceLock::new(), Mutex::default());
        Archive { folder: folder.to_owned(), files, cpu_before, cpu, _lock: None }
    }

    fn run_folder(&self, key: &str) -> PathBuf {
        self.folder.join("runs").join(key)
    }

    /// Returns the location of a run's files until the run is complete. It is separate from finished runs, because
    /// there may be thousands of them to list.
    fn unfinished(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{UNFINISHED}{key}"))
    }

    /// Returns the run with this key, if it is complete and has all that `options` require.
    pub(crate) fn find(&self, key: &str, options: &RunOptions) -> Result<Option<StoredRun>, FileOperationError> {
        let folder = self.run_folder(key);
        let file = folder.join(RunRecord::FILE);
        let Some(run) = self.files.read(&file)?.and_then(|bytes| RunRecord::parse(&file, &bytes).ok()) else {
            return Ok(None);
        };
        if run.key != key || !serves(&run.options, &wanted(options)) {
            return Ok(None);
        }
        let mut tables = BTreeMap::new();
        for name in TABLES {
            tables.extend(self.files.read(&folder.join(name))?.map(|content| (name, content)));
        }
        Ok(tables.contains_key(FLOWS.file).then_some(StoredRun { tables, run }))
    }

    /// Returns the tables of a finished run, with the rows of long tables in `wanted`.
    pub(crate) fn tables(&self, finished: &StoredRun, wanted: &WantedRows) -> Result<MetricTables, String> {
        let mut tables = MetricTables::parse(&finished.tables).map_err(|error| error.to_string())?;
        let open = |name: &str| {
            let file = self.files.open(&self.run_folder(&finished.run.key).join(name));
            file.map_err(|refused| refused.to_string())
        };
        if !wanted.series.is_empty()
            && let Some(file) = open(SERIES.file)?
        {
            tables = tables.with_series(file, wanted).map_err(|error| error.to_string())?;
        }
        if !wanted.completions.is_empty()
            && let Some(file) = open(COMPLETIONS.file)?
        {
            tables = tables.with_completions(file, wanted).map_err(|error| error.to_string())?;
        }
        Ok(tables)
    }

    /// Returns a location for the files that the run with this key may write during its execution. [`Archive::store`]
    /// keeps these files, and [`Archive::discard`] removes them.
    pub(crate) fn begin(&self, key: &str) -> UnfinishedRun {
        let place = Arc::new(OnceLock::new());
        let (files, folder, begun) = (self.files.clone(), self.unfinished(key), place.clone());
        let attach = RunFileSink::new(move |name, bytes| {
            let other = |refused: FileOperationError| io::Error::other(refused.to_string());
            // Most runs write no files during their execution. Those that do use only one thread for this.
            if begun.get().is_none() {
                files.begin(&folder).map_err(other)?;
                let _ = begun.set(());
            }
            files.append(&folder.join(name), bytes).map_err(other)
        });
        UnfinishedRun { attach, begun: place }
    }

    /// Returns the SHA-256 of the files of the run with this key that metrics use; `None` if one cannot be read.
    pub(crate) fn digest(&self, key: &str) -> Option<[u8; 32]> {
        let folder = self.run_folder(key);
        let mut hash = Sha256::new();
        for name in TABLES.into_iter().chain([SERIES.file, COMPLETIONS.file]) {
            if let Some(mut file) = self.files.open(&folder.join(name)).ok()? {
                hash.update(name.as_bytes());
                hash.update(file.metadata().ok()?.len().to_le_bytes());
                io::copy(&mut file, &mut hash).ok()?;
            }
        }
        Some(hash.finalize().into())
    }

    /// Removes the files of an unfinished run with this key.
    pub(crate) fn discard(&self, key: &str) -> Result<(), FileOperationError> {
        self.files.remove(&self.unfinished(key))
    }

    /// Stores a run, together with the further files that it has written to its location.
    pub(crate) fn store(
        &self,
        key: &str,
        build: &str,
        seed: u64,
        options: &RunOptions,
        records: RunRecords,
        place: &UnfinishedRun,
    ) -> Result<StoredRun, FileOperationError> {
        let (key, build) = (key.to_owned(), build.to_owned());
        let run = RunRecord { key, build, seed, options: wanted(options), ..records.run };
        let cpu_s = records.cpu_s;
        let mut content = records.files;
        content.push((RunRecord::FILE.to_owned(), run.to_bytes()));
        let begun = place.begun.get().is_some();
        self.files.publish(&self.unfinished(&run.key), &self.run_folder(&run.key), &content, begun)?;
        if let Some(cpu_s) = cpu_s {
            self.note_cpu(&run.key, cpu_s)?;
        }
        let of_metrics = |name: &String| TABLES.into_iter().find(|known| known == name);
        let tables = content.into_iter().filter_map(|(name, content)| Some((of_metrics(&name)?, content)));
        Ok(StoredRun { tables: tables.collect(), run })
    }

    /// Copies a finished run with its CPU time from another folder of records.
    pub(crate) fn copy_run(&self, key: &str, from: &Archive) -> Result<(), FileOperationError> {
        let unfinished = self.unfinished(key);
        self.files.copy_folder(&from.run_folder(key), &unfinished)?;
        self.files.publish(&unfinished, &self.run_folder(key), &[], true)?;
        from.cpu_s(key).map_or(Ok(()), |cpu_s| self.note_cpu(key, cpu_s))
    }

    /// Reads a file of the folder; `None` if it does not exist.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FileOperationError> {
        self.files.read(&self.folder.join(name))
    }

    /// Adds the CPU time of a run to `cpu.csv`; a run that is made again gets another row.
    fn note_cpu(&self, key: &str, cpu_s: f64) -> Result<(), FileOperationError> {
        // The lock also prevents several threads from mixing their rows. A panic elsewhere cannot corrupt the data.
        let mut known = self.cpu.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.folder.join(CPU.file);
        let bytes = CPU.to_bytes([CpuRow { key: key.to_owned(), cpu_s }]);
        let header = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.files.append(&path, &bytes[if path.exists() { header } else { 0 }..])?;
        known.insert(key.to_owned(), cpu_s);
        Ok(())
    }

    /// Returns the CPU time of the run with this key in seconds, if known.
    pub(crate) fn cpu_s(&self, key: &str) -> Option<f64> {
        let since = self.cpu.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied();
        let before = || {
            let read = || self.files.read(&self.folder.join(CPU.file)).ok().flatten();
            self.cpu_before.get_or_init(|| cpu_times(read().unwrap_or_default())).get(key).copied()
        };
        since.or_else(before)
    }

    /// Writes the tables of the study.
    pub(crate) fn write(&self, tables: &[(&str, Vec<u8>)]) -> Result<(), FileOperationError> {
        let mut changed = Vec::new();
        for (name, content) in tables {
            if self.files.read(&self.folder.join(name))?.as_ref() != Some(content) {
                changed.push((*name, &content[..]));
            }
        }
        self.files.replace(&self.folder, &changed)
    }
}

/// Parses the rows of `cpu.csv`. A line that an interruption truncated is ignored.
fn cpu_times(content: Vec<u8>) -> BTreeMap<String, f64> {
    let text = String::from_utf8_lossy(&content).into_owned();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let rows = whole.lines().skip(1).filter_map(|line| line.split_once(','));
    rows.filter_map(|(key, cpu_s)| Some((key.to_owned(), cpu_s.parse().ok()?))).collect()
}

/// Returns the options in the form of `run.json`.
fn wanted(options: &RunOptions) -> RunOptionsRecord {
    let pcap = match options.pcap {
        None => PacketCapture::None,
        Some(0) => PacketCapture::WholePackets,
        Some(snap_bytes) => PacketCapture::Truncated(snap_bytes.into()),
    };
    RunOptionsRecord { audit: options.audit, pcap, qlog: options.qlog, record: options.record }
}

/// Returns whether a run that was made with these options has all that is now required.
fn serves(made_with: &RunOptionsRecord, wanted: &RunOptionsRecord) -> bool {
    (made_with.audit || !wanted.audit)
        && made_with.pcap.covers(wanted.pcap)
        && (made_with.qlog || !wanted.qlog)
        && (made_with.record || !wanted.record)
}

/// Rejects a folder with content that does not belong to the study with this resolved text.
fn refuse_foreign(
    folder: &Path,
    study_text: &str,
    study_file: Option<&[u8]>,
    files: &FileSystem,
) -> Result<(), StudyError> {
    let place = folder.display();
    let Some(text) = study_file else {
        let mut names = files.names_in(folder)?.into_iter();
        return match names.find(|name| !name.starts_with(UNFINISHED)) {
            None => Ok(()),
            Some(first) => Err(StudyError::Folder(format!(
                "{place} contains other files ({first}); choose an empty or new folder with --out"
            ))),
        };
    };
    let text = String::from_utf8_lossy(text);
    if text.lines().next() != Some(StudyRecord::FIRST_LINE) {
        return Err(StudyError::Folder(format!(
            "{place} contains a study.toml that is not one of records; choose an empty or new folder with --out"
        )));
    }
    let single = study_text.lines().any(|line| line == "exact_seed = true");
    for (wanted, found) in study_text.lines().zip(text.lines()).skip(1).take(if single { 2 } else { 1 }) {
        if wanted != found {
            return Err(StudyError::Folder(format!(
                "{place} contains other records ({found} instead of {wanted}); choose another folder with --out"
            )));
        }
    }
    Ok(())
}

/// Locks the folder, so that two processes do not use it at the same time. If the system does not support locks, both
/// can use it. The function waits briefly, because a process that is being killed, or its child, may still hold the
/// lock.
fn lock(folder: &Path) -> Result<Option<File>, StudyError> {
    let Ok(handle) = File::open(folder) else { return Ok(None) };
    for _ in 0..20 {
        match handle.try_lock() {
            Ok(()) => return Ok(Some(handle)),
            Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(std::time::Duration::from_millis(25)),
            Err(std::fs::TryLockError::Error(_)) => return Ok(None),
        }
    }
    Err(StudyError::Folder(format!(
        "another process is writing records to {}; wait for its end, or choose another folder with --out",
        folder.display()
    )))
}
