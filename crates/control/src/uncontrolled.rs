//! A congestion controller without congestion control.

use noq_proto::RttEstimator;
use noq_proto::congestion::{self, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::sync::Arc;

/// No congestion control: the connection sends data immediately.
#[derive(Clone, Copy, Debug)]
pub struct NoCongestionControl;

impl ControllerFactory for NoCongestionControl {
    fn build(self: Arc<Self>, _now: std::time::Instant, _current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(*self)
    }
}

impl congestion::Controller for NoCongestionControl {
    fn on_ack(
        &mut self,
        _now: std::time::Instant,
        _sent: std::time::Instant,
        _bytes: u64,
        _number: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
    }

    fn on_congestion_event(
        &mut self,
        _now: std::time::Instant,
        _sent: std::time::Instant,
        _is_persistent_congestion: bool,
        _is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost: u64,
    ) {
    }

    fn on_mtu_update(&mut self, _new_mtu: u16) {}

    /// Larger than any path's BDP, and small enough that sums of windows do not overflow.
    fn window(&self) -> u64 {
        1 << 40
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        // A rate of a petabit per second, which the stack's pacer does not limit.
        metrics.pacing_rate = Some(1 << 47);
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
