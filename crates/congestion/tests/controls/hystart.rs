//! HyStart++ (RFC 9406) in every control that has it, in the closed loop. `src/hystart.rs` tests its rules.

use crate::pipe::{Pipe, Sender};
use crate::simulator::{MSS, instant};
use fullpipe_congestion::catalogue::{ControlOptions, HyStartSupport};
use fullpipe_congestion::controls::CONTROLS;
use fullpipe_units::{Duration, Instant};

/// The window in segments and the losses when the first slow start ends.
fn end_of_slow_start(name: &str, hystart_all: bool) -> (f64, u64) {
    let mut pipe = Pipe::new(10_000_000, 400 * MSS, 1);
    let options = ControlOptions { hystart_all, ..ControlOptions::default() };
    pipe.add_with(name, Duration::from_millis(40), Instant::ZERO, options);
    let mut end = None;
    pipe.run_watching(instant(10.0), |_, sender: &Sender, bottleneck| {
        if sender.control.ssthresh_bytes < u64::MAX && end.is_none() {
            end = Some((sender.window(), bottleneck.drops));
        }
    });
    end.expect("slow start ends within ten seconds")
}

#[test]
fn with_hystart_every_control_leaves_slow_start_before_the_first_loss() {
    // 10 Mbit/s and 40 ms hold 36 segments, and the buffer 400. The round that begins with 80 segments is the first whose smallest
    // round-trip time has grown by more than 5 ms, an eighth. Eight of its acknowledgments count for one segment each, the others for a
    // quarter: 80 + 8 + 72 / 4 = 106. Four more rounds grow by a quarter each: 106 * 1.25^4 = 258.8 segments. Without HyStart++, slow
    // start ends when the window has exceeded 436 segments. YeAH is different: it reduces a queue of more than 80 segments.
    for component in CONTROLS.iter().filter(|component| component.hystart != HyStartSupport::None) {
        let name = component.declaration.name;
        let (with, without) = (end_of_slow_start(name, true), end_of_slow_start(name, false));
        println!("{name}: {with:?} with HyStart++, {without:?} without");
        assert_eq!(with.1, 0, "{name}");
        if name != "yeah" {
            assert!((with.0 / 258.8 - 1.0).abs() < 0.02, "{name}: {}", with.0);
            assert!(without.1 > 0, "{name}");
        }
    }
}

#[test]
fn without_support_the_switch_changes_nothing() {
    for component in CONTROLS.iter().filter(|component| component.hystart == HyStartSupport::None) {
        let name = component.declaration.name;
        if !["bbr1", "bbr3"].contains(&name) {
            let windows = [false, true].map(|hystart_all| {
                let mut pipe = Pipe::new(10_000_000, 400 * MSS, 1);
                let options = ControlOptions { hystart_all, ..ControlOptions::default() };
                pipe.add_with(name, Duration::from_millis(40), Instant::ZERO, options);
                pipe.run(5.0);
                pipe.senders[0].control.cwnd_bytes
            });
            assert_eq!(windows[0], windows[1], "{name}");
        }
    }
}
