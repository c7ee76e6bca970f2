//! Tests of adaptive video over a link with known throughput: rates, stalls and times computed by hand.

use crate::way::{Host, Way};
use bytes::Bytes;
use fullpipe_transport::{CloseReason, Payload, TransportEvent};
use fullpipe_units::{Duration, Instant, Rate};
use fullpipe_workload::{
    AbrAlgorithm, Application, Io, MetricValue, StreamId, VideoAbrClient, VideoAbrServer, VideoAbrSpec,
};

const SECOND: u64 = 1_000_000_000;

fn seconds(at: u64) -> Instant {
    Instant::from_nanos(at * SECOND)
}

/// Requests take no time. Segments have this rate in kbit/s, evaluated when they are written.
fn way(rate: impl Fn(Instant) -> u64 + 'static) -> Way {
    let down = move |end, at| (end == 1).then(|| Rate::from_bits_per_second(1000 * rate(at)));
    Way::new(Duration::ZERO, down)
}

fn by_throughput() -> VideoAbrSpec {
    VideoAbrSpec {
        ladder: [1, 2, 4].map(Rate::from_megabits_per_second).to_vec(),
        segment: Duration::from_secs(4),
        segments: Some(100),
        request_bytes: 300,
        start_level: Duration::from_secs(4),
        resume_level: Duration::from_secs(4),
        max_level: Duration::from_secs(20),
        choice: AbrAlgorithm::Throughput { safety: 0.9, samples: 5 },
    }
}

fn run(spec: &VideoAbrSpec, way: &mut Way, until: Instant) -> VideoAbrClient {
    let mut client = VideoAbrClient::new(spec).unwrap();
    let mut server = VideoAbrServer::new(spec).unwrap();
    way.start(&mut [&mut client, &mut server], until);
    let written = |end: usize| way.writes[end].iter().map(|&(_, bytes)| bytes).sum::<u64>();
    assert_eq!(server.progress().received_bytes, written(0));
    if client.progress().completed.is_some() {
        assert_eq!(client.progress().received_bytes, written(1));
        assert_eq!(server.progress().completed, client.progress().completed);
        assert_eq!(way.live_connections(), 0);
    }
    client
}

fn figure(figures: &[MetricValue], name: &str) -> f64 {
    figures.iter().find(|figure| figure.name == name).map_or(f64::NAN, |figure| figure.value)
}

/// Rates of the segments in Mbit/s.
fn rates(client: &VideoAbrClient) -> Vec<u64> {
    client.completions().iter().map(|one| one.bytes * 8 / 4 / 1_000_000).collect()
}

#[test]
fn selection_by_throughput_finds_the_highest_rate_at_once() {
    // 0.9 times 3, 10 and 1.5 Mbit/s: 2.7, 9 and 1.35. The first segment has the lowest rate.
    for (kilobits, steady) in [(3000, 2), (10_000, 4), (1500, 1)] {
        let mut way = way(move |_| kilobits);
        let client = run(&by_throughput(), &mut way, Instant::NEVER);
        let mut expected = vec![steady; 100];
        expected[0] = 1;
        assert_eq!(rates(&client), expected);
        let figures = client.metric_values(way.now);
        assert_eq!(figure(&figures, "segments"), 100.0);
        assert_eq!(figure(&figures, "switches"), f64::from(u8::from(steady > 1)));
        assert_eq!((figure(&figures, "rebuffers"), figure(&figures, "rebuffer_s")), (0.0, 0.0));
        assert_eq!(figure(&figures, "mean_bit_rate_bps"), (1.0 + 99.0 * steady as f64) * 1e4);
        // 4 Mbit at the lowest rate.
        assert!((figure(&figures, "startup_s") - 4000.0 / kilobits as f64).abs() < 1e-9);
    }
}

#[test]
fn full_buffer_receives_one_segment_per_segment_played() {
    // 8 Mbit/s and one rate of 2: a segment of 4 s takes 1 s. Playback starts at 1 s with 4 s. After the n-th segment (at n s)
    // the level is 4 n - (n - 1): 16 (20 - 4) at 5 s, with room for one more, and 19 at 6 s. The next has room when the level is
    // 16, at 9 s. It arrives at 10 s, when the level is 15 + 4, and so on: requests at 9, 13, 17 ...
    let spec = VideoAbrSpec { ladder: vec![Rate::from_megabits_per_second(2)], segments: Some(10), ..by_throughput() };
    let client = run(&spec, &mut way(|_| 8000), Instant::NEVER);
    let asked: Vec<u64> = client.completions().iter().map(|one| one.started.as_nanos() / SECOND).collect();
    assert_eq!(asked, [0, 1, 2, 3, 4, 5, 9, 13, 17, 21]);
    assert!(client.completions().iter().all(|one| one.completed.saturating_since(one.started).as_nanos() == SECOND));
}

/// One rate of 2 Mbit/s, 8 Mbit per segment, room for 12 s.
fn single(segments: u64) -> VideoAbrSpec {
    VideoAbrSpec {
        ladder: vec![Rate::from_megabits_per_second(2)],
        segments: Some(segments),
        max_level: Duration::from_secs(12),
        ..by_throughput()
    }
}

/// 4 Mbit/s, and from 10 s on 0.5 Mbit/s.
fn drop(at: Instant) -> u64 {
    if at < seconds(10) { 4000 } else { 500 }
}

#[test]
fn rebuffering_after_a_rate_drop_has_times_computed_by_hand() {
    // Segments take 2 s and arrive at 2 (playback starts), 4 (level 6), 6 (8) and 8 (10: no room until 10 s). The fifth is
    // requested at 10 s with 8 s in the buffer and takes 16 s: the buffer is empty at 18, a stall of 8 s until 26. The sixth
    // takes 16 s again, with 4 s in the buffer: empty at 30, a stall of 12 s until 42.
    let mut way = way(drop);
    let client = run(&single(6), &mut way, Instant::NEVER);
    let come: Vec<u64> = client.completions().iter().map(|one| one.completed.as_nanos() / SECOND).collect();
    assert_eq!(come, [2, 4, 6, 8, 26, 42]);
    for end in [42, 100] {
        let figures = client.metric_values(seconds(end));
        assert_eq!((figure(&figures, "rebuffers"), figure(&figures, "rebuffer_s")), (2.0, 20.0));
    }
    assert_eq!(figure(&client.metric_values(way.now), "startup_s"), 2.0);
}

#[test]
fn stall_in_progress_counts_until_the_end_of_the_run() {
    // The same video, evaluated while stalls are in progress: from 18 to 26 and from 30.
    for (end, stalls, stalled) in [(17, 0.0, 0.0), (18, 0.0, 0.0), (21, 1.0, 3.0), (29, 1.0, 8.0), (35, 2.0, 13.0)] {
        let client = run(&single(6), &mut way(drop), seconds(end));
        let figures = client.metric_values(seconds(end));
        assert_eq!((figure(&figures, "rebuffers"), figure(&figures, "rebuffer_s")), (stalls, stalled), "{end}");
    }
}

#[test]
fn playback_resumes_at_the_resume_level() {
    // With a resume level of 8 s, the stall that begins at 18 lasts until the sixth segment arrives, at 42.
    let spec = VideoAbrSpec { resume_level: Duration::from_secs(8), ..single(7) };
    let mut way = way(drop);
    let client = run(&spec, &mut way, Instant::NEVER);
    // 8 s are in the buffer at 42. The seventh arrives at 58, so playback stalls from 50 on.
    let figures = client.metric_values(way.now);
    assert_eq!((figure(&figures, "rebuffers"), figure(&figures, "rebuffer_s")), (2.0, 24.0 + 8.0));
}

#[test]
fn buffer_without_room_plays_below_the_start_level() {
    // The start level is 12 s, but the buffer has room for 10: two segments. A short video starts with its last segment.
    let spec = VideoAbrSpec {
        start_level: Duration::from_secs(12),
        max_level: Duration::from_secs(10),
        segments: Some(5),
        ..single(5)
    };
    let fast = |_| 8000;
    let mut first = way(fast);
    let client = run(&spec, &mut first, Instant::NEVER);
    assert_eq!(figure(&client.metric_values(first.now), "startup_s"), 2.0);
    let spec = VideoAbrSpec { segments: Some(1), ..spec };
    let mut second = way(fast);
    let client = run(&spec, &mut second, Instant::NEVER);
    assert_eq!(figure(&client.metric_values(second.now), "startup_s"), 1.0);
}

fn by_buffer() -> VideoAbrSpec {
    VideoAbrSpec {
        choice: AbrAlgorithm::Buffer { reservoir: Duration::from_secs(10), cushion: Duration::from_secs(40) },
        max_level: Duration::from_secs(60),
        segments: Some(500),
        ..by_throughput()
    }
}

#[test]
fn selection_by_buffer_reaches_and_keeps_the_highest_rate_if_the_link_is_fast() {
    // At 10 Mbit/s the buffer grows at every rate, so it exceeds reservoir and cushion (50 s): 4 Mbit/s.
    let mut way = way(|_| 10_000);
    let client = run(&by_buffer(), &mut way, Instant::NEVER);
    let rates = rates(&client);
    let steady = rates.iter().position(|&rate| rate == 4).unwrap();
    assert!(steady < 50 && rates[steady..].iter().all(|&rate| rate == 4), "{rates:?}");
    assert!(rates.is_sorted());
    assert_eq!(figure(&client.metric_values(way.now), "rebuffers"), 0.0);
}

#[test]
fn video_that_never_plays_reports_no_stalls() {
    // The first segment, 4 Mbit at the lowest rate, takes 40 s at 0.1 Mbit/s.
    let mut way = way(|_| 100);
    let client = run(&by_throughput(), &mut way, Instant::ZERO + Duration::from_secs(30));
    let figures = client.metric_values(way.now);
    assert_eq!(figure(&figures, "segments"), 0.0);
    for missing in ["rebuffers", "rebuffer_s", "startup_s"] {
        assert!(figures.iter().all(|figure| figure.name != missing), "{missing}: {figures:?}");
    }
}

#[test]
fn selection_by_buffer_keeps_the_lowest_rate_if_the_link_is_slow() {
    // At 0.8 Mbit/s a segment of 4 s takes 5 s. The buffer never exceeds one segment, so the rate is the lowest. Every segment
    // but the first has a stall of 1 s.
    let spec = VideoAbrSpec { segments: Some(20), ..by_buffer() };
    let mut way = way(|_| 800);
    let client = run(&spec, &mut way, Instant::NEVER);
    assert_eq!(rates(&client), [1; 20]);
    let figures = client.metric_values(way.now);
    assert_eq!((figure(&figures, "rebuffers"), figure(&figures, "rebuffer_s")), (19.0, 19.0));
}

#[test]
fn selection_by_buffer_between_two_steps_has_the_throughput_as_mean_rate() {
    // The link is never idle, since the buffer stays below 56 s. So the bits fetched are throughput times time, and the video
    // fetched is the time played plus the buffer. The mean rate of the segments differs from the throughput by at most the share
    // of the buffer and the start in 2000 s, 56 s / 2000 s.
    for (kilobits, low, high) in [(3000, 2, 4), (1500, 1, 2)] {
        let mut way = way(move |_| kilobits);
        let client = run(&by_buffer(), &mut way, Instant::NEVER);
        let figures = client.metric_values(way.now);
        let mean = figure(&figures, "mean_bit_rate_bps") / (1000.0 * kilobits as f64);
        assert!((1.0 - 56.0 / 2000.0..1.0 + 4.0 / 2000.0).contains(&mean), "{mean}");
        assert_eq!(figure(&figures, "rebuffers"), 0.0);
        let later = &rates(&client)[100..];
        assert!(later.iter().all(|rate| [low, high].contains(rate)), "{later:?}");
        assert!(later.contains(&low) && later.contains(&high));
    }
}

#[test]
fn requests_and_segments_in_small_pieces_take_the_same_time() {
    // With a send buffer of 1000 bytes the segment is sent in more than 500 pieces, and takes as long.
    let spec = VideoAbrSpec { request_bytes: 2500, ..single(6) };
    let mut way = way(drop);
    way.send_buffer_bytes = 1000;
    let client = run(&spec, &mut way, Instant::NEVER);
    assert!(way.writes[0].len() == 18 && way.writes[1].len() >= 6000, "{}", way.writes[1].len());
    // The fifth segment is requested at exactly 10 s, when the rate drops.
    assert_eq!(client.completions()[4].completed, seconds(26));
    assert_eq!(figure(&client.metric_values(way.now), "rebuffer_s"), 20.0);
}

#[test]
fn lost_connection_stalls_playback_until_the_end() {
    let spec = single(6);
    let (mut client, mut server) = (VideoAbrClient::new(&spec).unwrap(), VideoAbrServer::new(&spec).unwrap());
    let mut way = way(drop);
    way.start(&mut [&mut client, &mut server], seconds(12));
    way.kill(0, CloseReason::TimedOut);
    way.run(&mut [&mut client, &mut server], Instant::NEVER);
    assert_eq!((client.completions().len(), client.progress().completed), (4, None));
    // The buffer is empty at 18 s.
    assert!((figure(&client.metric_values(seconds(48)), "rebuffer_s") - 30.0).abs() < 1e-9);
}

/// Opens a connection, makes one write and finishes.
#[derive(Debug)]
struct Writes(Payload, Option<CloseReason>);

impl Application for Writes {
    fn on_start(&mut self, io: &mut dyn Io) {
        let id = io.open();
        let stream = io.stream(id).unwrap();
        stream.write(self.0.clone());
        stream.finish();
    }
    fn on_stream(&mut self, _stream: StreamId, event: TransportEvent, _io: &mut dyn Io) {
        if let TransportEvent::Closed(reason) = event {
            self.1 = Some(reason);
        }
    }
}

#[test]
fn invalid_requests_are_not_answered() {
    let mut zero_rate = vec![0; 300];
    zero_rate[15] = 1;
    for request in [Payload::Length(300), Payload::Bytes(Bytes::from(zero_rate))] {
        let mut server = VideoAbrServer::new(&by_throughput()).unwrap();
        let mut client = Writes(request, None);
        let mut way = way(|_| 1000);
        way.start(&mut [&mut client, &mut server], Instant::NEVER);
        assert_eq!(client.1, Some(CloseReason::Reset));
        assert!(way.writes[1].is_empty());
    }
}

#[test]
fn requests_that_arrive_together_are_answered_one_after_the_other() {
    // For 1 and 2 Mbit/s: 500 000 and 1 000 000 bytes for 4 s each, through a buffer that is smaller than either.
    let mut requests = vec![0; 600];
    requests[..8].copy_from_slice(&1_000_000u64.to_be_bytes());
    requests[300..308].copy_from_slice(&2_000_000u64.to_be_bytes());
    let mut server = VideoAbrServer::new(&by_throughput()).unwrap();
    let mut client = Writes(Payload::Bytes(Bytes::from(requests)), None);
    let mut way = way(|_| 1000);
    way.send_buffer_bytes = 300_000;
    way.start(&mut [&mut client, &mut server], Instant::NEVER);
    let written: Vec<u64> = way.writes[1].iter().map(|&(_, bytes)| bytes).collect();
    assert_eq!(written, [300_000, 200_000, 100_000, 200_000, 100_000, 200_000, 100_000, 200_000, 100_000]);
    assert_eq!(client.1, Some(CloseReason::Finished));
    assert_eq!(server.progress().received_bytes, 600);
}

#[test]
fn invalid_videos_are_rejected() {
    let refused = |change: fn(&mut VideoAbrSpec)| {
        let mut spec = by_throughput();
        change(&mut spec);
        VideoAbrClient::new(&spec).is_err() && VideoAbrServer::new(&spec).is_err()
    };
    assert!(!refused(|_| ()));
    assert!(refused(|spec| spec.ladder.clear()));
    assert!(refused(|spec| spec.ladder.reverse()));
    assert!(refused(|spec| spec.ladder = vec![Rate::from_megabits_per_second(1); 2]));
    assert!(refused(|spec| spec.ladder[0] = Rate::from_bits_per_second(1)));
    assert!(refused(|spec| spec.segment = Duration::ZERO));
    assert!(refused(|spec| spec.request_bytes = 15));
    assert!(refused(|spec| spec.request_bytes = (1 << 20) + 1));
    assert!(refused(|spec| spec.max_level = Duration::from_secs(3)));
    assert!(refused(|spec| spec.choice = AbrAlgorithm::Throughput { safety: 0.0, samples: 5 }));
    assert!(refused(|spec| spec.choice = AbrAlgorithm::Throughput { safety: 0.9, samples: 0 }));
    assert!(refused(|spec| {
        spec.choice = AbrAlgorithm::Buffer { reservoir: Duration::ZERO, cushion: Duration::ZERO };
    }));
}

#[test]
fn unexpected_timer_changes_nothing() {
    let spec = single(6);
    let (mut client, mut server) = (VideoAbrClient::new(&spec).unwrap(), VideoAbrServer::new(&spec).unwrap());
    let mut way = way(drop);
    client.on_wake(&mut Host { way: &mut way, end: 0 });
    assert_eq!(way.opened(), 0);
    way.start(&mut [&mut client, &mut server], seconds(1));
    client.on_wake(&mut Host { way: &mut way, end: 0 });
    way.run(&mut [&mut client, &mut server], Instant::NEVER);
    let come: Vec<u64> = client.completions().iter().map(|one| one.completed.as_nanos() / SECOND).collect();
    assert_eq!(come, [2, 4, 6, 8, 26, 42]);
}
