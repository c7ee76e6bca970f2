//! The names of benchmarks, and the measurements that all of them report.

use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Instant;

/// The benchmarks of this version, in the documented order.
pub(crate) const NAMES: [&str; 20] = [
    "tcp-1",
    "tcp-10",
    "tcp-100",
    "tcp-10k",
    "tcp-idle",
    "udp-5hop",
    "quic-1",
    "quic-real-1-10m",
    "quic-real-1-100m",
    "masque-1-datagram",
    "masque-1-stream",
    MASQUE,
    "lte-1",
    "lte-50",
    "lte-500",
    "wifi-1",
    "wifi-50",
    "quic-10k",
    RELAY,
    LTE,
];

/// The real-time benchmark of the emulator.
pub(crate) const RELAY: &str = "relay";

/// The real-time benchmark of an LTE cell.
pub(crate) const LTE: &str = "lte-real-time";

/// The benchmark of the MASQUE programs on loopback.
pub(crate) const MASQUE: &str = "masque-loopback";

/// The description of that benchmark; all others have a scenario with a title.
pub(crate) const PROXY_ON_LOOPBACK: &str = "100 MB through the real proxy, real sockets on loopback";

/// Returns the median of an odd number of values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the report of a benchmark with its further metrics. `counts` are the numbers of data packets and
/// packet-hops.
pub(crate) fn row(
    name: &str,
    seconds: f64,
    counts: [Option<u64>; 2],
    cpu_seconds: f64,
    peak_rss_bytes: Option<u64>,
    mut further: Value,
) -> Value {
    let rates = counts.map(|count| count.map(|count| count as f64 / cpu_seconds));
    let mut row = json!({
        "name": name,
        "simulated_seconds": seconds,
        "packets": counts[0],
        "packet_hops": counts[1],
        "cpu_seconds": cpu_seconds,
        "packets_per_cpu_second": rates[0],
        "packet_hops_per_cpu_second": rates[1],
        "peak_rss_bytes": peak_rss_bytes,
    });
    if let (Some(row), Some(further)) = (row.as_object_mut(), further.as_object_mut()) {
        row.append(further);
    }
    row
}

/// Returns the seconds since the first call, on the monotonic clock.
pub(crate) fn elapsed_seconds() -> f64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "the time of a command, which no model reads")]
    let now = Instant::now();
    now.duration_since(*BEGIN.get_or_init(|| now)).as_secs_f64()
}

/// Returns the CPU time of this process, in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    clocks::process_cpu_seconds()
}

/// Returns the CPU time of this thread, in seconds.
pub(crate) fn thread_cpu_seconds() -> f64 {
    clocks::thread_cpu_seconds()
}

#[cfg(unix)]
mod clocks {
    use rustix::time::{ClockId, clock_gettime};

    fn seconds_of(clock: ClockId) -> f64 {
        let time = clock_gettime(clock);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    }

    pub(super) fn process_cpu_seconds() -> f64 {
        seconds_of(ClockId::ProcessCPUTime)
    }

    pub(super) fn thread_cpu_seconds() -> f64 {
        seconds_of(ClockId::ThreadCPUTime)
    }
}

/// The standard library has no CPU clock. The elapsed time replaces it; both are equal for one busy thread on an idle
/// core.
#[cfg(not(unix))]
mod clocks {
    pub(super) use super::elapsed_seconds as process_cpu_seconds;
    pub(super) use super::elapsed_seconds as thread_cpu_seconds;
}

/// Returns the peak memory of this process in bytes; `None` if the system does not report it.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    peak_rss_bytes_of("self")
}

pub(crate) fn peak_rss_bytes_of(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns the memory of this machine, or the limit of the control group of this process if it is smaller; `None` if
/// unknown.
pub(crate) fn memory_bytes() -> Option<u64> {
    let total = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = total.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit = limit.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    Some((kilobytes * 1024).min(limit))
}
