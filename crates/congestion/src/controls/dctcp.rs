//! The congestion control DCTCP.
//!
//! **Model.** A queue marks every packet that arrives when more than a few packets are queued, and the receiver reports
//! each mark. Once per window of data, the share of bytes that were marked is added to a moving average, `alpha` (gain
//! 1/16, initially 1). The first mark of a window reduces the window by `alpha/2`: by half if all packets are marked,
//! by little if few are. Growth and the reactions to losses and timeouts are those of Reno.
//!
//! **Source.** RFC 8257 (October 2017) sections 3.3 to 3.5; growth as in [`linux_reno`](crate::linux_reno). The
//! transport signals when a mark requires a reduction, at most once per window of data (RFC 3168 section 6.1), and the
//! number of bytes marked. If the transport detects only that a window had a mark, alpha is correct only if the
//! transport reports all bytes of that window as marked.
//!
//! By default packets are sent as ECT(0), as in the RFC. A queue such as DualPI2 (RFC 9332) treats packets sent as
//! ECT(1) as L4S traffic (RFC 9331). The sender then behaves like DCTCP, but does not meet all requirements of
//! RFC 9331. A window is a round of the transport; in RFC 8257 it extends from one highest sequence number sent to the
//! next.

use super::linux_reno::LinuxReno;
use crate::component::{ControlComponent, HyStartSupport, declare};
use crate::control::{
    Ack, CongestionEvent, ControlRequirements, Controller, EcnCodepoint, RecoveryExit, Timeout, WindowState,
};
use fullpipe_schema::component::Declaration;
use fullpipe_schema::metric::MetricDeclaration;
use fullpipe_units::{Duration, Instant};

/// The value that DCTCP and Prague have in common.
pub(super) const ALPHA: MetricDeclaration =
    declare("control_alpha", "", "its estimate of the share of marked bytes (DCTCP, Prague).");

pub(super) static DCTCP: ControlComponent = ControlComponent {
    declaration: Declaration {
        name: "dctcp",
        version: "RFC 8257 (2017)",
        source: "RFC 8257 sections 3.3 to 3.5",
        text: "Reduces the window by half the share of bytes that queues have marked; Reno on loss.",
        ..Declaration::EMPTY
    },
    create: |options| Box::new(Dctcp::new(if options.ect1 { EcnCodepoint::Ect1 } else { EcnCodepoint::Ect0 })),
    hystart: HyStartSupport::None,
    values: &[ALPHA],
    states: &[],
    linux_name: None,
};

/// Weight of the newest window (RFC 8257 section 4.2).
const GAIN: f64 = 1.0 / 16.0;

/// DCTCP (RFC 8257).
#[derive(Clone, Debug)]
pub struct Dctcp {
    reno: LinuxReno,
    codepoint: EcnCodepoint,
    alpha: f64,
    // Values of the current window.
    acked_bytes: u64,
    marked_bytes: u64,
}

impl Dctcp {
    /// Creates DCTCP, which sends packets with this codepoint.
    pub fn new(codepoint: EcnCodepoint) -> Self {
        Dctcp { reno: LinuxReno::default(), codepoint, alpha: 1.0, acked_bytes: 0, marked_bytes: 0 }
    }

    /// Returns the moving average of the fraction of bytes that were marked (RFC 8257 section 3.3).
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Updates the average at the end of a window (RFC 8257 section 3.3, equation for DCTCP.Alpha).
    fn end_window(&mut self) {
        if self.acked_bytes > 0 {
            let marked = self.marked_bytes.min(self.acked_bytes) as f64 / self.acked_bytes as f64;
            self.alpha = self.alpha * (1.0 - GAIN) + GAIN * marked;
        }
        self.acked_bytes = 0;
        self.marked_bytes = 0;
    }
}

impl Controller for Dctcp {
    fn name(&self) -> &'static str {
        DCTCP.declaration.name
    }

    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { ecn_counts: true, ..ControlRequirements::default() }
    }

    fn on_established(&mut self, control: &mut WindowState, _now: Instant, _rtt: Option<Duration>) {
        control.codepoint = self.codepoint;
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        self.acked_bytes = self.acked_bytes.saturating_add(ack.acked_bytes);
        self.marked_bytes = self.marked_bytes.saturating_add(ack.ce_bytes);
        if ack.round_start {
            self.end_window();
        }
        self.reno.on_ack(control, ack);
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        if congestion.ecn {
            // RFC 8257 section 3.3, equation for cwnd.
            let reduced = (control.cwnd_bytes as f64 * (1.0 - self.alpha / 2.0)) as u64;
            self.reno.reduce(control, congestion, reduced);
        } else {
            self.reno.on_congestion(control, congestion);
        }
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        self.reno.on_recovery_exit(control, exit);
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.reno.on_timeout(control, timeout);
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, now: Instant) {
        self.reno.on_idle_restart(control, now);
    }

    fn on_path_change(&mut self, control: &mut WindowState, now: Instant) {
        self.reno.on_path_change(control, now);
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha));
    }
}
