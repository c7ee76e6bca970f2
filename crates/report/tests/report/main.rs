//! Tests of the reports of whole folders of records.

mod compare;
mod corrupt;
mod page;
mod plots;
mod records;
mod suite;
