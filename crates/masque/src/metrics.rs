//! Counters of a proxy in the Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A counter or gauge that several tasks update.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Subtracts `count`; for gauges only.
    pub fn subtract(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    /// Raises the value to `number` if it is smaller.
    pub fn set_max(&self, number: u64) {
        self.0.fetch_max(number, Ordering::Relaxed);
    }

    /// Returns the current value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters with a label, by the values that have occurred. The values are those of the program and not of a peer.
#[derive(Debug, Default)]
pub struct LabeledCounter(Mutex<BTreeMap<&'static str, u64>>);

impl LabeledCounter {
    /// Adds 1 to the counter with this value of the label.
    pub fn add(&self, value: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(value).or_default() += 1;
    }

    /// Returns the counter with this value of the label.
    #[must_use]
    pub fn get(&self, value: &str) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(value).copied().unwrap_or_default()
    }

    /// Formats all counters.
    fn render(&self, name: &str, label: &str, text: &mut String) {
        for (value, count) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}{{{label}=\"{value}\"}} {count}");
        }
    }
}

macro_rules! metrics {
    ($($name:ident $kind:literal $text:literal,)*) => {
        /// Counters and gauges of a proxy or a client.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $(#[doc = $text] pub $name: Counter,)*
            /// Requests that were refused, by the error type of RFC 9209, or by the reason if no response was sent.
            pub refusals_total: LabeledCounter,
        }

        impl Metrics {
            /// Formats all metrics in the Prometheus text format 0.0.4.
            #[must_use]
            pub fn render(&self) -> String {
                let mut text = String::new();
                $(
                    let name = concat!("fullpipe_masque_", stringify!($name));
                    // Writing to a string cannot fail.
                    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {}\n{name} {}", $text, $kind, self.$name.get());
                )*
                let name = "fullpipe_masque_refusals_total";
                let _ = writeln!(text, "# HELP {name} Requests that were refused, by error.\n# TYPE {name} counter");
                self.refusals_total.render(name, "error", &mut text);
                text
            }
        }
    };
}

metrics! {
    connections_open "gauge" "Connections that are established.",
    connections_total "counter" "Connections that were established.",
    connections_refused_total "counter" "Connections refused because of the connection limit.",
    loops_total "counter" "Connections closed because they came from a tunnel of this proxy.",
    requests_open "gauge" "Tunnels that are open.",
    requests_total "counter" "Requests that were read.",
    requests_refused_total "counter" "Requests that were refused.",
    tcp_tunnels_total "counter" "TCP tunnels that were opened.",
    tcp_bytes_to_target_total "counter" "Bytes sent to targets in TCP tunnels.",
    tcp_bytes_from_target_total "counter" "Bytes received from targets in TCP tunnels.",
    payloads_to_target_total "counter" "UDP payloads sent towards targets.",
    bytes_to_target_total "counter" "Bytes of UDP payloads sent towards targets.",
    payloads_from_target_total "counter" "UDP payloads received from targets.",
    bytes_from_target_total "counter" "Bytes of UDP payloads received from targets.",
    dropped_too_large_total "counter" "Payloads dropped because they exceed the maximum size of a datagram or of the path.",
    dropped_queue_total "counter" "Payloads dropped because a queue was full or their queueing delay exceeded the limit.",
    dropped_rate_total "counter" "Payloads dropped because their client exceeded its rate or its bytes.",
    dropped_memory_total "counter" "Payloads dropped because the limit of all queues together was reached.",
    dropped_busy_total "counter" "Payloads towards a target dropped because the socket's send buffer was full.",
    datagrams_unknown_total "counter" "HTTP datagrams with an unknown request or context.",
    errors_protocol_total "counter" "Streams and connections aborted because the peer violated the protocol.",
    queued_bytes "gauge" "Bytes in queues; a payload counts as at least 64 bytes.",
    queued_peak_bytes "gauge" "Maximum number of bytes in queues so far.",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendered_text_contains_every_counter_once() {
        let metrics = Metrics::default();
        metrics.requests_total.add(3);
        metrics.queued_bytes.add(9);
        metrics.queued_bytes.subtract(4);
        let text = metrics.render();
        assert!(text.contains("# TYPE fullpipe_masque_requests_total counter\nfullpipe_masque_requests_total 3\n"));
        assert!(text.contains("# TYPE fullpipe_masque_queued_bytes gauge\nfullpipe_masque_queued_bytes 5\n"));
        assert_eq!(text.lines().count(), 23 * 3 + 2);
        metrics.refusals_total.add("dns_error");
        metrics.refusals_total.add("dns_error");
        assert!(metrics.render().ends_with("counter\nfullpipe_masque_refusals_total{error=\"dns_error\"} 2\n"));
        assert_eq!((metrics.refusals_total.get("dns_error"), metrics.refusals_total.get("x")), (2, 0));
    }
}
