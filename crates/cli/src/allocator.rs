//! Settings of the C library's memory allocator.
//!
//! A growing vector is copied within the heap, and its old location remains as a hole. If the block is mapped
//! separately, the kernel moves its pages instead. glibc maps blocks of at least 128 KiB, but raises this limit up to
//! 32 MiB when a larger block is freed. With 10 000 TCP flows the holes were a sixth of all memory.

/// The minimum size of blocks that are mapped separately, in bytes.
const MAPPED_BYTES: i32 = 1 << 20;
/// The unused memory that is kept at the end of the heap, in bytes. Studies with short runs reuse it for each run.
/// `tcp-vs-udp` spent 0.66 s in the kernel with limits of 256 KiB and 4 MiB, 0.45 s with these limits, and 0.32 s with
/// those of glibc (of 13 s of CPU time; three alternating runs). The peak memory of `tcp-10k` is 127 MB with both of
/// the fixed pairs of limits, and 148 MB with those of glibc.
const KEPT_BYTES: i32 = 64 << 20;

/// Fixes the limits that glibc would change automatically. It has no effect with other C libraries.
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

        // The return values are ignored: without these limits a run needs more memory, but its results are equal.
        let _ = (mallopt(MMAP_THRESHOLD, MAPPED_BYTES), mallopt(TRIM_THRESHOLD, KEPT_BYTES));
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = (MAPPED_BYTES, KEPT_BYTES);
}
