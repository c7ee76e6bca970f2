//! Tables of records as Arrow tables, which other libraries read without a copy through the Arrow C stream interface.

use crate::errors::FolderError;
use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{DataType, Field, Metadata, Schema};
use fullpipe::Outcome;
use fullpipe::archive::reference::{ColumnReference, TableReference, run_table_references, study_table_references};
use fullpipe::units::Instant;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::path::Path;
use std::sync::Arc;

/// A table with the Arrow C stream interface.
#[pyclass(frozen, module = "fullpipe._native")]
pub(crate) struct ArrowTable(RecordBatch);

#[pymethods]
impl ArrowTable {
    /// Returns the table as an Arrow C stream. A requested schema is ignored.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let reader = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }
}

/// The error of a conversion that cannot fail for tables that this package writes.
fn internal(error: impl std::fmt::Display) -> PyErr {
    FolderError::new_err(format!("cannot convert the table: {error}"))
}

fn field(name: &str, kind: DataType, reference: Option<&ColumnReference>) -> Field {
    let field = Field::new(name, kind, true);
    match reference {
        None => field,
        Some(reference) => {
            let texts = [("unit", reference.unit), ("description", reference.text)];
            field.with_metadata(
                texts.map(|(key, text)| (key.to_owned(), text.to_owned())).into_iter().collect::<Metadata>(),
            )
        }
    }
}

/// The declared tables.
fn references() -> impl Iterator<Item = TableReference> {
    run_table_references().into_iter().chain(study_table_references())
}

/// Reads a CSV file of records.
pub(crate) fn read_file(path: &Path) -> PyResult<ArrowTable> {
    let cannot = |error: std::io::Error| FolderError::new_err(format!("cannot read {}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(cannot)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    of_csv(&name, &bytes)
}

/// Converts a CSV file of records. Declared columns have their declared types. An undeclared column contains numbers if all
/// its cells are numbers or empty.
pub(crate) fn of_csv(file: &str, bytes: &[u8]) -> PyResult<ArrowTable> {
    let invalid = |error: csv::Error| FolderError::new_err(format!("{file}: {error}"));
    let declared = references().find(|table| table.file == file);
    let mut reader = csv::Reader::from_reader(bytes);
    let names: Vec<String> = reader.headers().map_err(invalid)?.iter().map(str::to_owned).collect();
    let mut cells: Vec<Vec<String>> = vec![Vec::new(); names.len()];
    for record in reader.records() {
        for (cells, cell) in cells.iter_mut().zip(record.map_err(invalid)?.iter()) {
            cells.push(cell.to_owned());
        }
    }
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for (name, cells) in names.iter().zip(&cells) {
        let reference = declared.iter().flat_map(|table| &table.columns).find(|column| column.name == name);
        let is_number = |cell: &String| cell.is_empty() || cell.parse::<f64>().is_ok();
        // The columns of axes in results.csv are not declared.
        let kind = match reference {
            Some(reference) => reference.kind,
            None if name != "key" && cells.iter().any(|cell| !cell.is_empty()) && cells.iter().all(is_number) => {
                "number"
            }
            None => "text",
        };
        let array: ArrayRef = match kind {
            "count" if cells.iter().all(|cell| cell.is_empty() || cell.parse::<u64>().is_ok()) => {
                let mut builder = UInt64Builder::with_capacity(cells.len());
                cells.iter().for_each(|cell| builder.append_option(cell.parse().ok()));
                Arc::new(builder.finish())
            }
            "count" | "seconds" | "number" => {
                let mut builder = Float64Builder::with_capacity(cells.len());
                cells.iter().for_each(|cell| builder.append_option(cell.parse().ok()));
                Arc::new(builder.finish())
            }
            _ => {
                let mut builder = StringBuilder::new();
                cells.iter().for_each(|cell| builder.append_value(cell));
                Arc::new(builder.finish())
            }
        };
        fields.push(field(name, array.data_type().clone(), reference));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(ArrowTable).map_err(internal)
}

/// Returns the samples of all probes of a run, from memory. Subjects and metrics are dictionaries.
pub(crate) fn of_series(outcome: &Outcome) -> PyResult<ArrowTable> {
    let declared = references().find(|table| table.file == "series.csv");
    let samples = outcome.numbered_samples();
    let (subjects, metrics): (Vec<&str>, Vec<&str>) = outcome.series_names().unzip();
    let (subject_numbers, subjects) = numbered(&subjects);
    let (metric_numbers, metrics) = numbered(&metrics);
    // One pass over the samples takes half of the time of a pass for each column.
    let mut times = Vec::with_capacity(samples.len());
    let mut subject_keys = Vec::with_capacity(samples.len());
    let mut metric_keys = Vec::with_capacity(samples.len());
    let mut values = Vec::with_capacity(samples.len());
    for (time, series, value) in samples {
        times.push(time.as_secs_f64());
        subject_keys.push(subject_numbers[*series as usize]);
        metric_keys.push(metric_numbers[*series as usize]);
        values.push(*value);
    }
    let dictionary = |keys: Vec<i32>, names| -> PyResult<ArrayRef> {
        let keys = Int32Array::from(keys);
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, names).map_err(internal)?))
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("time_s", Arc::new(Float64Array::from(times))),
        ("subject", dictionary(subject_keys, subjects)?),
        ("metric", dictionary(metric_keys, metrics)?),
        ("value", Arc::new(Float64Array::from(values))),
    ];
    of_columns(columns, declared.as_ref())
}

/// Returns the samples of one metric of one subject.
pub(crate) fn of_one_series(samples: impl Iterator<Item = (Instant, f64)>) -> PyResult<ArrowTable> {
    let (times, values): (Vec<f64>, Vec<f64>) = samples.map(|(time, value)| (time.as_secs_f64(), value)).unzip();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("time_s", Arc::new(Float64Array::from(times))), ("value", Arc::new(Float64Array::from(values)))];
    of_columns(columns, None)
}

fn of_columns(columns: Vec<(&str, ArrayRef)>, declared: Option<&TableReference>) -> PyResult<ArrowTable> {
    let reference = |name: &str| declared.and_then(|table| table.columns.iter().find(|column| column.name == name));
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| field(name, array.data_type().clone(), reference(name))).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(ArrowTable).map_err(internal)
}

/// Returns the distinct names in order, and for each series the number of its name. Several series have the same subject or
/// metric.
fn numbered(of_series: &[&str]) -> (Vec<i32>, Arc<StringArray>) {
    let mut unique: Vec<&str> = of_series.to_vec();
    unique.sort_unstable();
    unique.dedup();
    let numbers = of_series.iter().map(|name| unique.binary_search(name).expect("it is among them") as i32).collect();
    (numbers, Arc::new(StringArray::from(unique)))
}
