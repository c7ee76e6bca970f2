//! Attacks on unidirectional streams: control, QPACK, push and unknown types.

use crate::attacker::*;
use crate::house::*;
use crate::wire::*;

fn settings(pairs: &[u64]) -> Vec<u8> {
    frame(SETTINGS, &varints(pairs))
}

/// Contents of unidirectional streams, one element per stream, and the code with which the connection must be closed.
fn cases() -> Vec<(&'static str, Vec<Vec<u8>>, u64)> {
    let control = |frames: &[Vec<u8>]| vec![[vec![0], frames.concat()].concat()];
    let after = |frame: Vec<u8>| control(&[settings(&[0x33, 1]), frame]);
    let good = [vec![0], settings(&[])].concat();
    vec![
        // RFC 9114 section 6.2.1: H3_MISSING_SETTINGS.
        ("GOAWAY before SETTINGS", control(&[frame(GOAWAY, &[0])]), 0x10a),
        ("DATA before SETTINGS", control(&[frame(DATA, &[0])]), 0x10a),
        // Section 7.2.4: H3_FRAME_UNEXPECTED.
        ("SETTINGS twice", after(settings(&[])), 0x105),
        // Section 7.2.4.1: H3_SETTINGS_ERROR for settings of HTTP/2.
        ("SETTINGS_ENABLE_PUSH of HTTP/2", control(&[settings(&[2, 0])]), 0x109),
        ("SETTINGS_MAX_CONCURRENT_STREAMS of HTTP/2", control(&[settings(&[3, 7])]), 0x109),
        // Section 7.2.4: a repeated identifier may be an error of this type.
        ("a setting twice", control(&[settings(&[6, 100, 6, 100])]), 0x109),
        // RFC 9297 section 2.1.1: the value is neither 0 nor 1.
        ("SETTINGS_H3_DATAGRAM of 2", control(&[settings(&[0x33, 2])]), 0x109),
        // Section 7.1: H3_FRAME_ERROR if the payload ends within a field.
        ("a setting without its value", control(&[settings(&[6])]), 0x106),
        ("GOAWAY without its identifier", after(frame(GOAWAY, &[])), 0x106),
        ("GOAWAY with more than its identifier", after(frame(GOAWAY, &[0, 0])), 0x106),
        ("MAX_PUSH_ID cut short", after(frame(MAX_PUSH_ID, &[0x40])), 0x106),
        // Sections 7.2.1, 7.2.2, 7.2.5: H3_FRAME_UNEXPECTED.
        ("DATA", after(frame(DATA, b"x")), 0x105),
        ("HEADERS", after(headers(&[(":method", "GET")])), 0x105),
        ("PUSH_PROMISE", after(frame(PUSH_PROMISE, &[0, 0, 0])), 0x105),
        // Section 7.2.8: frames of HTTP/2.
        ("PRIORITY of HTTP/2", after(frame(2, &[0; 5])), 0x105),
        ("PING of HTTP/2", after(frame(6, &[0; 8])), 0x105),
        ("WINDOW_UPDATE of HTTP/2", after(frame(8, &[0; 4])), 0x105),
        ("CONTINUATION of HTTP/2", after(frame(9, &[])), 0x105),
        // Section 5.2: H3_ID_ERROR if the identifier increases.
        ("GOAWAY that grows", after([frame(GOAWAY, &[1]), frame(GOAWAY, &[2])].concat()), 0x108),
        // Section 7.2.7: this identifier may not decrease.
        ("MAX_PUSH_ID that shrinks", after([frame(MAX_PUSH_ID, &[5]), frame(MAX_PUSH_ID, &[4])].concat()), 0x108),
        // Section 7.2.3: a push that was never promised.
        ("CANCEL_PUSH of nothing", after(frame(CANCEL_PUSH, &[1])), 0x108),
        // Section 6.2.1: H3_STREAM_CREATION_ERROR.
        ("two control streams", vec![good.clone(), good.clone()], 0x103),
        // Section 6.2.2: clients cannot push.
        ("a push stream", vec![good.clone(), vec![1, 0]], 0x103),
        // RFC 9204 section 4.2: one stream of each type.
        ("two QPACK encoder streams", vec![good.clone(), vec![2], vec![2]], 0x103),
        ("two QPACK decoder streams", vec![good.clone(), vec![3], vec![3]], 0x103),
        // RFC 9204 section 3.2.3: QPACK_ENCODER_STREAM_ERROR for a capacity above the offered one, which is 0.
        ("a dynamic table", vec![good.clone(), vec![2, 0x3f, 1]], 0x201),
        // Section 3.2.2: an entry may not be larger than the table.
        ("an entry without a table", vec![good.clone(), vec![2, 0x41, b'a', 1, b'b']], 0x201),
        // Section 4.4.3: QPACK_DECODER_STREAM_ERROR for an increment of 0, or beyond the insertions.
        ("an increment of 0", vec![good.clone(), vec![3, 0]], 0x202),
        ("an increment of 1", vec![good.clone(), vec![3, 1]], 0x202),
        // Section 4.4.1: a section without references.
        ("an acknowledgment of nothing", vec![good.clone(), vec![3, 0x80]], 0x202),
        // RFC 9114 section 10.5: H3_EXCESSIVE_LOAD for unlimited data without use.
        ("reserved frames without end", after(frame(0x21, &[0; 60_000]).repeat(4)), 0x107),
        ("a frame of a gigabyte", after([varints(&[0x21, 1 << 30]), vec![0; 140_000]].concat()), 0x107),
    ]
}

#[test]
fn protocol_violations_close_the_connection_with_their_code() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        let mut wrong = Vec::new();
        for (name, streams, code) in cases() {
            let mut attacker = Attacker::silent(&certificate, proxy.address).await;
            for bytes in streams {
                attacker.one_way(&bytes).await;
            }
            let closed = tokio::time::timeout(std::time::Duration::from_secs(1), attacker.closed()).await;
            if closed != Ok(code) {
                wrong.push(format!("{name}: {closed:x?} instead of {code:x}"));
            }
            bystander.is_served().await;
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}

#[test]
fn end_of_a_critical_stream_closes_the_connection() {
    run(async {
        let certificate = certificate();
        let proxy = proxy(&certificate, |_| {});
        // RFC 9114 section 6.2.1 and RFC 9204 section 4.2: H3_CLOSED_CRITICAL_STREAM for a FIN and for a reset.
        for kind in [0, 2, 3] {
            for reset in [false, true] {
                let mut attacker = Attacker::silent(&certificate, proxy.address).await;
                let bytes = if kind == 0 { [vec![0], settings(&[])].concat() } else { vec![kind] };
                let stream = attacker.one_way(&bytes).await;
                if reset {
                    // The type must arrive before the reset, which overtakes undelivered data.
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    stream.reset(0u32.into()).unwrap();
                } else {
                    stream.finish().unwrap();
                }
                assert_eq!(attacker.closed().await, 0x104, "type {kind}, reset: {reset}");
            }
        }
    });
}

#[test]
fn unknown_settings_frames_and_streams_are_ignored() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        // Settings, frames and stream types reserved for this test (RFC 9114 sections 6.2.3, 7.2.4.1, 7.2.8): 31 N +
        // 33.
        let mut attacker = Attacker::with_settings(&certificate, proxy.address, &[0x21, 5, 0x33, 1, 0x40, 6]).await;
        let unknown = attacker.one_way(&[varint(0x21), vec![7; 1000]].concat()).await;
        // Section 6.2: the receiver may abort reading; the code should be H3_STREAM_CREATION_ERROR.
        assert_eq!(unknown.stopped().await.unwrap().map(noq::VarInt::into_inner), Some(0x103));
        // A stream that ends or is reset before its type (section 6.2), or within it.
        attacker.one_way(&[]).await.finish().unwrap();
        attacker.one_way(&[0x40]).await.finish().unwrap();
        attacker.one_way(&[0x40]).await.reset(0u32.into()).unwrap();
        // The table capacity is 0, and a stream cancellation is permitted (RFC 9204 section 4.4.2).
        attacker.one_way(&[2, 0x20]).await;
        attacker.one_way(&[3, 0x44]).await;
        let path = path_of(echo.address);
        let bytes = [frame(0x21, b"grease"), request(&path), frame(0x40, b"grease"), frame(DATA, &[0, 2, 0, 9])];
        let (_send, mut receive) = attacker.two_way(&bytes.concat(), false).await;
        assert_eq!(answer(&mut receive).await, Outcome::Status(200));
        // The response to a capsule arrives in a capsule.
        let payload = next_frame(&mut receive).await;
        assert!(matches!(&payload, Ok((DATA, capsule)) if capsule[..] == [0, 2, 0, 9]), "{payload:?}");
    });
}
