//! A run in steps: the program runs the simulation up to a time, inspects it, changes it, and continues.

use crate::outcome::{Outcome, direction_name, link_names};
use crate::prepared::{ActiveRun, PreparedRun};
use crate::probes::sent_by;
use fullpipe_congestion::ExternalControl;
use fullpipe_network::link::LinkCounters;
use fullpipe_record::FlowCounters;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::schema::nearest_name;
use fullpipe_units::words::format_exact_time;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, Rate};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The reason why a step or a change of a [`RunningSimulation`] is impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepError {
    /// The scenario has no flow or link with this name.
    #[non_exhaustive]
    UnknownName {
        /// The expected kind: "flow" or "link".
        what: &'static str,
        /// The unknown name.
        name: String,
        /// The nearest valid name; `None` if no name is similar enough.
        nearest: Option<String>,
    },
    /// The time is before the current time.
    #[non_exhaustive]
    PastTime {
        /// The given time.
        time: Instant,
        /// The current time of the simulation.
        now: Instant,
    },
    /// The rate and the delay of the link cannot be changed, because the link was not made adjustable.
    #[non_exhaustive]
    FixedLink {
        /// Name of the link.
        link: String,
    },
    /// The flow cannot be started now.
    #[non_exhaustive]
    Start {
        /// Name of the flow.
        flow: String,
        /// What is wrong, as a sentence.
        reason: String,
    },
}

impl fmt::Display for StepError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepError::UnknownName { what, name, nearest } => {
                write!(formatter, "unknown {what} {name:?}")?;
                nearest.iter().try_for_each(|nearest| write!(formatter, "; did you mean {nearest:?}?"))
            }
            StepError::PastTime { time, now } => {
                let [time, now] = [time, now].map(|at| format_exact_time(at.as_nanos()));
                write!(formatter, "cannot run until {time}: the simulation is at {now}")
            }
            StepError::FixedLink { link } => {
                write!(formatter, "link {link:?} is not adjustable; call `adjustable_links({link:?})` before the start")
            }
            StepError::Start { flow, reason } => write!(formatter, "cannot start flow {flow:?} now: {reason}"),
        }
    }
}

impl std::error::Error for StepError {}

/// The state of one direction of a flow: the packets from its source to its destination.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FlowSnapshot {
    /// Packets, bytes and delays since the start of the run, at the IP layer, over all connections of the flow.
    pub counters: FlowCounters,
    /// Payload bytes that the receiving application has read since the start of the run.
    pub received_bytes: u64,
    /// When the receiving application had all data of the flow; `None` if data are missing, or if the flow has no end.
    pub completed: Option<Instant>,
    /// Segments that the source has retransmitted; with QUIC, packets that it has declared lost. `None` if the source
    /// reports neither, as with UDP and before the flow starts.
    pub retransmitted_packets: Option<u64>,
    /// State of the source's newest connection. `None` if that connection is not open, and for UDP, tunnels, and the real
    /// QUIC stack.
    pub connection: Option<ConnectionSnapshot>,
}

/// The state of the sender at one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionSnapshot {
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Bytes acknowledged on this connection: payload with TCP, packets with their headers with QUIC.
    pub delivered_bytes: u64,
    /// Bytes declared lost on this connection, counted like `delivered_bytes`.
    pub lost_bytes: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// Smallest round-trip time; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Newest round-trip sample; `None` before the first.
    pub latest_rtt: Option<Duration>,
    /// Pacing rate; `None` if the sender does not pace.
    pub pacing_rate: Option<Rate>,
    /// Newest sample of the delivery rate; `None` before the first, and if the congestion control does not use samples.
    pub delivery_rate: Option<Rate>,
    /// Largest payload of a TCP segment, or of a UDP datagram with QUIC, in bytes.
    pub mss_bytes: u64,
    /// Whether the sender is in fast recovery.
    pub in_recovery: bool,
}

/// The state of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkSnapshot {
    /// Counters since the start of the run. On a link with a drop-tail queue, `frames`, `bytes` and `queue_delay_sum`
    /// include the frames that are in the queue.
    pub counters: LinkCounters,
    /// Packets in the queue, without the packet in transmission.
    pub queue_packets: u64,
    /// Bytes in the queue, without the packet in transmission.
    pub queue_bytes: u64,
    /// Current rate; for a link with a trace of transmission opportunities, its mean rate. `None` during an outage, and
    /// for access networks.
    pub rate: Option<Rate>,
}

/// A congestion control whose window the program sets.
#[derive(Debug)]
struct WatchedControl {
    control: ExternalControl,
    /// The number of changes that have taken effect.
    applied: u64,
    flows: Vec<usize>,
}

/// A simulation that runs in steps. Between two steps, the program can inspect and change it.
///
/// A run in steps has the same records as an uninterrupted run of the same scenario and seed, if the program changes
/// nothing. The same steps and changes always give the same records. A run in steps is slower, because no transmission is
/// computed ahead of the clock.
///
/// A program that sets the window of a flow from outside:
///
/// ```
/// use fullpipe_congestion::ExternalControl;
/// use fullpipe_lab::{Options, Plugins, start};
/// # use std::sync::Arc;
/// use fullpipe_units::Duration;
/// # let text = r#"
/// #     duration = "5s"
/// #     [topology]
/// #     kind = "chain"
/// #     link = [{ rate = "10Mbit/s", delay = "20ms", queue = "100kB" }]
/// #     [[flow]]
/// #     name = "bulk"
/// #     from = "source"
/// #     to = "sink"
/// #     workload = "bulk"
/// # "#;
/// # let scenario = fullpipe_scenario::load(text, "example.toml", &[]).expect("a valid scenario").scenario;
///
/// let control = ExternalControl::new(14_480);
/// // With the crate `fullpipe`: Simulation::new(text).external_control("bulk", &control).start()
/// let plugins = Plugins::new().external_control("bulk", &control);
/// let mut run = start(Arc::new(scenario), &Options::default(), plugins)?;
/// let flow = run.flow("bulk")?;
/// while run.run_until(run.now() + Duration::from_millis(100))? {
///     let Some(connection) = run.flow_snapshot(flow).connection else { continue };
///     let (Some(smoothed), Some(min)) = (connection.smoothed_rtt, connection.min_rtt) else { continue };
///     // One segment more without a queue, one tenth less with one.
///     control.set_window(match smoothed < min + Duration::from_millis(5) {
///         true => control.window_bytes() + connection.mss_bytes,
///         false => control.window_bytes() / 10 * 9,
///     });
/// }
/// let outcome = run.finish();
/// assert!(outcome.verdict().passed());
/// assert!(outcome.flow("bulk").expect("it exists").counters.rx_bytes > 1_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RunningSimulation {
    run: ActiveRun,
    now: Instant,
    controls: Vec<WatchedControl>,
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<RunningSimulation>();
};

impl RunningSimulation {
    pub(crate) fn new(prepared: PreparedRun, external: Vec<(ExternalControl, Vec<usize>)>) -> Self {
        let run = ActiveRun::begin(prepared);
        let is_external = |flow: &usize| run.world.control(*flow) == Some(ExternalControl::NAME);
        let watched = |(control, flows): (ExternalControl, Vec<usize>)| WatchedControl {
            applied: control.changes(),
            control,
            flows: flows.into_iter().filter(is_external).collect(),
        };
        let controls = external.into_iter().map(watched).collect();
        RunningSimulation { run, now: Instant::ZERO, controls }
    }

    /// Returns the current time: the time of the last step, at most the duration of the scenario.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the scenario. A flow that [`RunningSimulation::start_flow`] has started has the time of that call as its
    /// start.
    pub fn scenario(&self) -> &Scenario {
        &self.run.scenario
    }

    /// Runs until `time`: processes all events up to and including this time. Changes that the program has made since the
    /// last step take effect first. If `time` is after the end of the run, the simulation runs to its end.
    ///
    /// Returns whether the run continues; `false` if it has reached its duration, or if no event is left.
    ///
    /// # Errors
    /// If `time` is before [`RunningSimulation::now`].
    pub fn run_until(&mut self, time: Instant) -> Result<bool, StepError> {
        if time < self.now {
            return Err(StepError::PastTime { time, now: self.now });
        }
        self.apply_changes();
        let to = time.min(self.run.end());
        while !self.run.is_over() {
            let until = to.min(self.run.slice_end);
            self.run.advance(until, &[]);
            if until == to {
                break;
            }
        }
        self.now = to;
        Ok(!self.run.is_over())
    }

    /// Runs to the end, and returns the outcome.
    pub fn finish(mut self) -> Outcome {
        self.apply_changes();
        while !self.run.is_over() {
            self.run.advance(self.run.slice_end, &[]);
        }
        self.run.into_outcome(&[])
    }

    /// Ends the run now, and returns the outcome with the records so far. The scenario of the outcome has the current time
    /// as its duration.
    pub fn stop(mut self) -> Outcome {
        if !self.run.is_over() {
            Arc::make_mut(&mut self.run.scenario).duration = self.now.saturating_since(Instant::ZERO);
        }
        self.run.into_outcome(&[])
    }

    /// Returns the flow direction with this name, as in `flows.csv`: `NAME` is the direction from initiator to acceptor,
    /// and `NAME.reverse` the opposite one.
    ///
    /// # Errors
    /// If there is none with this name.
    pub fn flow(&self, name: &str) -> Result<FlowId, StepError> {
        let flows = self.run.scenario.flows.iter();
        let names = flows.flat_map(|flow| [0, 1].map(|end| direction_name(&flow.name, 1, end)));
        Ok(FlowId(find("flow", name, names)?))
    }

    /// Returns the link direction with this name. The reverse direction of a link `NAME` is `NAME.reverse`. Shared media,
    /// paths of stations, and directions of access networks have the names of [`Outcome::link_rows`].
    ///
    /// # Errors
    /// If there is none with this name.
    pub fn link(&self, name: &str) -> Result<LinkId, StepError> {
        Ok(LinkId(find("link", name, link_names(&self.run.scenario))?))
    }

    /// Returns the state of a flow direction.
    ///
    /// # Panics
    /// If the simulation has no such flow direction. [`RunningSimulation::flow`] returns a valid one.
    pub fn flow_snapshot(&mut self, flow: FlowId) -> FlowSnapshot {
        let ActiveRun { world, network, .. } = &mut self.run;
        let (flow, end) = (flow.index() / 2, flow.index() % 2);
        let counters = sent_by(flow, end, world, network);
        let progress = world.progress(flow, 1 - end);
        let newest = world.newest_conversation_of(flow);
        let retransmitted_packets = if world.number_of(newest) == 0 {
            world.retransmissions((newest, end))
        } else {
            let all: Vec<usize> = world.conversations_of(flow).collect();
            all.into_iter().filter_map(|conversation| world.retransmissions((conversation, end))).reduce(|a, b| a + b)
        };
        let connection = world.snapshot((newest, end));
        FlowSnapshot {
            counters,
            received_bytes: progress.received_bytes,
            completed: progress.completed,
            retransmitted_packets,
            connection,
        }
    }

    /// Returns the state of a link direction.
    ///
    /// # Panics
    /// If the simulation has no such link direction. [`RunningSimulation::link`] returns a valid one.
    pub fn link_snapshot(&mut self, link: LinkId) -> LinkSnapshot {
        let ActiveRun { network, scenario, .. } = &mut self.run;
        if network.now() < self.now {
            network.advance(self.now);
        }
        let (queue_packets, queue_bytes) = network.link_queue(link);
        let described_rate = || match scenario.links.get(link.index()) {
            Some(described) => described.course.rate_at(self.now, described.rate),
            None => {
                let mut channels = scenario.ethernets.iter().flat_map(|ethernet| {
                    let channels = if ethernet.half_duplex { 1 } else { ethernet.hosts.len() };
                    std::iter::repeat_n(ethernet.rate, channels)
                });
                channels.nth(link.index() - scenario.links.len())
            }
        };
        let rate = network.adjustable_rate(link).unwrap_or_else(described_rate);
        LinkSnapshot { counters: network.link_counters(link), queue_packets, queue_bytes, rate }
    }

    /// Sets the rate of a link direction from now on; rate 0 is an outage. A frame in transmission continues at the new
    /// rate, as with a `schedule` in a scenario. A queue limit in bytes remains, also if the scenario gives it as a time.
    ///
    /// # Errors
    /// If the link was not made adjustable: see [`Plugins::adjustable_links`](crate::Plugins::adjustable_links).
    pub fn set_link_rate(&mut self, link: LinkId, rate: Rate) -> Result<(), StepError> {
        self.catch_up();
        let network = &mut self.run.network;
        if !network.set_link_rate(link, rate) {
            return Err(self.fixed_link(link));
        }
        network.observer.set_link_rate(link, self.now, rate.bits_per_second());
        Ok(())
    }

    /// Sets the propagation delay of a link direction from now on. A frame has the delay at the time at which its last
    /// bit leaves, but does not overtake other frames.
    ///
    /// # Errors
    /// The errors of [`RunningSimulation::set_link_rate`].
    pub fn set_link_delay(&mut self, link: LinkId, delay: Duration) -> Result<(), StepError> {
        if !self.run.network.set_link_delay(link, delay) {
            return Err(self.fixed_link(link));
        }
        Ok(())
    }

    fn fixed_link(&self, link: LinkId) -> StepError {
        let name = link_names(&self.run.scenario).nth(link.index());
        StepError::FixedLink { link: name.map_or_else(String::new, Cow::into_owned) }
    }

    /// Starts a flow now that the scenario starts later. Times in the records are relative to this start. The run is not
    /// over before the start that the scenario sets.
    ///
    /// # Errors
    /// If the flow has already started, or if its workload has times that the scenario sets (`transfers`, `tmix`).
    ///
    /// # Panics
    /// If the simulation has no such flow.
    pub fn start_flow(&mut self, flow: FlowId) -> Result<(), StepError> {
        let flow = flow.index() / 2;
        let described = &self.run.scenario.flows[flow];
        let start = Instant::ZERO.saturating_add(described.start);
        let refused = |reason: String| StepError::Start { flow: described.name.clone(), reason };
        if self.run.is_over() {
            return Err(refused("the run is over".to_owned()));
        }
        if start <= self.now || self.run.world.has_started(flow) {
            return Err(refused(format!("it started at {}", format_exact_time(start.as_nanos()))));
        }
        let workload = described.workload.name();
        if matches!(workload, "transfers" | "tmix") {
            return Err(refused(format!("the scenario sets the times of its workload `{workload}`")));
        }
        let now = self.now;
        self.catch_up();
        let ActiveRun { world, network, scenario, .. } = &mut self.run;
        Arc::make_mut(scenario).flows[flow].start = now.saturating_since(Instant::ZERO);
        world.start_now(network, flow);
        Ok(())
    }

    /// Advances the clock of the network to the current time, if no event has done so.
    fn catch_up(&mut self) {
        if self.run.network.now() < self.now {
            self.run.network.advance(self.now);
        }
    }

    /// Applies changes of congestion controls since the last step.
    fn apply_changes(&mut self) {
        if self.run.is_over() {
            return;
        }
        for index in 0..self.controls.len() {
            let changes = self.controls[index].control.changes();
            if changes == self.controls[index].applied {
                continue;
            }
            self.controls[index].applied = changes;
            self.catch_up();
            let ActiveRun { world, network, .. } = &mut self.run;
            for flow in &self.controls[index].flows {
                let all: Vec<usize> = world.conversations_of(*flow).collect();
                for conversation in all {
                    (0..2).for_each(|end| world.apply_external_change(network, (conversation, end)));
                }
            }
        }
    }
}

/// Returns the number of a name in a list, or an error with the nearest name.
fn find<'a>(
    what: &'static str,
    name: &str,
    names: impl Iterator<Item = Cow<'a, str>> + Clone,
) -> Result<u32, StepError> {
    match names.clone().position(|known| known == name) {
        Some(number) => Ok(number as u32),
        None => {
            let names: Vec<Cow<'_, str>> = names.collect();
            let nearest = nearest_name(name, names.iter().map(AsRef::as_ref)).map(str::to_owned);
            Err(StepError::UnknownName { what, name: name.to_owned(), nearest })
        }
    }
}
