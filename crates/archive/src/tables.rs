//! Tables to which several components, such as access networks, add rows. The types of the rows are not visible here.

use crate::columns::Columns;
use crate::table::RecordTable;

/// Tables with the rows that were added so far.
///
/// ```
/// # fullpipe_archive::table! {
/// #     /// One row of `stations.csv`: the bytes that a station sent.
/// #     pub struct StationRow;
/// #     /// The stations of a run.
/// #     pub static STATIONS = "stations.csv": "One row for each station.";
/// #     station: String, "", "Name of the station.";
/// #     sent_bytes: u64, "bytes", "Bytes that the station sent.";
/// # }
/// let mut tables = fullpipe_archive::Tables::default();
/// for (station, sent_bytes) in [("first", 100), ("second", 200)] {
///     tables.add(&STATIONS, vec![StationRow { station: station.into(), sent_bytes }]);
/// }
/// assert_eq!(tables.columns("stations.csv").map(|columns| columns.column("sent_bytes")), Some(&[100.0, 200.0][..]));
/// let (_, bytes) = tables.files().next().expect("one file");
/// assert_eq!(bytes, b"station,sent_bytes\nfirst,100\nsecond,200\n");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tables(Vec<(Columns, Vec<u8>)>);

impl Tables {
    /// Adds rows to the table.
    pub fn add<R>(&mut self, table: &RecordTable<R>, rows: Vec<R>) {
        let bytes = table.to_bytes(&rows);
        let columns = table.to_columns(rows);
        match self.0.iter_mut().find(|(known, _)| known.file() == table.file) {
            Some((known, file)) => {
                // The header ends with the first line.
                file.extend(bytes.iter().skip_while(|byte| **byte != b'\n').skip(1));
                known.append(columns);
            }
            None => self.0.push((columns, bytes)),
        }
    }

    /// Returns the columns of a file; `None` if the file has no rows.
    pub fn columns(&self, file: &str) -> Option<&Columns> {
        self.0.iter().map(|(columns, _)| columns).find(|columns| columns.file() == file)
    }

    /// Returns the name and the content of each file, in the order of the first rows.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.0.iter().map(|(columns, file)| (columns.file(), file.as_slice()))
    }
}
