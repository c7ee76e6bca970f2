//! `--figures`: the metrics of a program as one line of JSON, with the names of `figures.csv`. Unknown values are
//! omitted.

use fullpipe_sockets::programs::{ConnectionMetrics, GetResult, TunnelMetrics};
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::time::Duration;

/// Metrics by name.
#[derive(Debug, Default)]
pub(super) struct Figures(Map<String, Value>);

impl Figures {
    pub(super) fn of_get(got: &GetResult) -> Figures {
        let mut figures = Figures::default();
        figures.time("exchange_max_s", Some(got.exchange));
        figures.connection(&got.connection);
        if let Some(tunnel) = &got.tunnel {
            figures.tunnel(&tunnel.figures);
        }
        figures
    }

    pub(super) fn of_serve(connections: &ConnectionMetrics) -> Figures {
        let mut figures = Figures::default();
        figures.connection(connections);
        figures
    }

    /// Returns the metrics of a proxy. `processor` is the CPU time of the process, because a proxy also costs CPU time.
    pub(super) fn of_proxy(tunnels: &TunnelMetrics, processor: Duration) -> Figures {
        let mut figures = Figures::default();
        figures.tunnel(tunnels);
        figures.time("program_processor_s", Some(processor));
        figures
    }

    fn time(&mut self, name: &str, time: Option<Duration>) {
        if let Some(time) = time {
            self.0.insert(name.into(), time.as_secs_f64().into());
        }
    }

    fn count(&mut self, name: &str, count: u64) {
        self.0.insert(name.into(), count.into());
    }

    fn connection(&mut self, figures: &ConnectionMetrics) {
        self.count("quic_packets_sent", figures.packets_sent);
        self.count("quic_packets_lost", figures.packets_lost);
        self.time("quic_mean_rtt_s", figures.mean_rtt);
    }

    fn tunnel(&mut self, figures: &TunnelMetrics) {
        self.time("tunnel_mean_rtt_s", figures.mean_rtt);
        self.count("tunnel_dropped_too_large", figures.dropped_too_large);
        self.count("tunnel_dropped_queue", figures.dropped_queue);
        self.count("tunnel_peak_queue_bytes", figures.peak_queue_bytes);
    }

    /// Prints the metrics and flushes, because the process may be killed next.
    pub(super) fn print(self) {
        let line = Value::Object(self.0).to_string();
        let mut output = io::stdout().lock();
        // If the reader has closed the pipe, the metrics are not needed.
        let _ = writeln!(output, "{line}").and_then(|()| output.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe::lab::metric_names;
    use fullpipe_sockets::programs::TunnelResult;

    fn got(rtt: Option<Duration>) -> GetResult {
        let second = Duration::from_secs(1);
        let connection = ConnectionMetrics { packets_sent: 7, packets_lost: 1, mean_rtt: rtt };
        let figures = TunnelMetrics { mean_rtt: rtt, dropped_too_large: 2, dropped_queue: 3, peak_queue_bytes: 4_000 };
        let tunnel = Some(TunnelResult { figures, ..TunnelResult::default() });
        let (handshake, completion, exchange) = (second, 2 * second, Duration::from_millis(2_500));
        GetResult { status: 200, bytes: 1, handshake, completion, exchange, connection, congestion: None, tunnel }
    }

    #[test]
    fn figure_names_equal_those_of_runs() {
        let Figures(figures) = Figures::of_get(&got(Some(Duration::from_millis(20))));
        assert_eq!(
            Value::Object(figures.clone()).to_string(),
            "{\"exchange_max_s\":2.5,\"quic_packets_sent\":7,\"quic_packets_lost\":1,\"quic_mean_rtt_s\":0.02,\
             \"tunnel_mean_rtt_s\":0.02,\"tunnel_dropped_too_large\":2,\"tunnel_dropped_queue\":3,\
             \"tunnel_peak_queue_bytes\":4000}"
        );
        assert!(figures.keys().all(|name| metric_names().any(|known| known == name)));
    }

    #[test]
    fn proxy_reports_cpu_time_with_a_distinct_name() {
        let Figures(figures) = Figures::of_proxy(&TunnelMetrics::default(), Duration::from_millis(1_250));
        assert_eq!(figures["program_processor_s"], 1.25);
        assert!(metric_names().all(|known| known != "program_processor_s"));
    }

    #[test]
    fn unknown_values_are_omitted() {
        let Figures(figures) = Figures::of_get(&got(None));
        assert!(!figures.contains_key("quic_mean_rtt_s") && !figures.contains_key("tunnel_mean_rtt_s"));
        assert_eq!(figures.len(), 6);
    }
}
