//! All tests of the crate in one binary, which saves the compilation and linking of one binary per file.

mod formats;
mod generate;
mod inverse;
mod load;
mod shuffle;
mod stats;
mod target;
mod traces;
