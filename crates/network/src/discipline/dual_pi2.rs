//! DualPI2, the dual-queue coupled AQM for low latency, low loss and scalable throughput (RFC 9332, appendix A).

use crate::queue::Limit;
use fullpipe_units::{Duration, Rate};

/// Which of the two queues goes first when both hold packets (RFC 9332 section 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Bytes in proportion to the weights, except that the coupled signal usually decides before (RFC 9332: 1 to 15).
    WeightedRoundRobin {
        /// Weight of the classic queue.
        classic_weight: u32,
        /// Weight of the low-latency queue.
        l4s_weight: u32,
    },
    /// Who has waited longest, the low-latency packet's wait counted as so much longer (RFC 9332: 50 ms).
    TimeShiftedFifo {
        /// The shift.
        shift: Duration,
    },
}

/// Settings of DualPI2. The default is RFC 9332's, except for the limit, which depends on the rate
/// ([`DualPi2Specification::for_path`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Specification {
    /// Of both queues together; what fits beside a packet of `max_packet_bytes` is taken (RFC 9332: 250 ms of bytes).
    pub limit: Limit,
    /// Bytes on the wire of the largest packet.
    pub max_packet_bytes: u32,
    /// Coupling factor (k: 2).
    pub coupling: f64,
    /// Delay of the classic queue to be reached (15 ms).
    pub target: Duration,
    /// Time between updates of the base probability (Tupdate: 15 ms).
    pub update_interval: Duration,
    /// Gain on the distance from the target, per second of delay (0.15 Hz).
    pub alpha: f64,
    /// Gain on the change of the delay, per second of delay (3 Hz).
    pub beta: f64,
    /// Wait above which low-latency packets begin to be marked (minTh: 800 us).
    pub ramp_start: Duration,
    /// How much longer the wait may get until all are marked (range: 400 us); none makes a step of it.
    pub ramp_range: Duration,
    /// Packets that the low-latency queue must hold more than, for its own marking (Th_len: 1).
    pub ramp_min_packets: u64,
    /// Who goes first.
    pub scheduler: Scheduler,
    /// Whether the classic queue marks ECN-capable packets instead of dropping them. The low-latency queue always
    /// marks.
    pub ecn: bool,
}

impl Default for DualPi2Specification {
    fn default() -> Self {
        Self::derived(Limit::Packets(10_000), Duration::from_millis(15), Duration::from_millis(100))
    }
}

impl DualPi2Specification {
    /// What RFC 9332 figure 2 derives from the link's rate, the target delay and the longest round trip to be expected.
    pub fn for_path(rate: Rate, target: Duration, longest_round_trip: Duration) -> Self {
        Self::derived(Limit::of_time(Duration::from_millis(250), rate), target, longest_round_trip)
    }

    fn derived(limit: Limit, target: Duration, longest_round_trip: Duration) -> Self {
        let update_interval = target.min(Duration::from_nanos(longest_round_trip.as_nanos() / 3));
        let round_trip = longest_round_trip.as_secs_f64();
        DualPi2Specification {
            limit,
            max_packet_bytes: 1518,
            coupling: 2.0,
            target,
            update_interval,
            alpha: 0.1 * update_interval.as_secs_f64() / (round_trip * round_trip),
            beta: 0.3 / round_trip,
            ramp_start: Duration::from_micros(800),
            ramp_range: Duration::from_micros(400),
            ramp_min_packets: 1,
            scheduler: Scheduler::WeightedRoundRobin { classic_weight: 1, l4s_weight: 15 },
            ecn: true,
        }
    }
}
