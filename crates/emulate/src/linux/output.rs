//! What a program prints: read from a pipe while it runs, kept within bounds.
//!
//! The beginning and the end are kept, for that is where programs say what they do and why they stop; what lies between is
//! counted. A program that prints faster than it is read waits, as it would at a terminal: [`ROUND_BYTES`] each time.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

/// Bytes kept of the beginning, and as many of the end.
pub(crate) const KEPT_BYTES: usize = 1 << 20;

/// Bytes read at once at most, so that one program that prints much does not keep the others waiting.
const ROUND_BYTES: usize = 256 << 10;

/// What has been printed to one stream.
#[derive(Debug)]
pub(crate) struct Output {
    pipe: File,
    kept: Kept,
    wanted: Option<Wanted>,
}

/// The beginning and the end of something long.
#[derive(Debug, Default)]
struct Kept {
    begin: Vec<u8>,
    end: VecDeque<u8>,
    left_out: u64,
}

/// A text that is looked for.
#[derive(Debug)]
struct Wanted {
    text: Vec<u8>,
    /// The last bytes before those that come next, one fewer than the text has.
    before: Vec<u8>,
    seen: bool,
}

impl Output {
    /// A pipe, and its end for the program. `wanted` is looked for.
    pub(crate) fn new(wanted: Option<&str>) -> io::Result<(Output, OwnedFd)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // Of this end only: the program's may block.
        fcntl_setfl(&reader, fcntl_getfl(&reader)? | OFlags::NONBLOCK)?;
        let wanted = wanted.map(Wanted::new);
        Ok((Output { pipe: File::from(reader), kept: Kept::default(), wanted }, writer))
    }

    /// Reads what there is, a round at most. Says whether that was all.
    pub(crate) fn read(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        for _ in 0..ROUND_BYTES / buffer.len() {
            // Nothing there is an error, nobody left to write is the end: either way there is no more now.
            let Ok(count @ 1..) = self.pipe.read(&mut buffer) else { return true };
            if let Some(wanted) = &mut self.wanted {
                wanted.look_at(&buffer[..count]);
            }
            self.kept.extend(&buffer[..count]);
        }
        false
    }

    /// Reads what a program that has ended left in the pipe. Others of its family may still write to it, for which this does
    /// not wait: a pipe holds no more than a few rounds.
    pub(crate) fn read_rest(&mut self) {
        for _ in 0..8 {
            if self.read() {
                return;
            }
        }
    }

    /// Whether the wanted text was printed.
    pub(crate) fn has_wanted(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| wanted.seen)
    }

    /// What is kept; what is missing is said where it is missing.
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
            bytes.extend(format!("\n[fullpipe: {} bytes are left out here]\n", self.left_out).bytes());
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
    fn a_little_is_kept_as_it_is() {
        let (mut output, program) = Output::new(None).expect("a pipe");
        let mut program = File::from(program);
        assert!(output.read(), "nothing there, and nobody waits for it");
        program.write_all(b"one\n").expect("room");
        assert!(output.read());
        program.write_all(b"two\n").expect("room");
        drop(program);
        output.read_rest();
        assert_eq!(output.into_bytes(), b"one\ntwo\n");
    }

    #[test]
    fn of_much_the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        // Bytes numbered by their place, in pieces of odd lengths.
        let all: Vec<u8> =
            (0..5 * KEPT_BYTES as u32 + 17).map(|place| (place.wrapping_mul(40_503) >> 8) as u8).collect();
        let mut kept = Kept::default();
        all.chunks(7919).for_each(|piece| kept.extend(piece));
        assert!(kept.end.capacity() <= 4 * KEPT_BYTES, "bounded while it grows: {}", kept.end.capacity());
        let bytes = kept.into_bytes();
        let note = format!("\n[fullpipe: {} bytes are left out here]\n", 3 * KEPT_BYTES + 17);
        assert_eq!(bytes.len(), 2 * KEPT_BYTES + note.len());
        assert_eq!(bytes[..KEPT_BYTES], all[..KEPT_BYTES]);
        assert_eq!(&bytes[KEPT_BYTES..KEPT_BYTES + note.len()], note.as_bytes());
        assert_eq!(bytes[KEPT_BYTES + note.len()..], all[all.len() - KEPT_BYTES..]);
    }

    #[test]
    fn twice_what_is_kept_is_all_kept() {
        let mut kept = Kept::default();
        kept.extend(&vec![1; 2 * KEPT_BYTES]);
        assert_eq!(kept.into_bytes().len(), 2 * KEPT_BYTES);
    }

    #[test]
    fn a_text_is_found_however_it_is_cut() {
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
        assert!(Wanted::new("").seen, "nothing is there from the first");
        let mut wanted = Wanted::new("x");
        wanted.look_at(b"abcx");
        assert!(wanted.seen);
    }

    #[test]
    fn a_wanted_text_is_found_beyond_what_is_kept() {
        let (mut output, program) = Output::new(Some("ready")).expect("a pipe");
        let writer = std::thread::spawn(move || {
            let mut program = File::from(program);
            (0..4 * KEPT_BYTES / 1024).for_each(|_| program.write_all(&[b'.'; 1024]).expect("somebody reads"));
            program.write_all(b"ready").expect("somebody reads");
        });
        while !output.has_wanted() {
            output.read();
        }
        writer.join().expect("it wrote all");
        assert!(output.into_bytes().ends_with(b"ready"));
    }
}
