//! Each free group to the UE that bids most for it: the inner step of every scheduler that looks at single groups.
//!
//! A UE's bid for a group depends on the CQI that it reported there. Reports are worked out when read, which costs far
//! more than comparing bids, so UEs are called in the order of the most that they could bid, and when that does not
//! reach the weakest of the bids that lead, the rest need not be asked. The result is the same as asking all: ties go
//! to the lowest RNTI whatever the order of calls.

use super::{Groups, MOST_GROUPS, NOBODY, Subframe, indices};

/// Bids of a UE for one group, by the CQI there. That of CQI 0 does not count.
pub(super) type Bids = [f32; 16];

/// The room for an auction, kept from one to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Auction {
    /// The most that each candidate could bid, as the bits of a positive number (which order as the numbers do, and
    /// integers are compared faster); 0: has been called, or cannot bid.
    bounds: Vec<i32>,
}

impl Auction {
    /// Gives each free group to the candidate with the highest bid above 0.
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
        self.bounds.clear();
        self.bounds.extend(candidates.iter().map(|&ue| bound(subframe, ue).to_bits() as i32));
        let free = subframe.free;
        // Groups that are not free have a bid that nobody reaches.
        let mut best = [f32::INFINITY; MOST_GROUPS];
        let mut winner = [u32::MAX; MOST_GROUPS];
        for k in indices(free) {
            best[k] = 0.0;
        }
        loop {
            let highest = self.bounds.iter().fold(0, |most, &bound| bound.max(most));
            let weakest = best.iter().fold(i32::MAX, |least, bid| (bid.to_bits() as i32).min(least));
            if highest == 0 || highest < weakest {
                break;
            }
            let index = self.bounds.iter().position(|&bound| bound == highest).expect("it was found there");
            self.bounds[index] = 0;
            let ue = u32::from(candidates[index]);
            // At best a tie, which the lower RNTI wins.
            if highest == weakest && !may_win_tie(&best, &winner, weakest, ue) {
                continue;
            }
            let mut bids = bids(subframe, candidates[index]);
            bids[0] = 0.0;
            let cqis = subframe.channel.subbands(candidates[index]);
            let mut row = [0.0; MOST_GROUPS];
            for (bid, &cqi) in row.iter_mut().zip(cqis) {
                *bid = bids[usize::from(cqi & 15)];
            }
            for k in 0..MOST_GROUPS {
                let wins = (row[k] > best[k]) | ((row[k] == best[k]) & (ue < winner[k]) & (row[k] > 0.0));
                best[k] = if wins { row[k] } else { best[k] };
                winner[k] = if wins { ue } else { winner[k] };
            }
        }
        write(free, &winner, owners);
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
        self.bounds.clear();
        self.bounds.extend(subframe.active.iter().map(|&ue| bound(subframe, ue).to_bits() as i32));
        let mut best = (0, None);
        loop {
            let highest = self.bounds.iter().fold(0, |most, &bound| bound.max(most));
            if highest == 0 || highest < best.0 {
                return best.1;
            }
            let index = self.bounds.iter().position(|&bound| bound == highest).expect("it was found there");
            self.bounds[index] = 0;
            let ue = subframe.active[index];
            // At best a tie, which the lower RNTI wins.
            if highest == best.0 && best.1.is_some_and(|winner| winner < ue) {
                continue;
            }
            let bid = bid(subframe, ue).to_bits() as i32;
            if bid > best.0 || (bid == best.0 && bid > 0 && best.1.is_some_and(|winner| ue < winner)) {
                best = (bid, Some(ue));
            }
        }
    }
}

/// Gives all these groups to one UE, or to nobody.
pub(super) fn give_all(groups: Groups, winner: Option<u16>, owners: &mut [u16; MOST_GROUPS]) {
    owners.fill(NOBODY);
    for k in indices(groups) {
        owners[k] = winner.unwrap_or(NOBODY);
    }
}

fn may_win_tie(best: &[f32; MOST_GROUPS], winner: &[u32; MOST_GROUPS], weakest: i32, ue: u32) -> bool {
    best.iter().zip(winner).any(|(bid, &winner)| bid.to_bits() as i32 == weakest && ue < winner)
}

fn write(free: Groups, winner: &[u32; MOST_GROUPS], owners: &mut [u16; MOST_GROUPS]) {
    owners.fill(NOBODY);
    for k in indices(free) {
        // Nobody of `winner` is nobody of `owners`.
        owners[k] = winner[k] as u16;
    }
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
