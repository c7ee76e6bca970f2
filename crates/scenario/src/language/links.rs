//! What a link does besides transmitting at one rate with one delay: keys and plain description.

use super::Check;
use crate::description::Loss;
use crate::schema::component::choices;
use crate::schema::{Choice, Data, Field, Kind, Table, Tree, Value, Variant, Variants};
use fullpipe_network::impairment::{
    Blackhole, Corruption, Droplist, Errors, GilbertElliott, Impairments, Jitter, JitterDistribution, Reordering,
};
use fullpipe_network::{Course, Frames, PayloadCorruption, Rebinding, RebindingSide, Schedule, Selection, Step, Trace};
use fullpipe_units::{Duration, Rate};
use std::path::Path;

/// A delay of a link: a million of them in a row stay within 2^64 ns.
pub(super) const DELAY: Kind = Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) };
/// Frame numbers stay far from 2^64.
const FRAME_NUMBER: Kind = Kind::Integer { min: 1, max: 1_000_000_000_000_000 };
/// Milliseconds of a trace: 31 years.
const MILLISECONDS: Kind = Kind::Integer { min: 0, max: 1_000_000_000_000 };

/// Keys that each direction of a link has for itself: the other direction does not take them over.
pub(super) const OWN: &[Field] = &[
    Field::empty("loss", Kind::Table(&LOSS), "Loss after transmission."),
    Field::optional("blackholes", Kind::Tables(&BLACKHOLE), "none", "Times in which every frame is lost."),
    Field::optional("corruption", Kind::Table(&CORRUPTION), "none", "Bit errors."),
    Field::optional(
        "payload_corruption",
        Kind::Table(&PAYLOAD_CORRUPTION),
        "none",
        "Damage to the content of UDP datagrams that no checksum tells.",
    ),
    Field::default(
        "duplication",
        Kind::PROBABILITY,
        "0.0",
        "Probability that a frame arrives twice. Fragments are not copied.",
    ),
    Field::optional("jitter", Kind::Table(&JITTER), "none", "A random time on top of the delay."),
    Field::optional("reordering", Kind::Table(&REORDERING), "none", "Frames that arrive out of order."),
    Field::optional(
        "schedule",
        Kind::Tables(&STEP),
        "none",
        "Changes of rate and delay at their times, for example `[{ at = \"5s\", rate = \"1Mbit/s\" }]`. A frame in \
         transmission goes on at the new rate; a frame takes the delay that holds when its last bit leaves, and overtakes \
         none.",
    ),
    Field::optional("schedule_repeat", Kind::INTERVAL, "never", "The schedule begins again after this time."),
    Field::optional(
        "trace",
        Kind::Either(&Kind::List(&MILLISECONDS), &Kind::Text),
        "none",
        "Delivery opportunities as mahimahi records them, instead of `rate`: milliseconds, each of which delivers 1504 \
         bytes; a list, or a file with one number a line, by its path from this file's folder. The trace repeats.",
    ),
];

const LARGEST_BURST: Field = Field::optional(
    "largest_burst",
    Kind::Integer { min: 0, max: 1_000_000_000_000_000 },
    "no limit",
    "Most frames taken in succession: the one after them is spared.",
)
.unit("frames");

const PROTOCOLS: [(Choice, Frames); 2] = [
    (Choice::new("any", "all frames."), Frames::All),
    (Choice::new("udp", "UDP datagrams and their fragments."), Frames::Udp),
];

const PROTOCOL: Field = Field::default(
    "protocol",
    Kind::Choice(&choices(&PROTOCOLS)),
    "any",
    "Which frames are looked at and counted; others are never lost.",
);

static LOSS: Table = Table {
    name: "loss",
    text: "Loss of frames on their way, after they were transmitted.",
    variants: Some(&Variants {
        key: "kind",
        default: Some("none"),
        text: "It names the model.",
        list: &[
            Variant { name: "none", text: "nothing is lost.", fields: &[] },
            Variant {
                name: "bernoulli",
                text: "each frame independently, up to a largest burst.",
                fields: &[&[
                    Field::required("probability", Kind::PROBABILITY, "Probability that a frame is lost."),
                    LARGEST_BURST,
                    PROTOCOL,
                ]],
            },
            Variant {
                name: "periodic",
                text: "one in so many. Frames without transport payload are not counted and never lost.",
                fields: &[&[
                    Field::required("every", FRAME_NUMBER, "From one loss to the next.").unit("frames"),
                    Field::optional("offset", FRAME_NUMBER, "as `every`", "Number of the first lost frame, from 1."),
                ]],
            },
            Variant {
                name: "gilbert-elliott",
                text: "a chain of two states; each frame is lost with the probability of the state, then the state may \
                       change (Gilbert 1960, Elliott 1963).",
                fields: &[&[
                    Field::required("good_to_bad", Kind::PROBABILITY, "Probability per frame of turning bad."),
                    Field::required("bad_to_good", Kind::PROBABILITY, "Probability per frame of turning good."),
                    Field::default("loss_good", Kind::PROBABILITY, "0.0", "Probability of loss in the good state."),
                    Field::default("loss_bad", Kind::PROBABILITY, "1.0", "Probability of loss in the bad state."),
                ]],
            },
            Variant {
                name: "droplist",
                text: "the frames of these numbers.",
                fields: &[&[
                    Field::required("frames", Kind::List(&FRAME_NUMBER), "Numbers, from 1, in any order."),
                    Field::default(
                        "data_only",
                        Kind::Boolean,
                        "true",
                        "Whether frames without transport payload are not counted and never lost.",
                    ),
                    PROTOCOL,
                ]],
            },
        ],
        later: &["trace"],
    }),
    ..Table::EMPTY
};

/// Whether arrivals are lost, instead of departures.
static LOST_IN_BLACKHOLE: [(Choice, bool); 2] = [
    (Choice::new("departures", "frames whose transmission ends in it are lost."), false),
    (Choice::new("arrivals", "frames that would arrive in it are lost: the far end hears nothing then."), true),
];

static BLACKHOLE: Table = Table {
    name: "black hole",
    text: "A time in which every frame is lost.",
    fields: &[&[
        Field::required("from", Kind::DURATION, "Its begin."),
        Field::required("until", Kind::DURATION, "Its end, exclusive."),
        Field::optional("period", Kind::INTERVAL, "never", "It comes again after this time, from begin to begin."),
        Field::optional("times", FRAME_NUMBER, "without end", "How often it comes, with `period`.").unit("times"),
        Field::default("of", Kind::Choice(&choices(&LOST_IN_BLACKHOLE)), "departures", "Which frames it takes."),
    ]],
    ..Table::EMPTY
};

static PAYLOAD_CORRUPTION: Table = Table {
    name: "payload corruption",
    text: "Damage to one byte of the payload of chosen UDP datagrams, with the checksum made right again: what protects the \
           content (QUIC, DTLS) has to tell. In real time bytes of real datagrams change; a datagram of the model's, which \
           has no bytes, is refused by its receiver.",
    fields: &[&[
        Field::required("probability", Kind::PROBABILITY, "Probability per datagram."),
        LARGEST_BURST,
        Field::default(
            "window",
            Kind::Size { min: 1, max: 65_535 },
            "65535B",
            "How far into the payload the byte may lie; the place is uniform.",
        ),
        Field::default(
            "spare_version_negotiation",
            Kind::Boolean,
            "false",
            "Whether QUIC's version negotiation packets (version 0, RFC 8999), which nothing protects, are spared.",
        ),
        Field::default(
            "delivered",
            Kind::Boolean,
            "true",
            "Whether the damaged datagram travels on; otherwise the far end of the link drops it.",
        ),
    ]],
    ..Table::EMPTY
};

/// For each side's order: the numbers of the states at the two directions.
static INSIDE: [(Choice, [usize; 2]); 2] = [
    (Choice::new("from", "the side where the link begins."), [0, 1]),
    (Choice::new("to", "the side where it ends."), [1, 0]),
];

pub(super) static REBINDING: Table = Table {
    name: "rebinding",
    text: "A translator that changes its mappings while conversations go on (a NAT rebinding, for UDP over IPv4 and IPv6). \
           It translates what arrives at either end of the link. At first every endpoint inside is mapped to itself; at a \
           rebinding each gets another port, and what is for an old one is dropped.",
    fields: &[&[
        Field::required("first", Kind::DURATION, "When mappings change first."),
        Field::optional("every", Kind::INTERVAL, "never", "After this time they change again, and again."),
        Field::default(
            "address",
            Kind::Boolean,
            "false",
            "Whether the outside address changes too: in its last byte, from 1 to 254.",
        ),
        Field::default("inside", Kind::Choice(&choices(&INSIDE)), "from", "Which side of the link is inside."),
    ]],
    ..Table::EMPTY
};

static CORRUPTION: Table = Table {
    name: "corruption",
    text: "Bit errors: one of `probability` and `bit_error_rate` is given.",
    fields: &[&[
        Field::optional("probability", Kind::PROBABILITY, "from `bit_error_rate`", "Probability per frame."),
        Field::optional("bit_error_rate", Kind::PROBABILITY, "from `probability`", "Probability per bit on the wire."),
        Field::default(
            "delivered",
            Kind::Boolean,
            "false",
            "Whether a corrupted frame travels on, to be dropped by its destination's checksum; otherwise the far end of the \
             link drops it.",
        ),
    ]],
    ..Table::EMPTY
};

const IN_ORDER: Field =
    Field::default("in_order", Kind::Boolean, "true", "Whether frames keep their order; otherwise they overtake.");

static JITTER: Table = Table {
    name: "jitter",
    text: "A random time on top of a link's delay, drawn for each frame; never negative.",
    variants: Some(&Variants {
        key: "kind",
        default: None,
        text: "It names the distribution.",
        list: &[
            Variant {
                name: "uniform",
                text: "from 0 to a largest time.",
                fields: &[&[Field::required("max", DELAY, "The largest, exclusive."), IN_ORDER]],
            },
            Variant {
                name: "normal",
                text: "normal; what would be negative is 0.",
                fields: &[&[
                    Field::required("mean", DELAY, "The mean."),
                    Field::required("deviation", DELAY, "The standard deviation."),
                    IN_ORDER,
                ]],
            },
            Variant {
                name: "exponential",
                text: "exponential.",
                fields: &[&[Field::required("mean", DELAY, "The mean."), IN_ORDER]],
            },
        ],
        later: &[],
    }),
    ..Table::EMPTY
};

static REORDERING: Table = Table {
    name: "reordering",
    text: "Frames that arrive out of order.",
    variants: Some(&Variants {
        key: "kind",
        default: None,
        text: "It says who is late.",
        list: &[
            Variant {
                name: "late",
                text: "each frame is late with a probability, and others overtake it.",
                fields: &[&[
                    Field::required("probability", Kind::PROBABILITY, "Probability per frame."),
                    Field::required("extra", DELAY, "By how much it is late."),
                ]],
            },
            Variant {
                name: "early",
                text: "as netem's `reorder`: all are late, save that after `gap` - 1 such ones each goes at once with a \
                       probability.",
                fields: &[&[
                    Field::required("probability", Kind::PROBABILITY, "Probability per frame that is due."),
                    Field::default(
                        "gap",
                        Kind::Integer { min: 1, max: 1_000_000_000 },
                        "1",
                        "Distance of such frames.",
                    )
                    .unit("frames"),
                    Field::required("extra", DELAY, "By how much the others are late."),
                ]],
            },
        ],
        later: &[],
    }),
    ..Table::EMPTY
};

static STEP: Table = Table {
    name: "step",
    text: "A change of a link's rate, its delay or both; what is not named stays.",
    fields: &[&[
        Field::required("at", Kind::DURATION, "When, since the start of the run or of the round."),
        Field::optional("rate", Kind::RATE, "as before", "The rate from then on."),
        Field::default(
            "outage",
            Kind::Boolean,
            "false",
            "Whether nothing is transmitted from then on, instead of `rate`.",
        ),
        Field::optional("delay", DELAY, "as before", "The delay from then on."),
    ]],
    ..Table::EMPTY
};

/// Fills in what depends on other keys of one direction, and replaces the name of a trace's file by what it says.
pub(super) fn fill(link: &mut Tree, path: &str, check: &mut Check) {
    if let Some(Data::Table(loss)) = link.get_mut("loss").map(|value| &mut value.data)
        && let Some(every) = loss.get("every").map(Value::integer)
    {
        loss.fill("offset", Data::Integer(every));
    }
    let Some(Value { data: Data::Text(name), place, .. }) = link.get("trace").cloned() else { return };
    let path = format!("{path}.trace");
    let folder = Path::new(check.sources.file()).parent().unwrap_or(Path::new(""));
    let read = read(&folder.join(&name));
    match read.and_then(|text| Trace::parse(&text).map_err(|reason| reason.to_string())) {
        Ok(trace) => {
            let number = |ms: &u64| Value { data: Data::Integer(*ms as i64), place, given: true };
            let data = Data::List(trace.opportunities().iter().map(number).collect());
            link.set("trace", Value { data, place, given: true });
        }
        Err(reason) => {
            let expected = vec!["a file with one whole number of milliseconds a line, never decreasing".into()];
            check.error(place, &path, format!("{name} is no trace: {reason}"), expected);
            link.remove("trace");
        }
    }
}

/// Largest file of a trace.
const MOST_BYTES: u64 = 64 << 20;

fn read(path: &Path) -> Result<String, String> {
    let about = std::fs::metadata(path).map_err(|reason| reason.to_string())?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(format!("not a file of at most {MOST_BYTES} bytes"));
    }
    std::fs::read_to_string(path).map_err(|reason| reason.to_string())
}

/// What a direction does besides, from its table.
pub(super) fn describe(tree: &Tree, path: &str, check: &mut Check) -> (Course, Impairments) {
    let course = match (schedule(tree, path, check), trace(tree, path, check)) {
        (None, None) => Course::Constant,
        (Some(schedule), None) => Course::Steps(schedule),
        (None, Some(trace)) => Course::Trace(trace),
        (Some(_), Some(_)) => {
            let message = format!("{path} has a schedule and a trace");
            check.error(tree.place_of("trace"), &format!("{path}.trace"), message, vec!["one of the two".into()]);
            Course::Constant
        }
    };
    (course, impairments(tree, path, check))
}

fn impairments(tree: &Tree, path: &str, check: &mut Check) -> Impairments {
    let loss = tree.table("loss");
    let blackholes = tree.get("blackholes").map(Value::tables).unwrap_or_default();
    for (index, hole) in blackholes.iter().enumerate() {
        if hole.duration("from") >= hole.duration("until") {
            let message = format!("{path}.blackholes.{index} ends before it begins");
            check.error(
                hole.place_of("until"),
                &format!("{path}.blackholes.{index}.until"),
                message,
                vec!["a later time".into()],
            );
        }
    }
    for (index, hole) in blackholes.iter().enumerate() {
        if hole.get("times").is_some() && hole.get("period").is_none() {
            let path = format!("{path}.blackholes.{index}");
            let message = format!("{path} has times and no period");
            check.error(hole.place_of("times"), &format!("{path}.times"), message, vec!["a period".into()]);
        }
    }
    Impairments {
        seed: 0,
        link: String::new(),
        selective_loss: selection(loss),
        payload_corruption: tree.get("payload_corruption").map(|value| payload_corruption(value.table())),
        rebinding: None,
        gilbert_elliott: (loss.choice("kind") == "gilbert-elliott").then(|| GilbertElliott {
            good_to_bad: loss.number("good_to_bad"),
            bad_to_good: loss.number("bad_to_good"),
            loss_good: loss.number("loss_good"),
            loss_bad: loss.number("loss_bad"),
        }),
        droplist: (loss.choice("kind") == "droplist").then(|| Droplist {
            data_only: loss.boolean("data_only"),
            frames: frames(loss),
            numbers: loss.list("frames").iter().map(|n| u64::try_from(n.integer()).unwrap_or_default()).collect(),
        }),
        blackholes: blackholes.iter().map(blackhole).collect(),
        corruption: tree.get("corruption").and_then(|value| corruption(value.table(), path, check)),
        duplication: tree.number("duplication"),
        jitter: tree.get("jitter").map(|value| jitter(value.table())),
        reordering: tree.get("reordering").map(|value| reordering(value.table())),
    }
}

/// The loss of a direction where it is one of the models on the short way.
pub(super) fn plain_loss(tree: &Tree) -> Option<Loss> {
    let number = |key: &str| u64::try_from(tree.integer(key)).unwrap_or_default();
    match tree.choice("kind") {
        "bernoulli" if selection(tree).is_none() => Some(Loss::Bernoulli { probability: tree.number("probability") }),
        "periodic" => Some(Loss::Periodic { every: number("every"), offset: number("offset") }),
        _ => None,
    }
}

fn frames(tree: &Tree) -> Frames {
    tree.chosen("protocol", &PROTOCOLS)
}

fn largest_burst(tree: &Tree) -> Option<u64> {
    tree.get("largest_burst").and_then(|most| u64::try_from(most.integer()).ok())
}

/// A loss that does not take every frame alike.
fn selection(loss: &Tree) -> Option<Selection> {
    if loss.choice("kind") != "bernoulli" {
        return None;
    }
    let (largest_burst, frames) = (largest_burst(loss), frames(loss));
    let is_plain = largest_burst.is_none() && frames == Frames::All;
    (!is_plain).then(|| Selection { probability: loss.number("probability"), largest_burst, frames })
}

fn blackhole(hole: &Tree) -> Blackhole {
    Blackhole {
        from: hole.duration("from"),
        until: hole.duration("until"),
        period: hole.get("period").map_or(Duration::ZERO, Value::duration),
        times: hole.get("times").and_then(|times| u64::try_from(times.integer()).ok()).unwrap_or_default(),
        of_arrivals: hole.chosen("of", &LOST_IN_BLACKHOLE),
    }
}

fn payload_corruption(tree: &Tree) -> PayloadCorruption {
    PayloadCorruption {
        selection: Selection {
            probability: tree.number("probability"),
            largest_burst: largest_burst(tree),
            frames: Frames::Udp,
        },
        window_bytes: u32::try_from(tree.size("window")).unwrap_or(u32::MAX),
        spare_version_negotiation: tree.boolean("spare_version_negotiation"),
        delivered: tree.boolean("delivered"),
    }
}

/// The rebinding translator of link number `number`, for its two directions.
pub(super) fn rebinding(tree: &Tree, number: u32) -> [Rebinding; 2] {
    let with = |side| Rebinding {
        number,
        side,
        first: tree.duration("first"),
        every: tree.get("every").map_or(Duration::ZERO, Value::duration),
        address: tree.boolean("address"),
    };
    let sides = [RebindingSide::Outward, RebindingSide::Inward].map(with);
    tree.chosen("inside", &INSIDE).map(|side| sides[side])
}

fn corruption(tree: &Tree, path: &str, check: &mut Check) -> Option<Corruption> {
    let errors = match (tree.get("probability"), tree.get("bit_error_rate")) {
        (Some(probability), None) => Errors::PerFrame(probability.number()),
        (None, Some(rate)) => Errors::PerBit(rate.number()),
        (one, _) => {
            let message =
                format!("{path}.corruption says {}", if one.is_some() { "two things" } else { "nothing of how often" });
            let expected = vec!["one of probability and bit_error_rate".into()];
            check.error(tree.place, &format!("{path}.corruption"), message, expected);
            return None;
        }
    };
    Some(Corruption { errors, delivered: tree.boolean("delivered") })
}

fn jitter(tree: &Tree) -> Jitter {
    let distribution = match tree.choice("kind") {
        "uniform" => JitterDistribution::Uniform { max: tree.duration("max") },
        "normal" => JitterDistribution::Normal { mean: tree.duration("mean"), deviation: tree.duration("deviation") },
        "exponential" => JitterDistribution::Exponential { mean: tree.duration("mean") },
        other => unreachable!("the schema has no jitter {other}"),
    };
    Jitter { distribution, in_order: tree.boolean("in_order") }
}

fn reordering(tree: &Tree) -> Reordering {
    let (probability, extra) = (tree.number("probability"), tree.duration("extra"));
    match tree.choice("kind") {
        "late" => Reordering::Late { probability, extra },
        "early" => Reordering::Early { probability, gap: u64::try_from(tree.integer("gap")).unwrap_or(1), extra },
        other => unreachable!("the schema has no reordering {other}"),
    }
}

fn schedule(tree: &Tree, path: &str, check: &mut Check) -> Option<Schedule> {
    let repeat = tree.get("schedule_repeat").map(Value::duration);
    let Some(value) = tree.get("schedule") else {
        if repeat.is_some() {
            let message = format!("{path} has schedule_repeat and no schedule");
            check.error(
                tree.place_of("schedule_repeat"),
                &format!("{path}.schedule_repeat"),
                message,
                vec!["a schedule".into()],
            );
        }
        return None;
    };
    let path = format!("{path}.schedule");
    let mut steps = Vec::new();
    for (index, step) in value.tables().iter().enumerate() {
        let outage = step.boolean("outage");
        if outage && step.get("rate").is_some() {
            let path = format!("{path}.{index}");
            let message = format!("{path} has a rate and an outage");
            check.error(step.place_of("rate"), &format!("{path}.rate"), message, vec!["one of the two".into()]);
        }
        let rate = if outage { Some(Rate::from_bits_per_second(0)) } else { step.get("rate").map(Value::rate) };
        steps.push(Step { at: step.duration("at"), rate, delay: step.get("delay").map(Value::duration) });
    }
    match Schedule::new(steps, repeat) {
        Ok(schedule) => Some(schedule),
        Err(reason) => {
            check.error(value.place, &path, format!("{path} is no schedule"), vec![reason.to_string()]);
            None
        }
    }
}

fn trace(tree: &Tree, path: &str, check: &mut Check) -> Option<Trace> {
    let value = tree.get("trace")?;
    let lines: Vec<String> = value.list().iter().map(|ms| ms.integer().to_string()).collect();
    match Trace::parse(&lines.join("\n")) {
        Ok(trace) => Some(trace),
        Err(reason) => {
            check.error(
                value.place,
                &format!("{path}.trace"),
                format!("{path}.trace is no trace"),
                vec![reason.to_string()],
            );
            None
        }
    }
}
