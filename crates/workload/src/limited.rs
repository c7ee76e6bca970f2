//! Limited sender: a bulk transfer whose application limits its rate or pauses at given times.
//!
//! While there is no limit, the sender writes whenever less than one write, or 16 KiB if writes are smaller, is unsent, as an
//! application with `TCP_NOTSENT_LOWAT` (`tcp(7)`). A limit therefore takes effect almost at once. If a transport does not report
//! its unsent bytes, the sender fills the send buffer. While the rate is limited, writes are evenly spaced. A write for which the
//! send buffer has no room is skipped.

use crate::application::{Application, Io, StreamId};
use crate::content::{self, Content};
use fullpipe_schema::component::{InvalidSettings, SettingsReader};
use fullpipe_schema::{FieldKind, Table, Tree, keys};
use fullpipe_transport::TransportEvent;
use fullpipe_units::rate::Transmitter;
use fullpipe_units::{Duration, Instant, Rate};

/// A limit of the rate at which an application writes, from a given time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLimit {
    /// Time since the start of the run.
    pub at: Duration,
    /// The limit from this time on.
    pub rate: WriteRate,
}

/// The rate at which an application writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteRate {
    /// The application writes as fast as the transport sends.
    #[default]
    Unlimited,
    /// The application writes at most at this rate of payload bits.
    Limited(Rate),
    /// The application writes nothing.
    Paused,
}

/// A change of an application's limit.
pub(crate) static WRITE_LIMIT: Table = Table {
    name: "write limit",
    text: "The rate of an application's writes from a time on. Without `rate` and `pause`, it is not limited from then on.",
    fields: &[keys! {
        /// Time from the start of the run.
        "at": FieldKind::DURATION, required;
        /// Payload bits per second. Writes are evenly spaced and as large as 10 ms of the rate, but at least 1000 bytes and at most
        /// `write_size`.
        "rate": FieldKind::RATE, optional "not limited";
        /// Whether the application writes nothing, instead of `rate`.
        "pause": FieldKind::Boolean, default "false";
    }],
    ..Table::EMPTY
};

/// Reads the limits of a flow, whose times must increase.
pub(crate) fn read(reader: &mut SettingsReader<'_, '_>, trees: &[Tree]) -> Result<Vec<WriteLimit>, InvalidSettings> {
    let mut limits: Vec<WriteLimit> = Vec::new();
    for (index, tree) in trees.iter().enumerate() {
        let path = reader.path_of(&format!("limits.{index}"));
        let (at, pause) = (tree.duration("at"), tree.boolean("pause"));
        if pause && tree.get("rate").is_some() {
            let message = format!("{path} has both rate and pause");
            reader.check.add_error_at(tree, &path, "rate", message, "only one of them");
            return Err(InvalidSettings);
        }
        if let Some(last) = limits.last().filter(|last| at <= last.at) {
            let message = format!("{path}.at = {at} is not later than the previous limit");
            reader.check.add_error_at(tree, &path, "at", message, &format!("a time after {}", last.at));
            return Err(InvalidSettings);
        }
        let rate = match tree.get("rate") {
            _ if pause => WriteRate::Paused,
            Some(rate) => WriteRate::Limited(rate.rate()),
            None => WriteRate::Unlimited,
        };
        limits.push(WriteLimit { at, rate });
    }
    Ok(limits)
}

/// Time whose bytes one write of a limited application contains, unless they are very few or many.
const WRITE_TIME: Duration = Duration::from_millis(10);
/// Smallest write of a limited application.
const SMALLEST_WRITE_BYTES: u64 = 1000;
/// Unsent bytes below which an application without a limit writes, if its writes are smaller.
///
/// It exceeds ten packets: the initial window (RFC 6928), and the pacing burst of the QUIC model.
const UNLIMITED_LOW_WATER_BYTES: u64 = 16 << 10;

/// Returns the size of the writes of an application that is limited to a rate.
fn limited_write_bytes(rate: Rate, write_bytes: u64) -> u64 {
    let bytes = u128::from(rate.bits_per_second()) * u128::from(WRITE_TIME.as_nanos()) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX).max(SMALLEST_WRITE_BYTES).min(write_bytes)
}

/// The sender of a bulk transfer with limits.
#[derive(Debug)]
pub(crate) struct LimitedSender {
    /// Bytes still to write; `None`: unlimited.
    remaining_bytes: Option<u64>,
    write_bytes: u64,
    limits: Vec<WriteLimit>,
    /// Number of limits that were applied.
    applied: usize,
    rate: WriteRate,
    /// Size and spacing of the writes while the rate is limited.
    spacing: Option<(u64, Transmitter)>,
    /// Time of the next write while the rate is limited.
    due: Instant,
    stream: Option<StreamId>,
    content: Option<Box<Content>>,
}

impl LimitedSender {
    pub(crate) fn new(
        size_bytes: Option<u64>,
        write_bytes: u64,
        limits: Vec<WriteLimit>,
        content: Option<Content>,
    ) -> Self {
        LimitedSender {
            remaining_bytes: size_bytes,
            write_bytes: write_bytes.max(1),
            limits,
            applied: 0,
            rate: WriteRate::Unlimited,
            spacing: None,
            due: Instant::ZERO,
            stream: None,
            content: content.map(Box::new),
        }
    }

    fn next_limit_at(&self) -> Instant {
        self.limits.get(self.applied).map_or(Instant::NEVER, |limit| Instant::ZERO.saturating_add(limit.at))
    }

    /// Applies the limits up to now.
    fn apply_limits(&mut self, now: Instant) {
        while self.next_limit_at() <= now {
            let WriteLimit { at, rate } = self.limits[self.applied];
            self.applied += 1;
            (self.rate, self.due) = (rate, Instant::ZERO.saturating_add(at));
            self.spacing = match rate {
                WriteRate::Limited(rate) => Some((limited_write_bytes(rate, self.write_bytes), Transmitter::new(rate))),
                WriteRate::Unlimited | WriteRate::Paused => None,
            };
        }
    }

    /// Returns whether fewer bytes than `low_water_bytes` are unsent.
    fn is_below(&self, low_water_bytes: u64, io: &mut dyn Io) -> bool {
        let unsent = self.stream.and_then(|id| io.stream(id)).and_then(|stream| stream.unsent_bytes());
        unsent.is_none_or(|unsent| unsent < low_water_bytes)
    }

    /// Makes a write of at most `bytes` bytes. Returns whether there was room for it and more data remain.
    fn write(&mut self, bytes: u64, io: &mut dyn Io) -> bool {
        let Some(stream) = self.stream.and_then(|id| io.stream(id)) else { return false };
        let next = self.remaining_bytes.map_or(bytes, |remaining| remaining.min(bytes));
        if stream.writable_bytes() < next || stream.write(content::payload(&mut self.content, next)) != next {
            return false;
        }
        let Some(remaining) = &mut self.remaining_bytes else { return true };
        *remaining -= next;
        if *remaining == 0 {
            stream.finish();
            self.stream = None;
        }
        *remaining > 0
    }

    fn fill(&mut self, io: &mut dyn Io) {
        let now = io.now();
        self.apply_limits(now);
        let mut wake_at = self.next_limit_at();
        match (&mut self.spacing, self.rate) {
            (Some((bytes, spacing)), _) => {
                if self.due <= now {
                    let bytes = *bytes;
                    self.due = now.saturating_add(spacing.transmit(u32::try_from(bytes).unwrap_or(u32::MAX), false));
                    if self.is_below(self.write_bytes, io) {
                        self.write(bytes, io);
                    }
                }
                wake_at = wake_at.min(self.due);
            }
            (None, WriteRate::Unlimited) => {
                // The transport reports free space only when an acknowledgment arrives. With fewer unsent bytes than it sends until
                // the next acknowledgment, it could not fill the window.
                let low_water_bytes = self.write_bytes.max(UNLIMITED_LOW_WATER_BYTES);
                while self.is_below(low_water_bytes, io) && self.write(self.write_bytes, io) {}
            }
            (None, _) => {}
        }
        if self.stream.is_some() {
            io.wake_at(wake_at);
        }
    }
}

impl Application for LimitedSender {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.stream = Some(io.open());
        self.fill(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        self.fill(io);
    }

    fn on_stream(&mut self, _stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        if matches!(event, TransportEvent::Connected | TransportEvent::Writable) {
            self.fill(io);
        }
    }

    fn digest(&self) -> Option<String> {
        self.content.as_ref().map(|content| content.digest().to_hex())
    }
}
