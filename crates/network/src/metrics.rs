//! The metrics of links, shared segments and flows that probes sample. A new metric needs only an entry here. Stations
//! of access networks use the same declarations.

use crate::link::LinkCounters;
use fullpipe_record::FlowCounters;
use fullpipe_schema::metric::{MetricDeclaration, MetricReader, ProbeMetric, Sample, TimeSum};
use fullpipe_units::Rate;

/// The state of a direction of a link, or of a shared segment, at an instant.
#[derive(Clone, Copy, Debug)]
pub struct LinkReport {
    /// Counters since the start of the run.
    pub counters: LinkCounters,
    /// Bytes in the queue.
    pub queue_bytes: u64,
    /// Bytes of the frames whose transmission has started.
    pub departed_bytes: u64,
    /// The current rate; `None` during an outage.
    pub rate: Option<Rate>,
    /// The sum and the number of the waiting times of frames whose transmission has started; `None` if the link's rate
    /// is constant.
    pub waits: Option<TimeSum>,
}

/// Throughput in bit/s since the last sample.
pub const THROUGHPUT: MetricDeclaration =
    MetricDeclaration { name: "throughput_bps", unit: "bit/s", text: "bits per second since the last sample." };

/// Mean one-way delay, in seconds, of the packets received since the last sample.
pub const DELAY: MetricDeclaration = MetricDeclaration {
    name: "delay_s",
    unit: "s",
    text: "mean one-way delay of the packets received since the last sample; no sample if there are none.",
};

/// Packets or frames lost since the start of the run.
pub const DROPS: MetricDeclaration =
    MetricDeclaration { name: "drops", unit: "", text: "packets or frames lost since the start." };

/// Packets with a CE mark since the start of the run.
pub const MARKS: MetricDeclaration = MetricDeclaration {
    name: "marks",
    unit: "",
    text: "packets with an ECN mark (CE) since the start: of a flow the received ones, of a link the transmitted ones.",
};

/// Bytes in the queue.
pub const QUEUE: MetricDeclaration =
    MetricDeclaration { name: "queue_bytes", unit: "B", text: "bytes in the queue or, of a station, in its buffers." };

/// Queueing delay in seconds.
pub const QUEUE_DELAY: MetricDeclaration = MetricDeclaration {
    name: "queue_delay_s",
    unit: "s",
    text: "queueing delay. At a constant rate: that of a packet that arrives at this time. At a varying rate (schedule, \
           trace): the mean over the packets that left the queue since the last sample; no sample if none left. Of a \
           station: the mean time from entering the access network to leaving it, over the packets delivered since the last \
           sample",
};

fn queue_delay(report: &LinkReport) -> Option<Sample> {
    match report.waits {
        Some(waits) => Some(Sample::TimeSum(waits)),
        None => Some(Sample::Value(report.queue_bytes as f64 * 8.0 / report.rate?.bits_per_second() as f64)),
    }
}

const LINK_THROUGHPUT: ProbeMetric<LinkReport> =
    ProbeMetric { declaration: THROUGHPUT, reading: MetricReader::Rate(|report| report.departed_bytes) };
const LINK_DROPS: ProbeMetric<LinkReport> =
    ProbeMetric::value(DROPS, |report| Some((report.counters.queue_drops + report.counters.losses) as f64));

/// Metrics of a direction of a link.
pub static LINK: [ProbeMetric<LinkReport>; 5] = [
    ProbeMetric::value(QUEUE, |report| Some(report.queue_bytes as f64)),
    ProbeMetric { declaration: QUEUE_DELAY, reading: MetricReader::Sample(queue_delay) },
    LINK_THROUGHPUT,
    LINK_DROPS,
    ProbeMetric::value(MARKS, |report| Some(report.counters.marks as f64)),
];

/// Metrics of a shared segment.
pub static SEGMENT: [ProbeMetric<LinkReport>; 2] = [LINK_THROUGHPUT, LINK_DROPS];

/// Metrics of a flow's packets.
pub static FLOW: [ProbeMetric<FlowCounters>; 4] = [
    ProbeMetric { declaration: THROUGHPUT, reading: MetricReader::Rate(|counters| counters.rx_bytes) },
    ProbeMetric {
        declaration: DELAY,
        reading: MetricReader::MeanTime(|counters| TimeSum { sum: counters.delay_sum, count: counters.rx_packets }),
    },
    ProbeMetric::value(DROPS, |counters| Some(counters.lost_packets as f64)),
    ProbeMetric::value(MARKS, |counters| Some(counters.marked_packets as f64)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::Duration;

    /// Returns the name and the value of each metric; for a rate, its bytes.
    fn values<R>(metrics: &'static [ProbeMetric<R>], report: &R) -> Vec<(&'static str, f64)> {
        let value = |metric: &'static ProbeMetric<R>| match metric.reading {
            MetricReader::Value(value) => value(report).expect("the metric has a value"),
            MetricReader::Rate(bytes) => bytes(report) as f64,
            MetricReader::Sample(sample) => match sample(report) {
                Some(Sample::Value(value)) => value,
                other => panic!("{other:?}"),
            },
            MetricReader::MeanTime(times) => times(report).mean_since(TimeSum::default()).unwrap_or(f64::NAN),
        };
        metrics.iter().map(|metric| (metric.declaration.name, value(metric))).collect()
    }

    #[test]
    fn each_metric_reads_its_own_field() {
        let counters = LinkCounters { frames: 1, bytes: 8, queue_drops: 3, losses: 40, marks: 5, ..Default::default() };
        let rate = Some(Rate::from_bits_per_second(16));
        let link = LinkReport { counters, queue_bytes: 6, departed_bytes: 2, rate, waits: None };
        // Six bytes at 16 bit/s take 3 s.
        let queue = [("queue_bytes", 6.0), ("queue_delay_s", 3.0)];
        let passed = [("throughput_bps", 2.0), ("drops", 43.0)];
        assert_eq!(values(&LINK, &link), [&queue[..], &passed, &[("marks", 5.0)]].concat());
        assert_eq!(values(&SEGMENT, &link), passed);
        let mut flow = FlowCounters::default();
        (flow.tx_bytes, flow.rx_bytes, flow.lost_packets, flow.marked_packets) = (1, 2, 3, 4);
        (flow.rx_packets, flow.delay_sum) = (2, Duration::from_millis(500));
        let packets = [("throughput_bps", 2.0), ("delay_s", 0.25), ("drops", 3.0), ("marks", 4.0)];
        assert_eq!(values(&FLOW, &flow), packets);
        assert_eq!(queue_delay(&LinkReport { rate: None, ..link }), None);
        // If waiting times are measured, the metric uses neither the queue nor the rate.
        let waits = TimeSum { sum: Duration::from_millis(6), count: 3 };
        let measured = LinkReport { rate: None, waits: Some(waits), ..link };
        assert_eq!(queue_delay(&measured), Some(Sample::TimeSum(waits)));
        let earlier = TimeSum { sum: Duration::from_millis(5), count: 1 };
        assert_eq!((waits.mean_since(earlier), waits.mean_since(waits)), (Some(0.0005), None));
    }
}
