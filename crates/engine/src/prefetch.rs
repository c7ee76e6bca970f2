//! Prefetching of cache lines before they are needed.
//!
//! With thousands of flows, the state of links and endpoints exceeds the cache: on `tcp-10k` a packet causes about 27
//! misses of a cache of 2 MB (callgrind). The calendar holds the next events, so their state can be prefetched while
//! the current event is processed. A prototype gained 17 to 21 % on `tcp-10k` (paired runs) and nothing with fewer than
//! 1000 links. The gain of this code alone was not measured; `docs/performance.md` has the gain of all changes
//! together.

/// Prefetches the first `LINES` cache lines (64 bytes each) of an item, or all of a smaller item. This is a hint and
/// affects only speed.
#[inline(always)]
#[allow(unsafe_code, reason = "the intrinsic is the only way to fetch a line without waiting for it")]
pub fn prefetch<const LINES: usize, T>(item: &T) {
    let first = std::ptr::from_ref(item).cast::<i8>();
    for line in 0..LINES.min(size_of::<T>().div_ceil(64)) {
        let address = first.wrapping_add(64 * line);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch reads nothing and does not fault, whatever the address.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(address);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }
}
