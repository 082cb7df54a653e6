//! The command line: verbs over the plan, and the only part that launches servers.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use broker_model::exit::Exit;
use clap::{Args, Parser, Subcommand, ValueEnum};

mod check;
mod input;
mod lock;
mod machine;
mod output;
mod schemas;
mod survey;

/// Locks the tools of MCP servers, and checks servers against the lock.
#[derive(Debug, Parser)]
#[command(name = "broker-gen", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Launch the sources, snapshot the tools that pass the filters, write the lock.
    ///
    /// Example: broker-gen lock --config smoke_config.json
    Lock(LockArgs),
    /// Hold the live sources against the lock. Never writes.
    ///
    /// Exits with 0 where a plain start would serve, 3 on drift, 4 where a source could not be
    /// checked, 5 where the lock is missing, damaged or stale.
    ///
    /// Example: broker-gen check --format json
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct ConfigArgs {
    /// The config; its lock is `<stem>.lock.json` beside it.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCP_BROKER_CONFIG",
        default_value = "smoke_config.json"
    )]
    config: PathBuf,
    /// Only this source, by the path of its node; repeatable.
    #[arg(long = "source", value_name = "PATH")]
    sources: Vec<String>,
}

#[derive(Debug, Args)]
struct LockArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Launch each source once instead of twice; an unstable source is then not found.
    #[arg(long)]
    once: bool,
    /// Do not write: the same as `check`.
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// How to print the report on standard output.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people: the worst first.
    Human,
    /// One JSON object.
    Json,
}

/// Runs the program with this process's arguments.
pub fn main() -> ExitCode {
    run(std::env::args_os()).into()
}

fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return output::failure(&format!("the runtime cannot be started: {error}")),
    };
    runtime.block_on(async {
        match cli.verb {
            // A machine never writes over what people reviewed.
            Verb::Lock(args)
                if args.check || (is_ci() && input::lock_exists(&args.config.config)) =>
            {
                check::run(&args.config, Format::Human).await
            }
            Verb::Lock(args) => lock::run(&args).await,
            Verb::Check(args) => check::run(&args.config, args.format).await,
        }
    })
}

/// Whether this is a machine that must not write: `CI=true` or `MCP_BROKER_LOCKED=1`.
fn is_ci() -> bool {
    let is = |name: &str, values: &[&str]| {
        std::env::var(name).is_ok_and(|value| values.contains(&value.as_str()))
    };
    is("CI", &["true", "1"]) || is("MCP_BROKER_LOCKED", &["true", "1"])
}
