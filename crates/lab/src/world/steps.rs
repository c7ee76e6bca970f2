//! Inspection of endpoints, and changes, between the steps of a run.

use super::binding::ConversationEnd;
use super::state::World;
use crate::stepping::ConnectionSnapshot;
use crate::witness::RunObserver;
use fullpipe_network::Network;
use fullpipe_transport::endpoint::{EndpointKind, nonzero_duration, nonzero_rate};
use fullpipe_units::Rate;

impl World {
    /// Returns the state of the sender at one end of a conversation; `None` if there is no open connection.
    pub(crate) fn snapshot(&mut self, (conversation, end): ConversationEnd) -> Option<ConnectionSnapshot> {
        let id = self.core.conversations.get(conversation)?.endpoints[end]?;
        let rate = |bps| nonzero_rate(bps).map(Rate::from_bits_per_second);
        let endpoints = &mut self.core.endpoints;
        // Reports of the models are not used here, because they contain values of the congestion control in a vector.
        Some(match id.kind() {
            EndpointKind::Tcp => {
                let seen = endpoints.tcp.slots.get(id.index())?.connection.inspect();
                ConnectionSnapshot {
                    cwnd_bytes: seen.cwnd_bytes,
                    in_flight_bytes: seen.in_flight_bytes,
                    delivered_bytes: seen.delivered_bytes,
                    lost_bytes: seen.lost_bytes,
                    smoothed_rtt: nonzero_duration(seen.smoothed_rtt),
                    min_rtt: nonzero_duration(seen.min_rtt),
                    latest_rtt: nonzero_duration(seen.latest_rtt),
                    pacing_rate: rate(seen.pacing_bps),
                    delivery_rate: rate(seen.delivery_rate_bps),
                    mss_bytes: seen.mss_bytes,
                    in_recovery: seen.in_recovery,
                }
            }
            EndpointKind::QuicModel => {
                let seen = endpoints.quic_model.slots.get(id.index())?.connection.inspect();
                ConnectionSnapshot {
                    cwnd_bytes: seen.cwnd_bytes,
                    in_flight_bytes: seen.in_flight_bytes,
                    delivered_bytes: seen.delivered_bytes,
                    lost_bytes: seen.lost_bytes,
                    smoothed_rtt: nonzero_duration(seen.smoothed_rtt),
                    min_rtt: nonzero_duration(seen.min_rtt),
                    latest_rtt: nonzero_duration(seen.latest_rtt),
                    pacing_rate: rate(seen.pacing_bps),
                    delivery_rate: rate(seen.delivery_rate_bps),
                    mss_bytes: seen.mtu_bytes,
                    in_recovery: seen.in_recovery,
                }
            }
            EndpointKind::QuicStack | EndpointKind::Kernel | EndpointKind::Tunnel => return None,
        })
    }

    /// Returns the number of retransmitted segments (TCP) or of packets declared lost (QUIC) at one end of a
    /// conversation so far; `None` if its transport does not count them.
    pub(crate) fn retransmissions(&mut self, (conversation, end): ConversationEnd) -> Option<u64> {
        let known = self.core.conversations.get(conversation)?;
        let Some(id) = known.endpoints[end] else {
            return match known.retransmitted[end] {
                Some(segments) => Some(u64::from(segments.get() - 1)),
                None => self.core.over.get(&(conversation as u32, end))?.lost_packets,
            };
        };
        let endpoints = &mut self.core.endpoints;
        match id.kind() {
            EndpointKind::Tcp => {
                Some(endpoints.tcp.slots.get(id.index())?.connection.statistics().retransmitted_segments)
            }
            EndpointKind::QuicModel => {
                Some(endpoints.quic_model.slots.get(id.index())?.connection.statistics().lost_packets)
            }
            EndpointKind::QuicStack | EndpointKind::Kernel | EndpointKind::Tunnel => {
                let report = endpoints.report_mut(id)?;
                report.retransmitted_packets.or(report.lost_packets)
            }
        }
    }

    /// Applies a parameter that the program has changed in the congestion control of one end of a conversation, and
    /// sends what the new values permit. Has no effect on endpoints other than those of the models.
    pub(crate) fn apply_external_change(
        &mut self,
        network: &mut Network<RunObserver>,
        (conversation, end): ConversationEnd,
    ) {
        let Some(id) = self.core.conversations.get(conversation).and_then(|known| known.endpoints[end]) else { return };
        let (index, now) = (id.index(), network.now());
        match id.kind() {
            EndpointKind::Tcp => {
                if let Some(endpoint) = self.core.endpoints.tcp.slots.get_mut(index) {
                    endpoint.connection.apply_external_change(now);
                    self.service_tcp(network, index);
                }
            }
            EndpointKind::QuicModel => {
                if let Some(endpoint) = self.core.endpoints.quic_model.slots.get_mut(index) {
                    endpoint.connection.apply_external_change(now);
                    self.service_model(network, index);
                }
            }
            EndpointKind::QuicStack | EndpointKind::Kernel | EndpointKind::Tunnel => return,
        }
        self.service_touched(network);
    }

    /// Returns whether a flow has started.
    pub(crate) fn has_started(&self, flow: usize) -> bool {
        self.started[flow]
    }

    /// Schedules the start of a flow now instead of at the time that the scenario sets.
    pub(crate) fn start_now(&mut self, network: &mut Network<RunObserver>, flow: usize) {
        let now = network.now();
        self.core.wake_at(network, 2 * flow as u32, now);
    }
}
