//! Tests of both formats: the worked example, the rules of conversion, variants, and the line and reason of each error.

use fullpipe_tmix::{
    Adu, ConnectionKind, ConnectionVector, Error, PerSide, Side, TraceFormat, TraceReader, write_connection,
};
use fullpipe_units::Duration;

fn read(text: &str) -> Vec<ConnectionVector> {
    TraceReader::new(text.as_bytes(), "trace").collect::<Result<_, _>>().expect("the text is well formed")
}

fn refusal(text: &str) -> String {
    match TraceReader::new(text.as_bytes(), "trace").find_map(Result::err) {
        Some(error @ Error::Format { .. }) => error.to_string(),
        other => panic!("{text:?} gives {other:?}"),
    }
}

fn written(connection: &ConnectionVector, format: TraceFormat) -> String {
    let mut output = Vec::new();
    write_connection(&mut output, connection, format, "output").expect("it can be written");
    String::from_utf8(output).expect("it is text")
}

/// A short form of a body: side, send-wait and receive-wait in microseconds, size.
fn short(body: &[Adu]) -> Vec<(char, u64, u64, u64)> {
    let micros = |duration: Duration| duration.as_nanos() / 1000;
    body.iter()
        .map(|adu| {
            let side = if adu.side == Side::Initiator { 'I' } else { 'A' };
            (side, micros(adu.send_wait), micros(adu.receive_wait), adu.size_bytes)
        })
        .collect()
}

#[test]
fn worked_example_is_the_same_connection_in_both_formats() {
    // Source: tcp-eval reference, section 8.
    let alternate = "S 6851 1 21217 555382\nw 64800 6432\nr 1176194\nl 0 0\nI 0 0 245\nA 0 51257 510\nA 6304943 0 0\n";
    let original = "SEQ 6851 1 21217 555382\nw 64800 6432\nr 1176194\nl 0 0\n> 245\nt 51257\n< 510\nt 6304943\n";
    let [connection] = &read(alternate)[..] else { panic!("one connection") };
    assert_eq!(&read(original)[0], connection);
    assert_eq!(connection.start, Duration::from_micros(6_851));
    assert_eq!(connection.kind, ConnectionKind::Sequential { epochs: 1 });
    assert_eq!(connection.ids, [21_217, 555_382]);
    assert_eq!(connection.mss_bytes, None);
    assert_eq!(connection.window_bytes, Some(PerSide { initiator: 64_800, acceptor: 6_432 }));
    assert_eq!(connection.rtt, Some(Duration::from_micros(1_176_194)));
    assert_eq!(short(&connection.body), [('I', 0, 0, 245), ('A', 0, 51_257, 510), ('A', 6_304_943, 0, 0)]);
    assert_eq!((connection.bytes(Side::Initiator), connection.bytes(Side::Acceptor)), (245, 510));
    assert_eq!(written(connection, TraceFormat::Alternate), alternate);
    assert_eq!(written(connection, TraceFormat::Original), original);
}

#[test]
fn concurrent_example_is_the_same_connection_in_both_formats() {
    let alternate =
        "C 1429381 2 2 26876 793318\nI 0 0 222\nA 0 0 726\nI 62436302 0 16\nA 62400173 0 84\nI 725 0 0\nA 130 0 0\n";
    let original =
        "CONC 1429381 2 2 26876 793318\nc> 222\nc< 726\nt> 62436302\nc> 16\nt< 62400173\nc< 84\nt> 725\nt< 130\n";
    let connection = &read(alternate)[0];
    assert_eq!(&read(original)[0], connection);
    assert_eq!(written(connection, TraceFormat::Alternate), alternate);
    assert_eq!(written(connection, TraceFormat::Original), original);
    // Waits of the two sides are independent, so their lines can be in another order.
    let other = "C 1429381 2 2 26876 793318\nc> 222\nt> 62436302\nc< 726\nt< 62400173\nc> 16\nc< 84\nt< 130\nt> 725\n";
    assert_eq!(&read(other)[0], connection);
}

#[test]
fn original_bodies_are_converted_to_the_canonical_form() {
    // Same side: send-wait. Other side: receive-wait. A wait of 0 or none: 1 us, also before the close.
    let body = &read("SEQ 0 3 1 2\n> 10\nt 7\n> 20\nt 0\n< 30\n< 40\nt 9\n> 50\nt 0\n")[0].body;
    assert_eq!(
        short(body),
        [('I', 0, 0, 10), ('I', 7, 0, 20), ('A', 0, 1, 30), ('A', 1, 0, 40), ('I', 0, 9, 50), ('I', 1, 0, 0)]
    );
    // No final wait: the last sender closes after 1 us.
    assert_eq!(short(&read("SEQ 0 1 1 2\n> 10\nt 5\n< 20\n")[0].body)[2], ('A', 1, 0, 0));
    assert_eq!(short(&read("S 0 1 1 2\nI 0 0 10\nA 0 5 20\n")[0].body)[2], ('A', 1, 0, 0));
    // Concurrent: both sides close, the initiator's line first.
    let body = &read("CONC 0 1 2 1 2\nt< 3\nc< 20\nt< 0\nc< 30\nt< 8\nc> 10\n")[0].body;
    assert_eq!(short(body), [('A', 3, 0, 20), ('A', 1, 0, 30), ('I', 0, 0, 10), ('I', 1, 0, 0), ('A', 8, 0, 0)]);
    assert_eq!(&read("C 0 1 2 1 2\nA 3 0 20\nA 0 0 30\nA 8 0 0\nI 0 0 10\n")[0].body, body);
}

#[test]
fn headers_bodies_comments_and_blank_lines_can_be_mixed() {
    let tidy = "S 5 1 1 2\nm 496 1460\nw 10 20\nr 30\nl 0.25 0.5\nI 0 0 245\nA 0 51257 510\nA 9 0 0\n";
    let untidy = "# a trace\n\n  SEQ 5 1 1 2 # start\r\nl 0.25 0.5\n\nr\t30\nm 496 1460#\n#w 1 1\nw 10 20\nI 0 0 245\n\n\
                  A 0 51257 510\n# end\nA 9 0 0";
    let mixed = "S 5 1 1 2\nr 30\nw 10 20\nl 0.25 0.5\nm 496 1460\n> 245\nt 51257\n< 510\nt 9\n";
    let connections = read(&format!("{tidy}{untidy}\n{mixed}"));
    assert_eq!(connections.len(), 3);
    assert_eq!(connections[0], connections[1]);
    assert_eq!(connections[0], connections[2]);
    assert_eq!(connections[0].mss_bytes, Some(PerSide { initiator: 496, acceptor: 1_460 }));
    assert_eq!(connections[0].loss, Some(PerSide { initiator: 0.25, acceptor: 0.5 }));
    assert!(read("").is_empty());
    assert!(read("# nothing\n\n").is_empty());
}

#[test]
fn errors_state_file_line_and_reason() {
    let good = "SEQ 1 1 1 2\n> 10\n";
    for (text, line, said) in [
        ("> 10\n", 1, "expected a connection to start here"),
        ("SEQ -5 1 1 2\n> 10\n", 1, "start (microseconds): expected a whole number from 0"),
        ("SEQ 99999999999999999999 1 1 2\n> 10\n", 1, "found \"99999999999999999999\""),
        ("SEQ 1 0 1 2\n> 10\n", 1, "number of epochs: expected a whole number from 1"),
        ("SEQ 1 1 1\n> 10\n", 1, "has no second id"),
        ("SEQ 1 1 1 2 3\n> 10\n", 1, "unexpected word"),
        ("SEQ 1 1 1 2\n> ten\n", 2, "size (bytes): expected a whole number from 1 to 1099511627776, found \"ten\""),
        ("SEQ 1 1 1 2\n> 0\n", 2, "size (bytes)"),
        ("SEQ 1 1 1 2\n> 1099511627777\n", 2, "size (bytes)"),
        ("SEQ 1 1 1 2\n> 10\nt 10000000000001\n", 3, "wait (microseconds)"),
        ("SEQ 1 1 1 2\n> 10\nw 1 1\n", 3, "`w` after the first ADU; expected before it"),
        ("SEQ 1 1 1 2\nw 1 1\nw 1 1\n> 1\n", 3, "a second `w`"),
        ("SEQ 1 1 1 2\nw 0 1\n> 1\n", 2, "initiator's window"),
        ("SEQ 1 1 1 2\nm 1460\n> 1\n", 2, "has no acceptor's MSS"),
        ("SEQ 1 1 1 2\nm 70000 1\n> 1\n", 2, "initiator's MSS: expected a whole number from 1 to 65535"),
        ("SEQ 1 1 1 2\nl 0 1.5\n> 1\n", 2, "loss from the acceptor: expected a number from 0 to 1"),
        ("SEQ 1 1 1 2\nl NaN 0\n> 1\n", 2, "loss from the initiator"),
        ("SEQ 1 1 1 2\nt 5\n> 1\n", 2, "a wait before the first ADU"),
        ("SEQ 1 1 1 2\n> 1\nt 5\nt 6\n", 4, "two waits"),
        ("SEQ 1 1 1 2\n> 1\nA 0 5 10\n", 3, "mixes"),
        ("SEQ 1 1 1 2\nc> 1\n", 2, "belong to a concurrent connection"),
        ("CONC 1 1 1 1 2\n> 1\n", 2, "belong to a sequential connection"),
        ("CONC 1 1 1 1 2\nI 0 5 1\n", 2, "a receive-wait in a concurrent connection"),
        ("CONC 1 1 1 1 2\nI 0 0 1\nI 1 0 0\nI 5 0 1\n", 4, "after this side's close"),
        ("CONC 1 1 1 1 2\nt> 1\nt> 1\n", 3, "two waits of one side"),
        ("CONC 1 0 0 1 2\n", 1, "has no ADU"),
        ("S 1 1 1 2\nI 5 0 1\n", 2, "the first ADU has a wait"),
        ("S 1 1 1 2\nI 0 0 0\n", 2, "a close before any ADU"),
        ("S 1 1 1 2\nI 0 0 1\nA 5 5 1\n", 3, "both waits"),
        ("S 1 1 1 2\nI 0 0 1\nA 5 0 1\n", 3, "a send-wait of a side that has sent nothing"),
        ("S 1 1 1 2\nI 0 0 1\nI 0 5 1\n", 3, "a receive-wait before the peer"),
        ("S 1 1 1 2\nI 0 0 1\nI 5 0 0\nI 5 0 1\n", 4, "an ADU after the close"),
        ("SEQ 1 1 1 2\nhello\n", 2, "\"hello\" is not a line type of a connection vector"),
        // Truncated: the first line declares more units.
        ("SEQ 1 3 1 2\n> 1\nt 5\n< 1\n", 1, "2 ADUs, too few for its 3 epochs"),
        ("CONC 1 1 1 1 2\nc> 1\n", 1, "0 ADUs of the acceptor, but its first line declares 1"),
        ("SEQ 1 1 1 2\n", 1, "too few"),
    ] {
        let found = refusal(text);
        assert!(found.starts_with(&format!("trace:{line}: ")), "{text:?} gives {found:?}, expected line {line}");
        assert!(found.contains(said), "{text:?} gives {found:?}, expected {said:?}");
        // The line number counts from the start of the file.
        if text.starts_with('>') {
            continue; // After a valid connection this line belongs to it.
        }
        let found = refusal(&format!("{good}{text}{good}"));
        assert!(found.starts_with(&format!("trace:{}: ", line + 2)), "{text:?} after two lines gives {found:?}");
        // A reader that skips malformed connections returns both neighbors.
        let text = format!("{good}{text}{good}");
        let mut reader = TraceReader::new(text.as_bytes(), "trace").skip_malformed(true);
        assert_eq!(reader.by_ref().filter_map(Result::ok).count(), 2, "{text:?}");
        assert_eq!(reader.skipped(), 1, "{text:?}");
        assert_eq!(reader.first_skipped().expect("one was").to_string(), found);
    }
}

#[test]
fn line_without_end_is_rejected_without_storing_it() {
    let long = format!("SEQ 1 1 1 2\n> 1{}\n> 10\nSEQ 5 1 1 2\n> 10\n", "0".repeat(1 << 20));
    assert!(refusal(&long).contains("trace:2: the line is longer than 4096 bytes"));
    let mut reader = TraceReader::new(long.as_bytes(), "trace").skip_malformed(true);
    assert_eq!(reader.next().expect("the second connection").expect("it is valid").start, Duration::from_micros(5));
    // A long comment is valid.
    let comment = format!("SEQ 1 1 1 2 #{}\n> 10\n", "x".repeat(1 << 20));
    assert_eq!(read(&comment).len(), 1);
}

#[test]
fn too_many_units_are_rejected() {
    let mut text = "SEQ 1 1 1 2\n".to_string();
    text.push_str(&"> 1\n".repeat(1_000_001));
    assert!(refusal(&text).contains("trace:1000002: more than 1000000 ADUs"));
}

#[test]
fn bytes_that_are_not_text_are_rejected() {
    let mut bytes = b"SEQ 1 1 1 2\n> 10\n".to_vec();
    bytes.extend([0xff, 0xfe, 0x00, b'\n']);
    let error = TraceReader::new(&bytes[..], "trace").find_map(Result::err).expect("the bytes are rejected");
    assert_eq!(error.to_string(), "trace:3: the line is not valid UTF-8");
}

#[test]
fn offsets_locate_their_connections() {
    let text = "# x\nSEQ 1 1 1 2\n> 10\n\nSEQ 2 1 1 2\n> 11\nSEQ x\nSEQ 3 1 1 2\n> 12\n";
    let mut reader = TraceReader::new(text.as_bytes(), "trace").skip_malformed(true);
    let mut seen = 0;
    while let Some(connection) = reader.next() {
        let began = reader.start_offset() as usize;
        let again = TraceReader::new(&text.as_bytes()[began..], "again").next().expect("there is one").expect("good");
        assert_eq!(again, connection.expect("good"));
        seen += 1;
    }
    assert_eq!((seen, reader.skipped(), reader.offset()), (3, 1, text.len() as u64));
}

#[test]
fn writer_rejects_bodies_that_the_original_format_cannot_express() {
    for text in [
        // The acceptor's second unit waits for its first, not for the initiator's unit in between.
        "S 1 2 1 2\nA 0 0 5\nI 0 9 5\nA 300 0 5\n",
        // The second unit waits for the initiator's, although the acceptor's own unit precedes it.
        "S 1 1 1 2\nI 0 0 5\nA 0 9 5\nA 0 9 5\n",
        // The initiator closes although the acceptor sent last.
        "S 1 1 1 2\nI 0 0 5\nA 0 9 5\nI 0 9 0\n",
    ] {
        let connection = &read(text)[0];
        let error = write_connection(&mut Vec::new(), connection, TraceFormat::Original, "output")
            .expect_err("the format cannot express it");
        assert!(matches!(error, Error::Unrepresentable { id: 2, .. }), "{error}");
        assert_eq!(&read(&written(connection, TraceFormat::Alternate))[0], connection);
    }
}

#[test]
fn epochs_are_counted_as_exchanges() {
    let count = |text: &str| ConnectionVector::count_epochs(&read(text)[0].body);
    assert_eq!(count("SEQ 0 1 1 2\n> 1\n< 1\n"), 1);
    assert_eq!(count("SEQ 0 1 1 2\n> 1\n< 1\n> 1\n< 1\n"), 2);
    assert_eq!(count("SEQ 0 1 1 2\n< 1\n> 1\n< 1\n< 1\n"), 3);
    assert_eq!(count("SEQ 0 1 1 2\n> 1\n> 1\n"), 2);
}

#[test]
fn times_are_rounded_to_microseconds_and_positive_waits_stay_positive() {
    let mut connection = read("CONC 0 1 1 1 2\nr 5\nt> 7\nc> 1\nt< 7\nc< 1\n").remove(0);
    connection.start = Duration::from_nanos(1_499);
    connection.rtt = Some(Duration::from_nanos(1_500));
    connection.body[0].send_wait = Duration::from_nanos(1);
    connection.body[1].send_wait = Duration::ZERO;
    let expected = "C 1 1 1 1 2\nr 2\nI 1 0 1\nA 0 0 1\nI 1 0 0\nA 1 0 0\n";
    assert_eq!(written(&connection, TraceFormat::Alternate), expected);
}
