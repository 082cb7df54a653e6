//! Files of other clients that are converted into a config: JSON with comments as values with their places, and
//! the facts that decide what a config takes of them.

use super::findings::{Cursor, Findings};
use super::keys::Level;
use super::{reader, vscode};
use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;

pub use super::clients::{
    Client, Converted, Note, NoteKind, Part, Rules, convert, recognise, split_line, translate,
    written_pointer,
};
pub use super::confidential::{
    LiteralSecret, SecretKind, find_outside, is_secret_key, is_secret_value, literal_secrets_in,
    literal_secrets_in_url, secrets_in_text,
};
pub use super::http_endpoint::is_own_header;
pub use super::servers::paths_of;
pub use super::source::variable_for;
pub use super::spanned::{Data, Member, Spanned};
pub use super::template::is_variable_name;

/// The text of a file without its byte-order mark. An error names a size, a place or an encoding, no text of the
/// file.
pub fn text_of<'b>(file: &str, bytes: &'b [u8]) -> Result<&'b str, Vec<Diagnostic>> {
    reader::text_of(bytes).map_err(|refusal| vec![refusal.in_file(file)])
}

/// Reads JSON; accepts comments and trailing commas. Errors contain no text of the file except names of keys.
pub fn parse_json(file: &str, text: &str) -> Result<Spanned, Vec<Diagnostic>> {
    let mut findings = Findings::new(file, text);
    let bare = vscode::blank(text);
    if bare.trim().is_empty() {
        let problem = Diagnostic::error(Code::ImportSyntax, "the file is empty");
        return Err(vec![problem.in_file(file)]);
    }
    let read = reader::read(&bare, text, &mut findings).map_err(|refusal| {
        let mut problem = refusal.in_file(file);
        if problem.code == Code::ConfigSyntax {
            // Without the line: a part of a value may look like a key.
            problem.code = Code::ImportSyntax;
            problem.notes.clear();
            problem.help = None;
            problem.message = format!("the file is not JSON: {}", problem.message);
        }
        vec![problem]
    })?;
    match findings.refused() {
        true => Err(findings.finish()),
        false => Ok(read),
    }
}

/// The keys of a source in a config, in the order of the documentation.
pub fn source_keys() -> &'static [&'static str] {
    Level::Source.keys()
}

/// Whether `auth` of a server is the key of a config: other clients use this key for other settings.
pub fn is_own_auth(auth: &Spanned) -> bool {
    super::http_endpoint::is_own_auth(&Cursor::root(auth))
}
