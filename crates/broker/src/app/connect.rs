//! `mcp-broker connect`: prints or writes the entry for an MCP client. Starts no server.

use broker_model::exit::Exit;

use super::failure::Failure;
use super::tree;
use crate::connect::{self, ConnectArgs, ConnectError, Program};
use crate::logging::LogOutput;

/// Makes the entry; only it goes to standard output.
pub(super) fn run(
    args: &ConnectArgs,
    program: &Program,
    output: &LogOutput,
) -> Result<Exit, Failure> {
    let answer = connect::run(args, program)?;
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
