//! A list of transfers on one connection. Each starts at its time, or when the previous one has been written if that is later.
//! The stream is finished after the last. The receiver records when it has received each transfer completely.

use crate::application::{self, Application, Completion, Io, Progress, StreamId};
use crate::component::{FlowContext, Protocol, WorkloadComponent, WorkloadSettings};
use crate::demand::Demand;
use fullpipe_schema::component::{self, Declaration, SettingsReader};
use fullpipe_schema::{Field, FieldKind, Table, keys};
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::{Duration, Instant, ParameterError};

pub(crate) static TRANSFERS: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "transfers",
        text: "a list of transfers one after another on one connection (TCP): each starts at its time, or when the one \
               before has been written if that is later. Default port 5001.",
        fields: &[keys! {
            /// The transfers in ascending order of their times, for example `[{ at = "0s", size = "1MB" }]`.
            "transfers": FieldKind::Tables(&TRANSFER), required;
        }],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Quic],
    port: 5001,
    read: |reader, _| read(reader),
    ..WorkloadComponent::EMPTY
};

static TRANSFER: Table = Table {
    name: "transfer",
    text: "One transfer of a list.",
    fields: &[&[
        Field::required("at", FieldKind::DURATION, "Start time, counted from the start of the flow."),
        Field::required("size", FieldKind::SIZE, "Size of the transfer."),
    ]],
    ..Table::EMPTY
};

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Start time, counted from the start of the flow.
    pub at: Duration,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// The settings of transfers on one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransfersSpec {
    /// The transfers in ascending order of time.
    pub transfers: Vec<Transfer>,
}

fn read(reader: &mut SettingsReader<'_, '_>) -> Result<Box<dyn WorkloadSettings>, component::InvalidSettings> {
    let mut transfers: Vec<Transfer> = Vec::new();
    for (index, entry) in reader.tree.tables("transfers").iter().enumerate() {
        let at = entry.duration("at");
        if let Some(before) = transfers.last().filter(|before| before.at > at) {
            let before = format!("{}.transfers.{}.at = {}", reader.path, index - 1, before.at);
            let path = format!("{}.transfers.{index}", reader.path);
            let message = format!("{path}.at = {at} is earlier than {before}");
            let mut entry = SettingsReader { tree: entry, path: &path, check: reader.check };
            return Err(entry.add_error("at", message, "transfers in ascending order of time"));
        }
        transfers.push(Transfer { at, size_bytes: entry.size("size") });
    }
    if transfers.is_empty() {
        return Err(reader.add_error(
            "transfers",
            format!("{}.transfers is empty", reader.path),
            "at least one transfer",
        ));
    }
    Ok(Box::new(TransfersSpec { transfers }))
}

impl WorkloadSettings for TransfersSpec {
    fn sends_on_one_stream(&self) -> bool {
        true
    }

    fn is_unlimited(&self) -> bool {
        false
    }

    fn demand(&self, time_s: f64) -> Demand {
        let begun = self.transfers.iter().filter(|transfer| transfer.at.as_secs_f64() < time_s);
        let (count, bytes) = begun.fold((0.0, 0.0), |(n, sum), transfer| (n + 1.0, sum + transfer.size_bytes as f64));
        Demand { timers: count, ..Demand::from_initiator(bytes) }
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let receiver = TransfersReceiver::new(self.transfers.clone(), context.start, context.receiver_closes);
        Ok([Box::new(TransfersSender::new(self.transfers.clone())), Box::new(receiver)])
    }
}

/// A sender of transfers.
#[derive(Debug)]
pub struct TransfersSender {
    transfers: Vec<Transfer>,
    next: usize,
    written_bytes: u64,
    started: Instant,
    stream: Option<StreamId>,
}

impl TransfersSender {
    /// Creates a sender of these transfers, in this order.
    pub fn new(transfers: Vec<Transfer>) -> Self {
        TransfersSender { transfers, next: 0, written_bytes: 0, started: Instant::ZERO, stream: None }
    }

    fn fill(&mut self, io: &mut dyn Io) {
        let Some(id) = self.stream else { return };
        while let Some(transfer) = self.transfers.get(self.next) {
            let at = self.started.saturating_add(transfer.at);
            if at > io.now() {
                return io.wake_at(at);
            }
            let Some(stream) = io.stream(id) else { return };
            self.written_bytes += stream.write(Payload::Length(transfer.size_bytes - self.written_bytes));
            if self.written_bytes < transfer.size_bytes {
                return;
            }
            self.next += 1;
            self.written_bytes = 0;
        }
        if let Some(stream) = io.stream(id) {
            stream.finish();
        }
        self.stream = None;
    }
}

impl Application for TransfersSender {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.started = io.now();
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
}

/// A receiver of transfers. The start of a completion is the time at which the transfer was due.
#[derive(Debug)]
pub struct TransfersReceiver {
    transfers: Vec<Transfer>,
    start: Instant,
    /// Whether it closes its own side after the peer has closed.
    closes: bool,
    /// Bytes received of the transfer whose completion is next.
    received_bytes: u64,
    completions: Vec<Completion>,
    progress: Progress,
}

impl TransfersReceiver {
    /// Creates a receiver of these transfers, for a flow that starts at `start`. If `closes` is set, it closes its side
    /// after its peer has closed.
    pub fn new(transfers: Vec<Transfer>, start: Instant, closes: bool) -> Self {
        TransfersReceiver {
            transfers,
            start,
            closes,
            received_bytes: 0,
            completions: Vec::new(),
            progress: Progress::default(),
        }
    }

    fn read(&mut self, id: StreamId, io: &mut dyn Io) {
        let now = io.now();
        while let Some(transfer) = self.transfers.get(self.completions.len()) {
            let length = application::read_length(id, transfer.size_bytes - self.received_bytes, io);
            if length == 0 {
                return;
            }
            self.progress.count_received(length, now);
            self.received_bytes += length;
            if self.received_bytes == transfer.size_bytes {
                let started = self.start.saturating_add(transfer.at);
                self.completions.push(Completion { started, completed: now, bytes: transfer.size_bytes });
                self.received_bytes = 0;
            }
        }
    }
}

impl Application for TransfersReceiver {
    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Readable => self.read(stream, io),
            TransportEvent::PeerFinished => {
                self.progress.completed = Some(io.now());
                if self.closes
                    && let Some(stream) = io.stream(stream)
                {
                    stream.finish();
                }
            }
            TransportEvent::Connected | TransportEvent::Writable | TransportEvent::Closed(_) => {}
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn completions(&self) -> &[Completion] {
        &self.completions
    }
}
