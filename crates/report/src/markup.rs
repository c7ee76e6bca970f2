//! Escapes text for HTML and SVG. All text from records is user input and passes through [`escape`]; the rest of the
//! crate writes its own tags.

use std::fmt::Write;

/// Escapes a text for element content and for attribute values in double quotes. Replaces characters that XML 1.0
/// forbids (section 2.2: most control characters), so that an SVG is well-formed.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            // Bidirectional overrides can make a name look like a different one.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Escapes a text and converts web addresses in it into links.
pub(crate) fn escape_with_links(text: &str) -> String {
    let mut out = String::new();
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let space = &piece[word.len()..];
        let core = word.trim_end_matches(['.', ',', ';', ')', '>']).trim_start_matches(['(', '<']);
        let start = word.find(core).unwrap_or(0);
        if core.starts_with("https://") || core.starts_with("http://") {
            let (before, after) = (&word[..start], &word[start + core.len()..]);
            let core = escape(core);
            let _ = write!(out, "{}<a href=\"{core}\">{core}</a>{}", escape(before), escape(after));
        } else {
            out.push_str(&escape(word));
        }
        out.push_str(&escape(space));
    }
    out
}

/// Escapes a text and renders the inline Markdown of Fullpipe's own texts: `code`, **bold** and links. For a link, only
/// the text is shown, unless the target is a web address. A mark without its counterpart is unchanged.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        let (before, from) = rest.split_at(at);
        out.push_str(&escape_with_links(before));
        rest = match span(from, &mut out) {
            Some(after) => after,
            None => {
                // Skip a mark without a counterpart, and all following marks of the same kind: "***" does not start a
                // span.
                let mark = &from[..1];
                let after = from.trim_start_matches(mark);
                out.push_str(&escape(&from[..from.len() - after.len()]));
                after
            }
        };
    }
    out + &escape_with_links(rest)
}

/// Renders the code, bold text or link at the start of a text, and returns the rest. Returns `None` if the text does
/// not start with one of them.
fn span<'a>(text: &'a str, out: &mut String) -> Option<&'a str> {
    let closed = |opening: &str, closing: &str| {
        let (inside, after) = text.strip_prefix(opening)?.split_once(closing)?;
        let padded = inside.trim() != inside || inside.is_empty();
        (!padded).then_some((inside, after))
    };
    if let Some((code, after)) = closed("`", "`") {
        let _ = write!(out, "<code>{}</code>", escape(code));
        return Some(after);
    }
    if let Some((bold, after)) = closed("**", "**") {
        let _ = write!(out, "<strong>{}</strong>", markdown(bold));
        return Some(after);
    }
    let (words, after) = closed("[", "](")?;
    let (address, after) = after.split_once(')')?;
    if words.contains(['[', ']']) || address.contains(char::is_whitespace) {
        return None;
    }
    let web = address.starts_with("https://") || address.starts_with("http://");
    if web {
        let _ = write!(out, "<a href=\"{}\">{}</a>", escape(address), escape(words));
    } else {
        out.push_str(&markdown(words));
    }
    Some(after)
}

/// Converts a name to letters, digits and hyphens for file names and `id` attributes. The result is never empty.
pub(crate) fn slug(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().take(80) {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "plot".to_owned() } else { out.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_keeps_markup_in_a_name_as_text() {
        assert_eq!(
            escape("<script>alert('x')&\"</script>"),
            "&lt;script&gt;alert(&#39;x&#39;)&amp;&quot;&lt;/script&gt;"
        );
        assert_eq!(escape("a\u{0}b\u{1b}[31m\u{202e}"), "a\u{fffd}b\u{fffd}[31m\u{fffd}");
    }

    #[test]
    fn escape_with_links_links_web_addresses_only() {
        assert_eq!(
            escape_with_links("see (https://a.example/?a=1&b=2), javascript:alert(1)"),
            "see (<a href=\"https://a.example/?a=1&amp;b=2\">https://a.example/?a=1&amp;b=2</a>), javascript:alert(1)"
        );
        assert_eq!(
            escape_with_links("https://x\"onclick=\"alert(1)"),
            "<a href=\"https://x&quot;onclick=&quot;alert(1\">https://x&quot;onclick=&quot;alert(1</a>)"
        );
    }

    #[test]
    fn markdown_renders_code_bold_and_links() {
        for (text, html) in [
            ("**Captures** (`--pcap`) show", "<strong>Captures</strong> (<code>--pcap</code>) show"),
            ("**`a` b**, c", "<strong><code>a</code> b</strong>, c"),
            ("`**a** <b>`", "<code>**a** &lt;b&gt;</code>"),
            ("see [the *page*](docs/x.md).", "see the *page*."),
            ("[a](https://b.example/?c=1&d)", "<a href=\"https://b.example/?c=1&amp;d\">a</a>"),
            ("[https://b.example](https://b.example)", "<a href=\"https://b.example\">https://b.example</a>"),
            ("https://b.example **c**", "<a href=\"https://b.example\">https://b.example</a> <strong>c</strong>"),
            // Marks that do not start a span.
            ("2 * 3 ** 4 ` 5 [6] *** `", "2 * 3 ** 4 ` 5 [6] *** `"),
            ("a** b** **", "a** b** **"),
            ("[a](b c) [d](", "[a](b c) [d]("),
        ] {
            assert_eq!(markdown(text), html, "{text}");
        }
    }

    #[test]
    fn markdown_does_not_pass_markup_through() {
        for text in [
            "**<script>** `</code><script>` [<script>](https://x\"><script>)",
            "[a](javascript:alert(1))",
            "[a](https://x\"onclick=\"alert(1)",
        ] {
            let html = markdown(text);
            assert!(!html.contains("<script") && !html.contains("\"onclick") && !html.contains("javascript"), "{html}");
        }
    }

    #[test]
    fn slug_gives_a_safe_file_name() {
        assert_eq!(slug("../../etc/Passwd"), "etc-passwd");
        assert_eq!(slug("Throughput (UDP)"), "throughput-udp");
        assert_eq!(slug("…"), "plot");
    }
}
