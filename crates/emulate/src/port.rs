//! Where frames enter and leave: [`Port`], and the packet socket behind it.

use crate::netlink::index_of;
use crate::sys::{self, BATCH, Received, Receiver};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A frame that has come.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its bytes, from the link layer's header on (packet sockets) or from the IP header on (TUN).
    pub bytes: &'a [u8],
    /// The kernel's arrival stamp, nanoseconds since 1970; `None` if there is none.
    pub stamp_nanos: Option<u64>,
}

/// What a port has done besides handing frames over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Frames received.
    pub received: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames that the kernel dropped because they were not fetched in time.
    pub receive_drops: u64,
    /// Frames that the kernel would not take.
    pub send_drops: u64,
}

/// An attachment to real hosts.
pub trait Port: std::fmt::Debug {
    /// What to wait on.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Hands over what has come, a batch at most; says how many frames that were. Never blocks.
    ///
    /// # Errors
    /// The kernel's.
    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> io::Result<usize>;

    /// Sends frames in order, or gives up and counts those that the kernel does not take. Never blocks.
    fn send(&mut self, frames: &mut VecDeque<Vec<u8>>);

    /// What it has counted.
    ///
    /// # Errors
    /// The kernel's.
    fn counters(&mut self) -> io::Result<PortCounters>;
}

/// A packet socket on an interface.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    receiver: Receiver,
    batch: Box<[Received; BATCH]>,
    counters: PortCounters,
}

/// What a socket may hold in either direction: 40 ms of 1 Gbit/s.
const BUFFER_BYTES: u32 = 8 << 20;

impl PacketPort {
    /// Opens one on an interface of the current network namespace.
    ///
    /// # Errors
    /// If there is no such interface, or no permission.
    pub fn open(interface: &str) -> io::Result<Self> {
        let told = |error: io::Error| io::Error::new(error.kind(), format!("interface {interface}: {error}"));
        let socket = index_of(interface).and_then(|index| sys::packet_socket(index, BUFFER_BYTES)).map_err(told)?;
        Ok(PacketPort {
            socket,
            receiver: Receiver::new(),
            batch: Box::new([Received { bytes: 0, stamp_nanos: None }; BATCH]),
            counters: PortCounters::default(),
        })
    }
}

impl Port for PacketPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> io::Result<usize> {
        let count = self.receiver.receive(self.socket.as_fd(), &mut self.batch)?;
        for (number, received) in self.batch.iter().take(count).enumerate() {
            let bytes = self.receiver.frame(number, received.bytes);
            take(Frame { bytes, stamp_nanos: received.stamp_nanos });
        }
        self.counters.received += count as u64;
        Ok(count)
    }

    fn send(&mut self, frames: &mut VecDeque<Vec<u8>>) {
        while !frames.is_empty() {
            let (sent, error) = sys::send(self.socket.as_fd(), frames.make_contiguous());
            self.counters.sent += sent as u64;
            frames.drain(..sent);
            if error.is_some() {
                // The emulator never waits for one host while others are due.
                frames.pop_front();
                self.counters.send_drops += 1;
            }
        }
    }

    fn counters(&mut self) -> io::Result<PortCounters> {
        self.counters.receive_drops += sys::take_drops(self.socket.as_fd())?;
        Ok(self.counters)
    }
}
