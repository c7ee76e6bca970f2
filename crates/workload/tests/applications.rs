//! Tests of applications with a stream that has a small buffer: what they write, in what pieces, and when.

use fullpipe_transport::{CloseReason, Payload, Stream, TransportEvent};
use fullpipe_units::{Duration, Instant};
use fullpipe_workload::{
    Application, BulkSender, ConstantRateSender, Io, Sink, StreamId, Transfer, TransfersReceiver, TransfersSender,
};

#[derive(Default)]
struct Buffer {
    limit: u64,
    held: u64,
    writes: Vec<u64>,
    readable: u64,
    finished: bool,
}

impl Stream for Buffer {
    fn writable_bytes(&self) -> u64 {
        self.limit - self.held
    }
    fn write(&mut self, payload: Payload) -> u64 {
        let taken = payload.len().min(self.limit - self.held);
        self.held += taken;
        if taken > 0 {
            self.writes.push(taken);
        }
        taken
    }
    fn readable_bytes(&self) -> u64 {
        self.readable
    }
    fn read(&mut self, max_bytes: u64) -> Option<Payload> {
        let taken = self.readable.min(max_bytes);
        self.readable -= taken;
        (taken > 0).then_some(Payload::Length(taken))
    }
    fn finish(&mut self) {
        self.finished = true;
    }
    fn abort(&mut self) {}
}

struct Host {
    now: Instant,
    wake: Instant,
    stream: Buffer,
    datagrams: Vec<(u64, u32)>,
}

impl Host {
    fn new(limit: u64) -> Self {
        let stream = Buffer { limit, ..Buffer::default() };
        Host { now: Instant::ZERO, wake: Instant::NEVER, stream, datagrams: Vec::new() }
    }

    fn run_timers(&mut self, application: &mut dyn Application, end: u64) {
        while self.wake.as_nanos() <= end {
            self.now = std::mem::replace(&mut self.wake, Instant::NEVER);
            application.on_wake(self);
        }
    }
}

impl Io for Host {
    fn now(&self) -> Instant {
        self.now
    }
    fn wake_at(&mut self, at: Instant) {
        self.wake = at;
    }
    fn open_with(&mut self, _options: &fullpipe_workload::OpenOptions) -> StreamId {
        StreamId(0)
    }
    fn stream(&mut self, _stream: StreamId) -> Option<&mut dyn Stream> {
        Some(&mut self.stream)
    }
    fn connection_number(&self, _stream: StreamId) -> Option<u32> {
        Some(0)
    }
    fn send_datagram(&mut self, payload_bytes: u32) {
        self.datagrams.push((self.now.as_nanos(), payload_bytes));
    }
}

#[test]
fn bulk_write_waits_until_it_fits_completely() {
    let mut host = Host::new(1000);
    let mut bulk = BulkSender::new(Some(2100), 400);
    bulk.on_start(&mut host);
    assert_eq!(host.stream.writes, [400, 400]);
    // 350 bytes are sent: 550 are free, so one write of 400 fits.
    host.stream.held -= 350;
    bulk.on_stream(StreamId(0), TransportEvent::Writable, &mut host);
    assert_eq!(host.stream.writes, [400, 400, 400]);
    host.stream.held = 0;
    bulk.on_stream(StreamId(0), TransportEvent::Writable, &mut host);
    // 900 bytes remain: 400 + 400 + 100, and then the end of the stream.
    assert_eq!(host.stream.writes, [400, 400, 400, 400, 400, 100]);
    assert!(host.stream.finished);
}

#[test]
fn bulk_without_size_never_finishes() {
    let mut host = Host::new(1000);
    let mut bulk = BulkSender::new(None, 500);
    bulk.on_start(&mut host);
    for _ in 0..10 {
        host.stream.held = 0;
        bulk.on_stream(StreamId(0), TransportEvent::Writable, &mut host);
    }
    assert_eq!(host.stream.writes.len(), 22);
    assert!(!host.stream.finished);
}

#[test]
fn datagrams_are_sent_at_multiples_of_the_interval() {
    let mut host = Host::new(0);
    let mut sender = ConstantRateSender::new(1472, Duration::from_micros(2), Some(4), false);
    host.now = Instant::from_nanos(100);
    sender.on_start(&mut host);
    host.run_timers(&mut sender, u64::MAX - 1);
    assert_eq!(host.datagrams, [(100, 1472), (2100, 1472), (4100, 1472), (6100, 1472)]);
}

#[test]
fn writes_at_a_constant_rate_accumulate_while_the_buffer_is_full() {
    let mut host = Host::new(250);
    let mut sender = ConstantRateSender::new(100, Duration::from_nanos(10), Some(5), true);
    sender.on_start(&mut host);
    host.run_timers(&mut sender, 1000);
    assert_eq!(host.stream.writes, [100, 100, 50]);
    assert!(!host.stream.finished);
    host.stream.held = 0;
    sender.on_stream(StreamId(0), TransportEvent::Writable, &mut host);
    assert_eq!(host.stream.writes, [100, 100, 50, 250]);
    assert!(host.stream.finished);
}

#[test]
fn source_writes_nothing_after_its_stream_is_closed() {
    let mut host = Host::new(1000);
    let mut sender = ConstantRateSender::new(100, Duration::from_nanos(10), Some(5), true);
    sender.on_start(&mut host);
    sender.on_stream(StreamId(0), TransportEvent::Closed(CloseReason::Reset), &mut host);
    host.run_timers(&mut sender, 1000);
    assert_eq!(host.stream.writes, [100]);
    assert!(!host.stream.finished);
}

#[test]
fn transfers_start_at_their_time_or_after_the_previous_one() {
    let mut host = Host::new(1000);
    let at = |nanoseconds, size_bytes| Transfer { at: Duration::from_nanos(nanoseconds), size_bytes };
    let mut sender = TransfersSender::new(vec![at(0, 600), at(50, 700), at(60, 100)]);
    sender.on_start(&mut host);
    assert_eq!((host.stream.writes.as_slice(), host.wake.as_nanos()), ([600].as_slice(), 50));
    host.run_timers(&mut sender, 1000);
    assert_eq!(host.stream.writes, [600, 400]);
    host.now = Instant::from_nanos(200);
    host.stream.held = 0;
    sender.on_stream(StreamId(0), TransportEvent::Writable, &mut host);
    assert_eq!(host.stream.writes, [600, 400, 300, 100]);
    assert!(host.stream.finished);
}

#[test]
fn receiver_of_transfers_records_each_when_its_last_byte_arrives() {
    let at = |nanoseconds, size_bytes| Transfer { at: Duration::from_nanos(nanoseconds), size_bytes };
    for closes in [false, true] {
        let mut host = Host::new(0);
        // The flow starts at 1000 ns.
        let transfers = vec![at(0, 600), at(50, 700), at(60, 100)];
        let mut receiver = TransfersReceiver::new(transfers, Instant::from_nanos(1000), closes);
        // Bytes received in total, by time: the transfers end at 600, 1300 and 1400.
        for (now, bytes) in [(1100, 599), (1200, 1), (1300, 800)] {
            host.now = Instant::from_nanos(now);
            host.stream.readable = bytes;
            receiver.on_stream(StreamId(0), TransportEvent::Readable, &mut host);
        }
        let times: Vec<(u64, u64, u64)> = receiver
            .completions()
            .iter()
            .map(|one| (one.started.as_nanos(), one.completed.as_nanos(), one.bytes))
            .collect();
        assert_eq!(times, [(1000, 1200, 600), (1050, 1300, 700), (1060, 1300, 100)]);
        assert_eq!((receiver.progress().received_bytes, receiver.progress().completed), (1400, None));
        receiver.on_stream(StreamId(0), TransportEvent::PeerFinished, &mut host);
        assert_eq!(receiver.progress().completed, Some(Instant::from_nanos(1300)));
        assert_eq!(host.stream.finished, closes);
    }
}

#[test]
fn sink_reads_all_and_closes_after_its_peer_if_configured() {
    for closes in [false, true] {
        let mut host = Host::new(0);
        let mut sink = Sink::new(closes);
        host.stream.readable = 700;
        host.now = Instant::from_nanos(5);
        sink.on_stream(StreamId(0), TransportEvent::Readable, &mut host);
        sink.on_stream(StreamId(0), TransportEvent::PeerFinished, &mut host);
        let progress = sink.progress();
        assert_eq!((progress.received_bytes, progress.completed), (700, Some(Instant::from_nanos(5))));
        assert_eq!(host.stream.finished, closes);
    }
}
