//! Writes `series.csv` in chunks during a run.

use crate::options::SampleOutput;
use fullpipe_archive::{SERIES, SeriesRow};
use fullpipe_units::Instant;
use std::io;
use std::mem;

/// Bytes of text that are buffered before they are written, regardless of the length of the run.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// The file and its unwritten text.
#[derive(Debug)]
pub(crate) struct SeriesFile {
    to: SampleOutput,
    /// The last row of each series, with subject and metric, by the number of the series.
    rows: Vec<SeriesRow>,
    text: String,
    has_pieces: bool,
    written: io::Result<()>,
}

impl SeriesFile {
    /// Creates a file for series with these subjects and metrics.
    pub(crate) fn new<'a>(to: SampleOutput, names: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let row = |(subject, metric): (&str, &str)| SeriesRow {
            subject: subject.to_owned(),
            metric: metric.to_owned(),
            ..SeriesRow::default()
        };
        let (rows, text) = (names.map(row).collect(), SERIES.header());
        SeriesFile { to, rows, text, has_pieces: false, written: Ok(()) }
    }

    /// Adds a sample of a series.
    pub(crate) fn add(&mut self, at: Instant, number: usize, value: f64) {
        let row = &mut self.rows[number];
        (row.time_s, row.value) = (at, Some(value));
        SERIES.append_row(row, &mut self.text);
        if self.text.len() >= PIECE_BYTES {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.written.is_ok() {
            self.written = (self.to.append)(SERIES.file, self.text.as_bytes());
        }
        self.text.clear();
        self.has_pieces = true;
    }

    /// Writes the remaining text, if a chunk was written before.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.has_pieces && !self.text.is_empty() {
            self.write();
        }
        mem::replace(&mut self.written, Ok(()))
    }

    /// Returns the complete file, if no chunk was written.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        (!self.has_pieces).then_some(self.text.as_bytes())
    }
}
