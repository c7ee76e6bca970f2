//! The controls against closed forms, the RFCs' numbers, and random sequences of calls.

mod bbr1;
mod bbr3;
mod cubic;
mod dctcp;
mod pipe;
mod properties;
mod reno;
mod script;
mod simulator;
mod vegas;
