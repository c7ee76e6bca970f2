//! Decoder of encoded field sections (RFC 9204 section 4.5) without a dynamic table: this side offers none.
//!
//! h3 decodes each section again for the program. It stores fields by name, and so loses their order and repetitions,
//! which decide whether a message is malformed.

use super::huffman;
use std::borrow::Cow;

/// A field line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldLine<'a> {
    /// The name.
    pub(super) name: Cow<'a, [u8]>,
    /// The value.
    pub(super) value: Cow<'a, [u8]>,
}

/// Error: the field section cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DecodingError;

/// Name of an entry of the static table that is neither a pseudo-header field nor the subject of a rule.
const ORDINARY: &str = "x";

/// Decodes the lines of a section in order.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Lines<'a> {
    /// Reads the prefix of a section. Its Required Insert Count is 0, and the base must not be negative (RFC 9204
    /// section 4.5.1.2).
    pub(super) fn new(section: &'a [u8]) -> Result<Lines<'a>, DecodingError> {
        let mut lines = Lines { rest: section };
        let (_, required) = lines.integer(8)?;
        let (sign, _) = lines.integer(7)?;
        if required != 0 || sign != 0 { Err(DecodingError) } else { Ok(lines) }
    }

    /// Returns the next line, or `None` at the end of the section.
    pub(super) fn next(&mut self) -> Result<Option<FieldLine<'a>>, DecodingError> {
        let Some(first) = self.rest.first() else { return Ok(None) };
        let line = match first {
            // Section 4.5.2: an entry of the static table.
            0xc0..=0xff => {
                let (name, value) = static_entry(self.integer(6)?.1)?;
                FieldLine { name: name.as_bytes().into(), value: value.as_bytes().into() }
            }
            // Section 4.5.4: a name of the static table, and a value.
            0x50..=0x5f | 0x70..=0x7f => {
                let (name, _) = static_entry(self.integer(4)?.1)?;
                FieldLine { name: name.as_bytes().into(), value: self.string(7)? }
            }
            // Section 4.5.6: a name and a value.
            0x20..=0x3f => FieldLine { name: self.string(3)?, value: self.string(7)? },
            // All others refer to the dynamic table.
            _ => return Err(DecodingError),
        };
        Ok(Some(line))
    }

    /// Decodes an integer with a prefix of this many bits (RFC 7541 section 5.1): the bits before it, and the integer.
    fn integer(&mut self, bits: u32) -> Result<(u8, u64), DecodingError> {
        let (first, rest) = self.rest.split_first().ok_or(DecodingError)?;
        self.rest = rest;
        let most = ((1u16 << bits) - 1) as u8;
        let flags = first & !most;
        let mut value = u64::from(first & most);
        if value < u64::from(most) {
            return Ok((flags, value));
        }
        // Nine groups of seven bits exceed the 62 bits that a decoder must support (RFC 9204 section 4.1.1).
        for shift in (0..63).step_by(7) {
            let (next, rest) = self.rest.split_first().ok_or(DecodingError)?;
            self.rest = rest;
            value = value.checked_add(u64::from(next & 0x7f) << shift).ok_or(DecodingError)?;
            if next & 0x80 == 0 {
                return Ok((flags, value));
            }
        }
        Err(DecodingError)
    }

    /// Decodes a string whose length has a prefix of this many bits, after the bit for the Huffman code.
    fn string(&mut self, bits: u32) -> Result<Cow<'a, [u8]>, DecodingError> {
        let (flags, length) = self.integer(bits)?;
        let length = usize::try_from(length).map_err(|_| DecodingError)?;
        let (string, rest) = self.rest.split_at_checked(length).ok_or(DecodingError)?;
        self.rest = rest;
        if flags & (1 << bits) == 0 {
            return Ok(string.into());
        }
        huffman::decode(string).map(Cow::Owned).ok_or(DecodingError)
    }
}

/// Returns name and value of an entry of the static table (RFC 9204 appendix A). Entries that no rule of messages
/// concerns have the same ordinary name.
fn static_entry(index: u64) -> Result<(&'static str, &'static str), DecodingError> {
    const METHODS: [&str; 7] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
    const STATUSES: [&str; 5] = ["103", "200", "304", "404", "503"];
    const MORE_STATUSES: [&str; 9] = ["100", "204", "206", "302", "400", "403", "421", "425", "500"];
    let at = |list: &[&'static str], first: u64| list.get((index - first) as usize).copied().unwrap_or_default();
    Ok(match index {
        0 => (":authority", ""),
        1 => (":path", "/"),
        4 => ("content-length", "0"),
        15..=21 => (":method", at(&METHODS, 15)),
        22 => (":scheme", "http"),
        23 => (":scheme", "https"),
        24..=28 => (":status", at(&STATUSES, 24)),
        44..=54 => ("content-type", ORDINARY),
        63..=71 => (":status", at(&MORE_STATUSES, 63)),
        99.. => return Err(DecodingError),
        _ => (ORDINARY, ORDINARY),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(section: &[u8]) -> Result<Vec<(String, String)>, DecodingError> {
        let mut lines = Lines::new(section)?;
        let mut read = Vec::new();
        while let Some(line) = lines.next()? {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            read.push((text(&line.name), text(&line.value)));
        }
        Ok(read)
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    #[test]
    fn each_representation_is_decoded() {
        // RFC 9204 appendix B.1: the path by the name of entry 1.
        let section = [&[0, 0, 0x51, 0x0b][..], b"/index.html"].concat();
        assert_eq!(lines(&section), Ok(vec![pair(":path", "/index.html")]));
        // Entries 15 and 71 of appendix A (0xc0 | 15; 63 in the prefix and 8), and a literal name that must not be
        // indexed.
        let section = [&[0, 0, 0xcf, 0xff, 8, 0x32][..], b"te", &[1], b"x"].concat();
        assert_eq!(lines(&section), Ok(vec![pair(":method", "CONNECT"), pair(":status", "500"), pair("te", "x")]));
        // "302" in the Huffman code (RFC 7541 appendix C.6.1), after the name of entry 24: 15 in the prefix and 9.
        assert_eq!(lines(&[0, 0, 0x5f, 9, 0x82, 0x64, 0x02]), Ok(vec![pair(":status", "302")]));
    }

    #[test]
    fn section_that_cannot_be_decoded_is_rejected() {
        for bad in [
            &[][..],
            &[0],
            // A Required Insert Count of 1, and a negative base.
            &[2, 0],
            &[0, 0x80],
            // Entries of the dynamic table, before and after the base.
            &[0, 0, 0x80],
            &[0, 0, 0x40, 0],
            &[0, 0, 0x10],
            &[0, 0, 0, 0],
            // Entry 99 of the static table.
            &[0, 0, 0xff, 36],
            // Lengths beyond the section and beyond all integers.
            &[0, 0, 0x22, b'a'],
            &[0, 0, 0x21, b'a', 2, b'b'],
            &[0, 0, 0x27, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert_eq!(lines(bad), Err(DecodingError), "{bad:x?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_decoded_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = lines(&bytes);
            let _ = lines(&[&[0, 0], &bytes[..]].concat());
        }
    }
}
