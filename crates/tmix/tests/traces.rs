//! Traces in files and in memory return the same connections for an interval, whatever the order of the file.

use fullpipe_tmix::{
    ConnectionVector, IndexedTrace, MemoryTrace, RenamedTrace, SyntheticTrace, Trace, TraceFormat, TraceReader,
    write_connection,
};
use fullpipe_units::Duration;
use std::path::PathBuf;

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).expect("a file can be written");
    path
}

fn text(connections: &[ConnectionVector], format: TraceFormat) -> Vec<u8> {
    let mut output = Vec::new();
    for connection in connections {
        write_connection(&mut output, connection, format, "output").expect("it can be written");
    }
    output
}

fn seconds(from: u64, to: u64) -> (Duration, Duration) {
    (Duration::from_secs(from), Duration::from_secs(to))
}

#[test]
fn file_and_memory_return_the_same_intervals_in_any_order() {
    let length = Duration::from_secs(12);
    let mut synthetic = SyntheticTrace::new(3, "r5s2", length).expect("one of the nine");
    let all = synthetic.connections(Duration::ZERO, length).expect("it is made");
    assert!(all.len() > 1000);
    let mut memory = MemoryTrace::new("r5s2", length, all.clone());
    // In the order of the trace, and with neighbors far apart.
    let mut scattered = all.clone();
    scattered.sort_by_key(|connection| connection.ids[1] % 7);
    for (name, connections, format) in
        [("r5s2.org", &all, TraceFormat::Original), ("scattered.cvec", &scattered, TraceFormat::Alternate)]
    {
        let mut indexed =
            IndexedTrace::open(&file(name, &text(connections, format)), false).expect("it is well formed");
        assert_eq!(indexed.count(), all.len());
        assert_eq!(indexed.length(), length);
        for (from, to) in [(7, 9), (0, 1), (11, 12), (3, 8), (0, 12), (5, 5), (12, 20)] {
            let (from, to) = seconds(from, to);
            let expected: Vec<_> = all.iter().filter(|one| from <= one.start && one.start < to).cloned().collect();
            assert_eq!(indexed.connections(from, to).expect("it is there"), expected);
            assert_eq!(memory.connections(from, to).expect("it is there"), expected);
            assert_eq!(synthetic.connections(from, to).expect("it is made"), expected);
        }
    }
    assert_eq!(IndexedTrace::open(&file("r6s1.org", b""), false).expect("empty").name(), "r6s1");
}

#[test]
fn interval_includes_its_start_and_excludes_its_end() {
    let text = b"SEQ 1000000 1 1 1\n> 10\nSEQ 2000000 1 1 2\n> 10\nSEQ 3000000 1 1 3\n> 10\n";
    let mut indexed = IndexedTrace::open(&file("whole-seconds.org", text), false).expect("it is well formed");
    let all: Vec<_> = TraceReader::new(&text[..], "x").map(|one| one.expect("it is well formed")).collect();
    let mut memory = MemoryTrace::new("x", Duration::from_secs(3), all.clone());
    let (from, to) = seconds(1, 2);
    assert_eq!(indexed.connections(from, to).expect("it is there"), all[..1]);
    assert_eq!(memory.connections(from, to).expect("it is there"), all[..1]);
    // A connection that starts at the end of the trace is not in it.
    let (from, to) = seconds(0, 9);
    assert_eq!(memory.connections(from, to).expect("it is there"), all[..2]);
    assert_eq!(indexed.length(), Duration::from_secs(4));
}

#[test]
fn renamed_trace_has_the_same_connections() {
    let trace = SyntheticTrace::new(1, "r4s1", Duration::from_secs(5)).expect("one of the nine");
    let mut renamed = RenamedTrace::new(trace.clone(), "r4s1 at B");
    let (from, to) = seconds(1, 3);
    assert_eq!((renamed.name(), renamed.length()), ("r4s1 at B", Duration::from_secs(5)));
    assert_eq!(
        renamed.connections(from, to).expect("it is made"),
        [trace.connections_in_second(1), trace.connections_in_second(2)].concat()
    );
}

#[test]
fn malformed_connections_are_rejected_or_counted() {
    let text = b"SEQ 1 1 1 1\n> 10\nSEQ x 1 1 2\n> 10\nSEQ 3 1 1 3\n> 10\nt 5\nw 1 1\nSEQ 4 1 1 4\n> 10\n";
    let path = file("bad.org", text);
    let refused = IndexedTrace::open(&path, false).expect_err("some connections are malformed").to_string();
    assert!(refused.contains("bad.org:3: start"), "{refused}");
    let mut trace = IndexedTrace::open(&path, true).expect("the other connections are valid");
    assert_eq!((trace.count(), trace.skipped()), (2, 2));
    assert_eq!(trace.first_skipped().expect("one was").to_string(), refused);
    let (from, to) = seconds(0, 1);
    let ids: Vec<u64> = trace.connections(from, to).expect("they are good").iter().map(|one| one.ids[1]).collect();
    assert_eq!(ids, [1, 4]);
    assert!(
        IndexedTrace::open(&PathBuf::from("/nowhere/r4s1"), false)
            .expect_err("no file")
            .to_string()
            .contains("/nowhere")
    );
}

#[test]
fn file_that_shrinks_after_indexing_gives_an_error() {
    // The file is larger than the read buffer, so that it must be read again.
    let connections = SyntheticTrace::new(1, "r4s1", Duration::from_secs(60))
        .expect("one of the nine")
        .connections(Duration::ZERO, Duration::from_secs(60))
        .expect("it is made");
    let path = file("shrinking.org", &text(&connections, TraceFormat::Original));
    let mut trace = IndexedTrace::open(&path, false).expect("it is well formed");
    std::fs::write(&path, b"").expect("a file can be written");
    let (from, to) = seconds(0, 1);
    assert!(trace.connections(from, to).expect_err("the text is gone").to_string().contains("shrinking.org"));
}

#[test]
fn second_is_generated_independently_and_survives_a_file() {
    let trace = SyntheticTrace::new(9, "r6s3", Duration::from_secs(3000)).expect("one of the nine");
    let late = trace.connections_in_second(2_777);
    for second in [0, 1, 2_999] {
        assert_ne!(trace.connections_in_second(second), late);
    }
    assert_eq!(trace.connections_in_second(2_777), late);
    assert_ne!(SyntheticTrace::new(8, "r6s3", trace.length()).expect("one").connections_in_second(2_777), late);
    assert_ne!(SyntheticTrace::new(9, "r6s2", trace.length()).expect("one").connections_in_second(2_777), late);
    // Writing and reading round nothing: a run on files equals the run on the generator.
    for format in [TraceFormat::Original, TraceFormat::Alternate] {
        let again: Vec<_> = TraceReader::new(&text(&late, format)[..], "x")
            .map(|one| one.expect("the writer's output is valid"))
            .collect();
        assert_eq!(again, late);
    }
    assert!(SyntheticTrace::new(1, "r7s1", trace.length()).expect_err("no such").to_string().contains("r4s1"));
}
