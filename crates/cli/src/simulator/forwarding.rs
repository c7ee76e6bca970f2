//! Keeps the kernel from forwarding between two interfaces past the emulator.

use std::fs;
use std::path::PathBuf;

/// The kernel's forwarding is switched off; it is switched on again when this goes.
#[derive(Debug)]
pub(super) struct Blocked(Vec<PathBuf>);

impl Blocked {
    /// Switches it off where it is on: for IPv4 what comes from these interfaces, for IPv6 all (the kernel has no other
    /// switch). Where that is not allowed (in a container `/proc/sys` is read-only), a rule of the firewall has to do it.
    pub(super) fn between(interfaces: [&str; 2]) -> Self {
        let v4 = interfaces.map(|interface| format!("/proc/sys/net/ipv4/conf/{interface}/forwarding"));
        let v6 = "/proc/sys/net/ipv6/conf/all/forwarding".to_string();
        let mut switched = Vec::new();
        for path in v4.into_iter().chain([v6]).map(PathBuf::from) {
            let is_on = fs::read_to_string(&path).is_ok_and(|value| value.trim() == "1");
            if !is_on {
                continue;
            }
            match fs::write(&path, "0") {
                Ok(()) => switched.push(path),
                Err(error) => eprintln!(
                    "fullpipe: the kernel forwards packets past the emulator ({}: {error}) unless a rule forbids it, such as \
                     iptables -A FORWARD -i {} -o {} -j DROP and its like for the other direction and ip6tables",
                    path.display(),
                    interfaces[0],
                    interfaces[1]
                ),
            }
        }
        Blocked(switched)
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        for path in &self.0 {
            // Whoever took the right away meanwhile has the last word.
            let _ = fs::write(path, "1");
        }
    }
}
