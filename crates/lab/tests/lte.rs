//! LTE in scenarios: packets arrive at the times of the reference's pipeline, and the audits pass.

#![allow(missing_docs, reason = "a test")]

use fullpipe_lab::{InjectedFault, Options, Outcome, run};
use fullpipe_lte::records::{BEARERS, BearerRecord, UES, UeRecord};
use fullpipe_network::Fault;
use fullpipe_units::LinkId;
use proptest::prelude::*;
use std::path::Path;

const BASE: &str = "
[[host]]
name = 'server'
[[host]]
name = 'phone'
count = 3
[[router]]
name = 'pgw'
[[link]]
name = 'sgi'
from = 'server'
to = 'pgw'
rate = '1Gbit/s'
delay = '1ms'
";

fn played(text: &str, options: &Options) -> Outcome {
    let loaded = fullpipe_scenario::load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    run(&loaded.scenario, options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn audited(text: &str) -> Outcome {
    let outcome = played(text, &Options { audit_packets: true, ..Options::default() });
    assert!(outcome.verdict().passed(), "{}\n{text}", outcome.verdict());
    outcome
}

fn network(lte: &str, cell: &str, ue: &str) -> String {
    format!(
        "{BASE}[[lte]]\nname = 'access'\ngateway = 'pgw'\n{lte}\n[[lte.cell]]\n{cell}\n[[lte.ue]]\nhost = 'phone*'\n{ue}\n"
    )
}

fn file(outcome: &Outcome, name: &str) -> Vec<u8> {
    outcome.tables().into_iter().find(|(file, _)| *file == name).expect("the table").1
}

fn ues(outcome: &Outcome) -> Vec<UeRecord> {
    UES.read(Path::new(UES.file), &*file(outcome, UES.file)).expect("a good table")
}

fn bearers(outcome: &Outcome) -> Vec<BearerRecord> {
    BEARERS.read(Path::new(BEARERS.file), &*file(outcome, BEARERS.file)).expect("a good table")
}

fn row(outcome: &Outcome, ue: &str, direction: &str) -> UeRecord {
    ues(outcome).into_iter().find(|row| row.ue == ue && row.direction == direction).expect("a UE")
}

/// The datagram of the next test is at the gateway at 1.000816 ms; the rest of its delay is its time in the access network.
#[test]
fn probed_delay_of_a_ue_is_the_delay_of_delivered_packets() {
    let text = format!(
        "duration = '1s'\nprocessing_jitter = '0s'\n{}[[flow]]\nname = 'one'\nfrom = 'server'\nto = 'phone1'\nprotocol = \
         'udp'\nworkload = 'constant-rate'\npayload = 72\ninterval = '1ms'\npackets = 1\n[[flow]]\nname = 'later'\nfrom = \
         'server'\nto = 'phone2'\nprotocol = 'udp'\nworkload = 'constant-rate'\npayload = 72\ninterval = '1ms'\npackets = \
         1\nstart = '500ms'\n[[probe]]\nue = 'phone1'\nmetrics = \
         ['queue_delay_s']\ninterval = '100ms'\n",
        network("", "", "distance = 99")
    );
    let outcome = audited(&text);
    let arrived = outcome.flow_rows().next().expect("the flow").counters.last_rx.as_nanos();
    // One sample: in the other intervals no packet departed.
    let samples: Vec<f64> = outcome.series("phone1", "queue_delay_s").map(|(_, delay)| delay).collect();
    assert_eq!(samples, [(arrived - 1_000_816) as f64 * 1e-9]);
}

#[test]
fn packet_delay_is_that_of_the_pipeline() {
    // One datagram of 72 + 28 bytes. Downlink: 100 bytes + 2 of framing take 816 ns at 1 Gbit/s, so it is at the gateway at 1.000816 ms,
    // and after the core (2 x 140 bytes at 10 Gbit/s: 2 x 112 ns) in subframe 1. It is scheduled in 2, transmitted in 4, and decoded at
    // its end, a nanosecond before 5 ms.
    let flow = |from: &str, to: &str| {
        format!(
            "duration = '1s'\n{}[[flow]]\nname = 'one'\nfrom = '{from}'\nto = '{to}'\nprotocol = 'udp'\nworkload = \
             'constant-rate'\npayload = 72\ninterval = '1ms'\npackets = 1\n",
            network("", "", "distance = 99")
        )
    };
    let arrival = |text: &str| {
        let outcome = audited(text);
        let flow = outcome.flow_rows().next().expect("the flow");
        assert_eq!(flow.counters.rx_packets, 1);
        flow.counters.first_rx.as_nanos()
    };
    assert_eq!(arrival(&flow("server", "phone1")), 4_999_999);
    // Uplink: offered at 0, reported immediately, granted in 5 for 11, decoded at 11.92857 ms; core and link as above.
    assert_eq!(arrival(&flow("phone1", "server")), 11_928_570 + 2 * 112 + 816 + 1_000_000);
    // From one UE to another through the gateway: there at 11.928794 ms, scheduled in 12, decoded by 15 ms.
    assert_eq!(arrival(&flow("phone1", "phone2")), 14_999_999);
}

#[test]
fn connection_to_an_attaching_ue_waits_for_its_bearers() {
    // With signaling over the radio link, a UE that knows its cell has its bearers after 44 ms (ns-3's time line). A SYN of the server at
    // 0 arrives at the cell at 1 ms and is dropped; the next is sent at 1 s (RFC 6298).
    let transfer = |start: &str| {
        let text = format!(
            "duration = '5s'\n{}[[flow]]\nfrom = 'server'\nto = 'phone1'\nprotocol = 'tcp'\nworkload = 'bulk'\nsize = '100kB'\n\
             start = '{start}'\n",
            network("signalling = 'radio'", "", "distance = 99\nattach = 'known-cell'\nswitched_on = '0s'")
        );
        let outcome = audited(&text);
        let (ue, flow) = (row(&outcome, "phone1", "downlink"), outcome.flow_rows().next().expect("the flow"));
        assert_eq!((ue.connected_s.as_nanos(), ue.bearers_ready_s.as_nanos()), (28_000_000, 44_000_000));
        assert_eq!(flow.counters.lost_packets, ue.early_packets);
        (ue.early_packets, flow.completion.expect("it ends").as_secs_f64())
    };
    let ((early, waited), (later, at_once)) = (transfer("0s"), transfer("50ms"));
    assert_eq!((early, later), (1, 0));
    // Apart from the second, the two transfers have the same steps, at different offsets within subframes.
    assert!((waited - at_once - 1.0).abs() < 0.02, "{waited} {at_once}");
}

#[test]
fn too_many_simultaneously_attaching_ues_are_an_error() {
    let of = |switched_on: &str| {
        let base = BASE.replace("count = 3", "count = 400");
        let text = format!(
            "duration = '1s'\n{base}[[lte]]\nname = 'access'\ngateway = 'pgw'\n[[lte.cell]]\n[[lte.ue]]\nhost = 'phone*'\n\
             distance = 99\nattach = 'known-cell'\nswitched_on = {switched_on}\n[[flow]]\nfrom = 'server'\nto = 'phone1'\n\
             start = '900ms'\n"
        );
        let loaded = fullpipe_scenario::load(&text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        run(&loaded.scenario, &Options::default())
    };
    let refused = of("'1ms'").unwrap_err().to_string();
    assert!(
        refused.contains("access") && refused.contains("expected fewer UEs that are switched on at the same time"),
        "{refused}"
    );
    // The second system information block is sent every 80 ms: forty UEs at a time.
    assert!(of("{ kind = 'uniform', low = '0s', high = '800ms' }").is_ok());
}

#[test]
fn saturated_cell_delivers_full_transport_blocks() {
    // Without fading and at a short distance, every block has MCS 28 over 24 of 25 resource blocks: 2196 bytes per millisecond, with 2
    // bytes of RLC header plus those of its segments. 1428-byte packets are 1430-byte SDUs: 2 or 3 segments per block, 1.5 (k - 1) bytes
    // rounded up. So at least 2196 - 2 - 3 = 2191 bytes of SDUs per millisecond, and at most 2192.
    let text = format!(
        "duration = '2s'\n{}[[flow]]\nfrom = 'server'\nto = 'phone1'\nprotocol = 'udp'\nworkload = \
         'constant-rate'\npayload = '1400B'\nrate = '30Mbit/s'\n[[probe]]\nue = 'phone1'\nmetrics = ['sinr_db', 'cqi', 'mcs', \
         'tb_errors', 'queue_bytes', 'throughput_bps', 'drops']\n",
        network("", "", "distance = 99")
    );
    let outcome = audited(&text);
    let down = row(&outcome, "phone1", "downlink");
    assert_eq!((down.tb_errors, down.lost_packets, down.retransmissions), (0, 0, 0));
    // The first reports are sent with the first subframes, so of 2000 a few carry less or nothing.
    let (least, most) = (2191 * 1985 / 1430 * 1430, 2192 * 2000 / 1430 * 1430);
    assert!((least..=most).contains(&down.delivered_bytes), "{} of {least} to {most}", down.delivered_bytes);
    assert!(down.buffer_drops > 0);
    // The remaining packets are in the buffer, at most 153, and in the blocks of three subframes, 2 or 3 packets each.
    let remain = down.packets - down.delivered_packets - down.buffer_drops;
    assert!((152..=162).contains(&remain), "{remain}");
    let way = outcome.link("access.downlink").expect("the way").counters;
    // Those of the last block arrive a nanosecond before or after the end of the run.
    assert!(way.frames <= down.delivered_packets && way.frames + 3 >= down.delivered_packets);
    assert_eq!((way.bytes, way.queue_drops), (1428 * way.frames, down.buffer_drops));
    let last = |metric: &str| outcome.series("phone1", metric).last().expect("samples").1;
    assert_eq!((last("cqi"), last("mcs"), last("tb_errors")), (15.0, 28.0, 0.0));
    // 30 dBm over 25 blocks, 78.88 dB of loss, 9 dB of noise figure: 30 - 13.98 - 78.88 + 121.447 - 9 = 49.58 dB.
    assert!((last("sinr_db") - 49.58).abs() < 0.02, "{}", last("sinr_db"));
    // The buffer is full: 100 ms at the peak rate, less a packet and the last block.
    assert!((219_600.0 - 1430.0 - 2192.0..=219_600.0).contains(&last("queue_bytes")), "{}", last("queue_bytes"));
    assert!((last("throughput_bps") / (2191.0 * 8000.0) - 1.0).abs() < 0.1);
}

#[test]
fn tcp_over_a_fading_channel_completes() {
    for mode in ["um", "am"] {
        let text = format!(
            "duration = '20s'\n{}[[flow]]\nfrom = 'server'\nto = 'phone2'\nsize = '2MB'\n[[flow]]\nfrom = 'phone3'\nto = \
             'server'\nsize = '500kB'\n[[flow]]\nfrom = 'phone1'\nto = 'phone3'\nsize = '300kB'\n",
            network(
                "path_loss = { model = 'log-distance' }\nfading = { kind = 'eva', speed = 60 }\nshadowing = 4",
                "power = 20",
                &format!("distance = 50\nfarthest = 100\nrlc = {{ mode = '{mode}' }}")
            )
        );
        let outcome = audited(&text);
        for flow in outcome.flow_rows().filter(|flow| !flow.flow.ends_with(".reverse")) {
            assert!(flow.completion.is_some(), "{mode}: {}", flow.flow);
        }
        let errors: u64 = ues(&outcome).iter().map(|row| row.tb_errors).sum();
        assert!(errors > 0, "{mode}: it fades");
    }
}

#[test]
fn lte_run_is_reproducible_and_probes_do_not_change_it() {
    let text = format!(
        "duration = '2s'\n{}[[flow]]\nfrom = 'server'\nto = 'phone*'\n",
        network(
            "fading = { kind = 'epa' }\npath_loss = { model = 'log-distance' }",
            "",
            "distance = 100\nfarthest = 400"
        )
    );
    let rows = |text: &str| ues(&audited(text));
    let first = rows(&text);
    assert_eq!(first, rows(&text));
    let probed =
        format!("{text}[[probe]]\nue = 'phone*'\nmetrics = ['sinr_db', 'cqi', 'queue_bytes']\ninterval = '700us'\n");
    assert_eq!(first, rows(&probed));
    assert_ne!(first, rows(&format!("seed = 2\n{text}")));
}

#[test]
fn auditor_detects_deliberate_faults_in_lte() {
    let text = format!(
        "duration = '1s'\n{}[[flow]]\nfrom = 'server'\nto = 'phone1'\n[[flow]]\nfrom = 'phone1'\nto = 'server'\n",
        network("", "", "distance = 99")
    );
    // Two directions of a link, then the downlink and the uplink.
    for link in [LinkId(2), LinkId(3)] {
        for fault in [Fault::FastLink(link), Fault::SilentDrop { link, every: 50 }] {
            let options = Options { faults: vec![InjectedFault::Network(fault)], ..Options::default() };
            assert!(!played(&text, &options).verdict().passed(), "{fault:?}");
        }
    }
}

/// A call to a phone with this bearer that downloads more than the cell can carry, as two other phones do.
fn voice(scheduler: &str, bearer: &str) -> Outcome {
    let text = format!(
        "duration = '2s'\nprocessing_jitter = '0s'\n{}{bearer}[[lte.ue]]\nhost = 'phone2'\ndistance = 99\n[[lte.ue]]\nhost = 'phone3'\ndistance = 99\n\
         [[flow]]\nname = 'voice'\nfrom = 'server'\nto = 'phone1'\nprotocol = 'udp'\nport = 5004\nworkload = \
         'constant-rate'\npayload = 160\ninterval = '20ms'\nstart = '500ms'\n[[flow]]\nname = 'bulk'\nfrom = 'server'\nto = \
         'phone*'\nprotocol = 'udp'\nworkload = 'constant-rate'\npayload = 1400\nrate = '30Mbit/s'\n",
        network("", &format!("scheduler = '{scheduler}'"), "distance = 99").replace("'phone*'", "'phone1'")
    );
    audited(&text)
}

/// Mean delay of the call in seconds.
fn voice_delay(scheduler: &str, bearer: &str) -> f64 {
    let outcome = voice(scheduler, bearer);
    let voice = outcome.flow_rows().find(|row| row.flow == "voice").expect("the flow").counters;
    voice.delay_sum.as_secs_f64() / voice.rx_packets as f64
}

#[test]
fn voice_on_a_dedicated_bearer_does_not_wait_for_a_download() {
    let bearer = |filter: &str| {
        format!("[[lte.ue.bearer]]\nqci = 1\nguaranteed_rate = '75200bit/s'\n[[lte.ue.bearer.filter]]\n{filter}\n")
    };
    for scheduler in ["pss", "cqa"] {
        // On the default bearer it waits for the data that the cell carries in 100 ms at its peak, of which the phone gets a third.
        let behind = voice_delay(scheduler, "");
        assert!(behind > 0.25, "{scheduler}: {behind}");
        for filter in [
            "local_ports = [5004]",
            "local_ports = [5000, 5999]\ndirection = 'downlink'",
            "local_ports = [5004]\nremote = 'server'",
            "local_ports = [5004]\nremote = '10.0.0.1/32'\nlocal = 'phone1'",
            "remote = 'pgw'\n[[lte.ue.bearer.filter]]\nlocal_ports = [5004]",
        ] {
            // The access network takes at least 5 ms. The buffer is empty whenever a packet arrives, so the remaining delay is the wait
            // for a subframe in which the phone is served, a third of them or more.
            let own = voice_delay(scheduler, &bearer(filter));
            assert!((0.0049..0.015).contains(&own), "{scheduler}, {filter}: {own}");
        }
        // `cqa` serves a phone with a guaranteed bit rate before the others, for all its traffic: it has the whole cell, and 100 ms in
        // its buffer.
        let idle = voice_delay(scheduler, &bearer("local_ports = [5003]"));
        assert!(idle > if scheduler == "cqa" { 0.09 } else { 0.25 }, "{scheduler}: {idle}");
        for filter in [
            "remote_ports = [5004]",
            "local_ports = [5004]\ndirection = 'uplink'",
            "local_ports = [5004]\nremote = 'pgw'",
            "local_ports = [5004]\nremote = 'fd00::/8'",
        ] {
            assert_eq!(voice_delay(scheduler, &bearer(filter)), idle, "{scheduler}, {filter}");
        }
        // A filter for all traffic of the server also moves the download.
        assert!(voice_delay(scheduler, &bearer("remote = 'server'")) > 0.09);
        // Of two bearers with a matching filter, the last one is used.
        let last = format!("{}{}", bearer("remote = 'server'"), bearer("local_ports = [5004]"));
        assert!(voice_delay(scheduler, &last) < 0.015);
        let first = format!("{}{}", bearer("local_ports = [5004]"), bearer("remote = 'server'"));
        assert!(voice_delay(scheduler, &first) > 0.09);
    }
}

#[test]
fn each_bearer_has_its_own_counters() {
    let outcome = voice("pss", "[[lte.ue.bearer]]\nqci = 7\n[[lte.ue.bearer.filter]]\nlocal_ports = [5004]\n");
    let rows: Vec<_> = bearers(&outcome).into_iter().filter(|row| row.ue == "phone1").collect();
    let kinds: Vec<_> =
        rows.iter().map(|row| (row.bearer, row.qci, row.mode.as_str(), row.direction.as_str())).collect();
    let of = |bearer, qci| ["downlink", "uplink"].map(|direction| (bearer, qci, "um", direction));
    assert_eq!(kinds, [of(0, 9), of(1, 7)].concat());
    // A packet every 20 ms from 0.5 s until just before 2 s, of 160 bytes with 28 of UDP and IP and 2 of PDCP.
    let voice = &rows[2];
    assert_eq!((voice.packets, voice.delivered_packets, voice.delivered_bytes), (75, 75, 75 * 190));
    for (index, direction) in ["downlink", "uplink"].into_iter().enumerate() {
        let ue = row(&outcome, "phone1", direction);
        let sum = |of: fn(&BearerRecord) -> u64| rows.iter().skip(index).step_by(2).map(of).sum::<u64>();
        assert_eq!(sum(|bearer| bearer.packets), ue.packets);
        assert_eq!(sum(|bearer| bearer.buffer_drops), ue.buffer_drops);
        assert_eq!(sum(|bearer| bearer.lost_packets), ue.lost_packets);
        assert_eq!(sum(|bearer| bearer.delivered_bytes), ue.delivered_bytes);
    }
    // Phones without dedicated bearers have one.
    assert_eq!(bearers(&outcome).iter().filter(|row| row.ue == "phone2").count(), 2);
}

#[test]
fn cells_with_separate_resource_block_groups_do_not_interfere() {
    // Two cells 1000 m apart, with a UE of each in the middle; both are saturated.
    let sinr_db = |of_a: &str, of_b: &str| {
        let text = format!(
            "duration = '1s'\n{BASE}[[lte]]\nname = 'access'\ngateway = 'pgw'\n[[lte.cell]]\nname = 'a'\n{of_a}\n[[lte.cell]]\n\
             name = 'b'\nposition = [1000, 0]\n{of_b}\n[[lte.ue]]\nhost = 'phone1'\ncell = 'a'\nposition = [500, 0]\n\
             [[lte.ue]]\nhost = 'phone2'\ncell = 'b'\nposition = [500, 0]\n[[flow]]\nfrom = 'server'\nto = 'phone*'\nprotocol = \
             'udp'\nworkload = 'constant-rate'\npayload = 1400\nrate = '20Mbit/s'\n[[probe]]\nue = 'phone*'\nmetrics = \
             ['sinr_db']\n"
        )
        .replace("to = 'phone*'", "to = 'phone?'")
        .replace("count = 3", "count = 2");
        let outcome = audited(&text);
        ["phone1", "phone2"].map(|phone| outcome.series(phone, "sinr_db").last().expect("samples").1)
    };
    // Alone: 30 dBm over 25 blocks, 78.88 dB + 20 log10(500 / 99) of loss, 9 dB of noise figure: 35.52 dB.
    for alone in sinr_db("groups = [0, 5]", "groups = [6, 11]") {
        assert!((alone - 35.52).abs() < 0.02, "{alone}");
    }
    // Together: as much interference as signal.
    for (of_a, of_b) in [("", ""), ("groups = [2, 7]", "groups = [2, 7]")] {
        for together in sinr_db(of_a, of_b) {
            assert!((-0.1..0.1).contains(&together), "{together}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any network, the audits pass, and computing links ahead changes nothing.
    #[test]
    fn any_lte_network_passes_the_audit(
        seed in 0..1_000_000u32,
        blocks in prop::sample::select(vec![25u32, 50, 100]),
        fading in prop::sample::select(vec!["none", "epa", "eva", "etu"]),
        scheduler in prop::sample::select(vec!["pf", "rr", "fd-mt", "td-bet", "pss", "cqa"]),
        mode in prop::sample::select(vec!["um", "am", "by-loss-rate"]),
        transmission in 1..8u8,
        buffer in prop::sample::select(vec!["10240B", "100ms", "unlimited"]),
        harq in any::<bool>(),
        farthest in 100..900u32,
    ) {
        let text = format!(
            "seed = {seed}\nduration = '400ms'\n{}[[flow]]\nfrom = 'server'\nto = 'phone*'\n[[flow]]\nfrom = 'phone2'\nto = \
             'server'\nprotocol = 'udp'\nworkload = 'constant-rate'\npayload = '1200B'\nrate = '20Mbit/s'\n",
            network(
                &format!(
                    "resource_blocks = {blocks}\nfading = {{ kind = '{fading}' }}\npath_loss = {{ model = 'log-distance' }}\n\
                     s1_delay = '200us'"
                ),
                &format!("scheduler = '{scheduler}'\nharq = {harq}\npower = 40"),
                &format!(
                    "distance = 50\nfarthest = {farthest}\ntransmission_mode = {transmission}\n\
                     rlc = {{ mode = '{mode}', buffer = '{buffer}' }}"
                ),
            )
        );
        let outcome = audited(&text);
        let loaded = fullpipe_scenario::load(&text, "test.toml", &[]).expect("good").scenario;
        let plain = run(&loaded, &Options { fusion: false, ..Options::default() }).expect("a run");
        prop_assert_eq!(ues(&outcome), ues(&plain));
        prop_assert!(outcome.flow_rows().map(|row| row.counters).eq(plain.flow_rows().map(|row| row.counters)));
    }
}

#[test]
fn repeated_fading_has_the_mean_of_continuous_fading() {
    // Three UEs at 2 km, saturated for 10 s, with fades of 80 ms, so that there are 300 of them. The delivered bytes depend on the
    // positions in the repeated seconds, but their mean does not.
    let bytes = |repeat: &str| {
        let fading = format!("resource_blocks = 50\nfading = {{ kind = 'epa', speed = 3{repeat} }}");
        let text = format!(
            "duration = '10s'\n{}[[flow]]\nname = 'all'\nfrom = 'server'\nto = 'phone*'\nprotocol = 'udp'\nworkload = \
             'constant-rate'\npayload = 1400\nrate = '20Mbit/s'\n",
            network(&fading, "", "distance = 2000")
        );
        let outcome = audited(&text);
        (1..=3).map(|ue| row(&outcome, &format!("phone{ue}"), "downlink").delivered_bytes as f64).sum::<f64>()
    };
    let (live, repeated) = (bytes(""), bytes(", repeat = '10s'"));
    assert_ne!(live, repeated);
    assert!((repeated / live - 1.0).abs() < 0.1, "{live} {repeated}");
}
