//! The key `extensions` of a source.

use super::fields;
use super::findings::{Cursor, Findings};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::extension::{Extension, Extensions};
use broker_model::text::shown_line;

/// Reads the extensions that the broker declares to the server of a source. An extension that the broker does not have is
/// refused: a server would use it.
pub(super) fn read(findings: &mut Findings<'_>, cursor: &Cursor<'_>) -> Extensions {
    let read = fields::strings(findings, cursor, |findings, item, text| {
        let extension = Extension::from_name(text);
        if extension.is_none() {
            let message = format!(
                "the broker does not have the extension `{}`",
                shown_line(text, 80)
            );
            let known: Vec<_> = Extension::ALL
                .iter()
                .map(|one| format!("`{}`", one.as_str()))
                .collect();
            let help = format!("remove it; known: {}", known.join(", "));
            findings.add(
                item,
                Diagnostic::error(Code::ConfigRange, message).help(help),
            );
        }
        extension
    });
    read.into_iter().collect()
}
