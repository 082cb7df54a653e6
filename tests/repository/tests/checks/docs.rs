//! Checks the prose against the code: invariants name tests that exist, links lead somewhere, and no
//! page names a machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace;

/// The pages beside `docs`.
const PAGES: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
];

fn root() -> &'static Path {
    workspace()
}

fn below(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut open = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(&folder)
            .expect("the folder is readable")
            .flatten()
            .map(|entry| entry.path())
        {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir()
                && !matches!(name.as_str(), "target" | "node_modules" | "venv")
                && !name.starts_with(".git")
            {
                open.push(path);
            } else if path.extension().is_some_and(|known| known == extension) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn invariants_name_tests_that_exist() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page exists");
    let (_, invariants) = page
        .split_once("## Invariants")
        .expect("the section exists");
    let named: BTreeSet<&str> = invariants
        .lines()
        .filter_map(|line| line.trim_end_matches(" |").rsplit_once("| `"))
        .map(|(_, name)| name.trim_end_matches('`'))
        .collect();
    assert!(named.len() >= 10, "the table was read: {named:?}");
    let sources: String = ["crates", "broker-gen", "src", "tests"]
        .iter()
        .flat_map(|folder| below(folder, "rs"))
        .map(|path| fs::read_to_string(path).expect("sources are UTF-8"))
        .collect();
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !sources.contains(&format!("fn {name}(")))
        .collect();
    assert!(missing.is_empty(), "tests that do not exist: {missing:?}");
}

#[test]
fn links_between_pages_are_valid() {
    let mut broken = Vec::new();
    for page in below("docs", "md")
        .into_iter()
        .chain(PAGES.map(|name| root().join(name)))
    {
        let text = fs::read_to_string(&page).expect("the page is UTF-8");
        // Every second part is a block of code, in which `](` is not a link.
        let prose: String = text.split("\n```").step_by(2).collect();
        for target in prose
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = target.split('#').next().unwrap_or_default();
            if !file.starts_with("http") && !page.with_file_name(file).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn readme_is_shorter_than_100_lines() {
    let lines = fs::read_to_string(root().join("README.md"))
        .expect("the page exists")
        .lines()
        .count();
    assert!(lines < 100, "README.md has {lines} lines");
}

#[test]
fn limits_page_has_the_values_of_the_code() {
    let page = fs::read_to_string(root().join("docs/limits.md")).expect("the page exists");
    let (mut held, mut wrong) = (0, Vec::new());
    for line in page.lines().filter(|line| line.ends_with("` |")) {
        // The last cell ends with the definition and its file: `TEXT` in `FILE`.
        let mut parts = line.trim_end_matches("` |").rsplit('`');
        let (file, between, text) = (parts.next(), parts.next(), parts.next());
        let (Some(file), Some(" in "), Some(text)) = (file, between, text) else {
            wrong.push(format!("no place: {line}"));
            continue;
        };
        held += 1;
        // The columns of a table of the code are separated by tabs.
        let code = fs::read_to_string(root().join(file)).unwrap_or_default();
        if !code.replace('\t', " ").contains(text) {
            wrong.push(format!("`{text}` is not in {file}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(held >= 40, "the tables were read: {held}");
}
