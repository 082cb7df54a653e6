//! `new`: creates a crate around a config. It only writes new files: it runs no program except `git init`, opens no
//! socket and overwrites no file.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use broker_model::exit::Exit;
use broker_model::text::shell_word;
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_process::program;
use clap::Args;

use super::output::{self, say};
use super::unattended;

mod files;
#[cfg(test)]
#[path = "../../../origin.rs"]
mod origin;
#[cfg(test)]
mod origin_tests;
mod spec;
mod starting;

use spec::Spec;
use starting::Starting;

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The folder of the crate; its name becomes that of the crate and of the binary.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The initial config, also an `mcpServers` file of another client. Literal secrets in it become
    /// variables. Without it: a small one with `toolbox-mcp`.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// The source of `mcp-broker`: a git URL (`#REV` pins it), a folder, or a version. Without it: the
    /// repository and revision from which this program was built.
    #[arg(long, value_name = "SPEC")]
    broker: Option<String>,
    /// Do not run `git init` in the new folder. Inside a work tree of git it is never run.
    #[arg(long)]
    no_git: bool,
}

pub(super) fn run(args: &NewArgs) -> Exit {
    match make(args) {
        Ok(()) => Exit::Ok,
        Err(problems) => output::diagnostics(&problems),
    }
}

fn make(args: &NewArgs) -> Result<(), Vec<Diagnostic>> {
    unattended::refuse("new")?;
    let name = spec::package_name(&args.folder).map_err(|problem| vec![*problem])?;
    let spec = match &args.broker {
        Some(text) => Spec::parse(text, &args.folder),
        None => Spec::built_from(),
    };
    let spec = spec.map_err(|problem| vec![*problem])?;
    let starting = match &args.from {
        Some(file) => Starting::from_file(file)?,
        None => Starting::small(),
    };
    output::diagnostics(&starting.warnings);
    let files = files::render(&name, &spec, &starting);
    let taken: Vec<_> = files
        .iter()
        .map(|(file, _)| args.folder.join(file))
        // A dangling link counts as existing.
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| {
            let message = format!("`{}` already exists; nothing was written", path.display());
            Diagnostic::error(DiagnosticCode::FileExists, message)
        })
        .collect();
    if !taken.is_empty() {
        return Err(taken);
    }
    let mut made = Vec::new();
    for (file, text) in &files {
        let path = args.folder.join(file);
        write(&path, text, &mut made).map_err(|error| {
            // This run created all of them. One that cannot be removed is reported by the next run.
            made.iter().for_each(|file| drop(fs::remove_file(file)));
            let message = format!("`{}` cannot be written: {error}", path.display());
            vec![Diagnostic::error(DiagnosticCode::FileWrite, message)]
        })?;
    }
    let folder = args.folder.display();
    say(text!(
        "created the crate `{}` in {}, with {}",
        name,
        folder,
        spec.shown()
    ));
    if let Spec::Path(path) = &spec {
        say(text!(
            "the crate builds only beside the folder {}; so Dockerfile and workflow fail elsewhere: for them, name a git URL with `--broker`",
            path
        ));
    }
    if !args.no_git && !is_in_work_tree(&args.folder) {
        init_repository(&args.folder);
    }
    for (variable, what) in &starting.replaced {
        say(text!(
            "{} is not copied: set `{}` in the environment",
            what,
            variable
        ));
    }
    say(text!(
        "next: cd {}, then follow README.md: broker-gen lock --config config.json, review, commit, cargo build --release",
        shell_word(&args.folder.to_string_lossy())
    ));
    Ok(())
}

/// Whether a folder is in a work tree of git, by the folders above it.
fn is_in_work_tree(folder: &Path) -> bool {
    let absolute = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    absolute
        .ancestors()
        .any(|folder| folder.join(".git").symlink_metadata().is_ok())
}

/// Runs `git init`. The crate is complete without it, so a failure is a note.
fn init_repository(folder: &Path) {
    // `GIT_DIR` of the caller names another repository.
    match program::git(&["--git-dir=.git", "init", "--quiet"], folder) {
        Ok(_) => say(text!("made a git repository in it")),
        Err(error) => say(text!(
            "note: it is not a git repository ({}); run `git init` in it",
            error
        )),
    }
}

/// Writes a file that must not exist yet, and adds it to the list of created files.
fn write(path: &Path, text: &str, made: &mut Vec<PathBuf>) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // git runs a hook only if it is executable.
    let mode = if path
        .parent()
        .is_some_and(|folder| folder.ends_with(".githooks"))
    {
        0o777
    } else {
        0o666
    };
    let mut file = fs::File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    made.push(path.to_owned());
    file.write_all(text.as_bytes())
}
