//! Congestion controls of real connections: those of the simulator, by the same names.

use super::ProgramError;
use fullpipe_control::{
    AdapterFactory, ControlFactory, INITIAL_WINDOW_PACKETS, NoCongestionControl, RttStatistics, control_factory,
};
use fullpipe_masque::configuration::Tunnel;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// A congestion control, or none.
#[derive(Clone)]
pub struct ControlChoice {
    name: String,
    maker: Option<ControlFactory>,
    initial_window_packets: u64,
}

impl fmt::Debug for ControlChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Control").field(&self.name).finish()
    }
}

impl ControlChoice {
    /// The congestion control with this name, with or without HyStart++ (RFC 9406).
    ///
    /// # Errors
    /// Returns an error if there is no such control or the QUIC stack cannot drive it.
    pub fn named(name: &str, hystart: bool) -> Result<ControlChoice, ProgramError> {
        // Random choices of connections must differ; the standard library gets these keys from the operating system.
        let seed = || RandomState::new().hash_one(0u64);
        let maker = control_factory(name, hystart, seed).map_err(ProgramError::Usage)?;
        Ok(ControlChoice { name: name.into(), maker: Some(maker), initial_window_packets: INITIAL_WINDOW_PACKETS })
    }

    /// No congestion control: a connection sends data immediately. On shared networks this is permitted only for a
    /// tunnel whose traffic is all congestion-controlled (RFC 9298 section 6).
    #[must_use]
    pub fn none() -> ControlChoice {
        ControlChoice { name: "none".into(), maker: None, initial_window_packets: INITIAL_WINDOW_PACKETS }
    }

    /// Sets the initial window in packets.
    #[must_use]
    pub fn with_initial_window(self, packets: u64) -> ControlChoice {
        ControlChoice { initial_window_packets: packets, ..self }
    }

    /// Settings of a connection with this control, which records its round-trip times in `round_trips`.
    pub(super) fn of(&self, settings: &Tunnel, round_trips: &RttStatistics) -> Tunnel {
        let mut settings = settings.clone();
        settings.congestion = Some(match &self.maker {
            Some(maker) => {
                Arc::new(AdapterFactory::new(Arc::clone(maker), self.initial_window_packets, round_trips.clone()))
            }
            None => Arc::new(NoCongestionControl),
        });
        settings
    }
}
