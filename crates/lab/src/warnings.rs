//! Warnings about a scenario before its run, and about the run. The archive declares their kinds.

use crate::processing::legs;
use crate::promise::link_queue_promise;
use crate::readable;
use crate::witness::RunObserver;
use fullpipe_archive::{Warning, WarningKind};
use fullpipe_network::{Limit, Network, NextHop};
use fullpipe_record::FlowCounters;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Flow, Transport};
use fullpipe_units::{Instant, LinkId, NodeId};
use fullpipe_workload::{Progress, SocketTraffic};
use std::collections::BTreeMap;

/// Maximum number of warnings of a kind; the last warning counts those omitted.
const MOST_OF_A_KIND: usize = 20;
/// Maximum number of full packets in a device queue below a discipline. More packets would hide the queue from the
/// discipline. Drivers with dynamic queue limits have a few packets there.
const MOST_PACKETS_BELOW: u64 = 10;
/// Bytes of the IP and TCP headers without options, and of the IP and UDP headers.
const TCP_HEADERS: u32 = 40;
const UDP_HEADERS: u32 = 28;

/// Returns the warnings that do not depend on the run.
pub(crate) fn before_run(scenario: &Scenario, network: &Network<RunObserver>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(capped(small_queues(scenario, network)));
    warnings.extend(capped(queues_below_disciplines(scenario)));
    warnings.extend(capped(late_flows(scenario)));
    warnings.extend(of_media(scenario, network));
    warnings
}

/// Returns the warnings of the access networks, before the run or after it.
pub(crate) fn of_media(scenario: &Scenario, network: &Network<RunObserver>) -> Vec<Warning> {
    let end = Instant::ZERO.saturating_add(scenario.duration);
    let mut by_kind: BTreeMap<String, Vec<Warning>> = BTreeMap::new();
    for medium in 0..scenario.access.len() {
        for warning in network.medium(medium as u16).warnings(end) {
            by_kind.entry(warning.name.clone()).or_default().push(warning);
        }
    }
    by_kind.into_values().flat_map(capped).collect()
}

/// Returns the first warnings of a list, and one that counts the others.
fn capped(mut warnings: Vec<Warning>) -> Vec<Warning> {
    let more = warnings.len().saturating_sub(MOST_OF_A_KIND);
    if more > 0 {
        warnings.truncate(MOST_OF_A_KIND);
        if let Some(last) = warnings.last_mut() {
            last.text = format!("{}; {more} more warnings of this kind are not listed", last.text);
        }
    }
    warnings
}

/// Returns the IP bytes of a flow's data packets, without options; `None` if the workload varies them.
fn packet_bytes(flow: &Flow) -> Option<u32> {
    match &flow.transport {
        Transport::Tcp(settings) => Some(settings.connection.mss_bytes + TCP_HEADERS),
        Transport::Quic(settings) => Some(u32::from(settings.connection.initial_mtu_bytes) + UDP_HEADERS),
        Transport::Masque(settings) => Some(u32::from(settings.initial_mtu_bytes) + UDP_HEADERS),
        Transport::Udp => match flow.workload.socket_traffic()? {
            SocketTraffic::ConstantRate { payload_bytes, .. } => Some(payload_bytes + UDP_HEADERS),
            SocketTraffic::Bulk { .. } => None,
        },
    }
}

/// Returns the links whose queue limit is smaller than one packet of a flow.
fn small_queues(scenario: &Scenario, network: &Network<RunObserver>) -> Vec<Warning> {
    let in_bytes = |packets: Option<u64>, bytes: Option<u64>| bytes.filter(|_| packets.is_none()).unwrap_or(u64::MAX);
    // Byte limits of the discipline, and of the complete queue (discipline and device).
    let limits: Vec<[u64; 2]> = scenario
        .links
        .iter()
        .map(|described| {
            let capacity = described.discipline.as_ref().map(|discipline| discipline.capacity());
            let of_discipline = capacity.map_or(u64::MAX, |capacity| in_bytes(capacity.packets, capacity.bytes));
            [
                of_discipline,
                link_queue_promise(described).map_or(u64::MAX, |queue| in_bytes(queue.packets, queue.bytes)),
            ]
        })
        .collect();
    let smallest = limits.iter().flatten().copied().min().unwrap_or(u64::MAX);
    // No packet is larger than this.
    if smallest > u64::from(u16::MAX) + 1000 {
        return Vec::new();
    }
    let mut routes: BTreeMap<(NodeId, NodeId), Vec<LinkId>> = BTreeMap::new();
    let mut warned: BTreeMap<LinkId, Warning> = BTreeMap::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        let Some(bytes) = packet_bytes(flow) else { continue };
        for (from, to) in legs(scenario, number) {
            let route = routes.entry((from, to)).or_insert_with(|| {
                let links = network.path(from, to).into_iter().filter_map(|hop| match hop {
                    NextHop::Link(link) => Some(link),
                    _ => None,
                });
                links.collect()
            });
            for link in route.iter().copied() {
                let Some(described) = scenario.links.get(link.index()) else { continue };
                let bytes = bytes.min(described.mtu_bytes) + described.framing_bytes;
                let [of_discipline, whole] = limits[link.index()];
                if of_discipline.min(whole) >= u64::from(bytes) {
                    continue;
                }
                warned.entry(link).or_insert_with(|| {
                    // A discipline enqueues each packet; the device queue enqueues only packets that must wait.
                    let every = of_discipline < u64::from(bytes);
                    let dropped =
                        if every { "every such packet" } else { "one that arrives while the link is sending" };
                    let text = format!(
                        "the queue has room for {}, less than one packet of flow {} ({} on the wire): {dropped} is \
                         dropped",
                        readable::bytes(of_discipline.min(whole)),
                        flow.name,
                        readable::bytes(u64::from(bytes))
                    );
                    Warning::new(WarningKind::SmallQueue, described.name.clone(), text)
                });
            }
        }
    }
    warned.into_values().collect()
}

/// Returns the links whose device queue has space for many packets below a discipline that drops or marks according to
/// its own queue length.
fn queues_below_disciplines(scenario: &Scenario) -> Vec<Warning> {
    let links = scenario.links.iter().filter_map(|link| {
        let discipline = link.discipline.as_ref()?;
        let largest = u64::from(link.mtu_bytes + link.framing_bytes);
        let packets = match Limit::from_queue_limit(link.queue, link.rate) {
            Limit::Packets(packets) => packets,
            Limit::Bytes(bytes) => bytes / largest.max(1),
            Limit::Unlimited => u64::MAX,
        };
        if discipline.is_drop_tail() || packets <= MOST_PACKETS_BELOW {
            return None;
        }
        let name = discipline.name();
        let room = if packets == u64::MAX { "no limit".to_owned() } else { format!("room for {packets} packets") };
        let text = format!(
            "the device's queue below {name} has {room}: {name} neither drops nor marks packets in it; to limit {name} \
             itself, set discipline.limit instead of queue"
        );
        Some(Warning::new(WarningKind::QueueBelowDiscipline, link.name.clone(), text))
    });
    links.collect()
}

/// Returns the flows that start after the end of the run.
fn late_flows(scenario: &Scenario) -> Vec<Warning> {
    let late = scenario.flows.iter().filter(|flow| flow.start >= scenario.duration);
    late.map(|flow| {
        let text = format!(
            "starts at {}, but the run ends after {}",
            readable::duration(flow.start),
            readable::duration(scenario.duration)
        );
        Warning::new(WarningKind::FlowNeverStarts, flow.name.clone(), text)
    })
    .collect()
}

/// Returns the flows that sent packets of which none arrived, based on their packets in both directions.
pub(crate) fn silent_flows<'a>(flows: impl Iterator<Item = (&'a str, FlowCounters)>) -> Vec<Warning> {
    let silent = flows.filter(|(_, counters)| counters.tx_packets > 0 && counters.rx_packets == 0);
    let warnings = silent.map(|(name, counters)| {
        let FlowCounters { tx_packets, lost_packets, .. } = counters;
        let text =
            format!("sent {}, of which the network dropped {lost_packets}; none was received", packets(tx_packets));
        Warning::new(WarningKind::FlowDeliversNothing, name, text)
    });
    capped(warnings.collect())
}

/// Returns bulk transfers that were incomplete at the end of the run, and whose receivers made no progress for more
/// than half of the transfer's time.
pub(crate) fn stalled_flows<'a>(flows: impl Iterator<Item = (&'a Flow, Progress)>, ended: Instant) -> Vec<Warning> {
    let warnings = flows.filter_map(|(flow, progress)| {
        let Some(SocketTraffic::Bulk { size_bytes, .. }) = flow.workload.socket_traffic() else { return None };
        let last = progress.last_received.filter(|_| progress.completed.is_none())?;
        let (silent, active) =
            (ended.saturating_since(last), ended.saturating_since(Instant::ZERO.saturating_add(flow.start)));
        if silent.as_nanos() <= active.as_nanos() / 2 {
            return None;
        }
        let of = size_bytes.map_or(String::new(), |size| format!(" of {}", readable::bytes(size)));
        let text = format!(
            "received {}{of}, and nothing after {}; the run ended at {}",
            readable::bytes(progress.received_bytes),
            readable::instant(last),
            readable::instant(ended)
        );
        Some(Warning::new(WarningKind::FlowStalls, flow.name.clone(), text))
    });
    capped(warnings.collect())
}

/// Returns the warning that no application received any data, with reasons from other warnings.
pub(crate) fn nothing_delivered(others: &[Warning], all: &FlowCounters) -> Warning {
    let reasons: Vec<String> = others.iter().take(3).map(Warning::to_string).collect();
    let why = match (reasons.is_empty(), all.tx_packets) {
        (false, _) => format!(": {}", reasons.join("; ")),
        (true, 0) => "; no packet was sent".to_owned(),
        (true, sent) => format!(
            "; {} sent, {} received, {} dropped by the network",
            packets(sent),
            all.rx_packets,
            all.lost_packets
        ),
    };
    Warning::new(WarningKind::NothingDelivered, "", format!("no application received any payload{why}"))
}

fn packets(number: u64) -> String {
    if number == 1 { "1 packet".to_owned() } else { format!("{number} packets") }
}
