//! Assigns each free group to the UE with the highest metric ("bid") for it: the inner step of every scheduler that assigns
//! single groups.
//!
//! A UE's bid for a group depends on the CQI that it reported for the group. Reports are computed when they are read, which costs
//! far more than comparing bids. UEs are therefore evaluated in the order of an upper bound of their bids. The evaluation ends
//! when the next bound is below the lowest of the leading bids. The result equals that of evaluating all UEs: ties go to the
//! lowest RNTI in any order of evaluation.

use super::{Groups, MOST_GROUPS, NOBODY, Subframe, indices};

/// Bids of a UE for a group, by its CQI for the group. The bid for CQI 0 is ignored.
pub(super) type Bids = [f32; 16];

/// Number of candidates that share a maximum.
const BLOCK: usize = 16;

/// Buffers of an auction, reused by the next one.
///
/// Numbers are stored as their bits. The bits of positive numbers have the order of the numbers, and integers compare faster.
#[derive(Clone, Debug, Default)]
pub(super) struct Auction {
    /// Upper bound of each candidate's bids; 0 if it has been evaluated or cannot bid.
    bounds: Vec<[i32; BLOCK]>,
    /// The highest bound of each block.
    highest: Vec<i32>,
}

impl Auction {
    fn open(&mut self, bounds: impl Iterator<Item = f32>) {
        self.bounds.clear();
        self.highest.clear();
        for (index, bound) in bounds.enumerate() {
            let bound = bound.to_bits() as i32;
            if index % BLOCK == 0 {
                self.bounds.push([0; BLOCK]);
                self.highest.push(0);
            }
            self.bounds[index / BLOCK][index % BLOCK] = bound;
            self.highest[index / BLOCK] = self.highest[index / BLOCK].max(bound);
        }
    }

    /// The highest bound of the candidates that have not been evaluated; 0 if there are none.
    fn highest(&self) -> i32 {
        maximum(&self.highest)
    }

    /// Marks the first candidate with this bound, which is the highest, as evaluated. Returns its index.
    fn call(&mut self, bound: i32) -> usize {
        let first = |bounds: &[i32]| bounds.iter().position(|&one| one == bound).expect("it was found there");
        let block = first(&self.highest);
        let index = first(&self.bounds[block]);
        // Compute the maximum before the write: reading a vector just after writing a part of it stalls.
        let others = self.bounds[block].iter().enumerate().map(|(one, &bound)| if one == index { 0 } else { bound });
        self.highest[block] = others.fold(0, i32::max);
        self.bounds[block][index] = 0;
        block * BLOCK + index
    }
}

fn maximum(bounds: &[i32]) -> i32 {
    bounds.iter().fold(0, |most, &bound| bound.max(most))
}

impl Auction {
    /// Gives each free group to the candidate with the highest bid above 0. Candidates are in the order of RNTI.
    ///
    /// `bound` returns an upper bound of a UE's bids; `bids` computes the bids, and is called only for UEs that may win.
    pub(super) fn hold(
        &mut self,
        subframe: &mut Subframe<'_>,
        candidates: &[u16],
        mut bound: impl FnMut(&mut Subframe<'_>, u16) -> f32,
        mut bids: impl FnMut(&mut Subframe<'_>, u16) -> Bids,
        owners: &mut [u16; MOST_GROUPS],
    ) {
        self.open(candidates.iter().map(|&ue| bound(subframe, ue)));
        let free = subframe.free;
        // No bid exceeds that for a group that is not free. A bid of 0 does not exceed the initial 0 of a free one.
        let mut best = [i32::MAX; MOST_GROUPS];
        let mut winner = [0; MOST_GROUPS];
        for k in indices(free) {
            best[k] = 0;
        }
        // The lowest of the leading bids.
        let mut weakest = if free == 0 { i32::MAX } else { 0 };
        loop {
            let highest = self.highest();
            if highest == 0 || highest < weakest {
                break;
            }
            let index = self.call(highest);
            let ue = i32::from(candidates[index]);
            // At best a tie, which the lower RNTI wins; of others with this bound the RNTI is higher still.
            if highest == weakest && !may_win_tie(&best, &winner, weakest, ue) {
                break;
            }
            let mut bids = bids(subframe, candidates[index]);
            bids[0] = 0.0;
            let row = row(&bids, subframe.channel.subbands(candidates[index]));
            weakest = outbid(&row, ue, &mut best, &mut winner);
        }
        owners.fill(NOBODY);
        for k in indices(free).filter(|&k| best[k] > 0) {
            owners[k] = winner[k] as u16;
        }
    }
}

impl Auction {
    /// The active UE with the highest bid above 0 for the whole band.
    ///
    /// `bound` returns an upper bound of a UE's bid; `bid` computes the bid.
    pub(super) fn hold_one(
        &mut self,
        subframe: &mut Subframe<'_>,
        mut bound: impl FnMut(&Subframe<'_>, u16) -> f32,
        mut bid: impl FnMut(&mut Subframe<'_>, u16) -> f32,
    ) -> Option<u16> {
        self.open(subframe.active.iter().map(|&ue| bound(subframe, ue)));
        let mut best = (0, None);
        loop {
            let highest = self.highest();
            if highest == 0 || highest < best.0 {
                return best.1;
            }
            let ue = subframe.active[self.call(highest)];
            // At best a tie, which the lower RNTI wins; of others with this bound the RNTI is higher still.
            if highest == best.0 && best.1.is_some_and(|winner| winner < ue) {
                return best.1;
            }
            let bid = bid(subframe, ue).to_bits() as i32;
            if bid > best.0 || (bid == best.0 && bid > 0 && best.1.is_some_and(|winner| ue < winner)) {
                best = (bid, Some(ue));
            }
        }
    }
}

/// The result of an auction with one candidate: each free group for which its bid is positive.
pub(super) fn hold_with_one(subframe: &mut Subframe<'_>, ue: u16, bids: &Bids, owners: &mut [u16; MOST_GROUPS]) {
    let mut winning = 0u32;
    for (cqi, &bid) in bids.iter().enumerate() {
        winning |= if bid > 0.0 { 1 << cqi } else { 0 };
    }
    // Only CQIs from 1 to the highest that the UE can have reported.
    winning &= (2 << subframe.channel.ceiling(ue)) - 2;
    let free = subframe.free;
    if winning == 0 || free == 0 {
        return owners.fill(NOBODY);
    }
    // A loop over groups costs 190 more instructions.
    let mut won = match subframe.channel.even(ue) {
        Some(cqi) => 0u32.wrapping_sub(winning >> (cqi & 15) & 1),
        None => 0,
    };
    if won == 0 {
        for (k, &cqi) in subframe.channel.subbands(ue).iter().enumerate() {
            won |= (winning >> (cqi & 15) & 1) << k;
        }
    }
    won &= free;
    for (k, owner) in owners.iter_mut().enumerate() {
        *owner = if won & 1 << k == 0 { NOBODY } else { ue };
    }
}

/// Assigns all these groups to one UE, or to none.
pub(super) fn give_all(groups: Groups, winner: Option<u16>, owners: &mut [u16; MOST_GROUPS]) {
    owners.fill(NOBODY);
    for k in indices(groups) {
        owners[k] = winner.unwrap_or(NOBODY);
    }
}

/// A UE's bids by group.
#[inline(never)]
fn row(bids: &Bids, cqis: &[u8; MOST_GROUPS]) -> [i32; MOST_GROUPS] {
    let mut row = [0; MOST_GROUPS];
    for (bid, &cqi) in row.iter_mut().zip(cqis) {
        *bid = bids[usize::from(cqi & 15)].to_bits() as i32;
    }
    row
}

/// The groups in which a UE bids more than the best, or as much with a lower RNTI, are its own. Returns the lowest of the best
/// bids then. Without branches and in a function of its own, so that groups are compared side by side.
#[inline(never)]
fn outbid(row: &[i32; MOST_GROUPS], ue: i32, best: &mut [i32; MOST_GROUPS], winner: &mut [i32; MOST_GROUPS]) -> i32 {
    let mut weakest = i32::MAX;
    for ((&bid, best), winner) in row.iter().zip(best).zip(winner) {
        let wins = -i32::from((bid > *best) | ((bid == *best) & (ue < *winner)));
        *best = (bid & wins) | (*best & !wins);
        *winner = (ue & wins) | (*winner & !wins);
        weakest = weakest.min(*best);
    }
    weakest
}

fn may_win_tie(best: &[i32; MOST_GROUPS], winner: &[i32; MOST_GROUPS], weakest: i32, ue: i32) -> bool {
    best.iter().zip(winner).any(|(&bid, &winner)| bid == weakest && ue < winner)
}

/// The most that a UE may bid with CQIs up to this one.
///
/// Not just the bid at this CQI: tables of transport block sizes have dips (one resource block, I_TBS 6, of
/// TS 36.213).
pub(super) fn running_maximum(bids: &Bids) -> Bids {
    let mut most = 0.0;
    std::array::from_fn(|cqi| {
        if cqi > 0 && bids[cqi] > most {
            most = bids[cqi];
        }
        most
    })
}
