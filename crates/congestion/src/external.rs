//! A congestion control whose window and pacing rate the program sets, for example an agent that steps through a
//! simulation.
//!
//! **Model.** The control applies the values of its handle at every event of the transport. Acknowledgments, losses,
//! marks and timeouts change neither. In fast recovery and after a timeout, the window remains the one that the program
//! has set; the transport only selects the segments to retransmit.

use crate::control::{
    Ack, CongestionEvent, ControlRequirements, Controller, PlainAck, RecoveryExit, Timeout, WindowState,
};
use fullpipe_units::{Duration, Instant, Rate};
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

#[derive(Debug)]
struct Values {
    window_bytes: AtomicU64,
    /// Pacing rate in bits per second; 0 if there is none.
    pacing_bps: AtomicU64,
    /// Number of changes.
    changes: AtomicU64,
}

impl ExternalControl {
    /// The name of the control in records.
    pub const NAME: &'static str = "external";

    /// Creates a handle with an initial congestion window in bytes and without a pacing rate.
    pub fn new(window_bytes: u64) -> Self {
        let values = Values {
            window_bytes: AtomicU64::new(window_bytes),
            pacing_bps: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        };
        ExternalControl(Arc::new(values))
    }

    /// Sets the congestion window in bytes: payload with TCP, packets with QUIC. The transport permits at least one
    /// segment (TCP) or two packets (QUIC) in flight.
    pub fn set_window(&self, window_bytes: u64) {
        self.0.window_bytes.store(window_bytes, Ordering::Relaxed);
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// Sets the pacing rate. With `None` or rate 0, the pacing setting of the transport applies: `tcp.pacing` or
    /// `quic.pacing`.
    pub fn set_pacing_rate(&self, rate: Option<Rate>) {
        self.0.pacing_bps.store(rate.map_or(0, Rate::bits_per_second), Ordering::Relaxed);
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    /// Returns the congestion window in bytes.
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
    /// at the start of the next step, and send at once what a larger window permits.
    pub fn controller(&self) -> Box<dyn Controller> {
        Box::new(ExternalController(self.clone()))
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
}
