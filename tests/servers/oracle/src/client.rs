//! A client over the SDK's transports to a child process and over streamable HTTP. It returns JSON as the SDK parsed it,
//! so that two servers can be compared.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, Implementation, JsonObject, ProtocolVersion,
    ReadResourceRequestParams,
};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, Transport};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use serde::Serialize;
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
        let transport = TokioChildProcess::new(command).map_err(other)?;
        Self::open(transport, era).await
    }

    /// Opens a connection to a URL.
    pub async fn connect(url: &str, era: Era) -> Result<Self, CallError> {
        // A proxy of the environment does not reach this machine.
        let client = reqwest::Client::builder().no_proxy().build();
        let config = StreamableHttpClientTransportConfig::with_uri(url);
        let transport = StreamableHttpClientTransport::with_client(client.map_err(other)?, config);
        Self::open(transport, era).await
    }

    async fn open<T: Transport<RoleClient> + 'static>(
        transport: T,
        era: Era,
    ) -> Result<Self, CallError> {
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
        Ok(Self(service.map_err(other)?))
    }

    /// The version of the SDK.
    pub fn sdk_version() -> String {
        Implementation::from_build_env().version
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
        tools.iter().map(json).collect()
    }

    /// The result of a tool. Dropping the future cancels the call.
    pub async fn call(&self, tool: &str, args: JsonObject) -> Result<Value, CallError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        json(&self.0.call_tool(params).await?)
    }

    /// Every resource, all pages.
    pub async fn resources(&self) -> Result<Vec<Value>, CallError> {
        let resources = self.0.list_all_resources().await?;
        resources.iter().map(json).collect()
    }

    /// Every prompt, all pages.
    pub async fn prompts(&self) -> Result<Vec<Value>, CallError> {
        let prompts = self.0.list_all_prompts().await?;
        prompts.iter().map(json).collect()
    }

    /// The contents of a resource.
    pub async fn read(&self, uri: &str) -> Result<Value, CallError> {
        let params = ReadResourceRequestParams::new(uri);
        json(&self.0.read_resource(params).await?)
    }

    /// The messages of a prompt.
    pub async fn prompt(&self, name: &str, args: JsonObject) -> Result<Value, CallError> {
        let params = GetPromptRequestParams::new(name).with_arguments(args);
        json(&self.0.get_prompt(params).await?)
    }

    /// Ends the connection and waits for the server's end.
    pub async fn close(self) -> Result<(), CallError> {
        let ended = self.0.cancel().await;
        ended.map(drop).map_err(other)
    }
}

fn other(error: impl fmt::Display) -> CallError {
    CallError::Other(error.to_string())
}

fn json(result: &impl Serialize) -> Result<Value, CallError> {
    serde_json::to_value(result).map_err(other)
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
