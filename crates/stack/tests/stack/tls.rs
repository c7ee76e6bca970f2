//! Real TLS with a seed. The same seed gives the same bytes, packets have the sizes of those without cryptography, and
//! they decrypt as in RFC 9001 with keys that are derived here.

use crate::path::{CLIENT, Fate, Path, SERVER, Transfer, clean};
use bytes::Bytes;
use fullpipe_stack::{Cryptography, Settings};
use fullpipe_transport::{CloseReason, Payload};
use fullpipe_units::{Duration, Instant};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey, quic};
use sha2::{Digest, Sha256};

const MS: Duration = Duration::from_millis(1);
const BOTH: [Cryptography; 2] = [Cryptography::Null, Cryptography::Tls];

fn start(cryptography: Cryptography, certificate_bytes: u64, control: &'static str, seeds: [u64; 2]) -> Transfer {
    let settings = Settings { cryptography, certificate_bytes, ..Settings::default() };
    let path = Path::new(10_000_000, MS * 5);
    Transfer::between(&settings, control, seeds, path, Payload::Length(300_000))
}

/// A transfer over a path that drops every 40th datagram of each end.
fn lossy(cryptography: Cryptography, certificate_bytes: u64, control: &'static str, seed: u64) -> Transfer {
    let mut run = start(cryptography, certificate_bytes, control, [seed; 2]);
    run.run(Instant::NEVER, &mut |_, number| -> Fate { (number % 40 != 2).then_some(Duration::ZERO) });
    assert_eq!((run.received_bytes, run.closed[CLIENT]), (300_000, Some(CloseReason::Finished)));
    run
}

#[test]
fn packets_have_the_sizes_and_times_of_those_without_cryptography() {
    // The second datagram of each end, which is part of the handshake, is lost as well.
    for (certificate_bytes, control, seed) in [(3_000, "cubic", 1), (400, "bbr3", 2), (9_001, "newreno", 3)] {
        let [null, tls] = BOTH.map(|cryptography| lossy(cryptography, certificate_bytes, control, seed));
        assert!(null.path.sizes[CLIENT].len() > 200);
        assert_eq!(null.path.sizes, tls.path.sizes);
        assert_eq!((null.completed, null.now), (tls.completed, tls.now));
        assert_ne!(null.path.digest(), tls.path.digest());
    }
}

#[test]
fn bytes_are_equal_for_equal_seeds_only() {
    let digest = |seed| lossy(Cryptography::Tls, 3_000, "bbr3", seed).path.digest();
    let first = digest(7);
    println!("digest={first}");
    assert_eq!(first, digest(7));
    assert_ne!(first, digest(8));
}

#[test]
fn bytes_are_equal_in_another_process() {
    let name = "tls::bytes_are_equal_for_equal_seeds_only";
    assert_eq!(crate::path::digest_of_another_process(name), crate::path::digest_of_another_process(name));
}

#[test]
fn ends_of_different_runs_cannot_connect() {
    let closed = BOTH.map(|cryptography| {
        let mut run = start(cryptography, 3_000, "cubic", [1, 2]);
        run.run(Instant::NEVER, &mut clean);
        (run.closed, run.received_bytes)
    });
    let finished = [Some(CloseReason::Finished); 2];
    let reset = Some(CloseReason::Reset);
    // The server's connection ends before its stream is open.
    assert_eq!(closed, [(finished, 300_000), ([reset, reset], 0)]);
}

#[test]
fn modified_packet_is_discarded_with_tls_only() {
    let mut run = start(Cryptography::Tls, 3_000, "cubic", [1; 2]);
    run.path.touched = Some((CLIENT, 30));
    run.run(Instant::NEVER, &mut clean);
    assert_eq!((run.received_bytes, run.ends[CLIENT].statistics().lost_packets), (300_000, 1));
    // Without cryptography the change is not detected.
    let mut run = start(Cryptography::Null, 3_000, "cubic", [1; 2]);
    run.path.touched = Some((CLIENT, 30));
    run.run(Instant::NEVER, &mut clean);
    assert_eq!((run.received_bytes, run.ends[CLIENT].statistics().lost_packets), (300_000, 0));
}

#[test]
fn impossible_certificate_sizes_are_rejected() {
    let [null, tls] = BOTH;
    assert_eq!(
        [0, 16_000_000, 16_000_001].map(|bytes| fullpipe_stack::certificate_size_error(null, bytes).is_some()),
        [false, false, true]
    );
    assert_eq!(
        [399, 400, 60_000, 60_001].map(|bytes| fullpipe_stack::certificate_size_error(tls, bytes).is_some()),
        [true, false, false, true]
    );
}

// Packets as an observer sees them -----------------------------------------------------------------------------------

/// RFC 2104 with SHA-256.
fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let pad = |with: u8| -> Vec<u8> { (0..64).map(|n| key.get(n).unwrap_or(&0) ^ with).collect() };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

/// RFC 8446 section 7.1, with an empty context and one block of the hash.
fn expand_label<const N: usize>(secret: &[u8], label: &str) -> [u8; N] {
    let mut text = vec![0, N as u8, 6 + label.len() as u8];
    text.extend_from_slice(b"tls13 ");
    text.extend_from_slice(label.as_bytes());
    // Empty context, and the first block.
    text.extend_from_slice(&[0, 1]);
    std::array::from_fn(|n| hmac(secret, &text)[n])
}

/// Keys of Initial packets (RFC 9001 section 5.2): key, initialization vector, header protection key.
fn initial_keys(destination: &[u8], label: &str) -> ([u8; 16], [u8; 12], [u8; 16]) {
    let salt = hex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a");
    let secret: [u8; 32] = expand_label(&hmac(&salt, destination), label);
    (expand_label(&secret, "quic key"), expand_label(&secret, "quic iv"), expand_label(&secret, "quic hp"))
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|n| u8::from_str_radix(&text[2 * n..2 * n + 2], 16).expect("the text is hexadecimal"))
        .collect()
}

/// The keys of RFC 9001 appendix A.1.
#[test]
fn initial_keys_match_the_rfc_vectors() {
    let connection = hex("8394c8f03e515708");
    let (key, vector, header) = initial_keys(&connection, "client in");
    assert_eq!(key[..], hex("1f369613dd76d5467730efcbe3b1a22d"));
    assert_eq!(vector[..], hex("fa044b2f42a3fd3b46fb255c"));
    assert_eq!(header[..], hex("9f50449e04a0e810283a1e9933adedd2"));
    let (key, vector, header) = initial_keys(&connection, "server in");
    assert_eq!(key[..], hex("cf3a5331653c364c88f0f379b6067e37"));
    assert_eq!(vector[..], hex("0ac1493ca1905853b0bba03e"));
    assert_eq!(header[..], hex("c206b8d9b9f0f37644430b490eeaa314"));
}

/// Removes a variable-length integer (RFC 9000 section 16) from the front.
fn variable(from: &mut &[u8]) -> usize {
    let length = 1 << (from[0] >> 6);
    let (bytes, rest) = from.split_at(length);
    *from = rest;
    bytes[1..].iter().fold(usize::from(bytes[0] & 0x3f), |value, byte| value * 256 + usize::from(*byte))
}

/// The frames of a datagram's first packet, an Initial packet protected with these keys.
fn initial(datagram: &Bytes, (key, vector, header): ([u8; 16], [u8; 12], [u8; 16])) -> Option<Vec<u8>> {
    let mut bytes = datagram.to_vec();
    // Long header, Initial, version 1 (RFC 9000 section 17.2.2); the fixed bit can have any value (RFC 9287).
    assert_eq!(bytes[0] & 0xb0, 0x80);
    assert_eq!(bytes[1..5], [0, 0, 0, 1]);
    let mut rest = &datagram[5..];
    for _ in 0..2 {
        rest = &rest[1 + usize::from(rest[0])..];
    }
    let token = variable(&mut rest);
    assert_eq!(token, 0, "there was no Retry");
    let length = variable(&mut rest);
    let number_at = datagram.len() - rest.len();
    let sample = &bytes[number_at + 4..number_at + 20];
    let mask = quic::HeaderProtectionKey::new(&quic::AES_128, &header).unwrap().new_mask(sample).unwrap();
    bytes[0] ^= mask[0] & 0x0f;
    let number_bytes = usize::from(bytes[0] & 3) + 1;
    let mut nonce = vector;
    for n in 0..number_bytes {
        bytes[number_at + n] ^= mask[1 + n];
        nonce[12 - number_bytes + n] ^= bytes[number_at + n];
    }
    let (head, protected) = bytes.split_at_mut(number_at + number_bytes);
    let protected = &mut protected[..length - number_bytes];
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).unwrap());
    key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(&*head), protected).ok().map(|text| text.to_vec())
}

/// The message in the CRYPTO frame at offset 0.
fn message(frames: &[u8]) -> &[u8] {
    let mut rest = frames;
    loop {
        match variable(&mut rest) {
            // PADDING and PING.
            0 | 1 => {}
            // ACK: largest, delay, range count, first range, then two values per range, and three ECN counts.
            kind @ (2 | 3) => {
                let _ = (variable(&mut rest), variable(&mut rest));
                let values = 1 + 2 * variable(&mut rest) + 3 * (kind - 2);
                for _ in 0..values {
                    let _ = variable(&mut rest);
                }
            }
            6 => {
                let (offset, length) = (variable(&mut rest), variable(&mut rest));
                assert_eq!(offset, 0);
                return &rest[..length];
            }
            other => panic!("frame type {other} is not permitted in an Initial packet"),
        }
    }
}

/// Extensions of a hello by type (RFC 8446 section 4.2).
fn extensions(mut list: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let [high, low, long, short, rest @ ..] = list {
        let (body, after) = rest.split_at(usize::from(u16::from_be_bytes([*long, *short])));
        found.push((u16::from_be_bytes([*high, *low]), body));
        list = after;
    }
    found
}

fn extension<'a>(list: &[(u16, &'a [u8])], kind: u16) -> &'a [u8] {
    list.iter().find(|(other, _)| *other == kind).map(|(_, body)| *body).expect("the hello has the extension")
}

#[test]
fn initial_packets_carry_tls_hellos() {
    let run = lossy(Cryptography::Tls, 3_000, "cubic", 1);
    let [from_client, from_server] = [CLIENT, SERVER].map(|end| &run.path.first[end][0]);
    let connection = &from_client[6..6 + usize::from(from_client[5])];

    let frames = initial(from_client, initial_keys(connection, "client in")).expect("the packet can be decrypted");
    // Type 1 and length; version, random, no session ID, one suite (AES-128-GCM with SHA-256), no compression.
    let hello = message(&frames);
    assert_eq!((hello[0], u32::from_be_bytes([0, hello[1], hello[2], hello[3]]) as usize), (1, hello.len() - 4));
    assert_eq!(hello[4..6], [3, 3]);
    assert_eq!(hello[38..45], [0, 0, 2, 0x13, 0x01, 1, 0]);
    let random = &hello[6..38];
    let of_client = extensions(&hello[47..]);
    // server_name (RFC 6066), a list with one host name; only X25519, only TLS 1.3, and the QUIC transport parameters.
    assert_eq!(extension(&of_client, 0)[2..], *b"\x00\x00\x06server");
    assert_eq!(extension(&of_client, 10), [0, 2, 0, 29]);
    assert_eq!(extension(&of_client, 43), [2, 3, 4]);
    assert!(extension(&of_client, 57).len() > 40);
    let share = extension(&of_client, 51);
    assert_eq!((share.len(), &share[..6]), (38, &[0, 36, 0, 29, 0, 32][..]));

    let frames = initial(from_server, initial_keys(connection, "server in")).expect("the packet can be decrypted");
    // The sizes listed in `null`: 90 bytes including the four of type and length.
    let hello = message(&frames);
    assert_eq!((hello.len(), hello[0]), (90, 2));
    assert_eq!(hello[38..42], [0, 0x13, 0x01, 0]);
    let of_server = extensions(&hello[44..]);
    assert_eq!(extension(&of_server, 43), [3, 4]);
    let answer = extension(&of_server, 51);
    assert_eq!((answer.len(), &answer[..4]), (36, &[0, 29, 0, 32][..]));
    assert_ne!(answer[4..], share[6..]);
    // Random values differ, within a hello and between seeds.
    assert_ne!(random, &hello[6..38]);
    let other = lossy(Cryptography::Tls, 3_000, "cubic", 2);
    let from_client = &other.path.first[CLIENT][0];
    let frames =
        initial(from_client, initial_keys(&from_client[6..14], "client in")).expect("the packet can be decrypted");
    assert_ne!(message(&frames)[6..38], *random);
    // Keys of one direction do not decrypt the other. Without cryptography, no packet can be decrypted.
    assert!(initial(from_server, initial_keys(connection, "client in")).is_none());
    let null = lossy(Cryptography::Null, 3_000, "cubic", 1);
    let from_client = &null.path.first[CLIENT][0];
    assert!(initial(from_client, initial_keys(&from_client[6..14], "client in")).is_none());
}
