//! Bodies that need no file: the first bytes of one sequence that looks random and is always the same.
//!
//! The sequence is what SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014)
//! gives from the seed 0, each word's lowest byte first. A word follows from its number alone, so that nobody keeps any of it,
//! and whoever gets it can tell each byte that is not its own.

use bytes::Bytes;
use fullpipe_masque::http3::Body;
use std::io;

/// The longest body.
pub const MOST_BYTES: u64 = 10_000_000_000;

/// Bytes made at a time.
const PIECE: u64 = 64 << 10;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// The length of the body at a path: N of `/bytes/N`, up to [`MOST_BYTES`].
#[must_use]
pub fn length_at(path: &str) -> Option<u64> {
    let number = path.strip_prefix("/bytes/")?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|length| is_number && *length <= MOST_BYTES)
}

fn word(number: u64) -> [u8; WORD] {
    let state = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_le_bytes()
}

/// The bytes of the sequence from a position on.
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

/// A body on its way.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    length: u64,
    at: u64,
}

impl Generated {
    pub(crate) fn new(length: u64) -> Generated {
        Generated { length, at: 0 }
    }
}

impl Body for Generated {
    fn length(&self) -> u64 {
        self.length
    }

    fn next(&mut self) -> io::Result<Bytes> {
        let mut piece = vec![0; PIECE.min(self.length - self.at) as usize];
        fill(self.at, &mut piece);
        self.at += piece.len() as u64;
        Ok(piece.into())
    }
}

/// Looks whether what comes is such a body.
#[derive(Clone, Debug)]
pub struct Check {
    length: u64,
    at: u64,
    /// The first byte that is not as it should be.
    wrong: Option<u64>,
}

impl Check {
    /// A body of this length is expected.
    #[must_use]
    pub fn new(length: u64) -> Check {
        Check { length, at: 0, wrong: None }
    }

    /// The next piece has come.
    pub fn add(&mut self, piece: &[u8]) {
        if self.wrong.is_none() {
            let mut expected = vec![0; piece.len()];
            fill(self.at, &mut expected);
            let differs = piece.iter().zip(&expected).position(|(came, expected)| came != expected);
            self.wrong = differs.map(|place| self.at + place as u64);
        }
        self.at += piece.len() as u64;
    }

    /// Whether all of it has come, and nothing else; if not, why, as a sentence.
    ///
    /// # Errors
    /// If it has not.
    pub fn finish(&self) -> Result<(), String> {
        match self.wrong {
            Some(place) => Err(format!("the body is not the one asked for: byte {place} (from 0) is another")),
            None if self.at != self.length => {
                Err(format!("the body is not the one asked for: it has {} bytes, not {}", self.at, self.length))
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
        let mut body = Generated::new(length);
        let mut all = Vec::new();
        loop {
            match body.next().unwrap() {
                piece if piece.is_empty() => return all,
                piece => all.extend_from_slice(&piece),
            }
        }
    }

    /// The first outputs of SplitMix64 from the seed 0, as its authors' and everybody's implementations give them.
    #[test]
    fn the_sequence_is_splitmix64_of_zero() {
        let words = [0xe220_a839_7b1d_cdaf_u64, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f, 0xf88b_b8a8_724c_81ec];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(body(32), bytes);
        assert_eq!(body(13), bytes[..13]);
    }

    #[test]
    fn paths_have_a_number_and_nothing_else() {
        for (path, length) in [("/bytes/0", 0), ("/bytes/100000000", 100_000_000), ("/bytes/10000000000", MOST_BYTES)] {
            assert_eq!(length_at(path), Some(length));
        }
        for path in ["/bytes/", "/bytes/10000000001", "/bytes/+5", "/bytes/-1", "/bytes/1/2", "/byte/1", "bytes/1"] {
            assert_eq!(length_at(path), None, "{path}");
        }
    }

    #[test]
    fn a_body_longer_than_a_piece_goes_on_where_the_piece_ended() {
        let long = body(2 * PIECE + 5);
        assert_eq!(long.len() as u64, 2 * PIECE + 5);
        assert_eq!(long[..100], body(100));
        assert!(long[..PIECE as usize] != long[PIECE as usize..2 * PIECE as usize]);
    }

    proptest! {
        #[test]
        fn a_body_is_recognised_however_it_comes(length in 0u64..400, cuts in prop::collection::vec(1usize..40, 0..20)) {
            let body = body(length);
            let (mut check, mut rest) = (Check::new(length), &body[..]);
            for cut in cuts {
                let (piece, others) = rest.split_at(cut.min(rest.len()));
                check.add(piece);
                rest = others;
            }
            check.add(rest);
            prop_assert_eq!(check.finish(), Ok(()));
        }

        #[test]
        fn a_single_bit_is_noticed_and_told_where(length in 1u64..400, place in any::<prop::sample::Index>(), bit in 0u8..8) {
            let mut body = body(length);
            let place = place.index(body.len());
            body[place] ^= 1 << bit;
            let mut check = Check::new(length);
            let (first, second) = body.split_at(body.len() / 3);
            check.add(first);
            check.add(second);
            prop_assert_eq!(check.finish(), Err(format!("the body is not the one asked for: byte {place} (from 0) is another")));
        }
    }

    #[test]
    fn too_much_and_too_little_is_told() {
        for (length, came) in [(10, 9), (10, 11), (1, 0)] {
            let mut check = Check::new(length);
            check.add(&body(came));
            let told = format!("the body is not the one asked for: it has {came} bytes, not {length}");
            assert_eq!(check.finish(), Err(told));
        }
    }
}
