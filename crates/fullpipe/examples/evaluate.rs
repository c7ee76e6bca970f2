//! An evaluation by RFC 9743 of a control that is bad on purpose: a fixed window that ignores losses.
//!
//!     cargo run -p fullpipe --example evaluate

use fullpipe::congestion::{Ack, CongestionEvent, ControlRequirements, Controller, Timeout, WindowState};

/// A window of 300 segments, whatever happens.
#[derive(Debug)]
pub(crate) struct Fixed;

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { own_recovery: true, ..ControlRequirements::default() }
    }

    fn on_ack(&mut self, control: &mut WindowState, _: &Ack) {
        control.cwnd_bytes = 300 * control.mss_bytes;
    }

    fn on_congestion(&mut self, control: &mut WindowState, _: &CongestionEvent) {
        control.ssthresh_bytes = 300 * control.mss_bytes;
    }

    fn on_timeout(&mut self, control: &mut WindowState, _: &Timeout) {
        control.ssthresh_bytes = 300 * control.mss_bytes;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dossier = fullpipe::evaluate("fixed", |_| Box::new(Fixed)).quick().run()?;
    for cell in dossier.cells.iter().filter(|cell| cell.metric == "drop_ratio") {
        println!("{} {:>4} {:<8} {:.4}", cell.row, cell.column, cell.control, cell.worst.unwrap_or(0.0));
    }
    println!("report: {}", dossier.report.display());
    Ok(())
}
