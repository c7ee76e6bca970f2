//! Packet captures in the pcapng format (draft-ietf-opsawg-pcapng), which Wireshark and tcpdump can read.
//!
//! A file is a sequence of blocks: one section header, one description per interface, and one Enhanced Packet Block per
//! packet. Every block begins with its type and length and ends with its length again; lengths are multiples of four.
//! Numbers are little-endian, which the byte-order magic of the section header indicates. Times are in nanoseconds
//! since the start of the run, so readers display dates in 1970.
//!
//! Each block is assembled in memory and passed to the underlying writer in one call. After an error nothing more is
//! written, so a file can be truncated but never has a gap.

mod read;

use fullpipe_units::Instant;
use std::io::{self, Write};

pub use read::{Block, PcapngError, PcapngReader};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Codes of options. Each block type has its own numbering.
mod option {
    pub(super) const END: u16 = 0;
    pub(super) const SECTION_HARDWARE: u16 = 2;
    pub(super) const SECTION_SYSTEM: u16 = 3;
    pub(super) const SECTION_APPLICATION: u16 = 4;
    pub(super) const INTERFACE_NAME: u16 = 2;
    pub(super) const INTERFACE_DESCRIPTION: u16 = 3;
    pub(super) const INTERFACE_RESOLUTION: u16 = 9;
    pub(super) const PACKET_FLAGS: u16 = 2;
}

/// Times are in units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// The type of the first header of a captured packet (from the registry of link-layer types).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum LinkType {
    /// An Ethernet header (LINKTYPE_ETHERNET).
    Ethernet = 1,
    /// An IPv4 or IPv6 header (LINKTYPE_RAW).
    Raw = 101,
}

/// The system and the program that write the capture. Empty strings are omitted from the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct SectionHeader<'a> {
    /// Description of the hardware.
    pub hardware: &'a str,
    /// Name of the operating system.
    pub system: &'a str,
    /// Name of the program.
    pub application: &'a str,
}

/// An interface at which packets are captured. Empty strings are omitted from the file.
#[derive(Clone, Copy, Debug)]
pub struct InterfaceDescription<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// Description of the interface.
    pub description: &'a str,
    /// The type of the first header of the packets.
    pub link_type: LinkType,
    /// Maximum number of bytes stored of each packet; 0 means no limit.
    pub snap_bytes: u32,
}

/// The direction in which a packet passed the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum PacketDirection {
    /// The interface received the packet.
    Inbound = 1,
    /// The interface sent the packet.
    Outbound = 2,
}

/// Writes a capture that consists of one section.
///
/// ```
/// use fullpipe_record::pcapng::{InterfaceDescription, LinkType, PacketDirection, PcapngWriter, SectionHeader};
/// use fullpipe_units::Instant;
/// let mut capture = PcapngWriter::new(Vec::new(), &SectionHeader::default())?;
/// let interface = InterfaceDescription { name: "eth0", description: "", link_type: LinkType::Raw, snap_bytes: 0 };
/// let eth0 = capture.write_interface(&interface)?;
/// capture.write_packet(eth0, Instant::from_nanos(1), PacketDirection::Outbound, &[0x45], 20)?;
/// assert_eq!(capture.into_inner()[..4], [0x0A, 0x0D, 0x0D, 0x0A]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct PcapngWriter<W> {
    out: W,
    block: Vec<u8>,
    /// Snap length of each interface.
    interfaces: Vec<u32>,
    failed: bool,
}

impl<W: Write> PcapngWriter<W> {
    /// Creates a writer and writes the section header to `out`.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn new(out: W, section: &SectionHeader<'_>) -> io::Result<Self> {
        let mut writer = PcapngWriter { out, block: Vec::new(), interfaces: Vec::new(), failed: false };
        writer.begin(SECTION_HEADER);
        writer.long(BYTE_ORDER_MAGIC);
        writer.short(1);
        writer.short(0);
        // The length of the section is not known in advance, which the value -1 indicates.
        writer.long(u32::MAX);
        writer.long(u32::MAX);
        writer.text(option::SECTION_HARDWARE, section.hardware);
        writer.text(option::SECTION_SYSTEM, section.system);
        writer.text(option::SECTION_APPLICATION, section.application);
        writer.option(option::END, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Writes the description of a further interface, and returns the number of this interface.
    ///
    /// # Errors
    /// Returns the errors of the underlying writer, and [`io::ErrorKind::BrokenPipe`] after an earlier error.
    pub fn write_interface(&mut self, interface: &InterfaceDescription<'_>) -> io::Result<u32> {
        self.begin(INTERFACE_DESCRIPTION);
        self.short(interface.link_type as u16);
        self.short(0);
        self.long(interface.snap_bytes);
        self.text(option::INTERFACE_NAME, interface.name);
        self.text(option::INTERFACE_DESCRIPTION, interface.description);
        self.option(option::INTERFACE_RESOLUTION, &[NANOSECONDS]);
        self.option(option::END, &[]);
        self.end()?;
        self.interfaces.push(interface.snap_bytes);
        Ok(self.interfaces.len() as u32 - 1)
    }

    /// Writes a packet of `original_bytes` bytes. `bytes` contains all or the first bytes of the packet, and is
    /// truncated to the snap length of the interface.
    ///
    /// # Errors
    /// Returns the errors of the underlying writer, and [`io::ErrorKind::BrokenPipe`] after an earlier error of that
    /// writer. Returns [`io::ErrorKind::InvalidInput`] for an interface that was not described.
    pub fn write_packet(
        &mut self,
        interface: u32,
        at: Instant,
        way: PacketDirection,
        bytes: &[u8],
        original_bytes: u32,
    ) -> io::Result<()> {
        let snap_bytes = match self.interfaces.get(interface as usize) {
            Some(0) => usize::MAX,
            Some(snap_bytes) => *snap_bytes as usize,
            None => return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such interface")),
        };
        let bytes = &bytes[..bytes.len().min(snap_bytes).min(original_bytes as usize)];
        let nanoseconds = at.as_nanos();
        self.begin(ENHANCED_PACKET);
        self.long(interface);
        self.long((nanoseconds >> 32) as u32);
        self.long(nanoseconds as u32);
        self.long(bytes.len() as u32);
        self.long(original_bytes);
        self.block.extend_from_slice(bytes);
        self.pad();
        self.option(option::PACKET_FLAGS, &(way as u32).to_le_bytes());
        self.option(option::END, &[]);
        self.end()
    }

    /// Writes a block that states that the capture at an interface has ended. Later packets must belong to other
    /// interfaces.
    ///
    /// # Errors
    /// Returns the same errors as [`PcapngWriter::write_packet`].
    pub fn write_interface_statistics(&mut self, interface: u32, at: Instant) -> io::Result<()> {
        if interface as usize >= self.interfaces.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such interface"));
        }
        let nanoseconds = at.as_nanos();
        self.begin(INTERFACE_STATISTICS);
        self.long(interface);
        self.long((nanoseconds >> 32) as u32);
        self.long(nanoseconds as u32);
        self.option(option::END, &[]);
        self.end()
    }

    /// Returns the underlying writer, without flushing it.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Returns a mutable reference to the underlying writer. Bytes that the caller writes to it are placed between
    /// blocks.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.long(kind);
        // The length is filled in when the block is complete.
        self.long(0);
    }

    fn end(&mut self) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "an earlier block could not be written"));
        }
        let length = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.long(length);
        let written = self.out.write_all(&self.block);
        self.failed = written.is_err();
        written
    }

    fn short(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn long(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn text(&mut self, code: u16, text: &str) {
        // The length field of an option has 16 bits. A longer text is omitted, because it would corrupt the block.
        if !text.is_empty() && text.len() <= usize::from(u16::MAX) {
            self.option(code, text.as_bytes());
        }
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.short(code);
        self.short(value.len() as u16);
        self.block.extend_from_slice(value);
        self.pad();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: InterfaceDescription<'static> =
        InterfaceDescription { name: "client", description: "", link_type: LinkType::Raw, snap_bytes: 6 };

    /// The expected bytes are figures 9 (section header), 10 (interface description) and 11 (enhanced packet) of the
    /// draft, filled in by hand.
    #[test]
    fn blocks_match_the_figures_of_the_draft() {
        let section = SectionHeader { hardware: "", system: "", application: "abc" };
        let mut capture = PcapngWriter::new(Vec::new(), &section).unwrap();
        assert_eq!(capture.write_interface(&RAW).unwrap(), 0);
        let at = Instant::from_nanos(0x0000_0002_0304_0506);
        capture.write_packet(0, at, PacketDirection::Inbound, &[1, 2, 3, 4, 5], 5).unwrap();
        capture.write_packet(0, at, PacketDirection::Outbound, &[1, 2, 3, 4, 5, 6, 7, 8], 1500).unwrap();
        capture.write_interface_statistics(0, at).unwrap();
        #[rustfmt::skip]
        let expected: Vec<u8> = [
            // Type, length 40, magic, version 1.0, length of the section unknown; option 4, 3 bytes; end; length.
            &[0x0A, 0x0D, 0x0D, 0x0A, 40, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0][..],
            &[0xFF; 8],
            &[4, 0, 3, 0, b'a', b'b', b'c', 0, 0, 0, 0, 0, 40, 0, 0, 0],
            // Type 1, length 44, link type 101, reserved, snap length 6; name of 6 bytes, padded; resolution 9; end.
            &[1, 0, 0, 0, 44, 0, 0, 0, 101, 0, 0, 0, 6, 0, 0, 0],
            &[2, 0, 6, 0, b'c', b'l', b'i', b'e', b'n', b't', 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0],
            // Type 6, length 52, interface 0, time high and low, 5 bytes of 5, padded to 8; flags: inbound; end.
            &[6, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 6, 5, 4, 3, 5, 0, 0, 0, 5, 0, 0, 0],
            &[1, 2, 3, 4, 5, 0, 0, 0, 2, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0],
            // The same with 6 bytes of 1500, outbound.
            &[6, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 6, 5, 4, 3, 6, 0, 0, 0, 0xDC, 5, 0, 0],
            &[1, 2, 3, 4, 5, 6, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0],
            // Type 5, length 28, interface 0, time high and low; end.
            &[5, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 6, 5, 4, 3, 0, 0, 0, 0, 28, 0, 0, 0],
        ].concat();
        assert_eq!(capture.into_inner(), expected);
    }

    #[test]
    fn a_packet_of_an_undescribed_interface_is_an_error_and_writes_nothing() {
        let mut capture = PcapngWriter::new(Vec::new(), &SectionHeader::default()).unwrap();
        let length = capture.get_mut().len();
        let error = capture.write_packet(0, Instant::ZERO, PacketDirection::Inbound, &[1], 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(
            capture.write_interface_statistics(0, Instant::ZERO).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
        assert_eq!(capture.into_inner().len(), length);
    }

    /// A writer that fails after a number of bytes, and accepts bytes again after the failure.
    struct Full {
        taken: Vec<u8>,
        room: usize,
        refusals: u32,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let fits = bytes.len().min(self.room);
            if fits == 0 {
                self.room = usize::MAX;
                self.refusals += 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= fits;
            self.taken.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nothing_is_written_after_an_error() {
        // The section header has 28 bytes and the interface 44, so the writer fails within the block of the first
        // packet.
        let full = Full { taken: Vec::new(), room: 90, refusals: 0 };
        let mut capture = PcapngWriter::new(full, &SectionHeader::default()).unwrap();
        let client = capture.write_interface(&RAW).unwrap();
        let mut packet =
            || capture.write_packet(client, Instant::ZERO, PacketDirection::Inbound, &[0; 6], 6).map_err(|e| e.kind());
        assert_eq!(packet(), Err(io::ErrorKind::StorageFull));
        assert_eq!(packet(), Err(io::ErrorKind::BrokenPipe));
        let full = capture.into_inner();
        assert_eq!((full.taken.len(), full.refusals), (90, 1));
    }
}
