//! The window of block acknowledgment.

use crate::common::{Check, vectors};
use fullpipe_units::{Duration, Instant, RandomStream};
use fullpipe_wifi::aggregate::{AggregateLimits, ExchangeTiming};
use fullpipe_wifi::block_ack::{Mpdu, MpduOutcome, Session};
use fullpipe_wifi::frame::{AmpduSize, BLOCK_ACK_BYTES};
use fullpipe_wifi::phy::{DurationRule, Preamble, Standard};

/// Adds new MPDUs and returns the indices of at most `most` MPDUs to send. Tokens are sequence numbers.
fn aggregate(session: &mut Session, most: usize) -> Vec<u32> {
    let mut indices: Vec<u32> = session.to_send().map(|(index, _)| index).take(most).collect();
    while indices.len() < most && session.room() > 0 {
        let index = session.next_index();
        session.push(Mpdu::new(session.window_start() + u64::from(index), 1500, Instant::ZERO));
        indices.push(index);
    }
    indices
}

/// The sequence numbers in a list such as `0 4-7`.
fn numbers(text: &str) -> Vec<u64> {
    let words = text.split_whitespace().filter(|word| *word != "-");
    let ranges = words.map(|word| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        first.parse::<u64>().unwrap()..=last.parse::<u64>().unwrap()
    });
    ranges.flatten().collect()
}

#[test]
fn windows_and_retransmissions_match_the_vectors() {
    let mut check = Check::new("blockack");
    for row in vectors("blockack") {
        let window = row.inputs.integer("window") as u32;
        let most = row.inputs.integer("max_mpdus") as usize;
        let mut session = Session::new(window, u16::MAX);
        let lost = row.inputs.text("lost per round").split('|').map(numbers);
        let sent: Vec<Vec<u64>> = row.expected.text("sent").split('|').map(numbers).collect();
        let starts = numbers(row.expected.text("winstart"));
        let mut delivered = Vec::new();
        // The last set of a row is what is sent next; its losses are not always stated.
        let rounds: Vec<Vec<u64>> = lost.collect();
        for (round, expected) in sent.iter().enumerate() {
            let indices = aggregate(&mut session, most);
            let found: Vec<u64> = indices.iter().map(|index| session.mpdu(*index).token).collect();
            check.equal(&format!("{} round {round}", row.id), found, expected.clone());
            let Some(lost) = rounds.get(round) else { break };
            session.complete(
                &indices,
                true,
                |_, mpdu| !lost.contains(&mpdu.token),
                |outcome| {
                    if let MpduOutcome::Delivered(mpdu) = outcome {
                        delivered.push(mpdu.token);
                    }
                },
            );
            if let Some(start) = starts.get(round) {
                check.equal(&row.id, session.window_start(), *start);
            }
            // The receiver delivers everything before WinStart, in order.
            assert_eq!(delivered, (0..session.window_start()).collect::<Vec<_>>(), "{}", row.id);
        }
    }
    check.finish(40);
}

/// One saturated sender whose BlockAck always arrives: each MPDU is lost independently.
#[test]
fn independent_losses_stall_the_window_as_in_the_vectors() {
    let mut check = Check::new("ampdu_loss");
    for row in vectors("ampdu_loss") {
        let (rate, standard) = (row.rate(), Standard::Ac);
        let timing = standard.timing(Preamble::Long);
        let basic = standard.basic_rates(Preamble::Long);
        let exchange =
            ExchangeTiming { sifs: timing.sifs, basic: &basic, band: standard.band(), rule: DurationRule::Standard };
        let loss = row.inputs.number("mpdu_loss");
        let most = row.inputs.integer("max_mpdus") as usize;
        let mut session = Session::new(row.inputs.integer("window") as u32, u16::MAX);
        let mut losses = RandomStream::new(4, &row.id, "losses");
        let (mut delivered, mut sent, mut rounds, mut time) = (0u64, 0u64, 0u64, Duration::ZERO);
        while rounds < 20_000 {
            let indices = aggregate(&mut session, most);
            let mut size = AmpduSize::default();
            indices.iter().for_each(|_| size.add(1538, 0));
            // AIFS, 7.5 slots, PPDU, SIFS, BlockAck.
            time = time + timing.ifs(3) + timing.slot * 15 / 2 + exchange.ppdu(rate, size.bytes());
            time = time + timing.sifs + exchange.response(rate, BLOCK_ACK_BYTES);
            session.complete(&indices, true, |_, _| !losses.bernoulli(loss), |_| delivered += 1);
            sent += indices.len() as u64;
            rounds += 1;
        }
        let mbps = (delivered * 8 * 1472) as f64 * 1e3 / time.as_nanos() as f64;
        check.relative(&row.id, mbps, row.expected.number("mbps"), 0.01);
        check.relative(&row.id, sent as f64 / rounds as f64, row.expected.number("mean_mpdus"), 0.01);
    }
    check.finish(14);
}

fn session_of(count: u64, retry_limit: u16) -> Session {
    let mut session = Session::new(AggregateLimits::WINDOW, retry_limit);
    (0..count).for_each(|token| session.push(Mpdu::new(token, 1500, Instant::ZERO)));
    session
}

#[test]
fn a_lost_block_ack_causes_retransmissions_but_no_second_delivery() {
    let mut session = session_of(3, 7);
    let mut delivered = Vec::new();
    let mut report = |outcome| match outcome {
        MpduOutcome::Delivered(mpdu) => delivered.push(mpdu.token),
        MpduOutcome::GivenUp(mpdu) => panic!("{mpdu:?}"),
    };
    assert_eq!(session.complete(&[0, 1, 2], false, |index, _| index != 1, &mut report), 0);
    assert_eq!((session.pending(), session.window_start()), (3, 0));
    assert_eq!(session.complete(&[0, 1, 2], true, |_, _| true, &mut report), 3);
    assert_eq!(delivered, [0, 1, 2]);
    assert_eq!((session.pending(), session.window_start(), session.room()), (0, 3, 64));
}

#[test]
fn an_mpdu_is_given_up_after_the_retry_limit_and_releases_those_behind_it() {
    let mut session = session_of(2, 3);
    let mut outcomes = Vec::new();
    session.complete(&[0, 1], true, |index, _| index == 1, |outcome| outcomes.push(outcome));
    session.complete(&[0], true, |_, _| false, |outcome| outcomes.push(outcome));
    assert!(outcomes.is_empty());
    session.complete(&[0], true, |_, _| false, |outcome| outcomes.push(outcome));
    let tokens: Vec<(bool, u64)> = outcomes
        .iter()
        .map(|outcome| match outcome {
            MpduOutcome::Delivered(mpdu) => (true, mpdu.token),
            MpduOutcome::GivenUp(mpdu) => (false, mpdu.token),
        })
        .collect();
    assert_eq!(tokens, [(false, 0), (true, 1)]);
    assert_eq!(session.window_start(), 2);
}

#[test]
fn an_mpdu_that_the_receiver_has_is_never_reported_as_lost() {
    // Each of the two permitted transmissions is received, and each BlockAck is lost.
    let mut session = session_of(1, 2);
    let mut delivered = 0;
    for _ in 0..2 {
        session.complete(
            &[0],
            false,
            |_, _| true,
            |outcome| match outcome {
                MpduOutcome::Delivered(_) => delivered += 1,
                MpduOutcome::GivenUp(mpdu) => panic!("{mpdu:?}"),
            },
        );
    }
    assert_eq!((delivered, session.pending(), session.window_start()), (1, 0, 1));
}
