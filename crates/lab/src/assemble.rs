//! Builds a world from a scenario.

use crate::capture::Captures;
use crate::error::RunError;
use crate::events::{self, EventWatcher};
use crate::options::{InjectedFault, Options};
use crate::plugins::Plugins;
use crate::prepared::{PassBuilder, PreparedRun};
use crate::probes::Sampler;
use crate::qlog::QlogRecorder;
use crate::starts;
use crate::witness::RunObserver;
use crate::world::{EndpointFactory, Flow, TcpFactory, TunnelFactory, World, ends};
use fullpipe_network::discipline::settings::DisciplineContext;
use fullpipe_network::{
    Endpoint, EthernetContext, Limit, LinkSpecification, MediumDirection, MediumSpecification, Network, NextHop, Tap,
};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{self, Transport};
use fullpipe_units::{FlowId, Instant, LinkId, NodeId, RandomStream};
use fullpipe_workload::{Application, FlowContext};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Maximum number of connections. Their numbers have 27 bits, because each connection has two timers and the calendar's
/// events have 28 bits for timers.
const MAX_FLOWS: u64 = 1 << 26;

pub(crate) fn assemble(shared: Arc<Scenario>, options: &Options, plugins: Plugins) -> Result<PreparedRun, RunError> {
    if !events::has_changes(&shared) {
        return build(shared, options, plugins, false);
    }
    if !plugins.is_empty() {
        return Err(RunError::PluginsWithEvents);
    }
    let without_times = Arc::new(shared.with_event_times(&[]));
    let mut first = build(without_times, &options.without_output(), plugins, false)?;
    let options = options.clone();
    first.passes = Some(PassBuilder(Box::new(move |times, has_output| {
        let options = if has_output { options.clone() } else { options.without_output() };
        // Passes with known event times start from the scenario as it is described.
        let scenario = Arc::new(shared.with_event_times(times));
        build(scenario, &options, Plugins::default(), false).expect("the first pass of the scenario could be built")
    })));
    Ok(first)
}

/// Builds a world for real time. All conversations have addresses and ports, and real hosts have no modeled processing
/// time.
pub(crate) fn assemble_addressed(
    shared: Arc<Scenario>,
    options: &Options,
    plugins: Plugins,
) -> Result<PreparedRun, RunError> {
    if !shared.events.is_empty() {
        return Err(RunError::EventsInRealTime);
    }
    build(shared, options, plugins, true)
}

fn build(shared: Arc<Scenario>, options: &Options, plugins: Plugins, real_time: bool) -> Result<PreparedRun, RunError> {
    if shared.phase_jitter > 0.0 {
        let moved = with_random_starts(&shared, real_time)?;
        return build(Arc::new(moved), options, plugins, real_time);
    }
    let shared = starts::drawn(shared);
    let scenario: &Scenario = &shared;
    if scenario.flows.len() as u64 > MAX_FLOWS {
        return Err(RunError::TooLarge { what: "flows", limit: MAX_FLOWS });
    }
    plugins.check(scenario)?;
    let (flows, applications) = flows(&shared, &plugins)?;
    let adjustable: Vec<LinkId> = plugins.adjustable_ids(scenario).collect();
    let mut network = Network::new(RunObserver::new(scenario, options, plugins.queued_links(scenario), &adjustable));
    network.set_chaining(options.fusion);
    let bands = flow_bands(scenario);
    let name_of = |node: NodeId| scenario.nodes[node.index()].name.as_str();
    for node in &scenario.nodes {
        let number = network.add_node(node.router);
        let own = node.ipv4().map(IpAddr::V4).into_iter().chain(node.ipv6().map(IpAddr::V6));
        own.for_each(|address| network.directory.set_address(number, address));
    }
    for link in &scenario.links {
        let limit = Limit::from_queue_limit(link.queue, link.rate);
        let plugged = plugins.queue_of(scenario, link, limit);
        // A discipline that replaces a drop-tail queue has no device queue below it.
        let alone = plugged.is_some() && link.discipline.is_none();
        let context = DisciplineContext { seed: scenario.seed, interface: &link.name, bands: &bands };
        let described = || link.discipline.as_ref().map(|settings| settings.build(&context));
        let (loss, impairments) = link.impairments.build(scenario.seed, &link.name);
        network.add_link(LinkSpecification {
            from: link.from,
            to: link.to,
            rate: link.rate,
            delay: link.delay,
            mtu_bytes: link.mtu_bytes,
            framing_bytes: link.framing_bytes,
            queue: if alone { Limit::Packets(0) } else { limit },
            discipline: plugged.or_else(described),
            loss,
            course: link.course.clone(),
            impairments,
        });
    }
    for link in &adjustable {
        assert!(network.make_adjustable(*link), "the plug-ins were checked");
    }
    for ethernet in &scenario.ethernets {
        let hosts: Vec<&str> = ethernet.hosts.iter().map(|host| name_of(*host)).collect();
        network.add_ethernet(ethernet, EthernetContext { seed: scenario.seed, hosts: &hosts, bands: &bands });
    }
    for access in &scenario.access {
        let refused = |reason| RunError::AccessNetwork { network: access.name().to_owned(), reason };
        network.add_medium(MediumSpecification {
            hub: access.hub(),
            stations: access.stations().to_vec(),
            mtu_bytes: access.mtu_bytes(),
            least_delays: MediumDirection::ALL.map(|way| access.bounds(way).least_delay),
            machine: access.build(scenario.seed).map_err(refused)?,
        });
    }
    let media = 0..scenario.access.len() as u16;
    for flow in 0..scenario.flows.len() {
        let (from, to) = ends(scenario, flow);
        network.declare_conversation(from, to);
    }
    declare_real(scenario, &mut network);
    if real_time {
        network.allow_undeclared();
    }
    let recorder = options.qlog.as_ref().map(|settings| Box::new(QlogRecorder::new(settings, &shared)));
    let captures = options.capture.as_ref().map(|capture| Box::new(Captures::new(capture, scenario)) as Box<dyn Tap>);
    network.tap = match (captures, recorder.as_ref().map(|recorder| recorder.tap())) {
        (Some(captures), Some(recorder)) => Some(Box::new((captures, recorder))),
        (captures, recorder) => captures.or(recorder),
    };
    for nat in &scenario.nats {
        network.add_nat(nat.clone(), RandomStream::new(scenario.seed, name_of(nat.router), "port allocation"));
    }
    // Headers are needed only by queues and media that read addresses.
    let classified = media.clone().any(|medium| network.medium(medium).reads_headers());
    if real_time || network.tap.is_some() || !scenario.nats.is_empty() || classified {
        introduce(scenario, &mut network);
    }
    let probes = Sampler::new(scenario, |segment| network.ethernet_link(segment as u32));
    // In real time, samples of real ends are added after the run, and all samples are then sorted.
    let probes = probes.with_file(options.samples.clone().filter(|_| !real_time));
    for link in probes.links() {
        network.observe_link(link);
    }
    let events = EventWatcher::new(scenario);
    for link in events.targets().filter_map(|target| target.link()) {
        network.observe_link(link);
    }
    if probes.watches_losses() || events.targets().any(|target| target.reads_losses()) {
        network.set_chaining(false);
    }
    // Logs and other observers need the events of a medium in time order. In real time, packets may belong to no
    // conversation that the scenario declares.
    if recorder.is_some() || !plugins.observers.is_empty() || real_time {
        for medium in media {
            network.observe_link(network.medium_link(medium, MediumDirection::Downlink));
        }
    }
    if options.inspection {
        network.set_chaining(false);
        (0..network.link_count()).for_each(|link| network.observe_link(LinkId(link as u32)));
    }
    let mut lie_from = 0;
    for fault in &options.faults {
        match fault {
            InjectedFault::Network(fault) => network.inject_fault(*fault),
            InjectedFault::PrematureAcknowledgement { from } => lie_from = (*from).max(1),
        }
    }
    network.finalize();
    if let Some((router, from, to)) = network.find_bypassed_nat() {
        let name = |node| name_of(node).to_owned();
        return Err(RunError::BypassedNat { router: name(router), from: name(from), to: name(to) });
    }
    crate::processing::set(scenario, &mut network, |host| real_time && scenario.is_real_host(host));
    let paths = (0..scenario.flows.len()).flat_map(|flow| {
        let (from, to) = ends(scenario, flow);
        [links_between(&network, from, to), links_between(&network, to, from)]
    });
    let paths = paths.collect::<Vec<_>>();
    let mut observers = plugins.observers;
    observers.extend(recorder.iter().map(|recorder| recorder.observer(paths.iter().map(Vec::as_slice))));
    for (direction, path) in paths.into_iter().enumerate() {
        network.observer.add_flow(scenario.flows[direction / 2].ip, path);
    }
    network.observer.watch(observers);
    let mut world = World::new(flows, applications, shared.clone(), lie_from);
    if recorder.is_some() {
        world.begin_watching();
    }
    world.prepare_tunnels(&network).map_err(|(flow, reason)| RunError::CongestionControl { flow, reason })?;
    Ok(PreparedRun { world, network, probes, events, scenario: shared, recorder, passes: None })
}

/// Returns the scenario with the start times that `phase_jitter` determines. Base round-trip times depend on the
/// routes, so this function builds a separate network. The random numbers of that network do not affect the run.
fn with_random_starts(scenario: &Scenario, real_time: bool) -> Result<Scenario, RunError> {
    let mut fixed = scenario.clone();
    fixed.phase_jitter = 0.0;
    let build = || build(Arc::new(fixed), &Options::default(), Plugins::default(), real_time);
    let (prepared, _) = fullpipe_units::random::count_draws(build);
    Ok(starts::moved(scenario, &prepared?.network))
}

/// Returns the bands of the flows that have a priority, in both directions.
fn flow_bands(scenario: &Scenario) -> BTreeMap<FlowId, usize> {
    let named = scenario.flows.iter().enumerate().filter_map(|(flow, described)| Some((flow, described.priority?)));
    named.flat_map(|(flow, band)| [0, 1].map(|end| (FlowId(2 * flow as u32 + end), band as usize))).collect()
}

/// Declares conversations of real hosts, which may send to any node.
fn declare_real(scenario: &Scenario, network: &mut Network<RunObserver>) {
    let nodes = || 0..scenario.nodes.len();
    // Routers receive packets and respond.
    for real in nodes().filter(|number| scenario.is_real_host(NodeId(*number as u32))) {
        for other in nodes().filter(|other| *other != real) {
            network.declare_conversation(NodeId(real as u32), NodeId(other as u32));
        }
    }
}

/// Assigns ports to the first conversation of each flow.
fn introduce(scenario: &Scenario, network: &mut Network<RunObserver>) {
    for (number, flow) in scenario.flows.iter().enumerate() {
        let acceptor = Endpoint { node: flow.to, port: flow.port };
        network.directory.add_with_next_port(FlowId(2 * number as u32), ends(scenario, number).0, acceptor);
    }
}

/// Returns the links of the route from one node to another.
fn links_between(network: &Network<RunObserver>, from: NodeId, to: NodeId) -> Vec<LinkId> {
    let mut at = from;
    let mut links = Vec::new();
    for hop in network.path(from, to) {
        match hop {
            NextHop::Link(link) => {
                links.push(link);
                at = network.link_destination(link);
            }
            NextHop::Station { segment, station } => {
                links.push(network.outgoing_link(segment, at));
                at = network.station_node(segment, station);
            }
            NextHop::Medium { medium, way, .. } => {
                links.push(network.medium_link(medium, way));
                at = network.hop_destination(hop).unwrap_or(at);
            }
            NextHop::Translation | NextHop::None => {}
        }
    }
    links
}

type FlowsAndApplications = (Vec<Flow>, Vec<Box<dyn Application>>);

fn flows(shared: &Arc<Scenario>, plugins: &Plugins) -> Result<FlowsAndApplications, RunError> {
    let scenario: &Scenario = shared;
    let mut flows = Vec::with_capacity(scenario.flows.len());
    let mut applications: Vec<Box<dyn Application>> = Vec::with_capacity(2 * scenario.flows.len());
    // Flows of a group and their connections share their settings.
    let mut last: Option<(*const description::Tcp, TcpFactory)> = None;
    let mut last_model = None;
    for (index, described) in scenario.flows.iter().enumerate() {
        let refused = |reason| RunError::CongestionControl { flow: described.name.clone(), reason };
        let (endpoints, receiver_closes) = match &described.transport {
            Transport::Udp => (EndpointFactory::None, false),
            Transport::Masque(settings) => {
                (EndpointFactory::Tunnel(Box::new(TunnelFactory::new(settings).map_err(refused)?)), false)
            }
            Transport::Quic(settings) => {
                let (control, scheduler) = (plugins.control_of(shared, index), plugins.scheduler_of(shared, index));
                (EndpointFactory::quic(settings, control, scheduler, &mut last_model).map_err(refused)?, true)
            }
            Transport::Tcp(settings) => {
                let maker = match &last {
                    Some((same, maker)) if *same == Arc::as_ptr(settings) => maker.clone(),
                    _ => TcpFactory::new(settings).map_err(refused)?,
                };
                last = Some((Arc::as_ptr(settings), maker.clone()));
                let maker = match plugins.control_of(shared, index) {
                    Some(control) => maker.with_control(control).map_err(refused)?,
                    None => maker,
                };
                (EndpointFactory::Tcp(maker), settings.receiver_closes)
            }
        };
        let start = Instant::ZERO.saturating_add(described.start);
        let pair = match plugins.workload_of(scenario, described) {
            Some(pair) => pair,
            None => described
                .workload
                .applications(&FlowContext {
                    seed: scenario.seed,
                    flow: &described.name,
                    start,
                    duration: scenario.duration.saturating_sub(described.start),
                    measured_from: Instant::ZERO.saturating_add(scenario.measurement.from),
                    over_stream: described.transport.is_stream(),
                    receiver_closes,
                })
                .map_err(|rule| RunError::Workload { flow: described.name.clone(), reason: rule.to_string() })?,
        };
        applications.extend(pair);
        let via = described.via.map(|tunnel| tunnel as u32);
        let (from, to, version) = (described.from, described.to, described.ip);
        flows.push(Flow { from, to, version, endpoints, via });
    }
    Ok((flows, applications))
}
