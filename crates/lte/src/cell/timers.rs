//! The timers of a cell's UEs. Each UE has one entry, for its earliest timer.
//!
//! A ring contains, for each of the next subframes, the UEs whose timer expires in it, so that a subframe processes
//! only these UEs. Timers change far more often than they expire, nearly always to a later time. The entry then stays
//! in place, and is moved when the ring reaches it before the timer expires. A timer that expires after the end of the
//! ring is in the last entry.

use super::Bits;
use crate::subframe::subframe_from;
use fullpipe_units::Instant;

/// Length of the ring in subframes: longer than t-Reordering, longer than most RLC timers, and a power of two.
const SUBFRAMES: u64 = 128;

#[derive(Debug)]
pub(super) struct Timers {
    /// Lower bound of the expiry of each UE's timers.
    due: Vec<Instant>,
    ring: Vec<Bits>,
    /// An empty set that replaces a processed entry.
    empty: Bits,
    /// The first subframe whose timers have not expired.
    next: u64,
}

impl Timers {
    pub(super) fn new(ues: usize) -> Self {
        let ring = (0..SUBFRAMES).map(|_| Bits::new(ues)).collect();
        Timers { due: vec![Instant::NEVER; ues], ring, empty: Bits::new(ues), next: 0 }
    }

    /// Adds a timer of this UE that expires at `at`; earlier ones stay.
    #[inline]
    pub(super) fn add(&mut self, ue: usize, at: Instant) {
        if at < self.due[ue] {
            self.put(ue, at);
        }
    }

    /// Sets the next timer of this UE to `at`.
    #[inline]
    pub(super) fn put(&mut self, ue: usize, at: Instant) {
        self.due[ue] = at;
        if !at.is_never() {
            let place = subframe_from(at).clamp(self.next, self.next + SUBFRAMES - 1);
            self.ring[(place % SUBFRAMES) as usize].set(ue, true);
        }
    }

    /// Appends, in order, the UEs whose timer expires up to the beginning of this subframe. They have no timer until
    /// the next [`put`](Self::put).
    pub(super) fn expire(&mut self, subframe: u64, expired: &mut Vec<u16>) {
        let now = crate::subframe::start(subframe);
        let (first, end) = (self.next, subframe + 1);
        self.next = end;
        // One pass over the ring covers all entries.
        for of in first..end.min(first + SUBFRAMES) {
            let place = (of % SUBFRAMES) as usize;
            if self.ring[place].is_empty() {
                continue;
            }
            let empty = std::mem::take(&mut self.empty);
            let mut ues = std::mem::replace(&mut self.ring[place], empty);
            for ue in ues.iter() {
                match self.due[usize::from(ue)] {
                    at if at <= now => {
                        self.due[usize::from(ue)] = Instant::NEVER;
                        expired.push(ue);
                    }
                    later => self.put(usize::from(ue), later),
                }
            }
            ues.clear();
            self.empty = ues;
        }
        if end - first > 1 {
            expired.sort_unstable();
        }
    }

    /// Returns a lower bound of the next expiry.
    pub(super) fn earliest(&self) -> Instant {
        self.due.iter().copied().min().unwrap_or(Instant::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subframe::start;
    use fullpipe_units::Duration;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a list of all timers. After a UE's timer expires, its next one is set, as a cell does.
        #[test]
        fn timers_expire_in_their_subframe(
            steps in prop::collection::vec(
                (prop::collection::vec((0usize..70, 0u64..400_000_000), 0..6), prop_oneof![9 => 1u64..3, 1 => 1u64..700]),
                1..120,
            ),
        ) {
            let mut timers = Timers::new(70);
            let mut all = [Instant::NEVER; 70];
            let mut subframe = 0;
            for (changes, gap) in steps {
                for (ue, nanoseconds) in changes {
                    let at = start(subframe) + Duration::from_nanos(nanoseconds);
                    all[ue] = all[ue].min(at);
                    timers.add(ue, at);
                }
                prop_assert_eq!(timers.earliest(), *all.iter().min().unwrap());
                subframe += gap;
                let mut expired = Vec::new();
                timers.expire(subframe, &mut expired);
                let expected: Vec<u16> = (0..70u16).filter(|&ue| all[usize::from(ue)] <= start(subframe)).collect();
                prop_assert_eq!(&expired, &expected);
                for ue in expired {
                    // Some continue at once, some after the length of the ring, some not at all.
                    let next = match ue % 3 {
                        0 => start(subframe) + Duration::from_millis(10),
                        1 => start(subframe) + Duration::from_millis(u64::from(ue) * 7),
                        _ => Instant::NEVER,
                    };
                    all[usize::from(ue)] = next;
                    timers.put(usize::from(ue), next);
                }
            }
        }
    }
}
