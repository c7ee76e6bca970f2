//! Records of the packets of one end of a connection on the real stack, for an observer.
//!
//! The stack calls its packet protection for each packet that it sends or receives, with the number and the plaintext.
//! A wrapper around the protection (`PacketLogger`) therefore sees all packets, with TLS as well, without changing the
//! stack. The stack reports losses to the congestion control, which records them (`control.rs`).

use bytes::BytesMut;
use fullpipe_units::EcnCodepoint;
use noq_proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// An event at one end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketLogEntry {
    /// A UDP datagram was received. The entries of its packets that were decrypted follow.
    DatagramReceived {
        /// Size of its payload in bytes.
        bytes: usize,
        /// Its ECN codepoint.
        codepoint: EcnCodepoint,
    },
    /// The packets built since the previous entry of this kind are sent in a UDP datagram.
    DatagramSent {
        /// Size of its payload in bytes.
        bytes: usize,
        /// Its ECN codepoint.
        codepoint: EcnCodepoint,
    },
    /// A packet was built.
    PacketSent(PlaintextPacket),
    /// A packet was received and decrypted.
    PacketReceived(PlaintextPacket),
    /// A packet was declared lost.
    PacketLost {
        /// Its packet number; the packet number space is unknown.
        number: u64,
        /// Number of bytes of the packet that counted as in flight.
        bytes: u16,
    },
}

/// A packet in plaintext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaintextPacket {
    /// Its full packet number.
    pub number: u64,
    /// Its header, including the packet number.
    pub header: Vec<u8>,
    /// Its frames.
    pub payload: Vec<u8>,
    /// Its size on the wire in bytes.
    pub bytes: usize,
}

/// The log of one end of a connection. Clones refer to the same log.
#[derive(Clone, Debug, Default)]
pub struct PacketLog(Arc<Mutex<Vec<PacketLogEntry>>>);

impl PacketLog {
    pub(crate) fn note(&self, entry: PacketLogEntry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// Removes and returns the entries since the last call, in order.
    pub fn take(&self) -> Vec<PacketLogEntry> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Wraps keys so that their use is recorded.
    fn watch(&self, keys: Keys) -> Keys {
        Keys { header: keys.header, packet: self.watch_pair(keys.packet) }
    }

    fn watch_pair(&self, pair: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: self.watch_key(pair.local), remote: self.watch_key(pair.remote) }
    }

    fn watch_key(&self, key: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        Box::new(PacketLogger { inner: key, journal: self.clone() })
    }
}

/// A wrapped object whose calls are recorded.
pub(crate) struct PacketLogger<T> {
    pub(crate) journal: PacketLog,
    pub(crate) inner: T,
}

impl crypto::ClientConfig for PacketLogger<Arc<dyn crypto::ClientConfig>> {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = self.inner.start_session(version, server_name, params)?;
        Ok(Box::new(PacketLogger { inner, journal: self.journal.clone() }))
    }
}

impl crypto::ServerConfig for PacketLogger<Arc<dyn crypto::ServerConfig>> {
    fn initial_keys(&self, version: u32, dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, dst_cid).map(|keys| self.journal.watch(keys))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(PacketLogger { inner: self.inner.start_session(version, params), journal: self.journal.clone() })
    }
}

impl Session for PacketLogger<Box<dyn Session>> {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        self.journal.watch(self.inner.initial_keys(dst_cid, side))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto().map(|(header, packet)| (header, self.journal.watch_key(packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.inner.write_handshake(buf).map(|keys| self.journal.watch(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.inner.next_1rtt_keys().map(|pair| self.journal.watch_pair(pair))
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

impl PacketKey for PacketLogger<Box<dyn PacketKey>> {
    fn encrypt(&self, path_id: PathId, packet: u64, buf: &mut [u8], header_len: usize) {
        let payload = header_len..buf.len().saturating_sub(self.inner.tag_len());
        self.journal.note(PacketLogEntry::PacketSent(PlaintextPacket {
            number: packet,
            header: buf.get(..header_len).unwrap_or_default().to_vec(),
            payload: buf.get(payload).unwrap_or_default().to_vec(),
            bytes: buf.len(),
        }));
        self.inner.encrypt(path_id, packet, buf, header_len);
    }

    fn decrypt(&self, path_id: PathId, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let bytes = header.len() + payload.len();
        self.inner.decrypt(path_id, packet, header, payload)?;
        let (header, payload) = (header.to_vec(), payload.to_vec());
        self.journal.note(PacketLogEntry::PacketReceived(PlaintextPacket { number: packet, header, payload, bytes }));
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}
