//! The run archive's tables: `flows.csv`, `series.csv`, `links.csv`, with the columns of the command line's contract.
//!
//! Times are printed as exact decimal seconds, other numbers in the shortest form that reads back the same, so equal
//! runs give equal bytes.

use crate::lte::{BearerRow, UeRow};
use crate::outcome::{MeasuredLink, Outcome};
use fullpipe_units::{Duration, Instant};
use fullpipe_workload::Completion;
use std::io::{self, Write};

/// Columns of `flows.csv`; all but the first [`FLOW_TEXTS`] hold numbers.
pub const FLOW_COLUMNS: [&str; 21] = [
    "flow",
    "source",
    "destination",
    "protocol",
    "congestion",
    "tx_packets",
    "tx_bytes",
    "rx_packets",
    "rx_bytes",
    "lost_packets",
    "delay_sum_s",
    "jitter_sum_s",
    "first_tx_s",
    "last_tx_s",
    "first_rx_s",
    "last_rx_s",
    "goodput_bps",
    "completion_s",
    "retransmitted_packets",
    "marked_packets",
    "measured_goodput_bps",
];

/// How many columns of `flows.csv` hold texts.
pub const FLOW_TEXTS: usize = 5;

/// Columns of `series.csv`.
pub const SERIES_COLUMNS: [&str; 4] = ["time_s", "subject", "metric", "value"];

/// Columns of `links.csv`; all but the first hold numbers.
pub const LINK_COLUMNS: [&str; 21] = [
    "link",
    "from_s",
    "to_s",
    "measured_s",
    "queued_at_from_packets",
    "queued_at_to_packets",
    "arrivals_packets",
    "arrivals_bytes",
    "departed_packets",
    "departed_bytes",
    "dropped_packets",
    "marked_packets",
    "drop_ratio",
    "mark_ratio",
    "throughput_bps",
    "utilisation",
    "mean_queue_delay_s",
    "p50_queue_delay_s",
    "p99_queue_delay_s",
    "mean_queue_packets",
    "mean_queue_bytes",
];

/// Columns of `ues.csv`.
pub const UE_COLUMNS: [&str; 20] = [
    "network",
    "ue",
    "cell",
    "direction",
    "packets",
    "delivered_packets",
    "delivered_bytes",
    "buffer_drops",
    "lost_packets",
    "blocks",
    "block_bytes",
    "retransmissions",
    "tb_errors",
    "lost_blocks",
    "control_errors",
    "mean_mcs",
    "blocks_by_mcs",
    "early_packets",
    "connected_s",
    "bearers_ready_s",
];

/// Columns of `bearers.csv`.
pub const BEARER_COLUMNS: [&str; 17] = [
    "network",
    "ue",
    "bearer",
    "qci",
    "mode",
    "direction",
    "packets",
    "delivered_packets",
    "delivered_bytes",
    "buffer_drops",
    "discarded_packets",
    "lost_packets",
    "pdus",
    "pdu_bytes",
    "retransmitted_pdus",
    "status_pdus",
    "exhausted_pdus",
];

/// Nanoseconds as exact decimal seconds.
fn seconds(nanoseconds: u64) -> String {
    let text = format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn optional<T>(value: Option<T>, print: impl Fn(T) -> String) -> String {
    value.map_or_else(String::new, print)
}

/// Writes `flows.csv`.
///
/// # Errors
/// Those of the writer.
pub fn write_flows(outcome: &Outcome, out: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(FLOW_COLUMNS)?;
    for row in outcome.flow_rows() {
        let counters = &row.counters;
        let sent = counters.tx_packets > 0;
        let received = counters.rx_packets > 0;
        let at = |happened: bool, instant: Instant| optional(happened.then_some(instant), |i| seconds(i.as_nanos()));
        let sum = |duration: Duration| optional(received.then_some(duration), |d| seconds(d.as_nanos()));
        table.write_record([
            row.flow.as_ref(),
            row.source,
            row.destination,
            row.protocol,
            row.congestion.unwrap_or(""),
            &counters.tx_packets.to_string(),
            &counters.tx_bytes.to_string(),
            &counters.rx_packets.to_string(),
            &counters.rx_bytes.to_string(),
            &counters.lost_packets.to_string(),
            &sum(counters.delay_sum),
            &sum(counters.jitter_sum),
            &at(sent, counters.first_tx),
            &at(sent, counters.last_tx),
            &at(received, counters.first_rx),
            &at(received, counters.last_rx),
            &optional(row.goodput_bps, |value| value.to_string()),
            &optional(row.completion, |value| seconds(value.as_nanos())),
            &optional(row.retransmitted_packets, |value| value.to_string()),
            &optional(row.marked_packets, |value| value.to_string()),
            &optional(row.measured_goodput_bps, |value| value.to_string()),
        ])?;
    }
    table.flush()
}

/// Writes `series.csv`.
///
/// # Errors
/// Those of the writer.
pub fn write_series(outcome: &Outcome, out: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(SERIES_COLUMNS)?;
    for row in outcome.series_rows() {
        table.write_record([&seconds(row.time.as_nanos()), row.subject, row.metric, &row.value.to_string()])?;
    }
    table.flush()
}

/// Writes `links.csv`: what measured links carried.
///
/// # Errors
/// Those of the writer.
pub fn write_links(outcome: &Outcome, out: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(LINK_COLUMNS)?;
    let number = |value: Option<f64>| optional(value, |value| value.to_string());
    let time = |value: Option<Duration>| optional(value, |value| seconds(value.as_nanos()));
    for MeasuredLink { link, summary, utilisation } in outcome.measured_links() {
        table.write_record([
            link,
            &seconds(summary.from.as_nanos()),
            &seconds(summary.to.as_nanos()),
            &seconds(summary.measured().as_nanos()),
            &summary.waiting_first.packets.to_string(),
            &summary.waiting_last.packets.to_string(),
            &summary.arrivals.packets.to_string(),
            &summary.arrivals.bytes.to_string(),
            &summary.departed.packets.to_string(),
            &summary.departed.bytes.to_string(),
            &summary.dropped_packets.to_string(),
            &summary.marked_packets.to_string(),
            &number(summary.drop_ratio()),
            &number(summary.mark_ratio()),
            &number(summary.throughput_bps()),
            &number(utilisation),
            &number(summary.mean_queue_delay_s()),
            &time(summary.delay_p50),
            &time(summary.delay_p99),
            &number(summary.mean_queue_packets()),
            &number(summary.mean_queue_bytes()),
        ])?;
    }
    table.flush()
}

/// Writes `ues.csv`: what the radio has done for UEs.
///
/// # Errors
/// Those of the writer.
pub fn write_ues(outcome: &Outcome, out: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(UE_COLUMNS)?;
    for UeRow { network, ue, cell, uplink, established, counters } in outcome.ue_rows() {
        let by_mcs = counters.blocks_by_mcs.iter().map(u64::to_string).collect::<Vec<_>>().join(";");
        let sum: u64 = (0..).zip(counters.blocks_by_mcs).map(|(mcs, blocks): (u64, u64)| mcs * blocks).sum();
        let mean_mcs = (counters.blocks > 0).then(|| sum as f64 / counters.blocks as f64);
        table.write_record([
            network.as_str(),
            ue,
            cell,
            if *uplink { "uplink" } else { "downlink" },
            &counters.packets.to_string(),
            &counters.delivered_packets.to_string(),
            &counters.delivered_bytes.to_string(),
            &counters.buffer_drops.to_string(),
            &counters.lost_packets.to_string(),
            &counters.blocks.to_string(),
            &counters.block_bytes.to_string(),
            &counters.retransmissions.to_string(),
            &counters.errors.to_string(),
            &counters.lost_blocks.to_string(),
            &counters.control_errors.to_string(),
            &optional(mean_mcs, |value| value.to_string()),
            &by_mcs,
            &counters.early_packets.to_string(),
            &seconds(established.connected.as_nanos()),
            &seconds(established.ready.as_nanos()),
        ])?;
    }
    table.flush()
}

/// Writes `bearers.csv`: what RLC has done for bearers.
///
/// # Errors
/// Those of the writer.
pub fn write_bearers(outcome: &Outcome, out: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(BEARER_COLUMNS)?;
    for BearerRow { network, ue, bearer, qci, mode, uplink, counters } in outcome.bearer_rows() {
        table.write_record([
            network.as_str(),
            ue,
            &bearer.to_string(),
            &qci.to_string(),
            mode,
            if *uplink { "uplink" } else { "downlink" },
            &counters.sdus_offered.to_string(),
            &counters.sdus_delivered.to_string(),
            &counters.bytes_delivered.to_string(),
            &counters.sdus_dropped.to_string(),
            &counters.sdus_discarded.to_string(),
            &counters.sdus_lost.to_string(),
            &counters.pdus.to_string(),
            &counters.pdu_bytes.to_string(),
            &counters.pdus_retransmitted.to_string(),
            &counters.status_pdus.to_string(),
            &counters.retransmissions_exhausted.to_string(),
        ])?;
    }
    table.flush()
}

/// Writes `completions.csv`: exchanges and transfers within flows, and how long each took.
///
/// # Errors
/// Those of the writer.
pub fn write_completions(outcome: &Outcome, out: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(["flow", "number", "started_s", "completed_s", "bytes"])?;
    for row in outcome.completion_rows() {
        let Completion { started, completed, bytes } = row.completion;
        table.write_record([
            row.flow,
            &row.number.to_string(),
            &seconds(started.as_nanos()),
            &seconds(completed.as_nanos()),
            &bytes.to_string(),
        ])?;
    }
    table.flush()
}

/// Writes `figures.csv`: what applications have to say of their run, the unit in the figure's name.
///
/// # Errors
/// Those of the writer.
pub fn write_figures(outcome: &Outcome, out: impl Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(["flow", "host", "figure", "value"])?;
    for row in outcome.figure_rows() {
        let value = Some(row.value).filter(|value| value.is_finite());
        table.write_record([row.flow, row.host, row.name, &optional(value, |value| value.to_string())])?;
    }
    table.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_exactly() {
        assert_eq!(seconds(0), "0");
        assert_eq!(seconds(7_009_616), "0.007009616");
        assert_eq!(seconds(2_000_000_000), "2");
        assert_eq!(seconds(u64::MAX), "18446744073.709551615");
    }
}
