//! Load times of web pages over TCP, compared with hand calculations.
//!
//! The link has 10 Mbit/s and 10 ms. A packet has 54 bytes in addition to its payload (IPv4 20, TCP with timestamps 32, framing 2); a
//! byte takes 0.8 us. Requests have 350 bytes, response headers 300.

use crate::common::outcome;
use fullpipe_lab::Outcome;

const DOCUMENT_AND_SIX: &str = "objects = [
    { size = '5kB', main = true }, { size = '5kB', after = [1] }, { size = '5kB', after = [1] }, { size = '5kB', after = [1] },
    { size = '5kB', after = [1] }, { size = '5kB', after = [1] }, { size = '5kB', after = [1] },
]";

fn run(flow: &str) -> Outcome {
    outcome(&format!(
        "duration = '600s'
        [topology]
        kind = 'chain'
        [[topology.link]]
        rate = '10Mbit/s'
        delay = '10ms'
        queue = 'unlimited'
        [[flow]]
        name = 'web'
        from = 'source'
        to = 'sink'
        workload = 'web'
        {flow}"
    ))
}

/// Duration of each row of `completions.csv` in nanoseconds.
fn took(outcome: &Outcome) -> Vec<u64> {
    outcome.completion_rows().map(|row| (row.completion.completed - row.completion.started).as_nanos()).collect()
}

fn figure(outcome: &Outcome, name: &str) -> f64 {
    outcome.figure_rows().find(|row| row.name == name).map_or(f64::NAN, |row| row.value)
}

#[test]
fn load_time_over_six_open_connections_matches_a_hand_calculation() {
    let outcome = run(&format!("http = '1.1'\npages = 2\nreading = '0s'\n{DOCUMENT_AND_SIX}"));
    // The second page. Request 404 bytes: 323.2 us. Response of 5300 bytes in three segments of 1448 and one of 956: 5516 bytes, 4412.8
    // us. The document takes 20 ms + 323.2 + 4412.8, and 43.2 for the acknowledgment of the first page's last segment, which is sent
    // before the request on another connection: 24 779.2 us. Then six consecutive requests, the first with the acknowledgment of the
    // document, and six responses without a pause: 20 ms + 323.2 + 6 x 4412.8 = 46 800 us.
    assert_eq!(took(&outcome)[1], 24_779_200 + 46_800_000);
    // Six connections, in both directions.
    assert_eq!(outcome.flow_rows().count(), 12);
    assert_eq!((figure(&outcome, "pages"), figure(&outcome, "pages_failed")), (2.0, 0.0));
}

#[test]
fn load_time_with_new_connections_matches_a_hand_calculation() {
    let outcome = run(&format!("http = '1.1'\n{DOCUMENT_AND_SIX}"));
    // SYN and SYN-ACK have 62 bytes, 49.6 us; the handshake's acknowledgment, 43.2 us, precedes the request. The document: 20 ms + 99.2 +
    // 43.2 + 323.2 + 20 ms + 4412.8 = 44 878.4 us. Its connection sends the next request, whose response is sent from 10 323.2 us later
    // until 14 736. Meanwhile the SYNs of five others have arrived, whose SYN-ACKs follow that response. The first at 14 736 + 49.6 + 10
    // ms, then acknowledgment and request, 366.4 us, 10 ms, five responses without a pause and 10 ms: 67 216 us.
    assert_eq!(
        took(&outcome),
        [44_878_400 + 14_736_000 + 49_600 + 10_000_000 + 366_400 + 10_000_000 + 22_064_000 + 10_000_000]
    );
}

#[test]
fn load_time_over_http_2_matches_a_hand_calculation() {
    let outcome = run(&format!("http = '2'\npages = 2\nreading = '0s'\n{DOCUMENT_AND_SIX}"));
    // Request with its frame header 359 bytes, 413 on the wire: 330.4 us. Response 309 + 5009 = 5318 bytes in four segments: 5534 on the
    // wire, 4427.2 us. Document: 24 757.6 us. Six requests are 2154 bytes: a segment of 1448 bytes, which contains four requests and
    // takes 1201.6 us, and one of 706. Four responses are 21 272 bytes in 15 segments, two are 10 636 in 8. They follow each other
    // without a pause: 31 908 + 23 x 54 bytes, 26 520 us.
    assert_eq!(took(&outcome)[1], 24_757_600 + 1_201_600 + 10_000_000 + 26_520_000 + 10_000_000);
    assert_eq!(outcome.flow_rows().count(), 2);
}

#[test]
fn urgent_object_overtakes_while_the_link_stays_busy() {
    // A request for 2 MB, and slightly later one for a document of 20 kB. At 10 Mbit/s the document alone would take 40 ms of round trips
    // and 17 ms; as the last byte of 2 MB, 1.7 s. The difference is due to the data in flight and the low-water mark.
    let objects = "objects = [{ size = '2MB' }, { size = '20kB', main = true }]\ncompletions = 'objects'";
    let urgent = run(&format!("http = '2'\n{objects}"));
    let later = run(&format!("http = '2'\nlow_water = '100MB'\nmain_urgency = 3\n{objects}"));
    let [document, picture] = took(&urgent)[..] else { panic!("two objects") };
    assert!(document < 150_000_000, "{document}");
    let [picture_first, document_last] = took(&later)[..] else { panic!("two objects") };
    assert!(document_last > 1_600_000_000, "{document_last}");
    // The total time is the same: the mark does not leave the link idle. 2 020 600 bytes of objects and headers.
    assert!(picture.abs_diff(document_last) < 3_000_000, "{picture} {document_last} {picture_first}");
    let least = (2_020_600.0 * 1502.0 / 1448.0 * 0.8e3) as u64 + 40_000_000;
    assert!((least..least + 30_000_000).contains(&picture), "{picture} {least}");
}

#[test]
fn random_pages_complete_under_loss_and_tls() {
    for (http, tls) in [("1.1", "none"), ("2", "none"), ("1.1", "full"), ("2", "full")] {
        let outcome = outcome(&format!(
            "duration = '600s'
            [topology]
            kind = 'chain'
            [[topology.link]]
            rate = '20Mbit/s'
            delay = '10ms'
            queue = '100kB'
            loss = {{ kind = 'bernoulli', probability = 0.01 }}
            reverse = {{ loss = {{ kind = 'bernoulli', probability = 0.01 }} }}
            [[flow]]
            from = 'source'
            to = 'sink'
            workload = 'web'
            http = '{http}'
            pages = 10
            reading = '100ms'
            completions = 'objects'
            tcp = {{ tls = '{tls}' }}"
        ));
        assert_eq!((figure(&outcome, "pages"), figure(&outcome, "pages_failed")), (10.0, 0.0), "{http} {tls}");
        // The bytes of the response direction are those of the objects, and all headers.
        let objects: u64 = outcome.completion_rows().map(|row| row.completion.bytes).sum();
        let carried: u64 =
            outcome.flow_rows().filter(|row| row.flow.ends_with("reverse")).map(|row| row.counters.rx_bytes).sum();
        assert!(carried > objects && carried < objects + objects / 5, "{http} {tls}: {objects} {carried}");
    }
}

fn over_quic(http: &str, scheduler: &str, pages: u32, flow: &str) -> Outcome {
    outcome(&format!(
        "duration = '600s'
        [topology]
        kind = 'chain'
        [[topology.link]]
        rate = '1Mbit/s'
        delay = '5ms'
        queue = '100packets'
        [[flow]]
        name = 'web'
        from = 'source'
        to = 'sink'
        protocol = 'quic'
        quic = {{ stack = 'model', scheduler = '{scheduler}', congestion = 'newreno' }}
        workload = 'web'
        http = '{http}'
        pages = {pages}
        reading = '0s'
        {flow}"
    ))
}

#[test]
fn random_pages_complete_over_the_quic_model() {
    for http in ["3", "streams"] {
        let outcome = over_quic(http, "priorities", 5, "completions = 'objects'");
        assert_eq!((figure(&outcome, "pages"), figure(&outcome, "pages_failed")), (5.0, 0.0), "{http}");
        let objects: u64 = outcome.completion_rows().map(|row| row.completion.bytes).sum();
        let carried: u64 =
            outcome.flow_rows().filter(|row| row.flow.ends_with("reverse")).map(|row| row.counters.rx_bytes).sum();
        assert!(carried > objects && carried < objects + objects / 5, "{http}: {objects} {carried}");
        // One connection.
        assert_eq!(outcome.flow_rows().count(), 2);
    }
}

#[test]
fn first_stream_is_sent_first_with_a_priority_scheduler() {
    // 300 kB on stream 2 are written before 30 kB on stream 1: a page with a large picture and a document. In the order of writing the
    // document waits for the picture, 2.4 s; otherwise it takes its own 0.24 s, plus slow start and handshake.
    let page = "objects = [{ size = '300kB' }, { size = '30kB', main = true }]\ncompletions = 'streams'";
    let seconds = |scheduler| {
        let outcome = over_quic("streams", scheduler, 1, page);
        took(&outcome).iter().map(|nanos| *nanos as f64 / 1e9).collect::<Vec<f64>>()
    };
    let (fifo, pfifo) = (seconds("fifo"), seconds("pfifo"));
    assert!(fifo[0] > 2.64, "{fifo:?}");
    assert!((0.24..0.5).contains(&pfifo[0]), "{pfifo:?}");
    // The total time is the same.
    assert!((fifo[0].max(fifo[1]) - pfifo[1]).abs() < 0.05, "{fifo:?} {pfifo:?}");
}
