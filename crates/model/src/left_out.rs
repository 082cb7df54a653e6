//! What a server lists and the broker does not use: one record for each tool, prompt, template or resource, with the
//! reason. The rest of the listing goes on without it.

use crate::codes::LeftOutCode;
use crate::digest::Digest;
use crate::item::ItemKind;
use crate::text::shown_line;

/// Maximum number of records of one source; more are only counted.
pub const MAX_RECORDS: usize = 1_000;
/// Maximum number of characters of a shown name.
pub const MAX_NAME_CHARS: usize = 120;
/// Maximum number of characters of a shown reason.
pub const MAX_REASON_CHARS: usize = 300;

/// One tool, prompt, template or resource that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its kind.
    pub kind: ItemKind,
    /// Its key as the server sent it, at most [`MAX_NAME_CHARS`] characters; `None` if it has no readable key.
    pub name: Option<String>,
    /// The kind of the reason.
    pub code: LeftOutCode,
    /// The JSON pointer of the place within the listed object; empty for the whole object.
    pub place: String,
    /// The reason, in one line, without secrets and control characters. It depends only on the bytes of the
    /// server and on the config, so that two runs give the same text.
    pub reason: String,
    /// The digest of the text that the server sent.
    pub digest: Digest,
}

impl LeftOut {
    /// The part in a message: its kind and its name, or the kind alone.
    pub fn subject(&self) -> String {
        let kind = self.kind.as_str();
        match &self.name {
            Some(name) => format!("{kind} `{}`", shown_line(name, MAX_NAME_CHARS)),
            None if self.code == LeftOutCode::ListCut => format!("list of {kind}s"),
            None => format!("a {kind} without a name"),
        }
    }

    /// Place, reason and remedy, in one line: for the output of commands and for the log.
    pub fn line(&self) -> String {
        let place = match self.place.is_empty() {
            true => String::new(),
            false => format!(" at `{}`", shown_line(&self.place, MAX_NAME_CHARS)),
        };
        format!(
            "{}{place}: {} ({}); {}",
            self.subject(),
            shown_line(&self.reason, MAX_REASON_CHARS),
            self.code,
            self.code.remedy()
        )
    }

    /// Returns the digest of a listed object from its text as sent. The text may be invalid JSON.
    pub fn digest_of(text: &str) -> Digest {
        Digest::from_text("mcp-broker:left-out:1", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_out_part_is_one_line_with_place_reason_and_remedy() {
        let mut part = LeftOut {
            kind: ItemKind::Tool,
            name: Some("o\u{202e}dd\n".to_owned()),
            code: LeftOutCode::MemberInvalid,
            place: "/description".to_owned(),
            reason: "it is a number".to_owned(),
            digest: LeftOut::digest_of("{}"),
        };
        assert_eq!(
            part.line(),
            "tool `o\\u{202e}dd` at `/description`: it is a number (member_invalid); Report it to the server's maintainers."
        );
        part.name = None;
        assert!(part.line().starts_with("a tool without a name at "));
    }
}
