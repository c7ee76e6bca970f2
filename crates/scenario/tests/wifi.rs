//! Tests the descriptions of files with Wi-Fi networks.

use fullpipe_network::MediumDirection;
use fullpipe_network::filter::{PacketFilter, PortRange};
use fullpipe_scenario::description::*;
use fullpipe_scenario::load;
use fullpipe_units::{Duration, Instant};
use fullpipe_wifi::airtime::StationOrder;
use fullpipe_wifi::component::WifiSettings;
use fullpipe_wifi::config::RtsPolicy;
use fullpipe_wifi::medium::CategoryRule;
use fullpipe_wifi::phy::{
    AccessCategory, Band, ChannelWidth, DsssRate, ErrorModel, GuardInterval, MultiStreamRate, OfdmRate, PhyRate,
    Preamble, Standard,
};
use fullpipe_wifi::queue::{ApFqCoDel, ApQueue};
use fullpipe_wifi::rate_control::{Capabilities, IdealTarget, RateControlConfig};
use std::any::Any;

fn scenario(keys: &str, stations: &str) -> Scenario {
    let text = format!(
        "[[host]]\nname = 'server'\n[[host]]\nname = 'laptop'\ncount = 3\n[[router]]\nname = 'ap'\n\
         [[link]]\nname = 'internet'\nfrom = 'server'\nto = 'ap'\nrate = '1Gbit/s'\ndelay = '10ms'\n\
         [[wifi]]\nname = 'home'\naccess_point = 'ap'\n{keys}\n{stations}\n[[flow]]\nfrom = 'server'\nto = 'laptop*'\n"
    );
    load(&text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).scenario
}

fn settings(scenario: &Scenario) -> &WifiSettings {
    (&*scenario.access[0] as &dyn Any).downcast_ref().expect("the access network is Wi-Fi")
}

const ALL: &str = "[[wifi.station]]\nhost = 'laptop*'";

#[test]
fn defaults_are_those_of_linux_and_the_standard() {
    let scenario = scenario("", ALL);
    let wifi = settings(&scenario);
    let config = &wifi.config;
    assert_eq!((config.name.as_str(), config.standard, config.qos), ("home", Standard::Ac, true));
    assert_eq!(config.ap_queue, ApQueue::FqCoDel(ApFqCoDel::default()));
    assert_eq!((config.order, config.rts, config.retry_limit), (StationOrder::LINUX, RtsPolicy::Never, 7));
    let capabilities = Capabilities { streams: 2, width: ChannelWidth::Mhz80, short_guard: true };
    assert_eq!(config.stations[2].downlink, RateControlConfig::MinstrelHt(capabilities));
    let names: Vec<_> = config.stations.iter().map(|station| (station.name.as_str(), station.distance_m)).collect();
    assert_eq!(names, [("laptop1", 5.0), ("laptop2", 5.0), ("laptop3", 5.0)]);
    // The keys state the defaults of the configuration.
    let mut expected = fullpipe_wifi::config::Config::new("home", 0, Standard::Ac);
    expected.stations.clone_from(&config.stations);
    assert_eq!(*config, expected);
}

#[test]
fn each_standard_has_its_band_width_and_rate_control() {
    for (name, standard, width) in [
        ("standard = 'b'", Standard::B, ChannelWidth::Mhz20),
        ("standard = 'g'", Standard::G, ChannelWidth::Mhz20),
        ("standard = 'a'", Standard::A, ChannelWidth::Mhz20),
        ("standard = 'n'", Standard::N(Band::Ghz5), ChannelWidth::Mhz40),
        ("standard = 'n'\nband = '2.4GHz'", Standard::N(Band::Ghz2), ChannelWidth::Mhz20),
        ("channel_width = 160", Standard::Ac, ChannelWidth::Mhz160),
    ] {
        let scenario = scenario(name, ALL);
        let config = &settings(&scenario).config;
        assert_eq!(config.standard, standard);
        let streams = if standard.has_qos() { 2 } else { 1 };
        let capabilities = Capabilities { streams, width, short_guard: true };
        let control = match standard.has_qos() {
            true => RateControlConfig::MinstrelHt(capabilities),
            false => RateControlConfig::Ideal { capabilities, target: IdealTarget::default() },
        };
        assert_eq!(config.stations[0].uplink, control, "{name}");
    }
}

#[test]
fn keys_change_the_configuration() {
    let keys = "standard = 'n'\nchannel_width = 20\nmcs = 7\nstreams = 1\nguard_interval = 'long'\nerror_model = 'none'\n\
                rts_threshold = '2kB'\naggregate_packets = 16\nqueue = 'drop-tail'\ndriver_packets = 64\n\
                airtime_fairness = false\npower = 20.0\nretry_limit = 4";
    let stations = "[[wifi.station]]\nhost = 'laptop1'\ndistance = 20\nloss = 3.0\nchange = [{ at = '2s', loss = 13.0 }]\n\
                    [[wifi.station]]\nhost = 'laptop2'\nmcs = 0\n\
                    [[wifi.station]]\nhost = 'laptop3'\nrate_control = 'ideal'\nstreams = 2\n\
                    [[wifi.access]]\ncategory = 'voice'\nnodes = 'access-point'\naifsn = 1\n\
                    [[wifi.category]]\ncategory = 'voice'\nremote_ports = [5004]";
    let scenario = scenario(keys, stations);
    let wifi = settings(&scenario);
    let config = &wifi.config;
    let rate = |mcs| {
        let rate = MultiStreamRate { mcs, streams: 1, width: ChannelWidth::Mhz20, guard: GuardInterval::Long };
        RateControlConfig::Constant(PhyRate::Ht(rate))
    };
    let capabilities = Capabilities { streams: 2, width: ChannelWidth::Mhz20, short_guard: false };
    let ideal = RateControlConfig::Ideal { capabilities, target: IdealTarget::default() };
    let controls: Vec<RateControlConfig> = config.stations.iter().map(|station| station.downlink).collect();
    assert_eq!(controls, [rate(7), rate(0), ideal]);
    let at = Instant::ZERO + Duration::from_secs(2);
    assert_eq!(config.stations[0].shadowing, [(Instant::ZERO, 3.0), (at, 13.0)]);
    assert_eq!((config.stations[0].distance_m, config.errors, config.retry_limit), (20.0, None::<ErrorModel>, 4));
    assert_eq!((config.rts, config.aggregate.mpdus), (RtsPolicy::Above(2000), 16));
    assert_eq!(config.ap_queue, ApQueue::Fifo { packets: 1000, driver_packets: 64 });
    assert_eq!((config.order, config.channel.power_dbm), (StationOrder::RoundRobin, 20.0));
    let voice = AccessCategory::Voice as usize;
    assert_eq!((config.ap_access[voice].aifsn, config.station_access[voice].aifsn), (1, 2));
    let mut rule = CategoryRule::default();
    rule.add(AccessCategory::Voice, [PacketFilter { remote_ports: PortRange::one(5004), ..PacketFilter::ANY }]);
    assert_eq!(wifi.categories, rule);
}

#[test]
fn constant_rates_of_legacy_standards_are_in_bits_per_second() {
    let scenario_b = scenario("standard = 'b'\npreamble = 'short'\nrate = '5.5Mbit/s'", ALL);
    let rate = PhyRate::Dsss(DsssRate::Mbps5_5, Preamble::Short);
    assert_eq!(settings(&scenario_b).config.stations[0].uplink, RateControlConfig::Constant(rate));
    let scenario_a = scenario("standard = 'a'", &format!("{ALL}\nrate = '54Mbit/s'"));
    let rate = PhyRate::Ofdm(OfdmRate::Mbps54);
    assert_eq!(settings(&scenario_a).config.stations[0].uplink, RateControlConfig::Constant(rate));
}

#[test]
fn stations_are_evenly_spaced_and_have_probes() {
    let probe = "[[probe]]\nstation = 'laptop2'\nmetrics = ['air_delay_s', 'data_rate_bps']";
    let scenario = scenario("", &format!("{ALL}\ndistance = 10\nfarthest = 30\n{probe}"));
    let distances: Vec<f64> = settings(&scenario).config.stations.iter().map(|station| station.distance_m).collect();
    assert_eq!(distances, [10.0, 20.0, 30.0]);
    let subjects: Vec<ProbeSubject> = scenario.probes.iter().map(|probe| probe.subject).collect();
    assert_eq!(subjects, [ProbeSubject::Station { access: 0, station: 1, way: MediumDirection::Downlink }]);
}
