//! The commands that write or read records: `run`, `study`, `report`, `check`.

use crate::arguments::{CommonArguments, MergeArguments, RunArguments, StudyArguments};
use crate::exit::Failure;
use crate::expectations;
use crate::findings;
use crate::flow_table;
use crate::junit;
use crate::masque;
use crate::measurement::{cpu_seconds, elapsed_seconds, memory_bytes};
use crate::open;
use crate::output::{self, print_line};
use crate::progress::ProgressDisplay;
use crate::real_time;
use crate::sabotage;
use fullpipe::archive::{
    Cell, Column, DELAY_COLUMNS, FlowSummaryRow, StudyRecord, SummaryRow, Warning, describe_chance_verdicts,
};
use fullpipe::find::FoundScenario;
use fullpipe::report::{self, Options as ReportOptions};
use fullpipe::scenario::Override;
use fullpipe::scenario::description::BdpLimit;
use fullpipe::scenario::schema::Hint;
use fullpipe::study::study::SeedSource;
use fullpipe::study::summary::SeedVerdicts;
use fullpipe::study::{
    self, FileSystem, ReplayRunner, RunOptions, Runner, ScenarioStudy, Shard, Study, StudyError, VirtualTimeRunner,
};
use fullpipe::units::Duration;
use fullpipe::units::words::format_count;
use fullpipe::{BUILD, embedded, find, scenario};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) fn failure_of(error: StudyError) -> Failure {
    Failure { status: error.exit_status(), message: error.to_string() }
}

pub(crate) fn overrides(texts: &[String]) -> Result<Vec<Override>, Failure> {
    texts.iter().map(|text| Override::parse(text).map_err(Failure::usage)).collect()
}

/// Returns an error that mentions the command for studies if the name or file is that of a study.
fn require_scenario(name: &str) -> Result<(), Failure> {
    let path = Path::new(name);
    let file = if path.is_dir() { path.join("study.toml") } else { path.to_owned() };
    // The content of a pipe can be read only once.
    let is_study_file = || file.is_file() && std::fs::read_to_string(&file).is_ok_and(|text| is_study(&text));
    let is_embedded = || !path.exists() && embedded::study_names().any(|study| study == name);
    if is_study_file() || is_embedded() {
        return Err(Failure::usage(format!("{name} is a study: run it by `fullpipe study run {name}`")));
    }
    Ok(())
}

/// Returns an error that mentions the command for scenarios if the name or file is that of a scenario.
fn require_study(name: &str) -> Result<(), Failure> {
    let path = Path::new(name);
    let is_scenario = if path.exists() {
        path.is_file() && std::fs::read_to_string(path).is_ok_and(|text| is_scenario(&text))
    } else {
        embedded::scenario_text(name).is_some() && embedded::study_names().all(|study| study != name)
    };
    match is_scenario {
        true => Err(Failure::usage(format!("{name} is a scenario: run it by `fullpipe run {name}`"))),
        false => Ok(()),
    }
}

/// Runs `fullpipe run`.
pub(crate) fn run_scenario(arguments: &RunArguments) -> Result<(), Failure> {
    if arguments.qlog && (arguments.real_time || arguments.replay.is_some()) {
        return Err(Failure::usage(
            "--qlog requires virtual time, because the state of real hosts' stacks is unknown; use --pcap for their packets",
        ));
    }
    let common = &arguments.common;
    require_scenario(&arguments.scenario)?;
    let FoundScenario { text, name, stem, folder } = find_scenario(&arguments.scenario)?;
    let set = overrides(&common.set)?;
    let ScenarioStudy { study, loaded } =
        study::scenario_study(&stem, &text, &name, folder, &set, common.seed).map_err(Failure::usage)?;
    show_hints(&loaded.hints);
    if let Some(reason) =
        loaded.scenario.real_time_reason().filter(|_| !arguments.real_time && arguments.replay.is_none())
    {
        return Err(Failure::usage(format!("{name} cannot run in virtual time: {reason}; use --real-time")));
    }
    let faults = sabotage::faults(&common.sabotage, &loaded.scenario)?;
    let record = arguments.real_time && (arguments.record || loaded.scenario.real_time.record_arrivals);
    let (pcap, qlog) = (arguments.pcap, arguments.qlog);
    let run = RunOptions { audit: common.audit, pcap, qlog, record, resume: common.resume, ..RunOptions::default() };
    let memory_bytes = if common.ignore_memory { None } else { memory_bytes() };
    let options = study::StudyOptions { run, memory_bytes, ..study::StudyOptions::default() };
    let folder = Path::new("fullpipe-out").join(&stem);
    if arguments.real_time {
        if !faults.is_empty() {
            return Err(Failure::usage("--sabotage requires virtual time"));
        }
        let interfaces: Vec<&str> = loaded.scenario.nodes.iter().filter_map(|node| node.interface()).collect();
        let make = |laboratory: &dyn Runner| make(&study, laboratory, common, &options, &folder);
        return real_time::run_with(&interfaces, common.quiet, make);
    }
    if let Some(arrivals) = &arguments.replay {
        if !faults.is_empty() {
            return Err(Failure::usage("--sabotage cannot be combined with --replay"));
        }
        let unreadable = |error| Failure::usage(format!("{}: {error}", arrivals.display()));
        let laboratory = ReplayRunner::open(BUILD, arrivals).map_err(unreadable)?;
        return make(&study, &laboratory, common, &options, &folder);
    }
    let laboratory = VirtualTimeRunner::new(BUILD).with_faults(faults);
    make(&study, &laboratory, common, &options, &folder)
}

/// Prints hints on standard error without duplicates. If there are many, only the first ones are printed.
fn show_hints(hints: &[Hint]) {
    const SHOWN: usize = 10;
    let mut lines: Vec<String> = hints.iter().map(ToString::to_string).collect();
    lines.dedup();
    lines.iter().take(SHOWN).for_each(|line| eprintln!("hint: {line}"));
    if lines.len() > SHOWN {
        eprintln!("hint: {} more hints", lines.len() - SHOWN);
    }
}

/// Returns the scenario in a file, or the embedded scenario with this name.
pub(crate) fn find_scenario(name: &str) -> Result<FoundScenario, Failure> {
    find::scenario(name).map_err(Failure::usage)
}

/// Returns the study in a file, or the embedded study with this name.
pub(crate) fn find_study(name: &str) -> Result<Study, Failure> {
    find::study(name).map_err(failure_of)
}

/// Runs `fullpipe study run`.
pub(crate) fn run_study(arguments: &StudyArguments) -> Result<(), Failure> {
    require_study(&arguments.study)?;
    let study = find_study(&arguments.study)?;
    let folder = Path::new("fullpipe-out").join(&study.name);
    run_loaded_study(study, arguments, &folder, Vec::new())
}

/// Runs a study with the user's arguments. Without `--out`, the records go to `default_folder`. Finished runs are copied
/// from the folders in `reuse_from`.
pub(crate) fn run_loaded_study(
    mut study: Study,
    arguments: &StudyArguments,
    default_folder: &Path,
    reuse_from: Vec<PathBuf>,
) -> Result<(), Failure> {
    let common = &arguments.common;
    if !common.sabotage.is_empty() {
        return Err(Failure::usage("--sabotage requires `fullpipe run`"));
    }
    let laboratory = VirtualTimeRunner::new(BUILD);
    let settings = study::UserSettings {
        set: overrides(&common.set)?,
        runs: arguments.runs,
        seeds: arguments.seeds,
        seed: common.seed,
        quick: arguments.quick,
    };
    let hints = laboratory.clone();
    let messages = study.apply(&settings, &laboratory).map_err(failure_of)?;
    // This must happen before a second thread exists.
    let laboratory = real_time::laboratories(laboratory, &study, common.quiet)?;
    if !common.quiet {
        messages.iter().for_each(|message| eprintln!("{message}"));
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = arguments.jobs.unwrap_or(cores).max(1);
    let qlog = arguments.qlog;
    let run = RunOptions { audit: common.audit, qlog, resume: common.resume, ..RunOptions::default() };
    let memory_bytes = if common.ignore_memory { None } else { memory_bytes() };
    let options = study::StudyOptions { jobs, run, memory_bytes, reuse_from, ..study::StudyOptions::default() };
    // `apply` tries the overrides one by one. Their hints are produced again when the points are resolved.
    hints.take_hints();
    let made = match arguments.shard {
        Some(shard) => make_shard(&study, shard, &*laboratory, common, &options),
        None => make(&study, &*laboratory, common, &options, default_folder),
    };
    show_hints(&hints.take_hints());
    made
}

/// Makes the runs of a shard, and prints how many there were.
fn make_shard(
    study: &Study,
    shard: Shard,
    laboratory: &dyn Runner,
    common: &CommonArguments,
    options: &study::StudyOptions,
) -> Result<(), Failure> {
    let name = format!("{}-shard-{}-of-{}", study.name, shard.index(), shard.count());
    let folder = common.out.clone().unwrap_or_else(|| Path::new("fullpipe-out").join(name));
    let stop = stop_flag()?;
    end_if_blocked()?;
    let begun_s = elapsed_seconds();
    let mut progress = ProgressDisplay::new(common.quiet);
    let outcome =
        study::run_shard(study, shard, laboratory, &folder, &FileSystem::new(), options, &mut progress, &stop);
    stop.store(true, Ordering::Relaxed);
    progress.done();
    let outcome = outcome.map_err(failure_of)?;
    if !common.quiet {
        eprintln!(
            "shard {shard}: {} made, {} reused, of {} in the whole study, in {:.1} s; records in {}\n\
             `fullpipe study merge` with the folders of all {} shards writes the tables and the report",
            format_count(outcome.made as u64, "run"),
            outcome.reused,
            outcome.total,
            elapsed_seconds() - begun_s,
            folder.display(),
            shard.count()
        );
    }
    end_with(outcome.exit_status(), &outcome.failed, &outcome.untrusted)
}

/// Runs `fullpipe study merge`.
pub(crate) fn merge_shards(arguments: MergeArguments) -> Result<(), Failure> {
    let MergeArguments { folders, out, json, junit, quiet, open } = arguments;
    let file = folders[0].join(StudyRecord::FILE);
    if !file.is_file() {
        return Err(Failure::usage(format!(
            "{} has no {}; expected the folder of a shard (`fullpipe study run NAME --shard I/N`)",
            folders[0].display(),
            StudyRecord::FILE
        )));
    }
    let study = study::load_file(&file).map_err(Failure::usage)?;
    // The keys of real-time runs depend on the machine's laboratory. This must happen before a second thread exists.
    let laboratory = real_time::laboratories(VirtualTimeRunner::new(BUILD), &study, quiet)?;
    study::merge(&study, &*laboratory, &folders, &out, &FileSystem::new()).map_err(failure_of)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let run = RunOptions { resume: true, ..RunOptions::default() };
    let options = study::StudyOptions { jobs: cores, run, only_reuse: true, ..study::StudyOptions::default() };
    let common = CommonArguments {
        set: Vec::new(),
        seed: None,
        out: None,
        audit: false,
        json,
        junit,
        quiet,
        resume: true,
        open,
        ignore_memory: true,
        sabotage: Vec::new(),
    };
    make(&study, &*laboratory, &common, &options, &out)
}

/// Returns a flag that is set by an interrupt or a termination request. The second request ends the program
/// immediately.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::machine(format!("cannot handle signals: {error}")))?;
    }
    Ok(stop)
}

/// The time limit for runs to end after a signal. It is longer than the limit for programs of a real-time run.
#[cfg(unix)]
const GRACE_PERIOD: std::time::Duration = std::time::Duration::from_secs(5);

/// Ends the command with exit status 130 some time after a signal, independently of its current operation: a long run,
/// or output that blocks. Finished runs are already stored. It must be called after the last fork.
#[cfg(unix)]
fn end_if_blocked() -> Result<(), Failure> {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    let refused = |error: std::io::Error| Failure::machine(format!("cannot handle signals: {error}"));
    let (mut reader, writer) = UnixStream::pair().map_err(refused)?;
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone().map_err(refused)?).map_err(refused)?;
    }
    let wait = move || {
        if reader.read_exact(&mut [0]).is_ok() {
            std::thread::sleep(GRACE_PERIOD);
            // Standard error may be the output that blocks.
            std::thread::spawn(|| {
                eprintln!("fullpipe: interrupted: finished runs are kept; the same command continues after them");
            });
            std::thread::sleep(std::time::Duration::from_millis(200));
            std::process::exit(130);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map(|_| ()).map_err(refused)
}

#[cfg(not(unix))]
fn end_if_blocked() -> Result<(), Failure> {
    Ok(())
}

/// Runs a study, writes its report, and prints its summary.
fn make(
    study: &Study,
    laboratory: &dyn Runner,
    common: &CommonArguments,
    options: &study::StudyOptions,
    default_folder: &Path,
) -> Result<(), Failure> {
    let folder = common.out.as_deref().unwrap_or(default_folder);
    let junit = common.junit.as_deref().map(junit::JunitFile::open).transpose()?;
    let stop = stop_flag()?;
    end_if_blocked()?;
    let clocks = || [elapsed_seconds(), cpu_seconds()];
    let begun = clocks();
    let mut progress = ProgressDisplay::new(common.quiet);
    let outcome = study::run(study, laboratory, folder, &FileSystem::new(), options, &mut progress, &stop);
    // All runs are stored. From now on a signal ends the command immediately, and the same call rebuilds the report.
    stop.store(true, Ordering::Relaxed);
    progress.done();
    let outcome = outcome.map_err(failure_of)?;
    let built = if outcome.failed.is_empty() {
        let options = ReportOptions { limitations: Some(embedded::LIMITATIONS), ..ReportOptions::default() };
        Some(report::write_report_with(folder, options).map_err(Failure::machine)?)
    } else {
        None
    };
    // After the report, so that no file with passed tests exists if the report cannot be written.
    if let Some(target) = junit {
        target.write(study, &outcome)?;
    }
    if common.json {
        output::json(&outcome.to_json());
    } else if let Some(text) = findings::table(&outcome.findings, &outcome.matrix) {
        // The cells of a matrix summarize the metrics of its points, of which there are hundreds.
        print_line!("{}", text.trim_end_matches('\n'));
    } else {
        print_line!("{}", metric_table(study, &outcome.rows).trim_end_matches('\n'));
        if let Some(flows) = flow_table::of_single_run(study, folder)? {
            print_line!("\n{}", flows.trim_end_matches('\n'));
        }
        let begin_late = outcome.intervals.iter().filter(|(from, _)| !from.is_zero());
        let late: Vec<String> = begin_late.map(|interval| interval_in_words(*interval)).collect();
        if !late.is_empty() {
            print_line!("\nRates, delays and ratios: {}. Counts of packets: the whole run.", late.join("; "));
        }
        flow_tables(&outcome.flows);
        if let Some(text) = describe_chance_verdicts(&outcome.rows) {
            print_line!("{text}");
        }
        if let Some(text) = expectations::table(&outcome.expectations) {
            print_line!("\nExpectations:\n{}", text.trim_end_matches('\n'));
        }
        if !outcome.seeds.is_empty() {
            print_line!("\n{}", SeedVerdicts::markdown_table(&study.name, &outcome.seeds).trim_end_matches('\n'));
            print_line!("\nCPU time of all runs: {:.1} s", outcome.cpu_s);
        }
    }
    let (shown, more) = outcome.warnings.split_at(outcome.warnings.len().min(MOST_WARNINGS));
    shown.iter().for_each(|warning| eprintln!("warning: {warning}"));
    if !more.is_empty() {
        eprintln!("warning: {} more warnings, see the report", more.len());
    }
    if !common.quiet {
        let ended = clocks();
        eprintln!(
            "{} made, {} reused, in {:.1} s with {:.1} s of CPU time; records in {}",
            format_count(outcome.made as u64, "run"),
            outcome.reused,
            ended[0] - begun[0],
            ended[1] - begun[1],
            folder.display()
        );
        for file in program_outputs(folder) {
            eprintln!("output of a program: {}", file.display());
        }
        if let Some(built) = &built {
            eprintln!("report: {}", built.html.display());
        }
    }
    if let (Some(built), true) = (&built, common.open) {
        open::open(&built.html);
    }
    match outcome.exit_status() {
        4 => Err(Failure::expectation(expectations::failures(&outcome.expectations))),
        status => end_with(status, &outcome.failed, &outcome.untrusted),
    }
}

/// Returns the result of a command with this exit status: 0, 1 if runs failed, or 3 if results are not trusted.
fn end_with(status: u8, failed: &[(String, String)], untrusted: &[(String, String)]) -> Result<(), Failure> {
    let reasons = |list: &[(String, String)]| {
        let shown: Vec<String> = list.iter().take(20).map(|(run, why)| format!("\n  {run}: {why}")).collect();
        let more = list.len().saturating_sub(20);
        shown.concat() + &if more > 0 { format!("\n  and {more} more") } else { String::new() }
    };
    match status {
        0 => Ok(()),
        1 => Err(Failure::run(format!("{} failed:{}", format_count(failed.len() as u64, "run"), reasons(failed)))),
        _ => Err(Failure::untrusted(format!("results that cannot be trusted:{}", reasons(untrusted)))),
    }
}

/// Returns the files with the output of programs, if the folder has a single run: `client.out.txt` and
/// `client.err.txt`. Empty files are omitted.
fn program_outputs(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let runs = entries(&folder.join("runs"));
    let [run] = runs.as_slice() else { return Vec::new() };
    let is_output = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        (name.ends_with(".out.txt") || name.ends_with(".err.txt")) && file.metadata().is_ok_and(|data| data.len() > 0)
    };
    let mut files: Vec<PathBuf> = entries(run).into_iter().filter(is_output).collect();
    files.sort();
    files
}

/// The printed columns.
const SHOWN: [Column<SummaryRow>; 11] = [
    SummaryRow::point(),
    SummaryRow::metric(),
    SummaryRow::unit(),
    SummaryRow::n(),
    SummaryRow::mean(),
    SummaryRow::ci95(),
    SummaryRow::published(),
    SummaryRow::tolerance(),
    SummaryRow::verdict(),
    SummaryRow::support(),
    SummaryRow::note(),
];

/// The maximum number of printed warnings; further warnings are only counted.
const MOST_WARNINGS: usize = 20;

/// The printed columns of application metrics.
const OF_APPLICATIONS: [Column<FlowSummaryRow>; 8] = [
    FlowSummaryRow::point(),
    FlowSummaryRow::flow(),
    FlowSummaryRow::host(),
    FlowSummaryRow::metric(),
    FlowSummaryRow::unit(),
    FlowSummaryRow::n(),
    FlowSummaryRow::mean(),
    FlowSummaryRow::ci95(),
];

/// The maximum number of printed rows of each table of flows; the report contains all.
const MOST_ROWS: usize = 40;

/// Prints the application metrics, then the packet delays.
fn flow_tables(rows: &[FlowSummaryRow]) {
    let of_applications: Vec<FlowSummaryRow> = rows.iter().filter(|row| !row.is_delay()).cloned().collect();
    // For a single run, the number of runs is redundant.
    let single = rows.iter().all(|row| row.n <= 1 && row.point.is_empty());
    let n = FlowSummaryRow::n().name;
    let columns: Vec<_> = OF_APPLICATIONS.into_iter().filter(|column| !single || column.name != n).collect();
    let (shown, more) = of_applications.split_at(of_applications.len().min(MOST_ROWS));
    if !shown.is_empty() {
        print_line!("\nApplication metrics, of the whole run:\n{}", table(shown, &columns).trim_end_matches('\n'));
        print_rest(more.len());
    }
    // The percentiles of a flow are consecutive.
    let mut flows: Vec<Vec<&FlowSummaryRow>> = Vec::new();
    for row in rows.iter().filter(|row| row.is_delay()) {
        match flows.last_mut() {
            Some(flow) if (&flow[0].point, &flow[0].flow) == (&row.point, &row.flow) => flow.push(row),
            _ => flows.push(vec![row]),
        }
    }
    let (shown, more) = flows.split_at(flows.len().min(MOST_ROWS));
    if shown.is_empty() {
        return;
    }
    let mut lines: Vec<Vec<String>> =
        vec![["point", "flow", "received by"].into_iter().chain(DELAY_COLUMNS).map(str::to_owned).collect()];
    for flow in shown {
        let value = |metric: &str| {
            let row = flow.iter().find(|row| row.metric == metric)?;
            let interval = row.ci95.map_or_else(String::new, |ci95| format!(" ± {}", significant(ci95, 2)));
            Some(significant(row.mean?, 4) + &interval)
        };
        let names = [flow[0].point.to_string(), flow[0].flow.clone(), flow[0].host.clone()];
        lines.push(names.into_iter().chain(DELAY_COLUMNS.map(|metric| value(metric).unwrap_or_default())).collect());
    }
    let text = aligned(&lines, |_| false);
    print_line!("\nOne-way delay of packets, percentiles:\n{}", text.trim_end_matches('\n'));
    print_rest(more.len());
}

fn print_rest(rows: usize) {
    if rows > 0 {
        print_line!("{rows} more rows in {}", fullpipe::archive::FLOW_SUMMARY.file);
    }
}

/// Returns the text of a cell. Numbers have six significant digits.
fn cell<R>(column: &Column<R>, row: &R) -> String {
    match (column.cell)(row) {
        Cell::Number(number) => significant(number, 6),
        cell => {
            let mut text = String::new();
            cell.write_to(&mut text);
            text
        }
    }
}

/// Returns the metrics and claims of a study. For a single run each total has a label, such as "mean over flows", and
/// metrics without a value are listed below the table. A note that all rows have is also written once, below the table.
/// Claims on experiments that were not selected are only counted.
fn metric_table(study: &Study, rows: &[SummaryRow]) -> String {
    let is_selected = |row: &&SummaryRow| {
        let claim = row.claim().and_then(|name| study.claim(name));
        let experiments = || study.experiments.iter().map(|experiment| experiment.name.as_str());
        claim.is_none_or(|claim| !claim.record.is_of_unselected(experiments(), &study.selected))
    };
    let (rows, of_others): (Vec<&SummaryRow>, Vec<&SummaryRow>) = rows.iter().partition(is_selected);
    let single = matches!(study.seeds, SeedSource::Fixed(_));
    let has_value = |row: &&SummaryRow| !single || row.run_count() > 0 || row.mean.is_some() || row.verdict.is_some();
    let (rows, without): (Vec<&SummaryRow>, Vec<&SummaryRow>) = rows.into_iter().partition(has_value);
    let note = rows.first().map(|row| row.note.as_str()).unwrap_or_default();
    let common = rows.len() > 1 && !note.is_empty() && rows.iter().all(|row| row.note == note);
    let total = |row: &SummaryRow| {
        let metric = study.metrics.iter().find(|metric| metric.record.name == row.metric);
        let total = metric.and_then(|metric| report::describe_total(&metric.record.expression));
        total.filter(|_| single).unwrap_or_default().to_owned()
    };
    let text = |column: &Column<SummaryRow>, row: &SummaryRow| match column.name {
        name if name == SummaryRow::note().name && common => String::new(),
        name if name == SummaryRow::note().name => report::readable_note(&row.note),
        // A claim that could not be tested also has a word.
        name if name == SummaryRow::verdict().name && row.claim().is_some() && row.verdict.is_none() => {
            "no verdict".to_owned()
        }
        _ => cell(column, row),
    };
    let mut lines = vec![SHOWN.iter().map(|column| column.name.to_owned()).chain(["total".to_owned()]).collect()];
    lines.extend(rows.iter().map(|row| SHOWN.iter().map(|column| text(column, row)).chain([total(row)]).collect()));
    let is_numeric: Vec<bool> = SHOWN.iter().map(|column| column.is_numeric()).chain([false]).collect();
    let mut out = output::aligned(&lines, &is_numeric);
    if common {
        out += &format!("Note on every row: {}\n", report::readable_note(note));
    }
    if !without.is_empty() {
        let names: Vec<String> = without.iter().map(|row| row.name()).collect();
        out += &format!("Without a value: {}\n", names.join(", "));
    }
    if !of_others.is_empty() {
        out += &format!("{} on experiments that were not selected\n", format_count(of_others.len() as u64, "claim"));
    }
    out
}

/// Returns the rows as aligned columns; empty columns are omitted.
fn table<R>(rows: &[R], shown: &[Column<R>]) -> String {
    let mut lines: Vec<Vec<String>> = vec![shown.iter().map(|column| column.name.to_owned()).collect()];
    lines.extend(rows.iter().map(|row| shown.iter().map(|column| cell(column, row)).collect::<Vec<_>>()));
    output::aligned(&lines, &shown.iter().map(|column| column.is_numeric()).collect::<Vec<_>>())
}

/// Formats lines as aligned columns, with headings in the first line; empty columns are omitted.
fn aligned(lines: &[Vec<String>], numeric: impl Fn(usize) -> bool) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let used: Vec<usize> =
        (0..columns).filter(|&column| lines[1..].iter().any(|row| !row[column].is_empty())).collect();
    let width = |column: usize| lines.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cell = |column: &usize| {
            let (text, width) = (&row[*column], widths[*column]);
            if numeric(*column) { format!("{text:>width$}") } else { format!("{text:<width$}") }
        };
        used.iter().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    lines.iter().map(line).collect()
}

/// Returns a number with this many significant digits, without trailing zeros; integers are exact.
pub(crate) fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    if !(1e-4..1e9).contains(&value.abs()) {
        let decimals = (digits - 1).max(0) as usize;
        return format!("{value:.decimals$e}");
    }
    let magnitude = fullpipe::units::math::log10(value.abs()).floor() as i32;
    let decimals = (digits - 1 - magnitude).clamp(0, 12) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// Runs `fullpipe check`.
pub(crate) fn check(files: &[String]) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    let laboratory = VirtualTimeRunner::new(BUILD);
    for file in files {
        let is_named_study = Path::new(file).is_dir()
            || embedded::scenario_text(file).is_none() && embedded::study_names().any(|name| name == file);
        let found = if is_named_study {
            // `find_study` reads its text.
            Ok((String::new(), file.clone()))
        } else {
            find_scenario(file).map(|found| (found.text, found.name))
        };
        let (text, name) = match found {
            Ok(found) => found,
            Err(failure) => {
                wrong.push(failure.message);
                continue;
            }
        };
        let outcome = if !is_named_study && masque::is_configuration(&text) {
            let checked = masque::check_configuration(Path::new(file));
            checked.map(|()| (Vec::new(), Vec::new())).map_err(|failure| failure.message)
        } else if is_named_study || is_study(&text) {
            find_study(file).map_err(|failure| failure.message).and_then(|study| {
                let undecidable = study.undecidable_claims();
                undecidable.iter().for_each(|warning| eprintln!("warning: {name}: {warning}"));
                let plan = study::plan::make_plan(&study, &laboratory).map_err(|error| error.to_string())?;
                Ok((intervals_of(&plan), warnings_of_study(&plan)?))
            })
        } else {
            scenario::load(&text, &name, &[]).map_err(|errors| errors.to_string()).and_then(|loaded| {
                show_hints(&loaded.hints);
                show_bdp_limits(&loaded.scenario.bdp_limits);
                study::expect::scenario_expectations(&loaded).map_err(|errors| errors.to_string())?;
                fullpipe::lab::prepare(&loaded.scenario, &Default::default())
                    .map(|prepared| (vec![interval_in_words(loaded.scenario.measured_interval())], prepared.warnings()))
                    .map_err(|error| format!("{name}: {error}"))
            })
        };
        match outcome {
            Ok((intervals, warnings)) => {
                show_hints(&laboratory.take_hints());
                eprintln!("{name}: OK");
                intervals.iter().for_each(|interval| eprintln!("  measured: {interval}"));
                let (shown, more) = warnings.split_at(warnings.len().min(MOST_WARNINGS));
                shown.iter().for_each(|warning| eprintln!("{name}: warning: {warning}"));
                if !more.is_empty() {
                    eprintln!("{name}: warning: {} more warnings", more.len());
                }
            }
            Err(message) => wrong.push(message),
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::usage(wrong.join("\n"))) }
}

/// Prints the bytes and the round-trip time of limits in BDP. If there are many, only the first ones are printed.
fn show_bdp_limits(limits: &[BdpLimit]) {
    const SHOWN: usize = 20;
    limits.iter().take(SHOWN).for_each(|limit| eprintln!("{limit}"));
    if limits.len() > SHOWN {
        eprintln!("and {} more limits in BDP", limits.len() - SHOWN);
    }
}

/// Returns the interval to which rates, means and ratios of a run apply.
fn interval_in_words((from, duration): (Duration, Duration)) -> String {
    // A run ends early if no events remain.
    if from.is_zero() {
        format!("the whole run, from 0s to {duration} at most (no `[measurement]` with `from`)")
    } else {
        format!("from {from} (`[measurement]`) to the end of the run at {duration} at most")
    }
}

/// Returns the intervals of the points of a study: each distinct interval with its experiments.
fn intervals_of(plan: &study::plan::Plan) -> Vec<String> {
    let mut intervals: Vec<((Duration, Duration), Vec<&str>)> = Vec::new();
    for point in &plan.points {
        let Some(run) = point.runs.first().and_then(|run| plan.runs.get(*run)) else { continue };
        let interval = run.scenario.measured_interval;
        let known = match intervals.iter_mut().find(|(known, _)| *known == interval) {
            Some((_, experiments)) => experiments,
            None => {
                intervals.push((interval, Vec::new()));
                let Some((_, experiments)) = intervals.last_mut() else { continue };
                experiments
            }
        };
        if known.last() != Some(&point.experiment.as_str()) && !known.contains(&point.experiment.as_str()) {
            known.push(&point.experiment);
        }
    }
    let line = |(interval, experiments): &(_, Vec<&str>)| {
        format!("{} ({})", interval_in_words(*interval), experiments.join(", "))
    };
    intervals.iter().map(line).collect()
}

/// Checks a study. Returns the distinct warnings of the first run of each point.
fn warnings_of_study(plan: &study::plan::Plan) -> Result<Vec<Warning>, String> {
    let first_runs = plan.points.iter().filter_map(|point| plan.runs.get(*point.runs.first()?));
    let mut warnings: Vec<Warning> = Vec::new();
    for run in first_runs {
        let name = "the resolved scenario";
        // Paths of files in the scenario are relative to the folder of the scenario.
        let file = run.scenario.folder.as_ref().map_or_else(|| name.into(), |folder| folder.join(name));
        let loaded = scenario::load(&run.scenario.text, &file.display().to_string(), &[]);
        let scenario = loaded.map_err(|errors| format!("{}: {errors}", run.label))?.scenario;
        let prepared = fullpipe::lab::prepare(&scenario, &Default::default());
        for mut warning in prepared.map_err(|error| format!("{}: {error}", run.label))?.warnings() {
            if !warnings.iter().any(|known| known.name == warning.name && known.place == warning.place) {
                warning.text = format!("{} (at {})", warning.text, run.label);
                warnings.push(warning);
            }
        }
    }
    Ok(warnings)
}

/// Returns whether the text is a study, which has experiments; a scenario has flows. Only top-level keys count:
/// `experiments` in another table is a key of that table.
pub(crate) fn is_study(text: &str) -> bool {
    let mut is_in_table = false;
    for line in text.lines().map(str::trim_start) {
        let is_header = line.starts_with('[');
        is_in_table |= is_header;
        if (is_header || !is_in_table) && line.trim_start_matches('[').trim_start().starts_with("experiment") {
            return true;
        }
    }
    false
}

/// Returns whether the text is a scenario, which has a network and flows; a study refers to scenarios.
fn is_scenario(text: &str) -> bool {
    const TABLES: [&str; 7] = ["[topology", "[[topology", "[[host", "[[link", "[[flow", "[[program", "[[router"];
    let mut lines = text.lines().map(str::trim_start);
    !is_study(text) && lines.any(|line| TABLES.iter().any(|table| line.starts_with(table)))
}

/// Returns the error for an unknown word after `fullpipe study`.
pub(crate) fn unknown_study_command(words: &[OsString]) -> Failure {
    let word = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let is_name = Path::new(&word).exists() || embedded::study_names().any(|name| name == word);
    let near = || scenario::schema::nearest_name(&word, ["run", "list", "merge"]);
    let hint = match is_name {
        true => format!("; did you mean `fullpipe study run {word}`?"),
        false => near().map_or_else(String::new, |near| format!("; did you mean `fullpipe study {near}`?")),
    };
    Failure::usage(format!("`fullpipe study` has no command `{word}`{hint} (there are: list, merge, run)"))
}

/// Runs `fullpipe study list`.
pub(crate) fn list_studies(json_wanted: bool) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for name in embedded::study_names() {
        let study = find_study(name)?;
        rows.push(json!({
            "name": name,
            "version": env!("CARGO_PKG_VERSION"),
            "source": study.source,
            "summary": study.title,
        }));
    }
    if json_wanted {
        output::json(&Value::Array(rows));
    } else {
        for row in rows {
            print_line!("{}  {}", row["name"].as_str().unwrap_or(""), row["summary"].as_str().unwrap_or(""));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn significant_has_the_requested_number_of_digits() {
        assert_eq!(significant(0.0416312, 4), "0.04163");
        assert_eq!(significant(0.00012999, 2), "0.00013");
        // Below 0.0001: the same number of digits in scientific notation.
        assert_eq!(significant(0.0000975481, 2), "9.8e-5");
        assert_eq!(significant(2.402e-7, 6), "2.40200e-7");
        assert_eq!(significant(1780.0, 2), "1780");
    }
}
