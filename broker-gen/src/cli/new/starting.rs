//! The initial config of a new crate: a small one, or the user's file with its literal secrets replaced by
//! variables.

use std::collections::BTreeSet;
use std::path::Path;

use broker_build::build_script::read_config;
use broker_config::{Config, Source};
use broker_model::json::position_of_pointer;
use broker_model::{Diagnostic, DiagnosticCode};
use serde_json::Value;

const SMALL: &str = include_str!("../../new/config.json.in");
const SCHEMA_LINE: &str = "\n  \"$schema\": \"./config.schema.json\",";
const COERCE_LINE: &str = "\n  \"coerce\": true,";

/// A config, ready to be written.
#[derive(Debug)]
pub(super) struct Starting {
    pub(super) text: String,
    /// The variables that it reads from the environment.
    pub(super) variables: BTreeSet<String>,
    /// The variables that replace secrets, each with a description of the secret.
    pub(super) replaced: Vec<(String, String)>,
    pub(super) warnings: Vec<Diagnostic>,
    /// Whether its only server is `toolbox-mcp`.
    pub(super) is_small: bool,
}

impl Starting {
    /// Returns the small config. Its only server needs only Rust.
    pub(super) fn small() -> Self {
        Self {
            text: SMALL.to_owned(),
            variables: BTreeSet::new(),
            replaced: Vec::new(),
            warnings: Vec::new(),
            is_small: true,
        }
    }

    /// A config or an `mcpServers` file, unchanged except for secrets and missing settings.
    pub(super) fn from_file(file: &Path) -> Result<Self, Vec<Diagnostic>> {
        let shown = file.to_string_lossy();
        let unreadable = |error: &dyn std::fmt::Display| {
            let message = format!("the config `{shown}` cannot be read: {error}");
            vec![Diagnostic::error(DiagnosticCode::ConfigUnreadable, message)]
        };
        let bytes = read_config(file, &shown)?;
        let parsed = Config::parse(&shown, &bytes)?;
        let text = String::from_utf8(bytes).map_err(|error| unreadable(&error))?;
        let text = text.trim_start_matches('\u{feff}');

        let (compiled, secrets) = parsed.config.compiled();
        let (mut text, replaced) = match parsed.config.converted_text() {
            Some(text) => (text, Vec::new()),
            None => without_secrets(text, &compiled, &secrets),
        };
        let mut first_lines = String::new();
        if compiled.get("$schema").is_none() {
            first_lines.push_str(SCHEMA_LINE);
        }
        // A config says itself whether arguments are converted; a file of a client has no such setting.
        if compiled.get("tree").is_none() && compiled.get("coerce").is_none() {
            first_lines.push_str(COERCE_LINE);
        }
        if let Some(at) = text.find('{') {
            text.insert_str(at + 1, &first_lines);
        }
        // Variables that replaced secrets are required as well.
        let again = Config::parse("config.json", text.as_bytes())?.config;
        let mut warnings = parsed.warnings;
        if replaced.is_empty() {
            // The text was converted, or it has no secrets.
            warnings.extend(secrets);
        }
        warnings.extend(
            parsed
                .config
                .sources()
                .filter_map(|source| relative(&parsed.config, source)),
        );
        Ok(Self {
            variables: again.variables().into_iter().map(str::to_owned).collect(),
            text,
            replaced,
            warnings,
            is_small: false,
        })
    }
}

/// The text with each secret replaced by its compiled-in form.
fn without_secrets(
    text: &str,
    compiled: &Value,
    secrets: &[Diagnostic],
) -> (String, Vec<(String, String)>) {
    let mut places: Vec<_> = secrets
        .iter()
        .filter_map(|secret| {
            let pointer = secret.pointer.as_deref()?;
            let at = position_of_pointer(text, pointer)
                .and_then(|at| offset(text, at.line, at.column))?;
            let value = compiled.pointer(pointer)?;
            let length = string_length(&text[at..])?;
            Some((at, length, value, pointer))
        })
        .collect();
    places.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
    let mut out = text.to_owned();
    let mut replaced = Vec::new();
    for (at, length, value, pointer) in places {
        out.replace_range(at..at + length, &value.to_string());
        let variable = value.as_str().unwrap_or_default().to_owned();
        replaced.push((variable, format!("the secret at {pointer}")));
    }
    replaced.reverse();
    (out, replaced)
}

fn offset(text: &str, line: usize, column: usize) -> Option<usize> {
    let start: usize = text
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    let rest = text.get(start..)?;
    let at = rest.char_indices().nth(column - 1).map(|(at, _)| at)?;
    Some(start + at)
}

/// The bytes of the JSON string at the start of `text`, with its quotes.
fn string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    if !text.starts_with('"') {
        return None;
    }
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// A relative path means another file in the new folder.
fn relative(config: &Config, source: &Source) -> Option<Diagnostic> {
    let moves = |raw: &str| raw.starts_with("./") || raw.starts_with("../");
    let process = source.endpoint.any_process();
    let cwd = process.and_then(|process| Some(process.cwd.as_ref()?.raw()));
    let found = cwd.is_some_and(|cwd| !cwd.starts_with(['/', '$']))
        || source.templates().any(|template| moves(template.raw()));
    found.then(|| {
        let message = format!(
            "`{}` has a relative path, which is now relative to the new folder",
            source.path
        );
        config.place(
            Diagnostic::warning(DiagnosticCode::PathInvalid, message)
                .at(&source.pointer)
                .help("Correct it in the new `config.json`, or make it absolute."),
        )
    })
}
