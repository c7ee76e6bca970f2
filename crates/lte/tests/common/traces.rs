//! ns-3's fading traces. They are data under another license, so they are not part of this repository: `.ci/interop` names
//! their folder in `FULLPIPE_LTE_TRACES` and runs the tests that read them.

use fullpipe_lte::radio::fading::Trace;
use std::path::Path;
use std::process::Command;

/// A trace that ns-3 ships; `None` unless the environment names the folder of the traces.
pub(crate) fn shipped_trace(name: &str) -> Option<Trace> {
    let folder = std::env::var_os("FULLPIPE_LTE_TRACES")?;
    let plain = Path::new(&folder).join(format!("fading_trace_{name}.fad"));
    let text = std::fs::read(&plain).unwrap_or_else(|_| {
        let packed = plain.with_extension("fad.gz");
        let output = Command::new("gzip").arg("-dc").arg(&packed).output().expect("gzip starts");
        assert!(output.status.success(), "gzip cannot read {}", packed.display());
        output.stdout
    });
    Some(Trace::read(text.as_slice()).unwrap_or_else(|error| panic!("{name}: {error}")))
}
