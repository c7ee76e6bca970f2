//! Tests of the declarations of workloads: the language accepts each name, the keys are read into the workload's own settings,
//! and these create two applications over every declared transport.

#[path = "../../schema/tests/least/mod.rs"]
mod least;

use fullpipe_schema::component::{SettingsReader, choices};
use fullpipe_schema::{Choice, Diagnostics, Errors, Field, FieldKind, Table, Variants, load};
use fullpipe_units::{Duration, Instant};
use fullpipe_workload::{FlowContext, FlowTransport, Protocol, VARIANTS, WORKLOADS, Workload, WorkloadCatalogue};

static PROTOCOLS: [(Choice, Protocol); 4] = [
    (Choice::new("tcp", ""), Protocol::Tcp),
    (Choice::new("udp", ""), Protocol::Udp),
    (Choice::new("quic", ""), Protocol::Quic),
    (Choice::new("masque", ""), Protocol::Masque),
];

static FLOW: Table = Table {
    name: "flow",
    fields: &[&[
        Field::required("protocol", FieldKind::Choice(&choices(&PROTOCOLS)), "Over what."),
        Field::optional("name", FieldKind::Name, "none", "Its name."),
    ]],
    variants: Some(&Variants {
        key: WorkloadCatalogue::KEY,
        default: None,
        text: "What is sent.",
        list: &VARIANTS,
        later: &[],
    }),
    ..Table::EMPTY
};

fn read(text: &str, several_streams: bool) -> Result<Workload, Errors> {
    let mut loaded = load(&FLOW, text, "flow.toml", &[])?;
    let component = WORKLOADS.find(loaded.root.choice("workload"));
    if let Some(key) = component.write_key {
        loaded.root.fill(key, fullpipe_schema::ValueData::Size(1000));
    }
    let mut check = Diagnostics::new(&loaded.sources);
    let carrier = FlowTransport { protocol: loaded.root.choice_value("protocol", &PROTOCOLS), several_streams };
    let settings =
        WORKLOADS.read(&mut SettingsReader { tree: &loaded.root, path: "flow", check: &mut check }, &carrier);
    check.finish()?;
    Ok(settings.expect("without an error there are settings"))
}

#[test]
fn each_declared_name_is_read_into_its_own_settings_and_creates_two_applications() {
    for component in WORKLOADS.iter() {
        let name = component.declaration.name;
        let mut ports = Vec::new();
        for protocol in component.protocols {
            let texts = least::texts("workload", &component.declaration);
            let texts = texts.into_iter().map(|text| format!("protocol = '{}'\n{text}", protocol.name()));
            let read_all = texts.map(|text| read(&text, *protocol == Protocol::Quic).map(|settings| (text, settings)));
            // Some values of a required choice may need another transport.
            let (read_well, errors): (Vec<_>, Vec<_>) = read_all.partition(Result::is_ok);
            assert!(!read_well.is_empty(), "{name} over {}: {errors:?}", protocol.name());
            for (text, settings) in read_well.into_iter().flatten() {
                assert_eq!(settings.name(), name);
                assert_eq!(settings.check(), Ok(()));
                assert_eq!(settings.socket_traffic().is_some(), component.on_sockets, "{name}");
                // Reading the keys again gives equal settings; those of another workload are not equal.
                assert_eq!(read(&text, true).unwrap(), settings);
                let other = if name == "idle" { "bulk" } else { "idle" };
                assert_ne!(read(&format!("protocol = 'tcp'\nworkload = '{other}'"), false).unwrap(), settings);
                let context = FlowContext {
                    seed: 1,
                    flow: "flow",
                    start: Instant::ZERO,
                    duration: Duration::from_secs(1),
                    measured_from: Instant::ZERO,
                    over_stream: matches!(protocol, Protocol::Tcp | Protocol::Quic),
                    receiver_closes: true,
                };
                let applications = settings.applications(&context).unwrap_or_else(|rule| panic!("{name}: {rule}"));
                // All reported metrics are declared.
                for figure in applications.iter().flat_map(|application| application.metric_values(Instant::ZERO)) {
                    let is_declared = component.metrics().any(|metric| metric.name == figure.name);
                    assert!(is_declared, "{name}: {}", figure.name);
                }
                ports.push(settings.default_port());
            }
        }
        // The text states every default port.
        let text = component.declaration.text.rsplit_once("Default port ").unwrap_or_else(|| panic!("{name}")).1;
        let numbers = text.split(|letter: char| !letter.is_ascii_digit()).filter_map(|number| number.parse().ok());
        let numbers: Vec<u16> = numbers.collect();
        assert!(ports.iter().all(|port| numbers.contains(port)), "{name}: {ports:?}, {text}");
    }
}

#[test]
fn names_are_unique_and_an_unknown_one_suggests_the_nearest() {
    let names: Vec<&str> = WORKLOADS.declarations().map(|declaration| declaration.name).collect();
    for (index, name) in names.iter().enumerate() {
        assert!(!names[..index].contains(name), "{name} is declared twice");
        let errors = read(&format!("protocol = 'tcp'\nworkload = '{name}x'"), false).unwrap_err();
        assert_eq!(errors.0[0].suggestion, Some(format!("\"{name}\"")));
        assert_eq!(errors.0[0].expected.len(), names.len());
    }
}

#[test]
fn workload_over_an_undeclared_transport_is_an_error() {
    for component in WORKLOADS.iter() {
        let text = &least::texts("workload", &component.declaration)[0];
        for (choice, protocol) in PROTOCOLS.iter().filter(|(_, protocol)| !component.protocols.contains(protocol)) {
            let errors = read(&format!("protocol = '{}'\n{text}", choice.name), true).unwrap_err();
            let error = &errors.0[0];
            assert_eq!((error.path.as_str(), error.line), ("flow.workload", 2));
            // Accepted are the protocols of the workload, and the workloads that support the transport.
            let quoted = |names: Vec<&str>| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>();
            let protocols = quoted(component.protocols.iter().map(|one| one.name()).collect()).join(" or ");
            let others = WORKLOADS.iter().filter(|other| other.protocols.contains(protocol));
            let others = quoted(others.map(|other| other.declaration.name).collect()).join(", ");
            let transport = choice.name.to_uppercase();
            let expected = format!("protocol = {protocols}, or a workload for {transport}: {others}");
            assert_eq!(error.expected, [expected]);
        }
    }
}

#[test]
fn contradictory_keys_are_errors_at_their_location() {
    let error = |text: &str| read(text, false).unwrap_err().0.remove(0);
    let rate =
        error("protocol = 'udp'\nworkload = 'constant-rate'\npayload = 1000\ninterval = '1ms'\nrate = '1Mbit/s'");
    assert_eq!((rate.path.as_str(), rate.line), ("flow.rate", 5));
    let payload = error("protocol = 'udp'\nworkload = 'constant-rate'\npayload = 65508\ninterval = '1ms'");
    assert_eq!((payload.path.as_str(), payload.line), ("flow.payload", 3));
    let order = error(
        "protocol = 'tcp'\nworkload = 'transfers'\n\
         transfers = [{ at = '2s', size = 1 }, { at = '1s', size = 1 }]",
    );
    assert_eq!((order.path.as_str(), order.line), ("flow.transfers.1.at", 3));
    let trace = error("protocol = 'tcp'\nworkload = 'tmix'\nfile = 'a.cvec'\ntrace = 'r4s1'");
    assert_eq!((trace.path.as_str(), trace.line), ("flow.trace", 4));
    // One stream per connection is too few for a page on several streams.
    let streams = error("protocol = 'quic'\nworkload = 'web'\nhttp = 'streams'");
    assert_eq!(
        (streams.path.as_str(), streams.expected.as_slice()),
        ("flow.http", &["quic.stack = \"model\"".to_owned()][..])
    );
    let ladder = error("protocol = 'tcp'\nworkload = 'video-abr'\nladder = ['2Mbit/s', '1Mbit/s']");
    assert!(ladder.to_string().contains("the bit rates of ladder must ascend"), "{ladder}");
}

#[test]
fn main_senders_are_the_ends_that_send_most() {
    let main = |text: &str| read(text, false).unwrap_or_else(|errors| panic!("{errors}")).main_senders();
    let exchange = |request: &str, response: &str| {
        main(&format!("protocol = 'tcp'\nworkload = 'request-response'\nrequest = {request}\nresponse = {response}\n"))
    };
    assert_eq!(exchange("'300B'", "'1MB'"), [false, true]);
    assert_eq!(exchange("'1MB'", "'300B'"), [true, false]);
    assert_eq!(exchange("'1kB'", "'1kB'"), [true, true]);
    for (text, expected) in [
        ("protocol = 'tcp'\nworkload = 'bulk'", [true, false]),
        // Without data the initiator's direction is the main direction.
        ("protocol = 'tcp'\nworkload = 'idle'", [true, false]),
        ("protocol = 'tcp'\nworkload = 'video-abr'\nladder = ['1Mbit/s']", [false, true]),
        ("protocol = 'tcp'\nworkload = 'web'\nhttp = '1.1'", [false, true]),
        ("protocol = 'udp'\nworkload = 'gaming'", [true, true]),
        ("protocol = 'udp'\nworkload = 'voice'", [true, true]),
        ("protocol = 'udp'\nworkload = 'voice'\nboth_ways = false", [true, false]),
    ] {
        assert_eq!(main(text), expected, "{text}");
    }
}
