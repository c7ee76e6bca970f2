//! Keeps the kernel from forwarding between interfaces past the emulator.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The kernel's forwarding is switched off; it is switched on again when this goes, in the network namespace in which it was
/// switched off: to that the open files belong.
#[derive(Debug)]
pub(crate) struct Blocked(Vec<File>);

impl Blocked {
    /// Switches it off where it is on: for IPv4 what comes from these interfaces, for IPv6 all (the kernel has no other
    /// switch). Where that is not allowed (in a container `/proc/sys` is read-only), a rule of the firewall has to do it.
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
        Blocked(switched)
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        for file in &self.0 {
            // Whoever took the right away meanwhile has the last word.
            let _ = file.write_all_at(b"1", 0);
        }
    }
}
