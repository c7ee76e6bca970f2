//! The segment of the TCP-UDP study: 1 Gbit/s, 2 us, half duplex, MTU 1500, device queue of 100 packets.

use fullpipe_network::{
    ArpSpecification, EthernetContext, EthernetSpecification, FqCoDelSpecification, Limit, Network,
};
use fullpipe_record::Observer;
use fullpipe_units::{Duration, NodeId, Rate};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the study's segment; `fixed_ms` are fixed delays of requests instead of random ones.
pub fn study(hosts: &[NodeId], fixed_ms: &[u64]) -> EthernetSpecification {
    EthernetSpecification {
        name: "segment".into(),
        hosts: hosts.to_vec(),
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
        discipline: Some(Arc::new(FqCoDelSpecification::default())),
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

/// Returns the same segment without address resolution.
pub fn resolved(hosts: &[NodeId]) -> EthernetSpecification {
    let mut specification = study(hosts, &[]);
    specification.arp.enabled = false;
    specification
}

/// Adds a segment with random streams of this seed, named `host-N`.
pub fn add<O: Observer>(network: &mut Network<O>, specification: &EthernetSpecification, seed: u64) -> u32 {
    let names: Vec<String> = specification.hosts.iter().map(|node| format!("host-{node}")).collect();
    let hosts: Vec<&str> = names.iter().map(String::as_str).collect();
    network.add_ethernet(specification, EthernetContext { seed, hosts: &hosts, bands: &BTreeMap::new() })
}
