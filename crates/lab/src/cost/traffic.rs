//! The traffic of each flow of a scenario: its demand, limited by its fair share of the slowest link on its path.
//!
//! Rates are means over the time in which a flow is active. Datagrams are sent regardless of the network. All other
//! traffic shares the remaining capacity by max-min fairness (Bertsekas and Gallager, Data Networks, 1992, section
//! 6.5.2). The rates of all flows rise together until a link is full. Flows on this link keep their rate, and the rates
//! of the others continue to rise. The rate of a flow stays lower if its data, buffers or slow start limit it. Losses,
//! acknowledgments and retransmissions are not part of the shares.

use super::paths::Paths;
use crate::world::ends;
use fullpipe_network::Limit;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{self, Transport};
use fullpipe_units::math;

/// Number of rounds in which links are filled. Each remaining flow then receives the share of its slowest link.
const ROUNDS: usize = 16;
/// Minimum fraction of a link that datagrams leave to other traffic.
const LEAST_SHARE: f64 = 0.01;
/// Bytes of a QUIC packet in addition to stream data: header, tag, and frame header.
const QUIC_OVERHEAD_BYTES: f64 = 32.0;
/// Bytes of IP and UDP headers.
const DATAGRAM_BYTES: f64 = 28.0;
/// Bytes of IP and TCP headers.
const SEGMENT_BYTES: f64 = 40.0;
/// Bytes of the timestamp option.
const TIMESTAMP_BYTES: f64 = 12.0;

/// The packet sizes and counts of a transport.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketModel {
    /// Payload of a full packet in bytes; infinite if the application determines the size of each datagram.
    pub(super) payload_bytes: f64,
    /// Header bytes, including the IP header.
    pub(super) header_bytes: f64,
    /// Data packets per acknowledgment; infinite if there are none.
    pub(super) per_ack: f64,
    /// Packets that open and close a connection, in both directions together.
    pub(super) opening: f64,
    pub(super) closing: f64,
    initial_window: f64,
    /// Maximum number of outstanding bytes.
    window_bytes: f64,
}

impl PacketModel {
    fn of(transport: &Transport) -> PacketModel {
        match transport {
            Transport::Udp => PacketModel {
                payload_bytes: f64::INFINITY,
                header_bytes: DATAGRAM_BYTES,
                per_ack: f64::INFINITY,
                opening: 0.0,
                closing: 0.0,
                initial_window: 0.0,
                window_bytes: f64::INFINITY,
            },
            Transport::Tcp(tcp) => {
                let config = &tcp.connection;
                let tls = if tcp.tls.is_some() { 6.0 } else { 0.0 };
                PacketModel {
                    payload_bytes: f64::from(config.mss_bytes),
                    header_bytes: SEGMENT_BYTES + if config.timestamps { TIMESTAMP_BYTES } else { 0.0 },
                    per_ack: f64::from(config.delayed_ack_segments.max(1)),
                    opening: 3.0 + tls,
                    closing: 4.0,
                    initial_window: f64::from(config.initial_window_segments),
                    window_bytes: config.send_buffer_bytes.min(config.receive_buffer_bytes) as f64,
                }
            }
            Transport::Quic(quic) => PacketModel::of_quic(&quic.connection),
            Transport::Masque(_) => PacketModel::of_quic(&description::Quic::default().connection),
        }
    }

    fn of_quic(config: &fullpipe_quic::Config) -> PacketModel {
        let datagram = config.largest_mtu_bytes.unwrap_or_default().max(config.initial_mtu_bytes);
        let buffers = config.send_buffer_bytes.min(config.receive_buffer_bytes);
        PacketModel {
            payload_bytes: f64::from(datagram) - QUIC_OVERHEAD_BYTES,
            header_bytes: QUIC_OVERHEAD_BYTES + DATAGRAM_BYTES,
            per_ack: config.ack_every_packets.max(1) as f64,
            opening: 10.0,
            closing: 2.0,
            initial_window: config.initial_window_packets as f64,
            window_bytes: buffers.min(config.connection_receive_buffer_bytes) as f64,
        }
    }

    /// Returns the size of a packet with this payload at the IP layer, in bytes.
    pub(super) fn ip_bytes(&self, payload_bytes: f64) -> f64 {
        payload_bytes.min(self.payload_bytes) + self.header_bytes
    }
}

/// The traffic that one end of a flow sends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Direction {
    /// Payload bytes.
    pub(super) bytes: f64,
    /// Packets with payload.
    pub(super) packets: f64,
    /// Routes of the direction's packets and of their acknowledgments: the route of the flow itself, and that of its
    /// tunnel.
    pub(super) paths: [u32; 2],
    pub(super) back: [u32; 2],
}

/// The traffic of a flow in a run.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    pub(super) flow: usize,
    pub(super) packets: PacketModel,
    /// Number of the tunnel's flow.
    pub(super) via: Option<usize>,
    /// Duration of the flow's activity in seconds.
    pub(super) time_s: f64,
    /// Propagation delay of the flow's path in both directions, in seconds.
    pub(super) round_trip_s: f64,
    pub(super) directions: [Direction; 2],
    pub(super) connections: f64,
    pub(super) lifetime_s: Option<f64>,
    /// Number of timers of applications.
    pub(super) timers: f64,
    /// Outstanding packets of each end, for transports with acknowledgments.
    pub(super) outstanding: [f64; 2],
    /// Maximum number of additional packets that may wait in an unlimited queue.
    pub(super) unlimited: [f64; 2],
    /// Whether the flow ends with the run.
    pub(super) is_unlimited: bool,
    pub(super) bound: Option<&'static str>,
}

/// A direction that shares links with others.
struct Share {
    /// Index of the flow, and number of the sending end.
    of: (usize, usize),
    /// Bits at the IP layer per byte of payload.
    bits_per_byte: f64,
    time_s: f64,
    /// Maximum number of bits that the direction sends.
    most_bits: f64,
    bits: Option<f64>,
}

/// Estimates the traffic of all flows.
pub(super) fn of(scenario: &Scenario, paths: &Paths) -> Vec<Traffic> {
    let mut all: Vec<Traffic> = (0..scenario.flows.len()).map(|flow| demanded(scenario, paths, flow)).collect();
    let run_s = scenario.duration.as_secs_f64().max(1e-9);
    let mut left: Vec<f64> = paths.transmitters.iter().map(|transmitter| transmitter.bits_per_s * run_s).collect();
    let whole = left.clone();
    let mut shares = Vec::new();
    for traffic in &all {
        for (end, direction) in traffic.directions.iter().enumerate().filter(|(_, direction)| direction.bytes > 0.0) {
            let payload_bytes =
                if direction.packets > 0.0 { direction.bytes / direction.packets } else { f64::INFINITY };
            let payload_bytes = payload_bytes.min(traffic.packets.payload_bytes).max(1.0);
            let bits_per_byte = 8.0 * traffic.packets.ip_bytes(payload_bytes) / payload_bytes;
            if traffic.packets.per_ack.is_infinite() {
                for hop in hops(paths, direction) {
                    left[hop] -= direction.bytes * bits_per_byte;
                }
            } else {
                let most_bits = direction.bytes * bits_per_byte;
                shares.push(Share {
                    of: (traffic.flow, end),
                    bits_per_byte,
                    time_s: traffic.time_s,
                    most_bits,
                    bits: None,
                });
            }
        }
    }
    for (left, whole) in left.iter_mut().zip(&whole) {
        *left = left.max(LEAST_SHARE * whole);
    }
    fill(&mut shares, &mut left, paths, &all);
    for share in &shares {
        let (flow, end) = share.of;
        let direction = &mut all[flow].directions[end];
        let bytes = share.bits.unwrap_or_default() / share.bits_per_byte;
        if bytes < direction.bytes {
            let full = bytes / all[flow].packets.payload_bytes;
            let direction = &mut all[flow].directions[end];
            let part = if direction.bytes.is_finite() { bytes / direction.bytes } else { 0.0 };
            (direction.packets, direction.bytes) = (full.max(direction.packets * part), bytes);
        }
    }
    fill_queues(&shares, &whole, paths, &mut all);
    all
}

/// Returns the transmitters on the path of a direction's packets.
pub(super) fn hops<'a>(paths: &'a Paths, direction: &Direction) -> impl Iterator<Item = usize> + use<'a> {
    let of_path = |path: u32| paths.hops(path).iter().map(|hop| *hop as usize);
    direction.paths.into_iter().filter(|path| *path != NO_PATH).flat_map(of_path)
}

/// The route number that denotes no route, because the flow has no tunnel.
pub(super) const NO_PATH: u32 = u32::MAX;

/// Returns the traffic of a flow without competition, limited by its buffers and slow start.
fn demanded(scenario: &Scenario, paths: &Paths, flow: usize) -> Traffic {
    let described = &scenario.flows[flow];
    let packets = PacketModel::of(&described.transport);
    let (from, to) = ends(scenario, flow);
    let through = described.via.map(|tunnel| ends(scenario, tunnel));
    let tunnel = |back: bool| match through {
        Some((client, proxy)) if back => paths.between(proxy, client),
        Some((client, proxy)) => paths.between(client, proxy),
        None => NO_PATH,
    };
    let (forward, back) = ([paths.between(from, to), tunnel(false)], [paths.between(to, from), tunnel(true)]);
    let delay_s = |legs: [u32; 2]| -> f64 {
        let paths = legs.into_iter().filter_map(|leg| paths.paths.get(leg as usize));
        paths.map(|path| path.delay_s).sum()
    };
    let round_trip_s = (delay_s(forward) + delay_s(back)).max(1e-6);
    let start = described.start.saturating_add(described.start_jitter / 2);
    let time_s = scenario.duration.saturating_sub(start).as_secs_f64();
    let is_stream = packets.per_ack.is_finite();
    // The handshake precedes the data, and data sent in the last round trip does not arrive.
    let data_s = if is_stream { (time_s - 2.0 * round_trip_s).max(0.0) } else { time_s };
    let mut demand = described.workload.demand(data_s);
    let mut is_unlimited = described.workload.is_unlimited();
    if let Some(exchanges) = demand.exchanges {
        let least_s = exchanges.pause_s + exchanges.round_trips * round_trip_s;
        let possible = time_s / least_s + 1.0;
        let count = exchanges.most.min(possible);
        is_unlimited |= possible < exchanges.most;
        demand = demand.repeat(count);
    }
    if is_stream {
        // A single connection begins with slow start, which doubles the data sent per round trip.
        let rounds = (time_s / round_trip_s).min(60.0);
        let begun = packets.initial_window * packets.payload_bytes * (math::pow(2.0, rounds) - 1.0).max(1.0);
        let by_window = packets.window_bytes * (time_s / round_trip_s).max(1.0);
        let most = demand.connections.max(1.0) * begun.min(by_window);
        demand.bytes = demand.bytes.map(|bytes| bytes.min(most));
    }
    let direction = |end: usize, paths, back| {
        let bytes = demand.bytes[end];
        let packets = match is_stream {
            true => (bytes / packets.payload_bytes).max(demand.messages[end]),
            false => demand.messages[end],
        };
        Direction { bytes, packets: if time_s > 0.0 { packets } else { 0.0 }, paths, back }
    };
    let is_lossy = |legs: [u32; 2], test: fn(&super::paths::Path) -> bool| {
        legs.into_iter().filter_map(|leg| paths.paths.get(leg as usize)).any(test)
    };
    let limited_by_path = is_stream && demand.bytes.iter().any(|bytes| *bytes > 0.0) && is_unlimited;
    let bound = demand.bound.or_else(|| {
        if limited_by_path && (is_lossy(forward, |path| path.is_impaired) || is_lossy(back, |path| path.is_impaired)) {
            return Some("flows over links that lose or delay at random, counted without losses");
        }
        let over_radio = is_lossy(forward, |path| path.is_radio) || is_lossy(back, |path| path.is_radio);
        (limited_by_path && over_radio).then_some("flows over a radio channel, counted with its highest rate")
    });
    Traffic {
        flow,
        packets,
        via: described.via,
        time_s,
        round_trip_s,
        directions: [direction(0, forward, back), direction(1, back, forward)],
        connections: if time_s > 0.0 { demand.connections } else { 0.0 },
        lifetime_s: demand.lifetime_s,
        timers: demand.timers,
        outstanding: [0.0; 2],
        unlimited: [0.0; 2],
        is_unlimited,
        bound,
    }
}

/// Estimates the outstanding data of each share from the most loaded link on its path. At its peak, that link holds a
/// bandwidth-delay product and a full queue. The flows of the link share both in proportion to their traffic.
fn fill_queues(shares: &[Share], whole: &[f64], paths: &Paths, all: &mut [Traffic]) {
    let mut sums = vec![0.0; whole.len()];
    for share in shares {
        let on_way = hops(paths, &all[share.of.0].directions[share.of.1]);
        on_way.for_each(|hop| sums[hop] += share.bits.unwrap_or_default());
    }
    for share in shares {
        let (flow, end) = share.of;
        let (traffic, bits) = (&all[flow], share.bits.unwrap_or_default());
        let load = |hop: &usize| sums[*hop] / whole[*hop];
        let busiest = hops(paths, &traffic.directions[end]).max_by(|a, b| load(a).total_cmp(&load(b)));
        let Some(hop) = busiest.filter(|hop| sums[*hop] > 0.0) else { continue };
        let transmitter = &paths.transmitters[hop];
        let (part, packet_bytes) = (bits / sums[hop], traffic.packets.ip_bytes(f64::INFINITY));
        let pipe = transmitter.bits_per_s * traffic.round_trip_s / 8.0 / packet_bytes;
        let queue = match transmitter.queue {
            Limit::Bytes(limit) => limit as f64 / packet_bytes,
            Limit::Packets(limit) => limit as f64,
            Limit::Unlimited => 0.0,
        };
        let window = traffic.connections.max(1.0) * traffic.packets.window_bytes / traffic.packets.payload_bytes;
        let most = window.min(traffic.directions[end].packets);
        let outstanding = (part * (pipe + queue)).min(most);
        // Only the windows limit the number of packets in an unlimited queue.
        let unlimited = if matches!(transmitter.queue, Limit::Unlimited) { most - outstanding } else { 0.0 };
        all[flow].outstanding[end] = outstanding;
        all[flow].unlimited[end] = unlimited;
    }
}

/// Assigns bits to each share, and subtracts them from the transmitters' capacity.
fn fill(shares: &mut [Share], left: &mut [f64], paths: &Paths, all: &[Traffic]) {
    let on_way = |share: &Share| hops(paths, &all[share.of.0].directions[share.of.1]);
    let mut weights = vec![0.0; left.len()];
    for round in 0..=ROUNDS {
        weights.fill(0.0);
        for share in shares.iter().filter(|share| share.bits.is_none()) {
            on_way(share).for_each(|hop| weights[hop] += share.time_s);
        }
        let level = |hop: usize| if weights[hop] > 0.0 { left[hop].max(0.0) / weights[hop] } else { f64::INFINITY };
        let lowest = (0..left.len()).map(level).fold(f64::INFINITY, f64::min);
        let is_last = round == ROUNDS;
        let mut taken = Vec::new();
        let below = |share: &Share| share.most_bits <= lowest * share.time_s;
        let has_below = shares.iter().any(|share| share.bits.is_none() && below(share));
        for (number, share) in shares.iter().enumerate().filter(|(_, share)| share.bits.is_none()) {
            let own = on_way(share).map(level).fold(f64::INFINITY, f64::min);
            let bits = match below(share) {
                true => share.most_bits,
                // Shares that the links do not limit are first, because their unused capacity raises the level of the
                // others.
                false if has_below && !is_last => continue,
                false if is_last || own <= lowest * 1.001 => share.most_bits.min(own * share.time_s),
                false => continue,
            };
            taken.push((number, bits));
        }
        if taken.is_empty() {
            break;
        }
        for (number, bits) in taken {
            on_way(&shares[number]).for_each(|hop| left[hop] -= bits);
            shares[number].bits = Some(bits);
        }
    }
}
