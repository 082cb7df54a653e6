//! Resolves a process: its words, its folder, and the variables that it gets.

use std::collections::BTreeMap;

use broker_config::{CommandLine, ProcessEndpoint};
use broker_model::DiagnosticCode;
use broker_model::filter::ToolFilter;
use broker_model::json::escape_token;
use broker_model::redact::{Redactor, Secret, is_secret_name};
use broker_process::{ProcessSpec, search_folders};

use super::expander::Expander;
use crate::environment::is_base;
use crate::start_hints;

/// The shell for commands with shell syntax.
const SHELL: &str = "/bin/sh";

/// Returns the process of the source or command at `pointer`. Its redactor is set when all secrets of the source are
/// known. `None` after a problem; the expander records it.
pub(super) fn resolve(
    name: &str,
    pointer: &str,
    process: &ProcessEndpoint,
    expander: &mut Expander<'_>,
) -> Option<ProcessSpec> {
    let at = |place: &str| format!("{pointer}{place}");
    let mut env = inherited(pointer, process, expander);
    let (mut program, args, shell) = match &process.command {
        CommandLine::Direct {
            program,
            args,
            script,
        } => {
            let mut places = process.places.iter().map(|place| at(place));
            let mut place = || places.next().unwrap_or_else(|| at("/command"));
            let program = expander.expand(program, &place(), false);
            if program.is_empty() && expander.is_fine() {
                expander.problem(
                    DiagnosticCode::EnvValue,
                    "the program's name is empty",
                    &at("/command"),
                );
            }
            let mut words = Vec::with_capacity(args.len());
            for (at, arg) in args.iter().enumerate() {
                let place = place();
                let Some(script) = script.as_ref().filter(|script| script.at == at) else {
                    words.push(expander.expand(arg, &place, false));
                    continue;
                };
                for (name, template) in &script.variables {
                    let value = expander.expand(template, &place, false);
                    env.insert(name.clone(), value);
                }
                words.push(script.text.clone());
            }
            (program, words, false)
        }
        CommandLine::Shell {
            script, variables, ..
        } => {
            for (name, template) in variables {
                let value = expander.expand(template, &at("/command"), false);
                env.insert(name.clone(), value);
            }
            (
                SHELL.to_owned(),
                vec!["-c".to_owned(), script.clone()],
                true,
            )
        }
    };
    for (name, template) in &process.env {
        let place = at("/env/") + &escape_token(name);
        if name.is_empty() || name.contains(['=', '\0']) {
            expander.problem(
                DiagnosticCode::EnvValue,
                "a variable's name is empty or holds `=` or NUL",
                &place,
            );
            continue;
        }
        let value = expander.expand(template, &place, is_secret_name(name));
        env.insert(name.clone(), value);
    }
    let cwd = process
        .cwd
        .as_ref()
        .map(|cwd| expander.expand(cwd, &at("/cwd"), false));
    for (name, value) in [("PYTHONUTF8", "1"), ("PYTHONIOENCODING", "utf-8")] {
        env.entry(name.to_owned())
            .or_insert_with(|| value.to_owned());
    }
    if !expander.is_fine() {
        return None;
    }
    let literals = process.literal_secret_arguments();
    expander
        .secrets
        .extend(literals.into_iter().map(Secret::new));

    let container = match shell {
        true => None,
        false => start_hints::container(&program, &args),
    };
    let base = expander.base;
    if !shell && program.contains('/') {
        program = base.join(program).to_string_lossy().into_owned();
    }
    let path = env.get("PATH").map_or("", String::as_str);
    let search = search_folders(expander.environment.exe_dir(), path, base);
    Some(ProcessSpec {
        name: name.to_owned(),
        search,
        program,
        args,
        cwd: Some(cwd.map_or_else(|| base.to_owned(), |cwd| base.join(cwd))),
        env,
        shell,
        redactor: Redactor::default(),
        container,
    })
}

/// Returns the variables that the child inherits: the base, and those in `inherit_env`.
fn inherited(
    pointer: &str,
    process: &ProcessEndpoint,
    expander: &mut Expander<'_>,
) -> BTreeMap<String, String> {
    let globs = match ToolFilter::compile(&process.inherit_env) {
        Ok(globs) => globs,
        Err(errors) => {
            for error in errors {
                let place = format!("{pointer}/inherit_env/{}", error.index);
                expander.problem(DiagnosticCode::GlobSyntax, &error.to_string(), &place);
            }
            return BTreeMap::new();
        }
    };
    // The key for embeddings is the broker's; a source that needs it names it in `env`.
    let is_reserved = |name: &str| {
        broker_config::is_own_variable(name) || name == broker_config::OPENAI_KEY_VARIABLE
    };
    let named =
        |name: &str| !process.inherit_env.is_empty() && !is_reserved(name) && globs.admits(name);
    let mut env = BTreeMap::new();
    for (name, value) in expander.environment.iter() {
        if is_base(name, value) || named(name) {
            if is_secret_name(name) {
                expander.secrets.push(Secret::new(value));
            }
            env.insert(name.to_owned(), value.to_owned());
        }
    }
    env
}
