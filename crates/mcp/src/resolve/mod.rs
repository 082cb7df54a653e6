//! Resolves a source of the config: expands its variables, and decides what its process or its server gets.

mod expander;
mod http;
mod process;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use broker_config::Limits;
use broker_memory::MemoryBudget;
use broker_model::Diagnostic;
use broker_model::redact::{Redactor, Secret};
use broker_process::ProcessSpec;

use crate::concurrency::ConcurrencyLimits;
use crate::environment::Environment;
use crate::failure::SourceFailure;
use crate::link_factory::LinkFactory;
use crate::log_level::AskedLogLevel;
use crate::spec::{Endpoint, ItemLists, SourceSpec, Timing};
use crate::start_hints::{StartHints, withheld};
use expander::Expander;

/// The maximum number of queued calls.
const MAX_QUEUED_CALLS: usize = 256;

/// Expands every variable of `source` and selects the variables that its child inherits. Reports every problem: all
/// missing variables (`env_missing`) and all values that cannot be used (`env_value`, `url_invalid`, `plain_http`). A
/// program that does not exist, or a server that does not answer, is not reported here; its start fails with a
/// [`crate::SourceFailure`]. `concurrency` is shared by all sources of the config.
pub fn resolve(
    source: &broker_config::Source,
    limits: &Limits,
    environment: &Environment,
    base: &Path,
    concurrency: &ConcurrencyLimits,
) -> Result<SourceSpec, Vec<Diagnostic>> {
    let base = absolute(base);
    let mut expander = Expander::new(environment, &base);
    let (endpoint, timing) = match &source.endpoint {
        broker_config::Endpoint::Process(process) => (
            process::resolve(
                source.path.as_str(),
                &source.pointer,
                process,
                &mut expander,
            )
            .map(Endpoint::Process),
            Timing::default(),
        ),
        broker_config::Endpoint::Http(http) => (
            http::resolve(source, http, &mut expander).map(|spec| Endpoint::Http(Box::new(spec))),
            Timing::for_http(),
        ),
    };
    let problems = expander.finish();
    let Some(mut endpoint) = endpoint.filter(|_| problems.is_empty()) else {
        return Err(problems);
    };
    let secrets = expander.secrets;
    let redactor = Redactor::new(secrets.iter().cloned());
    let empty_variables = expander.empty;
    let mut hidden_variables = Vec::new();
    let mut start_hints = StartHints::default();
    if let Some(process) = endpoint.any_process_mut() {
        process.redactor = redactor.clone();
        if let Some(written) = source.endpoint.any_process() {
            start_hints = StartHints::collect(written, process, environment);
            let given = &process.env;
            hidden_variables = withheld(source, written, environment, given, &start_hints);
        }
    }
    let stderr_to_callers = source.stderr_to_callers.then(|| {
        Redactor::with_short_values(secrets.into_iter().chain(values_of_env(source, &endpoint)))
    });
    let spec = spec_of(source, limits, endpoint, timing, concurrency);
    Ok(SourceSpec {
        redactor,
        stderr_to_callers,
        withheld: hidden_variables,
        start_hints: Arc::new(start_hints),
        empty_variables,
        ..spec
    })
}

/// Returns every value that the config gives the process of a source.
fn values_of_env(source: &broker_config::Source, endpoint: &Endpoint) -> Vec<Secret> {
    let (Some(written), Some(process)) = (source.endpoint.process(), endpoint.process()) else {
        return Vec::new();
    };
    let values = written.env.keys().filter_map(|name| process.env.get(name));
    values.map(|value| Secret::new(value.as_str())).collect()
}

/// Returns the specification of a source that cannot be started; each of its starts fails for this reason.
pub fn unavailable(
    source: &broker_config::Source,
    limits: &Limits,
    concurrency: &ConcurrencyLimits,
    failure: SourceFailure,
) -> SourceSpec {
    let endpoint = Endpoint::Unavailable(Box::new(failure));
    spec_of(source, limits, endpoint, Timing::default(), concurrency)
}

/// Returns a specification without secrets.
fn spec_of(
    source: &broker_config::Source,
    limits: &Limits,
    endpoint: Endpoint,
    timing: Timing,
    concurrency: &ConcurrencyLimits,
) -> SourceSpec {
    SourceSpec {
        source: source.path.clone(),
        endpoint,
        startup_timeout: source.startup_timeout,
        relist_interval: source.relist_interval,
        line_bytes: limits.line_bytes,
        listing_bytes: limits.listing_bytes,
        lists: ItemLists {
            prompts: source.exposure.items().has_prompts(),
            templates: source.exposure.items().has_templates(),
            resources: source.exposure.items().resource_mode(),
        },
        extensions: source.extensions.clone(),
        exposure: source.exposure.clone(),
        max_in_flight: source.max_in_flight.max(1),
        instances: source.instances.max(1),
        queue: MAX_QUEUED_CALLS,
        redactor: Redactor::default(),
        stderr_to_callers: None,
        withheld: Vec::new(),
        start_hints: Arc::default(),
        empty_variables: Vec::new(),
        memory: MemoryBudget::new(limits.memory_bytes),
        concurrency: concurrency.clone(),
        log_level: AskedLogLevel::new(),
        links: LinkFactory::default(),
        timing,
    }
}

/// Expands the variables of a command that belongs to no source, as [`resolve`] does. `pointer` is its place in the
/// config, `name` its name in the log.
pub fn resolve_command(
    name: &str,
    pointer: &str,
    command: &broker_config::ProcessEndpoint,
    environment: &Environment,
    base: &Path,
) -> Result<ProcessSpec, Vec<Diagnostic>> {
    let base = absolute(base);
    let mut expander = Expander::new(environment, &base);
    let process = process::resolve(name, pointer, command, &mut expander);
    let problems = expander.finish();
    let mut process = process.filter(|_| problems.is_empty()).ok_or(problems)?;
    process.redactor = Redactor::new(expander.secrets);
    Ok(process)
}

fn absolute(base: &Path) -> PathBuf {
    let given = match base.as_os_str().is_empty() {
        true => Path::new("."),
        false => base,
    };
    std::path::absolute(given).unwrap_or_else(|_| base.to_owned())
}
