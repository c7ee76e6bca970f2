//! Executor of asynchronous code in virtual time: one thread, no clock, deterministic order.
//!
//! Woken tasks run in FIFO order until none are left. A task woken several times before it runs still runs once. All
//! this takes no virtual time. Timers fire in the order of their instants and, at one instant, of their creation. A
//! timer that has fired may be set again for the same or an earlier instant; it then fires a nanosecond later.
//! Otherwise the stack's pacer, which rounds waiting times down, would prevent time from advancing.

use fullpipe_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A task.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Locks a mutex that only one thread uses.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Identifies a task by its slot, which a later task may reuse, and by its number, which is unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TaskId {
    place: usize,
    number: u64,
}

/// Woken tasks, in the order of their wake-ups.
#[derive(Debug, Default)]
struct Ready(Mutex<VecDeque<TaskId>>);

struct TaskWaker {
    id: TaskId,
    /// Whether the task is in the queue of woken tasks.
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            locked(&self.ready.0).push_back(self.id);
        }
    }
}

/// A task with its waker, which is created once, since a task is polled thousands of times.
struct Runnable {
    task: Task,
    flag: Arc<TaskWaker>,
    waker: Waker,
}

/// The slot of a task that has not ended.
struct Slot {
    number: u64,
    /// `None` while the task runs.
    runnable: Option<Runnable>,
}

#[derive(Default)]
struct State {
    /// Tasks by slot.
    tasks: Vec<Option<Slot>>,
    /// Free slots.
    free: Vec<usize>,
    next_task: u64,
    /// Timers with a waiting task.
    timers: BTreeMap<(Instant, u64), Waker>,
    next_timer: u64,
    /// The executor is closed and runs nothing.
    closed: bool,
}

impl State {
    fn slot(&mut self, id: TaskId) -> Option<&mut Slot> {
        self.tasks.get_mut(id.place)?.as_mut().filter(|slot| slot.number == id.number)
    }
}

/// Tasks and timers of one host.
#[derive(Default)]
pub(crate) struct Executor {
    /// Current time in nanoseconds. It is read several times per datagram, so no lock protects it.
    now: AtomicU64,
    state: Mutex<State>,
    ready: Arc<Ready>,
}

impl Executor {
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.now.load(Ordering::Relaxed))
    }

    /// Advances the time; it never goes back.
    pub(crate) fn set_now(&self, now: Instant) {
        self.now.fetch_max(now.as_nanos(), Ordering::Relaxed);
    }

    /// Number of tasks that have not ended.
    pub(crate) fn tasks(&self) -> usize {
        let state = locked(&self.state);
        state.tasks.len() - state.free.len()
    }

    /// Adds a task that runs with the next [`Executor::run`].
    pub(crate) fn spawn(&self, task: Task) {
        let mut state = locked(&self.state);
        if state.closed {
            drop(state);
            return drop(task);
        }
        let number = state.next_task;
        state.next_task += 1;
        let place = state.free.pop().unwrap_or(state.tasks.len());
        let id = TaskId { place, number };
        let flag = Arc::new(TaskWaker { id, queued: AtomicBool::new(true), ready: Arc::clone(&self.ready) });
        let waker = Waker::from(Arc::clone(&flag));
        let slot = Some(Slot { number, runnable: Some(Runnable { task, flag, waker }) });
        match state.tasks.get_mut(place) {
            Some(free) => *free = slot,
            None => state.tasks.push(slot),
        }
        locked(&self.ready.0).push_back(id);
    }

    /// Runs tasks until all are waiting.
    pub(crate) fn run(&self) {
        while let Some((id, mut runnable)) = self.next_task() {
            let polled = runnable.task.as_mut().poll(&mut Context::from_waker(&runnable.waker));
            let mut state = locked(&self.state);
            if polled.is_pending()
                && let Some(slot) = state.slot(id)
            {
                slot.runnable = Some(runnable);
                continue;
            }
            if state.slot(id).is_some() {
                state.tasks[id.place] = None;
                state.free.push(id.place);
            }
            // The task is dropped after the lock is released.
            drop(state);
            drop(runnable);
        }
    }

    fn next_task(&self) -> Option<(TaskId, Runnable)> {
        loop {
            let id = locked(&self.ready.0).pop_front()?;
            // The task may have ended since it was woken.
            let mut state = locked(&self.state);
            let Some(runnable) = state.slot(id).and_then(|slot| slot.runnable.take()) else { continue };
            runnable.flag.queued.store(false, Ordering::Relaxed);
            return Some((id, runnable));
        }
    }

    /// Time of the first timer; [`Instant::NEVER`] without timers.
    pub(crate) fn next_timer(&self) -> Instant {
        locked(&self.state).timers.keys().next().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// Wakes the tasks whose timers have expired.
    pub(crate) fn fire(&self) {
        let now = self.now();
        loop {
            let mut state = locked(&self.state);
            let Some(entry) = state.timers.first_entry().filter(|entry| entry.key().0 <= now) else { return };
            let waker = entry.remove();
            drop(state);
            waker.wake();
        }
    }

    /// Creates a timer.
    pub(crate) fn timer(self: &Arc<Self>, at: Instant) -> Timer {
        let mut state = locked(&self.state);
        let number = state.next_timer;
        state.next_timer += 1;
        Timer { executor: Arc::clone(self), number, at, waiting: None, fired_at: None }
    }

    /// Drops all tasks: they own the host's sockets and timers, which own the executor.
    pub(crate) fn close(&self) {
        let mut tasks = {
            let mut state = locked(&self.state);
            state.closed = true;
            state.free.clear();
            std::mem::take(&mut state.tasks)
        };
        tasks.sort_by_key(|slot| slot.as_ref().map(|slot| slot.number));
        // In the order of creation.
        tasks.into_iter().for_each(drop);
        let timers = std::mem::take(&mut locked(&self.state).timers);
        drop(timers);
    }
}

/// Fires once at an instant, which may be changed.
pub(crate) struct Timer {
    executor: Arc<Executor>,
    number: u64,
    at: Instant,
    /// Waker of the waiting task. While the instant is in the future, the executor has the same waker.
    waiting: Option<Waker>,
    fired_at: Option<Instant>,
}

impl Timer {
    /// Sets another instant. A waiting task continues to wait.
    pub(crate) fn reset(&mut self, at: Instant) {
        let now = self.executor.now();
        let again = at <= now && self.fired_at == Some(now);
        let new = if again { now.saturating_add(Duration::from_nanos(1)) } else { at.max(now) };
        let old = std::mem::replace(&mut self.at, new);
        if self.waiting.is_some() && new != old {
            let mut state = locked(&self.executor.state);
            match state.timers.remove(&(old, self.number)) {
                Some(waker) => drop(state.timers.insert((new, self.number), waker)),
                None => self.waiting = None,
            }
        }
    }

    /// Returns `Ready` if the instant has passed; otherwise the task is woken at the instant.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let now = self.executor.now();
        if self.at <= now {
            self.fired_at = Some(now);
            self.give_up();
            return Poll::Ready(());
        }
        // Connections poll their timer for each datagram.
        if self.waiting.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            return Poll::Pending;
        }
        let waker = context.waker().clone();
        let old = locked(&self.executor.state).timers.insert((self.at, self.number), waker.clone());
        let older = self.waiting.replace(waker);
        drop((old, older));
        Poll::Pending
    }

    /// Removes the waiting task.
    fn give_up(&mut self) {
        if let Some(waker) = self.waiting.take() {
            let other = locked(&self.executor.state).timers.remove(&(self.at, self.number));
            drop((waker, other));
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::future::poll_fn;

    fn at(nanoseconds: u64) -> Instant {
        Instant::from_nanos(nanoseconds)
    }

    type Log = Arc<Mutex<Vec<(u64, &'static str)>>>;

    fn sleeper(executor: &Arc<Executor>, log: &Log, name: &'static str, instants: &'static [u64]) {
        let (its, log) = (Arc::clone(executor), Arc::clone(log));
        let mut timer = executor.timer(Instant::ZERO);
        executor.spawn(Box::pin(async move {
            for instant in instants {
                timer.reset(at(*instant));
                poll_fn(|context| timer.poll(context)).await;
                locked(&log).push((its.now().as_nanos(), name));
            }
        }));
    }

    /// Runs until there are no tasks or timers left to process.
    fn run(executor: &Executor) {
        executor.run();
        while !executor.next_timer().is_never() {
            executor.set_now(executor.next_timer());
            executor.fire();
            executor.run();
        }
    }

    #[test]
    fn timers_fire_to_the_nanosecond_and_in_the_order_of_their_creation() {
        let (executor, log) = (Arc::new(Executor::default()), Log::default());
        sleeper(&executor, &log, "a", &[5, 1_000_000_007, 1_000_000_007]);
        sleeper(&executor, &log, "b", &[4, 1_000_000_007]);
        run(&executor);
        // The third wait of "a" is for an instant at which its timer has already fired: it fires a nanosecond later.
        let second = 1_000_000_007;
        assert_eq!(*locked(&log), [(4, "b"), (5, "a"), (second, "a"), (second, "b"), (second + 1, "a")]);
        assert_eq!(executor.tasks(), 0);
        assert!(locked(&executor.state).timers.is_empty());
    }

    #[test]
    fn moved_timer_wakes_its_task_only_at_the_new_instant() {
        let executor = Arc::new(Executor::default());
        let timer = Arc::new(Mutex::new(executor.timer(at(10))));
        let log = Log::default();
        let (waiting, its_log, its_executor) = (Arc::clone(&timer), Arc::clone(&log), Arc::clone(&executor));
        executor.spawn(Box::pin(async move {
            poll_fn(|context| locked(&waiting).poll(context)).await;
            locked(&its_log).push((its_executor.now().as_nanos(), "up"));
        }));
        executor.run();
        locked(&timer).reset(at(30));
        assert_eq!(executor.next_timer(), at(30));
        locked(&timer).reset(at(20));
        run(&executor);
        assert_eq!(*locked(&log), [(20, "up")]);
    }

    #[test]
    fn woken_tasks_run_once_in_the_order_of_their_wakeups() {
        let (executor, log) = (Arc::new(Executor::default()), Log::default());
        let wakers: Arc<Mutex<Vec<Waker>>> = Arc::default();
        for name in ["a", "b", "c"] {
            let (log, wakers) = (Arc::clone(&log), Arc::clone(&wakers));
            let mut rounds = 0;
            executor.spawn(Box::pin(poll_fn(move |context| {
                locked(&log).push((rounds, name));
                locked(&wakers).push(context.waker().clone());
                rounds += 1;
                if rounds == 2 { Poll::Ready(()) } else { Poll::Pending }
            })));
        }
        executor.run();
        assert_eq!(executor.tasks(), 3);
        // Woken in the order c, a, c, b: each runs once.
        let woken: Vec<Waker> = [2, 0, 2, 1].into_iter().map(|n: usize| locked(&wakers)[n].clone()).collect();
        woken.iter().for_each(Waker::wake_by_ref);
        executor.run();
        let ran: Vec<&str> = locked(&log).iter().map(|(_, name)| *name).collect();
        assert_eq!(ran, ["a", "b", "c", "c", "a", "b"]);
        assert_eq!(executor.tasks(), 0);
        // Waking a task that has ended has no effect.
        woken[0].wake_by_ref();
        executor.run();
        assert_eq!(locked(&log).len(), 6);
    }

    #[test]
    fn waker_of_an_ended_task_does_not_wake_the_next_task_in_its_slot() {
        let executor = Executor::default();
        let old: Arc<Mutex<Option<Waker>>> = Arc::default();
        let kept = Arc::clone(&old);
        executor.spawn(Box::pin(poll_fn(move |context| {
            *locked(&kept) = Some(context.waker().clone());
            Poll::Ready(())
        })));
        executor.run();
        let polls = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&polls);
        executor.spawn(Box::pin(poll_fn(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Poll::Pending
        })));
        executor.run();
        locked(&old).take().expect("the task has run").wake();
        executor.run();
        assert_eq!((polls.load(Ordering::Relaxed), executor.tasks()), (1, 1));
        assert_eq!(locked(&executor.state).tasks.len(), 1, "the slot is reused");
    }

    #[test]
    fn timer_wakes_the_task_that_polled_it_last() {
        let executor = Arc::new(Executor::default());
        let (timer, log) = (Arc::new(Mutex::new(executor.timer(at(10)))), Log::default());
        let goes = Arc::new(Mutex::new(None::<Waker>));
        for name in ["first", "second"] {
            let (timer, log, goes) = (Arc::clone(&timer), Arc::clone(&log), Arc::clone(&goes));
            executor.spawn(Box::pin(poll_fn(move |context| {
                locked(&log).push((0, name));
                if name == "first" {
                    *locked(&goes) = Some(context.waker().clone());
                }
                locked(&timer).poll(context)
            })));
        }
        executor.run();
        executor.set_now(at(10));
        executor.fire();
        executor.run();
        let polled: Vec<&str> = locked(&log).iter().map(|(_, name)| *name).collect();
        assert_eq!(polled, ["first", "second", "second"]);
        locked(&goes).take().expect("the task has run").wake();
        executor.run();
        assert_eq!(executor.tasks(), 0);
    }

    proptest! {
        /// Polling or setting a timer again changes neither the time at which it fires nor the order.
        #[test]
        fn further_polls_of_a_timer_do_not_change_its_firing(
            scripts in prop::collection::vec(prop::collection::vec((0u64..30, prop::option::of(0u64..30)), 1..8), 1..6),
            pokes in prop::collection::vec((0usize..6, 0u8..3), 0..60),
        ) {
            let play = |pokes: &[(usize, u8)]| {
                let executor = Arc::new(Executor::default());
                let log: Arc<Mutex<Vec<(u64, usize)>>> = Arc::default();
                let wakers: Arc<Mutex<BTreeMap<usize, Waker>>> = Arc::default();
                for (name, script) in scripts.iter().enumerate() {
                    let (its, log, wakers, script) =
                        (Arc::clone(&executor), Arc::clone(&log), Arc::clone(&wakers), script.clone());
                    let mut timer = executor.timer(Instant::ZERO);
                    executor.spawn(Box::pin(async move {
                        for (first, second) in script {
                            timer.reset(at(first * 7));
                            let mut moved = second;
                            poll_fn(|context| {
                                locked(&wakers).insert(name, context.waker().clone());
                                let polled = timer.poll(context);
                                // A timer with a waiting task is moved.
                                if polled.is_pending()
                                    && let Some(second) = moved.take()
                                {
                                    timer.reset(at(second * 7));
                                    return timer.poll(context);
                                }
                                polled
                            })
                            .await;
                            locked(&log).push((its.now().as_nanos(), name));
                        }
                    }));
                }
                executor.run();
                let mut pokes = pokes.iter();
                while !executor.next_timer().is_never() {
                    // Unneeded calls at an instant between two timers.
                    let next = executor.next_timer();
                    let before = Instant::from_nanos(next.as_nanos().saturating_sub(1));
                    if before > executor.now() {
                        executor.set_now(before);
                        for (name, _) in pokes.by_ref().take_while(|(_, more)| *more > 0) {
                            let waker = locked(&wakers).get(name).cloned();
                            waker.into_iter().for_each(Waker::wake);
                        }
                        executor.fire();
                        executor.run();
                    }
                    executor.set_now(next);
                    executor.fire();
                    executor.run();
                }
                let left = (executor.tasks(), locked(&executor.state).timers.len());
                (std::mem::take(&mut *locked(&log)), left)
            };
            prop_assert_eq!(play(&pokes), play(&[]));
        }
    }

    #[test]
    fn closed_executor_drops_its_tasks_and_accepts_no_more() {
        struct Dropped(Arc<AtomicBool>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let executor = Arc::new(Executor::default());
        let task = |gone: &Arc<AtomicBool>| -> Task {
            let (own, mut timer) = (Dropped(Arc::clone(gone)), executor.timer(at(9)));
            Box::pin(async move {
                let _own = own;
                poll_fn(|context| timer.poll(context)).await;
            })
        };
        let [first, second] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        executor.spawn(task(&first));
        executor.run();
        executor.close();
        executor.spawn(task(&second));
        assert!(first.load(Ordering::Relaxed) && second.load(Ordering::Relaxed));
        assert_eq!((executor.tasks(), executor.next_timer()), (0, Instant::NEVER));
        assert_eq!(Arc::strong_count(&executor), 1, "no other reference to the executor remains");
    }
}
