//! What an application can do while it is called: time, streams of whichever transport its flow has, datagrams.
//!
//! The number of a stream tells who carries it: TCP's endpoints come first, then the real QUIC stack's ends
//! ([`super::quic`]), then streams of the QUIC model ([`super::model`]). What an application calls is remembered and asked for
//! output when the application has returned.

use super::{Core, NONE, model};
use crate::witness::Witness;
use fullpipe_network::{Content, Network, Packet};
use fullpipe_transport::{Priority, Stream};
use fullpipe_units::{FlowId, Instant};
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_workload::{Io, OpenOptions, StreamId};

/// What one application can do, while it is being called.
pub(super) struct AtHost<'a> {
    pub(super) core: &'a mut Core,
    pub(super) network: &'a mut Network<Witness>,
    pub(super) application: u32,
    /// The endpoint that is asked for output anyway after the call.
    pub(super) serviced: u32,
}

impl Io for AtHost<'_> {
    fn now(&self) -> Instant {
        self.network.now()
    }

    fn wake_at(&mut self, at: Instant) {
        self.core.wake_at(self.network, self.application, at);
    }

    fn open_with(&mut self, options: &OpenOptions) -> StreamId {
        let number = self.core.open(self.network, self.application / 2, options);
        if number != NONE {
            self.core.touched.push(number);
        }
        StreamId(number)
    }

    fn open_beside(&mut self, beside: StreamId) -> Option<StreamId> {
        self.model_open_beside(beside.0)
    }

    fn set_priority(&mut self, stream: StreamId, priority: Priority) {
        self.model_set_priority(stream.0, priority);
    }

    fn close_connection(&mut self, stream: StreamId) {
        self.model_close(stream.0);
    }

    fn stream_number(&self, stream: StreamId) -> Option<u64> {
        if stream.0 >= model::FIRST {
            return self.model_numbers(stream.0).map(|(_, number)| number);
        }
        self.connection_number(stream).map(|_| 0)
    }

    fn stream(&mut self, stream: StreamId) -> Option<&mut dyn Stream> {
        if stream.0 != self.serviced
            && !self.core.touched.contains(&stream.0)
            && !(stream.0 >= model::FIRST && self.core.model.same_connection(stream.0, self.serviced))
        {
            self.core.touched.push(stream.0);
        }
        if stream.0 >= model::FIRST {
            return self.model_stream(stream.0);
        }
        let Core { endpoints, quic, .. } = &mut *self.core;
        let Some(endpoint) = endpoints.get_mut(stream.0 as usize) else {
            return quic.stream(stream.0, self.application);
        };
        let endpoint = endpoint.as_mut()?;
        (endpoint.application == self.application).then_some(endpoint as &mut dyn Stream)
    }

    fn connection_number(&self, stream: StreamId) -> Option<u32> {
        if stream.0 >= model::FIRST {
            return self.model_numbers(stream.0).map(|(number, _)| number);
        }
        let Some(endpoint) = self.core.endpoints.get(stream.0 as usize) else {
            return self.core.quic_connection_number(stream.0, self.application);
        };
        let endpoint = endpoint.as_ref()?;
        (endpoint.application == self.application).then(|| self.core.conversations[endpoint.flow.index() / 2].number)
    }

    fn send_datagram(&mut self, payload_bytes: u32) {
        let flow = self.application / 2;
        let described = &self.core.flows[flow as usize];
        let initiator = self.application.is_multiple_of(2);
        let (from, to) = if initiator { (described.from, described.to) } else { (described.to, described.from) };
        let version = described.version;
        let ip_bytes = version.header_bytes() + UDP_HEADER_BYTES + payload_bytes;
        let flow = FlowId(2 * flow + u32::from(!initiator));
        let packet = Packet::new(flow, to, ip_bytes, Content::Udp { payload_bytes });
        self.network.send(from, &Packet { version, ..packet });
    }
}
