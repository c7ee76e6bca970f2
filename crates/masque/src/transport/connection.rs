//! The h3 traits for a noq connection: opens and accepts its streams.

use super::frame_guard::FrameValidator;
use super::one_way_guard::{PeerRole, UnidirectionalValidator};
use super::streams::{BidiStream, RecvStream, SendStream, StreamEnd, StreamValidator};
use super::{code, error};
use crate::environment::BoxFuture;
use bytes::Bytes;
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use noq::{ConnectionError, VarInt};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

type Bidirectional = (noq::SendStream, noq::RecvStream);

/// A noq connection with the traits that h3 requires.
pub struct Connection {
    opener: StreamOpener,
    accept_bidirectional: BoxFuture<Result<Bidirectional, ConnectionError>>,
    accept_unidirectional: BoxFuture<Result<noq::RecvStream, ConnectionError>>,
    /// Unidirectional streams whose type has not arrived yet.
    untyped: Vec<RecvStream>,
    /// QPACK streams, which h3 does not read.
    qpack: Vec<RecvStream>,
}

/// Controls of a request stream that h3 does not expose.
pub struct StreamHandle {
    /// Completes when the peer sends STOP_SENDING.
    pub stopped: noq::Stopped,
    /// How the stream ends when its halves are dropped.
    pub ending: StreamEnd,
}

/// The handles of the request streams opened or accepted on one connection, by stream ID, until they are taken.
#[derive(Clone, Default)]
pub struct StreamHandles(Arc<Mutex<BTreeMap<u64, StreamHandle>>>);

impl StreamHandles {
    /// Removes and returns the handle of a stream; `None` if there is none. Every handle must be taken, even if it is
    /// not used.
    pub fn take(&self, stream: h3::quic::StreamId) -> Option<StreamHandle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&stream.into_inner())
    }

    fn put(&self, stream: u64, handle: StreamHandle) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(stream, handle);
    }
}

/// Opens streams. Each user has a copy.
pub struct StreamOpener {
    connection: noq::Connection,
    max_frame_bytes: u64,
    handles: StreamHandles,
    /// Whether streams with lower IDs are sent first.
    in_order: bool,
    open_bidirectional: Option<BoxFuture<Result<Bidirectional, ConnectionError>>>,
    open_unidirectional: Option<BoxFuture<Result<noq::SendStream, ConnectionError>>>,
}

fn accept_bidirectional(connection: noq::Connection) -> BoxFuture<Result<Bidirectional, ConnectionError>> {
    Box::pin(async move { connection.accept_bi().await })
}

fn accept_unidirectional(connection: noq::Connection) -> BoxFuture<Result<noq::RecvStream, ConnectionError>> {
    Box::pin(async move { connection.accept_uni().await })
}

fn peer(connection: &noq::Connection) -> PeerRole {
    if connection.side().is_client() { PeerRole::Server } else { PeerRole::Client }
}

impl Connection {
    /// Wraps a connection. A stream with a frame other than DATA of more than `max_frame_bytes` is reset. A control
    /// stream with more than `max_frame_bytes` bytes in total causes the connection to be closed.
    #[must_use]
    pub fn new(connection: noq::Connection, max_frame_bytes: u64, handles: StreamHandles) -> Connection {
        Connection {
            accept_bidirectional: accept_bidirectional(connection.clone()),
            accept_unidirectional: accept_unidirectional(connection.clone()),
            opener: StreamOpener::new(connection, max_frame_bytes, handles),
            untyped: Vec::new(),
            qpack: Vec::new(),
        }
    }

    /// With `in_order`, sends data of the request stream with the lowest ID first. Otherwise request streams share the
    /// connection equally.
    #[must_use]
    pub fn with_request_order(mut self, in_order: bool) -> Connection {
        self.opener.in_order = in_order;
        self
    }

    fn poll_accept_one_way(&mut self, context: &mut Context<'_>) -> Result<(), ConnectionErrorIncoming> {
        let connection = &self.opener.connection;
        while let Poll::Ready(accepted) = self.accept_unidirectional.as_mut().poll(context) {
            self.accept_unidirectional = accept_unidirectional(connection.clone());
            let guard = UnidirectionalValidator::new(peer(connection), self.opener.max_frame_bytes);
            let guard = StreamValidator::Unidirectional(guard);
            let stream = accepted.map_err(error::connection)?;
            self.untyped.push(RecvStream::new(stream, connection.clone(), guard, StreamEnd::default()));
        }
        Ok(())
    }

    /// Returns the next stream whose type has arrived. A stream that ends before that is ignored (RFC 9114 section
    /// 6.2).
    fn poll_typed(&mut self, context: &mut Context<'_>) -> Result<Option<RecvStream>, ConnectionErrorIncoming> {
        let mut index = 0;
        while let Some(stream) = self.untyped.get_mut(index) {
            match stream.poll_type(context) {
                Poll::Pending => index += 1,
                Poll::Ready(Ok(true)) => return Ok(Some(self.untyped.swap_remove(index))),
                Poll::Ready(Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error })) => {
                    return Err(connection_error);
                }
                Poll::Ready(Ok(false) | Err(_)) => drop(self.untyped.swap_remove(index)),
            }
        }
        Ok(None)
    }

    /// Stores a QPACK stream. Only one of each type is permitted (RFC 9204 section 4.2).
    fn keep_qpack(&mut self, stream: RecvStream) -> Result<(), ConnectionErrorIncoming> {
        let guard = stream.one_way();
        if self
            .qpack
            .iter()
            .any(|other| guard.zip(other.one_way()).is_some_and(|(one, other)| one.has_same_type(other)))
        {
            return Err(error::broken_rule(&self.opener.connection, code::STREAM_CREATION_ERROR));
        }
        self.qpack.push(stream);
        Ok(())
    }

    /// Reads the QPACK streams. Their end is an error.
    fn poll_qpack(&mut self, context: &mut Context<'_>) -> Result<(), ConnectionErrorIncoming> {
        for stream in &mut self.qpack {
            loop {
                match h3::quic::RecvStream::poll_data(stream, context) {
                    Poll::Pending => break,
                    Poll::Ready(Ok(Some(_))) => {}
                    Poll::Ready(Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error })) => {
                        return Err(connection_error);
                    }
                    Poll::Ready(Ok(None) | Err(_)) => {
                        return Err(error::broken_rule(&self.opener.connection, code::CLOSED_CRITICAL_STREAM));
                    }
                }
            }
        }
        Ok(())
    }
}

impl StreamOpener {
    fn new(connection: noq::Connection, max_frame_bytes: u64, handles: StreamHandles) -> StreamOpener {
        let (open_bidirectional, open_unidirectional) = (None, None);
        StreamOpener { connection, max_frame_bytes, handles, in_order: false, open_bidirectional, open_unidirectional }
    }

    fn stream(&self, (send, receive): Bidirectional) -> BidiStream {
        let ending = StreamEnd::default();
        if self.in_order {
            let number = i32::try_from(send.id().index()).unwrap_or(i32::MAX);
            // A closed stream has nothing left to send, so an error is ignored.
            let _ = send.set_priority(-number);
        }
        self.handles.put(u64::from(send.id()), StreamHandle { stopped: send.stopped(), ending: ending.clone() });
        let guard = StreamValidator::Request(FrameValidator::new(peer(&self.connection), self.max_frame_bytes));
        let receive = RecvStream::new(receive, self.connection.clone(), guard, ending.clone());
        BidiStream { send: SendStream::new(send, ending), receive }
    }
}

impl Clone for StreamOpener {
    fn clone(&self) -> StreamOpener {
        let opener = StreamOpener::new(self.connection.clone(), self.max_frame_bytes, self.handles.clone());
        StreamOpener { in_order: self.in_order, ..opener }
    }
}

impl h3::quic::Connection<Bytes> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = StreamOpener;

    fn poll_accept_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        self.poll_accept_one_way(context)?;
        while let Some(stream) = self.poll_typed(context)? {
            if !stream.one_way().is_some_and(UnidirectionalValidator::is_qpack) {
                return Poll::Ready(Ok(stream));
            }
            self.keep_qpack(stream)?;
        }
        self.poll_qpack(context)?;
        Poll::Pending
    }

    fn poll_accept_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<BidiStream, ConnectionErrorIncoming>> {
        let accepted = ready!(self.accept_bidirectional.as_mut().poll(context));
        self.accept_bidirectional = accept_bidirectional(self.opener.connection.clone());
        Poll::Ready(accepted.map(|streams| self.opener.stream(streams)).map_err(error::connection))
    }

    fn opener(&self) -> StreamOpener {
        self.opener.clone()
    }
}

impl h3::quic::OpenStreams<Bytes> for Connection {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        h3::quic::OpenStreams::poll_open_bidi(&mut self.opener, context)
    }

    fn poll_open_send(&mut self, context: &mut Context<'_>) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        h3::quic::OpenStreams::poll_open_send(&mut self.opener, context)
    }

    fn close(&mut self, code: h3::error::Code, reason: &[u8]) {
        h3::quic::OpenStreams::close(&mut self.opener, code, reason);
    }
}

impl h3::quic::OpenStreams<Bytes> for StreamOpener {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<BidiStream, StreamErrorIncoming>> {
        let connection = &self.connection;
        let opening = self.open_bidirectional.get_or_insert_with(|| {
            let connection = connection.clone();
            Box::pin(async move { connection.open_bi().await })
        });
        let opened = ready!(opening.as_mut().poll(context));
        self.open_bidirectional = None;
        Poll::Ready(opened.map(|streams| self.stream(streams)).map_err(error::stream))
    }

    fn poll_open_send(&mut self, context: &mut Context<'_>) -> Poll<Result<SendStream, StreamErrorIncoming>> {
        let connection = &self.connection;
        let opening = self.open_unidirectional.get_or_insert_with(|| {
            let connection = connection.clone();
            Box::pin(async move { connection.open_uni().await })
        });
        let opened = ready!(opening.as_mut().poll(context));
        self.open_unidirectional = None;
        Poll::Ready(opened.map(|stream| SendStream::new(stream, StreamEnd::default())).map_err(error::stream))
    }

    fn close(&mut self, code: h3::error::Code, reason: &[u8]) {
        let code = VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX);
        self.connection.close(code, reason);
    }
}
