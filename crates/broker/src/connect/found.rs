//! The files of the clients of this user, and the entry of a broker in one of them, for programs that set a client up.

use std::path::{Path, PathBuf};

use broker_model::redact::Secret;
use broker_model::terminal::Text;
use clap::ValueEnum as _;

use super::args::ConnectArgs;
use super::client::Client;
use super::places::{Scope, file_of};

/// The file of a client of this user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// The word of the client for `connect`.
    pub client: String,
    /// The name of the client, for people.
    pub title: &'static str,
    /// The file.
    pub path: PathBuf,
}

/// Returns the files of the clients of this user that exist, also as a symbolic link without a target.
pub fn client_files() -> Vec<FoundFile> {
    let clients = Client::value_variants().iter();
    let files = clients.filter_map(|client| {
        let path = file_of(*client, Scope::User).ok()?;
        path.symlink_metadata().ok()?;
        let word = client.to_possible_value()?;
        Some(FoundFile {
            client: word.get_name().to_owned(),
            title: client.title(),
            path,
        })
    });
    files.collect()
}

/// The entry of `broker-gen serve` for a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientEntry<'a> {
    /// The word of the client for `connect`; an unknown one is `json`.
    pub client: &'a str,
    /// The config.
    pub config: &'a Path,
    /// The file of the client.
    pub file: &'a Path,
    /// Variables that the client sets for the broker. They are only written, never printed.
    pub variables: &'a [(String, Secret)],
    /// The servers that the broker serves instead, to take out of the file.
    pub moved: Option<&'a [String]>,
}

/// The result of connecting a client.
#[derive(Debug)]
pub struct Connected {
    /// The entry in a complete document, if it was not written.
    pub entry: Option<Text>,
    /// One line for people.
    pub note: Text,
}

impl ClientEntry<'_> {
    /// Makes the entry for standard output. An error is one sentence.
    pub fn print(&self) -> Result<Connected, String> {
        self.connect(false)
    }

    /// Inserts the entry into the file of the client. An error is one sentence.
    pub fn write(&self) -> Result<Connected, String> {
        self.connect(true)
    }

    fn connect(&self, write: bool) -> Result<Connected, String> {
        let args = ConnectArgs {
            client: Client::from_str(self.client, false).unwrap_or(Client::Json),
            config: Some(self.config.to_owned()),
            http: None,
            name: "broker".to_owned(),
            under: None,
            mode: None,
            scope: None,
            file: Some(self.file.to_owned()),
            write,
            replace: write && self.moved.is_some(),
            moved: self.moved.map(<[String]>::to_vec),
            variables: match write {
                true => self.variables.to_vec(),
                false => Vec::new(),
            },
            undo: false,
            secret: false,
            secret_env: String::new(),
            with_secret: false,
        };
        let program = super::Program::Generator {
            config: self.config.to_owned(),
        };
        let answer = super::run(&args, &program).map_err(|error| error.to_string())?;
        Ok(Connected {
            entry: answer.entry,
            note: answer.note,
        })
    }
}
