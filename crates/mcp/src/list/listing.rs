//! Lists that are read page by page. Each element is accepted or left out by itself.

use std::collections::{HashMap, HashSet};

use broker_model::LeftOutCode;
use broker_model::digest::Digest;
use broker_model::item::ItemKind;
use broker_model::json::{each_element, each_member};
use broker_model::left_out::{LeftOut, MAX_NAME_CHARS, MAX_REASON_CHARS};
use broker_model::redact::Redactor;
use broker_model::snapshot::ListedTool;
use broker_model::text::shown_line;
use broker_model::trust::Exposure;
use bytes::Bytes;
use serde_json::value::RawValue;

use super::element::{self, Refusal};
use super::{List, TOOLS, invalid, unread};
use crate::concurrency::ConcurrencyLimits;
use crate::failure::SourceFailure;

/// The maximum number of tools, prompts, templates and resources of a source.
pub(super) const MAX_TOOLS: usize = 10_000;
/// The maximum bytes of a cursor.
pub(super) const MAX_CURSOR_BYTES: usize = 4 << 10;
/// The number of pages in a row without a new element that ends a list.
pub(super) const MAX_REPEATED_PAGES: usize = 10;
/// Maximum number of characters of a cursor in a warning.
const MAX_SHOWN_CURSOR: usize = 100;
/// Maximum number of warnings about the lists of a source.
const MAX_WARNINGS: usize = 20;

/// The lists of a source as far as they were read.
pub(super) struct Listing {
    /// The list whose pages are added.
    list: List,
    /// The elements of this list; `None` in the place of one that was defined a second time.
    elements: Vec<Option<ListedTool>>,
    /// The elements of the lists before it.
    complete: Vec<ListedTool>,
    seen: HashMap<String, Seen>,
    /// The digests of elements without a key.
    nameless: HashSet<Digest>,
    cursors: HashSet<String>,
    /// Whether a page of this list was read.
    has_page: bool,
    /// The last pages in a row without a new element.
    repeated_pages: usize,
    /// The bytes of all pages, and their maximum.
    bytes: usize,
    limit: usize,
    /// At most one for each different element, and one for each list.
    left_out: Vec<LeftOut>,
    warnings: Vec<String>,
    exposure: Exposure,
    pub(super) redactor: Redactor,
}

/// An element that was listed before.
enum Seen {
    /// Its place in `elements`.
    Listed(usize),
    /// It was left out; one record is enough.
    LeftOut,
}

/// The members of a page that are read.
#[derive(Default)]
struct Page<'a> {
    tools: Option<&'a RawValue>,
    next_cursor: Option<&'a RawValue>,
    result_type: Option<&'a RawValue>,
    first_duplicate: Option<&'static str>,
}

impl<'a> Page<'a> {
    fn read(page: &'a [u8], elements: &'static str) -> serde_json::Result<Self> {
        let mut out = Self::default();
        each_member(page, |name, value| {
            let (place, name) = match &*name {
                name if name == elements => (&mut out.tools, elements),
                "nextCursor" => (&mut out.next_cursor, "nextCursor"),
                "resultType" => (&mut out.result_type, "resultType"),
                _ => return,
            };
            if place.replace(value).is_some() {
                out.first_duplicate = Some(name);
            }
        })?;
        Ok(out)
    }
}

impl Listing {
    pub(super) fn new(limit: usize, exposure: Exposure, redactor: Redactor) -> Self {
        Self {
            list: TOOLS,
            elements: Vec::new(),
            complete: Vec::new(),
            seen: HashMap::new(),
            nameless: HashSet::new(),
            cursors: HashSet::new(),
            has_page: false,
            repeated_pages: 0,
            bytes: 0,
            limit,
            left_out: Vec::new(),
            warnings: Vec::new(),
            exposure,
            redactor,
        }
    }

    /// Begins another list. The bytes of all lists count together.
    pub(super) fn begin(&mut self, list: List) {
        self.list = list;
        self.cursors.clear();
        self.nameless.clear();
        (self.has_page, self.repeated_pages) = (false, 0);
    }

    /// Returns the list whose pages are added.
    pub(super) const fn list(&self) -> List {
        self.list
    }

    /// Ends the list and returns its elements, for further checks before [`Listing::keep`].
    pub(super) fn take_list(&mut self) -> Vec<ListedTool> {
        std::mem::take(&mut self.elements)
            .into_iter()
            .flatten()
            .collect()
    }

    /// Adds the checked elements of a list.
    pub(super) fn keep(&mut self, elements: Vec<ListedTool>) {
        self.complete.extend(elements);
    }

    /// Returns the elements of all lists, the records of those that were left out, and the warnings.
    pub(super) fn finish(mut self) -> (Vec<ListedTool>, Vec<LeftOut>, Vec<String>) {
        let last = self.take_list();
        self.keep(last);
        (self.complete, self.left_out, self.warnings)
    }

    /// Whether the list has neither an element nor a record of one.
    pub(super) fn is_empty(&self) -> bool {
        self.elements.is_empty() && self.nameless.is_empty()
    }

    /// Returns the number of records until now.
    pub(super) fn records(&self) -> usize {
        self.left_out.len()
    }

    /// Drops the records after the first ones.
    pub(super) fn forget_records(&mut self, after: usize) {
        self.left_out.truncate(after);
    }

    /// Runs [`Listing::add_page`] on a blocking thread, when a permit is free.
    pub(super) async fn add_page_aside(
        &mut self,
        page: Bytes,
        concurrency: &ConcurrencyLimits,
    ) -> Result<Option<String>, SourceFailure> {
        let empty = Self::new(0, self.exposure.clone(), Redactor::default());
        let mut taken = std::mem::replace(self, empty);
        let added = concurrency.parse_aside(move || {
            let cursor = taken.add_page(&page);
            (taken, cursor)
        });
        let (taken, cursor) = added.await.map_err(|error| unread(&error))?;
        *self = taken;
        cursor
    }

    /// Adds a page. Returns the cursor of the next page, if there is one. A page that cannot be read ends the list; it
    /// is an error only if it is the first page.
    pub(super) fn add_page(&mut self, page: &[u8]) -> Result<Option<String>, SourceFailure> {
        match self.read_page(page) {
            Ok(cursor) => Ok(cursor),
            Err(reason) => {
                self.cut(reason, &String::from_utf8_lossy(page))?;
                Ok(None)
            }
        }
    }

    /// Leaves out the rest of the list. A tool list without a readable first page is refused, since the source has no
    /// smaller part.
    pub(super) fn cut(&mut self, reason: String, text: &str) -> Result<(), SourceFailure> {
        if self.list.kind == ItemKind::Tool && !self.has_page {
            return Err(invalid(reason));
        }
        let refusal = Refusal {
            code: LeftOutCode::ListCut,
            place: String::new(),
            reason,
        };
        self.record(None, refusal, LeftOut::digest_of(text));
        Ok(())
    }

    /// Adds a warning about the list, with text of the server that is escaped here.
    pub(super) fn warn(&mut self, warning: impl Into<String>) {
        if self.warnings.len() < MAX_WARNINGS {
            let warning = shown_line(&self.redactor.redact(&warning.into()), MAX_REASON_CHARS);
            self.warnings.push(warning);
        }
    }

    fn read_page(&mut self, page: &[u8]) -> Result<Option<String>, String> {
        let name = self.list.name;
        self.bytes += page.len();
        if self.bytes > self.limit {
            return Err(format!(
                "the {name} has more than {} bytes (`limits.listing_bytes`): {} in the first {} tools and the page after them",
                self.limit,
                self.bytes,
                self.seen.len()
            ));
        }
        let unreadable = |error: &dyn std::fmt::Display, redactor: &Redactor| {
            let error = shown_line(&redactor.redact(&error.to_string()), 120);
            format!("the {name} cannot be read: {error}")
        };
        let page = Page::read(page, self.list.member)
            .map_err(|error| unreadable(&error, &self.redactor))?;
        if let Some(name) = page.first_duplicate {
            return Err(unreadable(
                &format!("duplicate field `{name}`"),
                &self.redactor,
            ));
        }
        let is_complete = |kind: &RawValue| {
            kind.get() == "null"
                || serde_json::from_str::<String>(kind.get()).is_ok_and(|kind| kind == "complete")
        };
        if page.result_type.is_some_and(|kind| !is_complete(kind)) {
            return Err(format!(
                "the server asks for input before it sends its {name}"
            ));
        }
        let Some(tools) = page.tools else {
            let missing = format!("missing field `{}`", self.list.member);
            return Err(unreadable(&missing, &self.redactor));
        };
        let before = self.distinct();
        let added = each_element(tools.get().as_bytes(), |raw| self.add_element(raw.get()))
            .map_err(|error| unreadable(&error, &self.redactor))?;
        self.has_page = true;
        added?;
        let is_new = self.distinct() > before;
        self.next_cursor(page.next_cursor, is_new)
    }

    /// Returns the cursor of the next page. A server whose cursor does not advance has no further page.
    fn next_cursor(
        &mut self,
        raw: Option<&RawValue>,
        is_new: bool,
    ) -> Result<Option<String>, String> {
        let Some(raw) = raw.filter(|raw| raw.get() != "null") else {
            return Ok(None);
        };
        let cursor: String = serde_json::from_str(raw.get())
            .map_err(|_| "`nextCursor` is not a string".to_owned())?;
        if cursor.len() > MAX_CURSOR_BYTES {
            return Err(format!(
                "`nextCursor` has {} bytes, at most {MAX_CURSOR_BYTES} are allowed",
                cursor.len()
            ));
        }
        self.repeated_pages = if is_new { 0 } else { self.repeated_pages + 1 };
        let shown = shown_line(&self.redactor.redact(&cursor), MAX_SHOWN_CURSOR);
        let name = self.list.name;
        if !self.cursors.insert(cursor.clone()) {
            self.warn(format!(
                "the {name} ends at a cursor that was seen before: `{shown}`"
            ));
            return Ok(None);
        }
        if self.repeated_pages >= MAX_REPEATED_PAGES {
            self.warn(format!(
                "the {name} ends after {MAX_REPEATED_PAGES} pages in a row without anything new; the last cursor is `{shown}`"
            ));
            return Ok(None);
        }
        Ok(Some(cursor))
    }

    /// Returns the number of different elements of all lists.
    fn distinct(&self) -> usize {
        self.seen.len() + self.nameless.len()
    }

    /// Adds an element, or the record of one that is left out. Fails at the maximum number of elements.
    fn add_element(&mut self, raw: &str) -> Result<(), String> {
        let kind = self.list.kind;
        let key = element::key_of(raw, kind);
        let is_known = key.as_ref().is_some_and(|key| self.seen.contains_key(key));
        if !is_known && self.distinct() >= MAX_TOOLS {
            return Err(format!(
                "the server lists more than {MAX_TOOLS} tools, prompts, templates and resources"
            ));
        }
        let Some(key) = key else {
            let refusal = element::read(raw, kind).err().unwrap_or(Refusal {
                code: LeftOutCode::NameInvalid,
                place: String::new(),
                reason: format!("its `{}` cannot be read", kind.member()),
            });
            let digest = LeftOut::digest_of(raw);
            if self.nameless.insert(digest.clone()) {
                self.record(None, refusal, digest);
            }
            return Ok(());
        };
        let is_hidden = !self.exposure.exposes(&key);
        let read = match element::read(raw, kind) {
            Err(_) if is_hidden => Ok(ListedTool::unread(kind, key.clone(), raw)),
            read => read,
        };
        match (self.seen.get(&key), read) {
            (None, Ok(element)) => {
                self.seen.insert(key, Seen::Listed(self.elements.len()));
                self.elements.push(Some(element));
            }
            (None, Err(refusal)) => {
                let digest = LeftOut::digest_of(raw);
                self.record(Some(&key), refusal, digest);
                self.seen.insert(key, Seen::LeftOut);
            }
            // A hidden element has no effect, however often it is defined.
            (Some(_), _) if is_hidden => {}
            (Some(Seen::Listed(at)), read) => {
                let at = *at;
                let first = self.elements.get(at).and_then(Option::as_ref);
                let Some(first) = first.filter(|first| !read.is_ok_and(|new| **first == new))
                else {
                    return Ok(());
                };
                let both = LeftOut::digest_of(&format!("{}\n{raw}", first.text()));
                self.elements[at] = None;
                self.defined_twice(key, both);
            }
            (Some(Seen::LeftOut), _) => {}
        }
        Ok(())
    }

    fn defined_twice(&mut self, key: String, digest: Digest) {
        let refusal = Refusal {
            code: LeftOutCode::DefinedTwice,
            place: String::new(),
            reason: "the server defines it twice, with different bytes".to_owned(),
        };
        self.record(Some(&key), refusal, digest);
        self.seen.insert(key, Seen::LeftOut);
    }

    /// Records an element that is left out because of its `x-mcp-header`; a hidden one stays hidden.
    pub(super) fn refuse_header(&mut self, tool: &ListedTool) {
        if !self.exposure.exposes(tool.name()) {
            let hidden = ListedTool::unread(self.list.kind, tool.name().to_owned(), tool.text());
            self.complete.push(hidden);
            return;
        }
        let refusal = Refusal {
            code: LeftOutCode::HeaderParam,
            place: "/inputSchema".to_owned(),
            reason: "its `x-mcp-header` breaks the rules of the protocol".to_owned(),
        };
        self.record(Some(tool.name()), refusal, LeftOut::digest_of(tool.text()));
    }

    fn record(&mut self, key: Option<&str>, refusal: Refusal, digest: Digest) {
        let shown = |text: &str, most| shown_line(&self.redactor.redact(text), most);
        let name = key.map(|key| shown(ItemKind::parse_key(key).1, MAX_NAME_CHARS));
        let part = LeftOut {
            kind: self.list.kind,
            name,
            code: refusal.code,
            place: shown(&refusal.place, MAX_NAME_CHARS),
            reason: shown(&refusal.reason, MAX_REASON_CHARS),
            digest,
        };
        self.left_out.push(part);
    }
}
