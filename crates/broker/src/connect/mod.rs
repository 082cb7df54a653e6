//! `connect`: the entry of the broker for an MCP client, printed or inserted into the client's own file.

use std::env;
use std::path::{Path, PathBuf};

use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::{shell_word, shown_line};

mod args;
mod client;
mod disk;
mod edit;
mod entry;
mod error;
mod file;
mod format;
mod found;
mod jsonc;
mod places;
mod record;
mod toml;
mod value;
mod yaml;

use crate::secret;
pub use args::ConnectArgs;
use client::Client;
use edit::{Edit, Removal};
use entry::{Command, Credential, View};
pub(crate) use error::ConnectError;
use error::usage;
use file::{ClientFile, Undone};
use format::Format;
pub use found::{ClientEntry, Connected, FoundFile, client_files};
use places::{Scope, file_of, working_folder};
use value::EntryValue;

/// The maximum length of the name of an entry.
const MAX_NAME_BYTES: usize = 64;
/// The mark that some editors write before the text of a file.
const BOM: &str = "\u{feff}";

/// The result of `connect`.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The entry, for standard output; nothing if it was written to a file.
    pub(crate) entry: Option<Text>,
    /// One line for people.
    pub(crate) note: Text,
}

/// The program that the client starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A broker with its catalog.
    Broker,
    /// `broker-gen serve`, with this config if the command line names none.
    Generator {
        /// The default config.
        config: PathBuf,
    },
}

/// Makes the entry, and writes it to the file of the client if the arguments say so.
pub(crate) fn run(args: &ConnectArgs, program: &Program) -> Result<Answer, ConnectError> {
    if args.undo {
        let path = place_of(args)?;
        let note = undo(args.client, &path, &open(args, &path)?)?;
        return Ok(Answer { entry: None, note });
    }
    let name = checked_name(&args.name)?;
    let entry = entry_of(args, program)?;
    let file = place_of(args);
    if !args.write {
        return Ok(Answer {
            entry: Some(printed(args.client, name, &entry)),
            note: print_note(args, file.ok().as_deref()),
        });
    }
    let path = file?;
    let note = write(args, name, &entry, &path, &open(args, &path)?)?;
    Ok(Answer { entry: None, note })
}

/// Opens the file of the client.
fn open(args: &ConnectArgs, path: &Path) -> Result<ClientFile, ConnectError> {
    match (args.scope, &args.file) {
        (Some(Scope::Project), None) => ClientFile::open_within(&working_folder()?, path),
        _ => ClientFile::open(path),
    }
}

/// Takes the last write to a file back.
fn undo(client: Client, path: &Path, file: &ClientFile) -> Result<Text, ConnectError> {
    let shown = path.display();
    let mut note = match file.undo()? {
        Undone::Restored => text!("`{}` is as it was before `connect` wrote it", shown),
        Undone::Removed => text!("removed `{}`, which `connect` had made", shown),
    };
    note.push(text!("; {}", client.restart()));
    Ok(note)
}

fn checked_name(name: &str) -> Result<&str, ConnectError> {
    let is_name = (1..=MAX_NAME_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if is_name {
        return Ok(name);
    }
    usage(format!(
        "`--name` takes 1 to {MAX_NAME_BYTES} letters, digits, `_` and `-`"
    ))
}

fn entry_of(args: &ConnectArgs, program: &Program) -> Result<EntryValue, ConnectError> {
    let view = View {
        under: args.under.as_deref(),
        mode: args.mode,
    };
    let Some(url) = &args.http else {
        let path = env::current_exe().map_err(|error| {
            ConnectError::System(format!("cannot find the path of this program: {error}"))
        })?;
        let given = args.config.as_deref();
        let (words, config): (&[&str], _) = match program {
            Program::Broker => (&["stdio"], given),
            Program::Generator { config } => {
                (&["serve", "stdio", "--config"], given.or(Some(config)))
            }
        };
        let config = config.map(absolute).transpose()?;
        let command = Command {
            program: &path,
            words,
            config: config.as_deref(),
            variables: &args.variables,
        };
        return entry::stdio(args.client, &args.name, command, view);
    };
    let variable = entry::checked_variable(&args.secret_env)?;
    let clear;
    let credential = if args.with_secret {
        clear = secret_in(variable)?;
        Credential::Clear(clear.expose())
    } else if args.secret {
        Credential::Variable(variable)
    } else {
        Credential::None
    };
    entry::http(args.client, &args.name, url, credential, view)
}

/// The secret in a variable.
fn secret_in(variable: &str) -> Result<broker_model::redact::Secret, ConnectError> {
    let Ok(text) = env::var(variable) else {
        return usage(format!(
            "the variable `{variable}` is not set to a text; set it to the secret of the broker"
        ));
    };
    secret::check(&text, &format!("the variable `{variable}`"))
        .map_err(|error| ConnectError::Usage(error.to_string()))
}

/// The absolute path of a config, which has to exist.
fn absolute(config: &Path) -> Result<PathBuf, ConnectError> {
    let unusable = |error: std::io::Error| {
        ConnectError::Usage(format!("the config `{}`: {error}", config.display()))
    };
    let path = std::path::absolute(config).map_err(unusable)?;
    let metadata = std::fs::metadata(&path).map_err(unusable)?;
    if metadata.is_dir() {
        return usage(format!("the config `{}` is a folder", config.display()));
    }
    Ok(path)
}

/// The file that the arguments name, or the client's own one.
fn place_of(args: &ConnectArgs) -> Result<PathBuf, ConnectError> {
    if let Some(file) = &args.file {
        return std::path::absolute(file)
            .map_err(|error| ConnectError::Usage(format!("`{}`: {error}", file.display())));
    }
    file_of(args.client, args.scope.unwrap_or(Scope::User))
}

/// The entry in a complete document, for standard output.
fn printed(client: Client, name: &str, entry: &EntryValue) -> Text {
    let format = Format::new(client);
    let document = format.document(name, entry);
    match format.is_json() {
        true => Text::json_text(&document),
        false => Text::lines("", &document),
    }
}

fn print_note(args: &ConnectArgs, file: Option<&Path>) -> Text {
    let client = args.client;
    let mut note = match file {
        Some(file) => text!(
            "add this to {}, or let `--write` do it; then {}",
            shell_word(&file.display().to_string()),
            client.restart()
        ),
        None => text!(
            "add this to the file of the client; then {}",
            client.restart()
        ),
    };
    note.push(variable_note(args));
    note
}

/// The variable that the client needs.
fn variable_note(args: &ConnectArgs) -> Text {
    if args.secret && !args.with_secret {
        text!(
            "; the variable `{}` must be set to the secret where {} starts",
            args.secret_env,
            args.client.title()
        )
    } else {
        Text::new()
    }
}

/// Inserts the entry into a file, and says what was done.
fn write(
    args: &ConnectArgs,
    name: &str,
    entry: &EntryValue,
    path: &Path,
    file: &ClientFile,
) -> Result<Text, ConnectError> {
    let client = args.client;
    let (bom, body) = match file.text().strip_prefix(BOM) {
        Some(body) => (BOM, body),
        None => ("", file.text()),
    };
    let format = Format::new(client);
    let refused = |refusal: error::Refusal| ConnectError::Usage(refusal.describe(path, body));
    let shown = path.display();
    let edit = format.insert(body, name, entry).map_err(refused)?;
    let (action, text) = match edit {
        Edit::Same => (None, body.to_owned()),
        Edit::Added(changed) => (Some(("added", "to")), changed),
        Edit::Replaced(changed) => (Some(("replaced", "in")), changed),
    };
    let removal = match args.replace {
        true => {
            let is_moved = |other: &str| {
                let names = args.moved.as_ref();
                other != name && names.is_none_or(|names| names.iter().any(|one| one == other))
            };
            format.without(&text, &is_moved).map_err(refused)?
        }
        false => Removal::none(&text),
    };
    if action.is_none() && removal.names.is_empty() {
        let closed = args.with_secret && file.close_to_others()?;
        let note = text!("`{}` has this entry already; nothing was changed", shown);
        return Ok(if closed {
            text!("{}, except that only its owner can read it now", note)
        } else {
            note
        });
    }
    // The file is written only if it reads back with the entry.
    match format.insert(&removal.text, name, entry) {
        Ok(Edit::Same) => {}
        _ => {
            return Err(ConnectError::System(format!(
                "`{shown}` would not contain the entry after the change, and was not changed; add the entry by hand"
            )));
        }
    }
    let backup = file.replace(&format!("{bom}{}", removal.text), args.with_secret)?;
    let mut note = match action {
        Some((verb, preposition)) => text!("{} `{}` {} `{}`", verb, name, preposition, shown),
        None => text!("changed `{}`", shown),
    };
    match backup {
        Some(backup) => note.push(text!(", the old file is `{}`", backup.display())),
        None => note.push(", a new file"),
    }
    if !removal.names.is_empty() {
        let names: Vec<_> = removal
            .names
            .iter()
            .map(|name| format!("`{}`", shown_line(name, MAX_NAME_BYTES)))
            .collect();
        note.push(text!(
            "; took {} out of it, which the broker has to serve now; `--undo` puts it back",
            names.join(", ")
        ));
    }
    note.push(text!("; {}", client.restart()));
    note.push(variable_note(args));
    Ok(note)
}
