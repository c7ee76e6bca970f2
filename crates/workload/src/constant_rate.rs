//! Constant rate: one datagram, or one write to a stream, per interval.

use crate::application::{Application, Io, StreamId};
use crate::component::{
    COUNT, FlowContext, FlowTransport, Protocol, SocketTraffic, WorkloadComponent, WorkloadSettings, count,
};
use crate::demand::{self, Demand};
use crate::outlet::PayloadSender;
use fullpipe_schema::component::{self, Declaration, SettingsReader};
use fullpipe_schema::{FieldKind, keys};
use fullpipe_transport::TransportEvent;
use fullpipe_units::{Duration, Instant, ParameterError, Rate};

pub(crate) static CONSTANT_RATE: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "constant-rate",
        text: "datagrams (UDP) or writes (TCP) of one size at a constant interval. Default port 9.",
        fields: &[keys! {
            /// Payload of each datagram or write; at most 65507B in a UDP datagram.
            "payload": FieldKind::size(1, 16 << 20), required;
            /// Time between datagrams or writes.
            "interval": FieldKind::INTERVAL, optional "from `rate`";
            /// Payload bits per second, instead of `interval`. The interval is rounded to the nearest nanosecond.
            "rate": FieldKind::RATE, optional "from `interval`";
            /// Number of datagrams or writes.
            "packets": COUNT, optional "without end";
        }],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Udp, Protocol::Quic],
    write_key: Some("payload"),
    on_sockets: true,
    read,
    ..WorkloadComponent::EMPTY
};

/// The settings of a constant-rate source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantRateSpec {
    /// Payload bytes of each datagram or write.
    pub payload_bytes: u32,
    /// Time between datagrams or writes.
    pub interval: Duration,
    /// Number of datagrams or writes; `None`: unlimited.
    pub count: Option<u64>,
}

fn read(
    reader: &mut SettingsReader<'_, '_>,
    carrier: &FlowTransport,
) -> Result<Box<dyn WorkloadSettings>, component::InvalidSettings> {
    let (tree, payload) = (reader.tree, reader.tree.size("payload"));
    if carrier.protocol == Protocol::Udp && payload > u64::from(crate::MAX_DATAGRAM_BYTES) {
        let message = format!("{}.payload = {payload}B exceeds the maximum UDP payload", reader.path);
        return Err(reader.add_error("payload", message, &format!("at most {}B", crate::MAX_DATAGRAM_BYTES)));
    }
    let interval = match (tree.get("interval"), tree.get("rate")) {
        (Some(interval), None) => interval.duration(),
        (None, Some(rate)) => {
            let bits_per_second = u128::from(rate.rate().bits_per_second());
            let nanoseconds = (u128::from(payload) * 8_000_000_000 + bits_per_second / 2) / bits_per_second;
            if nanoseconds == 0 {
                // Times are whole nanoseconds; half a nanosecond is rounded up.
                let path = reader.path;
                let message = format!("{path}.rate = {} sends a payload of {payload}B in less than 0.5ns", rate.rate());
                let limit = Rate::from_bits_per_second(payload.saturating_mul(16_000_000_000));
                return Err(reader.add_error("rate", message, &format!("at most {limit}, or a larger payload")));
            }
            Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)).min(fullpipe_schema::MAX_DURATION)
        }
        (None, None) => {
            let path = reader.path;
            let message = format!("{path} has neither interval nor rate");
            let expected = vec!["interval".into(), "rate".into()];
            reader.check.add_missing(tree.place, &format!("{path}.interval"), message, expected);
            return Err(component::InvalidSettings);
        }
        (Some(_), Some(_)) => {
            let message = format!("{} has both interval and rate", reader.path);
            return Err(reader.add_error("rate", message, "only one of them"));
        }
    };
    let payload_bytes = u32::try_from(payload).unwrap_or(u32::MAX);
    Ok(Box::new(ConstantRateSpec { payload_bytes, interval, count: count(tree, "packets") }))
}

impl WorkloadSettings for ConstantRateSpec {
    fn sends_on_one_stream(&self) -> bool {
        true
    }

    fn is_unlimited(&self) -> bool {
        self.count.is_none()
    }

    fn demand(&self, time_s: f64) -> Demand {
        let messages = demand::count(time_s, self.interval.as_secs_f64(), self.count);
        Demand::timer_driven(messages, f64::from(self.payload_bytes))
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let sender = ConstantRateSender::new(self.payload_bytes, self.interval, self.count, context.over_stream);
        Ok(context.with_sink(sender))
    }

    fn socket_traffic(&self) -> Option<SocketTraffic> {
        let ConstantRateSpec { payload_bytes, interval, count } = *self;
        Some(SocketTraffic::ConstantRate { payload_bytes, interval, count })
    }
}

/// A sender at a constant rate.
#[derive(Debug)]
pub struct ConstantRateSender {
    payload_bytes: u32,
    interval: Duration,
    remaining: u64,
    next: Instant,
    outlet: PayloadSender,
}

impl ConstantRateSender {
    /// Creates a sender of `count` payloads (`None`: unlimited) of `payload_bytes` bytes, one per `interval` (at least
    /// 1 ns). It sends the first payload at the start of the flow. Payloads are datagrams, or writes to a stream if
    /// `over_stream` is set.
    pub fn new(payload_bytes: u32, interval: Duration, count: Option<u64>, over_stream: bool) -> Self {
        ConstantRateSender {
            payload_bytes,
            interval: interval.max(Duration::from_nanos(1)),
            remaining: count.unwrap_or(u64::MAX),
            next: Instant::ZERO,
            outlet: PayloadSender::new(over_stream),
        }
    }
}

impl Application for ConstantRateSender {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.next = io.now();
        self.outlet.open(io);
        self.on_wake(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        if self.remaining == 0 {
            return;
        }
        if self.remaining != u64::MAX {
            self.remaining -= 1;
        }
        self.outlet.send(self.payload_bytes, io);
        if self.remaining > 0 {
            self.next = self.next.saturating_add(self.interval);
            io.wake_at(self.next);
        } else {
            self.outlet.end(io);
        }
    }

    fn on_stream(&mut self, _stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        self.outlet.on_stream(event, io);
    }
}
