//! The value of an entry, and its text as JSON and TOML. Members keep their order, so that an entry reads
//! as in the documentation of the client.

use broker_model::text::visible_json;

/// A value of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryValue {
    /// A string.
    Text(String),
    /// `true` or `false`.
    Flag(bool),
    /// A list of strings.
    List(Vec<String>),
    /// Members in their order.
    Members(Vec<(&'static str, Self)>),
    /// Texts by names that a user chose.
    Texts(Vec<(String, String)>),
}

impl EntryValue {
    /// Makes an entry for tests.
    #[cfg(test)]
    pub(super) fn stdio() -> Self {
        Self::Members(vec![
            ("command", Self::text("/b")),
            ("args", Self::List(vec!["stdio".to_owned()])),
        ])
    }

    /// A string.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Every string in it, for checks.
    pub(super) fn strings(&self) -> Vec<&str> {
        match self {
            Self::Text(text) => vec![text],
            Self::Flag(_) => Vec::new(),
            Self::List(items) => items.iter().map(String::as_str).collect(),
            Self::Members(members) => members
                .iter()
                .flat_map(|(_, value)| value.strings())
                .collect(),
            Self::Texts(texts) => texts.iter().map(|(_, text)| text.as_str()).collect(),
        }
    }

    /// JSON in one line.
    pub(super) fn json_line(&self) -> String {
        match self {
            Self::Text(text) => json_string(text),
            Self::Flag(flag) => flag.to_string(),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(|item| json_string(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Members(members) => {
                let member = |(name, value): &(&str, Self)| {
                    format!("{}: {}", json_string(name), value.json_line())
                };
                let members: Vec<_> = members.iter().map(member).collect();
                format!("{{{}}}", members.join(", "))
            }
            Self::Texts(texts) => {
                let member = |(name, text): &(String, String)| {
                    format!("{}: {}", json_string(name), json_string(text))
                };
                let members: Vec<_> = texts.iter().map(member).collect();
                format!("{{{}}}", members.join(", "))
            }
        }
    }

    /// JSON with one line for each member. `indent` is the indentation of the line on which it begins.
    pub(super) fn json(&self, layout: &Layout, indent: &str) -> String {
        let Self::Members(members) = self else {
            return self.json_line();
        };
        let Layout { newline, unit } = layout;
        let inner = format!("{indent}{unit}");
        let member = |(name, value): &(&str, Self)| {
            let value = value.json(layout, &inner);
            format!("{newline}{inner}{}: {value}", json_string(name))
        };
        let members: Vec<_> = members.iter().map(member).collect();
        format!("{{{}{newline}{indent}}}", members.join(","))
    }

    /// TOML in one line.
    pub(super) fn toml_line(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Flag(flag) => flag.to_string(),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(|item| quoted(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Members(members) => {
                let member =
                    |(name, value): &(&str, Self)| format!("{name} = {}", value.toml_line());
                let members: Vec<_> = members.iter().map(member).collect();
                format!("{{ {} }}", members.join(", "))
            }
            Self::Texts(texts) => {
                let member = |(name, text): &(String, String)| {
                    format!("{} = {}", quoted(name), quoted(text))
                };
                let members: Vec<_> = texts.iter().map(member).collect();
                format!("{{ {} }}", members.join(", "))
            }
        }
    }

    /// The members as lines of YAML, each with this indentation.
    pub(super) fn yaml_lines(&self, indent: &str) -> Vec<String> {
        let Self::Members(members) = self else {
            return Vec::new();
        };
        let lines = members.iter().flat_map(|(name, value)| match value {
            Self::Members(_) => {
                let mut lines = vec![format!("{indent}{name}:")];
                lines.extend(value.yaml_lines(&format!("{indent}  ")));
                lines
            }
            Self::Texts(texts) => {
                let line = |(name, text): &(String, String)| {
                    format!("{indent}  {}: {}", quoted(name), quoted(text))
                };
                let mut lines = vec![format!("{indent}{name}:")];
                lines.extend(texts.iter().map(line));
                lines
            }
            // Strings, flags and lists have the same form in one line of TOML.
            value => vec![format!("{indent}{name}: {}", value.toml_line())],
        });
        lines.collect()
    }
}

/// The line ends and the indentation of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The end of a line.
    pub(super) newline: &'static str,
    /// One level of indentation.
    pub(super) unit: String,
}

impl Layout {
    /// The layout of a file that has none yet.
    pub(super) fn default_for(text: &str) -> Self {
        Self {
            newline: newline_of(text),
            unit: "  ".to_owned(),
        }
    }
}

/// The line end that a text uses first.
pub(super) fn newline_of(text: &str) -> &'static str {
    let first = text.find('\n').unwrap_or(0);
    if first > 0 && text.as_bytes()[first - 1] == b'\r' {
        "\r\n"
    } else {
        "\n"
    }
}

/// A JSON string; invisible characters are escaped.
pub(super) fn json_string(text: &str) -> String {
    visible_json(&serde_json::Value::from(text).to_string())
}

/// A basic string of TOML, and a double-quoted one of YAML. Both take the escapes of JSON, except surrogates and `\/`,
/// which are not made.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            _ if broker_model::text::is_invisible(c) || c.is_control() => {
                out.push_str(&format!("\\U{:08x}", u32::from(c)));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> EntryValue {
        EntryValue::Members(vec![
            ("command", EntryValue::text("/b \"x\"")),
            ("args", EntryValue::List(vec!["stdio".to_owned()])),
            (
                "headers",
                EntryValue::Members(vec![("A", EntryValue::text("é\u{1b}\u{e0041}"))]),
            ),
        ])
    }

    #[test]
    fn entry_is_written_in_lines_or_in_one_line() {
        let layout = Layout {
            newline: "\r\n",
            unit: "\t".to_owned(),
        };
        assert_eq!(
            entry().json(&layout, " "),
            "{\r\n \t\"command\": \"/b \\\"x\\\"\",\r\n \t\"args\": [\"stdio\"],\r\n \t\"headers\": {\r\n \t\t\"A\": \"é\\u001b\\udb40\\udc41\"\r\n \t}\r\n }"
        );
        assert_eq!(
            entry().toml_line(),
            r#"{ command = "/b \"x\"", args = ["stdio"], headers = { A = "é\U0000001b\U000e0041" } }"#
        );
    }

    #[test]
    fn entry_reads_back_from_json_and_toml() {
        let json: serde_json::Value = serde_json::from_str(&entry().json_line()).unwrap();
        assert_eq!(json["headers"]["A"], "é\u{1b}\u{e0041}");
        let text = format!("entry = {}", entry().toml_line());
        let toml = toml_edit::Document::parse(text.as_str()).unwrap();
        let read = toml["entry"]["headers"]["A"].as_str();
        assert_eq!(read, Some("é\u{1b}\u{e0041}"));
    }
}
