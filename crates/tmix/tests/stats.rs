//! Compares the statistics of small traces with values computed by hand.

use fullpipe_tmix::{TraceReader, stats::Statistics};
use fullpipe_units::Duration;

fn statistics(text: &str) -> Statistics {
    let mut statistics = Statistics::default();
    for connection in TraceReader::new(text.as_bytes(), "x") {
        statistics.add(&connection.expect("it is well formed"));
    }
    statistics
}

#[test]
fn small_trace_has_the_statistics_computed_by_hand() {
    let found = statistics(
        "SEQ 1000000 2 1 1\nm 496 496\nr 30000\nl 0 0.25\n> 100\nt 10\n< 1000\nt 20\n> 100\nt 7\n< 3000\nt 500\n\
         CONC 3000000 1 1 1 2\nm 1460 1460\nr 50000\nl 0 0\nc< 10\nc> 20\nt> 100\nt< 200\n\
         SEQ 2000000 1 1 3\n< 40\n",
    );
    assert_eq!((found.connections(), found.sequential, found.concurrent), (3, 2, 1));
    assert_eq!((found.acceptor_first, found.lossy, found.small_segments, found.out_of_order), (2, 1, 1, 1));
    assert_eq!((found.greatest_loss, found.span()), (0.25, Duration::from_secs(2)));
    assert_eq!((found.initiator_bytes, found.acceptor_bytes), (220, 4_050));
    assert_eq!((found.gap_us.count(), found.gap_us.max()), (1, 2_000_000));
    assert_eq!((found.initiator_adu_bytes.count(), found.initiator_adu_bytes.max()), (3, 100));
    assert_eq!((found.acceptor_adu_bytes.count(), found.acceptor_adu_bytes.quantile(0.5)), (4, 40));
    assert_eq!((found.connection_bytes.quantile(0.0), found.connection_bytes.max()), (30, 4_200));
    assert_eq!((found.epochs.mean(), found.epochs.max()), (1.5, 2));
    assert_eq!(found.rtt_us.mean(), 40_000.0);
    // The sequential connection has three receive-waits. The closes have send-waits: 500, 100 and 200, and 1 for the
    // missing wait.
    assert_eq!((found.receive_wait_us.count(), found.receive_wait_us.max()), (3, 20));
    assert_eq!((found.send_wait_us.count(), found.send_wait_us.mean()), (4, 801.0 / 4.0));
    // Towards acceptors over 2 s: 220 bytes in 2 + 1 segments, and 2 more for each of two openings. Acknowledgments of
    // the opposite direction: 1000 bytes in segments of 496 are 3 segments (2 acknowledgments), 3000 bytes are 7 (4),
    // 10 and 40 bytes are 1 each.
    let forward = 8 * (220 + 40 * (2 + 1 + 2 + 2) + 40 * (2 + 4 + 1 + 1));
    assert_eq!(found.offered_bps()[0], f64::from(forward) / 2.0);
}

#[test]
fn empty_and_very_large_traces_have_statistics() {
    let none = statistics("");
    assert_eq!((none.connections(), none.span(), none.offered_bps()), (0, Duration::ZERO, [0.0, 0.0]));
    assert_eq!((none.epochs.mean(), none.epochs.quantile(0.5), none.epochs.max()), (0.0, 0, 0));
    let mut text = "SEQ 0 1 1 1\n".to_string();
    text.push_str(&"> 1099511627776\n".repeat(5_000));
    let found = statistics(&text);
    assert_eq!(found.initiator_bytes, 5_000u128 << 40);
    assert_eq!(found.connection_bytes.max(), 5_000 << 40);
}
