//! The tables of one run, read back for metrics: what counts is what is written, so a run that is reused gives the same
//! numbers as one that was just made.

use crate::archive::LINKS;
use crate::evaluate::{Environment, flow_matches};
use crate::expression::link_column;
use std::collections::BTreeMap;

/// The tables of a run, and the values of axes and parameters at a point.
#[derive(Debug)]
pub(crate) struct Tables {
    flows: Columns,
    links: Columns,
    /// Subject, metric, time, value.
    series: Vec<(String, String, f64, f64)>,
}

/// A table whose rows have names and else hold numbers, as far as anybody asks.
#[derive(Debug, Default)]
struct Columns {
    names: Vec<String>,
    columns: BTreeMap<String, Vec<Option<f64>>>,
}

impl Columns {
    /// Reads a file; `key` is the column of the names.
    fn parse(file: &str, key: &str, content: &[u8]) -> Result<Self, String> {
        let mut reader = csv::Reader::from_reader(content);
        let header = reader.headers().map_err(|reason| format!("{file}: {reason}"))?.clone();
        let missing = || format!("{file}: there is no column {key}");
        let key = header.iter().position(|name| name == key).ok_or_else(missing)?;
        let mut names = Vec::new();
        let mut columns: Vec<Vec<Option<f64>>> = vec![Vec::new(); header.len()];
        for record in reader.records() {
            let record = record.map_err(|reason| format!("{file}: {reason}"))?;
            names.push(record.get(key).unwrap_or("").to_owned());
            for (column, cell) in columns.iter_mut().zip(record.iter()) {
                column.push(cell.parse::<f64>().ok().filter(|number| number.is_finite()));
            }
        }
        Ok(Columns { names, columns: header.iter().map(str::to_owned).zip(columns).collect() })
    }

    /// A column over the rows whose names match.
    fn matching(&self, column: &str, pattern: &str) -> Vec<Option<f64>> {
        let Some(values) = self.columns.get(column) else { return Vec::new() };
        let rows = self.names.iter().zip(values);
        rows.filter(|(name, _)| flow_matches(pattern, name)).map(|(_, value)| *value).collect()
    }
}

impl Tables {
    /// Reads `flows.csv`, `series.csv` where it is needed, and `links.csv` where there is one.
    pub(crate) fn parse(flows: &[u8], series: Option<&[u8]>, links: Option<&[u8]>) -> Result<Self, String> {
        let flows = Columns::parse("flows.csv", "flow", flows)?;
        let links = links.map_or(Ok(Columns::default()), |links| Columns::parse(LINKS, "link", links))?;
        let mut tables = Tables { flows, links, series: Vec::new() };
        if let Some(series) = series {
            let mut reader = csv::Reader::from_reader(series);
            for record in reader.records() {
                let record = record.map_err(|reason| format!("series.csv: {reason}"))?;
                let number = |index: usize| record.get(index).and_then(|cell| cell.parse::<f64>().ok());
                if let (Some(time), Some(value)) = (number(0), number(3)) {
                    let text = |index: usize| record.get(index).unwrap_or("").to_owned();
                    tables.series.push((text(1), text(2), time, value));
                }
            }
        }
        Ok(tables)
    }
}

/// A run seen from a point.
pub(crate) struct AtPoint<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) numbers: &'a BTreeMap<String, f64>,
}

impl Environment for AtPoint<'_> {
    fn column(&self, column: &str, pattern: &str) -> Vec<Option<f64>> {
        match link_column(column) {
            Some(column) => self.tables.links.matching(column, pattern),
            None => self.tables.flows.matching(column, pattern),
        }
    }
    fn series(&self, subject: &str, metric: &str, from_s: f64, to_s: f64) -> Vec<Option<f64>> {
        let wanted =
            |row: &&(String, String, f64, f64)| row.0 == subject && row.1 == metric && (from_s..=to_s).contains(&row.2);
        self.tables.series.iter().filter(wanted).map(|row| Some(row.3)).collect()
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
            let tables = Tables::parse(flows, None, links).expect("two tables");
            AtPoint { tables: &tables, numbers: &BTreeMap::new() }.column(column, pattern)
        };
        assert_eq!(value(Some(links), "marked_packets", "core"), [Some(1.0)]);
        assert_eq!(value(Some(links), "link_marked_packets", "core"), [Some(3.0)]);
        assert_eq!(value(Some(links), "link_marked_packets", "c*.reverse"), [Some(4.0)]);
        assert_eq!(value(Some(links), "link_drop_ratio", "core"), [None]);
        assert_eq!(value(Some(links), "link_drop_ratio", "edge"), []);
        assert_eq!(value(None, "link_drop_ratio", "core"), []);
        assert!(Tables::parse(flows, None, Some(b"name\n")).unwrap_err().contains("links.csv"));
    }
}
