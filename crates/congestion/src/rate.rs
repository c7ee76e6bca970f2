//! Delivery-rate samples: how fast the network delivered, seen from the sender.
//!
//! **Model.** When a packet leaves, it takes along how much had been delivered and when. When it is acknowledged, what
//! was delivered in between, over the longer of the time it took to send that and the time it took to acknowledge it,
//! is a sample of the path's rate. The longer of both, because acknowledgements may arrive compressed and packets may
//! leave in bursts. A sample from a time in which the application had nothing to send says only that the path carries
//! at least so much, and is marked.
//!
//! **Source.** draft-ietf-ccwg-bbr, section 4.1 (version of July 2026); Linux `net/ipv4/tcp_rate.c`.
//!
//! A transport calls [`RateSampler::on_sent`] for each packet and keeps the state; for one acknowledgement batch
//! [`RateSampler::on_delivered`] once for each packet newly acknowledged (never twice for the same), then
//! [`RateSampler::finish`].

use crate::control::{DeliveryRate, PacketState};
use fullpipe_units::{Duration, Instant};

/// The connection's part of the sampler.
#[derive(Clone, Debug)]
pub struct RateSampler {
    delivered_bytes: u64,
    lost_bytes: u64,
    /// The application-limited phase ends when more than this is delivered; 0 outside such a phase.
    app_limited_until_bytes: u64,
    /// What only samples need; `None` where none are taken. Apart: most connections of a large run take none.
    sampling: Option<Box<Sampling>>,
}

#[derive(Clone, Debug, Default)]
struct Sampling {
    delivered_at: Instant,
    /// Departure of the packet most recently found delivered, or of the first of a flight.
    first_sent_at: Instant,
    // The packet of the current batch that was sent last.
    batch_prior_delivered_bytes: u64,
    batch_prior_delivered_at: Instant,
    batch_send_elapsed: Duration,
    batch_in_flight_bytes: u64,
    batch_lost_bytes: u64,
    batch_app_limited: bool,
    batch_any: bool,
    /// Bytes and interval of the newest sample.
    newest: (u64, Duration),
}

impl Default for RateSampler {
    fn default() -> Self {
        Self::new()
    }
}

impl RateSampler {
    /// A sampler of a connection that has delivered nothing.
    pub fn new() -> Self {
        RateSampler { delivered_bytes: 0, lost_bytes: 0, app_limited_until_bytes: 0, sampling: Some(Box::default()) }
    }

    /// Takes no samples from now on, but still counts. To be called before the first packet leaves.
    pub(crate) fn disable(&mut self) {
        self.sampling = None;
    }

    /// Whether samples are taken.
    #[inline(always)]
    pub(crate) fn takes_samples(&self) -> bool {
        self.sampling.is_some()
    }

    /// A packet of `bytes` leaves, on top of `in_flight_bytes` before it. Returns what to remember of it.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64, in_flight_bytes: u64) -> PacketState {
        let state = PacketState {
            sent_at: now,
            bytes,
            delivered_bytes: self.delivered_bytes,
            in_flight_bytes: in_flight_bytes.saturating_add(bytes),
            lost_bytes: self.lost_bytes,
            ..PacketState::default()
        };
        let Some(sampling) = &mut self.sampling else { return state };
        if in_flight_bytes == 0 {
            // Time in which nothing was in flight says nothing about the path.
            sampling.first_sent_at = now;
            sampling.delivered_at = now;
        }
        PacketState {
            delivered_at: sampling.delivered_at,
            first_sent_at: sampling.first_sent_at,
            app_limited: self.app_limited_until_bytes != 0,
            ..state
        }
    }

    /// A packet is newly acknowledged.
    #[inline]
    pub fn on_delivered(&mut self, now: Instant, packet: &PacketState) {
        self.delivered_bytes = self.delivered_bytes.saturating_add(packet.bytes);
        if let Some(sampling) = &mut self.sampling {
            sampling.on_delivered(now, packet);
        }
    }

    /// As [`RateSampler::on_delivered`] for packets of so many bytes, where no samples are taken.
    #[inline(always)]
    pub(crate) fn on_delivered_unsampled(&mut self, bytes: u64) {
        self.delivered_bytes = self.delivered_bytes.saturating_add(bytes);
    }

    /// A packet was declared lost.
    #[inline]
    pub fn on_lost(&mut self, bytes: u64) {
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
    }

    /// Ends a batch. `None` if nothing was delivered, or over an interval shorter than `min_rtt` (a spurious
    /// retransmission whose original was acknowledged), which would overestimate the rate.
    #[inline]
    pub fn finish(&mut self, min_rtt: Duration) -> Option<DeliveryRate> {
        self.end_app_limited_phase();
        let sampling = self.sampling.as_mut().filter(|sampling| sampling.batch_any)?;
        sampling.finish(self.delivered_bytes, self.lost_bytes, min_rtt)
    }

    /// Ends the application-limited phase if all that was in flight at its start has been delivered.
    #[inline(always)]
    pub(crate) fn end_app_limited_phase(&mut self) {
        if self.app_limited_until_bytes != 0 && self.delivered_bytes > self.app_limited_until_bytes {
            self.app_limited_until_bytes = 0;
        }
    }

    /// The application has nothing more to send though the window would allow it: packets are marked until what is in
    /// flight now has been delivered.
    #[inline]
    pub fn mark_app_limited(&mut self, in_flight_bytes: u64) {
        self.app_limited_until_bytes = self.delivered_bytes.saturating_add(in_flight_bytes).max(1);
    }

    /// Whether an application-limited phase lasts.
    #[inline]
    pub fn app_limited(&self) -> bool {
        self.app_limited_until_bytes != 0
    }

    /// Bytes delivered on the connection.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// When the last of them was.
    #[inline]
    pub fn delivered_at(&self) -> Instant {
        self.sampling.as_ref().map_or(Instant::ZERO, |sampling| sampling.delivered_at)
    }

    /// Bytes declared lost on the connection.
    #[inline]
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// The newest sample in bits per second; 0 before the first.
    pub(crate) fn newest_bits_per_second(&self) -> u64 {
        let (delivered_bytes, interval) =
            self.sampling.as_ref().map_or((0, Duration::ZERO), |sampling| sampling.newest);
        DeliveryRate { delivered_bytes, interval, ..DeliveryRate::default() }.bits_per_second()
    }
}

impl Sampling {
    #[inline]
    fn on_delivered(&mut self, now: Instant, packet: &PacketState) {
        self.delivered_at = now;
        // Only the packet sent last counts; of two sent in the same instant, the later found more in flight.
        let newest = packet.sent_at > self.first_sent_at
            || packet.sent_at == self.first_sent_at && packet.in_flight_bytes >= self.batch_in_flight_bytes;
        if !self.batch_any || newest {
            self.batch_any = true;
            self.batch_prior_delivered_bytes = packet.delivered_bytes;
            self.batch_prior_delivered_at = packet.delivered_at;
            self.batch_send_elapsed = packet.sent_at.saturating_since(packet.first_sent_at);
            self.batch_in_flight_bytes = packet.in_flight_bytes;
            self.batch_lost_bytes = packet.lost_bytes;
            self.batch_app_limited = packet.app_limited;
            self.first_sent_at = packet.sent_at;
        }
    }

    /// The sample of a batch, when so much was delivered and lost on the connection.
    #[inline]
    fn finish(&mut self, delivered_bytes: u64, lost_bytes: u64, min_rtt: Duration) -> Option<DeliveryRate> {
        self.batch_any = false;
        let ack_elapsed = self.delivered_at.saturating_since(self.batch_prior_delivered_at);
        let interval = self.batch_send_elapsed.max(ack_elapsed);
        if interval < min_rtt || interval.is_zero() {
            return None;
        }
        let delivered_bytes = delivered_bytes.saturating_sub(self.batch_prior_delivered_bytes);
        self.newest = (delivered_bytes, interval);
        Some(DeliveryRate {
            delivered_bytes,
            interval,
            prior_delivered_bytes: self.batch_prior_delivered_bytes,
            lost_bytes: lost_bytes.saturating_sub(self.batch_lost_bytes),
            in_flight_bytes: self.batch_in_flight_bytes,
            app_limited: self.batch_app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + MS * milliseconds
    }

    #[test]
    fn a_constant_stream_gives_its_rate() {
        // 1250 bytes each millisecond are 10 Mbit/s; the round trip takes 20 ms. From the first packet sent after the first
        // acknowledgement on, 20 packets are delivered between its departure and its acknowledgement: 25 000 bytes in 20 ms.
        let mut sampler = RateSampler::new();
        let mut packets = Vec::new();
        for now in 0..200u64 {
            // The acknowledgement of this millisecond comes before its departure.
            if now >= 20 {
                sampler.on_delivered(at(now), &packets[now as usize - 20]);
                let rate = sampler.finish(MS * 20).expect("a sample");
                if now >= 40 {
                    assert_eq!((rate.delivered_bytes, rate.interval), (25_000, MS * 20));
                    assert_eq!(rate.bits_per_second(), 10_000_000);
                    assert_eq!(rate.in_flight_bytes, 25_000);
                    assert_eq!(rate.prior_delivered_bytes, (now - 39) * 1_250);
                } else {
                    // Packets of the first flight: one more is delivered with each, over the time since the first left.
                    assert_eq!(rate.delivered_bytes, (now - 19) * 1_250);
                    assert_eq!(rate.interval, MS * 20 + MS * u64::from(now > 20) * (now - 20));
                }
                assert!(!rate.app_limited);
            }
            let in_flight = 1_250 * now.min(19);
            packets.push(sampler.on_sent(at(now), 1_250, in_flight));
        }
        assert_eq!(sampler.delivered_bytes(), 180 * 1_250);
        assert_eq!(sampler.delivered_at(), at(199));
    }

    #[test]
    fn compressed_acknowledgements_do_not_raise_the_rate() {
        // The same stream, but acknowledgements are held back and arrive ten at a time: no sample is above 10 Mbit/s.
        let mut sampler = RateSampler::new();
        let mut packets = Vec::new();
        for now in 0..400u64 {
            if now >= 30 && now % 10 == 0 {
                for packet in &packets[now as usize - 30..now as usize - 20] {
                    sampler.on_delivered(at(now), packet);
                }
                let rate = sampler.finish(MS * 20).expect("a sample");
                assert!(rate.bits_per_second() <= 10_000_000, "{rate:?}");
                // Whole groups of ten over 20 or 30 ms: never far below either.
                assert!(now < 60 || rate.bits_per_second() >= 6_600_000, "{rate:?}");
            }
            packets.push(sampler.on_sent(at(now), 1_250, packets.len() as u64));
        }
    }

    #[test]
    fn a_burst_is_measured_by_the_acknowledgements_and_not_by_its_departure() {
        // Ten packets leave at once; the link delivers one per millisecond from 20 ms on. The tenth is acknowledged at
        // 29 ms: 12 500 bytes in 29 ms, not in none.
        let mut sampler = RateSampler::new();
        let packets: Vec<_> = (0..10).map(|n| sampler.on_sent(at(0), 1_250, n * 1_250)).collect();
        let mut last = None;
        for (n, packet) in packets.iter().enumerate() {
            sampler.on_delivered(at(20 + n as u64), packet);
            last = sampler.finish(MS * 20);
        }
        let rate = last.expect("a sample");
        assert_eq!((rate.delivered_bytes, rate.interval), (12_500, MS * 29));
    }

    #[test]
    fn the_send_interval_counts_when_it_is_longer() {
        // Two packets, sent 50 ms apart, acknowledged 1 ms apart: 20 ms of silence lie in the send interval of the second.
        let mut sampler = RateSampler::new();
        let first = sampler.on_sent(at(0), 1_000, 0);
        let second = sampler.on_sent(at(50), 1_000, 1_000);
        sampler.on_delivered(at(69), &first);
        sampler.on_delivered(at(69), &second);
        let rate = sampler.finish(MS).expect("a sample");
        // ack_elapsed is 69 ms here; after an idle start the send interval rules:
        assert_eq!((rate.delivered_bytes, rate.interval), (2_000, MS * 69));
        let third = sampler.on_sent(at(70), 1_000, 500);
        let fourth = sampler.on_sent(at(120), 1_000, 1_500);
        // The connection had last delivered at 69 ms, its newest packet left at 50 ms: third: 20 ms, fourth: 70 ms.
        sampler.on_delivered(at(121), &third);
        let rate = sampler.finish(MS).expect("a sample");
        assert_eq!(rate.interval, MS * 52);
        sampler.on_delivered(at(122), &fourth);
        let rate = sampler.finish(MS).expect("a sample");
        // fourth: delivered 1000 (third) + 1000 since 69 ms, acknowledged over 53 ms, sent over 120 - 50 = 70 ms.
        assert_eq!((rate.delivered_bytes, rate.interval), (2_000, MS * 70));
    }

    #[test]
    fn of_a_batch_the_packet_sent_last_counts_whatever_the_order() {
        for newest_first in [false, true] {
            let mut sampler = RateSampler::new();
            let old = sampler.on_sent(at(0), 1_000, 0);
            let first = sampler.on_sent(at(10), 1_000, 1_000);
            sampler.on_delivered(at(30), &old);
            sampler.finish(MS);
            let newest = sampler.on_sent(at(31), 1_000, 1_000);
            let order = if newest_first { [&newest, &first] } else { [&first, &newest] };
            for packet in order {
                sampler.on_delivered(at(60), packet);
            }
            let rate = sampler.finish(MS).expect("a sample");
            // newest left when 1000 bytes had been delivered, at 30 ms.
            assert_eq!((rate.prior_delivered_bytes, rate.delivered_bytes), (1_000, 2_000));
            assert_eq!(rate.interval, MS * 31);
        }
    }

    #[test]
    fn of_two_packets_sent_at_once_the_second_counts() {
        for second_first in [false, true] {
            let mut sampler = RateSampler::new();
            let first = sampler.on_sent(at(0), 1_000, 0);
            let second = sampler.on_sent(at(0), 1_000, 1_000);
            let order = if second_first { [&second, &first] } else { [&first, &second] };
            for packet in order {
                sampler.on_delivered(at(20), packet);
            }
            assert_eq!(sampler.finish(MS).expect("a sample").in_flight_bytes, 2_000);
        }
    }

    #[test]
    fn idle_time_is_not_measured() {
        let mut sampler = RateSampler::new();
        let packet = sampler.on_sent(at(0), 1_000, 0);
        sampler.on_delivered(at(20), &packet);
        sampler.finish(MS);
        // Nothing in flight for a second; the sample covers 20 ms.
        let packet = sampler.on_sent(at(1_020), 1_000, 0);
        sampler.on_delivered(at(1_040), &packet);
        let rate = sampler.finish(MS).expect("a sample");
        assert_eq!((rate.delivered_bytes, rate.interval), (1_000, MS * 20));
    }

    #[test]
    fn no_sample_without_a_delivery_or_below_the_minimum_round_trip() {
        let mut sampler = RateSampler::new();
        assert!(sampler.finish(Duration::ZERO).is_none());
        let packet = sampler.on_sent(at(0), 1_000, 0);
        sampler.on_delivered(at(5), &packet);
        assert!(sampler.finish(MS * 20).is_none());
        assert!(sampler.finish(Duration::ZERO).is_none(), "a batch is used once");
        // No time at all gives no rate.
        let packet = sampler.on_sent(at(9), 1_000, 0);
        sampler.on_delivered(at(9), &packet);
        assert!(sampler.finish(Duration::ZERO).is_none());
        // Exactly the minimum is good.
        let packet = sampler.on_sent(at(10), 1_000, 0);
        sampler.on_delivered(at(30), &packet);
        assert!(sampler.finish(MS * 20).is_some());
    }

    #[test]
    fn packets_are_marked_until_what_was_in_flight_is_delivered() {
        let mut sampler = RateSampler::new();
        let first = sampler.on_sent(at(0), 1_000, 0);
        assert!(!first.app_limited);
        sampler.mark_app_limited(1_000);
        assert!(sampler.app_limited());
        let second = sampler.on_sent(at(1), 1_000, 1_000);
        assert!(second.app_limited);
        // 1000 bytes delivered: not more than the mark.
        sampler.on_delivered(at(20), &first);
        assert!(!sampler.finish(MS).expect("a sample").app_limited);
        assert!(sampler.app_limited());
        sampler.on_delivered(at(21), &second);
        assert!(sampler.finish(MS).expect("a sample").app_limited);
        assert!(!sampler.app_limited());
        // With nothing delivered and nothing in flight the phase is one all the same.
        let mut sampler = RateSampler::new();
        sampler.mark_app_limited(0);
        assert!(sampler.app_limited());
    }

    #[test]
    fn losses_between_departure_and_acknowledgement_are_reported() {
        let mut sampler = RateSampler::new();
        sampler.on_lost(700);
        let packet = sampler.on_sent(at(0), 1_000, 0);
        assert_eq!(packet.lost_bytes, 700);
        sampler.on_lost(300);
        sampler.on_lost(400);
        sampler.on_delivered(at(20), &packet);
        assert_eq!(sampler.finish(MS).expect("a sample").lost_bytes, 700);
        assert_eq!(sampler.lost_bytes(), 1_400);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut sampler = RateSampler::new();
        let packet = sampler.on_sent(Instant::NEVER, u64::MAX, u64::MAX);
        for _ in 0..3 {
            sampler.on_lost(u64::MAX);
            sampler.on_delivered(Instant::ZERO, &packet);
            sampler.mark_app_limited(u64::MAX);
        }
        sampler.finish(Duration::ZERO);
        assert_eq!(sampler.delivered_bytes(), u64::MAX);
    }
}
