//! The output of a program, read from a pipe while it runs, with bounded memory.
//!
//! The beginning and the end are kept, because programs typically report their configuration at the beginning and their
//! errors at the end. The omitted bytes in between are counted. A program that prints more than [`ROUND_BYTES`] per
//! round blocks, as on a slow terminal.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

/// Maximum number of bytes kept from the beginning, and from the end.
pub(crate) const KEPT_BYTES: usize = 1 << 20;

/// Maximum number of bytes read per call of [`Output::read`], so that a program with much output does not delay the
/// others.
const ROUND_BYTES: usize = 256 << 10;

/// The output of a program on one stream.
#[derive(Debug)]
pub(crate) struct Output {
    pipe: File,
    kept: Kept,
    wanted: Option<Wanted>,
}

/// The beginning and the end of a long output.
#[derive(Debug, Default)]
struct Kept {
    begin: Vec<u8>,
    end: VecDeque<u8>,
    left_out: u64,
}

/// A text to search for in the output.
#[derive(Debug)]
struct Wanted {
    text: Vec<u8>,
    /// The last bytes before the next input, at most one byte fewer than the text.
    before: Vec<u8>,
    seen: bool,
}

impl Output {
    /// Creates a pipe and returns the program's end. The output is searched for `wanted`.
    pub(crate) fn new(wanted: Option<&str>) -> io::Result<(Output, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // Only this end is nonblocking; the program's end may block.
        fcntl_setfl(&reader, fcntl_getfl(&reader)? | OFlags::NONBLOCK)?;
        let wanted = wanted.map(Wanted::new);
        Ok((Output { pipe: File::from(reader), kept: Kept::default(), wanted }, writer))
    }

    /// Reads the available bytes, at most [`ROUND_BYTES`]. Returns whether all available bytes were read.
    pub(crate) fn read(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        for _ in 0..ROUND_BYTES / buffer.len() {
            // An empty pipe causes an error, and a pipe without a writer an end of file. In both cases there is no more
            // data now.
            let Ok(count @ 1..) = self.pipe.read(&mut buffer) else { return true };
            if let Some(wanted) = &mut self.wanted {
                wanted.look_at(&buffer[..count]);
            }
            self.kept.extend(&buffer[..count]);
        }
        false
    }

    /// Reads the bytes that an ended program left in the pipe, which holds at most a few rounds. Descendants of the
    /// program may still write to the pipe, but this method does not wait for them.
    pub(crate) fn read_rest(&mut self) {
        for _ in 0..8 {
            if self.read() {
                return;
            }
        }
    }

    /// Returns whether the wanted text was printed.
    pub(crate) fn has_wanted(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| wanted.seen)
    }

    /// Returns the kept bytes, with a note in place of the omitted ones.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.kept.into_bytes()
    }
}

impl Kept {
    fn extend(&mut self, bytes: &[u8]) {
        let room = KEPT_BYTES - self.begin.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.begin.extend(first);
        self.end.extend(rest);
        let beyond = self.end.len().saturating_sub(KEPT_BYTES);
        self.end.drain(..beyond);
        self.left_out += beyond as u64;
    }

    fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.begin;
        if self.left_out > 0 {
            bytes.extend(format!("\n[fullpipe: {} bytes omitted]\n", self.left_out).bytes());
        }
        bytes.extend(self.end);
        bytes
    }
}

impl Wanted {
    fn new(text: &str) -> Wanted {
        Wanted { text: text.as_bytes().to_vec(), before: Vec::new(), seen: text.is_empty() }
    }

    fn look_at(&mut self, bytes: &[u8]) {
        if self.seen {
            return;
        }
        self.before.extend(bytes);
        self.seen = self.before.windows(self.text.len()).any(|window| window == self.text);
        let old = self.before.len().saturating_sub(self.text.len() - 1);
        self.before.drain(..old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn short_output_is_kept_unchanged() {
        let (mut output, program) = Output::new(None).expect("a pipe can be created");
        let mut program = File::from(program);
        assert!(output.read(), "reading an empty pipe does not block");
        program.write_all(b"one\n").expect("the pipe accepts the bytes");
        assert!(output.read());
        program.write_all(b"two\n").expect("the pipe accepts the bytes");
        drop(program);
        output.read_rest();
        assert_eq!(output.into_bytes(), b"one\ntwo\n");
    }

    #[test]
    fn long_output_keeps_its_beginning_and_end_and_counts_the_rest() {
        // Bytes that depend on their position, in pieces of odd lengths.
        let all: Vec<u8> =
            (0..5 * KEPT_BYTES as u32 + 17).map(|place| (place.wrapping_mul(40_503) >> 8) as u8).collect();
        let mut kept = Kept::default();
        all.chunks(7919).for_each(|piece| kept.extend(piece));
        assert!(
            kept.end.capacity() <= 4 * KEPT_BYTES,
            "memory is bounded while the output grows: {}",
            kept.end.capacity()
        );
        let bytes = kept.into_bytes();
        let note = format!("\n[fullpipe: {} bytes omitted]\n", 3 * KEPT_BYTES + 17);
        assert_eq!(bytes.len(), 2 * KEPT_BYTES + note.len());
        assert_eq!(bytes[..KEPT_BYTES], all[..KEPT_BYTES]);
        assert_eq!(&bytes[KEPT_BYTES..KEPT_BYTES + note.len()], note.as_bytes());
        assert_eq!(bytes[KEPT_BYTES + note.len()..], all[all.len() - KEPT_BYTES..]);
    }

    #[test]
    fn output_of_exactly_both_parts_is_kept_completely() {
        let mut kept = Kept::default();
        kept.extend(&vec![1; 2 * KEPT_BYTES]);
        assert_eq!(kept.into_bytes().len(), 2 * KEPT_BYTES);
    }

    #[test]
    fn text_is_found_for_any_split() {
        for cut in 0..=16 {
            let (first, second) = b"now listening on".split_at(cut);
            let mut wanted = Wanted::new("listening");
            [first, second].iter().for_each(|piece| wanted.look_at(piece));
            assert!(wanted.seen, "cut at {cut}");
        }
        let mut wanted = Wanted::new("listening");
        [&b"listenin"[..], b"", b" g", b"listenin"].iter().for_each(|piece| wanted.look_at(piece));
        assert!(!wanted.seen);
        b"aaaab".iter().for_each(|byte| wanted.look_at(&[*byte]));
        assert!(!wanted.seen);
        assert!(Wanted::new("").seen, "the empty text is found at once");
        let mut wanted = Wanted::new("x");
        wanted.look_at(b"abcx");
        assert!(wanted.seen);
    }

    #[test]
    fn wanted_text_is_found_in_omitted_output() {
        let (mut output, program) = Output::new(Some("ready")).expect("a pipe can be created");
        let writer = std::thread::spawn(move || {
            let mut program = File::from(program);
            (0..4 * KEPT_BYTES / 1024).for_each(|_| program.write_all(&[b'.'; 1024]).expect("the pipe is read"));
            program.write_all(b"ready").expect("the pipe is read");
        });
        while !output.has_wanted() {
            output.read();
        }
        writer.join().expect("the writer has finished");
        assert!(output.into_bytes().ends_with(b"ready"));
    }
}
