//! Keeps every arrival of a real-time run as a pcapng file: one interface per real host, whole frames, and the instant at
//! which each entered the model, to the nanosecond. The captures' ends say how far the model came. That is all that virtual
//! time needs to do the same again.
//!
//! The file is written by a thread of its own, so that the driver never waits for a disk. If the disk is slower than the
//! hosts are, what is still to be written waits in memory.

use crate::Append;
use bytes::Bytes;
use fullpipe_record::pcapng::{Interface, LinkType, PcapngWriter, Section, Way};
use fullpipe_units::Instant;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Name of the file.
pub const ARRIVALS: &str = "arrivals.pcapng";

/// Bytes that are handed to the disk at once.
const PIECE_BYTES: usize = 1 << 18;

/// An arrival: when it entered the model, at which port, and the frame.
type Entered = (Instant, usize, Bytes);

/// A recording that goes on.
pub(crate) struct Recorder {
    entered: Sender<Entered>,
    writer: JoinHandle<io::Result<PcapngWriter<Vec<u8>>>>,
    append: Append,
    hosts: u32,
}

impl Recorder {
    /// Begins a recording of hosts with these names, in the order of their ports.
    ///
    /// # Errors
    /// The machine's, if there can be no further thread.
    pub(crate) fn start<'a>(append: Append, hosts: impl Iterator<Item = &'a str>) -> io::Result<Self> {
        let section = Section {
            application: concat!("fullpipe ", env!("CARGO_PKG_VERSION")),
            system: "real time",
            ..Section::default()
        };
        let mut file = PcapngWriter::new(Vec::new(), &section)?;
        let mut count = 0;
        for name in hosts {
            let description = "what the host sent";
            file.interface(&Interface { name, description, link_type: LinkType::Ethernet, snap_bytes: 0 })?;
            count += 1;
        }
        let (entered, incoming) = channel();
        let given = append.clone();
        let builder = std::thread::Builder::new().name("arrivals".to_owned());
        let writer = builder.spawn(move || write(file, &incoming, &given))?;
        Ok(Recorder { entered, writer, append, hosts: count })
    }

    /// Keeps an arrival. A disk's error is told by [`Recorder::finish`].
    pub(crate) fn keep(&self, at: Instant, port: usize, frame: &Bytes) {
        // The thread ends early only after an error of its own.
        let _ = self.entered.send((at, port, frame.clone()));
    }

    /// Writes what is left, and how far the model came.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn finish(self, at: Instant) -> io::Result<()> {
        drop(self.entered);
        let written = self.writer.join().map_err(|_| io::Error::other("the thread that writes arrivals has ended"))?;
        let mut file = written.map_err(told)?;
        (0..self.hosts).try_for_each(|host| file.end_of(host, at))?;
        (self.append)(ARRIVALS, &file.into_inner()).map_err(told)
    }
}

fn told(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{ARRIVALS} cannot be written: {error}"))
}

/// The thread: writes until no further arrival can come; returns the writer with what is not yet on the disk.
fn write(
    mut file: PcapngWriter<Vec<u8>>,
    incoming: &Receiver<Entered>,
    append: &Append,
) -> io::Result<PcapngWriter<Vec<u8>>> {
    for (at, port, frame) in incoming {
        file.packet(port as u32, at, Way::Inbound, &frame, frame.len() as u32)?;
        let piece = file.get_mut();
        if piece.len() >= PIECE_BYTES {
            append(ARRIVALS, piece)?;
            piece.clear();
        }
    }
    Ok(file)
}
