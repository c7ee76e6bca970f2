//! The metrics of `figures.csv`: those of workloads, and those of the endpoints of QUIC connections and tunnels.

use crate::world::World;
use fullpipe_scenario::description::Transport;
use fullpipe_units::Duration;
use fullpipe_workload::{ApplicationMetric, MetricValue, WORKLOADS};

/// Metrics of each endpoint of a QUIC flow.
static QUIC: [ApplicationMetric; 3] = [
    ApplicationMetric::new(
        "quic_packets_sent",
        "packets",
        "Packets that the end has sent, over all connections of the flow.",
    ),
    ApplicationMetric::new("quic_packets_lost", "packets", "Packets that the end has declared lost."),
    ApplicationMetric::new(
        "quic_mean_rtt_s",
        "s",
        "Mean of the round-trip samples; of several connections, the mean of their means.",
    ),
];

/// Metrics of each endpoint of a tunnel.
static TUNNEL: [ApplicationMetric; 4] = [
    ApplicationMetric::new("tunnel_mean_rtt_s", "s", "Mean of the round-trip samples between client and proxy."),
    ApplicationMetric::new(
        "tunnel_dropped_too_large",
        "packets",
        "Payloads dropped because no datagram of the tunnel holds them.",
    ),
    ApplicationMetric::new(
        "tunnel_dropped_queue",
        "packets",
        "Payloads dropped because the queue ahead of the tunnel was full.",
    ),
    ApplicationMetric::new("tunnel_peak_queue_bytes", "bytes", "Most bytes that waited in that queue."),
];

/// Metric of a tunnel's client.
const REQUESTS_REFUSED: ApplicationMetric =
    ApplicationMetric::new("tunnel_requests_refused", "", "Requests that the proxy rejected.");

/// Metric of a tunnel's proxy.
const REQUESTS_OPEN: ApplicationMetric =
    ApplicationMetric::new("tunnel_requests_open", "", "Requests that were open at the proxy when the run ended.");

/// Returns all application metrics, grouped by the workload or transport that reports them.
pub fn metrics() -> impl Iterator<Item = (&'static str, Vec<&'static ApplicationMetric>)> {
    let workloads = WORKLOADS.iter().map(|workload| (workload.declaration.name, workload.metrics().collect()));
    let tunnel = TUNNEL.iter().chain(&[REQUESTS_REFUSED, REQUESTS_OPEN]);
    workloads.chain([("quic", QUIC.iter().collect()), ("masque", tunnel.collect())])
}

/// Returns the names of all application metrics.
pub fn metric_names() -> impl Iterator<Item = &'static str> {
    metrics().flat_map(|(_, metrics)| metrics).map(|metric| metric.name)
}

/// Returns the metrics of the endpoints at one end (0: initiator) of a QUIC flow or a tunnel.
pub(crate) fn of_endpoints(transport: &Transport, world: &World, (flow, end): (usize, usize)) -> Vec<MetricValue> {
    match transport {
        Transport::Quic(_) => {
            let (mut sent, mut lost, mut means) = (0, 0, Vec::new());
            for report in world.last_reports_of_flow(flow, end) {
                sent += report.sent_packets.unwrap_or_default();
                lost += report.lost_packets.unwrap_or_default();
                // Each connection has the same weight, regardless of its number of packets.
                means.extend(report.mean_rtt.map(Duration::as_secs_f64));
            }
            let mean = if means.is_empty() { f64::NAN } else { means.iter().sum::<f64>() / means.len() as f64 };
            ApplicationMetric::values(&QUIC, [sent as f64, lost as f64, mean])
        }
        Transport::Masque(_) => {
            let Some(report) = world.last_report((flow, end)) else { return Vec::new() };
            let Some(counters) = report.tunnel else { return Vec::new() };
            let mut figures = ApplicationMetric::values(
                &TUNNEL,
                [
                    report.mean_rtt.map_or(f64::NAN, Duration::as_secs_f64),
                    counters.dropped_too_large as f64,
                    counters.dropped_queue as f64,
                    counters.peak_queued_bytes as f64,
                ],
            );
            figures.push(match end {
                0 => REQUESTS_REFUSED.value(counters.requests_refused as f64),
                _ => REQUESTS_OPEN.value(counters.requests_open as f64),
            });
            figures
        }
        Transport::Tcp(_) | Transport::Udp => Vec::new(),
    }
}
