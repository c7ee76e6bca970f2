//! Packet captures of a run: one pcapng file per host, with the packets at its interface.
//!
//! Each file is buffered in memory and appended in chunks. Even 10 000 hosts therefore need neither 10 000 open files
//! nor memory for all packets.

use crate::options::{CaptureOptions, FileAppender};
use fullpipe_network::{CaptureDirection, CapturedPacket, Tap};
use fullpipe_record::pcapng::{InterfaceDescription, LinkType, PacketDirection, PcapngWriter, SectionHeader};
use fullpipe_scenario::Scenario;
use fullpipe_units::{Instant, NodeId};
use std::collections::BTreeSet;
use std::io;

/// Number of buffered bytes after which a file is appended to.
const PIECE_BYTES: usize = 1 << 16;

/// The file of one host.
#[derive(Debug)]
struct File {
    name: String,
    capture: PcapngWriter<Vec<u8>>,
}

/// Captures at every host.
#[derive(Debug)]
pub(crate) struct Captures {
    settings: CaptureOptions,
    /// The files by node; routers have none.
    files: Vec<Option<File>>,
    /// Buffer for the packet that is being written.
    bytes: Vec<u8>,
    failed: io::Result<()>,
}

impl Captures {
    pub(crate) fn new(settings: &CaptureOptions, scenario: &Scenario) -> Self {
        let mut taken = BTreeSet::new();
        let files = scenario.nodes.iter().map(|node| {
            (!node.router).then(|| {
                let name = file_name(&node.name, &mut taken);
                File { name, capture: begin(&node.name, settings.snap_bytes) }
            })
        });
        Captures { settings: settings.clone(), files: files.collect(), bytes: Vec::new(), failed: Ok(()) }
    }

    fn write(
        &mut self,
        now: Instant,
        node: NodeId,
        way: PacketDirection,
        captured: &CapturedPacket<'_>,
    ) -> io::Result<()> {
        let Some(Some(file)) = self.files.get_mut(node.index()) else { return Ok(()) };
        let snap_bytes = if self.settings.snap_bytes == 0 { usize::MAX } else { self.settings.snap_bytes as usize };
        self.bytes.clear();
        let original_bytes = captured
            .write(snap_bytes, &mut self.bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", file.name)))?;
        file.capture.write_packet(0, now, way, &self.bytes, original_bytes)?;
        if file.capture.get_mut().len() >= PIECE_BYTES {
            file.flush(&self.settings.append)?;
        }
        Ok(())
    }
}

impl File {
    fn flush(&mut self, append: &FileAppender) -> io::Result<()> {
        let piece = self.capture.get_mut();
        append(&self.name, piece)?;
        piece.clear();
        Ok(())
    }
}

/// Creates a file with its section header and the interface of its host. Writes to memory cannot fail.
fn begin(host: &str, snap_bytes: u32) -> PcapngWriter<Vec<u8>> {
    let section = SectionHeader {
        hardware: "a simulated host",
        system: "virtual time",
        application: concat!("fullpipe ", env!("CARGO_PKG_VERSION")),
    };
    let interface = InterfaceDescription {
        name: host,
        description: "all interfaces of the host",
        link_type: LinkType::Raw,
        snap_bytes,
    };
    let mut capture = PcapngWriter::new(Vec::new(), &section).expect("writing to memory cannot fail");
    capture.write_interface(&interface).expect("writing to memory cannot fail");
    capture
}

/// Returns a unique name for a host's file that is valid in every file system.
fn file_name(host: &str, taken: &mut BTreeSet<String>) -> String {
    let harmless = |letter: char| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '_' };
    let plain: String = host.chars().take(60).map(harmless).collect();
    // The name must be neither hidden nor empty.
    let stem = if plain.is_empty() || plain.starts_with('.') { format!("_{plain}") } else { plain };
    let numbered = (1_u64..).map(|number| if number == 1 { stem.clone() } else { format!("{stem}.{number}") });
    // Some file systems do not distinguish uppercase and lowercase letters.
    let free = numbered.filter(|name| taken.insert(name.to_lowercase())).map(|name| format!("{name}.pcapng")).next();
    free.unwrap_or_default()
}

impl Tap for Captures {
    fn on_packet(&mut self, now: Instant, node: NodeId, direction: CaptureDirection, captured: &CapturedPacket<'_>) {
        let way = match direction {
            CaptureDirection::Outbound => PacketDirection::Outbound,
            CaptureDirection::Inbound => PacketDirection::Inbound,
        };
        if self.failed.is_ok() {
            self.failed = self.write(now, node, way, captured);
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.failed, Ok(()))?;
        self.files.iter_mut().flatten().try_for_each(|file| file.flush(&self.settings.append))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_valid_and_unique() {
        let mut taken = BTreeSet::new();
        let hosts = ["client", "a/b", "a_b", "A/B", "..", "", "näher", &"x".repeat(300)];
        let names: Vec<String> = hosts.iter().map(|host| file_name(host, &mut taken)).collect();
        let long = format!("{}.pcapng", "x".repeat(60));
        let expected = [
            "client.pcapng",
            "a_b.pcapng",
            "a_b.2.pcapng",
            "A_B.3.pcapng",
            "_...pcapng",
            "_.pcapng",
            "näher.pcapng",
            &long,
        ];
        assert_eq!(names, expected);
    }
}
