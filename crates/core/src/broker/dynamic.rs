//! A broker whose layers are chosen at run time.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use broker_memory::Account;
use broker_model::item::ItemKind;

use super::Broker;
use crate::call::context::{Outcome, Request};
use crate::errors::error::CoreError;
use crate::forward;
use crate::identity::Identity;
use crate::item::ToolItem;
use crate::jobs::JobDesk;
use crate::listing::description::Described;
use crate::listing::items::ListedItem;
use crate::listing::look_up::{FoundItem, Name};
use crate::listing::search::FoundTools;
use crate::listing::tools::{CallableTool, ToolPage, ToolQuery};
use crate::listing::tree::Listing;
use crate::services::Services;
use crate::sources::health::Health;
use crate::types::SearchQuery;

/// A broker of any type. A call through it costs one allocation more than a call of the broker within.
#[derive(Clone)]
pub struct DynBroker {
    inner: Arc<dyn Boxed>,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The operations of [`Broker`] with boxed futures.
trait Boxed: Send + Sync {
    fn services(&self) -> &Services;
    fn list(&self, identity: &Identity, path: &str, depth: u8) -> Result<Listing, Box<CoreError>>;
    fn describe<'a>(
        &'a self,
        identity: &'a Identity,
        paths: &'a [&'a str],
        account: &'a Account,
    ) -> Answer<'a, Result<Vec<Described>, Box<CoreError>>>;
    fn search<'a>(
        &'a self,
        identity: &'a Identity,
        what: SearchQuery<'a>,
    ) -> Answer<'a, Result<FoundTools, Box<CoreError>>>;
    fn look_up(&self, identity: &Identity, name: Name<'_>) -> Result<FoundItem, Box<CoreError>>;
    fn items(&self, identity: &Identity) -> Vec<ToolItem>;
    fn tools(&self, identity: &Identity, what: &ToolQuery<'_>) -> Option<ToolPage>;
    fn callable_tools(&self, identity: &Identity) -> Vec<CallableTool>;
    fn listed_items(&self, identity: &Identity, kind: ItemKind) -> Vec<ListedItem>;
    fn traces_calls(&self) -> bool;
    fn jobs(&self) -> Option<&Arc<dyn JobDesk>>;
    fn call(&self, request: Request) -> Answer<'_, Result<Outcome, Box<CoreError>>>;
    fn health(&self, identity: &Identity) -> Health;
    fn close(&self) -> Answer<'_, ()>;
}

impl<B: Broker> Boxed for B {
    fn services(&self) -> &Services {
        Broker::services(self)
    }

    fn list(&self, identity: &Identity, path: &str, depth: u8) -> Result<Listing, Box<CoreError>> {
        Broker::list(self, identity, path, depth)
    }

    fn describe<'a>(
        &'a self,
        identity: &'a Identity,
        paths: &'a [&'a str],
        account: &'a Account,
    ) -> Answer<'a, Result<Vec<Described>, Box<CoreError>>> {
        Box::pin(Broker::describe(self, identity, paths, account))
    }

    fn search<'a>(
        &'a self,
        identity: &'a Identity,
        what: SearchQuery<'a>,
    ) -> Answer<'a, Result<FoundTools, Box<CoreError>>> {
        Box::pin(Broker::search(self, identity, what))
    }

    fn look_up(&self, identity: &Identity, name: Name<'_>) -> Result<FoundItem, Box<CoreError>> {
        Broker::look_up(self, identity, name)
    }

    fn items(&self, identity: &Identity) -> Vec<ToolItem> {
        Broker::items(self, identity)
    }

    fn tools(&self, identity: &Identity, what: &ToolQuery<'_>) -> Option<ToolPage> {
        Broker::tools(self, identity, what)
    }

    fn callable_tools(&self, identity: &Identity) -> Vec<CallableTool> {
        Broker::callable_tools(self, identity)
    }

    fn listed_items(&self, identity: &Identity, kind: ItemKind) -> Vec<ListedItem> {
        Broker::listed_items(self, identity, kind)
    }

    fn traces_calls(&self) -> bool {
        Broker::traces_calls(self)
    }

    fn jobs(&self) -> Option<&Arc<dyn JobDesk>> {
        Broker::jobs(self)
    }

    fn call(&self, request: Request) -> Answer<'_, Result<Outcome, Box<CoreError>>> {
        Box::pin(Broker::call(self, request))
    }

    fn health(&self, identity: &Identity) -> Health {
        Broker::health(self, identity)
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(Broker::close(self))
    }
}

impl DynBroker {
    /// Boxes a broker.
    pub fn new(broker: impl Broker) -> Self {
        Self {
            inner: Arc::new(broker),
        }
    }
}

impl fmt::Debug for DynBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DynBroker")
            .field(self.inner.services())
            .finish()
    }
}

impl Broker for DynBroker {
    forward!(
        inner: services, list, describe, search, look_up, items, tools, callable_tools, listed_items, traces_calls,
        jobs, health, close
    );

    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send {
        self.inner.call(request)
    }
}
