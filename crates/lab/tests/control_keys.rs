//! Keys of congestion controls in `[tcp]`: each reaches the connections and has the effect of its specification.

use crate::common::{mean, outcome};

/// A flow over 50 Mbit/s with a round-trip time of 84 ms and a buffer of 20 bandwidth-delay products (BDP).
fn scenario(tcp: &str, flow: &str, duration: &str) -> String {
    format!(
        "duration = '{duration}'
        processing_jitter = '0s'
        [topology]
        kind = 'dumbbell'
        access = {{ rate = '1Gbit/s', delay = '1ms' }}
        bottleneck = {{ rate = '50Mbit/s', delay = '40ms', queue = '20BDP' }}
        [tcp]
        {tcp}
        [[flow]]
        name = 'f'
        from = 'left1'
        to = 'right1'
        workload = 'bulk'
        {flow}
        [[probe]]
        flow = 'f'
        metrics = ['cwnd_bytes']"
    )
}

#[test]
fn rate_limited_increase_bounds_a_window_that_the_application_does_not_use() {
    // 5 Mbit/s for 84 ms are 36.3 segments of 1448 bytes: 37 or 38 are in flight. In slow start the limit is twice as many
    // (draft-ietf-ccwg-ratelimited-increase-09, section 3). Without the key, NewReno grows with each acknowledgment (RFC 5681).
    let window = |key: &str| {
        let tcp = format!("congestion = 'newreno'\n{key}");
        let limited = "limits = [{ at = '0s', rate = '5Mbit/s' }]\nwrite_size = '1448B'";
        mean(&outcome(&scenario(&tcp, limited, "10s")), "cwnd_bytes", 8.0) / 1448.0
    };
    let with = window("rate_limited_increase = true");
    assert!((74.0..=76.0).contains(&with), "{with}");
    assert!(window("") > 1000.0);
}

#[test]
fn keys_of_controls_reach_connections_of_quic() {
    // 7 Mbit/s of payload for 84 ms are 61.3 packets of at most 1200 bytes: 62 or 63 are in flight. In slow start the limit is twice
    // as many. Without the key, the window grows only while it limits sending (RFC 9002 section 7.8), to one or two packets more.
    let packets = |key: &str| {
        let limited = format!(
            "protocol = 'quic'\nlimits = [{{ at = '0s', rate = '7Mbit/s' }}]\nwrite_size = '1200B'
            quic = {{ stack = 'model', congestion = 'newreno', hystart = false, initial_mtu = '1242B', largest_mtu = '1242B', {key} }}"
        );
        mean(&outcome(&scenario("", &limited, "10s")), "cwnd_bytes", 8.0) / 1242.0
    };
    let (with, without) = (packets("rate_limited_increase = true"), packets(""));
    assert!((123.0..=127.0).contains(&with), "{with}");
    assert!((62.0..=65.0).contains(&without), "{without}");
    // As over TCP, with buffers larger than path and queue (11 MB).
    let lost = |stack: &str, key: &str| {
        let quic = format!(
            "protocol = 'quic'\nquic = {{ stack = '{stack}', congestion = 'bic', send_buffer = '32MiB', receive_buffer = '32MiB', {key} }}"
        );
        outcome(&scenario("", &quic, "10s")).flow_rows().map(|row| row.counters.lost_packets).sum::<u64>()
    };
    for stack in ["model", "noq"] {
        assert_eq!(lost(stack, "hystart_all = true"), 0, "{stack}");
        assert!(lost(stack, "") > 100, "{stack}");
    }
}

#[test]
fn an_application_with_small_writes_fills_the_window_before_its_limit() {
    // 50 Mbit/s for 8 s without slow start (10 packets doubled to 363 in six round trips of 84 ms: 0.5 s), less headers (60 of 1242 bytes).
    let goodput = |transport: &str| {
        let limited = format!("limits = [{{ at = '9s', pause = true }}]\nwrite_size = '1000B'\n{transport}");
        outcome(&scenario("", &limited, "9s")).flow_rows().map(|row| row.counters.rx_bytes).sum::<u64>() as f64 * 8.0
            / 9.0
    };
    for transport in ["", "protocol = 'quic'\nquic = { stack = 'model' }"] {
        assert!(goodput(transport) > 40e6, "{transport}: {}", goodput(transport));
    }
}

#[test]
fn a_pause_leaves_at_most_16_kib_and_one_write_unsent() {
    // When the pause begins, 16 384 to 17 384 bytes are unsent and at most 14 480 in flight, which the receive buffer limits.
    // Packets have 52 bytes of headers for each 1448 bytes.
    let received = |duration: &str| {
        let limited = "limits = [{ at = '5s', pause = true }]\nwrite_size = '1000B'";
        outcome(&scenario("receive_buffer = '14480B'", limited, duration))
            .flow_rows()
            .map(|row| row.counters.rx_bytes)
            .sum::<u64>()
    };
    let after = received("9s") - received("5s");
    assert!((16_384..=(17_384 + 14_480) * 1500 / 1448 + 1500).contains(&after), "{after}");
}

#[test]
fn hystart_all_ends_the_slow_start_of_bic_before_the_buffer_is_full() {
    // A window above one BDP raises the round-trip time. HyStart++ detects this within the next round, at a window of at most 4 BDP.
    // Five conservative rounds multiply it by at most 1.25^5 = 3.1: 12.2 BDP, less than the 21 BDP of path and buffer. Slow start
    // without HyStart++ overruns them.
    let lost = |key: &str| {
        let outcome = outcome(&scenario(&format!("congestion = 'bic'\n{key}"), "", "10s"));
        outcome.flow_rows().map(|row| row.counters.lost_packets).sum::<u64>()
    };
    assert_eq!(lost("hystart_all = true"), 0);
    assert!(lost("") > 100);
}
