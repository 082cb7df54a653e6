//! Restricts a broker: callers see and call fewer tools.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use broker_model::CallCode;
use broker_model::json::{parse, to_text};
use broker_model::text::shown_line;
use broker_model::tool_names;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{BrokerInterface, ToolItem};
use crate::MAX_HITS;
use crate::call::context::{Operation, Outcome, Request};
use crate::errors::error::CoreError;
use crate::identity::Identity;
use crate::listing::items::{ListedItem, ReadableUri, no_prompt, no_resource};
use crate::sources::health::Health;
use crate::types::{Describe, Reply, SearchOptions};

/// Decides whether a tool that exists for a caller still exists for it.
type Keeps = dyn Fn(&Identity, &ToolItem) -> bool + Send + Sync;

/// A broker without some of the tools of another one. It only uses the other broker, so that it cannot show, find or
/// call a tool that the other one refuses. Its replies have no entity tags.
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

impl<B: BrokerInterface> Restrict<B> {
    /// Makes a broker with the tools of `inner` that `keeps` accepts.
    pub fn new(
        inner: B,
        keeps: impl Fn(&Identity, &ToolItem) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner,
            keeps: Arc::new(keeps),
        }
    }

    /// Returns the paths of its tools.
    fn paths(&self, identity: &Identity) -> Vec<&'static str> {
        let tools = self.list_tools(identity);
        tools.into_iter().map(|tool| tool.path).collect()
    }

    fn kept_items(&self, identity: &Identity, mut items: Vec<ListedItem>) -> Vec<ListedItem> {
        let paths: HashSet<_> = self.paths(identity).into_iter().collect();
        items.retain(|item| paths.contains(item.path));
        items
    }

    /// Whether an entry exists: the root, a tool that is kept, or a node with one below it.
    fn exists(paths: &[&str], entry: &str) -> bool {
        entry == "/"
            || paths.iter().any(|path| {
                let rest = path.strip_prefix(entry);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
    }

    /// Returns an error of the inner broker without the entries that do not exist here.
    fn without_others(paths: &[&str], mut error: Box<CoreError>) -> Box<CoreError> {
        error.did_you_mean.retain(|path| Self::exists(paths, path));
        let node = error.details.as_ref().and_then(|it| it.get("node"));
        let node = node.and_then(Value::as_str);
        if node.is_some_and(|node| !Self::exists(paths, node)) {
            error.details = None;
        }
        // It may speak of what was removed.
        error.hint = None;
        if let Some(details) = error.details.as_mut().and_then(Value::as_object_mut) {
            details.remove("more");
        }
        if let Some(children) = error.details.as_mut().and_then(|it| it.get_mut("children")) {
            retain(children, |child| {
                child.as_str().is_some_and(|path| Self::exists(paths, path))
            });
        }
        error
    }

    /// Removes the entries that do not exist here from a listing, and their names from summaries. `inner` has the
    /// paths of the tools of the inner broker.
    fn prune(paths: &[&str], inner: &[&str], entry: &mut Value) {
        name_own_tools(paths, inner, entry);
        let Some(children) = entry.get_mut("children") else {
            return;
        };
        retain(children, |child| {
            child["path"]
                .as_str()
                .is_some_and(|path| Self::exists(paths, path))
        });
        for child in children.as_array_mut().into_iter().flatten() {
            Self::prune(paths, inner, child);
        }
    }

    fn pruned(&self, identity: &Identity, paths: &[&str], reply: &Reply) -> Reply {
        let inner = self.inner.list_tools(identity).into_iter();
        let inner: Vec<&str> = inner.map(|tool| tool.path).collect();
        let mut value: Value = read_reply(&reply.body);
        Self::prune(paths, &inner, &mut value);
        if let Some(nodes) = value.get_mut("nodes") {
            retain(nodes, |node| {
                node["path"]
                    .as_str()
                    .is_some_and(|path| Self::exists(paths, path))
            });
        }
        for list in ["entries", "nodes"] {
            let entries = value.get_mut(list).and_then(Value::as_array_mut);
            for entry in entries.into_iter().flatten() {
                Self::prune(paths, &inner, entry);
            }
        }
        Reply {
            body: Bytes::from(to_text(&value)),
            etag: None,
        }
    }
}

fn retain(list: &mut Value, keep: impl Fn(&Value) -> bool) {
    if let Value::Array(items) = list {
        items.retain(keep);
    }
}

/// Replaces a summary that the inner broker made of its tool names by one with the names of `paths`.
fn name_own_tools(paths: &[&str], inner: &[&str], entry: &mut Value) {
    let (Some(node), Some(summary)) = (entry["path"].as_str(), entry["summary"].as_str()) else {
        return;
    };
    if names_below(inner, node).as_deref() == Some(summary) {
        let leaf = node.rsplit('/').next().unwrap_or(node);
        entry["summary"] = names_below(paths, node)
            .unwrap_or_else(|| leaf.to_owned())
            .into();
    }
}

/// Returns the names of the tools directly below a node, as its summary.
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

impl<B: BrokerInterface> BrokerInterface for Restrict<B> {
    fn list_tools(&self, identity: &Identity) -> Vec<ToolItem> {
        let mut tools = self.inner.list_tools(identity);
        tools.retain(|tool| (self.keeps)(identity, tool));
        tools
    }

    fn lookup_tool(&self, identity: &Identity, name: &str) -> Result<ToolItem, Box<CoreError>> {
        match self.inner.lookup_tool(identity, name) {
            Ok(tool) if (self.keeps)(identity, &tool) => Ok(tool),
            Ok(_) => Err(not_found(name)),
            Err(error) => Err(Self::without_others(&self.paths(identity), error)),
        }
    }

    fn list_prompts(&self, identity: &Identity) -> Vec<ListedItem> {
        self.kept_items(identity, self.inner.list_prompts(identity))
    }

    fn list_resources(&self, identity: &Identity) -> Vec<ListedItem> {
        self.kept_items(identity, self.inner.list_resources(identity))
    }

    fn list_templates(&self, identity: &Identity) -> Vec<ListedItem> {
        self.kept_items(identity, self.inner.list_templates(identity))
    }

    fn lookup_prompt(&self, identity: &Identity, name: &str) -> Result<ToolItem, Box<CoreError>> {
        let found = self.inner.lookup_prompt(identity, name)?;
        match (self.keeps)(identity, &found) {
            true => Ok(found),
            false => Err(no_prompt(name)),
        }
    }

    fn lookup_resource(
        &self,
        identity: &Identity,
        uri: &str,
    ) -> Result<ReadableUri, Box<CoreError>> {
        let found = self.inner.lookup_resource(identity, uri)?;
        match self.lookup_tool(identity, found.path) {
            Ok(_) => Ok(found),
            Err(_) => Err(no_resource(uri)),
        }
    }

    fn tree(&self, identity: &Identity, path: &str, depth: u8) -> Result<Reply, Box<CoreError>> {
        let paths = self.paths(identity);
        match self.inner.tree(identity, path, depth) {
            Ok(_) if !Self::exists(&paths, path) => Err(not_found(path)),
            Ok(reply) => Ok(self.pruned(identity, &paths, &reply)),
            Err(error) if error.code == CallCode::PathIsTool && !Self::exists(&paths, path) => {
                Err(not_found(path))
            }
            Err(error) => Err(Self::without_others(&paths, error)),
        }
    }

    /// Searches the tools. Scores come from the inner broker: it ranks its own tools.
    fn search(
        &self,
        identity: &Identity,
        query: &str,
        options: SearchOptions<'_>,
    ) -> Result<Reply, Box<CoreError>> {
        let paths = self.paths(identity);
        let limit = options.limit;
        let is_valid = (1..=MAX_HITS).contains(&limit);
        let all = SearchOptions {
            limit: if is_valid { MAX_HITS } else { limit },
            ..options
        };
        let place = options.path.unwrap_or("/");
        match self.inner.search(identity, query, all) {
            Ok(_) if !Self::exists(&paths, place) => Err(not_found(place)),
            Ok(reply) => {
                let reply = self.pruned(identity, &paths, &reply);
                let mut answer: Value = read_reply(&reply.body);
                if let Value::Array(hits) = &mut answer["children"] {
                    hits.truncate(limit);
                }
                Ok(Reply {
                    body: Bytes::from(answer.to_string()),
                    etag: None,
                })
            }
            Err(error) if error.code == CallCode::PathIsTool && !Self::exists(&paths, place) => {
                Err(not_found(place))
            }
            Err(error) => Err(Self::without_others(&paths, error)),
        }
    }

    fn describe(&self, identity: &Identity, what: Describe<'_>) -> Result<Reply, Box<CoreError>> {
        let paths = self.paths(identity);
        match what {
            Describe::One(path) => match self.inner.describe(identity, what) {
                Ok(_) if !Self::exists(&paths, path) => Err(not_found(path)),
                Ok(reply) => Ok(self.pruned(identity, &paths, &reply)),
                Err(error) => Err(Self::without_others(&paths, error)),
            },
            Describe::Many(names) => {
                let reply = self.inner.describe(identity, what)?;
                let reply = self.pruned(identity, &paths, &reply);
                let mut value: Value = read_reply(&reply.body);
                let entries = value["entries"].as_array_mut().into_iter().flatten();
                for (entry, name) in entries.zip(names) {
                    if !Self::exists(&paths, name) {
                        let error = not_found(name);
                        *entry = json!({"path": name, "error": error.members(None)});
                    }
                }
                Ok(Reply {
                    body: Bytes::from(to_text(&value)),
                    etag: None,
                })
            }
        }
    }

    async fn call(&self, request: Request) -> Result<Outcome, Box<CoreError>> {
        let (identity, path) = (request.identity.clone(), request.path.clone());
        match self.inner.lookup_tool(&identity, &path) {
            Ok(tool) if (self.keeps)(&identity, &tool) => {}
            Ok(_) => return Err(not_found(&path)),
            // The call has the error.
            Err(_) => {}
        }
        // A URI can belong to several entries.
        if let Operation::ReadResource(uri) = &request.operation {
            self.lookup_resource(&identity, uri)?;
        }
        let called = self.inner.call(request).await;
        called.map_err(|error| {
            let paths = self.paths(&identity);
            if error.code == CallCode::PathIsNode && !Self::exists(&paths, &path) {
                return not_found(&path);
            }
            Self::without_others(&paths, error)
        })
    }

    fn health(&self, identity: &Identity) -> Health {
        self.inner.health(identity)
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// Reads a reply of the inner broker, with its exact numbers.
fn read_reply(body: &[u8]) -> Value {
    let text = std::str::from_utf8(body).unwrap_or_default();
    parse(text).unwrap_or_default()
}
