//! Compares the network with vectors of ns-3's LTE model (`data/README.md`): one function and one line of output per group.

use crate::traces;

use fullpipe_lte::bearer::{Classifier, buffer_status_bytes, buffer_status_index};
use fullpipe_lte::connection::{AttachProcedure, SignalingMode, compute_setup_times};
use fullpipe_lte::radio::amc::{Amc, BIT_ERROR_RATE, cqi_of_efficiency, reference_cqi, spectral_efficiency};
use fullpipe_lte::radio::antenna::Antenna;
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::radio::errors::{ErrorModel, HarqSoftBuffer, InformationGrid, segment_code_blocks};
use fullpipe_lte::radio::fading::{DelayProfile, FadingParameters, Generator, Trace};
use fullpipe_lte::radio::frequency::{Bands, find_carrier, resource_block_center_hz};
use fullpipe_lte::radio::interference::{Signal, average_sinr};
use fullpipe_lte::radio::path_loss::{CitySize, Environment, Geometry, PathLoss, Street};
use fullpipe_lte::radio::power::{
    PowerControlConfig, PowerControlLoop, UplinkPowerControl, db_to_ratio, noise_density, power_density, ratio_to_db,
    resource_block_dbm, rsrp_dbm, rsrq_db,
};
use fullpipe_lte::radio::tables::{
    Direction, Modulation, downlink_bytes, i_tbs, mcs_of_cqi, modulation, transport_block_bits, uplink_bytes,
};
use fullpipe_lte::rlc::{Bearer, LinkDirection, RlcConfig, RlcMode, Sdu};
use fullpipe_network::MediumDirection;
use fullpipe_network::filter::{AddressMask, PacketFilter, PacketHeaders, PortRange};
use fullpipe_units::{Instant, math};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Groups that other tests check, and the name of the test.
const ELSEWHERE: &[(&str, &str)] = &[
    ("cqi_generation", "machine.rs"),
    ("harq_throughput", "machine.rs"),
    ("latency_oneway", "machine.rs"),
    ("latency_ping", "machine.rs"),
    ("mimo", "machine.rs"),
    ("scheduler", "machine.rs"),
    ("scheduler_mixed", "machine.rs"),
    ("shares", "machine.rs"),
    ("throughput", "machine.rs"),
    ("throughput_fading", "machine.rs"),
    ("throughput_mimo", "machine.rs"),
    ("throughput_ul", "machine.rs"),
];

/// Rows that do not match, and the reasons.
const NOT_MET: &[(&str, &str)] = &[(
    "antenna_cosine-005",
    "exactly opposite to the axis the cosine is 0 and the gain minus infinity; what is left is the rounding of pi, here \
     -1414.557 dB, and the vector has one decimal of it",
)];

/// The result of a row: nothing, or the difference.
type Outcome = Result<(), String>;

/// Checks the rows of a group, in order.
type Check = fn(&[Row]) -> Vec<Outcome>;

fn check_of(group: &str) -> Option<Check> {
    Some(match group {
        "amc_piro" => amc_piro,
        "antenna_cosine" => antenna_cosine,
        "bsr" => bsr,
        "cb_segmentation" => cb_segmentation,
        "connection_setup" => connection_setup,
        "cqi_mi_thresholds" => cqi_mi_thresholds,
        "earfcn" => earfcn,
        "fading_stats" => fading_stats,
        "harq_ir" => harq_ir,
        "interference" => interference,
        "mcs_tbs" => mcs_tbs,
        "mi" => mi,
        "noise_psd" => noise_psd,
        "pathloss" => pathloss,
        "pdcch" => pdcch,
        "pdcch_ns3" => pdcch_ns3,
        "rb_centre" => rb_centre,
        "rlc_segmentation" => rlc_segmentation,
        "rsrp_rsrq" => rsrp_rsrq,
        "sinr_chunks" => sinr_chunks,
        "tbler" => tbler,
        "tbler_ns3" => tbler_ns3,
        "tbler_selective" => tbler_selective,
        "tbs" => tbs,
        "tft" => tft,
        "tx_psd" => tx_psd,
        "ul_power_control" => ul_power_control,
        _ => return None,
    })
}

#[test]
fn vectors_match() {
    let rows = read();
    let mut groups: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for row in &rows {
        groups.entry(&row.group).or_default().push(row.clone());
    }
    let mut wrong = Vec::new();
    for (group, rows) in groups {
        let Some(check) = check_of(group) else {
            let elsewhere = ELSEWHERE.iter().find(|(name, _)| *name == group);
            let (_, place) = elsewhere.unwrap_or_else(|| panic!("no test checks the group {group}"));
            println!("{group}: {} rows, in {place}", rows.len());
            continue;
        };
        assert!(ELSEWHERE.iter().all(|(name, _)| *name != group), "{group} is checked here");
        let outcomes = check(&rows);
        assert_eq!(outcomes.len(), rows.len(), "{group}");
        let passed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        println!("{group}: {passed}/{}", rows.len());
        for (row, outcome) in rows.iter().zip(outcomes) {
            let known = NOT_MET.iter().find(|&&(id, _)| id == row.id);
            match (outcome, known) {
                (Err(what), Some((_, why))) => println!("  {}: {what}; {why}", row.id),
                (Err(what), None) => wrong.push(format!("{}: {what}", row.id)),
                (Ok(()), Some(_)) => wrong.push(format!("{} matches but is listed as not matching", row.id)),
                (Ok(()), None) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A row of the files.
#[derive(Clone, Debug)]
struct Row {
    id: String,
    group: String,
    inputs: BTreeMap<String, String>,
    expected: BTreeMap<String, String>,
    tolerance: String,
}

fn read() -> Vec<Row> {
    let pairs = |text: &str| -> BTreeMap<String, String> {
        let pairs = text.split("; ").filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
    };
    let files = [include_str!("data/vectors.csv"), include_str!("data/further.csv"), include_str!("data/measured.csv")];
    let lines = files.into_iter().flat_map(|file| file.lines().skip(1));
    let row = |line: &str| {
        let [id, group, inputs, expected, tolerance, _source] = fields(line).try_into().expect("six columns");
        Row { id, group, inputs: pairs(&inputs), expected: pairs(&expected), tolerance }
    };
    lines.map(row).collect()
}

/// Columns of a line, some of which are in quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("a field").push(letter),
        }
    }
    fields
}

impl Row {
    fn word(&self, key: &str) -> &str {
        self.inputs.get(key).unwrap_or_else(|| panic!("{} has no {key}", self.id))
    }

    fn number(&self, key: &str) -> f64 {
        number(self.word(key))
    }

    fn integer(&self, key: &str) -> u32 {
        self.word(key).parse().unwrap_or_else(|_| panic!("{}: {key}", self.id))
    }

    fn expected(&self, key: &str) -> f64 {
        number(&self.expected[key])
    }

    /// The first number of the tolerance; 0 for `exact`.
    fn tolerance(&self) -> f64 {
        self.tolerance.split([' ', ';']).find_map(|word| word.parse().ok()).unwrap_or(0.0)
    }

    fn near(&self, key: &str, found: f64) -> Outcome {
        near(key, found, self.expected(key), self.tolerance())
    }
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is not a number"))
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_ascii_whitespace().map(number).collect()
}

fn near(what: &str, found: f64, expected: f64, tolerance: f64) -> Outcome {
    // A few bits more, as both numbers are rounded.
    let close = (found - expected).abs() <= tolerance * (1.0 + 1e-9);
    if close || found == expected {
        Ok(())
    } else {
        Err(format!("{what} is {found}, expected {expected} +- {tolerance}"))
    }
}

/// Checks that a value is within a fraction of the expected one.
fn relative(what: &str, found: f64, expected: f64, tolerance: f64) -> Outcome {
    near(what, found, expected, tolerance * expected.abs())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}, expected {expected:?}")) }
}

/// Checks rows independently of each other.
fn each(rows: &[Row], check: impl Fn(&Row) -> Outcome) -> Vec<Outcome> {
    rows.iter().map(check).collect()
}

fn linear(db: f64) -> f32 {
    db_to_ratio(db) as f32
}

fn bandwidth(row: &Row) -> Bandwidth {
    Bandwidth::new(row.integer("n_rb")).expect("a bandwidth of LTE")
}

fn direction(row: &Row) -> Direction {
    if row.word("direction") == "dl" { Direction::Downlink } else { Direction::Uplink }
}

fn earfcn(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let bands = if row.word("table") == "ns3" { Bands::Ns3 } else { Bands::Standard };
        // The vectors have 0 if the number is unknown.
        let hz = find_carrier(direction(row), row.integer("earfcn"), bands).map_or(0.0, |carrier| carrier.hz);
        let expected = row.expected("hz");
        if row.tolerance.ends_with("rel") { relative("hz", hz, expected, row.tolerance()) } else { row.near("hz", hz) }
    })
}

fn rb_centre(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let number = row.integer("earfcn");
        let direction = if number < 18_000 { Direction::Downlink } else { Direction::Uplink };
        let hz = find_carrier(direction, number, Bands::Ns3).map_err(|error| error.to_string())?.hz;
        let bandwidth = bandwidth(row);
        row.near("first_hz", resource_block_center_hz(hz, bandwidth, 0))?;
        row.near("last_hz", resource_block_center_hz(hz, bandwidth, bandwidth.resource_blocks() - 1))
    })
}

fn tx_psd(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let blocks = if row.word("direction") == "dl" { "n_rb" } else { "active_rb" };
        let density = power_density(row.number("power_dbm"), row.integer(blocks) as usize);
        density_matches(row, density)
    })
}

fn noise_psd(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| density_matches(row, noise_density(row.number("noise_figure_db"))))
}

fn density_matches(row: &Row, density: f64) -> Outcome {
    relative("w_per_hz", density, row.expected("w_per_hz"), row.tolerance())?;
    // Four decimals.
    near("dbm_per_rb", resource_block_dbm(density), row.expected("dbm_per_rb"), 5e-5)
}

fn tbs(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let bits = transport_block_bits(row.integer("itbs") as u8, row.integer("n_prb") as usize);
        row.near("bits", f64::from(bits))?;
        row.near("bytes", f64::from(bits / 8))
    })
}

fn mcs_tbs(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let (mcs, blocks) = (row.integer("mcs") as u8, row.integer("n_prb") as usize);
        row.near("itbs", f64::from(i_tbs(direction(row), mcs)))?;
        let bytes = if row.word("direction") == "dl" { downlink_bytes } else { uplink_bytes };
        row.near("bytes", f64::from(bytes(mcs, blocks)))
    })
}

fn amc_piro(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let bit_error_rate = row.number("ber");
        let efficiency = spectral_efficiency(bit_error_rate, db_to_ratio(row.number("snr_db")));
        row.near("spectral_efficiency", efficiency)?;
        let cqi = cqi_of_efficiency(efficiency);
        let model = ErrorModel::new(InformationGrid::Reference);
        same("cqi", cqi, reference_cqi(Amc::Piro { bit_error_rate }, &model, &[linear(row.number("snr_db"))]))?;
        same("cqi", cqi.to_string(), row.expected["cqi"].clone())?;
        let mcs = if cqi == 0 { "none".to_owned() } else { mcs_of_cqi(cqi).to_string() };
        same("mcs", mcs, row.expected["mcs"].clone())
    })
}

fn cqi_mi_thresholds(rows: &[Row]) -> Vec<Outcome> {
    let model = ErrorModel::new(InformationGrid::Reference);
    each(rows, |row| {
        let blocks = row.integer("ref_block_rb") as usize;
        let mut first = [f64::NAN; 16];
        for hundredth in (-1500..3000).rev() {
            let db = f64::from(hundredth) / 100.0;
            let cqi = reference_cqi(Amc::ErrorModel, &model, &vec![linear(db); blocks]);
            first[usize::from(cqi)] = db;
        }
        for entry in row.expected["first_sinr_db_of_cqi"].split(' ') {
            let (cqi, db) = entry.split_once(':').expect("CQI and SINR");
            near(cqi, first[cqi.parse::<usize>().expect("a CQI")], number(db), row.tolerance())?;
        }
        Ok(())
    })
}

fn mi(rows: &[Row]) -> Vec<Outcome> {
    let model = ErrorModel::new(InformationGrid::Reference);
    each(rows, |row| {
        let modulation = match row.word("modulation") {
            "QPSK" => Modulation::Qpsk,
            "16QAM" => Modulation::Qam16,
            _ => Modulation::Qam64,
        };
        row.near("mi", f64::from(model.mutual_information(modulation, linear(row.number("sinr_db")))))
    })
}

/// Checks the mean mutual information and the loss of a first transmission.
fn first_transmission(row: &Row, sinr: &[f32]) -> Outcome {
    let model = ErrorModel::new(InformationGrid::Reference);
    let (mcs, bytes) = (row.integer("mcs") as u8, row.integer("tb_bytes"));
    same("tb_bytes", downlink_bytes(mcs, row.integer("n_prb") as usize), bytes)?;
    let mean = model.mean_mutual_information(modulation(mcs), sinr);
    near("mi", f64::from(mean), row.expected("mi"), 1e-6)?;
    row.near("tbler", model.block_error_rate(mcs, bytes, mean))
}

fn tbler(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let blocks = segment_code_blocks(8 * row.integer("tb_bytes"));
        let text = format!(
            "{}x{}+{}x{}",
            blocks.larger_blocks, blocks.larger_bits, blocks.smaller_blocks, blocks.smaller_bits
        );
        // If there are no smaller blocks, some rows state their size and some do not.
        let plus = |text: &str| text.split_once("+0x").map_or(text.to_owned(), |(larger, _)| larger.to_owned());
        same("cbs", plus(&text), plus(&row.expected["cbs"]))?;
        first_transmission(row, &vec![linear(row.number("flat_sinr_db")); row.integer("n_prb") as usize])
    })
}

fn tbler_selective(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let sinr: Vec<f32> = numbers(row.word("sinr_db_per_rb")).into_iter().map(linear).collect();
        first_transmission(row, &sinr)
    })
}

/// Ratio to noise in dB of a base station with 43 dBm on 25 resource blocks at 2120 MHz, 30 m high, at a UE with a noise figure
/// of 9 dB, 1 m high, at a horizontal distance, with the path loss of buildings.
fn macro_cell_snr_db(horizontal_m: f64) -> f64 {
    let geometry = Geometry { horizontal_m, height_m: 30.0, other_height_m: 1.0 };
    let loss = PathLoss::buildings().loss_db(&geometry, 2.12e9);
    ratio_to_db(power_density(43.0, 25) / noise_density(9.0)) - loss
}

fn tbler_ns3(rows: &[Row]) -> Vec<Outcome> {
    let model = ErrorModel::new(InformationGrid::Reference);
    each(rows, |row| {
        let sinr_db = row.number("sinr_db");
        near("sinr_db", macro_cell_snr_db(row.number("distance_m")), sinr_db, 1e-3)?;
        let mcs = row.integer("mcs") as u8;
        let mean = model.mean_mutual_information(modulation(mcs), &[linear(sinr_db)]);
        let error = model.block_error_rate(mcs, row.integer("tb_bits") / 8, mean);
        // Four decimals.
        if row.expected.contains_key("computed_bler") {
            near("computed_bler", error, row.expected("computed_bler"), 5e-5)?;
        }
        near("bler", error, row.expected("bler"), row.tolerance() / row.number("packets"))
    })
}

fn pdcch(rows: &[Row]) -> Vec<Outcome> {
    let model = ErrorModel::new(InformationGrid::Reference);
    each(rows, |row| {
        let sinr = [linear(row.number("flat_sinr_db")); 25];
        near("esinr_db", model.effective_control_sinr_db(&sinr), row.expected("esinr_db"), 5e-5)?;
        row.near("error", model.control_error_rate(&sinr))
    })
}

fn pdcch_ns3(rows: &[Row]) -> Vec<Outcome> {
    let model = ErrorModel::new(InformationGrid::Reference);
    each(rows, |row| {
        let sinr_db = row.number("sinr_db");
        // All base stations are at one position and interfere with each other's control regions.
        let snr = db_to_ratio(macro_cell_snr_db(row.number("distance_m")));
        let found = ratio_to_db(snr / (1.0 + (row.number("n_enb") - 1.0) * snr));
        near("sinr_db", found, sinr_db, 0.05)?;
        let error = model.control_error_rate(&[linear(sinr_db); 25]);
        near("bler", error, row.expected("bler"), row.tolerance() / row.number("packets"))
    })
}

fn cb_segmentation(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let found = segment_code_blocks(8 * row.integer("tb_bytes"));
        row.near("c", f64::from(found.larger_blocks + found.smaller_blocks))?;
        row.near("c_plus", f64::from(found.larger_blocks))?;
        row.near("k_plus", f64::from(found.larger_bits))?;
        row.near("c_minus", f64::from(found.smaller_blocks))?;
        row.near("k_minus", f64::from(found.smaller_bits))
    })
}

fn harq_ir(rows: &[Row]) -> Vec<Outcome> {
    let model = ErrorModel::new(InformationGrid::Reference);
    each(rows, |row| {
        let (mcs, bytes) = (row.integer("mcs") as u8, row.integer("tb_bytes"));
        let mean = model.mean_mutual_information(modulation(mcs), &[linear(row.number("flat_sinr_db"))]);
        let mut attempts = HarqSoftBuffer::default();
        for (attempt, expected) in numbers(&row.expected["tbler_tx1_to_tx4"]).into_iter().enumerate() {
            let what = format!("attempt {}", attempt + 1);
            near(&what, attempts.error_rate(&model, mcs, bytes, mean), expected, row.tolerance())?;
            attempts.add_failed_attempt(mcs, bytes, mean);
        }
        Ok(())
    })
}

fn pathloss(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let name = row.word("model");
        let optional = |key: &str| row.inputs.get(key).map(|value| number(value));
        let hz = optional("freq_hz").or(optional("lambda_m").map(|wavelength| 299_792_458.0 / wavelength));
        let heights = [("hb_m", "hm_m"), ("h1_m", "h2_m"), ("enb_z", "ue_z")];
        let heights = heights.iter().find_map(|&(a, b)| Some((optional(a)?, optional(b)?))).unwrap_or((0.0, 0.0));
        let geometry = Geometry {
            horizontal_m: optional("horizontal_m").or(optional("distance_m")).expect("a distance"),
            height_m: heights.0,
            other_height_m: heights.1,
        };
        let city = match row.inputs.get("city").map(String::as_str) {
            Some("small" | "medium") => CitySize::Small,
            _ => CitySize::Large,
        };
        let environment = match row.inputs.get("env").map(String::as_str) {
            Some("suburban") => Environment::Suburban,
            Some("open") => Environment::Open,
            _ => Environment::Urban,
        };
        let model = match name {
            "friis" => PathLoss::default(),
            "log-distance" => PathLoss::LogDistance {
                exponent: row.number("exponent"),
                reference_m: 1.0,
                reference_db: row.number("reference_loss_db"),
            },
            "itu-r-1411-los" => PathLoss::P1411LineOfSight,
            "itu-r-1411-nlos" => PathLoss::P1411OverRooftops(Street {
                rooftop_m: row.number("rooftop_m"),
                orientation_degrees: row.number("street_orientation_deg"),
                ..Street::default()
            }),
            "hybrid-buildings outdoor" => PathLoss::buildings(),
            name if name.starts_with("okumura-hata") => PathLoss::OkumuraHata { environment, city },
            _ => return Err(format!("no model `{name}`")),
        };
        let loss = model.loss_db(&geometry, hz.unwrap_or(f64::NAN));
        if let Some(expected) = row.expected.get("snr_db_25rb_30dbm_nf9") {
            let snr = ratio_to_db(power_density(30.0, 25) / noise_density(9.0)) - loss;
            near("snr_db", snr, number(expected), row.tolerance())?;
        }
        row.near("loss_db", loss)
    })
}

/// Density of a signal after free space, at the center of each of 25 resource blocks.
fn received(power_dbm: f64, distance_m: f64, carrier_hz: f64) -> Vec<f64> {
    let bandwidth = Bandwidth::new(25).expect("5 MHz");
    let loss = |block| {
        let hz = resource_block_center_hz(carrier_hz, bandwidth, block);
        PathLoss::FriisPerBlock.loss_db(&Geometry::flat(distance_m), hz)
    };
    (0..25).map(|block| power_density(power_dbm, 25) * db_to_ratio(-loss(block))).collect()
}

fn whole(density: Vec<f64>) -> Signal {
    Signal { from: 0.0, until: 1.0, density }
}

fn interference(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        // Each UE is at d1 from its own base station and at d2 from the other.
        let (d1, d2) = (row.number("d1_m"), row.number("d2_m"));
        for (name, power_dbm, noise_figure_db, frequency) in
            [("dl", 30.0, 9.0, "f_dl_hz"), ("ul", 10.0, 5.0, "f_ul_hz")]
        {
            let hz = row.number(frequency);
            let signal = whole(received(power_dbm, d1, hz));
            let other = whole(received(power_dbm, d2, hz));
            let sinr = average_sinr(&signal, &[other], &[noise_density(noise_figure_db); 25]);
            let mean = sinr.iter().sum::<f64>() / 25.0;
            near(name, ratio_to_db(mean), ratio_to_db(row.expected(&format!("{name}_sinr"))), row.tolerance())?;
            let efficiency = spectral_efficiency(BIT_ERROR_RATE, mean);
            // A hundredth of a decibel is a factor of 1.0023 and at most 0.0034 bits per symbol.
            near(name, efficiency, row.expected(&format!("{name}_se")), 0.0034)?;
            let mcs = mcs_of_cqi(cqi_of_efficiency(efficiency));
            near(name, f64::from(mcs), row.expected(&format!("{name}_mcs")), 0.0)?;
        }
        Ok(())
    })
}

fn rsrp_rsrq(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let cell = |distance: &str| received(row.number("tx_dbm"), row.number(distance), 2.12e9);
        let (serving, neighbour) = (cell("d1_m"), cell("d2_m"));
        let noise = noise_density(9.0);
        let all: Vec<f64> = serving.iter().zip(&neighbour).map(|(a, b)| a + b + noise).collect();
        row.near("rsrp_serving_dbm", rsrp_dbm(&serving))?;
        row.near("rsrp_neighbour_dbm", rsrp_dbm(&neighbour))?;
        row.near("rsrq_serving_db", rsrq_db(&serving, &all))?;
        row.near("rsrq_neighbour_db", rsrq_db(&neighbour, &all))
    })
}

fn sinr_chunks(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let signal = |from, until, a, b| Signal { from, until, density: vec![a, b] };
        let others = [
            signal(0.0, 3.0, 5.0e-18, 1.437398936440e-18),
            signal(0.7, 1.7, 5.0e-16, 5.722388235428e-16),
            signal(1.2, 2.2, 1.581138830084e-16, 7.204059965732e-17),
            signal(1.5, 1.6, 7.924465962306e-17, 5.722388235428e-17),
        ];
        let density = numbers(row.word("rx_psd"));
        let found = average_sinr(&signal(1.0, 2.0, density[0], density[1]), &others, &[5.0e-19, 4.545454545455e-19]);
        for (band, expected) in numbers(&row.expected["sinr"]).into_iter().enumerate() {
            near(&format!("band {band}"), found[band], expected, row.tolerance())?;
        }
        Ok(())
    })
}

fn antenna_cosine(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let antenna = Antenna::Cosine {
            orientation_degrees: row.number("orientation_deg"),
            beam_width_degrees: row.number("beamwidth_deg"),
            largest_gain_db: 0.0,
        };
        row.near("gain_db", antenna.gain_db(row.number("x"), row.number("y")))
    })
}

fn ul_power_control(rows: &[Row]) -> Vec<Outcome> {
    let at = |distance_m: f64, target_dbm: f64, commands: PowerControlLoop| {
        // The received power gives the loss of free space at 2120 MHz. The offset of 9 is 3 dB.
        let settings = PowerControlConfig { target_dbm, sounding_offset: 9, commands, ..PowerControlConfig::default() };
        let mut control = UplinkPowerControl::new(settings);
        let loss = PathLoss::default().loss_db(&Geometry::flat(distance_m), 2.12e9);
        control.on_measurement(settings.reference_dbm - loss);
        control
    };
    let check = |row: &Row, control: &UplinkPowerControl| {
        row.near("pusch_dbm", control.data_dbm(25))?;
        row.near("srs_dbm", control.sounding_dbm(25))
    };
    // The accumulated rows are one sequence at 100 m. They do not state the target. Without any command the first has -17.0461
    // dBm = 10 log10(25) + P0 + 78.9745, so P0 is -110.
    let mut sequence = at(100.0, -110.0, PowerControlLoop::Accumulated);
    rows.iter()
        .map(|row| {
            let tpc = || row.integer("tpc") as u8;
            match row.word("mode") {
                "open loop" => {
                    check(row, &at(row.number("distance_m"), row.number("po_nominal_pusch"), PowerControlLoop::Open))
                }
                "closed loop absolute" => {
                    let mut control =
                        at(row.number("distance_m"), row.number("po_nominal_pusch"), PowerControlLoop::Absolute);
                    control.apply_command(tpc(), 25);
                    check(row, &control)
                }
                "closed loop accumulated" => {
                    for _ in 0..row.integer("tpc_count") {
                        sequence.apply_command(tpc(), 25);
                    }
                    check(row, &sequence)
                }
                mode => Err(format!("no mode `{mode}`")),
            }
        })
        .collect()
}

/// Statistics of gains of several realizations, each with 100 resource blocks.
struct Statistics<'a> {
    traces: &'a [Trace],
    sorted_db: Vec<f64>,
}

impl<'a> Statistics<'a> {
    /// Creates statistics with percentiles of every `every`-th millisecond.
    fn new(traces: &'a [Trace], every: usize) -> Self {
        let milliseconds = |trace: &Trace| (0..trace.duration_ms()).step_by(every);
        let gains = traces.iter().flat_map(|trace| milliseconds(trace).flat_map(|ms| &trace.row(ms)[..100]));
        let mut sorted_db: Vec<f64> = gains.map(|&gain| ratio_to_db(f64::from(gain))).collect();
        sorted_db.sort_by(f64::total_cmp);
        Statistics { traces, sorted_db }
    }

    fn mean_db(&self) -> f64 {
        self.sorted_db.iter().sum::<f64>() / self.sorted_db.len() as f64
    }

    fn deviation_db(&self) -> f64 {
        let mean = self.mean_db();
        (self.sorted_db.iter().map(|db| (db - mean) * (db - mean)).sum::<f64>() / self.sorted_db.len() as f64).sqrt()
    }

    fn mean_power_db(&self) -> f64 {
        ratio_to_db(self.sorted_db.iter().map(|&db| db_to_ratio(db)).sum::<f64>() / self.sorted_db.len() as f64)
    }

    fn percentile_db(&self, percent: usize) -> f64 {
        self.sorted_db[self.sorted_db.len() * percent / 100]
    }

    /// Autocorrelation of power at a distance in milliseconds: for each line with its own mean and variance, then the average of
    /// the lines.
    fn in_time(&self, milliseconds: usize) -> f64 {
        let mut sum = 0.0;
        for trace in self.traces {
            let length = trace.duration_ms();
            for block in 0..100 {
                let line: Vec<f64> = (0..length).map(|ms| f64::from(trace.row(ms)[block])).collect();
                let mean = line.iter().sum::<f64>() / length as f64;
                let variance = line.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / length as f64;
                let pairs = line.iter().zip(&line[milliseconds..]);
                let covariance =
                    pairs.map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>() / (length - milliseconds) as f64;
                sum += covariance / variance;
            }
        }
        sum / (100 * self.traces.len()) as f64
    }

    /// Correlation of power at a distance in resource blocks, over all data.
    fn in_frequency(&self, blocks: usize) -> f64 {
        let mut sums = [0.0f64; 5];
        let mut count = 0.0;
        for trace in self.traces {
            for ms in 0..trace.duration_ms() {
                let row = trace.row(ms);
                for (x, y) in row[..100 - blocks].iter().zip(&row[blocks..100]) {
                    let (x, y) = (f64::from(*x), f64::from(*y));
                    for (sum, term) in sums.iter_mut().zip([x, y, x * x, y * y, x * y]) {
                        *sum += term;
                    }
                }
                count += (100 - blocks) as f64;
            }
        }
        let [x, y, xx, yy, xy] = sums.map(|sum| sum / count);
        (xy - x * y) / ((xx - x * x) * (yy - y * y)).sqrt()
    }

    /// Returns the statistic with this key of the vectors.
    fn named(&self, key: &str) -> f64 {
        let inside = |prefix: &str, suffix: &str| {
            key.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix)).and_then(|digits| digits.parse().ok())
        };
        match key {
            "mean_db" => self.mean_db(),
            "std_db" => self.deviation_db(),
            "mean_power_db" => self.mean_power_db(),
            _ => {
                if let Some(ms) = inside("time_acf_", "ms") {
                    self.in_time(ms)
                } else if let Some(blocks) = inside("freq_corr_", "rb") {
                    self.in_frequency(blocks)
                } else {
                    self.percentile_db(inside("p", "_db").unwrap_or_else(|| panic!("no statistic `{key}`")))
                }
            }
        }
    }
}

/// Compares the reader with statistics of the shipped traces, if they are available, and the generator with the same statistics.
/// The generator's tolerance is 0.3 dB on the mean, the deviation and percentiles from 10 on, and 0.1 on correlations: the
/// shipped trace is one realization of 10 s.
fn fading_stats(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let name = row.word("trace");
        match traces::shipped_trace(name) {
            None => println!("  {name}: the shipped trace is not available; only the generator is checked"),
            Some(trace) => {
                let traces = [trace];
                let statistics = Statistics::new(&traces, 1);
                for (key, expected) in &row.expected {
                    // The vectors do not state how correlations in time were estimated. The method here matches them within
                    // 0.0013; with all lines as one sample of pairs the difference is 0.011 at 40 ms.
                    let close = match key.as_str() {
                        key if key.ends_with("_db") => 0.0101,
                        key if key.starts_with("time") => 0.002,
                        _ => 0.00101,
                    };
                    near(&format!("{key} of the shipped trace"), statistics.named(key), number(expected), close)?;
                }
            }
        }
        let (profile, speed_kmh) = match name {
            "EPA_3kmph" => (DelayProfile::ExtendedPedestrianA, 3.0),
            "EVA_60kmph" => (DelayProfile::ExtendedVehicularA, 60.0),
            "ETU_3kmph" => (DelayProfile::ExtendedTypicalUrban, 3.0),
            _ => return Err(format!("no profile for `{name}`")),
        };
        let recipe = FadingParameters::ns3_traces(profile, speed_kmh);
        let traces: Vec<Trace> =
            (0..20).map(|seed| Generator::new(recipe, seed, 100).expect("a generator").to_trace(10)).collect();
        let statistics = Statistics::new(&traces, 8);
        for (key, expected) in &row.expected {
            let close = match key.as_str() {
                "p01_db" => continue,
                key if key.ends_with("_db") => 0.3,
                _ => 0.1,
            };
            near(&format!("{key} of the generator"), statistics.named(key), number(expected), close)?;
        }
        Ok(())
    })
}

fn bsr(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let index = buffer_status_index(row.integer("bytes"));
        same("step", f64::from(index), row.expected("index"))?;
        same("bytes", f64::from(buffer_status_bytes(index)), row.expected("scheduler_sees"))
    })
}

fn connection_setup(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let switched_on = Instant::ZERO;
        let attach = match row.word("attach") {
            "manual attach" => AttachProcedure::KnownCell { switched_on },
            "idle cell selection" => AttachProcedure::CellSearch { switched_on },
            other => return Err(format!("attach by {other}")),
        };
        let signalling = match row.word("rrc") {
            "ideal" => SignalingMode::Ideal,
            "real" => SignalingMode::Radio,
            other => return Err(format!("{other} RRC")),
        };
        let times = compute_setup_times(1, signalling, &[("ue", attach)]).map_err(|error| error.to_string())?[0];
        let near = |what: &str, at: Instant| {
            let (milliseconds, expected) = (at.as_nanos() as f64 * 1e-6, row.expected(what));
            let close = (milliseconds - expected).abs() <= 0.01;
            if close { Ok(()) } else { Err(format!("{what}: {milliseconds} ms instead of {expected}")) }
        };
        near("connected_ms", times.connected)?;
        near("bearer_ready_ue_ms", times.ready)
    })
}

fn rlc_segmentation(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let mode = if row.word("mode") == "UM" { RlcMode::Unacknowledged } else { RlcMode::Acknowledged };
        let mut bearer = Bearer::new(mode, RlcConfig::for_mode(mode));
        // "26-byte SDU" or "SDUs 10 9 7".
        let sizes = row.word("queue").split([' ', '-']).filter_map(|word| word.parse::<u32>().ok());
        for (token, bytes) in (0..).zip(sizes) {
            assert!(bearer.offer(LinkDirection::Downlink, Sdu { bytes, token, arrived: Instant::ZERO }));
        }
        let opportunities = numbers(row.word("tx_opportunities_bytes")).into_iter();
        let pdus = opportunities
            .map_while(|bytes| bearer.on_transmit_opportunity(LinkDirection::Downlink, Instant::ZERO, bytes as u32));
        let payloads: Vec<f64> = pdus.map(|pdu| f64::from(pdu.payload_bytes)).collect();
        // "16 (2 SDU parts, header 4)".
        let expected = row.expected["payload_bytes"].split(" (").next().expect("numbers");
        same("bytes of SDUs", payloads, numbers(expected))
    })
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// The bearers of ns-3's test of classification.
fn classifier(name: &str) -> Classifier {
    let net = |text: &str, bits| Some(AddressMask::prefix(address(text), bits).expect("a prefix"));
    let remote = |ports| PacketFilter { remote_ports: ports, ..PacketFilter::ANY };
    let local = |ports| PacketFilter { local_ports: ports, ..PacketFilter::ANY };
    let nets = [
        PacketFilter { remote: net("1.0.0.0", 8), local: net("2.0.0.0", 8), ..PacketFilter::ANY },
        PacketFilter { remote: net("3.3.3.0", 24), local: net("4.4.4.0", 24), ..PacketFilter::ANY },
    ];
    let ports = [
        remote(PortRange::new(1024, 1035).expect("a range")),
        local(PortRange::new(3456, 3489).expect("a range")),
        local(PortRange::one(7895)),
        remote(PortRange::one(5897)),
    ];
    let any = [PacketFilter::ANY];
    let bearers: &[(u8, &[PacketFilter])] = match name {
        "c1" => &[(1, &nets), (2, &ports)],
        "c2" => &[(1, &any)],
        "c3" => &[(1, &any), (2, &nets), (3, &ports)],
        "c4" => &[(1, &ports[2..3]), (2, &ports[3..])],
        other => panic!("{other}"),
    };
    let mut classifier = Classifier::new();
    for (bearer, filters) in bearers {
        classifier.add(*bearer, filters).expect("few bearers with few filters");
    }
    classifier
}

fn tft(rows: &[Row]) -> Vec<Outcome> {
    each(rows, |row| {
        let way = if row.word("direction") == "uplink" { MediumDirection::Uplink } else { MediumDirection::Downlink };
        let port = |key| u16::try_from(row.integer(key)).expect("a port");
        let headers = PacketHeaders {
            source: (address(row.word("src")), port("sport")),
            destination: (address(row.word("dst")), port("dport")),
            type_of_service: u8::try_from(row.integer("tos")).expect("eight bits"),
        };
        let bearer = classifier(row.word("classifier")).classify(way, &headers);
        same("bearer", f64::from(bearer.unwrap_or(0)), row.expected("bearer"))
    })
}

/// Independent taps of Gaussian amplitude have power with an exponential distribution.
#[test]
fn generator_has_the_percentiles_of_theory() {
    let recipe = FadingParameters::ns3_traces(DelayProfile::ExtendedPedestrianA, 60.0);
    let traces: Vec<Trace> =
        (0..10).map(|seed| Generator::new(recipe, seed, 100).expect("a generator").to_trace(10)).collect();
    let statistics = Statistics::new(&traces, 8);
    for percent in [1, 10, 50, 90, 99] {
        let theory = ratio_to_db(-math::ln(1.0 - percent as f64 / 100.0));
        let found = statistics.percentile_db(percent);
        println!("{percent} %: {found:.2} dB, theory {theory:.2}");
        assert!((found - theory).abs() < 0.3, "{percent} %: {found}, theory {theory}");
    }
}
