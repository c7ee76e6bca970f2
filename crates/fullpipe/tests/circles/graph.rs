//! The graph of uses between the modules of a crate, and its cycles.

use crate::source::{Module, Modules};
use std::collections::{BTreeMap, BTreeSet};

type Path = Vec<String>;

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Module(Path),
    /// An item that this module defines.
    ItemOf(Path),
}

/// For each module, the modules that it uses and the paths of each use.
pub(crate) type Graph = BTreeMap<Path, BTreeMap<Path, BTreeSet<String>>>;

/// All uses, except those between a module and an ancestor.
pub(crate) fn graph(modules: &Modules) -> Graph {
    let mut graph = Graph::new();
    for (path, module) in modules {
        let imports = module.imports.values().flatten().chain(&module.unnamed).chain(&module.paths);
        let used = graph.entry(path.clone()).or_default();
        for named in imports {
            // The import of a module does not count as a use; the paths that begin with its name do.
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

/// Resolves a path, as written in the module `from`; `None` if it refers to another crate.
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

/// Resolves a path relative to a module.
fn descend(modules: &Modules, at: Path, path: &[String], seen: &mut Vec<(Path, String)>) -> Option<Target> {
    let Some((name, rest)) = path.split_first() else { return Some(Target::Module(at)) };
    match look_up(modules, &at, name, seen) {
        Some(Target::Module(module)) => descend(modules, module, rest, seen),
        Some(item) => Some(item),
        // The name comes from another crate or from a macro.
        None => Some(Target::ItemOf(at)),
    }
}

/// Looks up a name in a module: a child module, an item that it defines, or an import.
fn look_up(modules: &Modules, at: &Path, name: &str, seen: &mut Vec<(Path, String)>) -> Option<Target> {
    let module: &Module = modules.get(at)?;
    let asked = (at.clone(), name.to_owned());
    if seen.contains(&asked) {
        return None;
    }
    seen.push(asked);
    let imported = |seen: &mut _| {
        let paths = module.imports.get(name)?;
        // A name can be both a module and a function, or a type and a macro; prefer the item.
        let found: Vec<Target> = paths.iter().filter_map(|path| resolve(modules, at, path, seen)).collect();
        found.iter().find(|target| matches!(target, Target::ItemOf(_))).or(found.first()).cloned()
    };
    let globbed = |seen: &mut _| {
        module.globs.iter().find_map(|path| match resolve(modules, at, path, seen)? {
            Target::Module(from) => look_up(modules, &from, name, seen),
            // The glob imports the variants of an enumeration.
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

/// The cycles: sets of modules in which each module reaches every other (strongly connected components).
pub(crate) fn cycles(graph: &Graph) -> Vec<BTreeSet<Path>> {
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = graph.keys().map(|path| (path, reach(graph, path))).collect();
    let component = |path: &Path| -> BTreeSet<Path> {
        reached[path].iter().filter(|other| reached[**other].contains(path)).map(|other| (*other).clone()).collect()
    };
    let components: BTreeSet<BTreeSet<Path>> = graph.keys().map(component).collect();
    components.into_iter().filter(|component| component.len() > 1).collect()
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
