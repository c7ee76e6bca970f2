//! Tests that a scenario built in code equals one from a file: the same description, the same records, the same errors.

use fullpipe::builder::{BdpMultiple, Flow, Link, Probe, QueueLimit, ScenarioBuilder, Table, Topology, Value};
use fullpipe::scenario::{Error, load};
use fullpipe::units::{Duration, Rate};
use fullpipe::{Simulation, embedded};
use std::path::Path;
use toml_edit::{DocumentMut, Item};

/// Converts a value of a file into a value of the builder.
fn value(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => text.value().as_str().into(),
        Toml::Integer(number) => (*number.value()).into(),
        Toml::Float(number) => (*number.value()).into(),
        Toml::Boolean(boolean) => (*boolean.value()).into(),
        // The builder has no dates. No key accepts a date or this text.
        Toml::Datetime(date) => date.value().to_string().into(),
        Toml::Array(list) => list.iter().map(self::value).collect(),
        Toml::InlineTable(entries) => {
            entries.iter().fold(Table::new(), |table, (key, value)| table.set(key, self::value(value))).into()
        }
    }
}

/// Converts a table of a file into builder calls.
fn table<'a>(entries: impl Iterator<Item = (&'a str, &'a Item)>) -> Table {
    entries.fold(Table::new(), |built, (key, item)| match item {
        Item::Value(single) => built.set(key, value(single)),
        Item::Table(inner) => built.set(key, table(inner.iter())),
        Item::ArrayOfTables(list) => list.iter().fold(built, |built, element| built.add(key, table(element.iter()))),
        Item::None => built,
    })
}

/// Converts a file into builder calls.
fn rebuilt(file: &DocumentMut) -> ScenarioBuilder {
    file.iter().fold(ScenarioBuilder::new(), |built, (key, item)| match item {
        Item::Value(single) => built.set(key, value(single)),
        Item::Table(inner) => built.set(key, table(inner.iter())),
        Item::ArrayOfTables(list) => list.iter().fold(built, |built, element| built.add(key, table(element.iter()))),
        Item::None => built,
    })
}

#[test]
fn every_embedded_scenario_can_be_built_in_code() {
    let mut scenarios = 0;
    for name in embedded::scenario_names() {
        let text = embedded::scenario_text(name).expect("the listed scenario exists");
        let file = load(text, name, &[]).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        let builder = rebuilt(&text.parse().expect("a valid scenario is TOML"));
        let built = builder.build().unwrap_or_else(|errors| panic!("{name}: {errors}"));
        assert!(built == file.scenario, "{name}: the descriptions differ");
        let written = load(&builder.to_toml(), name, &[]).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        assert_eq!(written.resolved, file.resolved, "{name}");
        scenarios += 1;
    }
    assert!(scenarios >= 20, "only {scenarios} scenarios are embedded");
}

/// The parts of errors that are equal for a file and for a builder. Positions differ, and so does the quoted text,
/// because the builder formats values differently.
fn comparable(errors: &[Error]) -> Vec<(String, Vec<String>, Option<String>)> {
    let mut parts: Vec<_> = errors.iter().map(|e| (e.path.clone(), e.expected.clone(), e.suggestion.clone())).collect();
    parts.sort();
    parts
}

#[test]
fn a_builder_reports_the_same_errors_as_a_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenario/tests/wrong");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the folder is readable").path();
        // Skip files that are not valid TOML: builder calls cannot express them.
        let Some(text) = std::fs::read_to_string(&path).ok() else { continue };
        let Ok(document) = text.parse::<DocumentMut>() else { continue };
        let Err(expected) = load(&text, "scenario", &[]) else { panic!("{} has no error", path.display()) };
        let Err(found) = rebuilt(&document).build() else { panic!("{}: the builder found no error", path.display()) };
        assert_eq!(comparable(&found.0), comparable(&expected.0), "{}", path.display());
        for error in &found.0 {
            assert_eq!(
                error.file.strip_prefix("scenario").map(|path| path.trim_start_matches('.')),
                Some(&*error.path)
            );
            assert_eq!((error.line, error.column), (0, 0), "{}: there are no lines", path.display());
        }
        files += 1;
    }
    assert!(files >= 200, "only {files} wrong files were compared");
}

fn quick_start() -> ScenarioBuilder {
    let access = Link::new(Rate::from_bits_per_second(1_000_000_000), Duration::from_millis(1));
    let bottleneck =
        Link::new(Rate::from_megabits_per_second(10), Duration::from_millis(18)).queue(QueueLimit::Bytes(50_000));
    ScenarioBuilder::new()
        .title("Quick start: 10 MB over 10 Mbit/s")
        .duration(std::time::Duration::from_secs(30))
        .topology(Topology::dumbbell(access, bottleneck))
        .flow(Flow::new("left1", "right1").name("download").congestion("cubic").size(10_000_000))
        .probe(Probe::flow("download", ["cwnd_bytes", "srtt_s", "throughput_bps"]))
        .probe(Probe::link("bottleneck", ["queue_bytes", "drops"]))
}

fn two_flows() -> ScenarioBuilder {
    let fast = || Link::new("1Gbit/s", "1ms");
    let hosts = ["alice", "bob", "server"].iter().fold(ScenarioBuilder::new(), |built, host| built.host(host));
    hosts
        .title("CUBIC, NewReno and UDP at one bottleneck")
        .duration("60s")
        .router("edge")
        .router("core")
        .link(fast().between("alice-edge", "alice", "edge"))
        .link(fast().between("bob-edge", "bob", "edge"))
        .link(
            Link::new(Rate::from_megabits_per_second(20), Duration::from_millis(15))
                .queue(QueueLimit::Time(Duration::from_millis(50)))
                .between("uplink", "edge", "core"),
        )
        .link(fast().between("core-server", "core", "server"))
        .flow(Flow::new("alice", "server").name("cubic").congestion("cubic"))
        .flow(Flow::new("bob", "server").name("newreno").congestion("newreno").start(Duration::from_secs(10)))
        .flow(
            Flow::new("bob", "server")
                .name("voice")
                .protocol("udp")
                .workload("constant-rate")
                .set("payload", 160)
                .set("interval", Duration::from_millis(20)),
        )
        .probe(Probe::flow("*", ["throughput_bps"]).interval(Duration::from_millis(100)))
        .probe(Probe::link("uplink", ["queue_bytes", "queue_delay_s"]))
}

fn lossy_link() -> ScenarioBuilder {
    let long = Link::new(Rate::from_megabits_per_second(100), Duration::from_millis(49))
        .queue("1MB")
        .loss(0.001)
        .set("reverse.rate", Rate::from_megabits_per_second(20));
    ScenarioBuilder::new()
        .title("A link that loses one packet in a thousand")
        .duration(Duration::from_secs(60))
        .seed(1)
        .topology(Topology::chain([Link::new("1Gbit/s", "1ms"), long]))
        .flow(Flow::new("source", "sink").name("bulk").congestion("cubic"))
        .probe(Probe::flow("bulk", ["cwnd_bytes", "inflight_bytes", "throughput_bps"]).interval("100ms"))
}

#[test]
fn built_scenario_writes_the_same_records_as_its_file() {
    for (name, builder) in [("quick-start", quick_start()), ("two-flows", two_flows()), ("lossy-link", lossy_link())] {
        let file = Simulation::embedded(name).expect("the scenario is embedded");
        assert!(builder.build().expect("it is valid") == file.scenario().expect("it is valid"), "{name}");
        let run = |simulation: Simulation| simulation.set("duration", "12s").run().expect("it can run").tables();
        let (built, read) = (run(Simulation::new(builder)), run(file));
        assert!(built == read, "{name}: the records differ");
        let written: Vec<&str> = built.iter().filter(|(_, text)| text.len() > 200).map(|(file, _)| *file).collect();
        assert!(written.starts_with(&["flows.csv", "series.csv"]), "{name}: {written:?}");
    }
}

fn chain() -> ScenarioBuilder {
    ScenarioBuilder::new().topology(Topology::chain([Link::new("10Mbit/s", "5ms")]))
}

/// The message for a scenario with exactly one error.
fn error(builder: ScenarioBuilder) -> String {
    let errors = builder.build().expect_err("it is wrong");
    assert_eq!(errors.0.len(), 1, "{errors}");
    errors.to_string()
}

#[test]
fn the_position_of_an_error_is_the_dotted_path_of_its_value() {
    let flow = || Flow::new("source", "sink");
    let wrong = error(chain().flow(flow()).flow(flow().size("1MX")));
    assert!(wrong.starts_with("scenario.flow.1.size: flow.1.size = \"1MX\""), "{wrong}");
    let wrong = error(chain().flow(flow().set("sise", 5)));
    assert!(wrong.starts_with("scenario.flow.0.sise: sise is not a key of a flow"), "{wrong}");
    assert!(wrong.contains("did you mean size? (expected one of "), "{wrong}");
    let wrong = error(chain().flow(Flow::new("source", "snik")));
    assert!(wrong.starts_with("scenario.flow.0.to: "), "{wrong}");
    // The error of a missing key also has a path.
    let wrong = error(ScenarioBuilder::new().topology(Topology::new("star").set("hosts", 2)).flow(flow()));
    assert!(wrong.starts_with("scenario.topology.access: topology.access is missing"), "{wrong}");
    // Numbers that TOML cannot represent or the schema does not accept.
    let wrong = error(chain().flow(flow()).seed(u64::MAX));
    assert!(wrong.starts_with("scenario.seed: seed = \"18446744073709551615\""), "{wrong}");
    let wrong = error(chain().flow(flow()).set("topology.link.0.duplication", f64::NAN));
    assert!(wrong.contains("is not a finite number"), "{wrong}");
}

#[test]
fn the_position_of_an_error_in_an_override_is_the_override() {
    let simulation = Simulation::new(chain().flow(Flow::new("source", "sink"))).set("flow.0.congestion", "cubci");
    let errors = simulation.scenario().expect_err("there is no such control").to_string();
    assert!(errors.starts_with("--set flow.0.congestion=cubci: unknown value cubci"), "{errors}");
}

#[test]
fn set_follows_paths_through_tables_and_lists_and_keeps_invalid_paths_as_keys() {
    let table = Table::new()
        .set("a.b.c", 1)
        .set("a.b.d", [0.5])
        .add("list", Table::new().set("x", "y"))
        .set("list.0.z", true)
        .set("a.b.c", 2)
        // The list has no second table, and a number has no keys.
        .set("list.1.z", 3)
        .set("a.b.c.e", 4);
    let file = ScenarioBuilder::new().set("table", table).to_toml();
    assert_eq!(
        file,
        "\n[table]\na = { b = { c = 2, d = [0.5], \"c.e\" = 4 } }\nlist = [{ x = \"y\", z = true }]\n\"list.1.z\" = 3\n"
    );
    let wrong = error(chain().flow(Flow::new("source", "sink")).set("flow.1.size", 5));
    assert!(wrong.starts_with("scenario.\"flow.1.size\": flow.1.size is not a key of this file"), "{wrong}");
}

#[test]
fn missing_scenario_gives_an_error_with_a_suggestion() {
    let unknown = Simulation::embedded("quik-start").expect_err("there is none");
    assert_eq!(unknown.to_string(), "unknown embedded scenario \"quik-start\"; did you mean \"quick-start\"?");
    let unread = Simulation::open("no/such/file.toml").expect_err("there is none");
    assert!(unread.to_string().starts_with("cannot read no/such/file.toml: "), "{unread}");
}

/// 2 x (1 + 18 + 1) ms x 10 Mbit/s = 50 000 bytes, under a discipline and without one.
#[test]
fn limit_sets_a_bdp_multiple_with_and_without_a_discipline() {
    let bottleneck = || Link::new("10Mbit/s", "18ms").limit(BdpMultiple::new(0.5));
    for link in [bottleneck(), bottleneck().discipline("fq-codel"), Link::new("10Mbit/s", "18ms").limit("0.5BDP")] {
        let scenario = ScenarioBuilder::new()
            .topology(Topology::dumbbell(Link::new("100Mbit/s", "1ms"), link))
            .flow(Flow::new("left1", "right1"))
            .build()
            .unwrap();
        let limit = &scenario.bdp_limits[0];
        assert_eq!((limit.link.as_str(), limit.key.as_str(), limit.bytes), ("bottleneck", "discipline.limit", 25_000));
    }
    let longer = Link::new("10Mbit/s", "18ms").limit("0.5BDP").bdp_rtt(Duration::from_millis(80));
    let topology = Topology::dumbbell(Link::new("100Mbit/s", "1ms"), longer);
    let scenario = ScenarioBuilder::new().topology(topology).flow(Flow::new("left1", "right1")).build().unwrap();
    assert_eq!(scenario.bdp_limits[0].bytes, 50_000);
}
