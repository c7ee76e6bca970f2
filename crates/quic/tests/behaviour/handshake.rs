//! Tests of the handshake: round trips, sizes, address validation (RFC 9000 sections 7, 8 and 14; RFC 9002 section 6.2).

use super::*;

/// The time at which a condition becomes true.
fn when(pair: &mut Pair, mut done: impl FnMut(&Pair) -> bool) -> Instant {
    pair.run_until(|pair| done(pair));
    pair.now
}

fn has_initial(flight: &Flight) -> bool {
    packets(flight).iter().any(|packet| packet.packet_type == QuicPacketType::Initial)
}

fn elicits(packet: &QuicPacket) -> bool {
    packet.frames.iter().any(QuicFrame::is_ack_eliciting)
}

#[test]
fn handshake_takes_one_round_trip_for_the_client_and_one_and_a_half_for_the_server() {
    let mut pair = pair(plain(), plain());
    assert_eq!(when(&mut pair, |pair| pair.client.state() == State::Open), at(100));
    assert_eq!(when(&mut pair, |pair| pair.server.is_confirmed()), at(150));
    assert_eq!(when(&mut pair, |pair| pair.client.is_confirmed()), at(200));
    // ClientHello, in a datagram of 1200 bytes.
    let (_, first) = &pair.sent[0][0];
    assert_eq!(first.bytes, 1200);
    assert!(matches!(frames(first)[0], QuicFrame::Crypto { offset: 0, length: 230, ends: true, .. }));
    // The server's 3348 bytes of messages fill three datagrams, which is its limit.
    let flight: Vec<_> = pair.sent[1].iter().filter(|(sent, _)| *sent == at(50)).collect();
    assert_eq!(flight.len(), 3);
    let of_crypto = |frame: QuicFrame| if let QuicFrame::Crypto { length, .. } = frame { length } else { 0 };
    assert_eq!(flight.iter().flat_map(|(_, flight)| frames(flight)).map(of_crypto).sum::<u64>(), 90 + 258 + 3000);
}

#[test]
fn large_server_flight_waits_for_address_validation() {
    let mut server = plain();
    server.handshake.certificate_bytes = 6000;
    let mut pair = pair(plain(), server);
    pair.run_until(|pair| pair.now >= at(149));
    // 3 * 1200 bytes, although there is more data.
    let sent: u32 = pair.sent[1].iter().filter(|(sent, _)| *sent < at(150)).map(|(_, flight)| flight.bytes).sum();
    assert_eq!(sent, 3600);
    // The client's acknowledgements validate it: two round trips in total.
    assert_eq!(when(&mut pair, |pair| pair.client.state() == State::Open), at(200));
}

#[test]
fn server_sends_at_most_three_times_the_received_bytes_before_address_validation() {
    for seed in 0..40 {
        let mut server = plain();
        server.handshake.certificate_bytes = 8000;
        server.zero_rtt = true;
        let client = Config { zero_rtt: true, ..plain() };
        let path = PathModel { loss: 0.3, jitter: ms(20), ..PathModel::ideal(ms(50)) };
        let mut pair = Pair::with(client, server, path, "newreno", seed);
        pair.keep_sent = true;
        let stream = pair.client.open_stream(pair.now, true).unwrap();
        pair.write(stream, Payload::Length(50_000));
        pair.run_until(|pair| {
            // Handshake packets validate the address; later packets are not limited.
            let proven = pair.sent[0].iter().any(|(_, flight)| {
                packets(flight).iter().any(|packet| packet.packet_type == QuicPacketType::Handshake)
            });
            let sent: u64 = pair.sent[1].iter().map(|(_, flight)| u64::from(flight.bytes)).sum();
            assert!(proven || sent <= 3 * pair.server.statistics().received_bytes, "seed {seed}");
            pair.server.is_confirmed() && pair.client.is_confirmed()
        });
        for (_, flight) in pair.sent[0].iter().filter(|(_, flight)| has_initial(flight)) {
            assert!(flight.bytes >= 1200, "a client's Initial packets");
        }
        for (_, flight) in pair.sent[1].iter().filter(|(_, flight)| has_initial(flight)) {
            let needs =
                packets(flight).iter().any(|packet| packet.packet_type == QuicPacketType::Initial && elicits(packet));
            assert!(!needs || flight.bytes >= 1200, "a server's Initial packets that elicit acknowledgements");
        }
    }
}

#[test]
fn packet_whose_padding_exceeds_the_limit_waits() {
    // The part of the server's flight after its first 3600 bytes arrives in the second round trip, in one datagram with a 1-RTT
    // packet: STREAMS_BLOCKED, two bytes. The smallest such packet has 29 bytes: 1 + 8 of header, 4 of packet number and header
    // protection sample (RFC 9001 section 5.4.2), 16 of tag. A number of one byte, the frame and the tag have 28. If 28 bytes of
    // the datagram remain, the frame must wait.
    let mut beside = std::collections::BTreeMap::new();
    for certificate_bytes in 4150..4250 {
        let mut server = plain();
        server.handshake.certificate_bytes = certificate_bytes;
        let mut pair = pair(Config { max_streams: 1, ..plain() }, server);
        pair.run_until(|pair| pair.now >= at(60));
        while pair.server.open_stream(pair.now, true).is_some() {}
        pair.run_until(|pair| pair.now >= at(151));
        for (_, flight) in pair.sent[1].iter().filter(|(sent, _)| *sent == at(150)) {
            assert!(flight.bytes <= 1200, "{} bytes with a certificate of {certificate_bytes}", flight.bytes);
            let packets = packets(flight);
            let of_handshake: u32 = packets
                .iter()
                .filter(|packet| packet.packet_type == QuicPacketType::Handshake)
                .map(|packet| packet.bytes)
                .sum();
            if of_handshake > 0 {
                beside.insert(1200 - of_handshake, packets.len() > 1);
            }
        }
    }
    assert!((20..40).all(|rest| beside.get(&rest) == Some(&(rest >= 29))), "{beside:?}");
}

#[test]
fn client_probes_prevent_a_deadlock_at_the_amplification_limit() {
    // The server has used its credit, the client has no outstanding packets, and its acknowledgements are lost.
    let mut server = plain();
    server.handshake.certificate_bytes = 6000;
    let mut pair = pair(plain(), server);
    pair.drop[0] = (1..4).collect();
    let done = when(&mut pair, |pair| pair.client.is_confirmed());
    assert!(pair.client.statistics().probe_timeouts >= 1);
    assert!(done < at(2000), "{done}");
}

#[test]
fn server_at_the_amplification_limit_has_no_expired_deadline() {
    // The pacer: a tenth of three packets in 333 ms, so 1200 bytes take 1110 ms. The server's first datagram leaves at 50 ms. Its
    // second leaves after the time of the Initial packet in the first (the rest is padding), and the third is due 1110 ms later.
    // Before that, at 50 + 3 * 333 = 1049 ms (RFC 9002 section 6.2.2), a probe uses the rest of credit (3600 bytes) and window.
    // When the next packet of the client arrives, at 50 + 999 + 2 * 999 ms, the window blocks the server. The deadline of the
    // third datagram would be in the past, which each step of a pair rejects.
    let slow = Config {
        pacing: true,
        pace_first_flight: true,
        pacing_gain: 0.1,
        pacing_burst_packets: 1,
        initial_window_packets: 3,
        ..plain()
    };
    let mut pair = pair(plain(), slow);
    // The server's three datagrams are lost, and so is the one that the client sends in between, at 999 ms.
    pair.drop = [vec![1, 2], vec![0, 1, 2]];
    pair.run_until(|pair| pair.now >= at(1_200));
    let [(first, _), (second, _), (probe, _)] = pair.sent[1][..] else { panic!("{:?}", pair.sent[1]) };
    assert!(pair.sent[1].iter().all(|(_, flight)| flight.bytes == 1200));
    assert_eq!((first, probe), (at(50), at(1_049)));
    assert!(first < second && second + ms(1110) > probe, "{second}");
    pair.run_until(|pair| pair.server.statistics().received_bytes > 1200);
    assert_eq!(pair.now, at(3_047));
    assert_eq!(pair.server.statistics().probe_timeouts, 1, "nor is a probe due meanwhile");
    pair.run_until(|pair| pair.server.is_confirmed() && pair.client.is_confirmed());
}

#[test]
fn zero_rtt_data_arrives_with_the_first_datagram() {
    let zero_rtt = Config { zero_rtt: true, ..plain() };
    let mut pair = pair(zero_rtt.clone(), zero_rtt);
    let stream = pair.client.open_stream(pair.now, true).unwrap();
    pair.write(stream, Payload::Length(500));
    assert_eq!(when(&mut pair, |pair| pair.received[1] == 500), at(50));
    let types: Vec<_> = packets(&pair.sent[0][0].1).iter().map(|packet| packet.packet_type).collect();
    assert_eq!(types, [QuicPacketType::Initial, QuicPacketType::ZeroRtt]);
    assert_eq!(pair.sent[0][0].1.bytes, 1200);
    settle(&mut pair);
    let connected = pair.events[0].iter().filter(|event| **event == TransportEvent::Connected).count();
    assert_eq!(connected, 1, "a stream is connected once");
}

#[test]
fn data_without_zero_rtt_waits_for_the_round_trip() {
    let mut pair = pair(plain(), plain());
    let stream = pair.client.open_stream(pair.now, true).unwrap();
    pair.write(stream, Payload::Length(500));
    assert_eq!(when(&mut pair, |pair| pair.received[1] == 500), at(150));
}

#[test]
fn rejected_zero_rtt_data_is_retransmitted_and_is_not_a_congestion_signal() {
    let mut pair = pair(Config { zero_rtt: true, ..plain() }, Config { receive_buffer_bytes: 3000, ..plain() });
    let stream = pair.client.open_stream(pair.now, true).unwrap();
    pair.write(stream, Payload::Length(2500));
    assert_eq!(when(&mut pair, |pair| pair.received[1] == 2500), at(150));
    settle(&mut pair);
    let statistics = pair.client.statistics();
    assert_eq!((statistics.recoveries, statistics.lost_packets), (0, 0));
    assert_eq!((statistics.stream_bytes_sent, statistics.stream_bytes_resent), (2500, 2500));
}

#[test]
fn retry_takes_an_additional_round_trip() {
    let mut pair = pair(plain(), Config { retry: true, ..plain() });
    assert_eq!(when(&mut pair, |pair| pair.client.state() == State::Open), at(200));
    assert_eq!(packets(&pair.sent[1][0].1)[0].packet_type, QuicPacketType::Retry);
    let again = &packets(&pair.sent[0][1].1)[0];
    // RFC 9000 section 17.2.5.3: the token is sent, and packet numbers continue.
    assert_eq!((again.packet_type, again.number), (QuicPacketType::Initial, 1));
    assert_eq!(again.token, packets(&pair.sent[1][0].1)[0].token);
    assert!(again.token.is_some());
    // The address is validated, so the flight is no longer limited.
    let mut server = Config { retry: true, ..plain() };
    server.handshake.certificate_bytes = 6000;
    let mut pair = self::pair(plain(), server);
    assert_eq!(when(&mut pair, |pair| pair.client.state() == State::Open), at(200));
}

/// An Initial packet with a ClientHello, as the first packet that a server receives.
fn first_of(token: Option<u64>, bytes: u32, parameters: bool) -> (Connection, Vec<QuicFrame>) {
    let server = Config { retry: token.is_some(), ..plain() };
    let mut pair = pair(plain(), server);
    pair.service();
    let mut flight = pair.sent[0][0].1.clone();
    let packet = &mut flight.datagram.as_mut().unwrap().packets[0];
    packet.token = token;
    if !parameters && let QuicFrame::Crypto { parameters, .. } = &mut packet.frames[0] {
        *parameters = None;
    }
    let mut connection = pair.server;
    connection.handle_datagram(at(50), &flight.header, None, flight.datagram.as_ref(), bytes, EcnCodepoint::NotEct);
    let mut transmit = Transmit::default();
    let mut answers = Vec::new();
    while connection.poll_transmit(at(50), &mut transmit) {
        let datagram = transmit.beside.datagram.clone();
        answers.extend(datagram.into_iter().flat_map(|datagram| datagram.packets).flat_map(|packet| packet.frames));
    }
    (connection, answers)
}

#[test]
fn server_rejects_invalid_initial_packets() {
    let close = |error| QuicFrame::ConnectionClose { application: false, error };
    // INVALID_TOKEN for a token that it did not issue; TRANSPORT_PARAMETER_ERROR without parameters.
    assert!(first_of(Some(1), 1200, true).1.contains(&close(0xb)));
    assert!(first_of(None, 1200, false).1.contains(&close(0x8)));
    // An Initial packet in a smaller datagram is dropped.
    let (connection, answers) = first_of(None, 1199, true);
    assert!(answers.is_empty() && connection.statistics().received_packets == 0);
    assert!(!first_of(None, 1200, true).1.is_empty());
}

/// An error of the ns-3 module: it never retransmitted handshake data.
#[test]
fn handshake_completes_after_the_loss_of_any_datagram() {
    for end in 0..2 {
        for lost in 0..8 {
            let mut pair = pair(plain(), plain());
            pair.drop[end] = vec![lost];
            let done = when(&mut pair, |pair| pair.client.is_confirmed() && pair.server.is_confirmed());
            // The first time-out is 333 + 4 * 166.5 = 999 ms (RFC 9002 section 6.2.2); after a sample it is shorter.
            // If ServerHello was lost, no other packet could be read; this is detected a round trip later.
            assert!(done <= at(200 + 999 + 200), "end {end}, datagram {lost}: {done}");
        }
    }
}

/// An error of the ns-3 module: backoff was an exclusive or, not a power.
#[test]
fn timeouts_of_the_first_flight_double() {
    let mut pair = pair(plain(), plain());
    pair.path.loss = 1.0;
    pair.run_until(|pair| pair.now >= at(16_000));
    let mut times: Vec<u64> = pair.sent[0].iter().map(|(sent, _)| sent.as_nanos() / 1_000_000).collect();
    times.dedup();
    // 999 ms, then twice as long each time: 999 * (1, 3, 7, 15).
    assert_eq!(times[..5], [0, 999, 2997, 6993, 14_985]);
}

#[test]
fn frames_are_accepted_only_in_permitted_packet_types() {
    // RFC 9000 section 12.4: PROTOCOL_VIOLATION, also for a packet without frames.
    let client = || Lone::client(plain(), plain());
    let server = || Lone::server(plain(), plain());
    assert_eq!(client().error_of(Vec::new()), Some(0xa));
    assert_eq!(server().error_of(vec![QuicFrame::HandshakeDone]), Some(0xa));
    assert_eq!(server().error_of(vec![QuicFrame::NewToken(10)]), Some(0xa));
    // An empty token: FRAME_ENCODING_ERROR.
    assert_eq!(client().error_of(vec![QuicFrame::NewToken(0)]), Some(7));
    assert_eq!(client().error_of(vec![QuicFrame::NewToken(10)]), None);
    // STREAM in an Initial packet.
    let mut pair = pair(plain(), plain());
    pair.service();
    let mut flight = pair.sent[0][0].1.clone();
    flight.datagram.as_mut().unwrap().packets[0].frames.push(data(0, 0, 1, false));
    pair.server.handle_datagram(at(50), &flight.header, None, flight.datagram.as_ref(), 1200, EcnCodepoint::NotEct);
    assert_eq!(pair.server.state(), State::Closing);
}
