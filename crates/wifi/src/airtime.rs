//! The order in which the access point serves its stations in one access category.
//!
//! *Round robin* serves one aggregate of each station in turn. *Airtime fairness* is the deficit scheduler of Linux
//! (Høiland-Jørgensen et al., ATC 2017). Stations with packets are in a list. The station at the head transmits unless
//! its deficit is negative. Then its weight is added to the deficit, and it moves to the tail. The air time of each
//! transmission is subtracted afterwards. A station that becomes active enters at the head with the deficit that it had, so
//! a sparse station is served first.

use fullpipe_units::Duration;
use std::collections::VecDeque;

/// How the access point selects stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StationOrder {
    /// One aggregate of each station in turn.
    RoundRobin,
    /// Equal air time. The weight is the deficit that a station gains per round: 256 µs in Linux, 300 µs in the paper.
    Airtime {
        /// Deficit per round.
        weight: Duration,
    },
}

impl StationOrder {
    /// Airtime fairness as in Linux.
    pub const LINUX: StationOrder = StationOrder::Airtime { weight: Duration::from_micros(256) };
}

/// The stations with packets in one access category.
///
/// ```
/// use fullpipe_units::Duration;
/// use fullpipe_wifi::airtime::{StationOrder, StationScheduler};
/// let mut scheduler = StationScheduler::new(StationOrder::LINUX, 2);
/// scheduler.activate(0);
/// scheduler.activate(1);
/// // Station 1 became active last, so it is at the head. After 5 ms of air time, station 0 is served.
/// assert_eq!(scheduler.select(), Some(1));
/// scheduler.charge(1, Duration::from_millis(5));
/// assert_eq!(scheduler.select(), Some(0));
/// ```
#[derive(Debug)]
pub struct StationScheduler {
    order: StationOrder,
    list: VecDeque<u32>,
    active: Vec<bool>,
    /// In ns.
    deficits: Vec<i64>,
}

impl StationScheduler {
    /// Returns a scheduler of this number of stations without packets.
    pub fn new(order: StationOrder, stations: u32) -> Self {
        let count = stations as usize;
        let deficit = match order {
            StationOrder::RoundRobin => 0,
            StationOrder::Airtime { weight } => weight.as_nanos() as i64,
        };
        StationScheduler { order, list: VecDeque::new(), active: vec![false; count], deficits: vec![deficit; count] }
    }

    /// Returns whether no station has packets.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A station has packets.
    pub fn activate(&mut self, station: u32) {
        if std::mem::replace(&mut self.active[station as usize], true) {
            return;
        }
        match self.order {
            StationOrder::RoundRobin => self.list.push_back(station),
            StationOrder::Airtime { .. } => self.list.push_front(station),
        }
    }

    /// A station has no packets any more.
    pub fn deactivate(&mut self, station: u32) {
        if std::mem::replace(&mut self.active[station as usize], false) {
            self.list.retain(|entry| *entry != station);
        }
    }

    /// Returns the station to serve next; `None` if no station has packets.
    pub fn select(&mut self) -> Option<u32> {
        let StationOrder::Airtime { weight } = self.order else { return self.list.front().copied() };
        let weight = (weight.as_nanos() as i64).max(1);
        // Whole rounds in which every deficit remains negative only add the weight.
        let rounds = |deficit: i64| if deficit < 0 { (-deficit - 1) / weight + 1 } else { 0 };
        let idle = self.list.iter().map(|station| rounds(self.deficits[*station as usize])).min()?;
        if idle > 1 {
            for station in &self.list {
                self.deficits[*station as usize] += (idle - 1) * weight;
            }
        }
        loop {
            let station = *self.list.front()?;
            let deficit = &mut self.deficits[station as usize];
            if *deficit >= 0 {
                return Some(station);
            }
            *deficit += weight;
            self.list.rotate_left(1);
        }
    }

    /// A station has used this much air time for a transmission to the access point.
    pub fn charge_received(&mut self, station: u32, airtime: Duration) {
        if let StationOrder::Airtime { .. } = self.order {
            self.deficits[station as usize] -= airtime.as_nanos() as i64;
        }
    }

    /// A transmission to a station has used this much air time.
    pub fn charge(&mut self, station: u32, airtime: Duration) {
        match self.order {
            StationOrder::RoundRobin => {
                if self.list.front() == Some(&station) {
                    self.list.rotate_left(1);
                }
            }
            StationOrder::Airtime { .. } => self.deficits[station as usize] -= airtime.as_nanos() as i64,
        }
    }

    /// Returns the deficit of a station in ns.
    pub fn deficit_ns(&self, station: u32) -> i64 {
        self.deficits[station as usize]
    }
}
