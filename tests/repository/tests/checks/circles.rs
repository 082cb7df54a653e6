//! Circles of files within a package: files that import each other in a loop. `circles.tsv` lists the circles that exist.
//! The list may only become shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::circles::arrows::Arrows;
use crate::workspace;

mod arrows;
mod modules;

/// Maximum number of circles in the workspace.
const MAX_CIRCLES: usize = 2;
/// Maximum number of files of a circle.
const MAX_FILES: usize = 3;

/// The package of a circle and its files, relative to the package.
type Circle = (String, BTreeSet<String>);

/// Returns the sets of files of which each imports each other, directly or through others.
fn circles(arrows: &Arrows<String>) -> Vec<BTreeSet<String>> {
    let reached = |file: &str| {
        let next = |file: &str| arrows.get(file).into_iter().flat_map(BTreeMap::keys);
        let mut found: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&String> = next(file).collect();
        while let Some(other) = open.pop() {
            if found.insert(other) {
                open.extend(next(other));
            }
        }
        found
    };
    let reached: BTreeMap<&str, _> = arrows
        .keys()
        .map(|file| (file.as_str(), reached(file)))
        .collect();
    let circles = reached.iter().filter_map(|(file, others)| {
        let returns = |other: &&&str| reached.get(**other).is_some_and(|it| it.contains(file));
        let circle: BTreeSet<String> = others
            .iter()
            .filter(returns)
            .map(|other| (*other).to_owned())
            .collect();
        // Each of its files finds the circle; the first one names it.
        (circle.first().map(String::as_str) == Some(*file)).then_some(circle)
    });
    circles.collect()
}

/// Returns the packages with product code, each with its folder.
fn packages() -> Vec<(String, PathBuf)> {
    let table = |file: PathBuf| -> toml::Table {
        let text = fs::read_to_string(file).expect("the manifest can be read");
        text.parse().expect("the manifest is TOML")
    };
    let root = table(workspace().join("Cargo.toml"));
    let members = root["workspace"]["members"].as_array().expect("a list");
    members
        .iter()
        .map(|member| member.as_str().expect("a text"))
        .filter(|member| !member.starts_with("tests/"))
        .map(|member| {
            let folder = workspace().join(member);
            let manifest = table(folder.join("Cargo.toml"));
            let name = manifest["package"]["name"].as_str().expect("a text");
            (name.to_owned(), folder)
        })
        .collect()
}

/// Reads the arrows between the files of a package, in its library and its programs.
fn arrows_in(folder: &Path) -> Arrows<String> {
    let mut roots = vec![folder.join("src/lib.rs"), folder.join("src/main.rs")];
    if let Ok(programs) = fs::read_dir(folder.join("src/bin")) {
        roots.extend(programs.flatten().map(|entry| entry.path()));
    }
    let name = |file: &Path| {
        let file = file.strip_prefix(folder).expect("below the package");
        file.to_string_lossy().into_owned()
    };
    let mut arrows = Arrows::new();
    for root in roots.iter().filter(|root| root.is_file()) {
        let modules = modules::read(root, &|file| fs::read_to_string(file).ok());
        for (from, targets) in arrows::between(&modules) {
            let targets = targets
                .into_iter()
                .map(|(file, names)| (name(&file), names));
            arrows
                .entry(name(&from))
                .or_insert_with(BTreeMap::new)
                .extend(targets);
        }
    }
    arrows
}

/// Writes the arrows within a circle, each with the names that it imports.
fn explained((package, files): &Circle, arrows: &Arrows<String>) -> String {
    let mut text = format!("{package}: {} files\n", files.len());
    for file in files {
        for (target, names) in &arrows[file] {
            if files.contains(target) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                writeln!(text, "  {file} imports from {target}: {}", names.join(", "))
                    .expect("a text takes each line");
            }
        }
    }
    text
}

/// Reads the list: a line for each circle, with the package and the files.
fn listed(text: &str) -> Vec<Circle> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (package, files) = line.split_once('\t').expect("a package and its files");
            (
                package.to_owned(),
                files.split(' ').map(str::to_owned).collect(),
            )
        })
        .collect()
}

#[test]
fn circles_of_files_are_listed_and_become_fewer() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("circles.tsv");
    let text = fs::read_to_string(&path).expect("the list can be read");
    let listed = listed(&text);
    let mut found = Vec::new();
    let mut problems = String::new();
    for (package, folder) in packages() {
        let arrows = arrows_in(&folder);
        for files in circles(&arrows) {
            let circle = (package.clone(), files);
            let is_within = |(name, files): &Circle| *name == package && circle.1.is_subset(files);
            if !listed.contains(&circle) {
                problems += match listed.iter().any(is_within) {
                    true => "smaller than in the list: ",
                    false => "not in the list: ",
                };
                problems += &explained(&circle, &arrows);
            }
            found.push(circle);
        }
    }
    for circle in listed.iter().filter(|circle| !found.contains(circle)) {
        problems += &format!("in the list, but not in the code: {circle:?}\n");
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() && !problems.contains("not in the list: ") {
        let head = text.lines().filter(|line| line.starts_with('#'));
        let rows = found.iter().map(|(package, files)| {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            format!("{package}\t{}", files.join(" "))
        });
        let lines: Vec<String> = head.map(str::to_owned).chain(rows).collect();
        fs::write(&path, lines.join("\n") + "\n").expect("the list can be written");
        return;
    }
    assert!(
        problems.is_empty(),
        "untie a new circle; `UPDATE_EXPECT=1` takes what is gone from {}\n{problems}",
        path.display()
    );
    assert!(found.len() <= MAX_CIRCLES, "{} circles", found.len());
    for (package, files) in &found {
        assert!(files.len() <= MAX_FILES, "{package}: {files:?}");
    }
}

#[test]
fn circle_of_three_files_is_found_through_a_reexport() {
    let files = [
        (
            "src/lib.rs",
            "mod a;\nmod b;\nmod c;\nmod list;\npub use c::C;",
        ),
        ("src/a.rs", "use super::b::{self, f};"),
        ("src/b.rs", "use crate::{C as Other, list};"),
        ("src/c.rs", "fn x() { use crate::a::*; }\npub struct C;"),
        ("src/list.rs", "use std::fmt;"),
    ];
    assert_eq!(found(&files), [["src/a.rs", "src/b.rs", "src/c.rs"]]);
}

#[test]
fn names_behind_a_glob_and_modules_in_folders_are_found() {
    let files = [
        ("src/lib.rs", "mod a;\nmod b;"),
        ("src/a/mod.rs", "mod inner;\npub use inner::*;"),
        ("src/a/inner.rs", "use crate::b;\npub fn f() {}"),
        ("src/b.rs", "use crate::a::f;"),
    ];
    assert_eq!(found(&files), [["src/a/inner.rs", "src/b.rs"]]);
}

#[test]
fn module_and_its_children_are_not_a_circle() {
    let files = [
        ("src/lib.rs", "mod a;\npub use a::A;"),
        ("src/a.rs", "mod child;\nuse child::f;\npub struct A;"),
        ("src/a/child.rs", "use super::A;\npub fn f() {}"),
    ];
    assert_eq!(found(&files), [[""; 0]; 0]);
}

#[test]
fn imports_of_tests_and_of_other_crates_are_not_arrows() {
    let files = [
        ("src/lib.rs", "mod a;\nmod b;"),
        ("src/a.rs", "use crate::b::B;\nuse a::B as Other;"),
        (
            "src/b.rs",
            "pub struct B;\n// use crate::a;\n#[cfg(test)]\nuse crate::a;\n#[cfg(test)]\nmod tests { use crate::a::A; }",
        ),
    ];
    assert_eq!(found(&files), [[""; 0]; 0]);
}

/// Returns the circles of a crate whose files have these texts.
fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let read = |path: &Path| {
        let file = files.iter().find(|(name, _)| Path::new(name) == path)?;
        Some(file.1.to_owned())
    };
    let modules = modules::read(Path::new("src/lib.rs"), &read);
    let name = |file: PathBuf| file.to_string_lossy().into_owned();
    let arrows = arrows::between(&modules)
        .into_iter()
        .map(|(from, targets)| {
            let targets = targets.into_iter().map(|(file, names)| (name(file), names));
            (name(from), targets.collect())
        });
    let circles = circles(&arrows.collect()).into_iter();
    circles.map(|circle| circle.into_iter().collect()).collect()
}
