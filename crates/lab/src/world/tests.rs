//! Tests that the report of each kind of endpoint has the values of its connection or program.

use super::{ConnectionMut, World};
use crate::options::Options;
use crate::prepared::PreparedRun;
use crate::run::prepare;
use fullpipe_transport::endpoint::{EndpointKind, EndpointReport};
use fullpipe_units::{Duration, Instant};

/// A network from `source` to `sink` and `proxy`, which are at the same router. The bottleneck of 2 Mbit/s has a queue
/// of ten packets, so a bulk sender has losses.
const NETWORK: &str = "
    duration = '10s'
    host = [{ name = 'source' }, { name = 'proxy' }, { name = 'sink' }]
    router = [{ name = 'router' }]
    [[link]]
    name = 'access'
    from = 'source'
    to = 'router'
    rate = '2Mbit/s'
    delay = '20ms'
    queue = '10packets'
    [[link]]
    name = 'near-proxy'
    from = 'router'
    to = 'proxy'
    rate = '1Gbit/s'
    delay = '1us'
    [[link]]
    name = 'near-sink'
    from = 'router'
    to = 'sink'
    rate = '1Gbit/s'
    delay = '1us'
    [[flow]]
    name = 'f'
    from = 'source'
";

/// The world of a scenario after two seconds.
fn world(flow: &str) -> PreparedRun {
    let text = format!("{NETWORK}{flow}");
    let loaded = fullpipe_scenario::load(&text, "test", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut prepared = prepare(&loaded.scenario, &Options::default()).expect("it can be built");
    let PreparedRun { world, network, .. } = &mut prepared;
    world.start(network);
    let until = Instant::ZERO + Duration::from_millis(2000);
    network.run(world, until, Instant::ZERO + Duration::from_millis(10_000));
    prepared
}

fn report(world: &mut World, end: usize) -> EndpointReport {
    let report = world.report((0, end)).expect("the connection is open");
    // A missing value must be `None`, not the value that the transport uses for it.
    assert!(report.smoothed_rtt != Some(Duration::ZERO) && report.ssthresh_bytes != Some(u64::MAX), "{report:?}");
    report
}

#[test]
fn without_probes_and_logs_only_controls_that_use_delivery_rates_get_them() {
    for (control, measured) in [("cubic", false), ("newreno", false), ("bbr1", true), ("bbr3", true)] {
        for protocol in ["", "protocol = 'quic'\nquic = { stack = 'model' }"] {
            let text = format!("to = 'sink'\nworkload = 'bulk'\ncongestion = '{control}'\n{protocol}");
            let PreparedRun { mut world, .. } = world(&text);
            assert_eq!(report(&mut world, 0).delivery_rate_bps.is_some(), measured, "{control} {protocol}");
        }
    }
}

#[test]
fn the_report_of_a_tcp_sender_has_the_values_of_its_connection() {
    // Delivery rates are measured because of the probe.
    let probed =
        "to = 'sink'\nworkload = 'bulk'\ncongestion = 'cubic'\n[[probe]]\nflow = 'f'\nmetrics = ['cwnd_bytes']";
    let PreparedRun { mut world, network, .. } = world(probed);
    let sent = report(&mut world, 0);
    let Some(ConnectionMut::Tcp(connection)) = world.connection_mut((0, 0)) else { panic!("it is TCP's") };
    let (seen, counts) = (connection.inspect(), connection.statistics());
    assert!(counts.retransmitted_segments > 0 && counts.recoveries > 0, "{counts:?}");
    let mut control_values = Vec::new();
    connection.controller().inspect(&mut control_values);
    let expected = EndpointReport {
        kind: EndpointKind::Tcp,
        cwnd_bytes: Some(seen.cwnd_bytes),
        ssthresh_bytes: Some(seen.ssthresh_bytes),
        in_flight_bytes: Some(seen.in_flight_bytes),
        smoothed_rtt: Some(seen.smoothed_rtt),
        min_rtt: Some(seen.min_rtt),
        latest_rtt: Some(seen.latest_rtt),
        mean_rtt: None,
        pacing_bps: Some(seen.pacing_bps).filter(|rate| *rate > 0),
        delivery_rate_bps: Some(seen.delivery_rate_bps),
        in_recovery: seen.in_recovery,
        pto_count: Some(seen.backoff),
        sent_packets: Some(counts.data_segments_sent),
        lost_packets: None,
        retransmitted_packets: Some(counts.retransmitted_segments),
        congestion_events: Some(counts.recoveries),
        spurious_congestion_events: Some(counts.undone_reductions),
        mtu_bytes: Some(seen.mss_bytes),
        control_values,
        tunnel: None,
    };
    assert_eq!(sent, expected);
    // At least 20 ms in each direction. The network counts two packets more: a SYN and an acknowledgment.
    assert!(sent.min_rtt >= Some(Duration::from_millis(40)), "{:?}", sent.min_rtt);
    let monitored = network.observer.monitor.flow(fullpipe_units::FlowId(0)).tx_packets;
    assert_eq!(sent.sent_packets, Some(monitored - 2));
    assert_eq!(world.last_report((0, 0)), Some(sent), "it is the same after the run");
    // The receiver sends nothing but acknowledgments.
    let received = report(&mut world, 1);
    assert_eq!((received.sent_packets, received.retransmitted_packets), (Some(0), Some(0)));
}

#[test]
fn the_report_of_a_quic_model_sender_has_the_values_of_its_connection() {
    // Delivery rates are measured because of the probe.
    let probed = "to = 'sink'\nworkload = 'bulk'\nprotocol = 'quic'\ncongestion = 'cubic'\nquic = { stack = 'model' }\n\
        [[probe]]\nflow = 'f'\nmetrics = ['cwnd_bytes']";
    let PreparedRun { mut world, .. } = world(probed);
    let sent = report(&mut world, 0);
    let Some(ConnectionMut::Model(connection)) = world.connection_mut((0, 0)) else { panic!("it is the model's") };
    let (seen, counts) = (connection.inspect(), connection.statistics());
    assert!(counts.lost_packets > 0 && counts.recoveries > 0, "{counts:?}");
    let mut control_values = Vec::new();
    connection.inspect_control(&mut control_values);
    let expected = EndpointReport {
        kind: EndpointKind::QuicModel,
        cwnd_bytes: Some(seen.cwnd_bytes),
        ssthresh_bytes: Some(seen.ssthresh_bytes),
        in_flight_bytes: Some(seen.in_flight_bytes),
        smoothed_rtt: Some(seen.smoothed_rtt),
        min_rtt: Some(seen.min_rtt),
        latest_rtt: Some(seen.latest_rtt),
        mean_rtt: Some(Duration::from_nanos(counts.rtt_sum.as_nanos() / counts.rtt_count)),
        pacing_bps: Some(seen.pacing_bps).filter(|rate| *rate > 0),
        delivery_rate_bps: Some(seen.delivery_rate_bps),
        in_recovery: seen.in_recovery,
        pto_count: Some(seen.pto_count),
        sent_packets: Some(counts.sent_packets),
        lost_packets: Some(counts.lost_packets),
        retransmitted_packets: None,
        congestion_events: Some(counts.recoveries),
        spurious_congestion_events: Some(counts.undone_recoveries),
        mtu_bytes: Some(counts.mtu_bytes),
        control_values,
        tunnel: None,
    };
    assert_eq!(sent, expected);
    assert_eq!(world.last_report((0, 0)), Some(sent), "it is the same after the run");
}

#[test]
fn the_report_of_a_quic_stack_sender_has_the_values_of_its_connection() {
    let PreparedRun { mut world, .. } =
        world("to = 'sink'\nworkload = 'bulk'\nprotocol = 'quic'\ncongestion = 'cubic'\nquic = { stack = 'noq' }");
    let sent = report(&mut world, 0);
    let Some(ConnectionMut::Stack(connection)) = world.connection_mut((0, 0)) else { panic!("it is the stack's") };
    let (seen, counts) = (connection.inspect().expect("it has a control"), connection.statistics());
    assert!(counts.lost_packets > 0 && counts.congestion_events > 0, "{counts:?}");
    let expected = EndpointReport {
        kind: EndpointKind::QuicStack,
        cwnd_bytes: Some(seen.cwnd_bytes),
        ssthresh_bytes: Some(seen.ssthresh_bytes),
        in_flight_bytes: Some(seen.in_flight_bytes),
        smoothed_rtt: connection.smoothed_rtt(),
        min_rtt: Some(seen.min_rtt),
        latest_rtt: Some(seen.latest_rtt),
        mean_rtt: counts.mean_rtt,
        pacing_bps: Some(seen.pacing_bps).filter(|rate| *rate > 0),
        delivery_rate_bps: Some(seen.delivery_rate_bps),
        in_recovery: seen.in_recovery,
        pto_count: None,
        sent_packets: Some(counts.sent_packets),
        lost_packets: Some(counts.lost_packets),
        retransmitted_packets: None,
        congestion_events: Some(counts.congestion_events),
        spurious_congestion_events: Some(counts.spurious_congestion_events),
        mtu_bytes: Some(u64::from(counts.mtu_bytes)),
        control_values: seen.named,
        tunnel: None,
    };
    assert_eq!(sent, expected);
    assert!(sent.mean_rtt >= Some(Duration::from_millis(40)), "{:?}", sent.mean_rtt);
    // The stack's counters need mutable access, so `finish` keeps them after the run.
    assert_eq!(world.last_report((0, 0)), None);
    world.finish();
    assert_eq!(world.last_report((0, 0)), Some(sent));
}

#[test]
fn the_reports_of_a_tunnel_have_the_values_of_its_programs() {
    let flow = "to = 'proxy'\nworkload = 'tunnel'\ncongestion = 'cubic'\n[[flow]]\nname = 'inside'\nfrom = 'source'\nto = 'sink'\n\
                workload = 'bulk'\nprotocol = 'quic'\nquic = { largest_mtu = '1200B' }\nvia = 'f'";
    let PreparedRun { mut world, .. } = world(flow);
    let [client, proxy] = [report(&mut world, 0), report(&mut world, 1)];
    assert_eq!((client.kind, proxy.kind), (EndpointKind::Tunnel, EndpointKind::Tunnel));
    let running = &world.core.endpoints.tunnels.as_ref().expect("there is one").running[&0];
    let program = running.client.as_ref().expect("its flow has started");
    let (seen, counts) = (program.inspect().expect("it has a control"), program.statistics());
    let counters = client.tunnel.expect("it is a tunnel's");
    assert!(counters.peak_queued_bytes > 0, "{counters:?}");
    assert_eq!(
        (client.cwnd_bytes, client.in_flight_bytes, client.lost_packets, client.smoothed_rtt, client.mean_rtt),
        (
            Some(seen.cwnd_bytes),
            Some(seen.in_flight_bytes),
            Some(program.lost_packets()),
            program.smoothed_rtt(),
            counts.mean_rtt
        )
    );
    assert_eq!(counters, counts.counters);
    // One request, for one connection. The proxy does not report its round-trip time.
    assert_eq!(proxy.tunnel.map(|counters| counters.requests_open), Some(1));
    assert_eq!((proxy.lost_packets, proxy.smoothed_rtt), (None, None));
    let inspected = running.proxy.inspect().expect("it has a control");
    assert_eq!(proxy.cwnd_bytes, Some(inspected.cwnd_bytes));
}
