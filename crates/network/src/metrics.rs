//! The metrics of links, shared segments and packets of flows that probes sample. A new one is an entry here.

use crate::link::LinkCounters;
use fullpipe_record::FlowCounters;
use fullpipe_schema::metric::{MetricDeclaration, ProbeMetric, Reading};
use fullpipe_units::Rate;

/// A direction of a link, or a shared segment, at an instant.
#[derive(Clone, Copy, Debug)]
pub struct LinkReport {
    /// Counters since the start.
    pub counters: LinkCounters,
    /// Bytes in the queue.
    pub queue_bytes: u64,
    /// The present rate; `None`: an outage.
    pub rate: Option<Rate>,
}

/// Bit/s since the last sample.
pub const THROUGHPUT: MetricDeclaration = MetricDeclaration {
    name: "throughput_bps",
    unit: "bit/s",
    text: "bits per second since the last sample (flows, links, segments, UEs).",
};

/// Packets or frames lost since the start.
pub const DROPS: MetricDeclaration = MetricDeclaration {
    name: "drops",
    unit: "",
    text: "packets lost, frames dropped since the start (flows, links, segments, UEs).",
};

/// Packets marked since the start.
pub const MARKS: MetricDeclaration = MetricDeclaration {
    name: "marks",
    unit: "",
    text: "packets marked by ECN since the start: received (flows), sent (links).",
};

/// Bytes that wait.
pub const QUEUE: MetricDeclaration =
    MetricDeclaration { name: "queue_bytes", unit: "B", text: "bytes in the queue (links), in the RLC buffers (UEs)." };

const LINK_THROUGHPUT: ProbeMetric<LinkReport> =
    ProbeMetric { declaration: THROUGHPUT, reading: Reading::Rate(|report| report.counters.bytes) };
const LINK_DROPS: ProbeMetric<LinkReport> =
    ProbeMetric::value(DROPS, |report| Some((report.counters.queue_drops + report.counters.losses) as f64));

/// Metrics of a direction of a link.
pub static LINK: [ProbeMetric<LinkReport>; 5] = [
    ProbeMetric::value(QUEUE, |report| Some(report.queue_bytes as f64)),
    ProbeMetric::value(
        MetricDeclaration {
            name: "queue_delay_s",
            unit: "s",
            text: "how long a packet that comes now would wait if the rate stayed as it is (links); at a trace's mean rate; \
                   nothing during an outage.",
        },
        |report| Some(report.queue_bytes as f64 * 8.0 / report.rate?.bits_per_second() as f64),
    ),
    LINK_THROUGHPUT,
    LINK_DROPS,
    ProbeMetric::value(MARKS, |report| Some(report.counters.marks as f64)),
];

/// Metrics of a shared segment.
pub static SEGMENT: [ProbeMetric<LinkReport>; 2] = [LINK_THROUGHPUT, LINK_DROPS];

/// Metrics of a flow's packets.
pub static FLOW: [ProbeMetric<FlowCounters>; 3] = [
    ProbeMetric { declaration: THROUGHPUT, reading: Reading::Rate(|counters| counters.rx_bytes) },
    ProbeMetric::value(DROPS, |counters| Some(counters.lost_packets as f64)),
    ProbeMetric::value(MARKS, |counters| Some(counters.marked_packets as f64)),
];
