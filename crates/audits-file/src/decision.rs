//! An entry of the audits file as a value, and its text.

use broker_model::text::is_invisible;

use crate::{Audit, HintAudit, LeftOutAudit, Suppression};

/// An entry of the audits file.
#[derive(Clone, Debug)]
pub enum Decision {
    Audit(Audit),
    Hints(HintAudit),
    Suppression(Suppression),
    LeftOut(LeftOutAudit),
}

impl Decision {
    /// The text of the entry in the file.
    pub fn to_toml(&self) -> String {
        let texts = |list: &[String]| {
            let words: Vec<_> = list.iter().map(|word| quoted(word)).collect();
            (!list.is_empty()).then(|| format!("[{}]", words.join(", ")))
        };
        let text = |text: &str| Some(quoted(text));
        let (list, members) = match self {
            Self::Audit(audit) => (
                "audits",
                vec![
                    ("source", text(audit.source.as_str())),
                    ("tool", audit.tool.as_deref().and_then(text)),
                    ("digest", text(audit.digest.as_str())),
                    ("criteria", text("safe-to-expose")),
                    ("who", text(&audit.who)),
                    ("date", text(&audit.date.to_string())),
                    ("looked_at", texts(&audit.looked_at)),
                    ("notes", audit.notes.as_deref().and_then(text)),
                    (
                        "expires",
                        audit.expires.and_then(|date| text(&date.to_string())),
                    ),
                ],
            ),
            Self::Hints(audit) => (
                "hints",
                vec![
                    ("source", text(audit.source.as_str())),
                    ("tool", text(&audit.tool)),
                    ("digest", text(audit.digest.as_str())),
                    ("values", Some(audit.values.to_toml())),
                    ("who", text(&audit.who)),
                    ("date", text(&audit.date)),
                    ("notes", audit.notes.as_deref().and_then(text)),
                ],
            ),
            Self::LeftOut(one) => (
                "left_out",
                vec![
                    ("source", text(one.source.as_str())),
                    ("tool", one.tool.as_deref().and_then(text)),
                    ("reason", text(&one.reason)),
                    ("digest", text(one.digest.as_str())),
                    ("who", text(&one.who)),
                    ("date", text(&one.date)),
                    ("notes", one.notes.as_deref().and_then(text)),
                ],
            ),
            Self::Suppression(one) => (
                "suppressions",
                vec![
                    ("rule", text(&one.rule)),
                    ("source", text(one.source.as_str())),
                    ("tool", one.tool.as_deref().and_then(text)),
                    ("digest", text(one.digest.as_str())),
                    ("reason", text(&one.reason)),
                    ("who", text(&one.who)),
                    ("date", text(&one.date.to_string())),
                ],
            ),
        };
        let mut out = format!("[[{list}]]\n");
        for (key, value) in members {
            if let Some(value) = value {
                out.push_str(&format!("{key} = {value}\n"));
            }
        }
        out
    }
}

/// A TOML string on one line with every invisible character escaped.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_invisible(c) => out.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
