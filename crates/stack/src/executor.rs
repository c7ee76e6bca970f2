//! Runs asynchronous code on virtual time: one thread, no clock, always in the same order.
//!
//! Tasks that were woken run first in, first out, each once for however often it was woken meanwhile, until none is left;
//! all that takes no time. Timers are in order of their instants and, at one instant, of their creation. A timer that is set
//! for an instant that is not in the future, when it has come up at this very instant before, comes up a nanosecond later:
//! the stack's pacer rounds waiting times down and would otherwise never let time go on.

use fullpipe_units::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A task.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Locks what only one thread uses.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Numbers of the tasks that were woken, in that order.
#[derive(Debug, Default)]
struct Ready(Mutex<VecDeque<u64>>);

struct TaskWaker {
    number: u64,
    /// Whether it is among the woken.
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            locked(&self.ready.0).push_back(self.number);
        }
    }
}

struct Slot {
    /// Away while it runs.
    task: Option<Task>,
    waker: Arc<TaskWaker>,
}

#[derive(Default)]
struct State {
    now: Instant,
    tasks: BTreeMap<u64, Slot>,
    next_task: u64,
    /// Those that somebody waits for.
    timers: BTreeMap<(Instant, u64), Waker>,
    next_timer: u64,
    /// Nothing runs any more.
    closed: bool,
}

/// Tasks and timers of one host.
#[derive(Default)]
pub(crate) struct Executor {
    state: Mutex<State>,
    ready: Arc<Ready>,
}

impl Executor {
    pub(crate) fn now(&self) -> Instant {
        locked(&self.state).now
    }

    /// Time goes on; never back.
    pub(crate) fn set_now(&self, now: Instant) {
        let mut state = locked(&self.state);
        state.now = state.now.max(now);
    }

    /// Tasks that have not ended.
    pub(crate) fn tasks(&self) -> usize {
        locked(&self.state).tasks.len()
    }

    /// A task that will run with the next [`Executor::run`].
    pub(crate) fn spawn(&self, task: Task) {
        let mut state = locked(&self.state);
        if state.closed {
            drop(state);
            return drop(task);
        }
        let number = state.next_task;
        state.next_task += 1;
        let waker = Arc::new(TaskWaker { number, queued: AtomicBool::new(true), ready: Arc::clone(&self.ready) });
        state.tasks.insert(number, Slot { task: Some(task), waker });
        locked(&self.ready.0).push_back(number);
    }

    /// Runs tasks until all wait.
    pub(crate) fn run(&self) {
        while let Some((number, mut task, waker)) = self.next_task() {
            if task.as_mut().poll(&mut Context::from_waker(&Waker::from(waker))).is_pending() {
                if let Some(slot) = locked(&self.state).tasks.get_mut(&number) {
                    slot.task = Some(task);
                }
            } else {
                // What it owned is given up after it is none of ours any more.
                locked(&self.state).tasks.remove(&number);
            }
        }
    }

    fn next_task(&self) -> Option<(u64, Task, Arc<TaskWaker>)> {
        loop {
            let number = locked(&self.ready.0).pop_front()?;
            let mut state = locked(&self.state);
            // It may have ended since it was woken.
            let Some(slot) = state.tasks.get_mut(&number) else { continue };
            slot.waker.queued.store(false, Ordering::Relaxed);
            let Some(task) = slot.task.take() else { continue };
            return Some((number, task, Arc::clone(&slot.waker)));
        }
    }

    /// When the first timer comes up; [`Instant::NEVER`] if there is none.
    pub(crate) fn next_timer(&self) -> Instant {
        locked(&self.state).timers.keys().next().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// Wakes those whose timers have come up.
    pub(crate) fn fire(&self) {
        loop {
            let mut state = locked(&self.state);
            let now = state.now;
            let Some(entry) = state.timers.first_entry().filter(|entry| entry.key().0 <= now) else { return };
            let waker = entry.remove();
            drop(state);
            waker.wake();
        }
    }

    /// A timer for an instant.
    pub(crate) fn timer(self: &Arc<Self>, at: Instant) -> Timer {
        let mut state = locked(&self.state);
        let number = state.next_timer;
        state.next_timer += 1;
        Timer { executor: Arc::clone(self), number, at, waits: false, fired_at: None }
    }

    /// Gives up all tasks: they hold the host's sockets and timers, which hold the executor.
    pub(crate) fn close(&self) {
        let tasks = {
            let mut state = locked(&self.state);
            state.closed = true;
            std::mem::take(&mut state.tasks)
        };
        drop(tasks);
        let timers = std::mem::take(&mut locked(&self.state).timers);
        drop(timers);
    }
}

/// Comes up once at an instant, which may be changed.
pub(crate) struct Timer {
    executor: Arc<Executor>,
    number: u64,
    at: Instant,
    /// Whether somebody waits for it.
    waits: bool,
    fired_at: Option<Instant>,
}

impl Timer {
    /// Sets another instant. Who waits goes on waiting.
    pub(crate) fn reset(&mut self, at: Instant) {
        let mut state = locked(&self.executor.state);
        let waker = if self.waits { state.timers.remove(&(self.at, self.number)) } else { None };
        let again = at <= state.now && self.fired_at == Some(state.now);
        self.at = if again { state.now.saturating_add(Duration::from_nanos(1)) } else { at.max(state.now) };
        self.waits = waker.is_some();
        if let Some(waker) = waker {
            state.timers.insert((self.at, self.number), waker);
        }
    }

    /// Whether its instant has come; else the task is woken when it comes.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = locked(&self.executor.state);
        let key = (self.at, self.number);
        if self.at <= state.now {
            let waker = state.timers.remove(&key);
            self.fired_at = Some(state.now);
            self.waits = false;
            drop(state);
            drop(waker);
            return Poll::Ready(());
        }
        let old = state.timers.insert(key, context.waker().clone());
        self.waits = true;
        drop(state);
        drop(old);
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let waker = locked(&self.executor.state).timers.remove(&(self.at, self.number));
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// Runs until nothing is left to happen.
    fn run(executor: &Executor) {
        executor.run();
        while !executor.next_timer().is_never() {
            executor.set_now(executor.next_timer());
            executor.fire();
            executor.run();
        }
    }

    #[test]
    fn timers_come_up_to_the_nanosecond_and_in_the_order_of_their_creation() {
        let (executor, log) = (Arc::new(Executor::default()), Log::default());
        sleeper(&executor, &log, "a", &[5, 1_000_000_007, 1_000_000_007]);
        sleeper(&executor, &log, "b", &[4, 1_000_000_007]);
        run(&executor);
        // The third wait of "a" is for an instant at which its timer has come up already: a nanosecond later.
        let second = 1_000_000_007;
        assert_eq!(*locked(&log), [(4, "b"), (5, "a"), (second, "a"), (second, "b"), (second + 1, "a")]);
        assert_eq!(executor.tasks(), 0);
        assert!(locked(&executor.state).timers.is_empty());
    }

    #[test]
    fn a_timer_that_was_moved_wakes_whoever_waited_at_the_new_instant_only() {
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
    fn woken_tasks_run_in_order_and_once() {
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
        // Woken c, a, c, b: each runs once.
        let woken: Vec<Waker> = [2, 0, 2, 1].into_iter().map(|n: usize| locked(&wakers)[n].clone()).collect();
        woken.iter().for_each(Waker::wake_by_ref);
        executor.run();
        let ran: Vec<&str> = locked(&log).iter().map(|(_, name)| *name).collect();
        assert_eq!(ran, ["a", "b", "c", "c", "a", "b"]);
        assert_eq!(executor.tasks(), 0);
        // Waking one that has ended is nothing.
        woken[0].wake_by_ref();
        executor.run();
        assert_eq!(locked(&log).len(), 6);
    }

    #[test]
    fn closing_gives_up_tasks_and_takes_no_more() {
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
        assert_eq!(Arc::strong_count(&executor), 1, "nothing holds the executor");
    }
}
