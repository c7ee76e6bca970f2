//! Traces of delivery opportunities in the format of mahimahi (Netravali et al., USENIX ATC 2015; `mm-link`).
//!
//! A trace is a list of whole milliseconds, one per line, never decreasing. At each of them the link can deliver up to
//! 1504 bytes: of one frame or of several, and the last may be continued at the next opportunity. What an opportunity
//! could have delivered while nothing waited is lost. After its last line the trace begins again, shifted by that line's
//! time. (mahimahi counts 1500 bytes of IP and 4 of its tunnel's header: framing of 4 bytes.)
//!
//! A frame that comes at the very instant of an opportunity may use what is left of it.

use fullpipe_units::{Duration, Instant, Rate};
use std::fmt;
use std::sync::Arc;

/// Bytes on the wire that one opportunity delivers.
pub const OPPORTUNITY_BYTES: u32 = 1504;

/// A trace; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds; the last is not zero.
    opportunities: Arc<[u64]>,
}

/// Largest time in a trace: 31 years.
const MAX_MS: u64 = 1_000_000_000_000;

/// Why a text is no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// This line (counted from 1) is no whole number of milliseconds from 0 to 10^12.
    Number {
        /// The line.
        line: usize,
        /// What it says, cut to a few characters.
        text: String,
    },
    /// This line's time is before that of the line before it.
    Order {
        /// The line.
        line: usize,
    },
    /// There is no opportunity at all.
    Empty,
    /// All opportunities are at time zero: the trace would have no length.
    NoLength {
        /// The last line.
        line: usize,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Number { line, text } => {
                write!(formatter, "line {line}: expected a whole number of milliseconds, found {text:?}")
            }
            TraceError::Order { line } => write!(formatter, "line {line} is earlier than the line before it"),
            TraceError::Empty => formatter.write_str("the trace has no delivery opportunity"),
            TraceError::NoLength { line } => {
                write!(formatter, "line {line}: the last opportunity must be later than 0 ms")
            }
        }
    }
}

impl std::error::Error for TraceError {}

impl Trace {
    /// Reads a trace. Empty lines are passed over.
    ///
    /// # Errors
    /// With the number of the line.
    ///
    /// ```
    /// use fullpipe_network::mahimahi::{Trace, TraceError};
    /// // Two opportunities in 3 ms: 2 x 1504 x 8 bits / 3 ms = 8 021 333 bit/s.
    /// assert_eq!(Trace::parse("1\n3\n").unwrap().mean_rate().bits_per_second(), 8_021_333);
    /// assert_eq!(Trace::parse("1\n0\n"), Err(TraceError::Order { line: 2 }));
    /// ```
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut opportunities = Vec::new();
        let mut last_line = 0;
        for (index, content) in text.lines().enumerate() {
            let (line, content) = (index + 1, content.trim());
            if content.is_empty() {
                continue;
            }
            let digits = content.bytes().all(|byte| byte.is_ascii_digit());
            let number = content.parse::<u64>().ok().filter(|number| digits && *number <= MAX_MS);
            let number = number.ok_or_else(|| TraceError::Number { line, text: content.chars().take(40).collect() })?;
            if opportunities.last().is_some_and(|last| *last > number) {
                return Err(TraceError::Order { line });
            }
            opportunities.push(number);
            last_line = line;
        }
        match opportunities.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoLength { line: last_line }),
            Some(_) => Ok(Trace { opportunities: opportunities.into() }),
        }
    }

    /// Milliseconds of its opportunities, in order.
    pub fn opportunities(&self) -> &[u64] {
        &self.opportunities
    }

    /// After how long it repeats.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.opportunities.last().copied().unwrap_or(1) * NANOSECONDS_PER_MS)
    }

    /// What it delivers on average if every opportunity is used, in whole bits per second (at least 1).
    pub fn mean_rate(&self) -> Rate {
        let bits = self.opportunities.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
        let rate = bits * 1_000_000_000 / u128::from(self.length().as_nanos());
        Rate::from_bits_per_second((rate as u64).max(1))
    }
}

const NANOSECONDS_PER_MS: u64 = 1_000_000;

/// Where a link stands in its trace.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    trace: Trace,
    /// When the trace began this time.
    round: u64,
    /// The opportunity in use or to come.
    next: usize,
    /// Bytes that it can still deliver.
    left: u32,
    /// What a fresh one delivers.
    bytes: u32,
}

impl Opportunities {
    pub(crate) fn new(trace: Trace) -> Self {
        Opportunities { trace, round: 0, next: 0, left: OPPORTUNITY_BYTES, bytes: OPPORTUNITY_BYTES }
    }

    /// Delivers one per cent more from now on (a fault put in on purpose).
    pub(crate) fn exceed(&mut self) {
        self.bytes += self.bytes / 100;
        self.left = self.bytes;
    }

    /// When the opportunity is; [`u64::MAX`] if time is not long enough.
    fn at(&self) -> u64 {
        self.round.saturating_add(self.trace.opportunities[self.next] * NANOSECONDS_PER_MS)
    }

    fn pass(&mut self) {
        self.left = self.bytes;
        self.next += 1;
        if self.next == self.trace.opportunities.len() {
            self.next = 0;
            self.round = self.round.saturating_add(self.trace.length().as_nanos());
        }
    }

    /// The first opportunity at `at` or later that has bytes left. What went before is lost.
    pub(crate) fn seek(&mut self, at: Instant) -> Instant {
        let at = at.as_nanos();
        if self.at() < at {
            let rounds = (at - self.round) / self.trace.length().as_nanos();
            // The last opportunity of a round coincides with the start of the next: leave it a round.
            if rounds > 1 {
                self.round += (rounds - 1) * self.trace.length().as_nanos();
                (self.next, self.left) = (0, self.bytes);
            }
        }
        while (self.at() < at || self.left == 0) && self.at() < u64::MAX {
            self.pass();
        }
        Instant::from_nanos(self.at())
    }

    /// Delivers a frame of which the first byte leaves at the opportunity just sought; says when its last one leaves.
    pub(crate) fn deliver(&mut self, wire_bytes: u32) -> Instant {
        let mut bytes = wire_bytes;
        loop {
            let now = bytes.min(self.left);
            self.left -= now;
            bytes -= now;
            if bytes == 0 || self.at() == u64::MAX {
                return Instant::from_nanos(self.at());
            }
            self.pass();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * NANOSECONDS_PER_MS)
    }

    #[test]
    fn wrong_lines_have_numbers() {
        let number = |line, text: &str| Err(TraceError::Number { line, text: text.into() });
        assert_eq!(Trace::parse("1\n\nx2\n"), number(3, "x2"));
        assert_eq!(Trace::parse("+1"), number(1, "+1"));
        assert_eq!(Trace::parse("1\n1000000000001"), number(2, "1000000000001"));
        assert_eq!(Trace::parse("99999999999999999999999"), number(1, "99999999999999999999999"));
        assert_eq!(Trace::parse("\n \n"), Err(TraceError::Empty));
        assert_eq!(Trace::parse("0\n0\n\n"), Err(TraceError::NoLength { line: 2 }));
        assert_eq!(Trace::parse("5\n5\r\n7").unwrap().opportunities(), [5, 5, 7]);
        let message = TraceError::Number { line: 3, text: "x2".into() }.to_string();
        assert_eq!(message, "line 3: expected a whole number of milliseconds, found \"x2\"");
    }

    proptest! {
        /// A list of milliseconds is read as itself where it is a trace; else the first line that breaks a rule is named.
        #[test]
        fn a_trace_is_read_as_it_was_written(
            numbers in prop::collection::vec(prop_oneof![3 => 0..6_u64, 1 => MAX_MS - 2..MAX_MS + 3], 0..8),
            sorted: bool,
            blank in prop::collection::vec(0..3_usize, 8),
        ) {
            let mut numbers = numbers;
            if sorted {
                numbers.sort_unstable();
            }
            let mut text = String::new();
            let mut lines = Vec::new();
            for (number, blank) in numbers.iter().zip(blank) {
                text += &["", "\n", " \r\n"][blank].repeat(blank);
                text += &format!("{number}\n");
                lines.push(text.lines().count());
            }
            let too_large = numbers.iter().position(|number| *number > MAX_MS);
            let falls = numbers.windows(2).position(|pair| pair[1] < pair[0]).map(|at| at + 1);
            let expected = match (too_large, falls) {
                (Some(large), falls) if falls.is_none_or(|fall| large <= fall) => {
                    Err(TraceError::Number { line: lines[large], text: numbers[large].to_string() })
                }
                (_, Some(fall)) => Err(TraceError::Order { line: lines[fall] }),
                _ if numbers.is_empty() => Err(TraceError::Empty),
                _ if numbers.iter().all(|number| *number == 0) => {
                    Err(TraceError::NoLength { line: lines[lines.len() - 1] })
                }
                _ => Ok(Trace { opportunities: numbers.into() }),
            };
            prop_assert_eq!(Trace::parse(&text), expected);
        }
    }

    #[test]
    fn several_frames_share_an_opportunity_and_one_may_need_several() {
        // Opportunities at 1, 2, 2, 5 ms, then 6, 7, 7, 10.
        let mut trace = Opportunities::new(Trace::parse("1\n2\n2\n5\n").unwrap());
        assert_eq!((trace.seek(ms(0)), trace.deliver(504)), (ms(1), ms(1)));
        assert_eq!((trace.seek(ms(0)), trace.deliver(1000)), (ms(1), ms(1)));
        // The first one is used up. 3008 bytes are both at 2 ms; 1505 bytes take the one at 5 and a byte of the one at 6.
        assert_eq!((trace.seek(ms(0)), trace.deliver(3008)), (ms(2), ms(2)));
        assert_eq!((trace.seek(ms(2)), trace.deliver(1505)), (ms(5), ms(6)));
        assert_eq!((trace.seek(ms(6)), trace.deliver(1503)), (ms(6), ms(6)));
        assert_eq!(trace.seek(ms(6)), ms(7));
    }

    #[test]
    fn unused_opportunities_are_lost_and_rounds_are_passed_at_once() {
        let mut trace = Opportunities::new(Trace::parse("1\n2\n2\n5\n").unwrap());
        assert_eq!((trace.seek(ms(0)), trace.deliver(4)), (ms(1), ms(1)));
        // Two at 2 ms; the first is lost with the 1500 bytes of the one at 1 ms if the frame comes a nanosecond later.
        assert_eq!(trace.seek(Instant::from_nanos(1_000_001)), ms(2));
        // Round number 2 x 10^8 begins at 10^9 ms, where the last opportunity of the one before is.
        assert_eq!(trace.seek(ms(1_000_000_000)), ms(1_000_000_000));
        assert_eq!(trace.deliver(1505), ms(1_000_000_001));
    }

    #[test]
    fn an_opportunity_at_zero_comes_again_with_the_last_of_the_round() {
        let mut trace = Opportunities::new(Trace::parse("0\n4\n").unwrap());
        let ends: Vec<u64> = (0..6).map(|_| trace.deliver(1504).as_nanos() / NANOSECONDS_PER_MS).collect();
        assert_eq!(ends, [0, 4, 4, 8, 8, 12]);
    }
}
