//! Refuses tools whose schemas are too costly or do not compile, before they are locked.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use broker_model::access::{Hints, claim_names};
use broker_model::config::Config;
use broker_model::lock::LockedSource;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_schema::{Coverage, compile, covers, inspect};
use serde_json::{Value, json};

use crate::plan::{self, Entry};

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

/// Every rule of access whose `args` do not compile, or which no arguments of a tool can match. Only for sources that
/// [`refuse`] accepted.
pub(super) fn check_access(config: &Config, sources: &[LockedSource]) -> Vec<Diagnostic> {
    let (Some(access), Ok(plan)) = (&config.access, plan::plan(config, sources)) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    for rule in &access.rules {
        let Some(args) = &rule.args else {
            continue;
        };
        let any_claim = without_claims(args);
        let pointer = format!("{}/args", rule.pointer);
        if let Err(problem) = inspect(&any_claim).and_then(|()| compiles(&any_claim)) {
            let place = problem.pointer.as_deref().unwrap_or_default();
            let message = format!("`args` is refused: {}, at `{place}`", problem.message);
            let found = Diagnostic::error(DiagnosticCode::AccessArgsInvalid, message);
            problems.push(config.place(found.at(pointer)));
            continue;
        }
        for (path, entry) in &plan.entries {
            let Entry::Tool(tool) = entry else {
                continue;
            };
            let hints = Hints::of(tool.annotations().as_ref());
            let Some(schema) = tool.tool.raw.get("inputSchema") else {
                continue;
            };
            if rule.matches(path.as_str(), hints) && is_empty_together(schema, &any_claim) {
                let message = format!("no arguments of `{path}` match both its schema and `args`");
                let found = Diagnostic::error(DiagnosticCode::AccessArgsNever, message);
                problems.push(config.place(found.at(&pointer)));
            }
        }
    }
    problems
}

/// A schema in which each claim may have any value.
fn without_claims(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let has_claim = |value: &Value| !claim_names(value).is_empty();
            let kept = members.iter().filter(|(key, value)| {
                !(matches!(key.as_str(), "const" | "enum") && has_claim(value))
            });
            kept.map(|(key, value)| (key.clone(), without_claims(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(without_claims).collect(),
        other => other.clone(),
    }
}

/// Whether it is proven that no value matches both schemas.
fn is_empty_together(schema: &Value, args: &Value) -> bool {
    let mut both = schema.clone();
    let Value::Object(members) = &mut both else {
        return false;
    };
    match members.get_mut("allOf") {
        Some(Value::Array(all)) => all.push(args.clone()),
        _ => {
            members.insert("allOf".to_owned(), json!([args]));
        }
    }
    matches!(covers(&both, &json!(false)), Coverage::Covered)
}

/// Compiles on a separate thread, with a bounded stack and a time limit.
fn compiles(schema: &Value) -> Result<(), Box<Diagnostic>> {
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
