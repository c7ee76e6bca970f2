//! Access to the disk: the only module of this crate that changes files.
//!
//! All writes, syncs, renames and removals use [`FileSystem`], which calls a hook before each step. In production there
//! is no hook. A test provides a hook that kills the process at the n-th step, or that returns an error such as a full
//! disk. The test can thus check every state that an interruption may leave.
//!
//! Two composite steps are atomic even if the process is killed or the power fails, as far as POSIX guarantees this.
//! `replace` writes a temporary sibling, syncs it, renames it over the old file and syncs the folder. `publish` does
//! the same for a folder that does not exist yet.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A single operation on the disk, as the hook receives it before the operation is executed. Reads and listings are
/// included only if they are those of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOperation<'a> {
    /// Creates a folder.
    CreateFolder(&'a Path),
    /// Creates an empty file.
    CreateFile(&'a Path),
    /// Writes bytes to a file.
    Write(&'a Path),
    /// Syncs a file.
    SyncFile(&'a Path),
    /// Syncs a folder.
    SyncFolder(&'a Path),
    /// Renames a file or a folder.
    Rename(&'a Path, &'a Path),
    /// Removes a file, or a folder with its contents.
    Remove(&'a Path),
    /// Reads a file.
    Read(&'a Path),
    /// Lists the names in a folder.
    List(&'a Path),
}

impl FileOperation<'_> {
    /// Returns whether the operation changes the disk.
    pub fn modifies_disk(&self) -> bool {
        !matches!(self, FileOperation::Read(_) | FileOperation::List(_))
    }
}

/// A function that is called before each operation. If it returns an error, the operation is not executed and fails
/// with this error.
pub type FileHook = Arc<dyn Fn(FileOperation<'_>) -> io::Result<()> + Send + Sync>;

/// Access to the disk.
#[derive(Clone, Default)]
pub struct FileSystem {
    hook: Option<FileHook>,
    /// The number of bytes per write; a test sets a small number to interrupt a write within a file.
    chunk_bytes: Option<usize>,
}

/// The error of an operation on the disk.
#[derive(Debug)]
pub struct FileOperationError {
    /// The operation in words, for the error message.
    pub what: String,
    /// The path of the file or folder.
    pub path: PathBuf,
    /// The error of the operating system.
    pub reason: io::Error,
}

impl std::fmt::Display for FileOperationError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = match self.reason.kind() {
            io::ErrorKind::StorageFull => "the disk is full".to_owned(),
            io::ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
            io::ErrorKind::NotADirectory => "a part of the path is not a folder".to_owned(),
            _ => self.reason.to_string(),
        };
        write!(formatter, "cannot {} {}: {reason}", self.what, self.path.display())
    }
}

impl std::error::Error for FileOperationError {}

/// The prefix of the names of all unfinished files and folders.
pub(crate) const UNFINISHED: &str = ".unfinished-";

impl FileSystem {
    /// Creates access to the disk without a hook.
    pub fn new() -> Self {
        FileSystem::default()
    }

    /// Creates access to the disk with a hook that is called before each operation. Files are written in chunks of
    /// `chunk_bytes`.
    pub fn with_hook(hook: FileHook, chunk_bytes: usize) -> Self {
        FileSystem { hook: Some(hook), chunk_bytes: Some(chunk_bytes.max(1)) }
    }

    fn step<T>(
        &self,
        what: &str,
        path: &Path,
        step: FileOperation<'_>,
        make: impl FnOnce() -> io::Result<T>,
    ) -> Result<T, FileOperationError> {
        let asked = self.hook.as_ref().map_or(Ok(()), |hook| hook(step));
        asked.and_then(|()| make()).map_err(|reason| FileOperationError {
            what: what.to_owned(),
            path: path.to_owned(),
            reason,
        })
    }

    /// Creates a folder and its parents, unless they exist.
    pub(crate) fn create_folder(&self, path: &Path) -> Result<(), FileOperationError> {
        if path.is_dir() {
            return Ok(());
        }
        self.step("create the folder", path, FileOperation::CreateFolder(path), || fs::create_dir_all(path))
    }

    /// Creates or overwrites files, then syncs them. This is not atomic. All files are written before the first sync,
    /// which takes less time.
    fn write<'a>(&self, files: impl Iterator<Item = (PathBuf, &'a [u8])>) -> Result<(), FileOperationError> {
        let mut written = Vec::new();
        for (path, content) in files {
            let mut file = self.step("create", &path, FileOperation::CreateFile(&path), || File::create(&path))?;
            for chunk in content.chunks(self.chunk_bytes.unwrap_or(usize::MAX)) {
                self.step("write", &path, FileOperation::Write(&path), || file.write_all(chunk))?;
            }
            written.push((path, file));
        }
        written
            .iter()
            .try_for_each(|(path, file)| self.step("sync", path, FileOperation::SyncFile(path), || file.sync_all()))
    }

    /// Syncs a folder, so that the names in it are persistent.
    fn sync_folder(&self, path: &Path) -> Result<(), FileOperationError> {
        self.step("sync the folder", path, FileOperation::SyncFolder(path), || match File::open(path) {
            Ok(folder) if cfg!(unix) => folder.sync_all(),
            Ok(_) => Ok(()),
            // Some systems cannot open a folder. On these systems, names are persistent without a sync.
            Err(_) if !cfg!(unix) => Ok(()),
            Err(reason) => Err(reason),
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileOperationError> {
        self.step("put in place", to, FileOperation::Rename(from, to), || fs::rename(from, to))
    }

    /// Removes a file, or a folder with its contents, if it exists.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), FileOperationError> {
        let kind = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata.file_type(),
            Err(_) => return Ok(()),
        };
        self.step("remove", path, FileOperation::Remove(path), || {
            if kind.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
        })
    }

    /// Replaces files of a folder. Afterwards, and after an interruption at any time, each file is either entirely old
    /// or entirely new.
    pub(crate) fn replace(&self, folder: &Path, files: &[(&str, &[u8])]) -> Result<(), FileOperationError> {
        if files.is_empty() {
            return Ok(());
        }
        let temporary = |name: &str| folder.join(format!("{UNFINISHED}{name}"));
        self.write(files.iter().map(|(name, content)| (temporary(name), *content)))?;
        files.iter().try_for_each(|(name, _)| self.rename(&temporary(name), &folder.join(name)))?;
        self.sync_folder(folder)
    }

    /// Creates a folder for files before `publish` renames it.
    pub(crate) fn begin(&self, unfinished: &Path) -> Result<(), FileOperationError> {
        self.remove(unfinished)?;
        self.create_folder(unfinished)
    }

    /// Copies the files of a folder to another, which is emptied before; without a sync.
    pub(crate) fn copy_folder(&self, from: &Path, to: &Path) -> Result<(), FileOperationError> {
        self.begin(to)?;
        for name in self.names_in(from)? {
            let (from, to) = (from.join(&name), to.join(&name));
            self.step("copy", &from, FileOperation::Write(&to), || fs::copy(&from, &to))?;
        }
        Ok(())
    }

    /// Appends to a file, which is created if it does not exist; without a sync.
    pub(crate) fn append(&self, path: &Path, content: &[u8]) -> Result<(), FileOperationError> {
        let open = || File::options().append(true).create(true).open(path);
        let mut file = if path.exists() {
            open().map_err(|reason| FileOperationError { what: "open".to_owned(), path: path.to_owned(), reason })?
        } else {
            self.step("create", path, FileOperation::CreateFile(path), open)?
        };
        for chunk in content.chunks(self.chunk_bytes.unwrap_or(usize::MAX)) {
            self.step("write", path, FileOperation::Write(path), || file.write_all(chunk))?;
        }
        Ok(())
    }

    /// Syncs the files to which data was appended.
    fn sync_all(&self, folder: &Path) -> Result<(), FileOperationError> {
        for name in self.names_in(folder)? {
            let path = folder.join(name);
            self.step("sync", &path, FileOperation::SyncFile(&path), || {
                File::options().append(true).open(&path)?.sync_all()
            })?;
        }
        Ok(())
    }

    /// Creates a folder with these files atomically. The files are first written to another folder, which also contains
    /// the files that were written there after `begin`, if it was called. An existing folder is moved aside and
    /// removed. After an interruption, there is thus the old folder, the new one, or none, but never a mixture.
    pub(crate) fn publish(
        &self,
        unfinished: &Path,
        path: &Path,
        content: &[(String, Vec<u8>)],
        begun: bool,
    ) -> Result<(), FileOperationError> {
        let folder = path.parent().unwrap_or(Path::new(""));
        if begun {
            self.sync_all(unfinished)?;
        } else {
            self.begin(unfinished)?;
        }
        self.write(content.iter().map(|(name, bytes)| (unfinished.join(name), &bytes[..])))?;
        self.sync_folder(unfinished)?;
        if path.exists() {
            let aside = unfinished.with_extension("old");
            self.remove(&aside)?;
            self.rename(path, &aside)?;
            self.rename(unfinished, path)?;
            self.sync_folder(folder)?;
            return self.remove(&aside);
        }
        self.rename(unfinished, path)?;
        self.sync_folder(folder)
    }

    /// Removes unfinished files and folders from a folder.
    pub(crate) fn clean(&self, folder: &Path) -> Result<(), FileOperationError> {
        for name in self.names_in(folder)? {
            if name.starts_with(UNFINISHED) {
                self.remove(&folder.join(name))?;
            }
        }
        Ok(())
    }

    /// Returns the sorted names in a folder; empty if the folder does not exist.
    pub(crate) fn names_in(&self, folder: &Path) -> Result<Vec<String>, FileOperationError> {
        let names = || -> io::Result<Vec<String>> {
            let entries = match fs::read_dir(folder) {
                Ok(entries) => entries,
                Err(reason) if reason.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                Err(reason) => return Err(reason),
            };
            let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            let mut names = names.collect::<io::Result<Vec<_>>>()?;
            names.sort();
            Ok(names)
        };
        self.step("list the folder", folder, FileOperation::List(folder), names)
    }

    /// Reads a file; `None` if it does not exist.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, FileOperationError> {
        let read = || match fs::read(path) {
            Ok(content) => Ok(Some(content)),
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(reason) => Err(reason),
        };
        self.step("read", path, FileOperation::Read(path), read)
    }

    /// Opens a file; `None` if it does not exist.
    pub(crate) fn open(&self, path: &Path) -> Result<Option<File>, FileOperationError> {
        let open = || match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(reason) => Err(reason),
        };
        self.step("read", path, FileOperation::Read(path), open)
    }
}
