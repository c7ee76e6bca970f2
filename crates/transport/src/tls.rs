//! A model of TLS 1.3 (RFC 8446) over any stream: its round trips and sizes, without cryptography.
//!
//! **Model.** The ClientHello, the server's flight from ServerHello to Finished, and the client's Finished have
//! realistic lengths. They add one round trip before the first request (section 2, figure 1), or none if a returning
//! client sends early data (0-RTT, section 2.3). Application data is sent in records of at most 2^14 bytes. A record is
//! 22 bytes larger than its content: header 5, content type 1, tag 16 (section 5.2, AES-GCM). A record can be read once
//! all of it has arrived. A close_notify alert announces the end (section 6.1).
//!
//! The stream contains real record headers, and the first byte of a handshake message is its type. Everything else is a
//! length without content if the application writes lengths. The model has two simplifications. First, the type of a
//! record is that of its content, although all encrypted records have the type application_data. Second, the byte after
//! the type of the ClientHello states the mode (resumption, early data), which a ticket would indicate to a real
//! server. New tickets are not sent, nothing is computed, and a server accepts every mode.
//!
//! **Lengths.** ServerHello 4 + 2 + 32 + 1 + 32 + 2 + 1 + 2 and the extensions supported_versions 6 and key_share
//! (X25519) 40, plus 6 with a pre-shared key (sections 4.1.3 and 4.2); change_cipher_spec 1 (appendix D.4);
//! EncryptedExtensions 6; Certificate 8 and the chain; CertificateVerify 8 and a signature of 256 (RSA 2048); Finished
//! 4 + 48 (SHA-384), with its record 74; EndOfEarlyData 4, with its record 26.

use crate::{Payload, Stream, TransportEvent};
use bytes::BytesMut;
use std::collections::VecDeque;

/// Maximum number of application bytes in a record (RFC 8446 section 5.1).
pub const MAX_RECORD_BYTES: u64 = 1 << 14;
/// Bytes that a record adds to its content (RFC 8446 section 5.2).
pub const RECORD_OVERHEAD_BYTES: u64 = HEADER_BYTES + TRAILER_BYTES;

const HEADER_BYTES: u64 = 5;
/// Inner content type and tag.
const TRAILER_BYTES: u64 = 17;

/// Content types (section 5.1).
mod content {
    pub(super) const CHANGE_CIPHER_SPEC: u8 = 20;
    pub(super) const ALERT: u8 = 21;
    pub(super) const HANDSHAKE: u8 = 22;
    pub(super) const APPLICATION_DATA: u8 = 23;
}

/// Handshake types (section 4).
mod message {
    pub(super) const CLIENT_HELLO: u8 = 1;
    pub(super) const SERVER_HELLO: u8 = 2;
    pub(super) const END_OF_EARLY_DATA: u8 = 5;
    pub(super) const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub(super) const FINISHED: u8 = 20;
}

const SERVER_HELLO_BYTES: u64 = 4 + 2 + 32 + 1 + 32 + 2 + 1 + 2 + 6 + 40;
const PRE_SHARED_KEY_BYTES: u64 = 6;
const ENCRYPTED_EXTENSIONS_BYTES: u64 = 6;
const CERTIFICATE_MESSAGE_BYTES: u64 = 8;
const CERTIFICATE_VERIFY_BYTES: u64 = 8 + 256;
const FINISHED_BYTES: u64 = 4 + 48;
const END_OF_EARLY_DATA_BYTES: u64 = 4;
const ALERT_BYTES: u64 = 2;

/// The kind of handshake that a client starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandshakeMode {
    /// A full handshake, with a certificate.
    #[default]
    Full,
    /// A resumption, with a pre-shared key from an earlier connection instead of a certificate (RFC 8446 section 2.2).
    Resumption,
    /// A resumption with early data in the first flight (RFC 8446 section 2.3).
    EarlyData,
}

/// Settings of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Handshake mode of a client. A server uses the mode that the client sends.
    pub mode: HandshakeMode,
    /// Size of the ClientHello with its record header, in bytes; at least 7.
    pub client_hello_bytes: u64,
    /// Size of the server's certificate chain in bytes.
    pub certificate_bytes: u64,
    /// Maximum number of application bytes that a client may send before the response of the server arrives.
    pub max_early_data_bytes: u64,
}

impl Default for Settings {
    /// A ClientHello of 512 bytes (browsers pad to this size, RFC 7685), a certificate chain of 3000 bytes, and early
    /// data of one record.
    fn default() -> Settings {
        Settings {
            mode: HandshakeMode::Full,
            client_hello_bytes: 512,
            certificate_bytes: 3000,
            max_early_data_bytes: MAX_RECORD_BYTES,
        }
    }
}

impl Settings {
    /// Returns the size of the server's first flight on the stream, in bytes.
    pub fn server_flight_bytes(&self) -> u64 {
        let (hello, sealed) = self.server_flight(self.mode);
        let records = sealed.div_ceil(MAX_RECORD_BYTES);
        HEADER_BYTES + hello + HEADER_BYTES + 1 + sealed + records * RECORD_OVERHEAD_BYTES
    }

    /// Returns the bytes of the ServerHello, and of the encrypted messages that follow it.
    fn server_flight(&self, mode: HandshakeMode) -> (u64, u64) {
        let resumed = ENCRYPTED_EXTENSIONS_BYTES + FINISHED_BYTES;
        match mode {
            HandshakeMode::Full => {
                let proof = CERTIFICATE_MESSAGE_BYTES + self.certificate_bytes + CERTIFICATE_VERIFY_BYTES;
                (SERVER_HELLO_BYTES, resumed + proof)
            }
            HandshakeMode::Resumption | HandshakeMode::EarlyData => {
                (SERVER_HELLO_BYTES + PRE_SHARED_KEY_BYTES, resumed)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The client has sent its ClientHello.
    HelloSent,
    /// The server waits for a ClientHello.
    Waiting,
    /// The server has answered and waits for the client's Finished.
    Answered,
    /// Both ends have sent Finished.
    Open,
}

/// The record that is being read.
#[derive(Debug, Default)]
struct Reading {
    header: Vec<u8>,
    /// The remaining bytes of the body, and its first two bytes.
    left: u64,
    first: Vec<u8>,
    /// Application data of the record.
    body: VecDeque<Payload>,
    body_left: u64,
}

/// The TLS state of one endpoint, stored separately from the stream that it protects. The host calls [`Session::start`]
/// once and passes every event of the stream to [`Session::on_event`]. It polls the application's events with
/// [`Session::poll_event`]. The application uses the stream returned by [`Session::stream`].
#[derive(Debug)]
pub struct Session {
    settings: Settings,
    client: bool,
    state: State,
    mode: HandshakeMode,
    early_bytes: u64,
    reading: Reading,
    /// Plaintext of complete records that has not been read yet.
    plain: VecDeque<Payload>,
    plain_bytes: u64,
    /// Data for which the stream had no space.
    unsent: VecDeque<Payload>,
    finish: Finish,
    events: VecDeque<TransportEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finish {
    No,
    Asked,
    Announced,
    Done,
}

impl Session {
    /// Returns the session of a client.
    pub fn client(settings: Settings) -> Session {
        Session::new(settings, true)
    }

    /// Returns the session of a server, which uses only `certificate_bytes` of the settings.
    pub fn server(settings: Settings) -> Session {
        Session::new(settings, false)
    }

    fn new(settings: Settings, client: bool) -> Session {
        Session {
            settings,
            client,
            state: if client { State::HelloSent } else { State::Waiting },
            mode: settings.mode,
            early_bytes: 0,
            reading: Reading::default(),
            plain: VecDeque::new(),
            plain_bytes: 0,
            unsent: VecDeque::new(),
            finish: Finish::No,
            events: VecDeque::new(),
        }
    }

    /// Starts the session on a stream. A client writes its ClientHello and may then write early data.
    pub fn start(&mut self, stream: &mut dyn Stream) {
        if self.client {
            let length = self.settings.client_hello_bytes.saturating_sub(HEADER_BYTES).max(2);
            self.put_record(content::HANDSHAKE, &[message::CLIENT_HELLO, self.mode as u8], length);
            if self.mode == HandshakeMode::EarlyData {
                self.events.push_back(TransportEvent::Connected);
            }
            self.flush(stream);
        }
    }

    /// Processes an event of the stream.
    pub fn on_event(&mut self, stream: &mut dyn Stream, event: TransportEvent) {
        match event {
            // The application receives this event when TLS is ready.
            TransportEvent::Connected => self.flush(stream),
            TransportEvent::Writable => {
                self.flush(stream);
                if self.writable_bytes(stream) > 0 {
                    self.events.push_back(TransportEvent::Writable);
                }
            }
            TransportEvent::Readable => {
                let before = self.plain_bytes;
                self.pump(stream);
                if self.plain_bytes > before {
                    self.events.push_back(TransportEvent::Readable);
                }
            }
            TransportEvent::PeerFinished | TransportEvent::Closed(_) => {
                self.pump(stream);
                self.events.push_back(event);
            }
        }
    }

    /// Returns the next event for the application; `None` if there is none.
    pub fn poll_event(&mut self) -> Option<TransportEvent> {
        self.events.pop_front()
    }

    /// Returns whether the handshake is complete at this end.
    pub fn is_handshake_complete(&self) -> bool {
        self.state == State::Open
    }

    /// Returns the stream that the application reads and writes.
    pub fn stream<'a>(&'a mut self, stream: &'a mut dyn Stream) -> TlsStream<'a> {
        TlsStream { session: self, stream }
    }

    // Writing ----------------------------------------------------------------------------------------------------

    /// Writes a record without encryption: the header, and a body with the given first bytes.
    fn put_record(&mut self, kind: u8, first: &[u8], body_bytes: u64) {
        self.put_header(kind, first, body_bytes);
        self.put_length(body_bytes - first.len() as u64);
    }

    /// Writes the header of a record and the first bytes of its body.
    fn put_header(&mut self, kind: u8, first: &[u8], body_bytes: u64) {
        let mut head = BytesMut::with_capacity(first.len() + 5);
        head.extend_from_slice(&[kind, 3, 3]);
        head.extend_from_slice(&(body_bytes as u16).to_be_bytes());
        head.extend_from_slice(first);
        self.unsent.push_back(Payload::Bytes(head.freeze()));
    }

    /// Writes an encrypted record with a message or a part of one.
    fn put_sealed(&mut self, kind: u8, first: &[u8], content_bytes: u64) {
        self.put_record(kind, first, content_bytes + TRAILER_BYTES);
    }

    fn put_length(&mut self, length: u64) {
        if length > 0 {
            self.unsent.push_back(Payload::Length(length));
        }
    }

    fn flush(&mut self, stream: &mut dyn Stream) {
        while let Some(payload) = self.unsent.pop_front() {
            let length = payload.len();
            let taken = stream.write(payload.clone());
            if taken < length {
                self.unsent.push_front(rest(payload, taken));
                return;
            }
        }
        if self.finish == Finish::Announced {
            self.finish = Finish::Done;
            stream.finish();
        }
    }

    /// Returns the number of application bytes that can be read now.
    pub fn readable_bytes(&self) -> u64 {
        self.plain_bytes
    }

    /// Returns the number of application bytes that can be written now to the stream that this session protects.
    pub fn writable_bytes(&self, stream: &dyn Stream) -> u64 {
        let most = match self.state {
            _ if self.finish != Finish::No || !self.unsent.is_empty() => 0,
            State::Open => u64::MAX,
            State::HelloSent if self.mode == HandshakeMode::EarlyData => {
                self.settings.max_early_data_bytes.saturating_sub(self.early_bytes)
            }
            State::Answered if self.mode == HandshakeMode::EarlyData => u64::MAX,
            _ => 0,
        };
        let space = stream.writable_bytes();
        let whole = MAX_RECORD_BYTES + RECORD_OVERHEAD_BYTES;
        let fits = space / whole * MAX_RECORD_BYTES + (space % whole).saturating_sub(RECORD_OVERHEAD_BYTES);
        fits.min(most)
    }

    fn write(&mut self, stream: &mut dyn Stream, payload: Payload) -> u64 {
        let taken = payload.len().min(self.writable_bytes(stream));
        let mut left = taken;
        let mut payload = payload;
        while left > 0 {
            let length = left.min(MAX_RECORD_BYTES);
            let (piece, others) = (first(&payload, length), rest(payload, length));
            self.put_header(content::APPLICATION_DATA, &[], length + TRAILER_BYTES);
            self.unsent.push_back(piece);
            self.put_length(TRAILER_BYTES);
            payload = others;
            left -= length;
        }
        if self.client && self.state == State::HelloSent {
            self.early_bytes += taken;
        }
        self.flush(stream);
        taken
    }

    fn ask_finish(&mut self, stream: &mut dyn Stream) {
        if self.finish == Finish::No {
            self.finish = Finish::Asked;
        }
        self.announce_finish(stream);
    }

    /// Sends the alert after the handshake is complete.
    fn announce_finish(&mut self, stream: &mut dyn Stream) {
        if self.finish == Finish::Asked && self.state == State::Open {
            self.put_sealed(content::ALERT, &[], ALERT_BYTES);
            self.finish = Finish::Announced;
        }
        self.flush(stream);
    }

    // Reading ----------------------------------------------------------------------------------------------------

    /// Reads records from the stream until one with application data is complete or no data is left.
    fn pump(&mut self, stream: &mut dyn Stream) {
        while self.plain_bytes == 0 {
            let wanted = match self.reading.left {
                0 => HEADER_BYTES - self.reading.header.len() as u64,
                left => left,
            };
            let Some(piece) = stream.read(wanted) else { return };
            if self.reading.left == 0 {
                self.read_header(&piece);
            } else {
                self.read_body(stream, piece);
            }
        }
    }

    fn read_header(&mut self, piece: &Payload) {
        let reading = &mut self.reading;
        match piece {
            Payload::Bytes(bytes) => reading.header.extend_from_slice(bytes),
            Payload::Length(length) => reading.header.resize(reading.header.len() + *length as usize, 0),
        }
        if let [kind, _, _, high, low] = reading.header[..] {
            reading.left = u64::from(high) << 8 | u64::from(low);
            reading.first.clear();
            reading.body.clear();
            reading.body_left =
                if kind == content::APPLICATION_DATA { reading.left.saturating_sub(TRAILER_BYTES) } else { 0 };
        }
    }

    fn read_body(&mut self, stream: &mut dyn Stream, piece: Payload) {
        let reading = &mut self.reading;
        reading.left -= piece.len();
        if reading.body_left > 0 {
            let data = piece.len().min(reading.body_left);
            reading.body_left -= data;
            reading.body.push_back(first(&piece, data));
        } else if let Payload::Bytes(bytes) = &piece {
            let missing = 2usize.saturating_sub(reading.first.len());
            reading.first.extend(bytes.iter().take(missing));
        }
        if reading.left == 0 {
            let kind = reading.header[0];
            reading.header.clear();
            let body = std::mem::take(&mut reading.body);
            self.plain_bytes += body.iter().map(Payload::len).sum::<u64>();
            self.plain.extend(body);
            if kind == content::HANDSHAKE {
                let mark = [0, 1].map(|place| self.reading.first.get(place).copied().unwrap_or(0));
                self.on_message(stream, mark);
            }
        }
    }

    /// Processes a handshake message, or the last of several in a record: its type, and the next byte.
    fn on_message(&mut self, stream: &mut dyn Stream, [kind, mode]: [u8; 2]) {
        match (self.state, kind) {
            (State::Waiting, message::CLIENT_HELLO) => {
                self.mode = match mode {
                    1 => HandshakeMode::Resumption,
                    2 => HandshakeMode::EarlyData,
                    _ => HandshakeMode::Full,
                };
                self.state = State::Answered;
                self.put_server_flight();
                if self.mode == HandshakeMode::EarlyData {
                    self.events.push_back(TransportEvent::Connected);
                }
            }
            (State::HelloSent, message::FINISHED) => {
                if self.mode == HandshakeMode::EarlyData {
                    self.put_sealed(content::HANDSHAKE, &[message::END_OF_EARLY_DATA], END_OF_EARLY_DATA_BYTES);
                } else {
                    self.events.push_back(TransportEvent::Connected);
                }
                self.put_sealed(content::HANDSHAKE, &[message::FINISHED], FINISHED_BYTES);
                self.state = State::Open;
            }
            (State::Answered, message::FINISHED) => {
                if self.mode != HandshakeMode::EarlyData {
                    self.events.push_back(TransportEvent::Connected);
                }
                self.state = State::Open;
            }
            _ => return,
        }
        self.flush(stream);
        self.announce_finish(stream);
    }

    /// Writes the messages from ServerHello to Finished.
    fn put_server_flight(&mut self) {
        let (hello, sealed) = self.settings.server_flight(self.mode);
        self.put_record(content::HANDSHAKE, &[message::SERVER_HELLO], hello);
        self.put_record(content::CHANGE_CIPHER_SPEC, &[1], 1);
        let mut left = sealed;
        while left > MAX_RECORD_BYTES {
            self.put_sealed(content::HANDSHAKE, &[message::ENCRYPTED_EXTENSIONS], MAX_RECORD_BYTES);
            left -= MAX_RECORD_BYTES;
        }
        self.put_sealed(content::HANDSHAKE, &[message::FINISHED], left);
    }

    fn read(&mut self, stream: &mut dyn Stream, max_bytes: u64) -> Option<Payload> {
        if max_bytes == 0 {
            return None;
        }
        self.pump(stream);
        let piece = self.plain.pop_front()?;
        let taken = piece.len().min(max_bytes);
        self.plain_bytes -= taken;
        let part = first(&piece, taken);
        if taken < piece.len() {
            self.plain.push_front(rest(piece, taken));
        }
        // Makes the next readable data visible.
        self.pump(stream);
        Some(part)
    }
}

/// Returns the first `length` bytes.
fn first(payload: &Payload, length: u64) -> Payload {
    match payload {
        Payload::Length(_) => Payload::Length(length),
        Payload::Bytes(bytes) => Payload::Bytes(bytes.slice(..length as usize)),
    }
}

/// Returns all but the first `length` bytes.
fn rest(payload: Payload, length: u64) -> Payload {
    match payload {
        Payload::Length(whole) => Payload::Length(whole - length),
        Payload::Bytes(bytes) => Payload::Bytes(bytes.slice(length as usize..)),
    }
}

/// The application's view of a stream that TLS protects.
pub struct TlsStream<'a> {
    session: &'a mut Session,
    stream: &'a mut dyn Stream,
}

impl std::fmt::Debug for TlsStream<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Secured").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Stream for TlsStream<'_> {
    fn writable_bytes(&self) -> u64 {
        self.session.writable_bytes(self.stream)
    }

    /// Each call writes new records.
    fn write(&mut self, payload: Payload) -> u64 {
        self.session.write(self.stream, payload)
    }

    /// Counts the data of complete records that were read from the stream. More can follow after this data is read.
    fn readable_bytes(&self) -> u64 {
        self.session.readable_bytes()
    }

    fn read(&mut self, max_bytes: u64) -> Option<Payload> {
        self.session.read(self.stream, max_bytes)
    }

    fn finish(&mut self) {
        self.session.ask_finish(self.stream);
    }

    fn abort(&mut self) {
        self.stream.abort();
    }
}
