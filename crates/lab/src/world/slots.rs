//! A table whose entries keep their index until they are removed. Indices of removed entries are reused.

/// Entries by index.
#[derive(Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab::with_capacity(0)
    }
}

impl<T> Slab<T> {
    pub(super) fn with_capacity(expected: usize) -> Self {
        Slab { entries: Vec::with_capacity(expected), free: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn get(&self, index: u32) -> Option<&T> {
        self.entries.get(index as usize)?.as_ref()
    }

    /// Prefetches an entry.
    #[inline(always)]
    pub(super) fn prefetch<const LINES: usize>(&self, index: u32) {
        if let Some(entry) = self.entries.get(index as usize) {
            fullpipe_engine::prefetch::<LINES, _>(entry);
        }
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.entries.get_mut(index as usize)?.as_mut()
    }

    /// Adds an entry, at the most recently released index if there is one.
    pub(super) fn insert(&mut self, entry: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.entries[index as usize] = Some(entry);
            index
        } else {
            self.entries.push(Some(entry));
            self.entries.len() as u32 - 1
        }
    }

    pub(super) fn remove(&mut self, index: u32) -> Option<T> {
        let entry = self.entries.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(entry)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().flatten()
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}
