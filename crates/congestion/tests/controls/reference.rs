//! Reference runs: the window of each control over half a minute on one short path, stored in `data/reference.csv`. They detect a
//! change of behavior that no other test detects. The first tests below compare runs on the same path without the scripted losses
//! with the values derived from each control's source.
//!
//! **The path.** 10 Mbit/s, 40 ms, packets of 1448 bytes, each of which takes s = 1.1584 ms. 34.53 packets fit into the 40 ms,
//! 35.53 with the one in transmission. The queue holds 40 packets, including that one: of a window of 75, one is lost. While
//! there is a queue, the round-trip time of a window w is w s. In addition, packet 9000 is lost, and all packets that arrive
//! between 20.0 and 20.1 s, after which the sender times out. The queue of DCTCP and Prague marks packets that arrive when more than 12 are
//! queued.
//!
//! After an intended change that has been checked against the source of the control:
//! `FULLPIPE_UPDATE=1 cargo test -p fullpipe-congestion --test controls reference`.

use crate::pipe::{Pipe, Sender};
use crate::simulator::{MSS, instant};
use fullpipe_congestion::catalogue::DECLARATIONS;
use fullpipe_units::{Duration, Instant};
use std::fmt::Write;

/// Transmission time of a packet on the link.
const PACKET_S: f64 = 1.158_4e-3;
/// The capacity of the path without a queue, in packets.
const HELD: f64 = 35.53;

fn path(name: &str) -> Pipe {
    let mut pipe = Pipe::new(10_000_000, 40 * MSS, 1);
    if ["dctcp", "prague"].contains(&name) {
        pipe.bottleneck.mark_above_bytes = 12 * MSS;
    }
    pipe.add(name, Duration::from_millis(40), Instant::ZERO, 1);
    pipe
}

/// A decrease of the window by more than a twentieth at one acknowledgement: the time, and the windows before and after.
#[derive(Clone, Copy, Debug)]
struct Fall {
    at: f64,
    from: f64,
    to: f64,
}

fn falls(pipe: &mut Pipe, from_seconds: f64, until_seconds: f64) -> Vec<Fall> {
    pipe.run(from_seconds);
    let mut falls = Vec::new();
    let mut last = pipe.senders[0].window();
    pipe.run_watching(instant(until_seconds), |now, sender: &Sender, _| {
        let window = sender.window();
        if window < 0.95 * last {
            falls.push(Fall { at: now.as_secs_f64(), from: last, to: window });
        }
        last = window;
    });
    falls
}

/// The share of the window that remains after the queue overflows, and the seconds between two such losses. A loss is detected at
/// P, a round trip after the window reached 75. The recovery lasts as long, P s, without growth. If the window grows by a per
/// round trip, the rest of a period is the integral of w s / a from the remaining window to P.
const FULL_QUEUE: [(&str, f64, f64); 12] = [
    // Reno: a = 1, P = 76, half: s ((76^2 - 38^2) / 2 + 76) = 2242 s.
    ("newreno", 0.5, 2.597),
    ("linux-reno", 0.5, 2.597),
    // YeAH: below 100 segments the fast mode grows by one as well; Q = 76 - 34.5 are queued, more than half.
    ("yeah", 0.5, 2.597),
    // Two alternating kinds of period. P = 75.85 is detected while the window grew as in Reno. The next curve has its plateau
    // there, at K = cbrt(0.3 * 75.85 / 0.4) = 3.85 s, and passes 75 at cbrt(0.85 / 0.4) = 1.29 s before that. The window is a
    // round trip ahead of the curve and the detection a round trip behind, so the loss is detected 2.56 s into the curve, and
    // 2.74 s after the previous one. P = 75.16 is then less than 75.85: with fast convergence, the next curve has its plateau at
    // 63.9 and is always below Reno's window. That grows from 52.6 by 0.529 per round trip, and by one from 75.16 on: s (75.16^2
    // - 52.6^2) / 2 / 0.529 and 1.4 round trips: 3.30 s.
    ("cubic", 0.7, 3.02),
    // RFC 3649: b(76) = 0.5 - 0.4 ln 2 / ln(83000 / 38) = 0.464, a from 1.004 at 41 over 1.269 at 58.5 to 1.506 at 76;
    // w / a = 40.85, 46.11, 50.46, Simpson over 35.5 segments: 1632 s; and 76 s.
    ("highspeed", 0.536, 1.978),
    // beta = 41.2 / 86.9, at least half. P^2 / 2 = (P / 2)^2 / 2 + A(D) / s with A = D + 5 (D-1)^2 + (D-1)^3 / 12 less 0.09 of
    // recovery: 75 after 1.438 s, when alpha is 5.4; 80.8 a round trip later.
    ("htcp", 0.5, 1.525),
    // rho = 40/25, a = 2.56, P = 77.56: s ((77.56^2 - 38.78^2) / 2 / 2.56 + 77.56) = 959 s.
    ("hybla", 0.5, 1.111),
    // Below 100 segments one per round trip: s ((76^2 - 66.5^2) / 2 + 76) = 753 s.
    ("scalable", 0.875, 0.872),
    // dm = 46.9 ms, da = w s - 40 ms: 1 / alpha = 0.1 + (da - 0.47) * 97/3 / 464 = 0.080722 w - 2.7201. From 37.7 to 75.3: 0.080722
    // (75.3^3 - 37.7^3) / 3 - 2.7201 (75.3^2 - 37.7^2) / 2 = 4276 s, and 75.3 s. From eight tenths of dm half.
    ("illinois", 0.5, 5.041),
    // More than three queued, above 37.5, all the time: a = 1/2, P = 75.5: s ((75.5^2 - 37.75^2) + 75.5) = 4351 s.
    ("veno", 0.5, 5.040),
    // 10 Mbit/s times 40 ms: 34.53 left of 76; a round trip of 35.53 s up to 35.53, then s ((76^2 - 35.53^2) / 2 + 76).
    ("westwood", 0.4543, 2.743),
    // Two alternating kinds of period. P = 78.8 is the next maximum. From 69.0 the window grows by half of the distance, 4.9 and
    // 2.45 per round trip, and reaches 75 after 1.5 of them. The loss is detected at 76.9 one round trip later, then the
    // recovery: 0.30 s. This was below the maximum, so the next maximum is the midpoint of 76.9 and 67.3, 72.1, which is reached
    // after ten halvings. Then follow steps of 1, 2 and most of 4, one more round trip, and the recovery: 1.09 s.
    ("bic", 0.875, 0.693),
];

#[test]
fn runs_without_scripted_losses_match_the_values_derived_from_the_sources() {
    for (name, left, period) in FULL_QUEUE {
        let falls = falls(&mut path(name), 10.0, 70.0);
        let shares: Vec<f64> = falls.iter().map(|fall| fall.to / fall.from).collect();
        let (first, last) = (falls.first().expect("a fall"), falls.last().expect("a fall"));
        let found = (last.at - first.at) / (falls.len() - 1) as f64;
        println!("{name}: {} falls, period {found:.3}, {period}; left {shares:.3?}", falls.len());
        assert!(shares.iter().all(|share| (share / left - 1.0).abs() < 0.02), "{name}: {shares:?}, expected {left}");
        assert!((found / period - 1.0).abs() < 0.1, "{name}: {found} s, expected {period}");
        assert!(falls.iter().all(|fall| fall.from >= 75.0 && fall.from < 85.0), "{name}: {falls:?}");
    }
}

#[test]
fn vegas_without_scripted_losses_keeps_two_to_four_segments_queued() {
    // n whole segments in flight take n s, and the measure is w (n s - 40 ms) / 40 ms. From 36 on it is 1.5, and the window grows.
    // From 37 on it is 2.6 and from 38 on 3.8, and the window does not change. From 39 on it is 5.0.
    let mut pipe = path("vegas");
    pipe.run(10.0);
    for second in 11..=30 {
        pipe.run(f64::from(second));
        let window = pipe.senders[0].window();
        assert!((37.0..39.0).contains(&window), "{window}");
    }
    assert_eq!(pipe.bottleneck.drops, 0);
}

#[test]
fn dctcp_without_scripted_losses_oscillates_around_the_marking_threshold() {
    // SIGCOMM 2010 section 3.3: W* = 35.53 + 12; alpha^2 (1 - alpha/4) = (2 W* + 1) / (W* + 1)^2 = 0.04079: the mean of alpha is
    // 0.2074. A mark occurs every (W* + 1) alpha/2 = 5.03 round trips of (W* - 2.5) s, rounded to whole ones.
    let mut pipe = path("dctcp");
    let falls = falls(&mut pipe, 10.0, 70.0);
    let round_trip_s = (HELD + 12.0 - 2.5) * PACKET_S;
    let round_trips = (falls[falls.len() - 1].at - falls[0].at) / (falls.len() - 1) as f64 / round_trip_s;
    let (mut alphas, mut count) = (0.0, 0.0);
    pipe.run_watching(instant(100.0), |_, sender, _| {
        alphas += sender.value("alpha");
        count += 1.0;
    });
    println!("dctcp: alpha {}, {round_trips} round trips", alphas / count);
    assert!((alphas / count / 0.2074 - 1.0).abs() < 0.1, "{}", alphas / count);
    assert!((round_trips - 5.03).abs() < 1.0, "{round_trips}");
}

#[test]
fn bbr_without_scripted_losses_measures_the_path() {
    // 10 Mbit/s, and at least 41.16 ms. The window is twice 35.53 segments, plus the excess of acknowledgements beyond the
    // bandwidth. Version 1 adds three quanta of two segments, and rounds up to an even number of segments (77.06: 78). In version
    // 3 it is 2.25 times 35.53 and two segments while it probes for bandwidth.
    for name in ["bbr1", "bbr3"] {
        let mut pipe = path(name);
        // The 40 ms of the handshake have expired after ten seconds.
        pipe.run(12.0);
        let (drops, sender) = (pipe.bottleneck.drops, &pipe.senders[0]);
        assert!((sender.value("bw_bps") / 10e6 - 1.0).abs() < 0.01, "{name}: {}", sender.value("bw_bps"));
        assert!((sender.value("min_rtt_s") / 0.041_158 - 1.0).abs() < 0.01, "{name}: {}", sender.value("min_rtt_s"));
        let window = sender.window() - sender.value("extra_acked_bytes") / MSS as f64;
        println!("{name}: {window} of {}", sender.window());
        let expected = match sender.value("cwnd_gain") {
            _ if name == "bbr1" => 78.0,
            2.25 => 2.25 * HELD + 2.0,
            gain => gain * HELD,
        };
        assert!((window / expected - 1.0).abs() < 0.015, "{name}: {window}, expected {expected}");
        // For 200 ms of every ten or five seconds, four segments or half the BDP are in flight.
        let goodput = pipe.goodputs_bps(60.0)[0];
        assert!(goodput > 0.96 * 10e6, "{name}: {goodput}");
        assert_eq!(pipe.bottleneck.drops, drops, "{name}");
    }
}

/// The windows every half second, and the total of segments delivered.
fn run(name: &str) -> (Vec<f64>, u64) {
    let mut pipe = path(name);
    pipe.bottleneck.lose_number = 9_000;
    pipe.bottleneck.outage = (instant(20.0), instant(20.1));
    let windows = (1..=60).map(|half| {
        pipe.run(f64::from(half) / 2.0);
        pipe.senders[0].window()
    });
    let windows = windows.collect();
    (windows, pipe.senders[0].delivered_bytes() / MSS)
}

/// Name of a control, its windows, segments delivered.
type Run = (&'static str, Vec<f64>, u64);

fn table() -> String {
    let runs: Vec<Run> = DECLARATIONS
        .iter()
        .map(|entry| {
            let (windows, delivered) = run(entry.name);
            (entry.name, windows, delivered)
        })
        .collect();
    let mut text = String::from("seconds");
    let mut line = |first: String, value: &dyn Fn(&Run) -> String| {
        text += &first;
        for run in &runs {
            write!(text, ",{}", value(run)).expect("writing to a string cannot fail");
        }
        text.push('\n');
    };
    line(String::new(), &|run| run.0.to_owned());
    for half in 0..60 {
        line(format!("{:.1}", f64::from(half + 1) / 2.0), &|run| format!("{:.2}", run.1[half as usize]));
    }
    line("delivered".to_owned(), &|run| run.2.to_string());
    text
}

#[test]
fn windows_of_the_reference_runs_match_the_stored_ones() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reference.csv");
    let table = table();
    if std::env::var_os("FULLPIPE_UPDATE").is_some() {
        let head = format!(
            "# Written by fullpipe-congestion {}: windows in segments, see tests/controls/reference.rs\n",
            env!("CARGO_PKG_VERSION")
        );
        std::fs::write(path, head + &table).expect("cannot write the reference file");
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    // The rows after the head, which states the version that wrote the file.
    let kept = kept.split_once('\n').map_or("", |(_, rows)| rows);
    let differing = kept.lines().zip(table.lines()).find(|(kept, found)| kept != found);
    assert!(
        kept == table,
        "the runs differ from {path}, first in {differing:?}; check the source of the control, then renew the file with\n    \
         FULLPIPE_UPDATE=1 cargo test -p fullpipe-congestion --test controls reference"
    );
}
