//! Fullpipe, a laboratory for transport protocols: the library.
//!
//! This crate gathers the rooms of the house under one name; each module is a crate of its own with its own
//! documentation. Begin with [`scenario::load`] and [`lab::run`]:
//!
//! ```
//! let text = fullpipe::embedded::scenario("quick-start").expect("an embedded scenario");
//! let loaded = fullpipe::scenario::load(text, "quick-start.toml", &[]).expect("it is right");
//! let outcome = fullpipe::lab::run(&loaded.scenario, &Default::default()).expect("it can be run");
//! println!("{}", outcome.verdict());
//! for row in outcome.flow_rows() {
//!     println!("{}: {} packets received", row.flow, row.counters.rx_packets);
//! }
//! ```

pub use fullpipe_audit as audit;
pub use fullpipe_congestion as congestion;
pub use fullpipe_lab as lab;
pub use fullpipe_network as network;
pub use fullpipe_record as record;
pub use fullpipe_report as report;
pub use fullpipe_scenario as scenario;
pub use fullpipe_study as study;
pub use fullpipe_tcp as tcp;
pub use fullpipe_transport as transport;
pub use fullpipe_units as units;
pub use fullpipe_workload as workload;

pub mod embedded;

/// Identity of this build: the package's version, and a hash of the workspace's sources and Cargo.lock.
pub const BUILD: &str = env!("FULLPIPE_BUILD");
