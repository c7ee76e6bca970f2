//! The built-in observers of a run: the flow counters and the auditor.
//!
//! The auditor receives the properties that the scenario declares, not the parameters with which the network was built.

use crate::options::Options;
use crate::plugins::AnyObserver;
use crate::promise::{declare_adjustable, declared_links};
use fullpipe_audit::{
    AuditReport, Auditor, DeclaredFlow, FinalFlowState, FinalLinkState, FinalState, PacketAuditor, PublishedCounters,
};
use fullpipe_engine::prefetch;
use fullpipe_network::network::RemainingPackets;
use fullpipe_record::{
    DropReason, FlowMonitor, LinkMonitor, LinkSummary, MediumExchange, Observer, PacketView, Transmission,
};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::Discipline;
use fullpipe_units::{FlowId, Instant, LinkId};
use fullpipe_wire::IpVersion;
use std::fmt;

/// All observers of a run.
#[derive(Debug)]
pub(crate) struct RunObserver {
    pub(crate) monitor: FlowMonitor,
    auditor: Auditor,
    /// Further observers, if there are any.
    more: Option<Box<More>>,
    /// Packets with transport payload that arrived.
    pub(crate) data_packets: u64,
    flows: u32,
}

/// Observers that only few runs have.
#[derive(Default)]
struct More {
    /// The audit of every packet.
    auditor: Option<PacketAuditor>,
    /// Measures the links that the scenario selects.
    links: Option<LinkMonitor>,
    /// The plugged-in observers.
    plugged: Vec<Box<dyn AnyObserver>>,
}

impl fmt::Debug for More {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plugged = self.plugged.len();
        let mut more = formatter.debug_struct("More");
        more.field("auditor", &self.auditor).field("links", &self.links).field("plugged", &plugged).finish()
    }
}

impl More {
    fn tell(&mut self, event: impl Fn(&mut dyn Observer)) {
        if let Some(auditor) = &mut self.auditor {
            event(auditor);
        }
        if let Some(links) = &mut self.links {
            event(links);
        }
        for observer in &mut self.plugged {
            event(&mut **observer);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_sent(&mut self, now: Instant, packet: &PacketView) {
        self.tell(|observer| observer.on_sent(now, packet));
    }

    #[cold]
    #[inline(never)]
    fn tell_delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        self.tell(|observer| observer.on_delivered(now, packet, sent));
    }

    #[cold]
    #[inline(never)]
    fn tell_passed(&mut self, transmission: &Transmission) {
        self.tell(|observer| observer.on_passed(transmission));
    }

    #[cold]
    #[inline(never)]
    fn tell_transmitted(&mut self, transmission: &Transmission) {
        self.tell(|observer| observer.on_transmitted(transmission));
    }
}

/// These functions are separate from those of runs without these observers. They receive events of every packet as
/// copies. In a run without these observers, the original is therefore never stored in memory.
impl Observer for More {
    #[inline(always)]
    fn on_sent(&mut self, now: Instant, packet: &PacketView) {
        let packet = *packet;
        self.tell_sent(now, &packet);
    }

    #[inline(always)]
    fn on_delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        let packet = *packet;
        self.tell_delivered(now, &packet, sent);
    }

    #[cold]
    #[inline(never)]
    fn on_dropped(&mut self, now: Instant, packet: &PacketView, link: Option<LinkId>, reason: DropReason) {
        self.tell(|observer| observer.on_dropped(now, packet, link, reason));
    }

    #[cold]
    #[inline(never)]
    fn on_offered(&mut self, now: Instant, link: LinkId, wire_bytes: u32) {
        self.tell(|observer| observer.on_offered(now, link, wire_bytes));
    }

    #[cold]
    #[inline(never)]
    fn on_link_dropped(&mut self, now: Instant, link: LinkId, wire_bytes: u32, reason: DropReason) {
        self.tell(|observer| observer.on_link_dropped(now, link, wire_bytes, reason));
    }

    #[cold]
    #[inline(never)]
    fn on_marked(&mut self, now: Instant, packet: &PacketView, link: LinkId) {
        self.tell(|observer| observer.on_marked(now, packet, link));
    }

    #[cold]
    #[inline(never)]
    fn on_duplicated(&mut self, arrival: Instant, packet: &PacketView, link: LinkId) {
        self.tell(|observer| observer.on_duplicated(arrival, packet, link));
    }

    #[inline(always)]
    fn on_transmitted(&mut self, transmission: &Transmission) {
        let transmission = *transmission;
        self.tell_transmitted(&transmission);
    }

    #[inline(always)]
    fn on_passed(&mut self, transmission: &Transmission) {
        let transmission = *transmission;
        self.tell_passed(&transmission);
    }
}

/// Returns the links whose discipline may reorder packets.
fn reordering_links(scenario: &Scenario) -> impl Iterator<Item = LinkId> {
    let reorders =
        |discipline: &Option<Discipline>| discipline.as_ref().is_some_and(|discipline| discipline.reorders());
    let links = scenario.links.iter().map(move |link| reorders(&link.discipline));
    let media = scenario.ethernets.iter().flat_map(move |ethernet| {
        let paths = if ethernet.half_duplex { 1 } else { ethernet.hosts.len() };
        std::iter::repeat_n(reorders(&ethernet.discipline), paths)
    });
    links.chain(media).enumerate().filter(|(_, reorders)| *reorders).map(|(link, _)| LinkId(link as u32))
}

impl RunObserver {
    /// Creates the observers of a run. `unpromised` are further links whose queues have no declared order or limit.
    /// The rate and the delay of `adjustable` links change during the run.
    pub(crate) fn new(
        scenario: &Scenario,
        options: &Options,
        unpromised: impl Iterator<Item = LinkId>,
        adjustable: &[LinkId],
    ) -> Self {
        let declared_links = |scenario: &Scenario| {
            let mut declared = declared_links(scenario);
            adjustable.iter().for_each(|link| declare_adjustable(&mut declared[link.index()]));
            declared
        };
        let mut monitor = FlowMonitor::new();
        monitor.reserve_flows(2 * scenario.flows.len());
        let mut auditor = Auditor::new(declared_links(scenario));
        auditor.reserve_flows(2 * scenario.flows.len());
        let mut more = options.audit_packets.then(|| {
            let mut packets = PacketAuditor::new(declared_links(scenario));
            reordering_links(scenario).chain(unpromised).for_each(|link| packets.allow_reordering(link));
            Box::new(More { auditor: Some(packets), ..More::default() })
        });
        let measured = &scenario.measurement;
        monitor.measure_from(Instant::ZERO.saturating_add(measured.from));
        if !measured.links.is_empty() {
            let links = measured.links.iter().map(|link| LinkId(*link as u32));
            let monitor = LinkMonitor::new(links, Instant::ZERO.saturating_add(measured.from));
            more.get_or_insert_default().links = Some(monitor);
        }
        RunObserver { monitor, auditor, more, data_packets: 0, flows: 0 }
    }

    /// Records that the rate of an adjustable link changes.
    pub(crate) fn set_link_rate(&mut self, link: LinkId, at: Instant, rate_bps: u64) {
        self.auditor.set_link_rate(link, at, rate_bps);
    }

    /// Adds observers.
    pub(crate) fn watch(&mut self, observers: Vec<Box<dyn AnyObserver>>) {
        if !observers.is_empty() {
            self.more.get_or_insert_default().plugged = observers;
        }
    }

    /// Returns the added observers.
    pub(crate) fn watchers(&self) -> impl Iterator<Item = &dyn AnyObserver> {
        self.more.iter().flat_map(|more| more.plugged.iter().map(|observer| &**observer))
    }

    /// Returns the traffic of the links that the scenario measures, in a run that ended at `to`.
    pub(crate) fn link_summaries(&self, to: Instant) -> impl Iterator<Item = (LinkId, LinkSummary)> {
        self.more.iter().filter_map(|more| more.links.as_ref()).flat_map(move |links| links.summaries(to))
    }

    /// Adds the next direction of a conversation, with the links on its path.
    pub(crate) fn add_flow(&mut self, version: IpVersion, path: Vec<LinkId>) {
        let declared = DeclaredFlow { path, ipv6: version == IpVersion::V6 };
        self.auditor.add_flow(FlowId(self.flows), &declared);
        if let Some(packets) = self.more.as_mut().and_then(|more| more.auditor.as_mut()) {
            packets.add_flow(FlowId(self.flows), &declared);
        }
        self.flows += 1;
    }

    /// Adds conversations that the scenario does not declare.
    pub(crate) fn grow(&mut self, conversations: usize, version: IpVersion) {
        self.monitor.reserve_flows(2 * conversations);
        for _ in 0..2 {
            self.add_flow(version, Vec::new());
        }
    }

    /// Returns the number of transmitted frames.
    pub(crate) fn transmissions(&self) -> u64 {
        self.auditor.transmissions()
    }

    /// Returns the verdict of the auditor.
    pub(crate) fn judge(&mut self, scenario: &Scenario, remaining: &RemainingPackets) -> AuditReport {
        let end = End { scenario, monitor: &self.monitor, remaining };
        let verdict = self.auditor.finish(&end);
        match self.more.as_mut().and_then(|more| more.auditor.as_mut()) {
            Some(packets) => verdict.merge(packets.finish(&end)),
            None => verdict,
        }
    }
}

/// The state of the world at the end of the run.
struct End<'a> {
    scenario: &'a Scenario,
    monitor: &'a FlowMonitor,
    remaining: &'a RemainingPackets,
}

impl FinalState for End<'_> {
    fn link(&self, link: LinkId) -> FinalLinkState {
        let (queued_frames, queued_bytes) =
            self.remaining.queued_per_link.get(link.index()).copied().unwrap_or_default();
        FinalLinkState { queued_frames, queued_bytes }
    }

    fn flow(&self, flow: FlowId) -> FinalFlowState {
        let (in_flight_packets, in_flight_bytes) =
            self.remaining.packets_per_flow.get(&flow).copied().unwrap_or_default();
        let published = Some(PublishedCounters::from(&self.monitor.flow(flow)));
        FinalFlowState { in_flight_packets, in_flight_bytes, published }
    }

    fn flow_name(&self, flow: FlowId) -> String {
        let name = self.scenario.flows.get(flow.index() / 2).map_or("", |flow| flow.name.as_str());
        if flow.is_forward() { name.to_string() } else { format!("{name}.reverse") }
    }
}

impl Observer for RunObserver {
    #[inline(always)]
    fn prefetch_flow(&self, flow: FlowId) {
        if let Some(state) = self.monitor.state(flow) {
            prefetch::<2, _>(state);
        }
        if let Some(state) = self.auditor.state_of_flow(flow) {
            prefetch::<1, _>(state);
        }
    }

    #[inline(always)]
    fn prefetch_link(&self, link: LinkId) {
        if let Some(state) = self.auditor.state_of_link(link) {
            prefetch::<1, _>(state);
        }
    }

    #[inline(always)]
    fn on_sent(&mut self, now: Instant, packet: &PacketView) {
        self.monitor.on_sent(now, packet);
        self.auditor.on_sent(now, packet);
        if let Some(more) = &mut self.more {
            more.on_sent(now, packet);
        }
    }

    #[inline(always)]
    fn on_sent_burst(&mut self, now: Instant, first: &PacketView, packets: u32, step_bytes: u32) -> bool {
        // Other observers receive each packet before it reaches its first link.
        self.more.is_none()
            && self.monitor.on_sent_burst(now, first, packets, step_bytes)
            && self.auditor.on_sent_burst(now, first, packets, step_bytes)
    }

    #[inline(always)]
    fn on_delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        self.data_packets += u64::from(packet.payload_bytes > 0);
        self.monitor.on_delivered(now, packet, sent);
        self.auditor.on_delivered(now, packet, sent);
        if let Some(more) = &mut self.more {
            more.on_delivered(now, packet, sent);
        }
    }

    #[inline(always)]
    fn on_dropped(&mut self, now: Instant, packet: &PacketView, link: Option<LinkId>, reason: DropReason) {
        self.monitor.on_dropped(now, packet, link, reason);
        self.auditor.on_dropped(now, packet, link, reason);
        if let Some(more) = &mut self.more {
            more.on_dropped(now, packet, link, reason);
        }
    }

    #[inline(always)]
    fn on_offered(&mut self, now: Instant, link: LinkId, wire_bytes: u32) {
        self.auditor.on_offered(now, link, wire_bytes);
        if let Some(more) = &mut self.more {
            more.on_offered(now, link, wire_bytes);
        }
    }

    #[inline(always)]
    fn on_link_dropped(&mut self, now: Instant, link: LinkId, wire_bytes: u32, reason: DropReason) {
        self.auditor.on_link_dropped(now, link, wire_bytes, reason);
        if let Some(more) = &mut self.more {
            more.on_link_dropped(now, link, wire_bytes, reason);
        }
    }

    #[inline(always)]
    fn on_marked(&mut self, now: Instant, packet: &PacketView, link: LinkId) {
        if let Some(more) = &mut self.more {
            more.on_marked(now, packet, link);
        }
    }

    fn on_duplicated(&mut self, arrival: Instant, packet: &PacketView, link: LinkId) {
        self.monitor.on_duplicated(arrival, packet, link);
        self.auditor.on_duplicated(arrival, packet, link);
        if let Some(more) = &mut self.more {
            more.on_duplicated(arrival, packet, link);
        }
    }

    #[inline(always)]
    fn on_transmitted(&mut self, transmission: &Transmission) {
        self.auditor.on_transmitted(transmission);
        if let Some(more) = &mut self.more {
            more.on_transmitted(transmission);
        }
    }

    fn on_exchange(&mut self, exchange: &MediumExchange) {
        self.auditor.on_exchange(exchange);
        if let Some(more) = &mut self.more {
            more.tell(|observer| observer.on_exchange(exchange));
        }
    }

    #[inline(always)]
    fn on_passed(&mut self, transmission: &Transmission) {
        self.auditor.on_passed(transmission);
        if let Some(more) = &mut self.more {
            more.on_passed(transmission);
        }
    }
}
