//! Attacks on the client by a proxy and by a server: malformed responses.

use crate::attacker::next_frame;
use crate::house::*;
use crate::wire::*;
use fullpipe_masque::client::{Client, Error};
use fullpipe_masque::configuration::{self, Mode};
use fullpipe_masque::http3;
use fullpipe_masque::template::Template;
use fullpipe_sockets::{TokioEnvironment, endpoint};
use std::net::SocketAddr;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Codes with which the client ended a stream: of RESET_STREAM and of STOP_SENDING.
type Codes = (Option<u64>, Option<u64>);

/// An HTTP/3 server that answers the requests of one connection with these bytes, in order, and leaves the streams open.
/// It reports how the client ends each stream.
struct Rogue {
    address: SocketAddr,
    ends: UnboundedReceiver<Codes>,
}

impl Rogue {
    fn start(certificate: &Certificate, answers: Vec<Vec<u8>>) -> Rogue {
        let transport = configuration::Tunnel::default().transport(100);
        let endpoint = bind(certificate, transport);
        let address = endpoint.local_addr().unwrap();
        let (report, ends) = unbounded_channel();
        tokio::spawn(async move {
            let connection = endpoint.accept().await.unwrap().await.unwrap();
            let mut control = connection.open_uni().await.unwrap();
            // Extended CONNECT (RFC 9220 section 3) and HTTP datagrams (RFC 9297 section 2.1.1).
            let settings = frame(SETTINGS, &varints(&[0x08, 1, 0x33, 1]));
            control.write_all(&[vec![0], settings].concat()).await.unwrap();
            for answer in answers {
                let (mut send, mut receive) = connection.accept_bi().await.unwrap();
                send.write_all(&answer).await.unwrap();
                let stopped = send.stopped().await.ok().flatten().map(noq::VarInt::into_inner);
                let reset = loop {
                    match receive.read(&mut [0; 1000]).await {
                        Ok(Some(_)) => {}
                        Ok(None) => break None,
                        Err(noq::ReadError::Reset(code)) => break Some(code.into_inner()),
                        // The test has ended.
                        Err(_) => return,
                    }
                };
                // The test may have ended.
                let _ = report.send((reset, stopped));
            }
            connection.closed().await;
        });
        Rogue { address, ends }
    }

    async fn connect(&self, certificate: &Certificate) -> noq::Connection {
        let endpoint = endpoint::bind_client(&TokioEnvironment, self.address).unwrap();
        connect(certificate, &endpoint, self.address, configuration::Client::default().transport()).await
    }
}

async fn client(connection: noq::Connection) -> Client {
    let template = Template::well_known("localhost").unwrap();
    Client::new(environment(), connection, template, configuration::Client::default(), Default::default())
        .await
        .unwrap()
}

/// Responses to a CONNECT-UDP request that are malformed (RFC 9114 section 4.1.2).
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let ok = |more: &[(&str, &str)]| headers(&[&[(":status", "200")][..], more].concat());
    vec![
        // RFC 9114 section 4.2.
        ("a name in capitals", ok(&[("X-Capital", "a")])),
        ("a space in a name", ok(&[("a b", "c")])),
        ("an empty name", ok(&[("", "c")])),
        ("a zero in a value", ok(&[("a", "b\0c")])),
        ("a line feed in a value", ok(&[("a", "b\nc")])),
        ("a carriage return in a value", ok(&[("a", "b\rc")])),
        ("connection", ok(&[("connection", "close")])),
        ("keep-alive", ok(&[("keep-alive", "timeout=5")])),
        ("proxy-connection", ok(&[("proxy-connection", "close")])),
        ("upgrade", ok(&[("upgrade", "connect-udp")])),
        ("transfer-encoding", ok(&[("transfer-encoding", "chunked")])),
        ("te", ok(&[("te", "trailers")])),
        // Section 4.3.
        ("an unknown pseudo-header field", ok(&[(":x", "y")])),
        ("a pseudo-header field of requests", ok(&[(":path", "/")])),
        ("the status after a regular field", headers(&[("x", "y"), (":status", "200")])),
        // Section 4.3.2.
        ("no status", headers(&[("x", "y")])),
        ("an empty section", headers(&[])),
        ("two statuses", ok(&[(":status", "200")])),
        ("a status of two digits", headers(&[(":status", "20")])),
        ("a status that is no number", headers(&[(":status", "2xx")])),
        ("no final status", [headers(&[(":status", "103")]), headers(&[("x", "y")])].concat()),
        // Section 4.5.
        ("status 101", headers(&[(":status", "101")])),
        // RFC 9297 section 3.4.
        ("content-length", ok(&[("content-length", "0")])),
        ("content-type", ok(&[("content-type", "text/plain")])),
        ("status 204", headers(&[(":status", "204")])),
        ("status 205", headers(&[(":status", "205")])),
        ("status 206", headers(&[(":status", "206")])),
    ]
}

#[test]
fn malformed_responses_abort_only_their_stream() {
    run(async {
        let certificate = certificate();
        let (names, mut answers): (Vec<_>, Vec<_>) = malformed().into_iter().unzip();
        // Interim responses precede the final one (RFC 9114 section 4.1).
        let interim = headers(&[(":status", "103"), ("link", "</a>")]);
        answers.push([interim.clone(), interim, headers(&[(":status", "200")])].concat());
        let mut rogue = Rogue::start(&certificate, answers);
        let client = client(rogue.connect(&certificate).await).await;
        let target = target("192.0.2.1:9".parse().unwrap());
        let mut wrong = Vec::new();
        for name in names {
            match client.open(&target).await {
                Err(error @ (Error::Stream(_) | Error::Malformed(_))) if error.to_string().contains("malformed") => {}
                other => wrong.push(format!("{name}: {other:?}")),
            }
            let end = rogue.ends.recv().await.unwrap();
            if end != (Some(0x10e), Some(0x10e)) {
                wrong.push(format!("{name}: ended with {end:x?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        // The connection is still usable.
        client.open(&target).await.unwrap();
    });
}

/// RFC 9209 section 2: each intermediary adds a member to the list, on its own line or on the same one. The byte 0x9b
/// starts a control sequence of terminals.
#[test]
fn rejection_has_the_status_and_every_member_of_proxy_status() {
    run(async {
        let certificate = certificate();
        let rejection = |more: &[(&str, &str)]| headers(&[&[(":status", "502")][..], more].concat());
        let near = ("proxy-status", "near; error=connection_refused; details=\"port 9\"");
        let mut unprintable = rejection(&[("proxy-status", "near; details=\"~[2J\"")]);
        *unprintable.iter_mut().find(|byte| **byte == b'~').unwrap() = 0x9b;
        let cases = [
            (rejection(&[]), "and without Proxy-Status"),
            (rejection(&[near]), "and Proxy-Status: near; error=connection_refused; details=\"port 9\""),
            (
                rejection(&[near, ("proxy-status", "far; error=http_request_error")]),
                "and Proxy-Status: near; error=connection_refused; details=\"port 9\", far; error=http_request_error",
            ),
            (unprintable, "and Proxy-Status: near; details=\"?[2J\""),
        ];
        let rogue = Rogue::start(&certificate, cases.iter().map(|(answer, _)| answer.clone()).collect());
        let client = client(rogue.connect(&certificate).await).await;
        for (_, expected) in cases {
            let error = client.open(&target("192.0.2.1:9".parse().unwrap())).await.unwrap_err();
            assert_eq!(error.to_string(), format!("the proxy rejected the request with status 502 {expected}"));
        }
    });
}

/// The proxy aborts a request before its response, then a tunnel, and then closes the connection.
#[test]
fn end_of_a_tunnel_is_described_in_words() {
    run(async {
        let certificate = certificate();
        let endpoint = bind(&certificate, configuration::Tunnel::default().transport(100));
        let address = endpoint.local_addr().unwrap();
        let (next, mut proceed) = unbounded_channel();
        tokio::spawn(async move {
            let connection = endpoint.accept().await.unwrap().await.unwrap();
            let mut control = connection.open_uni().await.unwrap();
            let settings = frame(SETTINGS, &varints(&[0x08, 1, 0x33, 1]));
            control.write_all(&[vec![0], settings].concat()).await.unwrap();
            // H3_CONNECT_ERROR (RFC 9114 section 8.1).
            let code = noq::VarInt::from_u32(0x10f);
            let (mut send, mut receive) = connection.accept_bi().await.unwrap();
            send.reset(code).unwrap();
            receive.stop(code).unwrap();
            let mut open = Vec::new();
            for reset in [true, false] {
                let (mut send, mut receive) = connection.accept_bi().await.unwrap();
                send.write_all(&headers(&[(":status", "200")])).await.unwrap();
                let () = proceed.recv().await.unwrap();
                match reset {
                    true => send.reset(code).unwrap(),
                    false => receive.stop(code).unwrap(),
                }
                // Their drop would end the other half with another code.
                open.push((send, receive));
            }
            let (mut send, _receive) = connection.accept_bi().await.unwrap();
            send.write_all(&headers(&[(":status", "200")])).await.unwrap();
            let () = proceed.recv().await.unwrap();
            // H3_REQUEST_REJECTED, with an error type of RFC 9209 section 2.3 as the reason phrase.
            connection.close(noq::VarInt::from_u32(0x10b), b"proxy_loop_detected\x1b");
            endpoint.wait_idle().await;
        });
        let outgoing = endpoint::bind_client(&TokioEnvironment, address).unwrap();
        let transport = configuration::Client::default().transport();
        let client = client(connect(&certificate, &outgoing, address, transport).await).await;
        let target = target("192.0.2.1:9".parse().unwrap());
        let words = "the proxy cannot reach the target: its socket reported an error, such as an ICMP error";
        let error = client.open(&target).await.unwrap_err().to_string();
        assert_eq!(error, format!("the request was aborted: {words} (H3_CONNECT_ERROR)"));
        for _ in 0..2 {
            let tunnel = client.open(&target).await.unwrap();
            next.send(()).unwrap();
            let ended = tunnel.receive(&mut Vec::new()).await.unwrap_err();
            assert_eq!(ended.0, format!("{words} (H3_CONNECT_ERROR)"));
        }
        let tunnel = client.open(&target).await.unwrap();
        next.send(()).unwrap();
        let words = "the proxy closed the connection: proxy_loop_detected?";
        assert_eq!(tunnel.receive(&mut Vec::new()).await.unwrap_err().0, words);
        assert_eq!(client.open(&target).await.unwrap_err().to_string(), words);
    });
}

/// RFC 9114 section 4.1.2: content that is longer than announced.
#[test]
fn response_with_too_much_content_is_rejected_before_its_end() {
    run(async {
        let certificate = certificate();
        let ok = headers(&[(":status", "200"), ("content-length", "2")]);
        let long = [ok, frame(DATA, b"ab"), frame(DATA, b"c")].concat();
        let rogue = Rogue::start(&certificate, vec![long]);
        let connection = rogue.connect(&certificate).await;
        let mut stored = Vec::new();
        let fetched = http3::get(&environment(), connection, &"https://localhost/".parse().unwrap(), |piece| {
            stored.extend_from_slice(piece);
            Ok(())
        })
        .await;
        let error = fetched.unwrap_err().to_string();
        assert_eq!(error, "the server sent 3 bytes, but its content-length is 2");
        assert_eq!(stored, b"ab");
    });
}

/// RFC 9297 section 2.1.1: SETTINGS_H3_DATAGRAM is 0x33, and RFC 9221 section 3: a transport parameter permits DATAGRAM
/// frames. Proxies of other implementations require both for each request, and reply with datagrams to capsules.
#[test]
fn client_in_stream_mode_offers_datagrams_and_accepts_them() {
    run(async {
        let certificate = certificate();
        let endpoint = bind(&certificate, configuration::Tunnel::default().transport(100));
        let address = endpoint.local_addr().unwrap();
        let proxy = tokio::spawn(async move {
            let connection = endpoint.accept().await.unwrap().await.unwrap();
            let mut control = connection.open_uni().await.unwrap();
            let settings = frame(SETTINGS, &varints(&[0x08, 1, 0x33, 1]));
            control.write_all(&[vec![0], settings].concat()).await.unwrap();
            // The client's control stream: its type, then SETTINGS with pairs of identifier and value.
            let mut received = loop {
                let mut stream = connection.accept_uni().await.unwrap();
                let mut kind = [0];
                stream.read_exact(&mut kind).await.unwrap();
                if kind == [0] {
                    break stream;
                }
            };
            let (kind, payload) = next_frame(&mut received).await.unwrap();
            assert_eq!(kind, SETTINGS);
            let mut settings = Vec::new();
            let mut rest = &payload[..];
            while let Some((value, length)) = read_varint(rest) {
                settings.push(value);
                rest = &rest[length..];
            }
            assert!(settings.chunks(2).any(|pair| pair == [0x33, 1]), "{settings:?}");
            assert!(connection.max_datagram_size().is_some());
            let (mut send, mut receive) = connection.accept_bi().await.unwrap();
            send.write_all(&headers(&[(":status", "200")])).await.unwrap();
            assert_eq!(next_frame(&mut receive).await.unwrap().0, HEADERS);
            // The payload arrives in a DATAGRAM capsule (type 0) of context 0. The reply is an HTTP datagram.
            assert_eq!(next_frame(&mut receive).await.unwrap(), (DATA, frame(0, &[0, b'a'])));
            connection.send_datagram(vec![0, 0, b'b'].into()).unwrap();
            connection.closed().await;
        });
        let client_endpoint = endpoint::bind_client(&TokioEnvironment, address).unwrap();
        let settings = configuration::Client { mode: Mode::Stream, ..Default::default() };
        let connection = connect(&certificate, &client_endpoint, address, settings.transport()).await;
        let template = Template::well_known("localhost").unwrap();
        let client = Client::new(environment(), connection, template, settings, Default::default()).await.unwrap();
        let tunnel = client.open(&target("192.0.2.1:9".parse().unwrap())).await.unwrap();
        assert_eq!(exchange(&tunnel, b"a").await, b"b"[..]);
        client.close();
        proxy.await.unwrap();
    });
}
