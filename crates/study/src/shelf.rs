//! Access to the files of a study, which are either in a folder or embedded in the executable.

use std::path::PathBuf;

/// Access to the files of a study by name.
pub trait StudyFiles {
    /// Returns the text of a file with this name in the study's folder.
    ///
    /// # Errors
    /// The reason why the file cannot be read, as a sentence without the name.
    fn read(&self, name: &str) -> Result<String, String>;

    /// Returns the name of a file for error messages.
    fn display_name(&self, name: &str) -> String;

    /// Returns the folder of the study; `None` if the files are embedded.
    fn folder(&self) -> Option<PathBuf>;
}

/// A folder on the disk.
#[derive(Clone, Debug)]
pub struct StudyFolder(pub PathBuf);

impl StudyFiles for StudyFolder {
    fn read(&self, name: &str) -> Result<String, String> {
        match std::fs::read(self.0.join(name)) {
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned()),
            Err(reason) if reason.kind() == std::io::ErrorKind::NotFound => Err("there is no such file".to_owned()),
            Err(reason) => Err(reason.to_string()),
        }
    }

    fn display_name(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn folder(&self) -> Option<PathBuf> {
        Some(self.0.clone())
    }
}

/// Embedded files: the name of the study, then the names and texts of the files.
#[derive(Clone, Debug)]
pub struct EmbeddedStudy<'a>(pub &'a str, pub &'a [(&'a str, &'a str)]);

impl StudyFiles for EmbeddedStudy<'_> {
    fn read(&self, name: &str) -> Result<String, String> {
        let found = self.1.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "there is no such file".to_owned())
    }

    fn display_name(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }

    fn folder(&self) -> Option<PathBuf> {
        None
    }
}
