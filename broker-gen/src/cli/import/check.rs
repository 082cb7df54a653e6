//! Checks the config before it is written. Problems have the place in the imported file.

use broker_config::Config;
use broker_config::client_file::{Spanned, written_pointer};
use broker_model::json::{child_pointer, position_of_offset};
use broker_model::{Diagnostic, Severity};

use super::document::Document;
use super::server::Draft;

/// Parses the config; returns its warnings.
pub(super) fn check(
    document: &Document<'_>,
    config: &str,
    drafts: &[Draft],
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let place = |problems: Vec<Diagnostic>| -> Vec<Diagnostic> {
        let problems = problems.into_iter();
        problems
            .map(|problem| placed(document, drafts, problem))
            .collect()
    };
    let parsed = Config::parse(document.file, config.as_bytes()).map_err(place)?;
    // Secrets in commands are compiled in.
    let left = parsed.config.literal_secrets_in_commands();
    if !left.is_empty() {
        let left = left.into_iter().map(|problem| Diagnostic {
            message: "a command has a secret that cannot be replaced".to_owned(),
            severity: Severity::Error,
            ..problem
        });
        return Err(place(left.collect()));
    }
    Ok(place(parsed.warnings))
}

/// A problem of the config at its place in the imported file.
fn placed(document: &Document<'_>, drafts: &[Draft], problem: Diagnostic) -> Diagnostic {
    let found = problem
        .pointer
        .as_deref()
        .and_then(|pointer| place(document, drafts, pointer));
    let Some((at, pointer)) = found else {
        return Diagnostic {
            file: Some(document.file.to_owned()),
            position: None,
            pointer: None,
            ..problem
        };
    };
    Diagnostic {
        file: Some(document.file.to_owned()),
        position: Some(position_of_offset(document.text, at)),
        pointer: Some(pointer),
        ..problem
    }
}

/// The offset and the pointer in the imported file for a pointer of the config: the deepest that exists.
fn place(document: &Document<'_>, drafts: &[Draft], pointer: &str) -> Option<(usize, String)> {
    let root = &document.content.root;
    let Some(rest) = pointer.strip_prefix("/tree/") else {
        // A setting of the top level.
        let value = pointer_value(root, pointer)?;
        return Some((value.at, pointer.to_owned()));
    };
    let (index, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let draft = drafts.get(index.parse::<usize>().ok()?)?;
    let mut at = draft.at;
    let mut pointer = draft.pointer.clone();
    let mut here = pointer_value(root, &draft.pointer)?;
    for token in rest.strip_prefix("source/").unwrap_or_default().split('/') {
        let key = token.replace("~1", "/").replace("~0", "~");
        let Some(next) = here.get(&key) else {
            break;
        };
        (at, here) = (next.at, next);
        pointer = child_pointer(&pointer, &key);
    }
    let written = written_pointer(&document.content.converted.renamed, &pointer);
    Some((at, written.unwrap_or(pointer)))
}

fn pointer_value<'s>(root: &'s Spanned, pointer: &str) -> Option<&'s Spanned> {
    let tokens = pointer.split('/').skip(1);
    tokens
        .map(|token| token.replace("~1", "/").replace("~0", "~"))
        .try_fold(root, |value, key| value.get(&key))
}
