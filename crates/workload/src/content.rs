//! Payload whose content matters: bytes of a random stream, and their SHA-256 at either end.
//!
//! For checks that a transport delivers what was sent, all of it, once and in order: the digests of both ends are equal then,
//! and otherwise not.

use fullpipe_units::Stream;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// SHA-256 (FIPS 180-4) of what passes by.
#[derive(Clone, Default)]
pub struct Digest(Sha256);

impl Digest {
    /// These bytes come next.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Of all so far, in hexadecimal.
    pub fn text(&self) -> String {
        self.0.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text())
    }
}

/// Bytes of a random stream, and the digest of those made so far. How many are asked for at a time decides nothing.
#[derive(Clone, Debug)]
pub struct Content {
    stream: Stream,
    drawn: [u8; 8],
    /// How many of `drawn` have been used.
    used: usize,
    digest: Digest,
}

impl Content {
    /// The bytes of a stream: each draw's eight, the lowest first.
    pub fn new(stream: Stream) -> Self {
        Content { stream, drawn: [0; 8], used: 8, digest: Digest::default() }
    }

    /// What a flow of this name sends in a run with this seed.
    pub fn of_flow(seed: u64, flow: &str) -> Self {
        Content::new(Stream::new(seed, flow, "content"))
    }

    /// Makes the next bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes.iter_mut() {
            if self.used == self.drawn.len() {
                self.drawn = self.stream.bits().to_le_bytes();
                self.used = 0;
            }
            *byte = self.drawn[self.used];
            self.used += 1;
        }
        self.digest.update(bytes);
    }

    /// Of all bytes so far.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_decide_nothing() {
        let stream = || Stream::new(1, "flow", "content");
        let mut whole = [0; 1000];
        let mut content = Content::new(stream());
        content.fill(&mut whole);
        let mut pieces = Vec::new();
        let mut other = Content::new(stream());
        for length in [1, 7, 8, 9, 300, 675] {
            let mut piece = vec![0; length];
            other.fill(&mut piece);
            pieces.extend(piece);
        }
        assert_eq!(pieces, whole);
        assert_eq!(content.digest().text(), other.digest().text());
        assert_eq!(whole[..8], stream().bits().to_le_bytes());
    }

    /// FIPS 180-4's example of one block, "abc" (NIST, examples with intermediate values).
    #[test]
    fn a_published_digest() {
        let mut digest = Digest::default();
        digest.update(b"a");
        digest.update(b"bc");
        assert_eq!(digest.text(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
