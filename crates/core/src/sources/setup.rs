//! Applies a config to a catalog: the served tools, their bounds, and the start of their servers. Reports all problems
//! together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use broker_config::{Config, StartDefaults, StartRule};
use broker_mcp::{Environment, SourceFailure, SourceSpec};
use broker_model::item::ItemKind;
use broker_model::redact::Redactor;
use broker_model::text::shown_line;
use broker_model::trust::TrustLevel;
use broker_model::{Diagnostic, DiagnosticCode, SourceCause};
use tokio_util::task::TaskTracker;

use crate::CallPath;
use crate::Fleet;
use crate::admission::Policy;
use crate::builder::SharedParts;
use crate::call::validator::LazyValidator;
use crate::call::waiting::WaitingCalls;
use crate::call::work::WorkPool;
use crate::catalog::{Catalog, FORMAT};
use crate::listing::heads::nodes_with_tool_names;
use crate::listing::query_vector::QueryVectors;
use crate::listing::scope::heights;
use crate::listing::search::ToolSearch;
use crate::snapshot::Terms;
use crate::sources::drift_state::{CheckSettings, DriftState};
use crate::sources::reason::MAX_MESSAGE;
use crate::sources::startup_gate::StartupGate;
use crate::sources::tool_settings::ToolSettings;
use crate::view::View;
use crate::{CoreBuilder, PartialStart};

/// A config that fits the catalog, resolved and not yet applied.
#[derive(Debug)]
pub struct PreparedConfig {
    /// The specification of each source and the settings of its check, by the catalog's sources.
    pub(crate) sources: Vec<(SourceSpec, CheckSettings)>,
    pub(crate) terms: Arc<Terms>,
    /// The tools that the config hides.
    pub(crate) hidden: BTreeSet<u32>,
    /// `limits.memory_bytes`.
    pub(crate) memory_bytes: usize,
    /// The time of calls in progress at the end.
    pub(crate) drain_time: Duration,
}

impl PreparedConfig {
    /// Returns a redactor that knows the secrets of every source.
    pub fn redactor(&self) -> Redactor {
        let specs = self.sources.iter().map(|(spec, _)| spec);
        specs.fold(Redactor::default(), |known, spec| {
            known.merge(&spec.redactor)
        })
    }
}

pub(crate) fn build(mut parts: CoreBuilder<'_>) -> Result<CallPath, Vec<Diagnostic>> {
    let catalog = parts.catalog;
    if catalog.format != FORMAT {
        return Err(vec![Diagnostic::error(
            DiagnosticCode::LockVersion,
            format!(
                "the catalog was compiled in format {}, and this library reads {FORMAT}",
                catalog.format
            ),
        )]);
    }
    let search = ToolSearch::new(catalog.search, catalog.items.len()).ok_or_else(|| {
        let message = "the search index of the catalog is not one of this library";
        vec![Diagnostic::error(DiagnosticCode::LockVersion, message)]
    })?;
    let (config, environment) = (parts.read_config()?, parts.read_environment());
    let is_replacement = parts.shared.is_some();
    let shared = parts.shared_parts(config.limits.memory_bytes);
    let prepared = prepare(
        catalog,
        &config,
        &environment,
        parts.base,
        &parts.partial,
        parts.start_defaults,
        &shared,
    )?;
    if !is_replacement {
        shared.drain.set_time(prepared.drain_time);
    }
    let start_rules = start_rules(catalog, &config, parts.start_defaults);
    let (specs, check_settings) = prepared.sources.into_iter().unzip();
    let drift_state = DriftState::new(
        catalog,
        View::new(catalog, prepared.hidden),
        StartupGate::new(parts.mode, start_rules),
        check_settings,
        parts.clock.clone(),
        shared.tool_changes.clone(),
    )
    .observed_by(shared.observer.clone());
    let query_vectors =
        QueryVectors::open(catalog, parts.embedder, &config, parts.base, &environment)
            .map_err(|problem| vec![*problem])?;
    let validators = catalog.items.iter().map(|_| LazyValidator::default());
    let fleet = Fleet {
        catalog,
        drift_state: Arc::new(drift_state),
        terms: ArcSwap::new(prepared.terms),
        filters: parts.filters,
        shared,
        start_defaults: parts.start_defaults,
        partial: parts.partial,
        specs: Mutex::new(specs),
        slots: OnceLock::new(),
        extra_upstreams: Mutex::default(),
        reloading: tokio::sync::Mutex::new(()),
        created: parts.clock.now(),
    };
    Ok(CallPath {
        catalog,
        heights: heights(catalog),
        search,
        query_vectors,
        named: nodes_with_tool_names(catalog),
        clock: parts.clock,
        validators: validators.collect(),
        work: WorkPool::new("broker-work"),
        verifying: WorkPool::new("broker-verify"),
        shaping: WorkPool::new("broker-shape"),
        waiting: WaitingCalls::new(catalog.sources.len()),
        active: TaskTracker::new(),
        failure: parts.failure,
        fleet: Arc::new(fleet),
    })
}

/// Resolves `config` for every source and tool of the catalog.
pub(crate) fn prepare(
    catalog: &'static Catalog,
    config: &Config,
    environment: &Environment,
    base: &Path,
    partial: &PartialStart,
    start_defaults: StartDefaults,
    shared: &SharedParts,
) -> Result<PreparedConfig, Vec<Diagnostic>> {
    let concurrency = &shared.concurrency;
    let configured: BTreeMap<_, _> = config
        .sources()
        .map(|source| (source.path.as_str(), source))
        .collect();

    let (mut problems, mut sources) = (Vec::new(), Vec::new());
    for source in catalog.sources {
        let Some(given) = configured.get(source.path).copied() else {
            problems.push(mismatch(format!(
                "the config has no source at `{}`, which was compiled in",
                source.path
            )));
            continue;
        };
        let spec = match stale_failure(partial, source.path) {
            Some(failure) => Ok(broker_mcp::unavailable(
                given,
                &config.limits,
                concurrency,
                failure,
            )),
            None => broker_mcp::resolve(given, &config.limits, environment, base, concurrency)
                .or_else(|found| {
                    let failure = missing_variables(partial, &found).ok_or(found)?;
                    let limits = &config.limits;
                    Ok(broker_mcp::unavailable(given, limits, concurrency, failure))
                }),
        };
        match spec {
            Ok(mut spec) => {
                spec.memory = shared.memory.clone();
                spec.log_level = shared.log_level.clone();
                spec.links = shared.links.clone();
                let check_settings = CheckSettings {
                    path: given.path.clone(),
                    exposure: given.exposure.clone(),
                    redactor: spec.redactor.clone(),
                    text_drift: config.text_drift(given),
                };
                sources.push((spec, check_settings));
            }
            Err(found) => {
                let found: Vec<Diagnostic> = found;
                problems.extend(found.into_iter().map(|one| config.place(one)));
            }
        }
    }
    let unknown = configured
        .keys()
        .filter(|path| !catalog.sources.iter().any(|s| s.path == **path));
    let unknown: Vec<_> = unknown.collect();
    if !unknown.is_empty() {
        let left_out = compiled_in_sources(catalog);
        let unknown = unknown
            .into_iter()
            .filter(|path| !left_out.contains(**path));
        problems.extend(unknown.map(|path| {
            mismatch(format!(
                "the config has a source at `{path}`, which was not compiled in"
            ))
        }));
    }
    let limits = problems_of_limits(catalog, &configured);
    problems.extend(limits.map(|problem| config.place(problem)));
    let policy = match Policy::new(catalog, config) {
        Ok(policy) if problems.is_empty() => policy,
        outcome => {
            problems.extend(outcome.err().into_iter().flatten());
            return Err(problems);
        }
    };
    let wait = |source: &broker_config::Source| config.start_wait(source, start_defaults.wait);
    let (settings, hidden) = tools(catalog, &configured, config, wait);
    Ok(PreparedConfig {
        sources,
        terms: Arc::new(Terms { policy, settings }),
        hidden,
        memory_bytes: config.limits.memory_bytes,
        drain_time: config.drain_time(),
    })
}

/// Returns the reason why a source with a stale lock is not started.
fn stale_failure(partial: &PartialStart, path: &str) -> Option<SourceFailure> {
    let stale = partial.stale.iter().find(|stale| stale.path == path)?;
    let message = stale.message.clone();
    Some(SourceFailure::new(SourceCause::LockStale, message).public())
}

/// Returns the reason why a source is not started, if only variables are missing and the start goes on without it.
fn missing_variables(partial: &PartialStart, found: &[Diagnostic]) -> Option<SourceFailure> {
    let is_missing = |problem: &Diagnostic| problem.code == DiagnosticCode::EnvMissing;
    if !partial.allows_missing_variables || !found.iter().all(is_missing) {
        return None;
    }
    let mut messages: Vec<_> = found.iter().map(|one| one.message.clone()).collect();
    messages.extend(
        partial
            .doctor
            .as_ref()
            .map(|doctor| format!("`{doctor}` has the remedy")),
    );
    let message = shown_line(&messages.join("; "), MAX_MESSAGE);
    let failure = SourceFailure::new(SourceCause::EnvMissing, message);
    Some(match partial.doctor {
        Some(_) => failure.public(),
        None => failure,
    })
}

/// Returns the requirements of a plain start, by the catalog's sources. `defaults` apply if the config sets none.
fn start_rules(catalog: &Catalog, config: &Config, defaults: StartDefaults) -> Vec<StartRule> {
    let sources = catalog.sources.iter().filter_map(|source| {
        let mut given = config.sources();
        given.find(|given| given.path.as_str() == source.path)
    });
    sources
        .map(|source| config.start_rule(source, defaults))
        .collect()
}

/// Returns the settings of every tool, and the tools that exist for no caller: tools that the config hides, and tools
/// that are for pages only.
pub(crate) fn tools(
    catalog: &Catalog,
    configured: &BTreeMap<&str, &broker_config::Source>,
    config: &Config,
    start_wait: impl Fn(&broker_config::Source) -> Duration,
) -> (Box<[ToolSettings]>, BTreeSet<u32>) {
    let mut hidden = BTreeSet::new();
    let settings = catalog.items.iter().enumerate().map(|(at, tool)| {
        let source = configured[catalog.sources[tool.source as usize].path];
        if tool.for_pages_only || !source.exposure.exposes(tool.key) {
            hidden.insert(at as u32);
        }
        let own = source.overrides.get(tool.key);
        let limit = source.output_limit(tool.key);
        let path = catalog.entry(tool.entry).path;
        ToolSettings {
            timeout: own.and_then(|own| own.timeout).unwrap_or(source.timeout),
            max_timeout: source.max_timeout_of(own),
            limit: limit.map(|limit| broker_config::output_limit_of(path, limit)),
            default_limit: broker_config::output_limit_of(path, config.limits.result_chars),
            coerces: tool.kind == ItemKind::Tool && source.coerces(tool.key, config.coerce),
            form: own.map(|own| own.render_mode).unwrap_or_default(),
            retry: source.retry_idempotent && tool.idempotent,
            start_wait: start_wait(source),
            is_trusted: source.exposure.level() == TrustLevel::Trusted,
        }
    });
    (settings.collect(), hidden)
}

/// Limits that were set since the build and are too small for the members around a result.
fn problems_of_limits(
    catalog: &'static Catalog,
    configured: &BTreeMap<&str, &broker_config::Source>,
) -> impl Iterator<Item = Diagnostic> {
    catalog.items.iter().filter_map(|tool| {
        let source = configured.get(catalog.sources[tool.source as usize].path)?;
        let limit = source.overrides.get(tool.key)?.max_output_chars?;
        let path = catalog.entry(tool.entry).path;
        let least = broker_config::min_output_chars(path);
        let message = format!("`max_output_chars` {limit} leaves no room for a reply of `{path}`");
        let pointer = format!("{}/tool_overrides", source.pointer);
        broker_config::is_too_small_output(path, limit).then(|| {
            Diagnostic::error(DiagnosticCode::ConfigRange, message)
                .at(pointer)
                .help(format!("Set at least {least}."))
        })
    })
}

/// Returns the paths of the sources of the compiled-in config, with those that its lock leaves out.
fn compiled_in_sources(catalog: &Catalog) -> BTreeSet<String> {
    let built = Config::parse(catalog.config_name, catalog.config.as_bytes());
    let sources = built.map(|parsed| {
        let sources = parsed.config.sources();
        sources
            .map(|source| source.path.as_str().to_owned())
            .collect()
    });
    sources.unwrap_or_default()
}

fn mismatch(message: String) -> Diagnostic {
    Diagnostic::error(DiagnosticCode::LockMismatch, message)
}
