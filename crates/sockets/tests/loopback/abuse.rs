//! Requests that a proxy rejects and connections that it closes, while other clients are served.

use crate::house::*;
use crate::raw::*;
use crate::wire;
use bytes::{Buf, Bytes, BytesMut};
use fullpipe_masque::access::{ClientLimits, Token};
use fullpipe_masque::client::{Error, Tunnel};
use fullpipe_masque::configuration::Mode;
use fullpipe_masque::environment::Environment;
use fullpipe_masque::{capsule, datagram, varint};
use fullpipe_sockets::TokioEnvironment;
use http::{Method, StatusCode};
use std::time::Duration;

#[test]
fn bad_requests_get_their_status_while_others_are_served() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        let mut raw = Raw::new(&certificate, proxy.address, true).await;
        for (path, expected) in [
            ("/", 404),
            ("/.well-known/masque/udp/127.0.0.1/0/", 400),
            ("/.well-known/masque/udp/127.0.0.1/+53/", 400),
            ("/.well-known/masque/udp/127.0.0.1/99999/", 400),
            ("/.well-known/masque/udp/127.0.0.1//", 400),
            ("/.well-known/masque/udp/127.1/53/", 400),
            ("/.well-known/masque/udp/0x7f000001/53/", 400),
            ("/.well-known/masque/udp/fe80%3A%3A1%25eth0/53/", 400),
            ("/.well-known/masque/udp/%00/53/", 400),
            ("/.well-known/masque/udp/224.0.0.1/53/", 403),
            ("/.well-known/masque/udp/169.254.169.254/80/", 403),
            ("/.well-known/masque/udp/%3A%3Affff%3A169.254.169.254/80/", 403),
        ] {
            assert_eq!(raw.status(path).await, expected, "{path}");
        }
        let good = path_of(echo.address);
        let mut post = tunnel(&good);
        *post.method_mut() = Method::POST;
        post.extensions_mut().clear();
        let mut stream = raw.request(post).await.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status().as_u16(), 405);
        bystander.is_served().await;
        // Header sections slightly and far above the limit, from a client that ignores the proxy's settings.
        for (number, bytes) in [20_000, 100_000].into_iter().enumerate() {
            let (mut send, _receive) = raw.connection.open_bi().await.unwrap();
            let filler = "a".repeat(bytes);
            let fields = [wire::fields(&good), vec![("x", &filler)]].concat();
            send.write_all(&wire::headers(&fields)).await.unwrap();
            proxy.log.wait_for("status=431", number + 1).await;
        }
        bystander.is_served().await;
        assert_eq!(raw.status(&good).await, 200);
        assert_eq!(proxy.log.matching("event=refused").len() as u64, proxy.metrics.requests_refused_total.get());
    });
}

#[test]
fn name_is_permitted_by_its_addresses() {
    run(async {
        let certificate = certificate();
        let proxy = proxy_with_names(&certificate, |settings| settings.policy.allow_private = false);
        let client = datagram_client(&certificate, &proxy).await;
        for (name, status, words) in [
            ("inside.example:53", 403, "error=destination_ip_prohibited"),
            ("nowhere.example:53", 502, "error=dns_error; rcode=\"NXDOMAIN\""),
            ("broken.example:53", 502, "error=dns_error"),
            ("slow.example:53", 504, "error=dns_timeout"),
            ("[::ffff:127.0.0.1]:53", 403, "error=destination_ip_prohibited"),
            ("10.0.0.1:53", 403, "error=destination_ip_prohibited"),
        ] {
            let target = fullpipe_masque::target::Target::parse(name).unwrap();
            match client.open(&target).await {
                Err(Error::Rejected { status: given, proxy_status }) => {
                    assert_eq!(given, status, "{name}");
                    assert!(proxy_status.contains(words), "{name}: {proxy_status}");
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(proxy.log.matching("event=refused").len(), 6);
    });
}

#[test]
fn requests_beyond_the_limit_or_without_token_are_rejected() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| {
            settings.max_requests = 2;
            settings.tokens = vec![token("alice", "s3cret", ClientLimits::default())];
        });
        let stranger = datagram_client(&certificate, &proxy).await;
        assert!(matches!(stranger.open(&target(echo.address)).await, Err(Error::Rejected { status: 401, .. })));
        let known = client(&certificate, &proxy, |settings| settings.token = Some("s3cret".into())).await;
        let first = known.open(&target(echo.address)).await.unwrap();
        let second = known.open(&target(echo.address)).await.unwrap();
        match known.open(&target(echo.address)).await {
            Err(Error::Rejected { status: 503, proxy_status }) => {
                assert!(proxy_status.contains("connection_limit_reached"))
            }
            other => panic!("{other:?}"),
        }
        drop(second);
        // The place is free again when the proxy has received the close.
        let third = loop {
            match known.open(&target(echo.address)).await {
                Err(Error::Rejected { status: 503, .. }) => {}
                other => break other.unwrap(),
            }
        };
        assert_eq!(exchange(&first, b"one").await, b"one"[..]);
        assert_eq!(exchange(&third, b"three").await, b"three"[..]);
    });
}

fn token(name: &str, secret: &str, limits: ClientLimits) -> Token {
    Token { name: name.into(), secret: secret.into(), limits }
}

#[test]
fn limits_of_a_client_are_those_of_its_token_or_of_its_address() {
    run(async {
        let certificate = certificate();
        let echo = target(echo().await.address);
        let limits = |tunnels, bytes| ClientLimits { tunnels, bytes, ..ClientLimits::default() };
        let proxy = proxy(&certificate, |settings| {
            settings.tokens =
                vec![token("alice", "one", limits(Some(1), None)), token("bob", "two", limits(None, Some(4000)))];
            settings.client_limits = limits(Some(2), None);
        });
        let known = async |secret: &str| client(&certificate, &proxy, |own| own.token = Some(secret.into())).await;
        let is_limited = |result: Result<_, Error>| match result {
            Err(Error::Rejected { status: 429, proxy_status }) => proxy_status.contains("connection_limit_reached"),
            other => panic!("{other:?}"),
        };
        // Two connections with the same token are one client.
        let (alice, again, bob) = (known("one").await, known("one").await, known("two").await);
        let tunnel = alice.open(&echo).await.unwrap();
        assert!(is_limited(again.open(&echo).await));
        let (first, second) = (bob.open(&echo).await.unwrap(), bob.open(&echo).await.unwrap());
        assert!(is_limited(bob.open(&echo).await));
        // The limit of bytes ends all tunnels of this client and of no other.
        assert_eq!(exchange(&first, &[7; 900]).await, [7; 900][..]);
        assert_eq!(exchange(&second, &[8; 900]).await, [8; 900][..]);
        for tunnel in [&first, &second] {
            // The proxy counts a payload after it has sent it, so the echo of the last one may still pass.
            let closure = loop {
                tunnel.send(&mut vec![vec![9; 900].into()]);
                if let Err(closure) = tunnel.receive(&mut Vec::new()).await {
                    break closure;
                }
            };
            assert!(closure.to_string().contains("H3_EXCESSIVE_LOAD"), "{closure}");
        }
        assert!(is_limited(bob.open(&echo).await));
        assert_eq!(exchange(&tunnel, b"alice").await, b"alice"[..]);
        proxy.log.wait_for("reason=\"the client has used the bytes that it may transfer\"", 2).await;
        assert!(proxy.log.matching("one").is_empty() && proxy.log.matching("two").is_empty());
    });
}

#[test]
fn rate_of_a_client_is_limited_and_drops_are_counted() {
    run(async {
        let certificate = certificate();
        let echo = target(echo().await.address);
        let proxy = proxy(&certificate, |settings| {
            // The burst is 256 KiB, and 8 kB/s add little to it.
            settings.client_limits.rate = Some(8000);
        });
        let client = datagram_client(&certificate, &proxy).await;
        let tunnel = client.open_with_mode(&echo, Mode::Stream).await.unwrap();
        let mut echoed = Vec::new();
        let begin = TokioEnvironment.now();
        while proxy.metrics.dropped_rate_total.get() == 0 {
            tunnel.send(&mut vec![vec![1; 1000].into(); 10]);
            let _ = tokio::time::timeout(Duration::from_millis(1), tunnel.receive(&mut echoed)).await;
        }
        let passed = proxy.metrics.bytes_to_target_total.get() + proxy.metrics.bytes_from_target_total.get();
        // A batch of at most 64 payloads is checked as a whole.
        let burst = (256 << 10) + 8000 * (1 + begin.elapsed().as_secs());
        assert!((200_000..burst + 2 * 64_000).contains(&passed), "{passed}");
        // The tunnel is still open and carries payloads later.
        let mut bystander = tunnel_echo(&tunnel, &mut echoed).await;
        bystander.truncate(3);
        assert_eq!(bystander, b"end"[..]);
    });
}

/// Sends a payload until it is echoed.
async fn tunnel_echo(tunnel: &Tunnel, received: &mut Vec<Bytes>) -> Bytes {
    loop {
        tunnel.send(&mut vec![b"end"[..].into()]);
        let _ = tokio::time::timeout(Duration::from_millis(200), tunnel.receive(received)).await;
        if let Some(payload) = received.drain(..).find(|payload| payload.len() == 3) {
            return payload;
        }
    }
}

#[test]
fn invalid_datagrams_close_the_connection_and_unexpected_ones_do_not() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        let mut beyond = Vec::new();
        varint::encode(1 << 40, &mut beyond);
        let mut impossible = Vec::new();
        varint::encode(datagram::MAX_QUARTER_STREAM_ID + 1, &mut impossible);
        for (bytes, code) in [(Vec::new(), 0x33), (vec![0x40], 0x33), (impossible, 0x33), (beyond, 0x108)] {
            let mut raw = Raw::new(&certificate, proxy.address, true).await;
            // An unopened request, an unregistered context and incomplete context IDs: all dropped.
            for stray in [&[5, 0, 1][..], &[0, 2, 9], &[0], &[0, 0xc0]] {
                raw.connection.send_datagram(Bytes::copy_from_slice(stray)).unwrap();
            }
            assert_eq!(raw.status(&path_of(echo.address)).await, 200);
            raw.connection.send_datagram(bytes.into()).unwrap();
            assert_eq!(raw.closing_code().await, code);
            bystander.is_served().await;
        }
        assert_eq!(proxy.metrics.errors_protocol_total.get(), 4);
    });
}

#[test]
fn malformed_capsules_abort_only_their_stream() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let mut raw = Raw::new(&certificate, proxy.address, true).await;
        let path = path_of(echo.address);
        let (mut steady, _) = raw.ask(&path).await.unwrap();
        // The stream may not end within a capsule.
        let (mut stream, response) = raw.ask(&path).await.unwrap();
        assert_eq!(response.headers()["capsule-protocol"], "?1");
        stream.send_data(Bytes::from_static(&[0, 5, 0, 1])).await.unwrap();
        stream.finish().await.unwrap();
        assert_eq!(code(&stream.recv_data().await.err().unwrap()), 0x10e);
        // A UDP payload that is too long.
        let (mut stream, _) = raw.ask(&path).await.unwrap();
        let mut long = BytesMut::new();
        capsule::encode(&vec![0; datagram::MAX_UDP_PAYLOAD + 1], &mut long);
        stream.send_data(long.freeze()).await.unwrap();
        assert_eq!(code(&stream.recv_data().await.err().unwrap()), 0x33);
        // Unknown, empty and long capsules are skipped. The following valid capsule is relayed, and its response
        // arrives in a capsule.
        let mut good = BytesMut::from(&[0x17, 3, 1, 2, 3, 0x29, 0][..]);
        varint::encode(77, &mut good);
        varint::encode(300_000, &mut good);
        good.resize(good.len() + 300_000, 7);
        capsule::encode(b"hello", &mut good);
        steady.send_data(good.freeze()).await.unwrap();
        let mut expected = BytesMut::new();
        capsule::encode(b"hello", &mut expected);
        let mut back = steady.recv_data().await.unwrap().expect("the stream goes on");
        assert_eq!(back.copy_to_bytes(back.remaining()), expected.freeze());
    });
}

#[test]
fn client_that_has_finished_still_receives() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let mut raw = Raw::new(&certificate, proxy.address, true).await;
        let (mut stream, _) = raw.ask(&path_of(echo.address)).await.unwrap();
        let id = stream.id().into_inner() / 4;
        raw.connection.send_datagram(datagram::encode_frame(id, b"one")).unwrap();
        assert_eq!(raw.connection.read_datagram().await.unwrap(), datagram::encode_frame(id, b"one"));
        stream.finish().await.unwrap();
        // Now the target sends first.
        while echo.send_again(b"two").await.is_err() {}
        assert_eq!(raw.connection.read_datagram().await.unwrap(), datagram::encode_frame(id, b"two"));
        // A request whose headers end the stream opens a receive-only tunnel.
        let mut stream = raw.request(tunnel(&path_of(echo.address))).await.unwrap();
        stream.finish().await.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status(), StatusCode::OK);
    });
}

#[test]
fn frame_with_a_huge_announced_length_is_rejected() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let mut bystander = Bystander::new(&certificate, &proxy, echo.address).await;
        let raw = Raw::new(&certificate, proxy.address, true).await;
        // A HEADERS frame and a reserved frame, each with an announced length of a gigabyte.
        for kind in [1, 0x21] {
            let (mut send, _receive) = raw.connection.open_bi().await.unwrap();
            send.write_all(&wire::varints(&[kind, 1 << 30])).await.unwrap();
            let refused = send.stopped().await.unwrap();
            assert_eq!(refused.map(noq::VarInt::into_inner), Some(0x107));
        }
        bystander.is_served().await;
    });
}

#[test]
fn incomplete_request_is_aborted_after_the_header_timeout() {
    run(async {
        let certificate = certificate();
        let proxy = proxy(&certificate, |settings| settings.header_timeout = std::time::Duration::from_millis(100));
        let raw = Raw::new(&certificate, proxy.address, true).await;
        let (mut send, _receive) = raw.connection.open_bi().await.unwrap();
        // Two bytes of a HEADERS frame, and then nothing.
        send.write_all(&[1, 9]).await.unwrap();
        let refused = send.stopped().await.unwrap();
        assert_eq!(refused.map(noq::VarInt::into_inner), Some(0x10b));
    });
}
