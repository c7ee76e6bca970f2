//! The tables of one run, read back for metrics: what counts is what is written, so a run that is reused gives the same
//! numbers as one that was just made. A cell that is neither empty nor a number is an error: then the run is made again.

use crate::archive::{FIGURES, LINKS};
use crate::evaluate::{Environment, end_of, flow_matches};
use crate::expression::{FLOW_COLUMNS, figure_name, link_column};
use crate::lateness;
use fullpipe_lab::{LINK_COLUMNS, SERIES_COLUMNS};
use serde_json::Value;
use std::collections::BTreeMap;

/// The tables of a run, and the values of axes and parameters at a point.
#[derive(Debug)]
pub(crate) struct Tables {
    flows: Columns,
    links: Columns,
    /// Flow, name, value.
    /// Flow, host, figure, value.
    figures: Vec<([String; 3], Option<f64>)>,
    /// Subject, metric, time, value.
    series: Vec<(String, String, f64, f64)>,
}

/// Columns of `figures.csv`.
const FIGURE_COLUMNS: [&str; 4] = ["flow", "host", "figure", "value"];

/// The rows of a file that has just these columns.
fn rows<'a>(
    file: &'a str,
    columns: &[&str],
    content: &'a [u8],
) -> impl Iterator<Item = Result<csv::StringRecord, String>> + use<'a> {
    let mut reader = csv::Reader::from_reader(content);
    let wrong = match reader.headers() {
        Ok(header) if header == columns => None,
        Ok(_) => Some(Err(format!("{file}: its columns are not {}", columns.join(", ")))),
        Err(reason) => Some(Err(format!("{file}: {reason}"))),
    };
    let whole = wrong.is_none();
    let records = reader.into_records().take_while(move |_| whole);
    wrong.into_iter().chain(records.map(move |record| record.map_err(|reason| format!("{file}: {reason}"))))
}

/// A number, or nothing in an empty cell.
fn number(file: &str, record: &csv::StringRecord, cell: usize) -> Result<Option<f64>, String> {
    let text = record.get(cell).unwrap_or("");
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    if number.is_none() && !text.is_empty() {
        let line = record.position().map_or(0, csv::Position::line);
        return Err(format!("{file}, line {line}: {text:?} is not a number"));
    }
    Ok(number)
}

/// A table whose rows have names and else hold numbers.
#[derive(Debug, Default)]
struct Columns {
    names: Vec<String>,
    columns: BTreeMap<String, Vec<Option<f64>>>,
}

impl Columns {
    /// Reads a file; `key` is the column of the names, `numbers` are the columns that may be asked for.
    fn parse(file: &str, key: &str, numbers: &[&str], content: &[u8]) -> Result<Self, String> {
        let mut reader = csv::Reader::from_reader(content);
        let header = reader.headers().map_err(|reason| format!("{file}: {reason}"))?.clone();
        let missing = || format!("{file}: there is no column {key}");
        let key = header.iter().position(|name| name == key).ok_or_else(missing)?;
        let mut names = Vec::new();
        let wanted = header.iter().enumerate().filter(|(_, name)| numbers.contains(name));
        let mut columns: Vec<(usize, Vec<Option<f64>>)> = wanted.map(|(cell, _)| (cell, Vec::new())).collect();
        for record in reader.records() {
            let record = record.map_err(|reason| format!("{file}: {reason}"))?;
            names.push(record.get(key).unwrap_or("").to_owned());
            for (cell, column) in &mut columns {
                column.push(number(file, &record, *cell)?);
            }
        }
        let columns = columns.into_iter().map(|(cell, column)| (header[cell].to_owned(), column)).collect();
        Ok(Columns { names, columns })
    }

    /// A column over the rows whose names match.
    fn matching(&self, column: &str, pattern: &str) -> Vec<Option<f64>> {
        let Some(values) = self.columns.get(column) else { return Vec::new() };
        let rows = self.names.iter().zip(values);
        rows.filter(|(name, _)| flow_matches(pattern, name)).map(|(_, value)| *value).collect()
    }
}

impl Tables {
    /// Reads `flows.csv`, `series.csv` where it is needed, and `links.csv` and `figures.csv` where there are any.
    pub(crate) fn parse(
        flows: &[u8],
        series: Option<&[u8]>,
        links: Option<&[u8]>,
        figures: Option<&[u8]>,
    ) -> Result<Self, String> {
        let flows = Columns::parse("flows.csv", "flow", FLOW_COLUMNS, flows)?;
        let links =
            links.map_or(Ok(Columns::default()), |links| Columns::parse(LINKS, "link", &LINK_COLUMNS[1..], links))?;
        let mut tables = Tables { flows, links, figures: Vec::new(), series: Vec::new() };
        for record in figures.map(|figures| rows(FIGURES, &FIGURE_COLUMNS, figures)).into_iter().flatten() {
            let record = record?;
            let names = [0, 1, 2].map(|column| record[column].to_owned());
            tables.figures.push((names, number(FIGURES, &record, 3)?));
        }
        for record in series.map(|series| rows("series.csv", &SERIES_COLUMNS, series)).into_iter().flatten() {
            let record = record?;
            // A moment without a value has nothing to tell.
            if let (Some(time), Some(value)) = (number("series.csv", &record, 0)?, number("series.csv", &record, 3)?) {
                tables.series.push((record[1].to_owned(), record[2].to_owned(), time, value));
            }
        }
        Ok(tables)
    }
}

/// A run seen from a point.
pub(crate) struct AtPoint<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) numbers: &'a BTreeMap<String, f64>,
    /// The run's account of lateness; null without one.
    pub(crate) lateness: &'a Value,
}

impl Environment for AtPoint<'_> {
    fn column(&self, column: &str, pattern: &str) -> Vec<Option<f64>> {
        match (link_column(column), figure_name(column)) {
            (Some(column), _) => self.tables.links.matching(column, pattern),
            (None, Some(figure)) => {
                let (flow, host) = end_of(pattern);
                let wanted = |(names, _): &&([String; 3], _)| {
                    names[2] == figure
                        && flow_matches(flow, &names[0])
                        && host.is_none_or(|host| flow_matches(host, &names[1]))
                };
                self.tables.figures.iter().filter(wanted).map(|(_, value)| *value).collect()
            }
            (None, None) => self.tables.flows.matching(column, pattern),
        }
    }
    fn series(&self, subject: &str, metric: &str, from_s: f64, to_s: f64) -> Vec<Option<f64>> {
        let wanted =
            |row: &&(String, String, f64, f64)| row.0 == subject && row.1 == metric && (from_s..=to_s).contains(&row.2);
        self.tables.series.iter().filter(wanted).map(|row| Some(row.3)).collect()
    }
    fn measured(&self, subject: &str, metric: &str) -> Vec<Option<f64>> {
        // All measured links have the same window.
        let from_s = self.tables.links.matching("from_s", "*").first().copied().flatten();
        let from_s = from_s.or_else(|| self.tables.links.matching("from_s", "*.reverse").first().copied().flatten());
        let Some(from_s) = from_s else { return Vec::new() };
        // A sample speaks of the time before it.
        let wanted = |row: &&(String, String, f64, f64)| row.0 == subject && row.1 == metric && row.2 > from_s;
        self.tables.series.iter().filter(wanted).map(|row| Some(row.3)).collect()
    }
    fn lateness(&self, name: &str) -> Option<f64> {
        lateness::figure(self.lateness, name)
    }
    fn name(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_links_are_not_those_of_flows() {
        let flows = b"flow,marked_packets\ncore,1\ncore.reverse,2\n";
        let links = b"link,marked_packets,drop_ratio\ncore,3,\ncore.reverse,4,0.5\n";
        let value = |links: Option<&[u8]>, column, pattern| {
            let tables = Tables::parse(flows, None, links, None).expect("two tables");
            AtPoint { tables: &tables, numbers: &BTreeMap::new(), lateness: &Value::Null }.column(column, pattern)
        };
        assert_eq!(value(Some(links), "marked_packets", "core"), [Some(1.0)]);
        assert_eq!(value(Some(links), "link_marked_packets", "core"), [Some(3.0)]);
        assert_eq!(value(Some(links), "link_marked_packets", "c*.reverse"), [Some(4.0)]);
        assert_eq!(value(Some(links), "link_drop_ratio", "core"), [None]);
        assert_eq!(value(Some(links), "link_drop_ratio", "edge"), []);
        assert_eq!(value(None, "link_drop_ratio", "core"), []);
        assert!(Tables::parse(flows, None, Some(b"name\n"), None).unwrap_err().contains("links.csv"));
    }

    #[test]
    fn measured_samples_are_those_after_the_warm_up() {
        let links = b"link,from_s\ncore.reverse,2\n";
        let series = b"time_s,subject,metric,value\n1,core,drops,5\n2,core,drops,6\n3,core,drops,7\n3,other,drops,8\n";
        let tables = |links| Tables::parse(b"flow\n", Some(series), links, None).expect("tables");
        let measured = |links| {
            AtPoint { tables: &tables(links), numbers: &BTreeMap::new(), lateness: &Value::Null }
                .measured("core", "drops")
        };
        assert_eq!(measured(Some(links.as_slice())), [Some(7.0)]);
        assert_eq!(measured(None), []);
    }

    #[test]
    fn figures_are_found_by_flow_and_name() {
        let figures =
            b"flow,host,figure,value\nr1,a,responses_1kB,3\nr1,a,mean_response_1kB_s,0.5\nr2,b,responses_1kB,4\n";
        let tables = Tables::parse(b"flow\nr1\n", None, None, Some(figures)).expect("two tables");
        let value = |column, pattern| {
            AtPoint { tables: &tables, numbers: &BTreeMap::new(), lateness: &Value::Null }.column(column, pattern)
        };
        assert_eq!(value("figure_responses_1kB", "r*"), [Some(3.0), Some(4.0)]);
        assert_eq!(value("figure_responses_1kB", "r*@b"), [Some(4.0)]);
        assert_eq!(value("figure_responses_1kB", "r1@b"), []);
        assert_eq!(value("figure_mean_response_1kB_s", "r*"), [Some(0.5)]);
        assert_eq!(value("figure_responses_1kB", "x"), []);
        assert!(Tables::parse(b"flow\n", None, None, Some(b"a,b\n1,2\n")).unwrap_err().contains("figures.csv"));
    }
}
