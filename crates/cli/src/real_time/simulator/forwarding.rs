//! Prevents the kernel from forwarding packets between interfaces, which would bypass the emulator.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Kernel forwarding is disabled. When the value is dropped, forwarding is enabled again in the network namespace in
/// which it was disabled. The open files belong to that namespace.
#[derive(Debug)]
pub(crate) struct ForwardingGuard(Vec<File>);

impl ForwardingGuard {
    /// Disables forwarding where it is enabled: for IPv4 from these interfaces, and for IPv6 completely, because the
    /// kernel has no finer switch. If this is not permitted (`/proc/sys` is read-only in a container), a firewall rule
    /// must block forwarding.
    pub(crate) fn between(interfaces: &[&str]) -> Self {
        let v4 = interfaces.iter().map(|interface| format!("/proc/sys/net/ipv4/conf/{interface}/forwarding"));
        let v6 = (!interfaces.is_empty()).then(|| "/proc/sys/net/ipv6/conf/all/forwarding".to_string());
        let mut switched = Vec::new();
        for path in v4.chain(v6).map(PathBuf::from) {
            let is_on = fs::read_to_string(&path).is_ok_and(|value| value.trim() == "1");
            if !is_on {
                continue;
            }
            let open = OpenOptions::new().write(true).open(&path);
            match open.and_then(|file| file.write_all_at(b"0", 0).map(|()| file)) {
                Ok(file) => switched.push(file),
                Err(error) => eprintln!(
                    "fullpipe: the kernel forwards packets past the emulator ({}: {error}) unless rules forbid it, such as \
                     iptables -I FORWARD -i {} -j DROP for each interface, and ip6tables likewise",
                    path.display(),
                    interfaces.join(" or "),
                ),
            }
        }
        ForwardingGuard(switched)
    }
}

impl Drop for ForwardingGuard {
    fn drop(&mut self) {
        for file in &self.0 {
            // If the permission was removed in the meantime, the setting is left unchanged.
            let _ = file.write_all_at(b"1", 0);
        }
    }
}
