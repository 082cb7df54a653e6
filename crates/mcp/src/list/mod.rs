//! Reads a server's complete lists: every page, strictly, within bounds of number and bytes. Tools
//! stay text; they are parsed one at a time for checks, on a blocking thread.

use std::pin::pin;
use std::time::Duration;

use broker_model::SourceCause;
use broker_model::item::{self, ItemKind};
use broker_model::json::each_member;
use broker_model::redact::Redactor;
use broker_model::snapshot::ListedTool;
use broker_model::text::shown_line;
use broker_model::trust::ResourceMode;
use broker_wire::protocol::METHOD_NOT_FOUND;
use bytes::Bytes;
use listing::Listing;
use serde_json::Value;
use tokio::time::timeout;

use crate::connection::{RequestError, RequestKind};
use crate::failure::SourceFailure;
use crate::link::Link;
use crate::request;
use crate::spec::SourceSpec;

mod listing;
#[cfg(test)]
mod tests;

/// The maximum number of pages.
const MAX_PAGES: usize = 1000;
/// Maximum time of each page except the first.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// A list of a server.
#[derive(Clone, Copy, Debug)]
struct List {
    kind: ItemKind,
    method: &'static str,
    /// The member of a page with its elements.
    member: &'static str,
    /// Its name in messages.
    name: &'static str,
    /// The capability of a server that has it.
    capability: &'static str,
}

const TOOLS: List = List {
    kind: ItemKind::Tool,
    method: request::LIST,
    member: "tools",
    name: "tool list",
    capability: "tools",
};
const PROMPTS: List = List {
    kind: ItemKind::Prompt,
    method: request::LIST_PROMPTS,
    member: "prompts",
    name: "prompt list",
    capability: "prompts",
};
const TEMPLATES: List = List {
    kind: ItemKind::Template,
    method: request::LIST_TEMPLATES,
    member: "resourceTemplates",
    name: "list of resource templates",
    capability: "resources",
};
const RESOURCES: List = List {
    kind: ItemKind::Resource,
    method: request::LIST_RESOURCES,
    member: "resources",
    name: "resource list",
    capability: "resources",
};

/// All tools in the server's order, then the prompts, templates and resources whose lists are wanted; and the resources
/// that are not compared with the lock. A list that the server does not have is empty. `meta` is part of every request of the era.
pub(crate) async fn all(
    link: &Link,
    meta: &str,
    spec: &SourceSpec,
    capabilities: &Value,
) -> Result<(Vec<ListedTool>, Vec<ListedTool>), SourceFailure> {
    let wanted = [
        (TOOLS, true),
        (PROMPTS, spec.lists.prompts),
        (TEMPLATES, spec.lists.templates),
        (RESOURCES, spec.lists.has_resources()),
    ];
    let mut listing = Listing::new(spec.listing_bytes, link.redactor(&spec.redactor));
    let mut live = Vec::new();
    for (list, _) in wanted.into_iter().filter(|(_, is_wanted)| *is_wanted) {
        let before = listing.tools.len();
        let has_list = capabilities.get(list.capability).is_some();
        if has_list {
            listing = pages(link, meta, spec, list, listing).await?;
        }
        match list.kind {
            ItemKind::Tool => listing.tools = usable(link, listing.tools, spec).await?,
            ItemKind::Resource if has_list && spec.lists.resources == ResourceMode::Live => {
                live = listing.tools.split_off(before);
                let (key, text) = item::live_resources();
                listing.tools.push(ListedTool::new(key, text));
            }
            _ => {}
        }
    }
    Ok((listing.tools, live))
}

/// Adds all pages of a list. The first page has no timeout here, since a server that works on one request at a time
/// lists its tools after a call, which may last a day: the caller limits the time and drops the future.
async fn pages(
    link: &Link,
    meta: &str,
    spec: &SourceSpec,
    list: List,
    mut listing: Listing,
) -> Result<Listing, SourceFailure> {
    listing.begin(list);
    let mut cursor = None;
    for number in 0..MAX_PAGES {
        let line = |id| request::list(id, list.method, cursor.as_deref(), meta);
        let asked = link.request(RequestKind::Internal, list.method, line, None);
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
                return Ok(listing);
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
            return Ok(listing);
        }
    }
    Err(invalid(format!(
        "the {} has more than {MAX_PAGES} pages",
        list.name
    )))
}

/// The tools that may be called over this link: without those whose name is like the key of another kind, and over
/// HTTP without those whose arguments cannot be repeated as headers.
async fn usable(
    link: &Link,
    mut tools: Vec<ListedTool>,
    spec: &SourceSpec,
) -> Result<Vec<ListedTool>, SourceFailure> {
    tools.retain(|tool| {
        let is_ambiguous = item::is_ambiguous(tool.name());
        if is_ambiguous {
            let tool = shown_line(&link.redactor(&spec.redactor).redact(tool.name()), 120);
            tracing::warn!(source = %spec.source.as_str(), tool, "the tool is left out: its name is like the key of a prompt or resource");
        }
        !is_ambiguous
    });
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
