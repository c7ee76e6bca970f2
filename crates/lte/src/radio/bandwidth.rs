//! Channel bandwidths (3GPP TS 36.101, table 5.6-1) and resource block groups of downlink allocation type 0 (TS 36.213,
//! table 7.1.6.1-1).

use super::RadioError;

/// A channel bandwidth as a number of resource blocks of 180 kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    resource_blocks: u8,
}

impl Bandwidth {
    /// The bandwidths of LTE, in resource blocks: 1.4, 3, 5, 10, 15 and 20 MHz.
    pub const RESOURCE_BLOCKS: [u32; 6] = [6, 15, 25, 50, 75, 100];

    /// Returns the bandwidth with this number of resource blocks.
    ///
    /// # Errors
    /// If LTE has no bandwidth with that number.
    pub fn new(resource_blocks: u32) -> Result<Self, RadioError> {
        if Self::RESOURCE_BLOCKS.contains(&resource_blocks) {
            return Ok(Bandwidth { resource_blocks: resource_blocks as u8 });
        }
        Err(RadioError::new(format!(
            "{resource_blocks} resource blocks are not an LTE channel bandwidth: LTE has 6 (1.4 MHz), 15 (3), 25 (5), 50 (10), \
             75 (15) and 100 (20 MHz)"
        )))
    }

    /// Returns the number of resource blocks of 180 kHz.
    pub fn resource_blocks(self) -> usize {
        usize::from(self.resource_blocks)
    }

    /// Returns the width of the channel with its guard bands, in kHz.
    pub fn channel_khz(self) -> u32 {
        match self.resource_blocks {
            6 => 1_400,
            15 => 3_000,
            25 => 5_000,
            50 => 10_000,
            75 => 15_000,
            _ => 20_000,
        }
    }

    /// Returns the number of resource blocks of a group.
    pub fn group_size(self) -> usize {
        match self.resource_blocks {
            0..=10 => 1,
            11..=26 => 2,
            27..=63 => 3,
            _ => 4,
        }
    }

    /// Returns the number of whole groups. Blocks beyond the last whole group are not allocated in the downlink; the
    /// standard permits a shorter last group.
    pub fn groups(self) -> usize {
        self.resource_blocks() / self.group_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_match_the_standard() {
        let groups = |n| {
            let bandwidth = Bandwidth::new(n).unwrap();
            (bandwidth.group_size(), bandwidth.groups())
        };
        assert_eq!(Bandwidth::RESOURCE_BLOCKS.map(groups), [(1, 6), (2, 7), (2, 12), (3, 16), (4, 18), (4, 25)]);
    }

    #[test]
    fn unknown_number_of_blocks_is_rejected_with_the_accepted_ones() {
        let error = Bandwidth::new(24).unwrap_err().to_string();
        assert!(error.contains("24") && error.contains("25"), "{error}");
    }
}
