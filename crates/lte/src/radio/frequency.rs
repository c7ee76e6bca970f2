//! Carrier frequencies by channel number (EARFCN; 3GPP TS 36.101, clause 5.7.3), positions of resource blocks on them,
//! and the channel bandwidths of each band (clause 5.6.1).
//!
//! Resource blocks are adjacent around the carrier. The standard's gap of one subcarrier in the center of the downlink
//! is not modeled.

use super::RadioError;
use super::bandwidth::Bandwidth;
use super::tables::{Direction, number, rows};

/// Width of a resource block in Hz.
pub const RESOURCE_BLOCK_HZ: f64 = 180e3;

/// The set of known bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Bands {
    /// The paired bands of the standard up to release 12.
    #[default]
    Standard,
    /// The bands of ns-3, which do not include bands 22 to 28, 30 and 31.
    Ns3,
}

/// A carrier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carrier {
    /// Direction of the transmissions on the carrier.
    pub direction: Direction,
    /// Channel number (EARFCN).
    pub earfcn: u32,
    /// Operating band.
    pub band: u32,
    /// Center frequency in Hz.
    pub hz: f64,
    narrowest_khz: u32,
    widest_khz: u32,
}

fn kilohertz(mhz: &str) -> u32 {
    (number::<f64>(mhz) * 1000.0).round() as u32
}

/// Returns the carrier of a channel number (EARFCN).
///
/// # Errors
/// If no known band has the number in this direction.
pub fn find_carrier(direction: Direction, earfcn: u32, bands: Bands) -> Result<Carrier, RadioError> {
    for row in rows(include_str!("../../data/bands.csv")) {
        let columns = match direction {
            Direction::Downlink => &row[1..5],
            Direction::Uplink => &row[5..9],
        };
        let (low_khz, offset) = (kilohertz(columns[0]), number::<u32>(columns[1]));
        let numbers = number::<u32>(columns[2])..=number::<u32>(columns[3]);
        if numbers.contains(&earfcn) && (bands == Bands::Standard || row[11] == "yes") {
            return Ok(Carrier {
                direction,
                earfcn,
                band: number(row[0]),
                hz: f64::from(low_khz + 100 * (earfcn - offset)) * 1e3,
                narrowest_khz: kilohertz(row[9]),
                widest_khz: kilohertz(row[10]),
            });
        }
    }
    let (name, known) = match (direction, bands) {
        (Direction::Downlink, _) => {
            ("downlink", "for example, 100 is 2120 MHz in band 1 and 9895 is 465 MHz in band 31")
        }
        (Direction::Uplink, _) => {
            ("uplink", "for example, 18100 is 1930 MHz in band 1 and 27785 is 455 MHz in band 31")
        }
    };
    Err(RadioError::new(format!("EARFCN {earfcn} is in no known {name} band; {known}")))
}

impl Carrier {
    /// Returns the bandwidths of the narrowest and the widest channel of the band in MHz.
    pub fn channels_mhz(&self) -> [f64; 2] {
        [self.narrowest_khz, self.widest_khz].map(|khz| f64::from(khz) / 1000.0)
    }

    /// Checks that the band has channels of this bandwidth, and returns `None` if it has. If it has none and
    /// `allow_nonstandard_bandwidth` is set, returns a note that states this.
    ///
    /// # Errors
    /// If the band has no channels of this bandwidth and `allow_nonstandard_bandwidth` is not set.
    pub fn check(&self, bandwidth: Bandwidth, allow_nonstandard_bandwidth: bool) -> Result<Option<String>, RadioError> {
        let khz = bandwidth.channel_khz();
        if (self.narrowest_khz..=self.widest_khz).contains(&khz) {
            return Ok(None);
        }
        let mhz = |khz: u32| f64::from(khz) / 1000.0;
        let sentence = format!(
            "EARFCN {} is in band {}, whose channels are {} to {} MHz wide; {} resource blocks need {} MHz",
            self.earfcn,
            self.band,
            mhz(self.narrowest_khz),
            mhz(self.widest_khz),
            bandwidth.resource_blocks(),
            mhz(khz)
        );
        if allow_nonstandard_bandwidth { Ok(Some(sentence)) } else { Err(RadioError::new(sentence)) }
    }
}

/// Returns the center frequency in Hz of a resource block, counted from 0 at the lowest frequency.
pub fn resource_block_center_hz(carrier_hz: f64, bandwidth: Bandwidth, block: usize) -> f64 {
    let low = carrier_hz - RESOURCE_BLOCK_HZ * bandwidth.resource_blocks() as f64 / 2.0;
    low + RESOURCE_BLOCK_HZ * (block as f64 + 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_fit_their_channel_numbers_and_do_not_overlap() {
        let mut numbers = Vec::new();
        for row in rows(include_str!("../../data/bands.csv")) {
            for columns in [&row[1..5], &row[5..9]] {
                let [offset, first, last] = [1, 2, 3].map(|i| number::<u32>(columns[i]));
                assert!(first == offset && first < last, "band {}", row[0]);
                let duplex_in_time = columns == &row[5..9] && row[1] == row[5] && row[2] == row[6];
                if !duplex_in_time {
                    numbers.push((first, last));
                }
            }
            assert!(number::<f64>(row[9]) <= number::<f64>(row[10]));
        }
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0].1 < pair[1].0), "{numbers:?}");
    }

    #[test]
    fn band_31_is_narrow_and_unknown_to_ns3() {
        let carrier = |bands| super::find_carrier(Direction::Downlink, 9895, bands);
        let known = carrier(Bands::Standard).unwrap();
        assert_eq!((known.hz, known.band), (465e6, 31));
        assert!(carrier(Bands::Ns3).unwrap_err().to_string().contains("9895"));
        let band = |n| Bandwidth::new(n).unwrap();
        assert_eq!(known.check(band(25), false), Ok(None));
        let error = known.check(band(100), false).unwrap_err().to_string();
        assert!(error.contains("band 31") && error.contains("1.4 to 5 MHz") && error.contains("20 MHz"), "{error}");
        assert_eq!(known.check(band(100), true), Ok(Some(error)));
    }

    #[test]
    fn blocks_are_centered_on_the_carrier() {
        for n in Bandwidth::RESOURCE_BLOCKS {
            let bandwidth = Bandwidth::new(n).unwrap();
            let centre = |block| resource_block_center_hz(2e9, bandwidth, block);
            assert_eq!((centre(0) + centre(n as usize - 1)) / 2.0, 2e9);
            assert_eq!(centre(1) - centre(0), 180e3);
        }
    }
}
