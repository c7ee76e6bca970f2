//! A fake laboratory whose runs are arithmetic, and helper functions for folders of records.
#![allow(dead_code, reason = "each test uses a part")]

use fullpipe_archive::json::NamedCounts;
use fullpipe_archive::{FLOWS, FlowRow, HALVES, HalfRow, LatenessRecord, SERIES, SeriesRow, Warning, WarningKind};
use fullpipe_scenario::schema::Override;
use fullpipe_study::{
    EmbeddedStudy, FileSystem, ResolvedScenario, RunError, RunOptions, RunRecords, Runner, ScenarioSource, Study,
    StudyError, StudyOptions, StudyOutcome, UserSettings, load, run,
};
use fullpipe_units::random::derive_run_seed;
use fullpipe_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A fake scenario consists of lines `KEY = NUMBER`, whose keys overrides may set. Flow "bulk" receives `size` packets of 1000
/// bytes in (10 + seed mod 7) * 0.1 s; the delay of each is 50 ms.
#[derive(Default)]
pub(crate) struct Fake {
    /// The wall-clock time of a run.
    pub(crate) takes: std::time::Duration,
    /// The number of runs made.
    pub(crate) made: AtomicUsize,
    /// The seeds of the runs made.
    pub(crate) seeds: Mutex<Vec<u64>>,
    /// Runs of scenarios with this `size` fail.
    pub(crate) fails_at: Option<u64>,
    /// Runs of scenarios with this `size` panic.
    pub(crate) panics_at: Option<u64>,
    /// Runs of scenarios with this `size` fail their checks.
    pub(crate) lies_at: Option<u64>,
    /// Runs with this `size` and these seeds fall behind real time: they receive this many additional packets.
    pub(crate) late: Option<(u64, Vec<u64>, u64)>,
    /// Whether runs draw random numbers.
    pub(crate) draws: bool,
    /// Whether random starts are supported; this number of runs with them receive 1000 packets minus `size`.
    pub(crate) phases: Option<usize>,
    /// CPU time of a run in seconds.
    pub(crate) cpu_s: Option<f64>,
    /// The number of first runs with a time-out.
    pub(crate) timeouts: usize,
    /// The goodput of "bulk" is 100 bit/s in the first half of the measured interval, and this in the second.
    pub(crate) second_half_bps: Option<f64>,
    /// Whether all runs of a point have equal records.
    pub(crate) ignores_seed: bool,
    /// Whether runs write packet captures while they run.
    pub(crate) captures: bool,
    /// Whether runs write their samples while they run.
    pub(crate) writes_samples: bool,
    /// The number of runs in progress, and its maximum.
    pub(crate) computing: AtomicUsize,
    pub(crate) most_computing: AtomicUsize,
    /// Runs of scenarios with this `size` deliver no data; 0: all runs.
    pub(crate) delivers_nothing_at: Option<u64>,
    /// Whether every run ends with an error of the machine.
    pub(crate) broken: bool,
    /// The build identity.
    pub(crate) build: String,
    /// Sets the stop flag after this number of runs.
    pub(crate) stop_after: Option<usize>,
    /// The stop flag.
    pub(crate) stop: AtomicBool,
}

impl Fake {
    pub(crate) fn new() -> Self {
        Fake { build: "fake 1".into(), ..Fake::default() }
    }
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    lines.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
}

impl Runner for Fake {
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String> {
        let mut values = pairs(&scenario.text);
        for set in overrides {
            match values.get_mut(&set.path) {
                Some(value) => value.clone_from(&set.value),
                None if set.path == "start" => drop(values.insert("start".to_owned(), set.value.clone())),
                None => return Err(format!("--set {}={}: there is no {}", set.path, set.value, set.path)),
            }
        }
        let text: String = values.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        let flows = ["bulk", "bulk.reverse", "other"].map(str::to_owned).to_vec();
        Ok(ResolvedScenario {
            cost: Default::default(),
            content: text.clone().into_bytes(),
            text,
            main_flows: ["bulk".to_owned(), "other".to_owned()].into(),
            flows,
            links: vec!["core".to_owned()],
            hosts: vec!["near".to_owned()],
            events: Vec::new(),
            series: vec![("bulk".to_owned(), "cwnd_bytes".to_owned())],
            measured_interval: (Duration::ZERO, Duration::from_secs(10)),
            folder: None,
            unsupported: None,
        })
    }

    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunError> {
        let computing = self.computing.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_computing.fetch_max(computing, Ordering::SeqCst);
        std::thread::sleep(self.takes);
        self.computing.fetch_sub(1, Ordering::SeqCst);
        let made = self.made.fetch_add(1, Ordering::SeqCst) + 1;
        self.seeds.lock().expect("no test panics here").push(seed);
        if self.stop_after.is_some_and(|after| made >= after) {
            self.stop.store(true, Ordering::SeqCst);
        }
        let values = pairs(&scenario.text);
        let size: u64 = values.get("size").and_then(|size| size.parse().ok()).unwrap_or(1);
        if self.broken {
            return Err(RunError::System("out of memory".into()));
        }
        if let Some(bytes) = options.pcap {
            for piece in [vec![1; bytes as usize], vec![seed as u8; 3 * bytes as usize]] {
                let refused = |error: std::io::Error| RunError::System(error.to_string());
                options.attach.append("a.pcapng", &piece).map_err(refused)?;
            }
        }
        if self.fails_at == Some(size) {
            return Err(RunError::Failed("it was told to".into()));
        }
        assert_ne!(self.panics_at, Some(size), "it was told to panic");
        let late = self.late.as_ref().filter(|(at, seeds, _)| *at == size && seeds.contains(&seed));
        let (asked, size) = (size, size + late.map_or(0, |(_, _, more)| *more));
        let affected = |phases: usize| (0..phases).any(|run| derive_run_seed(4, run as u64) == seed);
        let affected = values.contains_key("start") && self.phases.is_some_and(affected);
        let size = if affected { 1000 - size } else { size };
        let last = if self.ignores_seed { 10 } else { 10 + seed % 7 };
        let seconds = |tenths: u64| Instant::from_nanos(tenths * 100_000_000);
        let flow = |flow: &str, rx_packets, rx_bytes, last_tenths, goodput_bps| FlowRow {
            flow: flow.to_owned(),
            source: "a".to_owned(),
            destination: "b".to_owned(),
            protocol: "tcp".to_owned(),
            congestion: "cubic".to_owned(),
            rx_packets,
            rx_bytes,
            delay_sum_s: Some(Duration::from_nanos(rx_packets * 50_000_000)),
            first_rx_s: Some(seconds(0)),
            last_rx_s: Some(seconds(last_tenths)),
            goodput_bps,
            main_direction: (!flow.ends_with(".reverse")).into(),
            delay_p50_s: (rx_packets > 0).then(|| Duration::from_nanos(rx_packets * 1_000_000)),
            ..FlowRow::default()
        };
        let flows = [
            flow("bulk", size, size * 1000, last, Some(size as f64 * 10.0)),
            flow("bulk.reverse", size, 40, 10, None),
            flow("other", 7, 7000, 10, Some(5.0)),
        ];
        let sample = |tenths, value| SeriesRow {
            time_s: seconds(tenths),
            subject: "bulk".to_owned(),
            metric: "cwnd_bytes".to_owned(),
            value: Some(value),
        };
        let mut records = RunRecords::default();
        records.files.push((FLOWS.file.to_owned(), FLOWS.to_bytes(flows)));
        let samples = SERIES.to_bytes([sample(1, 10.0), sample(2, 30.0)]);
        if self.writes_samples {
            for piece in samples.chunks(20) {
                options.attach.append(SERIES.file, piece).expect("there is a place");
            }
        } else {
            records.files.push((SERIES.file.to_owned(), samples));
        }
        if self.late.is_some() {
            records.run.lateness = Some(LatenessRecord { on_time: late.is_none(), ..LatenessRecord::default() });
        }
        // Runs in virtual time report their draws: none, unless a test sets `draws`.
        let drawn = self.draws.then(|| ("host: processing".to_owned(), 1));
        records.run.random_streams = self.late.is_none().then(|| NamedCounts(drawn.into_iter().collect()));
        records.cpu_s = self.cpu_s;
        if (0..self.timeouts).any(|run| derive_run_seed(4, run as u64) == seed) {
            records.run.timeouts = Some(NamedCounts([("bulk".to_owned(), 1)].into()));
        }
        if let Some(second) = self.second_half_bps {
            let half = |half, bps| HalfRow {
                subject: "bulk".to_owned(),
                kind: "flow".to_owned(),
                half,
                goodput_bps: Some(bps),
                ..HalfRow::default()
            };
            records.files.push((HALVES.file.to_owned(), HALVES.to_bytes([half(1, 100.0), half(2, second)])));
        }
        if self.lies_at == Some(asked) {
            records.run.distrust.push("audit: faster than light".into());
        }
        if self.delivers_nothing_at.is_some_and(|at| [0, asked].contains(&at)) {
            let warning = Warning::new(WarningKind::NothingDelivered, "", "no application received any payload");
            records.run.warnings = Some(vec![warning]);
        }
        Ok(records)
    }

    fn random_starts_override(&self) -> Option<Override> {
        self.phases.map(|_| Override { path: "start".to_owned(), value: "1".to_owned() })
    }

    fn build_identity(&self) -> String {
        self.build.clone()
    }
}

/// A study with two experiments, of which the second shares a point with the first.
pub(crate) const STUDY: &str = r#"
name = "fake"
title = "A fake study"
runs = 3
seed = 4

[scenarios]
plain = "plain.txt"

[parameters.colour]
default = 3
paths = ["colour"]

[[experiment]]
name = "sizes"
scenario = "plain"
[[experiment.axis]]
name = "size"
paths = ["size"]
values = [10, 20, 40]
quick = [10, 40]

[[experiment]]
name = "shapes"
scenario = "plain"
set = { size = 20 }
[[experiment.axis]]
name = "shape"
values = [{ label = "round", set = { corners = 0 } }, { label = "square", set = { corners = 4 } }]

[[metric]]
name = "packets"
unit = "packets"
expression = 'rx_packets["bulk"]'

[[metric]]
name = "rate_bps"
unit = "bit/s"
expression = 'rx_bytes["bulk"] * 8 / (last_rx_s["bulk"] - first_rx_s["bulk"])'

[[metric]]
name = "window_bytes"
unit = "bytes"
expression = 'mean(series("bulk", "cwnd_bytes"))'
experiments = ["sizes"]

[[metric]]
name = "per_size"
expression = 'rx_packets["bulk"] / size'
experiments = ["sizes"]

[[claim]]
name = "more-is-more"
text = "More packets when there are more."
expression = 'metric("sizes", "packets", size = 40) > metric("sizes", "packets", size = 10)'
variant = "sizes;size=40"

[[claim]]
name = "less-is-more"
text = "Fewer packets when there are more."
source = "a bad book"
expression = 'metric("sizes", "packets", size = 40) < metric("sizes", "packets", size = 10)'
explained_by = "more-is-more"
"#;

pub(crate) const SCENARIO: &str = "size = 10\ncorners = 0\ncolour = 1\n";

pub(crate) const PUBLISHED: &str = "experiment,point,metric,value,tolerance,source,note,explained_by\n\
    # a comment\n\
    sizes,size=10,packets,10,0,book,exactly,\n\
    sizes,size=20,packets,40,1%,book,,more-is-more\n\
    sizes,size=40,packets,50,10%,book,,\n";

/// Loads the study with these texts.
pub(crate) fn study_of(text: &str) -> Study {
    let files = [("plain.txt", SCENARIO), ("published.csv", PUBLISHED)];
    load(text, "study.toml", "fallback", &EmbeddedStudy("fake", &files)).unwrap_or_else(|errors| panic!("{errors}"))
}

pub(crate) fn study() -> Study {
    study_of(STUDY)
}

/// Runs a study with this number of jobs.
pub(crate) fn run_into(
    study: &Study,
    laboratory: &Fake,
    folder: &Path,
    jobs: usize,
) -> Result<StudyOutcome, StudyError> {
    run_with(study, laboratory, folder, jobs, &FileSystem::new())
}

pub(crate) fn run_with(
    study: &Study,
    laboratory: &Fake,
    folder: &Path,
    jobs: usize,
    files: &FileSystem,
) -> Result<StudyOutcome, StudyError> {
    let asked = RunOptions { pcap: laboratory.captures.then_some(128), ..RunOptions::default() };
    let options = StudyOptions { jobs, run: asked, ..StudyOptions::default() };
    run(study, laboratory, folder, files, &options, &mut (), &laboratory.stop)
}

/// The study with the user's settings.
pub(crate) fn with(settings: &[&str], quick: bool) -> Result<(Study, Vec<String>), StudyError> {
    let mut study = study();
    let set = settings.iter().map(|text| Override::parse(text).expect("PATH=VALUE")).collect();
    let messages = study.apply(&UserSettings { set, quick, ..UserSettings::default() }, &Fake::new())?;
    Ok((study, messages))
}

/// An empty folder for a test, removed afterwards.
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Temporary {
    pub(crate) fn new(name: &str) -> Self {
        // In memory if possible: a killed process loses no data there either, and syncs are fast.
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let path = base.join(format!("fullpipe-study-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the temporary folder is writable");
        Temporary(path)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All records below a folder by their relative paths: all files except the CPU times, which differ between runs.
pub(crate) fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("it exists") {
            let path = entry.expect("it can be read").path();
            let name = path.strip_prefix(folder).expect("it is below").display().to_string();
            if path.is_dir() {
                folders.push(path);
                files.insert(format!("{name}/"), Vec::new());
            } else if name != fullpipe_archive::CPU.file {
                files.insert(name, std::fs::read(&path).expect("it can be read"));
            }
        }
    }
    files
}

/// The modification time of each file below `runs`.
pub(crate) fn stamps(folder: &Path) -> BTreeMap<String, std::time::SystemTime> {
    let stamp = |name: &String| std::fs::metadata(folder.join(name)).and_then(|m| m.modified()).expect("it has one");
    tree(folder).keys().filter(|name| name.starts_with("runs/")).map(|name| (name.clone(), stamp(name))).collect()
}

/// The rows of a CSV file by column name.
pub(crate) fn table(folder: &Path, name: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(folder.join(name)).expect("it exists");
    let header = reader.headers().expect("it has one").clone();
    let row = |record: csv::StringRecord| header.iter().zip(record.iter()).map(|(k, v)| (k.into(), v.into())).collect();
    reader.records().map(|record| row(record.expect("a row"))).collect()
}
