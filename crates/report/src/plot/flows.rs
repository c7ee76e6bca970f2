//! The rate of each flow of a run as bars. It is the plot of a run without probes, such as a run of real programs.

use crate::error::ReportError;
use crate::input::Records;
use crate::input::flows::read_flows;
use crate::input::study::PlotSpec;
use crate::numbers::trimmed;
use crate::plot::Drawing;
use crate::plot::data::Data;
use crate::plot::frame::{Axis, Frame, ValueRange};
use crate::plot::gather::{self, Side};
use crate::plot::palette::style;
use fullpipe_archive::FlowRow;

/// The maximum number of flows, because more bars would not be distinguishable.
const MOST_FLOWS: usize = 24;
/// The maximum number of directions that are read.
const MOST_DIRECTIONS: usize = 1000;

/// Returns the name, the title and the drawing; `None` if no flow of the run received any data.
pub(crate) fn draw(records: &Records) -> Result<Option<(String, String, Drawing)>, ReportError> {
    let Some(run) = records.runs.first() else { return Ok(None) };
    let flows = read_flows(&run.folder, MOST_DIRECTIONS)?;
    // Uses the goodput if it is known. For real programs, only packets are observed.
    let has_goodput = flows.rows.iter().any(|row| row.goodput_bps.is_some());
    let (metric, title, of): (_, _, fn(&FlowRow) -> Option<f64>) = if has_goodput {
        ("goodput_bps", "Goodput of the flows", |row| row.goodput_bps)
    } else {
        ("throughput_bps", "Throughput of the flows (IP layer)", FlowRow::throughput_bps)
    };
    // Uses main directions, unless no direction is known to be a main direction.
    let any_main = flows.rows.iter().any(FlowRow::is_main);
    let rows = flows.rows.iter().filter(|row| !any_main || row.is_main());
    let mut bars: Vec<(&str, f64)> = rows.filter_map(|row| Some((row.flow.as_str(), of(row)?))).collect();
    let all = bars.len();
    bars.sort_by(|a, b| b.1.total_cmp(&a.1));
    bars.truncate(MOST_FLOWS);
    let Some(extent) = ValueRange::of(bars.iter().map(|(_, rate)| *rate)).filter(|extent| extent.high > 0.0) else {
        return Ok(None);
    };
    let (y_axis, unit) = gather::number_axis(records, &PlotSpec::default(), Side::Y, metric, "bit/s", extent);
    let names = bars.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut frame = Frame::new(&Axis::names("Flow".to_owned(), names), &y_axis, Vec::new());
    let mut numbers = Data::new(["series", "flow", metric]);
    let mut words = format!("{title}.");
    for (place, (name, rate)) in bars.iter().enumerate() {
        let (left, right) = (place as f64 - 0.36, place as f64 + 0.36);
        frame.bar(left, right, unit.value(*rate), style(0), 0);
        let shown = unit.with_unit(&trimmed(unit.value(*rate), 4));
        frame.hint_between(left, right, &format!("{name}: {shown}"));
        words.push_str(&format!(" {name}: {shown}."));
        numbers.push(["".into(), (*name).into(), (*rate).into()]);
    }
    let remarks = if all > bars.len() {
        vec![format!("The fastest {} of {all} directions; flows.csv has all.", bars.len())]
    } else {
        Vec::new()
    };
    Ok(Some(("flows".to_owned(), title.to_owned(), Drawing::of(frame, words, remarks).with(numbers))))
}
