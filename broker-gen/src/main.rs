//! The `broker-gen` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    broker_gen::cli::main()
}
