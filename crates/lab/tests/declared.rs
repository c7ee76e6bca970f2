//! Tests of declarations in runs: each component is used under its name, and each probe metric and column of a file has values.

use crate::least;

use fullpipe_archive::reference::{TableReference, run_table_references, study_table_references};
use fullpipe_congestion::controls::CONTROLS;
use fullpipe_lab::{Options, Outcome, run};
use fullpipe_network::discipline::table::DISCIPLINES;
use fullpipe_network::metrics::{FLOW, LINK, SEGMENT};
use fullpipe_quic::scheduler::SCHEDULERS;
use fullpipe_scenario::access::ACCESS_NETWORKS;
use fullpipe_scenario::description::Transport;
use fullpipe_scenario::{load, probe_metrics};
use fullpipe_schema::metric::ProbeMetric;
use fullpipe_transport::metrics::{ENDPOINT, PROXY};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Runs a scenario, whose resolved form must contain `key = "name"` and be equivalent.
fn played(text: &str, key: &str, name: &str) -> Outcome {
    let loaded = load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let again =
        load(&loaded.resolved, "resolved", &[]).unwrap_or_else(|errors| panic!("{errors}\n{}", loaded.resolved));
    assert_eq!(again.scenario, loaded.scenario, "{text}");
    assert!(loaded.resolved.contains(&format!("{key} = \"{name}\"")), "{key} = {name}: {}", loaded.resolved);
    let outcome = run(&loaded.scenario, &Options::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(outcome.verdict().passed(), "{}\n{text}", outcome.verdict());
    outcome
}

/// Two hosts, a link with these keys and a flow with these keys.
fn chain(link: &str, flow: &str) -> String {
    format!(
        "duration = '3s'\n[topology]\nkind = 'chain'\nlink = [{{ rate = '10Mbit/s', delay = '5ms', {link} }}]\n\
         [[flow]]\nname = 'it'\nfrom = 'source'\nto = 'sink'\n{flow}\n"
    )
}

fn probe(key: &str, subject: &str, metrics: &[&str]) -> String {
    format!("[[probe]]\n{key} = '{subject}'\nmetrics = {metrics:?}\n")
}

fn names<R>(metrics: &'static [ProbeMetric<R>]) -> Vec<&'static str> {
    ProbeMetric::declarations(metrics).map(|metric| metric.name).collect()
}

/// The metrics with samples in a run.
fn sampled(outcome: &Outcome) -> BTreeSet<String> {
    outcome.series_rows().map(|row| row.metric.to_owned()).collect()
}

/// Runs each control. Returns the metrics with samples.
fn controls() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for control in CONTROLS {
        let name = control.declaration.name;
        let own: Vec<&str> = control.values.iter().map(|metric| metric.name).collect();
        let metrics = [names(&ENDPOINT), names(&FLOW), own.clone()].concat();
        for transport in [
            "protocol = 'tcp'",
            "protocol = 'quic'\nquic = { stack = 'model', ecn = true }",
            "protocol = 'quic'\nquic = { stack = 'noq' }",
        ] {
            // Marks of a step, and losses above it.
            let link = "discipline = { kind = 'step', limit = '30packets', threshold = '10packets' }";
            let flow = format!("congestion = '{name}'\nworkload = 'bulk'\n{transport}\n");
            let text = chain(link, &(flow + &probe("flow", "it", &metrics)));
            // The real stack does not count congestion marks.
            if transport.contains("noq") && ["dctcp", "prague"].contains(&name) {
                continue;
            }
            let outcome = played(&text, "congestion", name);
            assert_eq!(outcome.flow("it").expect("the flow").congestion, Some(name), "{transport}");
            let sampled = sampled(&outcome);
            assert!(own.iter().all(|metric| sampled.contains(*metric)), "{name}, {transport}: {sampled:?}");
            all.extend(sampled);
        }
    }
    all
}

#[test]
fn each_control_runs_under_its_name_and_reports_its_metrics() {
    let expected = [names(&ENDPOINT), names(&FLOW)].concat();
    let own = CONTROLS.iter().flat_map(|control| control.values).map(|metric| metric.name);
    assert_eq!(controls(), expected.into_iter().chain(own).map(str::to_owned).collect());
}

#[test]
fn each_discipline_runs_under_its_name() {
    for discipline in DISCIPLINES.declarations() {
        let name = discipline.name;
        for keys in least::texts("kind", discipline) {
            let link = format!("discipline = {{ {} }}", keys.trim().replace('\n', ", "));
            let outcome = played(&chain(&link, &probe("link", "link1", &names(&LINK))), "kind", name);
            let settings = outcome.scenario().links[0].discipline.as_ref();
            assert_eq!(settings.map_or("none", |settings| settings.name()), name);
            assert_eq!(sampled(&outcome), names(&LINK).into_iter().map(str::to_owned).collect(), "{name}");
            assert!(outcome.flow("it").expect("the flow").goodput_bps.expect("data") > 1e6, "{name}");
        }
    }
}

#[test]
fn each_stream_scheduler_runs_under_its_name() {
    for scheduler in SCHEDULERS.declarations() {
        let name = scheduler.name;
        let flow = format!(
            "protocol = 'quic'\nworkload = 'web'\nhttp = 'streams'\npages = 1\nreading = '0s'\n\
             quic = {{ stack = 'model', scheduler = '{name}' }}"
        );
        let outcome = played(&chain("", &flow), "scheduler", name);
        let Transport::Quic(quic) = &outcome.scenario().flows[0].transport else { panic!("it is a QUIC flow") };
        assert_eq!(quic.connection.scheduler.create().name(), name);
        assert!(outcome.completion_rows().next().is_some(), "{name} completes a page");
    }
}

/// An access network with two stations and a flow to each, with these keys of the network and of its cell.
fn cell(network: &str, cell: &str) -> String {
    format!(
        "duration = '1s'\nhost = [{{ name = 'server' }}, {{ name = 'phone', count = 2 }}]\nrouter = [{{ name = 'pgw' }}]\n\
         link = [{{ name = 'sgi', from = 'server', to = 'pgw', rate = '1Gbit/s', delay = '1ms' }}]\n\
         [[lte]]\nname = 'access'\ngateway = 'pgw'\n{network}\n[[lte.cell]]\n{cell}\n\
         [[lte.ue]]\nhost = 'phone*'\ndistance = 99\nmaximum_rate = '5Mbit/s'\n[[flow]]\nname = 'it'\nfrom = 'server'\nto = 'phone*'\n"
    )
}

#[test]
fn each_choice_of_an_access_network_runs_under_its_name() {
    for list in ACCESS_NETWORKS.iter().flat_map(|component| component.choices) {
        for declaration in (list.declarations)() {
            let name = declaration.name;
            let further = match name {
                // Free space at 99 m and 2.1 GHz: 20 log10(4 pi 99 2.1e9 / c) = 79 dB.
                "constant" => "loss = 79".to_owned(),
                "trace" => {
                    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenario/tests/data");
                    format!("file = '{}/tone.fad', continuous = true", folder.display())
                }
                _ => String::new(),
            };
            let (key, text) = match list.kind {
                "lte" => ("scheduler", cell("", &format!("scheduler = '{name}'"))),
                "path-loss" => ("model", cell(&format!("path_loss = {{ model = '{name}', {further} }}"), "")),
                "fading" => ("kind", cell(&format!("fading = {{ kind = '{name}', {further} }}"), "")),
                other => panic!("no scenario for {other}"),
            };
            let outcome = played(&text, key, name);
            let delivered = outcome.access_table("ues.csv").expect("the table").column("delivered_packets");
            // Some schedulers serve only the best UE.
            assert!(delivered.iter().sum::<f64>() > 100.0, "{name}: {delivered:?}");
        }
    }
}

/// Losses, marks, retransmissions and a limited flow, with all links measured.
fn flows() -> String {
    let link = "discipline = { kind = 'step', limit = '30packets', threshold = '10packets' }";
    let others = "[[flow]]\nname = 'bulk'\nfrom = 'source'\nto = 'sink'\n[[flow]]\nname = 'exchange'\nfrom = 'source'\nto = 'sink'\nworkload = 'request-response'\nrequest = '1kB'\n\
               response = '10kB'\nexchanges = 3\n";
    let flow = "congestion = 'dctcp'\n".to_owned() + &probe("link", "link1", &names(&LINK));
    let loss = "loss = { kind = 'bernoulli', probability = 0.001 }, ";
    chain(&(loss.to_owned() + link), &(flow + others))
        + "[measurement]\nfrom = '100ms'\nlinks = ['*']\n"
        + "[[event]]\nname = 'look'\nfrom = '200ms'\nwhen = { flow = 'bulk' }\nrecord = ['cwnd_bytes']\n"
}

/// UEs at the edge of two cells that attach, with excess traffic, all RLC modes, and one cell without HARQ.
fn edge() -> String {
    // The UE of the second cell is 50 m nearer to it, so that its longest PDUs fit into a transport block again.
    let ue = |number: u32, cell: u32, rlc: &str| {
        let x = 350 + 50 * cell;
        format!(
            "[[lte.ue]]\nhost = 'phone{number}'\ncell = 'cell{cell}'\nposition = [{x}, {number}]\nattach = 'known-cell'\n\
             rlc = {{ {rlc} }}\n"
        )
    };
    let flow = |from: &str, to: &str, start: &str| {
        format!(
            "[[flow]]\nfrom = '{from}'\nto = '{to}'\nstart = '{start}'\nprotocol = 'udp'\nworkload = 'constant-rate'\n\
             payload = 1000\nrate = '10Mbit/s'\n"
        )
    };
    "duration = '3s'\nhost = [{ name = 'server' }, { name = 'phone', count = 4 }]\nrouter = [{ name = 'pgw' }]\n\
     link = [{ name = 'sgi', from = 'server', to = 'pgw', rate = '1Gbit/s', delay = '1ms' }]\n\
     [[lte]]\nname = 'access'\ngateway = 'pgw'\npath_loss = { model = 'log-distance' }\n\
     fading = { kind = 'etu', speed = 60 }\n[[lte.cell]]\n[[lte.cell]]\nposition = [800, 0]\nharq = false\n"
        .to_owned()
        + &ue(1, 1, "mode = 'am', discard = '50ms'")
        + "bearer = [{ qci = 7, filter = [{ local_ports = [9] }] }]\n"
        + &ue(2, 1, "mode = 'um', buffer = '20kB'")
        + &ue(3, 1, "mode = 'sm'")
        + &ue(4, 2, "mode = 'am'")
        + &flow("server", "phone*", "0s")
        + &flow("phone*", "server", "1s")
}

/// A Wi-Fi network with excess traffic in both directions, a station with a weak signal, and small queues at stations.
fn wifi() -> String {
    let flow = |from: &str, to: &str| {
        format!(
            "[[flow]]\nfrom = '{from}'\nto = '{to}'\nprotocol = 'udp'\nworkload = 'constant-rate'\npayload = 1000\n\
             rate = '30Mbit/s'\n"
        )
    };
    // At 30 m the SNR is 16.0 - 46.7 - 30 log10(30) + 94.0 = 19.0 dB, at which MCS 7 loses packets.
    "duration = '3s'\nhost = [{ name = 'server' }, { name = 'phone', count = 2 }]\nrouter = [{ name = 'ap' }]\n\
     link = [{ name = 'uplink', from = 'server', to = 'ap', rate = '1Gbit/s', delay = '1ms' }]\n\
     [[wifi]]\nname = 'access'\naccess_point = 'ap'\nstandard = 'n'\nchannel_width = 20\nstreams = 1\nmcs = 4\n\
     station_packets = 50\n[[wifi.station]]\nhost = 'phone1'\n\
     [[wifi.station]]\nhost = 'phone2'\ndistance = 30\nmcs = 7\n"
        .to_owned()
        + &flow("server", "phone*")
        + &flow("phone*", "server")
}

/// A tunnel with this congestion control over a shared segment, and flows through the tunnel.
fn tunnel(control: &str) -> String {
    let flows = "duration = '3s'\nhost = [{ name = 'client' }, { name = 'proxy' }, { name = 'server' }]\n\
                 [[ethernet]]\nname = 'lan'\nhosts = ['client', 'proxy', 'server']\nrate = '10Mbit/s'\ndelay = '1us'\n\
                 [[flow]]\nname = 'tunnel'\nfrom = 'client'\nto = 'proxy'\nworkload = 'tunnel'\n\
                 [[flow]]\nname = 'upload'\nfrom = 'client'\nto = 'server'\nprotocol = 'quic'\nworkload = 'bulk'\n\
                 via = 'tunnel'\n[[flow]]\nname = 'download'\nfrom = 'client'\nto = 'server'\n\
                 workload = 'request-response'\nprotocol = 'quic'\nrequest = '1kB'\nresponse = '4MB'\nvia = 'tunnel'\n";
    let probes = probe("flow", "tunnel", &names(&PROXY)) + &probe("ethernet", "lan", &names(&SEGMENT));
    format!("{flows}{probes}[masque]\ncongestion = '{control}'\n")
}

#[test]
fn each_metric_of_a_probe_is_sampled_in_a_run() {
    let mut seen = controls();
    for (of, text) in [("it", flows()), ("tunnel", tunnel("cubic")), ("tunnel", tunnel("bbr3"))] {
        seen.extend(sampled(&played(&text, "name", of)));
    }
    for component in ACCESS_NETWORKS {
        let own: Vec<&str> = (component.metrics)().into_iter().map(|metric| metric.name).collect();
        let key = component.station.key;
        let text = if component.declaration.name == "wifi" { wifi() } else { edge() };
        let text = text + &probe(key, "phone1", &own) + &probe(key, "phone1.uplink", &own);
        let sampled = sampled(&played(&text, "name", "access"));
        assert_eq!(sampled, own.iter().map(|name| name.to_string()).collect());
        seen.extend(sampled);
    }
    assert_eq!(seen, probe_metrics(ACCESS_NETWORKS).into_iter().map(|(metric, _)| metric.name.to_owned()).collect());
}

/// Columns that have only the value zero in these runs, with the reason.
const EMPTY: [(&str, &str, &str); 0] = [];

fn declared() -> BTreeMap<&'static str, TableReference> {
    let access = ACCESS_NETWORKS.iter().flat_map(|component| (component.tables)());
    run_table_references().into_iter().chain(access).map(|table| (table.file, table)).collect()
}

#[test]
fn each_column_of_each_file_is_filled_in_a_run() {
    let declared = declared();
    let mut filled: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut files: BTreeSet<&str> = BTreeSet::new();
    for text in [flows(), tunnel("cubic"), edge(), wifi()] {
        let loaded = load(&text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let outcome = run(&loaded.scenario, &Options::default()).unwrap_or_else(|error| panic!("{error}"));
        for (file, content) in outcome.tables() {
            let table = declared.get(file).unwrap_or_else(|| panic!("{file} is not declared"));
            let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
            let content = String::from_utf8(content).expect("it is text");
            assert_eq!(content.lines().next(), Some(&*columns.join(",")), "{file}");
            for row in content.lines().skip(1) {
                // No cell of these runs has a comma.
                let cells: Vec<&str> = row.split(',').collect();
                assert_eq!(cells.len(), columns.len(), "{file}: {row}");
                let filled_here = columns.iter().zip(cells).filter(|(_, cell)| !["", "0"].contains(cell));
                filled.extend(filled_here.map(|(column, _)| (table.file, *column)));
            }
            files.insert(table.file);
        }
    }
    assert_eq!(files, declared.keys().copied().collect());
    let all = declared.values().flat_map(|table| table.columns.iter().map(|column| (table.file, column.name)));
    let empty: Vec<(&str, &str)> = all.filter(|column| !filled.contains(column)).collect();
    assert_eq!(empty, EMPTY.map(|(file, column, _)| (file, column)));
}

/// A column with the values of another violates one of these relations.
#[test]
fn columns_of_flows_and_links_are_consistent() {
    let outcome = played(&flows(), "name", "it");
    let of = |column: &str| outcome.links().column(column)[0];
    let left = of("departed_packets") + of("dropped_packets") + of("queued_at_to_packets");
    assert_eq!(of("queued_at_from_packets") + of("arrivals_packets"), left);
    assert_eq!(of("drop_ratio"), of("dropped_packets") / of("arrivals_packets"));
    assert_eq!(of("mark_ratio"), of("marked_packets") / of("arrivals_packets"));
    assert!(of("marked_packets") > 0.0 && of("drop_ratio") > 0.0 && of("drop_ratio") != of("mark_ratio"));
    assert_eq!((of("from_s"), of("to_s"), of("measured_s")), (0.1, 3.0, 2.9));
    let near = |one: f64, other: f64, part: f64| assert!((one / other - 1.0).abs() < part, "{one} {other}");
    near(of("throughput_bps"), of("departed_bytes") * 8.0 / 2.9, 1e-9);
    // The rate is 10 Mbit/s; frames that depart at the end are transmitted later.
    near(of("utilisation"), of("throughput_bps") / 1e7, 0.01);
    // Little's law, except for the packets that wait at both ends of the interval.
    near(of("mean_queue_packets") * 2.9, of("mean_queue_delay_s") * of("departed_packets"), 0.05);
    // Nearly all packets are full ones, of 1500 bytes and 2 of framing.
    near(of("mean_queue_bytes"), of("mean_queue_packets") * 1502.0, 0.05);
    near(of("departed_bytes"), of("departed_packets") * 1502.0, 0.05);
    near(of("arrivals_bytes"), of("arrivals_packets") * 1502.0, 0.05);
    assert!(of("arrivals_bytes") > of("departed_bytes") && of("p50_queue_delay_s") < of("p99_queue_delay_s"));
    for (number, row) in outcome.flow_rows().enumerate() {
        let of = |column: &str| outcome.flows().column(column)[number];
        let counters = row.counters;
        let counts = [
            ("tx_packets", counters.tx_packets),
            ("tx_bytes", counters.tx_bytes),
            ("rx_packets", counters.rx_packets),
            ("rx_bytes", counters.rx_bytes),
            ("lost_packets", counters.lost_packets),
        ];
        let times = [
            ("delay_sum_s", counters.delay_sum.as_secs_f64()),
            ("jitter_sum_s", counters.jitter_sum.as_secs_f64()),
            ("first_tx_s", counters.first_tx.as_secs_f64()),
            ("last_tx_s", counters.last_tx.as_secs_f64()),
            ("first_rx_s", counters.first_rx.as_secs_f64()),
            ("last_rx_s", counters.last_rx.as_secs_f64()),
        ];
        for (column, value) in counts.map(|(column, count)| (column, count as f64)).into_iter().chain(times) {
            assert!((of(column) - value).abs() < 1e-12, "{}: {column}", row.flow);
        }
    }
}

/// The files that `table!` declares in the sources below a folder.
fn tables_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            tables_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source");
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//") && line.contains("static "));
            let files = lines.filter_map(|line| Some(line.split_once(" = \"")?.1.split_once("\":")?.0));
            found.extend(files.filter(|file| file.ends_with(".csv")).map(str::to_owned));
        }
    }
}

#[test]
fn each_table_of_the_sources_is_in_the_reference_page() {
    let mut found = BTreeSet::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(crates).expect("the crates").flatten() {
        tables_below(&entry.path().join("src"), &mut found);
    }
    let study = study_table_references().into_iter().map(|table| table.file).filter(|file| *file != "results.csv");
    assert_eq!(found, declared().into_keys().chain(study).map(str::to_owned).collect());
}
