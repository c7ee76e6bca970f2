//! The files of a run and of a study. All tables, columns and keys are declared once, with a unit and a description.
//! Writing, reading and documentation follow from the declaration.
//!
//! A table consists of a type for its rows and a [`RecordTable`] of columns; [`table!`] declares both. A component with
//! its own table, such as an access network, declares the table in its own crate in the same way. Readers find columns
//! by name and ignore unknown columns. `docs/records.md` is generated from the declarations ([`mod@reference`]).
//!
//! ```
//! use fullpipe_archive::{FLOWS, FlowRow};
//! use std::path::Path;
//!
//! let row = FlowRow { flow: "data".into(), tx_packets: 7, goodput_bps: Some(5e6), ..FlowRow::default() };
//! let mut file = Vec::new();
//! FLOWS.write([row], &mut file).expect("writing to memory cannot fail");
//!
//! let flows = FLOWS.read_columns(Path::new("flows.csv"), file.as_slice()).expect("a valid file");
//! assert_eq!(flows.column("goodput_bps"), [5e6]);
//! assert!(flows.column("completion_s")[0].is_nan());
//! assert_eq!(flows.text_column("flow"), ["data"]);
//! ```

mod columns;
mod comparison;
mod error;
mod expectations;
mod flow_summary;
pub mod json;
mod matrix;
pub mod reference;
mod robustness;
mod run;
mod run_tables;
mod study;
mod summary;
mod table;
mod tables;
mod toml;
mod value;
mod warning;

pub use columns::{Columns, UnknownColumn};
pub use comparison::{COMPARISON, ComparisonRow};
pub use error::RecordError;
pub use expectations::{EXPECTATIONS, ExpectationRow};
pub use flow_summary::{DELAY_COLUMNS, FLOW_SUMMARY, FlowSummaryRow};
pub use matrix::{FINDINGS, Finding, FindingRow, MATRIX, MatrixRow};
pub use robustness::{CPU, CpuRow, ROBUSTNESS, RobustnessRow};
pub use run::{
    AuditRecord, BdpLimitRecord, ContentRecord, IcmpRecord, KernelEndRecord, KernelRecord, LatenessRecord,
    LatenessSpread, NatRecord, NegotiatedRecord, PacketCapture, PacketCounts, ProgramRecord, RefusedFrames,
    RunOptionsRecord, RunRecord,
};
pub use run_tables::{
    COMPLETIONS, CompletionRow, EVENTS, EventRow, FIGURES, FLOWS, FigureRow, FlowRow, HALVES, HalfRow, LINKS, LinkRow,
    SERIES, SeriesRow,
};
pub use study::{
    AxisOfStudy, AxisRecord, BOX_QUANTILES, Best, ClaimRecord, Clock, ExpectRecord, ExperimentRecord, LateRuns,
    LeftOut, MatrixCell, MatrixRecord, MatrixStatement, MetricRecord, ParameterRecord, Plot, PlotKind, PublishedRecord,
    STUDY, Scale, Scaling, ScenarioRecord, ScenarioSetting, StudyRecord,
};
pub use summary::{Point, ResultRow, Results, SUMMARY, SummaryRow, Verdict, describe_chance_verdicts, read_summary};
pub use table::{Column, RecordTable, TableReader};
pub use tables::Tables;
pub use toml::{AxisValue, Bound, MultilineText, Points, ScenarioSettings, SubTable, TomlValue, read_key};
pub use value::{Cell, CellKind, CellValue, parse_number};
pub use warning::{Warning, WarningKind};
