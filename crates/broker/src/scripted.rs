//! Serves callers over streams in memory, and servers that are tasks of the runtime, for the test that
//! counts the cost of a call. Only with the feature `scripted`, which no program turns on.

use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;

use broker_model::config::Limits;
use broker_model::redact::Secret;
use tokio::io::{AsyncRead, AsyncWrite};

pub use broker_mcp::scripted::{Pipes, register};

use crate::core::Core;
use crate::surface::http::{HostPolicy, HttpSurface};
use crate::surface::mcp::stdio::StdioSurface;
use crate::surface::{Surface as _, SurfaceSettings};

/// Serves one HTTP connection over `stream` until the caller ends it. Requests must have the secret.
pub async fn serve_http(core: &Core, secret: &str, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let surface = HttpSurface::new(core.clone(), settings(), Some(Secret::new(secret)), address);
    Arc::new(surface).serve_stream(stream).await;
}

/// Serves one MCP client until its input ends, and finishes the drain of `core`.
pub async fn serve_stdio(
    core: &Core,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<()> {
    let surface = StdioSurface::new(core.clone(), settings());
    let idle = surface.idle();
    let finish = async {
        idle.cancelled().await;
        core.drain().finish();
    };
    tokio::join!(surface.serve_client(input, output), finish).0
}

fn settings() -> SurfaceSettings {
    SurfaceSettings {
        hosts: HostPolicy::default(),
        body_bytes: Limits::default().body_bytes,
    }
}
