//! NAT rebinding, for UDP over IPv4 and IPv6: a NAT changes its mappings during conversations (RFC 9000 section 9
//! describes the reaction of QUIC).
//!
//! The NAT is at the ends of a link, one of which is inside. It translates the source of an outbound datagram when the
//! datagram arrives at the far end. An inbound datagram needs a mapping that is valid when the datagram arrives. It
//! then gets the inside address and port; without a mapping it is dropped. Initially each endpoint is mapped to itself.
//! At each rebinding every endpoint gets a random unused port from 1 to 65 535. If addresses change too, the last byte
//! of the inside address is replaced by another value from 1 to 254. The previous mappings become invalid. An endpoint
//! that appears later keeps its port if that port is free. This is the behavior of quic-network-simulator's `rebind`.
//!
//! Mappings are functions of time, because links are computed ahead. A datagram that arrives at the far end in 15 ms
//! can use later mappings than a datagram that is processed after it. The NAT therefore stores all mappings that can
//! still be used.
//!
//! Datagrams of model endpoints have no bytes, so the mapping itself is not visible. The remaining effect is that the
//! NAT drops inbound datagrams that were sent to an old mapping. These are the datagrams sent before the first datagram
//! with the current mapping arrived outside.

use crate::network::Network;
use crate::packet::{PacketContent, PacketHandle};
use bytes::Bytes;
use fullpipe_record::Observer;
use fullpipe_schema::component::choices;
use fullpipe_schema::{Choice, Field, FieldKind, Table, Tree, Value, keys};
use fullpipe_units::{Duration, FlowId, Instant, NodeId, RandomStream};
use fullpipe_wire::{AddressTranslation, PacketSummary, protocol};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Maximum number of endpoints that one NAT maps; datagrams of further endpoints are dropped. The limit is half of the
/// ports, so that a free port is found quickly.
const MAX_ENDPOINTS: usize = 32_768;

/// The key of a link that enables rebinding.
pub const KEY: Field =
    Field::optional("rebinding", FieldKind::Table(&TABLE), "none", "A NAT at the link that changes its mappings.");

static TABLE: Table = Table {
    name: "rebinding",
    text: "A NAT that changes its mappings during conversations (NAT rebinding, for UDP over IPv4 and IPv6). It translates \
           datagrams that arrive at either end of the link. Initially each inside endpoint is mapped to itself. At a \
           rebinding each endpoint is mapped to another port, and datagrams to old ports are dropped.",
    fields: &[keys! {
        /// Time of the first rebinding.
        "first": FieldKind::DURATION, required;
        /// Time from one rebinding to the next.
        "every": FieldKind::INTERVAL, optional "never";
        /// Whether the last byte of the outside address changes too, from 1 to 254.
        "address": FieldKind::Boolean, default "false";
        /// Inside end of the link.
        "inside": FieldKind::Choice(&choices(&INSIDE)), default "from";
    }],
    ..Table::EMPTY
};

/// The rebinding directions of the link's forward and reverse directions, by the inside end.
static INSIDE: [(Choice, [RebindingDirection; 2]); 2] = [
    (
        Choice::new("from", "the end at `from` of the link."),
        [RebindingDirection::Outbound, RebindingDirection::Inbound],
    ),
    (Choice::new("to", "the end at `to` of the link."), [RebindingDirection::Inbound, RebindingDirection::Outbound]),
];

/// Whether the datagrams of a direction of a link are outbound or inbound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebindingDirection {
    /// From inside to outside.
    Outbound,
    /// From outside to inside.
    Inbound,
}

/// The settings of a rebinding NAT for one direction of a link. Both directions have the same number and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebinding {
    /// Number of the NAT in the network.
    pub number: u32,
    /// Whether this direction is outbound or inbound.
    pub side: RebindingDirection,
    /// Time of the first rebinding, since the start of the run.
    pub first: Duration,
    /// Interval between further rebindings; 0 if there are none.
    pub every: Duration,
    /// Whether the outside address also changes.
    pub address: bool,
}

impl Rebinding {
    /// Reads the table of NAT `number`. Returns the settings for the forward and the reverse direction of its link.
    pub fn read(tree: &Tree, number: u32) -> [Self; 2] {
        tree.choice_value("inside", &INSIDE).map(|side| Rebinding {
            number,
            side,
            first: tree.duration("first"),
            every: tree.get("every").map_or(Duration::ZERO, Value::duration),
            address: tree.boolean("address"),
        })
    }

    /// Returns the number of rebindings up to an instant.
    fn round(&self, at: Instant) -> u64 {
        let at = at.saturating_since(Instant::ZERO);
        if at < self.first {
            return 0;
        }
        1 + (at - self.first).as_nanos().checked_div(self.every.as_nanos()).unwrap_or(0)
    }
}

/// The mappings of one round, that is, between two rebindings.
#[derive(Clone, Debug, Default)]
struct Mappings {
    outside: BTreeMap<SocketAddr, SocketAddr>,
    inside: BTreeMap<SocketAddr, SocketAddr>,
    /// The outside address of each inside address.
    addresses: BTreeMap<IpAddr, IpAddr>,
}

impl Mappings {
    fn insert(&mut self, inside: SocketAddr, outside: SocketAddr) {
        self.outside.insert(inside, outside);
        self.inside.insert(outside, inside);
    }

    fn address(&self, inside: IpAddr) -> IpAddr {
        self.addresses.get(&inside).copied().unwrap_or(inside)
    }

    /// Returns a random unused port at this address.
    fn free_port(&self, address: IpAddr, stream: &mut RandomStream) -> u16 {
        loop {
            let port = 1 + stream.uniform_below(65_535) as u16;
            if !self.inside.contains_key(&SocketAddr::new(address, port)) {
                return port;
            }
        }
    }
}

/// The state of a rebinding NAT.
#[derive(Debug)]
pub(crate) struct Rebinder {
    rebinding: Rebinding,
    stream: RandomStream,
    /// The mappings by round, for all rounds that can still be used.
    rounds: BTreeMap<u64, Mappings>,
    /// Inside hosts by each of their current and former outside addresses.
    hosts: BTreeMap<IpAddr, NodeId>,
    /// When the first datagram of each conversation of the model arrived outside in each round.
    model: BTreeMap<(usize, u64), Instant>,
}

impl Rebinder {
    pub(crate) fn new(rebinding: Rebinding, stream: RandomStream) -> Self {
        Rebinder {
            rebinding,
            stream,
            rounds: BTreeMap::from([(0, Mappings::default())]),
            hosts: BTreeMap::new(),
            model: BTreeMap::new(),
        }
    }

    /// Creates the mappings of a round from the latest earlier ones, if they do not exist. Removes mappings that are no
    /// longer needed at `now`.
    fn advance(&mut self, now: Instant, round: u64) {
        if !self.rounds.contains_key(&round) {
            // Skipped rounds had no datagrams. They would only have drawn more random numbers, without a visible
            // effect.
            let before = self.rounds.range(..round).next_back().map(|(_, mappings)| mappings.clone());
            let mappings = self.rebound(&before.unwrap_or_default());
            self.rounds.insert(round, mappings);
        }
        // Later rounds are created from the latest round up to now.
        let present = self.rebinding.round(now);
        let needed = self.rounds.range(..=present).next_back().map_or(present, |(round, _)| *round);
        self.rounds = self.rounds.split_off(&needed);
    }

    fn rebound(&mut self, old: &Mappings) -> Mappings {
        let mut new = Mappings::default();
        for inside in old.outside.keys() {
            let own = inside.ip();
            if self.rebinding.address && !new.addresses.contains_key(&own) {
                let address = self.another_address(own, old.address(own));
                new.addresses.insert(own, address);
                if let Some(host) = self.hosts.get(&old.address(own)).copied() {
                    self.hosts.insert(address, host);
                }
            }
            let address = new.address(own);
            let port = new.free_port(address, &mut self.stream);
            new.insert(*inside, SocketAddr::new(address, port));
        }
        new
    }

    /// Returns the inside address with a random last byte from 1 to 254; the result equals neither the inside nor the
    /// previous outside address.
    fn another_address(&mut self, own: IpAddr, old: IpAddr) -> IpAddr {
        loop {
            let last = 1 + self.stream.uniform_below(254) as u8;
            let address = with_last_byte(own, last);
            if address != own && address != old {
                return address;
            }
        }
    }

    /// Returns the outside source of a datagram that arrives outside; `None` if there are too many endpoints.
    fn outward(&mut self, now: Instant, arrival: Instant, inside: SocketAddr, host: NodeId) -> Option<SocketAddr> {
        let round = self.rebinding.round(arrival);
        self.advance(now, round);
        let Rebinder { rounds, stream, hosts, .. } = self;
        let mappings = rounds.get_mut(&round)?;
        if let Some(outside) = mappings.outside.get(&inside) {
            return Some(*outside);
        }
        if mappings.outside.len() >= MAX_ENDPOINTS {
            return None;
        }
        let address = mappings.address(inside.ip());
        let own = SocketAddr::new(address, inside.port());
        let outside = if mappings.inside.contains_key(&own) {
            SocketAddr::new(address, mappings.free_port(address, stream))
        } else {
            own
        };
        mappings.insert(inside, outside);
        hosts.insert(address, host);
        Some(outside)
    }

    /// Returns the inside destination of a datagram that arrives inside; `None` if its mapping is not valid.
    fn inward(&mut self, now: Instant, arrival: Instant, outside: SocketAddr) -> Option<SocketAddr> {
        let round = self.rebinding.round(arrival);
        self.advance(now, round);
        self.rounds.get(&round)?.inside.get(&outside).copied()
    }

    /// Returns whether the NAT forwards a datagram of the model.
    fn model(&mut self, now: Instant, arrival: Instant, sent: Instant, flow: FlowId, side: RebindingDirection) -> bool {
        let round = self.rebinding.round(arrival);
        let key = (flow.index() / 2, round);
        match side {
            RebindingDirection::Outbound => {
                if !self.model.contains_key(&key) {
                    let present = self.rebinding.round(now);
                    self.model.retain(|(_, of), _| *of >= present);
                }
                let first = self.model.entry(key).or_insert(arrival);
                *first = (*first).min(arrival);
                true
            }
            RebindingDirection::Inbound => self.model.get(&key).is_some_and(|first| *first <= sent),
        }
    }
}

fn with_last_byte(address: IpAddr, last: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            IpAddr::from([a, b, c, last])
        }
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets[15] = last;
            IpAddr::from(octets)
        }
    }
}

impl<O: Observer> Network<O> {
    /// Returns the host inside a rebinding NAT that has, or had, this outside address; `None` if there is none.
    pub fn host_behind_rebinding(&self, address: IpAddr) -> Option<NodeId> {
        self.rebinders.values().find_map(|rebinder| rebinder.hosts.get(&address).copied())
    }

    /// Processes a datagram that arrives at an end of a link with a rebinding NAT; returns false if it is dropped.
    #[cold]
    pub(crate) fn rebind(&mut self, rebinding: Rebinding, handle: PacketHandle, arrival: Instant) -> bool {
        let now = self.now;
        let packet = *self.arena.get(handle);
        let host = self.directory.endpoints(packet.flow).map(|ends| ends.source.node);
        let Some(rebinder) = self.rebinders.get_mut(&rebinding.number) else { return true };
        if let PacketContent::Udp { .. } = packet.content {
            return rebinder.model(now, arrival, packet.sent, packet.flow, rebinding.side);
        }
        if let PacketContent::Quic(header) = &packet.content {
            let passes = rebinder.model(now, arrival, packet.sent, packet.flow, rebinding.side);
            if rebinding.side == RebindingDirection::Outbound {
                // The receiver only detects that the mapping has changed.
                let path = header.path.wrapping_add(rebinding.round(arrival) as u8);
                self.arena.get_mut(handle).quic_header().path = path;
            }
            return passes;
        }
        // Only the whole packet contains the ports.
        let whole = match packet.content {
            PacketContent::Fragment { whole, .. } => self.arena.get(whole),
            _ => &packet,
        };
        let PacketContent::RawIp { protocol: protocol::UDP, .. } = whole.content else { return true };
        let (bytes, whole) = (self.arena.payload(packet.payload), self.arena.payload(whole.payload));
        let (Some(bytes), Some(whole)) = (bytes, whole) else { return true };
        let Some(translation) = rebinder.translation(rebinding.side, now, arrival, whole, host) else {
            return false;
        };
        let mut changed = bytes.to_vec();
        if translation.apply(&mut changed).is_err() {
            return false;
        }
        self.arena.replace_payload(handle, Bytes::from(changed));
        true
    }

    /// Returns whether the network has a rebinding NAT.
    pub fn has_rebinding(&self) -> bool {
        !self.rebinders.is_empty()
    }
}

impl Rebinder {
    /// Returns the translation of a real program's datagram; `None` if it is dropped. A datagram that entered as a
    /// fragment has no ports and is dropped.
    fn translation(
        &mut self,
        side: RebindingDirection,
        now: Instant,
        arrival: Instant,
        bytes: &[u8],
        host: Option<NodeId>,
    ) -> Option<AddressTranslation> {
        let summary = PacketSummary::parse(bytes).ok()?;
        if summary.fragment.is_some() {
            return None;
        }
        Some(match side {
            RebindingDirection::Outbound => AddressTranslation {
                source: Some(self.outward(now, arrival, summary.source, host?)?),
                destination: None,
            },
            RebindingDirection::Inbound => {
                AddressTranslation { source: None, destination: Some(self.inward(now, arrival, summary.destination)?) }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn rebinder(first_ms: u64, every_ms: u64, address: bool) -> Rebinder {
        let rebinding = Rebinding {
            number: 0,
            side: RebindingDirection::Outbound,
            first: Duration::from_millis(first_ms),
            every: Duration::from_millis(every_ms),
            address,
        };
        Rebinder::new(rebinding, RandomStream::new(1, "link", "rebinding"))
    }

    fn socket(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    const HOST: NodeId = NodeId(3);

    #[test]
    fn rounds_match_a_calculation_by_hand() {
        let rounds = |rebinder: Rebinder| [0, 999, 1000, 1499, 1500, 2000].map(|ms| rebinder.rebinding.round(at(ms)));
        assert_eq!(rounds(rebinder(1000, 500, false)), [0, 0, 1, 1, 2, 3]);
        assert_eq!(rounds(rebinder(1000, 0, false)), [0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn a_rebinding_assigns_new_ports_and_drops_the_old_mappings() {
        let mut rebinder = rebinder(1000, 500, false);
        let inside = [socket("10.0.0.1:4000"), socket("10.0.0.1:4001"), socket("[fd00::1]:4000")];
        for end in inside {
            assert_eq!(
                rebinder.outward(at(10), at(25), end, HOST),
                Some(end),
                "at first each endpoint is mapped to itself"
            );
            assert_eq!(rebinder.inward(at(30), at(45), end), Some(end));
        }
        assert_eq!(rebinder.inward(at(30), at(45), socket("10.0.0.1:5000")), None, "no endpoint has that port");
        // Booked before 1 s, but arrives after it.
        let rebound = inside.map(|end| rebinder.outward(at(990), at(1005), end, HOST).unwrap());
        for (old, new) in inside.iter().zip(&rebound) {
            assert_eq!(old.ip(), new.ip());
            assert_ne!(old.port(), new.port());
            // A datagram that arrives inside just before uses the old mappings, although it is booked later.
            assert_eq!(rebinder.inward(at(991), at(999), *old), Some(*old));
            assert_eq!(rebinder.inward(at(991), at(1000), *old), None);
            assert_eq!(rebinder.inward(at(991), at(1000), *new), Some(*old));
        }
        assert_eq!(rebound.iter().collect::<BTreeSet<_>>().len(), 3);
        // The mappings stay the same until the next rebinding.
        assert_eq!(rebinder.outward(at(1400), at(1499), inside[0], HOST), Some(rebound[0]));
        assert_ne!(rebinder.outward(at(1500), at(1515), inside[0], HOST), Some(rebound[0]));
        // An endpoint that appears after a rebinding keeps its port.
        let late = socket("10.0.0.1:4002");
        assert_eq!(rebinder.outward(at(1500), at(1515), late, HOST), Some(late));
        assert_eq!(rebinder.rounds.len(), 1, "mappings that can no longer be used are removed");
    }

    #[test]
    fn addresses_change_only_in_their_last_byte() {
        let mut rebinder = rebinder(0, 1, true);
        let (v4, v6) = (socket("193.167.0.100:4000"), socket("[fd00:cafe:cafe::100]:4000"));
        let mut seen = BTreeSet::new();
        let mut before = v4.ip();
        // The first datagram creates the mapping; each later round changes it.
        rebinder.outward(at(0), at(0), v4, HOST);
        rebinder.outward(at(0), at(0), v6, HOST);
        for ms in 1..3000 {
            let outside = rebinder.outward(at(ms), at(ms), v4, HOST).unwrap();
            let IpAddr::V4(address) = outside.ip() else { panic!("{outside}") };
            let [193, 167, 0, last] = address.octets() else { panic!("{address}") };
            assert!((1..=254).contains(&last) && last != 100 && outside.ip() != before);
            assert_eq!(rebinder.hosts.get(&outside.ip()), Some(&HOST));
            before = outside.ip();
            seen.insert(last);
            let IpAddr::V6(address) = rebinder.outward(at(ms), at(ms), v6, HOST).unwrap().ip() else { panic!() };
            assert_eq!(address.octets()[..14], [0xfd, 0, 0xca, 0xfe, 0xca, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
        // 253 values, 2999 draws: one value is missing with probability 253 (252/253)^2999 = 0.0018.
        assert_eq!(seen.len(), 253);
    }

    #[test]
    fn ports_are_drawn_uniformly() {
        let mut rebinder = rebinder(0, 1, false);
        let inside = socket("10.0.0.1:4000");
        rebinder.outward(at(0), at(0), inside, HOST);
        let ports = (1..=20_000).map(|ms| rebinder.outward(at(ms), at(ms), inside, HOST).unwrap().port());
        let mean = ports.map(f64::from).sum::<f64>() / 2e4;
        // Uniform from 1 to 65 535: mean 32 768, standard deviation 18 918; five standard errors of the mean of 20 000
        // are 669.
        assert!((mean - 32_768.0).abs() < 669.0, "{mean}");
    }

    #[test]
    fn endpoints_beyond_the_limit_are_rejected() {
        let mut rebinder = rebinder(1, 0, false);
        let ends = (0..=MAX_ENDPOINTS as u16).map(|port| SocketAddr::new([10, 0, 0, 1].into(), 1000 + port));
        let refused = ends.filter(|end| rebinder.outward(at(0), at(0), *end, HOST).is_none()).count();
        assert_eq!(refused, 1);
    }

    #[test]
    fn in_the_model_replies_to_an_old_mapping_are_dropped() {
        use RebindingDirection::{Inbound, Outbound};
        let mut rebinder = rebinder(1000, 0, false);
        let mut pass =
            |now, arrival, sent, flow, side| rebinder.model(at(now), at(arrival), at(sent), FlowId(flow), side);
        assert!(!pass(5, 20, 5, 1, Inbound), "no datagram was sent from inside yet");
        assert!(pass(0, 15, 0, 0, Outbound));
        assert!(pass(20, 35, 15, 1, Inbound));
        assert!(pass(980, 999, 980, 1, Inbound));
        assert!(!pass(985, 1000, 985, 1, Inbound), "its mapping became invalid in flight");
        assert!(pass(990, 1005, 990, 0, Outbound), "the first datagram with the new mapping passes");
        assert!(!pass(1004, 1019, 1004, 1, Inbound));
        assert!(pass(1005, 1020, 1005, 1, Inbound));
        assert!(!pass(1005, 1020, 1005, 3, Inbound), "another conversation has no datagram with the new mapping yet");
    }
}
