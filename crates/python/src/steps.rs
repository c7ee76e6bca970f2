//! Simulations in steps, and environments for reinforcement learning.

use crate::errors::{self, RunError, ScenarioError};
use fullpipe::congestion::ExternalControl;
use fullpipe::congestion::cubic::Cubic;
use fullpipe::lab;
use fullpipe::scenario::schema::{abbreviate_names, nearest_name};
use fullpipe::scenario::{Override, Scenario};
use fullpipe::stepping::{ConnectionSnapshot, StepError};
use fullpipe::study::ScenarioStudy;
use fullpipe::units::{Duration, FlowId, Instant, LinkId, Rate};
use fullpipe::{Outcome, Plugins, RunningSimulation};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The window of a controlled flow before it is set: ten segments.
const INITIAL_WINDOW_BYTES: u64 = 14_480;

/// Returns a time from seconds.
fn duration(seconds: f64, name: &str) -> PyResult<Duration> {
    // The largest time is 584 years.
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

/// Converts the error of a change of a link. Its message has the Python call.
fn of_link(error: StepError) -> PyErr {
    match error {
        StepError::FixedLink { link, .. } => RunError::new_err(format!(
            "link {link:?} is not adjustable; start the simulation with adjustable_links=[{link:?}]"
        )),
        error => refused(error),
    }
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
    /// `None` after the simulation has finished. The mutex is never locked: it only permits use on other threads.
    run: Mutex<Option<RunningSimulation>>,
    controls: BTreeMap<String, ExternalControl>,
    flows: BTreeMap<String, FlowId>,
    links: BTreeMap<String, LinkId>,
}

impl NativeSimulation {
    /// Starts a scenario. The program sets the windows of `controlled` flows and the rates of `adjustable` links.
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
            let known = || self.controls.keys().map(String::as_str);
            let hint =
                nearest_name(flows, known()).map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            let controlled = match known().next() {
                Some(_) => format!(" (controlled: {})", abbreviate_names(known()).join(", ")),
                None => String::new(),
            };
            return Err(PyKeyError::new_err(format!(
                "the window of flow {flows:?} is not controlled{hint}{controlled}; start the simulation with \
                 controlled_flows=[{flows:?}]"
            )));
        };
        control.set_window(window_bytes);
        control.set_pacing_rate(pacing_bps.map(|bps| rate(bps, "pacing_bps")).transpose()?);
        Ok(())
    }

    fn set_link_rate(&mut self, link: &str, rate_bps: f64) -> PyResult<()> {
        let (link, rate) = (self.link_id(link)?, rate(rate_bps, "rate_bps")?);
        self.run()?.set_link_rate(link, rate).map_err(of_link)
    }

    fn set_link_delay(&mut self, link: &str, delay_s: f64) -> PyResult<()> {
        let (link, delay) = (self.link_id(link)?, duration(delay_s, "delay_s")?);
        self.run()?.set_link_delay(link, delay).map_err(of_link)
    }

    fn start_flow(&mut self, flow: &str) -> PyResult<()> {
        let flow = self.flow_id(flow)?;
        self.run()?.start_flow(flow).map_err(refused)
    }
}

/// The quantity that an action changes.
#[derive(Clone, Copy, PartialEq)]
enum Action {
    /// The pacing rate of a flow without another control, as in Aurora.
    Rate,
    /// The window of CUBIC, as in Orca.
    Window,
}

impl Action {
    fn find(name: &str) -> PyResult<Action> {
        match name {
            "rate" => Ok(Action::Rate),
            "window" => Ok(Action::Window),
            _ => Err(PyValueError::new_err(format!("unknown action {name:?} (one of: rate, window)"))),
        }
    }
}

/// The smallest window that an action sets, in segments: `MIN_CWND` of Orca's server.
const MIN_WINDOW_SEGMENTS: u64 = 4;
/// The largest window that an action sets: the largest receive window of TCP (RFC 7323 section 2.3).
const MAX_WINDOW_BYTES: u64 = 1 << 30;
/// The weight of lost bytes against delivered ones in Orca's state and reward.
const LOSS_WEIGHT: f64 = 5.0;
/// Orca's reward penalizes a round-trip time above this multiple of the smallest one (`delay_margin_coef`).
const DELAY_MARGIN: f64 = 1.25;
/// The largest ratio of the pacing rate to the largest delivery rate in Orca's state.
const MAX_RATE_RATIO: f64 = 10.0;

/// The totals of a flow at the end of an interval.
#[derive(Clone, Copy, Default)]
struct Totals {
    tx_packets: u64,
    rx_packets: u64,
    rx_bytes: u64,
    lost_packets: u64,
    delay: Duration,
    /// Bytes that the sender counts as delivered and as lost.
    delivered_bytes: u64,
    lost_bytes: u64,
}

/// One environment: a simulation in which an action changes the rate or window of a flow at the start of each interval.
struct Environment {
    run: RunningSimulation,
    control: ExternalControl,
    flow: FlowId,
    action: Action,
    totals: Totals,
    /// Whether payload has arrived.
    has_received: bool,
    end: EpisodeEnd,
    /// The pacing rate. If the action changes the window, the rate that results from the window.
    rate_bps: f64,
    cwnd_bytes: u64,
    /// The largest payload of a segment, in bytes.
    mss_bytes: u64,
    srtt_s: f64,
    min_rtt_s: f64,
    /// The mean one-way delay in the previous interval; 0 if no packet has arrived yet.
    delay_s: f64,
    min_delay_s: f64,
    max_delivery_bps: f64,
}

/// Whether an episode has ended, and why. The numbers are those of `gym.py`.
#[derive(Clone, Copy, PartialEq)]
enum EpisodeEnd {
    /// It continues.
    None = 0,
    /// The scenario has ended.
    Scenario = 1,
    /// The flow has completed.
    Flow = 2,
}

/// The measurements of a monitor interval.
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
    cwnd_bytes: f64,
    srtt_s: f64,
    delivery_bps: f64,
    delivery_ratio: f64,
    rate_ratio: f64,
    loss_penalty: f64,
    acked_ratio: f64,
    rtt_ratio: f64,
    delay_metric: f64,
    end: EpisodeEnd,
}

/// The number of values of an interval.
const VALUES: usize = 18;

impl Interval {
    /// The order is that of `gym.py`.
    fn to_array(self) -> [f64; VALUES] {
        [
            self.length_s,
            self.throughput_bps,
            self.delay_s,
            self.delay_gradient,
            self.delay_ratio,
            self.send_ratio,
            self.loss_ratio,
            self.rate_bps,
            self.cwnd_bytes,
            self.srtt_s,
            self.delivery_bps,
            self.delivery_ratio,
            self.rate_ratio,
            self.loss_penalty,
            self.acked_ratio,
            self.rtt_ratio,
            self.delay_metric,
            f64::from(self.end as u8),
        ]
    }
}

/// A range of environments that a thread steps first. The alignment keeps the counters of threads in different cache lines.
#[repr(align(64))]
struct Share {
    next: AtomicUsize,
    end: usize,
}

impl Share {
    fn new(thread: usize, threads: usize, count: usize) -> Self {
        Share { next: AtomicUsize::new(thread * count / threads), end: (thread + 1) * count / threads }
    }

    /// Returns the next number of the range. Each number is returned once.
    fn take(&self) -> Option<usize> {
        let lane = self.next.fetch_add(1, Ordering::Relaxed);
        (lane < self.end).then_some(lane)
    }
}

/// Environments that run the same scenario with different seeds.
#[pyclass(frozen, module = "fullpipe._native")]
pub(crate) struct NativeEnvironments {
    scenario: Arc<Scenario>,
    flow: String,
    action: Action,
    /// The length of a monitor interval in seconds; `None` for the smoothed round-trip time.
    interval_s: Option<f64>,
    initial_rate_bps: f64,
    lowest_rate_bps: f64,
    highest_rate_bps: f64,
    lanes: Vec<Mutex<Option<Environment>>>,
    /// The threads that step environments in addition to the calling one; `None` if there are no others. Starting threads
    /// for each step would take as long as a step of several environments.
    pool: Option<ThreadPool>,
    /// The process that started the threads. A forked process has the memory of its parent but not the threads.
    process: u32,
}

/// The settings of environments.
pub(crate) struct EnvironmentSettings {
    pub(crate) action: String,
    pub(crate) interval_s: Option<f64>,
    /// The initial, the lowest and the highest rate.
    pub(crate) rates_bps: [f64; 3],
    pub(crate) threads: usize,
}

impl NativeEnvironments {
    pub(crate) fn new(
        study: ScenarioStudy,
        flow: String,
        count: usize,
        settings: &EnvironmentSettings,
    ) -> PyResult<Self> {
        if let Some(reason) = study.loaded.scenario.real_time_reason() {
            return Err(ScenarioError::new_err(format!("the scenario cannot run in virtual time: {reason}")));
        }
        let names = || study.loaded.scenario.flows.iter().map(|flow| flow.name.as_str());
        if !names().any(|name| name == flow) {
            let hint =
                nearest_name(&flow, names()).map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            let known = abbreviate_names(names()).join(", ");
            return Err(ScenarioError::new_err(format!("unknown flow {flow:?}{hint} (one of: {known})")));
        }
        let lanes = (0..count).map(|_| Mutex::new(None)).collect();
        let others = settings.threads.min(count).saturating_sub(1);
        let builder = ThreadPoolBuilder::new().num_threads(others).thread_name(|_| "fullpipe-env".to_owned());
        let pool = (others > 0).then(|| builder.build());
        let pool = pool.transpose().map_err(|error| {
            RunError::new_err(format!("cannot start {others} threads: {error}; set `threads` to a smaller number"))
        })?;
        let [initial_rate_bps, lowest_rate_bps, highest_rate_bps] = settings.rates_bps;
        let made = NativeEnvironments {
            scenario: Arc::new(study.loaded.scenario),
            flow,
            action: Action::find(&settings.action)?,
            interval_s: settings.interval_s,
            initial_rate_bps,
            lowest_rate_bps,
            highest_rate_bps,
            lanes,
            pool,
            process: std::process::id(),
        };
        // Reports an unknown flow here instead of at the first reset.
        made.environment(0)?;
        Ok(made)
    }

    fn environment(&self, seed: u64) -> PyResult<Environment> {
        let mut scenario = Scenario::clone(&self.scenario);
        scenario.seed = seed;
        let control = match self.action {
            Action::Rate => ExternalControl::new(INITIAL_WINDOW_BYTES),
            Action::Window => ExternalControl::with_base(|| Box::new(Cubic::default())),
        };
        let plugins = Plugins::new().external_control(&self.flow, &control);
        let run = lab::start(Arc::new(scenario), &lab::Options::default(), plugins).map_err(refused)?;
        let flow = run.flow(&self.flow).map_err(|error| errors::ScenarioError::new_err(error.to_string()))?;
        let environment = Environment {
            run,
            control,
            flow,
            action: self.action,
            totals: Totals::default(),
            has_received: false,
            end: EpisodeEnd::None,
            rate_bps: self.initial_rate_bps,
            cwnd_bytes: 0,
            mss_bytes: 1448,
            srtt_s: 0.0,
            min_rtt_s: 0.0,
            delay_s: 0.0,
            min_delay_s: f64::INFINITY,
            max_delivery_bps: 0.0,
        };
        if self.action == Action::Rate {
            environment.apply_rate();
        }
        Ok(environment)
    }

    fn length_s(&self, environment: &Environment) -> f64 {
        // Before the first sample, the round-trip time is unknown.
        self.interval_s.unwrap_or(if environment.srtt_s > 0.0 { environment.srtt_s } else { 0.05 })
    }

    /// Runs an environment until its first payload has arrived.
    fn reset(&self, lane: usize, seed: u64) -> PyResult<Interval> {
        let mut environment = self.environment(seed)?;
        let mut interval = environment.advance(self.length_s(&environment));
        while interval.end == EpisodeEnd::None && !environment.has_received {
            interval = environment.advance(self.length_s(&environment));
        }
        if interval.end != EpisodeEnd::None {
            let flow = &self.flow;
            let reason = match interval.end {
                EpisodeEnd::Flow => format!(
                    "flow {flow:?} completed in the first interval; use a larger `size` of the flow or a shorter `interval_s`"
                ),
                _ if environment.has_received => format!(
                    "the first payload of flow {flow:?} arrived in the last interval; use a longer `duration` or a shorter \
                     `interval_s`"
                ),
                _ => format!(
                    "flow {flow:?} received nothing until the end of the scenario at {} s; check its start, and the rates \
                     and losses of its path",
                    environment.run.now().as_secs_f64()
                ),
            };
            return Err(RunError::new_err(format!("the episode has no step: {reason}")));
        }
        // Handshake packets are smaller than data packets, so their delay must not count as the smallest one.
        environment.min_delay_s = f64::INFINITY;
        interval.delay_ratio = 1.0;
        *self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner) = Some(environment);
        Ok(interval)
    }

    /// Multiplies the rate or the window and runs one monitor interval.
    fn step(&self, lane: usize, factor: f64) -> PyResult<Interval> {
        let mut lane = self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner);
        let environment = lane.as_mut().ok_or_else(not_reset)?;
        if environment.end != EpisodeEnd::None {
            return Err(RunError::new_err("the episode has ended; call reset before the next step"));
        }
        match environment.action {
            Action::Rate => {
                let rate_bps = environment.rate_bps * factor;
                environment.rate_bps = rate_bps.clamp(self.lowest_rate_bps, self.highest_rate_bps);
                environment.apply_rate();
            }
            Action::Window => environment.multiply_window(factor),
        }
        let length_s = self.length_s(environment);
        Ok(environment.advance(length_s))
    }
}

impl Environment {
    /// Sets the pacing rate, and a window of two round trips, which rarely limits sending.
    fn apply_rate(&self) {
        let round_trip_s = if self.srtt_s > 0.0 { self.srtt_s } else { 0.1 };
        let window_bytes = (2.0 * self.rate_bps * round_trip_s / 8.0) as u64;
        self.control.set_window(window_bytes.max(4 * self.mss_bytes));
        self.control.set_pacing_rate(Some(Rate::from_bits_per_second(self.rate_bps as u64)));
    }

    /// Multiplies the window, from which CUBIC continues. A factor of 1 changes nothing.
    fn multiply_window(&self, factor: f64) {
        if factor != 1.0 && self.cwnd_bytes > 0 {
            // The conversion saturates.
            let window_bytes = (self.cwnd_bytes as f64 * factor).round() as u64;
            let least_bytes = MIN_WINDOW_SEGMENTS * self.mss_bytes;
            self.control.set_window(window_bytes.clamp(least_bytes, MAX_WINDOW_BYTES.max(least_bytes)));
        }
    }

    fn advance(&mut self, length_s: f64) -> Interval {
        let begin = self.run.now();
        let until = begin.saturating_add(Duration::from_nanos((length_s * 1e9) as u64));
        let continues = self.run.run_until(until).expect("the time is later");
        let seen = self.run.flow_snapshot(self.flow);
        self.has_received = seen.received_bytes > 0;
        self.end = match seen.completed {
            Some(_) => EpisodeEnd::Flow,
            None if continues => EpisodeEnd::None,
            None => EpisodeEnd::Scenario,
        };
        let before = self.totals;
        self.totals = Totals {
            tx_packets: seen.counters.tx_packets,
            rx_packets: seen.counters.rx_packets,
            rx_bytes: seen.counters.rx_bytes,
            lost_packets: seen.counters.lost_packets,
            delay: seen.counters.delay_sum,
            ..before
        };
        if let Some(connection) = seen.connection {
            self.mss_bytes = connection.mss_bytes;
            self.cwnd_bytes = connection.cwnd_bytes;
            self.srtt_s = connection.smoothed_rtt.map_or(self.srtt_s, Duration::as_secs_f64);
            self.min_rtt_s = connection.min_rtt.map_or(self.min_rtt_s, Duration::as_secs_f64);
            self.totals.delivered_bytes = connection.delivered_bytes;
            self.totals.lost_bytes = connection.lost_bytes;
            if self.action == Action::Window && self.srtt_s > 0.0 {
                let from_window_bps = connection.cwnd_bytes as f64 * 8.0 / self.srtt_s;
                self.rate_bps = connection.pacing_rate.map_or(from_window_bps, |rate| rate.bits_per_second() as f64);
            }
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
        // A new connection of the flow begins at 0.
        let delivered_bytes = self.totals.delivered_bytes.saturating_sub(before.delivered_bytes) as f64;
        let lost_bytes = self.totals.lost_bytes.saturating_sub(before.lost_bytes) as f64;
        let delivery_bps = delivered_bytes * 8.0 / length_s;
        self.max_delivery_bps = self.max_delivery_bps.max(delivery_bps);
        let of_max = |bps: f64| if self.max_delivery_bps > 0.0 { bps / self.max_delivery_bps } else { 0.0 };
        let rtt_ratio = if self.srtt_s > 0.0 { self.min_rtt_s / self.srtt_s } else { 1.0 };
        Interval {
            length_s,
            throughput_bps: (self.totals.rx_bytes - before.rx_bytes) as f64 * 8.0 / length_s,
            delay_s: self.delay_s,
            delay_gradient: if earlier_s > 0.0 { (self.delay_s - earlier_s) / length_s } else { 0.0 },
            delay_ratio: if self.min_delay_s.is_finite() { self.delay_s / self.min_delay_s } else { 1.0 },
            send_ratio: sent as f64 / received.max(1) as f64,
            loss_ratio: if sent > 0 { (lost as f64 / sent as f64).min(1.0) } else { 0.0 },
            rate_bps: self.rate_bps,
            cwnd_bytes: self.cwnd_bytes as f64,
            srtt_s: self.srtt_s,
            delivery_bps,
            delivery_ratio: of_max(delivery_bps),
            rate_ratio: of_max(self.rate_bps).min(MAX_RATE_RATIO),
            loss_penalty: of_max(LOSS_WEIGHT * lost_bytes * 8.0 / length_s),
            acked_ratio: delivered_bytes / (self.cwnd_bytes as f64).max(1.0),
            rtt_ratio,
            delay_metric: (DELAY_MARGIN * rtt_ratio).min(1.0),
            end: self.end,
        }
    }
}

#[pymethods]
impl NativeEnvironments {
    #[pyo3(name = "reset")]
    fn reset_lane(&self, py: Python<'_>, lane: usize, seed: u64) -> PyResult<[f64; VALUES]> {
        py.detach(|| self.reset(lane, seed)).map(Interval::to_array)
    }

    #[pyo3(name = "step")]
    fn step_lane(&self, py: Python<'_>, lane: usize, factor: f64) -> PyResult<[f64; VALUES]> {
        py.detach(|| self.step(lane, factor)).map(Interval::to_array)
    }

    /// Steps all environments on the threads of the pool and on this one. An environment with a seed is reset instead.
    /// Returns the intervals as bytes of 64-bit numbers. For 64 environments, creating a list of lists would take a fifth of
    /// the time of a step.
    fn step_all<'py>(
        &self,
        py: Python<'py>,
        factors: Vec<f64>,
        seeds: Vec<(usize, u64)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let count = self.lanes.len();
        if factors.len() != count {
            return Err(PyValueError::new_err(format!("found {} actions; expected {count}", factors.len())));
        }
        if self.pool.is_some() && self.process != std::process::id() {
            return Err(RunError::new_err(
                "the environment was created in another process, and its threads do not exist in this one; create it in \
                 this process",
            ));
        }
        let mut resets = vec![None; count];
        for (lane, seed) in seeds {
            *resets.get_mut(lane).ok_or_else(|| PyValueError::new_err(format!("no environment {lane}")))? = Some(seed);
        }
        let results: Vec<OnceLock<PyResult<Interval>>> = (0..count).map(|_| OnceLock::new()).collect();
        // Each thread has a share of the environments, the same in each step, so that their memory stays in the caches of
        // its processor. A thread that has finished takes environments from the shares of the others.
        let threads = 1 + self.pool.as_ref().map_or(0, ThreadPool::current_num_threads);
        let shares: Vec<Share> = (0..threads).map(|thread| Share::new(thread, threads, count)).collect();
        let work = |thread: usize| {
            for share in shares[thread..].iter().chain(&shares[..thread]) {
                while let Some(lane) = share.take() {
                    let made =
                        resets[lane].map_or_else(|| self.step(lane, factors[lane]), |seed| self.reset(lane, seed));
                    // Each number is taken once.
                    let _ = results[lane].set(made);
                }
            }
        };
        py.detach(|| match &self.pool {
            Some(pool) => pool.in_place_scope(|scope| {
                scope.spawn_broadcast(|_, context| work(1 + context.index()));
                work(0);
            }),
            None => work(0),
        });
        let mut bytes = Vec::with_capacity(count * size_of::<[f64; VALUES]>());
        for result in results {
            let made = result.into_inner().expect("each environment was stepped")?;
            made.to_array().iter().for_each(|value| bytes.extend(value.to_ne_bytes()));
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
    fullpipe::study::scenario_study(stem, text, name, folder.clone(), set, seed).map_err(errors::of_scenario)
}
