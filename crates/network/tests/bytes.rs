//! Packets of every content as bytes, parsed by an independent library.

#![allow(missing_docs, reason = "a test")]

use bytes::Bytes;
use etherparse::{IpSlice, Ipv4Slice, TcpSlice, UdpSlice};
use fullpipe_network::packet::Arena;
use fullpipe_network::{
    CapturedPacket, Endpoint, EndpointPair, HeaderFields, Packet, PacketContent, PacketDisposition,
};
use fullpipe_units::{EcnCodepoint, FlowId, NodeId};
use fullpipe_wire::tcp::{flags, options};
use fullpipe_wire::{IpVersion, QuicHeader, SegmentOptions, TcpHeader, WriteError};
use std::net::IpAddr;

const ENDS: EndpointPair = EndpointPair {
    source: Endpoint { node: NodeId(0), port: 49_152 },
    destination: Endpoint { node: NodeId(1), port: 443 },
};

fn envelope(version: IpVersion) -> HeaderFields {
    let [source, destination] = [ENDS.source, ENDS.destination].map(|end| end.socket_address(version).ip());
    HeaderFields { ends: ENDS, source, destination, translated: false, hop_limit: 61, identification: 0x2345 }
}

fn captured<'a>(packet: &'a Packet, whole: &'a Packet) -> CapturedPacket<'a> {
    CapturedPacket { packet, whole, options: None, payload: None, datagram: None, envelope: envelope(packet.version) }
}

fn bytes_of(captured: &CapturedPacket<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    assert_eq!(captured.write(usize::MAX, &mut out), Ok(captured.packet.ip_bytes));
    assert_eq!(out.len() as u32, captured.packet.ip_bytes);
    out
}

fn ipv4(bytes: &[u8]) -> Ipv4Slice<'_> {
    Ipv4Slice::from_slice(bytes).unwrap()
}

#[test]
fn a_segment_is_written_with_its_header_and_options() {
    let header = TcpHeader {
        sequence: 7,
        flags: flags::ACK,
        payload_bytes: 5,
        options: options::FAST_OPEN,
        other_option_bytes: 6,
        ..TcpHeader::default()
    };
    let mut side = SegmentOptions { fast_open_bytes: 4, ..SegmentOptions::default() };
    side.fast_open_cookie[..4].copy_from_slice(b"abcd");
    let packet = Packet::new(FlowId(0), NodeId(1), 20 + 28 + 5, PacketContent::Tcp(header));
    let bytes = bytes_of(&CapturedPacket { options: Some(&side), ..captured(&packet, &packet) });
    let ip = ipv4(&bytes);
    assert!(ip.header().dont_fragment());
    let segment = TcpSlice::from_slice(ip.payload().payload).unwrap();
    assert_eq!((segment.source_port(), segment.destination_port()), (49_152, 443));
    assert_eq!((segment.sequence_number(), segment.ack()), (7, true));
    assert_eq!((segment.options(), segment.payload()), (&b"\x22\x06abcd\x01\x01"[..], &[0; 5][..]));
}

/// Routers may fragment the datagrams of a model, but not those of QUIC (RFC 9000 section 14).
#[test]
fn only_quic_datagrams_forbid_fragmentation() {
    let mut arena = Arena::default();
    let model = Packet::new(FlowId(0), NodeId(1), 128, PacketContent::Udp { payload_bytes: 100 });
    let quic = Packet::new(FlowId(0), NodeId(1), 128, PacketContent::Quic(QuicHeader::default()));
    let payload = Bytes::from_static(&[9; 100]);
    let stack = Packet { payload: arena.store_payload(Some(payload.clone())), ..model };
    for (packet, payload, is_whole, byte) in
        [(model, None, false, 0), (quic, None, true, 0), (stack, Some(&payload), true, 9)]
    {
        let bytes = bytes_of(&CapturedPacket { payload, ..captured(&packet, &packet) });
        let ip = ipv4(&bytes);
        assert_eq!(ip.header().dont_fragment(), is_whole);
        assert_eq!(UdpSlice::from_slice(ip.payload().payload).unwrap().payload(), [byte; 100]);
    }
}

#[test]
fn a_fragment_is_written_with_its_part_of_the_payload() {
    let payload: Bytes = (1..=100).collect();
    for version in [IpVersion::V4, IpVersion::V6] {
        let content = PacketContent::Udp { payload_bytes: 100 };
        let whole = Packet { version, ..Packet::new(FlowId(0), NodeId(1), version.header_bytes() + 108, content) };
        let content = PacketContent::Fragment { whole: Arena::default().insert(whole), offset_bytes: 48, last: false };
        let packet = Packet { content, ip_bytes: version.fragment_header_bytes() + 24, ..whole };
        let bytes = bytes_of(&CapturedPacket { payload: Some(&payload), ..captured(&packet, &whole) });
        assert!(IpSlice::from_slice(&bytes).unwrap().is_fragmenting_payload());
        // After the UDP header's eight bytes, byte 40 of the payload is the number 41.
        let expected: Vec<u8> = (41..65).collect();
        assert_eq!(bytes[version.fragment_header_bytes() as usize..], expected);
    }
}

/// The packet of RFC 1624's arithmetic: 4500 + 001e + 4011 + 0a00 + 0001 + 0a00 + 0002 = 9932, complement 66cd. Three routers
/// and a mark change the words to 4503 and 3d11: 9635, complement 69ca.
#[test]
fn a_real_packet_is_written_with_the_changes_of_its_path() {
    let bytes = [
        0x45, 0, 0, 30, 0, 0, 0, 0, 0x40, 17, 0x66, 0xcd, 10, 0, 0, 1, 10, 0, 0, 2, 0x10, 0, 0, 53, 0, 10, 0xda, 0xa0,
        1, 2,
    ];
    let content = PacketContent::RawIp {
        payload_bytes: 2,
        protocol: 17,
        flags: 0,
        dont_fragment: false,
        origin: NodeId(0),
        about: None,
        purpose: PacketDisposition::Deliver,
    };
    let packet = Packet { codepoint: EcnCodepoint::Ce, ..Packet::new(FlowId(0), NodeId(1), 30, content) };
    let payload = Bytes::copy_from_slice(&bytes);
    let mut captured = CapturedPacket { payload: Some(&payload), ..captured(&packet, &packet) };
    let mut expected = bytes;
    (expected[1], expected[8], expected[10], expected[11]) = (3, 0x3d, 0x69, 0xca);
    assert_eq!(bytes_of(&captured), expected);

    // To another address and port: the changed words are those of the new endpoint, 0a00 0009 0051 for 0a00 0002 0035.
    captured.envelope.translated = true;
    captured.envelope.destination = IpAddr::from([10, 0, 0, 9]);
    captured.envelope.ends.destination.port = 0x51;
    captured.envelope.ends.source.port = 0x1000;
    // 963c, complement 69c3; the sum of the datagram 255f + 7 + 1c = 2582, complement da7d.
    (expected[11], expected[19], expected[23]) = (0xc3, 9, 0x51);
    (expected[26], expected[27]) = (0xda, 0x7d);
    assert_eq!(bytes_of(&captured), expected);
    let mut out = Vec::new();
    assert_eq!((captured.write(10, &mut out), &out[..]), (Ok(30), &expected[..10]));
}

#[test]
fn bytes_without_an_ip_header_cannot_be_written() {
    let packet = Packet::new(FlowId(0), NodeId(1), 28, PacketContent::Arp { request: true });
    assert_eq!(captured(&packet, &packet).write(usize::MAX, &mut Vec::new()), Err(WriteError::NotIp));
}
