//! No import circles between modules of a crate.
//!
//! The graph is built from the sources: a module uses another if one of its paths (`use` or inline; `crate::`, `super::`,
//! `self::`, a child's or an imported name) leads to something that the other defines. Three rules say what counts:
//!
//! * A parent assembles its children, and children may use what their parents define: uses between a module and one that
//!   contains it, at any depth, are no part of a circle.
//! * A re-export is followed. What a module uses of `crate::Name` counts as used from where `Name` is defined, so two children
//!   that use each other through their parent are a circle.
//! * Unit tests are left out: their modules may use what they like.

mod graph;
mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Why a circle is permitted for now.
const REMOVED: &str = "removed with the work on components, endpoints and records (issue 23)";

/// Circles that are permitted: the crate, its modules, and why.
const PERMITTED: &[(&str, &[&str], &str)] = &[
    (
        "network",
        &[
            "ethernet",
            "fault",
            "fragment",
            "impairment",
            "link",
            "medium",
            "nat::translate",
            "network",
            "notice",
            "processing",
            "rebinding",
            "routing",
            "special",
            "tap",
        ],
        "`Network` is one state machine, whose methods are in a file for each subject beside the state of that subject",
    ),
    (
        "quic",
        &["connection", "input", "migration", "output"],
        "`Connection` is one state machine, whose methods are in a file for each subject",
    ),
    (
        "tcp",
        &["acknowledge", "path_mtu", "recovery", "scoreboard", "sender", "undo"],
        "`Sender` is one state machine, whose methods are in a file for each subject",
    ),
    (
        "scenario",
        &[
            "language::fields",
            "language::identity",
            "language::lte::describe",
            "language::masque",
            "language::measurement",
            "language::nat",
            "language::network",
            "language::probes",
            "language::programs",
            "language::reach",
            "language::real_time",
            "language::topology",
            "language::traffic",
        ],
        REMOVED,
    ),
];

#[test]
fn no_modules_of_a_crate_import_each_other_in_a_circle() {
    let mut permitted: Vec<(&str, BTreeSet<String>)> = PERMITTED
        .iter()
        .map(|(package, names, _)| (*package, names.iter().map(|name| (*name).into()).collect()))
        .collect();
    let mut wrong = Vec::new();
    let (mut packages, mut seen) = (0, 0);
    for (package, root) in roots() {
        let modules = source::modules(&root, &|path| std::fs::read_to_string(path).ok());
        (packages, seen) = (packages + 1, seen + modules.len());
        let graph = graph::graph(&modules);
        for circle in graph::circles(&graph) {
            let names: BTreeSet<String> = circle.iter().map(|path| name(path)).collect();
            if let Some(at) = permitted.iter().position(|(of, permitted)| *of == package && *permitted == names) {
                permitted.remove(at);
                continue;
            }
            wrong.push(format!("{package}: {}", Vec::from_iter(names).join(", ")));
            for from in &circle {
                for (to, paths) in graph[from].iter().filter(|(to, _)| circle.contains(*to)) {
                    let some: Vec<&str> = paths.iter().take(4).map(String::as_str).collect();
                    wrong.push(format!("    {} uses {} ({})", name(from), name(to), some.join(", ")));
                }
            }
        }
    }
    wrong.extend(
        permitted.iter().map(|(package, names)| format!("{package}: {names:?} is no circle: remove it from the list")),
    );
    assert!(packages > 20 && seen > 300, "{packages} crates with {seen} modules");
    assert!(wrong.is_empty(), "import circles:\n{}", wrong.join("\n"));
}

/// The root files of all crates, by the crates' folders.
fn roots() -> Vec<(String, PathBuf)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut roots = Vec::new();
    for entry in std::fs::read_dir(crates).expect("a folder of crates") {
        let folder = entry.expect("an entry").path();
        let package = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let places = ["src/lib.rs", "src/main.rs"].map(|root| folder.join(root));
        roots.extend(places.into_iter().filter(|root| root.exists()).map(|root| (package.clone(), root)));
    }
    roots.sort();
    roots
}

/// A module's path as a person writes it.
fn name(path: &[String]) -> String {
    if path.is_empty() { "crate".into() } else { path.join("::") }
}

/// The circles of a crate whose files are given.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let read = |path: &Path| {
        let found = files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| (*text).to_owned())
    };
    let graph = graph::graph(&source::modules(Path::new("src/lib.rs"), &read));
    graph::circles(&graph).iter().map(|circle| Vec::from_iter(circle.iter().map(|path| name(path))).join(" ")).collect()
}

#[test]
fn circles_are_found_however_they_are_written() {
    for (what, a, b) in [
        ("imports", "use crate::b::B; pub struct A(B);", "use super::a::A; pub struct B(A);"),
        ("groups", "use crate::{b::{self, B as C}}; pub struct A(C);", "use super::{a::A}; pub struct B(A);"),
        ("inline paths", "pub struct A(crate::b::B);", "pub struct B; fn f() -> super::a::A { todo!() }"),
        ("an imported module", "use crate::b; pub struct A(b::B);", "pub struct B; fn f(_: crate::a::A) {}"),
        ("a re-export", "use crate::B; pub struct A(B);", "use crate::{A}; pub struct B(A);"),
        ("a glob", "use super::*; pub struct A(B);", "pub struct B; impl From<crate::a::A> for B {}"),
        ("an attribute", "#[with = crate::b::make] pub struct A;", "pub struct B; pub fn make(_: super::A) {}"),
        ("no name", "pub trait A {} use crate::b::B as _;", "pub trait B: crate::A {}"),
        ("a function's import", "pub struct A; fn f() { use crate::b::B; B::f() }", "pub struct B; type T = super::A;"),
    ] {
        let root = "pub mod a; mod b; pub use a::A; pub use self::b::B;";
        assert_eq!(circles_of(&[("src/lib.rs", root), ("src/a.rs", a), ("src/b.rs", b)]), ["a b"], "{what}");
    }
    let inner = "mod c { pub struct C; use super::super::b::B; } pub use c::C;";
    let files = [("src/lib.rs", "mod a; mod b;"), ("src/a/mod.rs", inner), ("src/b.rs", "pub struct B(crate::a::C);")];
    assert_eq!(circles_of(&files), ["a::c b"], "a module within a file");
}

#[test]
fn what_is_no_circle_is_not_taken_for_one() {
    let root = "mod a; mod b; pub use a::A; pub struct Own; fn f() -> b::B { b::B(Own) }";
    for (what, a, b) in [
        ("a parent's own type", "pub struct A(crate::Own);", "pub struct B(pub crate::Own);"),
        ("one way", "pub struct A(crate::b::B);", "pub struct B(pub super::Own);"),
        ("a test", "pub struct A(crate::b::B);", "pub struct B(pub u8); #[cfg(test)] mod tests { use crate::a::A; }"),
        ("a test's import", "pub struct A(crate::b::B);", "pub struct B(pub u8); #[cfg(test)] use crate::{a::A};"),
        (
            "comments",
            "pub struct A(crate::b::B);",
            "/* /* */ use crate::a::A; */ pub struct B(pub u8); // use crate::A;",
        ),
        ("strings", "pub struct A(crate::b::B);", r###"pub struct B(pub u8); const S: &str = r#"" crate::a::A"#;"###),
        (
            "characters",
            "pub struct A(crate::b::B);",
            "pub struct B(pub char); const Q: char = '\"'; const R: u8 = b'\\'';",
        ),
        ("another crate", "use b::B; pub struct A(crate::b::B);", "use a::Z; pub struct B(Z);"),
    ] {
        let files = [("src/lib.rs", root), ("src/a.rs", a), ("src/b.rs", b)];
        assert_eq!(circles_of(&files), [""; 0], "{what}");
    }
}
