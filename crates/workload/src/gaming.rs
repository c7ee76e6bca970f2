//! Gaming: state updates of a first-person shooter as datagrams, from client to server and from server to client.
//!
//! Each direction draws packet intervals and sizes independently. Server packets are those to one player. Two published models:
//! - Counter-Strike: Färber, "Network game traffic modelling", NetGames 2002: client every 40 ms, sizes Ext(80, 5.7)
//!   bytes; server intervals Ext(55, 6) ms, sizes Ext(120, 36) bytes, where Ext(a, b) is the largest extreme value
//!   distribution.
//! - The gaming user of NGMN ("Radio access performance evaluation methodology", 2008, annex A) and 3GPP (R1-070674): the same
//!   with Ext(45, 5.7) bytes from the client, and first packets uniform in 40 ms. Its two bytes for a compressed UDP header are
//!   omitted, since the network adds headers.
//!
//! The client starts with the flow; the server starts when the client's first packet arrives.

use crate::application::{Application, Io, Progress};
use crate::component::{FlowContext, Protocol, WorkloadComponent, WorkloadSettings};
use crate::demand::{self, Demand};
use fullpipe_schema::component::{Declaration, choices};
use fullpipe_schema::{Choice, Field, FieldKind, Value};
use fullpipe_units::{Distribution, Duration, Instant, ParameterError, RandomStream};

pub(crate) static GAMING: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "gaming",
        text: "state updates of a first-person shooter (UDP): `from` is the player, `to` the server. Default port 27015.",
        fields: &[&[
            Field::default("model", FieldKind::Choice(&choices(&MODEL)), "counter-strike", "Sizes and intervals."),
            Field::optional("time", FieldKind::INTERVAL, "without end", "Time for which each side sends."),
        ]],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Udp],
    port: 27_015,
    read: |reader, _| {
        let duration = reader.tree.get("time").map(Value::duration);
        Ok(Box::new(GamingSpec { duration, ..reader.tree.choice_value("model", &MODEL)() }))
    },
    ..WorkloadComponent::EMPTY
};

static MODEL: [(Choice, fn() -> GamingSpec); 2] = [
    (Choice::new("counter-strike", "Färber, NetGames 2002."), GamingSpec::counter_strike),
    (Choice::new("ngmn", "the gaming user of NGMN (2008) and 3GPP R1-070674."), GamingSpec::ngmn),
];

/// The packets of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct GamePackets {
    /// Time from the start of this direction to its first packet, in seconds.
    pub first_s: Distribution,
    /// Packet intervals in seconds.
    pub interval_s: Distribution,
    /// Payload sizes in bytes (each at least 1 and at most 65 507).
    pub payload_bytes: Distribution,
}

/// The settings of one player and the server.
#[derive(Clone, Debug, PartialEq)]
pub struct GamingSpec {
    /// Packets from the client (the initiator) to the server.
    pub client: GamePackets,
    /// Packets from the server to the client.
    pub server: GamePackets,
    /// How long each side sends, from its start (`None`: unlimited).
    pub duration: Option<Duration>,
}

impl GamePackets {
    fn check(&self) -> Result<(), ParameterError> {
        self.first_s.check().map_err(|invalid| invalid.in_field("first packet"))?;
        self.interval_s.check().map_err(|invalid| invalid.in_field("interval"))?;
        self.payload_bytes.check().map_err(|invalid| invalid.in_field("payload"))?;
        ParameterError::ensure(self.interval_s.mean() >= 1e-9, "the mean interval must be at least 1 ns")
    }
}

impl GamingSpec {
    /// Returns the Counter-Strike model of Färber, without a time limit.
    pub fn counter_strike() -> Self {
        let extreme = |location, scale| Distribution::ExtremeValue { location, scale };
        let at_once = Distribution::Constant { value: 0.0 };
        GamingSpec {
            client: GamePackets {
                first_s: at_once.clone(),
                interval_s: Distribution::Constant { value: 0.040 },
                payload_bytes: extreme(80.0, 5.7),
            },
            server: GamePackets {
                first_s: at_once,
                interval_s: extreme(0.055, 0.006),
                payload_bytes: extreme(120.0, 36.0),
            },
            duration: None,
        }
    }

    /// Returns the gaming model of NGMN and 3GPP, without a time limit.
    pub fn ngmn() -> Self {
        let mut spec = Self::counter_strike();
        spec.client.payload_bytes = Distribution::ExtremeValue { location: 45.0, scale: 5.7 };
        spec.client.first_s = Distribution::Uniform { low: 0.0, high: 0.040 };
        spec.server.first_s = spec.client.first_s.clone();
        spec
    }
}

impl WorkloadSettings for GamingSpec {
    fn is_unlimited(&self) -> bool {
        self.duration.is_none()
    }

    fn senders(&self) -> [bool; 2] {
        [true, true]
    }

    fn demand(&self, time_s: f64) -> Demand {
        let time_s = self.duration.map_or(time_s, |duration| duration.as_secs_f64().min(time_s));
        let sent = |packets: &GamePackets| {
            let messages = demand::count(time_s, packets.interval_s.mean(), None);
            Demand::timer_driven(messages, packets.payload_bytes.mean())
        };
        let [client, server] = [sent(&self.client), sent(&self.server)];
        Demand {
            bytes: [client.bytes[0], server.bytes[0]],
            messages: [client.messages[0], server.messages[0]],
            timers: client.timers + server.timers,
            ..Demand::NO_DATA
        }
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let server = GamingEndpoint::server(self, context.random("server"))?;
        Ok([Box::new(GamingEndpoint::client(self, context.random("client"))?), Box::new(server)])
    }

    fn check(&self) -> Result<(), ParameterError> {
        self.client.check().map_err(|invalid| invalid.in_field("client"))?;
        self.server.check().map_err(|invalid| invalid.in_field("server"))
    }
}

/// The client or the server of a game.
#[derive(Debug)]
pub struct GamingEndpoint {
    packets: GamePackets,
    duration: Option<Duration>,
    random: RandomStream,
    started: bool,
    next: Instant,
    until: Instant,
    progress: Progress,
}

impl GamingEndpoint {
    /// Creates the client. `random` must differ from the server's random stream.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn client(spec: &GamingSpec, random: RandomStream) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(Self::new(spec.client.clone(), spec.duration, random))
    }

    /// Creates the server. `random` must differ from the client's random stream.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn server(spec: &GamingSpec, random: RandomStream) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(Self::new(spec.server.clone(), spec.duration, random))
    }

    fn new(packets: GamePackets, duration: Option<Duration>, random: RandomStream) -> Self {
        GamingEndpoint {
            packets,
            duration,
            random,
            started: false,
            next: Instant::ZERO,
            until: Instant::NEVER,
            progress: Progress::default(),
        }
    }

    fn schedule(&mut self, after: Duration, io: &mut dyn Io) {
        self.next = self.next.saturating_add(after);
        if self.next < self.until {
            io.wake_at(self.next);
        }
    }
}

impl Application for GamingEndpoint {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.started = true;
        self.next = io.now();
        self.until = self.duration.map_or(Instant::NEVER, |duration| io.now().saturating_add(duration));
        let first = self.packets.first_s.sample_duration(&mut self.random);
        self.schedule(first, io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        let payload = self.packets.payload_bytes.sample_bytes(&mut self.random);
        io.send_datagram(payload.min(u64::from(crate::MAX_DATAGRAM_BYTES)) as u32);
        let interval = self.packets.interval_s.sample_duration(&mut self.random);
        // At least a nanosecond: the extreme value distribution has no lower bound.
        self.schedule(interval.max(Duration::from_nanos(1)), io);
    }

    fn on_datagram(&mut self, payload_bytes: u32, io: &mut dyn Io) {
        self.progress.count_received(u64::from(payload_bytes), io.now());
        if !self.started {
            self.on_start(io);
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
