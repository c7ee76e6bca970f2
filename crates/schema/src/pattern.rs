//! Patterns over names, in which `*` matches any number of characters and `?` one character; and the natural order of
//! names, in which `left2` precedes `left10`.

use std::cmp::Ordering;

/// Returns whether a text is a pattern: it contains `*` or `?`.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Returns whether `pattern` matches all of `name`. The function allocates no memory. Its running time is at most
/// proportional to the product of both lengths.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // The position of the most recent star, and the end of the characters that it matches so far.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            retry = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == b'?' || pattern[p] == name[n]) {
            p += 1;
            n += 1;
        } else if let Some((star, taken)) = retry {
            retry = Some((star, taken + 1));
            p = star + 1;
            n = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Compares names in natural order: runs of digits are compared as numbers.
pub fn compare_natural(a: &str, b: &str) -> Ordering {
    let (mut rest_a, mut rest_b) = (a, b);
    loop {
        let (piece_a, digits_a) = piece(rest_a);
        let (piece_b, digits_b) = piece(rest_b);
        let order = if digits_a && digits_b {
            let (number_a, number_b) = (piece_a.trim_start_matches('0'), piece_b.trim_start_matches('0'));
            number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b))
        } else {
            piece_a.cmp(piece_b)
        };
        if order.is_ne() {
            return order;
        }
        if piece_a.is_empty() {
            // The names can differ only in leading zeros here.
            return a.cmp(b);
        }
        rest_a = &rest_a[piece_a.len()..];
        rest_b = &rest_b[piece_b.len()..];
    }
}

/// Returns the longest prefix of digits only or of non-digits only, and whether it consists of digits.
fn piece(text: &str) -> (&str, bool) {
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    (&text[..end], digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pattern_matches_whole_names_only() {
        for (pattern, name, expected) in [
            ("left*", "left1", true),
            ("left*", "left", true),
            ("left*", "aleft1", false),
            ("*1", "left1", true),
            ("*1", "left12", false),
            ("l*t?", "left12", false),
            ("l*t??", "left12", true),
            ("*", "anything", true),
            ("", "", true),
            ("", "a", false),
            ("**a**", "bab", true),
            ("a*b*c", "aXbYbc", true),
            ("a*b*c", "acb", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn natural_order_compares_runs_of_digits_as_numbers() {
        let mut names = vec!["left10", "left2", "left", "left1", "leg1", "left02", "a", "left1b", "left1a"];
        names.sort_by(|a, b| compare_natural(a, b));
        assert_eq!(names, ["a", "left", "left1", "left1a", "left1b", "left02", "left2", "left10", "leg1"]);
    }

    /// Matches by the recursive definition, as a reference.
    fn slow(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|n| slow(rest, &name[n..])),
            Some((b'?', rest)) => name.split_first().is_some_and(|(_, name)| slow(rest, name)),
            Some((c, rest)) => name.split_first().is_some_and(|(d, name)| c == d && slow(rest, name)),
        }
    }

    proptest! {
        #[test]
        fn matches_agrees_with_the_recursive_definition(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            prop_assert_eq!(matches(&pattern, &name), slow(pattern.as_bytes(), name.as_bytes()));
        }

        #[test]
        fn natural_order_is_a_total_order(a in "[a01]{0,6}", b in "[a01]{0,6}", c in "[a01]{0,6}") {
            prop_assert_eq!(compare_natural(&a, &b), compare_natural(&b, &a).reverse());
            prop_assert_eq!(compare_natural(&a, &b).is_eq(), a == b);
            if compare_natural(&a, &b).is_le() && compare_natural(&b, &c).is_le() {
                prop_assert!(compare_natural(&a, &c).is_le());
            }
        }
    }
}
