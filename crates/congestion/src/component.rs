//! The declaration of a congestion control, and the options with which it is created.

use crate::control::Controller;
use crate::hystart::HyStart;
use crate::law::{LawController, WindowLaw};
use fullpipe_schema::component::Declaration;
use fullpipe_schema::metric::MetricDeclaration;
use std::fmt;

/// A congestion control as a component.
pub struct ControlComponent {
    /// The name, text and parameters of the component.
    pub declaration: Declaration,
    /// Creates a control for one connection.
    pub create: fn(&ControlOptions) -> Box<dyn Controller>,
    /// Whether the first slow start of the control can use HyStart++.
    pub hystart: HyStartSupport,
    /// The values of [`Controller::inspect`] that a probe can sample. The name of each begins with `control_`.
    pub values: &'static [MetricDeclaration],
    /// The qlog names of the states, indexed by the value of `state` in [`Controller::inspect`]. Empty if the control
    /// has no states.
    pub states: &'static [&'static str],
    /// The name of the control in Linux; `None` if it equals the name in `declaration`.
    pub linux_name: Option<&'static str>,
}

impl ControlComponent {
    /// Declares a control without HyStart++, states or values for probes, and with the same name in Linux.
    pub const fn new(declaration: Declaration, create: fn(&ControlOptions) -> Box<dyn Controller>) -> Self {
        ControlComponent {
            declaration,
            create,
            hystart: HyStartSupport::None,
            values: &[],
            states: &[],
            linux_name: None,
        }
    }

    /// Declares a control of the family [`law`](crate::law) whose slow start is the standard one, so that it can use HyStart++.
    pub(crate) const fn with_law<L: WindowLaw + Default + 'static>(declaration: Declaration) -> Self {
        ControlComponent {
            hystart: HyStartSupport::OnRequest,
            ..ControlComponent::new(declaration, |options| {
                Box::new(LawController::<L>::default().with_hystart(options.requested_hystart()))
            })
        }
    }
}

/// Whether and by which option the first slow start of a control uses HyStart++ (RFC 9406).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyStartSupport {
    /// Never. Its slow start is not the standard one, or it has its own end, by delay or marks.
    None,
    /// With [`ControlOptions::hystart`] or [`ControlOptions::hystart_all`].
    Standard,
    /// Only with [`ControlOptions::hystart_all`].
    OnRequest,
}

/// Declares a value for probes.
pub(crate) const fn declare(name: &'static str, unit: &'static str, text: &'static str) -> MetricDeclaration {
    MetricDeclaration { name, unit, text }
}

impl fmt::Debug for ControlComponent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.declaration.fmt(formatter)
    }
}

/// Options of a new control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlOptions {
    /// Enables HyStart++ (RFC 9406) in the first slow start of NewReno, Linux's Reno and CUBIC
    /// ([`HyStartSupport::Standard`]).
    pub hystart: bool,
    /// Enables HyStart++ in the first slow start of all loss-based controls with the standard slow start
    /// ([`HyStartSupport::Standard`] and [`HyStartSupport::OnRequest`]).
    pub hystart_all: bool,
    /// Selects the behavior of Linux. CUBIC then uses Linux's HyStart, and Linux's window growth after slow start
    /// ([`CubicConfig::early_growth`](crate::cubic::CubicConfig::early_growth)). `linux-reno` then uses no HyStart, unless
    /// [`ControlOptions::hystart_all`] is set.
    pub linux_hystart: bool,
    /// Whether the transport paces packets. If so, HyStart++ does not limit the window growth per acknowledgment.
    pub paced: bool,
    /// Selects the NewReno of QUIC (RFC 9002) instead of the NewReno of TCP.
    pub quic: bool,
    /// Makes DCTCP send packets as ECT(1) instead of ECT(0), for queues that separate L4S traffic (RFC 9331).
    pub ect1: bool,
    /// Selects Alternative Backoff with ECN (RFC 8511) in NewReno, Linux's Reno and CUBIC: a mark reduces the window
    /// less than a loss. Other controls ignore the option.
    pub abe: bool,
    /// Makes Prague reduce its window as a classic control does if it detects a queue with classic marking
    /// (arXiv:1911.00710). Other controls ignore the option.
    pub classic_ecn_fallback: bool,
    /// Selects rate-limited increase ([`rate_limited`](crate::rate_limited)) in controls that set a window, not a rate.
    pub rate_limited_increase: bool,
    /// Keeps Copa in its default mode, without detection of competitors
    /// ([`CopaMode::FixedDelta`](crate::copa::CopaMode::FixedDelta)). Other controls ignore the option.
    pub copa_fixed_delta: bool,
    /// Seed of the random choices of the control (phases and probe intervals of BBR). Connections need different seeds
    /// to make different choices.
    pub seed: u64,
}

impl ControlOptions {
    /// The HyStart++ of RFC 9406 for [`HyStartSupport::Standard`], if the options enable it.
    pub(crate) fn standard_hystart(&self) -> Option<HyStart> {
        (self.hystart || self.hystart_all).then(|| HyStart::new(self.paced))
    }

    /// The HyStart++ of RFC 9406 for [`HyStartSupport::OnRequest`], if the options enable it.
    pub(crate) fn requested_hystart(&self) -> Option<HyStart> {
        self.hystart_all.then(|| HyStart::new(self.paced))
    }
}
