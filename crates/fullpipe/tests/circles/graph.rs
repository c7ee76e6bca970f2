//! Which module uses which, and circles among them.

use crate::source::{Module, Modules};
use std::collections::{BTreeMap, BTreeSet};

type Path = Vec<String>;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Module(Path),
    /// Something that this module defines.
    ItemOf(Path),
}

/// The modules that each module uses, and by which of its paths.
pub(crate) type Graph = BTreeMap<Path, BTreeMap<Path, BTreeSet<String>>>;

/// Every use, but for those between a module and one that contains it.
pub(crate) fn graph(modules: &Modules) -> Graph {
    let mut graph = Graph::new();
    for (path, module) in modules {
        let imports = module.imports.values().flatten().chain(&module.unnamed).chain(&module.paths);
        let used = graph.entry(path.clone()).or_default();
        for named in imports {
            // An imported module by itself is a name for what is used of it.
            if let Some(Target::ItemOf(other)) = resolve(modules, path, named, &mut Vec::new())
                && !other.starts_with(path)
                && !path.starts_with(&other)
            {
                used.entry(other).or_default().insert(named.join("::"));
            }
        }
    }
    graph
}

/// Where a path, as written in the module `from`, leads in this crate; `None` if it leads out of it.
fn resolve(modules: &Modules, from: &Path, path: &[String], seen: &mut Vec<(Path, String)>) -> Option<Target> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => descend(modules, Path::new(), rest, seen),
        "self" => descend(modules, from.clone(), rest, seen),
        "super" => {
            let (mut at, mut rest) = (from.split_last()?.1, rest);
            while let Some((_, after)) = rest.split_first().filter(|(next, _)| *next == "super") {
                (at, rest) = (at.split_last()?.1, after);
            }
            descend(modules, at.to_vec(), rest, seen)
        }
        name => {
            let found = look_up(modules, from, name, seen)?;
            match found {
                Target::Module(module) => descend(modules, module, rest, seen),
                item => Some(item),
            }
        }
    }
}

/// Goes on from a module.
fn descend(modules: &Modules, at: Path, path: &[String], seen: &mut Vec<(Path, String)>) -> Option<Target> {
    let Some((name, rest)) = path.split_first() else { return Some(Target::Module(at)) };
    match look_up(modules, &at, name, seen) {
        Some(Target::Module(module)) => descend(modules, module, rest, seen),
        Some(item) => Some(item),
        // What it has from another crate, or from a macro.
        None => Some(Target::ItemOf(at)),
    }
}

/// What a name means in a module: a child, what it defines, what it imports.
fn look_up(modules: &Modules, at: &Path, name: &str, seen: &mut Vec<(Path, String)>) -> Option<Target> {
    let module: &Module = modules.get(at)?;
    let asked = (at.clone(), name.to_owned());
    if seen.contains(&asked) {
        return None;
    }
    seen.push(asked);
    let imported = |seen: &mut _| {
        let paths = module.imports.get(name)?;
        // One name may be a module and a function, or a type and a macro: the item is what is used.
        let found: Vec<Target> = paths.iter().filter_map(|path| resolve(modules, at, path, seen)).collect();
        found.iter().find(|target| matches!(target, Target::ItemOf(_))).or(found.first()).cloned()
    };
    let globbed = |seen: &mut _| {
        module.globs.iter().find_map(|path| match resolve(modules, at, path, seen)? {
            Target::Module(from) => look_up(modules, &from, name, seen),
            // Variants of an enumeration.
            Target::ItemOf(_) => None,
        })
    };
    let found = if module.children.contains(name) {
        Some(Target::Module([&at[..], &[name.to_owned()]].concat()))
    } else if module.items.contains(name) {
        Some(Target::ItemOf(at.clone()))
    } else {
        imported(seen).or_else(|| globbed(seen))
    };
    seen.pop();
    found
}

/// Sets of modules each of which reaches every other of its set.
pub(crate) fn circles(graph: &Graph) -> Vec<BTreeSet<Path>> {
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = graph.keys().map(|path| (path, reach(graph, path))).collect();
    let circle = |path: &Path| -> BTreeSet<Path> {
        reached[path].iter().filter(|other| reached[**other].contains(path)).map(|other| (*other).clone()).collect()
    };
    let circles: BTreeSet<BTreeSet<Path>> = graph.keys().map(circle).collect();
    circles.into_iter().filter(|circle| circle.len() > 1).collect()
}

fn reach<'a>(graph: &'a Graph, from: &Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Path> = graph[from].keys().collect();
    while let Some(path) = next.pop() {
        if reached.insert(path) {
            next.extend(graph.get(path).into_iter().flat_map(BTreeMap::keys));
        }
    }
    reached
}
