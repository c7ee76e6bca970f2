//! Outer-loop link adaptation: the eNB corrects its estimate of a UE's channel from the outcomes of the UE's transport
//! blocks.
//!
//! **Model.** For each UE and direction the eNB adds an offset to the SINR that determines the MCS. The offset starts
//! at 0 dB. If the first transmission of a block is lost, the offset falls by [`STEP_DB`]. If the block is decoded, the
//! offset rises by a ninth of this step. At the equilibrium, one block in ten is lost, which is the target of CQI
//! reports (TS 36.213, clause 7.2.3). The offset compensates for effects that the reports do not contain. These are
//! interference that does not affect a sounding signal, and fading that is faster than the reports. A CQI may also
//! reflect only the worst resource block.
//!
//! In the downlink, the eNB receives a CQI. Each CQI represents the lowest SINR at which a UE in a flat channel reports
//! it. The eNB adds the offset to this SINR. The highest CQI whose SINR does not exceed the sum replaces the reported
//! CQI. In the uplink, the eNB measures the SINR itself.
//!
//! **Limits.** A corrected CQI is 1 to 15; a CQI of 0, out of range, stays 0. With CQI 1, the offset does not fall
//! unless it is above 0. With CQI 15, it does not rise unless it is below 0. Such a change would have no effect until
//! the channel changes. A block without feedback, because its UE did not decode the control region, does not count.
//!
//! **Size of the step.** When the outcome of a block is known, six (uplink) or seven (downlink) further blocks with the
//! same MCS are in transmission. If the MCS is too high for the channel, all of them are lost. The offset then falls by
//! at most 1.6 dB, about the distance between adjacent CQIs. The MCS is therefore one step lower, not several. With a
//! step of 1 dB, the offset would fall by 8 dB each time.

use fullpipe_units::math;

/// Decrease of the offset after a lost block, in dB.
const STEP_DB: f64 = 0.2;
/// Number of decoded blocks that compensate for a lost one: one in ten is lost.
const DECODED_FOR_A_LOSS: i32 = 9;

/// The offset of a UE in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OuterLoop {
    /// In units of the increase after a decoded block, [`STEP_DB`] / [`DECODED_FOR_A_LOSS`].
    offset: i32,
}

impl OuterLoop {
    /// Updates the offset by the outcome of a first transmission with this CQI (0: without CQI).
    pub(crate) fn learn(&mut self, cqi: u8, decoded: bool) {
        match (decoded, cqi) {
            (true, 1..=14) => self.offset += 1,
            (true, 15) if self.offset < 0 => self.offset += 1,
            (false, 2..=15) => self.offset -= DECODED_FOR_A_LOSS,
            (false, 1) if self.offset > 0 => self.offset -= DECODED_FOR_A_LOSS,
            _ => {}
        }
    }

    /// Returns the factor of the SINR.
    pub(crate) fn gain(self) -> f32 {
        if self.offset == 0 {
            return 1.0;
        }
        math::pow(10.0, f64::from(self.offset) * (STEP_DB / f64::from(10 * DECODED_FOR_A_LOSS))) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decibels(outer_loop: OuterLoop) -> f64 {
        10.0 * math::log10(f64::from(outer_loop.gain()))
    }

    #[test]
    fn nine_decoded_blocks_compensate_for_a_lost_one() {
        let mut outer_loop = OuterLoop::default();
        assert_eq!(outer_loop.gain(), 1.0);
        outer_loop.learn(7, false);
        assert!((decibels(outer_loop) + 0.2).abs() < 1e-5, "{outer_loop:?}");
        for _ in 0..9 {
            outer_loop.learn(6, true);
        }
        assert_eq!(outer_loop, OuterLoop::default());
    }

    #[test]
    fn offset_stays_in_the_range_where_it_has_an_effect() {
        let after = |outcomes: &[(u8, bool)]| {
            let mut outer_loop = OuterLoop::default();
            outcomes.iter().for_each(|&(cqi, decoded)| outer_loop.learn(cqi, decoded));
            outer_loop.offset
        };
        // The offset stays at or below 0 with the highest CQI, at or above 0 with the lowest, and at 0 without a CQI.
        assert_eq!(after(&[(15, true); 20]), 0);
        assert_eq!(after(&[(1, false); 20]), 0);
        assert_eq!(after(&[(0, true), (0, false)]), 0);
        assert_eq!(after(&[(15, false), (15, true)]), -8);
        assert_eq!(after(&[(1, true), (1, true), (1, false)]), -7);
    }
}
