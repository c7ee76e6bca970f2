//! Random files that are generated from the schema, so that they cover every key. An accepted file must describe the
//! same scenario after it is resolved.

use crate::language::{LANGUAGE, load};
use crate::schema::quantity::{format_queue_limit, format_size};
use crate::schema::{self, DefaultValue, Field, FieldKind, Table, Tree, ValueData};
use fullpipe_lte::scheduler::catalogue::ENTRIES;
use fullpipe_units::{Duration, RandomStream, Rate};
use std::collections::BTreeSet;

struct Writer {
    random: RandomStream,
    /// One in this many optional keys is present.
    sparsity: u64,
    /// The kind of topology in the file.
    topology: &'static str,
    /// Number of schedule steps so far.
    steps: u32,
    /// Number of programs so far.
    programs: u32,
    /// Number of cells so far; `None` without an access network.
    cells: Option<u32>,
    /// Whether the file has a Wi-Fi network.
    has_wifi: bool,
    /// Whether that network has MCS.
    wifi_mcs: bool,
}

impl Writer {
    fn new(case: u64) -> Self {
        let random = RandomStream::new(case, "scenario", "file");
        Writer {
            random,
            sparsity: 2 + case % 14,
            topology: "",
            steps: 0,
            programs: 0,
            cells: None,
            has_wifi: false,
            wifi_mcs: false,
        }
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.random.uniform_below(list.len() as u64) as usize]
    }

    /// Small numbers, large numbers and the bounds.
    fn integer(&mut self, min: u64, max: u64) -> u64 {
        match self.random.uniform_below(8) {
            0 => min,
            1 => max,
            2 => min + self.random.uniform_below(max - min),
            _ => min.saturating_add(self.random.uniform_below(1 << self.random.clone().uniform_below(30))).min(max),
        }
    }

    fn value(&mut self, key: &str, kind: &FieldKind) -> String {
        match kind {
            // Mostly existing names.
            FieldKind::Text => match (key, self.topology) {
                ("from" | "to", _) if self.random.uniform_below(50) == 0 => {
                    self.pick(&["'*'", "'nobody'", "'router1'"]).to_string()
                }
                ("from", "dumbbell") => self.pick(&["'left*'", "'left1'", "'l?ft1*'"]).to_string(),
                ("to", "dumbbell") => self.pick(&["'right*'", "'right1'"]).to_string(),
                ("from", "chain" | "parking-lot") => "'source'".to_string(),
                ("to", "chain" | "parking-lot") => "'s?nk'".to_string(),
                ("from", _) => "'host1'".to_string(),
                ("to", _) => "'host2'".to_string(),
                ("flow" | "ethernet" | "ue", _) => "'*'".to_string(),
                ("link" | "links", _) => self.pick(&["'*'", "'link1'", "'bottleneck*'"]).to_string(),
                _ => self.pick(&["'plain'", "\"with \\\"quotes\\\" and \\\\\"", "'é ✓'", "''"]).to_string(),
            },
            FieldKind::Name => format!("'{}{}'", self.pick(&["n", "Name-", "x_"]), self.random.uniform_below(50)),
            FieldKind::Boolean => self.random.bernoulli(0.5).to_string(),
            // Counts are small, otherwise the test would take too long.
            FieldKind::Integer { .. } if ["count", "pairs", "hosts", "hops"].contains(&key) => {
                (2 + self.random.uniform_below(4)).to_string()
            }
            FieldKind::Integer { min, max } => {
                let min = u64::try_from(*min).unwrap_or(0);
                self.integer(min, u64::try_from(*max).unwrap_or(0)).to_string()
            }
            FieldKind::Number { min, max } => {
                let number = self.random.uniform();
                // If the schema states no bound, any number is accepted.
                let [min, max] = [min, max].map(|bound| bound.clamp(-1e12, 1e12));
                let values = [min + (max - min) * number, min, max, min + 1e-9 * number, min + 5e-324];
                format!("{:?}", self.pick(&values))
            }
            // Before the end of the run.
            FieldKind::Duration { .. } if key == "from" && self.random.bernoulli(0.9) => "'1ns'".to_string(),
            FieldKind::Duration { min, max } => {
                let nanoseconds = self.integer(min.as_nanos(), max.as_nanos());
                format!("'{}'", Duration::from_nanos(nanoseconds))
            }
            FieldKind::Rate => {
                let rate = self.integer(1, schema::MAX_RATE.bits_per_second());
                format!("'{}'", Rate::from_bits_per_second(rate))
            }
            FieldKind::Size { min, max } => {
                let bytes = self.integer(*min, *max);
                if self.random.bernoulli(0.5) { bytes.to_string() } else { format!("'{}'", format_size(bytes)) }
            }
            // Thresholds of RED: usually the first is below the second.
            FieldKind::LinkQueueLimit if key == "min" && self.random.bernoulli(0.8) => "'3packets'".to_string(),
            FieldKind::LinkQueueLimit if key == "max" && self.random.bernoulli(0.8) => "'40packets'".to_string(),
            FieldKind::LinkQueueLimit if self.random.bernoulli(0.1) => format!("'{}BDP'", self.integer(1, 64)),
            FieldKind::QueueLimit | FieldKind::LinkQueueLimit => {
                use crate::description::QueueLimit::*;
                let limit = match self.random.uniform_below(4) {
                    0 => Packets(self.integer(1, u32::MAX.into()) as u32),
                    1 => Bytes(self.integer(1, u64::MAX)),
                    2 => Time(Duration::from_nanos(self.integer(1, schema::MAX_DURATION.as_nanos()))),
                    _ => Unlimited,
                };
                format!("'{}'", format_queue_limit(limit))
            }
            // A metric that every subject has.
            FieldKind::Choice(_) if key == "metrics" && self.random.bernoulli(0.7) => {
                self.pick(&["'throughput_bps'", "'drops'"]).to_string()
            }
            FieldKind::Choice(choices) => {
                let names: Vec<&str> = choices.iter().filter(|choice| choice.available).map(|c| c.name).collect();
                format!("'{}'", self.pick(&names))
            }
            FieldKind::Table(table) => self.table(table),
            FieldKind::Tables(table) => {
                // A router is a NAT at most once, and a host is a UE or a station at most once.
                let count = if ["nat", "lte", "ue", "wifi", "station"].contains(&key) {
                    1
                } else {
                    1 + self.random.uniform_below(3)
                };
                let mut list: Vec<String> = (0..count).map(|_| self.table(table)).collect();
                if key == "flow" && self.topology == "star" && self.random.bernoulli(0.3) {
                    list.extend(self.tunnel());
                }
                format!("[{}]", list.join(", "))
            }
            FieldKind::List(element) => {
                let count = 1 + self.random.uniform_below(2);
                let list: Vec<String> = (0..count).map(|_| self.value(key, element)).collect();
                format!("[{}]", list.join(", "))
            }
            FieldKind::Map(_) | FieldKind::Raw => "{}".to_string(),
            FieldKind::Either(first, second) => {
                let kind = if self.random.bernoulli(0.8) { first } else { second };
                self.value(key, kind)
            }
        }
    }

    /// A tunnel and a flow through it.
    fn tunnel(&mut self) -> [String; 2] {
        let masque = self.table(&fullpipe_transport::tunnel::MASQUE);
        // Capsules are possible in every mode of the tunnel.
        let mode = if self.random.bernoulli(0.5) { ", via_mode = 'stream'" } else { "" };
        [
            format!("{{ name = 'tunnel', from = 'host1', to = 'host2', workload = 'tunnel', masque = {masque} }}"),
            format!(
                "{{ name = 'inner', from = 'host1', to = 'host3', protocol = 'quic', workload = 'idle', via = 'tunnel'{mode} }}"
            ),
        ]
    }

    fn pairs(&mut self, table: &'static Table) -> Vec<String> {
        let mut pairs = Vec::new();
        let mut fields: Vec<&'static Field> = table.common_fields().collect();
        if let Some(variants) = table.variants {
            let variant = self.pick(variants.list);
            pairs.push(format!("{} = '{}'", variants.key, variant.name));
            if table.name == "topology" {
                self.topology = variant.name;
            }
            fields.extend(variant.fields());
        }
        let subjects = ["flow", "link", "ethernet", "ue", "station"];
        let medium = if self.topology == "ethernet" { "ethernet" } else { "link" };
        let mut there_are = vec!["flow", medium];
        there_are.push(if self.cells.is_some() { "ue" } else { medium });
        there_are.extend(self.has_wifi.then_some("station"));
        let subject = *self.pick(&there_are);
        let place = *self.pick(&["distance", "position", "waypoints", "course"]);
        if table.name == "LTE network" {
            self.cells = Some(0);
        }
        self.has_wifi |= table.name == "Wi-Fi network";
        let (of_errors, exactly) = (["probability", "bit_error_rate"], self.random.bernoulli(0.5));
        // A file has either only programs or flows.
        let programs = table.name.is_empty() && self.random.bernoulli(0.2);
        for field in fields {
            // Keys that exclude each other.
            let not_with_programs = ["flow", "probe", "nat"].contains(&field.key);
            if table.name.is_empty() && (programs && not_with_programs || !programs && field.key == "program") {
                continue;
            }
            if table.name == "corruption" && of_errors.contains(&field.key) {
                if (field.key == of_errors[0]) == exactly {
                    pairs.push(format!("{} = 0.5", field.key));
                }
                continue;
            }
            if field.key == "schedule_repeat" {
                let scheduled = pairs.iter().any(|pair: &String| pair.starts_with("schedule ="));
                pairs.extend(scheduled.then(|| "schedule_repeat = '100s'".to_string()));
                continue;
            }
            // Settings of another transport than that of the flow are rejected.
            let quic = pairs.iter().any(|pair| pair == "protocol = 'quic'");
            if table.name == "flow" && (field.key == "quic" && !quic || field.key == "tcp" && quic) {
                continue;
            }
            // Settings of the model if another stack runs the ends, and settings that the model lacks.
            let model = pairs.iter().any(|pair| pair == "stack = 'model'");
            let of_model = fullpipe_quic::settings::is_model_key(field.key);
            if table.name == "quic" && (of_model && !model || field.key == "cryptography" && model) {
                continue;
            }
            // Likewise, parameters of another scheduler than that of the cell.
            let owners = ENTRIES.iter().filter(|entry| entry.parameters.contains(&field.key));
            let owners: Vec<&str> = owners.map(|entry| entry.declaration.name).collect();
            let is_owner = |name: &&str| pairs.iter().any(|pair| *pair == format!("scheduler = '{name}'"));
            if table.name == "cell" && !owners.is_empty() && !owners.iter().any(is_owner) {
                continue;
            }
            let attaches = pairs.iter().any(|pair| pair == "attach = 'known-cell'" || pair == "attach = 'cell-search'");
            if table.name == "UE" && field.key == "switched_on" && !attaches {
                continue;
            }
            // Tunnels and the flows that refer to one must be consistent: see `tunnel`.
            if table.name == "flow" && ["masque", "via", "via_mode"].contains(&field.key) {
                continue;
            }
            // Only one key for the position; the last key requires distances.
            let places = ["distance", "farthest", "position", "waypoints", "course"];
            let farthest = field.key == "farthest" && place == "distance" && self.random.bernoulli(0.5);
            if table.name == "UE" && places.contains(&field.key) && field.key != place && !farthest {
                continue;
            }
            if table.name == "nat" && field.key.ends_with("_port") && self.random.bernoulli(0.5) {
                continue;
            }
            // Only flows have directions and ends.
            if table.name == "probe" && ["direction", "end"].contains(&field.key) && subject != "flow" {
                continue;
            }
            let has = |pairs: &[String], key: &str| pairs.iter().any(|pair| pair.starts_with(&format!("{key} =")));
            if field.key == "loss_schedule_repeat" && !has(&pairs, "loss_schedule")
                || field.key == "trace_offset" && !has(&pairs, "trace") && !has(&pairs, "schedule_repeat")
            {
                continue;
            }
            if table.name.starts_with("Wi-Fi")
                && let Some(given) = self.wifi_key(&pairs, field.key)
            {
                pairs.extend(given);
                continue;
            }
            if table.name == "probe" && subjects.contains(&field.key) && field.key != subject {
                continue;
            }
            if let Some(given) = self.consistent(table.name, field.key) {
                pairs.push(given);
                continue;
            }
            let needed = matches!(field.default, DefaultValue::Required)
                || field.key == "flow"
                || table.name == "probe" && field.key == subject
                || table.name == "UE" && field.key == place;
            // A network with its own nodes needs matching names; `patterns_pair` and others test this.
            let own =
                ["host", "router", "ethernet"].contains(&field.key) || field.key == "link" && table.name.is_empty();
            // A file with only programs has no flows.
            let fits = field.key != "figures_of";
            let wanted = needed
                || ["lte", "wifi"].contains(&field.key) && self.random.bernoulli(0.3)
                || ["path loss", "fading"].contains(&table.name)
                || table.name == "cell" && !owners.is_empty() && self.random.bernoulli(0.5)
                || table.name == "bearer" && field.key == "guaranteed_rate" && self.random.bernoulli(0.2)
                || field.key == "path_loss"
                || table.name == "web object" && self.random.bernoulli(0.2)
                // A link needs a rate or a trace.
                || ["rate", "delay"].contains(&field.key) && table.name.contains("link") && self.random.bernoulli(0.97)
                || ["topology", "program", "stack"].contains(&field.key)
                || self.random.uniform_below(self.sparsity) == 0;
            if wanted && fits && !(own && table.name.is_empty()) {
                pairs.push(format!("{} = {}", field.key, self.value(field.key, &field.kind)));
            }
        }
        pairs
    }

    /// Keys of Wi-Fi networks and stations that depend on others: `None` for other keys, `Some(None)` to omit the key.
    fn wifi_key(&mut self, pairs: &[String], key: &str) -> Option<Option<String>> {
        let has = |pair: &str| pairs.iter().any(|given| given == pair);
        if key == "standard" {
            let standard = *self.pick(&["n", "n", "a"]);
            self.wifi_mcs = standard == "n";
            return Some(Some(format!("standard = '{standard}'")));
        }
        let rare = self.random.bernoulli(0.2);
        let wanted = match key {
            "rate_control" => return Some(rare.then(|| format!("{key} = '{}'", self.pick(&["constant", "ideal"])))),
            "mcs" | "rate" => {
                (key == "mcs") == self.wifi_mcs
                    && (has("rate_control = 'constant'") || rare && !has("rate_control = 'ideal'"))
            }
            "driver_packets" => has("queue = 'drop-tail'"),
            "codel_target" | "codel_interval" | "codel_ecn" => {
                rare && !has("queue = 'drop-tail'") && !has("queue = 'per-station'")
            }
            "category" if self.wifi_mcs => return None,
            "streams" | "band" => rare && self.wifi_mcs,
            "category" => false,
            _ => return None,
        };
        let value = match key {
            "mcs" => "3",
            "rate" => "'6Mbit/s'",
            "codel_ecn" => "false",
            "codel_target" | "codel_interval" => "'9ms'",
            "band" => "'2.4GHz'",
            _ => "1",
        };
        Some(wanted.then(|| format!("{key} = {value}")))
    }

    /// Values that depend on other values; they are usually consistent.
    fn consistent(&mut self, table: &str, key: &str) -> Option<String> {
        if self.random.bernoulli(0.1) {
            return None;
        }
        match (table, key) {
            (_, "trace_offset") => {
                Some(format!("trace_offset = '{}'", self.pick(&["random", "random", "3ms", "1500us"])))
            }
            ("step", "at") => {
                self.steps += 1;
                Some(format!("at = '{}ms'", self.steps))
            }
            ("probe", "end") if self.random.bernoulli(0.5) => None,
            ("probe", "end") => Some(format!("end = '{}'", *self.pick(&["client", "server"]))),
            ("LTE network" | "Wi-Fi network", "gateway" | "access_point") => {
                let gateway = match self.topology {
                    "dumbbell" => "router1",
                    "star" => "hub",
                    "ethernet" => "host1",
                    _ => "source",
                };
                Some(format!("{key} = '{gateway}'"))
            }
            ("UE" | "Wi-Fi station", "host") => {
                let host = match self.topology {
                    "dumbbell" => "left*",
                    "star" => "host*",
                    "ethernet" => "host2",
                    _ => "sink",
                };
                Some(format!("host = '{host}'"))
            }
            ("probe", "station") => {
                let host = match self.topology {
                    "dumbbell" => "left1",
                    "star" => "host1",
                    "ethernet" => "host2",
                    _ => "sink",
                };
                Some(format!("station = '{host}'"))
            }
            ("Wi-Fi network", "channel_width") => Some("channel_width = 20".to_string()),
            ("contention parameters", "cw_min") => Some("cw_min = 7".to_string()),
            ("contention parameters", "cw_max") => Some("cw_max = 63".to_string()),
            ("LTE network", "resource_blocks" | "uplink_resource_blocks") => Some(format!("{key} = 25")),
            ("LTE network", "earfcn") => Some("earfcn = 300".to_string()),
            ("LTE network", "uplink_earfcn") => Some("uplink_earfcn = 18300".to_string()),
            ("cell", "name") => {
                let number = self.cells.unwrap_or_default() + 1;
                self.cells = Some(number);
                Some(format!("name = 'c{number}'"))
            }
            ("cell", "sounding_period") => Some("sounding_period = 160".to_string()),
            ("cell", "scheduler") if self.random.bernoulli(0.6) => {
                Some(format!("scheduler = '{}'", self.pick(&["pss", "pss", "pss", "cqa", "fd-tbfq", "td-tbfq"])))
            }
            ("cell", "waiting_unit") => Some("waiting_unit = '20ms'".to_string()),
            ("cell", "groups") => Some("groups = [3, 8]".to_string()),
            ("cell", "position") => Some("position = [-0.5, 2.5]".to_string()),
            ("UE" | "waypoint", "position") => Some("position = [12.5, 1e3]".to_string()),
            ("UE", "cell") => Some("cell = 'c1'".to_string()),
            ("UE", "qci") if self.random.bernoulli(0.8) => Some("qci = 7".to_string()),
            ("bearer", "qci") if self.random.bernoulli(0.8) => Some("qci = 7".to_string()),
            ("packet filter" | "access category", "remote" | "local") => Some(format!("{key} = '10.0.0.0/8'")),
            ("packet filter" | "access category", "remote_ports" | "local_ports") => {
                Some(format!("{key} = [1, 65535]"))
            }
            ("UE", "course") => Some(format!("course = '{}/tests/data/course.txt'", env!("CARGO_MANIFEST_DIR"))),
            ("waypoint" | "change of a Wi-Fi station", "at") => {
                self.steps += 1;
                Some(format!("at = '{}ms'", self.steps))
            }
            ("fading", "file") => Some(format!("file = '{}/tests/data/tone.fad'", env!("CARGO_MANIFEST_DIR"))),
            ("fading", "window") => Some("window = '2ms'".to_string()),
            ("fading", "repeat") => Some("repeat = '2s'".to_string()),
            ("step", "outage") => Some("outage = false".to_string()),
            ("nat", "router") => {
                let router = if self.topology == "star" { "hub" } else { "router1" };
                Some(format!("router = '{router}'"))
            }
            ("nat", "inside") => {
                let inside = match self.topology {
                    "dumbbell" => "left*",
                    "star" => "host*",
                    _ => "source",
                };
                Some(format!("inside = ['{inside}']"))
            }
            ("program", "host") => {
                let host = match self.topology {
                    "dumbbell" => "left1",
                    "chain" | "parking-lot" => "source",
                    _ => "host1",
                };
                Some(format!("host = '{host}'"))
            }
            ("program", "name") => {
                self.programs += 1;
                Some(format!("name = 'p{}'", self.programs))
            }
            ("program", "after") => Some(match self.programs {
                0 | 1 => "after = []".to_string(),
                several => format!("after = ['p{}']", 1 + self.random.uniform_below(u64::from(several - 1))),
            }),
            ("program", "command") => Some(format!("command = {}", self.pick(&["['a', '']", "'a; b'"]))),
            ("program", "environment") => Some("environment = ['A=', 'B=b=b']".to_string()),
            ("nat", "first_port") => self.random.bernoulli(0.5).then(|| "first_port = 2000".to_string()),
            ("nat", "last_port") => self.random.bernoulli(0.5).then(|| "last_port = 3000".to_string()),
            // `size` needs a size for each band except the last. Otherwise it is drawn.
            ("discipline" | "band", "by") => {
                let by = *self.pick(&["flow", "protocol", "codepoint"]);
                (self.random.bernoulli(0.3)).then(|| format!("by = '{by}'"))
            }
            // The preceding objects of the list are unknown here.
            ("web object", "after") => Some("after = []".to_string()),
            ("black hole", "from") => Some("from = '1s'".to_string()),
            ("black hole", "until") => Some("until = '2s'".to_string()),
            ("black hole", "period") => Some("period = '3s'".to_string()),
            _ => None,
        }
    }

    fn table(&mut self, table: &'static Table) -> String {
        format!("{{ {} }}", self.pairs(table).join(", "))
    }
}

/// A random file for each case.
pub(super) fn file(case: u64) -> String {
    Writer::new(case).pairs(LANGUAGE.schema).join("\n")
}

/// A key of a table with a random value for each case, as TOML on one line.
pub(super) fn pair(case: u64, table: &Table, field: &Field) -> String {
    let mut writer = Writer::new(case);
    let consistent = writer.consistent(table.name, field.key);
    consistent.unwrap_or_else(|| format!("{} = {}", field.key, writer.value(field.key, &field.kind)))
}

/// The paths of the values in a tree that are in the file.
fn given(tree: &Tree, prefix: &str, paths: &mut BTreeSet<String>) {
    for (key, value) in tree.iter() {
        let path = format!("{prefix}{key}");
        match &value.data {
            ValueData::Table(tree) => given(tree, &format!("{path}."), paths),
            ValueData::Tables(trees) => trees.iter().for_each(|tree| given(tree, &format!("{path}."), paths)),
            _ => {}
        }
        if value.given {
            paths.insert(path);
        }
    }
}

/// The paths in a schema.
fn declared(table: &'static Table, prefix: &str, paths: &mut BTreeSet<String>) {
    let variants = table.variants.iter().flat_map(|variants| variants.list).flat_map(|variant| variant.fields());
    for field in table.common_fields().chain(variants) {
        let path = format!("{prefix}{}", field.key);
        if let FieldKind::Table(table) | FieldKind::Tables(table) = field.kind {
            declared(table, &format!("{path}."), paths);
        }
        paths.insert(path);
    }
    paths.extend(table.variants.map(|variants| format!("{prefix}{}", variants.key)));
}

#[test]
fn resolved_random_file_describes_the_same_scenario() {
    let mut seen = BTreeSet::new();
    let mut accepted = 0;
    for case in 200_000..245_000 {
        let text = file(case);
        // The schema alone.
        let tree = match schema::load(LANGUAGE.schema, &text, "random.toml", &[]) {
            Ok(loaded) => loaded.root,
            Err(errors) => panic!("the schema rejects its own values: {errors}\n{text}"),
        };
        let resolved = schema::resolved_toml(LANGUAGE.schema, &tree);
        let again = schema::load(LANGUAGE.schema, &resolved, "resolved.toml", &[])
            .unwrap_or_else(|e| panic!("{e}\n{resolved}"));
        assert_eq!(again.root, tree, "{text}");
        // The language.
        let Ok(loaded) = load(&text, "random.toml", &[]) else { continue };
        accepted += 1;
        given(&tree, "", &mut seen);
        let again = load(&loaded.resolved, "resolved.toml", &[]).unwrap_or_else(|e| panic!("{e}\n{}", loaded.resolved));
        assert_eq!(again.scenario, loaded.scenario, "{text}");
        assert_eq!(again.resolved, loaded.resolved, "{text}");
    }
    // The test is meaningful only if many files are accepted and every key was in one of them. Keys are compared by the
    // last two parts of their paths, because the directions of a link are alike everywhere.
    assert!(accepted > 1000, "{accepted}");
    let mut missing = BTreeSet::new();
    declared(LANGUAGE.schema, "", &mut missing);
    let own = ["host", "router", "link", "ethernet"];
    missing.retain(|path| !own.contains(&path.split('.').next().unwrap_or_default()));
    // `programs_play_tunnels_and_what_goes_through_them` covers it.
    missing.remove("program.figures_of");
    // `tests/events.rs` covers events, which need exact names of flows and links.
    missing.retain(|path| !path.starts_with("event."));
    // A band of strict priority is a discipline, and all links of topologies have the same table.
    let end = |path: &String| {
        let mut path = path.replace("discipline.bands.", "discipline.");
        for line in ["topology.access_right.", "topology.access.", "topology.bottleneck."] {
            path = path.replace(line, "topology.link.");
        }
        path = path.replace("uplink_fading.", "fading.");
        path.rsplitn(3, '.').take(2).map(str::to_string).collect::<Vec<_>>()
    };
    let seen: BTreeSet<Vec<String>> = seen.iter().map(end).collect();
    missing.retain(|path| !seen.contains(&end(path)));
    assert!(missing.is_empty(), "no accepted file contains {missing:?}; {accepted} files accepted");
}
