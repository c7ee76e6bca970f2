//! A reader of captures in the form in which this crate writes them: one little-endian section, times in nanoseconds,
//! and whole packets in Enhanced Packet Blocks (draft-ietf-opsawg-pcapng). Blocks of other types are skipped, as the
//! draft requires. The reader rejects damaged files and other forms of pcapng with an error. No input causes a panic.

use super::{
    BYTE_ORDER_MAGIC, ENHANCED_PACKET, INTERFACE_DESCRIPTION, INTERFACE_STATISTICS, LinkType, NANOSECONDS,
    SECTION_HEADER, option,
};
use fullpipe_units::Instant;
use std::fmt;

/// Bytes of a block except its body: the type, the length, and the length again.
const FRAMING_BYTES: usize = 12;

/// The reason why a capture cannot be read, and the position of the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcapngError {
    /// Offset of the incorrect block from the start of the file, in bytes.
    pub offset_bytes: usize,
    /// The reason.
    pub reason: &'static str,
}

impl fmt::Display for PcapngError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "byte {}: {}", self.offset_bytes, self.reason)
    }
}

impl std::error::Error for PcapngError {}

/// A block of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// The description of an interface.
    Interface {
        /// Name of the interface; empty if it has none.
        name: &'a str,
        /// The type of the first header of the packets.
        link_type: LinkType,
    },
    /// A captured packet, in an Enhanced Packet Block.
    Packet {
        /// Number of the interface, which an earlier block describes.
        interface: u32,
        /// Time of the packet, from the start of the run.
        at: Instant,
        /// The whole packet.
        bytes: &'a [u8],
    },
    /// The end of the capture at an interface.
    InterfaceStatistics {
        /// Number of the interface, which an earlier block describes.
        interface: u32,
        /// Time at which the capture ended, from the start of the run.
        at: Instant,
    },
}

/// Reads a capture from memory, block by block, as an iterator. After an error, the iterator returns no more blocks.
#[derive(Clone, Debug)]
pub struct PcapngReader<'a> {
    file: &'a [u8],
    offset: usize,
    begun: bool,
    interfaces: u32,
}

impl<'a> PcapngReader<'a> {
    /// Creates a reader of the bytes of a file.
    pub fn new(file: &'a [u8]) -> Self {
        PcapngReader { file, offset: 0, begun: false, interfaces: 0 }
    }

    /// Returns the next block of a supported type; `None` at the end of the file.
    fn read(&mut self) -> Result<Option<Block<'a>>, &'static str> {
        if self.file.is_empty() {
            return Err("the file is empty");
        }
        if !self.begun && long(self.file, 0).is_some_and(|kind| kind != SECTION_HEADER) {
            return Err("not a pcapng file");
        }
        while self.offset < self.file.len() {
            let (kind, body, length) = block(&self.file[self.offset..])?;
            let meaning = self.meaning(kind, body)?;
            self.offset += length;
            if meaning.is_some() {
                return Ok(meaning);
            }
        }
        Ok(None)
    }

    fn meaning(&mut self, kind: u32, body: &'a [u8]) -> Result<Option<Block<'a>>, &'static str> {
        if !self.begun {
            return self.section(body);
        }
        match kind {
            SECTION_HEADER => Err("second section; only files with one section are supported"),
            INTERFACE_DESCRIPTION => self.interface(body).map(Some),
            ENHANCED_PACKET => self.packet(body).map(Some),
            INTERFACE_STATISTICS => {
                let (interface, at) = self.stamp(body)?;
                Ok(Some(Block::InterfaceStatistics { interface, at }))
            }
            _ => Ok(None),
        }
    }

    fn section(&mut self, body: &[u8]) -> Result<Option<Block<'a>>, &'static str> {
        let magic = long(body, 0).ok_or("truncated section header")?;
        if magic != BYTE_ORDER_MAGIC {
            return Err("wrong byte-order magic of the section");
        }
        if long(body, 4) != Some(1) {
            return Err("unsupported version; expected 1.0");
        }
        self.begun = true;
        Ok(None)
    }

    fn interface(&mut self, body: &'a [u8]) -> Result<Block<'a>, &'static str> {
        let kind = long(body, 0).ok_or("truncated interface description")? & 0xffff;
        let link_type = match kind {
            kind if kind == LinkType::Ethernet as u32 => LinkType::Ethernet,
            kind if kind == LinkType::Raw as u32 => LinkType::Raw,
            _ => return Err("unsupported link type of an interface; expected Ethernet or raw IP"),
        };
        let (mut name, mut resolution) = ("", None);
        let mut options = body.get(8..).ok_or("truncated interface description")?;
        while let Some((code, value)) = next_option(&mut options)? {
            match code {
                option::INTERFACE_NAME => {
                    name = std::str::from_utf8(value).map_err(|_| "name of an interface is not UTF-8")?;
                }
                option::INTERFACE_RESOLUTION => resolution = value.first().copied(),
                _ => {}
            }
        }
        if resolution != Some(NANOSECONDS) {
            return Err("unsupported timestamp resolution of an interface; expected nanoseconds");
        }
        self.interfaces += 1;
        Ok(Block::Interface { name, link_type })
    }

    fn packet(&self, body: &'a [u8]) -> Result<Block<'a>, &'static str> {
        let (interface, at) = self.stamp(body)?;
        let (Some(captured), Some(original)) = (long(body, 12), long(body, 16)) else {
            return Err("truncated packet header");
        };
        if captured != original {
            return Err("packet captured only in part; expected whole packets");
        }
        let bytes = body.get(20..).and_then(|rest| rest.get(..captured as usize));
        let bytes = bytes.ok_or("packet longer than its block")?;
        Ok(Block::Packet { interface, at, bytes })
    }

    /// Reads the interface and the time from the start of a packet block or a statistics block.
    fn stamp(&self, body: &[u8]) -> Result<(u32, Instant), &'static str> {
        let (Some(interface), Some(high), Some(low)) = (long(body, 0), long(body, 4), long(body, 8)) else {
            return Err("truncated timestamp of a block");
        };
        if interface >= self.interfaces {
            return Err("block of an interface without a description");
        }
        Ok((interface, Instant::from_nanos(u64::from(high) << 32 | u64::from(low))))
    }
}

impl<'a> Iterator for PcapngReader<'a> {
    type Item = Result<Block<'a>, PcapngError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read().map_err(|reason| PcapngError { offset_bytes: self.offset, reason });
        if read.is_err() {
            // After one error, the reader returns nothing. For an empty file, the position of the error is the first
            // byte.
            self.file = &[0];
            self.offset = 1;
        }
        read.transpose()
    }
}

/// Returns the type, the body and the total length of the first block.
fn block(rest: &[u8]) -> Result<(u32, &[u8], usize), &'static str> {
    let (Some(kind), Some(length)) = (long(rest, 0), long(rest, 4)) else { return Err("truncated block") };
    // In a big-endian file, the length of the first block is invalid. The type of the section header is the same in
    // both byte orders.
    if kind == SECTION_HEADER && long(rest, 8) == Some(BYTE_ORDER_MAGIC.swap_bytes()) {
        return Err("big-endian file; only little-endian files are supported");
    }
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length < FRAMING_BYTES || !length.is_multiple_of(4) {
        return Err("invalid length of a block");
    }
    let whole = rest.get(..length).ok_or("truncated block")?;
    if whole[length - 4..] != whole[4..8] {
        return Err("the two lengths of a block differ");
    }
    Ok((kind, &whole[8..length - 4], length))
}

/// Removes the next option and returns it; `None` at the end.
fn next_option<'a>(options: &mut &'a [u8]) -> Result<Option<(u16, &'a [u8])>, &'static str> {
    if options.is_empty() {
        return Ok(None);
    }
    let header = long(options, 0).ok_or("truncated option")?;
    let (code, length) = (header as u16, (header >> 16) as usize);
    if code == option::END {
        return Ok(None);
    }
    let value = options.get(4..4 + length).ok_or("truncated option")?;
    *options = options.get(4 + length.next_multiple_of(4)..).ok_or("truncated option")?;
    Ok(Some((code, value)))
}

fn long(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..)?.get(..4)?;
    Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
mod tests {
    use super::super::{InterfaceDescription, PacketDirection, PcapngWriter, SectionHeader};
    use super::*;
    use proptest::prelude::*;

    fn capture() -> Vec<u8> {
        let section = SectionHeader { application: "test", ..SectionHeader::default() };
        let mut capture = PcapngWriter::new(Vec::new(), &section).unwrap();
        for name in ["client", "server"] {
            let link_type = LinkType::Ethernet;
            capture
                .write_interface(&InterfaceDescription { name, description: "a host", link_type, snap_bytes: 0 })
                .unwrap();
        }
        let at = Instant::from_nanos(0x0000_0002_0304_0506);
        capture.write_packet(1, at, PacketDirection::Inbound, &[1, 2, 3, 4, 5], 5).unwrap();
        capture.write_packet(0, at, PacketDirection::Inbound, &[], 0).unwrap();
        capture.write_interface_statistics(0, Instant::from_nanos(u64::MAX)).unwrap();
        capture.into_inner()
    }

    fn error(file: &[u8]) -> PcapngError {
        let mut reader = PcapngReader::new(file);
        let error = reader.find_map(Result::err).expect("the reader returns an error");
        assert_eq!(reader.next(), None, "the reader ends after an error");
        error
    }

    #[test]
    fn written_blocks_are_read_back() {
        let at = Instant::from_nanos(0x0000_0002_0304_0506);
        let link_type = LinkType::Ethernet;
        let expected = [
            Block::Interface { name: "client", link_type },
            Block::Interface { name: "server", link_type },
            Block::Packet { interface: 1, at, bytes: &[1, 2, 3, 4, 5] },
            Block::Packet { interface: 0, at, bytes: &[] },
            Block::InterfaceStatistics { interface: 0, at: Instant::from_nanos(u64::MAX) },
        ];
        let file = capture();
        let read: Vec<_> = PcapngReader::new(&file).collect::<Result<_, _>>().unwrap();
        assert_eq!(read, expected);
        // A block of an unknown type (here one for local use), before all packets.
        let unknown = [3, 0, 0, 0x80, 16, 0, 0, 0, 9, 9, 9, 9, 16, 0, 0, 0];
        let header = 40;
        let with = [&file[..header], &unknown, &file[header..]].concat();
        assert_eq!(PcapngReader::new(&with).collect::<Result<Vec<_>, _>>().unwrap(), expected);
    }

    /// A block that the test writes.
    #[derive(Clone, Debug)]
    enum Entry {
        Interface { name: String, description: String, link_type: LinkType },
        Packet { interface: prop::sample::Index, at: u64, way: PacketDirection, bytes: Vec<u8> },
        End { interface: prop::sample::Index, at: u64 },
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let link_type = prop_oneof![Just(LinkType::Ethernet), Just(LinkType::Raw)];
        let way = prop_oneof![Just(PacketDirection::Inbound), Just(PacketDirection::Outbound)];
        let bytes = prop::collection::vec(any::<u8>(), 0..40);
        prop_oneof![
            1 => ("\\PC{0,9}", "\\PC{0,9}", link_type)
                .prop_map(|(name, description, link_type)| Entry::Interface { name, description, link_type }),
            3 => (any::<prop::sample::Index>(), any::<u64>(), way, bytes)
                .prop_map(|(interface, at, way, bytes)| Entry::Packet { interface, at, way, bytes }),
            1 => (any::<prop::sample::Index>(), any::<u64>()).prop_map(|(interface, at)| Entry::End { interface, at }),
        ]
    }

    proptest! {
        /// Every capture is read as it was written. If one of its bytes is changed, it is rejected, or it is read as a
        /// capture that can be written and read again with the same result.
        #[test]
        fn captures_are_read_as_they_were_written(
            hardware in "\\PC{0,9}",
            entries in prop::collection::vec(entry(), 0..12),
            damaged in any::<prop::sample::Index>(),
            change in 1..=255_u8,
        ) {
            let section = SectionHeader { hardware: &hardware, ..SectionHeader::default() };
            let mut capture = PcapngWriter::new(Vec::new(), &section).unwrap();
            let mut expected = Vec::new();
            let mut interfaces = 0;
            for entry in &entries {
                let number = |index: &prop::sample::Index| index.index(interfaces) as u32;
                match entry {
                    Entry::Interface { name, description, link_type } => {
                        let described = InterfaceDescription { name, description, link_type: *link_type, snap_bytes: 0 };
                        prop_assert_eq!(capture.write_interface(&described).unwrap(), interfaces as u32);
                        interfaces += 1;
                        expected.push(Block::Interface { name, link_type: *link_type });
                    }
                    _ if interfaces == 0 => {}
                    Entry::Packet { interface, at, way, bytes } => {
                        let (interface, at) = (number(interface), Instant::from_nanos(*at));
                        capture.write_packet(interface, at, *way, bytes, bytes.len() as u32).unwrap();
                        expected.push(Block::Packet { interface, at, bytes });
                    }
                    Entry::End { interface, at } => {
                        let (interface, at) = (number(interface), Instant::from_nanos(*at));
                        capture.write_interface_statistics(interface, at).unwrap();
                        expected.push(Block::InterfaceStatistics { interface, at });
                    }
                }
            }
            let mut file = capture.into_inner();
            prop_assert_eq!(PcapngReader::new(&file).collect::<Result<Vec<_>, _>>().unwrap(), expected);

            let place = damaged.index(file.len());
            file[place] ^= change;
            if let Ok(blocks) = PcapngReader::new(&file).collect::<Result<Vec<_>, _>>() {
                let again = written(&blocks);
                prop_assert_eq!(PcapngReader::new(&again).collect::<Result<Vec<_>, _>>().unwrap(), blocks);
            }
        }
    }

    /// Returns a capture of these blocks.
    fn written(blocks: &[Block<'_>]) -> Vec<u8> {
        let mut capture = PcapngWriter::new(Vec::new(), &SectionHeader::default()).unwrap();
        for block in blocks {
            match *block {
                Block::Interface { name, link_type } => {
                    let described = InterfaceDescription { name, description: "", link_type, snap_bytes: 0 };
                    capture.write_interface(&described).map(drop).unwrap();
                }
                Block::Packet { interface, at, bytes } => {
                    capture.write_packet(interface, at, PacketDirection::Inbound, bytes, bytes.len() as u32).unwrap();
                }
                Block::InterfaceStatistics { interface, at } => {
                    capture.write_interface_statistics(interface, at).unwrap()
                }
            }
        }
        capture.into_inner()
    }

    /// A file that ends within a block is rejected at that block. A file that ends between blocks is a shorter capture.
    #[test]
    fn a_file_that_ends_within_a_block_is_an_error() {
        let file = capture();
        let mut ends = vec![0];
        while let Some(length) = long(&file, ends[ends.len() - 1] + 4) {
            ends.push(ends[ends.len() - 1] + length as usize);
        }
        assert_eq!((ends.len(), ends[ends.len() - 1]), (7, file.len()), "six blocks");
        for cut in 1..file.len() {
            let last = *ends.iter().filter(|end| **end <= cut).max().unwrap();
            if last == cut {
                assert!(PcapngReader::new(&file[..cut]).all(|block| block.is_ok()), "cut at {cut}");
            } else {
                assert_eq!(error(&file[..cut]), PcapngError { offset_bytes: last, reason: "truncated block" });
            }
        }
        assert_eq!(error(&[]).to_string(), "byte 0: the file is empty");
    }

    #[test]
    fn each_kind_of_damage_has_its_message() {
        let change = |place: usize, value: &[u8]| {
            let mut file = capture();
            file[place..place + value.len()].copy_from_slice(value);
            error(&file)
        };
        // The section header has 40 bytes. An interface description has 16 bytes of header, 4 + 8 of name, 4 + 8 of
        // text, 4 + 4 of resolution, 4 of end and 4 of length: 56 bytes. So the first packet is at byte 152 and the
        // second one at 204.
        let said = |offset_bytes, reason| PcapngError { offset_bytes, reason };
        assert_eq!(change(0, &[0]), said(0, "not a pcapng file"));
        assert_eq!(
            change(8, &[0x1a, 0x2b, 0x3c, 0x4d]).reason,
            "big-endian file; only little-endian files are supported"
        );
        assert_eq!(change(8, &[0]), said(0, "wrong byte-order magic of the section"));
        assert_eq!(change(12, &[2]), said(0, "unsupported version; expected 1.0"));
        assert_eq!(
            change(40 + 8, &[9]),
            said(40, "unsupported link type of an interface; expected Ethernet or raw IP")
        );
        assert_eq!(change(40 + 20, &[0xff]), said(40, "name of an interface is not UTF-8"));
        assert_eq!(
            change(40 + 44, &[6]),
            said(40, "unsupported timestamp resolution of an interface; expected nanoseconds")
        );
        assert_eq!(change(40 + 16 + 2, &[200]), said(40, "truncated option"));
        assert_eq!(change(152 + 4, &[53]), said(152, "invalid length of a block"));
        assert_eq!(change(152 + 4, &[48]), said(152, "the two lengths of a block differ"));
        assert_eq!(change(152 + 8, &[2]), said(152, "block of an interface without a description"));
        assert_eq!(change(152 + 20, &[4]), said(152, "packet captured only in part; expected whole packets"));
        assert_eq!(change(152 + 20, &[99, 0, 0, 0, 99]), said(152, "packet longer than its block"));
        assert_eq!(change(152, &[10, 13, 13, 10]).reason, "second section; only files with one section are supported");
    }
}
