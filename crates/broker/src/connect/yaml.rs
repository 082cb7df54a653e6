//! Inserts an entry into YAML: lines in the block of the servers. Every other line stays. A block in one line (`{…}`) is
//! not edited.

use super::edit::{Edit, Removal};
use super::error::Refusal;
use super::value::{EntryValue, newline_of, quoted};

mod node;
#[cfg(test)]
mod tests;

use node::{Content, Node, read};

/// How a file has its servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// Whether they are a list, each with its `name`; else an object.
    pub(super) is_list: bool,
    /// The lines that a new file has before them.
    pub(super) preamble: &'static [(&'static str, &'static str)],
}

/// A complete document with one entry.
pub(super) fn document(
    form: Form,
    servers: &'static str,
    name: &str,
    entry: &EntryValue,
    newline: &'static str,
) -> String {
    let preamble = form.preamble.iter();
    let mut lines: Vec<_> = preamble
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    lines.push(format!("{servers}:"));
    lines.extend(block(form, name, entry, "  "));
    joined(&lines, newline)
}

/// The lines of an entry with this indentation.
fn block(form: Form, name: &str, entry: &EntryValue, indent: &str) -> Vec<String> {
    let inner = format!("{indent}  ");
    let mut lines = entry.yaml_lines(&inner);
    if form.is_list {
        if let Some(first) = lines.first_mut() {
            *first = format!("{indent}- {}", first.trim_start());
        }
        return lines;
    }
    // Names are letters, digits, `_` and `-`; a number or a word such as `no` has to be quoted.
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.len() > 5;
    let key = match is_plain {
        true => name.to_owned(),
        false => quoted(name),
    };
    lines.insert(0, format!("{indent}{key}:"));
    lines
}

fn joined(lines: &[String], newline: &str) -> String {
    lines
        .iter()
        .map(|line| format!("{line}{newline}"))
        .collect()
}

/// Inserts `entry` as `name` into `servers`, or replaces the one that differs.
pub(super) fn insert(
    form: Form,
    text: &str,
    servers: &'static str,
    name: &str,
    entry: &EntryValue,
) -> Result<Edit, Refusal> {
    let newline = newline_of(text);
    let lines = Lines::new(text)?;
    let Some(root) = read(text)? else {
        let end = lines.missing_end(newline);
        let made = document(form, servers, name, entry, newline);
        return Ok(Edit::Added(format!("{text}{end}{made}")));
    };
    let members = block_members(&root, "the file")?;
    let Some((key, value)) = only(members, servers)? else {
        let indent = " ".repeat(root.column);
        let mut made = vec![format!("{indent}{servers}:")];
        made.extend(block(form, name, entry, &format!("{indent}  ")));
        let end = lines.missing_end(newline);
        return Ok(Edit::Added(format!(
            "{text}{end}{}",
            joined(&made, newline)
        )));
    };
    let added = |column: usize| {
        let made = joined(&block(form, name, entry, &" ".repeat(column)), newline);
        Edit::Added(lines.with(key.line + 1, &made, newline))
    };
    if value.is_absent() {
        return Ok(added(key.column + 2));
    }
    if let Some(text) = lines.without_brackets(key, value) {
        return match insert(form, &text, servers, name, entry)? {
            Edit::Added(changed) | Edit::Replaced(changed) => Ok(Edit::Added(changed)),
            Edit::Same => Ok(Edit::Same),
        };
    }
    let column = match &value.content {
        // The items may be as far to the left as their key.
        Content::List(items, false) => items.first().map_or(0, |item| lines.indent(item.line)),
        _ => value.column,
    };
    match find(form, &lines, value, servers, name)? {
        None => Ok(added(column)),
        Some(found) if is_same(found.value, entry) => Ok(Edit::Same),
        Some(found) => {
            let made = joined(
                &block(form, name, entry, &" ".repeat(value.column)),
                newline,
            );
            Ok(Edit::Replaced(lines.replaced(
                found.first_line,
                found.value.last_line,
                &made,
            )))
        }
    }
}

/// Removes the entries of `servers` that `is_moved` names.
pub(super) fn without(
    form: Form,
    text: &str,
    servers: &'static str,
    is_moved: &dyn Fn(&str) -> bool,
) -> Result<Removal, Refusal> {
    let Some(root) = read(text)? else {
        return Ok(Removal::none(text));
    };
    let members = block_members(&root, "the file")?;
    let Some((_, value)) = only(members, servers)?.filter(|(_, value)| !value.is_absent()) else {
        return Ok(Removal::none(text));
    };
    let (mut out, mut names) = (text.to_owned(), Vec::new());
    let lines = Lines::new(text)?;
    // From the end, so that the numbers of the lines before stay.
    for found in entries(form, &lines, value, servers)?.into_iter().rev() {
        if let Some(name) = found.name.filter(|name| is_moved(name)) {
            let now = Lines::new(&out)?;
            let without = now.replaced(found.first_line, found.value.last_line, "");
            names.insert(0, name.to_owned());
            out = without;
        }
    }
    Ok(Removal { text: out, names })
}

/// An entry of the file.
struct Found<'n> {
    /// `None` for an item of a list without a name.
    name: Option<&'n str>,
    first_line: usize,
    value: &'n Node,
}

fn find<'n>(
    form: Form,
    lines: &Lines<'_>,
    servers: &'n Node,
    key: &str,
    name: &str,
) -> Result<Option<Found<'n>>, Refusal> {
    let entries = entries(form, lines, servers, key)?.into_iter();
    let mut found = entries.filter(|entry| entry.name == Some(name));
    let first = found.next();
    match found.next() {
        Some(second) => Err(Refusal {
            at: None,
            message: format!(
                "`{name}` is there twice, again in line {}; remove one first",
                second.first_line + 1
            ),
        }),
        None => Ok(first),
    }
}

fn entries<'n>(
    form: Form,
    lines: &Lines<'_>,
    servers: &'n Node,
    key: &str,
) -> Result<Vec<Found<'n>>, Refusal> {
    if !form.is_list {
        let members = block_members(servers, &format!("`{key}`"))?.iter();
        return Ok(members
            .map(|(name, value)| Found {
                name: name.text(),
                first_line: name.line,
                value,
            })
            .collect());
    }
    let Content::List(items, false) = &servers.content else {
        return Err(not_block(servers, &format!("`{key}`"), "a list"));
    };
    items
        .iter()
        .map(|item| {
            if !lines.begins_item(item.line) {
                return Err(not_block(item, "an item", "behind its `-`,"));
            }
            let name = match &item.content {
                Content::Object(members, _) => {
                    only(members, "name")?.and_then(|(_, name)| name.text())
                }
                _ => None,
            };
            Ok(Found {
                name,
                first_line: item.line,
                value: item,
            })
        })
        .collect()
}

/// The members of an object that is written in lines.
fn block_members<'n>(node: &'n Node, what: &str) -> Result<&'n [(Node, Node)], Refusal> {
    match &node.content {
        Content::Object(members, false) => Ok(members),
        _ => Err(not_block(node, what, "an object")),
    }
}

fn not_block(node: &Node, what: &str, kind: &str) -> Refusal {
    Refusal {
        at: None,
        message: format!(
            "{what} in line {} is not {kind} with its members in separate lines; write it so first",
            node.line + 1
        ),
    }
}

/// The only member of this name.
fn only<'n>(members: &'n [(Node, Node)], name: &str) -> Result<Option<&'n (Node, Node)>, Refusal> {
    let mut found = members.iter().filter(|(key, _)| key.text() == Some(name));
    let first = found.next();
    match found.next() {
        Some((second, _)) => Err(Refusal {
            at: None,
            message: format!(
                "`{name}` is there twice, again in line {}; remove one first",
                second.line + 1
            ),
        }),
        None => Ok(first),
    }
}

/// Whether a value of the file is the entry; the order of members does not matter.
fn is_same(found: &Node, entry: &EntryValue) -> bool {
    match (&found.content, entry) {
        (Content::Text(found, _), EntryValue::Text(text)) => found == text,
        (Content::Text(found, is_plain), EntryValue::Flag(flag)) => {
            *is_plain && *found == flag.to_string()
        }
        (Content::List(found, _), EntryValue::List(items)) => {
            found.len() == items.len()
                && found
                    .iter()
                    .zip(items)
                    .all(|(found, item)| found.text() == Some(item))
        }
        (Content::Object(found, _), EntryValue::Members(members)) => {
            let has = |(name, value): &(&str, EntryValue)| {
                let mut found = found.iter().filter(|(key, _)| key.text() == Some(name));
                found.next().is_some_and(|(_, found)| is_same(found, value))
            };
            found.len() == members.len() && members.iter().all(has)
        }
        (Content::Object(found, _), EntryValue::Texts(texts)) => {
            let has = |(name, text): &(String, String)| {
                let mut found = found.iter().filter(|(key, _)| key.text() == Some(name));
                found
                    .next()
                    .is_some_and(|(_, found)| found.text() == Some(text))
            };
            found.len() == texts.len() && texts.iter().all(has)
        }
        _ => false,
    }
}

/// The lines of a text, each with its end.
struct Lines<'t> {
    lines: Vec<&'t str>,
}

impl<'t> Lines<'t> {
    /// A carriage return alone ends a line of YAML, and of no other tool.
    fn new(text: &'t str) -> Result<Self, Refusal> {
        let is_alone = |at: usize| text.as_bytes().get(at + 1) != Some(&b'\n');
        match text.match_indices('\r').find(|(at, _)| is_alone(*at)) {
            Some((at, _)) => Err(Refusal::at(at, "a line ends with a carriage return alone")),
            None => Ok(Self {
                lines: text.split_inclusive('\n').collect(),
            }),
        }
    }

    /// The number of spaces at the begin of a line.
    fn indent(&self, line: usize) -> usize {
        let line = self.lines.get(line).copied().unwrap_or_default();
        line.len() - line.trim_start_matches(' ').len()
    }

    /// Whether a line begins an item of a list.
    fn begins_item(&self, line: usize) -> bool {
        let line = self.lines.get(line).copied().unwrap_or_default();
        line.trim_start().starts_with("- ")
    }

    /// The line end that the last line does not have.
    fn missing_end(&self, newline: &'static str) -> &'static str {
        match self.lines.last() {
            Some(last) if !last.ends_with('\n') => newline,
            _ => "",
        }
    }

    /// The text without an empty list or object (`[]`, `{}`) on the line of its key.
    fn without_brackets(&self, key: &Node, value: &Node) -> Option<String> {
        match &value.content {
            Content::List(items, true) if items.is_empty() => {}
            Content::Object(members, true) if members.is_empty() => {}
            _ => return None,
        }
        let line = self.lines.get(value.line)?;
        let (start, _) = line.char_indices().nth(value.column)?;
        let end = start + line[start..].find([']', '}'])? + 1;
        let is_in_one_line = key.line == value.line && value.last_line == value.line;
        let changed = format!("{}{}", line[..start].trim_end(), &line[end..]);
        is_in_one_line.then(|| self.replaced(value.line, value.line, &changed))
    }

    /// The text with `added` before a line.
    fn with(&self, line: usize, added: &str, newline: &'static str) -> String {
        let (before, after) = self.lines.split_at(line.min(self.lines.len()));
        let end = match after.is_empty() {
            true => self.missing_end(newline),
            false => "",
        };
        format!("{}{end}{added}{}", before.concat(), after.concat())
    }

    /// The text with `made` in place of the lines from `first` to `last`.
    fn replaced(&self, first: usize, last: usize, made: &str) -> String {
        let before = self.lines.get(..first).unwrap_or_default().concat();
        let after = self.lines.get(last + 1..).unwrap_or_default().concat();
        format!("{before}{made}{after}")
    }
}
