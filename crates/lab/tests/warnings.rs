//! Warnings of scenarios and runs: each is present where it applies, and none in a valid run.

use fullpipe_archive::Warning;
use fullpipe_lab::{Options, prepare};

/// The warnings before and after a run.
fn warnings(text: &str) -> (Vec<Warning>, Vec<Warning>) {
    let loaded = fullpipe_scenario::load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let prepared = prepare(&loaded.scenario, &Options::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let before = prepared.warnings();
    (before, prepared.run().warnings())
}

fn names(warnings: &[Warning]) -> Vec<(&str, &str)> {
    warnings.iter().map(|warning| (warning.name.as_str(), warning.place.as_str())).collect()
}

/// A link of 10 Mbit/s with these keys, and a flow over it with these keys.
fn one_flow(link: &str, flow: &str) -> String {
    format!(
        "duration = '2s'
        [topology]
        kind = 'chain'
        link = [{{ rate = '10Mbit/s', delay = '5ms', {link} }}]
        [[flow]]
        name = 'data'
        from = 'source'
        to = 'sink'
        {flow}"
    )
}

#[test]
fn run_without_problems_has_no_warning() {
    let (before, after) = warnings(&one_flow("queue = '50packets'", "workload = 'bulk'"));
    assert_eq!((names(&before), names(&after)), (vec![], vec![]));
    // A connection without data delivers nothing by design.
    let (_, after) = warnings(&one_flow("queue = '50packets'", "workload = 'idle'"));
    assert_eq!(names(&after), []);
}

#[test]
fn queue_smaller_than_one_packet_is_a_warning() {
    // Segments of 1448 bytes have at least 1488 bytes with their headers; in a microsecond the link sends a byte.
    for (queue, warned) in [("1400B", true), ("1us", true), ("1600B", false), ("1packets", false)] {
        let (before, after) = warnings(&one_flow(&format!("queue = '{queue}'"), "workload = 'bulk'"));
        let found = |warnings: &[Warning]| names(warnings).iter().any(|(name, _)| *name == "small-queue");
        assert_eq!((found(&before), found(&after)), (warned, warned), "{queue}: {before:?}");
        if warned {
            assert!(names(&before).contains(&("small-queue", "link1")), "{before:?}");
            assert!(before[0].text.contains("flow data"), "{before:?}");
        }
    }
    // A discipline enqueues each packet, so its limit drops every packet.
    for kind in ["fifo", "codel", "fq-codel"] {
        let (before, after) =
            warnings(&one_flow(&format!("discipline = {{ kind = '{kind}', limit = '1000B' }}"), "workload = 'bulk'"));
        assert_eq!(names(&before), [("small-queue", "link1")], "{kind}");
        assert!(before[0].text.ends_with("every such packet is dropped"), "{}", before[0]);
        assert!(names(&after).contains(&("nothing-delivered", "")), "{kind}: {after:?}");
    }
    // Datagrams of 100 bytes fit, while segments do not.
    let voice = "protocol = 'udp'\nworkload = 'constant-rate'\npayload = '100B'\ninterval = '20ms'";
    assert_eq!(names(&warnings(&one_flow("queue = '1400B'", voice)).0), []);
}

#[test]
fn device_queue_that_hides_the_queue_from_an_aqm_is_a_warning() {
    // 2 x 10 Mbit/s x 10 ms are 25 000 bytes, 16 packets of 1500 bytes.
    for (queue, kind, warned) in [
        ("2BDP", "codel", true),
        ("11packets", "fq-codel", true),
        ("10packets", "fq-codel", false),
        ("15000B", "pie", false),
        ("2BDP", "fifo", false),
    ] {
        let link = format!("queue = '{queue}', discipline = {{ kind = '{kind}', limit = '1000packets' }}");
        let (before, after) = warnings(&one_flow(&link, "workload = 'bulk'"));
        let found = before.iter().find(|warning| warning.name == "queue-below-discipline");
        assert_eq!(found.is_some(), warned, "{queue} {kind}: {before:?}");
        assert_eq!(names(&before), names(&after), "{queue} {kind}");
        if let Some(warning) = found {
            assert_eq!(warning.place, "link1");
            assert!(warning.text.contains(kind) && warning.text.contains("discipline.limit"), "{warning}");
        }
    }
}

#[test]
fn transfer_stalled_for_most_of_its_time_is_a_warning() {
    let outage = |from: &str, flow: &str| {
        one_flow(&format!("queue = '50packets', schedule = [{{ at = '{from}', rate = '1bit/s' }}]"), flow)
    };
    // From 0.5 s on a packet takes hours. 100 kB complete before that, 10 MB do not.
    for (from, flow, warned) in [
        ("0.5s", "workload = 'bulk'\nsize = '10MB'", true),
        ("0.5s", "workload = 'bulk'", true),
        ("0.5s", "workload = 'bulk'\nsize = '100kB'", false),
        ("1.5s", "workload = 'bulk'\nsize = '10MB'", false),
    ] {
        let (before, after) = warnings(&outage(from, flow));
        assert_eq!(names(&before), [], "{from} {flow}");
        let found = after.iter().find(|warning| warning.name == "flow-stalls");
        assert_eq!(found.is_some(), warned, "{from} {flow}: {after:?}");
        if let Some(warning) = found {
            assert!(warning.place == "data" && warning.text.contains("nothing after 0.5"), "{warning}");
            assert!(warning.text.contains(" kB") && warning.text.ends_with("the run ended at 2 s"), "{warning}");
        }
    }
}

/// A text of a warning formats its quantities with `readable`, or has a number of units other than bytes or time.
#[test]
fn warning_texts_have_no_placeholder_for_raw_nanoseconds_or_bytes() {
    let crates = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut folders = vec![crates.to_owned()];
    let mut sources = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") && !path.ends_with("tests") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                if !text.contains("Warning::new(WarningKind") {
                    continue;
                }
                sources += 1;
                for raw in ["}ns", "} ns", "}B ", "} B ", "} bytes", "nanoseconds}", "{ready}", "{end}"] {
                    assert!(!text.contains(raw), "{}: {raw}", path.display());
                }
            }
        }
    }
    assert!(sources >= 3, "{sources}");
}

#[test]
fn flow_that_starts_at_the_end_of_the_run_is_a_warning() {
    let (before, after) = warnings(&one_flow("queue = '50packets'", "workload = 'bulk'\nstart = '3s'"));
    assert_eq!(names(&before), [("flow-never-starts", "data")]);
    assert!(before[0].text.contains("starts at 3s, but the run ends after 2s"), "{}", before[0]);
    assert_eq!(names(&after), [("flow-never-starts", "data"), ("nothing-delivered", "")]);
    assert!(after[1].text.contains("data: starts at 3s"), "{}", after[1]);
}

#[test]
fn run_without_delivery_has_a_warning_with_the_reason() {
    let (before, after) = warnings(&one_flow(
        "queue = '50packets', loss = { kind = 'bernoulli', probability = 1.0 }",
        "workload = 'bulk'",
    ));
    assert_eq!(names(&before), []);
    assert_eq!(names(&after), [("flow-delivers-nothing", "data"), ("nothing-delivered", "")]);
    // SYN segments at 0 and 1 s (RFC 6298), both lost.
    assert!(after[0].text.contains("sent 2 packets, of which the network dropped 2"), "{}", after[0]);
    assert!(after[1].text.starts_with("no application received any payload: data: sent 2 packets"), "{}", after[1]);
}

/// A download to a UE this far from its cell.
fn lte(distance: &str, ue: &str) -> String {
    format!(
        "duration = '2s'
        [[host]]
        name = 'server'
        [[host]]
        name = 'phone'
        [[router]]
        name = 'pgw'
        [[link]]
        name = 'sgi'
        from = 'server'
        to = 'pgw'
        rate = '1Gbit/s'
        delay = '1ms'
        [[lte]]
        name = 'access'
        gateway = 'pgw'
        [[lte.cell]]
        name = 'cell'
        [[lte.ue]]
        host = 'phone'
        distance = {distance}
        {ue}
        [[flow]]
        name = 'data'
        from = 'server'
        to = 'phone'
        protocol = 'udp'
        workload = 'constant-rate'
        payload = '1000B'
        interval = '1ms'"
    )
}

#[test]
fn ue_that_never_attaches_is_a_warning_before_the_run() {
    let (before, after) = warnings(&lte("100", "attach = 'cell-search'\nswitched_on = '1990ms'"));
    assert_eq!(names(&before), [("ue-never-attaches", "phone")]);
    assert_eq!(
        names(&after),
        [("ue-never-attaches", "phone"), ("flow-delivers-nothing", "data"), ("nothing-delivered", "")]
    );
    let (before, after) = warnings(&lte("100", ""));
    assert_eq!((names(&before), names(&after)), (vec![], vec![]));
}

#[test]
fn ue_that_is_never_scheduled_is_a_warning_and_the_reason_for_no_delivery() {
    // Free-space loss at 2.12 GHz is 39 dB at 1 m; noise in 25 blocks with a noise figure of 9 dB is -98.5 dBm. With 30 dBm at 60 km the
    // SINR is -6 dB, for which the error model has no CQI.
    let (before, after) = warnings(&lte("60000", ""));
    assert_eq!(names(&before), []);
    let expected = [("ue-not-scheduled", "phone"), ("flow-delivers-nothing", "data"), ("nothing-delivered", "")];
    assert_eq!(names(&after), expected);
    assert!(after[2].text.contains("phone: was never scheduled on the downlink"), "{}", after[2]);
    // A TCP connection that is never answered sends SYN segments at 0, 1, 3 and 7 s (RFC 6298).
    let udp =
        "protocol = 'udp'\n        workload = 'constant-rate'\n        payload = '1000B'\n        interval = '1ms'";
    let tcp = lte("60000", "").replace(udp, "workload = 'bulk'").replace("duration = '2s'", "duration = '10s'");
    assert!(tcp.contains("bulk"));
    assert!(names(&warnings(&tcp).1).contains(&("ue-not-scheduled", "phone")), "{:?}", warnings(&tcp).1);
}

#[test]
fn frequent_control_region_errors_are_a_warning() {
    // The other cell is at half the distance, so its signal is 6 dB stronger. All cells always transmit in the control region: the table
    // of the reference has 20.6 % errors at -6 dB. The other cell has no data, so that the CQI is high and the UE is scheduled.
    let text = lte("0", "").replace("distance = 0", "cell = 'cell'\nposition = [200, 0]");
    let far = |other: u32| {
        text.replace("[[lte.ue]]", &format!("[[lte.cell]]\nname = 'other'\nposition = [{other}, 0]\n[[lte.ue]]"))
    };
    let (before, after) = warnings(&far(300));
    assert_eq!((names(&before), names(&after)), (vec![], vec![("control-errors", "phone")]));
    // Of 1880 subframes, three standard deviations are 2.8 %.
    let percent: f64 =
        after[0].text.split(" %").next().and_then(|text| text.rsplit(' ').next()).unwrap().parse().unwrap();
    assert!((17.0..=24.0).contains(&percent), "{}", after[0]);
    // A cell ten times as far away as that of the UE causes 1 % interference.
    assert_eq!(names(&warnings(&far(2200)).1), []);
}
