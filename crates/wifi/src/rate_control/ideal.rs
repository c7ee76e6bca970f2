//! Ideal rate control: the sender knows the SNR at the receiver.

use super::{Capabilities, RateContext};
use crate::channel::ChannelConfig;
use crate::phy::{ErrorModel, PhyRate};
use std::cmp::Ordering;

/// The size of the packet in [`IdealTarget::PacketErrorRate`].
const REFERENCE_BYTES: u64 = 1500;

/// What the SNR must permit at the selected rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IdealTarget {
    /// A bit error rate, by the NIST model for OFDM-based rates (ns-3: 1e-6).
    BitErrorRate(f64),
    /// An error rate of packets of 1500 bytes, by the error model of the network.
    PacketErrorRate(f64),
}

impl Default for IdealTarget {
    fn default() -> Self {
        IdealTarget::BitErrorRate(1e-6)
    }
}

/// A rate, and the received power above which it is selected.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Threshold {
    rate: PhyRate,
    received_dbm: f64,
}

/// Ideal rate control.
///
/// ```
/// use fullpipe_wifi::channel::ChannelConfig;
/// use fullpipe_wifi::phy::{ChannelWidth, ErrorModel, OfdmRate, PhyRate, Preamble, Standard};
/// use fullpipe_wifi::rate_control::{Capabilities, Ideal, IdealTarget, RateContext};
/// let channel = ChannelConfig::default();
/// let context =
///     RateContext { standard: Standard::A, preamble: Preamble::Long, channel: &channel, errors: ErrorModel::Nist };
/// let capabilities = Capabilities { streams: 1, width: ChannelWidth::Mhz20, short_guard: false };
/// let ideal = Ideal::new(&capabilities, IdealTarget::default(), &context);
/// // 18.995 dB at 30 m: 36 Mbit/s needs 17.260 dB, 48 Mbit/s needs 22.010 dB.
/// assert_eq!(ideal.rate(channel.received_dbm(30.0, 0.0)), PhyRate::Ofdm(OfdmRate::Mbps36));
/// ```
#[derive(Debug)]
pub struct Ideal {
    /// By descending rate.
    thresholds: Vec<Threshold>,
}

impl Ideal {
    /// Returns rate control with the rates of these capabilities.
    pub fn new(capabilities: &Capabilities, target: IdealTarget, context: &RateContext<'_>) -> Self {
        let rates = capabilities.rates(context.standard, context.preamble).into_iter();
        let mut thresholds: Vec<Threshold> = rates
            .map(|rate| Threshold { rate, received_dbm: required_dbm(rate, target, context.channel, context.errors) })
            .collect();
        thresholds.sort_by(|a, b| {
            let by_rate = b.rate.mbps().partial_cmp(&a.rate.mbps()).unwrap_or(Ordering::Equal);
            // Of equal rates, the one that needs less power comes first.
            by_rate.then(a.received_dbm.partial_cmp(&b.received_dbm).unwrap_or(Ordering::Equal))
        });
        Ideal { thresholds }
    }

    /// Returns the fastest rate for this received power, or the most robust one if none qualifies.
    pub fn rate(&self, received_dbm: f64) -> PhyRate {
        let found = self.thresholds.iter().find(|entry| entry.received_dbm <= received_dbm);
        let robust = || {
            self.thresholds.iter().min_by(|a, b| a.received_dbm.partial_cmp(&b.received_dbm).unwrap_or(Ordering::Equal))
        };
        // There is always a rate: every standard has at least one for any capabilities.
        found.or_else(robust).map_or(PhyRate::Ofdm(crate::phy::OfdmRate::Mbps6), |entry| entry.rate)
    }
}

/// Returns the received power in dBm at which a rate meets the target.
fn required_dbm(rate: PhyRate, target: IdealTarget, channel: &ChannelConfig, errors: ErrorModel) -> f64 {
    let misses = |snr_db: f64| match target {
        IdealTarget::BitErrorRate(limit) => ErrorModel::bit_error_rate(rate, snr_db) > limit,
        IdealTarget::PacketErrorRate(limit) => errors.packet_error_rate(rate, snr_db, REFERENCE_BYTES) > limit,
    };
    // Error rates decrease with the SNR. 60 halvings of 120 dB are below 1e-15 dB.
    let (mut low, mut high) = (-20.0, 100.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if misses(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high - channel.snr_db(rate, 0.0)
}
