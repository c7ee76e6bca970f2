//! Fullpipe, a laboratory for transport protocols: the library.
//!
//! A [`Simulation`] is a scenario as text, overrides, and parts of your own; running it gives an [`Outcome`]:
//!
//! ```
//! use fullpipe::Simulation;
//!
//! let outcome = Simulation::embedded("quick-start").expect("it is embedded").run()?;
//! println!("{}", outcome.verdict());
//! for row in outcome.flow_rows() {
//!     println!("{}: {} packets received", row.flow, row.counters.rx_packets);
//! }
//! # Ok::<(), fullpipe::Error>(())
//! ```
//!
//! The modules are the rooms of the house, each a crate of its own with its own documentation. What can be plugged in:
//!
//! | part | trait | example |
//! |---|---|---|
//! | a congestion control | [`congestion::Controller`] | `examples/congestion_control.rs` |
//! | a queue discipline | [`network::QueueDiscipline`] | `examples/queue_discipline.rs` |
//! | a workload | [`workload::Application`] | `examples/workload.rs` |
//! | an observer | [`record::Observer`] | `examples/observer.rs` |

pub use fullpipe_archive as archive;
pub use fullpipe_audit as audit;
pub use fullpipe_congestion as congestion;
pub use fullpipe_lab as lab;
pub use fullpipe_lte as lte;
pub use fullpipe_network as network;
pub use fullpipe_record as record;
pub use fullpipe_report as report;
pub use fullpipe_scenario as scenario;
pub use fullpipe_study as study;
pub use fullpipe_tcp as tcp;
pub use fullpipe_tmix as tmix;
pub use fullpipe_transport as transport;
pub use fullpipe_units as units;
pub use fullpipe_wire as wire;
pub use fullpipe_workload as workload;

pub mod embedded;
mod simulation;

pub use lab::{Outcome, Plugins};
pub use simulation::{Error, Simulation};

/// Identity of this build: the package's version, and a hash of its sources, those of the other crates of Fullpipe, and
/// Cargo.lock.
pub const BUILD: &str = env!("FULLPIPE_BUILD");

/// The code of the pages in `docs/`, compiled and run as documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/build-a-world.md"))]
    struct BuildAWorld;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/add-a-congestion-control.md"))]
    struct AddACongestionControl;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/add-a-queue-discipline.md"))]
    struct AddAQueueDiscipline;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/add-a-workload.md"))]
    struct AddAWorkload;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/add-an-observer.md"))]
    struct AddAnObserver;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/tmix.md"))]
    struct Tmix;
}
