//! Checks `docs/internals/faults.md`: every row is there, and names tests that exist or says why there are none.
//! `UPDATE_EXPECT=1` writes the figures of the last run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace;

const ROWS: u32 = 57;
const ABSENT: [&str; 2] = ["not yet: ", "not now: "];

/// A row of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    number: u32,
    fault: String,
    /// The names of its tests, or why there are none.
    held_by: String,
    figure: String,
}

fn root() -> &'static Path {
    workspace()
}

fn page() -> String {
    fs::read_to_string(root().join("docs/internals/faults.md")).expect("the page is there")
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line
        .strip_prefix("| ")?
        .trim_end_matches('|')
        .split(" | ")
        .collect();
    let [number, fault, held_by, figure] = cells.as_slice() else {
        return None;
    };
    Some(Row {
        number: number.parse().ok()?,
        fault: (*fault).to_owned(),
        held_by: (*held_by).to_owned(),
        figure: figure.trim().to_owned(),
    })
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder)
        .expect("the folder is readable")
        .flatten()
    {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir()
            && !["target", "node_modules", "venv"]
                .iter()
                .any(|skip| name == *skip)
        {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of all tests.
fn tests() -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["broker-gen", "crates", "src", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    let mut found = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("sources are UTF-8");
        let mut is_test = false;
        for line in text.lines().map(str::trim_start) {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let name = line
                .split_once("fn ")
                .and_then(|(_, rest)| rest.split_once('('));
            if let Some((name, _)) = name.filter(|_| is_test) {
                found.insert(name.to_owned());
                is_test = false;
            }
        }
    }
    found
}

/// The tests that a row names, or `None` if it says why there are none.
fn tests_of(row: &Row) -> Option<Vec<&str>> {
    if ABSENT.iter().any(|absent| row.held_by.starts_with(absent)) {
        return None;
    }
    let names = row.held_by.split("<br>");
    Some(names.map(|name| name.trim_matches('`')).collect())
}

/// The figures of the tests of a row in their last run here.
fn measured(number: u32) -> Option<String> {
    let test = std::env::current_exe().ok()?;
    let folder = test.parent()?.parent()?.join("fault-figures");
    let mark = format!("F-{number:02}");
    let mut figures: Vec<(String, String)> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let own = name == mark || name.starts_with(&format!("{mark}-"));
            let text = own.then(|| fs::read_to_string(entry.path()).ok())??;
            Some((name, text.trim().to_owned()))
        })
        .collect();
    figures.sort();
    let texts: Vec<String> = figures.into_iter().map(|(_, text)| text).collect();
    (!texts.is_empty()).then(|| texts.join("<br>"))
}

fn update(page: &str) -> String {
    let lines = page.lines().map(|line| {
        let Some(row) = row(line) else {
            return line.to_owned();
        };
        let figure = measured(row.number).unwrap_or(row.figure);
        format!(
            "| {:02} | {} | {} | {figure} |",
            row.number, row.fault, row.held_by
        )
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn faults_page_names_tests_that_exist_or_a_reason() {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let updated = update(&page());
        fs::write(root().join("docs/internals/faults.md"), updated)
            .expect("the page can be written");
    }
    let tests = tests();
    let page = page();
    let rows: Vec<Row> = page.lines().filter_map(row).collect();
    let numbers: Vec<u32> = rows.iter().map(|row| row.number).collect();
    assert_eq!(
        numbers,
        (1..=ROWS).collect::<Vec<_>>(),
        "every row once, in order"
    );
    let mut problems = Vec::new();
    for row in &rows {
        let mut named = BTreeSet::new();
        for name in tests_of(row).into_iter().flatten() {
            if !named.insert(name) {
                problems.push(format!("row {}: `{name}` is named twice", row.number));
            }
            if !tests.contains(name) {
                problems.push(format!(
                    "row {} names the test `{name}`, which does not exist",
                    row.number
                ));
            }
        }
        if row.fault.is_empty() || row.figure.is_empty() {
            problems.push(format!("row {}: a cell is empty", row.number));
        }
    }
    assert!(
        problems.is_empty(),
        "docs/internals/faults.md: {problems:#?}"
    );
}

#[test]
fn fault_row_is_parsed_into_tests_or_a_reason() {
    let line = "| 06 | Dies | `server_dies_x`<br>`server_dies_y` | 3 ms |";
    let named = row(line).expect("a row");
    assert_eq!((named.number, named.figure.as_str()), (6, "3 ms"));
    assert_eq!(
        tests_of(&named),
        Some(vec!["server_dies_x", "server_dies_y"])
    );
    let absent = row("| 07 | Dies | not yet: no server | - |").expect("a row");
    assert_eq!(tests_of(&absent), None);
}
