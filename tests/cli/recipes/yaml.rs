//! Reads the part of YAML that the workflows of this project use: block mappings and sequences, flow sequences, quoted
//! and plain texts, literal blocks. Every scalar is a string.

use serde_json::{Map, Value};

/// Reads a document.
pub(super) fn read(text: &str) -> Value {
    let mut reader = Reader {
        lines: text.lines().collect(),
        at: 0,
    };
    let value = reader.block(0);
    reader.skip_blank();
    assert_eq!(reader.at, reader.lines.len(), "a line was not understood");
    value
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

impl<'a> Reader<'a> {
    fn skip_blank(&mut self) {
        while self.lines.get(self.at).is_some_and(|line| is_blank(line)) {
            self.at += 1;
        }
    }

    /// The next line that is not blank, if it is indented by at least `least`.
    fn peek(&mut self, least: usize) -> Option<(usize, &'a str)> {
        self.skip_blank();
        let line = self.lines.get(self.at)?;
        let indent = indent_of(line);
        (indent >= least).then(|| (indent, line.trim()))
    }

    /// The mapping or sequence that begins at the next line.
    fn block(&mut self, least: usize) -> Value {
        match self.peek(least) {
            None => Value::Null,
            Some((indent, text)) if text.starts_with("- ") => self.sequence(indent),
            Some((indent, _)) => self.mapping(indent),
        }
    }

    fn sequence(&mut self, indent: usize) -> Value {
        let mut items = Vec::new();
        while let Some((found, text)) = self.peek(indent) {
            let Some(item) = text.strip_prefix("- ").filter(|_| found == indent) else {
                break;
            };
            if item == "|" {
                self.at += 1;
                items.push(self.literal(indent));
            } else if item.starts_with(['"', '\'']) || key_of(item).is_none() {
                self.at += 1;
                items.push(scalar(item));
            } else {
                items.push(self.mapping_from(indent + 2, Some(item)));
            }
        }
        items.into()
    }

    fn mapping(&mut self, indent: usize) -> Value {
        self.mapping_from(indent, None)
    }

    /// A mapping whose first entry may stand behind the mark of a sequence.
    fn mapping_from(&mut self, indent: usize, mut first: Option<&'a str>) -> Value {
        let mut members = Map::new();
        loop {
            let entry = match first.take() {
                Some(entry) => entry,
                None => match self.peek(indent) {
                    Some((found, text)) if found == indent && !text.starts_with("- ") => text,
                    _ => return members.into(),
                },
            };
            let (key, rest) = key_of(entry).unwrap_or_else(|| panic!("not understood: {entry}"));
            self.at += 1;
            let value = match rest {
                "|" => self.literal(indent),
                "" => match self.peek(indent + 1) {
                    Some(_) => self.block(indent + 1),
                    // A sequence may stand at the indent of its key.
                    None => match self.peek(indent) {
                        Some((found, text)) if found == indent && text.starts_with("- ") => {
                            self.sequence(indent)
                        }
                        _ => Value::Null,
                    },
                },
                _ => scalar(rest),
            };
            assert!(
                members.insert(key.to_owned(), value).is_none(),
                "{key} twice"
            );
        }
    }

    fn literal(&mut self, parent: usize) -> Value {
        let mut taken = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            if !line.trim().is_empty() && indent_of(line) <= parent {
                break;
            }
            taken.push(*line);
            self.at += 1;
        }
        let indent = taken.iter().find(|line| !line.trim().is_empty());
        let indent = indent.map_or(0, |line| indent_of(line));
        let lines = taken.iter().map(|line| line.get(indent..).unwrap_or(""));
        let text = lines.collect::<Vec<_>>().join("\n");
        format!("{}\n", text.trim_end()).into()
    }
}

/// The key and the rest of `key: rest`.
fn key_of(text: &str) -> Option<(&str, &str)> {
    let (key, rest) = match text.strip_suffix(':') {
        Some(key) => (key, ""),
        None => text.split_once(": ")?,
    };
    let fine = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    (!key.is_empty() && key.chars().all(fine)).then(|| (key, rest.trim()))
}

fn scalar(text: &str) -> Value {
    if let Some(list) = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    {
        return list.split(',').map(|item| scalar(item.trim())).collect();
    }
    if text.starts_with('"') {
        return serde_json::from_str(text).expect("a quoted text");
    }
    if let Some(inner) = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''))
    {
        return inner.replace("''", "'").into();
    }
    let text = text.split_once(" #").map_or(text, |(text, _)| text);
    text.trim_end().into()
}

#[test]
fn yaml_of_workflows_is_read() {
    let text = "# c\non:\n  push:\n  schedule:\n    - cron: \"1 2\"\nlist: [a, 'b c']\nsteps:\n- run: |\n    one\n\n      two\n- name: x # c\n  if: a != 'b'\n- |\n  y\n";
    let wanted = serde_json::json!({
        "on": {"push": null, "schedule": [{"cron": "1 2"}]},
        "list": ["a", "b c"],
        "steps": [{"run": "one\n\n  two\n"}, {"name": "x", "if": "a != 'b'"}, "y\n"],
    });
    assert_eq!(read(text), wanted);
}
