//! Endpoints of the real QUIC stack, each with its own UDP port.

use super::binding::{Binding, ConversationEnd};
use super::slots::Slab;
use super::timers::Timer;
use super::wakeups::{WakeupTiming, Wakeups};
use crate::plugins::ControlFactory;
use crate::stack::journal::PacketLog;
use crate::stack::{Connection, ControlState, Datagram, Settings};
use crate::witness::RunObserver;
use fullpipe_congestion::catalogue;
use fullpipe_congestion::source::{ConnectionEnd, ControlSource};
use fullpipe_engine::TimerSlot;
use fullpipe_network::Network;
use fullpipe_scenario::description;
use fullpipe_transport::endpoint::{EndpointKind, EndpointReport, finite_threshold, nonzero_duration, nonzero_rate};
use fullpipe_units::Instant;
use fullpipe_workload::OpenOptions;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Creates the connections of a flow over the QUIC stack.
#[derive(Clone, Debug)]
pub(crate) struct StackFactory {
    settings: Settings,
    pub(super) control: ControlSource,
    timing: WakeupTiming,
}

impl StackFactory {
    /// Returns the factory of a flow's connections, or the reason why the flow cannot have any.
    pub(crate) fn new(described: &description::Quic) -> Result<StackFactory, String> {
        let options = catalogue::ControlOptions { paced: true, quic: true, ..described.control };
        let control = ControlSource::named(&described.congestion, options, crate::stack::unsupported_reason)?;
        let connection = &described.connection;
        let certificate_bytes = connection.handshake.certificate_bytes;
        let refusal = crate::stack::certificate_size_error(described.cryptography, certificate_bytes);
        refusal.map_or(Ok(()), Err)?;
        let settings = Settings {
            initial_mtu_bytes: connection.initial_mtu_bytes,
            largest_mtu_bytes: connection.largest_mtu_bytes,
            initial_window_packets: connection.initial_window_packets,
            send_buffer_bytes: connection.send_buffer_bytes,
            receive_buffer_bytes: connection.receive_buffer_bytes,
            idle_timeout: connection.idle_timeout,
            certificate_bytes,
            cryptography: described.cryptography,
            journal: None,
        };
        let timing =
            WakeupTiming { reaction: described.reaction.clone(), timer_granularity: described.timer_granularity };
        Ok(StackFactory { settings, control, timing })
    }

    /// Sets a plugged-in congestion control, or returns the reason why the stack does not support it.
    pub(crate) fn with_control(self, maker: ControlFactory) -> Result<Self, String> {
        Ok(StackFactory { control: maker.source(crate::stack::unsupported_reason)?, ..self })
    }

    /// Returns the wakeup timing of one end; `seed` is that of its congestion controller.
    pub(super) fn wakeups(&self, seed: u64) -> Wakeups {
        Wakeups::new(&self.timing, fullpipe_units::RandomStream::new(seed, "end", "reaction"))
    }

    /// Returns the function that creates the congestion controller of one end of the flow's n-th connection. `seed`
    /// determines the controller's random choices.
    pub(super) fn controls(&self, seed: u64, connection: u32, initiator: bool) -> crate::stack::ControlFactory {
        let control = self.control.clone();
        Arc::new(move || control.create(ConnectionEnd { seed, connection, initiator }))
    }

    /// Returns the settings of one end (0: initiator) of a connection that was opened with these options.
    pub(super) fn settings(&self, options: &OpenOptions, end: usize) -> Settings {
        let usual = self.settings.receive_buffer_bytes;
        let receive_buffer_bytes = options.receive_buffer_bytes.map_or(usual, |bytes| bytes[end]);
        Settings { receive_buffer_bytes, ..self.settings.clone() }
    }
}

/// One end of a connection at a host.
#[derive(Debug)]
pub(super) struct StackEndpoint {
    pub(super) connection: Connection,
    pub(super) binding: Binding,
    pub(super) timer: TimerSlot,
    /// Number of the tunnel's flow, if the endpoint's datagrams go through a tunnel.
    pub(super) via: Option<u32>,
    pub(super) wakeups: Wakeups,
}

impl StackEndpoint {
    pub(super) fn report(&mut self) -> EndpointReport {
        let counts = self.connection.statistics();
        let control = self.connection.inspect();
        // A connection without a path has no congestion controller, and its round-trip time is only an initial value.
        let smoothed_rtt = control.as_ref().and_then(|_| self.connection.smoothed_rtt()).and_then(nonzero_duration);
        EndpointReport {
            smoothed_rtt,
            mean_rtt: counts.mean_rtt,
            sent_packets: Some(counts.sent_packets),
            lost_packets: Some(counts.lost_packets),
            congestion_events: Some(counts.congestion_events),
            spurious_congestion_events: Some(counts.spurious_congestion_events),
            mtu_bytes: (counts.mtu_bytes > 0).then_some(u64::from(counts.mtu_bytes)),
            ..of_control(EndpointKind::QuicStack, control)
        }
    }
}

/// Returns the report of a congestion controller of the QUIC stack. The report has no values if there is no controller.
pub(super) fn of_control(kind: EndpointKind, seen: Option<ControlState>) -> EndpointReport {
    let Some(seen) = seen else { return EndpointReport::new(kind) };
    EndpointReport {
        cwnd_bytes: Some(seen.cwnd_bytes),
        ssthresh_bytes: finite_threshold(seen.ssthresh_bytes),
        in_flight_bytes: Some(seen.in_flight_bytes),
        min_rtt: nonzero_duration(seen.min_rtt),
        latest_rtt: nonzero_duration(seen.latest_rtt),
        pacing_bps: nonzero_rate(seen.pacing_bps),
        delivery_rate_bps: nonzero_rate(seen.delivery_rate_bps),
        in_recovery: seen.in_recovery,
        pto_count: seen.pto_count,
        control_values: seen.named,
        ..EndpointReport::new(kind)
    }
}

/// All endpoints of the real stack.
#[derive(Debug, Default)]
pub(super) struct StackEndpoints {
    pub(super) slots: Slab<Box<StackEndpoint>>,
    /// The packet logs of endpoints and of ends of tunnels, if an observer reads them.
    pub(super) journals: Option<BTreeMap<ConversationEnd, PacketLog>>,
}

impl StackEndpoints {
    /// Returns a packet log for one end of a conversation, if packet logs are kept.
    pub(super) fn open_journal(&mut self, place: ConversationEnd) -> Option<PacketLog> {
        let journals = self.journals.as_mut()?;
        Some(journals.entry(place).or_default().clone())
    }

    /// Passes a datagram to an endpoint; returns false if there is no such endpoint.
    pub(super) fn handle_datagram(&mut self, index: u32, now: Instant, datagram: Datagram) -> bool {
        let Some(endpoint) = self.slots.get_mut(index) else { return false };
        endpoint.connection.handle_datagram(now, datagram);
        true
    }

    /// Returns whether an endpoint delays its reaction to a datagram. If so, arms its timer.
    pub(super) fn waits(&mut self, network: &mut Network<RunObserver>, index: u32) -> bool {
        let Some(endpoint) = self.slots.get_mut(index).filter(|endpoint| !endpoint.wakeups.is_at_once()) else {
            return false;
        };
        if let Some(at) = endpoint.wakeups.begin(network.now()) {
            let at = at.min(endpoint.wakeups.tick(endpoint.connection.next_timeout()));
            endpoint.timer.arm(&mut network.calendar, Timer::QuicStack(index).event(), at);
        }
        true
    }
}
