//! A tunnel as a UDP socket with one peer, for a QUIC endpoint whose path passes through the proxy. A tunnel transfers
//! no ECN codepoints (RFC 9298 section 6.2).

use super::Tunnel;
use bytes::Bytes;
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A UDP socket that sends and receives through a tunnel.
#[derive(Clone, Debug)]
pub struct TunnelSocket {
    tunnel: Arc<Tunnel>,
    local: SocketAddr,
    peer: SocketAddr,
}

impl TunnelSocket {
    /// Creates a socket with the local address `local` and the single peer `peer`. Both addresses are placeholders that
    /// never appear in a packet.
    #[must_use]
    pub fn new(tunnel: Arc<Tunnel>, local: SocketAddr, peer: SocketAddr) -> TunnelSocket {
        TunnelSocket { tunnel, local, peer }
    }
}

impl UdpSender for TunnelSocket {
    fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let contents = Bytes::copy_from_slice(transmit.contents);
        let size = transmit.segment_size.unwrap_or(contents.len()).max(1);
        let mut payloads: Vec<Bytes> = (0..contents.len())
            .step_by(size)
            .map(|begin| contents.slice(begin..contents.len().min(begin + size)))
            .collect();
        self.tunnel.send(&mut payloads);
        Poll::Ready(Ok(()))
    }
}

impl AsyncUdpSocket for TunnelSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(self.clone())
    }

    fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut payloads = Vec::new();
        match self.tunnel.poll_receive(context, buffers.len().min(metas.len()), &mut payloads) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(ended)) => {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, ended)));
            }
            Poll::Ready(Ok(())) => {}
        }
        let mut count = 0;
        for payload in payloads {
            let (Some(buffer), Some(meta)) = (buffers.get_mut(count), metas.get_mut(count)) else { break };
            // The endpoint's buffer is too small for this payload, so it is dropped.
            let Some(room) = buffer.get_mut(..payload.len()) else { continue };
            room.copy_from_slice(&payload);
            *meta = RecvMeta::default();
            meta.addr = self.peer;
            meta.len = payload.len();
            meta.stride = payload.len();
            count += 1;
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    fn may_fragment(&self) -> bool {
        false
    }
}
