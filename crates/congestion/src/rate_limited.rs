//! Rate-limited increase: bounds the growth of the window while the application or flow control limits sending.
//!
//! **Model.** The window may also grow while it does not limit sending, but not beyond a limit. `maxFS` is the largest number
//! of bytes in flight since the window was last reduced, and the initial window at the start. The limit is the window that the
//! control would reach from `maxFS` by acknowledgments of `maxFS` bytes: twice `maxFS` in slow start, `maxFS` and one segment in
//! Reno's congestion avoidance ([`Controller::growth_limit_bytes`]). A window that fills the path is never limited. Without
//! this rule, a window that does not limit sending does not grow at all in most controls, and grows without a limit in
//! `newreno` (RFC 5681).
//!
//! **Source.** draft-ietf-ccwg-ratelimited-increase-09 (August 2026) section 3, and the repository's version of 21 August 2026.
//! The draft applies to controls with a window. Copa and BBR set a rate, and remain unchanged.
//!
//! **Choices that the draft leaves open.**
//! * The limit bounds the growth and never reduces the window. The window can exceed it, for instance when slow start ends at
//!   twice `maxFS`.
//! * The bytes in flight are those of the transport: without bytes that are lost or selectively acknowledged.
//! * They are measured at each packet sent and at each acknowledgment.

use crate::control::{
    Ack, CongestionEvent, ControlRequirements, Controller, PacketState, RecoveryExit, Timeout, WindowState,
};
use fullpipe_units::{Duration, Instant};

/// A control whose window grows by the rules of rate-limited increase.
#[derive(Debug)]
pub struct RateLimitedIncrease {
    inner: Box<dyn Controller>,
    /// The largest number of bytes in flight since the last reduction (`maxFS`).
    largest_flight_bytes: u64,
    /// The window at the end of the last call, to detect reductions by the transport.
    window_bytes: u64,
}

impl RateLimitedIncrease {
    /// Adds the rules to a control that leaves the window in recovery to the transport. Returns other controls unchanged.
    pub fn wrap(inner: Box<dyn Controller>) -> Box<dyn Controller> {
        if inner.requirements().own_recovery {
            return inner;
        }
        Box::new(RateLimitedIncrease { inner, largest_flight_bytes: 0, window_bytes: 0 })
    }

    /// Resets the largest flight if the window was reduced since the last call.
    fn observe(&mut self, control: &WindowState) {
        if control.cwnd_bytes < self.window_bytes {
            self.largest_flight_bytes = 0;
        }
        self.window_bytes = control.cwnd_bytes;
    }

    fn measure(&mut self, control: &WindowState, flight_bytes: u64) {
        if self.window_bytes == 0 {
            self.largest_flight_bytes = control.cwnd_bytes;
        }
        self.observe(control);
        self.largest_flight_bytes = self.largest_flight_bytes.max(flight_bytes);
    }
}

impl Controller for RateLimitedIncrease {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { on_sent: true, plain_acks: false, ..self.inner.requirements() }
    }

    fn on_established(&mut self, control: &mut WindowState, now: Instant, rtt: Option<Duration>) {
        self.inner.on_established(control, now, rtt);
        self.largest_flight_bytes = control.cwnd_bytes;
        self.window_bytes = control.cwnd_bytes;
    }

    fn on_sent(&mut self, control: &mut WindowState, packet: &PacketState) {
        self.measure(control, packet.in_flight_bytes);
        self.inner.on_sent(control, packet);
        self.observe(control);
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        self.measure(control, ack.in_flight_bytes);
        let before_bytes = control.cwnd_bytes;
        let in_slow_start = before_bytes < control.ssthresh_bytes;
        self.inner.on_ack(control, &Ack { cwnd_limited: true, ..ack.clone() });
        if control.cwnd_bytes > before_bytes {
            let limit = self.inner.growth_limit_bytes(control, ack, self.largest_flight_bytes, in_slow_start);
            let limit = limit.max(before_bytes);
            if control.cwnd_bytes > limit {
                control.cwnd_bytes = limit;
                self.inner.on_growth_limited(control);
            }
        }
        self.observe(control);
    }

    fn on_packet_lost(&mut self, control: &mut WindowState, now: Instant, packet: &PacketState) {
        self.inner.on_packet_lost(control, now, packet);
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        self.observe(control);
        self.inner.on_congestion(control, congestion);
        self.observe(control);
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        self.observe(control);
        self.inner.on_recovery_exit(control, exit);
        self.observe(control);
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.observe(control);
        self.inner.on_timeout(control, timeout);
        self.observe(control);
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, now: Instant) {
        self.observe(control);
        self.inner.on_idle_restart(control, now);
        self.observe(control);
    }

    fn on_path_change(&mut self, control: &mut WindowState, now: Instant) {
        self.inner.on_path_change(control, now);
        self.observe(control);
    }

    fn on_external_change(&mut self, control: &mut WindowState, now: Instant) {
        self.inner.on_external_change(control, now);
        self.observe(control);
    }

    fn growth_limit_bytes(&self, control: &WindowState, ack: &Ack, flight_bytes: u64, in_slow_start: bool) -> u64 {
        self.inner.growth_limit_bytes(control, ack, flight_bytes, in_slow_start)
    }

    fn on_growth_limited(&mut self, control: &WindowState) {
        self.inner.on_growth_limited(control);
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        self.inner.inspect(out);
        out.push(("largest_flight_bytes", self.largest_flight_bytes as f64));
    }
}
