//! Reads connection vectors one by one, in the original format, the alternate format and mixtures of both.
//!
//! Either header (`SEQ`, `CONC`; `S`, `C`) can precede either style of body. Header lines can be in any order, each at
//! most once, before the body. `#` starts a comment; blank lines are ignored. The original style is converted to the
//! canonical form by the rules of the format:
//!
//! * a wait between two units of one side is a send-wait of that side; a wait between units of different sides is a
//!   receive-wait of the second side;
//! * a wait of 0, or no wait, becomes 1 us, since two waits of 0 mark the first unit;
//! * a wait after the last unit is the wait of its sender before the close; without it the close follows after 1 us;
//! * in a concurrent connection `t>` and `t<` are the send-wait of the side's next unit or close.
//!
//! Memory is bounded by one connection: lines are limited to [`MAX_LINE_BYTES`], connections to [`crate::MAX_ADUS`].

use crate::draft::VectorBuilder;
use crate::error::Error;
use crate::line::{self, MAX_LINE_BYTES, TraceLine};
use crate::vector::ConnectionVector;
use std::io::BufRead;

/// Iterator over the connection vectors of one text, in the order of the text.
///
/// ```
/// use fullpipe_tmix::{TraceReader, Side};
///
/// let text = "SEQ 6851 1 21217 555382\nw 64800 6432\n> 245\nt 51257\n< 510\nt 6304943\n";
/// let connection = TraceReader::new(text.as_bytes(), "example").next().expect("there is one")?;
/// assert_eq!(connection.bytes(Side::Acceptor), 510);
/// # Ok::<(), fullpipe_tmix::Error>(())
/// ```
#[derive(Debug)]
pub struct TraceReader<R> {
    input: R,
    file: String,
    content: Vec<u8>,
    /// Lines read.
    line: u64,
    /// Bytes read.
    offset: u64,
    /// The first line of the next connection.
    pending: Option<Found>,
    /// Offset of the connection that was returned last, in bytes.
    began: u64,
    skip_bad: bool,
    skipped: u64,
    first_skipped: Option<Error>,
    finished: bool,
}

/// A line that is not blank.
#[derive(Debug)]
struct Found {
    /// Offset of its first byte.
    offset: u64,
    /// Line number, from 1.
    line: u64,
    /// Whether it is the first line of a connection, or begins like one.
    starts: bool,
    /// The parsed line, or the reason why it is invalid.
    said: Result<TraceLine, String>,
}

impl<R: BufRead> TraceReader<R> {
    /// Creates a reader that ends at the first error. `file` is the name in error messages.
    pub fn new(input: R, file: impl Into<String>) -> Self {
        TraceReader {
            input,
            file: file.into(),
            content: Vec::new(),
            line: 0,
            offset: 0,
            pending: None,
            began: 0,
            skip_bad: false,
            skipped: 0,
            first_skipped: None,
            finished: false,
        }
    }

    /// Sets whether the reader skips and counts malformed connections. If so, the only errors that it returns are input
    /// errors.
    #[must_use]
    pub fn skip_malformed(mut self, skip: bool) -> Self {
        self.skip_bad = skip;
        self
    }

    /// The number of malformed connections that were skipped.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The error of the first connection that was skipped; `None` if no connection was skipped.
    pub fn first_skipped(&self) -> Option<&Error> {
        self.first_skipped.as_ref()
    }

    /// Consumes the reader and returns the error of the first connection that was skipped; `None` if no connection was
    /// skipped.
    pub fn into_first_skipped(self) -> Option<Error> {
        self.first_skipped
    }

    /// The offset in the input of the connection that was returned last, in bytes.
    pub fn start_offset(&self) -> u64 {
        self.began
    }

    /// The number of bytes read from the input.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn error(&self, line: u64, message: impl Into<String>) -> Error {
        Error::Format { file: self.file.clone(), line, message: message.into() }
    }

    /// Returns the next line that is not blank.
    fn next_line(&mut self) -> Result<Option<Found>, Error> {
        loop {
            let offset = self.offset;
            let (taken, too_long) =
                line::read_line(&mut self.input, &mut self.content).map_err(|error| Error::io(&self.file, error))?;
            if taken == 0 {
                return Ok(None);
            }
            self.offset += taken;
            self.line += 1;
            let said = if too_long {
                Err(format!("the line is longer than {MAX_LINE_BYTES} bytes"))
            } else {
                line::parse(&self.content)
            };
            if let Some(said) = said.transpose() {
                let starts = line::looks_like_a_start(&self.content);
                return Ok(Some(Found { offset, line: self.line, starts, said }));
            }
        }
    }

    /// Returns one connection or its error, and `None` at the end of the input. The first line of the next connection
    /// stays pending.
    fn connection(&mut self) -> Result<Option<ConnectionVector>, Error> {
        let first = match self.pending.take() {
            Some(pending) => Some(pending),
            None => self.next_line()?,
        };
        let Some(first) = first else {
            return Ok(None);
        };
        self.began = first.offset;
        let opening = first.said.map_err(|message| self.error(first.line, message))?;
        let Some(mut draft) = VectorBuilder::begin(&opening) else {
            return Err(self.error(first.line, "expected a connection to start here: SEQ, CONC, S or C"));
        };
        while let Some(next) = self.next_line()? {
            if next.starts {
                self.pending = Some(next);
                break;
            }
            next.said.and_then(|line| draft.add(line)).map_err(|message| self.error(next.line, message))?;
        }
        draft.finish().map(Some).map_err(|message| self.error(first.line, message))
    }

    /// Skips lines up to the first line of the next connection.
    fn recover(&mut self) -> Result<(), Error> {
        while self.pending.is_none() {
            match self.next_line()? {
                None => return Ok(()),
                Some(next) if next.starts => self.pending = Some(next),
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<ConnectionVector, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.finished {
            let error = match self.connection() {
                Ok(Some(connection)) => return Some(Ok(connection)),
                Ok(None) => break,
                Err(error) => error,
            };
            if !self.skip_bad || matches!(error, Error::Io { .. }) {
                self.finished = true;
                return Some(Err(error));
            }
            self.skipped += 1;
            self.first_skipped.get_or_insert(error);
            if let Err(error) = self.recover() {
                self.finished = true;
                return Some(Err(error));
            }
        }
        self.finished = true;
        None
    }
}
