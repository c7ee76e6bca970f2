//! The runner for virtual time: runs scenarios of the `scenario` crate with the `lab` crate.

use crate::port::{ResolvedScenario, RunError, RunOptions, RunRecords, Runner, ScenarioSource, changed_file_reason};
use crate::tables::{EVENT_AT, EVENT_MET};
use fullpipe_archive::json::NamedCounts;
use fullpipe_archive::{AuditRecord, BdpLimitRecord, CellValue, ContentRecord, NatRecord, PacketCounts, RunRecord};
use fullpipe_lab::cost::Cost;
use fullpipe_lab::{CaptureOptions, FileAppender, InjectedFault, Options, Outcome, Plugins, QlogOptions, SampleOutput};
use fullpipe_scenario::description::direction_name;
use fullpipe_scenario::schema::Hint;
use fullpipe_scenario::{Override, Scenario};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Runs scenarios in virtual time.
#[derive(Clone, Debug)]
pub struct VirtualTimeRunner {
    build: String,
    faults: Vec<InjectedFault>,
    digests: Arc<Digests>,
    recent: Arc<Recent>,
    hints: Arc<Mutex<BTreeSet<Hint>>>,
}

/// The scenarios that were parsed last. The runs of a point are successive and differ only in their seeds, so they
/// share the scenario with its traces. A cache of more scenarios would need more memory.
#[derive(Debug, Default)]
struct Recent(Mutex<VecDeque<(ResolvedText, Arc<Scenario>)>>);

/// The text of a resolved scenario and the folder of its files.
type ResolvedText = (String, Option<PathBuf>);

/// The number of scenarios in the cache. With several workers, the last runs of a point overlap with the first runs of
/// the next.
const MOST_RECENT: usize = 2;

impl Recent {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(ResolvedText, Arc<Scenario>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, text: &str, folder: Option<&Path>) -> Option<Arc<Scenario>> {
        let known = self.lock();
        let mut known = known.iter();
        let found = known.find(|((of, at), _)| of == text && at.as_deref() == folder);
        found.map(|(_, scenario)| scenario.clone())
    }

    fn keep(&self, text: ResolvedText, scenario: Arc<Scenario>) {
        let mut known = self.lock();
        known.push_front((text, scenario));
        known.truncate(MOST_RECENT);
    }
}

/// Cache of SHA-256 hashes of files to which scenarios refer. A trace may have hundreds of megabytes, and each point of
/// a study may refer to it.
#[derive(Debug, Default)]
struct Digests(Mutex<BTreeMap<PathBuf, FileDigest>>);

/// The hash of a file, and the length and time of modification that the file had.
#[derive(Clone, Debug)]
struct FileDigest {
    hash: Vec<u8>,
    length: u64,
    modified: Option<SystemTime>,
}

impl FileDigest {
    /// Reads a file. Its length and time are read first, so that a change in the meantime is visible later.
    fn read(path: &Path) -> std::io::Result<Self> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        let mut hash = Sha256::new();
        std::io::copy(&mut file, &mut hash)?;
        let hash = hash.finalize().to_vec();
        Ok(FileDigest { hash, length: metadata.len(), modified: metadata.modified().ok() })
    }
}

impl Digests {
    fn of(&self, path: &Path) -> Result<Vec<u8>, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digest) = known.get(path) {
            return Ok(digest.hash.clone());
        }
        let digest = FileDigest::read(path).map_err(|reason| format!("cannot read {}: {reason}", path.display()))?;
        let hash = digest.hash.clone();
        known.insert(path.to_owned(), digest);
        Ok(hash)
    }

    /// Fails if a file has no longer the content whose hash is known. A run reads its files again, and its key has the
    /// earlier hash.
    fn check(&self, path: &Path) -> Result<(), String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(digest) = known.get_mut(path) else { return Ok(()) };
        let metadata = std::fs::metadata(path).ok();
        let now = metadata.map(|metadata| (metadata.len(), metadata.modified().ok()));
        if now == Some((digest.length, digest.modified)) && digest.modified.is_some() {
            return Ok(());
        }
        match FileDigest::read(path) {
            Ok(read) if read.hash == digest.hash => *digest = read,
            _ => return Err(changed_file_reason(path)),
        }
        Ok(())
    }
}

impl VirtualTimeRunner {
    /// Creates a runner with this build identity.
    pub fn new(build: impl Into<String>) -> Self {
        VirtualTimeRunner {
            build: build.into(),
            faults: Vec::new(),
            digests: Arc::default(),
            recent: Arc::default(),
            hints: Arc::default(),
        }
    }

    /// Returns the scenario of a resolved text, from the cache if possible.
    fn scenario(&self, resolved: &ResolvedScenario, options: &RunOptions) -> Result<Arc<Scenario>, RunError> {
        if let Some(known) = self.recent.find(&resolved.text, resolved.folder.as_deref()) {
            return Ok(known);
        }
        let read = Arc::new(load(resolved, 0, options)?);
        self.recent.keep((resolved.text.clone(), resolved.folder.clone()), read.clone());
        Ok(read)
    }

    /// Runs a scenario with this seed and with components of the calling program. If [`RunOptions::attach`] is
    /// disabled, the samples of probes remain in memory.
    ///
    /// # Errors
    /// The errors of [`Runner::run`], or an error if a plug-in selects a flow or link that does not exist.
    pub fn simulate(
        &self,
        scenario: &ResolvedScenario,
        seed: u64,
        options: &RunOptions,
        plugins: Plugins,
    ) -> Result<SimulatedRun, RunError> {
        if options.stop.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let shared = self.scenario(scenario, options)?;
        let files: Vec<PathBuf> = shared.referenced_files().map(Path::to_owned).collect();
        if let Some(reason) = shared.real_time_reason() {
            return Err(RunError::Failed(format!("it cannot run in virtual time: {reason}")));
        }
        // The scenario is copied only for another seed, because a copy of 10 000 flows takes 12 MB.
        let own = if shared.seed == seed {
            shared
        } else {
            let mut own = Scenario::clone(&shared);
            own.seed = seed;
            Arc::new(own)
        };
        let faults = self.faults.clone();
        let samples = options.attach.is_enabled().then(|| SampleOutput { append: append(options) });
        let lab_options = Options { faults, samples, ..lab_options(options) };
        let begun_s = thread_cpu_s();
        let run = || {
            let prepared = fullpipe_lab::prepare_with(own, &lab_options, plugins)?;
            Ok(prepared.run_until(|| options.stop.load(Ordering::Relaxed)))
        };
        let (outcome, draws) = fullpipe_units::random::count_draws(run);
        let outcome = outcome.map_err(|error: fullpipe_lab::RunError| RunError::Failed(error.to_string()))?;
        let outcome = outcome.ok_or(RunError::Interrupted)?;
        files.iter().try_for_each(|file| self.digests.check(file)).map_err(RunError::Failed)?;
        let cpu_s = thread_cpu_s().zip(begun_s).map(|(ended, begun)| ended - begun);
        Ok(SimulatedRun { outcome, draws: NamedCounts(draws.into_iter().collect()), cpu_s })
    }

    /// Removes and returns the hints about the scenarios that this runner and its clones have resolved since the last
    /// call. The hints are sorted by file and line, without duplicates.
    pub fn take_hints(&self) -> Vec<Hint> {
        std::mem::take(&mut *self.hints.lock().unwrap_or_else(PoisonError::into_inner)).into_iter().collect()
    }

    /// Returns the same runner with faults injected into every simulation, for tests of the auditor. The faults are
    /// part of the run's key, so a run with faults is never reused as a valid run.
    pub fn with_faults(mut self, faults: Vec<InjectedFault>) -> Self {
        self.faults = faults;
        self
    }
}

impl Runner for VirtualTimeRunner {
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String> {
        let loaded =
            fullpipe_scenario::load(&scenario.text, &scenario.name, overrides).map_err(|errors| errors.to_string())?;
        let mut hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        hints.extend(loaded.hints);
        drop(hints);
        let described = &loaded.scenario;
        let directions = described.flows.iter().enumerate().flat_map(|(number, flow)| {
            let is_main = described.main_senders(number);
            [0, 1].map(|end| (direction_name(&flow.name, end), is_main[end]))
        });
        let (flows, main): (Vec<_>, Vec<_>) = directions.unzip();
        let main_flows = flows.iter().zip(main).filter(|(_, is_main)| *is_main).map(|(name, _)| name.clone()).collect();
        let probes = described.probes.iter();
        let series = probes.flat_map(|probe| {
            let subject = probe.subject_name(described);
            probe.metrics.iter().map(move |metric| (subject.clone(), metric.clone()))
        });
        let series = series.collect();
        let events = described.events.iter().flat_map(|event| {
            let recorded = [EVENT_MET, EVENT_AT].into_iter().chain(event.records.iter().map(String::as_str));
            recorded.map(|value| (event.name.clone(), value.to_owned()))
        });
        let events = events.collect();
        let measured = loaded.scenario.measurement.links.iter();
        let links = measured.map(|link| loaded.scenario.links[*link].name.clone()).collect();
        let mut content = loaded.resolved.clone().into_bytes();
        for file in loaded.scenario.referenced_files() {
            ResolvedScenario::append_file_hash(&mut content, &self.digests.of(file)?);
        }
        if !self.faults.is_empty() {
            content.extend(format!("\nfaults: {:?}", self.faults).into_bytes());
        }
        let hosts = loaded.scenario.nodes.iter().map(|node| node.name.clone()).collect();
        let measured_interval = loaded.scenario.measured_interval();
        let cost = Cost::estimate(&loaded.scenario);
        let (text, folder) = (loaded.resolved, scenario.folder.clone());
        let unsupported = fullpipe_lab::unsupported_reason(described);
        // The resolved text would be parsed into an equal scenario.
        self.recent.keep((text.clone(), folder.clone()), Arc::new(loaded.scenario));
        Ok(ResolvedScenario {
            text,
            content,
            flows,
            main_flows,
            links,
            hosts,
            series,
            events,
            measured_interval,
            folder,
            cost,
            unsupported,
        })
    }

    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunError> {
        self.simulate(scenario, seed, options, Plugins::default())?.records(scenario, options)
    }

    fn random_starts_override(&self) -> Option<Override> {
        Some(Override { path: "phase_jitter".to_owned(), value: "1.0".to_owned() })
    }

    fn build_identity(&self) -> String {
        self.build.clone()
    }
}

/// A finished simulation in virtual time, whose records are not written yet.
#[derive(Debug)]
pub struct SimulatedRun {
    outcome: Outcome,
    draws: NamedCounts,
    cpu_s: Option<f64>,
}

impl SimulatedRun {
    /// The outcome of the simulation.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Returns the records of the run; `scenario` and `options` are those of the run.
    ///
    /// # Errors
    /// [`RunError::System`] if files that the run wrote during its execution are incomplete.
    pub fn records(&self, scenario: &ResolvedScenario, options: &RunOptions) -> Result<RunRecords, RunError> {
        let mut records = records(&self.outcome, scenario, options, "virtual")?;
        records.run.random_streams = Some(self.draws.clone());
        records.cpu_s = self.cpu_s;
        Ok(records)
    }
}

/// Returns the CPU time of this thread in seconds.
#[cfg(unix)]
fn thread_cpu_s() -> Option<f64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

#[cfg(not(unix))]
fn thread_cpu_s() -> Option<f64> {
    None
}

/// Returns the queue limits that the scenario states in units of the BDP.
fn bdp_limits(scenario: &Scenario) -> Vec<BdpLimitRecord> {
    let limits = scenario.bdp_limits.iter();
    let record = limits.map(|limit| BdpLimitRecord {
        link: limit.link.clone(),
        key: limit.key.clone(),
        rate_bps: limit.rate.bits_per_second(),
        round_trip_s: limit.round_trip.to_cell().number(),
        bytes: limit.bytes,
    });
    record.collect()
}

/// Loads the scenario of a run, ready to be built.
pub(crate) fn load(scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<Scenario, RunError> {
    if options.stop.load(Ordering::Relaxed) {
        return Err(RunError::Interrupted);
    }
    let name = "the resolved scenario".to_owned();
    // Paths of files in the scenario are relative to the scenario's folder.
    let name = scenario.folder.as_ref().map_or(name.clone(), |folder| folder.join(name).display().to_string());
    let mut loaded = fullpipe_scenario::load(&scenario.text, &name, &[])
        .map_err(|errors| RunError::Failed(errors.to_string()))?
        .scenario;
    loaded.seed = seed;
    Ok(loaded)
}

/// Converts the options of a run to those of the `lab` crate.
pub(crate) fn lab_options(options: &RunOptions) -> Options {
    let capture = options.pcap.map(|snap_bytes| CaptureOptions { snap_bytes, append: append(options) });
    let qlog = options.qlog.then(|| QlogOptions { append: append(options) });
    Options { audit_packets: options.audit, capture, qlog, ..Options::default() }
}

/// Returns the destination of a run's further files.
pub(crate) fn append(options: &RunOptions) -> FileAppender {
    let attach = options.attach.clone();
    Arc::new(move |name, bytes| attach.append(name, bytes))
}

/// Returns the records of a run.
pub(crate) fn records(
    outcome: &Outcome,
    scenario: &ResolvedScenario,
    options: &RunOptions,
    clock: &str,
) -> Result<RunRecords, RunError> {
    outcome.capture_result().map_err(|reason| RunError::System(reason.to_string()))?;
    let files = outcome.tables().into_iter().map(|(name, content)| (name.to_owned(), content)).collect();
    let mut records = RunRecords { files, ..RunRecords::default() };
    let verdict = outcome.verdict();
    let failures: Vec<String> = verdict.failures.iter().map(ToString::to_string).collect();
    if !verdict.passed() {
        records.run.distrust.extend(failures.iter().map(|failure| format!("audit: {failure}")));
        if verdict.failures_not_kept > 0 {
            records.run.distrust.push(format!("audit: {} more failures", verdict.failures_not_kept));
        }
    }
    let content = outcome.content_rows().map(|row| ContentRecord {
        flow: row.flow.to_owned(),
        sent_sha256: row.sent_sha256,
        received_sha256: row.received_sha256,
    });
    let altered = outcome.content_rows().filter(|row| row.completed && row.sent_sha256 != row.received_sha256);
    records
        .run
        .distrust
        .extend(altered.map(|row| format!("flow {}: the received bytes differ from the sent bytes", row.flow)));
    let totals = outcome.totals();
    let nat = outcome.nat_rows().map(|(router, counters)| NatRecord {
        router: router.to_owned(),
        mappings: counters.mappings,
        expired: counters.expired,
        exhausted: counters.exhausted,
        unopened: counters.unopened,
        unsolicited: counters.unsolicited,
    });
    records.run = RunRecord {
        title: outcome.scenario().title.clone(),
        clock: clock.to_owned(),
        // A time is converted to the nearest number, as in a cell, which is printed with the same nanoseconds.
        duration_s: outcome.end_time().to_cell().number(),
        measurement_from_s: outcome.scenario().measurement.from.to_cell().number(),
        packets: PacketCounts {
            received: totals.packets,
            received_with_data: totals.data_packets,
            lost: totals.lost_packets,
            hops: totals.packet_hops,
        },
        events: totals.events,
        bdp_limits: Some(bdp_limits(outcome.scenario())).filter(|limits| !limits.is_empty()),
        nat: nat.collect(),
        content: content.collect(),
        audit: AuditRecord {
            passed: verdict.passed(),
            packet_by_packet: options.audit,
            checks: NamedCounts(verdict.checks.iter().map(|(rule, count)| (rule.to_string(), *count)).collect()),
            failures,
            failures_not_kept: verdict.failures_not_kept,
        },
        timeouts: Some(NamedCounts(outcome.timeouts().into_iter().collect())).filter(|timeouts| !timeouts.0.is_empty()),
        scenario: scenario.text.clone(),
        warnings: Some(outcome.warnings()).filter(|warnings| !warnings.is_empty()),
        ..records.run
    };
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(laboratory: &VirtualTimeRunner, rate: &str) -> ResolvedScenario {
        let text = format!(
            r#"
            duration = "1s"
            [topology]
            kind = "chain"
            link = [{{ rate = "{rate}", delay = "5ms" }}]
            [[flow]]
            from = "source"
            to = "sink"
            size = "10kB"
            "#
        );
        let source = ScenarioSource { name: "test".to_owned(), origin: "test".to_owned(), text, folder: None };
        laboratory.resolve(&source, &[]).expect("a good scenario")
    }

    #[test]
    fn the_runs_of_a_point_share_one_scenario() {
        let laboratory = VirtualTimeRunner::new("test");
        let (first, second) = (resolved(&laboratory, "1Mbit/s"), resolved(&laboratory, "2Mbit/s"));
        let options = RunOptions::default();
        let scenario = |resolved| laboratory.scenario(resolved, &options).expect("a good scenario");
        // The scenario that was resolved last is not read again, nor is one that was run before.
        let known = laboratory.recent.find(&second.text, None).expect("it was resolved");
        assert!(Arc::ptr_eq(&known, &scenario(&second)));
        assert!(Arc::ptr_eq(&scenario(&first), &scenario(&first)));
        // The scenario read from the resolved text equals the resolved one.
        let read = load(&second, known.seed, &options).expect("a good scenario");
        assert_eq!(read, *known);
        // A third scenario replaces the oldest.
        let third = resolved(&laboratory, "3Mbit/s");
        assert!(laboratory.recent.find(&third.text, None).is_some());
        assert_eq!(laboratory.recent.lock().len(), MOST_RECENT);
        assert!(laboratory.recent.find(&third.text, Some(Path::new("elsewhere"))).is_none());
    }

    #[test]
    fn runs_with_a_shared_scenario_have_their_own_seeds() {
        let laboratory = VirtualTimeRunner::new("test");
        let scenario = resolved(&laboratory, "1Mbit/s");
        let alone = VirtualTimeRunner::new("test");
        for seed in [1, 2, 1] {
            let of = |laboratory: &VirtualTimeRunner| {
                let records = laboratory.run(&scenario, seed, &RunOptions::default()).expect("a run");
                (records.files, records.run)
            };
            assert_eq!(of(&laboratory), of(&alone));
        }
    }
}
