//! The edits of a client's file in its syntax.

use super::client::{Client, Syntax};
use super::edit::{Edit, Removal};
use super::error::Refusal;
use super::value::{EntryValue, Layout};
use super::{jsonc, toml, yaml};

/// The file of a client as a text to edit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    syntax: Syntax,
    servers: &'static str,
    form: yaml::Form,
}

impl Format {
    pub(super) fn new(client: Client) -> Self {
        let syntax = client.syntax();
        Self {
            syntax,
            servers: client.servers(),
            form: yaml::Form {
                is_list: syntax == Syntax::YamlList,
                preamble: client.preamble(),
            },
        }
    }

    /// Whether a document is JSON.
    pub(super) fn is_json(self) -> bool {
        self.syntax == Syntax::Jsonc
    }

    /// Returns a complete document with one entry.
    pub(super) fn document(self, name: &str, entry: &EntryValue) -> String {
        match self.syntax {
            Syntax::Jsonc => jsonc::document(self.servers, name, entry, &Layout::default_for("")),
            Syntax::Toml => toml::document(self.servers, name, entry, "\n"),
            Syntax::Yaml | Syntax::YamlList => {
                yaml::document(self.form, self.servers, name, entry, "\n")
            }
        }
    }

    /// Inserts an entry, or replaces the one that differs.
    pub(super) fn insert(
        self,
        text: &str,
        name: &str,
        entry: &EntryValue,
    ) -> Result<Edit, Refusal> {
        match self.syntax {
            Syntax::Jsonc => jsonc::insert(text, self.servers, name, entry),
            Syntax::Toml => toml::insert(text, self.servers, name, entry),
            Syntax::Yaml | Syntax::YamlList => {
                yaml::insert(self.form, text, self.servers, name, entry)
            }
        }
    }

    /// Removes the entries that `is_moved` names.
    pub(super) fn without(
        self,
        text: &str,
        is_moved: &dyn Fn(&str) -> bool,
    ) -> Result<Removal, Refusal> {
        match self.syntax {
            Syntax::Jsonc => jsonc::without(text, self.servers, is_moved),
            Syntax::Toml => toml::without(text, self.servers, is_moved),
            Syntax::Yaml | Syntax::YamlList => {
                yaml::without(self.form, text, self.servers, is_moved)
            }
        }
    }
}
