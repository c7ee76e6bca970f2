//! Tests of what applications send and when.

mod distributions;
mod exchanges;
mod sources;
mod streaming;
mod tmix;
mod way;
mod web;
mod web_pages;
