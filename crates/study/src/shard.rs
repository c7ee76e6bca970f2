//! Parts of a study for several machines: [`run_shard`] makes the runs of one part, and [`merge`] combines the folders.
//!
//! Shard I of N has the runs at the positions I - 1, I - 1 + N, ... of the plan, so that each shard has runs of each point.
//! A shard's folder has the same `study.toml` as that of the whole study, the runs, and `shard.json` with I and N, but no
//! tables. After the merge the folder is that of the whole study.

use crate::archive::{Archive, SHARD_FILE};
use crate::error::StudyError;
use crate::files::FileSystem;
use crate::plan::{Plan, make_plan};
use crate::port::{RunOptions, Runner};
use crate::resolved::resolved_text;
use crate::run::{StudyOptions, jobs_of, wanted_rows};
use crate::study::Study;
use crate::sweep::{RunResult, StudyObserver, Sweep};
use fullpipe_units::words::format_count;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

/// One of several parts of a study, such as "3/16" for part 3 of 16.
///
/// ```
/// use fullpipe_study::Shard;
/// let shard: Shard = "3/16".parse().unwrap();
/// assert_eq!((shard.index(), shard.count()), (3, 16));
/// assert!("0/16".parse::<Shard>().is_err() && "17/16".parse::<Shard>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Shard {
    /// Returns the number of the shard, from 1 to [`Shard::count`].
    pub fn index(self) -> u32 {
        self.index
    }

    /// Returns the total number of shards.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Returns whether the run at this position of the plan, from 0, belongs to the shard.
    fn has(self, position: usize) -> bool {
        position as u64 % u64::from(self.count) == u64::from(self.index - 1)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if 1 <= index && index <= count => Ok(Shard { index, count }),
            _ => Err(format!("\"{text}\" is not a shard; expected I/N with I from 1 to N, such as 3/16")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.index, self.count)
    }
}

/// Returns the content of the file that names a shard.
fn record_of(shard: Shard) -> Vec<u8> {
    format!("{{\"index\":{},\"count\":{}}}\n", shard.index, shard.count).into_bytes()
}

/// Returns the shard that a folder names; `None` if it is not that of a shard.
fn shard_of(archive: &Archive) -> Result<Option<Shard>, StudyError> {
    let Some(bytes) = archive.read(SHARD_FILE)? else { return Ok(None) };
    let value: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
    Ok(value.and_then(|value| format!("{}/{}", value["index"], value["count"]).parse().ok()))
}

/// The result of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardOutcome {
    /// The number of runs that were executed.
    pub made: usize,
    /// The number of existing runs that were reused.
    pub reused: usize,
    /// The number of runs of the whole study.
    pub total: usize,
    /// The runs that failed, each with the reason.
    pub failed: Vec<(String, String)>,
    /// The runs that are not trusted, each with the reason.
    pub untrusted: Vec<(String, String)>,
}

impl ShardOutcome {
    /// Returns the exit status: 1 if a run failed, 3 if a run is not trusted, otherwise 0.
    pub fn exit_status(&self) -> u8 {
        match (self.failed.is_empty(), self.untrusted.is_empty()) {
            (false, _) => 1,
            (true, false) => 3,
            (true, true) => 0,
        }
    }
}

/// Executes those runs of a study's shard whose records `folder` does not contain, and stores their records there. If
/// the caller sets `stop`, the function returns early; finished runs are kept.
///
/// # Errors
/// The errors that [`StudyError`] describes. A failed run does not cause an error; the outcome contains it.
#[allow(clippy::too_many_arguments)]
pub fn run_shard(
    study: &Study,
    shard: Shard,
    laboratory: &dyn Runner,
    folder: &Path,
    files: &FileSystem,
    options: &StudyOptions,
    progress: &mut dyn StudyObserver,
    stop: &AtomicBool,
) -> Result<ShardOutcome, StudyError> {
    let mut plan = make_plan(study, laboratory)?;
    let total = plan.runs.len();
    let mut position = 0..;
    plan.runs.retain(|_| position.next().is_some_and(|position| shard.has(position)));
    let jobs = jobs_of(&plan, options, progress)?;
    let build = laboratory.build_identity();
    let archive = Archive::open(folder, &resolved_text(study, &build), files.clone())?;
    if let Some(other) = shard_of(&archive)?.filter(|other| *other != shard) {
        return Err(StudyError::Folder(format!(
            "{} has shard {other} of this study, not {shard}; choose another folder with --out",
            folder.display()
        )));
    }
    archive.write(&[(SHARD_FILE, record_of(shard))])?;
    let sweep = Sweep {
        study,
        plan: &plan,
        laboratory,
        archive: &archive,
        build: &build,
        options: options.run.clone(),
        wanted: wanted_rows(study),
        only_reuse: false,
    };
    let results = sweep.run(jobs, progress, stop)?;
    let mut outcome = ShardOutcome { total, ..ShardOutcome::default() };
    for (run, result) in plan.runs.iter().zip(results) {
        match result {
            RunResult::Failed(reason) => outcome.failed.push((run.label.clone(), reason)),
            RunResult::Values { distrust, reused, .. } => {
                *(if reused { &mut outcome.reused } else { &mut outcome.made }) += 1;
                outcome.untrusted.extend(distrust.into_iter().map(|reason| (run.label.clone(), reason)));
            }
        }
    }
    Ok(outcome)
}

/// Copies the runs of a study from the folders of its shards to `folder`. The order of `shards` is arbitrary. Several
/// folders may contain the same run. Returns the number of runs of the study. To write the tables, call
/// [`run`](crate::run()) with [`StudyOptions::only_reuse`] after the merge.
///
/// # Errors
/// If a folder belongs to another study or another build, or if no folder contains one of the study's runs. In the
/// second case, the message names the shards that are incomplete or not given.
pub fn merge(
    study: &Study,
    laboratory: &dyn Runner,
    shards: &[PathBuf],
    folder: &Path,
    files: &FileSystem,
) -> Result<usize, StudyError> {
    let text = resolved_text(study, &laboratory.build_identity());
    let (mut sources, mut seen) = (Vec::new(), BTreeSet::new());
    for path in shards {
        // A folder that is given twice can be locked only once.
        if !seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone())) {
            continue;
        }
        let found = files.read(&path.join(fullpipe_archive::StudyRecord::FILE))?;
        if found.as_deref() != Some(text.as_bytes()) {
            let (place, first) = (path.display(), shards[0].display());
            return Err(StudyError::Folder(match found {
                None => format!("{place} has no study.toml; expected the folder of a shard (`study run --shard I/N`)"),
                Some(_) => format!(
                    "{place} and {first} differ in study, settings or build of Fullpipe; expected shards of one study"
                ),
            }));
        }
        let source = Archive::open(path, &text, files.clone())?;
        let shard = shard_of(&source)?;
        sources.push((path, source, shard));
    }
    let plan = make_plan(study, laboratory)?;
    let archive = Archive::open(folder, &text, files.clone())?;
    let any = RunOptions::default();
    let mut missing = Vec::new();
    for (position, run) in plan.runs.iter().enumerate() {
        if archive.find(&run.key, &any)?.is_some() {
            continue;
        }
        // A run that fell behind real time is used only if no folder has a better one.
        let mut found = None;
        for (_, source, _) in &sources {
            if let Some(stored) = source.find(&run.key, &any)?
                && (found.is_none() || !stored.is_late())
            {
                found = Some(source);
                if !stored.is_late() {
                    break;
                }
            }
        }
        match found {
            Some(source) => archive.copy_run(&run.key, source)?,
            None => missing.push(position),
        }
    }
    if missing.is_empty() {
        return Ok(plan.runs.len());
    }
    let given: Vec<(&PathBuf, Option<Shard>)> = sources.iter().map(|(path, _, shard)| (*path, *shard)).collect();
    Err(StudyError::Usage(describe_missing(&plan, &missing, &given)))
}

/// Describes the runs that no folder has, by shard if the folders are those of one number of shards.
fn describe_missing(plan: &Plan, missing: &[usize], given: &[(&PathBuf, Option<Shard>)]) -> String {
    let first = &plan.runs[missing[0]].label;
    let summary = format!("{} of {} runs are missing; the first is {first}", missing.len(), plan.runs.len());
    let mut counts = given.iter().filter_map(|(_, shard)| shard.map(Shard::count));
    let Some(count) = counts.next().filter(|count| counts.all(|other| other == *count)) else { return summary };
    let mut by_shard: BTreeMap<u32, usize> = BTreeMap::new();
    for position in missing {
        *by_shard.entry((position % count as usize) as u32 + 1).or_default() += 1;
    }
    let line = |(index, runs): (&u32, &usize)| {
        let folder = given.iter().find(|(_, shard)| shard.is_some_and(|shard| shard.index == *index));
        let runs = format_count(*runs as u64, "run");
        match folder {
            Some((path, _)) => {
                format!("\n  shard {index}/{count} in {}: {runs} missing; run this shard again", path.display())
            }
            None => format!("\n  shard {index}/{count} ({runs}): no folder is given"),
        }
    };
    summary + ":" + &by_shard.iter().map(line).collect::<String>()
}
