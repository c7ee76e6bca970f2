//! Where frames enter and leave: [`Port`], and what may be behind it: a packet socket on an interface ([`PacketPort`]), or a TUN
//! device ([`TunPort`]), which gives no arrival stamps and takes a call for each packet.

use super::netlink::{Mac, index_of};
use super::sys::{self, BATCH, Received, Receiver};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A frame that has come.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its bytes, from the Ethernet header on.
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

/// The Ethernet address of an interface of the current network namespace.
///
/// # Errors
/// If there is no such interface.
pub fn hardware_address(interface: &str) -> io::Result<[u8; 6]> {
    sys::hardware_address(interface)
        .map_err(|error| io::Error::new(error.kind(), format!("interface {interface}: {error}")))
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

/// A TUN device, which carries IP packets. To the driver they look like Ethernet frames, as from everywhere else.
#[derive(Debug)]
pub struct TunPort {
    device: OwnedFd,
    /// Ethernet header of packets from the host, all but the type.
    header: [u8; 12],
    buffer: Vec<u8>,
    counters: PortCounters,
}

/// Bytes of an Ethernet header.
const HEADER_BYTES: usize = 14;
/// Packets that come by one call of [`Port::receive`] at most.
const READS: usize = 64;

impl TunPort {
    pub(crate) fn new(device: OwnedFd, mac: Mac, gateway_mac: Mac) -> Self {
        let mut header = [0; 12];
        header[..6].copy_from_slice(&gateway_mac);
        header[6..].copy_from_slice(&mac);
        TunPort { device, header, buffer: vec![0; 65_536 + HEADER_BYTES], counters: PortCounters::default() }
    }
}

impl Port for TunPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn receive(&mut self, take: &mut dyn FnMut(Frame<'_>)) -> io::Result<usize> {
        self.buffer[..12].copy_from_slice(&self.header);
        for number in 0..READS {
            let length = match rustix::io::read(&self.device, &mut self.buffer[HEADER_BYTES..]) {
                Ok(length) => length,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(number),
                Err(error) => return Err(error.into()),
            };
            let kind: u16 = if self.buffer[HEADER_BYTES] >> 4 == 6 { 0x86dd } else { 0x0800 };
            self.buffer[12..HEADER_BYTES].copy_from_slice(&kind.to_be_bytes());
            take(Frame { bytes: &self.buffer[..HEADER_BYTES + length], stamp_nanos: None });
            self.counters.received += 1;
        }
        Ok(READS)
    }

    fn send(&mut self, frames: &mut VecDeque<Vec<u8>>) {
        for frame in frames.drain(..) {
            match rustix::io::write(&self.device, frame.get(HEADER_BYTES..).unwrap_or_default()) {
                Ok(_) => self.counters.sent += 1,
                Err(_) => self.counters.send_drops += 1,
            }
        }
    }

    fn counters(&mut self) -> io::Result<PortCounters> {
        Ok(self.counters)
    }
}
