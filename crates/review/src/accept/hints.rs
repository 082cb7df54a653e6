//! `accept --hints`: confirms the hints that the config sets for a tool. With `--digest` it reads no lock, since `lock`
//! does not write a tool whose hints are not confirmed.

use std::path::Path;

use broker_audits_file::{HintAudit, HintValues};
use broker_build::build_script::parse_config;
use broker_config::Source;
use broker_model::digest::Digest;
use broker_model::lock::Lock;
use broker_model::text::shown_line;
use broker_model::{Diagnostic, DiagnosticCode};

use crate::audits::Date;

/// The parts of an entry that its author gives.
#[derive(Debug)]
pub struct Signature<'a> {
    pub who: &'a str,
    pub date: Date,
    pub notes: Option<&'a str>,
}

/// Returns the entry for a tool. `tool` is its name on the server or in the tree. Without `digest`, the digest comes
/// from the lock.
pub fn entry(
    config: &Path,
    source: &str,
    tool: &str,
    digest: Option<&Digest>,
    signature: &Signature<'_>,
    read_lock: impl FnOnce() -> Result<Lock, Vec<Diagnostic>>,
) -> Result<HintAudit, Vec<Diagnostic>> {
    let shown = config.to_string_lossy();
    let config = parse_config(config, &shown)?.config;
    let wrong = |message: String, help: &str| {
        let problem = Diagnostic::error(DiagnosticCode::PathInvalid, message);
        vec![problem.help(help)]
    };
    let found = config.sources().find(|one| one.path.as_str() == source);
    let Some(found) = found else {
        let message = format!(
            "`--source {}` names no source of the config",
            shown_line(source, 200)
        );
        return Err(wrong(message, "Name the path of its node."));
    };
    let name = upstream_name(found, tool);
    let hints = found.overrides.get(name);
    let hints = hints.and_then(|said| said.annotations.as_ref());
    let Some(hints) = hints.filter(|hints| !hints.is_empty()) else {
        let message = format!(
            "the config sets no hints for the tool `{}` of `{source}`",
            shown_line(tool, 100)
        );
        let help = "Name a tool of `tool_overrides` that has `annotations`.";
        return Err(wrong(message, help));
    };
    let digest = match digest {
        Some(digest) => digest.clone(),
        None => locked_digest(&read_lock()?, source, name)?,
    };
    Ok(HintAudit {
        source: found.path.clone(),
        tool: name.to_owned(),
        digest,
        values: HintValues::new(hints),
        who: signature.who.to_owned(),
        date: signature.date.to_string(),
        notes: signature.notes.map(str::to_owned),
    })
}

fn upstream_name<'a>(source: &'a Source, tool: &'a str) -> &'a str {
    if source.overrides.contains_key(tool) {
        return tool;
    }
    let mut aliases = source.aliases.iter();
    let named = aliases.find(|(_, alias)| *alias == tool);
    named.map_or(tool, |(name, _)| name)
}

fn locked_digest(lock: &Lock, source: &str, name: &str) -> Result<Digest, Vec<Diagnostic>> {
    let tools = lock.source(source).map(|locked| locked.exposed.iter());
    let tool = tools.and_then(|mut tools| tools.find(|tool| tool.upstream_name == name));
    tool.map(|tool| tool.digest.clone()).ok_or_else(|| {
        let message = format!(
            "the lock does not have the tool `{}` of `{source}`",
            shown_line(name, 100)
        );
        let help = "Run `broker-gen lock`: its message has the command with the digest.";
        vec![Diagnostic::error(DiagnosticCode::PathInvalid, message).help(help)]
    })
}
