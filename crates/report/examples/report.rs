//! Builds the report of a folder of records: `cargo run -p fullpipe-report --example report -- DIR`. Without a folder
//! it uses a copy of the test records in the system's temporary folder.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => PathBuf::from(folder),
        None => {
            let copy = std::env::temp_dir().join("fullpipe-report-example");
            copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture/study"), &copy)?;
            copy
        }
    };
    let built = fullpipe_report::write_report(&folder)?;
    println!("{} and {} plots", built.html.display(), built.plots.len());
    for reason in built.distrust {
        println!("not to be trusted: {reason}");
    }
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() { copy_folder(&path, &target)? } else { std::fs::copy(&path, &target).map(|_| ())? }
    }
    Ok(())
}
