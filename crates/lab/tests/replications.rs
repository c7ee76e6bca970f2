//! Independence of runs with different seeds: the default processing jitter of hosts whose flows share a queue or a medium (Floyd and
//! Jacobson 1991, section 4).

use crate::common::outcome;

/// Number of receptions, time of the last, and sum of delays, for each direction of each flow.
type Trace = Vec<(u64, u64, u64)>;

fn trace(text: &str) -> Trace {
    let outcome = outcome(text);
    let rows = outcome.flow_rows().map(|row| row.counters);
    rows.map(|row| (row.rx_packets, row.last_rx.as_nanos(), row.delay_sum.as_nanos())).collect()
}

/// The number of different runs among three seeds.
fn different_runs(text: &str) -> usize {
    let mut traces: Vec<Trace> = (1..=3).map(|seed| trace(&format!("seed = {seed}\n{text}"))).collect();
    assert!(traces.iter().flatten().any(|(received, ..)| *received > 10), "nothing arrives:\n{text}");
    traces.sort();
    traces.dedup();
    traces.len()
}

/// NewReno and, if `flows` is 2, CUBIC, through one bottleneck.
fn bottleneck(queue: &str, flows: usize) -> String {
    let flow = |(name, control): (&str, &str)| {
        format!(
            "[[flow]]\nname = '{name}'\nfrom = 'source'\nto = 'sink'\nworkload = 'bulk'\ncongestion = '{control}'\n"
        )
    };
    let both = [("first", "newreno"), ("second", "cubic")];
    let flows: String = both.into_iter().take(flows).map(flow).collect();
    format!(
        "duration = '3s'\n[topology]\nkind = 'chain'\n[[topology.link]]\nrate = '10Mbit/s'\ndelay = '10ms'\n{queue}\n{flows}"
    )
}

#[test]
fn two_flows_differ_between_seeds_under_every_discipline() {
    for (kind, keys) in
        [("none", ""), ("fifo", ", limit = '50packets'"), ("codel", ""), ("fq-codel", ""), ("dualpi2", "")]
    {
        let queue = format!("discipline = {{ kind = '{kind}'{keys} }}");
        assert_eq!(different_runs(&bottleneck(&queue, 2)), 3, "two flows, {kind}");
        assert_eq!(different_runs(&bottleneck(&queue, 1)), 1, "one flow, {kind}");
    }
    assert_eq!(different_runs(&format!("processing_jitter = '0s'\n{}", bottleneck("", 2))), 1);
    assert_eq!(different_runs(&format!("processing_jitter = '1ms'\n{}", bottleneck("", 1))), 3);
}

/// Departure times of the first packet of each flow, in nanoseconds.
fn first_departures(text: &str) -> Vec<u64> {
    outcome(text).flow_rows().step_by(2).map(|row| row.counters.first_tx.as_nanos()).collect()
}

#[test]
fn start_times_are_random_per_flow_and_seed_within_the_jitter() {
    // A flow starts at its start time plus a fraction of the jitter from its own stream. Processing jitter is disabled, so that the first
    // packet departs at the start. The first flow has no jitter of its own.
    let text = |seed: u64, jitter: &str| {
        let text =
            bottleneck("", 2).replace("congestion = 'cubic'", &format!("congestion = 'cubic'\nstart = '1s'\n{jitter}"));
        format!("seed = {seed}\nprocessing_jitter = '0s'\n{text}")
    };
    assert_eq!(first_departures(&text(1, ""))[1], 1_000_000_000);
    let drawn: Vec<u64> = (1..=20).map(|seed| first_departures(&text(seed, "start_jitter = '500ms'"))[1]).collect();
    assert!(drawn.iter().all(|at| (1_000_000_000..1_500_000_000).contains(at)), "{drawn:?}");
    // Twenty uniform draws leave a quarter of the range empty with probability 0.75^20 = 0.003; the seeds are fixed.
    assert!(drawn.iter().any(|at| *at < 1_125_000_000) && drawn.iter().any(|at| *at > 1_375_000_000), "{drawn:?}");
    assert_eq!(
        first_departures(&text(7, "start_jitter = '500ms'")),
        first_departures(&text(7, "start_jitter = '500ms'"))
    );
    assert_eq!(first_departures(&text(7, "start_jitter = '500ms'"))[0], first_departures(&text(7, ""))[0]);
}

#[test]
fn flows_on_a_full_duplex_segment_differ_between_seeds() {
    // Without collisions and with a constant delay of address resolution, there is no other random number.
    let segment = |flows: &[&str]| {
        let flow = |name: &&str| {
            format!("[[flow]]\nname = '{name}'\nfrom = 'a'\nto = 'b'\nworkload = 'bulk'\ncongestion = 'cubic'\n")
        };
        let flows: String = flows.iter().map(flow).collect();
        format!(
            "duration = '1s'\nhost = [{{ name = 'a' }}, {{ name = 'b' }}]\n[[ethernet]]\nname = 'wire'\nhosts = ['a', 'b']\n\
             rate = '10Mbit/s'\ndelay = '1us'\nduplex = 'full'\narp = {{ request_jitter = '0s' }}\n{flows}"
        )
    };
    assert_eq!(different_runs(&segment(&["one", "two"])), 3);
    assert_eq!(different_runs(&segment(&["one"])), 1);
}

/// Whether the default jitter changes a run with one seed, for scenarios with other random numbers.
fn jitter_acts(text: &str) -> bool {
    trace(text) != trace(&format!("processing_jitter = '0s'\n{text}"))
}

#[test]
fn jitter_affects_two_flows_in_one_cell_and_not_a_single_one() {
    // Each server has its own link, so only the cell is shared.
    let cell = |count: usize| {
        let server = |number: usize| {
            format!(
                "[[host]]\nname = 'ue{number}'\n[[host]]\nname = 'server{number}'\n[[link]]\nname = 'core{number}'\n\
                 from = 'server{number}'\nto = 'gateway'\nrate = '1Gbit/s'\ndelay = '1ms'\n"
            )
        };
        let flow = |number: usize| {
            format!(
                "[[flow]]\nname = 'f{number}'\nfrom = 'server{number}'\nto = 'ue{number}'\nworkload = 'constant-rate'\n\
                 protocol = 'udp'\npayload = '1400B'\ninterval = '1ms'\nstart = '500ms'\n"
            )
        };
        let servers: String = (1..=2).map(server).collect();
        let flows: String = (1..=count).map(flow).collect();
        format!(
            "duration = '1s'\n[[router]]\nname = 'gateway'\n{servers}[[lte]]\nname = 'cell'\ngateway = 'gateway'\n\
             [[lte.cell]]\nname = 'corner'\n[[lte.ue]]\nhost = 'ue1'\ndistance = 50\n[[lte.ue]]\nhost = 'ue2'\ndistance = 60\n{flows}"
        )
    };
    assert!(jitter_acts(&cell(2)));
    assert!(!jitter_acts(&cell(1)));
}

#[test]
fn jitter_affects_two_flows_in_one_tunnel_and_not_a_single_one() {
    let tunnel = |count: usize| {
        let flow = |number: usize| {
            format!(
                "[[flow]]\nname = 'f{number}'\nfrom = 'client'\nto = 'server'\nvia = 'tunnel'\nworkload = 'bulk'\nprotocol = 'quic'\n\
                 size = '500kB'\nstart = '500ms'\n"
            )
        };
        let flows: String = (1..=count).map(flow).collect();
        format!(
            "duration = '2s'\n[[host]]\nname = 'client'\n[[host]]\nname = 'proxy'\n[[host]]\nname = 'server'\n\
             [[link]]\nname = 'near'\nfrom = 'client'\nto = 'proxy'\nrate = '10Mbit/s'\ndelay = '5ms'\n\
             [[link]]\nname = 'far'\nfrom = 'proxy'\nto = 'server'\nrate = '10Mbit/s'\ndelay = '5ms'\n\
             [[flow]]\nname = 'tunnel'\nfrom = 'client'\nto = 'proxy'\nworkload = 'tunnel'\n{flows}"
        )
    };
    assert!(jitter_acts(&tunnel(2)));
    assert!(!jitter_acts(&tunnel(1)));
}

/// Two flows with 1 Mbit/s and 10 ms in each direction: a full packet takes 12 ms and a small one 0.32 ms, so a round trip is 32.32 ms.
#[test]
fn phase_jitter_delays_each_flow_by_a_fraction_of_its_round_trip() {
    let text = |more: &str, seed: u64| {
        let flow = |name: &str| {
            format!("[[flow]]\nname = '{name}'\nfrom = 'source'\nto = 'sink'\nstart = '100ms'\nworkload = 'bulk'\n")
        };
        format!(
            "{more}seed = {seed}\nduration = '2s'\nprocessing_jitter = '0s'\n[topology]\nkind = 'chain'\nlink = [{{ rate = '1Mbit/s', delay = '10ms' \
             }}]\n{}{}",
            flow("first"),
            flow("second")
        )
    };
    let starts = |more: &str, seed: u64| -> Vec<u64> {
        let outcome = outcome(&text(more, seed));
        ["first", "second"].map(|flow| outcome.flow(flow).expect("the flow").counters.first_tx.as_nanos()).to_vec()
    };
    assert_eq!(starts("", 1), [100_000_000; 2]);
    let moved: Vec<u64> = (1..=50).flat_map(|seed| starts("phase_jitter = 1\n", seed)).collect();
    let (least, most) = (moved.iter().min().unwrap(), moved.iter().max().unwrap());
    // 100 uniform numbers are within a tenth of both ends, except for 2 * 0.9^100 = 5e-5 of all samples.
    assert!((100_000_000..103_232_000).contains(least) && (129_088_000..132_320_000).contains(most), "{least} {most}");
    assert!(moved.chunks(2).all(|both| both[0] != both[1]));
    assert_eq!(starts("phase_jitter = 1\n", 7), starts("phase_jitter = 1\n", 7));
}
