//! Idle: opens a connection and sends nothing.

use crate::application::{Application, Io};
use crate::component::{FlowContext, Protocol, WorkloadComponent, WorkloadSettings};
use crate::demand::Demand;
use fullpipe_schema::component::Declaration;
use fullpipe_units::ParameterError;

pub(crate) static IDLE: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "idle",
        text: "opens the connection and sends nothing (TCP). Default port 7000.",
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Quic],
    port: 7000,
    read: |_, _| Ok(Box::new(IdleSpec)),
    ..WorkloadComponent::EMPTY
};

/// The settings of a connection without data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleSpec;

impl WorkloadSettings for IdleSpec {
    fn senders(&self) -> [bool; 2] {
        [false, false]
    }

    fn demand(&self, _time_s: f64) -> Demand {
        Demand::NO_DATA
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        Ok(context.with_sink(IdleApplication))
    }
}

/// An application that opens a stream and sends nothing.
#[derive(Debug, Default)]
pub struct IdleApplication;

impl Application for IdleApplication {
    fn on_start(&mut self, io: &mut dyn Io) {
        io.open();
    }
}
