//! Serves a broker of a program: a core, or layers around one. The program makes the broker, starts its core and closes
//! it; config, keys and signals of the command line have no part in it.

use std::io::{self, Read, Write};
use std::sync::Arc;

use broker_config::{LegacySessions, Limits, Mcp};
use broker_model::redact::Secret;
use broker_observe::Observers;
use broker_surface::Surface as _;
use broker_surface_http::{
    BasePaths, CallerSettings, HostPolicy, HttpAccess, HttpSettings, HttpSurface, PageSettings,
};
use broker_surface_mcp::stdio::{StdioSettings, StdioSurface};
use broker_surface_mcp::{ClientView, McpSettings};
use tokio::net::TcpListener;

use crate::core::{Broker, Identity};

/// Serves the meta API and MCP over HTTP, until the drain of the broker's services is finished. Callers must send
/// `secret`; without one, every caller of the listener is served.
///
/// # Errors
///
/// The error of the listener if its address cannot be read.
pub async fn serve_http(
    broker: impl Broker,
    listener: TcpListener,
    secret: Option<&str>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let access = HttpAccess {
        secret: secret.map(Secret::new),
        key_header: None,
        mcp: true,
        observers: Observers::default(),
    };
    let surface = HttpSurface::new(broker, settings(), access, address);
    Arc::new(surface).serve(listener).await
}

/// Serves one MCP client with the rights of `identity` until its input ends, and finishes the drain of the broker's
/// services then.
///
/// # Errors
///
/// The error of a pipe for which no thread can be started.
pub async fn serve_stdio(
    broker: impl Broker,
    identity: Identity,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let services = broker.services().clone();
    let settings = StdioSettings {
        view: ClientView::default(),
        list_changed_exec: None,
        line_bytes: Limits::default().body_bytes,
        answer_bytes: Limits::default().stdio_line_bytes,
    };
    let surface = StdioSurface::new(broker, identity, settings);
    let idle = surface.idle();
    let finish = async {
        idle.cancelled().await;
        services.drain().finish();
    };
    tokio::join!(surface.serve_client(input, output, None), finish).0
}

/// Returns the settings of a config without the sections for surfaces.
pub(crate) fn settings() -> HttpSettings {
    let body_bytes = Limits::default().body_bytes;
    HttpSettings {
        hosts: HostPolicy::default(),
        body_bytes,
        mcp: McpSettings {
            view: ClientView::default(),
            list_changed_exec: None,
            legacy_sessions: LegacySessions::default(),
            session_idle: Mcp::default().session_idle,
            serves_v1: true,
            serves_sse: false,
            base_path: String::new(),
            body_bytes,
            event_bytes: Limits::default().event_bytes,
        },
        callers: CallerSettings::default(),
        idle_timeout: Limits::default().idle_timeout,
        base_paths: BasePaths::default(),
        // The page is a part of the program with a config.
        page: PageSettings {
            served: Some(false),
            calls: false,
        },
    }
}
