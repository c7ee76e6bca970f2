//! The radio channel between the access point and a station: path loss, noise, SNR.
//!
//! The defaults are those of ns-3: log-distance path loss with the exponent 3 and the free-space loss of 1 m at 5.15 GHz,
//! a transmit power of 16.0206 dBm, and a noise figure of 7 dB. The channel is reciprocal. It does not fade; shadowing is
//! a number per station, which can change in steps.

use crate::phy::{ChannelWidth, PhyKind, PhyRate};
use fullpipe_units::math;

/// Boltzmann's constant in J/K, and the temperature in K at which noise figures are stated.
const BOLTZMANN: f64 = 1.3803e-23;
const TEMPERATURE: f64 = 290.0;

/// Log-distance path loss.
///
/// ```
/// use fullpipe_wifi::channel::PathLoss;
/// // 46.6777 + 30 * log10(20) = 46.6777 + 39.0309 dB.
/// assert!((PathLoss::default().loss_db(20.0) - 85.7086).abs() < 1e-4);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathLoss {
    /// Loss in dB at 1 m.
    pub reference_db: f64,
    /// Exponent of the distance.
    pub exponent: f64,
}

impl Default for PathLoss {
    fn default() -> Self {
        PathLoss { reference_db: 46.6777, exponent: 3.0 }
    }
}

impl PathLoss {
    /// Returns the loss in dB at a distance in m. Distances below 1 m have the loss of 1 m.
    pub fn loss_db(&self, distance_m: f64) -> f64 {
        self.reference_db + 10.0 * self.exponent * math::log10(distance_m.max(1.0))
    }
}

/// Settings of the radio channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChannelConfig {
    /// Path loss.
    pub path_loss: PathLoss,
    /// Transmit power of every node in dBm. Streams share it.
    pub power_dbm: f64,
    /// Noise figure of every receiver in dB.
    pub noise_figure_db: f64,
    /// Received power in dBm below which no preamble is detected.
    pub detection_dbm: f64,
    /// SNR in dB over 20 MHz (22 MHz for DSSS) below which no preamble is detected.
    pub detection_snr_db: f64,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        ChannelConfig {
            path_loss: PathLoss::default(),
            power_dbm: 16.0206,
            noise_figure_db: 7.0,
            detection_dbm: -82.0,
            detection_snr_db: 4.0,
        }
    }
}

impl ChannelConfig {
    /// Returns the received power in dBm at a distance in m, with an additional loss.
    pub fn received_dbm(&self, distance_m: f64, shadowing_db: f64) -> f64 {
        self.power_dbm - self.path_loss.loss_db(distance_m) - shadowing_db
    }

    /// Returns the noise power in dBm over a bandwidth.
    pub fn noise_dbm(&self, megahertz: u32) -> f64 {
        10.0 * math::log10(BOLTZMANN * TEMPERATURE * f64::from(megahertz) * 1e6) + 30.0 + self.noise_figure_db
    }

    /// Returns the SNR in dB of a stream of a PPDU that is received with this power.
    pub fn snr_db(&self, rate: PhyRate, received_dbm: f64) -> f64 {
        received_dbm - self.noise_dbm(rate.noise_mhz()) - 10.0 * math::log10(f64::from(rate.streams()))
    }

    /// Returns whether a receiver detects the preamble of a PPDU. All preambles of OFDM-based PPDUs begin with a 20 MHz
    /// part.
    pub fn detects(&self, rate: PhyRate, received_dbm: f64) -> bool {
        let width = if rate.kind() == PhyKind::Dsss { rate.noise_mhz() } else { ChannelWidth::Mhz20.mhz() };
        received_dbm >= self.detection_dbm && received_dbm - self.noise_dbm(width) >= self.detection_snr_db
    }
}
