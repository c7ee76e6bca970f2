//! HTTP/3 and QPACK encoding and decoding for attacks, including invalid forms.

/// Frame types (RFC 9114 section 7.2).
pub(crate) const DATA: u64 = 0x0;
pub(crate) const HEADERS: u64 = 0x1;
pub(crate) const CANCEL_PUSH: u64 = 0x3;
pub(crate) const SETTINGS: u64 = 0x4;
pub(crate) const PUSH_PROMISE: u64 = 0x5;
pub(crate) const GOAWAY: u64 = 0x7;
pub(crate) const MAX_PUSH_ID: u64 = 0xd;

/// Encodes a variable-length integer (RFC 9000 section 16) in the shortest form.
pub(crate) fn varint(value: u64) -> Vec<u8> {
    match value {
        0..=63 => vec![value as u8],
        64..=16_383 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        16_384..=0x3fff_ffff => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        _ => (value | 0xc000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

/// Encodes several variable-length integers.
pub(crate) fn varints(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| varint(*value)).collect()
}

/// Decodes a variable-length integer: the value and its length.
pub(crate) fn read_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let length = 1 << (bytes.first()? >> 6);
    let digits = bytes.get(..length)?;
    let value = digits.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    Some((value & (u64::MAX >> (64 - 8 * length + 2)), length))
}

/// Encodes a frame or a capsule: type, length, payload.
pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    [varints(&[kind, payload.len() as u64]), payload.to_vec()].concat()
}

/// Encodes an integer with a prefix after some flag bits (RFC 7541 section 5.1).
fn prefixed(flags: u8, bits: u32, value: usize, into: &mut Vec<u8>) {
    let most = (1usize << bits) - 1;
    if value < most {
        into.push(flags | value as u8);
        return;
    }
    into.push(flags | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        into.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    into.push(rest as u8);
}

/// Encodes a field section that needs no table: literal names, no Huffman code (RFC 9204 section 4.5.6).
pub(crate) fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        prefixed(0x20, 3, name.len(), &mut section);
        section.extend_from_slice(name.as_bytes());
        prefixed(0, 7, value.len(), &mut section);
        section.extend_from_slice(value.as_bytes());
    }
    section
}

/// Encodes the HEADERS frame of these fields.
pub(crate) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, &section(fields))
}

/// The fields of a valid request (RFC 9298 section 3.4).
pub(crate) fn fields(path: &str) -> Vec<(&str, &str)> {
    vec![
        (":method", "CONNECT"),
        (":protocol", "connect-udp"),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", path),
    ]
}

/// The HEADERS frame of a valid request.
pub(crate) fn request(path: &str) -> Vec<u8> {
    headers(&fields(path))
}

/// Decodes the status at the start of a field section. It is an entry of the static table, or the name of entry 24 with
/// a value, which may be Huffman-coded (RFC 9204 appendix A, RFC 7541 appendix B).
pub(crate) fn status(section: &[u8]) -> u16 {
    match section[2] {
        indexed @ 0xc0..=0xfe => match indexed & 0x3f {
            24 => 103,
            25 => 200,
            26 => 304,
            27 => 404,
            28 => 503,
            other => panic!("entry {other} of the static table is not a status"),
        },
        // From index 63 on, the six-bit prefix is full and another byte follows.
        0xff => [100, 204, 206, 302, 400, 403, 421, 425, 500][usize::from(section[3])],
        0x5f => {
            assert_eq!(section[3], 24 - 15);
            let (length, value) = (usize::from(section[4] & 0x7f), &section[5..]);
            let value = &value[..length];
            if section[4] & 0x80 == 0 { std::str::from_utf8(value).unwrap().parse().unwrap() } else { huffman(value) }
        }
        other => panic!("{other:#x} is not a status"),
    }
}

/// Decodes three decimal digits: 0 to 2 have codes of five bits, 3 to 9 codes of six bits from 011001 on.
fn huffman(bytes: &[u8]) -> u16 {
    let mut bits = bytes.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (32 - 8 * bytes.len());
    let mut number = 0;
    for _ in 0..3 {
        let (digit, length) = match bits >> 27 {
            code @ 0..=2 => (code, 5),
            _ => ((bits >> 26) - 0b01_1001 + 3, 6),
        };
        bits <<= length;
        number = number * 10 + digit as u16;
    }
    number
}
