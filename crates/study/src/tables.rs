//! The tables of one run, read back for metrics: what counts is what is written, so a run that is reused gives the same
//! numbers as one that was just made.

use crate::evaluate::{Environment, flow_matches};
use std::collections::BTreeMap;

/// The tables of a run, and the values of axes and parameters at a point.
#[derive(Debug)]
pub(crate) struct Tables {
    flows: Vec<String>,
    columns: BTreeMap<String, Vec<Option<f64>>>,
    /// Subject, metric, time, value.
    series: Vec<(String, String, f64, f64)>,
}

impl Tables {
    /// Reads `flows.csv`, and `series.csv` where it is needed.
    pub(crate) fn parse(flows: &[u8], series: Option<&[u8]>) -> Result<Self, String> {
        let mut tables = Tables { flows: Vec::new(), columns: BTreeMap::new(), series: Vec::new() };
        let mut reader = csv::Reader::from_reader(flows);
        let header = reader.headers().map_err(|reason| format!("flows.csv: {reason}"))?.clone();
        let names = header.iter().position(|name| name == "flow").ok_or("flows.csv: there is no column flow")?;
        let mut columns: Vec<Vec<Option<f64>>> = vec![Vec::new(); header.len()];
        for record in reader.records() {
            let record = record.map_err(|reason| format!("flows.csv: {reason}"))?;
            tables.flows.push(record.get(names).unwrap_or("").to_owned());
            for (column, cell) in columns.iter_mut().zip(record.iter()) {
                column.push(cell.parse::<f64>().ok().filter(|number| number.is_finite()));
            }
        }
        tables.columns = header.iter().map(str::to_owned).zip(columns).collect();
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
        let Some(values) = self.tables.columns.get(column) else { return Vec::new() };
        let rows = self.tables.flows.iter().zip(values);
        rows.filter(|(flow, _)| flow_matches(pattern, flow)).map(|(_, value)| *value).collect()
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
