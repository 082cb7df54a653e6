//! One broker for the client that started it: no listener, the same settings and the same gate, and
//! an end that comes quickly, because the program that closes our input is waiting for it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use broker_mcp::Environment;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::lifecycle::refusal;
use super::reload::{Door, Reloader};
use super::settings::Settings;
use super::{mode, warn};
use crate::catalog::Catalog;
use crate::cli::Cli;
use crate::core::{Core, Setup};
use crate::logging::Output;
use crate::secret;
use crate::surface::stdio::Surface;
use broker_model::exit::Exit;
use broker_model::redact::{Redactor, Secret};
use broker_process::guard::{Hangups, Signals};

/// Clients kill a server that is not gone 2 s after they closed its input. How long calls may take
/// after that,
const DRAIN: Duration = Duration::from_millis(900);
/// how long a source has to leave by itself, and again after SIGTERM,
const SOURCE_GRACE: Duration = Duration::from_millis(400);
/// and how long stopping all of them may take where even SIGKILL is slow. All of this and the last
/// answers together take less than what follows the first signal at most, 13 s.
const CLOSE: Duration = Duration::from_millis(9_500);
/// How long the surface may take to write its last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Serves until the end of input, a signal, or a refused start.
pub(super) async fn start(
    catalog: &'static Catalog,
    cli: &Cli,
    output: &Output,
    signals: Signals,
    hangups: Hangups,
) -> Result<Exit, Failure> {
    if let [first, rest @ ..] = &cli.only_for_listeners()[..] {
        let names = rest
            .iter()
            .fold((*first).to_owned(), |all, name| format!("{all}, {name}"));
        let message = format!("with `stdio` nobody else can call, so {names} makes no sense");
        return Err(Failure::Usage(message));
    }
    let environment = Environment::capture();
    let settings = Settings::load(catalog, cli.config.as_deref())?;
    settings.warnings.iter().for_each(warn);
    // Not needed here, yet it may be set for another broker, and must not be shown by this one.
    let secret = std::env::var(secret::VARIABLE).ok().map(Secret::new);
    output.mask(&Redactor::new(secret));
    let line_bytes = settings.config.limits.body_bytes;
    let core = Core::new(Setup {
        catalog,
        config: &settings.config,
        environment: &environment,
        base: &settings.base,
        mode: mode(cli),
    })
    .map_err(Failure::Diagnostics)?;
    output.mask(&core.redactor());
    core.shorten_stop(SOURCE_GRACE);
    tracing::info!("serving MCP on standard input and output");
    let surface = Arc::new(Surface::new(core.clone(), line_bytes));
    let door = Door::Stdio(Arc::clone(&surface));
    let reloader = Reloader::new(catalog, cli, core.clone(), environment, output, door);
    serve(core, surface, signals, reloader.run(hangups), output).await
}

async fn serve(
    core: Core,
    surface: Arc<Surface>,
    mut signals: Signals,
    reloads: impl Future<Output = Infallible>,
    output: &Output,
) -> Result<Exit, Failure> {
    let (stop, ended) = (CancellationToken::new(), surface.ended());
    let mut server = tokio::spawn(Arc::clone(&surface).serve(stop.clone()));
    core.start();
    let exit = tokio::select! {
        never = reloads => match never {},
        exit = refusal(&core, output) => exit,
        () = signals.stop() => {
            tracing::info!("stopping");
            Exit::Ok
        }
        () = ended.cancelled() => {
            tracing::info!("the input ended: stopping");
            // What was asked before is still answered: nothing new can come.
            if timeout(DRAIN, surface.idle().cancelled()).await.is_err() {
                tracing::warn!("calls were still running after {} ms", DRAIN.as_millis());
            }
            Exit::Ok
        }
        served = &mut server => {
            core.close().await;
            let reason = match served {
                Ok(Ok(())) => "it ended by itself".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            return Err(Failure::Internal(format!("standard input and output cannot be served: {reason}")));
        }
    };
    let end = async {
        surface.begin_shutdown();
        core.begin_shutdown();
        if !surface.ended().is_cancelled() && timeout(DRAIN, core.drained()).await.is_err() {
            tracing::warn!("calls were still running after {} ms", DRAIN.as_millis());
        }
        if timeout(CLOSE, core.close()).await.is_err() {
            tracing::warn!("sources were still stopping after {} s", CLOSE.as_secs());
        }
        stop.cancel();
        if timeout(LAST_ANSWERS, server).await.is_err() {
            tracing::debug!("answers were left unread");
        }
    };
    tokio::select! {
        () = end => Ok(exit),
        () = signals.stop() => {
            tracing::warn!("interrupted twice: stopping at once");
            Ok(Exit::Interrupted)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_45_over_stdio_all_is_over_in_twelve_seconds_too() {
        let end = DRAIN + CLOSE + LAST_ANSWERS + super::super::LAST_BREATH;
        assert!(end <= Duration::from_secs(12), "{end:?}");
    }
}
