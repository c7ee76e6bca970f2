//! A UDP socket that pads datagrams with QUIC Initial packets to the size that a tunnel needs.
//!
//! A server may limit its packets to the size of the client's first datagrams until it has discovered the path MTU.
//! RFC 9000 section 14.1 permits larger Initial datagrams than 1200 bytes. The QUIC stack pads to 1200 bytes only, so
//! this socket appends zeros. They follow the QUIC packets, and their fixed bit is 0, so a receiver discards them (RFC
//! 9000 sections 12.2 and 17.2).

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// A socket whose datagrams with Initial packets have at least `size` bytes.
#[derive(Debug)]
pub(crate) struct PaddedSocket {
    inner: Box<dyn AsyncUdpSocket>,
    size: usize,
    has_received: Arc<AtomicBool>,
}

impl PaddedSocket {
    pub(crate) fn new(inner: Box<dyn AsyncUdpSocket>, size: u16) -> PaddedSocket {
        PaddedSocket { inner, size: size.into(), has_received: Arc::default() }
    }

    /// Becomes true when a datagram arrives.
    pub(crate) fn has_received(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_received)
    }
}

impl AsyncUdpSocket for PaddedSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(PaddingSender { inner: self.inner.create_sender(), size: self.size })
    }

    fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = self.inner.poll_recv(context, buffers, metas);
        if let Poll::Ready(Ok(1..)) = received {
            self.has_received.store(true, Ordering::Relaxed);
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

#[derive(Debug)]
struct PaddingSender {
    inner: Pin<Box<dyn UdpSender>>,
    size: usize,
}

impl UdpSender for PaddingSender {
    fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        if !transmit.contents.chunks(segment).any(is_initial) {
            return this.inner.as_mut().poll_send(transmit, context);
        }
        for (index, datagram) in transmit.contents.chunks(segment).enumerate() {
            let mut contents = datagram.to_vec();
            if is_initial(datagram) {
                contents.resize(contents.len().max(this.size), 0);
            }
            let one = Transmit { contents: &contents, segment_size: None, ..*transmit };
            match this.inner.as_mut().poll_send(&one, context) {
                // The caller repeats the whole call, so only the first datagram can wait. QUIC retransmits the others.
                Poll::Pending if index > 0 => break,
                Poll::Ready(Ok(())) => {}
                other => return other,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.inner.max_transmit_segments()
    }
}

/// Whether a datagram begins with an Initial packet of QUIC version 1: a long header of type 0 (RFC 9000 section 17.2.2).
/// Initial packets precede all others in a datagram (section 12.2).
fn is_initial(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0xf0 == 0xc0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Length and segment size of a call.
    type Sent = (usize, Option<usize>);

    #[derive(Clone, Debug, Default)]
    struct Recorder(Arc<Mutex<Vec<Sent>>>);

    impl UdpSender for Recorder {
        fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.lock().unwrap().push((transmit.contents.len(), transmit.segment_size));
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn only_datagrams_with_initial_packets_are_padded() {
        let recorder = Recorder::default();
        let mut sender = PaddingSender { inner: Box::pin(recorder.clone()), size: 1243 };
        let mut send = |contents: &[u8], segment_size| {
            let destination = "127.0.0.1:1".parse().unwrap();
            let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
            let context = &mut Context::from_waker(std::task::Waker::noop());
            assert!(Pin::new(&mut sender).poll_send(&transmit, context).is_ready());
            std::mem::take(&mut *recorder.0.lock().unwrap())
        };
        // RFC 9000 sections 17.2 and 17.3: first bytes of Initial, Handshake and 1-RTT packets.
        let (initial, handshake, short) = ([0xc1; 1200], [0xe1; 1200], [0x41; 1200]);
        assert_eq!(send(&initial, None), [(1243, None)]);
        assert_eq!(send(&[0xcf; 1300], None), [(1300, None)]);
        assert_eq!(send(&handshake, None), [(1200, None)]);
        assert_eq!(send(&[short, short].concat(), Some(1200)), [(2400, Some(1200))]);
        assert_eq!(send(&[initial, handshake].concat(), Some(1200)), [(1243, None), (1200, None)]);
    }
}
