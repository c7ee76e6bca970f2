//! Traces of delivery opportunities in the format of mahimahi (Netravali et al., USENIX ATC 2015; `mm-link`).
//!
//! A trace is a list of whole milliseconds, one per line, in nondecreasing order. At each of these times the link can
//! deliver up to 1504 bytes, from one or more frames; the last frame can continue at the next opportunity. Unused bytes
//! of an opportunity are lost. After its last line the trace repeats, shifted by that line's time. (mahimahi counts
//! 1500 bytes of IP and 4 bytes of its tunnel header, which corresponds to framing of 4 bytes.)
//!
//! A frame that arrives exactly at an opportunity can use the remaining bytes of that opportunity.

use fullpipe_units::{Duration, Instant, Rate};
use std::fmt;
use std::sync::Arc;

/// Maximum number of bytes on the wire that one opportunity delivers.
pub const OPPORTUNITY_BYTES: u32 = 1504;

/// A trace of delivery opportunities; see the module documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Times in milliseconds, at most `period_ms`.
    opportunities: Arc<[u64]>,
    /// Time in milliseconds after which the trace repeats, not zero.
    period_ms: u64,
}

/// Largest time in a trace: 31 years.
const MAX_MS: u64 = 1_000_000_000_000;

/// The reason why a text is not a valid trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceError {
    /// This line (counted from 1) is not a whole number of milliseconds from 0 to 10^12.
    InvalidTime {
        /// Number of the line.
        line: usize,
        /// Text of the line, truncated to a few characters.
        text: String,
    },
    /// The time in this line is before that in the previous line.
    NotSorted {
        /// Number of the line.
        line: usize,
        /// The time in milliseconds.
        time: u64,
        /// The time in the previous line in milliseconds.
        previous: u64,
    },
    /// The trace contains no delivery opportunity.
    Empty,
    /// All opportunities are at time zero, so the trace would have length zero.
    ZeroPeriod {
        /// Number of the last line.
        line: usize,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::InvalidTime { line, text } => {
                write!(formatter, "line {line}: expected a whole number of milliseconds, found {text:?}")
            }
            TraceError::NotSorted { line, time, previous } => {
                write!(formatter, "line {line} ({time} ms) is earlier than the line before it ({previous} ms)")
            }
            TraceError::Empty => formatter.write_str("the trace has no delivery opportunity"),
            TraceError::ZeroPeriod { line } => {
                write!(formatter, "line {line}: the last opportunity must be later than 0 ms")
            }
        }
    }
}

impl std::error::Error for TraceError {}

impl DeliveryTrace {
    /// Reads a trace and skips empty lines.
    ///
    /// # Errors
    /// If the text is not a valid trace. The error contains the line number, unless the trace is empty.
    ///
    /// ```
    /// use fullpipe_network::mahimahi::{DeliveryTrace, TraceError};
    /// // Two opportunities in 3 ms: 2 x 1504 x 8 bits / 3 ms = 8 021 333 bit/s.
    /// assert_eq!(DeliveryTrace::parse("1\n3\n").unwrap().mean_rate().bits_per_second(), 8_021_333);
    /// assert_eq!(DeliveryTrace::parse("1\n0\n"), Err(TraceError::NotSorted { line: 2, time: 0, previous: 1 }));
    /// ```
    pub fn parse(text: &str) -> Result<DeliveryTrace, TraceError> {
        let mut opportunities: Vec<u64> = Vec::new();
        let mut last_line = 0;
        for (index, content) in text.lines().enumerate() {
            let (line, content) = (index + 1, content.trim());
            if content.is_empty() {
                continue;
            }
            let digits = content.bytes().all(|byte| byte.is_ascii_digit());
            let number = content.parse::<u64>().ok().filter(|number| digits && *number <= MAX_MS);
            let number =
                number.ok_or_else(|| TraceError::InvalidTime { line, text: content.chars().take(40).collect() })?;
            if let Some(&previous) = opportunities.last()
                && previous > number
            {
                return Err(TraceError::NotSorted { line, time: number, previous });
            }
            opportunities.push(number);
            last_line = line;
        }
        match opportunities.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::ZeroPeriod { line: last_line }),
            Some(&period_ms) => Ok(DeliveryTrace { opportunities: opportunities.into(), period_ms }),
        }
    }

    /// Returns the trace of a run that starts at `offset` within this trace, modulo its period. The offset is rounded
    /// down to whole milliseconds.
    ///
    /// ```
    /// use fullpipe_network::DeliveryTrace;
    /// use fullpipe_units::Duration;
    /// // Opportunities at 1, 3, 8 ms, then 9, 11, 16 ms; from 2 ms on they are 1, 6, 7 ms, then 9, 14, 15 ms.
    /// let rotated = DeliveryTrace::parse("1\n3\n8\n").unwrap().starting_at(Duration::from_millis(2));
    /// assert_eq!((rotated.opportunities(), rotated.period()), (&[1, 6, 7][..], Duration::from_millis(8)));
    /// ```
    #[must_use]
    pub fn starting_at(&self, offset: Duration) -> DeliveryTrace {
        let offset = offset.as_nanos() / NANOSECONDS_PER_MS % self.period_ms;
        if offset == 0 {
            return self.clone();
        }
        let (before, after) = self.opportunities.split_at(self.opportunities.partition_point(|at| *at < offset));
        let earlier = before.iter().map(|at| self.period_ms - (offset - at));
        let opportunities = after.iter().map(|at| at - offset).chain(earlier).collect();
        DeliveryTrace { opportunities, period_ms: self.period_ms }
    }

    /// Returns the times of the opportunities in milliseconds, in order.
    pub fn opportunities(&self) -> &[u64] {
        &self.opportunities
    }

    /// Returns the time after which the trace repeats.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ms * NANOSECONDS_PER_MS)
    }

    /// Returns the mean rate if every opportunity is used, in whole bits per second (at least 1).
    pub fn mean_rate(&self) -> Rate {
        let bits = self.opportunities.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
        let rate = bits * 1_000_000_000 / u128::from(self.period().as_nanos());
        Rate::from_bits_per_second((rate as u64).max(1))
    }
}

const NANOSECONDS_PER_MS: u64 = 1_000_000;

/// The position of a link in its trace.
#[derive(Clone, Debug)]
pub(crate) struct TraceCursor {
    trace: DeliveryTrace,
    /// Start of the current repetition.
    round: u64,
    /// The current or next opportunity.
    next: usize,
    /// Bytes that this opportunity can still deliver.
    left: u32,
    /// Bytes per opportunity.
    bytes: u32,
}

impl TraceCursor {
    pub(crate) fn new(trace: DeliveryTrace) -> Self {
        TraceCursor { trace, round: 0, next: 0, left: OPPORTUNITY_BYTES, bytes: OPPORTUNITY_BYTES }
    }

    /// Delivers one percent more from now on (an injected fault).
    pub(crate) fn exceed(&mut self) {
        self.bytes += self.bytes / 100;
        self.left = self.bytes;
    }

    /// Returns the time of the opportunity in nanoseconds; [`u64::MAX`] if it exceeds the range of time.
    fn at(&self) -> u64 {
        self.round.saturating_add(self.trace.opportunities[self.next] * NANOSECONDS_PER_MS)
    }

    fn pass(&mut self) {
        self.left = self.bytes;
        self.next += 1;
        if self.next == self.trace.opportunities.len() {
            self.next = 0;
            self.round = self.round.saturating_add(self.trace.period().as_nanos());
        }
    }

    /// Returns the time of the first opportunity at `at` or later that has bytes left. Earlier ones are lost.
    pub(crate) fn seek(&mut self, at: Instant) -> Instant {
        let at = at.as_nanos();
        if self.at() < at {
            let rounds = (at - self.round) / self.trace.period().as_nanos();
            // The last opportunity of a repetition coincides with the start of the next one, so the last repetition is
            // not skipped.
            if rounds > 1 {
                self.round += (rounds - 1) * self.trace.period().as_nanos();
                (self.next, self.left) = (0, self.bytes);
            }
        }
        while (self.at() < at || self.left == 0) && self.at() < u64::MAX {
            self.pass();
        }
        Instant::from_nanos(self.at())
    }

    /// Delivers a frame whose first byte departs at the opportunity that [`Self::seek`] returned; returns when its last
    /// byte departs.
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
    fn errors_contain_the_line_number() {
        let number = |line, text: &str| Err(TraceError::InvalidTime { line, text: text.into() });
        assert_eq!(DeliveryTrace::parse("1\n\nx2\n"), number(3, "x2"));
        assert_eq!(DeliveryTrace::parse("+1"), number(1, "+1"));
        assert_eq!(DeliveryTrace::parse("1\n1000000000001"), number(2, "1000000000001"));
        assert_eq!(DeliveryTrace::parse("99999999999999999999999"), number(1, "99999999999999999999999"));
        assert_eq!(DeliveryTrace::parse("\n \n"), Err(TraceError::Empty));
        assert_eq!(DeliveryTrace::parse("0\n0\n\n"), Err(TraceError::ZeroPeriod { line: 2 }));
        assert_eq!(DeliveryTrace::parse("5\n5\r\n7").unwrap().opportunities(), [5, 5, 7]);
        let message = TraceError::InvalidTime { line: 3, text: "x2".into() }.to_string();
        assert_eq!(message, "line 3: expected a whole number of milliseconds, found \"x2\"");
    }

    proptest! {
        /// A valid list of milliseconds is read unchanged; otherwise the error names the first line that breaks a rule.
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
                    Err(TraceError::InvalidTime { line: lines[large], text: numbers[large].to_string() })
                }
                (_, Some(fall)) => {
                    let (time, previous) = (numbers[fall], numbers[fall - 1]);
                    Err(TraceError::NotSorted { line: lines[fall], time, previous })
                }
                _ if numbers.is_empty() => Err(TraceError::Empty),
                _ if numbers.iter().all(|number| *number == 0) => {
                    Err(TraceError::ZeroPeriod { line: lines[lines.len() - 1] })
                }
                _ => Ok(DeliveryTrace { period_ms: numbers[numbers.len() - 1], opportunities: numbers.into() }),
            };
            prop_assert_eq!(DeliveryTrace::parse(&text), expected);
        }
    }

    proptest! {
        /// A run that starts within a trace has the opportunities of the trace from then on.
        #[test]
        fn a_run_that_starts_within_a_trace_has_its_later_opportunities(
            numbers in prop::collection::vec(0..9_u64, 1..8),
            last in 1..4_u64,
            offset in 0..40_u64,
        ) {
            let mut numbers = numbers;
            numbers.sort_unstable();
            let period = numbers[numbers.len() - 1] + last;
            numbers.push(period);
            let lines: Vec<String> = numbers.iter().map(u64::to_string).collect();
            let trace = DeliveryTrace::parse(&lines.join("\n")).unwrap();
            let start = offset % period;
            let rotated = trace.starting_at(Duration::from_millis(offset));
            prop_assert_eq!(rotated.mean_rate(), trace.mean_rate());
            let (mut from_start, mut whole) = (TraceCursor::new(rotated), TraceCursor::new(trace));
            whole.seek(ms(start));
            for _ in 0..4 * numbers.len() {
                // Each frame takes one opportunity.
                let expected = ms(whole.deliver(1504).as_nanos() / NANOSECONDS_PER_MS - start);
                prop_assert_eq!(from_start.deliver(1504), expected);
            }
            prop_assert_eq!(from_start.seek(ms(1000)), ms(whole.seek(ms(1000 + start)).as_nanos() / NANOSECONDS_PER_MS - start));
        }
    }

    /// The format of Pantheon's emulated paths: one line per opportunity of 1500 bytes, without comments. The lines are
    /// written by hand, after the format of `test/*.trace` in the repository StanfordSNR/pantheon.
    #[test]
    fn a_trace_of_pantheon_is_read_and_a_comment_is_rejected() {
        let text = include_str!("../tests/data/pantheon-style.trace");
        // 12 Mbit/s: one opportunity each ms for 5 ms, two of them at 7 ms, none until 10 ms.
        let trace = DeliveryTrace::parse(text).unwrap();
        assert_eq!(trace.opportunities(), [1, 2, 3, 4, 5, 7, 7, 10]);
        // 8 x 1504 x 8 bits in 10 ms.
        assert_eq!((trace.period(), trace.mean_rate().bits_per_second()), (Duration::from_millis(10), 9_625_600));
        assert_eq!(DeliveryTrace::parse(&text.replace('\n', "\n\n")), Ok(trace));
        let comment = TraceError::InvalidTime { line: 1, text: "# 12 Mbit/s".into() };
        assert_eq!(DeliveryTrace::parse(&format!("# 12 Mbit/s\n{text}")), Err(comment));
    }

    #[test]
    fn several_frames_share_an_opportunity_and_one_may_need_several() {
        // Opportunities at 1, 2, 2, 5 ms, then 6, 7, 7, 10.
        let mut trace = TraceCursor::new(DeliveryTrace::parse("1\n2\n2\n5\n").unwrap());
        assert_eq!((trace.seek(ms(0)), trace.deliver(504)), (ms(1), ms(1)));
        assert_eq!((trace.seek(ms(0)), trace.deliver(1000)), (ms(1), ms(1)));
        // The first one is used up. 3008 bytes both depart at 2 ms; 1505 bytes use the one at 5 and one byte of the one
        // at 6.
        assert_eq!((trace.seek(ms(0)), trace.deliver(3008)), (ms(2), ms(2)));
        assert_eq!((trace.seek(ms(2)), trace.deliver(1505)), (ms(5), ms(6)));
        assert_eq!((trace.seek(ms(6)), trace.deliver(1503)), (ms(6), ms(6)));
        assert_eq!(trace.seek(ms(6)), ms(7));
    }

    #[test]
    fn unused_opportunities_are_lost_and_repetitions_are_skipped_at_once() {
        let mut trace = TraceCursor::new(DeliveryTrace::parse("1\n2\n2\n5\n").unwrap());
        assert_eq!((trace.seek(ms(0)), trace.deliver(4)), (ms(1), ms(1)));
        // Two at 2 ms; if the frame arrives a nanosecond later, the 1500 remaining bytes of the opportunity at 1 ms are
        // lost.
        assert_eq!(trace.seek(Instant::from_nanos(1_000_001)), ms(2));
        // Repetition number 2 x 10^8 starts at 10^9 ms, which is the last opportunity of the previous one.
        assert_eq!(trace.seek(ms(1_000_000_000)), ms(1_000_000_000));
        assert_eq!(trace.deliver(1505), ms(1_000_000_001));
    }

    #[test]
    fn an_opportunity_at_zero_repeats_with_the_last_of_the_repetition() {
        let mut trace = TraceCursor::new(DeliveryTrace::parse("0\n4\n").unwrap());
        let ends: Vec<u64> = (0..6).map(|_| trace.deliver(1504).as_nanos() / NANOSECONDS_PER_MS).collect();
        assert_eq!(ends, [0, 4, 4, 8, 8, 12]);
    }
}
