//! The environment of CONNECT-UDP and HTTP/3 on a host of the simulated network.

use crate::connection::Datagram;
use crate::host::{Binding, VirtualRuntime};
use bytes::Bytes;
use fullpipe_control::clock::from_std;
use fullpipe_masque::environment::{BoxFuture, ConnectedSocket, Environment, SendResult};
use fullpipe_units::{EcnCodepoint, Instant};
use noq::{AsyncUdpSocket, Runtime};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

/// Maximum payload of a UDP datagram over IPv4.
const MOST_BYTES: usize = 65_507;

/// An environment with the sockets, timers, tasks and names of a simulated host.
#[derive(Clone, Debug)]
pub struct VirtualEnvironment {
    runtime: VirtualRuntime,
    names: Arc<BTreeMap<String, Vec<IpAddr>>>,
}

impl VirtualEnvironment {
    /// Creates the environment of a host that resolves these names. Name resolution takes no virtual time.
    pub fn new(runtime: VirtualRuntime, names: BTreeMap<String, Vec<IpAddr>>) -> VirtualEnvironment {
        VirtualEnvironment { runtime, names: Arc::new(names) }
    }

    /// Converts an instant of this environment's clock to virtual time.
    pub fn instant(&self, at: std::time::Instant) -> Instant {
        from_std(at)
    }
}

impl Environment for VirtualEnvironment {
    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(self.runtime.clone())
    }

    fn bind(&self, local: SocketAddr) -> io::Result<Box<dyn AsyncUdpSocket>> {
        self.runtime.bind(local)
    }

    /// The simulated network reports no errors for this peer: undeliverable datagrams are lost.
    fn connect(&self, peer: SocketAddr) -> io::Result<Arc<dyn ConnectedSocket>> {
        let any = if peer.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
        let binding = self.runtime.bound(SocketAddr::new(any, 0), Some(peer))?;
        Ok(Arc::new(VirtualConnected { binding, peer }))
    }

    fn resolve(&self, name: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let found = match (name.parse(), self.names.get(name)) {
            (Ok(address), _) => Ok(vec![address]),
            (_, Some(addresses)) if !addresses.is_empty() => Ok(addresses.clone()),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, format!("unknown host {name:?}"))),
        };
        Box::pin(std::future::ready(found))
    }

    /// Same as the default, but without creating a runtime per call: the clock is read three times per payload.
    fn now(&self) -> std::time::Instant {
        Runtime::now(&self.runtime)
    }
}

#[derive(Debug)]
struct VirtualConnected {
    binding: Binding,
    peer: SocketAddr,
}

impl ConnectedSocket for VirtualConnected {
    fn poll_receive(&self, context: &mut Context<'_>, into: &mut Vec<Bytes>) -> Poll<io::Result<()>> {
        self.binding.poll_receive(context, |_, datagram| {
            into.push(datagram.payload);
            true
        })
    }

    fn poll_send(&self, _context: &mut Context<'_>, payloads: &[Bytes]) -> Poll<io::Result<SendResult>> {
        let mut sent = SendResult { consumed: payloads.len(), too_large: 0 };
        for payload in payloads {
            if payload.len() > MOST_BYTES {
                sent.too_large += 1;
                continue;
            }
            let datagram = Datagram { payload: payload.clone(), codepoint: EcnCodepoint::NotEct };
            self.binding.send(None, self.peer, datagram);
        }
        Poll::Ready(Ok(sent))
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        Ok(self.binding.source(None))
    }
}
