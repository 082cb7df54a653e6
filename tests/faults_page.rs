//! Checks `docs/faults.md` against the tests: every row exists, names exactly its tests, or says why
//! there are none. `UPDATE_EXPECT=1` writes the names, and the figures of the last run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const ROWS: u32 = 55;
const ABSENT: [&str; 2] = ["not yet: ", "not now: "];

/// A row of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    number: u32,
    fault: String,
    held_by: String,
    figure: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join("docs/faults.md")).expect("the page is there")
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

/// The names of all tests that begin with a row, by row; `f_12_f_13_…` belongs to both.
fn tests() -> BTreeMap<u32, BTreeSet<String>> {
    let mut files = Vec::new();
    for folder in ["broker-gen", "crates", "src", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    let mut found: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("sources are UTF-8");
        let names = text.lines().filter_map(|line| {
            let (_, name) = line.trim_start().split_once("fn ")?;
            let name = name.split_once('(')?.0;
            name.starts_with("f_").then_some(name)
        });
        for name in names {
            for number in rows_of(name) {
                found.entry(number).or_default().insert(name.to_owned());
            }
        }
    }
    found
}

fn rows_of(name: &str) -> Vec<u32> {
    let mut rows = Vec::new();
    let mut rest = name;
    while let Some(begun) = rest.strip_prefix("f_") {
        let (number, after) = begun.split_once('_').unwrap_or((begun, ""));
        let Ok(number) = number.parse() else { break };
        rows.push(number);
        rest = after;
    }
    rows
}

fn held_by(names: &BTreeSet<String>) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join("<br>")
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

fn update(page: &str, tests: &BTreeMap<u32, BTreeSet<String>>) -> String {
    let lines = page.lines().map(|line| {
        let Some(row) = row(line) else {
            return line.to_owned();
        };
        let names = tests.get(&row.number);
        let held_by = names.map_or(row.held_by, held_by);
        let figure = measured(row.number).unwrap_or(row.figure);
        format!(
            "| {:02} | {} | {held_by} | {figure} |",
            row.number, row.fault
        )
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn every_row_names_its_tests_or_says_why_there_is_none() {
    let tests = tests();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let updated = update(&page(), &tests);
        fs::write(root().join("docs/faults.md"), updated).expect("the page can be written");
    }
    let page = page();
    let rows: Vec<Row> = page.lines().filter_map(row).collect();
    let numbers: Vec<u32> = rows.iter().map(|row| row.number).collect();
    assert_eq!(
        numbers,
        (1..=ROWS).collect::<Vec<_>>(),
        "every row once, in order"
    );
    let beyond: Vec<_> = tests.keys().filter(|number| **number > ROWS).collect();
    assert!(
        beyond.is_empty(),
        "tests of rows that are not there: {beyond:?}"
    );
    for row in &rows {
        match tests.get(&row.number) {
            Some(names) => assert_eq!(
                row.held_by,
                held_by(names),
                "row {}: run `UPDATE_EXPECT=1 cargo test --test faults_page`",
                row.number
            ),
            None => assert!(
                ABSENT.iter().any(|absent| row.held_by.starts_with(absent)),
                "row {} names no test and no reason",
                row.number
            ),
        }
        assert!(
            !row.fault.is_empty() && !row.figure.is_empty(),
            "row {}",
            row.number
        );
    }
}

#[test]
fn rows_are_read_from_the_names_of_tests() {
    assert_eq!(rows_of("f_12_f_13_noise_is_skipped"), [12, 13]);
    assert_eq!(rows_of("f_06_code_and_signal"), [6]);
    assert_eq!(rows_of("f_x"), [0; 0]);
    let line = "| 06 | Dies | `f_06_x`<br>`f_06_y` | 3 ms |";
    let row = row(line).expect("a row");
    assert_eq!((row.number, row.figure.as_str()), (6, "3 ms"));
}
