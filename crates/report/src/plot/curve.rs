//! Trade-off curves: the mean of one metric over the mean of another. The points of a series are connected in the order
//! of an axis and labeled with its values. An example is delay over throughput for increasing buffer sizes.

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
