//! Faults that are injected into the network to test whether an auditor detects them.

use crate::link::Link;
use crate::network::Network;
use crate::packet::PacketHandle;
use fullpipe_record::Observer;
use fullpipe_units::rate::Transmitter;
use fullpipe_units::{LinkId, Rate};

/// A fault that can be injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The link transmits one percent too fast. In a medium with a hub, every hundredth frame arrives at the instant
    /// when it is offered.
    FastLink(LinkId),
    /// The link drops every `every`-th packet without a report.
    SilentDrop {
        /// The link.
        link: LinkId,
        /// Number of packets from one drop to the next.
        every: u64,
    },
}

#[derive(Debug, Default)]
pub(crate) struct SilentDrop {
    link: LinkId,
    every: u64,
    count: u64,
}

impl<O: Observer> Network<O> {
    /// Injects a fault.
    pub fn inject_fault(&mut self, fault: Fault) {
        match fault {
            Fault::FastLink(link) if self.links.get_mut(link.index()).is_some_and(Link::exceed) => {}
            Fault::FastLink(link) if self.exceed_medium(link) => {}
            Fault::FastLink(link) => {
                let transmitter = match self.links.get_mut(link.index()) {
                    Some(link) => &mut link.transmitter,
                    None => self.channel_transmitter(link),
                };
                let rate = transmitter.rate().bits_per_second();
                *transmitter = Transmitter::new(Rate::from_bits_per_second(rate + rate / 100));
            }
            Fault::SilentDrop { link, every } => {
                if let Some(link) = self.links.get_mut(link.index()) {
                    link.plain_bytes = 0;
                }
                self.silent_drop = Some(Box::new(SilentDrop { link, every: every.max(1), count: 0 }));
                self.fuse = false;
            }
        }
    }

    /// Returns whether the fault [`Fault::SilentDrop`] drops the packet.
    #[inline]
    pub(crate) fn drops_silently(&mut self, link: LinkId, handle: PacketHandle) -> bool {
        self.silent_drop.is_some() && self.fault_takes(link, handle)
    }

    #[cold]
    #[inline(never)]
    fn fault_takes(&mut self, link: LinkId, handle: PacketHandle) -> bool {
        let Some(fault) = &mut self.silent_drop else { return false };
        if fault.link != link {
            return false;
        }
        fault.count += 1;
        let drops = fault.count.is_multiple_of(fault.every);
        if drops {
            self.vanish(handle);
        }
        drops
    }
}
