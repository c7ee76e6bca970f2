//! The scenario language: one schema, spans, errors and a plain description.
//!
//! [`load`] turns the text of a scenario file into a [`Scenario`], or says what is wrong with it and where. [`schema`]
//! is the crate underneath, for other files as well.

pub mod access;
pub mod description;
pub mod language;
pub mod simulator;

pub use description::Scenario;
pub use fullpipe_schema as schema;
pub use language::{Language, Loaded, load, probe_metrics, reference_markdown, root_table};
pub use schema::{Error, Errors, Override, matches};
