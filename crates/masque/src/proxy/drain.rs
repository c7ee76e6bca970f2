//! The graceful shutdown of a proxy (RFC 9114 section 5.2): it begins on all connections at the same time.

use futures_util::task::AtomicWaker;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

/// Whether the proxy is shutting down, and the tasks that wait for it.
#[derive(Default)]
pub(crate) struct Drain {
    has_begun: AtomicBool,
    waiting: Mutex<Vec<Weak<AtomicWaker>>>,
}

/// One task that waits for the shutdown.
pub(super) struct DrainListener<'a> {
    drain: &'a Drain,
    waker: Arc<AtomicWaker>,
}

impl Drain {
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.iter().filter_map(Weak::upgrade).for_each(|waker| waker.wake());
    }

    pub(super) fn listen(&self) -> DrainListener<'_> {
        let waker = Arc::<AtomicWaker>::default();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Listeners that have ended are removed when the list would have to grow.
        if waiting.len() == waiting.capacity() {
            waiting.retain(|waker| waker.strong_count() > 0);
        }
        waiting.push(Arc::downgrade(&waker));
        drop(waiting);
        DrainListener { drain: self, waker }
    }
}

impl DrainListener<'_> {
    /// Completes when the shutdown begins.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        self.waker.register(context.waker());
        if self.drain.has_begun() { Poll::Ready(()) } else { Poll::Pending }
    }
}
