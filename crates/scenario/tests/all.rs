//! All tests of the crate in one binary, which reduces build and link time.

mod declared_keys;
mod events;
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
mod traces;
mod wifi;
mod wrong;
