//! Payload with content: bytes of a random stream, and their SHA-256 at either end.
//!
//! The digests of both ends are equal if, and only if, the transport delivered all bytes, once and in order.

use bytes::Bytes;
use fullpipe_transport::Payload;
use fullpipe_units::RandomStream;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// SHA-256 (FIPS 180-4) of a sequence of bytes.
#[derive(Clone, Default)]
pub struct Digest(Sha256);

impl Digest {
    /// Appends bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far, in hexadecimal.
    pub fn to_hex(&self) -> String {
        self.0.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_hex())
    }
}

/// Bytes of a random stream, and the digest of the bytes generated so far. The bytes do not depend on the lengths of
/// the slices passed to [`Content::fill`].
#[derive(Clone, Debug)]
pub struct Content {
    stream: RandomStream,
    drawn: [u8; 8],
    /// Number of bytes of `drawn` that have been used.
    used: usize,
    digest: Digest,
}

impl Content {
    /// Creates content from a random stream. Each drawn number gives eight bytes, the least significant first.
    pub fn new(stream: RandomStream) -> Self {
        Content { stream, drawn: [0; 8], used: 8, digest: Digest::default() }
    }

    /// Returns the content of the flow with this name in a run with this seed.
    pub fn of_flow(seed: u64, flow: &str) -> Self {
        Content::new(RandomStream::new(seed, flow, "content"))
    }

    /// Fills `bytes` with the next bytes of the content.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes.iter_mut() {
            if self.used == self.drawn.len() {
                self.drawn = self.stream.next_u64().to_le_bytes();
                self.used = 0;
            }
            *byte = self.drawn[self.used];
            self.used += 1;
        }
        self.digest.update(bytes);
    }

    /// The digest of all bytes so far.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

/// Returns the payload of the next write of an application: the next bytes of its content, or a length without content.
pub(crate) fn payload(content: &mut Option<Box<Content>>, bytes: u64) -> Payload {
    let Some(content) = content else { return Payload::Length(bytes) };
    let mut payload = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
    content.fill(&mut payload);
    Payload::Bytes(Bytes::from(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_does_not_depend_on_the_sizes_of_requests() {
        let stream = || RandomStream::new(1, "flow", "content");
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
        assert_eq!(content.digest().to_hex(), other.digest().to_hex());
        assert_eq!(whole[..8], stream().next_u64().to_le_bytes());
    }

    /// The example of one block in FIPS 180-4, "abc" (NIST, examples with intermediate values).
    #[test]
    fn digest_of_abc_is_the_published_one() {
        let mut digest = Digest::default();
        digest.update(b"a");
        digest.update(b"bc");
        assert_eq!(digest.to_hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
