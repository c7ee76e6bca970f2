//! Tests that every congestion control runs under every TCP preset in the network of an experiment, and that every Tmix flow of the study
//! has the segment sizes of its trace, of which a tenth is 536-byte packets (draft section 2.3; crate `tmix` tests the share).

use crate::targets::folder;
use fullpipe::study::plan::make_plan;
use fullpipe::study::{UserSettings, VirtualTimeRunner, load_file};
use fullpipe::{Simulation, congestion};

#[test]
fn every_control_transfers_data_under_every_preset() {
    for control in congestion::catalogue::DECLARATIONS {
        for preset in ["linux", "ns3"] {
            let outcome = Simulation::open(folder().join("transients.toml"))
                .expect("the scenario file is readable")
                .set("duration", "3s")
                .set("measurement.from", "0s")
                .set("tcp.preset", preset)
                .set("tcp.congestion", control.name)
                .set("flow.udp.start", "2s")
                .run()
                .unwrap_or_else(|error| panic!("{} with {preset}: {error}", control.name));
            // The flow starts within the first second. A window of two segments in each of ten round-trip times is 29 kB.
            let bytes = outcome.flow("tcp").expect("the scenario has this flow").counters.rx_bytes;
            assert!(bytes > 29_000, "{} with {preset}: {bytes} bytes", control.name);
        }
    }
}

#[test]
fn tmix_flows_have_the_segment_sizes_of_their_traces_at_every_point() {
    let laboratory = VirtualTimeRunner::new("test");
    let mut study = load_file(&folder().join("study.toml")).unwrap_or_else(|errors| panic!("{errors}"));
    study
        .apply(&UserSettings { runs: Some(1), ..UserSettings::default() }, &laboratory)
        .expect("the settings are valid");
    let plan = make_plan(&study, &laboratory).expect("the study can be planned");
    let (mut flows, mut scenarios) = (0, 0);
    for run in &plan.runs {
        let tmix = run.scenario.text.matches("workload = \"tmix\"").count();
        assert_eq!(
            run.scenario.text.matches("segments = \"trace\"").count(),
            tmix,
            "{}",
            plan.points[run.points[0]].label
        );
        flows += tmix;
        scenarios += usize::from(tmix > 0);
    }
    // Nine sources in most experiments; all presets of Table 2 are among them.
    assert!(scenarios > 100 && flows > 9 * 100, "{flows} flows in {scenarios} scenarios");
}
