//! From the scenario's words to the models' settings.

use fullpipe_network::{ArpSpecification, EthernetSpecification, Limit, LossModel, QueueDiscipline};
use fullpipe_scenario::description;
use fullpipe_units::{NodeId, Rate, Stream};

/// A queue limit at a link of this rate.
pub(crate) fn limit(limit: description::QueueLimit, rate: Rate) -> Limit {
    match limit {
        description::QueueLimit::Packets(packets) => Limit::Packets(u64::from(packets)),
        description::QueueLimit::Bytes(bytes) => Limit::Bytes(bytes),
        description::QueueLimit::Time(time) => Limit::of_time(time, rate),
        description::QueueLimit::Unlimited => Limit::Unlimited,
    }
}

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
        device_queue: limit(described.device_queue, described.rate),
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

/// TCP settings.
pub(crate) fn tcp(tcp: &description::Tcp) -> fullpipe_tcp::Config {
    fullpipe_tcp::Config {
        mss_bytes: tcp.mss_bytes,
        initial_window_segments: tcp.initial_window_segments,
        send_buffer_bytes: tcp.send_buffer_bytes,
        receive_buffer_bytes: tcp.receive_buffer_bytes,
        sack: tcp.sack,
        timestamps: tcp.timestamps,
        timestamp_tick: tcp.timestamp_tick,
        rtt_from_timestamps: tcp.rtt_from_timestamps,
        window_scaling: tcp.window_scaling,
        mss_option: tcp.mss_option,
        delayed_ack_segments: tcp.delayed_ack_segments,
        delayed_ack_timeout: tcp.delayed_ack_timeout,
        nagle: tcp.nagle,
        min_rto: tcp.min_rto,
        initial_rto: tcp.initial_rto,
        max_rto: tcp.max_rto,
        loss_detection: match tcp.loss_detection {
            description::LossDetection::Rack => fullpipe_tcp::LossDetection::Rack,
            description::LossDetection::DuplicateAcks => fullpipe_tcp::LossDetection::DuplicateAcks,
        },
        tail_loss_probe: tcp.tail_loss_probe,
        pacing: tcp.pacing,
        pacing_quantum_segments: tcp.pacing_quantum_segments,
        idle_restart: tcp.idle_restart,
        max_syn_retransmissions: tcp.max_syn_retransmissions,
        max_retransmissions: tcp.max_retransmissions,
        time_wait: tcp.time_wait,
        first_segment_acknowledged_at_once: tcp.first_segment_acknowledged_at_once,
        fin_with_data_acknowledged_twice: tcp.fin_with_data_acknowledged_twice,
        keep_alive: None,
        user_timeout: None,
        fin_wait_2_timeout: None,
        initial_receive_window_bytes: None,
        fast_open: false,
    }
}
