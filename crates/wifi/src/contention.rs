//! Contention for the medium: DCF and EDCA in one contention domain, with one event per transmission instead of one per
//! slot (IEEE 802.11-2020 clauses 10.3.4 and 10.23.2).
//!
//! **Boundaries.** When the medium becomes idle, boundary 0 of a contender is the end of its interframe space, and
//! boundary k is k slots later. A contender with the backoff counter c transmits at boundary c. All contenders sense
//! every transmission at once. Contenders that reach their boundary at the same instant collide.
//!
//! **Freezing.** If another node transmits at boundary j < c, the counter becomes c - j under DCF, where a counter
//! decreases after a whole idle slot. It becomes c - j - 1 under EDCA, where it also decreases at the boundary at which
//! the medium becomes busy ([`FreezeRule`]). With several AIFSN, each contender counts its own boundaries.
//!
//! **Computation.** Contenders with the same AIFSN count the same boundaries while they share an idle period. They form
//! a class with the number of boundaries counted so far. A contender stores the sum of its counter and that number at
//! the time of the draw. A transmission then adds one number per class, whatever the number of contenders. The next
//! transmission is at the head of a heap. Contenders without a frame are in no heap, also while they count down after
//! their last transmission: the remaining count is computed when a frame arrives. The cost grows with transmissions and
//! the logarithm of the waiting contenders.
//!
//! A contender whose interframe space begins at another time than that of its class is *detached* until the medium
//! becomes busy again: the senders of a collision, which wait for a response, and a DCF contender that transmits at once.
//! There are only as many of these as the last transmission had senders, plus those that transmit next.

use crate::phy::{AccessParameters, Timing};
use fullpipe_units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How a counter changes when the medium becomes busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreezeRule {
    /// DCF (clause 10.3.4.3): the counter decreases after each idle slot.
    Dcf,
    /// EDCA (clause 10.23.2.4): the counter decreases at each boundary, also at the one at which the medium becomes
    /// busy. A frame that finds an idle medium is sent at the next boundary.
    Edca,
}

/// A contender: a node under DCF, or one access category of a node under EDCA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContenderSpecification {
    /// The node. Two contenders of a node that reach their boundaries together have an internal collision.
    pub node: u32,
    /// The contender with the highest priority transmits after an internal collision.
    pub priority: u8,
    /// Its contention parameters. The TXOP limit is not used here.
    pub access: AccessParameters,
}

/// A contender whose backoff has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Number of the contender.
    pub contender: u32,
    /// Whether the contender has lost an internal collision, so it does not transmit.
    pub internal_collision: bool,
}

/// The backoff of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backoff {
    /// None is pending.
    None,
    /// It ends when its class has counted to `end`. It was drawn in this busy period.
    Counting { end: u64, period: u64 },
    /// See [`Contention::detached`].
    Detached,
}

#[derive(Clone, Copy, Debug)]
struct Contender {
    node: u32,
    priority: u8,
    class: u32,
    cw_min: u32,
    cw_max: u32,
    cw: u32,
    failures: u32,
    backoff: Backoff,
    /// Whether the contender has a frame. If it also has a backoff, it is in a heap or detached.
    waiting: bool,
}

/// Contenders with the same AIFSN.
#[derive(Debug)]
struct Class {
    aifsn: u32,
    ifs: Duration,
    /// Boundaries counted in earlier idle periods.
    counted: u64,
    /// The waiting contenders, by the end of their backoff.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

#[derive(Clone, Copy, Debug)]
struct Detached {
    contender: u32,
    /// Its boundary 0.
    zero: Instant,
    counter: u64,
}

/// The contention of all nodes.
///
/// A contender calls [`Contention::request`] when it gets a frame. At [`Contention::next_access`],
/// [`Contention::begin`] returns the contenders that transmit. The caller determines what happens, and then calls
/// [`Contention::end`], [`Contention::succeed`] or [`Contention::fail`], and [`Contention::resume`] for each of them.
///
/// ```
/// use fullpipe_units::Instant;
/// use fullpipe_wifi::contention::{Access, ContenderSpecification, Contention, FreezeRule};
/// use fullpipe_wifi::phy::{Preamble, Standard};
///
/// let timing = Standard::A.timing(Preamble::Long);
/// let contender = |node| ContenderSpecification { node, priority: 0, access: timing.dcf() };
/// let mut contention = Contention::new(timing, FreezeRule::Dcf, 7, [contender(0), contender(1)]);
/// // Both draw their backoff before the medium has been idle for DIFS.
/// contention.request(Instant::ZERO, 0, |_| 4);
/// contention.request(Instant::ZERO, 1, |_| 9);
/// // DIFS is 34 µs, a slot 9 µs.
/// assert_eq!(contention.next_access(), Instant::from_nanos(34_000 + 4 * 9_000));
/// let mut accesses = Vec::new();
/// contention.begin(contention.next_access(), &mut accesses);
/// assert_eq!(accesses, [Access { contender: 0, internal_collision: false }]);
/// ```
#[derive(Debug)]
pub struct Contention {
    slot: Duration,
    rule: FreezeRule,
    retry_limit: u32,
    contenders: Vec<Contender>,
    classes: Vec<Class>,
    /// When the medium becomes or became idle.
    idle_from: Instant,
    /// Number of the current busy period, or of the last one.
    period: u64,
    detached: Vec<Detached>,
}

impl Contention {
    /// Returns the contention of these contenders; the medium is idle from time 0. After `retry_limit` failures in
    /// succession, a contender gives up its frame.
    pub fn new(
        timing: Timing,
        rule: FreezeRule,
        retry_limit: u32,
        contenders: impl IntoIterator<Item = ContenderSpecification>,
    ) -> Self {
        let mut classes: Vec<Class> = Vec::new();
        let contenders = contenders.into_iter().map(|contender| {
            let AccessParameters { aifsn, cw_min, cw_max, .. } = contender.access;
            let class = classes.iter().position(|class| class.aifsn == aifsn).unwrap_or_else(|| {
                classes.push(Class { aifsn, ifs: timing.ifs(aifsn), counted: 0, heap: BinaryHeap::new() });
                classes.len() - 1
            });
            Contender {
                node: contender.node,
                priority: contender.priority,
                class: class as u32,
                cw_min,
                cw_max,
                cw: cw_min,
                failures: 0,
                backoff: Backoff::None,
                waiting: false,
            }
        });
        let contenders = contenders.collect();
        Contention {
            slot: timing.slot,
            rule,
            retry_limit: retry_limit.max(1),
            contenders,
            classes,
            idle_from: Instant::ZERO,
            period: 0,
            detached: Vec::new(),
        }
    }

    /// Returns the contention window from which a contender draws next.
    pub fn window(&self, contender: u32) -> u32 {
        self.contenders[contender as usize].cw
    }

    /// Returns the number of failures of a contender since its last success.
    pub fn failures(&self, contender: u32) -> u32 {
        self.contenders[contender as usize].failures
    }

    /// Returns when the medium becomes or became idle.
    pub fn idle_from(&self) -> Instant {
        self.idle_from
    }

    /// Returns whether the contender has requested access and not transmitted yet.
    pub fn is_waiting(&self, contender: u32) -> bool {
        self.contenders[contender as usize].waiting
    }

    /// Returns the boundaries at or before `at` after boundary 0 at `zero`, in whole slots; `None` before boundary 0.
    fn slots(&self, zero: Instant, at: Instant) -> Option<u64> {
        (at >= zero).then(|| (at - zero).as_nanos() / self.slot.as_nanos())
    }

    /// Returns by how much a counter decreases if the medium becomes busy at `at`.
    fn counted(&self, zero: Instant, at: Instant) -> u64 {
        let own = match self.rule {
            FreezeRule::Dcf => 0,
            FreezeRule::Edca => 1,
        };
        self.slots(zero, at).map_or(0, |slots| slots + own)
    }

    /// Returns boundary 0 of a class in the current idle period.
    fn zero(&self, class: u32) -> Instant {
        self.idle_from.saturating_add(self.classes[class as usize].ifs)
    }

    /// A contender without a frame gets one at `now`. It transmits as soon as the rules permit. `draw` returns a uniform
    /// number from 0 to the contention window. It is called if a backoff is necessary: if the medium has not been idle
    /// for the interframe space, and no backoff is pending.
    pub fn request(&mut self, now: Instant, contender: u32, draw: impl FnOnce(u32) -> u32) {
        let Contender { class, backoff, waiting, cw, .. } = self.contenders[contender as usize];
        if waiting {
            return;
        }
        self.contenders[contender as usize].waiting = true;
        let mut zero = self.zero(class);
        match backoff {
            Backoff::Counting { end, period } => {
                let Class { counted, ref mut heap, .. } = self.classes[class as usize];
                let left = end.checked_sub(counted);
                let pending = if now < zero {
                    // A DCF counter that reached 0 when the medium became busy has ended. EDCA would have counted below
                    // 0.
                    left.is_some_and(|left| left > 0 || self.rule == FreezeRule::Edca || period == self.period)
                } else {
                    left.is_some_and(|left| zero + self.slot * left >= now)
                };
                if pending {
                    heap.push(Reverse((end, contender)));
                    return;
                }
            }
            Backoff::Detached => {
                let place = self.detached.iter().position(|entry| entry.contender == contender);
                if let Some(place) = place {
                    let entry = self.detached[place];
                    if entry.zero + self.slot * entry.counter >= now {
                        return;
                    }
                    zero = entry.zero;
                    self.detached.swap_remove(place);
                }
            }
            Backoff::None => {}
        }
        if now < zero {
            let counter = draw(cw);
            self.count(contender, u64::from(counter));
            return;
        }
        // The medium has been idle for the interframe space.
        self.contenders[contender as usize].backoff = Backoff::Detached;
        let (zero, counter) = match self.rule {
            FreezeRule::Dcf => (now, 0),
            FreezeRule::Edca => (zero, (now - zero).as_nanos().div_ceil(self.slot.as_nanos())),
        };
        self.detached.push(Detached { contender, zero, counter });
    }

    /// Starts a backoff that counts the boundaries of the class.
    fn count(&mut self, contender: u32, counter: u64) {
        let entry = &mut self.contenders[contender as usize];
        let class = &mut self.classes[entry.class as usize];
        let end = class.counted + counter;
        entry.backoff = Backoff::Counting { end, period: self.period };
        if entry.waiting {
            class.heap.push(Reverse((end, contender)));
        }
    }

    /// Returns when the next contender transmits; [`Instant::NEVER`] if none has a frame.
    pub fn next_access(&self) -> Instant {
        let counting = self.classes.iter().filter_map(|class| {
            let Reverse((end, _)) = class.heap.peek()?;
            Some(self.idle_from.saturating_add(class.ifs + self.slot * (end - class.counted)))
        });
        let detached = self.detached.iter().filter(|entry| self.contenders[entry.contender as usize].waiting);
        let detached = detached.map(|entry| entry.zero + self.slot * entry.counter);
        counting.chain(detached).min().unwrap_or(Instant::NEVER)
    }

    /// The medium becomes busy at `now`, which is [`Contention::next_access`]. Appends the contenders whose backoff ends,
    /// in order of their node, and within a node by descending priority.
    pub fn begin(&mut self, now: Instant, accesses: &mut Vec<Access>) {
        let first = accesses.len();
        self.period += 1;
        for index in 0..self.classes.len() {
            let zero = self.zero(index as u32);
            let counted = self.counted(zero, now);
            let on_boundary = self.slots(zero, now).filter(|slots| zero + self.slot * *slots == now);
            let class = &mut self.classes[index];
            if let Some(slots) = on_boundary {
                while let Some(&Reverse((end, contender))) = class.heap.peek()
                    && end == class.counted + slots
                {
                    class.heap.pop();
                    accesses.push(Access { contender, internal_collision: false });
                }
            }
            class.counted += counted;
        }
        let mut detached = std::mem::take(&mut self.detached);
        for Detached { contender, zero, counter } in detached.drain(..) {
            let waiting = self.contenders[contender as usize].waiting;
            if waiting && zero + self.slot * counter == now {
                accesses.push(Access { contender, internal_collision: false });
                continue;
            }
            match counter.checked_sub(self.counted(zero, now)) {
                // A count of 0 has ended under DCF unless boundary 0 is still to come.
                Some(0) if self.rule == FreezeRule::Dcf && zero <= now => {
                    self.contenders[contender as usize].backoff = Backoff::None
                }
                Some(left) => self.count(contender, left),
                None => self.contenders[contender as usize].backoff = Backoff::None,
            }
        }
        self.detached = detached;
        for access in &accesses[first..] {
            let entry = &mut self.contenders[access.contender as usize];
            entry.backoff = Backoff::None;
            entry.waiting = false;
        }
        if accesses.len() > first + 1 {
            let contenders = &self.contenders;
            let of = |access: &Access| &contenders[access.contender as usize];
            accesses[first..].sort_by_key(|access| (of(access).node, Reverse(of(access).priority)));
            for index in first + 1..accesses.len() {
                accesses[index].internal_collision = of(&accesses[index]).node == of(&accesses[index - 1]).node;
            }
        }
    }

    /// The medium becomes idle at `at`, which may be in the future. Called after [`Contention::begin`], and again if the
    /// busy period is extended.
    pub fn end(&mut self, at: Instant) {
        self.idle_from = at;
    }

    /// A transmission of the contender was successful, or its frame was given up: the contention window becomes CWmin.
    pub fn succeed(&mut self, contender: u32) {
        let entry = &mut self.contenders[contender as usize];
        (entry.cw, entry.failures) = (entry.cw_min, 0);
    }

    /// A transmission of the contender failed, or it lost an internal collision. Returns whether this was the last of
    /// the permitted attempts; the contention window then becomes CWmin.
    pub fn fail(&mut self, contender: u32) -> bool {
        let entry = &mut self.contenders[contender as usize];
        entry.failures += 1;
        if entry.failures >= self.retry_limit {
            self.succeed(contender);
            return true;
        }
        entry.cw = entry.cw_max.min(2 * entry.cw + 1);
        false
    }

    /// Starts the backoff that follows each access, with a number that `draw` returns as in [`Contention::request`].
    /// `waiting` states whether the contender has another frame. Its interframe space begins at `from`; for most
    /// contenders this is the time at which the medium becomes idle.
    pub fn resume(&mut self, contender: u32, from: Instant, waiting: bool, draw: impl FnOnce(u32) -> u32) {
        let entry = &mut self.contenders[contender as usize];
        entry.waiting = waiting;
        let (class, counter) = (entry.class, u64::from(draw(entry.cw)));
        if from == self.idle_from {
            return self.count(contender, counter);
        }
        entry.backoff = Backoff::Detached;
        let zero = from + self.classes[class as usize].ifs;
        self.detached.push(Detached { contender, zero, counter });
    }
}
