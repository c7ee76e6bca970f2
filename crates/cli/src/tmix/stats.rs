//! `fullpipe tmix stats`.

use super::arguments::StatsArguments;
use super::failure;
use super::files::{self, ProgressCounter};
use crate::exit::Failure;
use crate::output::{self, print_line};
use fullpipe::tmix::TraceReader;
use fullpipe::tmix::stats::{IntegerDistribution, Statistics};
use serde_json::{Value, json};

const PERCENTILES: [(&str, f64); 4] = [("p10", 0.1), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

pub(super) fn stats(arguments: &StatsArguments) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for path in &arguments.files {
        let input = files::open(path)?;
        let name = path.display().to_string();
        let mut shown = ProgressCounter::new(arguments.reading.quiet, &name, input.length);
        let mut reader = TraceReader::new(input.reader, &name).skip_malformed(arguments.reading.skip_bad);
        let mut statistics = Statistics::default();
        while let Some(connection) = reader.next() {
            statistics.add(&connection.map_err(failure)?);
            shown.at(reader.offset());
        }
        shown.done(&format!("{name}: {} connections read", statistics.connections()));
        files::tell_skipped(&name, reader.skipped(), reader.first_skipped());
        if arguments.json {
            rows.push(row(&name, reader.skipped(), &statistics));
        } else {
            table(&name, reader.skipped(), &statistics);
        }
    }
    if arguments.json {
        output::json(&Value::Array(rows));
    }
    Ok(())
}

/// Returns the name, the unit, the divisor to the unit, and the distribution of each quantity.
fn distributions(of: &Statistics) -> [(&'static str, &'static str, f64, &IntegerDistribution); 8] {
    [
        ("gap", "ms", 1e3, &of.gap_us),
        ("initiator_adu", "bytes", 1.0, &of.initiator_adu_bytes),
        ("acceptor_adu", "bytes", 1.0, &of.acceptor_adu_bytes),
        ("connection", "bytes", 1.0, &of.connection_bytes),
        ("epochs", "count", 1.0, &of.epochs),
        ("rtt", "ms", 1e3, &of.rtt_us),
        ("receive_wait", "ms", 1e3, &of.receive_wait_us),
        ("send_wait", "s", 1e6, &of.send_wait_us),
    ]
}

fn row(name: &str, skipped: u64, of: &Statistics) -> Value {
    let [forward, reverse] = of.offered_bps();
    let mut row = json!({
        "file": name,
        "connections": of.connections(),
        "sequential": of.sequential,
        "concurrent": of.concurrent,
        "skipped": skipped,
        "out_of_order": of.out_of_order,
        "acceptor_first": of.acceptor_first,
        "lossy": of.lossy,
        "greatest_loss": of.greatest_loss,
        "small_segments": of.small_segments,
        "first_start_s": of.first_start.unwrap_or_default().as_secs_f64(),
        "last_start_s": of.last_start.as_secs_f64(),
        // A sum above 2^64 is not exact.
        "initiator_bytes": u64::try_from(of.initiator_bytes).unwrap_or(u64::MAX),
        "acceptor_bytes": u64::try_from(of.acceptor_bytes).unwrap_or(u64::MAX),
        "offered_forward_bps": forward,
        "offered_reverse_bps": reverse,
    });
    for (what, unit, divisor, distribution) in distributions(of) {
        let mut values = json!({
            "unit": unit,
            "count": distribution.count(),
            "mean": distribution.mean() / divisor,
            "max": distribution.max() as f64 / divisor,
        });
        for (percentile, fraction) in PERCENTILES {
            values[percentile] = json!(distribution.quantile(fraction) as f64 / divisor);
        }
        row[what] = values;
    }
    row
}

fn table(name: &str, skipped: u64, of: &Statistics) {
    let [forward, reverse] = of.offered_bps();
    print_line!("{name}");
    print_line!(
        "  {} connections: {} sequential, {} concurrent; {skipped} left out, {} out of order",
        of.connections(),
        of.sequential,
        of.concurrent,
        of.out_of_order
    );
    print_line!(
        "  {} with the acceptor first, {} with loss (at most {}), {} with segments below 1000 bytes",
        of.acceptor_first,
        of.lossy,
        of.greatest_loss,
        of.small_segments
    );
    print_line!("  starts from {} to {:.6} s", seconds(of), of.last_start.as_secs_f64());
    print_line!("  from initiators {} bytes, from acceptors {} bytes", of.initiator_bytes, of.acceptor_bytes);
    print_line!(
        "  offered unscaled, with headers and acknowledgements: {:.3} Mbit/s forward, {:.3} Mbit/s reverse",
        forward / 1e6,
        reverse / 1e6
    );
    let head = ["count", "mean", "p10", "p50", "p90", "p99", "max"];
    print_line!("  {:22}{}", "", head.map(|word| format!("{word:>12}")).concat());
    for (what, unit, divisor, distribution) in distributions(of) {
        let what = if unit == "count" { what.to_string() } else { format!("{what} ({unit})") };
        let mut cells = vec![format!("{:>12}", distribution.count()), number(distribution.mean() / divisor)];
        for (_, fraction) in PERCENTILES {
            cells.push(number(distribution.quantile(fraction) as f64 / divisor));
        }
        cells.push(number(distribution.max() as f64 / divisor));
        print_line!("  {:22}{}", what.replace('_', " "), cells.concat());
    }
}

fn seconds(of: &Statistics) -> String {
    format!("{:.6}", of.first_start.unwrap_or_default().as_secs_f64())
}

/// Integers unchanged, other numbers with three decimals.
fn number(value: f64) -> String {
    if value == value.round() { format!("{value:>12.0}") } else { format!("{value:>12.3}") }
}
