//! A JSON writer (RFC 8259) that writes directly to a string.

use super::Milliseconds;
use std::fmt::Write as _;

/// Writes an object.
pub(super) fn object(text: &mut String, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
    text.push('{');
    fill(&mut ObjectWriter { text, empty: true });
    text.push('}');
}

fn array(text: &mut String, fill: impl FnOnce(&mut ArrayWriter<'_>)) {
    text.push('[');
    fill(&mut ArrayWriter { text, empty: true });
    text.push(']');
}

/// Writes a string with quotes. Quotes, backslashes and control characters in the string are escaped (section 7).
fn quoted(text: &mut String, value: &str) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\u{0}'..='\u{1f}' | '\u{7f}' => display(text, format_args!("\\u{:04x}", u32::from(letter))),
            letter => text.push(letter),
        }
    }
    text.push('"');
}

fn display(text: &mut String, value: impl std::fmt::Display) {
    // Writing to a `String` cannot fail.
    let _ = write!(text, "{value}");
}

/// Writes the members of an object.
#[derive(Debug)]
pub struct ObjectWriter<'a> {
    text: &'a mut String,
    empty: bool,
}

impl ObjectWriter<'_> {
    fn key(&mut self, key: &str) {
        if !std::mem::replace(&mut self.empty, false) {
            self.text.push(',');
        }
        quoted(self.text, key);
        self.text.push(':');
    }

    /// Writes a string with its key.
    pub fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        quoted(self.text, value);
    }

    /// Writes an integer with its key.
    pub fn unsigned(&mut self, key: &str, value: u64) {
        self.key(key);
        display(self.text, value);
    }

    /// Writes a number with its key. An infinity or NaN is omitted together with its key.
    pub fn number(&mut self, key: &str, value: f64) {
        if value.is_finite() {
            self.key(key);
            display(self.text, value);
        }
    }

    /// Writes a time with its key, as a decimal number of milliseconds.
    pub fn milliseconds(&mut self, key: &str, value: Milliseconds) {
        self.key(key);
        display(self.text, value);
    }

    /// Writes a Boolean with its key.
    pub fn boolean(&mut self, key: &str, value: bool) {
        self.key(key);
        display(self.text, value);
    }

    /// Writes an object with its key; `fill` writes the members of the object.
    pub fn object(&mut self, key: &str, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.key(key);
        object(self.text, fill);
    }

    /// Writes an array with its key; `fill` writes the elements of the array.
    pub fn array(&mut self, key: &str, fill: impl FnOnce(&mut ArrayWriter<'_>)) {
        self.key(key);
        array(self.text, fill);
    }
}

/// Writes the elements of an array.
#[derive(Debug)]
pub struct ArrayWriter<'a> {
    text: &'a mut String,
    empty: bool,
}

impl ArrayWriter<'_> {
    fn next(&mut self) {
        if !std::mem::replace(&mut self.empty, false) {
            self.text.push(',');
        }
    }

    /// Writes a string.
    pub fn text(&mut self, value: &str) {
        self.next();
        quoted(self.text, value);
    }

    /// Writes an integer.
    pub fn unsigned(&mut self, value: u64) {
        self.next();
        display(self.text, value);
    }

    /// Writes an object; `fill` writes its members.
    pub fn object(&mut self, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.next();
        object(self.text, fill);
    }

    /// Writes an array; `fill` writes its elements.
    pub fn array(&mut self, fill: impl FnOnce(&mut ArrayWriter<'_>)) {
        self.next();
        array(self.text, fill);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn written(fill: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
        let mut text = String::new();
        object(&mut text, fill);
        text
    }

    /// Returns the only member of an object, a number, rounded correctly. By default, serde_json does not round
    /// correctly.
    fn only_number(text: &str) -> f64 {
        let digits = text.split(':').nth(1).and_then(|rest| rest.strip_suffix('}')).expect("the object has one key");
        let read: Value = serde_json::from_str(text).expect("the text is JSON");
        assert!(read.as_object().is_some_and(|object| object.values().all(Value::is_number)), "{text}");
        digits.parse().expect("the value is a number")
    }

    #[test]
    fn written_values_are_read_back() {
        let text = written(|o| {
            o.text("quote\"", "back\\slash\n\t\u{1e}\u{0}\u{7f}é𝄞");
            o.unsigned("most", u64::MAX);
            o.number("tenth", 0.1);
            o.number("large", 1e300);
            o.number("none", f64::NAN);
            o.number("endless", f64::INFINITY);
            o.boolean("true", true);
            o.object("object", |_| {});
            o.array("array", |a| {
                a.unsigned(1);
                a.text("two");
                a.array(|inner| inner.unsigned(3));
                a.object(|inner| inner.boolean("four", false));
            });
        });
        let read: Value = serde_json::from_str(&text).expect("the text is JSON");
        let expected = json!({
            "quote\"": "back\\slash\n\t\u{1e}\u{0}\u{7f}é𝄞",
            "most": u64::MAX,
            "tenth": 0.1,
            "large": 1e300,
            "true": true,
            "object": {},
            "array": [1, "two", [3], { "four": false }],
        });
        assert_eq!(read, expected);
    }

    proptest! {
        #[test]
        fn any_text_reads_back_and_has_no_separator(value in any::<String>(), key in any::<String>()) {
            let text = written(|o| o.text(&key, &value));
            let separated = text.contains(['\u{1e}', '\n']);
            prop_assert!(!separated);
            let read: Value = serde_json::from_str(&text).expect("the text is JSON");
            prop_assert_eq!(&read[&key], &Value::from(value));
        }

        #[test]
        fn any_number_reads_back(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
            prop_assert_eq!(only_number(&written(|o| o.number("n", value))), value);
        }

        #[test]
        fn any_time_reads_back(nanoseconds in 0..1_u64 << 50) {
            // Up to 13 days: the conversion and the multiplication each have an error of at most 2^-53, together a
            // quarter of a nanosecond.
            let milliseconds = only_number(&written(|o| o.milliseconds("t", Milliseconds(nanoseconds))));
            prop_assert_eq!((milliseconds * 1e6).round() as u64, nanoseconds);
        }
    }
}
