//! Property tests with random connections and random damage: reader and writer are inverse, and nothing panics.

use fullpipe_tmix::{Adu, ConnectionKind, ConnectionVector, PerSide, Side, TraceFormat, TraceReader, write_connection};
use fullpipe_units::Duration;
use proptest::prelude::*;

fn side() -> impl Strategy<Value = Side> {
    any::<bool>().prop_map(|first| if first { Side::Initiator } else { Side::Acceptor })
}

fn wait() -> impl Strategy<Value = Duration> {
    prop_oneof![1u64..10, 1u64..100_000_000, Just(10_000_000_000_000)].prop_map(Duration::from_micros)
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![1u64..10, 1u64..100_000, Just(1u64 << 40)]
}

/// A body in which the sides take turns as the original format requires.
fn turns() -> impl Strategy<Value = (ConnectionKind, Vec<Adu>)> {
    (prop::collection::vec((side(), wait(), size()), 1..12), wait()).prop_map(|(units, last_wait)| {
        let mut body: Vec<Adu> = Vec::new();
        for (side, wait, size_bytes) in units {
            let (send_wait, receive_wait) = match body.last() {
                None => (Duration::ZERO, Duration::ZERO),
                Some(before) if before.side == side => (wait, Duration::ZERO),
                Some(_) => (Duration::ZERO, wait),
            };
            body.push(Adu { side, send_wait, receive_wait, size_bytes });
        }
        let epochs = ConnectionVector::count_epochs(&body);
        let side = body[body.len() - 1].side;
        body.push(Adu { side, send_wait: last_wait, receive_wait: Duration::ZERO, size_bytes: 0 });
        (ConnectionKind::Sequential { epochs }, body)
    })
}

fn sides() -> impl Strategy<Value = (ConnectionKind, Vec<Adu>)> {
    let unit = (side(), wait(), size());
    (prop::collection::vec(unit, 1..12), prop::array::uniform2(wait()), any::<bool>()).prop_map(
        |(units, closes, at_once)| {
            let mut adus = PerSide { initiator: 0, acceptor: 0 };
            let mut body = Vec::new();
            for (side, wait, size_bytes) in units {
                let first = *adus.get(side) == 0;
                *adus.get_mut(side) += 1;
                let send_wait = if first && at_once { Duration::ZERO } else { wait };
                body.push(Adu { side, send_wait, receive_wait: Duration::ZERO, size_bytes });
            }
            for (side, send_wait) in [Side::Initiator, Side::Acceptor].into_iter().zip(closes) {
                body.push(Adu { side, send_wait, receive_wait: Duration::ZERO, size_bytes: 0 });
            }
            (ConnectionKind::Concurrent { adus }, body)
        },
    )
}

fn pair<T: std::fmt::Debug>(value: impl Strategy<Value = T> + Clone) -> impl Strategy<Value = PerSide<T>> {
    (value.clone(), value).prop_map(|(initiator, acceptor)| PerSide { initiator, acceptor })
}

fn connection() -> impl Strategy<Value = ConnectionVector> {
    let header = (
        prop::option::of(pair(1u32..=65_535)),
        prop::option::of(pair(1u64..=1 << 30)),
        prop::option::of((0u64..1_000_000_000).prop_map(Duration::from_micros)),
        prop::option::of(pair(0.0f64..=1.0)),
    );
    let body = prop_oneof![turns(), sides()];
    (0u64..10_000_000_000_000, any::<[u64; 2]>(), header, body).prop_map(|(start, ids, header, (kind, body))| {
        ConnectionVector {
            start: Duration::from_micros(start),
            kind,
            ids,
            mss_bytes: header.0,
            window_bytes: header.1,
            rtt: header.2,
            loss: header.3,
            body: body.into(),
        }
    })
}

fn text(connections: &[ConnectionVector], format: TraceFormat) -> Vec<u8> {
    let mut output = Vec::new();
    for connection in connections {
        write_connection(&mut output, connection, format, "output").expect("it can be written");
    }
    output
}

/// Reads the bytes with and without `skip_bad`. Connections that can be read can be written and read again.
fn digest(bytes: &[u8]) -> (usize, u64) {
    let strict: Vec<_> = TraceReader::new(bytes, "x").collect();
    let good = strict.iter().filter(|found| found.is_ok()).count();
    assert!(strict.len() - good <= 1, "a strict reader ends at the first error");
    let mut reader = TraceReader::new(bytes, "x").skip_malformed(true);
    let connections: Vec<_> = reader.by_ref().map(|found| found.expect("reading from memory succeeds")).collect();
    assert!(connections.len() >= good);
    assert_eq!(reader.skipped() > 0, good < strict.len());
    let again = text(&connections, TraceFormat::Alternate);
    let again: Vec<_> =
        TraceReader::new(&again[..], "x").map(|found| found.expect("the writer's output is valid")).collect();
    assert_eq!(again, connections);
    (connections.len(), reader.skipped())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn reader_and_writer_are_inverse(connections in prop::collection::vec(connection(), 0..6)) {
        for format in [TraceFormat::Original, TraceFormat::Alternate] {
            let bytes = text(&connections, format);
            let again: Vec<_> = TraceReader::new(&bytes[..], "x").map(|found| found.expect("it is well formed")).collect();
            prop_assert_eq!(&again, &connections);
        }
        // A conversion to the other format and back loses nothing.
        let original: Vec<_> = TraceReader::new(&text(&connections, TraceFormat::Original)[..], "x")
            .map(|found| found.expect("it is well formed"))
            .collect();
        prop_assert_eq!(text(&original, TraceFormat::Alternate), text(&connections, TraceFormat::Alternate));
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic(
        connections in prop::collection::vec(connection(), 1..4),
        original: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..5), 1..6),
    ) {
        let mut bytes = text(&connections, if original { TraceFormat::Original } else { TraceFormat::Alternate });
        for (place, value, how) in damage {
            if bytes.is_empty() {
                break;
            }
            let place = place.index(bytes.len());
            match how {
                0 => bytes[place] = value,
                1 => bytes.truncate(place),
                2 => bytes.insert(place, b'-'),
                3 => bytes.splice(place..place, *b"99999999999").for_each(drop),
                _ => drop(bytes.remove(place)),
            }
        }
        digest(&bytes);
    }

    #[test]
    fn lines_in_any_order_never_panic(
        connection in connection(),
        original: bool,
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..30),
    ) {
        let whole = text(&[connection], if original { TraceFormat::Original } else { TraceFormat::Alternate });
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        let shuffled: Vec<u8> = order.iter().flat_map(|index| lines[index.index(lines.len())]).copied().collect();
        digest(&shuffled);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        digest(&bytes);
    }

    #[test]
    fn random_words_never_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "SEQ", "CONC", "S", "C", "m", "w", "r", "l", ">", "<", "t", "c>", "c<", "t>", "t<", "I", "A", "#", "\n",
                "\n", "\n", " ", "0", "1", "2", "-1", "1.5", "1e9", "18446744073709551616", "nan", "inf", "\u{e9}", "\0",
            ]),
            0..80,
        ),
    ) {
        digest(words.join(" ").as_bytes());
    }
}
