//! Exchanges of frames: the selection of packets and rate for a PPDU, its losses, and the responses (clauses 10.3 and 10.23.2).

use super::link::{RateTimes, rate_quality};
use super::{BasicServiceSet, ExchangeEnd, Plan, Traffic, Txop, draw};
use crate::aggregate::AggregateLimits;
use crate::block_ack::{Mpdu, MpduOutcome};
use crate::config::{FailureTiming, RtsPolicy};
use crate::frame::{
    ACK_BYTES, AmpduSize, BLOCK_ACK_BYTES, CTS_BYTES, RTS_BYTES, mpdu_bytes, single_mpdu_psdu_bytes, spacing_bytes,
};
use crate::phy::{AccessCategory, PhyRate, Timing, response_rate};
use crate::queue::ApQueue;
use crate::report::{LastPpdu, LinkCounters, PpduRecord};
use fullpipe_network::{CompletedFrame, MediumDirection, MediumOutcome};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use std::collections::VecDeque;

impl BasicServiceSet {
    pub(super) fn txop_limit(&self, contender: u32) -> Duration {
        let (node, category) = self.contender_parts(contender);
        let category = if self.categories == 1 { AccessCategory::BestEffort as usize } else { category };
        let access = if node == 0 { &self.config.ap_access } else { &self.config.station_access };
        access[category].txop_limit
    }

    /// Returns whether a contender has packets.
    fn has_packets(&self, contender: u32) -> bool {
        let (node, category) = self.contender_parts(contender);
        match node.checked_sub(1) {
            None => !self.ap[category].scheduler.is_empty(),
            Some(station) => {
                let link = self.link_index(MediumDirection::Uplink, station as u32);
                self.traffic[self.traffic_index(link, category)].has_packets()
            }
        }
    }

    /// Starts the backoff of a contender after its access. Its interframe space begins at `from`.
    pub(super) fn resume(&mut self, contender: u32, from: Instant) {
        let waiting = self.has_packets(contender);
        let (node, _) = self.contender_parts(contender);
        let stream = &mut self.backoffs[node];
        self.contention.resume(contender, from, waiting, |window| draw(stream, window));
    }

    /// Returns the station to which, or from which, a contender transmits next.
    fn select_station(&mut self, contender: u32) -> Option<(MediumDirection, u32)> {
        let (node, category) = self.contender_parts(contender);
        if let Some(station) = node.checked_sub(1) {
            return Some((MediumDirection::Uplink, station as u32));
        }
        if let Some(station) = self.ap[category].retry {
            let link = self.link_index(MediumDirection::Downlink, station);
            if self.traffic[self.traffic_index(link, category)].has_packets() {
                return Some((MediumDirection::Downlink, station));
            }
            self.ap[category].retry = None;
        }
        Some((MediumDirection::Downlink, self.ap[category].scheduler.select()?))
    }

    /// Removes the next packet of a queue and adds it to the window. Returns its index in the window.
    fn pull(&mut self, now: Instant, traffic: usize) -> Option<u32> {
        let Traffic { queue, session } = &mut self.traffic[traffic];
        if session.room() == 0 {
            return None;
        }
        let next = queue.pop(now, &mut self.dropped);
        let index = session.next_index();
        if let Some(mpdu) = next {
            session.push(mpdu);
        }
        if traffic < self.stations() * self.categories {
            match self.config.ap_queue {
                ApQueue::PerStation { .. } => {}
                ApQueue::FqCoDel(_) => {
                    if let Some(mpdu) = next {
                        self.fq_load.0 -= 1;
                        self.fq_load.1 -= u64::from(mpdu.ip_bytes);
                    }
                    if !self.dropped.is_empty() {
                        self.report_dropped(now, traffic);
                    }
                }
                ApQueue::Fifo { .. } if next.is_some() => self.refill_driver(now, traffic % self.categories),
                ApQueue::Fifo { .. } => {}
            }
        }
        next.map(|_| index)
    }

    /// Moves a packet from the FIFO to the driver after one has left the driver.
    fn refill_driver(&mut self, now: Instant, category: usize) {
        let Some((station, mpdu)) = self.ap[category].fifo.pop_front() else {
            self.ap[category].in_driver = self.ap[category].in_driver.saturating_sub(1);
            return;
        };
        let link = self.link_index(MediumDirection::Downlink, station);
        let index = self.traffic_index(link, category);
        // The queues of the driver have no limit of their own.
        self.traffic[index].queue.push(now, mpdu, 0, EcnCodepoint::NotEct);
        self.ap[category].scheduler.activate(station);
    }

    fn rate_times(&mut self, rate: PhyRate) -> RateTimes {
        if let Some(times) = self.times.get(&rate) {
            return *times;
        }
        let exchange = self.exchange();
        let limits = self.limits(rate);
        let times = RateTimes {
            response: response_rate(rate, &self.config.basic),
            ack: exchange.response(rate, ACK_BYTES),
            block_ack: exchange.response(rate, BLOCK_ACK_BYTES),
            psdu_bytes: limits.psdu_bytes(rate, Duration::ZERO, &exchange),
            spacing_bytes: spacing_bytes(self.config.mpdu_spacing, rate),
        };
        self.times.insert(rate, times);
        times
    }

    fn limits(&self, rate: PhyRate) -> AggregateLimits {
        let (own, phy) = (self.config.aggregate, AggregateLimits::of(rate.kind()));
        AggregateLimits {
            mpdus: if self.config.qos { own.mpdus.min(phy.mpdus) } else { 1 },
            bytes: own.bytes.min(phy.bytes),
            ppdu: own.ppdu.min(phy.ppdu),
        }
    }

    /// Builds the next PPDU of a contender. `left` is the rest of a transmission opportunity that has begun; the PPDU, SIFS
    /// and the response must fit into it. Returns `None` if they do not, or if there is no packet.
    pub(super) fn plan(&mut self, now: Instant, contender: u32, left: Option<Duration>) -> Option<Plan> {
        let (_, category) = self.contender_parts(contender);
        loop {
            let (direction, station) = self.select_station(contender)?;
            let link = self.link_index(direction, station);
            let traffic = self.traffic_index(link, category);
            let plan = self.plan_for(now, contender, (link, traffic), left);
            match (plan, direction) {
                (Err(NoPpdu::NoPacket), MediumDirection::Downlink) => self.ap[category].scheduler.deactivate(station),
                (plan, _) => return plan.ok(),
            }
        }
    }

    fn plan_for(
        &mut self,
        now: Instant,
        contender: u32,
        (link, traffic): (usize, usize),
        left: Option<Duration>,
    ) -> Result<Plan, NoPpdu> {
        if !self.traffic[traffic].has_packets() {
            return Err(NoPpdu::NoPacket);
        }
        let failures = self.contention.failures(contender);
        let entry = &mut self.links[link];
        let decision = entry.control.select(now, failures, entry.received_dbm);
        let (rate, qos) = (decision.rate, self.config.qos);
        let times = self.rate_times(rate);
        let limits = self.limits(rate);
        let most = if decision.sample { 1 } else { limits.mpdus };
        let txop_limit = self.txop_limit(contender);
        let bytes = if txop_limit.is_zero() {
            times.psdu_bytes
        } else {
            limits.psdu_bytes(rate, left.unwrap_or(txop_limit), &self.exchange())
        };
        let mut plan = self.spare.pop().unwrap_or_default();
        plan.mpdus.clear();
        let mut size = AmpduSize::default();
        let mut full = false;
        let session = &self.traffic[traffic].session;
        for (index, mpdu) in session.to_send() {
            let next = size.with(mpdu_bytes(mpdu.ip_bytes, qos), times.spacing_bytes);
            full = size.mpdus() == most || (size.mpdus() > 0 && next.bytes() > bytes);
            if full {
                break;
            }
            size = next;
            plan.mpdus.push(index);
        }
        while !full && size.mpdus() < most {
            let Some(index) = self.pull(now, traffic) else { break };
            let bytes_of_mpdu = mpdu_bytes(self.traffic[traffic].session.mpdu(index).ip_bytes, qos);
            let next = size.with(bytes_of_mpdu, times.spacing_bytes);
            // A packet that does not fit stays in the window, and is first in the next aggregate.
            full = size.mpdus() > 0 && next.bytes() > bytes;
            if !full {
                size = next;
                plan.mpdus.push(index);
            }
        }
        let Some(&first) = plan.mpdus.first() else {
            self.spare.push(plan);
            return Err(NoPpdu::NoPacket);
        };
        let session = &mut self.traffic[traffic].session;
        plan.psdu_bytes = match plan.mpdus.len() {
            1 => single_mpdu_psdu_bytes(mpdu_bytes(session.mpdu(first).ip_bytes, qos), rate.kind()),
            _ => size.bytes(),
        };
        session.start(&plan.mpdus, now);
        plan.ppdu = self.exchange().ppdu(rate, plan.psdu_bytes);
        let above = matches!(self.config.rts, RtsPolicy::Above(bytes) if plan.psdu_bytes > bytes);
        // Within a transmission opportunity the first exchange has protected the medium.
        plan.rts = left.is_none() && (decision.rts || above);
        (plan.contender, plan.link, plan.traffic, plan.rate) = (contender, link, traffic, Some(rate));
        let response = if plan.mpdus.len() == 1 { times.ack } else { times.block_ack };
        if left.is_some_and(|left| plan.ppdu + self.timing.sifs + response > left) {
            self.spare.push(plan);
            return Err(NoPpdu::TooLong);
        }
        Ok(plan)
    }

    /// Returns whether a control frame on a link is lost to noise.
    fn is_control_lost(&mut self, link: usize, rate: PhyRate, bytes: u32) -> bool {
        let Some(errors) = self.config.errors else { return false };
        let link = &mut self.links[link];
        let quality = rate_quality(&self.config, &mut link.qualities, link.received_dbm, rate);
        if !quality.detected {
            return true;
        }
        let error_rate = quality.error_rate(errors, rate, bytes.into());
        error_rate > 0.0 && link.losses.bernoulli(error_rate)
    }

    /// Determines which MPDUs of a PPDU the receiver decodes, if no other node transmits. Returns their number.
    fn receive(&mut self, plan: &Plan, rate: PhyRate) -> u32 {
        self.received.clear();
        let Some(errors) = self.config.errors else {
            self.received.resize(plan.mpdus.len(), true);
            return plan.mpdus.len() as u32;
        };
        let link = &mut self.links[plan.link];
        let quality = rate_quality(&self.config, &mut link.qualities, link.received_dbm, rate);
        let detected = quality.detected;
        let session = &self.traffic[plan.traffic].session;
        let mut count = 0;
        for &index in &plan.mpdus {
            let bytes = mpdu_bytes(session.mpdu(index).ip_bytes, self.config.qos);
            let error_rate = quality.error_rate(errors, rate, bytes.into());
            let received = detected && (error_rate <= 0.0 || !link.losses.bernoulli(error_rate));
            count += u32::from(received);
            self.received.push(received);
        }
        count
    }

    /// Conducts the exchange of a PPDU that collides with no other.
    pub(super) fn conduct(&mut self, now: Instant, plan: &Plan) -> ExchangeEnd {
        let Some(rate) = plan.rate else { return ExchangeEnd { success: false, others: now, sender: now } };
        let Timing { sifs, slot, phy_start_delay, .. } = self.timing;
        let direction = self.direction(plan.link);
        let reverse = (plan.link + self.stations()) % self.links.len();
        let times = self.rate_times(rate);
        let mut start = now;
        if plan.rts {
            let (rts_end, cts_end) = (now + self.rts, now + self.rts + sifs + self.cts);
            let rts_lost = self.is_control_lost(plan.link, self.config.rts_rate, RTS_BYTES);
            if rts_lost || self.is_control_lost(reverse, self.cts_rate, CTS_BYTES) {
                let end = if rts_lost { rts_end } else { cts_end };
                self.links[plan.link].counters.failures += 1;
                self.complete(plan, end, false, false);
                self.busy += end - now;
                self.note_exchange(now, end, false);
                self.record(plan, [now, rts_end, rts_end, end], 0, false);
                // Nodes that have decoded the RTS wait whether a PPDU begins (clause 10.3.2.4).
                let reset = cts_end + sifs + phy_start_delay + slot * 2;
                return match self.config.failure_timing {
                    FailureTiming::Immediate => ExchangeEnd { success: false, others: end, sender: end },
                    FailureTiming::Timeout => {
                        let sender = end.max(rts_end + self.timing.response_timeout());
                        ExchangeEnd { success: false, others: reset, sender }
                    }
                };
            }
            start = cts_end + sifs;
        }
        let end = start + plan.ppdu;
        let received = self.receive(plan, rate);
        let (response, response_bytes) = match plan.mpdus.len() {
            1 => (times.ack, ACK_BYTES),
            _ => (times.block_ack, BLOCK_ACK_BYTES),
        };
        let response_end = end + sifs + response;
        let answered = received > 0;
        let success = answered && !self.is_control_lost(reverse, times.response, response_bytes);
        let category = plan.traffic % self.categories;
        let station = self.station(plan.link);
        match direction {
            MediumDirection::Downlink => self.ap[category].scheduler.charge(station, plan.ppdu),
            MediumDirection::Uplink if answered => self.ap[category].scheduler.charge_received(station, plan.ppdu),
            MediumDirection::Uplink => {}
        }
        self.links[plan.link].counters.failures += u64::from(!success);
        self.count_ppdu(plan, rate);
        self.complete(plan, end, true, success);
        let busy_end = if answered { response_end } else { end };
        self.busy += busy_end - now;
        self.note_exchange(now, busy_end, answered);
        self.record(plan, [now, start, end, busy_end], received, false);
        match (answered, self.config.failure_timing) {
            (true, _) => ExchangeEnd { success, others: response_end, sender: response_end },
            (false, FailureTiming::Immediate) => ExchangeEnd { success, others: end, sender: end },
            // The Duration field covers SIFS and the response.
            (false, FailureTiming::Timeout) => {
                ExchangeEnd { success, others: response_end, sender: end + self.timing.response_timeout() }
            }
        }
    }

    /// All PPDUs that begin at `now` are lost.
    pub(super) fn collide(&mut self, now: Instant, plans: &[Plan]) {
        let own_end = |plan: &Plan, rts: Duration| now + if plan.rts { rts } else { plan.ppdu };
        let rts = self.rts;
        let idle = plans.iter().map(|plan| own_end(plan, rts)).max().unwrap_or(now);
        self.busy += idle - now;
        self.contention.end(idle);
        for plan in plans {
            let end = own_end(plan, rts);
            self.links[plan.link].counters.collisions += 1;
            if let Some(rate) = plan.rate
                && !plan.rts
            {
                self.count_ppdu(plan, rate);
                if self.direction(plan.link) == MediumDirection::Downlink {
                    let station = self.station(plan.link);
                    self.ap[plan.traffic % self.categories].scheduler.charge(station, plan.ppdu);
                }
            }
            self.complete(plan, end, false, false);
            let start = if plan.rts { end } else { now };
            self.note_exchange(now, end, false);
            self.record(plan, [now, start, end, end], 0, true);
            let sender = match self.config.failure_timing {
                FailureTiming::Immediate => idle,
                FailureTiming::Timeout => idle.max(end + self.timing.response_timeout()),
            };
            self.finish(plan, ExchangeEnd { success: false, others: idle, sender }, now);
        }
    }

    fn count_ppdu(&mut self, plan: &Plan, rate: PhyRate) {
        let link = &mut self.links[plan.link];
        let snr_db = rate_quality(&self.config, &mut link.qualities, link.received_dbm, rate).snr_db;
        let mpdus = plan.mpdus.len() as u32;
        let counters = &mut link.counters;
        counters.ppdus += 1;
        counters.mpdus += u64::from(mpdus);
        counters.airtime += plan.ppdu;
        let session = &self.traffic[plan.traffic].session;
        if !session.is_new(&plan.mpdus) {
            counters.retries += plan.mpdus.iter().filter(|index| session.mpdu(**index).attempts > 0).count() as u64;
        }
        link.last = Some(LastPpdu { rate, mpdus, snr_db });
    }

    /// Applies the outcome of a PPDU that ended at `at`. `received` has the outcomes of the MPDUs if `transmitted`; otherwise
    /// none was received. Reports to rate control.
    fn complete(&mut self, plan: &Plan, at: Instant, transmitted: bool, acknowledged: bool) {
        let link = &mut self.links[plan.link];
        let (counters, reports) = (&mut link.counters, &mut self.reports);
        let mut received = self.received.iter();
        let decoded = |_: u32, _: &Mpdu| transmitted && received.next().copied().unwrap_or(false);
        let session = &mut self.traffic[plan.traffic].session;
        let successes = session.complete(&plan.mpdus, acknowledged, decoded, |outcome| {
            report_mpdu(outcome, at, counters, reports);
        });
        if let Some(rate) = plan.rate {
            link.control.report(rate, plan.mpdus.len() as u32, successes);
        }
        if self.direction(plan.link) == MediumDirection::Downlink && !self.traffic[plan.traffic].has_packets() {
            let station = self.station(plan.link);
            self.ap[plan.traffic % self.categories].scheduler.deactivate(station);
        }
    }

    fn direction(&self, link: usize) -> MediumDirection {
        if link < self.stations() { MediumDirection::Downlink } else { MediumDirection::Uplink }
    }

    fn station(&self, link: usize) -> u32 {
        (link % self.stations()) as u32
    }

    /// Updates contention after an exchange. A transmission opportunity may last until `limit`.
    pub(super) fn finish(&mut self, plan: &Plan, end: ExchangeEnd, limit: Instant) {
        let contender = plan.contender;
        let (node, category) = self.contender_parts(contender);
        let exhausted = if end.success {
            self.contention.succeed(contender);
            true
        } else {
            self.contention.fail(contender)
        };
        if node == 0 {
            let station = self.station(plan.link);
            self.ap[category].retry = (!exhausted).then_some(station);
        }
        let at = end.others + self.timing.sifs;
        if end.success && at < limit && self.has_packets(contender) {
            self.txop = Some(Txop { contender, at, from: end.others, limit });
            return;
        }
        self.resume(contender, end.sender);
    }

    pub(super) fn continue_txop(&mut self, now: Instant, txop: Txop) {
        match self.plan(now, txop.contender, Some(txop.limit - now)) {
            Some(plan) => {
                let end = self.conduct(now, &plan);
                self.contention.end(end.others);
                self.finish(&plan, end, txop.limit);
                self.spare.push(plan);
            }
            None => self.resume(txop.contender, txop.from),
        }
    }

    /// A contender gives up its first packet, after too many internal collisions.
    pub(super) fn give_up_first(&mut self, now: Instant, contender: u32) {
        let (_, category) = self.contender_parts(contender);
        let Some((direction, station)) = self.select_station(contender) else { return };
        let link = self.link_index(direction, station);
        let index = self.traffic_index(link, category);
        if self.traffic[index].session.pending() == 0 {
            self.pull(now, index);
        }
        let (counters, reports) = (&mut self.links[link].counters, &mut self.reports);
        let session = &mut self.traffic[index].session;
        session.give_up_first(|outcome| report_mpdu(outcome, now, counters, reports));
        if direction == MediumDirection::Downlink {
            self.ap[category].retry = None;
            if !self.traffic[index].has_packets() {
                self.ap[category].scheduler.deactivate(station);
            }
        }
    }

    fn record(&mut self, plan: &Plan, times: [Instant; 4], received: u32, collision: bool) {
        let direction = self.direction(plan.link);
        let station = self.station(plan.link);
        let category = plan.traffic % self.categories;
        let category = if self.categories == 1 { AccessCategory::BestEffort } else { AccessCategory::ALL[category] };
        let (Some(records), Some(rate)) = (&mut self.records, plan.rate) else { return };
        let [access, start, end, response_end] = times;
        let transmitted = start < end;
        records.push(PpduRecord {
            access,
            start,
            end,
            response_end,
            direction,
            station,
            category,
            rate,
            mpdus: if transmitted { plan.mpdus.len() as u32 } else { 0 },
            received,
            psdu_bytes: if transmitted { plan.psdu_bytes } else { 0 },
            collision,
        });
    }
}

/// Why there is no PPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoPpdu {
    NoPacket,
    TooLong,
}

/// Counts and reports the outcome of an MPDU.
fn report_mpdu(outcome: MpduOutcome, at: Instant, counters: &mut LinkCounters, reports: &mut VecDeque<CompletedFrame>) {
    let (token, fate) = match outcome {
        MpduOutcome::Delivered(mpdu) => {
            counters.delivered_packets += 1;
            counters.delivered_bytes += u64::from(mpdu.ip_bytes);
            counters.queue_delay += mpdu.started.saturating_since(mpdu.offered);
            counters.air_delay += at.saturating_since(mpdu.started);
            (mpdu.token, if mpdu.marked { MediumOutcome::Marked } else { MediumOutcome::Delivered })
        }
        MpduOutcome::GivenUp(mpdu) => {
            counters.lost_packets += 1;
            (mpdu.token, MediumOutcome::Lost)
        }
    };
    reports.push_back(CompletedFrame { token, at, fate });
}
