//! What both ends of a flow know beforehand.
//!
//! A model's payload is a length: nothing can be read from it. So what a server needs to know of the n-th request
//! (where it ends, how long to think, how much to answer) both ends draw, each for itself, from equal copies of one
//! random stream, in the order of n. Neither asks the other and neither can be wrong, whatever the network does.

use fullpipe_units::Stream;

/// The entries drawn so far.
#[derive(Debug)]
pub(crate) struct Plan<T> {
    random: Stream,
    drawn: Vec<T>,
}

impl<T: Copy> Plan<T> {
    pub(crate) fn new(random: Stream) -> Self {
        Plan { random, drawn: Vec::new() }
    }

    /// Entry number `index`; those before it that nobody has asked for yet are drawn first.
    pub(crate) fn get(&mut self, index: u32, mut draw: impl FnMut(&mut Stream, Option<&T>) -> T) -> T {
        while self.drawn.len() <= index as usize {
            let next = draw(&mut self.random, self.drawn.last());
            self.drawn.push(next);
        }
        self.drawn[index as usize]
    }
}
