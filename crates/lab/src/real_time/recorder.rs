//! Records every arrival of a real-time run in a pcapng file. The file has one interface per real host, complete
//! frames, and the time in nanoseconds at which each frame entered the model. The interface statistics at its end state
//! the time that the model reached. A replay in virtual time needs no other data.
//!
//! A separate thread writes the file, so that the driver never waits for a disk. If the disk is slower than the
//! arrivals, at most 65 536 frames wait in memory. Further frames are not recorded but counted. The file then has no
//! interface statistics, so that a replay does not accept it as complete.

use crate::options::FileAppender;
use bytes::Bytes;
use fullpipe_record::pcapng::{InterfaceDescription, LinkType, PacketDirection, PcapngWriter, SectionHeader};
use fullpipe_units::Instant;
use std::cell::Cell;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Name of the file with the recorded arrivals.
pub const ARRIVALS_FILE: &str = "arrivals.pcapng";

/// Bytes written to the disk per call.
const PIECE_BYTES: usize = 1 << 18;

/// Maximum number of frames that wait to be written.
const MOST_WAITING: usize = 65_536;

/// An arrival: the time at which it entered the model, its port, and the frame.
type Entered = (Instant, usize, Bytes);

/// A running recording.
pub(crate) struct ArrivalRecorder {
    entered: SyncSender<Entered>,
    /// Number of arrivals that were not recorded.
    missing: Cell<u64>,
    writer: JoinHandle<io::Result<PcapngWriter<Vec<u8>>>>,
    append: FileAppender,
    hosts: u32,
}

impl ArrivalRecorder {
    /// Starts a recording of hosts with these names, in the order of their ports.
    ///
    /// # Errors
    /// If the machine cannot start a thread.
    pub(crate) fn start<'a>(append: FileAppender, hosts: impl Iterator<Item = &'a str>) -> io::Result<Self> {
        ArrivalRecorder::with_room(append, hosts, MOST_WAITING)
    }

    fn with_room<'a>(
        append: FileAppender,
        hosts: impl Iterator<Item = &'a str>,
        most_waiting: usize,
    ) -> io::Result<Self> {
        let section = SectionHeader {
            application: concat!("fullpipe ", env!("CARGO_PKG_VERSION")),
            system: "real time",
            ..SectionHeader::default()
        };
        let mut file = PcapngWriter::new(Vec::new(), &section)?;
        let mut count = 0;
        for name in hosts {
            let description = "what the host sent";
            file.write_interface(&InterfaceDescription {
                name,
                description,
                link_type: LinkType::Ethernet,
                snap_bytes: 0,
            })?;
            count += 1;
        }
        let (entered, incoming) = sync_channel(most_waiting);
        let given = append.clone();
        let builder = std::thread::Builder::new().name("arrivals".to_owned());
        let writer = builder.spawn(move || write(file, &incoming, &given))?;
        Ok(ArrivalRecorder { entered, missing: Cell::new(0), writer, append, hosts: count })
    }

    /// Records an arrival. Disk errors are returned by [`ArrivalRecorder::finish`].
    pub(crate) fn keep(&self, at: Instant, port: usize, frame: &Bytes) {
        // The thread ends early only after an error, which `finish` returns.
        if let Err(TrySendError::Full(_)) = self.entered.try_send((at, port, frame.clone())) {
            self.missing.set(self.missing.get() + 1);
        }
    }

    /// Writes the remaining arrivals and the time that the model reached. Returns the number of missing arrivals.
    ///
    /// # Errors
    /// Errors of the disk.
    pub(crate) fn finish(self, at: Instant) -> io::Result<u64> {
        drop(self.entered);
        let written = self.writer.join().map_err(|_| io::Error::other("the thread that writes arrivals has ended"))?;
        let mut file = written.map_err(told)?;
        let missing = self.missing.get();
        if missing == 0 {
            (0..self.hosts).try_for_each(|host| file.write_interface_statistics(host, at))?;
        }
        (self.append)(ARRIVALS_FILE, &file.into_inner()).map_err(told)?;
        Ok(missing)
    }
}

fn told(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write {ARRIVALS_FILE}: {error}"))
}

/// Runs the thread: writes until no further arrival is possible. Returns the writer with the unwritten data.
fn write(
    mut file: PcapngWriter<Vec<u8>>,
    incoming: &Receiver<Entered>,
    append: &FileAppender,
) -> io::Result<PcapngWriter<Vec<u8>>> {
    for (at, port, frame) in incoming {
        file.write_packet(port as u32, at, PacketDirection::Inbound, &frame, frame.len() as u32)?;
        let piece = file.get_mut();
        if piece.len() >= PIECE_BYTES {
            append(ARRIVALS_FILE, piece)?;
            piece.clear();
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_record::pcapng::{Block, PcapngReader};
    use std::sync::{Arc, Mutex};

    /// Four frames of 64 KiB are the first piece of 256 KiB. While the disk writes it, eight more arrive, of which four
    /// fit.
    #[test]
    fn arrivals_lost_by_a_slow_disk_are_counted_and_the_file_has_no_end() {
        for slow in [true, false] {
            let file = Arc::new(Mutex::new(Vec::new()));
            let (begun, has_begun) = std::sync::mpsc::channel();
            let (release, released) = std::sync::mpsc::channel();
            let (begun, released) = (Mutex::new(begun), Mutex::new(released));
            let disk = Arc::clone(&file);
            let append: FileAppender = Arc::new(move |_, bytes| {
                if slow && disk.lock().unwrap().is_empty() {
                    begun.lock().unwrap().send(()).unwrap();
                    released.lock().unwrap().recv().unwrap();
                }
                disk.lock().unwrap().extend_from_slice(bytes);
                Ok(())
            });
            let room = if slow { 4 } else { 100 };
            let recorder = ArrivalRecorder::with_room(append, ["host"].into_iter(), room).unwrap();
            let frame = Bytes::from(vec![0; 65_536]);
            (0..4).for_each(|_| recorder.keep(Instant::ZERO, 0, &frame));
            if slow {
                has_begun.recv().unwrap();
            }
            assert_eq!(recorder.missing.get(), 0);
            (0..8).for_each(|_| recorder.keep(Instant::ZERO, 0, &frame));
            let missing = if slow { 4 } else { 0 };
            assert_eq!(recorder.missing.get(), missing);
            release.send(()).unwrap();
            assert_eq!(recorder.finish(Instant::ZERO).unwrap(), missing);
            let file = file.lock().unwrap();
            let blocks: Vec<_> = PcapngReader::new(&file).map(Result::unwrap).collect();
            let packets = blocks.iter().filter(|block| matches!(block, Block::Packet { .. })).count();
            assert_eq!(packets as u64, 12 - missing);
            assert_eq!(blocks.iter().any(|block| matches!(block, Block::InterfaceStatistics { .. })), !slow);
        }
    }
}
