//! What a config makes of a catalog: which tools are served, with which bounds, and how their servers
//! are started. Reports every problem at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use broker_mcp::{ConcurrencyLimits, Environment, MemoryBudget, SourceSpec};
use broker_model::config::{self, Config, RenderMode};
use broker_model::redact::Redactor;
use broker_model::{Diagnostic, DiagnosticCode};
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::gate::Gate;
use super::render::heights;
use super::shutdown::InFlight;
use super::validate::LazyValidator;
use super::verdict::{Reviewed, Verdicts};
use super::view::View;
use super::work::WorkPool;
use super::{Inner, Setup};
use crate::catalog::{Catalog, FORMAT, Tool};

/// A config that fits the catalog, worked out and not yet in force.
#[derive(Debug)]
pub struct Prepared {
    /// How each source is started, by the catalog's sources, and what its verdicts need to know.
    pub(super) sources: Vec<(SourceSpec, Reviewed)>,
    /// Whether a plain start waits for a source.
    required: Vec<bool>,
    pub(super) tools: Box<[ToolSettings]>,
    /// The tools that the config's filters leave out.
    pub(super) hidden: BTreeSet<u32>,
    /// `limits.memory_bytes`.
    pub(super) memory_bytes: usize,
}

/// What the config says about the calls of one tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolSettings {
    pub(super) timeout: Duration,
    /// Characters of a reply beyond which it is cut.
    pub(super) limit: Option<usize>,
    pub(super) form: RenderMode,
    /// Whether a call that a dying server may have run is sent once more.
    pub(super) again: bool,
}

impl Prepared {
    /// Knows every secret of its sources.
    pub fn redactor(&self) -> Redactor {
        let launches = self.sources.iter().map(|(launch, _)| launch);
        launches.fold(Redactor::default(), |known, launch| {
            known.merge(&launch.redactor)
        })
    }
}

pub(super) fn build(setup: Setup<'_>) -> Result<Inner, Vec<Diagnostic>> {
    let catalog = setup.catalog;
    if catalog.format != FORMAT {
        return Err(vec![Diagnostic::error(
            DiagnosticCode::LockVersion,
            format!(
                "the catalog was compiled in format {}, and this library reads {FORMAT}",
                catalog.format
            ),
        )]);
    }
    let memory = MemoryBudget::new(setup.config.limits.memory_bytes);
    let concurrency = ConcurrencyLimits::new();
    let prepared = prepare(
        catalog,
        setup.config,
        setup.environment,
        setup.base,
        (&memory, &concurrency),
    )?;
    let (launches, reviewed) = prepared.sources.into_iter().unzip();
    let verdicts = Verdicts::new(
        catalog,
        View::new(catalog, prepared.hidden),
        Gate::new(setup.mode, prepared.required),
        reviewed,
    );
    let validators = catalog.tools.iter().map(|_| LazyValidator::default());
    Ok(Inner {
        catalog,
        heights: heights(catalog),
        validators: validators.collect(),
        settings: ArcSwap::from_pointee(prepared.tools),
        verdicts: Arc::new(verdicts),
        memory,
        concurrency,
        work: WorkPool::new("broker-work"),
        shaping: WorkPool::new("broker-shape"),
        calls: InFlight::default(),
        launches: Mutex::new(launches),
        seats: OnceLock::new(),
        guests: Mutex::default(),
        reloading: tokio::sync::Mutex::new(()),
        tasks: TaskTracker::new(),
        closing: AtomicBool::new(false),
        made: SystemTime::now(),
    })
}

/// Works out what `config` says about every source and tool of the catalog.
pub(super) fn prepare(
    catalog: &'static Catalog,
    config: &Config,
    environment: &Environment,
    base: &Path,
    (memory, concurrency): (&MemoryBudget, &ConcurrencyLimits),
) -> Result<Prepared, Vec<Diagnostic>> {
    let configured: BTreeMap<_, _> = config
        .sources()
        .map(|source| (source.path.as_str(), source))
        .collect();

    let (mut problems, mut sources, mut required) = (Vec::new(), Vec::new(), Vec::new());
    for source in catalog.sources {
        let Some(given) = configured.get(source.path).copied() else {
            problems.push(mismatch(format!(
                "the config has no source at `{}`, which was compiled in",
                source.path
            )));
            continue;
        };
        required.push(given.required);
        match broker_mcp::resolve(given, &config.limits, environment, base, concurrency) {
            Ok(mut launch) => {
                launch.memory = memory.clone();
                let reviewed = Reviewed {
                    path: given.path.clone(),
                    filter: given.filter.clone(),
                    redactor: launch.redactor.clone(),
                    text_drift: config.text_drift(given),
                };
                sources.push((launch, reviewed));
            }
            Err(found) => problems.extend(found.into_iter().map(|one| config.place(one))),
        }
    }
    for path in configured
        .keys()
        .filter(|path| !catalog.sources.iter().any(|s| s.path == **path))
    {
        problems.push(mismatch(format!(
            "the config has a source at `{path}`, which was not compiled in"
        )));
    }
    let limits = problems_of_limits(catalog, &configured);
    problems.extend(limits.map(|problem| config.place(problem)));
    if !problems.is_empty() {
        return Err(problems);
    }
    let (tools, hidden) = tools(catalog, &configured);
    Ok(Prepared {
        sources,
        required,
        tools,
        hidden,
        memory_bytes: config.limits.memory_bytes,
    })
}

/// The bounds of every tool, and which tools the config's filters leave out.
pub(super) fn tools(
    catalog: &Catalog,
    configured: &BTreeMap<&str, &config::Source>,
) -> (Box<[ToolSettings]>, BTreeSet<u32>) {
    let mut hidden = BTreeSet::new();
    let settings = catalog.tools.iter().enumerate().map(|(at, tool)| {
        let source = configured[catalog.sources[tool.source as usize].path];
        if !source.filter.admits(tool.name) {
            hidden.insert(at as u32);
        }
        let own = source.overrides.get(tool.name);
        ToolSettings {
            timeout: own.and_then(|own| own.timeout).unwrap_or(source.timeout),
            limit: own.and_then(|own| own.max_output_chars),
            form: own.map(|own| own.render_mode).unwrap_or_default(),
            again: source.retry_idempotent && is_repeatable(catalog, tool),
        }
    });
    (settings.collect(), hidden)
}

/// Whether the reviewed annotations say that a second call does nothing that the first did not.
fn is_repeatable(catalog: &Catalog, tool: &Tool) -> bool {
    let described = catalog.text(catalog.entry(tool.entry).desc);
    let described: Value = serde_json::from_str(described).unwrap_or_default();
    let says = |hint: &str| described["annotations"][hint] == true;
    says("readOnlyHint") || says("idempotentHint")
}

/// Limits that were set since the build and leave no room for what stands around a result.
fn problems_of_limits(
    catalog: &'static Catalog,
    configured: &BTreeMap<&str, &config::Source>,
) -> impl Iterator<Item = Diagnostic> {
    catalog.tools.iter().filter_map(|tool| {
        let source = configured.get(catalog.sources[tool.source as usize].path)?;
        let limit = source.overrides.get(tool.name)?.max_output_chars?;
        let path = catalog.entry(tool.entry).path;
        let least = config::least_output_chars(path);
        let message = format!("`max_output_chars` {limit} leaves no room for a reply of `{path}`");
        let pointer = format!("{}/tool_overrides", source.pointer);
        (limit < least).then(|| {
            Diagnostic::error(DiagnosticCode::ConfigRange, message)
                .at(pointer)
                .help(format!("Write at least {least}."))
        })
    })
}

fn mismatch(message: String) -> Diagnostic {
    Diagnostic::error(DiagnosticCode::LockMismatch, message)
}
