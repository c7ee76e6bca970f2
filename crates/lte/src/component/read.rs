//! Converts the keys of an LTE access network to settings, and makes the checks that need the radio model.

use super::antenna::ANTENNAS;
use super::fading::{FadingContext, FadingSource, KINDS, here};
use super::keys::{
    AMC, ATTACH, CHANNEL_AWARENESS, COMMANDS, CQI_SOURCES, FADING_BEGINS, FREQUENCY_METRICS, MUTUAL_INFORMATION,
    PLACES, RLC_MODES, SIGNALLING, STATION, UPLINK_REPORTS,
};
use super::path_loss::MODELS;
use super::settings::LteSettings;
use crate::bearer::{Classifier, MAX_BEARERS, MAX_FILTERS, Qci};
use crate::config::{
    BearerConfig, CellCarrier, CellConfig, Config, CoreNetwork, ErrorConfig, FadingStart, Position, Trajectory,
    UeConfig, UplinkReports,
};
use crate::connection::AttachProcedure;
use crate::radio::antenna::TransmissionMode;
use crate::radio::bandwidth::Bandwidth;
use crate::radio::fading::Fading;
use crate::radio::frequency::{self, Bands, Carrier};
use crate::radio::path_loss::PathLoss;
use crate::radio::power::PowerControlConfig;
use crate::radio::tables::{self, Direction};
use crate::rlc::{AmConfig, RlcConfig};
use crate::scheduler::TokenBankLimits;
use crate::scheduler::catalogue::{self, SchedulerParameters};
use fullpipe_network::access::{AccessContext, AccessNetwork};
use fullpipe_network::filter::read_filters;
use fullpipe_schema::component::{InvalidSettings, SettingsReader};
use fullpipe_schema::distributions::{check_distribution, read_distribution};
use fullpipe_schema::error::describe_io_error;
use fullpipe_schema::{SourceLocation, Tree, Value, abbreviate_names};
use fullpipe_units::{NodeId, QueueLimit, Rate};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The largest number of UEs: their numbers have 16 bits.
const MOST_UES: usize = 65_534;

/// The keys of each direction, and the direction.
const WAYS: [(&str, &str, &str, Direction); 2] = [
    ("resource_blocks", "earfcn", "fading", Direction::Downlink),
    ("uplink_resource_blocks", "uplink_earfcn", "uplink_fading", Direction::Uplink),
];

fn small(tree: &Tree, key: &str) -> u32 {
    u32::try_from(tree.integer(key)).unwrap_or(u32::MAX)
}

/// A size as a 32-bit number of bytes.
fn bytes(value: &Value) -> u32 {
    u32::try_from(value.size()).unwrap_or(u32::MAX)
}

/// Reads one `[[lte]]` table.
pub(super) fn read(
    reader: &mut SettingsReader<'_, '_>,
    context: &mut AccessContext<'_>,
) -> Result<AccessNetwork, InvalidSettings> {
    let (tree, before) = (reader.tree, reader.check.error_count());
    let gateway = context.node(reader, "gateway");
    let carriers = carriers(reader);
    let fading_begins = fading_begins(reader);
    let path = reader.path_of("path_loss");
    let path_loss = MODELS.read(&mut reader.nested(tree.table("path_loss"), &path), &())?;
    let ([(downlink, downlink_fading), (uplink, uplink_fading)], gateway) = (carriers?, gateway?);
    let mut settings = LteSettings {
        name: tree.text("name").to_string(),
        gateway,
        stations: Vec::new(),
        mtu_bytes: tree.get("mtu").map_or(0, bytes),
        fading: [downlink_fading, uplink_fading],
        switched_on_s: Vec::new(),
        classifiers: Vec::new(),
        config: Config {
            seed: 0,
            cells: cells(reader, downlink, uplink),
            ues: Vec::new(),
            path_loss,
            shadowing_db: tree.number("shadowing"),
            downlink_fading: Fading::None,
            uplink_fading: Fading::None,
            fading_begins,
            errors: ErrorConfig {
                data: tree.boolean("data_errors"),
                control: tree.boolean("control_errors"),
                grid: tree.choice_value("mutual_information", &MUTUAL_INFORMATION),
            },
            signalling: tree.choice_value("signalling", &SIGNALLING),
            core: CoreNetwork {
                rate: tree.rate("core_rate"),
                s1_delay: tree.duration("s1_delay"),
                s5_delay: tree.duration("s5_delay"),
            },
            eager: false,
        },
    };
    ues(reader, context, &mut settings);
    if settings.stations.contains(&gateway) {
        let ues: BTreeSet<&NodeId> = settings.stations.iter().collect();
        let nodes = (0..context.nodes.count()).map(|number| NodeId(number as u32));
        let others: Vec<&str> = nodes.filter(|node| !ues.contains(node)).map(|node| context.nodes.name(node)).collect();
        let (place, path) = (tree.location_of("gateway"), reader.path_of("gateway"));
        let message = format!("{path} = \"{}\" is also a UE", tree.text("gateway"));
        reader.check.add_error(place, &path, message, abbreviate_names(others.into_iter()));
    }
    if reader.check.error_count() > before { Err(InvalidSettings) } else { Ok(Arc::new(settings)) }
}

/// Reads the carriers of downlink and uplink, and their fading.
fn carriers(reader: &mut SettingsReader<'_, '_>) -> Result<[(CellCarrier, FadingSource); 2], InvalidSettings> {
    let tree = reader.tree;
    let (mut ways, mut too_wide): (Vec<(CellCarrier, FadingSource)>, _) = (Vec::new(), None);
    for (blocks, earfcn, fading, direction) in WAYS {
        // An error in a value that the uplink inherits from the downlink is reported at the downlink's key.
        let told = |key: &'static str| if tree.is_given(key) { key } else { key.trim_start_matches("uplink_") };
        let Ok(bandwidth) = Bandwidth::new(small(tree, blocks)) else {
            let message =
                format!("{} = {} is not an LTE channel bandwidth", reader.path_of(told(blocks)), small(tree, blocks));
            let expected = "6, 15, 25, 50, 75 or 100 (1.4, 3, 5, 10, 15 or 20 MHz)";
            reader.add_error(told(blocks), message, expected);
            continue;
        };
        let Ok(carrier) = frequency::find_carrier(direction, small(tree, earfcn), Bands::Standard) else {
            no_channel(reader, told(earfcn), direction, small(tree, earfcn));
            continue;
        };
        if carrier.check(bandwidth, tree.boolean("allow_nonstandard_bandwidth")).is_err()
            && too_wide.replace(told(blocks)) != Some(told(blocks))
        {
            no_such_width(reader, told(blocks), &carrier, bandwidth);
        }
        let carrier = CellCarrier { centre_hz: carrier.hz, bandwidth };
        let faded = FadingContext { carrier, other: ways.first().map(|(_, fading)| fading.clone()) };
        let path = reader.path_of(told(fading));
        let source = KINDS.read(&mut reader.nested(tree.table(fading), &path), &faded);
        ways.extend(source.map(|fading| (carrier, fading)));
    }
    ways.try_into().map_err(|_| InvalidSettings)
}

/// Reports a channel number that no band has in this direction.
fn no_channel(reader: &mut SettingsReader<'_, '_>, key: &str, direction: Direction, earfcn: u32) {
    let (other, [own_name, other_name], examples) = match direction {
        Direction::Downlink => {
            (Direction::Uplink, ["a downlink", "an uplink"], "100 (2120 MHz, band 1) or 9895 (465 MHz, band 31)")
        }
        Direction::Uplink => {
            (Direction::Downlink, ["an uplink", "a downlink"], "18100 (1930 MHz, band 1) or 27785 (455 MHz, band 31)")
        }
    };
    let found = match frequency::find_carrier(other, earfcn, Bands::Standard) {
        Ok(carrier) => format!("{other_name} channel ({} MHz, band {})", carrier.hz / 1e6, carrier.band),
        Err(_) => "in no known band".to_string(),
    };
    let message = format!("{} = {earfcn} is {found}", reader.path_of(key));
    reader.add_error(key, message, &format!("{own_name} EARFCN of 3GPP TS 36.101, such as {examples}"));
}

/// Reports a bandwidth for which the band of a carrier has no channels.
fn no_such_width(reader: &mut SettingsReader<'_, '_>, key: &str, carrier: &Carrier, bandwidth: Bandwidth) {
    let [narrowest, widest] = carrier.channels_mhz();
    let message = format!(
        "{} = {} requires a channel of {} MHz, but band {} (EARFCN {}) has channels of {narrowest} to {widest} MHz",
        reader.path_of(key),
        bandwidth.resource_blocks(),
        f64::from(bandwidth.channel_khz()) / 1000.0,
        carrier.band,
        carrier.earfcn
    );
    let fits = |blocks: &u32| Bandwidth::new(*blocks).is_ok_and(|bandwidth| carrier.check(bandwidth, false).is_ok());
    let fitting: Vec<String> =
        Bandwidth::RESOURCE_BLOCKS.into_iter().filter(fits).map(|blocks| blocks.to_string()).collect();
    let fitting = match fitting.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => fitting.join(""),
    };
    reader.add_error(key, message, &format!("{fitting}, or allow_nonstandard_bandwidth = true"));
}

fn fading_begins(reader: &mut SettingsReader<'_, '_>) -> FadingStart {
    let (waits, least) =
        (reader.tree.choice_value("fading_begins", &FADING_BEGINS), reader.tree.get("fading_begins_with"));
    if !waits && least.is_some() {
        let default = if reader.tree.is_given("fading_begins") { "" } else { " (default)" };
        let message = format!(
            "{} requires fading_begins = \"first-packet\", but {} has fading_begins = \"run\"{default}",
            reader.path_of("fading_begins_with"),
            reader.path
        );
        reader.add_error("fading_begins_with", message, "fading_begins = \"first-packet\"");
    }
    if waits { FadingStart::Packet { least_bytes: least.map_or(1, bytes) } } else { FadingStart::Run }
}

fn cells(reader: &mut SettingsReader<'_, '_>, downlink: CellCarrier, uplink: CellCarrier) -> Vec<CellConfig> {
    let trees = reader.tree.tables("cell");
    if trees.is_empty() {
        reader.add_error("cell", format!("{} has no cell", reader.path), "at least one [[lte.cell]]");
    }
    let mut names = BTreeSet::new();
    let mut cells = Vec::new();
    for (index, cell) in trees.iter().enumerate() {
        let path = reader.path_of(&format!("cell.{index}"));
        let reader = &mut reader.nested(cell, &path);
        let name = cell.text("name");
        if !names.insert(name) {
            reader.add_error("name", format!("duplicate cell name \"{name}\""), "a unique name");
        }
        let [x, y] = position(reader).unwrap_or_default();
        let period = small(cell, "sounding_period");
        if ![2, 5, 10, 20, 40, 80, 160, 320].contains(&period) {
            let message =
                format!("{}.sounding_period = {period} is not a period of sounding reference signals", reader.path);
            reader.add_error("sounding_period", message, "2, 5, 10, 20, 40, 80, 160 or 320");
        }
        let sounding = cell.choice_value("uplink_reports", &UPLINK_REPORTS);
        let antenna_path = reader.path_of("antenna");
        let Ok(antenna) = ANTENNAS.read(&mut reader.nested(cell.table("antenna"), &antenna_path), &()) else {
            continue;
        };
        cells.push(CellConfig {
            name: name.to_string(),
            position: Position { x, y, z: cell.number("height") },
            antenna,
            downlink,
            uplink,
            power_dbm: cell.number("power"),
            noise_figure_db: cell.number("noise_figure"),
            scheduler: cell.choice("scheduler").to_string(),
            scheduler_parameters: parameters(reader),
            downlink_groups: groups(reader, downlink.bandwidth),
            amc: cell.choice_value("amc", &AMC),
            cqi_source: cell.choice_value("cqi", &CQI_SOURCES),
            cqi_period: small(cell, "cqi_period"),
            uplink_reports: if sounding { UplinkReports::Sounding { period } } else { UplinkReports::Data },
            harq: cell.boolean("harq"),
            outer_loop: cell.boolean("outer_loop"),
        });
    }
    cells
}

/// Reads the parameters of a cell's scheduler. Parameters of other schedulers are rejected.
fn parameters(reader: &mut SettingsReader<'_, '_>) -> SchedulerParameters {
    let cell = reader.tree;
    let scheduler = cell.choice("scheduler");
    let keys: BTreeSet<&str> = catalogue::ENTRIES.iter().flat_map(|entry| entry.parameters).copied().collect();
    for key in keys.into_iter().filter(|key| cell.get(key).is_some()) {
        let owners = catalogue::ENTRIES.iter().filter(|entry| entry.parameters.contains(&key));
        let owners: Vec<&str> = owners.map(|entry| entry.declaration.name).collect();
        if !owners.contains(&scheduler) {
            let message = format!("{} has {key}, which the scheduler {scheduler} does not use", reader.path);
            let expected = owners.iter().map(|name| format!("scheduler = \"{name}\"")).collect();
            reader.check.add_error(cell.location_of(key), &reader.path_of(key), message, expected);
        }
    }
    let reference = SchedulerParameters::default();
    let waiting = cell.get("waiting_unit").map(|unit| unit.duration().as_nanos());
    if waiting.is_some_and(|unit| !unit.is_multiple_of(1_000_000)) {
        let found = reader.check.sources.excerpt(cell.location_of("waiting_unit"));
        let message = format!("{}.waiting_unit = {found} is not a multiple of 1ms", reader.path);
        reader.add_error("waiting_unit", message, "a whole number of milliseconds such as \"2ms\"");
    }
    let size = |key, reference| cell.get(key).map_or(reference, bytes);
    SchedulerParameters {
        token_bank: TokenBankLimits {
            pool_bytes: size("token_pool", reference.token_bank.pool_bytes),
            credit_bytes: size("token_credit", reference.token_bank.credit_bytes),
            debt_bytes: size("token_debt", reference.token_bank.debt_bytes),
        },
        frequency_metric: cell.optional_choice_value("frequency_metric", &FREQUENCY_METRICS).unwrap_or_default(),
        multiplexed_ues: cell.get("multiplexed_ues").map_or(0, |ues| u16::try_from(ues.integer()).unwrap_or(u16::MAX)),
        channel_awareness: cell.optional_choice_value("channel_awareness", &CHANNEL_AWARENESS).unwrap_or_default(),
        waiting_unit_ms: waiting.map_or(reference.waiting_unit_ms, |unit| (unit / 1_000_000) as u32),
    }
}

/// Reads the groups that a cell may use: the first group and the number of groups.
fn groups(reader: &mut SettingsReader<'_, '_>, bandwidth: Bandwidth) -> Option<(usize, usize)> {
    let value = reader.tree.get("groups")?;
    let there_are = bandwidth.groups();
    let numbers: Vec<usize> = value.list().iter().filter_map(|group| usize::try_from(group.integer()).ok()).collect();
    match numbers[..] {
        [first, last] if first <= last && last < there_are => Some((first, last - first + 1)),
        _ => {
            let reason = match numbers[..] {
                [first, last] if first <= last => "ends above the last resource block group of the band",
                _ => "is not a range of groups",
            };
            let found = reader.check.sources.excerpt(value.place);
            let message = format!("{}.groups = {found} {reason}", reader.path);
            reader.add_error("groups", message, &format!("the first and the last group, from 0 to {}", there_are - 1));
            None
        }
    }
}

/// Reads two numbers, if the table has a position.
fn position(reader: &mut SettingsReader<'_, '_>) -> Option<[f64; 2]> {
    let value = reader.tree.get("position")?;
    let numbers: Vec<f64> = value.list().iter().map(Value::number).collect();
    match numbers[..] {
        [east, north] => Some([east, north]),
        _ => {
            let (count, found) = (numbers.len(), reader.check.sources.excerpt(value.place));
            let plural = if count == 1 { "" } else { "s" };
            let message = format!("{} = {found} has {count} number{plural}", reader.path_of("position"));
            reader.add_error("position", message, "two numbers, meters east and north, such as [99, 0]");
            None
        }
    }
}

fn ues(reader: &mut SettingsReader<'_, '_>, context: &mut AccessContext<'_>, settings: &mut LteSettings) {
    let trees = reader.tree.tables("ue");
    if trees.is_empty() {
        reader.add_error("ue", format!("{} has no UE", reader.path), "at least one [[lte.ue]]");
    }
    for (index, tree) in trees.iter().enumerate() {
        let path = reader.path_of(&format!("ue.{index}"));
        // The error has already been reported.
        let _ = ue(&mut reader.nested(tree, &path), context, settings);
    }
    let count = settings.stations.len();
    if count > MOST_UES {
        reader.add_error("ue", format!("{} has {count} UEs", reader.path), &format!("at most {MOST_UES}"));
    }
    if settings.config.ues.iter().all(|ue| ue.bearers.len() == 1) {
        settings.classifiers.clear();
    }
}

/// Reads the UEs of one table.
fn ue(
    reader: &mut SettingsReader<'_, '_>,
    context: &mut AccessContext<'_>,
    settings: &mut LteSettings,
) -> Result<(), InvalidSettings> {
    let ue = reader.tree;
    let nodes = context.find_matching(reader, "host").unwrap_or_default();
    let cells = &settings.config.cells;
    let cell = match ue.get("cell") {
        None => 0,
        Some(name) => {
            let found = cells.iter().position(|cell| cell.name == name.text());
            found.ok_or_else(|| unknown_cell(reader, name, cells))?
        }
    };
    let serving = cells.get(cell).ok_or(InvalidSettings)?;
    let mode = usize::try_from(ue.integer("transmission_mode")).unwrap_or(1);
    let transmission_mode = TransmissionMode::ALL[mode.clamp(1, TransmissionMode::ALL.len()) - 1];
    // The default of the buffer depends on it.
    let bandwidth = serving.downlink.bandwidth;
    let peak = tables::downlink_bytes(28, bandwidth.groups() * bandwidth.group_size());
    let peak_bytes_per_ms = u64::from(peak) * transmission_mode.layers() as u64;
    let (bearers, classifier) = bearers(reader, serving, peak_bytes_per_ms, context);
    let attach = attach(reader);
    let count = nodes.len();
    for (number, node) in nodes.into_iter().enumerate() {
        if context.claim_station(reader, "host", node, STATION).is_err() {
            continue;
        }
        let name = context.nodes.name(node);
        let course = course(reader, serving, (number, count))?;
        if !matches!(settings.config.path_loss, PathLoss::Constant { .. }) {
            far_enough(reader, name, &course, cells);
        }
        settings.stations.push(node);
        settings.switched_on_s.push(read_distribution(ue, "switched_on"));
        settings.classifiers.push(classifier.clone());
        settings.config.ues.push(UeConfig {
            name: name.to_string(),
            cell,
            course,
            power_dbm: ue.number("power"),
            power_control: power_control(ue.table("power_control"), serving),
            noise_figure_db: ue.number("noise_figure"),
            transmission_mode,
            data_power_offset_db: ue.number("data_power_offset"),
            attach,
            bearers: bearers.clone(),
        });
    }
    Ok(())
}

fn unknown_cell(reader: &mut SettingsReader<'_, '_>, name: &Value, cells: &[CellConfig]) -> InvalidSettings {
    let names = cells.iter().map(|cell| cell.name.as_str());
    let (message, path) = (format!("unknown cell \"{}\"", name.text()), reader.path_of("cell"));
    reader.check.add_unknown_name(name.place, &path, message, name.text(), names);
    InvalidSettings
}

/// Reads how a UE's bearers are established. Rejects `switched_on` for a UE that has its bearers from the start.
fn attach(reader: &mut SettingsReader<'_, '_>) -> AttachProcedure {
    check_distribution(reader.tree, "switched_on", reader.path, reader.check);
    let attach = reader.tree.choice_value("attach", &ATTACH);
    if let (AttachProcedure::Ideal, Some(switched_on)) = (attach, reader.tree.get("switched_on")) {
        let message =
            format!("{} has switched_on, but with attach = \"ideal\" a UE has its bearers from the start", reader.path);
        let expected = vec!["attach = \"known-cell\"".into(), "attach = \"cell-search\"".into()];
        reader.check.add_error(switched_on.place, &reader.path_of("switched_on"), message, expected);
    }
    attach
}

/// Reads a UE's bearers, the default one first, and its packet classifier.
fn bearers(
    reader: &mut SettingsReader<'_, '_>,
    serving: &CellConfig,
    peak_bytes_per_ms: u64,
    context: &AccessContext<'_>,
) -> (Vec<BearerConfig>, Classifier) {
    let mut bearers = vec![bearer(reader, serving, peak_bytes_per_ms)];
    let mut classifier = Classifier::with_default_bearer();
    let dedicated = reader.tree.tables("bearer");
    let most = usize::from(MAX_BEARERS) - 1;
    if let Some(beyond) = dedicated.get(most) {
        let message = format!("{} has {} dedicated bearers", reader.path, dedicated.len());
        let path = reader.path_of(&format!("bearer.{most}"));
        reader.check.add_error(beyond.place, &path, message, vec![format!("at most {most}")]);
    }
    for (index, tree) in dedicated.iter().enumerate() {
        let path = reader.path_of(&format!("bearer.{index}"));
        let reader = &mut reader.nested(tree, &path);
        let mut filters = Vec::new();
        for (n, filter) in tree.tables("filter").iter().enumerate() {
            let path = reader.path_of(&format!("filter.{n}"));
            filters.extend(read_filters(&mut reader.nested(filter, &path), context).unwrap_or_default());
        }
        if filters.len() > MAX_FILTERS {
            let (count, given) = (filters.len(), tree.tables("filter").len());
            let message = if count == given {
                format!("{path} has {count} packet filters")
            } else {
                format!(
                    "{path} has {given} filters, which give {count} packet filters (IPv4 and IPv6 for each host name)"
                )
            };
            reader.add_error("filter", message, &format!("at most {MAX_FILTERS} packet filters"));
        }
        // Too many filters or bearers have already been reported.
        let _ = classifier.add(index as u8 + 2, &filters);
        bearers.push(bearer(reader, serving, peak_bytes_per_ms));
    }
    (bearers, classifier)
}

/// Reads a bearer from the keys that a dedicated bearer shares with a UE's default bearer.
fn bearer(reader: &mut SettingsReader<'_, '_>, serving: &CellConfig, peak_bytes_per_ms: u64) -> BearerConfig {
    let tree = reader.tree;
    let guaranteed = tree.get("guaranteed_rate").map(Value::rate);
    // The schema accepts classes from 1 to 9.
    let qci = u8::try_from(tree.integer("qci")).ok().and_then(|qci| Qci::new(qci).ok()).unwrap_or(Qci::DEFAULT);
    let is_guaranteed = qci.class().guaranteed;
    let holds_guarantees =
        catalogue::find_scheduler(&serving.scheduler).is_some_and(|entry| entry.supports_guaranteed_bit_rate);
    if (guaranteed.is_some() || is_guaranteed) && !holds_guarantees {
        let (key, found) = match guaranteed {
            Some(_) => ("guaranteed_rate", "a guaranteed bit rate".to_string()),
            None => ("qci", format!("QCI {} (guaranteed bit rate)", qci.number())),
        };
        let message = format!(
            "{} has {found}, which the scheduler {} of {} does not support",
            reader.path, serving.scheduler, serving.name
        );
        let with = catalogue::ENTRIES.iter().filter(|entry| entry.supports_guaranteed_bit_rate);
        let mut with: Vec<String> = with.map(|entry| format!("scheduler = \"{}\"", entry.declaration.name)).collect();
        if guaranteed.is_none() {
            with.push("a QCI from 5 to 9".to_string());
        }
        reader.check.add_error(tree.location_of(key), &reader.path_of(key), message, with);
    } else if is_guaranteed && guaranteed.is_none() {
        let message = format!("{} has QCI {} (guaranteed bit rate), but no guaranteed_rate", reader.path, qci.number());
        reader.add_error("qci", message, "guaranteed_rate, or a QCI from 5 to 9");
    }
    let rlc = tree.table("rlc");
    let mode = rlc.choice_value("mode", &RLC_MODES).mode(qci);
    let none = Rate::from_bits_per_second(0);
    BearerConfig {
        qci,
        guaranteed: guaranteed.unwrap_or(none),
        maximum: tree.get("maximum_rate").map_or(none, Value::rate),
        mode,
        limits: limits(rlc, peak_bytes_per_ms, RlcConfig::for_mode(mode)),
    }
}

fn limits(rlc: &Tree, peak_bytes_per_ms: u64, reference: RlcConfig) -> RlcConfig {
    let bytes = |bytes: u128| Some(u32::try_from(bytes).unwrap_or(u32::MAX));
    let (max_buffer_bytes, max_buffer_sdus) = match rlc.queue_limit("buffer") {
        QueueLimit::Bytes(limit) => (bytes(limit.into()), None),
        QueueLimit::Time(time) => {
            (bytes(u128::from(time.as_nanos()) * u128::from(peak_bytes_per_ms) / 1_000_000), None)
        }
        QueueLimit::Packets(packets) => (None, Some(packets)),
        QueueLimit::Unlimited => (None, None),
    };
    RlcConfig {
        max_buffer_bytes,
        max_buffer_sdus,
        discard_after: rlc.get("discard").map(Value::duration),
        reordering: rlc.get("reordering").map_or(reference.reordering, Value::duration),
        acknowledgement: AmConfig {
            poll_retransmit: rlc.duration("poll_retransmit"),
            status_prohibit: rlc.duration("status_prohibit"),
            ..reference.acknowledgement
        },
        ..reference
    }
}

/// Reads the positions of a UE over time. It is the `number`-th of the `count` UEs of one table.
fn course(
    reader: &mut SettingsReader<'_, '_>,
    cell: &CellConfig,
    (number, count): (usize, usize),
) -> Result<Trajectory, InvalidSettings> {
    let ue = reader.tree;
    let given: Vec<&str> = PLACES.into_iter().filter(|key| ue.get(key).is_some()).collect();
    let [key] = given[..] else {
        let place = given.get(1).map_or(ue.place, |key| ue.location_of(key));
        let message = if given.is_empty() {
            "has no position".into()
        } else {
            format!("has more than one position: {}", given.join(" and "))
        };
        let expected = vec!["exactly one of distance, position, waypoints, course".into()];
        reader.check.add_error(place, reader.path, format!("{} {message}", reader.path), expected);
        return Err(InvalidSettings);
    };
    if ue.get("farthest").is_some() && key != "distance" {
        let message = format!("{} has farthest, which requires distance", reader.path);
        return Err(reader.add_error("farthest", message, "distance"));
    }
    let points = match key {
        "distance" => {
            let nearest = ue.number("distance");
            let farthest = ue.get("farthest").map_or(nearest, Value::number);
            let share = if count > 1 { number as f64 / (count - 1) as f64 } else { 0.0 };
            let distance = nearest + (farthest - nearest) * share;
            vec![(0.0, [cell.position.x + distance, cell.position.y])]
        }
        "position" => vec![(0.0, position(reader).ok_or(InvalidSettings)?)],
        "waypoints" => {
            let mut points = Vec::new();
            for (index, point) in ue.tables("waypoints").iter().enumerate() {
                let path = reader.path_of(&format!("waypoints.{index}"));
                let place = position(&mut reader.nested(point, &path)).ok_or(InvalidSettings)?;
                points.push((point.duration("at").as_secs_f64(), place));
            }
            points
        }
        _ => from_file(reader)?,
    };
    if points.is_empty() {
        return Err(reader.add_error(key, format!("{}.{key} is empty", reader.path), "at least one position"));
    }
    if let Some(earlier) = points.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
        let later = earlier + 1;
        let message = if key == "waypoints" {
            let at = |number: usize| ue.tables(key)[number].duration("at");
            format!(
                "{}.{key}.{later}.at = {} is not later than {key}.{earlier}.at = {}",
                reader.path,
                at(later),
                at(earlier)
            )
        } else {
            // The positions of a file are counted from 1, like its lines.
            format!(
                "{}.{key} has position {} at {} s, which is not later than position {later} at {} s",
                reader.path,
                later + 1,
                points[later].0,
                points[earlier].0
            )
        };
        return Err(reader.add_error(key, message, "times in ascending order"));
    }
    let z = ue.number("height");
    Ok(Trajectory { points: points.into_iter().map(|(at, [x, y])| (at, Position { x, y, z })).collect() })
}

/// Reads a file of positions: seconds and two coordinates on each line; `#` starts a comment.
fn from_file(reader: &mut SettingsReader<'_, '_>) -> Result<Vec<(f64, [f64; 2])>, InvalidSettings> {
    let file = here(reader.check).join(reader.tree.text("course"));
    let read = std::fs::read_to_string(&file)
        .map_err(|reason| format!("cannot read {}: {}", file.display(), describe_io_error(&reason)));
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
    points.map_err(|reason| {
        reader.add_error("course", reason, "a file with seconds, meters east and meters north on each line")
    })
}

/// Checks that no UE is at the position of an antenna, where path loss is undefined.
fn far_enough(reader: &mut SettingsReader<'_, '_>, name: &str, course: &Trajectory, cells: &[CellConfig]) {
    let ue = reader.tree;
    let place: SourceLocation = PLACES.into_iter().find_map(|key| ue.get(key)).map_or(ue.place, |value| value.place);
    if let Some(cell) = cells.iter().find(|cell| course.points.iter().any(|(_, at)| *at == cell.position)) {
        let message = format!("{name} is 0 m from the antenna of {}, where path loss is undefined", cell.name);
        reader.check.add_error(place, reader.path, message, vec!["a distance above 0 m, or another height".into()]);
    }
}

fn power_control(tree: &Tree, cell: &CellConfig) -> Option<PowerControlConfig> {
    tree.boolean("enabled").then(|| PowerControlConfig {
        largest_dbm: tree.number("largest"),
        smallest_dbm: tree.number("smallest"),
        target_dbm: tree.number("target"),
        compensation: tree.number("compensation"),
        commands: tree.choice_value("commands", &COMMANDS),
        reference_dbm: cell.power_dbm,
        ..PowerControlConfig::default()
    })
}
