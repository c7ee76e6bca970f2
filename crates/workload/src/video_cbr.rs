//! Video at a constant bit rate: a frame per frame interval, in packets with a maximum payload.
//!
//! A group of pictures is one I frame followed by P frames (ISO/IEC 14496-2; no B frames, which would only permute sizes). The
//! group has rate times frames over frames per second bits. Of these, each P frame gets one share and the I frame `i_to_p_ratio`
//! shares. Fractions of a byte are carried over to the next frame, so that every group has its exact number of bytes. The n-th
//! frame is due n frame intervals after the start, rounded to the nanosecond. It is sent at once: as full packets and one with
//! the rest, or as one write to a stream.

use crate::application::{Application, Io, StreamId};
use crate::component::{COUNT, FlowContext, PAYLOAD, Protocol, WorkloadComponent, WorkloadSettings, count, small};
use crate::demand::{self, Demand};
use crate::outlet::PayloadSender;
use fullpipe_schema::component::Declaration;
use fullpipe_schema::{Field, FieldKind};
use fullpipe_transport::TransportEvent;
use fullpipe_units::{Duration, Instant, ParameterError, Rate};

pub(crate) static VIDEO_CBR: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "video-cbr",
        text: "video at a constant bit rate: groups of an I frame and P frames, each frame in packets (UDP) or writes \
               (TCP) that follow one another at once. Default port 5004.",
        fields: &[&[
            Field::required("rate", FieldKind::RATE, "Payload bits per second over a group."),
            Field::default("frame_rate", FieldKind::number(0.1, 1000.0), "25.0", "Frames per second."),
            Field::default("group", FieldKind::integer(1, 10_000), "12", "Distance between I frames.")
                .with_unit("frames"),
            Field::default(
                "i_to_p",
                FieldKind::number(1.0, 1000.0),
                "3.0",
                "Size of an I frame divided by that of a P frame.",
            ),
            Field::default("payload", PAYLOAD, "1200B", "Largest payload of a packet or write."),
            Field::optional("frames", COUNT, "without end", "Number of frames."),
        ]],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Udp, Protocol::Quic],
    port: 5004,
    write_key: Some("payload"),
    read: |reader, _| {
        Ok(Box::new(VideoCbrSpec {
            rate: reader.tree.rate("rate"),
            frames_per_s: reader.tree.number("frame_rate"),
            group_frames: u32::try_from(reader.tree.integer("group")).unwrap_or(u32::MAX),
            i_to_p_ratio: reader.tree.number("i_to_p"),
            max_payload_bytes: small(reader.tree, "payload"),
            frames: count(reader.tree, "frames"),
        }))
    },
    ..WorkloadComponent::EMPTY
};

/// The settings of a video source.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoCbrSpec {
    /// Rate of payload bits over a group of pictures.
    pub rate: Rate,
    /// Frames per second, for instance 25 or 29.97; at most a million.
    pub frames_per_s: f64,
    /// Frames of a group of pictures: the first is an I frame, the others are P frames. 1: I frames only.
    pub group_frames: u32,
    /// Size of an I frame divided by that of a P frame.
    pub i_to_p_ratio: f64,
    /// Largest payload of a packet in bytes.
    pub max_payload_bytes: u32,
    /// Number of frames (`None`: unlimited).
    pub frames: Option<u64>,
}

impl WorkloadSettings for VideoCbrSpec {
    fn is_unlimited(&self) -> bool {
        self.frames.is_none()
    }

    fn demand(&self, time_s: f64) -> Demand {
        let frames = demand::count(time_s, 1.0 / self.frames_per_s, self.frames);
        let bytes = frames * self.group_bytes() / f64::from(self.group_frames);
        // The last packet of a frame is half full on average.
        let packets = bytes / f64::from(self.max_payload_bytes) + frames / 2.0;
        Demand { messages: [packets.max(frames), 0.0], timers: frames, ..Demand::from_initiator(bytes) }
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        Ok(context.with_sink(VideoCbrSender::new(self, context.over_stream)?))
    }

    fn check(&self) -> Result<(), ParameterError> {
        let frames = self.frames_per_s > 0.0 && self.frames_per_s <= 1e6;
        ParameterError::ensure(frames, "the frame rate must be positive and at most 1 million frames per second")?;
        ParameterError::ensure(self.group_frames > 0, "a group of pictures must have at least one frame")?;
        let ratio = self.i_to_p_ratio > 0.0 && self.i_to_p_ratio.is_finite();
        ParameterError::ensure(ratio, "the ratio of I to P frame sizes must be positive")?;
        let payload = (1..=crate::MAX_DATAGRAM_BYTES).contains(&self.max_payload_bytes);
        ParameterError::ensure(payload, "the largest payload must be from 1 to 65507 bytes")?;
        let frame = self.group_bytes() < f64::from(u32::MAX);
        ParameterError::ensure(frame, "a group of pictures must have less than 4 GiB")
    }
}

impl VideoCbrSpec {
    fn group_bytes(&self) -> f64 {
        self.rate.bits_per_second() as f64 / 8.0 * f64::from(self.group_frames) / self.frames_per_s
    }

    /// Total bytes of all frames before number `frame`.
    fn bytes_before(&self, frame: u64) -> u64 {
        let group = frame / u64::from(self.group_frames);
        let within = frame % u64::from(self.group_frames);
        let shares = self.i_to_p_ratio + f64::from(self.group_frames - 1);
        let passed = if within == 0 { 0.0 } else { self.i_to_p_ratio + (within - 1) as f64 };
        ((group as f64 + passed / shares) * self.group_bytes()).round() as u64
    }

    fn frame_bytes(&self, frame: u64) -> u32 {
        // The value is below the size of a group, which fits.
        self.bytes_before(frame + 1).saturating_sub(self.bytes_before(frame)) as u32
    }
}

/// A video sender.
#[derive(Debug)]
pub struct VideoCbrSender {
    spec: VideoCbrSpec,
    outlet: PayloadSender,
    over_stream: bool,
    start: Instant,
    /// Number of the next frame.
    frame: u64,
}

impl VideoCbrSender {
    /// Creates a sender of datagrams, or of one write per frame to a stream if `over_stream` is set.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &VideoCbrSpec, over_stream: bool) -> Result<Self, ParameterError> {
        spec.check()?;
        let outlet = PayloadSender::new(over_stream);
        Ok(VideoCbrSender { spec: spec.clone(), outlet, over_stream, start: Instant::ZERO, frame: 0 })
    }

    fn send(&mut self, mut frame_bytes: u32, io: &mut dyn Io) {
        let limit = if self.over_stream { u32::MAX } else { self.spec.max_payload_bytes };
        while frame_bytes > 0 {
            let payload = frame_bytes.min(limit);
            self.outlet.send(payload, io);
            frame_bytes -= payload;
        }
    }
}

impl Application for VideoCbrSender {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.start = io.now();
        self.outlet.open(io);
        self.on_wake(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        if self.spec.frames.is_none_or(|frames| self.frame < frames) {
            self.send(self.spec.frame_bytes(self.frame), io);
            self.frame += 1;
        }
        if self.spec.frames.is_some_and(|frames| self.frame >= frames) {
            return self.outlet.end(io);
        }
        let due = Duration::from_secs_f64(self.frame as f64 / self.spec.frames_per_s);
        io.wake_at(self.start.saturating_add(due));
    }

    fn on_stream(&mut self, _stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        self.outlet.on_stream(event, io);
    }
}
