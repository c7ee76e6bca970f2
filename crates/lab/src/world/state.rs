//! The state of all hosts: endpoints, applications, and the table of conversations that connects them.
//!
//! A conversation (five-tuple) is assigned two consecutive [`FlowId`]s when it is opened. The [`FlowId`] of a packet
//! determines its receiver, so that no addresses and ports need to be compared. The first conversation of the
//! scenario's n-th flow has the numbers 2n and 2n + 1.

use super::binding::ConversationEnd;
use super::endpoints::Endpoints;
use super::flow::{Conversation, EndpointFactory, Flow, UNDESCRIBED};
use super::kernel::{Delivery, RealHosts};
use super::quic_model::ModelEndpoints;
use super::tcp::TcpEndpoints;
use super::timers::Timer;
use crate::witness::RunObserver;
use fullpipe_engine::TimerSlot;
use fullpipe_network::{EndpointPair, Network, PacketHandle};
use fullpipe_scenario::Scenario;
use fullpipe_tcp::FastOpenEntry;
use fullpipe_transport::endpoint::EndpointReport;
use fullpipe_units::{FlowId, Instant, NodeId};
use fullpipe_wire::IpVersion;
use fullpipe_workload::{Application, OpenOptions, Progress, StreamId};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// An application's timer.
#[derive(Debug)]
pub(super) struct ApplicationTimer {
    pub(super) deadline: Instant,
    pub(super) slot: TimerSlot,
}

/// The state of all hosts without the applications, which call into this state.
#[derive(Debug)]
pub(super) struct HostState {
    pub(super) endpoints: Endpoints,
    /// The conversations, by number.
    pub(super) conversations: Vec<Conversation>,
    pub(super) flows: Vec<Flow>,
    /// Conversations opened by each flow so far.
    pub(super) opened: Vec<u32>,
    pub(super) wakes: Vec<ApplicationTimer>,
    /// Streams on which applications have acted and whose endpoints must be served.
    pub(super) touched: Vec<StreamId>,
    /// Ends of conversations on which applications have acted; `None` without an observer.
    pub(super) called: Option<Vec<ConversationEnd>>,
    /// The scenario, for its seed and names. Random streams are named after flows, so the order of flows in the file
    /// has no effect.
    pub(super) scenario: Arc<Scenario>,
    /// Options of conversations whose acceptor has not been created yet.
    pub(super) options: BTreeMap<u32, OpenOptions>,
    /// TCP Fast Open: the entry of each client (first) for each server (second).
    pub(super) fast_open: BTreeMap<(NodeId, NodeId), FastOpenEntry>,
    /// Last reports of QUIC endpoints whose connections are closed, by conversation and end.
    pub(super) over: BTreeMap<(u32, usize), EndpointReport>,
    /// The conversations of each QUIC flow, in the order in which they were opened; filled after the run.
    pub(super) of_flows: BTreeMap<u32, Vec<u32>>,
}

/// All hosts.
#[derive(Debug)]
pub(crate) struct World {
    pub(super) core: HostState,
    /// Two applications per flow: the initiator's at 2n, the acceptor's at 2n + 1.
    pub(super) applications: Vec<Box<dyn Application>>,
    pub(super) started: Vec<bool>,
}

impl World {
    /// Creates a world with these flows and applications. From acknowledgment `faulty_from` on, TCP receivers
    /// acknowledge one byte too many, which is a fault for tests of the auditor; 0 means never.
    pub(crate) fn new(
        flows: Vec<Flow>,
        applications: Vec<Box<dyn Application>>,
        scenario: Arc<Scenario>,
        faulty_from: u64,
    ) -> Self {
        let wakes = applications
            .iter()
            .map(|_| ApplicationTimer { deadline: Instant::NEVER, slot: TimerSlot::default() })
            .collect::<Vec<_>>();
        let opened = vec![0; flows.len()];
        let over_tcp = flows.iter().filter(|flow| matches!(flow.endpoints, EndpointFactory::Tcp(_))).count();
        let over_model = flows.iter().filter(|flow| matches!(flow.endpoints, EndpointFactory::QuicModel(_))).count();
        let conversations = (0..flows.len()).map(|flow| Conversation::new(flow as u32, 0)).collect();
        World {
            started: vec![false; flows.len()],
            core: HostState {
                endpoints: Endpoints::new(
                    TcpEndpoints::new(2 * over_tcp, faulty_from),
                    ModelEndpoints::new(2 * over_model),
                ),
                conversations,
                flows,
                opened,
                wakes,
                touched: Vec::new(),
                called: None,
                scenario,
                options: BTreeMap::new(),
                fast_open: BTreeMap::new(),
                over: BTreeMap::new(),
                of_flows: BTreeMap::new(),
            },
            applications,
        }
    }

    /// Schedules the start of every flow.
    pub(crate) fn start(&mut self, network: &mut Network<RunObserver>) {
        for flow in 0..self.core.flows.len() {
            let application = 2 * flow as u32;
            if self.is_real(self.core.flows[flow].from) {
                continue;
            }
            let start = Instant::ZERO.saturating_add(self.core.scenario.flows[flow].start);
            self.core.wake_at(network, application, start);
        }
    }

    /// Returns the number of conversations so far, including the first of each flow that has not started.
    pub(crate) fn conversations(&self) -> usize {
        self.core.conversations.len()
    }

    /// Returns the scenario's flow of a conversation; `None` if no flow declares the conversation, which occurs only
    /// between real hosts.
    pub(crate) fn flow_of(&self, conversation: usize) -> Option<usize> {
        let flow = self.core.conversations[conversation].flow;
        (flow != UNDESCRIBED).then_some(flow as usize)
    }

    /// Returns the conversations that a flow has opened so far, in order.
    pub(crate) fn conversations_of(&self, flow: usize) -> impl Iterator<Item = usize> {
        let further = self.core.flows.len()..self.core.conversations.len();
        let is_of_flow = move |number: &usize| self.core.conversations[*number].flow as usize == flow;
        std::iter::once(flow).chain(further.filter(is_of_flow))
    }

    /// Returns the conversation that a flow has opened last.
    pub(crate) fn newest_conversation_of(&self, flow: usize) -> usize {
        if self.core.opened[flow] <= 1 { flow } else { self.conversations_of(flow).last().unwrap_or(flow) }
    }

    /// Returns the number of a conversation within its flow, from 0.
    pub(crate) fn number_of(&self, conversation: usize) -> u32 {
        self.core.conversations[conversation].number
    }

    /// Returns the name of a flow's congestion control algorithm; `None` for UDP.
    pub(crate) fn control(&self, flow: usize) -> Option<&str> {
        self.core.flows[flow].endpoints.control()
    }

    /// Returns the progress of the application at one end of a flow (0: initiator).
    pub(crate) fn progress(&self, flow: usize, end: usize) -> Progress {
        self.application(flow, end).progress()
    }

    /// Returns the application at one end of a flow (0: initiator).
    pub(crate) fn application(&self, flow: usize, end: usize) -> &dyn Application {
        &*self.applications[2 * flow + end]
    }

    /// Declares hosts as real: packets for them are delivered outside the model.
    pub(crate) fn set_real(&mut self, network: &mut Network<RunObserver>, hosts: RealHosts) {
        network.enable_notifications(hosts.hosts.iter().map(|host| host.node));
        self.core.endpoints.real = Some(Box::new(hosts));
    }

    /// Returns the real hosts, if there are any.
    pub(crate) fn real_mut(&mut self) -> Option<&mut RealHosts> {
        self.core.endpoints.real.as_deref_mut()
    }

    /// Returns the real hosts, if there are any.
    pub(crate) fn real(&self) -> Option<&RealHosts> {
        self.core.endpoints.real.as_deref()
    }

    /// Returns whether a host is real.
    pub(crate) fn is_real(&self, node: NodeId) -> bool {
        self.real().is_some_and(|real| real.port(node).is_some())
    }

    /// Removes and returns the frames that were delivered to real hosts since the last call.
    pub(crate) fn delivered(&mut self) -> impl Iterator<Item = Delivery> {
        self.core.endpoints.real.iter_mut().flat_map(|real| real.delivered.drain(..))
    }

    /// Adds a conversation with a real host, as part of the flow that declares it, if any. Returns its number.
    #[cold]
    pub(crate) fn introduce_real(
        &mut self,
        network: &mut Network<RunObserver>,
        described: Option<u32>,
        ends: EndpointPair,
        version: IpVersion,
        protocol: u8,
    ) -> u32 {
        let flow = described.unwrap_or(UNDESCRIBED);
        let number = self.core.opened.get(flow as usize).copied().unwrap_or(0);
        if let Some(opened) = self.core.opened.get_mut(flow as usize) {
            *opened += 1;
        }
        let conversation = if described.is_some() && number == 0 {
            flow
        } else {
            self.core.conversations.push(Conversation::new(flow, number));
            network.observer.grow(self.core.conversations.len(), version);
            self.core.conversations.len() as u32 - 1
        };
        network.directory.add(FlowId(2 * conversation), ends);
        if described.is_none()
            && let Some(real) = self.real_mut()
        {
            real.conversations.insert(conversation, (protocol, ends));
        }
        conversation
    }
}

impl HostState {
    pub(super) fn wake_at(&mut self, network: &mut Network<RunObserver>, application: u32, at: Instant) {
        let wake = &mut self.wakes[application as usize];
        wake.deadline = at;
        wake.slot.arm(&mut network.calendar, Timer::Application(application).event(), at);
    }

    /// Delivers a packet for a real host; returns false if the host is not real.
    #[cold]
    #[inline(never)]
    pub(super) fn deliver(&mut self, network: &mut Network<RunObserver>, node: NodeId, handle: PacketHandle) -> bool {
        let delivered = self.endpoints.real.as_mut().is_some_and(|real| real.deliver(network, node, handle));
        if delivered {
            network.arena.release(handle);
        }
        delivered
    }

    /// Removes the endpoint of a closed TCP connection.
    #[cold]
    pub(super) fn forget_tcp(&mut self, index: u32) {
        let Some(endpoint) = self.endpoints.tcp.slots.remove(index) else { return };
        let (conversation, end) = endpoint.binding.place();
        let conversation = &mut self.conversations[conversation];
        conversation.endpoints[end] = None;
        let counts = endpoint.connection.statistics();
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        conversation.retransmitted[end] = NonZeroU32::new(short(counts.retransmitted_segments).saturating_add(1));
        conversation.timeouts[end] = short(super::tcp::timeouts(&counts));
    }

    /// Removes the endpoint of a closed connection of the QUIC model.
    #[cold]
    pub(super) fn forget_model(&mut self, index: u32) {
        let Some(endpoint) = self.endpoints.quic_model.remove(index) else { return };
        let (conversation, end) = endpoint.binding.place();
        let timeouts = endpoint.connection.statistics().probe_timeouts;
        self.conversations[conversation].timeouts[end] = u32::try_from(timeouts).unwrap_or(u32::MAX);
        self.keep_last_report((conversation, end), endpoint.report());
    }

    /// Keeps the last report of a removed endpoint.
    pub(super) fn keep_last_report(&mut self, (conversation, end): ConversationEnd, report: EndpointReport) {
        self.conversations[conversation].endpoints[end] = None;
        self.over.insert((conversation as u32, end), EndpointReport { control_values: Vec::new(), ..report });
    }
}
