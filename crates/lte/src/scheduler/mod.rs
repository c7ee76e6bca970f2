//! Downlink schedulers: which UE gets which resource block groups of a subframe.
//!
//! A scheduler is asked once per subframe in which somebody waits ([`Scheduler::allocate`]), told who was served
//! ([`Scheduler::served`]), and then that subframes have passed ([`Scheduler::passed`]), which may be many where nobody
//! waited. Retransmissions come before it: their groups are not free.
//!
//! Reports are made when they are read ([`Channel`]): a scheduler that need not look at a UE should not.

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

    /// Neither wideband nor any subband CQI of this UE is higher. Costs nothing.
    fn ceiling(&self, ue: u16) -> u8;
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
}

/// Bytes of transport blocks by CQI, summed over a UE's layers.
#[derive(Clone, Debug)]
pub struct Rates {
    /// Of one group, by CQI.
    pub group: [u32; 16],
    /// Of all whole groups, by CQI.
    pub band: [u32; 16],
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

/// What a UE is promised: of the bearer that asks for most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Promise {
    /// Guaranteed bit rate of its bearers together, bit/s; 0 without.
    pub guaranteed_bits_per_second: u64,
    /// Maximum bit rate of its bearers together, bit/s; 0 without limit.
    pub maximum_bits_per_second: u64,
}

/// A downlink scheduler.
pub trait Scheduler: Send {
    /// A UE has been attached; UEs are numbered from 0 in order of RNTI.
    fn attach(&mut self, promise: Promise);

    /// Writes the owner of each group, [`NOBODY`] where there is none. Only free groups are given away, only to active UEs,
    /// and to none whose CQI there is 0.
    fn allocate(&mut self, subframe: &mut Subframe<'_>, owners: &mut [u16; MOST_GROUPS]);

    /// In this subframe the UE was given transport blocks of so many bytes.
    fn served(&mut self, ue: u16, bytes: u32);

    /// So many subframes have passed, the one of the last `allocate` or `served` first.
    fn passed(&mut self, subframes: u64);

    /// Whether a transport block's MCS follows the wideband CQI instead of the lowest of its groups'.
    fn wideband_mcs(&self) -> bool;
}
