//! Antennas: gain by direction, and the effect of several antennas on the SINR.
//!
//! The cosine model has a gain of 20 n log10(cos(phi/2)) dB at an angle phi from its axis. The exponent n is such that
//! the gain is 3 dB lower at half of the beam width.
//!
//! A transmission mode multiplies the SINR by a constant, the mean gain of uncorrelated antennas, as in ns-3 (Catreux
//! and others 2002). With two layers, each layer is a separate transport block with that SINR.

use fullpipe_units::math;

/// An antenna of a base station.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Antenna {
    /// Equal gain in all directions.
    #[default]
    Isotropic,
    /// A sector antenna.
    Cosine {
        /// Direction of the axis, degrees from the x axis towards the y axis.
        orientation_degrees: f64,
        /// Angle over which the gain is within 3 dB of its maximum, in degrees, below 360.
        beam_width_degrees: f64,
        /// Gain on the axis in dB.
        largest_gain_db: f64,
    },
}

impl Antenna {
    /// Returns the gain in dB towards a point at (x, y) meters from the antenna.
    pub fn gain_db(&self, x: f64, y: f64) -> f64 {
        let &Antenna::Cosine { orientation_degrees, beam_width_degrees, largest_gain_db } = self else {
            return 0.0;
        };
        let mut angle = math::atan2(y, x) - orientation_degrees.to_radians();
        // The angle is halved below, so it must be in one period.
        while angle <= -std::f64::consts::PI {
            angle += std::f64::consts::TAU;
        }
        while angle > std::f64::consts::PI {
            angle -= std::f64::consts::TAU;
        }
        let exponent = -3.0 / (20.0 * math::log10(math::cos(beam_width_degrees.to_radians() / 4.0)));
        largest_gain_db + 20.0 * exponent * math::log10(math::cos(angle / 2.0))
    }
}

/// A transmission mode of the downlink (3GPP TS 36.213, clause 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TransmissionMode {
    /// Mode 1: one antenna.
    #[default]
    SingleAntenna,
    /// Mode 2: transmit diversity.
    TransmitDiversity,
    /// Mode 3: open-loop spatial multiplexing.
    OpenLoopMultiplexing,
    /// Mode 4: closed-loop spatial multiplexing.
    ClosedLoopMultiplexing,
    /// Mode 5: multi-user MIMO.
    MultiUser,
    /// Mode 6: closed-loop spatial multiplexing with a single layer.
    ClosedLoopSingleLayer,
    /// Mode 7: a single antenna on port 5.
    SinglePort5,
}

impl TransmissionMode {
    /// All modes in the order of 3GPP's numbers, from 1; ns-3 counts from 0.
    pub const ALL: [TransmissionMode; 7] = [
        TransmissionMode::SingleAntenna,
        TransmissionMode::TransmitDiversity,
        TransmissionMode::OpenLoopMultiplexing,
        TransmissionMode::ClosedLoopMultiplexing,
        TransmissionMode::MultiUser,
        TransmissionMode::ClosedLoopSingleLayer,
        TransmissionMode::SinglePort5,
    ];

    /// Returns the number of layers, which is the number of parallel transport blocks.
    pub fn layers(self) -> usize {
        match self {
            TransmissionMode::OpenLoopMultiplexing
            | TransmissionMode::ClosedLoopMultiplexing
            | TransmissionMode::MultiUser => 2,
            _ => 1,
        }
    }

    /// Returns the gain of each layer's SINR in dB.
    pub fn gain_db(self) -> f64 {
        match self {
            TransmissionMode::TransmitDiversity => 4.2,
            TransmissionMode::OpenLoopMultiplexing => -2.8,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sector_gain_is_3_db_lower_at_the_edges_of_its_beam() {
        let sector = |orientation_degrees| Antenna::Cosine {
            orientation_degrees,
            beam_width_degrees: 65.0,
            largest_gain_db: 15.0,
        };
        let towards = |degrees: f64| (math::cos(degrees.to_radians()), math::sin(degrees.to_radians()));
        for orientation in [-170.0, -30.0, 0.0, 90.0, 170.0] {
            for (off, expected) in [(0.0, 15.0), (32.5, 12.0), (-32.5, 12.0)] {
                let (x, y) = towards(orientation + off);
                assert!((sector(orientation).gain_db(x, y) - expected).abs() < 1e-9);
            }
            let (x, y) = towards(orientation + 179.0);
            assert!(sector(orientation).gain_db(x, y) < -100.0);
        }
        assert_eq!(Antenna::Isotropic.gain_db(-3.0, 4.0), 0.0);
    }
}
