//! Fragmentation and reassembly: the examples of RFC 791, fragments built individually, and round trips.

use crate::build::{self, Recipe, Upper};
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::fragments::fragment;
use fullpipe_wire::{
    FragmentationError, PacketError, PacketSummary, ParsedContent, Reassembler, ReassemblyResult, parse,
};
use proptest::prelude::*;

const TIMEOUT: Duration = Duration::from_secs(30);

fn reassembler() -> Reassembler {
    Reassembler::new(TIMEOUT, 1_000_000)
}

fn pieces(packet: &[u8], mtu_bytes: u32) -> Result<Vec<Vec<u8>>, FragmentationError> {
    let mut pieces = Vec::new();
    let result = fragment(packet, mtu_bytes, 0x0708_090a, |piece| pieces.push(piece.to_vec()));
    assert!(result.is_ok() || pieces.is_empty());
    result.map(|()| pieces)
}

fn recipe(v6: bool, extras: &[u8], payload_bytes: usize) -> Recipe {
    let payload = (0..payload_bytes).map(|number| number as u8).collect();
    Recipe {
        v6,
        source: [1; 16],
        destination: [2; 16],
        traffic_class: 0,
        hop_limit: 123,
        identification: 111,
        dont_fragment: false,
        extras: extras.to_vec(),
        upper: Upper::Other { protocol: 132, payload },
        part: None,
    }
}

/// RFC 791 appendix A, example 2: 452 bytes of data, identification 111, and a network with an MTU of 280 bytes. The
/// first fragment has a total length of 276 and the MF flag, the second a total length of 216 and the offset 32.
#[test]
fn fragments_match_the_example_of_rfc_791() {
    let packet = recipe(false, &[], 452).bytes();
    assert_eq!(packet[..8], [0x45, 0, 0x01, 0xd8, 0, 111, 0, 0]);
    let pieces = pieces(&packet, 280).unwrap();
    assert_eq!(pieces.len(), 2);
    assert_eq!(pieces[0][..8], [0x45, 0, 0x01, 0x14, 0, 111, 0x20, 0]);
    assert_eq!(pieces[1][..8], [0x45, 0, 0, 216, 0, 111, 0, 32]);
    // 4500 + 00d8 + 006f + 0020 + 7b84 + 0101 + 0101 + 0202 + 0202 = c7f1, complement 380e.
    assert_eq!(pieces[1][8..12], [123, 132, 0x38, 0x0e]);
    assert_eq!(pieces[0][20..], packet[20..276]);
    assert_eq!(pieces[1][20..], packet[276..]);
}

/// RFC 791 section 3.1: record route (7) and internet timestamp (68) are not copied; loose source route (131) and
/// stream identifier (136) are. The header of the later fragments shrinks to whole words.
#[test]
fn options_are_copied_if_the_copied_flag_is_set() {
    let options = [7, 7, 4, 0, 0, 0, 0, 131, 7, 8, 3, 3, 3, 3, 1, 68, 4, 5, 0, 136, 4, 9, 9, 0];
    let packet = recipe(false, &options, 100).bytes();
    // 44 bytes of header leave 56 of 100; 32 bytes of header leave 68 for the remaining 44.
    let pieces = pieces(&packet, 100).unwrap();
    assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [100, 76]);
    assert_eq!((pieces[0][0], &pieces[0][20..44]), (0x4b, &options[..]));
    assert_eq!(pieces[1][0], 0x48);
    assert_eq!(pieces[1][20..32], [131, 7, 8, 3, 3, 3, 3, 136, 4, 9, 9, 0]);
    // An option that extends beyond the header or has length zero ends the list.
    for wrong in [[131, 4, 0, 0, 131, 9, 0, 0], [131, 4, 0, 0, 131, 0, 0, 0]] {
        let pieces = self::pieces(&recipe(false, &wrong, 100).bytes(), 84).unwrap();
        assert_eq!((pieces[1][0], &pieces[1][20..24]), (0x46, &[131, 4, 0, 0][..]));
    }
}

/// RFC 8200 section 4.5: hop-by-hop, destination and routing headers are repeated; the second destination options are
/// not.
#[test]
fn extension_headers_are_repeated_up_to_the_routing_header() {
    let header = |next: u8, value: u8| [next, 0, 1, 4, value, 0, 0, 0];
    // Routing header without segments left.
    let routing = [60, 0, 4, 0, 0, 0, 0, 0];
    let headers = [header(60, 0), header(43, 0), routing, header(17, 0)].concat();
    let mut packet = vec![0x60, 0, 0, 0, 0, 72, 0, 64];
    packet.resize(40, 1);
    packet.extend(&headers);
    packet.extend([0, 1, 0, 2, 0, 40, 0, 0]);
    packet.extend([9; 32]);
    // 64 + 8 bytes of headers leave 32 of 104: destination options, the UDP header, 16 bytes. 16 bytes remain.
    let pieces = pieces(&packet, 104).unwrap();
    assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [104, 88]);
    for (piece, length, flags) in [(&pieces[0], 64, 1), (&pieces[1], 48, 32)] {
        assert_eq!(piece[..8], [0x60, 0, 0, 0, 0, length, 0, 64]);
        assert_eq!(piece[40..56], headers[..16]);
        assert_eq!(piece[56..64], [44, 0, 4, 0, 0, 0, 0, 0]);
        assert_eq!(piece[64..72], [60, 0, 0, flags, 7, 8, 9, 10]);
    }
    assert_eq!([&pieces[0][72..], &pieces[1][72..]].concat(), packet[64..]);
    // All headers must be in the first fragment (RFC 8200 section 4.5): 16 bytes; an MTU of 88 is too small by one
    // byte.
    assert_eq!(self::pieces(&packet, 88).unwrap().len(), 3);
    assert_eq!(self::pieces(&packet, 87), Err(FragmentationError::MtuTooSmall));
}

#[test]
fn packets_that_fit_or_cannot_be_fragmented_are_not_cut() {
    let whole = recipe(false, &[], 100);
    assert_eq!(pieces(&whole.bytes(), 120), Ok(vec![whole.bytes()]));
    assert_eq!(pieces(&[&whole.bytes()[..], &[0; 6]].concat(), 120), Ok(vec![whole.bytes()]));
    let forbidden = Recipe { dont_fragment: true, ..whole.clone() }.bytes();
    assert_eq!(pieces(&forbidden, 120), Ok(vec![forbidden.clone()]));
    assert_eq!(pieces(&forbidden, 119), Err(FragmentationError::DontFragment));
    assert_eq!(pieces(&whole.bytes(), 28).map(|pieces| pieces.len()), Ok(13));
    for mtu_bytes in [0, 19, 27] {
        assert_eq!(pieces(&whole.bytes(), mtu_bytes), Err(FragmentationError::MtuTooSmall));
    }
    let fragment = Recipe { part: Some((0, 64)), ..recipe(true, &[], 100) }.bytes();
    assert_eq!(pieces(&fragment, 100), Err(FragmentationError::AlreadyFragmented));
    assert_eq!(pieces(&fragment[..50], 100), Err(FragmentationError::Malformed(PacketError::Truncated)));
}

fn take(reassembler: &mut Reassembler, seconds: u64, packet: &[u8]) -> ReassemblyResult {
    reassembler.handle_packet(Instant::ZERO + Duration::from_secs(seconds), packet).unwrap()
}

fn part(recipe: &Recipe, from: usize, length: usize) -> Vec<u8> {
    Recipe { part: Some((from, length)), ..recipe.clone() }.bytes()
}

/// RFC 8200 section 4.5: copies are ignored. Any other overlap discards the packet, including later fragments.
#[test]
fn copies_are_ignored_and_overlaps_discard_the_packet() {
    for v6 in [false, true] {
        let whole = recipe(v6, &[], 64);
        let other = Recipe { upper: Upper::Other { protocol: 132, payload: vec![7; 64] }, ..whole.clone() };
        let shorter = recipe(v6, &[], 48);
        let [first, second, last] = [part(&whole, 0, 16), part(&whole, 16, 32), part(&whole, 48, 16)];
        let mut good = reassembler();
        assert_eq!(take(&mut good, 0, &whole.bytes()), ReassemblyResult::NotFragment);
        for piece in [&last, &first, &last, &first] {
            assert_eq!(take(&mut good, 0, piece), ReassemblyResult::Incomplete);
        }
        assert_eq!(take(&mut good, 0, &second), ReassemblyResult::Complete(whole.bytes()));
        assert_eq!((good.held_bytes(), good.next_timeout()), (0, None));
        // Different bytes; a longer fragment; one within another; another last fragment; one after the last; the last
        // without its flag.
        let contradictions = [
            (&first, part(&other, 0, 16)),
            (&first, part(&whole, 0, 24)),
            (&second, part(&whole, 24, 8)),
            (&second, part(&whole, 40, 24)),
            (&last, part(&shorter, 16, 32)),
            (&part(&shorter, 16, 32), second.clone()),
            (&part(&shorter, 16, 32), last.clone()),
            (&last, part(&recipe(v6, &[], 80), 64, 8)),
            (&last, part(&recipe(v6, &[], 80), 48, 16)),
        ];
        for (number, (before, after)) in contradictions.iter().enumerate() {
            let mut bad = reassembler();
            assert_eq!(take(&mut bad, 0, before), ReassemblyResult::Incomplete, "{number}");
            assert_eq!(take(&mut bad, 1, after), ReassemblyResult::Discarded, "{number}");
            for piece in [&first, &second, &last] {
                assert_eq!(take(&mut bad, 2, piece), ReassemblyResult::Discarded, "{number}");
            }
            assert_eq!(bad.expire(Instant::ZERO + TIMEOUT), Vec::<Vec<u8>>::new());
            assert_eq!(bad.held_bytes(), 0);
        }
    }
}

/// RFC 791 section 3.2: addresses, identification and protocol. RFC 8200 section 4.5 does not include the protocol.
#[test]
fn fragments_are_matched_by_addresses_identification_and_protocol() {
    let whole = recipe(false, &[], 64);
    let others = [
        Recipe { source: [3; 16], ..whole.clone() },
        Recipe { destination: [3; 16], ..whole.clone() },
        Recipe { identification: 112, ..whole.clone() },
        Recipe { upper: Upper::Other { protocol: 133, payload: vec![0; 64] }, ..whole.clone() },
    ];
    let mut reassembler = reassembler();
    take(&mut reassembler, 0, &part(&whole, 0, 48));
    for other in others {
        assert_eq!(take(&mut reassembler, 0, &part(&other, 48, 16)), ReassemblyResult::Incomplete);
    }
    assert_eq!(take(&mut reassembler, 0, &part(&whole, 48, 16)), ReassemblyResult::Complete(whole.bytes()));
}

#[test]
fn incomplete_packets_are_limited_in_time_and_memory() {
    let whole = recipe(false, &[], 64);
    let other = Recipe { identification: 112, ..whole.clone() };
    let (first, last) = (part(&whole, 0, 48), part(&whole, 48, 16));
    let mut reassembler = reassembler();
    take(&mut reassembler, 1, &first);
    take(&mut reassembler, 2, &part(&other, 48, 16));
    assert_eq!(reassembler.next_timeout(), Some(Instant::ZERO + Duration::from_secs(31)));
    let at = |milliseconds| Instant::ZERO + Duration::from_millis(milliseconds);
    assert_eq!(reassembler.expire(at(30_999)), Vec::<Vec<u8>>::new());
    assert_eq!(reassembler.expire(at(31_000)), vec![first.clone()]);
    // The first fragment of the other packet never arrived.
    assert_eq!(reassembler.expire(at(32_000)), Vec::<Vec<u8>>::new());
    assert_eq!((reassembler.held_bytes(), reassembler.next_timeout()), (0, None));
    // After the timeout, the fragment begins a new packet.
    assert_eq!(take(&mut reassembler, 33, &last), ReassemblyResult::Incomplete);
    // Memory for 68 + 64 bytes and 64 for the packet, with four to spare: the second packet displaces the first.
    let mut small = Reassembler::new(TIMEOUT, 200);
    take(&mut small, 0, &first);
    assert_eq!(small.held_bytes(), 196);
    take(&mut small, 1, &part(&other, 0, 48));
    assert_eq!(small.held_bytes(), 196);
    assert_eq!(take(&mut small, 1, &part(&other, 48, 16)), ReassemblyResult::Complete(other.bytes()));
    assert_eq!(small.held_bytes(), 0);
    // Nothing fits at all.
    let mut none = Reassembler::new(TIMEOUT, 0);
    assert_eq!(take(&mut none, 0, &first), ReassemblyResult::Incomplete);
    assert_eq!(none.held_bytes(), 0);
}

/// RFC 3168 section 5.3.
#[test]
fn ce_mark_of_one_fragment_marks_or_discards_the_packet() {
    let assembled = |v6: bool, classes: [u8; 2]| {
        let whole = |class| Recipe { traffic_class: class, ..recipe(v6, &[], 64) };
        let mut reassembler = reassembler();
        take(&mut reassembler, 0, &part(&whole(classes[0]), 0, 48));
        match take(&mut reassembler, 0, &part(&whole(classes[1]), 48, 16)) {
            ReassemblyResult::Complete(bytes) => {
                let class = PacketSummary::parse(&bytes).unwrap().codepoint.bits();
                assert_eq!(bytes, whole(classes[0] & !3 | class).bytes());
                Some(class)
            }
            ReassemblyResult::Discarded => None,
            other => panic!("{other:?}"),
        }
    };
    for v6 in [false, true] {
        assert_eq!(assembled(v6, [0x2e, 0x2e]), Some(2));
        assert_eq!(assembled(v6, [0x2e, 0x2f]), Some(3));
        assert_eq!(assembled(v6, [0x2f, 0x2d]), Some(3));
        assert_eq!(assembled(v6, [0x2f, 0x2c]), None);
        assert_eq!(assembled(v6, [0x2c, 0x2f]), None);
    }
}

/// Fragments of at most 65 535 bytes each whose total length is larger (RFC 791: total length).
#[test]
fn packet_above_the_maximum_length_is_discarded() {
    let options = [1; 40];
    let mut first = recipe(false, &options, 16).bytes();
    first[6] = 0x20;
    let mut last = recipe(false, &[], 65_515 - 16).bytes();
    last[7] = 2;
    let mut reassembler = reassembler();
    assert_eq!(take(&mut reassembler, 0, &first), ReassemblyResult::Incomplete);
    assert_eq!(take(&mut reassembler, 0, &last), ReassemblyResult::Discarded);
    assert_eq!(reassembler.held_bytes(), 0);
}

fn order(pieces: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..pieces).collect::<Vec<_>>()).prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A packet that is fragmented twice, shuffled and reassembled is unchanged, and `parse` returns the expected
    /// fragments.
    #[test]
    fn fragmented_and_reassembled_packet_is_unchanged(recipe in build::long(), mtu in 100..300_u32, smaller in 28..200_u32, order in order(64)) {
        let recipe = Recipe { dont_fragment: false, ..recipe };
        let packet = recipe.bytes();
        let Ok(once) = pieces(&packet, mtu) else { return Ok(()) };
        let mut all = Vec::new();
        for piece in once {
            prop_assert!(piece.len() <= mtu as usize);
            match pieces(&piece, smaller) {
                Ok(pieces) => all.extend(pieces),
                Err(FragmentationError::MtuTooSmall | FragmentationError::AlreadyFragmented | FragmentationError::Malformed(_)) => all.push(piece),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
        prop_assume!(all.len() > 1);
        let mut payload = Vec::new();
        for piece in &all {
            // For IPv6, `parse` also checks for extension headers in later fragments.
            if recipe.v6 && !recipe.extras.is_empty() {
                continue;
            }
            let parsed = parse(piece).unwrap();
            let ParsedContent::Fragment { offset_bytes, last, .. } = parsed.content else { panic!("{parsed:?}") };
            prop_assert_eq!(offset_bytes as usize, payload.len());
            payload.extend_from_slice(parsed.payload);
            prop_assert_eq!(last, payload.len() == recipe.upper_bytes().len());
        }
        prop_assert!(payload.is_empty() || payload == recipe.upper_bytes());
        let mut reassembler = reassembler();
        let mut left = all.len();
        for number in order.into_iter().chain(64..all.len()).filter(|number| *number < all.len()) {
            left -= 1;
            match reassembler.handle_packet(Instant::ZERO, &all[number]) {
                Ok(ReassemblyResult::Incomplete) => prop_assert!(left > 0),
                Ok(ReassemblyResult::Complete(whole)) => prop_assert!(left == 0 && whole == packet),
                // The first fragment does not contain the whole transport header, so no later hop would accept it.
                Err(PacketError::InvalidTransport) => return Ok(()),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }

    /// Without options or extension headers, the fragments equal those of the builder.
    #[test]
    fn fragments_equal_those_of_the_builder(recipe in build::long(), mtu in 112..160_u32) {
        let recipe = Recipe { dont_fragment: false, extras: Vec::new(), ..recipe };
        let header = if recipe.v6 { 48 } else { 20 };
        let (room, total) = (mtu as usize - header, recipe.upper_bytes().len());
        prop_assume!(recipe.bytes().len() > mtu as usize);
        let mut expected = Vec::new();
        let mut from = 0;
        while from < total {
            let length = if total - from <= room { total - from } else { room / 8 * 8 };
            expected.push(part(&recipe, from, length));
            from += length;
        }
        let mut got = pieces(&recipe.bytes(), mtu).unwrap();
        if recipe.v6 {
            // The builder's identification has 16 bits.
            for piece in &mut got {
                let [high, low] = recipe.identification.to_be_bytes();
                piece[44..48].copy_from_slice(&[0, 0, high, low]);
            }
        }
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn damaged_packets_are_fragmented_or_rejected(
        recipe in build::whole(),
        damage in build::damage(),
        cut_at in prop::option::of(any::<prop::sample::Index>()),
        mtu in 0..200_u32,
    ) {
        let bytes = build::damaged(recipe.bytes(), &damage, cut_at);
        if let Ok(pieces) = pieces(&bytes, mtu) {
            prop_assert!(pieces.iter().all(|piece| piece.len() <= mtu as usize));
        }
    }

    /// Many damaged fragments of few packets: memory stays within the limit and is finally released.
    #[test]
    fn damaged_fragments_stay_within_the_memory_limit(
        recipe in build::long(),
        mtu in 112..160_u32,
        damages in prop::collection::vec((build::damage(), prop::option::of(any::<prop::sample::Index>()), 0..10_usize), 1..30),
    ) {
        let Ok(pieces) = pieces(&Recipe { dont_fragment: false, ..recipe }.bytes(), mtu) else { return Ok(()) };
        let mut reassembler = Reassembler::new(TIMEOUT, 500);
        for (damage, cut_at, number) in damages {
            let bytes = build::damaged(pieces[number % pieces.len()].clone(), &damage, cut_at);
            if let Ok(ReassemblyResult::Complete(whole)) = reassembler.handle_packet(Instant::ZERO, &bytes) {
                prop_assert!(whole.len() > 20);
            }
            prop_assert!(reassembler.held_bytes() <= 500);
        }
        reassembler.expire(Instant::ZERO + TIMEOUT);
        prop_assert_eq!((reassembler.held_bytes(), reassembler.next_timeout()), (0, None));
    }
}
