//! Serves callers over streams in memory, for the test that counts the cost of a call. Only with the feature `scripted`.
//! No program turns it on.

use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use broker_audit::{AuditLog, AuditSettings, SyncMode, Versions};
use broker_jobs::{Bounds, Clock, JobSettings, JobStore, Keeper, KeeperParts, Now, StoreSettings};
use broker_metrics::Transport;
use broker_model::redact::Secret;
use broker_observe::{
    Audit, AuditPolicy, CallSpans, Intent, Propagators, Sampling, SpanSink, Tracer,
};
use broker_surface_http::{HttpAccess, HttpSurface};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use crate::app::observation::meter;
use crate::app::stack::{runner, stack};
use crate::core::{Broker as _, CallMode, Core, Identity};
use crate::embed::{self, settings};
use crate::observe::Observers;

/// A part that the counted broker has in addition to its metrics.
#[derive(Clone, Copy, Debug)]
pub enum Addition<'a> {
    /// Nothing.
    None,
    /// Lines in an audit file. They are not synced.
    Audit(&'a Path),
    /// Spans of this share of the calls. They are dropped.
    Traces(f64),
    /// Jobs in this store, and the mode of a call of an MCP client.
    Jobs(&'a Path, CallMode),
}

/// A time that passes in no run.
const LONG: Duration = Duration::from_secs(60);

/// Drops spans.
struct NoExport;

impl SpanSink for NoExport {
    fn take(&self, _: CallSpans) {}
}

/// Serves one HTTP connection over `stream` until the caller ends it. Requests must have the secret.
pub async fn serve_http(
    core: &Core,
    secret: &str,
    addition: Addition<'_>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let access = HttpAccess {
        secret: Some(Secret::new(secret)),
        key_header: None,
        mcp: true,
        observers: Observers::default(),
    };
    let (mut audit, mut tracer, mut jobs) = (None, None, None);
    match addition {
        Addition::None => {}
        Addition::Audit(file) => audit = Some(open_audit(core, file)),
        Addition::Jobs(file, mode) => jobs = Some(open_jobs(core, file, mode).await),
        Addition::Traces(ratio) => {
            let sampling = Sampling {
                ratio,
                ..Sampling::default()
            };
            let propagators = Propagators::default();
            tracer = Some(Arc::new(Tracer::new(None, propagators, sampling, NoExport)));
        }
    }
    let observers = Observers {
        audit: audit.clone(),
        tracer,
        ..observers(core)
    };
    let stack = stack(core.clone(), observers, jobs.clone());
    let surface = HttpSurface::new(stack, settings(), access, address);
    Arc::new(surface).serve_stream(stream).await;
    if let Some(audit) = audit {
        audit.close();
    }
    if let Some(jobs) = jobs {
        jobs.close().await;
    }
}

/// Opens a store of jobs, whose calls become jobs after a minute.
async fn open_jobs(core: &Core, file: &Path, mcp_mode: CallMode) -> Arc<Keeper> {
    let begun = Instant::now();
    let settings = StoreSettings {
        path: Some(file.to_owned()),
        bounds: Bounds::default(),
        // The program that counts does not run the clock of the system.
        clock: Clock::new(move || Now {
            wall: SystemTime::now(),
            since: begun.elapsed(),
        }),
    };
    let (store, recovered) = JobStore::open(settings)
        .await
        .expect("the file can be written");
    let observers = observers(core);
    Keeper::new(KeeperParts {
        runner: runner(core.clone(), observers.clone()),
        store: Ok(store),
        lost: recovered.lost,
        adoptable: recovered.adoptable,
        observer: Box::new(observers),
        settings: JobSettings {
            promote_after: LONG,
            mcp_mode,
            ttl: LONG,
        },
    })
}

/// Opens an audit log whose lines are not synced.
fn open_audit(core: &Core, file: &Path) -> Arc<Audit> {
    let mut settings = AuditSettings::new(file.to_owned());
    settings.sync = SyncMode::None;
    let versions = Arc::new(Versions {
        catalog: core.services().catalog().catalog_digest.to_owned(),
        ..Versions::default()
    });
    let log = AuditLog::open(settings, versions.clone()).expect("the file can be written");
    let policy = AuditPolicy {
        is_required: true,
        has_reads: false,
        intent: Intent::Writes,
    };
    Arc::new(Audit::new(log, policy, versions))
}

/// Serves one MCP client until its input ends, and finishes the drain of `core`.
pub async fn serve_stdio(
    core: &Core,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let stack = stack(core.clone(), observers(core), None);
    embed::serve_stdio(stack, Identity::local(), input, output).await
}

/// Returns the observers of a broker with the default config.
fn observers(core: &Core) -> Observers {
    let catalog = core.services().catalog();
    let config = broker_config::Config::parse(catalog.config_name, catalog.config.as_bytes());
    let meter = config.map(|parsed| meter(catalog, &parsed.config, Transport::Tcp));
    Observers {
        meter: meter.ok(),
        ..Observers::default()
    }
}
