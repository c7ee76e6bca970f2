//! The downlink schedulers by name.

use super::{
    ChannelAndQosAware, ChannelAwareness, FdBlindEqualThroughput, FdMaximumThroughput, FdTokenBank, FrequencyMetric,
    PrioritySet, ProportionalFair, RoundRobin, Scheduler, TdBlindEqualThroughput, TdMaximumThroughput, TdTokenBank,
    ThroughputToAverage, TokenBankLimits,
};
use fullpipe_schema::Choice;
use fullpipe_schema::component::Declaration;
use std::fmt;

/// A scheduler of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerEntry {
    /// The name and description.
    pub declaration: Declaration,
    /// The scenario keys of a cell that are parameters of the scheduler.
    pub parameters: &'static [&'static str],
    /// Whether the scheduler supports guaranteed bit rates.
    pub supports_guaranteed_bit_rate: bool,
    /// Creates the scheduler of one cell.
    pub make: fn(&SchedulerParameters) -> Box<dyn Scheduler>,
}

const SURVEY: &str = "Capozzi et al., IEEE Communications Surveys and Tutorials (2012)";
const TOKEN_KEYS: &[&str] = &["token_pool", "token_credit", "token_debt"];
const TOKEN_BANK: &str = "Wong, Tang and Leung, IJCS 17 (2004); Bokhari et al., EURASIP JWCN (2009)";

const fn entry_of(
    name: &'static str,
    text: &'static str,
    source: &'static str,
    make: fn(&SchedulerParameters) -> Box<dyn Scheduler>,
) -> SchedulerEntry {
    let declaration = Declaration { name, text, source, ..Declaration::EMPTY };
    SchedulerEntry { declaration, parameters: &[], supports_guaranteed_bit_rate: false, make }
}

/// All schedulers, in the order in which messages and documentation list them.
pub const ENTRIES: &[SchedulerEntry] = &[
    entry_of("rr", "Round robin: the same number of resource block groups to each UE in turn.", SURVEY, |_| {
        Box::new(RoundRobin::default())
    }),
    entry_of(
        "pf",
        "Proportional fair: each group to the UE with the highest rate in it over its average throughput.",
        "Sesia, Toufik and Baker, LTE: the UMTS Long Term Evolution (2009)",
        |_| Box::new(ProportionalFair::default()),
    ),
    entry_of(
        "fd-mt",
        "Maximum throughput: each group to the UE with the highest rate in it; others starve.",
        SURVEY,
        |_| Box::new(FdMaximumThroughput::default()),
    ),
    entry_of(
        "td-mt",
        "Maximum throughput: the whole band to the UE with the highest rate; others starve.",
        SURVEY,
        |_| Box::new(TdMaximumThroughput::default()),
    ),
    entry_of(
        "tta",
        "Throughput to average: each group to the UE with the highest rate in it over its wideband rate.",
        SURVEY,
        |_| Box::new(ThroughputToAverage::default()),
    ),
    entry_of(
        "fd-bet",
        "Blind equal throughput: each group to the UE with the smallest expected average.",
        "Kela et al., ISWPC (2008)",
        |_| Box::new(FdBlindEqualThroughput::default()),
    ),
    entry_of(
        "td-bet",
        "Blind equal throughput: the whole band to the UE with the smallest average.",
        "Kela et al., ISWPC (2008)",
        |_| Box::new(TdBlindEqualThroughput::default()),
    ),
    SchedulerEntry {
        parameters: TOKEN_KEYS,
        supports_guaranteed_bit_rate: false,
        ..entry_of(
            "fd-tbfq",
            "Token bank fair queueing: the best groups within a budget of tokens, which a UE earns at its maximum bit rate.",
            TOKEN_BANK,
            |parameters| Box::new(FdTokenBank::new(parameters.token_bank)),
        )
    },
    SchedulerEntry {
        parameters: TOKEN_KEYS,
        supports_guaranteed_bit_rate: false,
        ..entry_of(
            "td-tbfq",
            "Token bank fair queueing: the whole band to the UE that has lent most tokens relative to its maximum bit rate.",
            TOKEN_BANK,
            |parameters| Box::new(TdTokenBank::new(parameters.token_bank)),
        )
    },
    SchedulerEntry {
        parameters: &["frequency_metric", "multiplexed_ues"],
        supports_guaranteed_bit_rate: true,
        ..entry_of(
            "pss",
            "Priority sets: UEs below their guaranteed bit rate first, the others proportionally fair.",
            "Mongha et al., VTC (2008)",
            |parameters| Box::new(PrioritySet::new(parameters.frequency_metric, parameters.multiplexed_ues)),
        )
    },
    SchedulerEntry {
        parameters: &["channel_awareness", "waiting_unit"],
        supports_guaranteed_bit_rate: true,
        ..entry_of(
            "cqa",
            "Channel and QoS aware: guaranteed bit rates and long waits first, then by delay, rate and channel.",
            "Bojovic and Baldo, SSD (2014)",
            |parameters| Box::new(ChannelAndQosAware::new(parameters.channel_awareness, parameters.waiting_unit_ms)),
        )
    },
];

/// Parameters of the schedulers. A scheduler ignores the parameters of other schedulers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerParameters {
    /// The limits of `fd-tbfq` and `td-tbfq`.
    pub token_bank: TokenBankLimits,
    /// The metric of a group in `pss`.
    pub frequency_metric: FrequencyMetric,
    /// Number of UEs that the time-domain step of `pss` selects; 0 if it selects half of the active UEs.
    pub multiplexed_ues: u16,
    /// The metric of a group in `cqa`.
    pub channel_awareness: ChannelAwareness,
    /// Unit of waiting times that defines the classes of `cqa`, in milliseconds.
    pub waiting_unit_ms: u32,
}

impl Default for SchedulerParameters {
    fn default() -> SchedulerParameters {
        SchedulerParameters {
            token_bank: TokenBankLimits::default(),
            frequency_metric: FrequencyMetric::default(),
            multiplexed_ues: 0,
            channel_awareness: ChannelAwareness::default(),
            waiting_unit_ms: 1000,
        }
    }
}

/// The error for an unknown scheduler name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownScheduler {
    /// The name that was found.
    pub found: String,
}

impl fmt::Display for UnknownScheduler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = ENTRIES.iter().map(|entry| entry.declaration.name).collect();
        write!(formatter, "unknown LTE scheduler `{}` (expected one of {})", self.found, known.join(", "))
    }
}

impl std::error::Error for UnknownScheduler {}

/// Returns the scheduler with this name; `None` if there is none.
#[must_use]
pub fn find_scheduler(name: &str) -> Option<&'static SchedulerEntry> {
    ENTRIES.iter().find(|entry| entry.declaration.name == name)
}

/// Creates the scheduler of one cell.
///
/// # Errors
/// If there is no scheduler with this name.
///
/// ```
/// use fullpipe_lte::scheduler::{BitRateLimits, catalogue};
/// let parameters = catalogue::SchedulerParameters::default();
/// let scheduler = catalogue::create_scheduler("pf", &parameters).unwrap();
/// // For example, a voice bearer.
/// let voice = BitRateLimits { guaranteed_bits_per_second: 64_000, maximum_bits_per_second: 0 };
/// assert_eq!(
///     scheduler.admit(&voice).unwrap_err().to_string(),
///     "the UE has a guaranteed bit rate, which this scheduler does not support; expected pss or cqa"
/// );
/// assert!(catalogue::create_scheduler("pss", &parameters).unwrap().admit(&voice).is_ok());
/// assert!(catalogue::create_scheduler("fifo", &parameters).is_err());
/// ```
pub fn create_scheduler(name: &str, parameters: &SchedulerParameters) -> Result<Box<dyn Scheduler>, UnknownScheduler> {
    let found = find_scheduler(name).ok_or_else(|| UnknownScheduler { found: name.to_owned() })?;
    Ok((found.make)(parameters))
}

/// Returns the declarations of the schedulers.
pub fn declarations() -> impl Iterator<Item = &'static Declaration> {
    ENTRIES.iter().map(|entry| &entry.declaration)
}

/// Returns the names of the schedulers as values of a key.
pub const fn choices() -> [Choice; ENTRIES.len()] {
    let mut list = [Choice::new("", ""); ENTRIES.len()];
    let mut n = 0;
    while n < ENTRIES.len() {
        list[n] = ENTRIES[n].declaration.choice();
        n += 1;
    }
    list
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Cell, GROUPS, Reports, Source, full, rates, shares};
    use super::super::{
        AdmissionError, BitRateLimits, GroupSet, MAX_GROUPS, NO_OWNER, QueueReports, QueueStatus, SubframeContext,
        group_indices,
    };
    use super::*;
    use proptest::prelude::*;

    fn all() -> impl Iterator<Item = (&'static str, Box<dyn Scheduler>)> {
        let other = SchedulerParameters {
            frequency_metric: FrequencyMetric::CoItA,
            channel_awareness: ChannelAwareness::ProportionalFair,
            ..SchedulerParameters::default()
        };
        [SchedulerParameters::default(), other].into_iter().flat_map(|parameters| {
            ENTRIES.iter().map(move |entry| {
                (entry.declaration.name, create_scheduler(entry.declaration.name, &parameters).expect("a known name"))
            })
        })
    }

    #[test]
    fn catalogue_contains_all_schedulers() {
        let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.declaration.name).collect();
        assert_eq!(names.join(" "), "rr pf fd-mt td-mt tta fd-bet td-bet fd-tbfq td-tbfq pss cqa");
        assert_eq!(
            create_scheduler("fifo", &SchedulerParameters::default()).err().expect("not a name").to_string(),
            "unknown LTE scheduler `fifo` (expected one of rr, pf, fd-mt, td-mt, tta, fd-bet, td-bet, fd-tbfq, \
             td-tbfq, pss, cqa)"
        );
        assert!(find_scheduler("fifo").is_none());
    }

    #[test]
    fn guaranteed_rates_are_accepted_by_schedulers_that_support_them() {
        let promise = BitRateLimits { guaranteed_bits_per_second: 64_000, maximum_bits_per_second: 128_000 };
        for (name, scheduler) in all() {
            let can = find_scheduler(name).expect("a known name").supports_guaranteed_bit_rate;
            assert_eq!(can, ["pss", "cqa"].contains(&name));
            assert_eq!(scheduler.supports_guaranteed_bit_rate(), can);
            assert_eq!(
                scheduler.admit(&promise),
                if can { Ok(()) } else { Err(AdmissionError::GuaranteedBitRateUnsupported) }
            );
        }
    }

    /// Waiting data of each UE.
    struct Waits(Vec<QueueStatus>);

    impl QueueReports for Waits {
        fn queue_status(&self, ue: u16) -> QueueStatus {
            self.0[usize::from(ue)]
        }
    }

    const UES: usize = 20;

    /// One subframe of a random run. Each UE's state is derived from one number.
    #[derive(Clone, Debug)]
    struct Step {
        ues: Vec<u64>,
        free: GroupSet,
        subframes: u64,
    }

    fn step() -> impl Strategy<Value = Step> {
        let gap = prop_oneof![8 => Just(1u64), 2 => 1u64..200, 1 => 1u64..20_000];
        let free = prop_oneof![Just((1 << GROUPS) - 1), any::<GroupSet>().prop_map(|bits| bits & ((1 << GROUPS) - 1))];
        (prop::collection::vec(any::<u64>(), UES), free, gap).prop_map(|(ues, free, subframes)| Step {
            ues,
            free,
            subframes,
        })
    }

    /// Returns the groups that a scheduler assigned in each step, after a check of the rules for all schedulers.
    fn run(name: &str, mut scheduler: Box<dyn Scheduler>, steps: &[Step]) -> Vec<[u16; MAX_GROUPS]> {
        let layers: Vec<u8> = (0..UES).map(|ue| 1 + (ue % 4 == 0) as u8).collect();
        let rates = rates();
        for ue in 0..UES as u64 {
            let guaranteed_bits_per_second =
                if find_scheduler(name).is_some_and(|entry| entry.supports_guaranteed_bit_rate) {
                    ue % 3 * 400_000
                } else {
                    0
                };
            let promise = BitRateLimits { guaranteed_bits_per_second, maximum_bits_per_second: 100_000 * (1 + ue) };
            scheduler.admit(&promise).expect("the scheduler supports the promise");
            scheduler.attach(promise);
        }
        let mut given = Vec::new();
        for step in steps {
            let (mut reports, mut active, mut waits) = (Reports::default(), Vec::new(), Vec::new());
            for (ue, &bits) in (0..).zip(&step.ues) {
                let mean = (bits & 15) as u8;
                let row: [u8; GROUPS] = std::array::from_fn(|k| mean.saturating_sub((bits >> (4 + 2 * k)) as u8 & 3));
                reports.add(mean, &row);
                let bytes = if bits >> 30 & 3 == 0 { 0 } else { (bits >> 40) as u32 & 0xffff };
                if bytes > 0 {
                    active.push(ue);
                }
                waits.push(QueueStatus { bytes, head_of_line_ms: (bits >> 52) as u32 });
            }
            let mut owners = [0; MAX_GROUPS];
            scheduler.allocate(
                &mut SubframeContext {
                    groups: GROUPS,
                    free: step.free,
                    active: &active,
                    rates: &rates,
                    layers: &layers,
                    channel: &mut reports,
                    queues: &Waits(waits),
                },
                &mut owners,
            );
            for (ue, groups) in shares(&owners) {
                assert!(active.contains(&ue), "{name}: {ue} is not active");
                assert_eq!(groups & !step.free, 0, "{name}: not free");
                let index = usize::from(ue);
                let cqi = if scheduler.uses_wideband_mcs() {
                    reports.wideband[index]
                } else {
                    group_indices(groups).map(|k| reports.subbands[index][k]).min().expect("a group")
                };
                assert!(cqi > 0, "{name}: {ue} is out of range");
                let blocks = &rates[usize::from(layers[index]) - 1].blocks;
                scheduler.on_served(ue, blocks[groups.count_ones() as usize - 1][usize::from(cqi)]);
            }
            scheduler.on_subframes_elapsed(step.subframes);
            given.push(owners);
        }
        given
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        /// Only free groups are assigned, only to active UEs with a CQI above 0 in them, and the result is
        /// reproducible.
        #[test]
        fn all_keep_to_the_rules(steps in prop::collection::vec(step(), 1..100)) {
            for ((name, scheduler), (_, again)) in all().zip(all()) {
                let given = run(name, scheduler, &steps);
                prop_assert_eq!(&given, &run(name, again, &steps), "{}", name);
            }
        }
    }

    /// No group stays empty if a UE with enough data could use it. Exceptions are round robin, whose division leaves a
    /// rest, and token bank fair queueing, which has a budget.
    #[test]
    fn no_usable_group_is_left_empty() {
        for (name, scheduler) in all().filter(|(name, _)| !["rr", "fd-tbfq"].contains(name)) {
            let mut cell = Cell::new(scheduler);
            for cqi in [0, 15, 8, 12, 1] {
                cell.add(
                    cqi,
                    Source::Saturated,
                    BitRateLimits { maximum_bits_per_second: 8_000, ..BitRateLimits::default() },
                );
            }
            cell.free = 0b1101_1110_1111;
            for _ in 0..300 {
                let owners = cell.subframe();
                assert!(group_indices(cell.free).all(|k| owners[k] != NO_OWNER), "{name}");
            }
        }
    }

    /// Under round robin, proportional fair and blind equal throughput no UE starves, although the best channel is
    /// thirty times the worst: in any 150 ms each of 12 UEs is served.
    #[test]
    fn no_ue_starves_under_fair_schedulers() {
        for name in ["rr", "pf", "fd-bet", "td-bet", "td-tbfq"] {
            let mut cell = Cell::new(create_scheduler(name, &SchedulerParameters::default()).expect("a known name"));
            for cqi in [15, 1, 12, 3, 15, 15, 15, 7, 2, 9, 15, 1] {
                let promise = BitRateLimits { maximum_bits_per_second: 8_000_000, ..BitRateLimits::default() };
                cell.add(cqi, Source::Saturated, promise);
            }
            for window in 0..40 {
                let found = cell.run(150);
                assert!(found.iter().all(|&rate| rate > 0.0), "{name} {window} {found:?}");
            }
        }
    }

    /// A single UE has the whole band, even with little data, except with schedulers that consider the waiting data.
    /// With much data it has all of the band's rate.
    #[test]
    fn single_ue_gets_the_whole_band() {
        for (name, scheduler) in all() {
            let promise = BitRateLimits { maximum_bits_per_second: 80_000_000, ..BitRateLimits::default() };
            let mut cell = Cell::new(scheduler);
            cell.add(11, Source::Saturated, promise);
            cell.run(10);
            assert_eq!(cell.run(100), [full(11)], "{name}");
        }
        for (name, scheduler) in all() {
            let promise = BitRateLimits { maximum_bits_per_second: 80_000_000, ..BitRateLimits::default() };
            let mut cell = Cell::new(scheduler);
            cell.add(11, Source::Constant(QueueStatus { bytes: 60, head_of_line_ms: 1 }), promise);
            cell.run(10);
            let groups = if ["cqa", "fd-tbfq"].contains(&name) { 1 } else { (1 << GROUPS) - 1 };
            assert_eq!(shares(&cell.subframe()), [(0, groups)], "{name}");
        }
    }

    /// Without UEs or groups nothing is assigned.
    #[test]
    fn nothing_is_assigned_without_ues_or_groups() {
        for (name, scheduler) in all() {
            let mut cell = Cell::new(scheduler);
            assert_eq!(cell.subframe(), [NO_OWNER; MAX_GROUPS], "{name}");
            cell.add(
                15,
                Source::Saturated,
                BitRateLimits { maximum_bits_per_second: 8_000, ..BitRateLimits::default() },
            );
            cell.add(
                0,
                Source::Saturated,
                BitRateLimits { maximum_bits_per_second: 8_000, ..BitRateLimits::default() },
            );
            // The UE is out of range, although its bound would permit otherwise.
            let mut far = Cell::new(create_scheduler(name, &SchedulerParameters::default()).expect("a known name"));
            for _ in 0..3 {
                far.add(
                    0,
                    Source::Saturated,
                    BitRateLimits { maximum_bits_per_second: 8_000, ..BitRateLimits::default() },
                );
            }
            far.reports.slack = vec![3; 3];
            assert!((0..20).all(|_| far.subframe() == [NO_OWNER; MAX_GROUPS]), "{name}");
            cell.free = 0;
            assert_eq!(cell.subframe(), [NO_OWNER; MAX_GROUPS], "{name}");
        }
    }
}
