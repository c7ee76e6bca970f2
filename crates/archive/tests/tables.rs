//! Tables written, read back and read column by column.

use fullpipe_archive::{
    COMPLETIONS, Cell, CellKind, CompletionRow, FIGURES, FLOWS, FlowRow, LINKS, Point, RecordTable, ResultRow, Results,
    SERIES, SUMMARY, SeriesRow, SummaryRow, Verdict, read_summary,
};
use fullpipe_units::{Duration, Instant};
use proptest::prelude::*;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

fn flow() -> FlowRow {
    FlowRow {
        flow: "data".to_owned(),
        source: "a".to_owned(),
        destination: "b".to_owned(),
        protocol: "udp".to_owned(),
        tx_packets: 3,
        tx_bytes: 4500,
        first_tx_s: Some(Instant::from_nanos(7_009_616)),
        goodput_bps: Some(0.1),
        ..FlowRow::default()
    }
}

fn error<R: Default + Debug>(table: &RecordTable<R>, content: &str) -> String {
    table.read(Path::new("runs/1/file.csv"), content.as_bytes()).expect_err("a wrong file").to_string()
}

#[test]
fn flow_is_written_with_the_declared_columns() {
    let text = String::from_utf8(FLOWS.to_bytes([flow()])).expect("the table is UTF-8");
    let mut lines = text.lines();
    // The documented columns.
    assert_eq!(
        lines.next(),
        Some(
            "flow,source,destination,protocol,congestion,tx_packets,tx_bytes,rx_packets,rx_bytes,lost_packets,\
             delay_sum_s,jitter_sum_s,first_tx_s,last_tx_s,first_rx_s,last_rx_s,goodput_bps,completion_s,\
             retransmitted_packets,marked_packets,measured_goodput_bps,whole_goodput_bps,measured_from_s,\
             measured_tx_packets,measured_rx_packets,measured_rx_bytes,measured_lost_packets,measured_delay_sum_s,\
             measured_jitter_sum_s,main_direction,delay_p50_s,delay_p95_s,delay_p99_s"
        )
    );
    assert_eq!(lines.next(), Some("data,a,b,udp,,3,4500,0,0,0,,,0.007009616,,,,0.1,,,,,,,0,0,0,0,,,0,,,"));
    assert_eq!(lines.next(), None);
}

proptest! {
    #[test]
    fn lines_equal_those_of_the_csv_crate(
        texts in prop::collection::vec(("[a-z,\"\r\n #;]{0,6}", "[a-z,\"\r\n #;]{0,6}", any::<Option<u32>>(), any::<f64>()), 0..5),
    ) {
        let rows: Vec<SeriesRow> = texts.iter().map(|(subject, metric, time, value)| SeriesRow {
            time_s: Instant::from_nanos(u64::from(time.unwrap_or(0))),
            subject: subject.clone(),
            metric: metric.clone(),
            value: time.map(|_| *value),
        }).collect();
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(SERIES.names()).expect("writing to memory cannot fail");
        for row in &rows {
            let cells = SERIES.columns.iter().map(|column| {
                let mut text = String::new();
                (column.cell)(row).write_to(&mut text);
                text
            });
            writer.write_record(cells).expect("writing to memory cannot fail");
        }
        let expected = writer.into_inner().expect("writing to memory cannot fail");
        prop_assert_eq!(&SERIES.to_bytes(&rows), &expected);
        let mut written = Vec::new();
        SERIES.write(&rows, &mut written).expect("writing to memory cannot fail");
        prop_assert_eq!(&written, &expected);
    }
}

fullpipe_archive::table! {
    /// A row of `names.csv`.
    struct NameRow;
    /// A table of one column.
    static NAMES = "names.csv": "One row for each name.";
    name: String, "", "A name, which may be empty.";
}

#[test]
fn empty_cell_in_a_single_column_is_a_row() {
    let rows = ["", "a", ""].map(|name| NameRow { name: name.to_owned() });
    let bytes = NAMES.to_bytes(&rows);
    assert_eq!(String::from_utf8_lossy(&bytes), "name\n\"\"\na\n\"\"\n");
    assert_eq!(NAMES.read(Path::new(NAMES.file), &bytes[..]).expect("a valid file"), rows);
}

#[test]
fn columns_are_found_by_name_at_any_position() {
    let text = "bytes,extra,flow,started_s,number,completed_s\n9,x,web,0.5,1,2\n";
    let rows = COMPLETIONS.read(Path::new("completions.csv"), text.as_bytes()).expect("a valid file");
    let expected = CompletionRow {
        flow: "web".to_owned(),
        number: 1,
        started_s: Instant::from_nanos(500_000_000),
        completed_s: Instant::from_nanos(2_000_000_000),
        bytes: 9,
    };
    assert_eq!(rows, [expected]);
}

#[test]
fn wrong_table_error_has_line_column_and_expectation() {
    for (content, expected) in [
        (
            "flow,number,started_s,completed_s\n",
            "runs/1/file.csv: line 1: has no column `bytes`; its columns are `flow,number",
        ),
        (
            "flow,number,started_s,completed_s,bytes\na,1,0,1,5\na,2,0,x,5\n",
            "runs/1/file.csv: line 3: column `completed_s`: expected a number of seconds, found `x`",
        ),
        (
            "flow,number,started_s,completed_s,bytes\na,1,0,1,2.5\n",
            "line 2: column `bytes`: expected a count, found `2.5`",
        ),
        (
            "flow,number,started_s,completed_s,bytes\na,,0,1,2\n",
            "line 2: column `number`: expected a count, found nothing",
        ),
        ("flow,number,started_s,completed_s,bytes\na,1\n", "line 2: expected 5 fields, found 2"),
        ("", "file.csv: is empty, expected a line of column names"),
    ] {
        let error = error(&COMPLETIONS, content);
        assert!(error.contains(expected), "{error} is not: {expected}");
    }
    let error = error(&SERIES, "time_s,subject,metric,value\n0,a,b,inf\n");
    assert!(error.ends_with("line 2: column `value`: expected a number, found `inf`"), "{error}");
}

#[test]
fn a_column_that_may_be_empty_may_be_missing() {
    let text = "time_s,subject,metric\n0.25,core,drops\n";
    let rows = SERIES.read(Path::new("series.csv"), text.as_bytes()).expect("a file without values");
    let (subject, metric) = ("core".to_owned(), "drops".to_owned());
    assert_eq!(rows, [SeriesRow { time_s: Instant::from_nanos(250_000_000), subject, metric, value: None }]);
}

#[test]
fn columns_are_slices_and_unknown_names_are_errors() {
    let late = FlowRow { flow: "late".to_owned(), completion_s: Some(Duration::from_nanos(1)), ..FlowRow::default() };
    let columns = FLOWS.to_columns([flow(), late]);
    assert_eq!(columns.len(), 2);
    assert_eq!(columns.text_column("flow"), ["data", "late"]);
    assert_eq!(columns.column("tx_bytes"), [4500.0, 0.0]);
    assert!(columns.column("completion_s")[0].is_nan());
    assert_eq!(columns.column("completion_s")[1], 1e-9);
    let error = columns.find_column("goodput_bsp").expect_err("no such column").to_string();
    assert!(
        error.starts_with("flows.csv has no column of numbers `goodput_bsp`; did you mean `goodput_bps`?"),
        "{error}"
    );
    assert!(columns.find_column("flow").is_err() && columns.find_text_column("tx_bytes").is_err());
}

/// Possible content of a cell.
#[derive(Clone, Debug)]
struct Content {
    text: String,
    count: u64,
    number: f64,
    is_empty: bool,
}

fn content() -> impl Strategy<Value = Content> {
    let number = (-1.0..1.0_f64, -200..200_i32).prop_map(|(number, exponent)| number * 10_f64.powi(exponent));
    let text = "[a-z ,;\"'=\r\n\u{e9}]{0,8}";
    (text, any::<u64>(), number, any::<bool>()).prop_map(|(text, count, number, is_empty)| Content {
        text,
        count,
        number,
        is_empty,
    })
}

/// Writes rows of any content and reads them back.
fn round_trip<R: Default + Clone + PartialEq + Debug>(table: &RecordTable<R>, cells: &[Content]) {
    let row_of = |cells: &[Content]| {
        let mut row = R::default();
        for (column, content) in table.columns.iter().zip(cells) {
            // An optional text that is empty is read as `None`.
            let is_none = content.is_empty || column.kind == CellKind::Text && content.text.trim().is_empty();
            if is_none && column.is_optional {
                continue;
            }
            let cell = match column.kind {
                CellKind::Text => Cell::Text(content.text.as_str().into()),
                CellKind::Count => Cell::Count(content.count),
                CellKind::Seconds => Cell::Nanoseconds(content.count),
                CellKind::Number => Cell::Number(content.number),
            };
            let mut text = String::new();
            cell.write_to(&mut text);
            // Some texts are not valid points or verdicts.
            if !(column.set)(&mut row, &text) && column.kind == CellKind::Text {
                continue;
            }
            assert_eq!((column.cell)(&row), cell, "{}", column.name);
        }
        row
    };
    let rows: Vec<R> = cells.chunks_exact(table.columns.len()).map(row_of).collect();
    let bytes = table.to_bytes(rows.clone());
    assert_eq!(table.read(Path::new("written"), bytes.as_slice()).expect("the written table parses"), rows);
    let columns = table.read_columns(Path::new("written"), bytes.as_slice()).expect("the written table parses");
    assert_eq!(columns.len(), rows.len());
    for column in table.columns.iter().filter(|column| column.is_numeric()) {
        let read = columns.column(column.name).iter().map(|number| number.to_bits());
        assert!(read.eq(rows.iter().map(|row| column.number(row).to_bits())), "{}", column.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables_read_back_as_written(cells in prop::collection::vec(content(), 21..70)) {
        round_trip(&FLOWS, &cells);
        round_trip(&SUMMARY, &cells);
        round_trip(&SERIES, &cells);
        round_trip(&LINKS, &cells);
        round_trip(&FIGURES, &cells);
        round_trip(&COMPLETIONS, &cells);
    }
}

/// A file of a test, which is removed at the end of the test.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, content: &[u8]) -> Self {
        let file = std::env::temp_dir().join(format!("fullpipe-archive-{}-{name}", std::process::id()));
        std::fs::write(&file, content).expect("a temporary file can be written");
        Temporary(file)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn point(pairs: &[(&str, &str)]) -> Point {
    Point(pairs.iter().map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect())
}

#[test]
fn summary_reads_back_as_written() {
    let measured = SummaryRow {
        point: point(&[("experiment", "udp"), ("size", "10")]),
        metric: "goodput_bps".to_owned(),
        n: Some(3),
        mean: Some(2.5),
        ci95: Some(0.5),
        verdict: Some(Verdict::Differs),
        ..SummaryRow::default()
    };
    let claim = SummaryRow {
        metric: SummaryRow::metric_of_claim("more"),
        note: "a, \"b\"".to_owned(),
        ..SummaryRow::default()
    };
    let rows = [measured, claim];
    let bytes = SUMMARY.to_bytes(&rows);
    let text = String::from_utf8(bytes.clone()).expect("the summary is UTF-8");
    let lines: Vec<&str> = text.lines().collect();
    // The documented columns.
    assert_eq!(
        lines[0],
        "point,metric,unit,n,mean,ci95,low,high,min,median,max,published,published_runs,tolerance,verdict,support,source,note,\
         median_low,median_high"
    );
    assert_eq!(lines[1], "experiment=udp;size=10,goodput_bps,,3,2.5,0.5,,,,,,,,,differs,,,,,");
    assert_eq!(lines[2], r#",claim:more,,,,,,,,,,,,,,,,"a, ""b""",,"#);
    let file = Temporary::new("summary.csv", &bytes);
    assert_eq!(read_summary(&file.0).expect("the written summary parses"), rows);
    assert_eq!((rows[0].claim(), rows[1].claim(), rows[0].point.experiment()), (None, Some("more"), Some("udp")));
}

#[test]
fn wrong_summary_error_has_line_and_expectation() {
    let header = "point,metric,unit,n,mean,ci95,low,high,min,median,max,published,published_runs,tolerance,verdict,support,source,note\n";
    for (row, expected) in [
        ("size:10,a,,,,,,,,,,,,,,,,", "line 2: column `point`: expected `axis=value;axis=value`, found `size:10`"),
        (",a,,2.5,,,,,,,,,,,,,,", "line 2: column `n`: expected a count, found `2.5`"),
        (",a,,,,-1,,,,,,,,,,,,", "line 2: column `ci95`: expected a number of at least 0, found -1"),
        (
            ",a,,,,,,,,,,,,,right,,,",
            "line 2: column `verdict`: expected match, differs, undecided, explained, refuted, untrusted or nothing",
        ),
    ] {
        let file = Temporary::new("wrong-summary.csv", format!("{header}{row}\n").as_bytes());
        let error = read_summary(&file.0).expect_err("a wrong file").to_string();
        assert!(error.contains(expected), "{error} is not: {expected}");
    }
}

#[test]
fn results_read_back_as_written() {
    let row = |pairs: &[(&str, &str)], values: &[Option<f64>]| ResultRow {
        point: point(pairs),
        seed: 7,
        key: "ab".to_owned(),
        values: values.to_vec(),
    };
    let results = Results {
        axes: vec!["size".to_owned(), "shape".to_owned()],
        metrics: vec!["goodput_bps".to_owned(), "n".to_owned()],
        rows: vec![row(&[("size", "10")], &[Some(0.25), None]), row(&[("shape", "round")], &[None, Some(1e9)])],
    };
    let bytes = results.to_bytes();
    let text = "size,shape,seed,key,goodput_bps,n\n10,,7,ab,0.25,\n,round,7,ab,,1000000000\n";
    assert_eq!(String::from_utf8(bytes.clone()).expect("the results are UTF-8"), text);
    let file = Temporary::new("results.csv", &bytes);
    assert_eq!(Results::read(&file.0).expect("the written results parse"), results);
    for (old, new, expected) in [
        ("seed,key", "key,seed", "line 1: expected column `seed` before `key`, found it after"),
        ("seed", "sead", "line 1: has no column `seed`"),
        ("10,,7", "10,,x", "line 2: column `seed`: expected a count, found `x`"),
        ("ab,0.25", "../etc,0.25", "line 2: column `key`: expected letters, digits"),
        ("0.25", "much", "line 2: column `goodput_bps`: expected a number, found `much`"),
    ] {
        let file = Temporary::new("wrong-results.csv", text.replacen(old, new, 1).as_bytes());
        let error = Results::read(&file.0).expect_err("a wrong file").to_string();
        assert!(error.contains(expected), "{error} is not: {expected}");
    }
}
