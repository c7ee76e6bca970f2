//! Compares the load estimate with sums computed by hand.

use fullpipe_tmix::load::{Bins, estimate, find_steady_start, is_steady};
use fullpipe_tmix::{ConnectionVector, LoadDirection, Overhead, Side, TraceReader};
use fullpipe_units::Duration;

fn one(text: &str) -> ConnectionVector {
    TraceReader::new(text.as_bytes(), "x").next().expect("there is one").expect("it is well formed")
}

#[test]
fn sequential_connection_has_the_load_computed_by_hand() {
    // At 1 Mbit/s a byte takes 8 us, so 245 bytes take 1960 us and 510 bytes 4080 us.
    let connection = one("S 6851 1 21217 555382\nI 0 0 245\nA 0 51257 510\nA 6304943 0 0\n");
    let found = estimate(&connection, &Overhead::default(), 1e6);
    let [request, answer] = found.bursts[..] else { panic!("{found:?}") };
    assert_eq!((request.side, request.at), (Side::Initiator, Duration::from_micros(6_851)));
    assert_eq!((answer.side, answer.at), (Side::Acceptor, Duration::from_micros(6_851 + 1_960 + 51_257)));
    // Each burst has one segment, two more headers to open and close, and one acknowledgment in return.
    assert_eq!((request.bits, request.ack_bits), (8 * (245 + 3 * 40), 8 * 40));
    assert_eq!((answer.bits, answer.ack_bits), (8 * (510 + 3 * 40), 8 * 40));
    assert_eq!(found.lifetime, Duration::from_micros(1_960 + 51_257 + 4_080 + 6_304_943));
    assert_eq!(found.bits_in_direction(LoadDirection::Forward), 8 * (245 + 120 + 40));
    assert_eq!(found.bits_in_direction(LoadDirection::Reverse), 8 * (510 + 120 + 40));
    assert_eq!(found.bits_in_direction(LoadDirection::Both), 8 * (245 + 510 + 320));
}

#[test]
fn segments_have_the_size_of_the_connection() {
    // 3000 bytes are 7 segments of 496 with 4 acknowledgments, or 3 segments of 1460 with 2. The smaller MSS applies.
    for (mss, segments, acks) in [("m 496 1460\n", 7, 4), ("m 1460 1460\n", 3, 2), ("", 3, 2)] {
        let found = estimate(&one(&format!("S 0 1 1 1\n{mss}I 0 0 3000\n")), &Overhead::default(), 1e6);
        assert_eq!(found.bursts[0].bits, 8 * (3_000 + (segments + 2) * 40), "{mss}");
        assert_eq!(found.bursts[0].ack_bits, 8 * acks * 40, "{mss}");
    }
}

#[test]
fn sides_of_a_concurrent_connection_have_independent_clocks() {
    let connection = one("C 10 2 2 1 1\nI 0 0 1000\nA 0 0 125\nI 500 0 1\nA 100 0 1\nI 7 0 0\nA 9 0 0\n");
    let found = estimate(&connection, &Overhead::default(), 1e6);
    let at: Vec<u64> = found.bursts.iter().map(|burst| burst.at.as_nanos() / 1000).collect();
    assert_eq!(at, [10, 10, 10 + 8_000 + 500, 10 + 1_000 + 100]);
    assert_eq!(found.lifetime, Duration::from_micros(8_000 + 500 + 8 + 7));
    // A side sends the opening segments only once.
    assert_eq!(found.bursts[2].bits, 8 * (1 + 40));
}

#[test]
fn receive_wait_follows_the_peers_unit_and_send_wait_the_own_unit() {
    // The acceptor's second unit follows 300 us after the end of its first, whatever the initiator sends in between.
    let connection = one("S 0 2 1 1\nA 0 0 125\nI 0 9 125\nA 5000 0 1\nI 0 4 1\n");
    let at: Vec<u64> = estimate(&connection, &Overhead::default(), 1e6)
        .bursts
        .iter()
        .map(|burst| burst.at.as_nanos() / 1000)
        .collect();
    assert_eq!(at, [0, 1_009, 6_000, 6_012]);
}

#[test]
fn bursts_fill_bins_and_only_bits_beyond_the_end_are_lost() {
    // Bins of 1 s at 8 Mbit/s hold 8 Mbit. A unit of 3 MB at 1.5 s has 2055 segments of 1460 and two more headers.
    let connection = one("S 1500000 1 1 1\nI 0 0 3000000\n");
    let found = estimate(&connection, &Overhead::default(), 1e6);
    let bits = 8 * (3_000_000 + 2_057 * 40);
    let mut bins = Bins::new(Duration::from_secs(1), 8e6, LoadDirection::Forward, 6);
    bins.add(&found);
    assert_eq!(bins.bits(), [0, 8_000_000, 8_000_000, 8_000_000, bits - 24_000_000, 0]);
    let mut short = Bins::new(Duration::from_secs(1), 8e6, LoadDirection::Forward, 3);
    short.add(&found);
    assert_eq!(short.bits(), [0, 8_000_000, 8_000_000]);
    // A unit far beyond the last bin adds nothing.
    bins.add(&estimate(&one("S 10000000000000 1 1 1\nI 0 0 1099511627776\n"), &Overhead::default(), 1e-9));
    assert_eq!(bins.bits().iter().sum::<u64>(), bits);
}

#[test]
fn load_is_steady_where_halves_and_thirds_agree() {
    assert!(is_steady(&[1.0, 1.0, 1.04, 1.0], 0.05));
    assert!(!is_steady(&[1.0, 1.0, 1.1, 1.1], 0.05));
    // The halves are equal, the thirds are not.
    assert!(!is_steady(&[1.0, 2.0, 2.0, 1.0], 0.05));
    assert!(!is_steady(&[1.0], 0.05));
    assert!(!is_steady(&[], 0.05));
    // A ramp of four bins, followed by a constant level.
    let values: Vec<f64> = (0..24).map(|bin| f64::from(bin.min(4))).collect();
    let first = find_steady_start(&values, 0.05).expect("the values become steady");
    // From bin 3 on (3, then twenty 4s) the mean of the first third is (3 + 6 x 4) / 7 = 3.86, which is 3.6 % below the others:
    // steady. From bin 2 on (2, 3, then 4s) it is (2 + 3 + 5 x 4) / 7 = 3.57: not steady.
    assert_eq!(first, 3);
    assert_eq!(find_steady_start(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0], 0.05), None);
}
