//! Downlink schedulers: which UE gets which resource block groups of a subframe.
//!
//! A scheduler is asked once per subframe in which somebody waits ([`Scheduler::allocate`]), told who was served
//! ([`Scheduler::served`]), and then that subframes have passed ([`Scheduler::passed`]), which may be many where nobody
//! waited. Retransmissions come before it: their groups are not free.
//!
//! Reports are made when they are read ([`Channel`]): a scheduler that need not look at a UE should not.
//!
//! [`catalogue`] has them by name.
//!
//! # A scheduler of your own
//!
//! A file of its own in this folder, headed by the model in words, with a type that implements [`Scheduler`], and an entry
//! in `catalogue.rs`. All that a scheduler sees of a subframe is in [`Subframe`]. What it keeps from one to the next is its
//! own business, as long as the same calls give the same groups. This one serves the UE whose oldest packet has waited
//! longest, with the whole band:
//!
//! ```
//! use fullpipe_lte::scheduler::{
//!     Channel, MOST_GROUPS, NOBODY, Promise, Queues, Rates, Scheduler, Subframe, Waiting, indices,
//! };
//!
//! struct FirstCome;
//!
//! impl Scheduler for FirstCome {
//!     fn attach(&mut self, _promise: Promise) {}
//!
//!     fn allocate(&mut self, subframe: &mut Subframe<'_>, owners: &mut [u16; MOST_GROUPS]) {
//!         owners.fill(NOBODY);
//!         let mut longest = None;
//!         for &ue in subframe.active {
//!             let waited = subframe.queues.waiting(ue).head_of_line_ms;
//!             // The report is read last, and of UEs only that could be chosen. A tie stays with the lowest RNTI.
//!             if longest.is_none_or(|(most, _)| waited > most) && subframe.channel.wideband(ue) > 0 {
//!                 longest = Some((waited, ue));
//!             }
//!         }
//!         let Some((_, ue)) = longest else { return };
//!         for k in indices(subframe.free) {
//!             owners[k] = ue;
//!         }
//!     }
//!
//!     fn served(&mut self, _ue: u16, _bytes: u32) {}
//!
//!     fn passed(&mut self, _subframes: u64) {}
//!
//!     fn wideband_mcs(&self) -> bool {
//!         true
//!     }
//! }
//!
//! // Three UEs, the first of them out of range.
//! struct Reports;
//!
//! impl Channel for Reports {
//!     fn wideband(&mut self, ue: u16) -> u8 {
//!         [0, 7, 15][usize::from(ue)]
//!     }
//!     fn subbands(&mut self, _ue: u16) -> &[u8; MOST_GROUPS] {
//!         unreachable!("this scheduler does not look at single groups")
//!     }
//!     fn ceiling(&self, _ue: u16) -> u8 {
//!         15
//!     }
//! }
//!
//! struct Buffers;
//!
//! impl Queues for Buffers {
//!     fn waiting(&self, ue: u16) -> Waiting {
//!         Waiting { bytes: 1400, head_of_line_ms: [50, 20, 20][usize::from(ue)] }
//!     }
//! }
//!
//! let rates = [1, 2].map(|layers| Rates::new(12, |cqi, groups| (10 * cqi * groups * layers) as u32));
//! let mut owners = [NOBODY; MOST_GROUPS];
//! let mut subframe = Subframe {
//!     groups: 12,
//!     free: 0b1111_1111_0011, // A retransmission has groups 2 and 3.
//!     active: &[0, 1, 2],
//!     rates: &rates,
//!     layers: &[1, 1, 1],
//!     channel: &mut Reports,
//!     queues: &Buffers,
//! };
//! FirstCome.allocate(&mut subframe, &mut owners);
//! assert_eq!(owners[..5], [1, 1, NOBODY, NOBODY, 1]);
//! assert_eq!(owners[12..], [NOBODY; 20]);
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

/// Most resource block groups that a bandwidth has (25 at 20 MHz), rounded up to whole vectors.
pub const MOST_GROUPS: usize = 32;

/// A set of resource block groups: bit k is group k.
pub type Groups = u32;

/// The owner of a group that nobody got.
pub const NOBODY: u16 = u16::MAX;

/// What a UE has reported of its channel, in the reports that the eNB has when it schedules.
pub trait Channel {
    /// CQI of the whole band, 0 to 15; 0: do not schedule.
    fn wideband(&mut self, ue: u16) -> u8;

    /// CQI of each group; 0 beyond the last.
    fn subbands(&mut self, ue: u16) -> &[u8; MOST_GROUPS];

    /// The CQI that all groups have, where that is known without a look at each.
    fn even(&mut self, _ue: u16) -> Option<u8> {
        None
    }

    /// Neither wideband nor any subband CQI of this UE is higher. Costs nothing.
    fn ceiling(&self, ue: u16) -> u8;

    /// Whether ceilings are the same in all subframes.
    fn ceilings_stay(&self) -> bool {
        false
    }

    /// Writes ceilings of this subframe's reports alone, for as many UEs.
    fn ceilings_now(&mut self, ues: &[u16], ceilings: &mut [u8]) {
        for (ceiling, &ue) in ceilings.iter_mut().zip(ues) {
            *ceiling = self.ceiling(ue);
        }
    }

    /// Upper bounds of the CQI of each group, and the groups in which the CQI may be lower.
    fn bounds(&mut self, ue: u16) -> (&[u8; MOST_GROUPS], Groups) {
        (self.subbands(ue), 0)
    }

    /// CQI of these groups, as [`subbands`](Channel::subbands) has them; of the others, upper bounds.
    fn subbands_of(&mut self, ue: u16, _groups: Groups) -> &[u8; MOST_GROUPS] {
        self.subbands(ue)
    }
}

/// What waits for a UE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Bytes that the scheduler believes to wait: new data, retransmissions and status reports of all bearers.
    pub bytes: u32,
    /// For how long the oldest packet has waited, milliseconds.
    pub head_of_line_ms: u32,
}

/// What waits for all UEs.
pub trait Queues {
    /// What waits for this UE.
    fn waiting(&self, ue: u16) -> Waiting;

    /// The part of it on bearers with a guaranteed bit rate; nothing unless the queues know bearers.
    fn waiting_guaranteed(&self, _ue: u16) -> Waiting {
        Waiting::default()
    }

    /// The part of it on bearers without one.
    fn waiting_best_effort(&self, ue: u16) -> Waiting {
        self.waiting(ue)
    }
}

/// Bytes of transport blocks by CQI, summed over a UE's layers.
#[derive(Clone, Debug)]
pub struct Rates {
    /// Of one group, by CQI.
    pub group: [u32; 16],
    /// Of all whole groups, by CQI.
    pub band: [u32; 16],
    /// Of one group, of two and so on up to all, by CQI.
    pub blocks: Vec<[u32; 16]>,
}

impl Rates {
    /// Rates of a band of so many whole groups, where a CQI and a number of groups come to so many bytes.
    ///
    /// # Panics
    /// If there is no group.
    #[must_use]
    pub fn new(groups: usize, bytes: impl Fn(usize, usize) -> u32) -> Rates {
        let blocks: Vec<[u32; 16]> = (1..=groups)
            .map(|groups| std::array::from_fn(|cqi| if cqi == 0 { 0 } else { bytes(cqi, groups) }))
            .collect();
        Rates { group: blocks[0], band: blocks[groups - 1], blocks }
    }
}

/// What a scheduler gets to see of a subframe.
#[allow(missing_debug_implementations, reason = "a view")]
pub struct Subframe<'a> {
    /// Whole groups of the band.
    pub groups: usize,
    /// Those that no retransmission has.
    pub free: Groups,
    /// UEs with something waiting, a free HARQ process and no retransmission in this subframe, in order of RNTI.
    pub active: &'a [u16],
    /// Bytes by CQI and by a UE's number of layers less one.
    pub rates: &'a [Rates; 2],
    /// Layers of each UE.
    pub layers: &'a [u8],
    /// Reports.
    pub channel: &'a mut dyn Channel,
    /// Queues.
    pub queues: &'a dyn Queues,
}

impl Subframe<'_> {
    /// Index in [`rates`](Subframe::rates) of this UE's.
    #[must_use]
    pub fn layer(&self, ue: u16) -> usize {
        usize::from(self.layers[usize::from(ue)]) - 1
    }

    /// Rates of this UE.
    #[must_use]
    pub fn rates(&self, ue: u16) -> &Rates {
        &self.rates[self.layer(ue)]
    }
}

/// The numbers of the groups in a set, from the lowest up.
pub fn indices(groups: Groups) -> impl Iterator<Item = usize> {
    let mut rest = groups;
    std::iter::from_fn(move || {
        let lowest = rest.trailing_zeros();
        // Nothing is cleared of an empty set.
        rest &= rest.wrapping_sub(1);
        (lowest < Groups::BITS).then_some(lowest as usize)
    })
}

/// What a UE is promised: of the bearer that asks for most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promise {
    /// Guaranteed bit rate of its bearers together, bit/s; 0 without.
    pub guaranteed_bits_per_second: u64,
    /// Maximum bit rate of its bearers together, bit/s; 0 without limit.
    pub maximum_bits_per_second: u64,
}

/// Why a scheduler cannot serve a UE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is to hold a guaranteed bit rate, which this scheduler does not know of.
    NoGuarantees,
    /// This scheduler shares by maximum bit rates, of which the UE has none.
    NeedsMaximum,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refusal::NoGuarantees => {
                "the UE has a bearer with a guaranteed bit rate, which this scheduler cannot hold (pss and cqa can)"
            }
            Refusal::NeedsMaximum => {
                "the UE has no maximum bit rate of at least 1 byte/s, which is what this scheduler shares by"
            }
        })
    }
}

impl std::error::Error for Refusal {}

/// A downlink scheduler.
pub trait Scheduler: Send {
    /// Whether it knows of guaranteed bit rates.
    fn supports_guaranteed_bit_rate(&self) -> bool {
        false
    }

    /// Whether a UE can be attached with this promise.
    ///
    /// # Errors
    /// The scheduler does not know how to keep it.
    fn admit(&self, promise: &Promise) -> Result<(), Refusal> {
        if promise.guaranteed_bits_per_second > 0 && !self.supports_guaranteed_bit_rate() {
            return Err(Refusal::NoGuarantees);
        }
        Ok(())
    }

    /// The past average throughputs that it keeps, if any; the next methods maintain them unless the scheduler has its own.
    fn averages(&mut self) -> Option<&mut Averages> {
        None
    }

    /// A UE has been attached; UEs are numbered from 0 in order of RNTI.
    fn attach(&mut self, _promise: Promise) {
        if let Some(averages) = self.averages() {
            averages.attach();
        }
    }

    /// Writes the owner of each group, [`NOBODY`] where there is none. Only free groups are given away, only to active UEs,
    /// and to none whose CQI there is 0.
    fn allocate(&mut self, subframe: &mut Subframe<'_>, owners: &mut [u16; MOST_GROUPS]);

    /// In this subframe the UE was given transport blocks of so many bytes, new data only. Comes after `allocate` of the
    /// same subframe.
    fn served(&mut self, ue: u16, bytes: u32) {
        if let Some(averages) = self.averages() {
            averages.served(ue, bytes);
        }
    }

    /// So many subframes have passed, the one of the last `allocate` or `served` first.
    fn passed(&mut self, subframes: u64) {
        if let Some(averages) = self.averages() {
            let _ = averages.passed(subframes);
        }
    }

    /// Whether a transport block's MCS follows the wideband CQI instead of the lowest of its groups'.
    fn wideband_mcs(&self) -> bool {
        false
    }
}
