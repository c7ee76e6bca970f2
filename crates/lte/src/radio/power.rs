//! Powers: transmitted power density, noise, the measurements RSRP and RSRQ of a UE (3GPP TS 36.214), and uplink power
//! control (TS 36.213, clause 5.1).
//!
//! The base station spreads its power over the whole band, even if it uses only a part of the band. A UE concentrates
//! its power on the resource blocks that it uses.

use super::frequency::RESOURCE_BLOCK_HZ;
use fullpipe_units::math;

/// Subcarriers of a resource block.
const SUBCARRIERS: f64 = 12.0;

/// Converts decibels to a power ratio.
pub fn db_to_ratio(db: f64) -> f64 {
    math::pow(10.0, db / 10.0)
}

/// Converts a power ratio to decibels.
pub fn ratio_to_db(ratio: f64) -> f64 {
    10.0 * math::log10(ratio)
}

/// Returns the power density in W/Hz of a power in dBm that is spread over a number of resource blocks. In the
/// downlink, these are all blocks of the band; in the uplink, only the used blocks.
pub fn power_density(power_dbm: f64, resource_blocks: usize) -> f64 {
    db_to_ratio(power_dbm - 30.0) / (resource_blocks as f64 * RESOURCE_BLOCK_HZ)
}

/// Returns the noise density of a receiver in W/Hz: -174 dBm/Hz plus its noise figure.
pub fn noise_density(noise_figure_db: f64) -> f64 {
    db_to_ratio(-174.0 - 30.0 + noise_figure_db)
}

/// Returns the power in dBm of a resource block with this power density in W/Hz.
pub fn resource_block_dbm(density: f64) -> f64 {
    ratio_to_db(density * RESOURCE_BLOCK_HZ) + 30.0
}

/// Returns the reference signal received power (RSRP) of one subcarrier in dBm, averaged over the band. `density` is
/// the received power density of a cell in W/Hz in each resource block.
pub fn rsrp_dbm(density: &[f64]) -> f64 {
    let mean = density.iter().sum::<f64>() / density.len() as f64;
    ratio_to_db(mean * RESOURCE_BLOCK_HZ / SUBCARRIERS) + 30.0
}

/// Returns the reference signal received quality (RSRQ) in dB: the power density of a cell, relative to the total
/// received density including noise. Both are in W/Hz. As in ns-3, two resource elements of each block count, so a
/// single cell without noise has -3 dB.
pub fn rsrq_db(density: &[f64], received: &[f64]) -> f64 {
    ratio_to_db(density.iter().sum::<f64>() / (2.0 * received.iter().sum::<f64>()))
}

/// Returns the reported value of RSRP (TS 36.133, clause 9.1.4): 0 below -140 dBm, 97 from -44 dBm.
pub fn rsrp_range(dbm: f64) -> u8 {
    (dbm + 141.0).floor().clamp(0.0, 97.0) as u8
}

/// Returns the reported value of RSRQ (TS 36.133, clause 9.1.7): 0 below -19.5 dB, 34 from -3 dB.
pub fn rsrq_range(db: f64) -> u8 {
    (2.0 * db + 40.0).floor().clamp(0.0, 34.0) as u8
}

/// The effect of the base station's power commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PowerControlLoop {
    /// Commands are ignored.
    Open,
    /// Each command sets the power offset to -4, -1, 1 or 4 dB.
    Absolute,
    /// Each command adds -1, 0, 1 or 3 dB to the power offset, while the power is within its limits.
    #[default]
    Accumulated,
}

/// Settings of a UE's power control; the defaults are those of ns-3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerControlConfig {
    /// Largest transmission power in dBm.
    pub largest_dbm: f64,
    /// Smallest transmission power in dBm.
    pub smallest_dbm: f64,
    /// P0: target power of a resource block at the base station (nominal and UE-specific part), in dBm.
    pub target_dbm: f64,
    /// Alpha: fraction of the path loss that is compensated, 0 to 1.
    pub compensation: f64,
    /// P_SRS_OFFSET as configured, 0 to 15. The offset of the sounding signal is -10.5 dB plus 1.5 dB per unit.
    pub sounding_offset: u8,
    /// Transmission power of the base station in dBm, from which a UE computes its path loss.
    pub reference_dbm: f64,
    /// k of the filter of received power: each measurement has weight 0.5^(k/4).
    pub filter_coefficient: u8,
    /// Effect of power commands.
    pub commands: PowerControlLoop,
}

impl Default for PowerControlConfig {
    fn default() -> Self {
        PowerControlConfig {
            largest_dbm: 23.0,
            smallest_dbm: -40.0,
            target_dbm: -80.0,
            compensation: 1.0,
            sounding_offset: 7,
            reference_dbm: 30.0,
            filter_coefficient: 4,
            commands: PowerControlLoop::Accumulated,
        }
    }
}

/// The power control of one UE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UplinkPowerControl {
    settings: PowerControlConfig,
    /// Filtered received power in dBm.
    received_dbm: Option<f64>,
    /// f of TS 36.213 in dB.
    offset_db: f64,
}

impl UplinkPowerControl {
    /// Creates the state before any measurement or command.
    pub fn new(settings: PowerControlConfig) -> Self {
        UplinkPowerControl { settings, received_dbm: None, offset_db: 0.0 }
    }

    /// Adds a measurement of the base station's total received power in dBm.
    pub fn on_measurement(&mut self, received_dbm: f64) {
        let weight = math::pow(0.5, f64::from(self.settings.filter_coefficient) / 4.0);
        self.received_dbm =
            Some(self.received_dbm.map_or(received_dbm, |before| (1.0 - weight) * before + weight * received_dbm));
    }

    /// Returns the UE's estimate of the path loss in dB; 0 before any measurement.
    pub fn path_loss_db(&self) -> f64 {
        self.received_dbm.map_or(0.0, |received_dbm| self.settings.reference_dbm - received_dbm)
    }

    /// Applies a power command from 0 to 3; call it 4 subframes after the reception of the command. The UE sends in
    /// `resource_blocks` blocks. If the power has reached a limit, accumulated commands beyond the limit have no
    /// effect.
    ///
    /// # Panics
    /// If the command is above 3, unless the UE ignores commands.
    pub fn apply_command(&mut self, command: u8, resource_blocks: usize) {
        match self.settings.commands {
            PowerControlLoop::Open => {}
            PowerControlLoop::Absolute => self.offset_db = [-4.0, -1.0, 1.0, 4.0][usize::from(command)],
            PowerControlLoop::Accumulated => {
                let step = [-1.0, 0.0, 1.0, 3.0][usize::from(command)];
                let power = self.data_dbm(resource_blocks);
                if (step > 0.0 && power < self.settings.largest_dbm)
                    || (step < 0.0 && power > self.settings.smallest_dbm)
                {
                    self.offset_db += step;
                }
            }
        }
    }

    fn dbm(&self, offset_db: f64, resource_blocks: usize) -> f64 {
        let settings = &self.settings;
        let wanted = ratio_to_db(resource_blocks as f64)
            + settings.target_dbm
            + settings.compensation * self.path_loss_db()
            + self.offset_db
            + offset_db;
        wanted.clamp(settings.smallest_dbm, settings.largest_dbm)
    }

    /// Returns the transmission power in dBm of data (PUSCH) in a number of resource blocks. The power of control
    /// information (PUCCH) is the same.
    pub fn data_dbm(&self, resource_blocks: usize) -> f64 {
        self.dbm(0.0, resource_blocks)
    }

    /// Returns the transmission power in dBm of the sounding signal over a number of resource blocks.
    pub fn sounding_dbm(&self, resource_blocks: usize) -> f64 {
        self.dbm(1.5 * f64::from(self.settings.sounding_offset) - 10.5, resource_blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_block_arrives_with_the_target_power_until_the_limit() {
        let mut control = UplinkPowerControl::new(PowerControlConfig::default());
        // With a loss of 80 dB and a target of -80 dBm per block, each block has 0 dBm.
        control.on_measurement(30.0 - 80.0);
        assert!((control.data_dbm(1) - 0.0).abs() < 1e-9);
        assert!((control.data_dbm(100) - 20.0).abs() < 1e-9);
        // K = 7 is 0 dB.
        assert_eq!(control.sounding_dbm(25), control.data_dbm(25));
        // The filter moves half of the distance to 90 dB, then three quarters.
        control.on_measurement(30.0 - 90.0);
        assert!((control.path_loss_db() - 85.0).abs() < 1e-9);
        control.on_measurement(30.0 - 90.0);
        assert!((control.path_loss_db() - 87.5).abs() < 1e-9);
        assert_eq!(control.data_dbm(100), 23.0);
    }

    #[test]
    fn report_ranges_end_at_their_limits() {
        assert_eq!([-150.0, -140.0, -139.9, -44.0, 0.0].map(rsrp_range), [0, 1, 1, 97, 97]);
        assert_eq!([-30.0, -19.5, -19.0, -3.0, 0.0].map(rsrq_range), [0, 1, 2, 34, 34]);
    }

    #[test]
    fn single_cell_without_noise_has_minus_3_db_of_quality() {
        assert!((rsrq_db(&[1.0; 6], &[1.0; 6]) + 3.0103).abs() < 1e-4);
        assert!((resource_block_dbm(power_density(30.0, 100)) - 10.0).abs() < 1e-9);
        assert!((rsrp_dbm(&[power_density(30.0, 100); 100]) - (10.0 - 10.79181)).abs() < 1e-4);
    }

    /// A loss of 103 dB requires -80 + 103 = 23 dBm, the maximum. A command for more has no effect, so that the next
    /// command for less is effective at once.
    #[test]
    fn commands_are_not_added_at_the_limit() {
        let mut control = UplinkPowerControl::new(PowerControlConfig::default());
        control.on_measurement(30.0 - 103.0);
        assert_eq!(control.data_dbm(1), 23.0);
        control.apply_command(3, 1);
        control.apply_command(0, 1);
        assert_eq!(control.data_dbm(1), 22.0);
    }
}
