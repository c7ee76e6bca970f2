//! All tests of the crate in one binary, which saves building and linking one for each file.

mod formats;
mod generate;
mod inverse;
mod load;
mod shuffle;
mod stats;
mod target;
mod traces;
