//! Tests of the properties that all modes share, and the channel for these tests.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

pub(super) const MILLISECOND: Duration = Duration::from_millis(1);

pub(super) fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

pub(super) fn sdu(bytes: u32, token: u64) -> Sdu {
    Sdu { bytes, token, arrived: Instant::ZERO }
}

pub(super) fn unlimited(mode: RlcMode) -> RlcConfig {
    RlcConfig { max_buffer_bytes: None, ..RlcConfig::for_mode(mode) }
}

/// A bearer with downlink SDUs of these sizes, numbered from 0.
pub(super) fn loaded(mode: RlcMode, sizes: &[u32]) -> Bearer {
    let mut bearer = Bearer::new(mode, unlimited(mode));
    for (token, &bytes) in sizes.iter().enumerate() {
        assert!(bearer.offer(LinkDirection::Downlink, sdu(bytes, token as u64)));
    }
    bearer
}

/// Tokens of outcomes; a lost SDU is -1 - token.
pub(super) fn told(out: &mut Vec<SduOutcome>) -> Vec<i64> {
    out.drain(..).map(|o| if o.delivered { o.sdu.token as i64 } else { -1 - o.sdu.token as i64 }).collect()
}

pub(super) fn account_is_closed(bearer: &Bearer) {
    for way in LinkDirection::BOTH {
        let c = bearer.counters(way);
        let told = c.sdus_dropped + c.sdus_discarded + c.sdus_lost + c.sdus_delivered;
        assert_eq!(c.sdus_offered, told + bearer.pending_sdus(way).count() as u64, "{c:?}");
    }
}

#[test]
fn pdu_is_small_and_copyable() {
    fn is_copy<T: Copy>() {}
    is_copy::<Pdu>();
    assert!(size_of::<Pdu>() <= 40);
}

/// The sizes of PDUs for these opportunities, as (bytes on the air, bytes of SDUs).
fn pdus(mode: RlcMode, sizes: &[u32], opportunities: &[u32]) -> Vec<(u32, u32)> {
    let mut bearer = loaded(mode, sizes);
    opportunities
        .iter()
        .map(|&bytes| {
            bearer
                .on_transmit_opportunity(LinkDirection::Downlink, Instant::ZERO, bytes)
                .map_or((0, 0), |p| (p.bytes, p.payload_bytes))
        })
        .collect()
}

#[test]
fn segments_and_indicators_have_the_sizes_of_the_specification() {
    use RlcMode::Unacknowledged as Um;
    // 10 bytes: header 2, so 8 of the SDU.
    assert_eq!(pdus(Um, &[26], &[10, 10, 10, 4]), [(10, 8), (10, 8), (10, 8), (4, 2)]);
    // 2 + 10, then 2 for the indicator and 6 of the next.
    assert_eq!(pdus(Um, &[10, 9, 7], &[20]), [(20, 16)]);
    // Indicators of 2, 1, 2 bytes: 2 + 5 + 10 + 10 + 10 + 10.
    assert_eq!(pdus(Um, &[10, 10, 10, 10], &[1000]), [(47, 40)]);
    // Two bytes or fewer left after an SDU: no other is started. Three: one byte of it.
    assert_eq!(pdus(Um, &[10, 9], &[14, 100]), [(12, 10), (11, 9)]);
    assert_eq!(pdus(Um, &[10, 9], &[15, 100]), [(15, 11), (10, 8)]);
    // The third SDU's indicator is one byte: with three left, two bytes of it fit.
    assert_eq!(pdus(Um, &[10, 10, 9], &[27, 100]), [(27, 22), (9, 7)]);
    // Nothing fits into the header alone.
    assert_eq!(pdus(Um, &[10], &[0, 2, 3]), [(0, 0), (0, 0), (3, 1)]);
    // 2047 bytes have an indicator, 2048 have none: nothing can follow.
    assert_eq!(pdus(Um, &[2047, 100], &[9000]), [(2 + 2047 + 2 + 100, 2147)]);
    assert_eq!(pdus(Um, &[2048, 100], &[9000, 9000]), [(2 + 2048, 2048), (102, 100)]);
    assert_eq!(pdus(Um, &[100, 2048, 100], &[9000, 9000]), [(2 + 100 + 2 + 2048, 2148), (102, 100)]);
}

#[test]
fn buffer_report_counts_two_bytes_for_each_sdu_or_rest() {
    let mut bearer = Bearer::new(RlcMode::Unacknowledged, unlimited(RlcMode::Unacknowledged));
    let empty =
        BufferStatus { new_data_bytes: 0, retransmission_bytes: 0, status_bytes: 0, head_of_line: Instant::NEVER };
    assert_eq!(bearer.buffer_status(LinkDirection::Uplink), empty);
    for k in 0..3 {
        bearer.offer(LinkDirection::Uplink, Sdu { bytes: 100, token: k, arrived: at(k) });
    }
    assert_eq!(
        bearer.buffer_status(LinkDirection::Uplink),
        BufferStatus { new_data_bytes: 306, head_of_line: at(0), ..empty }
    );
    assert_eq!(bearer.buffer_status(LinkDirection::Downlink), empty);
    // 2 + 100 + 2 + 46.
    bearer.on_transmit_opportunity(LinkDirection::Uplink, at(3), 150).unwrap();
    assert_eq!(bearer.waiting_bytes(LinkDirection::Uplink), 154);
    assert_eq!(
        bearer.buffer_status(LinkDirection::Uplink),
        BufferStatus { new_data_bytes: 158, head_of_line: at(1), ..empty }
    );
}

#[test]
fn buffer_accepts_sdus_that_fit_completely() {
    let mut bearer = Bearer::new(RlcMode::Unacknowledged, RlcConfig::for_mode(RlcMode::Unacknowledged));
    let taken = (0..9).filter(|&k| bearer.offer(LinkDirection::Downlink, sdu(1430, k))).count();
    // 7 x 1430 = 10010 of 10240.
    assert_eq!(taken, 7);
    assert!(bearer.offer(LinkDirection::Downlink, sdu(230, 9)));
    assert!(!bearer.offer(LinkDirection::Downlink, sdu(1, 10)));
    let counters = bearer.counters(LinkDirection::Downlink);
    assert_eq!((counters.sdus_offered, counters.sdus_dropped), (11, 3));
    account_is_closed(&bearer);
}

#[test]
fn buffer_in_packets_counts_a_partly_sent_one() {
    for mode in [RlcMode::Unacknowledged, RlcMode::Acknowledged] {
        let mut bearer = Bearer::new(mode, RlcConfig { max_buffer_sdus: Some(3), ..unlimited(mode) });
        let taken: Vec<bool> =
            (0..4).map(|k| bearer.offer(LinkDirection::Uplink, sdu(100 + 10 * k, k.into()))).collect();
        assert_eq!(taken, [true, true, true, false]);
        // The opposite direction has its own buffer.
        assert!(bearer.offer(LinkDirection::Downlink, sdu(5000, 9)));
        // At most 50 bytes of the first SDU are sent, so it still counts.
        bearer.on_transmit_opportunity(LinkDirection::Uplink, at(0), 50).unwrap();
        assert!(!bearer.offer(LinkDirection::Uplink, sdu(1, 5)));
        // After the rest is sent, there is room for one.
        bearer.on_transmit_opportunity(LinkDirection::Uplink, at(1), 100).unwrap();
        assert!(bearer.offer(LinkDirection::Uplink, sdu(1, 6)));
        assert!(!bearer.offer(LinkDirection::Uplink, sdu(1, 7)));
        assert_eq!(bearer.counters(LinkDirection::Uplink).sdus_dropped, 3);
        account_is_closed(&bearer);
    }
}

#[test]
fn report_is_repeated_while_data_wait() {
    let mut bearer = loaded(RlcMode::Unacknowledged, &[100, 100]);
    let mut out = vec![];
    assert_eq!(bearer.next_timer(), Instant::NEVER);
    bearer.on_transmit_opportunity(LinkDirection::Downlink, at(1), 50).unwrap();
    assert_eq!(bearer.next_timer(), at(11));
    bearer.on_transmit_opportunity(LinkDirection::Downlink, at(4), 50).unwrap();
    assert_eq!(bearer.next_timer(), at(14));
    assert_eq!(bearer.expire(at(13), &mut out), DueReports::default());
    assert_eq!(bearer.expire(at(14), &mut out), DueReports { report: [true, false] });
    assert_eq!(bearer.next_timer(), at(24));
    // An arrival causes a report itself.
    bearer.offer(LinkDirection::Downlink, sdu(10, 2));
    assert_eq!(bearer.next_timer(), Instant::NEVER);
    bearer.on_transmit_opportunity(LinkDirection::Downlink, at(15), 1000).unwrap();
    assert_eq!(bearer.next_timer(), Instant::NEVER);
    assert!(out.is_empty());
}

#[test]
fn sdu_that_is_not_started_in_time_is_discarded_if_configured() {
    let limits = RlcConfig { discard_after: Some(Duration::from_millis(50)), ..unlimited(RlcMode::Unacknowledged) };
    let mut bearer = Bearer::new(RlcMode::Unacknowledged, limits);
    for k in 0..3 {
        bearer.offer(LinkDirection::Downlink, Sdu { bytes: 100, token: k, arrived: at(k) });
    }
    let mut out = vec![];
    let first = bearer.on_transmit_opportunity(LinkDirection::Downlink, at(2), 60).unwrap();
    // SDU 0 is partly sent and stays; 1 is discarded at 51 ms, 2 at 52 ms.
    assert_eq!(bearer.next_timer(), at(12));
    assert_eq!(bearer.expire(at(50), &mut out), DueReports { report: [true, false] });
    assert!(out.is_empty());
    assert_eq!(bearer.next_timer(), at(51));
    assert_eq!(bearer.expire(at(51), &mut out), DueReports { report: [true, false] });
    assert_eq!(told(&mut out), [-2]);
    assert_eq!(bearer.waiting_bytes(LinkDirection::Downlink), 142);
    let second = bearer.on_transmit_opportunity(LinkDirection::Downlink, at(51), 1000).unwrap();
    let _ = bearer.receive(LinkDirection::Downlink, at(54), first, &mut out);
    let _ = bearer.receive(LinkDirection::Downlink, at(54), second, &mut out);
    assert_eq!(told(&mut out), [0, 2]);
    assert_eq!(bearer.counters(LinkDirection::Downlink).sdus_discarded, 1);
    assert_eq!(bearer.next_timer(), Instant::NEVER);
    account_is_closed(&bearer);
}

#[test]
fn saturated_source_always_has_data() {
    let mut bearer = Bearer::new(RlcMode::Saturated, RlcConfig::for_mode(RlcMode::Saturated));
    assert!(!bearer.offer(LinkDirection::Downlink, sdu(100, 0)));
    assert_eq!(bearer.buffer_status(LinkDirection::Downlink).new_data_bytes, 80_000);
    let pdu = bearer.on_transmit_opportunity(LinkDirection::Downlink, at(0), 9422).unwrap();
    assert_eq!(pdu.bytes, 9422);
    let mut out = vec![];
    let _ = bearer.receive(LinkDirection::Downlink, at(3), pdu, &mut out);
    assert_eq!(bearer.counters(LinkDirection::Downlink).pdu_bytes_received, 9422);
    assert_eq!(bearer.buffer_status(LinkDirection::Downlink).new_data_bytes, 80_000);
    assert_eq!(bearer.next_timer(), Instant::NEVER);
    assert!(out.is_empty());
}

#[test]
fn transparent_sdu_is_sent_whole_and_delivered_on_arrival() {
    let mut bearer = loaded(RlcMode::Transparent, &[20, 30, 10]);
    let mut out = vec![];
    assert_eq!(bearer.on_transmit_opportunity(LinkDirection::Downlink, at(0), 19), None);
    assert_eq!(bearer.next_timer(), at(10));
    let pdus: Vec<Pdu> =
        (1..4).map(|k| bearer.on_transmit_opportunity(LinkDirection::Downlink, at(k), 30).unwrap()).collect();
    assert_eq!(pdus.iter().map(|p| p.bytes).collect::<Vec<_>>(), [20, 30, 10]);
    let _ = bearer.receive(LinkDirection::Downlink, at(4), pdus[1], &mut out);
    let _ = bearer.receive(LinkDirection::Downlink, at(4), pdus[1], &mut out);
    assert_eq!(told(&mut out), [1]);
    account_is_closed(&bearer);
    let _ = bearer.receive(LinkDirection::Downlink, at(5), pdus[0], &mut out);
    assert_eq!(told(&mut out), [0]);
    let _ = bearer.receive(LinkDirection::Downlink, at(5), pdus[0], &mut out);
    account_is_closed(&bearer);
    bearer.reestablish(&mut out);
    assert_eq!(told(&mut out), [-3]);
    let _ = bearer.receive(LinkDirection::Downlink, at(5), pdus[2], &mut out);
    assert!(out.is_empty());
    account_is_closed(&bearer);
}

#[test]
fn transparent_sdu_is_lost_when_hundreds_have_overtaken_it() {
    let mut bearer = loaded(RlcMode::Transparent, &[20; 600]);
    let pdus: Vec<Pdu> =
        (0..600).map(|k| bearer.on_transmit_opportunity(LinkDirection::Downlink, at(k), 30).unwrap()).collect();
    let mut out = vec![];
    for &pdu in &pdus[1..] {
        let _ = bearer.receive(LinkDirection::Downlink, at(600), pdu, &mut out);
    }
    let told = told(&mut out);
    assert_eq!(told.iter().position(|&t| t == -1), Some(512));
    assert_eq!(told.len(), 600);
    assert_eq!(bearer.pending_sdus(LinkDirection::Downlink).count(), 0);
    account_is_closed(&bearer);
}

#[test]
fn reestablishment_delivers_complete_sdus_and_drops_the_others() {
    let mut bearer = loaded(RlcMode::Unacknowledged, &[10, 10, 10, 10]);
    let pdus: Vec<Pdu> =
        [12, 12, 7].map(|b| bearer.on_transmit_opportunity(LinkDirection::Downlink, at(0), b).unwrap()).to_vec();
    let mut out = vec![];
    let _ = bearer.receive(LinkDirection::Downlink, at(1), pdus[1], &mut out);
    bearer.reestablish(&mut out);
    assert_eq!(told(&mut out), [-1, 1, -3, -4]);
    assert_eq!(bearer.next_timer(), Instant::NEVER);
    assert_eq!(bearer.waiting_bytes(LinkDirection::Downlink), 0);
    bearer.offer(LinkDirection::Downlink, sdu(10, 4));
    let new = bearer.on_transmit_opportunity(LinkDirection::Downlink, at(2), 100).unwrap();
    // PDUs that were on the air before have no effect.
    let _ = bearer.receive(LinkDirection::Downlink, at(2), pdus[0], &mut out);
    let _ = bearer.receive(LinkDirection::Downlink, at(2), new, &mut out);
    assert_eq!(told(&mut out), [4]);
    account_is_closed(&bearer);
}

/// The transmission of a PDU: it arrives after a number of ms or is lost, and a copy may arrive later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fate {
    pub(super) comes: Option<u64>,
    pub(super) again: Option<u64>,
}

/// A channel like HARQ: most PDUs take 3 ms, some 7, 14 or 21 more, and some are lost.
pub(super) fn fates(losses: u32) -> impl Strategy<Value = Vec<Fate>> {
    let fate = (0_u64..4, 0..100_u32, 0..100_u32).prop_map(move |(round, lost, twice)| Fate {
        comes: (lost >= losses).then_some(3 + 7 * (round * u64::from(twice % 3 == 0))),
        again: (twice < 5).then_some(3 + u64::from(twice) * 6),
    });
    prop::collection::vec(fate, 1..60)
}

/// A run of a bearer over a channel, with one opportunity per direction and millisecond.
pub(super) struct Run {
    pub(super) bearer: Bearer,
    pub(super) now: Instant,
    air: BTreeMap<(Instant, u64), (LinkDirection, Pdu)>,
    sent: u64,
    pub(super) out: Vec<SduOutcome>,
    /// Accepted SDUs and outcomes, by direction.
    pub(super) taken: [Vec<Sdu>; 2],
    pub(super) told: [Vec<SduOutcome>; 2],
}

impl Run {
    pub(super) fn new(bearer: Bearer) -> Run {
        Run {
            bearer,
            now: Instant::ZERO,
            air: BTreeMap::new(),
            sent: 0,
            out: vec![],
            taken: [vec![], vec![]],
            told: [vec![], vec![]],
        }
    }

    pub(super) fn offer(&mut self, way: LinkDirection, bytes: u32) {
        let token = (self.taken[way as usize].len() * 2 + way as usize) as u64;
        let sdu = Sdu { bytes, token, arrived: self.now };
        if self.bearer.offer(way, sdu) {
            self.taken[way as usize].push(sdu);
        }
        let most = self.bearer.limits().max_buffer_bytes.map_or(u64::MAX, u64::from);
        assert!(self.bearer.waiting_bytes(way) <= most);
    }

    /// Sends a PDU with this transmission outcome.
    pub(super) fn send(&mut self, way: LinkDirection, bytes: u32, fate: Fate) -> Option<Pdu> {
        let pdu = self.bearer.on_transmit_opportunity(way, self.now, bytes)?;
        assert!(pdu.bytes <= bytes);
        for delay in [fate.comes, fate.comes.and(fate.again)].into_iter().flatten() {
            self.sent += 1;
            self.air.insert((self.now + MILLISECOND * delay, self.sent), (way, pdu));
        }
        Some(pdu)
    }

    /// Advances to the next millisecond: arrivals, timers.
    pub(super) fn pass(&mut self) {
        self.now += MILLISECOND;
        while let Some(entry) = self.air.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (way, pdu) = entry.remove();
            let _ = self.bearer.receive(way, self.now, pdu, &mut self.out);
            self.hear(way);
        }
        let next = self.bearer.next_timer();
        let due = self.bearer.expire(self.now, &mut self.out);
        assert!(next <= self.now || (self.out.is_empty() && due == DueReports::default()));
        assert!(self.bearer.next_timer() > self.now, "a timer is in the past");
        for outcome in self.out.drain(..) {
            self.told[outcome.sdu.token as usize % 2].push(outcome);
        }
        account_is_closed(&self.bearer);
    }

    fn hear(&mut self, way: LinkDirection) {
        for outcome in self.out.drain(..) {
            // Outcomes belong to the direction of the PDU.
            assert_eq!(outcome.sdu.token as usize % 2, way as usize);
            self.told[way as usize].push(outcome);
        }
    }

    /// Checks that each accepted SDU has exactly one outcome, in order, or is still inside.
    pub(super) fn all_told_once(&self) {
        for way in LinkDirection::BOTH {
            let told = self.told[way as usize].iter().map(|o| o.sdu);
            let inside = self.bearer.pending_sdus(way).copied();
            assert_eq!(told.chain(inside).collect::<Vec<_>>(), self.taken[way as usize], "{way:?}");
        }
    }
}

/// PDUs in the order of their creation, as ranges of the concatenated bytes of all SDUs. The record is independent of
/// the PDUs' own information.
#[derive(Default)]
pub(super) struct Stream {
    pub(super) pdus: Vec<(u64, u64, bool)>,
    end: u64,
}

impl Stream {
    pub(super) fn add(&mut self, pdu: &Pdu, comes: bool) -> (u64, u64) {
        let range = (self.end, self.end + u64::from(pdu.payload_bytes));
        self.pdus.push((range.0, range.1, comes));
        self.end = range.1;
        range
    }

    /// The number of SDUs with bytes in this range.
    pub(super) fn touched(sdus: &[Sdu], range: (u64, u64)) -> u64 {
        let mut start = 0;
        let mut touched = 0;
        for sdu in sdus {
            let end = start + u64::from(sdu.bytes);
            touched += u64::from(start < range.1 && end > range.0);
            start = end;
        }
        touched
    }

    /// Which SDUs arrived completely.
    pub(super) fn whole(&self, sdus: &[Sdu]) -> Vec<bool> {
        let mut start = 0;
        sdus.iter()
            .map(|sdu| {
                let end = start + u64::from(sdu.bytes);
                let range = (start, end);
                start = end;
                self.end >= end && self.pdus.iter().all(|&(a, b, comes)| comes || b <= range.0 || a >= range.1)
            })
            .collect()
    }
}

/// UM with an SDU in two of three milliseconds, until `milliseconds` have passed.
fn delivers_what_came_whole(
    sizes: &[u32],
    opportunities: &[u32],
    fates: &[Fate],
    milliseconds: u64,
    limit: Option<u32>,
) {
    let limits = RlcConfig { max_buffer_bytes: limit, ..RlcConfig::for_mode(RlcMode::Unacknowledged) };
    let mut run = Run::new(Bearer::new(RlcMode::Unacknowledged, limits));
    let mut streams = [Stream::default(), Stream::default()];
    let (mut size, mut opportunity, mut fate) =
        (sizes.iter().cycle(), opportunities.iter().cycle(), fates.iter().cycle());
    let mut lost_in_a_row = [0; 2];
    // An SDU of more than 2047 bytes ends its PDU, so the waiting SDUs may need one PDU each in the end.
    for k in 0..2 * milliseconds + 500 {
        for way in LinkDirection::BOTH {
            if k < milliseconds && !(k / 37).is_multiple_of(3) {
                run.offer(way, *size.next().unwrap());
            }
            let bytes = if k < milliseconds { *opportunity.next().unwrap() } else { 9000 };
            // In the end everything arrives, so that the receiver detects all gaps.
            let quiet = run.bearer.waiting_bytes(way) < 4000;
            let comes = Fate { comes: Some(3), again: None };
            let lost = &mut lost_in_a_row[way as usize];
            // After 512 consecutive losses, half of all sequence numbers, a PDU would be taken for an old one (TS 36.322 clause
            // 5.1.2.2.2).
            let fate = if k < milliseconds && !quiet && *lost < 500 { *fate.next().unwrap() } else { comes };
            let waiting = run.bearer.waiting_bytes(way);
            if let Some(pdu) = run.send(way, bytes, fate) {
                *lost = if fate.comes.is_some() { 0 } else { *lost + 1 };
                let range = streams[way as usize].add(&pdu, fate.comes.is_some());
                let segments = Stream::touched(&run.taken[way as usize], range);
                assert_eq!(u64::from(pdu.bytes - pdu.payload_bytes), 2 + (3 * (segments - 1)).div_ceil(2));
                let left = run.bearer.waiting_bytes(way);
                assert_eq!(left + u64::from(pdu.payload_bytes), waiting);
            } else {
                assert!(waiting == 0 || bytes <= 2);
            }
        }
        run.pass();
    }
    run.all_told_once();
    for way in LinkDirection::BOTH {
        assert_eq!(run.bearer.pending_sdus(way).count(), 0);
        let whole = streams[way as usize].whole(&run.taken[way as usize]);
        let delivered: Vec<bool> = run.told[way as usize].iter().map(|o| o.delivered).collect();
        assert_eq!(delivered, whole);
    }
}

#[test]
fn large_waiting_packets_are_all_delivered() {
    // 499 SDUs of 2048 bytes wait at the first opportunity; each needs its own.
    let fate = Fate { comes: None, again: Some(3) };
    delivers_what_came_whole(&[2048, 1, 2048, 1], &[0], &[fate], 758, None);
}

#[test]
fn packets_after_hundreds_of_lost_pdus_are_delivered() {
    // One byte of an SDU of 289 bytes is sent per millisecond, and 500 of them are lost.
    let fate = Fate { comes: None, again: Some(3) };
    delivers_what_came_whole(&[289], &[3], &[fate], 562, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// UM: with delays below t-Reordering, exactly the SDUs whose bytes all arrived are delivered, in order. PDUs have
    /// the sizes of the rules, and sequence numbers wrap.
    #[test]
    fn unacknowledged_delivers_what_came_whole(
        sizes in prop::collection::vec(1_u32..3000, 1..80),
        opportunities in prop::collection::vec(0_u32..4000, 1..40),
        fates in fates(12),
        milliseconds in 50_u64..1600,
        limit in prop::option::of(2000_u32..20_000),
    ) {
        delivers_what_came_whole(&sizes, &opportunities, &fates, milliseconds, limit);
    }

    /// UM over a channel with unlimited delays and losses, with wrapping sequence numbers: each SDU has one outcome, in
    /// order, and no SDU with a missing byte is delivered.
    #[test]
    fn unacknowledged_survives_any_channel(
        opportunities in prop::collection::vec(3_u32..60, 1..40),
        delays in prop::collection::vec(prop::option::weighted(0.6, 0_u64..1500), 1..50),
        silence in 0_u64..1200,
    ) {
        let mut run = Run::new(Bearer::new(RlcMode::Unacknowledged, unlimited(RlcMode::Unacknowledged)));
        let mut stream = Stream::default();
        let (mut opportunity, mut delay) = (opportunities.iter().cycle(), delays.iter().cycle());
        for k in 0..3000 {
            if k < 2000 {
                run.offer(LinkDirection::Downlink, 40);
            }
            let silent = (500..500 + silence).contains(&k);
            let comes = delay.next().unwrap().filter(|_| !silent);
            if let Some(pdu) = run.send(LinkDirection::Downlink, *opportunity.next().unwrap(), Fate { comes, again: comes.map(|d| d + 5) }) {
                stream.add(&pdu, comes.is_some());
            }
            run.pass();
        }
        run.all_told_once();
        let whole = stream.whole(&run.taken[0]);
        for (outcome, whole) in run.told[0].iter().zip(whole) {
            prop_assert!(whole || !outcome.delivered);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// AM: despite losses, including STATUS reports, every SDU is delivered in order, and then no timer is running.
    #[test]
    fn acknowledged_delivers_everything(
        sizes in prop::collection::vec(1_u32..3000, 1..80),
        opportunities in prop::collection::vec(0_u32..4000, 1..40),
        fates in fates(40),
        milliseconds in 50_u64..1600,
        limit in prop::option::of(2000_u32..20_000),
        both in any::<bool>(),
        (poll_after_pdus, poll_after_bytes) in (1_u32..20, 1_u32..30_000),
    ) {
        let mut limits = RlcConfig { max_buffer_bytes: limit, ..RlcConfig::for_mode(RlcMode::Acknowledged) };
        (limits.acknowledgement.poll_after_pdus, limits.acknowledgement.poll_after_bytes) =
            (poll_after_pdus, poll_after_bytes);
        let mut run = Run::new(Bearer::new(RlcMode::Acknowledged, limits));
        let mut streams = [Stream::default(), Stream::default()];
        let (mut size, mut opportunity, mut fate) =
            (sizes.iter().cycle(), opportunities.iter().cycle(), fates.iter().cycle());
        // A retransmission has the size and the number of the first transmission.
        let mut known = [BTreeMap::new(), BTreeMap::new()];
        // In the end everything arrives, one PDU per millisecond. An SDU of more than 2047 bytes ends its PDU, so there may be as
        // many PDUs as waiting SDUs: two in three milliseconds and up to 37 more. The 512 PDUs of a full window are
        // retransmitted, and a STATUS report takes one opportunity in ten. 10/9 (2/3 x + 37 + 512) and two timeouts are less than
        // x + 800.
        for k in 0..2 * milliseconds + 800 {
            for way in LinkDirection::BOTH {
                let busy = k < milliseconds;
                if busy && !(k / 37).is_multiple_of(3) && (both || way == LinkDirection::Downlink) {
                    run.offer(way, *size.next().unwrap());
                }
                let bytes = if busy { *opportunity.next().unwrap() } else { 9000 };
                let fate = if busy { *fate.next().unwrap() } else { Fate { comes: Some(3), again: None } };
                let report = run.bearer.buffer_status(way);
                if let Some(pdu) = run.send(way, bytes, fate) {
                    let left = run.bearer.buffer_status(way);
                    if pdu.is_status() {
                        prop_assert!(report.status_bytes > 0 && pdu.bytes <= report.status_bytes);
                    } else if pdu.is(Pdu::AGAIN) {
                        prop_assert_eq!(report.status_bytes, 0);
                        prop_assert_eq!(known[way as usize].get(&pdu.sn).copied(), Some((pdu.bytes, pdu.first, pdu.segments)));
                        prop_assert_eq!(left.new_data_bytes, report.new_data_bytes);
                        prop_assert_eq!(left.retransmission_bytes + pdu.bytes, report.retransmission_bytes);
                    } else {
                        prop_assert_eq!(report.status_bytes, 0);
                        let range = streams[way as usize].add(&pdu, true);
                        let segments = Stream::touched(&run.taken[way as usize], range);
                        prop_assert_eq!(u64::from(pdu.bytes - pdu.payload_bytes), 4 + (3 * (segments - 1)).div_ceil(2));
                        prop_assert_eq!(left.new_data_bytes + pdu.payload_bytes, report.new_data_bytes);
                        prop_assert_eq!((left.retransmission_bytes, report.retransmission_bytes), (0, 0));
                        known[way as usize].insert(pdu.sn, (pdu.bytes, pdu.first, pdu.segments));
                    }
                }
            }
            run.pass();
            run.all_told_once();
        }
        for way in LinkDirection::BOTH {
            prop_assert_eq!(run.bearer.pending_sdus(way).count(), 0);
            prop_assert!(run.told[way as usize].iter().all(|o| o.delivered));
            let quiet = BufferStatus { new_data_bytes: 0, retransmission_bytes: 0, status_bytes: 0, head_of_line: Instant::NEVER };
            prop_assert_eq!(run.bearer.buffer_status(way), quiet);
        }
        prop_assert_eq!(run.bearer.next_timer(), Instant::NEVER);
    }
}
