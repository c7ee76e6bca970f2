//! A local UDP port that leads to a target behind a proxy: who sends to it talks to the target. Each local sender has
//! a tunnel of its own, as each has a port of its own at an address translator.

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

/// Messages received at a time, and the bytes of one.
const BATCH: usize = 8;
const MESSAGE_BYTES: usize = 64 << 10;

/// What a sender may have waiting while its tunnel is being opened.
const WAITING_BYTES: usize = 1 << 20;

/// How a forwarder treats its senders.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Senders at a time; beyond them the one that has been silent for longest gives way.
    pub senders: usize,
    /// A sender without payloads in either direction is forgotten after this time.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { senders: 256, idle: crate::configuration::RECOMMENDED_IDLE }
    }
}

/// Hears of a sender whose tunnel could not be opened or was ended, and why.
pub type Refused = Arc<dyn Fn(SocketAddr, &str) + Send + Sync>;

/// Forwards what arrives at `socket` to `target`, and what comes back to whom it is for, until the socket or the
/// connection to the proxy fails. `refused` hears of each tunnel that could not be opened or that was ended.
///
/// # Errors
/// Of the socket, or that the connection is lost.
pub async fn forward(
    environment: Arc<dyn Environment>,
    client: Client,
    target: Target,
    mut socket: Box<dyn AsyncUdpSocket>,
    limits: Limits,
    refused: Refused,
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
                "the connection to the proxy is lost",
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

/// One local sender, between the socket's task and its own.
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

    /// Whether it has ended, which it does when silent for too long.
    fn is_over(&self, now: Instant, idle: Duration) -> bool {
        let silent = now.saturating_duration_since(self.state().active) >= idle;
        if silent {
            self.end();
        }
        self.state().over
    }
}

/// Opens a sender's tunnel and carries its payloads.
async fn serve(
    environment: Arc<dyn Environment>,
    client: Client,
    target: Target,
    from: SocketAddr,
    sender: Arc<Sender>,
    mut back: Pin<Box<dyn UdpSender>>,
    refused: Refused,
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
            // A local program that has gone does not end the tunnel; it may come back.
            let _ = poll_fn(|context| back.as_mut().poll_send(&transmit, context)).await;
        }
    }
}
