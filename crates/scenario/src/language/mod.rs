//! The scenario language: reads a file against its schema, fills in what depends on other keys, checks what spans
//! several keys, and gives a plain description and the file with every default written out.
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
//! // What is written out says the same.
//! let again = fullpipe_scenario::load(&loaded.resolved, "resolved.toml", &[]).unwrap();
//! assert_eq!(again.scenario, loaded.scenario);
//!
//! let set = [fullpipe_scenario::Override::parse("topology.bottleneck.rat=1Mbit/s").unwrap()];
//! let errors = fullpipe_scenario::load(text, "example.toml", &set).unwrap_err();
//! assert_eq!(errors.0[0].suggestion.as_deref(), Some("rate"));
//! ```

mod fields;
mod identity;
mod links;
mod lte;
mod masque;
mod measurement;
mod nat;
mod network;
mod probes;
mod programs;
mod quic;
#[cfg(test)]
mod random;
mod reach;
mod real_time;
mod tcp;
mod topology;
mod traffic;
mod web;
mod workloads;

pub use lte::{fading_kinds, path_loss_models};
pub use probes::{
    METRICS_OF_ETHERNETS, METRICS_OF_LINKS, METRICS_OF_TCP_FLOWS, METRICS_OF_TUNNELS, METRICS_OF_UDP_FLOWS,
    METRICS_OF_UES,
};
pub use tcp::CONGESTION;

use crate::description::Scenario;
pub(crate) use crate::schema::error::{COMPARED, some_of};
use crate::schema::{self, Check, Data, Errors, Override, Tree, Value};
use fullpipe_schema::distributions;
use reach::Reach;

/// A file that is right.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says.
    pub scenario: Scenario,
    /// The file with every default written out. Loading it gives an equal scenario and the same text.
    pub resolved: String,
}

/// Reads a scenario. `file` is its name, for errors.
///
/// # Errors
/// Whatever is wrong with the file or the overrides, in the order of the file. Mistakes within one key come first:
/// only a file without them is checked for those that span several.
pub fn load(text: &str, file: &str, overrides: &[Override]) -> Result<Loaded, Errors> {
    let schema::Loaded { mut root, sources } = schema::load(&fields::SCENARIO, text, file, overrides)?;
    let mut check = Check::new(&sources);
    fill(&mut root, &mut check);
    check.done()?;
    let mut check = Check::new(&sources);
    let scenario = build(&mut root, &mut check);
    check.done()?;
    match scenario {
        Some(scenario) => Ok(Loaded { scenario, resolved: schema::resolved(&fields::SCENARIO, &root) }),
        // Without a scenario there is an error, and `done` has returned it.
        None => unreachable!("a scenario that could not be built has an error"),
    }
}

/// The reference page, from the schema.
pub fn reference_markdown() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str(&schema::reference(&fields::SCENARIO));
    page.push_str(&tcp::presets_markdown());
    page
}

const INTRODUCTION: &str = "\
<!-- Generated from the schema in crates/scenario: FULLPIPE_UPDATE=1 cargo test -p fullpipe-scenario --test reference -->

# Scenario files

A scenario is one TOML file: a network and who talks over it. `fullpipe check FILE` checks one, `fullpipe run FILE` runs
it. Every key is on this page; what a run really used is in its record, with every default written out.

Values with a unit are strings:

| type | examples |
|---|---|
| duration | `\"10ms\"`, `\"2us\"`, `\"12.5us\"`, `\"1.5s\"`; also `ns`, `min`, `h` |
| rate | `\"100Mbit/s\"`, `\"64kbit/s\"`, `\"1Gbit/s\"`; also `bit/s`, `Tbit/s` and the spellings `kbps`, `Mbps`, `Gbps` |
| size | `\"250kB\"` (10^3), `\"64KiB\"` (2^10), `\"1500B\"`, or an integer of bytes; also `MB`, `GB`, `TB`, `MiB`, `GiB`, `TiB` |
| queue limit | `\"100packets\"`, `\"250kB\"`, `\"100ms\"` (what the link transmits in that time), `\"unlimited\"` |
| name | a letter, then letters, digits, `-` and `_`, at most 64 |

A value must be a whole number of nanoseconds, bits per second or bytes; nothing is rounded.

Where a file names hosts, flows or links, `*` stands for any letters and `?` for one: `\"left*\"`. Matches are in the order
of their numbers: `left2` before `left10`.

`--set PATH=VALUE` reaches any key by its dotted path. An element of an array is named by its index from 0 or by its
`name`: `--set topology.bottleneck.rate=10Mbit/s`, `--set flow.0.count=5`, `--set flow.bulk.size=1MB`; a pattern means all
whose names it matches: `--set 'flow.*.size=1MB'`. VALUE is TOML; a bare word is a string.

## The file

";

/// Fills in the defaults that depend on other keys, except those that need the network (the number of flows).
fn fill(root: &mut Tree, check: &mut Check) {
    network::fill(root, check);
    lte::fill(root);
    identity::fill(root, check);
    programs::fill(root);
    let mut settings = match root.remove("tcp") {
        Some(value) => value,
        None => unreachable!("[tcp] is empty by default"),
    };
    if let Data::Table(tree) = &mut settings.data {
        tcp::fill(tree, None);
        tcp::check(tree, "tcp", check);
        traffic::fill(root, tree, check);
    }
    root.set("tcp", settings);
}

fn build(root: &mut Tree, check: &mut Check) -> Option<Scenario> {
    let title = root.text("title");
    if title.contains(|c: char| c.is_control()) {
        check.error(root.place_of("title"), "title", "the title is not one line of text", vec!["one line".into()]);
    }
    let title = title.to_string();
    let duration = root.duration("duration");
    let seed = u64::try_from(root.integer("seed")).unwrap_or_default();
    let processing_jitter = root.get("processing_jitter").map(Value::duration);
    let mut network = network::build(root, check)?;
    let nats = nat::nats(root, &network, check);
    let reach = Reach::new(&network);
    let mut programs = programs::programs(root, &network, check);
    let flows = traffic::flows(root, &network, &reach, check)?;
    programs::figures(root, &mut programs, &flows.list, check);
    real_time::hosts(root, &mut network, &flows, &programs, check);
    let probes = probes::probes(root, &network, &flows, duration, check)?;
    let measurement = measurement::measurement(root, &network, duration, check);
    let network::Network { nodes, links, ethernets, lte, .. } = network;
    Some(Scenario {
        title,
        duration,
        seed,
        nodes,
        links,
        ethernets,
        lte,
        nats,
        flows: flows.list,
        processing_jitter,
        probes,
        measurement,
        real_time: real_time::settings(root.table("real_time")),
        programs,
    })
}

#[cfg(test)]
mod tests {
    use super::{masque, quic};
    use crate::schema::Default;

    #[test]
    fn every_key_has_a_default_and_no_other() {
        for settings in [&quic::SETTINGS, &masque::SETTINGS] {
            let fields = settings.table.common().filter(|field| !matches!(field.default, Default::Inherited(_)));
            let keys: Vec<&str> = fields.map(|field| field.key).collect();
            let with_default: Vec<&str> = settings.values.iter().map(|(key, _)| *key).collect();
            assert_eq!(keys, with_default, "{}", settings.table.name);
        }
    }
}
