use super::*;
use crate::description::{Link, QueueLimit, Scenario, Transport};
use fullpipe_network::{
    BernoulliLoss, Blackhole, Droplist, FrameFilter, FrameSelection, Impairments, PayloadCorruption, RebindingDirection,
};
use fullpipe_units::{Duration, Rate};
use fullpipe_workload::ConstantRateSpec;
use proptest::prelude::*;

const PATH: &str = "--delay=15ms --bandwidth=10Mbps --queue=25";

fn text_of(scenario: &str) -> String {
    translate(scenario, HostSetup::Interfaces { left: "eth0", right: "eth1" }, 7)
        .unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn loaded(scenario: &str) -> Scenario {
    let text = text_of(scenario);
    crate::load(&text, "simulator", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}")).scenario
}

/// The two directions of the simulated link: to the server, to the client.
fn path(scenario: &Scenario) -> [&Link; 2] {
    let place = scenario.links.iter().position(|link| link.name == "path").unwrap();
    [&scenario.links[place], &scenario.links[place + 1]]
}

fn wrong(scenario: &str) -> String {
    match translate(scenario, HostSetup::Interfaces { left: "eth0", right: "eth1" }, 7) {
        Ok(text) => panic!("{scenario} is accepted:\n{text}"),
        Err(wrong) => wrong.to_string(),
    }
}

#[test]
fn simple_p2p_has_the_simulators_addresses_rate_delay_and_queue() {
    let scenario = loaded(&format!("simple-p2p {PATH}"));
    let addresses: Vec<String> = (scenario.nodes.iter())
        .map(|node| format!("{} {} {}", node.name, node.ipv4().unwrap(), node.ipv6().unwrap()))
        .collect();
    assert_eq!(
        addresses,
        [
            "client 193.167.0.100 fd00:cafe:cafe::100",
            "server 193.167.100.100 fd00:cafe:cafe:100::100",
            "left 193.167.0.2 fd00:cafe:cafe::2",
            "right 193.167.100.2 fd00:cafe:cafe:100::2"
        ]
    );
    assert_eq!((scenario.nodes[0].interface(), scenario.nodes[1].interface()), (Some("eth0"), Some("eth1")));
    assert_eq!((scenario.seed, scenario.duration), (7, Duration::from_secs(36_000)));
    for link in path(&scenario) {
        assert_eq!((link.rate, link.delay), (Rate::from_bits_per_second(10_000_000), Duration::from_millis(15)));
        // 25 in the queue and one in the device queue; the packet in transmission does not count.
        assert_eq!((link.queue, link.framing_bytes), (QueueLimit::Packets(26), 2));
        assert_eq!(link.impairments, Impairments::default());
    }
}

#[test]
fn drop_rate_applies_per_direction_in_bursts_to_udp_only() {
    let scenario = loaded(&format!("drop-rate {PATH} --rate_to_client=10 --rate_to_server=100 --burst_to_server=3"));
    let [to_server, to_client] = path(&scenario);
    let selection =
        |probability, largest_burst| FrameSelection { probability, largest_burst, frames: FrameFilter::Udp };
    let lost =
        |link: &Link| link.impairments.settings_of::<BernoulliLoss>().map(|loss| loss.selection).collect::<Vec<_>>();
    assert_eq!(lost(to_client), [selection(0.1, None)]);
    assert_eq!(lost(to_server), [selection(1.0, Some(3))]);
    // A rate of zero drops no packets.
    let scenario = loaded(&format!("drop-rate {PATH} --rate_to_client=0 --rate-to-server=5"));
    let [to_server, to_client] = path(&scenario);
    assert_eq!(lost(to_server), [selection(0.05, None)]);
    assert_eq!(lost(to_client), [selection(0.0, None)]);
}

#[test]
fn corrupt_rate_delivers_frames_unless_simulator_behavior_is_requested() {
    let asked = format!("corrupt-rate {PATH} --rate_to_client=20 --rate_to_server=0 --burst_to_client=2");
    for (more, delivered) in [("", true), (" --discard_corrupted", false), (" --discard_corrupted=false", true)] {
        let scenario = loaded(&format!("{asked}{more}"));
        let selection = FrameSelection { probability: 0.2, largest_burst: Some(2), frames: FrameFilter::Udp };
        let expected = PayloadCorruption { selection, window_bytes: 51, spare_version_negotiation: true, delivered };
        assert_eq!(path(&scenario)[1].impairments, Impairments::default().with(expected));
    }
}

#[test]
fn droplist_counts_udp_packets_only() {
    let scenario = loaded(&format!("droplist {PATH} --drops_to_client=1,3,4 --drops_to_server=5"));
    let list = |numbers| Impairments::default().with(Droplist { data_only: false, frames: FrameFilter::Udp, numbers });
    let [to_server, to_client] = path(&scenario);
    assert_eq!(to_client.impairments, list(vec![1, 3, 4]));
    assert_eq!(to_server.impairments, list(vec![5]));
    // Both are optional.
    let scenario = loaded(&format!("droplist {PATH}"));
    assert!(path(&scenario).iter().all(|link| link.impairments == Impairments::default()));
}

#[test]
fn blackhole_repeats_with_the_on_and_off_times() {
    let hole = |times| Blackhole {
        from: Duration::from_secs(5),
        until: Duration::from_secs(7),
        period: Duration::from_secs(7),
        times,
        of_arrivals: true,
    };
    for (more, to_client, to_server) in [
        ("", vec![hole(1)], vec![hole(1)]),
        (" --repeat=3 --direction=toclient", vec![hole(3)], vec![]),
        (" --direction=toserver", vec![], vec![hole(1)]),
        (" --direction=both", vec![hole(1)], vec![hole(1)]),
    ] {
        let scenario = loaded(&format!("blackhole {PATH} --on=5s --off=2s{more}"));
        let [there, back] = path(&scenario);
        let holes = |link: &Link| link.impairments.settings_of::<Blackhole>().copied().collect::<Vec<_>>();
        assert_eq!((holes(back), holes(there)), (to_client, to_server), "{more}");
    }
}

#[test]
fn rebind_puts_the_client_inside_a_nat() {
    let scenario = loaded(&format!("rebind {PATH} --first-rebind=1s --rebind-freq=500ms --rebind-addr=true"));
    let [there, back] = path(&scenario).map(|link| link.impairments.rebinding.unwrap());
    assert_eq!((there.side, back.side), (RebindingDirection::Outbound, RebindingDirection::Inbound));
    for rebinding in [there, back] {
        assert_eq!((rebinding.first, rebinding.every), (Duration::from_secs(1), Duration::from_millis(500)));
        assert!(rebinding.address);
    }
    let scenario = loaded(&format!("rebind {PATH} --first-rebind=1s --rebind-freq=0s"));
    let rebinding = path(&scenario)[0].impairments.rebinding.unwrap();
    assert_eq!((rebinding.every, rebinding.address), (Duration::ZERO, false));
}

#[test]
fn cross_traffic_runs_from_right_to_left() {
    let scenario = loaded(&format!("tcp-cross-traffic {PATH}"));
    let flow = &scenario.flows[0];
    let name = |node: fullpipe_units::NodeId| scenario.nodes[node.index()].name.as_str();
    assert_eq!((name(flow.from), name(flow.to), flow.port), ("tcp-source", "tcp-sink", 9));
    // The source is behind the router of the server.
    let beside = |scenario: &Scenario, host| {
        let link = scenario.links.iter().find(|link| link.from == host).unwrap();
        scenario.nodes[link.to.index()].name.clone()
    };
    assert_eq!((beside(&scenario, flow.from), beside(&scenario, flow.to)), ("right".into(), "left".into()));
    let Transport::Tcp(tcp) = &flow.transport else { panic!("{flow:?}") };
    assert_eq!((tcp.connection.mss_bytes, tcp.connection.receive_buffer_bytes), (1448, 10 << 20));
    assert_eq!(flow.workload.name(), "bulk");

    let scenario = loaded(&format!("udp-cross-traffic {PATH} --crossdatarate=5Mbps"));
    let flow = &scenario.flows[0];
    assert_eq!((beside(&scenario, flow.from), beside(&scenario, flow.to)), ("right".into(), "left".into()));
    assert_eq!(flow.start, Duration::from_secs(20));
    let earlier = loaded(&format!("udp-cross-traffic {PATH} --crossdatarate=5Mbps --start=500ms"));
    assert_eq!(earlier.flows[0].start, Duration::from_millis(500));
    // 512 bytes at 5 Mbit/s take 819.2 us.
    let datagrams: &ConstantRateSpec = flow.workload.downcast_ref().expect("datagrams at a constant rate");
    assert_eq!((datagrams.interval, datagrams.payload_bytes), (Duration::from_nanos(819_200), 512));
}

#[test]
fn times_and_rates_accept_the_simulators_units() {
    let of = |delay: &str, rate: &str| {
        let scenario = loaded(&format!("simple-p2p --delay={delay} --bandwidth={rate} --queue=0"));
        let link = path(&scenario)[0];
        (link.delay.as_nanos(), link.rate.bits_per_second())
    };
    assert_eq!(of("15ms", "10Mbps"), (15_000_000, 10_000_000));
    assert_eq!(of("1.5ms", "2.5Mbps"), (1_500_000, 2_500_000));
    assert_eq!(of("500us", "64Kbps"), (500_000, 64_000));
    assert_eq!(of("1ns", "64kbps"), (1, 64_000));
    assert_eq!(of("2s", "1Gbps"), (2_000_000_000, 1_000_000_000));
    assert_eq!(of("0.1", "9600bps"), (100_000_000, 9600));
    assert_eq!(of("0ms", "1MBps"), (0, 8_000_000));
}

#[test]
fn missing_or_wrong_option_gives_an_error_of_one_sentence() {
    for (scenario, told) in [
        ("", "the scenario is empty"),
        ("simple-p2p", "simple-p2p requires --delay, the one-way delay of the link"),
        ("simple-p2p --delay=15ms", "simple-p2p requires --bandwidth"),
        ("simple-p2p --delay=15ms --bandwidth=10Mbps", "simple-p2p requires --queue"),
        ("simple-p2 --delay=15ms", "unknown scenario simple-p2; did you mean simple-p2p?"),
        ("simple-p2p --delay=15 ms", "ms is not an option"),
        ("simple-p2p --delay=15xs --bandwidth=10Mbps --queue=25", "--delay=15xs is invalid; expected a time"),
        ("simple-p2p --delay=-15ms --bandwidth=10Mbps --queue=25", "--delay=-15ms is invalid"),
        ("simple-p2p --delay=1.2.3s --bandwidth=10Mbps --queue=25", "--delay=1.2.3s is invalid"),
        ("simple-p2p --delay=0.1ns --bandwidth=10Mbps --queue=25", "--delay=0.1ns is invalid"),
        ("simple-p2p --delay=2h --bandwidth=10Mbps --queue=25", "--delay=2h is invalid"),
        ("simple-p2p --delay --bandwidth=10Mbps --queue=25", "--delay= is invalid"),
        ("simple-p2p --delay=15ms --bandwidth=0Mbps --queue=25", "--bandwidth=0Mbps is invalid"),
        ("simple-p2p --delay=15ms --bandwidth=fast --queue=25", "--bandwidth=fast is invalid"),
        ("simple-p2p --delay=15ms --bandwidth=10Mbps --queue=-1", "--queue=-1 is invalid"),
        ("simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25 --queu=3", "no option --queu; did you mean --queue?"),
    ] {
        assert!(wrong(scenario).contains(told), "{scenario}: {}", wrong(scenario));
    }
    for (scenario, told) in [
        ("drop-rate --rate_to_client=10", "drop-rate requires --rate_to_server"),
        ("drop-rate --rate_to_client=101 --rate_to_server=1", "--rate_to_client=101 is invalid"),
        ("drop-rate --rate_to_client=1.5 --rate_to_server=1", "--rate_to_client=1.5 is invalid"),
        ("corrupt-rate --rate_to_server=1", "corrupt-rate requires --rate_to_client"),
        ("droplist --drops_to_client=1,x", "--drops_to_client=1,x is invalid"),
        ("droplist --drops_to_client=0", "--drops_to_client=0 is invalid"),
        ("blackhole --on=5s", "blackhole requires --off"),
        ("blackhole --off=5s", "blackhole requires --on"),
        ("blackhole --on=5s --off=0s", "--off=0s is invalid"),
        ("blackhole --on=5s --off=1s --repeat=0", "--repeat=0 is invalid"),
        ("blackhole --on=5s --off=1s --direction=up", "expected one of both, toclient, toserver"),
        ("rebind", "rebind requires --first-rebind"),
        ("rebind --first-rebind=0s", "--first-rebind=0s is invalid"),
        ("rebind --first-rebind=1s --rebind-addr=perhaps", "--rebind-addr=perhaps is invalid"),
        ("udp-cross-traffic", "udp-cross-traffic requires --crossdatarate"),
    ] {
        let scenario = format!("{scenario} {PATH}");
        assert!(wrong(&scenario).contains(told), "{scenario}: {}", wrong(&scenario));
    }
}

#[test]
fn repeated_option_uses_the_last_value_and_quotation_marks_are_ignored() {
    let scenario = loaded("simple-p2p --delay=1ms --delay='15ms' --bandwidth=\"10Mbps\" --queue=25");
    assert_eq!(path(&scenario)[0].delay, Duration::from_millis(15));
}

#[test]
fn programs_replace_interfaces() {
    let hosts = HostSetup::Programs { client: "echo \"a\\b\"\techo c", server: "sleep 1" };
    let text = translate(&format!("simple-p2p {PATH}"), hosts, 1).unwrap();
    let scenario = crate::load(&text, "simulator", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}")).scenario;
    let commands: Vec<Vec<String>> = scenario.programs.iter().map(|program| program.command.argv()).collect();
    assert!(commands[0].ends_with(&["sleep 1".into()]) && commands[1].ends_with(&["echo \"a\\b\"\techo c".into()]));
    assert!(scenario.programs[0].background && !scenario.programs[1].background);
    assert!(scenario.nodes.iter().all(|node| node.interface().is_none()));
}

/// One option in one of its spellings: with one or two dashes, with either word separator, with or without quotation
/// marks.
fn spelled(option: &str, value: &str, spelling: u8) -> String {
    let dashes = if spelling & 1 == 0 { "--" } else { "-" };
    let option = if spelling & 2 == 0 { option.replace('-', "_") } else { option.replace('_', "-") };
    let quote = if spelling & 4 == 0 { "" } else { "\"" };
    format!("{dashes}{option}={quote}{value}{quote}")
}

proptest! {
    /// The link has the values of the options, independently of their spelling and order.
    #[test]
    fn link_has_the_values_of_the_options(
        delay_us in 1..2_000_000_u64,
        rate in 1..1_000_000_u64,
        rate_unit in prop::sample::select(vec![("bps", 1_u64), ("kbps", 1000), ("Kb/s", 1000), ("Mbps", 1_000_000), ("KBps", 8000)]),
        queue in 1..100_000_u64,
        per_cent in 0..=100_u64,
        burst in 1..1000_u64,
        spellings in prop::collection::vec(0..8_u8, 5),
        order in Just([0, 1, 2, 3, 4]).prop_shuffle(),
    ) {
        let (unit, scale) = rate_unit;
        let options = [
            ("delay", format!("{delay_us}us")),
            ("bandwidth", format!("{rate}{unit}")),
            ("queue", queue.to_string()),
            ("rate_to_client", per_cent.to_string()),
            ("burst_to_client", burst.to_string()),
        ];
        let words = order.map(|n| spelled(options[n].0, &options[n].1, spellings[n]));
        let text = format!("drop-rate {} --rate_to_server=0", words.join(" "));
        let scenario = loaded(&text);
        let [to_server, to_client] = path(&scenario);
        for link in [to_server, to_client] {
            prop_assert_eq!(link.rate, Rate::from_bits_per_second(rate * scale));
            prop_assert_eq!(link.delay, Duration::from_nanos(delay_us * 1000));
            prop_assert_eq!(link.queue, QueueLimit::Packets(queue as u32 + 1));
        }
        let probability = per_cent as f64 / 100.0;
        let selection = FrameSelection { probability, largest_burst: Some(burst), frames: FrameFilter::Udp };
        prop_assert_eq!(&to_client.impairments, &Impairments::default().with(BernoulliLoss { selection }));
        // The resolved file describes the same scenario.
        let resolved = crate::load(&text_of(&text), "simulator", &[]).unwrap().resolved;
        prop_assert_eq!(crate::load(&resolved, "resolved", &[]).unwrap().scenario, scenario);
    }
}
