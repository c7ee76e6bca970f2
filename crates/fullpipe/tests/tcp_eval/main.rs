//! Tests of the study `tcp-eval`: its loads equal the results of `find-target`, the open issues of the suite's ns-3
//! implementation (WNS3 2017, section 6) do not exist in Fullpipe, and traces can be read from a folder.

mod cost;
mod issues;
mod presets;
mod targets;
mod traces;
