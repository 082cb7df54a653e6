//! The params of calls by adapters: `callTool`, and `mode` of `tools/call`.

use broker_wire::protocol::INVALID_PARAMS;
use broker_wire::{JsonMembers, RpcError, valid_string};
use bytes::Bytes;
use serde_json::json;

use crate::Client;
use crate::params::Params;
use broker_core::{Broker, CallMode, FlatTool, ItemKind, Name};

/// The params of `callTool`: `{"stage"?,"command","args"?,"mode"?}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandCall {
    pub(super) stage: String,
    pub(super) command: String,
}

impl CommandCall {
    /// Splits the path of a tool into its stage and command.
    pub(crate) fn from_path(path: &str) -> Self {
        let (stage, command) = path.rsplit_once('/').unwrap_or(("", path));
        Self {
            stage: stage.trim_start_matches('/').to_owned(),
            command: command.to_owned(),
        }
    }

    /// Reads the params; returns the arguments as well, one JSON object.
    pub(crate) fn read(params: &Params<'_>) -> Result<(Self, Bytes), RpcError> {
        let text = |name: &str| match params.members.given(name).map(valid_string) {
            None => Ok(None),
            Some(Some(text)) => Ok(Some(text.into_owned())),
            Some(None) => Err(wrong(&format!("`{name}` must be a string"))),
        };
        let command = text("command")?.filter(|command| !command.is_empty());
        let command = command.ok_or_else(|| {
            wrong("`command` is missing: the last part of a tool's path, or its flat name")
        })?;
        let args = match params.members.given("args") {
            None => Bytes::from_static(b"{}"),
            Some(raw) if raw.starts_with('{') => params.raw.slice_ref(raw.as_bytes()),
            Some(_) => return Err(wrong("`args` must be an object")),
        };
        let stage = text("stage")?.unwrap_or_default();
        Ok((Self { stage, command }, args))
    }

    /// The tool at the path `/stage/command`, else the one with the flat name `command`, else the one with the flat name
    /// `stage-command`.
    pub(crate) fn find(&self, client: &Client<impl Broker>) -> Result<FlatTool, RpcError> {
        let (stage, command) = (self.stage.trim_matches('/'), self.command.as_str());
        let path = match stage {
            "" => format!("/{command}"),
            stage => format!("/{stage}/{command}"),
        };
        let look_up = |name: Name<'_>| client.broker.look_up(&client.identity, name).ok();
        let by_name = |name: &str| look_up(Name::Flat(name, client.view.vendor));
        let by_path = look_up(Name::Path(&path)).filter(|it| it.item.kind == ItemKind::Tool);
        by_path
            .or_else(|| by_name(command))
            .or_else(|| by_name(&format!("{}-{command}", stage.replace('/', "-"))))
            .map(FlatTool::from)
            .ok_or_else(|| {
                let shown = |text: &str| broker_model::text::shown_line(text, 160);
                let (path, command) = (shown(&path), shown(command));
                wrong(&format!(
                    "no tool has the path `{path}` or the flat name `{command}`: `listTools` has the names"
                ))
            })
    }
}

/// Returns the `mode` of a call, if it names one: how long its caller waits. Without jobs only `sync` is possible.
pub(crate) fn read_mode(
    params: &JsonMembers<'_>,
    has_jobs: bool,
) -> Result<Option<CallMode>, RpcError> {
    let Some(mode) = params.given("mode") else {
        return Ok(None);
    };
    let mode = valid_string(mode).and_then(|name| CallMode::parse(&name));
    match (mode, has_jobs) {
        (Some(CallMode::Async), false) => {
            let error = wrong("`mode` `async` needs jobs, which are off here: use `sync`");
            Err(error.data(json!({ "code": "not_durable" })))
        }
        (Some(mode), _) => Ok(Some(mode)),
        (None, _) => Err(wrong("`mode` must be `sync`, `async` or `auto`")),
    }
}

fn wrong(message: &str) -> RpcError {
    RpcError::new(INVALID_PARAMS, message)
}
