//! YAML 1.2 with the core schema as values with their places, in the order of the file. Aliases are expanded, and the
//! bounds count what they expand to. A file is one document with unique keys.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use broker_config::client_file::{Data, Member, Spanned};
use broker_model::json::position_of_offset;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode as Code};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError};

/// Maximum number of values after aliases are expanded.
const MAX_VALUES: usize = 10_000;
/// Maximum bytes of texts and keys after aliases are expanded, with the copies of values that have anchors.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// Maximum nesting.
const MAX_DEPTH: usize = 64;
/// The key whose value is merged into its object.
const MERGE: &str = "<<";

/// Reads YAML. An error has its place and contains no value of the file.
pub(crate) fn parse(file: &str, text: &str) -> Result<Spanned, Vec<Diagnostic>> {
    let lines = Lines::new(text);
    let mut reader = Reader::default();
    let mut read = || -> Result<Spanned, Refusal> {
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| syntax(&lines, &error))?;
            reader.event(event, lines.offset(span.start))?;
        }
        reader.document.take().ok_or_else(|| Refusal {
            at: 0,
            code: Code::ImportSyntax,
            message: "the file is empty".to_owned(),
        })
    };
    read().map_err(|refusal| {
        let mut problem = Diagnostic::error(refusal.code, refusal.message).in_file(file);
        problem.position = Some(position_of_offset(text, refusal.at));
        vec![problem]
    })
}

/// Why a file is refused, and where.
#[derive(Debug)]
struct Refusal {
    at: usize,
    code: Code,
    message: String,
}

fn syntax(lines: &Lines<'_>, error: &ScanError) -> Refusal {
    Refusal {
        at: lines.offset(*error.marker()),
        code: Code::ImportSyntax,
        message: format!("the file is not YAML: {}", shown_line(error.info(), 200)),
    }
}

fn refuse<T>(at: usize, code: Code, message: impl Into<String>) -> Result<T, Refusal> {
    let message = message.into();
    Err(Refusal { at, code, message })
}

/// Where each line of a text begins. The parser counts characters, and values have places in bytes.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// Line, column and offset of the last place: a file may be one line, and places come in order.
    last: Cell<(usize, usize, usize)>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let bytes = text.as_bytes();
        let is_break = |at: &usize| match bytes.get(*at) {
            Some(b'\n') => true,
            Some(b'\r') => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let breaks = (0..bytes.len()).filter(is_break).map(|at| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(breaks).collect(),
            last: Cell::default(),
        }
    }

    fn offset(&self, place: Marker) -> usize {
        let (line, column) = (place.line().saturating_sub(1), place.col());
        let (last_line, last_column, last_at) = self.last.get();
        let (from, column_of_from) = match last_line == line && last_column <= column {
            true => (last_at, last_column),
            false => (self.starts.get(line).copied().unwrap_or(self.text.len()), 0),
        };
        let rest = self.text.get(from..).unwrap_or_default();
        let mut chars = rest.char_indices();
        let length = chars
            .nth(column - column_of_from)
            .map_or(rest.len(), |(at, _)| at);
        self.last.set((line, column, from + length));
        from + length
    }
}

/// A list or an object that is not complete.
#[derive(Debug)]
struct Open {
    at: usize,
    anchor: usize,
    /// The height of its highest value.
    height: usize,
    size: Size,
    content: Content,
}

/// The number of values of a value, and the bytes of its texts and keys.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    values: usize,
    bytes: usize,
}

impl Size {
    /// Returns the size of one value whose text or key has this many bytes.
    const fn new(bytes: usize) -> Self {
        Self { values: 1, bytes }
    }

    fn add(&mut self, other: Self) {
        self.values = self.values.saturating_add(other.values);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

#[derive(Debug)]
enum Content {
    List(Vec<Spanned>),
    Object {
        members: Vec<Member>,
        keys: HashSet<String>,
        /// The key that waits for its value.
        key: Option<(usize, String)>,
        /// Values of [`MERGE`].
        merged: Vec<Spanned>,
    },
}

/// A value with an anchor.
#[derive(Debug)]
struct Anchored {
    value: Spanned,
    height: usize,
    size: Size,
}

/// Builds a value of the events of a document.
#[derive(Debug, Default)]
struct Reader {
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    document: Option<Spanned>,
    /// The size of all values. Each alias counts as the value that it names; a value with an anchor counts twice, since a
    /// copy of it is kept.
    size: Size,
}

impl Reader {
    fn event(&mut self, event: Event<'_>, at: usize) -> Result<(), Refusal> {
        match event {
            Event::DocumentStart(_) if self.document.is_some() => refuse(
                at,
                Code::ImportSyntax,
                "the file has more than one document",
            ),
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = match &tag {
                    None => style != ScalarStyle::Plain,
                    Some(tag) if tag.is_yaml_core_schema() => tag.suffix == "str",
                    Some(_) => return refuse(at, Code::ImportSyntax, "a tag is not read"),
                };
                if self.waits_for_key() {
                    return self.key(at, text.into_owned());
                }
                let data = match is_text {
                    true => Data::String(text.to_string()),
                    false => plain(&text),
                };
                let size = Size::new(text.len());
                self.count(at, size, 0)?;
                self.complete(Spanned { at, data }, anchor, 0, size)
            }
            Event::SequenceStart(anchor, tag) => {
                self.start(at, anchor, tag.is_some(), Content::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let content = Content::Object {
                    members: Vec::new(),
                    keys: HashSet::new(),
                    key: None,
                    merged: Vec::new(),
                };
                self.start(at, anchor, tag.is_some(), content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let Some(anchored) = self.anchors.get(&anchor) else {
                    return refuse(at, Code::ImportSyntax, "an alias is inside its own value");
                };
                let (height, size) = (anchored.height, anchored.size);
                if self.waits_for_key() {
                    return refuse(at, Code::ImportSyntax, "a key is not a text");
                }
                // Before the copy: the size of a file of aliases grows with each level.
                self.count(at, size, height)?;
                let value = self
                    .anchors
                    .get(&anchor)
                    .map(|anchored| anchored.value.clone());
                match value {
                    Some(value) => self.complete(value, 0, height, size),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, at: usize, size: Size, height: usize) -> Result<(), Refusal> {
        self.size.add(size);
        if self.size.values > MAX_VALUES {
            let message = format!("the file has more than {MAX_VALUES} values");
            return refuse(at, Code::ConfigSize, message);
        }
        if self.size.bytes > MAX_TEXT_BYTES {
            let message =
                format!("with its aliases, the file has texts of more than {MAX_TEXT_BYTES} bytes");
            return refuse(at, Code::ConfigSize, message);
        }
        if self.open.len() + height > MAX_DEPTH {
            let message = format!("the file is nested deeper than {MAX_DEPTH} levels");
            return refuse(at, Code::ConfigSize, message);
        }
        Ok(())
    }

    fn waits_for_key(&self) -> bool {
        matches!(
            self.open.last().map(|open| &open.content),
            Some(Content::Object { key: None, .. })
        )
    }

    fn start(
        &mut self,
        at: usize,
        anchor: usize,
        has_tag: bool,
        content: Content,
    ) -> Result<(), Refusal> {
        if has_tag {
            return refuse(at, Code::ImportSyntax, "a tag is not read");
        }
        if self.waits_for_key() {
            return refuse(at, Code::ImportSyntax, "a key is not a text");
        }
        let size = Size::new(0);
        self.count(at, size, 1)?;
        self.open.push(Open {
            at,
            anchor,
            height: 0,
            size,
            content,
        });
        Ok(())
    }

    fn key(&mut self, at: usize, name: String) -> Result<(), Refusal> {
        let size = Size {
            values: 0,
            bytes: name.len(),
        };
        self.count(at, size, 0)?;
        if let Some(open) = self.open.last_mut() {
            open.size.add(size);
        }
        if let Some(Content::Object { keys, key, .. }) =
            self.open.last_mut().map(|o| &mut o.content)
        {
            if name != MERGE && !keys.insert(name.clone()) {
                let message = format!("the object has the key `{}` twice", shown_line(&name, 80));
                return refuse(at, Code::ConfigDupKey, message);
            }
            *key = Some((at, name));
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Refusal> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let data = match open.content {
            Content::List(items) => Data::Array(items),
            Content::Object {
                mut members,
                mut keys,
                merged,
                ..
            } => {
                for value in merged {
                    merge(value, &mut members, &mut keys)?;
                }
                Data::Object(members)
            }
        };
        let value = Spanned { at: open.at, data };
        self.complete(value, open.anchor, open.height + 1, open.size)
    }

    /// Puts a value into the list or the object around it.
    fn complete(
        &mut self,
        value: Spanned,
        anchor: usize,
        height: usize,
        size: Size,
    ) -> Result<(), Refusal> {
        if anchor > 0 {
            // The copy of the value has no place in the document, so its values are not counted again.
            let copy = Size { values: 0, ..size };
            self.count(value.at, copy, 0)?;
            let anchored = Anchored {
                value: value.clone(),
                height,
                size,
            };
            self.anchors.insert(anchor, anchored);
        }
        let Some(open) = self.open.last_mut() else {
            self.document = Some(value);
            return Ok(());
        };
        open.height = open.height.max(height);
        open.size.add(size);
        match &mut open.content {
            Content::List(items) => items.push(value),
            Content::Object {
                members,
                key,
                merged,
                ..
            } => match key.take() {
                Some((_, name)) if name == MERGE => merged.push(value),
                Some((at, key)) => members.push(Member { at, key, value }),
                None => {}
            },
        }
        Ok(())
    }
}

/// Adds the members of an object, or of each object of a list, whose keys are not there.
fn merge(
    value: Spanned,
    members: &mut Vec<Member>,
    keys: &mut HashSet<String>,
) -> Result<(), Refusal> {
    let at = value.at;
    match value.data {
        Data::Object(merged) => {
            members.extend(
                merged
                    .into_iter()
                    .filter(|one| keys.insert(one.key.clone())),
            );
            Ok(())
        }
        Data::Array(items) => items
            .into_iter()
            .try_for_each(|item| merge(item, members, keys)),
        _ => refuse(at, Code::ImportSyntax, "the value of `<<` is not an object"),
    }
}

/// Returns the value of a plain scalar in the core schema.
fn plain(text: &str) -> Data {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Data::Null,
        "true" | "True" | "TRUE" => return Data::Bool(true),
        "false" | "False" | "FALSE" => return Data::Bool(false),
        _ => {}
    }
    match number(text) {
        Some(number) => Data::Number(number),
        None => Data::String(text.to_owned()),
    }
}

/// Returns a number as JSON writes it; `None` for another text, and for one that JSON does not have.
fn number(text: &str) -> Option<String> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let is_sign = digits.starts_with(['+', '-']);
            let number = u128::from_str_radix(digits, radix)
                .ok()
                .filter(|_| !is_sign);
            return number.map(|number| number.to_string());
        }
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_digit = |c: char| c.is_ascii_digit();
    if !unsigned.is_empty() && unsigned.chars().all(is_digit) {
        return text.parse::<i128>().ok().map(|number| number.to_string());
    }
    let is_float = unsigned.contains(is_digit)
        && unsigned.starts_with(|c: char| is_digit(c) || c == '.')
        && unsigned
            .chars()
            .all(|c| is_digit(c) || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    let number = text.parse::<f64>().ok().filter(|_| is_float);
    number
        .filter(|number| number.is_finite())
        .map(|number| number.to_string())
}

#[cfg(test)]
mod tests;
