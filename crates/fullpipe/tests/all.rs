//! All tests of the crate in one binary, which saves building and linking one for each file.

mod architecture;
mod builder;
mod components;
mod errors;
mod floors;
mod style;
mod version;
