//! Waiting for the next deadline or the next frame: sleep until shortly before the deadline, then spin.
//!
//! A sleeping thread wakes late by some tens of microseconds; a spinning one is on time. Measured (docs/real-time.md): with
//! a timer slack of 1 ns, sleeping until 60 us before and spinning for the rest is late by 0.1 us at the median and costs
//! 3-8 % of a core at 1000 deadlines a second.

use fullpipe_units::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::num::NonZeroU64;

use super::clock::WallClock;
use super::port::Port;

/// How long before a deadline sleeping gives way to spinning.
pub const SPIN: Duration = Duration::from_nanos(60_000);

/// Tells the kernel to wake the calling thread as exactly as it can.
pub(crate) fn ask_for_exact_wakeups() {
    // Refused by no kernel that has timer slack; without it, waking is less exact, which lateness tells.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Waits until `deadline` or until a port has frames, whichever is first. Says which ports have; all false at a deadline.
///
/// # Errors
/// The kernel's.
pub(crate) fn wait(
    clock: &WallClock,
    deadline: Instant,
    ports: &[Box<dyn Port>],
    ready: &mut Vec<bool>,
) -> io::Result<()> {
    ready.clear();
    let mut fds: Vec<PollFd<'_>> =
        ports.iter().map(|port| PollFd::from_borrowed_fd(port.fd(), PollFlags::IN)).collect();
    loop {
        let left = deadline.saturating_since(clock.now());
        let sleep = left.saturating_sub(SPIN).as_nanos();
        let timeout = Timespec { tv_sec: (sleep / 1_000_000_000) as i64, tv_nsec: (sleep % 1_000_000_000) as i64 };
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) if left.is_zero() => {
                ready.resize(ports.len(), false);
                return Ok(());
            }
            // Asleep until now, or spinning.
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => {
                ready.extend(fds.iter().map(|fd| !fd.revents().is_empty()));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
}
