//! All tests of the crate in one binary, which reduces build and link time.

mod architecture;
mod builder;
mod components;
mod errors;
mod evaluation;
mod floors;
mod stepping;
mod style;
mod type_names;
mod version;
