//! The servers of a config with their commands, as lines for people. Secrets are variables already; terminal controls and
//! hidden characters are escaped.

use broker_config::Config;
use broker_model::terminal::Text;
use broker_model::text::{shell_word, shown_line};
use broker_model::{Diagnostic, text};
use serde_json::Value;

/// Maximum number of characters of a command.
const MAX_COMMAND: usize = 1000;

/// Returns a line for each source of a config.
pub(super) fn lines(config: &str) -> Result<Vec<Text>, Vec<Diagnostic>> {
    let parsed = Config::parse("config", config.as_bytes())?;
    // The text was written by the import, so it is JSON.
    let value: Value = serde_json::from_str(config).unwrap_or_default();
    let nodes = value["tree"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let sources = parsed.config.sources().zip(nodes);
    Ok(sources
        .map(|(source, node)| text!("  {}: {}", source.path, command(&node["source"])))
        .collect())
}

/// The command line or the URL of a source.
fn command(source: &Value) -> String {
    if let Some(url) = source["url"].as_str() {
        return shown_line(url, MAX_COMMAND);
    }
    let first = match &source["command"] {
        Value::String(word) => vec![word.as_str()],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let args = source["args"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let words = first
        .into_iter()
        .chain(args.iter().filter_map(Value::as_str));
    let words: Vec<_> = words.map(shell_word).collect();
    shown_line(&words.join(" "), MAX_COMMAND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_in_one_line_without_controls() {
        let config = serde_json::json!({"tree": [
            {"path": "/a", "type": "node", "source": {"command": "x y", "args": ["--k=${K}", "\u{1b}[2J\u{202e}"]}},
            {"path": "/b", "type": "node", "source": {"url": "https://example.org/mcp"}},
        ]});
        let lines = lines(&config.to_string()).expect("valid");
        let shown: Vec<&str> = lines.iter().map(Text::as_str).collect();
        assert!(shown[0].starts_with("  /a: 'x y' "), "{shown:?}");
        assert!(shown[0].contains("--k=${K}"), "{shown:?}");
        assert!(!shown[0].contains(['\u{1b}', '\u{202e}']), "{shown:?}");
        assert_eq!(shown[1], "  /b: https://example.org/mcp");
    }
}
