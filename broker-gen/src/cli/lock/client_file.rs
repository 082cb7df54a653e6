//! The notes of `lock` about a config that is the file of a client: the client that wrote it, and the variables that
//! its servers had from the client and do not have from the broker.

use std::collections::BTreeMap;

use broker_config::Config;
use broker_mcp::SourceSpec;
use broker_model::terminal::Text;
use broker_model::text;

use crate::cli::input::Input;
use crate::cli::output::say;

/// Prints the notes. A config with a tree has no notes.
pub(super) fn report(input: &Input) {
    let notes = notes(&input.config, &input.specs);
    notes.into_iter().for_each(say);
}

fn notes(config: &Config, specs: &[SourceSpec]) -> Vec<Text> {
    if !config.is_client_file() {
        return Vec::new();
    }
    let client = config.client();
    let client = client.map(|client| text!("{} is a file of {}", config.file, client.name()));
    let mut notes: Vec<Text> = client.into_iter().collect();
    // Servers often miss the same variables; each list is printed once.
    let mut sources: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
    for spec in specs.iter().filter(|spec| !spec.withheld.is_empty()) {
        let paths = sources.entry(&spec.withheld).or_default();
        paths.push(spec.source.as_str());
    }
    for (names, paths) in sources {
        notes.push(text!(
            "note: {}: a client may hand on all of its variables; the broker gives a server PATH, HOME and the like, and those that the config names in `env` or `inherit_env`. Set here and not given: {}",
            paths.join(", "),
            names.join(", ")
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use broker_mcp::{ConcurrencyLimits, Environment, resolve};

    use super::*;

    fn notes_about(text: &str) -> Vec<String> {
        let config = Config::parse("mcp.json", text.as_bytes())
            .expect("valid")
            .config;
        let variables = ["PATH", "HOME", "EDITOR", "GITHUB_TOKEN", "NOTES_FOLDER"];
        let variables = variables.map(|name| (name.to_owned(), "/bin".to_owned()));
        let environment = Environment::new(variables.into_iter().collect(), None);
        let concurrency = ConcurrencyLimits::new();
        let specs = config.sources().map(|source| {
            let base = Path::new("/");
            let spec = resolve(source, &config.limits, &environment, base, &concurrency);
            spec.expect("every variable is set")
        });
        let specs: Vec<SourceSpec> = specs.collect();
        let notes = notes(&config, &specs);
        notes.iter().map(|note| note.as_str().to_owned()).collect()
    }

    #[test]
    fn variables_that_a_server_had_from_its_client_are_named() {
        let found = notes_about(
            r#"{"theme": "x", "selectedAuthType": "y", "mcpServers": {
                "notes": {"command": "/bin/sh"},
                "a": {"command": "/bin/sh", "env": {"GITHUB_TOKEN": "$GITHUB_TOKEN"}},
                "b": {"command": "/bin/sh"}, "c": {"command": "/bin/sh"}}}"#,
        );
        assert_eq!(found.len(), 3, "{found:#?}");
        assert_eq!(found[0], "mcp.json is a file of Gemini CLI");
        for (sources, names) in [
            ("note: /b, /c: ", "not given: GITHUB_TOKEN"),
            ("note: /notes: ", "not given: NOTES_FOLDER, GITHUB_TOKEN"),
        ] {
            let note = found.iter().find(|note| note.starts_with(sources));
            assert!(note.is_some_and(|note| note.ends_with(names)), "{found:#?}");
        }
        let tree = r#"{"tree": [{"path": "/notes", "source": {"command": ["/bin/sh"]}}]}"#;
        assert!(notes_about(tree).is_empty());
    }
}
