//! Durations of PPDUs, and the rates of the control frames that answer them.
//!
//! All arithmetic is in whole nanoseconds. Sources: IEEE 802.11-2020 clauses 16.3.4 (DSSS and CCK), 17.4.3 (OFDM),
//! 19.4.3 (HT) and 21.4.3 (VHT) for TXTIME, and 10.6.6.5 for control responses.

use super::band::Band;
use super::rate::{CodeRate, DsssRate, GuardInterval, Modulation, OfdmRate, PhyKind, PhyRate, Preamble};
use fullpipe_units::Duration;

/// Bits of the SERVICE field, and tail bits of one encoder.
const SERVICE_BITS: u64 = 16;
const TAIL_BITS: u64 = 6;

/// Signal extension after every OFDM-based PPDU in 2.4 GHz (clause 10.3.8). It gives decoders the time that SIFS gives
/// them in 5 GHz.
const SIGNAL_EXTENSION_NS: u64 = 6_000;

/// Which rules give the duration of HT and VHT PPDUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DurationRule {
    /// The standard: a data field with short guard interval is padded to 4 µs (clause 19.3.2), and each VHT PPDU has a
    /// VHT-SIG-B of 4 µs.
    #[default]
    Standard,
    /// ns-3 3.44, for comparisons: no padding, and no VHT-SIG-B in PPDUs for a single user.
    Ns3,
}

/// Returns the duration of a PPDU (TXTIME) with a PSDU of this number of bytes.
///
/// ```
/// use fullpipe_units::Duration;
/// use fullpipe_wifi::phy::{Band, DurationRule, OfdmRate, PhyRate, ppdu_duration};
/// // 1536 bytes at 54 Mbit/s: 16 + 12 288 + 6 bits are 57 symbols of 216 bits; 20 + 4 * 57 = 248 µs.
/// let data = ppdu_duration(PhyRate::Ofdm(OfdmRate::Mbps54), 1536, Band::Ghz5, DurationRule::Standard);
/// assert_eq!(data, Duration::from_micros(248));
/// ```
pub fn ppdu_duration(rate: PhyRate, psdu_bytes: u64, band: Band, rule: DurationRule) -> Duration {
    let bits = 8 * psdu_bytes;
    let symbols = |tails: u64| (SERVICE_BITS + bits + TAIL_BITS * tails).div_ceil(rate.data_bits_per_symbol().into());
    let data_ns = |guard: GuardInterval| {
        let data = symbols(rate.encoders().into()) * guard.symbol_ns();
        if rule == DurationRule::Standard { data.next_multiple_of(4000) } else { data }
    };
    let nanoseconds = match rate {
        PhyRate::Dsss(dsss, preamble) => {
            let short = preamble == Preamble::Short && dsss != DsssRate::Mbps1;
            // The LENGTH field of the header counts whole microseconds (clause 16.2.3.5).
            let microseconds = (1000 * bits).div_ceil(dsss.kbps());
            (if short { 96_000 } else { 192_000 }) + 1000 * microseconds
        }
        // Preamble 16 µs and SIGNAL 4 µs.
        PhyRate::Ofdm(_) => 20_000 + 4000 * symbols(1),
        // L-STF, L-LTF, L-SIG, HT-SIG and HT-STF take 32 µs, each HT-LTF 4 µs (clause 19.3.9.4.6).
        PhyRate::Ht(ht) => 32_000 + 4000 * training_fields(ht.streams) + data_ns(ht.guard),
        // The same with VHT-SIG-A and VHT-STF, and VHT-SIG-B.
        PhyRate::Vht(vht) => {
            let fixed = if rule == DurationRule::Standard { 36_000 } else { 32_000 };
            fixed + 4000 * training_fields(vht.streams) + data_ns(vht.guard)
        }
    };
    let extension = if band == Band::Ghz2 && rate.kind() != PhyKind::Dsss { SIGNAL_EXTENSION_NS } else { 0 };
    Duration::from_nanos(nanoseconds + extension)
}

/// Number of long training fields (tables 19-13 and 21-13).
fn training_fields(streams: u8) -> u64 {
    match streams {
        0 | 1 => 1,
        2 => 2,
        3 | 4 => 4,
        5 | 6 => 6,
        _ => 8,
    }
}

/// Returns the largest PSDU, in bytes, whose PPDU lasts at most `limit`; 0 if the preamble alone takes longer.
pub fn psdu_bytes_within(rate: PhyRate, limit: Duration, band: Band, rule: DurationRule) -> u64 {
    // Bits per nanosecond bound the answer from above. The duration grows with the size, so bisection finds it.
    let fits = |bytes: u64| ppdu_duration(rate, bytes, band, rule) <= limit;
    let (mut low, mut high) = (0, 1 + (rate.mbps() * limit.as_nanos() as f64 / 8e3) as u64);
    if !fits(0) {
        return 0;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Returns the non-HT rate with which the modulation and code rate of an HT or VHT rate compare (table 10-10).
fn reference_rate(rate: PhyRate) -> Option<OfdmRate> {
    let scheme = match rate {
        PhyRate::Dsss(..) => return None,
        PhyRate::Ofdm(rate) => return Some(rate),
        PhyRate::Ht(rate) | PhyRate::Vht(rate) => rate.scheme(),
    };
    Some(match scheme {
        (Modulation::Bpsk, CodeRate::Half) => OfdmRate::Mbps6,
        (Modulation::Bpsk, _) => OfdmRate::Mbps9,
        (Modulation::Qpsk, CodeRate::Half) => OfdmRate::Mbps12,
        (Modulation::Qpsk, _) => OfdmRate::Mbps18,
        (Modulation::Qam16, CodeRate::Half) => OfdmRate::Mbps24,
        (Modulation::Qam16, _) => OfdmRate::Mbps36,
        (Modulation::Qam64, CodeRate::TwoThirds) => OfdmRate::Mbps48,
        _ => OfdmRate::Mbps54,
    })
}

/// Returns the rate of the ACK, CTS or BlockAck that answers a frame sent at `answered` (clause 10.6.6.5.2): the
/// highest basic rate of the same modulation class that is not above it. If there is none, the highest mandatory rate
/// that is not above it.
///
/// ```
/// use fullpipe_wifi::phy::{OfdmRate, PhyRate, response_rate};
/// let basic = [OfdmRate::Mbps6, OfdmRate::Mbps12, OfdmRate::Mbps24].map(PhyRate::Ofdm);
/// assert_eq!(response_rate(PhyRate::Ofdm(OfdmRate::Mbps18), &basic), PhyRate::Ofdm(OfdmRate::Mbps12));
/// ```
pub fn response_rate(answered: PhyRate, basic: &[PhyRate]) -> PhyRate {
    if let PhyRate::Dsss(rate, preamble) = answered {
        let basic = basic.iter().filter_map(|basic| match basic {
            PhyRate::Dsss(basic, _) => Some(*basic),
            _ => None,
        });
        // All DSSS rates are mandatory.
        return PhyRate::Dsss(basic.filter(|basic| *basic <= rate).max().unwrap_or(rate), preamble);
    }
    let limit = reference_rate(answered).unwrap_or(OfdmRate::Mbps6);
    let basic = basic.iter().filter_map(|basic| match basic {
        PhyRate::Ofdm(basic) => Some(*basic),
        _ => None,
    });
    let mandatory = [OfdmRate::Mbps6, OfdmRate::Mbps12, OfdmRate::Mbps24];
    let fallback = mandatory.into_iter().filter(|rate| *rate <= limit).max().unwrap_or(OfdmRate::Mbps6);
    PhyRate::Ofdm(basic.filter(|basic| *basic <= limit).max().unwrap_or(fallback))
}
