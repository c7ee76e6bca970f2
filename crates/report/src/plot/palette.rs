//! The styles of curves, which combine color, dash pattern and marker shape. They are distinguishable in black and
//! white and with any color vision. The colors are those of Okabe and Ito ("Color Universal Design", 2008), without
//! yellow, which is too light for a line on white.

use crate::plot::coordinates::{pixel, point};
use std::fmt::Write;

/// The style of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// Stroke color.
    pub(crate) colour: &'static str,
    /// Dash pattern for `stroke-dasharray`; empty for a solid line.
    pub(crate) dash: &'static str,
    /// Marker shape.
    pub(crate) marker: Marker,
}

/// Marker shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    DownTriangle,
    Plus,
}

/// The colors of curves. The last three are additions for plots with more than seven curves.
const COLOURS: [&str; 10] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9", "#7b3294", "#8c6d31", "#808080"];
/// The same colors, but dark enough for small text on white (WCAG 2.1, 1.4.3: a contrast of at least 4.5).
const INKS: [&str; 10] =
    ["#005a8e", "#a84a00", "#00694c", "#9c3f74", "#000000", "#855a00", "#1b6a9c", "#7b3294", "#715726", "#5f5f5f"];
const DASHES: [&str; 5] = ["", "7 3", "2 2.5", "9 3 2 3", "5 2 1.5 2 1.5 2"];
const MARKERS: [Marker; 7] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Cross,
    Marker::DownTriangle,
    Marker::Plus,
];

/// Returns the style of curve number `index`. The first 35 styles differ in the combination of color, dash and marker.
pub(crate) fn style(index: usize) -> Style {
    Style {
        colour: COLOURS[index % COLOURS.len()],
        dash: DASHES[(index + index / COLOURS.len()) % DASHES.len()],
        marker: MARKERS[(index + index / MARKERS.len()) % MARKERS.len()],
    }
}

impl Style {
    /// Returns the color of small text for the curve.
    pub(crate) fn ink(self) -> &'static str {
        COLOURS.iter().position(|c| *c == self.colour).map_or("#222", |i| INKS[i])
    }

    /// Returns the same style without dashes, for a dense line whose peaks would be hidden by gaps.
    pub(crate) fn solid(self) -> Self {
        Self { dash: "", ..self }
    }
}

/// Draws a marker: filled for a measured value, larger and open for a published value.
pub(crate) fn marker(out: &mut String, style: Style, x: f64, y: f64, open: bool) {
    let (radius, paint) = if open {
        (5.4, format!("fill=\"none\" stroke=\"{}\" stroke-width=\"1.3\"", style.colour))
    } else {
        (3.0, format!("fill=\"{0}\" stroke=\"{0}\" stroke-width=\"0.8\"", style.colour))
    };
    let polygon = |out: &mut String, corners: &[(f64, f64)]| {
        let points: Vec<String> = corners.iter().map(|(dx, dy)| point(x + dx * radius, y + dy * radius)).collect();
        let _ = write!(out, "<polygon points=\"{}\" {paint}/>", points.join(" "));
    };
    match style.marker {
        Marker::Circle => {
            let (cx, cy) = (pixel(x), pixel(y));
            let _ = write!(out, "<circle cx=\"{cx}\" cy=\"{cy}\" r=\"{radius}\" {paint}/>");
        }
        Marker::Square => polygon(out, &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        Marker::Triangle => polygon(out, &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
        Marker::DownTriangle => polygon(out, &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]),
        Marker::Diamond => polygon(out, &[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
        Marker::Cross | Marker::Plus => {
            let arm =
                if style.marker == Marker::Cross { [(-1.0, -1.0), (1.0, 1.0)] } else { [(-1.3, 0.0), (1.3, 0.0)] };
            let other =
                if style.marker == Marker::Cross { [(-1.0, 1.0), (1.0, -1.0)] } else { [(0.0, -1.3), (0.0, 1.3)] };
            let width = if open { 1.3 } else { 2.0 };
            for [(ax, ay), (bx, by)] in [arm, other] {
                let _ = write!(
                    out,
                    "<path d=\"M{}L{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"/>",
                    point(x + ax * radius, y + ay * radius),
                    point(x + bx * radius, y + by * radius),
                    style.colour
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the relative luminance according to WCAG 2.1.
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if share <= 0.040_45 { share / 12.92 } else { fullpipe_units::math::pow((share + 0.055) / 1.055, 2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    #[test]
    fn text_colors_have_sufficient_contrast() {
        for i in 0..COLOURS.len() {
            let contrast = 1.05 / (luminance(style(i).ink()) + 0.05);
            assert!(contrast >= 4.5, "{} {contrast}", style(i).ink());
        }
    }

    #[test]
    fn styles_differ_in_more_than_color() {
        // Neighboring styles differ in dash and marker, and the first 35 are all distinct without color.
        for i in 0..34 {
            assert_ne!(style(i).dash, style(i + 1).dash);
            assert_ne!(style(i).marker, style(i + 1).marker);
        }
        let mut seen = Vec::new();
        for i in 0..35 {
            let look = (style(i).colour, style(i).dash, style(i).marker);
            assert!(!seen.contains(&look), "{i}");
            seen.push(look);
        }
    }
}
