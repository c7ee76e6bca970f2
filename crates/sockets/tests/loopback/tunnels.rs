//! Tunnels: many on one connection, payloads that do not fit, and reasons to end.

use crate::house::*;
use bytes::Bytes;
use fullpipe_masque::configuration::{Mode, Mtu};
use fullpipe_masque::environment::Environment;
use fullpipe_sockets::TokioEnvironment;
use noq::udp::RecvMeta;
use std::io::IoSliceMut;
use std::time::Duration;

#[test]
fn many_tunnels_share_a_connection() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        for mode in MODES {
            let client = client(&certificate, &proxy, |settings| settings.mode = mode).await;
            let mut tunnels = Vec::new();
            for _ in 0..70 {
                tunnels.push(client.open(&target(echo.address)).await.unwrap());
            }
            for (number, tunnel) in tunnels.iter().enumerate() {
                tunnel.send(&mut vec![vec![number as u8; number].into()]);
            }
            for (number, tunnel) in tunnels.iter().enumerate() {
                let mut back = Vec::new();
                tunnel.receive(&mut back).await.unwrap();
                assert_eq!(back, [Bytes::from(vec![number as u8; number])], "{mode:?}");
            }
        }
        assert_eq!(proxy.metrics.connections_total.get(), 2);
        assert_eq!(proxy.metrics.requests_total.get(), 140);
    });
}

/// The overhead of a datagram is 40 bytes: flags 1, connection ID 8, packet number 4, tag 16, frame bound 9, quarter
/// stream ID 1, context 1.
#[test]
fn oversized_payload_is_dropped_and_counted() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| settings.tunnel.mtu = Mtu::Fixed(1300));
        let small = client(&certificate, &proxy, |settings| settings.tunnel.mtu = Mtu::Fixed(1240)).await;
        let tunnel = small.open(&target(echo.address)).await.unwrap();
        assert_eq!(tunnel.max_payload(), 1200);
        tunnel.send(&mut vec![vec![1; 1201].into()]);
        assert_eq!(exchange(&tunnel, &[2; 1200]).await, [2; 1200][..]);
        // From the target, 1260 bytes fit.
        echo.send_again(&[3; 1261]).await.unwrap();
        echo.send_again(&[4; 1260]).await.unwrap();
        let mut back = Vec::new();
        tunnel.receive(&mut back).await.unwrap();
        assert_eq!(back, [Bytes::from_static(&[4; 1260])]);
        assert_eq!(proxy.metrics.dropped_too_large_total.get(), 1);
        // In stream mode, every valid UDP payload fits.
        let stream = client(&certificate, &proxy, |settings| settings.mode = Mode::Stream).await;
        let tunnel = stream.open(&target(echo.address)).await.unwrap();
        assert_eq!(exchange(&tunnel, &[5; 60_000]).await, [5; 60_000][..]);
        assert_eq!(exchange(&tunnel, b"").await, b""[..]);
    });
}

#[test]
fn icmp_errors_and_idle_timeout_end_a_tunnel() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |settings| settings.idle_timeout = Duration::from_secs(2));
        let nobody = {
            let socket = std::net::UdpSocket::bind(LOCAL).unwrap();
            socket.local_addr().unwrap()
        };
        for mode in MODES {
            let client = client(&certificate, &proxy, |settings| settings.mode = mode).await;
            let tunnel = client.open(&target(nobody)).await.unwrap();
            tunnel.send(&mut vec![Bytes::from_static(b"anybody?")]);
            let ended = tunnel.receive(&mut Vec::new()).await.unwrap_err();
            assert!(ended.0.starts_with("the proxy cannot reach the target: "), "{mode:?}: {ended}");
            let tunnel = client.open(&target(echo.address)).await.unwrap();
            assert_eq!(exchange(&tunnel, b"x").await, b"x"[..]);
            tunnel.receive(&mut Vec::new()).await.unwrap_err();
        }
        proxy.log.wait_for("cannot reach the target", 2).await;
        proxy.log.wait_for("reason=\"idle\"", 2).await;
    });
}

/// RFC 9298 section 6.2: datagrams to the target are not ECN-capable, and codepoints from the target are not relayed.
#[test]
fn datagrams_to_the_target_are_not_ecn_capable() {
    run(async {
        let certificate = certificate();
        let proxy = proxy(&certificate, |_| {});
        let mut socket = TokioEnvironment.bind(LOCAL.parse().unwrap()).unwrap();
        let client = datagram_client(&certificate, &proxy).await;
        let tunnel = client.open(&target(socket.local_addr().unwrap())).await.unwrap();
        tunnel.send(&mut vec![Bytes::from_static(b"codepoint?")]);
        let mut room = vec![0; 2000];
        let mut metas = [RecvMeta::default()];
        std::future::poll_fn(|context| socket.poll_recv(context, &mut [IoSliceMut::new(&mut room)], &mut metas))
            .await
            .unwrap();
        assert_eq!((metas[0].len, metas[0].ecn), (10, None));
    });
}
