//! Targets that lead back to the proxy.

use crate::house::*;
use fullpipe_masque::client::{Error, TunnelSocket};
use fullpipe_masque::configuration;
use fullpipe_masque::environment::{BoxFuture, ConnectedSocket, Environment};
use fullpipe_sockets::{TokioEnvironment, endpoint};
use noq::ConnectionError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

/// An environment whose network translates every target to one address, as a NAT in front of the proxy may.
#[derive(Debug, Default)]
struct Translated(OnceLock<SocketAddr>);

impl Environment for Translated {
    fn runtime(&self) -> Arc<dyn noq::Runtime> {
        TokioEnvironment.runtime()
    }

    fn bind(&self, local: SocketAddr) -> io::Result<Box<dyn noq::AsyncUdpSocket>> {
        TokioEnvironment.bind(local)
    }

    fn connect(&self, _: SocketAddr) -> io::Result<Arc<dyn ConnectedSocket>> {
        TokioEnvironment.connect(*self.0.get().expect("the proxy has started"))
    }

    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec!["192.0.2.1".parse().unwrap()]) })
    }
}

#[test]
fn connection_through_a_tunnel_of_the_same_proxy_is_closed_as_a_loop() {
    run(async {
        let certificate = certificate();
        let world = Arc::new(Translated::default());
        let proxy = proxy_in(Arc::clone(&world) as Arc<dyn Environment>, &certificate, |_| {});
        world.0.set(proxy.address).unwrap();
        let client = datagram_client(&certificate, &proxy).await;
        let peer: SocketAddr = "192.0.2.1:443".parse().unwrap();
        let tunnel = Arc::new(client.open(&target(peer)).await.unwrap());
        let socket = TunnelSocket::new(Arc::clone(&tunnel), LOCAL.parse().unwrap(), peer);
        let inner = endpoint::client_on_socket(&TokioEnvironment, Box::new(socket)).unwrap();
        let mtu = configuration::Mtu::Fixed(1200);
        let transport = configuration::Tunnel { mtu, ..Default::default() }.transport(0);
        let connection = connect(&certificate, &inner, peer, transport).await;
        match connection.closed().await {
            // H3_REQUEST_REJECTED (RFC 9114 section 8.1), and the error type of RFC 9209 section 2.3.
            ConnectionError::ApplicationClosed(close) => {
                assert_eq!((close.error_code.into_inner(), &close.reason[..]), (0x10b, &b"proxy_loop_detected"[..]));
            }
            other => panic!("{other}"),
        }
        proxy.log.wait_for("reason=\"proxy_loop_detected\"", 1).await;
        assert_eq!(proxy.metrics.loops_total.get(), 1);
        // The outer connection is still usable.
        client.open(&target(peer)).await.unwrap();
    });
}

#[test]
fn listening_socket_and_public_address_are_no_targets() {
    run(async {
        let certificate = certificate();
        let own: SocketAddr = "127.0.0.1:4433".parse().unwrap();
        let proxy = proxy(&certificate, |settings| {
            settings.own.listening = vec![own];
            settings.own.public = vec!["1.1.1.1".parse().unwrap()];
            settings.policy.allow = vec!["127.0.0.0/8".parse().unwrap()];
        });
        let client = datagram_client(&certificate, &proxy).await;
        for (address, details) in [
            (own, "the target is the proxy itself"),
            ("1.1.1.1:53".parse().unwrap(), "the target's address is one of the proxy's host"),
        ] {
            match client.open(&target(address)).await {
                Err(Error::Rejected { status: 403, proxy_status }) => assert_eq!(
                    proxy_status,
                    format!("\"fullpipe\"; error=destination_ip_prohibited; details=\"{details}\"")
                ),
                other => panic!("{address}: {other:?}"),
            }
        }
        client.open(&target("127.0.0.1:4434".parse().unwrap())).await.unwrap();
    });
}

#[test]
fn addresses_of_this_host_are_local() {
    for (address, is_local) in [("127.0.0.1", true), ("192.0.2.1", false), ("2001:db8::1", false)] {
        assert_eq!(TokioEnvironment.is_local(address.parse().unwrap()), is_local, "{address}");
    }
}
