//! The frame of every plot: axes with ticks and titles, grid, legend, and the mapping from values to pixels. The
//! picture is 480 units wide, which is the width of one column of a paper. Its height increases with the legend and
//! with rotated labels. Axis titles contain the unit. The caption is not part of the picture; the paper or the report
//! adds it.

use crate::markup::escape;
use crate::plot::coordinates::{pixel, point};
use crate::plot::label::{Area, Label, SIZE, place};
use crate::plot::palette::{Style, marker};
use crate::plot::shape::{Anchor, FONT, TEXT, bar, curve, fit, interval, line, outline, small_text, text, text_width};
use crate::plot::ticks::{RangeEnds, Tick, Ticks, at_values, linear, logarithmic};
use fullpipe_units::math::log10;
use std::fmt::Write;

const WIDTH: f64 = 480.0;
const PLOT_HEIGHT: f64 = 250.0;
/// The margin of clipping, so that marks at a limit are completely visible, such as an index of 1 on an axis that ends
/// at 1.
const CLIP_MARGIN: f64 = 4.0;
/// The height of the plot area of a panel, if several panels are stacked.
const PANEL_HEIGHT: f64 = 64.0;
const INK: &str = "#222";
const GRID: &str = "#e4e4e4";
const LEGEND_ROW: f64 = 19.0;
const LEGEND_SAMPLE: f64 = 30.0;

/// The mapping of values to positions on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AxisScale {
    /// Linear.
    Linear(RangeEnds),
    /// Logarithmic; values must be above zero.
    Log,
    /// Names at equal distances; the name with index i is at the value i.
    Names(Vec<String>),
    /// A tick at each of a few ascending values, on a logarithmic (all values above zero) or a linear scale.
    Values {
        /// The positions of the ticks.
        values: Vec<f64>,
        /// Whether the scale is logarithmic.
        log: bool,
    },
}

/// The properties of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// Title with unit.
    pub(crate) title: String,
    /// Scale.
    pub(crate) scale: AxisScale,
    /// Smallest and largest value on the axis.
    pub(crate) extent: ValueRange,
    /// Whether the direction of the axis is reversed.
    pub(crate) reversed: bool,
}

impl Axis {
    /// Creates an axis of names.
    pub(crate) fn names(title: String, names: Vec<String>) -> Self {
        Self { title, scale: AxisScale::Names(names), extent: ValueRange { low: 0.0, high: 0.0 }, reversed: false }
    }
}

/// Smallest and largest of several values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueRange {
    /// Smallest.
    pub(crate) low: f64,
    /// Largest.
    pub(crate) high: f64,
}

impl ValueRange {
    /// Returns the extent of values; `None` if there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        values.into_iter().fold(None, |extent: Option<Self>, v| {
            Some(extent.map_or(Self { low: v, high: v }, |e| Self { low: e.low.min(v), high: e.high.max(v) }))
        })
    }

    /// Returns the range extended to zero, so that lengths are comparable.
    pub(crate) fn with_zero(self) -> Self {
        Self { low: self.low.min(0.0), high: self.high.max(0.0) }
    }

    /// Returns the largest absolute value.
    pub(crate) fn size(self) -> f64 {
        self.low.abs().max(self.high.abs())
    }
}

/// An entry of the legend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LegendEntry {
    /// The text.
    pub(crate) label: String,
    /// The mark that the entry explains.
    pub(crate) key: LegendKey,
}

/// The mark of a legend entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LegendKey {
    /// A curve, with or without markers.
    Curve(Style, Markers),
    /// Open markers without a line.
    Open(Style),
    /// A bar with this pattern number.
    Bar(Style, usize),
}

/// The markers of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Markers {
    /// Line and markers.
    OnLine,
    /// Only the line.
    None,
    /// Markers without a line.
    Only,
}

/// The frame of a plot, into which data are drawn.
#[derive(Debug)]
pub(crate) struct Frame {
    x: Mapping,
    y: Mapping,
    legend: Vec<LegendEntry>,
    body: String,
    /// Invisible areas with tooltips.
    hints: String,
    /// Labels of points that have no position yet.
    labels: Vec<Label>,
    /// Left, right, top and bottom of the plot area.
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    titles: (String, String),
    /// Whether the names at the horizontal axis are rotated.
    turned: bool,
    height: f64,
    clip: bool,
    /// The role of the frame, which determines the parts of the axes that are drawn.
    part: Part,
}

/// The role of a frame: a complete picture, or a panel of a stack with a common horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A plot without other panels.
    Whole,
    /// A panel above another one.
    Upper,
    /// The lowest panel, which has the labels of the horizontal axis.
    Lowest,
}

#[derive(Debug)]
struct Mapping {
    log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    ticks: Vec<Tick>,
    names: bool,
}

impl Mapping {
    /// Creates an axis with about `wanted` steps. Its position is set later.
    fn new(axis: &Axis, wanted: u32) -> Self {
        let Ticks { low, high, ticks } = match &axis.scale {
            AxisScale::Linear(ends) => linear(axis.extent.low, axis.extent.high, wanted, *ends),
            AxisScale::Log => logarithmic(axis.extent.low, axis.extent.high),
            AxisScale::Names(names) => {
                let ticks = names.iter().enumerate().map(|(i, n)| Tick { value: i as f64, label: n.clone() }).collect();
                Ticks { low: -0.5, high: names.len().max(1) as f64 - 0.5, ticks }
            }
            AxisScale::Values { values, log } => at_values(values, axis.extent.low, axis.extent.high, *log),
        };
        let names = matches!(axis.scale, AxisScale::Names(_));
        let log = matches!(axis.scale, AxisScale::Log | AxisScale::Values { log: true, .. });
        Mapping { log, low, high, from: 0.0, to: 0.0, ticks, names }
    }

    /// Returns the width of the widest label.
    fn widest_label(&self) -> f64 {
        self.ticks.iter().map(|t| text_width(&t.label)).fold(0.0, f64::max).min(150.0)
    }

    fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            log10(value / self.low) / log10(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }
}

impl Frame {
    /// Creates a frame and positions its axes and legend.
    pub(crate) fn new(x_axis: &Axis, y_axis: &Axis, legend: Vec<LegendEntry>) -> Self {
        Self::part(x_axis, y_axis, legend, Part::Whole)
    }

    /// Creates the frame of a picture or of a panel.
    pub(crate) fn part(x_axis: &Axis, y_axis: &Axis, legend: Vec<LegendEntry>, part: Part) -> Self {
        let (plot_height, steps) = if part == Part::Whole { (PLOT_HEIGHT, 5) } else { (PANEL_HEIGHT, 2) };
        let (mut x, mut y) = (Mapping::new(x_axis, 6), Mapping::new(y_axis, steps));
        let left = (TEXT + 10.0 + y.widest_label() + 12.0).max(48.0);
        let mut labelled = x.ticks.iter().filter(|t| !t.label.is_empty());
        let last_label = if x_axis.reversed { labelled.next() } else { labelled.next_back() };
        let last_label = last_label.map_or(0.0, |t| text_width(&t.label));
        let right = if x.names { WIDTH - 10.0 } else { WIDTH - (last_label / 2.0).clamp(10.0, 40.0) };
        let rows = legend_rows(&legend, right - left);
        let top = 12.0 + rows.len() as f64 * LEGEND_ROW;
        let bottom = top + plot_height;
        // Names are rotated when they would otherwise touch.
        let room = (right - left) / x.ticks.len().max(1) as f64;
        let turned = x.names && x.ticks.iter().any(|t| text_width(&t.label) + 6.0 > room);
        let under = if turned { x.widest_label() * 0.65 + TEXT } else { TEXT + 8.0 };
        let height = match part {
            Part::Upper => bottom + 4.0,
            _ => bottom + under + if x_axis.title.is_empty() { 6.0 } else { TEXT + 14.0 },
        };
        (x.from, x.to) = if x_axis.reversed { (right, left) } else { (left, right) };
        (y.from, y.to) = (bottom, top);
        Self {
            x,
            y,
            legend,
            body: String::new(),
            hints: String::new(),
            labels: Vec::new(),
            left,
            right,
            top,
            bottom,
            titles: (x_axis.title.clone(), y_axis.title.clone()),
            turned,
            height,
            clip: false,
            part,
        }
    }

    /// Returns the value range of the horizontal axis.
    pub(crate) fn across(&self) -> ValueRange {
        ValueRange { low: self.x.low, high: self.x.high }
    }

    /// Adds a tooltip at a value.
    pub(crate) fn hint(&mut self, x: f64, y: f64, words: &str) {
        if self.shows(x, y) {
            let (px, py) = (self.x(x), self.y(y));
            self.hint_area((px - 7.0, py - 7.0), (px + 7.0, py + 7.0), words);
        }
    }

    /// Adds a tooltip for a range of the horizontal axis.
    pub(crate) fn hint_between(&mut self, from: f64, to: f64, words: &str) {
        let (a, b) = (self.x(from), self.x(to));
        let (left, right) = (a.min(b).max(self.left), a.max(b).min(self.right));
        if right > left {
            self.hint_area((left, self.top), (right, self.bottom), words);
        }
    }

    fn hint_area(&mut self, (left, top): (f64, f64), (right, bottom): (f64, f64), words: &str) {
        let _ = write!(
            self.hints,
            "<path d=\"M{}H{}V{}H{}z\"><title>{}</title></path>",
            point(left, top),
            pixel(right),
            pixel(bottom),
            pixel(left),
            escape(words)
        );
    }

    /// Returns the horizontal position of a value.
    pub(crate) fn x(&self, value: f64) -> f64 {
        self.x.place(value)
    }

    /// Returns the vertical position of a value.
    pub(crate) fn y(&self, value: f64) -> f64 {
        self.y.place(value)
    }

    /// Returns whether the axes can show a value. For example, a logarithmic axis cannot show zero.
    pub(crate) fn shows(&self, x: f64, y: f64) -> bool {
        (!self.x.log || x > 0.0) && (!self.y.log || y > 0.0)
    }

    /// Draws a curve through values.
    pub(crate) fn curve(&mut self, values: &[(f64, f64)], style: Style, width: f64) {
        let points: Vec<_> =
            values.iter().filter(|(x, y)| self.shows(*x, *y)).map(|(x, y)| (self.x(*x), self.y(*y))).collect();
        curve(&mut self.body, &points, style.colour, style.dash, width);
    }

    /// Draws a closed line through values, with a light fill.
    pub(crate) fn outline(&mut self, values: &[(f64, f64)], style: Style) {
        let points: Vec<_> =
            values.iter().filter(|(x, y)| self.shows(*x, *y)).map(|(x, y)| (self.x(*x), self.y(*y))).collect();
        outline(&mut self.body, &points, style.colour, style.dash, 1.6);
    }

    /// Adds a label for a value. With `far`, it may be separate from its point. [`Frame::place_labels`] determines its
    /// position.
    pub(crate) fn label(&mut self, x: f64, y: f64, words: &str, style: Style, far: bool) {
        let at = (self.x(x), self.y(y));
        // A point on the edge may be outside because of a rounding error.
        let inside = at.0 > self.left - 0.5 && at.0 < self.right + 0.5 && at.1 > self.top - 0.5;
        let inside = inside && at.1 < self.bottom + 0.5;
        if self.shows(x, y) && inside && !words.is_empty() {
            self.labels.push(Label { at, text: fit(words, 150.0), ink: style.ink(), far });
        }
    }

    /// Draws all labels. Returns the number of labels for which there is no space.
    pub(crate) fn place_labels(&mut self) -> usize {
        let labels = std::mem::take(&mut self.labels);
        let room = Area { left: self.left + 2.0, top: self.top, right: self.right, bottom: self.bottom - 2.0 };
        let places = place(&labels, room);
        let mut missing = 0;
        for (label, place) in labels.iter().zip(places) {
            let Some(area) = place else {
                missing += 1;
                continue;
            };
            if area.is_far_from(label.at) {
                line(&mut self.body, label.at, area.nearest(label.at), INK, 0.5);
            }
            small_text(&mut self.body, area.start(), SIZE, label.ink, &label.text);
        }
        missing
    }

    /// Draws a marker at a value.
    pub(crate) fn marker(&mut self, x: f64, y: f64, style: Style, open: bool) {
        if self.shows(x, y) {
            let (px, py) = (self.x(x), self.y(y));
            marker(&mut self.body, style, px, py, open);
        }
    }

    /// Draws a small light dot for a single run.
    pub(crate) fn dot(&mut self, x: f64, y: f64, style: Style) {
        if self.shows(x, y) {
            let (px, py) = (pixel(self.x(x)), pixel(self.y(y)));
            let _ = write!(
                self.body,
                "<circle cx=\"{px}\" cy=\"{py}\" r=\"1.5\" fill=\"{}\" fill-opacity=\"0.45\"/>",
                style.colour
            );
        }
    }

    /// Draws a vertical interval around a value. On a logarithmic axis, an interval that includes zero ends at the
    /// axis.
    pub(crate) fn interval(&mut self, x: f64, y: f64, half_width: f64, style: Style) {
        if !self.shows(x, y) {
            return;
        }
        let (low, high) = (y - half_width, y + half_width);
        let bottom = if self.y.log && low < self.y.low { self.bottom } else { self.y(low).min(self.bottom) };
        let (px, top) = (self.x(x), self.y(high).max(self.top));
        // An interval that is smaller than its marker would only obscure it.
        if bottom - top > 2.0 {
            interval(&mut self.body, px, bottom, top, style.colour);
        }
    }

    /// Draws a horizontal interval around a value.
    pub(crate) fn interval_across(&mut self, x: f64, y: f64, half_width: f64, style: Style) {
        if !self.shows(x, y) || half_width <= 0.0 {
            return;
        }
        let low = x - half_width;
        let low = if self.x.log && low < self.x.low { self.x.from } else { self.x(low) };
        let (py, high) = (self.y(y), self.x(x + half_width));
        let (left, right) = (low.min(high).max(self.left), low.max(high).min(self.right));
        if right - left > 2.0 {
            line(&mut self.body, (left, py), (right, py), style.colour, 1.1);
            for end in [left, right] {
                line(&mut self.body, (end, py - 3.5), (end, py + 3.5), style.colour, 1.1);
            }
        }
    }

    /// Draws a bar from zero between two positions, with fill pattern number `pattern`.
    pub(crate) fn bar(&mut self, left: f64, right: f64, value: f64, style: Style, pattern: usize) {
        self.block((left, right), (0.0, value), style, pattern);
    }

    /// Draws a rectangle between two positions and two values, with fill pattern number `pattern`. On a logarithmic
    /// axis, a rectangle that includes zero ends at the axis.
    pub(crate) fn block(&mut self, across: (f64, f64), values: (f64, f64), style: Style, pattern: usize) {
        let height = |value: f64| if self.y.log && value < self.y.low { self.bottom } else { self.y(value) };
        let (a, b) = (height(values.0), height(values.1));
        let (from, to) = (self.x(across.0), self.x(across.1));
        bar(&mut self.body, (from, a.min(b)), (to, a.max(b)), style, pattern);
    }

    /// Sets whether marks outside the plot area are clipped, because axis limits of the study can exclude data.
    pub(crate) fn clip(&mut self, clip: bool) {
        self.clip = clip;
    }

    /// Draws the content of the frame; `name` makes `id` attributes unique within a page.
    fn draw(&self, name: &str, out: &mut String) {
        self.grid_and_ticks(out);
        if self.clip {
            let _ = write!(
                out,
                "<clipPath id=\"{name}-c\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/></clipPath>\
                 <g clip-path=\"url(#{name}-c)\">{}</g>",
                pixel(self.left - CLIP_MARGIN),
                pixel(self.top - CLIP_MARGIN),
                pixel(self.right - self.left + 2.0 * CLIP_MARGIN),
                pixel(self.bottom - self.top + 2.0 * CLIP_MARGIN),
                self.body
            );
        } else {
            let _ = write!(out, "<g>{}</g>", self.body);
        }
        self.draw_legend(out);
        if !self.hints.is_empty() {
            let _ = write!(out, "<g fill-opacity=\"0\">{}</g>", self.hints);
        }
    }

    fn grid_and_ticks(&self, out: &mut String) {
        let (left, right, top, bottom) = (self.left, self.right, self.top, self.bottom);
        for tick in &self.y.ticks {
            let y = self.y(tick.value);
            if !tick.label.is_empty() && (bottom - y).abs() > 0.5 && !self.y.names {
                line(out, (left, y), (right, y), GRID, 1.0);
            }
        }
        for tick in &self.x.ticks {
            let x = self.x(tick.value);
            if !tick.label.is_empty() && (x - left).abs() > 0.5 && !self.x.names {
                line(out, (x, top), (x, bottom), GRID, 1.0);
            }
        }
        for tick in &self.y.ticks {
            let y = self.y(tick.value);
            let length = if tick.label.is_empty() { 2.5 } else { 5.0 };
            line(out, (left - length, y), (left, y), INK, 1.0);
            if !tick.label.is_empty() {
                text(out, (left - 8.0, y + TEXT * 0.35), Anchor::End, 0.0, &fit(&tick.label, 150.0));
            }
        }
        // Labels that would overlap their neighbor are omitted, but their ticks are drawn.
        let mut free = f64::MIN;
        let mut from_left: Vec<&Tick> = self.x.ticks.iter().collect();
        if self.x.from > self.x.to {
            from_left.reverse();
        }
        for tick in from_left {
            let x = self.x(tick.value);
            let length = if tick.label.is_empty() { 2.5 } else { 5.0 };
            line(out, (x, bottom), (x, bottom + length), INK, 1.0);
            if tick.label.is_empty() || self.part == Part::Upper {
                continue;
            }
            if self.turned {
                // A rotated label of width w extends w cos 40° to the left of its tick.
                let room = (x / 0.78).min(150.0);
                text(out, (x + 4.0, bottom + 15.0), Anchor::End, -40.0, &fit(&tick.label, room));
                continue;
            }
            let half = text_width(&tick.label) / 2.0;
            if x - half >= free {
                text(out, (x, bottom + TEXT + 8.0), Anchor::Middle, 0.0, &tick.label);
                free = x + half + 3.0;
            }
        }
        line(out, (left, top), (left, bottom), INK, 1.0);
        line(out, (left, bottom), (right, bottom), INK, 1.0);
        if self.part != Part::Upper {
            let middle = f64::midpoint(left, right);
            text(out, (middle, self.height - 9.0), Anchor::Middle, 0.0, &fit(&self.titles.0, WIDTH - 10.0));
        }
        if self.part == Part::Whole {
            let (x, y) = (TEXT + 2.0, f64::midpoint(top, bottom));
            text(out, (x, y), Anchor::Middle, -90.0, &fit(&self.titles.1, PLOT_HEIGHT + 20.0));
        }
    }

    fn draw_legend(&self, out: &mut String) {
        for (row, entries) in legend_rows(&self.legend, self.right - self.left).iter().enumerate() {
            let y = 13.0 + row as f64 * LEGEND_ROW;
            let mut x = self.left;
            for (label, key) in entries {
                let (from, to) = (x, x + LEGEND_SAMPLE - 6.0);
                let middle = f64::midpoint(from, to);
                match key {
                    LegendKey::Curve(style, markers) => {
                        if *markers != Markers::Only {
                            curve(out, &[(from, y), (to, y)], style.colour, style.dash, 1.8);
                        }
                        if *markers != Markers::None {
                            marker(out, *style, middle, y, false);
                        }
                    }
                    LegendKey::Open(style) => marker(out, *style, middle, y, true),
                    LegendKey::Bar(style, pattern) => bar(out, (from, y - 6.0), (to, y + 6.0), *style, *pattern),
                }
                text(out, (x + LEGEND_SAMPLE, y + TEXT * 0.35), Anchor::Start, 0.0, label);
                x += LEGEND_SAMPLE + text_width(label) + 14.0;
            }
        }
    }
}

/// Returns the complete picture of a frame, or of several stacked panels. `name` makes `id` attributes unique within a
/// page; `title` and `description` are for screen readers.
pub(crate) fn finish(frames: &[Frame], name: &str, title: &str, description: &str) -> String {
    let height: f64 = frames.iter().map(|frame| frame.height).sum();
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {h}\" width=\"{WIDTH}\" height=\"{h}\" \
         role=\"img\" aria-labelledby=\"{name}-t {name}-d\" data-generator=\"fullpipe-report\" \
         font-family=\"{FONT}\" font-size=\"{TEXT}\" fill=\"{INK}\"><title id=\"{name}-t\">{}</title>\
         <desc id=\"{name}-d\">{}</desc>",
        escape(title),
        escape(description),
        h = pixel(height.ceil())
    );
    let _ = write!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>");
    if let [frame] = frames {
        frame.draw(name, &mut out);
    } else {
        let mut y = 0.0;
        for (number, frame) in frames.iter().enumerate() {
            let _ = write!(out, "<g transform=\"translate(0 {})\">", pixel(y));
            frame.draw(&format!("{name}-{number}"), &mut out);
            out.push_str("</g>");
            y += frame.height;
        }
        // All panels share one title for the vertical axis.
        if let Some(first) = frames.first() {
            let at = (TEXT + 2.0, height / 2.0);
            text(&mut out, at, Anchor::Middle, -90.0, &fit(&first.titles.1, height - 20.0));
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Arranges legend entries in rows of a given width, and shortens labels to fit.
fn legend_rows(entries: &[LegendEntry], width: f64) -> Vec<Vec<(String, LegendKey)>> {
    let mut rows: Vec<Vec<(String, LegendKey)>> = Vec::new();
    let mut used = f64::MAX;
    for entry in entries {
        let label = fit(&entry.label, width - LEGEND_SAMPLE);
        let wide = LEGEND_SAMPLE + text_width(&label);
        if used + wide > width {
            rows.push(Vec::new());
            used = 0.0;
        }
        if let Some(row) = rows.last_mut() {
            row.push((label, entry.key));
        }
        used += wide + 14.0;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::palette::style;

    fn axis(scale: AxisScale, low: f64, high: f64) -> Axis {
        Axis { title: "t".to_owned(), scale, extent: ValueRange { low, high }, reversed: false }
    }

    #[test]
    fn frame_maps_values_to_their_positions() {
        let frame = Frame::new(
            &axis(AxisScale::Log, 10.0, 1000.0),
            &axis(AxisScale::Linear(RangeEnds::OnStep), 0.0, 10.0),
            Vec::new(),
        );
        // The ends are on the frame. 100 is in the middle of 10 to 1000 on the logarithmic axis, 5 in the middle of 0
        // to 10.
        assert_eq!((frame.x(10.0), frame.y(0.0)), (frame.left, frame.bottom));
        assert!((frame.x(1000.0) - frame.right).abs() < 1e-9 && (frame.y(10.0) - frame.top).abs() < 1e-9);
        assert!((frame.x(100.0) - f64::midpoint(frame.left, frame.right)).abs() < 1e-9);
        assert!((frame.y(5.0) - f64::midpoint(frame.top, frame.bottom)).abs() < 1e-9);
        assert!(!frame.shows(0.0, 1.0) && frame.shows(1.0, 0.0));
    }

    #[test]
    fn reversed_axis_has_small_values_on_the_right() {
        let delay = Axis { reversed: true, ..axis(AxisScale::Linear(RangeEnds::OnStep), 0.0, 10.0) };
        let mut frame = Frame::new(&delay, &axis(AxisScale::Log, 1.0, 9.0), Vec::new());
        assert_eq!((frame.x(0.0), frame.x(10.0)), (frame.right, frame.left));
        assert!((frame.x(2.5) - (frame.left + 0.75 * (frame.right - frame.left))).abs() < 1e-9);
        // An interval from 1 to 3 has its larger end on the left.
        frame.interval_across(2.0, 3.0, 1.0, style(0));
        let ends = format!("M{},", pixel(frame.x(3.0)));
        assert!(frame.body.contains(&ends), "{ends} in {}", frame.body);
    }

    #[test]
    fn extent_covers_finite_values_and_can_include_zero() {
        assert_eq!(ValueRange::of([3.0, -1.0, 2.0]), Some(ValueRange { low: -1.0, high: 3.0 }));
        assert_eq!(ValueRange::of([]), None);
        assert_eq!(ValueRange { low: 3.0, high: 4.0 }.with_zero(), ValueRange { low: 0.0, high: 4.0 });
        assert_eq!(ValueRange { low: -5.0, high: 4.0 }.size(), 5.0);
    }

    #[test]
    fn legend_rows_increase_the_height_of_the_picture() {
        let entry = |n: usize| LegendEntry { label: "congestion control".repeat(n), key: LegendKey::Open(style(0)) };
        let one = Frame::new(&axis(AxisScale::Log, 1.0, 9.0), &axis(AxisScale::Log, 1.0, 9.0), vec![entry(1)]);
        let four = Frame::new(&axis(AxisScale::Log, 1.0, 9.0), &axis(AxisScale::Log, 1.0, 9.0), vec![entry(2); 4]);
        assert_eq!(four.top - one.top, 3.0 * LEGEND_ROW);
        assert_eq!(four.bottom - four.top, one.bottom - one.top);
    }

    #[test]
    fn interval_that_includes_zero_ends_at_a_log_axis() {
        let mut frame = Frame::new(&axis(AxisScale::Log, 1.0, 9.0), &axis(AxisScale::Log, 1.0, 10.0), Vec::new());
        frame.interval(2.0, 3.0, 4.0, style(0));
        let bottom = pixel(frame.bottom);
        assert!(frame.body.contains(&format!(",{bottom}V")), "{}", frame.body);
        assert!(!frame.body.contains("NaN"));
    }
}
