//! Invalid files, one for each possible mistake, with the expected place, wrong token, accepted values, suggestion and
//! message.

use crate::raw_quantity::raw_quantity;
use fullpipe_scenario::{Error, Override, load};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

struct Wrong {
    /// File name in tests/wrong, without its extension.
    file: &'static str,
    /// Line of the first error.
    line: usize,
    /// The wrong token as in the file; empty if something is missing.
    found: &'static str,
    /// All accepted values in order. With [`MORE`] at the end, a subsequence of them, for catalogues that grow.
    expected: &'static [&'static str],
    suggestion: Option<&'static str>,
    /// Part of the message.
    says: &'static str,
}

/// Other values may be between and after those that are listed.
const MORE: &str = "...";

fn as_expected(found: &[String], expected: &[&str]) -> bool {
    match expected.split_last() {
        Some((&MORE, named)) => {
            let mut found = found.iter();
            named.iter().all(|name| found.any(|one| one == name))
        }
        _ => found == expected,
    }
}

const RATE: &[&str] = &[r#"a rate such as "100Mbit/s""#];
const DELAY: &[&str] = &[r#"a duration such as "10ms", at most 1h"#];
const PROBABILITY: &[&str] = &["a number from 0 to 1"];
const MTU: &[&str] = &["a size from 68B to 65535B"];
const QUEUE: &[&str] = &[r#"a queue limit such as "100packets", "250kB", "100ms", "2BDP" or "unlimited""#];
const LOSSES: &[&str] = &[r#""none""#, r#""bernoulli""#, r#""periodic""#, MORE];
const DISCIPLINES: &[&str] = &[r#""none""#, r#""fifo""#, r#""fq-codel""#, MORE];
const TOPOLOGIES: &[&str] = &[r#""dumbbell""#, r#""chain""#, r#""ethernet""#, MORE];
const FILE: &[&str] =
    &["title", "duration", "seed", "topology", "host", "router", "link", "ethernet", "tcp", "flow", "probe", MORE];
const CONTROLS: &[&str] = &[r#""newreno""#, r#""linux-reno""#, r#""cubic""#, MORE];
const METRICS: &[&str] = &[
    r#""cwnd_bytes""#,
    r#""ssthresh_bytes""#,
    r#""inflight_bytes""#,
    r#""srtt_s""#,
    r#""pacing_bps""#,
    r#""delivery_bps""#,
    r#""queue_bytes""#,
    r#""queue_delay_s""#,
    r#""throughput_bps""#,
    r#""drops""#,
    r#""marks""#,
    MORE,
];
const NAME: &[&str] = &[r#"a name: a letter, then letters, digits, "-" and "_", at most 64 characters"#];

#[rustfmt::skip]
const FILES: &[Wrong] = &[
    Wrong { file: "unknown-key", line: 9, found: "congestoin", expected: &["workload", "name", "from", "to", "count", "protocol", "congestion", "tcp", "start", "start_spread", "size", "write_size", MORE], suggestion: Some("congestion"), says: "congestoin is not a key of a flow" },
    Wrong { file: "unknown-key-of-the-file", line: 1, found: "durration", expected: FILE, suggestion: Some("duration"), says: "durration is not a key of this file" },
    Wrong { file: "unknown-table", line: 8, found: "probes", expected: FILE, suggestion: Some("probe"), says: "probes is not a key" },
    Wrong { file: "later-key", line: 9, found: "clock", expected: FILE, suggestion: None, says: "clock is not supported" },
    Wrong { file: "rate-unit", line: 4, found: r#""10 Mbps/s""#, expected: RATE, suggestion: Some(r#""10Mbit/s""#), says: "has the unknown unit Mbps/s" },
    Wrong { file: "rate-case", line: 4, found: r#""10mbit/s""#, expected: RATE, suggestion: Some(r#""10Mbit/s""#), says: "has the unknown unit mbit/s" },
    Wrong { file: "rate-zero", line: 4, found: r#""0Mbit/s""#, expected: RATE, suggestion: None, says: "below 1 bit/s" },
    Wrong { file: "rate-below-one-bit", line: 4, found: r#""0.5bit/s""#, expected: RATE, suggestion: None, says: r#"topology.bottleneck.rate = "0.5bit/s" is not a multiple of 1bit/s"# },
    Wrong { file: "rate-without-unit", line: 4, found: "1000000", expected: RATE, suggestion: None, says: "is an integer" },
    Wrong { file: "rate-above-all", line: 4, found: r#""2000Tbit/s""#, expected: RATE, suggestion: None, says: r#"topology.bottleneck.rate = "2000Tbit/s" is above 1000Tbit/s"# },
    Wrong { file: "rate-of-bytes", line: 4, found: r#""10MB/s""#, expected: RATE, suggestion: None, says: "counts bytes" },
    Wrong { file: "rate-missing", line: 4, found: "", expected: &[r#"a rate such as "100Mbit/s""#, "a trace"], suggestion: None, says: "topology.bottleneck.rate is missing" },
    Wrong { file: "delay-negative", line: 4, found: r#""-5ms""#, expected: DELAY, suggestion: None, says: r#"topology.bottleneck.delay = "-5ms" is negative"# },
    Wrong { file: "delay-without-unit", line: 4, found: r#""5""#, expected: DELAY, suggestion: None, says: r#"topology.bottleneck.delay = "5" has no unit"# },
    Wrong { file: "delay-integer", line: 4, found: "0", expected: DELAY, suggestion: Some(r#""0s""#), says: "is an integer" },
    Wrong { file: "delay-overflow", line: 4, found: r#""99999999999999999999h""#, expected: DELAY, suggestion: None, says: "too large" },
    Wrong { file: "delay-too-long", line: 4, found: r#""2h""#, expected: DELAY, suggestion: None, says: "too large" },
    Wrong { file: "delay-below-a-nanosecond", line: 4, found: r#""0.1ns""#, expected: DELAY, suggestion: None, says: r#"topology.bottleneck.delay = "0.1ns" is not a multiple of 1ns"# },
    Wrong { file: "mtu-too-small", line: 4, found: "67", expected: MTU, suggestion: None, says: "too small" },
    Wrong { file: "mtu-too-large", line: 4, found: r#""64KiB""#, expected: MTU, suggestion: None, says: "too large" },
    Wrong { file: "mtu-negative", line: 4, found: "-1500", expected: MTU, suggestion: None, says: "negative" },
    Wrong { file: "probability-too-large", line: 4, found: "1.5", expected: PROBABILITY, suggestion: None, says: "too large" },
    Wrong { file: "probability-not-a-number", line: 4, found: "nan", expected: PROBABILITY, suggestion: None, says: "not a finite number" },
    Wrong { file: "probability-infinite", line: 4, found: "inf", expected: PROBABILITY, suggestion: None, says: "not a finite number" },
    Wrong { file: "probability-as-text", line: 4, found: r#""1%""#, expected: PROBABILITY, suggestion: Some("0.01"), says: "is a string" },
    Wrong { file: "probability-missing", line: 4, found: "", expected: PROBABILITY, suggestion: None, says: "topology.bottleneck.loss.probability is missing" },
    Wrong { file: "loss-kind", line: 4, found: r#""bernouli""#, expected: LOSSES, suggestion: Some(r#""bernoulli""#), says: "for topology.bottleneck.loss.kind" },
    Wrong { file: "loss-later", line: 4, found: r#""trace""#, expected: LOSSES, suggestion: None, says: "not supported" },
    Wrong { file: "loss-key-of-another-kind", line: 4, found: "every", expected: &[r#"kind = "periodic""#, "no every"], suggestion: None, says: r#"topology.bottleneck.loss.every requires kind = "periodic", but this is a loss with kind = "bernoulli""# },
    Wrong { file: "loss-without-kind", line: 4, found: "probability", expected: &[r#"kind = "bernoulli""#, "no probability"], suggestion: None, says: r#"topology.bottleneck.loss.probability requires kind = "bernoulli", but this loss has no kind (default: "none")"# },
    Wrong { file: "loss-never", line: 4, found: "0", expected: &["an integer from 1 to 1_000_000_000_000_000"], suggestion: None, says: "too small" },
    Wrong { file: "reverse-key", line: 4, found: "rat", expected: &["rate", "delay", "mtu", "framing", "queue", "discipline", "loss", MORE], suggestion: Some("rate"), says: "not a key of a reverse direction" },
    Wrong { file: "pairs-zero", line: 3, found: "0", expected: &["an integer from 1 to 499999"], suggestion: None, says: "too small" },
    Wrong { file: "pairs-beyond-all", line: 3, found: "1000000000000", expected: &["an integer from 1 to 499999"], suggestion: None, says: "too large" },
    Wrong { file: "pairs-fraction", line: 3, found: "2.5", expected: &["an integer from 1 to 499999"], suggestion: None, says: "topology.pairs = 2.5 is a floating-point number" },
    Wrong { file: "queue-zero", line: 4, found: r#""0packets""#, expected: QUEUE, suggestion: None, says: r#"topology.bottleneck.queue = "0packets" is zero"# },
    Wrong { file: "queue-unit", line: 4, found: r#""100 pakets""#, expected: QUEUE, suggestion: Some(r#""100packets""#), says: "has the unknown unit pakets" },
    Wrong { file: "queue-negative", line: 4, found: r#""-1packets""#, expected: QUEUE, suggestion: None, says: "negative" },
    Wrong { file: "discipline-later", line: 4, found: r#""cake""#, expected: DISCIPLINES, suggestion: None, says: "not supported" },
    Wrong { file: "discipline-limit-missing", line: 4, found: "", expected: QUEUE, suggestion: None, says: "discipline.limit is missing" },
    Wrong { file: "discipline-not-a-table", line: 4, found: r#""fifo""#, expected: &["a table with the key kind"], suggestion: Some(r#"{ kind = "fifo", limit = "100packets" }"#), says: "is a string" },
    Wrong { file: "topology-kind-missing", line: 1, found: "", expected: TOPOLOGIES, suggestion: None, says: "topology.kind is missing" },
    Wrong { file: "topology-later", line: 2, found: r#""tree""#, expected: TOPOLOGIES, suggestion: None, says: "not supported" },
    Wrong { file: "topology-kind", line: 2, found: r#""dumbell""#, expected: TOPOLOGIES, suggestion: Some(r#""dumbbell""#), says: "for topology.kind" },
    Wrong { file: "event-unknown-metric", line: 14, found: r#""cwnd_byte""#, expected: &[r#""cwnd_bytes""#, MORE], suggestion: Some(r#""cwnd_bytes""#), says: r#"cwnd_byte is not a metric of a TCP flow"# },
    Wrong { file: "event-mean-metric", line: 14, found: r#""throughput_bps""#, expected: &[r#""cwnd_bytes""#, MORE], suggestion: None, says: r#"throughput_bps is a mean over an interval"# },
    Wrong { file: "event-unknown-state", line: 14, found: r#""probe_up""#, expected: &[r#""startup""#, r#""drain""#, MORE], suggestion: Some(r#""probe_bw_up""#), says: r#"unknown state "probe_up" of bbr3"# },
    Wrong { file: "event-two-tests", line: 14, found: r#""cwnd_bytes""#, expected: &["exactly one of is, above and below"], suggestion: None, says: "event.0.when has above and below" },
    Wrong { file: "event-delay-without-unit", line: 15, found: r#""2""#, expected: &[r#"a duration such as "10ms", or round-trip times such as "1rtt""#], suggestion: None, says: r#"event.0.after = "2" has no unit"# },
    Wrong { file: "event-round-trips-of-a-link", line: 15, found: r#""2rtt""#, expected: &[r#"a duration, or when = { flow = "NAME", ... }"#], suggestion: None, says: r#"requires a flow with a round-trip time"# },
    Wrong { file: "event-follows-a-later-one", line: 14, found: r#""rise""#, expected: &[r#""rise" before "fall""#], suggestion: None, says: r#"event "fall" follows "rise", which is later in the file"# },
    Wrong { file: "event-change-of-nothing", line: 14, found: r#"{ link = "bottleneck" }"#, expected: &["at least one of rate, outage, delay, loss"], suggestion: None, says: r#"event.0.set changes nothing"# },
    Wrong { file: "event-change-of-two-things", line: 14, found: r#"{ link = "bottleneck", flow = "bulk", rate = "1Mbit/s" }"#, expected: &["exactly one of flow and link"], suggestion: None, says: r#"event.0.set has both flow and link"# },
    Wrong { file: "event-rate-of-a-flow", line: 14, found: r#""1Mbit/s""#, expected: &["exactly one of write_rate, pause and unlimited"], suggestion: Some("write_rate"), says: r#"event.0.set.rate does not apply to a flow"# },
    Wrong { file: "event-records-nothing", line: 14, found: r#""srtt_s""#, expected: &[r#"when = { flow = "NAME" } or when = { link = "NAME" }"#], suggestion: None, says: r#"is a metric of a flow or link, but the event has neither"# },
    Wrong { file: "expect-unknown-flow", line: 12, found: r#""downlaod""#, expected: &[r#""download""#], suggestion: Some(r#""download""#), says: r#"unknown flow "downlaod""# },
    Wrong { file: "expect-without-bound", line: 10, found: "", expected: &["min", "max"], suggestion: None, says: "expect.0 has neither min nor max" },
    Wrong { file: "expect-unknown-key", line: 12, found: "minimum", expected: &["metric", "flow", "min", "max"], suggestion: Some("min"), says: "minimum is not a key of an expectation" },
    Wrong { file: "expect-bound-kind", line: 12, found: "true", expected: &["a number", r#"a quantity such as "20Mbit/s" or "50ms""#], suggestion: None, says: "is a boolean" },
    Wrong { file: "bottleneck-missing", line: 1, found: "", expected: &["a table with the keys rate, delay, mtu, framing, queue, bdp_rtt, discipline, reverse, 15 more"], suggestion: None, says: "topology.bottleneck is missing" },
    Wrong { file: "chain-without-links", line: 3, found: "[]", expected: &["1 to 999999 links"], suggestion: None, says: "topology.link has 0 links" },
    Wrong { file: "topology-and-network", line: 5, found: "[[host]]", expected: &["only one of them"], suggestion: None, says: "the file has both [topology] and [[host]]" },
    Wrong { file: "no-network", line: 1, found: "", expected: &["[topology]", "[[host]] with [[link]], [[ethernet]], [[lte]] or [[wifi]]"], suggestion: None, says: "describes no network" },
    Wrong { file: "no-flow", line: 1, found: "", expected: &["at least one [[flow]] or [[program]]"], suggestion: None, says: "the scenario has no flow" },
    Wrong { file: "flow-as-table", line: 5, found: "[flow]", expected: &["[[flow]]"], suggestion: Some("[[flow]]"), says: "flow is a single table" },
    Wrong { file: "key-twice", line: 3, found: "kind", expected: &["each key once"], suggestion: None, says: "the key kind occurs twice (first on line 2)" },
    Wrong { file: "table-twice", line: 9, found: "topology", expected: &["each table once"], suggestion: None, says: "the table [topology] occurs twice (first on line 1)" },
    Wrong { file: "unclosed-string", line: 1, found: r#"title = "no end"#, expected: &[r#"`"`"#], suggestion: None, says: r#"invalid TOML: invalid basic string at `title = "no end`"# },
    Wrong { file: "no-value", line: 1, found: "duration =", expected: &[r#"a value such as 5, true or "text""#], suggestion: None, says: "invalid TOML: no value after `duration =`" },
    Wrong { file: "text-without-quotation-marks", line: 2, found: "dumbbell", expected: &[r#"a value such as 5, true or "text""#], suggestion: Some(r#""dumbbell""#), says: "invalid TOML: `dumbbell` is not a value" },
    Wrong { file: "integer-overflow", line: 1, found: "99999999999999999999", expected: &["a 64-bit integer"], suggestion: None, says: "invalid TOML: the integer 99999999999999999999 is too large" },
    Wrong { file: "seed-negative", line: 1, found: "-1", expected: &["an integer, at least 0"], suggestion: None, says: "too small" },
    Wrong { file: "duration-zero", line: 1, found: r#""0s""#, expected: &[r#"a duration above zero such as "10ms""#], suggestion: None, says: "too small" },
    Wrong { file: "title-of-two-lines", line: 1, found: r#""one\ntwo""#, expected: &["one line of text"], suggestion: None, says: r#"title = "one\ntwo" has more than one line"# },
    Wrong { file: "host-unknown", line: 6, found: r#""lef1""#, expected: &[r#""left1""#, r#""right1""#], suggestion: Some(r#""left1""#), says: r#"unknown host "lef1""# },
    Wrong { file: "host-is-a-router", line: 7, found: r#""router1""#, expected: &[r#""left1""#, r#""right1""#], suggestion: None, says: r#""router1" is a router, but a flow needs a host at each end"# },
    Wrong { file: "pattern-matches-nothing", line: 6, found: r#""client*""#, expected: &[r#""left1""#, r#""right1""#], suggestion: None, says: r#"no host matches "client*""# },
    Wrong { file: "patterns-do-not-pair", line: 8, found: r#""*""#, expected: &["equal numbers of hosts, or a single host on one side"], suggestion: None, says: r#"from = "left*" matches 2 hosts, but to = "*" matches 4"# },
    Wrong { file: "flow-to-itself", line: 7, found: r#""left*""#, expected: &["two different hosts"], suggestion: None, says: r#"the flow has "left1" at both ends"# },
    Wrong { file: "no-way", line: 15, found: r#""b""#, expected: &["two hosts that links and routers connect"], suggestion: None, says: r#"no route from "a" to "b" (hosts do not forward packets)"# },
    Wrong { file: "no-way-through-a-host", line: 23, found: r#""c""#, expected: &["two hosts that links and routers connect"], suggestion: None, says: r#"no route from "a" to "c" (hosts do not forward packets)"# },
    Wrong { file: "host-twice", line: 8, found: r#""a""#, expected: &["a unique name"], suggestion: None, says: r#"duplicate host or router name "a""# },
    Wrong { file: "router-named-as-host", line: 8, found: r#""b""#, expected: &["a unique name"], suggestion: None, says: r#"duplicate host or router name "b""# },
    Wrong { file: "link-twice", line: 20, found: r#""x""#, expected: &["a unique name"], suggestion: None, says: r#"duplicate link, segment or access network name "x""# },
    Wrong { file: "flow-twice", line: 24, found: r#""bulk""#, expected: &["a unique name"], suggestion: None, says: r#"duplicate flow name "bulk""# },
    Wrong { file: "link-to-itself", line: 10, found: r#""a""#, expected: &["another host or router"], suggestion: None, says: "link x connects a to itself" },
    Wrong { file: "link-end-unknown", line: 21, found: r#""s""#, expected: &[r#""a""#, r#""b""#, r#""r""#], suggestion: None, says: r#"unknown host or router "s""# },
    Wrong { file: "name-with-a-space", line: 2, found: r#""left 1""#, expected: NAME, suggestion: None, says: r#"host.0.name = "left 1" is not a valid name"# },
    Wrong { file: "name-of-digits", line: 2, found: r#""1""#, expected: NAME, suggestion: None, says: r#"host.0.name = "1" is not a valid name"# },
    Wrong { file: "host-without-name", line: 1, found: "", expected: NAME, suggestion: None, says: "host.0.name is missing" },
    Wrong { file: "congestion-misspelt", line: 9, found: r#""cubci""#, expected: CONTROLS, suggestion: Some(r#""cubic""#), says: "for flow.0.congestion" },
    Wrong { file: "congestion-twice", line: 9, found: r#""cubic""#, expected: &["only one of them"], suggestion: None, says: "flow.0 has both congestion and tcp.congestion" },
    Wrong { file: "udp-with-congestion", line: 13, found: r#""cubic""#, expected: &[r#"protocol = "tcp""#, r#"protocol = "quic""#, r#"protocol = "masque""#], suggestion: None, says: r#"flow.0.congestion applies to TCP, QUIC and MASQUE, but this flow has protocol = "udp""# },
    Wrong { file: "via-nobody", line: 13, found: r#""tunnel""#, expected: &[r#"a [[flow]] with protocol = "masque""#], suggestion: None, says: r#"unknown tunnel "tunnel""# },
    Wrong { file: "via-a-flow", line: 14, found: r#""bulk""#, expected: &[r#""tunnel""#], suggestion: None, says: r#"flow "bulk" is not a tunnel"# },
    Wrong { file: "via-from-elsewhere", line: 19, found: r#""tunnel""#, expected: &[r#"a tunnel with from = "host2" or from = "host3""#], suggestion: None, says: r#"tunnel "tunnel" has its client at host1, but the flow is between host2 and host3"# },
    Wrong { file: "via-to-the-proxy", line: 19, found: r#""tunnel""#, expected: &["a flow to another host"], suggestion: None, says: r#"host3 is both the proxy of tunnel "tunnel" and the other end of the flow"# },
    Wrong { file: "via-mode-of-nothing", line: 12, found: r#""stream""#, expected: &[r#"via = "TUNNEL""#], suggestion: None, says: "flow.0.via_mode applies to flows through a tunnel, but this flow has no via" },
    Wrong { file: "via-mode-not-offered", line: 20, found: r#""datagram""#, expected: &[r#"masque.mode = "datagram" for the tunnel"#, r#"via_mode = "stream""#], suggestion: None, says: r#"flow.1.via_mode = "datagram" requires a tunnel with HTTP datagrams, but tunnel "tunnel" has masque.mode = "stream""# },
    Wrong { file: "via-over-tcp", line: 18, found: r#""tunnel""#, expected: &[r#"protocol = "quic""#], suggestion: None, says: r#"flow.1.via applies to QUIC, but this flow has protocol = "tcp""# },
    Wrong { file: "tunnel-queue-in-packets", line: 14, found: r#""10packets""#, expected: &[r#"a size such as "250kB", a duration such as "100ms", or "unlimited""#], suggestion: None, says: r#"flow.0.masque.queue_limit = "10packets" is in packets, which tunnels do not support"# },
    Wrong { file: "tunnel-stream-uncontrolled", line: 14, found: r#""none""#, expected: &[r#"mode = "datagram", or a congestion control such as "cubic""#], suggestion: None, says: r#"flow.0.masque.congestion = "none" requires mode = "datagram", but the tunnel has mode = "stream" (RFC 9298 section 6 exempts only datagrams from congestion control)"# },
    Wrong { file: "tunnel-over-tcp", line: 12, found: r#""tunnel""#, expected: &[MORE], suggestion: None, says: r#"flow.0.workload = "tunnel" requires protocol = "masque", but flow.0 has protocol = "tcp"; expected protocol = "masque", or a workload for TCP: "bulk""# },
    Wrong { file: "tunnel-by-a-program", line: 12, found: r#""program""#, expected: &[r#"from_by = "program""#, r#"to_by = "model""#], suggestion: None, says: r#"flow.0 has to_by = "program" and from_by = "model", but client and proxy of a tunnel must both be programs or both be modeled"# },
    Wrong { file: "figures-of-no-flow", line: 13, found: r#""bulk""#, expected: &[r#""bulky""#], suggestion: Some(r#""bulky""#), says: r#"unknown flow "bulk""# },
    Wrong { file: "quic-with-tcp", line: 10, found: r#"{ mss = "1400B" }"#, expected: &[r#"protocol = "tcp""#], suggestion: None, says: r#"flow.0.tcp applies to TCP, but this flow has protocol = "quic""# },
    Wrong { file: "tcp-with-quic", line: 9, found: r#"{ hystart = false }"#, expected: &[r#"protocol = "quic""#], suggestion: None, says: r#"flow.0.quic applies to QUIC, but this flow has protocol = "tcp""# },
    Wrong { file: "quic-congestion-twice", line: 10, found: r#""cubic""#, expected: &["only one of them"], suggestion: None, says: "flow.0 has both congestion and quic.congestion" },
    Wrong { file: "quic-model-setting", line: 10, found: r#""fifo""#, expected: &[r#"stack = "model""#], suggestion: None, says: r#"scheduler applies to the QUIC model only, but flow.0.quic has stack = "noq""# },
    Wrong { file: "quic-model-cryptography", line: 10, found: r#""tls""#, expected: &[r#"cryptography = "null""#, r#"stack = "noq""#], suggestion: None, says: "the QUIC model does not support cryptography" },
    Wrong { file: "quic-model-ack-delay", line: 10, found: r#""17s""#, expected: &["less than 16.384s (RFC 9000 section 18.2)"], suggestion: None, says: "flow.0.quic.max_ack_delay = 17s is too long" },
    Wrong { file: "quic-model-via", line: 20, found: r#""tunnel""#, expected: &[r#"quic.stack = "noq""#, "no via"], suggestion: None, says: "flows of the QUIC model cannot use a tunnel, because the model has no packet contents" },
    Wrong { file: "quic-datagram-too-small", line: 10, found: r#""1199B""#, expected: &["a size from 1200B to 65507B"], suggestion: None, says: "initial_mtu" },
    Wrong { file: "quic-trace", line: 10, found: r#""tmix""#, expected: &[MORE], suggestion: None, says: r#"flow.0.workload = "tmix" requires protocol = "tcp", but flow.0 has protocol = "quic"; expected protocol = "tcp", or a workload for QUIC: "bulk""# },
    Wrong { file: "quic-by-the-kernel", line: 10, found: r#""kernel""#, expected: &[r#"protocol = "tcp""#, r#"protocol = "udp""#, r#"from_by = "model""#], suggestion: None, says: r#"flow.0.from_by = "kernel" does not support protocol = "quic""# },
    Wrong { file: "quic-with-a-program", line: 10, found: r#""program""#, expected: &[r#"from_by = "program""#, r#"to_by = "model""#], suggestion: None, says: r#"flow.0 has to_by = "program" and from_by = "model", but a program cannot communicate with the simulated end of a QUIC flow"# },
    Wrong { file: "quic-write-too-large", line: 11, found: r#""20kB""#, expected: &["at most quic.send_buffer = 10000B"], suggestion: None, says: "flow.0.write_size = 20000B exceeds the send buffer" },
    Wrong { file: "udp-bulk", line: 9, found: r#""udp""#, expected: &[MORE], suggestion: None, says: r#"flow.0 has no workload, and the default "bulk" requires protocol = "tcp" or "quic", but flow.0 has protocol = "udp"; expected a workload for UDP ("constant-rate""# },
    Wrong { file: "udp-idle", line: 10, found: r#""idle""#, expected: &[MORE], suggestion: None, says: r#"flow.0.workload = "idle" requires protocol = "tcp" or "quic", but flow.0 has protocol = "udp"; expected protocol = "tcp" or "quic", or a workload for UDP: "constant-rate""# },
    Wrong { file: "datagram-too-large", line: 12, found: "65508", expected: &["at most 65507B"], suggestion: None, says: "flow.0.payload = 65508B exceeds the maximum UDP payload" },
    Wrong { file: "no-interval", line: 5, found: "", expected: &["interval", "rate"], suggestion: None, says: "neither interval nor rate" },
    Wrong { file: "interval-and-rate", line: 13, found: r#""1Mbit/s""#, expected: &["only one of them"], suggestion: None, says: "flow.0 has both interval and rate" },
    Wrong { file: "rate-faster-than-a-nanosecond", line: 12, found: r#""100Gbit/s""#, expected: &["at most 16Gbit/s, or a larger payload"], suggestion: None, says: "flow.0.rate = 100Gbit/s sends a payload of 1B in less than 0.5ns" },
    Wrong { file: "workload-later", line: 9, found: r#""ftp""#, expected: &[r#""bulk""#, r#""constant-rate""#, r#""transfers""#, r#""idle""#, MORE], suggestion: Some(r#""bulk""#), says: "unknown value" },
    Wrong { file: "web-3-over-tcp", line: 10, found: r#""3""#, expected: &[r#"protocol = "quic" with quic.stack = "model""#, r#"http = "1.1""#, r#"http = "2""#], suggestion: None, says: r#"flow.0.http = "3" requires protocol = "quic", but flow.0 has protocol = "tcp""# },
    Wrong { file: "web-1-over-quic", line: 11, found: r#""1.1""#, expected: &[r#"protocol = "tcp""#, r#"http = "3" with quic.stack = "model""#, r#"http = "streams" with quic.stack = "model""#], suggestion: None, says: r#"flow.0.http = "1.1" requires protocol = "tcp", but flow.0 has protocol = "quic""# },
    Wrong { file: "web-streams-over-noq", line: 11, found: r#""streams""#, expected: &[r#"quic.stack = "model""#], suggestion: None, says: r#"flow.0.http = "streams" requires several streams in a connection, but quic.stack = "noq" supports only one"# },
    Wrong { file: "web-over-udp", line: 9, found: r#""web""#, expected: &[MORE], suggestion: None, says: r#"flow.0.workload = "web" requires protocol = "tcp" or "quic", but flow.0 has protocol = "udp"; expected protocol = "tcp" or "quic", or a workload for UDP: "constant-rate""# },
    Wrong { file: "web-object-after-itself", line: 11, found: r#"[{ size = "1kB", after = [1] }]"#, expected: &[], suggestion: None, says: r#"flow.0.objects = [{ size = "1kB", after = [1] }], but object 1 waits for itself; expected only numbers of earlier objects in after"# },
    Wrong { file: "web-too-many-objects", line: 11, found: "1000", expected: &["at most 1000000 objects in a page"], suggestion: None, says: "flow.0 has main_objects = 1000 and embedded_objects = 1000, which give pages of up to 1001000 objects" },
    Wrong { file: "workload-key-of-another", line: 10, found: "size", expected: &["another workload", "no size"], suggestion: None, says: r#"flow.0.size requires workload = "bulk", "poisson-packets" or "poisson-transfers", but this is a flow with workload = "idle""# },
    Wrong { file: "transfers-out-of-order", line: 10, found: r#""1s""#, expected: &["transfers in ascending order of time"], suggestion: None, says: "flow.0.transfers.1.at = 1s is earlier than flow.0.transfers.0.at = 2s" },
    Wrong { file: "transfers-empty", line: 10, found: "[]", expected: &["at least one transfer"], suggestion: None, says: "empty" },
    Wrong { file: "transfer-of-nothing", line: 10, found: r#""0B""#, expected: &[r#"a size above zero such as "250kB""#], suggestion: None, says: "too small" },
    Wrong { file: "start-is-a-date", line: 9, found: "2020-01-01", expected: &[r#"a duration such as "10ms""#], suggestion: None, says: "flow.0.start = 2020-01-01 is a date or time" },
    Wrong { file: "count-zero", line: 9, found: "0", expected: &["an integer from 1 to 1_000_000"], suggestion: None, says: "too small" },
    Wrong { file: "count-beyond-all", line: 9, found: "1000001", expected: &["an integer from 1 to 1_000_000"], suggestion: None, says: "too large" },
    Wrong { file: "count-beyond-ports", line: 9, found: "60001", expected: &["at most 60000 flows of one protocol between two hosts"], suggestion: None, says: r#"with flow.0.count = 60001, there are 60001 TCP flows from "left1" to "right1""# },
    Wrong { file: "count-beyond-ports-of-the-first-pair", line: 10, found: "120001", expected: &["at most 60000 flows of one protocol between two hosts"], suggestion: None, says: r#"with flow.0.count = 120001, there are 60001 TCP flows from "left1" to "right1""# },
    Wrong { file: "counts-together", line: 15, found: "1", expected: &["at most 1000000 flows in total"], suggestion: None, says: "with flow.1.count = 1, the scenario has 1000001 flows" },
    Wrong { file: "nagle-as-text", line: 9, found: r#""ture""#, expected: &["true", "false"], suggestion: Some("true"), says: "is a string" },
    Wrong { file: "preset-misspelt", line: 9, found: r#""ns-3""#, expected: &[r#""linux""#, r#""ns3""#], suggestion: Some(r#""ns3""#), says: "for flow.0.tcp.preset" },
    Wrong { file: "probes-without-rack", line: 10, found: "true", expected: &[r#"loss_detection = "rack" or tail_loss_probe = false"#], suggestion: None, says: r#"tcp.tail_loss_probe = true requires loss_detection = "rack", but tcp has loss_detection = "duplicate-acks""# },
    Wrong { file: "time-out-above-the-largest", line: 10, found: r#""3min""#, expected: &["min_rto at most max_rto"], suggestion: None, says: "tcp.min_rto = 180s is above max_rto = 120s" },
    Wrong { file: "buffer-below-a-segment", line: 10, found: r#""1kB""#, expected: &["at least mss = 1448B"], suggestion: None, says: "tcp.receive_buffer = 1000B is smaller than one full segment" },
    Wrong { file: "write-above-the-buffer", line: 10, found: r#""65537B""#, expected: &["at most tcp.send_buffer = 65536B"], suggestion: None, says: "flow.0.write_size = 65537B exceeds the send buffer" },
    Wrong { file: "metric-of-another-thing", line: 11, found: r#""cwnd_bytes""#, expected: &[r#""queue_bytes""#, r#""queue_delay_s""#, r#""throughput_bps""#, r#""drops""#, r#""marks""#], suggestion: None, says: "cwnd_bytes is not a metric of a link" },
    Wrong { file: "metric-of-tcp-on-udp", line: 15, found: r#""srtt_s""#, expected: &[r#""throughput_bps""#, r#""drops""#, MORE], suggestion: None, says: "not a metric of a UDP flow" },
    Wrong { file: "metric-misspelt", line: 11, found: r#""cwnd_byte""#, expected: METRICS, suggestion: Some(r#""cwnd_bytes""#), says: "for probe.0.metrics.0" },
    Wrong { file: "metric-later", line: 11, found: r#""rsrp_dbm""#, expected: METRICS, suggestion: None, says: "not supported" },
    Wrong { file: "metric-twice", line: 11, found: r#""srtt_s""#, expected: &["each metric once for each subject"], suggestion: None, says: "sampled twice" },
    Wrong { file: "metrics-empty", line: 11, found: "[]", expected: &["at least one metric"], suggestion: None, says: "probe.0.metrics is empty" },
    Wrong { file: "probe-of-two-things", line: 11, found: r#""bottleneck""#, expected: &["exactly one of flow, link, ethernet, ue, station"], suggestion: None, says: "probe.0 has more than one subject: flow and link" },
    Wrong { file: "probe-direction-of-a-link", line: 11, found: r#""reverse""#, expected: &["no direction"], suggestion: Some(r#"link = "bottleneck.reverse""#), says: r#"probe.0.direction = "reverse" applies to probes of flows, but probe.0 has link = "bottleneck""# },
    Wrong { file: "probe-end-of-nobody", line: 11, found: r#""sever""#, expected: &[r#""client""#, r#""server""#, r#""left1""#, r#""right1""#], suggestion: Some(r#""server""#), says: r#"unknown end "sever" of flow flow1"# },
    Wrong { file: "probe-of-nothing", line: 9, found: "[[probe]]", expected: &["exactly one of flow, link, ethernet, ue, station"], suggestion: None, says: "probe.0 has no subject" },
    Wrong { file: "probe-of-an-unknown-link", line: 10, found: r#""bottlneck""#, expected: &[r#""access-left1""#, r#""access-left1.reverse""#, r#""bottleneck""#, r#""bottleneck.reverse""#, r#""access-right1""#, r#""access-right1.reverse""#], suggestion: Some(r#""bottleneck""#), says: r#"unknown link "bottlneck""# },
    Wrong { file: "measurement-of-an-unknown-link", line: 10, found: r#""bottlneck""#, expected: &[r#""access-left1""#, r#""access-left1.reverse""#, r#""bottleneck""#, r#""bottleneck.reverse""#, r#""access-right1""#, r#""access-right1.reverse""#], suggestion: Some(r#""bottleneck""#), says: r#"unknown link "bottlneck""# },
    Wrong { file: "measurement-after-the-end", line: 11, found: r#""10s""#, expected: &["a time before the end of the run"], suggestion: None, says: "measurement.from = 10s is not before the end of the run (duration = 10s)" },
    Wrong { file: "interval-too-short", line: 12, found: r#""1ns""#, expected: &[r#"a duration such as "10ms", at least 1us"#], suggestion: None, says: "too small" },
    Wrong { file: "samples-beyond-all", line: 13, found: r#""10us""#, expected: &["at most 100 million: a longer interval, or fewer subjects or metrics"], suggestion: None, says: "with probe.0 (interval = 10us), the run would write 360 million values" },
    Wrong { file: "ethernet-of-one", line: 5, found: r#"["host1"]"#, expected: &["2 to 1024 hosts"], suggestion: None, says: "topology.hosts has 1 host" },
    Wrong { file: "ethernet-of-too-many", line: 5, found: "1025", expected: &["an integer from 2 to 1024"], suggestion: None, says: "too large" },
    Wrong { file: "ethernet-with-a-router", line: 21, found: r#""r""#, expected: &["a host"], suggestion: None, says: "r is a router" },
    Wrong { file: "ethernet-host-twice", line: 21, found: r#""a""#, expected: &["each host once"], suggestion: None, says: "attached twice" },
    Wrong { file: "arp-delays", line: 6, found: r#"["1ms", "2ms", "3ms"]"#, expected: &["at most one value for each host"], suggestion: None, says: "topology.arp.fixed_delays has 3 values for 2 hosts" },
    Wrong { file: "schedule-out-of-order", line: 4, found: r#"[{ at = "2s" }, { at = "1s" }]"#, expected: &["times in ascending order"], suggestion: None, says: "topology.bottleneck.schedule has steps at [2s, 1s], but step 2 is not later than step 1" },
    Wrong { file: "schedule-with-rate-and-outage", line: 4, found: r#""1Mbit/s""#, expected: &["only one of them"], suggestion: None, says: "topology.bottleneck.schedule.0 has both rate and outage" },
    Wrong { file: "schedule-and-trace", line: 4, found: r#"[1, 2]"#, expected: &["only one of them"], suggestion: None, says: "topology.bottleneck has both schedule and trace" },
    Wrong { file: "repeat-without-schedule", line: 4, found: r#""1s""#, expected: &["a schedule"], suggestion: None, says: "topology.bottleneck has schedule_repeat, but no schedule" },
    Wrong { file: "trace-without-a-file", line: 4, found: r#""no-such-file""#, expected: &["a file with one whole number of milliseconds per line, in ascending order"], suggestion: None, says: r#"topology.bottleneck.trace = "no-such-file": cannot read no-such-file: no such file or directory"# },
    Wrong { file: "trace-goes-back", line: 4, found: r#"[5, 4]"#, expected: &["whole numbers of milliseconds in ascending order"], suggestion: None, says: "topology.bottleneck.trace.1 = 4 is earlier than trace.0 = 5" },
    Wrong { file: "black-hole-upside-down", line: 4, found: r#""1s""#, expected: &["a later time"], suggestion: None, says: "topology.bottleneck.blackholes.0.until = 1s is not after from = 2s" },
    Wrong { file: "corruption-twice", line: 4, found: r#"{ probability = 0.1, bit_error_rate = 0.1 }"#, expected: &["exactly one of them"], suggestion: None, says: "topology.bottleneck.corruption has both probability and bit_error_rate" },
    Wrong { file: "red-thresholds", line: 4, found: r#""5packets""#, expected: &["min below max"], suggestion: None, says: r#"topology.bottleneck.discipline.min = "15packets" is not below max = "5packets""# },
    Wrong { file: "distribution-upside-down", line: 12, found: r#"{ kind = "uniform", low = "2s", high = "1s" }"#, expected: &[], suggestion: None, says: r#"flow.0.on has low = "2s" and high = "1s", but a uniform distribution must have 0 <= low <= high"# },
    Wrong { file: "reaction-upside-down", line: 2, found: r#"{ kind = "uniform", low = "2ms", high = "1ms" }"#, expected: &[], suggestion: None, says: r#"quic.reaction has low = "2ms" and high = "1ms", but a uniform distribution must have 0 <= low <= high"# },
    Wrong { file: "tunnel-reaction-upside-down", line: 2, found: r#"{ kind = "uniform", low = "2ms", high = "1ms" }"#, expected: &[], suggestion: None, says: r#"masque.reaction has low = "2ms" and high = "1ms", but a uniform distribution must have 0 <= low <= high"# },
    Wrong { file: "distribution-of-unequal-lists", line: 11, found: "[1.0]", expected: &["one probability for each value"], suggestion: None, says: "flow.0.size has 2 values, but 1 probability" },
    Wrong { file: "ladder-descends", line: 10, found: r#"["2Mbit/s", "1Mbit/s"]"#, expected: &[], suggestion: None, says: r#"flow.0.ladder = ["2Mbit/s", "1Mbit/s"], but the bit rates of ladder must ascend"# },
    Wrong { file: "gaming-over-tcp", line: 9, found: r#""gaming""#, expected: &[MORE], suggestion: None, says: r#"flow.0.workload = "gaming" requires protocol = "udp", but flow.0 has protocol = "tcp"; expected protocol = "udp", or a workload for TCP: "bulk""# },
    Wrong { file: "duplex", line: 6, found: r#""haf""#, expected: &[r#""half""#, r#""full""#], suggestion: Some(r#""half""#), says: "for topology.duplex" },
    Wrong { file: "hosts-with-one-address", line: 6, found: r#""192.0.2.1""#, expected: &["a [[host]] without count"], suggestion: None, says: "host.1 has count, so its hosts would share ipv4" },
    Wrong { file: "lte-earfcn", line: 20, found: "18100", expected: &["a downlink EARFCN of 3GPP TS 36.101, such as 100 (2120 MHz, band 1) or 9895 (465 MHz, band 31)"], suggestion: None, says: "lte.0.earfcn = 18100 is an uplink channel (1930 MHz, band 1)" },
    Wrong { file: "lte-band-too-narrow", line: 20, found: "100", expected: &["6, 15 or 25, or allow_nonstandard_bandwidth = true"], suggestion: None, says: "lte.0.resource_blocks = 100 requires a channel of 20 MHz, but band 31 (EARFCN 9895) has channels of 1.4 to 5 MHz" },
    Wrong { file: "lte-bandwidth", line: 20, found: "24", expected: &["6, 15, 25, 50, 75 or 100 (1.4, 3, 5, 10, 15 or 20 MHz)"], suggestion: None, says: "lte.0.resource_blocks = 24 is not an LTE channel bandwidth" },
    Wrong { file: "lte-at-the-antenna", line: 23, found: "0", expected: &["a distance above 0 m, or another height"], suggestion: None, says: "phone1 is 0 m from the antenna of cell1, where path loss is undefined" },
    Wrong { file: "lte-nowhere", line: 21, found: "[[lte.ue]]", expected: &["exactly one of distance, position, waypoints, course"], suggestion: None, says: "lte.0.ue.0 has no position" },
    Wrong { file: "lte-in-two-places", line: 24, found: "[1, 2]", expected: &["exactly one of distance, position, waypoints, course"], suggestion: None, says: "lte.0.ue.0 has more than one position: distance and position" },
    Wrong { file: "lte-position-of-one", line: 23, found: "[1]", expected: &["two numbers, meters east and north, such as [99, 0]"], suggestion: None, says: "lte.0.ue.0.position = [1] has 1 number" },
    Wrong { file: "lte-guarantee-nobody-holds", line: 25, found: r#""1Mbit/s""#, expected: &[r#"scheduler = "pss""#, r#"scheduler = "cqa""#], suggestion: None, says: "lte.0.ue.0 has a guaranteed bit rate, which the scheduler rr of cell1 does not support" },
    Wrong { file: "lte-guaranteed-class", line: 24, found: "1", expected: &[r#"scheduler = "pss""#, r#"scheduler = "cqa""#, "a QCI from 5 to 9"], suggestion: None, says: "lte.0.ue.0 has QCI 1 (guaranteed bit rate), which the scheduler pf of cell1 does not support" },
    Wrong { file: "lte-trace-cut-off", line: 20, found: r#""tests/data/cut-off.fad""#, expected: &["a file with a line for each resource block and a gain in dB for each millisecond"], suggestion: None, says: r#"lte.0.fading.file = "tests/data/cut-off.fad": line 2 has 2 values, but line 1 has 3 (is the file truncated?)"# },
    Wrong { file: "lte-trace-missing", line: 20, found: r#""no-such.fad""#, expected: &["a file with a line for each resource block and a gain in dB for each millisecond"], suggestion: None, says: r#"lte.0.fading.file = "no-such.fad": cannot read no-such.fad: no such file or directory"# },
    Wrong { file: "lte-trace-too-narrow", line: 21, found: r#""tests/data/tone.fad""#, expected: &["a file with a line for each resource block and a gain in dB for each millisecond"], suggestion: None, says: r#"lte.0.fading.file = "tests/data/tone.fad": the fading trace has 25 lines, but the band has 50 resource blocks"# },
    Wrong { file: "lte-too-fast", line: 20, found: "900", expected: &["a speed below 254 km/h"], suggestion: None, says: "lte.0.fading.speed = 900 gives a Doppler shift of 1768 Hz at 2120 MHz, but fading at intervals of 1 ms requires less than 500 Hz" },
    Wrong { file: "lte-repeat-half-a-second", line: 20, found: r#""1500ms""#, expected: &[r#"a whole number of seconds such as "2s""#], suggestion: None, says: r#"lte.0.fading.repeat = "1500ms" is not a multiple of 1s"# },
    Wrong { file: "lte-fading-begins-with-the-run", line: 21, found: r#""500B""#, expected: &[r#"fading_begins = "first-packet""#], suggestion: None, says: r#"lte.0.fading_begins_with requires fading_begins = "first-packet", but lte.0 has fading_begins = "run" (default)"# },
    Wrong { file: "lte-switched-on-with-bearers", line: 25, found: r#""3s""#, expected: &[r#"attach = "known-cell""#, r#"attach = "cell-search""#], suggestion: None, says: r#"lte.0.ue.0 has switched_on, but with attach = "ideal" a UE has its bearers from the start"# },
    Wrong { file: "lte-class-without-a-rate", line: 25, found: r#"1"#, expected: &["guaranteed_rate, or a QCI from 5 to 9"], suggestion: None, says: "lte.0.ue.0 has QCI 1 (guaranteed bit rate), but no guaranteed_rate" },
    Wrong { file: "lte-bearer-guarantee-nobody-holds", line: 26, found: r#""64kbit/s""#, expected: &[r#"scheduler = "pss""#, r#"scheduler = "cqa""#], suggestion: None, says: "lte.0.ue.0.bearer.0 has a guaranteed bit rate, which the scheduler pf of cell1 does not support" },
    Wrong { file: "lte-bearer-without-a-filter", line: 24, found: r#""#, expected: &["at least one [[lte.ue.bearer.filter]]"], suggestion: None, says: "lte.0.ue.0.bearer.0.filter is missing" },
    Wrong { file: "lte-filter-host-unknown", line: 27, found: r#""sever""#, expected: &[r#""server""#, r#""phone1""#, r#""phone2""#, r#""pgw""#], suggestion: Some(r#""server""#), says: r#"unknown host or router "sever""# },
    Wrong { file: "lte-filter-prefix", line: 27, found: r#""10.0.0.0/33""#, expected: &[r#"a prefix such as "10.0.0.0/8""#], suggestion: None, says: r#"lte.0.ue.0.bearer.0.filter.0.remote = "10.0.0.0/33" is not a valid prefix: the prefix length is 33, but the address has 32 bits"# },
    Wrong { file: "lte-filter-ports", line: 27, found: r#"[5999, 5000]"#, expected: &["one port such as [5004], or the first and the last such as [5000, 5999]"], suggestion: None, says: "lte.0.ue.0.bearer.0.filter.0.local_ports = [5999, 5000] is not in ascending order" },
    Wrong { file: "lte-filter-two-versions", line: 28, found: r#""fd00::1""#, expected: &["two addresses of one IP version"], suggestion: None, says: "lte.0.ue.0.bearer.0.filter.0 matches no packet, because one address is IPv4 and the other IPv6" },
    Wrong { file: "lte-eight-dedicated-bearers", line: 52, found: r#"[[lte.ue.bearer]]"#, expected: &["at most 7"], suggestion: None, says: "lte.0.ue.0 has 8 dedicated bearers" },
    Wrong { file: "lte-seventeen-filters", line: 26, found: r#"[[lte.ue.bearer.filter]]"#, expected: &["at most 16 packet filters"], suggestion: None, says: "lte.0.ue.0.bearer.0 has 9 filters, which give 18 packet filters (IPv4 and IPv6 for each host name)" },
    Wrong { file: "lte-parameter-of-another-scheduler", line: 22, found: r#""10ms""#, expected: &[r#"scheduler = "cqa""#], suggestion: None, says: "lte.0.cell.0 has waiting_unit, which the scheduler pss does not use" },
    Wrong { file: "lte-waiting-unit", line: 22, found: r#""1500us""#, expected: &[r#"a whole number of milliseconds such as "2ms""#], suggestion: None, says: r#"lte.0.cell.0.waiting_unit = "1500us" is not a multiple of 1ms"# },
    Wrong { file: "lte-groups-beyond-the-band", line: 21, found: r#"[6, 12]"#, expected: &["the first and the last group, from 0 to 11"], suggestion: None, says: "lte.0.cell.0.groups = [6, 12] ends above the last resource block group of the band" },
    Wrong { file: "lte-host-unknown", line: 25, found: r#""fone2""#, expected: &[r#""server""#, r#""phone1""#, r#""phone2""#, r#""pgw""#], suggestion: Some(r#""phone2""#), says: r#"unknown host or router "fone2""# },
    Wrong { file: "lte-host-twice", line: 25, found: r#""phone*""#, expected: &["each host once"], suggestion: None, says: r#"lte.0.ue.1.host = "phone*" selects "phone1", which is already a UE"# },
    Wrong { file: "lte-gateway-is-a-ue", line: 19, found: r#""pgw""#, expected: &[r#""server""#, r#""phone2""#], suggestion: None, says: r#"lte.0.gateway = "pgw" is also a UE"# },
    Wrong { file: "lte-scheduler", line: 21, found: r#""pff""#, expected: &[r#""rr""#, r#""pf""#, r#""pss""#, MORE], suggestion: Some(r#""pf""#), says: "for lte.0.cell.0.scheduler" },
    Wrong { file: "lte-cell-unknown", line: 25, found: r#""nord""#, expected: &[r#""north""#], suggestion: Some(r#""north""#), says: r#"unknown cell "nord""# },
    Wrong { file: "lte-sounding", line: 21, found: "41", expected: &["2, 5, 10, 20, 40, 80, 160 or 320"], suggestion: None, says: "lte.0.cell.0.sounding_period = 41 is not a period of sounding reference signals" },
    Wrong { file: "lte-waypoints-at-once", line: 23, found: r#"[{at="1s",position=[1,2]},{at="1s",position=[3,4]}]"#, expected: &["times in ascending order"], suggestion: None, says: "lte.0.ue.0.waypoints.1.at = 1s is not later than waypoints.0.at = 1s" },
    Wrong { file: "lte-name-of-a-link", line: 18, found: r#""sgi""#, expected: &["a unique name"], suggestion: None, says: r#"duplicate link, segment or access network name "sgi""# },
    Wrong { file: "lte-without-a-cell", line: 17, found: "", expected: &["at least one [[lte.cell]]"], suggestion: None, says: "lte.0.cell is missing" },
    Wrong { file: "wifi-channel-width", line: 20, found: r#"60"#, expected: &[r#"20, 40, 80, 160"#], suggestion: None, says: r#"wifi.0.channel_width = 60 is not a channel width of 802.11ac"# },
    Wrong { file: "wifi-band", line: 21, found: r#""2.4GHz""#, expected: &[r#""5GHz""#], suggestion: None, says: r#"wifi.0.band = "2.4GHz" is not a band of 802.11ac"# },
    Wrong { file: "wifi-standard", line: 20, found: r#""ax""#, expected: &[r#""b""#, r#""a""#, r#""g""#, r#""n""#, r#""ac""#], suggestion: Some(r#""a""#), says: r#"unknown value "ax" for wifi.0.standard"# },
    Wrong { file: "wifi-rate", line: 21, found: r#""50Mbit/s""#, expected: &[r#"6, 9, 12, 18, 24, 36, 48, 54 Mbit/s"#], suggestion: None, says: r#"wifi.0.rate = "50Mbit/s" is not a rate of 802.11g"# },
    Wrong { file: "wifi-mcs-of-another-standard", line: 21, found: r#"3"#, expected: &[r#"rate"#], suggestion: None, says: r#"wifi.0 has mcs, but 802.11a has no such rates"# },
    Wrong { file: "wifi-mcs-invalid", line: 21, found: r#"9"#, expected: &[r#"MCS 0, 1, 2, 3, 4, 5, 6, 7, 8"#], suggestion: None, says: r#"wifi.0: MCS 9 does not exist with 2 streams and 20 MHz"# },
    Wrong { file: "wifi-minstrel", line: 21, found: r#""minstrel-ht""#, expected: &[r#"rate_control = "ideal", or rate"#], suggestion: None, says: r#"Minstrel-HT has no rates of 802.11b"# },
    Wrong { file: "wifi-queue-key", line: 21, found: r#""5ms""#, expected: &[r#"queue = "fq-codel""#], suggestion: None, says: r#"wifi.0 has codel_target, which the queue drop-tail does not use"# },
    Wrong { file: "wifi-window", line: 21, found: r#"2000"#, expected: &[r#"cw_min no larger than cw_max"#], suggestion: None, says: r#"wifi.0.access.0 has cw_min = 2000 above cw_max = 1023"# },
    Wrong { file: "wifi-category-without-edca", line: 22, found: r#""voice""#, expected: &[r#"standard = "n" or standard = "ac""#], suggestion: None, says: r#"wifi.0.category.0 requires EDCA"# },
    Wrong { file: "wifi-access-point-is-a-station", line: 19, found: r#""ap""#, expected: &[r#""server""#, r#""laptop1""#, r#""laptop2""#], suggestion: None, says: r#"wifi.0.access_point = "ap" is also a Wi-Fi station"# },
    Wrong { file: "wifi-host-twice", line: 23, found: r#""laptop*""#, expected: &[r#"each host once"#], suggestion: None, says: r#"wifi.0.station.1.host = "laptop*" selects "laptop1", which is already a Wi-Fi station"# },
    Wrong { file: "wifi-change-order", line: 22, found: r#""1s""#, expected: &[r#"times in ascending order"#], suggestion: None, says: r#"wifi.0.station.0.change.1.at = 1s is not later than the change before at 2s"# },
    Wrong { file: "wifi-constant-without-mcs", line: 20, found: r#""constant""#, expected: &[r#"mcs"#], suggestion: None, says: r#"the network has a constant rate, but no mcs"# },
    Wrong { file: "wifi-mcs-not-constant", line: 21, found: r#"3"#, expected: &[r#"rate_control = "constant""#], suggestion: None, says: r#"wifi.0 has mcs, but its rate is not constant"# },
    Wrong { file: "program-host-unknown", line: 6, found: r#""lef1""#, expected: &[r#""left1""#, r#""right1""#], suggestion: Some(r#""left1""#), says: r#"unknown host "lef1""# },
    Wrong { file: "program-at-a-router", line: 6, found: r#""router1""#, expected: &[r#""left1""#, r#""right1""#], suggestion: None, says: r#""router1" is a router, but a program needs a host"# },
    Wrong { file: "program-twice", line: 8, found: r#"[[program]]"#, expected: &["a unique name"], suggestion: None, says: r#"duplicate program name "left1" (default: the name of the host)"# },
    Wrong { file: "program-after-unknown", line: 13, found: r#""sever""#, expected: &[r#""client""#, r#""server""#], suggestion: Some(r#""server""#), says: r#"unknown program "sever""# },
    Wrong { file: "program-after-itself", line: 8, found: r#""left1""#, expected: &["an order of programs without a cycle"], suggestion: None, says: r#"program "left1" waits for itself"# },
    Wrong { file: "programs-in-a-circle", line: 24, found: r#""a""#, expected: &["an order of programs without a cycle"], suggestion: None, says: r#"programs "a", "b", "c" wait for each other"# },
    Wrong { file: "command-empty", line: 7, found: r#"[]"#, expected: &[r#"the program and its arguments, such as ["iperf3", "-s"]"#], suggestion: None, says: r#"program.0.command is empty"# },
    Wrong { file: "command-blank", line: 7, found: r#"" ""#, expected: &["a string with other characters than spaces"], suggestion: None, says: "program.0.command contains only spaces" },
    Wrong { file: "command-with-a-nul", line: 7, found: r#""b\u0000""#, expected: &["a string without NUL characters"], suggestion: None, says: "program.0.command.1 contains a NUL character" },
    Wrong { file: "variable-without-a-name", line: 8, found: r#""=x""#, expected: &[r#"a variable such as "NAME=value""#], suggestion: None, says: r#"program.0.environment.0 = "=x" does not set a variable"# },
    Wrong { file: "variable-twice", line: 8, found: r#""A=2""#, expected: &["each variable once"], suggestion: None, says: r#"program.0.environment.1 sets "A" a second time"# },
    Wrong { file: "ready-port-missing", line: 8, found: "", expected: &[r#"an integer from 1 to 65535"#], suggestion: None, says: r#"program.0.ready.port is missing"# },
    Wrong { file: "ready-port-zero", line: 8, found: r#"0"#, expected: &[r#"an integer from 1 to 65535"#], suggestion: None, says: r#"too small"# },
    Wrong { file: "ready-text-missing", line: 8, found: "", expected: &[r#"a string"#], suggestion: None, says: r#"program.0.ready.text is missing"# },
    Wrong { file: "ready-text-of-two-lines", line: 8, found: r#""a\nb""#, expected: &["a non-empty string of one line without NUL characters"], suggestion: None, says: r#"program.0.ready.text = "a\nb" has more than one line"# },
    Wrong { file: "ready-kind", line: 8, found: r#""tcpport""#, expected: &[r#""started""#, r#""tcp-port""#, r#""udp-port""#, r#""output""#, r#""exit""#], suggestion: Some(r#""tcp-port""#), says: r#"for program.0.ready.kind"# },
    Wrong { file: "exit-status-in-the-background", line: 9, found: r#"0"#, expected: &["background = false, or no exit_status"], suggestion: None, says: "program.0.exit_status has no effect, because the program has background = true" },
    Wrong { file: "exit-status-too-large", line: 8, found: r#"256"#, expected: &[r#"an integer from 0 to 255"#], suggestion: None, says: r#"too large"# },
    Wrong { file: "flow-port-zero", line: 8, found: r#"0"#, expected: &[r#"an integer from 1 to 65535"#], suggestion: None, says: r#"too small"# },
    Wrong { file: "flow-port-too-large", line: 8, found: r#"65536"#, expected: &[r#"an integer from 1 to 65535"#], suggestion: None, says: r#"too large"# },
    Wrong { file: "player-unknown", line: 8, found: r#""kernal""#, expected: &[r#""model""#, r#""kernel""#, r#""program""#], suggestion: Some(r#""kernel""#), says: r#"for flow.0.to_by"# },
    Wrong { file: "kernel-plays-no-requests", line: 9, found: r#""kernel""#, expected: &[r#"workload = "bulk""#, r#"workload = "constant-rate""#, r#"from_by = "model""#], suggestion: None, says: r#"flow.0.from_by = "kernel" does not support workload = "idle""# },
    Wrong { file: "kernel-without-tls", line: 9, found: r#""kernel""#, expected: &[r#"tcp.tls = "none""#, r#"to_by = "model""#], suggestion: None, says: r#"flow.0.to_by = "kernel" does not support TLS"# },
    Wrong { file: "no-program-to-play", line: 8, found: r#""program""#, expected: &[r#"a [[program]] with host = "right1""#], suggestion: None, says: r#"flow flow1 has to_by = "program", but no program runs at right1"# },
    Wrong { file: "model-beside-a-program", line: 5, found: r#"[[flow]]"#, expected: &[r#"from_by = "kernel""#, r#"from_by = "program""#], suggestion: None, says: r#"flow.0.from_by = "model" (default) is not possible at "left1", a real host (it has a [[program]])"# },
    Wrong { file: "model-beside-a-kernel", line: 10, found: r#"[[flow]]"#, expected: &[r#"from_by = "kernel""#, r#"from_by = "program""#], suggestion: None, says: r#"flow.1.from_by = "model" (default) is not possible at "left1", a real host (flow "one" has from_by = "kernel")"# },
    Wrong { file: "program-at-an-interface", line: 14, found: r#""a""#, expected: &["a host without interface"], suggestion: None, says: r#"program "a" cannot run on host "a", which has interface = "eth0""# },
    Wrong { file: "kernel-at-an-interface", line: 14, found: r#""kernel""#, expected: &[r#"from_by = "program""#], suggestion: None, says: r#"flow.0.from_by = "kernel" is not possible at host "a", which has interface = "eth0""# },
    Wrong { file: "model-at-an-interface", line: 13, found: r#"[[flow]]"#, expected: &[r#"from_by = "program""#], suggestion: None, says: r#"flow.0.from_by = "model" (default) is not possible at "a", a real host (it has interface = "eth0")"# },
    Wrong { file: "address-of-another-family", line: 3, found: r#""2001:db8::1""#, expected: &[r#"the IPv4 address of one host such as "192.0.2.1""#], suggestion: None, says: r#"host.0.ipv4 = "2001:db8::1" is an IPv6 address"# },
    Wrong { file: "address-of-nothing", line: 3, found: r#""fd00::g""#, expected: &[r#"the IPv6 address of one host such as "2001:db8::1""#], suggestion: None, says: r#"host.0.ipv6 = "fd00::g" is not an IP address"# },
    Wrong { file: "address-of-many", line: 3, found: r#""224.0.0.1""#, expected: &[r#"the IPv4 address of one host such as "192.0.2.1""#], suggestion: None, says: r#"host.0.ipv4 = "224.0.0.1" is not a unicast address of a host"# },
    Wrong { file: "address-twice", line: 6, found: r#""fd00:0::1""#, expected: &["a unique address"], suggestion: None, says: "the address fd00::1 already belongs to a" },
    Wrong { file: "address-of-another-by-number", line: 3, found: r#""10.0.0.2""#, expected: &["a unique address"], suggestion: None, says: "the address 10.0.0.2 already belongs to b (its default address)" },
    Wrong { file: "interface-twice", line: 6, found: r#""eth0""#, expected: &["a unique interface"], suggestion: None, says: "the interface eth0 is already assigned to a" },
    Wrong { file: "interface-too-long", line: 3, found: r#""sixteen-letters1""#, expected: &[r#"1 to 15 bytes without "/", ":" and spaces, such as "eth0""#], suggestion: None, says: r#"host.0.interface = "sixteen-letters1" is not a valid interface name"# },
    Wrong { file: "late-share-above-all", line: 2, found: r#"1.5"#, expected: &[r#"a number from 0 to 1"#], suggestion: None, says: r#"too large"# },
    Wrong { file: "policy-unknown", line: 2, found: r#""hard""#, expected: &[r#""best-effort""#, r#""hard-limit""#], suggestion: Some(r#""hard-limit""#), says: r#"for real_time.policy"# },
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrong")
}

fn errors(text: &str, overrides: &[&str]) -> Vec<Error> {
    let overrides: Vec<Override> = overrides.iter().map(|text| Override::parse(text).unwrap()).collect();
    match load(text, "wrong.toml", &overrides) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.0,
    }
}

#[test]
fn each_wrong_file_gives_the_expected_error() {
    let mut complaints = Vec::new();
    for wrong in FILES {
        let text = std::fs::read_to_string(folder().join(wrong.file).with_extension("toml")).unwrap();
        let errors = errors(&text, &[]);
        let Some(error) = errors.first() else {
            complaints.push(format!("{}: accepted", wrong.file));
            continue;
        };
        let mut differs = |what: &str, found: String, expected: String| {
            if found != expected {
                complaints.push(format!("{}: {what} is {found}, not {expected}: {error}", wrong.file));
            }
        };
        differs("line", error.line.to_string(), wrong.line.to_string());
        differs("token", error.found.clone(), wrong.found.to_string());
        if !as_expected(&error.expected, wrong.expected) {
            differs("expected", format!("{:?}", error.expected), format!("{:?}", wrong.expected));
        }
        differs("suggestion", format!("{:?}", error.suggestion.as_deref()), format!("{:?}", wrong.suggestion));
        differs("number of errors", errors.len().to_string(), "1".to_string());
        // The place is that of the token.
        let line = text.lines().nth(error.line - 1).unwrap_or_default();
        let rest: String = line.chars().skip(error.column - 1).collect();
        if !rest.starts_with(&error.found) {
            complaints.push(format!("{}: column {} does not point at the token", wrong.file, error.column));
        }
        let sentence = error.to_string();
        if !sentence.starts_with(&format!("wrong.toml:{}:{}: ", error.line, error.column))
            || !sentence.contains(wrong.says)
            || sentence.contains('\n')
        {
            complaints.push(format!("{}: does not say {:?}: {sentence}", wrong.file, wrong.says));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_wrong_file_is_in_the_table() {
    let listed: BTreeSet<String> = FILES.iter().map(|wrong| wrong.file.to_string()).collect();
    let stored: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(listed, stored);
    assert_eq!(listed.len(), FILES.len());
}

/// Compares all messages of the invalid files with `wrong-messages.txt`, which can be read as a whole. With RENEW=1 (or
/// FULLPIPE_UPDATE=1) in the environment this test writes the file.
#[test]
fn messages_of_wrong_files_equal_the_golden_file() {
    let golden = folder().with_file_name("wrong-messages.txt");
    let mut files: Vec<&str> = FILES.iter().map(|wrong| wrong.file).collect();
    files.sort_unstable();
    let mut messages = String::new();
    for name in files {
        let file = format!("{name}.toml");
        let text = std::fs::read_to_string(folder().join(&file)).unwrap();
        match load(&text, &file, &[]) {
            Ok(_) => messages += &format!("{file}: accepted\n"),
            Err(errors) => errors.0.iter().for_each(|error| messages += &format!("{error}\n")),
        }
    }
    assert_eq!(raw_quantity(&messages), None);
    if ["RENEW", "FULLPIPE_UPDATE"].iter().any(|variable| std::env::var_os(variable).is_some_and(|value| value == "1"))
    {
        std::fs::write(&golden, messages).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(&golden).unwrap_or_default();
    let differs = |(now, before): &(&str, &str)| now != before;
    let difference = messages.lines().zip(stored.lines()).find(differs);
    let difference = difference.map_or(String::new(), |(now, before)| format!("\n  now: {now}\n  file: {before}"));
    assert!(messages == stored, "messages differ from {} (RENEW=1 writes it){difference}", golden.display());
}

/// Rule 6 of the style of messages: the place, the problem, and what is accepted or the nearest valid value. Distinct
/// messages are counted without quoted names, numbers, paths and lists.
#[test]
fn messages_state_place_problem_and_what_is_accepted() {
    let messages = std::fs::read_to_string(folder().with_file_name("wrong-messages.txt")).unwrap();
    let mut kinds = BTreeSet::new();
    for line in messages.lines() {
        let mut parts = line.splitn(4, ':');
        let file = parts.next().unwrap_or_default();
        assert!(file.ends_with(".toml"), "{line}");
        let [at, column] = [parts.next(), parts.next()].map(|part| part.and_then(|part| part.parse::<usize>().ok()));
        assert!(at >= Some(1) && column >= Some(1), "{line}");
        let problem = parts.next().unwrap_or_default().trim();
        let accepted = ["; expected ", "(expected ", "; did you mean ", " must "];
        assert!(accepted.iter().any(|words| problem.contains(words)), "{line}: what is accepted?");
        let stated = problem.split([';', '(']).next().unwrap_or_default();
        let words = stated.split_whitespace().filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == ','));
        kinds.insert(words.collect::<Vec<_>>().join(" "));
    }
    assert!(kinds.len() >= 100, "{} kinds of messages: {kinds:#?}", kinds.len());
}

const GOOD: &str = "[topology]\nkind = 'dumbbell'\naccess = { rate = '1Gbit/s', delay = '1ms' }\n\
                    bottleneck = { rate = '10Mbit/s', delay = '10ms' }\n\
                    [[flow]]\nname = 'bulk'\nfrom = 'left1'\nto = 'right1'\n";

#[test]
fn each_wrong_override_gives_the_expected_error() {
    let link = ["rate", "delay", "mtu", "framing", "queue", "discipline", "reverse", "loss", "schedule", MORE];
    for (set, found, expected, suggestion, says) in [
        ("topology.bottleneck.rat=1Mbit/s", "rat", &link[..], Some("rate"), "rat is not a key of a topology link"),
        (
            "topology.bottleneck.rate=1Mbps/s",
            "1Mbps/s",
            &["a rate such as \"100Mbit/s\""],
            Some("\"1Mbit/s\""),
            "topology.bottleneck.rate = 1Mbps/s has the unknown unit Mbps/s",
        ),
        ("topology.bottleneck.rate=5", "5", &["a rate such as \"100Mbit/s\""], None, "is an integer"),
        ("topology.bottleneck.rate.x=5", "x", &[], None, "rate has no parts"),
        ("flow.bukl.size=1MB", "bukl", &["bulk", "an index from 0 to 0"], Some("bulk"), "unknown flow bukl"),
        ("flow.1.size=1MB", "1", &["bulk", "an index from 0 to 0"], None, "unknown flow 1"),
        ("flow.x*.size=1MB", "x*", &["bulk"], None, "no flow has a name that matches x*"),
        ("probe.*.interval=1s", "*", &[], None, "the file has no probe"),
        ("flow.b*.rate=1Mbit/s", "rate", &["no rate", MORE], None, "requires workload"),
        ("flow.0.size=0B", "0B", &["a size above zero such as \"250kB\""], None, "too small"),
        ("flow.0.payload=10", "payload", &["no payload", MORE], None, "requires workload = \"constant-rate\""),
        ("probe.0.interval=1s", "0", &[], None, "the file has no probe"),
        (
            "topology.kind=ring",
            "ring",
            &["\"dumbbell\"", "\"chain\"", "\"ethernet\"", MORE],
            None,
            "unknown value ring for topology.kind",
        ),
        ("flow.bulk.to=right2", "right2", &["\"left1\"", "\"right1\""], Some("\"right1\""), "unknown host \"right2\""),
        ("clock.drift=5", "clock", FILE, None, "not supported"),
        ("seed=[1", "[1", &["an integer, at least 0"], None, "is a string"),
        ("tcp=5", "5", &[MORE], None, "is an integer"),
    ] {
        let errors = errors(GOOD, &[set]);
        let error = errors.first().unwrap_or_else(|| panic!("{set} is accepted but must be rejected"));
        assert_eq!((error.line, error.column), (0, 0), "{error}");
        assert_eq!(error.file, format!("--set {set}"));
        assert_eq!(error.found, found, "{error}");
        assert!(as_expected(&error.expected, expected), "{error}: not {expected:?}");
        assert_eq!(error.suggestion.as_deref(), suggestion, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    for text in ["", "=5", "rate", "  = 5"] {
        assert!(Override::parse(text).is_err(), "{text}");
    }
}

#[test]
fn all_mistakes_of_a_file_are_reported_in_order() {
    let text = "duration = 5\nseed = -1\n[topology]\nkind = 'dumbbell'\naccess = { rate = 'x', delay = '1ms' }\nfoo = 1\n\
                [[flow]]\nfrom = 'left1'\n";
    let errors = errors(text, &["title=5"]);
    let lines: Vec<usize> = errors.iter().map(|error| error.line).collect();
    // Line 3 lacks the bottleneck, line 7 the flow's `to`. The error of the override comes last.
    assert_eq!(lines, [1, 2, 3, 5, 6, 7, 0]);
}

#[test]
fn file_with_many_mistakes_is_rejected_quickly() {
    let mut text = String::new();
    for n in 0..100_000 {
        text += &format!("key{n} = {n}\n");
    }
    assert_eq!(errors(&text, &[]).len(), 100);
    let mut text = GOOD.to_string();
    for _ in 0..10_000 {
        text += "[[flow]]\nname = 'bulk'\nfrom = 'left2'\nto = 'left*'\n";
    }
    assert_eq!(errors(&text, &[]).len(), 100);
}

#[test]
fn network_with_too_many_routes_is_rejected() {
    // 10 000 links in a chain: 9999 routers with a table of 10 001 entries each are 10^8 entries.
    let mut text = String::from("[topology]\nkind = 'chain'\n");
    for _ in 0..10_000 {
        text += "[[topology.link]]\nrate = '1Mbit/s'\ndelay = '1ms'\n";
    }
    text += "[[flow]]\nfrom = 'source'\nto = 'sink'\n";
    let errors = errors(&text, &[]);
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].line, &errors[0].expected[..]), (1, &["at most 50000000 entries in all".to_string()][..]));
}
