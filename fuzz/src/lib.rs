//! One entry point for each parser of what comes from a network or a file. Bytes go in, nothing panics, and where there
//! is a writer too, what was read is written again and read as the same. libFuzzer drives them in this folder, and
//! `crates/sockets/tests/parsers.rs` with the seeds and with random bytes in every test run.

use bytes::{Buf, Bytes, BytesMut};
use fullpipe_masque::datagram::{self, DatagramContent};
use fullpipe_masque::policy::{Policy, Rule};
use fullpipe_masque::proxy_status::{ProxyError, ProxyStatus};
use fullpipe_masque::target::Target;
use fullpipe_masque::template::Template;
use fullpipe_masque::transport::{FrameValidator, PeerRole, UnidirectionalValidator};
use fullpipe_masque::{capsule, percent, varint};
use fullpipe_record::pcapng::{
    Block, InterfaceDescription, PacketDirection, PcapngReader, PcapngWriter, SectionHeader,
};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wire::{
    self as wire, AddressTranslation, NeighborResponder, PacketSummary, Reassembler, ReassemblyResult, rewrite,
};

/// Takes whatever bytes there are.
pub type Parser = fn(&[u8]);

/// Every entry point with its name.
pub const PARSERS: [(&str, Parser); 17] = [
    ("varint", varint),
    ("capsule", capsule),
    ("http_datagram", http_datagram),
    ("request_stream", request_stream),
    ("one_way_stream", one_way_stream),
    ("template", template),
    ("target", target),
    ("policy", policy),
    ("proxy_status", proxy_status),
    ("packet", packet),
    ("tcp_options", tcp_options),
    ("frame", frame),
    ("reassembly", reassembly),
    ("pcapng", pcapng),
    ("scenario", scenario),
    ("tmix", tmix),
    ("mahimahi", mahimahi),
];

/// As text, whatever it is.
fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Splits off the first byte, which decides something.
fn choice(bytes: &[u8]) -> (u8, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest))
}

/// QUIC's variable-length integers.
pub fn varint(bytes: &[u8]) {
    let Some((value, length)) = varint::decode(bytes) else { return };
    let mut again = Vec::new();
    varint::encode(value, &mut again);
    assert!(again.len() <= length && varint::decode(&again) == Some((value, again.len())));
}

/// The capsule protocol: however the stream is cut, the same comes out.
pub fn capsule(bytes: &[u8]) {
    let (cut, stream) = choice(bytes);
    let decode = |cut: usize| {
        let mut decoder = capsule::Decoder::default();
        let mut datagrams = Vec::new();
        for piece in stream.chunks(cut) {
            let mut input = Bytes::copy_from_slice(piece);
            loop {
                match decoder.next(&mut input) {
                    Ok(Some(datagram)) => datagrams.push(datagram),
                    Ok(None) => break,
                    Err(error) => return Err(error),
                }
            }
            assert!(!input.has_remaining());
        }
        Ok((datagrams, decoder.may_end()))
    };
    let pieces = decode(usize::from(cut).max(1));
    assert_eq!(pieces, decode(stream.len().max(1)));
    for datagram in pieces.into_iter().flat_map(|(datagrams, _)| datagrams) {
        if let DatagramContent::Udp(payload) = datagram::parse_payload(datagram) {
            let mut again = BytesMut::new();
            capsule::encode(&payload, &mut again);
            assert_eq!(again.len(), payload.len() + capsule::overhead(payload.len()));
            let mut input = again.freeze();
            let read = capsule::Decoder::default().next(&mut input);
            let read = read.expect("a whole capsule").expect("a datagram");
            assert_eq!((datagram::parse_payload(read), input.len()), (DatagramContent::Udp(payload), 0));
        }
    }
}

/// QUIC DATAGRAM frames with HTTP datagrams.
pub fn http_datagram(bytes: &[u8]) {
    let Ok((id, content)) = datagram::split_quarter_stream_id(Bytes::copy_from_slice(bytes)) else { return };
    if let DatagramContent::Udp(payload) = datagram::parse_payload(content) {
        let again = datagram::split_quarter_stream_id(datagram::encode_frame(id, &payload));
        assert!(again.is_ok_and(
            |(same, content)| same == id && datagram::parse_payload(content) == DatagramContent::Udp(payload)
        ));
    }
}

/// HTTP/3 frames of request streams.
pub fn request_stream(bytes: &[u8]) {
    let (cut, stream) = choice(bytes);
    let peer = if cut & 0x80 == 0 { PeerRole::Client } else { PeerRole::Server };
    let (mut whole, mut pieces) = (FrameValidator::new(peer, 1000), FrameValidator::new(peer, 1000));
    let judged = stream.chunks(usize::from(cut).max(1)).try_for_each(|piece| pieces.validate(piece));
    assert_eq!(whole.validate(stream), judged);
    if judged.is_ok() {
        assert_eq!(whole.validate_end(), pieces.validate_end());
    }
}

/// Control and QPACK streams.
pub fn one_way_stream(bytes: &[u8]) {
    let (cut, stream) = choice(bytes);
    let peer = if cut & 0x80 == 0 { PeerRole::Client } else { PeerRole::Server };
    let judge = |cut: usize| {
        let mut guard = UnidirectionalValidator::new(peer, 1 << 20);
        stream.chunks(cut).try_for_each(|piece| guard.validate(piece))
    };
    assert_eq!(judge(usize::from(cut & 0x7f).max(1)), judge(1));
}

/// URI templates, and paths read by them: two lines.
pub fn template(bytes: &[u8]) {
    let text = text(bytes);
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(template) = Template::parse(first) else { return };
    assert_eq!(Template::parse(&template.to_string()).as_ref(), Ok(&template));
    let _ = template.proxy_target();
    let read = template.parse_path(second);
    if template.check_readable().is_ok()
        && let Ok(target) = read
    {
        assert_eq!(template.parse_path(&template.expand(&target)), Ok(target));
    }
}

/// Targets and percent-encoding.
pub fn target(bytes: &[u8]) {
    let text = text(bytes);
    let mut encoded = String::new();
    percent::encode(&text, &mut encoded);
    assert_eq!(percent::decode(&encoded).as_deref(), Some(&*text));
    let _ = percent::decode(&text);
    if let Ok(target) = Target::parse(&text) {
        assert_eq!(Target::parse(&target.to_string()), Ok(target));
    }
}

/// Rules of the target policy, and the judgement of addresses: two lines.
pub fn policy(bytes: &[u8]) {
    let text = text(bytes);
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    let rules: Vec<Rule> = first.parse().into_iter().collect();
    let (Ok(target), Ok(address)) = (Target::parse("name.example:443"), second.parse()) else { return };
    let allow = Policy { allow: rules.clone(), ..Policy::default() };
    let deny = Policy { deny: rules, ..Policy::default() };
    // No rule opens by denying, and none closes by allowing.
    let without = Policy::default().check(&target, address).is_ok();
    assert!(without <= allow.check(&target, address).is_ok() && deny.check(&target, address).is_ok() <= without);
}

/// What proxies say of names that clients chose: a field value all the same (RFC 9110 section 5.5).
pub fn proxy_status(bytes: &[u8]) {
    let text = text(bytes);
    let status = ProxyStatus { proxy: &text, error: &ProxyError::Internal, details: &text }.to_string();
    assert!(status.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{status:?}");
}

/// IPv4, IPv6, TCP, UDP and ICMP packets of real programs, and all that is done to them on the way.
pub fn packet(bytes: &[u8]) {
    let (choice, packet) = choice(bytes);
    let _ = wire::parse(packet);
    let _ = PacketSummary::parse(packet);
    let _ = wire::quoted_packet(packet);
    let _ = rewrite::udp_payload_range(packet);
    let _ = wire::icmp::write_echo_reply(packet, 1, &mut Vec::new());
    let _ = wire::write_reset(packet, 1, &mut Vec::new());
    let whole = wire::parse(packet).is_ok();
    let mut copy = packet.to_vec();
    let changed = rewrite::set_ecn(&mut copy, EcnCodepoint::from_bits(choice & 3)).is_ok();
    let lowered = rewrite::decrement_hop_limit(&mut copy, choice >> 6).is_ok();
    // What had right checksums has them still.
    assert!(!(whole && changed && lowered) || wire::parse(&copy).is_ok());
    let ends = |version4: bool| if version4 { "192.0.2.7:99" } else { "[2001:db8::7]:99" }.parse().ok();
    let translation = AddressTranslation { source: ends(choice & 4 != 0), destination: ends(choice & 4 != 0) };
    let translated = translation.apply(&mut copy).is_ok();
    assert!(!(whole && changed && lowered && translated) || wire::parse(&copy).is_ok());
    rewrite::add_to_udp_payload(&mut copy, usize::from(choice), choice);
    let _ = rewrite::corrupt(&mut copy);
    rewrite::flip_bit(&mut copy, usize::from(choice) * 8);
    let _ = wire::parse(&copy);
}

/// TCP options, behind a header that is right.
pub fn tcp_options(bytes: &[u8]) {
    let options = &bytes[..bytes.len().min(40)];
    let length = options.len().next_multiple_of(4);
    let mut packet = vec![0x45, 0, 0, 40 + length as u8, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    let data_offset = ((20 + length) / 4 * 16) as u8;
    packet.extend_from_slice(&[0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, data_offset, 16, 1, 0, 0, 0, 0, 0]);
    packet.extend_from_slice(options);
    packet.resize(40 + length, 0);
    let sum = |bytes: &[u8], begin: u32| {
        let sum = bytes.chunks(2).fold(begin, |sum, word| sum + u32::from(word[0]) * 256 + u32::from(word[1]));
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    };
    let header = sum(&packet[..20], 0).to_be_bytes();
    packet[10..12].copy_from_slice(&header);
    // RFC 9293 section 3.1: addresses, protocol and length before the segment.
    let begin = 2 * 0xc000 + 0x0201 + 0x0202 + 6 + 20 + length as u32;
    let segment = sum(&packet[20..], begin).to_be_bytes();
    packet[36..38].copy_from_slice(&segment);
    match wire::parse(&packet) {
        Ok(_) | Err(wire::ParseError::Options) => {}
        Err(other) => panic!("only the options may be wrong: {other}"),
    }
}

/// Ethernet frames, and neighbour discovery's answers to them.
pub fn frame(bytes: &[u8]) {
    if let Some((header, payload)) = wire::EthernetHeader::read(bytes) {
        assert_eq!([&header.bytes(), payload].concat(), bytes);
    }
    let _ = wire::neighbour::frame_sender(bytes);
    let hardware = wire::HardwareAddress([2, 0, 0, 0, 0, 1]);
    for is_router in [false, true] {
        let _ = NeighborResponder { hardware, is_router }.handle_frame(bytes, |_| true);
    }
}

/// Fragments: what was cut is put together again, and whatever else comes is held within its bounds. Packets stand one
/// after another, each behind its length in two bytes.
pub fn reassembly(bytes: &[u8]) {
    const LIMIT_BYTES: usize = 100_000;
    let mut reassembler = Reassembler::new(Duration::from_secs(30), LIMIT_BYTES);
    let mut rest = bytes;
    let mut now = Instant::ZERO;
    while let Some((length, after)) = rest.split_first_chunk() {
        let (packet, after) = after.split_at(after.len().min(usize::from(u16::from_be_bytes(*length))));
        rest = after;
        now += Duration::from_secs(1);
        if let Ok(ReassemblyResult::Complete(whole)) = reassembler.handle_packet(now, packet) {
            let _ = wire::parse(&whole);
        }
        assert!(reassembler.held_bytes() <= LIMIT_BYTES);
        cut_and_joined(packet);
        if rest.is_empty() {
            break;
        }
    }
}

/// Cuts a packet that is no fragment, and puts it together again: behind the fixed part of an IPv4 header, whose checksum is
/// written anew, all is as it was.
fn cut_and_joined(packet: &[u8]) {
    let mut reassembler = Reassembler::new(Duration::from_secs(30), 1 << 20);
    let mut pieces = Vec::new();
    let cut = wire::fragments::fragment(packet, 1280, 7, |piece| pieces.push(piece.to_vec()));
    let is_whole = reassembler.handle_packet(Instant::ZERO, packet) == Ok(ReassemblyResult::NotFragment);
    if cut.is_err() || pieces.len() < 2 || !is_whole {
        return;
    }
    let joined = pieces.iter().map(|piece| reassembler.handle_packet(Instant::ZERO, piece)).last();
    let Some(Ok(ReassemblyResult::Complete(whole))) = joined else { panic!("{joined:?}") };
    assert_eq!(Some(&whole[20..]), packet.get(20..whole.len()));
}

/// Captures: what is read is written and read again as the same.
pub fn pcapng(bytes: &[u8]) {
    let blocks: Vec<Block<'_>> = PcapngReader::new(bytes).map_while(Result::ok).collect();
    let mut capture = PcapngWriter::new(Vec::new(), &SectionHeader::default()).expect("memory takes it");
    for block in &blocks {
        match *block {
            Block::Interface { name, link_type } => {
                let described = InterfaceDescription { name, description: "", link_type, snap_bytes: 0 };
                capture.write_interface(&described).map(drop)
            }
            Block::Packet { interface, at, bytes } => {
                capture.write_packet(interface, at, PacketDirection::Inbound, bytes, bytes.len() as u32)
            }
            Block::InterfaceStatistics { interface, at } => capture.write_interface_statistics(interface, at),
        }
        .expect("memory takes it");
    }
    let again = capture.into_inner();
    assert_eq!(PcapngReader::new(&again).collect::<Result<Vec<_>, _>>(), Ok(blocks));
}

/// Scenarios, and what the interoperability runner's simulator calls them.
pub fn scenario(bytes: &[u8]) {
    let text = text(bytes);
    if let Ok(loaded) = fullpipe_scenario::load(&text, "fuzz", &[]) {
        let again = fullpipe_scenario::load(&loaded.resolved, "resolved", &[]);
        let same = again.is_ok_and(|again| again.resolved == loaded.resolved && again.scenario == loaded.scenario);
        assert!(same, "{}", loaded.resolved);
    }
    let hosts = fullpipe_scenario::simulator::HostSetup::Interfaces { left: "eth0", right: "eth1" };
    if let Ok(translated) = fullpipe_scenario::simulator::translate(&text, hosts, 1) {
        let loaded = fullpipe_scenario::load(&translated, "translated", &[]);
        assert!(loaded.is_ok(), "{translated}");
    }
}

/// Connection vectors of Tmix: what is read is written and read again as the same.
pub fn tmix(bytes: &[u8]) {
    for connection in fullpipe_tmix::TraceReader::new(bytes, "fuzz").skip_malformed(true) {
        let Ok(connection) = connection else { break };
        for format in [fullpipe_tmix::TraceFormat::Original, fullpipe_tmix::TraceFormat::Alternate] {
            let mut written = Vec::new();
            if fullpipe_tmix::write_connection(&mut written, &connection, format, "fuzz").is_err() {
                continue;
            }
            let again = fullpipe_tmix::TraceReader::new(&written[..], "again").next();
            assert!(matches!(again, Some(Ok(same)) if same == connection), "{}", text(&written));
        }
    }
}

/// Traces of Mahimahi: what is read is written, one number a line, and read again as the same.
pub fn mahimahi(bytes: &[u8]) {
    let Ok(trace) = fullpipe_network::DeliveryTrace::parse(&text(bytes)) else { return };
    let written: String = trace.opportunities().iter().map(|time| format!("{time}\n")).collect();
    assert_eq!(fullpipe_network::DeliveryTrace::parse(&written), Ok(trace));
}
