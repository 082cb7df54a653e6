//! The tables of keys on the pages: each level of the table has one, between `<!-- keys: LEVEL -->` and `<!-- end -->`.
//! `UPDATE_EXPECT=1` writes them.

use super::key_table::path;
use crate::keys::{Key, Table, table};

const PAGES: [&str; 2] = ["docs/config.md", "docs/access.md"];
const BEGIN: &str = "<!-- keys: ";
const END: &str = "<!-- end -->";

/// Returns the rows of the keys of a level.
pub(super) fn rows(table: &Table, level: &str) -> String {
    let keys = table.rows.iter();
    let keys = keys.filter(|key| key.level == level && !key.name.is_empty());
    let rows = keys.map(|key| {
        let cells = [
            format!("`{}`", key.name),
            type_of(table, key.kind, key.range),
            key.default.to_owned(),
            key.text.to_owned(),
        ];
        format!(
            "| {} |\n",
            cells.map(|cell| cell.replace('|', "\\|")).join(" | ")
        )
    });
    let head = "| key | type | default | meaning |\n|---|---|---|---|\n";
    head.to_owned() + &rows.collect::<String>()
}

/// Returns the type of the values of a kind, in words.
fn type_of(table: &Table, kind: &str, range: &str) -> String {
    let bounds = range.split([' ', '^']).next().unwrap_or_default();
    let within = |unit: &str| match bounds.split_once("..") {
        None | Some(("", "")) => String::new(),
        Some(("", most)) => format!(", at most {most}{unit}"),
        Some((least, "")) => format!(", at least {least}{unit}"),
        Some((least, most)) => format!(", {least} to {most}{unit}"),
    };
    let inner = |kind: &str| type_of(table, &kind[1..kind.len() - 1], "");
    match kind {
        "boolean" | "object" => return kind.to_owned(),
        "string" => return format!("string{}", within(" characters")),
        "integer" | "number" => return format!("{kind}{}", within("")),
        _ if kind.starts_with('[') => {
            return format!("list of: {}{}", inner(kind), within(" entries"));
        }
        _ if kind.starts_with('{') => return format!("by name: {}", inner(kind)),
        _ => {}
    }
    let is_definition = |key: &&Key| key.level == "=" && key.name == kind;
    let Some(definition) = table.rows.iter().find(is_definition) else {
        return "object".to_owned();
    };
    let parts = || definition.range.split('|');
    match definition.kind {
        "choice" => {
            let names: Vec<_> = parts().map(|name| format!("`\"{name}\"`")).collect();
            names.join(", ")
        }
        "any" => {
            let types = parts().map(|part| {
                let (kind, range) = part.split_once(' ').unwrap_or((part, ""));
                type_of(table, kind, range)
            });
            types.collect::<Vec<_>>().join(" or ")
        }
        kind => type_of(table, kind, definition.range),
    }
}

/// Returns a page with the tables of its levels, and appends these levels to `levels`.
fn with_tables(table: &Table, page: &str, levels: &mut Vec<String>) -> String {
    let mut parts = page.split(BEGIN);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (level, rest) = part.split_once(" -->\n").expect("a level");
        let (_, after) = rest.split_once(END).expect(END);
        out += &format!("{BEGIN}{level} -->\n{}{END}{after}", rows(table, level));
        levels.push(level.to_owned());
    }
    out
}

#[test]
fn pages_have_the_rows_of_every_key() {
    let mut shown = Vec::new();
    for page in PAGES {
        let written = std::fs::read_to_string(path(page)).expect(page);
        let expected = with_tables(table(), &written, &mut shown);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path(page), expected).expect(page);
            continue;
        }
        let differs = written
            .lines()
            .zip(expected.lines())
            .find(|(old, new)| old != new);
        let remedy = format!("{page}: `UPDATE_EXPECT=1 cargo test -p broker-config key_`");
        assert_eq!(differs, None, "{remedy}");
        assert!(written == expected, "{remedy}");
    }
    let levels = table().rows.iter();
    let levels = levels.filter(|key| key.name.is_empty() && !key.kind.is_empty());
    let mut levels: Vec<_> = levels.map(|key| key.level.to_owned()).collect();
    levels.sort_unstable();
    shown.sort_unstable();
    assert_eq!(shown, levels);
}
