//! The scenario language: the schema of scenario files, their errors, and a plain description.
//!
//! [`load`] converts the text of a scenario file into a [`Scenario`], or returns errors with their places. [`schema`]
//! is the underlying crate, which other files use as well.

pub mod access;
pub mod description;
pub mod language;
pub mod simulator;

pub use description::Scenario;
pub use fullpipe_schema as schema;
pub use language::{Language, LoadedScenario, load, probe_metrics, reference_markdown, root_table};
pub use schema::{Error, Errors, Override, matches};
