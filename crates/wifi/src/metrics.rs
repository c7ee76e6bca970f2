//! The metrics that probes sample of a station, in one direction.

use crate::report::{LastPpdu, LinkStatus};
use fullpipe_network::metrics::{DROPS, QUEUE_DELAY, THROUGHPUT};
use fullpipe_schema::metric::{MetricDeclaration, MetricReader, ProbeMetric, TimeSum};

const fn metric(
    name: &'static str,
    unit: &'static str,
    text: &'static str,
    value: fn(&LinkStatus) -> Option<f64>,
) -> ProbeMetric<LinkStatus> {
    ProbeMetric::value(MetricDeclaration { name, unit, text }, value)
}

const fn mean_time(
    name: &'static str,
    text: &'static str,
    times: fn(&LinkStatus) -> TimeSum,
) -> ProbeMetric<LinkStatus> {
    ProbeMetric { declaration: MetricDeclaration { name, unit: "s", text }, reading: MetricReader::MeanTime(times) }
}

fn of_last(status: &LinkStatus, value: fn(&LastPpdu) -> f64) -> Option<f64> {
    status.last.as_ref().map(value)
}

/// The metrics of a station in one direction.
pub static STATION: [ProbeMetric<LinkStatus>; 12] = [
    metric("data_rate_bps", "bit/s", "data rate of the last PPDU.", |status| {
        of_last(status, |last| 1e6 * last.rate.mbps())
    }),
    metric("snr_db", "dB", "SNR per spatial stream of the last PPDU.", |status| of_last(status, |last| last.snr_db)),
    metric("aggregate_mpdus", "", "MPDUs in the last PPDU.", |status| of_last(status, |last| last.mpdus.into())),
    metric("retries", "", "MPDUs transmitted again since the start.", |status| Some(status.counters.retries as f64)),
    metric("collisions", "", "transmissions that collided since the start.", |status| {
        Some(status.counters.collisions as f64)
    }),
    metric("airtime_s", "s", "time on the air of the data PPDUs since the start.", |status| {
        Some(status.counters.airtime.as_secs_f64())
    }),
    metric(
        "queue_packets",
        "packets",
        "packets in the queues of the station, and those to be transmitted again.",
        |status| Some(status.queued_packets as f64),
    ),
    mean_time(
        "access_delay_s",
        "mean time in the queue until the first transmission, over the packets delivered since the last sample.",
        |status| TimeSum { sum: status.counters.queue_delay, count: status.counters.delivered_packets },
    ),
    mean_time(
        "air_delay_s",
        "mean time from the first transmission to the delivery, over the packets delivered since the last sample.",
        |status| TimeSum { sum: status.counters.air_delay, count: status.counters.delivered_packets },
    ),
    // The network computes the value: packets are in the access network from their offer until their outcome.
    ProbeMetric::value(QUEUE_DELAY, |_| None),
    ProbeMetric { declaration: THROUGHPUT, reading: MetricReader::Rate(|status| status.counters.delivered_bytes) },
    ProbeMetric::value(DROPS, |status| {
        let counters = &status.counters;
        Some((counters.buffer_drops + counters.early_drops + counters.lost_packets) as f64)
    }),
];
