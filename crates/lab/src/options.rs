//! Options of a run that are not part of the scenario.

use fullpipe_network::Fault;
use std::sync::Arc;
use std::{fmt, io};

/// Options of a run. Only `faults` changes results.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether to audit every packet, in addition to the checks that need only constant memory.
    pub audit_packets: bool,
    /// Whether to compute the transmissions of several successive links at once where possible.
    pub fusion: bool,
    /// Deliberate faults in the world, to test that the auditor detects them. They change results.
    pub faults: Vec<InjectedFault>,
    /// Options of packet captures at every host; `None` disables captures.
    pub capture: Option<CaptureOptions>,
    /// Destination of the qlog file with events of connections and queues; `None` disables the file. In virtual time
    /// only.
    pub qlog: Option<QlogOptions>,
    /// Destination of probe samples that are written during the run; `None` keeps them in the outcome. In virtual time
    /// only.
    pub samples: Option<SampleOutput>,
}

impl Options {
    /// Returns the same options without output during the run.
    pub(crate) fn without_output(&self) -> Options {
        Options { capture: None, qlog: None, samples: None, ..self.clone() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options { audit_packets: false, fusion: true, faults: Vec::new(), capture: None, qlog: None, samples: None }
    }
}

/// A deliberate fault in the world.
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

/// Appends bytes to the file with this name, and creates the file if it does not exist.
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
    /// Appends to the file `run.sqlog`, in chunks.
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
    /// Appends to the file `series.csv`, in chunks of a megabyte. It is not called in a run with fewer samples. The
    /// file is then among [`Outcome::tables`](crate::Outcome::tables).
    pub append: FileAppender,
}

impl fmt::Debug for SampleOutput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Samples").finish_non_exhaustive()
    }
}
