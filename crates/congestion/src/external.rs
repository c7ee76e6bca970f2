//! A congestion control whose window and pacing rate the program sets, for example an agent that steps through a
//! simulation.
//!
//! **Model.** The control applies the values of its handle at every event of the transport. Acknowledgments, losses,
//! ECN marks and timeouts change neither. In fast recovery and after a timeout, the window remains the one that the
//! program has set; the transport only selects the segments to retransmit.
//!
//! With a base ([`ExternalControl::with_base`]), another control sets the window between the changes of the program. A
//! change applies once, and the base continues from the changed window. This is how Orca (Abbasloo et al., SIGCOMM 2020)
//! changes the window of CUBIC.

use crate::control::{
    Ack, CongestionEvent, ControlRequirements, Controller, PacketState, PlainAck, RecoveryExit, Timeout, WindowState,
};
use fullpipe_units::{Duration, Instant, Rate};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The handle of a congestion control whose window and pacing rate the program sets. Clones share the same values.
///
/// A change between two steps of a simulation takes effect at the start of the next step. If it comes from another
/// thread during a step, the result is not deterministic.
///
/// ```
/// use fullpipe_congestion::external::ExternalControl;
/// use fullpipe_units::Rate;
///
/// let control = ExternalControl::new(14_600);
/// control.set_window(29_200);
/// control.set_pacing_rate(Some(Rate::from_bits_per_second(10_000_000)));
/// assert_eq!(control.window_bytes(), 29_200);
/// assert_eq!(control.controller().name(), "external");
/// ```
#[derive(Clone, Debug)]
pub struct ExternalControl(Arc<Values>);

/// A function that creates the base of a control.
type Base = Box<dyn Fn() -> Box<dyn Controller> + Send + Sync>;

struct Values {
    window_bytes: AtomicU64,
    /// Pacing rate in bits per second; 0 if there is none.
    pacing_bps: AtomicU64,
    /// Number of changes of the window.
    window_changes: AtomicU64,
    /// Number of changes of the window or the pacing rate.
    changes: AtomicU64,
    base: Option<Base>,
}

impl fmt::Debug for Values {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Values")
            .field("window_bytes", &self.window_bytes)
            .field("pacing_bps", &self.pacing_bps)
            .field("changes", &self.changes)
            .field("has_base", &self.base.is_some())
            .finish_non_exhaustive()
    }
}

impl ExternalControl {
    /// The name of the control in records.
    pub const NAME: &'static str = "external";

    /// Creates a handle with an initial congestion window in bytes and without a pacing rate.
    pub fn new(window_bytes: u64) -> Self {
        ExternalControl::create(window_bytes, None)
    }

    /// Creates a handle that changes the window of another control, the base. `base` creates one base for each end of each
    /// connection. A new base starts with its own window.
    ///
    /// ```
    /// use fullpipe_congestion::cubic::Cubic;
    /// use fullpipe_congestion::external::ExternalControl;
    ///
    /// let control = ExternalControl::with_base(|| Box::new(Cubic::default()));
    /// // Between two steps of a simulation: CUBIC continues from this window.
    /// control.set_window(29_200);
    /// assert_eq!(control.changes(), 1);
    /// ```
    pub fn with_base(base: impl Fn() -> Box<dyn Controller> + Send + Sync + 'static) -> Self {
        ExternalControl::create(0, Some(Box::new(base)))
    }

    fn create(window_bytes: u64, base: Option<Base>) -> Self {
        let values = Values {
            window_bytes: AtomicU64::new(window_bytes),
            pacing_bps: AtomicU64::new(0),
            window_changes: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            base,
        };
        ExternalControl(Arc::new(values))
    }

    /// Sets the congestion window in bytes: payload with TCP, packets with QUIC. The transport permits at least one
    /// segment (TCP) or two packets (QUIC) in flight. With a base, each connection has this window at the start of the next
    /// step, and the base continues from there.
    pub fn set_window(&self, window_bytes: u64) {
        self.0.window_bytes.store(window_bytes, Ordering::Relaxed);
        self.0.window_changes.fetch_add(1, Ordering::Release);
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// Sets the pacing rate. With `None` or rate 0, the pacing setting of the transport applies: `tcp.pacing` or
    /// `quic.pacing`. With a base, the rate applies until the base sets another one.
    pub fn set_pacing_rate(&self, rate: Option<Rate>) {
        self.0.pacing_bps.store(rate.map_or(0, Rate::bits_per_second), Ordering::Relaxed);
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// Returns the congestion window in bytes that the program has set. With a base, the window of a connection differs.
    pub fn window_bytes(&self) -> u64 {
        self.0.window_bytes.load(Ordering::Relaxed)
    }

    /// Returns the pacing rate; `None` if there is none.
    pub fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.0.pacing_bps.load(Ordering::Relaxed);
        (rate > 0).then(|| Rate::from_bits_per_second(rate))
    }

    /// Returns the number of changes so far.
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    /// Creates the controller of one end of a connection, for `Simulation::control`. Changes then take effect at the next
    /// acknowledgment, as with the real QUIC stack. With `Simulation::external_control`, TCP and the QUIC model apply them
    /// at the start of the next step, and immediately send what a larger window permits.
    pub fn controller(&self) -> Box<dyn Controller> {
        match &self.0.base {
            None => Box::new(ExternalController(self.clone())),
            Some(base) => Box::new(ChangedController {
                base: base(),
                window_changes: self.0.window_changes.load(Ordering::Acquire),
                handle: self.clone(),
            }),
        }
    }
}

/// The controller of one end of a connection.
#[derive(Debug)]
struct ExternalController(ExternalControl);

impl ExternalController {
    fn apply(&self, control: &mut WindowState) {
        control.cwnd_bytes = self.0.window_bytes();
        // The window is never below the threshold, so that no part of the transport assumes slow start.
        control.ssthresh_bytes = control.cwnd_bytes;
        control.pacing_bps = self.0.0.pacing_bps.load(Ordering::Relaxed);
    }
}

impl Controller for ExternalController {
    fn name(&self) -> &'static str {
        ExternalControl::NAME
    }

    fn requirements(&self) -> ControlRequirements {
        let pacing = self.0.pacing_rate().is_some();
        ControlRequirements { pacing, own_recovery: true, plain_acks: true, ..ControlRequirements::default() }
    }

    fn on_established(&mut self, control: &mut WindowState, _now: Instant, _rtt: Option<Duration>) {
        self.apply(control);
    }

    fn on_external_change(&mut self, control: &mut WindowState, _now: Instant) {
        self.apply(control);
    }

    fn on_ack(&mut self, control: &mut WindowState, _ack: &Ack) {
        self.apply(control);
    }

    fn on_plain_ack(&mut self, control: &mut WindowState, _ack: &PlainAck) {
        self.apply(control);
    }

    fn on_congestion(&mut self, control: &mut WindowState, _congestion: &CongestionEvent) {
        self.apply(control);
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, _exit: &RecoveryExit) {
        self.apply(control);
    }

    fn on_timeout(&mut self, control: &mut WindowState, _timeout: &Timeout) {
        self.apply(control);
    }

    fn on_path_change(&mut self, control: &mut WindowState, _now: Instant) {
        self.apply(control);
    }
}

/// The controller of one end of a connection whose window a base sets and the program changes.
#[derive(Debug)]
struct ChangedController {
    handle: ExternalControl,
    base: Box<dyn Controller>,
    /// The number of changes of the window that this end has applied.
    window_changes: u64,
}

impl ChangedController {
    /// Applies the changes of the program since the last call.
    fn apply(&mut self, control: &mut WindowState) {
        let values = &self.handle.0;
        let rate = values.pacing_bps.load(Ordering::Relaxed);
        if rate > 0 {
            control.pacing_bps = rate;
        }
        let changes = values.window_changes.load(Ordering::Acquire);
        if changes == self.window_changes {
            return;
        }
        self.window_changes = changes;
        let before_bytes = control.cwnd_bytes;
        control.cwnd_bytes = self.handle.window_bytes().max(control.mss_bytes);
        if control.cwnd_bytes < before_bytes {
            // A base with an estimate of the window would otherwise return to its estimate at the next acknowledgment.
            self.base.on_growth_limited(control);
        }
    }
}

impl Controller for ChangedController {
    fn name(&self) -> &'static str {
        ExternalControl::NAME
    }

    fn requirements(&self) -> ControlRequirements {
        self.base.requirements()
    }

    fn on_established(&mut self, control: &mut WindowState, now: Instant, rtt: Option<Duration>) {
        self.base.on_established(control, now, rtt);
        self.apply(control);
    }

    fn on_external_change(&mut self, control: &mut WindowState, _now: Instant) {
        self.apply(control);
    }

    fn on_sent(&mut self, control: &mut WindowState, packet: &PacketState) {
        self.base.on_sent(control, packet);
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        self.base.on_ack(control, ack);
    }

    fn on_plain_ack(&mut self, control: &mut WindowState, ack: &PlainAck) {
        self.base.on_plain_ack(control, ack);
    }

    fn on_packet_lost(&mut self, control: &mut WindowState, now: Instant, packet: &PacketState) {
        self.base.on_packet_lost(control, now, packet);
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        self.base.on_congestion(control, congestion);
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        self.base.on_recovery_exit(control, exit);
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.base.on_timeout(control, timeout);
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, now: Instant) {
        self.base.on_idle_restart(control, now);
    }

    fn on_path_change(&mut self, control: &mut WindowState, now: Instant) {
        self.base.on_path_change(control, now);
    }

    fn growth_limit_bytes(&self, control: &WindowState, ack: &Ack, flight_bytes: u64, in_slow_start: bool) -> u64 {
        self.base.growth_limit_bytes(control, ack, flight_bytes, in_slow_start)
    }

    fn on_growth_limited(&mut self, control: &WindowState) {
        self.base.on_growth_limited(control);
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        self.base.inspect(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_that_of_the_handle_after_every_event() {
        let handle = ExternalControl::new(10_000);
        let mut controller = handle.controller();
        let mut control = WindowState::new(1000, 1);
        controller.on_established(&mut control, Instant::ZERO, None);
        assert_eq!((control.cwnd_bytes, control.pacing_bps), (10_000, 0));
        handle.set_window(20_000);
        handle.set_pacing_rate(Some(Rate::from_bits_per_second(8000)));
        assert_eq!(handle.changes(), 2);
        controller.on_external_change(&mut control, Instant::ZERO);
        assert_eq!((control.cwnd_bytes, control.pacing_bps), (20_000, 8000));
        let congestion = CongestionEvent {
            now: Instant::ZERO,
            in_flight_bytes: 20_000,
            lost_bytes: 1,
            ecn: false,
            persistent: true,
        };
        controller.on_congestion(&mut control, &congestion);
        controller.on_timeout(&mut control, &Timeout { now: Instant::ZERO, in_flight_bytes: 1, repeated: true });
        assert_eq!((control.cwnd_bytes, control.ssthresh_bytes), (20_000, 20_000));
    }

    #[test]
    fn with_a_base_a_change_applies_once_and_the_base_continues() {
        let handle = ExternalControl::with_base(|| Box::new(crate::newreno::NewReno::new(None)));
        let mut controller = handle.controller();
        let mut control = WindowState::new(1000, 20_000);
        controller.on_external_change(&mut control, Instant::ZERO);
        assert_eq!(control.cwnd_bytes, 20_000, "nothing was changed");
        handle.set_window(10_000);
        controller.on_external_change(&mut control, Instant::ZERO);
        assert_eq!(control.cwnd_bytes, 10_000);
        control.cwnd_bytes = 11_000;
        controller.on_external_change(&mut control, Instant::ZERO);
        assert_eq!(control.cwnd_bytes, 11_000, "the change was applied before");
        // A later connection starts with its own window; a change before it is established applies then.
        let mut later = WindowState::new(1000, 20_000);
        handle.controller().on_external_change(&mut later, Instant::ZERO);
        assert_eq!(later.cwnd_bytes, 20_000);
        let mut opening = handle.controller();
        handle.set_window(9000);
        opening.on_established(&mut later, Instant::ZERO, None);
        assert_eq!(later.cwnd_bytes, 9000);
        handle.set_window(11_000);
        controller.on_external_change(&mut control, Instant::ZERO);
        // A change of the rate does not repeat the change of the window.
        handle.set_pacing_rate(Some(Rate::from_bits_per_second(8000)));
        controller.on_external_change(&mut control, Instant::ZERO);
        assert_eq!((control.cwnd_bytes, control.pacing_bps), (11_000, 8000));
        // RFC 5681 equation 4: half of the bytes in flight.
        let congestion = CongestionEvent {
            now: Instant::ZERO,
            in_flight_bytes: 10_000,
            lost_bytes: 1000,
            ecn: false,
            persistent: false,
        };
        controller.on_congestion(&mut control, &congestion);
        assert_eq!(control.ssthresh_bytes, 5000);
        handle.set_window(0);
        controller.on_external_change(&mut control, Instant::ZERO);
        assert_eq!(control.cwnd_bytes, 1000, "one segment");
    }

    /// Without the call to the base, CUBIC in its Reno-friendly region would set the window to its estimate again.
    #[test]
    fn cubic_does_not_return_to_its_estimate_after_a_reduction_by_the_program() {
        let handle = ExternalControl::with_base(|| Box::new(crate::cubic::Cubic::default()));
        let mut controller = handle.controller();
        let mut control = WindowState { ssthresh_bytes: 20_000, ..WindowState::new(1000, 20_000) };
        let ack = |milliseconds| PlainAck {
            now: Instant::ZERO + Duration::from_millis(milliseconds),
            acked_bytes: 1000,
            smoothed_rtt: Duration::from_millis(10),
            cwnd_limited: true,
        };
        controller.on_plain_ack(&mut control, &ack(10));
        handle.set_window(10_000);
        controller.on_external_change(&mut control, Instant::ZERO + Duration::from_millis(11));
        controller.on_plain_ack(&mut control, &ack(12));
        // One acknowledgment of a tenth of the window adds at most half of this share: the largest target is 1.5 windows.
        assert!((10_000..=10_500).contains(&control.cwnd_bytes), "{}", control.cwnd_bytes);
    }
}
