//! Bodies through the proxy arrive whole, in both modes.

use crate::house::*;
use fullpipe_masque::http3::Fetched;

#[test]
fn ten_megabytes_pass_in_both_modes() {
    run(async {
        let certificate = certificate();
        let server = serve(&certificate);
        let proxy = proxy(&certificate, |_| {});
        for mode in MODES {
            let client = client(&certificate, &proxy, |settings| settings.mode = mode).await;
            let tunnel = client.open(&target(server)).await.unwrap();
            let fetched = get_through(&certificate, tunnel, 10_000_000, 1200).await;
            assert_eq!(fetched, Fetched { status: 200, bytes: 10_000_000 }, "{mode:?}");
        }
        assert_eq!(proxy.metrics.requests_total.get(), 2);
        // Every packet of both transfers passed; the server tries no packets above 1452 bytes.
        assert!(proxy.metrics.payloads_from_target_total.get() > 2 * 10_000_000 / 1452);
        assert!(proxy.metrics.bytes_from_target_total.get() > 20_000_000);
    });
}
