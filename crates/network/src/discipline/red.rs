//! RED, random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM Transactions on Networking 1(4), 1993), with the "gentle" slope (Floyd, 2000) and Adaptive RED (Floyd,
//! Gummadi and Shenker, "Adaptive RED", 2001).

use crate::queue::Limit;
use fullpipe_units::{Duration, Rate, math};

/// What RED counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedUnit {
    /// Packets; each is as likely to be dropped as any other.
    #[default]
    Packets,
    /// Bytes; a packet's probability is in proportion to its size.
    Bytes,
}

/// How Adaptive RED moves the maximum probability. The default is that of the paper, section 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveRedSpecification {
    /// Time between adaptations.
    pub interval: Duration,
    /// Largest increase (alpha; never more than a quarter of the present value).
    pub increase: f64,
    /// Factor of a decrease (beta).
    pub decrease: f64,
    /// Smallest maximum probability.
    pub lowest: f64,
    /// Largest maximum probability.
    pub highest: f64,
}

impl Default for AdaptiveRedSpecification {
    fn default() -> Self {
        AdaptiveRedSpecification {
            interval: Duration::from_millis(500),
            increase: 0.01,
            decrease: 0.9,
            lowest: 0.01,
            highest: 0.5,
        }
    }
}

/// Settings of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSpecification {
    /// Of the queue itself.
    pub limit: Limit,
    /// Unit of the average and the thresholds.
    pub unit: RedUnit,
    /// Average below which nothing is dropped.
    pub min_threshold: f64,
    /// Average at which packets are dropped with [`RedSpecification::max_probability`].
    pub max_threshold: f64,
    /// Probability at the upper threshold (max_p).
    pub max_probability: f64,
    /// Weight of the present queue in the average (w_q).
    pub weight: f64,
    /// Whether the probability rises to 1 between the upper threshold and twice that, instead of at once.
    pub gentle: bool,
    /// Size on the wire of a typical packet: how fast the average of an idle queue decays.
    pub mean_packet_bytes: u32,
    /// Size on the wire of the largest packet, to which probabilities belong if bytes are counted.
    pub max_packet_bytes: u32,
    /// Rate at which the queue is emptied.
    pub rate: Rate,
    /// Whether ECN-capable packets are marked instead of dropped while the average is below the upper threshold.
    pub ecn: bool,
    /// Adaptive RED.
    pub adaptive: Option<AdaptiveRedSpecification>,
}

impl RedSpecification {
    /// RED in packets as its authors recommend (Floyd 1997): 5 and 15 packets, 0.1, w_q 0.002, gentle.
    pub fn recommended(limit: Limit, rate: Rate) -> Self {
        RedSpecification {
            limit,
            unit: RedUnit::Packets,
            min_threshold: 5.0,
            max_threshold: 15.0,
            max_probability: 0.1,
            weight: 0.002,
            gentle: true,
            mean_packet_bytes: 1500,
            max_packet_bytes: 1518,
            rate,
            ecn: false,
            adaptive: None,
        }
    }

    /// Adaptive RED with all else derived from rate and target delay (section 5 of the paper): the lower threshold is
    /// half of what leaves in the target delay, at least 5 packets; the upper three times that; w_q = 1 - exp(-1/C)
    /// with C the rate in packets per second.
    pub fn adaptive(limit: Limit, rate: Rate, target_delay: Duration) -> Self {
        let base = Self::recommended(limit, rate);
        let packets_per_second = rate.bits_per_second() as f64 / (8.0 * f64::from(base.mean_packet_bytes));
        let min_threshold = (target_delay.as_secs_f64() * packets_per_second / 2.0).max(5.0);
        RedSpecification {
            min_threshold,
            max_threshold: 3.0 * min_threshold,
            weight: 1.0 - math::exp(-1.0 / packets_per_second),
            adaptive: Some(AdaptiveRedSpecification::default()),
            ..base
        }
    }
}
