//! Configs: the same diagnostics twice, each with a place inside the text, and an error among them
//! exactly where there is no config.

use broker_config::Config;
use broker_model::Diagnostic;
use fuzz::behaviour;

#[test]
fn config_of_any_text_is_read_or_refused_with_places() {
    let words = [
        "tree",
        "mcpServers",
        "path",
        "type",
        "node",
        "children",
        "source",
        "backend",
        "stdio",
        "http",
        "command",
        "args",
        "env",
        "inherit_env",
        "cwd",
        "url",
        "headers",
        "tool_filter",
        "path_aliases",
        "tool_overrides",
        "required",
        "startup_timeout",
        "timeout",
        "max_in_flight",
        "instances",
        "limits",
        "summary",
        "/a/b",
        "/",
        "${HOME}",
        "${A:-b}",
        "$(x)",
        "`",
        "'",
        "<<E",
        "!get_*",
        "{a,b}",
        "\u{feff}",
        "max_output_chars",
        "render_mode",
        "retry_idempotent",
        "allowed_hosts",
        "types",
    ];
    fuzz::run("config", &words, |bytes| {
        let parse = || Config::parse("given.json", bytes).map(|parsed| parsed.warnings);
        let (first, second) = (parse(), parse());
        if first != second {
            return Err("not the same twice".to_owned());
        }
        let (refused, diagnostics) = match first {
            Ok(warnings) => (false, warnings),
            Err(problems) => (true, problems),
        };
        if refused != diagnostics.iter().any(Diagnostic::is_error) {
            return Err(format!("refused: {refused}, by {diagnostics:?}"));
        }
        let text = String::from_utf8_lossy(bytes);
        for diagnostic in &diagnostics {
            check(diagnostic, &text)?;
        }
        let codes: Vec<_> = diagnostics
            .iter()
            .map(|diagnostic| diagnostic.code.as_str())
            .take(4)
            .collect();
        Ok(behaviour((refused, codes)))
    });
}

/// Whether a diagnostic can be shown: its place is in the text, its message is one.
pub(crate) fn check(diagnostic: &Diagnostic, text: &str) -> Result<(), String> {
    if let Some(position) = diagnostic.position {
        let (line, column) = (position.line, position.column);
        let lines: Vec<&str> = text.split('\n').collect();
        let inside = line >= 1
            && column >= 1
            && lines
                .get(line - 1)
                .is_some_and(|text| column <= text.chars().count() + 1);
        if !inside {
            return Err(format!(
                "{line}:{column} is not in the text: {diagnostic:?}"
            ));
        }
    }
    if diagnostic.message.is_empty() || diagnostic.message.ends_with('.') {
        return Err(format!("no message: {diagnostic:?}"));
    }
    Ok(())
}
