//! `run.json` written and read back.

use fullpipe_archive::json::{JsonValue, NamedCounts, Nullable};
use fullpipe_archive::{
    AuditRecord, BdpLimitRecord, ContentRecord, IcmpRecord, KernelEndRecord, KernelRecord, LatenessRecord,
    LatenessSpread, NatRecord, NegotiatedRecord, PacketCapture, PacketCounts, ProgramRecord, RefusedFrames,
    RunOptionsRecord, RunRecord,
};
use std::path::Path;

fn simulated() -> RunRecord {
    RunRecord {
        key: "ab01".to_owned(),
        build: "0.1.0+ab".to_owned(),
        seed: u64::MAX,
        options: RunOptionsRecord { pcap: PacketCapture::Truncated(96), ..RunOptionsRecord::default() },
        clock: "virtual".to_owned(),
        duration_s: 0.1,
        packets: PacketCounts { received: 3, received_with_data: 2, lost: 1, hops: 9 },
        nat: vec![NatRecord { router: "home".to_owned(), mappings: 4, ..NatRecord::default() }],
        content: vec![ContentRecord { flow: "data".to_owned(), ..ContentRecord::default() }],
        audit: AuditRecord {
            passed: true,
            checks: NamedCounts(vec![("link-rate".to_owned(), 7), ("frame-order".to_owned(), 8)]),
            ..AuditRecord::default()
        },
        scenario: "duration = \"1s\"\n".to_owned(),
        ..RunRecord::default()
    }
}

fn real() -> RunRecord {
    let end = KernelEndRecord {
        flow: "data".to_owned(),
        end: "to".to_owned(),
        congestion: Nullable(None),
        retransmitted_segments: Nullable(Some(0)),
        negotiated: Nullable(Some(NegotiatedRecord { sack: true, ..NegotiatedRecord::default() })),
        ..KernelEndRecord::default()
    };
    RunRecord {
        lateness: Some(LatenessRecord {
            packets: LatenessSpread { count: 5, p50_s: 1.5e-6, ..LatenessSpread::default() },
            stalls_s: vec![0.07],
            ..LatenessRecord::default()
        }),
        bdp_limits: Some(vec![BdpLimitRecord { bytes: 50_000, round_trip_s: 0.04, ..BdpLimitRecord::default() }]),
        arrivals_not_recorded: Some(0),
        icmp: Some(IcmpRecord { errors: 2, ..IcmpRecord::default() }),
        refused_frames: Some(RefusedFrames { spoofed: 1, ..RefusedFrames::default() }),
        programs: Some(vec![ProgramRecord { name: "iperf3".to_owned(), ..ProgramRecord::default() }]),
        kernel: Some(Nullable(Some(KernelRecord { release: "6.1".to_owned(), ends: vec![end] }))),
        distrust: vec!["late: by much".to_owned()],
        ..simulated()
    }
}

#[test]
fn run_record_reads_back_as_written() {
    let without_kernel = RunRecord { kernel: Some(Nullable(None)), ..real() };
    for record in [simulated(), real(), without_kernel, RunRecord::default()] {
        let bytes = record.to_bytes();
        assert_eq!(RunRecord::parse(Path::new("run.json"), &bytes).expect("the written record parses"), record);
    }
}

/// Times are nanoseconds multiplied by 1e-9, with up to 17 digits. Without its feature `float_roundtrip`, `serde_json`
/// parses some of them as a neighboring number.
#[test]
fn times_read_back_bit_for_bit() {
    for number in 1..=1000_u64 {
        let duration_s = (number * 7_654_321) as f64 * 1e-9;
        let bytes = RunRecord { duration_s, ..simulated() }.to_bytes();
        let read = RunRecord::parse(Path::new("run.json"), &bytes).expect("the written record parses");
        assert_eq!(read.duration_s.to_bits(), duration_s.to_bits(), "{duration_s} is read as {}", read.duration_s);
        assert_eq!(read.to_bytes(), bytes);
    }
}

#[test]
fn written_record_has_applicable_keys_in_declared_order() {
    let text = String::from_utf8(simulated().to_bytes()).expect("the record is UTF-8");
    let keys = text.lines().filter_map(|line| line.strip_prefix("  \"")?.split_once('"')).map(|(key, _)| key);
    let expected = "key build seed options title clock duration_s measurement_from_s packets events nat content audit \
                    scenario distrust";
    assert_eq!(keys.collect::<Vec<_>>().join(" "), expected);
    assert!(text.contains("\"pcap\": 96,") && text.ends_with("\"distrust\": []\n}\n"), "{text}");
    let text = String::from_utf8(RunRecord { kernel: Some(Nullable(None)), ..real() }.to_bytes())
        .expect("the record is UTF-8");
    assert!(text.contains("\"kernel\": null,") && text.contains("\"started_s\": null,"), "{text}");
}

#[test]
fn wrong_record_error_has_key_and_expectation() {
    let text = String::from_utf8(real().to_bytes()).expect("the record is UTF-8");
    for (old, new, expected) in [
        ("\"seed\":", "\"sead\":", "runs/1/run.json: has no `seed`"),
        ("\"audit\": {", "\"audits\": {", "has no `audit`"),
        ("\"passed\": true", "\"past\": true", "has no `audit.passed`"),
        ("\"passed\": true", "\"passed\": null", "`audit.passed`: expected a boolean, found null"),
        ("\"passed\": true", "\"passed\": \"yes\"", "`audit.passed`: expected a boolean, found \"yes\""),
        ("\"seed\": 18446744073709551615", "\"seed\": -1", "`seed`: expected a count, found -1"),
        ("\"link-rate\": 7", "\"link-rate\": 7.5", "`audit.checks.link-rate`: expected a count, found 7.5"),
        ("\"mappings\": 4", "\"mappings\": []", "`nat[0].mappings`: expected a count, found []"),
        ("\"pcap\": 96", "\"pcap\": \"all\"", "`options.pcap`: expected a boolean or a count"),
        ("\"duration_s\": 0.1", "\"duration_s\": 1e201", "`duration_s`: expected a number, found 1e+201"),
        ("{", "[", "is not valid JSON"),
    ] {
        let wrong = text.replacen(old, new, 1);
        assert_ne!(wrong, text, "{old}");
        let error = RunRecord::parse(Path::new("runs/1/run.json"), wrong.as_bytes()).expect_err("a wrong record");
        assert!(error.to_string().contains(expected), "{error} is not: {expected}");
    }
    let error = RunRecord::parse(Path::new("run.json"), &text.as_bytes()[..50]).expect_err("half a record").to_string();
    assert!(error.contains("ends in the middle of its JSON"), "{error}");
}

#[test]
fn capture_serves_up_to_the_bytes_that_it_contains() {
    use PacketCapture::{None, Truncated, WholePackets};
    for (kept, wanted, serves) in [
        (None, None, true),
        (None, Truncated(1), false),
        (Truncated(96), None, true),
        (Truncated(96), Truncated(96), true),
        (Truncated(96), Truncated(97), false),
        (Truncated(96), WholePackets, false),
        (WholePackets, Truncated(1), true),
        (WholePackets, WholePackets, true),
    ] {
        assert_eq!(kept.covers(wanted), serves, "{kept:?} {wanted:?}");
    }
}

#[test]
fn every_key_is_declared_once_with_a_sentence_and_the_unit_of_its_name() {
    let keys = RunRecord::keys();
    assert!(keys.len() > 80);
    for (number, key) in keys.iter().enumerate() {
        assert!(keys[..number].iter().all(|other| other.path != key.path), "{} occurs twice", key.path);
        assert!(key.text.ends_with('.') && !key.text.contains('|'), "{}: {:?}", key.path, key.text);
        for (ending, unit) in [("_s", "s"), ("_us", "us"), ("_bytes", "bytes"), ("_packets", "packets")] {
            assert!(!key.path.ends_with(ending) || key.unit == unit, "{}: {}", key.path, key.unit);
        }
    }
}
