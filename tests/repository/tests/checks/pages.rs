//! Checks the pages for readers: the index has each of them once, each says for whom it is and of which kind, and no
//! table needs a wide screen.

use std::collections::BTreeMap;
use std::fs;

use crate::workspace;

/// The headings of the index, with the word for a page of the kind.
const KINDS: [(&str, &str); 4] = [
    ("Tutorials", "Tutorial"),
    ("How-to pages", "How-to"),
    ("Reference", "Reference"),
    ("Explanation", "Explanation"),
];
/// The maximum characters in a cell of a table.
const MAX_CELL_CHARS: usize = 300;

/// The pages in `docs`, apart from the index.
fn pages() -> BTreeMap<String, String> {
    let entries = fs::read_dir(workspace().join("docs")).expect("the folder is readable");
    let paths = entries.flatten().map(|entry| entry.path());
    let pages = paths.filter(|path| path.extension().is_some_and(|known| known == "md"));
    let mut texts: BTreeMap<_, _> = pages
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let text = fs::read_to_string(&path).expect("the page is UTF-8");
            (name.into_owned(), text)
        })
        .collect();
    texts.remove("README.md").expect("the index exists");
    texts
}

/// The first line that each page should have, by the index.
fn first_lines() -> Vec<(String, String)> {
    let file = workspace().join("docs/README.md");
    let index = fs::read_to_string(file).expect("the index exists");
    let mut lines = Vec::new();
    for (heading, kind) in KINDS {
        let (_, rest) = index
            .split_once(&format!("\n## {heading}\n"))
            .unwrap_or_else(|| panic!("the index has no section `{heading}`"));
        let section = rest.split("\n## ").next().unwrap_or_default();
        for entry in section.lines().filter(|line| !line.is_empty()) {
            let (name, rest) = entry
                .strip_prefix("- [")
                .and_then(|entry| entry.split_once(']'))
                .unwrap_or_else(|| panic!("not a page: {entry}"));
            let rest = rest.strip_prefix(&format!("({name}) for "));
            let (readers, about) = rest
                .and_then(|rest| rest.split_once(": "))
                .unwrap_or_else(|| panic!("no readers: {entry}"));
            lines.push((name.to_owned(), format!("For {readers}. {kind}: {about}.")));
        }
    }
    lines
}

#[test]
fn index_has_each_page_once_with_its_first_line() {
    let mut pages = pages();
    let mut problems = Vec::new();
    for (name, line) in first_lines() {
        match pages.remove(&name) {
            None => problems.push(format!("{name} is not in `docs`, or twice in the index")),
            Some(text) if text.lines().nth(2) == Some(line.as_str()) => {}
            Some(_) => problems.push(format!("the third line of {name} is not: {line}")),
        }
    }
    let missing = pages.into_keys();
    problems.extend(missing.map(|name| format!("{name} is not in the index")));
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn pages_about_audits_and_the_audit_log_name_each_other_first() {
    let pages = pages();
    for (name, other) in [
        ("audit-log.md", "[audits.md](audits.md)"),
        ("audits.md", "[audit-log.md](audit-log.md)"),
    ] {
        // The title, the readers, and the sentence that says which page is about what.
        let first = pages[name].split("\n\n").nth(2).unwrap_or_default();
        assert!(first.contains(other), "{name}: {first}");
        assert!(
            first.contains("calls") && first.contains("people"),
            "{name}: {first}"
        );
        assert_eq!(first.lines().count(), 1, "{name}: {first}");
    }
}

#[test]
fn cells_of_tables_are_short() {
    let mut problems = Vec::new();
    let readme = fs::read_to_string(workspace().join("README.md")).expect("the page exists");
    let all = pages()
        .into_iter()
        .chain([("README.md".to_owned(), readme)]);
    let mut read = 0;
    for (name, text) in all {
        let mut is_code = false;
        for (at, line) in text.lines().enumerate() {
            is_code ^= line.starts_with("```");
            if is_code || !line.starts_with('|') {
                continue;
            }
            // An escaped bar is a part of a cell.
            for cell in line.replace("\\|", "¦").split('|') {
                read += 1;
                let chars = cell.trim().chars().count();
                if chars > MAX_CELL_CHARS {
                    problems.push(format!("docs/{name}:{}: {chars} characters", at + 1));
                }
            }
        }
    }
    assert!(read > 1000, "the tables were read: {read}");
    assert!(problems.is_empty(), "{problems:#?}");
}

/// A figure of `docs/results.tsv`.
struct Figure {
    name: String,
    figure: String,
    phrase: String,
    page: String,
}

fn figures() -> Vec<Figure> {
    let file = workspace().join("docs/results.tsv");
    let text = fs::read_to_string(file).expect("the results exist");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let read = |row: &str| {
        let cells: Vec<&str> = row.split('\t').collect();
        let [name, figure, date, machine, command, phrase, page] = cells.as_slice() else {
            panic!("a row has seven cells: {row}");
        };
        assert!(
            date.len() == 10 && !machine.is_empty() && !command.is_empty(),
            "{row}"
        );
        assert_eq!(phrase.matches("{}").count(), 1, "{row}");
        Figure {
            name: (*name).to_owned(),
            figure: (*figure).to_owned(),
            phrase: phrase.replace("{}", figure),
            page: (*page).to_owned(),
        }
    };
    rows.map(read).collect()
}

/// The words of a page, without blocks of code.
fn prose(page: &str) -> String {
    let text = fs::read_to_string(workspace().join(page)).expect("the page exists");
    let outside: String = text.split("\n```").step_by(2).collect();
    outside.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn figures_in_prose_are_those_of_the_results() {
    let figures = figures();
    let mut by_name: BTreeMap<&str, &str> = BTreeMap::new();
    let mut problems = Vec::new();
    for one in &figures {
        let first = by_name.entry(&one.name).or_insert(&one.figure);
        if *first != one.figure {
            problems.push(format!("{} has two figures", one.name));
        }
        if !prose(&one.page).contains(&one.phrase) {
            problems.push(format!("{} does not say: {}", one.page, one.phrase));
        }
    }
    // In the pages that compare, each number with a unit is a figure with a result.
    let units = [
        "tokens", "tools", "minutes", "seconds", "s", "ms", "MB", "%",
    ];
    for page in ["README.md", "docs/compare.md"] {
        let text = prose(page);
        let words: Vec<&str> = text.split(' ').collect();
        for pair in words.windows(2) {
            let unit = pair[1].trim_end_matches(|c: char| !c.is_alphanumeric() && c != '%');
            let is_number = pair[0].chars().all(|c| c.is_ascii_digit());
            let is_known = figures
                .iter()
                .any(|one| one.page == page && one.figure == pair[0]);
            if is_number && units.contains(&unit) && !is_known {
                problems.push(format!("{page}: `{} {}` has no result", pair[0], pair[1]));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}
