//! The tool lists of clients as `tool_filter` of a config.

use super::Client;
use super::entry::{Entry, position};
use crate::spanned::{Data, Member, Spanned};
use broker_model::filter::literal_pattern;

/// Keys with a list of the exposed tools.
const EXPOSED: [&str; 2] = ["enabled_tools", "includeTools"];
/// Keys with a list of the hidden tools.
const HIDDEN: [&str; 3] = ["disabled_tools", "excludeTools", "disabledTools"];

/// Makes `tool_filter` of the lists of a client, behind the patterns that it has.
pub(super) fn convert(entry: &mut Entry<'_, '_>, members: &mut Vec<Member>) {
    let client = entry.rules.client;
    let mut place = None;
    let mut tools = Tools::default();
    members.retain(|member| {
        let Some(names) = names(&member.value) else {
            return true;
        };
        let names = names.into_iter();
        match member.key.as_str() {
            // An empty list of goose, and the star of Copilot, are all tools.
            "available_tools" if client == Some(Client::Goose) => {
                if names.len() > 0 {
                    tools.exposed.get_or_insert_default().extend(names);
                }
            }
            "tools" if client == Some(Client::Copilot) => {
                if !names.clone().any(|name| name == "*") {
                    tools.exposed.get_or_insert_default().extend(names);
                }
            }
            key if EXPOSED.contains(&key) => {
                tools.exposed.get_or_insert_default().extend(names);
            }
            key if HIDDEN.contains(&key) => tools.hidden.extend(names),
            _ => return true,
        }
        place.get_or_insert(member.at);
        false
    });
    let (Some(at), Some(patterns)) = (place, tools.patterns()) else {
        return;
    };
    let patterns = patterns.into_iter().map(|pattern| Spanned {
        at,
        data: Data::String(pattern),
    });
    let own = position(members, "tool_filter").and_then(|own| members.get_mut(own));
    match own.map(|own| &mut own.value.data) {
        Some(Data::Array(own)) => own.extend(patterns),
        Some(_) => {}
        None => members.push(Member {
            at,
            key: "tool_filter".to_owned(),
            value: Spanned {
                at,
                data: Data::Array(patterns.collect()),
            },
        }),
    }
}

/// The names in a list; `None` for another value.
fn names(value: &Spanned) -> Option<Vec<String>> {
    let Data::Array(items) = &value.data else {
        return None;
    };
    let names = items.iter().map(|item| match &item.data {
        Data::String(name) => Some(name.clone()),
        _ => None,
    });
    names.collect()
}

/// The tools that a client exposes and hides.
#[derive(Debug, Default)]
struct Tools {
    /// `None` if the file has no such list; then all are exposed.
    exposed: Option<Vec<String>>,
    hidden: Vec<String>,
}

impl Tools {
    /// The patterns of the source; `None` if the file has no list.
    fn patterns(self) -> Option<Vec<String>> {
        let mut patterns = match self.exposed {
            None => Vec::new(),
            // An empty list hides every tool.
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
