//! Requests for runs in another process, and their execution by a worker.
//!
//! A worker needs the resolved scenario, the seed, and the files to which the scenario refers. A file is identified by its
//! SHA-256. A worker uses a copy with the same content, at the same path or in its cache. If it has none, it returns the
//! missing hashes, and the driver sends the request again with the contents.

use crate::errors::{self, RunError, ScenarioError, SystemError};
use crate::interrupt;
use fullpipe::BUILD;
use fullpipe::archive::RunRecord;
use fullpipe::study::{
    ResolvedScenario, RunFileSink, RunOptions, RunRecords, Runner, ScenarioSource, VirtualTimeRunner,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The SHA-256 of a file in hexadecimal digits.
pub(crate) fn file_hash(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut fs::File::open(path)?, &mut hash)?;
    Ok(hex(&hash.finalize()))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the files to which a resolved scenario refers: the name in the scenario's folder or the absolute path, the
/// location, and the hash.
pub(crate) fn files_of(scenario: &ResolvedScenario) -> Result<Vec<(String, PathBuf, String)>, String> {
    let folder = scenario.folder.clone().unwrap_or_default();
    let name = folder.join("the resolved scenario").display().to_string();
    let loaded = fullpipe::scenario::load(&scenario.text, &name, &[]).map_err(|errors| errors.to_string())?;
    let mut files = Vec::new();
    for path in loaded.scenario.referenced_files() {
        let hash = file_hash(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let name = path.strip_prefix(&folder).unwrap_or(path).display().to_string();
        files.push((name, path.to_path_buf(), hash));
    }
    Ok(files)
}

/// Converts a run to a request.
pub(crate) fn request<'py>(
    py: Python<'py>,
    scenario: &ResolvedScenario,
    seed: u64,
    options: &RunOptions,
    files: &[(String, PathBuf, String)],
) -> PyResult<Bound<'py, PyDict>> {
    let request = PyDict::new(py);
    request.set_item("build", BUILD)?;
    request.set_item("text", &scenario.text)?;
    request.set_item("seed", seed)?;
    request.set_item("audit", options.audit)?;
    request.set_item("pcap", options.pcap)?;
    request.set_item("qlog", options.qlog)?;
    let named: Vec<(&str, &str)> = files.iter().map(|(name, _, hash)| (name.as_str(), hash.as_str())).collect();
    request.set_item("files", named)?;
    Ok(request)
}

fn item<'py, T>(table: &Bound<'py, PyDict>, key: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    let value = table.get_item(key)?.ok_or_else(|| {
        RunError::new_err(format!(
            "the message between driver and worker has no {key:?}; install the same wheel on both"
        ))
    })?;
    value.extract().map_err(Into::into)
}

/// Converts the response of a worker to records.
pub(crate) fn records_of(response: &Bound<'_, PyDict>, options: &RunOptions) -> PyResult<RunRecords> {
    for (name, bytes) in item::<Vec<(String, Vec<u8>)>>(response, "attached")? {
        options.attach.append(&name, &bytes).map_err(|error| SystemError::new_err(error.to_string()))?;
    }
    let run: Vec<u8> = item(response, "run")?;
    let run =
        RunRecord::parse(Path::new(RunRecord::FILE), &run).map_err(|error| RunError::new_err(error.to_string()))?;
    Ok(RunRecords { files: item(response, "files")?, run, cpu_s: item(response, "cpu_s")? })
}

/// Executes the run of a request in this process. `contents` are the contents of files by hash, and `cache` is the folder in
/// which they are kept. Returns the records, or the hashes of missing files.
///
/// # Errors
/// `RunError` if the run failed, or if this process has another build than the driver.
#[pyfunction]
pub(crate) fn run_request<'py>(
    py: Python<'py>,
    request: &Bound<'py, PyDict>,
    contents: BTreeMap<String, Vec<u8>>,
    cache: PathBuf,
) -> PyResult<Bound<'py, PyDict>> {
    let build: String = item(request, "build")?;
    if build != BUILD {
        return Err(RunError::new_err(format!(
            "the worker has Fullpipe {BUILD}, the driver {build}; install the same wheel on both"
        )));
    }
    let (text, seed): (String, u64) = (item(request, "text")?, item(request, "seed")?);
    let files: Vec<(String, String)> = item(request, "files")?;
    let response = PyDict::new(py);
    let cannot =
        |path: &Path, error: io::Error| SystemError::new_err(format!("cannot write {}: {error}", path.display()));
    let mut missing = Vec::new();
    let mut present = Vec::new();
    for (name, hash) in &files {
        let kept = cache.join(hash);
        if let Some(content) = contents.get(hash) {
            if hex(&Sha256::digest(content)) != *hash {
                return Err(RunError::new_err(format!("the content of {name} does not have the hash {hash}")));
            }
            create_private_folder(&cache).map_err(|error| cannot(&cache, error))?;
            write_whole(&kept, content).map_err(|error| cannot(&kept, error))?;
        }
        let is_inside = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_inside {
            if file_hash(Path::new(name)).ok().as_ref() != Some(hash) {
                return Err(RunError::new_err(format!(
                    "this worker has no file {name} with the SHA-256 {hash}; files in the scenario's folder are \
                     sent with the run, other files must exist on every worker"
                )));
            }
        } else if file_hash(&kept).ok().as_ref() == Some(hash) {
            present.push((name, hash));
        } else {
            missing.push(hash.clone());
        }
    }
    if !missing.is_empty() {
        response.set_item("missing", missing)?;
        return Ok(response);
    }
    let folder = folder_of(&cache, &present).map_err(|error| cannot(&cache, error))?;
    let attached: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
    let sink = Arc::clone(&attached);
    let attach = RunFileSink::new(move |name, bytes| {
        sink.lock().unwrap_or_else(PoisonError::into_inner).entry(name.to_owned()).or_default().extend(bytes);
        Ok(())
    });
    let options = RunOptions {
        audit: item(request, "audit")?,
        pcap: item(request, "pcap")?,
        qlog: item(request, "qlog")?,
        attach,
        ..RunOptions::default()
    };
    let runner = VirtualTimeRunner::new(BUILD);
    let name = folder.join("the resolved scenario").display().to_string();
    let source = ScenarioSource { name: name.clone(), origin: name, text, folder: Some(folder) };
    let resolved = runner.resolve(&source, &[]).map_err(ScenarioError::new_err)?;
    let (options_here, resolved_here) = (&options, &resolved);
    let work = move |_| runner.run(resolved_here, seed, options_here);
    let records = interrupt::run(py, &options.stop, |_, ()| Ok(()), work)?.map_err(errors::of_run)?;
    let files: Vec<(String, Bound<'_, PyBytes>)> =
        records.files.into_iter().map(|(name, bytes)| (name, PyBytes::new(py, &bytes))).collect();
    let attached = std::mem::take(&mut *attached.lock().unwrap_or_else(PoisonError::into_inner));
    let attached: Vec<(String, Bound<'_, PyBytes>)> =
        attached.into_iter().map(|(name, bytes)| (name, PyBytes::new(py, &bytes))).collect();
    response.set_item("files", files)?;
    response.set_item("attached", attached)?;
    response.set_item("run", PyBytes::new(py, &records.run.to_bytes()))?;
    response.set_item("cpu_s", records.cpu_s)?;
    Ok(response)
}

/// Returns a folder with copies of files of the cache, with the names that the scenario uses. The name of the folder depends
/// only on the names and hashes, so that the runs of a point share it.
fn folder_of(cache: &Path, files: &[(&String, &String)]) -> io::Result<PathBuf> {
    let mut hash = Sha256::new();
    files.iter().for_each(|(name, digest)| hash.update(format!("{name}\n{digest}\n")));
    let folder = cache.join(format!("scenario-{}", &hex(&hash.finalize())[..16]));
    create_private_folder(&folder)?;
    for (name, digest) in files {
        let copy = folder.join(name);
        if file_hash(&copy).ok().as_ref() == Some(*digest) {
            continue;
        }
        if let Some(parent) = copy.parent() {
            fs::create_dir_all(parent)?;
        }
        write_whole(&copy, &fs::read(cache.join(digest))?)?;
    }
    Ok(folder)
}

/// Creates a folder that other users cannot change.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Writes a file atomically, so that other workers never read an incomplete file.
fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut unfinished = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    unfinished.write_all(content)?;
    unfinished.persist(path)?;
    Ok(())
}
