//! Inserts an entry into TOML: as a table at the end of the file, or in place of the tables of the entry.
//! Every other byte stays.

use std::ops::Range;

use toml_edit::{Document, Item, Table, Value};

use super::edit::{Edit, Removal, without_ranges};
use super::error::Refusal;
use super::value::{EntryValue, newline_of};

/// A complete document with one entry.
pub(super) fn document(
    servers: &'static str,
    name: &str,
    entry: &EntryValue,
    newline: &'static str,
) -> String {
    format!("{}{newline}", table(servers, name, entry, newline))
}

/// Inserts `entry` as `[servers.name]`, or replaces the one that differs.
pub(super) fn insert(
    text: &str,
    servers: &'static str,
    name: &str,
    entry: &EntryValue,
) -> Result<Edit, Refusal> {
    let newline = newline_of(text);
    let parsed: Document<&str> = Document::parse(text).map_err(|error| Refusal {
        at: error.span().map(|span| span.start),
        message: format!("not valid TOML: {}; correct it first", error.message()),
    })?;
    let root = parsed.as_table();
    let refused = |item: &Item, message: &str| Refusal {
        at: item.span().map(|span| span.start),
        message: message.to_owned(),
    };
    let list = match root.get(servers) {
        None => return append(text, servers, name, entry, newline),
        Some(Item::Table(list)) => list,
        Some(item @ Item::Value(Value::InlineTable(_))) => {
            return Err(refused(
                item,
                "the servers are an inline table; write each one as a table first, `[mcp_servers.NAME]`",
            ));
        }
        Some(item) => {
            return Err(refused(
                item,
                "the servers are not a table; correct it first",
            ));
        }
    };
    match list.get(name) {
        None => append(text, servers, name, entry, newline),
        Some(item) if is_same(item, entry) => Ok(Edit::Same),
        Some(Item::Value(Value::InlineTable(inline))) if !inline.is_dotted() => {
            let span = span(inline.span())?;
            Ok(replaced(text, &span, &entry.toml_line()))
        }
        Some(Item::Table(old)) if !old.is_dotted() => {
            let mut own = Vec::new();
            own_tables(old, &mut own)?;
            let first = own.iter().map(|table| table.start).min();
            let last = own.iter().map(|table| table.end).max();
            let (Some(first), Some(last)) = (first, last) else {
                return Err(refused(
                    &Item::None,
                    "the entry has no table; remove it first",
                ));
            };
            let span = first..last;
            own.sort_unstable_by_key(|table| table.start);
            let is_own = |start| {
                own.binary_search_by_key(&start, |table| table.start)
                    .is_ok()
            };
            let mut all = Vec::new();
            tables_below(root, &mut all)?;
            let foreign = all
                .iter()
                .find(|table| span.contains(&table.start) && !is_own(table.start));
            if let Some(foreign) = foreign {
                return Err(Refusal::at(
                    foreign.start,
                    format!(
                        "this table is between the tables of `{name}`; move or remove it first"
                    ),
                ));
            }
            Ok(replaced(text, &span, &table(servers, name, entry, newline)))
        }
        Some(item) => Err(refused(
            item,
            "the entry of this name is not a separate table; remove it first",
        )),
    }
}

/// Removes the entries of the table `servers` that `is_moved` names. Comments before a table stay.
pub(super) fn without(
    text: &str,
    servers: &'static str,
    is_moved: &dyn Fn(&str) -> bool,
) -> Result<Removal, Refusal> {
    let parsed: Document<&str> = Document::parse(text).map_err(|error| Refusal {
        at: error.span().map(|span| span.start),
        message: format!("not valid TOML: {}", error.message()),
    })?;
    let Some(Item::Table(list)) = parsed.as_table().get(servers) else {
        return Ok(Removal::none(text));
    };
    let (mut ranges, mut names) = (Vec::new(), Vec::new());
    for (name, item) in list.iter().filter(|(name, _)| is_moved(name)) {
        match item {
            Item::Table(table) if !table.is_dotted() => {
                let mut own = Vec::new();
                own_tables(table, &mut own)?;
                ranges.extend(own.into_iter().map(|range| with_blank_lines(text, range)));
            }
            item => {
                return Err(Refusal {
                    at: item.span().map(|span| span.start),
                    message: format!(
                        "`{name}` is not a separate table; write it as `[{servers}.NAME]` first"
                    ),
                });
            }
        }
        names.push(name.to_owned());
    }
    Ok(Removal {
        text: without_ranges(text, ranges),
        names,
    })
}

/// The range of a table with the rest of its last line and the empty lines behind it.
fn with_blank_lines(text: &str, range: Range<usize>) -> Range<usize> {
    let mut end = range.end;
    for (index, line) in text[range.end..].split_inclusive('\n').enumerate() {
        // A comment behind the last value belongs to it.
        if index > 0 && !line.trim().is_empty() {
            break;
        }
        end += line.len();
    }
    range.start..end
}

/// The table of an entry, without its last line end.
fn table(servers: &'static str, name: &str, entry: &EntryValue, newline: &'static str) -> String {
    let mut out = format!("[{servers}.{name}]");
    if let EntryValue::Members(members) = entry {
        for (key, value) in members {
            out.push_str(&format!("{newline}{key} = {}", value.toml_line()));
        }
    }
    out
}

/// The text with the table at its end, behind an empty line.
fn append(
    text: &str,
    servers: &'static str,
    name: &str,
    entry: &EntryValue,
    newline: &'static str,
) -> Result<Edit, Refusal> {
    let separator = match text.trim_end_matches(['\r', '\n']) {
        "" => String::new(),
        rest => newline.repeat(2_usize.saturating_sub(text[rest.len()..].matches('\n').count())),
    };
    let document = document(servers, name, entry, newline);
    let changed = format!("{text}{separator}{document}");
    // Dotted keys may have closed the table of the servers.
    match Document::parse(changed.as_str()) {
        Ok(_) => Ok(Edit::Added(changed)),
        Err(_) => Err(Refusal {
            at: None,
            message: format!(
                "the servers are written with dotted keys, which no table can follow; write each one as a table first, `[{servers}.NAME]`"
            ),
        }),
    }
}

fn replaced(text: &str, span: &Range<usize>, with: &str) -> Edit {
    Edit::Replaced(format!(
        "{}{with}{}",
        &text[..span.start],
        &text[span.end..]
    ))
}

/// The tables at and below `table` that have a header, each from its header to its last value.
fn own_tables(table: &Table, out: &mut Vec<Range<usize>>) -> Result<(), Refusal> {
    if !table.is_implicit() && !table.is_dotted() && table.span().is_some() {
        let header = span(table.span())?;
        let end = last_value(table)?.map_or(header.end, |end| end.max(header.end));
        out.push(header.start..end);
    }
    tables_below(table, out)
}

/// The same for the tables below `table`. The root of a file is a table without a header.
fn tables_below(table: &Table, out: &mut Vec<Range<usize>>) -> Result<(), Refusal> {
    for (_, item) in table {
        match item {
            Item::Table(below) => own_tables(below, out)?,
            Item::ArrayOfTables(tables) => {
                for below in tables {
                    own_tables(below, out)?;
                }
            }
            Item::None | Item::Value(_) => {}
        }
    }
    Ok(())
}

/// The end of the last value of a table, with those of its dotted keys.
fn last_value(table: &Table) -> Result<Option<usize>, Refusal> {
    let mut last = None;
    for (_, item) in table {
        let end = match item {
            Item::Value(value) => Some(span(value.span())?.end),
            Item::Table(below) if below.is_dotted() => last_value(below)?,
            _ => None,
        };
        last = last.max(end);
    }
    Ok(last)
}

/// A place that the parser gives to everything that it reads.
fn span(found: Option<Range<usize>>) -> Result<Range<usize>, Refusal> {
    found.ok_or_else(|| Refusal {
        at: None,
        message: "the place of a table is not known; insert the entry by hand".to_owned(),
    })
}

/// Whether an item of the file is the entry; the order of members does not matter.
fn is_same(found: &Item, entry: &EntryValue) -> bool {
    match entry {
        EntryValue::Text(text) => found.as_str() == Some(text),
        EntryValue::Flag(flag) => found.as_bool() == Some(*flag),
        EntryValue::List(items) => found.as_array().is_some_and(|found| {
            found.len() == items.len()
                && found
                    .iter()
                    .zip(items)
                    .all(|(found, item)| found.as_str() == Some(item))
        }),
        EntryValue::Members(members) => found.as_table_like().is_some_and(|found| {
            let has = |(name, value): &(&str, EntryValue)| {
                found.get(name).is_some_and(|found| is_same(found, value))
            };
            found.len() == members.len() && members.iter().all(has)
        }),
        EntryValue::Texts(texts) => found.as_table_like().is_some_and(|found| {
            let has = |(name, text): &(String, String)| {
                found.get(name).and_then(Item::as_str) == Some(text)
            };
            found.len() == texts.len() && texts.iter().all(has)
        }),
    }
}

#[cfg(test)]
mod tests;
