//! All tests of the crate in one binary, which saves building and linking one for each file.

mod declared_keys;
mod files;
mod former;
mod hostile;
mod lte;
mod presets;
mod queue_limits;
mod raw_quantity;
mod real_time;
mod reference;
mod round_trips;
mod wrong;
