//! Slot times, interframe spaces and contention parameters.
//!
//! Sources: IEEE 802.11-2020 tables 15-4, 16-4, 17-21, 18-5, 19-25 and 21-29 for the PHYs, 9-155 for EDCA, and clause
//! 10.3.2.3 for the interframe spaces.

use super::band::Band;
use super::duration::{DurationRule, ppdu_duration};
use super::rate::{ChannelWidth, DsssRate, OfdmRate, PhyKind, PhyRate, Preamble};
use crate::frame::ACK_BYTES;
use fullpipe_units::Duration;

/// The amendment that all nodes of a network use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standard {
    /// 802.11b: DSSS and CCK, 2.4 GHz.
    B,
    /// 802.11a: OFDM, 5 GHz.
    A,
    /// 802.11g without stations of 802.11b: OFDM, 2.4 GHz.
    G,
    /// 802.11n.
    N(Band),
    /// 802.11ac, 5 GHz.
    Ac,
}

impl Standard {
    /// Returns the band.
    pub const fn band(self) -> Band {
        match self {
            Standard::B | Standard::G => Band::Ghz2,
            Standard::A | Standard::Ac => Band::Ghz5,
            Standard::N(band) => band,
        }
    }

    /// Returns whether nodes use EDCA and QoS frames, as all nodes of 802.11n and later do. Others use DCF.
    pub const fn has_qos(self) -> bool {
        matches!(self, Standard::N(_) | Standard::Ac)
    }

    /// Returns whether data may be sent at `rate`.
    pub fn permits(self, rate: PhyRate) -> bool {
        let kind = match self {
            Standard::B => rate.kind() == PhyKind::Dsss,
            Standard::A | Standard::G => rate.kind() == PhyKind::Ofdm,
            Standard::N(_) => matches!(rate.kind(), PhyKind::Ofdm | PhyKind::Ht),
            Standard::Ac => matches!(rate.kind(), PhyKind::Ofdm | PhyKind::Ht | PhyKind::Vht),
        };
        kind && rate.is_valid()
    }

    /// Returns the widest channel.
    pub const fn widest_channel(self) -> ChannelWidth {
        match self {
            Standard::B | Standard::A | Standard::G => ChannelWidth::Mhz20,
            Standard::N(_) => ChannelWidth::Mhz40,
            Standard::Ac => ChannelWidth::Mhz160,
        }
    }

    /// Returns the usual basic rates: 1 and 2 Mbit/s for 802.11b, otherwise 6, 12 and 24 Mbit/s.
    pub fn basic_rates(self, preamble: Preamble) -> Vec<PhyRate> {
        match self {
            Standard::B => [DsssRate::Mbps1, DsssRate::Mbps2].map(|rate| PhyRate::Dsss(rate, preamble)).to_vec(),
            _ => [OfdmRate::Mbps6, OfdmRate::Mbps12, OfdmRate::Mbps24].map(PhyRate::Ofdm).to_vec(),
        }
    }

    /// Returns the timing of the PHY; `preamble` matters for 802.11b only.
    pub const fn timing(self, preamble: Preamble) -> Timing {
        let start_delay_us = match (self, preamble) {
            (Standard::B, Preamble::Long) => 192,
            (Standard::B, Preamble::Short) => 96,
            _ => 20,
        };
        let (slot, sifs, cw_min) = match (self, self.band()) {
            (Standard::B, _) => (20, 10, 31),
            (_, Band::Ghz2) => (9, 10, 15),
            (_, Band::Ghz5) => (9, 16, 15),
        };
        Timing {
            slot: Duration::from_micros(slot),
            sifs: Duration::from_micros(sifs),
            phy_start_delay: Duration::from_micros(start_delay_us),
            cw_min,
            cw_max: 1023,
        }
    }
}

/// The timing of a PHY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// aSlotTime.
    pub slot: Duration,
    /// aSIFSTime.
    pub sifs: Duration,
    /// aRxPHYStartDelay: time from the beginning of a PPDU to its detection.
    pub phy_start_delay: Duration,
    /// aCWmin.
    pub cw_min: u32,
    /// aCWmax.
    pub cw_max: u32,
}

impl Timing {
    /// Returns the interframe space of `aifsn` slots: AIFS, or DIFS if `aifsn` is 2 (clause 10.3.2.3.6).
    pub fn ifs(&self, aifsn: u32) -> Duration {
        self.sifs + self.slot * u64::from(aifsn)
    }

    /// Returns the time from the end of a frame until its sender considers the ACK or the CTS missing (clause 10.3.2.9).
    pub fn response_timeout(&self) -> Duration {
        self.sifs + self.slot + self.phy_start_delay
    }

    /// Returns EIFS (clause 10.3.2.3.7): SIFS, an ACK at the lowest basic rate, and the interframe space of `aifsn`.
    ///
    /// ```
    /// use fullpipe_wifi::phy::{Band, OfdmRate, PhyRate, Preamble, Standard};
    /// // 802.11a: 16 + 44 + 34 µs.
    /// let timing = Standard::A.timing(Preamble::Long);
    /// assert_eq!(timing.eifs(2, PhyRate::Ofdm(OfdmRate::Mbps6), Band::Ghz5).as_nanos(), 94_000);
    /// ```
    pub fn eifs(&self, aifsn: u32, lowest_basic: PhyRate, band: Band) -> Duration {
        let ack = ppdu_duration(lowest_basic, u64::from(ACK_BYTES), band, DurationRule::Standard);
        self.sifs + ack + self.ifs(aifsn)
    }

    /// Returns the contention parameters of DCF.
    pub const fn dcf(&self) -> AccessParameters {
        AccessParameters { aifsn: 2, cw_min: self.cw_min, cw_max: self.cw_max, txop_limit: Duration::ZERO }
    }

    /// Returns the default contention parameters of a station's access category (table 9-155). The TXOP limit of
    /// background and best effort is 0, as in ns-3 and in texts before 2016; the current standard has 2.528 ms.
    pub const fn edca(&self, category: AccessCategory, dsss: bool) -> AccessParameters {
        let (cw_min, cw_max) = (self.cw_min, self.cw_max);
        let half = cw_min.div_ceil(2) - 1;
        let quarter = cw_min.div_ceil(4) - 1;
        let (aifsn, cw_min, cw_max, txop_us) = match category {
            AccessCategory::Background => (7, cw_min, cw_max, 0),
            AccessCategory::BestEffort => (3, cw_min, cw_max, 0),
            AccessCategory::Video => (2, half, cw_min, if dsss { 6016 } else { 4096 }),
            AccessCategory::Voice => (2, quarter, half, if dsss { 3264 } else { 2080 }),
        };
        AccessParameters { aifsn, cw_min, cw_max, txop_limit: Duration::from_micros(txop_us) }
    }
}

/// The contention parameters of DCF or of an access category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessParameters {
    /// Slots from the end of SIFS to the first possible transmission: 2 is DIFS. At least 1.
    pub aifsn: u32,
    /// Smallest contention window.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Longest transmission opportunity; 0: one frame or A-MPDU with its response.
    pub txop_limit: Duration,
}

/// An access category of EDCA (clause 10.2.3.2), in ascending order of priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessCategory {
    /// AC_BK.
    Background,
    /// AC_BE.
    #[default]
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
}

impl AccessCategory {
    /// All categories, in ascending order of priority.
    pub const ALL: [AccessCategory; 4] =
        [AccessCategory::Background, AccessCategory::BestEffort, AccessCategory::Video, AccessCategory::Voice];

    /// Returns the category of a user priority 0 to 7 (table 10-1).
    pub fn from_user_priority(priority: u8) -> Self {
        match priority & 7 {
            1 | 2 => AccessCategory::Background,
            0 | 3 => AccessCategory::BestEffort,
            4 | 5 => AccessCategory::Video,
            _ => AccessCategory::Voice,
        }
    }
}
