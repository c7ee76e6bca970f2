//! All tests of the crate in one binary, which reduces build and link time.

mod run;
mod study;
mod tables;
