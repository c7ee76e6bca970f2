//! Mappings of one protocol: inside endpoints, their outside ports, and who they talk to.
//!
//! Nothing expires by a timer: a mapping whose time is over counts as gone, and is removed when its endpoint, its port
//! or its host's share is asked for, or when no port is left.

use super::session::{Session, Side};
use super::{NatFilter, NatSpecification, PortAllocation};
use crate::address::Endpoint;
use crate::packet::flags;
use fullpipe_units::{Instant, NodeId};
use std::collections::BTreeMap;

/// Why a packet may not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No port is free, or the host has its share.
    Exhausted,
    /// A TCP segment from inside that opens nothing and belongs to nothing.
    Unopened,
    /// From outside, without mapping or not let in.
    Unsolicited,
}

/// An inside endpoint's outside port.
#[derive(Debug)]
struct Mapping {
    port: u16,
    /// When the last of its sessions ends.
    expires: Instant,
    /// By outside endpoint; ended ones may be among them.
    sessions: BTreeMap<Endpoint, Session>,
}

/// A port that is not free.
#[derive(Clone, Copy, Debug)]
enum Port {
    Mapped(Endpoint),
    /// Its mapping has ended; free at this instant.
    Resting(Instant),
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct Table {
    mappings: BTreeMap<Endpoint, Mapping>,
    ports: BTreeMap<u16, Port>,
    /// Ports held by each inside host.
    held: BTreeMap<NodeId, u32>,
    /// The port given out last.
    last: Option<u16>,
    /// Before this instant no mapping ends and no port has rested enough.
    nothing_ends_before: Instant,
    /// Mappings made so far.
    pub(super) made: u64,
}

impl Mapping {
    /// The session with `remote`, if it has not ended.
    fn session(&mut self, now: Instant, remote: Endpoint) -> Option<&mut Session> {
        self.sessions.get_mut(&remote).filter(|session| session.expires > now)
    }

    fn begin(&mut self, now: Instant, remote: Endpoint, session: Session) {
        // Cheap on average, and the ended ones are never more than the others.
        if self.sessions.len().is_power_of_two() {
            self.sessions.retain(|_, session| session.expires > now);
        }
        self.expires = self.expires.max(session.expires);
        self.sessions.insert(remote, session);
    }

    /// A packet passes: its session goes on, or begins.
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
            // TCP: passes where there is a mapping, and begins nothing (RFC 6146 section 3.5.2.2).
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

impl Table {
    /// The outside port of an inside endpoint. One that has ended is told until it is replaced: packets that passed
    /// before still carry it.
    pub(super) fn port(&self, inside: Endpoint) -> Option<u16> {
        self.mappings.get(&inside).map(|mapping| mapping.port)
    }

    /// Mappings that have not ended.
    pub(super) fn alive(&self, now: Instant) -> u64 {
        self.mappings.values().filter(|mapping| mapping.expires > now).count() as u64
    }

    /// A packet from inside passes; `flags` are those of a TCP segment.
    pub(super) fn outbound(
        &mut self,
        now: Instant,
        inside: Endpoint,
        remote: Endpoint,
        flags: Option<u16>,
        rules: &mut NatSpecification,
    ) -> Result<u16, Refusal> {
        self.end_if_over(now, inside, rules);
        let opens = flags.is_none_or(|flags| flags & flags::SYN != 0);
        if !self.mappings.contains_key(&inside) {
            if !opens {
                return Err(Refusal::Unopened);
            }
            self.map(now, inside, rules)?;
        }
        let mapping = self.mappings.get_mut(&inside).ok_or(Refusal::Exhausted)?;
        mapping.pass(now, Side::Inside, remote, flags, rules);
        self.nothing_ends_before = self.nothing_ends_before.min(mapping.expires);
        Ok(mapping.port)
    }

    /// A packet from outside passes to an inside endpoint.
    pub(super) fn inbound(
        &mut self,
        now: Instant,
        inside: Endpoint,
        remote: Endpoint,
        flags: Option<u16>,
        rules: &NatSpecification,
    ) -> Result<(), Refusal> {
        self.end_if_over(now, inside, rules);
        let mapping = self.mappings.get_mut(&inside).ok_or(Refusal::Unsolicited)?;
        if !mapping.lets_in(now, remote, rules.filter) {
            return Err(Refusal::Unsolicited);
        }
        mapping.pass(now, Side::Outside, remote, flags, rules);
        self.nothing_ends_before = self.nothing_ends_before.min(mapping.expires);
        Ok(())
    }

    fn map(&mut self, now: Instant, inside: Endpoint, rules: &mut NatSpecification) -> Result<(), Refusal> {
        if let Some(limit) = rules.ports_per_host
            && self.held_by(inside.node) >= limit
        {
            self.end_all_of(now, inside.node, rules);
            if self.held_by(inside.node) >= limit {
                return Err(Refusal::Exhausted);
            }
        }
        let port = self.free_port(now, inside.port, rules).ok_or(Refusal::Exhausted)?;
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

    /// A free port by the rule of allocation.
    fn free_port(&mut self, now: Instant, inside_port: u16, rules: &mut NatSpecification) -> Option<u16> {
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
        let begin = match &mut rules.allocation {
            PortAllocation::Preserve if pool.contains(&inside_port) => inside_port,
            PortAllocation::Preserve => first,
            PortAllocation::Sequential => self.last.map_or(first, |port| if port >= last { first } else { port + 1 }),
            PortAllocation::Random(stream) => first + stream.below(size) as u16,
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

    /// Ends a mapping whose time is over.
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

    /// Removes a mapping; its port rests from the instant at which its time was over.
    fn end(&mut self, inside: Endpoint, rules: &NatSpecification) {
        let Some(mapping) = self.mappings.remove(&inside) else { return };
        let until = mapping.expires.saturating_add(rules.port_rest);
        self.ports.insert(mapping.port, Port::Resting(until));
        self.nothing_ends_before = self.nothing_ends_before.min(until);
        if let Some(held) = self.held.get_mut(&inside.node) {
            *held -= 1;
        }
    }

    /// Removes all that is over.
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

/// The first port from `from` to `to` that is not taken, or taken by what is over.
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
