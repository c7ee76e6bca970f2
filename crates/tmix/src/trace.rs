//! Traces with random access by time: a trace returns the connections that start in an interval, and accepts intervals
//! in any order.
//!
//! Random access is required because a shuffle visits the bins of a trace in random order. A file is read once from
//! start to end, which validates it and builds an index of 16 bytes per connection. After that, only the text of an
//! interval is read again. So a trace of hundreds of megabytes requires a few megabytes of memory.

use crate::error::Error;
use crate::read::TraceReader;
use crate::vector::ConnectionVector;
use fullpipe_units::Duration;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::Path;

/// A source of connections that can be read by trace time.
pub trait Trace {
    /// The trace's name, for example `r4s1`. The random streams of the trace are derived from it.
    fn name(&self) -> &str;

    /// The length of the trace. Every connection starts before this time.
    fn length(&self) -> Duration;

    /// Returns the connections that start in [`from`, `to`), in order of start.
    ///
    /// # Errors
    /// If the trace cannot be read.
    fn connections(&mut self, from: Duration, to: Duration) -> Result<Vec<ConnectionVector>, Error>;
}

/// Implements [`Trace`] for references and boxes.
macro_rules! trace_behind {
    ($($Pointer:ty),+) => {$(
        impl<T: Trace + ?Sized> Trace for $Pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn length(&self) -> Duration {
                (**self).length()
            }

            fn connections(&mut self, from: Duration, to: Duration) -> Result<Vec<ConnectionVector>, Error> {
                (**self).connections(from, to)
            }
        }
    )+};
}

trace_behind!(Box<T>, &mut T);

/// A trace in memory.
#[derive(Clone, Debug)]
pub struct MemoryTrace {
    name: String,
    length: Duration,
    connections: Vec<ConnectionVector>,
}

impl MemoryTrace {
    /// Creates a trace of these connections, in any order. Connections that start at `length` or later are omitted.
    pub fn new(name: impl Into<String>, length: Duration, mut connections: Vec<ConnectionVector>) -> Self {
        connections.retain(|connection| connection.start < length);
        connections.sort_by_key(|connection| connection.start);
        MemoryTrace { name: name.into(), length, connections }
    }
}

impl Trace for MemoryTrace {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> Duration {
        self.length
    }

    fn connections(&mut self, from: Duration, to: Duration) -> Result<Vec<ConnectionVector>, Error> {
        let first = self.connections.partition_point(|connection| connection.start < from);
        let chosen = self.connections[first..].iter().take_while(|connection| connection.start < to);
        Ok(chosen.cloned().collect())
    }
}

/// A trace with a different name, so that several copies of one trace are shuffled differently.
#[derive(Clone, Debug)]
pub struct RenamedTrace<T> {
    name: String,
    trace: T,
}

impl<T: Trace> RenamedTrace<T> {
    /// Returns `trace` with this name.
    pub fn new(trace: T, name: impl Into<String>) -> Self {
        RenamedTrace { name: name.into(), trace }
    }
}

impl<T: Trace> Trace for RenamedTrace<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> Duration {
        self.trace.length()
    }

    fn connections(&mut self, from: Duration, to: Duration) -> Result<Vec<ConnectionVector>, Error> {
        self.trace.connections(from, to)
    }
}

/// A trace in a file, with an index in memory.
#[derive(Debug)]
pub struct IndexedTrace {
    name: String,
    file: String,
    input: BufReader<File>,
    /// Current offset in `input`.
    position: u64,
    /// Start and offset of each connection, in order of start.
    index: Vec<(Duration, u64)>,
    skipped: u64,
    first_skipped: Option<Error>,
}

impl IndexedTrace {
    /// Reads the file once and indexes it. The name of the trace is the file name without its extension. With
    /// `skip_bad`, malformed connections are skipped and counted.
    ///
    /// # Errors
    /// If the file cannot be read, or a connection is malformed and `skip_bad` is false.
    pub fn open(path: &Path, skip_bad: bool) -> Result<Self, Error> {
        let file = path.display().to_string();
        let name = path.file_stem().map_or_else(|| file.clone(), |stem| stem.to_string_lossy().into_owned());
        let mut input = BufReader::with_capacity(1 << 16, File::open(path).map_err(|error| Error::io(&file, error))?);
        let mut reader = TraceReader::new(&mut input, file.clone()).skip_malformed(skip_bad);
        let mut index = Vec::new();
        while let Some(connection) = reader.next() {
            index.push((connection?.start, reader.start_offset()));
        }
        let (position, skipped, first_skipped) = (reader.offset(), reader.skipped(), reader.into_first_skipped());
        index.sort_unstable();
        Ok(IndexedTrace { name, file, input, position, index, skipped, first_skipped })
    }

    /// The number of connections.
    pub fn count(&self) -> usize {
        self.index.len()
    }

    /// The number of malformed connections that were skipped.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The error of the first connection that was skipped; `None` if no connection was skipped.
    pub fn first_skipped(&self) -> Option<&Error> {
        self.first_skipped.as_ref()
    }

    fn connection_at(&mut self, offset: u64) -> Result<ConnectionVector, Error> {
        // A seek within the buffer costs nothing, and neighbors in the file are usually neighbors in time.
        let moved = match i64::try_from(i128::from(offset) - i128::from(self.position)) {
            Ok(distance) => self.input.seek_relative(distance),
            Err(_) => self.input.seek(SeekFrom::Start(offset)).map(|_| ()),
        };
        moved.map_err(|error| Error::io(&self.file, error))?;
        let mut reader = TraceReader::new(&mut self.input, self.file.clone());
        let found = reader.next();
        self.position = offset + reader.offset();
        // The file was read without error before, so it has changed since.
        found.unwrap_or_else(|| Err(Error::io(&self.file, std::io::ErrorKind::UnexpectedEof.into())))
    }
}

impl Trace for IndexedTrace {
    fn name(&self) -> &str {
        &self.name
    }

    /// The first whole second after the last start, because a file does not state the length of the trace.
    fn length(&self) -> Duration {
        self.index.last().map_or(Duration::ZERO, |(start, _)| Duration::from_secs(start.as_nanos() / 1_000_000_000 + 1))
    }

    fn connections(&mut self, from: Duration, to: Duration) -> Result<Vec<ConnectionVector>, Error> {
        let first = self.index.partition_point(|(start, _)| *start < from);
        let mut found = Vec::new();
        for at in first..self.index.len() {
            let (start, offset) = self.index[at];
            if start >= to {
                break;
            }
            found.push(self.connection_at(offset)?);
        }
        Ok(found)
    }
}
