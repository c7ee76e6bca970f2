//! The graceful shutdown of the proxy.

use crate::attacker::*;
use crate::house::*;
use crate::wire::*;

/// RFC 9114 section 5.2: the identifier of GOAWAY is that of the first request that is not processed. Later requests are
/// rejected with H3_REQUEST_REJECTED, and earlier ones continue.
#[test]
fn shutdown_sends_goaway_and_keeps_open_tunnels() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let path = path_of(echo.address);
        let attacker = Attacker::new(&certificate, proxy.address).await;
        // Streams 0 and 4; the next request would have stream 8.
        let (_first, _receive) = attacker.tunnel(&path).await;
        let (_second, _receive) = attacker.tunnel(&path).await;
        let mut control = loop {
            let mut stream = attacker.connection.accept_uni().await.unwrap();
            let mut kind = [0];
            stream.read_exact(&mut kind).await.unwrap();
            if kind == [0] {
                break stream;
            }
        };
        assert_eq!(next_frame(&mut control).await.unwrap().0, SETTINGS);
        proxy.proxy.drain();
        assert_eq!(next_frame(&mut control).await.unwrap(), (GOAWAY, vec![8]));
        assert_eq!(attacker.ask(&request(&path), false).await, Outcome::Reset(0x10b));
        attacker.connection.send_datagram([1, 0, 5].to_vec().into()).unwrap();
        assert_eq!(&attacker.connection.read_datagram().await.unwrap()[..], [1, 0, 5]);
    });
}
