//! All tests of the crate in one binary, which saves the compilation and linking of one binary per file.

mod applications;
mod declared_workloads;
