//! One walk over a JSON text with bounds on strings and lists: values within the bounds are copied byte
//! for byte, the rest is left out and recorded.
//!
//! The text is well-formed and at most 512 levels deep; the framer checked both.

use memchr::{memchr, memchr2};
use serde::Serialize;

use super::MAX_NAMED_CUTS;
use super::documents::Documents;

/// The maximum lengths of strings and lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Characters of a string.
    pub(super) string: usize,
    /// Items of a list.
    pub(super) list: usize,
}

impl Bounds {
    /// Everything is kept.
    pub(super) const NONE: Self = Self {
        string: usize::MAX,
        list: usize::MAX,
    };
}

/// One part of a result that was shortened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CutDetail {
    /// Where, as a JSON pointer into the result. Within a JSON document in a text block, the pointer into the document
    /// follows the one to the text.
    pub pointer: String,
    /// `string`, `list`, `member` or `head`.
    pub kind: &'static str,
    /// Characters or items before.
    pub from: usize,
    /// Characters or items kept.
    pub to: usize,
}

/// The measurements of a walk, and the text that it wrote, if it wrote one.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The bounded text; empty for a measurement.
    pub(super) out: Vec<u8>,
    /// Its length in characters.
    pub(super) chars: usize,
    /// The first [`MAX_NAMED_CUTS`] cuts, in order.
    pub(super) cuts: Vec<CutDetail>,
    /// The number of further cuts.
    pub(super) unnamed: usize,
    /// The longest string, in characters.
    pub(super) longest_string: usize,
    /// The longest list, in items.
    pub(super) longest_list: usize,
}

impl Walk {
    /// Measures the length of the bounded text, up to `budget`; the walk stops when it exceeds the budget.
    pub(super) fn measure(
        text: &[u8],
        documents: &Documents,
        bounds: Bounds,
        budget: usize,
    ) -> Self {
        Walker::run(text, Some(documents), bounds, Some(budget))
    }

    /// Writes the bounded text.
    pub(super) fn write(text: &[u8], documents: &Documents, bounds: Bounds) -> Self {
        Walker::run(text, Some(documents), bounds, None)
    }
}

/// Returns the number of Unicode scalar values in a UTF-8 text.
pub(super) fn chars(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// One step of the path from the root to the current value, for pointers.
enum PathStep<'t> {
    /// A member; its key as it is written, without quotes.
    Member(&'t [u8]),
    Item(usize),
}

struct Walker<'t> {
    text: &'t [u8],
    /// The documents in its strings; `None` if the text is itself such a document: it is written as the content of a
    /// string.
    documents: Option<&'t Documents>,
    bounds: Bounds,
    /// The maximum number of characters of a measurement; `None` if the text is written.
    budget: Option<usize>,
    at: usize,
    places: Vec<PathStep<'t>>,
    walk: Walk,
}

impl<'t> Walker<'t> {
    fn run(
        text: &'t [u8],
        documents: Option<&'t Documents>,
        bounds: Bounds,
        budget: Option<usize>,
    ) -> Walk {
        let mut walker = Self {
            text,
            documents,
            bounds,
            budget,
            at: 0,
            places: Vec::new(),
            walk: Walk::default(),
        };
        walker.space();
        walker.value();
        walker.space();
        walker.walk
    }

    fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn emit(&mut self, bytes: &[u8]) {
        if self.documents.is_some() {
            self.count(chars(bytes));
            if self.budget.is_none() {
                self.walk.out.extend_from_slice(bytes);
            }
            return;
        }
        self.count(escaped_chars(bytes));
        if self.budget.is_none() {
            push_escaped(&mut self.walk.out, bytes);
        }
    }

    /// Counts characters, and ends a measurement that is over its budget.
    fn count(&mut self, chars: usize) {
        self.walk.chars += chars;
        if self.budget.is_some_and(|budget| self.walk.chars > budget) {
            self.at = self.text.len();
        }
    }

    /// Copies up to `end`, unless a measurement has stopped.
    fn copy_to(&mut self, end: usize) {
        let end = end.min(self.text.len());
        let bytes = &self.text[self.at..end];
        self.at = end;
        self.emit(bytes);
    }

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        self.copy_to(self.at + length);
    }

    fn value(&mut self) {
        match self.peek() {
            b'"' => self.string(),
            b'[' => self.list(),
            b'{' => self.object(),
            _ => {
                let end = skip_scalar(self.text, self.at);
                self.copy_to(end);
            }
        }
    }

    fn string(&mut self) {
        let end = skip_string(self.text, self.at);
        if self.is_data() {
            if self.budget.is_none() {
                self.walk.out.extend_from_slice(&self.text[self.at..end]);
            }
            self.at = end;
            return;
        }
        let document = self.documents.and_then(|documents| documents.at(self.at));
        if let Some(document) = document {
            self.document(document, end);
            return;
        }
        let content = &self.text[self.at + 1..end - 1];
        // A string of fewer bytes has fewer characters; most need no count.
        let length = if content.len() > self.walk.longest_string.min(self.bounds.string) {
            length(content)
        } else {
            0
        };
        self.walk.longest_string = self.walk.longest_string.max(length);
        if length <= self.bounds.string {
            self.copy_to(end);
            return;
        }
        let kept = prefix(content, self.bounds.string);
        self.emit(b"\"");
        self.emit(kept);
        self.emit("…\"".as_bytes());
        self.at = end;
        self.note("string", length, self.bounds.string);
    }

    /// Whether the current value is the data of an image, of audio or of a resource.
    fn is_data(&self) -> bool {
        use PathStep::{Item, Member};
        self.documents.is_some()
            && matches!(
                &self.places[..],
                [Member(b"content"), Item(_), Member(b"data")]
                    | [
                        Member(b"content"),
                        Item(_),
                        Member(b"resource"),
                        Member(b"blob")
                    ]
            )
    }

    /// Walks over a JSON document in the string up to `end`.
    fn document(&mut self, document: &[u8], end: usize) {
        let left = self
            .budget
            .map(|budget| budget.saturating_sub(self.walk.chars));
        let walk = Walker::run(document, None, self.bounds, left);
        self.walk.longest_string = self.walk.longest_string.max(walk.longest_string);
        self.walk.longest_list = self.walk.longest_list.max(walk.longest_list);
        if walk.cuts.is_empty() {
            // The text of the server has at least as many characters as the one that would be written.
            self.copy_to(end);
            return;
        }
        self.at = end;
        self.count(walk.chars + 2);
        if self.budget.is_none() {
            self.walk.out.push(b'"');
            self.walk.out.extend_from_slice(&walk.out);
            self.walk.out.push(b'"');
        }
        let place = self.pointer();
        self.walk.unnamed += walk.unnamed;
        for cut in walk.cuts {
            let pointer = format!("{place}{}", cut.pointer);
            self.push_cut(CutDetail { pointer, ..cut });
        }
    }

    fn object(&mut self) {
        self.copy_to(self.at + 1);
        self.space();
        while self.peek() == b'"' {
            let end = skip_string(self.text, self.at);
            self.places
                .push(PathStep::Member(&self.text[self.at + 1..end - 1]));
            self.copy_to(end);
            self.space();
            self.copy_to(self.at + 1);
            self.space();
            self.value();
            self.places.pop();
            self.space();
            if self.peek() == b',' {
                self.copy_to(self.at + 1);
                self.space();
            }
        }
        self.copy_to(self.at + 1);
    }

    fn list(&mut self) {
        self.copy_to(self.at + 1);
        self.space();
        let mut items = 0;
        while !matches!(self.peek(), b']' | 0) {
            if items < self.bounds.list {
                if items > 0 {
                    self.emit(b",");
                    self.space();
                }
                self.places.push(PathStep::Item(items));
                self.value();
                self.places.pop();
                self.space();
            } else {
                self.at = skip_value(self.text, self.at);
                self.skip_space();
            }
            items += 1;
            if self.peek() == b',' {
                self.at += 1;
                if items >= self.bounds.list {
                    self.skip_space();
                }
            }
        }
        self.walk.longest_list = self.walk.longest_list.max(items);
        self.copy_to(self.at + 1);
        if items > self.bounds.list {
            self.note("list", items, self.bounds.list);
        }
    }

    fn skip_space(&mut self) {
        while self.peek().is_ascii_whitespace() {
            self.at += 1;
        }
    }

    fn note(&mut self, kind: &'static str, from: usize, to: usize) {
        if self.walk.cuts.len() == MAX_NAMED_CUTS {
            self.walk.unnamed += 1;
            return;
        }
        let pointer = self.pointer();
        self.push_cut(CutDetail {
            pointer,
            kind,
            from,
            to,
        });
    }

    fn push_cut(&mut self, cut: CutDetail) {
        match self.walk.cuts.len() < MAX_NAMED_CUTS {
            true => self.walk.cuts.push(cut),
            false => self.walk.unnamed += 1,
        }
    }

    /// Returns the pointer to the current value.
    fn pointer(&self) -> String {
        let steps = self.places.iter().map(|place| match place {
            PathStep::Item(index) => format!("/{index}"),
            PathStep::Member(key) => {
                format!("/{}", broker_model::json::escape_token(&decoded(key)))
            }
        });
        steps.collect()
    }
}

/// Returns the number of characters of a text as the content of a string.
fn escaped_chars(text: &[u8]) -> usize {
    let escapes = text.iter().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        0..=0x1f => 5,
        _ => 0,
    });
    chars(text) + escapes.sum::<usize>()
}

/// Appends a text as the content of a string.
fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
}

/// Returns a string's content as text.
fn decoded(content: &[u8]) -> String {
    let quoted = [b"\"", content, b"\""].concat();
    // A lone surrogate has no text; its escape is shown as it is written.
    serde_json::from_slice(&quoted)
        .unwrap_or_else(|_| String::from_utf8_lossy(content).into_owned())
}

/// Returns the bytes of one character of a string's content: an escape, a pair of surrogate escapes, or one UTF-8
/// sequence.
pub(super) fn character(content: &[u8]) -> usize {
    let is_surrogate = |at: usize, range: std::ops::RangeInclusive<u8>| {
        content.get(at..at + 4).is_some_and(|escape| {
            escape.starts_with(b"\\u")
                && matches!(escape[2], b'd' | b'D')
                && range.contains(&escape[3].to_ascii_lowercase())
        })
    };
    match content {
        [b'\\', b'u', ..] => {
            let pair = is_surrogate(0, b'8'..=b'b') && is_surrogate(6, b'c'..=b'f');
            (if pair { 12 } else { 6 }).min(content.len())
        }
        [b'\\', ..] => 2.min(content.len()),
        [first, ..] => match first {
            0..=0x7f => 1,
            0x80..=0xdf => 2.min(content.len()),
            0xe0..=0xef => 3.min(content.len()),
            _ => 4.min(content.len()),
        },
        [] => 0,
    }
}

/// Returns the number of characters in a string's content.
fn length(content: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while let Some(plain) = memchr(b'\\', &content[at..]) {
        count += chars(&content[at..at + plain]) + 1;
        at += plain;
        at += character(&content[at..]);
    }
    count + chars(&content[at..])
}

/// Returns the first `count` characters of a string's content.
fn prefix(content: &[u8], count: usize) -> &[u8] {
    let mut at = 0;
    for _ in 0..count {
        at += character(&content[at..]);
    }
    &content[..at]
}

/// Returns the index behind the string that begins at `at`.
fn skip_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(plain) = text.get(at..).and_then(|rest| memchr2(b'\\', b'"', rest)) {
        at += plain;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

fn skip_scalar(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    at + rest
        .iter()
        .take_while(|byte| !matches!(byte, b',' | b']' | b'}') && !byte.is_ascii_whitespace())
        .count()
        .max(usize::from(!rest.is_empty()))
}

/// Returns the index behind the value that begins at `at`.
fn skip_value(text: &[u8], mut at: usize) -> usize {
    match text.get(at) {
        Some(b'"') => skip_string(text, at),
        Some(b'[' | b'{') => {
            let mut depth = 0usize;
            while at < text.len() {
                match text[at] {
                    b'"' => {
                        at = skip_string(text, at);
                        continue;
                    }
                    b'[' | b'{' => depth += 1,
                    b']' | b'}' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    break;
                }
            }
            at
        }
        _ => skip_scalar(text, at),
    }
}
