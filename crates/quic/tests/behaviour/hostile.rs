//! Property tests with arbitrary packets from a peer: the worst effect is that the connection is closed.

use super::*;
use fullpipe_wire::quic::EcnCounts;
use fullpipe_wire::{SackBlock, SegmentOptions};
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..20, 0u64..20_000, Just((1 << 62) - 1), Just(1u64 << 32), any::<u64>()]
}

fn frame() -> impl Strategy<Value = QuicFrame> {
    let ranges = prop::collection::vec((number(), number()), 0..5);
    let ecn = prop::option::of((number(), number(), number()));
    prop_oneof![
        (0u32..2000).prop_map(QuicFrame::Padding),
        Just(QuicFrame::Ping),
        (number(), ranges, ecn).prop_map(|(delay, ranges, ecn)| QuicFrame::Ack {
            delay,
            ranges,
            ecn: ecn.map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce }),
        }),
        // Frames that may be valid.
        (0u64..40, 0u64..10, 0u64..10).prop_map(|(last, length, delay)| QuicFrame::Ack {
            delay,
            ranges: vec![(last.saturating_sub(length), last)],
            ecn: None,
        }),
        (number(), number(), number()).prop_map(|(stream, error, final_size)| QuicFrame::ResetStream {
            stream,
            error,
            final_size
        }),
        (number(), number()).prop_map(|(stream, error)| QuicFrame::StopSending { stream, error }),
        (number(), number(), any::<bool>()).prop_map(|(offset, length, ends)| QuicFrame::Crypto {
            offset,
            length,
            ends,
            parameters: None
        }),
        number().prop_map(QuicFrame::NewToken),
        (number(), number(), number(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(stream, offset, length, fin, explicit_length, bytes)| QuicFrame::Stream {
                stream,
                offset,
                length,
                fin,
                explicit_length,
                content: bytes.then(|| bytes::Bytes::from(vec![1; length.min(3000) as usize])),
            }
        ),
        number().prop_map(QuicFrame::MaxData),
        (number(), number()).prop_map(|(stream, maximum)| QuicFrame::MaxStreamData { stream, maximum }),
        (any::<bool>(), number()).prop_map(|(bidirectional, maximum)| QuicFrame::MaxStreams { bidirectional, maximum }),
        number().prop_map(QuicFrame::DataBlocked),
        (number(), number()).prop_map(|(stream, limit)| QuicFrame::StreamDataBlocked { stream, limit }),
        (any::<bool>(), number()).prop_map(|(bidirectional, limit)| QuicFrame::StreamsBlocked { bidirectional, limit }),
        (number(), number(), any::<u8>()).prop_map(|(sequence, retire_prior_to, length)| {
            QuicFrame::NewConnectionId { sequence, retire_prior_to, length }
        }),
        number().prop_map(QuicFrame::RetireConnectionId),
        number().prop_map(QuicFrame::PathChallenge),
        number().prop_map(QuicFrame::PathResponse),
        Just(QuicFrame::HandshakeDone),
        (number(), any::<bool>()).prop_map(|(length, explicit_length)| QuicFrame::Datagram { length, explicit_length }),
        (number(), number(), number(), number()).prop_map(|(sequence, threshold, max_ack_delay_us, reordering)| {
            QuicFrame::AckFrequency { sequence, threshold, max_ack_delay_us, reordering }
        }),
        Just(QuicFrame::ImmediateAck),
    ]
}

fn packet() -> impl Strategy<Value = QuicPacket> {
    let types = prop_oneof![
        1 => Just(QuicPacketType::VersionNegotiation),
        1 => Just(QuicPacketType::Initial),
        1 => Just(QuicPacketType::ZeroRtt),
        1 => Just(QuicPacketType::Handshake),
        1 => Just(QuicPacketType::Retry),
        10 => Just(QuicPacketType::OneRtt)
    ];
    let frames = prop::collection::vec(frame(), 0..4);
    (types, prop_oneof![0u32..100, any::<u32>()], any::<u8>(), number(), prop::option::of(any::<u64>()), frames)
        .prop_map(|(packet_type, number, number_bytes, connection_id, token, frames)| QuicPacket {
            packet_type,
            number,
            number_bytes,
            connection_id,
            token,
            bytes: 1200,
            frames,
        })
}

fn header() -> impl Strategy<Value = (QuicHeader, SegmentOptions)> {
    let forms = prop_oneof![3 => Just(QuicForm::Packets), 1 => Just(QuicForm::Stream), 1 => Just(QuicForm::Ack)];
    let small = || prop_oneof![0u32..40, any::<u32>()];
    let fields = (small(), small(), small(), small(), any::<u16>(), any::<bool>());
    let others = (forms, any::<u8>(), 0u8..6, 0u8..3);
    let blocks = prop::array::uniform3((small(), small()));
    (fields, others, blocks).prop_map(|((low, number, stream, first_range, length, fin), others, blocks)| {
        let (form, number_bytes, ranges, path) = others;
        let header = QuicHeader {
            place: [low, u32::from(low > 1 << 31)],
            number,
            stream,
            first_range,
            length,
            form,
            number_bytes,
            ranges,
            fin,
            connection_id: 0,
            path,
        };
        let mut options = SegmentOptions::default();
        for (place, (start, end)) in options.sacks.iter_mut().zip(blocks) {
            *place = SackBlock { start, end };
        }
        (header, options)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn endpoint_with_any_input_does_not_panic(
        server in any::<bool>(),
        early in any::<bool>(),
        ecn in any::<bool>(),
        given in prop::collection::vec((header(), prop::collection::vec(packet(), 0..3), 0u32..2000, 0u64..100), 1..30),
    ) {
        let config = Config { ecn, zero_rtt: early, ..Config::default() };
        let mut pair = pair(config.clone(), config);
        if !early {
            pair.run_until(|pair| pair.client.is_confirmed() && pair.server.is_confirmed());
        }
        let now = pair.now;
        for end in 0..2 {
            if let Some(stream) = pair.end(end).open_stream(now, true) {
                pair.end(end).stream(now, stream).unwrap().write(Payload::Length(30_000));
            }
        }
        pair.service();
        let mut lone = Lone::of(pair, usize::from(server));
        for ((header, options), packets, bytes, wait) in given {
            let datagram = QuicDatagram { packets };
            lone.connection.handle_datagram(lone.now, &header, Some(&options), Some(&datagram), bytes, EcnCodepoint::Ce);
            lone.drain();
            while let Some(_length) = lone.connection.receive_datagram() {}
            prop_assert_eq!(lone.connection.inspect().in_flight_bytes, lone.connection.count_in_flight_bytes());
            lone.pass(ms(wait));
        }
        // It ends when no more packets arrive.
        lone.pass(Duration::from_secs(100_000));
        prop_assert!(lone.connection.is_closed());
    }
}
