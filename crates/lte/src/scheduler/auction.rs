//! Assigns each free group to the UE with the highest metric ("bid") for it: the inner step of every scheduler that
//! assigns single groups.
//!
//! A UE's bid for a group depends on the CQI that it reported for the group. Reports are computed on demand, which
//! costs far more than the comparison of bids. UEs are therefore evaluated in the order of an upper bound of their
//! bids. The evaluation ends when the next bound is below the lowest of the leading bids. The result equals that of
//! evaluating all UEs: ties go to the lowest RNTI in any order of evaluation.

use super::{GroupSet, MAX_GROUPS, NO_OWNER, SubframeContext, group_indices};
use crate::radio::bits_of;

/// Bids of a UE for a group, by its CQI for the group. The bid for CQI 0 is ignored.
pub(super) type Bids = [f32; 16];

/// Number of candidates that share a maximum.
pub(super) const BLOCK: usize = 16;

/// Upper bounds of the bids of an auction's candidates, kept for the next auction with the same candidates. In a
/// saturated cell the candidates rarely change, and only the bounds of served UEs change. (With 50 UEs a subframe takes
/// 800 instructions less.)
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BidBounds {
    candidates: Vec<u16>,
    /// The bound of each candidate, padded with zeros to a whole number of blocks.
    bounds: Vec<f32>,
    /// The highest bound of each block.
    highest: Vec<f32>,
}

impl BidBounds {
    /// Whether the bounds are those of these candidates.
    pub(super) fn is_of(&self, candidates: &[u16]) -> bool {
        self.candidates == candidates
    }

    /// Sets the bounds of other candidates.
    pub(super) fn set_all(&mut self, candidates: &[u16], bound: impl FnMut(&u16) -> f32) {
        self.candidates.clear();
        self.candidates.extend_from_slice(candidates);
        self.bounds.clear();
        self.bounds.extend(candidates.iter().map(bound));
        self.bounds.resize(self.bounds.len().next_multiple_of(BLOCK), 0.0);
        self.highest.clear();
        self.highest.extend(self.bounds.as_chunks::<BLOCK>().0.iter().map(|block| maximum(block)));
    }

    /// Sets the bound of one UE, if it is a candidate.
    pub(super) fn set(&mut self, ue: u16, bound: impl FnOnce(u16) -> f32) {
        if let Ok(index) = self.candidates.binary_search(&ue) {
            self.bounds[index] = bound(ue);
            let block = index / BLOCK;
            self.highest[block] = maximum(&self.bounds[block * BLOCK..(block + 1) * BLOCK]);
        }
    }

    /// Removes the candidates.
    pub(super) fn clear(&mut self) {
        self.candidates.clear();
        self.bounds.clear();
        self.highest.clear();
    }
}

/// Buffers of an auction, reused by the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Auction {
    /// Upper bound of each candidate's bids, padded with zeros to a whole number of blocks; 0 if it has been evaluated
    /// or cannot bid.
    bounds: Vec<f32>,
    /// The highest bound of each block.
    highest: Vec<f32>,
    /// Blocks whose bounds have been replaced by lower ones.
    lowered: Vec<bool>,
}

impl Auction {
    /// Opens an auction for candidates with these upper bounds of their bids.
    pub(super) fn open(&mut self, bounds: impl Iterator<Item = f32>) {
        self.bounds.clear();
        self.bounds.extend(bounds);
        self.bounds.resize(self.bounds.len().next_multiple_of(BLOCK), 0.0);
        self.highest.clear();
        self.highest.extend(self.bounds.as_chunks::<BLOCK>().0.iter().map(|block| maximum(block)));
        self.lowered.clear();
        self.lowered.resize(self.highest.len(), false);
    }

    /// Opens an auction with kept bounds.
    pub(super) fn open_with(&mut self, opening: &BidBounds) {
        self.bounds.clone_from(&opening.bounds);
        self.highest.clone_from(&opening.highest);
        self.lowered.clear();
        self.lowered.resize(self.highest.len(), false);
    }

    /// The highest bound of the candidates that have not been evaluated; 0 if there are none.
    fn highest(&self) -> f32 {
        maximum(&self.highest)
    }

    /// The first block with this bound, which is the highest one.
    fn block_of(&self, bound: f32) -> usize {
        first(&self.highest, bound)
    }

    /// Marks the first candidate with this bound, which is the highest one, as evaluated. Returns its index.
    fn call(&mut self, block: usize, bound: f32) -> usize {
        let bounds = &mut self.bounds[block * BLOCK..(block + 1) * BLOCK];
        let index = first(bounds, bound);
        bounds[index] = 0.0;
        self.highest[block] = maximum(bounds);
        block * BLOCK + index
    }
}

/// Returns the index of a bound, which must be among `bounds`. Bits are compared, since integers need fewer
/// instructions.
#[inline]
fn first(bounds: &[f32], bound: f32) -> usize {
    bounds.iter().position(|one| one.to_bits() == bound.to_bits()).expect("the bound is in the block")
}

/// The highest bound, or 0.
#[inline]
fn maximum(bounds: &[f32]) -> f32 {
    let higher = |a: f32, b: f32| if a > b { a } else { b };
    let mut lanes = [0.0; 4];
    let (rows, rest) = bounds.as_chunks::<4>();
    for row in rows {
        for lane in 0..4 {
            lanes[lane] = higher(row[lane], lanes[lane]);
        }
    }
    for &bound in rest {
        lanes[0] = higher(bound, lanes[0]);
    }
    higher(higher(lanes[0], lanes[1]), higher(lanes[2], lanes[3]))
}

impl Auction {
    /// Assigns each free group to the candidate with the highest bid above 0. Candidates are in order of RNTI.
    ///
    /// `bound` returns an upper bound of a UE's bids; `bids` computes the bids, and is called only for UEs that may
    /// win.
    pub(super) fn hold(
        &mut self,
        subframe: &mut SubframeContext<'_>,
        candidates: &[u16],
        mut bound: impl FnMut(&mut SubframeContext<'_>, u16) -> f32,
        bids: impl FnMut(&mut SubframeContext<'_>, u16) -> Bids,
        owners: &mut [u16; MAX_GROUPS],
    ) {
        self.open(candidates.iter().map(|&ue| bound(subframe, ue)));
        // Bounds are not lowered.
        self.lowered.fill(true);
        self.decide(subframe, candidates, |_, _, _| {}, bids, owners);
    }

    /// Decides the open auction. `lower` replaces the bounds of some UEs by lower ones. It is called for a block of UEs
    /// if one of them may win by its first bound.
    pub(super) fn decide(
        &mut self,
        subframe: &mut SubframeContext<'_>,
        candidates: &[u16],
        mut lower: impl FnMut(&mut SubframeContext<'_>, &[u16], &mut [f32]),
        mut bids: impl FnMut(&mut SubframeContext<'_>, u16) -> Bids,
        owners: &mut [u16; MAX_GROUPS],
    ) {
        let free = subframe.free;
        // No bid exceeds infinity, which stands for a group that is not free. A bid of 0 does not exceed the initial 0 of a free
        // group.
        let mut best = [f32::INFINITY; MAX_GROUPS];
        let mut winner = [0; MAX_GROUPS];
        for (k, best) in best.iter_mut().enumerate() {
            *best = if free & 1 << k == 0 { f32::INFINITY } else { 0.0 };
        }
        // The lowest of the leading bids.
        let mut weakest = if free == 0 { f32::INFINITY } else { 0.0 };
        loop {
            let highest = self.highest();
            if highest == 0.0 || highest < weakest {
                break;
            }
            let block = self.block_of(highest);
            if !self.lowered[block] {
                self.lowered[block] = true;
                let from = block * BLOCK;
                let ues = &candidates[from..candidates.len().min(from + BLOCK)];
                lower(subframe, ues, &mut self.bounds[from..from + ues.len()]);
                self.highest[block] = maximum(&self.bounds[from..from + BLOCK]);
                continue;
            }
            let index = self.call(block, highest);
            let (number, ue) = (candidates[index], u32::from(candidates[index]));
            // At best it is a tie, which the lower RNTI wins. Other candidates with this bound have higher RNTIs.
            if highest == weakest && !may_win_tie(&best, &winner, weakest, ue) {
                break;
            }
            let mut bids = bids(subframe, number);
            bids[0] = 0.0;
            // The CQI matters only in groups that the UE may win: 3 of 25 groups on average, with 500 UEs.
            let (bounds, open) = subframe.channel.subband_cqi_bounds(number);
            let might = match open {
                0 => row(&bids, bounds),
                _ => row(&running_maximum(&bids), bounds),
            };
            let contested = contested(&might, ue, &best, &winner);
            if contested == 0 {
                continue;
            }
            let cqis = if open & contested == 0 { bounds } else { subframe.channel.subband_cqis_of(number, contested) };
            for k in group_indices(contested) {
                let bid = bids[usize::from(cqis[k] & 15)];
                if bid > best[k] || (bid == best[k] && ue < winner[k]) {
                    (best[k], winner[k]) = (bid, ue);
                }
            }
            weakest = minimum(&best);
        }
        for (k, owner) in owners.iter_mut().enumerate() {
            let won = free & 1 << k != 0 && best[k] > 0.0;
            *owner = if won { winner[k] as u16 } else { NO_OWNER };
        }
    }
}

impl Auction {
    /// Returns the active UE with the highest bid above 0 for the whole band.
    ///
    /// `bound` returns an upper bound of a UE's bid; `bid` computes the bid.
    pub(super) fn hold_one(
        &mut self,
        subframe: &mut SubframeContext<'_>,
        mut bound: impl FnMut(&SubframeContext<'_>, u16) -> f32,
        mut bid: impl FnMut(&mut SubframeContext<'_>, u16) -> f32,
    ) -> Option<u16> {
        self.open(subframe.active.iter().map(|&ue| bound(subframe, ue)));
        let mut best = (0.0, None);
        loop {
            let highest = self.highest();
            if highest == 0.0 || highest < best.0 {
                return best.1;
            }
            let ue = subframe.active[self.call(self.block_of(highest), highest)];
            // At best it is a tie, which the lower RNTI wins. Other candidates with this bound have higher RNTIs.
            if highest == best.0 && best.1.is_some_and(|winner| winner < ue) {
                return best.1;
            }
            let bid = bid(subframe, ue);
            if bid > best.0 || (bid == best.0 && bid > 0.0 && best.1.is_some_and(|winner| ue < winner)) {
                best = (bid, Some(ue));
            }
        }
    }
}

/// The result of an auction with one candidate: each free group for which its bid is positive.
pub(super) fn hold_with_one(subframe: &mut SubframeContext<'_>, ue: u16, bids: &Bids, owners: &mut [u16; MAX_GROUPS]) {
    let mut winning = 0u32;
    for (cqi, &bid) in bids.iter().enumerate() {
        winning |= if bid > 0.0 { 1 << cqi } else { 0 };
    }
    // Only CQIs from 1 to the highest that the UE can have reported.
    winning &= (2 << subframe.channel.max_cqi(ue)) - 2;
    let free = subframe.free;
    if winning == 0 || free == 0 {
        return owners.fill(NO_OWNER);
    }
    // A loop over groups costs 190 more instructions.
    let mut won = match subframe.channel.flat_cqi(ue) {
        Some(cqi) => 0u32.wrapping_sub(winning >> (cqi & 15) & 1),
        None => 0,
    };
    if won == 0 {
        for (k, &cqi) in subframe.channel.subband_cqis(ue).iter().enumerate() {
            won |= (winning >> (cqi & 15) & 1) << k;
        }
    }
    won &= free;
    for (k, owner) in owners.iter_mut().enumerate() {
        *owner = if won & 1 << k == 0 { NO_OWNER } else { ue };
    }
}

/// Assigns all these groups to one UE, or to none.
pub(super) fn give_all(groups: GroupSet, winner: Option<u16>, owners: &mut [u16; MAX_GROUPS]) {
    owners.fill(NO_OWNER);
    for k in group_indices(groups) {
        owners[k] = winner.unwrap_or(NO_OWNER);
    }
}

/// A UE's bids by group.
#[inline(never)]
fn row(bids: &Bids, cqis: &[u8; MAX_GROUPS]) -> [f32; MAX_GROUPS] {
    let mut row = [0.0; MAX_GROUPS];
    for (bid, &cqi) in row.iter_mut().zip(cqis) {
        *bid = bids[usize::from(cqi & 15)];
    }
    row
}

/// The groups that a UE may win if its bids do not exceed `might`: those with a lower best bid, or an equal one of a
/// higher RNTI. It has no branches and is a separate function, so that the compiler vectorizes over groups.
#[inline(never)]
fn contested(might: &[f32; MAX_GROUPS], ue: u32, best: &[f32; MAX_GROUPS], winner: &[u32; MAX_GROUPS]) -> GroupSet {
    let mut may_win = [0; MAX_GROUPS];
    for (((may_win, &bid), &best), &winner) in may_win.iter_mut().zip(might).zip(best).zip(winner) {
        *may_win = u8::from((bid > best) | ((bid == best) & (ue < winner)));
    }
    bits_of(&may_win)
}

/// The lowest bid.
#[inline]
fn minimum(bids: &[f32; MAX_GROUPS]) -> f32 {
    let lower = |a: f32, b: f32| if a < b { a } else { b };
    let mut lanes = [f32::INFINITY; 8];
    for row in bids.as_chunks::<8>().0 {
        for lane in 0..8 {
            lanes[lane] = lower(row[lane], lanes[lane]);
        }
    }
    lanes.into_iter().fold(f32::INFINITY, lower)
}

fn may_win_tie(best: &[f32; MAX_GROUPS], winner: &[u32; MAX_GROUPS], weakest: f32, ue: u32) -> bool {
    best.iter().zip(winner).any(|(&bid, &winner)| bid == weakest && ue < winner)
}

/// The highest bid of a UE with CQIs up to each CQI.
///
/// It is not simply the bid at this CQI, since the tables of transport block sizes have dips (one resource block, I_TBS
/// 6, of TS 36.213).
pub(super) fn running_maximum(bids: &Bids) -> Bids {
    let mut most = 0.0;
    std::array::from_fn(|cqi| {
        if cqi > 0 && bids[cqi] > most {
            most = bids[cqi];
        }
        most
    })
}
