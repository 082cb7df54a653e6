//! `mcp-broker key new`: prints a new API key and the entry of the config for it. Starts no server.

use broker_model::exit::Exit;

use super::failure::Failure;
use super::tree;
use crate::cli::NewKeyArgs;
use crate::key::{self, KeyError};
use crate::logging::LogOutput;

/// Makes the key; only it and its entry go to standard output.
pub(super) fn run(args: &NewKeyArgs, output: &LogOutput) -> Result<Exit, Failure> {
    let answer = key::run(args)?;
    tree::print(&answer.key)?;
    output.note(&answer.note);
    Ok(Exit::Ok)
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Usage(message) => Self::Usage(message),
            KeyError::Random(error) => Self::Internal(error.to_string()),
        }
    }
}
