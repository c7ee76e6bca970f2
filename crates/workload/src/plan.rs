//! Random values that both ends of a flow draw in advance.
//!
//! A model's payload is only a length, so it carries no information. A server needs data about the n-th request: its length, the
//! think time, the size of the response. Both ends draw them independently from equal copies of one random stream, in the order
//! of n. They agree whatever the network does.

use fullpipe_units::RandomStream;

/// The entries drawn so far.
#[derive(Debug)]
pub(crate) struct DrawSequence<T> {
    random: RandomStream,
    drawn: Vec<T>,
}

impl<T: Copy> DrawSequence<T> {
    pub(crate) fn new(random: RandomStream) -> Self {
        DrawSequence { random, drawn: Vec::new() }
    }

    /// Returns entry `index`. Missing earlier entries are drawn first.
    pub(crate) fn get(&mut self, index: u32, mut draw: impl FnMut(&mut RandomStream, Option<&T>) -> T) -> T {
        while self.drawn.len() <= index as usize {
            let next = draw(&mut self.random, self.drawn.last());
            self.drawn.push(next);
        }
        self.drawn[index as usize]
    }
}
