//! All tests of the crate in one binary, which saves building and linking one binary per file.

mod bytes;
mod lengths;
