//! Transmission rates of 802.11b, a, g, n and ac: modulation, code rate, and data bits per symbol.
//!
//! A rate is what the TXVECTOR of the standard selects for one PPDU (IEEE 802.11-2020, clauses 15 to 17, 19 and 21). All
//! arithmetic is exact: an OFDM symbol carries a whole number of data bits in every rate that the standard permits.

use std::fmt;

/// The preamble of a DSSS or CCK PPDU (clauses 16.2.2.2 and 16.2.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preamble {
    /// Preamble and header of 192 µs.
    #[default]
    Long,
    /// Preamble and header of 96 µs. Not available at 1 Mbit/s.
    Short,
}

/// The guard interval of an HT or VHT symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardInterval {
    /// 0.8 µs: symbols of 4 µs.
    #[default]
    Long,
    /// 0.4 µs: symbols of 3.6 µs.
    Short,
}

impl GuardInterval {
    /// Returns the duration of a symbol in ns.
    pub const fn symbol_ns(self) -> u64 {
        match self {
            GuardInterval::Long => 4000,
            GuardInterval::Short => 3600,
        }
    }
}

/// Width of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChannelWidth {
    /// 20 MHz.
    #[default]
    Mhz20,
    /// 40 MHz.
    Mhz40,
    /// 80 MHz (VHT only).
    Mhz80,
    /// 160 MHz (VHT only).
    Mhz160,
}

impl ChannelWidth {
    /// All widths, in ascending order.
    pub const ALL: [ChannelWidth; 4] =
        [ChannelWidth::Mhz20, ChannelWidth::Mhz40, ChannelWidth::Mhz80, ChannelWidth::Mhz160];

    /// Returns the width in MHz.
    pub const fn mhz(self) -> u32 {
        20 << self as u32
    }

    /// Returns the channel width of this number of MHz; `None` if there is none.
    pub fn from_mhz(mhz: u32) -> Option<Self> {
        ChannelWidth::ALL.into_iter().find(|width| width.mhz() == mhz)
    }

    /// Returns the number of data subcarriers of HT and VHT, N_SD (tables 19-6 and 21-5).
    const fn data_subcarriers(self) -> u32 {
        [52, 108, 234, 468][self as usize]
    }
}

/// Modulation of a subcarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Modulation {
    /// 1 bit.
    Bpsk,
    /// 2 bits.
    Qpsk,
    /// 4 bits.
    Qam16,
    /// 6 bits.
    Qam64,
    /// 8 bits.
    Qam256,
    /// 10 bits. No rate of this crate uses it; the error model has it.
    Qam1024,
}

impl Modulation {
    /// Returns the number of coded bits per subcarrier and stream, N_BPSCS.
    pub const fn bits(self) -> u32 {
        [1, 2, 4, 6, 8, 10][self as usize]
    }
}

/// Rate of the convolutional code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeRate {
    /// 1/2.
    Half,
    /// 2/3.
    TwoThirds,
    /// 3/4.
    ThreeQuarters,
    /// 5/6.
    FiveSixths,
}

impl CodeRate {
    /// Returns numerator and denominator.
    pub const fn ratio(self) -> (u32, u32) {
        match self {
            CodeRate::Half => (1, 2),
            CodeRate::TwoThirds => (2, 3),
            CodeRate::ThreeQuarters => (3, 4),
            CodeRate::FiveSixths => (5, 6),
        }
    }
}

/// Modulation and code rate of the MCS indices 0 to 11 of one stream. HT uses 0 to 7, VHT 0 to 9; the error model also
/// has 10 and 11 (tables 19-27 and 21-30; 802.11ax for the last two).
pub const MCS: [(Modulation, CodeRate); 12] = [
    (Modulation::Bpsk, CodeRate::Half),
    (Modulation::Qpsk, CodeRate::Half),
    (Modulation::Qpsk, CodeRate::ThreeQuarters),
    (Modulation::Qam16, CodeRate::Half),
    (Modulation::Qam16, CodeRate::ThreeQuarters),
    (Modulation::Qam64, CodeRate::TwoThirds),
    (Modulation::Qam64, CodeRate::ThreeQuarters),
    (Modulation::Qam64, CodeRate::FiveSixths),
    (Modulation::Qam256, CodeRate::ThreeQuarters),
    (Modulation::Qam256, CodeRate::FiveSixths),
    (Modulation::Qam1024, CodeRate::ThreeQuarters),
    (Modulation::Qam1024, CodeRate::FiveSixths),
];

/// A DSSS or CCK rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DsssRate {
    /// 1 Mbit/s (DBPSK).
    Mbps1,
    /// 2 Mbit/s (DQPSK).
    Mbps2,
    /// 5.5 Mbit/s (CCK).
    Mbps5_5,
    /// 11 Mbit/s (CCK).
    Mbps11,
}

impl DsssRate {
    /// All rates, in ascending order. All are mandatory for 802.11b.
    pub const ALL: [DsssRate; 4] = [DsssRate::Mbps1, DsssRate::Mbps2, DsssRate::Mbps5_5, DsssRate::Mbps11];

    /// Returns the rate in kbit/s.
    pub const fn kbps(self) -> u64 {
        [1000, 2000, 5500, 11_000][self as usize]
    }
}

/// A rate of the OFDM PHY of 802.11a and g.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfdmRate {
    /// 6 Mbit/s (mandatory).
    Mbps6,
    /// 9 Mbit/s.
    Mbps9,
    /// 12 Mbit/s (mandatory).
    Mbps12,
    /// 18 Mbit/s.
    Mbps18,
    /// 24 Mbit/s (mandatory).
    Mbps24,
    /// 36 Mbit/s.
    Mbps36,
    /// 48 Mbit/s.
    Mbps48,
    /// 54 Mbit/s.
    Mbps54,
}

impl OfdmRate {
    /// All rates, in ascending order.
    pub const ALL: [OfdmRate; 8] = [
        OfdmRate::Mbps6,
        OfdmRate::Mbps9,
        OfdmRate::Mbps12,
        OfdmRate::Mbps18,
        OfdmRate::Mbps24,
        OfdmRate::Mbps36,
        OfdmRate::Mbps48,
        OfdmRate::Mbps54,
    ];

    /// Returns the rate in Mbit/s.
    pub const fn mbps(self) -> u32 {
        [6, 9, 12, 18, 24, 36, 48, 54][self as usize]
    }

    /// Returns modulation and code rate (table 17-4).
    pub const fn scheme(self) -> (Modulation, CodeRate) {
        match self {
            OfdmRate::Mbps6 => (Modulation::Bpsk, CodeRate::Half),
            OfdmRate::Mbps9 => (Modulation::Bpsk, CodeRate::ThreeQuarters),
            OfdmRate::Mbps12 => (Modulation::Qpsk, CodeRate::Half),
            OfdmRate::Mbps18 => (Modulation::Qpsk, CodeRate::ThreeQuarters),
            OfdmRate::Mbps24 => (Modulation::Qam16, CodeRate::Half),
            OfdmRate::Mbps36 => (Modulation::Qam16, CodeRate::ThreeQuarters),
            OfdmRate::Mbps48 => (Modulation::Qam64, CodeRate::TwoThirds),
            OfdmRate::Mbps54 => (Modulation::Qam64, CodeRate::ThreeQuarters),
        }
    }
}

/// An HT or VHT rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MultiStreamRate {
    /// MCS index of one stream: 0 to 7 (HT) or 9 (VHT). HT-MCS 8 to 31 are MCS 0 to 7 with more streams.
    pub mcs: u8,
    /// Number of spatial streams, 1 to 4. (VHT permits 8, which no product has.)
    pub streams: u8,
    /// Channel width; at most 40 MHz for HT.
    pub width: ChannelWidth,
    /// Guard interval.
    pub guard: GuardInterval,
}

impl MultiStreamRate {
    /// Returns modulation and code rate.
    ///
    /// # Panics
    /// If the MCS index exceeds 11. [`PhyRate::is_valid`] is false for such a rate.
    pub fn scheme(self) -> (Modulation, CodeRate) {
        MCS[usize::from(self.mcs)]
    }

    /// Returns coded bits per symbol, N_CBPS, over all streams.
    fn coded_bits(self) -> u32 {
        self.width.data_subcarriers() * self.scheme().0.bits() * u32::from(self.streams)
    }

    /// Returns data bits per symbol, N_DBPS, rounded down.
    fn data_bits(self) -> u32 {
        let (numerator, denominator) = self.scheme().1.ratio();
        self.coded_bits() * numerator / denominator
    }
}

/// The PHY of a rate, in which PPDUs have the same format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhyKind {
    /// DSSS and CCK (802.11b).
    Dsss,
    /// OFDM (802.11a and g).
    Ofdm,
    /// High throughput (802.11n).
    Ht,
    /// Very high throughput (802.11ac).
    Vht,
}

/// The rate of a PPDU.
///
/// ```
/// use fullpipe_wifi::phy::{ChannelWidth, GuardInterval, MultiStreamRate, PhyRate};
/// let rate = PhyRate::Vht(MultiStreamRate {
///     mcs: 9,
///     streams: 1,
///     width: ChannelWidth::Mhz80,
///     guard: GuardInterval::Short,
/// });
/// // 234 subcarriers of 8 bits at code rate 5/6 are 1560 bits in 3.6 µs.
/// assert_eq!(rate.data_bits_per_symbol(), 1560);
/// assert_eq!(rate.to_string(), "VHT MCS 9, 80 MHz, 1 stream, short guard interval (433.3 Mbit/s)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhyRate {
    /// A DSSS or CCK rate with its preamble.
    Dsss(DsssRate, Preamble),
    /// An OFDM rate.
    Ofdm(OfdmRate),
    /// An HT rate.
    Ht(MultiStreamRate),
    /// A VHT rate.
    Vht(MultiStreamRate),
}

impl PhyRate {
    /// Returns the PHY.
    pub const fn kind(self) -> PhyKind {
        match self {
            PhyRate::Dsss(..) => PhyKind::Dsss,
            PhyRate::Ofdm(_) => PhyKind::Ofdm,
            PhyRate::Ht(_) => PhyKind::Ht,
            PhyRate::Vht(_) => PhyKind::Vht,
        }
    }

    /// Returns whether the standard permits the rate. It excludes VHT rates for which the coded or the data bits of a
    /// symbol are not a multiple of the number of encoders (clause 21.5).
    pub fn is_valid(self) -> bool {
        match self {
            PhyRate::Dsss(..) | PhyRate::Ofdm(_) => true,
            PhyRate::Ht(rate) => rate.mcs <= 7 && (1..=4).contains(&rate.streams) && rate.width <= ChannelWidth::Mhz40,
            PhyRate::Vht(rate) => {
                if rate.mcs > 9 || !(1..=4).contains(&rate.streams) {
                    return false;
                }
                let (numerator, denominator) = rate.scheme().1.ratio();
                let coded = rate.coded_bits();
                let encoders = self.encoders();
                (coded * numerator).is_multiple_of(denominator)
                    && coded.is_multiple_of(encoders)
                    && rate.data_bits().is_multiple_of(encoders)
            }
        }
    }

    /// Returns data bits per symbol, N_DBPS; 0 for DSSS.
    pub fn data_bits_per_symbol(self) -> u32 {
        match self {
            PhyRate::Dsss(..) => 0,
            PhyRate::Ofdm(rate) => 4 * rate.mbps(),
            PhyRate::Ht(rate) | PhyRate::Vht(rate) => rate.data_bits(),
        }
    }

    /// Returns the number of convolutional encoders, N_ES; each adds 6 tail bits. HT uses two above 300 Mbit/s (table
    /// 19-37 ff.), VHT one for each 540 Mbit/s, or 600 with short guard interval. Both limits are 2160 bits per symbol.
    /// One rate has six encoders instead of five, because its coded bits are not a multiple of five (table 21-57).
    pub fn encoders(self) -> u32 {
        match self {
            PhyRate::Dsss(..) => 0,
            PhyRate::Ofdm(_) => 1,
            PhyRate::Ht(rate) => 1 + u32::from(rate.data_bits() > 1080),
            PhyRate::Vht(MultiStreamRate { mcs: 7, streams: 4, width: ChannelWidth::Mhz160, .. }) => 6,
            PhyRate::Vht(rate) => rate.data_bits().div_ceil(2160).max(1),
        }
    }

    /// Returns the rate in Mbit/s. Durations do not use this value.
    pub fn mbps(self) -> f64 {
        match self {
            PhyRate::Dsss(rate, _) => rate.kbps() as f64 / 1e3,
            PhyRate::Ofdm(rate) => f64::from(rate.mbps()),
            PhyRate::Ht(rate) | PhyRate::Vht(rate) => {
                let (numerator, denominator) = rate.scheme().1.ratio();
                let bits = f64::from(rate.coded_bits()) * f64::from(numerator) / f64::from(denominator);
                bits * 1e3 / rate.guard.symbol_ns() as f64
            }
        }
    }

    /// Returns the number of spatial streams.
    pub fn streams(self) -> u8 {
        match self {
            PhyRate::Dsss(..) | PhyRate::Ofdm(_) => 1,
            PhyRate::Ht(rate) | PhyRate::Vht(rate) => rate.streams,
        }
    }

    /// Returns the bandwidth over which the receiver collects noise, in MHz: 22 for DSSS (clause 15.4.6.5).
    pub fn noise_mhz(self) -> u32 {
        match self {
            PhyRate::Dsss(..) => 22,
            PhyRate::Ofdm(_) => 20,
            PhyRate::Ht(rate) | PhyRate::Vht(rate) => rate.width.mhz(),
        }
    }
}

impl fmt::Display for PhyRate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, rate) = match self {
            PhyRate::Dsss(rate, preamble) => {
                let preamble = if *preamble == Preamble::Long { "long" } else { "short" };
                return write!(formatter, "DSSS {} Mbit/s, {preamble} preamble", rate.kbps() as f64 / 1e3);
            }
            PhyRate::Ofdm(rate) => return write!(formatter, "OFDM {} Mbit/s", rate.mbps()),
            PhyRate::Ht(rate) => ("HT", rate),
            PhyRate::Vht(rate) => ("VHT", rate),
        };
        let plural = if rate.streams == 1 { "" } else { "s" };
        let guard = if rate.guard == GuardInterval::Short { ", short guard interval" } else { "" };
        let (mcs, mhz, streams) = (rate.mcs, rate.width.mhz(), rate.streams);
        write!(formatter, "{name} MCS {mcs}, {mhz} MHz, {streams} stream{plural}{guard} ({:.1} Mbit/s)", self.mbps())
    }
}
