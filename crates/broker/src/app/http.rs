//! The start of a broker with a listener. Such a start also needs an address and a secret.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use broker_model::exit::Exit;
use broker_model::redact::{Redactor, Secret};
use broker_process::raise_file_limit;
use broker_surface_http::{HttpAccess, HttpSettings, HttpSurface, WANTED_FILES};

use super::catalog_origin::CatalogOrigin;
use super::failure::Failure;
use super::metrics_listener::{self, MetricsAddress};
use super::openness::Openness;
use super::startup::{FromConfig as _, SignalReceivers, Startup};
use super::{listen, warn};
use crate::cli::{SERVE_WORDS, WORDS};
use crate::secret::{self, SecretSources};

/// Serves until a signal or a refused start.
pub(super) async fn start(
    startup: Startup<'_>,
    signal_receivers: SignalReceivers,
) -> Result<Exit, Failure> {
    let cli = startup.cli;
    if cli.options.under.is_some() {
        let message = "`--under` is for `stdio`; clients over HTTP add `?under=PATH` to the URL";
        return Err(Failure::Usage(message.to_owned()));
    }
    if cli.options.client.is_some() {
        let message = "`--client` is for `stdio`; clients over HTTP use the route `/mcp/direct/openai`, `/mcp/direct/gemini` or `/mcp/direct/anthropic`, or a key with `client`";
        return Err(Failure::Usage(message.to_owned()));
    }
    let address = cli.address.as_deref().unwrap_or_default();
    let words = match startup.origin {
        CatalogOrigin::Compiled => WORDS,
        CatalogOrigin::Lock => SERVE_WORDS,
    };
    let addresses = listen::resolve(address, words).await?;
    let settings = startup.settings()?;
    let secret = load_secret(cli.secret.as_deref(), cli.options.secret_file.as_deref())?;
    settings.warnings.iter().for_each(warn);
    Startup::set_server_name(&settings);

    // Problems of the address, of hosts and origins, and of the sources are reported together.
    let mut problems = Vec::new();
    let metrics = MetricsAddress::resolve(&settings).await?;
    let mut listeners = vec![(address.to_owned(), addresses.clone())];
    listeners.extend(
        metrics
            .iter()
            .map(|metrics| (metrics.text().to_owned(), metrics.addresses.clone())),
    );
    if startup.origin == CatalogOrigin::Lock {
        for (text, addresses) in &listeners {
            problems.extend(listen::not_local(text, addresses));
        }
    }
    let for_surface = HttpSettings::from_config(&startup, &settings, &mut problems);
    startup.openness.get_or_init(|| Openness {
        listeners,
        has_secret: secret.is_some(),
        is_allowed: cli.allow_unauthenticated,
        had_identities: Cell::new(false),
    });
    startup.check_openness(
        startup.catalog.get(),
        &settings,
        for_surface.callers(),
        &mut problems,
    );
    startup.note_callers(for_surface.callers());
    startup.output.mask(&Redactor::new(secret.clone()));
    let core = startup.core(&settings, problems)?;

    raise_file_limit(WANTED_FILES as u64);
    // The listener is opened before the first source is started, so that a used port does not cost a
    // start of every source.
    let listener = listen::bind(address, &addresses).await?;
    let local = listener
        .local_addr()
        .map_err(|error| Failure::bind(address, &error))?;
    let metrics_listener = match &metrics {
        Some(metrics) => Some(metrics.bind().await?),
        None => None,
    };
    let observers = startup.observers.get().cloned().unwrap_or_default();
    let access = HttpAccess {
        observers,
        secret,
        key_header: startup.mcp.key_header.clone(),
        mcp: startup.mcp.is_enabled && !cli.options.no_mcp,
    };
    let stack = startup.stack(&core, &settings).await?;
    let surface = Arc::new(HttpSurface::new(stack, for_surface, access, local));
    if let Some(keeper) = startup.jobs.get() {
        let surface = Arc::downgrade(&surface);
        keeper.start(move |name| surface.upgrade()?.key_identity(name));
    }
    metrics_listener::serve(&surface, metrics_listener);
    tracing::info!("listening on http://{local}");
    let drain_timeout = cli.options.drain_timeout();
    startup
        .run(core, surface, listener, drain_timeout, signal_receivers)
        .await
}

/// The secret of the command line, a file or the environment.
pub(super) fn load_secret(
    argument: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<Secret>, Failure> {
    let variable = secret::read_environment(std::env::var)
        .map_err(|name| Failure::Usage(format!("`{name}` is not UTF-8")))?;
    let loaded = secret::load(&SecretSources {
        argument,
        file,
        variable: variable.as_ref().map(|(name, text)| (*name, text.as_str())),
    })?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    loaded.diagnostics.iter().for_each(warn);
    Ok(loaded.secret)
}
