//! The jobs of a start: their store and their keeper.

use std::path::PathBuf;
use std::sync::Arc;

use broker_config::{JobsConfig, McpCallMode};
use broker_jobs::{Bounds, Clock, JobSettings, JobStore, Keeper, KeeperParts, StoreSettings};
use broker_mcp::Environment;
use broker_model::{Diagnostic, DiagnosticCode};
use broker_observe::Observers;

use super::settings::LoadedConfig;
use super::stack::runner;
use crate::core::{CallMode, Core};

/// Opens the jobs that a config asks for. A store that cannot be used turns jobs off, unless the config requires it.
///
/// # Errors
///
/// The problems of a path, and the reason why a required store cannot be opened.
pub(super) async fn open(
    core: &Core,
    observers: &Observers,
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<Option<Arc<Keeper>>, Vec<Diagnostic>> {
    let Some(config) = &loaded.config.jobs else {
        return Ok(None);
    };
    let path = store_path(config, loaded, environment)?;
    let is_durable = path.is_some();
    let settings = StoreSettings {
        path,
        bounds: Bounds {
            store_bytes: config.store_bytes as u64,
            ..Bounds::default()
        },
        clock: Clock::system(),
    };
    let mut lost = Vec::new();
    let store = match JobStore::open(settings).await {
        Ok((store, recovered)) => {
            for id in &recovered.lost {
                tracing::warn!(
                    job = id.as_str(),
                    "the broker ended while the call of this job was under way: it is lost"
                );
            }
            lost = recovered.lost;
            if recovered.queued > 0 {
                tracing::info!(jobs = recovered.queued, "jobs of an earlier run wait");
            }
            Ok(store)
        }
        Err(error) if config.required => {
            let problem = Diagnostic::error(DiagnosticCode::JobsUnusable, error.to_string());
            return Err(vec![loaded.config.place(problem.at("/jobs/store"))]);
        }
        Err(error) => {
            tracing::error!(%error, "jobs are off");
            Err(error)
        }
    };
    Ok(Some(Keeper::new(KeeperParts {
        runner: runner(core.clone(), observers.clone()),
        store,
        lost,
        observer: Box::new(observers.clone()),
        settings: JobSettings {
            promote_after: config.promote_after,
            mcp_mode: match (config.mcp_mode, is_durable) {
                (Some(McpCallMode::Auto), _) | (None, true) => CallMode::Auto,
                (Some(McpCallMode::Sync), _) | (None, false) => CallMode::Sync,
            },
            ttl: config.ttl,
        },
    })))
}

fn store_path(
    config: &JobsConfig,
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<Option<PathBuf>, Vec<Diagnostic>> {
    let Some(template) = &config.store else {
        return Ok(None);
    };
    let expanded = template.expand(&|name| environment.get(name).map(str::to_owned));
    let text = expanded.map_err(|missing| {
        let missing = missing.into_iter().map(|variable| {
            let message = format!("the variable `{}` is not set", variable.0);
            let missing = Diagnostic::error(DiagnosticCode::EnvMissing, message);
            loaded.config.place(missing.at("/jobs/store"))
        });
        missing.collect::<Vec<_>>()
    })?;
    Ok(Some(loaded.base.join(text)))
}
