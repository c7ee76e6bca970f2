//! Tests that the modules of a crate do not use each other in cycles.
//!
//! The graph is built from the sources: a module uses another if one of its paths (`use` or inline; `crate::`,
//! `super::`, `self::`, a child's or an imported name) refers to an item that the other module defines. Three rules
//! apply:
//!
//! * Uses between a module and an ancestor do not count: a parent assembles its children, and children may use items of
//!   their ancestors.
//! * Re-exports are followed. A use of `crate::Name` counts as a use of the module that defines `Name`. Two children
//!   that use each other through their parent therefore form a cycle.
//! * Unit tests are excluded.

mod graph;
mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Permitted cycles: the crate, the modules and the reason.
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
        "`Network` is one state machine; each file has the methods and the state of one subject",
    ),
    (
        "quic",
        &["connection", "input", "migration", "output"],
        "`Connection` is one state machine; each file has the methods of one subject",
    ),
    (
        "tcp",
        &["acknowledge", "path_mtu", "recovery", "scoreboard", "sender", "undo"],
        "`Sender` is one state machine; each file has the methods of one subject",
    ),
    (
        "scenario",
        &[
            "language::access",
            "language::bdp",
            "language::fields",
            "language::identity",
            "language::measurement",
            "language::nat",
            "language::network",
            "language::programs",
            "language::reach",
            "language::real_time",
            "language::topology",
            "language::traffic",
            "language::tunnels",
        ],
        "`language` is one reader of scenario files; each file checks and reads one table, which refers to others",
    ),
];

#[test]
fn the_modules_of_a_crate_have_no_import_cycles() {
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
        for cycle in graph::cycles(&graph) {
            let names: BTreeSet<String> = cycle.iter().map(|path| name(path)).collect();
            if let Some(at) = permitted.iter().position(|(of, permitted)| *of == package && *permitted == names) {
                permitted.remove(at);
                continue;
            }
            wrong.push(format!("{package}: {}", Vec::from_iter(names).join(", ")));
            for from in &cycle {
                for (to, paths) in graph[from].iter().filter(|(to, _)| cycle.contains(*to)) {
                    let some: Vec<&str> = paths.iter().take(4).map(String::as_str).collect();
                    wrong.push(format!("    {} uses {} ({})", name(from), name(to), some.join(", ")));
                }
            }
        }
    }
    wrong.extend(
        permitted.iter().map(|(package, names)| format!("{package}: {names:?} is no cycle: remove it from PERMITTED")),
    );
    assert!(packages > 20 && seen > 300, "{packages} crates with {seen} modules");
    assert!(wrong.is_empty(), "import cycles:\n{}", wrong.join("\n"));
}

/// The root files of all crates, with the folder names of the crates.
fn roots() -> Vec<(String, PathBuf)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut roots = Vec::new();
    for entry in std::fs::read_dir(crates).expect("a folder of crates") {
        let folder = entry.expect("the folder is readable").path();
        let package = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let places = ["src/lib.rs", "src/main.rs"].map(|root| folder.join(root));
        roots.extend(places.into_iter().filter(|root| root.exists()).map(|root| (package.clone(), root)));
    }
    roots.sort();
    roots
}

/// The path of a module as text; the root is `crate`.
fn name(path: &[String]) -> String {
    if path.is_empty() { "crate".into() } else { path.join("::") }
}

/// The cycles of a crate with these files.
fn cycles_of(files: &[(&str, &str)]) -> Vec<String> {
    let read = |path: &Path| {
        let found = files.iter().find(|(name, _)| Path::new(name) == path);
        found.map(|(_, text)| (*text).to_owned())
    };
    let graph = graph::graph(&source::modules(Path::new("src/lib.rs"), &read));
    graph::cycles(&graph).iter().map(|cycle| Vec::from_iter(cycle.iter().map(|path| name(path))).join(" ")).collect()
}

#[test]
fn cycles_are_found_for_every_form_of_import_and_path() {
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
        assert_eq!(cycles_of(&[("src/lib.rs", root), ("src/a.rs", a), ("src/b.rs", b)]), ["a b"], "{what}");
    }
    let inner = "mod c { pub struct C; use super::super::b::B; } pub use c::C;";
    let files = [("src/lib.rs", "mod a; mod b;"), ("src/a/mod.rs", inner), ("src/b.rs", "pub struct B(crate::a::C);")];
    assert_eq!(cycles_of(&files), ["a::c b"], "a module within a file");
}

#[test]
fn uses_without_a_cycle_are_not_reported() {
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
        assert_eq!(cycles_of(&files), [""; 0], "{what}");
    }
}
