//! A core from a catalog and a config: which tools it serves, with which bounds, and how their
//! servers are started. Reports every problem at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use broker_model::config;
use broker_model::{Diagnostic, DiagnosticCode};
use tokio_util::task::TaskTracker;

use super::gate::Gate;
use super::render::heights;
use super::shutdown::InFlight;
use super::validate::LazyValidator;
use super::verdict::{Reviewed, Verdicts};
use super::view::View;
use super::{Inner, Setup, ToolSlot};
use crate::catalog::{Catalog, FORMAT};

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
    let configured: BTreeMap<_, _> = setup
        .config
        .sources()
        .map(|source| (source.path.as_str(), source))
        .collect();

    let (mut problems, mut launches, mut reviewed, mut required) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for source in catalog.sources {
        let Some(config) = configured.get(source.path).copied() else {
            problems.push(mismatch(format!(
                "the config has no source at `{}`, which was compiled in",
                source.path
            )));
            continue;
        };
        required.push(config.required);
        match broker_mcp::resolve(config, &setup.config.limits, setup.environment, setup.base) {
            Ok(launch) => {
                reviewed.push(Reviewed {
                    path: config.path.clone(),
                    filter: config.filter.clone(),
                    redactor: launch.redactor.clone(),
                });
                launches.push(launch);
            }
            Err(found) => {
                problems.extend(found.into_iter().map(|one| setup.config.place(one)));
            }
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
    problems.extend(limits.map(|problem| setup.config.place(problem)));
    if !problems.is_empty() {
        return Err(problems);
    }
    let (tools, hidden) = tools(catalog, &configured);
    let verdicts = Verdicts::new(
        catalog,
        View::new(catalog, hidden),
        Gate::new(setup.mode, required),
        reviewed,
    );
    Ok(Inner {
        catalog,
        heights: heights(catalog),
        tools,
        verdicts: Arc::new(verdicts),
        calls: InFlight::default(),
        launches: Mutex::new(launches),
        upstreams: OnceLock::new(),
        tasks: TaskTracker::new(),
        closing: AtomicBool::new(false),
        made: SystemTime::now(),
    })
}

/// The bounds of every tool, and which tools the config's filters leave out.
fn tools(
    catalog: &Catalog,
    configured: &BTreeMap<&str, &config::Source>,
) -> (Box<[ToolSlot]>, BTreeSet<u32>) {
    let mut hidden = BTreeSet::new();
    let slots = catalog.tools.iter().enumerate().map(|(at, tool)| {
        let source = configured[catalog.sources[tool.source as usize].path];
        if !source.filter.admits(tool.name) {
            hidden.insert(at as u32);
        }
        let own = source.overrides.get(tool.name);
        ToolSlot {
            timeout: own.and_then(|own| own.timeout).unwrap_or(source.timeout),
            limit: own.and_then(|own| own.max_output_chars),
            form: own.map(|own| own.render_mode).unwrap_or_default(),
            validator: LazyValidator::default(),
        }
    });
    (slots.collect(), hidden)
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
