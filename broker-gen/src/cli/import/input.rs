//! The input of an import: a file of this machine, standard input, or the answer of a registry; and what it contains.

use std::io;
use std::path::{Path, PathBuf};

use broker_config::MAX_BYTES;
use broker_config::client_file::Client;
use broker_files::ReadError;
use broker_model::{Diagnostic, DiagnosticCode, text};
use serde_json::Value;

use super::bundle::{self, MAX_BUNDLE_BYTES};
use super::foreign::Foreign;
use super::{Files, ImportArgs, Imported, convert, fetch, registry_entry};

/// The word before the name of a server in a registry.
const OF_REGISTRY: &str = "registry:";
/// The word for standard input.
const STANDARD_INPUT: &str = "-";

/// The bytes of an input, and its name for people.
#[derive(Debug)]
pub(super) struct Input {
    shown: String,
    bytes: Vec<u8>,
    /// The file on this machine, beside which names of files are looked up.
    file: Option<PathBuf>,
    /// The name of the entry that was asked for, and its version if it was named.
    wanted: Option<(String, Option<String>)>,
}

impl Input {
    /// Reads the input that the arguments name.
    pub(super) async fn read(args: &ImportArgs) -> Result<Self, Vec<Diagnostic>> {
        let shown = args.file.to_string_lossy();
        if let Some(name) = shown.strip_prefix(OF_REGISTRY) {
            let Some(registry) = &args.registry else {
                let message = format!("`{shown}` needs the URL of a registry");
                let problem = Diagnostic::error(DiagnosticCode::ImportServers, message);
                return Err(vec![
                    problem.help("name one: `--registry https://registry.example.org`"),
                ]);
            };
            let bytes = fetch::entry(registry, name).await?;
            let wanted = match name.rsplit_once('@') {
                Some((name, version)) => (name.to_owned(), Some(version.to_owned())),
                None => (name.to_owned(), None),
            };
            return Ok(Self {
                shown: shown.into_owned(),
                bytes,
                file: None,
                wanted: Some(wanted),
            });
        }
        if shown == STANDARD_INPUT {
            let bytes = broker_files::read_from(io::stdin().lock(), MAX_BUNDLE_BYTES);
            let bytes = bytes.map_err(|error| vec![unreadable(&shown, &error)])?;
            return Self {
                shown: "standard input".to_owned(),
                bytes,
                file: None,
                wanted: None,
            }
            .bounded();
        }
        Self::read_file(&args.file)
    }

    /// Reads a file of this machine.
    pub(super) fn read_file(file: &Path) -> Result<Self, Vec<Diagnostic>> {
        let shown = file.to_string_lossy();
        let bytes = broker_files::read(file, MAX_BUNDLE_BYTES);
        let bytes = bytes.map_err(|error| vec![unreadable(&shown, &error)])?;
        Self {
            shown: shown.into_owned(),
            bytes,
            file: Some(file.to_owned()),
            wanted: None,
        }
        .bounded()
    }

    /// Only a bundle may be larger than a config.
    fn bounded(self) -> Result<Self, Vec<Diagnostic>> {
        match self.bytes.len() > MAX_BYTES && !bundle::is_bundle(&self.bytes) {
            true => Err(vec![unreadable(&self.shown, &ReadError::Size(MAX_BYTES))]),
            false => Ok(self),
        }
    }

    /// Converts it. `from` is the client that a person named, `unpack` the folder for the code of a bundle.
    pub(super) fn convert(
        &self,
        from: Option<Client>,
        unpack: Option<&Path>,
    ) -> Result<Imported, Vec<Diagnostic>> {
        let shown = self.shown.as_str();
        if bundle::is_bundle(&self.bytes) {
            let foreign = bundle::convert(shown, &self.bytes, unpack)?;
            return self.convert_foreign(foreign, "a bundle of MCP");
        }
        if unpack.is_some() {
            let message = "`--unpack` is for a bundle (`.mcpb`)";
            let problem = Diagnostic::error(DiagnosticCode::ImportServers, message);
            return Err(vec![problem.in_file(shown).help("leave out `--unpack`")]);
        }
        let entry = serde_json::from_slice::<Value>(&self.bytes).ok();
        if let Some(entry) = entry.filter(registry_entry::is_entry) {
            self.check_identity(&entry)?;
            let foreign = registry_entry::convert(shown, &entry)?;
            return self.convert_foreign(foreign, "an entry of a registry of MCP");
        }
        if self.wanted.is_some() {
            let message = "the answer of the registry is not the entry of a server";
            return Err(vec![Diagnostic::error(
                DiagnosticCode::ImportServers,
                message,
            )]);
        }
        self.convert_text(&self.bytes, from)
    }

    /// Refuses an entry that is not the one that was asked for.
    fn check_identity(&self, entry: &Value) -> Result<(), Vec<Diagnostic>> {
        let Some((name, version)) = &self.wanted else {
            return Ok(());
        };
        let (found, found_version) = registry_entry::identity(entry);
        let is_version = version
            .as_ref()
            .is_none_or(|version| *version == found_version || version == "latest");
        if found == *name && is_version {
            return Ok(());
        }
        let message = "the registry answered with another server or version";
        Err(vec![Diagnostic::error(
            DiagnosticCode::ImportServers,
            message,
        )])
    }

    fn convert_foreign(
        &self,
        foreign: Foreign,
        origin: &'static str,
    ) -> Result<Imported, Vec<Diagnostic>> {
        let bytes = foreign.servers.to_string();
        // Texts have the variables that this program wrote, in the form of this client.
        let mut imported = self.convert_text(bytes.as_bytes(), Some(Client::Claude))?;
        imported.client = None;
        imported.origin = Some(origin);
        let notes = foreign.notes.iter();
        imported
            .notes
            .extend(notes.map(|note| text!("note: {}: {}", self.shown, note)));
        Ok(imported)
    }

    fn convert_text(
        &self,
        bytes: &[u8],
        from: Option<Client>,
    ) -> Result<Imported, Vec<Diagnostic>> {
        let file = self.file.as_deref().unwrap_or(Path::new(""));
        let folder = file.parent().unwrap_or(Path::new(""));
        let exists = |name: &str| broker_files::exists(name, file);
        let read = |name: &str| broker_files::read_text(&folder.join(name), MAX_BYTES).ok();
        let files = Files {
            exists: &exists,
            read: &read,
        };
        convert(&self.shown, bytes, from, files)
    }
}

fn unreadable(shown: &str, error: &ReadError) -> Diagnostic {
    let code = match error {
        ReadError::Size(_) => DiagnosticCode::ConfigSize,
        _ => DiagnosticCode::ConfigUnreadable,
    };
    let message = format!("the file `{shown}` cannot be read: {error}");
    let help = "Name the file of a client, of at most 4 MiB, or a bundle of at most 64 MiB.";
    Diagnostic::error(code, message).help(help)
}
