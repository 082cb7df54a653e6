//! Restricts a broker: callers see and call fewer items.

use std::fmt;
use std::sync::Arc;

use broker_memory::Account;
use broker_model::CallCode;
use broker_model::item::ItemKind;
use broker_model::text::shown_line;
use broker_model::tool_names;
use serde_json::Value;

use super::Broker;
use crate::MAX_HITS;
use crate::call::context::{Operation, Outcome, Request};
use crate::errors::error::CoreError;
use crate::forward;
use crate::identity::Identity;
use crate::item::ToolItem;
use crate::listing::description::Described;
use crate::listing::entry::ListedEntry;
use crate::listing::items::ListedItem;
use crate::listing::look_up::{FoundItem, Name, no_prompt, no_resource};
use crate::listing::search::FoundTools;
use crate::listing::tools::{CallableTool, ToolPage, ToolQuery};
use crate::listing::tree::Listing;
use crate::services::Services;
use crate::sources::health::Health;
use crate::types::SearchQuery;

/// Decides whether an item that exists for a caller still exists for it.
type Keeps = dyn Fn(&Identity, &ToolItem) -> bool + Send + Sync;

/// A broker without some of the items of another one. It only uses the other broker, so that it cannot show, find or
/// call an item that the other one refuses. Its trees and descriptions of nodes have no entity tags.
#[derive(Clone)]
pub struct Restrict<B> {
    inner: B,
    keeps: Arc<Keeps>,
}

impl<B: fmt::Debug> fmt::Debug for Restrict<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restrict")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

/// The paths of the items before and after the restriction, for one caller.
struct Paths {
    inner: Vec<&'static str>,
    kept: Vec<&'static str>,
}

impl<B: Broker> Restrict<B> {
    /// Makes a broker with the items of `inner` that `keeps` accepts.
    pub fn new(
        inner: B,
        keeps: impl Fn(&Identity, &ToolItem) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner,
            keeps: Arc::new(keeps),
        }
    }

    fn paths(&self, identity: &Identity) -> Paths {
        let items = self.inner.items(identity);
        let kept = items.iter().filter(|item| (self.keeps)(identity, item));
        Paths {
            kept: kept.map(|item| item.path).collect(),
            inner: items.iter().map(|item| item.path).collect(),
        }
    }
}

impl Paths {
    /// Whether an item is kept.
    fn keeps(&self, item: &str) -> bool {
        self.kept.contains(&item)
    }

    /// Whether an entry exists: the root, an item that is kept, or a node with one below it.
    fn have(&self, entry: &str) -> bool {
        entry == "/"
            || self.kept.iter().any(|path| {
                let rest = path.strip_prefix(entry);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
    }

    /// Removes the entries that do not exist here, and their names from summaries.
    fn prune(&self, mut entry: ListedEntry) -> ListedEntry {
        let names = |paths| names_below(paths, entry.path);
        if names(&self.inner).as_deref() == Some(&*entry.summary) {
            let leaf = || entry.path.rsplit('/').next().unwrap_or(entry.path);
            let own = names(&self.kept).unwrap_or_else(|| leaf().to_owned());
            entry.summary = own.into();
        }
        if let Some(children) = entry.children.take() {
            let children = children.into_iter().filter(|child| self.have(child.path));
            entry.children = Some(children.map(|child| self.prune(child)).collect());
        }
        entry
    }

    /// Returns an error of the inner broker without the entries that do not exist here.
    fn without_others(&self, mut error: Box<CoreError>) -> Box<CoreError> {
        error.did_you_mean.retain(|path| self.have(path));
        let node = error.details.as_ref().and_then(|it| it.get("node"));
        let node = node.and_then(Value::as_str);
        if node.is_some_and(|node| !self.have(node)) {
            error.details = None;
        }
        // It may speak of what was removed.
        error.hint = None;
        if let Some(details) = error.details.as_mut().and_then(Value::as_object_mut) {
            details.remove("more");
            if let Some(Value::Array(children)) = details.get_mut("children") {
                children.retain(|child| child.as_str().is_some_and(|path| self.have(path)));
            }
        }
        error
    }

    /// Returns the error of an operation on an entry.
    fn error_at(&self, path: &str, error: Box<CoreError>) -> Box<CoreError> {
        let names_it = error.code == CallCode::PathIsTool || error.code == CallCode::PathIsNode;
        match names_it && !self.have(path) {
            true => not_found(path),
            false => self.without_others(error),
        }
    }
}

/// Returns the names of the items directly below a node, as its summary.
fn names_below(paths: &[&str], node: &str) -> Option<String> {
    let node = node.trim_end_matches('/');
    let names = paths.iter();
    let names = names.filter_map(|path| path.strip_prefix(node)?.strip_prefix('/'));
    tool_names::summary(names.filter(|name| !name.contains('/')))
}

/// Returns the error for an entry that does not exist here.
fn not_found(path: &str) -> Box<CoreError> {
    let message = format!("no tool or node is at `{}`", shown_line(path, 120));
    Box::new(CoreError::new(CallCode::PathNotFound, message).path(path))
}

impl<B: Broker> Broker for Restrict<B> {
    forward!(inner: traces_calls);

    fn services(&self) -> &Services {
        self.inner.services()
    }

    fn list(&self, identity: &Identity, path: &str, depth: u8) -> Result<Listing, Box<CoreError>> {
        let paths = self.paths(identity);
        match self.inner.list(identity, path, depth) {
            Ok(_) if !paths.have(path) => Err(not_found(path)),
            Ok(listing) => Ok(paths.prune(listing.tree()).into()),
            Err(error) => Err(paths.error_at(path, error)),
        }
    }

    async fn describe(
        &self,
        identity: &Identity,
        names: &[&str],
        account: &Account,
    ) -> Result<Vec<Described>, Box<CoreError>> {
        let paths = self.paths(identity);
        let described = self.inner.describe(identity, names, account).await?;
        let each = described
            .into_iter()
            .zip(names)
            .map(|(one, path)| match one {
                Ok(_) if !paths.have(path) => Err(not_found(path)),
                Ok(description) => Ok(match description.node() {
                    Some(node) => description.with_node(paths.prune(node)),
                    None => description,
                }),
                Err(error) => Err(paths.without_others(error)),
            });
        Ok(each.collect())
    }

    /// Searches the tools. Scores come from the inner broker: it ranks its own tools.
    async fn search(
        &self,
        identity: &Identity,
        what: SearchQuery<'_>,
    ) -> Result<FoundTools, Box<CoreError>> {
        let paths = self.paths(identity);
        let is_valid = (1..=MAX_HITS).contains(&what.limit);
        let all = SearchQuery {
            limit: if is_valid { MAX_HITS } else { what.limit },
            ..what
        };
        let place = what.path.unwrap_or("/");
        let mut found = match self.inner.search(identity, all).await {
            Ok(_) if !paths.have(place) => return Err(not_found(place)),
            Ok(found) => found,
            Err(error) => return Err(paths.error_at(place, error)),
        };
        found.hits.retain(|hit| paths.keeps(hit.entry.path));
        found.hits.truncate(what.limit);
        found.nodes.retain(|node| paths.have(node.path));
        let nodes = found.nodes.into_iter().map(|node| paths.prune(node));
        found.nodes = nodes.collect();
        Ok(found)
    }

    fn look_up(&self, identity: &Identity, name: Name<'_>) -> Result<FoundItem, Box<CoreError>> {
        match self.inner.look_up(identity, name) {
            Ok(found) if (self.keeps)(identity, &found.item) => Ok(found),
            Ok(_) => Err(match name {
                Name::Prompt(name) => no_prompt(name),
                Name::Uri(uri) => no_resource(uri),
                Name::Path(name) | Name::Flat(name, _) | Name::Template(name) => not_found(name),
            }),
            Err(error) => match name {
                Name::Path(path) => Err(self.paths(identity).error_at(path, error)),
                Name::Flat(..) | Name::Prompt(_) | Name::Template(_) | Name::Uri(_) => Err(error),
            },
        }
    }

    fn items(&self, identity: &Identity) -> Vec<ToolItem> {
        let mut items = self.inner.items(identity);
        items.retain(|item| (self.keeps)(identity, item));
        items
    }

    fn tools(&self, identity: &Identity, what: &ToolQuery<'_>) -> Option<ToolPage> {
        let paths = self.paths(identity);
        let mut page = self.inner.tools(identity, what)?;
        page.tools.retain(|tool| paths.keeps(tool.path));
        Some(page)
    }

    fn callable_tools(&self, identity: &Identity) -> Vec<CallableTool> {
        let paths = self.paths(identity);
        let mut tools = self.inner.callable_tools(identity);
        tools.retain(|tool| paths.keeps(tool.path));
        tools
    }

    fn listed_items(&self, identity: &Identity, kind: ItemKind) -> Vec<ListedItem> {
        let paths = self.paths(identity);
        let mut items = self.inner.listed_items(identity, kind);
        items.retain(|item| paths.keeps(item.path));
        items
    }

    async fn call(&self, request: Request) -> Result<Outcome, Box<CoreError>> {
        let (identity, path) = (request.identity.clone(), request.path.clone());
        match self.inner.look_up(&identity, Name::Path(&path)) {
            Ok(found) if (self.keeps)(&identity, &found.item) => {}
            Ok(_) => return Err(not_found(&path)),
            // The call has the error.
            Err(_) => {}
        }
        // A URI can belong to several entries.
        if let Operation::ReadResource(uri) = &request.operation {
            self.look_up(&identity, Name::Uri(uri))?;
        }
        let called = self.inner.call(request).await;
        called.map_err(|error| self.paths(&identity).error_at(&path, error))
    }

    fn health(&self, identity: &Identity) -> Health {
        self.inner.health(identity)
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
