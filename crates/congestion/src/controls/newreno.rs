//! The congestion control NewReno as specified in the RFCs.
//!
//! **Model.** In slow start each acknowledgment of new data adds the bytes that it acknowledges, at most one segment.
//! In congestion avoidance it adds SMSS * SMSS / window, regardless of how much it acknowledges. With delayed
//! acknowledgments, the growth is thus slower: a factor of 1.5 instead of 2 per round trip in slow start, and half a
//! segment in congestion avoidance. A reduction sets the threshold to half of the bytes in flight, at least two
//! segments.
//!
//! **The NewReno of QUIC** ([`NewReno::with_quic_growth`]) counts bytes. Slow start adds the bytes acknowledged, and
//! congestion avoidance SMSS * acknowledged / window, so that delayed acknowledgments do not change the growth. A
//! reduction halves the window, regardless of the bytes in flight.
//!
//! **Source.** RFC 5681 (September 2009) section 3.1, equations 2 to 4; RFC 6582; for QUIC RFC 9002 sections 7.3.1 to
//! 7.3.3. ns-3's `TcpNewReno` follows the same rules. The sum of equation 3 has 16 fractional bits to avoid rounding
//! losses. With whole bytes, as in ns-3, a window of 1 000 segments of 1448 bytes would grow by 1 byte instead of 1.448
//! per acknowledgment.
//!
//! The window also grows while it does not limit sending. RFC 5681 has no rule against this, and therefore uses half of
//! the bytes in flight instead of half of the window. `linux-reno` has such a rule, and so has the NewReno of QUIC (RFC
//! 9002 section 7.8).

use crate::component::{ControlComponent, HyStartSupport};
use crate::control::{Ack, CongestionEvent, Controller, RecoveryExit, Timeout, WindowState};
use crate::hystart::{HyStart, SlowStartPhase};
use crate::window::{self, UndoState};
use fullpipe_schema::component::Declaration;
use fullpipe_units::Instant;

pub(super) static NEWRENO: ControlComponent = ControlComponent {
    declaration: Declaration {
        name: "newreno",
        version: "RFC 5681 (2009), RFC 6582 (2012)",
        source: "RFC 5681 section 3.1; RFC 6582; as ns-3's TcpNewReno",
        text: "One segment per acknowledgement in slow start, SMSS*SMSS/window after it; half of the bytes in \
               flight on loss.",
        ..Declaration::EMPTY
    },
    create: |options| {
        let control = NewReno { abe: options.abe, ..NewReno::new(options.standard_hystart()) };
        Box::new(if options.quic { control.with_quic_growth() } else { control })
    },
    hystart: HyStartSupport::Standard,
    values: &[],
    states: &[],
    linux_name: Some("reno"),
};

/// The number of fractional bits of a byte.
const FRACTION_BITS: u32 = 16;
/// A bound that keeps SMSS * SMSS, shifted by the fractional bits, within 64 bits. It is far above all segment sizes.
const MAX_SEGMENT: u64 = 1 << 23;

/// NewReno (RFC 5681, RFC 6582).
#[derive(Clone, Debug, Default)]
pub struct NewReno {
    /// The fraction of a byte by which the window has grown, in units of 2^-16 bytes.
    fraction: u64,
    hystart: Option<HyStart>,
    of_quic: bool,
    /// Alternative Backoff with ECN (RFC 8511).
    abe: bool,
    undo: UndoState,
}

impl NewReno {
    /// Creates NewReno. `hystart` is used in the first slow start; `None` disables HyStart.
    pub fn new(hystart: Option<HyStart>) -> Self {
        NewReno { hystart, ..Default::default() }
    }

    /// Selects the NewReno of QUIC (RFC 9002).
    #[must_use]
    pub fn with_quic_growth(self) -> Self {
        NewReno { of_quic: true, ..self }
    }

    fn slow_start(&mut self, control: &mut WindowState, ack: &Ack) {
        let mss = window::segment(control);
        let growth = match &mut self.hystart {
            Some(hystart) if control.ssthresh_bytes == u64::MAX => {
                let phase = hystart.on_ack(ack);
                if phase == SlowStartPhase::Done {
                    control.ssthresh_bytes = control.cwnd_bytes;
                    return;
                }
                hystart.growth_bytes(phase, ack.cumulative_bytes, mss)
            }
            _ if self.of_quic => ack.cumulative_bytes,
            // Equation 2.
            _ => ack.cumulative_bytes.min(mss),
        };
        control.cwnd_bytes = control.cwnd_bytes.saturating_add(growth);
    }
}

impl Controller for NewReno {
    fn name(&self) -> &'static str {
        NEWRENO.declaration.name
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        // A duplicate acknowledgment does not count, even with selective acknowledgments.
        if ack.in_recovery || ack.cumulative_bytes == 0 || self.of_quic && !ack.cwnd_limited {
            return;
        }
        if control.cwnd_bytes < control.ssthresh_bytes {
            self.slow_start(control, ack);
            return;
        }
        // Equation 3.
        let mss = window::segment(control).min(MAX_SEGMENT);
        let counted = if self.of_quic { ack.cumulative_bytes.min(MAX_SEGMENT) } else { mss };
        let share = ((mss * counted) << FRACTION_BITS) / control.cwnd_bytes.max(1);
        self.fraction += share;
        control.cwnd_bytes = control.cwnd_bytes.saturating_add(self.fraction >> FRACTION_BITS);
        self.fraction &= (1 << FRACTION_BITS) - 1;
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        self.undo.on_congestion(control, congestion);
        let bytes = if self.of_quic { control.cwnd_bytes } else { congestion.in_flight_bytes };
        let abe = self.abe && congestion.ecn && !congestion.persistent;
        window::reduce(control, congestion, if abe { window::reno_after_mark(bytes) } else { bytes / 2 });
        self.fraction = 0;
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        self.undo.on_recovery_exit(control, exit);
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.undo.on_timeout(control, timeout);
        if !timeout.repeated {
            let bytes = if self.of_quic { control.cwnd_bytes } else { timeout.in_flight_bytes };
            control.ssthresh_bytes = (bytes / 2).max(window::two_segments(control));
        }
        self.fraction = 0;
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, _now: Instant) {
        window::restart(control);
    }

    fn on_path_change(&mut self, control: &mut WindowState, _now: Instant) {
        window::resize(control);
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        if let Some(hystart) = &self.hystart {
            out.push(("hystart_phase", hystart.phase_number()));
        }
    }
}
