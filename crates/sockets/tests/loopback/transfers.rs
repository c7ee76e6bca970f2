//! Bodies arrive complete through the proxy in both modes.

use crate::house::*;
use fullpipe_masque::configuration::Tunnel;
use fullpipe_masque::http3::{self, FetchResult};
use fullpipe_sockets::{TokioEnvironment, endpoint};
use std::time::Duration;

#[test]
fn ten_megabytes_arrive_in_both_modes() {
    run(async {
        let certificate = certificate();
        let server = serve(&certificate);
        let proxy = proxy(&certificate, |_| {});
        for mode in MODES {
            let client = client(&certificate, &proxy, |settings| settings.mode = mode).await;
            let tunnel = client.open(&target(server)).await.unwrap();
            let fetched = get_through(&certificate, tunnel, 10_000_000, 1200).await;
            assert_eq!(fetched, FetchResult { status: 200, bytes: 10_000_000 }, "{mode:?}");
        }
        assert_eq!(proxy.metrics.requests_total.get(), 2);
        // The proxy relays every packet of both transfers; the server tries no packets above 1452 bytes.
        assert!(proxy.metrics.payloads_from_target_total.get() > 2 * 10_000_000 / 1452);
        assert!(proxy.metrics.bytes_from_target_total.get() > 20_000_000);
    });
}

/// A full window of packets waits for a reader that pauses.
#[test]
fn slow_reader_receives_the_complete_body() {
    run(async {
        let certificate = certificate();
        let server = serve(&certificate);
        let endpoint = endpoint::bind_client(&TokioEnvironment, server).unwrap();
        let connection = connect(&certificate, &endpoint, server, Tunnel::default().transport(0)).await;
        let (environment, uri) = (environment(), "https://localhost/10000000".parse().unwrap());
        let mut bytes = 0;
        let mut pauses = vec![8_000_000, 4_000_000, 2_000_000];
        let fetched = http3::get(&environment, connection, &uri, |piece| {
            bytes += piece.len();
            if pauses.pop_if(|at| bytes > *at).is_some() {
                std::thread::sleep(Duration::from_millis(300));
            }
            Ok(())
        });
        assert_eq!(fetched.await.unwrap(), FetchResult { status: 200, bytes: 10_000_000 });
        assert!(pauses.is_empty());
    });
}
