//! Variable-length integers of QUIC (RFC 9000 section 16). The two most significant bits of the first byte give the
//! length: 1, 2, 4 or 8 bytes. Frames, capsules and HTTP datagrams use them.

use bytes::BufMut;

/// Largest number with an encoding: 2^62 - 1.
pub const MAX: u64 = (1 << 62) - 1;

/// Returns the size of the shortest encoding of `value` in bytes.
#[must_use]
pub fn length(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends the shortest encoding of `value`.
///
/// # Panics
/// If `value` exceeds [`MAX`]. Such a call is a bug, because a peer never determines the numbers that are encoded.
pub fn encode(value: u64, into: &mut impl BufMut) {
    assert!(value <= MAX, "{value} has no encoding");
    // The prefix is the base-two logarithm of the length.
    let length = length(value);
    let prefix = u64::from(length.trailing_zeros()) << (8 * length - 2);
    into.put_uint(prefix | value, length);
}

/// Parses a number at the start of `input`. Returns the value and its encoded size, or `None` if the number is
/// incomplete. Encodings longer than necessary are valid (section 16).
#[must_use]
pub fn decode(input: &[u8]) -> Option<(u64, usize)> {
    let first = *input.first()?;
    let length = 1 << (first >> 6);
    let bytes = input.get(1..length)?;
    let value = bytes.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some((value, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The examples of RFC 9000 appendix A.1.
    #[test]
    fn rfc_9000_examples_are_decoded() {
        let cases: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in cases {
            assert_eq!(decode(bytes), Some((value, bytes.len())));
        }
        for (bytes, value) in &cases[..4] {
            let mut encoded = Vec::new();
            encode(*value, &mut encoded);
            assert_eq!(&encoded, bytes);
        }
    }

    proptest! {
        #[test]
        fn encoded_numbers_are_decoded_unchanged(value in prop_oneof![0u64..20_000, 0..=MAX], tail in prop::collection::vec(any::<u8>(), 0..4)) {
            let mut bytes = Vec::new();
            encode(value, &mut bytes);
            prop_assert_eq!(bytes.len(), length(value));
            for cut in 0..bytes.len() {
                prop_assert_eq!(decode(&bytes[..cut]), None);
            }
            bytes.extend_from_slice(&tail);
            prop_assert_eq!(decode(&bytes), Some((value, length(value))));
        }

        #[test]
        fn arbitrary_bytes_are_decoded_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            if let Some((value, length)) = decode(&bytes) {
                prop_assert!(value <= MAX && length <= bytes.len());
            }
        }
    }
}
