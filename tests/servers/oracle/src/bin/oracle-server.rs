//! The SDK's server: `oracle-server [legacy]` on standard input and output, `oracle-server http [legacy]` over
//! streamable HTTP at a free port of 127.0.0.1, which it prints on standard error. Over HTTP the legacy era has
//! sessions at `/mcp`, and none at `/stateless/mcp`, where results are JSON if nothing is sent before them. With
//! `items=NAME` it has a resource and a prompt as well.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use oracle_mcp::OracleServer;
use rmcp::ServiceExt as _;
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let given = |word: &str| words.iter().any(|given| given == word);
    let server = OracleServer {
        legacy_only: given("legacy"),
        items: words
            .iter()
            .find_map(|word| word.strip_prefix("items=").map(str::to_owned)),
    };
    let is_served = match given("http") {
        true => serve_http(server).await.is_ok(),
        false => serve_stdio(server).await.is_some(),
    };
    match is_served {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

async fn serve_stdio(server: OracleServer) -> Option<()> {
    let service = server.serve(stdio()).await.ok()?;
    service.waiting().await.ok().map(|_| ())
}

async fn serve_http(server: OracleServer) -> std::io::Result<()> {
    let service = |has_sessions: bool| {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(has_sessions)
            .with_json_response(!has_sessions);
        let sessions = Arc::new(LocalSessionManager::default());
        let server = server.clone();
        StreamableHttpService::new(move || Ok(server.clone()), sessions, config)
    };
    let routes = Router::new()
        .route_service("/mcp", service(true))
        .route_service("/stateless/mcp", service(false));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    writeln!(std::io::stderr(), "listening on http://{address}")?;
    axum::serve(listener, routes).await
}
