//! Each free group to the UE that bids most for it: the inner step of every scheduler that looks at single groups.
//!
//! A UE's bid for a group depends on the CQI that it reported there. Reports are worked out when read, which costs far
//! more than comparing bids, so UEs are called in the order of the most that they could bid, and when that does not
//! reach the weakest of the bids that lead, the rest need not be asked. The result is the same as asking all: ties go
//! to the lowest RNTI whatever the order of calls.

use super::{Groups, MOST_GROUPS, NOBODY, Subframe, indices};

/// Bids of a UE for one group, by the CQI there. That of CQI 0 does not count.
pub(super) type Bids = [f32; 16];

/// Candidates that share a maximum.
const BLOCK: usize = 16;

/// The room for an auction, kept from one to the next.
///
/// Numbers are kept as their bits: those of positive ones order as the numbers do, and integers are compared faster.
#[derive(Clone, Debug, Default)]
pub(super) struct Auction {
    /// The most that each candidate could bid; 0: has been called, or cannot bid.
    bounds: Vec<[i32; BLOCK]>,
    /// The highest of each block of them.
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

    /// The highest bound of those that have not been called; 0 if there is none.
    fn highest(&self) -> i32 {
        maximum(&self.highest)
    }

    /// Calls the first candidate with this bound, which is the highest. Returns its index.
    fn call(&mut self, bound: i32) -> usize {
        let first = |bounds: &[i32]| bounds.iter().position(|&one| one == bound).expect("it was found there");
        let block = first(&self.highest);
        let index = first(&self.bounds[block]);
        // Before it is struck out: what was just written to memory cannot be read at once as a part of a vector.
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
    /// `bound` is the most that a UE may bid for any group; `bids` works out what it does, of the UEs that may win.
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
        // Nobody reaches the bid for a group that is not free; 0 for a free one is not beaten by a bid of 0.
        let mut best = [i32::MAX; MOST_GROUPS];
        let mut winner = [0; MOST_GROUPS];
        for k in indices(free) {
            best[k] = 0;
        }
        // The lowest of the best bids: what has to be reached.
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
    /// `bound` is the most that a UE may bid; `bid` works out what it does.
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

/// What an auction gives its only candidate: each free group for which it bids anything.
pub(super) fn hold_with_one(subframe: &mut Subframe<'_>, ue: u16, bids: &Bids, owners: &mut [u16; MOST_GROUPS]) {
    let mut winning = 0u32;
    for (cqi, &bid) in bids.iter().enumerate() {
        winning |= if bid > 0.0 { 1 << cqi } else { 0 };
    }
    // Those that are neither 0 nor above what the UE can have reported.
    winning &= (2 << subframe.channel.ceiling(ue)) - 2;
    let free = subframe.free;
    if winning == 0 || free == 0 {
        return owners.fill(NOBODY);
    }
    // To look at groups one by one takes 190 instructions more.
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

/// Gives all these groups to one UE, or to nobody.
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
