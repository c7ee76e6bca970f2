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
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    delivered_bytes: u64,
    delivered_at: Instant,
    /// Departure of the packet most recently found delivered, or of the first of a flight.
    first_sent_at: Instant,
    lost_bytes: u64,
    /// The application-limited phase ends when more than this is delivered; 0 outside such a phase.
    app_limited_until_bytes: u64,
    // The packet of the current batch that was sent last.
    batch_prior_delivered_bytes: u64,
    batch_prior_delivered_at: Instant,
    batch_send_elapsed: Duration,
    batch_in_flight_bytes: u64,
    batch_lost_bytes: u64,
    batch_app_limited: bool,
    batch_any: bool,
}

impl RateSampler {
    /// A sampler of a connection that has delivered nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet of `bytes` leaves, on top of `in_flight_bytes` before it. Returns what to remember of it.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64, in_flight_bytes: u64) -> PacketState {
        if in_flight_bytes == 0 {
            // Time in which nothing was in flight says nothing about the path.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        PacketState {
            sent_at: now,
            bytes,
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight_bytes: in_flight_bytes.saturating_add(bytes),
            lost_bytes: self.lost_bytes,
            app_limited: self.app_limited_until_bytes != 0,
        }
    }

    /// A packet is newly acknowledged.
    #[inline]
    pub fn on_delivered(&mut self, now: Instant, packet: &PacketState) {
        self.delivered_bytes = self.delivered_bytes.saturating_add(packet.bytes);
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

    /// A packet was declared lost.
    #[inline]
    pub fn on_lost(&mut self, bytes: u64) {
        self.lost_bytes = self.lost_bytes.saturating_add(bytes);
    }

    /// Ends a batch. `None` if nothing was delivered, or over an interval shorter than `min_rtt` (a spurious
    /// retransmission whose original was acknowledged), which would overestimate the rate.
    #[inline]
    pub fn finish(&mut self, min_rtt: Duration) -> Option<DeliveryRate> {
        if self.app_limited_until_bytes != 0 && self.delivered_bytes > self.app_limited_until_bytes {
            self.app_limited_until_bytes = 0;
        }
        if !self.batch_any {
            return None;
        }
        self.batch_any = false;
        let ack_elapsed = self.delivered_at.saturating_since(self.batch_prior_delivered_at);
        let interval = self.batch_send_elapsed.max(ack_elapsed);
        if interval < min_rtt || interval.is_zero() {
            return None;
        }
        Some(DeliveryRate {
            delivered_bytes: self.delivered_bytes.saturating_sub(self.batch_prior_delivered_bytes),
            interval,
            prior_delivered_bytes: self.batch_prior_delivered_bytes,
            lost_bytes: self.lost_bytes.saturating_sub(self.batch_lost_bytes),
            in_flight_bytes: self.batch_in_flight_bytes,
            app_limited: self.batch_app_limited,
        })
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
        self.delivered_at
    }

    /// Bytes declared lost on the connection.
    #[inline]
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }
}
