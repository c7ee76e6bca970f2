//! A few long-lived streams on one connection. The first carries one request per page; objects arrive on all of them.

use super::super::WebSpec;
use super::super::load::PageLoad;
use super::super::outbox::SendBuffer;
use super::super::wire::{CONTENT_BYTES, Request};
use super::{Browser, Came, News, SEVERAL_STREAMS};
use crate::application::{self, Io, StreamId};
use fullpipe_transport::TransportEvent;
use std::collections::VecDeque;

/// A stream.
#[derive(Debug, Default)]
struct Channel {
    id: Option<StreamId>,
    out: SendBuffer,
    /// Expected objects in order, with the missing bytes of each.
    expected: VecDeque<(Request, u64)>,
}

impl Channel {
    fn write(&mut self, io: &mut dyn Io) {
        if let Some(stream) = self.id.and_then(|id| io.stream(id)) {
            self.out.flush(stream);
        }
    }
}

#[derive(Debug)]
pub(super) struct StreamsClient {
    spec: WebSpec,
    channels: Vec<Channel>,
}

impl StreamsClient {
    pub(super) fn new(spec: &WebSpec) -> Self {
        StreamsClient { spec: spec.clone(), channels: (0..spec.streams()).map(|_| Channel::default()).collect() }
    }

    /// Opens the missing streams and returns whether all are open. The first bytes of a stream make the server accept it.
    fn open(&mut self, io: &mut dyn Io) -> bool {
        let Some((first, others)) = self.channels.split_first_mut() else { return true };
        let beside = *first.id.get_or_insert_with(|| io.open_with(&SEVERAL_STREAMS));
        for (number, channel) in (1..).zip(others) {
            if channel.id.is_none() {
                let Some(id) = io.open_on_same_connection(beside) else { return false };
                channel.id = Some(id);
                let opening = Request { page: u32::MAX, object: number };
                channel.out.push_bytes(opening.bytes(CONTENT_BYTES as u32));
                channel.write(io);
            }
        }
        true
    }

    fn read(&mut self, id: StreamId, news: &mut News, io: &mut dyn Io) {
        let Some((number, channel)) = (0..).zip(&mut self.channels).find(|(_, channel)| channel.id == Some(id)) else {
            return;
        };
        while let Some((request, missing_bytes)) = channel.expected.front_mut() {
            let bytes = application::read_length(id, *missing_bytes, io);
            news.bytes += bytes;
            *missing_bytes -= bytes;
            if *missing_bytes > 0 {
                return;
            }
            news.came.push(Came { request: *request, stream: Some(number) });
            channel.expected.pop_front();
        }
    }
}

impl Browser for StreamsClient {
    fn request(&mut self, load: &mut PageLoad, io: &mut dyn Io) -> bool {
        let open = self.open(io);
        if load.has_ready() {
            load.request_all(io.now());
            let request = Request { page: load.page.number, object: 0 };
            for (number, object) in (0..).zip(&load.page.objects) {
                let bytes = self.spec.response_length(object.bytes);
                let channel = &mut self.channels[self.spec.stream_of(object) as usize];
                channel.expected.push_back((Request { object: number, ..request }, bytes));
            }
            self.channels[0].out.push_bytes(request.bytes(self.spec.request_bytes));
            self.channels[0].write(io);
        }
        !open
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) -> News {
        let mut news = News::default();
        match event {
            TransportEvent::Connected | TransportEvent::Writable => {
                if let Some(channel) = self.channels.iter_mut().find(|channel| channel.id == Some(stream)) {
                    channel.write(io);
                }
            }
            TransportEvent::Readable => self.read(stream, &mut news, io),
            TransportEvent::PeerFinished | TransportEvent::Closed(_) => {
                if self.channels.iter().any(|channel| channel.id == Some(stream)) {
                    news.lost = true;
                    // The connection cannot be used without one of its streams.
                    self.abandon(io);
                }
            }
        }
        news
    }

    fn leave(&mut self, io: &mut dyn Io) {
        if let Some(first) = self.channels.first().and_then(|channel| channel.id) {
            io.close_connection(first);
        }
        self.channels.fill_with(Channel::default);
    }

    fn abandon(&mut self, io: &mut dyn Io) {
        for id in self.channels.iter().filter_map(|channel| channel.id) {
            if let Some(stream) = io.stream(id) {
                stream.abort();
            }
        }
        self.leave(io);
    }
}
