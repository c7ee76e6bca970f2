//! Path loss, SNR, and ideal rate control.

use crate::common::{Check, vectors};
use fullpipe_wifi::channel::{ChannelConfig, PathLoss};
use fullpipe_wifi::phy::{
    ChannelWidth, Coding, ErrorModel, GuardInterval, MultiStreamRate, PhyRate, Preamble, Standard,
};
use fullpipe_wifi::rate_control::{Capabilities, Ideal, IdealTarget, RateContext};

#[test]
fn link_budgets_match_the_vectors() {
    let mut check = Check::new("link");
    for row in vectors("link") {
        let (inputs, expected) = (&row.inputs, &row.expected);
        let channel = ChannelConfig {
            path_loss: PathLoss { exponent: inputs.number("exponent"), ..PathLoss::default() },
            power_dbm: inputs.number("tx_dbm"),
            noise_figure_db: inputs.number("noise_figure_db"),
            ..ChannelConfig::default()
        };
        let distance = inputs.number("distance_m");
        let received = channel.received_dbm(distance, 0.0);
        if let Some(streams) = inputs.get("streams") {
            // The rate control of these rows is that of 802.11ax.
            let width = ChannelWidth::from_mhz(inputs.integer("width_mhz") as u32).unwrap();
            let streams = streams.parse().unwrap();
            let rate = PhyRate::Vht(MultiStreamRate { mcs: 0, streams, width, guard: GuardInterval::Long });
            let id = &row.id;
            check.absolute(id, channel.snr_db(rate, received), expected.number("snr_per_stream_db"), 1e-3);
            // MCS 0 to 9 have the same tables and code as in VHT. Those rows whose best MCS is among them apply.
            let errors = ErrorModel::Table(Coding::Ldpc);
            let best = (0..10).filter(|mcs| {
                let rate = PhyRate::Vht(MultiStreamRate { mcs: *mcs, streams, width, guard: GuardInterval::Long });
                errors.packet_error_rate(rate, channel.snr_db(rate, received), 1538) <= 0.1
            });
            let key = "best he mcs (LDPC table, PER <";
            let printed = expected.text(key).rsplit('=').next().unwrap().parse::<u8>().unwrap();
            check.equal(id, best.max(), Some(printed));
            continue;
        }
        check.absolute(&row.id, channel.path_loss.loss_db(distance), expected.number("loss_db"), 1e-3);
        check.absolute(&row.id, received, expected.number("rx_dbm"), 1e-3);
        let context = RateContext {
            standard: Standard::A,
            preamble: Preamble::Long,
            channel: &channel,
            errors: ErrorModel::Nist,
        };
        let capabilities = Capabilities { streams: 1, width: ChannelWidth::Mhz20, short_guard: false };
        let rate = Ideal::new(&capabilities, IdealTarget::BitErrorRate(1e-6), &context).rate(received);
        check.absolute(&row.id, channel.snr_db(rate, received), expected.number("snr_db"), 1e-3);
        check.equal(&row.id, rate.mbps(), expected.number("ideal ofdm rate (nist, 1e-6)"));
    }
    check.finish(48);
}

/// -82 dBm is reached at 10^((16.0206 + 82 - 46.6777) / 30) = 51.4 m, where the SNR is still 12 dB.
#[test]
fn preambles_are_detected_up_to_the_distance_of_the_threshold() {
    let channel = ChannelConfig::default();
    let rate = PhyRate::Ofdm(fullpipe_wifi::phy::OfdmRate::Mbps6);
    assert!(channel.detects(rate, channel.received_dbm(51.3, 0.0)));
    assert!(!channel.detects(rate, channel.received_dbm(51.6, 0.0)));
    // With a lower power threshold, the SNR of 4 dB over 20 MHz decides, also for a PPDU of 80 MHz: 94.9 m.
    let channel = ChannelConfig { detection_dbm: -120.0, ..channel };
    let wide = MultiStreamRate { mcs: 0, streams: 2, width: ChannelWidth::Mhz80, guard: GuardInterval::Long };
    for rate in [rate, PhyRate::Vht(wide)] {
        assert!(channel.detects(rate, channel.received_dbm(94.7, 0.0)));
        assert!(!channel.detects(rate, channel.received_dbm(95.1, 0.0)));
    }
}
