//! The timers of a cell's UEs: one for each, which is the earliest of all that it has.
//!
//! A ring has, for each of the next subframes, the UEs whose timer expires in it: a subframe looks at those alone. Timers change far
//! more often than they expire, nearly always to a later instant, and stay in their place then: what is found there too early is
//! moved on. A timer beyond the ring waits in its last place.

use super::Bits;
use crate::subframe::subframe_from;
use fullpipe_units::Instant;

/// Subframes of the ring: longer than t-Reordering, most timers of RLC, and a power of two.
const SUBFRAMES: u64 = 128;

#[derive(Debug)]
pub(super) struct Timers {
    /// No timer of a UE expires before.
    due: Vec<Instant>,
    ring: Vec<Bits>,
    /// Takes the place of those that are looked at.
    empty: Bits,
    /// The first subframe whose timers have not expired.
    next: u64,
}

impl Timers {
    pub(super) fn new(ues: usize) -> Self {
        let ring = (0..SUBFRAMES).map(|_| Bits::new(ues)).collect();
        Timers { due: vec![Instant::NEVER; ues], ring, empty: Bits::new(ues), next: 0 }
    }

    /// A timer of this UE expires at `at`; others of it may expire before.
    #[inline]
    pub(super) fn add(&mut self, ue: usize, at: Instant) {
        if at < self.due[ue] {
            self.put(ue, at);
        }
    }

    /// The next timer of this UE expires at `at`.
    #[inline]
    pub(super) fn put(&mut self, ue: usize, at: Instant) {
        self.due[ue] = at;
        if !at.is_never() {
            let place = subframe_from(at).clamp(self.next, self.next + SUBFRAMES - 1);
            self.ring[(place % SUBFRAMES) as usize].set(ue, true);
        }
    }

    /// Appends, in order, the UEs whose timer expires up to the beginning of this subframe. They have none until the next
    /// [`put`](Self::put).
    pub(super) fn expire(&mut self, subframe: u64, expired: &mut Vec<u16>) {
        let now = crate::subframe::start(subframe);
        let (first, end) = (self.next, subframe + 1);
        self.next = end;
        // All places have been looked at then.
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

    /// No timer expires before this.
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
        /// Against a list of all timers. UEs that have expired are given the next of their timers, as a cell does.
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
                    // Some go on at once, some after the ring's length, some not at all.
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
