//! Voice: packets of a speech codec, continuously or in talk spurts.
//!
//! While the speaker talks, a side sends one packet of speech with an RTP header per packet interval (20 ms; RFC 3551, section
//! 4.5). With silence suppression, talk spurts and pauses alternate. They are exponential with the means of ITU-T P.59 (1993),
//! table 1: 1.004 s and 1.587 s, thus speech 38.75 % of the time. Packets are sent at the start of a spurt and then every packet
//! interval until its end. No comfort noise is sent during pauses.
//!
//! The caller starts with a talk spurt. The callee, if it speaks, starts when the first packet arrives: with a pause, or without
//! silence suppression with a packet. The two sides are independent: there are no double-talk rules.

use crate::application::{Application, Io, Progress};
use crate::component::{FlowContext, Protocol, WorkloadComponent, WorkloadSettings};
use crate::demand::{self, Demand};
use fullpipe_schema::component::{Declaration, choices};
use fullpipe_schema::{Choice, FieldKind, Value, keys};
use fullpipe_units::{Distribution, Duration, Instant, ParameterError, RandomStream};

pub(crate) static VOICE: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "voice",
        text: "a call (UDP): speech with an RTP header, in talk spurts or continuous. Default port 5004.",
        fields: &[keys! {
            /// Speech codec, which sets packet sizes and intervals.
            "codec": FieldKind::Choice(&choices(&CODEC)), default "g711";
            /// Whether talk spurts (mean 1.004 s) and pauses (mean 1.587 s) alternate, both exponential (ITU-T P.59).
            "silence_suppression": FieldKind::Boolean, default "true";
            /// Whether the callee speaks too.
            "both_ways": FieldKind::Boolean, default "true";
            /// Time for which each side speaks.
            "time": FieldKind::INTERVAL, optional "without end";
        }],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Udp],
    port: 5004,
    read: |reader, _| {
        Ok(Box::new(VoiceSpec {
            talk_spurts: reader.tree.boolean("silence_suppression").then(TalkSpurts::p59),
            both_ways: reader.tree.boolean("both_ways"),
            duration: reader.tree.get("time").map(Value::duration),
            ..reader.tree.choice_value("codec", &CODEC)()
        }))
    },
    ..WorkloadComponent::EMPTY
};

static CODEC: [(Choice, fn() -> VoiceSpec); 3] = [
    (Choice::new("g711", "64 kbit/s: 172 bytes every 20 ms with the RTP header."), VoiceSpec::g711),
    (Choice::new("g729", "8 kbit/s: 32 bytes every 20 ms with the RTP header."), VoiceSpec::g729),
    (Choice::new("amr", "12.2 kbit/s: 44 bytes every 20 ms with the RTP header."), VoiceSpec::amr_12_2),
];

/// Silence suppression: the talk spurts of a speaker and the pauses between them.
#[derive(Clone, Debug, PartialEq)]
pub struct TalkSpurts {
    /// Lengths of talk spurts in seconds.
    pub talk_s: Distribution,
    /// Lengths of pauses in seconds.
    pub pause_s: Distribution,
}

impl TalkSpurts {
    /// Returns the distributions of ITU-T P.59.
    pub fn p59() -> Self {
        TalkSpurts {
            talk_s: Distribution::Exponential { mean: 1.004 },
            pause_s: Distribution::Exponential { mean: 1.587 },
        }
    }
}

/// The settings of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct VoiceSpec {
    /// Payload of a packet in bytes: speech and RTP header (12 bytes).
    pub payload_bytes: u32,
    /// Packet interval while the speaker talks.
    pub interval: Duration,
    /// Silence suppression (`None`: continuous packets).
    pub talk_spurts: Option<TalkSpurts>,
    /// Whether the callee also sends packets, or only receives.
    pub both_ways: bool,
    /// How long each side speaks, from its start (`None`: unlimited).
    pub duration: Option<Duration>,
}

impl VoiceSpec {
    /// Returns the settings of G.711 (64 kbit/s): 160 bytes of speech per 20 ms, continuous, one way, without a time
    /// limit.
    pub fn g711() -> Self {
        Self::codec(160)
    }

    /// Returns the settings of G.729 (8 kbit/s): 20 bytes of speech per 20 ms, two frames of 10 ms; otherwise as
    /// [`VoiceSpec::g711`].
    pub fn g729() -> Self {
        Self::codec(20)
    }

    /// Returns the settings of AMR at 12.2 kbit/s: 32 bytes per 20 ms; otherwise as [`VoiceSpec::g711`]. The bytes
    /// consist of 4 bits of mode request, 6 of table of contents, 244 of speech, and padding (RFC 4867, section 4.3,
    /// bandwidth-efficient).
    pub fn amr_12_2() -> Self {
        Self::codec(32)
    }

    fn codec(speech_bytes: u32) -> Self {
        VoiceSpec {
            payload_bytes: 12 + speech_bytes,
            interval: Duration::from_millis(20),
            talk_spurts: None,
            both_ways: false,
            duration: None,
        }
    }
}

impl WorkloadSettings for VoiceSpec {
    fn is_unlimited(&self) -> bool {
        self.duration.is_none()
    }

    fn senders(&self) -> [bool; 2] {
        [true, self.both_ways]
    }

    fn demand(&self, time_s: f64) -> Demand {
        let time_s = self.duration.map_or(time_s, |duration| duration.as_secs_f64().min(time_s));
        let talking = self.talk_spurts.as_ref().map(|spurts| {
            let (talk_s, cycle_s) = (spurts.talk_s.mean(), spurts.talk_s.mean() + spurts.pause_s.mean());
            (talk_s / cycle_s, demand::is_steady(&spurts.talk_s, time_s / cycle_s))
        });
        let share = talking.map_or(1.0, |(share, steady)| if steady { share } else { 1.0 });
        let messages = demand::count(time_s * share, self.interval.as_secs_f64(), None);
        let sides = [1.0, f64::from(u8::from(self.both_ways))];
        let sent = Demand {
            bytes: sides.map(|sends| sends * messages * f64::from(self.payload_bytes)),
            messages: sides.map(|sends| sends * messages),
            timers: (sides[0] + sides[1]) * messages,
            ..Demand::NO_DATA
        };
        match talking {
            Some((_, false)) => sent.as_upper_bound("a call of few talk spurts, counted as if everybody always spoke"),
            _ => sent,
        }
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let callee = VoiceEndpoint::callee(self, context.random("callee"))?;
        Ok([Box::new(VoiceEndpoint::caller(self, context.random("caller"))?), Box::new(callee)])
    }

    fn check(&self) -> Result<(), ParameterError> {
        ParameterError::ensure(self.payload_bytes <= crate::MAX_DATAGRAM_BYTES, "payload must be at most 65507 bytes")?;
        ParameterError::ensure(!self.interval.is_zero(), "interval must be positive")?;
        let Some(spurts) = &self.talk_spurts else { return Ok(()) };
        spurts.talk_s.check().map_err(|invalid| invalid.in_field("talk spurt"))?;
        spurts.pause_s.check().map_err(|invalid| invalid.in_field("pause"))?;
        ParameterError::ensure(spurts.talk_s.mean() >= 1e-9, "the mean talk spurt must be at least 1 ns")
    }
}

/// One side of a call.
#[derive(Debug)]
pub struct VoiceEndpoint {
    spec: VoiceSpec,
    random: RandomStream,
    speaks: bool,
    started: bool,
    /// When the next packet is due.
    next: Instant,
    /// End of the current talk spurt.
    spurt_end: Instant,
    until: Instant,
    progress: Progress,
}

impl VoiceEndpoint {
    /// Creates the caller. `random` must differ from the callee's random stream.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn caller(spec: &VoiceSpec, random: RandomStream) -> Result<Self, ParameterError> {
        Self::new(spec, random, true)
    }

    /// Creates the callee, which sends packets if [`VoiceSpec::both_ways`] is set. `random` must differ from the
    /// caller's random stream.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn callee(spec: &VoiceSpec, random: RandomStream) -> Result<Self, ParameterError> {
        Self::new(spec, random, spec.both_ways)
    }

    fn new(spec: &VoiceSpec, random: RandomStream, speaks: bool) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(VoiceEndpoint {
            spec: spec.clone(),
            random,
            speaks,
            started: false,
            next: Instant::ZERO,
            spurt_end: Instant::NEVER,
            until: Instant::NEVER,
            progress: Progress::default(),
        })
    }

    fn start(&mut self, io: &mut dyn Io) {
        self.started = true;
        self.next = io.now();
        self.until = self.spec.duration.map_or(Instant::NEVER, |duration| io.now().saturating_add(duration));
    }

    fn begin_spurt(&mut self) {
        if let Some(spurts) = &self.spec.talk_spurts {
            self.spurt_end = self.next.saturating_add(spurts.talk_s.sample_duration(&mut self.random));
        }
    }

    /// Schedules the next spurt after a pause from `from`.
    fn pause(&mut self, from: Instant) {
        if let Some(spurts) = &self.spec.talk_spurts {
            self.next = from.saturating_add(spurts.pause_s.sample_duration(&mut self.random));
            self.begin_spurt();
        }
    }

    fn schedule(&self, io: &mut dyn Io) {
        if self.next < self.until {
            io.wake_at(self.next);
        }
    }
}

impl Application for VoiceEndpoint {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.start(io);
        self.begin_spurt();
        self.schedule(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        io.send_datagram(self.spec.payload_bytes);
        let sent = self.next;
        self.next = sent.saturating_add(self.spec.interval);
        if self.next >= self.spurt_end {
            // A spurt of length zero still has a packet. The pause begins at least a nanosecond later, so that time advances.
            self.pause(self.spurt_end.max(sent.saturating_add(Duration::from_nanos(1))));
        }
        self.schedule(io);
    }

    fn on_datagram(&mut self, payload_bytes: u32, io: &mut dyn Io) {
        self.progress.count_received(u64::from(payload_bytes), io.now());
        if self.speaks && !self.started {
            self.start(io);
            self.pause(io.now());
            self.schedule(io);
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
