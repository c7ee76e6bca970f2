//! The plain description of access networks, and what can only be checked with the radio's own rules.

use super::{OF_SCHEDULERS, PLACES};
use crate::description::QueueLimit;
use crate::description::lte::{AttachChoice, Bearer, Cell, Fading, Lte, Rlc, Ue};
use crate::language::distributions::{checked, distribution};
use crate::language::network::{Network, known};
use crate::language::{COMPARED, Check, some_of};
use crate::schema::{Place, Tree, Value, nearest};
use crate::schema::{is_pattern, matches, natural_order};
use fullpipe_lte::bearer::{Addresses, MOST_BEARERS, MOST_FILTERS, PacketFilter, Ports, Qci, RlcChoice, Ways};
use fullpipe_lte::config::FadingBegins;
use fullpipe_lte::connection::Signalling;
use fullpipe_lte::radio::amc::{Amc, BIT_ERROR_RATE};
use fullpipe_lte::radio::antenna::{Antenna, TransmissionMode};
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::radio::errors::Grid;
use fullpipe_lte::radio::fading::{self, Places, Profile, Recipe, Trace};
use fullpipe_lte::radio::frequency::{self, Bands};
use fullpipe_lte::radio::path_loss::{City, Environment, PathLoss, Street, Wall};
use fullpipe_lte::radio::power::{Loop, PowerControl};
use fullpipe_lte::radio::tables::{self, Direction};
use fullpipe_lte::scheduler::catalogue::{self, Parameters};
use fullpipe_lte::scheduler::{ChannelAwareness, FrequencyMetric, TokenBankLimits};
use fullpipe_network::address;
use fullpipe_units::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// UEs have numbers of 16 bits.
const MOST_UES: usize = 65_534;

/// The access networks of a file.
pub(in crate::language) fn networks(root: &Tree, network: &mut Network, check: &mut Check) {
    let mut radio = BTreeSet::new();
    let mut fading = Files::default();
    for (index, tree) in root.get("lte").map(Value::tables).unwrap_or_default().iter().enumerate() {
        if check.full() {
            return;
        }
        let path = format!("lte.{index}");
        network.name_medium(tree, &path, check);
        if let Some(lte) = access_network(tree, &path, network, &mut radio, &mut fading, check) {
            network.lte.push(lte);
        }
    }
}

/// Traces that were read: each file once.
#[derive(Default)]
struct Files(BTreeMap<PathBuf, Result<Arc<Trace>, String>>);

impl Files {
    fn read(&mut self, path: &Path) -> Result<Arc<Trace>, String> {
        let read = || {
            let file = File::open(path).map_err(|reason| format!("cannot read {}: {reason}", path.display()))?;
            Trace::read(BufReader::new(file)).map(Arc::new).map_err(|reason| reason.to_string())
        };
        self.0.entry(path.to_owned()).or_insert_with(read).clone()
    }
}

fn small(tree: &Tree, key: &str) -> u32 {
    u32::try_from(tree.integer(key)).unwrap_or(u32::MAX)
}

fn access_network(
    tree: &Tree,
    path: &str,
    network: &Network,
    radio: &mut BTreeSet<NodeId>,
    files: &mut Files,
    check: &mut Check,
) -> Option<Lte> {
    let before = check.count();
    let gateway = known(tree.text("gateway"), tree.place_of("gateway"), &format!("{path}.gateway"), network, check);
    let keys = [("resource_blocks", "earfcn", "fading"), ("uplink_resource_blocks", "uplink_earfcn", "uplink_fading")];
    let directions = [Direction::Downlink, Direction::Uplink];
    let (mut fading, mut too_wide) = (Vec::new(), None);
    for ((blocks, earfcn, of_fading), direction) in keys.into_iter().zip(directions) {
        // What the uplink takes over from the downlink is told where it stands.
        let told = |key: &'static str| if tree.is_given(key) { key } else { key.trim_start_matches("uplink_") };
        let mut wrong = |key: &'static str, reason: String, expected: &str| {
            let key = told(key);
            check.error(tree.place_of(key), &format!("{path}.{key}"), reason, vec![expected.into()]);
        };
        let bandwidth = match Bandwidth::new(small(tree, blocks)) {
            Ok(bandwidth) => bandwidth,
            Err(reason) => {
                wrong(blocks, reason.to_string(), "6, 15, 25, 50, 75 or 100");
                continue;
            }
        };
        let carrier = match frequency::carrier(direction, small(tree, earfcn), Bands::Standard) {
            Ok(carrier) => carrier,
            Err(reason) => {
                wrong(earfcn, reason.to_string(), "the number of a channel of 3GPP TS 36.101");
                continue;
            }
        };
        if let Err(reason) = carrier.check(bandwidth, tree.boolean("allow_nonstandard_bandwidth"))
            && too_wide.replace(told(blocks)) != Some(told(blocks))
        {
            let expected = "a bandwidth that the band has, or allow_nonstandard_bandwidth = true";
            wrong(blocks, reason.to_string(), expected);
        }
        let of = tree.table(of_fading);
        let path = format!("{path}.{}", told(of_fading));
        fading.push(described_fading(of, &path, bandwidth, carrier.hz, files, check));
    }
    let fading_begins = fading_begins(tree, path, check);
    let path_loss = path_loss(tree.table("path_loss"));
    let cells = cells(tree, path, check);
    let ues = ues(tree, path, network, &cells, &path_loss, radio, check);
    if let Some(gateway) = gateway
        && ues.iter().any(|ue| ue.node == gateway)
    {
        let message = format!("{} is the gateway and a UE", tree.text("gateway"));
        check.error(tree.place_of("gateway"), &format!("{path}.gateway"), message, vec!["a node of its own".into()]);
    }
    if check.count() > before {
        return None;
    }
    let fading: [Option<Fading>; 2] = fading.try_into().ok()?;
    let [Some(downlink), Some(uplink)] = fading else { return None };
    Some(Lte {
        name: tree.text("name").to_string(),
        gateway: gateway?,
        mtu_bytes: u32::try_from(tree.size("mtu")).unwrap_or(u32::MAX),
        resource_blocks: [small(tree, "resource_blocks"), small(tree, "uplink_resource_blocks")],
        earfcn: [small(tree, "earfcn"), small(tree, "uplink_earfcn")],
        path_loss,
        shadowing_db: tree.number("shadowing"),
        fading: [downlink, uplink],
        fading_begins,
        data_errors: tree.boolean("data_errors"),
        control_errors: tree.boolean("control_errors"),
        signalling: if tree.choice("signalling") == "radio" { Signalling::Radio } else { Signalling::Ideal },
        grid: if tree.choice("mutual_information") == "smooth" { Grid::Smooth } else { Grid::Reference },
        core_rate: tree.rate("core_rate"),
        s1_delay: tree.duration("s1_delay"),
        s5_delay: tree.duration("s5_delay"),
        cells,
        ues,
    })
}

fn fading_begins(tree: &Tree, path: &str, check: &mut Check) -> FadingBegins {
    let (waits, least) = (tree.choice("fading_begins") == "first-packet", tree.get("fading_begins_with"));
    if !waits && let Some(least) = least {
        let message = format!("{path} has fading_begins_with, and fading that begins with the run");
        let expected = vec!["fading_begins = \"first-packet\"".into()];
        check.error(least.place, &format!("{path}.fading_begins_with"), message, expected);
    }
    let least_bytes = least.map_or(1, |least| u32::try_from(least.size()).unwrap_or(u32::MAX));
    if waits { FadingBegins::Packet { least_bytes } } else { FadingBegins::Run }
}

fn described_fading(
    tree: &Tree,
    path: &str,
    bandwidth: Bandwidth,
    carrier_hz: f64,
    files: &mut Files,
    check: &mut Check,
) -> Option<Fading> {
    let profile = match tree.choice("kind") {
        "none" => return Some(Fading::None),
        "trace" => return traced(tree, path, bandwidth, files, check),
        "eva" => Profile::ExtendedVehicularA,
        "etu" => Profile::ExtendedTypicalUrban,
        _ => Profile::ExtendedPedestrianA,
    };
    let speed_kmh = tree.number("speed");
    let recipe = Recipe { profile, speed_kmh, carrier_hz, spacing_hz: frequency::RESOURCE_BLOCK_HZ };
    let repeat = tree.get("repeat").map(|repeat| repeat.duration().as_nanos());
    if repeat.is_some_and(|repeat| !repeat.is_multiple_of(1_000_000_000)) {
        let message = "what is repeated of generated fading is not whole seconds";
        check.error(tree.place_of("repeat"), &format!("{path}.repeat"), message, vec!["whole seconds".into()]);
        return None;
    }
    let repeat_s = repeat.map(|repeat| (repeat / 1_000_000_000) as u32);
    match fading::Fading::generator(recipe, 0, bandwidth) {
        Ok(_) => Some(Fading::Generated { profile, speed_kmh, repeat_s }),
        Err(reason) => {
            let expected = vec!["a speed that milliseconds can follow".into()];
            check.error(tree.place_of("speed"), &format!("{path}.speed"), reason.to_string(), expected);
            None
        }
    }
}

fn traced(tree: &Tree, path: &str, bandwidth: Bandwidth, files: &mut Files, check: &mut Check) -> Option<Fading> {
    let file = here(check).join(tree.text("file"));
    let window = tree.duration("window").as_nanos();
    let milliseconds = u32::try_from(window / 1_000_000).unwrap_or(u32::MAX);
    let places = if tree.boolean("continuous") { Places::Continuous } else { Places::Windows { milliseconds } };
    if !window.is_multiple_of(1_000_000) {
        let message = "a window of a fading trace is not whole milliseconds";
        check.error(tree.place_of("window"), &format!("{path}.window"), message, vec!["whole milliseconds".into()]);
        return None;
    }
    let trace = files.read(&file).and_then(|trace| {
        // It finds out whether the trace is wide and long enough.
        let fits = fading::Fading::trace(trace.clone(), places, 0, bandwidth);
        fits.map(|_| trace).map_err(|reason| reason.to_string())
    });
    match trace {
        Ok(trace) => Some(Fading::Trace { path: file, trace, places }),
        Err(reason) => {
            let message = format!("{}: {reason}", tree.text("file"));
            let expected = vec!["a line for each resource block, with a gain in dB for each millisecond".into()];
            check.error(tree.place_of("file"), &format!("{path}.file"), message, expected);
            None
        }
    }
}

/// The file's folder.
fn here(check: &Check) -> PathBuf {
    Path::new(check.sources.file()).parent().unwrap_or(Path::new("")).to_owned()
}

fn path_loss(tree: &Tree) -> PathLoss {
    let number = |key| tree.number(key);
    let city = || if tree.choice("city") == "small" { City::Small } else { City::Large };
    let environment = || match tree.choice("environment") {
        "suburban" => Environment::Suburban,
        "open" => Environment::Open,
        _ => Environment::Urban,
    };
    let street = || Street {
        rooftop_m: number("rooftop"),
        width_m: number("street_width"),
        buildings_m: number("built_up"),
        separation_m: number("separation"),
        orientation_degrees: number("orientation"),
        city: city(),
    };
    match tree.choice("model") {
        "friis-per-block" => PathLoss::FriisPerBlock,
        "constant" => PathLoss::Constant { db: number("loss") },
        "log-distance" => PathLoss::LogDistance {
            exponent: number("exponent"),
            reference_m: number("reference_distance"),
            reference_db: number("reference_loss"),
        },
        "three-log-distance" => PathLoss::three_log_distance(),
        "two-ray-ground" => PathLoss::TwoRayGround,
        "okumura-hata" => PathLoss::OkumuraHata { environment: environment(), city: city() },
        "cost231" => PathLoss::Cost231 {
            base_m: number("base_height"),
            mobile_m: number("mobile_height"),
            constant_db: number("constant"),
            smallest_m: number("smallest_distance"),
        },
        "itu-r-1411-los" => PathLoss::LineOfSight,
        "itu-r-1411-nlos" => PathLoss::OverRooftops(street()),
        "kun-2600" => PathLoss::Kun2600,
        "buildings" => PathLoss::Buildings {
            environment: environment(),
            street: street(),
            line_of_sight_m: number("line_of_sight"),
            wall: match tree.choice("wall") {
                "wood" => Some(Wall::Wood),
                "concrete-with-windows" => Some(Wall::ConcreteWithWindows),
                "concrete" => Some(Wall::Concrete),
                "stone" => Some(Wall::Stone),
                _ => None,
            },
            floor: small(tree, "floor"),
        },
        _ => PathLoss::Friis { smallest_db: number("smallest") },
    }
}

fn cells(tree: &Tree, path: &str, check: &mut Check) -> Vec<Cell> {
    let trees = tree.tables("cell");
    if trees.is_empty() {
        let message = format!("{path} has no cell");
        check.error(tree.place_of("cell"), &format!("{path}.cell"), message, vec!["at least one [[lte.cell]]".into()]);
    }
    let blocks = Bandwidth::new(small(tree, "resource_blocks")).ok();
    let mut names = BTreeSet::new();
    let mut cells = Vec::new();
    for (index, cell) in trees.iter().enumerate() {
        let path = format!("{path}.cell.{index}");
        let name = cell.text("name");
        if !names.insert(name) {
            let message = format!("there already is a cell {name}");
            check.error(cell.place_of("name"), &format!("{path}.name"), message, vec!["a name of its own".into()]);
        }
        let [x, y] = position(cell, &path, check).unwrap_or_default();
        let antenna = cell.table("antenna");
        let sounding = small(cell, "sounding_period");
        if ![2, 5, 10, 20, 40, 80, 160, 320].contains(&sounding) {
            let message = format!("a UE cannot sound every {sounding} subframes");
            let expected = vec!["2, 5, 10, 20, 40, 80, 160 or 320".into()];
            check.error(cell.place_of("sounding_period"), &format!("{path}.sounding_period"), message, expected);
        }
        cells.push(Cell {
            name: name.to_string(),
            position: [x, y, cell.number("height")],
            antenna: match antenna.choice("kind") {
                "cosine" => Antenna::Cosine {
                    orientation_degrees: antenna.number("orientation"),
                    beam_width_degrees: antenna.number("beam_width"),
                    largest_gain_db: antenna.number("gain"),
                },
                _ => Antenna::Isotropic,
            },
            power_dbm: cell.number("power"),
            noise_figure_db: cell.number("noise_figure"),
            scheduler: cell.choice("scheduler"),
            scheduler_parameters: parameters(cell, &path, check),
            groups: groups(cell, blocks, &path, check),
            amc: match cell.choice("amc") {
                "piro" => Amc::Piro { bit_error_rate: BIT_ERROR_RATE },
                _ => Amc::ErrorModel,
            },
            mixed_cqi: cell.choice("cqi") == "mixed",
            cqi_period: small(cell, "cqi_period"),
            sounding_period: (cell.choice("uplink_reports") == "sounding").then_some(sounding),
            harq: cell.boolean("harq"),
        });
    }
    cells
}

/// Parameters of a cell's scheduler; those of others are refused.
fn parameters(cell: &Tree, path: &str, check: &mut Check) -> Parameters {
    let scheduler = cell.choice("scheduler");
    for (key, schedulers) in OF_SCHEDULERS {
        if cell.get(key).is_some() && !schedulers.contains(&scheduler) {
            let message = format!("{path} has {key}, which the scheduler {scheduler} does not know");
            let expected = schedulers.iter().map(|name| format!("scheduler = \"{name}\"")).collect();
            check.error(cell.place_of(key), &format!("{path}.{key}"), message, expected);
        }
    }
    let reference = Parameters::default();
    let bytes =
        |key, reference| cell.get(key).map_or(reference, |bytes| u32::try_from(bytes.size()).unwrap_or(u32::MAX));
    let waiting = cell.get("waiting_unit").map(|unit| unit.duration().as_nanos());
    if waiting.is_some_and(|unit| !unit.is_multiple_of(1_000_000)) {
        let message = format!("{path} has a waiting_unit that is not whole milliseconds");
        let expected = vec!["whole milliseconds".into()];
        check.error(cell.place_of("waiting_unit"), &format!("{path}.waiting_unit"), message, expected);
    }
    let chosen = |key| cell.get(key).map(Value::choice);
    Parameters {
        token_bank: TokenBankLimits {
            pool_bytes: bytes("token_pool", reference.token_bank.pool_bytes),
            credit_bytes: bytes("token_credit", reference.token_bank.credit_bytes),
            debt_bytes: bytes("token_debt", reference.token_bank.debt_bytes),
        },
        frequency_metric: match chosen("frequency_metric") {
            Some("co-it-a") => FrequencyMetric::CoItA,
            _ => FrequencyMetric::PfSch,
        },
        multiplexed_ues: cell.get("multiplexed_ues").map_or(0, |ues| u16::try_from(ues.integer()).unwrap_or(u16::MAX)),
        channel_awareness: match chosen("channel_awareness") {
            Some("proportional-fair") => ChannelAwareness::ProportionalFair,
            _ => ChannelAwareness::FrequencySelective,
        },
        waiting_unit_ms: waiting.map_or(reference.waiting_unit_ms, |unit| (unit / 1_000_000) as u32),
    }
}

/// The first of the groups that a cell may use, and their number.
fn groups(cell: &Tree, blocks: Option<Bandwidth>, path: &str, check: &mut Check) -> Option<(usize, usize)> {
    let value = cell.get("groups")?;
    let there_are = blocks?.groups();
    let numbers: Vec<usize> = value.list().iter().filter_map(|group| usize::try_from(group.integer()).ok()).collect();
    match numbers[..] {
        [first, last] if first <= last && last < there_are => Some((first, last - first + 1)),
        _ => {
            let message = format!("{path} may use the groups {}", check.sources.found(value.place));
            let expected = vec![format!("the first and the last of 0 to {}", there_are - 1)];
            check.error(value.place, &format!("{path}.groups"), message, expected);
            None
        }
    }
}

/// Two numbers, if the table has a position.
fn position(tree: &Tree, path: &str, check: &mut Check) -> Option<[f64; 2]> {
    let value = tree.get("position")?;
    let numbers: Vec<f64> = value.list().iter().map(Value::number).collect();
    let position = <[f64; 2]>::try_from(numbers);
    if position.is_err() {
        let message = "a position has two numbers";
        check.error(value.place, &format!("{path}.position"), message, vec!["metres east and north, [99, 0]".into()]);
    }
    position.ok()
}

fn ues(
    tree: &Tree,
    path: &str,
    network: &Network,
    cells: &[Cell],
    path_loss: &PathLoss,
    radio: &mut BTreeSet<NodeId>,
    check: &mut Check,
) -> Vec<Ue> {
    let trees = tree.tables("ue");
    if trees.is_empty() {
        let message = format!("{path} has no UE");
        check.error(tree.place_of("ue"), &format!("{path}.ue"), message, vec!["at least one [[lte.ue]]".into()]);
    }
    // What the buffer's default counts in.
    let blocks = Bandwidth::new(small(tree, "resource_blocks")).map_or(0, |b| b.groups() * b.group_size());
    let mut ues = Vec::new();
    for (index, ue) in trees.iter().enumerate() {
        let path = format!("{path}.ue.{index}");
        let nodes = nodes(ue, &path, network, check);
        let cell = match ue.get("cell") {
            None => 0,
            Some(name) => match cells.iter().position(|cell| cell.name == name.text()) {
                Some(cell) => cell,
                None => {
                    let names = || cells.iter().map(|cell| cell.name.as_str());
                    let message = format!("there is no cell {}", name.text());
                    let names_list = some_of(names().collect::<Vec<_>>().into_iter());
                    let mut error = check.sources.error(name.place, &format!("{path}.cell"), message, names_list);
                    error.suggestion = nearest(name.text(), names()).map(|name| format!("\"{name}\""));
                    check.push(error);
                    continue;
                }
            },
        };
        let Some(serving) = cells.get(cell) else { continue };
        let mode = u8::try_from(ue.integer("transmission_mode")).unwrap_or(1);
        let transmission_mode = TransmissionMode::ALL[usize::from(mode.clamp(1, 7)) - 1];
        let peak_bytes_per_ms = tables::downlink_bytes(28, blocks) as usize * transmission_mode.layers();
        let bearers = bearers(ue, &path, serving, peak_bytes_per_ms as u64, network, check);
        let attach = attach(ue, &path, check);
        let count = nodes.len();
        for (number, node) in nodes.into_iter().enumerate() {
            let name = &network.nodes[node.index()].name;
            if !radio.insert(node) {
                let message = format!("{name} is a UE twice");
                check.error(ue.place_of("host"), &format!("{path}.host"), message, vec!["each host once".into()]);
                continue;
            }
            let Some(course) = course(ue, &path, serving, (number, count), check) else { break };
            if !matches!(path_loss, PathLoss::Constant { .. }) {
                far_enough(ue, &path, name, &course, cells, check);
            }
            ues.push(Ue {
                node,
                cell,
                course,
                power_dbm: ue.number("power"),
                power_control: power_control(ue.table("power_control"), serving),
                noise_figure_db: ue.number("noise_figure"),
                transmission_mode,
                data_power_offset_db: ue.number("data_power_offset"),
                attach,
                switched_on_s: checked(ue, "switched_on"),
                bearers: bearers.clone(),
            });
        }
    }
    if ues.len() > MOST_UES {
        let message = format!("{path} has {} UEs", ues.len());
        check.error(tree.place_of("ue"), &format!("{path}.ue"), message, vec![format!("at most {MOST_UES}")]);
    }
    ues
}

/// How a UE comes to its bearers; refuses a UE that is switched on and has had its bearers since the run began.
fn attach(ue: &Tree, path: &str, check: &mut Check) -> AttachChoice {
    distribution(ue, "switched_on", path, check);
    let attach = match ue.choice("attach") {
        "known-cell" => AttachChoice::KnownCell,
        "cell-search" => AttachChoice::CellSearch,
        _ => AttachChoice::Ideal,
    };
    if let (AttachChoice::Ideal, Some(switched_on)) = (attach, ue.get("switched_on")) {
        let message = format!("{path} says when it is switched on, and has its bearers when the run begins");
        let expected = vec!["attach = \"known-cell\"".into(), "attach = \"cell-search\"".into()];
        check.error(switched_on.place, &format!("{path}.switched_on"), message, expected);
    }
    attach
}

/// A UE's bearers, the default one first.
fn bearers(
    ue: &Tree,
    path: &str,
    serving: &Cell,
    peak_bytes_per_ms: u64,
    network: &Network,
    check: &mut Check,
) -> Vec<Bearer> {
    let mut bearers = vec![bearer(ue, path, serving, peak_bytes_per_ms, vec![PacketFilter::ANY], check)];
    let dedicated = ue.tables("bearer");
    let most = usize::from(MOST_BEARERS) - 1;
    if let Some(beyond) = dedicated.get(most) {
        let message = format!("{path} has {} dedicated bearers", dedicated.len());
        check.error(beyond.place, &format!("{path}.bearer.{most}"), message, vec![format!("at most {most}")]);
    }
    for (index, tree) in dedicated.iter().enumerate() {
        let path = format!("{path}.bearer.{index}");
        let filters = tree.tables("filter").iter().enumerate();
        let filters =
            filters.flat_map(|(n, filter)| packet_filters(filter, &format!("{path}.filter.{n}"), network, check));
        let filters: Vec<PacketFilter> = filters.collect();
        if filters.len() > MOST_FILTERS {
            let message = format!("{path} has {} packet filters, one for each address of a host", filters.len());
            check.error(
                tree.place_of("filter"),
                &format!("{path}.filter"),
                message,
                vec![format!("at most {MOST_FILTERS}")],
            );
        }
        bearers.push(bearer(tree, &path, serving, peak_bytes_per_ms, filters, check));
    }
    bearers
}

/// A bearer, by the keys that a UE has for its default one too.
fn bearer(
    tree: &Tree,
    path: &str,
    serving: &Cell,
    peak_bytes_per_ms: u64,
    filters: Vec<PacketFilter>,
    check: &mut Check,
) -> Bearer {
    let guaranteed = tree.get("guaranteed_rate").map(Value::rate);
    let qci = u8::try_from(tree.integer("qci")).unwrap_or(9);
    let is_guaranteed = Qci::new(qci).is_ok_and(|qci| qci.class().guaranteed);
    if (guaranteed.is_some() || is_guaranteed) && !holds_guarantees(serving.scheduler) {
        let key = if guaranteed.is_some() { "guaranteed_rate" } else { "qci" };
        let message = format!(
            "{path} has a bearer with a guaranteed bit rate, and the scheduler {} of {} knows none",
            serving.scheduler, serving.name
        );
        let with: Vec<String> = catalogue::ENTRIES
            .iter()
            .filter(|e| e.supports_guaranteed_bit_rate)
            .map(|e| format!("scheduler = \"{}\"", e.name))
            .collect();
        check.error(tree.place_of(key), &format!("{path}.{key}"), message, with);
    } else if is_guaranteed && guaranteed.is_none() {
        let message = format!("{path} has a bearer of class {qci}, which guarantees a bit rate, without one");
        check.error(tree.place_of("qci"), &format!("{path}.qci"), message, vec!["guaranteed_rate".into()]);
    }
    Bearer {
        qci,
        guaranteed,
        maximum: tree.get("maximum_rate").map(Value::rate),
        rlc: rlc(tree.table("rlc"), peak_bytes_per_ms),
        filters,
    }
}

/// A packet filter of a file is one for each pair of addresses that it means: a host has one of each version.
fn packet_filters(tree: &Tree, path: &str, network: &Network, check: &mut Check) -> Vec<PacketFilter> {
    let sides = ["remote", "local"].map(|key| addresses(tree, key, path, network, check));
    let ports = ["remote_ports", "local_ports"].map(|key| ports(tree, key, path, check));
    let ([Some(remote), Some(local)], [Some(remote_ports), Some(local_ports)]) = (sides, ports) else {
        return Vec::new();
    };
    let filter = PacketFilter {
        ways: match tree.choice("direction") {
            "downlink" => Ways::Downlink,
            "uplink" => Ways::Uplink,
            _ => Ways::Both,
        },
        remote_ports,
        local_ports,
        ..PacketFilter::ANY
    };
    let same_version = |remote: &Option<(bool, Addresses)>, local: &Option<(bool, Addresses)>| {
        remote.zip(*local).is_none_or(|((remote, _), (local, _))| remote == local)
    };
    let pairs = remote.iter().flat_map(|remote| local.iter().map(move |local| (remote, local)));
    let filters = pairs.filter(|(remote, local)| same_version(remote, local)).map(|(remote, local)| PacketFilter {
        remote: remote.map(|(_, addresses)| addresses),
        local: local.map(|(_, addresses)| addresses),
        ..filter
    });
    let filters: Vec<PacketFilter> = filters.collect();
    if filters.is_empty() {
        let message = format!("{path} has an IPv4 and an IPv6 address, which no packet has");
        check.error(tree.place_of("local"), &format!("{path}.local"), message, vec!["one version".into()]);
    }
    filters
}

/// Whom a key of a packet filter means, each with whether it is IPv4; one that is `None` means anybody.
fn addresses(
    tree: &Tree,
    key: &str,
    path: &str,
    network: &Network,
    check: &mut Check,
) -> Option<Vec<Option<(bool, Addresses)>>> {
    let Some(value) = tree.get(key) else { return Some(vec![None]) };
    let text = value.text();
    let path = format!("{path}.{key}");
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let whole = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let prefix = |address: IpAddr, bits| Addresses::prefix(address, bits).map(|some| Some((address.is_ipv4(), some)));
    if let Ok(address) = address.parse::<IpAddr>() {
        let bits = bits.map_or(Ok(whole(address)), |bits| bits.parse().map_err(|_| "is no number of bits".to_string()));
        return match bits.and_then(|bits| prefix(address, bits).map_err(|reason| reason.to_string())) {
            Ok(one) => Some(vec![one]),
            Err(reason) => {
                let message = format!("{path} = {}: {reason}", check.sources.found(value.place));
                check.error(value.place, &path, message, vec!["a prefix such as \"10.0.0.0/8\"".into()]);
                None
            }
        };
    }
    let node = known(text, value.place, &path, network, check)?;
    let described = &network.nodes[node.index()];
    let own = [
        IpAddr::V4(described.ipv4().unwrap_or_else(|| address::ipv4(node))),
        IpAddr::V6(described.ipv6().unwrap_or_else(|| address::ipv6(node))),
    ];
    Some(own.into_iter().filter_map(|address| prefix(address, whole(address)).ok()).collect())
}

/// One port, or the first and the last.
fn ports(tree: &Tree, key: &str, path: &str, check: &mut Check) -> Option<Ports> {
    let Some(value) = tree.get(key) else { return Some(Ports::ANY) };
    let numbers: Vec<u16> = value.list().iter().filter_map(|port| u16::try_from(port.integer()).ok()).collect();
    let ports = match numbers[..] {
        [one] => Ok(Ports::one(one)),
        [first, last] => Ports::new(first, last).map_err(|reason| reason.to_string()),
        _ => Err(format!("{} ports", numbers.len())),
    };
    match ports {
        Ok(ports) => Some(ports),
        Err(reason) => {
            let expected = vec!["one port, [5004], or the first and the last, [5000, 5999]".into()];
            check.error(value.place, &format!("{path}.{key}"), format!("{path}.{key} has {reason}"), expected);
            None
        }
    }
}

fn holds_guarantees(scheduler: &str) -> bool {
    catalogue::entry(scheduler).is_some_and(|entry| entry.supports_guaranteed_bit_rate)
}

/// The nodes that a name or a pattern means; a pattern means hosts.
fn nodes(ue: &Tree, path: &str, network: &Network, check: &mut Check) -> Vec<NodeId> {
    let (text, place) = (ue.text("host"), ue.place_of("host"));
    let path = format!("{path}.host");
    if !is_pattern(text) {
        return known(text, place, &path, network, check).into_iter().collect();
    }
    let hosts = || network.nodes.iter().enumerate().filter(|(_, node)| !node.router);
    let mut found: Vec<NodeId> =
        hosts().filter(|(_, node)| matches(text, &node.name)).map(|(number, _)| NodeId(number as u32)).collect();
    if found.is_empty() {
        let names: Vec<&str> = hosts().map(|(_, node)| node.name.as_str()).take(COMPARED).collect();
        let message = format!("no host matches {}", check.sources.found(place));
        check.error(place, &path, message, some_of(names.into_iter()));
    }
    found.sort_by(|a, b| natural_order(&network.nodes[a.index()].name, &network.nodes[b.index()].name));
    found
}

/// Where a UE is when; it is the `number`-th of `count` that one table describes.
fn course(
    ue: &Tree,
    path: &str,
    cell: &Cell,
    (number, count): (usize, usize),
    check: &mut Check,
) -> Option<Vec<(f64, [f64; 3])>> {
    let height = ue.number("height");
    let given: Vec<&str> = PLACES.into_iter().filter(|key| ue.get(key).is_some()).collect();
    let [key] = given[..] else {
        let place = given.get(1).map_or(ue.place, |key| ue.place_of(key));
        let message = if given.is_empty() { "is nowhere".into() } else { format!("has {}", given.join(" and ")) };
        let expected = vec!["one of distance, position, waypoints and course".into()];
        check.error(place, path, format!("{path} {message}"), expected);
        return None;
    };
    if ue.get("farthest").is_some() && key != "distance" {
        let message = format!("{path} has farthest, which goes with distance");
        check.error(ue.place_of("farthest"), &format!("{path}.farthest"), message, vec!["distance".into()]);
        return None;
    }
    let points = match key {
        "distance" => {
            let nearest = ue.number("distance");
            let farthest = ue.get("farthest").map_or(nearest, Value::number);
            let share = if count > 1 { number as f64 / (count - 1) as f64 } else { 0.0 };
            let distance = nearest + (farthest - nearest) * share;
            vec![(0.0, [cell.position[0] + distance, cell.position[1]])]
        }
        "position" => vec![(0.0, position(ue, path, check)?)],
        "waypoints" => {
            let mut points = Vec::new();
            for (index, point) in ue.tables("waypoints").iter().enumerate() {
                let path = format!("{path}.waypoints.{index}");
                points.push((point.duration("at").as_secs_f64(), position(point, &path, check)?));
            }
            points
        }
        _ => from_file(ue, path, check)?,
    };
    if points.is_empty() || points.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
        let message = format!("{path} is not at one place after the other");
        let expected = vec!["at least one place, and rising times".into()];
        check.error(ue.place_of(key), &format!("{path}.{key}"), message, expected);
        return None;
    }
    Some(points.into_iter().map(|(at, [x, y])| (at, [x, y, height])).collect())
}

/// A course's file: seconds and two coordinates on each line; `#` begins a remark.
fn from_file(ue: &Tree, path: &str, check: &mut Check) -> Option<Vec<(f64, [f64; 2])>> {
    let place = ue.place_of("course");
    let file = here(check).join(ue.text("course"));
    let read = std::fs::read_to_string(&file).map_err(|reason| format!("cannot read {}: {reason}", file.display()));
    let points = read.and_then(|text| {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let point = |(number, line): (usize, &str)| {
            let numbers: Option<Vec<f64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
            let numbers = numbers.filter(|numbers| numbers.iter().all(|number: &f64| number.is_finite()));
            match numbers.as_deref() {
                Some(&[at, x, y]) => Ok((at, [x, y])),
                _ => Err(format!("line {} of {} is {line:?}", number + 1, file.display())),
            }
        };
        lines.map(point).collect::<Result<Vec<_>, String>>()
    });
    match points {
        Ok(points) => Some(points),
        Err(reason) => {
            let expected = vec!["on each line seconds, metres east and metres north".into()];
            check.error(place, &format!("{path}.course"), reason, expected);
            None
        }
    }
}

/// No UE may be where an antenna is: there path loss is no physics.
fn far_enough(ue: &Tree, path: &str, name: &str, course: &[(f64, [f64; 3])], cells: &[Cell], check: &mut Check) {
    let place: Place = PLACES.into_iter().find_map(|key| ue.get(key)).map_or(ue.place, |value| value.place);
    for cell in cells {
        if course.iter().any(|(_, at)| *at == cell.position) {
            let message = format!("{name} is at 0 m of the antenna of {}, where path loss has no meaning", cell.name);
            check.error(place, path, message, vec!["a distance above 0 m, or another height".into()]);
            return;
        }
    }
}

fn power_control(tree: &Tree, cell: &Cell) -> Option<PowerControl> {
    tree.boolean("enabled").then(|| PowerControl {
        largest_dbm: tree.number("largest"),
        smallest_dbm: tree.number("smallest"),
        target_dbm: tree.number("target"),
        compensation: tree.number("compensation"),
        commands: match tree.choice("commands") {
            "absolute" => Loop::Absolute,
            "open" => Loop::Open,
            _ => Loop::Accumulated,
        },
        reference_dbm: cell.power_dbm,
        ..PowerControl::default()
    })
}

fn rlc(tree: &Tree, peak_bytes_per_ms: u64) -> Rlc {
    let (buffer_bytes, buffer_packets) = match tree.queue_limit("buffer") {
        QueueLimit::Bytes(bytes) => (Some(u32::try_from(bytes).unwrap_or(u32::MAX)), None),
        QueueLimit::Time(time) => {
            let bytes = u128::from(time.as_nanos()) * u128::from(peak_bytes_per_ms) / 1_000_000;
            (Some(u32::try_from(bytes).unwrap_or(u32::MAX)), None)
        }
        QueueLimit::Packets(packets) => (None, Some(packets)),
        QueueLimit::Unlimited => (None, None),
    };
    Rlc {
        mode: match tree.choice("mode") {
            "am" => RlcChoice::Acknowledged,
            "by-loss-rate" => RlcChoice::ByLossRate,
            "sm" => RlcChoice::Saturated,
            _ => RlcChoice::Unacknowledged,
        },
        buffer_bytes,
        buffer_packets,
        discard_after: tree.get("discard").map(Value::duration),
        reordering: tree.get("reordering").map(Value::duration),
        poll_retransmit: tree.duration("poll_retransmit"),
        status_prohibit: tree.duration("status_prohibit"),
    }
}
