//! What an observer of connections may look at, between two events.

use super::{NONE, World, model, quic, tunnels};
use fullpipe_engine::{EventClass, EventId};
use fullpipe_stack::journal::Journal;

/// A connection at one end of a conversation.
#[derive(Debug)]
pub(crate) enum End<'a> {
    Tcp(&'a mut fullpipe_tcp::Connection),
    Model(&'a mut fullpipe_quic::Connection),
    Stack(&'a mut fullpipe_stack::Connection),
}

impl World {
    /// The connection at one end of a conversation (0: initiator), while it lives.
    pub(crate) fn end_mut(&mut self, conversation: usize, end: usize) -> Option<End<'_>> {
        match self.core.conversations.get(conversation)?.endpoints[end] {
            NONE => None,
            number if number >= model::FIRST => {
                self.core.model.get_mut(number - model::FIRST).map(|end| End::Model(&mut end.connection))
            }
            number if number >= quic::FIRST => {
                self.core.quic.get_mut(number).map(|end| End::Stack(&mut end.connection))
            }
            number => {
                let endpoint = self.core.endpoints.get_mut(number as usize)?.as_mut()?;
                Some(End::Tcp(&mut endpoint.connection))
            }
        }
    }

    /// The conversation, and which end of it, whose connection has a timer for this event.
    pub(crate) fn place_of_timer(&self, event: EventId) -> Option<(usize, usize)> {
        let index = event.index();
        if event.class() == EventClass::Transport {
            if let Some(timer) = index.checked_sub(model::FIRST_TIMER) {
                return self.core.model.place(timer / 2);
            }
            return self.place_of_endpoint(index / 2);
        }
        if index >= tunnels::FIRST_TIMER {
            return None;
        }
        self.core.quic.place(quic::FIRST + index.checked_sub(quic::FIRST_TIMER)?)
    }

    /// Lets the world be watched from now on: ends of the real stack that are opened, and tunnels that are prepared, keep
    /// journals, and which ends applications call is noted.
    pub(crate) fn begin_watching(&mut self) {
        self.core.quic.journals.get_or_insert_default();
        self.core.called.get_or_insert_default();
    }

    /// Ends that applications have called since the last call, beside those that they were called by.
    pub(crate) fn take_called(&mut self) -> Vec<(usize, usize)> {
        self.core.called.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes that an application has called a stream.
    #[cold]
    #[inline(never)]
    pub(super) fn note_called(&mut self, stream: u32) {
        let place = match stream {
            stream if stream >= model::FIRST => {
                self.core.model.locate(stream).and_then(|(end, _)| self.core.model.place(end))
            }
            stream if stream >= quic::FIRST => self.core.quic.place(stream),
            stream => self.place_of_endpoint(stream),
        };
        if let Some(called) = &mut self.core.called {
            called.extend(place);
        }
    }

    fn place_of_endpoint(&self, endpoint: u32) -> Option<(usize, usize)> {
        let endpoint = self.core.endpoints.get(endpoint as usize)?.as_ref()?;
        Some((endpoint.flow.index() / 2, usize::from(!endpoint.flow.is_forward())))
    }

    /// The journal of one end of a conversation, or of a tunnel, that the real stack plays.
    pub(crate) fn journal(&self, conversation: usize, end: usize) -> Option<&Journal> {
        self.core.quic.journals.as_ref()?.get(&(conversation, end))
    }

    /// Ends of the real stack whose datagrams go by tunnels, so that no packet tells of them, and those of tunnels, which act
    /// when programs of their host do.
    pub(crate) fn tunnelled(&self) -> impl Iterator<Item = (usize, usize)> {
        let journals = self.core.quic.journals.iter().flatten();
        journals.map(|(place, _)| *place).filter(|(conversation, _)| {
            let flow = self.core.conversations[*conversation].flow;
            self.core.flows.get(flow as usize).is_some_and(|flow| flow.via.is_some() || flow.tunnel.is_some())
        })
    }
}
