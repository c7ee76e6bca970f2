//! Simulations in steps, and environments for reinforcement learning.

use crate::errors::{self, RunError, ScenarioError};
use fullpipe::congestion::ExternalControl;
use fullpipe::lab;
use fullpipe::scenario::{Override, Scenario};
use fullpipe::stepping::ConnectionSnapshot;
use fullpipe::study::ScenarioStudy;
use fullpipe::units::{Duration, FlowId, Instant, LinkId, Rate};
use fullpipe::{Outcome, Plugins, RunningSimulation};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The window of a controlled flow before it is set: ten segments.
const INITIAL_WINDOW_BYTES: u64 = 14_480;

/// Returns a time from seconds.
fn duration(seconds: f64, name: &str) -> PyResult<Duration> {
    // 584 years are the largest time.
    if !(0.0..=1.8e10).contains(&seconds) {
        return Err(PyValueError::new_err(format!("{name} is {seconds}; expected a time from 0 to 1.8e10 seconds")));
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// Returns a rate from bit/s.
fn rate(bps: f64, name: &str) -> PyResult<Rate> {
    if !(0.0..1e15).contains(&bps) {
        return Err(PyValueError::new_err(format!("{name} is {bps}; expected a rate from 0 to 1e15 bit/s")));
    }
    Ok(Rate::from_bits_per_second(bps as u64))
}

fn refused(error: impl std::fmt::Display) -> PyErr {
    RunError::new_err(error.to_string())
}

/// The state of a flow: numbers by name.
#[derive(IntoPyObject)]
pub(crate) struct FlowState {
    tx_packets: u64,
    tx_bytes: u64,
    rx_packets: u64,
    rx_bytes: u64,
    received_bytes: u64,
    lost_packets: u64,
    marked_packets: u64,
    delay_sum_s: f64,
    retransmitted_packets: Option<u64>,
    cwnd_bytes: Option<u64>,
    inflight_bytes: Option<u64>,
    srtt_s: Option<f64>,
    min_rtt_s: Option<f64>,
    pacing_bps: Option<u64>,
}

/// The state of a link: numbers by name.
#[derive(IntoPyObject)]
pub(crate) struct LinkState {
    frames: u64,
    bytes: u64,
    queue_packets: u64,
    queue_bytes: u64,
    rate_bps: Option<u64>,
    losses: u64,
    queue_drops: u64,
}

/// A simulation in steps.
#[pyclass(module = "fullpipe._native")]
pub(crate) struct NativeSimulation {
    /// `None` when the simulation has been finished. The lock is never held: it only permits the use on other threads.
    run: Mutex<Option<RunningSimulation>>,
    controls: BTreeMap<String, ExternalControl>,
    flows: BTreeMap<String, FlowId>,
    links: BTreeMap<String, LinkId>,
}

impl NativeSimulation {
    /// Starts a scenario. The windows of `controlled` flows and the rates of `adjustable` links are set from outside.
    pub(crate) fn start(
        study: ScenarioStudy,
        controlled: Vec<String>,
        adjustable: Vec<String>,
    ) -> PyResult<NativeSimulation> {
        let mut scenario = study.loaded.scenario;
        scenario.seed = study.study.seeds.base();
        let mut controls = BTreeMap::new();
        let mut plugins = Plugins::new();
        for flows in controlled {
            let control = ExternalControl::new(INITIAL_WINDOW_BYTES);
            plugins = plugins.external_control(&flows, &control);
            controls.insert(flows, control);
        }
        for links in adjustable {
            plugins = plugins.adjustable_links(&links);
        }
        let run = lab::start(Arc::new(scenario), &lab::Options::default(), plugins).map_err(refused)?;
        Ok(NativeSimulation { run: Mutex::new(Some(run)), controls, flows: BTreeMap::new(), links: BTreeMap::new() })
    }

    fn run(&mut self) -> PyResult<&mut RunningSimulation> {
        let run = self.run.get_mut().unwrap_or_else(PoisonError::into_inner);
        run.as_mut().ok_or_else(|| RunError::new_err("the simulation has been finished"))
    }

    fn flow_id(&mut self, name: &str) -> PyResult<FlowId> {
        if let Some(flow) = self.flows.get(name) {
            return Ok(*flow);
        }
        let flow = self.run()?.flow(name).map_err(|error| PyKeyError::new_err(error.to_string()))?;
        self.flows.insert(name.to_owned(), flow);
        Ok(flow)
    }

    fn link_id(&mut self, name: &str) -> PyResult<LinkId> {
        if let Some(link) = self.links.get(name) {
            return Ok(*link);
        }
        let link = self.run()?.link(name).map_err(|error| PyKeyError::new_err(error.to_string()))?;
        self.links.insert(name.to_owned(), link);
        Ok(link)
    }

    /// Removes and ends the simulation, at its end or now.
    pub(crate) fn outcome(&mut self, now: bool) -> PyResult<Outcome> {
        self.run()?;
        let run = self.run.get_mut().unwrap_or_else(PoisonError::into_inner).take().expect("it was there");
        Ok(if now { run.stop() } else { run.finish() })
    }
}

#[pymethods]
impl NativeSimulation {
    #[getter]
    fn now_s(&mut self) -> PyResult<f64> {
        Ok(self.run()?.now().as_secs_f64())
    }

    /// Runs until a time in seconds; returns whether the run continues.
    fn run_until(&mut self, py: Python<'_>, time_s: f64) -> PyResult<bool> {
        let time = Instant::ZERO.saturating_add(duration(time_s, "time_s")?);
        let run = self.run()?;
        py.detach(|| run.run_until(time)).map_err(refused)
    }

    fn flow(&mut self, name: &str) -> PyResult<FlowState> {
        let flow = self.flow_id(name)?;
        let seen = self.run()?.flow_snapshot(flow);
        let connection = seen.connection;
        let of = |value: fn(&ConnectionSnapshot) -> u64| connection.as_ref().map(value);
        Ok(FlowState {
            tx_packets: seen.counters.tx_packets,
            tx_bytes: seen.counters.tx_bytes,
            rx_packets: seen.counters.rx_packets,
            rx_bytes: seen.counters.rx_bytes,
            received_bytes: seen.received_bytes,
            lost_packets: seen.counters.lost_packets,
            marked_packets: seen.counters.marked_packets,
            delay_sum_s: seen.counters.delay_sum.as_secs_f64(),
            retransmitted_packets: seen.retransmitted_packets,
            cwnd_bytes: of(|connection| connection.cwnd_bytes),
            inflight_bytes: of(|connection| connection.in_flight_bytes),
            srtt_s: connection.and_then(|connection| connection.smoothed_rtt).map(Duration::as_secs_f64),
            min_rtt_s: connection.and_then(|connection| connection.min_rtt).map(Duration::as_secs_f64),
            pacing_bps: connection.and_then(|connection| connection.pacing_rate).map(Rate::bits_per_second),
        })
    }

    fn link(&mut self, name: &str) -> PyResult<LinkState> {
        let link = self.link_id(name)?;
        let seen = self.run()?.link_snapshot(link);
        Ok(LinkState {
            frames: seen.counters.frames,
            bytes: seen.counters.bytes,
            queue_packets: seen.queue_packets,
            queue_bytes: seen.queue_bytes,
            rate_bps: seen.rate.map(Rate::bits_per_second),
            losses: seen.counters.losses,
            queue_drops: seen.counters.queue_drops,
        })
    }

    fn set_window(&mut self, flows: &str, window_bytes: u64, pacing_bps: Option<f64>) -> PyResult<()> {
        let Some(control) = self.controls.get(flows) else {
            let known: Vec<&str> = self.controls.keys().map(String::as_str).collect();
            return Err(PyKeyError::new_err(format!(
                "the window of {flows:?} is not controlled (one of: {}); name it in `controlled_flows`",
                known.join(", ")
            )));
        };
        control.set_window(window_bytes);
        control.set_pacing_rate(pacing_bps.map(|bps| rate(bps, "pacing_bps")).transpose()?);
        Ok(())
    }

    fn set_link_rate(&mut self, link: &str, rate_bps: f64) -> PyResult<()> {
        let (link, rate) = (self.link_id(link)?, rate(rate_bps, "rate_bps")?);
        self.run()?.set_link_rate(link, rate).map_err(refused)
    }

    fn set_link_delay(&mut self, link: &str, delay_s: f64) -> PyResult<()> {
        let (link, delay) = (self.link_id(link)?, duration(delay_s, "delay_s")?);
        self.run()?.set_link_delay(link, delay).map_err(refused)
    }

    fn start_flow(&mut self, flow: &str) -> PyResult<()> {
        let flow = self.flow_id(flow)?;
        self.run()?.start_flow(flow).map_err(refused)
    }
}

/// The totals of a flow at the end of an interval.
#[derive(Clone, Copy, Default)]
struct Totals {
    tx_packets: u64,
    rx_packets: u64,
    rx_bytes: u64,
    lost_packets: u64,
    delay: Duration,
}

/// One environment: a simulation whose flow has its pacing rate set at the begin of each monitor interval.
struct Environment {
    run: RunningSimulation,
    control: ExternalControl,
    flow: FlowId,
    totals: Totals,
    rate_bps: f64,
    /// The largest payload of a segment, in bytes.
    mss_bytes: u64,
    srtt_s: f64,
    /// The mean one-way delay in the interval before; 0 if no packet has arrived yet.
    delay_s: f64,
    min_delay_s: f64,
}

/// What is measured in a monitor interval.
#[derive(Clone, Copy)]
struct Interval {
    length_s: f64,
    throughput_bps: f64,
    delay_s: f64,
    delay_gradient: f64,
    delay_ratio: f64,
    send_ratio: f64,
    loss_ratio: f64,
    rate_bps: f64,
    continues: bool,
}

impl Interval {
    /// The order is that of `gym.py`.
    fn to_array(self) -> [f64; 9] {
        [
            self.length_s,
            self.throughput_bps,
            self.delay_s,
            self.delay_gradient,
            self.delay_ratio,
            self.send_ratio,
            self.loss_ratio,
            self.rate_bps,
            f64::from(u8::from(self.continues)),
        ]
    }
}

/// Environments that run the same scenario with different seeds.
#[pyclass(frozen, module = "fullpipe._native")]
pub(crate) struct NativeEnvironments {
    scenario: Arc<Scenario>,
    flow: String,
    /// The length of a monitor interval in seconds; `None` for the smoothed round-trip time.
    interval_s: Option<f64>,
    initial_rate_bps: f64,
    lowest_rate_bps: f64,
    highest_rate_bps: f64,
    lanes: Vec<Mutex<Option<Environment>>>,
}

impl NativeEnvironments {
    pub(crate) fn new(
        study: ScenarioStudy,
        flow: String,
        count: usize,
        interval_s: Option<f64>,
        initial_rate_bps: f64,
        lowest_rate_bps: f64,
        highest_rate_bps: f64,
    ) -> PyResult<Self> {
        if let Some(reason) = study.loaded.scenario.real_time_reason() {
            return Err(ScenarioError::new_err(format!("it cannot run in virtual time: {reason}")));
        }
        let lanes = (0..count).map(|_| Mutex::new(None)).collect();
        let scenario = Arc::new(study.loaded.scenario);
        let made = NativeEnvironments {
            scenario,
            flow,
            interval_s,
            initial_rate_bps,
            lowest_rate_bps,
            highest_rate_bps,
            lanes,
        };
        // An unknown flow is an error now.
        made.environment(0)?;
        Ok(made)
    }

    fn environment(&self, seed: u64) -> PyResult<Environment> {
        let mut scenario = Scenario::clone(&self.scenario);
        scenario.seed = seed;
        let control = ExternalControl::new(INITIAL_WINDOW_BYTES);
        let plugins = Plugins::new().external_control(&self.flow, &control);
        let run = lab::start(Arc::new(scenario), &lab::Options::default(), plugins).map_err(refused)?;
        let flow = run.flow(&self.flow).map_err(|error| errors::ScenarioError::new_err(error.to_string()))?;
        let environment = Environment {
            run,
            control,
            flow,
            totals: Totals::default(),
            rate_bps: self.initial_rate_bps,
            mss_bytes: 1448,
            srtt_s: 0.0,
            delay_s: 0.0,
            min_delay_s: f64::INFINITY,
        };
        environment.apply();
        Ok(environment)
    }

    fn length_s(&self, environment: &Environment) -> f64 {
        // Before the first sample, the round-trip time is unknown.
        self.interval_s.unwrap_or(if environment.srtt_s > 0.0 { environment.srtt_s } else { 0.05 })
    }

    /// Runs an environment until its first packet has arrived.
    fn reset(&self, lane: usize, seed: u64) -> PyResult<Interval> {
        let mut environment = self.environment(seed)?;
        let mut interval = environment.advance(self.length_s(&environment));
        while interval.continues && environment.totals.rx_packets == 0 {
            interval = environment.advance(self.length_s(&environment));
        }
        *self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner) = Some(environment);
        Ok(interval)
    }

    /// Multiplies the rate and runs one monitor interval; `None` if the environment was not reset.
    fn step(&self, lane: usize, factor: f64) -> Option<Interval> {
        let mut lane = self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner);
        let environment = lane.as_mut()?;
        environment.rate_bps = (environment.rate_bps * factor).clamp(self.lowest_rate_bps, self.highest_rate_bps);
        environment.apply();
        let length_s = self.length_s(environment);
        Some(environment.advance(length_s))
    }
}

impl Environment {
    /// Sets the pacing rate, and a window of two round trips, which seldom limits sending.
    fn apply(&self) {
        let round_trip_s = if self.srtt_s > 0.0 { self.srtt_s } else { 0.1 };
        let window_bytes = (2.0 * self.rate_bps * round_trip_s / 8.0) as u64;
        self.control.set_window(window_bytes.max(4 * self.mss_bytes));
        self.control.set_pacing_rate(Some(Rate::from_bits_per_second(self.rate_bps as u64)));
    }

    fn advance(&mut self, length_s: f64) -> Interval {
        let begin = self.run.now();
        let until = begin.saturating_add(Duration::from_nanos((length_s * 1e9) as u64));
        let continues = self.run.run_until(until).expect("the time is later");
        let seen = self.run.flow_snapshot(self.flow);
        let before = self.totals;
        self.totals = Totals {
            tx_packets: seen.counters.tx_packets,
            rx_packets: seen.counters.rx_packets,
            rx_bytes: seen.counters.rx_bytes,
            lost_packets: seen.counters.lost_packets,
            delay: seen.counters.delay_sum,
        };
        if let Some(connection) = seen.connection {
            self.mss_bytes = connection.mss_bytes;
            self.srtt_s = connection.smoothed_rtt.map_or(self.srtt_s, Duration::as_secs_f64);
        }
        let length_s = self.run.now().saturating_since(begin).as_secs_f64().max(1e-9);
        let received = self.totals.rx_packets - before.rx_packets;
        let sent = self.totals.tx_packets - before.tx_packets;
        let earlier_s = self.delay_s;
        if received > 0 {
            self.delay_s = self.totals.delay.saturating_sub(before.delay).as_secs_f64() / received as f64;
            self.min_delay_s = self.min_delay_s.min(self.delay_s);
        }
        let lost = self.totals.lost_packets - before.lost_packets;
        Interval {
            length_s,
            throughput_bps: (self.totals.rx_bytes - before.rx_bytes) as f64 * 8.0 / length_s,
            delay_s: self.delay_s,
            delay_gradient: if earlier_s > 0.0 { (self.delay_s - earlier_s) / length_s } else { 0.0 },
            delay_ratio: if self.min_delay_s.is_finite() { self.delay_s / self.min_delay_s } else { 1.0 },
            send_ratio: sent as f64 / received.max(1) as f64,
            loss_ratio: if sent > 0 { (lost as f64 / sent as f64).min(1.0) } else { 0.0 },
            rate_bps: self.rate_bps,
            continues,
        }
    }
}

#[pymethods]
impl NativeEnvironments {
    #[pyo3(name = "reset")]
    fn reset_lane(&self, py: Python<'_>, lane: usize, seed: u64) -> PyResult<[f64; 9]> {
        py.detach(|| self.reset(lane, seed)).map(Interval::to_array)
    }

    #[pyo3(name = "step")]
    fn step_lane(&self, py: Python<'_>, lane: usize, factor: f64) -> PyResult<[f64; 9]> {
        let stepped = py.detach(|| self.step(lane, factor));
        stepped.map(Interval::to_array).ok_or_else(not_reset)
    }

    /// Steps all environments on some threads, including this one. An environment with a seed is reset instead. Returns
    /// the intervals as bytes of 64-bit numbers: of 64 environments, a list of lists would take a fifth of the time of a
    /// step.
    fn step_all<'py>(
        &self,
        py: Python<'py>,
        factors: Vec<f64>,
        seeds: Vec<Option<u64>>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let count = self.lanes.len();
        if factors.len() != count || seeds.len() != count {
            return Err(PyValueError::new_err(format!("found {} actions; expected {count}", factors.len())));
        }
        let next = AtomicUsize::new(0);
        let results: Vec<Mutex<Option<PyResult<Interval>>>> = (0..count).map(|_| Mutex::new(None)).collect();
        let work = || {
            loop {
                let lane = next.fetch_add(1, Ordering::Relaxed);
                let (Some(result), Some(seed)) = (results.get(lane), seeds.get(lane)) else { break };
                let made = match seed {
                    Some(seed) => self.reset(lane, *seed),
                    None => self.step(lane, factors[lane]).ok_or_else(not_reset),
                };
                *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
            }
        };
        py.detach(|| {
            std::thread::scope(|scope| {
                (1..threads.min(count)).for_each(|_| drop(scope.spawn(work)));
                work();
            });
        });
        let mut bytes = Vec::with_capacity(count * size_of::<[f64; 9]>());
        for result in results {
            let made =
                result.into_inner().unwrap_or_else(PoisonError::into_inner).expect("each environment was stepped");
            made?.to_array().iter().for_each(|value| bytes.extend(value.to_ne_bytes()));
        }
        Ok(PyBytes::new(py, &bytes))
    }
}

fn not_reset() -> PyErr {
    RunError::new_err("call reset before the first step")
}

/// Returns the study of a scenario, for a simulation in steps.
pub(crate) fn study_of(
    found: &fullpipe::find::FoundScenario,
    set: &[Override],
    seed: Option<u64>,
) -> PyResult<ScenarioStudy> {
    let fullpipe::find::FoundScenario { text, name, stem, folder } = found;
    fullpipe::study::scenario_study(stem, text, name, folder.clone(), set, seed)
        .map_err(|errors| ScenarioError::new_err(errors.to_string()))
}
