//! Malformed and malicious frames on the simulated machine: nothing panics, each frame is counted, and other hosts'
//! traffic arrives.

use super::nat::street;
use super::world::{FAST, World};
use super::{MadeUp, Ran, arrival, frame, run_world, with};
use fullpipe_archive::RefusedFrames;
use fullpipe_emulate::Arrival;
use fullpipe_scenario::description::StallPolicy;
use proptest::prelude::*;

/// Real hosts 10.0.0.1 and 10.0.0.2 behind routers 10.0.0.4 and 10.0.0.5, and a model host 10.0.0.3 that exchanges TCP
/// and UDP with the first.
pub(super) fn world() -> World {
    let link = |mtu: &str| format!("{FAST}, queue = '10MB', mtu = '{mtu}'");
    World::new("200ms")
        .hosts(&["client", "server", "model"])
        .routers(&["near", "far"])
        .link("client", "near", &link("65535B"))
        .link("near", "far", &link("1400B"))
        .link("far", "server", &link("1500B"))
        .link("far", "model", &link("1500B"))
        .entry("flow", "name = 'to-model', from = 'client', to = 'model', workload = 'bulk'")
        .datagrams("client", "model", "")
        .entry("flow", "name = 'from-model', from = 'model', to = 'server', workload = 'bulk', start = '20ms'")
}

fn run(machine: MadeUp) -> Ran {
    run_world(&world(), machine, StallPolicy::CatchUp)
}

/// The one's complement sum (RFC 1071) over a header with checksum zero.
fn header_checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// An IPv4 header that is as valid as its fields permit, so that the payload is parsed.
fn ipv4(fields: Fields, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, fields.traffic_class];
    bytes.extend((20 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 7]);
    bytes.extend(fields.fragment.to_be_bytes());
    bytes.extend([fields.hop_limit, fields.protocol, 0, 0, 10, 0, 0, fields.from, 10, 0, 0, fields.to]);
    let checksum = header_checksum(&bytes);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The same for IPv6, with the addresses that nodes have by number.
fn ipv6(fields: Fields, payload: &[u8]) -> Vec<u8> {
    let address = |number: u8| -> [u8; 16] { [0xfd, 0x66, 0x75, 0x6c, 0x6c, 0x70, 0, 0, 0, 0, 0, 0, 0, 0, 0, number] };
    let mut bytes = vec![0x60 | fields.traffic_class >> 4, fields.traffic_class << 4, 0, 0];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend([fields.protocol, fields.hop_limit]);
    bytes.extend(address(fields.from));
    bytes.extend(address(fields.to));
    bytes.extend(payload);
    bytes
}

#[derive(Clone, Copy, Debug)]
struct Fields {
    from: u8,
    to: u8,
    protocol: u8,
    hop_limit: u8,
    traffic_class: u8,
    fragment: u16,
}

fn fields() -> impl Strategy<Value = Fields> {
    let protocol = prop_oneof![Just(6_u8), Just(17), Just(1), Just(58), Just(44), Just(0), Just(50), any::<u8>()];
    let hop_limit = prop_oneof![Just(64_u8), 0..4_u8, any::<u8>()];
    let fragment = prop_oneof![4 => Just(0_u16), 1 => Just(0x4000), 1 => Just(0x2000), 1 => any::<u16>()];
    let from = prop_oneof![9 => Just(1_u8), 1 => 0..8_u8];
    (from, 0..8_u8, protocol, hop_limit, any::<u8>(), fragment).prop_map(
        |(from, to, protocol, hop_limit, traffic_class, fragment)| Fields {
            from,
            to,
            protocol,
            hop_limit,
            traffic_class,
            fragment,
        },
    )
}

/// Usually a few bytes of headers, including ports of flows; sometimes many bytes.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let ports = prop_oneof![Just(vec![]), Just(vec![0x13, 0x88, 0x13, 0x89]), Just(vec![0x13, 0x89, 0x13, 0x88])];
    let flags = prop_oneof![
        any::<[u8; 16]>(),
        any::<[u8; 8]>().prop_map(|s| {
            // Sequence numbers, a header of 20 bytes, any flags.
            [s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], 0x50, s[0], 255, 255, 0, 0, 0, 0]
        })
    ];
    let more = prop_oneof![8 => prop::collection::vec(any::<u8>(), 0..64), 1 => prop::collection::vec(any::<u8>(), 1300..9000)];
    (ports, flags, more).prop_map(|(mut ports, flags, more)| {
        ports.extend(flags);
        ports.extend(more);
        ports
    })
}

/// Any frame: random bytes, or an almost valid frame with changed bytes and a truncated or extended end.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let noise = prop::collection::vec(any::<u8>(), 0..200);
    let kind = prop_oneof![Just([8_u8, 0]), Just([0x86, 0xdd]), Just([8, 6]), any::<[u8; 2]>()];
    let packet = (any::<bool>(), fields(), payload()).prop_map(|(old, fields, payload)| {
        if old { (ipv4(fields, &payload), [8, 0]) } else { (ipv6(fields, &payload), [0x86, 0xdd]) }
    });
    let body = prop_oneof![1 => (noise, kind), 6 => packet];
    let changes =
        prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)];
    let cut = prop_oneof![4 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)];
    let padding = prop_oneof![4 => Just(0_usize), 1 => 1..40_usize];
    (body, changes, cut, padding).prop_map(|((body, kind), changes, cut, padding)| {
        let mut frame = vec![2, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, kind[0], kind[1]];
        frame.extend(body);
        for (place, value) in changes {
            let place = place.index(frame.len());
            frame[place] = value;
        }
        if let Some(cut) = cut {
            frame.truncate(cut.index(frame.len() + 1));
        }
        frame.extend(vec![0; padding]);
        frame
    })
}

/// Sends a hundred valid datagrams from server to client, among frames of the client 100 us apart.
fn among_good_ones(frames: Vec<Vec<u8>>) -> Ran {
    let good = (0..100).map(|number| (1000 + number * 1000, arrival(1000 + number * 1000, 1, frame(2, 1, 4711))));
    let bad = frames.into_iter().enumerate().map(|(number, bytes)| {
        let stamp = 1500 + number as u64 * 100;
        (stamp, arrival(stamp, 0, bytes.into()))
    });
    let mut all: Vec<(u64, Arrival)> = good.chain(bad).collect();
    all.sort_by_key(|(readable, _)| *readable);
    run(with(all))
}

fn all_refused(refused: &RefusedFrames) -> u64 {
    let RefusedFrames { malformed, not_ip, unroutable, expired, fragments, unexpected, spoofed, unwritable, .. } =
        *refused;
    let too_many = refused.too_many_conversations;
    malformed + not_ip + unroutable + expired + fragments + too_many + unexpected + spoofed + unwritable
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_frames_do_not_panic_and_are_counted(frames in prop::collection::vec(any_frame(), 1..120)) {
        let count = frames.len() as u64;
        let ran = among_good_ones(frames);
        let good = ran.machine.sent.iter().filter(|(_, port, bytes)| *port == 0 && bytes[14..16] == [0x45, 0] && bytes[36..38] == 4711_u16.to_be_bytes());
        // The 100 valid datagrams, unless an invalid frame looks the same: those come from the client, the valid ones
        // go to it.
        prop_assert_eq!(good.count(), 100);
        prop_assert!(all_refused(&ran.refused) <= count, "{:?}", ran.refused);
        let verdict = ran.outcome.verdict();
        prop_assert!(verdict.passed(), "{}", verdict);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// The same behind a NAT, including its own address among the destinations (10.0.0.4), and fragments of all kinds.
    #[test]
    fn any_frames_behind_a_nat_do_not_panic_and_are_counted(frames in prop::collection::vec((any_frame(), 0..3_usize), 1..80)) {
        let count = frames.len() as u64;
        let frames = frames.into_iter().enumerate().map(|(number, (bytes, port))| {
            let stamp = 500 + number as u64 * 100;
            (stamp, arrival(stamp, port, bytes.into()))
        });
        let street = street("endpoint-independent");
        let ran = super::run_hosts(&street, 3, with(frames), StallPolicy::CatchUp);
        prop_assert!(all_refused(&ran.refused) <= count, "{:?}", ran.refused);
        let verdict = ran.outcome.verdict();
        prop_assert!(verdict.passed(), "{}", verdict);
    }
}

/// 65 536 ports of one host and 300 of the other exceed the limit by 300 conversations. Known conversations continue.
#[test]
fn new_conversations_above_the_limit_are_rejected() {
    let ports = |from, to, port: usize, count: u32| {
        (0..count).map(move |number| arrival(1000, port, frame(from, to, number as u16)))
    };
    let all = ports(1, 2, 0, 65_536).chain(ports(2, 1, 1, 300)).chain(ports(1, 2, 0, 10));
    let ran = run(with(all.map(|arrival| (1000, arrival))));
    // Frames of both ports have the same timestamp. Those of port 0 are first, because the sort is stable.
    assert_eq!(ran.refused, RefusedFrames { too_many_conversations: 300, ..RefusedFrames::default() });
}

/// A valid datagram to a port of a model host that no flow uses.
#[test]
fn datagram_without_a_flow_ends_at_the_model_host() {
    let ran = run(with([(1000, arrival(1000, 0, frame(1, 3, 4242)))]));
    assert!(ran.outcome.verdict().passed(), "{}", ran.outcome.verdict());
}
