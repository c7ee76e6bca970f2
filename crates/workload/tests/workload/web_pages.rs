//! Tests of drawn pages and of failures: every object is fetched once, and every page ends.

use crate::web::{figure, listed, object, pair, pipe, random, run};
use bytes::{BufMut, Bytes, BytesMut};
use fullpipe_transport::{CloseReason, Payload, TransportEvent};
use fullpipe_units::{Duration, Instant};
use fullpipe_workload::{
    Application, BoundedDistribution, CompletionUnit, Dependencies, Io, ObjectSpec, PageDistributions, PageProtocol,
    PageSource, StreamId, WebClient, WebServer, WebSpec,
};

const ALL: [PageProtocol; 4] = [PageProtocol::Http1, PageProtocol::Http2, PageProtocol::Http3, PageProtocol::Streams];

/// Ten drawn pages.
fn ten(http: PageProtocol) -> WebSpec {
    WebSpec { pages: Some(10), completions: CompletionUnit::Objects, ..WebSpec::new(http) }
}

/// Sizes of the objects that have arrived, in ascending order.
fn sizes(client: &WebClient) -> Vec<u64> {
    let mut sizes: Vec<u64> = client.completions().iter().map(|one| one.bytes).collect();
    sizes.sort_unstable();
    sizes
}

/// Fetches the pages of `spec` with each version of HTTP. Checks that each fetches the same objects, and that the bytes read are
/// the bytes written: objects, headers and frames.
fn every_object_once(spec: &dyn Fn(PageProtocol) -> WebSpec, send_buffer_bytes: u64) {
    let reference = sizes(&run(&spec(PageProtocol::Http1), &mut pipe()));
    assert!((100..5000).contains(&reference.len()), "{}", reference.len());
    for (http, keep_connections) in ALL.into_iter().flat_map(|http| [(http, true), (http, false)]) {
        let spec = WebSpec { keep_connections, ..spec(http) };
        let mut way = pipe();
        way.send_buffer_bytes = send_buffer_bytes;
        let client = run(&spec, &mut way);
        assert_eq!(sizes(&client), reference, "{http:?} {send_buffer_bytes}");
        let figures = client.metric_values(Instant::ZERO);
        let pages = spec.pages.unwrap_or_default() as f64;
        assert_eq!((figure(&figures, "pages"), figure(&figures, "pages_failed")), (pages, 0.0));
        let written: u64 = way.writes[1].iter().map(|&(_, bytes)| bytes).sum();
        assert_eq!(client.progress().received_bytes, written);
        let around = |bytes: &u64| match http {
            PageProtocol::Http1 | PageProtocol::Streams => 300,
            // A HEADERS frame, and a DATA frame for each 16 384 bytes.
            PageProtocol::Http2 => 309 + 9 * bytes.div_ceil(16_384),
            // A HEADERS frame with a 3-byte header; the DATA frame's type and a length of 1, 2 or 4 bytes.
            PageProtocol::Http3 if *bytes < 64 => 303 + 2,
            PageProtocol::Http3 if *bytes < 16_384 => 303 + 3,
            PageProtocol::Http3 => 303 + 5,
        };
        assert_eq!(written, reference.iter().map(|bytes| bytes + around(bytes)).sum::<u64>(), "{http:?}");
    }
}

#[test]
fn every_object_arrives_once_with_every_http_version() {
    // Ten pages have 10 x 2.09 x (1 + 31.9) = 690 objects on average.
    every_object_once(&ten, 1 << 40);
    every_object_once(&ten, 20_000);
}

#[test]
fn every_object_of_overlapping_pages_arrives_once() {
    let one_by_one = sizes(&run(&ten(PageProtocol::Http1), &mut pipe()));
    for http in ALL {
        // Pages of about 1.5 MB, which take 1.5 s on this pipe, start every 0.5 s.
        let spec = WebSpec { page_interval_s: Some(BoundedDistribution::constant(0.5)), ..ten(http) };
        let client = run(&spec, &mut pipe());
        assert_eq!(sizes(&client), one_by_one, "{http:?}");
        let figures = client.metric_values(Instant::ZERO);
        assert_eq!((figure(&figures, "pages"), figure(&figures, "pages_failed")), (10.0, 0.0), "{http:?}");
        // They overlap: their total time is less than the sum of their load times.
        let end = client.progress().completed.expect("an end").as_secs_f64();
        assert!(end < 0.7 * 10.0 * figure(&figures, "page_load_mean_s"), "{http:?}: {end}");
    }
}

#[test]
fn every_object_arrives_once_through_a_small_buffer() {
    // Objects are small because this test is slow.
    every_object_once(
        &|http| {
            let mut laws = PageDistributions::pries();
            (laws.main_bytes.max, laws.embedded_bytes.max) = (1500.0, 1500.0);
            WebSpec { pages: Some(3), source: PageSource::Random(laws), ..ten(http) }
        },
        700,
    );
}

#[test]
fn responses_are_complete_on_connections_in_any_order() {
    // HTTP/1.1 connections arrive in any order. Each response is one write, of the requested object.
    let mut way = pipe();
    way.handshake_delay = Box::new(|connection| Duration::from_millis(u64::from(7 * connection % 5) * 13));
    let client = run(&WebSpec { keep_connections: false, ..ten(PageProtocol::Http1) }, &mut way);
    let mut written: Vec<u64> = way.writes[1].iter().map(|&(_, bytes)| bytes - 300).collect();
    written.sort_unstable();
    assert_eq!(sizes(&client), written);
    assert!(way.opened() > 20, "{}", way.opened());
}

#[test]
fn dependencies_change_the_time_and_not_the_page() {
    let loads = |dependencies| {
        let spec = WebSpec { dependencies, reading_s: BoundedDistribution::constant(0.0), ..ten(PageProtocol::Http3) };
        let client = run(&spec, &mut pipe());
        (sizes(&client), figure(&client.metric_values(Instant::ZERO), "page_load_mean_s"))
    };
    let (objects, none) = loads(Dependencies::None);
    let (with_main, main) = loads(Dependencies::Main);
    let (with_turns, turns) = loads(Dependencies::MainSequential);
    let (with_chain, chain) = loads(Dependencies::Chain);
    assert!(objects == with_main && objects == with_turns && objects == with_chain);
    assert!(none < main && main < turns && turns < chain, "{none} {main} {turns} {chain}");
    // A chain takes at least a round trip of 20 ms for each object.
    assert!(chain > 0.020 * objects.len() as f64 / 10.0, "{chain}");
}

#[test]
fn lost_connection_fails_only_its_page() {
    for http in ALL {
        let mut spec = WebSpec { pages: Some(3), ..listed(http, vec![object(200_000, true, &[])]) };
        spec.reading_s = BoundedDistribution::constant(0.1);
        let (mut client, mut server) = pair(&spec);
        let mut way = pipe();
        way.start(&mut [&mut client, &mut server], Instant::from_nanos(100_000_000));
        // In the middle of the first page: the streams of its connection.
        let streams = way.live_connections() as u32;
        (0..streams).for_each(|stream| way.kill(stream, CloseReason::TimedOut));
        way.run(&mut [&mut client, &mut server], Instant::NEVER);
        let figures = client.metric_values(Instant::ZERO);
        let pages = (figure(&figures, "pages"), figure(&figures, "pages_failed"));
        assert_eq!(pages, (2.0, 1.0), "{http:?}");
        assert_eq!(way.opened(), 2, "{http:?}");
    }
}

/// Opens a connection, makes one write and finishes.
#[derive(Debug)]
struct Writes(Bytes, Option<CloseReason>);

impl Application for Writes {
    fn on_start(&mut self, io: &mut dyn Io) {
        let id = io.open();
        let stream = io.stream(id).unwrap();
        stream.write(Payload::Bytes(self.0.clone()));
        stream.finish();
    }
    fn on_stream(&mut self, _stream: StreamId, event: TransportEvent, _io: &mut dyn Io) {
        if let TransportEvent::Closed(reason) = event {
            self.1 = Some(reason);
        }
    }
}

/// A request of 350 bytes, preceded by a frame header for HTTP/2.
fn request(http: PageProtocol, method: &[u8; 4], page: u32, object: u32) -> Bytes {
    let mut bytes = BytesMut::new();
    if http == PageProtocol::Http2 {
        // Length 350, HEADERS, END_STREAM and END_HEADERS, stream 1.
        bytes.put_slice(&[0, 1, 94, 1, 5, 0, 0, 0, 1]);
    }
    let end = bytes.len() + 350;
    bytes.put_slice(method);
    bytes.put_u32(page);
    bytes.put_u32(object);
    bytes.resize(end, 0);
    bytes.freeze()
}

#[test]
fn invalid_requests_are_not_answered() {
    for http in [PageProtocol::Http1, PageProtocol::Http2, PageProtocol::Streams] {
        let answer = |bytes: Bytes| {
            let spec = listed(http, vec![object(1000, true, &[])]);
            let mut server = WebServer::new(&spec, random()).unwrap();
            let mut client = Writes(bytes, None);
            let mut way = pipe();
            way.start(&mut [&mut client, &mut server], Instant::NEVER);
            (client.1, way.writes[1].iter().map(|&(_, bytes)| bytes).sum::<u64>())
        };
        let frames = if http == PageProtocol::Http2 { 18 } else { 0 };
        let good = answer(request(http, b"GET ", 0, 0));
        assert_eq!(good, (Some(CloseReason::Finished), 1300 + frames), "{http:?}");
        let bad = (Some(CloseReason::Reset), 0);
        assert_eq!(answer(request(http, b"POST", 0, 0)), bad, "{http:?}");
        assert_eq!(answer(request(http, b"GET ", 1, 0)), bad, "{http:?}");
        assert_eq!(answer(Bytes::from(vec![0; 1000])), bad, "{http:?}");
        assert_eq!(answer(Bytes::from(vec![255; 1000])), bad, "{http:?}");
        if http != PageProtocol::Streams {
            assert_eq!(answer(request(http, b"GET ", 0, 1)), bad, "{http:?}");
        }
        // Half of a request gets no response.
        assert_eq!(answer(request(http, b"GET ", 0, 0).slice(..100)), (Some(CloseReason::Finished), 0), "{http:?}");
    }
}

/// Responds to any data with bytes, or closes the connection.
#[derive(Debug)]
struct Babbles(Option<Bytes>);

impl Application for Babbles {
    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        if event == TransportEvent::Readable
            && let Some(stream) = io.stream(stream)
        {
            while stream.read(u64::MAX).is_some() {}
            match &self.0 {
                Some(bytes) => {
                    stream.write(Payload::Bytes(bytes.clone()));
                }
                None => stream.finish(),
            }
        }
    }
}

#[test]
fn invalid_response_fails_the_page() {
    let frame = |length: u8, stream| Some(Bytes::from(vec![0, length, 0, 0, 0, 0, 0, 0, stream]));
    let answers = [
        (PageProtocol::Http1, None),
        (PageProtocol::Http2, None),
        (PageProtocol::Http3, None),
        (PageProtocol::Streams, None),
        (PageProtocol::Http2, Some(Bytes::from(vec![7; 100]))),
        // A stream that was not requested; more bytes than the response has.
        (PageProtocol::Http2, frame(1, 3)),
        (PageProtocol::Http2, frame(6, 1)),
    ];
    for (http, answer) in answers {
        let spec = WebSpec { pages: Some(2), ..listed(http, vec![object(1000, true, &[])]) };
        let mut client = WebClient::new(&spec, random()).unwrap();
        let mut way = pipe();
        way.start(&mut [&mut client, &mut Babbles(answer.clone())], Instant::from_nanos(10_000_000_000));
        assert_eq!(figure(&client.metric_values(Instant::ZERO), "pages_failed"), 2.0, "{http:?} {answer:?}");
    }
}

#[test]
fn invalid_pages_are_rejected() {
    let refused = |change: fn(&mut WebSpec)| {
        let mut spec = WebSpec::new(PageProtocol::Http2);
        change(&mut spec);
        WebClient::new(&spec, random()).is_err() && WebServer::new(&spec, random()).is_err()
    };
    let list = |objects: Vec<ObjectSpec>| PageSource::List(objects);
    assert!(!refused(|_| ()));
    assert!(refused(|spec| spec.source = PageSource::List(Vec::new())));
    assert!(list(vec![object(1, true, &[0])]).check().is_err(), "an object that depends on itself");
    assert!(list(vec![object(0, true, &[])]).check().is_err(), "an object without bytes");
    assert!(list(vec![ObjectSpec { stream: Some(100), ..object(1, true, &[]) }]).check().is_err());
    assert!(list(vec![ObjectSpec { urgency: Some(8), ..object(1, true, &[]) }]).check().is_err());
    assert!(list(vec![object(1, true, &[]), object(1, true, &[0])]).check().is_ok());
    assert!(refused(|spec| spec.request_bytes = 11));
    assert!(refused(|spec| spec.request_bytes = 16_385));
    assert!(refused(|spec| spec.response_header_bytes = 16_385));
    assert!(refused(|spec| spec.connections = 0));
    assert!(refused(|spec| spec.concurrent = 0));
    assert!(refused(|spec| spec.main_urgency = 8));
    assert!(refused(|spec| spec.embedded_urgency = 8));
    assert!(refused(|spec| spec.low_water_bytes = 0));
    assert!(refused(|spec| spec.completions = CompletionUnit::Streams));
    assert!(refused(|spec| spec.reading_s.max = f64::NAN));
    assert!(refused(|spec| {
        let PageSource::Random(laws) = &mut spec.source else { return };
        laws.embedded_objects.max = 1e6;
    }));
}
