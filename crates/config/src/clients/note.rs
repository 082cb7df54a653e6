//! What a conversion says about a file: what was not carried over, and what was changed.

use broker_model::codes::DiagnosticCode as Code;
use broker_model::diagnostic::Diagnostic;
use broker_model::text::shown_line;

/// One remark about the file of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The byte offset of its place.
    pub at: usize,
    /// The JSON pointer of its place in the file.
    pub pointer: String,
    /// The name of the server.
    pub server: String,
    /// What it says.
    pub kind: NoteKind,
}

/// The content of a [`Note`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A key has no equal in a config; with the reason, if there is more to say.
    NotTaken {
        /// The key, or `headers.NAME`.
        key: String,
        /// Why, and what to do.
        reason: Option<&'static str>,
    },
    /// The server is left out, with the reason.
    LeftOut(&'static str),
    /// A value was changed in a way that a person should see.
    Changed(String),
    /// A value is taken, and the broker reads it in another way than a person may expect.
    Hint(&'static str),
}

impl Note {
    /// The note as a warning about a config.
    pub(crate) fn into_warning(self) -> Diagnostic {
        let name = shown_line(&self.server, 80);
        let (code, message) = match self.kind {
            NoteKind::NotTaken { key, reason } => {
                let key = shown_line(&key, 80);
                let message = match reason {
                    None => format!("`{key}` has no meaning here and is ignored"),
                    Some(reason) => format!("`{key}` is ignored: {reason}"),
                };
                (Code::KeyIgnored, message)
            }
            NoteKind::LeftOut(reason) => {
                (Code::KeyIgnored, format!("`{name}` is left out: {reason}"))
            }
            NoteKind::Changed(message) => (Code::ClientValue, message),
            NoteKind::Hint(message) => (Code::ClientValue, message.to_owned()),
        };
        Diagnostic::warning(code, message).at(self.pointer)
    }
}
