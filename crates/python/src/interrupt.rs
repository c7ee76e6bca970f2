//! Runs work without the global interpreter lock, and lets signals interrupt it.

use pyo3::prelude::*;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// The longest time until a signal is handled.
const POLL: Duration = Duration::from_millis(50);

/// Runs `work` on another thread without the lock. In the meantime it handles signals, and calls `on_message` with the
/// messages that `work` sends. If a signal handler raises an exception, such as `KeyboardInterrupt`, this function sets
/// `stop`, waits until `work` returns, and then raises the exception.
pub(crate) fn run<T: Send, M: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    mut on_message: impl FnMut(Python<'_>, M) -> PyResult<()> + Send,
    work: impl FnOnce(mpsc::Sender<M>) -> T + Send,
) -> PyResult<T> {
    let mut raised = Ok(());
    let raised_here = &mut raised;
    let result = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            let worker = scope.spawn(move || work(sender));
            loop {
                let message = match receiver.recv_timeout(POLL) {
                    Ok(message) => Some(message),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                if raised_here.is_err() {
                    continue;
                }
                *raised_here = Python::attach(|py| {
                    py.check_signals()?;
                    message.map_or(Ok(()), |message| on_message(py, message))
                });
                if raised_here.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            worker.join()
        })
    });
    // A panic of the work is an internal error, which PyO3 converts to an exception of Python.
    let result = result.unwrap_or_else(|panic| resume_unwind(panic));
    raised.map(|()| result)
}
