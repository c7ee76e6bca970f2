//! Delivery-rate samples: the rate at which the network delivers data, measured at the sender.
//!
//! **Model.** When a packet is sent, the bytes delivered so far and the time of the last delivery are stored with the
//! packet. When the packet is acknowledged, the bytes delivered since then are divided by the longer of the send
//! interval and the acknowledgment interval. The result is a sample of the rate of the path. The longer interval is
//! used because acknowledgments may arrive compressed and packets may leave in bursts. A sample from a time in which
//! the application had no data to send is only a lower bound on the rate, and is marked.
//!
//! **Source.** draft-ietf-ccwg-bbr, section 4.1 (version of July 2026); Linux `net/ipv4/tcp_rate.c`.
//!
//! A transport calls [`RateSampler::on_sent`] for each packet and stores the returned state. For one acknowledgment
//! batch, it calls [`RateSampler::on_delivered`] once for each packet newly acknowledged (never twice for the same
//! packet), then [`RateSampler::finish`].

use crate::control::{DeliveryRate, PacketState};
use fullpipe_units::{Duration, Instant};

/// The state of the sampler for a connection.
#[derive(Clone, Debug)]
pub struct RateSampler {
    delivered_bytes: u64,
    lost_bytes: u64,
    /// The application-limited phase ends when more than this number of bytes is delivered; 0 outside such a phase.
    app_limited_until_bytes: u64,
    /// State for samples only; `None` if no samples are taken. It is boxed because most connections of a large run take
    /// none.
    sampling: Option<Box<Sampling>>,
}

#[derive(Clone, Debug, Default)]
struct Sampling {
    delivered_at: Instant,
    /// Send time of the packet most recently delivered, or of the first packet of a flight.
    first_sent_at: Instant,
    // State of the most recently sent packet of the current batch.
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
    /// Creates a sampler for a connection that has delivered nothing.
    pub fn new() -> Self {
        RateSampler { delivered_bytes: 0, lost_bytes: 0, app_limited_until_bytes: 0, sampling: Some(Box::default()) }
    }

    /// Takes no samples from now on, but still counts bytes. Must be called before the first packet is sent.
    pub(crate) fn disable(&mut self) {
        self.sampling = None;
    }

    /// Whether samples are taken.
    #[inline(always)]
    pub(crate) fn takes_samples(&self) -> bool {
        self.sampling.is_some()
    }

    /// Records that a packet of `bytes` is sent while `in_flight_bytes` are in flight. Returns the state to store for
    /// the packet.
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
            // Time with nothing in flight contains no information about the path.
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

    /// Records that a packet is newly acknowledged.
    #[inline]
    pub fn on_delivered(&mut self, now: Instant, packet: &PacketState) {
        self.delivered_bytes = self.delivered_bytes.saturating_add(packet.bytes);
        if let Some(sampling) = &mut self.sampling {
            sampling.on_delivered(now, packet);
        }
    }

    /// As [`RateSampler::on_delivered`] for packets of this number of bytes, if no samples are taken.
    #[inline(always)]
    pub(crate) fn on_delivered_unsampled(&mut self, bytes: u64) {
        self.delivered_bytes = self.delivered_bytes.saturating_add(bytes);
    }

    /// Records that a packet was declared lost.
    #[inline]
    pub fn on_lost(&mut self, bytes: u64) {
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
    }

    /// Ends a batch and returns its sample. Returns `None` if nothing was delivered, if samples are disabled, or if the
    /// interval is zero or shorter than `min_rtt`. A sample over a shorter interval would overestimate the rate. Such
    /// an interval results from a spurious retransmission whose original was acknowledged.
    #[inline]
    pub fn finish(&mut self, min_rtt: Duration) -> Option<DeliveryRate> {
        self.end_app_limited_phase();
        let sampling = self.sampling.as_mut().filter(|sampling| sampling.batch_any)?;
        sampling.finish(self.delivered_bytes, self.lost_bytes, min_rtt)
    }

    /// Ends the application-limited phase if all bytes in flight at its start have been delivered.
    #[inline(always)]
    pub(crate) fn end_app_limited_phase(&mut self) {
        if self.app_limited_until_bytes != 0 && self.delivered_bytes > self.app_limited_until_bytes {
            self.app_limited_until_bytes = 0;
        }
    }

    /// Records that the application has no more data to send, although the window permits more. Packets are marked as
    /// application-limited until the bytes now in flight have been delivered.
    #[inline]
    pub fn mark_app_limited(&mut self, in_flight_bytes: u64) {
        self.app_limited_until_bytes = self.delivered_bytes.saturating_add(in_flight_bytes).max(1);
    }

    /// Whether an application-limited phase is active.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until_bytes != 0
    }

    /// Bytes delivered on the connection.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// When data was last delivered; [`Instant::ZERO`] if no samples are taken.
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
        // Only the packet sent last counts. Of two packets sent at the same instant, the later one had more bytes in
        // flight before it.
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

    /// The sample of a batch, with the totals of bytes delivered and lost on the connection.
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
    fn the_samples_of_a_constant_stream_equal_its_rate() {
        // 1250 bytes per millisecond are 10 Mbit/s; the round trip takes 20 ms. This applies from the first packet sent
        // after the first acknowledgement: 20 packets are delivered between its departure and its acknowledgement,
        // 25 000 bytes in 20 ms.
        let mut sampler = RateSampler::new();
        let mut packets = Vec::new();
        for now in 0..200u64 {
            // The acknowledgement of this millisecond is handled before the departure.
            if now >= 20 {
                sampler.on_delivered(at(now), &packets[now as usize - 20]);
                let rate = sampler.finish(MS * 20).expect("a sample");
                if now >= 40 {
                    assert_eq!((rate.delivered_bytes, rate.interval), (25_000, MS * 20));
                    assert_eq!(rate.bits_per_second(), 10_000_000);
                    assert_eq!(rate.in_flight_bytes, 25_000);
                    assert_eq!(rate.prior_delivered_bytes, (now - 39) * 1_250);
                } else {
                    // Packets of the first flight: each sample has one more packet, over the time since the first
                    // departure.
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
        // The same stream, but acknowledgements arrive in groups of ten: no sample exceeds 10 Mbit/s.
        let mut sampler = RateSampler::new();
        let mut packets = Vec::new();
        for now in 0..400u64 {
            if now >= 30 && now % 10 == 0 {
                for packet in &packets[now as usize - 30..now as usize - 20] {
                    sampler.on_delivered(at(now), packet);
                }
                let rate = sampler.finish(MS * 20).expect("a sample");
                assert!(rate.bits_per_second() <= 10_000_000, "{rate:?}");
                // Whole groups of ten over 20 or 30 ms: samples are not much lower either.
                assert!(now < 60 || rate.bits_per_second() >= 6_600_000, "{rate:?}");
            }
            packets.push(sampler.on_sent(at(now), 1_250, packets.len() as u64));
        }
    }

    #[test]
    fn a_burst_is_measured_by_its_acknowledgements_not_by_its_departure() {
        // Ten packets leave at once; from 20 ms on, the link delivers one per millisecond. The tenth is acknowledged at
        // 29 ms: 12 500 bytes in 29 ms, not in zero time.
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
    fn the_send_interval_counts_if_it_is_longer() {
        // Two packets, sent 50 ms apart, acknowledged 1 ms apart. The send interval of the second contains 20 ms of
        // silence.
        let mut sampler = RateSampler::new();
        let first = sampler.on_sent(at(0), 1_000, 0);
        let second = sampler.on_sent(at(50), 1_000, 1_000);
        sampler.on_delivered(at(69), &first);
        sampler.on_delivered(at(69), &second);
        let rate = sampler.finish(MS).expect("a sample");
        // ack_elapsed is 69 ms here; after an idle start the send interval is the longer one:
        assert_eq!((rate.delivered_bytes, rate.interval), (2_000, MS * 69));
        let third = sampler.on_sent(at(70), 1_000, 500);
        let fourth = sampler.on_sent(at(120), 1_000, 1_500);
        // The connection last delivered at 69 ms, and its newest packet left at 50 ms. Intervals: third packet 20 ms,
        // fourth 70 ms.
        sampler.on_delivered(at(121), &third);
        let rate = sampler.finish(MS).expect("a sample");
        assert_eq!(rate.interval, MS * 52);
        sampler.on_delivered(at(122), &fourth);
        let rate = sampler.finish(MS).expect("a sample");
        // fourth: delivered 1000 (third) + 1000 since 69 ms, acknowledged over 53 ms, sent over 120 - 50 = 70 ms.
        assert_eq!((rate.delivered_bytes, rate.interval), (2_000, MS * 70));
    }

    #[test]
    fn the_packet_of_a_batch_that_was_sent_last_counts_in_any_order() {
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
            // The newest packet left when 1000 bytes had been delivered, at 30 ms.
            assert_eq!((rate.prior_delivered_bytes, rate.delivered_bytes), (1_000, 2_000));
            assert_eq!(rate.interval, MS * 31);
        }
    }

    #[test]
    fn the_second_of_two_packets_sent_at_once_counts() {
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
    fn idle_time_is_excluded_from_samples() {
        let mut sampler = RateSampler::new();
        let packet = sampler.on_sent(at(0), 1_000, 0);
        sampler.on_delivered(at(20), &packet);
        sampler.finish(MS);
        // Nothing is in flight for a second; the sample covers 20 ms.
        let packet = sampler.on_sent(at(1_020), 1_000, 0);
        sampler.on_delivered(at(1_040), &packet);
        let rate = sampler.finish(MS).expect("a sample");
        assert_eq!((rate.delivered_bytes, rate.interval), (1_000, MS * 20));
    }

    #[test]
    fn no_sample_is_returned_without_a_delivery_or_below_the_minimum_round_trip_time() {
        let mut sampler = RateSampler::new();
        assert!(sampler.finish(Duration::ZERO).is_none());
        let packet = sampler.on_sent(at(0), 1_000, 0);
        sampler.on_delivered(at(5), &packet);
        assert!(sampler.finish(MS * 20).is_none());
        assert!(sampler.finish(Duration::ZERO).is_none(), "a batch is used once");
        // A zero interval gives no rate.
        let packet = sampler.on_sent(at(9), 1_000, 0);
        sampler.on_delivered(at(9), &packet);
        assert!(sampler.finish(Duration::ZERO).is_none());
        // An interval equal to the minimum is accepted.
        let packet = sampler.on_sent(at(10), 1_000, 0);
        sampler.on_delivered(at(30), &packet);
        assert!(sampler.finish(MS * 20).is_some());
    }

    #[test]
    fn packets_are_marked_until_the_bytes_in_flight_are_delivered() {
        let mut sampler = RateSampler::new();
        let first = sampler.on_sent(at(0), 1_000, 0);
        assert!(!first.app_limited);
        sampler.mark_app_limited(1_000);
        assert!(sampler.is_app_limited());
        let second = sampler.on_sent(at(1), 1_000, 1_000);
        assert!(second.app_limited);
        // 1000 bytes delivered: not more than the mark.
        sampler.on_delivered(at(20), &first);
        assert!(!sampler.finish(MS).expect("a sample").app_limited);
        assert!(sampler.is_app_limited());
        sampler.on_delivered(at(21), &second);
        assert!(sampler.finish(MS).expect("a sample").app_limited);
        assert!(!sampler.is_app_limited());
        // With nothing delivered and nothing in flight, the phase is still active.
        let mut sampler = RateSampler::new();
        sampler.mark_app_limited(0);
        assert!(sampler.is_app_limited());
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
