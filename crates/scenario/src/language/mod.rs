//! The scenario language. It reads a file against its schema, fills in defaults that depend on other keys, and checks
//! conditions over several keys. The result is a plain description and the resolved file.
//!
//! ```
//! let text = r#"
//! [topology]
//! kind = "dumbbell"
//! access = { rate = "1Gbit/s", delay = "1ms" }
//! bottleneck = { rate = "10Mbit/s", delay = "8ms", queue = "50kB" }
//!
//! [[flow]]
//! from = "left1"
//! to = "right1"
//! size = "1MB"
//! "#;
//! let loaded = fullpipe_scenario::load(text, "example.toml", &[]).unwrap();
//! assert_eq!(loaded.scenario.links.len(), 6);
//! // The resolved file describes the same scenario.
//! let again = fullpipe_scenario::load(&loaded.resolved, "resolved.toml", &[]).unwrap();
//! assert_eq!(again.scenario, loaded.scenario);
//!
//! let set = [fullpipe_scenario::Override::parse("topology.bottleneck.rat=1Mbit/s").unwrap()];
//! let errors = fullpipe_scenario::load(text, "example.toml", &set).unwrap_err();
//! assert_eq!(errors.0[0].suggestion.as_deref(), Some("rate"));
//! ```

mod access;
mod bdp;
mod csv_trace;
mod event_keys;
mod events;
mod expect;
mod fields;
mod identity;
mod links;
mod measurement;
mod nat;
mod network;
mod probes;
mod programs;
mod reach;
mod real_time;
#[cfg(test)]
mod tests;
mod topology;
mod traffic;
mod tunnels;

pub use fullpipe_congestion::catalogue::CHOICES as CONGESTION;
pub use probes::probe_metrics;

use crate::access::ACCESS_NETWORKS;
use crate::description::Scenario;
pub(crate) use crate::schema::error::abbreviate_names;
use crate::schema::{
    self, Diagnostics, Errors, Field, FieldKind, Hint, Override, Sources, Table, Tree, Value, ValueData,
};
use fullpipe_network::access::AccessNetworkComponent;
use fullpipe_quic::settings as quic;
use fullpipe_tcp::settings as tcp;
use fullpipe_transport::tunnel as masque;
use reach::Reachability;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A scenario that was loaded from a valid file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadedScenario {
    /// The scenario.
    pub scenario: Scenario,
    /// The resolved file, with all defaults. If this text is loaded, the result is an equal scenario and the same text.
    pub resolved: String,
    /// The tables `[[expect]]`. The crate `study` checks their metrics. This field is not part of the stable interface.
    #[doc(hidden)]
    pub expectations: Vec<Tree>,
    /// The text of the file, for errors about expectations.
    #[doc(hidden)]
    pub sources: Sources,
    /// Advice about spellings that are accepted but outdated, such as former names of keys.
    pub hints: Vec<Hint>,
}

/// The scenario language, with the access networks that it supports.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    schema: &'static Table,
    components: &'static [&'static AccessNetworkComponent],
}

static LANGUAGE: LazyLock<Language> = LazyLock::new(|| Language::of(ACCESS_NETWORKS));

impl Default for Language {
    /// Returns the language with the registered access networks.
    fn default() -> Self {
        *LANGUAGE
    }
}

impl Language {
    /// Adds an access network that the calling program defines. The memory of its tables is never freed.
    ///
    /// # Panics
    /// If the name of the component is already a key of a scenario.
    #[must_use]
    pub fn with_access_network(self, component: &'static AccessNetworkComponent) -> Self {
        Language::of([self.components, &[component]].concat().leak())
    }

    fn of(components: &'static [&'static AccessNetworkComponent]) -> Self {
        let keys = access::fields(components);
        let mut taken: BTreeSet<&str> = fields::SCENARIO.common_fields().map(|field| field.key).collect();
        keys.iter().for_each(|Field { key, .. }| assert!(taken.insert(key), "{key} is already a key of a scenario"));
        let probe: &'static Table = Box::leak(Box::new(probes::table(components)));
        let mut table = access::with_keys(&fields::SCENARIO, keys);
        let with_probes = |group: &&[Field]| -> &'static [Field] {
            let field = |field: &Field| match field.key == fields::PROBE.key {
                true => Field { kind: FieldKind::Tables(probe), ..*field },
                false => *field,
            };
            group.iter().map(field).collect::<Vec<_>>().leak()
        };
        table.fields = table.fields.iter().map(with_probes).collect::<Vec<_>>().leak();
        Language { schema: Box::leak(Box::new(table)), components }
    }

    /// Reads a scenario from the text of a file. `file` is the name of the file in errors.
    ///
    /// # Errors
    /// All errors in the file and the overrides, in the order of the file. Conditions over several keys are checked
    /// only if each key is valid.
    pub fn load(&self, text: &str, file: &str, overrides: &[Override]) -> Result<LoadedScenario, Errors> {
        let schema::LoadedFile { mut root, sources, mut hints } = schema::load(self.schema, text, file, overrides)?;
        let mut check = Diagnostics::new(&sources);
        fill(&mut root, self.components, &mut check);
        check.finish()?;
        let mut check = Diagnostics::new(&sources);
        let scenario = build(&mut root, self.components, &mut check);
        hints.append(&mut check.hints);
        check.finish()?;
        match scenario {
            Some(scenario) => {
                let resolved = schema::resolved_toml(self.schema, &root);
                let expectations = root.get("expect").map(Value::tables).unwrap_or_default().to_vec();
                Ok(LoadedScenario { scenario, resolved, expectations, sources, hints })
            }
            // Without a scenario there is an error, which `done` has already returned.
            None => unreachable!("a scenario that could not be built has an error"),
        }
    }
}

/// Reads a scenario from the text of a file. `file` is the name of the file in errors.
///
/// # Errors
/// The errors of [`Language::load`].
pub fn load(text: &str, file: &str, overrides: &[Override]) -> Result<LoadedScenario, Errors> {
    LANGUAGE.load(text, file, overrides)
}

/// Returns the schema of a scenario file: its top-level table, including the keys of all access networks.
pub fn root_table() -> &'static Table {
    LANGUAGE.schema
}

/// Returns the reference page of the scenario language in Markdown, which is generated from the schema.
pub fn reference_markdown() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str(&schema::render_reference(LANGUAGE.schema));
    page.push_str(&tcp::presets_markdown());
    page
}

const INTRODUCTION: &str = "\
<!-- Generated from the schema in crates/scenario: FULLPIPE_UPDATE=1 cargo test -p fullpipe-scenario --test all reference -->

# Scenario files

A scenario is one TOML file: a network and the flows over it. `fullpipe check FILE` checks one, `fullpipe run FILE` runs
it. Every key is on this page. The record of a run contains its scenario with all defaults.

Values with a unit are strings:

| type | examples |
|---|---|
| duration | `\"10ms\"`, `\"2us\"`, `\"12.5us\"`, `\"1.5s\"`; also `ns`, `min`, `h` |
| rate | `\"100Mbit/s\"`, `\"64kbit/s\"`, `\"1Gbit/s\"`; also `bit/s`, `Tbit/s` and the spellings `kbps`, `Mbps`, `Gbps` |
| size | `\"250kB\"` (10^3), `\"64KiB\"` (2^10), `\"1500B\"`, or an integer of bytes; also `MB`, `GB`, `TB`, `MiB`, `GiB`, `TiB` |
| queue limit | `\"100packets\"`, `\"250kB\"`, `\"100ms\"` (what the link transmits in that time), `\"unlimited\"` |
| BDP | `\"2BDP\"`, `\"0.25BDP\"`: a multiple of the bandwidth-delay product, the link's rate times its `bdp_rtt` |
| name | a letter, then letters, digits, `-` and `_`, at most 64 |

A value must be a whole number of nanoseconds, bits per second or bytes; nothing is rounded.

Where a file names hosts, flows or links, `*` stands for any letters and `?` for one: `\"left*\"`. Matches are in the order
of their numbers: `left2` before `left10`.

`--set PATH=VALUE` reaches any key by its dotted path. An element of an array is named by its index from 0 or by its
`name`: `--set topology.bottleneck.rate=10Mbit/s`, `--set flow.0.count=5`, `--set flow.bulk.size=1MB`; a pattern means all
whose names it matches: `--set 'flow.*.size=1MB'`. VALUE is TOML; a bare word is a string.

## The file

";

/// Fills in the defaults that depend on other keys. Defaults that depend on the network (the number of flows) are
/// filled in later.
fn fill(root: &mut Tree, components: &[&'static AccessNetworkComponent], check: &mut Diagnostics) {
    network::fill(root, check);
    access::fill(root, components);
    identity::fill(root, check);
    programs::fill(root);
    let mut settings = match root.remove("tcp") {
        Some(value) => value,
        None => unreachable!("[tcp] is empty by default"),
    };
    if let ValueData::Table(tree) = &mut settings.data {
        tcp::fill(tree, None);
        tcp::check(tree, "tcp", check);
        traffic::fill(root, tree, check);
    }
    root.set("tcp", settings);
}

fn build(
    root: &mut Tree,
    components: &'static [&'static AccessNetworkComponent],
    check: &mut Diagnostics,
) -> Option<Scenario> {
    let title = root.text("title");
    if title.contains(|c: char| c.is_control()) {
        let place = root.location_of("title");
        let what = if title.contains(['\n', '\r']) { "has more than one line" } else { "contains a control character" };
        let message = format!("title = {} {what}", check.sources.excerpt(place));
        check.add_error(place, "title", message, vec!["one line of text".into()]);
    }
    let title = title.to_string();
    let duration = root.duration("duration");
    let seed = u64::try_from(root.integer("seed")).unwrap_or_default();
    let processing_jitter = root.get("processing_jitter").map(Value::duration);
    let phase_jitter = root.get("phase_jitter").map_or(0.0, Value::number);
    let mut network = network::build(root, components, check)?;
    let nats = nat::nats(root, &network, check);
    let reach = Reachability::new(&network);
    let mut programs = programs::programs(root, &network, check);
    let flows = traffic::flows(root, &network, &reach, check)?;
    let bdp_limits = bdp::resolve(&mut network, &flows.list, duration, check);
    programs::figures(root, &mut programs, &flows.list, check);
    real_time::hosts(root, &mut network, &flows, &programs, check);
    let probes = probes::probes(root, &network, &flows, duration, check)?;
    let events = events::events(root, &network, &flows, check);
    expect::check(root, &flows.list, check);
    let measurement = measurement::measurement(root, &network, duration, check);
    let network::Network { mut nodes, mut links, ethernets, access, .. } = network;
    let mut flows = flows.list;
    // The vectors grew by doubling and exist for the whole run. Shrinking saves 6 MB for `tcp-10k`.
    nodes.shrink_to_fit();
    links.shrink_to_fit();
    flows.shrink_to_fit();
    Some(Scenario {
        title,
        duration,
        seed,
        nodes,
        links,
        bdp_limits,
        ethernets,
        access,
        nats,
        flows,
        processing_jitter,
        phase_jitter,
        probes,
        events,
        measurement,
        real_time: real_time::settings(root.table("real_time")),
        programs,
    })
}
