//! Calls each function of the radio many times, over fading that is generated in advance, to measure its cost. Run it under a
//! profiler or with `time`:
//!
//! ```text
//! cargo build --release -p fullpipe-lte --example radio
//! time target/release/examples/radio subbands 12 1000000
//! ```
//!
//! The arguments are the function (`row`, `subbands`, `wideband`, `information`, `block`, `control`, `generate`, `sequence`), the
//! mean SINR in dB, and the number of calls. Without arguments, each function is called a few times.

use fullpipe_lte::radio::ROW_LANES;
use fullpipe_lte::radio::amc::{Amc, CqiTables, MAX_GROUPS};
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::radio::errors::{ErrorModel, HarqSoftBuffer, InformationGrid};
use fullpipe_lte::radio::fading::{DelayProfile, Fading, FadingParameters, Generator, TraceSampling};
use fullpipe_lte::radio::power::db_to_ratio;
use fullpipe_lte::radio::tables::{Modulation, downlink_bytes};
use std::hint::black_box;
use std::sync::Arc;

const ALL: [&str; 8] = ["row", "subbands", "wideband", "information", "block", "control", "generate", "sequence"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |i: usize| arguments.get(i).map(String::as_str);
    let sinr_db = word(1).and_then(|word| word.parse().ok()).unwrap_or(12.0);
    let count = word(2).and_then(|word| word.parse().ok()).unwrap_or(10);
    let band = Bandwidth::new(100).expect("20 MHz");
    let model = ErrorModel::new(InformationGrid::Reference);
    let cqi = CqiTables::new(Amc::ErrorModel, band, &model);
    let recipe = FadingParameters::ns3_traces(DelayProfile::ExtendedPedestrianA, 3.0);
    let trace = Arc::new(Generator::new(recipe, 1, 100).expect("a generator").to_trace(10));
    let fading = Fading::trace(trace, TraceSampling::default(), 1, band).expect("a trace");
    let mut generator = Fading::generator(recipe, 1, band).expect("a generator");
    for pair in 0..50 {
        generator.prepare(pair);
    }
    for what in word(0).map_or(ALL.to_vec(), |what| vec![what]) {
        println!("{what}: {}", ask(what, count, db_to_ratio(sinr_db) as f32, &model, &cqi, &fading, &generator));
    }
}

/// Calls a function for 50 pairs in turn. The result depends on all return values.
#[allow(clippy::too_many_arguments, reason = "an example")]
fn ask(
    what: &str,
    count: u64,
    sinr: f32,
    model: &ErrorModel,
    tables: &CqiTables,
    fading: &Fading,
    generator: &Fading,
) -> f64 {
    let mut row = [0.0; ROW_LANES];
    let mut cqi = [0; MAX_GROUPS];
    let mut sum = 0.0;
    let bytes = downlink_bytes(20, 100);
    for i in 0..count {
        let (pair, subframe) = (i % 50, i / 50);
        if what != "generate" {
            fading.scaled_gains(pair, subframe, sinr, &mut row);
        }
        sum += match what {
            "row" => f64::from(black_box(&row)[50]),
            "subbands" => {
                tables.fill_subband_cqis(&row, &mut cqi);
                f64::from(black_box(&cqi)[7])
            }
            "wideband" => f64::from(tables.wideband_cqi(&row)),
            "information" => f64::from(model.mean_mutual_information(Modulation::Qam64, &row[..100])),
            "block" => model.block_error_rate(20, bytes, 0.55 + row[3] * 1e-3),
            "control" => model.control_error_rate(&row[..100]),
            "generate" => {
                generator.scaled_gains(pair, subframe, sinr, &mut row);
                f64::from(black_box(&row)[50])
            }
            _ => {
                let mut combining = HarqSoftBuffer::default();
                combining.add_failed_attempt(20, bytes, row[3] * 1e-3);
                combining.error_rate(model, 20, bytes, row[4] * 1e-3)
            }
        };
    }
    sum
}
