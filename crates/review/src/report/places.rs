//! The place of a finding in the lock: the line of its tool, or of the member.

use std::collections::BTreeMap;
use std::path::Path;

use broker_model::json::{Position, position_of_pointer};
use serde_json::value::RawValue;

use super::work_tree::path_in_repository;

type RawMembers<'a> = BTreeMap<String, &'a RawValue>;

/// The places of a lock. The text is parsed once for all findings.
#[derive(Debug)]
pub(super) struct Places<'a> {
    /// The lock's name in SARIF and annotations.
    pub file: String,
    text: &'a str,
    /// The offset of each line.
    lines: Vec<usize>,
    sources: BTreeMap<String, &'a RawValue>,
    tools: BTreeMap<(String, String), &'a RawValue>,
}

impl<'a> Places<'a> {
    pub(super) fn new(path: &Path, text: &'a str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let mut places = Self {
            file: path_in_repository(path),
            text,
            lines: std::iter::once(0).chain(breaks).collect(),
            sources: BTreeMap::new(),
            tools: BTreeMap::new(),
        };
        let document: RawMembers<'a> =
            serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap_or_default();
        for source in list(document.get("sources")) {
            let members: RawMembers<'a> = serde_json::from_str(source.get()).unwrap_or_default();
            let Some(path) = string(members.get("path")) else {
                continue;
            };
            for tool in list(members.get("exposed")) {
                let members: RawMembers<'a> = serde_json::from_str(tool.get()).unwrap_or_default();
                if let Some((name, raw)) =
                    string(members.get("upstream_name")).zip(members.get("raw"))
                {
                    places.tools.insert((path.clone(), name), raw);
                }
            }
            places.sources.insert(path, source);
        }
        places
    }

    /// Finds the place of `pointer` in a tool, or in a source without a tool; if the lock does not have it, the
    /// place of the nearest ancestor that it has.
    pub(super) fn find(&self, source: &str, tool: Option<&str>, pointer: &str) -> Position {
        let of_tool = tool.and_then(|tool| self.tools.get(&(source.to_owned(), tool.to_owned())));
        let (part, pointer) = match of_tool {
            Some(raw) => (*raw, pointer),
            None => match self.sources.get(source) {
                Some(part) => (*part, if tool.is_none() { pointer } else { "" }),
                None => return Position { line: 1, column: 1 },
            },
        };
        let start = part.get().as_ptr() as usize - self.text.as_ptr() as usize;
        let line = self.lines.partition_point(|begin| *begin <= start);
        let column = self.text[self.lines[line - 1]..start].chars().count() + 1;
        match position_of_pointer(part.get(), pointer) {
            Some(inner) if inner.line > 1 => Position {
                line: line + inner.line - 1,
                column: inner.column,
            },
            Some(inner) => Position {
                line,
                column: column + inner.column - 1,
            },
            None => Position { line, column },
        }
    }
}

fn list<'a>(value: Option<&&'a RawValue>) -> Vec<&'a RawValue> {
    value
        .and_then(|value| serde_json::from_str(value.get()).ok())
        .unwrap_or_default()
}

fn string(value: Option<&&RawValue>) -> Option<String> {
    serde_json::from_str(value?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"{
  "sources": [
    {
      "exposed": [
        {
          "raw": {
            "description": [
              "Does."
            ],
            "name": "x"
          },
          "upstream_name": "x"
        }
      ],
      "instructions": ["Be kind."],
      "path": "/a"
    }
  ]
}
"#;

    #[test]
    fn finding_place_is_the_line_of_its_member_or_its_parent() {
        let places = Places::new(Path::new("c.lock.json"), LOCK);
        let at = |source, tool, pointer| {
            let place = places.find(source, tool, pointer);
            (place.line, place.column)
        };
        assert_eq!(at("/a", Some("x"), "/name"), (10, 21));
        assert_eq!(at("/a", Some("x"), "/description"), (7, 28));
        assert_eq!(at("/a", Some("x"), "/title"), (6, 18));
        assert_eq!(at("/a", Some("new"), "/inputSchema"), (3, 5));
        assert_eq!(at("/a", None, "/instructions"), (15, 23));
        assert_eq!(at("/b", None, ""), (1, 1));
    }
}
