//! Decoder of the Huffman code of HPACK and QPACK (RFC 7541 appendix B, RFC 9204 section 4.1.2).
//!
//! The code is canonical: the codes of one length are consecutive, in the order of the symbols. The lengths therefore
//! define it.

/// Number of symbols: all bytes, and the end of the string, whose code is the padding.
const SYMBOLS: usize = 257;

/// Length of the longest code in bits.
const LONGEST: usize = 30;

/// Length in bits of the code of each symbol (RFC 7541 appendix B).
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12,
    10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6,
    5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22,
    22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28,
    27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28,
    27, 27, 27, 27, 27, 26, 30,
];

/// The code, sorted by length.
struct Code {
    /// The symbols in the order of their codes.
    symbols: [u16; SYMBOLS],
    /// Number of codes of each length.
    counts: [u16; LONGEST + 1],
}

const CODE: Code = sorted();

const fn sorted() -> Code {
    let mut code = Code { symbols: [0; SYMBOLS], counts: [0; LONGEST + 1] };
    let (mut length, mut place) = (1, 0);
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                code.symbols[place] = symbol as u16;
                code.counts[length] += 1;
                place += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    code
}

/// Decodes a string; `None` if it contains the end symbol or has invalid padding (RFC 7541 section 5.2).
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(bytes.len() + bytes.len() / 2);
    let mut rest = Bits { bytes, next: 0 };
    while !rest.is_padding() {
        decoded.push(u8::try_from(rest.symbol()?).ok()?);
    }
    Some(decoded)
}

struct Bits<'a> {
    bytes: &'a [u8],
    /// Index of the next bit.
    next: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> Option<u32> {
        let byte = self.bytes.get(self.next / 8)?;
        let bit = byte >> (7 - self.next % 8) & 1;
        self.next += 1;
        Some(u32::from(bit))
    }

    /// Whether the remaining bits are padding: fewer than eight, all of them ones.
    fn is_padding(&self) -> bool {
        let left = self.bytes.len() * 8 - self.next;
        let last = self.bytes.last().copied().unwrap_or(0xff);
        left < 8 && last.trailing_ones() as usize >= left
    }

    fn symbol(&mut self) -> Option<u16> {
        // The first code of the current length, and the place of its symbol.
        let (mut first, mut place) = (0, 0);
        let mut code = 0;
        for count in &CODE.counts[1..] {
            code = code << 1 | self.bit()?;
            let count = u32::from(*count);
            if code - first < count {
                return CODE.symbols.get((place + code - first) as usize).copied();
            }
            place += count;
            first = (first + count) << 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Encodes with codes that are counted up, independently of the decoder's table.
    fn encode(text: &[u8]) -> Vec<u8> {
        let mut order: Vec<usize> = (0..SYMBOLS).collect();
        order.sort_by_key(|symbol| (LENGTHS[*symbol], *symbol));
        let mut codes = [0u32; SYMBOLS];
        let (mut code, mut length) = (0u32, 0);
        for symbol in order {
            code <<= LENGTHS[symbol] - length;
            length = LENGTHS[symbol];
            codes[symbol] = code;
            code += 1;
        }
        let bits = |symbol: usize| (0..LENGTHS[symbol]).rev().map(move |shift| (symbol, shift));
        let mut bits: Vec<u8> = text
            .iter()
            .flat_map(|byte| bits(usize::from(*byte)))
            .map(|(symbol, shift)| (codes[symbol] >> shift & 1) as u8)
            .collect();
        bits.resize(bits.len().next_multiple_of(8), 1);
        bits.chunks(8).map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | bit)).collect()
    }

    #[test]
    fn examples_of_the_rfc_are_decoded() {
        // RFC 7541 appendices C.4.1, C.4.2 and C.6.1.
        for (bytes, text) in [
            (&[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..], &b"www.example.com"[..]),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], b"no-cache"),
            (&[0x64, 0x02], b"302"),
            (&[0xae, 0xc3, 0x77, 0x1a, 0x4b], b"private"),
            (&[], b""),
        ] {
            assert_eq!(decode(bytes).as_deref(), Some(text));
        }
    }

    /// Section 5.2: padding consists of fewer than eight ones; the end symbol is an error. The codes are those of
    /// appendix B: "0" is 00000, and the end symbol has 30 ones.
    #[test]
    fn invalid_padding_and_the_end_symbol_are_rejected() {
        assert_eq!(decode(&[0b0000_0111]).as_deref(), Some(&b"0"[..]));
        for bad in [&[0b0000_0110][..], &[0b0000_0111, 0xff], &[0xff], &[0xff; 4], &[0xff; 40]] {
            assert_eq!(decode(bad), None, "{bad:x?}");
        }
    }

    proptest! {
        #[test]
        fn encoded_text_is_decoded(text in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decode(&encode(&text)), Some(text));
        }

        #[test]
        fn arbitrary_bytes_are_decoded_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(text) = decode(&bytes) {
                prop_assert_eq!(encode(&text), bytes);
            }
        }
    }
}
