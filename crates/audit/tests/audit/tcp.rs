//! Flows: acknowledgments, the least time of a packet, and published counters.

use crate::world::{Event, Link, Run, Traffic, World};
use fullpipe_audit::{DeclaredFlow, FinalFlowState, PublishedCounters, Rule};
use fullpipe_record::{DropReason, PacketView, TcpView};
use fullpipe_units::{EcnCodepoint, FlowId, LinkId};

/// A conversation of two flows over undeclared links, event by event. Every sent packet arrives unless the test says otherwise.
struct Conversation {
    run: Run,
    now: u64,
}

#[derive(Clone, Copy)]
struct Segment {
    side: u32,
    sequence: u32,
    length: u32,
    acknowledgement: Option<u32>,
    syn: bool,
}

fn segment(side: u32, sequence: u32, length: u32, acknowledgement: Option<u32>) -> Segment {
    Segment { side, sequence, length, acknowledgement, syn: false }
}

fn syn(side: u32, sequence: u32, acknowledgement: Option<u32>) -> Segment {
    Segment { side, sequence, length: 1, acknowledgement, syn: true }
}

impl Segment {
    fn view(self) -> PacketView {
        PacketView {
            flow: FlowId(self.side),
            ip_bytes: 40 + self.length,
            payload_bytes: self.length,
            codepoint: EcnCodepoint::NotEct,
            tcp: Some(TcpView {
                sequence: self.sequence,
                sequence_end: self.sequence.wrapping_add(self.length),
                acknowledgement: self.acknowledgement.unwrap_or(0),
                has_ack: self.acknowledgement.is_some(),
                syn: self.syn,
            }),
        }
    }
}

impl Conversation {
    fn new() -> Conversation {
        let flows = (0..2).map(|flow| (FlowId(flow), DeclaredFlow::default())).collect();
        Conversation { run: Run { flows, ..Run::default() }, now: 0 }
    }

    /// The conversation after SYN, SYN-ACK, ACK.
    fn established(initial: [u32; 2]) -> Conversation {
        let mut talk = Conversation::new();
        let next = initial.map(|number| number.wrapping_add(1));
        talk.arrives(syn(0, initial[0], None));
        talk.arrives(syn(1, initial[1], Some(next[0])));
        talk.arrives(segment(0, next[0], 0, Some(next[1])));
        talk
    }

    /// Sends a segment without delivering it; returns the time in nanoseconds.
    fn sent(&mut self, segment: Segment) -> u64 {
        self.now += 10;
        self.run.events.push(Event::Sent(self.now, segment.view()));
        self.now
    }

    fn delivered(&mut self, segment: Segment, sent: u64) {
        self.now += 10;
        self.run.events.push(Event::Delivered(self.now, segment.view(), sent));
    }

    fn arrives(&mut self, segment: Segment) {
        let sent = self.sent(segment);
        self.delivered(segment, sent);
    }

    fn lost(&mut self, segment: Segment) {
        self.sent(segment);
        self.run.events.push(Event::Dropped(self.now, segment.view(), DropReason::Loss));
    }

    /// Returns the rules that were broken, according to the auditor with constant state and to the auditor of every packet.
    fn broken(&self) -> [Vec<Rule>; 2] {
        [self.run.streaming(), self.run.packets()]
            .map(|verdict| verdict.failures.iter().map(|failure| failure.rule).collect())
    }

    fn assert_right(&self) {
        let verdict = self.run.streaming().merge(self.run.packets());
        assert!(verdict.passed(), "{verdict}");
    }
}

/// Initial numbers: small ones, and such that the first data wraps around 2^32.
const INITIALS: [[u32; 2]; 3] = [[0, 0], [1_000, 2_000_000_000], [u32::MAX - 3, u32::MAX]];

#[test]
fn a_correct_conversation_passes() {
    for initial in INITIALS {
        let [a, b] = initial.map(|number| number.wrapping_add(1));
        let mut talk = Conversation::established(initial);
        talk.arrives(segment(0, a, 100, Some(b)));
        talk.arrives(segment(1, b, 0, Some(a.wrapping_add(100))));
        // Data in both directions at once, and a repeated older acknowledgment.
        talk.arrives(segment(1, b, 50, Some(a.wrapping_add(100))));
        talk.arrives(segment(0, a.wrapping_add(100), 100, Some(b)));
        talk.arrives(segment(0, a.wrapping_add(200), 1, Some(b.wrapping_add(50))));
        // FIN (one number) and its acknowledgment.
        talk.arrives(segment(1, b.wrapping_add(50), 1, Some(a.wrapping_add(201))));
        talk.arrives(segment(0, a.wrapping_add(201), 0, Some(b.wrapping_add(51))));
        talk.assert_right();
    }
}

#[test]
fn an_acknowledgment_of_a_byte_never_sent_fails() {
    for initial in INITIALS {
        let [a, b] = initial.map(|number| number.wrapping_add(1));
        let mut talk = Conversation::established(initial);
        talk.arrives(segment(0, a, 100, Some(b)));
        talk.arrives(segment(1, b, 0, Some(a.wrapping_add(101))));
        assert_eq!(talk.broken(), [vec![Rule::Acknowledgement], vec![Rule::AcknowledgedHole]]);
        let failure = &talk.run.streaming().failures[0];
        assert_eq!(failure.subject.to_string(), "flow 1");
        let end = a.wrapping_add(100);
        assert_eq!(
            failure.message,
            format!(
                "expected an acknowledgement of at most {end}, the highest sequence number delivered of flow 0 ({end} was \
                 sent), found {}",
                end.wrapping_add(1)
            )
        );
    }
}

#[test]
fn an_acknowledgment_of_a_byte_that_has_not_arrived_fails() {
    let mut talk = Conversation::established([100, 200]);
    let late = segment(0, 101, 1000, Some(201));
    let sent = talk.sent(late);
    talk.arrives(segment(1, 201, 0, Some(1101)));
    talk.delivered(late, sent);
    assert_eq!(talk.broken(), [vec![Rule::Acknowledgement], vec![Rule::AcknowledgedHole]]);
}

#[test]
fn an_acknowledgment_over_a_hole_fails_only_packet_by_packet() {
    let mut talk = Conversation::established([100, 200]);
    talk.lost(segment(0, 101, 1000, Some(201)));
    talk.arrives(segment(0, 1101, 1000, Some(201)));
    talk.arrives(segment(1, 201, 0, Some(101)));
    talk.assert_right();
    talk.arrives(segment(1, 201, 0, Some(2101)));
    assert_eq!(talk.broken(), [vec![], vec![Rule::AcknowledgedHole]]);
}

#[test]
fn a_segment_without_content_delivers_no_numbers() {
    let mut talk = Conversation::established([100, 200]);
    talk.lost(segment(0, 101, 1000, Some(201)));
    // A pure acknowledgment carries the next number, 1101; that does not deliver the numbers before it.
    talk.arrives(segment(0, 1101, 0, Some(201)));
    talk.assert_right();
    talk.arrives(segment(1, 201, 0, Some(1101)));
    assert_eq!(talk.broken(), [vec![Rule::Acknowledgement], vec![Rule::AcknowledgedHole]]);
}

#[test]
fn a_retransmission_does_not_lower_the_highest_number() {
    let mut talk = Conversation::established([100, 200]);
    talk.lost(segment(0, 101, 1000, Some(201)));
    let second = segment(0, 1101, 1000, Some(201));
    let sent = talk.sent(second);
    let again = segment(0, 101, 1000, Some(201));
    let sent_again = talk.sent(again);
    talk.delivered(second, sent);
    talk.delivered(again, sent_again);
    talk.arrives(segment(1, 201, 0, Some(2101)));
    talk.assert_right();
}

#[test]
fn an_acknowledgment_before_the_first_number_fails() {
    let mut talk = Conversation::established([100, 200]);
    talk.arrives(segment(1, 201, 0, Some(99)));
    assert_eq!(talk.broken()[0], [Rule::Acknowledgement]);
    // An acknowledgment of the first number itself covers no data.
    let mut talk = Conversation::established([100, 200]);
    talk.arrives(segment(1, 201, 0, Some(100)));
    talk.assert_right();
}

#[test]
fn an_answer_to_a_syn_that_never_arrived_fails() {
    let mut talk = Conversation::new();
    talk.lost(syn(0, 100, None));
    talk.arrives(syn(1, 200, Some(101)));
    assert_eq!(talk.broken(), [vec![Rule::Acknowledgement], vec![Rule::AcknowledgedHole]]);
}

#[test]
fn a_retransmitted_syn_keeps_the_numbers() {
    let mut talk = Conversation::new();
    talk.lost(syn(0, 100, None));
    talk.arrives(syn(0, 100, None));
    talk.arrives(syn(1, 200, Some(101)));
    // The SYN-ACK is lost, and the client retransmits its SYN while data is already in flight.
    talk.arrives(syn(0, 100, None));
    talk.arrives(syn(1, 200, Some(101)));
    talk.arrives(segment(0, 101, 500, Some(201)));
    talk.arrives(syn(1, 200, Some(101)));
    // Another copy does not arrive; delivered data is acknowledged all the same.
    talk.lost(syn(0, 100, None));
    talk.arrives(segment(1, 201, 0, Some(601)));
    talk.assert_right();
    talk.arrives(segment(1, 201, 0, Some(602)));
    assert_eq!(talk.broken()[0], [Rule::Acknowledgement]);
}

#[test]
fn a_syn_with_another_number_begins_anew() {
    for second in [7_000, 4_000_000_000, 50] {
        let mut talk = Conversation::new();
        let first = syn(0, 100, None);
        let sent = talk.sent(first);
        talk.arrives(syn(0, second, None));
        // The first SYN arrives late and is answered as well (RFC 9293 section 3.10.7: a challenge ACK); both are correct.
        talk.delivered(first, sent);
        talk.arrives(syn(1, 200, Some(second + 1)));
        talk.arrives(segment(1, 201, 0, Some(101)));
        talk.arrives(segment(0, second + 1, 10, Some(201)));
        talk.arrives(segment(1, 201, 0, Some(second + 11)));
        talk.assert_right();
        talk.arrives(segment(1, 201, 0, Some(second + 12)));
        assert_eq!(talk.broken()[0], [Rule::Acknowledgement]);
    }
}

#[test]
fn a_reset_needs_no_acknowledgment() {
    let mut talk = Conversation::new();
    talk.arrives(syn(0, 100, None));
    // A closed port answers with RST and ACK (RFC 9293 section 3.10.7.1); a reset without ACK takes its number from the
    // segment that it answers.
    talk.arrives(segment(1, 0, 0, Some(101)));
    talk.assert_right();
    let mut talk = Conversation::established([100, 200]);
    talk.arrives(segment(1, 4_000_000, 0, None));
    talk.arrives(segment(0, 101, 0, None));
    talk.assert_right();
}

#[test]
fn a_conversation_whose_start_was_not_observed_passes() {
    let mut talk = Conversation::new();
    talk.arrives(segment(0, 5_000, 100, Some(9_000)));
    talk.arrives(segment(1, 9_000, 10, Some(5_100)));
    // An older acknowledgment can be correct.
    talk.arrives(segment(0, 5_100, 0, Some(8_990)));
    talk.arrives(segment(0, 5_100, 100, Some(9_010)));
    talk.assert_right();
    talk.arrives(segment(1, 9_010, 0, Some(5_201)));
    assert_eq!(talk.broken(), [vec![Rule::Acknowledgement], vec![Rule::AcknowledgedHole]]);
}

#[test]
fn a_conversation_that_starts_with_data_in_both_directions_passes() {
    let mut talk = Conversation::new();
    let sent = [talk.sent(segment(0, 5_000, 100, Some(9_000))), talk.sent(segment(1, 9_000, 10, Some(5_000)))];
    talk.delivered(segment(0, 5_000, 100, Some(9_000)), sent[0]);
    talk.delivered(segment(1, 9_000, 10, Some(5_000)), sent[1]);
    talk.arrives(segment(0, 5_100, 0, Some(9_010)));
    talk.assert_right();
}

#[test]
fn a_delivery_of_numbers_that_were_not_sent_fails() {
    let mut talk = Conversation::established([100, 200]);
    let sent = talk.sent(segment(0, 101, 100, Some(201)));
    // The same packet arrives with numbers higher by one.
    talk.delivered(segment(0, 102, 100, Some(201)), sent);
    assert_eq!(talk.broken(), [vec![Rule::Sequence], vec![Rule::Origin]]);
}

#[test]
fn false_acknowledgments_of_a_receiver_break_the_rules() {
    for [bytes, from] in [[1, 1], [1, 50], [1000, 20]] {
        let link = || Link::new(10_000_000, 5_000_000, 50);
        let traffic = Traffic::Transfer { segments: 300, window: 10, initial: [4_294_900_000, 17] };
        let mut world = World::new(vec![link()], Some(vec![link()]), vec![traffic], 3);
        world.acknowledgement_error = Some((from, bytes as u32));
        let run = world.run(10_000_000_000, 2000);
        assert_eq!(run.broken(), ["acknowledgement", "acknowledged-hole"], "{bytes} from {from}");
    }
}

/// One datagram of 1000 bytes over two links of 1 Gbit/s (8 ns per byte, 2 bytes of framing) and 1 ms each: 8016 ns and
/// 1 000 000 ns, twice: 2 016 032 ns.
fn datagram(ip_bytes: u32, takes: u64) -> Run {
    let mut run = Run {
        links: vec![Link::new(1_000_000_000, 1_000_000, 9).declared; 2],
        flows: vec![(FlowId(0), DeclaredFlow { path: vec![LinkId(0), LinkId(1)], ipv6: false })],
        ..Run::default()
    };
    let packet = PacketView {
        flow: FlowId(0),
        ip_bytes,
        payload_bytes: ip_bytes - 28,
        codepoint: EcnCodepoint::NotEct,
        tcp: None,
    };
    run.events.push(Event::Sent(500, packet));
    run.events.push(Event::Delivered(500 + takes, packet, 500));
    run
}

#[test]
fn no_packet_is_faster_than_its_path() {
    let rules = |run: Run| run.streaming().failures.iter().map(|failure| failure.rule).collect::<Vec<_>>();
    assert_eq!(rules(datagram(1000, 2_016_032)), []);
    assert_eq!(rules(datagram(1000, 2_016_031)), [Rule::PathTime]);
    // 3000 bytes are sent in fragments: 24 000 ns on one link, minus a nanosecond for each of at most three fragments.
    assert_eq!(rules(datagram(3000, 2_024_000)), []);
    assert_eq!(rules(datagram(3000, 2_023_900)), [Rule::PathTime]);
    // An unknown path has no least time.
    let mut unknown = datagram(1000, 0);
    unknown.flows[0].1.path.clear();
    assert_eq!(rules(unknown), []);
}

#[test]
fn sent_packets_are_accounted_for_and_published() {
    let run = || {
        let mut run = datagram(1000, 3_000_000);
        let packet =
            PacketView { flow: FlowId(0), ip_bytes: 700, payload_bytes: 0, codepoint: EcnCodepoint::NotEct, tcp: None };
        run.events.push(Event::Sent(9_000_000, packet));
        run.events.push(Event::Dropped(9_000_000, packet, DropReason::Unreachable));
        run.events.push(Event::Sent(9_000_001, packet));
        let published = PublishedCounters {
            tx_packets: 3,
            tx_bytes: 2400,
            rx_packets: 1,
            rx_bytes: 1000,
            lost_packets: 1,
            ..PublishedCounters::default()
        };
        let end = FinalFlowState { in_flight_packets: 1, in_flight_bytes: 700, published: Some(published) };
        run.flow_ends.insert(FlowId(0), end);
        run
    };
    let verdict = run().streaming();
    assert!(verdict.passed(), "{verdict}");
    let mut wrong = run();
    wrong.flow_ends.get_mut(&FlowId(0)).unwrap().in_flight_packets = 0;
    let failures = wrong.streaming().failures;
    assert_eq!(
        (failures[0].rule, failures[0].message.as_str()),
        (
            Rule::FlowConservation,
            "expected 1 packet and 700 bytes in flight (sent minus delivered and dropped), found 0 packets and 700 bytes"
        )
    );
    assert_eq!(
        failures[0].to_string(),
        format!("flow-conservation: flow 0 (conversation 0) at the end: {}", failures[0].message)
    );
    let mut wrong = run();
    wrong.flow_ends.get_mut(&FlowId(0)).unwrap().published.as_mut().unwrap().rx_bytes = 1001;
    let failures = wrong.streaming().failures;
    assert_eq!(
        (failures.len(), failures[0].rule, failures[0].message.as_str()),
        (1, Rule::Counters, "expected rx_bytes = 1000 in the records, found 1001")
    );
}

#[test]
fn more_deliveries_than_sent_packets_fail_at_once() {
    let mut run = datagram(1000, 3_000_000);
    let again = run.events[1].clone();
    run.events.push(again);
    let failures = run.streaming().failures;
    assert_eq!((failures[0].rule, failures[0].at.as_nanos()), (Rule::FlowConservation, 3_000_500));
    assert_eq!(failures.len(), 1);
    // The same with zero delay over an unknown path: only the balance is wrong.
    let mut run = datagram(1000, 0);
    run.flows[0].1.path.clear();
    run.events.push(run.events[1].clone());
    assert_eq!(
        run.streaming().failures.iter().map(|failure| failure.rule).collect::<Vec<_>>(),
        [Rule::FlowConservation]
    );
    // A drop of a packet that was never sent, and a surplus of bytes only.
    let mut run = datagram(1000, 3_000_000);
    let Event::Sent(_, packet) = run.events[0] else { panic!("the first event is `Sent`") };
    run.events.push(Event::Dropped(4_000_000, packet, DropReason::QueueFull));
    assert_eq!(run.streaming().failures[0].at.as_nanos(), 4_000_000);
    let mut run = datagram(1000, 3_000_000);
    if let Event::Delivered(_, packet, _) = &mut run.events[1] {
        packet.ip_bytes += 1;
    }
    assert_eq!(run.streaming().failures[0].at.as_nanos(), 3_000_500);
}

#[test]
fn flows_may_be_declared_during_the_run() {
    use fullpipe_audit::Auditor;
    use fullpipe_record::Observer;
    use fullpipe_units::Instant;
    let packet =
        PacketView { flow: FlowId(8), ip_bytes: 100, payload_bytes: 72, codepoint: EcnCodepoint::NotEct, tcp: None };
    let mut auditor = Auditor::new(Vec::new());
    auditor.add_flow(FlowId(0), &DeclaredFlow::default());
    auditor.add_flow(FlowId(8), &DeclaredFlow::default());
    auditor.on_sent(Instant::ZERO, &packet);
    auditor.on_delivered(Instant::ZERO, &packet, Instant::ZERO);
    let mut other = auditor.clone();
    let verdict = auditor.finish(&Run::default());
    assert!(verdict.passed(), "{verdict}");
    // Flow 9 has state because flow 8 has, but was not declared; flow 10 has no state.
    for flow in [9, 10] {
        other.on_sent(Instant::ZERO, &PacketView { flow: FlowId(flow), ..packet });
    }
    let failures = other.finish(&Run::default()).failures;
    assert_eq!(failures.iter().map(|failure| failure.rule).collect::<Vec<_>>(), [Rule::Declaration; 2]);
}
