//! Plots in the style of papers, in plain SVG. There is one file for each kind of plot, and [`Kind`] lists the kinds. A
//! kind selects its data from the records, creates a [`frame::Frame`] with axes and legend, and draws into it.
//!
//! To add a kind, write a file with a `draw` function, call it in this file, and add its name in
//! `archive/src/study.rs`.

mod bars;
mod boxes;
mod coordinates;
mod curve;
pub(crate) mod data;
pub(crate) mod decimate;
mod distribution;
mod ellipse;
mod experience;
mod flows;
pub(crate) mod frame;
pub(crate) mod gather;
mod label;
mod line;
mod moments;
pub(crate) mod palette;
mod profile;
mod scatter;
pub(crate) mod shape;
mod table;
pub(crate) mod ticks;
mod time;

use crate::error::ReportError;
use crate::input::series::{SampleTimes, read_times};
use crate::input::study::{PlotSpec, list};
use crate::input::{Records, distinct};
use crate::markup::slug;
use crate::plot::data::Data;
use fullpipe_archive::PlotKind as Kind;
use fullpipe_units::Duration;
use std::collections::BTreeSet;

/// A plot, ready for the page and for `plots/NAME.svg`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RenderedPlot {
    /// File name without extension, unique in a report.
    pub(crate) name: String,
    /// Title.
    pub(crate) title: String,
    /// Explanations for the reader, sentence by sentence: intervals, open markers, omitted values.
    pub(crate) caption: Vec<String>,
    /// The picture; `None` if there is nothing to draw, which the caption explains, or if the plot is a table.
    pub(crate) svg: Option<String>,
    /// A table instead of a picture, as markup.
    pub(crate) table: Option<String>,
    /// The numbers of the picture, as CSV.
    pub(crate) csv: Option<String>,
}

/// The result of a kind's `draw`.
pub(crate) struct Drawing {
    /// The finished frame, or stacked frames, and a description in words for screen readers.
    pub(crate) picture: Option<(Vec<frame::Frame>, String)>,
    /// The numbers of the picture.
    pub(crate) data: Option<Data>,
    /// A table instead of the picture.
    pub(crate) table: Option<crate::page::table::Table>,
    /// Sentences for the caption.
    pub(crate) remarks: Vec<String>,
}

impl Drawing {
    /// Creates a drawing from a picture, its description, and sentences for the caption.
    pub(crate) fn of(frame: frame::Frame, words: String, remarks: Vec<String>) -> Self {
        Self { picture: Some((vec![frame], words)), data: None, table: None, remarks }
    }

    /// Adds the numbers to the drawing.
    pub(crate) fn with(self, data: Data) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Creates a drawing without a picture; `why` is the reason.
    pub(crate) fn nothing(why: impl Into<String>) -> Self {
        Self { picture: None, data: None, table: None, remarks: vec![why.into()] }
    }
}

/// Draws all plots of a report: those of the study, or the default plots.
pub(crate) fn draw_all(records: &Records) -> Result<Vec<RenderedPlot>, ReportError> {
    let specs = match records.study.plot.as_slice() {
        [] if records.is_single_run() => of_series(records)?,
        [] => suggested(records),
        specs => specs.to_vec(),
    };
    let mut used = BTreeSet::new();
    let selected = specs.iter().filter(|spec| !is_of_others(records, spec));
    let mut figures = selected.map(|spec| draw(records, spec, &mut used)).collect::<Result<Vec<_>, _>>()?;
    let has_picture = figures.iter().any(|figure| figure.svg.is_some());
    let of_flows = if records.is_single_run() && !has_picture { flows::draw(records)? } else { None };
    figures.extend(of_flows.map(|(name, title, drawing)| finish(&name, title, drawing, Vec::new(), &mut used)));
    // A study that declares plots of distributions has already selected the distributions.
    if !specs.iter().any(|spec| spec.kind == Kind::Distribution) {
        for (name, title, drawing) in experience::draw(records)? {
            figures.push(finish(&name, title, drawing, Vec::new(), &mut used));
        }
    }
    Ok(figures)
}

/// Returns whether a plot shows only experiments that were not selected. Such plots are counted instead of drawn.
fn is_of_others(records: &Records, spec: &PlotSpec) -> bool {
    let Some(selected) = &records.study.experiments else { return false };
    let shown = spec.r#where.iter().flatten().find(|(axis, _)| axis == "experiment");
    shown.is_some_and(|(_, experiments)| !list(experiments).iter().any(|shown| selected.contains(shown)))
}

/// Returns the number of plots of experiments that were not selected.
pub(crate) fn plots_of_others(records: &Records) -> usize {
    records.study.plot.iter().filter(|spec| is_of_others(records, spec)).count()
}

/// The text that precedes the caption of a study that ran with `--quick`.
const OF_WHOLE_STUDY: &str = "Caption of the whole study:";
/// The text that precedes the remarks about the runs of `--quick`.
const OF_QUICK_RUN: &str = "In this quick run:";

fn draw(records: &Records, spec: &PlotSpec, used: &mut BTreeSet<String>) -> Result<RenderedPlot, ReportError> {
    let kind = spec.kind;
    let drawing = match kind {
        Kind::Line => line::draw(records, spec),
        Kind::Scatter => scatter::draw(records, spec),
        Kind::Distribution => distribution::draw(records, spec)?,
        Kind::Bars => bars::draw(records, spec),
        Kind::Box => boxes::draw(records, spec),
        Kind::Time => time::draw(records, spec)?,
        Kind::Ellipse => ellipse::draw(records, spec)?,
        Kind::Curve => curve::draw(records, spec),
        Kind::Profile => profile::draw(records, spec),
        Kind::Table => table::draw(records, spec),
    };
    let title = spec.title.clone().unwrap_or_else(|| {
        let name = spec.y.as_deref().or(spec.x.as_deref()).unwrap_or(&spec.name);
        let word = gather::word_for(records, name);
        match (kind, &spec.x) {
            (Kind::Line | Kind::Bars | Kind::Box | Kind::Scatter | Kind::Curve | Kind::Ellipse, Some(x)) => {
                format!("{word} over {}", gather::lower_first(&gather::word_for(records, x)))
            }
            _ => word,
        }
    });
    // The caption describes the study as declared. A quick run has fewer runs, which the remarks describe.
    let quick = records.study.quick && spec.caption.is_some();
    let label = |text: &String| if quick { format!("{OF_WHOLE_STUDY} {text}") } else { text.clone() };
    let mut before: Vec<String> = spec.caption.iter().map(label).collect();
    if quick && !drawing.remarks.is_empty() {
        before.push(OF_QUICK_RUN.to_owned());
    }
    let after: Vec<String> = doubts(records, spec).into_iter().collect();
    let drawing = Drawing { remarks: drawing.remarks.into_iter().chain(after).collect(), ..drawing };
    Ok(finish(&spec.name, title, drawing, before, used))
}

/// Returns the figure of a drawing, with a unique name; `caption` precedes the remarks of the drawing.
fn finish(
    name: &str,
    title: String,
    drawing: Drawing,
    caption: Vec<String>,
    used: &mut BTreeSet<String>,
) -> RenderedPlot {
    let stem = slug(name);
    let mut name = stem.clone();
    let mut next = 2;
    while !used.insert(name.clone()) {
        name = format!("{stem}-{next}");
        next += 1;
    }
    let caption = caption.into_iter().chain(drawing.remarks).collect();
    let svg = drawing.picture.map(|(frames, words)| frame::finish(&frames, &name, &title, &words));
    let csv = drawing.data.filter(|_| svg.is_some()).map(|data| data.to_csv());
    let table = drawing.table.map(|mut table| {
        table.caption.clone_from(&title);
        let mut out = String::new();
        table.write(&mut out);
        out
    });
    RenderedPlot { name, title, caption, svg, table, csv }
}

/// Returns the sentence about invalid runs for the caption.
fn doubts(records: &Records, spec: &PlotSpec) -> Option<String> {
    let shown = records.results.rows.iter().filter(|row| gather::selected(spec, &row.point));
    let keys: BTreeSet<&str> = shown.map(|row| row.key.as_str()).collect();
    let doubtful = keys.intersection(&records.doubtful()).count();
    (doubtful > 0).then(|| {
        let verb = if doubtful == 1 { "is" } else { "are" };
        let means = "means are without such runs where at least half of a point's runs are left";
        format!("Not to be trusted: {doubtful} of {} runs behind this plot {verb} not valid; {means}.", keys.len())
    })
}

/// Returns one plot for each metric that a probe sampled.
fn of_series(records: &Records) -> Result<Vec<PlotSpec>, ReportError> {
    let Some(run) = records.runs.first() else { return Ok(Vec::new()) };
    let mut times = read_times(&run.folder)?;
    // The most important metric is first.
    times.sort_by_key(|(metric, _)| metric != THROUGHPUT);
    Ok(times
        .into_iter()
        .map(|(metric, subjects)| PlotSpec {
            name: metric.clone(),
            kind: Kind::Time,
            group: (metric == THROUGHPUT).then(|| bin(&subjects)).flatten(),
            y: Some(metric),
            ..PlotSpec::default()
        })
        .collect())
}

/// The metric whose samples are means over the time since the previous sample. Means over longer intervals are equally
/// correct and easier to read.
const THROUGHPUT: &str = "throughput_bps";
/// The shortest averaging interval, because shorter intervals would show single packets.
const SHORTEST_BIN: Duration = Duration::from_millis(100);
/// The maximum number of averaging intervals that the plot area can show.
const MOST_BINS: u64 = 400;

/// Returns the averaging interval of a plot of throughput: 1, 2 or 5 times a power of ten. Returns `None` if the
/// samples are not denser than that.
fn bin(subjects: &[SampleTimes]) -> Option<Duration> {
    let times = subjects.iter().max_by_key(|times| times.count).filter(|times| times.count > 1)?;
    let last = times.last_s;
    let seconds = |time_s: f64| Duration::from_nanos((time_s * 1e9) as u64);
    let least = SHORTEST_BIN.as_nanos().max(seconds(last).as_nanos() / MOST_BINS);
    let steps = (0..).flat_map(|power| [1, 2, 5].map(|digit| SHORTEST_BIN.as_nanos() * digit * 10u64.pow(power)));
    let bin = steps.take(30).find(|step| *step >= least).map(Duration::from_nanos)?;
    (seconds(times.second_s - times.first_s) < bin).then_some(bin)
}

/// The maximum number of default plots.
const MOST_SUGGESTED: usize = 12;

/// Returns the default plots of a study that declares none: every metric over the first axis that varies.
fn suggested(records: &Records) -> Vec<PlotSpec> {
    let rows: Vec<_> = records.summary.iter().filter(|r| r.claim().is_none() && r.mean.is_some()).collect();
    let varying = gather::varying(rows.iter().map(|r| &r.point));
    let numeric = varying.iter().find(|axis| {
        rows.iter().filter_map(|r| r.point.get(axis)).all(|v| fullpipe_archive::parse_number(v).is_some())
    });
    let Some(x) = numeric.or(varying.first()) else { return Vec::new() };
    distinct(rows.iter().map(|row| row.metric.as_str()))
        .into_iter()
        .take(MOST_SUGGESTED)
        .map(|metric| PlotSpec {
            name: metric.to_owned(),
            x: Some(x.clone()),
            y: Some(metric.to_owned()),
            ..PlotSpec::default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_plot_uses_readable_averaging_intervals() {
        let series = |interval_ms: u32, seconds: u32| {
            let mut times = SampleTimes::default();
            (1..=seconds * 1000 / interval_ms).for_each(|n| times.add(f64::from(n * interval_ms) / 1000.0));
            [SampleTimes::default(), times]
        };
        let bin = |interval_ms, seconds| bin(&series(interval_ms, seconds)).map(Duration::as_nanos);
        // 10 s are 100 intervals of 100 ms; 300 s are more than 400 intervals of 0.5 s, and 300 of 1 s.
        assert_eq!(bin(10, 10), Some(100_000_000));
        assert_eq!(bin(10, 300), Some(1_000_000_000));
        // Samples that are not denser are unchanged.
        assert_eq!((bin(100, 10), bin(1000, 300)), (None, None));
    }
}
