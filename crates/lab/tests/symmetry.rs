//! Changes of a scenario that must not change its records, in a world in which nearly every entity draws random numbers.
//!
//! The name of a random stream consists of the seed, the entity that draws, and the purpose. Records may therefore depend on the name of
//! an entity that draws, but not on the names of other entities, on the order of declarations, or on other entities. Each test changes
//! one of these. The test `entity_that_draws_gives_different_records_under_another_name` shows that the draws exist and affect the
//! records.

use crate::common::{flows_csv, outcome};

/// Hosts and routers draw no random numbers, because there is no processing jitter.
const HOSTS: [&str; 10] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "omega"];
const ROUTER: &str = "middle";
/// The host of a UE. The UE has the same name and draws its fading.
const PHONE: &str = "phone";

/// Each link except the last two draws for another model. The delays differ by amounts that no sum of packet times equals: no two packets
/// arrive in the same nanosecond, so the order of declarations resolves no tie.
const LINKS: [(&str, &str); 10] = [
    (
        "queue",
        "from = 'middle', to = 'omega', rate = '8Mbit/s', delay = '9000049ns', \
         discipline = { kind = 'pie', limit = '100packets' }",
    ),
    (
        "loss",
        "from = 'alpha', to = 'middle', rate = '100Mbit/s', delay = '1000003ns', \
         loss = { kind = 'bernoulli', probability = 0.002 }",
    ),
    (
        "bursts",
        "from = 'beta', to = 'middle', rate = '100Mbit/s', delay = '3000017ns', \
         loss = { kind = 'gilbert-elliott', good_to_bad = 0.001, bad_to_good = 0.3 }",
    ),
    (
        "jitter",
        "from = 'gamma', to = 'middle', rate = '100Mbit/s', delay = '2000029ns', jitter = { kind = 'uniform', max = '2ms' }",
    ),
    (
        "late",
        "from = 'delta', to = 'middle', rate = '100Mbit/s', delay = '4000037ns', \
         reordering = { kind = 'late', probability = 0.01, extra = '3000011ns' }",
    ),
    ("twice", "from = 'epsilon', to = 'middle', rate = '100Mbit/s', delay = '5000039ns', duplication = 0.01"),
    (
        "damage",
        "from = 'zeta', to = 'middle', rate = '100Mbit/s', delay = '6000041ns', corruption = { probability = 0.01 }",
    ),
    ("early", "from = 'iota', to = 'middle', rate = '200kbit/s', delay = '10000061ns', discipline = { kind = 'red' }"),
    ("plain", "from = 'eta', to = 'middle', rate = '100Mbit/s', delay = '7000043ns'"),
    ("plain-too", "from = 'theta', to = 'middle', rate = '100Mbit/s', delay = '8000047ns'"),
];

/// A cell with one UE. The order of declarations would decide between two UEs of equal priority.
const ACCESS: (&str, &str) = (
    "access",
    "gateway = 'middle', path_loss = { model = 'log-distance' }, fading = { kind = 'etu', speed = 60 }, \
     cell = [{}], ue = [{ host = 'phone', position = [300, 0] }]",
);

/// Each flow except the last two draws random numbers.
const FLOWS: [(&str, &str); 10] = [
    ("bbr3", "from = 'alpha', to = 'omega', congestion = 'bbr3'"),
    ("bbr1", "from = 'beta', to = 'omega', congestion = 'bbr1', start = '1000007ns'"),
    (
        "transfers",
        "from = 'gamma', to = 'omega', start = '2000003ns', workload = 'poisson-transfers', interval = '100ms', size = '20kB'",
    ),
    (
        "packets",
        "from = 'delta', to = 'omega', start = '3000001ns', protocol = 'udp', workload = 'poisson-packets', \
         interval = '5ms', size = '300B'",
    ),
    ("game", "from = 'epsilon', to = 'omega', start = '4000037ns', protocol = 'udp', workload = 'gaming'"),
    ("call", "from = 'zeta', to = 'omega', start = '5000011ns', protocol = 'udp', workload = 'voice'"),
    (
        "on-off",
        "from = 'eta', to = 'omega', start = '6000031ns', protocol = 'udp', workload = 'on-off', rate = '1Mbit/s', \
         payload = '500B', on = { kind = 'exponential', mean = '500ms' }, off = { kind = 'exponential', mean = '200ms' }",
    ),
    ("pages", "from = 'theta', to = 'omega', start = '7000013ns', workload = 'web', http = '1.1'"),
    (
        "plain",
        "from = 'iota', to = 'omega', start = '8000009ns', protocol = 'udp', workload = 'constant-rate', \
         rate = '250kbit/s', payload = '500B'",
    ),
    ("plain-uplink", "from = 'phone', to = 'omega', start = '9000011ns'"),
];

/// The tables of a scenario: a name and the other keys.
#[derive(Clone)]
struct World {
    hosts: Vec<String>,
    routers: Vec<String>,
    links: Vec<(String, String)>,
    access: Vec<(String, String)>,
    flows: Vec<(String, String)>,
}

impl World {
    fn new() -> World {
        let tables =
            |list: &[(&str, &str)]| list.iter().map(|(name, keys)| (name.to_string(), keys.to_string())).collect();
        World {
            hosts: HOSTS.iter().chain([&PHONE]).map(|name| name.to_string()).collect(),
            routers: vec![ROUTER.to_string()],
            links: tables(&LINKS),
            access: tables(&[ACCESS]),
            flows: tables(&FLOWS),
        }
    }

    fn text(&self) -> String {
        let names =
            |list: &[String]| list.iter().map(|name| format!("{{ name = '{name}' }}")).collect::<Vec<_>>().join(", ");
        let tables = |list: &[(String, String)]| {
            list.iter().map(|(name, keys)| format!("{{ name = '{name}', {keys} }}")).collect::<Vec<_>>().join(",\n  ")
        };
        format!(
            "duration = '10s'\nprocessing_jitter = '0s'\nhost = [{}]\nrouter = [{}]\nlink = [\n  {}]\nlte = [\n  {}]\nflow = [\n  {}]\n",
            names(&self.hosts),
            names(&self.routers),
            tables(&self.links),
            tables(&self.access),
            tables(&self.flows)
        )
    }

    /// The rows of a run in an order that is independent of the file.
    fn rows(&self) -> Vec<String> {
        let mut rows: Vec<String> = flows_csv(&outcome(&self.text())).lines().map(str::to_string).collect();
        rows.sort();
        rows
    }

    /// Renames hosts and routers.
    fn with_nodes_renamed(&self, rename: impl Fn(&str) -> String) -> World {
        let nodes: Vec<&String> = self.hosts.iter().chain(&self.routers).collect();
        let refer = |keys: &str| {
            nodes
                .iter()
                .fold(keys.to_string(), |keys, name| keys.replace(&format!("'{name}'"), &format!("'{}'", rename(name))))
        };
        let tables = |list: &[(String, String)]| list.iter().map(|(name, keys)| (name.clone(), refer(keys))).collect();
        World {
            hosts: self.hosts.iter().map(|name| rename(name)).collect(),
            routers: self.routers.iter().map(|name| rename(name)).collect(),
            links: tables(&self.links),
            access: tables(&self.access),
            flows: tables(&self.flows),
        }
    }
}

#[test]
fn renamed_hosts_and_routers_give_the_same_records() {
    let rename = |name: &str| match name {
        PHONE => name.to_string(),
        _ => format!("node-{}", name.chars().rev().collect::<String>()),
    };
    let mut expected: Vec<String> = World::new().rows();
    assert!(expected.len() > 2 * FLOWS.len() && expected.iter().any(|row| row.contains(",omega,")), "{expected:?}");
    for name in HOSTS {
        expected.iter_mut().for_each(|row| *row = row.replace(&format!(",{name},"), &format!(",{},", rename(name))));
    }
    assert_eq!(World::new().with_nodes_renamed(rename).rows(), expected);
}

/// All flows share the queue, so at least one row depends on the draws of each link and flow.
#[test]
fn entity_that_draws_gives_different_records_under_another_name() {
    let before = World::new().rows();
    for (changed, (name, ..)) in LINKS.iter().enumerate() {
        let mut world = World::new();
        world.links[changed].0 = "another-name".to_string();
        assert_eq!(world.rows() == before, name.starts_with("plain"), "{name}");
    }
    for (changed, (name, ..)) in FLOWS.iter().enumerate() {
        let mut world = World::new();
        world.flows[changed].0 = "another-name".to_string();
        let mut after: Vec<String> = world.rows().iter().map(|row| row.replace("another-name", name)).collect();
        after.sort();
        assert_eq!(after == before, name.starts_with("plain"), "{name}");
    }
    let other = World::new().with_nodes_renamed(|name| if name == PHONE { "another-name" } else { name }.to_string());
    let mut after: Vec<String> = other.rows().iter().map(|row| row.replace("another-name", PHONE)).collect();
    after.sort();
    assert_ne!(after, before, "the UE");
}

#[test]
fn tables_in_another_order_give_the_same_records() {
    let before = World::new().rows();
    let changes: [fn(&mut World); 5] = [
        |world| world.hosts.reverse(),
        |world| world.links.reverse(),
        |world| world.flows.reverse(),
        |world| {
            world.hosts.rotate_left(1);
            world.links.rotate_left(2);
            world.flows.rotate_left(3);
        },
        |world| {
            world.hosts.swap(0, 9);
            world.links.swap(1, 6);
            world.flows.swap(2, 5);
        },
    ];
    for change in changes {
        let mut world = World::new();
        change(&mut world);
        assert_eq!(world.rows(), before, "{}", world.text());
    }
}

/// A second network with models of the same kinds, declared first: neither its draws nor its position among the declarations affect the
/// records of the other.
#[test]
fn unrelated_network_does_not_change_records() {
    let mut world = World::new().with_nodes_renamed(|name| format!("island-{name}"));
    let tables = world.links.iter_mut().chain(&mut world.access).chain(&mut world.flows);
    tables.for_each(|(name, _)| *name = format!("island-{name}"));
    let mut own = World::new();
    world.hosts.append(&mut own.hosts);
    world.routers.append(&mut own.routers);
    world.links.append(&mut own.links);
    world.access.append(&mut own.access);
    world.flows.append(&mut own.flows);
    let (island, rows): (Vec<String>, Vec<String>) =
        world.rows().into_iter().partition(|row| row.starts_with("island-"));
    assert_eq!(rows, World::new().rows());
    // The second network has the same settings and other names, and therefore other draws.
    let of = |rows: &[String], flow: &str| {
        rows.iter().find(|row| row.starts_with(flow)).expect("a row").replace("island-", "")
    };
    assert_ne!(of(&island, "island-bbr3"), of(&rows, "bbr3"));
}

/// Losses by name are binomial, because names give independent streams. With n = 2500 packets and p = 0.1 on each of 40 links, the sum of
/// (x - np)^2 / (np(1 - p)) has 40 degrees of freedom: mean 40, standard deviation sqrt(80) = 8.9.
#[test]
fn streams_of_different_names_are_independent() {
    let mut text = String::from("duration = '3s'\nprocessing_jitter = '0s'\n");
    for n in 0..40 {
        text += &format!(
            "[[host]]\nname = 'a{n}'\n[[host]]\nname = 'b{n}'\n\
             [[link]]\nname = 'link{n}'\nfrom = 'a{n}'\nto = 'b{n}'\nrate = '10Mbit/s'\ndelay = '1ms'\n\
             loss = {{ kind = 'bernoulli', probability = 0.1 }}\n\
             [[flow]]\nname = 'flow{n}'\nfrom = 'a{n}'\nto = 'b{n}'\nprotocol = 'udp'\nworkload = 'constant-rate'\n\
             payload = '100B'\ninterval = '1ms'\npackets = 2500\n"
        );
    }
    let outcome = outcome(&text);
    let lost: Vec<f64> = (0..40)
        .map(|n| {
            let counters = outcome.flow(&format!("flow{n}")).expect("the flow").counters;
            assert_eq!(counters.tx_packets, 2500);
            (counters.tx_packets - counters.rx_packets) as f64
        })
        .collect();
    let (mean, variance) = (2500.0 * 0.1, 2500.0 * 0.1 * 0.9);
    let total: f64 = lost.iter().sum();
    // Four standard deviations.
    assert!((total - 40.0 * mean).abs() < 4.0 * (40.0_f64 * variance).sqrt(), "{lost:?}");
    let spread: f64 = lost.iter().map(|lost| (lost - mean) * (lost - mean) / variance).sum();
    assert!((40.0 - 2.8 * 8.9..40.0 + 4.0 * 8.9).contains(&spread), "{spread}: {lost:?}");
}
