//! A file that is renamed to its final name when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A new file, which is removed if it is not completed.
pub(crate) struct NewFile {
    path: PathBuf,
    pub(crate) writer: BufWriter<File>,
    /// The temporary name. `None` if the path is that of a device, a pipe or a link, which is written directly.
    part: Option<PathBuf>,
}

impl NewFile {
    /// Creates a file whose name has the suffix `ending` until it is complete.
    pub(crate) fn create(path: &Path, ending: &str) -> io::Result<Self> {
        let is_ordinary = path.symlink_metadata().map_or(true, |metadata| metadata.is_file());
        let part = is_ordinary.then(|| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        });
        let file = File::create(part.as_deref().unwrap_or(path))?;
        Ok(NewFile { path: path.to_owned(), writer: BufWriter::with_capacity(1 << 16, file), part })
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.writer.flush()?;
        if let Some(part) = &self.part {
            fs::rename(part, &self.path)?;
            self.part = None;
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // If it cannot be removed, its suffix shows that it is incomplete.
        let _ = self.part.take().map(fs::remove_file);
    }
}
