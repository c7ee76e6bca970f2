//! Lines of a trace: bounded reading, and parsing of one line.

use crate::vector::{PerSide, Side};
use fullpipe_units::Duration;
use std::io::{self, BufRead};

/// Longest line that is accepted, in bytes. The longest valid line of either format has fewer than 100 bytes.
pub const MAX_LINE_BYTES: usize = 4096;
/// Longest time in a trace, in microseconds: 115 days, a thousand times the length of a typical trace.
pub const MAX_TIME_US: u64 = 10_000_000_000_000;
/// Largest application data unit, in bytes: 1 TiB.
pub const MAX_ADU_BYTES: u64 = 1 << 40;
/// Largest receive window, in bytes: 1 GiB (RFC 7323, section 2.3).
pub const MAX_WINDOW_BYTES: u64 = 1 << 30;
/// Largest number of application data units or exchanges of one connection.
pub const MAX_ADUS: u64 = 1_000_000;

/// The content of one line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TraceLine {
    Sequential {
        start: Duration,
        epochs: u64,
        ids: [u64; 2],
    },
    Concurrent {
        start: Duration,
        adus: PerSide<u64>,
        ids: [u64; 2],
    },
    Mss(PerSide<u32>),
    Window(PerSide<u64>),
    Rtt(Duration),
    Loss(PerSide<f64>),
    /// `>`, `<`: a unit of a sequential connection.
    Send(Side, u64),
    /// `t`: a wait of a sequential connection.
    Wait(Duration),
    /// `c>`, `c<`: a unit of a concurrent connection.
    SideSend(Side, u64),
    /// `t>`, `t<`: a wait of one side of a concurrent connection.
    SideWait(Side, Duration),
    /// `I`, `A`: side, send-wait, receive-wait, size.
    Alternate {
        side: Side,
        send_wait: Duration,
        receive_wait: Duration,
        size_bytes: u64,
    },
}

/// Whether a line begins like the first line of a connection. The rest of the line is not checked.
pub(crate) fn looks_like_a_start(content: &[u8]) -> bool {
    let word = content.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
    matches!(word, Some(b"S" | b"C" | b"SEQ" | b"CONC"))
}

/// Reads one line into `content`, without its line break and comment. Returns the number of bytes consumed (0 at the
/// end of the input) and whether the line was too long. The excess of a long line is skipped.
pub(crate) fn read_line(input: &mut impl BufRead, content: &mut Vec<u8>) -> io::Result<(u64, bool)> {
    content.clear();
    let mut taken = 0u64;
    let mut too_long = false;
    let mut comment = false;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        if !comment {
            let hash = part.iter().position(|byte| *byte == b'#');
            let part = &part[..hash.unwrap_or(part.len())];
            let room = MAX_LINE_BYTES - content.len();
            too_long |= part.len() > room;
            content.extend_from_slice(&part[..part.len().min(room)]);
            comment = hash.is_some();
        }
        let used = end.map_or(available.len(), |end| end + 1);
        let finished = end.is_some() || available.is_empty();
        input.consume(used);
        taken += used as u64;
        if finished {
            return Ok((taken, too_long));
        }
    }
}

/// Parses a line; `None` if it is blank.
pub(crate) fn parse(content: &[u8]) -> Result<Option<TraceLine>, String> {
    let text = std::str::from_utf8(content).map_err(|_| "the line is not valid UTF-8".to_string())?;
    let mut words = Words { words: text.split_ascii_whitespace(), text };
    let Some(first) = words.words.next() else {
        return Ok(None);
    };
    let line = match first {
        "S" | "SEQ" => TraceLine::Sequential {
            start: words.time("start")?,
            epochs: words.number("number of epochs", 1, MAX_ADUS)?,
            ids: words.ids()?,
        },
        "C" | "CONC" => TraceLine::Concurrent {
            start: words.time("start")?,
            adus: PerSide {
                initiator: words.number("number of the initiator's ADUs", 0, MAX_ADUS)?,
                acceptor: words.number("number of the acceptor's ADUs", 0, MAX_ADUS)?,
            },
            ids: words.ids()?,
        },
        "m" => {
            TraceLine::Mss(PerSide { initiator: words.mss("initiator's MSS")?, acceptor: words.mss("acceptor's MSS")? })
        }
        "w" => TraceLine::Window(PerSide {
            initiator: words.number("initiator's window", 1, MAX_WINDOW_BYTES)?,
            acceptor: words.number("acceptor's window", 1, MAX_WINDOW_BYTES)?,
        }),
        "r" => TraceLine::Rtt(words.time("round-trip time")?),
        "l" => TraceLine::Loss(PerSide {
            initiator: words.fraction("loss from the initiator")?,
            acceptor: words.fraction("loss from the acceptor")?,
        }),
        ">" => TraceLine::Send(Side::Initiator, words.size(1)?),
        "<" => TraceLine::Send(Side::Acceptor, words.size(1)?),
        "t" => TraceLine::Wait(words.time("wait")?),
        "c>" => TraceLine::SideSend(Side::Initiator, words.size(1)?),
        "c<" => TraceLine::SideSend(Side::Acceptor, words.size(1)?),
        "t>" => TraceLine::SideWait(Side::Initiator, words.time("wait")?),
        "t<" => TraceLine::SideWait(Side::Acceptor, words.time("wait")?),
        "I" | "A" => TraceLine::Alternate {
            side: if first == "I" { Side::Initiator } else { Side::Acceptor },
            send_wait: words.time("send-wait")?,
            receive_wait: words.time("receive-wait")?,
            size_bytes: words.size(0)?,
        },
        _ => {
            return Err(format!(
                "{} is not a line type of a connection vector; expected SEQ, CONC, S, C, m, w, r, l, >, <, t, c>, c<, t>, t<, \
                 I or A",
                shown(first)
            ));
        }
    };
    match words.words.next() {
        None => Ok(Some(line)),
        Some(more) => Err(format!("unexpected word {} in {}", shown(more), shown(text.trim()))),
    }
}

/// Quotes at most 60 characters of a text for a message, with control characters escaped.
fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    format!("{short:?}")
}

struct Words<'t> {
    words: std::str::SplitAsciiWhitespace<'t>,
    text: &'t str,
}

impl Words<'_> {
    fn next(&mut self, what: &str) -> Result<&str, String> {
        self.words.next().ok_or_else(|| format!("{} has no {what}", shown(self.text.trim())))
    }

    fn number(&mut self, what: &str, least: u64, most: u64) -> Result<u64, String> {
        let word = self.next(what)?;
        match word.parse::<u64>() {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            _ => Err(format!("{what}: expected a whole number from {least} to {most}, found {}", shown(word))),
        }
    }

    fn time(&mut self, what: &str) -> Result<Duration, String> {
        let microseconds = self.number(&format!("{what} (microseconds)"), 0, MAX_TIME_US)?;
        Ok(Duration::from_micros(microseconds))
    }

    fn size(&mut self, least: u64) -> Result<u64, String> {
        self.number("size (bytes)", least, MAX_ADU_BYTES)
    }

    fn mss(&mut self, what: &str) -> Result<u32, String> {
        // The range makes the conversion exact.
        Ok(self.number(what, 1, 65_535)? as u32)
    }

    fn ids(&mut self) -> Result<[u64; 2], String> {
        Ok([self.number("first id", 0, u64::MAX)?, self.number("second id", 0, u64::MAX)?])
    }

    fn fraction(&mut self, what: &str) -> Result<f64, String> {
        let word = self.next(what)?;
        match word.parse::<f64>() {
            // NaN is outside every range.
            Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
            _ => Err(format!("{what}: expected a number from 0 to 1, found {}", shown(word))),
        }
    }
}
