//! Tests the descriptions of files with LTE access networks.

use fullpipe_lte::bearer::{Classifier, Qci};
use fullpipe_lte::component::LTE;
use fullpipe_lte::component::{FadingSource, LteSettings};
use fullpipe_lte::config::{CqiSource, FadingStart, Position, Trajectory};
use fullpipe_lte::connection::{AttachProcedure, SignalingMode};
use fullpipe_lte::radio::antenna::TransmissionMode;
use fullpipe_lte::radio::fading::{DelayProfile, TraceSampling};
use fullpipe_lte::radio::path_loss::PathLoss;
use fullpipe_lte::rlc::RlcMode;
use fullpipe_lte::scheduler::catalogue;
use fullpipe_lte::scheduler::catalogue::SchedulerParameters;
use fullpipe_lte::scheduler::{ChannelAwareness, FrequencyMetric, TokenBankLimits};
use fullpipe_network::MediumDirection;
use fullpipe_network::filter::{AddressMask, FilterDirection, PacketFilter, PortRange};
use fullpipe_scenario::description::*;
use fullpipe_scenario::schema::{Choice, DefaultValue, Field, FieldKind, Table, Variant};
use fullpipe_scenario::{LoadedScenario, Override, load};
use fullpipe_units::{Distribution, Duration, Rate};
use fullpipe_workload::ConstantRateSpec;
use std::any::Any;
use std::path::Path;

fn good(text: &str) -> LoadedScenario {
    load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The settings of the first access network of a scenario.
fn settings(scenario: &Scenario) -> &LteSettings {
    (&*scenario.access[0] as &dyn Any).downcast_ref().expect("the access network is LTE")
}

fn carriers(settings: &LteSettings) -> [fullpipe_lte::config::CellCarrier; 2] {
    [settings.config.cells[0].downlink, settings.config.cells[0].uplink]
}

fn resource_blocks(settings: &LteSettings) -> [usize; 2] {
    carriers(settings).map(|carrier| carrier.bandwidth.resource_blocks())
}

fn megahertz(settings: &LteSettings) -> [f64; 2] {
    carriers(settings).map(|carrier| carrier.centre_hz / 1e6)
}

#[test]
fn lte_bench_scenarios_have_the_documented_values() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/bench");
    // lte-1, lte-50, lte-500: the number of UEs, at 99 m, or for lte-500 spread over 50 m to 3 km. 100 RB, EPA 3 km/h,
    // 90 Mbit/s in total.
    for (count, nearest, farthest) in [(1, 99.0, 99.0), (50, 99.0, 99.0), (500, 50.0, 3000.0)] {
        let scenario = good(&std::fs::read_to_string(folder.join(format!("lte-{count}.toml"))).unwrap()).scenario;
        let lte = settings(&scenario);
        let fading =
            FadingSource::Generator { profile: DelayProfile::ExtendedPedestrianA, speed_kmh: 3.0, repeat_s: Some(10) };
        assert_eq!((resource_blocks(lte), &lte.fading[0], lte.stations.len()), ([100, 100], &fading, count));
        let distance = |ue: usize| lte.config.ues[ue].course.points[0].1.x;
        assert_eq!((distance(0), distance(count - 1)), (nearest, farthest));
        assert_eq!((scenario.flows.len(), scenario.duration), (count, Duration::from_secs(10)));
        // 1400 bytes of payload at 90 Mbit/s in total: one packet every count x 124 444 ns.
        let datagrams: &ConstantRateSpec = scenario.flows[0].workload.downcast_ref().unwrap();
        assert_eq!(datagrams.payload_bytes, 1400);
        assert!((datagrams.interval.as_secs_f64() / count as f64 - 1400.0 * 8.0 / 90e6).abs() < 1e-9);
    }
}

#[test]
fn lte_file_has_the_described_network() {
    let base = "[[host]]\nname = 'server'\n[[router]]\nname = 'pgw'\n[[host]]\nname = 'phone'\ncount = 5\n\
                [[link]]\nname = 'sgi'\nfrom = 'server'\nto = 'pgw'\nrate = '1Gbit/s'\ndelay = '10ms'\n\
                [[lte]]\nname = 'access'\ngateway = 'pgw'\n[[lte.cell]]\n";
    let text = format!(
        "{base}[[lte.ue]]\nhost = 'phone*'\ndistance = 100\nfarthest = 500\n\
                        [[flow]]\nfrom = 'server'\nto = 'phone*'\n[[probe]]\nue = 'phone2*'\nmetrics = ['cqi']"
    );
    let scenario = good(&text).scenario;
    let access = settings(&scenario);
    let lte = &access.config;
    // Channels 100 and 18100 of band 1: 2110 MHz and 1920 MHz, plus 100 steps of 100 kHz.
    assert_eq!((resource_blocks(access), megahertz(access)), ([25, 25], [2120.0, 1930.0]));
    assert_eq!(access.fading, [FadingSource::None, FadingSource::None]);
    assert_eq!((lte.cells[0].name.as_str(), lte.cells[0].scheduler.as_str()), ("cell1", "pf"));
    // Evenly distributed from 100 to 500 m.
    let at: Vec<(f64, Position)> = lte.ues.iter().map(|ue| ue.course.points[0]).collect();
    assert_eq!(at, [100.0, 200.0, 300.0, 400.0, 500.0].map(|x| (0.0, Position { x, y: 0.0, z: 1.5 })));
    assert_eq!(access.stations.iter().map(|node| node.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    // 24 of 25 resource blocks form whole groups: at most 17 568 bits per millisecond, 219 600 bytes in 100 ms.
    assert_eq!(lte.ues[0].bearers[0].limits.max_buffer_bytes, Some(219_600));
    let subjects: Vec<ProbeSubject> = scenario.probes.iter().map(|probe| probe.subject).collect();
    assert_eq!(subjects, MediumDirection::ALL.map(|way| ProbeSubject::Station { access: 0, station: 1, way }));
    assert_eq!(scenario.flows.len(), 5);

    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tone.fad");
    let moving = format!(
        "{base}fading = 1\n[[lte.ue]]\nhost = 'phone3'\ncourse = 'course.txt'\nrlc = {{ preset = 'reference-buffer' }}\n\
         [[flow]]\nfrom = 'phone3'\nto = 'server'"
    );
    let moving = moving.replace(
        "[[lte.cell]]\nfading = 1",
        "fading = { kind = 'trace', file = 'tone.fad', window = '3ms' }\nuplink_fading = { kind = 'epa' }\n[[lte.cell]]",
    );
    let scenario = load(&moving, trace.with_file_name("file.toml").to_str().unwrap(), &[]).unwrap().scenario;
    let (fading, ue) = (&settings(&scenario).fading, &settings(&scenario).config.ues[0]);
    let points = [(0.0, 50.0, 0.0), (10.0, 150.0, 20.0), (20.5, 150.0, 200.0)];
    assert_eq!(ue.course.points, points.map(|(at, x, y)| (at, Position { x, y, z: 1.5 })));
    assert_eq!(ue.bearers[0].limits.max_buffer_bytes, Some(10_240));
    let FadingSource::Trace { path, trace: read, places: TraceSampling::Windows { milliseconds: 3 } } = &fading[0]
    else {
        panic!("{:?}", fading[0])
    };
    assert_eq!((path, read.resource_blocks(), read.duration_ms()), (&trace, 25, 12));
    assert_eq!(scenario.referenced_files().collect::<Vec<_>>(), [trace.as_path()]);
    assert_eq!(
        fading[1],
        FadingSource::Generator { profile: DelayProfile::ExtendedPedestrianA, speed_kmh: 3.0, repeat_s: None }
    );
}

/// A network with `keys`, and with one cell and one UE that have the given keys.
fn lte(keys: &str, cell: &str, ue: &str) -> LoadedScenario {
    good(&format!(
        "[[host]]\nname = 'server'\n[[router]]\nname = 'pgw'\n[[host]]\nname = 'phone'\n[[link]]\nname = 'sgi'\nfrom = 'server'\nto = \
         'pgw'\nrate = '1Gbit/s'\ndelay = '10ms'\n[[lte]]\nname = 'access'\ngateway = 'pgw'\n{keys}\n\
         [[lte.cell]]\n{cell}\n[[lte.ue]]\nhost = 'phone'\n{ue}\n[[flow]]\nfrom = 'server'\nto = 'phone'\n"
    ))
}

#[test]
fn preset_table_i_has_the_published_radio_parameters() {
    // Scharnitzky et al., Table I, row by row. In the text of the paper the UE is at 99 m.
    let lte_of = |loaded: LoadedScenario| settings(&loaded.scenario).clone();
    let table = lte("preset = 'table-i'", "", "");
    assert!(table.resolved.contains("allow_nonstandard_bandwidth = true"));
    let radio = lte_of(table);
    let config = &radio.config;
    let (cell, ue) = (&config.cells[0], &config.ues[0]);
    let bearer = &ue.bearers[0];
    // UE phy and eNB phy: TxPower, NoiseFigure.
    assert_eq!((ue.power_dbm, ue.noise_figure_db), (10.0, 7.0));
    assert_eq!((cell.power_dbm, cell.noise_figure_db), (30.0, 5.0));
    // Spectrum phy: DataErrorModelEnabled and CtrlErrorModelEnabled are true.
    assert!(config.errors.data && config.errors.control);
    // Helper: PDSCH for CQI false.
    assert_eq!(cell.cqi_source, CqiSource::Control);
    // eNB RRC: RLC_UM_ALWAYS; transmission mode 0, which is the first mode.
    assert_eq!((bearer.mode, ue.transmission_mode), (RlcMode::Unacknowledged, TransmissionMode::SingleAntenna));
    // Drop-tail queue: 16 packets.
    assert_eq!((bearer.limits.max_buffer_bytes, bearer.limits.max_buffer_sdus), (None, Some(16)));
    // Scheduler, path loss, fading.
    assert_eq!((cell.scheduler.as_str(), config.path_loss), ("pf", PathLoss::Friis { smallest_db: 0.0 }));
    let epa = FadingSource::Generator { profile: DelayProfile::ExtendedPedestrianA, speed_kmh: 3.0, repeat_s: None };
    assert_eq!(radio.fading, [epa.clone(), epa]);
    // eNB device: bandwidth and EARFCN of both directions.
    // Channels 9895 and 27785 of band 31: 462.5 MHz and 452.5 MHz, plus 25 steps of 100 kHz.
    assert_eq!((resource_blocks(&radio), megahertz(&radio)), ([25, 25], [465.0, 455.0]));
    let at = |x| Position { x, y: 0.0, z: 1.5 };
    assert_eq!((&ue.course, cell.position), (&Trajectory::stationary(at(99.0)), at(0.0)));

    // 100 resource blocks in both directions, more than band 31 has.
    assert_eq!(resource_blocks(&lte_of(lte("preset = 'table-i'\nresource_blocks = 100", "", ""))), [100, 100]);
    // Every key has precedence over the preset.
    let other = lte_of(lte(
        "preset = 'table-i'\nresource_blocks = 50\nuplink_resource_blocks = 25\nearfcn = 300\nuplink_earfcn = 18300\n\
         allow_nonstandard_bandwidth = false\npath_loss = { model = 'kun-2600' }\nfading = { kind = 'etu', speed = 30 }\n\
         data_errors = false\ncontrol_errors = false",
        "power = 43\nnoise_figure = 4\nscheduler = 'rr'\ncqi = 'mixed'",
        "power = 23\nnoise_figure = 9\ntransmission_mode = 2\nposition = [5, 6]\nrlc = { mode = 'am', buffer = '1MB' }",
    ));
    let config = &other.config;
    let (cell, ue) = (&config.cells[0], &config.ues[0]);
    let bearer = &ue.bearers[0];
    assert_eq!((resource_blocks(&other), megahertz(&other)), ([50, 25], [2140.0, 1950.0]));
    assert_eq!(config.path_loss, PathLoss::Kun2600);
    let etu = FadingSource::Generator { profile: DelayProfile::ExtendedTypicalUrban, speed_kmh: 30.0, repeat_s: None };
    assert_eq!((&other.fading, config.errors.data, config.errors.control), (&[etu.clone(), etu], false, false));
    assert_eq!((cell.power_dbm, cell.noise_figure_db), (43.0, 4.0));
    assert_eq!((cell.scheduler.as_str(), cell.cqi_source), ("rr", CqiSource::Mixed));
    assert_eq!(
        (ue.power_dbm, ue.noise_figure_db, ue.course.points[0].1),
        (23.0, 9.0, Position { x: 5.0, y: 6.0, z: 1.5 })
    );
    assert_eq!(ue.transmission_mode, TransmissionMode::TransmitDiversity);
    assert_eq!(
        (bearer.mode, bearer.limits.max_buffer_bytes, bearer.limits.max_buffer_sdus),
        (RlcMode::Acknowledged, Some(1_000_000), None)
    );
    // A preset in an inner table also has precedence.
    let smaller = lte_of(lte("preset = 'table-i'", "", "distance = 500\nrlc = { preset = 'reference-buffer' }"));
    let ue = &smaller.config.ues[0];
    let limits = ue.bearers[0].limits;
    assert_eq!((limits.max_buffer_bytes, limits.max_buffer_sdus), (Some(10_240), None));
    assert_eq!(ue.course.points[0].1.x, 500.0);
}

#[test]
fn fading_begins_selects_the_start_of_fading() {
    let begins = |keys: &str| settings(&lte(keys, "", "distance = 99").scenario).config.fading_begins;
    assert_eq!(begins(""), FadingStart::Run);
    assert_eq!(begins("fading_begins = 'first-packet'"), FadingStart::Packet { least_bytes: 1 });
    let large = begins("fading_begins = 'first-packet'\nfading_begins_with = '500B'");
    assert_eq!(large, FadingStart::Packet { least_bytes: 500 });
}

#[test]
fn attach_and_signalling_select_how_bearers_are_established() {
    let of = |keys: &str| settings(&lte("", "", &format!("distance = 99\n{keys}")).scenario).clone();
    assert_eq!(of("").config.ues[0].attach, AttachProcedure::Ideal);
    assert_eq!(of("attach = 'known-cell'").switched_on_s, [Distribution::Constant { value: 0.0 }]);
    let searches = of("attach = 'cell-search'\nswitched_on = { kind = 'uniform', low = '1s', high = '3s' }");
    assert!(matches!(searches.config.ues[0].attach, AttachProcedure::CellSearch { .. }));
    assert_eq!(searches.switched_on_s, [Distribution::Uniform { low: 1.0, high: 3.0 }]);
    let signalling = |keys: &str| settings(&lte(keys, "", "distance = 99").scenario).config.signalling;
    assert_eq!([signalling(""), signalling("signalling = 'radio'")], [SignalingMode::Ideal, SignalingMode::Radio]);
}

#[test]
fn ue_has_its_default_and_dedicated_bearers() {
    let of = |keys: &str, ue: &str| {
        settings(&lte(keys, "scheduler = 'pss'", &format!("distance = 99\n{ue}")).scenario).clone()
    };
    let default = of("", "");
    let [plain] = &default.config.ues[0].bearers[..] else { panic!("there is a default bearer only") };
    assert_eq!((plain.qci, plain.guaranteed.bits_per_second()), (Qci::DEFAULT, 0));
    // With one bearer, no classifier is needed.
    assert_eq!(default.classifiers, []);
    let voice = "[[lte.ue.bearer]]\nqci = 1\nguaranteed_rate = '64kbit/s'\nrlc = { buffer = '10packets' }\n\
                 [[lte.ue.bearer.filter]]\ndirection = 'downlink'\nremote = 'server'\nlocal_ports = [5000, 5003]\n\
                 [[lte.ue.bearer.filter]]\nremote = '192.0.2.0/24'\nremote_ports = [80]\n";
    let settings = of("", &format!("rlc = {{ mode = 'am' }}\n{voice}"));
    let [_, voice] = &settings.config.ues[0].bearers[..] else { panic!("there is one dedicated bearer") };
    assert_eq!((voice.qci.number(), voice.guaranteed), (1, Rate::from_bits_per_second(64_000)));
    // The UE's RLC settings of the default bearer do not apply to this bearer.
    assert_eq!((voice.mode, voice.limits.max_buffer_sdus), (RlcMode::Unacknowledged, Some(10)));
    // The addresses of the first host are 10.0.0.1 and fd66:756c:6c70::1.
    let one = |address: &str, bits| Some(AddressMask::prefix(address.parse().unwrap(), bits).unwrap());
    let downlink = PacketFilter {
        ways: FilterDirection::Downlink,
        local_ports: PortRange::new(5000, 5003).unwrap(),
        ..PacketFilter::ANY
    };
    let mut classifier = Classifier::with_default_bearer();
    let filters = [
        PacketFilter { remote: one("10.0.0.1", 32), ..downlink },
        PacketFilter { remote: one("fd66:756c:6c70::1", 128), ..downlink },
        PacketFilter { remote: one("192.0.2.0", 24), remote_ports: PortRange::one(80), ..PacketFilter::ANY },
    ];
    classifier.add(2, &filters).unwrap();
    assert_eq!(settings.classifiers, [classifier]);
    // The RLC settings of a preset apply to all bearers.
    let filter = "[[lte.ue.bearer]]\nqci = 7\n[[lte.ue.bearer.filter]]\nremote = 'server'";
    let buffers = of("preset = 'table-i'", filter);
    let buffers = buffers.config.ues[0].bearers.iter().map(|bearer| bearer.limits.max_buffer_sdus);
    assert_eq!(buffers.collect::<Vec<_>>(), [Some(16), Some(16)]);
}

#[test]
fn scheduler_parameters_of_a_cell_reach_the_scheduler() {
    let cell = |keys: &str| settings(&lte("", keys, "distance = 99").scenario).config.cells[0].clone();
    let plain = cell("");
    assert_eq!((plain.scheduler_parameters, plain.downlink_groups), (SchedulerParameters::default(), None));
    let bank =
        cell("scheduler = 'td-tbfq'\ntoken_pool = '10kB'\ntoken_credit = '20kB'\ntoken_debt = 0\ngroups = [2, 11]");
    let token_bank = TokenBankLimits { pool_bytes: 10_000, credit_bytes: 20_000, debt_bytes: 0 };
    assert_eq!(bank.scheduler_parameters, SchedulerParameters { token_bank, ..SchedulerParameters::default() });
    assert_eq!(bank.downlink_groups, Some((2, 10)));
    let sets = cell("scheduler = 'pss'\nfrequency_metric = 'co-it-a'\nmultiplexed_ues = 3").scheduler_parameters;
    let frequency_metric = FrequencyMetric::CoItA;
    assert_eq!(sets, SchedulerParameters { frequency_metric, multiplexed_ues: 3, ..SchedulerParameters::default() });
    let aware =
        cell("scheduler = 'cqa'\nchannel_awareness = 'proportional-fair'\nwaiting_unit = '20ms'").scheduler_parameters;
    let channel_awareness = ChannelAwareness::ProportionalFair;
    assert_eq!(aware, SchedulerParameters { channel_awareness, waiting_unit_ms: 20, ..SchedulerParameters::default() });
}

/// The names that keys of a table and of its inner tables accept: for each key its path and its values as TOML.
fn names(table: &'static Table, path: &str) -> Vec<(String, Vec<String>)> {
    let quoted = |choices: &[Choice]| -> Vec<String> {
        choices.iter().filter(|choice| choice.available).map(|choice| format!("'{}'", choice.name)).collect()
    };
    let mut found = Vec::new();
    for Field { key, kind, .. } in table.common_fields() {
        let path = format!("{path}.{key}");
        match kind {
            FieldKind::Choice(choices) => found.push((path, quoted(choices))),
            FieldKind::Tables(table) => found.extend(names(table, &format!("{path}.0"))),
            FieldKind::Table(table) => {
                found.extend(names(table, &path));
                let Some(variants) = table.variants else { continue };
                let whole = |variant: &Variant, more: &str| {
                    format!("{{ {} = '{}'{}{more} }}", variants.key, variant.name, least(variant))
                };
                found.push((path.clone(), variants.list.iter().map(|variant| whole(variant, "")).collect()));
                for (variant, field) in variants.list.iter().flat_map(|v| v.fields().map(move |field| (v, field))) {
                    if let FieldKind::Choice(choices) = &field.kind {
                        let value = |name: &String| whole(variant, &format!(", {} = {name}", field.key));
                        found.push((path.clone(), quoted(choices).iter().map(value).collect()));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// The required keys of a variant.
fn least(variant: &Variant) -> String {
    let required = variant.fields().filter(|field| matches!(field.default, DefaultValue::Required));
    let value = |field: &Field| match field.key {
        "loss" => ", loss = 100".to_owned(),
        "file" => format!(", file = '{}/tests/data/tone.fad', continuous = true", env!("CARGO_MANIFEST_DIR")),
        other => panic!("no value for {other}"),
    };
    required.map(value).collect()
}

#[test]
fn each_declared_name_is_accepted_and_selects_a_distinct_value() {
    let text = "[[host]]\nname = 'phone'\n[[router]]\nname = 'pgw'\n[[host]]\nname = 'server'\n[[link]]\nname = 'sgi'\nfrom = \
                'server'\nto = 'pgw'\nrate = '1Gbit/s'\ndelay = '10ms'\n[[lte]]\nname = 'access'\ngateway = 'pgw'\n[[lte.cell]]\n\
                [[lte.ue]]\nhost = 'phone'\nposition = [9, 9]\n[[lte.ue.bearer]]\nqci = 7\n[[lte.ue.bearer.filter]]\n\
                local_ports = [80]\n[[flow]]\nfrom = 'server'\nto = 'phone'\n";
    let (mut keys, mut count) = (0, 0);
    for (path, values) in names(LTE.table, "lte.0") {
        let key = path.rsplit('.').next().unwrap();
        let owner = catalogue::ENTRIES.iter().find(|entry| entry.parameters.contains(&key));
        let read = |value: &String| {
            let mut set = vec![Override { path: path.clone(), value: value.clone() }];
            let scheduler = owner.map(|entry| format!("'{}'", entry.declaration.name));
            set.extend(scheduler.map(|value| Override { path: "lte.0.cell.0.scheduler".into(), value }));
            load(text, "names.toml", &set).unwrap_or_else(|errors| panic!("{path} = {value}: {errors}")).scenario.access
        };
        // This value is an alias of another value, depending on the class of service.
        let values: Vec<&String> = values.iter().filter(|value| *value != "'by-loss-rate'").collect();
        let all: Vec<_> = values.iter().map(|value| read(value)).collect();
        for (one, other) in (0..all.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
            assert!(all[one] != all[other], "{path}: {} and {} are the same", values[one], values[other]);
        }
        (keys, count) = (keys + 1, count + all.len());
    }
    assert!(keys >= 25 && count >= 80, "{keys} keys with {count} names");
}
