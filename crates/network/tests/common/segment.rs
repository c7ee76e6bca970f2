//! The segment of the TCP-UDP study: 1 Gbit/s, 2 us, half duplex, MTU 1500, device queue of 100 packets.

use fullpipe_network::{
    ArpSpecification, EthernetSpecification, FairQueue, FairQueueSpecification, Limit, QueueDiscipline,
};
use fullpipe_units::{Duration, NodeId, Rate};

/// FQ-CoDel with the values of RFC 8290.
pub fn fair_queue() -> FairQueue {
    FairQueue::new(FairQueueSpecification::default())
}

/// The study's segment; `fixed_ms`: delays of requests instead of draws.
pub fn study(hosts: &[NodeId], seed: u64, fixed_ms: &[u64]) -> EthernetSpecification {
    EthernetSpecification {
        hosts: hosts.iter().map(|node| (*node, format!("host-{node}"))).collect(),
        seed,
        rate: Rate::from_megabits_per_second(1000),
        delay: Duration::from_micros(2),
        half_duplex: true,
        mtu_bytes: 1500,
        framing_bytes: 18,
        min_frame_bytes: 64,
        interframe_gap_bits: 96,
        slot: Duration::from_micros(1),
        backoff_ceiling: 10,
        max_retries: 1000,
        device_queue: Limit::Packets(100),
        disciplines: hosts.iter().map(|_| Box::new(fair_queue()) as Box<dyn QueueDiscipline>).collect(),
        arp: ArpSpecification {
            enabled: true,
            pending_packets: 3,
            request_jitter: Duration::from_millis(10),
            request_jitter_step: Duration::from_millis(1),
            fixed_delays: fixed_ms.iter().map(|ms| Duration::from_millis(*ms)).collect(),
            reply_timeout: Duration::from_secs(1),
            max_requests: 3,
        },
    }
}

/// The same without address resolution.
pub fn resolved(hosts: &[NodeId], seed: u64) -> EthernetSpecification {
    let mut specification = study(hosts, seed, &[]);
    specification.arp.enabled = false;
    specification
}
