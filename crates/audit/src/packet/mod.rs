//! The auditor that follows every packet (`--audit`). It checks the order and the limit of queues, the origin and the
//! path of each packet, holes below acknowledgments, and published times. Its state grows with the number of packets in
//! flight, and its cost is several times that of the run.
//!
//! It runs in addition to [`Auditor`](crate::Auditor) and does not repeat its checks.

mod hops;
mod origin;
mod queue;
mod stream;

use crate::auditor::FinalState;
use crate::declared::{DeclaredFlow, DeclaredLink};
use crate::verdict::{AuditReport, FailureLog, Rule, Subject};
use fullpipe_record::{DropReason, Observer, PacketView, Transmission};
use fullpipe_units::{FlowId, Instant, LinkId, words};
use hops::{HopChecker, UnknownOrigin};
use origin::OriginChecker;
use queue::QueueChecker;
use stream::SequenceChecker;

/// The auditor that follows every packet of a run.
///
/// It checks the hops of flows with a known [`path`](DeclaredFlow::path), and the limits of links with a
/// [`queue`](DeclaredLink::queue). It checks the order of all queues except those with
/// [`allow_reordering`](Self::allow_reordering).
#[derive(Clone, Debug)]
pub struct PacketAuditor {
    declared: Vec<DeclaredLink>,
    queues: Vec<QueueChecker>,
    flows: Vec<FlowWatch>,
    log: FailureLog,
    acknowledgements: u64,
    frames: u64,
}

/// The state of one direction of a conversation.
#[derive(Clone, Debug, Default)]
struct FlowWatch {
    origin: OriginChecker,
    hops: HopChecker,
    stream: SequenceChecker,
}

impl PacketAuditor {
    /// Returns an auditor of these links; a [`LinkId`] is an index into `links`.
    pub fn new(links: Vec<DeclaredLink>) -> Self {
        let queues =
            links.iter().enumerate().map(|(index, link)| QueueChecker::new(LinkId(index as u32), link)).collect();
        PacketAuditor {
            declared: links,
            queues,
            flows: Vec::new(),
            log: FailureLog::default(),
            acknowledgements: 0,
            frames: 0,
        }
    }

    /// Declares a flow. Must be called before the first packet of the flow.
    pub fn add_flow(&mut self, flow: FlowId, declared: &DeclaredFlow) {
        // Both directions of a conversation have an entry, even if only one is declared.
        let needed = (flow.index() | 1) + 1;
        if needed > self.flows.len() {
            self.flows.resize_with(needed, FlowWatch::default);
        }
        self.flows[flow.index()].hops = HopChecker::new(declared);
    }

    /// Declares that the queue discipline of a link may reorder frames or drop any of them, as a fair queue does. The
    /// order and the limit of its queue are then not checked. Must be called before the first frame.
    pub fn allow_reordering(&mut self, link: LinkId) {
        if let Some(queue) = self.queues.get_mut(link.index()) {
            queue.in_order = false;
        }
    }

    /// Compares the published times with those computed from the events, and returns the verdict.
    pub fn finish(&mut self, end: &impl FinalState) -> AuditReport {
        let (mut order, mut limit, mut origin, mut hops, mut published) = (0, 0, 0, 0, 0);
        for queue in &self.queues {
            order += queue.order_checks;
            limit += queue.limit_checks;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            let id = FlowId(index as u32);
            origin += flow.origin.checks;
            hops += flow.hops.checks;
            if let Some(counters) = end.flow(id).published {
                published += 1;
                flow.origin.finish(id, &counters.times, &mut self.log);
            }
        }
        let checks = [
            (Rule::FrameSize, self.frames),
            (Rule::QueueOrder, order),
            (Rule::QueueLimit, limit),
            (Rule::Origin, origin),
            (Rule::Hops, hops),
            (Rule::AcknowledgedHole, self.acknowledgements),
            (Rule::Counters, published),
        ];
        let declared = &self.declared;
        self.log.verdict(checks, |subject| match subject {
            Subject::Link(link) => declared.get(link.index()).map_or_else(String::new, |link| link.name.clone()),
            Subject::Flow(flow) => end.flow_name(flow),
        })
    }
}

impl PacketAuditor {
    #[cold]
    #[inline(never)]
    fn judge_duplicated(&mut self, arrival: Instant, packet: &PacketView, link: LinkId) {
        let Some(flow) = self.flows.get_mut(packet.flow.index()) else { return };
        flow.origin.duplicated(packet);
        flow.hops.duplicated(arrival.as_nanos(), packet.ip_bytes, link);
    }

    #[cold]
    #[inline(never)]
    fn judge_sent(&mut self, now: Instant, packet: &PacketView) {
        // [`Auditor`](crate::Auditor) reports events of undeclared flows and links.
        let Some(flow) = self.flows.get_mut(packet.flow.index()) else { return };
        flow.origin.sent(now, packet);
        flow.hops.sent(now.as_nanos(), packet.ip_bytes);
        let Some(tcp) = &packet.tcp else { return };
        flow.stream.sent(tcp);
        let other = packet.flow.reverse();
        if tcp.has_ack
            && let Some(watch) = self.flows.get(other.index())
        {
            self.acknowledgements += 1;
            if let Err(complete) = watch.stream.judge(tcp.acknowledgement) {
                let found = tcp.acknowledgement;
                self.log.note(Rule::AcknowledgedHole, Subject::Flow(packet.flow), now, || {
                    format!(
                        "expected an acknowledgement of at most {complete}, up to which flow {other} was delivered without \
                         a gap, found {found}"
                    )
                });
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn judge_delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        let Some(flow) = self.flows.get_mut(packet.flow.index()) else { return };
        flow.origin.delivered(now, packet, sent, &mut self.log);
        if flow.hops.delivered(now.as_nanos(), packet.ip_bytes).is_err() {
            self.log.note(Rule::Hops, Subject::Flow(packet.flow), now, || {
                let bytes = words::format_exact_bytes(packet.ip_bytes);
                format!(
                    "expected a packet to be delivered when it arrives over the last link of its path, found a delivery of \
                     {bytes} without an arrival"
                )
            });
        }
        if let Some(tcp) = &packet.tcp {
            flow.stream.delivered(tcp);
        }
    }

    #[cold]
    #[inline(never)]
    fn judge_transmitted(&mut self, frame: &Transmission) {
        let Some(link) = self.declared.get(frame.link.index()) else { return };
        let (bytes, largest) = (frame.wire_bytes, link.max_wire_bytes());
        self.frames += 1;
        if bytes > largest {
            self.log.note(Rule::FrameSize, Subject::Link(frame.link), frame.start, || {
                format!(
                    "expected frames of at most {}, found one of {}",
                    words::format_exact_bytes(largest),
                    words::format_exact_bytes(bytes)
                )
            });
        }
        let queue = &mut self.queues[frame.link.index()];
        queue.transmitted(frame, &mut self.log);
        let in_order = queue.in_order;
        let Some(flow) = self.flows.get_mut(frame.flow.index()) else { return };
        if let Err(reason) = flow.hops.transmitted(frame, link, in_order) {
            self.log.note(Rule::Hops, Subject::Flow(frame.flow), frame.offered, || {
                let (name, bytes) = (&link.name, words::format_exact_bytes(frame.wire_bytes));
                let offered = words::format_exact_time(frame.offered.as_nanos());
                match reason {
                    UnknownOrigin::LinkNotOnPath => {
                        format!("expected no frame on link {name:?}, which is not on the flow's path, found one of {bytes}")
                    }
                    UnknownOrigin::NoMatchingArrival => format!(
                        "expected a frame offered to link {name:?} at {offered} to have been sent or received there at this \
                         time, found one of {bytes} that was not"
                    ),
                }
            });
        }
    }
}

// Most runs do not use this auditor. Its code is kept out of the hot path, and arguments are copied so that the
// caller's values can stay in registers.
impl Observer for PacketAuditor {
    fn on_duplicated(&mut self, arrival: Instant, packet: &PacketView, link: LinkId) {
        self.judge_duplicated(arrival, packet, link);
    }

    #[inline(always)]
    fn on_sent(&mut self, now: Instant, packet: &PacketView) {
        let packet = *packet;
        self.judge_sent(now, &packet);
    }

    #[inline(always)]
    fn on_delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        let packet = *packet;
        self.judge_delivered(now, &packet, sent);
    }

    #[inline(always)]
    fn on_transmitted(&mut self, frame: &Transmission) {
        let frame = *frame;
        self.judge_transmitted(&frame);
    }

    #[cold]
    #[inline(never)]
    fn on_dropped(&mut self, now: Instant, packet: &PacketView, _link: Option<LinkId>, _reason: DropReason) {
        let Some(flow) = self.flows.get_mut(packet.flow.index()) else { return };
        flow.origin.dropped(now, packet, &mut self.log);
    }

    #[cold]
    #[inline(never)]
    fn on_offered(&mut self, _now: Instant, link: LinkId, wire_bytes: u32) {
        if let Some(queue) = self.queues.get_mut(link.index()) {
            queue.offered(wire_bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_link_dropped(&mut self, _now: Instant, link: LinkId, wire_bytes: u32, reason: DropReason) {
        // A packet that is lost or corrupted after transmission has left the queue.
        if let Some(queue) = self.queues.get_mut(link.index())
            && !reason.is_after_transmission()
        {
            queue.dropped(wire_bytes, &mut self.log);
        }
    }
}
