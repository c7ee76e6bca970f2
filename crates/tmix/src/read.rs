//! Reads connection vectors one by one, in the original and the alternate format and mixtures of them.
//!
//! Either spelling of a header (`SEQ`, `CONC`; `S`, `C`) may stand before either style of body; header lines come in any
//! order, each at most once, before the body; `#` begins a comment; blank lines count for nothing. The original style is
//! turned into the canonical form by the rules of the format:
//!
//! * a wait between two units of one side is that side's send-wait, between different sides the second one's receive-wait;
//! * a wait of 0, or none, is 1 us, since "no wait at all" is the mark of the first unit;
//! * a wait after the last unit is its sender's before it closes; without one it closes after 1 us;
//! * in a concurrent connection `t>` and `t<` are the send-wait of that side's next unit or close.
//!
//! Memory is bounded by one connection: lines are cut at [`LONGEST_LINE_BYTES`], connections at [`crate::MOST_ADUS`].

use crate::draft::Draft;
use crate::error::Error;
use crate::line::{self, LONGEST_LINE_BYTES, Line};
use crate::vector::ConnectionVector;
use std::io::BufRead;

/// Connection vectors of one text, in its order.
///
/// ```
/// use fullpipe_tmix::{Reader, Side};
///
/// let text = "SEQ 6851 1 21217 555382\nw 64800 6432\n> 245\nt 51257\n< 510\nt 6304943\n";
/// let connection = Reader::new(text.as_bytes(), "example").next().expect("there is one")?;
/// assert_eq!(connection.bytes(Side::Acceptor), 510);
/// # Ok::<(), fullpipe_tmix::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    file: String,
    content: Vec<u8>,
    /// Lines read.
    line: u64,
    /// Bytes read.
    offset: u64,
    /// The first line of the next connection.
    pending: Option<Found>,
    /// Where the connection that was returned last begins.
    began: u64,
    skip_bad: bool,
    skipped: u64,
    first_skipped: Option<Error>,
    finished: bool,
}

/// A line that is not blank.
#[derive(Debug)]
struct Found {
    /// Where it begins, in bytes.
    offset: u64,
    /// Its number, from 1.
    line: u64,
    /// Whether it is, or would be, the first of a connection.
    starts: bool,
    /// What it says, or what is wrong with it.
    said: Result<Line, String>,
}

impl<R: BufRead> Reader<R> {
    /// A reader that ends with the first error. `file` is the name that errors tell.
    pub fn new(input: R, file: impl Into<String>) -> Self {
        Reader {
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

    /// Leaves out malformed connections, and counts them; only the machine's refusal is an error then.
    #[must_use]
    pub fn skip_bad(mut self, skip: bool) -> Self {
        self.skip_bad = skip;
        self
    }

    /// How many malformed connections were left out.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// What was wrong with the first that was left out.
    pub fn first_skipped(&self) -> Option<&Error> {
        self.first_skipped.as_ref()
    }

    /// What was wrong with the first that was left out, to keep.
    pub fn into_first_skipped(self) -> Option<Error> {
        self.first_skipped
    }

    /// Where in the input the connection that was returned last begins, in bytes.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn error(&self, line: u64, message: impl Into<String>) -> Error {
        Error::Format { file: self.file.clone(), line, message: message.into() }
    }

    /// The next line that is not blank.
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
                Err(format!("the line is longer than {LONGEST_LINE_BYTES} bytes"))
            } else {
                line::parse(&self.content)
            };
            if let Some(said) = said.transpose() {
                let starts = line::looks_like_a_start(&self.content);
                return Ok(Some(Found { offset, line: self.line, starts, said }));
            }
        }
    }

    /// One connection, or what is wrong with it; `None` at the end. Leaves the next connection's first line pending.
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
        let Some(mut draft) = Draft::begin(&opening) else {
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

    /// Reads on to the next connection's first line.
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

impl<R: BufRead> Iterator for Reader<R> {
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
