//! Connection set-up: from the moment in which a UE is switched on to that in which its bearers carry packets.
//!
//! **Finding the cell.** A UE that knows its cell waits for the master information block, which is sent every 10 ms. One that
//! does not measures for 200 ms, and before it camps on the cell it also needs the first system information block, sent every
//! 20 ms. Either then waits for the second system information block, which tells how to access the cell: the first 16 ms
//! after the cell has begun, then every 80 ms.
//!
//! **Random access** (36.321 section 5.1). The UE sends one of 52 preambles, drawn for each attempt. A preamble that two or
//! more UEs send in one subframe helps none of them. The eNB hears a preamble one subframe after it began and so misses that
//! subframe's decisions; in the next it decides on the response, which is on the air two subframes later: four after the
//! preamble, within the response window (subframes three to five after it). A UE without a response tries again when the
//! window is over, up to 50 times.
//!
//! **Connection** (36.331 section 5.3.3). With ideal signalling, messages take no time: the response comes with the
//! control region of its subframe, and then everything is done. With signalling by radio each message takes the time that the
//! MAC of an idle cell takes for it, from the timing in `cell.rs`:
//!
//! * the response grants the connection request (message 3) four subframes later; it is decoded 13 symbols into that subframe;
//! * the connection set-up (message 4) is decided at the next subframe, on the air two later, there at its end: the UE is
//!   connected;
//! * its answer has to be reported and granted like all that comes to an idle UE. It is there 11 subframes and 13 symbols
//!   after the boundary at which it was ready;
//! * the answer came over RLC AM, which owes it a STATUS report; this takes the next opportunity, and the reconfiguration
//!   that establishes the bearers the one after. When that arrives the bearers carry packets.
//!
//! Messages of signalling are no load to the cell and are not lost; how many responses and grants a subframe has room for is
//! not asked.
//!
//! Periods, delays and the sequence are those of ns-3's `lte` module (its documentation and measured time lines), which sends
//! the second system information block less often than a network would.

use crate::radio::Invalid;
use crate::subframe::{start, subframe_from};
use fullpipe_units::{Duration, Instant, Stream};
use std::collections::{BTreeMap, BTreeSet};

/// How a UE gets to its cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attach {
    /// It has its bearers when the run begins.
    #[default]
    Ideal,
    /// It knows its cell.
    KnownCell {
        /// When it is switched on.
        switched_on: Instant,
    },
    /// It measures cells, and finds its own to be the best.
    CellSearch {
        /// When it is switched on.
        switched_on: Instant,
    },
}

/// How messages of RRC are carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signalling {
    /// At once.
    #[default]
    Ideal,
    /// In the time that they take over the radio of an idle cell.
    Radio,
}

/// When a UE came to its bearers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Established {
    /// It is in RRC_CONNECTED.
    pub connected: Instant,
    /// Its bearers carry packets.
    pub ready: Instant,
}

type Subframe = u64;

/// Between two master information blocks.
const MASTER_PERIOD: Subframe = 10;
/// The first of the first system information blocks, and between two.
const FIRST_BLOCK: (Subframe, Subframe) = (5, 20);
/// The first of the second system information blocks, and between two.
const SECOND_BLOCK: (Subframe, Subframe) = (16, 80);
/// How long a UE measures cells before it takes one.
const SEARCH: Subframe = 200;
/// Preambles of contention.
const PREAMBLES: u64 = 52;
const MOST_ATTEMPTS: u32 = 50;
/// From a preamble to the end of the response window.
const WINDOW_ENDS: Subframe = 3 + 3;
/// From a preamble to its response: on the air, missed, and two subframes from the decision to the air.
const RESPONSE: Subframe = 1 + 1 + 2;
/// From a grant to what it granted.
const GRANTED: Subframe = 4;
/// From what comes just before a subframe to its end on the downlink: two subframes from the decision to the air, one on it.
const DOWN: Subframe = 2 + 1;
/// From a report made at the beginning of a subframe to the subframe in which the data is sent: the report waits four and is
/// one on the air, the grant takes two and what it granted four more.
const UP: Subframe = 4 + 1 + 2 + GRANTED;
/// The control region: three of 14 symbols.
const CONTROL_REGION: Duration = Duration::from_nanos(3 * 1_000_000 / 14);

/// When each UE comes to its bearers, of UEs of one cell: names (for their random streams) and how they attach.
///
/// # Errors
///
/// So many attach at once that some collide in every attempt.
///
/// ```
/// use fullpipe_lte::connection::{establish, Attach, Signalling};
/// use fullpipe_units::{Duration, Instant};
///
/// let attach = Attach::KnownCell { switched_on: Instant::ZERO };
/// let times = establish(1, Signalling::Radio, &[("phone", attach)]).unwrap();
/// assert_eq!(times[0].ready, Instant::ZERO + Duration::from_millis(44));
/// ```
pub fn establish(seed: u64, signalling: Signalling, ues: &[(&str, Attach)]) -> Result<Vec<Established>, Invalid> {
    let mut established = vec![Established::default(); ues.len()];
    // UEs by the subframe of their next preamble, with their streams and how often they have tried.
    let mut due: BTreeMap<Subframe, Vec<(usize, Stream, u32)>> = BTreeMap::new();
    for (number, (name, attach)) in ues.iter().enumerate() {
        if let Some(subframe) = informed(*attach) {
            due.entry(subframe).or_default().push((number, Stream::new(seed, name, "random access"), 1));
        }
    }
    while let Some((subframe, mut attempts)) = due.pop_first() {
        let drawn: Vec<u64> = attempts.iter_mut().map(|(_, stream, _)| stream.below(PREAMBLES)).collect();
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
                return Err(Invalid::new(format!(
                    "UE {} and others attach at the same time, and in {MOST_ATTEMPTS} attempts another UE has always sent the \
                     same of {PREAMBLES} preambles; expected UEs that are switched on at different times",
                    ues[number].0
                )));
            } else {
                due.entry(subframe + WINDOW_ENDS).or_default().push((number, stream, attempt + 1));
            }
        }
    }
    Ok(established)
}

/// The first of `(first, period)` in or after a subframe.
fn next_of((first, period): (Subframe, Subframe), from: Subframe) -> Subframe {
    first + from.saturating_sub(first).div_ceil(period) * period
}

/// The subframe with whose beginning a UE knows how to access its cell; nothing if it need not.
fn informed(attach: Attach) -> Option<Subframe> {
    let camped = match attach {
        Attach::Ideal => return None,
        Attach::KnownCell { switched_on } => next_of((0, MASTER_PERIOD), subframe_from(switched_on)),
        Attach::CellSearch { switched_on } => {
            let master = next_of((0, MASTER_PERIOD), subframe_from(switched_on) + SEARCH);
            next_of(FIRST_BLOCK, master)
        }
    };
    Some(next_of(SECOND_BLOCK, camped))
}

/// Random access was answered in a subframe.
fn connect(signalling: Signalling, response: Subframe) -> Established {
    match signalling {
        Signalling::Ideal => {
            let done = start(response) + CONTROL_REGION;
            Established { connected: done, ready: done }
        }
        Signalling::Radio => {
            let request_there = response + GRANTED + 1;
            let connected = request_there + DOWN;
            let answer_there = connected + UP + 1;
            // The STATUS report goes first.
            let ready = answer_there + 1 + DOWN;
            Established { connected: start(connected), ready: start(ready) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn alone(signalling: Signalling, attach: Attach) -> Established {
        establish(7, signalling, &[("phone", attach)]).unwrap()[0]
    }

    #[test]
    fn who_is_attached_from_the_beginning_has_bearers_at_once() {
        assert_eq!(alone(Signalling::Radio, Attach::Ideal), Established::default());
    }

    /// Switched on at 17 ms: master block at 20, second block at 96; preamble there, response at 100 and in its control region
    /// 3/14 ms later.
    #[test]
    fn who_misses_the_second_block_waits_for_the_next() {
        let at = |switched_on| alone(Signalling::Ideal, Attach::KnownCell { switched_on }).ready.as_nanos();
        assert_eq!(at(ms(10)), 20_214_285);
        assert_eq!(at(ms(17)), 100_214_285);
        // The master block comes at 20 ms, too late for the second block of 16.
        assert_eq!(at(ms(11)), 100_214_285);
        assert_eq!(at(ms(96)), 180_214_285);
    }

    /// Searching until 217 ms: master block at 220, first block at 225, second at 256 in any case; until 257: 260, 265, 336.
    #[test]
    fn a_search_ends_with_the_next_blocks() {
        let at = |switched_on| alone(Signalling::Radio, Attach::CellSearch { switched_on }).connected;
        assert_eq!(at(ms(17)), ms(268));
        assert_eq!(at(ms(57)), ms(348));
    }

    /// Preambles of n UEs: the first attempts that nobody disturbs are n (51/52)^(n-1) in the mean. For 40 UEs 18.76, and over
    /// 200 cells 3752; a UE is alone with probability 0.469, UEs nearly independent: three deviations are 3 sqrt(8000 x 0.249)
    /// = 134.
    #[test]
    fn who_sends_the_preamble_of_another_tries_again_after_the_window() {
        let names: Vec<String> = (0..40).map(|number| format!("ue{number}")).collect();
        let ues: Vec<(&str, Attach)> =
            names.iter().map(|name| (name.as_str(), Attach::KnownCell { switched_on: ms(0) })).collect();
        let mut first = 0;
        for seed in 0..200 {
            for established in establish(seed, Signalling::Ideal, &ues).unwrap() {
                // 20 ms and 3 symbols, or a number of windows of 6 ms later.
                let after = established.ready.as_nanos() - 20_214_285;
                assert_eq!(after % 6_000_000, 0);
                first += u32::from(after == 0);
            }
        }
        assert!((3752 - 134..=3752 + 134).contains(&first), "{first}");
    }

    #[test]
    fn too_many_at_once_are_refused_with_a_sentence() {
        let names: Vec<String> = (0..1000).map(|number| format!("ue{number}")).collect();
        let ues: Vec<(&str, Attach)> =
            names.iter().map(|name| (name.as_str(), Attach::KnownCell { switched_on: ms(0) })).collect();
        let refused = establish(1, Signalling::Ideal, &ues).unwrap_err().to_string();
        assert!(refused.contains("switched on at different times"), "{refused}");
    }
}
