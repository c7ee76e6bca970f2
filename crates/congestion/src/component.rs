//! What a congestion control declares of itself, and the options that it is created with.

use crate::control::Controller;
use crate::hystart::HyStart;
use fullpipe_schema::component::Declaration;
use fullpipe_schema::metric::MetricDeclaration;
use std::fmt;

/// A congestion control as a component.
pub struct ControlComponent {
    /// What it declares.
    pub declaration: Declaration,
    /// A new control, for one connection.
    pub create: fn(&Options) -> Box<dyn Controller>,
    /// Whether its first slow start can use HyStart++ ([`Options::hystart`]); the others leave it aside.
    pub hystart: bool,
    /// Which of the values that [`Controller::inspect`] gives a probe can sample, each under its name after `control_`.
    pub values: &'static [MetricDeclaration],
    /// What qlog calls the values of `state` of [`Controller::inspect`], by number; empty if the control has none.
    pub states: &'static [&'static str],
    /// What Linux calls it, if not by our name.
    pub linux_name: Option<&'static str>,
}

impl ControlComponent {
    /// A control without HyStart++ and without states, whose own values no probe samples, with one name here and in Linux.
    pub const fn new(declaration: Declaration, create: fn(&Options) -> Box<dyn Controller>) -> Self {
        ControlComponent { declaration, create, hystart: false, values: &[], states: &[], linux_name: None }
    }
}

impl fmt::Debug for ControlComponent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.declaration.fmt(formatter)
    }
}

/// How to create a control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// HyStart++ (RFC 9406) in the first slow start, for the controls that can ([`ControlComponent::hystart`]).
    pub hystart: bool,
    /// That HyStart is Linux's: its own in CUBIC, with Linux's growth after it ([`CubicConfig::early_growth`](crate::cubic::CubicConfig::early_growth)), and none in
    /// `linux-reno`.
    pub linux_hystart: bool,
    /// Whether the transport paces; HyStart++ then leaves growth per acknowledgement unlimited.
    pub paced: bool,
    /// Whether NewReno is QUIC's (RFC 9002), whose growth counts bytes, and not TCP's.
    pub quic: bool,
    /// DCTCP sends its packets as ECT(1), for queues that treat L4S traffic apart (RFC 9331), instead of ECT(0).
    pub ect1: bool,
    /// Seed of the random choices that a control makes (BBR's phases and waits). Connections that shall not choose
    /// alike need seeds of their own.
    pub seed: u64,
}

impl Options {
    /// HyStart++ as RFC 9406 has it, if it is wanted.
    pub(crate) fn standard_hystart(&self) -> Option<HyStart> {
        self.hystart.then(|| HyStart::new(self.paced))
    }
}
