//! The scenario language: one schema, spans, errors and a plain description.

pub mod description;
pub use description::Scenario;
