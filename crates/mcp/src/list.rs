//! Reads a server's complete tool list: every page, strictly, within bounds of number and bytes. Tools
//! stay text; they are parsed one at a time for checks, on a blocking thread.

use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use broker_model::SourceCause;
use broker_model::json::{self, each_element, each_member, estimate};
use broker_model::redact::Redactor;
use broker_model::snapshot::ListedTool;
use broker_model::text::shown_line;
use broker_wire::protocol::METHOD_NOT_FOUND;
use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::concurrency::ConcurrencyLimits;
use crate::connection::{RequestError, RequestKind};
use crate::failure::SourceFailure;
use crate::link::Link;
use crate::request;
use crate::spec::SourceSpec;

/// The maximum number of pages.
const MAX_PAGES: usize = 1000;
/// The maximum number of tools of a source.
const MAX_TOOLS: usize = 10_000;
/// The maximum bytes of the text of one tool.
const MAX_TOOL_BYTES: usize = 1 << 20;
/// The maximum bytes that one tool may take once it is parsed; a schema within the limits of a lock
/// takes less.
const MAX_PARSED_BYTES: u64 = 16 << 20;
/// The maximum bytes of a cursor.
const MAX_CURSOR_BYTES: usize = 4 << 10;
/// Maximum time of each page except the first.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// All tools, in the server's order. `meta` is part of every request of the era. The first page has no
/// timeout here, since a server that works on one request at a time lists its tools after a call, which
/// may last a day: the caller limits the time and drops the future.
pub(crate) async fn tools(
    link: &Link,
    meta: &str,
    spec: &SourceSpec,
) -> Result<Vec<ListedTool>, SourceFailure> {
    let mut listing = Listing::new(spec.listing_bytes, link.redactor(&spec.redactor));
    let mut cursor = None;
    for number in 0..MAX_PAGES {
        let line = |id| request::list(id, cursor.as_deref(), meta);
        let asked = link.request(RequestKind::Internal, request::LIST, line, None);
        let answer = if number == 0 {
            asked.await
        } else {
            in_time(asked, link)
                .await
                .ok_or_else(|| late_page(number))?
        };
        let page = match answer {
            Ok(answer) => answer.result,
            Err(RequestError::Error(error)) if is_method_not_found(&error) => {
                return usable(link, listing.tools, spec).await;
            }
            Err(unanswered) => {
                let redactor = link.redactor(&spec.redactor);
                return Err(failure(unanswered, &redactor));
            }
        };
        // The token may have been replaced since the page before.
        listing.redactor = link.redactor(&spec.redactor);
        (listing, cursor) = listing.add_page_aside(page, &spec.concurrency).await?;
        if cursor.is_none() {
            return usable(link, listing.tools, spec).await;
        }
    }
    Err(invalid(format!(
        "the tool list has more than {MAX_PAGES} pages"
    )))
}

/// The tools that may be called over this link: over HTTP, without those whose arguments cannot be repeated as
/// headers.
async fn usable(
    link: &Link,
    mut tools: Vec<ListedTool>,
    spec: &SourceSpec,
) -> Result<Vec<ListedTool>, SourceFailure> {
    let Some(params) = link.tool_params() else {
        return Ok(tools);
    };
    let read = spec.concurrency.parse_aside(move || {
        let refused = params.replace(&mut tools);
        (tools, refused)
    });
    let (tools, refused) = read.await.map_err(|error| unread(&error))?;
    let redactor = link.redactor(&spec.redactor);
    for name in refused {
        let tool = shown_line(&redactor.redact(&name), 120);
        tracing::warn!(source = %spec.source.as_str(), tool, "the tool is left out: its `x-mcp-header` breaks the rules of the protocol");
    }
    Ok(tools)
}

/// Reads the tools of these pages, up to the last page.
pub(crate) fn read(pages: &[&[u8]], limit: usize) -> Result<Vec<ListedTool>, SourceFailure> {
    let mut listing = Listing::new(limit, Redactor::default());
    for page in pages {
        if listing.add_page(page)?.is_none() {
            break;
        }
    }
    Ok(listing.tools)
}

/// The tools that were listed so far.
struct Listing {
    tools: Vec<ListedTool>,
    names: HashSet<String>,
    cursors: HashSet<String>,
    /// The bytes of all pages, and their maximum.
    bytes: usize,
    limit: usize,
    redactor: Redactor,
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
    fn read(page: &'a [u8]) -> serde_json::Result<Self> {
        let mut out = Self::default();
        each_member(page, |name, value| {
            let (place, name) = match &*name {
                "tools" => (&mut out.tools, "tools"),
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
    fn new(limit: usize, redactor: Redactor) -> Self {
        Self {
            tools: Vec::new(),
            names: HashSet::new(),
            cursors: HashSet::new(),
            bytes: 0,
            limit,
            redactor,
        }
    }

    /// [`Listing::add_page`] on a blocking thread, when a permit is free.
    async fn add_page_aside(
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
    fn add_page(&mut self, page: &[u8]) -> Result<Option<String>, SourceFailure> {
        self.bytes += page.len();
        if self.bytes > self.limit {
            return Err(invalid(format!(
                "the tool list has more than {} bytes (`limits.listing_bytes`): {} in the first {} tools and the page after them",
                self.limit,
                self.bytes,
                self.tools.len()
            )));
        }
        let unreadable = |error: &dyn std::fmt::Display, redactor: &Redactor| {
            let error = shown_line(&redactor.redact(&error.to_string()), 120);
            invalid(format!("the tool list cannot be read: {error}"))
        };
        let page = Page::read(page).map_err(|error| unreadable(&error, &self.redactor))?;
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
            return Err(unreadable(&"missing field `tools`", &self.redactor));
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
            return Err(invalid(
                "the tool list repeats a cursor, so it would never end",
            ));
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
                let name = name_of(raw).map_or_else(
                    || format!("number {}", self.tools.len() + 1),
                    |name| format!("`{}`", shown(&name)),
                );
                Err(invalid(format!("tool {name}: {}", shown(&reason))))
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
        let name = match tool.get("name") {
            Some(Value::String(name)) if !name.is_empty() => name,
            Some(Value::String(_)) => return Err("its name is empty".to_owned()),
            _ => return Err("`name` is not a string".to_owned()),
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
        Ok(ListedTool::new(name.clone(), raw))
    }
}

/// A tool's name, from text that may be invalid otherwise.
fn name_of(raw: &str) -> Option<String> {
    let mut name = None;
    let read = each_member(raw.as_bytes(), |member, value| {
        if member == "name" {
            name = serde_json::from_str(value.get()).ok();
        }
    });
    read.ok().and(name)
}

fn invalid(message: impl Into<String>) -> SourceFailure {
    SourceFailure::new(SourceCause::ListInvalid, message)
}

/// The answer, if it arrives within [`PAGE_TIMEOUT`]. A server that works on one request at a time
/// answers no listing during a call, so the timeout starts again if it passes while a call is open.
async fn in_time<T>(answer: impl Future<Output = T>, link: &Link) -> Option<T> {
    let mut answer = pin!(answer);
    loop {
        match timeout(PAGE_TIMEOUT, &mut answer).await {
            Ok(answer) => return Some(answer),
            Err(_) if link.load() > 0 => {}
            Err(_) => return None,
        }
    }
}

fn unread(error: &tokio::task::JoinError) -> SourceFailure {
    let message = format!("the tool list could not be read: {error}");
    SourceFailure::new(SourceCause::ListFailed, message)
}

fn late_page(pages: usize) -> SourceFailure {
    let message = format!(
        "page {} of the tool list did not arrive within {} s",
        pages + 1,
        PAGE_TIMEOUT.as_secs()
    );
    SourceFailure::new(SourceCause::ListFailed, message)
}

fn is_method_not_found(error: &Bytes) -> bool {
    let mut code = None;
    let read = each_member(error, |name, value| {
        if name == "code" {
            code = value.get().parse::<i64>().ok();
        }
    });
    read.is_ok() && code == Some(METHOD_NOT_FOUND)
}

fn failure(unanswered: RequestError, redactor: &Redactor) -> SourceFailure {
    let message = match unanswered {
        RequestError::Gone { failure, .. } => return failure,
        RequestError::Http(refusal) => {
            return SourceFailure {
                retry_after: refusal.retry_after,
                ..refusal.failure
            };
        }
        RequestError::Broken(reason) => return invalid(reason),
        RequestError::TooLarge => {
            return invalid("a page of the tool list is longer than a line may be");
        }
        RequestError::Error(error) => format!(
            "the server could not list its tools: {}",
            shown_line(&redactor.redact(&String::from_utf8_lossy(&error)), 300)
        ),
        RequestError::Timeout { .. } => "the server did not list its tools in time".to_owned(),
        RequestError::Overloaded { .. } => "too many requests are queued".to_owned(),
        RequestError::OutOfMemory => {
            "there is no room for the tool list: `limits.memory_bytes` is used up".to_owned()
        }
    };
    SourceFailure::new(SourceCause::ListFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(pages: &[&str]) -> Result<(usize, Option<String>), String> {
        let mut listing = Listing::new(4 << 20, Redactor::default());
        let mut cursor = None;
        for page in pages {
            cursor = listing.add_page(page.as_bytes()).map_err(|failure| {
                assert_eq!(failure.cause, SourceCause::ListInvalid);
                failure.message
            })?;
        }
        Ok((listing.tools.len(), cursor))
    }

    #[test]
    fn list_cursor_that_is_empty_continues_and_null_ends() {
        let page = r#"{"tools":[{"name":"a"}],"nextCursor":""}"#;
        assert_eq!(add(&[page]), Ok((1, Some(String::new()))));
        assert_eq!(
            add(&[page, r#"{"tools":[{"name":"b"}],"nextCursor":null}"#]),
            Ok((2, None))
        );
        assert_eq!(add(&[r#"{"tools":[]}"#]), Ok((0, None)));
    }

    #[test]
    fn list_that_violates_the_protocol_is_refused_by_name() {
        let check = |pages: &[&str], part: &str| {
            let message = add(pages).unwrap_err();
            assert!(message.contains(part), "{message}");
        };
        check(
            &[
                r#"{"tools":[],"nextCursor":"x"}"#,
                r#"{"tools":[],"nextCursor":"x"}"#,
            ],
            "repeats a cursor",
        );
        check(&[r#"{"tools":[],"nextCursor":7}"#], "`nextCursor`");
        check(
            &[r#"{"tools":[{"name":"a"},{"name":"a"}]}"#],
            "tool `a`: it is listed twice",
        );
        check(&[r#"{"tools":[{"name":""}]}"#], "its name is empty");
        check(&[r#"{"tools":[{"name":"a"},{}]}"#], "tool number 2: `name`");
        check(&[r#"{"tools":[7]}"#], "not an object");
        check(
            &[r#"{"tools":[{"name":"a","description":7}]}"#],
            "tool `a`: `description`",
        );
        check(
            &[r#"{"tools":[{"name":"a","x":{"y":1,"y":2}}]}"#],
            "tool `a`: duplicate key `y`",
        );
        check(
            &[r#"{"tools":[{"name":"a","x":18446744073709551616}]}"#],
            "tool `a`: the number",
        );
        check(&[r#"{"nextCursor":"x"}"#], "cannot be read");
        check(
            &[r#"{"tools":[],"resultType":"input_required"}"#],
            "asks for input",
        );
    }

    #[test]
    fn list_over_a_byte_limit_is_refused_with_both_figures() {
        let check = |pages: &[&str], part: &str| {
            let message = add(pages).unwrap_err();
            assert!(message.contains(part), "{message}");
        };
        let tool =
            |name: &str, schema: &str| format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#);
        let page =
            |tools: &str, cursor: &str| format!(r#"{{"tools":[{tools}],"nextCursor":{cursor}}}"#);

        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes));
        let most = tool("a", &text(MAX_TOOL_BYTES - 30));
        assert!(most.len() <= MAX_TOOL_BYTES);
        assert!(add(&[&page(&most, "null")]).is_ok());
        let over = tool("a", &text(MAX_TOOL_BYTES));
        check(&[&page(&over, "null")], "tool `a`: it has 1048605 bytes");

        let objects = |count: usize| format!("[{}1]", r#"{"":0},"#.repeat(count));
        assert!(add(&[&page(&tool("a", &objects(20_000)), "null")]).is_ok());
        check(
            &[&page(&tool("a", &objects(40_000)), "null")],
            "once parsed, at most 16777216 are allowed",
        );

        let cursor = |bytes: usize| format!("\"{}\"", "c".repeat(bytes));
        assert!(add(&[&page("", &cursor(MAX_CURSOR_BYTES))]).is_ok());
        check(
            &[&page("", &cursor(MAX_CURSOR_BYTES + 1))],
            "`nextCursor` has 4097 bytes",
        );

        let pages: Vec<_> = (0..5)
            .map(|at| {
                page(
                    &tool(&at.to_string(), &text(1 << 20 >> 1)),
                    &format!("\"{at}\""),
                )
            })
            .collect();
        let pages: Vec<_> = pages.iter().map(String::as_str).collect();
        assert!(add(&pages).is_ok());
        let twice = [&pages[..], &pages[..]].concat();
        assert!(add(&twice).unwrap_err().contains("listed twice"));
        let many: Vec<_> = (0..9)
            .map(|at| {
                page(
                    &tool(&at.to_string(), &text(1 << 20 >> 1)),
                    &format!("\"{at}\""),
                )
            })
            .collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        check(&many, "more than 4194304 bytes (`limits.listing_bytes`)");
    }
}
