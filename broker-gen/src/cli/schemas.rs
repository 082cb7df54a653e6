//! Refuses tools whose schemas are too costly or do not compile, before they are locked.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use broker_model::config::Config;
use broker_model::lock::LockedSource;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_schema::{compile, inspect};
use serde_json::Value;

/// Maximum time to compile one schema; real ones take milliseconds.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(10);
/// Stack size: the compiler recurses with the schema's depth, which `inspect` has bounded.
const STACK: usize = 16 << 20;

/// Every refused schema of the exposed tools.
pub(super) fn refuse(sources: &[LockedSource]) -> Vec<Diagnostic> {
    let schemas = sources.iter().flat_map(|source| {
        source.exposed.iter().flat_map(move |tool| {
            ["inputSchema", "outputSchema"]
                .into_iter()
                .filter_map(move |key| Some((source, tool, key, tool.raw.get(key)?)))
        })
    });
    let mut problems = Vec::new();
    for (source, tool, key, schema) in schemas {
        if let Err(problem) = inspect(schema).and_then(|()| compiles(schema)) {
            let pointer = format!("/{key}{}", problem.pointer.as_deref().unwrap_or_default());
            let name = broker_model::text::shown_line(&tool.upstream_name, 100);
            let message = format!(
                "the tool `{name}` of `{}` is refused: {}, at {pointer}",
                source.path, problem.message
            );
            let help = format!(
                "Hide it: add `\"!{name}\"` to the `tool_filter` of `{}`, or report it to the server's maintainers.",
                source.path
            );
            problems.push(Diagnostic::error(problem.code, message).help(help));
        }
    }
    problems
}

/// Every `example_args` that the schema of its tool refuses. Only for sources that [`refuse`] accepted.
pub(super) fn check_examples(config: &Config, sources: &[LockedSource]) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for (source, locked) in sources
        .iter()
        .filter_map(|locked| Some((config.source(&locked.path)?, locked)))
    {
        for tool in &locked.exposed {
            let said = source
                .overrides
                .get(&tool.upstream_name)
                .and_then(|said| said.example_args.as_ref());
            let (Some(example), Some(schema)) = (said, tool.raw.get("inputSchema")) else {
                continue;
            };
            let Ok(validator) = compile(schema) else {
                continue;
            };
            let failures = validator.failures(schema, &Value::Object(example.clone()), 1);
            if let Some(error) = failures.first() {
                let name = broker_model::text::shown_line(&tool.upstream_name, 100);
                let place = if error.pointer.is_empty() {
                    String::new()
                } else {
                    format!(" at {}", error.pointer)
                };
                let message = format!(
                    "the example of `{name}` of `{}` does not match its schema{place}: expected {}",
                    source.path, error.expected
                );
                let pointer = format!(
                    "{}/tool_overrides/{}/example_args",
                    source.pointer,
                    broker_model::json::escape_token(&tool.upstream_name)
                );
                problems.push(
                    config.place(
                        Diagnostic::error(DiagnosticCode::ExampleInvalid, message).at(pointer),
                    ),
                );
            }
        }
    }
    problems
}

/// Compiles on a separate thread, with a bounded stack and a time limit.
pub(super) fn compiles(schema: &Value) -> Result<(), Box<Diagnostic>> {
    let (send, receive) = mpsc::sync_channel(1);
    let schema = schema.clone();
    let work = move || {
        // The receiver is dropped only after the time limit.
        let _ = send.send(compile(&schema).map(|_| ()));
    };
    let limit =
        |message: &str| Box::new(Diagnostic::error(DiagnosticCode::SchemaLimit, message).at(""));
    thread::Builder::new()
        .name("schema".to_owned())
        .stack_size(STACK)
        .spawn(work)
        .map_err(|error| {
            limit(&format!(
                "the thread for its compilation cannot be started: {error}"
            ))
        })?;
    match receive.recv_timeout(COMPILE_TIMEOUT) {
        Ok(outcome) => outcome,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(limit("it takes too long to compile")),
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(limit("compiling it failed")),
    }
}
