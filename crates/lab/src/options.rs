//! Options of a run that are not part of the scenario.

use fullpipe_network::Fault;
use std::sync::Arc;
use std::{fmt, io};

/// Options of a run. Only `faults` changes results.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether to audit every packet, in addition to the checks that need only constant memory.
    pub audit_packets: bool,
    /// Whether to compute the transmissions of a packet over several successive links in one step where possible.
    pub fusion: bool,
    /// Faults to inject into the simulation, to test that the auditor detects them. They change results.
    pub faults: Vec<InjectedFault>,
    /// Options of packet captures at every host; `None` disables captures.
    pub capture: Option<CaptureOptions>,
    /// Destination of the qlog file with events of connections and queues; `None` disables the file. It is written only
    /// in virtual time.
    pub qlog: Option<QlogOptions>,
    /// Destination of probe samples that are written during the run; `None` keeps them in the outcome. It is used only
    /// in virtual time.
    pub samples: Option<SampleOutput>,
    /// Whether every link can be inspected during the run. No transmission is then computed ahead of the clock.
    pub inspection: bool,
}

impl Options {
    /// Returns the same options without output during the run.
    pub(crate) fn without_output(&self) -> Options {
        Options { capture: None, qlog: None, samples: None, ..self.clone() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            audit_packets: false,
            fusion: true,
            faults: Vec::new(),
            capture: None,
            qlog: None,
            samples: None,
            inspection: false,
        }
    }
}

/// A fault that is injected into the simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// A fault of the network.
    Network(Fault),
    /// Receivers acknowledge one byte more than was sent, from the n-th acknowledgment on.
    PrematureAcknowledgement {
        /// Number of the first such acknowledgment of the run, from 1.
        from: u64,
    },
}

/// A function that appends bytes to the file with this name, and creates the file if it does not exist. It returns the
/// error of the disk.
pub type FileAppender = Arc<dyn Fn(&str, &[u8]) -> io::Result<()> + Send + Sync>;

/// Options of packet captures.
#[derive(Clone)]
pub struct CaptureOptions {
    /// Maximum number of bytes stored per packet; 0 stores complete packets. The headers of a packet have at most 108
    /// bytes (IPv6 40, fragment 8, TCP 60).
    pub snap_bytes: u32,
    /// Destination of the files `HOST.pcapng`.
    pub append: FileAppender,
}

impl fmt::Debug for CaptureOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Capture").field("snap_bytes", &self.snap_bytes).finish_non_exhaustive()
    }
}

/// Destination of the qlog file with events of connections and queues.
#[derive(Clone)]
pub struct QlogOptions {
    /// Called with successive chunks of the file `run.sqlog`.
    pub append: FileAppender,
}

impl fmt::Debug for QlogOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Qlog").finish_non_exhaustive()
    }
}

/// Destination of probe samples that are not kept in the outcome. Memory then does not grow with the duration of the
/// run.
#[derive(Clone)]
pub struct SampleOutput {
    /// Called with successive chunks of the file `series.csv`, of about 1 MiB each. If the whole file is smaller than
    /// one chunk, [`Outcome::tables`](crate::Outcome::tables) returns it instead.
    pub append: FileAppender,
}

impl fmt::Debug for SampleOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Samples").finish_non_exhaustive()
    }
}
