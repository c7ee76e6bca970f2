//! The mean of one metric over the mean of another, the points of a series joined in the order of an axis and labelled
//! with its values: what a larger buffer, say, costs in delay for what it brings in throughput.

use crate::input::Records;
use crate::input::study::PlotSpec;
use crate::plot::Drawing;
use crate::plot::scatter;

/// Draws the plot.
pub(crate) fn draw(records: &Records, spec: &PlotSpec) -> Drawing {
    match &spec.along {
        Some(along) => scatter::draw_means(records, spec, Some(along)),
        None => Drawing::nothing("Not drawn: the plot needs `along` (an axis)."),
    }
}
