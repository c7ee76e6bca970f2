//! Folders of records for tests: copies of the fixtures that a test may change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A folder that is removed when the value is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    /// A copy of a fixture.
    pub(crate) fn copy_of(name: &str) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&to);
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture").join(name), &to);
        Self(to)
    }

    /// The text of a file in the folder.
    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    /// Replaces the text of a file.
    pub(crate) fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    /// Replaces a text in a file. The text must exist.
    pub(crate) fn replace(&self, file: &str, old: &str, new: &str) {
        let text = self.text(file);
        assert!(text.contains(old), "{file} has no {old}");
        self.write(file, &text.replace(old, new));
    }

    /// All records, as paths within the folder, in order.
    pub(crate) fn records(&self) -> Vec<String> {
        let mut out = Vec::new();
        list(&self.0, &self.0, &mut out);
        out.sort();
        out
    }

    /// Builds the report and returns the page.
    pub(crate) fn build(&self) -> String {
        fullpipe_report::write_report(&self.0).unwrap_or_else(|e| panic!("{e}"));
        self.text("report.html")
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn list(root: &Path, folder: &Path, out: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(root, &path, out);
        } else {
            out.push(path.strip_prefix(root).unwrap().to_string_lossy().into_owned());
        }
    }
}

/// Parses a page or a picture; both are well-formed XML.
pub(crate) fn parse(text: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(text, options)
        .unwrap_or_else(|e| panic!("{e}\n{}", &text[..text.len().min(2000)]))
}

/// All text below a node, in order.
pub(crate) fn text_of(node: roxmltree::Node<'_, '_>) -> String {
    node.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect()
}
