//! The scenario language: one schema, spans, errors and a plain description.
//!
//! [`load`] turns the text of a scenario file into a [`Scenario`], or says what is wrong with it and where. [`schema`]
//! is the machinery underneath, for other files as well.

pub mod description;
pub mod language;
mod pattern;
pub mod schema;
pub mod simulator;

pub use description::Scenario;
pub use language::{Loaded, fading_kinds, load, path_loss_models, reference_markdown, stream_schedulers};
pub use pattern::matches;
pub use schema::{Error, Errors, Override};
