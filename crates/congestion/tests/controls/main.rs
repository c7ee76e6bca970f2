//! The controls against closed forms, the RFCs' numbers, and random sequences of calls.

mod cubic;
mod properties;
mod reno;
mod simulator;
