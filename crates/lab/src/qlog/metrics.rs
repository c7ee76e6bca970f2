//! Metrics of a sender's congestion control and loss recovery, with the same fields for every transport.

use fullpipe_congestion::catalogue::find_component;
use fullpipe_record::qlog::ObjectWriter;
use fullpipe_transport::endpoint::EndpointReport;
use fullpipe_units::Duration;

/// A snapshot of the metrics; `None` if a transport does not have the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Metrics {
    pub(super) congestion_window: Option<u64>,
    pub(super) bytes_in_flight: Option<u64>,
    /// Slow-start threshold in bytes; `None` before the first reduction.
    pub(super) ssthresh: Option<u64>,
    pub(super) smoothed_rtt: Option<Duration>,
    pub(super) latest_rtt: Option<Duration>,
    pub(super) min_rtt: Option<Duration>,
    pub(super) pto_count: Option<u64>,
    /// Pacing rate in bits per second; `None` if the transport does not pace.
    pub(super) pacing_rate: Option<u64>,
    /// Delivery rate in bits per second.
    pub(super) delivery_rate: Option<u64>,
}

impl Metrics {
    /// Returns the metrics of an endpoint; `None` if it currently has no congestion control.
    pub(super) fn of(report: &EndpointReport) -> Option<Metrics> {
        Some(Metrics {
            congestion_window: Some(report.cwnd_bytes?),
            bytes_in_flight: report.in_flight_bytes,
            ssthresh: report.ssthresh_bytes,
            smoothed_rtt: report.smoothed_rtt,
            latest_rtt: report.latest_rtt,
            min_rtt: report.min_rtt,
            pto_count: report.pto_count.map(u64::from),
            pacing_rate: report.pacing_bps,
            delivery_rate: report.delivery_rate_bps,
        })
    }

    /// Writes the values that differ from `before`.
    pub(super) fn write_changes(&self, before: &Metrics, data: &mut ObjectWriter<'_>) {
        let mut unsigned = |key, now: Option<u64>, then| {
            if let Some(value) = now.filter(|_| now != then) {
                data.unsigned(key, value);
            }
        };
        unsigned("congestion_window", self.congestion_window, before.congestion_window);
        unsigned("bytes_in_flight", self.bytes_in_flight, before.bytes_in_flight);
        unsigned("ssthresh", self.ssthresh, before.ssthresh);
        unsigned("pto_count", self.pto_count, before.pto_count);
        unsigned("pacing_rate", self.pacing_rate, before.pacing_rate);
        unsigned("delivery_rate", self.delivery_rate, before.delivery_rate);
        let mut time = |key, now: Option<Duration>, then| {
            if let Some(value) = now.filter(|_| now != then) {
                data.milliseconds(key, value.into());
            }
        };
        time("smoothed_rtt", self.smoothed_rtt, before.smoothed_rtt);
        time("latest_rtt", self.latest_rtt, before.latest_rtt);
        time("min_rtt", self.min_rtt, before.min_rtt);
    }
}

/// Returns the congestion state of a sender. A sender whose window is below the threshold is in slow start (RFC 5681
/// section 3.1, RFC 9002 section 7.3). Some controllers declare their own states, for example BBR, which has no
/// threshold.
pub(super) fn congestion_state(report: &EndpointReport, control: &str) -> &'static str {
    let states = find_component(control).map_or(&[][..], |control| control.states);
    let own = report.control_value("state").map(|state| states.get(state as usize).copied());
    match own {
        Some(Some(state)) => state,
        Some(None) if !states.is_empty() => "unknown",
        _ if report.in_recovery => "recovery",
        _ if report.cwnd_bytes.unwrap_or(0) < report.ssthresh_bytes.unwrap_or(u64::MAX) => "slow_start",
        _ => "congestion_avoidance",
    }
}
