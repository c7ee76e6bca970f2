//! From the scenario's words to the models' settings.

use fullpipe_network::impairment::Impairments;
use fullpipe_network::{
    ArpSpecification, EthernetSpecification, Limit, LossModel, NatSpecification, PortAllocation, QueueDiscipline,
};
use fullpipe_scenario::description;
use fullpipe_units::{NodeId, Stream};

/// A loss model with the random stream of its link.
pub(crate) fn loss(loss: description::Loss, seed: u64, link: &str) -> LossModel {
    match loss {
        description::Loss::Bernoulli { probability } => {
            LossModel::Bernoulli { probability, stream: Stream::new(seed, link, "loss") }
        }
        description::Loss::Periodic { every, offset } => {
            LossModel::Periodic { every: every.max(1), next: offset.max(1) }
        }
    }
}

/// A shared segment, with a discipline for each station.
pub(crate) fn ethernet(
    described: &description::Ethernet,
    scenario: &description::Scenario,
    discipline: impl Fn(NodeId) -> Option<Box<dyn QueueDiscipline>>,
) -> EthernetSpecification {
    let hosts: Vec<_> = described.hosts.iter().map(|&host| (host, scenario.nodes[host.index()].name.clone())).collect();
    let arp = &described.arp;
    EthernetSpecification {
        disciplines: hosts.iter().filter_map(|(host, _)| discipline(*host)).collect(),
        hosts,
        seed: scenario.seed,
        rate: described.rate,
        delay: described.delay,
        half_duplex: described.half_duplex,
        mtu_bytes: described.mtu_bytes,
        framing_bytes: described.framing_bytes,
        min_frame_bytes: described.min_frame_bytes,
        interframe_gap_bits: described.interframe_gap_bits,
        slot: described.slot,
        backoff_ceiling: described.backoff_ceiling,
        max_retries: described.max_retries,
        device_queue: Limit::at(described.device_queue, described.rate),
        arp: ArpSpecification {
            enabled: arp.enabled,
            pending_packets: arp.pending_packets,
            request_jitter: arp.request_jitter,
            request_jitter_step: arp.request_jitter_step,
            fixed_delays: arp.fixed_delays.clone(),
            reply_timeout: arp.reply_timeout,
            max_requests: arp.max_requests,
        },
    }
}

/// What happens to a link's frames, with the seed and the name that its random streams are made from.
pub(crate) fn impairments(described: &Impairments, seed: u64, link: &str) -> Option<Box<Impairments>> {
    let nothing = Impairments::default();
    (*described != nothing).then(|| Box::new(Impairments { seed, link: link.to_string(), ..described.clone() }))
}

/// An address translator, with the random stream of its router.
pub(crate) fn nat(described: &description::Nat, scenario: &description::Scenario) -> NatSpecification {
    let name = &scenario.nodes[described.router.index()].name;
    NatSpecification {
        router: described.router,
        inside: described.inside.clone(),
        first_port: described.first_port,
        last_port: described.last_port,
        allocation: match described.allocation {
            description::PortAllocation::Preserve => PortAllocation::Preserve,
            description::PortAllocation::Sequential => PortAllocation::Sequential,
            description::PortAllocation::Random => {
                PortAllocation::Random(Stream::new(scenario.seed, name, "port allocation"))
            }
        },
        filter: described.filter,
        ports_per_host: described.ports_per_host,
        port_rest: described.port_rest,
        udp_timeout: described.udp_timeout,
        udp_inbound_refresh: described.udp_inbound_refresh,
        tcp_established_timeout: described.tcp_established_timeout,
        tcp_transitory_timeout: described.tcp_transitory_timeout,
    }
}
