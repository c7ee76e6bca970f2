//! Units of metrics and their SI prefixes. Records contain base units (bit/s, s, B), and readers expect Mbit/s, ms and
//! kB. Each axis or column has a single prefix, which its largest value determines, so that its numbers are comparable.

use crate::numbers::{power_of_ten, superscript};

/// A unit as it is shown, and its possible prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    base: String,
    prefixes: Prefixes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefixes {
    /// k, M, G and larger.
    Large,
    /// m, µ, n.
    Small,
    /// A power of ten before the unit, such as "10⁶ packets".
    Power,
    /// No prefix (percent, or a unit that already has a prefix).
    Fixed,
}

/// A unit with the prefix for a set of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScaledUnit {
    /// The unit in a heading: "Mbit/s"; empty for a dimensionless number.
    pub(crate) label: String,
    /// Exponent of the power of ten by which values are divided.
    exponent: i32,
}

impl Unit {
    /// Parses the unit column of `summary.csv` or the suffix of a metric's name.
    pub(crate) fn new(name: &str) -> Self {
        let (base, prefixes) = match name.trim() {
            "" | "1" | "ratio" => ("", Prefixes::Power),
            "bps" | "bit/s" | "b/s" => ("bit/s", Prefixes::Large),
            "B" | "byte" | "bytes" => ("B", Prefixes::Large),
            "B/s" | "bytes/s" => ("B/s", Prefixes::Large),
            "bit" | "bits" => ("bit", Prefixes::Large),
            "s" | "second" | "seconds" => ("s", Prefixes::Small),
            "Hz" | "hz" => ("Hz", Prefixes::Large),
            "%" | "percent" => ("%", Prefixes::Fixed),
            "db" | "dB" => ("dB", Prefixes::Fixed),
            "packets" => ("packets", Prefixes::Power),
            "us" => ("µs", Prefixes::Fixed),
            other => (other, Prefixes::Fixed),
        };
        Self { base: base.to_owned(), prefixes }
    }

    /// Returns the unit at the end of a metric's name: `goodput_bps`, `srtt_s`, `cwnd_bytes`.
    pub(crate) fn of_metric(name: &str) -> Self {
        match name.rsplit_once('_') {
            Some((
                _,
                ending @ ("bps" | "bytes" | "s" | "packets" | "us" | "ms" | "ns" | "db" | "percent" | "hz" | "bits"),
            )) => Self::new(ending),
            _ if name == "packets" || name == "drops" || name == "marks" => Self::new("packets"),
            _ => Self { base: String::new(), prefixes: Prefixes::Power },
        }
    }

    /// Returns the prefix for values of up to `largest`. If there is such a prefix, the largest value is then at least
    /// 1 and below 1000.
    pub(crate) fn scale_for(&self, largest: f64) -> ScaledUnit {
        let thousands = thousands_below(largest.abs());
        let prefix = match (self.prefixes, thousands) {
            (Prefixes::Large, n @ 1..=5) => ["k", "M", "G", "T", "P"][n as usize - 1],
            (Prefixes::Small, n @ -3..=-1) => ["m", "µ", "n"][-n as usize - 1],
            // Counts are readable up to a million, and ratios down to a thousandth.
            (Prefixes::Power, -1..=1) | (Prefixes::Large | Prefixes::Small | Prefixes::Fixed, _) => {
                return self.unscaled();
            }
            (Prefixes::Power, n) => {
                let power = format!("10{}", superscript(n * 3));
                let label = if self.base.is_empty() { power } else { format!("{power} {}", self.base) };
                return ScaledUnit { label, exponent: n * 3 };
            }
        };
        ScaledUnit { label: format!("{prefix}{}", self.base), exponent: thousands * 3 }
    }

    /// Returns the unit without a prefix.
    pub(crate) fn unscaled(&self) -> ScaledUnit {
        ScaledUnit { label: self.base.clone(), exponent: 0 }
    }
}

impl ScaledUnit {
    /// Returns a value in this unit.
    pub(crate) fn value(&self, base_value: f64) -> f64 {
        // This is a single, correctly rounded operation with an exact power of ten, so that 0.3 s is exactly 300 ms.
        if self.exponent >= 0 {
            base_value / power_of_ten(self.exponent)
        } else {
            base_value * power_of_ten(-self.exponent)
        }
    }

    /// Appends the unit to a number: "9.4 Mbit/s".
    pub(crate) fn with_unit(&self, number: &str) -> String {
        if self.label.is_empty() { number.to_owned() } else { format!("{number} {}", self.label) }
    }

    /// Appends the unit to a name: "Throughput (Mbit/s)".
    pub(crate) fn heading(&self, name: &str) -> String {
        // The unit is redundant in "Received packets (packets)".
        let said = name.to_lowercase().split(' ').any(|word| word == self.label);
        if self.label.is_empty() || said { name.to_owned() } else { format!("{name} ({})", self.label) }
    }
}

/// Returns the n for which 1000^n <= value < 1000^(n+1); 0 for a value of zero.
fn thousands_below(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    (-30..30).rev().find(|n| value >= power_of_ten(n * 3)).unwrap_or(0)
}

/// Suffixes of metric names that are units.
const UNIT_ENDINGS: [&str; 16] = [
    "bps", "kbps", "mbps", "gbps", "kibps", "mibps", "gibps", "bytes", "bits", "s", "ms", "us", "ns", "db", "percent",
    "hz",
];

/// Returns the name of a metric in words: `goodput_bps` is "Goodput", `queue_delay_s` is "Queue delay".
pub(crate) fn words(metric: &str) -> String {
    let stem = match metric.rsplit_once('_') {
        Some((stem, ending)) if UNIT_ENDINGS.contains(&ending) => stem,
        _ => metric,
    };
    let (whose, stem) = match stem.strip_prefix("proxy_") {
        Some(own) => ("proxy's ", own),
        None => ("", stem),
    };
    let stem = match stem {
        "cwnd" => "congestion window",
        "ssthresh" => "slow-start threshold",
        "srtt" => "smoothed round-trip time",
        "inflight" => "bytes in flight",
        "tx_packets" => "packets sent",
        "rx_packets" => "packets received",
        "opposite_tx_packets" => "packets sent, opposite direction",
        "opposite_lost_packets" => "packets lost, opposite direction",
        other => other,
    };
    let mut text = format!("{whose}{}", in_words(stem));
    if let Some(first) = text.get(..1) {
        let upper = first.to_uppercase();
        text.replace_range(..1, &upper);
    }
    text
}

/// Returns the words of a name as they are written within a sentence: "buffer", "BDP share".
pub(crate) fn in_words(name: &str) -> String {
    name.split(['_', ' ']).map(with_capitals).collect::<Vec<_>>().join(" ")
}

/// Returns an abbreviation as standards write it, and any other word unchanged.
fn with_capitals(word: &str) -> String {
    const ABBREVIATIONS: [&str; 25] = [
        "ack", "aqm", "bbr", "bdp", "bler", "cpu", "cqi", "ecn", "harq", "http", "l4s", "lte", "mcs", "mss", "mtu",
        "nat", "quic", "rlc", "rto", "rtt", "sinr", "tcp", "udp", "ue", "ip",
    ];
    if ABBREVIATIONS.contains(&word) { word.to_uppercase() } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_unit_has_the_prefix_for_the_largest_value() {
        let check = |unit: &str, largest, label: &str, value, shown| {
            let scaled = Unit::new(unit).scale_for(largest);
            assert_eq!((scaled.label.as_str(), scaled.value(value)), (label, shown), "{unit} {largest}");
        };
        check("bps", 814_200_000.0, "Mbit/s", 814_200_000.0, 814.2);
        check("bit/s", 1e9, "Gbit/s", 5e8, 0.5);
        check("s", 0.113, "ms", 0.3, 300.0);
        check("s", 17e-6, "µs", 17e-6, 17.0);
        check("s", 5400.0, "s", 60.0, 60.0);
        check("B", 999.0, "B", 1.0, 1.0);
        check("B", 1500.0, "kB", 1500.0, 1.5);
        check("packets", 100_000.0, "packets", 5.0, 5.0);
        check("packets", 2e6, "10⁶ packets", 1e6, 1.0);
        check("", 2e-5, "10⁻⁶", 2e-5, 20.0);
        check("Mibit/s", 776.5, "Mibit/s", 776.5, 776.5);
        check("s", 0.0, "s", 0.0, 0.0);
        check("s", 1e300, "s", 1.0, 1.0);
        assert_eq!(Unit::new("s").scale_for(0.02).heading("Delay"), "Delay (ms)");
        assert_eq!(Unit::new("packets").scale_for(5.0).heading("Packets offered"), "Packets offered");
        assert_eq!(Unit::new("").scale_for(5.0).heading("Index"), "Index");
        assert_eq!(in_words("l4s_share"), "L4S share");
    }

    #[test]
    fn metric_names_give_units_and_words() {
        assert_eq!(Unit::of_metric("cwnd_bytes").unscaled().label, "B");
        assert_eq!(Unit::of_metric("goodput_bps").unscaled().label, "bit/s");
        assert_eq!(Unit::of_metric("cqi").unscaled().label, "");
        assert_eq!(Unit::of_metric("tb_errors").unscaled().label, "");
        assert_eq!(words("queue_delay_s"), "Queue delay");
        assert_eq!(words("cwnd_bytes"), "Congestion window");
        assert_eq!(words("sinr_db"), "SINR");
        assert_eq!(words("mcs"), "MCS");
        assert_eq!(words("proxy_cwnd_bytes"), "Proxy's congestion window");
        assert_eq!(words("throughput_mibps"), "Throughput");
        assert_eq!(words("éa_s"), "éa");
        assert_eq!(words("_"), " ");
    }
}
