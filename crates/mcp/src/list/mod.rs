//! Reads a server's complete lists: every page, within bounds of number and bytes. An element that cannot be used is
//! left out with a record. Tools stay text; they are parsed one at a time for checks, on a blocking thread.

use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use broker_model::SourceCause;
use broker_model::item::{self, ItemKind};
use broker_model::json::each_member;
use broker_model::left_out::LeftOut;
use broker_model::redact::Redactor;
use broker_model::snapshot::ListedTool;
use broker_model::text::shown_line;
use broker_model::trust::{Exposure, ResourceMode};
use broker_wire::protocol::{INVALID_PARAMS, METHOD_NOT_FOUND};
use bytes::Bytes;
use listing::Listing;
use serde_json::Value;
use tokio::time::timeout;

use crate::connection::RequestKind;
use crate::failure::{RequestError, SourceFailure};
use crate::link::Link;
use crate::request;
use crate::spec::SourceSpec;

mod element;
mod listing;
#[cfg(test)]
mod tests;

/// The maximum number of pages.
const MAX_PAGES: usize = 1000;
/// Maximum time of each page except the first.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time of the first page of a list whose capability the server did not declare.
const UNDECLARED_TIMEOUT: Duration = Duration::from_secs(5);

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

impl List {
    /// Returns its bit in a set of lists.
    const fn bit(self) -> u8 {
        match self.kind {
            ItemKind::Tool => 1,
            ItemKind::Prompt => 2,
            ItemKind::Template => 4,
            ItemKind::Resource => 8,
        }
    }
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

/// The lists of a server.
pub(crate) struct Listed {
    /// All tools in the server's order, then the prompts, templates and resources whose lists are wanted.
    pub(crate) tools: Vec<ListedTool>,
    /// The resources that are not compared with the lock.
    pub(crate) resources: Vec<ListedTool>,
    /// The elements that cannot be used.
    pub(crate) left_out: Vec<LeftOut>,
    /// Oddities without an effect.
    pub(crate) warnings: Vec<String>,
}

/// The lists of one session whose capability the server did not declare. Each is requested once; it is requested
/// again only if the server had it.
#[derive(Debug, Default)]
pub(crate) struct UndeclaredLists {
    absent: AtomicU8,
    present: AtomicU8,
}

impl UndeclaredLists {
    fn note(&self, list: List, is_present: bool) {
        let mask = match is_present {
            true => &self.present,
            false => &self.absent,
        };
        mask.fetch_or(list.bit(), Ordering::Relaxed);
    }

    fn is_absent(&self, list: List) -> bool {
        self.absent.load(Ordering::Relaxed) & list.bit() != 0
    }

    fn is_present(&self, list: List) -> bool {
        self.present.load(Ordering::Relaxed) & list.bit() != 0
    }
}

/// Reads the lists that are wanted. A list that the server does not have is empty. `meta` is part of every request of
/// the era.
pub(crate) async fn all(
    link: &Link,
    meta: &str,
    spec: &SourceSpec,
    capabilities: &Value,
    undeclared: &UndeclaredLists,
) -> Result<Listed, SourceFailure> {
    let wanted = [
        (TOOLS, true),
        (PROMPTS, spec.lists.prompts),
        (TEMPLATES, spec.lists.templates),
        (RESOURCES, spec.lists.has_resources()),
    ];
    let redactor = link.redactor(&spec.redactor);
    let mut listing = Listing::new(spec.listing_bytes, spec.exposure.clone(), redactor);
    let mut resources = Vec::new();
    for (list, _) in wanted.into_iter().filter(|(_, is_wanted)| *is_wanted) {
        listing.begin(list);
        let is_declared = capabilities
            .get(list.capability)
            .is_some_and(|one| !one.is_null());
        let has_list = match is_declared {
            true => pages(link, meta, spec, &mut listing, None)
                .await
                .map(|()| true)?,
            false => undeclared_list(link, meta, spec, list, undeclared, &mut listing).await?,
        };
        let elements = listing.take_list();
        match list.kind {
            ItemKind::Tool => {
                let tools = usable(link, elements, spec, &mut listing).await?;
                listing.keep(tools);
            }
            ItemKind::Resource if has_list && spec.lists.resources == ResourceMode::Live => {
                resources = elements;
                let (key, text) = item::live_resources();
                listing.keep(vec![ListedTool::new(key, text)]);
            }
            ItemKind::Prompt | ItemKind::Template | ItemKind::Resource => listing.keep(elements),
        }
    }
    let (tools, left_out, warnings) = listing.finish();
    Ok(Listed {
        tools,
        resources,
        left_out,
        warnings,
    })
}

/// Adds a list whose capability the server did not declare, if it answers all the same. Returns whether it has the
/// list. Only the end of the connection is an error.
async fn undeclared_list(
    link: &Link,
    meta: &str,
    spec: &SourceSpec,
    list: List,
    undeclared: &UndeclaredLists,
    listing: &mut Listing,
) -> Result<bool, SourceFailure> {
    if undeclared.is_absent(list) {
        return Ok(false);
    }
    let (records, was_present) = (listing.records(), undeclared.is_present(list));
    let time = (!was_present).then_some(UNDECLARED_TIMEOUT);
    let read = pages(link, meta, spec, listing, time).await;
    match read {
        Ok(()) if !listing.is_empty() => {
            undeclared.note(list, true);
            listing.warn(format!(
                "the server sends a {} and does not declare the capability `{}`; it is used",
                list.name, list.capability
            ));
            Ok(true)
        }
        // A list that the server had before must not vanish because of one failed request.
        Err(failure) if was_present || !listing.is_empty() || link.is_over() => Err(failure),
        Ok(()) if was_present => Ok(true),
        Ok(()) | Err(_) => {
            undeclared.note(list, false);
            listing.forget_records(records);
            Ok(false)
        }
    }
}

/// Adds all pages of a list. The first page has no timeout unless `first` sets one, since a server that works on one
/// request at a time lists its tools after a call, and a call may last a day: the caller limits the time and drops the
/// future.
async fn pages(
    link: &Link,
    meta: &str,
    spec: &SourceSpec,
    listing: &mut Listing,
    first: Option<Duration>,
) -> Result<(), SourceFailure> {
    let list = listing.list();
    let mut cursor: Option<String> = None;
    for number in 0..MAX_PAGES {
        let line = |id| request::list(id, list.method, cursor.as_deref(), meta);
        let asked = link.request(
            RequestKind::Internal,
            list.method,
            line,
            first.filter(|_| number == 0),
        );
        let answer = if number == 0 {
            asked.await
        } else {
            in_time(asked, link)
                .await
                .ok_or_else(|| late_page(number, list))?
        };
        // The token may have been replaced since the page before.
        listing.redactor = link.redactor(&spec.redactor);
        let page = match answer {
            Ok(answer) => answer.result,
            Err(unanswered) => {
                return match without_page(unanswered, list, number, cursor.as_deref(), listing)? {
                    Some((reason, text)) => listing.cut(reason, &text),
                    None => Ok(()),
                };
            }
        };
        cursor = listing.add_page_aside(page, &spec.concurrency).await?;
        if cursor.is_none() {
            return Ok(());
        }
    }
    let reason = format!("the {} has more than {MAX_PAGES} pages", list.name);
    listing.cut(reason.clone(), &reason)
}

/// Decides about a list whose next page did not come: `None` if the list is complete, the reason and the text of the
/// server if the rest is left out, or the failure of the source.
fn without_page(
    unanswered: RequestError,
    list: List,
    number: usize,
    cursor: Option<&str>,
    listing: &mut Listing,
) -> Result<Option<(String, String)>, SourceFailure> {
    let (code, text) = match &unanswered {
        RequestError::Error(error) => (code_of(error), String::from_utf8_lossy(error).into_owned()),
        RequestError::Broken(reason) => (None, reason.to_string()),
        RequestError::TooLarge => (None, String::new()),
        RequestError::Gone { .. }
        | RequestError::Http(_)
        | RequestError::Timeout { .. }
        | RequestError::Overloaded(_)
        | RequestError::OutOfMemory => return Err(failure(unanswered, list, &listing.redactor)),
    };
    let is_error = matches!(unanswered, RequestError::Error(_));
    if number == 0 && code == Some(METHOD_NOT_FOUND) {
        return Ok(None);
    }
    if number > 0 && code == Some(INVALID_PARAMS) && cursor == Some("") {
        listing.warn(format!(
            "the {} ends at the empty cursor, which the server refuses",
            list.name
        ));
        return Ok(None);
    }
    let failure = failure(unanswered, list, &listing.redactor);
    let is_refused_cursor = number > 0 && code == Some(INVALID_PARAMS);
    // An error may pass, so the tools of the source are not cut because of one.
    match list.kind == ItemKind::Tool && is_error && !is_refused_cursor {
        true => Err(failure),
        false => Ok(Some((failure.message, text))),
    }
}

/// Returns the tools that may be called over this link: over HTTP without those whose arguments cannot be repeated as
/// headers.
async fn usable(
    link: &Link,
    mut tools: Vec<ListedTool>,
    spec: &SourceSpec,
    listing: &mut Listing,
) -> Result<Vec<ListedTool>, SourceFailure> {
    let Some(params) = link.tool_params() else {
        return Ok(tools);
    };
    let read = spec.concurrency.parse_aside(move || {
        let refused = params.replace(&mut tools);
        (tools, refused)
    });
    let (tools, refused) = read.await.map_err(|error| unread(&error))?;
    refused.iter().for_each(|tool| listing.refuse_header(tool));
    Ok(tools)
}

/// Reads the pages of a tool list, up to the last page.
pub(crate) fn read(pages: &[&[u8]], limit: usize) -> Result<Listed, SourceFailure> {
    let mut listing = Listing::new(limit, Exposure::expose_all(), Redactor::default());
    for page in pages {
        if listing.add_page(page)?.is_none() {
            break;
        }
    }
    let (tools, left_out, warnings) = listing.finish();
    Ok(Listed {
        tools,
        resources: Vec::new(),
        left_out,
        warnings,
    })
}

fn invalid(message: impl Into<String>) -> SourceFailure {
    SourceFailure::new(SourceCause::ListInvalid, message)
}

/// Returns the answer, if it arrives within [`PAGE_TIMEOUT`]. A server that works on one request at a time answers no
/// listing during a call, so the timeout starts again if it passes while a call is open.
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

fn late_page(pages: usize, list: List) -> SourceFailure {
    let message = format!(
        "page {} of the {} did not arrive within {} s",
        pages + 1,
        list.name,
        PAGE_TIMEOUT.as_secs()
    );
    SourceFailure::new(SourceCause::ListFailed, message)
}

/// Returns the code of a JSON-RPC error.
fn code_of(error: &Bytes) -> Option<i64> {
    let mut code = None;
    let read = each_member(error, |name, value| {
        if name == "code" {
            code = value.get().parse::<i64>().ok();
        }
    });
    read.ok().and(code)
}

fn failure(unanswered: RequestError, list: List, redactor: &Redactor) -> SourceFailure {
    let name = list.name;
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
            return invalid(format!("a page of the {name} is longer than a line may be"));
        }
        RequestError::Error(error) => format!(
            "the server could not send its {name}: {}",
            shown_line(&redactor.redact(&String::from_utf8_lossy(&error)), 300)
        ),
        RequestError::Timeout { .. } => format!("the server did not send its {name} in time"),
        RequestError::Overloaded(_) => "too many requests are queued".to_owned(),
        RequestError::OutOfMemory => {
            format!("there is no room for the {name}: `limits.memory_bytes` is used up")
        }
    };
    SourceFailure::new(SourceCause::ListFailed, message)
}
