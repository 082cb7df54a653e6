//! A broker as surfaces and layers see it: what an identity may see, and one call. A [`Core`](crate::Core) is the
//! innermost broker; a layer wraps another broker and takes part in what it changes.

mod areas;
mod dynamic;
mod forward;
mod restrict;

pub use areas::areas;
pub use dynamic::DynBroker;
pub use restrict::Restrict;

use std::fmt;
use std::sync::Arc;

use broker_memory::Account;
use broker_model::item::ItemKind;

use crate::call::context::{Outcome, Request};
use crate::errors::error::CoreError;
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

/// The operations of a broker. Each takes the identity of its caller as a parameter and uses no other one; a caller that
/// sent no credential is [`Identity::anonymous`]. No operation but [`Self::call`] contacts a server.
///
/// A layer implements it around another broker: it passes on what it does not change, and its lists, look-ups and calls
/// agree. It cannot make the broker below send a call that this one refuses. See [`Restrict`].
pub trait Broker: Clone + fmt::Debug + Send + Sync + 'static {
    /// Returns the services of the core at the bottom. A layer returns the services of the broker below it.
    fn services(&self) -> &Services;

    /// Lists the tree below a path, `depth` levels deep (1 to 16).
    ///
    /// # Errors
    ///
    /// `field_invalid`, `path_not_found`, `path_invalid`, `path_is_tool`.
    fn list(&self, identity: &Identity, path: &str, depth: u8) -> Result<Listing, Box<CoreError>>;

    /// Describes at most 50 entries, each for itself. Unknown paths get suggestions; if that takes long, callers take
    /// turns by their accounts.
    ///
    /// # Errors
    ///
    /// `field_invalid`; for each entry `path_not_found` and `path_invalid`.
    fn describe(
        &self,
        identity: &Identity,
        paths: &[&str],
        account: &Account,
    ) -> impl Future<Output = Result<Vec<Described>, Box<CoreError>>> + Send;

    /// Finds the tools that fit a query best.
    ///
    /// # Errors
    ///
    /// `field_invalid` unless the query has 1 to 400 characters with a letter or digit and the limit is from 1 to 50;
    /// `path_not_found`, `path_invalid` and `path_is_tool` for the place.
    fn search(
        &self,
        identity: &Identity,
        what: SearchQuery<'_>,
    ) -> impl Future<Output = Result<FoundTools, Box<CoreError>>> + Send;

    /// Finds the item with this name, also if it is withdrawn. Suggests no other name.
    ///
    /// # Errors
    ///
    /// `path_not_found` if no such item exists for the caller, `path_is_node` at a node.
    fn look_up(&self, identity: &Identity, name: Name<'_>) -> Result<FoundItem, Box<CoreError>>;

    /// Returns the items of every kind that exist for the caller, in the order of their paths, also withdrawn ones.
    fn items(&self, identity: &Identity) -> Vec<ToolItem>;

    /// Returns a page of the served tools as entries of `tools/list`. `None` if the page begins after a tool that does
    /// not exist for the caller.
    fn tools(&self, identity: &Identity, what: &ToolQuery<'_>) -> Option<ToolPage>;

    /// Returns the served tools with what a call needs, in the order of their paths.
    fn callable_tools(&self, identity: &Identity) -> Vec<CallableTool>;

    /// Returns the served prompts, templates or resources, in the order of their paths, then of their URIs: the locked
    /// ones, and those that their sources list now.
    fn listed_items(&self, identity: &Identity, kind: ItemKind) -> Vec<ListedItem>;

    /// Whether a layer traces calls, so that it needs the trace context of the request that brings a call.
    fn traces_calls(&self) -> bool {
        false
    }

    /// Returns the desk of the layer that keeps jobs; `None` without such a layer, which leaves what a call asks of it
    /// unread.
    fn jobs(&self) -> Option<&Arc<dyn JobDesk>> {
        None
    }

    /// Makes a call of an item that [`Self::look_up`] finds. [`CancelMode`](crate::CancelMode) says what cancels it.
    ///
    /// # Errors
    ///
    /// Every code of the call path. The call was not sent unless `maybe_executed` is true.
    fn call(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Outcome, Box<CoreError>>> + Send;

    /// Returns whether the broker is ready, and the state of every source, if the caller is an operator; other callers
    /// see no source.
    fn health(&self, identity: &Identity) -> Health;

    /// Refuses further calls and stops all sources. It takes no identity: the program that holds the broker closes it,
    /// and no request of a caller does. Idempotent, also when several tasks call it at one time.
    fn close(&self) -> impl Future<Output = ()> + Send;
}
