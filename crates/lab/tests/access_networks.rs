//! An access network that exists only in this test: it is declared, read from a scenario, built, run, probed, and recorded.

#![allow(missing_docs, reason = "a test")]

use fullpipe_archive::{Tables, table};
use fullpipe_lab::{Options, Outcome, run};
use fullpipe_network::access::{
    AccessContext, AccessNetwork, AccessNetworkComponent, AccessNetworkSettings, DirectionBounds, StationDeclaration,
};
use fullpipe_network::metrics::THROUGHPUT;
use fullpipe_network::{CompletedFrame, Medium, MediumDirection, MediumFrame, MediumOutcome};
use fullpipe_scenario::{Errors, Language, LoadedScenario};
use fullpipe_schema::component::{Declaration, InvalidSettings, SettingsReader};
use fullpipe_schema::metric::{MetricDeclaration, Sample};
use fullpipe_schema::{Field, FieldKind, Table};
use fullpipe_units::{Duration, Instant, NodeId, RandomStream};
use std::collections::VecDeque;
use std::sync::Arc;

static PIGEON_POST: AccessNetworkComponent = AccessNetworkComponent {
    declaration: Declaration {
        name: "pigeon_post",
        version: "1990",
        source: "RFC 1149",
        text: "Avian carriers.",
        fields: &[],
    },
    table: &Table {
        name: "pigeon post",
        text: "A loft, and keepers to whom pigeons fly.",
        fields: &[&[
            Field::required("name", FieldKind::Name, "Its name."),
            Field::required("loft", FieldKind::Text, "The hub."),
            Field::required("keepers", FieldKind::Text, "The stations, by name or pattern."),
            Field::required("flight", FieldKind::DURATION, "How long a pigeon flies."),
            Field::default(
                "pigeons",
                FieldKind::Integer { min: 1, max: 1000 },
                "3",
                "How many fly at a time, each way.",
            ),
            Field::default("hawks", FieldKind::PROBABILITY, "0.0", "Part of the pigeons that do not arrive."),
        ]],
        ..Table::EMPTY
    },
    station: StationDeclaration { key: "keeper", name: "keeper" },
    metrics: || vec![&PIGEONS_SENT, &THROUGHPUT],
    choices: &[],
    tables: || vec![PIGEONS.reference()],
    fill: |_| {},
    read,
};

static PIGEONS_SENT: MetricDeclaration =
    MetricDeclaration { name: "pigeons_sent", unit: "", text: "pigeons sent since the start." };

table! {
    /// A row of `pigeons.csv`.
    struct PigeonRow;
    /// The pigeons of a run.
    static PIGEONS = "pigeons.csv": "One row for each way of each pigeon post.";
    post: String, "", "Name of the pigeon post.";
    direction: String, "", "`downlink` or `uplink`.";
    sent_packets: u64, "packets", "Pigeons sent.";
    lost_packets: u64, "packets", "Pigeons that met a hawk.";
}

#[derive(Clone, Debug, PartialEq)]
struct PigeonPost {
    name: String,
    loft: NodeId,
    keepers: Vec<NodeId>,
    flight: Duration,
    pigeons: u64,
    hawks: f64,
}

fn read(
    reader: &mut SettingsReader<'_, '_>,
    context: &mut AccessContext<'_>,
) -> Result<AccessNetwork, InvalidSettings> {
    let tree = reader.tree;
    let (loft, keepers) = (context.node(reader, "loft")?, context.find_matching(reader, "keepers")?);
    for keeper in &keepers {
        context.claim_station(reader, "keepers", *keeper, PIGEON_POST.station)?;
    }
    if keepers.contains(&loft) {
        return Err(reader.add_error("loft", "the loft keeps no pigeons for itself", "a node of its own"));
    }
    Ok(Arc::new(PigeonPost {
        name: tree.text("name").to_owned(),
        loft,
        keepers,
        flight: tree.duration("flight"),
        pigeons: tree.integer("pigeons") as u64,
        hawks: tree.number("hawks"),
    }))
}

impl AccessNetworkSettings for PigeonPost {
    fn component(&self) -> &'static AccessNetworkComponent {
        &PIGEON_POST
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn hub(&self) -> NodeId {
        self.loft
    }

    fn stations(&self) -> &[NodeId] {
        &self.keepers
    }

    fn mtu_bytes(&self) -> u32 {
        1500
    }

    fn bounds(&self, _: MediumDirection) -> DirectionBounds {
        DirectionBounds { rate_bps: 0, least_delay: self.flight }
    }

    fn build(&self, seed: u64) -> Result<Box<dyn Medium>, String> {
        if self.flight.is_zero() {
            return Err("no pigeon is that fast".to_owned());
        }
        let random = RandomStream::new(seed, &self.name, "hawks");
        Ok(Box::new(Sky { post: self.clone(), random, flying: VecDeque::new(), told: Vec::new(), counts: [[0; 4]; 2] }))
    }
}

/// Pigeons in flight.
#[derive(Debug)]
struct Sky {
    post: PigeonPost,
    random: RandomStream,
    flying: VecDeque<(Instant, MediumFrame, MediumOutcome)>,
    told: Vec<CompletedFrame>,
    /// Packets sent, lost and in flight, and bytes delivered; down and up.
    counts: [[u64; 4]; 2],
}

impl Medium for Sky {
    fn offer(&mut self, now: Instant, frame: MediumFrame) {
        let [sent, _, flying, _] = &mut self.counts[frame.way as usize];
        if *flying == self.post.pigeons {
            return self.told.push(CompletedFrame { token: frame.token, at: now, fate: MediumOutcome::BufferFull });
        }
        (*sent, *flying) = (*sent + 1, *flying + 1);
        let fate = if self.random.bernoulli(self.post.hawks) { MediumOutcome::Lost } else { MediumOutcome::Delivered };
        self.flying.push_back((now + self.post.flight, frame, fate));
    }

    fn next_wakeup(&self) -> Instant {
        self.flying.front().map_or(Instant::NEVER, |(at, ..)| *at)
    }

    fn wake(&mut self, now: Instant) {
        while let Some((at, frame, fate)) = self.flying.front().copied().filter(|(at, ..)| *at <= now) {
            self.flying.pop_front();
            let [_, lost, flying, bytes] = &mut self.counts[frame.way as usize];
            *flying -= 1;
            match fate {
                MediumOutcome::Delivered | MediumOutcome::Marked => *bytes += u64::from(frame.ip_bytes),
                MediumOutcome::Lost | MediumOutcome::BufferFull | MediumOutcome::DroppedEarly => *lost += 1,
            }
            self.told.push(CompletedFrame { token: frame.token, at, fate });
        }
    }

    fn drain_outcomes(&mut self, fates: &mut VecDeque<CompletedFrame>) {
        fates.extend(self.told.drain(..));
    }

    fn sample(&self, metric: &str, _station: u32, way: MediumDirection) -> Option<Sample> {
        let [sent, _, _, bytes] = self.counts[way as usize];
        match metric {
            "pigeons_sent" => Some(Sample::Value(sent as f64)),
            "throughput_bps" => Some(Sample::Bytes(bytes)),
            _ => None,
        }
    }

    fn record(&self, tables: &mut Tables) {
        let row = |way: MediumDirection| PigeonRow {
            post: self.post.name.clone(),
            direction: way.name().to_owned(),
            sent_packets: self.counts[way as usize][0],
            lost_packets: self.counts[way as usize][1],
        };
        tables.add(&PIGEONS, MediumDirection::ALL.map(row).to_vec());
    }
}

const NODES: &str = "duration = '1s'\n[[router]]\nname = 'tower'\n[[host]]\nname = 'keeper'\ncount = 2\n";
/// A datagram of 100 bytes every 20 ms.
const FLOW: &str = "[[flow]]\nname = 'news'\nfrom = 'keeper1'\nto = 'keeper2'\nprotocol = 'udp'\nworkload = \
                    'constant-rate'\npayload = 72\ninterval = '20ms'\npackets = 20\n";

fn load(text: &str) -> Result<LoadedScenario, Errors> {
    Language::default().with_access_network(&PIGEON_POST).load(text, "pigeons.toml", &[])
}

fn post(keys: &str) -> String {
    format!("{NODES}[[pigeon_post]]\nname = 'rfc1149'\nloft = 'tower'\nkeepers = 'keeper*'\n{keys}\n{FLOW}")
}

fn played(keys: &str) -> Outcome {
    let loaded = load(&post(keys)).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(loaded.resolved.contains("[[pigeon_post]]\nname = \"rfc1149\""), "{}", loaded.resolved);
    assert_eq!(load(&loaded.resolved).unwrap().scenario, loaded.scenario);
    let options = Options { audit_packets: true, ..Options::default() };
    let outcome = run(&loaded.scenario, &options).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    outcome
}

#[test]
fn packet_through_a_declared_access_network_is_probed_and_recorded() {
    let probe = "[[probe]]\nkeeper = 'keeper*'\nmetrics = ['pigeons_sent', 'throughput_bps']\ninterval = '96ms'\n";
    let outcome = played(&format!("flight = '5ms'\n{probe}"));
    let flow = outcome.flow("news").expect("the flow").counters;
    assert_eq!((flow.rx_packets, flow.delay_sum), (20, Duration::from_millis(20 * 2 * 5)));
    let pigeons = outcome.access_table("pigeons.csv").expect("its table");
    assert_eq!(pigeons.text_column("direction"), ["downlink", "uplink"]);
    assert_eq!(pigeons.column("sent_packets"), [20.0, 20.0]);
    let (_, file) = outcome.tables().into_iter().find(|(file, _)| *file == "pigeons.csv").expect("its file");
    let text = "post,direction,sent_packets,lost_packets\nrfc1149,downlink,20,0\nrfc1149,uplink,20,0\n";
    assert_eq!(String::from_utf8(file).unwrap(), text);
    // Sent at 0, 20, ... 380 ms, and received 10 ms later: 5, 10 and 15 are sent by 96, 192 and 288 ms, and 5, 10 and 14 arrived.
    let of = |subject: &str, metric: &str| outcome.series(subject, metric).map(|(_, value)| value).collect::<Vec<_>>();
    assert_eq!(of("keeper1", "throughput_bps")[..3], [500.0, 500.0, 400.0].map(|bytes| bytes * 8.0 / 0.096));
    assert_eq!(of("keeper1.uplink", "pigeons_sent")[..3], [5.0, 10.0, 15.0]);
    assert_eq!(outcome.link("rfc1149.uplink").expect("the way").counters.frames, 20);
}

#[test]
fn losses_in_a_declared_access_network_agree_in_all_records() {
    let hawks = played("flight = '5ms'\nhawks = 1.0");
    assert_eq!(hawks.flow("news").expect("the flow").counters.lost_packets, 20);
    assert_eq!(hawks.access_table("pigeons.csv").expect("its table").column("lost_packets"), [0.0, 20.0]);
    // Each flight takes 50 ms, so with a packet every 20 ms a pigeon is free every 60 ms: seven of 20.
    let few = played("flight = '50ms'\npigeons = 1");
    assert_eq!(few.flow("news").expect("the flow").counters.rx_packets, 7);
    assert_eq!(few.link("rfc1149.uplink").expect("the way").counters.queue_drops, 13);
}

#[test]
fn errors_in_a_declared_access_network_state_their_position() {
    let wrong = |text: &str| load(text).unwrap_err().0[0].clone();
    let of_a_key = load(&post("flihgt = '5ms'")).unwrap_err();
    let of_a_key = of_a_key.0.iter().find(|error| error.line == 11).expect("an error at the key");
    assert_eq!(of_a_key.suggestion.as_deref(), Some("flight"));
    let of_a_node = wrong(&post("flight = '5ms'").replace("'tower'\nkeepers", "'towr'\nkeepers"));
    assert_eq!((of_a_node.line, of_a_node.suggestion.as_deref()), (9, Some("\"tower\"")));
    let of_a_metric = wrong(&format!("{}[[probe]]\nkeeper = '*'\nmetrics = ['sinr_db']\n", post("flight = '5ms'")));
    assert_eq!(of_a_metric.expected, ["\"pigeons_sent\"", "\"throughput_bps\""]);
    let loaded = load(&post("flight = '0s'")).unwrap();
    let refused = run(&loaded.scenario, &Options::default()).unwrap_err().to_string();
    assert_eq!(refused, "access network rfc1149: no pigeon is that fast");
    // Without the component the table is unknown.
    let unknown = fullpipe_scenario::load(&post("flight = '5ms'"), "pigeons.toml", &[]).unwrap_err();
    assert!(unknown.0[0].message.contains("pigeon_post"), "{unknown}");
}
