//! Impossible configurations.

use crate::common::{multi_stream, ofdm};
use fullpipe_units::{Duration, Instant};
use fullpipe_wifi::BasicServiceSet;
use fullpipe_wifi::config::{Config, StationConfig};
use fullpipe_wifi::phy::{ChannelWidth, DsssRate, PhyRate, Preamble, Standard};
use fullpipe_wifi::rate_control::{Capabilities, RateControlConfig};

fn config() -> Config {
    let mut config = Config::new("lan", 1, Standard::A);
    for name in ["a", "b"] {
        config.stations.push(StationConfig::new(name, 5.0, RateControlConfig::Constant(ofdm(54.0))));
    }
    config
}

/// A change of a valid configuration.
type Change = fn(&mut Config);

#[test]
fn errors_state_the_value_and_what_is_accepted() {
    assert!(BasicServiceSet::new(config()).is_ok());
    let cases: [(Change, &str); 14] = [
        (|config| config.stations.clear(), "0 stations: an access point has 1 to 2007"),
        (|config| config.stations[1].name = "a".to_owned(), "two stations have the name a"),
        (|config| config.station_access[1].aifsn = 0, "AIFSN 0: the range is 1 to 15"),
        (
            |config| config.ap_access[1].cw_min = 2000,
            "contention window 2000 to 1023: the range is 0 to 32767, in ascending order",
        ),
        (|config| config.retry_limit = 0, "retry limit 0: a frame is transmitted at least once"),
        (|config| config.aggregate.mpdus = 65, "aggregates of 65 MPDUs: the range is 1 to 64"),
        (|config| config.mpdu_spacing = Duration::from_micros(17), "MPDU spacing 17us: the range is 0 to 16us"),
        (|config| config.basic.clear(), "there are no basic rates"),
        (
            |config| config.basic.push(PhyRate::Dsss(DsssRate::Mbps1, Preamble::Long)),
            "DSSS 1 Mbit/s, long preamble cannot be a rate of control frames of this standard",
        ),
        (
            |config| config.stations[0].uplink = RateControlConfig::Constant(multi_stream("vht", 0, 80, 1, 800.0)),
            "station a: VHT MCS 0, 80 MHz, 1 stream (29.2 Mbit/s) is not a rate of this standard",
        ),
        (|config| config.stations[1].distance_m = f64::NAN, "station b: NaN is not a finite number"),
        (|config| config.stations[1].distance_m = -1.0, "station b: the distance -1 m is negative"),
        (
            |config| config.stations[0].shadowing = vec![(Instant::from_nanos(5), 1.0), (Instant::ZERO, 0.0)],
            "station a: the instants of its shadowing do not ascend",
        ),
        (
            |config| {
                let capabilities = Capabilities { streams: 2, width: ChannelWidth::Mhz20, short_guard: true };
                config.stations[0].downlink = RateControlConfig::MinstrelHt(capabilities);
            },
            "station a: Minstrel-HT has the rates of 802.11n and ac only",
        ),
    ];
    for (change, expected) in cases {
        let mut config = config();
        change(&mut config);
        assert_eq!(
            BasicServiceSet::new(config).map(|_| ()).map_err(|error| error.to_string()),
            Err(expected.to_owned())
        );
    }
}

#[test]
fn the_short_preamble_applies_to_control_frames() {
    let mut config = Config::new("lan", 1, Standard::B);
    config.set_preamble(Preamble::Short);
    assert_eq!(config.rts_rate, PhyRate::Dsss(DsssRate::Mbps2, Preamble::Short));
    assert_eq!(config.basic[0], PhyRate::Dsss(DsssRate::Mbps1, Preamble::Short));
}
