//! NATs, from the scenario to the records.

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
fn calls_pass_a_nat_in_both_directions() {
    let outcome = behind("", CALLS);
    for call in 1..=3 {
        let there = row(&outcome, &format!("call.{call}"));
        // 50 packets per second for 60 s and one at 60 s; packets of the last 12 ms have not arrived.
        assert_eq!(there.0, 3001);
        assert!(there.1 >= 3000);
        let back = row(&outcome, &format!("call.{call}.reverse"));
        assert!(back.0 > 2990 && back.1 >= back.0 - 1, "{back:?}");
    }
    let (router, counters) = outcome.nat_rows().next().unwrap();
    assert_eq!((router, counters.mappings, counters.exhausted, counters.unsolicited), ("router1", 3, 0, 0));
}

#[test]
fn nat_with_two_ports_serves_two_hosts() {
    let outcome = behind("first_port = 5000\nlast_port = 5001", CALLS);
    let passed = (1..=3).filter(|call| row(&outcome, &format!("call.{call}")).1 > 0).count();
    assert_eq!(passed, 2);
    // The packet sent at 60 s arrives at the router after the end.
    let (_, counters) = outcome.nat_rows().next().unwrap();
    assert_eq!((counters.mappings, counters.exhausted), (2, 3000));
}

#[test]
fn packets_to_an_expired_mapping_are_dropped() {
    // Left sends one datagram at 0; right responds until the end of the call. Packets from outside do not refresh the mapping, which
    // expires 5 s after the last packet from inside. A datagram needs 12 ms to the router and back.
    let one_way = "[[flow]]\nname = 'game'\nfrom = 'left1'\nto = 'right1'\nworkload = 'gaming'";
    let kept = behind("udp_timeout = '5s'", one_way);
    assert_eq!(kept.nat_rows().next().unwrap().1.mappings, 1);
    // A client that is silent for ten seconds creates a new mapping after the first has expired.
    let seldom = "[[flow]]\nname = 'seldom'\nfrom = 'left1'\nto = 'right1'\nprotocol = 'udp'\nworkload = 'constant-rate'\n\
                  payload = '100B'\ninterval = '10s'";
    let outcome = behind("udp_timeout = '5s'", seldom);
    let counters = outcome.nat_rows().next().unwrap().1;
    // At 0, 10, ..., 50 s plus a millisecond; the packet of 60 s arrives at the router after the end.
    assert_eq!((counters.mappings, counters.expired), (6, 6));
}

#[test]
fn unsolicited_packets_do_not_pass_a_nat() {
    let outcome = behind("", "[[flow]]\nname = 'in'\nfrom = 'right1'\nto = 'left1'\nsize = '1MB'");
    let (sent, received) = row(&outcome, "in");
    assert!(sent > 1 && received == 0, "{sent} {received}");
    assert_eq!(outcome.nat_rows().next().unwrap().1.unsolicited, sent);
}
