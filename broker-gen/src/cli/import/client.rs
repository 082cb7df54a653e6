//! The servers in the file of a client: where they are, and what else of the file matters.

use std::collections::BTreeMap;

use broker_config::client_file::{Data, Member, Note, Spanned};
use broker_model::{Diagnostic, DiagnosticCode};

use super::document::Document;
use super::findings::{Findings, names};
use super::out::Out;

/// The servers of a client, and its settings that matter for them.
#[derive(Debug)]
pub(super) struct ClientServers<'t> {
    /// The key of the servers.
    pub(super) key: &'static str,
    /// The servers in the order of the file.
    pub(super) servers: &'t [Member],
    /// The description of each input.
    pub(super) inputs: BTreeMap<&'t str, String>,
    /// Settings of the top level of a config.
    pub(super) settings: Vec<(String, Out)>,
    /// What the conversion of the file says.
    pub(super) notes: &'t [Note],
}

impl<'t> ClientServers<'t> {
    /// Finds the servers. `None` if the file has no servers; then a problem is added.
    pub(super) fn find(document: &'t Document<'_>, findings: &mut Findings<'_>) -> Option<Self> {
        let root = &document.content.root;
        if let Some(tree) = root.get("tree") {
            let message = "the file has `tree`: it is a config and not the file of a client";
            let problem = Diagnostic::error(DiagnosticCode::ImportServers, message);
            let help = "use it as it is: `broker-gen lock --config FILE`";
            findings.problem(tree.at, problem.help(help));
            return None;
        }
        let converted = &document.content.converted;
        let found = converted.key.and_then(|key| Some((key, root.get(key)?)));
        let Some((key, value)) = found else {
            findings.problem(root.at, no_servers());
            return None;
        };
        for (at, problem) in &converted.problems {
            findings.problem(*at, problem.clone());
        }
        let Data::Object(servers) = &value.data else {
            findings.wrong_type(value.at, key, "an object of servers", value.type_name());
            return None;
        };
        let own = root.members().iter();
        let own = own.filter(|member| member.key != key && member.key != "$schema");
        let settings = own.map(|one| (one.key.clone(), Out::Value(one.value.to_value())));
        let others = converted.settings_of_client.iter();
        let others: Vec<_> = others.filter(|key| *key != "inputs").collect();
        if !others.is_empty() {
            findings.note(root.at, &format!("not taken: {}", names(others)));
        }
        Some(Self {
            key,
            servers,
            inputs: inputs(&document.content.written),
            settings: settings.collect(),
            notes: &converted.notes,
        })
    }
}

/// The problem of a file without servers.
pub(super) fn no_servers() -> Diagnostic {
    let message = "the file has no servers that a config can have";
    Diagnostic::error(DiagnosticCode::ImportServers, message)
}

/// The description of each input of VS Code.
fn inputs(root: &Spanned) -> BTreeMap<&str, String> {
    let Some(Data::Array(inputs)) = root.get("inputs").map(|inputs| &inputs.data) else {
        return BTreeMap::new();
    };
    let text = |input: &'_ Spanned, key: &str| text_of(input.get(key)?).map(str::to_owned);
    let described = inputs.iter().filter_map(|input| {
        let id = text_of(input.get("id")?)?;
        Some((id, text(input, "description").unwrap_or_default()))
    });
    described.collect()
}

/// The text of a string.
pub(super) fn text_of(value: &Spanned) -> Option<&str> {
    match &value.data {
        Data::String(text) => Some(text),
        _ => None,
    }
}
