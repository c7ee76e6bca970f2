//! Ends of flows that this machine's kernel implements: their sockets and their results.
//!
//! The kernel uses these TCP settings of a flow: congestion control, pacing, ECN and the maximum buffer sizes. ECN and
//! the buffer sizes apply to the host, so all flows of a host must have the same values. All other behavior is that of
//! the kernel.

use crate::outcome::ExternalEndpointResult;
use crate::probes::Sampler;
use fullpipe_congestion::catalogue::linux_name;
use fullpipe_emulate::{
    EmulatorNamespace, EndpointRole, HostNamespace, KernelEndpoint, KernelEndpointReport, KernelListeners, KernelTcp,
    KernelTransport, StartSignal, TcpInfoSample, TrafficPattern, WallClock,
};
use fullpipe_network::Endpoint;
use fullpipe_network::address::ConversationTable;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{EndpointBackend, Flow, ProbeSubject, Tcp, Transport};
use fullpipe_tcp::{EcnFeedback, EcnMode};
use fullpipe_transport::endpoint::{EndpointKind, EndpointReport, nonzero_duration, nonzero_rate};
use fullpipe_units::{FlowId, Instant, NodeId};
use fullpipe_workload::{Content, Digest, Progress, SocketTraffic};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Index of a flow of the scenario, and the number of the end (0: initiator).
pub(crate) type FlowEnd = (usize, usize);

/// The results of an end of a flow that a socket of the kernel implements.
#[derive(Clone, Debug)]
pub struct KernelEndpointResult {
    /// Name of the flow.
    pub flow: String,
    /// Whether this is the end at `from`, which sends; otherwise it is the end at `to`.
    pub sender: bool,
    /// The kernel's name of the congestion control algorithm; `None` for UDP.
    pub congestion: Option<String>,
    /// The counters and samples of the kernel.
    pub report: KernelEndpointReport,
    /// SHA-256 of the written or read data, in hexadecimal; `None` if the content is not verified.
    pub digest: Option<String>,
}

/// The content at an end of a flow, if it is verified.
#[derive(Debug)]
enum Contents {
    Sent(Content),
    Received(Digest),
}

impl Contents {
    fn pass(&mut self, bytes: &mut [u8]) {
        match self {
            Contents::Sent(content) => content.fill(bytes),
            Contents::Received(digest) => digest.update(bytes),
        }
    }

    fn digest(&self) -> String {
        match self {
            Contents::Sent(content) => content.digest().to_hex(),
            Contents::Received(digest) => digest.to_hex(),
        }
    }
}

/// Contents that an end's thread updates and that are read afterwards.
type SharedContents = Arc<Mutex<Contents>>;

fn contents(flow: &Flow, end: usize, seed: u64) -> Option<SharedContents> {
    let content = flow.workload.socket_traffic()?.content(seed, &flow.name)?;
    let contents = match end {
        0 => Contents::Sent(content),
        _ => Contents::Received(Digest::default()),
    };
    Some(Arc::new(Mutex::new(contents)))
}

fn locked(contents: &Mutex<Contents>) -> MutexGuard<'_, Contents> {
    contents.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the callback that receives the bytes of an end.
fn taking(contents: &Option<SharedContents>) -> Option<fullpipe_emulate::PayloadCallback> {
    let contents = Arc::clone(contents.as_ref()?);
    Some(Box::new(move |bytes: &mut [u8]| locked(&contents).pass(bytes)))
}

/// All running kernel endpoints.
#[derive(Debug)]
pub(crate) struct RunningKernelEndpoints {
    ends: BTreeMap<FlowEnd, (KernelEndpoint, Option<SharedContents>)>,
    signal: Arc<StartSignal>,
    /// Whether the run contains only limited flows of these ends.
    bounded: bool,
}

impl RunningKernelEndpoints {
    /// Opens the sockets of all ends in the namespaces of their hosts. When this function returns, receivers are
    /// listening. No data is sent before [`RunningKernelEndpoints::begin`].
    ///
    /// # Errors
    /// Contradictory settings, or settings that this kernel does not support, as a sentence.
    pub(crate) fn start(
        scenario: &Scenario,
        directory: &ConversationTable,
        home: &EmulatorNamespace,
        hosts: &BTreeMap<NodeId, &HostNamespace>,
    ) -> Result<Self, String> {
        let signal = Arc::<StartSignal>::default();
        let (mut ends, mut listeners) = (BTreeMap::new(), KernelListeners::default());
        let played: Vec<FlowEnd> =
            scenario.flows.iter().enumerate().flat_map(|(n, flow)| kernel_ends(n, flow)).collect();
        configure(scenario, &played, home, hosts)?;
        let shared = shared_sockets(scenario, &played, directory);
        for (number, end) in played.into_iter().rev() {
            let flow = &scenario.flows[number];
            let told = |reason: String| format!("flow {}: {reason}", flow.name);
            let node = [flow.from, flow.to][end];
            let host = hosts.get(&node).ok_or_else(|| told("its host has no network namespace".to_owned()))?;
            let role = role(scenario, number, end, directory, &shared).map_err(told)?;
            let over = over(scenario, number, flow, end).map_err(told)?;
            let contents = contents(flow, end, scenario.seed);
            let given = Arc::clone(&signal);
            let endpoint = KernelEndpoint::start(home, host, role, &over, taking(&contents), &mut listeners, given)
                .map_err(|error| {
                    told(format!(
                        "cannot start the kernel's socket for {}_by = \"kernel\": {error}",
                        ["from", "to"][end]
                    ))
                })?;
            ends.insert((number, end), (endpoint, contents));
        }
        let bounded =
            !ends.is_empty() && scenario.flows.iter().all(|flow| by_kernel(flow) && total_bytes(flow).is_some());
        Ok(RunningKernelEndpoints { ends, signal, bounded })
    }

    /// Starts the flows, with times relative to this clock.
    pub(crate) fn begin(&self, clock: WallClock) {
        self.signal.begin(clock);
    }

    /// Returns whether the whole run is complete.
    pub(crate) fn done(&self) -> bool {
        self.bounded && self.ends.values().all(|(endpoint, _)| endpoint.is_done())
    }

    /// Closes all ends and returns their results, in the order of the scenario.
    pub(crate) fn finish(self, scenario: &Scenario) -> BTreeMap<FlowEnd, KernelEndpointResult> {
        // Each end notices the stop within some milliseconds, and all of them at the same time.
        self.ends.values().for_each(|(endpoint, _)| endpoint.stop());
        let ends = self.ends.into_iter();
        ends.map(|((number, end), (endpoint, contents))| {
            let flow = &scenario.flows[number];
            let congestion = match &flow.transport {
                Transport::Tcp(tcp) => Some(linux_name(&tcp.congestion).to_owned()),
                Transport::Udp | Transport::Quic(_) | Transport::Masque(_) => None,
            };
            let report = endpoint.finish();
            let digest = contents.map(|contents| locked(&contents).digest());
            (
                (number, end),
                KernelEndpointResult { flow: flow.name.clone(), sender: end == 0, congestion, report, digest },
            )
        })
        .collect()
    }
}

impl KernelEndpointResult {
    /// Converts this result to the form that an outcome contains.
    pub(crate) fn played(&self) -> ExternalEndpointResult {
        let KernelEndpointReport { received_bytes, received_before_bytes, last_received, completed, .. } = self.report;
        ExternalEndpointResult {
            congestion: self.congestion.clone(),
            progress: Progress { received_bytes, last_received, completed },
            received_before_bytes,
            digest: self.digest.clone(),
        }
    }

    /// Returns the last known report.
    pub(crate) fn endpoint_report(&self) -> EndpointReport {
        EndpointReport {
            retransmitted_packets: self.report.retransmitted_segments,
            ..self.report.samples.last().map_or_else(|| EndpointReport::new(EndpointKind::Kernel), of_sample)
        }
    }

    /// Adds the samples of this end to the probes of its flow.
    pub(crate) fn add_samples(&self, end: FlowEnd, probes: &mut Sampler) {
        for sample in &self.report.samples {
            probes.add(end, sample.at, &of_sample(sample));
        }
    }
}

fn of_sample(sample: &TcpInfoSample) -> EndpointReport {
    EndpointReport {
        cwnd_bytes: Some(sample.cwnd_bytes),
        ssthresh_bytes: sample.ssthresh_bytes,
        in_flight_bytes: Some(sample.in_flight_bytes),
        smoothed_rtt: nonzero_duration(sample.smoothed_rtt),
        pacing_bps: nonzero_rate(sample.pacing_bps),
        delivery_rate_bps: nonzero_rate(sample.delivery_bps),
        ..EndpointReport::new(EndpointKind::Kernel)
    }
}

/// Returns the kernel endpoints of a flow.
fn kernel_ends(number: usize, flow: &Flow) -> impl Iterator<Item = FlowEnd> {
    let players = [flow.from_by, flow.to_by];
    (0..2).filter(move |end| players[*end] == EndpointBackend::Kernel).map(move |end| (number, end))
}

fn by_kernel(flow: &Flow) -> bool {
    [flow.from_by, flow.to_by].contains(&EndpointBackend::Kernel)
}

/// Returns the total payload of a flow in bytes, if it is limited.
fn total_bytes(flow: &Flow) -> Option<u64> {
    flow.workload.socket_traffic()?.total_bytes()
}

/// Returns the transport protocols and addresses at which several kernel receivers listen.
fn shared_sockets(
    scenario: &Scenario,
    played: &[FlowEnd],
    directory: &ConversationTable,
) -> BTreeSet<(&'static str, SocketAddr)> {
    let (mut seen, mut shared) = (BTreeSet::new(), BTreeSet::new());
    for &(number, _) in played.iter().filter(|(_, end)| *end == 1) {
        let flow = &scenario.flows[number];
        let Some(ends) = directory.endpoints(FlowId(2 * number as u32)) else { continue };
        let at = SocketAddr::new(directory.address(ends.destination.node, flow.ip), ends.destination.port);
        let socket = (flow.transport.protocol().name(), at);
        if !seen.insert(socket) {
            shared.insert(socket);
        }
    }
    shared
}

fn role(
    scenario: &Scenario,
    number: usize,
    end: usize,
    directory: &ConversationTable,
    shared: &BTreeSet<(&'static str, SocketAddr)>,
) -> Result<EndpointRole, String> {
    let flow = &scenario.flows[number];
    // The ports are those of the model, so that the network can identify the flow.
    let ends = directory.endpoints(FlowId(2 * number as u32)).ok_or("it has no ports")?;
    let socket = |of: Endpoint| SocketAddr::new(directory.address(of.node, flow.ip), of.port);
    if end == 1 {
        let at = socket(ends.destination);
        let is_shared = shared.contains(&(flow.transport.protocol().name(), at));
        return Ok(EndpointRole::Receiver {
            at,
            peer: is_shared.then(|| socket(ends.source)),
            until_bytes: total_bytes(flow),
            measured_from: Instant::ZERO.saturating_add(scenario.measurement.from),
        });
    }
    // The scenario's schema accepts no other workload for the kernel.
    let sent = match flow
        .workload
        .socket_traffic()
        .ok_or("the kernel does not support its workload; expected bulk or constant-rate")?
    {
        SocketTraffic::Bulk { size_bytes, write_bytes, .. } => {
            TrafficPattern::Bulk { size_bytes, write_bytes: usize::try_from(write_bytes).unwrap_or(usize::MAX) }
        }
        SocketTraffic::ConstantRate { payload_bytes, interval, count } => {
            TrafficPattern::Periodic { payload_bytes: payload_bytes as usize, interval, count }
        }
    };
    let start = Instant::ZERO.saturating_add(flow.start);
    Ok(EndpointRole::Sender { from: socket(ends.source), to: socket(ends.destination), sent, start })
}

fn over(scenario: &Scenario, number: usize, flow: &Flow, end: usize) -> Result<KernelTransport, String> {
    let Transport::Tcp(tcp) = &flow.transport else { return Ok(KernelTransport::Udp) };
    let congestion = linux_name(&tcp.congestion).to_owned();
    let probes = scenario.probes.iter().filter(|probe| probe.subject == ProbeSubject::Flow(number));
    let sample_every = probes.map(|probe| probe.interval).min().filter(|_| end == 0);
    Ok(KernelTransport::Tcp(KernelTcp { congestion, paced: tcp.connection.pacing, sample_every }))
}

/// Kernel settings of a host for all its connections, by file below `/proc/sys`.
type HostSettings = [(&'static str, String); 3];

/// Returns the settings that a flow requires.
fn settings(tcp: &Tcp) -> HostSettings {
    let connection = &tcp.connection;
    let ecn = match (connection.ecn, connection.ecn_feedback) {
        (EcnMode::Off, _) => 0,
        (EcnMode::Active, EcnFeedback::Accurate) => 3,
        (EcnMode::Active, _) => 1,
        (EcnMode::Passive, EcnFeedback::Accurate) => 5,
        (EcnMode::Passive, _) => 2,
    };
    // The kernel counts the memory of packets, which is at most twice their payload according to tcp(7).
    let buffer = |smallest: u64, first: u64, bytes: u64| {
        let most = bytes.saturating_mul(2).clamp(smallest, 1 << 30);
        format!("{smallest} {} {most}", first.min(most))
    };
    [
        ("net/ipv4/tcp_ecn", ecn.to_string()),
        ("net/ipv4/tcp_wmem", buffer(4096, 16_384, connection.send_buffer_bytes)),
        ("net/ipv4/tcp_rmem", buffer(4096, 131_072, connection.receive_buffer_bytes)),
    ]
}

/// Applies the settings of a host.
fn configure(
    scenario: &Scenario,
    played: &[FlowEnd],
    home: &EmulatorNamespace,
    hosts: &BTreeMap<NodeId, &HostNamespace>,
) -> Result<(), String> {
    let mut set: BTreeMap<NodeId, (usize, HostSettings)> = BTreeMap::new();
    for &(number, end) in played {
        let flow = &scenario.flows[number];
        let Transport::Tcp(tcp) = &flow.transport else { continue };
        let node = [flow.from, flow.to][end];
        let wanted = settings(tcp);
        let (first, others) = set.entry(node).or_insert_with(|| (number, wanted.clone()));
        if let Some(((key, one), (_, other))) = others.iter().zip(&wanted).find(|(one, other)| one != other) {
            let (host, first) = (&scenario.nodes[node.index()].name, &scenario.flows[*first].name);
            let name = &flow.name;
            return Err(format!(
                "flows {first} and {name} require different kernel settings at host {host}, which has one value for all \
                 connections: {key} = {one} and {other}; use the same ECN mode and buffers"
            ));
        }
    }
    for (node, (_, settings)) in &set {
        let Some(host) = hosts.get(node) else { continue };
        let name = &scenario.nodes[node.index()].name;
        home.configure_host(host, settings).map_err(|error| format!("host {name}: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::Duration;

    #[test]
    fn kernel_sample_without_a_value_becomes_a_report_without_it() {
        let sample = TcpInfoSample {
            at: Instant::ZERO,
            smoothed_rtt: Duration::from_millis(40),
            cwnd_bytes: 14_480,
            ssthresh_bytes: Some(7240),
            in_flight_bytes: 2896,
            pacing_bps: 10_000_000,
            delivery_bps: 9_000_000,
        };
        let expected = EndpointReport {
            cwnd_bytes: Some(14_480),
            ssthresh_bytes: Some(7240),
            in_flight_bytes: Some(2896),
            smoothed_rtt: Some(Duration::from_millis(40)),
            pacing_bps: Some(10_000_000),
            delivery_rate_bps: Some(9_000_000),
            ..EndpointReport::new(EndpointKind::Kernel)
        };
        assert_eq!(of_sample(&sample), expected);
        let first = TcpInfoSample {
            smoothed_rtt: Duration::ZERO,
            ssthresh_bytes: None,
            pacing_bps: 0,
            delivery_bps: 0,
            ..sample
        };
        let report = of_sample(&first);
        assert_eq!((report.smoothed_rtt, report.ssthresh_bytes), (None, None));
        assert_eq!((report.pacing_bps, report.delivery_rate_bps), (None, None));
    }

    #[test]
    fn last_report_of_a_kernel_endpoint_has_its_newest_sample_and_retransmissions() {
        let sample = |cwnd_bytes| TcpInfoSample {
            at: Instant::ZERO,
            smoothed_rtt: Duration::from_millis(1),
            cwnd_bytes,
            ssthresh_bytes: None,
            in_flight_bytes: 0,
            pacing_bps: 0,
            delivery_bps: 0,
        };
        let report = KernelEndpointReport {
            retransmitted_segments: Some(3),
            samples: vec![sample(1000), sample(2000)],
            ..KernelEndpointReport::default()
        };
        let end = KernelEndpointResult { flow: "f".to_owned(), sender: true, congestion: None, report, digest: None };
        let last = end.endpoint_report();
        assert_eq!(
            (last.kind, last.cwnd_bytes, last.retransmitted_packets),
            (EndpointKind::Kernel, Some(2000), Some(3))
        );
    }
}
