//! Tests the keys for real time, and the behavior of the same file in virtual time.

use fullpipe_scenario::description::*;
use fullpipe_scenario::{LoadedScenario, load};
use fullpipe_units::{Duration, NodeId};

const NETWORK: &str = "\
[topology]
kind = 'dumbbell'
pairs = 2
access = { rate = '1Gbit/s', delay = '1ms' }
bottleneck = { rate = '10Mbit/s', delay = '8ms' }
";

/// Loads a file and its resolved file, and checks that both are equal.
fn good(text: &str) -> LoadedScenario {
    let loaded = load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let again = load(&loaded.resolved, "resolved.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(again.scenario, loaded.scenario);
    assert_eq!(again.resolved, loaded.resolved);
    loaded
}

fn node(scenario: &Scenario, name: &str) -> NodeId {
    NodeId(scenario.nodes.iter().position(|node| node.name == name).unwrap() as u32)
}

/// The settings for real time: lateness limits, their consequences, and the attachment of hosts.
fn settings(read: &RealTimeSettings) -> (Duration, f64, Duration, LatenessPolicy, StallPolicy, InterfaceKind, bool) {
    let RealTimeSettings {
        policy, late_after, late_share, stall_after, after_stall, attachment, record_arrivals, ..
    } = *read;
    (late_after, late_share, stall_after, policy, after_stall, attachment, record_arrivals)
}

fn real(scenario: &Scenario) -> Vec<&str> {
    let nodes = scenario.nodes.iter().enumerate();
    nodes.filter(|(n, _)| scenario.is_real_host(NodeId(*n as u32))).map(|(_, node)| node.name.as_str()).collect()
}

#[test]
fn file_without_real_time_keys_has_the_documented_defaults() {
    let loaded = good(&format!("{NETWORK}[[flow]]\nfrom = 'left1'\nto = 'right1'\n"));
    let scenario = &loaded.scenario;
    let [late, stall] = [1, 25].map(Duration::from_millis);
    let expected = (late, 0.01, stall, LatenessPolicy::BestEffort, StallPolicy::CatchUp, InterfaceKind::Veth, false);
    assert_eq!(settings(&scenario.real_time), expected);
    assert!(scenario.programs.is_empty() && real(scenario).is_empty());
    assert_eq!(scenario.real_time_reason(), None);
    let flow = &scenario.flows[0];
    assert_eq!((flow.from_by, flow.to_by, flow.port), (EndpointBackend::Model, EndpointBackend::Model, 9));
    for line in ["late_share = 0.01", "after_stall = \"catch-up\"", "from_by = \"model\"", "port = 9"] {
        assert!(loaded.resolved.lines().any(|written| written == line), "{line} is not in\n{}", loaded.resolved);
    }
}

#[test]
fn each_real_time_key_sets_its_own_field() {
    let keys = "policy = 'hard-limit'\nlate_after = '2ms'\nlate_share = 0.5\nstall_after = '3ms'\nafter_stall = 'pause'\n\
                attachment = 'tun'\n\
                record_arrivals = true\n";
    let loaded = good(&format!("{NETWORK}[[flow]]\nfrom = 'left1'\nto = 'right1'\n[real_time]\n{keys}"));
    let [late, stall] = [2, 3].map(Duration::from_millis);
    let expected = (late, 0.5, stall, LatenessPolicy::HardLimit, StallPolicy::Pause, InterfaceKind::Tun, true);
    assert_eq!(settings(&loaded.scenario.real_time), expected);
}

#[test]
fn programs_have_the_documented_defaults() {
    // A file with programs needs no flow.
    let text = format!(
        "duration = '7s'\n{NETWORK}
[[program]]
host = 'right1'
command = 'serve | tee log'
background = true
ready = {{ kind = 'output', text = 'listening', timeout = '2s' }}
[[program]]
name = 'client'
host = 'left1'
command = ['fetch', '', 'it']
environment = ['A=1=2', 'B=']
directory = 'pages'
after = ['right1']
start = '1s'
timeout = '3s'
exit_status = 4
"
    );
    let loaded = good(&text);
    let scenario = &loaded.scenario;
    let [server, client] = scenario.programs.as_slice() else { panic!("{:?}", scenario.programs) };
    let what = |read: &Program| {
        let Program { name, host, command, environment, directory, after, .. } = read.clone();
        (name, host, command, environment, directory, after)
    };
    let when = |read: &Program| {
        let Program { ready, ready_timeout, start, timeout, background, exit_status, figures_of, .. } = read.clone();
        let [ready_timeout, start, timeout] = [ready_timeout, start, timeout].map(Duration::as_secs_f64);
        (ready, ready_timeout, start, timeout, background, exit_status, figures_of)
    };
    let shell = Command::Shell("serve | tee log".into());
    assert_eq!(what(server), ("right1".into(), node(scenario, "right1"), shell, vec![], ".".into(), vec![]));
    assert_eq!(when(server), (ReadyCondition::Output("listening".into()), 2.0, 0.0, 7.0, true, 0, None));
    let words = Command::Arguments(vec!["fetch".into(), String::new(), "it".into()]);
    let environment = vec![("A".into(), "1=2".into()), ("B".into(), String::new())];
    let host = node(scenario, "left1");
    assert_eq!(what(client), ("client".into(), host, words, environment, "pages".into(), vec!["right1".into()]));
    assert_eq!(when(client), (ReadyCondition::Started, 10.0, 1.0, 3.0, false, 4, None));
    assert_eq!(scenario.programs[0].command.argv(), ["/bin/sh", "-c", "serve | tee log"]);
    assert_eq!(scenario.programs[1].command.argv(), ["fetch", "", "it"]);
    assert_eq!(real(scenario), ["left1", "right1"]);
    assert_eq!(scenario.real_time_reason().as_deref(), Some("right1 is a real program"));
    // A program in the background accepts any exit status, so the resolved file contains none.
    assert_eq!(loaded.resolved.matches("exit_status").count(), 1);
}

#[test]
fn each_kind_of_readiness_is_read() {
    for (text, expected) in [
        ("kind = 'started'", ReadyCondition::Started),
        ("kind = 'tcp-port', port = 1", ReadyCondition::TcpPort(1)),
        ("kind = 'udp-port', port = 65535", ReadyCondition::UdpPort(65_535)),
        ("kind = 'exit'", ReadyCondition::Exit),
    ] {
        let program = format!("[[program]]\nhost = 'left1'\ncommand = 'a'\nready = {{ {text} }}\n");
        assert_eq!(good(&format!("{NETWORK}{program}")).scenario.programs[0].ready, expected);
    }
}

#[test]
fn kernel_ends_are_real_hosts_and_also_run_in_virtual_time() {
    let flows = "[[flow]]\nfrom = 'left1'\nto = 'right1'\nfrom_by = 'kernel'\nport = 5001\n\
                 [[flow]]\nfrom = 'left2'\nto = 'right2'\nprotocol = 'udp'\nworkload = 'constant-rate'\npayload = 100\n\
                 rate = '1Mbit/s'\nto_by = 'kernel'\n";
    let scenario = good(&format!("{NETWORK}{flows}")).scenario;
    assert_eq!(real(&scenario), ["left1", "right2"]);
    assert_eq!(scenario.real_time_reason(), None);
    assert_eq!((scenario.flows[0].from_by, scenario.flows[0].to_by), (EndpointBackend::Kernel, EndpointBackend::Model));
    assert_eq!((scenario.flows[0].port, scenario.flows[1].port), (5001, 9));
}

/// Two hosts and a router, each with additional keys.
fn own(a: &str, b: &str, router: &str) -> String {
    let link = "rate = '1Mbit/s'\ndelay = '1ms'\n";
    format!(
        "[[host]]\nname = 'a'\n{a}\n[[host]]\nname = 'b'\n{b}\n[[router]]\nname = 'r'\n{router}\n\
         [[link]]\nname = 'x'\nfrom = 'a'\nto = 'r'\n{link}[[link]]\nname = 'y'\nfrom = 'r'\nto = 'b'\n{link}"
    )
}

#[test]
fn addresses_are_canonical_and_default_to_the_node_number() {
    let network = own("ipv4 = '192.0.2.7'\nipv6 = '2001:DB8:0::0:7'", "", "ipv4 = '10.0.0.3'");
    let loaded = good(&format!("{network}[[flow]]\nfrom = 'a'\nto = 'b'\n"));
    let nodes = &loaded.scenario.nodes;
    assert_eq!(nodes[0].ipv4(), Some("192.0.2.7".parse().unwrap()));
    assert_eq!(nodes[0].ipv6(), Some("2001:db8::7".parse().unwrap()));
    assert!(loaded.resolved.contains("\"2001:db8::7\""), "{}", loaded.resolved);
    assert_eq!((nodes[1].ipv4(), nodes[1].ipv6(), nodes[1].interface()), (None, None, None));
    // The router is the third node, so the address is its default address.
    assert_eq!(nodes[2].ipv4(), Some("10.0.0.3".parse().unwrap()));
}

#[test]
fn default_address_is_free_if_its_node_has_an_explicit_one() {
    let flow = "[[flow]]\nfrom = 'a'\nto = 'b'\n";
    good(&format!("{}{flow}", own("ipv4 = '10.0.0.2'", "ipv4 = '10.0.0.1'", "")));
    // b has an explicit address of the other family only.
    let text = format!("{}{flow}", own("ipv4 = '10.0.0.2'", "ipv6 = 'fd00::1'", ""));
    let errors = load(&text, "test.toml", &[]).unwrap_err();
    assert!(errors.to_string().contains("the address 10.0.0.2 already belongs to b (its default address)"), "{errors}");
}

#[test]
fn host_beyond_an_interface_runs_a_program_end() {
    let network = own("interface = 'eth0'", "", "");
    let scenario = good(&format!("{network}[[flow]]\nfrom = 'a'\nto = 'b'\nfrom_by = 'program'\n")).scenario;
    assert_eq!(scenario.nodes[0].interface(), Some("eth0"));
    assert_eq!(real(&scenario), ["a"]);
    let reason = scenario.real_time_reason();
    assert_eq!(reason.as_deref(), Some("a real program is an end of flow flow1"));
}

/// Client, proxy and server of a tunneled transfer can all be programs that report metrics of its flows.
#[test]
fn programs_play_tunnels_and_what_goes_through_them() {
    let players = "from_by = 'program'\nto_by = 'program'\n";
    let tunnel = format!("[[flow]]\nname = 'tunnel'\nfrom = 'left1'\nto = 'right1'\nworkload = 'tunnel'\n{players}");
    let through =
        format!("[[flow]]\nname = 'data'\nfrom = 'left1'\nto = 'right2'\nprotocol = 'quic'\nvia = 'tunnel'\n{players}");
    let program =
        |host: &str, of: &str| format!("[[program]]\nhost = '{host}'\ncommand = ['x']\nfigures_of = '{of}'\n");
    let programs = [program("left1", "data"), program("right1", "tunnel"), program("right2", "data")].concat();
    let loaded = good(&format!("{NETWORK}{tunnel}{through}{programs}"));
    assert_eq!(
        loaded.scenario.programs.iter().map(|program| program.figures_of).collect::<Vec<_>>(),
        [Some(1), Some(0), Some(1)]
    );
    assert_eq!(loaded.scenario.flows[1].via, Some(0));
    // The model can therefore run all of them.
    assert_eq!(loaded.scenario.real_time_reason(), None);
    let silent = "[[program]]\nname = 'silent'\nhost = 'left1'\ncommand = ['x']\n";
    let loaded = good(&format!("{NETWORK}{tunnel}{through}{programs}{silent}"));
    assert_eq!(loaded.scenario.real_time_reason().as_deref(), Some("silent is a real program"));
    let loaded = good(&format!("{NETWORK}{tunnel}{through}{programs}{silent}background = true\n"));
    assert_eq!(loaded.scenario.real_time_reason(), None);
}
