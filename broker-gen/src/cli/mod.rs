//! The command line: one verb per file, and the only part that launches servers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use broker_build::default_config::{CONFIG_VARIABLE, default_config};
use broker_model::exit::Exit;
use broker_model::redact::Secret;
use broker_model::terminal::Text;
use broker_model::text;
use broker_process::guard::{await_end_without_guard, fail_large_writes};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use interrupts::{Interrupts, UnderGuard, launching};
use lock::args::{LockArgs, MergeArgs};
use mcp_broker::{Program, SharedVerb};

// The verbs, one file or folder for each; `usage` has `completions` and `man`.
mod accept;
mod access;
mod check;
mod diff;
mod doctor;
mod generate;
mod hints;
mod import;
mod lint;
mod lock;
mod new;
mod pack;
mod page;
mod review;
mod rules;
mod schema;
mod search;
mod serve;
mod tree;
mod up;
mod usage;
mod vectors;
mod verify;

// The parts that verbs share.
mod help;
mod input;
mod interrupts;
mod launch;
mod output;
mod report;
mod schemas;
mod type_notes;
mod unattended;
mod working;

/// Locks the tools of MCP servers, compares servers with the lock, and compiles the lock into a broker.
///
/// First run: broker-gen new my-broker --from mcp.json, then in the new folder broker-gen lock --config
/// config.json, review and commit the lock, cargo build --release.
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
    /// Connect a client to a broker with the servers of its file: import, lock and connect in one step.
    ///
    /// Finds the files of your clients, or takes FILE. Shows each server with its command, and asks before it starts one.
    /// Writes a config without secrets and its lock, shows the tools, and prints the entry for the client or writes it.
    /// Exits with the code of `lock`; with 8 if a part is left out.
    #[command(
        after_help = "Examples:\n  broker-gen up\n  broker-gen up ~/.cursor/mcp.json --write --replace\n  broker-gen up .mcp.json --yes --output broker.json"
    )]
    Up(up::UpArgs),
    /// Launch the sources, snapshot the tools that filters and trust levels expose, write the lock.
    ///
    /// Each source is launched twice. The lock is written for what is sound; the rest is left out, and shown with
    /// what settles it: then the exit code is 8, and `verify` and the build fail until each part is settled or
    /// accepted. The lock is written only if its bytes change. Review and commit it: models read its texts.
    #[command(
        after_help = "Examples:\n  broker-gen lock --config smoke_config.json\n  broker-gen lock --source /repo      only this source, the others as they are locked\n  broker-gen lock --source /repo --tool get_file --dry-run      the changes if only this tool is updated\n  broker-gen lock --merge      after a conflict in git, once the config is settled"
    )]
    Lock(LockArgs),
    /// Compare the live sources with the lock. Never writes.
    ///
    /// Exits with 0 if a plain start would serve, 3 on drift, 4 if a source could not be checked, 5 if the
    /// lock is missing, damaged or stale.
    #[command(
        after_help = "Examples:\n  broker-gen check\n  broker-gen check --format github --output sarif=drift.sarif"
    )]
    Check(CheckArgs),
    /// Run the lock without compiling it, for clients on this machine.
    ///
    /// Serves like the compiled broker, over HTTP on a loopback address or over stdio, and compares the
    /// sources with the lock in the same way. The lock is read once, at the start; a process that can write
    /// it decides which tools are served, so deploy a compiled broker. Exits with the codes of the broker,
    /// and with 5 if the lock is missing, damaged or stale.
    #[command(
        after_help = "Examples:\n  broker-gen serve\n  broker-gen serve 8200 --config config.json\n  broker-gen serve stdio --config /home/me/config.json      for the client that starts it"
    )]
    Serve(serve::ServeArgs),
    /// Start every source once and report what is wrong with it, and what fixes it. Never writes.
    ///
    /// Lists the tools and compares them with the lock, if there is one. Calls no tool. Exits with 0 if nothing
    /// needs attention, 1 if something does, 2 if the config is not valid.
    #[command(
        after_help = "Examples:\n  broker-gen doctor --config config.json\n  broker-gen doctor --source /repo --format json"
    )]
    Doctor(doctor::DoctorArgs),
    /// Show the differences between two locks, in the form of a report of `check`.
    ///
    /// Exits with 0 if every call of the old lock is served as reviewed under the new one, 3 on a difference,
    /// 5 if a lock is missing or damaged. New tools alone give 0.
    #[command(
        after_help = "Examples:\n  broker-gen diff old.lock.json smoke_config.lock.json\n  broker-gen diff --baseline git:HEAD                 compares the lock beside the config with that of git"
    )]
    Diff(diff::DiffArgs),
    /// Look for suspicious texts in the lock.
    ///
    /// Exits with 6 on errors: text that a model reads and a reviewer does not see. Warnings are places to
    /// read with care; with `--strict` they are errors. `lock` runs the same checks before it writes.
    #[command(
        after_help = "Examples:\n  broker-gen lint\n  broker-gen lint --strict --format json"
    )]
    Lint(lint::LintArgs),
    /// Write the files that a build would compile in, to read or to commit them.
    ///
    /// With `--check` nothing is written, and the exit is 5 if a file is missing or differs.
    #[command(
        after_help = "Examples:\n  broker-gen generate --out generated\n  broker-gen generate --out generated --check"
    )]
    Generate(generate::GenerateArgs),
    /// Print which groups may call which tools, and where the hints come from that rules read.
    #[command(after_help = "Example:\n  broker-gen access --config config.json --json")]
    Access(access::AccessArgs),
    /// Write the tools that need search hints for a person or a model, or write the answers into the config.
    ///
    /// A hint that was imported is marked as generated. It is not compiled until `broker-gen review` accepts it, or a
    /// person deletes the mark.
    #[command(
        after_help = "Examples:\n  broker-gen hints --export tools.json\n  broker-gen hints --import answers.json"
    )]
    Hints(hints::HintsArgs),
    /// Print the tools that a search of callers finds, best first, and with `--explain` why.
    #[command(
        after_help = "Examples:\n  broker-gen search 'list directory files'\n  broker-gen search 'list directory files' --explain --limit 2"
    )]
    Search(search::SearchArgs),
    /// Make the missing vectors of the tools by the embedder of the config, for the build to compile in.
    ///
    /// `lock` does it as its last step. The embedder `HF` computes on this machine; `OPENAI` sends the texts of the
    /// exposed tools to an endpoint. Vectors of unchanged texts are kept.
    #[command(after_help = "Example:\n  broker-gen vectors --config config.json")]
    Vectors(vectors::VectorsArgs),
    /// Write the lock as one HTML page for the readers of a change: the tree with a search, each tool, what is left out.
    ///
    /// The file needs no network and no other file. Texts of servers stay texts in it, and hidden characters are shown.
    #[command(
        after_help = "Examples:\n  broker-gen page --out lock.html\n  broker-gen page --config config.json --out review/lock.html"
    )]
    Page(page::PageArgs),
    /// Print the tree that callers will see, from config and lock.
    #[command(after_help = "Example:\n  broker-gen tree --hidden")]
    Tree(tree::TreeArgs),
    /// Verify that config, lock, audits and, if named, a built broker match.
    ///
    /// Exits with 0 if all of it matches; 5 if the lock is missing, damaged or stale, if the broker has another
    /// catalog, if the config has `audits_required` and a tool has no valid audit, or if a violation refuses a part of the lock;
    /// 2 if config or audits are invalid; 4 if there was nothing to verify.
    #[command(
        after_help = "Examples:\n  broker-gen verify --offline\n  broker-gen verify --binary target/release/my-broker\n  broker-gen verify --binary my-broker --runtime /usr/bin/mcp-broker\n  broker-gen verify --require-other-author"
    )]
    Verify(verify::VerifyArgs),
    /// Make a broker of config and lock without a compiler: a copy of `mcp-broker` with the catalog at its end.
    ///
    /// The broker serves like the compiled one. It checks the digest of the catalog at each start. Equal inputs give equal
    /// bytes. Refuses the same locks as a build, with the same exit codes.
    #[command(
        after_help = "Examples:\n  broker-gen pack --config config.json -o my-broker\n  broker-gen pack -o my-broker --runtime /usr/bin/mcp-broker"
    )]
    Pack(pack::PackArgs),
    /// Review everything without an audit in a terminal: shows each change, and asks.
    ///
    /// The worst drift comes first. Each acceptance is written to `<config stem>.audits.toml` at once.
    #[command(
        after_help = "Examples:\n  broker-gen review\n  broker-gen review --baseline git:origin/main"
    )]
    Review(review::ReviewArgs),
    /// Add audits for locked tools without showing them.
    ///
    /// Appends to `<config stem>.audits.toml`; commit it. With `--rule`, a finding of the lint is suppressed
    /// instead.
    #[command(
        after_help = "Examples:\n  broker-gen accept --source /repo --tool get_file --looked-at description,inputSchema\n  broker-gen accept --all --who 'A. Reviewer <a@example.org>' --notes 'read in full'\n  broker-gen accept --moved /old /new"
    )]
    Accept(accept::AcceptArgs),
    /// Print the JSON Schema of the config, the lock or the report.
    ///
    /// An editor that has the schema completes and checks a config: name it as `$schema`.
    #[command(after_help = "Example:\n  broker-gen schema config > config.schema.json")]
    Schema(schema::SchemaArgs),
    /// Create a crate that builds a broker with your own config. Starts no program except `git init`, and downloads
    /// nothing.
    ///
    /// The crate has ten lines of Rust, a config, a CI workflow, a Dockerfile, a systemd unit and a README with
    /// the next steps. No file is overwritten.
    #[command(
        after_help = "Examples:\n  broker-gen new my-broker\n  broker-gen new my-broker --from ~/.cursor/mcp.json\n  broker-gen new my-broker --broker https://example.org/mcp-broker#v0.1.0"
    )]
    New(new::NewArgs),
    /// Convert the file of a client (Claude, VS Code, Cursor, Codex and others), the entry of a registry or a bundle into a
    /// config.
    ///
    /// Values in `env`, headers, URLs and arguments that look like secrets become variables: the config has
    /// `${NAME}`, and the variables to set are listed. The values are never written or printed. What has no equal
    /// in a config is listed too. No file is overwritten.
    #[command(
        after_help = "Examples:\n  broker-gen import ~/.cursor/mcp.json\n  broker-gen import ~/.codex/config.toml -o config.json\n  broker-gen import server.json\n  broker-gen import tools.mcpb --unpack tools -o config.json\n  broker-gen import registry:io.example/tools@1.2.0 --registry https://registry.example.org"
    )]
    Import(import::ImportArgs),
    #[command(flatten)]
    Shared(SharedVerb),
    /// List the rules of reports, or explain one.
    #[command(
        after_help = "Examples:\n  broker-gen rules\n  broker-gen rules input-required-added"
    )]
    Rules(rules::RulesArgs),
    /// Print completions for a shell, of this program or of a broker.
    #[command(
        after_help = "Examples:\n  source <(broker-gen completions bash)\n  broker-gen completions fish --program mcp-broker > ~/.config/fish/completions/mcp-broker.fish"
    )]
    Completions(usage::CompletionsArgs),
    /// Print a man page, of this program or of a broker.
    #[command(
        after_help = "Examples:\n  broker-gen man --program mcp-broker > mcp-broker.1\n  broker-gen man --out man1      one page for each verb"
    )]
    Man(usage::ManArgs),
}

impl Verb {
    /// Whether it may start sources, and so runs under a guard.
    const fn starts_sources(&self) -> bool {
        match self {
            // It reads and writes files of git only.
            Self::Lock(args) => args.merge.merge_driver.is_none(),
            Self::Check(_) | Self::Doctor(_) | Self::Up(_) => true,
            // It starts its guard itself.
            Self::Serve(_) => false,
            Self::Diff(_)
            | Self::Lint(_)
            | Self::Generate(_)
            | Self::Access(_)
            | Self::Hints(_)
            | Self::Search(_)
            | Self::Vectors(_)
            | Self::Tree(_)
            | Self::Page(_)
            | Self::Pack(_)
            | Self::Verify(_)
            | Self::Review(_)
            | Self::Accept(_)
            | Self::Schema(_)
            | Self::New(_)
            | Self::Import(_)
            | Self::Shared(_)
            | Self::Rules(_)
            | Self::Completions(_)
            | Self::Man(_) => false,
        }
    }
}

#[derive(Debug, Args)]
struct ConfigFile {
    /// The config; its lock is `<stem>.lock.json` beside it. Default: the file that MCP_BROKER_CONFIG names,
    /// else `config.json`, else `smoke_config.json`.
    #[arg(
        long,
        value_name = "FILE",
        default_value_os_t = default_config(Path::new("")).file,
        // It depends on the working folder.
        hide_default_value = true
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
    /// Values of variables of the config, in place of those of the environment.
    #[arg(skip)]
    variables: Vec<(String, Secret)>,
}

#[derive(Debug, Args)]
struct CheckArgs {
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    report: report::ReportArgs,
}

/// The output format of a verb without a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Human,
    /// One JSON value.
    Json,
}

/// Runs the program with this process's arguments.
pub fn main() -> ExitCode {
    run(std::env::args_os())
}

fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // A write to a file that has reached the size limit gives an error instead of a signal.
    if let Err(error) = fail_large_writes() {
        return output::failure(&format!("signals cannot be blocked: {error}")).into();
    }
    let (cli, default) = match parse(args) {
        Ok(parsed) => parsed,
        Err(error) => return output::settle(output::usage(&error)).into(),
    };
    let interrupts = match cli.verb.starts_sources().then(Interrupts::under_guard) {
        None => Interrupts::Unguarded,
        Some(Ok(UnderGuard::Program(interrupts))) => interrupts,
        Some(Ok(UnderGuard::Guard(code))) => return ExitCode::from(code),
        Some(Err(error)) => {
            return output::failure(&format!("signals cannot be received: {error}")).into();
        }
    };
    // The guard has read the command line as well.
    default.into_iter().for_each(output::say);
    let exit = match cli.verb {
        Verb::Serve(args) => return serve::run(args),
        Verb::Shared(verb) => return run_shared(&verb),
        // Git writes the lock, in CI as well.
        Verb::Lock(LockArgs {
            merge:
                MergeArgs {
                    merge_driver: Some(files),
                    ..
                },
            ..
        }) => lock::merge_driver(&files),
        // A CI run writes no lock, not even a missing one.
        Verb::Lock(args) if args.check || (unattended::is_unattended() && !args.dry_run) => {
            let report = report::ReportArgs::strictly(args.strict);
            let exit = launching(interrupts, check::run(&args.config, &report));
            if !args.check && exit != Exit::Ok {
                unattended::say_reason();
            }
            exit
        }
        Verb::Lock(args) if args.merge.merge.is_some() => lock::merge_sides(&args, interrupts),
        Verb::Lock(args) => launching(interrupts, lock::run(&args, None)),
        Verb::Check(args) => launching(interrupts, check::run(&args.config, &args.report)),
        Verb::Doctor(args) => launching(interrupts, doctor::run(&args)),
        Verb::Up(args) => launching(interrupts, up::run(&args)),
        Verb::Diff(args) => diff::run(&args),
        Verb::Lint(args) => lint::run(&args),
        Verb::Generate(args) => generate::run(&args),
        Verb::Access(args) => access::run(&args),
        Verb::Hints(args) => hints::run(&args),
        Verb::Search(args) => launching(interrupts, search::run(&args)),
        Verb::Vectors(args) => launching(interrupts, vectors::run(&args)),
        Verb::Tree(args) => tree::run(&args),
        Verb::Page(args) => page::run(&args),
        Verb::Verify(args) => verify::run(&args),
        Verb::Pack(args) => pack::run(&args),
        Verb::Review(args) => review::run(&args),
        Verb::Accept(args) => accept::run(&args),
        Verb::Schema(args) => schema::run(&args),
        Verb::New(args) => new::run(&args),
        Verb::Import(args) => launching(interrupts, import::run(&args)),
        Verb::Rules(args) => rules::run(&args),
        Verb::Completions(args) => usage::completions(&args, help::command()),
        Verb::Man(args) => usage::man(&args, help::command()),
    };
    let exit = output::settle(exit);
    await_end_without_guard();
    exit.into()
}

/// Runs a verb that a broker has as well.
fn run_shared(verb: &SharedVerb) -> ExitCode {
    let program = Program::Generator {
        config: default_config(Path::new("")).file,
    };
    mcp_broker::run_shared(verb, &program)
}

/// Reads the command line, and the line that names the config if the command line does not.
fn parse(args: impl IntoIterator<Item = OsString>) -> Result<(Cli, Option<Text>), clap::Error> {
    let matches = help::with_groups(help::command()).try_get_matches_from(args)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    if let (Verb::Diff(args), Some((_, verb))) = (&mut cli.verb, matches.subcommand()) {
        args.names_config = verb.value_source("config") == Some(ValueSource::CommandLine);
    }
    let may_read_default = match &cli.verb {
        // Its log names the config.
        Verb::Serve(_) => false,
        Verb::Diff(args) => args.reads_config(),
        Verb::Lock(args) => args.merge.merge_driver.is_none(),
        _ => true,
    };
    let verb = matches.subcommand().filter(|_| may_read_default);
    let default = verb.and_then(|(_, verb)| default_config_line(verb));
    Ok((cli, default))
}

/// Returns the line that names the config of a verb if the command line does not name it.
fn default_config_line(verb: &ArgMatches) -> Option<Text> {
    let has_config = verb.try_contains_id("config").is_ok();
    let is_default = has_config && verb.value_source("config") == Some(ValueSource::DefaultValue);
    is_default.then(|| {
        let default = default_config(Path::new(""));
        let file = default.file.display();
        if default.is_from_variable {
            text!("config: {}, from {}", file, CONFIG_VARIABLE)
        } else {
            text!("config: {}", file)
        }
    })
}

#[cfg(test)]
mod tests {
    use broker_config::own_broker::FLAGS;
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_option_without_a_value_is_known_to_the_search_for_the_own_broker() {
        let generator = Cli::command();
        let command = generator.find_subcommand("serve").expect("a verb");
        let options = command.get_arguments();
        let options = options.filter(|option| !option.get_action().takes_values());
        for name in options.filter_map(clap::Arg::get_long) {
            let flag = format!("--{name}");
            assert!(FLAGS.contains(&flag.as_str()), "{flag}");
        }
    }

    #[test]
    fn command_line_has_an_example_for_every_verb() {
        let mut command = help::command();
        command.clone().debug_assert();
        for verb in command.get_subcommands_mut() {
            let name = verb.get_name().to_owned();
            let help = verb.render_long_help().to_string();
            assert!(help.contains(&format!("broker-gen {name} ")), "{help}");
        }
    }
}
