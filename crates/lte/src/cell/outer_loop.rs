//! Outer-loop link adaptation: the eNB corrects what it knows of a UE's channel by the outcome of the UE's transport blocks.
//!
//! **Model.** For each UE and direction the eNB adds an offset to the SINR from which the MCS follows, at first 0 dB. A transport
//! block that is lost when it is sent for the first time lowers the offset by [`STEP_DB`], one that is decoded raises it by a ninth of
//! that. So the offset rests where one in ten is lost, the target of CQI reports (36.213 section 7.2.3). It corrects what reports
//! cannot show: interference that a sounding signal does not meet, fading that is faster than reports, a worst resource block
//! that stands for all.
//!
//! In the downlink the eNB knows a CQI: it stands for the lowest SINR at which a UE in a flat channel would report it, and the
//! highest CQI whose SINR is not above the corrected one takes its place. In the uplink the eNB knows the SINR itself.
//!
//! **Limits.** A corrected CQI is 1 to 15; a CQI of 0, out of range, stays 0. The offset does not fall on a loss with CQI 1, nor
//! rise above 0 with CQI 15, where it would have no effect until the channel changes. A block of which nothing is heard, since its UE did not
//! understand the control region, does not count.
//!
//! **Size of the step.** The outcome of a block is known when six (uplink) or seven (downlink) more are on their way with the same
//! MCS. If an MCS is above what the channel carries, all are lost: 1.6 dB at most, about the distance of two CQI. So after it
//! the MCS is one step lower, not several. A step of 1 dB would leave the offset 8 dB too low each time.

use fullpipe_units::math;

/// What a lost block takes off the offset, dB.
const STEP_DB: f64 = 0.2;
/// Decoded blocks that make up for a lost one: one in ten is lost.
const DECODED_FOR_A_LOSS: i32 = 9;

/// The offset of a UE in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OuterLoop {
    /// In parts of [`STEP_DB`] that a decoded block raises it by.
    offset: i32,
}

impl OuterLoop {
    /// The outcome of a block that was sent for the first time, made by this CQI (0: without any).
    pub(crate) fn learn(&mut self, cqi: u8, decoded: bool) {
        match (decoded, cqi) {
            (true, 1..=14) => self.offset += 1,
            (true, 15) if self.offset < 0 => self.offset += 1,
            (false, 2..=15) => self.offset -= DECODED_FOR_A_LOSS,
            (false, 1) if self.offset > 0 => self.offset -= DECODED_FOR_A_LOSS,
            _ => {}
        }
    }

    /// What the SINR is multiplied by.
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
    fn nine_decoded_blocks_make_up_for_a_lost_one() {
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
    fn the_offset_stays_where_it_has_an_effect() {
        let after = |outcomes: &[(u8, bool)]| {
            let mut outer_loop = OuterLoop::default();
            outcomes.iter().for_each(|&(cqi, decoded)| outer_loop.learn(cqi, decoded));
            outer_loop.offset
        };
        // With the best CQI not above 0, with the worst not below, and without a CQI nowhere.
        assert_eq!(after(&[(15, true); 20]), 0);
        assert_eq!(after(&[(1, false); 20]), 0);
        assert_eq!(after(&[(0, true), (0, false)]), 0);
        assert_eq!(after(&[(15, false), (15, true)]), -8);
        assert_eq!(after(&[(1, true), (1, true), (1, false)]), -7);
    }
}
