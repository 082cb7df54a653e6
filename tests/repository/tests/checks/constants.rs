//! Checks that each constant of time and size is in the table of limits, or in the list of constants with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::rust_text::{code_of, masked, without_tests};
use crate::tidy::{is_test, sources};
use crate::workspace;

/// The types of constants that set a time, a size or a number of something.
const TYPES: [&str; 14] = [
    "Duration", "usize", "isize", "u8", "u16", "u32", "u64", "u128", "i16", "i32", "i64", "i128",
    "f32", "f64",
];

/// A constant: its file and its name.
type Constant = (String, String);

/// Returns the names of the constants in a piece of code, and of the members that a literal duration sets.
fn names(code: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("const ") {
        let rest = &code[at + "const ".len()..];
        let statement = &rest[..rest.find(';').unwrap_or(rest.len())];
        let Some((name, rest)) = statement.split_once(": ") else {
            continue;
        };
        let Some((kind, _)) = rest.split_once(" =") else {
            continue;
        };
        if name.chars().all(is_part) && TYPES.contains(&kind) {
            names.insert(name.to_owned());
        }
    }
    for (at, text) in code.match_indices("Duration::from_") {
        let rest = &code[at + text.len()..];
        let is_literal = rest
            .split_once('(')
            .is_some_and(|(_, value)| value.starts_with(|c: char| c.is_ascii_digit()));
        let before = code[..at].trim_end().trim_end_matches("std::time::");
        let statement = &before[before.rfind([';', '{', '}', ',']).map_or(0, |at| at + 1)..];
        if !is_literal || statement.contains("const ") {
            continue;
        }
        let name = statement.trim().trim_end_matches(':');
        names.insert(name.to_owned());
    }
    names
}

fn is_product(path: &Path) -> bool {
    let first = path.components().next();
    let first = first.map(|part| part.as_os_str().to_string_lossy().into_owned());
    let is_package = first.is_some_and(|name| name != "tests" && name != "benches");
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_test = is_test(path) || stem.ends_with("_tests");
    is_package
        && !is_test
        && !path
            .iter()
            .any(|part| part == "examples" || part == "benches")
}

fn in_the_code() -> BTreeSet<Constant> {
    let mut constants = BTreeSet::new();
    for (path, text) in sources() {
        if is_product(&path) {
            let code = code_of(&text).split("#[cfg(all(test,").next();
            let code = without_tests(&masked(code.unwrap_or_default()));
            let file = path.display().to_string();
            constants.extend(names(&code).into_iter().map(|name| (file.clone(), name)));
        }
    }
    constants
}

/// Returns the constants of the rows of the table: a row ends with `NAME: TYPE = VALUE` in `FILE`.
fn in_the_table() -> BTreeSet<Constant> {
    let page = fs::read_to_string(workspace().join("docs/limits.md")).expect("the page exists");
    let mut constants = BTreeSet::new();
    for line in page.lines() {
        let mut parts = line.trim_end_matches("` |").rsplit('`');
        if let (Some(file), Some(" in "), Some(text)) = (parts.next(), parts.next(), parts.next())
            && let Some((name, _)) = text.split_once(": ")
        {
            constants.insert((file.to_owned(), name.to_owned()));
        }
    }
    constants
}

/// Returns the constants of the list, and how often each is in it: a line is `FILE`: `NAME`, `NAME`.
fn in_the_list() -> BTreeMap<Constant, usize> {
    let page = workspace().join("docs/internals/constants.md");
    let page = fs::read_to_string(page).expect("the page exists");
    let mut constants = BTreeMap::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("- `")) {
        let (file, names) = line.split_once("`: ").expect("a file and its constants");
        for name in names.split(", ") {
            let constant = (file.to_owned(), name.trim_matches('`').to_owned());
            *constants.entry(constant).or_default() += 1;
        }
    }
    constants
}

#[test]
fn each_constant_has_a_row_or_a_reason() {
    let (code, table, list) = (in_the_code(), in_the_table(), in_the_list());
    assert!(code.len() > 500, "the code was read: {}", code.len());
    let without: Vec<_> = code
        .iter()
        .filter(|constant| !table.contains(constant) && !list.contains_key(constant))
        .collect();
    assert!(
        without.is_empty(),
        "docs/limits.md has no row and docs/internals/constants.md no reason for: {without:#?}"
    );
    let twice: Vec<_> = list
        .iter()
        .filter(|(constant, count)| **count > 1 || table.contains(constant))
        .collect();
    assert!(twice.is_empty(), "listed twice: {twice:#?}");
    let gone: Vec<_> = list
        .keys()
        .filter(|constant| !code.contains(constant))
        .collect();
    assert!(gone.is_empty(), "not in the code: {gone:#?}");
}

#[test]
fn constants_are_found_in_code() {
    let code = r#"
        pub(crate) const MAX_BYTES: usize = 4 << 20;
        const PAUSE: Duration =
            Duration::from_secs(1);
        const NAME: &str = "x: usize = 1";
        const fn size() -> usize { 4 }
        let settings = Settings { grace: Duration::from_secs(2), other: Duration::from_secs(seconds) };
        sleep(Duration::from_millis(5));
    "#;
    let expected = ["MAX_BYTES", "PAUSE", "grace", "sleep("].map(str::to_owned);
    assert_eq!(names(&masked(code)), BTreeSet::from(expected));
}
