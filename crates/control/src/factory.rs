//! Makes the congestion controls of the stack's connections.
//!
//! **Model.** The stack asks a factory for a control when a connection begins and when its path becomes another; a factory
//! wraps one of ours into an [`Adapter`] each time. Who cannot reach a connection (a proxy's, deep within HTTP/3) looks on
//! through what the factory was given: a listener for losses, the round-trip times, and [`Newest`], the control made last,
//! which does not keep a connection's control alive.

use crate::adapter::WeakAdapter;
use crate::{Adapter, Inspection, LossListener, RoundTrips, clock};
use fullpipe_congestion::Controller;
use noq_proto::congestion;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Makes the congestion control of a connection: when it is made, and anew when its path becomes another.
pub type Maker = Arc<dyn Fn() -> Box<dyn Controller> + Send + Sync>;

/// The control that a factory has made last, for whoever cannot reach its connection; a clone looks at the same one.
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

    /// What it shows of itself; `None` before there is one, and when its connection is gone.
    pub fn inspect(&self) -> Option<Inspection> {
        let adapter = self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
        Some(adapter.inspect())
    }
}

/// Makes controllers for the stack.
pub struct Factory {
    maker: Maker,
    initial_window_packets: u64,
    round_trips: RoundTrips,
    losses: Option<LossListener>,
    newest: Newest,
}

impl Factory {
    /// A factory of controls with this initial window, whose connections note their round-trip times there.
    pub fn new(maker: Maker, initial_window_packets: u64, round_trips: RoundTrips) -> Factory {
        // No packet of theirs leaves before their time begins.
        clock::begin();
        Factory { maker, initial_window_packets, round_trips, losses: None, newest: Newest::default() }
    }

    /// The same, and somebody hears of losses.
    #[must_use]
    pub fn with_losses(self, losses: Option<LossListener>) -> Factory {
        Factory { losses, ..self }
    }

    /// The same, and somebody can look at the control that was made last.
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
