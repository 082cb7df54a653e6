//! Machines where no verb writes files: `CI=true` or `MCP_BROKER_LOCKED=1`. Each refusal names the variable.

use broker_model::{Diagnostic, DiagnosticCode, text};

use super::output::say;

/// The variables that disable writing, each with a value that allows it.
const VARIABLES: [(&str, &str); 2] = [("CI", "false"), ("MCP_BROKER_LOCKED", "0")];
/// The values that disable writing.
const SET: [&str; 2] = ["true", "1"];

/// Whether writing is disabled.
pub(super) fn is_unattended() -> bool {
    reason().is_some()
}

/// Returns the reason why files are not written, and the value of each variable that would permit it; `None` if files
/// are written.
pub(super) fn reason() -> Option<String> {
    reason_of(|name| std::env::var(name).ok())
}

fn reason_of(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_set = |name| variable(name).is_some_and(|value| SET.contains(&value.as_str()));
    let set = VARIABLES.iter().filter(|(name, _)| is_set(name));
    let (names, values): (Vec<_>, Vec<_>) = set
        .map(|(name, allows)| (format!("`{name}`"), format!("{name}={allows}")))
        .unzip();
    let verb = match names.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let (names, values) = (names.join(" and "), values.join(" "));
    Some(format!(
        "{names} {verb} set, so nothing is written; `{values}` writes"
    ))
}

/// Prints the reason, if there is one, below the refusal of a verb that compares instead of writing.
pub(super) fn say_reason() {
    if let Some(reason) = reason() {
        say(text!("{}", reason));
    }
}

/// Refuses a verb that would write.
pub(super) fn refuse(verb: &str) -> Result<(), Vec<Diagnostic>> {
    match reason() {
        None => Ok(()),
        Some(reason) => {
            let message = format!("`{verb}` is refused: {reason}");
            let problem = Diagnostic::error(DiagnosticCode::WriteRefused, message);
            Err(vec![problem])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &[(&str, &str)]) -> Option<String> {
        reason_of(|name| {
            let found = set.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn reason_names_every_variable_that_is_set() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("CI", "false"), ("MCP_BROKER_LOCKED", "0")]), None);
        let ci = "`CI` is set, so nothing is written; `CI=false` writes";
        assert_eq!(of(&[("CI", "true")]).as_deref(), Some(ci));
        let locked =
            "`MCP_BROKER_LOCKED` is set, so nothing is written; `MCP_BROKER_LOCKED=0` writes";
        assert_eq!(of(&[("MCP_BROKER_LOCKED", "1")]).as_deref(), Some(locked));
        let both = "`CI` and `MCP_BROKER_LOCKED` are set, so nothing is written; `CI=false MCP_BROKER_LOCKED=0` writes";
        assert_eq!(
            of(&[("CI", "1"), ("MCP_BROKER_LOCKED", "true")]).as_deref(),
            Some(both)
        );
    }
}
