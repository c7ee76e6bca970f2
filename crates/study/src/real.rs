//! The runner for real time: runs scenarios with the wall clock and with real programs in namespaces of this machine.

use crate::laboratory::{self, VirtualTimeRunner};
use crate::port::{ResolvedScenario, RunError, RunOptions, RunRecords, Runner, ScenarioSource};
use fullpipe_archive::json::Nullable;
use fullpipe_archive::{
    KernelEndRecord, KernelRecord, LatenessRecord, LatenessSpread, NegotiatedRecord, ProgramRecord,
};
use fullpipe_lab::real_time::{self, Lateness, LatenessSummary, RealTimeOptions, RealTimeOutcome};
use fullpipe_scenario::Override;
use fullpipe_scenario::description::LatenessPolicy;
use fullpipe_units::{Duration, Instant};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A function that receives the clock time and the lateness during a run.
pub type LatenessObserver = Box<dyn Fn(Instant, &Lateness) + Send + Sync>;

/// A runner for virtual time combined with a runner for real time.
pub struct RunnerPair {
    virtual_time: VirtualTimeRunner,
    real_time: Box<dyn Runner>,
}

impl fmt::Debug for RunnerPair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Laboratories").field("virtual_time", &self.virtual_time).finish_non_exhaustive()
    }
}

impl RunnerPair {
    /// Combines the two runners.
    pub fn new(virtual_time: VirtualTimeRunner, real_time: Box<dyn Runner>) -> Self {
        RunnerPair { virtual_time, real_time }
    }
}

impl Runner for RunnerPair {
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String> {
        self.virtual_time.resolve(scenario, overrides)
    }

    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunError> {
        self.virtual_time.run(scenario, seed, options)
    }

    fn random_starts_override(&self) -> Option<Override> {
        self.virtual_time.random_starts_override()
    }

    fn real_time_runner(&self) -> Option<&dyn Runner> {
        Some(&*self.real_time)
    }

    fn build_identity(&self) -> String {
        self.virtual_time.build_identity()
    }
}

/// Runs scenarios in real time, one at a time.
pub struct RealTimeRunner {
    resolver: VirtualTimeRunner,
    home: real_time::EmulatorNamespace,
    live: LatenessObserver,
}

impl fmt::Debug for RealTimeRunner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RealLaboratory").field("home", &self.home).finish_non_exhaustive()
    }
}

impl RealTimeRunner {
    /// Creates a runner with this build identity. `home` is the network namespace that contains the emulator's ends of
    /// all interfaces. `live` is called during each run.
    pub fn new(build: impl Into<String>, home: real_time::EmulatorNamespace, live: LatenessObserver) -> Self {
        RealTimeRunner { resolver: VirtualTimeRunner::new(build), home, live }
    }
}

impl Runner for RealTimeRunner {
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String> {
        let mut resolved = self.resolver.resolve(scenario, overrides)?;
        resolved.content.extend(b"\nclock: real");
        Ok(resolved)
    }

    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunError> {
        let loaded = laboratory::load(scenario, seed, options)?;
        let lab_options = laboratory::lab_options(options);
        let keep = options.record || loaded.real_time.record_arrivals;
        let policy = loaded.real_time.policy;
        let mut each = |now: Instant, lateness: &Lateness| {
            (self.live)(now, lateness);
            options.stop.load(Ordering::Relaxed)
        };
        let asked = RealTimeOptions {
            folder: scenario.folder.as_deref(),
            record: keep.then(|| laboratory::append(options)),
            ..RealTimeOptions::new(&lab_options, &self.home, &mut each)
        };
        let result = real_time::run(Arc::new(loaded), asked).map_err(|error| match error {
            fullpipe_lab::RunError::System(reason) => RunError::System(reason),
            other => RunError::Failed(other.to_string()),
        })?;
        if options.stop.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let ends = result.kernel.iter().filter_map(|end| {
            let place = if end.sender { "from" } else { "to" };
            Some(format!("flow {}, the kernel's end at {place}: {}", end.flow, end.report.failure.as_ref()?))
        });
        let ended = result.programs.iter().filter_map(|ended| ended.failure.clone());
        let failures: Vec<String> = ended.chain(ends).collect();
        if !failures.is_empty() {
            return Err(RunError::Failed(failures.join("; ")));
        }
        let mut records = laboratory::records(&result.outcome, scenario, options, "real")?;
        records.run.lateness = Some(lateness(&result.lateness, [result.ran, result.processor]));
        records.run.arrivals_not_recorded = Some(result.unrecorded);
        records.run.programs = Some(programs(&result));
        records.run.kernel = Some(kernel(&result));
        records.run.icmp = Some(result.answered);
        records.run.refused_frames = Some(result.refused);
        for ended in result.programs {
            for (kind, text) in [("out", ended.output), ("err", ended.errors)] {
                if !text.is_empty() {
                    records.files.push((format!("{}.{kind}.txt", ended.name), text));
                }
            }
        }
        if policy == LatenessPolicy::HardLimit {
            records.run.distrust.extend(result.lateness.result().reasons.into_iter().map(|why| format!("late: {why}")));
        }
        Ok(records)
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn build_identity(&self) -> String {
        self.resolver.build_identity()
    }
}

/// Converts the lateness to a record, with the duration of the run and the CPU time of its thread.
fn lateness(lateness: &Lateness, [ran, processor]: [Duration; 2]) -> LatenessRecord {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let spread = |spread: LatenessSummary| LatenessSpread {
        count: spread.count,
        late: spread.late,
        p50_s: seconds(spread.p50_nanos),
        p90_s: seconds(spread.p90_nanos),
        p99_s: seconds(spread.p99_nanos),
        p999_s: seconds(spread.p999_nanos),
        max_s: seconds(spread.max_nanos),
    };
    let verdict = lateness.result();
    let packets = lateness.packets();
    LatenessRecord {
        on_time: verdict.is_on_time(),
        reasons: verdict.reasons,
        packets_late: packets.late,
        packets_p50_us: packets.p50_nanos as f64 / 1e3,
        packets_p99_us: packets.p99_nanos as f64 / 1e3,
        packets_max_us: packets.max_nanos as f64 / 1e3,
        stall_count: lateness.stall_count(),
        longest_stall_s: lateness.stalls().iter().max().map_or(0.0, |longest| longest.as_secs_f64()),
        own_drops: lateness.drops(),
        late_after_s: lateness.limits().late_after.as_secs_f64(),
        late_share_allowed: lateness.limits().late_share,
        stall_after_s: lateness.limits().stall_after.as_secs_f64(),
        ran_s: ran.as_secs_f64(),
        worked_s: lateness.busy_time().as_secs_f64(),
        processor_s: processor.as_secs_f64(),
        events: spread(lateness.events()),
        subframes: spread(lateness.subframes()),
        packets: spread(packets),
        arrivals: spread(lateness.arrivals()),
        stalls_s: lateness.stalls().iter().map(|stall| stall.as_secs_f64()).collect(),
    }
}

/// Converts the results of the flows' kernel endpoints to a record. Their behavior depends on the kernel version.
fn kernel(result: &RealTimeOutcome) -> Nullable<KernelRecord> {
    if result.kernel.is_empty() {
        return Nullable(None);
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let ends = result.kernel.iter().map(|end| KernelEndRecord {
        flow: end.flow.clone(),
        end: if end.sender { "from" } else { "to" }.to_owned(),
        congestion: Nullable(end.congestion.clone()),
        received_bytes: end.report.received_bytes,
        retransmitted_segments: Nullable(end.report.retransmitted_segments),
        reorderings_seen: Nullable(end.report.reorderings_seen),
        negotiated: Nullable(end.report.negotiated.map(|agreed| NegotiatedRecord {
            timestamps: agreed.timestamps,
            sack: agreed.sack,
            window_scaling: agreed.window_scaling,
            ecn: agreed.ecn,
        })),
    });
    Nullable(Some(KernelRecord { release: release.trim().to_owned(), ends: ends.collect() }))
}

fn programs(result: &RealTimeOutcome) -> Vec<ProgramRecord> {
    let time = |at: Option<Instant>| Nullable(at.map(|at| at.saturating_since(Instant::ZERO).as_secs_f64()));
    let programs = result.programs.iter();
    programs
        .map(|ended| ProgramRecord {
            name: ended.name.clone(),
            ended: ended.how.clone(),
            started_s: time(ended.started),
            ended_s: time(ended.ended),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lateness::{figure, names};
    use fullpipe_archive::json::JsonValue;
    use fullpipe_lab::real_time::LatenessLimits;

    /// Each distribution has a different count, so that the test detects confused distributions.
    #[test]
    fn an_account_has_all_figures_that_metrics_may_name() {
        let mut counted = Lateness::new(LatenessLimits::default());
        let micros = |number: u64| Duration::from_nanos(number * 1000);
        counted.record_event(micros(10));
        (0..2).for_each(|_| counted.record_subframe(micros(20)));
        (0..3).for_each(|_| counted.record_packet(micros(30)));
        (0..4).for_each(|_| counted.record_arrival(micros(40)));
        counted.add_busy_time(micros(50));
        counted.add_drops(6);
        assert!(counted.record_gap(Duration::from_millis(70)));
        let account = lateness(&counted, [micros(90), micros(80)]).to_json().expect("an object");
        let missing: Vec<String> = names().filter(|name| figure(&account, name).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
        for (name, expected) in [
            ("events.count", 1.0),
            ("subframes.count", 2.0),
            ("packets.count", 3.0),
            ("arrivals.count", 4.0),
            ("worked_s", 50e-6),
            ("processor_s", 80e-6),
            ("ran_s", 90e-6),
            ("own_drops", 6.0),
            ("stall_count", 1.0),
            ("longest_stall_s", 0.07),
            ("on_time", 0.0),
        ] {
            assert_eq!(figure(&account, name), Some(expected), "{name}");
        }
        // Three digits are stored.
        assert!((figure(&account, "subframes.max_s").expect("it is there") - 20e-6).abs() < 0.1e-6);
    }
}
