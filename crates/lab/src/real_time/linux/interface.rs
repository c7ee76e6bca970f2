//! A host that is connected to an interface of this machine, for example the host of a container. The emulator acts as
//! the router on this network.
//!
//! The emulator uses the interface's Ethernet address, and answers address resolution requests for all other nodes of
//! the scenario. It learns the host's Ethernet address from received frames. Until the address is known, frames for the
//! host wait, and the emulator sends address resolution requests. Packets to the routers themselves are left to the
//! kernel, because it may also have these addresses. The traffic can be captured.

use crate::world::ETHERNET_HEADER_BYTES;
use fullpipe_emulate::{PacketPort, Port, PortCounters, ReceivedFrame, unix_time_nanos};
use fullpipe_record::pcapng::{InterfaceDescription, LinkType, PacketDirection, PcapngWriter, SectionHeader};
use fullpipe_units::Instant;
use fullpipe_wire::neighbour::frame_sender;
use fullpipe_wire::{HardwareAddress, NeighborResponder, NeighborResponse};
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

/// Maximum number of frames that wait for the host's address; the oldest are dropped first.
const MOST_WAITING: usize = 64;

/// The destination of the pcapng file of an interface capture. The file contains complete frames.
pub type FrameCapture = Box<dyn Write>;

/// The addresses on both sides of an interface.
#[derive(Clone, Debug)]
pub(crate) struct InterfaceSides {
    /// The Ethernet address of the interface.
    pub(crate) hardware: HardwareAddress,
    /// The host's addresses.
    pub(crate) host: Vec<IpAddr>,
    /// The addresses of the router to which the host is connected, which are the emulator's addresses on this network.
    pub(crate) gateway: Vec<IpAddr>,
    /// The addresses of all routers.
    pub(crate) routers: BTreeSet<IpAddr>,
    /// The addresses of all other hosts.
    pub(crate) others: BTreeSet<IpAddr>,
}

/// Address resolution in both directions.
#[derive(Debug)]
struct Resolution {
    sides: InterfaceSides,
    neighbour: NeighborResponder,
    /// The host's Ethernet address, if known.
    peer: Option<HardwareAddress>,
    waiting: VecDeque<Vec<u8>>,
    dropped: u64,
}

impl Resolution {
    fn new(sides: InterfaceSides) -> Self {
        let neighbour = NeighborResponder { hardware: sides.hardware, is_router: true };
        Resolution { sides, neighbour, peer: None, waiting: VecDeque::new(), dropped: 0 }
    }

    /// Processes a frame from the interface. Returns a response, if any, and whether the frame is for the model.
    fn hear(&mut self, frame: &[u8]) -> (Option<Vec<u8>>, bool) {
        let InterfaceSides { hardware, host, routers, others, .. } = &self.sides;
        if let Some((address, from)) = frame_sender(frame)
            && host.contains(&address)
        {
            self.peer = Some(from);
        }
        match self.neighbour.handle_frame(frame, |address| routers.contains(&address) || others.contains(&address)) {
            NeighborResponse::Reply(reply) => (Some(reply), false),
            NeighborResponse::NoReply => (None, false),
            NeighborResponse::OtherProtocol => {
                let is_ours = frame.starts_with(&hardware.0);
                (None, is_ours && !destination(frame).is_some_and(|address| routers.contains(&address)))
            }
        }
    }

    /// Returns the frames to send now: the given frames and those that waited.
    fn address(&mut self, frames: &mut VecDeque<Vec<u8>>) -> VecDeque<Vec<u8>> {
        self.waiting.append(frames);
        let Some(peer) = self.peer else { return self.questions() };
        let mut ready = std::mem::take(&mut self.waiting);
        for frame in &mut ready {
            frame[..6].copy_from_slice(&peer.0);
            frame[6..12].copy_from_slice(&self.sides.hardware.0);
        }
        ready
    }

    /// Returns address resolution requests if a frame waits. It uses all address families, because the host may have
    /// only one.
    fn questions(&mut self) -> VecDeque<Vec<u8>> {
        while self.waiting.len() > MOST_WAITING {
            self.waiting.pop_front();
            self.dropped += 1;
        }
        if self.waiting.is_empty() {
            return VecDeque::new();
        }
        let InterfaceSides { host, gateway, .. } = &self.sides;
        let pairs = gateway.iter().flat_map(|own| host.iter().map(move |target| (own, target)));
        pairs.filter_map(|(own, target)| self.neighbour.request(*own, *target)).collect()
    }
}

/// Returns the destination address of an IP packet.
fn destination(frame: &[u8]) -> Option<IpAddr> {
    let packet = frame.get(ETHERNET_HEADER_BYTES..)?;
    match packet.first()? >> 4 {
        4 => <[u8; 4]>::try_from(packet.get(16..20)?).ok().map(IpAddr::from),
        6 => <[u8; 16]>::try_from(packet.get(24..40)?).ok().map(IpAddr::from),
        _ => None,
    }
}

/// The interface as a port of the emulator.
pub(crate) struct InterfacePort {
    port: PacketPort,
    resolution: Resolution,
    capture: Option<PcapngWriter<FrameCapture>>,
}

impl std::fmt::Debug for InterfacePort {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("InterfacePort").field("resolution", &self.resolution).finish_non_exhaustive()
    }
}

impl InterfacePort {
    /// Opens an interface of the current network namespace.
    pub(crate) fn open(interface: &str, sides: InterfaceSides, capture: Option<FrameCapture>) -> io::Result<Self> {
        let port = PacketPort::open(interface)?;
        let capture = capture.map(|out| begin(interface, out)).transpose()?;
        Ok(InterfacePort { port, resolution: Resolution::new(sides), capture })
    }

    /// Sends frames unchanged.
    fn put(&mut self, mut frames: VecDeque<Vec<u8>>) -> io::Result<()> {
        if let Some(capture) = &mut self.capture {
            let now = Instant::from_nanos(unix_time_nanos());
            for frame in &frames {
                capture.write_packet(0, now, PacketDirection::Outbound, frame, frame.len() as u32)?;
            }
        }
        self.port.send(&mut frames);
        Ok(())
    }
}

fn begin(interface: &str, out: FrameCapture) -> io::Result<PcapngWriter<FrameCapture>> {
    let section = SectionHeader {
        hardware: "this machine",
        system: "real time",
        application: concat!("fullpipe ", env!("CARGO_PKG_VERSION")),
    };
    let mut capture = PcapngWriter::new(out, &section)?;
    let description = "the emulator's end";
    capture.write_interface(&InterfaceDescription {
        name: interface,
        description,
        link_type: LinkType::Ethernet,
        snap_bytes: 0,
    })?;
    Ok(capture)
}

impl Port for InterfacePort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.port.fd()
    }

    fn receive(&mut self, take: &mut dyn FnMut(ReceivedFrame<'_>)) -> io::Result<usize> {
        let Self { port, resolution, capture } = self;
        let mut answers = VecDeque::new();
        let mut written = Ok(());
        let count = port.receive(&mut |frame| {
            if let Some(capture) = capture {
                let at = Instant::from_nanos(frame.stamp_nanos.unwrap_or_else(unix_time_nanos));
                let one = capture.write_packet(0, at, PacketDirection::Inbound, frame.bytes, frame.bytes.len() as u32);
                if written.is_ok() {
                    written = one;
                }
            }
            let (answer, enters) = resolution.hear(frame.bytes);
            answers.extend(answer);
            if enters {
                take(frame);
            }
        })?;
        written?;
        if !answers.is_empty() {
            self.put(answers)?;
        }
        if self.resolution.peer.is_some() && !self.resolution.waiting.is_empty() {
            self.send(&mut VecDeque::new());
        }
        Ok(count)
    }

    fn send(&mut self, frames: &mut VecDeque<Vec<u8>>) {
        let ready = self.resolution.address(frames);
        if self.put(ready).is_err() {
            // A full disk ends the capture but not the emulation.
            self.capture = None;
        }
    }

    fn counters(&mut self) -> io::Result<PortCounters> {
        let mut counters = self.port.counters()?;
        counters.send_drops += self.resolution.dropped;
        Ok(counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 1]);
    const HOST: HardwareAddress = HardwareAddress([2, 0, 0, 0, 0, 2]);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn resolution() -> Resolution {
        Resolution::new(InterfaceSides {
            hardware: OWN,
            host: vec![address("193.167.0.100"), address("fd00:cafe:cafe::100")],
            gateway: vec![address("193.167.0.2"), address("fd00:cafe:cafe::2")],
            routers: [address("193.167.0.2"), address("fd00:cafe:cafe::2")].into(),
            others: [address("193.167.100.100"), address("fd00:cafe:cafe:100::100")].into(),
        })
    }

    /// An IPv4 packet that has only the version and addresses.
    fn packet(to: HardwareAddress, source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
        let mut frame = [&to.0[..], &HOST.0, &[8, 0], &[0x45; 1], &[0; 11]].concat();
        frame.extend(source);
        frame.extend(destination);
        frame
    }

    #[test]
    fn frame_without_host_address_waits_and_triggers_a_request() {
        let mut resolution = resolution();
        let frame = packet(HardwareAddress::BROADCAST, [193, 167, 100, 100], [193, 167, 0, 100]);
        let questions = resolution.address(&mut VecDeque::from([frame.clone()]));
        // RFC 826: broadcast, own address, ARP; Ethernet and IPv4, request; sender; target.
        let arp = [
            &[0xff; 6][..],
            &OWN.0,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
            &OWN.0,
            &[193, 167, 0, 2],
            &[0; 6],
            &[193, 167, 0, 100],
        ];
        assert_eq!(questions[0], arp.concat());
        // RFC 4861 section 4.3: to the solicited-node multicast group of ::100, 33-33-ff-00-01-00, with our own address
        // as an option.
        assert_eq!(questions[1][..6], [0x33, 0x33, 0xff, 0, 1, 0]);
        assert_eq!(questions[1][14 + 40..14 + 42], [135, 0]);
        assert!(questions[1].ends_with(&[&[1, 1][..], &OWN.0].concat()));
        assert_eq!(questions.len(), 2);
        // The host's reply: opcode 2, with the host as sender.
        let reply =
            [&OWN.0[..], &HOST.0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &HOST.0, &[193, 167, 0, 100], &OWN.0, &[0; 4]];
        assert_eq!(resolution.hear(&reply.concat()), (None, false));
        let ready = resolution.address(&mut VecDeque::new());
        assert_eq!(ready, [[&HOST.0[..], &OWN.0, &frame[12..]].concat()]);
        assert!(resolution.address(&mut VecDeque::new()).is_empty(), "the frame was sent twice");
    }

    #[test]
    fn number_of_waiting_frames_is_bounded_and_drops_are_counted() {
        let mut resolution = resolution();
        let frame = packet(HOST, [1; 4], [2; 4]);
        for _ in 0..100 {
            resolution.address(&mut VecDeque::from([frame.clone()]));
        }
        assert_eq!((resolution.waiting.len(), resolution.dropped), (64, 36));
    }

    #[test]
    fn only_frames_to_the_interface_for_other_hosts_enter() {
        let mut resolution = resolution();
        let (client, server) = ([193, 167, 0, 100], [193, 167, 100, 100]);
        assert_eq!(resolution.hear(&packet(OWN, client, server)), (None, true));
        assert_eq!(resolution.peer, Some(HOST), "a packet contains its sender's address");
        assert_eq!(resolution.hear(&packet(HOST, client, server)), (None, false), "a frame flooded by a bridge");
        assert_eq!(resolution.hear(&packet(OWN, client, [193, 167, 0, 2])), (None, false), "a packet for the kernel");
        // The client's targets: the emulator answers for the gateway, not for the bridge.
        let question = |target: [u8; 4]| {
            let asks = [&[0xff; 6][..], &HOST.0, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &HOST.0, &client, &[0; 6], &target];
            asks.concat()
        };
        let (answer, enters) = resolution.hear(&question([193, 167, 0, 2]));
        assert_eq!((answer.unwrap()[22..28].to_vec(), enters), (OWN.0.to_vec(), false));
        assert_eq!(resolution.hear(&question([193, 167, 0, 1])), (None, false));
        // Another station on the network is not the host.
        let mut other = packet(OWN, [193, 167, 0, 1], server);
        other[11] = 9;
        resolution.hear(&other);
        assert_eq!(resolution.peer, Some(HOST));
        assert_eq!(resolution.hear(&[0; 13]), (None, false));
    }
}
