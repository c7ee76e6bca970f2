//! Tables of rows: their declaration, and the functions that write and read them as CSV files.

use crate::columns::{Columns, Data, UnknownColumn};
use crate::error::{RecordError, shorten};
use crate::value::{Cell, CellKind};
use std::borrow::Borrow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The number of bytes that are buffered before they are written.
const WRITE_BYTES: usize = 1 << 16;

/// Encloses the field that begins at `start` in quotation marks if necessary (RFC 4180).
fn quote(out: &mut String, start: usize) {
    if !out.as_bytes()[start..].iter().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n')) {
        return;
    }
    let field = out[start..].replace('"', "\"\"");
    out.truncate(start);
    out.extend(["\"", &field, "\""]);
}

/// The declaration of a CSV file whose rows are of type `R`.
#[derive(Debug)]
pub struct RecordTable<R: 'static> {
    /// The file's name.
    pub file: &'static str,
    /// One sentence: the subject of a row.
    pub text: &'static str,
    /// The columns in the order of the file.
    pub columns: &'static [Column<R>],
}

/// A column of a table.
#[derive(Debug)]
pub struct Column<R> {
    /// Name of the column in the file.
    pub name: &'static str,
    /// Unit of the values; empty for texts and dimensionless numbers.
    pub unit: &'static str,
    /// One sentence: the meaning of the column.
    pub text: &'static str,
    /// Type of the values.
    pub kind: CellKind,
    /// Whether a cell may be empty because there is no value.
    pub is_optional: bool,
    /// The values that a cell accepts, for messages.
    pub expected: &'static str,
    /// Returns the cell of the column in a row.
    pub cell: fn(&R) -> Cell<'_>,
    /// Sets the value in a row from the text of a cell. Returns false if the text is not a valid value.
    pub set: fn(&mut R, &str) -> bool,
}

/// Declares a table and the type of its rows. Each column has a name, a type, a unit and a sentence. The row type has a
/// field and a function with the name of each column; the function returns the column's declaration.
///
/// ```
/// fullpipe_archive::table! {
///     /// One row of `stations.csv`: the counters of a station.
///     pub struct StationRow;
///     /// The stations of a run.
///     pub static STATIONS = "stations.csv": "One row for each station.";
///     station: String, "", "Name of the station.";
///     sent_bytes: u64, "bytes", "Bytes that the station sent.";
///     mean_delay_s: Option<f64>, "s", "Mean delay of its frames.";
/// }
/// assert_eq!(STATIONS.names().collect::<Vec<_>>(), ["station", "sent_bytes", "mean_delay_s"]);
/// assert_eq!(StationRow::sent_bytes().unit, "bytes");
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[$row_attribute:meta])*
        $row_visibility:vis struct $Row:ident;
        $(#[$attribute:meta])*
        $visibility:vis static $TABLE:ident = $file:literal: $text:literal;
        $($column:ident: $Type:ty, $unit:literal, $column_text:literal;)+
    ) => {
        $(#[$row_attribute])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $row_visibility struct $Row {
            $(#[doc = $column_text] pub $column: $Type,)+
        }

        /// The columns.
        impl $Row {
            $(#[doc = $column_text] pub const fn $column() -> $crate::Column<$Row> {
                $crate::Column {
                    name: stringify!($column),
                    unit: $unit,
                    text: $column_text,
                    kind: <$Type as $crate::CellValue>::KIND,
                    is_optional: <$Type as $crate::CellValue>::IS_OPTIONAL,
                    expected: <$Type as $crate::CellValue>::EXPECTED,
                    cell: |row: &$Row| $crate::CellValue::to_cell(&row.$column),
                    set: |row: &mut $Row, text: &str| $crate::CellValue::set_from_text(&mut row.$column, text),
                }
            })+
        }

        $(#[$attribute])*
        $visibility static $TABLE: $crate::RecordTable<$Row> =
            $crate::RecordTable { file: $file, text: $text, columns: &[$($Row::$column()),+] };
    };
}

impl<R> Clone for Column<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Column<R> {}

impl<R> Column<R> {
    /// Returns the value in a row as a number; NaN if the cell is empty or a text.
    pub fn number(&self, row: &R) -> f64 {
        (self.cell)(row).number()
    }

    /// Returns whether the column contains numbers, including times.
    pub fn is_numeric(&self) -> bool {
        self.kind != CellKind::Text
    }
}

impl<R> RecordTable<R> {
    /// Returns the names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone + use<R> {
        self.columns.iter().map(|column| column.name)
    }

    /// Returns the names of the columns of numbers.
    pub fn numeric_names(&self) -> impl Iterator<Item = &'static str> + Clone + use<R> {
        self.columns.iter().filter(|column| column.is_numeric()).map(|column| column.name)
    }

    /// Returns the column of numbers with this name; `None` if there is none.
    pub fn numeric_column(&self, name: &str) -> Option<&'static Column<R>> {
        self.columns.iter().find(|column| column.name == name && column.is_numeric())
    }

    /// Returns the column of numbers with this name, or an error with the nearest name.
    ///
    /// # Errors
    /// If the table has no such column of numbers.
    pub fn find_numeric_column(&self, name: &str) -> Result<&'static Column<R>, UnknownColumn> {
        let unknown = || UnknownColumn::new(self.file, "numbers", name, self.numeric_names());
        self.numeric_column(name).ok_or_else(unknown)
    }

    /// Writes the header and the rows.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&self, rows: impl IntoIterator<Item = impl Borrow<R>>, mut out: impl Write) -> io::Result<()> {
        let mut text = self.header();
        for row in rows {
            self.append_row(row.borrow(), &mut text);
            if text.len() >= WRITE_BYTES {
                out.write_all(text.as_bytes())?;
                text.clear();
            }
        }
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Returns the header line, as [`RecordTable::write`] writes it.
    pub fn header(&self) -> String {
        let mut line = String::new();
        for (index, name) in self.names().enumerate() {
            if index > 0 {
                line.push(',');
            }
            line.push_str(name);
        }
        line.push('\n');
        line
    }

    /// Appends the line of a row, as [`RecordTable::write`] writes it, for tables that are written during a run.
    pub fn append_row(&self, row: &R, out: &mut String) {
        let line = out.len();
        for (index, column) in self.columns.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            let start = out.len();
            let cell = (column.cell)(row);
            cell.write_to(out);
            if matches!(cell, Cell::Text(_)) {
                quote(out, start);
            }
        }
        // An empty line is not a row, so write an empty quoted cell.
        if out.len() == line {
            out.push_str("\"\"");
        }
        out.push('\n');
    }

    /// Returns the content of the file, as [`RecordTable::write`] writes it.
    pub fn to_bytes(&self, rows: impl IntoIterator<Item = impl Borrow<R>>) -> Vec<u8> {
        let mut text = self.header();
        rows.into_iter().for_each(|row| self.append_row(row.borrow(), &mut text));
        text.into_bytes()
    }

    /// Converts rows into columns.
    pub fn to_columns(&self, rows: impl IntoIterator<Item = R>) -> Columns {
        let mut length = 0;
        let empty = |column: &Column<R>| match column.kind {
            CellKind::Text => Data::Texts(Vec::new()),
            CellKind::Count | CellKind::Seconds | CellKind::Number => Data::Numbers(Vec::new()),
        };
        let mut columns: Vec<(&'static str, Data)> =
            self.columns.iter().map(|column| (column.name, empty(column))).collect();
        for row in rows {
            length += 1;
            for (column, (_, data)) in self.columns.iter().zip(&mut columns) {
                let cell = (column.cell)(&row);
                match data {
                    Data::Numbers(numbers) => numbers.push(cell.number()),
                    Data::Texts(texts) => texts.push(match cell {
                        Cell::Text(text) => text.into_owned(),
                        _ => String::new(),
                    }),
                }
            }
        }
        Columns::new(self.file, length, columns)
    }
}

impl<R: Default> RecordTable<R> {
    /// Reads the header and returns a reader of the rows; `file` is the name of the file in messages.
    ///
    /// # Errors
    /// If the header cannot be read, or lacks a column whose cells are never empty.
    pub fn reader<I: Read>(&self, file: &Path, input: I) -> Result<TableReader<R, I>, RecordError> {
        TableReader::new(self, CsvLines::new(file, input)?)
    }

    /// Opens a file and reads its header. [`TableReader::read_next`] reads the rows.
    ///
    /// # Errors
    /// The errors of [`RecordTable::reader`], or an error if the file cannot be opened.
    pub fn open(&self, file: &Path) -> Result<TableReader<R, File>, RecordError> {
        TableReader::new(self, CsvLines::open(file)?)
    }

    /// Reads all rows.
    ///
    /// # Errors
    /// If the input cannot be read, a column is missing, or a cell does not match the declaration of its column.
    pub fn read(&self, file: &Path, input: impl Read) -> Result<Vec<R>, RecordError> {
        self.reader(file, input)?.rows()
    }

    /// Reads all rows into columns.
    ///
    /// # Errors
    /// The errors of [`RecordTable::read`].
    pub fn read_columns(&self, file: &Path, input: impl Read) -> Result<Columns, RecordError> {
        Ok(self.to_columns(self.read(file, input)?))
    }
}

/// A reader of the rows of a table.
#[derive(Debug)]
pub struct TableReader<R: 'static, I> {
    lines: CsvLines<I>,
    /// The columns in the file, with their indices in the file.
    places: Vec<(usize, &'static Column<R>)>,
}

impl<R: Default, I: Read> TableReader<R, I> {
    fn new(table: &RecordTable<R>, lines: CsvLines<I>) -> Result<Self, RecordError> {
        let mut places = Vec::with_capacity(table.columns.len());
        for column in table.columns {
            match lines.header().iter().position(|name| name == column.name) {
                Some(place) => places.push((place, column)),
                None if column.is_optional => {}
                None => return Err(lines.missing(column.name)),
            }
        }
        Ok(TableReader { lines, places })
    }

    /// Returns whether the file has this column.
    pub fn has_column(&self, column: &str) -> bool {
        self.places.iter().any(|(_, known)| known.name == column)
    }

    /// Reads the next row into `row`; returns false at the end. Before the first call, `row` is `R::default()`.
    ///
    /// # Errors
    /// If the row cannot be read, or a cell does not match the declaration of its column.
    pub fn read_next(&mut self, row: &mut R) -> Result<bool, RecordError> {
        if !self.lines.advance()? {
            return Ok(false);
        }
        for (place, column) in &self.places {
            let text = self.lines.text(*place);
            if !(column.set)(row, text) {
                return Err(self.lines.unexpected(column.name, column.expected, text));
            }
        }
        Ok(true)
    }

    /// Creates an error that refers to the row that was read last.
    pub fn error(&self, problem: impl Into<String>) -> RecordError {
        self.lines.problem(problem)
    }

    /// Reads the remaining rows.
    ///
    /// # Errors
    /// The errors of [`TableReader::read_next`].
    pub fn rows(mut self) -> Result<Vec<R>, RecordError> {
        let mut rows = Vec::new();
        loop {
            let mut row = R::default();
            if !self.read_next(&mut row)? {
                return Ok(rows);
            }
            rows.push(row);
        }
    }
}

/// The lines of a CSV file, with access to cells by index.
#[derive(Debug)]
pub(crate) struct CsvLines<I> {
    file: PathBuf,
    header: Vec<String>,
    reader: csv::Reader<I>,
    record: csv::StringRecord,
}

impl CsvLines<File> {
    /// Opens a file and reads its header.
    pub(crate) fn open(file: &Path) -> Result<Self, RecordError> {
        CsvLines::new(file, File::open(file).map_err(|cause| RecordError::read(file, cause))?)
    }
}

impl<I: Read> CsvLines<I> {
    fn new(file: &Path, input: I) -> Result<Self, RecordError> {
        let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(input);
        let header = match reader.headers() {
            Ok(header) => header.iter().map(str::to_owned).collect::<Vec<_>>(),
            Err(error) => return Err(RecordError::of_csv(file, error)),
        };
        if header.iter().all(String::is_empty) {
            return Err(RecordError::invalid(file, None, "is empty, expected a line of column names"));
        }
        Ok(CsvLines { file: file.to_path_buf(), header, reader, record: csv::StringRecord::new() })
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    fn missing(&self, column: &str) -> RecordError {
        let found = self.header.join(",");
        RecordError::invalid(&self.file, Some(1), format!("has no column `{column}`; its columns are `{found}`"))
    }

    /// Returns the index of a required column.
    pub(crate) fn place(&self, column: &str) -> Result<usize, RecordError> {
        self.header.iter().position(|name| name == column).ok_or_else(|| self.missing(column))
    }

    /// Advances to the next line; returns false at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, RecordError> {
        self.reader.read_record(&mut self.record).map_err(|error| RecordError::of_csv(&self.file, error))
    }

    pub(crate) fn text(&self, place: usize) -> &str {
        self.record.get(place).unwrap_or("")
    }

    pub(crate) fn problem(&self, problem: impl Into<String>) -> RecordError {
        RecordError::invalid(&self.file, Some(self.record.position().map_or(1, csv::Position::line)), problem)
    }

    pub(crate) fn unexpected(&self, column: &str, expected: &str, found: &str) -> RecordError {
        let found = if found.is_empty() { "nothing".to_owned() } else { format!("`{}`", shorten(found)) };
        self.problem(format!("column `{column}`: expected {expected}, found {found}"))
    }
}
