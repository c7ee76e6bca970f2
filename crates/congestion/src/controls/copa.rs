//! The congestion control Copa, which keeps a short queue and competes with controls that fill buffers.
//!
//! **Model.** The queue delay `dq` is the smallest round-trip time of the last half smoothed round-trip time (*standing*) minus
//! the smallest of ten seconds. The target rate is 1 / (delta dq) packets per second. Each acknowledgment compares it with the
//! rate, which is the window over the standing round-trip time:
//!
//! ```text
//! rate <= target    window + v / (delta window)       for each packet acknowledged
//! rate >  target    window - v / (delta window)
//! ```
//!
//! Per round trip, the window thus changes by v / delta packets. Once per window, it is compared with the window one round trip
//! earlier. While it moves in the same direction for more than three windows, the *velocity* v doubles with each further window. A
//! change of direction sets v to 1. The pacing rate is twice the window over the standing round-trip time. Slow start doubles
//! the window per round trip until the rate exceeds the target.
//!
//! In *default mode*, delta is 0.5. With v = 1 the window then changes by two packets per round trip. A flow alone sees its queue
//! 1.5 round trips late while it grows and one round trip late while it shrinks. The queue therefore oscillates around two
//! packets between 0 and 5, with a mean of 2.5 packets and a period of five round trips. Losses and marks change nothing.
//!
//! A queue that has not been nearly empty in the last five round trips has a competitor that fills it. Nearly empty is a delay of at
//! most a tenth of the range, from the smallest round-trip time to the largest of the last four round trips. In *competitive mode*,
//! 1 / delta grows by 1 per round trip without a loss or a mark, and halves otherwise. It is at least 2. Default mode resets it to 2.
//!
//! **Known defect.** Mode detection can take a queue of Copa flows for that of a competitor. The queue of n flows is empty once in
//! five round trips only if their windows move together. A tenth of its range is half a packet for one flow and one packet for two,
//! so a single packet that remains at each minimum begins competitive mode. Without losses, 1 / delta then grows by 1 per round
//! trip. If this lasts for ten seconds, the smallest round-trip time contains a queue as well. Two flows of 10 ms at 10 Mbit/s with
//! a buffer of 8 s kept a mean of 652 packets queued from 30 to 60 s, and 4.6 packets in default mode. The code follows the paper
//! nevertheless: with another rule it would be another control. `tcp.copa_mode = "fixed-delta"` disables competitive mode, for
//! scenarios in which all flows use Copa.
//!
//! Losses do not limit the window in default mode. On a bottleneck whose buffer has fewer than two packets, the queue delay never
//! reaches the target, and the window grows by two packets per round trip until a timeout.
//!
//! **Source.** Arun and Balakrishnan, Copa: Practical Delay-Based Congestion Control for the Internet, NSDI 2018, sections 2.1
//! (update, velocity, slow start), 2.2 (modes) and 3 (oscillation).
//!
//! **Choices that the paper leaves open.**
//! * An acknowledgment changes the window by at most the bytes that it acknowledges, and v / delta is at most the window. The window
//!   thus never grows faster than in slow start.
//! * An acknowledgment whose rate is on the other side of the target sets v to 1 at once. With v kept until the end of the
//!   window, one flow of 100 ms at 10 Mbit/s had windows from 5 to 160 packets and used 39 % of the link.
//! * v does not double in a window with a loss. Otherwise the window would grow exponentially where losses prevent a queue.
//! * The round-trip time of the handshake is no sample, because its packets are shorter than packets with data.
//! * The window grows only while it limits sending, and is at least two segments.
//! * A loss or a mark ends slow start. Otherwise slow start would not end on a path without a queue, such as a policer.
//! * A timeout sets the window to two segments and begins slow start. A spurious one is undone.
//! * After an idle period the window remains, because it is paced. Velocity and mode detection begin anew.
//! * Equality counts as nearly empty, so that a path without any variation of the delay is in default mode.
//! * A sample of a sliding window counts until it is older than the window. Samples closer than 1/32 of the window to a better one
//!   are not stored.
//!
//! **State** (`control_state`). 0: slow start; 1: default mode; 2: competitive mode.

use crate::component::{ControlComponent, HyStartSupport, declare};
use crate::control::{
    Ack, CongestionEvent, ControlRequirements, Controller, PacketState, RecoveryExit, Timeout, WindowState,
};
use crate::window::{segment, two_segments};
use fullpipe_schema::component::Declaration;
use fullpipe_units::{Duration, Instant};
use std::cmp::Ordering;
use std::collections::VecDeque;

pub(super) static COPA: ControlComponent = ControlComponent {
    declaration: Declaration {
        name: "copa",
        version: "Arun and Balakrishnan (2018)",
        source: "NSDI 2018",
        text: "Keeps 2.5 packets in the queue by comparing its rate with the inverse of the queue delay; more if \
               others fill the queue.",
        ..Declaration::EMPTY
    },
    create: |options| {
        Box::new(Copa::new(if options.copa_fixed_delta { CopaMode::FixedDelta } else { CopaMode::Switching }))
    },
    hystart: HyStartSupport::None,
    values: &[
        declare("control_delta", "", "its weight of delay against throughput (Copa)."),
        declare("control_velocity", "", "the factor of its window change (Copa)."),
    ],
    states: &["slow_start", "default", "competitive"],
    linux_name: None,
};

/// 1 / delta in default mode, and its smallest value in competitive mode.
const DEFAULT_PACKETS: f64 = 2.0;
/// The window of the smallest round-trip time.
const BASE_WINDOW: Duration = Duration::from_secs(10);
/// The queue counts as nearly empty if its delay is at most the range divided by this number.
const NEARLY_EMPTY: u64 = 10;
/// The window of the largest round-trip time, in round trips.
const RANGE_ROUNDS: u64 = 4;
/// Round trips without a nearly empty queue after which competitive mode begins.
const DETECTION_ROUNDS: u64 = 5;
/// The velocity doubles from this number of windows in the direction of the previous one on. In equilibrium the direction
/// remains for 2.5 round trips.
const PERSISTENT_WINDOWS: u32 = 3;
/// The pacing rate over the rate of the window.
const PACING_GAIN: f64 = 2.0;
/// The number of samples that a sliding window stores at most, except those within one interval of this part.
const RESOLUTION: u64 = 32;

/// The modes that Copa may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopaMode {
    /// Default mode, and competitive mode while a competitor fills the queue.
    #[default]
    Switching,
    /// Default mode only: delta is fixed at 0.5.
    FixedDelta,
}

/// Copa (NSDI 2018).
#[derive(Clone, Debug)]
pub struct Copa {
    allowed: CopaMode,
    /// Whether the window was below the threshold at the last call.
    in_slow_start: bool,
    is_competitive: bool,
    /// 1 / delta.
    packets: f64,
    velocity: f64,
    /// The direction of the last window, and the number of windows in the direction of the previous one.
    direction: Ordering,
    persistent_windows: u32,
    /// The window at the start of the current round.
    round_began_bytes: u64,
    loss_in_round: bool,
    /// The smallest round-trip time of ten seconds and of half a round trip, and the largest of four round trips.
    base: SlidingBest,
    standing: SlidingBest,
    largest: SlidingBest,
    /// When the queue was last nearly empty.
    empty_at: Instant,
    /// The window before a timeout, for an undo; 0 for none.
    before_timeout_bytes: u64,
    /// The part of a byte by which the window has changed.
    fraction: f64,
}

impl Default for Copa {
    fn default() -> Self {
        Self::new(CopaMode::Switching)
    }
}

impl Copa {
    /// Creates Copa with the constants of the paper.
    pub fn new(allowed: CopaMode) -> Self {
        Copa {
            allowed,
            in_slow_start: true,
            is_competitive: false,
            packets: DEFAULT_PACKETS,
            velocity: 1.0,
            direction: Ordering::Equal,
            persistent_windows: 0,
            round_began_bytes: 0,
            loss_in_round: false,
            base: SlidingBest::new(Ordering::Less),
            standing: SlidingBest::new(Ordering::Less),
            largest: SlidingBest::new(Ordering::Greater),
            empty_at: Instant::ZERO,
            before_timeout_bytes: 0,
            fraction: 0.0,
        }
    }

    fn sample(&mut self, now: Instant, rtt: Duration, smoothed_rtt: Duration) {
        // Not zero, because it is a divisor.
        let rtt = rtt.max(Duration::from_nanos(1));
        self.base.sample(now, rtt, BASE_WINDOW);
        self.standing.sample(now, rtt, smoothed_rtt / 2);
        self.largest.sample(now, rtt, smoothed_rtt.saturating_mul(RANGE_ROUNDS));
    }

    /// The queue delay; zero before the first sample.
    fn queue_delay(&self) -> Duration {
        self.above_base(&self.standing)
    }

    fn above_base(&self, samples: &SlidingBest) -> Duration {
        match (samples.best(), self.base.best()) {
            (Some(rtt), Some(base)) => rtt.saturating_sub(base),
            _ => Duration::ZERO,
        }
    }

    /// Whether the window over the standing round-trip time exceeds 1 / (delta dq), without a division by dq.
    fn exceeds_target(&self, control: &WindowState) -> bool {
        let Some(standing) = self.standing.best() else { return false };
        let window = control.cwnd_bytes as f64 / segment(control) as f64;
        window * self.queue_delay().as_secs_f64() > self.packets * standing.as_secs_f64()
    }

    fn detect_mode(&mut self, now: Instant, smoothed_rtt: Duration) {
        if self.queue_delay() <= self.above_base(&self.largest) / NEARLY_EMPTY {
            self.empty_at = now;
        }
        let without_empty = now.saturating_since(self.empty_at);
        let is_competitive =
            self.allowed == CopaMode::Switching && without_empty > smoothed_rtt.saturating_mul(DETECTION_ROUNDS);
        if is_competitive != self.is_competitive {
            self.is_competitive = is_competitive;
            self.packets = DEFAULT_PACKETS;
        }
    }

    /// Updates velocity and delta at the end of a window.
    fn end_window(&mut self, control: &WindowState) {
        let direction = control.cwnd_bytes.cmp(&self.round_began_bytes);
        self.round_began_bytes = control.cwnd_bytes;
        if direction == self.direction && direction != Ordering::Equal {
            self.persistent_windows = self.persistent_windows.saturating_add(1);
            if self.persistent_windows >= PERSISTENT_WINDOWS && !self.loss_in_round {
                let window = control.cwnd_bytes as f64 / segment(control) as f64;
                self.velocity = (self.velocity * 2.0).min(window / self.packets).max(1.0);
            }
        } else {
            self.reset_velocity(direction);
        }
        if self.is_competitive && !self.loss_in_round {
            self.packets += 1.0;
        }
        self.loss_in_round = false;
    }

    fn reset_velocity(&mut self, direction: Ordering) {
        self.direction = direction;
        self.persistent_windows = 0;
        self.velocity = 1.0;
    }

    /// Ends slow start at the current window.
    fn leave_slow_start(&mut self, control: &mut WindowState, now: Instant) {
        self.in_slow_start = false;
        control.ssthresh_bytes = control.cwnd_bytes.max(two_segments(control));
        self.round_began_bytes = control.cwnd_bytes;
        self.reset_velocity(Ordering::Equal);
        self.empty_at = now;
    }

    fn begin_slow_start(&mut self, control: &mut WindowState) {
        self.in_slow_start = true;
        control.cwnd_bytes = two_segments(control);
        control.ssthresh_bytes = u64::MAX;
        self.is_competitive = false;
        self.packets = DEFAULT_PACKETS;
        self.fraction = 0.0;
        self.reset_velocity(Ordering::Equal);
    }

    /// Moves the window towards the target rate.
    fn update_window(&mut self, control: &mut WindowState, ack: &Ack) {
        let exceeds_target = self.exceeds_target(control);
        let direction = if exceeds_target { Ordering::Less } else { Ordering::Greater };
        if self.velocity > 1.0 && direction != self.direction {
            self.reset_velocity(direction);
        }
        let acked = ack.acked_bytes as f64;
        let window = control.cwnd_bytes.max(1) as f64;
        let change = (self.velocity * self.packets * segment(control) as f64 / window * acked).min(acked);
        if exceeds_target {
            self.fraction -= change;
        } else if ack.cwnd_limited {
            self.fraction += change;
        }
        let whole = self.fraction.trunc();
        self.fraction -= whole;
        // `as` saturates.
        let bytes = whole.abs() as u64;
        let moved = if whole < 0.0 {
            control.cwnd_bytes.saturating_sub(bytes)
        } else {
            control.cwnd_bytes.saturating_add(bytes)
        };
        control.cwnd_bytes = moved.max(two_segments(control));
        // Slow start must not resume when the window grows again.
        control.ssthresh_bytes = control.ssthresh_bytes.min(control.cwnd_bytes);
    }

    fn state(&self) -> u32 {
        match (self.in_slow_start, self.is_competitive) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        }
    }
}

impl Controller for Copa {
    fn name(&self) -> &'static str {
        COPA.declaration.name
    }

    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { pacing: true, own_recovery: true, ..ControlRequirements::default() }
    }

    fn on_established(&mut self, control: &mut WindowState, _now: Instant, rtt: Option<Duration>) {
        pace(control, rtt);
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.sample(ack.now, rtt, ack.smoothed_rtt);
        }
        self.in_slow_start = control.cwnd_bytes < control.ssthresh_bytes;
        if self.in_slow_start {
            if self.exceeds_target(control) {
                self.leave_slow_start(control, ack.now);
            } else if ack.cwnd_limited {
                let room = control.ssthresh_bytes - control.cwnd_bytes;
                control.cwnd_bytes += ack.acked_bytes.min(room);
            }
            self.empty_at = ack.now;
        } else {
            self.detect_mode(ack.now, ack.smoothed_rtt);
            if ack.round_start {
                self.end_window(control);
            }
            self.update_window(control, ack);
        }
        pace(control, self.standing.best());
    }

    fn on_packet_lost(&mut self, _control: &mut WindowState, _now: Instant, _packet: &PacketState) {
        self.loss_in_round = true;
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        self.loss_in_round = true;
        if congestion.persistent {
            self.begin_slow_start(control);
            pace(control, self.standing.best());
            return;
        }
        if self.is_competitive {
            self.packets = (self.packets / 2.0).max(DEFAULT_PACKETS);
        }
        if control.cwnd_bytes < control.ssthresh_bytes {
            self.leave_slow_start(control, congestion.now);
        }
        control.ssthresh_bytes = control.ssthresh_bytes.max(two_segments(control));
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        if exit.undone && self.before_timeout_bytes > 0 {
            control.cwnd_bytes = control.cwnd_bytes.max(self.before_timeout_bytes);
            self.leave_slow_start(control, exit.now);
            pace(control, self.standing.best());
        }
        self.before_timeout_bytes = 0;
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        if !timeout.repeated {
            self.before_timeout_bytes = control.cwnd_bytes;
        }
        self.begin_slow_start(control);
        pace(control, self.standing.best());
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, now: Instant) {
        self.round_began_bytes = control.cwnd_bytes;
        self.reset_velocity(Ordering::Equal);
        self.standing.clear();
        self.largest.clear();
        self.empty_at = now;
    }

    fn on_path_change(&mut self, control: &mut WindowState, _now: Instant) {
        control.cwnd_bytes = control.cwnd_bytes.max(two_segments(control));
        control.ssthresh_bytes = control.ssthresh_bytes.max(two_segments(control));
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("delta", 1.0 / self.packets));
        out.push(("velocity", self.velocity));
        out.push(("queue_delay_s", self.queue_delay().as_secs_f64()));
        out.push(("base_rtt_s", self.base.best().unwrap_or(Duration::ZERO).as_secs_f64()));
        out.push(("state", f64::from(self.state())));
    }
}

/// Sets the pacing rate for this standing round-trip time, if it is known.
fn pace(control: &mut WindowState, standing: Option<Duration>) {
    if let Some(standing) = standing {
        let bits = PACING_GAIN * control.cwnd_bytes as f64 * 8.0;
        control.pacing_bps = ((bits * 1e9 / standing.as_nanos().max(1) as f64) as u64).max(1);
    }
}

/// The smallest or largest of the samples in a sliding window of time.
#[derive(Clone, Debug)]
struct SlidingBest {
    /// How a better sample compares with a worse one.
    better: Ordering,
    /// Samples without a later sample that is at least as good, oldest and best first.
    samples: VecDeque<(Instant, Duration)>,
}

impl SlidingBest {
    fn new(better: Ordering) -> Self {
        SlidingBest { better, samples: VecDeque::new() }
    }

    fn sample(&mut self, now: Instant, value: Duration, window: Duration) {
        while self.samples.front().is_some_and(|(at, _)| now.saturating_since(*at) > window) {
            self.samples.pop_front();
        }
        while self.samples.back().is_some_and(|(_, last)| last.cmp(&value) != self.better) {
            self.samples.pop_back();
        }
        // Bounds the memory while the samples become worse.
        if self.samples.back().is_none_or(|(at, _)| now.saturating_since(*at) >= window / RESOLUTION) {
            self.samples.push_back((now, value));
        }
    }

    fn best(&self) -> Option<Duration> {
        self.samples.front().map(|(_, value)| *value)
    }

    fn clear(&mut self) {
        self.samples.clear();
    }
}
