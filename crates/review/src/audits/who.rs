//! The author of an audit: the given name, else git's user.

use std::path::Path;

use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};

use broker_process::program;

/// The author. `said` is `--who` or `MCP_BROKER_WHO`; without it, git is asked in the config's folder, so
/// that the repository's settings apply.
pub fn who(said: Option<&str>, config: &Path) -> Result<String, Vec<Diagnostic>> {
    if let Some(said) = said.map(str::trim).filter(|said| !said.is_empty()) {
        return Ok(said.to_owned());
    }
    let folder = program::folder_of(config);
    let ask = |key: &str| {
        program::git(&["config", "--get", key], folder)
            .map(|answer| answer.trim().to_owned())
            .ok()
            .filter(|answer| !answer.is_empty())
    };
    match (ask("user.name"), ask("user.email")) {
        (Some(name), Some(email)) => Ok(shown_line(&format!("{name} <{email}>"), 200)),
        (Some(one), None) | (None, Some(one)) => Ok(shown_line(&one, 200)),
        (None, None) => Err(vec![Diagnostic::error(
            DiagnosticCode::WhoMissing,
            "no author is given, and git has no `user.name` here",
        )]),
    }
}
