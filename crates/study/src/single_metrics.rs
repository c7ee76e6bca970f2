//! The metrics in the summary of a scenario that is run without a study.

/// The metrics of a scenario that is run without a study, over all flows. Rates and similar metrics are those of main
/// directions.
pub(crate) static SINGLE_METRICS: [[&str; 4]; 10] = [
    [
        "goodput_bps",
        "bit/s",
        "Mean goodput of a flow in its main direction, each over its own part of the measured interval",
        "mean(present(goodput_bps[\"*.main\"]))",
    ],
    [
        "throughput_bps",
        "bit/s",
        "Bits received at the IP layer in main directions in the measured interval, over the time from its first to its last reception",
        "sum(measured_rx_bytes[\"*.main\"]) * 8 / (max(present(last_rx_s[\"*.main\"])) - min(present(measured_from_s[\"*.main\"])))",
    ],
    ["tx_packets", "packets", "Packets sent in main directions", "sum(tx_packets[\"*.main\"])"],
    ["rx_packets", "packets", "Packets received in main directions", "sum(rx_packets[\"*.main\"])"],
    ["lost_packets", "packets", "Packets lost in main directions", "sum(lost_packets[\"*.main\"])"],
    [
        "loss_ratio",
        "",
        "Packets lost over packets sent in main directions in the measured interval",
        "sum(measured_lost_packets[\"*.main\"]) / sum(measured_tx_packets[\"*.main\"])",
    ],
    [
        "mean_delay_s",
        "s",
        "Mean delay of the packets received in main directions in the measured interval",
        "sum(present(measured_delay_sum_s[\"*.main\"])) / sum(measured_rx_packets[\"*.main\"])",
    ],
    [
        "mean_jitter_s",
        "s",
        "Mean jitter of the packets received in main directions in the measured interval",
        "sum(present(measured_jitter_sum_s[\"*.main\"])) / sum(measured_rx_packets[\"*.main\"])",
    ],
    ["opposite_tx_packets", "packets", "Packets sent in opposite directions", "sum(tx_packets[\"*.opposite\"])"],
    ["opposite_lost_packets", "packets", "Packets lost in opposite directions", "sum(lost_packets[\"*.opposite\"])"],
];

/// Returns the expression of a metric in the summary of a scenario that is run without a study.
pub(crate) fn expression_of_summary(metric: &str) -> Option<&'static str> {
    SINGLE_METRICS.iter().find(|[name, ..]| *name == metric).map(|[.., expression]| *expression)
}
