//! The addresses from which the tunnels of a proxy send to their targets. A connection that arrives from one of them comes
//! from a tunnel of the same proxy: the target leads back to it, for instance through a NAT.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The addresses from which the open tunnels send.
#[derive(Default)]
pub(crate) struct Egress(Mutex<BTreeSet<SocketAddr>>);

impl Egress {
    fn addresses(&self) -> MutexGuard<'_, BTreeSet<SocketAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, address: SocketAddr) {
        self.addresses().insert(canonical(address));
    }

    pub(super) fn remove(&self, address: SocketAddr) {
        self.addresses().remove(&canonical(address));
    }

    /// Whether a tunnel sends from `address`.
    pub(super) fn contains(&self, address: SocketAddr) -> bool {
        self.addresses().contains(&canonical(address))
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
