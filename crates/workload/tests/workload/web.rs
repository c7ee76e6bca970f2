//! Tests of web pages over an ideal pipe with one byte per microsecond and 10 ms of delay: load times computed by hand.
//!
//! A connection is established 20 ms after it is opened; data written earlier are sent then. Requests have 350 bytes, response
//! headers 300.

use crate::way::Way;
use fullpipe_units::{Duration, Instant, RandomStream, Rate};
use fullpipe_workload::{
    Application, BoundedDistribution, Completion, CompletionUnit, MetricValue, ObjectSpec, PageProtocol, PageSource,
    WebClient, WebServer, WebSpec,
};

pub(crate) fn pipe() -> Way {
    let mut way = Way::new(Duration::from_millis(10), |_, _| Some(Rate::from_megabits_per_second(8)));
    way.shared = Some([Instant::ZERO; 2]);
    way
}

pub(crate) fn random() -> RandomStream {
    RandomStream::new(9, "flow", "workload")
}

pub(crate) fn pair(spec: &WebSpec) -> (WebClient, WebServer) {
    (WebClient::new(spec, random()).unwrap(), WebServer::new(spec, random()).unwrap())
}

pub(crate) fn run(spec: &WebSpec, way: &mut Way) -> WebClient {
    let (mut client, mut server) = pair(spec);
    way.start(&mut [&mut client, &mut server], Instant::NEVER);
    assert_eq!(way.live_connections(), 0, "all connections are closed");
    client
}

pub(crate) fn figure(figures: &[MetricValue], name: &str) -> f64 {
    figures.iter().find(|figure| figure.name == name).map_or(f64::NAN, |figure| figure.value)
}

pub(crate) fn object(bytes: u64, main: bool, after: &[u32]) -> ObjectSpec {
    ObjectSpec { bytes, main, after: after.to_vec(), stream: None, urgency: None, above_fold: false }
}

pub(crate) fn listed(http: PageProtocol, objects: Vec<ObjectSpec>) -> WebSpec {
    WebSpec { source: PageSource::List(objects), reading_s: BoundedDistribution::constant(0.0), ..WebSpec::new(http) }
}

/// Start and end in microseconds.
fn span(completion: &Completion) -> (u64, u64) {
    let micros = |at: Instant| {
        assert_eq!(at.as_nanos() % 1000, 0);
        at.as_nanos() / 1000
    };
    (micros(completion.started), micros(completion.completed))
}

fn spans(client: &WebClient) -> Vec<(u64, u64)> {
    client.completions().iter().map(span).collect()
}

/// A document of 10 000 bytes, and twelve objects of 5000 bytes that depend on it.
fn document_and_twelve(http: PageProtocol) -> WebSpec {
    let mut objects = vec![object(10_000, true, &[])];
    objects.extend((0..12).map(|_| object(5000, false, &[0])));
    listed(http, objects)
}

#[test]
fn http_1_with_six_connections_has_the_load_time_computed_by_hand() {
    let client = run(&document_and_twelve(PageProtocol::Http1), &mut pipe());
    // Document: handshake 20, request 0.35 + 10, response 10.3 + 10 = 50.65 ms. The connection sends the next request at once.
    // Five more connections need a handshake, until 70.65; their requests follow each other, and the first arrives at 81.0 ms. By
    // then the first connection's next request is answered (61.0 + 5.3). From 81.0 on the pipe is never idle, since each next
    // request arrives long before those five responses are sent. Eleven responses of 5.3 and 10 ms: 149.3.
    assert_eq!(spans(&client), [(0, 149_300)]);
    let figures = client.metric_values(Instant::ZERO);
    assert!((figure(&figures, "page_load_mean_s") - 0.1493).abs() < 1e-12);
    assert!((figure(&figures, "page_main_mean_s") - 0.05065).abs() < 1e-12);
    assert_eq!(figure(&figures, "pages"), 1.0);
    assert_eq!(client.completions()[0].bytes, 10_000 + 12 * 5000);
}

#[test]
fn http_1_opens_only_permitted_and_needed_connections() {
    for (most, objects, opened) in [(6, 12, 6), (6, 3, 3), (1, 12, 1), (100, 12, 12)] {
        let mut list = vec![object(10_000, true, &[])];
        list.extend((0..objects).map(|_| object(5000, false, &[0])));
        let spec = WebSpec { connections: most, ..listed(PageProtocol::Http1, list) };
        let mut way = pipe();
        run(&spec, &mut way);
        assert_eq!(way.opened(), opened, "{most} {objects}");
    }
}

#[test]
fn http_2_has_the_load_time_computed_by_hand() {
    let client = run(&document_and_twelve(PageProtocol::Http2), &mut pipe());
    // Frame headers have 9 bytes: request 359, responses 309 + 10 009 and 309 + 5009. Document: 20 + 0.359 + 10 + 10.318 + 10 =
    // 50.677. Then all twelve are requested at once, and the first request arrives at 61.036: 12 x 5.318 + 10.
    assert_eq!(spans(&client), [(0, 61_036 + 63_816 + 10_000)]);
    assert!((figure(&client.metric_values(Instant::ZERO), "page_main_mean_s") - 0.050_677).abs() < 1e-12);
}

#[test]
fn http_3_has_the_load_time_computed_by_hand() {
    let mut way = pipe();
    let client = run(&document_and_twelve(PageProtocol::Http3), &mut way);
    // The control stream begins with 3 bytes. A frame header has one byte for the type and 2 for lengths of 64 to 16 383: request
    // 353, responses 303 + 10 003 and 303 + 5003. Document: 20 + 0.003 + 0.353 + 10 + 10.306 + 10 = 50.662. Then twelve follow;
    // the first request arrives at 61.015: 12 x 5.306 + 10.
    assert_eq!(spans(&client), [(0, 61_015 + 63_672 + 10_000)]);
    assert_eq!(way.opened(), 1);
    // The document's response has urgency 1, the others the default. Responses that are not incremental are sent in the order of
    // streams.
    let urgencies: Vec<(u64, u8)> = way.priorities.iter().map(|((_, stream), set)| (*stream, set.urgency)).collect();
    let expected: Vec<(u64, u8)> = std::iter::once((1, 1)).chain((2..=13).map(|stream| (stream, 3))).collect();
    assert_eq!(urgencies, expected);
}

#[test]
fn streams_have_the_load_times_computed_by_hand() {
    // Each stream has three objects, in alternation. The request is sent at 20 ms and arrives at 30.35. The first object of 5.3
    // ms follows; before it is sent, the second stream is open too. So all objects are sent in the page's order: the first
    // stream's third object after 3 x 5.3 and 2 x 20.3, the second's 20.3 later; and 10 ms.
    let on = |bytes, stream| ObjectSpec { stream: Some(stream), ..object(bytes, stream == 0, &[]) };
    let objects = (0..6).map(|n| if n % 2 == 0 { on(5000, 0) } else { on(20_000, 1) }).collect();
    let mut spec = listed(PageProtocol::Streams, objects);
    spec.completions = CompletionUnit::Streams;
    let mut way = pipe();
    let client = run(&spec, &mut way);
    assert_eq!(spans(&client), [(0, 30_350 + 15_900 + 40_600 + 10_000), (0, 30_350 + 15_900 + 60_900 + 10_000)]);
    let bytes: Vec<u64> = client.completions().iter().map(|completion| completion.bytes).collect();
    assert_eq!(bytes, [15_000, 60_000]);
    let figures = client.metric_values(Instant::ZERO);
    for (name, value) in [
        ("stream_1_load_median_s", 0.09685),
        ("stream_2_load_median_s", 0.11715),
        ("page_load_median_s", 0.11715),
        ("page_main_mean_s", 0.09685),
    ] {
        assert!((figure(&figures, name) - value).abs() < 1e-12, "{name}");
    }
    assert_eq!(way.opened(), 1);
    let urgencies: Vec<_> = way.priorities.iter().map(|(place, set)| (*place, set.urgency)).collect();
    assert_eq!(urgencies, [((0, 0), 0), ((0, 1), 1)]);
}

#[test]
fn large_embedded_objects_use_the_second_stream() {
    let objects = vec![
        object(50_000, true, &[]),
        object(11_999, false, &[0]),
        object(12_000, false, &[0]),
        object(1, false, &[0]),
    ];
    let mut spec = listed(PageProtocol::Streams, objects);
    spec.completions = CompletionUnit::Streams;
    spec.stream_latencies = vec![Duration::from_millis(50)];
    let mut way = pipe();
    let client = run(&spec, &mut way);
    let bytes: Vec<u64> = client.completions().iter().map(|completion| completion.bytes).collect();
    assert_eq!(bytes, [50_000 + 11_999 + 1, 12_000]);
    assert!(way.priorities.iter().all(|(_, set)| set.latency == Some(Duration::from_millis(50))));
}

#[test]
fn objects_wait_for_their_dependencies() {
    // A diamond: 0; 1 and 2 after it; 3 after both. Each has a distinct size. HTTP/3 adds 306 bytes for sizes up to 16 383 bytes.
    let objects = vec![
        object(1000, true, &[]),
        object(2000, false, &[0]),
        object(9000, false, &[0]),
        object(3000, false, &[1, 2, 1]),
        object(500, false, &[3]),
    ];
    for http in [PageProtocol::Http1, PageProtocol::Http2, PageProtocol::Http3] {
        let mut spec = listed(http, objects.clone());
        spec.completions = CompletionUnit::Objects;
        let client = run(&spec, &mut pipe());
        let of =
            |bytes| span(client.completions().iter().find(|one| one.bytes == bytes).expect("the object has arrived"));
        assert_eq!(client.completions().len(), 5);
        assert_eq!(of(2000).0, of(1000).1);
        assert_eq!(of(9000).0, of(1000).1);
        assert_eq!(of(3000).0, of(9000).1.max(of(2000).1));
        assert_eq!(of(500).0, of(3000).1);
    }
    // The last two over HTTP/3: 0 arrives at 20.356 + 10 + 1.306 + 10 = 41.662. 1 and 2 have both arrived at 41.662 + 10.353 +
    // 2.306 + 9.306 + 10 = 73.627. Each of the others then takes 20.353 and its size.
    let client = run(&listed(PageProtocol::Http3, objects), &mut pipe());
    assert_eq!(spans(&client), [(0, 73_627 + 20_353 + 3306 + 20_353 + 806)]);
}

#[test]
fn chain_takes_a_round_trip_per_object() {
    let objects: Vec<ObjectSpec> =
        (0u32..5).map(|n| object(1000, true, &n.checked_sub(1).map_or(vec![], |n| vec![n]))).collect();
    let mut way = pipe();
    let client = run(&listed(PageProtocol::Http1, objects), &mut way);
    // 20 for the handshake, and five times 0.35 + 10 + 1.3 + 10.
    assert_eq!(spans(&client), [(0, 20_000 + 5 * 21_650)]);
    assert_eq!(way.opened(), 1);
}

#[test]
fn pages_follow_after_reading_times_on_kept_or_new_connections() {
    for (keep_connections, opened, second) in [(true, 1, 21_650), (false, 3, 41_650)] {
        let mut spec = listed(PageProtocol::Http1, vec![object(1000, true, &[])]);
        spec.pages = Some(3);
        spec.keep_connections = keep_connections;
        spec.reading_s = BoundedDistribution::constant(0.5);
        let mut way = pipe();
        let client = run(&spec, &mut way);
        // The first page includes a handshake: 20 + 0.35 + 10 + 1.3 + 10 = 41.65. The next starts 500 ms later.
        let third = 541_650 + second + 500_000;
        assert_eq!(spans(&client), [(0, 41_650), (541_650, 541_650 + second), (third, third + second)]);
        assert_eq!(way.opened(), opened);
        assert_eq!(client.progress().completed, Some(Instant::from_nanos((third + second) * 1000)));
    }
}

#[test]
fn http_2_lets_urgent_responses_overtake() {
    // A large picture is requested first, then the document. The picture's request arrives at 30.359 ms, and the server writes a
    // HEADERS frame and a DATA frame, 309 + 16 393 bytes. They exceed the low-water mark and are sent by 47.061. Then the
    // document follows: 309 + 10 009, which arrives at 67.379.
    let objects = vec![object(100_000, false, &[]), object(10_000, true, &[])];
    let mut spec = listed(PageProtocol::Http2, objects);
    spec.completions = CompletionUnit::Objects;
    // The picture's other frames follow the document's: 100 000 - 16 384 bytes in six frames, 83 616 + 54: 57.379 + 83.67.
    assert_eq!(spans(&run(&spec, &mut pipe())), [(0, 67_379), (0, 151_049)]);
    // Without a mark the whole picture is written before the document is requested: 309 + 100 063 first.
    spec.low_water_bytes = 1 << 40;
    assert_eq!(spans(&run(&spec, &mut pipe())), [(0, 140_731), (0, 151_049)]);
}

#[test]
fn http_2_interleaves_incremental_responses() {
    // Two objects of two frames. The first frame of the first object is sent before the second is requested (until 47.061 ms).
    let mut spec = listed(PageProtocol::Http2, vec![object(32_768, false, &[]), object(32_768, false, &[])]);
    spec.completions = CompletionUnit::Objects;
    // One after the other: 16 393; then 309 + 2 x 16 393.
    assert_eq!(spans(&run(&spec, &mut pipe())), [(0, 73_454), (0, 106_549)]);
    // Interleaved: 309 + 16 393 of the second, then the first's last frame, then the second's.
    spec.incremental = true;
    assert_eq!(spans(&run(&spec, &mut pipe())), [(0, 90_156), (0, 106_549)]);
}

#[test]
fn client_sends_no_more_parallel_requests_than_permitted() {
    for http in [PageProtocol::Http2, PageProtocol::Http3] {
        let mut spec = listed(http, (0..5).map(|_| object(1000, true, &[])).collect());
        spec.concurrent = 1;
        let client = run(&spec, &mut pipe());
        // The requests form a chain. HTTP/2: 0.359 + 10 + 0.309 + 1.009 + 10. HTTP/3: 0.353 + 10 + 0.303 + 1.003 + 10, and 3
        // bytes at first.
        let expected = if http == PageProtocol::Http2 { 20_000 + 5 * 21_677 } else { 20_003 + 5 * 21_659 };
        assert_eq!(spans(&client), [(0, expected)], "{http:?}");
    }
}

#[test]
fn client_retries_when_the_peer_permits_few_streams() {
    let mut spec = listed(PageProtocol::Http3, (0..20).map(|_| object(1000, true, &[])).collect());
    spec.completions = CompletionUnit::Objects;
    let mut way = pipe();
    way.most_streams = 3;
    let client = run(&spec, &mut way);
    assert_eq!(client.completions().len(), 20);
}

#[test]
fn stream_without_objects_of_a_page_has_no_load_time() {
    let on_second = ObjectSpec { stream: Some(1), ..object(1000, false, &[]) };
    let mut spec = listed(PageProtocol::Streams, vec![on_second]);
    spec.completions = CompletionUnit::Streams;
    let client = run(&spec, &mut pipe());
    assert_eq!(client.completions().iter().map(|one| one.bytes).collect::<Vec<_>>(), [0, 1000]);
    let figures = client.metric_values(Instant::ZERO);
    assert!(figure(&figures, "stream_1_load_median_s").is_nan());
    assert!(figure(&figures, "stream_2_load_median_s") > 0.04);
}

#[test]
fn pages_with_an_interval_overlap() {
    let mut spec = listed(PageProtocol::Streams, vec![object(20_000, true, &[])]);
    (spec.pages, spec.page_interval_s) = (Some(3), Some(BoundedDistribution::constant(0.015)));
    let client = run(&spec, &mut pipe());
    // The handshake ends at 20 ms. Pages start at 0, 15 and 30 ms, even if earlier ones are not complete. The first two requests
    // are sent at 20 ms, one after the other, and arrive at 30.35 and 30.7 ms; the third is sent at 30 ms. A response has 20 300
    // bytes, 20.3 ms, and the three follow each other without a pause: 30.35 + 20.3 + 10 = 60.65, 80.95 and 101.25 ms.
    assert_eq!(spans(&client), [(0, 60_650), (15_000, 80_950), (30_000, 101_250)]);
    // Without an interval a page starts when the previous one is complete.
    spec.page_interval_s = None;
    assert_eq!(spans(&run(&spec, &mut pipe()))[1].0, 60_650);
}

#[test]
fn interval_longer_than_a_page_leaves_a_pause() {
    let mut spec = listed(PageProtocol::Streams, vec![object(20_000, true, &[])]);
    (spec.pages, spec.page_interval_s, spec.reading_s) =
        (Some(2), Some(BoundedDistribution::constant(1.0)), BoundedDistribution::constant(5.0));
    // Request 0.35 + 10, response 20.3 + 10 ms; the reading time has no effect.
    assert_eq!(spans(&run(&spec, &mut pipe())), [(0, 60_650), (1_000_000, 1_040_650)]);
}

#[test]
fn time_above_the_fold_ends_with_its_last_object() {
    let mut spec = document_and_twelve(PageProtocol::Http2);
    let figures = run(&spec, &mut pipe()).metric_values(Instant::ZERO);
    assert!(figure(&figures, "page_fold_mean_s").is_nan(), "only on request");
    let PageSource::List(objects) = &mut spec.source else { panic!("a list") };
    objects[..4].iter_mut().for_each(|object| object.above_fold = true);
    let figures = run(&spec, &mut pipe()).metric_values(Instant::ZERO);
    // The document: handshake 20, request of 359 bytes 0.359 + 10, response of 309 + 10 009 bytes 10.318 + 10: 50.677 ms. Twelve
    // requests are sent together; the first arrives 10.359 ms later, at 61.036. Responses of 309 + 5009 bytes follow in the order
    // of their requests: the third object arrives 3 x 5.318 + 10 ms later, at 86.99 ms.
    assert!((figure(&figures, "page_fold_mean_s") - 0.086_990).abs() < 1e-9, "{figures:?}");
    assert!((figure(&figures, "page_main_mean_s") - 0.050_677).abs() < 1e-9);
}

#[test]
fn invalid_intervals_are_rejected() {
    let interval = |seconds| WebSpec {
        page_interval_s: Some(BoundedDistribution::constant(seconds)),
        ..WebSpec::new(PageProtocol::Http2)
    };
    assert!(WebClient::new(&interval(1.0), random()).is_ok());
    let refused = [
        interval(0.0),
        interval(-1.0),
        WebSpec { keep_connections: false, ..interval(1.0) },
        WebSpec { pages: None, ..interval(1.0) },
        WebSpec { above_fold: Some(1.5), ..WebSpec::new(PageProtocol::Http2) },
    ];
    for spec in refused {
        assert!(WebClient::new(&spec, random()).is_err(), "{spec:?}");
    }
}
