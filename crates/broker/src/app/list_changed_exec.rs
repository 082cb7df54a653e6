//! The command that runs after the list of a session has changed: from its variable, or from the config.

use broker_config::Config;
use broker_mcp::Environment;
use broker_model::Diagnostic;
use broker_process::ProcessSpec;
use serde_json::json;

use super::settings::LoadedConfig;

/// The variables, a command with the rules of `command` of a source: the first one that is set counts. Another
/// proxy has the second one.
const VARIABLES: [&str; 2] = ["MCP_BROKER_LIST_CHANGED_EXEC", "MCPPROXY_LIST_CHANGED_EXEC"];
/// The place of the command in a config.
const POINTER: &str = "/mcp/list_changed_exec";

/// The process of the command, if there is one.
pub(super) fn make(
    settings: &LoadedConfig,
    environment: &Environment,
) -> Result<Option<ProcessSpec>, Vec<Diagnostic>> {
    let of_variable = variable(environment)
        .map(|(name, text)| parse(name, text))
        .transpose()?;
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

/// The name and the text of the variable that counts.
fn variable(environment: &Environment) -> Option<(&'static str, &str)> {
    let set = VARIABLES.into_iter().filter_map(|name| {
        let text = environment.get(name).filter(|text| !text.is_empty())?;
        Some((name, text))
    });
    let set: Vec<_> = set.collect();
    if let [(own, text), (other, ignored)] = &set[..]
        && text != ignored
    {
        tracing::warn!("`{own}` and `{other}` differ; `{own}` counts");
    }
    set.into_iter().next()
}

/// Reads the variable like the member of a config; messages name the variable.
fn parse(name: &str, text: &str) -> Result<Config, Vec<Diagnostic>> {
    let config = json!({ "tree": [], "mcp": { "list_changed_exec": text } });
    let parsed = Config::parse(name, config.to_string().as_bytes())?;
    Ok(parsed.config)
}
