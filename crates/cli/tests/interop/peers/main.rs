//! Interoperability tests with other implementations: masque-go's client and proxy, aioquic's HTTP/3 client and server.
//! Both are downloaded from their registries at pinned versions. The kernel is a peer for ICMP messages.

mod aioquic;
mod masque_go;
mod path_mtu;
#[allow(dead_code, reason = "shared with other tests of the programs")]
#[path = "../../masque/processes.rs"]
mod processes;

use std::process::Child;

/// A process of another implementation, which is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
