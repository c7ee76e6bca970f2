//! A simulator of one flow on a path without a queue: the round-trip time is constant, the window is always full, and
//! acknowledgements are evenly spread over the round trip. Recovery takes no time: a loss is detected at once, the window is set
//! to the threshold, and the next acknowledgement is in congestion avoidance. A cycle between losses thus matches the formulas of
//! the literature exactly. The mean window over time is packets per cycle divided by round trips per cycle.

use fullpipe_congestion::{Ack, CongestionEvent, Controller, EcnCodepoint, RecoveryExit, Timeout, WindowState};
use fullpipe_units::{Duration, Instant};

/// The segment size: large enough that rounding to bytes is negligible.
pub(crate) const MSS: u64 = 1_448;

pub(crate) struct Flow<C> {
    pub(crate) control: WindowState,
    pub(crate) controller: C,
    pub(crate) now_seconds: f64,
    pub(crate) rtt_seconds: f64,
    /// Segments acknowledged by one acknowledgement.
    pub(crate) ack_every: u64,
    /// Segments that still have to arrive before the round ends.
    round_left: f64,
}

/// The mean and extremes over whole cycles between losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cycles {
    /// Segments acknowledged per round trip.
    pub(crate) mean_window: f64,
    /// Window at the last loss, in segments.
    pub(crate) window_at_loss: f64,
}

pub(crate) fn instant(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// An acknowledgement of this number of bytes in the steady state of a full window.
/// Sets the codepoint of a control that responds itself to marks, as transports do.
pub(crate) fn set_codepoint(control: &mut WindowState, controller: &dyn Controller) {
    if controller.requirements().l4s {
        control.codepoint = EcnCodepoint::Ect1;
    }
}

pub(crate) fn full_window_ack(now: Instant, acked_bytes: u64, rtt: Duration, cwnd_bytes: u64) -> Ack {
    Ack {
        now,
        acked_bytes,
        cumulative_bytes: acked_bytes,
        lost_bytes: 0,
        rtt: Some(rtt),
        smoothed_rtt: rtt,
        min_rtt: rtt,
        ack_delay: Duration::ZERO,
        one_way_delay: None,
        prior_in_flight_bytes: cwnd_bytes,
        in_flight_bytes: cwnd_bytes.saturating_sub(acked_bytes),
        delivered_bytes: 0,
        round_count: 0,
        round_start: false,
        rate: None,
        app_limited: false,
        cwnd_limited: true,
        in_recovery: false,
        ce_packets: 0,
        ce_bytes: 0,
    }
}

impl<C: Controller> Flow<C> {
    pub(crate) fn new(controller: C, window_segments: u64, rtt_seconds: f64) -> Self {
        Flow {
            control: WindowState::new(MSS, window_segments * MSS),
            controller,
            now_seconds: 0.0,
            rtt_seconds,
            ack_every: 1,
            round_left: window_segments as f64,
        }
    }

    pub(crate) fn window(&self) -> f64 {
        self.control.cwnd_bytes as f64 / MSS as f64
    }

    /// An internal value of the control.
    pub(crate) fn value(&self, name: &str) -> f64 {
        let mut values = Vec::new();
        self.controller.inspect(&mut values);
        values.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no value {name}")).1
    }

    /// Acknowledges one segment at a time until an instant.
    pub(crate) fn run_until(&mut self, seconds: f64) {
        while self.now_seconds < seconds {
            self.ack(1);
        }
    }

    pub(crate) fn now(&self) -> Instant {
        instant(self.now_seconds)
    }

    pub(crate) fn rtt(&self) -> Duration {
        Duration::from_secs_f64(self.rtt_seconds)
    }

    /// Acknowledges segments, after the time that they take at a window per round trip.
    pub(crate) fn ack(&mut self, segments: u64) {
        self.now_seconds += segments as f64 * self.rtt_seconds / self.window();
        let mut ack = full_window_ack(self.now(), segments * MSS, self.rtt(), self.control.cwnd_bytes);
        self.round_left -= segments as f64;
        if self.round_left <= 0.0 {
            self.round_left = self.window();
            ack.round_start = true;
        }
        self.controller.on_ack(&mut self.control, &ack);
    }

    /// Runs one round trip: everything sent at its start is acknowledged.
    pub(crate) fn round(&mut self) {
        let window = self.control.cwnd_bytes / MSS;
        for _ in 0..window / self.ack_every {
            self.ack(self.ack_every);
        }
    }

    /// Reports a loss.
    pub(crate) fn congestion(&mut self) {
        let congestion = CongestionEvent {
            now: self.now(),
            in_flight_bytes: self.control.cwnd_bytes,
            lost_bytes: MSS,
            ecn: false,
            persistent: false,
        };
        self.controller.on_congestion(&mut self.control, &congestion);
    }

    /// Ends the recovery, as justified or as spurious.
    pub(crate) fn recovered(&mut self, undone: bool) {
        self.control.cwnd_bytes = self.control.ssthresh_bytes;
        let exit = RecoveryExit { now: self.now(), in_flight_bytes: self.control.cwnd_bytes, undone };
        self.controller.on_recovery_exit(&mut self.control, &exit);
    }

    pub(crate) fn lose(&mut self) {
        self.congestion();
        self.recovered(false);
    }

    pub(crate) fn time_out(&mut self, repeated: bool) {
        let timeout = Timeout { now: self.now(), in_flight_bytes: self.control.cwnd_bytes, repeated };
        self.controller.on_timeout(&mut self.control, &timeout);
        self.control.cwnd_bytes = MSS;
    }

    /// Loses one segment in `every`. The first `warm_up` cycles, which depend on the start, do not count.
    pub(crate) fn periodic_loss(&mut self, every: u64, warm_up: u32, cycles: u32) -> Cycles {
        let mut result = Cycles { mean_window: 0.0, window_at_loss: 0.0 };
        let (mut segments, mut begin) = (0, 0.0);
        for cycle in 0..warm_up + cycles {
            if cycle == warm_up {
                (segments, begin) = (0, self.now_seconds);
            }
            let mut left = every - 1;
            while left > 0 {
                let arrived = left.min(self.ack_every);
                self.ack(arrived);
                left -= arrived;
                segments += arrived;
            }
            result.window_at_loss = self.window();
            self.lose();
        }
        result.mean_window = segments as f64 * self.rtt_seconds / (self.now_seconds - begin);
        result
    }
}
