//! The link between the access point and a station, and what depends on its rate.

use crate::config::Config;
use crate::phy::{ErrorModel, PhyRate};
use crate::rate_control::RateControl;
use crate::report::{LastPpdu, LinkCounters};
use fullpipe_units::{Duration, RandomStream};
use std::collections::BTreeMap;

/// The durations that depend on the data rate alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateTimes {
    pub(super) response: PhyRate,
    pub(super) ack: Duration,
    pub(super) block_ack: Duration,
    /// Limit of the PSDU without a TXOP limit.
    pub(super) psdu_bytes: u64,
    /// Minimum distance between the beginnings of MPDUs in bytes.
    pub(super) spacing_bytes: u64,
}

/// SNR and packet error rates at one rate.
#[derive(Clone, Debug)]
pub(super) struct RateQuality {
    pub(super) snr_db: f64,
    pub(super) detected: bool,
    /// The last sizes in bytes, and their error rates.
    pub(super) errors: [(u64, f64); 2],
}

/// The link between the access point and a station in one direction.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) control: RateControl,
    pub(super) received_dbm: f64,
    pub(super) qualities: BTreeMap<PhyRate, RateQuality>,
    pub(super) losses: RandomStream,
    pub(super) counters: LinkCounters,
    pub(super) last: Option<LastPpdu>,
}

impl RateQuality {
    /// Returns the error rate of a frame of this size.
    #[inline]
    pub(super) fn error_rate(&mut self, model: ErrorModel, rate: PhyRate, bytes: u64) -> f64 {
        if self.errors[0].0 == bytes {
            return self.errors[0].1;
        }
        if self.errors[1].0 != bytes {
            self.errors[1] = (bytes, model.packet_error_rate(rate, self.snr_db, bytes));
        }
        self.errors.swap(0, 1);
        self.errors[0].1
    }
}

/// Returns SNR and detection at a rate.
pub(super) fn rate_quality<'a>(
    config: &Config,
    qualities: &'a mut BTreeMap<PhyRate, RateQuality>,
    received_dbm: f64,
    rate: PhyRate,
) -> &'a mut RateQuality {
    qualities.entry(rate).or_insert_with(|| RateQuality {
        snr_db: config.channel.snr_db(rate, received_dbm),
        detected: config.channel.detects(rate, received_dbm),
        errors: [(u64::MAX, 1.0); 2],
    })
}
