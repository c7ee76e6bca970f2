//! Opens a connection and stays silent.

use crate::application::{Application, Io};

/// An application that opens a stream and does nothing with it.
#[derive(Debug, Default)]
pub struct Idle;

impl Application for Idle {
    fn on_start(&mut self, io: &mut dyn Io) {
        io.open();
    }
}
