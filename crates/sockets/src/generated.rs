//! Response bodies without files: prefixes of one fixed pseudorandom sequence.
//!
//! The sequence is the output of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
//! OOPSLA 2014) for the seed 0, each word in little-endian order. A word depends only on its index, so nothing is
//! stored, and a receiver can check every byte.

use bytes::Bytes;
use fullpipe_masque::http3::Body;
use std::io;

/// Maximum length of a generated body in bytes.
pub const MAX_BODY_BYTES: u64 = 10_000_000_000;

/// Bytes generated at a time.
const PIECE: u64 = 64 << 10;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Length in bytes of the body at the path `/bytes/N`: N. `None` for any other path, or if N exceeds
/// [`MAX_BODY_BYTES`].
#[must_use]
pub fn body_length(path: &str) -> Option<u64> {
    let number = path.strip_prefix("/bytes/")?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|length| is_number && *length <= MAX_BODY_BYTES)
}

fn word(number: u64) -> [u8; WORD] {
    let state = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_le_bytes()
}

/// Fills `piece` with the sequence from byte `position` on.
fn fill(position: u64, piece: &mut [u8]) {
    let (mut number, skipped) = (position / WORD as u64, (position % WORD as u64) as usize);
    let (begun, whole) = piece.split_at_mut(((WORD - skipped) % WORD).min(piece.len()));
    if skipped > 0 {
        begun.copy_from_slice(&word(number)[skipped..][..begun.len()]);
        number += 1;
    }
    for bytes in whole.chunks_mut(WORD) {
        bytes.copy_from_slice(&word(number)[..bytes.len()]);
        number += 1;
    }
}

/// A body that is being sent.
#[derive(Clone, Debug)]
pub(crate) struct GeneratedBody {
    length: u64,
    at: u64,
}

impl GeneratedBody {
    pub(crate) fn new(length: u64) -> GeneratedBody {
        GeneratedBody { length, at: 0 }
    }
}

impl Body for GeneratedBody {
    fn length(&self) -> u64 {
        self.length
    }

    fn next_chunk(&mut self) -> io::Result<Bytes> {
        let mut piece = vec![0; PIECE.min(self.length - self.at) as usize];
        fill(self.at, &mut piece);
        self.at += piece.len() as u64;
        Ok(piece.into())
    }
}

/// Verifier that compares received bytes with a generated body.
#[derive(Clone, Debug)]
pub struct BodyVerifier {
    length: u64,
    at: u64,
    /// Position of the first wrong byte.
    wrong: Option<u64>,
}

impl BodyVerifier {
    /// Creates a verifier for a body of `length` bytes.
    #[must_use]
    pub fn new(length: u64) -> BodyVerifier {
        BodyVerifier { length, at: 0, wrong: None }
    }

    /// Checks the next piece of the body.
    pub fn update(&mut self, piece: &[u8]) {
        if self.wrong.is_none() {
            let mut expected = vec![0; piece.len()];
            fill(self.at, &mut expected);
            let differs = piece.iter().zip(&expected).position(|(came, expected)| came != expected);
            self.wrong = differs.map(|place| self.at + place as u64);
        }
        self.at += piece.len() as u64;
    }

    /// Checks that all received pieces together equal the body.
    ///
    /// # Errors
    /// Returns a sentence that describes the first difference.
    pub fn finish(&self) -> Result<(), String> {
        match self.wrong {
            Some(place) => {
                Err(format!("the body differs from the requested sequence: the first wrong byte is at offset {place}"))
            }
            None if self.at != self.length => {
                Err(format!("the body has {} bytes; expected {} bytes", self.at, self.length))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body(length: u64) -> Vec<u8> {
        let mut body = GeneratedBody::new(length);
        let mut all = Vec::new();
        loop {
            match body.next_chunk().unwrap() {
                piece if piece.is_empty() => return all,
                piece => all.extend_from_slice(&piece),
            }
        }
    }

    /// The first outputs of SplitMix64 for the seed 0, as published by its authors and reproduced by other
    /// implementations.
    #[test]
    fn sequence_is_splitmix64_with_seed_zero() {
        let words = [0xe220_a839_7b1d_cdaf_u64, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f, 0xf88b_b8a8_724c_81ec];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(body(32), bytes);
        assert_eq!(body(13), bytes[..13]);
    }

    #[test]
    fn path_with_anything_but_a_number_is_rejected() {
        for (path, length) in
            [("/bytes/0", 0), ("/bytes/100000000", 100_000_000), ("/bytes/10000000000", MAX_BODY_BYTES)]
        {
            assert_eq!(body_length(path), Some(length));
        }
        for path in ["/bytes/", "/bytes/10000000001", "/bytes/+5", "/bytes/-1", "/bytes/1/2", "/byte/1", "bytes/1"] {
            assert_eq!(body_length(path), None, "{path}");
        }
    }

    #[test]
    fn body_longer_than_a_piece_continues_after_the_piece() {
        let long = body(2 * PIECE + 5);
        assert_eq!(long.len() as u64, 2 * PIECE + 5);
        assert_eq!(long[..100], body(100));
        assert!(long[..PIECE as usize] != long[PIECE as usize..2 * PIECE as usize]);
    }

    proptest! {
        #[test]
        fn correct_body_is_accepted_for_any_split(length in 0u64..400, cuts in prop::collection::vec(1usize..40, 0..20)) {
            let body = body(length);
            let (mut check, mut rest) = (BodyVerifier::new(length), &body[..]);
            for cut in cuts {
                let (piece, others) = rest.split_at(cut.min(rest.len()));
                check.update(piece);
                rest = others;
            }
            check.update(rest);
            prop_assert_eq!(check.finish(), Ok(()));
        }

        #[test]
        fn wrong_bit_is_detected_with_its_position(length in 1u64..400, place in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut body = body(length);
            let place = place.index(body.len());
            body[place] ^= 1 << bit;
            let mut check = BodyVerifier::new(length);
            let (first, second) = body.split_at(body.len() / 3);
            check.update(first);
            check.update(second);
            prop_assert_eq!(check.finish(), Err(format!("the body differs from the requested sequence: the first wrong byte is at offset {place}")));
        }
    }

    #[test]
    fn too_long_and_too_short_bodies_are_reported() {
        for (length, came) in [(10, 9), (10, 11), (1, 0)] {
            let mut check = BodyVerifier::new(length);
            check.update(&body(came));
            let told = format!("the body has {came} bytes; expected {length} bytes");
            assert_eq!(check.finish(), Err(told));
        }
    }
}
