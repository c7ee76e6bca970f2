//! A qlog writer, which writes the events of a run as a sequence of JSON texts.
//!
//! **Format.** A file begins with a record that describes it. One record per event follows, in order of time
//! (draft-ietf-quic-qlog-main-schema-13, "sequential"). A record consists of the byte 0x1E, one JSON text and a line
//! feed (RFC 7464), so that a reader can skip a truncated record. Names and fields of QUIC events are those of
//! draft-ietf-quic-qlog-quic-events-12. Events that these drafts do not define have their own namespace and schema.
//!
//! **Time** is in milliseconds since the start of the run, written as an exact decimal number, so that different
//! instants remain distinct.
//!
//! Records are written as text without an intermediate tree, because a run has millions of events. Numbers have the
//! shortest form that parses to the same value. Infinities and NaN do not exist in JSON and are omitted with their key.

mod json;

pub use json::{ArrayWriter, ObjectWriter};

use fullpipe_units::{Duration, Instant};
use std::fmt::Write as _;

/// Number of the draft of the qlog main schema (draft-ietf-quic-qlog-main-schema).
pub const MAIN_SCHEMA_DRAFT: u32 = 13;
/// URI of the schema of QUIC events, with the number of its draft.
pub const QUIC_EVENTS: &str = "urn:ietf:params:qlog:events:quic-12";

/// The first byte of each record (RFC 7464 section 2.2).
const RECORD_SEPARATOR: char = '\u{1e}';

/// Writes qlog records to memory. The caller reads them with [`QlogWriter::as_bytes`].
#[derive(Clone, Debug, Default)]
pub struct QlogWriter {
    text: String,
}

/// The contents of the first record of a qlog file.
#[derive(Clone, Copy, Debug)]
pub struct QlogHeader<'a> {
    /// Title of the run, for display.
    pub title: &'a str,
    /// Description of the contents.
    pub description: &'a str,
    /// Name of the program that writes the file.
    pub software: &'a str,
    /// URIs of the schemas of the events.
    pub event_schemas: &'a [&'a str],
}

impl QlogWriter {
    /// Writes the first record of a file.
    pub fn begin(&mut self, preamble: &QlogHeader<'_>) {
        self.record(|file| {
            file.text("file_schema", "urn:ietf:params:qlog:file:sequential");
            file.text("serialization_format", "application/qlog+json-seq");
            file.text("title", preamble.title);
            file.text("description", preamble.description);
            file.object("trace", |trace| {
                trace.text("title", preamble.title);
                trace.object("vantage_point", |point| {
                    point.text("name", preamble.software);
                    // The vantage point includes both ends of all connections and the network between them.
                    point.text("type", "unknown");
                });
                trace.array("event_schemas", |schemas| preamble.event_schemas.iter().for_each(|uri| schemas.text(uri)));
                trace.object("common_fields", |common| {
                    common.text("time_format", "relative_to_epoch");
                    common.object("reference_time", |time| {
                        time.text("clock_type", "monotonic");
                        time.text("epoch", "unknown");
                    });
                });
            });
        });
    }

    /// Writes an event with the group ID `group`; `data` writes the fields of the event.
    pub fn write_event(&mut self, at: Instant, group: &str, name: &str, data: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.record(|event| {
            event.milliseconds("time", Milliseconds(at.as_nanos()));
            event.text("name", name);
            event.text("group_id", group);
            event.object("data", data);
        });
    }

    /// Returns the number of bytes written since the last [`QlogWriter::clear`].
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns whether [`QlogWriter::len`] is zero.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the bytes written since the last [`QlogWriter::clear`].
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// Removes the written bytes. The caller must have copied them before.
    pub fn clear(&mut self) {
        self.text.clear();
    }

    fn record(&mut self, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.text.push(RECORD_SEPARATOR);
        json::object(&mut self.text, fill);
        self.text.push('\n');
    }
}

/// A number of nanoseconds, written as exact decimal milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milliseconds(pub u64);

impl From<Duration> for Milliseconds {
    fn from(duration: Duration) -> Self {
        Milliseconds(duration.as_nanos())
    }
}

impl std::fmt::Display for Milliseconds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.0 / 1_000_000)?;
        let mut fraction = self.0 % 1_000_000;
        let mut digits = 6;
        if fraction == 0 {
            return Ok(());
        }
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            digits -= 1;
        }
        write!(formatter, ".{fraction:0digits$}")
    }
}

/// Returns bytes as hexadecimal digits in lower case, in the notation of qlog.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use qlog::events::EventData;
    use qlog::reader::{Event, QlogSeqReader};

    #[test]
    fn milliseconds_are_exact() {
        for (nanoseconds, text) in [
            (0, "0"),
            (1, "0.000001"),
            (1_000_000, "1"),
            (1_500_000, "1.5"),
            (7_009_616, "7.009616"),
            (20_000_010, "20.00001"),
            (u64::MAX, "18446744073709.551615"),
        ] {
            assert_eq!(Milliseconds(nanoseconds).to_string(), text);
        }
        assert_eq!(to_hex(&[0, 0xab, 0x0c]), "00ab0c");
    }

    #[test]
    fn a_public_qlog_reader_reads_the_file() {
        let mut writer = QlogWriter::default();
        let schemas = [QUIC_EVENTS, "urn:example"];
        writer.begin(&QlogHeader {
            title: "a \"run\"",
            description: "d\u{1e}\n",
            software: "s",
            event_schemas: &schemas,
        });
        writer.write_event(Instant::from_nanos(1_500_001), "a/client", "quic:recovery_metrics_updated", |data| {
            data.unsigned("congestion_window", 12_000);
            data.milliseconds("smoothed_rtt", Milliseconds(40_500_000));
        });
        writer.write_event(Instant::from_nanos(2_000_000), "link", "link:queue_updated", |data| {
            data.unsigned("bytes", 1)
        });
        let bytes = writer.as_bytes();
        assert_eq!(
            bytes.iter().filter(|byte| **byte == 0x1e).count(),
            3,
            "one separator per record; separators in strings are escaped"
        );
        let mut reader = QlogSeqReader::new(Box::new(bytes)).expect("the file has a preamble");
        assert_eq!(reader.qlog.file_schema, qlog::QLOGFILESEQ_URI);
        assert_eq!(reader.qlog.serialization_format, "application/qlog+json-seq");
        assert_eq!(reader.qlog.title.as_deref(), Some("a \"run\""));
        assert_eq!(reader.qlog.description.as_deref(), Some("d\u{1e}\n"));
        assert_eq!(QUIC_EVENTS, qlog::events::QUIC_URI);
        assert_eq!(reader.qlog.trace.event_schemas, schemas);
        let Some(Event::Qlog(event)) = reader.next() else { panic!("expected a QUIC event") };
        assert_eq!((event.time, event.group_id.as_deref().map(String::as_str)), (1.500_001, Some("a/client")));
        let EventData::QuicMetricsUpdated(metrics) = event.data else { panic!("expected metrics") };
        assert_eq!((metrics.congestion_window, metrics.smoothed_rtt), (Some(12_000), Some(40.5)));
        let Some(Event::Json(event)) = reader.next() else { panic!("expected an event with our own schema") };
        assert_eq!((event.time, event.name.as_str(), &event.data["bytes"]), (2.0, "link:queue_updated", &1.into()));
        assert!(reader.next().is_none());
        drop(reader);
        writer.clear();
        assert!(writer.is_empty());
    }
}
