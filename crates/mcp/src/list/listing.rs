//! The elements of the pages of lists, checked one at a time.

use std::collections::HashSet;

use broker_model::item::{ItemKind, LIVE, id_of, object_schema, prompt_schema};
use broker_model::json::{self, each_element, each_member, estimate};
use broker_model::redact::Redactor;
use broker_model::snapshot::ListedTool;
use broker_model::text::shown_line;
use broker_model::uri_template::UriTemplate;
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{List, TOOLS, invalid, unread};
use crate::concurrency::ConcurrencyLimits;
use crate::failure::SourceFailure;

/// The maximum number of tools of a source.
pub(super) const MAX_TOOLS: usize = 10_000;
/// The maximum bytes of the text of one tool.
pub(super) const MAX_TOOL_BYTES: usize = 1 << 20;
/// The maximum bytes that one tool may take once it is parsed; a schema within the limits of a lock
/// takes less.
const MAX_PARSED_BYTES: u64 = 16 << 20;
/// The maximum bytes of a cursor.
pub(super) const MAX_CURSOR_BYTES: usize = 4 << 10;
/// The member of a tool with the schema of its arguments.
const SCHEMA: &str = "inputSchema";

/// The tools, prompts, templates and resources that were listed so far.
pub(super) struct Listing {
    /// The list whose pages are added.
    list: List,
    pub(super) tools: Vec<ListedTool>,
    names: HashSet<String>,
    cursors: HashSet<String>,
    /// The bytes of all pages, and their maximum.
    bytes: usize,
    limit: usize,
    pub(super) redactor: Redactor,
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
    pub(super) fn new(limit: usize, redactor: Redactor) -> Self {
        Self {
            list: TOOLS,
            tools: Vec::new(),
            names: HashSet::new(),
            cursors: HashSet::new(),
            bytes: 0,
            limit,
            redactor,
        }
    }

    /// Begins another list. The bytes of all lists count together.
    pub(super) fn begin(&mut self, list: List) {
        self.list = list;
        self.cursors.clear();
    }

    /// [`Listing::add_page`] on a blocking thread, when a permit is free.
    pub(super) async fn add_page_aside(
        mut self,
        page: Bytes,
        concurrency: &ConcurrencyLimits,
    ) -> Result<(Self, Option<String>), SourceFailure> {
        let added = concurrency.parse_aside(move || {
            let cursor = self.add_page(&page)?;
            Ok((self, cursor))
        });
        added.await.unwrap_or_else(|error| Err(unread(&error)))
    }

    /// Adds a page. Returns the cursor of the next page, if there is one. An empty cursor is a cursor.
    pub(super) fn add_page(&mut self, page: &[u8]) -> Result<Option<String>, SourceFailure> {
        self.bytes += page.len();
        if self.bytes > self.limit {
            return Err(invalid(format!(
                "the {} has more than {} bytes (`limits.listing_bytes`): {} in the first {} tools and the page after them",
                self.list.name,
                self.limit,
                self.bytes,
                self.tools.len()
            )));
        }
        let name = self.list.name;
        let unreadable = |error: &dyn std::fmt::Display, redactor: &Redactor| {
            let error = shown_line(&redactor.redact(&error.to_string()), 120);
            invalid(format!("the {name} cannot be read: {error}"))
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
            serde_json::from_str::<String>(kind.get()).is_ok_and(|kind| kind == "complete")
        };
        if page.result_type.is_some_and(|kind| !is_complete(kind)) {
            return Err(invalid(
                "the server asks for input before it lists its tools",
            ));
        }
        let Some(tools) = page.tools else {
            let missing = format!("missing field `{}`", self.list.member);
            return Err(unreadable(&missing, &self.redactor));
        };
        each_element(tools.get().as_bytes(), |raw| self.add_tool(raw.get()))
            .map_err(|error| unreadable(&error, &self.redactor))??;
        let Some(raw) = page.next_cursor.filter(|raw| raw.get() != "null") else {
            return Ok(None);
        };
        let cursor: String =
            serde_json::from_str(raw.get()).map_err(|_| invalid("`nextCursor` is not a string"))?;
        if cursor.len() > MAX_CURSOR_BYTES {
            return Err(invalid(format!(
                "`nextCursor` has {} bytes, at most {MAX_CURSOR_BYTES} are allowed",
                cursor.len()
            )));
        }
        if !self.cursors.insert(cursor.clone()) {
            return Err(invalid(format!(
                "the {} repeats a cursor, so it would never end",
                self.list.name
            )));
        }
        Ok(Some(cursor))
    }

    fn add_tool(&mut self, raw: &str) -> Result<(), SourceFailure> {
        if self.tools.len() >= MAX_TOOLS {
            return Err(invalid(format!(
                "the server lists more than {MAX_TOOLS} tools"
            )));
        }
        match self.read_tool(raw) {
            Ok(tool) => {
                self.tools.push(tool);
                Ok(())
            }
            Err(reason) => {
                let shown = |text: &str| shown_line(&self.redactor.redact(text), 120);
                let name = name_of(raw, self.list.kind).map_or_else(
                    || format!("number {}", self.tools.len() + 1),
                    |name| format!("`{}`", shown(&name)),
                );
                let kind = self.list.kind.as_str();
                Err(invalid(format!("{kind} {name}: {}", shown(&reason))))
            }
        }
    }

    /// Checks a tool. Its parsed form is freed before the next tool is parsed.
    fn read_tool(&mut self, raw: &str) -> Result<ListedTool, String> {
        if raw.len() > MAX_TOOL_BYTES {
            return Err(format!(
                "it has {} bytes, at most {MAX_TOOL_BYTES} are allowed",
                raw.len()
            ));
        }
        let parsed = estimate(raw.as_bytes()).bytes;
        if parsed > MAX_PARSED_BYTES {
            return Err(format!(
                "it would take {parsed} bytes once parsed, at most {MAX_PARSED_BYTES} are allowed"
            ));
        }
        let Value::Object(tool) = json::parse(raw).map_err(|error| error.to_string())? else {
            return Err("a tool is not an object".to_owned());
        };
        let kind = self.list.kind;
        let member = kind.member();
        let name = match tool.get(member) {
            Some(Value::String(uri)) if kind == ItemKind::Resource && uri == LIVE => {
                return Err(format!("`{LIVE}` is not a URI"));
            }
            Some(Value::String(name)) if !name.is_empty() => kind.key(name),
            Some(Value::String(_)) if kind == ItemKind::Tool => {
                return Err("its name is empty".to_owned());
            }
            Some(Value::String(_)) => return Err(format!("its `{member}` is empty")),
            _ => return Err(format!("`{member}` is not a string")),
        };
        if tool
            .get("description")
            .is_some_and(|text| !text.is_string())
        {
            return Err("`description` is not a string".to_owned());
        }
        if !self.names.insert(name.clone()) {
            return Err("it is listed twice".to_owned());
        }
        match args_schema(kind, &tool)? {
            None => Ok(ListedTool::new(name, raw)),
            Some(schema) => Ok(ListedTool::new(name, &with_schema(raw, &schema))),
        }
    }
}

/// The schema of the arguments that a prompt, template or resource takes; `None` for a tool, which has one of the server.
fn args_schema(kind: ItemKind, raw: &Map<String, Value>) -> Result<Option<Value>, String> {
    if kind != ItemKind::Tool && raw.contains_key(SCHEMA) {
        return Err(format!(
            "it has the member `{SCHEMA}`, which is one of tools"
        ));
    }
    Ok(match kind {
        ItemKind::Tool => None,
        ItemKind::Prompt => Some(prompt_schema(raw)),
        ItemKind::Template => {
            let template = UriTemplate::parse(id_of(kind, raw));
            Some(template.map_err(|error| error.to_string())?.schema())
        }
        ItemKind::Resource => Some(object_schema(Map::new(), Vec::new())),
    })
}

/// The text of an object with the schema of its arguments, which makes it comparable like a tool.
fn with_schema(raw: &str, schema: &Value) -> String {
    let inner = raw.trim().strip_suffix('}').unwrap_or(raw);
    format!(r#"{inner},"{SCHEMA}":{schema}}}"#)
}

/// The identifier of a listed object, from text that may be invalid otherwise.
fn name_of(raw: &str, kind: ItemKind) -> Option<String> {
    let mut name = None;
    let read = each_member(raw.as_bytes(), |member, value| {
        if member == kind.member() {
            name = serde_json::from_str(value.get()).ok();
        }
    });
    read.ok().and(name)
}
