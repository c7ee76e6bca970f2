//! A tunnel, through which other flows are sent.
//!
//! The model implements its client and proxy outside of applications. The two applications here only count what they receive,
//! which is nothing.

use crate::application::Application;
use crate::component::{FlowContext, Protocol, WorkloadComponent, WorkloadSettings};
use crate::demand::Demand;
use crate::sink::Sink;
use fullpipe_schema::component::Declaration;
use fullpipe_units::ParameterError;

pub(crate) static TUNNEL: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "tunnel",
        text: "carries the flows that name it in `via` (MASQUE). Default port 443.",
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Masque],
    port: 443,
    read: |_, _| Ok(Box::new(TunnelSpec)),
    ..WorkloadComponent::EMPTY
};

/// The settings of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunnelSpec;

impl WorkloadSettings for TunnelSpec {
    fn senders(&self) -> [bool; 2] {
        [true, true]
    }

    fn demand(&self, _time_s: f64) -> Demand {
        Demand::NO_DATA
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        Ok(context.with_sink(Sink::new(context.receiver_closes)))
    }
}
