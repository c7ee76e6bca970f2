//! The congestion controls, and the list of them.
//!
//! The file of each control begins with its model and contains its declaration. A new control needs a file, and two
//! lines here.

pub mod bbr1;
pub mod bbr3;
pub mod bic;
pub mod copa;
pub mod cubic;
pub mod dctcp;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
pub mod illinois;
pub mod ledbat;
pub mod linux_reno;
pub mod lp;
pub mod newreno;
pub mod prague;
pub mod scalable;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod yeah;

use crate::component::ControlComponent;

/// All controls, in the order in which lists and the reference page contain them.
pub static CONTROLS: &[&ControlComponent] = &[
    &newreno::NEWRENO,
    &linux_reno::LINUX_RENO,
    &cubic::CUBIC,
    &bic::BIC,
    &highspeed::HIGHSPEED,
    &htcp::HTCP,
    &hybla::HYBLA,
    &illinois::ILLINOIS,
    &scalable::SCALABLE,
    &vegas::VEGAS,
    &veno::VENO,
    &westwood::WESTWOOD,
    &yeah::YEAH,
    &lp::LP,
    &ledbat::LEDBAT,
    &copa::COPA,
    &dctcp::DCTCP,
    &bbr1::BBR1,
    &bbr3::BBR3,
    &prague::PRAGUE,
];
