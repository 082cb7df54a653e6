//! The verbs that a broker and `broker-gen` have: `status`, `connect` and `key`.

use broker_model::exit::Exit;

use super::failure::Failure;
use super::{connect, in_runtime, key, status};
use crate::cli::{KeyVerb, SharedVerb};
use crate::connect::Program;
use crate::logging::LogOutput;

/// Runs a verb for the program whose command line has it.
pub(super) fn run(
    verb: &SharedVerb,
    program: &Program,
    output: &LogOutput,
) -> Result<Exit, Failure> {
    match verb {
        SharedVerb::Status(args) => in_runtime(output, status::run(args, output)),
        SharedVerb::Connect(args) => connect::run(args, program, output),
        SharedVerb::Key(KeyVerb::New(args)) => key::run(args, output),
    }
}
