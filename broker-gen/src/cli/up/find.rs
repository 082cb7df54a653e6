//! The file that `up` takes: the one that is named, or one of the clients of this user.

use std::path::{Path, PathBuf};

use broker_config::client_file::Client;
use broker_model::{Diagnostic, DiagnosticCode, text};
use mcp_broker::{FoundFile, client_files};

use super::question;
use crate::cli::import::{self, Imported};
use crate::cli::output::{self, say};

/// The file, its client and its servers.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) file: PathBuf,
    /// The word of the client for `connect`; `json` if it is not known.
    pub(super) client: String,
    /// Its name, for people, if it is known.
    pub(super) title: Option<&'static str>,
    pub(super) imported: Imported,
}

/// Returns the file that is named, else the only one that has servers. Asks which one if there are several.
pub(super) async fn choose(
    file: Option<&Path>,
    from: Option<Client>,
) -> Result<Chosen, Vec<Diagnostic>> {
    let found = client_files();
    if let Some(file) = file {
        let imported = import::read_file(file, from)?;
        let (client, title) = client_of(file, &found, imported.client);
        return Ok(Chosen {
            file: file.to_owned(),
            client,
            title,
            imported,
        });
    }
    let mut with_servers = Vec::new();
    for one in found {
        match import::read_file(&one.path, from) {
            Ok(imported) => with_servers.push(Chosen {
                file: one.path,
                client: one.client,
                title: Some(one.title),
                imported,
            }),
            // A file without servers, or one that cannot be read: it is named, and the others are offered.
            Err(problems) => {
                say(text!("not taken: {} of {}", one.path.display(), one.title));
                output::diagnostics(&output::as_warnings(problems));
            }
        }
    }
    let count = with_servers.len();
    if count <= 1 {
        return with_servers.pop().ok_or_else(|| vec![no_file()]);
    }
    for (index, one) in with_servers.iter().enumerate() {
        say(text!(
            "{}. {} ({}): {}",
            index + 1,
            one.file.display(),
            one.title.unwrap_or_default(),
            one.imported.servers.join(", ")
        ));
    }
    let number = question::number(&text!("Which file?"), count).await?;
    match number {
        Some(number) => Ok(with_servers.swap_remove(number - 1)),
        None => {
            let message = "no file was chosen";
            let problem = Diagnostic::error(DiagnosticCode::ImportServers, message);
            Err(vec![problem.help(
                "answer with a number, or name the file: `broker-gen up FILE`",
            )])
        }
    }
}

fn no_file() -> Diagnostic {
    let message = "no file of a client with servers was found";
    let help = "name one: `broker-gen up FILE`; the file of a project is used only if it is named";
    Diagnostic::error(DiagnosticCode::ImportServers, message).help(help)
}

/// Returns the word and the name of the client whose file this is: by its place, else by its name and content.
fn client_of(
    file: &Path,
    found: &[FoundFile],
    read: Option<Client>,
) -> (String, Option<&'static str>) {
    let target = file.canonicalize().ok();
    let at_place = found
        .iter()
        .find(|one| target.is_some() && one.path.canonicalize().ok() == target);
    if let Some(one) = at_place {
        return (one.client.clone(), Some(one.title));
    }
    let is_desktop = file.ends_with("claude_desktop_config.json");
    match read {
        // The projects of Claude Code have a file; Claude Desktop has none for a project.
        Some(Client::Claude) if !is_desktop => ("claude-code".to_owned(), Some("Claude Code")),
        Some(client) => (client.word().to_owned(), Some(client.name())),
        None => ("json".to_owned(), None),
    }
}
