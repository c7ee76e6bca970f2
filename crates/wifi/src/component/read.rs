//! Converts the keys of a Wi-Fi network to settings, and makes the checks across keys.

use super::keys::{
    Amendment, BANDS, CATEGORIES, ERROR_MODELS, GUARDS, NODES, PREAMBLES, QUEUES, QueueKind, RATE_CONTROLS,
    RateSelection, STANDARDS, STATION_DECLARATION, is_ht,
};
use super::settings::WifiSettings;
use crate::airtime::StationOrder;
use crate::channel::PathLoss;
use crate::config::{Config, RtsPolicy, StationConfig};
use crate::medium::CategoryRule;
use crate::phy::{
    AccessParameters, Band, ChannelWidth, DsssRate, GuardInterval, MultiStreamRate, OfdmRate, PhyRate, Standard,
};
use crate::queue::{ApFqCoDel, ApQueue};
use crate::rate_control::{Capabilities, IdealTarget, RateControlConfig};
use fullpipe_network::access::{AccessContext, AccessNetwork};
use fullpipe_network::filter::read_filters;
use fullpipe_schema::component::{InvalidSettings, SettingsReader};
use fullpipe_schema::{Tree, Value, abbreviate_names};
use fullpipe_units::{Duration, Instant, NodeId};
use std::sync::Arc;

/// The largest number of stations: association identifiers have 2007 values (clause 9.4.1.8).
const MOST_STATIONS: usize = 2007;

fn small(tree: &Tree, key: &str) -> u32 {
    u32::try_from(tree.integer(key)).unwrap_or(u32::MAX)
}

/// The standard, and what its rates depend on.
#[derive(Clone, Copy, Debug)]
struct Phy {
    amendment: Amendment,
    standard: Standard,
    width: ChannelWidth,
    short_guard: bool,
}

/// Reads one `[[wifi]]` table.
pub(super) fn read(
    reader: &mut SettingsReader<'_, '_>,
    context: &mut AccessContext<'_>,
) -> Result<AccessNetwork, InvalidSettings> {
    let (tree, before) = (reader.tree, reader.check.error_count());
    let access_point = context.node(reader, "access_point");
    let (phy, access_point) = (phy(reader)?, access_point?);
    let mut config = Config::new(tree.text("name"), 0, phy.standard);
    config.set_preamble(tree.choice_value("preamble", &PREAMBLES));
    config.errors = tree.choice_value("error_model", &ERROR_MODELS);
    config.channel.power_dbm = tree.number("power");
    config.channel.noise_figure_db = tree.number("noise_figure");
    config.channel.path_loss =
        PathLoss { reference_db: tree.number("path_loss_at_1m"), exponent: tree.number("path_loss_exponent") };
    config.retry_limit = tree.integer("retry_limit") as u16;
    config.rts = tree.get("rts_threshold").map_or(RtsPolicy::Never, |size| RtsPolicy::Above(size.size()));
    config.aggregate.mpdus = small(tree, "aggregate_packets");
    config.aggregate.bytes = tree.get("aggregate_bytes").map_or(u64::MAX, Value::size);
    config.aggregate.ppdu = tree.duration("aggregate_duration");
    config.mpdu_spacing = tree.duration("mpdu_spacing");
    config.station_packets = small(tree, "station_packets");
    config.order = match tree.boolean("airtime_fairness") {
        true => StationOrder::Airtime { weight: tree.duration("airtime_weight") },
        false => StationOrder::RoundRobin,
    };
    config.ap_queue = queue(reader);
    access_parameters(reader, &mut config);
    let categories = categories(reader, context, phy);
    let stations = stations(reader, context, phy, &mut config);
    if stations.contains(&access_point) {
        let nodes = (0..context.nodes.count()).map(|number| NodeId(number as u32));
        let others: Vec<&str> =
            nodes.filter(|node| !stations.contains(node)).map(|node| context.nodes.name(node)).collect();
        let (place, path) = (tree.location_of("access_point"), reader.path_of("access_point"));
        let message = format!("{path} = \"{}\" is also a {}", tree.text("access_point"), STATION_DECLARATION.name);
        reader.check.add_error(place, &path, message, abbreviate_names(others.into_iter()));
    }
    if reader.check.error_count() > before {
        return Err(InvalidSettings);
    }
    // All that the keys can state is checked above. The check of the configuration states the same rules for programs.
    if let Err(reason) = config.check() {
        return Err(reader.add_error("name", format!("{}: {reason}", reader.path), "other settings"));
    }
    let mtu_bytes = u32::try_from(tree.size("mtu")).unwrap_or(u32::MAX);
    Ok(Arc::new(WifiSettings { access_point, stations, mtu_bytes, categories, config }))
}

/// Reads the standard, its band and the width of the channel.
fn phy(reader: &mut SettingsReader<'_, '_>) -> Result<Phy, InvalidSettings> {
    let tree = reader.tree;
    let amendment = tree.choice_value("standard", &STANDARDS);
    let band = tree.choice_value("band", &BANDS);
    let standard = match amendment {
        Amendment::B => Standard::B,
        Amendment::A => Standard::A,
        Amendment::G => Standard::G,
        Amendment::N => Standard::N(band),
        Amendment::Ac => Standard::Ac,
    };
    let name = tree.choice("standard");
    if standard.band() != band {
        let has = if standard.band() == Band::Ghz5 { "\"5GHz\"" } else { "\"2.4GHz\"" };
        let message = format!("{} = \"{}\" is not a band of 802.11{name}", reader.path_of("band"), tree.choice("band"));
        return Err(reader.add_error("band", message, has));
    }
    let found = tree.integer("channel_width");
    let permitted = ChannelWidth::ALL.into_iter().filter(|width| *width <= standard.widest_channel());
    let Some(width) = permitted.clone().find(|width| i64::from(width.mhz()) == found) else {
        let message = format!("{} = {found} is not a channel width of 802.11{name}", reader.path_of("channel_width"));
        let expected: Vec<String> = permitted.map(|width| width.mhz().to_string()).collect();
        return Err(reader.add_error("channel_width", message, &expected.join(", ")));
    };
    Ok(Phy { amendment, standard, width, short_guard: tree.choice_value("guard_interval", &GUARDS) })
}

/// Reads the queues of the access point. Keys of other queues are rejected.
fn queue(reader: &mut SettingsReader<'_, '_>) -> ApQueue {
    let tree = reader.tree;
    let kind = tree.choice_value("queue", &QUEUES);
    let owners = [
        ("driver_packets", QueueKind::Fifo),
        ("codel_target", QueueKind::FqCoDel),
        ("codel_interval", QueueKind::FqCoDel),
        ("codel_ecn", QueueKind::FqCoDel),
    ];
    for (key, owner) in owners.into_iter().filter(|(key, owner)| *owner != kind && tree.get(key).is_some()) {
        let message = format!("{} has {key}, which the queue {} does not use", reader.path, tree.choice("queue"));
        let name = QUEUES.iter().find(|(_, kind)| *kind == owner).map_or("", |(choice, _)| choice.name);
        reader.add_error(key, message, &format!("queue = \"{name}\""));
    }
    let packets = small(tree, "queue_packets");
    let count = |key, default| tree.get(key).map_or(default, |value| value.integer() as u32);
    match kind {
        QueueKind::Fifo => ApQueue::Fifo { packets, driver_packets: count("driver_packets", 123) },
        QueueKind::PerStation => ApQueue::PerStation { packets },
        QueueKind::FqCoDel => {
            let mut settings = ApFqCoDel { packets, ..ApFqCoDel::default() };
            let codel = &mut settings.codel;
            codel.target = tree.get("codel_target").map_or(codel.target, Value::duration);
            codel.interval = tree.get("codel_interval").map_or(codel.interval, Value::duration);
            codel.ecn = tree.get("codel_ecn").map_or(codel.ecn, Value::boolean);
            ApQueue::FqCoDel(settings)
        }
    }
}

/// Reads the tables of contention parameters.
fn access_parameters(reader: &mut SettingsReader<'_, '_>, config: &mut Config) {
    for (index, tree) in reader.tree.tables("access").iter().enumerate() {
        let path = reader.path_of(&format!("access.{index}"));
        let reader = &mut reader.nested(tree, &path);
        let category = tree.choice_value("category", &CATEGORIES) as usize;
        let change = |old: AccessParameters| {
            let number = |key, old| tree.get(key).map_or(old, |value| value.integer() as u32);
            AccessParameters {
                aifsn: number("aifsn", old.aifsn),
                cw_min: number("cw_min", old.cw_min),
                cw_max: number("cw_max", old.cw_max),
                txop_limit: tree.get("txop_limit").map_or(old.txop_limit, Value::duration),
            }
        };
        let nodes = tree.choice_value("nodes", &NODES);
        for (_, access) in
            nodes.into_iter().zip([&mut config.ap_access, &mut config.station_access]).filter(|(is, _)| *is)
        {
            let new = change(access[category]);
            if new.cw_min > new.cw_max {
                let key = if tree.get("cw_min").is_some() { "cw_min" } else { "cw_max" };
                let message = format!("{path} has cw_min = {} above cw_max = {}", new.cw_min, new.cw_max);
                reader.add_error(key, message, "cw_min no larger than cw_max");
                break;
            }
            access[category] = new;
        }
    }
}

/// Reads the rules for access categories.
fn categories(reader: &mut SettingsReader<'_, '_>, context: &AccessContext<'_>, phy: Phy) -> CategoryRule {
    let mut rule = CategoryRule::default();
    for (index, tree) in reader.tree.tables("category").iter().enumerate() {
        let path = reader.path_of(&format!("category.{index}"));
        let reader = &mut reader.nested(tree, &path);
        if !is_ht(phy.amendment) {
            let message = format!("{path} requires EDCA, which this network does not use");
            reader.add_error("category", message, "standard = \"n\" or standard = \"ac\"");
            break;
        }
        let category = tree.choice_value("category", &CATEGORIES);
        rule.add(category, read_filters(reader, context).unwrap_or_default());
    }
    rule
}

/// Reads the stations. Returns their nodes.
fn stations(
    reader: &mut SettingsReader<'_, '_>,
    context: &mut AccessContext<'_>,
    phy: Phy,
    config: &mut Config,
) -> Vec<NodeId> {
    let network = reader.tree;
    let general = rate_control(reader, network, phy, "the network").ok();
    let mut stations = Vec::new();
    let trees = network.tables("station");
    if trees.is_empty() {
        reader.add_error("station", format!("{} has no station", reader.path), "at least one [[wifi.station]]");
    }
    for (index, tree) in trees.iter().enumerate() {
        let path = reader.path_of(&format!("station.{index}"));
        let reader = &mut reader.nested(tree, &path);
        let own = ["rate_control", "mcs", "rate", "streams"].into_iter().any(|key| tree.get(key).is_some());
        let control = if own { rate_control(reader, network, phy, &path).ok() } else { general };
        let Ok(nodes) = context.find_matching(reader, "host") else { continue };
        let Ok(shadowing) = shadowing(reader) else { continue };
        let nearest = tree.number("distance");
        let farthest = tree.get("farthest").map_or(nearest, Value::number);
        let last = nodes.len().saturating_sub(1).max(1) as f64;
        for (number, node) in nodes.into_iter().enumerate() {
            if context.claim_station(reader, "host", node, STATION_DECLARATION).is_err() {
                break;
            }
            stations.push(node);
            let Some(control) = control else { continue };
            let distance = nearest + (farthest - nearest) * number as f64 / last;
            let mut station = StationConfig::new(context.nodes.name(node), distance, control);
            station.shadowing.clone_from(&shadowing);
            config.stations.push(station);
        }
        if stations.len() > MOST_STATIONS {
            let message = format!("{} and the tables before it have {} stations", reader.path, stations.len());
            reader.add_error("host", message, &format!("at most {MOST_STATIONS} stations of an access point"));
            break;
        }
    }
    stations
}

/// Reads the additional loss of a station over time.
fn shadowing(reader: &mut SettingsReader<'_, '_>) -> Result<Vec<(Instant, f64)>, InvalidSettings> {
    let tree = reader.tree;
    let mut steps = Vec::new();
    let loss = tree.number("loss");
    if loss != 0.0 {
        steps.push((Instant::ZERO, loss));
    }
    let mut last = Duration::ZERO;
    for (index, change) in tree.tables("change").iter().enumerate() {
        let path = reader.path_of(&format!("change.{index}"));
        let reader = &mut reader.nested(change, &path);
        let at = change.duration("at");
        if index > 0 && at <= last {
            let message = format!("{path}.at = {at} is not later than the change before at {last}");
            return Err(reader.add_error("at", message, "times in ascending order"));
        }
        last = at;
        steps.push((Instant::ZERO + at, change.number("loss")));
    }
    Ok(steps)
}

/// Reads the rate control of a table. `network` has the keys that a station's table does not have.
fn rate_control(
    reader: &mut SettingsReader<'_, '_>,
    network: &Tree,
    phy: Phy,
    owner: &str,
) -> Result<RateControlConfig, InvalidSettings> {
    let tree = reader.tree;
    let name = network.choice("standard");
    let ht = is_ht(phy.amendment);
    // A key of rates that the standard does not have.
    let foreign: &[&str] = if ht { &["rate"] } else { &["mcs"] };
    if let Some(key) = foreign.iter().find(|key| tree.get(key).is_some()) {
        let message = format!("{} has {key}, but 802.11{name} has no such rates", reader.path);
        return Err(reader.add_error(key, message, if ht { "mcs" } else { "rate" }));
    }
    let most = if ht { 4 } else { 1 };
    let streams = tree.get("streams").map_or_else(|| network.integer("streams"), Value::integer) as u8;
    if streams > most {
        let message = format!("{} = {streams}, but 802.11{name} has 1 stream", reader.path_of("streams"));
        return Err(reader.add_error("streams", message, "1"));
    }
    let key = if ht { "mcs" } else { "rate" };
    let inherited = |key| tree.get(key).or_else(|| network.get(key));
    let selection = match tree.get("rate_control") {
        Some(_) => tree.choice_value("rate_control", &RATE_CONTROLS),
        None if tree.get(key).is_some() => RateSelection::Constant,
        None => match network.get("rate_control") {
            Some(_) => network.choice_value("rate_control", &RATE_CONTROLS),
            None if network.get(key).is_some() => RateSelection::Constant,
            None if ht => RateSelection::MinstrelHt,
            None => RateSelection::Ideal,
        },
    };
    if selection != RateSelection::Constant && tree.get(key).is_some() {
        let message = format!("{} has {key}, but its rate is not constant", reader.path);
        return Err(reader.add_error(key, message, "rate_control = \"constant\""));
    }
    let capabilities = Capabilities { streams, width: phy.width, short_guard: phy.short_guard };
    match selection {
        RateSelection::Ideal => Ok(RateControlConfig::Ideal { capabilities, target: IdealTarget::default() }),
        RateSelection::MinstrelHt if ht => Ok(RateControlConfig::MinstrelHt(capabilities)),
        RateSelection::MinstrelHt => {
            let message = format!("Minstrel-HT has no rates of 802.11{name}");
            let at = if tree.get("rate_control").is_some() { "rate_control" } else { "host" };
            Err(reader.add_error(at, message, "rate_control = \"ideal\", or rate"))
        }
        RateSelection::Constant => {
            let Some(value) = inherited(key) else {
                let message = format!("{owner} has a constant rate, but no {key}");
                return Err(reader.add_error("rate_control", message, key));
            };
            match ht {
                true => multi_stream_rate(reader, phy, value.integer() as u8, streams).map(RateControlConfig::Constant),
                false => single_stream_rate(reader, network, phy, value).map(RateControlConfig::Constant),
            }
        }
    }
}

fn multi_stream_rate(
    reader: &mut SettingsReader<'_, '_>,
    phy: Phy,
    mcs: u8,
    streams: u8,
) -> Result<PhyRate, InvalidSettings> {
    let guard = if phy.short_guard { GuardInterval::Short } else { GuardInterval::Long };
    let rate = |mcs| {
        let rate = MultiStreamRate { mcs, streams, width: phy.width, guard };
        if phy.amendment == Amendment::Ac { PhyRate::Vht(rate) } else { PhyRate::Ht(rate) }
    };
    if rate(mcs).is_valid() {
        return Ok(rate(mcs));
    }
    let valid: Vec<String> = (0..10).filter(|mcs| rate(*mcs).is_valid()).map(|mcs| mcs.to_string()).collect();
    let key = if reader.tree.get("mcs").is_some() { "mcs" } else { "streams" };
    let message =
        format!("{}: MCS {mcs} does not exist with {streams} streams and {} MHz", reader.path, phy.width.mhz());
    Err(reader.add_error(key, message, &format!("MCS {}", valid.join(", "))))
}

fn single_stream_rate(
    reader: &mut SettingsReader<'_, '_>,
    network: &Tree,
    phy: Phy,
    value: &Value,
) -> Result<PhyRate, InvalidSettings> {
    let preamble = network.choice_value("preamble", &PREAMBLES);
    let rates: Vec<(u64, PhyRate)> = match phy.amendment {
        Amendment::B => DsssRate::ALL.map(|rate| (1000 * rate.kbps(), PhyRate::Dsss(rate, preamble))).to_vec(),
        _ => OfdmRate::ALL.map(|rate| (1_000_000 * u64::from(rate.mbps()), PhyRate::Ofdm(rate))).to_vec(),
    };
    let found = value.rate().bits_per_second();
    if let Some((_, rate)) = rates.iter().find(|(bps, _)| *bps == found) {
        return Ok(*rate);
    }
    let names: Vec<String> = rates.iter().map(|(bps, _)| (*bps as f64 / 1e6).to_string()).collect();
    let name = network.choice("standard");
    let message = format!(
        "{} = {} is not a rate of 802.11{name}",
        reader.path_of("rate"),
        reader.check.sources.excerpt(value.place)
    );
    Err(reader.add_error("rate", message, &format!("{} Mbit/s", names.join(", "))))
}
