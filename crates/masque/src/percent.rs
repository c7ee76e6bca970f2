//! Percent-encoding (RFC 3986 section 2.1) for the simple expansion of URI templates. It encodes all characters except
//! the unreserved ones (RFC 6570 section 3.2.2), so the colons of an IPv6 address become `%3A`.

/// Appends `text`, and percent-encodes all characters except the unreserved ones.
pub fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if is_unreserved(byte) {
            into.push(char::from(byte));
        } else {
            let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
            into.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// Decodes percent-encoded text. Returns `None` if a percent sign is not followed by two hexadecimal digits, or if the
/// decoded bytes are not UTF-8.
#[must_use]
pub fn decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push((high * 16 + low) as u8);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

/// Unreserved characters of RFC 3986 section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn colons_are_encoded_and_bad_sequences_rejected() {
        let mut text = String::new();
        encode("2001:db8::42 ~", &mut text);
        assert_eq!(text, "2001%3Adb8%3A%3A42%20~");
        assert_eq!(decode("2001%3adb8%3A%3A42%20~").as_deref(), Some("2001:db8::42 ~"));
        for bad in ["%", "%4", "%zz", "a%+1", "%ff", "%c3"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn encoded_text_is_decoded_unchanged(text in any::<String>()) {
            let mut encoded = String::new();
            encode(&text, &mut encoded);
            prop_assert!(encoded.bytes().all(|byte| is_unreserved(byte) || byte == b'%'));
            prop_assert_eq!(decode(&encoded), Some(text));
        }

        #[test]
        fn arbitrary_text_is_decoded_or_rejected(text in any::<String>()) {
            let _ = decode(&text);
        }
    }
}
