//! All tests of the crate in one binary, which saves the compilation and linking of one binary per file.

mod common;
mod contention;
mod phy;
