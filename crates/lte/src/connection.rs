//! Connection setup of UEs: from the time at which a UE is switched on until its bearers carry packets.
//!
//! **Finding the cell.** A UE with a known cell waits for the master information block, which is sent every 10 ms. Any
//! other UE first measures cells for 200 ms. It then waits for the master information block and for system information
//! block 1, which is sent every 20 ms. Each UE then waits for system information block 2, which contains the random
//! access parameters. The cell sends it 16 ms after its start and then every 80 ms.
//!
//! **Random access** (TS 36.321, clause 5.1). The UE sends one of 52 preambles, drawn for each attempt. If two or more
//! UEs send the same preamble in one subframe, all of them fail. The eNB receives a preamble one subframe after its
//! start, too late for the scheduling of that subframe. In the next subframe it schedules the response, which is
//! transmitted two subframes later. This is four subframes after the preamble, within the response window (three to
//! five subframes after the preamble). A UE without a response tries again after the window, up to 50 times.
//!
//! **Connection** (TS 36.331, clause 5.3.3). With ideal signaling, messages take no time: the response arrives with the
//! control region of its subframe, and the connection is complete. With radio signaling, each message is delayed as by
//! the MAC of an idle cell, with the timing in `cell.rs`:
//!
//! * the response grants the connection request (message 3) four subframes later; it is decoded 13 symbols into that
//!   subframe;
//! * the connection setup (message 4) is scheduled in the next subframe, transmitted two subframes later and received
//!   at the end of that subframe. The UE is then connected;
//! * the UE reports its answer and receives a grant, as for any data of an idle UE. The answer arrives 11 subframes and
//!   13 symbols after the subframe boundary at which it was ready;
//! * the answer uses RLC AM, which requires a STATUS report. The report takes the next transmission opportunity, and
//!   the reconfiguration that establishes the bearers takes the following one. When the reconfiguration arrives, the
//!   bearers carry packets.
//!
//! Signaling messages occupy no resources of the cell and are not lost. The number of responses and grants per subframe
//! is not limited.
//!
//! Periods, delays and the sequence are those of ns-3's `lte` module (according to its documentation and measured
//! timelines). That module sends system information block 2 less often than a real network.

use crate::radio::RadioError;
use crate::subframe::{start, subframe_from};
use fullpipe_units::{Duration, Instant, RandomStream};
use std::collections::{BTreeMap, BTreeSet};

/// How a UE attaches to its cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttachProcedure {
    /// The UE has its bearers at the start of the run.
    #[default]
    Ideal,
    /// The cell of the UE is configured, so that the UE does not search for a cell.
    KnownCell {
        /// When the UE is switched on.
        switched_on: Instant,
    },
    /// The UE first measures cells, and then selects its serving cell.
    CellSearch {
        /// When the UE is switched on.
        switched_on: Instant,
    },
}

/// How RRC messages are transmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignalingMode {
    /// Without delay.
    #[default]
    Ideal,
    /// With the radio delay of an idle cell.
    Radio,
}

/// When a UE's connection and bearers were established.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BearerSetupTimes {
    /// When the UE entered RRC_CONNECTED.
    pub connected: Instant,
    /// When the bearers could carry packets.
    pub ready: Instant,
}

type Subframe = u64;

/// Period of the master information block.
const MASTER_PERIOD: Subframe = 10;
/// First subframe and period of the first system information block.
const FIRST_BLOCK: (Subframe, Subframe) = (5, 20);
/// First subframe and period of the second system information block.
const SECOND_BLOCK: (Subframe, Subframe) = (16, 80);
/// Time for which a UE measures cells before it selects one.
const SEARCH: Subframe = 200;
/// Number of contention preambles.
const PREAMBLES: u64 = 52;
const MOST_ATTEMPTS: u32 = 50;
/// Subframes from a preamble to the end of the response window.
const WINDOW_ENDS: Subframe = 3 + 3;
/// Subframes from a preamble to its response: one on the air, one missed, and two from the decision to the air.
const RESPONSE: Subframe = 1 + 1 + 2;
/// Subframes from a grant to the granted transmission.
const GRANTED: Subframe = 4;
/// Downlink: two subframes from the decision to the air, and one on the air.
const DOWN: Subframe = 2 + 1;
/// Uplink, from a report made at the beginning of a subframe to the transmission of the data: the report waits four
/// subframes and is one on the air, the grant takes two and the granted transmission starts four later.
const UP: Subframe = 4 + 1 + 2 + GRANTED;
/// Length of the control region: three of 14 symbols.
const CONTROL_REGION: Duration = Duration::from_nanos(3 * 1_000_000 / 14);

/// Computes when the bearers of the UEs of one cell are established. `ues` contains the name of each UE, which selects
/// its random stream, and its attach procedure.
///
/// # Errors
///
/// If so many UEs attach at once that some collide in every attempt.
///
/// ```
/// use fullpipe_lte::connection::{AttachProcedure, SignalingMode, compute_setup_times};
/// use fullpipe_units::{Duration, Instant};
///
/// let attach = AttachProcedure::KnownCell { switched_on: Instant::ZERO };
/// let times = compute_setup_times(1, SignalingMode::Radio, &[("phone", attach)]).unwrap();
/// assert_eq!(times[0].ready, Instant::ZERO + Duration::from_millis(44));
/// ```
pub fn compute_setup_times(
    seed: u64,
    signalling: SignalingMode,
    ues: &[(&str, AttachProcedure)],
) -> Result<Vec<BearerSetupTimes>, RadioError> {
    let mut established = vec![BearerSetupTimes::default(); ues.len()];
    // UEs by the subframe of their next preamble, with their random streams and numbers of attempts.
    let mut due: BTreeMap<Subframe, Vec<(usize, RandomStream, u32)>> = BTreeMap::new();
    for (number, (name, attach)) in ues.iter().enumerate() {
        if let Some(subframe) = informed(*attach) {
            due.entry(subframe).or_default().push((number, RandomStream::new(seed, name, "random access"), 1));
        }
    }
    while let Some((subframe, mut attempts)) = due.pop_first() {
        let drawn: Vec<u64> = attempts.iter_mut().map(|(_, stream, _)| stream.uniform_below(PREAMBLES)).collect();
        let (mut once, mut more) = (BTreeSet::new(), BTreeSet::new());
        for &preamble in &drawn {
            if !once.insert(preamble) {
                more.insert(preamble);
            }
        }
        for ((number, stream, attempt), preamble) in attempts.into_iter().zip(drawn) {
            if !more.contains(&preamble) {
                established[number] = connect(signalling, subframe + RESPONSE);
            } else if attempt == MOST_ATTEMPTS {
                return Err(RadioError::new(format!(
                    "the random access of UE {} failed: in each of {MOST_ATTEMPTS} attempts another UE sent the same of the \
                     {PREAMBLES} preambles; expected fewer UEs that are switched on at the same time",
                    ues[number].0
                )));
            } else {
                due.entry(subframe + WINDOW_ENDS).or_default().push((number, stream, attempt + 1));
            }
        }
    }
    Ok(established)
}

/// The first subframe of `(first, period)` at or after `from`.
fn next_of((first, period): (Subframe, Subframe), from: Subframe) -> Subframe {
    first + from.saturating_sub(first).div_ceil(period) * period
}

/// The subframe at whose beginning a UE has the random access parameters; `None` if it does not need them.
fn informed(attach: AttachProcedure) -> Option<Subframe> {
    let camped = match attach {
        AttachProcedure::Ideal => return None,
        AttachProcedure::KnownCell { switched_on } => next_of((0, MASTER_PERIOD), subframe_from(switched_on)),
        AttachProcedure::CellSearch { switched_on } => {
            let master = next_of((0, MASTER_PERIOD), subframe_from(switched_on) + SEARCH);
            next_of(FIRST_BLOCK, master)
        }
    };
    Some(next_of(SECOND_BLOCK, camped))
}

/// Returns the times of a UE whose random access response is in this subframe.
fn connect(signalling: SignalingMode, response: Subframe) -> BearerSetupTimes {
    match signalling {
        SignalingMode::Ideal => {
            let done = start(response) + CONTROL_REGION;
            BearerSetupTimes { connected: done, ready: done }
        }
        SignalingMode::Radio => {
            let request_there = response + GRANTED + 1;
            let connected = request_there + DOWN;
            let answer_there = connected + UP + 1;
            // The STATUS report is sent first.
            let ready = answer_there + 1 + DOWN;
            BearerSetupTimes { connected: start(connected), ready: start(ready) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn alone(signalling: SignalingMode, attach: AttachProcedure) -> BearerSetupTimes {
        compute_setup_times(7, signalling, &[("phone", attach)]).unwrap()[0]
    }

    #[test]
    fn ue_attached_from_the_start_has_its_bearers_at_once() {
        assert_eq!(alone(SignalingMode::Radio, AttachProcedure::Ideal), BearerSetupTimes::default());
    }

    /// Switched on at 17 ms: master block at 20, second block at 96. The preamble follows there, the response at 100
    /// and in its control region, 3/14 ms later.
    #[test]
    fn ue_that_misses_the_second_block_waits_for_the_next() {
        let at = |switched_on| alone(SignalingMode::Ideal, AttachProcedure::KnownCell { switched_on }).ready.as_nanos();
        assert_eq!(at(ms(10)), 20_214_285);
        assert_eq!(at(ms(17)), 100_214_285);
        // The master block is sent at 20 ms, too late for the second block at 16.
        assert_eq!(at(ms(11)), 100_214_285);
        assert_eq!(at(ms(96)), 180_214_285);
    }

    /// Search until 217 ms: master block at 220, first block at 225, second at 256. Search until 257: 260, 265, 336.
    #[test]
    fn cell_search_ends_with_the_next_blocks() {
        let at = |switched_on| alone(SignalingMode::Radio, AttachProcedure::CellSearch { switched_on }).connected;
        assert_eq!(at(ms(17)), ms(268));
        assert_eq!(at(ms(57)), ms(348));
    }

    /// Of n UEs, n (51/52)^(n-1) succeed in the first attempt on average: 18.76 of 40 UEs, and 3752 over 200 cells. A
    /// UE succeeds with probability 0.469, nearly independently of others: three deviations are 3 sqrt(8000 x 0.249) =
    /// 134.
    #[test]
    fn colliding_preambles_are_sent_again_after_the_window() {
        let names: Vec<String> = (0..40).map(|number| format!("ue{number}")).collect();
        let ues: Vec<(&str, AttachProcedure)> =
            names.iter().map(|name| (name.as_str(), AttachProcedure::KnownCell { switched_on: ms(0) })).collect();
        let mut first = 0;
        for seed in 0..200 {
            for established in compute_setup_times(seed, SignalingMode::Ideal, &ues).unwrap() {
                // Either 20 ms and 3 symbols, or a number of windows of 6 ms later.
                let after = established.ready.as_nanos() - 20_214_285;
                assert_eq!(after % 6_000_000, 0);
                first += u32::from(after == 0);
            }
        }
        assert!((3752 - 134..=3752 + 134).contains(&first), "{first}");
    }

    #[test]
    fn too_many_simultaneous_ues_are_rejected_with_a_reason() {
        let names: Vec<String> = (0..1000).map(|number| format!("ue{number}")).collect();
        let ues: Vec<(&str, AttachProcedure)> =
            names.iter().map(|name| (name.as_str(), AttachProcedure::KnownCell { switched_on: ms(0) })).collect();
        let refused = compute_setup_times(1, SignalingMode::Ideal, &ues).unwrap_err().to_string();
        assert!(refused.contains("expected fewer UEs that are switched on at the same time"), "{refused}");
    }
}
