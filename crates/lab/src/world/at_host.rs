//! The interface of applications to their host ([`Io`]): the clock, timers, streams of the flow's transport, and
//! datagrams.
//!
//! Streams on which an application acts are recorded. After the application has returned, the world polls their
//! endpoints for output.

use super::state::HostState;
use super::streams::{NO_STREAM, StreamKey};
use crate::witness::RunObserver;
use fullpipe_network::{Network, Packet, PacketContent};
use fullpipe_transport::{Priority, Stream};
use fullpipe_units::{FlowId, Instant};
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_workload::{Io, OpenOptions, StreamId};

/// The [`Io`] of one application for the duration of a call.
pub(super) struct ApplicationIo<'a> {
    pub(super) core: &'a mut HostState,
    pub(super) network: &'a mut Network<RunObserver>,
    pub(super) application: u32,
    /// The stream whose event the application receives. Its endpoint is always served after the call.
    pub(super) serviced: StreamId,
}

impl Io for ApplicationIo<'_> {
    fn now(&self) -> Instant {
        self.network.now()
    }

    fn wake_at(&mut self, at: Instant) {
        self.core.wake_at(self.network, self.application, at);
    }

    fn open_with(&mut self, options: &OpenOptions) -> StreamId {
        let stream = self.core.open(self.network, self.application / 2, options);
        if stream != NO_STREAM {
            self.core.touched.push(stream);
        }
        stream
    }

    fn open_on_same_connection(&mut self, beside: StreamId) -> Option<StreamId> {
        let (index, _) = self.locate(beside)?;
        let now = self.network.now();
        let endpoint = self.core.endpoints.quic_model.slots.get_mut(index)?;
        let number = endpoint.connection.open_stream(now, true)?;
        endpoint.single = false;
        let stream = StreamKey::QuicModel(self.core.endpoints.quic_model.stream(index, number)?).id();
        self.core.touched.push(stream);
        Some(stream)
    }

    fn set_priority(&mut self, stream: StreamId, priority: Priority) {
        if let Some((connection, number)) = self.model_connection(stream) {
            connection.set_priority(number, priority);
        }
    }

    fn close_connection(&mut self, stream: StreamId) {
        let now = self.network.now();
        if let Some((connection, _)) = self.model_connection(stream) {
            connection.close_when_done(now);
            self.core.touched.push(stream);
        }
    }

    fn stream_number(&self, stream: StreamId) -> Option<u64> {
        match StreamKey::of(stream)? {
            StreamKey::QuicModel(_) => {
                let (index, number) = self.locate(stream)?;
                let id = self.core.endpoints.quic_model.slots.get(index)?.connection.stream_id(number)?;
                Some(id / 4)
            }
            StreamKey::Tcp(_) | StreamKey::QuicStack(_) => self.connection_number(stream).map(|_| 0),
        }
    }

    fn stream(&mut self, stream: StreamId) -> Option<&mut dyn Stream> {
        let key = StreamKey::of(stream)?;
        if stream != self.serviced && !self.core.touched.contains(&stream) && !self.is_serviced(key) {
            self.core.touched.push(stream);
        }
        let application = self.application;
        let endpoints = &mut self.core.endpoints;
        match key {
            StreamKey::Tcp(index) => {
                let endpoint = endpoints.tcp.slots.get_mut(index)?;
                (endpoint.binding.application == application).then_some(endpoint as &mut dyn Stream)
            }
            StreamKey::QuicModel(stream) => {
                let (index, number) = endpoints.quic_model.locate(stream)?;
                let endpoint = endpoints.quic_model.slots.get_mut(index)?;
                if endpoint.binding.application != application {
                    return None;
                }
                endpoint.connection.stream(self.network.now(), number)
            }
            StreamKey::QuicStack(index) => {
                let endpoint = endpoints.quic_stack.slots.get_mut(index)?;
                (endpoint.binding.application == application).then_some(&mut endpoint.connection as &mut dyn Stream)
            }
        }
    }

    fn connection_number(&self, stream: StreamId) -> Option<u32> {
        let endpoints = &self.core.endpoints;
        let binding = match StreamKey::of(stream)? {
            StreamKey::Tcp(index) => &endpoints.tcp.slots.get(index)?.binding,
            StreamKey::QuicModel(stream) => {
                let (index, number) = endpoints.quic_model.locate(stream)?;
                let endpoint = endpoints.quic_model.slots.get(index)?;
                endpoint.connection.stream_id(number)?;
                &endpoint.binding
            }
            StreamKey::QuicStack(index) => &endpoints.quic_stack.slots.get(index)?.binding,
        };
        let conversation = &self.core.conversations[binding.place().0];
        (binding.application == self.application).then_some(conversation.number)
    }

    fn send_datagram(&mut self, payload_bytes: u32) {
        let flow = self.application / 2;
        let described = &self.core.flows[flow as usize];
        let initiator = self.application.is_multiple_of(2);
        let (from, to) = if initiator { (described.from, described.to) } else { (described.to, described.from) };
        let version = described.version;
        let ip_bytes = version.header_bytes() + UDP_HEADER_BYTES + payload_bytes;
        let flow = FlowId(2 * flow + u32::from(!initiator));
        let packet = Packet::new(flow, to, ip_bytes, PacketContent::Udp { payload_bytes });
        self.network.send(from, &Packet { version, ..packet });
    }
}

impl ApplicationIo<'_> {
    /// Returns whether a stream is on the connection that is always served after the call.
    fn is_serviced(&self, key: StreamKey) -> bool {
        match (key, StreamKey::of(self.serviced)) {
            (StreamKey::QuicModel(one), Some(StreamKey::QuicModel(other))) => {
                self.core.endpoints.quic_model.same_connection(one, other)
            }
            _ => false,
        }
    }

    /// Returns the QUIC model endpoint of this stream and the number of the stream on its connection, if the stream
    /// belongs to this application.
    fn locate(&self, stream: StreamId) -> Option<(u32, u32)> {
        let StreamKey::QuicModel(stream) = StreamKey::of(stream)? else { return None };
        let model = &self.core.endpoints.quic_model;
        let (index, number) = model.locate(stream)?;
        (model.slots.get(index)?.binding.application == self.application).then_some((index, number))
    }

    fn model_connection(&mut self, stream: StreamId) -> Option<(&mut fullpipe_quic::Connection, u32)> {
        let (index, number) = self.locate(stream)?;
        let endpoint = self.core.endpoints.quic_model.slots.get_mut(index)?;
        Some((&mut endpoint.connection, number))
    }
}
