//! The dialect of simple MCP adapters, for clients at the routes below `/v1`: other names of methods, requests without
//! a handshake, results with the members of a command, and a discovery document.

use broker_wire::Era;
use broker_wire::write::Text;
use serde_json::json;

use super::Client;
use super::server_info::server_info;
use broker_core::Broker;

mod command_call;
mod command_result;
mod discovery;

pub(super) use command_call::{CommandCall, read_mode};
pub(super) use command_result::ResultForm;
pub(super) use discovery::{Document, document};

/// The revision that answers an `initialize` without params.
pub(super) const SIMPLE_REVISION: &str = "2025-06-18";
/// A JSON-RPC code of adapters, whose clients expect it: a command has failed.
const COMMAND_FAILED: i64 = -32000;

/// The methods and result forms that a client may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The methods and result forms of the specification.
    #[default]
    Standard,
    /// Also the methods of adapters.
    Aliases,
    /// Also requests without a handshake, whose results have `status`, `stdout` and `exit_code`.
    Simple,
}

/// A method of adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdapterMethod {
    /// `tools/list`
    ListTools,
    /// A call by stage and command, or by flat name.
    CallTool,
    /// The state of the broker.
    StatusReport,
}

impl Dialect {
    /// The method of adapters with this name, if the dialect has it.
    pub(super) fn method(self, name: &str) -> Option<AdapterMethod> {
        if self == Self::Standard {
            return None;
        }
        Some(match name {
            "listTools" => AdapterMethod::ListTools,
            "callTool" => AdapterMethod::CallTool,
            "statusReport" | "status/report" => AdapterMethod::StatusReport,
            _ => return None,
        })
    }
}

/// The result of `statusReport`: `{"status","name","version","catalog_digest"}`.
pub(super) fn status_report(client: &Client<impl Broker>, era: Era) -> Text {
    let info = server_info();
    let mut report = json!({
        "status": "ok",
        "name": info["name"],
        "version": info["version"],
        "catalog_digest": client.broker.services().catalog_digest(),
    });
    if era == Era::Modern {
        report["resultType"] = json!("complete");
    }
    report.to_string().into_bytes().into()
}

#[cfg(test)]
mod tests;
