//! Queue disciplines in a file: their keys, and the plain description they become.

use super::Check;
use crate::description::{Bands, Discipline, QueueLimit};
use crate::schema::{Choice, Field, Kind, Table, Tree, Value, Variant, Variants};
use fullpipe_network::Limit;
use fullpipe_network::discipline::{
    CoDelSpecification, DualPi2Specification, FairQueueSpecification, PieDelay, PieSpecification, RedSpecification,
    RedUnit, Scheduler, StepMarkerSpecification, StepThreshold,
};
use fullpipe_units::{Duration, Rate};

const PACKETS: Kind = Kind::Integer { min: 1, max: 1_000_000_000 };
const TARGET: Kind = Kind::Duration { min: Duration::from_nanos(1), max: Duration::from_secs(1000) };
/// Bytes of one measurement of the departure rate (RFC 8033 section 5.2: DQ_THRESHOLD, 16 KiB).
const DEPARTURE_RATE_BYTES: u32 = 16_384;
/// Most bands of strict priority.
const MOST_BANDS: usize = 64;

const ECN_OFF: Field =
    Field::default("ecn", Kind::Boolean, "false", "Mark ECN-capable packets instead of dropping them.");
const ECN_ON: Field =
    Field::default("ecn", Kind::Boolean, "true", "Mark ECN-capable packets instead of dropping them.");
const LIMIT: Field = Field::default("limit", Kind::QueueLimit, "1000packets", "How much it holds.");
const CE_THRESHOLD: Field = Field::optional(
    "ce_threshold",
    Kind::INTERVAL,
    "off",
    "Mark ECN-capable packets that have waited longer than this, whatever CoDel says (for DCTCP).",
);
const CODEL: [Field; 2] = [
    Field::default("target", Kind::DURATION, "5ms", "A standing wait up to this is fine."),
    Field::default("interval", TARGET, "100ms", "How long the wait must stand before packets are dropped."),
];

/// All but strict priority, which contains the others.
const SIMPLE: [Variant; 9] = [
    Variant { name: "none", text: "the device's queue alone.", fields: &[] },
    Variant {
        name: "fifo",
        text: "first in, first out.",
        fields: &[&[Field::required("limit", Kind::QueueLimit, "How much it holds, the device's queue apart.")]],
    },
    Variant {
        name: "red",
        text: "random early detection by an average of the queue's length (Floyd and Jacobson 1993).",
        fields: &[&[
            LIMIT,
            Field::default("min", Kind::QueueLimit, "5packets", "Average below which nothing is dropped."),
            Field::default(
                "max",
                Kind::QueueLimit,
                "15packets",
                "Average at which the drop probability is `max_probability`; counted as `min` is, in packets or in bytes.",
            ),
            Field::default("max_probability", Kind::PROBABILITY, "0.1", "Drop probability at `max`."),
            Field::default("weight", Kind::Number { min: 1e-9, max: 1.0 }, "0.002", "Weight of the present queue."),
            Field::default("gentle", Kind::Boolean, "true", "From `max` to twice that the probability rises to 1."),
            ECN_OFF,
        ]],
    },
    Variant {
        name: "ared",
        text: "adaptive RED: thresholds from the rate and a target delay, the probability adapts (Floyd, Gummadi and \
               Shenker 2001).",
        fields: &[&[LIMIT, Field::default("target", TARGET, "5ms", "Mean delay to be reached."), ECN_OFF]],
    },
    Variant {
        name: "codel",
        text: "drops by how long packets have waited (RFC 8289).",
        fields: &[&[LIMIT, ECN_OFF, CE_THRESHOLD], &CODEL],
    },
    Variant {
        name: "fq-codel",
        text: "a queue per flow under CoDel, served in turn (RFC 8290).",
        fields: &[
            &[
                Field::default("limit_packets", PACKETS, "10240", "Packets in all queues together.").unit("packets"),
                Field::optional("memory", Kind::SIZE, "not limited", "Bytes on the wire in all queues together."),
                Field::default(
                    "quantum",
                    Kind::Size { min: 1, max: 1_000_000 },
                    "1514B",
                    "Bytes at the IP layer that a flow may send per round.",
                ),
                ECN_ON,
                CE_THRESHOLD,
            ],
            &CODEL,
        ],
    },
    Variant {
        name: "pie",
        text: "a drop probability that a proportional-integral controller moves with the delay (RFC 8033).",
        fields: &[&[
            LIMIT,
            Field::default("target", TARGET, "15ms", "Delay to be reached."),
            Field::default("update_interval", TARGET, "15ms", "Time between updates of the probability."),
            Field::default(
                "alpha",
                Kind::Number { min: 0.0, max: 1000.0 },
                "0.125",
                "Gain on the distance from the target.",
            )
            .unit("1/s"),
            Field::default("beta", Kind::Number { min: 0.0, max: 1000.0 }, "1.25", "Gain on the change of the delay.")
                .unit("1/s"),
            Field::default("max_burst", Kind::DURATION, "150ms", "For how long a burst is let through."),
            Field::default(
                "ecn_limit",
                Kind::PROBABILITY,
                "0.1",
                "Probability from which ECN-capable packets are dropped too.",
            ),
            Field::default(
                "delay",
                Kind::Choice(&[
                    Choice::new("timestamps", "by when each packet came."),
                    Choice::new("departure-rate", "by queue length over measured departure rate (section 5.2)."),
                ]),
                "timestamps",
                "How the delay is known.",
            ),
            ECN_OFF,
        ]],
    },
    Variant {
        name: "dualpi2",
        text: "two coupled queues, one of low latency for ECT(1) (RFC 9332).",
        fields: &[&[
            Field::default("limit", Kind::QueueLimit, "10000packets", "How much both queues hold."),
            Field::default("target", TARGET, "15ms", "Delay of the classic queue to be reached."),
            Field::default(
                "longest_round_trip",
                TARGET,
                "100ms",
                "For which the controller is stable; sets its gains.",
            ),
            Field::default(
                "coupling",
                Kind::Number { min: 0.0, max: 100.0 },
                "2.0",
                "Factor k between the two signals.",
            ),
            Field::default(
                "l4s_start",
                Kind::DURATION,
                "800us",
                "Wait above which low-latency packets begin to be marked.",
            ),
            Field::default("l4s_range", Kind::DURATION, "400us", "From there until all are marked; `\"0s\"`: a step."),
            Field::default(
                "scheduler",
                Kind::Choice(&[
                    Choice::new("weighted-round-robin", "bytes by weight, 15 to 1 for low latency."),
                    Choice::new("time-shifted-fifo", "by waiting time, low latency ahead by 50 ms."),
                ]),
                "weighted-round-robin",
                "Which queue goes first when both hold packets.",
            ),
            ECN_ON,
        ]],
    },
    Variant {
        name: "step",
        text: "drop-tail that marks above a step (the switch of DCTCP, RFC 8257).",
        fields: &[&[
            LIMIT,
            Field::default(
                "threshold",
                Kind::QueueLimit,
                "65packets",
                "A packet that finds more than this waiting is marked; a time: a packet that has waited longer.",
            ),
            Field::default(
                "drops_incapable",
                Kind::Boolean,
                "false",
                "Drop packets above the step that cannot be marked.",
            ),
        ]],
    },
];

const PRIORITY: Variant = Variant {
    name: "priority",
    text: "strict priority: a band is served only while all before it have nothing to send.",
    fields: &[&[
        Field::default(
            "by",
            Kind::Choice(&[
                Choice::new("flow", "by the flow's `priority`; flows without one go to the last band."),
                Choice::new("protocol", "UDP and fragments to the first band, TCP to the second."),
                Choice::new("codepoint", "ECT(1) and CE to the first band, all others to the second."),
                Choice::new("size", "by the packet's size, see `sizes`."),
            ]),
            "flow",
            "How packets are told to bands.",
        ),
        Field::default(
            "sizes",
            Kind::List(&Kind::Size { min: 1, max: 65_535 }),
            "[]",
            "With `by = \"size\"`: the largest IP packet of each band but the last, rising.",
        ),
        Field::required("bands", Kind::Tables(&BAND), "The discipline of each band, the first served first."),
    ]],
};

const fn all() -> [Variant; SIMPLE.len() + 1] {
    let mut list = [PRIORITY; SIMPLE.len() + 1];
    let mut n = 0;
    while n < SIMPLE.len() {
        list[n] = SIMPLE[n];
        n += 1;
    }
    list
}

pub(super) static DISCIPLINE: Table = Table {
    name: "discipline",
    text: "A queue discipline above a device's drop-tail queue: while that queue is full, packets wait here.",
    variants: Some(&Variants {
        key: "kind",
        default: Some("none"),
        text: "It names the discipline.",
        list: &all(),
        later: &["rem", "choke", "sfq", "fq", "drr", "cake"],
    }),
    ..Table::EMPTY
};

static BAND: Table = Table {
    name: "band",
    text: "The discipline of one band of strict priority.",
    variants: Some(&Variants {
        key: "kind",
        default: None,
        text: "It names the discipline.",
        list: &SIMPLE,
        later: &["priority"],
    }),
    ..Table::EMPTY
};

/// The link that a discipline serves.
#[derive(Clone, Copy)]
pub(super) struct Device {
    pub(super) rate: Rate,
    pub(super) mtu_bytes: u32,
    pub(super) framing_bytes: u32,
}

impl Device {
    fn largest_bytes(self) -> u32 {
        self.mtu_bytes.saturating_add(self.framing_bytes)
    }
}

/// The discipline that a table describes; `None` for the device's queue alone, or after an error.
pub(super) fn discipline(tree: &Tree, device: Device, path: &str, check: &mut Check) -> Option<Discipline> {
    let limit_of = |key: &str| Limit::at(tree.queue_limit(key), device.rate);
    Some(match tree.choice("kind") {
        "fifo" => Discipline::Fifo { limit: limit_of("limit") },
        "red" => red(tree, device, path, check)?,
        "ared" => Discipline::Red(RedSpecification {
            ecn: tree.boolean("ecn"),
            max_packet_bytes: device.largest_bytes(),
            ..RedSpecification::adaptive(limit_of("limit"), device.rate, tree.duration("target"))
        }),
        "codel" => Discipline::CoDel { limit: limit_of("limit"), settings: codel(tree, device) },
        "fq-codel" => Discipline::FqCodel(FairQueueSpecification {
            limit_packets: u64::try_from(tree.integer("limit_packets")).unwrap_or_default(),
            limit_bytes: tree.get("memory").map(Value::size),
            quantum_bytes: u32::try_from(tree.size("quantum")).unwrap_or(u32::MAX),
            codel: codel(tree, device),
        }),
        "pie" => Discipline::Pie(pie(tree, device)),
        "dualpi2" => Discipline::DualPi2(dualpi2(tree, device)),
        "step" => Discipline::Step(StepMarkerSpecification {
            limit: limit_of("limit"),
            threshold: match tree.queue_limit("threshold") {
                QueueLimit::Packets(packets) => StepThreshold::Packets(u64::from(packets)),
                QueueLimit::Bytes(bytes) => StepThreshold::Bytes(bytes),
                QueueLimit::Time(time) => StepThreshold::Delay(time),
                QueueLimit::Unlimited => StepThreshold::Bytes(u64::MAX),
            },
            drops_incapable: tree.boolean("drops_incapable"),
        }),
        "priority" => priority(tree, device, path, check)?,
        _ => return None,
    })
}

fn codel(tree: &Tree, device: Device) -> CoDelSpecification {
    CoDelSpecification {
        target: tree.duration("target"),
        interval: tree.duration("interval"),
        mtu_bytes: device.mtu_bytes,
        ecn: tree.boolean("ecn"),
        ce_threshold: tree.get("ce_threshold").map(Value::duration),
    }
}

fn red(tree: &Tree, device: Device, path: &str, check: &mut Check) -> Option<Discipline> {
    let of = |key: &str| match Limit::at(tree.queue_limit(key), device.rate) {
        Limit::Packets(packets) => (RedUnit::Packets, packets as f64),
        Limit::Bytes(bytes) => (RedUnit::Bytes, bytes as f64),
        Limit::Unlimited => (RedUnit::Bytes, f64::INFINITY),
    };
    let ((unit, min_threshold), (unit_of_max, max_threshold)) = (of("min"), of("max"));
    let at = if tree.is_given("max") { "max" } else { "min" };
    if unit != unit_of_max {
        let message = format!("one of {path}.min and {path}.max counts packets and the other bytes");
        check.error(tree.place_of(at), &format!("{path}.{at}"), message, vec!["both in packets, or neither".into()]);
        return None;
    }
    if min_threshold >= max_threshold || max_threshold.is_infinite() {
        let message = format!("{path}.min is not below {path}.max, or one of them is unlimited");
        check.error(tree.place_of(at), &format!("{path}.{at}"), message, vec!["min below max".into()]);
        return None;
    }
    Some(Discipline::Red(RedSpecification {
        unit,
        min_threshold,
        max_threshold,
        max_probability: tree.number("max_probability"),
        weight: tree.number("weight"),
        gentle: tree.boolean("gentle"),
        max_packet_bytes: device.largest_bytes(),
        ecn: tree.boolean("ecn"),
        ..RedSpecification::recommended(Limit::at(tree.queue_limit("limit"), device.rate), device.rate)
    }))
}

fn pie(tree: &Tree, device: Device) -> PieSpecification {
    PieSpecification {
        limit: Limit::at(tree.queue_limit("limit"), device.rate),
        target: tree.duration("target"),
        update_interval: tree.duration("update_interval"),
        alpha: tree.number("alpha"),
        beta: tree.number("beta"),
        max_burst: tree.duration("max_burst"),
        ecn: tree.boolean("ecn"),
        ecn_limit: tree.number("ecn_limit"),
        delay: match tree.choice("delay") {
            "timestamps" => PieDelay::Timestamps,
            _ => PieDelay::DepartureRate { threshold_bytes: DEPARTURE_RATE_BYTES },
        },
        ..PieSpecification::default()
    }
}

fn dualpi2(tree: &Tree, device: Device) -> DualPi2Specification {
    let derived =
        DualPi2Specification::for_path(device.rate, tree.duration("target"), tree.duration("longest_round_trip"));
    DualPi2Specification {
        limit: Limit::at(tree.queue_limit("limit"), device.rate),
        max_packet_bytes: device.largest_bytes(),
        coupling: tree.number("coupling"),
        ramp_start: tree.duration("l4s_start"),
        ramp_range: tree.duration("l4s_range"),
        scheduler: match tree.choice("scheduler") {
            "time-shifted-fifo" => Scheduler::TimeShiftedFifo { shift: Duration::from_millis(50) },
            _ => derived.scheduler,
        },
        ecn: tree.boolean("ecn"),
        ..derived
    }
}

fn priority(tree: &Tree, device: Device, path: &str, check: &mut Check) -> Option<Discipline> {
    let trees = tree.tables("bands");
    if trees.is_empty() || trees.len() > MOST_BANDS {
        let message = format!("{path} has {} bands", trees.len());
        let expected = vec![format!("1 to {MOST_BANDS} bands")];
        check.error(tree.place_of("bands"), &format!("{path}.bands"), message, expected);
        return None;
    }
    let largest_bytes: Vec<u32> =
        tree.list("sizes").iter().map(|size| u32::try_from(size.size()).unwrap_or(u32::MAX)).collect();
    let by = match tree.choice("by") {
        "protocol" => Bands::Protocol,
        "codepoint" => Bands::Codepoint,
        "size" => {
            if largest_bytes.len() + 1 != trees.len() || !largest_bytes.is_sorted() {
                let message = format!("{} sizes do not divide {} bands", largest_bytes.len(), trees.len());
                let expected = vec!["a rising size for each band but the last".into()];
                check.error(tree.place_of("sizes"), &format!("{path}.sizes"), message, expected);
                return None;
            }
            Bands::Size { largest_bytes }
        }
        _ => Bands::Flow,
    };
    let mut bands = Vec::new();
    for (index, band) in trees.iter().enumerate() {
        let path = format!("{path}.bands.{index}");
        let Some(inner) = discipline(band, device, &path, check) else {
            if band.choice("kind") == "none" {
                let message = format!("{path} has no queue");
                check.error(band.place_of("kind"), &format!("{path}.kind"), message, vec!["\"fifo\"".into()]);
            }
            return None;
        };
        bands.push(inner);
    }
    Some(Discipline::Priority { by, bands })
}
