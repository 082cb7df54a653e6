//! Runs the command that removes a container.

use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::{Container, REMOVE_TIMEOUT, list, removal_words};
use crate::{
    ContainerSpec, ExitReport, Process, ProcessSpec, StderrTail, StopDeadline, StopGrace, lookup,
};

/// The command that removes a container, for messages.
const REMOVAL: &str = "rm -f";
/// What Docker, Podman and nerdctl write about a container that does not exist.
const IS_GONE: &str = "no such container";

/// Removes the containers of the same program that are left of processes that were killed together with their guard,
/// before another one with such a name is started.
pub(crate) async fn remove_abandoned(
    process: &ProcessSpec,
    container: &ContainerSpec,
    tasks: &TaskTracker,
    stop_deadline: &StopDeadline,
) {
    let (of_thread, spec) = (process.clone(), container.clone());
    let found = tokio::task::spawn_blocking(move || find_abandoned(&of_thread, &spec)).await;
    for container in found.ok().flatten().unwrap_or_default() {
        let name = container.shown();
        let Some(removal) = container.removal(process) else {
            container.leave();
            continue;
        };
        match run_removal(&removal, tasks, stop_deadline).await {
            Ok(()) => {
                container.leave();
                tracing::info!(source = %process.name, container = %name, "a container was removed that a killed process had left");
            }
            Err(why) => {
                // It stays in the list of this process. The next one would fail as well.
                tracing::warn!(source = %process.name, container = %name, why, "a container that a killed process left cannot be removed");
                break;
            }
        }
    }
}

/// Takes the containers that the program of a source can remove. The variables of the source are those of the removal.
fn find_abandoned(process: &ProcessSpec, spec: &ContainerSpec) -> Option<Vec<Container>> {
    // The start itself reports a program that is missing.
    let program = lookup::find(process).ok()?;
    let args = removal_words(spec, &process.args)?;
    let env = process.env.iter();
    let env: Vec<_> = env
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    Some(list::take_abandoned(|found| {
        (found.program == program && found.args == args).then(|| Container {
            folder: process.cwd.clone().unwrap_or_default(),
            env: env.clone(),
            ..found.clone()
        })
    }))
}

/// Runs the program that removes a container.
pub(crate) async fn run_removal(
    removal: &ProcessSpec,
    tasks: &TaskTracker,
    stop_deadline: &StopDeadline,
) -> Result<(), String> {
    let grace = StopGrace {
        close: Duration::ZERO,
        term: Duration::ZERO,
    };
    let tail = StderrTail::new(removal.redactor.clone());
    let never = StopDeadline::never();
    // A start may remove containers, and this is a start.
    let started = Box::pin(Process::spawn(removal, grace, &tail, tasks, &never)).await;
    let process = started.map_err(|error| error.message)?;
    let mut exit = process.handle.exit();
    let ended = exit.wait_for(Option::is_some);
    let ended = stop_deadline.clone().bound(REMOVE_TIMEOUT, 1, ended).await;
    let exit = ended.and_then(Result::ok).and_then(|exit| *exit);
    match (exit, tail.last_line()) {
        (Some(ExitReport { code: Some(0), .. }), _) => Ok(()),
        (Some(_), Some(line)) if line.to_ascii_lowercase().contains(IS_GONE) => Ok(()),
        (Some(exit), Some(line)) => Err(format!("`{REMOVAL}` {exit}: {line}")),
        (Some(exit), None) => Err(format!("`{REMOVAL}` {exit}")),
        (None, _) => Err(format!("`{REMOVAL}` did not end in time")),
    }
}
