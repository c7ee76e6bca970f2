//! The two halves of a stream. Payloads of DATA frames are [`Bytes`] everywhere in this crate.

use super::code;
use super::error;
use super::frame_guard::{FrameValidator, ProtocolViolation};
use super::one_way_guard::UnidirectionalValidator;
use bytes::{Buf, Bytes};
use h3::quic::{StreamErrorIncoming, StreamId, WriteBuf};
use noq::VarInt;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};

/// Maximum number of bytes read from a stream per call.
const CHUNK_BYTES: usize = 64 * 1024;

/// Sending half of a stream. h3 passes one frame and waits until it is written. When this half is dropped, it finishes
/// the stream, or resets the stream if an abort was requested.
pub struct SendStream {
    stream: noq::SendStream,
    writing: Option<WriteBuf<Bytes>>,
    ending: StreamEnd,
}

/// Receiving half of a stream. When this half is dropped, it sends STOP_SENDING to the peer.
pub struct RecvStream {
    stream: noq::RecvStream,
    connection: noq::Connection,
    guard: StreamValidator,
    /// Bytes that were read to determine the type of a unidirectional stream and are not passed on yet.
    ahead: VecDeque<Bytes>,
    ending: StreamEnd,
}

/// The validator of a stream.
pub(super) enum StreamValidator {
    Request(FrameValidator),
    Unidirectional(UnidirectionalValidator),
}

impl StreamValidator {
    fn admits(&mut self, bytes: &[u8]) -> Result<(), ProtocolViolation> {
        match self {
            StreamValidator::Request(guard) => guard.validate(bytes),
            StreamValidator::Unidirectional(guard) => guard.validate(bytes).map_err(ProtocolViolation::Connection),
        }
    }

    fn admits_end(&self) -> Result<(), ProtocolViolation> {
        match self {
            StreamValidator::Request(guard) => guard.validate_end(),
            StreamValidator::Unidirectional(_) => Ok(()),
        }
    }
}

/// How a stream ends when its halves are dropped: normally or with an error code. The halves may belong to different
/// tasks.
#[derive(Clone, Debug, Default)]
pub struct StreamEnd(Arc<AtomicU32>);

impl StreamEnd {
    /// Causes both halves to end with this code, unless they have already ended. The first code applies: it is the cause
    /// of later ones.
    pub fn abort(&self, code: u32) {
        let _ = self.0.compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The code with which both halves end, or `None` for a normal end.
    #[must_use]
    pub fn reason(&self) -> Option<u32> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            code => Some(code),
        }
    }

    fn code(&self) -> Option<VarInt> {
        self.reason().map(VarInt::from)
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if let Some(code) = self.ending.code() {
            let _ = self.stream.reset(code);
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let _ = self.stream.stop(self.ending.code().unwrap_or(code::NO_ERROR.into()));
    }
}

/// Both halves of a bidirectional stream.
pub struct BidiStream {
    pub(super) send: SendStream,
    pub(super) receive: RecvStream,
}

impl SendStream {
    pub(super) fn new(stream: noq::SendStream, ending: StreamEnd) -> SendStream {
        SendStream { stream, writing: None, ending }
    }
}

impl RecvStream {
    pub(super) fn new(
        stream: noq::RecvStream,
        connection: noq::Connection,
        guard: StreamValidator,
        ending: StreamEnd,
    ) -> RecvStream {
        RecvStream { stream, connection, guard, ahead: VecDeque::new(), ending }
    }

    /// The validator of a unidirectional stream.
    pub(super) fn one_way(&self) -> Option<&UnidirectionalValidator> {
        match &self.guard {
            StreamValidator::Request(_) => None,
            StreamValidator::Unidirectional(guard) => Some(guard),
        }
    }

    /// Reads until the type of a unidirectional stream has arrived. Returns `false` if the stream ends earlier.
    pub(super) fn poll_type(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, StreamErrorIncoming>> {
        while !self.one_way().is_some_and(UnidirectionalValidator::has_known_type) {
            match ready!(self.poll_chunk(context))? {
                Some(chunk) => self.ahead.push_back(chunk),
                None => return Poll::Ready(Ok(false)),
            }
        }
        Poll::Ready(Ok(true))
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        // The future may be dropped between polls, because it keeps only the waker that noq has registered.
        let read = ready!(pin!(self.stream.read_chunk(CHUNK_BYTES)).poll(context)).map_err(error::read)?;
        let judged = match &read {
            Some(chunk) => self.guard.admits(chunk),
            None => self.guard.admits_end(),
        };
        match judged {
            Ok(()) => Poll::Ready(Ok(read)),
            Err(ProtocolViolation::Stream(code)) => {
                self.ending.abort(code);
                h3::quic::RecvStream::stop_sending(self, code.into());
                Poll::Ready(Err(StreamErrorIncoming::StreamTerminated { error_code: code.into() }))
            }
            Err(ProtocolViolation::Malformed(reason)) => {
                self.ending.abort(code::MESSAGE_ERROR);
                h3::quic::RecvStream::stop_sending(self, code::MESSAGE_ERROR.into());
                Poll::Ready(Err(error::malformed(reason)))
            }
            Err(ProtocolViolation::Connection(code)) => {
                let connection_error = error::broken_rule(&self.connection, code);
                Poll::Ready(Err(StreamErrorIncoming::ConnectionErrorIncoming { connection_error }))
            }
        }
    }
}

fn variable_integer(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

fn stream_id(id: noq::StreamId) -> StreamId {
    StreamId::try_from(u64::from(id)).unwrap_or_else(|_| unreachable!("stream numbers have at most 62 bits"))
}

impl h3::quic::SendStream<Bytes> for SendStream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(frame) = &mut self.writing {
            if !frame.has_remaining() {
                self.writing = None;
                break;
            }
            let written =
                ready!(Pin::new(&mut self.stream).poll_write(context, frame.chunk())).map_err(error::write)?;
            frame.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(StreamErrorIncoming::Unknown(Box::new(io::Error::other("the previous frame is incomplete"))));
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(context))?;
        // A closed stream cannot be finished again, so an error is ignored.
        let _ = self.stream.finish();
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, reset_code: u64) {
        let _ = self.stream.reset(variable_integer(reset_code));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl h3::quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        if let Some(chunk) = self.ahead.pop_front() {
            return Poll::Ready(Ok(Some(chunk)));
        }
        self.poll_chunk(context)
    }

    fn stop_sending(&mut self, error_code: u64) {
        let _ = self.stream.stop(variable_integer(error_code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl h3::quic::SendStream<Bytes> for BidiStream {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(context)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(context)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl h3::quic::RecvStream for BidiStream {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(context)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.receive.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl h3::quic::BidiStream<Bytes> for BidiStream {
    type SendStream = SendStream;
    type RecvStream = RecvStream;

    fn split(self) -> (SendStream, RecvStream) {
        (self.send, self.receive)
    }
}
