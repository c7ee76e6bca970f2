//! Chains of links that are computed together, with one event per packet.
//!
//! If a link receives packets from only one other link, they arrive in the order in which they entered that link. The
//! second link can then be computed together with the first, so a chain of links costs one event per packet.
//! [`Network::finalize`] finds the chains once before the run, from the declared conversations. Chains consist of
//! drop-tail links that keep the order and the number of their packets, even if their rate and delay change over time
//! (see [`crate::special`]). The counters of a link that is computed ahead are ahead of the clock. Therefore a link
//! with a probe is never computed ahead ([`Network::observe_link`]), and nothing is computed beyond the end of the run.
//! Simultaneous events are ordered by entity and not by insertion, so results are the same with and without chains
//! (`tests/fusion.rs`).

use crate::link::{Link, NO_LINK, NextLinkMode};
use crate::medium::MediumDirection;
use crate::network::{Network, Node};
use crate::routing::NextHop;
use fullpipe_record::Observer;
use fullpipe_units::{Instant, LinkId, NodeId};
use std::collections::BTreeSet;

impl<O: Observer> Network<O> {
    /// Finds the chains. The feeders of a link are the hops before it on the paths of all conversations: other links,
    /// or a host's transport.
    pub(crate) fn find_chains(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum Feeder {
            Unused,
            Only(LinkId),
            Several,
        }
        let mut feeders = vec![Feeder::Unused; self.links.len()];
        // The successors of each link: other links, or `None` if the next hop is not a link.
        let mut followers: Vec<BTreeSet<Option<LinkId>>> = vec![BTreeSet::new(); self.links.len()];
        let pairs: Vec<(NodeId, NodeId)> = self.conversations.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        for (from, to) in pairs {
            let mut previous: Option<LinkId> = None;
            for hop in self.path(from, to).into_iter().map(Some).chain([None]) {
                let link = match hop {
                    Some(NextHop::Link(link)) => Some(link),
                    _ => None,
                };
                if let Some(before) = previous {
                    followers[before.index()].insert(link);
                }
                let Some(link) = link else {
                    previous = None;
                    continue;
                };
                let feeder = &mut feeders[link.index()];
                *feeder = match (previous, *feeder) {
                    (Some(before), Feeder::Unused) => Feeder::Only(before),
                    (Some(before), Feeder::Only(same)) if same == before => Feeder::Only(same),
                    _ => Feeder::Several,
                };
                // Which packets pass a NAT depends on time, so a chain ends there.
                previous = (!self.translates(self.links[link.index()].to)).then_some(link);
            }
        }
        self.feeders = vec![NO_LINK; self.links.len()];
        for (index, feeder) in feeders.into_iter().enumerate() {
            if let Feeder::Only(before) = feeder
                && !self.links[index].is_driven()
                && !self.links[index].may_take_no_time()
                && !self.links[before.index()].is_driven()
                && self.links[before.index()].permits_chains()
                && !self.observed.contains(&LinkId(index as u32))
            {
                self.feeders[index] = before;
            }
        }
        for (index, followers) in followers.iter().enumerate() {
            let is_chained =
                |next: &Option<LinkId>| next.is_some_and(|next| self.feeders[next.index()] == LinkId(index as u32));
            let onward = match followers.iter().filter(|next| is_chained(next)).count() {
                0 => NextLinkMode::Event,
                _ if self.undeclared => NextLinkMode::IfSingleSource,
                1 if followers.len() == 1 => NextLinkMode::Link,
                chained if chained == followers.len() => NextLinkMode::ByDestination,
                _ => NextLinkMode::IfSingleSource,
            };
            let link = &mut self.links[index];
            if !link.to_router {
                continue;
            }
            link.onward = onward;
            if onward == NextLinkMode::Link {
                link.next = followers.first().copied().flatten().unwrap_or(NO_LINK);
            }
        }
        for medium in 0..self.media.len() as u16 {
            let feeder = self.find_feeder(medium).filter(|feeder| {
                let link = &self.links[feeder.index()];
                !link.is_driven()
                    && link.special().is_none()
                    && self.media[usize::from(medium)].may_offer_late(link.mtu_bytes)
                    && !self.observed.contains(&self.medium_link(medium, MediumDirection::Downlink))
            });
            if let Some(feeder) = feeder {
                self.media[usize::from(medium)].feeder = feeder;
                self.links[feeder.index()].onward = NextLinkMode::Hub;
            }
        }
    }

    /// Returns the only link that feeds the downlink of a medium; `None` if the downlink has another source.
    fn find_feeder(&self, medium: u16) -> Option<LinkId> {
        let goes_down = |hop: &NextHop| match *hop {
            NextHop::Medium { medium: number, way, .. } => (number, way) == (medium, MediumDirection::Downlink),
            _ => false,
        };
        let paths = || {
            let ways = self.conversations.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
            ways.map(|(from, to)| self.path(from, to))
        };
        let mut feeder = None;
        for hops in paths() {
            for down in (0..hops.len()).filter(|&hop| goes_down(&hops[hop])) {
                feeder = match (down.checked_sub(1).map(|before| hops[before]), feeder) {
                    (Some(NextHop::Link(link)), None) => Some(link),
                    (Some(NextHop::Link(link)), Some(same)) if same == link => Some(same),
                    _ => return None,
                };
            }
        }
        let feeder = feeder.filter(|feeder| !self.translates(self.links[feeder.index()].to))?;
        let only_down = |hops: Vec<NextHop>| {
            let mut links = hops.iter().enumerate().filter(|(_, hop)| **hop == NextHop::Link(feeder));
            links.all(|(hop, _)| hops.get(hop + 1).is_some_and(goes_down))
        };
        paths().all(only_down).then_some(feeder)
    }

    /// Returns the link on which a packet continues, if that link is computed together with `link`.
    pub(crate) fn chained(&self, link: LinkId, destination: NodeId, arrival: Instant) -> Option<LinkId> {
        let in_time = arrival <= self.horizon;
        let next = self.links[link.index()].beyond(link, destination, &self.nodes, &self.feeders);
        next.filter(|_| in_time)
    }
}

impl Link {
    /// Returns the link on which a packet continues, if it is computed together with this one, whose number is `link`.
    #[inline(always)]
    pub(crate) fn beyond(
        &self,
        link: LinkId,
        destination: NodeId,
        nodes: &[Node],
        feeders: &[LinkId],
    ) -> Option<LinkId> {
        match self.onward {
            // Avoids a routing lookup: 15 instructions fewer per link of a chain.
            NextLinkMode::Link => Some(self.next),
            NextLinkMode::Event | NextLinkMode::Hub => None,
            onward => match nodes[self.to.index()].routes.toward(destination) {
                NextHop::Link(next) if onward == NextLinkMode::ByDestination || feeders[next.index()] == link => {
                    Some(next)
                }
                _ => None,
            },
        }
    }
}
