//! The interface of a broker for programs that embed it, and a wrapper that narrows what another one offers.

mod restrict;

pub use restrict::Restrict;

use broker_model::item::ItemKind;

use crate::call::context::{Outcome, Request};
use crate::errors::error::CoreError;
use crate::identity::Identity;
use crate::listing::items::{ListedItem, ReadableUri};
use crate::sources::health::Health;
use crate::types::{Describe, Reply, SearchOptions};
use crate::{Core, Inner, catalog::EntryKind};

/// A tool, or a prompt, template or resource, as listings and look-ups show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolItem {
    /// Its path.
    pub path: &'static str,
    /// Its kind.
    pub kind: ItemKind,
    /// Its name for MCP clients that see every tool directly; empty for everything but tools.
    pub flat_name: &'static str,
    /// The path of its source.
    pub source: &'static str,
    /// Whether it is withdrawn, so that calls are refused.
    pub withdrawn: bool,
}

/// The operations of a broker. Each takes the identity of its caller as a parameter and uses no other one; a caller that
/// sent no credential is [`Identity::anonymous`].
///
/// A wrapper around another one can only narrow it: see [`Restrict`].
pub trait BrokerInterface: Send + Sync {
    /// Lists the tools, prompts, templates and resources that exist for the caller, in the order of their paths. Does
    /// not contact a server.
    fn list_tools(&self, identity: &Identity) -> Vec<ToolItem>;

    /// Finds the tool at a path, or with a flat name. Finds exactly what [`Self::list_tools`] lists, and contacts no
    /// server.
    ///
    /// # Errors
    ///
    /// `path_not_found` if no such tool exists for the caller, `path_is_node` at a node.
    fn lookup_tool(&self, identity: &Identity, name: &str) -> Result<ToolItem, Box<CoreError>>;

    /// Lists the prompts that exist for the caller and are served, in the order of their paths. Does not contact a
    /// server.
    fn list_prompts(&self, identity: &Identity) -> Vec<ListedItem>;

    /// Lists the resources that exist for the caller and are served: the locked ones, and those that their sources list
    /// now. Does not contact a server.
    fn list_resources(&self, identity: &Identity) -> Vec<ListedItem>;

    /// Lists the templates of resources that exist for the caller and are served. Does not contact a server.
    fn list_templates(&self, identity: &Identity) -> Vec<ListedItem>;

    /// Finds the prompt with this name. Does not contact a server.
    ///
    /// # Errors
    ///
    /// `path_not_found` if no such prompt exists for the caller.
    fn lookup_prompt(&self, identity: &Identity, name: &str) -> Result<ToolItem, Box<CoreError>>;

    /// Finds the entry that serves a URI. Does not contact a server.
    ///
    /// # Errors
    ///
    /// `path_not_found` if no entry of the caller serves the URI.
    fn lookup_resource(
        &self,
        identity: &Identity,
        uri: &str,
    ) -> Result<ReadableUri, Box<CoreError>>;

    /// Returns the tree below a path, `depth` levels deep (1 to 16).
    ///
    /// # Errors
    ///
    /// `field_invalid`, `path_not_found`, `path_invalid`, `path_is_tool`.
    fn tree(&self, identity: &Identity, path: &str, depth: u8) -> Result<Reply, Box<CoreError>>;

    /// Finds the tools that fit a query best.
    ///
    /// # Errors
    ///
    /// `field_invalid`, `path_not_found`, `path_invalid`, `path_is_tool`.
    fn search(
        &self,
        identity: &Identity,
        query: &str,
        options: SearchOptions<'_>,
    ) -> Result<Reply, Box<CoreError>>;

    /// Describes one entry or several.
    ///
    /// # Errors
    ///
    /// `field_invalid`, and for one entry `path_not_found` and `path_invalid`.
    fn describe(&self, identity: &Identity, what: Describe<'_>) -> Result<Reply, Box<CoreError>>;

    /// Makes a call of an entry that [`Self::lookup_tool`] finds. Arguments and `_meta` are read only.
    ///
    /// # Errors
    ///
    /// Every code of the call path. The call was not sent unless `maybe_executed` is true.
    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send;

    /// Whether the broker is ready, and the state of every source, if the caller is an operator; other callers see
    /// no source.
    fn health(&self, identity: &Identity) -> Health;

    /// Refuses further calls and stops all sources. It takes no identity: the program that holds the broker closes it,
    /// and no request of a caller does. Idempotent, also when several tasks call it at one time.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

impl Inner {
    /// Returns a tool by its index.
    pub(crate) fn item(&self, at: u32, withdrawn: bool) -> ToolItem {
        let item = self.catalog.item(at);
        ToolItem {
            kind: item.kind,
            path: self.catalog.entry(item.entry).path,
            flat_name: item.flat_name,
            source: self.catalog.sources[item.source as usize].path,
            withdrawn,
        }
    }
}

impl BrokerInterface for Core {
    fn list_tools(&self, identity: &Identity) -> Vec<ToolItem> {
        let inner = self.inner();
        let (view, caller) = (inner.drift_state.view.load(), inner.caller(identity));
        let scope = inner.scope(&view, &caller);
        let tools = (0..).zip(scope.catalog.items);
        tools
            .filter(|(_, tool)| scope.admits(tool.entry))
            .map(|(at, _)| inner.item(at, view.withdrawn(at).is_some()))
            .collect()
    }

    fn lookup_tool(&self, identity: &Identity, name: &str) -> Result<ToolItem, Box<CoreError>> {
        let inner = self.inner();
        let path = self.find_flat(identity, name).map(|tool| tool.path);
        let found = self.lookup(identity, path.unwrap_or(name))?;
        let catalog = inner.catalog;
        let entry = catalog.find(found.path).map(|at| &catalog.entry(at).kind);
        match entry {
            Some(EntryKind::Item(at)) => Ok(inner.item(*at, found.withdrawn)),
            _ => Err(self.is_node(identity, found.path)),
        }
    }

    fn list_prompts(&self, identity: &Identity) -> Vec<ListedItem> {
        Self::list_prompts(self, identity)
    }

    fn list_resources(&self, identity: &Identity) -> Vec<ListedItem> {
        Self::list_resources(self, identity)
    }

    fn list_templates(&self, identity: &Identity) -> Vec<ListedItem> {
        Self::list_templates(self, identity)
    }

    fn lookup_prompt(&self, identity: &Identity, name: &str) -> Result<ToolItem, Box<CoreError>> {
        Self::lookup_prompt(self, identity, name)
    }

    fn lookup_resource(
        &self,
        identity: &Identity,
        uri: &str,
    ) -> Result<ReadableUri, Box<CoreError>> {
        Self::lookup_resource(self, identity, uri)
    }

    fn tree(&self, identity: &Identity, path: &str, depth: u8) -> Result<Reply, Box<CoreError>> {
        self.list(identity, path, depth)
    }

    fn search(
        &self,
        identity: &Identity,
        query: &str,
        options: SearchOptions<'_>,
    ) -> Result<Reply, Box<CoreError>> {
        Self::search(self, identity, query, options)
    }

    fn describe(&self, identity: &Identity, what: Describe<'_>) -> Result<Reply, Box<CoreError>> {
        Self::describe(self, identity, what)
    }

    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send {
        Self::call(self, request)
    }

    fn health(&self, identity: &Identity) -> Health {
        let mut health = Self::health(self);
        if !self.is_operator(identity) {
            health.sources.clear();
        }
        health
    }

    async fn close(&self) {
        Self::close(self).await;
    }
}
