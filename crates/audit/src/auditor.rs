//! The streaming auditor, which checks every run with constant state per link and flow, at a cost of a few nanoseconds
//! per event.

use crate::declared::{DeclaredFlow, DeclaredLink, MinimumPathDelay};
use crate::exchange::ExchangeState;
use crate::flow::{self, FinalFlowState, FlowDetails, FlowState};
use crate::link::{FinalLinkState, LinkDetails, LinkState};
use crate::verdict::{AuditReport, FailureLog, Rule, Subject};
use fullpipe_record::{DropReason, MediumExchange, Observer, PacketView, Transmission};
use fullpipe_units::{FlowId, Instant, LinkId, words};
use std::collections::BTreeMap;

/// The state of the network at the end of a run.
pub trait FinalState {
    /// Returns the frames and bytes that are still queued at a link.
    fn link(&self, link: LinkId) -> FinalLinkState;

    /// Returns the packets and bytes of a flow that are still in flight, and the flow's counters in the records.
    fn flow(&self, flow: FlowId) -> FinalFlowState;

    /// Returns the name of the flow, for failure messages; empty if there is none.
    fn flow_name(&self, _flow: FlowId) -> String {
        String::new()
    }
}

/// The auditor of every run. It checks that no packet is faster than its links, and that no link exceeds its rate. It
/// also checks that packets and bytes are conserved, and that no data is acknowledged that was not sent.
///
/// ```
/// use fullpipe_audit::{Auditor, DeclaredFlow, DeclaredLink, FinalFlowState, FinalLinkState, FinalState, MediumAccess};
/// use fullpipe_record::{Observer, PacketView, Transmission};
/// use fullpipe_units::{EcnCodepoint, FlowId, Instant, LinkId};
///
/// struct Nothing;
/// impl FinalState for Nothing {
///     fn link(&self, _: LinkId) -> FinalLinkState { FinalLinkState::default() }
///     fn flow(&self, _: FlowId) -> FinalFlowState { FinalFlowState::default() }
/// }
///
/// let link = DeclaredLink {
///     name: "access".into(), medium: MediumAccess::PointToPoint, rate_bps: 1_000_000_000, delay_ns: 500_000,
///     delay_varies: false, framing_bytes: 2, min_frame_bytes: 0, mtu_bytes: 1500, queue: None, varies: Default::default(),
/// };
/// let mut auditor = Auditor::new(vec![link]);
/// auditor.add_flow(FlowId(0), &DeclaredFlow { path: vec![LinkId(0)], ipv6: false });
///
/// let packet = PacketView { flow: FlowId(0), ip_bytes: 1500, payload_bytes: 1472, codepoint: EcnCodepoint::NotEct, tcp: None };
/// let at = Instant::from_nanos;
/// auditor.on_sent(at(0), &packet);
/// auditor.on_offered(Instant::ZERO, LinkId(0), 1502);
/// // 1502 bytes at 1 Gbit/s take 12 016 ns; this frame takes one nanosecond less.
/// auditor.on_transmitted(&Transmission {
///     link: LinkId(0), flow: FlowId(0), wire_bytes: 1502,
///     offered: at(0), start: at(0), finish: at(12_015), arrival: at(512_015),
/// });
/// auditor.on_delivered(at(512_015), &packet, at(0));
/// let report = auditor.finish(&Nothing);
/// assert!(!report.passed());
/// assert_eq!(report.failures[0].rule.name(), "link-rate");
/// ```
#[derive(Clone, Debug)]
pub struct Auditor {
    links: Vec<LinkState>,
    /// The directions of each conversation; the numbers of its two flows are adjacent.
    pairs: Vec<Pair>,
    /// Minimum delays of paths, which several flows can share. The first entry is for undeclared flows.
    paths: Vec<MinimumPathDelay>,
    checked: Checked,
    details: Box<Details>,
}

/// Both directions of a conversation, in one cache line. With thousands of flows, each additional line causes a cache
/// miss.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Pair([FlowState; 2]);

const _: () = assert!(size_of::<Pair>() == 64, "a pair must fill one cache line");

/// Numbers of checked events.
#[derive(Clone, Copy, Debug, Default)]
struct Checked {
    frames: u64,
    sent: u64,
    delivered: u64,
    acknowledgements: u64,
    exchanges: u64,
}

/// State that is not used by most events.
#[derive(Clone, Debug, Default)]
struct Details {
    links: Vec<LinkDetails>,
    path_indices: BTreeMap<MinimumPathDelay, u32>,
    flows: FlowDetails,
    exchanges: BTreeMap<LinkId, ExchangeState>,
    log: FailureLog,
}

impl Auditor {
    /// Returns an auditor of these links; a [`LinkId`] is an index into `links`.
    pub fn new(links: Vec<DeclaredLink>) -> Self {
        let links = LinkDetails::of_all(links);
        Auditor {
            links: links.iter().map(LinkState::new).collect(),
            pairs: Vec::new(),
            paths: vec![MinimumPathDelay::default()],
            checked: Checked::default(),
            details: Box::new(Details { links, ..Details::default() }),
        }
    }

    /// Returns the state of both directions of a flow, for prefetching; `None` if the flow is unknown.
    #[inline(always)]
    pub fn state_of_flow(&self, flow: FlowId) -> Option<&impl Sized> {
        self.pairs.get(flow.index() / 2)
    }

    /// Returns the state of a link, for prefetching; `None` if the link is unknown.
    #[inline(always)]
    pub fn state_of_link(&self, link: LinkId) -> Option<&impl Sized> {
        self.links.get(link.index())
    }

    /// Declares a flow. Must be called before the first packet of the flow.
    pub fn add_flow(&mut self, flow: FlowId, declared: &DeclaredFlow) {
        let pair = flow.index() / 2;
        if pair >= self.pairs.len() {
            self.pairs.resize(pair + 1, Default::default());
        }
        let promise =
            MinimumPathDelay::over(&declared.path, |id| self.details.links.get(id.index()).map(|link| &*link.declared));
        let next = self.paths.len() as u32;
        let path = *self.details.path_indices.entry(promise).or_insert(next);
        if path == next {
            self.paths.push(promise);
        }
        self.pairs[pair].0[flow.index() & 1].path = path;
    }

    /// Allocates memory for this many flows.
    pub fn reserve_flows(&mut self, flows: usize) {
        self.pairs.reserve(flows.div_ceil(2).saturating_sub(self.pairs.len()));
    }

    /// Declares that the rate of a link changes at `at`. The link's declared rate must change in steps, without repetition.
    pub fn set_link_rate(&mut self, link: LinkId, at: Instant, rate_bps: u64) {
        let course = self.details.links.get_mut(link.index()).and_then(|link| link.course.as_mut());
        if let Some(course) = course {
            course.add_step(at.as_nanos(), rate_bps);
        }
    }

    /// Returns the number of transmissions over declared links so far.
    pub fn transmissions(&self) -> u64 {
        self.checked.frames
    }

    /// Compares the packets and bytes counted so far with the state at the end of the run, and returns the verdict.
    pub fn finish(&mut self, end: &impl FinalState) -> AuditReport {
        let details = &mut *self.details;
        let log = &mut details.log;
        for (index, state) in self.links.iter().enumerate() {
            let id = LinkId(index as u32);
            state.finish(id, end.link(id), log);
        }
        let (mut dropped, mut flows, mut published) = (0, 0, 0);
        for (pair, Pair(states)) in self.pairs.iter().enumerate() {
            for (side, state) in states.iter().enumerate() {
                let id = FlowId((2 * pair + side) as u32);
                if state.path == UNDECLARED {
                    if state.was_seen(id, &details.flows) {
                        undeclared(Subject::Flow(id), Instant::NEVER, log);
                    }
                    continue;
                }
                let flow_end = end.flow(id);
                dropped += state.finish(id, &flow_end, &details.flows, log);
                flows += 1;
                published += u64::from(flow_end.published.is_some());
            }
        }
        let Checked { frames, sent, delivered, acknowledgements, exchanges } = self.checked;
        let checks = [
            (Rule::Declaration, frames + sent + delivered + dropped),
            (Rule::FrameOrder, frames),
            (Rule::Overlap, frames + exchanges),
            (Rule::LinkRate, frames),
            (Rule::Propagation, frames),
            (Rule::LinkConservation, frames + self.links.len() as u64),
            (Rule::PathTime, delivered),
            (Rule::FlowConservation, delivered + dropped + flows),
            (Rule::Acknowledgement, acknowledgements),
            (Rule::Counters, published),
        ];
        let links = &details.links;
        log.verdict(checks, |subject| match subject {
            Subject::Link(link) => links.get(link.index()).map_or_else(String::new, |details| details.name.to_string()),
            Subject::Flow(flow) => end.flow_name(flow),
        })
    }
}

impl Auditor {
    /// Processes the segments of a burst one by one.
    #[cold]
    #[inline(never)]
    fn sent_singly(&mut self, now: Instant, mut packet: PacketView, packets: u32, step_bytes: u32) {
        for _ in 0..packets {
            self.on_sent(now, &packet);
            packet.advance_sequence(step_bytes);
        }
    }
}

/// Index of the minimum path delay for undeclared flows.
const UNDECLARED: u32 = 0;

#[cold]
fn undeclared(subject: Subject, at: Instant, log: &mut FailureLog) {
    log.note(Rule::Declaration, subject, at, || {
        format!("expected events only of declared links and flows, found one of {subject}")
    });
}

impl Observer for Auditor {
    #[inline(always)]
    fn on_sent(&mut self, now: Instant, packet: &PacketView) {
        let Some(Pair(pair)) = self.pairs.get_mut(packet.flow.index() / 2) else {
            return undeclared(Subject::Flow(packet.flow), now, &mut self.details.log);
        };
        self.checked.sent += 1;
        self.checked.acknowledgements += u64::from(packet.tcp.is_some_and(|tcp| tcp.has_ack));
        if !flow::accepts_sent(pair, packet.flow.index() & 1, packet) {
            let details = &mut *self.details;
            flow::judge_sent(pair, now, *packet, &mut details.flows, &mut details.log);
        }
    }

    #[inline(always)]
    fn on_sent_burst(&mut self, now: Instant, first: &PacketView, packets: u32, step_bytes: u32) -> bool {
        let taken = match self.pairs.get_mut(first.flow.index() / 2) {
            Some(Pair(pair)) => flow::accepts_sent_burst(pair, first.flow.index() & 1, first, packets, step_bytes),
            None => false,
        };
        if taken {
            self.checked.sent += u64::from(packets);
            self.checked.acknowledgements += u64::from(packets);
        } else {
            self.sent_singly(now, *first, packets, step_bytes);
        }
        true
    }

    #[inline(always)]
    fn on_delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        let Some(Pair(pair)) = self.pairs.get_mut(packet.flow.index() / 2) else {
            return undeclared(Subject::Flow(packet.flow), now, &mut self.details.log);
        };
        self.checked.delivered += 1;
        let flow = &mut pair[packet.flow.index() & 1];
        let path = &self.paths[flow.path as usize];
        if !flow.accepts_delivered(now, packet, sent, path) {
            let details = &mut *self.details;
            flow.judge_delivered(now, *packet, sent, path, &details.flows, &mut details.log);
        }
    }

    #[inline]
    fn on_dropped(&mut self, now: Instant, packet: &PacketView, _link: Option<LinkId>, _reason: DropReason) {
        let details = &mut *self.details;
        let Some(Pair(pair)) = self.pairs.get_mut(packet.flow.index() / 2) else {
            return undeclared(Subject::Flow(packet.flow), now, &mut details.log);
        };
        pair[packet.flow.index() & 1].dropped(now, packet, &mut details.flows, &mut details.log);
    }

    #[inline(always)]
    fn on_offered(&mut self, _now: Instant, link: LinkId, wire_bytes: u32) {
        match self.links.get_mut(link.index()) {
            Some(state) => state.offered(wire_bytes),
            None => undeclared(Subject::Link(link), Instant::ZERO, &mut self.details.log),
        }
    }

    #[inline]
    fn on_link_dropped(&mut self, _now: Instant, link: LinkId, wire_bytes: u32, reason: DropReason) {
        // A packet that is lost or corrupted after transmission is reported as transmitted as well.
        if reason.is_after_transmission() {
            return;
        }
        match self.links.get_mut(link.index()) {
            Some(state) => state.dropped(link, wire_bytes, &mut self.details.log),
            None => undeclared(Subject::Link(link), Instant::ZERO, &mut self.details.log),
        }
    }

    fn on_duplicated(&mut self, arrival: Instant, packet: &PacketView, link: LinkId) {
        let details = &mut *self.details;
        let Some(Pair(pair)) = self.pairs.get_mut(packet.flow.index() / 2) else {
            return undeclared(Subject::Flow(packet.flow), arrival, &mut details.log);
        };
        pair[packet.flow.index() & 1].duplicated(packet, &mut details.flows);
        let Some(link_details) = details.links.get(link.index()) else {
            return undeclared(Subject::Link(link), arrival, &mut details.log);
        };
        if !link_details.declared.varies.duplicates {
            details.log.note(Rule::FlowConservation, Subject::Link(link), arrival, || {
                format!(
                    "expected no duplicates on this link, found one of {}",
                    words::format_exact_bytes(packet.ip_bytes)
                )
            });
        }
    }

    #[inline(always)]
    fn on_transmitted(&mut self, frame: &Transmission) {
        let Some(state) = self.links.get_mut(frame.link.index()) else {
            return undeclared(Subject::Link(frame.link), frame.start, &mut self.details.log);
        };
        self.checked.frames += 1;
        if !state.accepts(frame) {
            let details = &mut *self.details;
            state.judge(*frame, &mut details.links[frame.link.index()], &mut details.log);
        }
    }

    fn on_exchange(&mut self, exchange: &MediumExchange) {
        if exchange.medium.index() >= self.links.len() {
            return undeclared(Subject::Link(exchange.medium), exchange.start, &mut self.details.log);
        }
        self.checked.exchanges += 1;
        let details = &mut *self.details;
        details.exchanges.entry(exchange.medium).or_default().judge(exchange, &mut details.log);
    }

    #[inline(always)]
    fn on_passed(&mut self, frame: &Transmission) {
        let Some(state) = self.links.get_mut(frame.link.index()) else {
            self.on_offered(frame.offered, frame.link, frame.wire_bytes);
            return self.on_transmitted(frame);
        };
        self.checked.frames += 1;
        if !state.accepts_passed(frame) {
            let details = &mut *self.details;
            state.judge(*frame, &mut details.links[frame.link.index()], &mut details.log);
        }
    }
}
