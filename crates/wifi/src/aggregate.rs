//! Limits of A-MPDUs.

use crate::frame::{ACK_BYTES, BLOCK_ACK_BYTES, single_mpdu_psdu_bytes};
use crate::phy::{Band, DurationRule, PhyKind, PhyRate, ppdu_duration, psdu_bytes_within, response_rate};
use fullpipe_units::Duration;

/// Longest PPDU (aPPDUMaxTime, tables 19-25 and 21-29).
pub const MAX_PPDU: Duration = Duration::from_micros(5484);

/// The limits of an A-MPDU, all of which apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateLimits {
    /// Number of MPDUs, at most the window of the block acknowledgment agreement (64). 1 disables aggregation.
    pub mpdus: u32,
    /// Size in bytes: 65 535 for HT and 1 048 575 for VHT receivers (clauses 9.4.2.55.3 and 9.4.2.157.2).
    pub bytes: u64,
    /// Duration of the PPDU. Linux's ath9k stops at 4 ms.
    pub ppdu: Duration,
}

impl AggregateLimits {
    /// The number of MPDUs that one compressed BlockAck acknowledges.
    pub const WINDOW: u32 = 64;

    /// Returns the largest limits of the standard for a PHY. Only HT and VHT aggregate.
    pub fn of(kind: PhyKind) -> Self {
        let (mpdus, bytes) = match kind {
            PhyKind::Dsss | PhyKind::Ofdm => (1, 4095),
            PhyKind::Ht => (Self::WINDOW, 65_535),
            PhyKind::Vht => (Self::WINDOW, 1_048_575),
        };
        AggregateLimits { mpdus, bytes, ppdu: MAX_PPDU }
    }

    /// Returns the largest PSDU in bytes at a rate. With a TXOP limit that is not zero, the PPDU, SIFS and the BlockAck
    /// fit into it.
    pub fn psdu_bytes(&self, rate: PhyRate, txop_limit: Duration, exchange: &ExchangeTiming<'_>) -> u64 {
        let mut ppdu = self.ppdu;
        if !txop_limit.is_zero() {
            ppdu = ppdu.min(txop_limit.saturating_sub(exchange.sifs + exchange.response(rate, BLOCK_ACK_BYTES)));
        }
        self.bytes.min(psdu_bytes_within(rate, ppdu, exchange.band, exchange.rule))
    }
}

/// What determines the durations of the frames of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeTiming<'a> {
    /// SIFS.
    pub sifs: Duration,
    /// The basic rates.
    pub basic: &'a [PhyRate],
    /// The band.
    pub band: Band,
    /// The rules for durations.
    pub rule: DurationRule,
}

impl ExchangeTiming<'_> {
    /// Returns the duration of a PPDU.
    pub fn ppdu(&self, rate: PhyRate, psdu_bytes: u64) -> Duration {
        ppdu_duration(rate, psdu_bytes, self.band, self.rule)
    }

    /// Returns the duration of a control frame that answers a frame sent at `answered`.
    pub fn response(&self, answered: PhyRate, bytes: u32) -> Duration {
        self.ppdu(response_rate(answered, self.basic), bytes.into())
    }

    /// Returns the duration of a data frame with one MPDU, SIFS and its ACK.
    pub fn single_exchange(&self, rate: PhyRate, mpdu_bytes: u32) -> Duration {
        let data = self.ppdu(rate, single_mpdu_psdu_bytes(mpdu_bytes, rate.kind()));
        data + self.sifs + self.response(rate, ACK_BYTES)
    }
}
