//! Tests that run each script in `tests/scripts`, and tests of the script harness.

use crate::script;

use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

fn run_file(name: &str) {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    if let Err(report) = script::run(name, &text) {
        panic!("{report}");
    }
}

/// Generates a test for each script, and the list of all.
macro_rules! scripts {
    ($($folder:ident: $($script:ident)*;)*) => {
        const LISTED: &[&str] = &[$($(concat!(stringify!($folder), "/", stringify!($script), ".script"),)*)*];
        $(mod $folder {
            $(#[test] fn $script() {
                super::run_file(concat!(stringify!($folder), "/", stringify!($script), ".script"));
            })*
        })*
    };
}

scripts! {
    linux: loss_while_reducing proportional_ecn_reduction quick_ack_conversation quick_ack_marks quick_ack_repetition quick_ack_start;
    receive_window: bound grows_with_reading stays_with_a_slow_reader without_timestamps;
    rfc1191: finishing_too_big forged outstanding_is_cut_up too_big_again;
    rfc3168: active_open_and_marks answer_that_repeats_the_request late_answer_to_the_first_syn
        loss_in_the_window_of_a_mark lost_syn_asks_no_more mark_outside_the_window not_asked passive_open_and_echo refused
        second_syn_asks_no_more window_probe_is_not_capable;
    rfc4821: black_hole small_segments_prove_nothing;
    rfc5681: first_slow_start idle_restart initial_ssthresh;
    rfc6298: syn_ack_retransmission syn_retransmission syn_retransmission_with_timestamps;
    rfc7413: client_asks_for_a_cookie client_falls_back client_remembers_the_mss client_reply_to_data_alone
        client_uses_a_cookie client_whose_cookie_is_refused client_whose_data_are_taken_in_part server_accepts_data
        server_grants server_hears_a_wrong_cookie server_ignores_bad_lengths server_is_reset_early
        server_that_loses_its_answer server_without_a_cookie server_without_fast_open;
    rfc8257: receiver sender window_of_the_earlier;
    rfc9293: fin_retransmission fin_wait_2_timeout half_close half_close_of_the_peer keep_alive keep_alive_default
        keep_alive_off keep_alive_with_data listening_to_nonsense simultaneous_close simultaneous_open
        simultaneous_open_refused three_way_handshake user_timeout user_timeout_of_a_syn user_timeout_of_probes
        window_shrinks zero_receive_window zero_window_probes;
    rfc9331: receiver sender_with_a_classic_server sender_with_accurate_feedback;
    rfc9768: client client_with_a_classic_server feedback_of_a_marked_syn field_is_cleared late_answer_after_fall_back
        lost_syns no_cwr_after_a_reduction option_on_a_syn repeated_answer
        second_syn second_syn_of_the_other_kind server server_with_a_classic_client simultaneous_open
        syn_changed_on_its_way;
}

#[test]
fn every_script_on_disk_is_listed() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let rfc = entry.unwrap().path();
        for script in std::fs::read_dir(&rfc).unwrap() {
            let path = script.unwrap().path();
            found.push(path.strip_prefix(folder()).unwrap().to_str().unwrap().to_owned());
        }
    }
    found.sort();
    let mut listed = LISTED.to_vec();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

/// The report of a script that must fail.
fn failure(text: &str) -> String {
    script::run("test", text).expect_err("this script is wrong")
}

const HANDSHAKE: &str = "handshake 10ms\n";

#[test]
fn different_packet_is_reported_with_line_time_and_difference() {
    let report = failure(&format!("{HANDSHAKE}+5ms write 100\n> . 1:101(100) ack 2\n"));
    assert!(report.starts_with("test:3: at 15ms\n    > . 1:101(100) ack 2\n"), "{report}");
    assert!(report.contains("got       15ms  > . 1:101(100) ack 1 win 512 <TS val 16 ecr 1010>"), "{report}");
    assert!(report.contains("differs in: ack\n"), "{report}");
    assert!(report.contains("10ms  < S. 0:0(0) ack 1 win 65535 <mss 1460, sackOK, TS val 1010 ecr 1, wscale 7>"));
}

#[test]
fn mistimed_missing_and_additional_packets_are_reported() {
    let sent = format!("{HANDSHAKE}write 100\n");
    for (rest, line, got) in [
        ("+1ms > . 1:101(100) ack 1", 3, "10ms  > . 1:101(100)"),
        ("+1ms finish", 3, "10ms  > . 1:101(100)"),
        ("", 2, "10ms  > . 1:101(100)"),
        ("> . 1:101(100) ack 1\n> F. 101:101(0) ack 1", 4, "nothing (the next deadline is 0.2"),
        ("> . 1:101(100) ack 1\nabort\n> R. 101:101(0) ack 1\n* > . 1:1(0) ack 1", 6, "nothing, ever"),
        ("> . 1:101(100) ack 1\n5ms finish", 4, "0.005"),
    ] {
        let report = failure(&format!("{sent}{rest}\n"));
        assert!(report.starts_with(&format!("test:{line}: at ")), "{rest}\n{report}");
        assert!(report.contains(&format!("got       {got}")), "{rest}\n{report}");
    }
}

#[test]
fn every_part_of_a_packet_is_compared() {
    let right = "[ect0] > no";
    assert!(failure(right).contains("not understood"));
    for (wrong, part) in [
        ("S 1:1(0) win 65535 <mss 1460, sackOK, TS val 1 ecr 0, wscale 7>", "sequence number"),
        ("S 0:1(1) win 65535 <mss 1460, sackOK, TS val 1 ecr 0, wscale 7>", "length"),
        ("SE 0:0(0) win 65535 <mss 1460, sackOK, TS val 1 ecr 0, wscale 7>", "flags"),
        ("[ect1] S 0:0(0) win 65535 <mss 1460, sackOK, TS val 1 ecr 0, wscale 7>", "codepoint"),
        ("S 0:0(0) win 65534 <mss 1460, sackOK, TS val 1 ecr 0, wscale 7>", "win"),
        ("S 0:0(0) win 65535 <mss 1459, sackOK, TS val 1 ecr 0, wscale 7>", "mss"),
        ("S 0:0(0) win 65535 <mss 1460, sackOK, TS val 2 ecr 0, wscale 7>", "TS val"),
        ("S 0:0(0) win 65535 <mss 1460, sackOK, TS val 1 ecr 3, wscale 7>", "TS ecr"),
        ("S 0:0(0) win 65535 <mss 1460, sackOK, TS val 1 ecr 0, wscale 6>", "wscale"),
        ("S 0:0(0) win 65535 <mss 1460, TS val 1 ecr 0, wscale 7>", "which options"),
        ("S 0:0(0) win 65535 <mss 1460, sackOK, TS val 1 ecr 0, wscale 7, FO>", "which options"),
        ("S 0:0(0) win 65535 <mss 1460, sackOK, TS val 1 ecr 0, wscale 7, ECN0>", "which options"),
    ] {
        let report = failure(&format!("> {wrong}\n"));
        assert!(report.contains(&format!("differs in: {part}\n")), "{wrong}\n{report}");
    }
    let data = format!("{HANDSHAKE}< . 1001:2001(1000) ack 1\n");
    for (wrong, part) in [
        ("> . 1:1(0) ack 1", "options"),
        ("> . 1:1(0) ack 1 <TS>", "which options"),
        ("> . 1:1(0) ack 1 <TS, sack 1001:2000>", "sack"),
        ("> . 1:1(0) ack 1 <sack 1001:2001>", "which options"),
    ] {
        let report = failure(&format!("{data}{wrong}\n"));
        assert!(report.contains(&format!("differs in: {part}\n")), "{wrong}\n{report}");
    }
}

#[test]
fn different_values_and_events_are_reported() {
    for (wrong, got) in [
        ("assert state LISTEN", "ESTABLISHED"),
        ("assert cwnd 14480, cwnd 14481", "cwnd 14480"),
        ("assert cwnd < 14480", "cwnd 14480"),
        ("assert cwnd > 14480", "cwnd 14480"),
        ("assert cwnd <= 14479", "cwnd 14480"),
        ("assert cwnd >= 14481", "cwnd 14480"),
        ("assert srtt 11ms", "srtt 10ms"),
        ("assert deadline 10ms", "deadline never"),
        ("assert speed 3", "no value is called speed"),
        ("events connected", "\n"),
        ("read 10", "read 0"),
        ("write 10000000", "taken 4194304"),
    ] {
        let report = failure(&format!("{HANDSHAKE}{wrong}\n"));
        assert!(report.contains(&format!("got       {got}")), "{wrong}\n{report}");
    }
    assert_eq!(
        script::run("test", &format!("{HANDSHAKE}assert cwnd <= 14480, cwnd >= 14480, ssthresh none\n")),
        Ok(())
    );
}

#[test]
fn invalid_line_is_reported_with_its_number() {
    for (text, why) in [
        (
            "\nset mss_bites 7",
            "test:2: at 0s\n    set mss_bites 7\nexpected  a setting\ngot       mss_bites: no setting",
        ),
        ("set nagle 1", "true or false"),
        ("set loss_detection guess", "rack or duplicate-acks"),
        ("control cubik", "cubik: no control"),
        ("preset beos", "no setting"),
        ("> S 0:1(0)", "test:1: 0:1(0) does not add up"),
        ("> S 0:0", "not of the form"),
        ("> . 1:1(0)", "`ack N` goes with"),
        ("> S 0:0(0) ack 1", "`ack N` goes with"),
        ("> X 0:0(0)", "X: no flags"),
        ("> S 0:0(0) <mss 99999>", "too large"),
        ("> S 0:0(0) <mess>", "mess: no option"),
        ("> S 0:0(0) <mss", "does not end"),
        ("> S 0:0(0) win", "a value is missing"),
        ("5 finish", "5: no duration"),
        ("* finish", "for packets that go out"),
        ("+1ms jump", "not understood: jump"),
        ("handshake 10ms\nset nagle true", "settings at the head"),
    ] {
        let report = failure(text);
        assert!(report.contains(why), "{text}\n{report}");
    }
}
