//! The path model of BBRv3: rounds, bandwidth, round-trip time and aggregation.
//!
//! **Source.** draft-ietf-ccwg-bbr-06, sections "Updating Network Path Model Parameters" (up to `extra_acked`) and
//! "ProbeRTT Logic" (`UpdateMinRTT`).

use crate::bbr::{ProbeRttAppLimit, RoundCounter, WindowedMax, bytes_in};
use crate::control::{Ack, WindowState};
use fullpipe_units::{Duration, Instant};

const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

/// The rate sample of an acknowledgment (the draft's RS).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSample {
    /// The delivery rate; 0 if there is no sample.
    pub(crate) rate_bps: u64,
    pub(crate) delivered_bytes: u64,
    /// Bytes that had been delivered when the packet was sent; `None` if there is no sample.
    pub(crate) prior_delivered_bytes: Option<u64>,
    /// Bytes in flight when the packet was sent, including that packet.
    pub(crate) tx_in_flight_bytes: u64,
    /// Bytes lost since the packet was sent.
    pub(crate) lost_bytes: u64,
    pub(crate) app_limited: bool,
}

impl RateSample {
    pub(crate) fn of(ack: &Ack, model: &Model) -> RateSample {
        let Some(rate) = &ack.rate else { return RateSample::default() };
        RateSample {
            rate_bps: rate.bits_per_second(),
            delivered_bytes: rate.delivered_bytes,
            prior_delivered_bytes: Some(rate.prior_delivered_bytes),
            tx_in_flight_bytes: rate.in_flight_bytes,
            lost_bytes: rate.lost_bytes,
            app_limited: rate.app_limited || model.own_limit.covers(rate.prior_delivered_bytes),
        }
    }
}

/// The model of the path.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) rounds: RoundCounter,
    pub(crate) rounds_since_probe_up: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) own_limit: ProbeRttAppLimit,
    /// The rate to send at: the bandwidth, limited by the short-term bound.
    pub(crate) bw_bps: u64,
    /// The largest rate of the last and of the current cycle.
    cycles_bps: [u64; 2],
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    probe_rtt_min_delay: Duration,
    pub(crate) probe_rtt_min_at: Instant,
    pub(crate) probe_rtt_expired: bool,
    extra_acked: WindowedMax,
    extra_acked_rounds: u64,
    epoch_at: Instant,
    epoch_bytes: u64,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            rounds: RoundCounter::default(),
            rounds_since_probe_up: 0,
            delivered_bytes: 0,
            own_limit: ProbeRttAppLimit::default(),
            bw_bps: 0,
            cycles_bps: [0; 2],
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            probe_rtt_min_delay: Duration::MAX,
            probe_rtt_min_at: Instant::ZERO,
            probe_rtt_expired: false,
            extra_acked: WindowedMax::default(),
            extra_acked_rounds: 0,
            epoch_at: Instant::ZERO,
            epoch_bytes: 0,
        }
    }
}

impl Model {
    /// Initializes the model when the connection is established.
    pub(crate) fn begin(&mut self, now: Instant, rtt: Option<Duration>) {
        self.min_rtt = rtt;
        self.min_rtt_at = now;
        self.probe_rtt_min_delay = rtt.unwrap_or(Duration::MAX);
        self.probe_rtt_min_at = now;
        self.epoch_at = now;
    }

    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// The smallest round-trip time of the last five seconds.
    pub(crate) fn probe_rtt_min_delay(&self) -> Option<Duration> {
        (self.probe_rtt_min_delay < Duration::MAX).then_some(self.probe_rtt_min_delay)
    }

    pub(crate) fn max_bw_bps(&self) -> u64 {
        self.cycles_bps[0].max(self.cycles_bps[1])
    }

    /// The bandwidth-delay product at this bandwidth; `None` before the first round-trip sample.
    pub(crate) fn bdp_bytes(&self, bandwidth_bps: u64) -> Option<u64> {
        self.min_rtt.map(|rtt| bytes_in(bandwidth_bps, rtt))
    }

    /// Updates the bytes delivered, and ends the marking of packets.
    pub(crate) fn on_delivery(&mut self, ack: &Ack) {
        self.delivered_bytes = ack.delivered_bytes;
        self.own_limit.on_ack(ack.delivered_bytes);
    }

    pub(crate) fn update_max_bandwidth(&mut self, sample: &RateSample) {
        self.rounds.on_ack(sample.prior_delivered_bytes, self.delivered_bytes);
        self.rounds_since_probe_up += u64::from(self.rounds.start);
        if sample.rate_bps > 0 && (sample.rate_bps >= self.max_bw_bps() || !sample.app_limited) {
            self.cycles_bps[1] = self.cycles_bps[1].max(sample.rate_bps);
        }
    }

    /// Begins the next cycle of the bandwidth filter.
    pub(crate) fn advance_max_bandwidth(&mut self) {
        if self.cycles_bps[1] > 0 {
            self.cycles_bps = [self.cycles_bps[1], 0];
        }
    }

    pub(crate) fn bound_bandwidth(&mut self, bw_shortterm: u64) {
        self.bw_bps = self.max_bw_bps().min(bw_shortterm);
    }

    /// Restarts the aggregation estimate after an idle period.
    pub(crate) fn restart_aggregation(&mut self, now: Instant) {
        self.epoch_at = now;
    }

    pub(crate) fn update_aggregation(&mut self, ack: &Ack, control: &WindowState, full_bw_reached: bool) {
        let mut expected = bytes_in(self.bw_bps, ack.now.saturating_since(self.epoch_at));
        if self.epoch_bytes <= expected {
            self.epoch_bytes = 0;
            self.epoch_at = ack.now;
            expected = 0;
        }
        self.epoch_bytes = self.epoch_bytes.saturating_add(ack.acked_bytes);
        let extra = self.epoch_bytes.saturating_sub(expected).min(control.cwnd_bytes);
        self.extra_acked.update(self.rounds.count, extra);
        // In Startup, only the last round counts.
        self.extra_acked_rounds = if full_bw_reached { crate::bbr::FILTER_ROUNDS } else { 1 };
    }

    pub(crate) fn extra_acked_bytes(&self) -> u64 {
        self.extra_acked.over(self.extra_acked_rounds)
    }

    pub(crate) fn update_min_rtt(&mut self, ack: &Ack) {
        self.probe_rtt_expired = ack.now > self.probe_rtt_min_at.saturating_add(PROBE_RTT_INTERVAL);
        if let Some(rtt) = ack.rtt
            && (rtt < self.probe_rtt_min_delay || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = rtt;
            self.probe_rtt_min_at = ack.now;
        }
        let expired = ack.now > self.min_rtt_at.saturating_add(MIN_RTT_WINDOW);
        let smaller = self.min_rtt.is_none_or(|rtt| self.probe_rtt_min_delay < rtt);
        if (smaller || expired) && self.probe_rtt_min_delay < Duration::MAX {
            self.min_rtt = Some(self.probe_rtt_min_delay);
            self.min_rtt_at = self.probe_rtt_min_at;
        }
    }
}
