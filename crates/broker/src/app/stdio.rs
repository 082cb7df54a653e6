//! The start of a broker for the client that started it. There is no listener, and the shutdown is
//! quick, because the program that closes the input waits for it.

use std::sync::Arc;
use std::time::Duration;

use broker_model::exit::Exit;
use broker_model::redact::Redactor;
use broker_surface_http::{HttpAccess, HttpSettings, HttpSurface};
use broker_surface_mcp::ClientView;
use broker_surface_mcp::stdio::{StdioSettings, StdioSurface};

use super::failure::Failure;
use super::http::load_secret;
use super::lifecycle::Running;
use super::listen;
use super::metrics_listener::{self, MetricsAddress};
use super::settings::LoadedConfig;
use super::stack::Stack;
use super::startup::{FromConfig as _, SignalReceivers, Startup};
use super::warn;
use crate::catalog;
use crate::cli::Cli;
use crate::core::{Broker, Core, Identity, Via};
use crate::logging::LogOutput;
use crate::secret;

/// Maximum time of calls after the client closed the input. Clients kill a server that has not ended
/// 2 s after that.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(900);
/// Maximum time for a source to end by itself, and again after SIGTERM.
const SOURCE_STOP_TIMEOUT: Duration = Duration::from_millis(400);

/// Refuses arguments that only a listener uses.
pub(super) fn check(cli: &Cli) -> Result<(), Failure> {
    if let [first, rest @ ..] = &cli.only_for_listeners()[..] {
        let names = rest
            .iter()
            .fold((*first).to_owned(), |all, name| format!("{all}, {name}"));
        let message = format!("`stdio` serves only the client that starts it: remove {names}");
        return Err(Failure::Usage(message));
    }
    Ok(())
}

/// Serves until the end of input, a signal, or a refused start.
pub(super) async fn start(
    startup: Startup<'_>,
    signal_receivers: SignalReceivers,
) -> Result<Exit, Failure> {
    let prepared = match prepare(&startup).await {
        Ok((core, surface, stack)) => {
            let metrics = serve_metrics(&startup, stack).await;
            metrics.map(|()| (core, surface))
        }
        Err(failure) => Err(failure),
    };
    match prepared {
        Ok((core, surface)) => {
            tracing::info!("serving MCP on standard input and output");
            let surface = Arc::new(surface);
            let drain_timeout = startup.cli.options.drain_timeout();
            let drain_timeout = drain_timeout.or(Some(DRAIN_TIMEOUT));
            startup
                .run(core, surface, (), drain_timeout, signal_receivers)
                .await
        }
        Err(failure) => explain(failure, startup.output, signal_receivers).await,
    }
}

/// Serves the metrics over HTTP, if the config has an address for them. Only this machine can reach it; the secret of the
/// environment is needed if there is one.
async fn serve_metrics(startup: &Startup<'_>, stack: Stack) -> Result<(), Failure> {
    let settings = startup.settings()?;
    let Some(metrics) = MetricsAddress::resolve(&settings).await? else {
        return Ok(());
    };
    if let Some(problem) = listen::open_metrics(metrics.text(), &metrics.addresses) {
        return Err(Failure::Diagnostics(vec![problem]));
    }
    let listener = metrics.bind().await?;
    let local = listener
        .local_addr()
        .map_err(|error| Failure::bind(metrics.text(), &error))?;
    let access = HttpAccess {
        secret: load_secret(None, None)?,
        observers: startup.observers.get().cloned().unwrap_or_default(),
        ..HttpAccess::default()
    };
    let settings = HttpSettings::from_config(startup, &settings, &mut Vec::new());
    let surface = HttpSurface::new(stack, settings, access, local);
    metrics_listener::serve(&Arc::new(surface), Some(listener));
    Ok(())
}

/// The core and the surface of a start.
async fn prepare(startup: &Startup<'_>) -> Result<(Core, StdioSurface<Stack>, Stack), Failure> {
    let settings = startup.settings()?;
    settings.warnings.iter().for_each(warn);
    Startup::set_server_name(&settings);
    // Not needed here, but it may be set for another broker, and must not be shown.
    startup
        .output
        .mask(&Redactor::new(secret::values_to_hide()));
    let mut problems = Vec::new();
    let for_surface = StdioSettings::from_config(startup, &settings, &mut problems);
    let core = startup.core(&settings, problems)?;
    let identity = match &startup.cli.options.under {
        None => local_caller(),
        Some(path) => core
            .services()
            .within(&local_caller(), path)
            .map_err(|error| Failure::Usage(format!("`--under`: {}", error.message)))?,
    };
    core.shorten_stop(SOURCE_STOP_TIMEOUT);
    let stack = startup.stack(&core, &settings).await?;
    if let Some(keeper) = startup.jobs.get() {
        // Its only caller has no API key.
        keeper.start(|_| None);
    }
    let surface = StdioSurface::new(stack.clone(), identity, for_surface);
    Ok((core, surface, stack))
}

/// Reports a failed start, and answers every call of the client with the reason until it leaves: if a server ends
/// before the handshake, a client does not show its user the reason. Returns the exit of the failure.
pub(super) async fn explain(
    failure: Failure,
    output: &LogOutput,
    signal_receivers: SignalReceivers,
) -> Result<Exit, Failure> {
    let Some(error) = failure.for_client() else {
        return Err(failure);
    };
    failure.report(output);
    let config = LoadedConfig::load(&catalog::NONE, None)?.config;
    let core = Core::builder(&catalog::NONE)
        .failure(error)
        .build()
        .map_err(Failure::Diagnostics)?;
    // In the mode `meta` the client lists tools, whose calls show the reason.
    let settings = StdioSettings {
        view: ClientView::default(),
        list_changed_exec: None,
        line_bytes: config.limits.body_bytes,
        answer_bytes: config.limits.stdio_line_bytes,
    };
    let surface = Arc::new(StdioSurface::new(core.clone(), local_caller(), settings));
    tracing::info!("calls get `start_refused` until the client leaves");
    Running::start(core, surface, (), Some(DRAIN_TIMEOUT))
        .until_refused_client_leaves(signal_receivers.signals, failure.exit(), output)
        .await
}

/// Returns the program that started the broker.
fn local_caller() -> Identity {
    let mut caller = Identity::local();
    caller.set_origin(Via::Stdio, None);
    caller
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::lifecycle::tests::longest_shutdown;

    #[test]
    fn shutdown_over_stdio_ends_within_twelve_seconds() {
        let end = longest_shutdown(DRAIN_TIMEOUT);
        assert!(end <= Duration::from_secs(12), "{end:?}");
    }
}
