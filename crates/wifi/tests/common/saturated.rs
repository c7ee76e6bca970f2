//! A network whose sources always have packets.

use fullpipe_network::{MediumDirection, MediumOutcome};
use fullpipe_units::{EcnCodepoint, Instant};
use fullpipe_wifi::config::Config;
use fullpipe_wifi::phy::AccessCategory;
use fullpipe_wifi::{BasicServiceSet, OfferedPacket};

/// A source that keeps a number of packets in the network.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    pub(crate) direction: MediumDirection,
    pub(crate) station: u32,
    pub(crate) category: AccessCategory,
    pub(crate) ip_bytes: u32,
    pub(crate) packets: u32,
}

impl Source {
    /// A source of UDP packets with this payload at a station.
    pub(crate) fn uplink(station: u32, udp_bytes: u32, packets: u32) -> Self {
        let category = AccessCategory::BestEffort;
        Source { direction: MediumDirection::Uplink, station, category, ip_bytes: udp_bytes + 28, packets }
    }

    /// A source of UDP packets at the access point.
    pub(crate) fn downlink(station: u32, udp_bytes: u32, packets: u32) -> Self {
        Source { direction: MediumDirection::Downlink, ..Source::uplink(station, udp_bytes, packets) }
    }

    pub(crate) fn in_category(self, category: AccessCategory) -> Self {
        Source { category, ..self }
    }
}

/// A network with saturated sources. The number of a source is the token of its packets.
pub(crate) struct Saturated {
    pub(crate) network: BasicServiceSet,
    sources: Vec<Source>,
    pub(crate) now: Instant,
    /// Packets delivered and lost, by source.
    pub(crate) delivered: Vec<u64>,
    pub(crate) lost: Vec<u64>,
}

impl Saturated {
    pub(crate) fn new(config: Config, sources: Vec<Source>) -> Self {
        let network = BasicServiceSet::new(config).unwrap();
        let count = sources.len();
        let mut saturated =
            Saturated { network, sources, now: Instant::ZERO, delivered: vec![0; count], lost: vec![0; count] };
        for number in 0..count {
            for _ in 0..saturated.sources[number].packets {
                saturated.offer(number);
            }
        }
        saturated
    }

    fn offer(&mut self, number: usize) {
        let Source { direction, station, category, ip_bytes, .. } = self.sources[number];
        let token = number as u64;
        let packet = OfferedPacket { token, ip_bytes, flow: token, codepoint: EcnCodepoint::NotEct, category };
        self.network.offer(self.now, direction, station, packet);
    }

    /// Runs until `end`, or for a number of events.
    pub(crate) fn run(&mut self, end: Instant, events: u64) {
        let stop = self.network.events().saturating_add(events);
        let mut again = Vec::new();
        while self.network.events() < stop {
            let next = self.network.next_deadline();
            if next > end || next.is_never() {
                break;
            }
            self.now = next;
            self.network.advance(next);
            for report in self.network.drain_outcomes() {
                match report.fate {
                    MediumOutcome::Delivered | MediumOutcome::Marked => self.delivered[report.token as usize] += 1,
                    _ => self.lost[report.token as usize] += 1,
                }
                again.push(report.token as usize);
            }
            for number in again.drain(..) {
                self.offer(number);
            }
        }
    }

    /// Goodput of a source in Mbit/s of UDP payload.
    pub(crate) fn mbps(&self, number: usize) -> f64 {
        let bits = 8 * self.delivered[number] * u64::from(self.sources[number].ip_bytes - 28);
        bits as f64 * 1e3 / self.now.as_nanos() as f64
    }

    /// Goodput of all sources in Mbit/s of UDP payload.
    pub(crate) fn total_mbps(&self) -> f64 {
        (0..self.sources.len()).map(|number| self.mbps(number)).sum()
    }
}
