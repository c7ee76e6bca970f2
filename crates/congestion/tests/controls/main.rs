//! Tests of the controls against closed forms, numbers of the RFCs, and random sequences of calls.

mod bbr1;
mod bbr3;
mod bic;
mod copa;
mod cubic;
mod dctcp;
mod highspeed;
mod htcp;
mod hybla;
mod hystart;
mod illinois;
mod laws;
mod ledbat;
mod lp;
mod pipe;
mod properties;
mod rate_limited;
mod reference;
mod reno;
mod scalable;
mod script;
mod simulator;
mod vegas;
mod veno;
mod westwood;
mod yeah;
