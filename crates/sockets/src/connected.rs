//! A UDP socket with one peer, on tokio. It uses segmentation and receive offload where the system supports them, so
//! waiting payloads of equal size share a system call. Datagrams are not fragmented and not marked as ECN-capable.

use crate::icmp::TooLargeReports;
use bytes::Bytes;
use fullpipe_masque::environment::{BoxFuture, ConnectedSocket, SendResult};
use noq::udp::{self, RecvMeta, Transmit, UdpSocketState};
use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{Interest, Ready};
use tokio::net::UdpSocket;

/// Maximum number of messages per receive call.
const BATCH: usize = 8;

/// Size of one message in bytes: the maximum that receive offload combines.
const MESSAGE_BYTES: usize = 64 << 10;

/// Maximum payload bytes of one segmentation-offload call.
const SEND_BYTES: usize = 60_000;

/// A connected UDP socket.
#[derive(Debug)]
pub(crate) struct ConnectedUdpSocket {
    socket: Arc<UdpSocket>,
    state: UdpSocketState,
    peer: SocketAddr,
    error: Mutex<ErrorWatch>,
    too_large: TooLargeReports,
}

/// Completes when the system reports an error of a socket: an ICMP message makes a socket neither readable nor
/// writable.
struct ErrorWatch(BoxFuture<io::Result<Ready>>);

impl ErrorWatch {
    fn new(socket: &Arc<UdpSocket>) -> ErrorWatch {
        let socket = Arc::clone(socket);
        ErrorWatch(Box::pin(async move { socket.ready(Interest::ERROR).await }))
    }
}

impl fmt::Debug for ErrorWatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ErrorWatch")
    }
}

thread_local! {
    /// Receive buffer from which payloads are copied. There is one per thread, since ten thousand idle sockets should
    /// not use half a megabyte each.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl ConnectedUdpSocket {
    pub(crate) fn new(peer: SocketAddr) -> io::Result<ConnectedUdpSocket> {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = std::net::UdpSocket::bind(any)?;
        socket.connect(peer)?;
        // This also makes the socket non-blocking and disables fragmentation.
        let state = UdpSocketState::new((&socket).into())?;
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        let error = Mutex::new(ErrorWatch::new(&socket));
        Ok(ConnectedUdpSocket { socket, state, peer, error, too_large: TooLargeReports::default() })
    }

    fn send(&self, contents: &[u8], segment_size: Option<usize>) -> io::Result<()> {
        let transmit = Transmit { destination: self.peer, ecn: None, contents, segment_size, src_ip: None };
        self.socket.try_io(Interest::WRITABLE, || self.state.try_send((&*self.socket).into(), &transmit))
    }

    /// Sends one payload, or several payloads of equal size in one call.
    fn send_first(&self, payloads: &[Bytes]) -> io::Result<SendResult> {
        let count = together(payloads, self.state.max_gso_segments().get());
        if count > 1 {
            match self.send(&payloads[..count].concat(), Some(payloads[0].len())) {
                Ok(()) => return Ok(SendResult { consumed: count, too_large: 0 }),
                // Sending one at a time identifies the payload that fails.
                Err(error) if is_of_the_group(&error) => {}
                Err(error) => return Err(error),
            }
        }
        match self.send(&payloads[0], None) {
            Ok(()) => Ok(SendResult { consumed: 1, too_large: 0 }),
            Err(error) if is_too_large(&error) => Ok(SendResult { consumed: 1, too_large: 1 }),
            Err(error) => Err(error),
        }
    }

    /// The pending error of this socket, if any.
    fn poll_error(&self, context: &mut Context<'_>) -> Poll<io::Error> {
        let mut watch = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Err(error) = ready!(watch.0.as_mut().poll(context)) {
                return Poll::Ready(error);
            }
            match self.socket.take_error() {
                Ok(Some(error)) | Err(error) => return Poll::Ready(error),
                // A send call has already returned the error. The readiness is consumed.
                Ok(None) => {
                    let _ = self.socket.try_io(Interest::ERROR, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
                    *watch = ErrorWatch::new(&self.socket);
                }
            }
        }
    }

    fn receive(&self, into: &mut Vec<Bytes>) -> io::Result<()> {
        ROOM.with_borrow_mut(|room| self.receive_in(room, into))
    }

    fn receive_in(&self, room: &mut Vec<u8>, into: &mut Vec<Bytes>) -> io::Result<()> {
        room.resize(BATCH * MESSAGE_BYTES, 0);
        let mut metas = [RecvMeta::default(); BATCH];
        let count = {
            let mut slices = room.chunks_exact_mut(MESSAGE_BYTES);
            let mut buffers: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| IoSliceMut::new(slices.next().unwrap_or_default()));
            self.socket
                .try_io(Interest::READABLE, || self.state.recv((&*self.socket).into(), &mut buffers, &mut metas))?
        };
        for (message, meta) in room.chunks_exact(MESSAGE_BYTES).zip(&metas[..count]) {
            let message = Bytes::copy_from_slice(&message[..meta.len]);
            let stride = meta.stride.max(1);
            into.extend(
                (0..meta.len.max(1)).step_by(stride).map(|begin| message.slice(begin..meta.len.min(begin + stride))),
            );
        }
        Ok(())
    }
}

/// Number of payloads, from the first, that can share a call: all have the length of the first, but the last may be
/// shorter.
fn together(payloads: &[Bytes], most: usize) -> usize {
    let size = payloads[0].len();
    if size == 0 {
        return 1;
    }
    let most = most.min(SEND_BYTES / size).min(payloads.len()).max(1);
    let equal = payloads[..most].iter().take_while(|payload| payload.len() == size).count();
    match payloads[..most].get(equal) {
        Some(last) if last.len() < size && !last.is_empty() => equal + 1,
        _ => equal,
    }
}

/// Errors of segmentation offload: payloads too large for the path, or offload not supported after all.
fn is_of_the_group(error: &io::Error) -> bool {
    /// Linux: the device does not support it.
    const EIO: i32 = 5;
    is_too_large(error) || error.kind() == io::ErrorKind::InvalidInput || error.raw_os_error() == Some(EIO)
}

fn is_too_large(error: &io::Error) -> bool {
    udp::is_msg_size_err(error)
}

impl ConnectedSocket for ConnectedUdpSocket {
    fn poll_receive(&self, context: &mut Context<'_>, into: &mut Vec<Bytes>) -> Poll<io::Result<()>> {
        loop {
            match self.socket.poll_recv_ready(context) {
                Poll::Ready(ready) => ready?,
                Poll::Pending => return self.poll_error(context).map(Err),
            }
            match self.receive(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }

    fn poll_send(&self, context: &mut Context<'_>, payloads: &[Bytes]) -> Poll<io::Result<SendResult>> {
        if payloads.is_empty() {
            return Poll::Ready(Ok(SendResult::default()));
        }
        loop {
            ready!(self.socket.poll_send_ready(context))?;
            match self.send_first(payloads) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }

    fn report_too_large(&self, payload: &[u8], limit: usize) {
        if let Ok(local) = self.socket.local_addr() {
            self.too_large.report(self.peer, local, payload, limit);
        }
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    fn sizes(sizes: &[usize]) -> Vec<Bytes> {
        sizes.iter().enumerate().map(|(index, size)| vec![index as u8; *size].into()).collect()
    }

    #[test]
    fn only_payloads_of_equal_size_share_a_call() {
        for (lengths, most, expected) in [
            (&[5, 5, 5][..], 64, 3),
            (&[5, 5, 3, 5], 64, 3),
            (&[5, 5, 7], 64, 2),
            (&[5, 5, 0], 64, 2),
            (&[0, 0], 64, 1),
            (&[5, 5, 5], 2, 2),
            (&[40_000, 40_000], 64, 1),
            (&[65_000], 64, 1),
        ] {
            assert_eq!(together(&sizes(lengths), most), expected, "{lengths:?}");
        }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[test]
    fn payloads_arrive_unchanged() {
        runtime().block_on(async {
            let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let socket = Arc::new(ConnectedUdpSocket::new(peer.local_addr().unwrap()).unwrap());
            peer.connect(socket.local_address().unwrap()).await.unwrap();
            let lengths = [1200, 1200, 1200, 700, 0, 65_507, 1, 1300, 1300];
            let mut payloads = sizes(&lengths);
            while !payloads.is_empty() {
                let sent = poll_fn(|context| socket.poll_send(context, &payloads)).await.unwrap();
                assert_eq!(sent.too_large, 0);
                payloads.drain(..sent.consumed);
            }
            let mut buffer = vec![0; 70_000];
            for (index, length) in lengths.into_iter().enumerate() {
                let received = peer.recv(&mut buffer).await.unwrap();
                assert_eq!(received, length);
                assert!(buffer[..received].iter().all(|byte| usize::from(*byte) == index));
                peer.send(&buffer[..received]).await.unwrap();
            }
            let mut back = Vec::new();
            while back.len() < lengths.len() {
                poll_fn(|context| socket.poll_receive(context, &mut back)).await.unwrap();
            }
            assert_eq!(back, sizes(&lengths));
        });
    }

    #[test]
    fn oversized_payload_is_counted_and_closed_port_is_an_error() {
        runtime().block_on(async {
            let peer = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let socket = ConnectedUdpSocket::new(peer.local_addr().unwrap()).unwrap();
            // Two bytes above the maximum of an IPv4 datagram.
            let payloads = sizes(&[65_509, 10]);
            let sent = poll_fn(|context| socket.poll_send(context, &payloads)).await.unwrap();
            assert_eq!(sent, SendResult { consumed: 1, too_large: 1 });
            drop(peer);
            let sent = poll_fn(|context| socket.poll_send(context, &payloads[1..])).await.unwrap();
            assert_eq!(sent.consumed, 1);
            let error = poll_fn(|context| socket.poll_receive(context, &mut Vec::new())).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        });
    }
}
