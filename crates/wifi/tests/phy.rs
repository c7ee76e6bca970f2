//! Rates, durations, interframe spaces, sizes and error rates against the vectors (`data/README.md`).

use crate::common::{Check, Row, dsss, first_number, multi_stream, ofdm, table, vectors};
use fullpipe_units::Duration;
use fullpipe_wifi::aggregate::{AggregateLimits, ExchangeTiming};
use fullpipe_wifi::frame::{
    ACK_BYTES, AmpduSize, BLOCK_ACK_BYTES, CTS_BYTES, RTS_BYTES, amsdu_bytes, mpdu_bytes, single_mpdu_psdu_bytes,
    spacing_bytes,
};
use fullpipe_wifi::phy::error::{nist_bit_error_rate, nist_error_rate, nist_threshold_db};
use fullpipe_wifi::phy::{
    AccessCategory, Band, Coding, DurationRule, ErrorModel, MCS, OfdmRate, PhyKind, PhyRate, Preamble, Standard,
    ppdu_duration, response_rate,
};

fn exchange<'a>(row: &Row, basic: &'a [PhyRate], standard: Standard) -> ExchangeTiming<'a> {
    let timing = standard.timing(Preamble::Long);
    ExchangeTiming { sifs: timing.sifs, basic, band: row.band(), rule: row.rule() }
}

#[test]
fn rates_match_the_tables_of_the_standard() {
    let mut check = Check::new("rates.csv");
    for row in table(include_str!("data/rates.csv")) {
        let number = |key: &str| row[key].parse::<f64>().unwrap_or(0.0);
        let rate = match row["phy"].as_str() {
            "dsss" => dsss(number("mbps"), Preamble::Long),
            "ofdm" => ofdm(number("mbps")),
            phy => {
                let mcs = if phy == "ht" { number("mcs") as u64 % 8 } else { number("mcs") as u64 };
                multi_stream(phy, mcs, number("width_mhz") as u64, number("nss") as u64, number("gi_ns"))
            }
        };
        let id = format!("{rate}");
        check.relative(&id, rate.mbps(), number("mbps"), 1e-4);
        check.equal(&id, rate.is_valid(), row["valid"] == "1");
        if rate.is_valid() {
            check.equal(&id, f64::from(rate.data_bits_per_symbol()), number("ndbps"));
        }
    }
    check.finish(3 * 450);

    let mut check = Check::new("rate");
    for row in vectors("rate") {
        let rate = row.rate();
        check.relative(&row.id, rate.mbps(), row.expected.number("mbps"), 1e-4);
        check.equal(&row.id, f64::from(rate.data_bits_per_symbol()), row.expected.number("ndbps"));
    }
    check.finish(18);
}

#[test]
fn durations_match_the_vectors() {
    let mut check = Check::new("duration");
    for row in vectors("duration") {
        let duration = ppdu_duration(row.rate(), row.inputs.integer("bytes"), row.band(), row.rule());
        check.equal(&row.id, duration.as_nanos(), row.expected.integer("ns"));
    }
    check.finish(52);
}

#[test]
fn responses_use_the_rate_of_the_standard() {
    let mut check = Check::new("response");
    for row in vectors("response") {
        let words: Vec<&str> = row.inputs.text("answers").split(' ').collect();
        let answered = match words[0] {
            "dsss" => dsss(first_number(words[2]), Preamble::Long),
            "ofdm" => ofdm(first_number(words[2])),
            phy => {
                multi_stream(phy, first_number(words[2]) as u64, 80.min(if phy == "ht" { 40 } else { 80 }), 1, 800.0)
            }
        };
        let rate = response_rate(answered, &row.basic());
        check.equal(&row.id, rate.mbps(), row.expected.number("rate"));
        let duration = ppdu_duration(rate, row.inputs.integer("bytes"), row.band(), DurationRule::Standard);
        check.equal(&row.id, duration.as_nanos(), row.expected.integer("ns"));
    }
    check.finish(36);
}

fn standard(name: &str) -> Standard {
    match name {
        "b" => Standard::B,
        "a" => Standard::A,
        "g" => Standard::G,
        "n24" => Standard::N(Band::Ghz2),
        "n5" | "ht" => Standard::N(Band::Ghz5),
        "ac" | "vht" => Standard::Ac,
        other => panic!("unknown standard {other}"),
    }
}

#[test]
fn interframe_spaces_match_the_vectors() {
    let mut check = Check::new("ifs");
    for row in vectors("ifs") {
        let standard = standard(row.inputs.text("phy"));
        let timing = standard.timing(Preamble::Long);
        if let Some(rate) = row.inputs.get("lowest_basic") {
            let rate = first_number(rate);
            let rate = if standard == Standard::B { dsss(rate, Preamble::Long) } else { ofdm(rate) };
            check.equal(&row.id, timing.eifs(2, rate, standard.band()).as_nanos(), row.expected.integer("ns"));
            continue;
        }
        let parameters = match row.inputs.text("ac") {
            "DCF" => timing.dcf(),
            "BK" => timing.edca(AccessCategory::Background, false),
            "BE" => timing.edca(AccessCategory::BestEffort, false),
            "VI" => timing.edca(AccessCategory::Video, false),
            _ => timing.edca(AccessCategory::Voice, false),
        };
        let found = (timing.ifs(parameters.aifsn).as_nanos(), parameters.cw_min, parameters.cw_max);
        let expected = &row.expected;
        let integer = |key| expected.integer(key) as u32;
        check.equal(&row.id, found, (expected.integer("ifs_ns"), integer("cwmin"), integer("cwmax")));
    }
    check.finish(11);
}

/// The mean cycle of one saturated station is IFS, CWmin/2 slots, and the exchange: with a single station no counter
/// is ever frozen and no frame lost.
#[test]
fn cycles_of_one_saturated_station_match_the_vectors() {
    let mut check = Check::new("goodput");
    for row in vectors("goodput") {
        let standard = match (row.inputs.text("phy"), row.inputs.get("band")) {
            ("ht", Some("2.4")) => Standard::N(Band::Ghz2),
            (phy, _) => standard(phy),
        };
        let timing = standard.timing(Preamble::Long);
        let (rate, basic) = (row.rate(), row.basic());
        let exchange = exchange(&row, &basic, standard);
        let access = match row.inputs.has("ac") {
            true => timing.edca(AccessCategory::BestEffort, false),
            false => timing.dcf(),
        };
        let mpdu = mpdu_bytes(row.inputs.integer("udp") as u32 + 28, standard.has_qos());
        let limits = AggregateLimits::of(rate.kind());
        let mpdus = match row.inputs.get("mpdus") {
            Some("max") => aggregate(mpdu, &limits, limits.psdu_bytes(rate, Duration::ZERO, &exchange)),
            Some(count) => {
                aggregate(mpdu, &AggregateLimits { mpdus: first_number(count) as u32, ..limits }, limits.bytes)
            }
            None => AmpduSize::default().with(mpdu, 0),
        };
        let count = mpdus.mpdus();
        let (psdu, response) = match count {
            1 => (single_mpdu_psdu_bytes(mpdu, rate.kind()), ACK_BYTES),
            _ => (mpdus.bytes(), BLOCK_ACK_BYTES),
        };
        let ppdu = exchange.ppdu(rate, psdu);
        let mut cycle = timing.ifs(access.aifsn) + timing.slot * u64::from(access.cw_min) / 2 + ppdu;
        cycle = cycle + exchange.sifs + exchange.response(rate, response);
        if let Some(at) = row.inputs.text("rts").strip_prefix("at ") {
            let rts = first_number(at);
            let rts = if standard == Standard::B { dsss(rts, Preamble::Long) } else { ofdm(rts) };
            let protection = exchange.ppdu(rts, RTS_BYTES.into()) + exchange.response(rts, CTS_BYTES);
            cycle = cycle + protection + exchange.sifs * 2;
        }
        check.equal(&row.id, cycle.as_nanos(), row.expected.integer("mean_cycle_ns"));
        let mbps = (8 * row.inputs.integer("udp") * u64::from(count)) as f64 * 1e3 / cycle.as_nanos() as f64;
        check.relative(&row.id, mbps, row.expected.number("mbps"), 1e-5);
        if row.expected.has("mpdus") {
            let found = (u64::from(count), psdu, ppdu.as_nanos());
            let integer = |key| row.expected.integer(key);
            check.equal(&row.id, found, (integer("mpdus"), integer("psdu_bytes"), integer("ppdu_ns")));
        }
    }
    check.finish(2 * 30);
}

/// Adds MPDUs of one size while the limits permit.
fn aggregate(mpdu: u32, limits: &AggregateLimits, psdu_bytes: u64) -> AmpduSize {
    let mut size = AmpduSize::default().with(mpdu, 0);
    while size.mpdus() < limits.mpdus && size.with(mpdu, 0).bytes() <= psdu_bytes {
        size.add(mpdu, 0);
    }
    size
}

/// The sizes in a list such as `100/101` or `42 x 1538`.
fn sizes(text: &str) -> Vec<u32> {
    match text.split_once(" x ") {
        Some((count, size)) => vec![first_number(size) as u32; first_number(count) as usize],
        None => text.split('/').map(|size| first_number(size) as u32).collect(),
    }
}

#[test]
fn aggregates_have_the_sizes_and_counts_of_the_vectors() {
    let mut check = Check::new("aggregate");
    for row in vectors("aggregate") {
        let inputs = &row.inputs;
        match inputs.text("what") {
            "ampdu" | "two-level" => {
                let mut size = AmpduSize::default();
                sizes(inputs.text("mpdu_bytes")).into_iter().for_each(|mpdu| size.add(mpdu, 0));
                check.equal(&row.id, size.bytes(), row.expected.integer("bytes"));
            }
            "amsdu" => {
                let bytes = amsdu_bytes(sizes(inputs.text("msdu_bytes")));
                check.equal(&row.id, u64::from(bytes), row.expected.integer("bytes"));
            }
            "density" => {
                // Only the rate of the vector matters. Those that occur are HT MCS 7 with one stream of 20 MHz or four
                // of 40 MHz, and VHT MCS 9 of 80 MHz.
                let rate = match inputs.text("mbps") {
                    "65" => multi_stream("ht", 7, 20, 1, 800.0),
                    "300" => multi_stream("ht", 7, 40, 2, 400.0),
                    "600" => multi_stream("ht", 7, 40, 4, 400.0),
                    _ => multi_stream("vht", 9, 80, 1, 400.0),
                };
                let spacing = spacing_bytes(Duration::from_secs_f64(1e-6 * inputs.number("spacing_us")), rate);
                let mpdu = inputs.integer("mpdu_bytes") as u32;
                let one = AmpduSize::default().with(mpdu, spacing);
                let distance = one.with(mpdu, spacing).bytes() - one.bytes();
                check.equal(&row.id, distance, row.expected.integer("bytes_from_start_to_start"));
            }
            _ => {
                let (rate, basic) = (row.rate(), row.basic());
                let exchange = exchange(&row, &basic, Standard::Ac);
                let limits = AggregateLimits {
                    mpdus: inputs.integer("window") as u32,
                    bytes: inputs.integer("max_bytes"),
                    ppdu: Duration::from_micros(inputs.integer("max_ppdu_us")),
                };
                let txop = Duration::from_micros(inputs.integer("txop_us"));
                let mpdu = inputs.integer("mpdu_bytes") as u32;
                let size = aggregate(mpdu, &limits, limits.psdu_bytes(rate, txop, &exchange));
                let found = (u64::from(size.mpdus()), size.bytes(), exchange.ppdu(rate, size.bytes()).as_nanos());
                let integer = |key| row.expected.integer(key);
                check.equal(&row.id, found, (integer("mpdus"), integer("bytes"), integer("ppdu_ns")));
            }
        }
    }
    check.finish(24);
}

fn scheme(row: &Row) -> (fullpipe_wifi::phy::Modulation, fullpipe_wifi::phy::CodeRate) {
    match row.inputs.get("rate") {
        Some(rate) => {
            OfdmRate::ALL.into_iter().find(|ofdm| f64::from(ofdm.mbps()) == first_number(rate)).unwrap().scheme()
        }
        None => MCS[row.inputs.integer("mcs") as usize],
    }
}

#[test]
fn packet_error_rates_match_the_vectors() {
    let mut check = [Check::new("per nist"), Check::new("per dsss"), Check::new("per table")];
    for row in vectors("per") {
        let (inputs, expected) = (&row.inputs, row.expected.number("per"));
        let (snr, bytes) = (inputs.number("snr_db"), inputs.integer("bytes"));
        let id = &row.id;
        match inputs.text("model") {
            "nist" => check[0].absolute(id, nist_error_rate(scheme(&row), snr, 8 * bytes), expected, 1e-4),
            "dsss" => {
                let rate = dsss(inputs.number("rate"), Preamble::Long);
                check[1].absolute(id, ErrorModel::Nist.packet_error_rate(rate, snr, bytes), expected, 5e-4);
            }
            _ => {
                let coding = if inputs.text("code") == "BCC" { Coding::Bcc } else { Coding::Ldpc };
                // The tables of MCS 10 and 11 are those of 802.11ax; no rate of this crate uses them.
                let mcs = inputs.integer("mcs");
                if mcs <= 9 {
                    let rate = multi_stream("vht", mcs, 80, 1, 800.0);
                    let found = ErrorModel::Table(coding).packet_error_rate(rate, snr, bytes);
                    check[2].absolute(id, found, expected, 1e-6);
                }
            }
        }
    }
    let [nist, dsss, table] = check;
    nist.finish(19);
    dsss.finish(7);
    table.finish(20);

    let mut check = Check::new("ns3 nist");
    for row in vectors("ns3").iter().filter(|row| row.inputs.has("model")) {
        let success = 1.0 - nist_error_rate(scheme(row), row.inputs.number("snr_db"), row.inputs.integer("bits"));
        check.absolute(&row.id, success, row.expected.number("success"), 1e-3);
    }
    check.finish(27);
}

#[test]
fn thresholds_match_the_vectors() {
    let mut check = Check::new("ideal");
    for row in vectors("ideal") {
        let threshold = nist_threshold_db(scheme(&row), 1e-6);
        check.absolute(&row.id, threshold, row.expected.number("threshold_db"), 1e-3);
        // The error rate at the threshold is the target, with the resolution of the search.
        assert!((nist_bit_error_rate(scheme(&row), threshold) / 1e-6 - 1.0).abs() < 1e-9, "{}", row.id);
    }
    check.finish(12);
}

#[test]
fn error_rates_decrease_with_the_snr_and_grow_with_the_size() {
    let rates = [dsss(1.0, Preamble::Long), dsss(11.0, Preamble::Long), ofdm(9.0), ofdm(54.0)]
        .into_iter()
        .chain((0..10).map(|mcs| multi_stream("vht", mcs, 80, 1, 800.0)));
    for rate in rates {
        for model in [ErrorModel::Table(Coding::Bcc), ErrorModel::Table(Coding::Ldpc), ErrorModel::Nist] {
            let mut last = 1.0;
            for tenth in -100..450 {
                let snr = f64::from(tenth) / 10.0;
                let error = model.packet_error_rate(rate, snr, 1500);
                assert!((0.0..=1.0).contains(&error) && error <= last + 1e-12, "{rate} at {snr} dB: {error}");
                assert!(model.packet_error_rate(rate, snr, 3000) >= error);
                last = error;
            }
            assert!(last < 1e-5, "{rate}");
        }
    }
}

#[test]
fn a_txop_contains_the_frames_of_the_vectors() {
    let mut check = Check::new("txop");
    for row in vectors("txop") {
        let (rate, basic) = (row.rate(), row.basic());
        let exchange = exchange(&row, &basic, Standard::A);
        let one = exchange.single_exchange(rate, mpdu_bytes(row.inputs.integer("udp") as u32 + 28, true));
        let limit = Duration::from_micros(row.inputs.integer("txop_us"));
        let (mut frames, mut used) = (1, one);
        while used + exchange.sifs + one <= limit {
            used = used + exchange.sifs + one;
            frames += 1;
        }
        check.equal(
            &row.id,
            (frames, used.as_nanos()),
            (row.expected.integer("frames"), row.expected.integer("used_ns")),
        );
    }
    check.finish(5);
}

/// Formulas of papers, with the durations of this crate.
#[test]
fn published_formulas_give_their_printed_values() {
    let mut check = Check::new("published");
    let rows = vectors("published");
    let row = |number: usize| &rows[number - 1];
    let ghz2 = |rate, bytes| ppdu_duration(rate, bytes, Band::Ghz2, DurationRule::Standard).as_nanos() as f64 / 1e3;
    // Jun et al. 2003: DIFS 50, backoff 310, preamble 192 and SIFS 10, ACK at 1 Mbit/s 304, and 34 header bytes at the
    // data rate without rounding.
    for (number, mbps) in [(1, 11.0), (2, 5.5), (3, 2.0), (4, 1.0)] {
        let b = 50.0 + 310.0 + 192.0 + 10.0 + ghz2(dsss(1.0, Preamble::Long), 14) + 8.0 * 34.0 / mbps;
        check.absolute(&row(number).id, b, row(number).expected.number("b_us"), 0.01);
    }
    // Gast 2003: two frames with their ACKs, each after DIFS. The row states ACKs at 2 Mbit/s, which give 2174 µs and 460
    // exchanges per second. The printed number follows from ACKs at 11 Mbit/s: 2 * (50 + 10 + 203) + 1310 + 248 = 2084 µs.
    let b = |bytes| 50.0 + ghz2(dsss(11.0, Preamble::Long), bytes) + 10.0 + ghz2(dsss(11.0, Preamble::Long), 14);
    check.absolute(&row(5).id, 1e6 / (b(1536) + b(76)), row(5).expected.number("per_s"), 1.0);
    let ghz5 = |bytes| ppdu_duration(ofdm(54.0), bytes, Band::Ghz5, DurationRule::Standard).as_nanos() as f64 / 1e3;
    let a = |bytes| 34.0 + ghz5(bytes) + 16.0 + ghz5(14);
    check.absolute(&row(6).id, 1e6 / (a(1536) + a(76)), row(6).expected.number("per_s"), 1.0);
    // Heusse et al. 2003: DIFS, SIFS, and the ACK at 11 Mbit/s.
    let slowness = 50.0 + 192.0 + 8.0 * 1534.0 / 11.0 + 10.0 + 192.0 + 8.0 * 14.0 / 11.0;
    check.absolute(&row(8).id, 8.0 * 1500.0 / 11.0 / slowness, row(8).expected.number("share"), 0.01);
    check.finish(7);
}

#[test]
fn single_mpdus_are_aggregates_only_in_vht() {
    assert_eq!(single_mpdu_psdu_bytes(1538, PhyKind::Ht), 1538);
    assert_eq!(single_mpdu_psdu_bytes(1538, PhyKind::Vht), 1542);
}
