//! The two halves of a request stream after the headers, and the capsules on them. Client and server share this code.

use crate::capsule;
use crate::datagram::{self, DatagramContent};
use crate::environment::Environment;
use crate::metrics::Metrics;
use crate::outbox::SendQueues;
use crate::transport::{RecvStream, SendStream};
use bytes::{Buf, Bytes, BytesMut};
use h3::error::StreamError;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::task::{Context, Poll};

/// Maximum size of the capsules that share a DATA frame, in bytes.
const COALESCED_BYTES: u64 = 32 << 10;

/// Maximum number of payloads taken from the queue or passed to the sink per call.
const BATCH: usize = 64;

/// The payload of DATA frames, in the chunks in which it arrives.
pub trait ReadHalf: Send {
    /// Reason why the stream failed.
    type Error: fmt::Display + Send;

    /// Returns the next chunk, or `None` at the end of the stream.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Self::Error>>;

    /// Whether a field section, not the end of the stream, caused the last `None`.
    fn has_trailers(&mut self, context: &mut Context<'_>) -> bool;
}

/// Sends DATA frames.
pub trait WriteHalf: Send {
    /// Reason why the stream failed.
    type Error: fmt::Display + Send;

    /// Completes when the connection has accepted the data.
    fn write(&mut self, data: Bytes) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Ends the stream after the data written so far.
    fn finish(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Completes when the peer refuses further data. Waits if this is reported in another way.
    fn poll_stopped(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let _ = context;
        Poll::Pending
    }
}

fn whole(piece: Option<impl Buf>) -> Option<Bytes> {
    piece.map(|mut piece| piece.copy_to_bytes(piece.remaining()))
}

impl ReadHalf for h3::server::RequestStream<RecvStream, Bytes> {
    type Error = StreamError;

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        self.poll_recv_data(context).map_ok(whole)
    }

    fn has_trailers(&mut self, context: &mut Context<'_>) -> bool {
        !matches!(self.poll_recv_trailers(context), Poll::Ready(Ok(None)))
    }
}

impl ReadHalf for h3::client::RequestStream<RecvStream, Bytes> {
    type Error = StreamError;

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        self.poll_recv_data(context).map_ok(whole)
    }

    fn has_trailers(&mut self, context: &mut Context<'_>) -> bool {
        !matches!(self.poll_recv_trailers(context), Poll::Ready(Ok(None)))
    }
}

impl WriteHalf for h3::server::RequestStream<SendStream, Bytes> {
    type Error = StreamError;

    fn write(&mut self, data: Bytes) -> impl Future<Output = Result<(), StreamError>> + Send {
        self.send_data(data)
    }

    fn finish(&mut self) -> impl Future<Output = Result<(), StreamError>> + Send {
        self.finish()
    }
}

impl WriteHalf for h3::client::RequestStream<SendStream, Bytes> {
    type Error = StreamError;

    fn write(&mut self, data: Bytes) -> impl Future<Output = Result<(), StreamError>> + Send {
        self.send_data(data)
    }

    fn finish(&mut self) -> impl Future<Output = Result<(), StreamError>> + Send {
        self.finish()
    }
}

/// Destination of UDP payloads from capsules.
pub(crate) trait PayloadSink: Send + Sync {
    /// Sends all payloads, or sends as many as possible and then waits.
    fn poll_send(&self, context: &mut Context<'_>, payloads: &mut Vec<Bytes>) -> Poll<io::Result<()>>;
}

/// How the reading of a stream ended.
#[derive(Debug)]
pub(crate) enum ReadOutcome<E> {
    /// The peer finished the stream between two capsules.
    Finished,
    /// The peer finished the stream within a capsule.
    Truncated,
    /// A UDP payload exceeds the maximum (65 527 bytes).
    TooLong,
    /// The peer sent a second field section; after its headers, a tunnel carries only DATA frames (RFC 9114 section
    /// 4.4).
    Trailers,
    /// The stream or the connection was lost.
    Stream(E),
    /// The sink failed.
    Sink(io::Error),
}

/// Reads capsules and passes the UDP payloads to `sink` until the stream ends.
pub(crate) async fn read_capsules<R: ReadHalf>(
    half: &mut R,
    sink: &impl PayloadSink,
    metrics: &Metrics,
) -> ReadOutcome<R::Error> {
    let mut decoder = capsule::Decoder::default();
    let mut payloads = Vec::new();
    loop {
        let mut piece = match poll_fn(|context| half.poll_read(context)).await {
            Ok(Some(piece)) => piece,
            Ok(None) if poll_fn(|context| Poll::Ready(half.has_trailers(context))).await => {
                return ReadOutcome::Trailers;
            }
            Ok(None) if decoder.may_end() => return ReadOutcome::Finished,
            Ok(None) => return ReadOutcome::Truncated,
            Err(error) => return ReadOutcome::Stream(error),
        };
        loop {
            match decoder.next(&mut piece).map(|payload| payload.map(datagram::parse_payload)) {
                Ok(Some(DatagramContent::Udp(payload))) => payloads.push(payload),
                Ok(Some(DatagramContent::Unknown)) => metrics.datagrams_unknown_total.add(1),
                Ok(Some(DatagramContent::TooLong)) | Err(capsule::PayloadTooLong) => return ReadOutcome::TooLong,
                Ok(None) => break,
            }
            // A chunk with many small payloads would make a large vector, whose memory the tunnel keeps.
            if payloads.len() >= BATCH
                && let Err(error) = poll_fn(|context| sink.poll_send(context, &mut payloads)).await
            {
                return ReadOutcome::Sink(error);
            }
        }
        if !payloads.is_empty()
            && let Err(error) = poll_fn(|context| sink.poll_send(context, &mut payloads)).await
        {
            return ReadOutcome::Sink(error);
        }
    }
}

/// Writes the payloads of `outbox` as capsules until the stream accepts no more.
pub(crate) async fn write_capsules<W: WriteHalf>(
    half: &mut W,
    outbox: &SendQueues,
    coalesce: bool,
    environment: &dyn Environment,
) -> W::Error {
    let mut payloads = Vec::with_capacity(BATCH);
    let count = if coalesce { BATCH } else { 1 };
    loop {
        poll_fn(|context| outbox.poll_take(context, environment.now(), COALESCED_BYTES, count, &mut payloads)).await;
        let length = payloads.iter().map(|payload| payload.len() + capsule::overhead(payload.len())).sum();
        let mut data = BytesMut::with_capacity(length);
        for payload in payloads.drain(..) {
            capsule::encode(&payload, &mut data);
        }
        if let Err(error) = half.write(data.freeze()).await {
            return error;
        }
    }
}
