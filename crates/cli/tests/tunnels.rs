//! Tests that the same seed gives the same bytes of a tunnel in another process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The files that a process writes for a run, by name.
fn run(mode: &str, name: &str, seed: u32) -> BTreeMap<String, Vec<u8>> {
    // Each process has its own folder.
    let records = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tunnels-{mode}-{name}"));
    let _ = std::fs::remove_dir_all(&records);
    let output = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(["run", &format!("bench/masque-1-{mode}"), "--set", "flow.download.response=1MB"])
        .args(["--pcap=all", "--quiet", "--seed", &seed.to_string(), "--out"])
        .arg(&records)
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let runs: Vec<_> = std::fs::read_dir(records.join("runs")).expect("runs").flatten().collect();
    let [only] = &runs[..] else { panic!("{runs:?}") };
    files(&only.path())
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let read = |path: &Path| std::fs::read(path).expect("a file");
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), read(&entry.path()))).collect()
}

#[test]
fn equal_seeds_send_equal_bytes_in_another_process() {
    for mode in ["datagram", "stream"] {
        let (one, two, other) = (run(mode, "one", 7), run(mode, "two", 7), run(mode, "other", 8));
        for name in ["client.pcapng", "proxy.pcapng", "server.pcapng", "flows.csv", "figures.csv", "run.json"] {
            assert!(one[name] == two[name], "{mode}: {name} differs");
        }
        // The capture contains more than 1 MB, and another seed gives other bytes.
        assert!(one["proxy.pcapng"].len() > 2_000_000, "{}", one["proxy.pcapng"].len());
        assert!(one["client.pcapng"] != other["client.pcapng"], "{mode}");
    }
}
