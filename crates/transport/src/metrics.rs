//! The metrics of endpoints that probes sample, computed from an [`EndpointReport`]. A new metric needs only an entry here.

use crate::endpoint::EndpointReport;
use fullpipe_schema::metric::{MetricDeclaration, ProbeMetric};
use fullpipe_units::Duration;

const fn metric(
    name: &'static str,
    unit: &'static str,
    text: &'static str,
    value: fn(&EndpointReport) -> Option<f64>,
) -> ProbeMetric<EndpointReport> {
    ProbeMetric::value(MetricDeclaration { name, unit, text }, value)
}

/// Metrics of an end of a TCP or QUIC connection, and of a tunnel's client.
pub static ENDPOINT: [ProbeMetric<EndpointReport>; 6] = [
    metric("cwnd_bytes", "B", "congestion window (TCP and QUIC flows; tunnels: the client's).", cwnd),
    metric("ssthresh_bytes", "B", "slow-start threshold (TCP and QUIC flows; tunnels: the client's).", ssthresh),
    metric("inflight_bytes", "B", "bytes in flight (TCP and QUIC flows; tunnels: from the client).", in_flight),
    metric(
        "srtt_s",
        "s",
        "smoothed round-trip time (TCP and QUIC flows; tunnels: the client's, to the proxy).",
        |report| report.smoothed_rtt.map(Duration::as_secs_f64),
    ),
    metric("pacing_bps", "bit/s", "pacing rate (TCP and QUIC flows; tunnels: the client's).", pacing),
    metric(
        "delivery_bps",
        "bit/s",
        "newest delivery-rate sample (TCP and QUIC flows; tunnels: the client's).",
        delivery,
    ),
];

/// Metrics of a tunnel's proxy.
pub static PROXY: [ProbeMetric<EndpointReport>; 6] = [
    metric("proxy_cwnd_bytes", "B", "the proxy's congestion window (tunnels).", cwnd),
    metric("proxy_ssthresh_bytes", "B", "the proxy's slow-start threshold (tunnels).", ssthresh),
    metric("proxy_inflight_bytes", "B", "bytes in flight from the proxy (tunnels).", in_flight),
    metric("proxy_pacing_bps", "bit/s", "the proxy's pacing rate (tunnels).", pacing),
    metric("proxy_delivery_bps", "bit/s", "the proxy's newest delivery-rate sample (tunnels).", delivery),
    metric("proxy_queue_bytes", "B", "payload that waits at the proxy ahead of its QUIC stack (tunnels).", |report| {
        report.tunnel.map(|counters| counters.queued_bytes as f64)
    }),
];

fn cwnd(report: &EndpointReport) -> Option<f64> {
    report.cwnd_bytes.map(|bytes| bytes as f64)
}

fn ssthresh(report: &EndpointReport) -> Option<f64> {
    report.ssthresh_bytes.map(|bytes| bytes as f64)
}

fn in_flight(report: &EndpointReport) -> Option<f64> {
    report.in_flight_bytes.map(|bytes| bytes as f64)
}

fn pacing(report: &EndpointReport) -> Option<f64> {
    report.pacing_bps.map(|rate| rate as f64)
}

fn delivery(report: &EndpointReport) -> Option<f64> {
    report.delivery_rate_bps.map(|rate| rate as f64)
}
