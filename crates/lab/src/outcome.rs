//! The result of a run before it is written. Rows are created on demand, so that a run of 100 000 flows does not need
//! memory for a table of them.

use crate::events::{EventOutcome, EventWatcher};
use crate::figures;
use crate::gathered::ColumnCache;
use crate::probes::{Sampler, SeriesRow};
use crate::warnings;
use crate::witness::RunObserver;
use crate::world::{World, ends};
use fullpipe_archive::{Columns, Tables, Warning};
use fullpipe_audit::AuditReport;
use fullpipe_network::link::LinkCounters;
use fullpipe_network::{Endpoint, LinkProfile, MediumDirection, NatCounters, Network};
use fullpipe_record::{DelayHistogram, FlowCounters, LinkSummary, Observer};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{self, EndpointBackend, Transport};
use fullpipe_scenario::schema::nearest_name;
use fullpipe_tcp::EcnMode;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId};
use fullpipe_wire::protocol;
use fullpipe_workload::{Completion, MetricValue, Progress, Protocol};
use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

/// Percentiles of packet delays; [`DelayHistogram`] describes their resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DelayPercentiles {
    /// Median delay.
    pub p50: Duration,
    /// 95th percentile.
    pub p95: Duration,
    /// 99th percentile.
    pub p99: Duration,
}

impl DelayPercentiles {
    /// Returns the percentiles of a histogram; `None` if it is empty.
    fn of(delays: &DelayHistogram) -> Option<Self> {
        let percentile = |percent| delays.percentile(percent);
        Some(DelayPercentiles { p50: percentile(50)?, p95: percentile(95)?, p99: percentile(99)? })
    }
}

/// A row of `flows.csv`: one direction of one conversation. Packets and bytes are counted at the IP layer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlowRow<'a> {
    /// Name of the flow; the direction from acceptor to initiator has the suffix ".reverse".
    pub flow: Cow<'a, str>,
    /// Name of the sending host.
    pub source: &'a str,
    /// Name of the receiving host.
    pub destination: &'a str,
    /// Whether this is a main direction of the flow: its source sends most of the flow's data, as the workload
    /// declares. Both directions of a flow can be main directions. For traffic without a flow, the main direction is
    /// the one with more bytes.
    pub is_main: bool,
    /// Name of the protocol: "tcp", "udp", "quic" or "masque"; for traffic without a flow also "icmp" or "other".
    pub protocol: &'static str,
    /// Name of the congestion control algorithm; `None` for UDP and for traffic without a flow.
    pub congestion: Option<&'a str>,
    /// Packets, bytes and delays of the whole run, with the definitions of ns-3's FlowMonitor.
    pub counters: FlowCounters,
    /// The same counters, restricted to the measured interval, which ends with the run.
    pub measured: FlowCounters,
    /// Percentiles of the delays of the packets received in the measured interval; `None` if there are no such packets.
    pub delays: Option<DelayPercentiles>,
    /// Payload bits that the receiving application read in the measured interval, per second of the flow's part of the
    /// interval. That part ends with the flow's completion. If the flow does not complete, the part ends with the last
    /// reception (limited flows) or with the run (other flows). `None` if the receiver read no data, or if the flow
    /// completed before the interval. Also `None` for traffic without a flow, and for one of several conversations of a
    /// flow.
    pub goodput_bps: Option<f64>,
    /// Goodput over the whole run, in bit/s; equal to `goodput_bps` if the measured interval starts with the run.
    /// `None` if the receiver read no data.
    pub whole_goodput_bps: Option<f64>,
    /// Time from the flow's start until the receiver has all data; `None` if the flow does not complete, for traffic
    /// without a flow, and for one of several conversations of a flow.
    pub completion: Option<Duration>,
    /// Segments that this direction's sender retransmitted; with QUIC, packets that it declared lost. `None` if the
    /// sender reports neither, as with UDP.
    pub retransmitted_packets: Option<u64>,
    /// Packets received with a CE mark; `None` if the flow does not use ECN and no packet was marked.
    pub marked_packets: Option<u64>,
    /// Payload bits per second that the receiving application read over the complete measured interval; `None` if the
    /// scenario measures no links. Deprecated: use `goodput_bps`.
    pub measured_goodput_bps: Option<f64>,
}

/// The traffic of a link, a shared medium or a station's path.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LinkRow<'a> {
    /// Name of the link.
    pub link: Cow<'a, str>,
    /// Counters of the link.
    pub counters: LinkCounters,
}

impl LinkRow<'_> {
    /// Returns the mean time from the arrival of a frame to the transmission of its first bit, in seconds; `None` if no
    /// frame was transmitted.
    pub fn mean_queue_delay_s(&self) -> Option<f64> {
        (self.counters.frames > 0).then(|| self.counters.queue_delay_sum.as_secs_f64() / self.counters.frames as f64)
    }
}

/// A row of `links.csv`: the traffic of one direction of a link during the measured interval.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MeasuredLink<'a> {
    /// Name of the link.
    pub link: &'a str,
    /// Traffic of the link.
    pub summary: LinkSummary,
    /// Fraction of the measured interval in which the link transmitted. `None` if the interval has length zero, and for
    /// links with a trace of transmission opportunities.
    pub utilisation: Option<f64>,
}

/// A row of `completions.csv`: an exchange or transfer within a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CompletionRow<'a> {
    /// Name of the flow.
    pub flow: &'a str,
    /// Number within the flow, from 1, in order of completion.
    pub number: usize,
    /// Start, end and size.
    pub completion: Completion,
}

/// A row of `figures.csv`: an application metric.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FigureRow<'a> {
    /// Name of the flow.
    pub flow: &'a str,
    /// Host of the application.
    pub host: &'a str,
    /// Name of the metric, which ends with its unit.
    pub name: &'a str,
    /// Value of the metric in that unit; NaN if it has no value.
    pub value: f64,
}

/// An application metric that a real program reported.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgramMetric {
    /// Number of the flow.
    pub(crate) flow: usize,
    pub(crate) host: NodeId,
    pub(crate) name: String,
    pub(crate) value: f64,
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunTotals {
    /// Packets with transport payload that reached their destination, including duplicates.
    pub data_packets: u64,
    /// All packets that reached their destination.
    pub packets: u64,
    /// Frames transmitted, summed over all links.
    pub packet_hops: u64,
    /// Packets dropped.
    pub lost_packets: u64,
    /// Events that the calendar executed.
    pub events: u64,
    /// Packets in queues and on links at the end of the run.
    pub remaining_packets: u64,
    /// Endpoints whose connection is not closed at the end of the run.
    pub live_endpoints: u64,
}

/// The results of an end of a flow that the model did not execute, in addition to the end's report.
#[derive(Clone, Debug)]
pub(crate) struct ExternalEndpointResult {
    /// Name of the congestion control algorithm.
    pub(crate) congestion: Option<String>,
    /// The data that reached this end.
    pub(crate) progress: Progress,
    /// Payload bytes that reached it before the measured interval.
    pub(crate) received_before_bytes: u64,
    /// SHA-256 of the data that it wrote or read, if the content is verified.
    pub(crate) digest: Option<String>,
}

/// The verification of a flow's content at both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContentRow<'a> {
    /// Name of the flow.
    pub flow: &'a str,
    /// Whether the receiver had all data.
    pub completed: bool,
    /// SHA-256 of the data that the sending application wrote, in hexadecimal.
    pub sent_sha256: String,
    /// SHA-256 of the data that the receiving application read, in hexadecimal.
    pub received_sha256: String,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    scenario: Arc<Scenario>,
    pub(crate) world: World,
    pub(crate) probes: Sampler,
    pub(crate) witness: RunObserver,
    links: Vec<LinkCounters>,
    nats: Vec<NatCounters>,
    /// The tables of access networks.
    access: Tables,
    verdict: AuditReport,
    /// Warnings about suspicious conditions in the scenario and its access networks.
    warnings: Vec<Warning>,
    ended: Instant,
    totals: RunTotals,
    captured: io::Result<()>,
    /// Ends of flows that the model did not execute, by index of the flow and number of the end (0: initiator).
    pub(crate) played: BTreeMap<(usize, usize), ExternalEndpointResult>,
    /// In real time, the metrics that programs reported. The model then reports only the ends that it executes.
    told: Option<Vec<ProgramMetric>>,
    events: Vec<EventOutcome>,
    pub(crate) gathered: ColumnCache,
}

impl Outcome {
    pub(crate) fn new(
        scenario: Arc<Scenario>,
        mut world: World,
        mut network: Network<RunObserver>,
        probes: Sampler,
        drained: bool,
    ) -> Self {
        world.finish();
        let captured = network.tap.take().map_or(Ok(()), |mut tap| tap.finish());
        let remaining = network.remaining_packets();
        // The following code needs memory for each link and flow. It is the peak of the run unless packets are released
        // first.
        network.release_packets();
        let events = network.events();
        let links = (0..network.link_count()).map(|link| network.link_counters(LinkId(link as u32))).collect();
        let nats = scenario.nats.iter().filter_map(|nat| network.nat_counters(nat.router)).collect();
        let warnings = warnings::before_run(&scenario, &network);
        let mut access = Tables::default();
        (0..scenario.access.len()).for_each(|medium| network.medium(medium as u16).record(&mut access));
        let mut witness = network.observer;
        let flows = 2 * world.conversations();
        let mut last = Instant::ZERO;
        let mut totals = RunTotals { events, live_endpoints: world.live_endpoints() as u64, ..RunTotals::default() };
        for flow in 0..flows {
            let counters = witness.monitor.flow(FlowId(flow as u32));
            totals.packets += counters.rx_packets;
            totals.lost_packets += counters.lost_packets;
            last = last.max(counters.last_rx).max(counters.last_tx);
        }
        totals.remaining_packets = remaining.packets_per_flow.values().map(|(packets, _)| packets).sum();
        totals.data_packets = witness.data_packets;
        totals.packet_hops = witness.transmissions();
        let end = Instant::ZERO.saturating_add(scenario.duration);
        let ended = if drained { last } else { end };
        let verdict = witness.judge(&scenario, &remaining);
        Outcome {
            scenario,
            world,
            probes,
            witness,
            links,
            nats,
            access,
            verdict,
            warnings,
            ended,
            totals,
            captured,
            played: BTreeMap::new(),
            told: None,
            events: Vec::new(),
            gathered: ColumnCache::default(),
        }
    }

    /// Adds the final states of the scenario's events.
    pub(crate) fn with_events(self, events: EventWatcher) -> Self {
        Outcome { events: events.into_outcomes(), ..self }
    }

    /// Returns the final state of each event, in the order of the scenario.
    pub fn events(&self) -> &[EventOutcome] {
        &self.events
    }

    /// Creates the outcome of a real-time run that ended at a wall-clock time. It includes the results of ends that the
    /// model did not execute, and the metrics that programs reported.
    pub(crate) fn of_real_time(
        self,
        ended: Instant,
        played: BTreeMap<(usize, usize), ExternalEndpointResult>,
        told: Vec<ProgramMetric>,
    ) -> Self {
        Outcome { ended, played, told: Some(told), gathered: ColumnCache::default(), ..self }
    }

    /// Returns the executed scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns the verdict of the auditor.
    pub fn verdict(&self) -> &AuditReport {
        &self.verdict
    }

    /// Returns conditions that make the results suspicious although no check failed.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.warnings.clone();
        let mut all = FlowCounters::default();
        let mut by_flow = vec![FlowCounters::default(); self.scenario.flows.len()];
        for conversation in 0..self.world.conversations() {
            for end in 0..2 {
                let counters = self.witness.monitor.flow(FlowId((2 * conversation + end) as u32));
                all.add(&counters);
                if let Some(flow) = self.world.flow_of(conversation) {
                    by_flow[flow].add(&counters);
                }
            }
        }
        let names = self.scenario.flows.iter().map(|flow| flow.name.as_str());
        warnings.extend(warnings::silent_flows(names.zip(by_flow)));
        if self.told.is_none() {
            let flows = self.scenario.flows.iter().enumerate();
            let received = flows.flat_map(|(number, flow)| {
                let senders = flow.workload.senders();
                let receivers = [0, 1].into_iter().filter(move |end| senders[1 - end]);
                receivers.map(move |end| (flow, self.world.progress(number, end)))
            });
            warnings.extend(warnings::stalled_flows(received, self.ended));
        }
        if self.delivers_nothing() {
            warnings.push(warnings::nothing_delivered(&warnings, &all));
        }
        warnings
    }

    /// Returns whether flows have data to send and no application received any. In real time, the data that real
    /// programs receive is unknown. The result is then whether no packet with payload arrived.
    fn delivers_nothing(&self) -> bool {
        let mut flows = self.scenario.flows.iter();
        if !flows.any(|flow| flow.workload.senders().contains(&true)) {
            return false;
        }
        if self.told.is_some() {
            return self.totals.data_packets == 0;
        }
        let received = |flow| [0, 1].into_iter().any(|end| self.world.progress(flow, end).received_bytes > 0);
        !(0..self.scenario.flows.len()).any(received)
    }

    /// Returns the time at which the run ended. If no events remained before the scenario's duration, this is the time
    /// of the last packet; otherwise it is the duration.
    pub fn end_time(&self) -> Instant {
        self.ended
    }

    /// Records whether the log or the samples could be written.
    pub(crate) fn logged(mut self, written: io::Result<()>) -> Self {
        if self.captured.is_ok() {
            self.captured = written;
        }
        self
    }

    /// Checks that all requested packet captures, the qlog file and the samples were written.
    ///
    /// # Errors
    /// The first error that occurred while they were written.
    pub fn capture_result(&self) -> Result<(), &io::Error> {
        self.captured.as_ref().map(|_| ())
    }

    /// Returns the totals over the run.
    pub fn totals(&self) -> RunTotals {
        self.totals
    }

    /// Returns the rows of `flows.csv`: one row for each direction of each conversation, in the order of the scenario.
    /// A reverse direction of UDP without packets has no row. All connections of a flow that replays a trace are
    /// aggregated in one row per direction.
    pub fn flow_rows(&self) -> impl Iterator<Item = FlowRow<'_>> {
        let mut opened = vec![0u32; self.scenario.flows.len()];
        let mut several = vec![false; self.scenario.flows.len()];
        let further = (self.scenario.flows.len()..self.world.conversations()).filter_map(|n| self.world.flow_of(n));
        further.for_each(|flow| several[flow] = true);
        let sums = self.sums();
        (0..self.world.conversations()).flat_map(move |conversation| {
            let described = self.world.flow_of(conversation).map(|flow| {
                opened[flow] += 1;
                (flow, (opened[flow], several[flow]))
            });
            let sum = described.and_then(|(flow, _)| sums.get(&flow).copied());
            [0, 1].into_iter().filter_map(move |end| match described {
                Some((flow, (number, _))) if sum.is_some() => {
                    let (counters, measured, again) = sum.filter(|_| number == 1)?[end];
                    let row = self.row(conversation, flow, (1, false), end)?;
                    let delays = self.summed_delays(flow, end);
                    Some(FlowRow { counters, measured, delays, retransmitted_packets: Some(again), ..row })
                }
                Some((flow, number)) => self.row(conversation, flow, number, end),
                None => self.undescribed_row(conversation, end),
            })
        })
    }

    /// Returns the counters and retransmissions of all connections of each flow that replays a trace, by direction.
    fn sums(&self) -> BTreeMap<usize, [(FlowCounters, FlowCounters, u64); 2]> {
        let mut sums = BTreeMap::new();
        for conversation in 0..self.world.conversations() {
            let of_trace = |flow: &usize| self.scenario.flows[*flow].workload.sums_connections();
            let Some(flow) = self.world.flow_of(conversation).filter(of_trace) else { continue };
            let sum: &mut [(FlowCounters, FlowCounters, u64); 2] = sums.entry(flow).or_default();
            for (end, (counters, measured, again)) in sum.iter_mut().enumerate() {
                let (whole, interval) = self.counters(conversation, end);
                counters.add(&whole);
                measured.add(&interval);
                let report = self.world.last_report((conversation, end));
                *again += report.and_then(|report| report.retransmitted_packets).unwrap_or_default();
            }
        }
        sums
    }

    /// Returns percentiles over the packets of all connections of a flow that replays a trace, in one direction.
    fn summed_delays(&self, flow: usize, end: usize) -> Option<DelayPercentiles> {
        let mut sum = DelayHistogram::default();
        let conversations = (0..self.world.conversations()).filter(|n| self.world.flow_of(*n) == Some(flow));
        for delays in conversations.filter_map(|conversation| self.delays(conversation, end)) {
            sum.merge(delays);
        }
        DelayPercentiles::of(&sum)
    }

    /// Returns the packet delays of one direction of a conversation in the measured interval.
    fn delays(&self, conversation: usize, end: usize) -> Option<&DelayHistogram> {
        self.witness.monitor.delays(FlowId((2 * conversation + end) as u32))
    }

    /// Returns the counters of one direction of a conversation for the whole run, and for the measured interval.
    fn counters(&self, conversation: usize, end: usize) -> (FlowCounters, FlowCounters) {
        let flow = FlowId((2 * conversation + end) as u32);
        let monitor = &self.witness.monitor;
        (monitor.flow(flow), monitor.measured_counters(flow, &self.probes.counters_before(flow)))
    }

    /// Returns the row of one direction of a conversation, by its name in `flows.csv`; `None` if there is no row with
    /// this name.
    pub fn flow(&self, name: &str) -> Option<FlowRow<'_>> {
        self.flow_rows().find(|row| row.flow == name)
    }

    /// Returns the name in `flows.csv` of the flow direction that observers identify by `flow`; `None` if the run has
    /// no such flow.
    pub fn flow_name(&self, flow: FlowId) -> Option<Cow<'_, str>> {
        let (conversation, end) = (flow.index() / 2, usize::from(!flow.is_forward()));
        if conversation >= self.world.conversations() {
            return None;
        }
        let Some(flow) = self.world.flow_of(conversation) else {
            return self.undescribed_row(conversation, end).map(|row| row.flow);
        };
        let described = &self.scenario.flows[flow];
        Some(direction_name(&described.name, self.world.number_of(conversation) + 1, end))
    }

    /// Returns the row of a conversation of real hosts that matches no flow of the scenario. Its name consists of the
    /// names of its ends.
    fn undescribed_row(&self, conversation: usize, end: usize) -> Option<FlowRow<'_>> {
        let (protocol, ends) = *self.world.real()?.conversations.get(&(conversation as u32))?;
        let (counters, measured) = self.counters(conversation, end);
        if counters.tx_packets == 0 {
            return None;
        }
        let is_main = counters.rx_bytes >= self.counters(conversation, 1 - end).0.rx_bytes;
        let name = |end: Endpoint| &self.scenario.nodes[end.node.index()].name;
        let protocol = match protocol {
            protocol::TCP => Protocol::Tcp.name(),
            protocol::UDP => Protocol::Udp.name(),
            protocol::ICMP | protocol::ICMPV6 => "icmp",
            _ => "other",
        };
        let (source, destination) = (ends.source, ends.destination);
        let pair = format!("{protocol} {}:{}-{}:{}", name(source), source.port, name(destination), destination.port);
        let ends = if end == 0 { ends } else { ends.reverse() };
        Some(FlowRow {
            flow: direction_name(&pair, 1, end).into_owned().into(),
            source: name(ends.source),
            destination: name(ends.destination),
            is_main,
            protocol,
            congestion: None,
            counters,
            measured,
            delays: self.delays(conversation, end).and_then(DelayPercentiles::of),
            goodput_bps: None,
            whole_goodput_bps: None,
            completion: None,
            retransmitted_packets: None,
            marked_packets: None,
            measured_goodput_bps: None,
        })
    }

    /// Returns the row of a conversation. `number` is its number within the flow, from 1, and whether the flow has
    /// several conversations. Applications report results for the flow as a whole. With several conversations, none of
    /// them has its own goodput or completion (`completions.csv` has those of its transfers).
    fn row(&self, conversation: usize, flow: usize, (number, several): (u32, bool), end: usize) -> Option<FlowRow<'_>> {
        let described = &self.scenario.flows[flow];
        let (counters, measured) = self.counters(conversation, end);
        let (sender, receiver) = (self.played.get(&(flow, end)), self.played.get(&(flow, 1 - end)));
        let protocol = described.transport.protocol();
        let congestion = match (protocol, sender) {
            (Protocol::Udp, _) => None,
            (Protocol::Tcp, Some(sender)) => sender.congestion.as_deref(),
            (Protocol::Tcp | Protocol::Quic | Protocol::Masque, _) => self.world.control(flow),
        };
        if end == 1 && protocol == Protocol::Udp && counters.tx_packets == 0 {
            return None;
        }
        let (from, to) = ends(&self.scenario, flow);
        let (from, to) = if end == 0 { (from, to) } else { (to, from) };
        let start = Instant::ZERO.saturating_add(described.start);
        let progress = receiver.map_or_else(|| self.world.progress(flow, 1 - end), |receiver| receiver.progress);
        // QUIC retransmits the content of lost packets, so they count as retransmitted.
        let report = self.world.last_report((conversation, end));
        let retransmitted_packets = report.and_then(|report| report.retransmitted_packets.or(report.lost_packets));
        let with_ecn = match &described.transport {
            Transport::Tcp(tcp) => tcp.connection.ecn == EcnMode::Active,
            Transport::Quic(_) | Transport::Masque(_) => true,
            Transport::Udp => false,
        };
        let completion = if !several { progress.completed.map(|at| at.saturating_since(start)) } else { None };
        let limited = !described.workload.is_unlimited();
        let whole_goodput_bps = (!several && progress.received_bytes > 0)
            .then(|| {
                let last = progress.last_received.filter(|_| limited).unwrap_or(self.ended);
                rate_bps(progress.received_bytes, start, progress.completed.unwrap_or(last))
            })
            .flatten();
        let measurement = &self.scenario.measurement;
        let measured_from = Instant::ZERO.saturating_add(measurement.from);
        let before = receiver
            .map_or_else(|| self.probes.received_before(flow, 1 - end), |receiver| receiver.received_before_bytes);
        let goodput_bps = if measurement.from.is_zero() {
            whole_goodput_bps
        } else if !several && progress.received_bytes > 0 && progress.completed.is_none_or(|at| at > measured_from) {
            // A limited flow that receives nothing in the interval and is not complete is stalled until the end of the
            // run.
            let last = progress.last_received.filter(|at| limited && *at > measured_from).unwrap_or(self.ended);
            let until = progress.completed.unwrap_or(last);
            rate_bps(progress.received_bytes.saturating_sub(before), measured_from.max(start), until)
        } else {
            None
        };
        let measured_goodput_bps = (!several && !measurement.links.is_empty())
            .then(|| rate_bps(progress.received_bytes.saturating_sub(before), measured_from, self.ended))
            .flatten();
        Some(FlowRow {
            flow: direction_name(&described.name, number, end),
            source: &self.scenario.nodes[from.index()].name,
            destination: &self.scenario.nodes[to.index()].name,
            is_main: self.scenario.main_senders(flow)[end],
            protocol: protocol.name(),
            congestion,
            counters,
            measured,
            delays: self.delays(conversation, end).and_then(DelayPercentiles::of),
            goodput_bps,
            whole_goodput_bps,
            completion: completion.filter(|_| progress.received_bytes > 0),
            retransmitted_packets,
            marked_packets: (with_ecn || counters.marked_packets > 0).then_some(counters.marked_packets),
            measured_goodput_bps,
        })
    }

    /// Returns the rows of `completions.csv`: the completed exchanges and transfers, grouped by flow.
    pub fn completion_rows(&self) -> impl Iterator<Item = CompletionRow<'_>> {
        self.scenario.flows.iter().enumerate().flat_map(move |(flow, described)| {
            (0..2).flat_map(move |end| {
                let completions = self.world.application(flow, end).completions();
                completions.iter().enumerate().map(|(index, completion)| CompletionRow {
                    flow: &described.name,
                    number: index + 1,
                    completion: *completion,
                })
            })
        })
    }

    /// Returns the rows of `figures.csv`: the metrics that applications reported, grouped by flow. In real time,
    /// metrics that programs reported follow.
    pub fn figure_rows(&self) -> impl Iterator<Item = FigureRow<'_>> {
        let host = |node: NodeId| self.scenario.nodes[node.index()].name.as_str();
        let modelled = self.scenario.flows.iter().enumerate().flat_map(move |(flow, described)| {
            let ends = [(described.from, described.from_by), (described.to, described.to_by)].into_iter().enumerate();
            let is_played = |player: EndpointBackend| self.told.is_none() || player == EndpointBackend::Model;
            ends.filter(move |(_, (_, player))| is_played(*player)).flat_map(move |(end, (node, _))| {
                let mut figures = self.world.application(flow, end).metric_values(self.ended);
                figures.extend(figures::of_endpoints(&described.transport, &self.world, (flow, end)));
                figures.into_iter().map(move |MetricValue { name, value }| FigureRow {
                    flow: &described.name,
                    host: host(node),
                    name,
                    value,
                })
            })
        });
        let told = self.told.iter().flatten().map(move |told| FigureRow {
            flow: &self.scenario.flows[told.flow].name,
            host: host(told.host),
            name: &told.name,
            value: told.value,
        });
        modelled.chain(told)
    }

    /// Returns the digests of the flows whose content is verified.
    pub fn content_rows(&self) -> impl Iterator<Item = ContentRow<'_>> {
        let digest = |flow, end| match self.played.get(&(flow, end)) {
            Some(played) => played.digest.clone(),
            None => self.world.application(flow, end).digest(),
        };
        self.scenario.flows.iter().enumerate().filter_map(move |(flow, described)| {
            let received = self.played.get(&(flow, 1)).map_or_else(|| self.world.progress(flow, 1), |end| end.progress);
            Some(ContentRow {
                flow: &described.name,
                completed: received.completed.is_some(),
                sent_sha256: digest(flow, 0)?,
                received_sha256: digest(flow, 1)?,
            })
        })
    }

    /// Returns the traffic of each link in the order of the scenario. Shared segments follow: the medium if it is half
    /// duplex, otherwise the path of each station. The directions of access networks are last.
    pub fn link_rows(&self) -> impl Iterator<Item = LinkRow<'_>> {
        link_names(&self.scenario).zip(&self.links).map(|(link, counters)| LinkRow { link, counters: *counters })
    }

    /// Returns the rows of `links.csv`: the links that the scenario measures, in the order of the scenario.
    pub fn measured_links(&self) -> impl Iterator<Item = MeasuredLink<'_>> {
        self.witness.link_summaries(self.ended).map(|(link, summary)| {
            let described = &self.scenario.links[link.index()];
            let paced = matches!(described.course, LinkProfile::Trace(_));
            let utilisation = summary.utilization().filter(|_| !paced);
            MeasuredLink { link: &described.name, summary, utilisation }
        })
    }

    /// Returns the number of retransmission and probe timeouts of each flow direction, by the name of the direction.
    /// The number is the sum over all connections; directions without timeouts are excluded.
    pub fn timeouts(&self) -> BTreeMap<String, u64> {
        let mut timeouts = BTreeMap::new();
        for conversation in 0..self.world.conversations() {
            let Some(flow) = self.world.flow_of(conversation) else { continue };
            for end in 0..2 {
                let count = self.world.timeouts((conversation, end));
                if count > 0 {
                    let name = direction_name(&self.scenario.flows[flow].name, 1, end).into_owned();
                    *timeouts.entry(name).or_default() += count;
                }
            }
        }
        timeouts
    }

    /// Returns the columns of a table of access networks, such as `ues.csv` and `bearers.csv` of LTE; `None` if no
    /// access network of the scenario has this table.
    pub fn access_table(&self, file: &str) -> Option<&Columns> {
        self.access.columns(file)
    }

    /// Returns the tables of access networks: name and content of each file.
    pub(crate) fn access_files(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.access.files()
    }

    /// Returns the name of the router and the counters of each NAT, in the order of the scenario.
    pub fn nat_rows(&self) -> impl Iterator<Item = (&str, NatCounters)> {
        let routers = self.scenario.nats.iter().map(|nat| self.scenario.nodes[nat.router.index()].name.as_str());
        routers.zip(self.nats.iter().copied())
    }

    /// Returns the plugged-in observers of a type, in the order in which they were added.
    ///
    /// ```
    /// # use fullpipe_lab::{Options, Plugins, run_with};
    /// # use fullpipe_record::{Observer, PacketView};
    /// # use fullpipe_units::Instant;
    /// #[derive(Default)]
    /// struct Count(u64);
    ///
    /// impl Observer for Count {
    ///     fn on_sent(&mut self, _now: Instant, _packet: &PacketView) {
    ///         self.0 += 1;
    ///     }
    /// }
    /// # let text = r#"
    /// #     duration = "1s"
    /// #     [topology]
    /// #     kind = "chain"
    /// #     link = [{ rate = "1Mbit/s", delay = "5ms" }]
    /// #     [[flow]]
    /// #     from = "source"
    /// #     to = "sink"
    /// #     workload = "bulk"
    /// # "#;
    /// # let scenario = fullpipe_scenario::load(text, "example.toml", &[]).expect("a good scenario").scenario;
    ///
    /// let outcome = run_with(&scenario, &Options::default(), Plugins::new().observe(Count::default())).expect("a run");
    /// let count: &Count = outcome.observers().next().expect("the one above");
    /// assert_eq!(count.0, outcome.flow_rows().map(|row| row.counters.tx_packets).sum::<u64>());
    /// ```
    pub fn observers<T: Observer + 'static>(&self) -> impl Iterator<Item = &T> {
        self.witness.watchers().filter_map(|observer| (observer as &dyn Any).downcast_ref())
    }

    /// Returns the traffic of a link, a shared medium or a station's path, by its name; `None` if there is none with
    /// this name. The reverse direction of a link `NAME` is `NAME.reverse`.
    pub fn link(&self, name: &str) -> Option<LinkRow<'_>> {
        self.link_rows().find(|row| row.link == name)
    }

    /// Returns the name of the link that observers identify by `link`; `None` if the run has no such link.
    pub fn link_name(&self, link: LinkId) -> Option<Cow<'_, str>> {
        self.link_rows().nth(link.index()).map(|row| row.link)
    }

    /// Returns the rows of `series.csv`, in order of time; rows of the same time are in the order of the scenario's
    /// probes. There are no rows if [`Options::samples`](crate::Options::samples) is set.
    pub fn series_rows(&self) -> impl Iterator<Item = SeriesRow<'_>> {
        self.probes.rows()
    }

    /// Returns the subject and metric of each series, in the order of the scenario's probes.
    #[doc(hidden)]
    pub fn series_names(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.probes.names()
    }

    /// Returns the rows of `series.csv` as time, index in [`Outcome::series_names`] and value.
    #[doc(hidden)]
    pub fn numbered_samples(&self) -> &[(Instant, u32, f64)] {
        self.probes.samples()
    }

    /// Returns the samples of one metric of a subject, in order of time. The subject is the name of a link, a segment,
    /// a station, or a flow direction (as in `flows.csv`). The name of the metric includes its unit.
    ///
    /// # Panics
    /// If no probe of the scenario samples this metric of this subject; [`Outcome::find_series`] returns an error
    /// instead.
    pub fn series(&self, subject: &str, metric: &str) -> impl Iterator<Item = (Instant, f64)> {
        self.find_series(subject, metric).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the samples of one metric of a subject, in order of time: see [`Outcome::series`].
    ///
    /// # Errors
    /// If no probe of the scenario samples this metric of this subject. The message contains the nearest name.
    pub fn find_series(
        &self,
        subject: &str,
        metric: &str,
    ) -> Result<impl Iterator<Item = (Instant, f64)>, UnknownSeries> {
        let names = || self.probes.names();
        let number = names().position(|name| name == (subject, metric));
        let number = number.ok_or_else(|| UnknownSeries::new(subject, metric, names()))?;
        Ok(self.probes.samples_of(number))
    }
}

/// Error: no probe of the scenario samples this metric of this subject.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownSeries {
    message: String,
}

impl UnknownSeries {
    fn new<'a>(subject: &str, metric: &str, known: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Self {
        let unique = |names: &mut dyn Iterator<Item = &'a str>| -> Vec<&'a str> {
            let mut seen = BTreeSet::new();
            names.filter(|name| seen.insert(*name)).collect()
        };
        let of_subject = unique(&mut known.clone().filter(|(of, _)| *of == subject).map(|(_, metric)| metric));
        let (what, name, names) = match of_subject.is_empty() {
            true => ("subject", subject, unique(&mut known.map(|(of, _)| of))),
            false => ("metric", metric, of_subject),
        };
        let of = if what == "metric" { format!(" of {subject:?}") } else { String::new() };
        if names.is_empty() {
            return UnknownSeries { message: format!("no samples of {name:?}: the scenario has no [[probe]]") };
        }
        let near = nearest_name(name, names.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
        let known = names.iter().take(20).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let more = if names.len() > 20 { ", ..." } else { "" };
        UnknownSeries { message: format!("no probe samples the {what} {name:?}{of}{near} (one of: {known}{more})") }
    }
}

impl fmt::Display for UnknownSeries {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for UnknownSeries {}

/// Returns the mean rate in bit/s of bytes received between two times; `None` if the interval is empty.
fn rate_bps(bytes: u64, from: Instant, until: Instant) -> Option<f64> {
    let time = until.saturating_since(from);
    (!time.is_zero()).then(|| bytes as f64 * 8.0 / time.as_secs_f64())
}

/// Returns the names of all links in the order of their numbers: see [`Outcome::link_rows`].
pub(crate) fn link_names(scenario: &Scenario) -> impl Iterator<Item = Cow<'_, str>> + Clone {
    let links = scenario.links.iter().map(|link| Cow::Borrowed(link.name.as_str()));
    let media = scenario.ethernets.iter().flat_map(|ethernet| {
        let names: Vec<Cow<'_, str>> = if ethernet.half_duplex {
            vec![Cow::Borrowed(ethernet.name.as_str())]
        } else {
            let station = |host: &NodeId| format!("{} {}", ethernet.name, scenario.nodes[host.index()].name);
            ethernet.hosts.iter().map(|host| Cow::Owned(station(host))).collect()
        };
        names
    });
    let access = scenario.access.iter();
    let ways = access.flat_map(|access| MediumDirection::ALL.map(|way| Cow::Owned(access.link_name(way))));
    links.chain(media).chain(ways)
}

/// Returns the name of one direction of a flow's n-th conversation (from 1) in `flows.csv`.
pub(crate) fn direction_name(flow: &str, number: u32, end: usize) -> Cow<'_, str> {
    match (number, end) {
        (1, 0) => Cow::Borrowed(flow),
        (1, _) => Cow::Owned(description::direction_name(flow, end)),
        (n, _) => Cow::Owned(description::direction_name(&format!("{flow}#{n}"), end)),
    }
}
