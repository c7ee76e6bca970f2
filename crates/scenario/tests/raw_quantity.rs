//! Finds quantities in messages that are not readable: nanoseconds and bytes with many digits.

/// A raw quantity: at least five digits of nanoseconds, or at least six digits of bytes.
pub(crate) fn raw_quantity(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = text.get(at + digits..).unwrap_or_default();
        let is = |unit: &str| {
            let rest = rest.strip_prefix(' ').unwrap_or(rest);
            rest.strip_prefix(unit).is_some_and(|after| !after.starts_with(|c: char| c.is_ascii_alphanumeric()))
        };
        if (digits >= 5 && is("ns")) || (digits >= 6 && ["B", "byte", "bytes"].into_iter().any(is)) {
            return text.get(at..(at + digits + 6).min(text.len()));
        }
        at += digits.max(1);
    }
    None
}

#[test]
fn raw_quantity_finds_nanoseconds_and_bytes_with_many_digits() {
    for (text, raw) in [
        ("took 219797607ns", true),
        ("took 12345 ns,", true),
        ("took 1234ns", false),
        ("took 219.8 ms", false),
        ("of 1448000 bytes", true),
        ("at most 65535B", false),
        ("at least 1000000B; then", true),
        ("1000000Bits", false),
        ("from 100000 to 200000 packets", false),
    ] {
        assert_eq!(raw_quantity(text).is_some(), raw, "{text}");
    }
}
