//! The variables that a config needs: those in place of values that it must not contain, and those that the
//! file names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use broker_config::WORKSPACE_FOLDER;
use broker_config::client_file::{Data, Spanned, is_secret_value, is_variable_name, variable_for};
use broker_model::redact::Secret;
use broker_model::text::shown_line;

use super::client::text_of;
use super::findings;

/// Variables that are set everywhere, or that have a meaning in a config.
const STANDARD: [&str; 11] = [
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "PWD",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    WORKSPACE_FOLDER,
];
/// The key whose texts are names of variables.
const NAMES_KEY: &str = "inherit_env";
/// Maximum number of secrets and of variables that replace something.
pub(super) const MAX_VARIABLES: usize = 500;
/// Maximum number of places that are listed for a variable.
const MAX_PLACES: usize = 5;

/// The variables of one import.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// Names that the file uses.
    reserved: BTreeSet<String>,
    list: Vec<Variable>,
    by_name: HashMap<String, usize>,
    /// The index of the first variable with a value of a server.
    by_value: HashMap<(String, Secret), usize>,
    /// The variables that the file names: their servers, and whether every place has a default.
    named: BTreeMap<String, (BTreeSet<String>, bool)>,
    /// Secrets that no variable replaces.
    dropped: Vec<Secret>,
}

/// A variable that replaces something in the file.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    /// The text that it replaces.
    pub(super) value: Secret,
    pub(super) reason: Reason,
    /// The first server that has it.
    pub(super) server: String,
    /// The places in the file, for people.
    places: Vec<String>,
}

/// The reason why there is a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The value looks like a secret.
    Secret,
    /// The value has a `${` that a config cannot have.
    Text,
    /// Something that the client asks its user or computes.
    OfClient(String),
}

/// The name that a variable gets if possible.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'n> {
    pub(super) server: &'n str,
    pub(super) name: &'n str,
    /// Whether the name is first tried without the server's name.
    pub(super) is_bare: bool,
}

impl Wanted<'_> {
    /// The possible names, the best first.
    fn names(self) -> impl Iterator<Item = String> {
        let name = self.name.trim_start_matches(['-', '/']);
        let bare = self.is_bare.then(|| variable_for(name, false));
        let base = variable_for(&format!("{}_{name}", self.server), true);
        let numbered = base.clone();
        let numbered = (2..).map(move |number| format!("{numbered}_{number}"));
        bare.into_iter()
            .chain(std::iter::once(base))
            .chain(numbered)
    }
}

impl Variables {
    /// Reserves the names that a server uses, except the names of its variables whose values are replaced.
    pub(super) fn reserve(&mut self, entry: &Spanned) {
        let env = entry.get("env").map_or(&[][..], Spanned::members).iter();
        let replaced = env.filter(|one| {
            let text = text_of(&one.value).unwrap_or_default();
            !text.contains("${") && is_secret_value(&one.key, text)
        });
        let replaced: BTreeSet<&str> = replaced.map(|one| one.key.as_str()).collect();
        let mut used = BTreeSet::new();
        names_in(entry, false, &mut used);
        let used = used.difference(&replaced);
        self.reserved.extend(used.map(|n| variable_for(n, false)));
    }

    /// Returns the variable for a value, as `${NAME}`. Each name has one value.
    pub(super) fn assign(
        &mut self,
        wanted: Wanted<'_>,
        value: &str,
        reason: Reason,
        place: &str,
    ) -> String {
        let value = Secret::new(value);
        let mut names = wanted.names();
        let name = names.find(|name| match self.by_name.get(name) {
            Some(id) => {
                let known = self.list.get(*id);
                known.is_some_and(|one| one.value == value && one.reason == reason)
                    || self.list.len() > MAX_VARIABLES
            }
            None => !self.reserved.contains(name) && !STANDARD.contains(&name.as_str()),
        });
        let name = name.unwrap_or_default();
        let next = self.list.len();
        let id = *self.by_name.entry(name.clone()).or_insert(next);
        let server = wanted.server.to_owned();
        self.by_value.entry((server, value.clone())).or_insert(id);
        if id == next {
            self.list.push(Variable {
                name,
                value,
                reason,
                server: wanted.server.to_owned(),
                places: Vec::new(),
            });
        }
        self.reference(id, place)
    }

    /// The variable that has this value of the server already, as `${NAME}`.
    pub(super) fn with_value(&mut self, server: &str, value: &str, place: &str) -> Option<String> {
        let key = (server.to_owned(), Secret::new(value));
        let id = *self.by_value.get(&key)?;
        Some(self.reference(id, place))
    }

    fn reference(&mut self, id: usize, place: &str) -> String {
        let Some(variable) = self.list.get_mut(id) else {
            return String::new();
        };
        let places = &mut variable.places;
        if places.len() < MAX_PLACES && !places.iter().any(|known| known == place) {
            places.push(place.to_owned());
        }
        format!("${{{}}}", variable.name)
    }

    /// Notes a variable that a template of a server names.
    pub(super) fn named(&mut self, name: &str, server: &str, has_default: bool) {
        let named = self.named.entry(name.to_owned());
        let (servers, is_optional) = named.or_insert((BTreeSet::new(), true));
        servers.insert(server.to_owned());
        *is_optional &= has_default;
    }

    /// Notes a secret that is neither taken nor replaced.
    pub(super) fn dropped(&mut self, value: &str) {
        self.dropped.push(Secret::new(value));
    }

    /// Returns the number of variables that replace a text, plus the number of secrets without a variable.
    pub(super) fn len(&self) -> usize {
        self.list.len() + self.dropped.len()
    }

    /// Every variable that replaces a secret.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Variable> {
        self.list.iter().filter(|one| one.reason == Reason::Secret)
    }

    /// Every secret that no variable replaces.
    pub(super) fn unreplaced(&self) -> &[Secret] {
        &self.dropped
    }

    /// The variables that replace a text of the file, each with this text.
    pub(super) fn values(&self) -> Vec<(String, Secret)> {
        let has_value = |one: &&Variable| match one.reason {
            Reason::Secret | Reason::Text => true,
            Reason::OfClient(_) => false,
        };
        let replaced = self.list.iter().filter(has_value);
        replaced
            .map(|one| (one.name.clone(), one.value.clone()))
            .collect()
    }

    /// Every variable to set, with its meaning.
    pub(super) fn to_set(&self) -> Vec<(String, String)> {
        let replaced = self.list.iter().map(|variable| {
            let reason = match &variable.reason {
                Reason::Secret => "secret".to_owned(),
                Reason::Text => "text with a `${` that a config cannot have".to_owned(),
                Reason::OfClient(text) => shown_line(text, 120),
            };
            let meaning = format!("{reason}: {}", variable.places.join(", "));
            (variable.name.clone(), meaning)
        });
        let named = self.named.iter();
        let named = named.filter(|(name, _)| !STANDARD.contains(&name.as_str()));
        let named = named.map(|(name, (servers, is_optional))| {
            let optional = if *is_optional {
                "; it has a default"
            } else {
                ""
            };
            let servers = findings::names(servers);
            let meaning = format!("the file names it: {servers}{optional}");
            (name.clone(), meaning)
        });
        replaced.chain(named).collect()
    }
}

/// Collects the names of variables in a value. If `is_name`, each text is one.
fn names_in<'t>(value: &'t Spanned, is_name: bool, names: &mut BTreeSet<&'t str>) {
    match &value.data {
        Data::String(text) if is_name => {
            names.insert(text);
        }
        Data::String(text) => {
            for (at, open) in text.match_indices("${") {
                let inner = &text[at + open.len()..];
                let inner = inner.strip_prefix("env:").unwrap_or(inner);
                let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
                let name = &inner[..inner.find(is_end).unwrap_or(inner.len())];
                if is_variable_name(name) {
                    names.insert(name);
                }
            }
        }
        Data::Array(items) => items.iter().for_each(|one| names_in(one, is_name, names)),
        Data::Object(members) => members.iter().for_each(|one| {
            let is_name = is_name || one.key == NAMES_KEY;
            names_in(&one.value, is_name, names);
        }),
        Data::Null | Data::Bool(_) | Data::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(variables: &mut Variables, server: &str, name: &str, value: &str) -> String {
        let wanted = Wanted {
            server,
            name,
            is_bare: true,
        };
        variables.assign(wanted, value, Reason::Secret, "x")
    }

    #[test]
    fn variable_is_shared_by_equal_values_only() {
        let mut variables = Variables::default();
        for (server, value, name) in [
            ("a", "one", "${TOKEN}"),
            ("b", "one", "${TOKEN}"),
            ("c-d", "two", "${C_D_TOKEN}"),
            ("c_d", "three", "${C_D_TOKEN_2}"),
            ("c-d", "two", "${C_D_TOKEN}"),
        ] {
            assert_eq!(secret(&mut variables, server, "TOKEN", value), name);
        }
        let shown = format!("{variables:?}");
        assert!(!shown.contains("three"), "{shown}");
    }

    #[test]
    fn variable_has_no_name_that_the_file_or_the_broker_needs() {
        let mut variables = Variables::default();
        let text = r#"{"args": ["${TOKEN:-x} ${env:KEY}"], "inherit_env": ["NAME"], "env": {"OWN": "y${OWN}", "S_KEY": "z"},
            "cwd": "${S_KEY}"}"#;
        let entry = broker_config::client_file::parse_json("f", text).expect("JSON");
        variables.reserve(&entry);
        for (server, name, expected) in [
            ("mcp-broker", "TOKEN", "${_MCP_BROKER_TOKEN}"),
            ("b", "PATH", "${B_PATH}"),
            ("b", "KEY", "${B_KEY}"),
            ("b", "NAME", "${B_NAME}"),
            ("b", "OWN", "${B_OWN}"),
            ("b", "S_KEY", "${S_KEY}"),
        ] {
            assert_eq!(secret(&mut variables, server, name, name), expected);
        }
    }
}
