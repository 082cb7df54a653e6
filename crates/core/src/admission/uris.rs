//! Decides whether a caller may read a URI. One URI can belong to several entries of its source: a locked resource,
//! templates, and the entry of live resources. A server gets the URI alone, so the entry in the caller's request must
//! not open a URI that another entry denies.

use broker_model::access::Decision;
use broker_model::item::ItemKind;
use broker_model::uri::UriSpellings;
use broker_model::uri_template::UriTemplate;

use super::Caller;
use crate::catalog::{Catalog, Item};
use crate::view::View;

impl Caller {
    /// Whether the caller may read a URI of a source: every locked resource and every template of the source that the
    /// server may read the URI as is callable for it, without rules about arguments. `called` is the tool whose own rule
    /// about arguments has accepted the call.
    pub(crate) fn may_read(
        &self,
        view: &View,
        catalog: &Catalog,
        source: u32,
        uri: &str,
        called: Option<u32>,
    ) -> bool {
        if !self.needs_own_replies() && self.subtree.is_none() && view.hidden().is_empty() {
            return true;
        }
        let mut tools = (0..).zip(catalog.items);
        let is_locked = |(_, tool): (u32, &Item)| {
            tool.source == source && tool.kind == ItemKind::Resource && tool.id == uri
        };
        let spellings = match tools.clone().any(is_locked) {
            true => UriSpellings::from_known(uri),
            false => UriSpellings::new(uri),
        };
        tools.all(|(at, tool)| {
            if tool.source != source || !may_be(&spellings, tool) {
                return true;
            }
            match self.decide(view, catalog, tool.entry) {
                Decision::Callable => true,
                Decision::Narrowed => called == Some(at),
                Decision::Absent => false,
            }
        })
    }
}

/// Whether a server may read a URI as the entry's URI.
fn may_be(spellings: &UriSpellings, tool: &Item) -> bool {
    let id = tool.id;
    match tool.kind {
        ItemKind::Tool | ItemKind::Prompt => false,
        ItemKind::Resource => !tool.is_live() && spellings.may_be(id),
        ItemKind::Template => {
            UriTemplate::parse(id).map_or(true, |template| spellings.may_be_of(&template))
        }
    }
}
