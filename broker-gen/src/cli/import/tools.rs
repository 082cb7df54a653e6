//! Lists of tools of clients as a `tool_filter`.

use broker_model::config::client_file::{Data, Spanned};
use broker_model::filter::literal_pattern;

use super::server::Reader;

/// Keys with a list of the tools that are exposed.
const EXPOSED: [&str; 2] = ["enabled_tools", "includeTools"];
/// Keys with a list of the tools that are hidden.
const HIDDEN: [&str; 3] = ["disabled_tools", "excludeTools", "disabledTools"];

/// The tools that a client exposes and hides.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// `None` if the file has no such list; then all are exposed.
    exposed: Option<Vec<String>>,
    hidden: Vec<String>,
}

impl Tools {
    /// Reads a key about tools; false for any other key.
    pub(super) fn read(&mut self, reader: &mut Reader<'_, '_>, key: &str, value: &Spanned) -> bool {
        let names = if EXPOSED.contains(&key) {
            self.exposed.get_or_insert_default()
        } else if HIDDEN.contains(&key) {
            &mut self.hidden
        } else {
            return false;
        };
        let Data::Array(items) = &value.data else {
            reader.wrong_type(value, key, "a list of strings");
            return true;
        };
        for item in items {
            match &item.data {
                Data::String(name) => names.push(name.clone()),
                _ => reader.wrong_type(item, key, "a string"),
            }
        }
        true
    }

    /// The patterns of the source; `None` if the file has no list.
    pub(super) fn patterns(self) -> Option<Vec<String>> {
        let mut patterns = match self.exposed {
            None => Vec::new(),
            // An empty list exposes nothing.
            Some(names) if names.is_empty() => vec!["!*".to_owned()],
            Some(names) => names.iter().map(|name| literal_pattern(name)).collect(),
        };
        let hidden = self.hidden.iter();
        patterns.extend(hidden.map(|name| format!("!{}", literal_pattern(name))));
        (!patterns.is_empty()).then_some(patterns)
    }
}

#[cfg(test)]
mod tests {
    use broker_model::filter::ToolFilter;

    use super::*;

    #[test]
    fn tools_of_a_client_are_those_of_the_filter() {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for (exposed, hidden, admitted) in [
            (None, &[][..], &["a", "b", "!c*", "d"][..]),
            (Some(&["a", "!c*"][..]), &[], &["a", "!c*"]),
            (Some(&["a", "b"]), &["b"], &["a"]),
            (Some(&["*"]), &[], &[]),
            (Some(&[]), &[], &[]),
            (None, &["!c*", "d"], &["a", "b"]),
        ] {
            let tools = Tools {
                exposed: exposed.map(owned),
                hidden: owned(hidden),
            };
            let patterns = tools.patterns().unwrap_or_default();
            let filter = ToolFilter::compile(&patterns).expect("valid patterns");
            let found: Vec<_> = ["a", "b", "!c*", "d"]
                .into_iter()
                .filter(|name| filter.admits(name))
                .collect();
            assert_eq!(found, admitted, "{patterns:?}");
        }
    }
}
