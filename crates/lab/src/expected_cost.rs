//! A rough estimate of what a run takes, for the order in which a study makes its runs.

use fullpipe_scenario::Scenario;
use fullpipe_workload::SocketTraffic;

/// What a run of a scenario is expected to take: packets, estimated from rates and sizes. It orders the runs of a study, so it
/// needs to be right to a factor of a few. A flow with a size sends that; all others together fill the slowest link
/// (or send at their constant rate) for the whole duration. Access networks compute a millisecond at a time for each station.
pub fn expected_cost(scenario: &Scenario) -> u64 {
    let packet_bits = 1500.0 * 8.0;
    let seconds = scenario.duration.as_secs_f64();
    let rates = scenario.links.iter().map(|link| link.rate.bits_per_second() as f64);
    let link_packets = rates.fold(f64::INFINITY, f64::min) * seconds / packet_bits;
    let (mut limited, mut unlimited) = (0.0, 0.0);
    for flow in &scenario.flows {
        let time = scenario.duration.saturating_sub(flow.start);
        match flow.workload.socket_traffic() {
            Some(SocketTraffic::Bulk { size_bytes: Some(bytes), .. }) => limited += bytes as f64 * 8.0 / packet_bits,
            Some(SocketTraffic::Regular { interval, count, .. }) => {
                let sent = time.as_secs_f64() / interval.as_secs_f64().max(1e-9);
                limited += count.map_or(sent, |count| sent.min(count as f64));
            }
            _ => unlimited = link_packets,
        }
    }
    let stations: usize = scenario.access.iter().map(|access| access.stations().len()).sum();
    let access = 1000.0 * seconds * stations as f64;
    // Conversion saturates, also for the rate of no link.
    (limited + unlimited + access + scenario.flows.len() as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(flow: &str, duration: &str) -> u64 {
        let text = format!(
            r#"
            duration = "{duration}"
            [topology]
            kind = "chain"
            link = [{{ rate = "12Mbit/s", delay = "5ms" }}, {{ rate = "1.2Gbit/s", delay = "5ms" }}]
            [[flow]]
            from = "source"
            to = "sink"
            {flow}
            "#
        );
        let loaded = fullpipe_scenario::load(&text, "test.toml", &[]).expect("a good scenario");
        expected_cost(&loaded.scenario)
    }

    #[test]
    fn a_flow_costs_what_it_sends() {
        // 1000 packets of 1500 bytes, and the flow itself.
        assert_eq!(cost("size = \"1500kB\"", "100s"), 1001);
        // One second of the slowest link are 1000 packets.
        assert_eq!(cost("workload = \"bulk\"", "2s"), 2001);
        let datagrams = "workload = \"constant-rate\"\nprotocol = \"udp\"\npayload_bytes = 100\n";
        assert_eq!(cost(&format!("{datagrams}interval = \"10ms\""), "2s"), 201);
        assert_eq!(cost(&format!("{datagrams}interval = \"10ms\"\ncount = 5"), "2s"), 6);
    }
}
