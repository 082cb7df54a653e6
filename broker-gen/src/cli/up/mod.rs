//! `up`: from the file of a client to a connected client. Imports the file, locks its servers after a question, and prints
//! or writes the entry of the client.

use std::path::{Path, PathBuf};

use broker_build::lock_file;
use broker_config::client_file::{Client, paths_of};
use broker_model::exit::Exit;
use broker_model::text::{counted, shell_word};
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_review::lock_file::read_lock;
use clap::Args;
use mcp_broker::ClientEntry;

use super::import::{self, Imported};
use super::lock::args::{LockArgs, MergeArgs};
use super::output::{self, say};
use super::{ConfigArgs, ConfigFile, lock, tree, unattended};

mod command_lines;
mod find;
mod question;

use find::Chosen;

#[derive(Debug, Args)]
pub(super) struct UpArgs {
    /// The file of a client. Default: the one file of your clients that has servers. The file of a project, such as
    /// `.mcp.json`, is used only if it is named.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The client that wrote the file, if its name and its content do not say so.
    #[arg(long, value_name = "CLIENT", value_parser = import::client_parser())]
    from: Option<Client>,
    /// The config to write, which must not exist; its lock is beside it.
    #[arg(short, long, value_name = "CONFIG", default_value = "config.json")]
    output: PathBuf,
    /// Ask nothing: start the servers of FILE, and print the entry unless `--write` is given.
    #[arg(long, requires = "file")]
    yes: bool,
    /// Write the entry of the broker into FILE. `broker-gen connect CLIENT --file FILE --undo` takes it back.
    #[arg(long)]
    write: bool,
    /// With `--write`: take the servers that are locked out of FILE, since the broker serves them now.
    #[arg(long, requires = "write")]
    replace: bool,
}

/// Runs it.
pub(super) async fn run(args: &UpArgs) -> Exit {
    match up(args).await {
        Ok(exit) => exit,
        Err(problems) => output::diagnostics(&problems),
    }
}

async fn up(args: &UpArgs) -> Result<Exit, Vec<Diagnostic>> {
    unattended::refuse("up")?;
    let config = &args.output;
    for path in [config.clone(), lock_file(config)] {
        if path.symlink_metadata().is_ok() {
            return Err(vec![import::file_exists(&path)]);
        }
    }
    let is_asked = !args.yes;
    if is_asked && !output::is_conversation() {
        return Err(vec![no_terminal()]);
    }
    let chosen = find::choose(args.file.as_deref(), args.from).await?;
    show(&chosen)?;
    let count = counted(chosen.imported.servers.len(), "server");
    if is_asked && !question::confirm(&text!("Start {} to list the tools?", count)).await? {
        say("nothing was started or written");
        return Ok(Exit::Ok);
    }
    let written = WrittenConfig::write(config, &chosen.imported.config)?;
    let exit = lock::run(&lock_args(config, &chosen.imported), None).await;
    // Without a lock, the next `up` finds the place as this one did.
    if lock_file(config).symlink_metadata().is_err() {
        return Ok(exit);
    }
    written.keep();
    say(text!("wrote {}", config.display()));
    say(tree::plain_tree(config)?);
    let connected = connect(args, &chosen, is_asked).await?;
    Ok(exit.or(connected))
}

/// A terminal is missing, and no option says what to do.
fn no_terminal() -> Diagnostic {
    let message =
        "`up` asks before it starts a server, and standard input and output are not a terminal";
    let help = "name the file and `--yes`: `broker-gen up FILE --yes`";
    Diagnostic::error(DiagnosticCode::TerminalNeeded, message).help(help)
}

/// Prints the servers that would be started, and the parts of the file that are left out.
fn show(chosen: &Chosen) -> Result<(), Vec<Diagnostic>> {
    let imported = &chosen.imported;
    let (file, count) = (
        chosen.file.display(),
        counted(imported.servers.len(), "server"),
    );
    say(match chosen.title {
        Some(title) => text!("{} is a file of {}, with {}:", file, title, count),
        None => text!("{} has {}:", file, count),
    });
    for line in command_lines::lines(&imported.config)? {
        say(line);
    }
    imported.notes.iter().for_each(|note| say(note.clone()));
    output::diagnostics(&imported.warnings);
    let values: Vec<&str> = imported
        .values
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    if !values.is_empty() {
        say(text!(
            "secrets stay in the file, and the config has variables for them: {}",
            values.join(", ")
        ));
    }
    Ok(())
}

/// The arguments of `lock` for the new config, with the values that it has variables for.
fn lock_args(config: &Path, imported: &Imported) -> LockArgs {
    LockArgs {
        config: ConfigArgs {
            file: ConfigFile {
                config: config.to_owned(),
            },
            sources: Vec::new(),
            variables: imported.values.clone(),
        },
        once: false,
        check: false,
        dry_run: false,
        tools: Vec::new(),
        strict: false,
        merge: MergeArgs {
            merge: None,
            ours: Vec::new(),
            theirs: Vec::new(),
            merge_driver: None,
        },
        all_or_nothing: false,
        pin: false,
        write_client_file: false,
    }
}

/// Prints the entry for the client, or writes it into the file.
async fn connect(args: &UpArgs, chosen: &Chosen, is_asked: bool) -> Result<Exit, Vec<Diagnostic>> {
    let file = std::path::absolute(&chosen.file).unwrap_or_else(|_| chosen.file.clone());
    let moved = match args.replace {
        true => Some(locked_servers(&args.output, &chosen.imported.servers)?),
        false => None,
    };
    let entry = ClientEntry {
        client: &chosen.client,
        config: &args.output,
        file: &file,
        variables: &chosen.imported.values,
        moved: moved.as_deref(),
    };
    let question = text!("Write the entry of the broker into {}?", file.display());
    let writes = args.write || (is_asked && question::confirm(&question).await?);
    let connected = match writes {
        true => entry.write(),
        false => entry.print(),
    };
    match connected {
        Ok(connected) => {
            if let Some(entry) = &connected.entry {
                output::document(entry);
                say_variables(&chosen.imported, true);
            } else {
                say_variables(&chosen.imported, false);
            }
            say(connected.note);
            if writes {
                say(text!(
                    "to take it back: broker-gen connect {} --file {} --undo",
                    chosen.client,
                    shell_word(&file.to_string_lossy())
                ));
            }
            Ok(Exit::Ok)
        }
        Err(message) => Ok(output::failure(&message)),
    }
}

/// Prints the variables that have to be set where the client starts. The entry that was written has the values of the file.
fn say_variables(imported: &Imported, with_values: bool) {
    let has_value = |name: &str| imported.values.iter().any(|(known, _)| known == name);
    let to_set = imported.variables.iter();
    let to_set: Vec<_> = to_set
        .filter(|(name, _)| with_values || !has_value(name))
        .collect();
    if to_set.is_empty() {
        return;
    }
    say(text!("set these variables where the client starts:"));
    for (name, meaning) in to_set {
        say(text!("  {}  {}", name, meaning));
    }
}

/// Returns the servers of the file that the lock has.
fn locked_servers(config: &Path, servers: &[String]) -> Result<Vec<String>, Vec<Diagnostic>> {
    let lock = read_lock(&lock_file(config))?.lock;
    let names: Vec<&str> = servers.iter().map(String::as_str).collect();
    let paths = paths_of(&names);
    let locked = servers.iter().zip(paths);
    let locked = locked.filter(|(_, path)| lock.source(path.as_str()).is_some());
    Ok(locked.map(|(name, _)| name.clone()).collect())
}

/// A config that was written. It is removed when dropped, unless it is kept: an interrupted run leaves no file.
struct WrittenConfig<'p> {
    path: &'p Path,
    is_kept: bool,
}

impl<'p> WrittenConfig<'p> {
    fn write(path: &'p Path, text: &str) -> Result<Self, Vec<Diagnostic>> {
        import::write(path, text)?;
        Ok(Self {
            path,
            is_kept: false,
        })
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for WrittenConfig<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            // A config that stays does no harm; the next run names it.
            drop(std::fs::remove_file(self.path));
        }
    }
}
