//! Tests queue limits of links: one key for all disciplines, and multiples of a bandwidth-delay product.

use fullpipe_network::discipline::settings::QueueCapacity;
use fullpipe_scenario::description::{Link, QueueLimit, Scenario};
use fullpipe_scenario::{LoadedScenario, Override, load};

fn good(text: &str) -> LoadedScenario {
    let loaded = load(text, "limits.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    // The resolved file describes the same scenario, with the multiples and not with bytes.
    let again = load(&loaded.resolved, "resolved.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((&again.scenario, &again.resolved), (&loaded.scenario, &loaded.resolved));
    loaded
}

fn link<'s>(scenario: &'s Scenario, name: &str) -> &'s Link {
    scenario.links.iter().find(|link| link.name == name).expect("the link exists")
}

fn bytes(scenario: &Scenario, name: &str) -> u64 {
    match link(scenario, name).queue {
        QueueLimit::Bytes(bytes) => bytes,
        other => panic!("{name} has {other:?}"),
    }
}

fn dumbbell(bottleneck: &str) -> String {
    format!(
        "[topology]\nkind = 'dumbbell'\naccess = {{ rate = '100Mbit/s', delay = '1ms' }}
        bottleneck = {{ rate = '10Mbit/s', delay = '18ms', {bottleneck} }}
        [[flow]]\nfrom = 'left1'\nto = 'right1'\n"
    )
}

#[test]
fn bdp_of_a_dumbbell_is_rate_times_round_trip_propagation() {
    // 2 x (1 + 18 + 1) ms = 40 ms; 10 Mbit/s x 40 ms = 400 000 bits = 50 000 bytes.
    let loaded = good(&dumbbell("queue = '2BDP', reverse = { rate = '1Mbit/s' }"));
    assert_eq!(bytes(&loaded.scenario, "bottleneck"), 100_000);
    // The reverse direction inherits the multiple and has its own rate: 2 x 1 Mbit/s x 40 ms.
    assert_eq!(bytes(&loaded.scenario, "bottleneck.reverse"), 10_000);
    assert!(loaded.resolved.contains("queue = \"2BDP\""), "{}", loaded.resolved);
    let said: Vec<String> = loaded.scenario.bdp_limits.iter().map(ToString::to_string).collect();
    let expected = [
        "bottleneck: queue = 2BDP is 100 kB (10Mbit/s x 40ms)",
        "bottleneck.reverse: queue = 2BDP is 10000 bytes (1Mbit/s x 40ms)",
    ];
    assert_eq!(said, expected);
    // With another round-trip time: 0.25 x 10 Mbit/s x 100 ms = 31 250 bytes.
    let loaded = good(&dumbbell("queue = '0.25BDP', bdp_rtt = '100ms'"));
    assert_eq!(bytes(&loaded.scenario, "bottleneck"), 31_250);
}

#[test]
fn bdp_uses_the_longest_round_trip_of_the_flows_through_a_link() {
    let lot = |flows: &[(&str, &str)]| {
        let flows: String =
            flows.iter().map(|(from, to)| format!("[[flow]]\nfrom = '{from}'\nto = '{to}'\n")).collect();
        let text = format!(
            "[topology]\nkind = 'parking-lot'\nhops = 3\nbottleneck = {{ rate = '8Mbit/s', delay = '5ms' }}
            access = {{ rate = '100Mbit/s', delay = '1ms' }}\n{flows}"
        );
        let set = |path: &str| Override::parse(path).unwrap();
        let loaded = load(&text, "lot.toml", &[set("topology.bottleneck.discipline.limit=1BDP")]);
        loaded.map(|loaded| {
            ["bottleneck1", "bottleneck2", "bottleneck3"].map(|name| bytes(&loaded.scenario, name) / 1000)
        })
    };
    let [first, second, third, whole] = [
        ("cross-source1", "cross-sink1"),
        ("cross-source2", "cross-sink2"),
        ("cross-source3", "cross-sink3"),
        ("source", "sink"),
    ];
    // Over one bottleneck 2 x (1 + 5 + 1) ms = 14 ms, over three 2 x (1 + 15 + 1) ms = 34 ms. 8 Mbit/s are 1 byte per us.
    assert_eq!(lot(&[first, second, third]).unwrap(), [14, 14, 14]);
    assert_eq!(lot(&[first, second, third, whole]).unwrap(), [34, 34, 34]);
    // A flow in the opposite direction uses the link as well, because its acknowledgments pass through it.
    assert_eq!(lot(&[("sink", "source")]).unwrap(), [34, 34, 34]);
    let error = lot(&[first, third]).unwrap_err().0.remove(0);
    assert_eq!(error.path, "topology.bottleneck.discipline.limit");
    assert_eq!(
        error.to_string(),
        "--set topology.bottleneck.discipline.limit=1BDP: no flow uses bottleneck2, so its bandwidth-delay \
         product is unknown; expected a flow through it, or bdp_rtt"
    );
}

#[test]
fn bdp_counts_every_hop_through_routers_segments_and_tunnels() {
    let text = "
        [[host]]\nname = 'client'\n[[router]]\nname = 'a'\n[[host]]\nname = 'proxy'\n[[host]]\nname = 'server'
        [[link]]\nname = 'l1'\nfrom = 'client'\nto = 'a'\nrate = '8Mbit/s'\ndelay = '3ms'\nqueue = '1BDP'
        reverse = { delay = '4ms' }
        [[link]]\nname = 'l2'\nfrom = 'a'\nto = 'proxy'\nrate = '8Mbit/s'\ndelay = '5ms'\nqueue = '1BDP'
        [[link]]\nname = 'l3'\nfrom = 'a'\nto = 'server'\nrate = '8Mbit/s'\ndelay = '7ms'\nqueue = '1BDP'
        [[flow]]\nname = 'tunnel'\nfrom = 'client'\nto = 'proxy'\nworkload = 'tunnel'\n";
    let inner = "[[flow]]\nfrom = 'client'\nto = 'server'\nprotocol = 'quic'\nvia = 'tunnel'\nquic.stack = 'noq'\n";
    // From client to proxy and back: 3 + 5 + 5 + 4 = 17 ms. From the proxy to the server and back: 2 x (5 + 7) = 24 ms.
    let scenario = good(&format!("{text}{inner}")).scenario;
    assert_eq!(["l1", "l2", "l3", "l1.reverse"].map(|name| bytes(&scenario, name)), [41_000; 4]);
    let lan = "
        [[host]]\nname = 'x'\n[[host]]\nname = 'y'
        [[ethernet]]\nname = 'lan'\nhosts = ['x', 'y']\nrate = '8Mbit/s'\ndelay = '2ms'\nqueue = '1.5BDP'
        [[flow]]\nfrom = 'x'\nto = 'y'\n";
    // 1.5 x 8 Mbit/s x 2 x 2 ms = 6 000 bytes.
    assert_eq!(good(lan).scenario.ethernets[0].device_queue, fullpipe_network::Limit::Bytes(6_000));
}

#[test]
fn bdp_of_a_varying_rate_uses_its_mean() {
    // 10 Mbit/s for 15 s and 2 Mbit/s for 5 s of a run of 20 s: 8 Mbit/s on average, 1 byte per us, 40 ms.
    let text = dumbbell("queue = '1BDP', schedule = [{ at = '15s', rate = '2Mbit/s' }]");
    assert_eq!(bytes(&good(&format!("duration = '20s'\n{text}")).scenario, "bottleneck"), 40_000);
    // Two opportunities in 3 ms: 2 x 1504 bytes / 3 ms x 40 ms = 40 106.7 bytes. The rate is a whole number of bits per
    // second.
    let loaded = good(&dumbbell("queue = '1BDP', trace = [1, 3]"));
    assert_eq!(bytes(&loaded.scenario, "bottleneck"), 8_021_333 * 40 / 8000);
}

#[test]
fn discipline_limit_applies_to_every_discipline() {
    for kind in ["none", "fifo", "red", "ared", "codel", "fq-codel", "pie", "dualpi2", "step", "priority"] {
        let bands = if kind == "priority" { "bands = [{ kind = 'codel', limit = 'unlimited' }]," } else { "" };
        // 40 ms at 10 Mbit/s: all limits except the first are the same 50 000 bytes.
        for limit in ["9packets", "50kB", "40ms", "1BDP"] {
            let loaded = good(&dumbbell(&format!("discipline = {{ kind = '{kind}', {bands} limit = '{limit}' }}")));
            let bottleneck = link(&loaded.scenario, "bottleneck");
            let device = fullpipe_network::Limit::from_queue_limit(bottleneck.queue, bottleneck.rate);
            let capacity = bottleneck
                .discipline
                .as_ref()
                .map_or(QueueCapacity::from_limit(device), |settings| settings.capacity());
            let expected = match limit {
                "9packets" => QueueCapacity { packets: Some(9), bytes: None },
                _ => QueueCapacity { packets: None, bytes: Some(50_000) },
            };
            assert_eq!(capacity, expected, "{kind}: {limit}");
            assert_eq!(loaded.hints, []);
        }
    }
}

#[test]
fn queue_limits_the_device_and_gives_a_hint_below_a_discipline() {
    let hints = |bottleneck: &str| -> Vec<String> {
        good(&dumbbell(bottleneck)).hints.iter().map(ToString::to_string).collect()
    };
    assert_eq!(hints("queue = '5packets'"), [""; 0]);
    assert_eq!(hints("queue = '5packets', discipline = { kind = 'codel', limit = '9packets' }"), [""; 0]);
    let below = "limits.toml:4: topology.bottleneck.queue limits the device's queue below codel; the limit of codel itself \
                 is topology.bottleneck.discipline.limit";
    assert_eq!(hints("queue = '5packets', discipline = { kind = 'codel' }"), [below]);
    let both = "queue = '5packets', discipline = { limit = '9packets' }";
    assert_eq!(
        hints(both),
        [
            "limits.toml:4: topology.bottleneck.queue has no effect, because topology.bottleneck.discipline.limit limits the \
         queue"
        ]
    );
    assert_eq!(link(&good(&dumbbell(both)).scenario, "bottleneck").queue, QueueLimit::Packets(9));
    // The reverse direction's own queue replaces the inherited limit.
    let own = good(&dumbbell("discipline = { limit = '9packets' }, reverse = { queue = '3packets' }"));
    assert_eq!(own.hints, []);
    let queues = ["bottleneck", "bottleneck.reverse"].map(|name| link(&own.scenario, name).queue);
    assert_eq!(queues, [QueueLimit::Packets(9), QueueLimit::Packets(3)]);
}

#[test]
fn bdp_multiple_is_accepted_for_links_only() {
    let error = load(&dumbbell("queue = '0BDP'"), "zero", &[]).unwrap_err();
    assert!(error.to_string().contains("is zero"), "{error}");
    let text = dumbbell("queue = '1BDP'") + "protocol = 'quic'\n[masque]\nqueue_limit = '1BDP'\n";
    let error = load(&text, "masque", &[]).unwrap_err();
    assert!(error.to_string().contains("expected a queue limit such as"), "{error}");
}
