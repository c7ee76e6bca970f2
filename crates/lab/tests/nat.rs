//! Address translators, from the file to the records.

use crate::common::outcome;
use fullpipe_lab::Outcome;

fn behind(nat: &str, flows: &str) -> Outcome {
    outcome(&format!(
        "duration = '60s'
        processing_jitter = '0s'
        [topology]
        kind = 'dumbbell'
        pairs = 3
        access = {{ rate = '1Gbit/s', delay = '1ms' }}
        bottleneck = {{ rate = '10Mbit/s', delay = '10ms' }}
        [[nat]]
        router = 'router1'
        inside = ['left*']
        {nat}
        {flows}"
    ))
}

const CALLS: &str =
    "[[flow]]\nname = 'call'\nfrom = 'left*'\nto = 'right*'\nworkload = 'voice'\nsilence_suppression = false";

fn row(outcome: &Outcome, name: &str) -> (u64, u64) {
    let row = outcome.flow_rows().find(|row| row.flow == name).unwrap_or_else(|| panic!("no {name}"));
    (row.counters.tx_packets, row.counters.rx_packets)
}

#[test]
fn calls_pass_both_ways() {
    let outcome = behind("", CALLS);
    for call in 1..=3 {
        let there = row(&outcome, &format!("call.{call}"));
        // 50 packets a second for 60 s and the one at 60 s; what was sent in the last 12 ms is under way.
        assert_eq!(there.0, 3001);
        assert!(there.1 >= 3000);
        let back = row(&outcome, &format!("call.{call}.reverse"));
        assert!(back.0 > 2990 && back.1 >= back.0 - 1, "{back:?}");
    }
    let (router, counters) = outcome.nat_rows().next().unwrap();
    assert_eq!((router, counters.mappings, counters.exhausted, counters.unsolicited), ("router1", 3, 0, 0));
}

#[test]
fn a_pool_of_two_ports_serves_two_hosts() {
    let outcome = behind("first_port = 5000\nlast_port = 5001", CALLS);
    let passed = (1..=3).filter(|call| row(&outcome, &format!("call.{call}")).1 > 0).count();
    assert_eq!(passed, 2);
    // The one sent at 60 s comes to the router after the end.
    let (_, counters) = outcome.nat_rows().next().unwrap();
    assert_eq!((counters.mappings, counters.exhausted), (2, 3000));
}

#[test]
fn a_mapping_that_has_expired_lets_nothing_in() {
    // Left sends one datagram at 0; right answers as long as the call lasts. Packets from outside do not keep the mapping
    // alive: it ends 5 s after the last from inside. A datagram needs 12 ms to the router and back.
    let one_way = "[[flow]]\nname = 'game'\nfrom = 'left1'\nto = 'right1'\nworkload = 'gaming'";
    let kept = behind("udp_timeout = '5s'", one_way);
    assert_eq!(kept.nat_rows().next().unwrap().1.mappings, 1);
    // A client that is silent for ten seconds finds the mapping gone and makes another.
    let seldom = "[[flow]]\nname = 'seldom'\nfrom = 'left1'\nto = 'right1'\nprotocol = 'udp'\nworkload = 'constant-rate'\n\
                  payload = '100B'\ninterval = '10s'";
    let outcome = behind("udp_timeout = '5s'", seldom);
    let counters = outcome.nat_rows().next().unwrap().1;
    // At 0, 10, ..., 50 s and a millisecond; that of 60 s comes to the router after the end.
    assert_eq!((counters.mappings, counters.expired), (6, 6));
}

#[test]
fn nobody_comes_in_unasked() {
    let outcome = behind("", "[[flow]]\nname = 'in'\nfrom = 'right1'\nto = 'left1'\nsize = '1MB'");
    let (sent, received) = row(&outcome, "in");
    assert!(sent > 1 && received == 0, "{sent} {received}");
    assert_eq!(outcome.nat_rows().next().unwrap().1.unsolicited, sent);
}
