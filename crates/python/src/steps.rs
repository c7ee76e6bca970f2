//! Simulations in steps.

use crate::errors::{self, RunError};
use fullpipe::congestion::ExternalControl;
use fullpipe::lab;
use fullpipe::scenario::Override;
use fullpipe::scenario::schema::{abbreviate_names, nearest_name};
use fullpipe::stepping::{ConnectionSnapshot, StepError};
use fullpipe::study::ScenarioStudy;
use fullpipe::units::{Duration, FlowId, Instant, LinkId, Rate};
use fullpipe::{Outcome, Plugins, RunningSimulation};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The window of a controlled flow before it is set: ten segments.
pub(crate) const INITIAL_WINDOW_BYTES: u64 = 14_480;

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

pub(crate) fn refused(error: impl std::fmt::Display) -> PyErr {
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

/// Returns the study of a scenario, for a simulation in steps.
pub(crate) fn study_of(
    found: &fullpipe::find::FoundScenario,
    set: &[Override],
    seed: Option<u64>,
) -> PyResult<ScenarioStudy> {
    let fullpipe::find::FoundScenario { text, name, stem, folder } = found;
    fullpipe::study::scenario_study(stem, text, name, folder.clone(), set, seed).map_err(errors::of_scenario)
}
