//! A file that gets its name when all of it is written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A new file; if it is not finished, it is removed.
pub(crate) struct NewFile {
    path: PathBuf,
    pub(crate) writer: BufWriter<File>,
    /// The name until then; `None`: the path is that of a device, a pipe or a link, which is written to directly.
    part: Option<PathBuf>,
}

impl NewFile {
    /// A file that has `ending` behind its name until it is finished.
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
        // What cannot be removed has a name that says what it is.
        let _ = self.part.take().map(fs::remove_file);
    }
}
