//! The report of whole folders of records.

mod corrupt;
mod page;
mod plots;
mod records;
mod suite;
