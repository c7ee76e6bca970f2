//! Probes: their keys, and the expansion of one `[[probe]]` into one probe for each subject.

use super::Diagnostics;
use super::access::with_keys;
use super::network::Network;
use super::traffic::FlowGroups;
use crate::description::{Flow, Probe, ProbeSubject, Transport, direction_name, main_senders, station_name};
use crate::schema::component::choices;
use crate::schema::node::quote;
use crate::schema::{Choice, Field, FieldKind, Table, Tree, Value, keys, named};
use crate::schema::{is_pattern, matches};
use fullpipe_congestion::controls::CONTROLS;
use fullpipe_network::access::{AccessNetworkComponent, StationDeclaration};
use fullpipe_network::{MediumDirection, metrics};
use fullpipe_schema::metric::{MetricDeclaration, MetricReader, ProbeMetric};
use fullpipe_transport::metrics::{ENDPOINT, PROXY};
use fullpipe_units::Duration;
use std::collections::BTreeSet;

/// The maximum number of samples of all probes of a run.
const MOST_SAMPLES: u128 = 100_000_000;

/// Returns the metrics that congestion controls declare, without duplicates.
fn of_controls() -> Vec<&'static MetricDeclaration> {
    unique(CONTROLS.iter().flat_map(|control| control.values))
}

fn unique(metrics: impl Iterator<Item = &'static MetricDeclaration>) -> Vec<&'static MetricDeclaration> {
    let mut known = BTreeSet::new();
    metrics.filter(|metric| known.insert(metric.name)).collect()
}

/// Returns the metrics that probes can sample and their descriptions, in the order of the reference page. Each metric
/// occurs once. The description names the kinds of subjects that have the metric.
pub fn probe_metrics(access: &[&'static AccessNetworkComponent]) -> Vec<(&'static MetricDeclaration, String)> {
    let endpoints = ProbeMetric::declarations(&ENDPOINT).chain(ProbeMetric::declarations(&PROXY)).collect();
    let mut groups: Vec<(&str, Vec<&'static MetricDeclaration>)> = vec![
        ("", endpoints),
        ("link", ProbeMetric::declarations(&metrics::LINK).collect()),
        ("flow", ProbeMetric::declarations(&metrics::FLOW).collect()),
        ("segment", ProbeMetric::declarations(&metrics::SEGMENT).collect()),
        ("", of_controls()),
    ];
    groups.extend(access.iter().map(|component| (component.station.name, (component.metrics)())));
    let every = unique(groups.iter().flat_map(|(_, metrics)| metrics.iter().copied()));
    let described = every.into_iter().map(|metric| {
        let has = |metrics: &[&MetricDeclaration]| metrics.iter().any(|other| other.name == metric.name);
        let having = groups.iter().filter(|(what, metrics)| !what.is_empty() && has(metrics));
        let mut having: Vec<&str> = having.map(|(what, _)| *what).collect();
        having.dedup();
        match having.as_slice() {
            [] => (metric, metric.text.to_owned()),
            _ => (metric, format!("{} ({}s).", metric.text.trim_end_matches('.'), having.join("s, "))),
        }
    });
    described.collect()
}

/// The description of the default of the subject keys.
const ONE_SUBJECT: &str = "another of these keys is given";

/// The keys of a probe that select its subject, except for stations of access networks.
const SUBJECTS: [&str; 3] = ["flow", "link", "ethernet"];

/// The key of a probe that selects the direction whose packets are counted.
const DIRECTION_KEY: &str = "direction";
/// The key of a probe that selects the end of a flow.
const END_KEY: &str = "end";

/// The directions of a flow, by the end that sends.
static DIRECTION: [(Choice, usize); 2] = named! {
    /// from `from` to `to`.
    "forward" => 0;
    /// from `to` to `from`.
    "reverse" => 1;
};

/// The names of the ends of a flow, at `from` and at `to`.
const ENDS: [&str; 2] = ["client", "server"];

static PROBE: Table = Table {
    name: "probe",
    text: "Metrics that are sampled of flows, links, segments or stations of an access network. Exactly one of the keys above \
           `metrics` must be given. A pattern selects all matches. A probe does not change the run.",
    fields: &[
        keys! {
            /// Flows, by name or pattern; the name of a `[[flow]]` with `count` selects all its flows. If a pattern
            /// selects flows of several kinds, each is sampled for the metrics that it has.
            "flow": FieldKind::Text, optional ONE_SUBJECT;
            /// Directions of links: `bottleneck`, `bottleneck.reverse`, `access-*`.
            "link": FieldKind::Text, optional ONE_SUBJECT;
            /// Shared segments.
            "ethernet": FieldKind::Text, optional ONE_SUBJECT;
        },
        keys! {
            /// Of flows: the direction whose packets are counted (`throughput_bps`, `drops`, `marks`). Its samples have the name
            /// of the flow, those of the reverse direction that name with `.reverse`.
            "direction": FieldKind::Choice(&choices(&DIRECTION)),
                optional "that in which `end` sends; without `end` the main direction of the workload, or both if it has two";
            /// Of flows: the end whose metrics, such as window and round-trip time, are sampled: `client` (the host of `from`),
            /// `server` (the host of `to`), or the name of one of these hosts, which takes precedence. Its samples have the name of
            /// the direction in which it sends.
            "end": FieldKind::Text, optional "the sender of `direction`; without `direction` the sender of the main direction; of a tunnel the client";
            /// Time from one sample to the next.
            "interval": FieldKind::duration(Duration::from_micros(1), crate::schema::MAX_DURATION), default "10ms";
        },
    ],
    ..Table::EMPTY
};

/// Returns the table of a probe, with the keys and metrics of access networks. It is never freed.
pub(super) fn table(components: &[&'static AccessNetworkComponent]) -> Table {
    let metrics = probe_metrics(components).into_iter().map(|(metric, text)| Choice::new(metric.name, text.leak()));
    let metrics: Vec<Choice> = metrics.chain([Choice::reserved("rsrp_dbm")]).collect();
    let mut keys = Vec::new();
    for component in components {
        let StationDeclaration { key, name } = component.station;
        if keys.iter().all(|field: &Field| field.key != key) {
            let text = format!(
                "Directions of {name}s, by the names of their hosts: `phone` selects the downlink, `phone.uplink` the uplink."
            );
            keys.push(Field::optional(key, FieldKind::Text, ONE_SUBJECT, text.leak()));
        }
    }
    let kind = Box::leak(Box::new(FieldKind::Choice(metrics.leak())));
    keys.push(Field::required("metrics", FieldKind::List(kind), "Metrics to sample."));
    with_keys(&PROBE, keys)
}

/// Builds the probes, one for each subject. Returns `None` on an error.
pub(crate) fn probes(
    root: &Tree,
    network: &Network,
    flows: &FlowGroups,
    duration: Duration,
    check: &mut Diagnostics,
) -> Option<Vec<Probe>> {
    let mut probes = Vec::new();
    let mut samples: u128 = 0;
    let mut watched = BTreeSet::new();
    'probes: for (index, tree) in root.get("probe").map(Value::tables).unwrap_or_default().iter().enumerate() {
        if check.is_full() {
            break;
        }
        let path = format!("probe.{index}");
        let stations = network.components.iter().map(|component| component.station.key);
        let mut keys: Vec<&str> = SUBJECTS.into_iter().chain(stations).collect();
        keys.dedup();
        let given: Vec<&str> = keys.iter().copied().filter(|key| tree.get(key).is_some()).collect();
        let [key] = given[..] else {
            let place = given.get(1).map_or(tree.place, |key| tree.location_of(key));
            let message = match given[..] {
                [] => format!("{path} has no subject"),
                _ => format!("{path} has more than one subject: {}", given.join(" and ")),
            };
            check.add_error(place, &path, message, vec![format!("exactly one of {}", keys.join(", "))]);
            continue;
        };
        for of_flows in [DIRECTION_KEY, END_KEY].into_iter().filter(|other| key != "flow" && tree.get(other).is_some())
        {
            let (place, subject) = (tree.location_of(of_flows), tree.text(key));
            let (at, found) = (format!("{path}.{of_flows}"), check.sources.excerpt(place));
            let message =
                format!("{at} = {found} applies to probes of flows, but {path} has {key} = {}", quote(subject));
            let mut error = check.sources.error(place, &at, message, vec![format!("no {of_flows}")]);
            let is_reverse = of_flows == DIRECTION_KEY && tree.choice(DIRECTION_KEY) == "reverse";
            if key == "link" && is_reverse && !subject.ends_with(".reverse") {
                error.suggestion = Some(format!("link = {}", quote(&format!("{subject}.reverse"))));
            }
            check.push_error(error);
        }
        let metrics = tree.list("metrics");
        if metrics.is_empty() {
            let message = format!("{path}.metrics is empty");
            check.add_error_at(tree, &path, "metrics", message, "at least one metric");
        }
        let subjects = subjects(tree, key, &path, network, flows, check);
        // A pattern can select flows of several kinds. Each is sampled for the metrics that it has; a metric that none
        // has is an error.
        let has =
            |subject: &ProbeSubject, metric: &Value| metrics_of(subject, network, flows).0.contains(&metric.choice());
        let some_has: Vec<bool> = metrics
            .iter()
            .map(|metric| is_pattern(tree.text(key)) && subjects.iter().any(|subject| has(subject, metric)))
            .collect();
        for subject in subjects {
            let asked = metrics.iter().zip(&some_has).filter(|(metric, some)| !**some || has(&subject, metric));
            let metrics: Vec<&Value> = asked.map(|(metric, _)| metric).collect();
            if metrics.is_empty() {
                continue;
            }
            let Some(views) = views(&subject, tree, &path, &metrics, network, flows, check) else { break };
            for (end, metrics) in views {
                if check.is_full() || !fits((&subject, end), &metrics, &path, network, flows, &mut watched, check) {
                    continue 'probes;
                }
                samples += metrics.len() as u128 * u128::from(duration.as_nanos())
                    / u128::from(tree.duration("interval").as_nanos().max(1));
                if samples > MOST_SAMPLES {
                    // Rounded up, so that the number always exceeds the limit.
                    let message = format!(
                        "with {path} (interval = {}), the run would write {} million values",
                        tree.duration("interval"),
                        samples.div_ceil(1_000_000)
                    );
                    let expected = format!(
                        "at most {} million: a longer interval, or fewer subjects or metrics",
                        MOST_SAMPLES / 1_000_000
                    );
                    check.add_error_at(tree, &path, "interval", message, &expected);
                    continue 'probes;
                }
                probes.push(Probe {
                    subject,
                    end,
                    metrics: metrics.iter().map(|metric| metric.choice().to_string()).collect(),
                    interval: tree.duration("interval"),
                });
            }
        }
    }
    check.is_empty().then_some(probes)
}

/// Returns the subjects of a probe; empty after an error.
fn subjects(
    tree: &Tree,
    key: &str,
    path: &str,
    network: &Network,
    flows: &FlowGroups,
    check: &mut Diagnostics,
) -> Vec<ProbeSubject> {
    let (text, place) = (tree.text(key), tree.location_of(key));
    let is = |name: &str| if is_pattern(text) { matches(text, name) } else { text == name };
    let (found, names): (Vec<ProbeSubject>, Vec<&str>) = match key {
        "flow" => {
            let mut found = BTreeSet::new();
            for (name, first, end) in &flows.groups {
                let all = is(name);
                found.extend((*first..*end).filter(|flow| all || is(&flows.list[*flow].name)));
            }
            (
                found.into_iter().map(ProbeSubject::Flow).collect(),
                flows.groups.iter().map(|group| group.0.as_str()).collect(),
            )
        }
        "link" => indices(network.links.iter().map(|link| link.name.as_str()), is, ProbeSubject::Link),
        "ethernet" => {
            indices(network.ethernets.iter().map(|segment| segment.name.as_str()), is, ProbeSubject::Ethernet)
        }
        station => {
            let (mut found, mut names) = (Vec::new(), Vec::new());
            let access = network.access.iter().enumerate();
            for (access, settings) in access.filter(|(_, settings)| settings.component().station.key == station) {
                for (station, node) in settings.stations().iter().enumerate() {
                    let name = network.nodes[node.index()].name.as_str();
                    let wanted = MediumDirection::ALL.into_iter().filter(|way| is(&station_name(name, *way)));
                    found.extend(wanted.map(|way| ProbeSubject::Station { access, station, way }));
                    names.push(name);
                }
            }
            (found, names)
        }
    };
    if found.is_empty() {
        let what = match key {
            "ethernet" => "segment",
            "flow" | "link" => key,
            key => {
                network.components.iter().map(|c| c.station).find(|station| station.key == key).map_or(key, |s| s.name)
            }
        };
        let token = check.sources.excerpt(place);
        let message = format!(
            "{} {token}",
            if is_pattern(text) { format!("no {what} matches") } else { format!("unknown {what}") }
        );
        check.add_unknown_name(place, &format!("{path}.{key}"), message, text, names.into_iter());
    }
    found
}

fn indices<'a>(
    names: impl Iterator<Item = &'a str>,
    is: impl Fn(&str) -> bool,
    subject: fn(usize) -> ProbeSubject,
) -> (Vec<ProbeSubject>, Vec<&'a str>) {
    let names: Vec<&str> = names.collect();
    (names.iter().enumerate().filter(|(_, name)| is(name)).map(|(index, _)| subject(index)).collect(), names)
}

/// Returns the metrics of a subject that a probe samples, in the order of the file. For a flow there is one list for
/// each sampled end; other subjects have no ends. `None` after an error.
fn views<'a>(
    subject: &ProbeSubject,
    tree: &Tree,
    path: &str,
    metrics: &[&'a Value],
    network: &Network,
    flows: &FlowGroups,
    check: &mut Diagnostics,
) -> Option<Vec<(usize, Vec<&'a Value>)>> {
    let &ProbeSubject::Flow(index) = subject else { return Some(vec![(0, metrics.to_vec())]) };
    let flow = &flows.list[index];
    let direction = tree.optional_choice_value(DIRECTION_KEY, &DIRECTION);
    let end = match tree.get(END_KEY) {
        None => None,
        Some(value) => Some(given_end(value, flow, &format!("{path}.{END_KEY}"), network, check)?),
    };
    let only = |end: usize| [end == 0, end == 1];
    let main = || main_senders(&flows.list, index);
    // Each of the two keys implies the other.
    let senders = direction.or(end).map_or_else(main, only);
    let ends = match flow.transport {
        // For a tunnel the default is the client. With `end`, the proxy can be selected, which has its own metrics.
        Transport::Masque(_) => only(end.unwrap_or(0)),
        _ => end.or(direction).map_or_else(main, only),
    };
    let is_of = |metric: &Value, end: usize| {
        let name = metric.choice();
        if ProbeMetric::find(&metrics::FLOW, name).is_some() {
            senders[end]
        } else if ProbeMetric::find(&PROXY, name).is_some() {
            // The proxy's metrics are those of the complete tunnel.
            end == 0
        } else {
            ends[end]
        }
    };
    let of_end =
        (0..2).map(|end| (end, metrics.iter().copied().filter(|metric| is_of(metric, end)).collect::<Vec<_>>()));
    Some(of_end.filter(|(_, metrics)| !metrics.is_empty()).collect())
}

/// Returns the end of a flow that a value selects; `None` after an error.
pub(super) fn given_end(
    value: &Value,
    flow: &Flow,
    path: &str,
    network: &Network,
    check: &mut Diagnostics,
) -> Option<usize> {
    let end = end_of(value.text(), flow, network);
    if end.is_none() {
        let hosts = [flow.from, flow.to].map(|node| network.nodes[node.index()].name.as_str());
        let message = format!("unknown end {:?} of flow {}", value.text(), flow.name);
        let names = [ENDS, hosts].concat();
        check.add_unknown_name(value.place, path, message, value.text(), names.into_iter());
    }
    end
}

/// Returns whether a metric of flows or links has a value at any time, and is not a mean over an interval.
pub(super) fn has_value_at_any_time(name: &str) -> bool {
    fn is_value<R>(metrics: &'static [ProbeMetric<R>], name: &str) -> Option<bool> {
        ProbeMetric::find(metrics, name).map(|metric| matches!(metric.reading, MetricReader::Value(_)))
    }
    let declared = is_value(&ENDPOINT, name).or_else(|| is_value(&PROXY, name));
    let declared = declared.or_else(|| is_value(&metrics::FLOW, name)).or_else(|| is_value(&metrics::LINK, name));
    declared.unwrap_or_else(|| of_controls().iter().any(|metric| metric.name == name))
}

/// Returns the end of a flow that a text selects: a host by its name, or the role of an end.
fn end_of(text: &str, flow: &Flow, network: &Network) -> Option<usize> {
    let hosts = [flow.from, flow.to].map(|node| network.nodes[node.index()].name.as_str());
    hosts.iter().position(|host| *host == text).or_else(|| ENDS.iter().position(|end| *end == text))
}

/// Returns the metrics of a subject, the kind of the subject, and a number for that kind.
pub(super) fn metrics_of(
    subject: &ProbeSubject,
    network: &Network,
    flows: &FlowGroups,
) -> (Vec<&'static str>, &'static str, (u8, usize)) {
    let endpoint = || ProbeMetric::declarations(&ENDPOINT);
    let (flow, controls) = (ProbeMetric::declarations(&metrics::FLOW), of_controls);
    let (metrics, what, number): (Vec<_>, _, _) = match subject {
        ProbeSubject::Flow(index) => {
            let (metrics, what) = match flows.list[*index].transport {
                Transport::Tcp(_) => (endpoint().chain(flow).chain(controls()).collect(), "a TCP flow"),
                Transport::Quic(_) => (endpoint().chain(flow).chain(controls()).collect(), "a QUIC flow"),
                Transport::Masque(_) => {
                    (endpoint().chain(ProbeMetric::declarations(&PROXY)).chain(flow).collect(), "a tunnel")
                }
                Transport::Udp => (flow.collect(), "a UDP flow"),
            };
            (metrics, what, (0, *index))
        }
        ProbeSubject::Link(link) => (ProbeMetric::declarations(&metrics::LINK).collect(), "a link", (1, *link)),
        ProbeSubject::Ethernet(segment) => {
            (ProbeMetric::declarations(&metrics::SEGMENT).collect(), "an Ethernet segment", (2, *segment))
        }
        ProbeSubject::Station { access, station, way } => {
            let component = network.access[*access].component();
            ((component.metrics)(), component.station.name, (3 + *way as u8, access << 32 | station))
        }
    };
    (metrics.into_iter().map(|metric| metric.name).collect(), what, number)
}

/// Checks that each metric exists for the subject and is sampled only once.
fn fits(
    (subject, end): (&ProbeSubject, usize),
    metrics: &[&Value],
    path: &str,
    network: &Network,
    flows: &FlowGroups,
    watched: &mut BTreeSet<(u8, usize, usize, &'static str)>,
    check: &mut Diagnostics,
) -> bool {
    let (valid, what, key) = metrics_of(subject, network, flows);
    let mut good = true;
    for (index, metric) in metrics.iter().enumerate() {
        let name = metric.choice();
        let path = format!("{path}.metrics.{index}");
        if !valid.contains(&name) {
            let message = format!("{name} is not a metric of {what}");
            let expected = valid.iter().map(|name| format!("\"{name}\"")).collect();
            check.add_error(metric.place, &path, message, expected);
            good = false;
        } else if !watched.insert((key.0, key.1, end, name)) {
            let message = format!("{name} of {} is sampled twice", of(subject, end, flows));
            check.add_error(metric.place, &path, message, vec!["each metric once for each subject".into()]);
            good = false;
        }
    }
    good
}

fn of(subject: &ProbeSubject, end: usize, flows: &FlowGroups) -> String {
    match subject {
        ProbeSubject::Flow(flow) => format!("flow {}", direction_name(&flows.list[*flow].name, end)),
        ProbeSubject::Link(_) => "the same link".to_string(),
        ProbeSubject::Ethernet(_) => "the same segment".to_string(),
        ProbeSubject::Station { .. } => "the same station".to_string(),
    }
}
