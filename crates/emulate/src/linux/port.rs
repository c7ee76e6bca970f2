//! Ports through which frames enter and leave the model: the trait [`Port`], a packet socket on an interface
//! ([`PacketPort`]), and a TUN device ([`TunPort`]). A TUN device has no arrival timestamps and needs one call per
//! packet.

use super::netlink::{MacAddress, index_of};
use super::sys::{self, BATCH, ReceivedMetadata, Receiver};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A frame that a port has received.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedFrame<'a> {
    /// The frame, from the Ethernet header on.
    pub bytes: &'a [u8],
    /// The kernel's arrival timestamp in nanoseconds since 1970; `None` if there is none.
    pub stamp_nanos: Option<u64>,
}

/// Counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Number of frames received.
    pub received: u64,
    /// Number of frames sent.
    pub sent: u64,
    /// Number of frames that the kernel dropped because they were not read in time.
    pub receive_drops: u64,
    /// Number of frames that the kernel rejected.
    pub send_drops: u64,
}

/// A port through which the model exchanges frames with a real host.
pub trait Port: std::fmt::Debug {
    /// Returns the file descriptor to wait on.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Passes received frames to `take`, at most one batch per call. Returns the number of frames. Never blocks.
    ///
    /// # Errors
    /// Returns the kernel's error.
    fn receive(&mut self, take: &mut dyn FnMut(ReceivedFrame<'_>)) -> io::Result<usize>;

    /// Sends frames in order. Frames that the kernel does not accept are discarded and counted. Never blocks.
    fn send(&mut self, frames: &mut VecDeque<Vec<u8>>);

    /// Returns the counters since the port was opened.
    ///
    /// # Errors
    /// Returns the kernel's error.
    fn counters(&mut self) -> io::Result<PortCounters>;
}

/// A packet socket on an interface.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    receiver: Receiver,
    batch: Box<[ReceivedMetadata; BATCH]>,
    counters: PortCounters,
}

/// Size of a socket buffer in each direction: 40 ms at 1 Gbit/s.
const BUFFER_BYTES: u32 = 8 << 20;

impl PacketPort {
    /// Opens a packet socket on an interface of the current network namespace.
    ///
    /// # Errors
    /// If there is no such interface, or if permission is denied.
    pub fn open(interface: &str) -> io::Result<Self> {
        let told = |error: io::Error| io::Error::new(error.kind(), format!("interface {interface}: {error}"));
        let socket = index_of(interface).and_then(|index| sys::packet_socket(index, BUFFER_BYTES)).map_err(told)?;
        Ok(PacketPort {
            socket,
            receiver: Receiver::new(),
            batch: Box::new([ReceivedMetadata { bytes: 0, stamp_nanos: None }; BATCH]),
            counters: PortCounters::default(),
        })
    }
}

/// Returns the MAC address of an interface of the current network namespace.
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

    fn receive(&mut self, take: &mut dyn FnMut(ReceivedFrame<'_>)) -> io::Result<usize> {
        let count = self.receiver.receive(self.socket.as_fd(), &mut self.batch)?;
        for (number, received) in self.batch.iter().take(count).enumerate() {
            let bytes = self.receiver.frame(number, received.bytes);
            take(ReceivedFrame { bytes, stamp_nanos: received.stamp_nanos });
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
                // The emulator never waits for one host, because frames to other hosts may be due.
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

/// A TUN device, which carries IP packets. The driver receives these packets with an Ethernet header, as from other
/// ports.
#[derive(Debug)]
pub struct TunPort {
    device: OwnedFd,
    /// Ethernet header of packets from the host, without the type.
    header: [u8; 12],
    buffer: Vec<u8>,
    counters: PortCounters,
}

/// Size of an Ethernet header in bytes.
const HEADER_BYTES: usize = 14;
/// Maximum number of packets per call of [`Port::receive`].
const READS: usize = 64;

impl TunPort {
    pub(crate) fn new(device: OwnedFd, mac: MacAddress, gateway_mac: MacAddress) -> Self {
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

    fn receive(&mut self, take: &mut dyn FnMut(ReceivedFrame<'_>)) -> io::Result<usize> {
        self.buffer[..12].copy_from_slice(&self.header);
        for number in 0..READS {
            let length = match rustix::io::read(&self.device, &mut self.buffer[HEADER_BYTES..]) {
                Ok(length) => length,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => return Ok(number),
                Err(error) => return Err(error.into()),
            };
            let kind: u16 = if self.buffer[HEADER_BYTES] >> 4 == 6 { 0x86dd } else { 0x0800 };
            self.buffer[12..HEADER_BYTES].copy_from_slice(&kind.to_be_bytes());
            take(ReceivedFrame { bytes: &self.buffer[..HEADER_BYTES + length], stamp_nanos: None });
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
