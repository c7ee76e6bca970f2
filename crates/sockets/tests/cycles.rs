//! A thousand sequential tunnels leave no descriptor, no task and no queued bytes behind. The test has its own process,
//! since it counts descriptors.

#[allow(dead_code, reason = "this test needs a part of it")]
#[path = "loopback/house.rs"]
mod house;

use fullpipe_masque::configuration::Mode;
use house::*;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn thousand_sequential_tunnels_leak_nothing() {
    run(async {
        let certificate = certificate();
        let echo = echo().await;
        let proxy = proxy(&certificate, |_| {});
        let datagram = datagram_client(&certificate, &proxy).await;
        let stream = client(&certificate, &proxy, |settings| settings.mode = Mode::Stream).await;
        // Both connections keep their sockets until the end.
        let before = descriptors();
        for (mode, client) in [(Mode::Datagram, &datagram), (Mode::Stream, &stream)] {
            for _ in 0..500 {
                let tunnel = client.open(&target(echo.address)).await.unwrap();
                assert_eq!(exchange(&tunnel, b"x").await, b"x"[..]);
            }
            while proxy.metrics.requests_open.get() > 0 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            assert_eq!(descriptors(), before, "{mode:?}");
        }
        datagram.close();
        stream.close();
        while proxy.metrics.connections_open.get() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert_eq!(proxy.metrics.requests_total.get(), 1000);
        assert_eq!(proxy.metrics.queued_bytes.get(), 0);
    });
}
