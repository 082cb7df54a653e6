//! `import`: converts the file of a client into a config. Values that look like secrets become variables; the
//! values are neither written nor printed.

use std::io;
use std::path::{Path, PathBuf};

use broker_config::client_file::{Client, NoteKind, paths_of};
use broker_model::exit::Exit;
use broker_model::json::to_review_text;
use broker_model::redact::{Redactor, Secret};
use broker_model::terminal::Text;
use broker_model::text::{counted, shell_word};
use broker_model::{Diagnostic, DiagnosticCode, text};
use broker_review::whole_file;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::output::{self, say};
use super::unattended;

mod bundle;
mod check;
mod client;
mod document;
mod fetch;
mod findings;
mod foreign;
mod hide;
mod input;
mod known;
mod out;
mod registry_entry;
mod server;
#[cfg(test)]
mod tests;
mod variables;

use client::ClientServers;
use document::Document;
use findings::Findings;
use input::Input;
use known::Known;
use out::Out;
use server::{Draft, Reader};
use variables::{MAX_VARIABLES, Variables};

/// Maximum number of servers.
const MAX_SERVERS: usize = 1000;

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The file of a client: JSON, also with comments, TOML or YAML. Or the entry of a registry (`server.json`), a bundle
    /// (`.mcpb`), `registry:NAME` or `registry:NAME@VERSION` with `--registry`, or `-` for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The registry that is asked for `registry:NAME`, such as https://registry.example.org.
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// Write the code of a bundle to this folder, which must not exist. Without it only the manifest is read.
    #[arg(long, value_name = "DIR")]
    unpack: Option<PathBuf>,
    /// The client that wrote the file, if its name and its content do not say so.
    #[arg(long, value_name = "CLIENT", value_parser = client_parser())]
    from: Option<Client>,
    /// The config to write, which must not exist. Without it: standard output.
    #[arg(short, long, value_name = "CONFIG")]
    output: Option<PathBuf>,
}

/// Reads the word of a client.
pub(super) fn client_parser() -> impl TypedValueParser<Value = Client> {
    let words = Client::ALL.map(Client::word);
    PossibleValuesParser::new(words).try_map(|word| Client::from_word(&word).ok_or("no client"))
}

/// A converted file. No part of it has a secret, except `values`, which `Debug` masks.
#[derive(Debug)]
pub(super) struct Imported {
    /// The client that wrote it; `None` if several clients write such a file.
    pub(super) client: Option<Client>,
    /// What it is, if it is not the file of a client.
    pub(super) origin: Option<&'static str>,
    /// The text of the config.
    pub(super) config: String,
    /// The names of the servers in it, in their order.
    pub(super) servers: Vec<String>,
    /// Lines about what was not taken or was changed.
    pub(super) notes: Vec<Text>,
    /// Warnings about the config.
    pub(super) warnings: Vec<Diagnostic>,
    /// The variables to set, each with its meaning.
    pub(super) variables: Vec<(String, String)>,
    /// The values that variables replace.
    pub(super) values: Vec<(String, Secret)>,
}

pub(super) async fn run(args: &ImportArgs) -> Exit {
    match import(args).await {
        Ok(()) => Exit::Ok,
        Err(problems) => output::diagnostics(&problems),
    }
}

async fn import(args: &ImportArgs) -> Result<(), Vec<Diagnostic>> {
    let shown = args.file.to_string_lossy();
    if args.output.is_some() {
        unattended::refuse("import --output")?;
    }
    if args.unpack.is_some() {
        unattended::refuse("import --unpack")?;
    }
    if let Some(config) = &args.output
        && config.symlink_metadata().is_ok()
    {
        return Err(vec![file_exists(config)]);
    }
    let input = Input::read(args).await?;
    let imported = input.convert(args.from, args.unpack.as_deref())?;
    match &args.output {
        Some(config) => write(config, &imported.config)?,
        None => output::document(&Text::json_text(&imported.config)),
    }
    report(&imported, &shown, args.output.as_deref());
    Ok(())
}

/// Reads and converts a file on this machine. The code of a bundle is not unpacked.
pub(super) fn read_file(file: &Path, from: Option<Client>) -> Result<Imported, Vec<Diagnostic>> {
    Input::read_file(file)?.convert(from, None)
}

/// Writes the config, unless there is a file.
pub(super) fn write(config: &Path, text: &str) -> Result<(), Vec<Diagnostic>> {
    whole_file::write_new(config, text).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            return vec![file_exists(config)];
        }
        let message = format!("`{}` cannot be written: {error}", config.display());
        vec![Diagnostic::error(DiagnosticCode::FileWrite, message)]
    })
}

pub(super) fn file_exists(config: &Path) -> Diagnostic {
    let message = format!("`{}` already exists; nothing was written", config.display());
    let help = "Name another file, or move this one away.";
    Diagnostic::error(DiagnosticCode::FileExists, message).help(help)
}

/// Prints everything except the config.
fn report(imported: &Imported, file: &str, config: Option<&Path>) {
    say(match imported.client {
        _ if imported.origin.is_some() => {
            text!("{} is {}", file, imported.origin.unwrap_or_default())
        }
        Some(client) => text!("{} is a file of {}", file, client.name()),
        None => text!(
            "{} has servers as several clients write them; --from CLIENT names one",
            file
        ),
    });
    imported.notes.iter().for_each(|note| say(note.clone()));
    output::diagnostics(&imported.warnings);
    let servers = counted(imported.servers.len(), "server");
    match config {
        Some(config) => say(text!(
            "wrote {}: {} of {}; review it",
            config.display(),
            servers,
            file
        )),
        None => say(text!("{} of {}; review the config", servers, file)),
    }
    if !imported.variables.is_empty() {
        say(text!("set these variables where the broker runs:"));
        for (name, meaning) in &imported.variables {
            say(text!("  {}  {}", name, meaning));
        }
    }
    say(match config {
        Some(config) => text!(
            "next: broker-gen lock --config {}",
            shell_word(&config.to_string_lossy())
        ),
        None => text!("next: write it to a file, then broker-gen lock --config FILE"),
    });
}

/// The files of this machine.
#[derive(Clone, Copy)]
struct Files<'f> {
    /// Whether a file or a program of a name exists.
    exists: &'f dyn Fn(&str) -> bool,
    /// Returns the text of a file that a command names, if it can be read.
    read: &'f dyn Fn(&str) -> Option<String>,
}

/// Converts the file `file` with this content. `from` is the client that a person named.
fn convert(
    file: &str,
    bytes: &[u8],
    from: Option<Client>,
    files: Files<'_>,
) -> Result<Imported, Vec<Diagnostic>> {
    let document = Document::read(file, bytes, from, files.exists)?;
    let mut findings = Findings::new(&document);
    let mut variables = Variables::default();
    let (mut drafts, settings) = read(&document, &mut findings, &mut variables, files.read);
    if variables.len() > MAX_VARIABLES {
        return Err(vec![too_many(file, variables.len())]);
    }
    let known = Known::new(&variables);
    let redactor = known.redactor();
    if findings.is_refused() {
        return Err(redacted(findings.problems(), &redactor));
    }
    for draft in &mut drafts {
        let server = draft.name.clone();
        for (_, value) in &mut draft.source {
            value.each_template(&mut |text, is_word| known.replace(&server, is_word, text));
        }
        let description = draft.description.as_ref();
        if description.is_some_and(|text| known.is_in(text)) {
            draft.description = None;
            let message = format!("`{server}`: not taken: `description`");
            findings.note(draft.at, &message);
        }
    }
    let config = config_of(&drafts, settings);
    if config.has_text(&|text| known.is_in(text)) {
        return Err(vec![secret_left(file)]);
    }
    let config = to_review_text(&config);
    let warnings = check::check(&document, &config, &drafts)
        .map_err(|problems| redacted(problems, &redactor))?;
    let redact = |text: String| redactor.redact(&text);
    let to_set = variables.to_set().into_iter();
    let notes = findings.notes().iter();
    Ok(Imported {
        client: document.content.client,
        origin: None,
        config,
        servers: drafts.into_iter().map(|draft| draft.name).collect(),
        values: variables.values(),
        notes: notes.map(|note| note.redacted(&redactor)).collect(),
        warnings: redacted(warnings, &redactor),
        variables: to_set
            .map(|(name, text)| (redact(name), redact(text)))
            .collect(),
    })
}

/// The servers and the settings of the top level.
fn read(
    document: &Document<'_>,
    findings: &mut Findings<'_>,
    variables: &mut Variables,
    read_file: &dyn Fn(&str) -> Option<String>,
) -> (Vec<Draft>, Vec<(String, Out)>) {
    let Some(client) = ClientServers::find(document, findings) else {
        return (Vec::new(), Vec::new());
    };
    if client.servers.len() > MAX_SERVERS {
        let message = format!(
            "the file has {} servers; at most {MAX_SERVERS} are imported",
            client.servers.len()
        );
        let problem = Diagnostic::error(DiagnosticCode::ConfigSize, message);
        findings.problem(document.content.root.at, problem.help("split the file"));
        return (Vec::new(), Vec::new());
    }
    for note in client.notes {
        let server = text::shown_line(&note.server, 80);
        let message = match &note.kind {
            // The reader of the server lists them together.
            NoteKind::NotTaken { reason: None, .. } => continue,
            NoteKind::NotTaken {
                key,
                reason: Some(reason),
            } => format!("`{}` is not taken: {reason}", text::shown_line(key, 80)),
            NoteKind::LeftOut(reason) => {
                findings.left_out(note.at, &note.server, reason);
                continue;
            }
            NoteKind::Changed(message) => message.clone(),
            NoteKind::Hint(message) => (*message).to_owned(),
        };
        match note.server.is_empty() {
            true => findings.note(note.at, &message),
            false => findings.note(note.at, &format!("`{server}`: {message}")),
        }
    }
    for member in client.servers {
        variables.reserve(&member.value);
    }
    let mut drafts: Vec<Draft> = Vec::new();
    for member in client.servers {
        let reader = Reader::new(findings, variables, &client, &member.key, read_file);
        drafts.extend(reader.read(member));
    }
    if drafts.is_empty() && !findings.is_refused() {
        findings.problem(document.content.root.at, client::no_servers());
    }
    (drafts, client.settings)
}

/// The config with a node for each server.
fn config_of(drafts: &[Draft], settings: Vec<(String, Out)>) -> Out {
    let text = |text: &str| Out::text(text);
    let names: Vec<&str> = drafts.iter().map(|draft| draft.name.as_str()).collect();
    let nodes = drafts.iter().zip(paths_of(&names)).map(|(draft, path)| {
        let mut node = vec![
            ("path".to_owned(), text(path.as_str())),
            ("type".to_owned(), text("node")),
        ];
        if let Some(description) = &draft.description {
            node.push(("description".to_owned(), text(description)));
        }
        node.push(("source".to_owned(), Out::Object(draft.source.clone())));
        Out::Object(node)
    });
    let mut members = vec![("tree".to_owned(), Out::List(nodes.collect()))];
    // Clients are lenient with the arguments that models send; a config says whether the broker is.
    if !settings.iter().any(|(name, _)| name == "coerce") {
        members.push((
            "coerce".to_owned(),
            Out::Value(serde_json::Value::Bool(true)),
        ));
    }
    members.extend(settings);
    Out::Object(members)
}

/// The error for more secrets than are searched for in the other texts.
fn too_many(file: &str, count: usize) -> Diagnostic {
    let message = format!("the file has {count} secrets; at most {MAX_VARIABLES} are replaced");
    Diagnostic::error(DiagnosticCode::ConfigSize, message)
        .in_file(file)
        .help("split the file")
}

/// The error for a secret that is also in a place where a config has no variables.
fn secret_left(file: &str) -> Diagnostic {
    let message = "the config would contain a secret of the file: its value is also in a name, a package, a host, a key or another place in which it is not replaced";
    let help = "remove the value from there, and import the file again";
    Diagnostic::error(DiagnosticCode::LiteralSecret, message)
        .in_file(file)
        .help(help)
}

/// The diagnostics with known secrets masked.
fn redacted(problems: Vec<Diagnostic>, redactor: &Redactor) -> Vec<Diagnostic> {
    let redact = |text: Option<String>| text.map(|text| redactor.redact(&text));
    let problems = problems.into_iter().map(|problem| Diagnostic {
        message: redactor.redact(&problem.message),
        pointer: redact(problem.pointer.clone()),
        help: redact(problem.help.clone()),
        notes: problem
            .notes
            .iter()
            .map(|note| redactor.redact(note))
            .collect(),
        ..problem
    });
    problems.collect()
}
