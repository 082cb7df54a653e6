//! `connect`: the entry of the broker for an MCP client, printed or inserted into the client's own file.

use std::env;
use std::path::{Path, PathBuf};

use broker_model::terminal::Text;
use broker_model::text;
use broker_model::text::shell_word;

mod args;
mod client;
mod edit;
mod entry;
mod error;
mod file;
mod jsonc;
mod toml;
mod value;

use crate::secret;
pub(crate) use args::ConnectArgs;
use client::{Client, Scope};
use client::{Places, System};
use edit::Edit;
use entry::{Credential, View};
pub(crate) use error::ConnectError;
use error::usage;
use file::ClientFile;
use value::{EntryValue, Layout};

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

/// Makes the entry, and writes it to the file of the client if the arguments say so.
pub(crate) fn run(args: &ConnectArgs) -> Result<Answer, ConnectError> {
    let name = checked_name(&args.name)?;
    let entry = entry_of(args)?;
    let client = args.client;
    let file = place_of(args);
    if !args.write {
        return Ok(Answer {
            entry: Some(printed(client, name, &entry)),
            note: print_note(args, file.ok().as_deref()),
        });
    }
    let path = file?;
    let file = match (args.scope, &args.file) {
        (Some(Scope::Project), None) => ClientFile::open_within(&working_folder()?, &path)?,
        _ => ClientFile::open(&path)?,
    };
    let note = write(args, name, &entry, &path, &file)?;
    Ok(Answer { entry: None, note })
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

fn entry_of(args: &ConnectArgs) -> Result<EntryValue, ConnectError> {
    let view = View {
        under: args.under.as_deref(),
        mode: args.mode,
    };
    let Some(url) = &args.http else {
        let program = env::current_exe().map_err(|error| {
            ConnectError::System(format!("cannot find the path of this program: {error}"))
        })?;
        let config = args.config.as_deref().map(absolute).transpose()?;
        return entry::stdio(args.client, &program, config.as_deref(), view);
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
    entry::http(args.client, url, credential, view)
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
    let system = if cfg!(target_os = "macos") {
        System::Mac
    } else {
        System::Linux
    };
    let places = Places {
        system,
        variable: &|name| env::var_os(name).map(PathBuf::from),
        folder: working_folder()?,
    };
    args.client.file(args.scope.unwrap_or(Scope::User), &places)
}

fn working_folder() -> Result<PathBuf, ConnectError> {
    env::current_dir()
        .map_err(|error| ConnectError::Usage(format!("the working folder cannot be read: {error}")))
}

/// The entry in a complete document, for standard output.
fn printed(client: Client, name: &str, entry: &EntryValue) -> Text {
    if client.is_toml() {
        return Text::lines("", &toml::document(client.servers(), name, entry, "\n"));
    }
    let layout = Layout::default_for("");
    Text::json_text(&jsonc::document(client.servers(), name, entry, &layout))
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
    let insert = if client.is_toml() {
        toml::insert
    } else {
        jsonc::insert
    };
    let refused = |refusal: error::Refusal| ConnectError::Usage(refusal.describe(path, body));
    let edit = insert(body, client.servers(), name, entry).map_err(refused)?;
    let shown = path.display();
    let (verb, preposition, changed) = match edit {
        Edit::Same => {
            let closed = args.with_secret && file.close_to_others()?;
            let note = text!("`{}` has this entry already; nothing was changed", shown);
            return Ok(if closed {
                text!("{}, except that only its owner can read it now", note)
            } else {
                note
            });
        }
        Edit::Added(changed) => ("added", "to", changed),
        Edit::Replaced(changed) => ("replaced", "in", changed),
    };
    // The file is written only if it reads back with the entry.
    match insert(&changed, client.servers(), name, entry) {
        Ok(Edit::Same) => {}
        _ => {
            return Err(ConnectError::System(format!(
                "`{shown}` would not contain the entry after the change, and was not changed; add the entry by hand"
            )));
        }
    }
    let backup = file.replace(&format!("{bom}{changed}"), args.with_secret)?;
    let mut note = text!("{} `{}` {} `{}`", verb, name, preposition, shown);
    match backup {
        Some(backup) => note.push(text!(", the old file is `{}`", backup.display())),
        None => note.push(", a new file"),
    }
    note.push(text!("; {}", client.restart()));
    note.push(variable_note(args));
    Ok(note)
}
