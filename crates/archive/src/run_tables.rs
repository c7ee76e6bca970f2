//! The tables that a run of any scenario can have: `flows.csv`, `series.csv`, `links.csv`, `halves.csv`, `figures.csv`
//! and `completions.csv`.

use crate::table;
use fullpipe_units::{Duration, Instant};

table! {
    /// A row of `flows.csv`: one direction of a flow.
    pub struct FlowRow;
    /// The flows of a run.
    pub static FLOWS = "flows.csv":
        "One row for each direction of each flow. Packets and bytes are those of the IP layer, as defined by the FlowMonitor \
         of ns-3. Counters and sums are of the whole run; `goodput_bps` and the columns `measured_...` are of the measured \
         interval: from `measurement.from` to the end of the run, the whole run without `[measurement]`.";
    flow: String, "", "Name of the flow; the direction from its acceptor to its initiator ends with `.reverse`.";
    source: String, "", "Host that sends the packets.";
    destination: String, "", "Host that receives the packets.";
    protocol: String, "", "`tcp`, `udp`, `quic`, `masque` (a tunnel), or for other traffic of real hosts `icmp` or `other`.";
    congestion: String, "", "Congestion control of the sender; empty for UDP.";
    tx_packets: u64, "packets", "Packets sent.";
    tx_bytes: u64, "bytes", "Bytes sent.";
    rx_packets: u64, "packets", "Packets received.";
    rx_bytes: u64, "bytes", "Bytes received.";
    lost_packets: u64, "packets", "Packets dropped in the network.";
    delay_sum_s: Option<Duration>, "s", "Sum of the delays of all received packets. Of a flow through a tunnel all delays are \
        those between proxy and acceptor; the tunnel has the delays between client and proxy.";
    jitter_sum_s: Option<Duration>, "s", "Sum of the differences in delay between each received packet and the one before it.";
    first_tx_s: Option<Instant>, "s", "Time at which the first packet was sent.";
    last_tx_s: Option<Instant>, "s", "Time at which the last packet was sent.";
    first_rx_s: Option<Instant>, "s", "Time at which the first packet was received.";
    last_rx_s: Option<Instant>, "s", "Time at which the last packet was received.";
    goodput_bps: Option<f64>, "bit/s", "Payload that the receiving application read in the measured interval, over the flow's part \
        of it: from the flow's start to its completion, or else to its last reception if the flow is limited, or else to the \
        end of the run. Empty if the flow was complete before the interval.";
    completion_s: Option<Duration>, "s", "Time from the flow's start until the receiver had all data.";
    retransmitted_packets: Option<u64>, "packets", "Segments that the sender retransmitted; over QUIC, packets that it declared lost.";
    marked_packets: Option<u64>, "packets", "Packets received with a congestion mark (CE); empty if the flow does not use ECN.";
    measured_goodput_bps: Option<f64>, "bit/s", "Deprecated, use `goodput_bps`: payload that the receiving application read in the \
        measured interval, over its whole length; empty if the scenario measures no links.";
    whole_goodput_bps: Option<f64>, "bit/s", "As `goodput_bps`, of the whole run.";
    measured_from_s: Option<Instant>, "s", "Start of the time that the flow's throughput is taken over: its first reception, or the \
        start of the measured interval if that is later.";
    measured_tx_packets: u64, "packets", "Packets sent in the measured interval.";
    measured_rx_packets: u64, "packets", "Packets received in the measured interval.";
    measured_rx_bytes: u64, "bytes", "Bytes received in the measured interval.";
    measured_lost_packets: u64, "packets", "Packets dropped in the measured interval.";
    measured_delay_sum_s: Option<Duration>, "s", "Sum of the delays of the packets received in the measured interval.";
    measured_jitter_sum_s: Option<Duration>, "s", "Sum of the differences in delay between each packet received in the measured \
        interval and the one before it.";
    main_direction: u64, "", "1 in a main direction of the flow, which carries most of its data as its workload declares, else 0. A \
        flow's rate is that of its main direction; the flows of some workloads, such as `gaming`, have two.";
    delay_p50_s: Option<Duration>, "s", "Median delay of the packets received in the measured interval; never too short, at most \
        1/64 too long, as all percentiles of delay.";
    delay_p95_s: Option<Duration>, "s", "95th percentile of the delay of the packets received in the measured interval.";
    delay_p99_s: Option<Duration>, "s", "99th percentile of the delay of the packets received in the measured interval.";
}

/// Metrics that are computed from several columns. Tables and plots share them.
impl FlowRow {
    /// Returns whether the row describes the main direction of its flow.
    pub fn is_main(&self) -> bool {
        self.main_direction > 0
    }

    /// Returns the bits received at the IP layer in the measured interval, divided by the time from the first to the
    /// last reception, in bit/s. `None` if this time is zero or undefined.
    pub fn throughput_bps(&self) -> Option<f64> {
        let time = self.last_rx_s?.saturating_since(self.measured_from_s?);
        (!time.is_zero()).then(|| self.measured_rx_bytes as f64 * 8.0 / time.as_secs_f64())
    }

    /// Returns the mean delay of the packets received in the measured interval, in seconds; `None` if there are no such
    /// packets.
    pub fn mean_delay_s(&self) -> Option<f64> {
        self.per_packet(self.measured_delay_sum_s)
    }

    /// Returns the mean jitter of the packets received in the measured interval, in seconds; `None` if there are no
    /// such packets.
    pub fn mean_jitter_s(&self) -> Option<f64> {
        self.per_packet(self.measured_jitter_sum_s)
    }

    /// Sorts the main direction of each flow before the other direction. Files have the forward direction first.
    pub fn sort_main_first(rows: &mut [FlowRow]) {
        let both = |forward: &FlowRow, reverse: &FlowRow| reverse.flow.strip_suffix(".reverse") == Some(&forward.flow);
        rows.chunk_by_mut(both).for_each(|flow| flow.sort_by_key(|row| !row.is_main()));
    }

    fn per_packet(&self, sum: Option<Duration>) -> Option<f64> {
        sum.filter(|_| self.measured_rx_packets > 0).map(|sum| sum.as_secs_f64() / self.measured_rx_packets as f64)
    }
}

table! {
    /// A row of `series.csv`: a sample of a metric.
    pub struct SeriesRow;
    /// The samples of a run.
    pub static SERIES = "series.csv":
        "One row for each sample of the scenario's probes, in the order of time.";
    time_s: Instant, "s", "Time of the sample.";
    subject: String, "", "Name of the flow, link, Ethernet segment or UE that was sampled.";
    metric: String, "", "Name of the metric; it ends with the metric's unit.";
    value: Option<f64>, "", "Value in the unit at the end of the metric's name.";
}

table! {
    /// A row of `links.csv`: one direction of a link over the measured interval.
    pub struct LinkRow;
    /// The measured links of a run.
    pub static LINKS = "links.csv":
        "One row for each direction of a link that the scenario measures; all counts are of the measured interval.";
    link: String, "", "Name of the link; the reverse direction ends with `.reverse`.";
    from_s: Instant, "s", "Start of the measured interval.";
    to_s: Instant, "s", "End of the measured interval.";
    measured_s: Duration, "s", "Length of the measured interval.";
    queued_at_from_packets: u64, "packets", "Packets in the queue at the start.";
    queued_at_to_packets: u64, "packets", "Packets in the queue at the end.";
    arrivals_packets: u64, "packets", "Packets that arrived at the link.";
    arrivals_bytes: u64, "bytes", "Bytes that arrived at the link.";
    departed_packets: u64, "packets", "Packets that left the queue to be transmitted.";
    departed_bytes: u64, "bytes", "Bytes that left the queue to be transmitted.";
    dropped_packets: u64, "packets", "Packets that the link dropped.";
    marked_packets: u64, "packets", "Packets that the queue marked (CE).";
    drop_ratio: Option<f64>, "", "Packets dropped, as a share of arrivals.";
    mark_ratio: Option<f64>, "", "Packets marked, as a share of arrivals.";
    throughput_bps: Option<f64>, "bit/s", "Bits that departed, over the length of the interval.";
    utilisation: Option<f64>, "", "Share of the interval in which the link transmitted; empty for links that follow a trace.";
    mean_queue_delay_s: Option<f64>, "s", "Mean time that departed packets spent in the queue.";
    p50_queue_delay_s: Option<Duration>, "s", "Median time that departed packets spent in the queue.";
    p99_queue_delay_s: Option<Duration>, "s", "99th percentile of the time that departed packets spent in the queue.";
    mean_queue_packets: Option<f64>, "packets", "Mean number of packets in the queue, over time.";
    mean_queue_bytes: Option<f64>, "bytes", "Mean number of bytes in the queue, over time.";
}

table! {
    /// A row of `halves.csv`: one direction of a flow or a link over one half of the measured interval.
    pub struct HalfRow;
    /// Flows and links in each half of the measured interval.
    pub static HALVES = "halves.csv":
        "Two rows for each direction of each flow that lasts for the whole measured interval, and for each direction of each \
         measured link: one for each half of the interval. Only with `[measurement]`, and if the run did not end early. Verdicts \
         use it to find values that are not stationary.";
    subject: String, "", "Flow or link as in `flows.csv` or `links.csv`.";
    kind: String, "", "`flow` or `link`.";
    half: u64, "", "1 or 2.";
    from_s: Instant, "s", "Start of the half.";
    to_s: Instant, "s", "End of the half.";
    goodput_bps: Option<f64>, "bit/s", "Of a flow: payload that the receiving application read in the half, over its length.";
    throughput_bps: Option<f64>, "bit/s", "Of a flow: bits received at the IP layer, over the length of the half. Of a link: bits \
        that departed.";
    mean_delay_s: Option<f64>, "s", "Of a flow: mean delay of the packets received in the half. Of a link: mean time that the packets \
        that departed in the half spent in the queue.";
}

table! {
    /// A row of `events.csv`: an event of the scenario, or a metric that was recorded at its time.
    pub struct EventRow;
    /// The events of a run.
    pub static EVENTS = "events.csv":
        "One row for each `[[event]]` of the scenario, and after it one row for each metric that it recorded.";
    event: String, "", "Name of the event.";
    met_s: Option<Instant>, "s", "Time at which its condition was met; empty if it was not met.";
    at_s: Option<Instant>, "s", "Time of the event; empty if the run ended before it.";
    subject: String, "", "Flow or link of the metric, as in `series.csv`; empty in the event's own row.";
    metric: String, "", "Name of the metric; empty in the event's own row.";
    value: Option<f64>, "", "Value of the metric at the time of the event; empty if it had none.";
}

table! {
    /// A row of `figures.csv`: an application metric.
    pub struct FigureRow;
    /// The application metrics of a run.
    pub static FIGURES = "figures.csv":
        "One row for each application metric of each end of a flow, such as the load time of web pages.";
    flow: String, "", "Name of the flow.";
    host: String, "", "Host of the application.";
    figure: String, "", "Name of the metric; it ends with the metric's unit.";
    value: Option<f64>, "", "Value in the unit at the end of the metric's name; empty if the run has none.";
}

table! {
    /// A row of `completions.csv`: an exchange or transfer within a flow.
    pub struct CompletionRow;
    /// The completed exchanges and transfers of a run.
    pub static COMPLETIONS = "completions.csv":
        "One row for each exchange or transfer that was completed within a flow, in the order of completion.";
    flow: String, "", "Name of the flow.";
    number: u64, "", "Number within the flow, from 1.";
    started_s: Instant, "s", "Time at which the exchange or transfer began.";
    completed_s: Instant, "s", "Time at which the receiver had all data.";
    bytes: u64, "bytes", "Size of its payload.";
}
