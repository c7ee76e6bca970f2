//! Reads the tables of a run for metrics. Metrics use the written tables, so a reused run has the same values as a new
//! one. If a cell is neither empty nor a number, this is an error, and the run is made again.

use crate::evaluate::{EvaluationContext, direction_matches, end_of, flow_matches};
use crate::experience::FlowSummary;
use crate::expression::{figure_name, link_column};
use crate::lateness;
use crate::study::Metric;
use fullpipe_archive::{
    COMPLETIONS, Columns, CompletionRow, EVENTS, EventRow, FIGURES, FLOWS, FigureRow, FlowRow, HALVES, HalfRow, LINKS,
    LinkRow, RecordError, SERIES, SeriesRow,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

/// The files of a run that metrics use and that are read completely.
pub(crate) const TABLES: [&str; 5] = [FLOWS.file, LINKS.file, HALVES.file, EVENTS.file, FIGURES.file];

/// The name of the time at which an event's condition was met, in expressions.
pub(crate) const EVENT_MET: &str = "met_s";
/// The name of the time of an event, in expressions.
pub(crate) const EVENT_AT: &str = "at_s";

/// The samples of one series in order of time: seconds and value.
type Samples = Vec<(f64, f64)>;

/// The rows of long tables that metrics need. Only these are kept in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedRows {
    /// Rows of `series.csv`, by subject and metric.
    pub(crate) series: BTreeSet<(String, String)>,
    /// Rows of `completions.csv`, by flow and number.
    pub(crate) completions: BTreeSet<(String, u64)>,
}

/// The tables of a run.
#[derive(Debug)]
pub(crate) struct MetricTables {
    flows: Columns,
    links: Columns,
    halves: Vec<HalfRow>,
    events: Vec<EventRow>,
    figures: Vec<FigureRow>,
    /// The samples by subject, then by metric.
    series: BTreeMap<String, BTreeMap<String, Samples>>,
    /// The wanted exchanges and transfers that were completed, by flow and number.
    completions: BTreeMap<(String, u64), CompletionRow>,
}

impl MetricTables {
    /// Parses `flows.csv`, and the tables of links and application metrics if the run has any.
    pub(crate) fn parse(files: &BTreeMap<&str, Vec<u8>>) -> Result<Self, RecordError> {
        let content = |name: &str| files.get(name).map(Vec::as_slice);
        let flows = content(FLOWS.file).unwrap_or_default();
        let links = content(LINKS.file);
        let (figures, halves) = (content(FIGURES.file), content(HALVES.file));
        Ok(MetricTables {
            flows: FLOWS.read_columns(Path::new(FLOWS.file), flows)?,
            links: links.map_or(Ok(Columns::default()), |links| LINKS.read_columns(Path::new(LINKS.file), links))?,
            halves: halves.map_or(Ok(Vec::new()), |halves| HALVES.read(Path::new(HALVES.file), halves))?,
            events: content(EVENTS.file)
                .map_or(Ok(Vec::new()), |events| EVENTS.read(Path::new(EVENTS.file), events))?,
            figures: figures.map_or(Ok(Vec::new()), |figures| FIGURES.read(Path::new(FIGURES.file), figures))?,
            series: BTreeMap::new(),
            completions: BTreeMap::new(),
        })
    }

    /// Adds samples from `series.csv`. Only the samples of wanted series are kept, because the file of a long run may
    /// be larger than the memory.
    pub(crate) fn with_series(mut self, input: impl Read, wanted: &WantedRows) -> Result<Self, RecordError> {
        for (subject, metric) in &wanted.series {
            self.series.entry(subject.clone()).or_default().insert(metric.clone(), Vec::new());
        }
        let mut reader = SERIES.reader(Path::new(SERIES.file), input)?;
        let mut row = SeriesRow::default();
        while reader.read_next(&mut row)? {
            let samples = self.series.get_mut(&row.subject).and_then(|of_subject| of_subject.get_mut(&row.metric));
            if let (Some(samples), Some(value)) = (samples, row.value) {
                samples.push((SeriesRow::time_s().number(&row), value));
            }
        }
        Ok(self)
    }

    /// Adds the wanted rows of `completions.csv`.
    pub(crate) fn with_completions(mut self, input: impl Read, wanted: &WantedRows) -> Result<Self, RecordError> {
        let mut reader = COMPLETIONS.reader(Path::new(COMPLETIONS.file), input)?;
        let mut row = CompletionRow::default();
        while reader.read_next(&mut row)? {
            let key = (row.flow.clone(), row.number);
            if wanted.completions.contains(&key) {
                self.completions.insert(key, row.clone());
            }
        }
        Ok(self)
    }

    /// Returns the values of single flows.
    pub(crate) fn experience(&self) -> FlowSummary {
        FlowSummary::of(&self.flows, &self.figures)
    }

    /// Returns the samples of a series at the selected times, if they have a value.
    fn samples(&self, subject: &str, metric: &str, wanted: impl Fn(f64) -> bool) -> Vec<Option<f64>> {
        let samples = self.series.get(subject).and_then(|of_subject| of_subject.get(metric));
        let samples = samples.into_iter().flatten().filter(|(time_s, _)| wanted(*time_s));
        samples.map(|(_, value)| Some(*value)).collect()
    }
}

/// Returns a column of numbers for the rows whose number and name (in the column `key`) match. It is empty if the table
/// does not exist.
fn matching(table: &Columns, key: &str, column: &str, is_match: impl Fn(usize, &str) -> bool) -> Vec<Option<f64>> {
    let (Ok(names), Ok(values)) = (table.find_text_column(key), table.find_column(column)) else { return Vec::new() };
    let rows = names.iter().zip(values).enumerate().filter(|(row, (name, _))| is_match(*row, name));
    rows.map(|(_, (_, value))| Some(*value).filter(|value| !value.is_nan())).collect()
}

/// The tables of a run, for evaluations at a point.
pub(crate) struct PointContext<'a> {
    pub(crate) tables: &'a MetricTables,
    pub(crate) numbers: &'a BTreeMap<String, f64>,
    /// The run's lateness record, if it has one.
    pub(crate) lateness: Option<&'a Value>,
}

impl EvaluationContext for PointContext<'_> {
    fn column(&self, column: &str, pattern: &str) -> Vec<Option<f64>> {
        match (link_column(column), figure_name(column)) {
            (Some(column), _) => {
                matching(&self.tables.links, LinkRow::link().name, column, |_, link| flow_matches(pattern, link))
            }
            (None, Some(figure)) => {
                let (flow, host) = end_of(pattern);
                let wanted = |row: &&FigureRow| {
                    row.figure == figure
                        && flow_matches(flow, &row.flow)
                        && host.is_none_or(|host| flow_matches(host, &row.host))
                };
                self.tables.figures.iter().filter(wanted).map(|row| row.value).collect()
            }
            (None, None) => {
                let main = self.tables.flows.find_column(FlowRow::main_direction().name).unwrap_or_default();
                let is_main = |row: usize| main.get(row).is_some_and(|main| *main > 0.0);
                let is_match = |row, name: &str| direction_matches(pattern, name, is_main(row));
                matching(&self.tables.flows, FlowRow::flow().name, column, is_match)
            }
        }
    }
    fn series(&self, subject: &str, metric: &str, from_s: f64, to_s: f64) -> Vec<Option<f64>> {
        self.tables.samples(subject, metric, |time_s| (from_s..=to_s).contains(&time_s))
    }
    fn measured_series(&self, subject: &str, metric: &str) -> Vec<Option<f64>> {
        // All measured links have the same interval.
        let from_s = self.tables.links.find_column(LinkRow::from_s().name);
        let Some(&from_s) = from_s.ok().and_then(<[f64]>::first) else { return Vec::new() };
        // A sample of a probe covers the time before it.
        self.tables.samples(subject, metric, |time_s| time_s > from_s)
    }
    fn event(&self, event: &str, value: &str) -> Option<f64> {
        let mut rows = self.tables.events.iter().filter(|row| row.event == event);
        match value {
            EVENT_MET => rows.next().and_then(|row| Some(row.met_s?.as_secs_f64())),
            EVENT_AT => rows.next().and_then(|row| Some(row.at_s?.as_secs_f64())),
            metric => rows.find(|row| row.metric == metric)?.value,
        }
    }
    fn completion(&self, flow: &str, number: u64, column: &str) -> Option<f64> {
        let row = self.tables.completions.get(&(flow.to_owned(), number))?;
        Some(COMPLETIONS.numeric_column(column)?.number(row))
    }
    fn lateness(&self, name: &str) -> Option<f64> {
        lateness::figure(self.lateness?, name)
    }
    fn variable(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }
}

/// A column of the halves of the measured interval: the kind of its subject, and the function that reads its value.
type HalfColumn = (&'static str, fn(&HalfRow) -> Option<f64>);

/// Returns the column of `halves.csv` that corresponds to a column of `flows.csv`, or of `links.csv` (`link_...`).
fn half_column(name: &str) -> Option<HalfColumn> {
    let column: HalfColumn = match name {
        "goodput_bps" | "measured_goodput_bps" => ("flow", |row: &HalfRow| row.goodput_bps),
        "link_throughput_bps" => ("link", |row: &HalfRow| row.throughput_bps),
        "link_mean_queue_delay_s" => ("link", |row: &HalfRow| row.mean_delay_s),
        _ => return None,
    };
    Some(column)
}

/// Returns the permitted difference between the halves of the measured interval, relative to their mean, for a metric
/// of a long-term rate or delay. Returns `None` if the metric is neither, or cannot be computed from halves.
pub(crate) fn half_tolerance(metric: &Metric) -> Option<f64> {
    let tolerance = match metric.unit.as_str() {
        unit if unit.ends_with("bit/s") || unit.ends_with("B/s") => 0.05,
        "s" | "ms" | "us" => 0.2,
        _ => return None,
    };
    let columns = metric.expression.columns()?;
    (!columns.is_empty() && columns.into_iter().all(|name| half_column(name).is_some())).then_some(tolerance)
}

/// One half (1 or 2) of a run's measured interval, for evaluations at a point.
pub(crate) struct HalfContext<'a> {
    pub(crate) tables: &'a MetricTables,
    pub(crate) numbers: &'a BTreeMap<String, f64>,
    pub(crate) half: u64,
}

impl EvaluationContext for HalfContext<'_> {
    fn column(&self, column: &str, pattern: &str) -> Vec<Option<f64>> {
        let Some((kind, value)) = half_column(column) else { return Vec::new() };
        let rows = self.tables.halves.iter().filter(|row| row.half == self.half && row.kind == kind);
        rows.filter(|row| flow_matches(pattern, &row.subject)).map(value).collect()
    }
    fn variable(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::Instant;

    fn flow(name: &str, marked_packets: u64) -> FlowRow {
        FlowRow { flow: name.to_owned(), marked_packets: Some(marked_packets), ..FlowRow::default() }
    }

    fn link(name: &str, marked_packets: u64, drop_ratio: Option<f64>) -> LinkRow {
        LinkRow { link: name.to_owned(), marked_packets, drop_ratio, ..LinkRow::default() }
    }

    fn at(tables: &MetricTables) -> PointContext<'_> {
        static NONE: BTreeMap<String, f64> = BTreeMap::new();
        PointContext { tables, numbers: &NONE, lateness: None }
    }

    #[test]
    fn columns_of_links_are_not_those_of_flows() {
        let flows = FLOWS.to_bytes([flow("core", 1), flow("core.reverse", 2)]);
        let links = LINKS.to_bytes([link("core", 3, None), link("core.reverse", 4, Some(0.5))]);
        let without = MetricTables::parse(&BTreeMap::from([(FLOWS.file, flows.clone())])).expect("a table");
        let both = MetricTables::parse(&BTreeMap::from([(FLOWS.file, flows.clone()), (LINKS.file, links)]));
        let both = both.expect("two tables");
        let value = |column, pattern| at(&both).column(column, pattern);
        assert_eq!(value("marked_packets", "core"), [Some(1.0)]);
        assert_eq!(value("link_marked_packets", "core"), [Some(3.0)]);
        assert_eq!(value("link_marked_packets", "c*.reverse"), [Some(4.0)]);
        assert_eq!(value("link_drop_ratio", "core"), [None]);
        assert_eq!(value("link_drop_ratio", "edge"), []);
        assert_eq!(at(&without).column("link_drop_ratio", "core"), []);
        let wrong = BTreeMap::from([(FLOWS.file, flows), (LINKS.file, b"name\n".to_vec())]);
        assert!(MetricTables::parse(&wrong).unwrap_err().to_string().contains("links.csv"));
    }

    #[test]
    fn measured_samples_are_those_after_the_warm_up() {
        let links = LINKS.to_bytes([LinkRow { from_s: Instant::from_nanos(2_000_000_000), ..link("core", 0, None) }]);
        let sample = |(seconds, subject, value): (u64, &str, f64)| SeriesRow {
            time_s: Instant::from_nanos(seconds * 1_000_000_000),
            subject: subject.to_owned(),
            metric: "drops".to_owned(),
            value: Some(value),
        };
        let series = [(1, "core", 5.0), (2, "core", 6.0), (3, "core", 7.0), (3, "other", 8.0)].map(sample);
        let series = SERIES.to_bytes(series);
        let wanted = WantedRows { series: [("core".to_owned(), "drops".to_owned())].into(), ..WantedRows::default() };
        let mut files = BTreeMap::from([(FLOWS.file, FLOWS.to_bytes([flow("core", 0)]))]);
        let tables = |files: &BTreeMap<_, _>| {
            MetricTables::parse(files).and_then(|tables| tables.with_series(&series[..], &wanted)).expect("tables")
        };
        assert_eq!(at(&tables(&files)).measured_series("core", "drops"), []);
        files.insert(LINKS.file, links);
        let tables = tables(&files);
        assert_eq!(at(&tables).measured_series("core", "drops"), [Some(7.0)]);
        assert_eq!(at(&tables).series("core", "drops", 1.0, 2.0), [Some(5.0), Some(6.0)]);
        // Not wanted, so not stored.
        assert_eq!(at(&tables).measured_series("other", "drops"), []);
    }

    #[test]
    fn completions_are_found_by_flow_and_number_if_a_metric_needs_them() {
        let completions = b"flow,number,started_s,completed_s,bytes\nf,1,2,3.5,15000\ng,1,2,9,7\nf,2,3,4.25,135000\n";
        let wanted =
            WantedRows { completions: [("f".to_owned(), 2), ("f".to_owned(), 3)].into(), ..WantedRows::default() };
        let files = BTreeMap::from([(FLOWS.file, FLOWS.to_bytes([flow("f", 0)]))]);
        let tables = MetricTables::parse(&files).and_then(|tables| tables.with_completions(&completions[..], &wanted));
        let tables = tables.expect("tables");
        let value = |flow, number, column| at(&tables).completion(flow, number, column);
        assert_eq!(
            [value("f", 2, "started_s"), value("f", 2, "completed_s"), value("f", 2, "bytes")],
            [Some(3.0), Some(4.25), Some(135_000.0)]
        );
        // The first exists but is not wanted, the third was not completed, and g is another flow.
        assert_eq!([value("f", 1, "bytes"), value("f", 3, "bytes"), value("g", 2, "bytes")], [None; 3]);
    }

    #[test]
    fn figures_are_found_by_flow_and_name() {
        let figure = |(flow, host, figure, value): (&str, &str, &str, f64)| FigureRow {
            flow: flow.to_owned(),
            host: host.to_owned(),
            figure: figure.to_owned(),
            value: Some(value),
        };
        let figures = [
            ("r1", "a", "responses_1kB", 3.0),
            ("r1", "a", "mean_response_1kB_s", 0.5),
            ("r2", "b", "responses_1kB", 4.0),
        ];
        let figures = FIGURES.to_bytes(figures.map(figure));
        let mut files = BTreeMap::from([(FLOWS.file, FLOWS.to_bytes([flow("r1", 0)])), (FIGURES.file, figures)]);
        let tables = MetricTables::parse(&files).expect("two tables");
        let value = |column, pattern| at(&tables).column(column, pattern);
        assert_eq!(value("figure_responses_1kB", "r*"), [Some(3.0), Some(4.0)]);
        assert_eq!(value("figure_responses_1kB", "r*@b"), [Some(4.0)]);
        assert_eq!(value("figure_responses_1kB", "r1@b"), []);
        assert_eq!(value("figure_mean_response_1kB_s", "r*"), [Some(0.5)]);
        assert_eq!(value("figure_responses_1kB", "x"), []);
        // An event's own row has its times; each further row has a recorded metric.
        let events = b"event,met_s,at_s,subject,metric,value\nfall,1.5,2,,,\nfall,1.5,2,f,cwnd_bytes,9\nrise,,,,,\n";
        files.insert(EVENTS.file, events.to_vec());
        let tables = MetricTables::parse(&files).expect("three tables");
        let event = |event, value| at(&tables).event(event, value);
        assert_eq!(
            [event("fall", "met_s"), event("fall", "at_s"), event("fall", "cwnd_bytes")],
            [Some(1.5), Some(2.0), Some(9.0)]
        );
        assert_eq!([event("rise", "at_s"), event("fall", "srtt_s"), event("other", "at_s")], [None; 3]);
        files.insert(FIGURES.file, b"a,b\n1,2\n".to_vec());
        assert!(MetricTables::parse(&files).unwrap_err().to_string().contains("figures.csv"));
    }
}
