//! HTTP/3 server content from the files of a directory.

use bytes::Bytes;
use fullpipe_masque::http3::{Body, ContentError, ContentSource};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes per read.
const PIECE: usize = 64 << 10;

/// The files of a directory, as the content of an HTTP/3 server. Symbolic links to targets outside of the directory are
/// not followed.
#[derive(Clone, Debug)]
pub struct DirectoryContent(PathBuf);

impl DirectoryContent {
    /// Opens the directory `root`.
    ///
    /// # Errors
    /// Returns an error if `root` is not a directory or cannot be read.
    pub fn new(root: &Path) -> io::Result<DirectoryContent> {
        let root = root.canonicalize()?;
        root.read_dir()?;
        Ok(DirectoryContent(root))
    }
}

impl ContentSource for DirectoryContent {
    fn open(&self, path: &str) -> Result<Box<dyn Body>, ContentError> {
        let open = || {
            let path = self.0.join(path.trim_start_matches('/')).canonicalize()?;
            let file = File::open(&path)?;
            let metadata = file.metadata()?;
            if path.starts_with(&self.0) && metadata.is_file() {
                Ok(OpenFile { file, length: metadata.len(), left: metadata.len() })
            } else {
                Err(io::Error::from(io::ErrorKind::NotFound))
            }
        };
        match open() {
            Ok(file) => Ok(Box::new(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ContentError::NotFound),
            Err(error) => Err(ContentError::Unreadable(error)),
        }
    }
}

struct OpenFile {
    file: File,
    length: u64,
    left: u64,
}

impl Body for OpenFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn next_chunk(&mut self) -> io::Result<Bytes> {
        let mut piece = vec![0; PIECE.min(usize::try_from(self.left).unwrap_or(PIECE))];
        self.file.read_exact(&mut piece)?;
        self.left -= piece.len() as u64;
        Ok(piece.into())
    }
}
