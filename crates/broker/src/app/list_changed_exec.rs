//! The command that runs after the list of a session has changed: from its variable, or from the config.

use broker_mcp::Environment;
use broker_model::Diagnostic;
use broker_model::config::Config;
use broker_process::ProcessSpec;
use serde_json::json;

use super::settings::LoadedConfig;

/// The variable, a command with the rules of `command` of a source.
const VARIABLE: &str = "MCP_BROKER_LIST_CHANGED_EXEC";
/// The place of the command in a config.
const POINTER: &str = "/mcp/list_changed_exec";

/// The process of the command, if there is one.
pub(super) fn make(
    settings: &LoadedConfig,
    environment: &Environment,
) -> Result<Option<ProcessSpec>, Vec<Diagnostic>> {
    let variable = environment.get(VARIABLE).filter(|text| !text.is_empty());
    let of_variable = variable.map(parse).transpose()?;
    let config = of_variable.as_ref().unwrap_or(&settings.config);
    let Some(command) = &config.mcp.list_changed_exec else {
        return Ok(None);
    };
    if command.is_shell() {
        tracing::warn!(
            "the command for changed lists has shell syntax, so that `/bin/sh -c` runs it"
        );
    }
    broker_mcp::resolve_command(
        "list_changed_exec",
        POINTER,
        command,
        environment,
        &settings.base,
    )
    .map(Some)
    .map_err(|found| found.into_iter().map(|one| config.place(one)).collect())
}

/// Reads the variable like the member of a config.
fn parse(text: &str) -> Result<Config, Vec<Diagnostic>> {
    let config = json!({ "tree": [], "mcp": { "list_changed_exec": text } });
    let parsed = Config::parse(VARIABLE, config.to_string().as_bytes())?;
    Ok(parsed.config)
}
