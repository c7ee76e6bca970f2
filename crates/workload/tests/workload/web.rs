//! Web pages over an ideal pipe of a byte per microsecond and 10 ms: load times by hand.
//!
//! A connection is established 20 ms after it is opened, and what was written before leaves then. Requests are of 350 bytes,
//! response headers of 300.

use crate::way::Way;
use fullpipe_units::{Duration, Instant, Rate, Stream};
use fullpipe_workload::{
    Application, Completion, Figure, Http, Law, ObjectSpec, PageSource, WebClient, WebCompletions, WebServer, WebSpec,
};

pub(crate) fn pipe() -> Way {
    let mut way = Way::new(Duration::from_millis(10), |_, _| Some(Rate::from_megabits_per_second(8)));
    way.shared = Some([Instant::ZERO; 2]);
    way
}

pub(crate) fn random() -> Stream {
    Stream::new(9, "flow", "workload")
}

pub(crate) fn pair(spec: &WebSpec) -> (WebClient, WebServer) {
    (WebClient::new(spec, random()).unwrap(), WebServer::new(spec, random()).unwrap())
}

pub(crate) fn run(spec: &WebSpec, way: &mut Way) -> WebClient {
    let (mut client, mut server) = pair(spec);
    way.start(&mut [&mut client, &mut server], Instant::NEVER);
    assert_eq!(way.live_connections(), 0, "everything is closed");
    client
}

pub(crate) fn figure(figures: &[Figure], name: &str) -> f64 {
    figures.iter().find(|figure| figure.name == name).map_or(f64::NAN, |figure| figure.value)
}

pub(crate) fn object(bytes: u64, main: bool, after: &[u32]) -> ObjectSpec {
    ObjectSpec { bytes, main, after: after.to_vec(), stream: None, urgency: None, above_fold: false }
}

pub(crate) fn listed(http: Http, objects: Vec<ObjectSpec>) -> WebSpec {
    WebSpec { source: PageSource::Listed(objects), reading_s: Law::constant(0.0), ..WebSpec::new(http) }
}

/// Begin and end in microseconds.
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

/// A document of 10 000 bytes and twelve objects of 5000 that are known when it has come.
fn document_and_twelve(http: Http) -> WebSpec {
    let mut objects = vec![object(10_000, true, &[])];
    objects.extend((0..12).map(|_| object(5000, false, &[0])));
    listed(http, objects)
}

#[test]
fn http_1_with_six_connections_by_hand() {
    let client = run(&document_and_twelve(Http::One), &mut pipe());
    // Document: handshake 20, request 0.35 + 10, response 10.3 + 10 = 50.65 ms. The connection asks on at once; five more take
    // a handshake: 70.65, and their requests one after another, the first at the server at 81.0 ms. Its own next request is
    // answered by then (61.0 + 5.3). From 81.0 the pipe never rests, for a next request is there long before those five
    // responses are through: the six others. Eleven responses of 5.3 and 10 ms: 149.3.
    assert_eq!(spans(&client), [(0, 149_300)]);
    let figures = client.figures(Instant::ZERO);
    assert!((figure(&figures, "page_load_mean_s") - 0.1493).abs() < 1e-12);
    assert!((figure(&figures, "page_main_mean_s") - 0.05065).abs() < 1e-12);
    assert_eq!(figure(&figures, "pages"), 1.0);
    assert_eq!(client.completions()[0].bytes, 10_000 + 12 * 5000);
}

#[test]
fn http_1_opens_no_more_connections_than_it_may_and_no_more_than_it_needs() {
    for (most, objects, opened) in [(6, 12, 6), (6, 3, 3), (1, 12, 1), (100, 12, 12)] {
        let mut list = vec![object(10_000, true, &[])];
        list.extend((0..objects).map(|_| object(5000, false, &[0])));
        let spec = WebSpec { connections: most, ..listed(Http::One, list) };
        let mut way = pipe();
        run(&spec, &mut way);
        assert_eq!(way.opened(), opened, "{most} {objects}");
    }
}

#[test]
fn http_2_by_hand() {
    let client = run(&document_and_twelve(Http::Two), &mut pipe());
    // Frames have 9 bytes: request 359, responses 309 + 10 009 and 309 + 5009. Document: 20 + 0.359 + 10 + 10.318 + 10 =
    // 50.677. Then all twelve at once, the first at the server at 61.036: 12 x 5.318 + 10.
    assert_eq!(spans(&client), [(0, 61_036 + 63_816 + 10_000)]);
    assert!((figure(&client.figures(Instant::ZERO), "page_main_mean_s") - 0.050_677).abs() < 1e-12);
}

#[test]
fn http_3_by_hand() {
    let mut way = pipe();
    let client = run(&document_and_twelve(Http::Three), &mut way);
    // The control stream begins with 3 bytes. A frame's header is a byte and 2 for lengths of 64 to 16 383: request 353,
    // responses 303 + 10 003 and 303 + 5003. Document: 20 + 0.003 + 0.353 + 10 + 10.306 + 10 = 50.662. Then twelve: the first
    // at the server at 61.015, 12 x 5.306 + 10.
    assert_eq!(spans(&client), [(0, 61_015 + 63_672 + 10_000)]);
    assert_eq!(way.opened(), 1);
    // The document's response is urgent, the others as usual; what is not incremental goes in the order of streams.
    let urgencies: Vec<(u64, u8)> = way.priorities.iter().map(|((_, stream), set)| (*stream, set.urgency)).collect();
    let expected: Vec<(u64, u8)> = std::iter::once((1, 1)).chain((2..=13).map(|stream| (stream, 3))).collect();
    assert_eq!(urgencies, expected);
}

#[test]
fn streams_by_hand() {
    // Three objects on each stream, turn and turn about. The request leaves at 20 ms and is at the server at 30.35, where the first
    // object goes, 5.3; before that is through the second stream has been heard of, too, and all goes in the page's order:
    // the first stream's third object after 3 x 5.3 and 2 x 20.3, the second's 20.3 later; and 10 ms.
    let on = |bytes, stream| ObjectSpec { stream: Some(stream), ..object(bytes, stream == 0, &[]) };
    let objects = (0..6).map(|n| if n % 2 == 0 { on(5000, 0) } else { on(20_000, 1) }).collect();
    let mut spec = listed(Http::Streams, objects);
    spec.completions = WebCompletions::Streams;
    let mut way = pipe();
    let client = run(&spec, &mut way);
    assert_eq!(spans(&client), [(0, 30_350 + 15_900 + 40_600 + 10_000), (0, 30_350 + 15_900 + 60_900 + 10_000)]);
    let bytes: Vec<u64> = client.completions().iter().map(|completion| completion.bytes).collect();
    assert_eq!(bytes, [15_000, 60_000]);
    let figures = client.figures(Instant::ZERO);
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
fn large_embedded_objects_go_on_the_second_stream() {
    let objects = vec![
        object(50_000, true, &[]),
        object(11_999, false, &[0]),
        object(12_000, false, &[0]),
        object(1, false, &[0]),
    ];
    let mut spec = listed(Http::Streams, objects);
    spec.completions = WebCompletions::Streams;
    spec.stream_latencies = vec![Duration::from_millis(50)];
    let mut way = pipe();
    let client = run(&spec, &mut way);
    let bytes: Vec<u64> = client.completions().iter().map(|completion| completion.bytes).collect();
    assert_eq!(bytes, [50_000 + 11_999 + 1, 12_000]);
    assert!(way.priorities.iter().all(|(_, set)| set.latency == Some(Duration::from_millis(50))));
}

#[test]
fn what_depends_on_others_waits_for_them() {
    // A diamond: 0; 1 and 2 after it; 3 after both. Each by its own size. HTTP/3 with sizes up to 16 383 bytes: 306 more.
    let objects = vec![
        object(1000, true, &[]),
        object(2000, false, &[0]),
        object(9000, false, &[0]),
        object(3000, false, &[1, 2, 1]),
        object(500, false, &[3]),
    ];
    for http in [Http::One, Http::Two, Http::Three] {
        let mut spec = listed(http, objects.clone());
        spec.completions = WebCompletions::Objects;
        let client = run(&spec, &mut pipe());
        let of = |bytes| span(client.completions().iter().find(|one| one.bytes == bytes).expect("it has come"));
        assert_eq!(client.completions().len(), 5);
        assert_eq!(of(2000).0, of(1000).1);
        assert_eq!(of(9000).0, of(1000).1);
        assert_eq!(of(3000).0, of(9000).1.max(of(2000).1));
        assert_eq!(of(500).0, of(3000).1);
    }
    // The last two by hand, over HTTP/3: 0 by 20.356 + 10 + 1.306 + 10 = 41.662; 1 and 2 are both through by 41.662 + 10.353 +
    // 2.306 + 9.306 + 10 = 73.627; each of the others then takes 20.353 and its size.
    let client = run(&listed(Http::Three, objects), &mut pipe());
    assert_eq!(spans(&client), [(0, 73_627 + 20_353 + 3306 + 20_353 + 806)]);
}

#[test]
fn a_chain_takes_a_round_trip_for_each() {
    let objects: Vec<ObjectSpec> =
        (0u32..5).map(|n| object(1000, true, &n.checked_sub(1).map_or(vec![], |n| vec![n]))).collect();
    let mut way = pipe();
    let client = run(&listed(Http::One, objects), &mut way);
    // 20 for the handshake, and five times 0.35 + 10 + 1.3 + 10.
    assert_eq!(spans(&client), [(0, 20_000 + 5 * 21_650)]);
    assert_eq!(way.opened(), 1);
}

#[test]
fn pages_follow_after_reading_times_on_the_same_connections_or_new_ones() {
    for (keep_connections, opened, second) in [(true, 1, 21_650), (false, 3, 41_650)] {
        let mut spec = listed(Http::One, vec![object(1000, true, &[])]);
        spec.pages = Some(3);
        spec.keep_connections = keep_connections;
        spec.reading_s = Law::constant(0.5);
        let mut way = pipe();
        let client = run(&spec, &mut way);
        // The first with a handshake: 20 + 0.35 + 10 + 1.3 + 10 = 41.65; 500 ms later the next.
        let third = 541_650 + second + 500_000;
        assert_eq!(spans(&client), [(0, 41_650), (541_650, 541_650 + second), (third, third + second)]);
        assert_eq!(way.opened(), opened);
        assert_eq!(client.progress().completed, Some(Instant::from_nanos((third + second) * 1000)));
    }
}

#[test]
fn http_2_lets_the_urgent_overtake() {
    // A large picture is asked for first, then the document. The server hears of the picture at 30.359 ms and makes a frame
    // of headers and one of data, 309 + 16 393 bytes, more than the low-water mark, through at 47.061. Then the document:
    // 309 + 10 009, there at 67.379.
    let objects = vec![object(100_000, false, &[]), object(10_000, true, &[])];
    let mut spec = listed(Http::Two, objects);
    spec.completions = WebCompletions::Objects;
    // The picture's other frames: 100 000 - 16 384 bytes in six frames, 83 616 + 54, after the document's: 57.379 + 83.67.
    assert_eq!(spans(&run(&spec, &mut pipe())), [(0, 67_379), (0, 151_049)]);
    // Without a mark all of the picture is written before the document is asked for: 309 + 100 063 first.
    spec.low_water_bytes = 1 << 40;
    assert_eq!(spans(&run(&spec, &mut pipe())), [(0, 140_731), (0, 151_049)]);
}

#[test]
fn http_2_takes_incremental_ones_in_turn() {
    // Two of two frames. The first frame of the first goes before the second is asked for (until 47.061 ms).
    let mut spec = listed(Http::Two, vec![object(32_768, false, &[]), object(32_768, false, &[])]);
    spec.completions = WebCompletions::Objects;
    // One after the other: 16 393; then 309 + 2 x 16 393.
    assert_eq!(spans(&run(&spec, &mut pipe())), [(0, 73_454), (0, 106_549)]);
    // In turn: 309 + 16 393 of the second, then the first's last frame, then the second's.
    spec.incremental = true;
    assert_eq!(spans(&run(&spec, &mut pipe())), [(0, 90_156), (0, 106_549)]);
}

#[test]
fn no_more_requests_than_the_server_allows() {
    for http in [Http::Two, Http::Three] {
        let mut spec = listed(http, (0..5).map(|_| object(1000, true, &[])).collect());
        spec.concurrent = 1;
        let client = run(&spec, &mut pipe());
        // As a chain. HTTP/2: 0.359 + 10 + 0.309 + 1.009 + 10; HTTP/3: 0.353 + 10 + 0.303 + 1.003 + 10, and 3 bytes at first.
        let expected = if http == Http::Two { 20_000 + 5 * 21_677 } else { 20_003 + 5 * 21_659 };
        assert_eq!(spans(&client), [(0, expected)], "{http:?}");
    }
}

#[test]
fn a_peer_that_allows_few_streams_is_asked_again() {
    let mut spec = listed(Http::Three, (0..20).map(|_| object(1000, true, &[])).collect());
    spec.completions = WebCompletions::Objects;
    let mut way = pipe();
    way.most_streams = 3;
    let client = run(&spec, &mut way);
    assert_eq!(client.completions().len(), 20);
}

#[test]
fn a_stream_without_objects_of_a_page_has_no_load_time() {
    let on_second = ObjectSpec { stream: Some(1), ..object(1000, false, &[]) };
    let mut spec = listed(Http::Streams, vec![on_second]);
    spec.completions = WebCompletions::Streams;
    let client = run(&spec, &mut pipe());
    assert_eq!(client.completions().iter().map(|one| one.bytes).collect::<Vec<_>>(), [0, 1000]);
    let figures = client.figures(Instant::ZERO);
    assert!(figure(&figures, "stream_1_load_median_s").is_nan());
    assert!(figure(&figures, "stream_2_load_median_s") > 0.04);
}

#[test]
fn pages_overlap_when_they_begin_at_intervals() {
    let mut spec = listed(Http::Streams, vec![object(20_000, true, &[])]);
    (spec.pages, spec.page_interval_s) = (Some(3), Some(Law::constant(0.015)));
    let client = run(&spec, &mut pipe());
    // The handshake ends at 20 ms. Pages begin at 0, 15 and 30 ms, whatever has come. The first two requests leave at 20 ms, one
    // behind the other, and are at the server at 30.35 and 30.7 ms; the third leaves at 30 ms. A response has 20 300 bytes, 20.3 ms,
    // and the three follow each other without a pause: 30.35 + 20.3 + 10 = 60.65, 80.95 and 101.25 ms.
    assert_eq!(spans(&client), [(0, 60_650), (15_000, 80_950), (30_000, 101_250)]);
    // One after another they begin when the one before is complete.
    spec.page_interval_s = None;
    assert_eq!(spans(&run(&spec, &mut pipe()))[1].0, 60_650);
}

#[test]
fn an_interval_longer_than_a_page_leaves_a_pause() {
    let mut spec = listed(Http::Streams, vec![object(20_000, true, &[])]);
    (spec.pages, spec.page_interval_s, spec.reading_s) = (Some(2), Some(Law::constant(1.0)), Law::constant(5.0));
    // Request 0.35 + 10, response 20.3 + 10 ms; the reading time has no effect.
    assert_eq!(spans(&run(&spec, &mut pipe())), [(0, 60_650), (1_000_000, 1_040_650)]);
}

#[test]
fn the_time_above_the_fold_ends_with_its_last_object() {
    let mut spec = document_and_twelve(Http::Two);
    let figures = run(&spec, &mut pipe()).figures(Instant::ZERO);
    assert!(figure(&figures, "page_fold_mean_s").is_nan(), "only on request");
    let PageSource::Listed(objects) = &mut spec.source else { panic!("a list") };
    objects[..4].iter_mut().for_each(|object| object.above_fold = true);
    let figures = run(&spec, &mut pipe()).figures(Instant::ZERO);
    // The document: handshake 20, request of 359 bytes 0.359 + 10, response of 309 + 10 009 bytes 10.318 + 10: 50.677 ms. Twelve
    // requests leave together; the first is at the server 10.359 ms later, at 61.036. Responses of 309 + 5009 bytes follow each
    // other in the order of their requests: the third object is there 3 x 5.318 + 10 ms later, at 86.99 ms.
    assert!((figure(&figures, "page_fold_mean_s") - 0.086_990).abs() < 1e-9, "{figures:?}");
    assert!((figure(&figures, "page_main_mean_s") - 0.050_677).abs() < 1e-9);
}

#[test]
fn intervals_that_make_no_sense_are_refused() {
    let interval = |seconds| WebSpec { page_interval_s: Some(Law::constant(seconds)), ..WebSpec::new(Http::Two) };
    assert!(WebClient::new(&interval(1.0), random()).is_ok());
    let refused = [
        interval(0.0),
        interval(-1.0),
        WebSpec { keep_connections: false, ..interval(1.0) },
        WebSpec { pages: None, ..interval(1.0) },
        WebSpec { above_fold: Some(1.5), ..WebSpec::new(Http::Two) },
    ];
    for spec in refused {
        assert!(WebClient::new(&spec, random()).is_err(), "{spec:?}");
    }
}
