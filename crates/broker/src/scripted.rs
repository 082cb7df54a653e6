//! Serves callers over streams in memory, and servers that are tasks of the runtime, for the test that counts the cost
//! of a call. Only with the feature `scripted`. No program turns it on.

use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;

use broker_config::{Limits, Mcp};
use broker_model::redact::Secret;
use tokio::io::{AsyncRead, AsyncWrite};

pub use broker_mcp::scripted::{Pipes, register};

use crate::core::{Core, Identity};
use crate::surface::http::{HostPolicy, HttpAccess, HttpSurface};
use crate::surface::mcp::stdio::StdioSurface;
use crate::surface::{CallerSettings, ClientView, McpSettings, Surface as _, SurfaceSettings};

/// Serves one HTTP connection over `stream` until the caller ends it. Requests must have the secret.
pub async fn serve_http(
    core: &Core,
    secret: &str,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) {
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let access = HttpAccess {
        secret: Some(Secret::new(secret)),
        key_header: None,
        mcp: true,
    };
    let surface = HttpSurface::new(core.clone(), settings(), access, address);
    Arc::new(surface).serve_stream(stream).await;
}

/// Serves one MCP client until its input ends, and finishes the drain of `core`.
pub async fn serve_stdio(
    core: &Core,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let surface = StdioSurface::new(core.clone(), Identity::local(), settings());
    let idle = surface.idle();
    let finish = async {
        idle.cancelled().await;
        core.drain().finish();
    };
    tokio::join!(surface.serve_client(input, output, None), finish).0
}

fn settings() -> SurfaceSettings {
    SurfaceSettings {
        hosts: HostPolicy::default(),
        body_bytes: Limits::default().body_bytes,
        mcp: McpSettings {
            view: ClientView::default(),
            list_changed_exec: None,
            session_idle: Mcp::default().session_idle,
            serves_v1: true,
            serves_sse: false,
            base_path: String::new(),
            body_bytes: Limits::default().body_bytes,
        },
        callers: CallerSettings::default(),
    }
}
