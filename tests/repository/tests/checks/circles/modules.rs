//! The modules of a crate as its files declare them, each with its imports. Modules for tests are left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::rust_text::{closing, masked, split_at_depth_0, without_tests};

/// A module of a crate. Its place in the list of modules is its number; the root is the first.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) file: PathBuf,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    pub(super) imports: Vec<Import>,
    /// Paths in the code that begin with `crate`, `super` or `self`.
    pub(super) paths: Vec<Vec<String>>,
    /// The code without comments, texts and modules within it.
    pub(super) code: String,
}

/// A path of a `use` line.
#[derive(Debug, PartialEq)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name that it has in the module; `None` for all names of the path.
    pub(super) name: Option<String>,
}

/// Reads the modules of a crate, beginning with its root. `read` returns the text of a file.
pub(super) fn read(root: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Vec<Module> {
    let mut modules = Vec::new();
    if let Some(text) = read(root) {
        let folder = root.parent().unwrap_or(Path::new(""));
        let code = without_tests(&masked(&text));
        add(&mut modules, root, folder, code, None, read);
    }
    modules
}

/// Adds a module and the modules that it declares, whose files are in `folder`.
fn add(
    modules: &mut Vec<Module>,
    file: &Path,
    folder: &Path,
    mut code: String,
    parent: Option<usize>,
    read: &dyn Fn(&Path) -> Option<String>,
) -> usize {
    let number = modules.len();
    modules.push(Module {
        file: file.to_owned(),
        parent,
        children: BTreeMap::new(),
        imports: Vec::new(),
        paths: Vec::new(),
        code: String::new(),
    });
    let mut children = Vec::new();
    for at in words(&code, "mod ") {
        let rest = &code[at + 4..];
        let Some(end) = rest.find([';', '{']) else {
            continue;
        };
        let name = plain(&rest[..end]);
        match rest[end..].starts_with('{') {
            true => {
                let open = at + 4 + end;
                children.push((name, Some(open + 1..closing(&code, open))));
            }
            false => children.push((name, None)),
        }
    }
    for (name, body) in children {
        let below = folder.join(&name);
        let child = if let Some(body) = body {
            let inner = code[body.clone()].to_owned();
            code.replace_range(body.clone(), &" ".repeat(body.len()));
            add(modules, file, &below, inner, Some(number), read)
        } else {
            let files = [folder.join(format!("{name}.rs")), below.join("mod.rs")];
            let Some((file, text)) = files.iter().find_map(|it| Some((it, read(it)?))) else {
                continue;
            };
            let inner = without_tests(&masked(&text));
            add(modules, file, &below, inner, Some(number), read)
        };
        modules[number].children.insert(name, child);
    }
    let mut imports = Vec::new();
    for at in words(&code, "use ") {
        let tree = &code[at + 4..];
        let end = tree.find(';').unwrap_or(tree.len());
        add_imports(&tree[..end], &[], &mut imports);
    }
    let starts = ["crate::", "super::", "self::"];
    let starts = starts.iter().flat_map(|start| words(&code, start));
    modules[number].paths = starts.map(|at| path_at(&code[at..])).collect();
    modules[number].imports = imports;
    modules[number].code = code;
    number
}

/// Returns the path at the beginning of the code.
fn path_at(code: &str) -> Vec<String> {
    let is_in_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '#');
    let end = code.find(|c| !is_in_path(c)).unwrap_or(code.len());
    let parts = code[..end].split("::").map(plain);
    parts.filter(|part| !part.is_empty()).collect()
}

/// Returns the places where a word begins.
fn words(code: &str, word: &str) -> Vec<usize> {
    let begins = |at: &usize| {
        let before = code[..*at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    let places = code.match_indices(word).map(|(at, _)| at);
    places.filter(begins).collect()
}

/// Returns a name without the mark of a raw identifier.
fn plain(name: &str) -> String {
    let name = name.trim();
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}

/// Adds the paths of a tree of imports such as `a::{b, c::*}`.
pub(super) fn add_imports(tree: &str, prefix: &[String], imports: &mut Vec<Import>) {
    let (path, group) = match tree.find('{') {
        Some(open) => (&tree[..open], Some(&tree[open + 1..closing(tree, open)])),
        None => (tree, None),
    };
    let (path, alias) = match path.split_once(" as ") {
        Some((path, alias)) => (path, Some(plain(alias))),
        None => (path, None),
    };
    let mut full = prefix.to_vec();
    let parts = path.split("::").map(plain);
    full.extend(parts.filter(|part| !part.is_empty()));
    if let Some(group) = group {
        for inner in split_at_depth_0(group, ',') {
            add_imports(inner, &full, imports);
        }
        return;
    }
    let last = full.last().cloned();
    if full.len() > 1 && matches!(last.as_deref(), Some("self" | "*")) {
        full.pop();
    }
    let name = match last.as_deref() {
        Some("*") => None,
        Some("self") => alias.or_else(|| full.last().cloned()),
        _ => alias.or(last),
    };
    imports.push(Import { path: full, name });
}
