//! Forwards a local UDP port to a target behind a proxy. Each local sender has its own tunnel, just as each sender
//! behind a NAT has its own port.

use super::{Client, Tunnel};
use crate::environment::Environment;
use crate::target::Target;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, UdpSender};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

/// Maximum number of messages per receive call, and the maximum size of a message in bytes.
const BATCH: usize = 8;
const MESSAGE_BYTES: usize = 64 << 10;

/// Bytes from one sender that may wait while its tunnel is being opened.
const WAITING_BYTES: usize = 1 << 20;

/// Limits on the local senders of a forwarder.
#[derive(Clone, Copy, Debug)]
pub struct ForwarderLimits {
    /// Maximum number of senders. If it is reached, a new sender replaces the sender that has been idle for the longest
    /// time.
    pub senders: usize,
    /// Time without payloads in either direction after which a sender is removed.
    pub idle: Duration,
}

impl Default for ForwarderLimits {
    fn default() -> Self {
        ForwarderLimits { senders: 256, idle: crate::configuration::RECOMMENDED_IDLE_TIMEOUT }
    }
}

/// Callback for a sender whose tunnel could not be opened or has ended, with the reason.
pub type RejectionCallback = Arc<dyn Fn(SocketAddr, &str) + Send + Sync>;

/// Forwards datagrams from `socket` to `target`, and the replies to the local senders, until the socket or the
/// connection to the proxy fails. Calls `refused` for each tunnel that could not be opened or has ended.
///
/// # Errors
/// If the socket fails or the connection is lost.
pub async fn forward(
    environment: Arc<dyn Environment>,
    client: Client,
    target: Target,
    mut socket: Box<dyn AsyncUdpSocket>,
    limits: ForwarderLimits,
    refused: RejectionCallback,
) -> io::Result<()> {
    let mut senders: BTreeMap<SocketAddr, Arc<Sender>> = BTreeMap::new();
    let mut room = vec![0; BATCH * MESSAGE_BYTES];
    let mut closed = Box::pin(client.connection().on_closed());
    loop {
        let mut arrived = Vec::new();
        receive(&mut socket, &mut room, &mut closed, &mut arrived).await?;
        let now = environment.now();
        senders.retain(|_, sender| !sender.is_over(now, limits.idle));
        for (from, payload) in arrived {
            if !senders.contains_key(&from) {
                make_room(&mut senders, limits.senders);
                let sender = Arc::new(Sender::new(now));
                let task = serve(
                    Arc::clone(&environment),
                    client.clone(),
                    target.clone(),
                    from,
                    Arc::clone(&sender),
                    socket.create_sender(),
                    Arc::clone(&refused),
                );
                environment.spawn(Box::pin(task));
                senders.insert(from, sender);
            }
            if let Some(sender) = senders.get(&from) {
                sender.push(now, payload);
            }
        }
    }
}

async fn receive(
    socket: &mut Box<dyn AsyncUdpSocket>,
    room: &mut [u8],
    closed: &mut Pin<Box<noq::OnClosed>>,
    arrived: &mut Vec<(SocketAddr, Bytes)>,
) -> io::Result<()> {
    let mut metas = [RecvMeta::default(); BATCH];
    let count = poll_fn(|context| {
        if closed.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the connection to the proxy was lost",
            )));
        }
        let mut slices = room.chunks_exact_mut(MESSAGE_BYTES);
        let mut buffers: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(slices.next().unwrap_or_default()));
        socket.poll_recv(context, &mut buffers, &mut metas)
    })
    .await?;
    for (message, meta) in room.chunks_exact(MESSAGE_BYTES).zip(&metas[..count]) {
        let message = Bytes::copy_from_slice(&message[..meta.len]);
        let stride = meta.stride.max(1);
        for begin in (0..meta.len.max(1)).step_by(stride) {
            arrived.push((meta.addr, message.slice(begin..meta.len.min(begin + stride))));
        }
    }
    Ok(())
}

fn make_room(senders: &mut BTreeMap<SocketAddr, Arc<Sender>>, limit: usize) {
    while senders.len() >= limit.max(1) {
        let oldest = senders.iter().min_by_key(|(_, sender)| sender.state().active).map(|(from, _)| *from);
        if let Some(sender) = oldest.and_then(|from| senders.remove(&from)) {
            sender.end();
        }
    }
}

/// One local sender. The task of the socket and the task of the sender share it.
struct Sender {
    state: Mutex<State>,
    waker: AtomicWaker,
}

struct State {
    waiting: Vec<Bytes>,
    bytes: usize,
    active: Instant,
    over: bool,
}

impl Sender {
    fn new(now: Instant) -> Sender {
        let state = State { waiting: Vec::new(), bytes: 0, active: now, over: false };
        Sender { state: Mutex::new(state), waker: AtomicWaker::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, now: Instant, payload: Bytes) {
        let mut state = self.state();
        state.active = now;
        if state.bytes + payload.len() <= WAITING_BYTES {
            state.bytes += payload.len();
            state.waiting.push(payload);
        }
        drop(state);
        self.waker.wake();
    }

    fn end(&self) {
        self.state().over = true;
        self.waker.wake();
    }

    /// Whether this sender has ended, either explicitly or after an idle time of `idle`.
    fn is_over(&self, now: Instant, idle: Duration) -> bool {
        let silent = now.saturating_duration_since(self.state().active) >= idle;
        if silent {
            self.end();
        }
        self.state().over
    }
}

/// Opens a sender's tunnel and relays its payloads.
async fn serve(
    environment: Arc<dyn Environment>,
    client: Client,
    target: Target,
    from: SocketAddr,
    sender: Arc<Sender>,
    mut back: Pin<Box<dyn UdpSender>>,
    refused: RejectionCallback,
) {
    match client.open(&target).await {
        Ok(tunnel) => {
            if let Err(reason) = carry(&*environment, &tunnel, from, &sender, &mut back).await {
                refused(from, &reason);
            }
        }
        Err(error) => refused(from, &error.to_string()),
    }
    sender.end();
}

async fn carry(
    environment: &dyn Environment,
    tunnel: &Tunnel,
    from: SocketAddr,
    sender: &Sender,
    back: &mut Pin<Box<dyn UdpSender>>,
) -> Result<(), String> {
    let mut outgoing = Vec::new();
    let mut incoming = Vec::new();
    loop {
        let going_on = poll_fn(|context| {
            sender.waker.register(context.waker());
            let mut state = sender.state();
            outgoing.append(&mut state.waiting);
            state.bytes = 0;
            let over = state.over;
            drop(state);
            match tunnel.poll_receive(context, usize::MAX, &mut incoming) {
                Poll::Ready(Err(ended)) => Poll::Ready(Err(ended.to_string())),
                _ if over => Poll::Ready(Ok(false)),
                Poll::Pending if outgoing.is_empty() => Poll::Pending,
                _ => Poll::Ready(Ok(true)),
            }
        })
        .await?;
        if !going_on {
            return Ok(());
        }
        tunnel.send(&mut outgoing);
        if !incoming.is_empty() {
            sender.state().active = environment.now();
        }
        for payload in incoming.drain(..) {
            let transmit =
                Transmit { destination: from, ecn: None, contents: &payload, segment_size: None, src_ip: None };
            // If a local program has closed its port, the tunnel stays open, because the program may reopen the port.
            let _ = poll_fn(|context| back.as_mut().poll_send(&transmit, context)).await;
        }
    }
}
