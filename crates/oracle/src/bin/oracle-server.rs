//! The SDK's server on standard input and output: `oracle-server [legacy]`.

use std::process::ExitCode;

use oracle_mcp::OracleServer;
use rmcp::ServiceExt as _;
use rmcp::transport::stdio;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let server = OracleServer {
        legacy_only: std::env::args().nth(1).as_deref() == Some("legacy"),
    };
    let Ok(service) = server.serve(stdio()).await else {
        return ExitCode::FAILURE;
    };
    match service.waiting().await {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
