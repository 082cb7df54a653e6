//! Completions and man pages of both programs, generated from the definitions of their command lines. The
//! broker has neither, so that its binary stays small.

use std::fs;
use std::path::{Path, PathBuf};

use broker_model::exit::Exit;
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_review::whole_file::write_whole;
use clap::{Args, Command};

use super::output::{self, say};

/// The name of this program.
const OWN: &str = "broker-gen";

#[derive(Debug, Args)]
pub(super) struct ProgramArgs {
    /// The program: `broker-gen`, or the name of a broker, such as `mcp-broker`.
    #[arg(long, value_name = "NAME", default_value = OWN, value_parser = program_name)]
    program: String,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell.
    shell: clap_complete::Shell,
    #[command(flatten)]
    program: ProgramArgs,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    #[command(flatten)]
    program: ProgramArgs,
    /// Write the page of the program and one for each verb to this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl ProgramArgs {
    /// The command line of the program. Every program but this one is a broker.
    fn command(&self, own: Command) -> Command {
        if self.program == OWN {
            return own;
        }
        // Names of clap are literals; this one lives as long as the process.
        let name: &'static str = self.program.clone().leak();
        mcp_broker::command().name(name).bin_name(name)
    }
}

/// Prints completions.
pub(super) fn completions(args: &CompletionsArgs, own: Command) -> Exit {
    let mut command = args.program.command(own);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, &args.program.program, &mut script);
    output::bytes(&script);
    Exit::Ok
}

/// Prints or writes man pages.
pub(super) fn man(args: &ManArgs, own: Command) -> Exit {
    let mut command = args.program.command(own);
    command.build();
    let Some(folder) = &args.out else {
        return match page(&command) {
            Ok(page) => {
                output::bytes(page.as_bytes());
                Exit::Ok
            }
            Err(error) => output::failure(&error.to_string()),
        };
    };
    match write_pages(&command, folder) {
        Ok(count) => {
            say(text!("wrote {} man pages to {}", count, folder.display()));
            Exit::Ok
        }
        Err(problem) => output::diagnostics(&[*problem]),
    }
}

/// Writes the page of a command and the pages of its verbs; returns their number.
fn write_pages(command: &Command, folder: &Path) -> Result<usize, Box<Diagnostic>> {
    let refused = |path: &Path, error: std::io::Error| {
        let message = format!("`{}` cannot be written: {error}", path.display());
        Box::new(Diagnostic::error(DiagnosticCode::FileWrite, message))
    };
    fs::create_dir_all(folder).map_err(|error| refused(folder, error))?;
    let verbs = command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    let mut count = 0;
    for command in std::iter::once(command).chain(verbs) {
        let name = clap_mangen::Man::new(command.clone()).get_filename();
        let path = folder.join(name);
        page(command)
            .and_then(|page| write_whole(&path, page.as_bytes()))
            .map_err(|error| refused(&path, error))?;
        count += 1;
    }
    Ok(count)
}

fn page(command: &Command) -> std::io::Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    String::from_utf8(page).map_err(std::io::Error::other)
}

/// A name that no shell reads as anything else.
fn program_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_plain)
        && text.len() <= 64
    {
        Ok(text.to_owned())
    } else {
        Err("a name of letters, digits, `-` and `_` is expected".to_owned())
    }
}
