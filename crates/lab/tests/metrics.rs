//! Tests every workload in a short run over every transport that it declares: the metric names in `figures.csv` are exactly the declared
//! ones.

use crate::least;

use crate::common::outcome;
use fullpipe_workload::{Protocol, WORKLOADS};
use std::collections::{BTreeMap, BTreeSet};

const NETWORK: &str = "
duration = '3s'
[topology]
kind = 'chain'
[[topology.link]]
rate = '10Mbit/s'
delay = '5ms'
[[flow]]
name = 'it'
from = 'source'
to = 'sink'
";

#[test]
fn metrics_of_runs_are_exactly_the_declared_ones() {
    let mut reported: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for component in WORKLOADS.iter() {
        let name = component.declaration.name;
        for protocol in component.protocols {
            let stacks = if *protocol == Protocol::Quic { &["quic.stack = 'model'\n", ""][..] } else { &[""] };
            let mut ran = 0;
            let mut texts = least::texts("workload", &component.declaration);
            if name == "web" {
                // Metrics of objects above the fold are reported only on request.
                texts.extend(texts.clone().iter().map(|text| format!("{text}above_fold = 0.5\n")));
            }
            for (text, stack) in texts.iter().flat_map(|text| stacks.iter().map(move |stack| (text, stack))) {
                let text = format!("{NETWORK}protocol = '{}'\n{stack}{text}", protocol.name());
                // Some values of a required choice may need another transport.
                if fullpipe_scenario::load(&text, "test.toml", &[]).is_err() {
                    continue;
                }
                ran += 1;
                let outcome = outcome(&text);
                assert_eq!(outcome.scenario().flows[0].workload.name(), name);
                for row in outcome.figure_rows() {
                    let metrics =
                        || fullpipe_lab::metrics().flat_map(|(of, list)| list.into_iter().map(move |m| (of, m)));
                    let (of, metric) = metrics().find(|(_, metric)| metric.name == row.name).unwrap_or_else(|| {
                        panic!("{name} over {} reports {}, which is not declared", protocol.name(), row.name)
                    });
                    assert!(
                        of == name || of == protocol.name(),
                        "{name} over {} reports {}",
                        protocol.name(),
                        row.name
                    );
                    reported.entry(of).or_default().insert(metric.name);
                }
            }
            assert!(ran > 0, "{name} over {}", protocol.name());
        }
    }
    for (of, metrics) in fullpipe_lab::metrics() {
        let declared: BTreeSet<&str> = metrics.iter().map(|metric| metric.name).collect();
        assert_eq!(reported.remove(of).unwrap_or_default(), declared, "{of}");
    }
}
