//! `mcp-broker connect`: prints or writes the entry for an MCP client. Starts no server.

use broker_model::exit::Exit;

use super::failure::Failure;
use super::tree;
use crate::connect::ConnectArgs;
use crate::connect::{self, ConnectError};
use crate::logging::LogOutput;

/// Makes the entry; only it goes to standard output.
pub(super) fn run(args: &ConnectArgs, output: &LogOutput) -> Result<Exit, Failure> {
    let answer = connect::run(args)?;
    if let Some(entry) = &answer.entry {
        tree::print(entry)?;
    }
    output.note(&answer.note);
    Ok(Exit::Ok)
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Usage(message) => Self::Usage(message),
            ConnectError::System(message) => Self::Internal(message),
        }
    }
}
