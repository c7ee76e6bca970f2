//! Tests of the study `tcp-eval`: its loads are those that `find-target` computes, the open issues of the suite's ns-3
//! implementation (WNS3 2017, section 6) do not exist here, and traces can be read from a folder.

mod cost;
mod issues;
mod targets;
mod traces;
