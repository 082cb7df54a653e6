//! The composition root: connects command line, config, secret, listener, core, surface and shutdown.
//! It makes no decisions about tools or requests.

use std::cell::{Cell, OnceCell};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use broker_mcp::Environment;
use broker_model::Diagnostic;
use broker_model::exit::Exit;
use broker_model::terminal::Text;
use broker_model::text::shell_word;
use broker_process::guard::{self, Input, ProcessRole};
use clap::Parser as _;
use tokio::runtime;

mod asked_broker;
mod audit;
mod audit_query;
mod beside;
mod callers;
mod catalog_origin;
mod connect;
mod doctor;
mod failure;
mod followed_log;
mod http;
mod job_events;
mod jobs;
mod jobs_verb;
mod key;
mod lifecycle;
mod list_changed_exec;
mod listen;
mod logs;
mod mcp;
mod mcp_view;
mod metrics_listener;
mod names;
pub(crate) mod observation;
mod open;
mod openness;
mod program_catalog;
mod reload;
mod run;
mod settings;
mod shared_verb;
pub(crate) mod stack;
mod startup;
mod status;
mod stdio;
mod telemetry;
mod tree;
mod watch;

pub use open::OpenOptions;
pub(crate) use open::{close, open};
pub(crate) use stack::Stack;

use crate::catalog::{self, Catalog};
use crate::cli::{Cli, LogLevel, ServeOptions, SharedVerb, Verb};
use crate::connect::Program;
use crate::core::{PartialStart, StaleSource};
use crate::logging::{self, LogOutput};
use catalog_origin::CatalogOrigin;
use failure::Failure;
use mcp::McpVariables;
use mcp_view::ViewVariables;
use program_catalog::ProgramCatalog;
use startup::{SignalReceivers, Startup};

/// Maximum time for threads to end after the shutdown.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(250);

/// Runs a broker over `catalog` until it is stopped. `main` must call it first: on Linux the program
/// starts itself again as a child here, and signals are blocked for every later thread.
///
/// A catalog that is packed into the program takes the place of `catalog`. Its digest is checked first; a program that is
/// damaged does nothing else.
pub fn main(catalog: &'static Catalog) -> ExitCode {
    guard::deny_inspection();
    let program = ProgramCatalog::find(catalog);
    let cli = match Cli::try_parse() {
        Ok(cli) if !program.runs(&cli) => return program.refuse(cli.options.log_format).into(),
        Ok(cli) => cli,
        Err(_) if !program.is_sound() => return program.refuse(logging::Format::Human).into(),
        Err(error) => {
            // Help goes to stdout with exit code 0, other messages to stderr with 2. If neither can be
            // written, only the exit code remains.
            logging::usage(&error);
            return ExitCode::from(error.exit_code() as u8);
        }
    };
    if let Some(version) = program.version_without_catalog(&cli) {
        let printed = tree::print(&version);
        return printed.unwrap_or_else(|failure| failure.exit()).into();
    }
    run(&cli, CatalogOrigin::Compiled, &|_| program.read())
}

/// Runs a broker over the catalog that `read` makes of `config` and its lock, on this machine only. As
/// [`main`], except that the program may have read its command line before.
pub fn serve(
    options: ServeOptions,
    config: PathBuf,
    read: impl Fn(StaleSources) -> Result<ServedCatalog, Vec<Diagnostic>>,
) -> ExitCode {
    guard::deny_inspection();
    run(&options.into_cli(config), CatalogOrigin::Lock, &read)
}

/// Reads the catalog.
type ReadCatalog<'a> = &'a dyn Fn(StaleSources) -> Result<ServedCatalog, Vec<Diagnostic>>;

/// Whether a lock that is stale for some sources is served for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleSources {
    /// The whole lock is refused.
    Refused,
    /// The sources are not started, and calls of their tools fail with `lock_stale`.
    LeftOut,
}

/// A catalog that was made of a config and its lock.
#[derive(Debug)]
pub struct ServedCatalog {
    /// The catalog.
    pub catalog: &'static Catalog,
    /// The sources whose part of the lock is stale.
    pub stale: Vec<StaleSource>,
    /// Problems that do not prevent the start.
    pub warnings: Vec<Diagnostic>,
    /// The files that it was made of.
    pub files: Vec<PathBuf>,
}

impl ServedCatalog {
    /// Makes a catalog without problems.
    const fn new(catalog: &'static Catalog) -> Self {
        Self {
            catalog,
            stale: Vec::new(),
            warnings: Vec::new(),
            files: Vec::new(),
        }
    }
}

/// Runs a command line. `read` is called in the process that uses the catalog: once, and again at each reload.
fn run(cli: &Cli, origin: CatalogOrigin, read: ReadCatalog<'_>) -> ExitCode {
    let output = LogOutput::new(cli.options.log_format);
    // The log is also written out when a panic ends this function.
    let _finish = FlushOnDrop(&output);
    // Subcommands print their findings; the log would repeat them.
    let level = match cli.verb {
        None => cli.options.log_level,
        Some(Verb::Doctor(_)) => LogLevel::Error,
        Some(Verb::Shared(_) | Verb::Logs(_) | Verb::Jobs(_) | Verb::Audit(_)) => LogLevel::Warn,
    };
    output.install(level.into());
    let allowed = match cli.is_stdio() {
        true => StaleSources::LeftOut,
        false => StaleSources::Refused,
    };
    let reread = read;
    let read = || usable(read(allowed).map_err(Failure::Diagnostics)?);
    let outcome = if let Some(Verb::Shared(verb)) = &cli.verb {
        shared_verb::run(verb, &Program::Broker, &output)
    } else if let Some(Verb::Logs(args)) = &cli.verb {
        in_runtime(&output, logs::run(args, &output))
    } else if let Some(Verb::Jobs(verb)) = &cli.verb {
        in_runtime(&output, jobs_verb::run(verb, &output))
    } else if let Some(Verb::Audit(verb)) = &cli.verb {
        audit::run(verb, &output, &|| read().ok().map(|read| read.catalog))
    } else if cli.version || cli.options.dump_tree.is_some() {
        // Starts no source, and so needs no guard.
        read().and_then(|read| tree::print(&printed(read.catalog, cli)))
    } else {
        match guard::enter(input(cli)) {
            Ok(ProcessRole::Guard(code)) => return ExitCode::from(code),
            Ok(ProcessRole::Broker(signals, reload_signals)) => {
                let signal_receivers = SignalReceivers {
                    signals,
                    reload_signals,
                };
                let made = read().and_then(|read| startup(read, (origin, reread), cli, &output));
                in_runtime(&output, start(made, cli, &output, signal_receivers))
            }
            Err(error) => Err(Failure::Internal(format!(
                "cannot install signal handlers: {error}"
            ))),
        }
    };
    end(outcome, &output)
}

/// Runs a verb of the command line of `broker-gen` that a broker has as well.
pub fn run_shared(verb: &SharedVerb, program: &Program) -> ExitCode {
    let output = LogOutput::new(logging::Format::Human);
    let _finish = FlushOnDrop(&output);
    output.install(LogLevel::Warn.into());
    end(shared_verb::run(verb, program, &output), &output)
}

/// Reports a failure, and returns the exit code.
fn end(outcome: Result<Exit, Failure>, output: &LogOutput) -> ExitCode {
    let exit = outcome.unwrap_or_else(|failure| {
        failure.report(output);
        failure.exit()
    });
    guard::await_end_without_guard();
    exit.into()
}

fn input(cli: &Cli) -> Input {
    if cli.is_stdio() {
        Input::Standard
    } else {
        Input::None
    }
}

/// The text that a command line asks for in place of a start.
fn printed(catalog: &Catalog, cli: &Cli) -> Text {
    match cli.options.dump_tree {
        Some(form) if !cli.version => tree::render(catalog, form),
        _ => tree::version(catalog),
    }
}

/// A catalog that this library can read.
fn usable(read: ServedCatalog) -> Result<ServedCatalog, Failure> {
    match read.catalog.format {
        catalog::FORMAT => Ok(read),
        found => Err(Failure::Catalog { found }),
    }
}

/// Writes out the log when it is dropped.
struct FlushOnDrop<'a>(&'a LogOutput);

impl Drop for FlushOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Called after the guard was started, since threads start here, first the thread of the log.
fn in_runtime(
    output: &LogOutput,
    work: impl Future<Output = Result<Exit, Failure>>,
) -> Result<Exit, Failure> {
    output.start().map_err(|error| {
        Failure::Internal(format!("cannot start the thread of the log: {error}"))
    })?;
    let runtime = runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Internal(format!("cannot start the runtime: {error}")))?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_timeout(match &outcome {
        Ok(Exit::Interrupted) => Duration::ZERO,
        _ => RUNTIME_SHUTDOWN_TIMEOUT,
    });
    outcome
}

/// The inputs of a start with this catalog.
fn startup<'a>(
    read: ServedCatalog,
    (origin, reread): (CatalogOrigin, ReadCatalog<'a>),
    cli: &'a Cli,
    output: &'a LogOutput,
) -> Result<Startup<'a>, Failure> {
    read.warnings.iter().for_each(warn);
    Ok(Startup {
        catalog: Cell::new(read.catalog),
        files: read.files,
        reread,
        partial: PartialStart {
            allows_missing_variables: cli.is_stdio() || origin == CatalogOrigin::Lock,
            doctor: cli.is_stdio().then(|| doctor_command(cli, origin)),
            stale: read.stale,
        },
        origin,
        cli,
        // Other starts do not use them.
        mcp: if cli.verb.is_none() && !cli.is_stdio() {
            McpVariables::read()?
        } else {
            McpVariables::default()
        },
        view: if cli.verb.is_none() {
            ViewVariables::read(|name| std::env::var(name).ok())?
        } else {
            ViewVariables::default()
        },
        openness: OnceCell::new(),
        list_changed_exec: OnceLock::new(),
        observers: OnceLock::new(),
        jobs: OnceLock::new(),
        environment: Environment::capture(),
        output,
    })
}

/// The command that examines the sources of this broker.
fn doctor_command(cli: &Cli, origin: CatalogOrigin) -> String {
    let (program, option) = match origin {
        CatalogOrigin::Compiled => ("mcp-broker doctor", ""),
        CatalogOrigin::Lock => ("broker-gen doctor", "--config "),
    };
    match &cli.config {
        Some(config) => format!(
            "{program} {option}{}",
            shell_word(&config.to_string_lossy())
        ),
        None => program.to_owned(),
    }
}

async fn start(
    made: Result<Startup<'_>, Failure>,
    cli: &Cli,
    output: &LogOutput,
    signal_receivers: SignalReceivers,
) -> Result<Exit, Failure> {
    reload::check(cli)?;
    if cli.is_stdio() {
        stdio::check(cli)?;
    }
    let startup = match made {
        Ok(startup) => startup,
        Err(failure) if cli.is_stdio() => {
            return stdio::explain(failure, output, signal_receivers).await;
        }
        Err(failure) => return Err(failure),
    };
    if let Some(Verb::Doctor(args)) = &cli.verb {
        let signals = signal_receivers.signals;
        return doctor::run(startup.catalog.get(), args, startup.output, signals).await;
    }
    startup.announce();
    if cli.is_stdio() {
        stdio::start(startup, signal_receivers).await
    } else {
        http::start(startup, signal_receivers).await
    }
}

/// Logs a warning in one line.
fn warn(diagnostic: &Diagnostic) {
    tracing::warn!(
        code = diagnostic.code.as_str(),
        file = diagnostic.file,
        pointer = diagnostic.pointer,
        "{}; {}",
        diagnostic.message,
        diagnostic.remedy()
    );
}
