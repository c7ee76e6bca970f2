//! Poisson arrivals of packets, or of transfers with a connection each.
//!
//! Times between arrivals are independent and exponential, the first counted from the start of the flow (Kingman, Poisson
//! Processes, 1993). With packets of one size, a link that serves them is the M/D/1 queue; with exponential sizes it is M/M/1
//! (Kleinrock, Queueing Systems I, 1975).

mod packets;
mod transfers;

pub(crate) use packets::POISSON_PACKETS;
pub use packets::{PoissonPacketsSender, PoissonPacketsSpec};
pub(crate) use transfers::POISSON_TRANSFERS;
pub use transfers::{PoissonTransfersAcceptor, PoissonTransfersInitiator, PoissonTransfersSpec};

use fullpipe_units::{Duration, RandomStream};

/// Time to the next arrival: at least a nanosecond, since a Poisson process never has two arrivals at once.
fn interval(mean: Duration, random: &mut RandomStream) -> Duration {
    Duration::from_secs_f64(random.exponential(mean.as_secs_f64())).max(Duration::from_nanos(1))
}
