//! The congestion control Reno as implemented in Linux.
//!
//! **Model.** Growth depends on the bytes acknowledged, not on the number of acknowledgments, so delayed
//! acknowledgments do not change it. Slow start adds every byte acknowledged up to the threshold. The remaining bytes
//! count for congestion avoidance, which adds one segment for each window of acknowledged bytes. The window grows only
//! while it limits sending. A reduction sets the threshold to half of the window in whole segments, at least two.
//!
//! **Source.** The behavior of Linux 6.12 `net/ipv4/tcp_cong.c` (`tcp_reno_cong_avoid`, `tcp_slow_start`,
//! `tcp_cong_avoid_ai`, `tcp_reno_ssthresh`, `tcp_reno_undo_cwnd`); ns-3's `TcpLinuxReno` is the same. Linux counts
//! segments and this code counts bytes, which is equal for full segments. RFC 5681 uses half of the bytes in flight;
//! half of the window is safe here, because an unused window does not grow.
//!
//! After an idle period, Linux halves the window once per elapsed timeout. Here, the window is immediately set to the
//! result, which is the initial window.

use crate::component::{ControlComponent, HyStartSupport};
use crate::control::{
    Ack, CongestionEvent, ControlRequirements, Controller, PlainAck, RecoveryExit, Timeout, WindowState,
};
use crate::hystart::{HyStart, slow_start};
use crate::window::{self, UndoState};
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static LINUX_RENO: ControlComponent = ControlComponent {
    declaration: Declaration {
        name: "linux-reno",
        version: "Linux 6.12",
        source: "Linux net/ipv4/tcp_cong.c; as ns-3's TcpLinuxReno",
        text: "Reno with growth by bytes acknowledged, only while the window limits sending; half the window on loss.",
        ..Declaration::EMPTY
    },
    create: |options| {
        let hystart = options.standard_hystart().filter(|_| options.hystart_all || !options.linux_hystart);
        Box::new(LinuxReno { abe: options.abe, ..LinuxReno::new(hystart) })
    },
    hystart: HyStartSupport::Standard,
    values: &[],
    states: &[],
    linux_name: Some("reno"),
};

/// Reno as implemented in the Linux kernel.
#[derive(Clone, Debug, Default)]
pub struct LinuxReno {
    /// Bytes acknowledged towards the next segment (`snd_cwnd_cnt`).
    counted_bytes: u64,
    hystart: Option<HyStart>,
    /// Alternative Backoff with ECN (RFC 8511).
    abe: bool,
    undo: UndoState,
}

impl LinuxReno {
    /// Creates Linux's Reno. `hystart` is used in the first slow start; `None` disables HyStart, as in Linux.
    pub fn new(hystart: Option<HyStart>) -> Self {
        LinuxReno { hystart, ..Default::default() }
    }

    fn avoid(&mut self, control: &mut WindowState, acked_bytes: u64) {
        let mss = window::segment(control);
        let cwnd = control.cwnd_bytes.max(mss);
        control.cwnd_bytes = cwnd;
        if self.counted_bytes >= cwnd {
            // Bytes counted while the window was larger add at most one segment.
            self.counted_bytes = 0;
            control.cwnd_bytes = control.cwnd_bytes.saturating_add(mss);
        }
        self.counted_bytes = self.counted_bytes.saturating_add(acked_bytes);
        if self.counted_bytes >= cwnd {
            let windows = self.counted_bytes / cwnd;
            self.counted_bytes -= windows * cwnd;
            control.cwnd_bytes = control.cwnd_bytes.saturating_add(windows.saturating_mul(mss));
        }
    }

    /// Discards the bytes that were acknowledged towards the next segment.
    pub(crate) fn reset_growth(&mut self) {
        self.counted_bytes = 0;
    }

    /// Discards the state before the last reduction, so that it is not restored.
    pub(crate) fn forget_undo(&mut self) {
        self.undo.forget();
    }

    /// Reduces the window to this number of bytes.
    pub(crate) fn reduce(&mut self, control: &mut WindowState, congestion: &CongestionEvent, reduced_bytes: u64) {
        self.undo.on_congestion(control, congestion);
        window::reduce(control, congestion, reduced_bytes);
        self.counted_bytes = 0;
    }
}

impl Controller for LinuxReno {
    fn name(&self) -> &'static str {
        LINUX_RENO.declaration.name
    }

    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { plain_acks: true, ..ControlRequirements::default() }
    }

    #[inline]
    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        if ack.in_recovery {
            return;
        }
        let mut acked = ack.acked_bytes;
        if control.cwnd_bytes < control.ssthresh_bytes {
            acked = slow_start(self.hystart.as_mut(), control, ack);
        }
        if acked > 0 && ack.cwnd_limited {
            self.avoid(control, acked);
        }
    }

    #[inline]
    fn on_plain_ack(&mut self, control: &mut WindowState, ack: &PlainAck) {
        if ack.acked_bytes > 0 && ack.cwnd_limited {
            self.avoid(control, ack.acked_bytes);
        }
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        let reduced = if self.abe && congestion.ecn && !congestion.persistent {
            let mss = window::segment(control);
            window::reno_after_mark(control.cwnd_bytes / mss) * mss
        } else {
            half_in_segments(control)
        };
        self.reduce(control, congestion, reduced);
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        self.undo.on_recovery_exit(control, exit);
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.undo.on_timeout(control, timeout);
        if !timeout.repeated {
            control.ssthresh_bytes = half_in_segments(control).max(window::two_segments(control));
        }
        self.counted_bytes = 0;
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, _now: Instant) {
        window::keep_three_quarters(control);
        window::restart(control);
    }

    fn on_path_change(&mut self, control: &mut WindowState, _now: Instant) {
        window::resize(control);
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("counted_bytes", self.counted_bytes as f64));
        if let Some(hystart) = &self.hystart {
            out.push(("hystart_phase", hystart.phase_number()));
        }
    }
}

/// Half the window, rounded down to whole segments.
fn half_in_segments(control: &WindowState) -> u64 {
    let mss = window::segment(control);
    control.cwnd_bytes / mss / 2 * mss
}
