//! Environments for reinforcement learning: simulations in which an agent changes the rate or the window of a flow.

use crate::errors::{self, RunError, ScenarioError};
use crate::steps::{INITIAL_WINDOW_BYTES, refused};
use crate::threads::{Job, Threads};
use fullpipe::congestion::ExternalControl;
use fullpipe::congestion::cubic::Cubic;
use fullpipe::lab;
use fullpipe::scenario::Scenario;
use fullpipe::scenario::schema::{abbreviate_names, nearest_name};
use fullpipe::study::ScenarioStudy;
use fullpipe::units::{Duration, FlowId, Rate, math};
use fullpipe::{Plugins, RunningSimulation};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The quantity that an action multiplies.
#[derive(Clone, Copy, PartialEq)]
enum Action {
    /// The pacing rate of a flow without another control, as in Aurora.
    Rate,
    /// The window of CUBIC, as in Orca.
    Window,
}

/// The change of the rate by an action of 1: alpha of Aurora (Jay et al., ICML 2019).
const RATE_CHANGE: f64 = 0.025;

impl Action {
    fn find(name: &str) -> PyResult<Action> {
        match name {
            "rate" => Ok(Action::Rate),
            "window" => Ok(Action::Window),
            _ => Err(PyValueError::new_err(format!("unknown action {name:?} (one of: rate, window)"))),
        }
    }

    /// Returns the factor for the number of an action.
    fn factor(self, action: f64) -> f64 {
        let larger = 1.0 + RATE_CHANGE * action.abs();
        match self {
            Action::Rate if action < 0.0 => 1.0 / larger,
            Action::Rate => larger,
            // Orca (Abbasloo et al., SIGCOMM 2020).
            Action::Window => math::pow(4.0, action),
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

/// The simulation of an environment, and its latest observation.
struct Lane {
    /// `None` before the first reset.
    environment: Option<Environment>,
    /// The observed values of the last intervals, the oldest first.
    observation: Vec<f32>,
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

/// Declares the measurements of a monitor interval with their names in Python.
macro_rules! interval {
    ($($field:ident = $name:literal,)+) => {
        /// The measurements of a monitor interval.
        #[derive(Clone, Copy)]
        struct Interval {
            $($field: f64,)+
            end: EpisodeEnd,
        }

        /// The names of the values of an interval.
        const NAMES: [&str; VALUES] = [$($name,)+ "end"];

        impl Interval {
            /// Returns the values in the order of [`NAMES`].
            fn to_array(self) -> [f64; VALUES] {
                [$(self.$field,)+ f64::from(self.end as u8)]
            }
        }
    };
}

/// The number of values of an interval.
const VALUES: usize = 18;

interval! {
    length_s = "interval_s",
    throughput_bps = "throughput_bps",
    delay_s = "delay_s",
    delay_gradient = "delay_gradient",
    delay_ratio = "delay_ratio",
    send_ratio = "send_ratio",
    loss_ratio = "loss_ratio",
    rate_bps = "rate_bps",
    cwnd_bytes = "cwnd_bytes",
    srtt_s = "srtt_s",
    delivery_bps = "delivery_bps",
    delivery_ratio = "delivery_ratio",
    rate_ratio = "rate_ratio",
    loss_penalty = "loss_penalty",
    acked_ratio = "acked_ratio",
    rtt_ratio = "rtt_ratio",
    delay_metric = "delay_metric",
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
struct Environments {
    scenario: Arc<Scenario>,
    flow: String,
    action: Action,
    /// The length of a monitor interval in seconds; `None` for the smoothed round-trip time.
    interval_s: Option<f64>,
    initial_rate_bps: f64,
    lowest_rate_bps: f64,
    highest_rate_bps: f64,
    /// The largest absolute value of an action.
    highest_action: f64,
    /// The observed values of an interval: their indices in [`NAMES`].
    observed: Vec<usize>,
    /// Their values before the first interval.
    before: Vec<f32>,
    /// The number of intervals that an observation contains.
    history: usize,
    lanes: Vec<Mutex<Lane>>,
}

/// Environments, and the threads that step them.
#[pyclass(frozen, module = "fullpipe._native")]
pub(crate) struct NativeEnvironments {
    shared: Arc<Environments>,
    threads: Threads,
}

/// A step of all environments.
struct Step {
    environments: Arc<Environments>,
    actions: Vec<f64>,
    /// The seeds of the environments that are reset instead.
    resets: Vec<Option<u64>>,
    results: Vec<OnceLock<PyResult<Interval>>>,
    /// Each thread has a share of the environments, the same in each step, so that their memory stays in the caches of its
    /// processor. A thread that has finished takes environments from the shares of the others.
    shares: Vec<Share>,
}

impl Job for Step {
    fn work(&self, thread: usize) {
        for share in self.shares[thread..].iter().chain(&self.shares[..thread]) {
            while let Some(lane) = share.take() {
                let step = || self.environments.step(lane, self.actions[lane]);
                let made = self.resets[lane].map_or_else(step, |seed| self.environments.reset(lane, seed));
                // Each number is taken once.
                let _ = self.results[lane].set(made);
            }
        }
    }
}

/// The settings of environments.
pub(crate) struct EnvironmentSettings {
    pub(crate) action: String,
    pub(crate) interval_s: Option<f64>,
    /// The initial, the lowest and the highest rate.
    pub(crate) rates_bps: [f64; 3],
    pub(crate) highest_action: f64,
    /// The observed values of an interval, and their values before the first one.
    pub(crate) observed: Vec<(String, f32)>,
    /// The number of intervals that an observation contains.
    pub(crate) history: usize,
    pub(crate) threads: usize,
}

/// The results of environments in a step: the values of the intervals and the observations as bytes of numbers with 64 and 32
/// bits. For 64 environments, creating a list of lists would take a fifth of the time of a step.
type StepBytes<'py> = (Bound<'py, PyByteArray>, Bound<'py, PyByteArray>);

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
        let mut observed = Vec::new();
        for (name, _) in &settings.observed {
            let index = NAMES.iter().position(|known| known == name);
            observed.push(index.ok_or_else(|| PyValueError::new_err(format!("unknown value {name:?}")))?);
        }
        let size = observed.len() * settings.history;
        let lane = || Mutex::new(Lane { environment: None, observation: vec![0.0; size] });
        let lanes = (0..count).map(|_| lane()).collect();
        let others = settings.threads.min(count).saturating_sub(1);
        let threads = Threads::start(others).map_err(|error| {
            RunError::new_err(format!("cannot start {others} threads: {error}; set `threads` to a smaller number"))
        })?;
        let [initial_rate_bps, lowest_rate_bps, highest_rate_bps] = settings.rates_bps;
        let shared = Environments {
            scenario: Arc::new(study.loaded.scenario),
            flow,
            action: Action::find(&settings.action)?,
            interval_s: settings.interval_s,
            initial_rate_bps,
            lowest_rate_bps,
            highest_rate_bps,
            highest_action: settings.highest_action,
            observed,
            before: settings.observed.iter().map(|(_, before)| *before).collect(),
            history: settings.history,
            lanes,
        };
        // Reports an unknown flow here instead of at the first reset.
        shared.environment(0)?;
        Ok(NativeEnvironments { shared: Arc::new(shared), threads })
    }
}

impl Environments {
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
        let mut lane = self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner);
        lane.environment = Some(environment);
        for observed in lane.observation.chunks_exact_mut(self.before.len()) {
            observed.copy_from_slice(&self.before);
        }
        self.observe(&interval, &mut lane.observation);
        Ok(interval)
    }

    /// Removes the oldest interval of an observation and appends the newest one.
    fn observe(&self, interval: &Interval, observation: &mut [f32]) {
        let kept = observation.len() - self.observed.len();
        observation.copy_within(self.observed.len().., 0);
        let values = interval.to_array();
        for (newest, column) in observation[kept..].iter_mut().zip(&self.observed) {
            *newest = values[*column] as f32;
        }
    }

    /// Multiplies the rate or the window and runs one monitor interval.
    fn step(&self, lane: usize, action: f64) -> PyResult<Interval> {
        let mut lane = self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner);
        let Lane { environment, observation } = &mut *lane;
        let environment = environment.as_mut().ok_or_else(not_reset)?;
        if environment.end != EpisodeEnd::None {
            return Err(RunError::new_err("the episode has ended; call reset before the next step"));
        }
        let factor = self.action.factor(action.clamp(-self.highest_action, self.highest_action));
        match self.action {
            Action::Rate => {
                let rate_bps = environment.rate_bps * factor;
                environment.rate_bps = rate_bps.clamp(self.lowest_rate_bps, self.highest_rate_bps);
                environment.apply_rate();
            }
            Action::Window => environment.multiply_window(factor),
        }
        let length_s = self.length_s(environment);
        let interval = environment.advance(length_s);
        self.observe(&interval, observation);
        Ok(interval)
    }

    /// Returns the size of an observation.
    fn observation_bytes(&self) -> usize {
        self.history * self.observed.len() * size_of::<f32>()
    }

    /// Returns the observation of one environment as bytes.
    fn observation<'py>(&self, py: Python<'py>, lane: usize) -> Bound<'py, PyByteArray> {
        let lane = self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = Vec::with_capacity(self.observation_bytes());
        lane.observation.iter().for_each(|value| bytes.extend_from_slice(&value.to_ne_bytes()));
        PyByteArray::new(py, &bytes)
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
    /// The names of the values of an interval.
    #[classattr]
    #[pyo3(name = "FIELDS")]
    fn fields() -> [&'static str; VALUES] {
        NAMES
    }

    /// Resets one environment. Returns the values of the interval, and the observation as bytes of numbers with 32 bits.
    #[pyo3(name = "reset")]
    fn reset_lane<'py>(
        &self,
        py: Python<'py>,
        lane: usize,
        seed: u64,
    ) -> PyResult<([f64; VALUES], Bound<'py, PyByteArray>)> {
        let interval = py.detach(|| self.shared.reset(lane, seed))?;
        Ok((interval.to_array(), self.shared.observation(py, lane)))
    }

    /// Steps one environment. Returns the same as `reset`.
    #[pyo3(name = "step")]
    fn step_lane<'py>(
        &self,
        py: Python<'py>,
        lane: usize,
        action: f64,
    ) -> PyResult<([f64; VALUES], Bound<'py, PyByteArray>)> {
        let interval = py.detach(|| self.shared.step(lane, action))?;
        Ok((interval.to_array(), self.shared.observation(py, lane)))
    }

    /// Steps all environments on the threads of the pool and on this one. An environment with a seed is reset instead.
    /// Returns the values, one row for each of [`NAMES`], the observations, and the environments whose episodes have ended.
    fn step_all<'py>(
        &self,
        py: Python<'py>,
        actions: Vec<f64>,
        seeds: Vec<(usize, u64)>,
    ) -> PyResult<(StepBytes<'py>, Vec<usize>)> {
        let count = self.shared.lanes.len();
        if actions.len() != count {
            return Err(PyValueError::new_err(format!("found {} actions; expected {count}", actions.len())));
        }
        if !self.threads.exist() {
            return Err(RunError::new_err(
                "the environment was created in another process, and its threads do not exist in this one; create it in \
                 this process",
            ));
        }
        let mut resets = vec![None; count];
        for (lane, seed) in seeds {
            *resets.get_mut(lane).ok_or_else(|| PyValueError::new_err(format!("no environment {lane}")))? = Some(seed);
        }
        let threads = self.threads.count();
        let step = Arc::new(Step {
            environments: self.shared.clone(),
            actions,
            resets,
            results: (0..count).map(|_| OnceLock::new()).collect(),
            shares: (0..threads).map(|thread| Share::new(thread, threads, count)).collect(),
        });
        py.detach(|| self.threads.run(step.clone()));
        let mut rows = Vec::with_capacity(count);
        let mut ended = Vec::new();
        for (lane, result) in step.results.iter().enumerate() {
            let interval = match result.get().expect("each environment was stepped") {
                Ok(interval) => *interval,
                Err(error) => return Err(error.clone_ref(py)),
            };
            if interval.end != EpisodeEnd::None {
                ended.push(lane);
            }
            rows.push(interval.to_array());
        }
        // While this thread copies, the others wait. An iterator over bytes would take several times as long.
        let mut values = Vec::with_capacity(count * size_of::<[f64; VALUES]>());
        for value in 0..VALUES {
            rows.iter().for_each(|row| values.extend_from_slice(&row[value].to_ne_bytes()));
        }
        let mut observations = Vec::with_capacity(count * self.shared.observation_bytes());
        for lane in &self.shared.lanes {
            let lane = lane.lock().unwrap_or_else(PoisonError::into_inner);
            lane.observation.iter().for_each(|value| observations.extend_from_slice(&value.to_ne_bytes()));
        }
        Ok(((PyByteArray::new(py, &values), PyByteArray::new(py, &observations)), ended))
    }
}

fn not_reset() -> PyErr {
    RunError::new_err("call reset before the first step")
}
