//! A client over the SDK's transport to a child process. It returns JSON as the SDK parsed it, so that two
//! servers can be compared.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use rmcp::model::{CallToolRequestParams, JsonObject, ProtocolVersion};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::Value;
use tokio::process::Command;

/// The first request of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, 2025-11-25.
    Legacy,
    /// `server/discover`, 2026-07-28.
    Modern,
    /// Modern first, legacy if the server does not support it.
    Auto,
}

/// A connected client; its server ends with it.
#[derive(Debug)]
pub struct Client(RunningService<RoleClient, ()>);

/// The reason why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The JSON-RPC error of the server.
    Rpc(Value),
    /// Any other error.
    Other(String),
}

impl Client {
    /// Starts `program` and opens the connection.
    pub async fn start<S: AsRef<OsStr>>(
        program: &Path,
        args: impl IntoIterator<Item = S>,
        folder: Option<&Path>,
        era: Era,
    ) -> Result<Self, CallError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test client starts the server that it tests"
        )]
        let mut command = Command::new(program);
        command.args(args);
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let other = |error: &dyn fmt::Display| CallError::Other(error.to_string());
        let transport = TokioChildProcess::new(command).map_err(|error| other(&error))?;
        let modern = vec![ProtocolVersion::V_2026_07_28];
        let mode = match era {
            Era::Legacy => ClientLifecycleMode::Initialize,
            Era::Modern => ClientLifecycleMode::Discover {
                preferred_versions: modern,
            },
            Era::Auto => ClientLifecycleMode::Auto {
                preferred_versions: modern,
                legacy_version: None,
            },
        };
        let service = ().serve_with_lifecycle(transport, mode).await;
        Ok(Self(service.map_err(|error| other(&error))?))
    }

    /// The server's revision, capabilities, name and instructions.
    pub fn server(&self) -> Value {
        let info = self.0.peer_info();
        info.and_then(|info| serde_json::to_value(&*info).ok())
            .unwrap_or_default()
    }

    /// Every tool, all pages.
    pub async fn tools(&self) -> Result<Vec<Value>, CallError> {
        let tools = self.0.list_all_tools().await?;
        let values = tools.iter().map(serde_json::to_value);
        values
            .collect::<Result<_, _>>()
            .map_err(|error| CallError::Other(error.to_string()))
    }

    /// The result of a tool. Dropping the future cancels the call.
    pub async fn call(&self, tool: &str, args: JsonObject) -> Result<Value, CallError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        let result = self.0.call_tool(params).await?;
        serde_json::to_value(result).map_err(|error| CallError::Other(error.to_string()))
    }

    /// Ends the connection and waits for the server's end.
    pub async fn close(self) -> Result<(), CallError> {
        let ended = self.0.cancel().await;
        ended
            .map(drop)
            .map_err(|error| CallError::Other(error.to_string()))
    }
}

impl From<ServiceError> for CallError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) => {
                Self::Rpc(serde_json::to_value(error).unwrap_or_default())
            }
            other => Self::Other(other.to_string()),
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(error) => write!(f, "the server answered with an error: {error}"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for CallError {}
