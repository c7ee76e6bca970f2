//! The interface for observers of endpoints, which read reports, connections and packet logs between two events.

use super::binding::{ConversationEnd, place_of};
use super::endpoints::ConnectionMut;
use super::flow::EndpointFactory;
use super::state::{HostState, World};
use super::streams::StreamKey;
use super::timers::Timer;
use crate::stack::journal::PacketLog;
use fullpipe_engine::EventId;
use fullpipe_network::Packet;
use fullpipe_transport::endpoint::{EndpointId, EndpointKind, EndpointReport};

impl World {
    /// Returns the state and counters of an endpoint whose connection is not closed, or of an end of a tunnel. The
    /// endpoint is given by its conversation and end (0: initiator). The conversation of a tunnel has the number of the
    /// tunnel's flow.
    pub(crate) fn report(&mut self, (conversation, end): ConversationEnd) -> Option<EndpointReport> {
        let id = self.core.conversations.get(conversation)?.endpoints[end]?;
        self.core.endpoints.report_mut(id)
    }

    /// Returns the last report of one end of a conversation. It includes closed connections and endpoints in a kernel.
    /// Endpoints of the QUIC stack have a last report only after [`World::finish`]. The report of a closed TCP
    /// connection contains only retransmissions.
    pub(crate) fn last_report(&self, (conversation, end): ConversationEnd) -> Option<EndpointReport> {
        let known = &self.core.conversations[conversation];
        if let Some(report) = self.core.endpoints.kernel.reports.get(&(known.flow as usize, end)) {
            return Some(report.clone());
        }
        if let Some(report) = self.core.over.get(&(conversation as u32, end)) {
            return Some(report.clone());
        }
        match known.endpoints[end] {
            Some(id) => self.core.endpoints.report(id),
            None => known.retransmitted[end].map(|segments| EndpointReport {
                retransmitted_packets: Some(u64::from(segments.get() - 1)),
                ..EndpointReport::new(EndpointKind::Tcp)
            }),
        }
    }

    /// Returns the number of retransmission and probe timeouts of one end of a conversation; 0 if its endpoint does not
    /// report them.
    pub(crate) fn timeouts(&self, (conversation, end): ConversationEnd) -> u64 {
        let known = &self.core.conversations[conversation];
        let live = known.endpoints[end].and_then(|id| self.core.endpoints.timeouts(id));
        live.unwrap_or(known.timeouts[end].into())
    }

    /// Returns the last reports of one end (0: initiator) of a flow's QUIC connections, in the order in which the
    /// connections were opened. Valid only after [`World::finish`].
    pub(crate) fn last_reports_of_flow(&self, flow: usize, end: usize) -> impl Iterator<Item = EndpointReport> {
        let conversations = self.core.of_flows.get(&(flow as u32)).map_or(&[][..], Vec::as_slice);
        conversations.iter().filter_map(move |conversation| self.last_report((*conversation as usize, end)))
    }

    /// Returns the number of connections that are not closed.
    pub(crate) fn live_endpoints(&self) -> usize {
        self.core.endpoints.live()
    }

    /// Stores the last reports of the QUIC stack's endpoints after the run, because reading them needs mutable access.
    pub(crate) fn finish(&mut self) {
        let HostState { endpoints, conversations, flows, over, of_flows, .. } = &mut self.core;
        for endpoint in endpoints.quic_stack.slots.iter_mut() {
            let (conversation, end) = endpoint.binding.place();
            over.insert((conversation as u32, end), endpoint.report());
        }
        of_flows.clear();
        for (number, conversation) in conversations.iter().enumerate() {
            let flow = flows.get(conversation.flow as usize);
            let is_quic = |flow: &super::flow::Flow| {
                matches!(flow.endpoints, EndpointFactory::QuicModel(_) | EndpointFactory::QuicStack(_))
            };
            if flow.is_some_and(is_quic) {
                of_flows.entry(conversation.flow).or_default().push(number as u32);
            }
        }
    }

    /// Sets the report of an end (0: initiator) of a flow that a kernel implements.
    #[cfg_attr(
        not(all(feature = "real-time", target_os = "linux")),
        expect(dead_code, reason = "only runs in real time have endpoints in a kernel")
    )]
    pub(crate) fn set_kernel_report(&mut self, flow: usize, end: usize, report: EndpointReport) {
        self.core.endpoints.kernel.reports.insert((flow, end), report);
    }

    /// Returns the connection at one end of a conversation (0: initiator), while it is not closed.
    pub(crate) fn connection_mut(&mut self, (conversation, end): ConversationEnd) -> Option<ConnectionMut<'_>> {
        let id = self.core.conversations.get(conversation)?.endpoints[end]?;
        self.core.endpoints.connection_mut(id)
    }

    /// Returns the end of a conversation whose connection has a timer for this event.
    pub(crate) fn place_of_timer(&self, event: EventId) -> Option<ConversationEnd> {
        let id = match Timer::of(event) {
            Timer::Tcp(index, _) => EndpointId::new(EndpointKind::Tcp, index),
            Timer::QuicModel(index, _) => EndpointId::new(EndpointKind::QuicModel, index),
            Timer::QuicStack(index) => EndpointId::new(EndpointKind::QuicStack, index),
            Timer::Programs(_) | Timer::Application(_) => return None,
        };
        self.core.endpoints.place(id)
    }

    /// Enables observation from now on: new endpoints of the QUIC stack and new tunnels keep packet logs. The world
    /// also records the ends of conversations on which applications act.
    pub(crate) fn begin_watching(&mut self) {
        self.core.endpoints.quic_stack.journals.get_or_insert_default();
        self.core.called.get_or_insert_default();
    }

    /// Removes and returns the ends of conversations on which applications have acted since the last call, except those
    /// whose events the applications were handling.
    pub(crate) fn take_called(&mut self) -> Vec<ConversationEnd> {
        self.core.called.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the packet log of the QUIC stack at one end of a conversation or of a tunnel.
    pub(crate) fn journal(&self, place: ConversationEnd) -> Option<&PacketLog> {
        self.core.endpoints.quic_stack.journals.as_ref()?.get(&place)
    }

    /// Returns the ends that can change without an event of their own conversation. QUIC stack endpoints whose
    /// datagrams go through tunnels send and receive no packets of the network. Ends of tunnels run with the programs
    /// of their host.
    pub(crate) fn tunneled(&self) -> impl Iterator<Item = ConversationEnd> {
        let journals = self.core.endpoints.quic_stack.journals.iter().flatten();
        journals.map(|(place, _)| *place).filter(|(conversation, _)| {
            let flow = self.core.conversations[*conversation].flow;
            let flow = self.core.flows.get(flow as usize);
            flow.is_some_and(|flow| flow.via.is_some() || matches!(flow.endpoints, EndpointFactory::Tunnel(_)))
        })
    }
}

impl HostState {
    /// Records that an application has acted on a stream.
    #[cold]
    #[inline(never)]
    pub(super) fn note_called(&mut self, stream: StreamKey) {
        let id = match stream {
            StreamKey::Tcp(index) => Some(EndpointId::new(EndpointKind::Tcp, index)),
            StreamKey::QuicModel(stream) => {
                let owner = self.endpoints.quic_model.locate(stream);
                owner.map(|(index, _)| EndpointId::new(EndpointKind::QuicModel, index))
            }
            StreamKey::QuicStack(index) => Some(EndpointId::new(EndpointKind::QuicStack, index)),
        };
        let place = id.and_then(|id| self.endpoints.place(id));
        if let Some(called) = &mut self.called {
            called.extend(place);
        }
    }
}

/// Returns the end of a conversation that has sent a packet.
pub(crate) fn sender(packet: &Packet) -> ConversationEnd {
    place_of(packet.flow)
}
