//! Settings of the C library's memory allocator.
//!
//! A vector that grows by doubling is copied within the heap, where its old place stays as a hole, unless it is mapped by itself: then
//! the kernel moves its pages. glibc maps blocks of 128 KiB and more, but raises this limit up to 32 MiB when a larger block is freed.
//! With 10 000 TCP flows the holes were a sixth of all memory.

/// Blocks of at least so many bytes are mapped by themselves.
const MAPPED_BYTES: i32 = 256 << 10;
/// So much unused memory at the end of the heap is kept. A study whose runs are short uses it again for each.
const KEPT_BYTES: i32 = 4 << 20;

/// Fixes the limits that glibc would change on its own; without effect elsewhere.
pub(crate) fn fix_limits() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::ffi::c_int;

        #[expect(unsafe_code, reason = "a function of the C library that takes and returns integers")]
        unsafe extern "C" {
            safe fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        /// `M_TRIM_THRESHOLD` and `M_MMAP_THRESHOLD` of malloc.h.
        const TRIM_THRESHOLD: c_int = -1;
        const MMAP_THRESHOLD: c_int = -3;

        // What it returns does not matter: without these limits a run needs more memory, and has the same results.
        let _ = (mallopt(MMAP_THRESHOLD, MAPPED_BYTES), mallopt(TRIM_THRESHOLD, KEPT_BYTES));
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = (MAPPED_BYTES, KEPT_BYTES);
}
