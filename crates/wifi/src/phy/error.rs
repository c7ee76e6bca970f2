//! Packet error rates over the SNR.
//!
//! Three models, in the order in which they are preferred:
//! * **Tables** for additive white Gaussian noise (`data/per_awgn.csv`), for packets of 32 or 1458 bytes with the
//!   convolutional code, or 1458 bytes with LDPC. Other sizes follow from independent bits.
//! * **NIST** (Miller 2003; Pei and Henderson 2010): the union bound of the convolutional code with hard decisions. It
//!   also applies to 9 Mbit/s, for which there is no table.
//! * **DSSS and CCK**: DBPSK and DQPSK in closed form, CCK from a table of symbol errors (`data/cck.csv`).
//!
//! SNR is in dB over the bandwidth of the rate ([`PhyRate::noise_mhz`]), per stream.

use super::rate::{CodeRate, DsssRate, Modulation, PhyRate};
use fullpipe_units::math;
use std::str::FromStr;
use std::sync::LazyLock;

/// The code of the error tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// Binary convolutional code.
    #[default]
    Bcc,
    /// Low-density parity check code; HT and VHT only.
    Ldpc,
}

/// The model of packet errors for OFDM-based rates. DSSS and CCK have one model.
///
/// ```
/// use fullpipe_wifi::phy::{Coding, ErrorModel, OfdmRate, PhyRate};
/// let model = ErrorModel::Table(Coding::Bcc);
/// let rate = PhyRate::Ofdm(OfdmRate::Mbps54);
/// assert_eq!(model.packet_error_rate(rate, 30.0, 1536), 0.0);
/// assert_eq!(model.packet_error_rate(rate, 10.0, 1536), 1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorModel {
    /// Tables. Rates without a table use NIST, and OFDM rates always use the convolutional code.
    Table(Coding),
    /// NIST.
    Nist,
}

impl Default for ErrorModel {
    fn default() -> Self {
        ErrorModel::Table(Coding::Bcc)
    }
}

/// Error rates below this value count as 0.
const NEGLIGIBLE: f64 = 1e-5;

/// Packets below this size use the table of 32 bytes.
const SHORT_BYTES: u64 = 400;

impl ErrorModel {
    /// Returns the probability that a packet of this size is lost at this SNR.
    pub fn packet_error_rate(self, rate: PhyRate, snr_db: f64, bytes: u64) -> f64 {
        let scheme = match rate {
            PhyRate::Dsss(rate, _) => return dsss_error_rate(rate, snr_db, 8 * bytes),
            PhyRate::Ofdm(rate) => rate.scheme(),
            PhyRate::Ht(rate) | PhyRate::Vht(rate) => rate.scheme(),
        };
        let table = match (self, rate) {
            (ErrorModel::Nist, _) => None,
            (ErrorModel::Table(_), PhyRate::Ofdm(_)) => Some(Coding::Bcc),
            (ErrorModel::Table(coding), _) => Some(coding),
        };
        let mcs = super::rate::MCS.iter().position(|entry| *entry == scheme);
        match table.zip(mcs) {
            Some((coding, mcs)) => table_error_rate(coding, mcs, snr_db, bytes),
            None => nist_error_rate(scheme, snr_db, 8 * bytes),
        }
    }
}

impl ErrorModel {
    /// Returns the probability that one bit is wrong: by the NIST model for OFDM-based rates.
    pub fn bit_error_rate(rate: PhyRate, snr_db: f64) -> f64 {
        match rate {
            PhyRate::Dsss(rate, _) => dsss_error_rate(rate, snr_db, 1),
            PhyRate::Ofdm(rate) => nist_bit_error_rate(rate.scheme(), snr_db),
            PhyRate::Ht(rate) | PhyRate::Vht(rate) => nist_bit_error_rate(rate.scheme(), snr_db),
        }
    }
}

/// Points of one table: SNR in dB, and error rate.
type Curve = Vec<(f64, f64)>;

struct Tables {
    /// By MCS: convolutional code with 32 and 1458 bytes, and LDPC with 1458 bytes.
    packet_errors: [[Curve; 12]; 3],
    spectra: [Spectrum; 4],
    /// SNR in dB, and symbol errors at 5.5 and at 11 Mbit/s.
    cck: Vec<(f64, [f64; 2])>,
}

/// The distance spectrum of a punctured convolutional code.
struct Spectrum {
    /// Trellis bits per puncturing period.
    period: f64,
    first_distance: i32,
    step: i32,
    weights: Vec<f64>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::read);

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).filter(|line| !line.is_empty()).map(|line| line.split(',').collect())
}

fn number<T: FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("`{word}` in a table of this crate"))
}

impl Tables {
    fn read() -> Self {
        let mut packet_errors: [[Curve; 12]; 3] = Default::default();
        for row in rows(include_str!("../../data/per_awgn.csv")) {
            let table = match (row[0], row[1]) {
                ("BCC", "32") => 0,
                ("BCC", _) => 1,
                _ => 2,
            };
            packet_errors[table][number::<usize>(row[2])].push((number(row[3]), number(row[4])));
        }
        let spectra = rows(include_str!("../../data/convolutional.csv")).map(|row| Spectrum {
            period: number(row[1]),
            first_distance: number(row[2]),
            step: number(row[3]),
            weights: row[4].split(' ').map(number).collect(),
        });
        let spectra = spectra.collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("four code rates"));
        let cck = rows(include_str!("../../data/cck.csv"))
            .map(|row| (number(row[0]), [number::<f64>(row[1]), number::<f64>(row[2])]));
        Tables { packet_errors, spectra, cck: cck.collect() }
    }
}

/// Interpolates between the points around `x`. Returns the value of the first or the last point outside of them.
fn interpolate<T>(points: &[T], x: f64, point: impl Fn(&T) -> (f64, f64)) -> f64 {
    let above = points.partition_point(|entry| point(entry).0 <= x);
    let Some(low) = above.checked_sub(1) else { return points.first().map_or(0.0, |entry| point(entry).1) };
    let (x0, y0) = point(&points[low]);
    match points.get(above).map(point) {
        Some((x1, y1)) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        None => y0,
    }
}

fn table_error_rate(coding: Coding, mcs: usize, snr_db: f64, bytes: u64) -> f64 {
    let (table, reference_bytes) = match coding {
        Coding::Bcc if bytes < SHORT_BYTES => (0, 32.0),
        Coding::Bcc => (1, 1458.0),
        Coding::Ldpc => (2, 1458.0),
    };
    let curve = &TABLES.packet_errors[table][mcs];
    let (Some(first), Some(last)) = (curve.first(), curve.last()) else {
        return nist_error_rate(super::rate::MCS[mcs], snr_db, 8 * bytes);
    };
    let snr_db = (snr_db * 100.0).round() / 100.0;
    let reference = if snr_db < first.0 {
        1.0
    } else if snr_db > last.0 {
        0.0
    } else {
        interpolate(curve, snr_db, |point| *point)
    };
    let rate = -math::exp_m1(math::ln_1p(-reference) * bytes as f64 / reference_bytes);
    if rate < NEGLIGIBLE { 0.0 } else { rate }
}

/// Probability that a bit is wrong before decoding, at a linear SNR.
fn coded_bit_error_rate(modulation: Modulation, snr: f64) -> f64 {
    match modulation {
        Modulation::Bpsk => 0.5 * math::erfc(snr.sqrt()),
        Modulation::Qpsk => 0.5 * math::erfc((snr / 2.0).sqrt()),
        _ => {
            let points = f64::from(1 << modulation.bits());
            let side = points.sqrt();
            let bits = f64::from(modulation.bits()) / 2.0;
            (side - 1.0) / (side * bits) * math::erfc((1.5 * snr / (points - 1.0)).sqrt())
        }
    }
}

/// Returns the probability that one bit is wrong after decoding, by the NIST model.
pub fn nist_bit_error_rate((modulation, code): (Modulation, CodeRate), snr_db: f64) -> f64 {
    let p = coded_bit_error_rate(modulation, ratio(snr_db));
    let d = (4.0 * p * (1.0 - p)).sqrt();
    let spectrum = &TABLES.spectra[code as usize];
    let powers = (0..).map(|index| f64::from(spectrum.first_distance + index * spectrum.step));
    let sum: f64 = spectrum.weights.iter().zip(powers).map(|(weight, power)| weight * math::pow(d, power)).sum();
    (sum / (2.0 * spectrum.period)).min(1.0)
}

/// Returns the probability that a packet of this number of bits is lost, by the NIST model.
pub fn nist_error_rate(scheme: (Modulation, CodeRate), snr_db: f64, bits: u64) -> f64 {
    1.0 - math::pow(1.0 - nist_bit_error_rate(scheme, snr_db), bits as f64)
}

/// Returns the lowest SNR in dB at which the bit error rate of the NIST model is at most `target`.
pub fn nist_threshold_db(scheme: (Modulation, CodeRate), target: f64) -> f64 {
    // The error rate decreases with the SNR. 100 halvings of 120 dB are below the resolution of a float.
    let (mut low, mut high) = (-20.0, 100.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if nist_bit_error_rate(scheme, middle) > target {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

fn dsss_error_rate(rate: DsssRate, snr_db: f64, bits: u64) -> f64 {
    let snr = ratio(snr_db);
    let bits = bits as f64;
    let success = match rate {
        // The spreading gain is the ratio of the bandwidth, 22 MHz, to the bit rate.
        DsssRate::Mbps1 => math::pow(1.0 - 0.5 * math::exp(-22.0 * snr), bits),
        DsssRate::Mbps2 => {
            let x = 11.0 * snr;
            let root = std::f64::consts::SQRT_2;
            let factor = (root + 1.0) / (8.0 * std::f64::consts::PI * root).sqrt();
            let errors = factor / x.sqrt() * math::exp(-(2.0 - root) * x);
            math::pow(1.0 - errors.min(0.5), bits)
        }
        DsssRate::Mbps5_5 => math::pow(1.0 - cck_symbol_error(snr_db, 0), bits / 4.0),
        DsssRate::Mbps11 => math::pow(1.0 - cck_symbol_error(snr_db, 1), bits / 8.0),
    };
    1.0 - success
}

/// Symbol error of CCK, with linear interpolation of its logarithm.
fn cck_symbol_error(snr_db: f64, rate: usize) -> f64 {
    math::exp(interpolate(&TABLES.cck, snr_db, |(snr, errors)| (*snr, math::ln(errors[rate]))))
}

/// Converts dB to a ratio.
pub(crate) fn ratio(db: f64) -> f64 {
    math::pow(10.0, db / 10.0)
}
