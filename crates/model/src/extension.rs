//! The extensions of MCP that the broker can use as a client of a server.

use std::collections::BTreeSet;

/// An extension of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extension {
    /// Tasks: a server may answer a call with a task, whose result the client gets later.
    Tasks,
}

impl Extension {
    /// Every extension, in the order of the documentation.
    pub const ALL: [Self; 1] = [Self::Tasks];

    /// Returns its identifier in capabilities and in a config.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tasks => "io.modelcontextprotocol/tasks",
        }
    }

    /// Returns the extension with this identifier.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == name)
    }
}

/// The extensions that the broker declares to one server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extensions(BTreeSet<Extension>);

impl Extensions {
    /// Whether the broker declares this extension.
    pub fn has(&self, extension: Extension) -> bool {
        self.0.contains(&extension)
    }

    /// Whether the broker declares none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns their identifiers, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|one| one.as_str())
    }
}

impl FromIterator<Extension> for Extensions {
    fn from_iter<T: IntoIterator<Item = Extension>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}
