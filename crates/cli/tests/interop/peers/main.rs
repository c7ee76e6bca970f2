//! Interoperability tests with other implementations: masque-go's client and proxy, aioquic's HTTP/3 client and server, and
//! libcurl as a client over HTTP/2. They are downloaded from their registries at pinned versions. The kernel is a peer for ICMP messages.

mod aioquic;
mod libcurl;
mod masque_go;
mod path_mtu;
#[allow(dead_code, reason = "shared with other tests of the programs")]
#[path = "../../masque/processes.rs"]
mod processes;

use processes::{errors, text};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

/// A process of another implementation, which is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The installation of a Python package in a folder of the build. The first test that needs it installs it.
fn installed(package: &str, version: &str) -> PathBuf {
    static INSTALLATION: Mutex<()> = Mutex::new(());
    let _installation = INSTALLATION.lock().unwrap_or_else(PoisonError::into_inner);
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let installed = built.join(format!("{package}-{version}"));
    if !installed.exists() {
        let fresh = built.join(format!("{package}-{version}-{}", std::process::id()));
        let output = Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", text(&fresh)])
            .arg(format!("{package}=={version}"))
            .output()
            .expect("Python 3 with pip is needed");
        assert!(output.status.success(), "{}", errors(&output));
        std::fs::rename(&fresh, &installed).expect("a folder of that name");
    }
    installed
}
