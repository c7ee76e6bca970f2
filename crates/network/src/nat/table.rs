//! The mappings of one protocol: inside endpoints, their outside ports, and their sessions with outside endpoints.
//!
//! No timer removes a mapping. An expired mapping has no effect. It is removed when its endpoint, its port or its
//! host's limit is checked, or when no port is free.

use super::session::{Session, Side};
use super::{NatFilter, NatSpecification, PortAllocation};
use crate::address::Endpoint;
use fullpipe_units::{Instant, NodeId, RandomStream};
use fullpipe_wire::tcp::flags;
use std::collections::BTreeMap;

/// The reason why a NAT drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NatDropReason {
    /// No port is free, or the host has reached its limit.
    NoFreePort,
    /// The packet is a TCP segment from inside that neither opens a connection nor has a mapping.
    NoSession,
    /// The packet is from outside, and there is no mapping or the filter rejects the packet.
    Unsolicited,
}

/// The mapping of an inside endpoint to an outside port.
#[derive(Debug)]
struct Mapping {
    port: u16,
    /// When the last of its sessions expires.
    expires: Instant,
    /// Sessions by outside endpoint, possibly including expired ones.
    sessions: BTreeMap<Endpoint, Session>,
}

/// The state of a port that is not free.
#[derive(Clone, Copy, Debug)]
enum Port {
    Mapped(Endpoint),
    /// The port's mapping has expired, and the port is free from this instant on.
    Resting(Instant),
}

/// The mapping table.
#[derive(Debug, Default)]
pub(super) struct MappingTable {
    mappings: BTreeMap<Endpoint, Mapping>,
    ports: BTreeMap<u16, Port>,
    /// Number of ports of each inside host.
    held: BTreeMap<NodeId, u32>,
    /// The port that was assigned last.
    last: Option<u16>,
    /// Before this instant no mapping expires and no port becomes free.
    nothing_ends_before: Instant,
    /// Number of mappings created so far.
    pub(super) made: u64,
}

impl Mapping {
    /// Returns the session with `remote`, if it has not expired.
    fn session(&mut self, now: Instant, remote: Endpoint) -> Option<&mut Session> {
        self.sessions.get_mut(&remote).filter(|session| session.expires > now)
    }

    fn begin(&mut self, now: Instant, remote: Endpoint, session: Session) {
        // Removing expired sessions only at these sizes keeps the amortized cost low.
        if self.sessions.len().is_power_of_two() {
            self.sessions.retain(|_, session| session.expires > now);
        }
        self.expires = self.expires.max(session.expires);
        self.sessions.insert(remote, session);
    }

    /// Refreshes or creates the session of a packet that passes.
    fn pass(&mut self, now: Instant, side: Side, remote: Endpoint, flags: Option<u16>, rules: &NatSpecification) {
        if let Some(session) = self.session(now, remote) {
            let before = session.expires;
            session.passes(now, side, flags, rules);
            let after = session.expires;
            if after >= self.expires {
                self.expires = after;
            } else if before == self.expires {
                self.expires = self.sessions.values().map(|session| session.expires).max().unwrap_or(after);
            }
            return;
        }
        match flags {
            None if side == Side::Inside || rules.udp_inbound_refresh => {
                self.begin(now, remote, Session::udp(now, rules));
            }
            Some(bits) if bits & flags::SYN != 0 => self.begin(now, remote, Session::tcp(now, side, rules)),
            // A TCP segment without SYN passes if there is a mapping, but creates no session (RFC 6146 section
            // 3.5.2.2).
            _ => {}
        }
    }

    fn lets_in(&self, now: Instant, remote: Endpoint, filter: NatFilter) -> bool {
        let alive = |session: &Session| session.expires > now;
        match filter {
            NatFilter::EndpointIndependent => true,
            NatFilter::AddressDependent => {
                let of_node = Endpoint { port: 0, ..remote }..=Endpoint { port: u16::MAX, ..remote };
                self.sessions.range(of_node).any(|(_, session)| alive(session))
            }
            NatFilter::AddressAndPortDependent => self.sessions.get(&remote).is_some_and(alive),
        }
    }
}

impl MappingTable {
    /// Returns the outside port of an inside endpoint. The port of an expired mapping is returned until it is replaced,
    /// because packets that passed earlier still carry this port.
    pub(super) fn port(&self, inside: Endpoint) -> Option<u16> {
        self.mappings.get(&inside).map(|mapping| mapping.port)
    }

    /// Returns the inside endpoint to which this outside port is mapped now.
    pub(super) fn inside(&self, port: u16, now: Instant) -> Option<Endpoint> {
        match self.ports.get(&port)? {
            Port::Mapped(inside) => self.mappings.get(inside).filter(|mapping| mapping.expires > now).map(|_| *inside),
            Port::Resting(_) => None,
        }
    }

    /// Returns the number of mappings that have not expired.
    pub(super) fn alive(&self, now: Instant) -> u64 {
        self.mappings.values().filter(|mapping| mapping.expires > now).count() as u64
    }

    /// Processes a packet from inside; `flags` are those of a TCP segment.
    pub(super) fn outbound(
        &mut self,
        now: Instant,
        inside: Endpoint,
        remote: Endpoint,
        flags: Option<u16>,
        rules: &NatSpecification,
        random: &mut RandomStream,
    ) -> Result<u16, NatDropReason> {
        self.end_if_over(now, inside, rules);
        let opens = flags.is_none_or(|flags| flags & flags::SYN != 0);
        if !self.mappings.contains_key(&inside) {
            if !opens {
                return Err(NatDropReason::NoSession);
            }
            self.map(now, inside, rules, random)?;
        }
        let mapping = self.mappings.get_mut(&inside).ok_or(NatDropReason::NoFreePort)?;
        mapping.pass(now, Side::Inside, remote, flags, rules);
        self.nothing_ends_before = self.nothing_ends_before.min(mapping.expires);
        Ok(mapping.port)
    }

    /// Checks an ICMP error about packets between an inside endpoint and `remote`. The error passes under the same
    /// conditions as these packets and refreshes no mapping (RFC 5508 REQ-6).
    pub(super) fn error(
        &self,
        now: Instant,
        side: Side,
        inside: Endpoint,
        remote: Endpoint,
        filter: NatFilter,
    ) -> Result<(), NatDropReason> {
        let mapping = self.mappings.get(&inside).filter(|mapping| mapping.expires > now);
        let passes = mapping.is_some_and(|mapping| side == Side::Inside || mapping.lets_in(now, remote, filter));
        if passes { Ok(()) } else { Err(NatDropReason::Unsolicited) }
    }

    /// Processes a packet from outside to an inside endpoint.
    pub(super) fn inbound(
        &mut self,
        now: Instant,
        inside: Endpoint,
        remote: Endpoint,
        flags: Option<u16>,
        rules: &NatSpecification,
    ) -> Result<(), NatDropReason> {
        self.end_if_over(now, inside, rules);
        let mapping = self.mappings.get_mut(&inside).ok_or(NatDropReason::Unsolicited)?;
        if !mapping.lets_in(now, remote, rules.filter) {
            return Err(NatDropReason::Unsolicited);
        }
        mapping.pass(now, Side::Outside, remote, flags, rules);
        self.nothing_ends_before = self.nothing_ends_before.min(mapping.expires);
        Ok(())
    }

    fn map(
        &mut self,
        now: Instant,
        inside: Endpoint,
        rules: &NatSpecification,
        random: &mut RandomStream,
    ) -> Result<(), NatDropReason> {
        if let Some(limit) = rules.ports_per_host
            && self.held_by(inside.node) >= limit
        {
            self.end_all_of(now, inside.node, rules);
            if self.held_by(inside.node) >= limit {
                return Err(NatDropReason::NoFreePort);
            }
        }
        let port = self.free_port(now, inside.port, rules, random).ok_or(NatDropReason::NoFreePort)?;
        self.last = Some(port);
        self.ports.insert(port, Port::Mapped(inside));
        self.mappings.insert(inside, Mapping { port, expires: now, sessions: BTreeMap::new() });
        *self.held.entry(inside.node).or_default() += 1;
        self.made += 1;
        Ok(())
    }

    fn held_by(&self, host: NodeId) -> u32 {
        self.held.get(&host).copied().unwrap_or(0)
    }

    /// Returns a free port according to the allocation rule.
    fn free_port(
        &mut self,
        now: Instant,
        inside_port: u16,
        rules: &NatSpecification,
        random: &mut RandomStream,
    ) -> Option<u16> {
        let (first, last) = (rules.first_port, rules.last_port);
        let size = u64::from(last.checked_sub(first)?) + 1;
        let full = self.ports.len() as u64 >= size;
        if full && now < self.nothing_ends_before {
            return None;
        }
        if full {
            self.sweep(now, rules);
        }
        let pool = first..=last;
        let begin = match rules.allocation {
            PortAllocation::Preserve if pool.contains(&inside_port) => inside_port,
            PortAllocation::Preserve => first,
            PortAllocation::Sequential => self.last.map_or(first, |port| if port >= last { first } else { port + 1 }),
            PortAllocation::Random => first + random.uniform_below(size) as u16,
        };
        let rest = rules.port_rest;
        let over = |port: &Port| match port {
            Port::Resting(until) => *until <= now,
            Port::Mapped(inside) => {
                self.mappings.get(inside).is_none_or(|mapping| mapping.expires.saturating_add(rest) <= now)
            }
        };
        let found = gap(&self.ports, begin, last, over).or_else(|| gap(&self.ports, first, begin, over))?;
        if let Some(Port::Mapped(old)) = self.ports.get(&found).copied() {
            self.end(old, rules);
        }
        self.ports.remove(&found);
        Some(found)
    }

    /// Removes the mapping of an inside endpoint if it has expired.
    fn end_if_over(&mut self, now: Instant, inside: Endpoint, rules: &NatSpecification) {
        if self.mappings.get(&inside).is_some_and(|mapping| mapping.expires <= now) {
            self.end(inside, rules);
        }
    }

    fn end_all_of(&mut self, now: Instant, host: NodeId, rules: &NatSpecification) {
        let of_host = Endpoint { node: host, port: 0 }..=Endpoint { node: host, port: u16::MAX };
        let over = self.mappings.range(of_host).filter(|(_, mapping)| mapping.expires <= now);
        let over: Vec<Endpoint> = over.map(|(inside, _)| *inside).collect();
        for inside in over {
            self.end(inside, rules);
        }
    }

    /// Removes a mapping. Its port is not reused until [`NatSpecification::port_rest`] after the mapping expired.
    fn end(&mut self, inside: Endpoint, rules: &NatSpecification) {
        let Some(mapping) = self.mappings.remove(&inside) else { return };
        let until = mapping.expires.saturating_add(rules.port_rest);
        self.ports.insert(mapping.port, Port::Resting(until));
        self.nothing_ends_before = self.nothing_ends_before.min(until);
        if let Some(held) = self.held.get_mut(&inside.node) {
            *held -= 1;
        }
    }

    /// Removes all expired mappings, and frees all ports that may be reused.
    fn sweep(&mut self, now: Instant, rules: &NatSpecification) {
        let over = self.mappings.iter().filter(|(_, mapping)| mapping.expires <= now);
        let over: Vec<Endpoint> = over.map(|(inside, _)| *inside).collect();
        for inside in over {
            self.end(inside, rules);
        }
        self.ports.retain(|_, port| !matches!(port, Port::Resting(until) if *until <= now));
        let mapped = self.mappings.values().map(|mapping| mapping.expires);
        let resting = self.ports.values().filter_map(|port| match port {
            Port::Resting(until) => Some(*until),
            Port::Mapped(_) => None,
        });
        self.nothing_ends_before = mapped.chain(resting).min().unwrap_or(now);
    }
}

/// Returns the first port from `from` to `to` that is unused, or for which `over` returns true.
fn gap(ports: &BTreeMap<u16, Port>, from: u16, to: u16, over: impl Fn(&Port) -> bool) -> Option<u16> {
    let mut candidate = from;
    for (taken, port) in ports.range(from..=to) {
        if *taken > candidate || over(port) {
            return Some(candidate);
        }
        candidate = taken.checked_add(1)?;
    }
    (candidate <= to).then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::{Duration, RandomStream};
    use std::collections::BTreeSet;

    const SYN: u16 = flags::SYN;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO.saturating_add(Duration::from_secs(seconds))
    }

    fn host(node: u32, port: u16) -> Endpoint {
        Endpoint { node: NodeId(node), port }
    }

    fn rules(first_port: u16, last_port: u16, allocation: PortAllocation) -> NatSpecification {
        NatSpecification { first_port, last_port, allocation, ..NatSpecification::new(NodeId(0), Vec::new()) }
    }

    fn random() -> RandomStream {
        RandomStream::new(1, "nat", "ports")
    }

    const SERVER: Endpoint = Endpoint { node: NodeId(99), port: 443 };

    /// Sends datagrams from these endpoints, one per second; returns their ports.
    fn ports(rules: &NatSpecification, inside: &[Endpoint]) -> Vec<Result<u16, NatDropReason>> {
        let mut table = MappingTable::default();
        let mut random = random();
        let each = inside.iter().enumerate();
        each.map(|(second, inside)| table.outbound(at(second as u64), *inside, SERVER, None, rules, &mut random))
            .collect()
    }

    #[test]
    fn ports_are_preserved_if_they_are_free() {
        let rules = rules(2000, 2003, PortAllocation::Preserve);
        let inside = [host(1, 2002), host(2, 2002), host(1, 80), host(3, 2002), host(4, 2002), host(1, 2002)];
        let exhausted = Err(NatDropReason::NoFreePort);
        assert_eq!(ports(&rules, &inside), [Ok(2002), Ok(2003), Ok(2000), Ok(2001), exhausted, Ok(2002)]);
    }

    #[test]
    fn sequential_ports_wrap_around_the_pool() {
        let mut rules = rules(65_533, 65_535, PortAllocation::Sequential);
        rules.udp_timeout = Duration::from_secs(2);
        // At second 3 the first two have expired, at 4 three; the one assigned at 3 has 65 533.
        let inside: Vec<Endpoint> = (0..5).map(|n| host(n, 7)).collect();
        assert_eq!(ports(&rules, &inside), [Ok(65_533), Ok(65_534), Ok(65_535), Ok(65_533), Ok(65_534)]);
    }

    #[test]
    fn random_ports_fill_the_pool_and_differ() {
        let rules = rules(1000, 1099, PortAllocation::Random);
        let inside: Vec<Endpoint> = (0..100).map(|n| host(n, 7)).collect();
        let given: Vec<u16> = ports(&rules, &inside).into_iter().map(Result::unwrap).collect();
        assert_eq!(given.iter().copied().collect::<BTreeSet<_>>(), (1000..=1099).collect());
        assert!(!given.is_sorted());
    }

    #[test]
    fn an_empty_pool_assigns_no_port() {
        let rules = rules(2, 1, PortAllocation::Sequential);
        assert_eq!(ports(&rules, &[host(1, 1)]), [Err(NatDropReason::NoFreePort)]);
    }

    #[test]
    fn an_endpoint_has_one_port_for_all_destinations_and_per_protocol() {
        let rules = rules(1024, 65_535, PortAllocation::Sequential);
        let (mut udp, mut tcp) = (MappingTable::default(), MappingTable::default());
        let first = udp.outbound(at(0), host(1, 5), SERVER, None, &rules, &mut random());
        assert_eq!(udp.outbound(at(0), host(1, 5), host(98, 53), None, &rules, &mut random()), first);
        assert_eq!(tcp.outbound(at(0), host(1, 5), SERVER, Some(SYN), &rules, &mut random()), first);
        assert_eq!(udp.made, 1);
    }

    #[test]
    fn a_mapping_expires_two_minutes_after_its_last_packet() {
        let rules = rules(1024, 65_535, PortAllocation::Sequential);
        let mut table = MappingTable::default();
        let inside = host(1, 5);
        table.outbound(at(0), inside, SERVER, None, &rules, &mut random()).unwrap();
        table.outbound(at(100), inside, SERVER, None, &rules, &mut random()).unwrap();
        let just_before = Instant::from_nanos(at(220).as_nanos() - 1);
        assert_eq!(table.inbound(just_before, inside, SERVER, None, &rules), Ok(()));
        assert_eq!((table.alive(just_before), table.alive(at(220))), (1, 0));
        assert_eq!(table.inbound(at(220), inside, SERVER, None, &rules), Err(NatDropReason::Unsolicited));
        // The next packet from inside creates a new mapping with another port.
        assert_eq!(table.outbound(at(221), inside, SERVER, None, &rules, &mut random()), Ok(1025));
        assert_eq!(table.made, 2);
    }

    /// The mapping stays while any session is alive, and expires with the last one.
    #[test]
    fn a_mapping_expires_with_its_last_session() {
        let rules = rules(1024, 65_535, PortAllocation::Sequential);
        let mut table = MappingTable::default();
        let (inside, other) = (host(1, 5), host(98, 80));
        let syn_ack = SYN | flags::ACK;
        table.outbound(at(0), inside, SERVER, Some(SYN), &rules, &mut random()).unwrap();
        table.inbound(at(1), inside, SERVER, Some(syn_ack), &rules).unwrap();
        table.outbound(at(10), inside, other, Some(SYN), &rules, &mut random()).unwrap();
        // A reset leaves the first one 240 s from 20 s on; the second has its SYN's 240 s, from 10 s on.
        table.inbound(at(20), inside, SERVER, Some(flags::RST), &rules).unwrap();
        assert_eq!((table.alive(at(259)), table.alive(at(260))), (1, 0));
        // At 255 s the second one has expired: packets from its endpoint are rejected.
        assert_eq!(table.inbound(at(255), inside, other, Some(flags::ACK), &rules), Err(NatDropReason::Unsolicited));
        assert_eq!(table.inbound(at(255), inside, SERVER, Some(flags::RST), &rules), Ok(()));
    }

    #[test]
    fn tcp_needs_a_syn_from_inside() {
        let rules = rules(1024, 65_535, PortAllocation::Sequential);
        let mut table = MappingTable::default();
        let ack = Some(flags::ACK);
        assert_eq!(
            table.outbound(at(0), host(1, 5), SERVER, ack, &rules, &mut random()),
            Err(NatDropReason::NoSession)
        );
        assert_eq!(table.inbound(at(0), host(1, 5), SERVER, Some(SYN), &rules), Err(NatDropReason::Unsolicited));
        assert_eq!(table.made, 0);
    }

    #[test]
    fn each_filter_accepts_the_packets_that_it_permits() {
        let inside = host(1, 5);
        for (filter, let_in) in [
            (NatFilter::EndpointIndependent, [true, true, true]),
            (NatFilter::AddressDependent, [true, true, false]),
            (NatFilter::AddressAndPortDependent, [true, false, false]),
        ] {
            let mut rules = rules(1024, 65_535, PortAllocation::Sequential);
            rules.filter = filter;
            let mut table = MappingTable::default();
            table.outbound(at(0), inside, host(98, 53), None, &rules, &mut random()).unwrap();
            let from = [host(98, 53), host(98, 54), host(97, 53)];
            let got = from.map(|remote| table.inbound(at(1), inside, remote, None, &rules).is_ok());
            assert_eq!(got, let_in, "{filter:?}");
            // Packets from outside do not refresh the mapping.
            assert_eq!((table.alive(at(119)), table.alive(at(120))), (1, 0));
        }
    }

    /// RFC 5508 REQ-6: an error passes like its packet and does not refresh the mapping, whichever side it is from.
    #[test]
    fn icmp_errors_pass_and_refresh_nothing() {
        let mut rules = rules(1024, 65_535, PortAllocation::Sequential);
        rules.udp_inbound_refresh = true;
        let mut table = MappingTable::default();
        let inside = host(1, 5);
        let unsolicited = Err(NatDropReason::Unsolicited);
        let error =
            |table: &MappingTable, second, side, remote| table.error(at(second), side, inside, remote, rules.filter);
        assert_eq!(error(&table, 0, Side::Inside, SERVER), unsolicited);
        table.outbound(at(0), inside, SERVER, None, &rules, &mut random()).unwrap();
        assert_eq!(error(&table, 100, Side::Outside, SERVER), Ok(()));
        assert_eq!(error(&table, 100, Side::Outside, host(98, 53)), unsolicited);
        assert_eq!(error(&table, 100, Side::Inside, SERVER), Ok(()));
        assert_eq!((table.alive(at(119)), table.alive(at(120))), (1, 0));
        for side in [Side::Inside, Side::Outside] {
            assert_eq!(error(&table, 120, side, SERVER), unsolicited);
        }
        assert_eq!(table.made, 1);
    }

    #[test]
    fn a_host_has_a_port_limit_and_expired_ports_do_not_count() {
        let mut rules = rules(1024, 65_535, PortAllocation::Sequential);
        rules.ports_per_host = Some(2);
        let mut table = MappingTable::default();
        let mut send =
            |second, node, port| table.outbound(at(second), host(node, port), SERVER, None, &rules, &mut random());
        assert_eq!(send(0, 1, 1), Ok(1024));
        assert_eq!(send(50, 1, 2), Ok(1025));
        assert_eq!(send(119, 1, 3), Err(NatDropReason::NoFreePort));
        assert_eq!(send(119, 2, 3), Ok(1026));
        // The first mapping has expired at 120 s.
        assert_eq!(send(120, 1, 3), Ok(1027));
        assert_eq!(send(121, 1, 4), Err(NatDropReason::NoFreePort));
    }

    #[test]
    fn ports_are_not_reused_before_their_rest_time() {
        let mut rules = rules(7, 7, PortAllocation::Preserve);
        rules.port_rest = Duration::from_secs(120);
        let mut table = MappingTable::default();
        let mut send = |second, node| table.outbound(at(second), host(node, 9), SERVER, None, &rules, &mut random());
        assert_eq!(send(0, 1), Ok(7));
        // Expired at 120 s, free at 240 s. This also applies to its former endpoint, whose packet reveals the
        // expiration.
        assert_eq!(send(130, 2), Err(NatDropReason::NoFreePort));
        assert_eq!(send(140, 1), Err(NatDropReason::NoFreePort));
        assert_eq!(send(239, 2), Err(NatDropReason::NoFreePort));
        assert_eq!(send(240, 2), Ok(7));
    }

    /// Compares a table with few ports and many packets with a list, which is searched from end to end.
    #[test]
    fn a_full_table_agrees_with_a_list() {
        let mut rules = rules(100, 109, PortAllocation::Random);
        rules.port_rest = Duration::from_secs(15);
        let (mut draw, mut random) = (RandomStream::new(5, "test", "packets"), random());
        let mut table = MappingTable::default();
        // Endpoint, port, and time of expiration.
        let mut list: Vec<(Endpoint, u16, Instant)> = Vec::new();
        let (mut refused, mut given) = (0, 0);
        for step in 0..20_000 {
            let now = at(step * 3);
            let inside = host(draw.uniform_below(30) as u32, 1);
            let rested = |over: Instant| over.saturating_add(Duration::from_secs(15)) <= now;
            let alive = list.iter().position(|(who, _, over)| *who == inside && *over > now);
            let got = table.outbound(now, inside, SERVER, None, &rules, &mut random);
            let over = now.saturating_add(Duration::from_secs(120));
            match (alive, got) {
                (Some(place), Ok(port)) => {
                    assert_eq!(port, list[place].1);
                    list[place].2 = over;
                }
                (None, Ok(port)) => {
                    assert!((100..=109).contains(&port));
                    assert!(list.iter().all(|(_, taken, over)| *taken != port || rested(*over)), "{port} is in use");
                    list.retain(|(_, taken, _)| *taken != port);
                    list.push((inside, port, over));
                    given += 1;
                }
                (None, Err(NatDropReason::NoFreePort)) => {
                    assert_eq!(list.iter().filter(|(_, _, over)| !rested(*over)).count(), 10, "a port was free");
                    refused += 1;
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(table.alive(now), list.iter().filter(|(_, _, over)| *over > now).count() as u64);
        }
        assert!(refused > 1000 && given > 100, "{refused} {given}");
        assert_eq!(table.made, given);
    }
}
