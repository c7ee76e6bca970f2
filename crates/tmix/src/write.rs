//! Writer of connection vectors in the original or the alternate format, the inverse of the reader.
//!
//! Times are rounded to microseconds; a positive wait stays positive. The original format cannot express every body,
//! because in it a unit always waits for the preceding unit, whichever side sent it.

use crate::error::Error;
use crate::vector::{Adu, ConnectionKind, ConnectionVector, PerSide, Side};
use fullpipe_units::Duration;
use std::io::Write;

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// The original format: headers `SEQ` and `CONC`; lines `>`, `<` and `t`, or `c>`, `c<`, `t>` and `t<`.
    Original,
    /// The alternate format: headers `S` and `C`; lines `I` and `A`, each with a send-wait and a receive-wait.
    Alternate,
}

/// Rounds a duration to whole microseconds; a positive duration stays positive.
fn micros(duration: Duration) -> u64 {
    let nanoseconds = duration.as_nanos();
    let rounded = nanoseconds / 1000 + u64::from(nanoseconds % 1000 >= 500);
    rounded.max(u64::from(nanoseconds > 0))
}

/// Writes one connection. Error messages contain the name `file`.
///
/// # Errors
/// If the output fails, or the format cannot express the connection.
pub fn write_connection(
    output: &mut impl Write,
    connection: &ConnectionVector,
    format: TraceFormat,
    file: &str,
) -> Result<(), Error> {
    if format == TraceFormat::Original {
        expressible(connection)
            .map_err(|message| Error::Unrepresentable { id: connection.ids[1], message: message.to_string() })?;
    }
    put(output, connection, format).map_err(|error| Error::io(file, error))
}

/// Checks that the original format can express this body.
fn expressible(connection: &ConnectionVector) -> Result<(), &'static str> {
    if !connection.is_sequential() {
        return Ok(());
    }
    for (before, adu) in connection.body.iter().zip(connection.body.iter().skip(1)) {
        if adu.is_close() && adu.side != before.side {
            return Err("in the original format the last sender closes; in this body the other side closes");
        }
        if (adu.side == before.side) != adu.receive_wait.is_zero() {
            return Err(
                "in the original format an ADU waits for the preceding ADU; in this body one waits for an earlier ADU",
            );
        }
    }
    Ok(())
}

fn put(output: &mut impl Write, connection: &ConnectionVector, format: TraceFormat) -> std::io::Result<()> {
    let start = micros(connection.start);
    let [first, second] = connection.ids;
    match (connection.kind, format) {
        (ConnectionKind::Sequential { epochs }, TraceFormat::Original) => {
            writeln!(output, "SEQ {start} {epochs} {first} {second}")
        }
        (ConnectionKind::Sequential { epochs }, TraceFormat::Alternate) => {
            writeln!(output, "S {start} {epochs} {first} {second}")
        }
        (ConnectionKind::Concurrent { adus: PerSide { initiator, acceptor } }, format) => {
            let word = if format == TraceFormat::Original { "CONC" } else { "C" };
            writeln!(output, "{word} {start} {initiator} {acceptor} {first} {second}")
        }
    }?;
    if let Some(mss) = connection.mss_bytes {
        writeln!(output, "m {} {}", mss.initiator, mss.acceptor)?;
    }
    if let Some(window) = connection.window_bytes {
        writeln!(output, "w {} {}", window.initiator, window.acceptor)?;
    }
    if let Some(rtt) = connection.rtt {
        writeln!(output, "r {}", micros(rtt))?;
    }
    if let Some(loss) = connection.loss {
        writeln!(output, "l {} {}", loss.initiator, loss.acceptor)?;
    }
    let sequential = connection.is_sequential();
    for adu in &connection.body {
        match format {
            TraceFormat::Alternate => put_alternate(output, adu),
            TraceFormat::Original if sequential => put_turn(output, adu),
            TraceFormat::Original => put_unit(output, adu),
        }?;
    }
    Ok(())
}

fn put_alternate(output: &mut impl Write, adu: &Adu) -> std::io::Result<()> {
    let word = if adu.side == Side::Initiator { 'I' } else { 'A' };
    writeln!(output, "{word} {} {} {}", micros(adu.send_wait), micros(adu.receive_wait), adu.size_bytes)
}

fn put_turn(output: &mut impl Write, adu: &Adu) -> std::io::Result<()> {
    let wait = adu.send_wait.max(adu.receive_wait);
    if !wait.is_zero() {
        writeln!(output, "t {}", micros(wait))?;
    }
    match adu.side {
        _ if adu.is_close() => Ok(()),
        Side::Initiator => writeln!(output, "> {}", adu.size_bytes),
        Side::Acceptor => writeln!(output, "< {}", adu.size_bytes),
    }
}

fn put_unit(output: &mut impl Write, adu: &Adu) -> std::io::Result<()> {
    let arrow = if adu.side == Side::Initiator { '>' } else { '<' };
    if !adu.send_wait.is_zero() {
        writeln!(output, "t{arrow} {}", micros(adu.send_wait))?;
    }
    if adu.is_close() {
        return Ok(());
    }
    writeln!(output, "c{arrow} {}", adu.size_bytes)
}
