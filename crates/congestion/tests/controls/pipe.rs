//! A simulator of flows through one bottleneck, with real pacing and real rate samples.
//!
//! **Model.** A packet enters the queue of the bottleneck when it is sent. It is dropped if the queue is full, or at random after
//! the queue, and marked if more than a threshold of bytes is queued. Each packet is acknowledged separately, one round-trip time
//! after it left the queue. A packet is lost when a packet sent three or more after it is acknowledged. Lost data is sent again
//! as a normal packet. The sender is that of RFC 9002 section 7: one reduction per recovery, which lasts until a packet sent
//! after its start is acknowledged.

use crate::simulator::{MSS, set_codepoint};
use fullpipe_congestion::catalogue::{ControlOptions, create, initial_window_bytes};
use fullpipe_congestion::pacing::Pacer;
use fullpipe_congestion::rate::RateSampler;
use fullpipe_congestion::{
    Ack, CongestionEvent, ControlRequirements, Controller, PacketState, RecoveryExit, Timeout, WindowState,
};
use fullpipe_units::{Duration, Instant, RandomStream};
use std::collections::VecDeque;

const REORDERING: u64 = 3;
const TIMEOUT: Duration = Duration::from_secs(1);

/// The bottleneck.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    pub(crate) rate_bps: u64,
    pub(crate) buffer_bytes: u64,
    /// Packets are marked if more than this number of bytes is queued.
    pub(crate) mark_above_bytes: u64,
    pub(crate) loss: f64,
    /// The number, from 1, of a packet that is lost after the queue; 0 for none.
    pub(crate) lose_number: u64,
    /// Packets that arrive from the first to the second instant are lost.
    pub(crate) outage: (Instant, Instant),
    arrivals: u64,
    random: RandomStream,
    free_at: Instant,
    // The integral of the queue over time, in byte-seconds, up to `counted_at`.
    area: f64,
    counted_at: Instant,
    pub(crate) most_queued_bytes: u64,
    pub(crate) drops: u64,
}

impl Bottleneck {
    /// Bytes in the queue, including the packet in transmission.
    pub(crate) fn queue_bytes(&self, now: Instant) -> u64 {
        (self.free_at.saturating_since(now).as_secs_f64() * self.rate_bps as f64 / 8.0).round() as u64
    }

    /// Adds to the integral. The queue falls at the rate of the link until it is empty: a trapezium for each interval without an
    /// arrival.
    fn count(&mut self, now: Instant) {
        let rate = self.rate_bps as f64 / 8.0;
        let before = self.free_at.saturating_since(self.counted_at).as_secs_f64();
        let after = self.free_at.saturating_since(now).as_secs_f64();
        self.area += (before * before - after * after) / 2.0 * rate;
        self.counted_at = now;
    }

    /// The time at which the packet leaves the queue, and whether it is marked; `None` if it is lost.
    fn pass(&mut self, now: Instant, bytes: u64) -> Option<(Instant, bool)> {
        self.count(now);
        let queue = self.queue_bytes(now);
        if queue + bytes > self.buffer_bytes {
            self.drops += 1;
            return None;
        }
        self.most_queued_bytes = self.most_queued_bytes.max(queue + bytes);
        let took = Duration::from_nanos(bytes * 8_000_000_000 / self.rate_bps);
        self.free_at = self.free_at.max(now) + took;
        self.arrivals += 1;
        let scripted = self.arrivals == self.lose_number || now >= self.outage.0 && now < self.outage.1;
        let lost = scripted || self.loss > 0.0 && self.random.bernoulli(self.loss);
        (!lost).then_some((self.free_at, queue > self.mark_above_bytes))
    }
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    state: PacketState,
}

/// An acknowledgement in transit.
#[derive(Clone, Copy, Debug)]
struct Returning {
    at: Instant,
    number: u64,
    marked: bool,
}

/// One flow.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) control: WindowState,
    pub(crate) controller: Box<dyn Controller>,
    signals: ControlRequirements,
    rtt: Duration,
    /// The application has no data to send from the first to the second instant.
    pub(crate) pause: (Instant, Instant),
    begins_at: Instant,
    established: bool,
    sampler: RateSampler,
    pacer: Pacer,
    flight: VecDeque<Packet>,
    returning: VecDeque<Returning>,
    next_number: u64,
    pub(crate) in_flight_bytes: u64,
    recovery_end: Option<u64>,
    in_timeout: bool,
    /// Losses of packets before this one have caused a reduction.
    reduced_for: u64,
    /// Marks on packets before this one have caused a reduction.
    reduced_until: u64,
    round_end_bytes: u64,
    round_count: u64,
    smoothed_rtt: Duration,
    pub(crate) min_rtt: Duration,
    last_rtt: Duration,
    limited: bool,
    usage_end: u64,
    usage_bytes: u64,
    last_progress_at: Instant,
    /// Each change of `state`, with its time in seconds.
    pub(crate) states: Vec<(f64, u32)>,
}

impl Sender {
    pub(crate) fn value(&self, name: &str) -> f64 {
        let mut values = Vec::new();
        self.controller.inspect(&mut values);
        values.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no value {name}")).1
    }

    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.sampler.delivered_bytes()
    }

    pub(crate) fn lost_bytes(&self) -> u64 {
        self.sampler.lost_bytes()
    }

    /// The window in packets.
    pub(crate) fn window(&self) -> f64 {
        self.control.cwnd_bytes as f64 / MSS as f64
    }

    /// The intervals in a state, from and to, in seconds.
    pub(crate) fn stays(&self, state: u32) -> Vec<(f64, f64)> {
        let ends = self.states.iter().skip(1).map(|(at, _)| *at).chain([f64::INFINITY]);
        self.states.iter().zip(ends).filter(|((_, s), _)| *s == state).map(|((from, _), to)| (*from, to)).collect()
    }

    fn note_state(&mut self, now: Instant) {
        let mut values = Vec::new();
        self.controller.inspect(&mut values);
        if let Some((_, state)) = values.iter().find(|(name, _)| *name == "state")
            && self.states.last().is_none_or(|(_, last)| *last != *state as u32)
        {
            self.states.push((now.as_secs_f64(), *state as u32));
        }
    }

    fn pauses(&self, now: Instant) -> bool {
        now >= self.pause.0 && now < self.pause.1
    }

    /// When the next packet may leave; `NEVER` if only an acknowledgement can change that.
    fn next_send(&self, now: Instant) -> Instant {
        if !self.established {
            return self.begins_at;
        }
        if self.in_flight_bytes > 0 && self.in_flight_bytes + MSS > self.control.cwnd_bytes {
            return Instant::NEVER;
        }
        let at = now.max(self.pacer.release_at());
        if self.pauses(at) { self.pause.1 } else { at }
    }

    fn next_timeout(&self) -> Instant {
        if self.in_flight_bytes > 0 { self.last_progress_at + TIMEOUT } else { Instant::NEVER }
    }

    fn send(&mut self, bottleneck: &mut Bottleneck, now: Instant) {
        if !self.established {
            self.established = true;
            self.controller.on_established(&mut self.control, now, Some(self.rtt));
            self.smoothed_rtt = self.rtt;
            self.update_pacing();
        }
        if self.in_flight_bytes == 0 {
            self.last_progress_at = now;
        }
        let state = self.sampler.on_sent(now, MSS, self.in_flight_bytes);
        let number = self.next_number;
        self.next_number += 1;
        self.in_flight_bytes += MSS;
        self.flight.push_back(Packet { number, state });
        self.pacer.on_sent(now, MSS);
        if self.signals.on_sent {
            self.controller.on_sent(&mut self.control, &state);
            self.update_pacing();
        }
        if let Some((left_at, marked)) = bottleneck.pass(now, MSS) {
            self.returning.push_back(Returning { at: left_at + self.rtt, number, marked });
        }
        let full = self.in_flight_bytes + MSS > self.control.cwnd_bytes;
        if full || number >= self.usage_end || !self.limited && self.in_flight_bytes > self.usage_bytes {
            self.limited = full;
            self.usage_bytes = self.in_flight_bytes;
            self.usage_end = self.next_number;
        }
    }

    fn update_pacing(&mut self) {
        self.pacer.set_quantum_bytes(self.control.send_quantum_bytes);
        self.pacer.set_rate_bps(self.control.pacing_bps);
    }

    fn acknowledge(&mut self, now: Instant) {
        let Some(returning) = self.returning.pop_front() else { return };
        let place = self.flight.binary_search_by_key(&returning.number, |packet| packet.number);
        // A time-out has declared it lost before.
        let Ok(place) = place else { return };
        let packet = self.flight.remove(place).expect("it was found there");
        let prior_in_flight_bytes = self.in_flight_bytes;
        self.in_flight_bytes -= MSS;
        self.last_progress_at = now;
        self.last_rtt = now.saturating_since(packet.state.sent_at);
        self.min_rtt = self.min_rtt.min(self.last_rtt);
        let smoothed = (self.smoothed_rtt.as_nanos() * 7 + self.last_rtt.as_nanos()) / 8;
        self.smoothed_rtt = Duration::from_nanos(smoothed);
        self.sampler.on_delivered(now, &packet.state);
        let (lost_bytes, newly) = self.find_losses(now, packet.number);
        if self.recovery_end.is_some_and(|end| packet.number >= end) {
            self.leave_recovery(now, false);
        }
        if newly && self.recovery_end.is_none() {
            self.recovery_end = Some(self.next_number);
            self.reduced_for = self.next_number;
            self.reduce(now, lost_bytes, false);
        }
        if returning.marked && self.recovery_end.is_none() && packet.number >= self.reduced_until {
            self.reduced_until = self.next_number;
            if !self.signals.l4s {
                self.reduce(now, 0, true);
            }
        }
        self.tell(now, &packet.state, prior_in_flight_bytes, lost_bytes, returning.marked);
        self.update_pacing();
        self.note_state(now);
    }

    /// Returns the bytes newly lost, and whether some of them were sent after the last reduction. The others cause no reduction
    /// (RFC 9002 section 7.3.2).
    fn find_losses(&mut self, now: Instant, acked: u64) -> (u64, bool) {
        let before = self.sampler.lost_bytes();
        let mut newly = false;
        while let Some(packet) = self.flight.front().filter(|packet| packet.number + REORDERING <= acked) {
            newly |= packet.number >= self.reduced_for;
            self.lose_front(now);
        }
        (self.sampler.lost_bytes() - before, newly)
    }

    fn lose_front(&mut self, now: Instant) {
        let packet = self.flight.pop_front().expect("the flight has a packet");
        self.in_flight_bytes -= MSS;
        self.sampler.on_lost(MSS);
        self.controller.on_packet_lost(&mut self.control, now, &packet.state);
    }

    fn reduce(&mut self, now: Instant, lost_bytes: u64, ecn: bool) {
        let in_flight_bytes = self.in_flight_bytes + lost_bytes;
        let congestion = CongestionEvent { now, in_flight_bytes, lost_bytes, ecn, persistent: false };
        self.controller.on_congestion(&mut self.control, &congestion);
        if !self.signals.own_recovery && !ecn {
            self.control.cwnd_bytes = self.control.ssthresh_bytes;
        }
    }

    /// Ends the recovery, as justified or as spurious.
    pub(crate) fn leave_recovery(&mut self, now: Instant, undone: bool) {
        self.recovery_end = None;
        if !self.signals.own_recovery && !self.in_timeout {
            self.control.cwnd_bytes = self.control.ssthresh_bytes;
        }
        self.in_timeout = false;
        let exit = RecoveryExit { now, in_flight_bytes: self.in_flight_bytes, undone };
        self.controller.on_recovery_exit(&mut self.control, &exit);
    }

    fn tell(&mut self, now: Instant, packet: &PacketState, prior: u64, lost_bytes: u64, marked: bool) {
        let rate = self.sampler.finish(self.min_rtt);
        let delivered_bytes = self.sampler.delivered_bytes();
        let round_start = packet.delivered_bytes >= self.round_end_bytes;
        if round_start {
            self.round_count += 1;
            self.round_end_bytes = delivered_bytes;
        }
        let in_slow_start = self.control.cwnd_bytes < self.control.ssthresh_bytes;
        let marked_packets = u64::from(marked);
        let ack = Ack {
            now,
            acked_bytes: MSS,
            cumulative_bytes: MSS,
            lost_bytes,
            rtt: Some(self.last_rtt),
            smoothed_rtt: self.smoothed_rtt,
            min_rtt: self.min_rtt,
            ack_delay: Duration::ZERO,
            one_way_delay: None,
            prior_in_flight_bytes: prior,
            in_flight_bytes: self.in_flight_bytes,
            delivered_bytes,
            round_count: self.round_count,
            round_start,
            rate,
            app_limited: self.sampler.is_app_limited(),
            cwnd_limited: self.limited || in_slow_start && self.control.cwnd_bytes < 2 * self.usage_bytes,
            in_recovery: self.recovery_end.is_some() && !self.in_timeout,
            ce_packets: marked_packets,
            ce_bytes: marked_packets * MSS,
        };
        self.controller.on_ack(&mut self.control, &ack);
    }

    fn time_out(&mut self, now: Instant) {
        let timeout = Timeout { now, in_flight_bytes: self.in_flight_bytes, repeated: self.in_timeout };
        self.controller.on_timeout(&mut self.control, &timeout);
        while !self.flight.is_empty() {
            self.lose_front(now);
        }
        if !self.signals.own_recovery {
            self.control.cwnd_bytes = MSS;
        }
        self.in_timeout = true;
        self.recovery_end = Some(self.next_number);
        self.last_progress_at = now;
        self.update_pacing();
    }

    /// The application has no data to send although the window permits it.
    fn idle(&mut self, now: Instant) {
        if self.established && self.pauses(now) && self.in_flight_bytes < self.control.cwnd_bytes {
            self.sampler.mark_app_limited(self.in_flight_bytes);
        }
    }
}

/// Flows and their bottleneck.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) now: Instant,
    pub(crate) bottleneck: Bottleneck,
    pub(crate) senders: Vec<Sender>,
}

impl Pipe {
    pub(crate) fn new(rate_bps: u64, buffer_bytes: u64, seed: u64) -> Self {
        let bottleneck = Bottleneck {
            rate_bps,
            buffer_bytes,
            mark_above_bytes: u64::MAX,
            loss: 0.0,
            lose_number: 0,
            outage: (Instant::NEVER, Instant::NEVER),
            arrivals: 0,
            random: RandomStream::new(seed, "bottleneck", "loss"),
            free_at: Instant::ZERO,
            area: 0.0,
            counted_at: Instant::ZERO,
            most_queued_bytes: 0,
            drops: 0,
        };
        Pipe { now: Instant::ZERO, bottleneck, senders: Vec::new() }
    }

    /// Adds a flow with this round-trip time without the queue and without the transmission time of the packet.
    pub(crate) fn add(&mut self, name: &str, rtt: Duration, begins_at: Instant, seed: u64) -> usize {
        self.add_with(name, rtt, begins_at, ControlOptions { seed, ..ControlOptions::default() })
    }

    /// As [`Pipe::add`], with options of the control.
    pub(crate) fn add_with(&mut self, name: &str, rtt: Duration, begins_at: Instant, options: ControlOptions) -> usize {
        let controller = create(name, &options).expect("a name from the catalogue");
        let signals = controller.requirements();
        let mut control = WindowState::new(MSS, initial_window_bytes(MSS));
        set_codepoint(&mut control, &*controller);
        self.senders.push(Sender {
            control,
            controller,
            signals,
            rtt,
            pause: (Instant::NEVER, Instant::NEVER),
            begins_at,
            established: false,
            sampler: RateSampler::new(),
            pacer: Pacer::new(0),
            flight: VecDeque::new(),
            returning: VecDeque::new(),
            next_number: 0,
            in_flight_bytes: 0,
            recovery_end: None,
            in_timeout: false,
            reduced_for: 0,
            reduced_until: 0,
            round_end_bytes: 0,
            round_count: 0,
            smoothed_rtt: Duration::ZERO,
            min_rtt: Duration::MAX,
            last_rtt: Duration::ZERO,
            limited: false,
            usage_end: 0,
            usage_bytes: 0,
            last_progress_at: Instant::ZERO,
            states: vec![(begins_at.as_secs_f64(), 0)],
        });
        self.senders.len() - 1
    }

    /// Increases the round-trip time of a flow.
    pub(crate) fn set_rtt(&mut self, flow: usize, rtt: Duration) {
        self.senders[flow].rtt = self.senders[flow].rtt.max(rtt);
    }

    /// The capacity of the path without a queue, in bytes, for one flow.
    pub(crate) fn bdp_bytes(&self, flow: usize) -> f64 {
        let transmission = MSS as f64 * 8.0 / self.bottleneck.rate_bps as f64;
        (self.senders[flow].rtt.as_secs_f64() + transmission) * self.bottleneck.rate_bps as f64 / 8.0
    }

    /// Runs until an instant, and calls the observer for each acknowledgement of each flow.
    pub(crate) fn run_watching(&mut self, until: Instant, mut watch: impl FnMut(Instant, &Sender, &Bottleneck)) {
        loop {
            let mut next = (Instant::NEVER, 0, 0);
            for (index, sender) in self.senders.iter().enumerate() {
                let ack_at = sender.returning.front().map_or(Instant::NEVER, |returning| returning.at);
                for (kind, at) in [ack_at, sender.next_send(self.now), sender.next_timeout()].into_iter().enumerate() {
                    if at < next.0 {
                        next = (at, index, kind);
                    }
                }
            }
            let (at, index, kind) = next;
            if at > until || at.is_never() {
                break;
            }
            self.now = self.now.max(at);
            let sender = &mut self.senders[index];
            match kind {
                0 => {
                    sender.acknowledge(self.now);
                    sender.idle(self.now);
                    watch(self.now, sender, &self.bottleneck);
                }
                1 => sender.send(&mut self.bottleneck, self.now),
                _ => sender.time_out(self.now),
            }
        }
        self.now = until;
        self.bottleneck.count(until);
    }

    pub(crate) fn run(&mut self, seconds: f64) {
        self.run_watching(crate::simulator::instant(seconds), |_, _, _| {});
    }

    /// Runs until an instant; returns the mean queue in this time, in bytes.
    pub(crate) fn mean_queue_bytes(&mut self, until_seconds: f64) -> f64 {
        let (from, area) = (self.now, self.bottleneck.area);
        self.run(until_seconds);
        (self.bottleneck.area - area) / self.now.saturating_since(from).as_secs_f64()
    }

    /// Runs until an instant; returns the goodput of each flow in this time, in bits per second.
    pub(crate) fn goodputs_bps(&mut self, until_seconds: f64) -> Vec<f64> {
        let from = self.now;
        let before: Vec<u64> = self.senders.iter().map(Sender::delivered_bytes).collect();
        self.run(until_seconds);
        let seconds = self.now.saturating_since(from).as_secs_f64();
        let bits = |sender: &Sender, before: u64| (sender.delivered_bytes() - before) as f64 * 8.0 / seconds;
        self.senders.iter().zip(before).map(|(sender, before)| bits(sender, before)).collect()
    }
}
