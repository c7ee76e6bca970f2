//! Positions of labels: next to their point, without overlap with other labels or points. If the surroundings of a
//! point are crowded, its label is farther away and a thin line connects them.

use crate::plot::shape::{TEXT, text_width};

/// Font size of labels.
pub(crate) const SIZE: f64 = 11.0;
/// Distance from a point to its label.
const GAP: f64 = 6.0;

/// A label of a point, in picture units.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Label {
    pub(crate) at: (f64, f64),
    pub(crate) text: String,
    /// Color of the text.
    pub(crate) ink: &'static str,
    /// Whether the label may be separate from its point, with a line between them.
    pub(crate) far: bool,
}

/// A rectangle in picture units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Area {
    fn meets(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn holds(&self, other: &Self) -> bool {
        self.left <= other.left && self.right >= other.right && self.top <= other.top && self.bottom >= other.bottom
    }

    /// Moves the rectangle into another one by the smallest possible distance.
    fn moved_into(self, room: &Self) -> Self {
        let x = (room.left - self.left).max(0.0) - (self.right - room.right).max(0.0);
        let y = (room.top - self.top).max(0.0) - (self.bottom - room.bottom).max(0.0);
        Self { left: self.left + x, top: self.top + y, right: self.right + x, bottom: self.bottom + y }
    }

    /// Returns the center of the left side, which is the anchor of a text in the rectangle.
    pub(crate) fn start(&self) -> (f64, f64) {
        (self.left, f64::midpoint(self.top, self.bottom))
    }

    /// Returns the end of a line from a point to the rectangle.
    pub(crate) fn nearest(&self, to: (f64, f64)) -> (f64, f64) {
        (to.0.clamp(self.left, self.right), to.1.clamp(self.top, self.bottom))
    }

    /// Returns whether the rectangle is so far from its point that a line is needed.
    pub(crate) fn is_far_from(&self, point: (f64, f64)) -> bool {
        let near = self.nearest(point);
        (near.0 - point.0).abs().max((near.1 - point.1).abs()) > GAP + 1.0
    }
}

/// Returns a position for each label within `room`, in the order of the labels; `None` if there is no space.
pub(crate) fn place(labels: &[Label], room: Area) -> Vec<Option<Area>> {
    let mark = |at: (f64, f64)| Area { left: at.0 - 3.0, top: at.1 - 3.0, right: at.0 + 3.0, bottom: at.1 + 3.0 };
    let mut taken: Vec<Area> = labels.iter().map(|label| mark(label.at)).collect();
    let mut places = Vec::new();
    for label in labels {
        let free = |area: &Area| room.holds(area) && !taken.iter().any(|other| other.meets(area));
        // Next to a point in a corner, a label must be shifted slightly.
        let place = candidates(label).map(|area| area.moved_into(&room)).find(free);
        taken.extend(place);
        places.push(place);
    }
    places
}

/// Returns the possible positions of a label, best first: right, left, above, below, then rings at larger distances.
fn candidates(label: &Label) -> impl Iterator<Item = Area> {
    let (x, y) = label.at;
    let (wide, high) = (text_width(&label.text) * SIZE / TEXT + 2.0, SIZE + 2.0);
    let around = move |left: f64, middle: f64| Area {
        left,
        top: middle - high / 2.0,
        right: left + wide,
        bottom: middle + high / 2.0,
    };
    let near = [
        around(x + GAP, y),
        around(x - GAP - wide, y),
        around(x - wide / 2.0, y - GAP - high / 2.0),
        around(x - wide / 2.0, y + GAP + high / 2.0),
    ];
    let ring = move |n: u32| {
        let off = f64::from(n) * (high + 1.0);
        [
            around(x + GAP + off / 2.0, y - off),
            around(x + GAP + off / 2.0, y + off),
            around(x - GAP - off / 2.0 - wide, y - off),
            around(x - GAP - off / 2.0 - wide, y + off),
            around(x - wide / 2.0, y - GAP - off - high / 2.0),
            around(x - wide / 2.0, y + GAP + off + high / 2.0),
        ]
    };
    let rings = if label.far { 3 } else { 0 };
    near.into_iter().chain((1..=rings).flat_map(ring))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Area = Area { left: 0.0, top: 0.0, right: 480.0, bottom: 250.0 };

    fn label(x: f64, y: f64, text: &str) -> Label {
        Label { at: (x, y), text: text.to_owned(), ink: "#222", far: true }
    }

    #[test]
    fn labels_do_not_overlap_each_other_or_points() {
        // Nine controls at almost the same position.
        let labels: Vec<Label> = (0..9).map(|i| label(240.0 + f64::from(i), 120.0, "westwood")).collect();
        let places: Vec<Area> = place(&labels, ROOM).into_iter().flatten().collect();
        assert_eq!(places.len(), 9);
        for (i, a) in places.iter().enumerate() {
            assert!(ROOM.holds(a) && places[i + 1..].iter().all(|b| !a.meets(b)), "{a:?}");
            assert!(labels.iter().all(|l| a.nearest(l.at) != l.at), "{a:?} covers a point");
        }
        // The first label is next to its point: on the left, because the other points begin right of it.
        assert!(!places[0].is_far_from(labels[0].at) && places[0].right < labels[0].at.0);
    }

    #[test]
    fn label_that_must_be_adjacent_is_omitted_if_there_is_no_space() {
        let labels: Vec<Label> =
            (0..9).map(|i| Label { far: false, ..label(240.0 + f64::from(i), 120.0, "850") }).collect();
        let places = place(&labels, ROOM);
        assert!(places.iter().any(Option::is_none));
        assert!(places.iter().zip(&labels).all(|(p, l)| p.is_none_or(|p| !p.is_far_from(l.at))), "{places:?}");
    }

    #[test]
    fn label_stays_within_the_plot_area() {
        let places = place(&[label(478.0, 2.0, "cubic"), label(1.0, 1.0, &"n".repeat(200))], ROOM);
        assert!(
            places[0].is_some_and(|p| ROOM.holds(&p) && p.right < 478.0 && !p.is_far_from((478.0, 2.0))),
            "{places:?}"
        );
        assert_eq!(places[1], None);
    }
}
