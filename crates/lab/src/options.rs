//! How to run a scenario, besides what the scenario says.

use fullpipe_network::Fault;
use std::sync::Arc;
use std::{fmt, io};

/// How to run, besides what the scenario says. Nothing here changes a result.
#[derive(Clone, Debug)]
pub struct Options {
    /// Audit packet by packet, not only with constant state.
    pub audit_packets: bool,
    /// Compute chains of links at once where possible.
    pub fusion: bool,
    /// Faults to put into the world on purpose (these do change results: the auditor must notice).
    pub faults: Vec<Sabotage>,
    /// Capture packets at every host.
    pub capture: Option<Capture>,
    /// Write what happens at connections and queues as qlog; in virtual time.
    pub qlog: Option<Qlog>,
    /// Write the samples of probes while the run goes on; in virtual time.
    pub samples: Option<Samples>,
}

impl Default for Options {
    fn default() -> Self {
        Options { audit_packets: false, fusion: true, faults: Vec::new(), capture: None, qlog: None, samples: None }
    }
}

/// A fault put into the world on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A fault of the network.
    Network(Fault),
    /// Receivers acknowledge one byte more than was sent, from the n-th acknowledgement on.
    PrematureAcknowledgement {
        /// Which acknowledgement of the run begins it, from 1.
        from: u64,
    },
}

/// Appends bytes to the file of this name, which it creates if there is none.
pub type Append = Arc<dyn Fn(&str, &[u8]) -> io::Result<()> + Send + Sync>;

/// How to capture.
#[derive(Clone)]
pub struct Capture {
    /// Most bytes kept of a packet; 0: all. All headers together have at most 108 bytes (IPv6 40, fragment 8, TCP 60).
    pub snap_bytes: u32,
    /// Where the files go: `HOST.pcapng`.
    pub append: Append,
}

impl fmt::Debug for Capture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Capture").field("snap_bytes", &self.snap_bytes).finish_non_exhaustive()
    }
}

/// Where a log of connections and queues goes.
#[derive(Clone)]
pub struct Qlog {
    /// Takes the file, `run.sqlog`, piece by piece.
    pub append: Append,
}

impl fmt::Debug for Qlog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Qlog").finish_non_exhaustive()
    }
}

/// Where the samples of probes go, instead of into the outcome: memory then does not grow with the duration of the run.
#[derive(Clone)]
pub struct Samples {
    /// Takes the file, `series.csv`, in pieces of a megabyte. A run with less calls it never: the file is among
    /// [`Outcome::tables`](crate::Outcome::tables) then.
    pub append: Append,
}

impl fmt::Debug for Samples {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Samples").finish_non_exhaustive()
    }
}
