//! Text for HTML and SVG. Everything that comes from a record is the user's text and passes through [`escape`]; the
//! rest of the crate writes its own tags.

use std::fmt::Write;

/// Escapes a text for element content and for attribute values in double quotes. Characters that XML 1.0 does not
/// allow (section 2.2: most control characters) become a replacement character, so that an SVG stays well-formed.
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
            // Bidirectional overrides could make a name show as another one.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Escapes a text and makes links of the web addresses in it.
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

/// Escapes a text and renders the little Markdown that our own texts use within a line: `code`, **bold** and links
/// (their words; an address of the web stays a link). A mark without its partner stays as it is.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*', '[']) {
        let (before, from) = rest.split_at(at);
        out.push_str(&escape_with_links(before));
        rest = match span(from, &mut out) {
            Some(after) => after,
            None => {
                // A lone mark, and all of its kind that follow: "***" begins nothing.
                let mark = &from[..1];
                let after = from.trim_start_matches(mark);
                out.push_str(&escape(&from[..from.len() - after.len()]));
                after
            }
        };
    }
    out + &escape_with_links(rest)
}

/// Renders the code, bold text or link with which a text begins, and gives what follows it; `None` if it begins with
/// none.
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

/// A name made of letters, digits and hyphens only, for file names and for `id` attributes; never empty.
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
    fn markup_in_a_name_stays_text() {
        assert_eq!(
            escape("<script>alert('x')&\"</script>"),
            "&lt;script&gt;alert(&#39;x&#39;)&amp;&quot;&lt;/script&gt;"
        );
        assert_eq!(escape("a\u{0}b\u{1b}[31m\u{202e}"), "a\u{fffd}b\u{fffd}[31m\u{fffd}");
    }

    #[test]
    fn only_web_addresses_become_links() {
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
    fn the_little_markdown_of_texts_is_rendered() {
        for (text, html) in [
            ("**Captures** (`--pcap`) show", "<strong>Captures</strong> (<code>--pcap</code>) show"),
            ("**`a` b**, c", "<strong><code>a</code> b</strong>, c"),
            ("`**a** <b>`", "<code>**a** &lt;b&gt;</code>"),
            ("see [the *page*](docs/x.md).", "see the *page*."),
            ("[a](https://b.example/?c=1&d)", "<a href=\"https://b.example/?c=1&amp;d\">a</a>"),
            ("[https://b.example](https://b.example)", "<a href=\"https://b.example\">https://b.example</a>"),
            ("https://b.example **c**", "<a href=\"https://b.example\">https://b.example</a> <strong>c</strong>"),
            // Marks that begin nothing.
            ("2 * 3 ** 4 ` 5 [6] *** `", "2 * 3 ** 4 ` 5 [6] *** `"),
            ("a** b** **", "a** b** **"),
            ("[a](b c) [d](", "[a](b c) [d]("),
        ] {
            assert_eq!(markdown(text), html, "{text}");
        }
    }

    #[test]
    fn markdown_makes_no_markup_of_its_own() {
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
    fn slugs_are_safe_file_names() {
        assert_eq!(slug("../../etc/Passwd"), "etc-passwd");
        assert_eq!(slug("Throughput (UDP)"), "throughput-udp");
        assert_eq!(slug("…"), "plot");
    }
}
