//! Arrows between the files of a crate: which file imports names that another file defines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::modules::Module;

/// For each file the files that it imports, with the names.
pub(super) type Arrows<File> = BTreeMap<File, BTreeMap<File, BTreeSet<String>>>;

/// Maximum number of imports through which a name is followed.
const MAX_STEPS: usize = 16;

/// Returns the arrows of the imports. A file and the modules above it have none between them.
pub(super) fn between(modules: &[Module]) -> Arrows<PathBuf> {
    let mut arrows = Arrows::new();
    for (number, module) in modules.iter().enumerate() {
        let imports = module.imports.iter().map(|import| &import.path);
        for path in imports.chain(&module.paths) {
            let Some(target) = resolve(modules, number, path, MAX_STEPS) else {
                continue;
            };
            let other = &modules[target];
            let is_family = is_above(modules, target, number) || is_above(modules, number, target);
            if other.file != module.file && !is_family {
                let targets: &mut BTreeMap<_, BTreeSet<_>> =
                    arrows.entry(module.file.clone()).or_default();
                let names = targets.entry(other.file.clone()).or_default();
                names.extend(path.last().cloned());
            }
        }
    }
    arrows
}

/// Whether a module is above another one.
fn is_above(modules: &[Module], upper: usize, lower: usize) -> bool {
    let mut above = modules[lower].parent;
    while let Some(number) = above {
        if number == upper {
            return true;
        }
        above = modules[number].parent;
    }
    false
}

/// Returns the module that a path names, or that defines the item that it names; `None` if it is in another crate.
fn resolve(modules: &[Module], from: usize, path: &[String], steps: usize) -> Option<usize> {
    let steps = steps.checked_sub(1)?;
    let (first, rest) = path.split_first()?;
    let start = match first.as_str() {
        "crate" => Some(0),
        "self" => Some(from),
        "super" => modules[from].parent,
        name => modules[from].children.get(name).copied(),
    };
    let Some(mut at) = start else {
        return imported(modules, from, first, path, steps);
    };
    for name in rest {
        at = match (name.as_str(), modules[at].children.get(name)) {
            ("super", _) => modules[at].parent?,
            (_, Some(child)) => *child,
            // An item: what follows in the path is within it, unless it is a module under another name.
            _ => return Some(imported(modules, at, name, path, steps).unwrap_or(at)),
        };
    }
    Some(at)
}

/// Returns the module from which a module imports a name; `None` if the name is not imported or from another crate.
fn imported(
    modules: &[Module],
    at: usize,
    name: &str,
    asked: &[String],
    steps: usize,
) -> Option<usize> {
    let module = &modules[at];
    let named = module
        .imports
        .iter()
        .find(|import| import.name.as_deref() == Some(name) && import.path != asked);
    if let Some(import) = named {
        return resolve(modules, at, &import.path, steps);
    }
    if defines(&module.code, name) {
        return Some(at);
    }
    let globs = module.imports.iter().filter(|import| import.name.is_none());
    let mut origins = globs.filter_map(|import| resolve(modules, at, &import.path, steps));
    origins.find_map(|origin| match defines(&modules[origin].code, name) {
        true => Some(origin),
        false if origin == at => None,
        false => imported(modules, origin, name, asked, steps.checked_sub(1)?),
    })
}

/// Whether the code defines an item of this name.
fn defines(code: &str, name: &str) -> bool {
    const KINDS: [&str; 8] = [
        "fn",
        "struct",
        "enum",
        "trait",
        "type",
        "const",
        "static",
        "macro_rules!",
    ];
    KINDS.iter().any(|kind| {
        let item = format!("{kind} {name}");
        code.match_indices(&item).any(|(at, _)| {
            let after = code[at + item.len()..].chars().next();
            !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
    })
}
