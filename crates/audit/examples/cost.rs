//! Measures the cost of the auditor: a stream of events like that of a bulk transfer over three links, generated as cheaply as possible,
//! with and without the auditor. For a profiler:
//!
//! ```text
//! cargo build --release -p fullpipe-audit --example cost
//! valgrind --tool=callgrind target/release/examples/cost 1000000 audited
//! ```
//!
//! The cost of the auditor is the difference between the counts of `audited` and `empty`. Without arguments, the example makes a short run
//! of both.

use fullpipe_audit::{Auditor, DeclaredFlow, DeclaredLink, FinalFlowState, FinalLinkState, FinalState, MediumAccess};
use fullpipe_record::{Observer, PacketView, TcpView, Transmission};
use fullpipe_units::{EcnCodepoint, FlowId, Instant, LinkId};
use std::hint::black_box;

const RATES: [u64; 6] = [1_000_000_000, 100_000_000, 1_000_000_000, 1_000_000_000, 100_000_000, 1_000_000_000];
const DELAY_NS: u64 = 500_000;

fn links() -> Vec<DeclaredLink> {
    let link = |rate_bps: &u64| DeclaredLink {
        name: format!("{rate_bps} bit/s"),
        medium: MediumAccess::PointToPoint,
        rate_bps: *rate_bps,
        delay_ns: DELAY_NS,
        delay_varies: false,
        varies: fullpipe_audit::LinkVariation::default(),
        framing_bytes: 2,
        min_frame_bytes: 0,
        mtu_bytes: 1500,
        queue: None,
    };
    RATES.iter().map(link).collect()
}

struct Nothing;

impl FinalState for Nothing {
    fn link(&self, _: LinkId) -> FinalLinkState {
        FinalLinkState::default()
    }
    fn flow(&self, _: FlowId) -> FinalFlowState {
        FinalFlowState::default()
    }
}

/// Sends `packets` data packets over three links, and an acknowledgment for every second one over three other links.
#[inline(never)]
fn stream(observer: &mut impl Observer, packets: u64) {
    // At these rates the nanoseconds per byte are an integer, so a multiplication gives the transmission time.
    let byte_ns = black_box(RATES.map(|rate| 8_000_000_000 / rate));
    let delay_ns = black_box(DELAY_NS);
    let mut free_from = [0; RATES.len()];
    let mut sequence = 1u32;
    let mut now = 0;
    let mut pass = |observer: &mut _, sent: u64, first: usize, packet: &PacketView| {
        let mut offered = sent;
        for index in first..first + 3 {
            let (link, wire_bytes) = (LinkId(index as u32), packet.ip_bytes + 2);
            Observer::on_offered(observer, Instant::from_nanos(offered), link, wire_bytes);
            let start = offered.max(free_from[index]);
            let finish = start + byte_ns[index] * u64::from(wire_bytes);
            free_from[index] = finish;
            let at = Instant::from_nanos;
            Observer::on_transmitted(
                observer,
                &Transmission {
                    link,
                    flow: packet.flow,
                    wire_bytes,
                    offered: at(offered),
                    start: at(start),
                    finish: at(finish),
                    arrival: at(finish + delay_ns),
                },
            );
            offered = finish + delay_ns;
        }
        offered
    };
    for number in 0..packets {
        let sequence_end = sequence.wrapping_add(1448);
        let tcp = TcpView { sequence, sequence_end, acknowledgement: 1, has_ack: true, syn: false };
        let data = PacketView {
            flow: FlowId(0),
            ip_bytes: 1500,
            payload_bytes: 1448,
            codepoint: EcnCodepoint::NotEct,
            tcp: Some(black_box(tcp)),
        };
        observer.on_sent(Instant::from_nanos(now), &data);
        let arrived = pass(observer, now, 0, &data);
        observer.on_delivered(Instant::from_nanos(arrived), &data, Instant::from_nanos(now));
        sequence = sequence_end;
        if number % 2 == 1 {
            let tcp = TcpView { sequence: 1, sequence_end: 1, acknowledgement: sequence, has_ack: true, syn: false };
            let answer = PacketView {
                flow: FlowId(1),
                ip_bytes: 52,
                payload_bytes: 0,
                codepoint: EcnCodepoint::NotEct,
                tcp: Some(black_box(tcp)),
            };
            observer.on_sent(Instant::from_nanos(arrived), &answer);
            let back = pass(observer, arrived, 3, &answer);
            observer.on_delivered(Instant::from_nanos(back), &answer, Instant::from_nanos(arrived));
        }
        now += 100_000;
    }
    black_box(free_from);
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let packets = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let which = arguments.next();
    if which.as_deref() != Some("audited") {
        stream(&mut (), packets);
    }
    if which.as_deref() != Some("empty") {
        let mut auditor = Auditor::new(links());
        auditor.add_flow(FlowId(0), &DeclaredFlow { path: vec![LinkId(0), LinkId(1), LinkId(2)], ipv6: false });
        auditor.add_flow(FlowId(1), &DeclaredFlow { path: vec![LinkId(3), LinkId(4), LinkId(5)], ipv6: false });
        stream(&mut auditor, packets);
        println!("{}", auditor.finish(&Nothing));
    }
}
