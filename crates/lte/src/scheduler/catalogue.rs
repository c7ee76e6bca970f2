//! The schedulers there are, by name.

use super::{
    ChannelAndQosAware, ChannelAwareness, FdBlindEqualThroughput, FdMaximumThroughput, FdTokenBank, FrequencyMetric,
    PrioritySet, ProportionalFair, RoundRobin, Scheduler, TdBlindEqualThroughput, TdMaximumThroughput, TdTokenBank,
    ThroughputToAverage, TokenBankLimits,
};
use fullpipe_schema::Choice;
use fullpipe_schema::component::Declaration;
use std::fmt;

/// A scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it declares of itself.
    pub declaration: Declaration,
    /// The keys of a cell that are its parameters.
    pub parameters: &'static [&'static str],
    /// Whether it can hold a guaranteed bit rate.
    pub supports_guaranteed_bit_rate: bool,
    /// A new one, for one cell.
    pub make: fn(&Parameters) -> Box<dyn Scheduler>,
}

const SURVEY: &str = "Capozzi et al., IEEE Communications Surveys and Tutorials (2012)";
const TOKEN_KEYS: &[&str] = &["token_pool", "token_credit", "token_debt"];
const TOKEN_BANK: &str = "Wong, Tang and Leung, IJCS 17 (2004); Bokhari et al., EURASIP JWCN (2009)";

const fn entry_of(
    name: &'static str,
    text: &'static str,
    source: &'static str,
    make: fn(&Parameters) -> Box<dyn Scheduler>,
) -> Entry {
    let declaration = Declaration { name, text, source, ..Declaration::EMPTY };
    Entry { declaration, parameters: &[], supports_guaranteed_bit_rate: false, make }
}

/// Every scheduler that [`make`] knows, in the order of lists.
pub const ENTRIES: &[Entry] = &[
    entry_of("rr", "Round robin: the same number of resource block groups for each in turn.", SURVEY, |_| {
        Box::new(RoundRobin::default())
    }),
    entry_of(
        "pf",
        "Proportional fair: each group to the highest rate there over the average throughput.",
        "Sesia, Toufik and Baker, LTE: the UMTS Long Term Evolution (2009)",
        |_| Box::new(ProportionalFair::default()),
    ),
    entry_of("fd-mt", "Maximum throughput: each group to the highest rate there; others starve.", SURVEY, |_| {
        Box::new(FdMaximumThroughput::default())
    }),
    entry_of("td-mt", "Maximum throughput: the whole band to the highest rate; others starve.", SURVEY, |_| {
        Box::new(TdMaximumThroughput::default())
    }),
    entry_of(
        "tta",
        "Throughput to average: each group to the UE for which it is best compared with its own band.",
        SURVEY,
        |_| Box::new(ThroughputToAverage::default()),
    ),
    entry_of(
        "fd-bet",
        "Blind equal throughput: group by group to the smallest expected average.",
        "Kela et al., ISWPC (2008)",
        |_| Box::new(FdBlindEqualThroughput::default()),
    ),
    entry_of(
        "td-bet",
        "Blind equal throughput: the whole band to the smallest average.",
        "Kela et al., ISWPC (2008)",
        |_| Box::new(TdBlindEqualThroughput::default()),
    ),
    Entry {
        parameters: TOKEN_KEYS,
        supports_guaranteed_bit_rate: false,
        ..entry_of(
            "fd-tbfq",
            "Token bank fair queueing: best groups within a budget of tokens, earned at the maximum bit rate.",
            TOKEN_BANK,
            |parameters| Box::new(FdTokenBank::new(parameters.token_bank)),
        )
    },
    Entry {
        parameters: TOKEN_KEYS,
        supports_guaranteed_bit_rate: false,
        ..entry_of(
            "td-tbfq",
            "Token bank fair queueing: the whole band to who has lent most tokens for its maximum bit rate.",
            TOKEN_BANK,
            |parameters| Box::new(TdTokenBank::new(parameters.token_bank)),
        )
    },
    Entry {
        parameters: &["frequency_metric", "multiplexed_ues"],
        supports_guaranteed_bit_rate: true,
        ..entry_of(
            "pss",
            "Priority sets: who is below its guaranteed bit rate first, the rest proportionally fair.",
            "Mongha et al., VTC (2008)",
            |parameters| Box::new(PrioritySet::new(parameters.frequency_metric, parameters.multiplexed_ues)),
        )
    },
    Entry {
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

/// What can be set; a scheduler leaves aside what is not its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Of `fd-tbfq` and `td-tbfq`.
    pub token_bank: TokenBankLimits,
    /// What a group is worth in `pss`.
    pub frequency_metric: FrequencyMetric,
    /// UEs that pass the time domain of `pss`; 0: half of the active.
    pub multiplexed_ues: u16,
    /// What a group is worth in `cqa`.
    pub channel_awareness: ChannelAwareness,
    /// Unit of waiting times by which `cqa` tells classes apart, milliseconds.
    pub waiting_unit_ms: u32,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            token_bank: TokenBankLimits::default(),
            frequency_metric: FrequencyMetric::default(),
            multiplexed_ues: 0,
            channel_awareness: ChannelAwareness::default(),
            waiting_unit_ms: 1000,
        }
    }
}

/// There is no scheduler of this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownScheduler {
    /// What was asked for.
    pub found: String,
}

impl fmt::Display for UnknownScheduler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = ENTRIES.iter().map(|entry| entry.declaration.name).collect();
        write!(formatter, "unknown LTE scheduler `{}` (expected one of {})", self.found, known.join(", "))
    }
}

impl std::error::Error for UnknownScheduler {}

/// The entry of this name.
#[must_use]
pub fn entry(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.declaration.name == name)
}

/// A new scheduler, for one cell.
///
/// # Errors
/// If there is no scheduler of that name.
///
/// ```
/// use fullpipe_lte::scheduler::{Promise, catalogue};
/// let parameters = catalogue::Parameters::default();
/// let scheduler = catalogue::make("pf", &parameters).unwrap();
/// // A voice bearer, say.
/// let voice = Promise { guaranteed_bits_per_second: 64_000, maximum_bits_per_second: 0 };
/// assert_eq!(
///     scheduler.admit(&voice).unwrap_err().to_string(),
///     "the UE has a bearer with a guaranteed bit rate, which this scheduler cannot hold (pss and cqa can)"
/// );
/// assert!(catalogue::make("pss", &parameters).unwrap().admit(&voice).is_ok());
/// assert!(catalogue::make("fifo", &parameters).is_err());
/// ```
pub fn make(name: &str, parameters: &Parameters) -> Result<Box<dyn Scheduler>, UnknownScheduler> {
    let found = entry(name).ok_or_else(|| UnknownScheduler { found: name.to_owned() })?;
    Ok((found.make)(parameters))
}

/// What the schedulers declare.
pub fn declarations() -> impl Iterator<Item = &'static Declaration> {
    ENTRIES.iter().map(|entry| &entry.declaration)
}

/// The schedulers' names as the values of a key.
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
    use super::super::{Groups, MOST_GROUPS, NOBODY, Promise, Queues, Refusal, Subframe, Waiting, indices};
    use super::*;
    use proptest::prelude::*;

    fn all() -> impl Iterator<Item = (&'static str, Box<dyn Scheduler>)> {
        let other = Parameters {
            frequency_metric: FrequencyMetric::CoItA,
            channel_awareness: ChannelAwareness::ProportionalFair,
            ..Parameters::default()
        };
        [Parameters::default(), other].into_iter().flat_map(|parameters| {
            ENTRIES.iter().map(move |entry| {
                (entry.declaration.name, make(entry.declaration.name, &parameters).expect("a known name"))
            })
        })
    }

    #[test]
    fn the_contract_names_them_all() {
        let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.declaration.name).collect();
        assert_eq!(names.join(" "), "rr pf fd-mt td-mt tta fd-bet td-bet fd-tbfq td-tbfq pss cqa");
        assert_eq!(
            make("fifo", &Parameters::default()).err().expect("not a name").to_string(),
            "unknown LTE scheduler `fifo` (expected one of rr, pf, fd-mt, td-mt, tta, fd-bet, td-bet, fd-tbfq, \
             td-tbfq, pss, cqa)"
        );
        assert!(entry("fifo").is_none());
    }

    #[test]
    fn guarantees_are_for_those_that_can_hold_them() {
        let promise = Promise { guaranteed_bits_per_second: 64_000, maximum_bits_per_second: 128_000 };
        for (name, scheduler) in all() {
            let can = entry(name).expect("a known name").supports_guaranteed_bit_rate;
            assert_eq!(can, ["pss", "cqa"].contains(&name));
            assert_eq!(scheduler.supports_guaranteed_bit_rate(), can);
            assert_eq!(scheduler.admit(&promise), if can { Ok(()) } else { Err(Refusal::NoGuarantees) });
        }
    }

    /// What waits for each UE.
    struct Waits(Vec<Waiting>);

    impl Queues for Waits {
        fn waiting(&self, ue: u16) -> Waiting {
            self.0[usize::from(ue)]
        }
    }

    const UES: usize = 20;

    /// One subframe of a random run: each UE's state is made of one number.
    #[derive(Clone, Debug)]
    struct Step {
        ues: Vec<u64>,
        free: Groups,
        subframes: u64,
    }

    fn step() -> impl Strategy<Value = Step> {
        let gap = prop_oneof![8 => Just(1u64), 2 => 1u64..200, 1 => 1u64..20_000];
        let free = prop_oneof![Just((1 << GROUPS) - 1), any::<Groups>().prop_map(|bits| bits & ((1 << GROUPS) - 1))];
        (prop::collection::vec(any::<u64>(), UES), free, gap).prop_map(|(ues, free, subframes)| Step {
            ues,
            free,
            subframes,
        })
    }

    /// The groups that a scheduler gave in each step, checked for what every scheduler must keep to.
    fn run(name: &str, mut scheduler: Box<dyn Scheduler>, steps: &[Step]) -> Vec<[u16; MOST_GROUPS]> {
        let layers: Vec<u8> = (0..UES).map(|ue| 1 + (ue % 4 == 0) as u8).collect();
        let rates = rates();
        for ue in 0..UES as u64 {
            let guaranteed_bits_per_second =
                if entry(name).is_some_and(|entry| entry.supports_guaranteed_bit_rate) { ue % 3 * 400_000 } else { 0 };
            let promise = Promise { guaranteed_bits_per_second, maximum_bits_per_second: 100_000 * (1 + ue) };
            scheduler.admit(&promise).expect("it can");
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
                waits.push(Waiting { bytes, head_of_line_ms: (bits >> 52) as u32 });
            }
            let mut owners = [0; MOST_GROUPS];
            scheduler.allocate(
                &mut Subframe {
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
                let cqi = if scheduler.wideband_mcs() {
                    reports.wideband[index]
                } else {
                    indices(groups).map(|k| reports.subbands[index][k]).min().expect("a group")
                };
                assert!(cqi > 0, "{name}: {ue} is out of range");
                let blocks = &rates[usize::from(layers[index]) - 1].blocks;
                scheduler.served(ue, blocks[groups.count_ones() as usize - 1][usize::from(cqi)]);
            }
            scheduler.passed(step.subframes);
            given.push(owners);
        }
        given
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        /// Only free groups, only to active UEs in range there; and the same again from the same.
        #[test]
        fn all_keep_to_the_rules(steps in prop::collection::vec(step(), 1..100)) {
            for ((name, scheduler), (_, again)) in all().zip(all()) {
                let given = run(name, scheduler, &steps);
                prop_assert_eq!(&given, &run(name, again, &steps), "{}", name);
            }
        }
    }

    /// Groups do not stay empty that somebody could use, of whoever waits for much. Round robin's division leaves some, and
    /// token bank fair queueing has a budget.
    #[test]
    fn nothing_is_left_empty() {
        for (name, scheduler) in all().filter(|(name, _)| !["rr", "fd-tbfq"].contains(name)) {
            let mut cell = Cell::new(scheduler);
            for cqi in [0, 15, 8, 12, 1] {
                cell.add(cqi, Source::Saturated, Promise { maximum_bits_per_second: 8_000, ..Promise::default() });
            }
            cell.free = 0b1101_1110_1111;
            for _ in 0..300 {
                let owners = cell.subframe();
                assert!(indices(cell.free).all(|k| owners[k] != NOBODY), "{name}");
            }
        }
    }

    /// Nobody starves under round robin, proportional fair and blind equal throughput, though the best channel is thirty times the
    /// worst: in any 150 ms each of 12 UEs has something.
    #[test]
    fn some_let_nobody_starve() {
        for name in ["rr", "pf", "fd-bet", "td-bet", "td-tbfq"] {
            let mut cell = Cell::new(make(name, &Parameters::default()).expect("a known name"));
            for cqi in [15, 1, 12, 3, 15, 15, 15, 7, 2, 9, 15, 1] {
                let promise = Promise { maximum_bits_per_second: 8_000_000, ..Promise::default() };
                cell.add(cqi, Source::Saturated, promise);
            }
            for window in 0..40 {
                let found = cell.run(150);
                assert!(found.iter().all(|&rate| rate > 0.0), "{name} {window} {found:?}");
            }
        }
    }

    /// A lone UE has the whole band, however little waits for it, but with the schedulers that go by what waits; and with
    /// much waiting, all of the band's rate.
    #[test]
    fn a_lone_ue_has_the_band() {
        for (name, scheduler) in all() {
            let promise = Promise { maximum_bits_per_second: 80_000_000, ..Promise::default() };
            let mut cell = Cell::new(scheduler);
            cell.add(11, Source::Saturated, promise);
            cell.run(10);
            assert_eq!(cell.run(100), [full(11)], "{name}");
        }
        for (name, scheduler) in all() {
            let promise = Promise { maximum_bits_per_second: 80_000_000, ..Promise::default() };
            let mut cell = Cell::new(scheduler);
            cell.add(11, Source::Constant(Waiting { bytes: 60, head_of_line_ms: 1 }), promise);
            cell.run(10);
            let groups = if ["cqa", "fd-tbfq"].contains(&name) { 1 } else { (1 << GROUPS) - 1 };
            assert_eq!(shares(&cell.subframe()), [(0, groups)], "{name}");
        }
    }

    /// Nothing happens where there is nobody, or no group.
    #[test]
    fn nobody_and_nothing() {
        for (name, scheduler) in all() {
            let mut cell = Cell::new(scheduler);
            assert_eq!(cell.subframe(), [NOBODY; MOST_GROUPS], "{name}");
            cell.add(15, Source::Saturated, Promise { maximum_bits_per_second: 8_000, ..Promise::default() });
            cell.add(0, Source::Saturated, Promise { maximum_bits_per_second: 8_000, ..Promise::default() });
            // Out of range, though it might have been otherwise.
            let mut far = Cell::new(make(name, &Parameters::default()).expect("a known name"));
            for _ in 0..3 {
                far.add(0, Source::Saturated, Promise { maximum_bits_per_second: 8_000, ..Promise::default() });
            }
            far.reports.slack = vec![3; 3];
            assert!((0..20).all(|_| far.subframe() == [NOBODY; MOST_GROUPS]), "{name}");
            cell.free = 0;
            assert_eq!(cell.subframe(), [NOBODY; MOST_GROUPS], "{name}");
        }
    }
}
