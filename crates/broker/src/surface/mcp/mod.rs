//! The broker as an MCP server, in both eras: the three meta-tools as tools. The methods are here; a
//! transport in a folder below carries the messages.

mod call;
mod connection;
mod cut_note;
mod in_flight;
mod reply;
mod result;
pub(crate) mod stdio;
mod tools;

use super::request_id::RequestIds;
use crate::core::{Account, Core, Drain, Identity};
use tools::Texts;

/// The context of every request of a client.
#[derive(Debug)]
struct ClientContext {
    core: Core,
    identity: Identity,
    /// The account of the client, to which its requests and their answers are charged.
    account: Account,
    texts: Texts,
    ids: RequestIds,
    drain: Drain,
}

impl ClientContext {
    fn new(core: Core, identity: Identity, account: Account) -> Self {
        Self {
            texts: Texts::new(&core, &identity),
            identity,
            account,
            drain: core.drain().clone(),
            core,
            ids: RequestIds::new(),
        }
    }
}
