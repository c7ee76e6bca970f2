//! Probes: their keys, and how one `[[probe]]` becomes one probe for each thing that it watches.

use super::access::with_keys;
use super::network::Network;
use super::traffic::Flows;
use super::{COMPARED, Check, some_of};
use crate::description::{Probe, Subject, Transport, station_name};
use crate::schema::{Choice, Field, Kind, Table, Tree, Value, nearest};
use crate::schema::{is_pattern, matches};
use fullpipe_network::Way;
use fullpipe_network::access::{AccessNetworkComponent, StationDeclaration};
use fullpipe_units::Duration;
use std::collections::BTreeSet;

/// Most values that all probes of a run may write.
const MOST_SAMPLES: u128 = 100_000_000;

/// Metrics that a TCP or QUIC flow has.
pub const METRICS_OF_TCP_FLOWS: &[&str] = &[
    "cwnd_bytes",
    "ssthresh_bytes",
    "inflight_bytes",
    "srtt_s",
    "pacing_bps",
    "delivery_bps",
    "throughput_bps",
    "drops",
    "marks",
    "control_state",
    "control_bw_bps",
    "control_min_rtt_s",
    "control_pacing_gain",
    "control_cwnd_gain",
    "control_alpha",
];
/// Metrics that a UDP flow has.
pub const METRICS_OF_UDP_FLOWS: &[&str] = &["throughput_bps", "drops", "marks"];
/// Metrics that a tunnel has.
pub const METRICS_OF_TUNNELS: &[&str] = &[
    "cwnd_bytes",
    "ssthresh_bytes",
    "inflight_bytes",
    "srtt_s",
    "pacing_bps",
    "delivery_bps",
    "proxy_cwnd_bytes",
    "proxy_ssthresh_bytes",
    "proxy_inflight_bytes",
    "proxy_pacing_bps",
    "proxy_delivery_bps",
    "proxy_queue_bytes",
    "throughput_bps",
    "drops",
    "marks",
];
/// Metrics that a direction of a link has.
pub const METRICS_OF_LINKS: &[&str] = &["queue_bytes", "queue_delay_s", "throughput_bps", "drops", "marks"];
/// Metrics that a shared segment has.
pub const METRICS_OF_ETHERNETS: &[&str] = &["throughput_bps", "drops"];

/// Metrics that are not those of an access network alone.
const METRICS: &[Choice] = &[
    Choice::new("cwnd_bytes", "congestion window (TCP and QUIC flows; tunnels: the client's)."),
    Choice::new("ssthresh_bytes", "slow-start threshold (TCP and QUIC flows; tunnels: the client's)."),
    Choice::new("inflight_bytes", "bytes in flight (TCP and QUIC flows; tunnels: from the client)."),
    Choice::new("srtt_s", "smoothed round-trip time (TCP and QUIC flows; tunnels: the client's, to the proxy)."),
    Choice::new("proxy_cwnd_bytes", "the proxy's congestion window (tunnels)."),
    Choice::new("proxy_ssthresh_bytes", "the proxy's slow-start threshold (tunnels)."),
    Choice::new("proxy_inflight_bytes", "bytes in flight from the proxy (tunnels)."),
    Choice::new("proxy_pacing_bps", "the proxy's pacing rate (tunnels)."),
    Choice::new("proxy_delivery_bps", "the proxy's newest delivery-rate sample (tunnels)."),
    Choice::new("proxy_queue_bytes", "payload that waits at the proxy ahead of its QUIC stack (tunnels)."),
    Choice::new("pacing_bps", "pacing rate (TCP and QUIC flows; tunnels: the client's)."),
    Choice::new("delivery_bps", "newest delivery-rate sample (TCP and QUIC flows; tunnels: the client's)."),
    Choice::new("queue_bytes", "bytes in the queue (links), in the RLC buffers (UEs)."),
    Choice::new(
        "queue_delay_s",
        "how long a packet that comes now would wait if the rate stayed as it is (links); at a trace's mean rate; nothing during an outage.",
    ),
    Choice::new("throughput_bps", "bits per second since the last sample (flows, links, segments, UEs)."),
    Choice::new("drops", "packets lost, frames dropped since the start (flows, links, segments, UEs)."),
    Choice::new("marks", "packets marked by ECN since the start: received (flows), sent (links)."),
    Choice::new("control_state", "the congestion control's state, numbered as its documentation says (BBR)."),
    Choice::new("control_bw_bps", "its estimate of the bottleneck's rate (BBR)."),
    Choice::new("control_min_rtt_s", "its estimate of the path's round-trip time (BBR, Vegas)."),
    Choice::new("control_pacing_gain", "its pacing gain (BBR)."),
    Choice::new("control_cwnd_gain", "its window gain (BBR)."),
    Choice::new("control_alpha", "its estimate of the marked part (DCTCP)."),
    Choice::later("rsrp_dbm"),
];

/// What holds where a key that says what a probe watches is not given.
const ONE_SUBJECT: &str = "another of these keys is given";

/// Keys of a probe that say what it watches, save those of stations of access networks.
const SUBJECTS: [&str; 3] = ["flow", "link", "ethernet"];

static PROBE: Table = Table {
    name: "probe",
    text: "What to sample. It watches flows, links, segments or stations of an access network: one of the keys up to `metrics` is \
           given. A pattern watches all that it matches. Observing changes nothing of the run.",
    fields: &[
        &[
            Field::optional(
                "flow",
                Kind::Text,
                ONE_SUBJECT,
                "Flows, by name or pattern; the name of a `[[flow]]` means all that it stands for. Where a pattern means flows of \
             several kinds, each is asked for what it has.",
            ),
            Field::optional(
                "link",
                Kind::Text,
                ONE_SUBJECT,
                "Directions of links: `bottleneck`, `bottleneck.reverse`, `access-*`.",
            ),
            Field::optional("ethernet", Kind::Text, ONE_SUBJECT, "Shared segments."),
        ],
        &[Field::default(
            "interval",
            Kind::Duration { min: Duration::from_micros(1), max: crate::schema::LONGEST },
            "10ms",
            "From one sample to the next.",
        )],
    ],
    ..Table::EMPTY
};

/// The table of a probe, with the keys and metrics of access networks. It stays in memory until the program ends.
pub(super) fn table(components: &[&'static AccessNetworkComponent]) -> Table {
    let (mut keys, mut metrics) = (Vec::new(), METRICS.to_vec());
    for component in components {
        let StationDeclaration { key, name } = component.station;
        if keys.iter().all(|field: &Field| field.key != key) {
            let text = format!(
                "Ways to or from {name}s, by the names of their hosts: `phone` is its downlink, `phone.uplink` its uplink."
            );
            keys.push(Field::optional(key, Kind::Text, ONE_SUBJECT, text.leak()));
        }
        for metric in component.metrics {
            if metrics.iter().all(|known| known.name != metric.name) {
                metrics.push(Choice::new(metric.name, format!("{} ({name}s).", metric.text).leak()));
            }
        }
    }
    let kind = Box::leak(Box::new(Kind::Choice(metrics.leak())));
    keys.push(Field::required("metrics", Kind::List(kind), "What to sample."));
    with_keys(&PROBE, keys)
}

/// Builds the probes, one for each thing that one watches. `None` on an error.
pub(crate) fn probes(
    root: &Tree,
    network: &Network,
    flows: &Flows,
    duration: Duration,
    check: &mut Check,
) -> Option<Vec<Probe>> {
    let mut probes = Vec::new();
    let mut samples: u128 = 0;
    let mut watched = BTreeSet::new();
    for (index, tree) in root.get("probe").map(Value::tables).unwrap_or_default().iter().enumerate() {
        if check.full() {
            break;
        }
        let path = format!("probe.{index}");
        let stations = network.components.iter().map(|component| component.station.key);
        let mut keys: Vec<&str> = SUBJECTS.into_iter().chain(stations).collect();
        keys.dedup();
        let given: Vec<&str> = keys.iter().copied().filter(|key| tree.get(key).is_some()).collect();
        let [key] = given[..] else {
            let place = given.get(1).map_or(tree.place, |key| tree.place_of(key));
            let message =
                format!("{path} watches {}", if given.is_empty() { "nothing" } else { "two kinds of things" });
            check.error(place, &path, message, vec![format!("one of {}", keys.join(", "))]);
            continue;
        };
        let metrics = tree.list("metrics");
        if metrics.is_empty() {
            let message = format!("{path} samples nothing");
            check.error(
                tree.place_of("metrics"),
                &format!("{path}.metrics"),
                message,
                vec!["at least one metric".into()],
            );
        }
        let subjects = subjects(tree, key, &path, network, flows, check);
        // A pattern may mean flows of several kinds: each is asked for what it has, all for what none has.
        let has = |subject: &Subject, metric: &Value| metrics_of(subject, network, flows).0.contains(&metric.choice());
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
            if check.full() || !fits(&subject, &metrics, &path, network, flows, &mut watched, check) {
                break;
            }
            samples += metrics.len() as u128 * u128::from(duration.as_nanos())
                / u128::from(tree.duration("interval").as_nanos().max(1));
            if samples > MOST_SAMPLES {
                let message = format!("with {path} the run would write more than {MOST_SAMPLES} values");
                let expected = vec!["fewer subjects or a longer interval".into()];
                check.error(tree.place_of("interval"), &format!("{path}.interval"), message, expected);
                break;
            }
            probes.push(Probe {
                subject,
                metrics: metrics.iter().map(|metric| metric.choice().to_string()).collect(),
                interval: tree.duration("interval"),
            });
        }
    }
    check.is_empty().then_some(probes)
}

/// What a probe watches; nothing if there is an error.
fn subjects(tree: &Tree, key: &str, path: &str, network: &Network, flows: &Flows, check: &mut Check) -> Vec<Subject> {
    let (text, place) = (tree.text(key), tree.place_of(key));
    let is = |name: &str| if is_pattern(text) { matches(text, name) } else { text == name };
    let (found, names): (Vec<Subject>, Vec<&str>) = match key {
        "flow" => {
            let mut found = BTreeSet::new();
            for (name, first, end) in &flows.groups {
                let all = is(name);
                found.extend((*first..*end).filter(|flow| all || is(&flows.list[*flow].name)));
            }
            (
                found.into_iter().map(Subject::Flow).collect(),
                flows.groups.iter().map(|group| group.0.as_str()).collect(),
            )
        }
        "link" => indices(network.links.iter().map(|link| link.name.as_str()), is, Subject::Link),
        "ethernet" => indices(network.ethernets.iter().map(|segment| segment.name.as_str()), is, Subject::Ethernet),
        station => {
            let (mut found, mut names) = (Vec::new(), Vec::new());
            let access = network.access.iter().enumerate();
            for (access, settings) in access.filter(|(_, settings)| settings.component().station.key == station) {
                for (station, node) in settings.stations().iter().enumerate() {
                    let name = network.nodes[node.index()].name.as_str();
                    let wanted = Way::ALL.into_iter().filter(|way| is(&station_name(name, *way)));
                    found.extend(wanted.map(|way| Subject::Station { access, station, way }));
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
        let token = check.sources.found(place);
        let message = format!("no {what} of this scenario is {token}");
        let mut error = check.sources.error(place, &format!("{path}.{key}"), message, some_of(names.iter().copied()));
        error.suggestion = nearest(text, names.into_iter().take(COMPARED)).map(|name| format!("\"{name}\""));
        check.push(error);
    }
    found
}

fn indices<'a>(
    names: impl Iterator<Item = &'a str>,
    is: impl Fn(&str) -> bool,
    subject: fn(usize) -> Subject,
) -> (Vec<Subject>, Vec<&'a str>) {
    let names: Vec<&str> = names.collect();
    (names.iter().enumerate().filter(|(_, name)| is(name)).map(|(index, _)| subject(index)).collect(), names)
}

/// The metrics that a subject has, what it is, and a number for it.
fn metrics_of(subject: &Subject, network: &Network, flows: &Flows) -> (Vec<&'static str>, &'static str, (u8, usize)) {
    let (metrics, what, number) = match subject {
        Subject::Flow(flow) => match flows.list[*flow].transport {
            Transport::Tcp(_) => (METRICS_OF_TCP_FLOWS, "a TCP flow", (0, *flow)),
            Transport::Quic(_) => (METRICS_OF_TCP_FLOWS, "a QUIC flow", (0, *flow)),
            Transport::Masque(_) => (METRICS_OF_TUNNELS, "a tunnel", (0, *flow)),
            Transport::Udp => (METRICS_OF_UDP_FLOWS, "a UDP flow", (0, *flow)),
        },
        Subject::Link(link) => (METRICS_OF_LINKS, "a link", (1, *link)),
        Subject::Ethernet(segment) => (METRICS_OF_ETHERNETS, "an Ethernet segment", (2, *segment)),
        Subject::Station { access, station, way } => {
            let component = network.access[*access].component();
            let metrics = component.metrics.iter().map(|metric| metric.name).collect();
            return (metrics, component.station.name, (3 + *way as u8, access << 32 | station));
        }
    };
    (metrics.to_vec(), what, number)
}

/// Whether each metric exists for the subject and is sampled only once.
fn fits(
    subject: &Subject,
    metrics: &[&Value],
    path: &str,
    network: &Network,
    flows: &Flows,
    watched: &mut BTreeSet<(u8, usize, &'static str)>,
    check: &mut Check,
) -> bool {
    let (valid, what, key) = metrics_of(subject, network, flows);
    let mut good = true;
    for (index, metric) in metrics.iter().enumerate() {
        let name = metric.choice();
        let path = format!("{path}.metrics.{index}");
        if !valid.contains(&name) {
            let message = format!("{name} is not a metric of {what}");
            let expected = valid.iter().map(|name| format!("\"{name}\"")).collect();
            check.error(metric.place, &path, message, expected);
            good = false;
        } else if !watched.insert((key.0, key.1, name)) {
            let message = format!("{name} of {} is sampled twice", of(subject, flows));
            check.error(metric.place, &path, message, vec!["each metric of a subject once".into()]);
            good = false;
        }
    }
    good
}

fn of(subject: &Subject, flows: &Flows) -> String {
    match subject {
        Subject::Flow(flow) => format!("flow {}", flows.list[*flow].name),
        Subject::Link(_) => "the same link".to_string(),
        Subject::Ethernet(_) => "the same segment".to_string(),
        Subject::Station { .. } => "the same station".to_string(),
    }
}
