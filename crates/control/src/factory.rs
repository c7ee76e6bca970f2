//! Factory for the congestion controls of the stack's connections.
//!
//! **Model.** The stack calls its factory when a connection begins and when its path changes. The factory creates one
//! of Fullpipe's controls and wraps it in an [`Adapter`]. Some callers cannot access a connection, such as a proxy's
//! connection inside the HTTP/3 library. They observe it through objects passed to the factory: a listener for losses,
//! the round-trip times, and [`LatestControl`], a weak reference to the latest control.

use crate::adapter::WeakAdapter;
use crate::{Adapter, ControlState, LossListener, RttStatistics, clock};
use fullpipe_congestion::Controller;
use noq_proto::congestion;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Function that creates the congestion control of a connection, when the connection begins and after each change of
/// its path.
pub type ControlFactory = Arc<dyn Fn() -> Box<dyn Controller> + Send + Sync>;

/// A weak reference to the latest control of a factory, for callers that cannot access the connection. Clones refer to
/// the same control.
#[derive(Clone, Default)]
pub struct LatestControl(Arc<Mutex<WeakAdapter>>);

impl fmt::Debug for LatestControl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LatestControl")
    }
}

impl LatestControl {
    fn set(&self, adapter: &Adapter) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = adapter.downgrade();
    }

    /// Current state of the control; `None` before the first connection and after the end of the latest one.
    pub fn inspect(&self) -> Option<ControlState> {
        let adapter = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        Some(adapter.inspect())
    }
}

/// Factory that creates an [`Adapter`] for each path of the stack's connections.
pub struct AdapterFactory {
    maker: ControlFactory,
    initial_window_packets: u64,
    round_trips: RttStatistics,
    losses: Option<LossListener>,
    newest: LatestControl,
}

impl AdapterFactory {
    /// Creates a factory of controls with this initial window, in packets of the current MTU. The adapters record
    /// round-trip times in `round_trips`.
    pub fn new(maker: ControlFactory, initial_window_packets: u64, round_trips: RttStatistics) -> AdapterFactory {
        // The clock is read before any of the connections sends a packet, so that no instant precedes the reading.
        clock::begin();
        AdapterFactory { maker, initial_window_packets, round_trips, losses: None, newest: LatestControl::default() }
    }

    /// Sets the listener for losses; `None` disables it.
    #[must_use]
    pub fn with_loss_listener(self, losses: Option<LossListener>) -> AdapterFactory {
        AdapterFactory { losses, ..self }
    }

    /// Stores a weak reference to each new control in `newest`, so that the caller can inspect it.
    #[must_use]
    pub fn with_latest_control(self, newest: LatestControl) -> AdapterFactory {
        AdapterFactory { newest, ..self }
    }
}

impl congestion::ControllerFactory for AdapterFactory {
    fn build(self: Arc<Self>, _now: std::time::Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        let mtu_bytes = u64::from(current_mtu);
        let (round_trips, losses) = (self.round_trips.clone(), self.losses.clone());
        let adapter = Adapter::new((self.maker)(), mtu_bytes, self.initial_window_packets, round_trips, losses);
        self.newest.set(&adapter);
        Box::new(adapter)
    }
}
