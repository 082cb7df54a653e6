//! The command line: verbs over the plan, and the only part that launches servers.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use broker_model::exit::Exit;
use broker_process::guard::{Deadline, fail_large_writes};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

mod accept;
mod audits;
mod baseline;
mod between;
mod check;
mod diff;
mod generate;
mod input;
mod lint;
mod live;
mod lock;
mod machine;
mod new;
mod output;
mod partial;
mod program;
mod progress;
mod provenance;
mod report;
mod review;
mod rules;
mod schema;
mod schemas;
mod survey;
mod tree;
mod verify;
mod whole_file;

/// Locks the tools of MCP servers, compares servers with the lock, and compiles it into a broker.
///
/// A first run: broker-gen new my-broker --from mcp.json, then broker-gen lock --config config.json
/// in the new folder, review and commit the lock, cargo build --release.
#[derive(Debug, Parser)]
#[command(
    name = "broker-gen",
    version,
    propagate_version = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Launch the sources, snapshot the tools that pass the filters, write the lock.
    ///
    /// Each source is launched twice, and one whose two answers differ is refused. The lock is written
    /// only if its bytes change. Review it and commit it: what it says is what a model will read.
    #[command(
        after_help = "Examples:\n  broker-gen lock --config smoke_config.json\n  broker-gen lock --source /repo      only this source anew, the others as they are\n  broker-gen lock --source /repo --tool get_file --dry-run      what taking this tool alone would change"
    )]
    Lock(LockArgs),
    /// Compare the live sources with the lock. Never writes.
    ///
    /// Exits with 0 where a plain start would serve, 3 on drift, 4 where a source could not be
    /// checked, 5 where the lock is missing, damaged or stale.
    #[command(
        after_help = "Examples:\n  broker-gen check\n  broker-gen check --format github --output sarif=drift.sarif --fail-on breaking"
    )]
    Check(CheckArgs),
    /// Tell what changed between two locks, in the report of `check`. Launches nothing.
    ///
    /// Exits with 0 where every call of the old lock is served under the new one as it was reviewed,
    /// 3 where something differs, 5 where a lock is missing or damaged. New tools alone are 0.
    #[command(
        after_help = "Examples:\n  broker-gen diff old.lock.json smoke_config.lock.json\n  broker-gen diff --baseline git:HEAD                 the lock beside the config against what git has"
    )]
    Diff(diff::DiffArgs),
    /// Look for texts that are not innocent in the lock. Launches nothing.
    ///
    /// Exits with 6 on errors: what a model reads and a reviewer does not see. Warnings are places to
    /// read with care; with `--strict` they are errors. `lock` does the same before it writes.
    #[command(
        after_help = "Examples:\n  broker-gen lint\n  broker-gen lint --strict --format json"
    )]
    Lint(lint::LintArgs),
    /// Write the files that the build compiles in, to look at or to commit. Launches nothing.
    ///
    /// With `--check` nothing is written, and the exit is 5 where a file is missing or differs.
    #[command(
        after_help = "Examples:\n  broker-gen generate --out generated\n  broker-gen generate --out generated --check"
    )]
    Generate(generate::GenerateArgs),
    /// Print the tree that callers will see, by config and lock. Launches nothing.
    #[command(after_help = "Example:\n  broker-gen tree --hidden")]
    Tree(tree::TreeArgs),
    /// Hold config, lock, audits and, if named, a built broker against each other. Launches nothing.
    ///
    /// Exits with 0 where all of it fits, 5 where the lock is missing, damaged or stale, where the
    /// broker has another catalog, or where the config has `audits_required` and a tool has no valid
    /// audit; 2 where config or audits are wrong, 4 where there was nothing to verify.
    #[command(
        after_help = "Examples:\n  broker-gen verify --offline\n  broker-gen verify --binary target/release/my-broker"
    )]
    Verify(verify::VerifyArgs),
    /// Walk through what nobody signed yet, in a terminal: shows each change, and asks.
    ///
    /// The worst drift comes first. Each acceptance is written to `<config stem>.audits.toml` at once.
    #[command(
        after_help = "Examples:\n  broker-gen review\n  broker-gen review --baseline git:origin/main"
    )]
    Review(review::ReviewArgs),
    /// Sign locked tools without being shown them: adds audits for their digests.
    ///
    /// Writes `<config stem>.audits.toml`, only ever at its end; commit it. With `--rule`, a finding
    /// of the lint is suppressed instead.
    #[command(
        after_help = "Examples:\n  broker-gen accept --source /repo --tool get_file --looked-at description,inputSchema\n  broker-gen accept --all --who 'A. Reviewer <a@example.org>' --notes 'read in full'"
    )]
    Accept(accept::AcceptArgs),
    /// Print the JSON Schema of the config, the lock or the report.
    ///
    /// An editor that knows it completes and checks a config: name it as `$schema`.
    #[command(after_help = "Example:\n  broker-gen schema config > config.schema.json")]
    Schema(schema::SchemaArgs),
    /// Make a crate that builds a broker around a config of your own. Runs and downloads nothing.
    ///
    /// It gets ten lines of Rust, a config, a CI workflow, a Dockerfile, a systemd unit and a README
    /// that says what to do next. No file is ever overwritten.
    #[command(
        after_help = "Examples:\n  broker-gen new my-broker\n  broker-gen new my-broker --from ~/.cursor/mcp.json\n  broker-gen new my-broker --broker ../mcp-broker"
    )]
    New(new::NewArgs),
    /// List the rules that a report can name, or explain one. Launches nothing.
    #[command(
        after_help = "Examples:\n  broker-gen rules\n  broker-gen rules input-required-added"
    )]
    Rules(rules::RulesArgs),
    /// Print completions for a shell.
    #[command(
        after_help = "Examples:\n  source <(broker-gen completions bash)\n  broker-gen completions fish > ~/.config/fish/completions/broker-gen.fish"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
struct ConfigFile {
    /// The config; its lock is `<stem>.lock.json` beside it.
    #[arg(
        long,
        value_name = "FILE",
        env = "MCP_BROKER_CONFIG",
        default_value = "smoke_config.json"
    )]
    config: PathBuf,
}

#[derive(Debug, Args)]
struct ConfigArgs {
    #[command(flatten)]
    file: ConfigFile,
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
    /// Do not write: say what would change.
    #[arg(long, conflicts_with = "check")]
    dry_run: bool,
    /// With one `--source`: take only this tool's new form, the rest of the source as it is locked;
    /// repeatable.
    #[arg(
        long = "tool",
        value_name = "NAME",
        requires = "sources",
        conflicts_with = "check"
    )]
    tools: Vec<String>,
    /// Refuse what would only be warned of: a package that is not pinned, a warning of the lint.
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    report: report::ReportArgs,
}

/// How a verb prints what it has to say, where it is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Human,
    /// One JSON value.
    Json,
}

/// Runs the program with this process's arguments.
pub fn main() -> ExitCode {
    output::settle(run(std::env::args_os())).into()
}

fn run(args: impl IntoIterator<Item = OsString>) -> Exit {
    // A write to a file that has reached the size limit gives an error instead of a signal.
    if let Err(error) = fail_large_writes() {
        return output::failure(&format!("signals cannot be blocked: {error}"));
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    match cli.verb {
        // A machine never writes over what people reviewed.
        Verb::Lock(args)
            if args.check
                || (is_ci() && !args.dry_run && input::lock_exists(&args.config.file.config)) =>
        {
            let report = report::ReportArgs::strictly(args.strict);
            launching(check::run(&args.config, &report))
        }
        Verb::Lock(args) => launching(lock::run(&args)),
        Verb::Check(args) => launching(check::run(&args.config, &args.report)),
        Verb::Diff(args) => diff::run(&args),
        Verb::Lint(args) => lint::run(&args),
        Verb::Generate(args) => generate::run(&args),
        Verb::Tree(args) => tree::run(&args),
        Verb::Verify(args) => verify::run(&args),
        Verb::Review(args) => review::run(&args),
        Verb::Accept(args) => accept::run(&args),
        Verb::Schema(args) => schema::run(&args),
        Verb::New(args) => new::run(&args),
        Verb::Rules(args) => rules::run(&args),
        Verb::Completions { shell } => {
            output::completions(shell, &mut Cli::command());
            Exit::Ok
        }
    }
}

/// How long interrupted servers have to end.
const LAST_WAIT: Duration = Duration::from_secs(10);
/// How long the last words may take to be read.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(1);
/// The most that passes between an interrupt and the end, also where what the verb says is not read.
const END_TIMEOUT: Duration = Duration::from_secs(13);

/// Runs a verb that launches sources.
fn launching(verb: impl Future<Output = Exit>) -> Exit {
    match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => {
            let exit = runtime.block_on(until_interrupted(verb));
            runtime.shutdown_timeout(LAST_WORDS_TIMEOUT);
            exit
        }
        Err(error) => output::failure(&format!("the runtime cannot be started: {error}")),
    }
}

/// Runs the verb; SIGINT and SIGTERM end it, and every process that it started.
async fn until_interrupted(verb: impl Future<Output = Exit>) -> Exit {
    let (mut interrupt, mut terminate) = match (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) {
        (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
        (Err(error), _) | (_, Err(error)) => {
            return output::failure(&format!("signals cannot be heard: {error}"));
        }
    };
    let deadline = match Deadline::new() {
        Ok(deadline) => deadline,
        Err(error) => return output::failure(&format!("a thread cannot be started: {error}")),
    };
    // A task of its own: the verb may wait for its standard error to be read.
    let interrupted = tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        deadline.end_within(END_TIMEOUT, Exit::Interrupted);
    });
    tokio::select! {
        exit = verb => return exit,
        _ = interrupted => {}
    }
    // The verb is dropped by now, and nobody holds its processes any more.
    say_aside("interrupted: nothing was written, ending what was started");
    if tokio::time::timeout(LAST_WAIT, broker_process::all_ended())
        .await
        .is_err()
    {
        say_aside("some of it is still there");
    }
    Exit::Interrupted
}

/// Writes the line to standard error on another thread, so that the caller does not wait for a reader.
fn say_aside(line: &'static str) {
    drop(tokio::task::spawn_blocking(move || output::say(line)));
}

/// Whether this is a machine that must not write: `CI=true` or `MCP_BROKER_LOCKED=1`.
fn is_ci() -> bool {
    let is = |name: &str, values: &[&str]| {
        std::env::var(name).is_ok_and(|value| values.contains(&value.as_str()))
    };
    is("CI", &["true", "1"]) || is("MCP_BROKER_LOCKED", &["true", "1"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_well_formed_and_every_verb_has_an_example() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        for verb in command.get_subcommands_mut() {
            let name = verb.get_name().to_owned();
            let help = verb.render_long_help().to_string();
            assert!(help.contains(&format!("broker-gen {name} ")), "{help}");
        }
    }
}
