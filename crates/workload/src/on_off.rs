//! On-off: packets, or writes to a stream, at a constant rate during on periods and nothing during off periods.
//!
//! The source has a clock that advances during on periods only. On that clock the packets are exactly one packet time (payload
//! bits over rate) apart, the first at zero. If an off period interrupts a packet time, the packet time continues in the next on
//! period. So the long-run rate is exactly `rate` E(on) / (E(on) + E(off)) for any distribution of periods. A packet due at the
//! very end of a period belongs to the next. The source starts with an on period.
//!
//! With Pareto periods of shape between 1 and 2, the traffic of many such sources is self-similar (Willinger, Taqqu, Sherman and
//! Wilson, IEEE/ACM Transactions on Networking 5(1), 1997).

use crate::application::{Application, Io, StreamId};
use crate::component::{FlowContext, PACKETS, PAYLOAD, Protocol, WorkloadComponent, WorkloadSettings, count, small};
use crate::demand::{self, Demand};
use crate::outlet::PayloadSender;
use fullpipe_schema::component::Declaration;
use fullpipe_schema::distributions::TIME_OR_RANDOM;
use fullpipe_schema::{Field, FieldKind};
use fullpipe_transport::TransportEvent;
use fullpipe_units::rate::Transmitter;
use fullpipe_units::{Distribution, Duration, Instant, ParameterError, RandomStream, Rate};

pub(crate) static ON_OFF: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "on-off",
        text: "packets (UDP) or writes (TCP) at a constant rate during on periods, none during off periods; the periods \
               alternate, beginning with an on period. Default port 9.",
        fields: &[&[
            Field::required("rate", FieldKind::RATE, "Payload bits per second while on."),
            Field::required("payload", PAYLOAD, "Payload of each packet or write."),
            Field::required("on", TIME_OR_RANDOM, "Length of on periods."),
            Field::required("off", TIME_OR_RANDOM, "Length of off periods."),
            PACKETS,
        ]],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Udp, Protocol::Quic],
    write_key: Some("payload"),
    read: |reader, _| {
        Ok(Box::new(OnOffSpec {
            rate: reader.tree.rate("rate"),
            payload_bytes: small(reader.tree, "payload"),
            on_s: reader.distribution("on")?,
            off_s: reader.distribution("off")?,
            count: count(reader.tree, "packets"),
        }))
    },
    ..WorkloadComponent::EMPTY
};

/// The settings of an on-off source.
#[derive(Clone, Debug, PartialEq)]
pub struct OnOffSpec {
    /// Rate of payload bits during an on period.
    pub rate: Rate,
    /// Payload of a packet, or size of a write, in bytes.
    pub payload_bytes: u32,
    /// Lengths of on periods in seconds.
    pub on_s: Distribution,
    /// Lengths of off periods in seconds.
    pub off_s: Distribution,
    /// Number of packets or writes (`None`: unlimited).
    pub count: Option<u64>,
}

impl WorkloadSettings for OnOffSpec {
    fn sends_on_one_stream(&self) -> bool {
        true
    }

    fn is_unlimited(&self) -> bool {
        self.count.is_none()
    }

    fn demand(&self, time_s: f64) -> Demand {
        let (on_s, off_s) = (self.on_s.mean(), self.off_s.mean());
        let interval_s = f64::from(self.payload_bytes) * 8.0 / self.rate.bits_per_second() as f64;
        let always = Demand::timer_driven(demand::count(time_s, interval_s, self.count), f64::from(self.payload_bytes));
        let periods = time_s / (on_s + off_s);
        if self.count.is_none() && demand::is_steady(&self.on_s, periods) && demand::is_steady(&self.off_s, periods) {
            let messages = demand::count(time_s * on_s / (on_s + off_s), interval_s, None);
            let sent = Demand::timer_driven(messages, f64::from(self.payload_bytes));
            return Demand { timers: messages + periods, ..sent };
        }
        always.as_upper_bound("an on-off source, counted as if it were always on")
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        Ok(context.with_sink(OnOffSender::new(self, context.over_stream, context.random("workload"))?))
    }

    fn check(&self) -> Result<(), ParameterError> {
        ParameterError::ensure(self.rate.bits_per_second() > 0, "rate must be positive")?;
        ParameterError::ensure(self.payload_bytes > 0, "payload must be positive")?;
        self.on_s.check().map_err(|invalid| invalid.in_field("on"))?;
        self.off_s.check().map_err(|invalid| invalid.in_field("off"))?;
        ParameterError::ensure(self.on_s.mean() >= 1e-9, "the mean of on must be at least 1 ns")
    }
}

/// The event for which the source's timer is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Packet,
    OnPeriod,
}

/// An on-off sender.
#[derive(Debug)]
pub struct OnOffSender {
    spec: OnOffSpec,
    random: RandomStream,
    outlet: PayloadSender,
    packet_times: Transmitter,
    /// Time up to which the source has advanced.
    at: Instant,
    due: Due,
    /// Rest of the current on period at `at`.
    on_left: Duration,
    /// On time until the next packet.
    packet_in: Duration,
    remaining: u64,
}

impl OnOffSender {
    /// Creates a sender of datagrams, or of writes to a stream if `over_stream` is set.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &OnOffSpec, over_stream: bool, random: RandomStream) -> Result<Self, ParameterError> {
        spec.check()?;
        let fits = over_stream || spec.payload_bytes <= crate::MAX_DATAGRAM_BYTES;
        ParameterError::ensure(fits, "the payload of a datagram must be at most 65507 bytes")?;
        Ok(OnOffSender {
            random,
            outlet: PayloadSender::new(over_stream),
            packet_times: Transmitter::new(spec.rate),
            at: Instant::ZERO,
            due: Due::OnPeriod,
            on_left: Duration::ZERO,
            packet_in: Duration::ZERO,
            remaining: spec.count.unwrap_or(u64::MAX),
            spec: spec.clone(),
        })
    }

    fn schedule(&mut self, io: &mut dyn Io) {
        if self.packet_in < self.on_left {
            self.at = self.at.saturating_add(self.packet_in);
            self.on_left -= self.packet_in;
            self.due = Due::Packet;
        } else {
            self.packet_in -= self.on_left;
            let off = self.spec.off_s.sample_duration(&mut self.random);
            self.at = self.at.saturating_add(self.on_left).saturating_add(off);
            self.due = Due::OnPeriod;
        }
        io.wake_at(self.at);
    }
}

impl Application for OnOffSender {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.outlet.open(io);
        self.at = io.now();
        self.on_wake(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        if self.remaining == 0 {
            return self.outlet.end(io);
        }
        if self.due == Due::Packet {
            self.outlet.send(self.spec.payload_bytes, io);
            self.packet_in = self.packet_times.transmit(self.spec.payload_bytes, false);
            if self.remaining != u64::MAX {
                self.remaining -= 1;
            }
            if self.remaining == 0 {
                return self.outlet.end(io);
            }
        } else {
            self.on_left = self.spec.on_s.sample_duration(&mut self.random);
        }
        self.schedule(io);
    }

    fn on_stream(&mut self, _stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        self.outlet.on_stream(event, io);
    }
}
