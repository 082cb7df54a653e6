//! The start of a broker for the client that started it. There is no listener, and the shutdown is
//! quick, because the program that closes the input waits for it.

use std::time::Duration;

use broker_model::exit::Exit;
use broker_model::redact::Redactor;

use super::failure::Failure;
use super::startup::{SignalReceivers, Startup};
use super::warn;
use crate::core::Identity;
use crate::secret;
use crate::surface::mcp::stdio::StdioSurface;

/// Maximum time of calls after the client closed the input. Clients kill a server that has not ended
/// 2 s after that.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(900);
/// Maximum time for a source to end by itself, and again after SIGTERM.
const SOURCE_STOP_TIMEOUT: Duration = Duration::from_millis(400);

/// Serves until the end of input, a signal, or a refused start.
pub(super) async fn start(
    startup: Startup<'_>,
    signal_receivers: SignalReceivers,
) -> Result<Exit, Failure> {
    if let [first, rest @ ..] = &startup.cli.only_for_listeners()[..] {
        let names = rest
            .iter()
            .fold((*first).to_owned(), |all, name| format!("{all}, {name}"));
        let message = format!("`stdio` serves only the client that starts it: remove {names}");
        return Err(Failure::Usage(message));
    }
    let settings = startup.settings()?;
    settings.warnings.iter().for_each(warn);
    // Not needed here, but it may be set for another broker, and must not be shown.
    startup
        .output
        .mask(&Redactor::new(secret::values_to_hide()));
    let mut problems = Vec::new();
    let for_surface = startup.for_surface(&settings, &mut problems);
    let core = startup.core(&settings, problems)?;
    let identity = match &startup.cli.options.under {
        None => Identity::local(),
        Some(path) => core
            .within(&Identity::local(), path)
            .map_err(|error| Failure::Usage(format!("`--under`: {}", error.message)))?,
    };
    core.shorten_stop(SOURCE_STOP_TIMEOUT);
    tracing::info!("serving MCP on standard input and output");
    let surface = StdioSurface::new(core.clone(), identity, for_surface);
    startup
        .run(core, surface, (), DRAIN_TIMEOUT, signal_receivers)
        .await
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
