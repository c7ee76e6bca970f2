//! `halves.csv`: the traffic of flows and measured links in each half of the measured interval, which shows whether a
//! value is stationary.

use crate::outcome::{Outcome, direction_name};
use fullpipe_archive::HalfRow;
use fullpipe_record::{FlowCounters, LinkSummary};
use fullpipe_units::{FlowId, Instant};
use std::collections::BTreeSet;

/// Returns a count divided by another, or by seconds; `None` if the divisor is zero.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Start and end of a half.
#[derive(Clone, Copy)]
struct Half {
    number: u64,
    from: Instant,
    to: Instant,
}

impl Half {
    fn bps(&self, bytes: u64) -> Option<f64> {
        ratio(bytes as f64 * 8.0, self.to.saturating_since(self.from).as_secs_f64())
    }

    fn row(&self, subject: &str, kind: &str) -> HalfRow {
        let (subject, kind) = (subject.to_owned(), kind.to_owned());
        HalfRow { subject, kind, half: self.number, from_s: self.from, to_s: self.to, ..HalfRow::default() }
    }

    fn of_flow(&self, name: &str, received: Option<u64>, before: &FlowCounters, after: &FlowCounters) -> HalfRow {
        let packets = (after.rx_packets - before.rx_packets) as f64;
        HalfRow {
            goodput_bps: received.and_then(|bytes| self.bps(bytes)),
            throughput_bps: self.bps(after.rx_bytes - before.rx_bytes),
            mean_delay_s: ratio((after.delay_sum - before.delay_sum).as_secs_f64(), packets),
            ..self.row(name, "flow")
        }
    }

    fn of_link(&self, name: &str, before: &LinkSummary, after: &LinkSummary) -> HalfRow {
        let departed = after.departed.packets.saturating_sub(before.departed.packets);
        let delay_ns = after.delay_sum_ns.saturating_sub(before.delay_sum_ns);
        HalfRow {
            throughput_bps: self.bps(after.departed.bytes.saturating_sub(before.departed.bytes)),
            mean_delay_s: ratio(delay_ns as f64 / 1e9, departed as f64),
            ..self.row(name, "link")
        }
    }
}

/// Returns the rows of `halves.csv`; there are none without a measured interval, or if the run ended early. A flow that
/// starts within the interval or completes before its end has no rows, because its halves differ.
pub(crate) fn rows(outcome: &Outcome) -> Vec<HalfRow> {
    let scenario = outcome.scenario();
    let (from, end) =
        (Instant::ZERO.saturating_add(scenario.measurement.from), Instant::ZERO.saturating_add(scenario.duration));
    let Some(halfway) = outcome.probes.halfway().filter(|_| outcome.end_time() >= end) else { return Vec::new() };
    let halves =
        [Half { number: 1, from, to: halfway.at }, Half { number: 2, from: halfway.at, to: outcome.end_time() }];
    let mut rows = Vec::new();
    let world = &outcome.world;
    let several: BTreeSet<usize> =
        (scenario.flows.len()..world.conversations()).filter_map(|conversation| world.flow_of(conversation)).collect();
    for (flow, described) in scenario.flows.iter().enumerate().filter(|(flow, _)| !several.contains(flow)) {
        let completed = (0..2).any(|end| world.progress(flow, end).completed.is_some());
        if completed || Instant::ZERO.saturating_add(described.start) > from {
            continue;
        }
        for end in 0..2 {
            let direction = FlowId((2 * flow + end) as u32);
            let last = outcome.witness.monitor.flow(direction);
            if last.rx_packets == 0 {
                continue;
            }
            let name = direction_name(&described.name, 1, end);
            let middle = halfway.counters.get(direction.index()).copied().unwrap_or_default();
            let first = outcome.probes.counters_before(direction);
            // The data that a real end had received at a given time is unknown.
            let is_model = !outcome.played.contains_key(&(flow, 1 - end));
            let at = [
                outcome.probes.received_before(flow, 1 - end),
                halfway.received.get(flow).map_or(0, |ends| ends[1 - end]),
                world.progress(flow, 1 - end).received_bytes,
            ];
            let received = |half: usize| (is_model && at[2] > 0).then(|| at[half + 1].saturating_sub(at[half]));
            rows.push(halves[0].of_flow(&name, received(0), &first, &middle));
            rows.push(halves[1].of_flow(&name, received(1), &middle, &last));
        }
    }
    for (measured, middle) in outcome.measured_links().zip(&halfway.links) {
        rows.push(halves[0].of_link(measured.link, &LinkSummary::default(), middle));
        rows.push(halves[1].of_link(measured.link, middle, &measured.summary));
    }
    rows
}
