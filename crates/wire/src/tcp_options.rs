//! TCP options, parsing and writing: MSS (RFC 9293 section 3.7.1), window scale and timestamps (RFC 7323), SACK (RFC
//! 2018), Accurate ECN (RFC 9768 section 3.2.3), Fast Open (RFC 7413).
//!
//! Stacks insert NOP options so that option values are aligned to four bytes: two before timestamps and before SACK
//! blocks, one before window scale. This module does the same as far as the header length permits. [`TcpHeader`] rounds
//! up the sum of all options, so timestamps together with SACK blocks have no NOPs. The header of a stack that adds two
//! NOPs to each is four bytes longer.

use crate::tcp::{AccurateEcn, MAX_SACK_BLOCKS, SackBlock, SegmentOptions, TCP_HEADER_BYTES, TcpHeader, options};

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const FAST_OPEN: u8 = 34;
/// Accurate ECN with EE0B first.
const ACCURATE_ECN_0: u8 = 172;
/// Accurate ECN with EE1B first.
const ACCURATE_ECN_1: u8 = 174;

/// Maximum number of option bytes: the Data Offset field has four bits and counts words.
const MAX_OPTION_BYTES: usize = 40;

/// Writer that aligns options with NOPs as far as there is space.
struct Layout<'a> {
    out: &'a mut Vec<u8>,
    /// Bytes left for NOPs.
    spare: usize,
    begin: usize,
}

impl Layout<'_> {
    /// Appends an option, at the offset `place` modulo four if possible.
    fn put(&mut self, place: usize, kind: u8, value: &[u8]) {
        let at = self.out.len() - self.begin;
        let gap = (place + 4 - at % 4) % 4;
        if gap <= self.spare {
            self.out.resize(self.out.len() + gap, NO_OPERATION);
            self.spare -= gap;
        }
        self.put_here(kind, value);
    }

    fn put_here(&mut self, kind: u8, value: &[u8]) {
        self.out.extend([kind, value.len() as u8 + 2]);
        self.out.extend_from_slice(value);
    }
}

/// Appends the options of a segment. Returns false if they do not fit into a header.
pub(crate) fn write(header: &TcpHeader, side: &SegmentOptions, out: &mut Vec<u8>) -> bool {
    let length = (header.header_bytes() - TCP_HEADER_BYTES) as usize;
    if length > MAX_OPTION_BYTES || usize::from(header.sack_count) > MAX_SACK_BLOCKS {
        return false;
    }
    let has = |option| header.options & option != 0;
    let sacks: Vec<u8> = side.sacks[..usize::from(header.sack_count)]
        .iter()
        .flat_map(|block| [block.start.to_be_bytes(), block.end.to_be_bytes()])
        .flatten()
        .collect();
    let (ecn_kind, counters) = counters(&side.accurate_ecn);
    let cookie = &side.fast_open_cookie[..usize::from(side.fast_open_bytes).min(16)];
    let present = [
        (has(options::MSS), 4),
        (has(options::SACK_PERMITTED), 2),
        (has(options::TIMESTAMPS), 10),
        (has(options::WINDOW_SCALE), 3),
        (header.sack_count > 0, 2 + sacks.len()),
        (has(options::ACCURATE_ECN), 2 + counters.len()),
        (has(options::FAST_OPEN), 2 + cookie.len()),
    ];
    let used: usize = present.iter().filter(|(there, _)| *there).map(|(_, bytes)| bytes).sum();
    if used > length {
        return false;
    }
    let begin = out.len();
    let mut layout = Layout { begin, out, spare: length - used };
    let [mss, sack_permitted, timestamps, window_scale, sack, accurate_ecn, fast_open] =
        present.map(|(there, _)| there);
    if mss {
        layout.put(0, MSS, &header.mss.to_be_bytes());
    }
    if sack_permitted {
        // SACK permitted and timestamps together fill three words without NOPs.
        layout.put(if timestamps { 0 } else { 2 }, SACK_PERMITTED, &[]);
    }
    if timestamps {
        let value = [header.timestamp.to_be_bytes(), header.timestamp_echo.to_be_bytes()].concat();
        layout.put(2, TIMESTAMPS, &value);
    }
    if window_scale {
        layout.put(1, WINDOW_SCALE, &[header.window_scale]);
    }
    if sack {
        layout.put(2, SACK, &sacks);
    }
    if accurate_ecn {
        layout.put_here(ecn_kind, &counters);
    }
    if fast_open {
        layout.put_here(FAST_OPEN, cookie);
    }
    out.resize(begin + length, NO_OPERATION);
    true
}

/// Kind and counters of the Accurate ECN option.
fn counters(ecn: &AccurateEcn) -> (u8, Vec<u8>) {
    let AccurateEcn { ect0_bytes, ce_bytes, ect1_bytes, fields, ect1_first } = *ecn;
    let (kind, order) = match ect1_first {
        false => (ACCURATE_ECN_0, [ect0_bytes, ce_bytes, ect1_bytes]),
        true => (ACCURATE_ECN_1, [ect1_bytes, ce_bytes, ect0_bytes]),
    };
    let bytes = order.iter().take(usize::from(fields)).flat_map(|counter| {
        let [_, high, middle, low] = counter.to_be_bytes();
        [high, middle, low]
    });
    (kind, bytes.collect())
}

/// Parses options into the header and the separate options. Options of an unknown kind, or with a wrong length for
/// their kind, are ignored. Returns `None` if a length is below two or exceeds the options.
pub(crate) fn read(mut bytes: &[u8], header: &mut TcpHeader, side: &mut SegmentOptions) -> Option<()> {
    while let [kind, rest @ ..] = bytes {
        match *kind {
            END => return Some(()),
            NO_OPERATION => bytes = rest,
            kind => {
                let length = usize::from(*rest.first()?);
                if length < 2 || length > bytes.len() {
                    return None;
                }
                read_one(kind, &bytes[2..length], header, side);
                bytes = &bytes[length..];
            }
        }
    }
    Some(())
}

fn read_one(kind: u8, value: &[u8], header: &mut TcpHeader, side: &mut SegmentOptions) {
    match (kind, value) {
        (MSS, [high, low]) => {
            header.mss = u16::from_be_bytes([*high, *low]);
            header.options |= options::MSS;
        }
        (WINDOW_SCALE, [shift]) => {
            header.window_scale = *shift;
            header.options |= options::WINDOW_SCALE;
        }
        (SACK_PERMITTED, []) => header.options |= options::SACK_PERMITTED,
        (TIMESTAMPS, [..]) if value.len() == 8 => {
            header.timestamp = long(&value[..4]);
            header.timestamp_echo = long(&value[4..]);
            header.options |= options::TIMESTAMPS;
        }
        (SACK, [_, ..]) if value.len().is_multiple_of(8) && value.len() <= 8 * MAX_SACK_BLOCKS => {
            for (block, bytes) in side.sacks.iter_mut().zip(value.chunks_exact(8)) {
                *block = SackBlock { start: long(&bytes[..4]), end: long(&bytes[4..]) };
            }
            header.sack_count = (value.len() / 8) as u8;
        }
        (ACCURATE_ECN_0 | ACCURATE_ECN_1, _) if header.options & options::ACCURATE_ECN == 0 => {
            read_counters(kind == ACCURATE_ECN_1, value, header, side);
        }
        (FAST_OPEN, _) if value.len() <= 16 && header.options & options::FAST_OPEN == 0 => {
            side.fast_open_cookie[..value.len()].copy_from_slice(value);
            side.fast_open_bytes = value.len() as u8;
            header.options |= options::FAST_OPEN;
            header.other_option_bytes += 2 + value.len() as u8;
        }
        _ => {}
    }
}

fn read_counters(ect1_first: bool, value: &[u8], header: &mut TcpHeader, side: &mut SegmentOptions) {
    if !value.len().is_multiple_of(3) || value.len() > 9 {
        return;
    }
    let mut counters = value.chunks_exact(3).map(|bytes| long(&[0, bytes[0], bytes[1], bytes[2]]));
    let [first, ce_bytes, last] = std::array::from_fn(|_| counters.next().unwrap_or(0));
    let (ect0_bytes, ect1_bytes) = if ect1_first { (last, first) } else { (first, last) };
    let fields = (value.len() / 3) as u8;
    side.accurate_ecn = AccurateEcn { ect0_bytes, ce_bytes, ect1_bytes, fields, ect1_first };
    header.options |= options::ACCURATE_ECN;
    header.other_option_bytes += 2 + value.len() as u8;
}

/// Up to four bytes as a number in network byte order.
fn long(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
