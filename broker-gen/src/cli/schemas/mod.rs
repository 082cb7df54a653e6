//! Finds tools whose schemas are too costly or do not compile, before they are locked.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use broker_build::plan::Plan;
use broker_build::tables::listing;
use broker_config::{Config, SchemaPolicy, Source};
use broker_model::left_out::{LeftOut, MAX_NAME_CHARS};
use broker_model::lock::{LockedSource, LockedTool};
use broker_model::text::{counted, shown_line};
use broker_model::{Diagnostic, DiagnosticCode, LeftOutCode, NodePath};
use broker_schema::{Validator, compile, compile_as_is, inspect, inspect_as_is};
use serde_json::Value;

pub(in crate::cli) mod access_args;

/// Maximum time to compile one schema; real ones take milliseconds.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(10);
/// Stack size: the compiler recurses with the schema's depth; `inspect` has bounded the depth.
const STACK: usize = 16 << 20;
/// Maximum number of characters of a reason.
const MAX_REASON_CHARS: usize = 300;

/// A tool that a lock leaves out because of one of its schemas.
pub(in crate::cli) struct RefusedTool {
    /// The path of its source.
    pub(in crate::cli) source: NodePath,
    /// The record, with the code `schema_refused` and the place within the tool.
    pub(in crate::cli) left_out: LeftOut,
    /// The reason as a problem of the whole lock.
    pub(in crate::cli) problem: Diagnostic,
}

/// The exposed tools with a schema that is too costly or does not compile, each with its first reason. Those that are
/// served unvalidated are not among them.
pub(in crate::cli) fn refused(sources: &[LockedSource]) -> Vec<RefusedTool> {
    let tools = sources
        .iter()
        .flat_map(|source| source.exposed.iter().map(move |tool| (source, tool)));
    tools
        .filter_map(|(source, tool)| refused_tool(source, tool))
        .collect()
}

/// Marks the tools that the config serves as they are: those with a schema that does not compile and whose schemas are
/// within the bounds on size, depth and references.
pub(in crate::cli) fn mark_unvalidated(config: &Source, locked: &mut LockedSource) {
    let is_as_is = |tool: &LockedTool| {
        let own = config.overrides.get(&tool.upstream_name);
        let policy = own.map_or(SchemaPolicy::Checked, |own| own.schema);
        config.schema == SchemaPolicy::AsIs || policy == SchemaPolicy::AsIs
    };
    for tool in locked.exposed.iter_mut().filter(|tool| is_as_is(tool)) {
        let is_bounded =
            |(_, schema)| inspect_as_is(schema).is_ok() && compiles_as_is(schema).is_ok();
        tool.unvalidated = first_problem(tool).is_some() && schemas_of(tool).all(is_bounded);
    }
}

/// The schemas of a tool, by their keys.
fn schemas_of(tool: &LockedTool) -> impl Iterator<Item = (&'static str, &Value)> {
    let schemas = ["inputSchema", "outputSchema"].into_iter();
    schemas.filter_map(|key| Some((key, tool.raw.get(key).filter(|schema| !schema.is_null())?)))
}

/// The first reason why a tool is not served, with the key of the schema.
fn first_problem(tool: &LockedTool) -> Option<(&'static str, Box<Diagnostic>)> {
    schemas_of(tool).find_map(|(key, schema)| {
        let checked = inspect(schema).and_then(|()| compiles(schema));
        checked.err().map(|problem| (key, problem))
    })
}

fn refused_tool(source: &LockedSource, tool: &LockedTool) -> Option<RefusedTool> {
    if tool.unvalidated {
        return None;
    }
    let (key, problem) = first_problem(tool)?;
    let place = format!("/{key}{}", problem.pointer.as_deref().unwrap_or_default());
    let name = shown_line(&tool.upstream_name, MAX_NAME_CHARS);
    let message = format!(
        "the tool `{name}` of `{}` is refused: {}, at {place}",
        source.path, problem.message
    );
    let help = format!(
        "Hide it: add `\"!{name}\"` to the `tool_filter` of `{}`; or serve it unvalidated, with `\"schema\": \"as_is\"` for it in `tool_overrides`.",
        source.path
    );
    Some(RefusedTool {
        source: source.path.clone(),
        left_out: LeftOut {
            kind: tool.kind(),
            name: Some(tool.upstream_name.chars().take(MAX_NAME_CHARS).collect()),
            code: LeftOutCode::SchemaRefused,
            place,
            reason: shown_line(&problem.message, MAX_REASON_CHARS),
            digest: tool.digest.clone(),
        },
        problem: Diagnostic::error(problem.code, message).help(help),
    })
}

/// A warning for each form of schemas of a source that is not of their dialect and has one meaning, with the number of
/// its places and the first of them.
pub(in crate::cli) fn notes(sources: &[LockedSource]) -> Vec<Diagnostic> {
    sources.iter().flat_map(notes_of_source).collect()
}

fn notes_of_source(source: &LockedSource) -> Vec<Diagnostic> {
    let mut found: BTreeMap<&'static str, (usize, String)> = BTreeMap::new();
    for tool in &source.exposed {
        for key in ["inputSchema", "outputSchema"] {
            let notes = tool.raw.get(key).map(broker_schema::notes);
            for note in notes.unwrap_or_default() {
                let name = shown_line(&tool.upstream_name, MAX_NAME_CHARS);
                let place = shown_line(&note.pointer, MAX_REASON_CHARS);
                let first = || (0, format!("/{key}{place} of `{name}`"));
                found.entry(note.text).or_insert_with(first).0 += 1;
            }
        }
    }
    let warning = |(form, (count, first)): (&str, (usize, String))| {
        let places = counted(count, "place");
        let message = format!(
            "schemas of `{}` have at {places} {form}; the first is {first}",
            source.path
        );
        Diagnostic::warning(DiagnosticCode::SchemaRead, message)
    };
    found.into_iter().map(warning).collect()
}

/// A warning for each source with tools that lists for clients lack, or with schemas of results that they lack, with
/// their number and the first of them.
pub(in crate::cli) fn unlisted(plan: &Plan<'_>) -> Vec<Diagnostic> {
    let mut found: BTreeMap<(usize, bool), (usize, String)> = BTreeMap::new();
    for unlisted in listing::unlisted(plan) {
        let first = || (0, format!("`{}`: {}", unlisted.path, unlisted.reason));
        let kind = (unlisted.source, unlisted.whole);
        found.entry(kind).or_insert_with(first).0 += 1;
    }
    let warning = |((source, whole), (count, first)): ((usize, bool), (usize, String))| {
        let effect = match whole {
            true => "tools that clients cannot list, so only the mode `meta` has them",
            false => "schemas of results that clients cannot compile, so lists lack them",
        };
        let message = format!(
            "`{}` has {effect} (number: {count}); the first is {first}",
            plan.sources[source].0.path
        );
        Diagnostic::warning(DiagnosticCode::SchemaUnlisted, message)
    };
    found.into_iter().map(warning).collect()
}

/// Every `example_args` that the schema of its tool refuses. Tools that [`refused`] names are left out.
pub(in crate::cli) fn check_examples(config: &Config, sources: &[LockedSource]) -> Vec<Diagnostic> {
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
            let compiled = match tool.unvalidated {
                true => compile_as_is(schema),
                false => compile(schema),
            };
            let Ok(validator) = compiled else {
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
pub(in crate::cli) fn compiles(schema: &Value) -> Result<(), Box<Diagnostic>> {
    compiles_by(compile, schema)
}

/// Compiles the valid part in the same way.
fn compiles_as_is(schema: &Value) -> Result<(), Box<Diagnostic>> {
    compiles_by(compile_as_is, schema)
}

type Compile = fn(&Value) -> Result<Validator, Box<Diagnostic>>;

fn compiles_by(compile: Compile, schema: &Value) -> Result<(), Box<Diagnostic>> {
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
