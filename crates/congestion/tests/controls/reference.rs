//! Reference runs: windows of the nine laws at some instants, frozen, so that a change of behaviour that the laws under
//! periodic loss do not see is seen here. They were written down once those laws and the rules by hand were met; whoever
//! changes a control on purpose checks it against its source first and then writes these numbers anew.

use crate::pipe::Pipe;
use crate::simulator::MSS;
use fullpipe_units::{Duration, Instant};

/// Version of the controls that these numbers are of: their first.
const VERSION: u32 = 1;

/// Window in whole segments at 5, 10, 20, 40 and 80 s, and segments delivered by then in all, of 138 121 that the link
/// carries: 20 Mbit/s, 60 ms, 60 segments of queue (104 on the path), one loss in 2000 at random.
const WINDOWS: [(&str, [u64; 5], u64); 9] = [
    ("bic", [149, 147, 149, 161, 158], 137_665),
    ("highspeed", [68, 141, 64, 41, 128], 99_939),
    ("htcp", [159, 114, 71, 71, 55], 107_865),
    ("hybla", [156, 124, 23, 165, 63], 121_626),
    ("illinois", [142, 112, 132, 116, 93], 134_787),
    ("scalable", [152, 150, 154, 151, 133], 137_066),
    ("veno", [93, 104, 66, 74, 75], 105_070),
    ("westwood", [53, 109, 117, 130, 151], 131_074),
    ("yeah", [140, 110, 123, 91, 101], 126_536),
];

#[test]
fn windows_of_the_reference_run() {
    let mut found = Vec::new();
    for (name, _, _) in WINDOWS {
        let mut pipe = Pipe::new(20_000_000, 60 * MSS, 7);
        pipe.bottleneck.loss = 1.0 / 2_000.0;
        pipe.add(name, Duration::from_millis(60), Instant::ZERO, 1);
        let windows = [5.0, 10.0, 20.0, 40.0, 80.0].map(|seconds| {
            pipe.run(seconds);
            pipe.senders[0].control.cwnd_bytes / MSS
        });
        found.push((name, windows, pipe.senders[0].delivered_bytes() / MSS));
    }
    assert_eq!(found, WINDOWS, "version {VERSION}");
}
