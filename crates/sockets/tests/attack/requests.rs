//! Attacks on request streams: misplaced frames, invalid field sections, malformed messages.

use crate::attacker::*;
use crate::house::*;
use crate::wire::*;
use std::time::Duration;

/// Content of a request stream, whether it ends there, and the code with which the connection is closed.
fn broken_streams(path: &str) -> Vec<(&'static str, Vec<u8>, bool, u64)> {
    let good = request(path);
    let then = |frame: Vec<u8>| [good.clone(), frame].concat();
    let section = |bytes: &[u8]| frame(HEADERS, bytes);
    vec![
        // RFC 9114 sections 4.1, 7.2.3 to 7.2.8: H3_FRAME_UNEXPECTED.
        ("DATA first", frame(DATA, b"x"), false, 0x105),
        ("SETTINGS", frame(SETTINGS, &[]), false, 0x105),
        ("GOAWAY", frame(GOAWAY, &[0]), false, 0x105),
        ("CANCEL_PUSH", frame(CANCEL_PUSH, &[0]), false, 0x105),
        ("MAX_PUSH_ID", frame(MAX_PUSH_ID, &[0]), false, 0x105),
        ("PUSH_PROMISE", frame(PUSH_PROMISE, &[0, 0, 0]), false, 0x105),
        ("PING of HTTP/2", frame(6, &[0; 8]), false, 0x105),
        // Section 4.4: after CONNECT, of the known frames only DATA is permitted.
        ("trailers in a tunnel", then(headers(&[("x", "y")])), false, 0x105),
        ("another request in a tunnel", then(good.clone()), true, 0x105),
        ("SETTINGS in a tunnel", then(frame(SETTINGS, &[])), false, 0x105),
        ("CONTINUATION of HTTP/2 in a tunnel", then(frame(9, &[])), false, 0x105),
        // Section 7.1: H3_FRAME_ERROR if the stream ends within a frame.
        ("HEADERS cut short", good[..good.len() - 1].to_vec(), true, 0x106),
        ("a frame's head cut short", vec![1, 0x40], true, 0x106),
        ("DATA cut short", then(varints(&[DATA, 9])), true, 0x106),
        // RFC 9204 section 2.2: QPACK_DECOMPRESSION_FAILED for a missing and for a truncated prefix.
        ("no field section", section(&[]), false, 0x200),
        ("half a prefix", section(&[0]), false, 0x200),
        // Section 4.5.1.1: references to a table with capacity 0.
        ("a required insert count", section(&[2, 0, 0xd1]), false, 0x200),
        ("an entry of the dynamic table", section(&[0, 0, 0x80]), false, 0x200),
        ("a name of the dynamic table", section(&[0, 0, 0x40, 1, b'x']), false, 0x200),
        ("an entry after the base", section(&[0, 0, 0x10]), false, 0x200),
        ("a name after the base", section(&[0, 0, 0x00, 1, b'x']), false, 0x200),
        // Section 3.1: the last index of the static table is 98.
        ("entry 99 of the static table", section(&[0, 0, 0xff, 36]), false, 0x200),
        ("a name of entry 99", section(&[0, 0, 0x5f, 84, 1, b'x']), false, 0x200),
        // Section 4.1: lengths beyond the section, or beyond the range of integers.
        ("a name longer than the section", section(&[0, 0, 0x27, 200, b'a']), false, 0x200),
        ("a value longer than the section", section(&[0, 0, 0x21, b'a', 9, b'b']), false, 0x200),
        ("an integer without end", section(&[[0, 0, 0x27].as_slice(), &[0xff; 20]].concat()), false, 0x200),
        ("the largest integer", section(&[[0, 0, 0x27].as_slice(), &[0xff; 8], &[0x7f]].concat()), false, 0x200),
        // Section 4.5.1.2: a negative base.
        ("a negative base", section(&[0, 0x80, 0xd1]), false, 0x200),
        // RFC 7541 section 5.2: Huffman padding consists of fewer than eight ones.
        ("Huffman padding of zeros", section(&[0, 0, 0x21, b'a', 0x81, 0x18]), false, 0x200),
        ("Huffman padding of a whole byte", section(&[0, 0, 0x21, b'a', 0x81, 0xff]), false, 0x200),
    ]
}

#[test]
fn invalid_request_streams_close_the_connection_with_their_code() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        let path = path_of(echo.address);
        let mut wrong = Vec::new();
        for (name, bytes, finish, code) in broken_streams(&path) {
            let attacker = Attacker::new(&certificate, proxy.address).await;
            let (_send, mut receive) = attacker.two_way(&bytes, finish).await;
            let closed = tokio::time::timeout(Duration::from_secs(1), attacker.closed()).await;
            if closed != Ok(code) {
                let answer = tokio::time::timeout(Duration::from_secs(1), answer(&mut receive)).await;
                wrong.push(format!("{name}: {closed:x?} instead of {code:x} {answer:x?}"));
            }
            bystander.is_served().await;
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}

/// The fields of a valid request, modified.
fn changed<'text>(path: &'text str, change: impl FnOnce(&mut Vec<(&'text str, &'text str)>)) -> Vec<u8> {
    let mut fields = fields(path);
    change(&mut fields);
    headers(&fields)
}

fn with<'text>(path: &'text str, name: &'text str, value: &'text str) -> Vec<u8> {
    changed(path, |fields| fields.push((name, value)))
}

fn without(path: &str, name: &str) -> Vec<u8> {
    changed(path, |fields| fields.retain(|(field, _)| *field != name))
}

fn replaced<'text>(path: &'text str, name: &'text str, value: &'text str) -> Vec<u8> {
    changed(path, |fields| {
        for field in fields.iter_mut().filter(|(field, _)| *field == name) {
            field.1 = value;
        }
    })
}

/// RFC 9114 section 4.1.2: a malformed message is a stream error H3_MESSAGE_ERROR.
fn malformed(path: &str) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        // Section 4.2: lower case, and the characters of RFC 9110 section 5 (section 10.3).
        ("a name in capitals", with(path, "X-Capital", "a")),
        ("a space in a name", with(path, "a b", "c")),
        ("an empty name", with(path, "", "c")),
        ("a zero in a value", with(path, "a", "b\0c")),
        ("a line feed in a value", with(path, "a", "b\nc")),
        ("a carriage return in a value", with(path, "a", "b\rc")),
        // Section 4.2: connection-specific fields.
        ("connection", with(path, "connection", "close")),
        ("keep-alive", with(path, "keep-alive", "timeout=5")),
        ("proxy-connection", with(path, "proxy-connection", "close")),
        ("upgrade", with(path, "upgrade", "connect-udp")),
        ("transfer-encoding", with(path, "transfer-encoding", "chunked")),
        ("te other than trailers", with(path, "te", "gzip")),
        ("te with more than trailers", with(path, "te", "trailers, gzip")),
        // Section 4.3: pseudo-header fields of responses, unknown ones, and those after a regular field.
        ("an unknown pseudo-header field", with(path, ":x", "y")),
        ("a pseudo-header field of responses", with(path, ":status", "200")),
        ("a pseudo-header field after a regular one", changed(path, |fields| fields.insert(4, ("x", "y")))),
        ("a regular field first", changed(path, |fields| fields.insert(0, ("x", "y")))),
        // Section 4.3.1, and RFC 8441 section 4 for extended CONNECT: each pseudo-header field exactly once.
        ("no method", without(path, ":method")),
        ("no scheme", without(path, ":scheme")),
        ("no authority", without(path, ":authority")),
        ("no path", without(path, ":path")),
        ("the same path twice", with(path, ":path", path)),
        ("another path before", changed(path, |fields| fields.insert(0, (":path", "/elsewhere")))),
        ("another path after", with(path, ":path", "/elsewhere")),
        ("two methods", with(path, ":method", "GET")),
        ("two protocols", with(path, ":protocol", "connect-udp")),
        ("no authority, but a host", changed(path, |fields| fields[3] = ("host", "localhost"))),
        ("user information", replaced(path, ":authority", "user@localhost")),
        ("an empty scheme", replaced(path, ":scheme", "")),
        ("a fragment in the path", replaced(path, ":path", "/a#b")),
        ("a protocol without CONNECT", replaced(path, ":method", "GET")),
        ("an empty path", replaced(path, ":path", "")),
        ("an empty authority", replaced(path, ":authority", "")),
        ("a path without a slash", replaced(path, ":path", "x")),
        ("a method of two words", replaced(path, ":method", "CON NECT")),
        ("another host", with(path, "host", "elsewhere")),
        // Section 4.4: without a protocol, CONNECT has an authority with a port, and neither scheme nor path.
        ("CONNECT with scheme and path", without(path, ":protocol")),
        ("CONNECT without a port", headers(&[(":method", "CONNECT"), (":authority", "localhost")])),
        // RFC 9297 section 3.4: content fields, which the capsule protocol forbids.
        ("content-length", with(path, "content-length", "0")),
        ("content-type", with(path, "content-type", "text/plain")),
    ]
}

#[test]
fn malformed_messages_abort_only_their_stream() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let path = path_of(echo.address);
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let (_steady, _receive) = attacker.tunnel(&path).await;
        let mut wrong = Vec::new();
        for (name, bytes) in malformed(&path) {
            let (send, mut receive) = attacker.two_way(&bytes, false).await;
            let outcome = answer(&mut receive).await;
            if outcome != Outcome::Reset(0x10e) {
                wrong.push(format!("{name}: {outcome:x?}"));
                continue;
            }
            let stopped = send.stopped().await.map(|code| code.map(noq::VarInt::into_inner));
            if stopped != Ok(Some(0x10e)) {
                wrong.push(format!("{name}: stopped with {stopped:x?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        proxy.log.wait_for("reason=\"malformed message: a pseudo-header field follows a regular field\"", 2).await;
        attacker.connection.send_datagram([0, 0, 5].to_vec().into()).unwrap();
        assert_eq!(&attacker.connection.read_datagram().await.unwrap()[..], [0, 0, 5]);
    });
}

/// RFC 9220 section 3 recommends status 501 for an unknown protocol. The HTTP/3 stack in use reports a malformed message.
#[test]
fn unknown_protocol_aborts_only_its_stream() {
    run(async {
        let certificate = certificate();
        let proxy = proxy(&certificate, |settings| settings.tcp = false);
        let attacker = Attacker::new(&certificate, proxy.address).await;
        let path = path_of("127.0.0.1:9".parse().unwrap());
        let request = replaced(&path, ":protocol", "connect-ip");
        assert_eq!(attacker.ask(&request, false).await, Outcome::Reset(0x10e));
        // CONNECT without a protocol is well-formed (RFC 9114 section 4.4), but this proxy does not accept it.
        let connect = headers(&[(":method", "CONNECT"), (":authority", "localhost:443")]);
        assert_eq!(attacker.ask(&connect, false).await, Outcome::Status(501));
        let _tunnel = attacker.tunnel(&path).await;
    });
}

/// The file server reads the content of a request only if its length is announced.
#[test]
fn file_server_resets_malformed_requests() {
    run(async {
        let certificate = certificate();
        let attacker = Attacker::new(&certificate, serve(&certificate)).await;
        let get = |more: &[(&'static str, &'static str)]| {
            let fields = [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/5")];
            headers(&[&fields, more].concat())
        };
        let two = get(&[("content-length", "2")]);
        for (bytes, expected) in [
            (get(&[("x", "y"), (":path", "/6")]), Outcome::Reset(0x10e)),
            ([two.clone(), frame(DATA, b"a")].concat(), Outcome::Reset(0x10e)),
            ([two.clone(), frame(DATA, b"a"), frame(DATA, b"bc")].concat(), Outcome::Reset(0x10e)),
            ([two.clone(), frame(DATA, b"ab"), headers(&[(":path", "/")])].concat(), Outcome::Reset(0x10e)),
            ([two, frame(DATA, b"ab"), headers(&[("x", "y")])].concat(), Outcome::Status(200)),
            (get(&[]), Outcome::Status(200)),
        ] {
            assert_eq!(attacker.ask(&bytes, true).await, expected);
        }
    });
}

#[test]
fn incomplete_or_too_large_requests_are_rejected() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let path = path_of(echo.address);
        let attacker = Attacker::new(&certificate, proxy.address).await;
        // RFC 9114 section 4.1: H3_REQUEST_INCOMPLETE for an empty request and for one with only reserved frames.
        assert_eq!(attacker.ask(&[], true).await, Outcome::Reset(0x10d));
        assert_eq!(attacker.ask(&frame(0x21, b"grease"), true).await, Outcome::Reset(0x10d));
        // RFC 9114 section 4.2.2: each field counts 32 bytes in addition to its name and value; 16 384 bytes are
        // permitted.
        let used: usize = fields(&path).iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        let fits = "a".repeat(16_384 - used - 33);
        assert_eq!(attacker.ask(&with(&path, "x", &fits), false).await, Outcome::Status(200));
        assert_eq!(attacker.ask(&with(&path, "x", &(fits + "a")), false).await, Outcome::Status(431));
        assert_eq!(attacker.ask(&with(&path, "x", &"a".repeat(100_000)), false).await, Outcome::Status(431));
        // 500 small fields can be as large as a few large ones.
        let many = changed(&path, |fields| fields.extend([("x", "y"); 500]));
        assert_eq!(attacker.ask(&many, false).await, Outcome::Status(431));
        // A section of eight times the limit is not read to its end: H3_EXCESSIVE_LOAD (RFC 9114 section 8.1).
        assert_eq!(attacker.ask(&with(&path, "x", &"a".repeat(140_000)), false).await, Outcome::Reset(0x107));
        let (_send, _receive) = attacker.tunnel(&path).await;
    });
}

#[test]
fn request_with_headers_and_end_of_stream_opens_a_tunnel() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let path = path_of(echo.address);
        let attacker = Attacker::new(&certificate, proxy.address).await;
        // One STREAM frame carries both. Datagrams that the client sends afterwards are dropped silently (RFC 9297
        // section 2.1).
        assert_eq!(attacker.ask(&request(&path), true).await, Outcome::Status(200));
        attacker.connection.send_datagram([0, 0, 1].to_vec().into()).unwrap();
        // The other tunnel is not affected.
        let (_send, _receive) = attacker.tunnel(&path).await;
        attacker.connection.send_datagram([1, 0, 2].to_vec().into()).unwrap();
        assert_eq!(&attacker.connection.read_datagram().await.unwrap()[..], [1, 0, 2]);
        // A payload is counted when the host has accepted it, so its echo may arrive earlier. The dropped payload
        // arrived before it.
        while proxy.metrics.payloads_to_target_total.get() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(proxy.metrics.payloads_to_target_total.get(), 1);
        assert!(attacker.connection.close_reason().is_none());
    });
}
