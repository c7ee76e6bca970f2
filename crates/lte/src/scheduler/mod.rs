//! Downlink schedulers, which assign the resource block groups of a subframe to UEs.
//!
//! [`Scheduler::allocate`] is called once per subframe in which a UE has waiting data. [`Scheduler::on_served`] reports
//! the UEs that were served, and [`Scheduler::on_subframes_elapsed`] the number of subframes that have passed, which
//! may be many without waiting data. Retransmissions are scheduled earlier: their groups are not free.
//!
//! Reports are computed when they are read ([`ChannelReports`]), so a scheduler should read no more than it needs.
//!
//! [`catalogue`] contains the schedulers by name.
//!
//! # Adding a scheduler
//!
//! Add a file to this folder, and an entry in `catalogue.rs`. The file begins with a description of the model and
//! defines a type that implements [`Scheduler`]. [`SubframeContext`] contains all inputs of a scheduler in a subframe.
//! A scheduler may keep any state, if the same sequence of calls results in the same groups. This example assigns the
//! whole band to the UE whose oldest packet has waited longest:
//!
//! ```
//! use fullpipe_lte::scheduler::{
//!     BitRateLimits, BlockSizes, ChannelReports, MAX_GROUPS, NO_OWNER, QueueReports, QueueStatus, Scheduler, SubframeContext,
//!     group_indices,
//! };
//!
//! struct FirstCome;
//!
//! impl Scheduler for FirstCome {
//!     fn attach(&mut self, _limits: BitRateLimits) {}
//!
//!     fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
//!         owners.fill(NO_OWNER);
//!         let mut longest = None;
//!         for &ue in subframe.active {
//!             let waited = subframe.queues.queue_status(ue).head_of_line_ms;
//!             // The report is read last, and of UEs only that could be chosen. A tie stays with the lowest RNTI.
//!             if longest.is_none_or(|(most, _)| waited > most) && subframe.channel.wideband_cqi(ue) > 0 {
//!                 longest = Some((waited, ue));
//!             }
//!         }
//!         let Some((_, ue)) = longest else { return };
//!         for k in group_indices(subframe.free) {
//!             owners[k] = ue;
//!         }
//!     }
//!
//!     fn on_served(&mut self, _ue: u16, _bytes: u32) {}
//!
//!     fn on_subframes_elapsed(&mut self, _subframes: u64) {}
//!
//!     fn uses_wideband_mcs(&self) -> bool {
//!         true
//!     }
//! }
//!
//! // Three UEs, the first of them out of range.
//! struct Reports;
//!
//! impl ChannelReports for Reports {
//!     fn wideband_cqi(&mut self, ue: u16) -> u8 {
//!         [0, 7, 15][usize::from(ue)]
//!     }
//!     fn subband_cqis(&mut self, _ue: u16) -> &[u8; MAX_GROUPS] {
//!         unreachable!("this scheduler reads no subband reports")
//!     }
//!     fn max_cqi(&self, _ue: u16) -> u8 {
//!         15
//!     }
//! }
//!
//! struct Buffers;
//!
//! impl QueueReports for Buffers {
//!     fn queue_status(&self, ue: u16) -> QueueStatus {
//!         QueueStatus { bytes: 1400, head_of_line_ms: [50, 20, 20][usize::from(ue)] }
//!     }
//! }
//!
//! let rates = [1, 2].map(|layers| BlockSizes::new(12, |cqi, groups| (10 * cqi * groups * layers) as u32));
//! let mut owners = [NO_OWNER; MAX_GROUPS];
//! let mut subframe = SubframeContext {
//!     groups: 12,
//!     free: 0b1111_1111_0011, // A retransmission has groups 2 and 3.
//!     active: &[0, 1, 2],
//!     rates: &rates,
//!     layers: &[1, 1, 1],
//!     channel: &mut Reports,
//!     queues: &Buffers,
//! };
//! FirstCome.allocate(&mut subframe, &mut owners);
//! assert_eq!(owners[..5], [1, 1, NO_OWNER, NO_OWNER, 1]);
//! assert_eq!(owners[12..], [NO_OWNER; 20]);
//! ```

mod auction;
mod average;
mod blind_equal_throughput;
pub mod catalogue;
mod channel_and_qos_aware;
mod maximum_throughput;
mod priority_set;
mod proportional_fair;
mod round_robin;
#[cfg(test)]
mod tests;
mod throughput_to_average;
mod token_bank;

pub use blind_equal_throughput::{FdBlindEqualThroughput, TdBlindEqualThroughput};
pub use channel_and_qos_aware::{ChannelAndQosAware, ChannelAwareness};
pub use maximum_throughput::{FdMaximumThroughput, TdMaximumThroughput};
pub use priority_set::{FrequencyMetric, PrioritySet};
pub use proportional_fair::ProportionalFair;
pub use round_robin::RoundRobin;
pub use throughput_to_average::ThroughputToAverage;
pub use token_bank::{FdTokenBank, TdTokenBank, TokenBankLimits};

use average::Averages;
use std::fmt;

/// Largest number of resource block groups of a bandwidth (25 at 20 MHz), rounded up to whole SIMD vectors.
pub const MAX_GROUPS: usize = 32;

/// A set of resource block groups: bit k is group k.
pub type GroupSet = u32;

/// The owner of an unassigned group.
pub const NO_OWNER: u16 = u16::MAX;

/// The CQI reports that the eNB has from its UEs when it schedules a subframe.
pub trait ChannelReports {
    /// Returns the CQI of the whole band, from 0 to 15; 0 if the UE must not be scheduled.
    fn wideband_cqi(&mut self, ue: u16) -> u8;

    /// Returns the CQI of each group; 0 beyond the last group.
    fn subband_cqis(&mut self, ue: u16) -> &[u8; MAX_GROUPS];

    /// Returns the common CQI of all groups; `None` unless they are known to be equal without an evaluation of each
    /// group.
    fn flat_cqi(&mut self, _ue: u16) -> Option<u8> {
        None
    }

    /// Returns an upper bound of the wideband CQI and all subband CQIs of this UE, without the computation of a report.
    fn max_cqi(&self, ue: u16) -> u8;

    /// Whether the bounds of [`max_cqi`](ChannelReports::max_cqi) are constant over subframes.
    fn has_constant_max_cqi(&self) -> bool {
        false
    }

    /// Writes upper bounds of this subframe's reports, one for each of `ues`.
    fn fill_max_cqis(&mut self, ues: &[u16], ceilings: &mut [u8]) {
        for (ceiling, &ue) in ceilings.iter_mut().zip(ues) {
            *ceiling = self.max_cqi(ue);
        }
    }

    /// Returns upper bounds of the CQI of each group, and the groups in which the CQI may be lower.
    fn subband_cqi_bounds(&mut self, ue: u16) -> (&[u8; MAX_GROUPS], GroupSet) {
        (self.subband_cqis(ue), 0)
    }

    /// Returns the CQI of these groups, as in [`subbands`](ChannelReports::subband_cqis), and upper bounds for the
    /// others.
    fn subband_cqis_of(&mut self, ue: u16, _groups: GroupSet) -> &[u8; MAX_GROUPS] {
        self.subband_cqis(ue)
    }
}

/// The waiting data of a UE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// Waiting bytes by the scheduler's count: new data, retransmissions and status reports of all bearers.
    pub bytes: u32,
    /// Waiting time of the oldest packet in milliseconds.
    pub head_of_line_ms: u32,
}

/// The waiting data of all UEs.
pub trait QueueReports {
    /// Returns the waiting data of this UE.
    fn queue_status(&self, ue: u16) -> QueueStatus;

    /// Returns the waiting data of this UE on bearers with a guaranteed bit rate. By default, there is none.
    fn guaranteed_queue_status(&self, _ue: u16) -> QueueStatus {
        QueueStatus::default()
    }

    /// Returns the waiting data of this UE on bearers without a guaranteed bit rate. By default, this is all of its
    /// waiting data.
    fn best_effort_queue_status(&self, ue: u16) -> QueueStatus {
        self.queue_status(ue)
    }
}

/// Bytes of transport blocks by CQI, summed over a UE's layers.
#[derive(Clone, Debug)]
pub struct BlockSizes {
    /// Bytes in one group, by CQI.
    pub group: [u32; 16],
    /// Bytes in all whole groups, by CQI.
    pub band: [u32; 16],
    /// Bytes in one group, in two groups and so on up to all groups, each by CQI.
    pub blocks: Vec<[u32; 16]>,
}

impl BlockSizes {
    /// Creates the sizes for a band with this number of whole groups. `bytes` returns the bytes for a CQI and a number
    /// of groups.
    ///
    /// # Panics
    /// If `groups` is 0.
    #[must_use]
    pub fn new(groups: usize, bytes: impl Fn(usize, usize) -> u32) -> BlockSizes {
        let blocks: Vec<[u32; 16]> = (1..=groups)
            .map(|groups| std::array::from_fn(|cqi| if cqi == 0 { 0 } else { bytes(cqi, groups) }))
            .collect();
        BlockSizes { group: blocks[0], band: blocks[groups - 1], blocks }
    }
}

/// The inputs of a scheduler in a subframe.
#[allow(missing_debug_implementations, reason = "a view")]
pub struct SubframeContext<'a> {
    /// Number of whole groups of the band.
    pub groups: usize,
    /// Groups without a retransmission.
    pub free: GroupSet,
    /// UEs with waiting data, a free HARQ process and no retransmission in this subframe, in order of RNTI.
    pub active: &'a [u16],
    /// Bytes by CQI, indexed by a UE's number of layers minus one.
    pub rates: &'a [BlockSizes; 2],
    /// Number of layers of each UE.
    pub layers: &'a [u8],
    /// Channel reports.
    pub channel: &'a mut dyn ChannelReports,
    /// Waiting data.
    pub queues: &'a dyn QueueReports,
}

impl SubframeContext<'_> {
    /// Returns the index into [`rates`](SubframeContext::rates) for this UE: its number of layers minus one.
    #[must_use]
    pub fn layer_index(&self, ue: u16) -> usize {
        usize::from(self.layers[usize::from(ue)]) - 1
    }

    /// Returns the transport block sizes of this UE.
    #[must_use]
    pub fn rates(&self, ue: u16) -> &BlockSizes {
        &self.rates[self.layer_index(ue)]
    }
}

/// Returns the numbers of the groups in a set, in ascending order.
pub fn group_indices(groups: GroupSet) -> impl Iterator<Item = usize> {
    let mut rest = groups;
    std::iter::from_fn(move || {
        let lowest = rest.trailing_zeros();
        // An empty set stays empty.
        rest &= rest.wrapping_sub(1);
        (lowest < GroupSet::BITS).then_some(lowest as usize)
    })
}

/// The bit rates of a UE's bearers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BitRateLimits {
    /// Total guaranteed bit rate of the bearers in bit/s; 0 if there is none.
    pub guaranteed_bits_per_second: u64,
    /// Total maximum bit rate of the bearers in bit/s; 0 if there is none.
    pub maximum_bits_per_second: u64,
}

/// Why a scheduler cannot serve a UE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionError {
    /// The UE has a guaranteed bit rate, which this scheduler does not support.
    GuaranteedBitRateUnsupported,
    /// The UE has no maximum bit rate, which this scheduler requires.
    MissingMaximumBitRate,
}

impl fmt::Display for AdmissionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            AdmissionError::GuaranteedBitRateUnsupported => {
                "the UE has a guaranteed bit rate, which this scheduler does not support; expected pss or cqa"
            }
            AdmissionError::MissingMaximumBitRate => {
                "the UE has no maximum bit rate, from which this scheduler computes shares; expected at least 8 bit/s"
            }
        })
    }
}

impl std::error::Error for AdmissionError {}

/// A downlink scheduler.
pub trait Scheduler: Send {
    /// Whether it supports guaranteed bit rates.
    fn supports_guaranteed_bit_rate(&self) -> bool {
        false
    }

    /// Checks that a UE with these bit rates can be attached.
    ///
    /// # Errors
    /// If the scheduler does not support them.
    fn admit(&self, promise: &BitRateLimits) -> Result<(), AdmissionError> {
        if promise.guaranteed_bits_per_second > 0 && !self.supports_guaranteed_bit_rate() {
            return Err(AdmissionError::GuaranteedBitRateUnsupported);
        }
        Ok(())
    }

    /// Returns the scheduler's past average throughputs; `None` if it has none. The default implementations of the
    /// following methods maintain them.
    fn averages(&mut self) -> Option<&mut Averages> {
        None
    }

    /// Attaches a UE. UEs are numbered from 0 in order of RNTI.
    fn attach(&mut self, _promise: BitRateLimits) {
        if let Some(averages) = self.averages() {
            averages.attach();
        }
    }

    /// Writes the owner of each group, [`NO_OWNER`] if there is none. Only free groups are assigned, only to active
    /// UEs, and only if the UE's CQI in the group is above 0.
    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]);

    /// Reports that a UE got transport blocks with `bytes` bytes of new data in this subframe. It is called after
    /// `allocate` of the same subframe.
    fn on_served(&mut self, ue: u16, bytes: u32) {
        if let Some(averages) = self.averages() {
            averages.served(ue, bytes);
        }
    }

    /// Advances by a number of subframes, the first of which is that of the last call of `allocate` or `on_served`.
    fn on_subframes_elapsed(&mut self, subframes: u64) {
        if let Some(averages) = self.averages() {
            let _ = averages.on_subframes_elapsed(subframes);
        }
    }

    /// Whether the MCS of a transport block follows the wideband CQI instead of the lowest CQI of its groups.
    fn uses_wideband_mcs(&self) -> bool {
        false
    }
}
