//! The reason for a withdrawal, in two forms: the log gets the whole finding, callers get the text of
//! the rule and pointers into the reviewed tool. Names of properties, hosts and tools that a live
//! server chose are text that was not reviewed.

use broker_drift::{Class, Finding, SourceDrift, ToolDrift, rules};
use broker_model::text::shown_line;
use serde_json::{Map, Value};

/// The maximum length of a message in replies and logs, in characters.
pub(crate) const MAX_MESSAGE: usize = 300;
/// The text for a rule that is not listed.
const UNLISTED: &str = "it differs from the lock";

/// The reason that callers get for a withdrawal that the config asks for.
const CHANGED_TEXT: &str = "a reviewed text changed, and the config withdraws on changed texts";
/// The note in the log on such a withdrawal.
const BY_CONFIG: &str = "withdrawn by `on_text_drift`";

/// The reason for a withdrawal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    /// For callers: contains no text of a live server.
    pub(crate) public: String,
    /// For the log.
    pub(crate) internal: String,
}

impl Reason {
    /// Makes a reason without text of a server, the same in both forms.
    pub(crate) fn own(message: &str) -> Self {
        let message = shown_line(message, MAX_MESSAGE);
        Self {
            public: message.clone(),
            internal: message,
        }
    }

    /// Returns the reason why one tool is withdrawn.
    pub(crate) fn from_tool(drift: &ToolDrift, reviewed: Option<&Map<String, Value>>) -> Self {
        let Some(first) = drift.findings.first() else {
            return Self::own(UNLISTED);
        };
        let mut public = words(first.rule);
        if let Some(place) = reviewed.and_then(|tool| place(&first.pointer, tool)) {
            public = format!("{public} (`{}`)", shown_line(&place, MAX_MESSAGE / 2));
        }
        let mut internal = shown_line(&first.message, MAX_MESSAGE);
        // A note, such as the guess of another name, is not a reason.
        let others = drift.findings.iter().skip(1);
        let others = others.filter(|one| one.class != Class::Same).count();
        if others > 0 {
            let more = format!(", and {others} more");
            public.push_str(&more);
            internal.push_str(&more);
        }
        Self { public, internal }
    }

    /// Returns the reason for withdrawing one tool whose texts alone changed. Its pointer may name a property that the
    /// live server added, so callers do not get the pointer.
    pub(crate) fn changed_text(drift: &ToolDrift) -> Self {
        let found = drift.findings.iter().find(|one| one.is_text_drift());
        let internal = found
            .or(drift.findings.first())
            .map_or(UNLISTED, |one| &one.message);
        Self {
            public: CHANGED_TEXT.to_owned(),
            internal: shown_line(&format!("{internal}; {BY_CONFIG}"), MAX_MESSAGE),
        }
    }

    /// Returns the reason for withdrawing every tool of a source whose own text changed.
    pub(crate) fn changed_text_of_source(finding: &Finding) -> Self {
        Self {
            public: format!("about the whole source: {CHANGED_TEXT}"),
            internal: shown_line(&format!("{}; {BY_CONFIG}", finding.message), MAX_MESSAGE),
        }
    }

    /// Returns the reason why a whole source is withdrawn.
    pub(crate) fn from_source(about: &SourceDrift) -> Self {
        worst(about).map_or_else(
            || Self::own(UNLISTED),
            |finding| Self {
                public: format!("about the whole source: {}", words(finding.rule)),
                internal: shown_line(&finding.message, MAX_MESSAGE),
            },
        )
    }
}

/// Returns the finding that gave a source its class.
pub(crate) fn worst(about: &SourceDrift) -> Option<&Finding> {
    let mut findings = about.findings.iter();
    findings.find(|finding| finding.class == about.class)
}

/// Returns the reason of a rule as a fragment.
fn words(rule: &str) -> String {
    let reason = rules().iter().find(|one| one.id == rule);
    let sentence = reason.map_or(UNLISTED, |one| one.reason);
    let sentence = sentence.strip_suffix('.').unwrap_or(sentence);
    let mut chars = sentence.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// Returns the deepest part of a pointer that the reviewed tool has, so that every name in it was reviewed.
fn place(pointer: &str, reviewed: &Map<String, Value>) -> Option<String> {
    let mut value: Option<&Value> = None;
    let mut known = String::new();
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let next = match value {
            None => reviewed.get(&name),
            Some(Value::Object(members)) => members.get(&name),
            Some(Value::Array(items)) => name.parse().ok().and_then(|at: usize| items.get(at)),
            Some(_) => None,
        };
        let Some(next) = next else { break };
        value = Some(next);
        known = format!("{known}/{token}");
    }
    value.map(|_| known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker_drift::{Class, FindingSeverity};
    use broker_model::NodePath;
    use serde_json::json;

    fn finding(rule: &'static str, class: Class, pointer: &str) -> Finding {
        Finding {
            rule,
            class,
            severity: FindingSeverity::Error,
            pointer: pointer.to_owned(),
            old: None,
            new: None,
            witness: None,
            message: "the property `OBEY` is there".to_owned(),
            remedy: String::new(),
        }
    }

    fn public(rule: &'static str, pointer: &str) -> String {
        let reviewed = json!({"inputSchema": {"properties": {"a/b": {"type": "string"}}}});
        let drift = ToolDrift {
            source: NodePath::parse("/s").unwrap(),
            tool: "t".to_owned(),
            path: "/s/t".to_owned(),
            class: Class::Breaking,
            findings: vec![finding(rule, Class::Breaking, pointer)],
        };
        let reason = Reason::from_tool(&drift, reviewed.as_object());
        assert_eq!(reason.internal, "the property `OBEY` is there");
        reason.public
    }

    #[test]
    fn withdrawal_reason_has_the_rule_and_reviewed_places_only() {
        let required = "calls without the property were valid and are refused now";
        for (pointer, place) in [
            (
                "/inputSchema/properties/a~1b/type",
                " (`/inputSchema/properties/a~1b/type`)",
            ),
            (
                "/inputSchema/properties/OBEY/type",
                " (`/inputSchema/properties`)",
            ),
            (
                "/inputSchema/properties/a~1b/type/OBEY",
                " (`/inputSchema/properties/a~1b/type`)",
            ),
            ("/OBEY", ""),
            ("", ""),
        ] {
            assert_eq!(
                public("input-required-added", pointer),
                format!("{required}{place}")
            );
        }
        assert_eq!(public("of-tomorrow", ""), UNLISTED);
    }

    #[test]
    fn withdrawal_reason_of_a_source_is_its_worst_finding() {
        let about = SourceDrift {
            source: NodePath::parse("/s").unwrap(),
            class: Class::Security,
            findings: vec![
                finding("server-name-changed", Class::Text, "/server_info/name"),
                finding("hidden-characters", Class::Security, "/instructions"),
            ],
        };
        assert_eq!(worst(&about).map(|one| one.rule), Some("hidden-characters"));
        let public = Reason::from_source(&about).public;
        assert!(
            public.starts_with("about the whole source: invisible characters"),
            "{public}"
        );
    }
}
