//! The SVG elements that all plots use.

use crate::markup::escape;
use crate::plot::coordinates::{pixel, point};
use crate::plot::palette::Style;
use std::fmt::Write;

/// The font of all plots. In a picture of 480 units, 13 units are 7 points in a column of 88 mm.
pub(crate) const FONT: &str = "system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif";
/// Default font size.
pub(crate) const TEXT: f64 = 13.0;

/// Draws a straight line.
pub(crate) fn line(out: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
    let _ = write!(
        out,
        "<path d=\"M{}L{}\" stroke=\"{colour}\" stroke-width=\"{width}\" fill=\"none\"/>",
        point(from.0, from.1),
        point(to.0, to.1)
    );
}

/// Draws a curve through points, dashed or solid.
pub(crate) fn curve(out: &mut String, points: &[(f64, f64)], colour: &str, dash: &str, width: f64) {
    path(
        out,
        points,
        "",
        dash,
        &format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\""),
    );
}

/// Draws a closed line, dashed or solid. Its fill is so light that marks below it are visible.
pub(crate) fn outline(out: &mut String, points: &[(f64, f64)], colour: &str, dash: &str, width: f64) {
    path(
        out,
        points,
        "Z",
        dash,
        &format!("fill=\"{colour}\" fill-opacity=\"0.07\" stroke=\"{colour}\" stroke-width=\"{width}\""),
    );
}

/// Draws points connected by straight lines, followed by `end`. Draws nothing for fewer than two points.
fn path(out: &mut String, points: &[(f64, f64)], end: &str, dash: &str, look: &str) {
    if points.len() < 2 {
        return;
    }
    out.push_str("<path d=\"M");
    for (i, (x, y)) in points.iter().enumerate() {
        if i > 0 {
            out.push('L');
        }
        out.push_str(&point(*x, *y));
    }
    let _ = write!(out, "{end}\" {look}");
    if !dash.is_empty() {
        let _ = write!(out, " stroke-dasharray=\"{dash}\"");
    }
    out.push_str("/>");
}

/// Draws an interval around a point: a bar with caps.
pub(crate) fn interval(out: &mut String, x: f64, low: f64, high: f64, colour: &str) {
    let _ = write!(
        out,
        "<path d=\"M{}V{}M{}H{}M{}H{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.1\"/>",
        point(x, low),
        pixel(high),
        point(x - 3.5, low),
        pixel(x + 3.5),
        point(x - 3.5, high),
        pixel(x + 3.5)
    );
}

/// Draws a bar with an outline and one of six fills: solid, hatched in one direction, hatched in the other, empty,
/// horizontal lines, crossed. Hatching consists of lines, because some SVG viewers do not support patterns.
pub(crate) fn bar(out: &mut String, low: (f64, f64), high: (f64, f64), style: Style, pattern: usize) {
    let ((left, top), (right, bottom)) = (low, high);
    // The solid fill is so light that an interval and a published value are visible on it.
    let (fill, opacity) = if pattern.is_multiple_of(6) { (style.colour, 0.55) } else { ("#fff", 1.0) };
    let _ = write!(
        out,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{fill}\" fill-opacity=\"{opacity}\" stroke=\"{}\" stroke-width=\"1.3\"/>",
        pixel(left),
        pixel(top),
        pixel(right - left),
        pixel((bottom - top).max(0.0)),
        style.colour
    );
    let (up, down, level) = match pattern % 6 {
        1 => (true, false, false),
        2 => (false, true, false),
        4 => (false, false, true),
        5 => (true, true, false),
        _ => (false, false, false),
    };
    let (width, height) = (right - left, bottom - top);
    let mut hatch = |from: (f64, f64), to: (f64, f64)| line(out, from, to, style.colour, 1.0);
    let mut offset = 5.0;
    while offset < width + height && offset < 2000.0 {
        // The diagonal starts at the left edge, `offset` below the top, and is clipped at the edges.
        let start = (left + (offset - height).max(0.0), top + offset.min(height));
        let end = (left + offset.min(width), top + (offset - width).max(0.0));
        let mirror = |(x, y): (f64, f64)| (left + right - x, y);
        if up {
            hatch(start, end);
        }
        if down {
            hatch(mirror(start), mirror(end));
        }
        if level && offset < height {
            hatch((left, bottom - offset), (right, bottom - offset));
        }
        offset += 5.0;
    }
}

/// The position of the reference point of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Draws a text, optionally rotated by `turn` degrees around its reference point.
pub(crate) fn text(out: &mut String, at: (f64, f64), anchor: Anchor, turn: f64, words: &str) {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let _ = write!(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\"", pixel(at.0), pixel(at.1));
    if turn != 0.0 {
        let _ = write!(out, " transform=\"rotate({} {} {})\"", pixel(turn), pixel(at.0), pixel(at.1));
    }
    let _ = write!(out, ">{}</text>", escape(words));
}

/// Draws a text of another size with a white outline as its background. It begins at a position and is vertically
/// centered.
pub(crate) fn small_text(out: &mut String, at: (f64, f64), size: f64, ink: &str, words: &str) {
    let (x, y, words) = (pixel(at.0), pixel(at.1 + size * 0.35), escape(words));
    // The text is written twice, because some SVG viewers cannot paint a stroke below the fill.
    let ground = "fill=\"#fff\" stroke=\"#fff\" stroke-width=\"2.5\" stroke-linejoin=\"round\" aria-hidden=\"true\"";
    let _ = write!(out, "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" {ground}>{words}</text>");
    let _ = write!(out, "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{ink}\">{words}</text>");
}

/// Returns the approximate width of a text, to reserve space. It is based on the wider of the common sans-serif fonts.
pub(crate) fn text_width(words: &str) -> f64 {
    let em: f64 = words
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' | '\u{202f}' => 0.3,
            'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | ' ' | '-' => 0.38,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.97,
            '⁰'..='⁹' | '⁻' | '¹' | '²' | '³' => 0.42,
            'A'..='Z' => 0.7,
            c if c.is_ascii() => 0.63,
            '−' | '±' | '×' => 0.84,
            // East Asian characters are as wide as they are high.
            c if c > '\u{2e80}' => 1.0,
            _ => 0.65,
        })
        .sum();
    em * TEXT
}

/// Shortens a text that is wider than `room`, and adds an ellipsis.
pub(crate) fn fit(words: &str, room: f64) -> String {
    if text_width(words) <= room {
        return words.to_owned();
    }
    let mut out = String::new();
    for c in words.chars() {
        out.push(c);
        if text_width(&out) + TEXT > room {
            break;
        }
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fit_shortens_long_text_with_an_ellipsis() {
        assert_eq!(fit("short", 100.0), "short");
        let cut = fit(&"n".repeat(500), 100.0);
        assert!(cut.ends_with('…') && text_width(&cut) < 120.0, "{cut}");
    }
}
