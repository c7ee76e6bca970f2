//! Checks of this machine's suitability for real-time runs, with advice for each problem.

use super::namespace::{EmulatorNamespace, HostSettings, NamespaceError, enter_user_namespace, namespace_restrictions};
use super::port::PacketPort;
use rustix::thread::{current_timer_slack, set_current_timer_slack};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU64;

/// The severity of a finding for real-time runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStatus {
    /// No problem.
    Good,
    /// Real-time runs work, with a restriction that the finding describes.
    Warning,
    /// Real-time runs do not work.
    Bad,
}

impl CheckStatus {
    /// Returns the name of the severity.
    pub fn name(self) -> &'static str {
        match self {
            CheckStatus::Good => "good",
            CheckStatus::Warning => "warning",
            CheckStatus::Bad => "bad",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Subject of the check, in a few words.
    pub subject: &'static str,
    /// Severity.
    pub state: CheckStatus,
    /// Description of the finding.
    pub found: String,
    /// How to solve the problem; `None` if there is no problem.
    pub advice: Option<String>,
}

impl Finding {
    fn good(subject: &'static str, found: impl Into<String>) -> Self {
        Finding { subject, state: CheckStatus::Good, found: found.into(), advice: None }
    }

    fn warning(subject: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding { subject, state: CheckStatus::Warning, found: found.into(), advice: Some(advice.into()) }
    }

    fn bad(subject: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding { subject, state: CheckStatus::Bad, found: found.into(), advice: Some(advice.into()) }
    }
}

/// Runs all checks. The function enters new namespaces, so it must be called before the process has a second thread.
/// Also returns a network namespace, or `None` if real-time runs are not possible.
pub fn run_checks() -> (Vec<Finding>, Option<EmulatorNamespace>) {
    let mut findings =
        vec![processors(), load(), clock(), timer_slack(), scheduling(), congestion_controls(), buffers()];
    let home = match namespaces(&mut findings) {
        Ok(home) => home,
        Err(refused) => {
            findings.push(Finding::bad(
                "namespaces",
                format!("{}: {}", refused.what, refused.error),
                format!("{}.", refused.advice),
            ));
            return (findings, None);
        }
    };
    attachments(&home, &mut findings);
    let possible = findings.iter().all(|finding| finding.state != CheckStatus::Bad);
    (findings, possible.then_some(home))
}

fn read(file: &str) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
}

/// Checks the settings for ordinary users and enters the namespaces. Both steps are needed, because the superuser's
/// access does not show whether other users have access.
fn namespaces(findings: &mut Vec<Finding>) -> Result<EmulatorNamespace, NamespaceError> {
    let subject = "user namespaces";
    findings.push(match namespace_restrictions().as_slice() {
        [] => Finding::good(subject, "unprivileged users can create them"),
        commands => {
            let advice = format!("To permit them, run as root: {}.", commands.join("; "));
            Finding::warning(subject, "unprivileged users cannot create them", advice)
        }
    });
    enter_user_namespace()?;
    let home = EmulatorNamespace::new()?;
    findings.push(Finding::good("namespaces", "this user can create network, PID and mount namespaces"));
    Ok(home)
}

/// Checks the interfaces of a host and the emulator's ports to them.
fn attachments(home: &EmulatorNamespace, findings: &mut Vec<Finding>) {
    let settings = HostSettings {
        name: "doctor".to_owned(),
        addresses: vec![IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))],
        mac: [2, 1, 0, 0, 0, 0],
        gateway_mac: [2, 0, 0, 0, 0, 0],
        mtu_bytes: 1500,
    };
    let kernel = "The kernel must support CONFIG_VETH and CONFIG_PACKET. To load the modules, run as root: \
                  modprobe veth; modprobe af_packet.";
    match home.add_host(&settings) {
        Err(error) => findings.push(Finding::bad("veth", format!("cannot create a veth pair: {error}"), kernel)),
        Ok((_host, outer)) => {
            findings.push(Finding::good("veth", "veth pairs can be created, with checksum offload disabled"));
            findings.push(match PacketPort::open(&outer) {
                Ok(_) => Finding::good("packet sockets", "can be opened, with receive timestamps"),
                Err(error) => Finding::bad("packet sockets", format!("cannot be opened: {error}"), kernel),
            });
        }
    }
    findings.push(match home.add_tun_host(&settings) {
        Ok(_) => Finding::good("TUN", "TUN devices can be created"),
        Err(error) => {
            Finding::good("TUN", format!("cannot create a TUN device: {error}; only attachment = \"tun\" needs it"))
        }
    });
}

fn processors() -> Finding {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let found = format!("{count} available to this process");
    let advice = "Provide at least 2 processors: one for the emulator, which busy-waits shortly before each deadline, and \
                  one for the programs.";
    if count >= 2 { Finding::good("processors", found) } else { Finding::warning("processors", found, advice) }
}

fn load() -> Finding {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let load = read("/proc/loadavg").and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    match load {
        // The emulator needs one processor for itself.
        Some(load) if load > count as f64 - 0.5 => Finding::warning(
            "load",
            format!("{load:.2} (1-minute average), {count} processors"),
            "Other processes use this machine. Stop those that are not needed; otherwise packets can be late (run.json \
             contains the lateness).",
        ),
        Some(load) => Finding::good("load", format!("{load:.2} (1-minute average), {count} processors")),
        None => Finding::good("load", "unknown: /proc/loadavg is not readable"),
    }
}

fn clock() -> Finding {
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let offered = read("/sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    match source.as_deref() {
        // These clock sources can be read without a system call. Reading others takes a microsecond or more, twice per
        // packet.
        Some(fast @ ("tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page")) => {
            Finding::good("clock source", fast)
        }
        Some(slow) => Finding::warning(
            "clock source",
            format!("{slow} (available: {offered})"),
            "Reading this clock source is slow. If tsc is available, select it as root: echo tsc > \
             /sys/devices/system/clocksource/clocksource0/current_clocksource.",
        ),
        None => Finding::good("clock source", "unknown: current_clocksource is not readable"),
    }
}

fn timer_slack() -> Finding {
    let before = current_timer_slack().unwrap_or(0);
    let set = set_current_timer_slack(NonZeroU64::new(1)).is_ok() && current_timer_slack().is_ok_and(|now| now == 1);
    if set {
        return Finding::good(
            "timer slack",
            format!("can be set to 1 ns (the current value is {} us)", before as f64 / 1000.0),
        );
    }
    Finding::warning(
        "timer slack",
        "cannot be set to 1 ns",
        "Sleeping threads wake up about 50 us late. Permit prctl(PR_SET_TIMERSLACK), which a seccomp profile can forbid.",
    )
}

/// Bit number of CAP_SYS_NICE (capabilities(7)).
const SYS_NICE: u32 = 23;

fn scheduling() -> Finding {
    let status = read("/proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).map(str::trim);
    let capable =
        capabilities.and_then(|set| u64::from_str_radix(set, 16).ok()).is_some_and(|set| set >> SYS_NICE & 1 == 1);
    let limits = read("/proc/self/limits").unwrap_or_default();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max realtime priority"));
    let limited = limit.and_then(|line| line.split_whitespace().next()).is_some_and(|soft| soft != "0");
    let found = if capable || limited { "this user may use SCHED_FIFO" } else { "this user may not use SCHED_FIFO" };
    // Real-time scheduling is not needed. With two processors, it would deprive the programs of CPU time.
    Finding::good("scheduling", format!("{found}; Fullpipe does not use it"))
}

fn congestion_controls() -> Finding {
    let controls = read("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let allowed = read("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap_or_default();
    let refused: Vec<&str> = controls
        .split_whitespace()
        .filter(|control| !allowed.split_whitespace().any(|other| other == *control))
        .collect();
    let found = format!("available in this kernel: {controls}");
    if refused.is_empty() {
        return Finding::good("congestion controls", found);
    }
    Finding::warning(
        "congestion controls",
        format!("{found}; permitted for unprivileged users: {allowed}"),
        format!("To permit all, run as root: sysctl net.ipv4.tcp_allowed_congestion_control=\"{controls}\"."),
    )
}

/// Sufficient buffer size for 40 ms at 1 Gbit/s, including the kernel's overhead for small packets.
const GOOD_BUFFER_BYTES: u64 = 8 << 20;

fn buffers() -> Finding {
    let limit = read("/proc/sys/net/core/rmem_max").and_then(|text| text.parse::<u64>().ok());
    match limit {
        Some(bytes) if bytes < GOOD_BUFFER_BYTES => Finding::warning(
            "socket buffers",
            format!("at most {} KiB for unprivileged users (net.core.rmem_max = {bytes})", bytes / 1024),
            format!(
                "The kernel can drop packets of a burst before the emulator reads them; run.json contains their number. To \
                 raise the limit, run as root: sysctl net.core.rmem_max={GOOD_BUFFER_BYTES} \
                 net.core.wmem_max={GOOD_BUFFER_BYTES}."
            ),
        ),
        Some(bytes) => {
            Finding::good("socket buffers", format!("at most {} KiB (net.core.rmem_max = {bytes})", bytes / 1024))
        }
        None => Finding::good("socket buffers", "unknown: net.core.rmem_max is not readable in this namespace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only checks without side effects; `run_checks` changes namespaces and needs its own process.
    #[test]
    fn every_check_has_a_finding_and_advice_unless_good() {
        for finding in [processors(), load(), clock(), timer_slack(), scheduling(), congestion_controls(), buffers()] {
            assert!(!finding.found.is_empty(), "{}", finding.subject);
            assert_eq!(finding.state == CheckStatus::Good, finding.advice.is_none(), "{finding:?}");
        }
    }
}
