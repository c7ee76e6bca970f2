//! The events of a scenario: reads and checks the tables `[[event]]`.

use super::Diagnostics;
use super::network::Network;
use super::probes::{self, metrics_of};
use super::traffic::FlowGroups;
use crate::description::{
    Event, EventChange, EventCondition, EventDelay, EventTest, Flow, ProbeSubject, Transport, WriteRate,
};
use crate::schema::quantity::parse_duration;
use crate::schema::{Tree, Value, ValueData};
use fullpipe_congestion::controls::CONTROLS;
use fullpipe_network::LinkProfile;
use fullpipe_network::impairment::LossSchedule;
use fullpipe_units::Rate;

/// The unit of a delay in round-trip times.
const ROUND_TRIPS: &str = "rtt";
/// Largest delay in round-trip times.
const MAX_ROUND_TRIPS: f64 = 1e6;
/// Most events of a scenario: each change needs another pass.
const MAX_EVENTS: usize = 100;

/// Returns the events of a file, in its order.
pub(super) fn events(root: &Tree, network: &Network, flows: &FlowGroups, check: &mut Diagnostics) -> Vec<Event> {
    let trees = root.get("event").map(Value::tables).unwrap_or_default();
    let mut events: Vec<Event> = Vec::new();
    let names: Vec<&str> = trees.iter().map(|tree| tree.text("name")).collect();
    if trees.len() > MAX_EVENTS {
        let message = format!("the file has {} events", trees.len());
        check.add_error(trees[MAX_EVENTS].place, "event", message, vec![format!("at most {MAX_EVENTS}")]);
        return events;
    }
    for (index, tree) in trees.iter().enumerate() {
        let path = format!("event.{index}");
        if names[..index].contains(&names[index]) {
            let message = format!("two events have the name {:?}", names[index]);
            check.add_error_at(tree, &path, "name", message, "a unique name");
        }
        let follows = tree.get("follows").and_then(|value| {
            let found = names.iter().position(|name| *name == value.text());
            if found.is_none_or(|found| found >= index) {
                let (name, path) = (value.text(), format!("{path}.follows"));
                if found.is_some() || index == 0 {
                    let (own, earlier) = (names[index], "an event earlier in the file".to_owned());
                    let (message, expected) = match found {
                        Some(found) if found == index => (format!("event {own:?} follows itself"), earlier),
                        Some(_) => (
                            format!("event {own:?} follows {name:?}, which is later in the file"),
                            format!("{name:?} before {own:?}"),
                        ),
                        None => (format!("unknown event {name:?}"), earlier),
                    };
                    check.add_error(value.place, &path, message, vec![expected]);
                } else {
                    let (message, earlier) = (format!("unknown event {name:?}"), names[..index].iter().copied());
                    check.add_unknown_name(value.place, &path, message, name, earlier);
                }
            }
            found
        });
        let when = tree.get("when").map(Value::table);
        let subject = when.and_then(|when| subject(when, &format!("{path}.when"), network, flows, check));
        let condition = when
            .zip(subject)
            .and_then(|(when, subject)| condition(when, &format!("{path}.when"), subject, network, flows, check));
        let mut records = Vec::new();
        for (number, metric) in tree.list("record").iter().enumerate() {
            let path = format!("{path}.record.{number}");
            match subject {
                Some((subject, _)) if is_metric(metric, &path, subject, network, flows, check) => {
                    records.push(metric.text().to_owned());
                }
                None if when.is_none() => {
                    let expected = vec!["when = { flow = \"NAME\" } or when = { link = \"NAME\" }".to_owned()];
                    let message = format!(
                        "{path} = \"{}\" is a metric of a flow or link, but the event has neither",
                        metric.text()
                    );
                    check.add_error(metric.place, &path, message, expected);
                }
                _ => {}
            }
        }
        let has_flow = matches!(subject, Some((ProbeSubject::Flow(_), _)));
        events.push(Event {
            name: names[index].to_owned(),
            subject,
            condition,
            from: tree.duration("from"),
            follows,
            delay: delay(tree, &path, has_flow, check).unwrap_or(EventDelay::Fixed(fullpipe_units::Duration::ZERO)),
            change: tree.get("set").and_then(|set| change(set.table(), &format!("{path}.set"), network, flows, check)),
            records,
        });
    }
    events
}

/// Reads the time from the condition to the event.
fn delay(tree: &Tree, path: &str, has_flow: bool, check: &mut Diagnostics) -> Option<EventDelay> {
    let text = tree.text("after");
    let round_trips = text.strip_suffix(ROUND_TRIPS).and_then(|number| number.trim_end().parse::<f64>().ok());
    if let Some(number) = round_trips {
        if !(0.0..=MAX_ROUND_TRIPS).contains(&number) {
            let message = format!("{path}.after = \"{text}\" is out of range");
            check.add_error_at(tree, path, "after", message, "0rtt to 1000000rtt");
            return None;
        }
        if !has_flow {
            let message = format!("{path}.after = \"{text}\" requires a flow with a round-trip time");
            check.add_error_at(tree, path, "after", message, "a duration, or when = { flow = \"NAME\", ... }");
            return None;
        }
        return Some(EventDelay::RoundTrips(number));
    }
    match parse_duration(text) {
        Ok(time) => Some(EventDelay::Fixed(time)),
        Err(malformed) => {
            let reason = malformed.reason.as_deref().unwrap_or("it is not a time");
            let message = format!("{path}.after = \"{text}\" {}", reason.strip_prefix("it ").unwrap_or(reason));
            let expected = "a duration such as \"10ms\", or round-trip times such as \"1rtt\"".to_owned();
            let place = tree.location_of("after");
            let mut error = check.sources.error(place, &format!("{path}.after"), message, vec![expected]);
            error.suggestion = malformed.suggestion;
            check.push_error(error);
            None
        }
    }
}

/// Returns the flow with a name; `None` after an error.
fn flow_of(value: &Value, path: &str, flows: &FlowGroups, check: &mut Diagnostics) -> Option<usize> {
    let name = value.text();
    let found = flows.list.iter().position(|flow| flow.name == name);
    if found.is_none() {
        let names = flows.list.iter().map(|flow| flow.name.as_str());
        check.add_unknown_name(value.place, path, format!("unknown flow {name:?}"), name, names);
    }
    found
}

/// Returns the link direction with a name; `None` after an error.
fn link_of(value: &Value, path: &str, network: &Network, check: &mut Diagnostics) -> Option<usize> {
    let name = value.text();
    let found = network.links.iter().position(|link| link.name == name);
    if found.is_none() {
        let names = network.links.iter().map(|link| link.name.as_str());
        check.add_unknown_name(value.place, path, format!("unknown link {name:?}"), name, names);
    }
    found
}

/// Adds an error unless exactly one of `flow` and `link` is given. Returns the given one.
fn one_of<'a>(tree: &'a Tree, path: &str, check: &mut Diagnostics) -> Option<(&'static str, &'a Value)> {
    match (tree.get("flow"), tree.get("link")) {
        (Some(flow), None) => Some(("flow", flow)),
        (None, Some(link)) => Some(("link", link)),
        (found, _) => {
            let message = format!(
                "{path} has {} flow {} link",
                ["neither", "both"][usize::from(found.is_some())],
                ["nor", "and"][usize::from(found.is_some())]
            );
            check.add_error(tree.place, path, message, vec!["exactly one of flow and link".to_owned()]);
            None
        }
    }
}

/// Returns the subject of a condition, and the end of a flow.
fn subject(
    when: &Tree,
    path: &str,
    network: &Network,
    flows: &FlowGroups,
    check: &mut Diagnostics,
) -> Option<(ProbeSubject, usize)> {
    let (key, value) = one_of(when, path, check)?;
    let place = format!("{path}.{key}");
    if key == "link" {
        let link = link_of(value, &place, network, check)?;
        if when.get("end").is_some() {
            check.add_error_at(when, path, "end", format!("{path}.end applies to flows"), "no end with a link");
            return None;
        }
        return Some((ProbeSubject::Link(link), 0));
    }
    let flow = flow_of(value, &place, flows, check)?;
    let end = match when.get("end") {
        Some(end) => probes::given_end(end, &flows.list[flow], &format!("{path}.end"), network, check)?,
        None => usize::from(!crate::description::main_senders(&flows.list, flow)[0]),
    };
    Some((ProbeSubject::Flow(flow), end))
}

/// Returns whether the subject has a metric, and the metric has a value at any time.
fn is_metric(
    metric: &Value,
    path: &str,
    subject: ProbeSubject,
    network: &Network,
    flows: &FlowGroups,
    check: &mut Diagnostics,
) -> bool {
    let (all, what, _) = metrics_of(&subject, network, flows);
    let valid: Vec<&str> = all.iter().copied().filter(|name| probes::has_value_at_any_time(name)).collect();
    let name = metric.text();
    if valid.contains(&name) {
        return true;
    }
    let message = match all.contains(&name) {
        true => format!("{name} is a mean over an interval and has no value at one time"),
        false => format!("{name} is not a metric of {what}"),
    };
    check.add_unknown_name(metric.place, path, message, name, valid.into_iter());
    false
}

fn condition(
    when: &Tree,
    path: &str,
    (subject, _): (ProbeSubject, usize),
    network: &Network,
    flows: &FlowGroups,
    check: &mut Diagnostics,
) -> Option<EventCondition> {
    let given: Vec<&str> = ["is", "above", "below"].into_iter().filter(|key| when.get(key).is_some()).collect();
    let Some(metric) = when.get("metric") else {
        if let Some(key) = given.first() {
            check.add_error_at(when, path, key, format!("{path} has {key}, but no metric"), "a metric");
        }
        return None;
    };
    if !is_metric(metric, &format!("{path}.metric"), subject, network, flows, check) {
        return None;
    }
    let [key] = given[..] else {
        let message = if given.is_empty() {
            format!("{path} has a metric, but no value for it")
        } else {
            format!("{path} has {}", given.join(" and "))
        };
        check.add_error_at(when, path, "metric", message, "exactly one of is, above and below");
        return None;
    };
    let value = when.get(key)?;
    let number = match (&value.data, subject) {
        (ValueData::Text(state), ProbeSubject::Flow(flow)) if metric.text() == "control_state" => {
            state_number(value, state, &flows.list[flow], path, check)?
        }
        (ValueData::Text(_), _) => {
            let message = format!("{path}.is is a string, but the metric is a number");
            check.add_error_at(when, path, key, message, "a number");
            return None;
        }
        _ => value.number(),
    };
    let test = match key {
        "is" => EventTest::Is(number),
        "above" => EventTest::Above(number),
        _ => EventTest::Below(number),
    };
    Some(EventCondition { metric: metric.text().to_owned(), test, entry: when.boolean("entry") })
}

/// Returns the number of a state of a flow's congestion control.
fn state_number(value: &Value, state: &str, flow: &Flow, path: &str, check: &mut Diagnostics) -> Option<f64> {
    let control = match &flow.transport {
        Transport::Tcp(settings) => settings.congestion.as_str(),
        Transport::Quic(settings) => settings.congestion.as_str(),
        Transport::Masque(_) | Transport::Udp => "",
    };
    let states = CONTROLS.iter().find(|known| known.declaration.name == control).map_or(&[][..], |known| known.states);
    let found = states.iter().position(|known| *known == state);
    if found.is_none() {
        let message = match states {
            [] => format!("the congestion control of flow {} has no named states", flow.name),
            _ => format!("unknown state {state:?} of {control}"),
        };
        check.add_unknown_name(value.place, &format!("{path}.is"), message, state, states.iter().copied());
    }
    found.map(|number| number as f64)
}

fn change(
    set: &Tree,
    path: &str,
    network: &Network,
    flows: &FlowGroups,
    check: &mut Diagnostics,
) -> Option<EventChange> {
    const OF_LINKS: [&str; 4] = ["rate", "outage", "delay", "loss"];
    const OF_FLOWS: [&str; 4] = ["write_rate", "pause", "unlimited", "for"];
    const CHANGES_OF_LINKS: &str = "at least one of rate, outage, delay, loss";
    const CHANGES_OF_FLOWS: &str = "exactly one of write_rate, pause and unlimited";
    let (key, value) = one_of(set, path, check)?;
    let others = if key == "link" { OF_FLOWS } else { OF_LINKS };
    // A resolved file has the defaults of all keys.
    let is_set = |key: &str| set.get(key).is_some_and(|value| !matches!(value.data, ValueData::Boolean(false)));
    if let Some(other) = others.into_iter().find(|other| is_set(other)) {
        let message = format!("{path}.{other} does not apply to a {key}");
        // `for` alone is no change.
        let (expected, near) = match (key, other) {
            ("link", "write_rate") => (CHANGES_OF_LINKS, Some("rate")),
            ("link", _) => (CHANGES_OF_LINKS, None),
            (_, "rate") => (CHANGES_OF_FLOWS, Some("write_rate")),
            _ => (CHANGES_OF_FLOWS, None),
        };
        let at = format!("{path}.{other}");
        let mut error = check.sources.error(set.location_of(other), &at, message, vec![expected.to_owned()]);
        error.suggestion = near.map(str::to_owned);
        check.push_error(error);
        return None;
    }
    if key == "link" {
        let link = link_of(value, &format!("{path}.link"), network, check)?;
        let described = &network.links[link];
        let varies = match &described.course {
            LinkProfile::Constant => None,
            LinkProfile::Steps(schedule) => schedule.period().map(|_| "schedule_repeat"),
            LinkProfile::Trace(_) => Some("trace"),
        };
        if let Some(varies) = varies.filter(|_| OF_LINKS[..3].iter().any(|key| is_set(key))) {
            let message = format!("the rate and delay of link {} cannot be set: it has {varies}", described.name);
            check.add_error(value.place, &format!("{path}.link"), message, vec![format!("a link without {varies}")]);
            return None;
        }
        if is_set("loss") && described.impairments.settings_of::<LossSchedule>().any(|losses| losses.repeat.is_some()) {
            let repeats = "loss_schedule_repeat";
            let message = format!("the loss of link {} cannot be set: it has {repeats}", described.name);
            check.add_error(value.place, &format!("{path}.link"), message, vec![format!("a link without {repeats}")]);
            return None;
        }
        let outage = set.boolean("outage");
        if outage && set.get("rate").is_some() {
            check.add_error_at(set, path, "rate", format!("{path} has both rate and outage"), "only one of them");
            return None;
        }
        let rate = if outage { Some(Rate::from_bits_per_second(0)) } else { set.get("rate").map(Value::rate) };
        let (delay, loss) = (set.get("delay").map(Value::duration), set.get("loss").map(Value::number));
        if rate.is_none() && delay.is_none() && loss.is_none() {
            check.add_error(set.place, path, format!("{path} changes nothing"), vec![CHANGES_OF_LINKS.to_owned()]);
            return None;
        }
        return Some(EventChange::Link { link, rate, delay, loss });
    }
    let flow = flow_of(value, &format!("{path}.flow"), flows, check)?;
    let described = &flows.list[flow];
    if described.workload.write_limits().is_none() {
        let message =
            format!("the rate of flow {} cannot be set: its workload is {}", described.name, described.workload.name());
        check.add_error(
            value.place,
            &format!("{path}.flow"),
            message,
            vec!["a flow with workload = \"bulk\"".to_owned()],
        );
        return None;
    }
    let rates = [
        set.get("write_rate").map(|rate| WriteRate::Limited(rate.rate())),
        set.boolean("pause").then_some(WriteRate::Paused),
        set.boolean("unlimited").then_some(WriteRate::Unlimited),
    ];
    let given: Vec<WriteRate> = rates.into_iter().flatten().collect();
    let [rate] = given[..] else {
        let message = if given.is_empty() {
            format!("{path} has no change of flow {}", described.name)
        } else {
            format!("{path} has several changes of flow {}", described.name)
        };
        check.add_error(set.place, path, message, vec![CHANGES_OF_FLOWS.to_owned()]);
        return None;
    };
    Some(EventChange::Writes { flow, rate, duration: set.get("for").map(Value::duration) })
}
