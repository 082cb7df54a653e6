//! The values of a file in YAML with their lines. Aliases stand for themselves, so that a file is as large as its text.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::super::error::Refusal;

/// Maximum number of values in a file.
const MAX_VALUES: usize = 100_000;
/// Maximum nesting.
const MAX_DEPTH: usize = 64;

/// A value, with lines from 0.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) column: usize,
    /// The line in which its last part ends.
    pub(super) last_line: usize,
    pub(super) content: Content,
}

/// The content of a value; the flag of a list or an object says whether it is written in brackets.
#[derive(Debug)]
pub(super) enum Content {
    /// A text, and whether it has no quotes.
    Text(String, bool),
    List(Vec<Node>, bool),
    Object(Vec<(Node, Node)>, bool),
    Alias,
}

impl Node {
    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text, _) => Some(text),
            _ => None,
        }
    }

    /// Whether there is no value behind a key.
    pub(super) fn is_absent(&self) -> bool {
        matches!(&self.content, Content::Text(text, true) if text.is_empty())
    }
}

/// A list or an object that is not complete.
struct Open {
    node: Node,
    key: Option<Node>,
}

/// Reads the only document of a text; `None` if it has no value.
pub(super) fn read(text: &str) -> Result<Option<Node>, Refusal> {
    let mut open: Vec<Open> = Vec::new();
    let mut document = None;
    let mut count = 0;
    let mut chars = Chars::new(text);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| Refusal {
            at: None,
            message: format!(
                "not valid YAML in line {}: {}; correct it first",
                error.marker().line(),
                error.info()
            ),
        })?;
        count += 1;
        let depth = open.len();
        if count > 2 * MAX_VALUES || depth > MAX_DEPTH {
            return Err(refusal(&span, "the file is too large or too deep"));
        }
        let first = chars.at(span.start.index());
        let complete = match event {
            Event::DocumentStart(_) if document.is_some() => {
                return Err(refusal(&span, "the file has more than one document"));
            }
            Event::DocumentEnd if first == Some('.') => {
                return Err(refusal(&span, "the file ends with `...`; remove it first"));
            }
            Event::Scalar(value, style, ..) => {
                let is_plain = style == ScalarStyle::Plain;
                Some(node(&span, Content::Text(value.into_owned(), is_plain)))
            }
            Event::Alias(_) => Some(node(&span, Content::Alias)),
            Event::SequenceStart(..) => {
                let content = Content::List(Vec::new(), first == Some('['));
                open.push(Open {
                    node: node(&span, content),
                    key: None,
                });
                None
            }
            Event::MappingStart(..) => {
                let content = Content::Object(Vec::new(), first == Some('{'));
                open.push(Open {
                    node: node(&span, content),
                    key: None,
                });
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|mut closed| {
                let is_flow = matches!(
                    closed.node.content,
                    Content::List(_, true) | Content::Object(_, true)
                );
                // A block ends with its last value; the parser sees its end at the next one.
                if is_flow {
                    closed.node.last_line = last_line(&span);
                }
                closed.node
            }),
            _ => None,
        };
        let Some(complete) = complete else { continue };
        let Some(parent) = open.last_mut() else {
            document = Some(complete);
            continue;
        };
        parent.node.last_line = parent.node.last_line.max(complete.last_line);
        match &mut parent.node.content {
            Content::List(items, _) => items.push(complete),
            Content::Object(members, _) => match parent.key.take() {
                None => parent.key = Some(complete),
                Some(key) => members.push((key, complete)),
            },
            Content::Text(..) | Content::Alias => {}
        }
    }
    Ok(document.filter(|document| !document.is_absent()))
}

fn node(span: &Span, content: Content) -> Node {
    Node {
        line: span.start.line().saturating_sub(1),
        column: span.start.col(),
        last_line: last_line(span),
        content,
    }
}

/// A text in several lines ends where the next line begins.
fn last_line(span: &Span) -> usize {
    let (start, end) = (span.start.line(), span.end.line());
    let last = match span.end.col() == 0 && end > start {
        true => end - 1,
        false => end,
    };
    last.saturating_sub(1)
}

fn refusal(span: &Span, message: &str) -> Refusal {
    Refusal {
        at: None,
        message: format!("{message} (line {})", span.start.line()),
    }
}

/// The characters of a text by their numbers. The parser counts characters, and its places come in order.
struct Chars<'t> {
    text: &'t str,
    /// The number and the offset of the last one.
    last: (usize, usize),
}

impl<'t> Chars<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, last: (0, 0) }
    }

    fn at(&mut self, index: usize) -> Option<char> {
        let (number, offset) = match self.last.0 <= index {
            true => self.last,
            false => (0, 0),
        };
        let rest = self.text.get(offset..)?;
        let (behind, found) = rest.char_indices().nth(index - number)?;
        self.last = (index, offset + behind);
        Some(found)
    }
}
