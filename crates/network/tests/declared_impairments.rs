//! The declarations of impairments and loss models: each name is accepted, is read into distinct settings, and affects
//! the frames of a link only in ways that it declares to the auditor.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Recorder, World, constant_rate};
use fullpipe_network::impairment::{self, IMPAIRMENTS, KEYS};
use fullpipe_network::{Impairments, Limit, LinkProfile, LinkSpecification, Network};
use fullpipe_schema::component::SettingsReader;
use fullpipe_schema::{Diagnostics, Errors, FieldKind, Table, load};
use fullpipe_units::{Duration, Instant, NodeId, Rate};

const FRAMES: u64 = 20;

static DIRECTION: Table = Table { name: "direction", fields: &[&KEYS], ..Table::EMPTY };

fn read(text: &str) -> Result<Impairments, Errors> {
    let mut loaded = load(&DIRECTION, text, "direction.toml", &[])?;
    impairment::fill(&mut loaded.root);
    let mut check = Diagnostics::new(&loaded.sources);
    let impairments =
        Impairments::read(&mut SettingsReader { tree: &loaded.root, path: "direction", check: &mut check });
    check.finish()?;
    Ok(impairments)
}

/// Returns when frames arrive, in microseconds. The n-th is transmitted from n - 1 ms to n ms, and the delay is 10 ms.
fn arrivals(impairments: &Impairments) -> Vec<u64> {
    let mut network = Network::new(Recorder::default());
    network.add_node(false);
    network.add_node(false);
    let (loss, impairments) = impairments.build(7, "link");
    network.add_link(LinkSpecification {
        from: NodeId(0),
        to: NodeId(1),
        rate: Rate::from_megabits_per_second(8),
        delay: Duration::from_millis(10),
        mtu_bytes: 1500,
        framing_bytes: 0,
        queue: Limit::Packets(3),
        discipline: None,
        loss,
        course: LinkProfile::Constant,
        impairments,
    });
    let mut world = World::new(constant_rate(NodeId(0), NodeId(1), 1000, Duration::from_millis(1), FRAMES));
    world.declare(&mut network);
    network.finalize();
    let end = Instant::from_nanos(1 << 60);
    network.run(&mut world, end, end);
    network.observer.check_conservation(&network.remaining_packets());
    world.received_of(0).into_iter().map(|at| at / 1000).collect()
}

/// Returns when the n-th frame arrives without impairments.
fn due(number: u64) -> u64 {
    (10 + number) * 1000
}

/// Returns the arrivals of all frames except lost ones.
fn without(lost: impl Fn(u64) -> bool) -> Vec<u64> {
    (1..=FRAMES).filter(|number| !lost(*number)).map(due).collect()
}

fn all_late(late: &[u64]) -> bool {
    late.len() as u64 == FRAMES && late.iter().zip(1..).all(|(at, number)| *at > due(number))
}

/// A key, the name of its variant, its value, and a check of the resulting arrivals.
type Case = (&'static str, &'static str, &'static str, fn(&[u64]) -> bool);

const CASES: [Case; 17] = [
    ("loss", "none", "{ kind = 'none' }", |seen| seen == without(|_| false)),
    ("loss", "bernoulli", "{ kind = 'bernoulli', probability = 1.0 }", <[u64]>::is_empty),
    ("loss", "periodic", "{ kind = 'periodic', every = 6 }", |seen| seen == without(|n| n % 6 == 0)),
    // It leaves each state after one frame; only the first state is random.
    ("loss", "gilbert-elliott", "{ kind = 'gilbert-elliott', good_to_bad = 1.0, bad_to_good = 1.0 }", |seen| {
        seen == without(|n| n % 2 == 0) || seen == without(|n| n % 2 == 1)
    }),
    ("loss", "droplist", "{ kind = 'droplist', frames = [5, 2] }", |seen| seen == without(|n| n == 2 || n == 5)),
    // Transmissions end at 5, 6 and 7 ms.
    ("loss_schedule", "", "[{ at = '5ms', probability = 1.0 }, { at = '8ms', probability = 0.0 }]", |seen| {
        seen == without(|n| [5, 6, 7].contains(&n))
    }),
    // Transmissions end in the hole at 5, 6 and 7 ms; frames that arrive in it were sent 10 ms earlier.
    (
        "blackholes",
        "",
        "[{ from = '5ms', until = '8ms' }, { from = '21ms', until = '22ms', of = 'arrivals' }]",
        |seen| seen == without(|n| [5, 6, 7, 11].contains(&n)),
    ),
    // A frame takes 1000 bytes each millisecond, in which the bucket gains 500. The 2000 bytes at the first frame suffice for the
    // first three; then each second one is dropped.
    ("policer", "", "{ rate = '4Mbit/s', burst = '2000B' }", |seen| seen == without(|n| n >= 4 && n % 2 == 0)),
    ("corruption", "", "{ probability = 1.0 }", <[u64]>::is_empty),
    // The payload has no bytes, so the receiver drops the datagram.
    ("payload_corruption", "", "{ probability = 1.0 }", <[u64]>::is_empty),
    ("duplication", "", "1.0", |seen| seen == (1..=FRAMES).flat_map(|n| [due(n); 2]).collect::<Vec<_>>()),
    ("jitter", "uniform", "{ kind = 'uniform', max = '9ms' }", |seen| all_late(seen) && seen[0] < 20_000),
    ("jitter", "normal", "{ kind = 'normal', mean = '3ms', deviation = '0s' }", |seen| {
        seen == without(|_| false).iter().map(|due| due + 3000).collect::<Vec<_>>()
    }),
    ("jitter", "exponential", "{ kind = 'exponential', mean = '3ms' }", all_late),
    ("reordering", "late", "{ kind = 'late', probability = 1.0, extra = '4ms' }", |seen| {
        seen == (1..=FRAMES).map(|n| due(n) + 4000).collect::<Vec<_>>()
    }),
    // The first of every two frames is 2.5 ms late: it arrives 0.5 ms after the frame behind the next one.
    ("reordering", "early", "{ kind = 'early', probability = 1.0, gap = 2, extra = '2500us' }", |seen| {
        let mut expected: Vec<u64> = (1..=FRAMES).map(|n| due(n) + n % 2 * 2500).collect();
        expected.sort_unstable();
        seen == expected
    }),
    ("aggregation", "", "{ interval = '5ms' }", |seen| {
        seen == (1..=FRAMES).map(|n| due(n).next_multiple_of(5000)).collect::<Vec<_>>()
    }),
];

/// Returns the keys of impairments with the names of their variants.
fn declared() -> Vec<(&'static str, &'static str)> {
    let names = |kind: &FieldKind| match kind {
        FieldKind::Table(Table { variants: Some(variants), .. }) => {
            variants.list.iter().map(|variant| variant.name).collect()
        }
        _ => vec![""],
    };
    IMPAIRMENTS
        .iter()
        .flat_map(|component| names(&component.field.kind).into_iter().map(|name| (component.field.key, name)))
        .collect()
}

#[test]
fn each_declared_name_has_distinct_settings_and_only_declared_effects() {
    assert_eq!(CASES.map(|(key, name, ..)| (key, name)).as_slice(), declared());
    let mut known: Vec<Impairments> = Vec::new();
    for (key, name, value, shows) in CASES {
        let text = format!("{key} = {value}");
        let impairments = read(&text).unwrap_or_else(|errors| panic!("{key} {name}: {errors}"));
        assert_eq!(read(&text).unwrap(), impairments);
        assert!(!known.contains(&impairments), "{key} {name} has the same settings as another variant");
        let (seen, effects) = (arrivals(&impairments), impairments.effects());
        assert!(shows(&seen), "{key} {name}: {seen:?}");
        assert!(effects.duplicates || seen.len() as u64 <= FRAMES, "{key} {name} duplicates");
        assert!(effects.delays || seen.iter().all(|at| without(|_| false).contains(at)), "{key} {name} delays");
        assert_eq!(effects.reorders, key == "reordering", "{key} {name} reorders");
        known.push(impairments);
    }
    assert_eq!(known[0], Impairments::default());
}

#[test]
fn a_misspelled_name_suggests_the_declared_one() {
    for (key, name) in declared().into_iter().filter(|(_, name)| !name.is_empty()) {
        let errors = read(&format!("{key} = {{ kind = '{name}x' }}")).unwrap_err();
        assert_eq!(errors.0[0].suggestion, Some(format!("\"{name}\"")));
    }
    for key in KEYS.map(|field| field.key) {
        let errors = read(&format!("{key}x = 1")).unwrap_err();
        assert_eq!(errors.0[0].suggestion.as_deref(), Some(key));
    }
}

#[test]
fn contradicting_keys_are_located_errors() {
    let error = |text: &str| {
        let error = read(text).unwrap_err().0.remove(0);
        (error.path, error.message)
    };
    let path = "direction.blackholes.0";
    let ends = error("blackholes = [{ from = '2s', until = '2s' }]");
    assert_eq!(ends, (format!("{path}.until"), format!("{path}.until = 2s is not after from = 2s")));
    let times = error("blackholes = [{ from = '1s', until = '2s', times = 2 }]");
    assert_eq!(times, (format!("{path}.times"), format!("{path} has times, but no period")));
    let both = error("corruption = { probability = 0.1, bit_error_rate = 1e-9 }");
    assert_eq!(
        both,
        ("direction.corruption".into(), "direction.corruption has both probability and bit_error_rate".into())
    );
    let neither = error("corruption = {}");
    assert_eq!(neither.1, "direction.corruption has neither probability nor bit_error_rate");
}
