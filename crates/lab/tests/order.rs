//! The order of `[[flow]]` tables means nothing: flows with names of their own have the same records in any order.

mod common;

use common::{flows_csv, outcome};

/// Each tells something else: loss, random transfers with connections of their own, BBR's random waits, datagrams. The
/// hosts' delays differ by parts that no sum of packet times makes up for: no two packets come at the same nanosecond.
const FLOWS: [&str; 4] = [
    "{ name = 'cubic', from = 'a', to = 'sink' }",
    "{ name = 'bbr', from = 'b', to = 'sink', congestion = 'bbr3', start = '1ms' }",
    "{ name = 'page', from = 'sink', to = 'c', start = '2ms', workload = 'poisson-transfers', \
      interval = '200ms', size = '20kB' }",
    "{ name = 'voice', from = 'd', to = 'sink', start = '3ms', protocol = 'udp', workload = 'constant-rate', \
      payload = '160B', interval = '20ms' }",
];

fn records(order: &[usize]) -> Vec<String> {
    let flows: Vec<_> = order.iter().map(|flow| FLOWS[*flow]).collect();
    let text = format!(
        "duration = '12s'
        host = [{{ name = 'a' }}, {{ name = 'b' }}, {{ name = 'c' }}, {{ name = 'd' }}, {{ name = 'sink' }}]
        router = [{{ name = 'middle' }}]
        link = [
            {{ name = 'one', from = 'a', to = 'middle', rate = '100Mbit/s', delay = '1000003ns' }},
            {{ name = 'two', from = 'b', to = 'middle', rate = '100Mbit/s', delay = '3000017ns' }},
            {{ name = 'three', from = 'c', to = 'middle', rate = '100Mbit/s', delay = '2000029ns' }},
            {{ name = 'four', from = 'd', to = 'middle', rate = '100Mbit/s', delay = '4000037ns' }},
            {{ name = 'out', from = 'middle', to = 'sink', rate = '10Mbit/s', delay = '5ms', queue = '30packets',
               loss = {{ kind = 'bernoulli', probability = 0.001 }} }},
        ]
        flow = [{}]",
        flows.join(", ")
    );
    let mut lines: Vec<_> = flows_csv(&outcome(&text)).lines().map(str::to_string).collect();
    lines.sort();
    lines
}

#[test]
fn flows_in_another_order_give_the_same_records() {
    let before = records(&[0, 1, 2, 3]);
    assert!(before.len() > 7, "{before:?}");
    for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]] {
        assert_eq!(records(&order), before, "{order:?}");
    }
}
