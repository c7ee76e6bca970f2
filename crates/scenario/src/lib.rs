//! The scenario language: one schema, spans, errors and a plain description.

pub mod description;
pub mod schema;
pub use description::Scenario;
