//! The log of a proxy on standard error, as text or JSON.

use fullpipe_masque::log::{AccessLog, Event, EventLogger, FieldValue, format_fields};
use serde_json::{Map, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// Form of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// `event=NAME key=value ...`.
    Text,
    /// A line of JSON for each record, with the time.
    Json,
}

/// Prints records on standard error. Connections and tunnels without errors are printed only if the log is verbose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    pub(super) verbose: bool,
    pub(super) access: AccessLog,
    pub(super) format: LogFormat,
}

impl EventLogger for Log {
    fn log_event(&self, event: &Event<'_>) {
        if self.verbose || matches!(event, Event::RequestRejected { .. }) {
            self.print(&event.fields(self.access));
        }
    }
}

impl Log {
    /// Prints a record.
    pub(super) fn print(&self, fields: &[(&'static str, FieldValue<'_>)]) {
        eprintln!("{}", self.format_record(fields, now()));
    }

    /// Formats a record at a time in seconds since 1970.
    fn format_record(&self, fields: &[(&'static str, FieldValue<'_>)], time: f64) -> String {
        if self.format == LogFormat::Text {
            return format_fields(fields);
        }
        let mut record = Map::new();
        record.insert("time_s".into(), time.into());
        record.extend(fields.iter().map(|(name, value)| {
            let value = match value {
                FieldValue::Number(number) => (*number).into(),
                FieldValue::Word(word) => word.as_str().into(),
                FieldValue::Text(text) => (*text).into(),
            };
            ((*name).to_owned(), value)
        }));
        Value::Object(record).to_string()
    }
}

/// The time in seconds since 1970, to the millisecond.
#[expect(clippy::disallowed_methods, reason = "a log has the time of day")]
fn now() -> f64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    time.as_millis() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_a_line_of_text_or_json() {
        let event = Event::RequestRejected {
            client: "192.0.2.7:5".parse().expect("an address"),
            status: 403,
            target: "a\nb",
            reason: "a rule \"x\"",
        };
        let format = |format, access| Log { verbose: false, access, format }.format_record(&event.fields(access), 1.5);
        assert_eq!(
            format(LogFormat::Json, AccessLog::Both),
            r#"{"time_s":1.5,"event":"refused","client":"192.0.2.0/24","status":403,"target":"a\nb","reason":"a rule \"x\""}"#
        );
        assert_eq!(
            format(LogFormat::Text, AccessLog::Client),
            r#"event=refused client=192.0.2.0/24 status=403 reason="a rule \"x\"""#
        );
    }
}
