//! Factory for the congestion controls of the stack's connections.
//!
//! **Model.** The stack calls its factory when a connection begins and when its path changes. The factory
//! creates one of ours and wraps it into an [`Adapter`]. Some callers cannot access a connection, such as one of a
//! proxy deep within HTTP/3. They observe it through objects passed to the factory: a listener for losses, the
//! round-trip times, and [`Newest`], a weak reference to the latest control.

use crate::adapter::WeakAdapter;
use crate::{Adapter, Inspection, LossListener, RoundTrips, clock};
use fullpipe_congestion::Controller;
use noq_proto::congestion;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Creates the congestion control of a connection, when the connection begins and after each change of its path.
pub type Maker = Arc<dyn Fn() -> Box<dyn Controller> + Send + Sync>;

/// The latest control of a factory, for callers that cannot access its connection. Clones refer to the same control.
#[derive(Clone, Default)]
pub struct Newest(Arc<Mutex<WeakAdapter>>);

impl fmt::Debug for Newest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Newest")
    }
}

impl Newest {
    fn set(&self, adapter: &Adapter) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = adapter.downgrade();
    }

    /// Current state of the control; `None` before the first connection and after its end.
    pub fn inspect(&self) -> Option<Inspection> {
        let adapter = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        Some(adapter.inspect())
    }
}

/// Creates controllers for the stack.
pub struct Factory {
    maker: Maker,
    initial_window_packets: u64,
    round_trips: RoundTrips,
    losses: Option<LossListener>,
    newest: Newest,
}

impl Factory {
    /// Creates a factory of controls with this initial window. Their connections record round-trip times in
    /// `round_trips`.
    pub fn new(maker: Maker, initial_window_packets: u64, round_trips: RoundTrips) -> Factory {
        // None of their packets is sent before their time begins.
        clock::begin();
        Factory { maker, initial_window_packets, round_trips, losses: None, newest: Newest::default() }
    }

    /// Sets the listener for losses.
    #[must_use]
    pub fn with_losses(self, losses: Option<LossListener>) -> Factory {
        Factory { losses, ..self }
    }

    /// Stores each new control in `newest`, so that it can be observed.
    #[must_use]
    pub fn with_newest(self, newest: Newest) -> Factory {
        Factory { newest, ..self }
    }
}

impl congestion::ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: std::time::Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let mtu_bytes = u64::from(current_mtu);
        let (round_trips, losses) = (self.round_trips.clone(), self.losses.clone());
        let adapter = Adapter::new((self.maker)(), mtu_bytes, self.initial_window_packets, round_trips, losses);
        self.newest.set(&adapter);
        Box::new(adapter)
    }
}
